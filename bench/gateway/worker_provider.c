/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The toolset `bench` as a program would offer it: a registry with one tool, served by
 * libpegboard-remote, whose handlers run on worker threads.
 *
 *   gateway-worker-provider 127.0.0.1:PORT
 */

#include <stdio.h>

#include "../help.h"
#include "pegboard/call.h"
#include "pegboard/provider.h"
#include "pegboard/registry.h"

static void echo(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

static void on_event(const peg_provider_event *event, void *user)
{
    (void)user;
    if (event->kind == PEG_PROVIDER_ATTACHED) {
        printf("ready\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = "echo",
        .description = "answers with its own arguments",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
                        "\"required\":[\"text\"],\"additionalProperties\":false}",
        .run = echo,
    };
    const peg_provider_options options = {
        PEG_PROVIDER_OPTIONS_INIT, .toolset = "bench", .address = argc > 1 ? argv[1] : NULL,
        .handles_signals = true,   .concurrency = 4,   .max_queued = 2000,
        .on_event = on_event,
    };
    peg_error error;
    peg_tool *tool;
    peg_registry *registry;

    bench_help(argc, argv,
               "usage: gateway-worker-provider [ADDRESS]\n\n"
               "Provides the tool `echo` of the toolset `bench` with the library, whose handlers\n"
               "run on four worker threads.\n");
    if (peg_tool_new(&def, &tool, &error) || peg_registry_new(&tool, 1, &registry, &error) ||
        peg_provider_serve(registry, &options, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return 0;
}
