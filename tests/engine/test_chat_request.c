/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture ----------------------------------------------------------------------------- */

static struct ask chat(void)
{
    return ask_new(&peg__wire_chat, "gpt-4.1");
}

static const char tools[] = "[{\"name\":\"fs.read\",\"description\":\"Reads.\",\"parameters\":{"
                            "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}]";

#define HEAD "{\"model\":\"gpt-4.1\",\"messages\":["
#define SENT_TOOLS                                                                                 \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"fs_read\",\"description\":"        \
    "\"Reads.\",\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}" \
    "}}}],\"tool_choice\":\"auto\""

/* What follows the messages. */
static const char *after_messages(struct ask *a)
{
    CHECK_STATUS(ask_write(a), PEG_OK, a->t.error);
    CHECK(strstr(a->body.ptr, "],") || strstr(a->body.ptr, "]}"));
    return a->body.ptr;
}

/* ---- messages ------------------------------------------------------------------------------ */

TEST(chat_sends_messages_in_their_order)
{
    struct ask a = chat();

    t_text(&a.t, PEG_BLOCK_SYSTEM, "s", "Be brief.");
    t_text(&a.t, PEG_BLOCK_USER, "u", "Hello \"you\"");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a", "Hi.");

    CHECK_BODY(&a, HEAD "{\"role\":\"system\",\"content\":\"Be brief.\"},"
                        "{\"role\":\"user\",\"content\":\"Hello \\\"you\\\"\"},"
                        "{\"role\":\"assistant\",\"content\":\"Hi.\"}]}");
    ask_free(&a);
}

TEST(chat_leaves_blank_messages_out)
{
    struct ask a = chat();

    t_text(&a.t, PEG_BLOCK_USER, "u", " \n ");
    t_text(&a.t, PEG_BLOCK_SYSTEM, "s", "\t");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a", " ");

    CHECK_BODY(&a, HEAD "]}");
    ask_free(&a);
}

TEST(chat_asks_for_a_stream_with_its_usage)
{
    struct ask a = chat();

    a.is_streaming = true;

    CHECK_BODY(&a, HEAD "],\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    ask_free(&a);
}

TEST(chat_sends_options_of_the_model)
{
    static const char *const stop[] = {"END", "STOP", NULL};
    const double temperature = 0.2;
    const double top_p = 0.5;
    struct ask a = chat();

    a.options.max_tokens = 100;
    a.options.temperature = &temperature;
    a.options.top_p = &top_p;
    a.options.stop = stop;
    a.options.reasoning = "low";

    CHECK_BODY(&a, HEAD "],\"max_tokens\":100,\"temperature\":0.2,\"top_p\":0.5,"
                        "\"stop\":[\"END\",\"STOP\"],\"reasoning_effort\":\"low\"}");
    ask_free(&a);
}

TEST(chat_sends_models_that_think_only_what_they_take)
{
    static const char *const models[] = {"o1",    "o3-mini",       "o4-mini",
                                         "gpt-5", "gpt-5.1-codex", "openai/gpt-5-mini"};
    static const char *const stop[] = {"END", NULL};
    const double temperature = 0.2;

    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        struct ask a = ask_new(&peg__wire_chat, models[i]);

        a.options.max_tokens = 100;
        a.options.temperature = &temperature;
        a.options.stop = stop;
        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK(ask_has(&a, "],\"max_completion_tokens\":100}"));
        ask_free(&a);
    }
}

TEST(chat_takes_other_models_for_ones_that_do_not_think)
{
    static const char *const models[] = {"gpt-4o", "gpt-5-chat-latest", "o1ama", "llama3:8b",
                                         "gpt-50"};

    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        struct ask a = ask_new(&peg__wire_chat, models[i]);

        a.options.max_tokens = 100;
        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK(ask_has(&a, "],\"max_tokens\":100}"));
        ask_free(&a);
    }
}

/* ---- tools -------------------------------------------------------------------------------- */

/* G111 */
TEST(chat_offers_tools_in_its_own_shape)
{
    struct ask a = chat();

    ask_offer(&a, tools);

    CHECK_BODY(&a, HEAD "]," SENT_TOOLS "}");
    ask_free(&a);
}

/* G111 */
TEST(chat_demands_a_call_until_there_is_a_result)
{
    struct ask a = chat();

    ask_offer(&a, tools);
    a.config.choice = PEG_CHOICE_REQUIRED;
    t_text(&a.t, PEG_BLOCK_USER, "u", "go");
    CHECK(strstr(after_messages(&a), "\"tool_choice\":\"required\""));

    t_call(&a.t, "b1", "c1", "fs.read", "{}");
    t_answer(&a.t, "b1", "one");
    CHECK(strstr(after_messages(&a), "\"tool_choice\":\"auto\""));
    ask_free(&a);
}

