/* SPDX-License-Identifier: Apache-2.0 */

/* The tools of MCP servers over HTTP as tools of a registry: servers of either era. */

#include "import_http_world.h"

/* ---- connecting ---- */

static void check_tools(const char *era, const char *word, const char *version)
{
    struct http_import h;

    http_import_open(&h, era, word);

    CHECK_STR(peg_cstr(peg_mcp_client_info(h.w.client).version), version);
    CHECK_STR(peg_cstr(peg_mcp_client_info(h.w.client).server), "over http");
    CHECK_ANSWER(&h.w, "echo", "{\"x\":1}", "{\"x\": 1}");
    CHECK_ANSWER(&h.w, "stream", "{}", "stream");
    CHECK_ANSWER(&h.w, "late", "{}", "late");
    CHECK_FAILURE(&h.w, "echo", "{\"x\":\"one\"}", "", "x");
    CHECK_ANSWER(&h.w, "complaints", "{}", "[]");
    http_import_close(&h);
}

TEST(import_speaks_to_a_modern_server_over_http)
{
    check_tools("modern", NULL, "2026-07-28");
}

TEST(import_speaks_to_a_legacy_server_over_http)
{
    check_tools("legacy", NULL, "2025-11-25");
}

TEST(import_speaks_to_servers_that_have_no_stream_of_their_own)
{
    check_tools("modern", "no-stream", "2026-07-28");
    check_tools("legacy", "no-stream", "2025-11-25");
}

TEST(import_asks_again_when_a_version_is_refused_that_the_server_has)
{
    check_tools("modern", "picky", "2026-07-28");
}

static void check_refused(const char *word, const char *code, const char *words)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .start_ms = 20000};
    struct http_import h;

    CHECK(http_import_try(&h, "modern", word, &options) != PEG_OK);

    CHECK_STR(peg_cstr(h.w.error.code), code);
    if (!strstr(h.w.error.message, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, h.w.error.message);
    CHECK_INT(peg_registry_len(h.w.registry), 0);
    http_import_close(&h);
}

TEST(import_follows_no_redirect)
{
    check_refused("mode=redirect", "E_MCP_HTTP", "redirects");
}

TEST(import_says_that_credentials_are_wanted)
{
    check_refused("mode=auth", "E_MCP_HTTP", "HTTP status 401");
}

TEST(import_refuses_answers_that_are_no_messages)
{
    check_refused("mode=html", "E_MCP_PROTOCOL", "without a response");
    check_refused("mode=broken", "E_MCP_PROTOCOL", "without a response");
    check_refused("mode=text", "E_MCP_HTTP", "HTTP status 500");
}

TEST(import_gives_a_silent_server_up)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .start_ms = 300};
    struct http_import h;

    CHECK_INT(http_import_try(&h, "modern", "mode=silence", &options), PEG_ETIMEOUT);

    CHECK_STR(peg_cstr(h.w.error.code), "E_MCP_START");
    http_import_close(&h);
}

TEST(import_says_that_a_server_is_not_there)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT,
                                            .url = "http://127.0.0.1:1/mcp"};
    struct http_import h;

    CHECK_INT(http_import_try(&h, "modern", NULL, &options), PEG_EIO);

    CHECK_STR(peg_cstr(h.w.error.code), "E_MCP_START");
    CHECK(strstr(h.w.error.message, "cannot be reached"));
    http_import_close(&h);
}

/* ---- options ---- */

static void check_option(peg_mcp_import_options options, const char *where)
{
    struct import w;

    import_init(&w);
    CHECK_INT(peg_mcp_import(w.registry, &options, &w.client, &w.error), PEG_EINVAL);
    CHECK_STR(peg_cstr(w.error.where), where);
    import_close(&w);
}

