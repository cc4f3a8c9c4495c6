/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_MCP_TOOLS_H
#define BENCH_MCP_TOOLS_H

/* A registry with the one tool that every server of this bench has: `echo` answers with its own
 * arguments. */

#include <stdio.h>
#include <stdlib.h>

#include "pegboard/call.h"
#include "pegboard/registry.h"

static inline void bench_must(peg_status status, const peg_error *error, const char *program)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s: %s\n", program, error->code, error->message);
    exit(1);
}

static inline void bench_echo(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

/* The caller's, to be unreferenced. */
static inline peg_registry *bench_tools(const char *program)
{
    static const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = "echo",
        .description = "answers with its own arguments",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
                        "\"required\":[\"text\"],\"additionalProperties\":false}",
        .run = bench_echo,
    };
    peg_registry *registry = NULL;
    peg_tool *tool = NULL;
    peg_error error;

    bench_must(peg_registry_new(NULL, 0, &registry, &error), &error, program);
    bench_must(peg_tool_new(&def, &tool, &error), &error, program);
    bench_must(peg_registry_register(registry, tool, false, &error), &error, program);
    peg_tool_unref(tool);
    return registry;
}

#endif
