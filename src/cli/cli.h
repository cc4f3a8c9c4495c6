/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_CLI_H
#define PEG_CLI_CLI_H

/*
 * The `pegboard` command. A subcommand describes itself in one struct cli_command;
 * main.c has the table of them. Its help, its option parsing and its man page's
 * option list (checked by a test) come from that description.
 *
 * To add a subcommand: one file with a struct cli_command, one line here, one
 * line in the table of main.c.
 */

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pegboard/common.h"
#include "pegboard/json.h"

/* What every subcommand exits with. */
enum {
    CLI_OK = 0,
    CLI_NO = 1,       /* the answer is no: some instance is invalid */
    CLI_UNUSABLE = 2, /* the question could not be asked: bad option, schema, file or limit */
};

/* What becomes of an option's value. */
enum cli_kind {
    CLI_OWN,    /* the command's cli_take_fn gets it */
    CLI_FLAG,   /* bool, set to true */
    CLI_STRING, /* const char *, of at least `least` bytes */
    CLI_COUNT,  /* unsigned, from least to most; K, M and G are understood */
    CLI_SIZE,   /* the same as size_t */
    CLI_TIME,   /* int64_t, in milliseconds, from least to most: "10s", "1m30s", "250ms" */
    CLI_COLOR,  /* enum cli_color */
    CLI_RATIO,  /* double, from 0 to 1; 0 becomes -1, as 0 is a default in options of the library */
};

struct cli_option {
    int id;            /* what cli_next() returns for it; 0 if the kind says it all */
    char letter;       /* 0 if it has only a name */
    const char *name;  /* without dashes; NULL behind the last option */
    const char *value; /* what the help calls its value; NULL if it takes none */
    const char *help;  /* lines end in \n, but the last */
    enum cli_kind kind;
    size_t at; /* offset of the value in the struct that cli_read() fills */
    uint64_t least;
    uint64_t most;      /* 0: no bound, or the type's */
    const char *wanted; /* what a value should be that is out of bounds; NULL: by its kind */
};

#define CLI_OPTION_FLAG(type, member, letter, option, text)                                        \
    {                                                                                              \
        0, letter, option, NULL, text, .kind = CLI_FLAG, .at = offsetof(type, member)              \
    }
#define CLI_OPTION_COLOR(type, member)                                                             \
    {                                                                                              \
        .name = "color", .value = "WHEN", .kind = CLI_COLOR, .at = offsetof(type, member),         \
        .help = "auto (default: on a terminal), always or never"                                   \
    }

struct cli_command {
    const char *name;
    const char *usage;                /* what follows the name */
    const char *summary;              /* half a line, for the overview */
    const char *about;                /* paragraphs between usage and options */
    const struct cli_option *options; /* a row without a name is the last */
    const char *notes;                /* paragraphs after the options: exit status, examples */
    /* Commands of its own, named "turn show", with NULL at the end; NULL if it has none. */
    const struct cli_command *const *parts;
    size_t min_operands;
    size_t max_operands;  /* CLI_MANY: any number */
    const char *needed;   /* the complaint about fewer than min_operands */
    bool needs_no_reader; /* a closed standard output is no failure */
    int (*run)(const struct cli_command *self, int argc, char **argv); /* argv[0] is the name */
};

enum { CLI_MANY = 1 << 30 };

extern const struct cli_command cli_call;
extern const struct cli_command cli_calls;
extern const struct cli_command cli_chat;
extern const struct cli_command cli_cluster;
extern const struct cli_command cli_definitions;
extern const struct cli_command cli_drain;
extern const struct cli_command cli_generate;
extern const struct cli_command cli_get;
extern const struct cli_command cli_list;
extern const struct cli_command cli_mcp;
extern const struct cli_command cli_provide;
extern const struct cli_command cli_search;
extern const struct cli_command cli_serve;
extern const struct cli_command cli_status;
extern const struct cli_command cli_token;
extern const struct cli_command cli_turn;
extern const struct cli_command cli_unregister;
extern const struct cli_command cli_validate;
extern const struct cli_command cli_watch;

/* ---- options ---------------------------------------------------------------- */

struct cli_args {
    const struct cli_command *command;
    int argc;
    char **argv;
    int at;                          /* the next argument; 0 and 1 both mean the first */
    bool only_operands;              /* "--" was seen */
    const char *value;               /* of the option or operand just returned */
    const struct cli_option *option; /* just returned */
    int exit;                        /* after CLI_STOP: exit with this */
    char **operands;                 /* of cli_read(), NULL behind the last; borrowed from argv */
    size_t n_operands;
};

enum {
    CLI_END = 0,
    CLI_OPERAND = -1,
    CLI_STOP = -2,  /* help was printed, or a complaint */
    CLI_BOUND = -3, /* an option without an id: args->option */
};

/* The id of the next option, CLI_BOUND, CLI_OPERAND, CLI_END or CLI_STOP. Answers `--help`. */
int cli_next(struct cli_args *args);

