/* SPDX-License-Identifier: Apache-2.0 */

#include "wire_world.h"

/* ---- fixture ----------------------------------------------------------------------------- */

#define CONTENTS(contents) "\"contents\":[" contents "]"
#define USER(parts) "{\"role\":\"user\",\"parts\":[" parts "]}"
#define MODEL(parts) "{\"role\":\"model\",\"parts\":[" parts "]}"
#define TEXT(words) "{\"text\":\"" words "\"}"
#define HELLO USER(TEXT("Hello"))
#define TOOLS                                                                                      \
    "[{\"name\":\"add\",\"description\":\"Adds.\",\"parameters\":{\"type\":\"object\","            \
    "\"properties\":{\"n\":{\"type\":\"integer\"}}}}]"

static struct ask ask_gemini(void)
{
    return ask_new(&peg__wire_gemini, "gemini-2.5-pro");
}

static void add_user(struct ask *a, const char *id, const char *text)
{
    t_text(&a->t, PEG_BLOCK_USER, id, text);
}

static void add_round(struct ask *a)
{
    t_call(&a->t, "b1", "c1", "add", "{\"n\":1}");
    t_call(&a->t, "b2", "c2", "add", "{\"n\":2}");
    t_answer(&a->t, "b1", "one");
    t_failure(&a->t, "b2", "broken");
}

static void add_signed(struct ask *a, peg_block_kind kind, const char *id, const char *text,
                       const char *signature)
{
    t_sealed(&a->t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind, .id = peg_cstr(id),
                             .text = peg_cstr(text)},
             NULL, signature);
}

static void add_signed_call(struct ask *a, const char *id, const char *signature)
{
    t_sealed(&a->t,
             (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL, .id = peg_cstr(id),
                             .call_id = peg_cstr(id), .tool = peg_cstr("add"),
                             .args = peg_cstr("{}")},
             NULL, signature);
    t_answer(&a->t, id, "one");
}

/* ---- the protocol ------------------------------------------------------------------------ */

static void check_path(const char *model, bool is_streaming, const char *expected)
{
    struct peg__buf out = PEG__BUF(1024);
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = model};

    peg__wire_path(&peg__wire_gemini, &options, is_streaming, &out);
    CHECK_STR(peg__buf_view(&out), expected);
    peg__buf_free(&out);
}

TEST(gemini_names_the_model_in_its_path)
{
    check_path("gemini-2.5-pro", false, "/models/gemini-2.5-pro:generateContent");
    check_path("gemini-2.5-pro", true, "/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    check_path("tunedModels/mine", false, "/tunedModels/mine:generateContent");
    check_path("a b?c#\xC3\xA9", false, "/models/a%20b%3Fc%23%C3%A9:generateContent");
}

TEST(gemini_has_its_headers)
{
    struct peg__buf out = PEG__BUF(1024);

    peg__wire_headers(&peg__wire_gemini, NULL, &out);
    CHECK_INT(out.len, 0);
    peg__wire_headers(&peg__wire_gemini, "k", &out);

    CHECK_STR(peg__buf_view(&out), "x-goog-api-key: k\n");
    CHECK_STR(peg_cstr(peg__wire_gemini.base_url),
              "https://generativelanguage.googleapis.com/v1beta");
    CHECK_STR(peg_cstr(peg__wire_gemini.key_env), "GEMINI_API_KEY");
    peg__buf_free(&out);
}

/* ---- contents ---------------------------------------------------------------------------- */

TEST(gemini_request_of_one_message_is_exact)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    a.is_streaming = true; /* which its path says */

    CHECK_BODY(&a, "{" CONTENTS(HELLO) "}");
    ask_free(&a);
}

TEST(gemini_request_puts_what_the_system_says_first_apart)
{
    struct ask a = ask_gemini();

    t_text(&a.t, PEG_BLOCK_SYSTEM, "s1", "Be brief.");
    t_text(&a.t, PEG_BLOCK_SYSTEM, "s2", "\n");
    t_text(&a.t, PEG_BLOCK_SYSTEM, "s3", "Be kind.");
    add_user(&a, "u1", "Hello");

    CHECK_BODY(&a, "{\"systemInstruction\":{\"parts\":[" TEXT("Be brief.") "," TEXT(
                       "Be kind.") "]}," CONTENTS(HELLO) "}");
    ask_free(&a);
}

TEST(gemini_request_lets_a_user_say_what_the_system_says_later)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    t_text(&a.t, PEG_BLOCK_SYSTEM, "s1", "Be brief.");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(!ask_has(&a, "systemInstruction"));
    CHECK(ask_has(&a, TEXT("Hello") ",{\"text\":\"<trusted_content_"));
    CHECK(ask_has(&a, "Be brief."));
    ask_free(&a);
}

