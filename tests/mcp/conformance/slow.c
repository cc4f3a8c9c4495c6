/* SPDX-License-Identifier: Apache-2.0 */

/* Tools that take longer than fixture.c's task_ms, and so are tasks for clients that know them. */

#include "fixture.h"
#include "pegboard/cleanup.h"

enum { LONGER_MS = 700 };

static void greet(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_replyf(call, "Hello, %.100s!", peg_json_str(peg_json_get(args, "name")).ptr);
}

static bool wait_for(const peg_call *call, double ms)
{
    return peg_ctx_wait(peg_call_ctx(call), (int64_t)ms, NULL) == PEG_OK;
}

static void compute(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    if (wait_for(call, 1000 * peg_json_double(peg_json_get(args, "seconds"))))
        peg_call_reply(call, peg_cstr("42"));
    else
        peg_call_fail(call, "canceled");
}

static void fail_slowly(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    (void)!wait_for(call, LONGER_MS);
    peg_call_fail(call, "the job failed");
}

#define CONFIRM                                                                                    \
    "{\"message\":\"Really?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"           \
    "\"confirm\":{\"type\":\"boolean\"}}}}"

static void ask_slowly(peg_call *call, size_t n)
{
    static const char *const keys[] = {"first", "second"};
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *params = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answers = NULL;
    peg_ask asks[2];
    peg_error error;

    (void)!wait_for(call, LONGER_MS);
    if (peg_json_parse(peg_cstr(CONFIRM), NULL, &params, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    for (size_t i = 0; i < n; i++)
        asks[i] = (peg_ask){
            .key = keys[i], .method = "elicitation/create", .params = peg_json_root(params)};
    if (peg_call_ask(call, asks, n, &answers, &error))
        peg_call_fail_with(call, &error);
    else
        peg_call_reply(call, peg_cstr("confirmed"));
}

static void ask_one(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    ask_slowly(call, 1);
}

static void ask_two(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    ask_slowly(call, 2);
}

/* The other way round: asks, and then takes its time. */
static void ask_then_work(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json *answer;
    peg_error error;

    (void)args;
    (void)user;
    if (fixture_ask(peg_call_ctx(call), "user_name", "elicitation/create",
                    "{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\","
                    "\"properties\":{\"name\":{\"type\":\"string\"}}}}",
                    &doc, &answer, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    (void)!wait_for(call, 2 * LONGER_MS);
    peg_call_replyf(call, "Hello, %.100s!",
                    peg_json_str(peg_json_get(peg_json_get(answer, "content"), "name")).ptr);
}

static const peg_tool_def defs[] = {
    {PEG_TOOL_DEF_INIT, .name = "greet", .description = "Greets at once", .run = greet,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"},
    {PEG_TOOL_DEF_INIT, .name = "slow_compute", .description = "Takes its time", .run = compute,
     .timeout_ms = -1,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},"
                     "\"label\":{\"type\":\"string\"}}}"},
    {PEG_TOOL_DEF_INIT, .name = "failing_job", .description = "Fails after a while",
     .run = fail_slowly},
    {PEG_TOOL_DEF_INIT, .name = "confirm_delete", .description = "Asks after a while",
     .run = ask_one,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"filename\":{\"type\":\"string\"}}}"},
    {PEG_TOOL_DEF_INIT, .name = "test_tool_with_task", .description = "Asks, and works for a while",
     .run = ask_then_work},
    {PEG_TOOL_DEF_INIT, .name = "multi_input", .description = "Asks for two things after a while",
     .run = ask_two},
};

const struct fixture_tools fixture_slow_tools = {defs, sizeof(defs) / sizeof(defs[0])};
