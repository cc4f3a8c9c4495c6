/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture: a stream as the API sends it ----------------------------------------------- */

#define START                                                                                      \
    "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":"     \
    "\"assistant\",\"content\":[],\"model\":\"claude-x-1\",\"stop_reason\":null,"                  \
    "\"stop_sequence\":null,\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":3,"     \
    "\"cache_read_input_tokens\":4,\"output_tokens\":1}}}"
#define PING "{\"type\":\"ping\"}"
#define BLOCK(i, block)                                                                            \
    "{\"type\":\"content_block_start\",\"index\":" i ",\"content_block\":" block "}"
#define DELTA(i, delta) "{\"type\":\"content_block_delta\",\"index\":" i ",\"delta\":" delta "}"
#define STOP(i) "{\"type\":\"content_block_stop\",\"index\":" i "}"
#define TEXT_START(i) BLOCK(i, "{\"type\":\"text\",\"text\":\"\"}")
#define TEXT(i, words) DELTA(i, "{\"type\":\"text_delta\",\"text\":\"" words "\"}")
#define CALL_START(i, id, name)                                                                    \
    BLOCK(i, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}")
#define INPUT(i, json) DELTA(i, "{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}")
#define MESSAGE_DELTA(reason)                                                                      \
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null" \
    "},\"usage\":{\"output_tokens\":15}}"
#define END "{\"type\":\"message_stop\"}"

static struct answer answer_claude(void)
{
    return answer_new(&peg__wire_anthropic);
}

/* ---- streams ----------------------------------------------------------------------------- */

TEST(anthropic_stream_of_text_becomes_a_block)
{
    struct answer h = answer_claude();

    answer_events(&h, START, TEXT_START("0"), PING, TEXT("0", "Hel"), TEXT("0", "lo"), STOP("0"),
                  MESSAGE_DELTA("end_turn"), END);

    CHECK(h.is_end);
    CHECK_BLOCKS(&h, "text:Hello ");
    CHECK_RESULT(&h, "provider", "\"anthropic\"");
    CHECK_RESULT(&h, "model", "\"claude-x-1\"");
    CHECK_RESULT(&h, "response_id", "\"msg_1\"");
    CHECK_RESULT(&h, "stop_reason", "\"end_turn\"");
    CHECK_RESULT(&h, "usage",
                 "{\"input_tokens\":25,\"output_tokens\":15,\"cache_creation_input_tokens\":3,"
                 "\"cache_read_input_tokens\":4}");
    answer_free(&h);
}

/* G130 */
TEST(anthropic_stream_that_stops_for_tools_says_its_text_once)
{
    struct answer h = answer_claude();

    answer_events(&h, START, TEXT_START("0"), TEXT("0", "I add."), STOP("0"),
                  CALL_START("1", "toolu_1", "add"), INPUT("1", ""), INPUT("1", "{\\\"n\\\":"),
                  INPUT("1", "1}"), STOP("1"), MESSAGE_DELTA("tool_use"), END);

    CHECK_BLOCKS(&h, "text:I add. call:toolu_1,add,{\"n\":1} ");
    CHECK_RESULT(&h, "finish_class", "\"tool_calls_pending\"");
    answer_free(&h);
}

TEST(anthropic_stream_may_tell_calls_at_once)
{
    struct answer h = answer_claude();

    answer_events(&h, START, CALL_START("0", "t0", "add"), CALL_START("1", "t1", "sub"),
                  INPUT("1", "{\\\"n\\\":"), INPUT("0", "{\\\"n\\\":"), INPUT("0", "0}"),
                  INPUT("1", "1}"), STOP("1"), STOP("0"), MESSAGE_DELTA("tool_use"), END);

    CHECK_BLOCKS(&h, "call:t0,add,{\"n\":0} call:t1,sub,{\"n\":1} ");
    answer_free(&h);
}

TEST(anthropic_call_without_arguments_gets_an_empty_object)
{
    struct answer h = answer_claude();

    answer_events(&h, START, CALL_START("0", "t0", "now"), INPUT("0", ""), STOP("0"), STOP("0"),
                  MESSAGE_DELTA("tool_use"), END);

    CHECK_BLOCKS(&h, "call:t0,now,{} ");
    answer_free(&h);
}

