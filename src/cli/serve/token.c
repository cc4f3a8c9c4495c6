/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard token: makes, lists and revokes tokens of a gateway. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "gateway/access/tokens.h"
#include "json/json.h"

/* Enough to tell the tokens of a name apart; `token revoke --hash` takes it. */
enum { SHOWN_HASH = 12 };

struct token_args {
    const char *file;
    const char *hash;
    const char *out;
    const char *name; /* the operand; NULL for none */
    bool as_json;
    bool is_admin;
};

#define TOKEN_OPTION(option, value, member, type, text)                                            \
    {                                                                                              \
        0, 0, option, value, text, .kind = type, .at = offsetof(struct token_args, member)         \
    }
#define TOKEN_FILE_OPTION                                                                          \
    TOKEN_OPTION("token-file", "FILE", file, CLI_STRING, "the file of `serve --token-file`; needed")

/* False: exit with args->exit. */
static bool read_token_args(struct cli_args *args, struct token_args *ret_args)
{
    if (!cli_read(args, ret_args, NULL))
        return false;
    ret_args->name = args->operands[0];
    if (!ret_args->file)
        args->exit = cli_bad_use(args->command, "--token-file is needed: the file of `serve "
                                                "--token-file`");
    return ret_args->file;
}

/* ---- list ---- */

static const struct cli_option list_options[] = {
    TOKEN_FILE_OPTION,
    TOKEN_OPTION("json", NULL, as_json, CLI_FLAG,
                 "print one JSON object with the array \"tokens\""),
    {.name = NULL},
};

static const struct cli_column columns[] = {
    {"NAME", false, false},
    {"OPERATOR", false, false},
    {"HASH", false, false},
};

/* By name; those of one name in the order of the file, where new ones come last. */
static int by_name_and_line(const void *a, const void *b)
{
    const struct gw_token_entry *left = *(const struct gw_token_entry *const *)a;
    const struct gw_token_entry *right = *(const struct gw_token_entry *const *)b;
    const int order = strcmp(left->name, right->name);

    return order ? order : (left->line > right->line) - (left->line < right->line);
}

