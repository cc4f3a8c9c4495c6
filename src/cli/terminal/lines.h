/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_LINES_H
#define PEG_CLI_TERMINAL_LINES_H

/*
 * Lines on standard error that nobody waits for: a thread writes them, however slowly they are
 * read. What finds no room is dropped and counted, and that is said once there is room.
 */

#include "base/buf.h"

/* Owned; any thread. */
struct cli_lines;

/* Says, without a newline, that n lines were dropped. */
typedef void (*cli_lines_dropped_fn)(struct peg__buf *line, uint64_t n);

/* NULL: no memory, or no thread. */
struct cli_lines *cli_lines_new(cli_lines_dropped_fn put_dropped);
/* A line without its newline. Does not wait. */
void cli_lines_put(struct cli_lines *lines, peg_str line);
/* Whoever reads has a moment for the rest. False: nobody does, and who writes more would wait; a
 * thread that a terminal holds up keeps the lines until the process ends. */
bool cli_lines_free(struct cli_lines *lines);

#endif
