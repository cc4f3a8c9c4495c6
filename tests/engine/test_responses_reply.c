/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture: events as the API sends them -------------------------------------------------- */

#define EVENT(type, members) "{\"type\":\"" type "\",\"sequence_number\":1," members "}"
#define CREATED                                                                                    \
    EVENT("response.created", "\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-5-2025-08-07\","    \
                              "\"status\":\"in_progress\",\"output\":[],\"usage\":null,"           \
                              "\"error\":null}")
#define ADDED(index, item)                                                                         \
    EVENT("response.output_item.added", "\"output_index\":" index ",\"item\":{" item "}")
#define DONE(index, item)                                                                          \
    EVENT("response.output_item.done", "\"output_index\":" index ",\"item\":{" item "}")
#define DELTA(type, index, id, delta)                                                              \
    EVENT(type, "\"output_index\":" index ",\"item_id\":\"" id "\",\"delta\":\"" delta "\"")
#define ENDED(type, status, members)                                                               \
    EVENT("response." type, "\"response\":{\"id\":\"resp_1\",\"status\":\"" status "\"," members   \
                            "\"usage\":{\"input_tokens\":12,\"input_tokens_details\":{"            \
                            "\"cached_tokens\":4},\"output_tokens\":5,\"output_tokens_details\":{" \
                            "\"reasoning_tokens\":2},\"total_tokens\":17}}")
#define COMPLETED ENDED("completed", "completed", "")

#define MESSAGE "\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\""
#define MESSAGE_TEXT(text)                                                                         \
    MESSAGE ",\"content\":[{\"type\":\"output_text\",\"text\":\"" text "\",\"annotations\":[]}]"
#define CALL(n, name, args)                                                                        \
    "\"type\":\"function_call\",\"id\":\"fc_" n "\",\"call_id\":\"c" n "\",\"name\":\"" name       \
    "\",\"arguments\":\"" args "\""
#define ARGS "response.function_call_arguments.delta"
#define TEXT "response.output_text.delta"

static struct answer responses(void)
{
    return answer_new(&peg__wire_responses);
}

static const char *const everything[] = {
    CREATED,
    ADDED("0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]"),
    EVENT("response.reasoning_summary_part.added",
          "\"output_index\":0,\"item_id\":\"rs_1\",\"summary_index\":0"),
    DELTA("response.reasoning_summary_text.delta", "0", "rs_1", "H"),
    DELTA("response.reasoning_summary_text.delta", "0", "rs_1", "m"),
    EVENT("response.reasoning_summary_part.added",
          "\"output_index\":0,\"item_id\":\"rs_1\",\"summary_index\":1"),
    DELTA("response.reasoning_summary_text.delta", "0", "rs_1", "Ah"),
    DONE("0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"gAAA\",\"summary\":["
              "{\"type\":\"summary_text\",\"text\":\"Hm\"},{\"type\":\"summary_text\",\"text\":"
              "\"Ah\"}]"),
    ADDED("1", MESSAGE ",\"content\":[]"),
    DELTA(TEXT, "1", "msg_1", "Bo"),
    DELTA(TEXT, "1", "msg_1", "th."),
    DONE("1", MESSAGE_TEXT("Both.")),
    ADDED("2", CALL("1", "add", "")),
    ADDED("3", CALL("2", "mul", "")),
    DELTA(ARGS, "2", "fc_1", "{\\\"n\\\""),
    DELTA(ARGS, "3", "fc_2", "{"),
    DELTA(ARGS, "2", "fc_1", ":1}"),
    DELTA(ARGS, "3", "fc_2", "}"),
    EVENT("response.function_call_arguments.done",
          "\"output_index\":2,\"item_id\":\"fc_1\",\"arguments\":\"{\\\"n\\\":1}\""),
    DONE("2", CALL("1", "add", "{\\\"n\\\":1}")),
    DONE("3", CALL("2", "mul", "{}")),
    COMPLETED,
    NULL,
};
#define ALL_TOLD "thought:Hm\n\nAh text:Both. call:c1,add,{\"n\":1} call:c2,mul,{} "

