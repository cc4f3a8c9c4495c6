/* SPDX-License-Identifier: Apache-2.0 */

#include "world.h"

#define CALL(id) M(id, "tools/call", "\"name\":\"t\",\"arguments\":{\"x\":1},")

TEST(tool_is_called_with_its_arguments_and_answers)
{
    struct world w;
    const struct mcp_request *request;

    world_init(&w);
    receive_on(&w, CALL("1"), &w);
    CHECK_INT(w.n_calls, 1);
    CHECK_INT(w.n_sent, 0);
    request = mcp_call_request(w.calls[0]);
    CHECK_STR(request->name, "t");
    CHECK_INT(request->kind, MCP_CALL_TOOL);
    CHECK_INT(peg_json_int64_or(peg_json_get(request->args, "x"), 0), 1);
    CHECK_STR(peg_cstr(request->principal), "somebody");
    CHECK_INT(mcp_peer_n_requests(w.peer), 1);

    finish(&w, 0, "done");

    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
                   "\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"_meta\":{" INFO "}}}");
    CHECK(w.how[0].is_end && w.how[0].stream == &w);
    CHECK_INT(mcp_peer_n_requests(w.peer), 0);
    world_free(&w);
}

TEST(legacy_answer_has_no_type_and_no_metadata)
{
    struct world w;

    world_init(&w);
    initialize(&w, "{}");
    receive(&w, L("\"a\"", "tools/call", "{\"name\":\"t\"}"));
    CHECK(!mcp_call_request(w.calls[0])->args);
    finish(&w, 0, "done");
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"content\":[{\"type\":\"text\","
                   "\"text\":\"done\"}]}}");
    world_free(&w);
}

TEST(call_without_a_name_or_with_arguments_that_are_no_object_is_malformed)
{
    static const char *const params[] = {"", "\"name\":7,", "\"name\":\"t\",\"arguments\":[],",
                                         "\"name\":\"t\",\"arguments\":null,"};
    struct world w;
    char text[512];

    world_init(&w);
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        snprintf(text, sizeof(text), M("1", "tools/call", "%s"), params[i]);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32602");
    }
    CHECK_INT(w.n_calls, 0);
    world_free(&w);
}

TEST(failed_tool_is_a_result_and_unknown_tool_an_error)
{
    struct world w;
    struct mcp_result result = {0};

    world_init(&w);
    receive(&w, CALL("1"));
    mcp_result_fail_tool(&result, "timeout", peg__str("too slow"));
    end_call(&w, 0, &result);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
                   "\"content\":[{\"type\":\"text\",\"text\":\"too slow\"}],\"isError\":true,"
                   "\"_meta\":{" INFO ",\"pegboard/error\":{\"name\":\"timeout\"}}}}");

    receive(&w, CALL("2"));
    result = (struct mcp_result){0};
    mcp_result_fail(&result, MCP_INVALID_PARAMS, "Unknown tool: %s", "t");
    end_call(&w, 1, &result);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"Unknown "
                   "tool: t\"}}");
    world_free(&w);
}

static void finish_structured(struct world *w, size_t i, const char *json, bool is_object)
{
    struct mcp_result result = {
        .members = PEG__BUF(1000), .structured = PEG__BUF(1000), .is_structured_object = is_object};

    peg__buf_puts(&result.members, "\"content\":[]");
    peg__buf_puts(&result.structured, json);
    end_call(w, i, &result);
}

TEST(structured_content_that_is_no_object_is_for_modern_clients)
{
    struct world w;

    world_init(&w);
    receive(&w, CALL("1"));
    finish_structured(&w, 0, "[1]", false);
    CHECK_HAS(&w, 0, "\"structuredContent\":[1]");
    receive(&w, L("2", "tools/call", "{\"name\":\"t\"}"));
    finish_structured(&w, 1, "[1]", false);
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}");
    receive(&w, L("3", "tools/call", "{\"name\":\"t\"}"));
    finish_structured(&w, 2, "{\"a\":1}", true);
    CHECK_HAS(&w, 0, "\"structuredContent\":{\"a\":1}");
    world_free(&w);
}

TEST(canceled_request_has_no_answer)
{
    struct world w;

    world_init(&w);
    w.ends_when_canceled = false;
    receive(&w, CALL("1"));
    receive(&w, CALL("\"1\""));
    receive(&w, N("notifications/cancelled", "{\"requestId\":1,\"reason\":\"bored\"}"));
    CHECK_INT(w.n_canceled, 1);
    finish(&w, 0, "too late");
    CHECK_INT(w.n_sent, 0);
    finish(&w, 1, "wanted");
    CHECK_HAS(&w, 0, "\"id\":\"1\"");
    world_free(&w);
}

