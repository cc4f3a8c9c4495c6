/* SPDX-License-Identifier: Apache-2.0 */

/* types.c: a function for each type that makes it of JSON. `ret` is all zero before. */

#include "base/text/str.h"
#include "generate/c/internal.h"

static const char *const functions[] = {
    [GEN_BOOL] = "peg_decode_bool",
    [GEN_INTEGER] = "peg_decode_integer",
    [GEN_NUMBER] = "peg_decode_number",
    [GEN_STRING] = "peg_decode_string",
};

static void put_boxed(const struct c_names *names, struct peg__buf *out, unsigned indent,
                      const struct gen_type *type, const char *from, const char *to)
{
    const char *name = c_spell(names, type);
    const int i = (int)indent;

    peg__buf_printf(out,
                    "%*s%s *box = peg_decode_alloc(d, 1, sizeof(*box));\n\n"
                    "%*sif (!box || !decode_%s(d, %s, box))\n%*sreturn false;\n%*s%s = box;\n",
                    i, "", name, i, "", type->name, from, i + 4, "", i, "", to);
}

void c_put_decode_slot(const struct c_names *names, struct peg__buf *out, unsigned indent,
                       struct gen_slot slot, const char *from, const char *to)
{
    const enum gen_kind kind = slot.type->kind;
    struct peg__buf address = PEG__BUF(1 << 16);
    const int i = (int)indent;

    if (slot.is_boxed) {
        put_boxed(names, out, indent, slot.type, from, to);
        return;
    }
    if (kind == GEN_RAW) {
        peg__buf_printf(out, "%*s%s = %s;\n", i, "", to, from);
        return;
    }
    if (kind == GEN_NULL) {
        peg__buf_printf(out, "%*sif (!peg_decode_null(d, %s))\n%*sreturn false;\n", i, "", from,
                        i + 4, "");
        return;
    }
    peg__buf_printf(&address, "&%s", to);
    c_put_callf(out, (const char *const[]){"d", from, gen_text_of(out, &address), NULL}, "))\n",
                "%*sif (!%s%s(", i, "", gen_is_scalar(kind) ? functions[kind] : "decode_",
                gen_is_scalar(kind) ? "" : slot.type->name);
    peg__buf_printf(out, "%*sreturn false;\n", i + 4, "");
    peg__buf_free(&address);
}

/* ---- containers --------------------------------------------------------------------------- */

static void put_array_decoding(const struct c_names *names, struct peg__buf *out,
                               const struct gen_type *type)
{
    const struct gen_type *item = type->item.type;
    const char *spelled = c_spell(names, item);

    peg__buf_printf(out, "    %s%s*items;\n    size_t n = 0;\n\n", spelled,
                    item->kind == GEN_RAW ? "" : " ");
    peg__buf_puts(out, "    if (!peg_decode_is_array(d, value))\n        return false;\n");
    peg__buf_puts(out, "    items = peg_decode_alloc(d, peg_json_len(value), sizeof(*items));\n"
                       "    if (!items && peg_json_len(value))\n        return false;\n"
                       "    PEG_JSON_EACH_ITEM (value, item) {\n");
    c_put_decode_slot(names, out, 8, type->item, "item", "items[n]");
    peg__buf_puts(out, "        n++;\n    }\n    ret->items = items;\n    ret->len = n;\n"
                       "    return true;\n");
}

static void put_map_decoding(const struct c_names *names, struct peg__buf *out,
                             const struct gen_type *type)
{
    const struct gen_type *item = type->item.type;

    peg__buf_printf(out, "    peg_str *names;\n    %s%s*values;\n    size_t n = 0;\n\n",
                    c_spell(names, item), item->kind == GEN_RAW ? "" : " ");
    peg__buf_puts(out, "    if (!peg_decode_is_object(d, value))\n        return false;\n"
                       "    names = peg_decode_alloc(d, peg_json_len(value), "
                       "sizeof(*names));\n"
                       "    values = peg_decode_alloc(d, peg_json_len(value), sizeof(*values));\n"
                       "    if ((!names || !values) && peg_json_len(value))\n"
                       "        return false;\n"
                       "    PEG_JSON_EACH_MEMBER (value, key) {\n"
                       "        names[n] = peg_json_str(key);\n");
    c_put_decode_slot(names, out, 8, type->item, "key + 1", "values[n]");
    peg__buf_puts(out, "        n++;\n    }\n    ret->names = names;\n    ret->values = values;\n"
                       "    ret->len = n;\n    return true;\n");
}

