/* SPDX-License-Identifier: Apache-2.0 */

/* client.ts: a class with a method to call for each tool. */

#include <string.h>

#include "base/text/str.h"
#include "generate/ts/internal.h"

static bool declares_server_data(const struct ts_names *names)
{
    TS_EACH_TOOL(names, tool)
    {
        if (tool->answer)
            return true;
    }
    return false;
}

/* A call without arguments need not hand over {}. */
static bool needs_args(const struct gen_type *args)
{
    for (size_t i = 0; i < args->n_members; i++) {
        if (args->members[i].is_required)
            return true;
    }
    return false;
}

static void put_signature(const struct ts_names *names, struct peg__buf *out,
                          const struct ts_tool *tool)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf args = PEG__BUF(1 << 16);
    struct peg__buf tail = PEG__BUF(1 << 16);

    peg__buf_printf(&head, "%s%s(", tool->answer ? "async " : "", tool->method);
    peg__buf_printf(&args, "args%s: %s", needs_args(tool->tool->args) ? "" : "?",
                    ts_name_of(names, tool->tool->args));
    peg__buf_printf(&tail, "): Promise<%s> {\n",
                    tool->answer ? tool->answer : ts_name_of(names, tool->tool->result));
    ts_put_list(
        out, 2, gen_text_of(out, &head),
        (const char *const[]){gen_text_of(out, &args), "options?: pegboard.CallOptions", NULL},
        gen_text_of(out, &tail));
    peg__buf_free(&head);
    peg__buf_free(&args);
    peg__buf_free(&tail);
}

/* Text is taken as JSON, which arguments of a schema that names no type may be. */
static const char *spell_args(const struct gen_type *args)
{
    return args->is_wrapper ? "JSON.stringify(args)" : "args";
}

static void put_request(const struct ts_names *names, struct peg__buf *out,
                        const struct ts_tool *tool)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf name = PEG__BUF(1 << 16);

    peg__buf_printf(&head,
                    tool->answer ? "const { value, serverData } = await "
                                   "this.#client.callWithServerData<%s>("
                                 : "return this.#client.call<%s>(",
                    ts_name_of(names, tool->tool->result));
    ts_put_literal(&name, tool->tool->name);
    ts_put_list(out, 4, gen_text_of(out, &head),
                (const char *const[]){"this.#toolset", gen_text_of(out, &name),
                                      spell_args(tool->tool->args), "options", NULL},
                ");\n");
    peg__buf_free(&head);
    peg__buf_free(&name);
}

/* ["forecastChart", "forecast.chart", false] */
static void put_wanted(struct peg__buf *out, const struct ts_tool *tool, size_t i)
{
    const struct gen_server_data *data = &tool->tool->server_data[i];

    peg__buf_printf(out, "[\"%s\", ", tool->data[i]);
    ts_put_literal(out, data->kind);
    peg__buf_printf(out, ", %s]", data->is_always ? "true" : "false");
}

static void put_taking(struct peg__buf *out, const struct ts_tool *tool)
{
    static const char head[] = "    const members = membersOf(serverData, [";
    struct peg__buf first = PEG__BUF(1 << 16);

    put_wanted(&first, tool, 0);
    peg__buf_puts(out, head);
    if (tool->tool->n_server_data == 1 && strlen(head) + first.len + 3 <= TS_COLUMNS) {
        peg__buf_puts(out, gen_text_of(out, &first));
    } else {
        for (size_t i = 0; i < tool->tool->n_server_data; i++) {
            peg__buf_puts(out, "\n      ");
            put_wanted(out, tool, i);
            peg__buf_putc(out, ',');
        }
        peg__buf_puts(out, "\n    ");
    }
    peg__buf_printf(out, "]);\n    return { result: value, serverData: members as %s };\n",
                    tool->beside);
    peg__buf_free(&first);
}

static void put_method(const struct ts_names *names, struct peg__buf *out,
                       const struct ts_tool *tool)
{
    peg__buf_putc(out, '\n');
    ts_put_comment(out, 2, tool->tool->description);
    put_signature(names, out, tool);
    put_request(names, out, tool);
    if (tool->answer)
        put_taking(out, tool);
    peg__buf_puts(out, "  }\n");
}

static const char members_of[] =
    "\n/** Server-data by the names of its members: [name, kind, whether each result has it]. */\n"
    "function membersOf(\n"
    "  serverData: pegboard.ServerData[],\n"
    "  wanted: [name: string, kind: string, isAlways: boolean][],\n"
    "): unknown {\n"
    "  const members: Record<string, unknown> = {};\n"
    "  for (const [name, kind, isAlways] of wanted) {\n"
    "    const found = serverData.find((one) => one.kind === kind);\n"
    "    if (found) members[name] = found.data;\n"
    "    else if (isAlways) throw new TypeError(`the result has no server-data of the kind "
    "${kind}`);\n"
    "  }\n"
    "  return members;\n"
    "}\n";

void ts_write_client(const struct ts_names *names, struct peg__buf *out)
{
    const bool has_server_data = declares_server_data(names);
    struct peg__buf toolset = PEG__BUF(1 << 16);

    ts_put_literal(&toolset, names->toolset->name);
    peg__buf_puts(out, "import type * as pegboard from \"pegboard\";\n");
    ts_put_imports(names, out, true);
    peg__buf_printf(out,
                    "/** A client of a gateway, or what a test has in its place. */\n"
                    "export type Caller = Pick<pegboard.Client, \"call\"%s>;\n\n",
                    has_server_data ? " | \"callWithServerData\"" : "");
    peg__buf_printf(out,
                    "/** Calls of the tools. They throw a pegboard.ToolError if the tool ran and "
                    "failed. */\n"
                    "export class %s {\n"
                    "  readonly #client: Caller;\n"
                    "  readonly #toolset: string;\n\n"
                    "  /** `toolset` is its name at the gateway. */\n"
                    "  constructor(client: Caller, toolset = %s) {\n"
                    "    this.#client = client;\n"
                    "    this.#toolset = toolset;\n"
                    "  }\n",
                    names->client, gen_text_of(out, &toolset));
    TS_EACH_TOOL(names, tool)
    put_method(names, out, tool);
    peg__buf_puts(out, "}\n");
    if (has_server_data)
        peg__buf_puts(out, members_of);
    peg__buf_free(&toolset);
}
