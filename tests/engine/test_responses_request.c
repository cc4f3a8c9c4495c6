/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture ----------------------------------------------------------------------------- */

static struct ask responses(void)
{
    return ask_new(&peg__wire_responses, "gpt-5");
}

static const char tools[] = "[{\"name\":\"fs.read\",\"description\":\"Reads.\",\"parameters\":{"
                            "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}]";

#define HEAD "{\"model\":\"gpt-5\",\"input\":["
#define TAIL "],\"include\":[\"reasoning.encrypted_content\"],\"store\":false}"
#define SAY(role, text)                                                                            \
    "{\"role\":\"" role "\",\"content\":[{\"type\":\"input_text\",\"text\":\"" text "\"}]}"
#define SAID(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define ANSWER(id, text)                                                                           \
    "{\"type\":\"message\"," id "\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{"   \
    "\"type\":\"output_text\",\"text\":\"" text "\",\"annotations\":[]}]}"
#define CALL(id, call_id)                                                                          \
    "{\"type\":\"function_call\"," id "\"call_id\":\"" call_id                                     \
    "\",\"name\":\"echo\",\"arguments\":\"{}\"}"
#define OUTPUT(call_id, text)                                                                      \
    "{\"type\":\"function_call_output\",\"call_id\":\"" call_id "\",\"output\":\"" text "\"}"

static void add_call(struct ask *a, const char *id, const char *call_id, const char *payload)
{
    t_sealed(&a->t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL, .id = peg_cstr(id),
                             .call_id = peg_cstr(call_id), .tool = peg_cstr("echo"),
                             .args = peg_cstr("{}")},
             payload, NULL);
}

static void think(struct ask *a, const char *id, const char *text, const char *payload)
{
    t_sealed(&a->t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING, .id = peg_cstr(id),
                             .text = peg_cstr(text)},
             payload, NULL);
}

/* ---- messages ------------------------------------------------------------------------------ */

TEST(responses_sends_blocks_as_items)
{
    struct ask a = responses();

    t_text(&a.t, PEG_BLOCK_SYSTEM, "s", "Be brief.");
    t_text(&a.t, PEG_BLOCK_USER, "u", "Hello");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a", "Hi.");
    t_text(&a.t, PEG_BLOCK_USER, "blank", " ");

    CHECK_BODY(&a, HEAD SAY("system", "Be brief.") "," SAY("user", "Hello") "," SAID("Hi.") TAIL);
    ask_free(&a);
}

TEST(responses_sends_options_of_the_model)
{
    const double temperature = 0.2;
    struct ask a = ask_new(&peg__wire_responses, "gpt-4.1");

    a.options.max_tokens = 100;
    a.options.temperature = &temperature;
    a.options.reasoning = "low";
    a.is_streaming = true;

    CHECK_BODY(&a, "{\"model\":\"gpt-4.1\",\"input\":[],\"max_output_tokens\":100,\"temperature\":"
                   "0.2,\"reasoning\":{\"effort\":\"low\"},\"store\":false,\"stream\":true}");
    ask_free(&a);
}

TEST(responses_sends_models_that_think_no_sampling_parameters)
{
    const double number = 0.2;
    struct ask a = responses();

    a.options.temperature = &number;
    a.options.top_p = &number;

    CHECK_BODY(&a, HEAD TAIL);
    ask_free(&a);
}

TEST(responses_asks_for_sealed_thoughts_of_all_but_models_that_refuse)
{
    static const char *const thinking[] = {"gpt-5.1", "o3", "codex-mini-latest", "local"};
    static const char *const others[] = {"gpt-4o", "gpt-3.5-turbo", "chatgpt-4o-latest",
                                         "gpt-5-chat-latest", "openai/gpt-4.1"};

    for (size_t i = 0; i < sizeof(thinking) / sizeof(*thinking); i++) {
        struct ask a = ask_new(&peg__wire_responses, thinking[i]);

        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK(ask_has(&a, "reasoning.encrypted_content"));
        ask_free(&a);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct ask a = ask_new(&peg__wire_responses, others[i]);

        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK(!ask_has(&a, "include"));
        ask_free(&a);
    }
}