TEST(import_checks_its_options_for_http)
{
    const char *const split[] = {"X-A: b\r\nX-C: d", NULL};
    const char *const nameless[] = {": b", NULL};
    const char *const command[] = {"true", NULL};
    peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .url = "http://127.0.0.1/mcp"};
    peg_error error;

    check_option(options, "/http");
    CHECK_STATUS(peg_http_new(&options.http, &error), PEG_OK, error);
    options.headers = split;
    check_option(options, "/headers");
    options.headers = nameless;
    check_option(options, "/headers");
    options.headers = NULL;
    options.url = "ftp://127.0.0.1/";
    check_option(options, "/url");
    options.url = "http://me:secret@127.0.0.1/";
    check_option(options, "/url");
    options.url = "http:///mcp";
    check_option(options, "/url");
    options.url = "http://127.0.0.1/a b";
    check_option(options, "/url");
    options.url = "http://127.0.0.1/mcp";
    options.check_ms = -1;
    check_option(options, "/check_ms");
    options.check_ms = 0;
    options.command = command;
    check_option(options, "/url");
    peg_http_free(options.http);
}

/* Forms that only some libraries take for addresses are names, too. */
TEST(import_follows_no_name_to_a_private_address)
{
    const char *const urls[] = {"http://127.1:1/", "http://2130706433:1/", "http://0x7f000001:1/"};

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .url = urls[i]};
        struct http_import h;

        CHECK_INT(http_import_try(&h, "modern", NULL, &options), PEG_EIO);
        CHECK_STR(peg_cstr(h.w.error.code), "E_MCP_ADDRESS");
        http_import_close(&h);
    }
}

TEST(import_follows_a_name_to_a_private_address_if_it_may)
{
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .url = "http://127.1:1/",
                                            .private_addresses = true};
    struct http_import h;

    CHECK_INT(http_import_try(&h, "modern", NULL, &options), PEG_EIO);

    CHECK_STR(peg_cstr(h.w.error.code), "E_MCP_START");
    http_import_close(&h);
}

/* ---- calls ---- */

TEST(import_sends_marked_arguments_as_headers)
{
    struct http_import h;

    http_import_open(&h, "modern", NULL);

    CHECK_ANSWER(
        &h.w, "mark", "{\"a\":\"plain\",\"b\":{\"c\":42},\"d\":true}",
        "{\"Mcp-Param-A\": \"plain\", \"Mcp-Param-C\": \"42\", \"Mcp-Param-D\": \"true\"}");
    CHECK_ANSWER(&h.w, "mark", "{\"a\":\"Hello, \\u4e16\\u754c\"}",
                 "{\"Mcp-Param-A\": \"=?base64?SGVsbG8sIOS4lueVjA==?=\"}");
    CHECK_ANSWER(&h.w, "mark", "{\"a\":\"line1\\nline2\"}",
                 "{\"Mcp-Param-A\": \"=?base64?bGluZTEKbGluZTI=?=\"}");
    CHECK_ANSWER(&h.w, "mark", "{\"a\":\"=?base64?literal?=\"}",
                 "{\"Mcp-Param-A\": \"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=\"}");
    CHECK_ANSWER(&h.w, "mark", "{\"a\":\" padded \"}",
                 "{\"Mcp-Param-A\": \"=?base64?IHBhZGRlZCA=?=\"}");
    CHECK_ANSWER(&h.w, "mark", "{\"a\":\"\",\"b\":{}}", "{\"Mcp-Param-A\": \"\"}");
    CHECK_FAILURE(&h.w, "mark", "{\"b\":{\"c\":9007199254740992}}", "E_MCP_HEADER", "beyond");
    http_import_close(&h);
}

TEST(import_leaves_out_tools_whose_marks_are_wrong)
{
    static const char *const names[] = {"marked_number", "marked_twice", "marked_badly",
                                        "marked_below_items"};
    struct http_import h;

    http_import_open(&h, "modern", NULL);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(import_saw(&h.w, PEG_MCP_TOOL_REJECTED, names[i]));
    CHECK_INT(peg_registry_len(h.w.registry), HTTP_TOOLS);
    http_import_close(&h);
}