static void put_nullable_decoding(const struct c_names *names, struct peg__buf *out,
                                  const struct gen_type *type)
{
    if (type->item.is_boxed)
        peg__buf_printf(out, "    %s *box;\n\n", c_spell(names, type->item.type));
    peg__buf_puts(out, "    if (peg_json_kind_of(value) == PEG_JSON_NULL) {\n"
                       "        ret->is_null = true;\n        return true;\n    }\n");
    if (type->item.is_boxed) {
        peg__buf_printf(out,
                        "    box = peg_decode_alloc(d, 1, sizeof(*box));\n"
                        "    if (!box || !decode_%s(d, value, box))\n        return false;\n"
                        "    ret->value = box;\n",
                        type->item.type->name);
    } else {
        c_put_decode_slot(names, out, 4, type->item, "value", "ret->value");
    }
    peg__buf_puts(out, "    return true;\n");
}

/* ---- structs ------------------------------------------------------------------------------ */

static size_t count_required(const struct gen_type *type)
{
    size_t n = 0;

    for (size_t i = 0; i < type->n_members; i++)
        n += type->members[i].is_required ? 1 : 0;
    return n;
}

static void put_declarations(const struct c_names *names, struct peg__buf *out,
                             const struct gen_type *type)
{
    size_t n = count_required(type);

    if (n) {
        peg__buf_puts(out, "    static const char *const required[] = {");
        for (size_t i = 0; i < type->n_members; i++) {
            if (!type->members[i].is_required)
                continue;
            peg__buf_puts(out, "\n        ");
            c_put_literal(out, type->members[i].name);
            peg__buf_putc(out, ',');
        }
        peg__buf_puts(out, "\n    };\n    size_t n_required = 0;\n");
    }
    if (type->others)
        peg__buf_printf(out,
                        "    peg_str *names = NULL;\n    %s%s*values = NULL;\n"
                        "    size_t n_others = 0;\n",
                        c_spell(names, type->others), type->others->kind == GEN_RAW ? "" : " ");
    if (n || type->others)
        peg__buf_putc(out, '\n');
}

static void put_struct_member(const struct c_names *names, struct peg__buf *out,
                              const struct c_type *c, size_t i)
{
    const struct gen_member *member = &c->type->members[i];
    struct peg__buf to = PEG__BUF(1 << 16);

    peg__buf_printf(&to, "ret->%s", c->members[i]);
    peg__buf_puts(out,
                  i ? "        } else if (PEG_DECODE_IS(key, " : "        if (PEG_DECODE_IS(key, ");
    c_put_literal(out, member->name);
    peg__buf_puts(out, ")) {\n");
    c_put_decode_slot(names, out, 12, member->slot, "key + 1", gen_text_of(out, &to));
    if (member->is_required)
        peg__buf_puts(out, "            n_required++;\n");
    else
        peg__buf_printf(out, "            ret->%s = true;\n", c->flags[i]);
    peg__buf_free(&to);
}

/* There is room for all members of the object from the first one without a name on. */
static void put_other_member(const struct c_names *names, struct peg__buf *out,
                             const struct gen_type *type)
{
    const unsigned indent = type->n_members ? 12 : 8;
    const int i = (int)indent;

    if (type->n_members)
        peg__buf_puts(out, "        } else {\n");
    peg__buf_printf(out,
                    "%*sif (!n_others) {\n"
                    "%*snames = peg_decode_alloc(d, peg_json_len(value), sizeof(*names));\n"
                    "%*svalues = peg_decode_alloc(d, peg_json_len(value), sizeof(*values));\n"
                    "%*s}\n"
                    "%*sif (!names || !values)\n%*sreturn false;\n"
                    "%*snames[n_others] = peg_json_str(key);\n",
                    i, "", i + 4, "", i + 4, "", i, "", i, "", i + 4, "", i, "");
    c_put_decode_slot(names, out, indent, (struct gen_slot){.type = type->others}, "key + 1",
                      "values[n_others]");
    peg__buf_printf(out, "%*sn_others++;\n", i, "");
}