static void put_tokens_json(struct peg__buf *buf, const struct gw_token_entry *const *entries,
                            size_t n)
{
    struct peg__out out = {.buf = buf};
    char hex[PEG_SHA256_HEX];

    peg__out_object(&out);
    cli_out_array(&out, "tokens");
    for (size_t i = 0; i < n; i++) {
        peg__hex(entries[i]->digest, sizeof(entries[i]->digest), hex);
        peg__out_object(&out);
        peg__out_cmember(&out, "name", entries[i]->name);
        cli_out_bool(&out, "admin", entries[i]->is_admin);
        peg__out_cmember(&out, "sha256", hex);
        cli_out_integer(&out, "line", (int64_t)entries[i]->line);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    cli_out_end_line(&out);
}

static void put_tokens_table(struct peg__buf *buf, const struct gw_token_entry *const *entries,
                             size_t n)
{
    struct cli_table table = {.columns = columns,
                              .n_columns = sizeof(columns) / sizeof(columns[0])};
    char hex[PEG_SHA256_HEX];

    for (size_t i = 0; i < n; i++) {
        peg__hex(entries[i]->digest, sizeof(entries[i]->digest), hex);
        cli_table_cell(&table, peg__str(entries[i]->name), "");
        cli_table_cell(&table, peg__str(entries[i]->is_admin ? "yes" : ""), "");
        cli_table_cell(&table, peg__strn(hex, SHOWN_HASH), "");
    }
    cli_table_print(&table, 0, cli_style_for(CLI_COLOR_NEVER, STDOUT_FILENO), buf);
    cli_table_free(&table);
}

static int show_tokens(const struct gw_token_table *table, bool as_json)
{
    const size_t n = gw_token_table_len(table);
    const struct gw_token_entry **entries =
        (const struct gw_token_entry **)peg__alloc((n + 1) * sizeof(*entries));
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    int answer;

    if (!entries)
        out.status = PEG_ENOMEM;
    for (size_t i = 0; entries && i < n; i++)
        entries[i] = gw_token_table_at(table, i);
    if (entries && n)
        qsort((void *)entries, n, sizeof(*entries), by_name_and_line);
    if (entries && as_json)
        put_tokens_json(&out, entries, n);
    else if (entries && n)
        put_tokens_table(&out, entries, n);
    else if (entries)
        peg__buf_puts(&out, "there are no tokens in the file; `pegboard token new` makes one\n");
    answer = remote_print(&out);
    peg__free((void *)entries);
    return answer;
}

static int run_list(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct token_args token_args = {0};
    struct gw_token_table *table = NULL;
    peg_error error;
    int answer;

    if (!read_token_args(&args, &token_args))
        return args.exit;
    if (gw_token_table_load(token_args.file, &table, &error))
        return remote_complain_local(NULL, &error);
    answer = show_tokens(table, token_args.as_json);
    gw_token_table_free(table);
    return answer;
}

static const struct cli_command cli_token_list = {
    .name = "token list",
    .usage = "--token-file FILE [--json]",
    .summary = "list who has a token",
    .about = "Prints the names in a token file, whether their tokens are operators', and the\n"
             "beginning of each hash. Tokens themselves are not in the file.",
    .options = list_options,
    .notes = "exit status:\n"
             "  0  they were listed, if there are any\n"
             "  2  a wrong option, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token list --token-file tokens",
    .run = run_list,
};

/* ---- revoke ---- */

static const struct cli_option revoke_options[] = {
    TOKEN_FILE_OPTION,
    TOKEN_OPTION("hash", "HEX", hash, CLI_STRING,
                 "only the token whose hash begins like this; `token list`\nshows hashes"),
    {.name = NULL},
};

static peg_str read_hash(const struct token_args *token_args)
{
    const peg_str prefix = peg__str("sha256:");
    const peg_str text = peg__str(token_args->hash ? token_args->hash : "");

    return peg__str_starts(text, prefix) ? peg__str_from(text, prefix.len) : text;
}

static int run_revoke(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct token_args token_args = {0};
    peg_error error;
    size_t n = 0;
    int answer;

    if (!read_token_args(&args, &token_args))
        return args.exit;
    if (token_args.hash && !read_hash(&token_args).len)
        return cli_bad_use(self, "--hash is empty: leave it out to revoke all tokens of '%s'",
                           token_args.name);
    if (gw_token_revoke(token_args.file, peg__str(token_args.name), read_hash(&token_args), &n,
                        &error)) {
        answer = remote_complain_local(NULL, &error);
        return error.status == PEG_ENOTFOUND ? CLI_NO : answer;
    }
    printf("%s: %zu token%s revoked\n", token_args.name, n, n == 1 ? "" : "s");
    fputs("pegboard: a gateway that runs refuses them after SIGHUP\n", stderr);
    return CLI_OK;
}

static const struct cli_command cli_token_revoke = {
    .name = "token revoke",
    .usage = "--token-file FILE [--hash HEX] NAME",
    .summary = "end the tokens of a name",
    .about =
        "Takes the tokens of NAME out of a token file. A gateway that runs refuses them after\n"
        "SIGHUP, and with the last token of a name ends the streams of its providers and\n"
        "watchers. Toolsets that were registered with them stay; `pegboard unregister\n"
        "--operator` takes them out.",
    .options = revoke_options,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "the name whose tokens end is needed",
    .notes = "exit status:\n"
             "  0  they are out of the file\n"
             "  1  there is no such token\n"
             "  2  a wrong option, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token revoke --token-file tokens ci\n"
             "  pegboard token revoke --token-file tokens --hash 9f86d081 ci",
    .run = run_revoke,
};

/* ---- token new ---- */

static const struct cli_option new_options[] = {
    TOKEN_OPTION("token-file", "FILE", file, CLI_STRING,
                 "where its hash goes: the file of `serve --token-file`;\nmade if it is not there; "
                 "needed"),
    TOKEN_OPTION("out", "FILE", out, CLI_STRING,
                 "write the token into a new file that only you can read,\nand not to standard "
                 "output"),
    TOKEN_OPTION("admin", NULL, is_admin, CLI_FLAG,
                 "an operator's: it may ask for the state of the gateway,\nend it, and unregister "
                 "what others registered"),
    {.name = NULL},
};

static int refuse_out(const char *out, int number)
{
    char reason[128];
    peg_error error;

    if (number == EEXIST)
        peg__fail(&error, PEG_EEXISTS, "E_FILE",
                  "'%.160s' is there already, and a token is not written over: take another name",
                  out);
    else
        peg__fail(&error, PEG_EIO, "E_FILE", "'%.160s' cannot be written (%s)", out,
                  strerror_r(number, reason, sizeof(reason)));
    return remote_complain_local(NULL, &error);
}

/* 0, or the error of the system, and there is no new file. */
static int write_token_file(const char *out, const char token[GW_TOKEN_TEXT])
{
    const int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int number = 0;

    if (fd < 0)
        return errno;
    if (!peg__file_write_all(fd, peg__str(token)) || !peg__file_write_all(fd, peg__str("\n")) ||
        fsync(fd))
        number = errno;
    close(fd);
    if (number)
        unlink(out);
    return number;
}

/* The token comes first: the gateway must not accept one that could not be written. */
static int write_new_token(const char *file, struct gw_new_token add, const char *out)
{
    char token[GW_TOKEN_TEXT];
    peg_error error;
    int number;

    if (gw_token_make(token, &error))
        return remote_complain_local(NULL, &error);
    number = write_token_file(out, token);
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
static int print_new_token(const char *file, struct gw_new_token add)
{
    char token[GW_TOKEN_TEXT];
    peg_error error;

    add.token = token;
    if (gw_token_make(token, &error) || gw_token_check(file, &add, &error))
        return remote_complain_local(NULL, &error);
    printf("%s\n", token);
    if (!cli_flush()) {
        fprintf(stderr, "pegboard: the token of '%s' could not be shown, and is not valid\n",
                add.name.ptr);
        return CLI_UNUSABLE; /* main() reports the reason */
    }
    if (gw_token_add(file, &add, &error)) {
        remote_complain_local(NULL, &error);
        fputs("pegboard: the token above is not valid: forget it\n", stderr);
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
    struct token_args o = {0};
    struct gw_new_token add;

    if (!read_token_args(&args, &o))
        return args.exit;
    add = (struct gw_new_token){.name = peg__str(o.name), .is_admin = o.is_admin};
    return o.out ? write_new_token(o.file, add, o.out) : print_new_token(o.file, add);
}

static const struct cli_command cli_token_new = {
    .name = "token new",
    .usage = "--token-file FILE [--out FILE] [--admin] NAME",
    .summary = "make a token",
    .about = "Makes a token, prints it once on standard output or writes it to the file of --out,\n"
             "and adds its hash to a file under NAME. A caller that shows it to a gateway with\n"
             "that file is the principal token:NAME. A name may have several tokens, so that one\n"
             "can be replaced; `pegboard token revoke` ends them.",
    .options = new_options,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "a name for the token is needed",
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

static const struct cli_option no_options[] = {{.name = NULL}};

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
    .needed = "one of its commands is needed: new, list or revoke",
    .run = cli_run_part,
};