/* G111 */
TEST(chat_says_whether_calls_may_be_parallel_if_the_turn_says_so)
{
    struct ask a = chat();

    ask_offer(&a, tools);
    CHECK(!strstr(after_messages(&a), "parallel_tool_calls"));

    /* As a loop puts it on the turn if nobody set anything. */
    a.config = peg_tool_config_default();
    CHECK_INT(peg_turn_set_tool_config(a.t.turn, &a.config, NULL), PEG_OK);
    CHECK(!strstr(after_messages(&a), "parallel_tool_calls"));

    a.config.settings.max_parallel = 3;
    CHECK(strstr(after_messages(&a), "\"parallel_tool_calls\":true"));

    a.config.settings.max_parallel = 1;
    CHECK_INT(peg_turn_set_tool_config(a.t.turn, &a.config, NULL), PEG_OK);
    CHECK(strstr(after_messages(&a), "\"parallel_tool_calls\":false"));

    a.config.settings.max_parallel = 0;
    CHECK(!strstr(after_messages(&a), "parallel_tool_calls"));
    ask_free(&a);
}

TEST(chat_does_not_tell_models_about_parallel_calls_that_refuse_to_hear_it)
{
    struct ask a = ask_new(&peg__wire_chat, "o3-mini");

    ask_offer(&a, tools);
    a.config.settings.max_parallel = 3;

    CHECK(!strstr(after_messages(&a), "parallel_tool_calls"));
    ask_free(&a);
}

/* G125 */
TEST(chat_offers_nothing_if_tools_are_not_wanted)
{
    struct ask a = chat();

    ask_offer(&a, tools);
    a.config.is_enabled = false;
    CHECK_BODY(&a, HEAD "]}");
    a.config.is_enabled = true;
    a.config.choice = PEG_CHOICE_NONE;
    CHECK_BODY(&a, HEAD "]}");
    a.config.choice = PEG_CHOICE_AUTO;
    peg_json_doc_free(a.definitions);
    a.definitions = NULL;
    ask_offer(&a, "[]");
    CHECK_BODY(&a, HEAD "]}");
    ask_free(&a);
}

/* ---- rounds -------------------------------------------------------------------------------- */

/* G112 */
TEST(chat_groups_adjacent_calls_and_moves_what_stood_between_behind)
{
    struct ask a = chat();

    t_call(&a.t, "b1", "c1", "fs.read", "{\"n\":1}");
    t_call(&a.t, "b2", "c2", "echo", "");
    t_text(&a.t, PEG_BLOCK_USER, "u", "Hurry.");
    t_answer(&a.t, "b2", "two");
    t_answer(&a.t, "b1", "one");

    CHECK_BODY(&a, HEAD "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
                        "{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"fs_read\","
                        "\"arguments\":\"{\\\"n\\\":1}\"}},"
                        "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"echo\","
                        "\"arguments\":\"{}\"}}]},"
                        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"one\"},"
                        "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"two\"},"
                        "{\"role\":\"user\",\"content\":\"Hurry.\"}]}");
    ask_free(&a);
}

#define CALL(id, name)                                                                             \
    "\"tool_calls\":[{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name      \
    "\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":"

/* G112 */
TEST(chat_keeps_two_rounds_apart)
{
    struct ask a = chat();

    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "one");
    t_call(&a.t, "b2", "c2", "echo", "{}");
    t_answer(&a.t, "b2", "two");

    CHECK_BODY(&a, HEAD "{\"role\":\"assistant\",\"content\":null," CALL(
                       "c1", "echo") "\"one\"},"
                                     "{\"role\":\"assistant\",\"content\":null," CALL(
                                         "c2", "echo") "\"two\"}]}");
    ask_free(&a);
}

TEST(chat_sends_what_was_said_before_calls_in_one_message_with_them)
{
    struct ask a = chat();

    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a1", "Well.");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a2", "Let me look.");
    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "one");

    CHECK_BODY(&a, HEAD "{\"role\":\"assistant\",\"content\":\"Well.\"},"
                        "{\"role\":\"assistant\",\"content\":\"Let me look.\"," CALL(
                            "c1", "echo") "\"one\"}]}");
    ask_free(&a);
}

/* G113 */
TEST(chat_sends_failures_as_errors)
{
    struct ask a = chat();

    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_failure(&a.t, "b1", "no such file");

    CHECK_BODY(&a, HEAD "{\"role\":\"assistant\",\"content\":null," CALL(
                       "c1", "echo") "\"{\\\"error\\\":\\\"no such file\\\"}\"}]}");
    ask_free(&a);
}

/* G114 */
TEST(chat_sends_an_empty_result_as_an_empty_string)
{
    struct ask a = chat();

    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "");

    CHECK_BODY(&a, HEAD "{\"role\":\"assistant\",\"content\":null," CALL("c1", "echo") "\"\"}]}");
    ask_free(&a);
}

