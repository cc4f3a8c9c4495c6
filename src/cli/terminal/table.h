/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_TABLE_H
#define PEG_CLI_TERMINAL_TABLE_H

/*
 * Rows of cells in columns as wide as they need to be. On a terminal that is narrower, columns that
 * may be cut are, the widest first, and end in "..."; what is no terminal gets all of it.
 *
 *   struct cli_table table = {.columns = columns, .n_columns = 2};
 *   cli_table_cell(&table, peg__str("weather"), "");
 *   cli_table_cell(&table, peg__str("healthy"), style->good);
 *   cli_table_print(&table, width, style, &out);
 *   cli_table_free(&table);
 */

#include "cli/terminal/term.h"

struct cli_column {
    const char *title;
    bool is_right; /* numbers */
    bool is_cut;   /* where there is no room */
};

enum { CLI_TABLE_MAX_COLUMNS = 12 };

/* Owned: cells are copied. The first failure sticks, and printing tells it. */
struct cli_table {
    const struct cli_column *columns; /* static */
    size_t n_columns;
    /* The rest is the table's own. */
    struct cli_cell *cells;
    size_t n_cells;
    size_t capacity;
    peg_status status;
};

/* The next cell, row by row. `on` is an escape sequence of a style, or "". */
void cli_table_cell(struct cli_table *table, peg_str text, const char *on);
void cli_table_number(struct cli_table *table, uint64_t number);
/* A line of titles and one for each row, into *out, whose status tells what failed. width 0: any.
 */
void cli_table_print(const struct cli_table *table, unsigned width, const struct cli_style *style,
                     struct peg__buf *out);
void cli_table_free(struct cli_table *table);

#endif
