/* SPDX-License-Identifier: Apache-2.0 */

/* From definitions to what goes under "tools" of a request. */

#include "engine/dialects/internal.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"

PEG_DEFINE_CLEANUP(struct peg__names, peg__names_free)
/* ---- one definition --------------------------------------------------------------------- */

struct definition {
    const peg_json *name;        /* a string; empty: none, or no string */
    const peg_json *description; /* NULL: none */
    const peg_json *parameters;  /* NULL: any object */
    const peg_json *examples;
    const peg_json *output;
};

static const peg_json *unless_null(const peg_json *value)
{
    return value && value->kind != PEG_JSON_NULL ? value : NULL;
}

/* Is it sure that no object is valid? */
static bool is_no_object(const peg_json *parameters)
{
    const peg_json *type = peg_json_get(parameters, "type");

    return type && !(peg__types_of(type) & PEG__TYPE_OBJECT);
}

static void take_member(struct definition *d, const peg_json *key)
{
    const peg_str name = peg_json_str(key);
    const peg_json *value = unless_null(key + 1);

    if (peg__str_is(name, "name") && value && value->kind == PEG_JSON_STRING)
        d->name = value;
    else if (peg__str_is(name, "description"))
        d->description = value;
    else if (peg__str_is(name, "parameters"))
        d->parameters = value;
    else if (peg__str_is(name, "examples"))
        d->examples = value;
    else if (peg__str_is(name, "output"))
        d->output = value;
}

/* What is null, empty or says nothing is as good as missing. */
static struct definition read_definition(const peg_json *value)
{
    static const peg_json no_name = {.kind = PEG_JSON_STRING, .u.ptr = ""};
    struct definition d = {.name = &no_name};

    if (value->kind != PEG_JSON_OBJECT)
        return d;
    PEG_JSON_EACH_MEMBER (value, key)
        take_member(&d, key);
    if (d.description && d.description->kind == PEG_JSON_STRING && d.description->len == 0)
        d.description = NULL;
    if (d.parameters && peg_json_is_true(d.parameters))
        d.parameters = NULL;
    return d;
}

/* A sentence, with the member that it is about; NULL if there is nothing wrong. */
static const char *find_fault(const struct definition *d, const char **ret_member)
{
    *ret_member = "/description";
    if (d->description && d->description->kind != PEG_JSON_STRING)
        return "\"description\" is a string";
    *ret_member = "/parameters";
    if (d->parameters && d->parameters->kind != PEG_JSON_OBJECT)
        return "\"parameters\" is a JSON Schema, an object";
    *ret_member = "/parameters/type";
    if (d->parameters && is_no_object(d->parameters))
        return "arguments of a tool are an object, so the \"type\" of \"parameters\" is "
               "\"object\"";
    return NULL;
}

/* ---- losses of the tool itself ---------------------------------------------------------- */

static void lose_tool(struct peg__render *r, const char *keyword, const char *what, peg_str note)
{
    const peg_definition_loss loss = {.tool = r->tool,
                                      .where = peg__str(""),
                                      .keyword = peg__str(keyword),
                                      .what = what,
                                      .note = note};

    peg__losses_add(r->losses, &loss);
}

static void lose_name(struct peg__render *r, peg_str wire)
{
    const char *note;

    peg__buf_clear(&r->scratch);
    peg__buf_printf(&r->scratch, "the vendor calls it '%.*s'", PEG_ARG(wire));
    note = peg__arena_copy(&r->losses->arena, peg__buf_view(&r->scratch));
    if (r->scratch.status || !note)
        r->losses->status = PEG_ENOMEM;
    else
        lose_tool(r, "name", "rewritten", peg__str(note));
}

static void lose_members(struct peg__render *r, const struct definition *d, peg_str wire)
{
    if (!r->losses)
        return;
    if (!peg__str_eq(r->tool, wire))
        lose_name(r, wire);
    if (d->examples && peg_json_len(d->examples))
        lose_tool(r, "examples", "dropped", peg__str("the vendor has no place for examples"));
    if (d->output)
        lose_tool(r, "output", "dropped",
                  peg__str("the vendor takes no schema of what a tool answers"));
}