TEST(anthropic_call_may_start_with_its_arguments)
{
    struct answer h = answer_claude();

    answer_events(&h, START,
                  BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"t0\",\"name\":\"add\",\"input\":"
                             "{\"n\":1}}"),
                  INPUT("0", "{\\\"n\\\":1}"), STOP("0"), MESSAGE_DELTA("tool_use"), END);

    CHECK_BLOCKS(&h, "call:t0,add,{\"n\":1} ");
    answer_free(&h);
}

TEST(anthropic_call_keeps_arguments_that_are_no_json)
{
    struct answer h = answer_claude();

    answer_events(&h, START, CALL_START("0", "t0", "add"), INPUT("0", "{\\\"n\\\":"), STOP("0"),
                  MESSAGE_DELTA("max_tokens"), END);

    CHECK_BLOCKS(&h, "call:t0,add,{\"n\": ");
    CHECK_RESULT(&h, "truncated", "true");
    answer_free(&h);
}

static peg_str payload_of(const struct answer *h, size_t i, const char *name)
{
    const peg_json *payload = peg_block_payload(peg_turn_at(h->t.turn, i));
    const peg_json *value = payload ? peg_json_get(payload, name) : NULL;

    return value ? peg_json_str(value) : peg_cstr("");
}

TEST(anthropic_thoughts_keep_what_the_api_wants_back)
{
    struct answer h = answer_claude();

    answer_events(&h, START,
                  BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"),
                  DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"H\"}"),
                  DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"m.\"}"),
                  DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"sig=\"}"), STOP("0"),
                  BLOCK("1", "{\"type\":\"redacted_thinking\",\"data\":\"sealed\"}"), STOP("1"),
                  TEXT_START("2"), TEXT("2", "Hi"), STOP("2"), MESSAGE_DELTA("end_turn"), END);

    CHECK_BLOCKS(&h, "thought:Hm. thought: text:Hi ");
    CHECK_STR(payload_of(&h, 0, "signature"), "sig=");
    CHECK_STR(payload_of(&h, 1, "redacted_data"), "sealed");
    answer_free(&h);
}

/* G121 */
TEST(anthropic_thoughts_go_back_as_they_came)
{
    struct answer h = answer_claude();
    struct ask a = ask_new(&peg__wire_anthropic, "claude-x");

    answer_events(&h, START,
                  BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"\"}"),
                  DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"sig=\"}"), STOP("0"),
                  BLOCK("1", "{\"type\":\"redacted_thinking\",\"data\":\"sealed\"}"), STOP("1"),
                  CALL_START("2", "t2", "now"), STOP("2"), MESSAGE_DELTA("tool_use"), END);
    CHECK_BLOCKS(&h, "thought:Hm. thought: call:t2,now,{} ");
    t_turn_free(&a.t);
    a.t = h.t;

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "[{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"sig=\"},"
                      "{\"type\":\"redacted_thinking\",\"data\":\"sealed\"},{\"type\":\"tool_use\","
                      "\"id\":\"t2\",\"name\":\"now\",\"input\":{}}]"));
    h.t.turn = NULL;
    answer_free(&h);
    ask_free(&a);
}

TEST(anthropic_stream_passes_over_what_is_not_known)
{
    struct answer h = answer_claude();

    answer_events(&h, START, "{\"type\":\"something_new\",\"x\":[1]}",
                  BLOCK("0", "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\","
                             "\"input\":{}}"),
                  INPUT("0", "{\\\"query\\\":1}"), STOP("0"),
                  BLOCK("1", "{\"type\":\"web_search_tool_result\",\"content\":[]}"), STOP("1"),
                  TEXT_START("2"), DELTA("2", "{\"type\":\"citations_delta\",\"citation\":{}}"),
                  TEXT("2", "Hi"), STOP("2"), MESSAGE_DELTA("end_turn"), END);

    CHECK_BLOCKS(&h, "text:Hi ");
    answer_free(&h);
}

/* ---- streams that end badly -------------------------------------------------------------- */

/* G129 */
TEST(anthropic_stream_that_breaks_off_keeps_text_and_no_call)
{
    struct answer h = answer_claude();

    answer_events(&h, START, TEXT_START("0"), TEXT("0", "I a"), STOP("0"),
                  CALL_START("1", "t1", "add"), INPUT("1", "{}"), STOP("1"),
                  MESSAGE_DELTA("tool_use"));

    CHECK(!h.is_end);
    CHECK(!h.reply.is_ended);
    CHECK_BLOCKS(&h, "text:I a ");
    CHECK_RESULT(&h, "finish_class", "\"interrupted\"");
    answer_free(&h);
}