TEST(gemini_request_joins_what_one_side_says)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    add_user(&a, "u2", " ");
    add_user(&a, "u3", "you");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a1", "Hi");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a2", "there");

    CHECK_BODY(&a, "{" CONTENTS(USER(TEXT("Hello") "," TEXT("you")) "," MODEL(
                       TEXT("Hi") "," TEXT("there"))) "}");
    ask_free(&a);
}

TEST(gemini_request_lets_the_user_begin)
{
    struct ask a = ask_gemini();

    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a1", "Welcome!");

    CHECK_BODY(&a,
               "{" CONTENTS(USER(TEXT("(The conversation begins with the assistant.)")) "," MODEL(
                   TEXT("Welcome!"))) "}");
    ask_free(&a);
}

TEST(gemini_request_shows_other_blocks_in_envelopes)
{
    struct ask a = ask_gemini();

    t_block(&a.t,
            &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER,
                                   .id = peg_cstr("o1"), .type = peg_cstr("memory"),
                                   .text = peg_cstr("likes tea"), .tier = PEG_TIER_FIRST_PARTY});

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "{\"role\":\"user\",\"parts\":[{\"text\":\"<trusted_content_"));
    CHECK(ask_has(&a, "likes tea"));
    ask_free(&a);
}

/* ---- calls ------------------------------------------------------------------------------- */

#define CALL(id, args) "{\"functionCall\":{\"id\":\"" id "\",\"name\":\"add\",\"args\":" args "}}"
#define RESPONSE(id, response)                                                                     \
    "{\"functionResponse\":{\"id\":\"" id "\",\"name\":\"add\",\"response\":" response "}}"

/* G122 */
TEST(gemini_request_answers_calls_by_id_and_name)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a1", "I add.");
    add_round(&a);
    add_user(&a, "u2", "Thanks");

    CHECK_BODY(
        &a,
        "{" CONTENTS(
            HELLO
            "," MODEL(TEXT("I add.") "," CALL("c1", "{\"n\":1}") "," CALL("c2", "{\"n\":2}")) "," USER(
                RESPONSE("c1", "{\"result\":\"one\"}") "," RESPONSE(
                    "c2", "{\"error\":\"broken\"}") "," TEXT("Thanks"))) "}");
    ask_free(&a);
}

/* G122 */
TEST(gemini_request_makes_objects_of_results)
{
    static const char *const results[][2] = {
        {"{\"sum\":3}", "{\"sum\":3}"},
        {" {\"a\": {}}\n", " {\"a\": {}}\n"},
        {"", "{}"},
        {"[1,2]", "{\"result\":\"[1,2]\"}"},
        {"3", "{\"result\":\"3\"}"},
        {"null", "{\"result\":\"null\"}"},
        {"{\"a\":", "{\"result\":\"{\\\"a\\\":\"}"},
        {"words with { in them", "{\"result\":\"words with { in them\"}"},
    };

    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
        struct ask a = ask_gemini();
        char expected[256];

        add_user(&a, "u1", "Hello");
        t_call(&a.t, "b1", "c1", "add", "");
        t_answer(&a.t, "b1", results[i][0]);
        snprintf(expected, sizeof(expected),
                 "{" CONTENTS(HELLO "," MODEL(CALL("c1", "{}")) "," USER(RESPONSE("c1", "%s"))) "}",
                 results[i][1]);
        CHECK_BODY(&a, expected);
        ask_free(&a);
    }
}

/* G122 */
TEST(gemini_request_tells_failures_as_errors)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    t_call(&a.t, "b1", "c1", "add", "{}");
    t_failure(&a.t, "b1", "broken");
    a.options.results = PEG_RESULTS_ENVELOPED;

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "\"response\":{\"error\":\"<trusted_content_" T_NONCE));
    ask_free(&a);
}

/* G122 */
TEST(gemini_request_has_a_name_for_a_call_without_one)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    t_call(&a.t, "b1", "c1", "", "nonsense");
    t_failure(&a.t, "b1", "no");

    CHECK_BODY(
        &a, "{" CONTENTS(HELLO "," MODEL(
                "{\"functionCall\":{\"id\":\"c1\",\"name\":\"unknown_tool\",\"args\":{"
                "\"_malformed\":\"nonsense\"}}}") "," USER("{\"functionResponse\":{\"id\":\"c1\","
                                                           "\"name\":\"unknown_tool\",\"response\":"
                                                           "{\"error\":\"no\"}}}")) "}");
    ask_free(&a);
}

/* G115 */
TEST(gemini_request_answers_a_call_that_nobody_answered)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    t_call(&a.t, "b1", "c1", "add", "{}");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a,
                  "\"functionResponse\":{\"id\":\"c1\",\"name\":\"add\",\"response\":{\"error\":"
                  "\"The outcome of this call is not known"));
    a.options.unanswered = PEG_UNANSWERED_REFUSE;
    CHECK_INT(ask_write(&a), PEG_ESTATE);
    CHECK_STR(peg_cstr(a.t.error.code), "E_ENGINE_UNANSWERED");
    ask_free(&a);
}

