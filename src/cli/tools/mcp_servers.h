/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TOOLS_MCP_SERVERS_H
#define PEG_CLI_TOOLS_MCP_SERVERS_H

/* MCP servers whose tools are offered. */

#include "base/limits.h"
#include "cli/tools/manifests.h"
#include "engine/transport/transport.h"
#include "pegboard/mcp.h"

enum { MCP_SERVERS_NAME_BYTES = PEG_LIMIT_NAME_BYTES + 1 };

/* A manifest for the server at a URL, or for the one that a command line starts, with the variables
 * of ours. toolset may be NULL. CLI_OK, or what to exit with. */
int mcp_servers_make_manifest(const char *toolset, char *const *words,
                              struct manifest_file *ret_file);
/* What a server calls itself, with `_` for what is none of a toolset's characters. */
const char *mcp_servers_name_toolset(peg_mcp_client *server, char name[MCP_SERVERS_NAME_BYTES]);
const char *mcp_servers_event_name(peg_mcp_event_kind kind);
/* A peg_mcp_event_fn: what goes wrong, and what the server writes to its standard error, on ours.
 * user: the name of the manifest. */
void mcp_servers_print_event(const peg_mcp_event *event, void *user);
/* http.c. Freed as struct peg_http says: peg__http_unref(). */
peg_status mcp_servers_http_new(peg_http **ret_http, peg_error *reterr);
/* Imports the server of a manifest, if it names one. `http` is made when the first one needs it. */
peg_status mcp_servers_import(peg_registry *registry, const peg_manifest *manifest,
                              peg_mcp_import_options *options, peg_http **http,
                              peg_mcp_client **ret_server, peg_error *reterr);

#endif
