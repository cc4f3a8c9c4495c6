/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "wire_world.h"
#include "json/json.h"

/* ---- fixture ------------------------------------------------------------------------------- */

static const struct peg__wire *const wires[] = {&peg__wire_chat, &peg__wire_responses,
                                                &peg__wire_anthropic, &peg__wire_gemini};
enum { N_WIRES = sizeof(wires) / sizeof(*wires) };

static const char definitions[] =
    "[{\"name\":\"fs.read\",\"description\":\"Reads.\",\"parameters\":{\"type\":\"object\"}}]";

static struct t_turn hello(void)
{
    struct t_turn t = t_turn_new();

    t_text(&t, PEG_BLOCK_USER, "u", "Hello");
    return t;
}

static void offer(struct t_turn *t)
{
    peg_json_doc *doc = NULL;

    if (!t->status)
        t->status = peg_json_parse(peg_cstr(definitions), NULL, &doc, &t->error);
    if (!t->status)
        t->status = peg_turn_set(t->turn, &peg_key_tool_definitions, peg_json_root(doc), &t->error);
    peg_json_doc_free(doc);
}

static void configure(struct t_turn *t, peg_tool_config config)
{
    if (!t->status)
        t->status = peg_turn_set_tool_config(t->turn, &config, &t->error);
}

/* Freed with peg_free(). */
static char *render(struct t_turn *t, peg_vendor vendor, const char *extra)
{
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "m", .extra = extra};
    char *text = NULL;
    size_t len = 0;

    CHECK_STATUS(t->status, PEG_OK, t->error);
    CHECK_STATUS(peg_engine_render(vendor, &options, t->turn, NULL, false, &text, &len, &t->error),
                 PEG_OK, t->error);
    CHECK_INT(strlen(text), len);
    return text;
}

#define CHECK_CHAT(t, extra, expected)                                                             \
    do {                                                                                           \
        char *t_text = render(t, PEG_VENDOR_OPENAI_CHAT, extra);                                   \
        CHECK_STR(peg_cstr(t_text), expected);                                                     \
        peg_free(t_text);                                                                          \
    } while (0)

#define HELLO "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"

/* ---- vendors ------------------------------------------------------------------------------- */

TEST(wire_of_a_provider_speaks_to_it)
{
    for (size_t i = 0; i < N_WIRES; i++)
        CHECK(peg__wire_of(wires[i]->vendor) == wires[i]);
    CHECK(!peg__wire_of(PEG_VENDOR_NEUTRAL));
    CHECK(!peg__wire_of(PEG_N_VENDORS));
}

static void check_path(const struct peg__wire *wire, const char *expected)
{
    struct peg__buf path = PEG__BUF(1000);

    peg__wire_path(wire, &(const peg_model_options){PEG_MODEL_OPTIONS_INIT, .model = "m"}, true,
                   &path);
    CHECK_STR(peg__buf_view(&path), expected);
    peg__buf_free(&path);
}

TEST(wire_of_openai_knows_its_paths)
{
    check_path(&peg__wire_chat, "/chat/completions");
    check_path(&peg__wire_responses, "/responses");
    CHECK_STR(peg_cstr(peg__wire_chat.base_url), "https://api.openai.com/v1");
    CHECK_STR(peg_cstr(peg__wire_responses.key_env), "OPENAI_API_KEY");
}

TEST(wire_of_openai_sends_its_key_if_there_is_one)
{
    struct peg__buf headers = PEG__BUF(1000);

    peg__wire_headers(&peg__wire_chat, NULL, &headers);
    peg__wire_headers(&peg__wire_chat, "", &headers);
    CHECK_STR(peg__buf_view(&headers), "");
    peg__wire_headers(&peg__wire_chat, "sk-1", &headers);
    CHECK_STR(peg__buf_view(&headers), "Authorization: Bearer sk-1\n");
    peg__buf_free(&headers);
}

/* ---- requests -------------------------------------------------------------------------------- */

TEST(request_is_made_of_the_turn_its_definitions_and_its_config)
{
    struct t_turn t = hello();
    peg_tool_config config = peg_tool_config_default();

    CHECK_CHAT(&t, NULL, HELLO "}");
    offer(&t);
    CHECK_CHAT(&t, NULL,
               HELLO ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
                     "\"fs_read\",\"description\":\"Reads.\",\"parameters\":{\"type\":"
                     "\"object\",\"properties\":{}}}}],\"tool_choice\":\"auto\"}");
    config.is_enabled = false;
    configure(&t, config);
    CHECK_CHAT(&t, NULL, HELLO "}");
    t_turn_free(&t);
}

