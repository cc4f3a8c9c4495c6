/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ACCESS_TOKENS_H
#define PEG_GATEWAY_ACCESS_TOKENS_H

#include "base/buf.h"
#include "pegboard/common.h"

/*
 * Bearer tokens, of which a file holds the names and the hashes:
 *
 *   # who                   what SHA-256 makes of the token
 *   ci     sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *   ops    sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b admin
 *
 * One that is marked `admin` is an operator's.
 *
 * A token is `peg_` and 256 random bits in base64url. Such a secret cannot be guessed from its
 * hash, so a plain SHA-256 is enough, and reading the file gives no access; writing to it
 * does. A name may stand there twice, so that a token can be changed while both are in use.
 */

struct gw_tokens;

/* Reads the file. PEG_EIO (E_TOKEN_FILE): it cannot be read, or everybody may write to it;
 * PEG_EPARSE (E_TOKEN_FILE) with its line; PEG_ELIMIT (names PEG_LIMIT_GATEWAY_TOKENS or
 * PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES); PEG_ENOMEM. A file that others may read is taken, and logged
 * (E_TOKEN_FILE). */
peg_status gw_tokens_new(const char *path, struct gw_tokens **ret_tokens, peg_error *reterr);
struct gw_tokens *gw_tokens_free(struct gw_tokens *tokens);
/* Any thread that may block: reads the file again. A failure leaves the old tokens in force. */
peg_status gw_tokens_reload(struct gw_tokens *tokens, peg_error *reterr);
/* Any thread. */
size_t gw_tokens_len(struct gw_tokens *tokens);
/* Any thread: is there a token of that name? */
bool gw_tokens_have_name(struct gw_tokens *tokens, peg_str name);

enum { GW_TOKEN_NAME = 129, GW_TOKEN_TEXT = 48 };

/* Whose a token is. */
struct gw_token_owner {
    char name[GW_TOKEN_NAME];
    bool is_admin;
};

/* Any thread. False: unknown. Takes a lock and a hash: see struct gw_token_memo. */
bool gw_tokens_find(struct gw_tokens *tokens, peg_str token, struct gw_token_owner *ret_owner);

/* What one thread remembers of the tokens it was shown, so that asking again costs neither lock nor
 * hash. All zero is an empty one; nothing in it has to be freed. */
enum { GW_MEMO_SLOTS = 16 };
struct gw_token_memo {
    uint64_t generation;
    struct gw_memo_slot {
        uint64_t token[GW_TOKEN_TEXT / 8]; /* its bytes, zeros behind them */
        size_t len;                        /* 0: none */
        struct gw_token_owner owner;
    } slots[GW_MEMO_SLOTS];
};
/* Borrowed from the memo until the next call; NULL: unknown. */
const struct gw_token_owner *gw_tokens_find_again(struct gw_tokens *tokens,
                                                  struct gw_token_memo *memo, peg_str token);

/* ---- changing the file ---- */

/* A token that is not in the file yet. PEG_EIO (E_NO_RANDOMNESS). */
peg_status gw_token_make(char ret_token[GW_TOKEN_TEXT], peg_error *reterr);
struct gw_new_token {
    peg_str name; /* [A-Za-z0-9_.:@/-]{1,128} */
    const char *token;
    bool is_admin;
};
/* Adds its hash to the file, under its name. The file is made if it is not there (mode 0600); it is
 * there whole or as it was. PEG_EINVAL (E_TOKEN_NAME), PEG_EIO (E_TOKEN_FILE), and as
 * gw_tokens_new(): a file that has an error is not added to. */
peg_status gw_token_add(const char *path, const struct gw_new_token *add, peg_error *reterr);
/* Whether gw_token_add() would find nothing wrong; changes no token. So that a token can be handed
 * out before it is let in, and never for nothing. */
peg_status gw_token_check(const char *path, const struct gw_new_token *add, peg_error *reterr);
/* Makes and adds. Only the caller learns the token. */
peg_status gw_token_new(const char *path, peg_str name, char ret_token[GW_TOKEN_TEXT],
                        peg_error *reterr);
/* Takes the tokens of a name out of the file; with a hash only those whose hash in hex begins with
 * it. What else stands there stays. PEG_ENOTFOUND (E_TOKEN_NAME): there is none; PEG_EIO
 * (E_TOKEN_FILE), and as gw_tokens_new(). */
peg_status gw_token_revoke(const char *path, peg_str name, peg_str hash, size_t *ret_n_revoked,
                           peg_error *reterr);

/* ---- what such a file holds ---- */

struct gw_token_entry {
    uint64_t start; /* of the digest */
    unsigned char digest[32];
    const char *name; /* borrowed from the table */
    unsigned line;
    bool is_admin;
};

/* Reads it as gw_tokens_new() does. */
struct gw_token_table;
peg_status gw_token_table_load(const char *path, struct gw_token_table **ret_table,
                               peg_error *reterr);
peg_status gw_token_table_parse(peg_str text, const char *file, struct gw_token_table **ret_table,
                                peg_error *reterr);
struct gw_token_table *gw_token_table_free(struct gw_token_table *table);
size_t gw_token_table_len(const struct gw_token_table *table);
bool gw_token_table_has_name(const struct gw_token_table *table, peg_str name);
/* The entry of the token with that SHA-256, borrowed; NULL: none. */
const struct gw_token_entry *gw_token_table_find(const struct gw_token_table *table,
                                                 const unsigned char digest[32]);
/* By their digests, borrowed. */
const struct gw_token_entry *gw_token_table_at(const struct gw_token_table *table, size_t i);

/* What tokens.c, token_table.c and token_edit.c share. */

/* PEG_EIO (E_TOKEN_FILE): "cannot be <what>", and why, by errno; or that the path is a token, which
 * is not repeated. */
peg_status gw_token_file_fail(const char *path, const char *what, peg_error *reterr);
/* Checks who may write to it, and adds all of it to the text. */
peg_status gw_token_file_read(int fd, const char *path, struct peg__buf *ret_text,
                              peg_error *reterr);
bool gw_token_name_is_good(peg_str name);
/* Is a line of a file that has no error a token of that name, whose hash begins like that? */
bool gw_token_line_is(peg_str line, peg_str name, peg_str hash);

#endif
