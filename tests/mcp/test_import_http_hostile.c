/* SPDX-License-Identifier: Apache-2.0 */

/* MCP servers over HTTP that die, flood, cut their answers, or answer with something else. */

#include "import_http_world.h"

static void await_ready(struct http_import *h)
{
    while (!peg_mcp_client_info(h->w.client).is_connected)
        sched_yield();
}

static void check_lost(const char *era, const char *tool, const char *cause, const char *words)
{
    struct http_import h;

    http_import_open(&h, era, NULL);

    CHECK_FAILURE(&h.w, tool, "{}", cause, words);

    await_ready(&h); /* the list is read again, which may begin anew */
    CHECK_ANSWER(&h.w, "echo", "{\"x\":1}", "{\"x\": 1}");
    http_import_close(&h);
}

TEST(import_loses_a_call_whose_stream_was_cut)
{
    check_lost("modern", "cut", "E_MCP_LOST", "in the middle");
    check_lost("legacy", "cut", "E_MCP_LOST", "It may have taken effect");
    check_lost("modern", "short", "E_MCP_LOST", "It may have taken effect");
}

TEST(import_sends_no_call_again_that_had_begun_when_its_session_ended)
{
    struct http_import h;

    http_import_open(&h, "legacy", NULL);
    import_await(&h.w, PEG_MCP_CONNECTED, "");
    CHECK_FAILURE(&h.w, "restart", "{}", "E_MCP_LOST", "It may have taken effect");
    import_await(&h.w, PEG_MCP_CONNECTED, "");
    import_call(&h.w, "counts", "{}");
    CHECK(strstr(import_answer(&h.w).ptr, "\"restarted\": 1"));
    http_import_close(&h);
}

TEST(import_loses_a_call_that_a_proxy_lost)
{
    check_lost("modern", "busy", "E_MCP_LOST", "HTTP status 503");
}

TEST(import_fails_calls_that_are_answered_with_something_else)
{
    check_lost("modern", "html", "E_MCP_PROTOCOL", "without a response");
    check_lost("legacy", "redirect", "E_MCP_HTTP", "redirects");
    check_lost("modern", "other", "E_MCP_PROTOCOL", "without a response");
}

TEST(import_gives_a_stream_up_that_floods)
{
    check_lost("modern", "flood", "E_MCP_LOST", "floods");
}

TEST(import_gives_a_stream_up_whose_event_is_too_long)
{
    check_lost("legacy", "long", "E_MCP_LOST", "16 MiB");
}

TEST(import_connects_again_to_a_server_that_died)
{
    struct http_import h;
    const int port = (http_import_open(&h, "legacy", NULL), h.server.port);

    import_await(&h.w, PEG_MCP_CONNECTED, "");
    CHECK_FAILURE(&h.w, "die", "{}", "E_MCP_LOST", "It may have taken effect");
    import_await(&h.w, PEG_MCP_LOST, "");
    CHECK_FAILURE(&h.w, "echo", "{}", "E_MCP_UNAVAILABLE", "not started");

    http_server_stop(&h.server);
    http_server_start(&h.server, "modern", port, NULL); /* it was updated meanwhile */
    import_await(&h.w, PEG_MCP_CONNECTED, "");

    CHECK_ANSWER(&h.w, "echo", "{\"x\":1}", "{\"x\": 1}");
    CHECK_STR(peg_cstr(peg_mcp_client_info(h.w.client).version), "2026-07-28");
    http_import_close(&h);
}

TEST(import_notices_that_a_server_is_gone_though_nobody_calls)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .check_ms = 50,
                                            .backoff_ms = 20};
    struct http_import h;

    CHECK_STATUS(http_import_try(&h, "modern", "no-stream", &options), PEG_OK, h.w.error);
    http_server_stop(&h.server);

    import_await(&h.w, PEG_MCP_LOST, "E_MCP_START");

    CHECK(!peg_mcp_client_info(h.w.client).is_connected);
    http_import_close(&h);
}

TEST(import_takes_ten_thousand_tools_and_no_more)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .backoff_ms = 20};
    struct http_import h;

    CHECK_INT(http_import_try(&h, "modern", "tools=10000", &options), PEG_ELIMIT);

    CHECK_STR(peg_cstr(h.w.error.code), "E_MCP_LIMIT");
    http_import_close(&h);
}

static void *hang(void *user)
{
    struct http_import *h = user;
    peg_record *record = NULL;

    CHECK_INT(peg_registry_call(h->w.registry, "hang", "{}", &record, NULL), PEG_OK);
    CHECK_STR(peg_cstr(peg_record_cause(record)), "E_MCP_LOST");
    peg_record_unref(record);
    return NULL;
}

TEST(import_ends_calls_when_it_is_closed)
{
    struct http_import h;
    pthread_t thread;

    http_import_open(&h, "modern", NULL);
    CHECK_INT(pthread_create(&thread, NULL, hang, &h), 0);
    while (!peg_mcp_client_info(h.w.client).n_running)
        sched_yield();

    h.w.client = peg_mcp_client_free(h.w.client);

    pthread_join(thread, NULL);
    http_import_close(&h);
}