TEST(request_takes_other_definitions_than_the_turn_has)
{
    struct t_turn t = hello();
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "m"};
    peg_json_doc *none = NULL;
    char *text = NULL;

    offer(&t);
    CHECK_INT(peg_json_parse(peg_cstr("[]"), NULL, &none, NULL), PEG_OK);
    CHECK_INT(peg_engine_render(PEG_VENDOR_OPENAI_CHAT, &options, t.turn, peg_json_root(none),
                                false, &text, NULL, NULL),
              PEG_OK);

    CHECK_STR(peg_cstr(text), HELLO "}");
    peg_free(text);
    peg_json_doc_free(none);
    t_turn_free(&t);
}

TEST(request_refuses_what_it_cannot_be_made_of)
{
    struct t_turn t = hello();
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "m"};
    const peg_model_options no_model = {PEG_MODEL_OPTIONS_INIT, .model = ""};
    peg_error error;
    char *text = NULL;

    CHECK_INT(
        peg_engine_render(PEG_VENDOR_NEUTRAL, &options, t.turn, NULL, false, &text, NULL, &error),
        PEG_EINVAL);
    CHECK_STR(peg_cstr(error.code), "E_ENGINE_CONFIG");
    CHECK_INT(
        peg_engine_render(PEG_VENDOR_OPENAI_CHAT, NULL, t.turn, NULL, false, &text, NULL, &error),
        PEG_EINVAL);
    CHECK_INT(
        peg_engine_render(PEG_VENDOR_OPENAI_CHAT, &options, NULL, NULL, false, &text, NULL, &error),
        PEG_EINVAL);
    CHECK_INT(peg_engine_render(PEG_VENDOR_OPENAI_CHAT, &no_model, t.turn, NULL, false, &text, NULL,
                                &error),
              PEG_EINVAL);
    CHECK(!text);
    t_turn_free(&t);
}

/* G115 */
TEST(request_of_every_provider_refuses_a_call_that_nobody_answered_if_asked_to)
{
    struct t_turn t = hello();
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "m",
                                       .unanswered = PEG_UNANSWERED_REFUSE};
    char *text = NULL;

    t_call(&t, "b1", "c1", "echo", "{}");
    for (size_t i = 0; i < N_WIRES; i++) {
        peg_error error = {.code = ""};

        CHECK_INT(
            peg_engine_render(wires[i]->vendor, &options, t.turn, NULL, false, &text, NULL, &error),
            PEG_ESTATE);
        CHECK_STR(peg_cstr(error.code), "E_ENGINE_UNANSWERED");
    }
    t_turn_free(&t);
}

/* G115 */
TEST(request_of_every_provider_says_that_nobody_knows_otherwise)
{
    struct t_turn t = hello();

    t_call(&t, "b1", "c1", "echo", "{}");
    for (size_t i = 0; i < N_WIRES; i++) {
        char *text = render(&t, wires[i]->vendor, NULL);

        CHECK(strstr(text, "The outcome of this call is not known"));
        peg_free(text);
    }
    t_turn_free(&t);
}

static void check_no_tools(struct t_turn *t)
{
    for (size_t i = 0; i < N_WIRES; i++) {
        char *text = render(t, wires[i]->vendor, "{\"tools\":[{\"type\":\"web_search\"}]}");

        CHECK(!strstr(text, "tools"));
        CHECK(!strstr(text, "fs_read"));
        peg_free(text);
    }
}

/* G125 */
TEST(request_of_every_provider_has_no_tools_if_the_turn_wants_none)
{
    struct t_turn disabled = hello();
    struct t_turn none = hello();
    peg_tool_config config = peg_tool_config_default();

    offer(&disabled);
    offer(&none);
    config.is_enabled = false;
    configure(&disabled, config);
    config.is_enabled = true;
    config.choice = PEG_CHOICE_NONE;
    configure(&none, config);

    check_no_tools(&disabled);
    check_no_tools(&none);
    t_turn_free(&disabled);
    t_turn_free(&none);
}

/* G124 */
TEST(request_of_every_provider_is_the_same_bytes_each_time)
{
    struct t_turn t = hello();

    offer(&t);
    t_call(&t, "b1", "c 1", "fs.read", "{}");
    t_record(&t, "b1", (peg_record_def){PEG_RECORD_DEF_INIT, .text = peg_cstr("one")});
    for (size_t i = 0; i < N_WIRES; i++) {
        char *first = render(&t, wires[i]->vendor, "{\"x\":{\"b\":1,\"a\":2}}");

        for (int k = 0; k < 100; k++) {
            char *again = render(&t, wires[i]->vendor, "{\"x\":{\"b\":1,\"a\":2}}");

            CHECK_STR(peg_cstr(again), first);
            peg_free(again);
        }
        peg_free(first);
    }
    t_turn_free(&t);
}

