/* SPDX-License-Identifier: Apache-2.0 */

/* The two registries of goa-ai on a gateway without Redis, over a socket. */

#include "t.h"
#include "base/limits.h"
#include "goa_ai_registry/registry.grpc.h"
#include "registry/registry.grpc.h"
#include "wire/wire.h"

#include "gateway_world.h"

#define ASK_G0(METHOD, request)                                                                    \
    ask_method(&registry_registry_methods[REGISTRY_REGISTRY_##METHOD], request)
#define ASK_G1(METHOD, request)                                                                    \
    ask_method(&goa_ai_registry_registry_methods[GOA_AI_REGISTRY_REGISTRY_##METHOD], request)

/* ---- G0 ----------------------------------------------------------------------------------------
 */

TEST(g0_lists_and_gets_toolsets)
{
    Registry__ListToolsetsRequest list = REGISTRY__LIST_TOOLSETS_REQUEST__INIT;
    Registry__GetToolsetRequest get = REGISTRY__GET_TOOLSET_REQUEST__INIT;
    const Registry__ListToolsetsResponse *listed;
    const Registry__GetToolsetResponse *got;
    char eu[] = "eu";
    char *tags[] = {eu};

    world_open();
    listed = ASK_G0(LIST_TOOLSETS, &list);
    CHECK(listed != NULL);
    CHECK_INT(listed->n_toolsets, 0);
    register_named("a", "eu");
    register_named("b", NULL);
    list.tags = tags;
    list.n_tags = 1;
    listed = ASK_G0(LIST_TOOLSETS, &list);
    CHECK(listed != NULL);
    CHECK_INT(listed->n_toolsets, 1);
    CHECK_STR(peg__str(listed->toolsets[0]->name), "a");
    CHECK_INT(listed->toolsets[0]->tool_count, 1);
    CHECK(listed->toolsets[0]->version == NULL);
    CHECK_STR(peg__str(listed->toolsets[0]->description), "About \"x\"");

    get.name = req_text("a");
    got = ASK_G0(GET_TOOLSET, &get);
    CHECK(got != NULL);
    CHECK_STR(peg__str(got->stream_id), "toolset:a:requests");
    CHECK_INT(got->n_tools, 1);
    CHECK_STR(
        peg__strn((const char *)got->tools[0]->input_schema.data, got->tools[0]->input_schema.len),
        REQ_SCHEMA);
    CHECK(!got->tools[0]->has_output_schema);
    world_shut();
}

TEST(g0_searches_and_checks)
{
    Registry__SearchRequest search = REGISTRY__SEARCH_REQUEST__INIT;
    Registry__GetToolsetRequest get = REGISTRY__GET_TOOLSET_REQUEST__INIT;
    const Registry__SearchResponse *found;

    world_open();
    register_named("a", "europe");
    search.query = req_text("ROPE");
    found = ASK_G0(SEARCH, &search);
    CHECK(found != NULL);
    CHECK_INT(found->n_toolsets, 1);
    search.query = NULL;
    CHECK(!ASK_G0(SEARCH, &search));
    CHECK_STR(answer_name(), "invalid_length");
    CHECK(!ASK_G0(GET_TOOLSET, &get));
    CHECK_STR(answer_name(), "invalid_length");
    get.name = req_text("nope");
    CHECK(!ASK_G0(GET_TOOLSET, &get));
    CHECK_STR(answer_name(), "not_found");
    world_shut();
}

TEST(g0_searches_have_no_pages)
{
    Registry__SearchRequest search = REGISTRY__SEARCH_REQUEST__INIT;
    const Registry__SearchResponse *found;

    world_open();
    for (unsigned i = 0; i <= PEG_LIMIT_GATEWAY_PAGE; i++) {
        char name[32];

        snprintf(name, sizeof(name), "tools.%u", i);
        register_named(name, NULL);
    }
    search.query = req_text("tools");
    found = ASK_G0(SEARCH, &search);
    CHECK(found != NULL);
    CHECK_INT(found->n_toolsets, PEG_LIMIT_GATEWAY_PAGE + 1);
    world_shut();
}

TEST(g0_registration_needs_redis_and_the_rest_of_it_works)
{
    Registry__RegisterRequest reg = REGISTRY__REGISTER_REQUEST__INIT;
    Registry__UnregisterRequest unreg = REGISTRY__UNREGISTER_REQUEST__INIT;
    Registry__PongRequest pong = REGISTRY__PONG_REQUEST__INIT;

    world_open();
    CHECK(!ASK_G0(REGISTER, &reg));
    CHECK_STR(answer_name(), "invalid_length");
    reg.name = req_text("a");
    CHECK(!ASK_G0(REGISTER, &reg));
    CHECK_STR(answer_name(), "service_unavailable");
    CHECK_INT(g.answer.status.code, GRPC_UNAVAILABLE);
    CHECK(answer_says("pegboard.v1.Registry") && answer_says("REDIS_URL"));
    CHECK(ASK_G0(PONG, &pong) != NULL);
    register_named("a", NULL);
    unreg.name = req_text("a");
    CHECK(ASK_G0(UNREGISTER, &unreg) != NULL);
    CHECK(!ASK_G0(UNREGISTER, &unreg));
    CHECK_STR(answer_name(), "not_found");
    unreg.name = NULL;
    CHECK(!ASK_G0(UNREGISTER, &unreg));
    CHECK_STR(answer_name(), "invalid_length");
    world_shut();
}

/* ---- G0 calls, with a provider of ours ---------------------------------------------------------
 */

static struct stream attached;
static const char *result_text;
static const char *error_code;

/* On the client's loop: each call is answered with the same. */
static void answer_call(struct stream *stream, const void *message)
{
    const Pegboard__V1__AttachResponse *frame = message;
    Pegboard__V1__AttachRequest reply = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;
    Pegboard__V1__ToolError error = PEGBOARD__V1__TOOL_ERROR__INIT;

    if (frame->frame_case == PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME)
        stream_say(stream, "welcome", "");
    if (frame->frame_case != PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL)
        return;
    stream_say(stream, frame->call->tool, "");
    if (!result_text)
        return; /* it runs on */
    result.call_id = frame->call->call_id;
    result.attempt = frame->call->attempt;
    if (error_code) {
        error.code = req_text(error_code);
        error.message = req_text("it failed");
        result.error = &error;
    } else {
        result.chunk = req_bytes(result_text);
    }
    reply.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT;
    reply.result = &result;
    if (pegboard_v1_registry_attach_say(stream->rpc, &reply, NULL))
        abort();
}

static void attach_now(void *arg)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;

    (void)arg;
    hello.toolset = req_text("a");
    hello.incarnation = req_text("incarnation-1");
    hello.credits = 4;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO;
    frame.hello = &hello;
    if (pegboard_v1_registry_attach_call(g.channel, NULL, &stream_events, &attached, &attached.rpc,
                                         NULL) ||
        pegboard_v1_registry_attach_say(attached.rpc, &frame, NULL))
        abort();
}

static void provide(void)
{
    register_named("a", NULL);
    stream_init(&attached, answer_call);
    on_client(attach_now, NULL);
    stream_await(&attached, "welcome");
    error_code = NULL;
    result_text = "{\"ok\":true}";
}

static void provide_no_more(void)
{
    stream_cancel(&attached);
    stream_free(&attached);
}

static const Registry__CallToolResponse *call_g0(const char *tool, const char *payload)
{
    Registry__CallToolRequest request = REGISTRY__CALL_TOOL_REQUEST__INIT;
    struct peg__arena arena = {0};
    const Registry__CallToolResponse *response;

    request.toolset = req_text("a");
    request.tool = req_text(tool);
    if (wire_any_write(peg__str(payload), &arena, &request.payload, NULL))
        T_FAIL("no payload");
    response = ASK_G0(CALL_TOOL, &request);
    peg__arena_free(&arena);
    return response;
}

TEST(g0_calls_reach_attached_providers)
{
    const Registry__CallToolResponse *response;
    peg_str json;

    world_open();
    provide();
    response = call_g0("get", "{\"city\":\"Ulm\"}");

    CHECK(response != NULL);
    CHECK(strlen(response->tool_use_id) > 0);
    CHECK(response->error == NULL);
    CHECK_INT(wire_any_read(response->result, &g.answer.arena, &json, NULL), PEG_OK);
    CHECK_STR(json, "{\"ok\":true}");
    provide_no_more();
    world_shut();
}

TEST(g0_calls_that_fail_say_so_as_the_reference_does)
{
    const Registry__CallToolResponse *response;

    world_open();
    provide();
    error_code = "not_today";
    response = call_g0("get", "{\"city\":\"Ulm\"}");
    CHECK(response != NULL);
    CHECK_STR(peg__str(response->error->code), "not_today");
    CHECK_STR(peg__str(response->error->message_), "it failed");
    CHECK(response->result == NULL);

    CHECK(!call_g0("get", "{\"city\":7}"));
    CHECK_STR(answer_name(), "validation_error");
    CHECK(answer_says("payload validation failed: "));
    CHECK(!call_g0("nope", "{}"));
    CHECK_STR(answer_name(), "not_found");
    CHECK(!call_g0("", "{}"));
    CHECK_STR(answer_name(), "invalid_length");
    provide_no_more();
    world_shut();
}

TEST(g0_calls_of_an_unhealthy_toolset_fail_at_once)
{
    world_open();
    register_named("a", NULL);

    CHECK(!call_g0("get", "{\"city\":\"Ulm\"}"));
    CHECK_STR(answer_name(), "service_unavailable");
    CHECK(answer_says("no healthy providers for toolset \"a\""));
    world_shut();
}

TEST(g0_calls_that_still_run_when_their_time_is_over_time_out)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .threads = 2,
                                       .lease_ms = 100,         .drain_ms = 1000,
                                       .call_timeout_ms = 100,  .log_file = "/dev/null"};

    world_open_with(&config);
    provide();
    result_text = NULL;
    CHECK(!call_g0("get", "{\"city\":\"Ulm\"}"));
    CHECK_STR(answer_name(), "timeout");
    CHECK_INT(g.answer.status.code, GRPC_DEADLINE_EXCEEDED);
    provide_no_more();
    world_shut();
}

TEST(g0_results_of_calls_that_nobody_made_are_not_found)
{
    Registry__EmitToolResultRequest emit = REGISTRY__EMIT_TOOL_RESULT_REQUEST__INIT;

    world_open();
    CHECK(!ASK_G0(EMIT_TOOL_RESULT, &emit));
    CHECK_STR(answer_name(), "invalid_length");
    emit.tool_use_id = req_text("0123456789abcdef0123456789abcdef");
    CHECK(!ASK_G0(EMIT_TOOL_RESULT, &emit));
    CHECK_STR(answer_name(), "not_found");
    world_shut();
}

/* ---- G1 ----------------------------------------------------------------------------------------
 */

TEST(g1_lists_gets_and_searches)
{
    GoaAiRegistry__ListToolsetsRequest list = GOA_AI_REGISTRY__LIST_TOOLSETS_REQUEST__INIT;
    GoaAiRegistry__GetToolsetRequest get = GOA_AI_REGISTRY__GET_TOOLSET_REQUEST__INIT;
    GoaAiRegistry__SearchRequest search = GOA_AI_REGISTRY__SEARCH_REQUEST__INIT;
    const GoaAiRegistry__ListToolsetsResponse *listed;
    const GoaAiRegistry__GetToolsetResponse *got;
    const GoaAiRegistry__SearchResponse *found;

    world_open();
    register_named("a", "eu");
    listed = ASK_G1(LIST_TOOLSETS, &list);
    CHECK(listed != NULL);
    CHECK_INT(listed->n_toolsets, 1);
    CHECK_STR(peg__str(listed->toolsets[0]->tags[0]), "eu");
    get.name = req_text("a");
    got = ASK_G1(GET_TOOLSET, &get);
    CHECK(got != NULL);
    CHECK_STR(peg__strn((const char *)got->tools[0]->payload_schema.data,
                        got->tools[0]->payload_schema.len),
              REQ_SCHEMA);
    CHECK_STR(peg__strn((const char *)got->tools[0]->result_schema.data,
                        got->tools[0]->result_schema.len),
              "{}");
    search.query = req_text("about");
    found = ASK_G1(SEARCH, &search);
    CHECK(found != NULL);
    CHECK_INT(found->n_toolsets, 1);
    search.query = req_text("nothing of it");
    found = ASK_G1(SEARCH, &search);
    CHECK(found != NULL);
    CHECK_INT(found->n_toolsets, 0);
    world_shut();
}

TEST(g1_registration_and_calls_need_redis)
{
    GoaAiRegistry__RegisterRequest reg = GOA_AI_REGISTRY__REGISTER_REQUEST__INIT;
    GoaAiRegistry__CallToolRequest call = GOA_AI_REGISTRY__CALL_TOOL_REQUEST__INIT;
    GoaAiRegistry__ToolCallMeta meta = GOA_AI_REGISTRY__TOOL_CALL_META__INIT;
    GoaAiRegistry__UnregisterRequest unreg = GOA_AI_REGISTRY__UNREGISTER_REQUEST__INIT;
    GoaAiRegistry__PongRequest pong = GOA_AI_REGISTRY__PONG_REQUEST__INIT;

    world_open();
    reg.name = req_text("a");
    CHECK(!ASK_G1(REGISTER, &reg));
    CHECK_STR(answer_name(), "service_unavailable");
    CHECK(!ASK_G1(CALL_TOOL, &call));
    CHECK_STR(answer_name(), "invalid_length");
    meta.run_id = meta.session_id = req_text("m");
    call.toolset = req_text("a");
    call.tool = req_text("t");
    call.has_payload_json = 1;
    call.payload_json = req_bytes("{}");
    CHECK(!ASK_G1(CALL_TOOL, &call));
    CHECK_STR(answer_name(), "missing_field");
    call.meta = &meta;
    CHECK(!ASK_G1(CALL_TOOL, &call));
    CHECK_STR(answer_name(), "not_found");
    register_named("a", NULL);
    CHECK(!ASK_G1(CALL_TOOL, &call));
    CHECK_STR(answer_name(), "service_unavailable");
    CHECK(answer_says("pegboard.v1.Registry") && answer_says("REDIS_URL"));
    unreg.name = req_text("a");
    CHECK(ASK_G1(UNREGISTER, &unreg) != NULL);
    CHECK(ASK_G1(PONG, &pong) != NULL);
    world_shut();
}
