/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_CONFORMANCE_FIXTURE_H
#define PEG_TESTS_MCP_CONFORMANCE_FIXTURE_H

/*
 * What the scenarios of the official conformance suite ask of a server, on the public API alone:
 *
 *   fixture.c  the program: over HTTP by itself, or as a provider of a gateway
 *   front.c    a small HTTP server, as a host may have one
 *   items.c    resources and prompts
 *   content.c  tools that answer, report and fail
 *   asking.c   tools that ask the client
 *   slow.c     tools that take their time, and become tasks
 */

#include <stddef.h>

#include "pegboard/mcp.h"
#include "pegboard/pegboard.h"

/* A picture and a sound, the smallest there are. */
extern const peg_str fixture_png;
extern const peg_str fixture_wav;

struct fixture_tools {
    const peg_tool_def *defs;
    size_t n;
};
extern const struct fixture_tools fixture_content_tools;
extern const struct fixture_tools fixture_asking_tools;
extern const struct fixture_tools fixture_slow_tools;

/* Asks one question whose params are JSON text; *ret_answer is borrowed from *ret_doc, the caller's
 * to free. */
peg_status fixture_ask(peg_ctx *ctx, const char *key, const char *method, const char *params,
                       peg_json_doc **ret_doc, const peg_json **ret_answer, peg_error *reterr);

peg_status fixture_add_items(peg_mcp_server *server, peg_error *reterr);
/* A prompt comes, or goes again. */
void fixture_change_prompts(void);

/* Listens on a free port of 127.0.0.1, prints its URL, and serves until the process is ended. */
int fixture_serve_http(peg_mcp_server *server);

#endif
