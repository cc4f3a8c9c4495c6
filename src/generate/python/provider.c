/* SPDX-License-Identifier: Apache-2.0 */

/* provider.py: a method to write for each tool, and a provider of them. */

#include "base/text/str.h"
#include "generate/python/internal.h"
#include "json/json.h"

static void put_json(struct peg__buf *out, const char *what, const struct py_tool *tool,
                     const peg_json *value)
{
    struct peg__buf text = PEG__BUF(out->max);
    struct peg__buf head = PEG__BUF(1 << 16);

    if (!value)
        return;
    peg__json_write(value, PEG_JSON_COMPACT, &text);
    peg__buf_printf(&head, "_%s_of_%s = ", what, tool->tool->word);
    (void)gen_text_of(out, &text);
    py_put_value(out, 0, gen_text_of(out, &head), peg__buf_view(&text), "");
    peg__buf_free(&text);
    peg__buf_free(&head);
}

static void put_tag_list(const struct py_names *names, struct peg__buf *out, unsigned indent,
                         const char *head, const peg_json *tags, const char *tail)
{
    const size_t n = peg_json_len(tags);
    const char **items = peg__arena_alloc_zero(names->arena, (n + 1) * sizeof(*items));
    size_t i = 0;

    if (!items) {
        out->status = PEG_ENOMEM;
        return;
    }
    PEG_JSON_EACH_ITEM (tags, tag) {
        struct peg__buf text = PEG__BUF(1 << 16);

        py_put_literal(&text, peg_json_str(tag));
        items[i++] = py_keep(names, out, &text);
    }
    py_put_call(out, indent, head, items, n, tail);
}

/* ---- the protocol ------------------------------------------------------------------------- */

static void put_handler_method(const struct py_names *names, struct peg__buf *out,
                               const struct py_tool *tool)
{
    struct peg__buf head = PEG__BUF(1 << 16);
    struct peg__buf args = PEG__BUF(1 << 16);
    struct peg__buf tail = PEG__BUF(1 << 16);

    peg__buf_printf(&head, "def %s(", tool->method);
    peg__buf_printf(&args, "args: types.%s", py_type_of(names, tool->tool->args)->name);
    peg__buf_printf(&tail,
                    ") -> typed.Answer[types.%s]:", py_type_of(names, tool->tool->result)->name);
    peg__buf_putc(out, '\n');
    py_put_call(out, 4, gen_text_of(out, &head),
                (const char *const[]){"self", gen_text_of(out, &args), "call: pegboard.Call", "/"},
                4, gen_text_of(out, &tail));
    py_put_docstring(out, 8, tool->tool->description);
    peg__buf_free(&head);
    peg__buf_free(&args);
    peg__buf_free(&tail);
}

static void put_protocol(const struct py_names *names, struct peg__buf *out)
{
    peg__buf_puts(
        out,
        "\n\nclass Tools(Protocol):\n"
        "    \"\"\"To be written: a method for each tool, async or not. The arguments fit the\n"
        "    schema. A ToolError tells the caller what is wrong. Methods that are not async are\n"
        "    called from several threads at once.\"\"\"\n");
    PY_EACH_TOOL(names, tool)
    put_handler_method(names, out, tool);
}

/* ---- the tools ---------------------------------------------------------------------------- */

static void put_flag(struct peg__buf *out, const char *name, bool is_set)
{
    if (is_set)
        peg__buf_printf(out, "            %s=True,\n", name);
}

static void put_reference(struct peg__buf *out, const char *name, const char *what,
                          const struct py_tool *tool, const peg_json *value)
{
    if (value)
        peg__buf_printf(out, "            %s=_%s_of_%s,\n", name, what, tool->tool->word);
}

static void put_typed_tool(const struct py_names *names, struct peg__buf *out,
                           const struct py_tool *p)
{
    const struct gen_tool *tool = p->tool;

    peg__buf_puts(out, "        typed.TypedTool(\n");
    py_put_value(out, 12, "", tool->name, ",");
    peg__buf_printf(out, "            tools.%s,\n            types.decode_%s,\n", p->method,
                    tool->args->name);
    py_put_value(out, 12, "description=", tool->description, ",");
    put_reference(out, "input_schema", "input", p, tool->input_schema);
    put_reference(out, "output_schema", "output", p, tool->output_schema);
    put_reference(out, "examples", "examples", p, tool->examples);
    if (tool->version.len)
        py_put_value(out, 12, "version=", tool->version, ",");
    if (tool->tags)
        put_tag_list(names, out, 12, "tags=[", tool->tags, "],");
    if (tool->timeout_ms)
        peg__buf_printf(out, "            timeout_ms=%lld,\n", (long long)tool->timeout_ms);
    put_flag(out, "idempotent", tool->is_idempotent);
    put_flag(out, "read_only", tool->is_read_only);
    put_flag(out, "destructive", tool->is_destructive);
    put_flag(out, "additive", tool->is_additive);
    peg__buf_puts(out, "        ),\n");
}

static void put_provider(const char *what, const char *does, const char *ends, struct peg__buf *out)
{
    peg__buf_printf(out,
                    "\n\ndef %s(tools: Tools, **options: Any) -> %s:\n"
                    "    \"\"\"%s, with the options of pegboard.%s().\"\"\"\n"
                    "    %spegboard.%s(\n        TOOLSET,\n        make_tools(tools),\n"
                    "        description=DESCRIPTION,\n        version=VERSION,\n"
                    "        tags=TAGS,\n        **options,\n    )\n",
                    what, ends[0] ? "pegboard.Provider" : "None", does, what, ends, what);
}

void py_write_provider(const struct py_names *names, struct peg__buf *out)
{
    peg__buf_puts(out, "\nfrom __future__ import annotations\n\nfrom typing import Any, Protocol\n"
                       "\nimport pegboard\nfrom pegboard import typed\n\nfrom . import types\n\n");
    py_put_value(out, 0, "TOOLSET = ", names->toolset->name, "");
    py_put_value(out, 0, "DESCRIPTION = ", names->toolset->description, "");
    py_put_value(out, 0, "VERSION = ", names->toolset->version, "");
    put_tag_list(names, out, 0, "TAGS: list[str] = [", names->toolset->tags, "]");
    peg__buf_putc(out, '\n');
    PY_EACH_TOOL(names, tool)
    {
        put_json(out, "input", tool, tool->tool->input_schema);
        put_json(out, "output", tool, tool->tool->output_schema);
        put_json(out, "examples", tool, tool->tool->examples);
    }
    put_protocol(names, out);
    peg__buf_puts(out, "\n\ndef make_tools(tools: Tools) -> list[pegboard.Tool[Any, Any]]:\n"
                       "    \"\"\"For a provider that offers others beside them.\"\"\"\n"
                       "    return [\n");
    PY_EACH_TOOL(names, tool)
    put_typed_tool(names, out, tool);
    peg__buf_puts(out, "    ]\n");
    put_provider("make_provider", "A provider of these tools", "return ", out);
    put_provider("serve", "Offers these tools until a signal ends it", "", out);
}
