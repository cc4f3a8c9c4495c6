/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/access/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/text/token.h"
#include "gateway/access/token_file.h"

/* Any thread. */
struct gw_tokens {
    pthread_rwlock_t lock;
    struct gw_token_table *table;    /* lock */
    atomic_uint_fast64_t generation; /* grows with each table; 0 is none */
    char path[];
};

/* ---- the file ------------------------------------------------------------------------------- */

static const char *advice_for(int why)
{
    if (why == ENOENT)
        return ": `pegboard token new --token-file FILE NAME` makes one";
    return why == EACCES || why == EPERM ? ": give it to the user that runs this" : "";
}

peg_status gw_token_file_fail(const char *path, const char *what, peg_error *reterr)
{
    const int why = errno;
    char reason[128];

    if (peg__is_token_for_path(path))
        return peg__fail(reterr, PEG_EIO, "E_TOKEN_FILE",
                         "a token file has names and hashes, and there is none of the name given, "
                         "which looks like a token itself: see pegboard-token(1)");
    return peg__fail(reterr, PEG_EIO, "E_TOKEN_FILE", "the token file '%.120s' cannot be %s: %s%s",
                     path, what, strerror_r(why, reason, sizeof(reason)), advice_for(why));
}

static peg_status check_mode(int fd, const char *path, peg_error *reterr)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return gw_token_file_fail(path, "looked at", reterr);
    if (!S_ISREG(st.st_mode))
        return peg__fail(reterr, PEG_EIO, "E_TOKEN_FILE", "'%.200s' is no file: name a token file",
                         path);
    if (st.st_mode & S_IWOTH)
        return peg__fail(reterr, PEG_EIO, "E_TOKEN_FILE",
                         "everybody on this machine may write to '%.120s' and so let themselves "
                         "in: run chmod 600 on it",
                         path);
    if (st.st_mode & (S_IROTH | S_IWGRP))
        peg__log(
            PEG_LOG_WARN, "E_TOKEN_FILE_MODE",
            "others may read or write the token file '%.120s' (mode %03o): run chmod 600 on it",
            path, (unsigned)(st.st_mode & 0777));
    return PEG_OK;
}

peg_status gw_token_file_read(int fd, const char *path, struct peg__buf *ret_text,
                              peg_error *reterr)
{
    enum { PIECE = 64 << 10 };
    peg_status status = check_mode(fd, path, reterr);

    while (!status) {
        char *room = peg__buf_reserve(ret_text, PIECE);
        ssize_t n;

        if (!room)
            break;
        n = read(fd, room, PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gw_token_file_fail(path, "read", reterr);
        if (n == 0)
            return PEG_OK;
        ret_text->len += (size_t)n;
    }
    if (status)
        return status;
    if (ret_text->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_TOKEN_FILE",
                     "%.100s is larger than PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES (%d): is it the "
                     "right file?",
                     path, PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES);
}

peg_status gw_token_table_load(const char *path, struct gw_token_table **ret_table,
                               peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES + (64 << 10));
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    peg_status status;

    if (fd < 0)
        return gw_token_file_fail(path, "opened", reterr);
    status = gw_token_file_read(fd, path, &text, reterr);
    if (!status)
        status = gw_token_table_parse(peg__buf_view(&text), path, ret_table, reterr);
    peg__buf_free(&text);
    close(fd);
    return status;
}

/* ---- its life ------------------------------------------------------------------------------- */

peg_status gw_tokens_new(const char *path, struct gw_tokens **ret_tokens, peg_error *reterr)
{
    const size_t len = strlen(path);
    struct gw_tokens *tokens = peg__alloc_zero(1, sizeof(*tokens) + len + 1);
    peg_status status;

    if (!tokens)
        return peg__fail_nomem(reterr);
    memcpy(tokens->path, path, len + 1);
    status = gw_token_table_load(path, &tokens->table, reterr);
    if (status) {
        peg__free(tokens);
        return status;
    }
    pthread_rwlock_init(&tokens->lock, NULL);
    atomic_init(&tokens->generation, 1);
    *ret_tokens = tokens;
    return PEG_OK;
}

