/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard token: tokens for those who use a gateway. */

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote_args.h"
#include "gateway/tokens.h"

/* ---- token new
 * --------------------------------------------------------------------------------------
 */

enum { OPT_TOKEN_FILE = 1 };

static const struct cli_option new_options[] = {
    {OPT_TOKEN_FILE, 0, "token-file", "FILE",
     "where its hash goes: the file of `serve --token-file`;\nmade if it is not there; needed"},
    {0, 0, NULL, NULL, NULL},
};

static int make(const char *file, const char *name)
{
    char token[GW_TOKEN_TEXT];
    peg_error error;

    if (gw_token_new(file, peg__str(name), token, &error))
        return remote_complain_local(NULL, &error);
    printf("%s\n", token);
    fprintf(stderr,
            "pegboard: this is the only time that the token of '%s' is shown; a gateway that runs "
            "reads it after SIGHUP\n",
            name);
    return CLI_OK;
}

static int run_new(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    const char *file = NULL;
    const char *name = NULL;
    const char *extra = NULL; /* told at the end: --help may come behind it */
    int id;

    while ((id = cli_next(&args)) != CLI_END) {
        if (id == CLI_STOP)
            return args.exit;
        if (id == OPT_TOKEN_FILE)
            file = args.value;
        else if (name)
            extra = args.value;
        else
            name = args.value;
    }
    if (extra)
        return cli_bad_use(self, "'%s' is one too many", extra);
    if (!name)
        return cli_bad_use(self, "a name for whoever gets the token is needed");
    if (!file)
        return cli_bad_use(self, "--token-file is needed: where the hash goes");
    return make(file, name);
}

static const struct cli_command cli_token_new = {
    .name = "token new",
    .usage = "--token-file FILE NAME",
    .summary = "make a token",
    .about = "Makes a token, prints it once on standard output, and adds its hash to a file under\n"
             "NAME. Whoever shows the token to a gateway with that file is the principal\n"
             "token:NAME. A name may have several tokens, so that one can be replaced; a line\n"
             "that is taken out of the file ends a token.",
    .options = new_options,
    .notes = "exit status:\n"
             "  0  the token was printed\n"
             "  2  a wrong option or name, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token new --token-file tokens ci > ci.token\n"
             "  pegboard list --token ci.token",
    .run = run_new,
};

/* ---- token
 * ----------------------------------------------------------------------------------------- */

static const struct cli_command *const parts[] = {&cli_token_new, NULL};

static const struct cli_option no_options[] = {{0, 0, NULL, NULL, NULL}};

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc < 2 ? argc : 2, .argv = argv};
    const struct cli_command *part;
    const int id = cli_next(&args);

    if (id == CLI_STOP)
        return args.exit;
    if (id == CLI_END)
        return cli_bad_use(self, "one of its commands is needed: new");
    part = cli_find_part(self, args.value);
    if (!part)
        return cli_bad_use(self, "there is no command 'token %s'", args.value);
    return part->run(part, argc - 1, argv + 1);
}

const struct cli_command cli_token = {
    .name = "token",
    .usage = "COMMAND ...",
    .summary = "make tokens for those who use a gateway",
    .about = "A gateway with a file of tokens lets in who shows one of them. The file holds only\n"
             "names and hashes; pegboard-token(1) describes it.",
    .options = no_options,
    .notes = "exit status:\n"
             "  0  it was done\n"
             "  2  a wrong option or name, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token new --token-file tokens ci > ci.token\n\n"
             "`pegboard token COMMAND --help` explains a command.",
    .parts = parts,
    .run = run,
};
