/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TURN_TURN_H
#define PEG_CLI_TURN_TURN_H

/*
 * What the files of `pegboard turn` share:
 *
 *   turn.c      finds the command; reads files; options and complaints of all three
 *   show.c      show: options, and JSON lines for programs
 *   print.c     show: a transcript for people
 *   text.c      text in lines that fit a terminal
 *   convert.c   convert
 *   validate.c  validate: options, verdicts
 *   check.c     validate: what is wrong with a turn, and what re-writing would change
 */

#include <stddef.h>

#include "base/limits.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/terminal/terminal.h"
#include "pegboard/turn_file.h"

extern const struct cli_command cli_turn_show;
extern const struct cli_command cli_turn_convert;
extern const struct cli_command cli_turn_validate;

/* ---- options of all three --------------------------------------------------------------- */

/* What was asked for. Strings are borrowed from argv. */
struct turn_common {
    size_t max_bytes;      /* 0: the default */
    const char *bytes_dir; /* NULL: nowhere */
    enum cli_color color;
};

/* In a table of options. The struct that cli_read() fills begins with a struct turn_common. */
#define TURN_OPTIONS                                                                               \
    {.name = "bytes",                                                                              \
     .value = "DIR",                                                                               \
     .help = "where bytes are that a file only refers to: the\nNAME.bytes of a store in files",    \
     .kind = CLI_STRING,                                                                           \
     .at = offsetof(struct turn_common, bytes_dir)},                                               \
        {.name = "max-bytes",                                                                      \
         .value = "N",                                                                             \
         .help = "largest file; 64M by default, K, M and G are understood",                        \
         .kind = CLI_SIZE,                                                                         \
         .at = offsetof(struct turn_common, max_bytes),                                            \
         .least = 1,                                                                               \
         .most = PEG_LIMIT_JSON_BYTES_MAX,                                                         \
         .wanted = "a size from 1 to 2147483647, such as 64M"},                                    \
        CLI_OPTION_COLOR(struct turn_common, color)

/* ---- files ------------------------------------------------------------------------------ */

/* Owned; starts as TURN_FILE and ends with turn_file_free(), also if it could not be loaded. */
struct turn_file {
    const char *path;
    struct peg__buf text;
    peg_format format;      /* of the text: JSON or YAML */
    peg_spool_store *bytes; /* NULL: nowhere */
    peg_turn *turn;
    struct peg__map begun; /* ids of the calls of pegboard.calls_started@v1 */
};

#define TURN_FILE                                                                                  \
    {                                                                                              \
        .begun = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)                                                   \
    }

/* By its name, or by its first character where that tells nothing. What was read is in `text`
 * also where it is no turn. */
peg_status turn_load(const struct turn_common *common, const char *path, struct turn_file *file,
                     peg_error *reterr);
void turn_file_free(struct turn_file *file);

/* .json, .yaml, .yml; PEG_FORMAT_AUTO for any other name. */
peg_format turn_format_of(const char *path);

/* Writes a file that is there whole or not at all; what it replaces, it gives its mode to. PEG_EIO
 * (E_FILE). */
peg_status turn_replace_file(const char *path, peg_str text, peg_error *reterr);

/* "file:3:7: unusable: at /blocks/0: what is wrong (E_CODE)" on standard error. */
void turn_complain(const struct turn_common *common, const char *path, const peg_error *error);

/* Sends a buffer to standard output and empties it; PEG_ENOMEM, PEG_ELIMIT if it lost something. */
peg_status turn_flush(struct peg__buf *out, peg_error *reterr);

/* Was a call running when the turn was written, so that its outcome is unknown? */
bool turn_has_begun(const struct turn_file *file, peg_str block_id);

/* ---- show ------------------------------------------------------------------------------- */

struct turn_show_options {
    struct turn_common common;
    unsigned kinds; /* of blocks; PEG_BLOCKS_ALL */
    size_t last;    /* so many blocks; 0: all */
    bool is_full;   /* cut nothing */
    bool as_json;
};

/* The first block to show. */
size_t turn_show_from(const struct turn_show_options *options, const peg_turn *turn);
peg_status turn_print(const struct turn_show_options *options, const struct turn_file *file,
                      peg_error *reterr);
peg_status turn_print_objects(const struct turn_show_options *options, const struct turn_file *file,
                              peg_error *reterr);

/* ---- validate --------------------------------------------------------------------------- */

enum { TURN_FINDINGS = 32 }; /* more are only counted */

struct turn_finding {
    bool is_error; /* else a warning */
    peg_error error;
};

/* What re-writing the file in its own format would change. */
enum turn_rewrite {
    TURN_REWRITE_NOTHING,
    TURN_REWRITE_LAYOUT,  /* the same values, written otherwise */
    TURN_REWRITE_CONTENT, /* members come, go or get another form, such as ids of blocks */
};

struct turn_findings {
    bool is_strict; /* warnings are errors */
    size_t n_errors;
    size_t n_warnings;
    size_t n; /* of the array */
    struct turn_finding items[TURN_FINDINGS];
    enum turn_rewrite rewrite;
    char rewritten[64]; /* CONTENT: the first member that differs */
};

/* Adds one; *error has no place in the text yet. */
void turn_found(struct turn_findings *findings, bool is_error, const peg_error *error);
/* Everything beyond the format. PEG_ENOMEM, PEG_ELIMIT: there is no verdict. */
peg_status turn_check(const struct turn_file *file, struct turn_findings *findings,
                      peg_error *reterr);

#endif
