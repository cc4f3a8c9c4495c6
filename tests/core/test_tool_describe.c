/* SPDX-License-Identifier: Apache-2.0 */

#include "tool_world.h"

static void check_described(const peg_tool *tool, const char *expected)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_tool_describe(tool, &doc, &error), PEG_OK, error);
    check_json(peg_json_root(doc), expected);
    peg_json_doc_free(doc);
}

/* T9 */
TEST(tool_describes_itself_as_plain_data)
{
    const peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{\"q\":{}}}");
    peg_tool *tool = make(&def);

    check_described(tool, "{\"name\":\"search\",\"description\":\"Finds things.\",\"inputSchema\":{"
                          "\"type\":\"object\",\"properties\":{\"q\":{}},"
                          "\"additionalProperties\":false}}");
    peg_tool_unref(tool);
}

TEST(tool_describes_what_else_there_is)
{
    const char *const tags[] = {"web", NULL};
    peg_tool_def def = minimal();
    peg_tool *tool;

    def.output_schema = "{\"type\":\"string\"}";
    def.version = "2";
    def.tags = tags;
    def.examples = "[{}]";
    def.read_only = def.destructive = true;
    def.meta = "{\"secret\":1}";
    tool = make(&def);

    check_described(tool,
                    "{\"name\":\"search\",\"description\":\"Finds things.\",\"inputSchema\":{"
                    "\"type\":\"object\",\"properties\":{},\"additionalProperties\":false},"
                    "\"outputSchema\":{\"type\":\"string\"},\"version\":\"2\",\"tags\":[\"web\"],"
                    "\"examples\":[{}],\"hints\":{\"readOnly\":true,\"destructive\":true}}");
    peg_tool_unref(tool);
}

/* T9 */
TEST(tool_descriptions_are_equal_and_independent)
{
    const peg_tool_def def = minimal();
    peg_tool *tool = make(&def);
    peg_json_doc *one = NULL;
    peg_json_doc *two = NULL;

    CHECK_INT(peg_tool_describe(tool, &one, NULL), PEG_OK);
    CHECK_INT(peg_tool_describe(tool, &two, NULL), PEG_OK);

    CHECK(one != two);
    CHECK(peg_json_equal(peg_json_root(one), peg_json_root(two)));
    peg_json_doc_free(one);
    peg_tool_unref(tool);
    CHECK_STR(peg_json_str(peg_json_get(peg_json_root(two), "name")), "search");
    peg_json_doc_free(two);
}

TORTURE(tool_survives_any_allocation_failure_while_it_describes_itself)
{
    const peg_tool_def def = minimal();
    peg_tool *tool = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_tool_new(&def, &tool, NULL);

    if (status == PEG_OK)
        status = peg_tool_describe(tool, &doc, NULL);
    peg_json_doc_free(doc);
    peg_tool_unref(tool);
    return status;
}
