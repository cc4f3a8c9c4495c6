/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/chat/chat.h"
#include "tools/tools.h"

/* A file whose MCP server cannot be started offers its commands alone. */
static void start_mcp_servers(struct chat_tools *tools)
{
    peg_error error;

    for (size_t i = 0; i < tools->n_files; i++) {
        peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT,
                                          .on_event = mcp_servers_print_event,
                                          .user = peg__unconst(tools->files[i].path)};

        if (mcp_servers_import(tools->local, tools->files[i].manifest, &options, &tools->http,
                               &tools->servers[i], &error))
            remote_complain_local(tools->files[i].path, &error);
    }
}

static int open_files(const struct chat_options *o, struct chat_tools *tools)
{
    peg_error error;
    size_t at;
    int answer;

    tools->n_files = o->remote.n_operands;
    answer = manifests_read(o->remote.operands, tools->n_files, tools->files);
    if (answer != CLI_OK)
        return answer;
    if (manifests_join(tools->files, tools->n_files, &tools->local, &at, &error))
        return tools->n_files ? manifests_complain(tools->files[at].path, &error)
                              : remote_complain_local(NULL, &error);
    for (size_t i = 0; i < tools->n_files; i++)
        manifests_inspect(tools->files[i].path, tools->files[i].manifest);
    if (!peg__descendants_adopt())
        fprintf(stderr, "pegboard: what commands leave behind is not found on this system: %m\n");
    start_mcp_servers(tools);
    return CLI_OK;
}

/* A variable of the environment alone does not add a gateway to files. */
static bool wants_gateway(const struct chat_options *o)
{
    return !o->remote.n_operands || o->n_toolsets ||
           strcmp(o->remote.address_from, "--registry") == 0;
}

int chat_tools_open(const struct chat_options *o, struct chat_tools *tools)
{
    int answer = open_files(o, tools);

    if (answer == CLI_OK && wants_gateway(o))
        tools->gateway = mcp_bridge_open(&o->remote, o->toolsets, o->n_toolsets, &answer);
    return answer;
}

void chat_tools_close(struct chat_tools *tools)
{
    mcp_bridge_close(tools->gateway);
    for (size_t i = 0; i < tools->n_files; i++)
        peg_mcp_client_free(tools->servers[i]);
    tools->http = peg__http_unref(tools->http);
    peg_registry_unref(tools->local);
    manifests_free(tools->files, tools->n_files);
}

peg_status chat_tools_join(const struct chat_tools *tools, peg_registry **ret_registry,
                           peg_error *reterr)
{
    peg_registry *sources[2] = {tools->local};
    size_t n = 1;

    if (tools->gateway)
        sources[n++] = mcp_bridge_registry(tools->gateway);
    return peg_registry_merge(sources, n, PEG_COLLISION_KEEP, ret_registry, reterr);
}