/* ---- tools -------------------------------------------------------------------------------- */

/* G116 */
TEST(responses_offers_tools_in_its_flat_shape)
{
    struct ask a = responses();

    ask_offer(&a, tools);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);

    CHECK(ask_has(&a, HEAD "],\"tools\":[{\"type\":\"function\",\"name\":\"fs_read\","
                           "\"description\":\"Reads.\","));
    CHECK(ask_has(&a, "\"strict\":false"));
    CHECK(ask_has(&a, "}],\"tool_choice\":\"auto\",\"include\""));
    ask_free(&a);
}

/* G111 */
TEST(responses_says_choice_and_parallel_calls)
{
    struct ask a = responses();

    ask_offer(&a, tools);
    a.config.choice = PEG_CHOICE_REQUIRED;
    a.config.settings.max_parallel = 2;
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);

    CHECK(ask_has(&a, "\"tool_choice\":\"required\",\"parallel_tool_calls\":true"));
    ask_free(&a);
}

/* G125 */
TEST(responses_offers_nothing_if_tools_are_not_wanted)
{
    struct ask a = responses();

    ask_offer(&a, tools);
    a.config.is_enabled = false;
    CHECK_BODY(&a, HEAD TAIL);
    a.config.is_enabled = true;
    a.config.choice = PEG_CHOICE_NONE;
    CHECK_BODY(&a, HEAD TAIL);
    ask_free(&a);
}

/* ---- rounds -------------------------------------------------------------------------------- */

/* G117 */
TEST(responses_sends_calls_and_outputs_by_their_call_id)
{
    struct ask a = responses();

    add_call(&a, "b1", "c1", "{\"item_id\":\"fc_1\"}");
    add_call(&a, "b2", "c2", NULL);
    t_text(&a.t, PEG_BLOCK_USER, "u", "Hurry.");
    t_answer(&a.t, "b1", "one");
    t_answer(&a.t, "b2", "");

    CHECK_BODY(&a, HEAD CALL("\"id\":\"fc_1\",", "c1") "," CALL("", "c2") "," OUTPUT(
                       "c1", "one") "," OUTPUT("c2", "") "," SAY("user", "Hurry.") TAIL);
    ask_free(&a);
}

/* G117 */
TEST(responses_sends_no_id_that_is_not_of_its_kind)
{
    struct ask a = responses();

    add_call(&a, "b1", "c1", "{\"item_id\":\"call_1\"}");
    add_call(&a, "b2", "c2", "{\"item_id\":7}");
    t_answer(&a.t, "b1", "one");
    t_answer(&a.t, "b2", "two");

    CHECK_BODY(&a, HEAD CALL("", "c1") "," CALL("", "c2") "," OUTPUT("c1", "one") "," OUTPUT(
                       "c2", "two") TAIL);
    ask_free(&a);
}

/* G113 */
TEST(responses_sends_failures_as_errors)
{
    struct ask a = responses();

    add_call(&a, "b1", "c1", NULL);
    t_failure(&a.t, "b1", "no");

    CHECK_BODY(&a, HEAD CALL("", "c1") "," OUTPUT("c1", "{\\\"error\\\":\\\"no\\\"}") TAIL);
    ask_free(&a);
}

/* G115 */
TEST(responses_answers_a_call_that_nobody_answered_or_refuses)
{
    struct ask a = responses();

    add_call(&a, "b1", "c1", NULL);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "\"call_id\":\"c1\",\"output\":\"{\\\"error\\\":\\\"The outcome"));

    a.options.unanswered = PEG_UNANSWERED_REFUSE;
    CHECK_INT(ask_write(&a), PEG_ESTATE);
    ask_free(&a);
}

/* ---- thoughts ------------------------------------------------------------------------------ */

