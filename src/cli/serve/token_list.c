/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard token list, pegboard token revoke: who is let in, and who is not any more. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/remote/args.h"
#include "cli/serve/token.h"
#include "cli/terminal/table.h"
#include "gateway/access/tokens.h"
#include "json/json.h"

enum { OPT_TOKEN_FILE = 1, OPT_JSON, OPT_HASH };

/* Enough to tell the tokens of a name apart; `token revoke --hash` takes it. */
enum { SHOWN_HASH = 12 };

struct words {
    const char *file;
    const char *hash;
    const char *name;
    bool as_json;
};

/* False: `ret_exit` is set. */
static bool read_words(const struct cli_command *self, int argc, char **argv, size_t n_names,
                       struct words *ret_words, int *ret_exit)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    const char *extra = NULL; /* told at the end: --help may come behind it */
    int id;

    while ((id = cli_next(&args)) != CLI_END) {
        if (id == CLI_STOP) {
            *ret_exit = args.exit;
            return false;
        }
        if (id == OPT_TOKEN_FILE)
            ret_words->file = args.value;
        else if (id == OPT_HASH)
            ret_words->hash = args.value;
        else if (id == OPT_JSON)
            ret_words->as_json = true;
        else if (ret_words->name || n_names == 0)
            extra = args.value;
        else
            ret_words->name = args.value;
    }
    if (extra)
        *ret_exit = cli_bad_use(self, "'%s' is one too many", extra);
    else if (n_names && !ret_words->name)
        *ret_exit = cli_bad_use(self, "the name whose tokens end is needed");
    else if (!ret_words->file)
        *ret_exit = cli_bad_use(self, "--token-file is needed: the file of `serve --token-file`");
    else
        return true;
    return false;
}

/* ---- list ---- */

static const struct cli_option list_options[] = {
    {OPT_TOKEN_FILE, 0, "token-file", "FILE", "the file of `serve --token-file`; needed"},
    {OPT_JSON, 0, "json", NULL, "print one JSON object with the array \"tokens\""},
    {0, 0, NULL, NULL, NULL},
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

static void put_json(struct peg__buf *buf, const struct gw_token_entry *const *entries, size_t n)
{
    struct peg__out out = {.buf = buf};
    char hex[PEG_SHA256_HEX];

    peg__out_object(&out);
    peg__out_key(&out, "tokens");
    peg__out_array(&out);
    for (size_t i = 0; i < n; i++) {
        peg__hex(entries[i]->digest, sizeof(entries[i]->digest), hex);
        peg__out_object(&out);
        peg__out_cmember(&out, "name", entries[i]->name);
        peg__out_key(&out, "admin");
        peg__out_bool(&out, entries[i]->is_admin);
        peg__out_cmember(&out, "sha256", hex);
        peg__out_key(&out, "line");
        peg__out_integer(&out, (int64_t)entries[i]->line);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    peg__out_end_object(&out);
    peg__buf_putc(buf, '\n');
}

static void put_table(struct peg__buf *buf, const struct gw_token_entry *const *entries, size_t n)
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

static int show(const struct gw_token_table *table, bool as_json)
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
        put_json(&out, entries, n);
    else if (entries && n)
        put_table(&out, entries, n);
    else if (entries)
        peg__buf_puts(&out, "there are no tokens in the file; `pegboard token new` makes one\n");
    answer = remote_print(&out);
    peg__free((void *)entries);
    return answer;
}

static int run_list(const struct cli_command *self, int argc, char **argv)
{
    struct words words = {0};
    struct gw_token_table *table = NULL;
    peg_error error;
    int answer;

    if (!read_words(self, argc, argv, 0, &words, &answer))
        return answer;
    if (gw_token_table_load(words.file, &table, &error))
        return remote_complain_local(NULL, &error);
    answer = show(table, words.as_json);
    gw_token_table_free(table);
    return answer;
}

const struct cli_command cli_token_list = {
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
    {OPT_TOKEN_FILE, 0, "token-file", "FILE", "the file of `serve --token-file`; needed"},
    {OPT_HASH, 0, "hash", "HEX",
     "only the token whose hash begins like this; `token list`\nshows hashes"},
    {0, 0, NULL, NULL, NULL},
};

static peg_str hash_of(const struct words *words)
{
    const peg_str prefix = peg__str("sha256:");
    const peg_str text = peg__str(words->hash ? words->hash : "");

    return peg__str_starts(text, prefix) ? peg__str_from(text, prefix.len) : text;
}

static int run_revoke(const struct cli_command *self, int argc, char **argv)
{
    struct words words = {0};
    peg_error error;
    size_t n = 0;
    int answer;

    if (!read_words(self, argc, argv, 1, &words, &answer))
        return answer;
    if (words.hash && !hash_of(&words).len)
        return cli_bad_use(self, "--hash is empty: leave it out to revoke all tokens of '%s'",
                           words.name);
    if (gw_token_revoke(words.file, peg__str(words.name), hash_of(&words), &n, &error)) {
        answer = remote_complain_local(NULL, &error);
        return error.status == PEG_ENOTFOUND ? CLI_NO : answer;
    }
    printf("%s: %zu token%s revoked\n", words.name, n, n == 1 ? "" : "s");
    fputs("pegboard: a gateway that runs refuses them after SIGHUP\n", stderr);
    return CLI_OK;
}

const struct cli_command cli_token_revoke = {
    .name = "token revoke",
    .usage = "--token-file FILE [--hash HEX] NAME",
    .summary = "end the tokens of a name",
    .about =
        "Takes the tokens of NAME out of a token file. A gateway that runs refuses them after\n"
        "SIGHUP, and with the last token of a name ends the streams of its providers and\n"
        "watchers. Toolsets that were registered with them stay; `pegboard unregister\n"
        "--operator` takes them out.",
    .options = revoke_options,
    .notes = "exit status:\n"
             "  0  they are out of the file\n"
             "  1  there is no such token\n"
             "  2  a wrong option, or a file that cannot be used\n\n"
             "examples:\n"
             "  pegboard token revoke --token-file tokens ci\n"
             "  pegboard token revoke --token-file tokens --hash 9f86d081 ci",
    .run = run_revoke,
};
