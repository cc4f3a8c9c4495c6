/* SPDX-License-Identifier: Apache-2.0 */

/* types.py: a function for each type that makes it of JSON. */

#include "base/text/str.h"
#include "generate/python/internal.h"

static void put_decoder_head(struct peg__buf *out, const char *function, const char *result,
                             const char *more)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf tail = PEG__BUF(1 << 16);

    peg__buf_puts(out, "\n\n");
    peg__buf_printf(&head, "def decode_%s(", function);
    peg__buf_printf(&tail, ") -> %s:", result);
    py_put_call(out, 0, gen_text_of(out, &head),
                (const char *const[]){"value: object", "at: str = \"\"", more}, more ? 3 : 2,
                gen_text_of(out, &tail));
    peg__buf_free(&head);
    peg__buf_free(&tail);
}

/* "city=typed.required(members, "city", at, typed.string)," */
static void put_argument(struct peg__buf *out, const char *name, const char *from, peg_str member,
                         const struct gen_type *type, bool is_required)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf literal = PEG__BUF(out->max);
    struct peg__buf decoder = PEG__BUF(1 << 16);
    const char *absent = py_takes_null(type) ? "possible" : "optional";

    peg__buf_printf(&head, "%s=typed.%s(", name, is_required ? "required" : absent);
    py_put_literal(&literal, member);
    py_put_decoder(&decoder, type);
    py_put_call(
        out, 8, gen_text_of(out, &head),
        (const char *const[]){from, gen_text_of(out, &literal), "at", gen_text_of(out, &decoder)},
        4, "),");
    peg__buf_free(&head);
    peg__buf_free(&literal);
    peg__buf_free(&decoder);
}

/* ---- structs ------------------------------------------------------------------------------ */

static void put_wrapped(struct peg__buf *out, const struct py_type *p)
{
    struct peg__buf head = PEG__BUF(1 << 16);

    peg__buf_printf(&head, "%s=", p->members[0]);
    py_put_decoder(&head, p->type->members[0].slot.type);
    peg__buf_putc(&head, '(');
    py_put_call(out, 8, gen_text_of(out, &head), (const char *const[]){"value", "at"}, 2, "),");
    peg__buf_free(&head);
}

static void put_others(struct peg__buf *out, const struct py_type *p)
{
    const struct gen_type *type = p->type;

    peg__buf_printf(out, "        %s=typed.others(\n            members,\n            at,\n",
                    p->others);
    peg__buf_puts(out, "            {");
    for (size_t i = 0; i < type->n_members; i++) {
        peg__buf_puts(out, "\n                ");
        py_put_literal(out, type->members[i].name);
        peg__buf_puts(out, ",");
    }
    if (type->n_members)
        peg__buf_puts(out, "\n            ");
    peg__buf_puts(out, "},\n            ");
    py_put_decoder(out, type->others);
    peg__buf_puts(out, ",\n        ),\n");
}

static void put_constructor(struct peg__buf *out, const struct py_type *p)
{
    const struct gen_type *type = p->type;

    if (type->is_wrapper) {
        put_wrapped(out, p);
        return;
    }
    for (size_t i = 0; i < type->n_members; i++)
        put_argument(out, p->members[i], "members", type->members[i].name,
                     type->members[i].slot.type, type->members[i].is_required);
    if (type->others)
        put_others(out, p);
}

void py_put_struct_decoder(const struct py_names *names, struct peg__buf *out,
                           const struct py_type *p)
{
    const struct gen_type *type = p->type;
    const struct py_tool *tool = py_tool_of_result(names, type);
    const bool has_data = tool && tool->tool->n_server_data;

    put_decoder_head(out, type->name, p->name,
                     has_data ? "server_data: typed.ServerDataList = ()" : NULL);
    if (!type->n_members && !type->others && !has_data) {
        peg__buf_printf(out, "    typed.members(value, at)\n    return %s()\n", p->name);
        return;
    }
    if (!type->is_wrapper)
        peg__buf_printf(out, "    %styped.members(value, at)\n",
                        type->n_members || type->others ? "members = " : "");
    peg__buf_printf(out, "    return %s(\n", p->name);
    put_constructor(out, p);
    if (has_data)
        peg__buf_printf(out, "        server_data=_decode_data_of_%s(server_data),\n",
                        tool->tool->word);
    peg__buf_puts(out, "    )\n");
}

