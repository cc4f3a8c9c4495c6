/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TOKENS_H
#define PEG_GATEWAY_TOKENS_H

/*
 * Bearer tokens, of which a file holds the names and the hashes:
 *
 *   # who                   what SHA-256 makes of the token
 *   ci     sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *
 * A token is `peg_` and 256 random bits in base64url. Such a secret cannot be guessed from its
 * hash, so a plain SHA-256 is enough, and reading the file gives nobody a way in; writing to it
 * does. A name may stand there twice, so that a token can be changed while both are in use.
 */

#include "pegboard/common.h"

struct gw_tokens;

/* Reads the file. PEG_EIO (E_TOKEN_FILE): it cannot be read, or everybody may write to it;
 * PEG_EPARSE (E_TOKEN_FILE) with its line; PEG_ELIMIT (names PEG_LIMIT_GATEWAY_TOKENS or
 * PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES); PEG_ENOMEM. A file that others may read is taken, and logged
 * (E_TOKEN_FILE_MODE). */
peg_status gw_tokens_new(const char *path, struct gw_tokens **ret_tokens, peg_error *reterr);
struct gw_tokens *gw_tokens_free(struct gw_tokens *tokens);
/* Any thread that may block: reads the file again. A failure leaves the old tokens in force. */
peg_status gw_tokens_reload(struct gw_tokens *tokens, peg_error *reterr);
/* Any thread. */
size_t gw_tokens_len(struct gw_tokens *tokens);
/* Any thread: is there a token of that name? */
bool gw_tokens_have_name(struct gw_tokens *tokens, peg_str name);

enum { GW_TOKEN_NAME = 129, GW_TOKEN_TEXT = 48 };

/* Any thread: the name of a token. False: nobody has it. Takes a lock and a hash: see
 * struct gw_token_memo. */
bool gw_tokens_find(struct gw_tokens *tokens, peg_str token, char ret_name[GW_TOKEN_NAME]);

/* What one thread remembers of the tokens it was shown, so that asking again costs neither lock nor
 * hash. All zero is an empty one; nothing in it has to be freed. */
enum { GW_MEMO_SLOTS = 16 };
struct gw_token_memo {
    uint64_t generation;
    struct gw_memo_slot {
        uint64_t token[GW_TOKEN_TEXT / 8]; /* its bytes, zeros behind them */
        size_t len;                        /* 0: none */
        char name[GW_TOKEN_NAME];
    } slots[GW_MEMO_SLOTS];
};
/* The name, borrowed from the memo until the next call; empty: nobody has it. */
peg_str gw_tokens_find_again(struct gw_tokens *tokens, struct gw_token_memo *memo, peg_str token);

/* A token that nobody is let in with yet. PEG_EIO (E_NO_RANDOMNESS). */
peg_status gw_token_make(char ret_token[GW_TOKEN_TEXT], peg_error *reterr);
/* Adds its hash to the file, under that name ([A-Za-z0-9_.:@/-]{1,128}). The file is made if it is
 * not there (mode 0600); it is there whole or as it was. PEG_EINVAL (E_TOKEN_NAME), PEG_EIO
 * (E_TOKEN_FILE), and as gw_tokens_new(): a file that has an error is not added to. */
peg_status gw_token_add(const char *path, peg_str name, const char *token, peg_error *reterr);
/* Whether gw_token_add() would find nothing wrong; changes no token. So that a token can be handed
 * out before it is let in, and never for nothing. */
peg_status gw_token_check(const char *path, peg_str name, const char *token, peg_error *reterr);
/* Makes and adds. The token is told here and nowhere else. */
peg_status gw_token_new(const char *path, peg_str name, char ret_token[GW_TOKEN_TEXT],
                        peg_error *reterr);

/* For tests and fuzzing: what a text of such a file holds. */
struct gw_token_table;
peg_status gw_token_table_parse(peg_str text, const char *file, struct gw_token_table **ret_table,
                                peg_error *reterr);
struct gw_token_table *gw_token_table_free(struct gw_token_table *table);
size_t gw_token_table_len(const struct gw_token_table *table);
bool gw_token_table_has_name(const struct gw_token_table *table, peg_str name);
/* The name of whoever has a token with that SHA-256, borrowed; NULL: nobody. */
const char *gw_token_table_find(const struct gw_token_table *table, const unsigned char digest[32]);

#endif
