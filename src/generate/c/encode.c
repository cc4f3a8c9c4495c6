/* SPDX-License-Identifier: Apache-2.0 */

/* types.c: a function for each type that writes it as JSON. */

#include "base/text/str.h"
#include "generate/c/internal.h"
#include "json/json.h"

static const char *const functions[] = {
    [GEN_BOOL] = "peg_encode_bool",     [GEN_INTEGER] = "peg_encode_integer",
    [GEN_NUMBER] = "peg_encode_number", [GEN_STRING] = "peg_encode_string",
    [GEN_RAW] = "peg_encode_json",
};

/* Who writes to: "e" in the codecs, "encoder" where a function got one. */
static void put_slot_to(const struct c_names *names, struct peg__buf *out, unsigned indent,
                        struct gen_slot slot, const char *from, const char *encoder)
{
    const enum gen_kind kind = slot.type->kind;
    const int i = (int)indent;

    (void)names;
    if (slot.is_boxed)
        peg__buf_printf(
            out, "%*sif (%s)\n%*sencode_%s(%s, %s);\n%*selse\n%*speg_encode_null(%s);\n", i, "",
            from, i + 4, "", slot.type->name, encoder, from, i, "", i + 4, "", encoder);
    else if (kind == GEN_NULL)
        peg__buf_printf(out, "%*speg_encode_null(%s);\n", i, "", encoder);
    else if (gen_is_scalar(kind))
        peg__buf_printf(out, "%*s%s(%s, %s);\n", i, "", functions[kind], encoder, from);
    else
        peg__buf_printf(out, "%*sencode_%s(%s, &%s);\n", i, "", slot.type->name, encoder, from);
}

void c_put_encode_slot(const struct c_names *names, struct peg__buf *out, unsigned indent,
                       struct gen_slot slot, const char *from)
{
    put_slot_to(names, out, indent, slot, from, "encoder");
}

static void put_slot_encoding(const struct c_names *names, struct peg__buf *out, unsigned indent,
                              struct gen_slot slot, const char *from)
{
    put_slot_to(names, out, indent, slot, from, "e");
}

/* The name as JSON has it, as a literal of C. */
static void put_key(struct peg__buf *out, peg_str name)
{
    struct peg__buf quoted = PEG__BUF(1 << 20);

    peg__json_write_string(name, &quoted);
    peg__buf_putc(&quoted, ':');
    peg__buf_puts(out, "PEG_ENCODE_KEY(e, ");
    (void)gen_text_of(out, &quoted); /* a name may have a NUL: not as a string of C */
    c_put_literal(out, peg__buf_view(&quoted));
    peg__buf_puts(out, ");\n");
    peg__buf_free(&quoted);
}

/* ---- kinds -------------------------------------------------------------------------------- */

static void put_map_entries(const struct c_names *names, struct peg__buf *out, const char *map,
                            struct gen_type *item)
{
    struct peg__buf from = PEG__BUF(1 << 16);

    peg__buf_printf(&from, "%svalues[i]", map);
    peg__buf_printf(out,
                    "    for (i = 0; i < %slen; i++) {\n"
                    "        peg_encode_key(e, %snames[i]);\n",
                    map, map);
    put_slot_encoding(names, out, 8, (struct gen_slot){.type = item}, gen_text_of(out, &from));
    peg__buf_puts(out, "    }\n");
    peg__buf_free(&from);
}

static void put_struct_encoding(const struct c_names *names, struct peg__buf *out,
                                const struct c_type *c)
{
    const struct gen_type *type = c->type;

    if (type->others)
        peg__buf_puts(out, "    size_t i;\n\n");
    if (!c_says_anything(type))
        peg__buf_puts(out, "    (void)value;\n");
    peg__buf_puts(out, "    if (!peg_encode_open_object(e))\n        return;\n");
    for (size_t i = 0; i < type->n_members; i++) {
        struct peg__buf from = PEG__BUF(1 << 16);
        const unsigned indent = c->flags[i] ? 8 : 4;

        peg__buf_printf(&from, "value->%s", c->members[i]);
        if (c->flags[i])
            peg__buf_printf(out, "    if (value->%s) {\n", c->flags[i]);
        peg__buf_repeat(out, ' ', indent);
        put_key(out, type->members[i].name);
        put_slot_encoding(names, out, indent, type->members[i].slot, gen_text_of(out, &from));
        if (c->flags[i])
            peg__buf_puts(out, "    }\n");
        peg__buf_free(&from);
    }
    if (type->others) {
        struct peg__buf map = PEG__BUF(1 << 16);

        peg__buf_printf(&map, "value->%s.", c->others);
        put_map_entries(names, out, gen_text_of(out, &map), type->others);
        peg__buf_free(&map);
    }
    peg__buf_puts(out, "    peg_encode_close_object(e);\n");
}

