/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_SOURCE_SOURCE_H
#define PEG_MCP_SOURCE_SOURCE_H

/*
 * A source over a registry of the host. Handlers run on threads of its own and may block; what they
 * report waits in a mailbox until the loop takes it with mcp_host_pump().
 */

#include "mcp/protocol/protocol.h"
#include "pegboard/mcp.h"
#include "pegboard/registry.h"
#include "pegboard/run.h"

struct mcp_host;

struct mcp_host_config {
    peg_registry *registry; /* referenced */
    peg_ctx *ctx;           /* what handlers find in theirs; may be NULL */
    const peg_run_options *run;
    unsigned concurrency;
    /* There is something to pump. Any thread; must not block. */
    void (*wake)(void *user);
    void *user;
};

/* PEG_ENOMEM. */
peg_status mcp_host_new(const struct mcp_host_config *config, struct mcp_host **ret_host,
                        peg_error *reterr);
/* Waits for handlers to return. No call may be left. */
struct mcp_host *mcp_host_free(struct mcp_host *host);
struct mcp_source *mcp_host_source(struct mcp_host *host);
/* Whom changes of the registry are reported to. */
void mcp_host_set_server(struct mcp_host *host, struct mcp_server *server);
/* Resources and prompts of the host, see pegboard/mcp.h. Any thread. */
peg_status mcp_host_add_resource(struct mcp_host *host, const peg_mcp_resource_def *def,
                                 peg_error *reterr);
peg_status mcp_host_add_prompt(struct mcp_host *host, const peg_mcp_prompt_def *def,
                               peg_error *reterr);
/* MCP_RESOURCES removes templates too. */
void mcp_host_remove(struct mcp_host *host, enum mcp_list_kind kind, peg_str key);
peg_status mcp_host_updated(struct mcp_host *host, peg_str uri);
/* Did the call come by such a source, so that peg_mcp_progress() reaches somebody? */
bool mcp_is_served(const peg_call *call);
/* The loop: takes what handlers have reported. */
void mcp_host_pump(struct mcp_host *host);

#endif
