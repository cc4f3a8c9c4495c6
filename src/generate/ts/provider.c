/* SPDX-License-Identifier: Apache-2.0 */

/* provider.ts: an interface to implement, and a provider of an implementation. */

#include "base/text/str.h"
#include "generate/ts/internal.h"
#include "json/json.h"

/* ---- what is to be written ---------------------------------------------------------------- */

/* Properties, not methods: of these the compiler would accept narrower arguments. */
static void put_interface_of_tools(const struct ts_names *names, struct peg__buf *out)
{
    peg__buf_printf(
        out,
        "/**\n"
        " * To be written: one method for each tool. The gateway has checked the arguments, and "
        "checks the\n"
        " * result. Throw a pegboard.ToolError to tell the caller what is wrong.\n"
        " */\n"
        "export interface %s {\n",
        names->implementation);
    TS_EACH_TOOL(names, tool)
    {
        const char *args = ts_name_of(names, tool->tool->args);
        const char *result = ts_name_of(names, tool->tool->result);

        ts_put_comment(out, 2, tool->tool->description);
        if (tool->answer)
            peg__buf_printf(out, "  %s: (args: %s, call: pegboard.Call) => %s | Promise<%s>;\n",
                            tool->method, args, tool->answer, tool->answer);
        else
            peg__buf_printf(out, "  %s: pegboard.Handler<%s, %s>;\n", tool->method, args, result);
    }
    peg__buf_puts(out, "}\n\n");
}

/* ---- definitions -------------------------------------------------------------------------- */

static void put_json_field(struct peg__buf *out, const char *head, const peg_json *value)
{
    struct peg__buf text = PEG__BUF(out->max);

    if (!value)
        return;
    peg__json_write(value, PEG_JSON_COMPACT, &text);
    (void)gen_text_of(out, &text);
    ts_put_text(out, 8, head, peg__buf_view(&text), ",\n");
    peg__buf_free(&text);
}

static void put_flag_field(struct peg__buf *out, const char *name, bool is_set)
{
    if (is_set)
        peg__buf_printf(out, "        %s: true,\n", name);
}

static void put_tag_field(struct peg__buf *out, unsigned indent, const peg_json *tags)
{
    const char *between = "";

    if (!tags)
        return;
    peg__buf_repeat(out, ' ', indent);
    peg__buf_puts(out, "tags: [");
    PEG_JSON_EACH_ITEM (tags, tag) {
        peg__buf_puts(out, between);
        ts_put_literal(out, peg_json_str(tag));
        between = ", ";
    }
    peg__buf_puts(out, "],\n");
}

static void put_tool_definition(struct peg__buf *out, const struct gen_tool *tool)
{
    peg__buf_puts(out, "      {\n");
    ts_put_text(out, 8, "name:", tool->name, ",\n");
    ts_put_text(out, 8, "description:", tool->description, ",\n");
    if (tool->input_schema)
        put_json_field(out, "input:", tool->input_schema);
    else /* takes no arguments */
        peg__buf_puts(out,
                      "        input: '{\"type\":\"object\",\"additionalProperties\":false}',\n");
    put_json_field(out, "output:", tool->output_schema);
    put_flag_field(out, "readOnly", tool->is_read_only);
    put_flag_field(out, "idempotent", tool->is_idempotent);
    put_flag_field(out, "destructive", tool->is_destructive);
    put_flag_field(out, "additive", tool->is_additive);
    if (tool->timeout_ms)
        peg__buf_printf(out, "        timeoutMs: %lld,\n", (long long)tool->timeout_ms);
    if (tool->version.len)
        ts_put_text(out, 8, "version:", tool->version, ",\n");
    put_tag_field(out, 8, tool->tags);
    put_json_field(out, "examples:", tool->examples);
    peg__buf_puts(out, "      },\n");
}

/* ---- handlers ----------------------------------------------------------------------------- */

static void put_add_server_data(struct peg__buf *out, unsigned indent,
                                const struct gen_server_data *data, const char *member)
{
    struct peg__buf kind = PEG__BUF(1 << 16);
    struct peg__buf audience = PEG__BUF(1 << 16);
    struct peg__buf value = PEG__BUF(1 << 16);

    ts_put_literal(&kind, data->kind);
    ts_put_literal(&audience, data->audience);
    peg__buf_printf(&value, "serverData.%s", member);
    ts_put_list(out, indent, "call.addServerData(",
                (const char *const[]){gen_text_of(out, &kind), gen_text_of(out, &audience),
                                      gen_text_of(out, &value), NULL},
                ");\n");
    peg__buf_free(&kind);
    peg__buf_free(&audience);
    peg__buf_free(&value);
}

