/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_INPUT_H
#define PEG_CLI_INPUT_H

/* Files and standard input ("-"), whole or line by line, never more than a maximum. */

#include "base/buf.h"

enum cli_syntax {
    CLI_SYNTAX_BY_NAME, /* by the file's extension */
    CLI_SYNTAX_JSON,
    CLI_SYNTAX_YAML,
    CLI_SYNTAX_JSON_LINES,
};

/* .yaml and .yml, .jsonl and .ndjson; anything else, "-" too, is JSON. */
enum cli_syntax cli_syntax_of(const char *path);

/* Is it "-"? */
bool cli_is_stdin(const char *path);
/* "<stdin>" for "-": what a message calls the file. */
const char *cli_file_label(const char *path);

/*
 * Reads a whole file into *text, whose max is the most it may have. The buffer's memory is used
 * again. Errors: E_FILE_OPEN, E_FILE_READ, E_FILE_TOO_LARGE, E_OUT_OF_MEMORY.
 */
peg_status cli_read_file(const char *path, struct peg__buf *text, peg_error *reterr);
/* The same for a command that has --max-bytes: its users are told to raise it. */
peg_status cli_read_file_max(const char *path, struct peg__buf *text, peg_error *reterr);

/*
 * Adds to an E_JSON_SYNTAX what may have gone wrong with the text as a whole: it starts with a byte
 * order mark, or it may be YAML and looks so. Leaves other errors alone.
 */
void cli_hint(peg_str text, bool may_be_yaml, peg_error *error);

/* ---- lines ------------------------------------------------------------------ */

/* Owned; open and close. Holds no more than the longest line and a read-ahead. */
struct cli_lines {
    int fd;
    uint64_t size;   /* of the file, 0 if nobody knows */
    uint64_t offset; /* bytes handed out so far */
    uint64_t line;   /* number of the line handed out last, from 1 */
    size_t max_line;
    char *buf; /* owned */
    size_t capacity;
    size_t start; /* buf[start, end) is read and not handed out */
    size_t end;
    bool at_eof;
    bool skipping; /* inside a line that was too long */
};

enum cli_line {
    CLI_LINE,          /* *ret_line is set; borrowed until the next call */
    CLI_LINE_TOO_LONG, /* skipped; reterr says so; go on */
    CLI_LINE_END,
    CLI_LINE_FAILED, /* reterr says why; don't go on */
};

peg_status cli_lines_open(const char *path, size_t max_line, struct cli_lines *ret_lines,
                          peg_error *reterr);
enum cli_line cli_lines_next(struct cli_lines *lines, peg_str *ret_line, peg_error *reterr);
void cli_lines_close(struct cli_lines *lines);

#endif
