/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture: chunks as the API sends them ------------------------------------------------- */

#define CHUNK(delta, finish)                                                                       \
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":"         \
    "\"gpt-4.1-2025-04-14\",\"choices\":[{\"index\":0,\"delta\":" delta ",\"logprobs\":null,"      \
    "\"finish_reason\":" finish "}]}"
#define DELTA(delta) CHUNK(delta, "null")
#define TEXT(text) DELTA("{\"content\":\"" text "\"}")
#define CALLS(calls) DELTA("{\"tool_calls\":[" calls "]}")
#define STOP CHUNK("{}", "\"stop\"")
#define USAGE                                                                                      \
    "{\"id\":\"chatcmpl-1\",\"model\":\"gpt-4.1-2025-04-14\",\"choices\":[],\"usage\":{"           \
    "\"prompt_tokens\":12,\"completion_tokens\":5,\"total_tokens\":17,"                            \
    "\"prompt_tokens_details\":{\"cached_tokens\":4},"                                             \
    "\"completion_tokens_details\":{\"reasoning_tokens\":2}}}"

static struct answer chat(void)
{
    return answer_new(&peg__wire_chat);
}

static const char *const parallel[] = {
    DELTA("{\"role\":\"assistant\",\"content\":null}"),
    CALLS("{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"add\","
          "\"arguments\":\"\"}}"),
    CALLS("{\"index\":1,\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"mul\","
          "\"arguments\":\"{\"}}"),
    CALLS("{\"index\":0,\"function\":{\"arguments\":\"{\\\"n\\\"\"}},"
          "{\"index\":1,\"function\":{\"arguments\":\"}\"}}"),
    CALLS("{\"index\":0,\"function\":{\"arguments\":\":1}\"}}"),
    CHUNK("{}", "\"tool_calls\""),
    USAGE,
    "[DONE]",
    NULL,
};

/* ---- words -------------------------------------------------------------------------------- */

TEST(chat_joins_pieces_of_text)
{
    struct answer h = chat();

    answer_events(&h, DELTA("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}"),
                  TEXT("Hel"), TEXT("lo"), STOP, USAGE, "[DONE]");

    CHECK(h.is_end);
    CHECK_BLOCKS(&h, "text:Hello ");
    CHECK_RESULT(&h, "stop_reason", "\"stop\"");
    CHECK_RESULT(&h, "model", "\"gpt-4.1-2025-04-14\"");
    CHECK_RESULT(&h, "response_id", "\"chatcmpl-1\"");
    CHECK_RESULT(&h, "usage",
                 "{\"input_tokens\":12,\"output_tokens\":5,\"cached_tokens\":4,"
                 "\"reasoning_tokens\":2}");
    answer_free(&h);
}

TEST(chat_takes_a_refusal_for_what_it_says)
{
    struct answer h = chat();

    answer_events(&h, DELTA("{\"refusal\":\"I can\"}"), DELTA("{\"refusal\":\"not.\"}"), STOP);

    CHECK_BLOCKS(&h, "text:I cannot. ");
    answer_free(&h);
}

static void check_thought(const char *field, const char *both)
{
    struct answer h = chat();
    char delta[256];
    char payload[128];
    peg_block *thought;

    snprintf(delta, sizeof(delta), DELTA("{\"%s\":\"Hm\"%s}"), field, both);
    answer_events(&h, delta, delta, TEXT("Yes."), STOP);
    CHECK_BLOCKS(&h, "thought:HmHm text:Yes. ");
    thought = peg_turn_at(h.t.turn, 0);
    snprintf(payload, sizeof(payload), "%s", field);
    CHECK_STR(peg_json_str(peg_json_get(peg_block_payload(thought), "wire_field")), payload);
    answer_free(&h);
}

TEST(chat_keeps_in_which_member_thoughts_came)
{
    check_thought("reasoning_content", "");
    check_thought("reasoning", "");
    check_thought("reasoning_content", ",\"reasoning\":\"Hm\"");
}

TEST(chat_reads_content_that_is_a_list)
{
    struct answer h = chat();

    answer_events(&h,
                  DELTA("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\","
                        "\"text\":\"Hm\"}]},{\"type\":\"text\",\"text\":\"Yes.\"}]}"),
                  STOP);

    CHECK_BLOCKS(&h, "thought:Hm text:Yes. ");
    answer_free(&h);
}

