/* SPDX-License-Identifier: Apache-2.0 */

/* A host that has an HTTP server of its own, with a thread for each connection, and hands requests
 * to libpegboard-mcp: the server is that of the conformance suite. Prints its URL. */

#include "../../tests/mcp/conformance/fixture.h"
#include "../help.h"
#include "tools.h"

static const char PROGRAM[] = "mcp-direct-server";

int main(int argc, char **argv)
{
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "bench", .version = "1"};
    peg_mcp_server *server = NULL;
    peg_registry *registry;
    peg_error error;

    bench_help(argc, argv, "usage: mcp-direct-server\n\nServes the tool `echo` at /mcp.\n");
    registry = bench_tools(PROGRAM);
    bench_must(peg_mcp_server_new(registry, &options, &server, &error), &error, PROGRAM);
    return fixture_serve_http(server);
}
