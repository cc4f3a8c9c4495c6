/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP server with one tool, for any client: `command` of its configuration is this program. */
#include <pegboard/mcp.h>
#include <stdio.h>

static void forecast(peg_call *call, const peg_json *args, void *user)
{
    (void)user; /* the arguments are what the schema says: that was checked */
    peg_call_replyf(call, "%s: sunny for %g days", peg_json_str(peg_json_get(args, "city")).ptr,
                    peg_json_double(peg_json_get(args, "days")));
}

int main(void)
{
    const char *schema = "{\"type\": \"object\", \"required\": [\"city\"], \"properties\": {"
                         "  \"city\": {\"type\": \"string\"},"
                         "  \"days\": {\"type\": \"integer\", \"maximum\": 14, \"default\": 3}}}";
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "forecast",       "Tells the weather", schema,
                              .run = forecast,   .read_only = true};
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "weather", .version = "1.0"};
    peg_tool *tool = NULL;
    peg_registry *registry = NULL;
    peg_error error;

    if (peg_tool_new(&def, &tool, &error) || peg_registry_new(&tool, 1, &registry, &error) ||
        peg_mcp_serve_stdio(registry, &options, &error))
        return fprintf(stderr, "%s: %s\n", error.code, error.message), 2;
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return 0;
}
