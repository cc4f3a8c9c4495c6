/* SPDX-License-Identifier: Apache-2.0 */

/* types.h: the structs, and types.c around the codecs. */

#include "base/text/str.h"
#include "generate/c/internal.h"

/* ---- members ------------------------------------------------------------------------------ */

static void put_slot_declaration(const struct c_names *names, struct peg__buf *out,
                                 struct gen_slot slot, const char *name)
{
    const char *type = c_spell(names, slot.type);

    peg__buf_puts(out, "    ");
    if (slot.is_boxed)
        peg__buf_printf(out, "const %s *%s;\n", type, name);
    else {
        c_put_declarator(out, type, name);
        peg__buf_puts(out, slot.type->kind == GEN_NULL ? "; /* null: has no value */\n" : ";\n");
    }
}

/* Pointers to things that are read: "const T *", and "const peg_json *const *". */
static void put_pointer(const struct c_names *names, struct peg__buf *out, unsigned indent,
                        const struct gen_type *type, const char *name)
{
    peg__buf_repeat(out, ' ', indent);
    if (type->kind == GEN_RAW)
        peg__buf_printf(out, "const peg_json *const *%s;\n", name);
    else
        peg__buf_printf(out, "const %s *%s;\n", c_spell(names, type), name);
}

static void put_map_fields(const struct c_names *names, struct peg__buf *out, unsigned indent,
                           const struct gen_type *item)
{
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, "const peg_str *names;\n");
    put_pointer(names, out, indent, item, "values");
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, "size_t len;\n");
}

static void put_struct_members(const struct c_names *names, struct peg__buf *out,
                               const struct c_type *c)
{
    const struct gen_type *type = c->type;
    const struct c_tool *tool = c_tool_of_result(names, type);

    for (size_t i = 0; i < type->n_members; i++) {
        c_put_comment(out, 4, type->members[i].description);
        if (c->flags[i])
            peg__buf_printf(out, "    bool %s;\n", c->flags[i]);
        put_slot_declaration(names, out, type->members[i].slot, c->members[i]);
    }
    if (type->others) {
        peg__buf_puts(out, "    /* Members that the schema allows without a name. */\n"
                           "    struct {\n");
        put_map_fields(names, out, 8, type->others);
        peg__buf_printf(out, "    } %s;\n", c->others);
    }
    if (tool && tool->tool->n_server_data)
        peg__buf_printf(out,
                        "    /* Goes beside the result, never to a model. */\n"
                        "    %s_server_data server_data;\n",
                        tool->name);
    if (tool)
        peg__buf_puts(out, "    /* Memory of what is above: a handler takes it from here. */\n"
                           "    peg_arena *arena;\n");
    else if (!type->n_members && !type->others)
        peg__buf_puts(out, "    char nothing; /* it has no members */\n");
}

/* ---- types -------------------------------------------------------------------------------- */

static void put_enum_definition(struct peg__buf *out, const char *name,
                                const char *const *constants, size_t n)
{
    peg__buf_printf(out, "typedef enum %s {\n", name);
    for (size_t i = 0; i < n; i++)
        peg__buf_printf(out, "    %s%s,\n", constants[i], i ? "" : " = 0");
    peg__buf_printf(out, "} %s;\n\n", name);
}

static void put_union_definition(const struct c_names *names, struct peg__buf *out,
                                 const struct c_type *c)
{
    peg__buf_printf(out, "struct %s {\n    %s_tag tag;\n    union {\n", c->name, c->name);
    for (size_t i = 0; i < c->type->n_branches; i++) {
        peg__buf_puts(out, "    ");
        put_slot_declaration(names, out, c->type->branches[i].slot, c->members[i]);
    }
    peg__buf_puts(out, "    } as;\n};\n\n");
}

static void put_type_definition(const struct c_names *names, struct peg__buf *out,
                                const struct c_type *c)
{
    const struct gen_type *type = c->type;

    if (type->kind == GEN_ENUM)
        return;
    c_put_comment(out, 0, type->description);
    if (type->kind == GEN_UNION) {
        put_union_definition(names, out, c);
        return;
    }
    peg__buf_printf(out, "struct %s {\n", c->name);
    if (type->kind == GEN_STRUCT)
        put_struct_members(names, out, c);
    if (type->kind == GEN_ARRAY) {
        put_pointer(names, out, 4, type->item.type, "items");
        peg__buf_puts(out, "    size_t len;\n");
    }
    if (type->kind == GEN_MAP)
        put_map_fields(names, out, 4, type->item.type);
    if (type->kind == GEN_NULLABLE) {
        peg__buf_puts(out, "    bool is_null;\n");
        put_slot_declaration(names, out, type->item, "value");
    }
    peg__buf_puts(out, "};\n\n");
}

