/* SPDX-License-Identifier: Apache-2.0 */

/* Any thread. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/text/token.h"
#include "gateway/access/tokens.h"
#include "wire/wire.h"

struct gw_tokens {
    pthread_rwlock_t lock;
    struct gw_token_table *table;    /* lock */
    atomic_uint_fast64_t generation; /* grows with each table; 0 is none */
    char path[];
};

/* ---- the file ---- */

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

static peg_status fail_too_large(const char *path, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_TOKEN_FILE",
                     "%.100s has more than %d bytes: is it the right file?", path,
                     PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES);
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
                         "any user of this machine can write to '%.120s' and so get in: run chmod "
                         "600 on it",
                         path);
    if (st.st_mode & (S_IROTH | S_IWGRP))
        peg__log(
            PEG_LOG_WARN, "E_TOKEN_FILE",
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
    return fail_too_large(path, reterr);
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

/* ---- its life ---- */

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
    /* A thread that sees the new number forgets what it remembers, then asks under the lock. */
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

/* ---- finding ---- */

bool gw_tokens_find(struct gw_tokens *tokens, peg_str token, struct gw_token_owner *ret_owner)
{
    unsigned char digest[PEG_SHA256_BYTES];
    const struct gw_token_entry *entry;

    /* Ours have one length; others are somebody's passwords, of no use here. */
    if (token.len > PEG_LIMIT_GRPC_HEADER_BYTES || !peg__sha256(token, digest))
        return false;
    pthread_rwlock_rdlock(&tokens->lock);
    entry = gw_token_table_find(tokens->table, digest);
    if (entry) {
        memcpy(ret_owner->name, entry->name, strlen(entry->name) + 1);
        ret_owner->is_admin = entry->is_admin;
    }
    pthread_rwlock_unlock(&tokens->lock);
    return entry != NULL;
}

enum { TOKEN_WORDS = GW_TOKEN_TEXT / 8 };

/* Without an early exit, as wherever a secret is compared. */
static bool slot_has_token(const struct gw_memo_slot *slot, const uint64_t token[TOKEN_WORDS],
                           size_t len)
{
    uint64_t difference = slot->len ^ len;

    for (size_t i = 0; i < TOKEN_WORDS; i++)
        difference |= slot->token[i] ^ token[i];
    return difference == 0;
}

/* By the bits behind `peg_`, which are random. To find tokens that share a slot, one needs them. */
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
    struct gw_token_owner owner;

    if (memo->generation != generation) {
        memset(memo, 0, sizeof(*memo));
        memo->generation = generation;
    }
    if (is_short)
        memcpy(words, token.ptr, token.len);
    slot = slot_of(memo, words);
    if (is_short && slot_has_token(slot, words, token.len))
        return &slot->owner;
    if (!gw_tokens_find(tokens, token, &owner))
        return NULL;
    memcpy(slot->token, words, sizeof(words));
    slot->owner = owner;
    slot->len = is_short ? token.len : 0;
    return &slot->owner;
}

/* ---- the table: the text of a token file, and finding a token by its digest ---- */

/* Owned; immutable once it is made. */
struct gw_token_table {
    struct gw_token_entry *entries; /* by the start of their digests */
    size_t n;
    size_t capacity;
    char *names; /* each ends with NUL */
    size_t names_len;
    const char **by_name;
};

struct gw_token_table *gw_token_table_free(struct gw_token_table *table)
{
    if (!table)
        return NULL;
    peg__free(table->entries);
    peg__free(table->names);
    peg__free((void *)table->by_name);
    peg__free(table);
    return NULL;
}

size_t gw_token_table_len(const struct gw_token_table *table)
{
    return table->n;
}

const struct gw_token_entry *gw_token_table_at(const struct gw_token_table *table, size_t i)
{
    return &table->entries[i];
}

/* ---- finding ---- */

static uint64_t start_of(const unsigned char *digest)
{
    uint64_t start;

    memcpy(&start, digest, sizeof(start));
    return start;
}