#define SEALED "{\"item_id\":\"rs_1\",\"encrypted_content\":\"gAAA\"}"
#define SENT_SEALED                                                                                \
    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"gAAA\"}"

/* G118 */
TEST(responses_sends_a_thought_before_its_calls)
{
    struct ask a = responses();

    think(&a, "r1", "Hm", SEALED);
    add_call(&a, "b1", "c1", "{\"item_id\":\"fc_1\"}");
    t_answer(&a.t, "b1", "one");

    CHECK_BODY(&a,
               HEAD SENT_SEALED "," CALL("\"id\":\"fc_1\",", "c1") "," OUTPUT("c1", "one") TAIL);
    ask_free(&a);
}

/* G118 */
TEST(responses_sends_a_thought_before_its_message_with_the_id_of_that)
{
    struct ask a = responses();

    think(&a, "r1", "", "{\"summary\":[{\"type\":\"summary_text\",\"text\":\"Hm\"}]}");
    t_sealed(&a.t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT, .id = peg_cstr("a1"),
                             .text = peg_cstr("Yes.")},
             "{\"item_id\":\"msg_1\"}", NULL);
    t_sealed(&a.t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT, .id = peg_cstr("a2"),
                             .text = peg_cstr("No.")},
             "{\"item_id\":\"msg_2\"}", NULL);

    CHECK_BODY(&a, HEAD "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
                        "\"Hm\"}]}," ANSWER("\"id\":\"msg_1\",", "Yes.") "," SAID("No.") TAIL);
    ask_free(&a);
}

/* G118 */
TEST(responses_drops_a_thought_before_a_user_and_at_the_end)
{
    struct ask a = responses();

    think(&a, "r1", "Hm", SEALED);
    t_text(&a.t, PEG_BLOCK_USER, "u", "Stop.");
    think(&a, "r2", "Hm", SEALED);
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "blank", " ");
    think(&a, "r3", "Hm", SEALED);

    CHECK_BODY(&a, HEAD SAY("user", "Stop.") TAIL);
    ask_free(&a);
}

/* G118 */
TEST(responses_never_sends_plain_thoughts_or_ids_of_ours)
{
    struct ask a = responses();

    think(&a, "r1", "Plain", NULL);
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a", "Yes.");
    think(&a, "r2", "Elsewhere", "{\"signature\":\"x\",\"item_id\":\"rs_9\"}");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a2", "Well.");
    think(&a, "rs_3", "", "{\"encrypted_content\":\"gAAA\"}");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "msg_3", "No.");

    CHECK_BODY(&a, HEAD SAID("Yes.") "," SAID(
                       "Well.") ","
                                "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":"
                                "\"gAAA\"}," SAID("No.") TAIL);
    ask_free(&a);
}

/* ---- media --------------------------------------------------------------------------------- */

static void attach(struct ask *a, peg_media_def def, const char *bytes)
{
    peg_media *media;

    def.id = "m1";
    def.filename = "a";
    media = t_media(&a->t, def, bytes);
    t_block(&a->t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                                          .media = &media, .n_media = 1});
    peg_media_unref(media);
}

#define ATTACHED(part)                                                                             \
    HEAD "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"                      \
         "\"[media id=\\\"m1\\\" filename=\\\"a\\\"]\"}," part "]}" TAIL

/* G36 */
TEST(responses_sends_images_in_every_way)
{
    const peg_media_def image = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE,
                                 .mime_type = "image/png"};
    struct ask a = responses();
    struct ask b = responses();
    struct ask c = responses();
    peg_media_def by_uri = image;
    peg_media_def by_id = image;

    by_uri.uri = "https://example.org/a.png";
    by_uri.detail = "high";
    by_id.file_id = "file-1";
    attach(&a, image, "PNG");
    attach(&b, by_uri, NULL);
    attach(&c, by_id, NULL);

    CHECK_BODY(&a, ATTACHED("{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":"
                            "\"data:image/png;base64,UE5H\"}"));
    CHECK_BODY(&b, ATTACHED("{\"type\":\"input_image\",\"detail\":\"high\",\"image_url\":"
                            "\"https://example.org/a.png\"}"));
    CHECK_BODY(&c, ATTACHED("{\"type\":\"input_image\",\"detail\":\"auto\",\"file_id\":"
                            "\"file-1\"}"));
    ask_free(&a);
    ask_free(&b);
    ask_free(&c);
}