static void put_server_data(const struct c_names *names, struct peg__buf *out,
                            const struct c_tool *tool)
{
    if (!tool->tool->n_server_data)
        return;
    peg__buf_printf(out, "typedef struct %s_server_data {\n", tool->name);
    for (size_t i = 0; i < tool->tool->n_server_data; i++) {
        const struct gen_server_data *data = &tool->tool->server_data[i];

        c_put_comment(out, 4, data->description);
        if (tool->flags[i])
            peg__buf_printf(out, "    bool %s;\n", tool->flags[i]);
        put_slot_declaration(names, out, (struct gen_slot){.type = data->type}, tool->data[i]);
    }
    peg__buf_printf(out, "} %s_server_data;\n\n", tool->name);
}

/* ---- prototypes --------------------------------------------------------------------------- */

static void put_decode_prototype(struct peg__buf *out, const char *name, const char *tail)
{
    struct peg__buf ret = PEG__BUF(1 << 16);

    peg__buf_printf(&ret, "%s *ret_value", name);
    c_put_callf(out,
                (const char *const[]){"const peg_json *value", "peg_arena *arena",
                                      gen_text_of(out, &ret), "peg_error *reterr", NULL},
                tail, "peg_status %s_decode(", name);
    peg__buf_free(&ret);
}

static void put_encode_prototype(struct peg__buf *out, const char *name, const char *tail)
{
    struct peg__buf value = PEG__BUF(1 << 16);

    peg__buf_printf(&value, "const %s *value", name);
    c_put_callf(out, (const char *const[]){gen_text_of(out, &value), "peg_encoder *encoder", NULL},
                tail, "void %s_encode(", name);
    peg__buf_free(&value);
}

static void put_send_prototype(struct peg__buf *out, const char *result, const char *tail)
{
    struct peg__buf value = PEG__BUF(1 << 16);

    peg__buf_printf(&value, "const %s *result", result);
    c_put_callf(out,
                (const char *const[]){gen_text_of(out, &value), "peg_call *call",
                                      "peg_encoder *encoder", NULL},
                tail, "peg_status %s_send_server_data(", result);
    peg__buf_free(&value);
}

static void put_take_prototype(struct peg__buf *out, const char *result, const char *tail)
{
    struct peg__buf value = PEG__BUF(1 << 16);

    peg__buf_printf(&value, "%s *result", result);
    c_put_callf(out,
                (const char *const[]){"const peg_typed_answer *answer", gen_text_of(out, &value),
                                      "peg_error *reterr", NULL},
                tail, "peg_status %s_take_server_data(", result);
    peg__buf_free(&value);
}

static void put_tool_prototypes(const struct c_names *names, struct peg__buf *out,
                                const struct c_tool *tool)
{
    const char *args = c_spell(names, tool->tool->args);
    const char *result = c_spell(names, tool->tool->result);

    put_decode_prototype(out, args, ");\n");
    put_encode_prototype(out, args, ");\n");
    put_decode_prototype(out, result, ");\n");
    put_encode_prototype(out, result, ");\n");
    peg__buf_printf(out,
                    "/* Frees the memory of a result; all of it is zero afterwards. */\n"
                    "void %s_free(%s *result);\n",
                    result, result);
    if (tool->tool->n_server_data) {
        peg__buf_puts(out, "/* Sends the server-data of a result with the answer of a call, and "
                           "takes it from one. */\n");
        put_send_prototype(out, result, ");\n");
        put_take_prototype(out, result, ");\n");
    }
    peg__buf_putc(out, '\n');
}

/* All structs before any of them, as some point to each other. */
static void put_forward_declarations(const struct c_names *names, struct peg__buf *out)
{
    C_EACH_TYPE(names, type)
    {
        const struct c_type *c = c_type_of(names, type);

        if (type->kind != GEN_ENUM)
            peg__buf_printf(out, "typedef struct %s %s;\n", c->name, c->name);
    }
    peg__buf_putc(out, '\n');
}

