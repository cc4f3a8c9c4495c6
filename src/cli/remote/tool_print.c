/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/remote/tool_print.h"

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/toolset.h"
#include "cli/turn/turn.h"

enum { INDENT = 2 };

/* ---- for programs ---- */

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

/* ---- arguments ---- */

/* "integer", "array of string". */
static void put_one_type(struct peg__buf *out, const peg_json *schema, peg_str type)
{
    const peg_json *items = peg_json_get(schema, "items");
    const peg_json *of = items ? peg_json_get(items, "type") : NULL;

    peg__buf_str(out, type);
    if (peg__str_is(type, "array") && of && peg_json_kind_of(of) == PEG_JSON_STRING) {
        peg__buf_puts(out, " of ");
        peg__buf_str(out, peg_json_str(of));
    }
}

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
        put_one_type(out, schema, peg_json_str(type));
    if (peg_json_kind_of(type) != PEG_JSON_ARRAY)
        return;
    PEG_JSON_EACH_ITEM (type, item) {
        peg__buf_puts(out, between);
        if (peg_json_kind_of(item) == PEG_JSON_STRING)
            peg__buf_str(out, peg_json_str(item));
        between = " or ";
    }
}

/* A keyword with a number, or NULL. */
static const peg_json *find_number(const peg_json *schema, const char *keyword)
{
    const peg_json *value = peg_json_get(schema, keyword);

    return value && peg_json_is_number(value) ? value : NULL;
}

/* ", at least 1 item": words, the value as the schema has it, and a unit. */
static void put_trait(struct peg__buf *out, const char *words, const peg_json *value,
                      const char *unit)
{
    struct peg__out json = {.buf = out};

    peg__buf_printf(out, "%s%s", out->len ? ", " : "", words);
    if (peg_json_kind_of(value) == PEG_JSON_STRING)
        peg__buf_str(out, peg_json_str(value));
    else
        peg__out_value(&json, value);
    peg__buf_puts(out, unit);
}

struct range {
    const char *low; /* keywords */
    const char *high;
    const char *unit; /* of one */
    const char *units;
};

static bool is_one(const peg_json *number)
{
    return number->kind == PEG_JSON_INTEGER && number->u.number == 1;
}

/* "1 to 14", "at least 1 item". */
static void put_range(struct peg__buf *out, const peg_json *low, const peg_json *high,
                      const struct range *range)
{
    const peg_json *last = high ? high : low;
    struct peg__out json = {.buf = out};

    if (!last)
        return;
    if (low && high) {
        put_trait(out, "", low, " to ");
        peg__out_value(&json, high);
    } else {
        put_trait(out, low ? "at least " : "at most ", last, "");
    }
    peg__buf_puts(out, is_one(last) ? range->unit : range->units);
}

/* What the schema allows beyond the type. */
static void put_bounds(struct peg__buf *out, const peg_json *schema)
{
    static const struct range ranges[] = {
        {"minimum", "maximum", "", ""},
        {"minLength", "maxLength", " character", " characters"},
        {"minItems", "maxItems", " item", " items"},
        {"minProperties", "maxProperties", " member", " members"},
    };
    static const struct {
        const char *keyword;
        const char *words;
        bool is_text;
    } traits[] = {
        {"exclusiveMinimum", "above ", false},
        {"exclusiveMaximum", "below ", false},
        {"multipleOf", "a multiple of ", false},
        {"pattern", "matching ", true},
        {"format", "format ", true},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        put_range(out, find_number(schema, ranges[i].low), find_number(schema, ranges[i].high),
                  &ranges[i]);
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
        const peg_json *value = peg_json_get(schema, traits[i].keyword);

        if (value && (traits[i].is_text ? peg_json_kind_of(value) == PEG_JSON_STRING
                                        : peg_json_is_number(value)))
            put_trait(out, traits[i].words, value, "");
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

/* "days (integer, 1 to 14, required, default 3): how many". */
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
    put_bounds(&traits, property);
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

/* ---- for people ---- */

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