static void check_question(const char *era, const char *word, const char *tool,
                           const char *expected)
{
    struct http_import h;
    peg_ctx *plain;
    int n_asked = 0;

    http_import_open(&h, era, word);
    plain = h.w.ctx;
    CHECK_INT(peg_ctx_with_gates(plain, import_say_name, &n_asked, &h.w.ctx, NULL), PEG_OK);
    peg_ctx_unref(plain);

    CHECK_ANSWER(&h.w, tool, "{}", expected);

    CHECK_INT(n_asked, 1);
    CHECK_ANSWER(&h.w, "complaints", "{}", "[]");
    http_import_close(&h);
}

TEST(import_makes_a_gate_of_a_question_over_http)
{
    check_question("modern", NULL, "ask",
                   "[{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}, \"opaque\"]");
    check_question("legacy", NULL, "ask",
                   "[{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}, null]");
}

TEST(import_hears_a_question_on_the_stream_of_the_server_from_the_first_call_on)
{
    check_question("legacy", "slow-stream", "ask_aside",
                   "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}");
}

TEST(import_declines_a_question_over_http_that_nobody_can_answer)
{
    struct http_import h;

    http_import_open(&h, "legacy", NULL);

    CHECK_ANSWER(&h.w, "ask", "{}", "[{\"action\": \"decline\"}, null]");
    http_import_close(&h);
}

static void check_growth(const char *era, const char *word)
{
    struct http_import h;

    http_import_open(&h, era, word);
    import_await(&h.w, PEG_MCP_CONNECTED, "");
    CHECK_INT(peg_registry_len(h.w.registry), HTTP_TOOLS + (*era == 'l' ? 4 : 0));

    CHECK_ANSWER(&h.w, "grow", "{}", "grown");

    do /* a stream that took long to open is a change, too */
        import_await(&h.w, PEG_MCP_TOOLS_CHANGED, "");
    while (!peg_registry_has(h.w.registry, peg_cstr("grown")));
    http_import_close(&h);
}

TEST(import_follows_changes_of_a_list_over_http)
{
    check_growth("modern", NULL);
    check_growth("legacy", NULL);
}

TEST(import_reads_the_list_again_when_a_stream_opens_late)
{
    check_growth("legacy", "late-stream");
}

/* ---- sessions ---- */

TEST(import_begins_a_new_session_when_the_server_has_ended_it)
{
    struct http_import h;

    http_import_open(&h, "legacy", "no-stream");
    CHECK_ANSWER(&h.w, "expire", "{}", "expired");

    CHECK_ANSWER(&h.w, "echo", "{\"x\":2}", "{\"x\": 2}"); /* the same call, in the next one */

    import_call(&h.w, "counts", "{}");
    CHECK(strstr(import_answer(&h.w).ptr, "\"sessions\": 2"));
    http_import_close(&h);
}

TEST(import_takes_up_a_stream_where_it_was_cut)
{
    struct http_import h;

    http_import_open(&h, "legacy", NULL);

    CHECK_ANSWER(&h.w, "resume", "{}", "resumed");

    import_call(&h.w, "counts", "{}");
    CHECK(strstr(import_answer(&h.w).ptr, "\"resumed\": 2"));
    CHECK_ANSWER(&h.w, "complaints", "{}", "[]");
    http_import_close(&h);
}

/* ---- cancelling ---- */

TEST(import_ends_a_call_over_http_that_never_ends)
{
    struct http_import h;

    http_import_open(&h, "legacy", NULL);
    h.w.timeout_ms = 200;
    CHECK_FAILURE(&h.w, "hang", "{}", "E_DEADLINE_EXCEEDED", "");
    h.w.timeout_ms = 60000;

    do /* it is told by another request */
        import_call(&h.w, "cancelled", "{}");
    while (strcmp(import_answer(&h.w).ptr, "1") != 0);
    http_import_close(&h);
}

TEST(import_cancels_a_modern_call_by_ending_its_stream)
{
    struct http_import h;

    http_import_open(&h, "modern", NULL);
    h.w.timeout_ms = 200;
    CHECK_FAILURE(&h.w, "hang", "{}", "E_DEADLINE_EXCEEDED", "");
    h.w.timeout_ms = 60000;

    CHECK_ANSWER(&h.w, "complaints", "{}", "[]");
    CHECK_ANSWER(&h.w, "cancelled", "{}", "0");
    http_import_close(&h);
}
