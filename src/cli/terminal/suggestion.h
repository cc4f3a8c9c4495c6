/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_SUGGESTION_H
#define PEG_CLI_TERMINAL_SUGGESTION_H

/* "did you mean ...?", for names of commands, options, toolsets and tools. */

#include "base/text/typo.h"
#include "pegboard/client.h"

/* One search; starts as cli_suggestion_start() leaves it. */
struct cli_suggestion {
    struct peg__typo typo;
    const char *name; /* the best so far, NULL if none; borrowed */
};

void cli_suggestion_start(struct cli_suggestion *meant, const char *unknown);
/* One whose beginning was given counts if nothing is closer. */
void cli_suggestion_offer(struct cli_suggestion *meant, const char *name);

/* Adds to an E_NOT_FOUND of a toolset which one may have been meant, and how to see them all. */
void cli_suggestion_toolset(peg_client *client, const char *unknown, peg_error *error);
/* The tool, or NULL with *ret_error (E_NOT_FOUND) that says which one may have been meant. */
const peg_toolset_tool *cli_find_tool(const peg_toolset *toolset, const char *name,
                                      peg_error *ret_error);

#endif
