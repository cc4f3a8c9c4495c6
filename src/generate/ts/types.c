/* SPDX-License-Identifier: Apache-2.0 */

/* types.ts: interfaces and unions. */

#include <string.h>

#include "base/text/str.h"
#include "generate/ts/internal.h"

/* ---- types where they are used ------------------------------------------------------------ */

/* Where a type stands. An alias may refer to itself within { }, but not within Record<>. */
enum place { IN_INTERFACE, IN_ALIAS };

static void put_type(const struct ts_names *names, struct peg__buf *out,
                     const struct gen_type *type, enum place place);

/* Of an array: what has an operator stands in brackets. */
// NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GENERATE_DEPTH bounds it
static void put_array(const struct ts_names *names, struct peg__buf *out,
                      const struct gen_type *item, enum place place)
{
    const bool has_operator = item->kind == GEN_NULLABLE;

    peg__buf_puts(out, has_operator ? "(" : "");
    put_type(names, out, item, place);
    peg__buf_puts(out, has_operator ? ")[]" : "[]");
}

// NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GENERATE_DEPTH bounds it
static void put_map(const struct ts_names *names, struct peg__buf *out, const struct gen_type *item,
                    enum place place)
{
    peg__buf_puts(out, place == IN_ALIAS ? "{ [name: string]: " : "Record<string, ");
    put_type(names, out, item, place);
    peg__buf_puts(out, place == IN_ALIAS ? " }" : ">");
}

// NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GENERATE_DEPTH bounds it
static void put_type(const struct ts_names *names, struct peg__buf *out,
                     const struct gen_type *type, enum place place)
{
    static const char *const scalars[] = {
        [GEN_BOOL] = "boolean",  [GEN_INTEGER] = "number", [GEN_NUMBER] = "number",
        [GEN_STRING] = "string", [GEN_NULL] = "null",      [GEN_RAW] = "unknown",
    };

    if (gen_is_scalar(type->kind))
        peg__buf_puts(out, scalars[type->kind]);
    else if (ts_is_named(type))
        peg__buf_puts(out, ts_name_of(names, type));
    else if (type->kind == GEN_ENUM)
        ts_put_literal(out, type->values[0]);
    else if (type->kind == GEN_ARRAY)
        put_array(names, out, type->item.type, place);
    else if (type->kind == GEN_MAP)
        put_map(names, out, type->item.type, place);
    else { /* GEN_NULLABLE */
        put_type(names, out, type->item.type, place);
        peg__buf_puts(out, " | null");
    }
}

/* ---- alternatives ------------------------------------------------------------------------- */

/* A type that may have alternatives: values, branches, null. */
struct alternatives {
    const struct ts_names *names;
    const struct gen_type *type;
    enum place place;
    /* The type is a struct, and its members without a name are meant: TypeScript wants the types of
     * all of its members there. */
    bool is_rest;
};

static size_t count_alternatives(const struct alternatives *a)
{
    if (a->is_rest)
        return 1 + a->type->n_members + 1;
    if (a->type->kind == GEN_ENUM)
        return a->type->n_values;
    if (a->type->kind == GEN_UNION)
        return a->type->n_branches;
    return a->type->kind == GEN_NULLABLE ? 2 : 1;
}

static bool is_same_type(const struct gen_type *a, const struct gen_type *b)
{
    const bool are_numbers = (a->kind == GEN_INTEGER || a->kind == GEN_NUMBER) &&
                             (b->kind == GEN_INTEGER || b->kind == GEN_NUMBER);

    return a == b || are_numbers;
}

/* What a member adds to the types of those before it: its own, or NULL. */
static const struct gen_type *type_of_rest(const struct gen_type *type, size_t i)
{
    const struct gen_type *found = i ? type->members[i - 1].slot.type : type->others;

    for (size_t k = 0; k < i; k++) {
        if (is_same_type(k ? type->members[k - 1].slot.type : type->others, found))
            return NULL;
    }
    return found;
}

static bool has_optional(const struct gen_type *type)
{
    for (size_t i = 0; i < type->n_members; i++) {
        if (!type->members[i].is_required)
            return true;
    }
    return false;
}

