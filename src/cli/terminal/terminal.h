/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_TERMINAL_H
#define PEG_CLI_TERMINAL_TERMINAL_H

/* What people see on a terminal: colour, tables, a screen, lines of a log, suggestions. */

#include "base/buf.h"
#include "base/text/str.h"
#include "pegboard/client.h"
#include "pegboard/common.h"

/* What people see: colour, text from outside made harmless, progress. */

enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };

/* Escape sequences, all "" without colour. */
struct cli_style {
    const char *bold;
    const char *dim;
    const char *good;
    const char *bad;
    const char *off;
};

/* "auto", "always" or "never"; false for anything else. */
bool cli_color_read(const char *text, enum cli_color *ret_color);
/* AUTO means: fd is a terminal, NO_COLOR is unset or empty, TERM is not "dumb". */
const struct cli_style *cli_style_for(enum cli_color color, int fd);

/* Columns of a terminal; 0 if fd is none. */
unsigned cli_width(int fd);

/* Appends text from outside, control characters and those that turn the direction of writing
 * around written as \x1B, so that a file name or an instance cannot steer the terminal, fake a
 * line or look like another. */
void cli_put_safe(struct peg__buf *out, peg_str text);
/* The same, but ends of lines and tabs stay. */
void cli_put_safe_lines(struct peg__buf *out, peg_str text);
/* Appends the error's message, behind its place if it has one: "<before>/days: too large". */
void cli_put_error(struct peg__buf *out, const char *before, const peg_error *error);

/* Monotonic; for progress and benchmarks. */
int64_t cli_now_ns(void);

/* ---- progress: one line on a terminal's stderr once a second has passed ------ */

struct cli_progress {
    bool wanted; /* stderr is a terminal */
    bool shown;  /* a line stands there and must be cleared before other output */
    int64_t next_ns;
};

struct cli_progress_state {
    const char *file;
    uint64_t n_done;    /* instances */
    uint64_t n_invalid; /* of them */
    uint64_t bytes;     /* read of the file */
    uint64_t size;      /* of the file, 0 if unknown */
};

void cli_progress_start(struct cli_progress *progress);
/* Cheap enough for every instance: looks at the clock now and then. */
void cli_progress_tick(struct cli_progress *progress, const struct cli_progress_state *state);
void cli_progress_clear(struct cli_progress *progress);

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

/* ---- JSON in colour ---- */

/* Appends JSON text in colour: names of members bold, strings green. Text from outside is made
 * harmless (cli_put_safe). The text must be valid JSON; its layout stays. */
void cli_put_json(struct peg__buf *out, const struct cli_style *style, peg_str json);

/*
 * The whole terminal, for what is drawn again and again: keys come at once and are not shown, and
 * the screen that was there comes back at the end, also by ^\ (SIGQUIT), and while ^Z has stopped
 * us. A process has one.
 */

/* False, and nothing has changed: standard input is no terminal. */
bool cli_screen_open(void);
/* Less of it, or nothing, where the terminal has gone away, or what ends the screen came meanwhile.
 */
void cli_screen_draw(peg_str picture);
/* Gives the terminal back. */
void cli_screen_close(void);

/* Until time is over, a key came, or the screen has to be drawn anew; false if the key is q, there
 * are no more, or SIGINT, SIGTERM or SIGHUP came. */
bool cli_screen_wait(int64_t ms);

/*
 * Lines on standard error, written by a thread of their own, however slowly they are read. Lines
 * beyond its capacity are dropped and counted, and the count is reported as soon as there is room.
 */

/* Owned; any thread. */
struct cli_line_queue;

/* Writes, without a newline, that n lines were dropped. */
typedef void (*cli_line_queue_dropped_fn)(struct peg__buf *line, uint64_t n);

/* NULL: no memory, or no thread. */
struct cli_line_queue *cli_line_queue_new(cli_line_queue_dropped_fn put_dropped);
/* A line without its newline. Does not wait. */
void cli_line_queue_put(struct cli_line_queue *lines, peg_str line);
/* Gives the reader a moment for the rest. False: there is none, and writing more would block; a
 * thread that a terminal blocks keeps the lines until the process ends. */
bool cli_line_queue_free(struct cli_line_queue *lines);

/* "did you mean ...?", for names of commands, options, toolsets and tools. */

/* One search; starts as cli_suggestion_start() leaves it. */
struct cli_suggestion {
    struct peg__typo typo;
    const char *name; /* the best so far, NULL if none; borrowed */
};

void cli_suggestion_start(struct cli_suggestion *suggestion, const char *unknown);
/* One whose beginning was given counts if nothing is closer. */
void cli_suggestion_offer(struct cli_suggestion *suggestion, const char *name);

/* Adds a suggestion to an E_NOT_FOUND of a toolset, and how to list them all. */
void cli_suggestion_toolset(peg_client *client, const char *unknown, peg_error *error);
/* The tool, or NULL with *ret_error (E_NOT_FOUND) and a suggestion. */
const peg_toolset_tool *cli_find_tool(const peg_toolset *toolset, const char *name,
                                      peg_error *ret_error);

/* ---- wrapped text ---- */

/* How to write text. Value; the buffer is borrowed. */
struct cli_text {
    struct peg__buf *out;
    unsigned width;    /* of the terminal; 0: lines are as long as they are */
    const char *first; /* before the first line; NULL: the indentation */
    unsigned indent;   /* before each further line */
    const char *on;    /* escape sequences around the words of each line; "" for none */
    const char *off;
};

/* Lines of the text, indented and wrapped. What could steer a terminal, and bytes that are no
 * UTF-8, are written as \x1B. */
void cli_put_text(const struct cli_text *how, peg_str text);
/* Columns that a text takes, which cli_put_safe() has made harmless. */
unsigned cli_text_width(peg_str text);
/* "12,345". */
void cli_put_count(struct peg__buf *out, uint64_t number);

#endif
