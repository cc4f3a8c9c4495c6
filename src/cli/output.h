/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_OUTPUT_H
#define PEG_CLI_OUTPUT_H

/* Standard output, and the reason why it could not be written: stdio forgets that one. */

#include <stdio.h>

#include "pegboard/common.h"

/* Text to standard output or standard error. Any thread, as all of these. */
void cli_write(FILE *to, peg_str text);
/* What was printed leaves the process. False if some of what was printed so far could not. */
bool cli_flush(void);
/* After false: errno of the first failure that was seen; 0 if nobody saw it. */
int cli_output_errno(void);

#endif