static void put_rest(const struct alternatives *a, struct peg__buf *out, const char *between,
                     size_t i)
{
    const bool is_last = i > a->type->n_members;
    const struct gen_type *type = is_last ? NULL : type_of_rest(a->type, i);

    if (type) {
        peg__buf_puts(out, between);
        put_type(a->names, out, type, a->place);
    } else if (is_last && has_optional(a->type)) {
        peg__buf_printf(out, "%sundefined", between);
    }
}

static void put_alternative(const struct alternatives *a, struct peg__buf *out, const char *between,
                            size_t i)
{
    const struct gen_type *type = a->type;

    if (a->is_rest) {
        put_rest(a, out, between, i);
        return;
    }
    peg__buf_puts(out, between);
    if (type->kind == GEN_ENUM)
        ts_put_literal(out, type->values[i]);
    else if (type->kind == GEN_UNION)
        put_type(a->names, out, type->branches[i].slot.type, a->place);
    else if (type->kind == GEN_NULLABLE && i)
        peg__buf_puts(out, "null");
    else
        put_type(a->names, out, type->kind == GEN_NULLABLE ? type->item.type : type, a->place);
}

/* The column where the text ends. */
static size_t column_of(const struct peg__buf *out)
{
    size_t n = 0;

    while (!out->status && n < out->len && out->ptr[out->len - 1 - n] != '\n')
        n++;
    return n;
}

/* Behind "name:" or "type Name =": on this line, on the next one, or on one for each. */
static void put_alternatives(const struct alternatives *a, struct peg__buf *out, unsigned indent)
{
    const size_t n = count_alternatives(a);
    struct peg__buf line = PEG__BUF(out->max);
    const char *text;

    for (size_t i = 0; i < n; i++)
        put_alternative(a, &line, i ? " | " : "", i);
    text = gen_text_of(out, &line);
    if (n == 1 || column_of(out) + 1 + line.len + 1 <= TS_COLUMNS) {
        peg__buf_printf(out, " %s", text);
    } else if (indent + line.len + 1 <= TS_COLUMNS) {
        peg__buf_putc(out, '\n');
        peg__buf_repeat(out, ' ', indent);
        peg__buf_puts(out, text);
    } else {
        peg__buf_clear(&line);
        peg__buf_putc(&line, '\n');
        peg__buf_repeat(&line, ' ', indent);
        peg__buf_puts(&line, "| ");
        for (size_t i = 0; i < n; i++)
            put_alternative(a, out, gen_text_of(out, &line), i);
    }
    peg__buf_puts(out, ";\n");
    peg__buf_free(&line);
}

/* ---- interfaces --------------------------------------------------------------------------- */

static void put_typed_member(const struct ts_names *names, struct peg__buf *out,
                             const struct gen_type *type)
{
    /* A type with a name is written by it. */
    if (ts_is_named(type))
        peg__buf_printf(out, " %s;\n", ts_name_of(names, type));
    else
        put_alternatives(&(struct alternatives){names, type, IN_INTERFACE, false}, out, 4);
}

static void put_index_signature(const struct ts_names *names, struct peg__buf *out,
                                const struct gen_type *type)
{
    peg__buf_puts(out, "  /** Members that the schema allows without a name. */\n"
                       "  [name: string]:");
    if (type->others->kind == GEN_RAW)
        peg__buf_puts(out, " unknown;\n");
    else
        put_alternatives(&(struct alternatives){names, type, IN_INTERFACE, true}, out, 4);
}

static void put_interface(const struct ts_names *names, struct peg__buf *out,
                          const struct gen_type *type)
{
    peg__buf_printf(out, "export interface %s {\n", ts_name_of(names, type));
    for (size_t i = 0; i < type->n_members; i++) {
        const struct gen_member *member = &type->members[i];

        ts_put_comment(out, 2, member->description);
        peg__buf_puts(out, "  ");
        ts_put_property(out, member->name);
        peg__buf_puts(out, member->is_required ? ":" : "?:");
        put_typed_member(names, out, member->slot.type);
    }
    if (type->others)
        put_index_signature(names, out, type);
    peg__buf_puts(out, "}\n");
}

