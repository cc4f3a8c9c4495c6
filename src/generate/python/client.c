/* SPDX-License-Identifier: Apache-2.0 */

/* client.py: a method to call for each tool, waiting and for asyncio. */

#include "base/text/str.h"
#include "generate/python/internal.h"

/* How the two classes differ. */
struct flavor {
    const char *class_name;
    const char *about;
    const char *client;
    const char *def;
    const char *call;
};

static void put_call_method(const struct py_names *names, struct peg__buf *out,
                            const struct flavor *flavor, const struct py_tool *tool)
{
    const struct gen_tool *t = tool->tool;
    struct peg__buf head = PEG__BUF(1 << 16);

    peg__buf_printf(out,
                    "\n    %s %s(\n        self,\n        args: types.%s,\n        *,\n"
                    "        timeout: float | None = typed.TIMEOUT_S,\n"
                    "        idempotency_key: str | None = None,\n"
                    "        metadata: Mapping[str, str] | None = None,\n    ) -> types.%s:\n",
                    flavor->def, tool->method, py_type_of(names, t->args)->name,
                    py_type_of(names, t->result)->name);
    py_put_docstring(out, 8, t->description);
    peg__buf_printf(out, "        reply = %s(\n            self._client,\n            TOOLSET,\n",
                    flavor->call);
    py_put_value(out, 12, "", t->name, ",");
    peg__buf_puts(out, "            args,\n            timeout=timeout,\n"
                       "            idempotency_key=idempotency_key,\n"
                       "            metadata=metadata,\n        )\n");
    peg__buf_printf(&head, "return types.decode_%s(", t->result->name);
    py_put_call(out, 8, gen_text_of(out, &head),
                (const char *const[]){"reply.value", "\"\"", "reply.server_data"},
                t->n_server_data ? 3 : 1, ")");
    peg__buf_free(&head);
}

static void put_class(const struct py_names *names, struct peg__buf *out,
                      const struct flavor *flavor)
{
    peg__buf_printf(out,
                    "\n\nclass %s:\n    \"\"\"%s\"\"\"\n\n"
                    "    def __init__(self, client: %s) -> None:\n"
                    "        self._client = client\n",
                    flavor->class_name, flavor->about, flavor->client);
    PY_EACH_TOOL(names, tool)
    put_call_method(names, out, flavor, tool);
}

void py_write_client(const struct py_names *names, struct peg__buf *out)
{
    static const struct flavor waits = {
        "Client",
        "Calls the tools with a client of pegboard.connect(). A method raises a ToolError,\n"
        "    a PegboardError, or a typed.DecodeError if the result is not of its type.",
        "pegboard.Client", "def", "typed.call"};
    static const struct flavor awaits = {"AsyncClient",
                                         "The same with a client of pegboard.aio.connect().",
                                         "aio.Client", "async def", "await typed.call_async"};

    peg__buf_puts(out, "\nfrom __future__ import annotations\n\nfrom typing import Mapping\n\n"
                       "import pegboard\nfrom pegboard import aio, typed\n\n"
                       "from . import types\n\n");
    py_put_value(out, 0, "TOOLSET = ", names->toolset->name, "");
    put_class(names, out, &waits);
    put_class(names, out, &awaits);
}
