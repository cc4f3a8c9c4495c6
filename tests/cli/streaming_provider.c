/* SPDX-License-Identifier: Apache-2.0 */

/* A provider whose tool writes output while it runs: streaming_provider ADDRESS. */

#include <stdio.h>

#include "pegboard/pegboard.h"
#include "pegboard/provider.h"

static void count(peg_call *call, const peg_json *args, void *user)
{
    int64_t n = 0;
    char line[32];

    (void)user;
    peg_json_int64(peg_json_get(args, "n"), &n);
    for (int64_t i = 1; i <= n; i++) {
        snprintf(line, sizeof(line), "line %d\n", (int)i);
        peg_provider_delta(call, "stdout", peg_cstr(line));
    }
    peg_provider_delta(call, "stdout", peg_cstr("\033[2J\n")); /* would clear the screen */
    peg_call_add_server_data(call, "note", "ui", args);
    peg_call_reply_json(call, peg_json_get(args, "n"));
}

int main(int argc, char **argv)
{
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = "count",
        .description = "Counts aloud",
        .input_schema = "{\"type\":\"object\",\"required\":[\"n\"],"
                        "\"properties\":{\"n\":{\"type\":\"integer\"}}}",
        .run = count,
    };
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "talk",
                                          .address = argc > 1 ? argv[1] : NULL,
                                          .handles_signals = true};
    peg_tool *tool = NULL;
    peg_registry *registry = NULL;
    peg_error error;

    if (peg_tool_new(&def, &tool, &error) || peg_registry_new(&tool, 1, &registry, &error) ||
        peg_provider_serve(registry, &options, &error)) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        return 1;
    }
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return 0;
}
