/* SPDX-License-Identifier: Apache-2.0 */

/* types.py: a class for each struct, an alias for each enum and union, and what decodes them. */

#include "base/text/str.h"
#include "generate/python/internal.h"

static bool has_kind(const struct py_names *names, enum gen_kind kind)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        if (type->is_used && type->kind == kind)
            return true;
    }
    return false;
}

/* Is a default made by a function? */
static bool has_factory(const struct py_names *names)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        if (type->is_used && type->others)
            return true;
    }
    PY_EACH_TOOL(names, tool)
    {
        if (tool->tool->n_server_data)
            return true;
    }
    return false;
}

static void put_imports(const struct py_names *names, struct peg__buf *out)
{
    const bool has_enum = has_kind(names, GEN_ENUM);
    const bool has_union = has_kind(names, GEN_UNION);

    peg__buf_printf(out,
                    "\nfrom __future__ import annotations\n\nfrom dataclasses import dataclass%s\n"
                    "from typing import Any%s%s%s%s\n\nfrom pegboard import typed\n",
                    has_factory(names) ? ", field" : "", has_enum ? ", Literal" : "",
                    has_enum || has_union ? ", TypeAlias" : "", has_union ? ", Union" : "",
                    has_enum ? ", get_args" : "");
}

/* ---- aliases ------------------------------------------------------------------------------ */

/* NULL, and out of memory in `out`, if there is none. */
static const char **new_list(const struct py_names *names, struct peg__buf *out, size_t n)
{
    const char **list = peg__arena_alloc_zero(names->arena, (n + 1) * sizeof(*list));

    if (!list && !out->status)
        out->status = PEG_ENOMEM;
    return list;
}

static void put_alias(struct peg__buf *out, const struct py_type *p, const char *what,
                      const char *const *items, size_t n)
{
    struct peg__buf head = PEG__BUF(1 << 16);

    peg__buf_printf(&head, "%s: TypeAlias = %s[", p->name, what);
    py_put_call(out, 0, gen_text_of(out, &head), items, n, "]");
    py_put_docstring(out, 0, p->type->description);
    peg__buf_free(&head);
}

static void put_enum(const struct py_names *names, struct peg__buf *out, const struct py_type *p)
{
    const char **items = new_list(names, out, p->type->n_values);

    for (size_t i = 0; items && i < p->type->n_values; i++) {
        struct peg__buf text = PEG__BUF(out->max);

        py_put_literal(&text, p->type->values[i]);
        items[i] = py_keep(names, out, &text);
    }
    if (items)
        put_alias(out, p, "Literal", items, p->type->n_values);
    py_put_enum_decoder(out, p);
}

/* Quoted, as a union may stand before what it contains, and may contain itself. */
static void put_union(const struct py_names *names, struct peg__buf *out, const struct py_type *p)
{
    const char **items = new_list(names, out, p->type->n_branches);

    for (size_t i = 0; items && i < p->type->n_branches; i++) {
        const struct gen_type *type = p->type->branches[i].slot.type;
        struct peg__buf text = PEG__BUF(1 << 16);
        const char *quote = gen_is_scalar(type->kind) ? "" : "\"";

        peg__buf_puts(&text, quote);
        py_put_type(names, &text, type);
        peg__buf_puts(&text, quote);
        items[i] = py_keep(names, out, &text);
    }
    if (items)
        put_alias(out, p, "Union", items, p->type->n_branches);
    py_put_union_decoder(names, out, p);
}

/* ---- classes ------------------------------------------------------------------------------ */

static void put_class_head(struct peg__buf *out, const char *name, const char *base)
{
    peg__buf_printf(out, "@dataclass(kw_only=True, slots=True)\nclass %s%s:\n", name, base);
}

static bool has_always(const struct gen_tool *tool)
{
    for (size_t i = 0; i < tool->n_server_data; i++) {
        if (tool->server_data[i].is_always)
            return true;
    }
    return false;
}

static void put_server_data_class(const struct py_names *names, struct peg__buf *out,
                                  const struct py_tool *tool)
{
    put_class_head(out, tool->data_class, "");
    peg__buf_puts(out, "    \"\"\"Goes beside the result, never to a model.\"\"\"\n\n");
    for (size_t i = 0; i < tool->tool->n_server_data; i++) {
        const struct gen_server_data *data = &tool->tool->server_data[i];

        py_put_attribute(names, out, tool->data[i], data->type, data->is_always);
        py_put_docstring(out, 4, data->description);
    }
    py_put_data_decoder(out, tool);
}