static void put_struct_decoding(const struct c_names *names, struct peg__buf *out,
                                const struct c_type *c)
{
    const struct gen_type *type = c->type;
    const size_t n = count_required(type);

    put_declarations(names, out, type);
    peg__buf_puts(out, "    if (!peg_decode_is_object(d, value))\n        return false;\n");
    if (!c_says_anything(type))
        peg__buf_puts(out, "    (void)ret;\n");
    if (!type->n_members && !type->others) {
        peg__buf_puts(out, "    return true;\n");
        return;
    }
    peg__buf_puts(out, "    PEG_JSON_EACH_MEMBER (value, key) {\n");
    for (size_t i = 0; i < type->n_members; i++)
        put_struct_member(names, out, c, i);
    if (type->others)
        put_other_member(names, out, type);
    peg__buf_puts(out, type->n_members ? "        }\n    }\n" : "    }\n");
    if (type->others)
        peg__buf_printf(out,
                        "    ret->%s.names = names;\n    ret->%s.values = values;\n"
                        "    ret->%s.len = n_others;\n",
                        c->others, c->others, c->others);
    if (n)
        peg__buf_printf(out,
                        "    if (n_required < %zu)\n"
                        "        return peg_decode_fail_missing(d, value, required, %zu);\n",
                        n, n);
    peg__buf_puts(out, "    return true;\n");
}

/* ---- unions ------------------------------------------------------------------------------- */

static void put_condition(struct peg__buf *out, const struct gen_branch *branch)
{
    static const struct {
        unsigned kinds;
        const char *text;
    } table[] = {
        {GEN_IS_BOOL, "kind == PEG_JSON_BOOL"},     {GEN_IS_NUMBER, "peg_json_is_number(value)"},
        {GEN_IS_WHOLE, "peg_json_is_whole(value)"}, {GEN_IS_STRING, "kind == PEG_JSON_STRING"},
        {GEN_IS_ARRAY, "kind == PEG_JSON_ARRAY"},   {GEN_IS_OBJECT, "kind == PEG_JSON_OBJECT"},
        {GEN_IS_NULL, "kind == PEG_JSON_NULL"},
    };
    unsigned kinds = branch->kinds;
    bool is_first = true;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if ((kinds & table[i].kinds) != table[i].kinds)
            continue;
        peg__buf_printf(out, "%s%s", is_first ? "" : " || ", table[i].text);
        kinds &= ~table[i].kinds;
        is_first = false;
    }
}

static void put_tag_tests(struct peg__buf *out, const struct gen_branch *branch)
{
    for (size_t i = 0; i < branch->n_tags; i++) {
        peg__buf_puts(out, i ? " ||\n        PEG_DECODE_IS(tag, " : "PEG_DECODE_IS(tag, ");
        c_put_literal(out, branch->tags[i]);
        peg__buf_putc(out, ')');
    }
}

static void put_branch(const struct c_names *names, struct peg__buf *out, const struct c_type *c,
                       size_t i)
{
    const struct gen_branch *branch = &c->type->branches[i];
    struct peg__buf to = PEG__BUF(1 << 16);

    peg__buf_printf(&to, "ret->as.%s", c->members[i]);
    if (branch->n_tags) {
        peg__buf_puts(out, "    if (tag && (");
        put_tag_tests(out, branch);
        peg__buf_puts(out, ")) {\n");
    } else {
        peg__buf_puts(out, "    if (");
        put_condition(out, branch);
        peg__buf_puts(out, ") {\n");
    }
    c_put_decode_slot(names, out, 8, branch->slot, "value", gen_text_of(out, &to));
    peg__buf_printf(out, "        ret->tag = %s;\n        return true;\n    }\n", c->constants[i]);
    peg__buf_free(&to);
}

