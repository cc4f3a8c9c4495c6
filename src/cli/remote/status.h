/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_STATUS_H
#define PEG_CLI_REMOTE_STATUS_H

/* The state of a gateway as people and programs see it. */

#include "cli/terminal/term.h"
#include "pegboard/client.h"

struct status_print {
    struct peg__buf *out;
    const struct cli_style *style;
    unsigned width;  /* 0: any */
    unsigned n_rows; /* of toolsets; 0: all */
};

void status_print(const struct status_print *print, const peg_node_status *status);
/* One JSON object and a line end. */
void status_print_json(struct peg__buf *buf, const peg_node_status *status);

#endif
