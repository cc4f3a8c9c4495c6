/* SPDX-License-Identifier: Apache-2.0 */

/* Tools and losses, for people or for programs. */

#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/output.h"
#include "cli/tools/definitions.h"
#include "pegboard/schema.h"
#include "json/json.h"

/* ---- losses ------------------------------------------------------------------------------- */

/* "weather: /properties/city/pattern dropped: ..." */
static void put_loss(struct peg__buf *line, const peg_definition_loss *loss,
                     const struct cli_style *style)
{
    peg__buf_puts(line, style->bold);
    cli_put_safe(line, loss->tool);
    peg__buf_puts(line, style->off);
    peg__buf_puts(line, ": ");
    if (loss->where.len) {
        cli_put_safe(line, loss->where);
        peg__buf_putc(line, ' ');
    } else {
        cli_put_safe(line, loss->keyword);
        peg__buf_putc(line, ' ');
    }
    peg__buf_printf(line, "%s: ", loss->what);
    cli_put_safe(line, loss->note);
    peg__buf_putc(line, '\n');
}

static peg_status print_losses(const struct definitions_outcome *o, FILE *to, peg_error *reterr)
{
    const struct cli_style *style = cli_style_for(o->options->color, fileno(to));
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    char *bytes = NULL;
    size_t len;
    peg_status status;

    for (size_t i = 0; i < peg_definition_losses_len(o->losses); i++)
        put_loss(&text, peg_definition_losses_at(o->losses, i), style);
    status = peg__buf_take(&text, &bytes, &len, reterr);
    if (!status)
        cli_write(to, peg__strn(bytes, len));
    peg_free(bytes);
    return status;
}

/* ---- tools ---- */

static peg_status print_pretty(peg_str json, peg_error *reterr)
{
    const peg_json_options deep = {PEG_JSON_OPTIONS_INIT, .max_depth = PEG_LIMIT_JSON_DEPTH_MAX};
    PEG_CLEANUP(peg__freep) char *text = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(json, &deep, &doc, reterr);

    if (!status)
        status = peg_json_write(peg_json_root(doc), PEG_JSON_PRETTY, &text, NULL, reterr);
    if (!status)
        puts(text);
    peg_json_doc_free(doc);
    return status;
}

static peg_status print_tools(peg_str json, peg_error *reterr)
{
    if (isatty(STDOUT_FILENO))
        return print_pretty(json, reterr);
    cli_write(stdout, json);
    putchar('\n');
    return PEG_OK;
}

static void put_object(struct peg__out *out, const peg_definition_loss *loss)
{
    peg__out_object(out);
    peg__out_member(out, "tool", loss->tool);
    peg__out_member(out, "where", loss->where);
    peg__out_member(out, "keyword", loss->keyword);
    peg__out_cmember(out, "what", loss->what);
    peg__out_member(out, "note", loss->note);
    peg__out_end_object(out);
}

/* {"provider", "tools", "losses"} on one line; on a terminal on many. */
static peg_status print_json(const struct definitions_outcome *o, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    size_t len;
    peg_status status;

    peg__out_object(&out);
    peg__out_cmember(&out, "provider", peg_vendor_name(o->options->render.provider));
    peg__out_key(&out, "tools");
    peg__out_raw(&out, o->text);
    peg__out_key(&out, "losses");
    peg__out_array(&out);
    for (size_t i = 0; i < peg_definition_losses_len(o->losses); i++)
        put_object(&out, peg_definition_losses_at(o->losses, i));
    peg__out_end_array(&out);
    peg__out_end_object(&out);
    status = peg__buf_take(&text, &bytes, &len, reterr);
    return status ? status : print_tools(peg__strn(bytes, len), reterr);
}

peg_status definitions_print(const struct definitions_outcome *outcome, peg_error *reterr)
{
    peg_status status;

    if (outcome->options->as_json)
        return print_json(outcome, reterr);
    if (outcome->options->only_losses)
        return print_losses(outcome, stdout, reterr);
    status = print_tools(outcome->text, reterr);
    if (status || outcome->options->quiet)
        return status;
    /* The report comes after what it is about, also where both go to one terminal. */
    (void)cli_flush();
    return print_losses(outcome, stderr, reterr);
}

/* ---- schemas that are none ---- */

static void warn(const peg_json *name, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "pegboard: ");
    cli_put_safe(&line, peg_json_str(name));
    peg__buf_puts(&line, ": its schema does not compile: ");
    if (error->where[0]) {
        cli_put_safe(&line, peg__str(error->where));
        peg__buf_puts(&line, ": ");
    }
    cli_put_safe(&line, peg__str(error->message));
    if (!line.status)
        fprintf(stderr, "%s\n", line.ptr);
    peg__buf_free(&line);
}

void definitions_warn(const peg_json *definitions)
{
    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_json *name = peg_json_get(definition, "name");
        const peg_json *schema = peg_json_get(definition, "parameters");
        peg_schema *compiled = NULL;
        peg_error error;

        if (!schema || schema->kind == PEG_JSON_NULL)
            continue;
        if (peg_schema_compile_value(schema, NULL, &compiled, &error))
            warn(name, &error);
        peg_schema_unref(compiled);
    }
}
