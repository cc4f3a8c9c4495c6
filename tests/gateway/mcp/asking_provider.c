/* SPDX-License-Identifier: Apache-2.0 */

/* A provider in C whose tools ask those who called: a person, a model, or for roots.
 * asking_provider ADDRESS [TOKEN_FILE] */

#include <stdio.h>

#include "pegboard/cleanup.h"
#include "pegboard/gate.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"

/* A form. Reports what it does before and after. */
static void name(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answer = NULL;
    peg_error error;

    (void)user;
    peg_provider_delta(call, "stdout", peg_cstr("before\n"));
    if (peg_schema_compile(peg_cstr("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
                                    "\"string\"}},\"required\":[\"name\"]}"),
                           NULL, &schema, &error) ||
        peg_gate_wait(peg_call_ctx(call),
                      &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "Who are you?", .payload = args,
                                      .schema = schema},
                      &answer, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    peg_provider_delta(call, "stdout", peg_cstr("after\n"));
    peg_call_replyf(call, "hello %s",
                    peg_json_str(peg_json_get(peg_json_root(answer), "name")).ptr);
}

/* What its argument says, and gives back the answers. */
static void ask(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answers = NULL;
    peg_ask asks[4];
    size_t n = 0;
    peg_error error;

    (void)user;
    PEG_JSON_EACH_MEMBER (peg_json_get(args, "asks"), key) {
        if (n == sizeof(asks) / sizeof(asks[0]))
            break;
        asks[n++] = (peg_ask){.key = peg_json_str(key).ptr,
                              .method = peg_json_str(peg_json_get(key + 1, "method")).ptr,
                              .params = peg_json_get(key + 1, "params")};
    }
    if (peg_call_ask(call, asks, n, &answers, &error))
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_json(call, peg_json_root(answers));
}

static peg_status offer(peg_registry *registry, const peg_tool_def *def, peg_error *reterr)
{
    PEG_CLEANUP(peg_tool_unrefp) peg_tool *tool = NULL;
    const peg_status status = peg_tool_new(def, &tool, reterr);

    return status ? status : peg_registry_register(registry, tool, false, reterr);
}

int main(int argc, char **argv)
{
    const peg_tool_def names = {PEG_TOOL_DEF_INIT, .name = "name",
                                .description = "Asks a person for a name", .run = name};
    const peg_tool_def asks = {
        PEG_TOOL_DEF_INIT,
        .name = "ask",
        .description = "Asks what it is told to",
        .input_schema = "{\"type\":\"object\",\"required\":[\"asks\"],\"properties\":{\"asks\":{"
                        "\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\","
                        "\"additionalProperties\":true}}}}",
        .run = ask,
    };
    const peg_provider_options options = {
        PEG_PROVIDER_OPTIONS_INIT, .toolset = "asking", .address = argc > 1 ? argv[1] : NULL,
        .token_file = argc > 2 ? argv[2] : NULL, .handles_signals = true};
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    peg_error error;

    if (peg_registry_new(NULL, 0, &registry, &error) || offer(registry, &names, &error) ||
        offer(registry, &asks, &error) || peg_provider_serve(registry, &options, &error)) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        return 1;
    }
    return 0;
}
