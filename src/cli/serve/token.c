/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard token: tokens for those who use a gateway. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/remote/args.h"
#include "cli/serve/token.h"
#include "gateway/access/tokens.h"

/* ---- token new ---- */

enum { OPT_TOKEN_FILE = 1, OPT_OUT, OPT_ADMIN };

static const struct cli_option new_options[] = {
    {OPT_TOKEN_FILE, 0, "token-file", "FILE",
     "where its hash goes: the file of `serve --token-file`;\nmade if it is not there; needed"},
    {OPT_OUT, 0, "out", "FILE",
     "write the token into a new file that only you can read,\nand not to standard output"},
    {OPT_ADMIN, 0, "admin", NULL,
     "an operator's: it may ask for the state of the gateway,\nend it, and unregister what others "
     "registered"},
    {0, 0, NULL, NULL, NULL},
};

static int refuse_out(const char *out, int number)
{
    char words[128];
    peg_error error;

    if (number == EEXIST)
        peg__fail(&error, PEG_EEXISTS, "E_TOKEN_OUT",
                  "'%.160s' is there already, and a token is not written over: take another name",
                  out);
    else
        peg__fail(&error, PEG_EIO, "E_TOKEN_OUT", "'%.160s' cannot be written (%s)", out,
                  strerror_r(number, words, sizeof(words)));
    return remote_complain_local(NULL, &error);
}

/* 0, or the error of the system. */
static int write_token(int fd, const char token[GW_TOKEN_TEXT])
{
    char line[GW_TOKEN_TEXT + 1];
    peg_str left = {line, (size_t)snprintf(line, sizeof(line), "%s\n", token)};

    while (left.len) {
        const ssize_t n = write(fd, left.ptr, left.len);

        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            left = peg__str_from(left, (size_t)n);
    }
    return fsync(fd) ? errno : 0;
}

/* 0, or the error of the system, and there is no new file. */
static int write_out(const char *out, const char token[GW_TOKEN_TEXT])
{
    const int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int number;

    if (fd < 0)
        return errno;
    number = write_token(fd, token);
    close(fd);
    if (number)
        unlink(out);
    return number;
}

/* The token comes first: one that nobody has must not be let in. */
static int make_into(const char *file, struct gw_new_token add, const char *out)
{
    char token[GW_TOKEN_TEXT];
    peg_error error;
    int number;

    if (gw_token_make(token, &error))
        return remote_complain_local(NULL, &error);
    number = write_out(out, token);
    if (number)
        return refuse_out(out, number);
    add.token = token;
    if (gw_token_add(file, &add, &error)) {
        unlink(out);
        return remote_complain_local(NULL, &error);
    }
    fprintf(stderr,
            "pegboard: the token of '%s' is in '%s', and only you can read it; a gateway that runs "
            "takes it after SIGHUP\n",
            add.name.ptr, out);
    return CLI_OK;
}

/* The same on standard output. What is printed cannot be taken back, so the file is looked at
 * before. */
static int make(const char *file, struct gw_new_token add)
{
    char token[GW_TOKEN_TEXT];
    peg_error error;

    add.token = token;
    if (gw_token_make(token, &error) || gw_token_check(file, &add, &error))
        return remote_complain_local(NULL, &error);
    printf("%s\n", token);
    if (!cli_flush()) {
        fprintf(stderr, "pegboard: nobody is let in with the token of '%s', which was not shown\n",
                add.name.ptr);
        return CLI_UNUSABLE; /* why is told at the end, as of all output */
    }
    if (gw_token_add(file, &add, &error)) {
        remote_complain_local(NULL, &error);
        fputs("pegboard: nobody is let in with the token above: forget it\n", stderr);
        return CLI_UNUSABLE;
    }
    fprintf(stderr,
            "pegboard: this is the only time that the token of '%s' is shown; a gateway that runs "
            "reads it after SIGHUP\n",
            add.name.ptr);
    return CLI_OK;
}

static int run_new(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    const char *file = NULL;
    const char *out = NULL;
    struct gw_new_token add = {.name = {NULL, 0}};
    const char *extra = NULL; /* told at the end: --help may come behind it */
    int id;

    while ((id = cli_next(&args)) != CLI_END) {
        if (id == CLI_STOP)
            return args.exit;
        if (id == OPT_TOKEN_FILE)
            file = args.value;
        else if (id == OPT_OUT)
            out = args.value;
        else if (id == OPT_ADMIN)
            add.is_admin = true;
        else if (add.name.ptr)
            extra = args.value;
        else
            add.name = peg__str(args.value);
    }
    if (extra)
        return cli_bad_use(self, "'%s' is one too many", extra);
    if (!add.name.ptr)
        return cli_bad_use(self, "a name for whoever gets the token is needed");
    if (!file)
        return cli_bad_use(self, "--token-file is needed: where the hash goes");
    return out ? make_into(file, add, out) : make(file, add);
}

static const struct cli_command cli_token_new = {
    .name = "token new",
    .usage = "--token-file FILE [--out FILE] [--admin] NAME",
    .summary = "make a token",
    .about = "Makes a token, prints it once on standard output or writes it to the file of --out,\n"
             "and adds its hash to a file under NAME. Whoever shows the token to a gateway with\n"
             "that file is the principal token:NAME. A name may have several tokens, so that one\n"
             "can be replaced; `pegboard token revoke` ends them.",
    .options = new_options,
    .notes = "exit status:\n"
             "  0  the token was printed, or is in its file\n"
             "  2  a wrong option or name, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token new --token-file tokens --out ci.token ci\n"
             "  pegboard list --token ci.token",
    .run = run_new,
};

/* ---- token ---- */

static const struct cli_command *const parts[] = {&cli_token_new, &cli_token_list,
                                                  &cli_token_revoke, NULL};

static const struct cli_option no_options[] = {{0, 0, NULL, NULL, NULL}};

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc < 2 ? argc : 2, .argv = argv};
    const struct cli_command *part;
    const int id = cli_next(&args);

    if (id == CLI_STOP)
        return args.exit;
    if (id == CLI_END)
        return cli_bad_use(self, "one of its commands is needed: new, list or revoke");
    part = cli_find_part(self, args.value);
    if (!part)
        return cli_bad_use(self, "there is no command 'token %s'", args.value);
    return part->run(part, argc - 1, argv + 1);
}

const struct cli_command cli_token = {
    .name = "token",
    .usage = "COMMAND ...",
    .summary = "make, list and revoke tokens of a gateway",
    .about = "A gateway with a file of tokens lets in who shows one of them. The file holds only\n"
             "names and hashes; pegboard-token(1) describes it.",
    .options = no_options,
    .notes = "exit status:\n"
             "  0  it was done\n"
             "  1  there is no such token to revoke\n"
             "  2  a wrong option or name, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token new --token-file tokens --out ci.token ci\n"
             "  pegboard token list --token-file tokens\n"
             "  pegboard token revoke --token-file tokens ci\n\n"
             "`pegboard token COMMAND --help` explains a command.",
    .parts = parts,
    .run = run,
};