/* G115 */
TEST(chat_answers_a_call_that_nobody_answered_or_refuses)
{
    struct ask a = chat();

    t_call(&a.t, "b1", "c1", "echo", "{}");
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, CALL("c1", "echo") "\"{\\\"error\\\":\\\"The outcome of this call"));

    a.options.unanswered = PEG_UNANSWERED_REFUSE;
    CHECK_INT(ask_write(&a), PEG_ESTATE);
    CHECK_STR(peg_cstr(a.t.error.code), "E_ENGINE_UNANSWERED");
    ask_free(&a);
}

TEST(chat_puts_results_into_envelopes_unless_told_otherwise)
{
    struct ask a = chat();

    a.options.results = PEG_RESULTS_ENVELOPED;
    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "one");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "\"content\":\"<trusted_content_" T_NONCE));
    ask_free(&a);
}

TEST(chat_tells_calls_with_one_id_apart)
{
    struct ask a = chat();

    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "one");
    t_call(&a.t, "b2", "c1", "echo", "{}");
    t_answer(&a.t, "b2", "two");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, CALL("c1", "echo") "\"one\"}"));
    CHECK(!strstr(strstr(a.body.ptr, "\"one\""), "\"c1\""));
    ask_free(&a);
}

TEST(chat_sends_a_result_without_its_call_as_words_of_a_user)
{
    struct ask a = chat();

    t_answer(&a.t, "gone", "one");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, HEAD "{\"role\":\"user\",\"content\":\"<trusted_content_"));
    ask_free(&a);
}

/* ---- thoughts ------------------------------------------------------------------------------ */

static void think(struct ask *a, const char *id, const char *text, const char *payload)
{
    t_sealed(&a->t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING, .id = peg_cstr(id),
                             .text = peg_cstr(text)},
             payload, NULL);
}

TEST(chat_sends_thoughts_back_with_calls_to_whom_they_came_from)
{
    struct ask a = chat();

    think(&a, "r1", "First", "{\"wire_field\":\"reasoning_content\"}");
    think(&a, "r2", "Second", "{\"wire_field\":\"reasoning_content\"}");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a", "Let me look.");
    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "one");

    CHECK_BODY(&a,
               HEAD "{\"role\":\"assistant\",\"content\":\"Let me look.\","
                    "\"reasoning_content\":\"First\\nSecond\"," CALL("c1", "echo") "\"one\"}]}");
    ask_free(&a);
}

TEST(chat_does_not_send_thoughts_of_others_or_before_anything_but_calls)
{
    struct ask a = chat();

    think(&a, "r1", "Plain", NULL);
    t_call(&a.t, "b1", "c1", "echo", "{}");
    t_answer(&a.t, "b1", "one");
    think(&a, "r2", "Sealed", "{\"encrypted_content\":\"x\"}");
    t_call(&a.t, "b2", "c2", "echo", "{}");
    t_answer(&a.t, "b2", "two");
    think(&a, "r3", "Odd", "{\"wire_field\":\"role\"}");
    t_call(&a.t, "b3", "c3", "echo", "{}");
    t_answer(&a.t, "b3", "three");
    think(&a, "r4", "Ours", "{\"wire_field\":\"reasoning\"}");
    t_text(&a.t, PEG_BLOCK_USER, "u", "Stop.");
    t_call(&a.t, "b4", "c4", "echo", "{}");
    t_answer(&a.t, "b4", "four");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(!ask_has(&a, "Plain"));
    CHECK(!ask_has(&a, "Sealed"));
    CHECK(!ask_has(&a, "Odd"));
    CHECK(!ask_has(&a, "Ours"));
    ask_free(&a);
}

/* ---- stable, and without memory ---------------------------------------------------------------
 */

static void everything(struct ask *a)
{
    ask_offer(a, tools);
    a->is_streaming = true;
    a->options.results = PEG_RESULTS_ENVELOPED;
    t_text(&a->t, PEG_BLOCK_SYSTEM, "s", "Be brief.");
    t_text(&a->t, PEG_BLOCK_USER, "u", "Look.");
    think(a, "r1", "Hm", "{\"wire_field\":\"reasoning\"}");
    t_call(&a->t, "b1", "c 1", "fs.read", "broken");
    t_call(&a->t, "b2", "c2", "fs.read", "{}");
    t_answer(&a->t, "b1", "one");
    t_answer(&a->t, "gone", "late");
}

/* G124 */
TEST(chat_renders_a_turn_to_the_same_bytes_each_time)
{
    struct ask a = chat();
    char *first;

    everything(&a);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    first = strdup(a.body.ptr);

    for (int i = 0; i < 100; i++) {
        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK_STR(peg__buf_view(&a.body), first);
    }
    free(first);
    ask_free(&a);
}

TORTURE(chat_request_survives_any_allocation_failure)
{
    struct ask a = chat();
    peg_status status;

    everything(&a);
    status = ask_write(&a);
    ask_free(&a);
    return status;
}