/* ---- signatures -------------------------------------------------------------------------- */

/* G122 */
TEST(gemini_request_sends_signatures_back)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    add_signed(&a, PEG_BLOCK_REASONING, "r1", "Hm.", "s1==");
    add_signed(&a, PEG_BLOCK_ASSISTANT, "a1", "I add.", "s2==");
    add_signed_call(&a, "c1", "s3==");

    CHECK_BODY(
        &a, "{" CONTENTS(HELLO "," MODEL(
                "{\"thought\":true,\"text\":\"Hm.\",\"thoughtSignature\":\"s1==\"},"
                "{\"text\":\"I add.\",\"thoughtSignature\":\"s2==\"},"
                "{\"functionCall\":{\"id\":\"c1\",\"name\":\"add\",\"args\":{}},"
                "\"thoughtSignature\":\"s3==\"}") "," USER(RESPONSE("c1",
                                                                    "{\"result\":\"one\"}"))) "}");
    ask_free(&a);
}

TEST(gemini_request_leaves_thoughts_without_a_signature_out)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    add_signed(&a, PEG_BLOCK_REASONING, "r1", "Hm.", NULL);
    t_text(&a.t, PEG_BLOCK_ASSISTANT, "a1", "Hi");

    CHECK_BODY(&a, "{" CONTENTS(HELLO "," MODEL(TEXT("Hi"))) "}");
    ask_free(&a);
}

TEST(gemini_request_excuses_rounds_that_another_model_made)
{
    static const char *const models[] = {"gemini-3-pro-preview", "gemini-flash-latest",
                                         "models/gemini-10-pro"};

    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
        struct ask a = ask_new(&peg__wire_gemini, models[i]);

        add_user(&a, "u1", "Hello");
        add_round(&a);
        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK(ask_has(&a,
                      "{\"functionCall\":{\"id\":\"c1\",\"name\":\"add\",\"args\":{\"n\":1}},"
                      "\"thoughtSignature\":\"skip_thought_signature_validator\"},"
                      "{\"functionCall\":{\"id\":\"c2\",\"name\":\"add\",\"args\":{\"n\":2}}}"));
        ask_free(&a);
    }
}

/* ---- tools ------------------------------------------------------------------------------- */

TEST(gemini_request_has_the_tools)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    ask_offer(&a, TOOLS);

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, ",\"tools\":[{\"functionDeclarations\":[{\"name\":\"add\",\"description\":"
                      "\"Adds.\","));
    CHECK(ask_has(&a, "],\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"AUTO\"}}}"));
    ask_free(&a);
}

TEST(gemini_request_requires_a_call_until_there_is_a_result)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    ask_offer(&a, TOOLS);
    a.config.choice = PEG_CHOICE_REQUIRED;

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "{\"mode\":\"ANY\"}"));
    add_round(&a);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "{\"mode\":\"AUTO\"}"));
    ask_free(&a);
}

/* G125 */
TEST(gemini_request_has_no_tools_when_they_are_off)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    ask_offer(&a, TOOLS);
    a.config.is_enabled = false;
    CHECK_BODY(&a, "{" CONTENTS(HELLO) "}");
    a.config.is_enabled = true;
    a.config.choice = PEG_CHOICE_NONE;
    CHECK_BODY(&a, "{" CONTENTS(HELLO) "}");
    ask_free(&a);
}

/* ---- settings ---------------------------------------------------------------------------- */

TEST(gemini_request_has_the_settings)
{
    struct ask a = ask_gemini();
    const double temperature = 0.5;
    const double top_p = 0.9;

    add_user(&a, "u1", "Hello");
    a.options.max_tokens = 10;
    a.options.temperature = &temperature;
    a.options.top_p = &top_p;
    a.options.stop = (const char *const[]){"END", NULL};
    a.options.thinking_tokens = 5;

    CHECK_BODY(&a, "{" CONTENTS(HELLO) ",\"generationConfig\":{\"maxOutputTokens\":10,"
                                       "\"temperature\":0.5,\"topP\":0.9,\"stopSequences\":["
                                       "\"END\"],\"thinkingConfig\":{\"thinkingBudget\":5,"
                                       "\"includeThoughts\":true}}}");
    ask_free(&a);
}

