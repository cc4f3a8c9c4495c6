/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes in the database of a turn store, in pieces, so that a reader takes no more into memory than
 * it is asked for. A reader holds the database, not the bytes: when the last turn that needs them
 * is removed, reading fails.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "turn/store/db.h"

enum { CHUNK = 256 << 10 };

/* ---- a reader --------------------------------------------------------------------------- */

struct db_reader {
    struct peg__db *db;
    int64_t len;
    size_t key_len;
    char key[];
};

/* One piece from an offset on; *ret_n is 0 at the end. With the lock. */
static peg_status read_piece(struct db_reader *r, int64_t offset, char *buffer, size_t n,
                             size_t *ret_n, peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_str content;
    int64_t skip;
    peg_status status = peg__db_query(r->db, PEG__DB_CHUNK, &stmt, reterr, "ti",
                                      peg__strn(r->key, r->key_len), offset);

    if (status)
        return status;
    status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status && !is_row)
        status = peg__fail(reterr, PEG_EIO, "E_TURN_STORE",
                           "bytes of a turn are gone from turn store '%.128s': it was removed, or "
                           "saved without them, after it was loaded",
                           r->db->path);
    if (!status) {
        content = peg__sqlite_blob(stmt, 1);
        skip = offset - peg__sqlite_int64(stmt, 0);
        if (skip < 0 || (uint64_t)skip >= content.len) {
            status = peg__db_fail_damaged(r->db, "bytes are missing", reterr);
        } else {
            *ret_n = content.len - (size_t)skip < n ? content.len - (size_t)skip : n;
            memcpy(buffer, content.ptr + skip, *ret_n);
        }
    }
    peg__sqlite_reset(stmt);
    return status;
}

static peg_status read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                          peg_error *reterr)
{
    struct db_reader *r = user;
    size_t done = 0;
    peg_status status = PEG_OK;

    if (offset >= (uint64_t)r->len)
        n = 0;
    else if (n > (uint64_t)r->len - offset)
        n = (size_t)((uint64_t)r->len - offset);
    pthread_mutex_lock(&r->db->lock);
    while (!status && done < n) {
        size_t got = 0;

        status =
            read_piece(r, (int64_t)(offset + done), (char *)buffer + done, n - done, &got, reterr);
        done += got;
    }
    pthread_mutex_unlock(&r->db->lock);
    if (!status)
        *ret_n = done;
    return status;
}

static int64_t byte_length(void *user)
{
    return ((const struct db_reader *)user)->len;
}

static void free_reader(void *user)
{
    struct db_reader *r = user;

    peg__db_unref(r->db);
    peg__free(r);
}

static peg_status reader_new(struct peg__db *db, peg_str key, int64_t len, peg_reader **ret_reader,
                             peg_error *reterr)
{
    static const peg_reader_ops ops = {
        .read_at = read_at, .byte_length = byte_length, .free = free_reader};
    struct db_reader *r = peg__alloc(sizeof(*r) + key.len);
    peg_status status;

    if (!r)
        return peg__fail_nomem(reterr);
    r->db = peg__db_ref(db);
    r->len = len;
    r->key_len = key.len;
    memcpy(r->key, key.ptr, key.len);
    status = peg_reader_new(&ops, r, ret_reader, reterr);
    if (status)
        free_reader(r);
    return status;
}

/* ---- the spool store: all with the lock --------------------------------------------------- */

/* -1 if there is no such key. */
static peg_status find_length(struct peg__db *db, peg_str key, int64_t *ret_len, peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status = peg__db_query(db, PEG__DB_BYTES_LEN, &stmt, reterr, "t", key);

    if (status)
        return status;
    status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status)
        *ret_len = is_row ? peg__sqlite_int64(stmt, 0) : -1;
    peg__sqlite_reset(stmt);
    return status;
}

static peg_status add_chunks(struct peg__db *db, peg_str key, peg_str bytes, peg_error *reterr)
{
    size_t at = 0;
    peg_status status;

    do {
        const size_t n = bytes.len - at < CHUNK ? bytes.len - at : CHUNK;

        status = peg__db_run(db, PEG__DB_ADD_CHUNK, reterr, "tib", key, (int64_t)at,
                             peg__strn(n ? bytes.ptr + at : "", n));
        at += n;
    } while (!status && at < bytes.len);
    return status;
}

/* Whoever writes a part looks for its bytes first and writes only what is missing. */
static peg_status note(struct peg__db *db, peg_str key, int64_t len, peg_error *reterr)
{
    peg_status status;

    if (!db->is_noting)
        return PEG_OK;
    status = peg__map_put(&db->keys, key, db, NULL);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    db->n_key_bytes += (uint64_t)len;
    return status ? peg__fail(reterr, PEG_ELIMIT, "E_SPOOL_FULL",
                              "a block has more than %d runs of bytes (PEG_LIMIT_SPOOL_KEYS)",
                              PEG_LIMIT_SPOOL_KEYS)
                  : PEG_OK;
}

/* A key is the digest of its bytes: what is there is what would be written. */
static peg_status put(struct peg__db *db, peg_str key, peg_str bytes, peg_error *reterr)
{
    int64_t len = -1;
    peg_status status = find_length(db, key, &len, reterr);

    if (!status && len < 0)
        status = add_chunks(db, key, bytes, reterr);
    return status ? status : note(db, key, (int64_t)bytes.len, reterr);
}

static peg_status spool_write(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                              peg_error *reterr)
{
    struct peg__db *db = user;
    peg_status status;

    pthread_mutex_lock(&db->lock);
    status = put(db, key, bytes, reterr);
    pthread_mutex_unlock(&db->lock);
    return status ? status : reader_new(db, key, (int64_t)bytes.len, ret_reader, reterr);
}

static peg_status spool_read(void *user, peg_str key, peg_reader **ret_reader, peg_error *reterr)
{
    struct peg__db *db = user;
    int64_t len = -1;
    peg_status status;

    pthread_mutex_lock(&db->lock);
    status = find_length(db, key, &len, reterr);
    if (!status && len >= 0)
        status = note(db, key, len, reterr);
    pthread_mutex_unlock(&db->lock);
    if (!status && len >= 0)
        return reader_new(db, key, len, ret_reader, reterr);
    *ret_reader = NULL;
    return status;
}

/* Bytes go with the parts that need them. */
static peg_status spool_remove(void *user, peg_str key, bool *ret_was_there, peg_error *reterr)
{
    (void)user;
    (void)key;
    (void)reterr;
    *ret_was_there = false;
    return PEG_OK;
}

static void spool_free(void *user)
{
    peg__db_unref(user);
}

peg_status peg__db_spool_new(struct peg__db *db, peg_spool_store **ret_store, peg_error *reterr)
{
    static const peg_spool_ops ops = {
        .write = spool_write, .read = spool_read, .remove = spool_remove, .free = spool_free};
    const peg_status status = peg_spool_store_new(&ops, peg__db_ref(db), ret_store, reterr);

    if (status)
        peg__db_unref(db);
    return status;
}

void peg__db_note_keys(struct peg__db *db, bool is_noting)
{
    if (db->keys.n)
        peg__map_free(&db->keys);
    db->n_key_bytes = 0;
    db->is_noting = is_noting;
}