/* ---- extra ------------------------------------------------------------------------------------
 */

TEST(extra_members_are_added_and_win)
{
    struct t_turn t = hello();

    CHECK_CHAT(&t, "", HELLO "}");
    CHECK_CHAT(&t, "{}", HELLO "}");
    CHECK_CHAT(&t, "{\"seed\":1,\"model\":\"other\",\"x\":null}",
               "{\"model\":\"other\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],"
               "\"seed\":1}");
    CHECK_CHAT(&t, "{\"messages\":null}", "{\"model\":\"m\"}");
    t_turn_free(&t);
}

TEST(extra_members_win_inside_objects)
{
    const double temperature = 0.5;
    const peg_model_options options = {
        PEG_MODEL_OPTIONS_INIT, .model = "m", .reasoning = "low", .temperature = &temperature,
        .extra =
            "{\"reasoning\":{\"summary\":\"auto\",\"effort\":\"high\",\"x\":{\"default\":null}}}"};
    struct t_turn t = t_turn_new();
    char *text = NULL;

    CHECK_INT(peg_engine_render(PEG_VENDOR_OPENAI_RESPONSES, &options, t.turn, NULL, true, &text,
                                NULL, NULL),
              PEG_OK);

    CHECK_STR(peg_cstr(text), "{\"model\":\"m\",\"input\":[],\"temperature\":0.5,\"reasoning\":{"
                              "\"effort\":\"high\",\"summary\":\"auto\",\"x\":{\"default\":null}},"
                              "\"include\":[\"reasoning.encrypted_content\"],\"store\":false,"
                              "\"stream\":true}");
    peg_free(text);
    t_turn_free(&t);
}

/* G116 */
TEST(extra_tools_of_the_provider_stand_beside_ours)
{
    struct t_turn t = hello();
    char *text;

    text = render(&t, PEG_VENDOR_OPENAI_RESPONSES, "{\"tools\":[{\"type\":\"web_search\"}]}");
    CHECK(strstr(text, "\"tools\":[{\"type\":\"web_search\"}]"));
    peg_free(text);

    offer(&t);
    text = render(&t, PEG_VENDOR_OPENAI_RESPONSES, "{\"tools\":[{\"type\":\"web_search\"}]}");
    CHECK(strstr(text, "\"tools\":[{\"type\":\"function\",\"name\":\"fs_read\","));
    CHECK(strstr(text, "},{\"type\":\"web_search\"}]"));
    peg_free(text);
    t_turn_free(&t);
}

TEST(extra_that_is_no_object_is_refused)
{
    static const char *const extras[] = {"x", "[]", "1", "{\"a\":}"};
    struct t_turn t = hello();

    for (size_t i = 0; i < sizeof(extras) / sizeof(*extras); i++) {
        const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "m",
                                           .extra = extras[i]};
        peg_error error = {.code = ""};
        char *text = NULL;

        CHECK_INT(peg_engine_render(PEG_VENDOR_OPENAI_CHAT, &options, t.turn, NULL, false, &text,
                                    NULL, &error),
                  PEG_EINVAL);
        CHECK_STR(peg_cstr(error.code), "E_ENGINE_CONFIG");
        CHECK(strstr(error.message, "extra"));
    }
    t_turn_free(&t);
}

TEST(extra_objects_that_nest_deeply_are_replaced)
{
    struct t_turn t = hello();
    static char extra[600];

    strcpy(extra, "{\"a\":");
    memset(extra + 5, '[', 100);
    memset(extra + 105, ']', 100);
    strcpy(extra + 205, "}");
    char *text = render(&t, PEG_VENDOR_OPENAI_CHAT, extra);

    CHECK(strstr(text, "\"a\":[[["));
    peg_free(text);
    t_turn_free(&t);
}

/* ---- errors -------------------------------------------------------------------------------------
 */

static void check_error(long http_status, const char *body, const char *code, const char *message)
{
    peg_error error;

    CHECK_INT(peg__wire_error(&peg__wire_chat, http_status, peg_cstr(body), &error), PEG_EHOST);
    CHECK_STR(peg_cstr(error.code), code);
    CHECK_STR(peg_cstr(error.message), message);
    CHECK_INT(peg__wire_error(&peg__wire_chat, http_status, peg_cstr(body), NULL), PEG_EHOST);
}

