/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: a handler of a provider opens a gate and waits, and the gateway passes on what the
 * caller says: an answer that fits, one that does not, none at all, or one that comes by another
 * stream than the question went. */

#include "t.h"

#include "provider_world.h"

#define YES_OR_NO                                                                                  \
    "{\"type\":\"object\",\"properties\":{\"sure\":{\"type\":\"boolean\"}},\"required\":["         \
    "\"sure\"]}"

/* Replies with the answer, or fails with the gate's own error. */
static void run_gate(peg_call *call, const peg_json *args, void *user)
{
    int64_t timeout_ms = 0;
    peg_schema *schema = NULL;
    peg_json_doc *answer = NULL;
    peg_error error;
    peg_status status = peg_schema_compile(peg_cstr(YES_OR_NO), NULL, &schema, &error);

    (void)user;
    peg_json_int64(peg_json_get(args, "timeout_ms"), &timeout_ms);
    if (!status)
        status =
            peg_gate_wait(peg_call_ctx(call),
                          &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "Really?", .payload = args,
                                          .schema = schema, .timeout_ms = timeout_ms},
                          &answer, &error);
    if (status)
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_json(call, peg_json_root(answer));
    peg_json_doc_free(answer);
    peg_schema_unref(schema);
}

static void run_ask(peg_call *call, const peg_json *args, void *user)
{
    const peg_ask asks[] = {{"roots", "roots/list", NULL, false},
                            {"form", "elicitation/create", args, false}};
    peg_json_doc *answers = NULL;
    peg_error error;

    (void)user;
    if (peg_call_ask(call, asks, 2, &answers, &error))
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_json(call, peg_json_root(answers));
    peg_json_doc_free(answers);
}

static void start(struct world *w, bool is_old)
{
    world_prepare(w);
    add(w->registry, "gate", run_gate, NULL);
    add(w->registry, "ask", run_ask, NULL);
    atomic_store(&w->gateway->is_old, is_old);
    world_provide(w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT});
    fake_await_stream(w->gateway, 0);
}

static void call_tool(struct world *w, const char *id, const char *tool, const char *payload,
                      bool can_be_asked)
{
    Pegboard__V1__Call call = PEGBOARD__V1__CALL__INIT;

    call.call_id = peg__unconst(id);
    call.attempt = 1;
    call.tool = peg__unconst(tool);
    call.timeout_ms = 60000;
    call.can_be_asked = can_be_asked;
    fake_call_with(w->gateway, 0, &call, payload);
}

static void check_failure(struct world *w, const char *id, const char *code, const char *words)
{
    const struct fake_frame *result = fake_await(w->gateway, FAKE_RESULT, id, 0);

    CHECK_STR(peg_cstr(result->name), code);
    if (!strstr(result->words, words))
        T_FAIL("\"%s\" is not in: %s", words, result->words);
}

TEST(a_gate_becomes_a_form_and_its_answer_the_handlers)
{
    struct world w;
    const struct fake_frame *input;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", true);
    input = fake_await(w.gateway, FAKE_INPUT, "c1", 0);
    CHECK_INT(input->number, 1);
    CHECK(!input->more);
    CHECK_STR(peg_cstr(input->text),
              "{\"gate-1\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\","
              "\"message\":\"Really?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":"
              "{\"sure\":{\"type\":\"boolean\"}},\"required\":[\"sure\"]}}}}");
    fake_reply(w.gateway, 0, "c1", 1,
               "{\"gate-1\":{\"action\":\"accept\",\"content\":{\"sure\":true}}}");
    CHECK_RESULT(&w, "c1", "{\"sure\":true}");
    CHECK_INT(fake_count(w.gateway, FAKE_INPUT, "c1"), 1);
    world_stop(&w);
}

TEST(an_answer_that_does_not_fit_is_asked_for_again)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", true);
    fake_await(w.gateway, FAKE_INPUT, "c1", 0);
    fake_reply(w.gateway, 0, "c1", 1,
               "{\"gate-1\":{\"action\":\"accept\",\"content\":{\"sure\":7}}}");
    CHECK_INT(fake_await(w.gateway, FAKE_INPUT, "c1", 1)->number, 2);
    fake_reply(w.gateway, 0, "c1", 1, "{\"gate-1\":{\"action\":\"decline\"}}"); /* too late */
    fake_reply(w.gateway, 0, "c1", 2, "no JSON");
    CHECK_INT(fake_await(w.gateway, FAKE_INPUT, "c1", 2)->number, 3);
    fake_reply(w.gateway, 0, "c1", 3,
               "{\"gate-3\":{\"action\":\"accept\",\"content\":{\"sure\":false}}}");
    CHECK_RESULT(&w, "c1", "{\"sure\":false}");
    world_stop(&w);
}