/* G129 */
TEST(anthropic_stream_that_tells_an_error_keeps_text_and_no_call)
{
    struct answer h = answer_claude();

    answer_events(&h, START, TEXT_START("0"), TEXT("0", "I a"), STOP("0"),
                  CALL_START("1", "t1", "add"), STOP("1"),
                  "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
                  "\"Overloaded\"}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK(strstr(h.error.message, "Overloaded"));
    answer_finish(&h, false);
    CHECK_STR(peg_cstr(h.blocks), "text:I a ");
    answer_free(&h);
}

TEST(anthropic_stream_that_never_began_is_not_whole)
{
    struct answer h = answer_claude();

    CHECK(!h.reply.is_ended);
    answer_free(&h);
}

/* ---- a whole answer ---------------------------------------------------------------------- */

#define BODY(content)                                                                              \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-x-1\","      \
    "\"content\":" content ",\"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{"      \
    "\"input_tokens\":25,\"output_tokens\":15}}"

TEST(anthropic_body_becomes_blocks)
{
    struct answer h = answer_claude();

    answer_body(&h,
                BODY("[{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"sig=\"},"
                     "{\"type\":\"text\",\"text\":\"I add.\",\"citations\":null},"
                     "{\"type\":\"unknown\"},"
                     "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"add\",\"input\":{\"n\":1}},"
                     "{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"now\",\"input\":{}}]"));

    CHECK_BLOCKS(&h, "thought:Hm. text:I add. call:t1,add,{\"n\":1} call:t2,now,{} ");
    CHECK_STR(payload_of(&h, 0, "signature"), "sig=");
    CHECK_RESULT(&h, "stop_reason", "\"tool_use\"");
    CHECK_RESULT(&h, "usage", "{\"input_tokens\":25,\"output_tokens\":15}");
    answer_free(&h);
}

TEST(anthropic_body_may_be_an_error)
{
    struct answer h = answer_claude();

    answer_body(&h, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Oops\"}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK(strstr(h.error.message, "Oops"));
    answer_free(&h);
}

TEST(anthropic_body_may_hold_any_character)
{
    struct answer h = answer_claude();

    answer_body(&h, BODY("[{\"type\":\"text\",\"text\":\"a\\u0000b\\u00e9\"}]"));
    answer_finish(&h, true);

    CHECK_STATUS(h.status, PEG_OK, h.error);
    CHECK_INT(peg_block_text(peg_turn_at(h.t.turn, 0)).len, 5);
    answer_free(&h);
}

/* ---- hostile answers --------------------------------------------------------------------- */

TEST(anthropic_refuses_events_that_are_none)
{
    static const char *const events[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"type\":5}",
        "{\"type\":null}",
        "{\"type\":\"content_block_start\"}",
        "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":[]}",
        BLOCK("-1", "{\"type\":\"text\"}"),
        BLOCK("100000", "{\"type\":\"text\"}"),
        BLOCK("0.5", "{\"type\":\"text\"}"),
        BLOCK("\"0\"", "{\"type\":\"text\"}"),
        BLOCK("0", "{\"type\":{}}"),
        BLOCK("0", "{\"type\":\"text\",\"text\":5}"),
        BLOCK("0", "{\"type\":\"thinking\",\"thinking\":[]}"),
        BLOCK("0", "{\"type\":\"thinking\",\"signature\":1}"),
        BLOCK("0", "{\"type\":\"redacted_thinking\"}"),
        BLOCK("0", "{\"type\":\"redacted_thinking\",\"data\":1}"),
        BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"x\"}"),
        BLOCK("0", "{\"type\":\"tool_use\",\"id\":5,\"name\":\"x\"}"),
        BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"x\",\"input\":[]}"),
        TEXT("0", "before its start"),
        "{\"type\":\"content_block_delta\",\"index\":0}",
        "{\"type\":\"content_block_stop\"}",
        "{\"type\":\"message_start\",\"message\":5}",
        "{\"type\":\"message_start\",\"message\":{\"model\":[]}}",
        "{\"type\":\"message_start\",\"message\":{\"usage\":[]}}",
        "{\"type\":\"message_delta\",\"delta\":7}",
        "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":7}}",
    };

    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        check_refused(&peg__wire_anthropic, events[i], false);
}