static void put_array_encoding(const struct c_names *names, struct peg__buf *out,
                               const struct gen_type *type)
{
    peg__buf_puts(out, "    size_t i;\n\n"
                       "    if (!peg_encode_open_array(e))\n        return;\n"
                       "    for (i = 0; i < value->len; i++)\n");
    put_slot_encoding(names, out, 8, type->item, "value->items[i]");
    peg__buf_puts(out, "    peg_encode_close_array(e);\n");
}

static void put_map_encoding(const struct c_names *names, struct peg__buf *out,
                             const struct gen_type *type)
{
    peg__buf_puts(out, "    size_t i;\n\n"
                       "    if (!peg_encode_open_object(e))\n        return;\n");
    put_map_entries(names, out, "value->", type->item.type);
    peg__buf_puts(out, "    peg_encode_close_object(e);\n");
}

static void put_nullable_encoding(const struct c_names *names, struct peg__buf *out,
                                  const struct gen_type *type)
{
    if (type->item.is_boxed) {
        peg__buf_printf(out,
                        "    if (value->is_null || !value->value)\n"
                        "        peg_encode_null(e);\n    else\n"
                        "        encode_%s(e, value->value);\n",
                        type->item.type->name);
        return;
    }
    peg__buf_puts(out, "    if (value->is_null)\n        peg_encode_null(e);\n    else\n");
    put_slot_encoding(names, out, 8, type->item, "value->value");
}

static void put_union_encoding(const struct c_names *names, struct peg__buf *out,
                               const struct c_type *c)
{
    for (size_t i = 0; i < c->type->n_branches; i++) {
        struct peg__buf from = PEG__BUF(1 << 16);

        peg__buf_printf(&from, "value->as.%s", c->members[i]);
        peg__buf_printf(out, "    %sif (value->tag == %s) {\n", i ? "} else " : "",
                        c->constants[i]);
        put_slot_encoding(names, out, 8, c->type->branches[i].slot, gen_text_of(out, &from));
        peg__buf_free(&from);
    }
    peg__buf_puts(out, "    } else {\n"
                       "        peg_encode_fail(e, \"a union has a tag that it does not list\");\n"
                       "    }\n");
}

static void put_wrapper(const struct c_names *names, struct peg__buf *out, const struct c_type *c)
{
    struct peg__buf from = PEG__BUF(1 << 16);

    if (!c_says_anything(c->type))
        peg__buf_puts(out, "    (void)value;\n");
    peg__buf_printf(&from, "value->%s", c->members[0]);
    put_slot_encoding(names, out, 4, c->type->members[0].slot, gen_text_of(out, &from));
    peg__buf_free(&from);
}

static void put_encoder(const struct c_names *names, struct peg__buf *out, const struct c_type *c)
{
    const struct gen_type *type = c->type;
    struct peg__buf value = PEG__BUF(1 << 16);

    peg__buf_printf(&value, "const %s *value", c->name);
    c_put_callf(out, (const char *const[]){"peg_encoder *e", gen_text_of(out, &value), NULL},
                ")\n{\n", "static void encode_%s(", type->name);
    peg__buf_free(&value);
    if (type->kind == GEN_ENUM)
        peg__buf_printf(out, "    peg_encode_enum(e, (unsigned)*value, names_of_%s, %zu);\n",
                        type->name, type->n_values);
    else if (type->kind == GEN_NULLABLE)
        put_nullable_encoding(names, out, type);
    else if (type->kind == GEN_ARRAY)
        put_array_encoding(names, out, type);
    else if (type->kind == GEN_MAP)
        put_map_encoding(names, out, type);
    else if (type->kind == GEN_UNION)
        put_union_encoding(names, out, c);
    else if (type->is_wrapper)
        put_wrapper(names, out, c);
    else
        put_struct_encoding(names, out, c);
    peg__buf_puts(out, "}\n\n");
}

void c_write_encoders(const struct c_names *names, struct peg__buf *out)
{
    C_EACH_TYPE(names, type)
    put_encoder(names, out, c_type_of(names, type));
}