/* ---- aliases ------------------------------------------------------------------------------ */

static void put_alias(const struct ts_names *names, struct peg__buf *out, const char *name,
                      const struct gen_type *type)
{
    peg__buf_printf(out, "export type %s =", name);
    put_alternatives(&(struct alternatives){names, type, IN_ALIAS, false}, out, 2);
}

static void put_named_type(const struct ts_names *names, struct peg__buf *out,
                           const struct gen_type *type)
{
    const char *name = ts_name_of(names, type);

    ts_put_comment(out, 0, type->description);
    if (type->kind != GEN_STRUCT)
        put_alias(names, out, name, type);
    else if (type->is_wrapper && !ts_is_named(type->members[0].slot.type))
        put_alias(names, out, name, type->members[0].slot.type);
    else if (type->is_wrapper) /* by its name: what it is made of stands there */
        peg__buf_printf(out, "export type %s = %s;\n", name,
                        ts_name_of(names, type->members[0].slot.type));
    else if (!type->n_members && !type->others)
        peg__buf_printf(out, "export type %s = Record<string, never>;\n", name);
    else
        put_interface(names, out, type);
    peg__buf_putc(out, '\n');
}

/* ---- server-data -------------------------------------------------------------------------- */

static void put_answer_interface(const struct ts_names *names, struct peg__buf *out,
                                 const struct ts_tool *tool)
{
    const struct gen_tool *model = tool->tool;

    peg__buf_printf(out,
                    "/** Sent beside the result: for the program that calls, and never for a model."
                    " */\nexport interface %s {\n",
                    tool->beside);
    for (size_t i = 0; i < model->n_server_data; i++) {
        const struct gen_server_data *data = &model->server_data[i];

        ts_put_comment(out, 2, data->description);
        peg__buf_printf(out, "  %s%s:", tool->data[i], data->is_always ? "" : "?");
        put_typed_member(names, out, data->type);
    }
    peg__buf_printf(out, "}\n\nexport interface %s {\n  result: %s;\n  serverData: %s;\n}\n\n",
                    tool->answer, ts_name_of(names, model->result), tool->beside);
}

void ts_write_types(const struct ts_names *names, struct peg__buf *out)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        if (type->is_used && ts_is_named(type))
            put_named_type(names, out, type);
    }
    TS_EACH_TOOL(names, tool)
    {
        if (tool->answer)
            put_answer_interface(names, out, tool);
    }
    /* No empty line at the end. */
    if (out->len && !out->status)
        out->ptr[--out->len] = 0;
}

/* ---- for the other files ------------------------------------------------------------------ */

/* `first`, names with `between` them. */
static void put_import_names(const struct ts_names *names, struct peg__buf *out, bool has_beside,
                             const char *first, const char *between)
{
    TS_EACH_TOOL(names, tool)
    {
        peg__buf_printf(out, "%s%s", tool == names->tools ? first : between,
                        ts_name_of(names, tool->tool->args));
        if (tool->answer)
            peg__buf_printf(out, "%s%s", between, tool->answer);
        peg__buf_printf(out, "%s%s", between, ts_name_of(names, tool->tool->result));
        if (tool->answer && has_beside)
            peg__buf_printf(out, "%s%s", between, tool->beside);
    }
}

void ts_put_imports(const struct ts_names *names, struct peg__buf *out, bool has_beside)
{
    static const char head[] = "import type {";
    static const char tail[] = "} from \"./types.js\";";
    struct peg__buf line = PEG__BUF(out->max);

    put_import_names(names, &line, has_beside, " ", ", ");
    (void)gen_text_of(out, &line);
    peg__buf_puts(out, head);
    if (strlen(head) + line.len + 1 + strlen(tail) <= TS_COLUMNS) {
        peg__buf_str(out, peg__buf_view(&line));
        peg__buf_printf(out, " %s\n\n", tail);
    } else {
        put_import_names(names, out, has_beside, "\n  ", ",\n  ");
        peg__buf_printf(out, ",\n%s\n\n", tail);
    }
    peg__buf_free(&line);
}