/* Takes the value of an option of kind CLI_OWN. Returns what the value should be, or NULL if it is
 * right. `into` is cli_read()'s. */
typedef const char *cli_take_fn(void *into, int id, const char *value);

/* Stores a value as its option's kind wants it. Returns what it should be, or NULL. */
const char *cli_set(const struct cli_option *option, void *into, cli_take_fn *take,
                    const char *value);
/* Reads all arguments: options into *into, operands into args->operands, which take the place of
 * argv[1] and so on. `take` may be NULL. False: exit with args->exit. */
bool cli_read(struct cli_args *args, void *into, cli_take_fn *take);

/* Complains about the use of the command and points at its help; CLI_UNUSABLE. */
int cli_bad_use(const struct cli_command *command, const char *fmt, ...) PEG_PRINTF(2, 3);
/* Is standard input ("-") at most once among these? */
bool cli_reads_stdin_once(char *const *paths, size_t n);

/* Runs the part that argv[1] names; the `run` of a command that has parts. */
int cli_run_part(const struct cli_command *self, int argc, char **argv);
/* The part that is called so ("show" of "turn"), or NULL. */
const struct cli_command *cli_find_part(const struct cli_command *command, const char *name);

/* A whole number of at least `least`, with K, KiB, M, MiB, G or GiB for powers of 1024 behind it.
 */
bool cli_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number);

void cli_print_help(const struct cli_command *command);

/* Files and standard input ("-"), whole or line by line, never more than a maximum. */

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
 * again. Errors: E_FILE, E_FILE_TOO_LARGE, E_OUT_OF_MEMORY.
 */
peg_status cli_read_file(const char *path, struct peg__buf *text, peg_error *reterr);
/* The same for a command that has --max-bytes: the error names that option. */
peg_status cli_read_file_max(const char *path, struct peg__buf *text, peg_error *reterr);

/*
 * Adds to an E_JSON_SYNTAX what may have gone wrong with the text as a whole: it starts with a byte
 * order mark, or it may be YAML and looks so. Leaves other errors alone.
 */
void cli_hint(peg_str text, bool may_be_yaml, peg_error *error);

/* YAML, or JSON with cli_hint() on an error. */
peg_status cli_parse(peg_str text, bool is_yaml, peg_json_doc **ret_doc, peg_error *reterr);

/* ---- lines ------------------------------------------------------------------ */

/* Owned; open and close. Holds no more than the longest line and a read-ahead. */
struct cli_lines {
    int fd;
    uint64_t size;   /* of the file, 0 if unknown */
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
    CLI_LINE_TOO_LONG, /* skipped, with *reterr; go on */
    CLI_LINE_END,
    CLI_LINE_FAILED, /* with *reterr; don't go on */
};

peg_status cli_lines_open(const char *path, size_t max_line, struct cli_lines *ret_lines,
                          peg_error *reterr);
enum cli_line cli_lines_next(struct cli_lines *lines, peg_str *ret_line, peg_error *reterr);
void cli_lines_close(struct cli_lines *lines);

/* Standard output, and the reason why it could not be written: stdio forgets that one. */

/* Text to standard output or standard error. Any thread, as all of these. */
void cli_write(FILE *to, peg_str text);
/* What was printed leaves the process. False if some of what was printed so far could not. */
bool cli_flush(void);
/* After false: errno of the first failure; 0 if it is unknown. */
int cli_output_errno(void);

/* A line of standard error, which it frees; "out of memory" if the buffer lost something. */
void cli_print_line(struct peg__buf *line);
/* "file:3:7", without numbers if the error has none. */
void cli_put_place(struct peg__buf *out, const char *path, const peg_error *error);

/* ---- members of a JSON object that is open ---- */

struct peg__out;
void cli_out_bool(struct peg__out *out, const char *name, bool truth);
void cli_out_integer(struct peg__out *out, const char *name, int64_t number);
/* JSON text; null if it is empty. */
void cli_out_raw(struct peg__out *out, const char *name, peg_str json);
/* "file": a name may be any bytes, and in JSON it has to be UTF-8. */
void cli_out_file(struct peg__out *out, const char *path);
/* Opens an array. */
void cli_out_array(struct peg__out *out, const char *name);
/* Closes the object, and ends the line. */
void cli_out_end_line(struct peg__out *out);

/* ---- names of files ---- */

/*
 * The file:// URI of a file, by its name alone: absolute, without `.` and `..`, what a URI cannot
 * hold percent-encoded. Symbolic links are not followed, for a $ref to a neighbour follows none
 * either. Standard input ("-") is taken for a file without a name in the current directory.
 *
 * *ret_uri is in the arena and NUL-terminated. Errors: E_FILE, E_OUT_OF_MEMORY.
 */
peg_status cli_file_uri(struct peg__arena *arena, const char *path, peg_str *ret_uri,
                        peg_error *reterr);

#endif
