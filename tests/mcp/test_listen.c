/* SPDX-License-Identifier: Apache-2.0 */

/* Notifications of changes. */

#include "world.h"

#define LISTEN(id, filter) M(id, "subscriptions/listen", "\"notifications\":" filter ",")

static void world_init_with_resources(struct world *w)
{
    world_init(w);
    w->source.offers |= MCP_OFFERS_RESOURCES | MCP_OFFERS_UPDATES;
}

TEST(listening_is_acknowledged_with_what_is_honored)
{
    struct world w;

    world_init_with_resources(&w);
    receive_on(&w,
               LISTEN("1", "{\"toolsListChanged\":true,\"promptsListChanged\":true,"
                           "\"resourcesListChanged\":false,\"resourceSubscriptions\":[\"a:b\"]}"),
               &w);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
                   "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1},"
                   "\"notifications\":{\"toolsListChanged\":true,"
                   "\"resourceSubscriptions\":[\"a:b\"]}}}");
    CHECK(w.how[0].stream == &w && !w.how[0].is_end);
    world_free(&w);
}

TEST(changes_are_told_to_those_who_listen_at_most_once_a_second)
{
    struct world w;

    world_init(&w);
    receive(&w, LISTEN("\"s\"", "{\"toolsListChanged\":true}"));
    receive(&w, LISTEN("2", "{}"));
    forget_sent(&w);
    mcp_server_changed(w.server, MCP_TOOLS);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\","
                   "\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"s\"}}}");
    mcp_server_changed(w.server, MCP_TOOLS);
    mcp_server_changed(w.server, MCP_TOOLS);
    mcp_server_changed(w.server, MCP_PROMPTS);
    CHECK_INT(w.n_sent, 1);
    CHECK_INT(mcp_server_due_ms(w.server), 2000);
    mcp_server_advance(w.server, 2000, 0);
    CHECK_INT(w.n_sent, 2);
    CHECK_INT(mcp_server_due_ms(w.server), INT64_MAX);
    world_free(&w);
}

TEST(legacy_client_hears_of_lists_once_it_has_initialized)
{
    struct world w;

    world_init(&w);
    mcp_server_changed(w.server, MCP_TOOLS);
    CHECK_INT(w.n_sent, 0);
    initialize(&w, "{}");
    mcp_server_advance(w.server, 5000, 0);
    mcp_server_changed(w.server, MCP_TOOLS);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\","
                   "\"params\":{}}");
    world_free(&w);
}

TEST(resources_that_change_are_told_to_their_subscribers)
{
    struct world w;

    world_init_with_resources(&w);
    receive(&w, LISTEN("1", "{\"resourceSubscriptions\":[\"a:b\",\"a:c\"]}"));
    initialize(&w, "{}");
    receive(&w, L("2", "resources/subscribe", "{\"uri\":\"a:c\"}"));
    CHECK_HAS(&w, 0, "\"result\":{}");
    forget_sent(&w);
    mcp_server_updated(w.server, peg__str("a:b"));
    CHECK_INT(w.n_sent, 1);
    mcp_server_updated(w.server, peg__str("a:c"));
    CHECK_INT(w.n_sent, 3);
    CHECK_HAS(&w, 1, "\"params\":{\"uri\":\"a:c\"}");
    mcp_server_updated(w.server, peg__str("a:d"));
    CHECK_INT(w.n_sent, 3);
    receive(&w, L("3", "resources/unsubscribe", "{\"uri\":\"a:c\"}"));
    forget_sent(&w);
    mcp_server_updated(w.server, peg__str("a:c"));
    CHECK_INT(w.n_sent, 1);
    world_free(&w);
}

TEST(canceled_subscription_is_over_and_a_finished_one_is_answered)
{
    struct world w;

    world_init(&w);
    receive(&w, LISTEN("1", "{\"toolsListChanged\":true}"));
    receive(&w, LISTEN("2", "{\"toolsListChanged\":true}"));
    receive(&w, N("notifications/cancelled", "{\"requestId\":1}"));
    mcp_server_changed(w.server, MCP_TOOLS);
    CHECK_INT(w.n_sent, 1);
    forget_sent(&w);
    mcp_peer_finish(w.peer);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\","
                   "\"_meta\":{" INFO ",\"io.modelcontextprotocol/subscriptionId\":2}}}");
    world_free(&w);
}

TEST(filter_that_is_none_is_refused)
{
    static const char *const filters[] = {"7", "[]", "{\"resourceSubscriptions\":{}}",
                                          "{\"resourceSubscriptions\":[7]}", "null"};
    struct world w;
    char text[512];

    world_init(&w);
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        snprintf(text, sizeof(text), LISTEN("1", "%s"), filters[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32602");
    }
    receive(&w, LISTEN("1", "{}"));
    receive(&w, LISTEN("1", "{}"));
    CHECK_HAS(&w, 0, "\"code\":-32600");
    world_free(&w);
}

TORTURE(listening_survives_any_allocation_failure)
{
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    config = world_config(&w);
    status = world_open(&w, &config);
    if (!status)
        status = receive(&w, LISTEN("1", "{\"toolsListChanged\":true}"));
    if (!status && (!w.n_sent || !strstr(w.sent[0], "acknowledged")))
        status = PEG_ENOMEM;
    if (!status) {
        mcp_server_changed(w.server, MCP_TOOLS);
        mcp_peer_finish(w.peer);
        status = w.n_sent == 3 ? PEG_OK : PEG_ENOMEM;
    }
    world_free(&w);
    return status;
}
