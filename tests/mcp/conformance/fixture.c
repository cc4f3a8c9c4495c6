/* SPDX-License-Identifier: Apache-2.0 */

/* fixture: an MCP server over HTTP, whose URL it prints. fixture ADDRESS: the toolset `fixture` of
 * the gateway there. */

#include <stdio.h>

#include "fixture.h"
#include "pegboard/cleanup.h"
#include "pegboard/provider.h"

enum { TASK_MS = 500, CONCURRENCY = 16 };

static peg_status add_tools(peg_registry *registry, const struct fixture_tools *tools,
                            peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < tools->n; i++) {
        PEG_CLEANUP(peg_tool_unrefp) peg_tool *tool = NULL;

        status = peg_tool_new(&tools->defs[i], &tool, reterr);
        if (!status)
            status = peg_registry_register(registry, tool, false, reterr);
    }
    return status;
}

static peg_status serve(peg_registry *registry, peg_error *reterr)
{
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "fixture", .version = "1.0",
                                     .concurrency = CONCURRENCY, .task_ms = TASK_MS};
    peg_mcp_server *server = NULL;
    peg_status status = peg_mcp_server_new(registry, &options, &server, reterr);

    if (!status)
        status = fixture_add_items(server, reterr);
    if (!status)
        fixture_serve_http(server);
    peg_mcp_server_free(server);
    return status;
}

static peg_status provide(peg_registry *registry, const char *address, peg_error *reterr)
{
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "fixture",
                                          .address = address, .concurrency = CONCURRENCY,
                                          .handles_signals = true};

    return peg_provider_serve(registry, &options, reterr);
}

int main(int argc, char **argv)
{
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    peg_error error;
    peg_status status = peg_registry_new(NULL, 0, &registry, &error);

    if (!status)
        status = add_tools(registry, &fixture_content_tools, &error);
    if (!status)
        status = add_tools(registry, &fixture_asking_tools, &error);
    if (!status)
        status = add_tools(registry, &fixture_slow_tools, &error);
    if (!status)
        status = argc > 1 ? provide(registry, argv[1], &error) : serve(registry, &error);
    if (status)
        fprintf(stderr, "%s: %s\n", error.code, error.message);
    return status ? 1 : 0;
}