static void put_answering_handler(struct peg__buf *out, const struct ts_tool *tool)
{
    peg__buf_printf(out,
                    "      async (args, call) => {\n"
                    "        const { result, serverData } = await tools.%s(args, call);\n",
                    tool->method);
    for (size_t i = 0; i < tool->tool->n_server_data; i++) {
        const struct gen_server_data *data = &tool->tool->server_data[i];

        if (data->is_always) {
            put_add_server_data(out, 8, data, tool->data[i]);
            continue;
        }
        peg__buf_printf(out, "        if (serverData.%s !== undefined) {\n", tool->data[i]);
        put_add_server_data(out, 10, data, tool->data[i]);
        peg__buf_puts(out, "        }\n");
    }
    peg__buf_puts(out, "        return result;\n      },\n");
}

static void put_tool_list(const struct ts_names *names, struct peg__buf *out)
{
    peg__buf_printf(out,
                    "/** The tools of an implementation, for pegboard.serve() beside others. */\n"
                    "export function makeTools(tools: %s): pegboard.Tool[] {\n  return [\n",
                    names->implementation);
    TS_EACH_TOOL(names, tool)
    {
        peg__buf_printf(out, "    pegboard.tool<%s, %s>(\n", ts_name_of(names, tool->tool->args),
                        ts_name_of(names, tool->tool->result));
        put_tool_definition(out, tool->tool);
        if (tool->answer)
            put_answering_handler(out, tool);
        else
            peg__buf_printf(out, "      (args, call) => tools.%s(args, call),\n", tool->method);
        peg__buf_puts(out, "    ),\n");
    }
    peg__buf_puts(out, "  ];\n}\n\n");
}

/* ---- the file ----------------------------------------------------------------------------- */

static void put_about(struct peg__buf *out, const struct gen_toolset *toolset)
{
    peg__buf_puts(out, "/** The name of the toolset. */\n");
    ts_put_text(out, 0, "export const TOOLSET =", toolset->name, ";\n");
    peg__buf_puts(out, "\nconst about = {\n");
    ts_put_text(out, 2, "description:", toolset->description, ",\n");
    if (toolset->version.len)
        ts_put_text(out, 2, "version:", toolset->version, ",\n");
    put_tag_field(out, 2, toolset->tags);
    peg__buf_puts(out, "};\n\n");
}

static void put_offering_function(const struct ts_names *names, struct peg__buf *out,
                                  const char *name, const char *options, const char *result)
{
    struct peg__buf head = PEG__BUF(1 << 12);
    struct peg__buf tools = PEG__BUF(1 << 16);
    struct peg__buf more = PEG__BUF(1 << 12);
    struct peg__buf tail = PEG__BUF(1 << 12);

    peg__buf_printf(&head, "export function %s(", name);
    peg__buf_printf(&tools, "tools: %s", names->implementation);
    peg__buf_printf(&more, "options: pegboard.%s = {}", options);
    peg__buf_printf(&tail, "): %s {\n", result);
    ts_put_list(out, 0, gen_text_of(out, &head),
                (const char *const[]){gen_text_of(out, &tools), gen_text_of(out, &more), NULL},
                gen_text_of(out, &tail));
    peg__buf_printf(out,
                    "  return pegboard.%s(TOOLSET, makeTools(tools), { ...about, ...options });\n"
                    "}\n",
                    name);
    peg__buf_free(&head);
    peg__buf_free(&tools);
    peg__buf_free(&more);
    peg__buf_free(&tail);
}

void ts_write_provider(const struct ts_names *names, struct peg__buf *out)
{
    peg__buf_puts(out, "import * as pegboard from \"pegboard\";\n");
    ts_put_imports(names, out, false);
    put_about(out, names->toolset);
    put_interface_of_tools(names, out);
    put_tool_list(names, out);
    peg__buf_puts(out,
                  "/** A provider of an implementation, for programs that have their own way to "
                  "stop. */\n");
    put_offering_function(names, out, "makeProvider", "ProviderOptions", "pegboard.Provider");
    peg__buf_puts(out, "\n/** Offers an implementation until SIGTERM or SIGINT, then finishes what "
                       "runs. */\n");
    put_offering_function(names, out, "serve", "ServeOptions", "Promise<void>");
}