TEST(cancellation_of_what_is_unknown_or_malformed_is_ignored)
{
    static const char *const params[] = {"{}",
                                         "{\"requestId\":9}",
                                         "{\"requestId\":null}",
                                         "{\"requestId\":{}}",
                                         "{\"requestId\":\"1\"}",
                                         "{\"requestId\":1.0}"};
    struct world w;
    char text[256];

    world_init(&w);
    receive(&w, CALL("1"));
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        snprintf(text, sizeof(text), N("notifications/cancelled", "%s"), params[i]);
        receive(&w, text);
        CHECK_INT(w.n_sent, 0);
        CHECK_INT(w.n_canceled, 0);
    }
    world_free(&w);
}

TEST(closed_stream_cancels_a_modern_request_and_not_a_legacy_one)
{
    struct world w;
    int modern;
    int legacy;

    world_init(&w);
    receive_on(&w, CALL("1"), &modern);
    receive_on(&w, L("2", "tools/call", "{\"name\":\"t\"}"), &legacy);
    mcp_peer_close_stream(w.peer, &legacy);
    CHECK_INT(w.n_canceled, 0);
    mcp_peer_close_stream(w.peer, &modern);
    CHECK_INT(w.n_canceled, 1);
    world_free(&w);
}

TEST(progress_is_for_those_who_gave_a_token_and_only_grows)
{
    struct world w;

    world_init(&w);
    receive_on(&w, M_WITH("1", "tools/call", "\"name\":\"t\",", "{}", ",\"progressToken\":\"p\""),
               &w);
    CHECK(mcp_call_request(w.calls[0])->wants_output);
    mcp_call_progress(w.calls[0], 0.5, 2, peg__str("half"));
    mcp_call_progress(w.calls[0], 0.5, 2, peg__str("again"));
    mcp_call_progress(w.calls[0], 1, 0, peg__str(""));
    CHECK_INT(w.n_sent, 2);
    CHECK_STR(peg_cstr(w.sent[0]),
              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
              "\"progressToken\":\"p\",\"progress\":0.5,\"total\":2,\"message\":\"half\"}}");
    CHECK(w.how[0].may_be_lost && !w.how[0].is_end && w.how[0].stream == &w);
    CHECK_HAS(&w, 1, "\"progress\":1}");

    receive(&w, CALL("2"));
    mcp_call_progress(w.calls[1], 1, 0, peg__str(""));
    CHECK_INT(w.n_sent, 0);
    world_free(&w);
}

TEST(log_messages_are_for_modern_requests_that_name_a_level)
{
    struct world w;

    world_init(&w);
    receive(&w, M_WITH("1", "tools/call", "\"name\":\"t\",", "{}",
                       ",\"io.modelcontextprotocol/logLevel\":\"warning\""));
    mcp_call_log(w.calls[0], MCP_LEVEL_INFO, peg__str("l"), peg__str("1"));
    mcp_call_log(w.calls[0], MCP_LEVEL_ERROR, peg__str("l"), peg__str("{\"a\":1}"));
    CHECK_SENT(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
                   "\"level\":\"error\",\"logger\":\"l\",\"data\":{\"a\":1}}}");
    receive(&w, CALL("2"));
    mcp_call_log(w.calls[1], MCP_LEVEL_EMERGENCY, peg__str("l"), peg__str("1"));
    CHECK_INT(w.n_sent, 0);
    world_free(&w);
}

TEST(legacy_clients_set_their_level)
{
    struct world w;

    world_init(&w);
    initialize(&w, "{}");
    receive(&w, L("1", "logging/setLevel", "{\"level\":\"loud\"}"));
    CHECK_HAS(&w, 0, "\"code\":-32602");
    receive(&w, L("2", "logging/setLevel", "{\"level\":\"error\"}"));
    CHECK_HAS(&w, 0, "\"result\":{}");
    receive(&w, L("3", "tools/call", "{\"name\":\"t\"}"));
    mcp_call_log(w.calls[0], MCP_LEVEL_WARNING, peg__str("l"), peg__str("1"));
    CHECK_INT(w.n_sent, 0);
    mcp_call_log(w.calls[0], MCP_LEVEL_ERROR, peg__str(""), peg__str("1"));
    CHECK_HAS(&w, 0, "{\"level\":\"error\",\"data\":1}");
    world_free(&w);
}

