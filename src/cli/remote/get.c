/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard get: what is in a toolset? */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "cli/turn/turn.h"

struct tool_print {
    struct peg__buf *out;
    const struct cli_style *style;
    unsigned width; /* 0: any */
};

enum { INDENT = 2 };

/* ---- for programs ---- */

/* The members "name", "description", "tags", "input_schema", "output_schema" (null if there is
 * none), "idempotent", "timeout_ms", "read_only", "destructive", "additive", and "title",
 * "version", "artifact_kind" and "examples" where there are any, in an object that is open. */
static void out_optional(struct peg__out *out, const char *key, const char *text)
{
    if (*text)
        peg__out_cmember(out, key, text);
}

static void out_tool(struct peg__out *out, const peg_toolset_tool *tool)
{
    peg__out_cmember(out, "name", tool->name);
    peg__out_cmember(out, "description", tool->description);
    toolset_out_strings(out, "tags", tool->tags, tool->n_tags);
    cli_out_raw(out, "input_schema", tool->input_schema);
    cli_out_raw(out, "output_schema", tool->output_schema);
    cli_out_bool(out, "idempotent", tool->is_idempotent);
    cli_out_integer(out, "timeout_ms", tool->timeout_ms);
    cli_out_bool(out, "read_only", tool->is_read_only);
    cli_out_bool(out, "destructive", tool->is_destructive);
    cli_out_bool(out, "additive", tool->is_additive);
    out_optional(out, "title", tool->title);
    out_optional(out, "version", tool->version);
    out_optional(out, "artifact_kind", tool->artifact_kind);
    if (tool->examples.len)
        cli_out_raw(out, "examples", tool->examples);
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
static void put_number_range(struct peg__buf *out, const peg_json *low, const peg_json *high,
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
        put_number_range(out, find_number(schema, ranges[i].low),
                         find_number(schema, ranges[i].high), &ranges[i]);
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
    const struct cli_text how = {.out = print->out,
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
        cli_put_text(&how, peg__buf_view(&line));
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

/* Its name and description, and a line for each argument. */
static void put_tool(const struct tool_print *print, const peg_toolset_tool *tool)
{
    const struct cli_text how = {
        .out = print->out, .width = print->width, .indent = 2 * INDENT, .on = "", .off = ""};

    peg__buf_printf(print->out, "  %s", print->style->bold);
    cli_put_safe(print->out, peg__str(tool->name));
    peg__buf_printf(print->out, "%s%s%s\n", print->style->off,
                    tool->is_read_only    ? "  (read-only)"
                    : tool->is_idempotent ? "  (may be repeated)"
                                          : "",
                    tool->is_destructive ? "  (destructive)" : "");
    if (*tool->description)
        cli_put_text(&how, peg__str(tool->description));
    put_arguments(print, tool->input_schema);
}

static void put_schema(const struct tool_print *print, const char *title, peg_str json)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct cli_text how = {.out = print->out, .indent = 2 * INDENT, .on = "", .off = ""};

    if (!json.len || !toolset_put_pretty(&text, json))
        return;
    peg__buf_printf(print->out, "\n  %s%s%s\n", print->style->dim, title, print->style->off);
    cli_put_text(&how, peg__buf_view(&text));
    peg__buf_free(&text);
}

/* That, and its schemas. */
static void put_whole_tool(const struct tool_print *print, const peg_toolset_tool *tool)
{
    put_tool(print, tool);
    if (tool->timeout_ms)
        peg__buf_printf(print->out, "    time limit: %g s\n", (double)tool->timeout_ms / 1000);
    put_schema(print, "input schema", tool->input_schema);
    put_schema(print, "output schema", tool->output_schema);
}

static const struct cli_option option_table[] = {
    REMOTE_FLAG("json", as_json, "print one JSON object, schemas included"),
    REMOTE_FLAG("names", only_names, "print the names of the tools only, one a line"),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

/* ---- a toolset ---- */

static void put_toolset_json(struct peg__buf *buf, const peg_toolset *toolset)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    toolset_out(&out, &toolset->info);
    peg__out_cmember(&out, "stream_id", toolset->stream_id);
    cli_out_array(&out, "tools");
    for (size_t i = 0; i < toolset->n_tools; i++) {
        peg__out_object(&out);
        out_tool(&out, &toolset->tools[i]);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    cli_out_end_line(&out);
}

static void put_tool_names(struct peg__buf *out, const peg_toolset *toolset)
{
    for (size_t i = 0; i < toolset->n_tools; i++) {
        cli_put_safe(out, peg__str(toolset->tools[i].name));
        peg__buf_putc(out, '\n');
    }
}

static void put_safe(struct peg__buf *out, const char *before, const char *text)
{
    if (!*text)
        return;
    peg__buf_puts(out, before);
    cli_put_safe(out, peg__str(text));
}

static void put_facts(const struct tool_print *print, const peg_toolset_info *info)
{
    struct peg__buf *out = print->out;

    for (size_t i = 0; i < info->n_tags; i++)
        put_safe(out, i ? ", " : "  tags: ", info->tags[i]);
    if (info->n_tags)
        peg__buf_putc(out, '\n');
    put_safe(out, "  registered ", info->registered_at);
    put_safe(out, " by ", info->owner);
    peg__buf_printf(out, ", revision %llu\n", (unsigned long long)info->revision);
}

/* What the gateway says in front of it is for logs: the name again, and numbers. */
static const char *health_reason_of(const peg_toolset_info *info)
{
    const char *behind = strstr(info->health_reason, "): ");

    if (info->n_providers == 0 && !info->is_direct)
        return "no provider is attached";
    return behind ? behind + 3 : info->health_reason;
}

static void put_health(const struct tool_print *print, const peg_toolset_info *info)
{
    const bool is_well = info->health == PEG_HEALTH_HEALTHY;
    struct peg__buf *out = print->out;

    peg__buf_printf(out, "  %s", is_well ? print->style->good : print->style->bad);
    toolset_put_health(out, info);
    peg__buf_puts(out, print->style->off);
    if (!is_well && info->health != PEG_HEALTH_UNKNOWN) {
        put_safe(out, ": ", health_reason_of(info));
        if (info->last_pong_ms) {
            peg__buf_puts(out, " (last heard of ");
            toolset_put_age(out, time(NULL) - info->last_pong_ms / 1000);
            peg__buf_puts(out, " ago)");
        }
    }
    if (is_well || info->n_providers)
        peg__buf_printf(out, ", %u provider%s", info->n_providers,
                        info->n_providers == 1 ? "" : "s");
    if (info->n_draining)
        peg__buf_printf(out, " (%u draining)", info->n_draining);
    peg__buf_putc(out, '\n');
}

static void put_toolset_head(const struct tool_print *print, const peg_toolset_info *info)
{
    const struct cli_text how = {
        .out = print->out, .width = print->width, .indent = 2, .on = "", .off = ""};
    struct peg__buf *out = print->out;

    peg__buf_puts(out, print->style->bold);
    cli_put_safe(out, peg__str(info->name));
    peg__buf_puts(out, print->style->off);
    put_safe(out, " ", info->version);
    put_health(print, info);
    if (*info->description)
        cli_put_text(&how, peg__str(info->description));
    put_facts(print, info);
}

static void put_toolset(const struct tool_print *print, const peg_toolset *toolset)
{
    put_toolset_head(print, &toolset->info);
    for (size_t i = 0; i < toolset->n_tools; i++) {
        peg__buf_putc(print->out, '\n');
        put_tool(print, &toolset->tools[i]);
    }
}

/* ---- one of its tools ---- */

static void put_tool_json(struct peg__buf *buf, const peg_toolset_tool *tool)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    out_tool(&out, tool);
    cli_out_end_line(&out);
}

/* ---- the command ---- */

static int show_toolset(const struct remote_args *remote, const peg_toolset *toolset,
                        const char *name)
{
    peg_error error;
    const peg_toolset_tool *tool = name ? cli_find_tool(toolset, name, &error) : NULL;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct tool_print print = {.out = &out,
                                     .style = cli_style_for(remote->color, STDOUT_FILENO),
                                     .width = cli_width(STDOUT_FILENO)};

    if (name && !tool)
        return remote_complain(remote, &error);
    if (toolset->is_stale)
        fputs("pegboard: the gateway does not answer; this is what it said before\n", stderr);
    if (remote->only_names)
        put_tool_names(&out, toolset);
    else if (remote->as_json && tool)
        put_tool_json(&out, tool);
    else if (remote->as_json)
        put_toolset_json(&out, toolset);
    else if (tool)
        put_whole_tool(&print, tool);
    else
        put_toolset(&print, toolset);
    return remote_print(&out);
}

static int get_toolset(struct remote_args *remote, peg_client *client)
{
    const char *name = remote->operands[0];
    peg_toolset *toolset = NULL;
    peg_error error;
    int answer;

    if (!peg_client_get(client, NULL, NULL, name, &toolset, &error)) {
        answer = show_toolset(remote, toolset, remote->operands[1]);
    } else {
        cli_suggestion_toolset(client, name, &error);
        answer = remote_complain(remote, &error);
    }
    peg_toolset_unref(toolset);
    return answer;
}

static int run_get(const struct cli_command *self, int argc, char **argv)
{
    struct remote_args remote = {.address = NULL};

    return remote_run(&remote, self, argc, argv, NULL, get_toolset);
}

const struct cli_command cli_get = {
    .name = "get",
    .usage = "[options] TOOLSET [TOOL]",
    .summary = "show what is in a toolset",
    .about = "Prints what is known about a toolset: its health, and each tool with its arguments.\n"
             "With TOOL, that one alone and its schemas.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 2,
    .needed = "the name of a toolset is needed",
    .notes = "exit status:\n"
             "  0  it was shown\n"
             "  1  there is no such toolset or tool\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard get weather\n"
             "  pegboard get weather forecast\n"
             "  pegboard get weather forecast --json | jq .input_schema",
    .run = run_get,
};
