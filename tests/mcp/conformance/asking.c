/* SPDX-License-Identifier: Apache-2.0 */

/* Tools that ask the client: forms for a person, samples of its model, its roots. */

#include <stdio.h>

#include "fixture.h"
#include "pegboard/cleanup.h"

#define FORM(message, properties, required)                                                        \
    "{\"message\":\"" message                                                                      \
    "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" properties                      \
    "},\"required\":[" required "]}}"
#define SAMPLE(text)                                                                               \
    "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}],"   \
    "\"maxTokens\":100}"
#define NAME_FORM FORM("What is your name?", "\"name\":{\"type\":\"string\"}", "\"name\"")
#define OK_FORM FORM("Please confirm", "\"ok\":{\"type\":\"boolean\"}", "\"ok\"")

peg_status fixture_ask(peg_ctx *ctx, const char *key, const char *method, const char *params,
                       peg_json_doc **ret_doc, const peg_json **ret_answer, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(peg_cstr(params), NULL, &doc, reterr);

    if (!status)
        status = peg_gate_ask(
            ctx, &(peg_ask){.key = key, .method = method, .params = peg_json_root(doc)}, 1, ret_doc,
            reterr);
    if (!status)
        *ret_answer = peg_json_get(peg_json_root(*ret_doc), key);
    return status;
}

/* What a tool asks, and what stands before the answer in its own. */
struct question {
    const char *key;
    const char *method;
    const char *params;
    const char *prefix;
};

static void reply_with(peg_call *call, const char *prefix, const peg_json *answer)
{
    PEG_CLEANUP(peg_freep) char *text = NULL;

    if (peg_json_write(answer, PEG_JSON_COMPACT, &text, NULL, NULL) == PEG_OK)
        peg_call_replyf(call, "%s%s", prefix, text);
}

static void ask(peg_call *call, const peg_json *args, void *user)
{
    const struct question *question = user;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json *answer;
    peg_error error;

    (void)args;
    if (fixture_ask(peg_call_ctx(call), question->key, question->method, question->params, &doc,
                    &answer, &error))
        peg_call_fail_with(call, &error);
    else
        reply_with(call, question->prefix, answer);
}

/* ---- with arguments ---- */

/* The text of an argument within params, which are written around it. */
static void ask_about(peg_call *call, const char *method, peg_str before, const peg_json *text,
                      const char *after)
{
    PEG_CLEANUP(peg_freep) char *quoted = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json *answer;
    char params[2048];
    peg_error error;

    if (peg_json_write(text, PEG_JSON_COMPACT, &quoted, NULL, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    snprintf(params, sizeof(params), "%s%.1000s%s", before.ptr, quoted, after);
    if (fixture_ask(peg_call_ctx(call), "question", method, params, &doc, &answer, &error))
        peg_call_fail_with(call, &error);
    else
        reply_with(call, "Response: ", answer);
}

static void ask_model(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    ask_about(call, "sampling/createMessage",
              peg_cstr("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
                       "\"text\":"),
              peg_json_get(args, "prompt"), "}}],\"maxTokens\":100}");
}

static void ask_person(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    ask_about(call, "elicitation/create", peg_cstr("{\"message\":"), peg_json_get(args, "message"),
              ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"username\":{\"type\":"
              "\"string\"},\"email\":{\"type\":\"string\"}},\"required\":[\"username\","
              "\"email\"]}}");
}

/* ---- several ---- */

static void ask_all(peg_call *call, const struct question *questions, size_t n, bool is_optional)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answers = NULL;
    peg_json_doc *params[3] = {NULL};
    peg_ask asks[3];
    peg_error error;
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n && !status; i++) {
        status = peg_json_parse(peg_cstr(questions[i].params), NULL, &params[i], &error);
        asks[i] = (peg_ask){.key = questions[i].key,
                            .method = questions[i].method,
                            .params = peg_json_root(params[i]),
                            .is_optional = is_optional};
    }
    if (!status)
        status = peg_call_ask(call, asks, n, &answers, &error);
    if (status)
        peg_call_fail_with(call, &error);
    else
        reply_with(call, "Answers: ", peg_json_root(answers));
    for (size_t i = 0; i < n; i++)
        peg_json_doc_free(params[i]);
}

static const struct question three[] = {
    {"user_name", "elicitation/create", NAME_FORM, ""},
    {"greeting", "sampling/createMessage", SAMPLE("Generate a greeting"), ""},
    {"client_roots", "roots/list", "{}", ""},
};

static void ask_three(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    ask_all(call, three, 3, false);
}

static void ask_what_can_be(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    ask_all(call, three, 3, true);
}

