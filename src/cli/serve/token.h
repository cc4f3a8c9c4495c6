/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_SERVE_TOKEN_H
#define PEG_CLI_SERVE_TOKEN_H

/* The commands of pegboard token that are about a file that is there: token_list.c. */

#include "cli/cli.h"

extern const struct cli_command cli_token_list;
extern const struct cli_command cli_token_revoke;

#endif
