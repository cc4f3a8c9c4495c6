/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_HTTP_HTTP_H
#define PEG_MCP_HTTP_HTTP_H

/*
 * Streamable HTTP for a server whose host has read a request and writes the answer: one call of
 * mcp_web_serve() for each request, on a thread of the host's, which waits for the answer.
 *
 * It has no thread of its own. The threads that wait take turns in taking what handlers report: one
 * leads, and wakes the others when there is something for them. Between requests nothing happens,
 * and what handlers report waits.
 */

#include <stdatomic.h>

#include "mcp/source/source.h"
#include "pegboard/mcp.h"

struct mcp_web;

/* It may be woken before it has a host. n_stops is borrowed: with 1 it ends when calls have, with 2
 * at once. PEG_ENOMEM. */
peg_status mcp_web_new(int64_t drain_ms, atomic_uint *n_stops, struct mcp_web **ret_web);
/* Both are borrowed. */
void mcp_web_set_host(struct mcp_web *web, struct mcp_host *host, struct mcp_server *protocol);
/* Cancels calls that wait for an answer which will not come, and waits for their handlers. No
 * request is being served. */
void mcp_web_drain(struct mcp_web *web);
struct mcp_web *mcp_web_free(struct mcp_web *web);
/* Handlers have reported. Any thread. */
void mcp_web_wake(struct mcp_web *web);
/* See peg_mcp_server_http(). */
peg_status mcp_web_serve(struct mcp_web *web, const peg_mcp_http *http, peg_error *reterr);

/* ---- names of hosts: against pages that have a browser send requests (DNS rebinding) ----------
 */

/* May a request have this Host? An address, a name of this machine, or one of `listed`, names
 * between commas; NULL: none. */
bool mcp_takes_host(peg_str host, const char *listed);
/* And this Origin? None, the host itself, a page of this machine, or one of `listed`. */
bool mcp_takes_origin(peg_str origin, peg_str host, const char *listed);

#endif