TEST(chat_reads_only_the_first_of_several_choices)
{
    struct answer h = chat();

    answer_events(&h, TEXT("one"), "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"two\"}}]}",
                  STOP);

    CHECK_BLOCKS(&h, "text:one ");
    answer_free(&h);
}

TEST(chat_says_that_a_reply_was_too_long)
{
    struct answer h = chat();

    answer_events(&h, TEXT("one"), CHUNK("{}", "\"length\""));

    CHECK_BLOCKS(&h, "text:one ");
    CHECK_RESULT(&h, "truncated", "true");
    answer_free(&h);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* G127, G128 */
TEST(chat_merges_fragments_of_interleaved_calls_by_their_index)
{
    struct answer h = chat();

    answer_list(&h, parallel);

    CHECK_BLOCKS(&h, "call:c1,add,{\"n\":1} call:c2,mul,{} ");
    CHECK_RESULT(&h, "finish_class", "\"tool_calls_pending\"");
    answer_free(&h);
}

/* G127 */
TEST(chat_orders_calls_by_their_index)
{
    struct answer h = chat();

    answer_events(&h, TEXT("Both."),
                  CALLS("{\"index\":2,\"id\":\"c3\",\"function\":{\"name\":\"c\"}}"),
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\"}}"),
                  CALLS("{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"b\"}}"), STOP);

    CHECK_BLOCKS(&h, "text:Both. call:c1,a, call:c2,b, call:c3,c, ");
    answer_free(&h);
}

TEST(chat_joins_names_that_come_in_pieces)
{
    struct answer h = chat();

    answer_events(&h, CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"get_\"}}"),
                  CALLS("{\"index\":0,\"function\":{\"name\":\"time\",\"arguments\":\"{}\"}}"),
                  STOP);

    CHECK_BLOCKS(&h, "call:c1,get_time,{} ");
    answer_free(&h);
}

/* G127 */
TEST(chat_takes_a_missing_index_for_the_call_before)
{
    struct answer h = chat();

    answer_events(&h, CALLS("{\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":\"{\"}}"),
                  CALLS("{\"function\":{\"arguments\":\"}\"}}"), STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{} ");
    answer_free(&h);
}

TEST(chat_tells_calls_apart_that_have_only_ids)
{
    struct answer h = chat();

    answer_events(&h,
                  CALLS("{\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}},"
                        "{\"id\":\"c2\",\"function\":{\"name\":\"b\",\"arguments\":\"[\"}}"),
                  CALLS("{\"id\":\"c2\",\"function\":{\"arguments\":\"]\"}}"), STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{} call:c2,b,[] ");
    answer_free(&h);
}

TEST(chat_tells_calls_apart_that_share_an_index)
{
    struct answer h = chat();

    answer_events(&h,
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":"
                        "\"{}\"}}"),
                  CALLS("{\"index\":0,\"id\":\"c2\",\"function\":{\"name\":\"b\",\"arguments\":"
                        "\"{}\"}}"),
                  STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{} call:c2,b,{} ");
    answer_free(&h);
}

TEST(chat_keeps_a_call_together_whose_fragments_have_ids_of_their_own)
{
    struct answer h = chat();

    answer_events(&h, CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\"}}"),
                  CALLS("{\"index\":0,\"id\":\"x1\",\"function\":{\"arguments\":\"{\"}}"),
                  CALLS("{\"index\":0,\"id\":\"x2\",\"function\":{\"arguments\":\"}\"}}"), STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{} ");
    answer_free(&h);
}

TEST(chat_keeps_calls_apart_that_share_an_id)
{
    struct answer h = chat();

    answer_events(&h,
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":"
                        "\"{}\"}},{\"index\":1,\"id\":\"c1\",\"function\":{\"name\":\"b\","
                        "\"arguments\":\"{}\"}}"),
                  STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{} call:c1,b,{} ");
    answer_free(&h);
}

TEST(chat_keeps_malformed_arguments_as_they_are)
{
    struct answer h = chat();

    answer_events(&h,
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":"
                        "\"{\\\"n\\\":\"}}"),
                  STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{\"n\": ");
    answer_free(&h);
}

TEST(chat_takes_arguments_that_are_an_object)
{
    struct answer h = chat();

    answer_events(&h,
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":"
                        "{\"n\":1}}}"),
                  STOP);

    CHECK_BLOCKS(&h, "call:c1,a,{\"n\":1} ");
    answer_free(&h);
}

/* ---- whole or not -----------------------------------------------------------------------------
 */

TEST(chat_is_whole_once_it_says_why_it_ended)
{
    struct answer h = chat();

    CHECK(!h.reply.is_ended);
    answer_events(&h, TEXT("one"));
    CHECK(!h.reply.is_ended);
    answer_events(&h, STOP);
    CHECK(h.reply.is_ended);
    CHECK(!h.is_end);
    answer_free(&h);
}

/* G129 */
TEST(chat_that_breaks_off_leaves_text_and_no_calls)
{
    struct answer h = chat();

    answer_events(&h, TEXT("Let me"),
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":"
                        "\"{}\"}}"));

    CHECK_BLOCKS(&h, "text:Let me ");
    CHECK_RESULT(&h, "finish_class", "\"interrupted\"");
    answer_free(&h);
}

