/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture: chunks as the API sends them ----------------------------------------------- */

#define CHUNK(parts, more)                                                                         \
    "{\"candidates\":[{\"content\":{\"parts\":[" parts "],\"role\":\"model\"},\"index\":0" more    \
    "}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":2,"                     \
    "\"thoughtsTokenCount\":3,\"cachedContentTokenCount\":4,\"totalTokenCount\":12},"              \
    "\"modelVersion\":\"gemini-x-1\",\"responseId\":\"r1\"}"
#define MORE(parts) CHUNK(parts, "")
#define LAST(parts) CHUNK(parts, ",\"finishReason\":\"STOP\"")
#define TEXT(words) "{\"text\":\"" words "\"}"
#define SIGNED(words, signature) "{\"text\":\"" words "\",\"thoughtSignature\":\"" signature "\"}"
#define THOUGHT(words) "{\"text\":\"" words "\",\"thought\":true}"
#define CALL(id, name, args)                                                                       \
    "{\"functionCall\":{\"id\":\"" id "\",\"name\":\"" name "\",\"args\":" args "}}"

static struct answer answer_gemini(void)
{
    return answer_new(&peg__wire_gemini);
}

static peg_str signature_at(const struct answer *h, size_t i)
{
    const peg_json *value = peg_bag_find(peg_block_metadata(peg_turn_at(h->t.turn, i)),
                                         peg_cstr(peg_key_gemini_thought.id));

    return value ? peg_json_str(value) : peg_cstr("");
}

/* ---- streams ----------------------------------------------------------------------------- */

TEST(gemini_stream_of_text_becomes_a_block)
{
    struct answer h = answer_gemini();

    answer_events(&h, MORE(TEXT("Hel")), MORE(TEXT("lo")), LAST(TEXT("!")));

    CHECK_BLOCKS(&h, "text:Hello! ");
    CHECK_RESULT(&h, "provider", "\"gemini\"");
    CHECK_RESULT(&h, "model", "\"gemini-x-1\"");
    CHECK_RESULT(&h, "response_id", "\"r1\"");
    CHECK_RESULT(&h, "stop_reason", "\"STOP\"");
    CHECK_RESULT(&h, "usage",
                 "{\"input_tokens\":7,\"output_tokens\":5,\"cached_tokens\":4,"
                 "\"reasoning_tokens\":3}");
    answer_free(&h);
}

TEST(gemini_stream_keeps_thoughts_text_and_calls_in_order)
{
    struct answer h = answer_gemini();

    answer_events(&h, MORE(THOUGHT("H")), MORE(THOUGHT("m.")), MORE(TEXT("I add.")),
                  MORE(CALL("c1", "add", "{\"n\":1}") "," CALL("c2", "sub", "{\"n\":2}")),
                  LAST(CALL("c3", "now", "{}")));

    CHECK_BLOCKS(&h, "thought:Hm. text:I add. call:c1,add,{\"n\":1} call:c2,sub,{\"n\":2} "
                     "call:c3,now,{} ");
    CHECK_RESULT(&h, "finish_class", "\"tool_calls_pending\"");
    answer_free(&h);
}

TEST(gemini_call_without_an_id_gets_one_of_ours)
{
    struct answer h = answer_gemini();
    peg_str first;
    peg_str second;

    answer_events(&h, LAST("{\"functionCall\":{\"name\":\"now\"}},"
                           "{\"functionCall\":{\"name\":\"now\",\"args\":null}}"));
    answer_finish(&h, true);

    CHECK_STATUS(h.status, PEG_OK, h.error);
    first = peg_block_call_id(peg_turn_at(h.t.turn, 0));
    second = peg_block_call_id(peg_turn_at(h.t.turn, 1));
    CHECK(first.len > 0 && second.len > 0 && !peg__str_eq(first, second));
    CHECK_STR(peg_block_args(peg_turn_at(h.t.turn, 0)), "{}");
    CHECK_STR(peg_block_args(peg_turn_at(h.t.turn, 1)), "{}");
    answer_free(&h);
}

TEST(gemini_signatures_stay_with_their_parts)
{
    struct answer h = answer_gemini();

    answer_events(&h, MORE("{\"text\":\"Hm.\",\"thought\":true,\"thoughtSignature\":\"s1\"}"),
                  MORE(SIGNED("I ", "s2")), MORE(TEXT("add.")),
                  LAST("{\"functionCall\":{\"id\":\"c1\",\"name\":\"add\",\"args\":{}},"
                       "\"thoughtSignature\":\"s3\"}"));

    CHECK_BLOCKS(&h, "thought:Hm. text:I  text:add. call:c1,add,{} ");
    CHECK_STR(signature_at(&h, 0), "s1");
    CHECK_STR(signature_at(&h, 1), "s2");
    CHECK_STR(signature_at(&h, 2), "");
    CHECK_STR(signature_at(&h, 3), "s3");
    answer_free(&h);
}