static peg_str payload(const struct answer *h, size_t i, const char *name)
{
    const peg_json *object = peg_block_payload(peg_turn_at(h->t.turn, i));
    const peg_json *value = object ? peg_json_get(object, name) : NULL;

    return value ? peg_json_str(value) : peg_cstr("");
}

/* ---- streams -------------------------------------------------------------------------------- */

/* G128 */
TEST(responses_reads_thoughts_text_and_interleaved_calls)
{
    struct answer h = responses();

    answer_list(&h, everything);

    CHECK(h.is_end);
    CHECK_BLOCKS(&h, ALL_TOLD);
    CHECK_RESULT(&h, "response_id", "\"resp_1\"");
    CHECK_RESULT(&h, "model", "\"gpt-5-2025-08-07\"");
    CHECK_RESULT(&h, "stop_reason", "\"completed\"");
    CHECK_RESULT(&h, "usage",
                 "{\"input_tokens\":12,\"output_tokens\":5,\"cached_tokens\":4,"
                 "\"reasoning_tokens\":2}");
    answer_free(&h);
}

TEST(responses_keeps_what_has_to_go_back)
{
    struct answer h = responses();

    answer_list(&h, everything);
    CHECK_BLOCKS(&h, ALL_TOLD);

    CHECK_STR(payload(&h, 0, "item_id"), "rs_1");
    CHECK_STR(payload(&h, 0, "encrypted_content"), "gAAA");
    CHECK_INT(peg_json_len(peg_json_get(peg_block_payload(peg_turn_at(h.t.turn, 0)), "summary")),
              2);
    CHECK_STR(payload(&h, 1, "item_id"), "msg_1");
    CHECK_STR(payload(&h, 2, "item_id"), "fc_1");
    answer_free(&h);
}

/* G118 */
TEST(responses_sends_back_what_it_has_read)
{
    struct answer h = responses();
    struct ask a = ask_new(&peg__wire_responses, "gpt-5");

    answer_list(&h, everything);
    CHECK_BLOCKS(&h, ALL_TOLD);
    peg_turn_free(a.t.turn);
    CHECK_INT(peg_turn_copy(h.t.turn, &a.t.turn, NULL), PEG_OK);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);

    CHECK(ask_has(&a, "\"input\":[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":"
                      "\"summary_text\",\"text\":\"Hm\"},{\"type\":\"summary_text\",\"text\":"
                      "\"Ah\"}],\"encrypted_content\":\"gAAA\"},{\"type\":\"message\",\"id\":"
                      "\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{"
                      "\"type\":\"output_text\",\"text\":\"Both.\",\"annotations\":[]}]},{\"type\":"
                      "\"function_call\",\"id\":\"fc_1\","));
    ask_free(&a);
    answer_free(&h);
}

TEST(responses_keeps_a_thought_that_is_only_sealed)
{
    struct answer h = responses();

    answer_events(&h,
                  DONE("0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],"
                            "\"encrypted_content\":\"gAAA\""),
                  DONE("1", MESSAGE_TEXT("Yes.")), COMPLETED);

    CHECK_BLOCKS(&h, "thought: text:Yes. ");
    CHECK_STR(payload(&h, 0, "encrypted_content"), "gAAA");
    answer_free(&h);
}

TEST(responses_reads_plain_thoughts_of_other_servers)
{
    struct answer h = responses();

    answer_events(&h, ADDED("0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]"),
                  DELTA("response.reasoning_text.delta", "0", "rs_1", "Hm"),
                  DONE("0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"content\":[{"
                            "\"type\":\"reasoning_text\",\"text\":\"Hm.\"}]"),
                  COMPLETED);

    CHECK_BLOCKS(&h, "thought:Hm. ");
    answer_free(&h);
}

TEST(responses_takes_a_refusal_for_what_it_says)
{
    struct answer h = responses();

    answer_events(
        &h, ADDED("0", MESSAGE ",\"content\":[]"),
        DELTA("response.refusal.delta", "0", "msg_1", "I can"),
        DELTA("response.refusal.delta", "0", "msg_1", "not."),
        DONE("0", MESSAGE ",\"content\":[{\"type\":\"refusal\",\"refusal\":\"I cannot.\"}]"),
        COMPLETED);

    CHECK_BLOCKS(&h, "text:I cannot. ");
    answer_free(&h);
}