/* G129 */
TEST(chat_that_tells_an_error_in_its_stream_leaves_text_and_no_calls)
{
    struct answer h = chat();

    answer_events(&h, TEXT("Let me"),
                  CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\"}}"),
                  "{\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\","
                  "\"code\":null}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK_STR(peg_cstr(h.error.code), "E_ENGINE_FAILED");
    CHECK(strstr(h.error.message, "The server had an error"));
    answer_finish(&h, false);
    CHECK_STR(peg_cstr(h.blocks), "text:Let me ");
    answer_free(&h);
}

TEST(chat_reads_errors_of_other_servers)
{
    struct answer h = chat();

    answer_events(&h, "{\"object\":\"error\",\"message\":\"too long\",\"code\":400}");

    CHECK_STR(peg_cstr(h.error.code), "E_ENGINE_REQUEST");
    CHECK(strstr(h.error.message, "too long"));
    answer_free(&h);
}

/* ---- whole answers ------------------------------------------------------------------------------
 */

TEST(chat_reads_a_whole_answer)
{
    struct answer h = chat();

    answer_body(&h, "{\"id\":\"chatcmpl-2\",\"object\":\"chat.completion\",\"model\":\"m\","
                    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
                    "\"Both.\",\"refusal\":null,\"reasoning_content\":\"Hm\",\"tool_calls\":["
                    "{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"a\","
                    "\"arguments\":\"{}\"}},{\"id\":\"c1\",\"type\":\"function\",\"function\":{"
                    "\"name\":\"b\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}],"
                    "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}");

    CHECK_BLOCKS(&h, "thought:Hm text:Both. call:c1,a,{} call:c1,b,{} ");
    CHECK_RESULT(&h, "usage", "{\"input_tokens\":1,\"output_tokens\":2}");
    CHECK_RESULT(&h, "stop_reason", "\"tool_calls\"");
    answer_free(&h);
}

