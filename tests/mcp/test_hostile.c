/* SPDX-License-Identifier: Apache-2.0 */

/* Messages that are none, and what becomes of them. */

#include "world.h"

TEST(message_that_is_no_json_is_a_parse_error_without_an_id)
{
    static const char *const texts[] = {"",     "{",        "nonsense", "{\"a\":1,\"a\":2}",
                                        "[1,]", "\xff\xfe", "{}x",      "\"\\ud800\""};
    struct world w;

    world_init(&w);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_INT(receive(&w, texts[i]), PEG_OK);
        CHECK_INT(w.n_sent, 1);
        CHECK_HAS(&w, 0, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,");
    }
    world_free(&w);
}

TEST(message_that_is_no_json_rpc_is_an_invalid_request)
{
    static const char *const texts[] = {
        "null",
        "7",
        "[]",
        "{}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        "{\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"result\":{}}",
    };
    struct world w;

    world_init(&w);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_INT(receive(&w, texts[i]), PEG_OK);
        CHECK_INT(w.n_sent, 1);
        CHECK_HAS(&w, 0, "\"code\":-32600");
    }
    world_free(&w);
}

TEST(id_that_is_too_long_is_refused_and_the_longest_is_not)
{
    struct world w;
    char text[600];

    world_init(&w);
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"ping\"}",
             PEG_LIMIT_MCP_ID_BYTES, 0);
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"result\":{}");
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"ping\"}",
             PEG_LIMIT_MCP_ID_BYTES + 1, 0);
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"code\":-32600");
    world_free(&w);
}

TEST(notifications_are_never_answered)
{
    static const char *const texts[] = {
        N("notifications/initialized", "{}"),
        N("notifications/progress", "{\"progressToken\":1,\"progress\":1}"),
        N("notifications/roots/list_changed", "{}"),
        N("no/such", "{}"),
        N("tools/call", "{\"name\":\"t\"}"),
        "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}",
    };
    struct world w;

    world_init(&w);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_INT(receive(&w, texts[i]), PEG_OK);
        CHECK_INT(w.n_sent, 0);
    }
    CHECK_INT(w.n_calls, 0);
    world_free(&w);
}

TEST(method_of_any_length_is_not_found_in_a_short_sentence)
{
    struct world w;
    char text[4096];

    world_init(&w);
    snprintf(text, sizeof(text), L("1", "%02000d", "{}"), 0);
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"code\":-32601");
    CHECK(strlen(w.sent[0]) < 300);
    world_free(&w);
}

TEST(nesting_beyond_the_limit_is_a_parse_error)
{
    struct world w;
    char text[2100];

    world_init(&w);
    memset(text, '[', 2000);
    text[2000] = '\0';
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"code\":-32700");
    world_free(&w);
}

VOLUME_TEST(message_beyond_the_limit_is_refused_by_its_size)
{
    struct world w;
    char *text = malloc(PEG_LIMIT_MCP_MESSAGE_BYTES + 2);

    world_init(&w);
    memset(text, ' ', PEG_LIMIT_MCP_MESSAGE_BYTES + 1);
    text[PEG_LIMIT_MCP_MESSAGE_BYTES + 1] = '\0';
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"code\":-32700");
    free(text);
    world_free(&w);
}

VOLUME_TEST(requests_without_an_answer_are_bounded)
{
    struct world w;
    char text[512];

    world_init(&w);
    schemas_free(&w.schemas);
    for (int i = 0; i <= PEG_LIMIT_MCP_REQUESTS; i++) {
        snprintf(text, sizeof(text), M("%d", "subscriptions/listen", "\"notifications\":{},"), i);
        receive(&w, text);
    }
    CHECK_HAS(&w, 0, "\"code\":-32603");
    CHECK_INT(mcp_peer_n_requests(w.peer), PEG_LIMIT_MCP_REQUESTS);
    world_free(&w);
}