TEST(responses_orders_items_by_their_index)
{
    struct answer h = responses();

    answer_events(&h, ADDED("1", CALL("2", "b", "")), ADDED("0", CALL("1", "a", "")),
                  DELTA(ARGS, "1", "fc_2", "{}"), COMPLETED);

    CHECK_BLOCKS(&h, "call:c1,a, call:c2,b,{} ");
    answer_free(&h);
}

TEST(responses_tells_items_apart_by_their_ids_where_there_is_no_index)
{
    struct answer h = responses();

    answer_events(&h, EVENT("response.output_item.added", "\"item\":{" CALL("1", "a", "") "}"),
                  EVENT("response.output_item.added", "\"item\":{" CALL("2", "b", "") "}"),
                  EVENT(ARGS, "\"item_id\":\"fc_1\",\"delta\":\"{}\""),
                  EVENT(ARGS, "\"item_id\":\"fc_2\",\"delta\":\"[]\""), COMPLETED);

    CHECK_BLOCKS(&h, "call:c1,a,{} call:c2,b,[] ");
    answer_free(&h);
}

TEST(responses_goes_by_the_index_where_ids_change)
{
    struct answer h = responses();

    answer_events(&h, ADDED("0", MESSAGE ",\"content\":[]"), DELTA(TEXT, "0", "other", "Yes"),
                  DELTA(TEXT, "0", "another", "."), COMPLETED);

    CHECK_BLOCKS(&h, "text:Yes. ");
    answer_free(&h);
}

TEST(responses_takes_the_last_word_of_an_item)
{
    struct answer h = responses();

    answer_events(&h, ADDED("0", CALL("1", "add", "")), DELTA(ARGS, "0", "fc_1", "{\\\"n\\\":"),
                  DONE("0", CALL("1", "add", "{\\\"n\\\":2}")), COMPLETED);

    CHECK_BLOCKS(&h, "call:c1,add,{\"n\":2} ");
    answer_free(&h);
}

TEST(responses_reads_the_name_of_a_call_whose_arguments_came_first)
{
    struct answer h = responses();

    answer_events(&h, DELTA(ARGS, "0", "fc_1", "{"), DONE("0", CALL("1", "add", "{}")), COMPLETED);

    CHECK_BLOCKS(&h, "call:c1,add,{} ");
    answer_free(&h);
}

TEST(responses_passes_over_items_and_events_it_does_not_know)
{
    struct answer h = responses();

    answer_events(&h, ADDED("0", "\"type\":\"web_search_call\",\"id\":\"ws_1\""),
                  EVENT("response.web_search_call.searching", "\"output_index\":0"),
                  DONE("1", MESSAGE_TEXT("Found.")), COMPLETED);

    CHECK_BLOCKS(&h, "text:Found. ");
    answer_free(&h);
}

TEST(responses_takes_the_type_from_the_name_of_the_event)
{
    struct answer h = responses();
    bool is_end;

    CHECK_INT(
        peg__wire_read_event(&peg__wire_responses, &h.reply, peg_cstr("response.output_text.delta"),
                             peg_cstr("{\"output_index\":0,\"delta\":\"Yes.\"}"), &is_end, NULL),
        PEG_OK);
    answer_events(&h, COMPLETED);

    CHECK_BLOCKS(&h, "text:Yes. ");
    answer_free(&h);
}

/* ---- whole or not -----------------------------------------------------------------------------
 */

TEST(responses_says_why_a_response_is_incomplete)
{
    struct answer h = responses();

    answer_events(&h, DELTA(TEXT, "0", "msg_1", "Ye"),
                  ENDED("incomplete", "incomplete",
                        "\"incomplete_details\":{\"reason\":\"max_output_tokens\"},"));

    CHECK(h.is_end);
    CHECK_BLOCKS(&h, "text:Ye ");
    CHECK_RESULT(&h, "stop_reason", "\"max_output_tokens\"");
    CHECK_RESULT(&h, "truncated", "true");
    answer_free(&h);
}