static void put_union_decoding(const struct c_names *names, struct peg__buf *out,
                               const struct c_type *c)
{
    bool needs_kind = false;

    for (size_t i = 0; i < c->type->n_branches; i++) {
        const struct gen_branch *branch = &c->type->branches[i];

        needs_kind = needs_kind || (!branch->n_tags && branch->kinds & ~(unsigned)GEN_IS_NUMBER);
    }
    if (needs_kind)
        peg__buf_puts(out, "    const peg_json_kind kind = peg_json_kind_of(value);\n");
    if (c->type->tag.len) {
        peg__buf_puts(out, "    const peg_json *tag = peg_json_get_str(value, (peg_str){");
        c_put_literal(out, c->type->tag);
        peg__buf_printf(out, ", %zu});\n\n", c->type->tag.len);
        peg__buf_puts(out, "    if (peg_json_kind_of(tag) != PEG_JSON_STRING)\n"
                           "        tag = NULL;\n");
    } else if (needs_kind) {
        peg__buf_putc(out, '\n');
    }
    for (size_t i = 0; i < c->type->n_branches; i++)
        put_branch(names, out, c, i);
    peg__buf_puts(out, "    return peg_decode_fail(d, value, \"one of the alternatives of the "
                       "schema\");\n");
}

/* ---- all ---------------------------------------------------------------------------------- */

static void put_enum_names(struct peg__buf *out, const struct gen_type *type)
{
    peg__buf_printf(out, "static const peg_str names_of_%s[] = {\n", type->name);
    for (size_t i = 0; i < type->n_values; i++) {
        peg__buf_puts(out, "    {");
        c_put_literal(out, type->values[i]);
        peg__buf_printf(out, ", %zu},\n", type->values[i].len);
    }
    peg__buf_puts(out, "};\n\n");
}

static void put_decoder(const struct c_names *names, struct peg__buf *out, const struct c_type *c)
{
    const struct gen_type *type = c->type;
    struct peg__buf ret = PEG__BUF(1 << 16);

    if (type->kind == GEN_ENUM)
        put_enum_names(out, type);
    peg__buf_printf(&ret, "%s *ret", c->name);
    c_put_callf(out,
                (const char *const[]){"peg_decoder *d", "const peg_json *value",
                                      gen_text_of(out, &ret), NULL},
                ")\n{\n", "static bool decode_%s(", type->name);
    peg__buf_free(&ret);
    if (type->kind == GEN_ENUM)
        peg__buf_printf(out,
                        "    unsigned index;\n\n"
                        "    if (!peg_decode_enum(d, value, names_of_%s, %zu, &index))\n"
                        "        return false;\n"
                        "    *ret = (%s)index;\n    return true;\n",
                        type->name, type->n_values, c->name);
    else if (type->kind == GEN_NULLABLE)
        put_nullable_decoding(names, out, type);
    else if (type->kind == GEN_ARRAY)
        put_array_decoding(names, out, type);
    else if (type->kind == GEN_MAP)
        put_map_decoding(names, out, type);
    else if (type->kind == GEN_UNION)
        put_union_decoding(names, out, c);
    else if (type->is_wrapper) {
        struct peg__buf to = PEG__BUF(1 << 16);

        peg__buf_printf(&to, "ret->%s", c->members[0]);
        if (type->members[0].slot.type->kind == GEN_RAW)
            peg__buf_puts(out, "    (void)d;\n");
        if (!c_says_anything(type))
            peg__buf_puts(out, "    (void)ret;\n");
        c_put_decode_slot(names, out, 4, type->members[0].slot, "value", gen_text_of(out, &to));
        peg__buf_puts(out, "    return true;\n");
        peg__buf_free(&to);
    } else
        put_struct_decoding(names, out, c);
    peg__buf_puts(out, "}\n\n");
}

void c_write_decoders(const struct c_names *names, struct peg__buf *out)
{
    C_EACH_TYPE(names, type)
    put_decoder(names, out, c_type_of(names, type));
}