TEST(gemini_request_says_how_hard_to_think_as_the_model_takes_it)
{
    struct ask a = ask_gemini();

    add_user(&a, "u1", "Hello");
    a.options.reasoning = "medium";
    CHECK_BODY(&a, "{" CONTENTS(HELLO) ",\"generationConfig\":{\"thinkingConfig\":{"
                                       "\"thinkingBudget\":8192,\"includeThoughts\":true}}}");
    a.options.model = "gemini-3-pro-preview";
    CHECK_BODY(&a, "{" CONTENTS(HELLO) ",\"generationConfig\":{\"thinkingConfig\":{"
                                       "\"thinkingLevel\":\"MEDIUM\",\"includeThoughts\":true}}}");
    a.options.reasoning = "somehow";
    CHECK_BODY(&a, "{" CONTENTS(HELLO) "}");
    ask_free(&a);
}

/* ---- media ------------------------------------------------------------------------------- */

static void add_media(struct ask *a, peg_block_kind kind, const char *id, peg_media *media)
{
    t_block(&a->t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind, .id = peg_cstr(id),
                                          .media = &media, .n_media = media != NULL});
    peg_media_unref(media);
}

static peg_media *sound(struct ask *a, const char *type, const char *uri)
{
    return t_media(&a->t,
                   (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_AUDIO,
                                   .mime_type = type, .filename = "a.wav", .uri = uri},
                   uri ? NULL : "wav!");
}

#define MARKER TEXT("[media id=\\\"m1\\\" filename=\\\"a.wav\\\"]")
#define BYTES "{\"inlineData\":{\"mimeType\":\"audio/wav\",\"data\":\"d2F2IQ==\"}}"

TEST(gemini_request_sends_media_as_bytes)
{
    struct ask a = ask_gemini();

    add_media(&a, PEG_BLOCK_USER, "u1", sound(&a, "audio/wav", NULL));

    CHECK_BODY(&a, "{" CONTENTS(USER(MARKER "," BYTES)) "}");
    ask_free(&a);
}

TEST(gemini_request_sends_media_by_its_address)
{
    struct ask a = ask_gemini();

    add_media(&a, PEG_BLOCK_USER, "u1", sound(&a, "audio/wav", "gs://bucket/a.wav"));

    CHECK_BODY(&a,
               "{" CONTENTS(USER(MARKER ",{\"fileData\":{\"mimeType\":\"audio/wav\",\"fileUri\":"
                                        "\"gs://bucket/a.wav\"}}")) "}");
    ask_free(&a);
}

TEST(gemini_request_describes_media_that_cannot_be_sent)
{
    struct ask a = ask_gemini();

    add_media(&a, PEG_BLOCK_USER, "u1", sound(&a, "audio/midi", NULL));
    add_media(&a, PEG_BLOCK_ASSISTANT, "a1", sound(&a, "audio/wav", NULL));

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "audio/midi"));
    CHECK(!ask_has(&a, "inlineData"));
    ask_free(&a);
}

TEST(gemini_request_sends_media_of_results_behind_all_of_them)
{
    struct ask a = ask_gemini();
    peg_media *media = sound(&a, "audio/wav", NULL);

    add_user(&a, "u1", "Hello");
    t_call(&a.t, "b1", "c1", "add", "{}");
    t_call(&a.t, "b2", "c2", "add", "{}");
    t_record(
        &a.t, "b1",
        (peg_record_def){PEG_RECORD_DEF_INIT, .media = &media, .n_media = 1, .is_trusted = true});
    t_answer(&a.t, "b2", "two");
    peg_media_unref(media);

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, RESPONSE("c2", "{\"result\":\"two\"}") "," MARKER "," BYTES "]}]}"));
    ask_free(&a);
}

/* ---- always the same --------------------------------------------------------------------- */

static void fill(struct ask *a)
{
    t_text(&a->t, PEG_BLOCK_SYSTEM, "s1", "Be brief.");
    add_user(a, "u1", "Hello");
    add_media(a, PEG_BLOCK_USER, "u2", sound(a, "audio/wav", NULL));
    add_media(a, PEG_BLOCK_USER, "u3", sound(a, "audio/midi", NULL));
    add_signed(a, PEG_BLOCK_REASONING, "r1", "Hm.", "s1==");
    add_round(a);
    t_text(&a->t, PEG_BLOCK_SYSTEM, "s2", "Go on.");
    t_call(&a->t, "b3", "no good id", "fs read", "[1]");
    t_answer(&a->t, "b3", "{\"a\":1}");
    ask_offer(a, TOOLS);
    a->options.thinking_tokens = 2000;
}

/* G124 */
TEST(gemini_request_is_the_same_a_hundred_times)
{
    struct ask a = ask_gemini();
    char *first;

    fill(&a);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    first = strdup(a.body.ptr);

    for (int i = 0; i < 100; i++)
        CHECK_BODY(&a, first);
    free(first);
    ask_free(&a);
}

TORTURE(gemini_request_survives_any_allocation_failure)
{
    struct ask a = ask_gemini();
    peg_status status;

    fill(&a);
    status = ask_write(&a);
    ask_free(&a);
    return status;
}