/* G129 */
TEST(responses_that_break_off_leave_text_and_no_calls)
{
    struct answer h = responses();

    answer_events(&h, CREATED, DELTA(TEXT, "0", "msg_1", "Let me"), DONE("1", CALL("1", "a", "{}")),
                  "[DONE]");

    CHECK_BLOCKS(&h, "text:Let me ");
    CHECK_RESULT(&h, "finish_class", "\"interrupted\"");
    answer_free(&h);
}

static void check_error(const char *event, const char *code, const char *words)
{
    struct answer h = responses();

    answer_events(&h, DELTA(TEXT, "0", "msg_1", "Let me"), DONE("1", CALL("1", "a", "{}")), event);
    CHECK_INT(h.status, PEG_EHOST);
    CHECK_STR(peg_cstr(h.error.code), code);
    CHECK(strstr(h.error.message, words));
    answer_finish(&h, false);
    CHECK_STR(peg_cstr(h.blocks), "text:Let me ");
    answer_free(&h);
}

/* G129 */
TEST(responses_that_fail_leave_text_and_no_calls)
{
    check_error(EVENT("error", "\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\","
                               "\"param\":null"),
                "E_ENGINE_RATE_LIMITED", "slow down");
    check_error(EVENT("response.failed", "\"response\":{\"status\":\"failed\",\"error\":{\"code\":"
                                         "\"server_error\",\"message\":\"it broke\"}}"),
                "E_ENGINE_FAILED", "it broke");
    check_error("{\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\"}}",
                "E_ENGINE_REQUEST", "bad");
}

/* ---- whole answers ------------------------------------------------------------------------------
 */

#define BODY(status, members)                                                                      \
    "{\"id\":\"resp_1\",\"object\":\"response\",\"model\":\"m\",\"status\":\"" status              \
    "\"," members "\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}"

TEST(responses_reads_a_whole_answer)
{
    struct answer h = responses();

    answer_body(&h, BODY("completed",
                         "\"error\":null,\"incomplete_details\":null,\"output\":[{\"type\":"
                         "\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":"
                         "\"gAAA\"},{" MESSAGE_TEXT("Both.") "},{" CALL("1", "a", "{}") "},{" CALL(
                             "2", "b", "{}") "}],"));

    CHECK_BLOCKS(&h, "thought: text:Both. call:c1,a,{} call:c2,b,{} ");
    CHECK_RESULT(&h, "usage", "{\"input_tokens\":1,\"output_tokens\":2}");
    answer_free(&h);
}

TEST(responses_reads_a_failure_in_a_whole_answer)
{
    struct answer h = responses();

    answer_body(&h, BODY("failed", "\"error\":{\"code\":\"server_error\",\"message\":\"it broke\"},"
                                   "\"output\":[],"));

    CHECK_INT(h.status, PEG_EHOST);
    CHECK(strstr(h.error.message, "it broke"));
    answer_free(&h);
}

TEST(responses_takes_items_of_the_end_that_no_event_told)
{
    struct answer h = responses();

    answer_events(&h, DELTA(TEXT, "0", "msg_1", "Bo"),
                  ENDED("completed", "completed",
                        "\"output\":[{" MESSAGE_TEXT("Both.") "},{" CALL("1", "a", "{}") "}],"));

    CHECK_BLOCKS(&h, "text:Both. call:c1,a,{} ");
    answer_free(&h);
}

/* ---- bytes -------------------------------------------------------------------------------------
 */

TEST(responses_reads_a_stream_that_is_split_anywhere)
{
    static char text[16384];
    size_t len = 0;

    for (size_t i = 0; everything[i]; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "event: x\ndata: %s\n\n",
                                everything[i]);
    for (size_t i = 0; i <= len; i++) {
        struct answer h = responses();

        answer_stream(&h, peg__strn(text, len), i);
        CHECK_BLOCKS(&h, ALL_TOLD);
        answer_free(&h);
    }
}