TEST(several_questions_are_asked_at_once_and_none_may_be_left_out)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "ask", "{\"message\":\"Who?\"}", true);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_INPUT, "c1", 0)->text),
              "{\"roots\":{\"method\":\"roots/list\"},\"form\":{\"method\":\"elicitation/create\","
              "\"params\":{\"message\":\"Who?\"}}}");
    fake_reply(w.gateway, 0, "c1", 1, "{\"roots\":{\"roots\":[]}}");
    CHECK_INT(fake_await(w.gateway, FAKE_INPUT, "c1", 1)->number, 2);
    fake_reply(w.gateway, 0, "c1", 2, "{\"roots\":1,\"form\":2}");
    CHECK_RESULT(&w, "c1", "{\"roots\":1,\"form\":2}");
    world_stop(&w);
}

TEST(who_declines_or_refuses_rejects_the_gate)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", true);
    fake_await(w.gateway, FAKE_INPUT, "c1", 0);
    fake_reply(w.gateway, 0, "c1", 1, "{\"gate-1\":{\"action\":\"decline\"}}");
    check_failure(&w, "c1", "E_TURN_GATE_REJECTED", "declined");
    call_tool(&w, "c2", "gate", "{}", true);
    fake_await(w.gateway, FAKE_INPUT, "c2", 0);
    fake_reply(w.gateway, 0, "c2", 1, "");
    check_failure(&w, "c2", "E_TURN_GATE_REJECTED", "nobody is here");
    world_stop(&w);
}

TEST(a_gate_of_a_caller_that_cannot_be_asked_fails_at_once)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", false);
    check_failure(&w, "c1", "E_GATE_UNSUPPORTED", "");
    CHECK_INT(fake_count(w.gateway, FAKE_INPUT, NULL), 0);
    world_stop(&w);
}

TEST(so_does_one_behind_a_gateway_that_knows_no_questions)
{
    struct world w;

    start(&w, true);
    call_tool(&w, "c1", "gate", "{}", true);
    check_failure(&w, "c1", "E_TURN_GATE_REJECTED", "update it");
    CHECK_INT(fake_count(w.gateway, FAKE_INPUT, NULL), 0);
    world_stop(&w);
}

TEST(a_question_is_asked_again_on_the_next_stream)
{
    struct world w;
    const struct fake_frame *again;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", true);
    fake_await(w.gateway, FAKE_INPUT, "c1", 0);
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);
    again = fake_await(w.gateway, FAKE_INPUT, "c1", 1);
    CHECK_INT(again->stream, 1);
    CHECK_INT(again->number, 1);
    fake_reply(w.gateway, 1, "c1", 1,
               "{\"gate-1\":{\"action\":\"accept\",\"content\":{\"sure\":true}}}");
    CHECK_RESULT(&w, "c1", "{\"sure\":true}");
    world_stop(&w);
}

TEST(a_gate_that_gives_up_is_withdrawn)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{\"timeout_ms\":50}", true);
    check_failure(&w, "c1", "E_TURN_GATE_TIMEOUT", "no answer");
    /* None at all: on a slow machine it gave up before it was asked. */
    if (fake_count(w.gateway, FAKE_INPUT, "c1") > 0) {
        CHECK(!fake_await(w.gateway, FAKE_INPUT, "c1", 0)->more);
        CHECK(fake_await(w.gateway, FAKE_INPUT, "c1", 1)->more);
    }
    world_stop(&w);
}

TEST(a_call_that_is_canceled_does_not_wait_any_more)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", true);
    fake_await(w.gateway, FAKE_INPUT, "c1", 0);
    fake_cancel(w.gateway, 0, "c1");
    check_failure(&w, "c1", "E_TOOL_CANCELED", "");
    world_stop(&w);
}

TEST(a_provider_that_is_freed_does_not_wait_either)
{
    struct world w;

    start(&w, false);
    call_tool(&w, "c1", "gate", "{}", true);
    fake_await(w.gateway, FAKE_INPUT, "c1", 0);
    world_stop(&w);
}
