/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_JSON_COLOR_H
#define PEG_CLI_TERMINAL_JSON_COLOR_H

#include "cli/terminal/term.h"

/* Appends JSON text in colour: names of members bold, strings green. Text from outside is made
 * harmless (cli_put_safe). The text must be valid JSON; its layout stays. */
void cli_put_json(struct peg__buf *out, const struct cli_style *style, peg_str json);

#endif