void py_put_data_decoder(struct peg__buf *out, const struct py_tool *tool)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf tail = PEG__BUF(1 << 16);

    peg__buf_puts(out, "\n\n");
    peg__buf_printf(&head, "def _decode_data_of_%s(", tool->tool->word);
    peg__buf_printf(&tail, ") -> %s:", tool->data_class);
    py_put_call(out, 0, gen_text_of(out, &head),
                (const char *const[]){"server_data: typed.ServerDataList"}, 1,
                gen_text_of(out, &tail));
    peg__buf_free(&head);
    peg__buf_free(&tail);
    peg__buf_printf(out,
                    "    at = \"server_data\"\n    kinds = typed.by_kind(server_data)\n"
                    "    return %s(\n",
                    tool->data_class);
    for (size_t i = 0; i < tool->tool->n_server_data; i++) {
        const struct gen_server_data *data = &tool->tool->server_data[i];

        put_argument(out, tool->data[i], "kinds", data->kind, data->type, data->is_always);
    }
    peg__buf_puts(out, "    )\n");
}

/* ---- enums and unions --------------------------------------------------------------------- */

void py_put_enum_decoder(struct peg__buf *out, const struct py_type *p)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf values = PEG__BUF(1 << 16);

    put_decoder_head(out, p->type->name, p->name, NULL);
    peg__buf_printf(&head, "chosen: %s = typed.choice(", p->name);
    peg__buf_printf(&values, "get_args(%s)", p->name);
    py_put_call(out, 4, gen_text_of(out, &head),
                (const char *const[]){"value", "at", gen_text_of(out, &values)}, 3, ")");
    peg__buf_puts(out, "    return chosen\n");
    peg__buf_free(&head);
    peg__buf_free(&values);
}

/* "if kind in ("integer", "number"):" */
static void put_kind_condition(struct peg__buf *out, unsigned kinds)
{
    static const char *const names[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
    const bool is_single = !(kinds & (kinds - 1));
    size_t n = 0;

    peg__buf_puts(out, is_single ? "    if kind == " : "    if kind in (");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (kinds & (1U << i))
            peg__buf_printf(out, "%s\"%s\"", n++ ? ", " : "", names[i]);
    }
    peg__buf_puts(out, is_single ? ":\n" : "):\n");
}

static void put_tag_condition(const struct py_names *names, struct peg__buf *out, peg_str tag,
                              const struct gen_branch *branch)
{
    const size_t n = branch->n_tags + 2;
    const char **args = peg__arena_alloc_zero(names->arena, n * sizeof(*args));

    if (!args) {
        out->status = PEG_ENOMEM;
        return;
    }
    args[0] = "value";
    for (size_t i = 1; i < n; i++) {
        struct peg__buf text = PEG__BUF(out->max);

        py_put_literal(&text, i == 1 ? tag : branch->tags[i - 2]);
        args[i] = py_keep(names, out, &text);
    }
    py_put_call(out, 4, "if typed.is_tagged(", args, n, "):");
}

static void put_branch(const struct py_names *names, struct peg__buf *out, peg_str tag,
                       const struct gen_branch *branch)
{
    struct peg__buf head = PEG__BUF(1 << 16);

    if (branch->n_tags)
        put_tag_condition(names, out, tag, branch);
    else
        put_kind_condition(out, branch->kinds);
    peg__buf_puts(&head, "return ");
    py_put_decoder(&head, branch->slot.type);
    peg__buf_putc(&head, '(');
    py_put_call(out, 8, gen_text_of(out, &head), (const char *const[]){"value", "at"}, 2, ")");
    peg__buf_free(&head);
}

void py_put_union_decoder(const struct py_names *names, struct peg__buf *out,
                          const struct py_type *p)
{
    const struct gen_type *type = p->type;
    bool needs_kind = false;

    for (size_t i = 0; i < type->n_branches; i++)
        needs_kind = needs_kind || !type->branches[i].n_tags;
    put_decoder_head(out, type->name, p->name, NULL);
    if (needs_kind)
        peg__buf_puts(out, "    kind = typed.kind_of(value)\n");
    for (size_t i = 0; i < type->n_branches; i++)
        put_branch(names, out, type->tag, &type->branches[i]);
    peg__buf_puts(out, "    raise typed.DecodeError(at, \"it is none of the alternatives\")\n");
}
