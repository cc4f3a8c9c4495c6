/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/tool_print.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/toolset.h"
#include "cli/turn.h"

enum { INDENT = 2 };

/* ---- for programs -----------------------------------------------------------------------------
 */

static void out_json(struct peg__out *out, const char *name, peg_str json)
{
    peg__out_key(out, name);
    if (json.len)
        peg__out_raw(out, json);
    else
        peg__out_null(out);
}

void tool_out(struct peg__out *out, const peg_toolset_tool *tool)
{
    peg__out_cmember(out, "name", tool->name);
    peg__out_cmember(out, "description", tool->description);
    toolset_out_strings(out, "tags", tool->tags, tool->n_tags);
    out_json(out, "input_schema", tool->input_schema);
    out_json(out, "output_schema", tool->output_schema);
    peg__out_key(out, "idempotent");
    peg__out_bool(out, tool->is_idempotent);
    peg__out_key(out, "timeout_ms");
    peg__out_integer(out, tool->timeout_ms);
}

/* ---- arguments --------------------------------------------------------------------------------
 */

/* "integer", "string or null", "one of 3"; nothing where the schema does not say. */
static void put_type(struct peg__buf *out, const peg_json *schema)
{
    const peg_json *type = peg_json_get(schema, "type");
    const peg_json *choice = peg_json_get(schema, "enum");
    const char *between = "";

    if (choice && peg_json_kind_of(choice) == PEG_JSON_ARRAY && peg_json_len(choice)) {
        peg__buf_puts(out, "one of ");
        PEG_JSON_EACH_ITEM (choice, item) {
            struct peg__out value = {.buf = out};

            peg__buf_puts(out, between);
            peg__out_value(&value, item);
            between = ", ";
        }
        return;
    }
    if (!type)
        return;
    if (peg_json_kind_of(type) == PEG_JSON_STRING)
        peg__buf_str(out, peg_json_str(type));
    if (peg_json_kind_of(type) != PEG_JSON_ARRAY)
        return;
    PEG_JSON_EACH_ITEM (type, item) {
        peg__buf_puts(out, between);
        if (peg_json_kind_of(item) == PEG_JSON_STRING)
            peg__buf_str(out, peg_json_str(item));
        between = " or ";
    }
}

static bool is_required(const peg_json *schema, peg_str name)
{
    const peg_json *required = peg_json_get(schema, "required");

    if (!required || peg_json_kind_of(required) != PEG_JSON_ARRAY)
        return false;
    PEG_JSON_EACH_ITEM (required, item) {
        if (peg_json_kind_of(item) == PEG_JSON_STRING && peg__str_eq(peg_json_str(item), name))
            return true;
    }
    return false;
}

static void put_default(struct peg__buf *out, const peg_json *property)
{
    const peg_json *value = peg_json_get(property, "default");
    struct peg__out json = {.buf = out};

    if (!value)
        return;
    peg__buf_puts(out, out->len ? ", default " : "default ");
    peg__out_value(&json, value);
}

/* "city (string, required): where". */
static void put_argument(const struct tool_print *print, const peg_json *schema, peg_str name,
                         const peg_json *property)
{
    const peg_json *description = peg_json_get(property, "description");
    const struct turn_text how = {.out = print->out,
                                  .width = print->width,
                                  .first = "    ",
                                  .indent = 3 * INDENT,
                                  .on = "",
                                  .off = ""};
    struct peg__buf traits = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    put_type(&traits, property);
    if (is_required(schema, name))
        peg__buf_puts(&traits, traits.len ? ", required" : "required");
    put_default(&traits, property);
    peg__buf_str(&line, name);
    if (traits.len)
        peg__buf_printf(&line, " (%s)", traits.ptr);
    if (description && peg_json_kind_of(description) == PEG_JSON_STRING) {
        peg__buf_puts(&line, ": ");
        peg__buf_str(&line, peg_json_str(description));
    }
    if (traits.status || line.status)
        print->out->status = traits.status ? traits.status : line.status;
    else
        turn_put_text(&how, peg__buf_view(&line));
    peg__buf_free(&traits);
    peg__buf_free(&line);
}

static void put_arguments(const struct tool_print *print, peg_str json)
{
    const peg_json *properties;
    peg_json_doc *doc = NULL;

    if (peg_json_parse(json, NULL, &doc, NULL))
        return;
    properties = peg_json_get(peg_json_root(doc), "properties");
    if (properties && peg_json_kind_of(properties) == PEG_JSON_OBJECT) {
        PEG_JSON_EACH_MEMBER (properties, key)
            put_argument(print, peg_json_root(doc), peg_json_str(key), key + 1);
    }
    peg_json_doc_free(doc);
}

/* ---- for people -------------------------------------------------------------------------------
 */

void tool_print(const struct tool_print *print, const peg_toolset_tool *tool)
{
    const struct turn_text how = {
        .out = print->out, .width = print->width, .indent = 2 * INDENT, .on = "", .off = ""};

    peg__buf_printf(print->out, "  %s", print->style->bold);
    cli_put_safe(print->out, peg__str(tool->name));
    peg__buf_printf(print->out, "%s%s\n", print->style->off,
                    tool->is_idempotent ? "  (may be repeated)" : "");
    if (*tool->description)
        turn_put_text(&how, peg__str(tool->description));
    put_arguments(print, tool->input_schema);
}

static void put_schema(const struct tool_print *print, const char *title, peg_str json)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct turn_text how = {.out = print->out, .indent = 2 * INDENT, .on = "", .off = ""};

    if (!json.len || !toolset_put_pretty(&text, json))
        return;
    peg__buf_printf(print->out, "\n  %s%s%s\n", print->style->dim, title, print->style->off);
    turn_put_text(&how, peg__buf_view(&text));
    peg__buf_free(&text);
}

void tool_print_whole(const struct tool_print *print, const peg_toolset_tool *tool)
{
    tool_print(print, tool);
    if (tool->timeout_ms)
        peg__buf_printf(print->out, "    time limit: %g s\n", (double)tool->timeout_ms / 1000);
    put_schema(print, "input schema", tool->input_schema);
    put_schema(print, "output schema", tool->output_schema);
}
