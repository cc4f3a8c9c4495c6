/* SPDX-License-Identifier: Apache-2.0 */

/* client.h and client.c: a function to call for each tool. */

#include "base/text/str.h"
#include "generate/c/internal.h"

static void put_prototype(const struct c_names *names, struct peg__buf *out,
                          const struct c_tool *tool, const char *tail)
{
    struct peg__buf args = PEG__BUF(1 << 16);
    struct peg__buf result = PEG__BUF(1 << 16);

    peg__buf_printf(&args, "const %s *args", c_spell(names, tool->tool->args));
    peg__buf_printf(&result, "%s *ret_result", c_spell(names, tool->tool->result));
    c_put_callf(out,
                (const char *const[]){"peg_ctx *client", gen_text_of(out, &args),
                                      gen_text_of(out, &result), "peg_error *reterr", NULL},
                tail, "peg_status %s(", tool->name);
    peg__buf_free(&args);
    peg__buf_free(&result);
}

void c_write_client_h(const struct c_names *names, struct peg__buf *out)
{
    peg__buf_printf(
        out,
        "#ifndef %s_CLIENT_H\n#define %s_CLIENT_H\n\n#include <pegboard/ctx.h>\n\n"
        "#include \"types.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "/*\n"
        " * Calls of the tools. `client` is a context whose registry has them: one of this "
        "process, or one\n"
        " * that peg_client_import() made of a toolset behind a gateway.\n"
        " *\n"
        " *   status = peg_client_import(gateway, NULL, \"" PEG_FMT
        "\", NULL, &registry, &error);\n"
        " *   status = peg_ctx_with_registry(NULL, registry, &client, &error);\n"
        " *\n"
        " * Its deadline, cancellation and trace hold. *ret_result is written on success, and is "
        "to be given\n"
        " * to its _free(). PEG_EHOST (E_TYPED_CALL): the call has failed, the message says why; "
        "PEG_ESCHEMA\n"
        " * (E_DECODE, E_DECODE_RANGE): the result is not of its type; PEG_ELIMIT "
        "(E_DECODE_LIMIT): it is too\n"
        " * large; PEG_EINVAL (E_ENCODE, E_JSON_UTF8, E_JSON_NUMBER): the arguments are no JSON; "
        "PEG_ENOMEM,\n * and those of peg_call_run().\n"
        " */\n\n",
        names->upper, names->upper, PEG_ARG(names->toolset->name));
    C_EACH_TOOL(names, tool)
    {
        c_put_comment(out, 0, tool->tool->description);
        put_prototype(names, out, tool, ");\n");
    }
    peg__buf_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static void put_typed_call(const struct c_names *names, struct peg__buf *out,
                           const struct c_tool *tool)
{
    const char *args = c_spell(names, tool->tool->args);
    const char *result = c_spell(names, tool->tool->result);

    put_prototype(names, out, tool, ")\n{\n");
    peg__buf_printf(out,
                    "    peg_arena *arena = peg_arena_new();\n"
                    "    peg_encoder *encoder = peg_encoder_new();\n"
                    "    peg_typed_answer answer;\n    %s result;\n    peg_status status;\n\n"
                    "    memset(&result, 0, sizeof(result));\n"
                    "    %s_encode(args, encoder);\n"
                    "    status = peg_typed_call(client, ",
                    result, args);
    c_put_literal(out, tool->tool->name);
    peg__buf_printf(out,
                    ", encoder, arena, &answer, reterr);\n"
                    "    if (!status)\n"
                    "        status = %s_decode(answer.value, arena, &result, reterr);\n",
                    result);
    if (tool->tool->n_server_data)
        peg__buf_printf(out,
                        "    if (!status)\n"
                        "        status = %s_take_server_data(&answer, &result, reterr);\n",
                        result);
    peg__buf_puts(out, "    peg_encoder_free(encoder);\n"
                       "    if (status)\n        peg_arena_free(arena);\n"
                       "    else\n        *ret_result = result;\n"
                       "    return status;\n}\n");
}

void c_write_client_c(const struct c_names *names, struct peg__buf *out)
{
    peg__buf_puts(out, "#include \"client.h\"\n\n#include <string.h>\n");
    C_EACH_TOOL(names, tool)
    {
        peg__buf_putc(out, '\n');
        put_typed_call(names, out, tool);
    }
}