TEST(responses_refuses_what_is_no_reply)
{
    static const char *const events[] = {
        "",
        "[]",
        "{\"type\":1}",
        EVENT("response.created", "\"response\":1"),
        EVENT("response.created", "\"response\":{\"id\":1}"),
        EVENT("response.completed", "\"x\":1"),
        EVENT("response.completed", "\"response\":{\"output\":1}"),
        EVENT("response.completed", "\"response\":{\"output\":[1]}"),
        EVENT("response.completed", "\"response\":{\"usage\":1}"),
        EVENT("response.completed", "\"response\":{\"status\":1}"),
        EVENT("response.incomplete", "\"response\":{\"incomplete_details\":1}"),
        EVENT("response.output_item.added", "\"item\":1"),
        EVENT("response.output_item.added", "\"item\":{\"type\":1}"),
        ADDED("-1", MESSAGE),
        ADDED("100000", MESSAGE),
        ADDED("\"0\"", MESSAGE),
        ADDED("0", "\"type\":\"message\",\"id\":1"),
        ADDED("0", "\"type\":\"message\",\"content\":1"),
        ADDED("0", "\"type\":\"message\",\"content\":[1]"),
        ADDED("0", "\"type\":\"message\",\"content\":[{\"text\":1}]"),
        ADDED("0", "\"type\":\"message\",\"content\":[{\"refusal\":1}]"),
        ADDED("0", "\"type\":\"reasoning\",\"summary\":1"),
        ADDED("0", "\"type\":\"reasoning\",\"summary\":[1]"),
        ADDED("0", "\"type\":\"reasoning\",\"encrypted_content\":1"),
        ADDED("0", "\"type\":\"function_call\",\"call_id\":1"),
        ADDED("0", "\"type\":\"function_call\",\"name\":1"),
        ADDED("0", "\"type\":\"function_call\",\"arguments\":{}"),
        EVENT(TEXT, "\"delta\":1"),
        EVENT(TEXT, "\"output_index\":{},\"delta\":\"x\""),
        EVENT(TEXT, "\"item_id\":1,\"delta\":\"x\""),
        EVENT("response.function_call_arguments.done", "\"arguments\":1"),
        EVENT("response.reasoning_summary_part.added", "\"summary_index\":\"x\""),
    };

    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        check_refused(&peg__wire_responses, events[i], false);
}

TEST(responses_refuses_an_item_that_changes_its_kind)
{
    struct answer h = responses();

    answer_events(&h, ADDED("0", MESSAGE), DELTA(ARGS, "0", "msg_1", "{"));

    CHECK_INT(h.status, PEG_EPARSE);
    CHECK_STR(peg_cstr(h.error.code), "E_ENGINE_REPLY");
    CHECK_INT(peg_turn_len(h.t.turn), 0);
    answer_free(&h);
}

TEST(responses_refuses_bodies_that_are_no_reply)
{
    check_refused(&peg__wire_responses, "", true);
    check_refused(&peg__wire_responses, "{}", true);
    check_refused(&peg__wire_responses, "{\"output\":1}", true);
    check_refused(&peg__wire_responses, "{\"output\":[1]}", true);
}

TEST(responses_keeps_only_the_words_of_a_summary)
{
    static char event[2048];
    struct answer h = responses();
    const peg_json *summary;
    size_t len = (size_t)snprintf(event, sizeof(event),
                                  "{\"type\":\"response.output_item.done\",\"item\":{\"type\":"
                                  "\"reasoning\",\"summary\":[{\"text\":\"x\",\"deep\":");

    memset(event + len, '[', 200);
    memset(event + len + 200, ']', 200);
    snprintf(event + len + 400, sizeof(event) - len - 400, "}]}}");
    answer_events(&h, event, COMPLETED);

    CHECK_BLOCKS(&h, "thought:x ");
    summary = peg_json_get(peg_block_payload(peg_turn_at(h.t.turn, 0)), "summary");
    CHECK_INT(peg_json_extent(summary), 1 + 1 + 4);
    answer_free(&h);
}

TORTURE(responses_reply_survives_any_allocation_failure)
{
    struct answer h = responses();
    peg_status status;

    answer_list(&h, everything);
    if (!h.status)
        answer_finish(&h, true);
    status = h.status;
    answer_free(&h);
    return status;
}
