/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_TOOL_PRINT_H
#define PEG_CLI_REMOTE_TOOL_PRINT_H

/* A tool of a toolset, as people and programs see it. */

#include "cli/terminal/term.h"
#include "pegboard/client.h"
#include "json/json.h"

/* The members "name", "description", "tags", "input_schema", "output_schema" (null if there is
 * none), "idempotent", "timeout_ms", in an object that is open. */
void tool_out(struct peg__out *out, const peg_toolset_tool *tool);

struct tool_print {
    struct peg__buf *out;
    const struct cli_style *style;
    unsigned width; /* 0: any */
};

/* Its name and description, and a line for each argument. */
void tool_print(const struct tool_print *print, const peg_toolset_tool *tool);
/* That, and its schemas. */
void tool_print_whole(const struct tool_print *print, const peg_toolset_tool *tool);

#endif
