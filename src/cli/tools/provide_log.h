/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TOOLS_PROVIDE_LOG_H
#define PEG_CLI_TOOLS_PROVIDE_LOG_H

/* What happens to provided toolsets, a line each on standard error, without payload. Who reports
 * does not wait for the reader. */

#include "cli/terminal/terminal.h"
#include "pegboard/manifest.h"
#include "pegboard/mcp.h"
#include "pegboard/provider.h"

struct provide_log {
    struct cli_line_queue *lines;
    bool is_quiet; /* calls are not reported */
};

/* False: the system has no memory or no thread for it. */
bool provide_log_open(struct provide_log *log, bool is_quiet);
/* True: all of it was read. */
bool provide_log_close(struct provide_log *log);

void provide_log_provider(const struct provide_log *log, const peg_provider_event *event);
void provide_log_mcp(const struct provide_log *log, const peg_mcp_event *event);
/* A manifest was read again; error: it cannot be used, NULL: it is offered. */
void provide_log_reload(const struct provide_log *log, const char *path,
                        const peg_manifest *offered, const peg_error *error);

#endif
