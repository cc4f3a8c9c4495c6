/* SPDX-License-Identifier: Apache-2.0 */

#include "world.h"

TEST(schemas_of_both_revisions_are_there)
{
    char path[SUITE_PATH];

    if (!schemas_find(path))
        SKIP("there is no ../shared/data/mcp, and PEG_MCP_DATA is not set");
    CHECK(path[0]);
}

TEST(initialize_answers_with_the_clients_version_and_what_is_offered)
{
    struct world w;

    world_init(&w);

    receive(&w, L("1", "initialize",
                  "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{}}"));

    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\","
                   "\"capabilities\":{\"tools\":{\"listChanged\":true},\"logging\":{}},"
                   "\"serverInfo\":{\"name\":\"test\",\"version\":\"1\"}}}");
    world_free(&w);
}

TEST(initialize_keeps_2025_06_18_and_answers_other_versions_with_the_latest)
{
    struct world w;

    world_init(&w);
    receive(&w, L("1", "initialize", "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}"));
    CHECK_HAS(&w, 0, "\"protocolVersion\":\"2025-06-18\"");
    world_free(&w);

    world_init(&w);
    receive(&w, L("1", "initialize", "{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{}}"));
    CHECK_HAS(&w, 0, "\"protocolVersion\":\"2025-11-25\"");
    world_free(&w);
}

TEST(initialize_is_refused_twice_and_without_its_params)
{
    struct world w;

    world_init(&w);
    receive(&w, L("1", "initialize", "{}"));
    CHECK_HAS(&w, 0, "\"code\":-32602");
    initialize(&w, "{}");
    receive(&w, L("2", "initialize", "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}"));
    CHECK_HAS(&w, 0, "\"code\":-32600");
    world_free(&w);
}

TEST(ping_is_answered_before_and_after_initialize_and_is_no_modern_method)
{
    struct world w;

    world_init(&w);
    receive(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}");
    initialize(&w, "{}");
    receive(&w, L("7", "ping", "{}"));
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
    receive(&w, M("8", "ping", ""));
    CHECK_HAS(&w, 0, "\"code\":-32601");
    CHECK_INT(w.how[0].http_status, 404);
    world_free(&w);
}

TEST(discover_tells_versions_capabilities_and_how_long_they_hold)
{
    struct world w;

    world_init(&w);
    receive(&w, M("\"d\"", "server/discover", ""));
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"result\":{\"resultType\":\"complete\","
                   "\"supportedVersions\":[\"2026-07-28\"],"
                   "\"capabilities\":{\"tools\":{\"listChanged\":true},\"logging\":{}},"
                   "\"ttlMs\":5000,\"cacheScope\":\"public\",\"_meta\":{" INFO "}}}");
    CHECK(w.how[0].is_end);
    CHECK_INT(w.how[0].http_status, 200);
    world_free(&w);
}

TEST(modern_request_of_another_version_learns_which_are_supported)
{
    struct world w;

    world_init(&w);
    receive(&w, L("1", "tools/list",
                  "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\","
                  "\"io.modelcontextprotocol/clientCapabilities\":{}}}"));
    CHECK_HAS(&w, 0, "\"code\":-32022");
    CHECK_HAS(&w, 0, "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"1900-01-01\"}");
    CHECK_INT(w.how[0].http_status, 400);
    world_free(&w);
}

TEST(modern_request_without_required_metadata_is_malformed)
{
    static const char *const metas[] = {
        "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}",
        "{\"io.modelcontextprotocol/clientCapabilities\":{}}",
        "{\"io.modelcontextprotocol/protocolVersion\":7,"
        "\"io.modelcontextprotocol/clientCapabilities\":{}}",
        "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":[]}",
        "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{},"
        "\"io.modelcontextprotocol/logLevel\":\"loud\"}",
        "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{},\"progressToken\":1.5}",
    };
    struct world w;
    char text[512];

    world_init(&w);
    for (size_t i = 0; i < sizeof(metas) / sizeof(metas[0]); i++) {
        snprintf(text, sizeof(text), L("1", "tools/list", "{\"_meta\":%s}"), metas[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32602");
        CHECK_INT(w.how[0].http_status, 400);
    }
    receive(&w, L("1", "server/discover", "{}"));
    CHECK_HAS(&w, 0, "\"code\":-32602");
    world_free(&w);
}

TEST(both_eras_are_served_on_one_pipe)
{
    struct world w;

    world_init(&w);
    initialize(&w, "{}");
    receive(&w, M("1", "tools/list", ""));
    CHECK_HAS(&w, 0, "\"resultType\":\"complete\"");
    receive(&w, L("2", "tools/list", "{}"));
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}");
    world_free(&w);
}

TEST(method_that_is_not_offered_is_not_found)
{
    static const char *const methods[] = {"prompts/list", "resources/list", "completion/complete",
                                          "tasks/get",    "no/such",        ""};
    struct world w;
    char text[512];

    world_init(&w);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        snprintf(text, sizeof(text), M("1", "%s", ""), methods[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32601");
    }
    world_free(&w);
}

TORTURE(lifecycle_survives_any_allocation_failure)
{
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    config = world_config(&w);
    status = world_open(&w, &config);
    if (!status)
        status = receive(
            &w, L("1", "initialize", "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}"));
    if (!status)
        status = receive(&w, M("2", "server/discover", ""));
    if (!status && strstr(w.sent[0], "-32603"))
        status = PEG_ENOMEM;
    world_free(&w);
    return status;
}
