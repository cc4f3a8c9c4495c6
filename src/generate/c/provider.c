/* SPDX-License-Identifier: Apache-2.0 */

/* provider.h and provider.c: a function to write for each tool, and a registry of them. */

#include "base/text/str.h"
#include "generate/c/internal.h"
#include "json/json.h"

/* Compilers need to take literals of this length; longer ones are arrays. */
enum { MAX_LITERAL = 4000 };

static void put_run(const struct c_names *names, struct peg__buf *out, const struct c_tool *tool)
{
    struct peg__buf args = PEG__BUF(1 << 16);
    struct peg__buf result = PEG__BUF(1 << 16);

    peg__buf_printf(&args, "const %s *args", c_spell(names, tool->tool->args));
    peg__buf_printf(&result, "%s *result", c_spell(names, tool->tool->result));
    c_put_callf(out,
                (const char *const[]){gen_text_of(out, &args), gen_text_of(out, &result),
                                      "peg_call *call", "void *user", NULL},
                ");\n", "int %s_run(", tool->name);
    peg__buf_free(&args);
    peg__buf_free(&result);
}

static void put_define(const struct c_names *names, struct peg__buf *out, const char *what,
                       peg_str value)
{
    peg__buf_printf(out, "#define %s_%s ", names->upper, what);
    c_put_literal(out, value);
    peg__buf_putc(out, '\n');
}