TEST(gemini_signature_behind_a_text_belongs_to_it)
{
    struct answer h = answer_gemini();

    answer_events(&h, MORE(SIGNED("", "lost")), MORE(TEXT("Hi")), MORE(SIGNED("", "s1")),
                  LAST(SIGNED("", "late")));

    CHECK_BLOCKS(&h, "text:Hi ");
    CHECK_STR(signature_at(&h, 0), "s1");
    answer_free(&h);
}

/* G122 */
TEST(gemini_signatures_go_back_as_they_came)
{
    struct answer h = answer_gemini();
    struct ask a = ask_new(&peg__wire_gemini, "gemini-3-pro");

    answer_events(&h, LAST("{\"functionCall\":{\"id\":\"c1\",\"name\":\"add\",\"args\":{\"n\":1}},"
                           "\"thoughtSignature\":\"s1\"},{\"functionCall\":{\"id\":\"c2\",\"name\":"
                           "\"add\",\"args\":{}}}"));
    CHECK_BLOCKS(&h, "call:c1,add,{\"n\":1} call:c2,add,{} ");
    t_turn_free(&a.t);
    a.t = h.t;

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "[{\"functionCall\":{\"id\":\"c1\",\"name\":\"add\",\"args\":{\"n\":1}},"
                      "\"thoughtSignature\":\"s1\"},{\"functionCall\":{\"id\":\"c2\",\"name\":"
                      "\"add\",\"args\":{}}}]"));
    h.t.turn = NULL;
    answer_free(&h);
    ask_free(&a);
}

TEST(gemini_stream_passes_over_what_is_not_known)
{
    struct answer h = answer_gemini();

    answer_events(&h, "{}", "{\"candidates\":[]}", MORE("{\"inlineData\":{\"data\":\"x\"}}"),
                  MORE("{\"executableCode\":{\"code\":\"1\"}}," TEXT("Hi")),
                  "{\"candidates\":[{\"index\":1,\"content\":{\"parts\":[" TEXT("other") "]}}]}",
                  "{\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":"
                  "\"MAX_TOKENS\"}]}",
                  "{\"usageMetadata\":{\"promptTokenCount\":9}}");

    CHECK_BLOCKS(&h, "text:Hi ");
    CHECK_RESULT(&h, "finish_class", "\"max_tokens\"");
    answer_free(&h);
}

/* ---- streams that end badly -------------------------------------------------------------- */

/* G129 */
TEST(gemini_stream_that_breaks_off_keeps_text_and_no_call)
{
    struct answer h = answer_gemini();

    answer_events(&h, MORE(TEXT("I a")), MORE(CALL("c1", "add", "{}")));

    CHECK(!h.reply.is_ended);
    CHECK_BLOCKS(&h, "text:I a ");
    CHECK_RESULT(&h, "finish_class", "\"interrupted\"");
    answer_free(&h);
}

