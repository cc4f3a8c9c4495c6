/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_STDIO_INTERNAL_H
#define PEG_MCP_STDIO_INTERNAL_H

/*
 *   server.c  the public server: options, new, free, stop
 *   serve.c   its loop: poll, lines in, lines out
 */

#include <stdatomic.h>

#include "mcp/http/http.h"
#include "mcp/source/source.h"
#include "pegboard/mcp.h"

struct peg_mcp_server {
    struct mcp_host *host;
    struct mcp_server *protocol;
    int wake_fd; /* an eventfd: handlers have reported, or it is to stop */
    atomic_uint n_stops;
    atomic_int n_served; /* requests of HTTP; -1: it serves a client on two descriptors */
    struct mcp_web *web;
    int64_t drain_ms;
};

#endif