/* ---- each vendor's shape ---------------------------------------------------------------- */

static void write_tool_head(struct peg__render *r, const struct definition *d, peg_str wire)
{
    peg__put_before(r->out, "\"name\":");
    if (wire.ptr == d->name->u.ptr)
        peg__put_string(r->out, d->name);
    else
        peg__out_string(r->out, wire);
    if (d->description) {
        peg__put_kw(r->out, PEG__KW_DESCRIPTION);
        peg__put_string(r->out, d->description);
    }
}

/* "parameters" and "strict": what cannot be strict is taken back and written plainly. */
static void write_openai_parameters(struct peg__render *r, bool says_not_strict)
{
    struct peg__buf *buf = r->out->buf;
    const struct peg__out before = *r->out;
    const size_t len = buf->len;
    bool is_strict = r->options->strict;

    peg__put_before(r->out, "\"parameters\":");
    r->start = buf->len;
    if (is_strict && !peg__schema_write_strict(r)) {
        is_strict = false;
        if (!buf->status) {
            buf->len = len;
            *r->out = before;
            peg__put_before(r->out, "\"parameters\":");
        }
    }
    if (!is_strict)
        peg__schema_write_plain(r);
    if (is_strict)
        peg__put(r->out, PEG__LIT("\"strict\":true"));
    else if (says_not_strict || r->options->strict)
        peg__put(r->out, PEG__LIT("\"strict\":false"));
}

/* Responses take a function for strict unless it says otherwise. Without arguments Gemini gets no
 * "parameters": it refuses an object without members. */
static void write_tool(struct peg__render *r, const struct definition *d, peg_str wire)
{
    const peg_vendor vendor = r->options->vendor;

    peg__put_open(r->out, "{");
    if (vendor == PEG_VENDOR_OPENAI_CHAT)
        peg__put_before(r->out, "\"type\":\"function\",\"function\":{");
    else if (vendor == PEG_VENDOR_OPENAI_RESPONSES)
        peg__put(r->out, PEG__LIT("\"type\":\"function\""));
    write_tool_head(r, d, wire);
    if (vendor == PEG_VENDOR_OPENAI_CHAT || vendor == PEG_VENDOR_OPENAI_RESPONSES) {
        write_openai_parameters(r, vendor == PEG_VENDOR_OPENAI_RESPONSES);
    } else if (vendor == PEG_VENDOR_ANTHROPIC) {
        peg__put_before(r->out, "\"input_schema\":");
        peg__schema_write_plain(r);
    } else if (r->options->json_schema) {
        peg__schema_write_json(r);
    } else {
        peg__schema_write_gemini(r);
    }
    if (vendor == PEG_VENDOR_OPENAI_CHAT)
        peg__put_close(r->out, "}");
    peg__put_close(r->out, "}");
}

static void begin_tool(struct peg__render *r, const struct definition *d)
{
    r->tool = peg_json_str(d->name);
    r->root = d->parameters;
    r->start = r->out->buf->len;
    r->depth = 0;
    r->n_refs = 0;
    r->n_inside = 0;
}

/* ---- all of them ------------------------------------------------------------------------ */

static peg_status write_each(struct peg__render *r, const peg_json *definitions,
                             const struct peg__names *names, peg_error *reterr)
{
    size_t i = 0;

    PEG_JSON_EACH_ITEM (definitions, value) {
        const struct definition d = read_definition(value);
        const char *member;
        const char *fault = find_fault(&d, &member);
        peg_str wire;

        if (fault)
            return peg__fail_definition(reterr, PEG_EINVAL, i, member, fault);
        i++;
        wire = peg__names_out(names, peg_json_str(d.name));
        begin_tool(r, &d);
        if (r->options->vendor == PEG_VENDOR_NEUTRAL)
            continue;
        lose_members(r, &d, wire);
        write_tool(r, &d, wire);
    }
    return PEG_OK;
}

