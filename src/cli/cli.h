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

#include "pegboard/common.h"

/* What every subcommand exits with. */
enum {
    CLI_OK = 0,
    CLI_NO = 1,       /* the answer is no: some instance is invalid */
    CLI_UNUSABLE = 2, /* the question could not be asked: bad option, schema, file or limit */
};

struct cli_option {
    int id;            /* what cli_next() returns for it; above 0 */
    char letter;       /* 0 if it has only a name */
    const char *name;  /* without dashes */
    const char *value; /* what the help calls its value; NULL if it takes none */
    const char *help;  /* lines end in \n, but the last */
};

struct cli_command {
    const char *name;
    const char *usage;                /* what follows the name */
    const char *summary;              /* half a line, for the overview */
    const char *about;                /* paragraphs between usage and options */
    const struct cli_option *options; /* the last has id 0 */
    const char *notes;                /* paragraphs after the options: exit status, examples */
    /* Commands of its own, named "turn show", with NULL at the end; NULL if it has none. */
    const struct cli_command *const *parts;
    bool needs_no_reader; /* it works on, and well, when nobody reads its standard output */
    int (*run)(const struct cli_command *self, int argc, char **argv); /* argv[0] is the name */
};

extern const struct cli_command cli_call;
extern const struct cli_command cli_definitions;
extern const struct cli_command cli_get;
extern const struct cli_command cli_list;
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
    int at;             /* the next argument to look at; 0 and 1 both mean the first */
    bool only_operands; /* "--" was seen */
    const char *value;  /* of the option or operand just returned */
    int exit;           /* after CLI_STOP: exit with this */
};

enum {
    CLI_END = 0,
    CLI_OPERAND = -1,
    CLI_STOP = -2, /* help was printed, or a complaint */
};

/* The id of the next option, CLI_OPERAND, CLI_END or CLI_STOP. `--help` is answered within. */
int cli_next(struct cli_args *args);

/* Refuses the value of the option just returned, saying what would be right; CLI_STOP. */
int cli_bad_value(struct cli_args *args, const char *option, const char *wanted);
/* Complains about the use of the command and points at its help; CLI_UNUSABLE. */
int cli_bad_use(const struct cli_command *command, const char *fmt, ...) PEG_PRINTF(2, 3);

/* The part that is called so ("show" of "turn"), or NULL. */
const struct cli_command *cli_find_part(const struct cli_command *command, const char *name);

/* A whole number of at least `least`, with K, M or G for powers of 1024 behind it. */
bool cli_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number);

void cli_print_help(const struct cli_command *command);

#endif