/* All of it, however early they differ. */
static bool is_same_digest(const unsigned char *a, const unsigned char *b)
{
    unsigned difference = 0;

    for (size_t i = 0; i < PEG_SHA256_BYTES; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

/* The place of a digest is found by its first bytes, which tell somebody who measures the time
 * nothing about any token: what he learns is a part of a hash. */
const struct gw_token_entry *gw_token_table_find(const struct gw_token_table *table,
                                                 const unsigned char digest[32])
{
    const uint64_t start = start_of(digest);
    const struct gw_token_entry *found = NULL;
    size_t low = 0;
    size_t high = table->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (table->entries[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < table->n && table->entries[low].start == start; low++) {
        if (is_same_digest(table->entries[low].digest, digest))
            found = &table->entries[low];
    }
    return found;
}

static int compare_name(peg_str a, const char *b)
{
    const int order = strncmp(a.ptr, b, a.len);

    return order ? order : -(b[a.len] != '\0');
}

bool gw_token_table_has_name(const struct gw_token_table *table, peg_str name)
{
    size_t low = 0;
    size_t high = table->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_name(name, table->by_name[middle]);

        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

/* ---- reading ---- */

struct reading {
    struct gw_token_table *table;
    const char *file;
    unsigned line;
};

static peg_status reject_line(const struct reading *r, peg_error *reterr, const char *what)
{
    peg__fail(reterr, PEG_EPARSE, "E_TOKEN_FILE",
              "%.100s:%u: %s; a line is a name and sha256:<64 hex digits>, for operators "
              "followed by `admin`, as `pegboard token new` writes it",
              r->file, r->line, what);
    if (reterr)
        reterr->line = r->line;
    return PEG_EPARSE;
}

static peg_str trim_line(peg_str s)
{
    while (s.len && (peg__is_blank(s.ptr[s.len - 1]) || s.ptr[s.len - 1] == '\r'))
        s.len--;
    while (s.len && peg__is_blank(s.ptr[0]))
        s = peg__str_from(s, 1);
    return s;
}

static peg_str take_word(peg_str *rest)
{
    peg_str word = {rest->ptr, 0};

    while (word.len < rest->len && !peg__is_blank(rest->ptr[word.len]))
        word.len++;
    *rest = trim_line(peg__str_from(*rest, word.len));
    return word;
}

static const peg_str prefix = PEG_LIT("sha256:");

static bool read_digest(peg_str text, unsigned char ret_digest[PEG_SHA256_BYTES])
{
    if (!peg__str_starts(text, prefix) || text.len != prefix.len + PEG_SHA256_HEX - 1)
        return false;
    for (size_t i = 0; i < PEG_SHA256_BYTES; i++) {
        const int high = peg__hex_value(text.ptr[prefix.len + 2 * i]);
        const int low = peg__hex_value(text.ptr[prefix.len + 2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_digest[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

bool gw_token_line_is(peg_str line, peg_str name, peg_str hash)
{
    peg_str rest = trim_line(line);
    peg_str digest;

    if (!peg__str_eq(take_word(&rest), name))
        return false;
    digest = peg__str_from(take_word(&rest), prefix.len);
    return !hash.len ||
           (hash.len <= digest.len && strncasecmp(digest.ptr, hash.ptr, hash.len) == 0);
}

bool gw_token_name_is_good(peg_str name)
{
    if (!name.len || name.len >= GW_TOKEN_NAME)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];

        if (c != '@' && wire_check_name(peg__strn(&c, 1), "", NULL) != PEG_OK)
            return false;
    }
    return true;
}

static peg_status add_table_entry(struct reading *r, peg_str name,
                                  const struct gw_token_entry *what, peg_error *reterr)
{
    struct gw_token_table *table = r->table;
    struct gw_token_entry *entry;

    if (table->n == PEG_LIMIT_GATEWAY_TOKENS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOKEN_FILE",
                         "%.100s:%u: there are more than %d tokens: take old ones out", r->file,
                         r->line, PEG_LIMIT_GATEWAY_TOKENS);
    if (!PEG__RESERVE(table->entries, table->n + 1, table->capacity))
        return peg__fail_nomem(reterr);
    entry = &table->entries[table->n++];
    *entry = *what;
    entry->start = start_of(what->digest);
    entry->name = table->names + table->names_len;
    entry->line = r->line;
    memcpy(table->names + table->names_len, name.ptr, name.len);
    table->names_len += name.len;
    table->names[table->names_len++] = '\0';
    return PEG_OK;
}

static peg_status read_token_line(struct reading *r, peg_str text, peg_error *reterr)
{
    struct gw_token_entry entry = {0};
    peg_str rest = trim_line(text);
    peg_str name;

    if (!rest.len || rest.ptr[0] == '#')
        return PEG_OK;
    name = take_word(&rest);
    if (!gw_token_name_is_good(name))
        return reject_line(r, reterr,
                           "the name has other characters than A-Z a-z 0-9 _ . : @ / - or "
                           "more than 128");
    if (!read_digest(take_word(&rest), entry.digest))
        return reject_line(r, reterr, "what follows the name is no hash of a token");
    entry.is_admin = peg__str_is(rest, "admin");
    if (rest.len && !entry.is_admin)
        return reject_line(r, reterr, "what follows the hash is not `admin`");
    return add_table_entry(r, name, &entry, reterr);
}

static int compare_digests(const void *a, const void *b)
{
    const struct gw_token_entry *left = a;
    const struct gw_token_entry *right = b;

    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return memcmp(left->digest, right->digest, sizeof(left->digest));
}

/* One token with two names would be ambiguous. */
static peg_status sort_tokens(struct reading *r, peg_error *reterr)
{
    struct gw_token_table *table = r->table;

    if (table->n)
        qsort(table->entries, table->n, sizeof(*table->entries), compare_digests);
    for (size_t i = 1; i < table->n; i++) {
        const struct gw_token_entry *a = &table->entries[i - 1];
        const struct gw_token_entry *b = &table->entries[i];

        if (compare_digests(a, b) != 0)
            continue;
        r->line = a->line > b->line ? a->line : b->line;
        return reject_line(r, reterr, "this token stands in an earlier line, too: take one out");
    }
    return PEG_OK;
}

static int compare_name_entries(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static peg_status sort_names(struct gw_token_table *table, peg_error *reterr)
{
    table->by_name = (const char **)peg__alloc((table->n + 1) * sizeof(*table->by_name));
    if (!table->by_name)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < table->n; i++)
        table->by_name[i] = table->entries[i].name;
    qsort((void *)table->by_name, table->n, sizeof(*table->by_name), compare_name_entries);
    return PEG_OK;
}

static peg_status read_lines(struct reading *r, peg_str text, peg_error *reterr)
{
    peg_str rest = text;

    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        peg_status status;

        r->line++;
        status = read_token_line(r, peg__strn(rest.ptr, len), reterr);
        if (status)
            return status;
        rest = peg__str_from(rest, end ? len + 1 : len);
    }
    return sort_tokens(r, reterr);
}

peg_status gw_token_table_parse(peg_str text, const char *file, struct gw_token_table **ret_table,
                                peg_error *reterr)
{
    struct reading r = {.file = file};
    peg_status status;

    if (text.len > PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES)
        return fail_too_large(file, reterr);
    r.table = peg__alloc_zero(1, sizeof(*r.table));
    if (!r.table)
        return peg__fail_nomem(reterr);
    /* A name takes less room than the line that it stands in. */
    r.table->names = peg__alloc(text.len + 1);
    status = r.table->names ? read_lines(&r, text, reterr) : peg__fail_nomem(reterr);
    if (!status)
        status = sort_names(r.table, reterr);
    if (status) {
        gw_token_table_free(r.table);
        return status;
    }
    *ret_table = r.table;
    return PEG_OK;
}