void c_write_provider_h(const struct c_names *names, struct peg__buf *out)
{
    peg__buf_printf(out,
                    "#ifndef %s_PROVIDER_H\n#define %s_PROVIDER_H\n\n"
                    "#include <pegboard/registry.h>\n\n#include \"types.h\"\n\n"
                    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                    "/* The toolset, for peg_provider_options. */\n",
                    names->upper, names->upper);
    put_define(names, out, "TOOLSET", names->toolset->name);
    put_define(names, out, "DESCRIPTION", names->toolset->description);
    put_define(names, out, "VERSION", names->toolset->version);
    peg__buf_puts(out, "\n/*\n"
                       " * To be written: one function for each tool. The arguments fit the "
                       "schema, with defaults filled in,\n"
                       " * and live as long as the call. The result is all zero; what it points to "
                       "is static or in\n"
                       " * result->arena. 0: the result is the answer, unless the call was "
                       "answered already. Anything else:\n"
                       " * the call has failed, for the reason that was given to peg_call_fail(). "
                       "Called from any thread,\n"
                       " * perhaps from several at once.\n"
                       " */\n\n");
    C_EACH_TOOL(names, tool)
    {
        c_put_comment(out, 0, tool->tool->description);
        put_run(names, out, tool);
    }
    peg__buf_puts(out, "\n/* A registry of these tools; `user` is handed to each function. The "
                       "errors of peg_tool_new(). */\n");
    c_put_callf(out,
                (const char *const[]){"void *user", "peg_registry **ret_registry",
                                      "peg_error *reterr", NULL},
                ");\n", "peg_status %s_registry_new(", names->prefix);
    peg__buf_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- schemas ------------------------------------------------------------------------------ */

/* One literal, or pieces of it, a line each. `column` is where the line stands. */
static void put_pieces(struct peg__buf *out, size_t column, peg_str text)
{
    enum { PIECE = 72 };
    struct peg__buf whole = PEG__BUF(out->max);

    c_put_literal(&whole, text);
    (void)gen_text_of(out, &whole);
    if (!whole.status && text.len <= PIECE && column + 1 + whole.len + 1 <= C_COLUMNS) {
        peg__buf_printf(out, " %s;\n\n", whole.ptr);
        peg__buf_free(&whole);
        return;
    }
    peg__buf_free(&whole);
    for (size_t at = 0; at < text.len || !at; at += PIECE) {
        const size_t n = text.len - at < PIECE ? text.len - at : PIECE;

        peg__buf_puts(out, "\n    ");
        c_put_literal(out, peg__strn(text.ptr + at, n));
    }
    peg__buf_puts(out, ";\n\n");
}

static void put_char_array(struct peg__buf *out, peg_str text)
{
    peg__buf_puts(out, " {\n");
    for (size_t i = 0; i < text.len; i++)
        peg__buf_printf(out, "%s%d,%s", i % 16 ? " " : "    ", text.ptr[i],
                        i % 16 == 15 ? "\n" : "");
    peg__buf_puts(out, text.len % 16 ? " 0,\n};\n\n" : "    0,\n};\n\n");
}

static void put_json_constant(struct peg__buf *out, const char *what, const struct c_tool *tool,
                              const peg_json *value)
{
    struct peg__buf text = PEG__BUF(out->max);
    const size_t start = out->len;

    if (!value)
        return;
    peg__json_write(value, PEG_JSON_COMPACT, &text);
    peg__buf_printf(out, "static const char %s_of_%s[] =", what, tool->tool->word);
    if (text.len > MAX_LITERAL)
        put_char_array(out, peg__buf_view(&text));
    else
        put_pieces(out, out->len - start, peg__buf_view(&text));
    (void)gen_text_of(out, &text);
    peg__buf_free(&text);
}

static void put_tag_array(struct peg__buf *out, const struct c_tool *tool)
{
    if (!tool->tool->tags)
        return;
    peg__buf_printf(out, "static const char *const tags_of_%s[] = {\n", tool->tool->word);
    PEG_JSON_EACH_ITEM (tool->tool->tags, tag) {
        peg__buf_puts(out, "    ");
        c_put_literal(out, peg_json_str(tag));
        peg__buf_puts(out, ",\n");
    }
    peg__buf_puts(out, "    NULL,\n};\n\n");
}

/* ---- handlers ----------------------------------------------------------------------------- */

static void put_handler(const struct c_names *names, struct peg__buf *out,
                        const struct c_tool *tool)
{
    const char *args = c_spell(names, tool->tool->args);
    const char *result = c_spell(names, tool->tool->result);

    peg__buf_printf(out,
                    "static void handle_%s(peg_call *call, const peg_json *json, void *user)\n{\n"
                    "    peg_arena *arena = peg_arena_new();\n"
                    "    peg_encoder *encoder = peg_encoder_new();\n"
                    "    %s args;\n    %s result;\n    peg_error error;\n\n"
                    "    memset(&result, 0, sizeof(result));\n"
                    "    result.arena = arena;\n"
                    "    if (!arena || !encoder) {\n"
                    "        (void)peg_call_reply_encoded(call, NULL); /* out of memory */\n"
                    "    } else if (%s_decode(json, arena, &args, &error)) {\n"
                    "        (void)peg_call_fail_with(call, &error);\n"
                    "    } else if (%s_run(&args, &result, call, user)) {\n"
                    "        /* Counts if the handler gave no reason. */\n"
                    "        (void)peg_call_fail(call, \"the tool failed and gave no reason\");\n"
                    "    } else if (peg_arena_has_failed(arena)) {\n"
                    "        (void)peg_call_reply_encoded(call, NULL);\n",
                    tool->tool->word, args, result, args, tool->name);
    if (tool->tool->n_server_data)
        peg__buf_printf(out,
                        "    } else if (%s_send_server_data(&result, call, encoder) == PEG_OK) {\n",
                        result);
    else
        peg__buf_puts(out, "    } else {\n");
    peg__buf_printf(out,
                    "        %s_encode(&result, encoder);\n"
                    "        (void)peg_call_reply_encoded(call, encoder);\n"
                    "    }\n"
                    "    peg_encoder_free(encoder);\n    peg_arena_free(arena);\n}\n\n",
                    result);
}

static void put_def_field(struct peg__buf *out, const char *name, peg_str text)
{
    peg__buf_printf(out, "        .%s = ", name);
    c_put_literal(out, text);
    peg__buf_puts(out, ",\n");
}

static void put_def_flag(struct peg__buf *out, const char *name, bool is_set)
{
    if (is_set)
        peg__buf_printf(out, "        .%s = true,\n", name);
}

static void put_reference(struct peg__buf *out, const char *field, const char *what,
                          const struct c_tool *tool, const peg_json *value)
{
    if (value)
        peg__buf_printf(out, "        .%s = %s_of_%s,\n", field, what, tool->tool->word);
}

static void put_tool_constructor(struct peg__buf *out, const struct c_tool *c)
{
    const struct gen_tool *tool = c->tool;

    peg__buf_printf(out,
                    "static peg_status add_%s(peg_registry *registry, void *user, peg_error "
                    "*reterr)\n{\n"
                    "    const peg_tool_def def = {\n        PEG_TOOL_DEF_INIT,\n",
                    tool->word);
    put_def_field(out, "name", tool->name);
    put_def_field(out, "description", tool->description);
    put_reference(out, "input_schema", "input", c, tool->input_schema);
    put_reference(out, "output_schema", "output", c, tool->output_schema);
    peg__buf_printf(out, "        .run = handle_%s,\n        .user = user,\n", tool->word);
    put_def_flag(out, "read_only", tool->is_read_only);
    put_def_flag(out, "idempotent", tool->is_idempotent);
    put_def_flag(out, "destructive", tool->is_destructive);
    put_def_flag(out, "additive", tool->is_additive);
    if (tool->timeout_ms)
        peg__buf_printf(out, "        .timeout_ms = %lld,\n", (long long)tool->timeout_ms);
    if (tool->version.len)
        put_def_field(out, "version", tool->version);
    put_reference(out, "tags", "tags", c, tool->tags);
    put_reference(out, "examples", "examples", c, tool->examples);
    peg__buf_puts(out, "    };\n"
                       "    peg_tool *tool = NULL;\n"
                       "    peg_status status = peg_tool_new(&def, &tool, reterr);\n\n"
                       "    if (!status)\n"
                       "        status = peg_registry_register(registry, tool, false, reterr);\n"
                       "    peg_tool_unref(tool);\n    return status;\n}\n\n");
}

void c_write_provider_c(const struct c_names *names, struct peg__buf *out)
{
    peg__buf_puts(out, "#include \"provider.h\"\n\n#include <string.h>\n\n");
    C_EACH_TOOL(names, tool)
    {
        put_json_constant(out, "input", tool, tool->tool->input_schema);
        put_json_constant(out, "output", tool, tool->tool->output_schema);
        put_json_constant(out, "examples", tool, tool->tool->examples);
        put_tag_array(out, tool);
        put_handler(names, out, tool);
        put_tool_constructor(out, tool);
    }
    c_put_callf(out,
                (const char *const[]){"void *user", "peg_registry **ret_registry",
                                      "peg_error *reterr", NULL},
                ")\n{\n", "peg_status %s_registry_new(", names->prefix);
    peg__buf_puts(out, "    peg_registry *registry = NULL;\n"
                       "    peg_status status = peg_registry_new(NULL, 0, &registry, reterr);\n\n");
    C_EACH_TOOL(names, tool)
    peg__buf_printf(out, "    if (!status)\n        status = add_%s(registry, user, reterr);\n",
                    tool->tool->word);
    peg__buf_puts(out, "    if (status)\n        peg_registry_unref(registry);\n    else\n"
                       "        *ret_registry = registry;\n    return status;\n}\n");
}