TEST(error_of_a_provider_is_told_in_its_own_words)
{
    check_error(401,
                "{\"error\":{\"message\":\"Incorrect API key provided\",\"type\":"
                "\"invalid_request_error\",\"param\":null,\"code\":\"invalid_api_key\"}}",
                "E_ENGINE_AUTH",
                "openai-chat (HTTP 401), invalid_api_key: Incorrect API key provided");
    check_error(529,
                "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
                "\"Overloaded\"}}",
                "E_ENGINE_OVERLOADED", "openai-chat (HTTP 529), overloaded_error: Overloaded");
    check_error(400,
                "[{\"error\":{\"code\":400,\"message\":\"Cannot\\n  find field.\",\"status\":"
                "\"INVALID_ARGUMENT\"}}]",
                "E_ENGINE_REQUEST", "openai-chat (HTTP 400), INVALID_ARGUMENT: Cannot find field.");
}

TEST(error_of_other_servers_is_told_too)
{
    check_error(404, "{\"error\":\"model 'x' not found\"}", "E_ENGINE_REQUEST",
                "openai-chat (HTTP 404): model 'x' not found");
    check_error(422, "{\"detail\":\"bad field\"}", "E_ENGINE_REQUEST",
                "openai-chat (HTTP 422): bad field");
    check_error(502, "<html>\r\n<b>Bad Gateway</b>", "E_ENGINE_FAILED",
                "openai-chat (HTTP 502): <html> <b>Bad Gateway</b>");
    check_error(500, "", "E_ENGINE_FAILED", "openai-chat (HTTP 500): it refused without a reason");
    check_error(500, "\xFF!", "E_ENGINE_FAILED", "openai-chat (HTTP 500): ?!");
    check_error(500, "[]", "E_ENGINE_FAILED",
                "openai-chat (HTTP 500): it refused without a reason");
}

TEST(error_codes_follow_the_http_status)
{
    static const struct {
        long status;
        const char *code;
    } cases[] = {
        {400, "E_ENGINE_REQUEST"},    {401, "E_ENGINE_AUTH"},         {403, "E_ENGINE_AUTH"},
        {404, "E_ENGINE_REQUEST"},    {408, "E_ENGINE_FAILED"},       {409, "E_ENGINE_FAILED"},
        {413, "E_ENGINE_REQUEST"},    {429, "E_ENGINE_RATE_LIMITED"}, {500, "E_ENGINE_FAILED"},
        {503, "E_ENGINE_OVERLOADED"}, {529, "E_ENGINE_OVERLOADED"},   {302, "E_ENGINE_FAILED"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        peg_error error;

        CHECK_INT(peg__wire_error(&peg__wire_chat, cases[i].status, peg_cstr("no"), &error),
                  PEG_EHOST);
        CHECK_STR(peg_cstr(error.code), cases[i].code);
    }
}

TEST(error_in_a_stream_is_judged_by_its_type)
{
    check_error(0, "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
                "E_ENGINE_OVERLOADED", "openai-chat, overloaded_error: Overloaded");
    check_error(0, "{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}}",
                "E_ENGINE_RATE_LIMITED", "openai-chat, rate_limit_exceeded: slow");
    check_error(0, "{\"error\":{\"status\":\"PERMISSION_DENIED\",\"message\":\"no\"}}",
                "E_ENGINE_AUTH", "openai-chat, PERMISSION_DENIED: no");
    check_error(0, "{\"error\":{\"code\":503,\"message\":\"later\"}}", "E_ENGINE_OVERLOADED",
                "openai-chat (HTTP 503): later");
    check_error(0, "{\"error\":{\"type\":\"api_error\",\"message\":\"oh\"}}", "E_ENGINE_FAILED",
                "openai-chat, api_error: oh");
}

TEST(error_words_are_cut_between_characters)
{
    char body[1024];
    peg_error error;

    for (size_t n = 290; n < 330; n++) {
        memset(body, 'x', n);
        strcpy(body + n, "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9");
        CHECK_INT(peg__wire_error(&peg__wire_chat, 500, peg_cstr(body), &error), PEG_EHOST);
        CHECK(peg__utf8_is_valid(peg_cstr(error.message)));
    }
}

/* ---- torture ------------------------------------------------------------------------------------
 */

TORTURE(request_survives_any_allocation_failure)
{
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "m",
                                       .extra = "{\"tools\":[{}],\"a\":{\"b\":1}}"};
    struct t_turn t = hello();
    char *text = NULL;
    peg_status status;

    offer(&t);
    status = t.status;
    if (!status)
        status = peg_engine_render(PEG_VENDOR_OPENAI_RESPONSES, &options, t.turn, NULL, true, &text,
                                   NULL, NULL);
    peg_free(text);
    t_turn_free(&t);
    return status;
}

TORTURE(error_survives_any_allocation_failure)
{
    peg_error error;
    const peg_status status =
        peg__wire_error(&peg__wire_chat, 500, peg_cstr("{\"error\":{\"message\":\"no\"}}"), &error);

    return status == PEG_EHOST ? PEG_OK : status;
}