static peg_status write_list(struct peg__render *r, const peg_json *definitions,
                             const struct peg__names *names, peg_error *reterr)
{
    const bool is_gemini = r->options->vendor == PEG_VENDOR_GEMINI;
    peg_status status;

    peg__out_array(r->out);
    if (is_gemini) {
        peg__out_object(r->out);
        peg__out_key(r->out, "functionDeclarations");
        peg__out_array(r->out);
    }
    status = write_each(r, definitions, names, reterr);
    if (is_gemini) {
        peg__out_end_array(r->out);
        peg__out_end_object(r->out);
    }
    peg__out_end_array(r->out);
    return status;
}

static peg_status check_written(const struct peg__buf *out, const peg_definition_losses *losses,
                                peg_error *reterr)
{
    if (out->status == PEG_ENOMEM || (losses && losses->status))
        return peg__fail_nomem(reterr);
    if (out->status)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "the definitions take more than %zu bytes: offer fewer tools", out->max);
    return PEG_OK;
}

/* A guess, so that the text is not moved again and again while it grows. */
static void reserve_text(const peg_json *definitions, struct peg__buf *out)
{
    const size_t guess = 8 * peg_json_extent(definitions);

    if (guess < out->max - out->len)
        peg__buf_reserve(out, guess);
}

peg_status peg__definitions_write(const peg_json *definitions,
                                  const peg_definitions_options *options,
                                  const struct peg__names *names, struct peg__buf *out,
                                  peg_definition_losses *losses, peg_error *reterr)
{
    struct peg__out json = {.buf = out};
    struct peg__render r = {.out = &json,
                            .options = options,
                            .losses = losses,
                            .scratch = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
                            .renamed = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
                            .notes = PEG__BUF(PEG_LIMIT_DESCRIBED_BYTES_ALL)};
    peg_status status;

    if (!definitions || definitions->len == 0) {
        peg__buf_puts(out, "[]");
        return check_written(out, losses, reterr);
    }
    reserve_text(definitions, out);
    if (options->vendor == PEG_VENDOR_NEUTRAL) {
        status = write_each(&r, definitions, names, reterr);
        peg__json_write(definitions, PEG_JSON_COMPACT, out);
    } else {
        status = write_list(&r, definitions, names, reterr);
    }
    peg__render_free(&r);
    return status ? status : check_written(out, losses, reterr);
}

peg_status peg_definitions_render(const peg_json *definitions,
                                  const peg_definitions_options *options, char **ret_text,
                                  size_t *ret_len, peg_definition_losses **ret_losses,
                                  peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_DEFINITIONS_OPTIONS_INIT, reterr);
    static const peg_definitions_options neutral = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                    .vendor = PEG_VENDOR_NEUTRAL};
    PEG_CLEANUP(peg__names_freep) struct peg__names *names = NULL;
    PEG_CLEANUP(peg_definition_losses_freep) peg_definition_losses *losses = NULL;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    if (!options)
        options = &neutral;
    if ((unsigned)options->vendor >= PEG_N_VENDORS)
        return peg__fail(reterr, PEG_EINVAL, "E_DEFINITIONS",
                         "there is no vendor %d: name a known one", (int)options->vendor);
    status = peg__names_new(definitions, NULL, options, &names, reterr);
    if (status)
        return status;
    if (ret_losses && !(losses = peg__losses_new()))
        return peg__fail_nomem(reterr);
    status = peg__definitions_write(definitions, options, names, &out, losses, reterr);
    if (!status)
        status = peg__buf_take(&out, ret_text, ret_len, reterr);
    peg__buf_free(&out);
    if (status)
        return status;
    if (ret_losses) {
        *ret_losses = losses;
        losses = NULL;
    }
    return PEG_OK;
}