TEST(output_is_progress_and_log_for_those_who_asked)
{
    struct world w;

    world_init(&w);
    receive(&w, M_WITH("1", "tools/call", "\"name\":\"t\",", "{}",
                       ",\"progressToken\":7,\"io.modelcontextprotocol/logLevel\":\"debug\""));
    mcp_call_output(w.calls[0], peg__str("stdout"), peg__str("line\n"));
    CHECK_INT(w.n_sent, 2);
    CHECK_HAS(&w, 0, "\"progressToken\":7,\"progress\":1,\"message\":\"line\\n\"");
    CHECK_HAS(&w, 1, "\"level\":\"info\",\"logger\":\"stdout\",\"data\":\"line\\n\"");
    receive(&w, L("2", "tools/call", "{\"name\":\"t\"}"));
    mcp_call_output(w.calls[1], peg__str("stdout"), peg__str("line\n"));
    CHECK_INT(w.n_sent, 0);
    world_free(&w);
}

TEST(id_that_is_in_use_is_refused)
{
    struct world w;

    world_init(&w);
    receive(&w, CALL("1"));
    receive(&w, CALL("1"));
    CHECK_HAS(&w, 0, "\"code\":-32600");
    CHECK_INT(w.n_calls, 1);
    finish(&w, 0, "done");
    receive(&w, CALL("1"));
    CHECK_INT(w.n_calls, 2);
    world_free(&w);
}

TEST(trace_context_and_idempotency_key_reach_the_source)
{
    struct world w;
    const struct mcp_request *request;

    world_init(&w);
    receive(&w, M_WITH("1", "tools/call", "\"name\":\"t\",", "{}",
                       ",\"traceparent\":\"00-a\",\"tracestate\":\"s\",\"baggage\":\"b\","
                       "\"pegboard/idempotency-key\":\"k\""));
    request = mcp_call_request(w.calls[0]);
    CHECK_STR(request->traceparent, "00-a");
    CHECK_STR(request->tracestate, "s");
    CHECK_STR(request->baggage, "b");
    CHECK_STR(request->idempotency_key, "k");
    world_free(&w);
}

TEST(client_that_goes_cancels_its_calls)
{
    struct world w;

    world_init(&w);
    receive(&w, CALL("1"));
    receive(&w, CALL("2"));
    w.peer = mcp_peer_free(w.peer);
    CHECK_INT(w.n_canceled, 2);
    CHECK_INT(mcp_server_n_calls(w.server), 0);
    world_free(&w);
}

TEST(result_that_is_too_large_is_a_failure_with_a_sentence)
{
    struct world w;
    struct mcp_result result = {.members = PEG__BUF(10)};

    world_init(&w);
    receive(&w, CALL("1"));
    peg__buf_puts(&result.members, "more than ten bytes");
    end_call(&w, 0, &result);
    CHECK_HAS(&w, 0, "larger than 16 MiB");
    CHECK_HAS(&w, 0, "\"isError\":true");
    world_free(&w);
}

TEST(too_many_calls_are_refused)
{
    struct world w;
    char text[512];

    world_init(&w);
    schemas_free(&w.schemas); /* for speed */
    for (int i = 0; i <= PEG_LIMIT_MCP_CALLS; i++) {
        CHECK_INT(mcp_server_n_calls(w.server), i);
        snprintf(text, sizeof(text), CALL("%d"), i);
        receive(&w, text);
    }
    CHECK_HAS(&w, 0, "\"code\":-32603");
    CHECK_HAS(&w, 0, "too many requests");
    world_free(&w);
}

TORTURE(call_survives_any_allocation_failure)
{
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    config = world_config(&w);
    status = world_open(&w, &config);
    if (!status)
        status =
            receive(&w, M_WITH("1", "tools/call", "\"name\":\"t\",", "{}", ",\"progressToken\":7"));
    if (!status && !w.n_calls)
        status = PEG_ENOMEM;
    if (!status) {
        mcp_call_progress(w.calls[0], 1, 2, peg__str("m"));
        finish(&w, 0, "done");
        status = w.n_sent == 2 && strstr(w.sent[1], "done") ? PEG_OK : PEG_ENOMEM;
    }
    world_free(&w);
    return status;
}