static void put_all_enums(const struct c_names *names, struct peg__buf *out)
{
    C_EACH_TYPE(names, type)
    {
        const struct c_type *c = c_type_of(names, type);
        struct peg__buf tag = PEG__BUF(1 << 16);

        if (type->kind == GEN_ENUM) {
            c_put_comment(out, 0, type->description);
            put_enum_definition(out, c->name, c->constants, type->n_values);
        }
        peg__buf_printf(&tag, "%s_tag", c->name);
        if (type->kind == GEN_UNION)
            put_enum_definition(out, gen_text_of(out, &tag), c->constants, type->n_branches);
        peg__buf_free(&tag);
    }
}

void c_write_types_h(const struct c_names *names, struct peg__buf *out)
{
    peg__buf_printf(out,
                    "#ifndef %s_TYPES_H\n#define %s_TYPES_H\n\n#include <pegboard/typed.h>\n\n"
                    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
                    names->upper, names->upper);
    put_forward_declarations(names, out);
    put_all_enums(names, out);
    C_EACH_TYPE(names, type)
    {
        if (!c_tool_of_result(names, type))
            put_type_definition(names, out, c_type_of(names, type));
    }
    C_EACH_TOOL(names, tool)
    {
        put_server_data(names, out, tool);
        put_type_definition(names, out, c_type_of(names, tool->tool->result));
    }
    peg__buf_puts(
        out, "/*\n"
             " * Decoding: strings and JSON stay in the document of `value`, arrays are in the "
             "arena; *ret_value\n"
             " * is written on success. PEG_ESCHEMA (E_DECODE, E_DECODE_RANGE) with the pointer "
             "of what is\n"
             " * wrong, PEG_ELIMIT (E_DECODE_LIMIT), PEG_ENOMEM. Encoding: the first failure "
             "stays in the\n * encoder.\n"
             " */\n\n");
    C_EACH_TOOL(names, tool)
    put_tool_prototypes(names, out, tool);
    peg__buf_puts(out, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- types.c ------------------------------------------------------------------------------ */

static void put_root_codec(const struct c_names *names, struct peg__buf *out,
                           const struct gen_type *type)
{
    const struct c_type *c = c_type_of(names, type);
    const bool is_result = c_tool_of_result(names, type) != NULL;

    put_decode_prototype(out, c->name, ")\n{\n");
    peg__buf_printf(out,
                    "    peg_decoder d = {arena, value, reterr, PEG_OK};\n"
                    "    %s decoded;\n\n"
                    "    memset(&decoded, 0, sizeof(decoded));\n"
                    "    if (!decode_%s(&d, value, &decoded))\n"
                    "        return d.status;\n",
                    c->name, type->name);
    if (is_result)
        peg__buf_puts(out, "    decoded.arena = arena;\n");
    peg__buf_puts(out, "    *ret_value = decoded;\n    return PEG_OK;\n}\n\n");
    put_encode_prototype(out, c->name, ")\n{\n");
    peg__buf_printf(out, "    encode_%s(encoder, value);\n}\n\n", type->name);
    if (is_result)
        peg__buf_printf(out,
                        "void %s_free(%s *result)\n{\n"
                        "    peg_arena_free(result->arena);\n"
                        "    memset(result, 0, sizeof(*result));\n}\n\n",
                        c->name, c->name);
}

static void put_send_data(const struct c_names *names, struct peg__buf *out,
                          const struct c_tool *tool, size_t i)
{
    const struct gen_server_data *data = &tool->tool->server_data[i];
    const unsigned indent = tool->flags[i] ? 8 : 4;
    struct peg__buf from = PEG__BUF(1 << 16);
    struct peg__buf kind = PEG__BUF(1 << 16);
    struct peg__buf audience = PEG__BUF(1 << 16);

    peg__buf_printf(&from, "result->server_data.%s", tool->data[i]);
    if (tool->flags[i])
        peg__buf_printf(out, "    if (!status && result->server_data.%s) {\n", tool->flags[i]);
    else if (i)
        peg__buf_puts(out, "    if (status)\n        return status;\n");
    c_put_encode_slot(names, out, indent, (struct gen_slot){.type = data->type},
                      gen_text_of(out, &from));
    c_put_literal(&kind, data->kind);
    c_put_literal(&audience, data->audience);
    c_put_callf(out,
                (const char *const[]){"call", gen_text_of(out, &kind), gen_text_of(out, &audience),
                                      "encoder", NULL},
                ");\n", "%*sstatus = peg_call_add_server_data_encoded(", (int)indent, "");
    peg__buf_free(&kind);
    peg__buf_free(&audience);
    if (tool->flags[i])
        peg__buf_puts(out, "    }\n");
    peg__buf_free(&from);
}

static void put_take_data(const struct c_names *names, struct peg__buf *out,
                          const struct c_tool *tool, size_t i)
{
    const struct gen_server_data *data = &tool->tool->server_data[i];
    struct peg__buf to = PEG__BUF(1 << 16);

    peg__buf_printf(&to, "result->server_data.%s", tool->data[i]);
    peg__buf_puts(out, "    value = peg_typed_server_data(answer, ");
    c_put_literal(out, data->kind);
    peg__buf_puts(out, ");\n");
    if (tool->flags[i]) {
        peg__buf_puts(out, "    if (value) {\n");
        c_put_decode_slot(names, out, 8, (struct gen_slot){.type = data->type}, "value",
                          gen_text_of(out, &to));
        peg__buf_printf(out, "        result->server_data.%s = true;\n    }\n", tool->flags[i]);
    } else {
        c_put_decode_slot(names, out, 4, (struct gen_slot){.type = data->type}, "value",
                          gen_text_of(out, &to));
    }
    peg__buf_free(&to);
}

static void put_server_data_codec(const struct c_names *names, struct peg__buf *out,
                                  const struct c_tool *tool)
{
    const char *result = c_spell(names, tool->tool->result);
    struct peg__buf value = PEG__BUF(1 << 16);

    if (!tool->tool->n_server_data)
        return;
    put_send_prototype(out, result, ")\n{\n");
    peg__buf_puts(out, "    peg_status status = PEG_OK;\n\n");
    for (size_t i = 0; i < tool->tool->n_server_data; i++)
        put_send_data(names, out, tool, i);
    peg__buf_puts(out, "    return status;\n}\n\n");
    peg__buf_printf(&value, "%s *result", result);
    c_put_callf(out,
                (const char *const[]){"peg_decoder *d", "const peg_typed_answer *answer",
                                      gen_text_of(out, &value), NULL},
                ")\n{\n    const peg_json *value;\n\n", "static bool take_%s_server_data(",
                tool->tool->word);
    peg__buf_free(&value);
    for (size_t i = 0; i < tool->tool->n_server_data; i++)
        put_take_data(names, out, tool, i);
    peg__buf_puts(out, "    return true;\n}\n\n");
    put_take_prototype(out, result, ")\n{\n");
    peg__buf_printf(
        out,
        "    peg_decoder d = {result->arena, answer->server_data, reterr, PEG_OK};\n\n"
        "    return take_%s_server_data(&d, answer, result) ? PEG_OK : d.status;\n}\n\n",
        tool->tool->word);
}

void c_write_types_c(const struct c_names *names, struct peg__buf *out)
{
    peg__buf_puts(out, "#include \"types.h\"\n\n#include <string.h>\n\n");
    C_EACH_TYPE(names, type)
    {
        const char *name = c_spell(names, type);
        struct peg__buf text = PEG__BUF(1 << 16);

        peg__buf_printf(&text, "%s *ret", name);
        c_put_callf(out,
                    (const char *const[]){"peg_decoder *d", "const peg_json *value",
                                          gen_text_of(out, &text), NULL},
                    ");\n", "static bool decode_%s(", type->name);
        peg__buf_clear(&text);
        peg__buf_printf(&text, "const %s *value", name);
        c_put_callf(out, (const char *const[]){"peg_encoder *e", gen_text_of(out, &text), NULL},
                    ");\n", "static void encode_%s(", type->name);
        peg__buf_free(&text);
    }
    peg__buf_putc(out, '\n');
    c_write_decoders(names, out);
    c_write_encoders(names, out);
    C_EACH_TOOL(names, tool)
    {
        put_root_codec(names, out, tool->tool->args);
        put_root_codec(names, out, tool->tool->result);
        put_server_data_codec(names, out, tool);
    }
    /* One empty line at most. */
    while (out->len > 1 && !out->status && out->ptr[out->len - 2] == '\n')
        out->ptr[--out->len] = 0;
}
