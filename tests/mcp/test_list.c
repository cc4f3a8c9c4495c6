/* SPDX-License-Identifier: Apache-2.0 */

#include "world.h"

static void copy_cursor(const struct world *w, char ret_cursor[128])
{
    const char *at = strstr(w->sent[0], "\"nextCursor\":\"");

    CHECK(at);
    at += strlen("\"nextCursor\":\"");
    snprintf(ret_cursor, 128, "%.*s", (int)strcspn(at, "\""), at);
}

TEST(tools_are_listed_page_by_page)
{
    struct world w;
    char cursor[128];
    char text[512];

    world_init(&w);
    w.n_tools = 7;

    receive(&w, M("1", "tools/list", ""));
    CHECK_INT(t_count(w.sent[0], "\"name\":\"tool"), 3);
    CHECK_HAS(&w, 0, "\"ttlMs\":5000,\"cacheScope\":\"public\"");
    copy_cursor(&w, cursor);
    snprintf(text, sizeof(text), M("2", "tools/list", "\"cursor\":\"%s\","), cursor);
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"name\":\"tool3\"");
    copy_cursor(&w, cursor);
    snprintf(text, sizeof(text), L("3", "tools/list", "{\"cursor\":\"%s\"}"), cursor);
    receive(&w, text);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[{\"name\":\"tool6\","
                   "\"inputSchema\":{\"type\":\"object\"}}]}}");
    world_free(&w);
}

TEST(empty_lists_are_there_for_modern_clients)
{
    static const char *const lists[] = {"resources/list", "resources/templates/list",
                                        "prompts/list"};
    struct world w;
    char text[512];

    world_init(&w);
    w.source.offers = MCP_OFFERS_TOOLS | MCP_OFFERS_EMPTY_LISTS;
    receive(&w, M("1", "server/discover", ""));
    CHECK_HAS(&w, 0, "\"resources\":{},\"prompts\":{}");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        snprintf(text, sizeof(text), M("1", "%s", ""), lists[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\":[],\"ttlMs\":5000,\"cacheScope\":\"public\"");
        snprintf(text, sizeof(text), L("2", "%s", "{}"), lists[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32601");
    }
    receive(&w, M("3", "resources/read", "\"uri\":\"a:b\","));
    CHECK_HAS(&w, 0, "\"code\":-32602");
    receive(&w, M("4", "prompts/get", "\"name\":\"p\","));
    CHECK_HAS(&w, 0, "\"code\":-32602");
    CHECK_INT(w.n_calls, 0);
    world_free(&w);
}

TEST(cursor_that_no_page_gave_is_refused)
{
    static const char *const cursors[] = {"\"\"",     "\"!\"", "7",        "null",     "\"cDEw\"",
                                          "\"dGFi\"", "{}",    "\"dA==\"", "\"AAAA\"", "\"MTA=\""};
    struct world w;
    char text[512];

    world_init(&w);
    w.n_tools = 7;
    for (size_t i = 0; i < sizeof(cursors) / sizeof(cursors[0]); i++) {
        snprintf(text, sizeof(text), M("1", "tools/list", "\"cursor\":%s,"), cursors[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32602");
    }
    world_free(&w);
}

static peg_json_doc *parse(const char *text)
{
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(text), NULL, &doc, NULL), PEG_OK);
    return doc;
}

TEST(tool_tells_all_that_its_author_said)
{
    static const char *const tags[] = {"a", "b", NULL};
    peg_json_doc *input = parse("{\"type\":\"object\",\"properties\":{\"x\":true,\"y\":false}}");
    peg_json_doc *output = parse("{\"type\":\"array\"}");
    peg_json_doc *examples = parse("[{\"x\":1}]");
    const struct mcp_tool tool = {.name = peg__str("t"),
                                  .title = peg__str("T"),
                                  .description = peg__str("d"),
                                  .input_schema = peg_json_root(input),
                                  .output_schema = peg_json_root(output),
                                  .is_read_only = true,
                                  .is_idempotent = true,
                                  .version = "1.2",
                                  .tags = tags,
                                  .examples = peg_json_root(examples),
                                  .artifact_kind = "markdown"};
    struct world w;

    world_init(&w);
    w.tools = &tool;
    w.n_tools = 1;
    receive(&w, M("1", "tools/list", ""));
    CHECK_HAS(&w, 0,
              "[{\"name\":\"t\",\"title\":\"T\",\"description\":\"d\",\"inputSchema\":{\"type\":"
              "\"object\",\"properties\":{\"x\":true,\"y\":false}},\"outputSchema\":{\"type\":"
              "\"array\"},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true},"
              "\"_meta\":{\"pegboard/version\":\"1.2\",\"pegboard/tags\":[\"a\",\"b\"],"
              "\"pegboard/examples\":[{\"x\":1}],\"pegboard/artifact-kind\":\"markdown\"}}]");
    /* Legacy clients take schemas that are objects, and structured results that are. */
    receive(&w, L("2", "tools/list", "{}"));
    CHECK_HAS(&w, 0, "\"properties\":{\"x\":{},\"y\":{\"not\":{}}}},\"annotations\"");
    world_free(&w);
    peg_json_doc_free(input);
    peg_json_doc_free(output);
    peg_json_doc_free(examples);
}

TEST(schema_without_a_type_at_its_root_is_listed_as_an_object)
{
    peg_json_doc *input = parse("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"object\"}}}");
    peg_json_doc *several = parse("{\"type\":[\"object\",\"null\"]}");
    const struct mcp_tool tools[] = {
        {.name = peg__str("t"), .input_schema = peg_json_root(input), .is_destructive = true},
        {.name = peg__str("u"),
         .input_schema = peg_json_root(several),
         .output_schema = peg_json_root(several)},
        {.name = peg__str("v"), .input_schema = peg_json_root(several), .is_additive = true}};
    struct world w;

    world_init(&w);
    w.tools = tools;
    w.n_tools = 3;
    receive(&w, L("1", "tools/list", "{}"));
    CHECK_HAS(&w, 0, "{\"type\":\"object\",\"$ref\":\"#/$defs/a\",");
    CHECK_HAS(&w, 0, "\"annotations\":{\"destructiveHint\":true}");
    CHECK_HAS(&w, 0, "{\"name\":\"u\",\"inputSchema\":{\"type\":\"object\"}},");
    /* Clients take a tool for destructive if it does not say otherwise. */
    CHECK_HAS(&w, 0, "\"annotations\":{\"destructiveHint\":false}}]");
    world_free(&w);
    peg_json_doc_free(input);
    peg_json_doc_free(several);
}

TORTURE(list_survives_any_allocation_failure)
{
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    w.n_tools = 7;
    config = world_config(&w);
    status = world_open(&w, &config);
    if (!status)
        status = receive(&w, M("1", "tools/list", "\"cursor\":\"dDM=\","));
    if (!status && !strstr(w.sent[0], "\"tool3\""))
        status = strstr(w.sent[0], "-32603") ? PEG_ENOMEM : PEG_ESTATE;
    world_free(&w);
    return status;
}