struct gw_tokens *gw_tokens_free(struct gw_tokens *tokens)
{
    if (!tokens)
        return NULL;
    gw_token_table_free(tokens->table);
    pthread_rwlock_destroy(&tokens->lock);
    peg__free(tokens);
    return NULL;
}

peg_status gw_tokens_reload(struct gw_tokens *tokens, peg_error *reterr)
{
    struct gw_token_table *table = NULL;
    struct gw_token_table *old;
    const peg_status status = gw_token_table_load(tokens->path, &table, reterr);

    if (status)
        return status;
    pthread_rwlock_wrlock(&tokens->lock);
    old = tokens->table;
    tokens->table = table;
    /* Whoever sees the new number forgets what it remembers, then asks under the lock. */
    atomic_fetch_add_explicit(&tokens->generation, 1, memory_order_release);
    pthread_rwlock_unlock(&tokens->lock);
    gw_token_table_free(old);
    return PEG_OK;
}

size_t gw_tokens_len(struct gw_tokens *tokens)
{
    size_t n;

    pthread_rwlock_rdlock(&tokens->lock);
    n = gw_token_table_len(tokens->table);
    pthread_rwlock_unlock(&tokens->lock);
    return n;
}

bool gw_tokens_have_name(struct gw_tokens *tokens, peg_str name)
{
    bool is_there;

    pthread_rwlock_rdlock(&tokens->lock);
    is_there = gw_token_table_has_name(tokens->table, name);
    pthread_rwlock_unlock(&tokens->lock);
    return is_there;
}

/* ---- finding -------------------------------------------------------------------------------- */

bool gw_tokens_find(struct gw_tokens *tokens, peg_str token, struct gw_token_owner *ret_holder)
{
    unsigned char digest[PEG_SHA256_BYTES];
    const struct gw_token_entry *entry;

    /* Ours have one length; others are somebody's passwords, of no use here. */
    if (token.len > PEG_LIMIT_GRPC_HEADER_BYTES || !peg__sha256(token, digest))
        return false;
    pthread_rwlock_rdlock(&tokens->lock);
    entry = gw_token_table_find(tokens->table, digest);
    if (entry) {
        memcpy(ret_holder->name, entry->name, strlen(entry->name) + 1);
        ret_holder->is_admin = entry->is_admin;
    }
    pthread_rwlock_unlock(&tokens->lock);
    return entry != NULL;
}

enum { TOKEN_WORDS = GW_TOKEN_TEXT / 8 };

/* Without an early exit, as wherever a secret is compared. */
static bool holds(const struct gw_memo_slot *slot, const uint64_t token[TOKEN_WORDS], size_t len)
{
    uint64_t difference = slot->len ^ len;

    for (size_t i = 0; i < TOKEN_WORDS; i++)
        difference |= slot->token[i] ^ token[i];
    return difference == 0;
}

/* By the bits behind `peg_`, which are random. Whoever finds tokens that share a slot has them. */
static struct gw_memo_slot *slot_of(struct gw_token_memo *memo, const uint64_t token[TOKEN_WORDS])
{
    const uint64_t mixed = (token[0] ^ token[1]) * UINT64_C(0x9E3779B97F4A7C15);

    return &memo->slots[(mixed >> 32) % GW_MEMO_SLOTS];
}

const struct gw_token_owner *gw_tokens_find_again(struct gw_tokens *tokens,
                                                  struct gw_token_memo *memo, peg_str token)
{
    const uint64_t generation = atomic_load_explicit(&tokens->generation, memory_order_acquire);
    const bool is_short = token.len > 0 && token.len <= GW_TOKEN_TEXT;
    uint64_t words[TOKEN_WORDS] = {0};
    struct gw_memo_slot *slot;
    struct gw_token_owner holder;

    if (memo->generation != generation) {
        memset(memo, 0, sizeof(*memo));
        memo->generation = generation;
    }
    if (is_short)
        memcpy(words, token.ptr, token.len);
    slot = slot_of(memo, words);
    if (is_short && holds(slot, words, token.len))
        return &slot->holder;
    if (!gw_tokens_find(tokens, token, &holder))
        return NULL;
    memcpy(slot->token, words, sizeof(words));
    slot->holder = holder;
    slot->len = is_short ? token.len : 0;
    return &slot->holder;
}