static void put_attributes(const struct py_names *names, struct peg__buf *out,
                           const struct py_type *p, const struct py_tool *tool)
{
    for (size_t i = 0; i < p->type->n_members; i++) {
        const struct gen_member *member = &p->type->members[i];

        py_put_attribute(names, out, p->members[i], member->slot.type, member->is_required);
        py_put_docstring(out, 4, member->description);
    }
    if (p->type->others) {
        peg__buf_printf(out, "    %s: dict[str, ", p->others);
        py_put_type(names, out, p->type->others);
        peg__buf_puts(out, "] = field(default_factory=dict)\n"
                           "    \"\"\"Members that the schema allows without a name.\"\"\"\n");
    }
    if (tool)
        peg__buf_printf(out, "    server_data: %s%s%s%s\n", tool->data_class,
                        has_always(tool->tool) ? "" : " = field(default_factory=",
                        has_always(tool->tool) ? "" : tool->data_class,
                        has_always(tool->tool) ? "" : ")");
}

/* The condition under which an attribute has a value. */
static void put_condition(struct peg__buf *out, const char *path, const char *name,
                          const struct gen_type *type)
{
    peg__buf_printf(out, "        if %s%s is not %s:\n", path, name,
                    py_takes_null(type) ? "typed.MISSING" : "None");
}

static void put_encode(struct peg__buf *out, const struct py_type *p)
{
    const struct gen_type *type = p->type;

    peg__buf_puts(out, "    def _encode(self) -> Any:\n");
    if (type->is_wrapper) {
        peg__buf_printf(out, "        return self.%s\n", p->members[0]);
        return;
    }
    if (type->others)
        peg__buf_printf(out, "        members: dict[str, Any] = {**self.%s}\n", p->others);
    else
        peg__buf_puts(out, "        members: dict[str, Any] = {}\n");
    for (size_t i = 0; i < type->n_members; i++) {
        if (!type->members[i].is_required)
            put_condition(out, "self.", p->members[i], type->members[i].slot.type);
        peg__buf_repeat(out, ' ', type->members[i].is_required ? 8 : 12);
        peg__buf_puts(out, "members[");
        py_put_literal(out, type->members[i].name);
        peg__buf_printf(out, "] = self.%s\n", p->members[i]);
    }
    peg__buf_puts(out, "        return members\n");
}

static void put_server_data_method(struct peg__buf *out, const struct py_tool *tool)
{
    peg__buf_puts(out, "\n    def _server_data(self) -> list[typed.ServerData]:\n"
                       "        data: list[typed.ServerData] = []\n");
    for (size_t i = 0; i < tool->tool->n_server_data; i++) {
        const struct gen_server_data *data = &tool->tool->server_data[i];
        struct peg__buf kind = PEG__BUF(1 << 16);
        struct peg__buf audience = PEG__BUF(1 << 16);
        struct peg__buf value = PEG__BUF(1 << 16);

        if (!data->is_always)
            put_condition(out, "self.server_data.", tool->data[i], data->type);
        py_put_literal(&kind, data->kind);
        py_put_literal(&audience, data->audience);
        peg__buf_printf(&value, "self.server_data.%s", tool->data[i]);
        py_put_call(out, data->is_always ? 8 : 12, "typed.add_server_data(",
                    (const char *const[]){"data", gen_text_of(out, &kind),
                                          gen_text_of(out, &audience), gen_text_of(out, &value)},
                    4, ")");
        peg__buf_free(&kind);
        peg__buf_free(&audience);
        peg__buf_free(&value);
    }
    peg__buf_puts(out, "        return data\n");
}

static void put_struct(const struct py_names *names, struct peg__buf *out, const struct py_type *p)
{
    const struct py_tool *tool = py_tool_of_result(names, p->type);
    size_t before;

    if (tool && !tool->tool->n_server_data)
        tool = NULL;
    if (tool) {
        put_server_data_class(names, out, tool);
        peg__buf_puts(out, "\n\n");
    }
    put_class_head(out, p->name, "(typed.Struct)");
    before = out->len;
    py_put_docstring(out, 4, p->type->description);
    if (out->len > before)
        peg__buf_putc(out, '\n');
    before = out->len;
    put_attributes(names, out, p, tool);
    if (out->len > before)
        peg__buf_putc(out, '\n');
    put_encode(out, p);
    if (tool)
        put_server_data_method(out, tool);
    py_put_struct_decoder(names, out, p);
}

/* Others are spelled where they are used. */
static bool is_named_type(enum gen_kind kind)
{
    return kind == GEN_ENUM || kind == GEN_UNION || kind == GEN_STRUCT;
}

void py_write_types(const struct py_names *names, struct peg__buf *out)
{
    bool is_first = true;

    put_imports(names, out);
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        const struct py_type *p = py_type_of(names, type);

        if (!type->is_used || !is_named_type(type->kind))
            continue;
        /* One empty line behind the imports, unless a class follows. */
        peg__buf_puts(out, is_first && type->kind != GEN_STRUCT ? "\n" : "\n\n");
        is_first = false;
        if (type->kind == GEN_ENUM)
            put_enum(names, out, p);
        else if (type->kind == GEN_UNION)
            put_union(names, out, p);
        else
            put_struct(names, out, p);
    }
}