TEST(chat_reads_an_error_in_a_whole_answer)
{
    struct answer h = chat();

    answer_body(&h, "{\"error\":{\"message\":\"slow down\",\"code\":429}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK_STR(peg_cstr(h.error.code), "E_ENGINE_RATE_LIMITED");
    answer_free(&h);
}

/* ---- bytes -------------------------------------------------------------------------------------
 */

static size_t write_stream(const char *const *events, char *text, size_t size)
{
    size_t len = 0;

    for (; *events; events++)
        len += (size_t)snprintf(text + len, size - len, "data: %s\r\n\r\n", *events);
    return len;
}

TEST(chat_reads_a_stream_that_is_split_anywhere)
{
    static char text[8192];
    const size_t len = write_stream(parallel, text, sizeof(text));

    for (size_t i = 0; i <= len; i++) {
        struct answer h = chat();

        answer_stream(&h, peg__strn(text, len), i);
        CHECK_BLOCKS(&h, "call:c1,add,{\"n\":1} call:c2,mul,{} ");
        answer_free(&h);
    }
}

TEST(chat_refuses_what_is_no_reply)
{
    static const char *const events[] = {
        "",
        "x",
        "[]",
        "1",
        "{\"choices\":1}",
        "{\"choices\":[1]}",
        "{\"choices\":[{\"index\":\"0\"}]}",
        "{\"choices\":[{\"index\":-1}]}",
        "{\"choices\":[{\"delta\":[]}]}",
        "{\"choices\":[{\"finish_reason\":1}]}",
        DELTA("{\"content\":1}"),
        DELTA("{\"content\":[1]}"),
        DELTA("{\"content\":[{\"text\":1}]}"),
        DELTA("{\"content\":[{\"thinking\":\"x\"}]}"),
        DELTA("{\"refusal\":{}}"),
        DELTA("{\"reasoning_content\":1}"),
        DELTA("{\"tool_calls\":{}}"),
        CALLS("1"),
        CALLS("{\"index\":100000}"),
        CALLS("{\"index\":99999999999999999999}"),
        CALLS("{\"index\":0.5}"),
        CALLS("{\"index\":-1}"),
        CALLS("{\"id\":1}"),
        CALLS("{\"function\":\"x\"}"),
        CALLS("{\"function\":{\"name\":1}}"),
        CALLS("{\"function\":{\"arguments\":1}}"),
        "{\"usage\":[]}",
        "{\"id\":1}",
        "{\"model\":[]}",
    };

    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        check_refused(&peg__wire_chat, events[i], false);
}

TEST(chat_refuses_bodies_that_are_no_reply)
{
    check_refused(&peg__wire_chat, "", true);
    check_refused(&peg__wire_chat, "{}", true);
    check_refused(&peg__wire_chat, "{\"choices\":[]}", true);
    check_refused(&peg__wire_chat, "{\"choices\":[{\"message\":1}]}", true);
}

TEST(chat_refuses_a_reply_that_nests_too_deeply)
{
    static char text[4096];

    memset(text, '[', sizeof(text) - 1);
    check_refused(&peg__wire_chat, text, false);
    check_refused(&peg__wire_chat, text, true);
}

TEST(chat_refuses_more_calls_than_it_can_tell_apart)
{
    struct answer h = chat();
    char event[256];

    for (int i = 0; i < 2000 && !h.status; i++) {
        snprintf(event, sizeof(event), CALLS("{\"index\":%d,\"id\":\"c\"}"), i);
        answer_events(&h, event);
    }

    CHECK_INT(h.status, PEG_EPARSE);
    CHECK(strstr(h.error.message, "parts side by side"));
    answer_free(&h);
}

TEST(chat_takes_zero_bytes_in_text)
{
    struct answer h = chat();

    answer_events(&h, TEXT("a\\u0000b"), STOP);
    CHECK_STATUS(h.status, PEG_OK, h.error);
    answer_finish(&h, true);

    CHECK_STATUS(h.status, PEG_OK, h.error);
    CHECK_INT(peg_block_text(peg_turn_at(h.t.turn, 0)).len, 3);
    answer_free(&h);
}

TEST(chat_passes_over_chunks_that_say_nothing)
{
    struct answer h = chat();

    answer_events(&h, "{\"choices\":[],\"prompt_filter_results\":[]}", "{}",
                  "{\"choices\":null,\"usage\":null}", CALLS("{\"index\":0}"), TEXT("x"), STOP);

    CHECK_BLOCKS(&h, "text:x ");
    answer_free(&h);
}

TORTURE(chat_reply_survives_any_allocation_failure)
{
    struct answer h = chat();
    peg_status status;

    answer_events(
        &h, DELTA("{\"reasoning_content\":\"Hm\"}"),
        CALLS("{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"a\",\"arguments\":{}}}"));
    answer_list(&h, parallel);
    if (!h.status)
        answer_finish(&h, true);
    status = h.status;
    answer_free(&h);
    return status;
}

TORTURE(chat_answer_survives_any_allocation_failure)
{
    struct answer h = chat();
    peg_status status;

    answer_body(&h, "{\"choices\":[{\"message\":{\"content\":\"x\"}}]}");
    status = h.status;
    answer_free(&h);
    return status;
}
