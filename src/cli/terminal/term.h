/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_TERM_H
#define PEG_CLI_TERMINAL_TERM_H

/* What people see: colour, text from outside made harmless, progress. */

#include "base/buf.h"

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
    uint64_t size;      /* of the file, 0 if nobody knows */
};

void cli_progress_start(struct cli_progress *progress);
/* Cheap enough for every instance: looks at the clock now and then. */
void cli_progress_tick(struct cli_progress *progress, const struct cli_progress_state *state);
void cli_progress_clear(struct cli_progress *progress);

#endif
