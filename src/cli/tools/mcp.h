/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TOOLS_MCP_H
#define PEG_CLI_TOOLS_MCP_H

/* The parts of `pegboard mcp`. */

#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "pegboard/registry.h"

extern const struct cli_command cli_mcp_config;

/* ---- mcp_bridge.c: the tools of a gateway ---- */

struct mcp_bridge;

/* Reads what the gateway has, and follows it. The strings stay the caller's. NULL after a
 * complaint: exit with *ret_exit. */
struct mcp_bridge *mcp_bridge_open(const struct remote_args *remote, const char *const *toolsets,
                                   size_t n_toolsets, int *ret_exit);
/* Borrowed. One toolset's tools have their own names, others as wire_mcp_name() makes them. */
peg_registry *mcp_bridge_registry(const struct mcp_bridge *bridge);
/* Not while it is served. NULL is fine. */
void mcp_bridge_close(struct mcp_bridge *bridge);

#endif