TEST(anthropic_refuses_bodies_that_are_none)
{
    static const char *const bodies[] = {
        "<html>",
        "{}",
        "{\"content\":{}}",
        "{\"content\":[5]}",
        "[]",
        BODY("null"),
        BODY("[[]]"),
        BODY("[{\"type\":5}]"),
        BODY("\"x\""),
        BODY("[{\"type\":\"text\",\"text\":{}}]"),
    };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++)
        check_refused(&peg__wire_anthropic, bodies[i], true);
}

TEST(anthropic_refuses_an_event_that_is_too_deep)
{
    char deep[4096];

    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';

    check_refused(&peg__wire_anthropic, deep, false);
    check_refused(&peg__wire_anthropic, deep, true);
}

TEST(anthropic_refuses_a_delta_of_another_kind)
{
    static const char *const deltas[] = {
        INPUT("0", "{}"),
        DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"x\"}"),
        DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"x\"}"),
        DELTA("0", "{\"type\":\"text_delta\",\"text\":5}"),
        DELTA("0", "{\"type\":5}"),
        TEXT_START("0"),
        TEXT("1", "x"),
    };

    for (size_t i = 0; i < sizeof(deltas) / sizeof(*deltas); i++) {
        struct answer h = answer_claude();

        answer_events(&h, START, TEXT_START("0"), deltas[i]);
        CHECK_INT(h.status, PEG_EPARSE);
        CHECK_STR(peg_cstr(h.error.code), "E_ENGINE_REPLY");
        CHECK_INT(peg_turn_len(h.t.turn), 0);
        answer_free(&h);
    }
}

/* ---- bytes ------------------------------------------------------------------------------- */

#define EVENT(name, data) "event: " name "\r\ndata: " data "\r\n\r\n"
static const char stream[] =
    EVENT("message_start", START) EVENT("ping", PING) EVENT("content_block_start", TEXT_START("0"))
        EVENT("content_block_delta", TEXT("0", "h\xC3\xA9")) EVENT("content_block_stop", STOP("0"))
            EVENT("content_block_start", CALL_START("1", "t1", "add"))
                EVENT("content_block_delta", INPUT("1", "{\\\"n\\\":1}"))
                    EVENT("content_block_stop", STOP("1"))
                        EVENT("message_delta", MESSAGE_DELTA("tool_use"))
                            EVENT("message_stop", END);

TEST(anthropic_stream_may_be_cut_anywhere)
{
    const peg_str bytes = peg_cstr(stream);

    for (size_t n = 0; n <= bytes.len; n++) {
        struct answer h = answer_claude();

        answer_stream(&h, bytes, n);
        CHECK_BLOCKS(&h, "text:h\xC3\xA9 call:t1,add,{\"n\":1} ");
        answer_free(&h);
    }
}

/* G129 */
TEST(anthropic_stream_that_ends_anywhere_leaves_no_call)
{
    const size_t end = (size_t)(strstr(stream, "event: message_stop") - stream);

    for (size_t n = 0; n <= end; n++) {
        struct answer h = answer_claude();

        answer_stream(&h, peg__strn(stream, n), 0);
        answer_finish(&h, !h.status && h.reply.is_ended);
        CHECK(!strstr(h.blocks, "call:"));
        answer_free(&h);
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

TORTURE(anthropic_stream_survives_any_allocation_failure)
{
    struct answer h = answer_claude();
    peg_status status;

    answer_stream(&h, peg_cstr(stream), 100);
    if (!h.status)
        answer_finish(&h, h.reply.is_ended);
    status = h.status;
    if (!status)
        CHECK_STR(peg_cstr(h.blocks), "text:h\xC3\xA9 call:t1,add,{\"n\":1} ");
    answer_free(&h);
    return status;
}

TORTURE(anthropic_body_survives_any_allocation_failure)
{
    struct answer h = answer_claude();
    peg_status status;

    answer_body(&h,
                BODY("[{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"sig=\"},"
                     "{\"type\":\"redacted_thinking\",\"data\":\"x\"},"
                     "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"add\",\"input\":{\"n\":1}}"
                     "]"));
    if (!h.status)
        answer_finish(&h, true);
    status = h.status;
    if (!status)
        CHECK_STR(peg_cstr(h.blocks), "thought:Hm. thought: call:t1,add,{\"n\":1} ");
    answer_free(&h);
    return status;
}
