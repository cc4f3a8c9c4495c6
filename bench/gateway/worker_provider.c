/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The toolset `bench` as a program would offer it: a registry with one tool, served by
 * libpegboard-remote, whose handlers run on worker threads; or, with the URL of a Redis, on the
 * thread that reads its stream, as a direct toolset; "attached" for an attached one like that.
 *
 *   gateway-worker-provider 127.0.0.1:PORT [URL | attached]
 */

#include <stdio.h>
#include <string.h>

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

static peg_status serve(peg_registry *registry, const peg_provider_options *options,
                        const char *redis_url, peg_error *reterr)
{
    const peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT, .redis_url = redis_url};

    if (redis_url && strcmp(redis_url, "attached") != 0)
        return peg_provider_serve_streams(registry, options, &streams, reterr);
    return peg_provider_serve(registry, options, reterr);
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
        PEG_PROVIDER_OPTIONS_INIT,
        .toolset = "bench",
        .address = argc > 1 ? argv[1] : NULL,
        .handles_signals = true,
        .concurrency = argc > 2 ? 0 : 4,
        .max_queued = argc > 2 ? 0 : 2000,
        .on_event = on_event,
        .runs_inline = argc > 2,
    };
    peg_error error;
    peg_tool *tool;
    peg_registry *registry;

    bench_help(argc, argv,
               "usage: gateway-worker-provider [ADDRESS [URL | attached]]\n\n"
               "Provides the tool `echo` of the toolset `bench` with the library, whose handlers\n"
               "run on four worker threads; with URL as a direct toolset of that Redis, on one.\n");
    if (peg_tool_new(&def, &tool, &error) || peg_registry_new(&tool, 1, &registry, &error) ||
        serve(registry, &options, argc > 2 ? argv[2] : NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return 0;
}