TEST(responses_sends_documents_in_every_way)
{
    const peg_media_def pdf = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_DOCUMENT,
                               .mime_type = "application/pdf"};
    struct ask a = responses();
    struct ask b = responses();
    struct ask c = responses();
    peg_media_def by_uri = pdf;
    peg_media_def by_id = pdf;

    by_uri.uri = "https://example.org/a.pdf";
    by_id.file_id = "file-1";
    attach(&a, pdf, "PDF");
    attach(&b, by_uri, NULL);
    attach(&c, by_id, NULL);

    CHECK_BODY(&a, ATTACHED("{\"type\":\"input_file\",\"filename\":\"a\",\"file_data\":"
                            "\"data:application/pdf;base64,UERG\"}"));
    CHECK_BODY(&b, ATTACHED("{\"type\":\"input_file\",\"file_url\":"
                            "\"https://example.org/a.pdf\"}"));
    CHECK_BODY(&c, ATTACHED("{\"type\":\"input_file\",\"file_id\":\"file-1\"}"));
    ask_free(&a);
    ask_free(&b);
    ask_free(&c);
}

TEST(responses_tells_media_that_it_cannot_take_in_words)
{
    struct ask a = responses();

    attach(&a,
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_AUDIO, .mime_type = "audio/mpeg"},
           "MP3");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "filename=\\\"a\\\"]\\n<trusted_content_"));
    ask_free(&a);
}

TEST(responses_sends_the_media_of_results_and_other_blocks)
{
    struct ask a = responses();
    peg_media *media =
        t_media(&a.t,
                (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_IMAGE,
                                .mime_type = "image/png", .filename = "a"},
                "PNG");

    add_call(&a, "b1", "c1", NULL);
    t_record(&a.t, "b1", (peg_record_def){PEG_RECORD_DEF_INIT, .media = &media, .n_media = 1});
    t_block(&a.t, &(const peg_block_def){
                      PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER, .type = peg_cstr("retrieved"),
                      .tier = PEG_TIER_FIRST_PARTY, .media = &media, .n_media = 1});
    peg_media_unref(media);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);

    CHECK(ask_has(&a, "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"[media "
                      "id=\\\"m1\\\" filename=\\\"a\\\"]\"},{\"type\":\"input_image\",\"detail\":"
                      "\"auto\",\"image_url\":\"data:image/png;base64,UE5H\"}]},{\"role\":"
                      "\"user\""));
    CHECK(ask_has(&a, "base64,UE5H\"}]}],\"include\""));
    ask_free(&a);
}

/* ---- stable, and without memory ---------------------------------------------------------------
 */

static void everything(struct ask *a)
{
    ask_offer(a, tools);
    a->options.results = PEG_RESULTS_ENVELOPED;
    t_text(&a->t, PEG_BLOCK_SYSTEM, "s", "Be brief.");
    attach(a,
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png"},
           "PNG");
    think(a, "r1", "Hm", SEALED);
    add_call(a, "b1", "c 1", "{\"item_id\":\"fc_1\"}");
    t_answer(&a->t, "b1", "one");
    t_answer(&a->t, "gone", "late");
    t_text(&a->t, PEG_BLOCK_ASSISTANT, "a", "Done.");
}

/* G124 */
TEST(responses_renders_a_turn_to_the_same_bytes_each_time)
{
    struct ask a = responses();
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

TORTURE(responses_request_survives_any_allocation_failure)
{
    struct ask a = responses();
    peg_status status;

    everything(&a);
    status = ask_write(&a);
    ask_free(&a);
    return status;
}