static void ask_twice(peg_call *call, const peg_json *args, void *user)
{
    static const struct question steps[] = {
        {"step1", "elicitation/create",
         FORM("Step 1: What is your name?", "\"name\":{\"type\":\"string\"}", "\"name\""), ""},
        {"step2", "elicitation/create",
         FORM("Step 2: What is your favorite color?", "\"color\":{\"type\":\"string\"}",
              "\"color\""),
         ""}};
    peg_error error;

    (void)args;
    (void)user;
    for (size_t i = 0; i < 2; i++) {
        PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
        const peg_json *answer;

        if (fixture_ask(peg_call_ctx(call), steps[i].key, steps[i].method, steps[i].params, &doc,
                        &answer, &error)) {
            peg_call_fail_with(call, &error);
            return;
        }
    }
    peg_call_reply(call, peg_cstr("both were answered"));
}

/* ---- the tools ---- */

#define DEFAULTS                                                                                   \
    FORM("Please review",                                                                          \
         "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"                                \
         "\"age\":{\"type\":\"integer\",\"default\":30},"                                          \
         "\"score\":{\"type\":\"number\",\"default\":95.5},"                                       \
         "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"         \
         "\"default\":\"active\"},\"verified\":{\"type\":\"boolean\",\"default\":true}",           \
         "")
#define TITLED(a, b)                                                                               \
    "[{\"const\":\"value1\",\"title\":\"" a "\"},{\"const\":\"value2\",\"title\":\"" b "\"}]"
#define OPTIONS "[\"option1\",\"option2\",\"option3\"]"
#define ENUMS                                                                                      \
    FORM("Please choose",                                                                          \
         "\"untitledSingle\":{\"type\":\"string\",\"enum\":" OPTIONS "},"                          \
         "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED(                                \
             "First Option", "Second Option") "},"                                                 \
                                              "\"legacyEnum\":{\"type\":\"string\",\"enum\":["     \
                                              "\"opt1\",\"opt2\"],\"enumNames\":[\"Option One\","  \
                                              "\"Option Two\"]},"                                  \
                                              "\"untitledMulti\":{\"type\":\"array\",\"items\":{"  \
                                              "\"type\":\"string\",\"enum\":" OPTIONS "}},"        \
                                              "\"titledMulti\":{\"type\":\"array\",\"items\":{"    \
                                              "\"anyOf\":" TITLED("First Choice",                  \
                                                                  "Second Choice") "}}",           \
         "")

static struct question defaults = {"form", "elicitation/create", DEFAULTS, "Completed: "};
static struct question enums = {"form", "elicitation/create", ENUMS, "Completed: "};
static struct question user_name = {"user_name", "elicitation/create", NAME_FORM, "Hello, "};
static struct question capital = {"capital_question", "sampling/createMessage",
                                  SAMPLE("What is the capital of France?"), "It said: "};
static struct question roots = {"client_roots", "roots/list", "{}", "Roots: "};
static struct question confirm = {"confirm", "elicitation/create", OK_FORM, "state-ok "};

#define ASKS(tool, question)                                                                       \
    {                                                                                              \
        PEG_TOOL_DEF_INIT, .name = tool, .description = "Asks", .run = ask, .user = &(question)    \
    }
#define TAKES(name)                                                                                \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}},"                    \
    "\"required\":[\"" name "\"]}"

static const peg_tool_def defs[] = {
    {PEG_TOOL_DEF_INIT, .name = "test_sampling", .description = "Asks the model", .run = ask_model,
     .input_schema = TAKES("prompt")},
    {PEG_TOOL_DEF_INIT, .name = "test_elicitation", .description = "Asks a person",
     .run = ask_person, .input_schema = TAKES("message")},
    ASKS("test_elicitation_sep1034_defaults", defaults),
    ASKS("test_elicitation_sep1330_enums", enums),
    ASKS("test_missing_capability", capital),
    ASKS("test_streaming_elicitation", user_name),
    ASKS("test_input_required_result_elicitation", user_name),
    ASKS("test_input_required_result_sampling", capital),
    ASKS("test_input_required_result_list_roots", roots),
    ASKS("test_input_required_result_request_state", confirm),
    ASKS("test_input_required_result_tampered_state", confirm),
    {PEG_TOOL_DEF_INIT, .name = "test_input_required_result_multiple_inputs",
     .description = "Asks for three things", .run = ask_three},
    {PEG_TOOL_DEF_INIT, .name = "test_input_required_result_capabilities",
     .description = "Asks for what the client can answer", .run = ask_what_can_be},
    {PEG_TOOL_DEF_INIT, .name = "test_input_required_result_multi_round",
     .description = "Asks twice", .run = ask_twice},
};

const struct fixture_tools fixture_asking_tools = {defs, sizeof(defs) / sizeof(defs[0])};
