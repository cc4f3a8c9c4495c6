/* SPDX-License-Identifier: Apache-2.0 */

/* The least that an MCP server on pipes can do, for those who bring such servers to HTTP: so they
 * are what is measured. */

#include "../help.h"
#include "pegboard/mcp.h"
#include "tools.h"

int main(int argc, char **argv)
{
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "bench", .version = "1"};
    peg_registry *registry;
    peg_error error;

    bench_help(argc, argv,
               "usage: mcp-stdio-server\n\nServes the tool `echo` on standard input and output.\n");
    registry = bench_tools("mcp-stdio-server");
    bench_must(peg_mcp_serve_stdio(registry, &options, &error), &error, "mcp-stdio-server");
    peg_registry_unref(registry);
    return 0;
}