/* G129 */
TEST(gemini_stream_that_tells_an_error_keeps_text_and_no_call)
{
    struct answer h = answer_gemini();

    answer_events(
        &h, MORE(TEXT("I a")), MORE(CALL("c1", "add", "{}")),
        "{\"error\":{\"code\":503,\"message\":\"Overloaded\",\"status\":\"UNAVAILABLE\"}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK(strstr(h.error.message, "Overloaded"));
    answer_finish(&h, false);
    CHECK_STR(peg_cstr(h.blocks), "text:I a ");
    answer_free(&h);
}

TEST(gemini_says_why_it_does_not_answer)
{
    struct answer h = answer_gemini();

    answer_events(&h, "{\"promptFeedback\":{\"blockReason\":\"SAFETY\",\"blockReasonMessage\":"
                      "\"Not this.\"},\"usageMetadata\":{\"promptTokenCount\":7}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK_STR(peg_cstr(h.error.code), "E_ENGINE_REQUEST");
    CHECK_STR(peg_cstr(h.error.message),
              "gemini does not answer this conversation (SAFETY): Not this.");
    answer_free(&h);
}

TEST(gemini_stream_that_never_began_is_not_whole)
{
    struct answer h = answer_gemini();

    CHECK(!h.reply.is_ended);
    answer_free(&h);
}

/* ---- a whole answer ---------------------------------------------------------------------- */

TEST(gemini_body_becomes_blocks)
{
    struct answer h = answer_gemini();

    answer_body(&h, LAST(THOUGHT("Hm.") "," TEXT("I add.") "," CALL("c1", "add", "{\"n\":1}")));

    CHECK_BLOCKS(&h, "thought:Hm. text:I add. call:c1,add,{\"n\":1} ");
    CHECK_RESULT(&h, "stop_reason", "\"STOP\"");
    answer_free(&h);
}

TEST(gemini_body_may_be_an_error)
{
    struct answer h = answer_gemini();

    answer_body(&h, "{\"error\":{\"code\":500,\"message\":\"Oops\",\"status\":\"INTERNAL\"}}");

    CHECK_INT(h.status, PEG_EHOST);
    CHECK(strstr(h.error.message, "Oops"));
    answer_free(&h);
}

/* ---- hostile answers --------------------------------------------------------------------- */

TEST(gemini_refuses_chunks_that_are_none)
{
    static const char *const chunks[] = {
        "",
        "{",
        "[]",
        "5",
        "{\"candidates\":{}}",
        "{\"candidates\":[5]}",
        "{\"candidates\":[{\"content\":5}]}",
        "{\"candidates\":[{\"content\":{\"parts\":{}}}]}",
        "{\"candidates\":[{\"content\":{\"parts\":[5]}}]}",
        "{\"candidates\":[{\"finishReason\":5}]}",
        "{\"usageMetadata\":[]}",
        "{\"promptFeedback\":5}",
        "{\"promptFeedback\":{\"blockReason\":5}}",
        "{\"modelVersion\":5}",
        "{\"responseId\":{}}",
        MORE("{\"text\":5}"),
        MORE("{\"text\":\"x\",\"thoughtSignature\":5}"),
        MORE("{\"functionCall\":5}"),
        MORE("{\"functionCall\":{}}"),
        MORE("{\"functionCall\":{\"name\":5}}"),
        MORE("{\"functionCall\":{\"name\":\"\"}}"),
        MORE("{\"functionCall\":{\"name\":\"x\",\"args\":[]}}"),
        MORE("{\"functionCall\":{\"name\":\"x\",\"args\":\"{}\"}}"),
        MORE("{\"functionCall\":{\"name\":\"x\",\"id\":5}}"),
    };

    for (size_t i = 0; i < sizeof(chunks) / sizeof(*chunks); i++) {
        check_refused(&peg__wire_gemini, chunks[i], false);
        check_refused(&peg__wire_gemini, chunks[i], true);
    }
}

TEST(gemini_refuses_a_body_that_did_not_finish)
{
    check_refused(&peg__wire_gemini, "{}", true);
    check_refused(&peg__wire_gemini, MORE(TEXT("x")), true);
}

TEST(gemini_refuses_a_chunk_that_is_too_deep)
{
    char deep[4096];

    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';

    check_refused(&peg__wire_gemini, deep, false);
    check_refused(&peg__wire_gemini, deep, true);
}

TEST(gemini_text_may_hold_any_character)
{
    struct answer h = answer_gemini();

    answer_events(&h, LAST(TEXT("a\\u0000b\\u00e9")));
    answer_finish(&h, true);

    CHECK_STATUS(h.status, PEG_OK, h.error);
    CHECK_INT(peg_block_text(peg_turn_at(h.t.turn, 0)).len, 5);
    answer_free(&h);
}

/* ---- bytes ------------------------------------------------------------------------------- */

#define EVENT(data) "data: " data "\r\n\r\n"
static const char stream[] = EVENT(MORE(TEXT("h\xC3\xA9"))) EVENT(MORE(SIGNED("", "s1")))
    EVENT(MORE(CALL("c1", "add", "{\"n\":1}"))) EVENT(LAST(TEXT("")));

TEST(gemini_stream_may_be_cut_anywhere)
{
    const peg_str bytes = peg_cstr(stream);

    for (size_t n = 0; n <= bytes.len; n++) {
        struct answer h = answer_gemini();

        answer_stream(&h, bytes, n);
        CHECK_BLOCKS(&h, "text:h\xC3\xA9 call:c1,add,{\"n\":1} ");
        answer_free(&h);
    }
}

/* G129 */
TEST(gemini_stream_that_ends_anywhere_leaves_no_call)
{
    const size_t end = (size_t)(strstr(stream, "finishReason") - stream);

    for (size_t n = 0; n <= end; n++) {
        struct answer h = answer_gemini();

        answer_stream(&h, peg__strn(stream, n), 0);
        answer_finish(&h, !h.status && h.reply.is_ended);
        CHECK(!strstr(h.blocks, "call:"));
        answer_free(&h);
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

TORTURE(gemini_stream_survives_any_allocation_failure)
{
    struct answer h = answer_gemini();
    peg_status status;

    answer_stream(&h, peg_cstr(stream), 100);
    if (!h.status)
        answer_finish(&h, h.reply.is_ended);
    status = h.status;
    if (!status)
        CHECK_STR(peg_cstr(h.blocks), "text:h\xC3\xA9 call:c1,add,{\"n\":1} ");
    answer_free(&h);
    return status;
}
