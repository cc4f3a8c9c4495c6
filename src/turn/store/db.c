/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "turn/store/internal.h"

/* "pegT": what `file` and we ourselves know such a database by. */
#define APPLICATION_ID 0x70656754

/* Each brings a database to its number; the last one is what this version works with. */
static const char *const migrations[] = {
    [1] = "CREATE TABLE turns (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
          "  session_id TEXT NOT NULL, phase TEXT NOT NULL, saved_ms INTEGER NOT NULL,"
          "  saved_no INTEGER NOT NULL, n_blocks INTEGER NOT NULL, head TEXT NOT NULL, data BLOB);"
          "CREATE INDEX turns_by_session ON turns (session_id);"
          "CREATE UNIQUE INDEX turns_by_saved ON turns (saved_no);"
          /* The blocks of a turn, in order: digests, many in a row. */
          "CREATE TABLE pages (turn INTEGER NOT NULL, page INTEGER NOT NULL, hashes BLOB NOT NULL,"
          "  PRIMARY KEY (turn, page));"
          "CREATE TABLE parts (no INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE,"
          "  n_uses INTEGER NOT NULL, json TEXT NOT NULL);"
          "CREATE TABLE part_bytes (part BLOB NOT NULL, key TEXT NOT NULL,"
          "  PRIMARY KEY (part, key)) WITHOUT ROWID;"
          "CREATE INDEX part_bytes_by_key ON part_bytes (key);"
          "CREATE TABLE bytes (key TEXT NOT NULL, at INTEGER NOT NULL, content BLOB NOT NULL,"
          "  PRIMARY KEY (key, at));",
};

enum { SCHEMA = sizeof(migrations) / sizeof(*migrations) - 1 };

#define LISTED "SELECT id, session_id, phase, saved_ms, saved_no, n_blocks FROM turns"
#define NEXT_NO "(SELECT coalesce(max(saved_no), 0) + 1 FROM turns)"

static const char *const sql[PEG__DB_N_SQL] = {
    [PEG__DB_FIND_TURN] = "SELECT no, data, phase, head, n_blocks FROM turns WHERE id = ?",
    [PEG__DB_ADD_TURN] =
        "INSERT INTO turns (id, session_id, phase, saved_ms, n_blocks, head, data, saved_no)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, " NEXT_NO ")",
    [PEG__DB_CHANGE_TURN] =
        "UPDATE turns SET id = ?, session_id = ?, phase = ?, saved_ms = ?, n_blocks = ?,"
        " head = ?, data = ?, saved_no = " NEXT_NO " WHERE no = ?",
    [PEG__DB_DROP_TURN] = "DELETE FROM turns WHERE no = ?",
    [PEG__DB_ALL_TURNS] = LISTED,
    [PEG__DB_SOME_TURNS] = LISTED " WHERE session_id = ?",
    [PEG__DB_PAGES] = "SELECT page, hashes FROM pages WHERE turn = ? ORDER BY page",
    [PEG__DB_PUT_PAGE] = "INSERT INTO pages (turn, page, hashes) VALUES (?, ?, ?)"
                         " ON CONFLICT (turn, page) DO UPDATE SET hashes = excluded.hashes",
    [PEG__DB_CUT_PAGES] = "DELETE FROM pages WHERE turn = ? AND page >= ?",
    [PEG__DB_PART] = "SELECT json FROM parts WHERE hash = ?",
    [PEG__DB_USE_PART] = "UPDATE parts SET n_uses = n_uses + 1 WHERE hash = ?",
    [PEG__DB_ADD_PART] = "INSERT INTO parts (hash, json, n_uses) VALUES (?, ?, 1)",
    [PEG__DB_LEAVE_PART] = "UPDATE parts SET n_uses = n_uses - 1 WHERE hash = ?",
    [PEG__DB_DROP_PART] = "DELETE FROM parts WHERE hash = ? AND n_uses <= 0",
    [PEG__DB_LINK_BYTES] = "INSERT OR IGNORE INTO part_bytes (part, key) VALUES (?, ?)",
    [PEG__DB_KEYS] = "SELECT key FROM part_bytes WHERE part = ?",
    [PEG__DB_UNLINK] = "DELETE FROM part_bytes WHERE part = ?",
    [PEG__DB_BYTES_LEN] =
        "SELECT at + length(content) FROM bytes WHERE key = ? ORDER BY at DESC LIMIT 1",
    [PEG__DB_CHUNK] = "SELECT at, content FROM bytes WHERE key = ? AND at <= ?"
                      " ORDER BY at DESC LIMIT 1",
    [PEG__DB_ADD_CHUNK] = "INSERT INTO bytes (key, at, content) VALUES (?, ?, ?)",
    [PEG__DB_DROP_BYTES] = "DELETE FROM bytes WHERE key = ?1"
                           " AND NOT EXISTS (SELECT 1 FROM part_bytes WHERE key = ?1)",
};

/* ---- running statements ------------------------------------------------------------------ */

static peg_status bind_values(struct peg__sqlite_stmt *stmt, const char *types, va_list args,
                              peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (int i = 0; !status && types[i]; i++) {
        if (types[i] == 'i')
            status = peg__sqlite_bind_int64(stmt, i + 1, va_arg(args, int64_t), reterr);
        else if (types[i] == 't')
            status = peg__sqlite_bind_text(stmt, i + 1, va_arg(args, peg_str), reterr);
        else
            status = peg__sqlite_bind_blob(stmt, i + 1, va_arg(args, peg_str), reterr);
    }
    if (status)
        peg__sqlite_reset(stmt);
    return status;
}

peg_status peg__db_query(struct peg__db *db, enum peg__db_sql which,
                         struct peg__sqlite_stmt **ret_stmt, peg_error *reterr, const char *types,
                         ...)
{
    va_list args;
    peg_status status;

    va_start(args, types);
    status = bind_values(db->stmts[which], types, args, reterr);
    va_end(args);
    if (!status)
        *ret_stmt = db->stmts[which];
    return status;
}

peg_status peg__db_run(struct peg__db *db, enum peg__db_sql which, peg_error *reterr,
                       const char *types, ...)
{
    va_list args;
    peg_status status;

    va_start(args, types);
    status = bind_values(db->stmts[which], types, args, reterr);
    va_end(args);
    return status ? status : peg__sqlite_run(db->stmts[which], reterr);
}

peg_status peg__db_fail_damaged(const struct peg__db *db, const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_TURN_STORE",
                     "turn store '%.128s' is damaged: %s; restore it from a copy", db->path, what);
}

/* ---- schema --------------------------------------------------------------------------------- */

static peg_status get_number(struct peg__sqlite *sqlite, const char *query, int64_t *ret_number,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status = peg__sqlite_prepare(sqlite, peg__str(query), &stmt, NULL, reterr);

    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status)
        *ret_number = is_row ? peg__sqlite_int64(stmt, 0) : 0;
    return status;
}

static peg_status get_version(struct peg__db *db, int64_t *ret_version, peg_error *reterr)
{
    int64_t id = 0;
    int64_t n_tables = 0;
    int64_t version = 0;
    peg_status status = get_number(db->sqlite, "PRAGMA application_id", &id, reterr);

    if (!status)
        status = get_number(db->sqlite, "PRAGMA user_version", &version, reterr);
    if (!status)
        status = get_number(db->sqlite, "SELECT count(*) FROM sqlite_schema", &n_tables, reterr);
    if (status)
        return status;
    if (id != APPLICATION_ID && (id || version || n_tables))
        return peg__fail(reterr, PEG_EIO, "E_TURN_STORE",
                         "'%.128s' is a database, but no turn store: choose another file",
                         db->path);
    if (version > SCHEMA || version < 0)
        return peg__fail(reterr, PEG_EIO, "E_TURN_STORE",
                         "turn store '%.128s' was made by a newer pegboard (its schema is %lld, "
                         "this one knows %d): use that one",
                         db->path, (long long)version, SCHEMA);
    *ret_version = version;
    return PEG_OK;
}

/* In a transaction, so that of two processes that open it at once only one migrates. */
static peg_status migrate_in(struct peg__db *db, peg_error *reterr)
{
    char pragmas[96];
    int64_t version = 0;
    peg_status status = get_version(db, &version, reterr);

    if (status || version == SCHEMA)
        return status;
    while (!status && version < SCHEMA)
        status = peg__sqlite_exec(db->sqlite, migrations[++version], reterr);
    if (status)
        return status;
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION_ID, SCHEMA);
    return peg__sqlite_exec(db->sqlite, pragmas, reterr);
}

/* Outside a transaction the numbers may come from before and after the moment in which another
 * process makes the store: only a version that is ours decides there. */
static peg_status migrate_schema(struct peg__db *db, peg_error *reterr)
{
    int64_t version = 0;
    peg_status status;

    if (!get_version(db, &version, NULL) && version == SCHEMA)
        return PEG_OK;
    status = peg__sqlite_begin(db->sqlite, reterr);
    return status ? status : peg__sqlite_end(db->sqlite, migrate_in(db, reterr), reterr);
}

/* ---- life --------------------------------------------------------------------- */

/* A conversation is for its owner alone; the files beside it get the same mode. mknod() and not
 * open(): closing it would drop the locks of another connection of this process. */
static peg_status make_file(const char *path, peg_error *reterr)
{
    if (mknod(path, S_IFREG | 0600, 0) != 0 && errno != EEXIST)
        return peg__fail(reterr, PEG_EIO, "E_TURN_STORE", "turn store '%.128s' cannot be made: %m",
                         path);
    return PEG_OK;
}

/* SQLite does not wait for another process that switches a new file to a write-ahead log too. */
static peg_status open_patiently(struct peg__db *db, peg_error *reterr)
{
    enum { PAUSE_MS = 5 };
    const struct timespec pause = {.tv_nsec = PAUSE_MS * PEG_NS_PER_MS};
    peg_status status = PEG_ESTATE;

    for (int waited = 0; status == PEG_ESTATE; waited += PAUSE_MS) {
        status = peg__sqlite_open(db->path, PEG__SQLITE_WRITE, &db->sqlite, reterr);
        if (status != PEG_ESTATE || waited >= PEG_LIMIT_SQLITE_BUSY_MS)
            break;
        nanosleep(&pause, NULL);
    }
    return status;
}

static peg_status prepare_statements(struct peg__db *db, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (int i = 0; !status && i < PEG__DB_N_SQL; i++)
        status = peg__sqlite_prepare(db->sqlite, peg__str(sql[i]), &db->stmts[i], NULL, reterr);
    return status;
}

static peg_status start_db(struct peg__db *db, peg_error *reterr)
{
    peg_status status = make_file(db->path, reterr);

    if (!status)
        status = open_patiently(db, reterr);
    /* Saved means saved, also if the power goes. */
    if (!status)
        status = peg__sqlite_exec(db->sqlite, "PRAGMA synchronous = FULL", reterr);
    if (!status)
        status = migrate_schema(db, reterr);
    return status ? status : prepare_statements(db, reterr);
}

static struct peg__db *db_new(const char *path)
{
    struct peg__db *db = peg__alloc_zero(1, sizeof(*db) + strlen(path) + 1);
    pthread_mutexattr_t recursive;

    if (!db)
        return NULL;
    atomic_init(&db->n_refs, 1);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&db->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    db->keys = (struct peg__map)PEG__MAP(PEG_LIMIT_SPOOL_KEYS);
    memcpy(db->path, path, strlen(path) + 1);
    return db;
}

peg_status peg__db_open(const char *path, struct peg__db **ret_db, peg_error *reterr)
{
    struct peg__db *db = db_new(path);
    peg_error why;
    peg_status status;

    if (!db)
        return peg__fail_nomem(reterr);
    status = start_db(db, &why);
    if (status) {
        peg__db_unref(db);
        return peg__turn_store_fail(status, &why, reterr, "turn store '%.128s' cannot be opened",
                                    path);
    }
    *ret_db = db;
    return PEG_OK;
}

static struct peg__db *db_ref(struct peg__db *db)
{
    peg__refs_take(&db->n_refs);
    return db;
}

struct peg__db *peg__db_unref(struct peg__db *db)
{
    if (!db || !peg__refs_drop(&db->n_refs))
        return NULL;
    peg__cache_free(&db->cache);
    peg__map_free(&db->keys);
    for (int i = 0; i < PEG__DB_N_SQL; i++)
        peg__sqlite_finalize(db->stmts[i]);
    peg__sqlite_close(db->sqlite);
    pthread_mutex_destroy(&db->lock);
    peg__free(db);
    return NULL;
}

/* ---- parts -------------------------------------------------------------------- */

static peg_str blob_of(const peg__digest digest)
{
    return peg__strn((const char *)digest, sizeof(peg__digest));
}

peg_status peg__db_use(struct peg__db *db, const peg__digest digest, bool *ret_is_there,
                       peg_error *reterr)
{
    const peg_status status = peg__db_run(db, PEG__DB_USE_PART, reterr, "b", blob_of(digest));

    if (!status)
        *ret_is_there = peg__sqlite_changes(db->sqlite) > 0;
    return status;
}

peg_status peg__db_add(struct peg__db *db, const peg__digest digest, peg_str json,
                       peg_error *reterr)
{
    peg_status status = peg__db_run(db, PEG__DB_ADD_PART, reterr, "bt", blob_of(digest), json);

    PEG__MAP_EACH(&db->keys, entry)
    {
        if (status)
            break;
        status = peg__db_run(db, PEG__DB_LINK_BYTES, reterr, "bt", blob_of(digest), entry->name);
    }
    return status;
}

/* Its bytes go with the last part that needs them. The keys are read before they are unlinked. */
static peg_status drop_bytes(struct peg__db *db, const peg__digest digest, peg_error *reterr)
{
    struct peg__map keys = PEG__MAP(PEG_LIMIT_SPOOL_KEYS);
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status = peg__db_query(db, PEG__DB_KEYS, &stmt, reterr, "b", blob_of(digest));

    while (!status && !(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row) {
        status = peg__map_put(&keys, peg__sqlite_text(stmt, 0), db, NULL);
        if (status)
            peg__fail_nomem(reterr);
    }
    if (stmt)
        peg__sqlite_reset(stmt);
    if (!status && keys.n)
        status = peg__db_run(db, PEG__DB_UNLINK, reterr, "b", blob_of(digest));
    PEG__MAP_EACH(&keys, entry)
    {
        if (!status)
            status = peg__db_run(db, PEG__DB_DROP_BYTES, reterr, "t", entry->name);
    }
    peg__map_free(&keys);
    return status;
}

peg_status peg__db_leave(struct peg__db *db, const peg__digest digest, peg_error *reterr)
{
    peg_status status = peg__db_run(db, PEG__DB_LEAVE_PART, reterr, "b", blob_of(digest));

    if (!status)
        status = peg__db_run(db, PEG__DB_DROP_PART, reterr, "b", blob_of(digest));
    if (!status && peg__sqlite_changes(db->sqlite) > 0)
        status = drop_bytes(db, digest, reterr);
    return status;
}

peg_status peg__db_part(struct peg__db *db, const peg__digest digest,
                        struct peg__sqlite_stmt **ret_stmt, peg_str *ret_json, peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg__digest found;
    peg_str json;
    peg_status status = peg__db_query(db, PEG__DB_PART, &stmt, reterr, "b", blob_of(digest));

    if (status)
        return status;
    status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status && !is_row)
        status = peg__db_fail_damaged(db, "a block is missing", reterr);
    if (!status) {
        json = peg__sqlite_text(stmt, 0);
        if (!peg__sha256(json, found))
            status = peg__fail_nomem(reterr);
        else if (memcmp(found, digest, sizeof(found)) != 0)
            status = peg__db_fail_damaged(db, "a block is not what it was", reterr);
    }
    if (status) {
        peg__sqlite_reset(stmt);
        return status;
    }
    *ret_json = json;
    *ret_stmt = stmt;
    return PEG_OK;
}

/*
 * Bytes in the database of a turn store, in pieces, so that a reader takes no more into memory than
 * it is asked for. A reader holds the database, not the bytes: when the last turn that needs them
 * is removed, reading fails.
 */

enum { CHUNK = 256 << 10 };

/* ---- a reader --------------------------------------------------------------------------- */

struct db_reader {
    struct peg__db *db;
    int64_t len;
    size_t key_len;
    char key[];
};

/* One piece from an offset on; *ret_n is 0 at the end. With the lock. */
static peg_status read_chunk(struct db_reader *r, int64_t offset, char *buffer, size_t n,
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

static peg_status reader_read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
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
            read_chunk(r, (int64_t)(offset + done), (char *)buffer + done, n - done, &got, reterr);
        done += got;
    }
    pthread_mutex_unlock(&r->db->lock);
    if (!status)
        *ret_n = done;
    return status;
}

static int64_t reader_byte_length(void *user)
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
        .read_at = reader_read_at, .byte_length = reader_byte_length, .free = free_reader};
    struct db_reader *r = peg__alloc(sizeof(*r) + key.len);
    peg_status status;

    if (!r)
        return peg__fail_nomem(reterr);
    r->db = db_ref(db);
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

/* The writer of a part finds its bytes first and writes only those that are missing. */
static peg_status note_key(struct peg__db *db, peg_str key, int64_t len, peg_error *reterr)
{
    peg_status status;

    if (!db->is_noting)
        return PEG_OK;
    status = peg__map_put(&db->keys, key, db, NULL);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    db->n_key_bytes += (uint64_t)len;
    return status ? peg__fail(reterr, PEG_ELIMIT, "E_SPOOL_FULL",
                              "a block has more than %d runs of bytes", PEG_LIMIT_SPOOL_KEYS)
                  : PEG_OK;
}

/* A key is the digest of its bytes: what is there is what would be written. */
static peg_status put_bytes(struct peg__db *db, peg_str key, peg_str bytes, peg_error *reterr)
{
    int64_t len = -1;
    peg_status status = find_length(db, key, &len, reterr);

    if (!status && len < 0)
        status = add_chunks(db, key, bytes, reterr);
    return status ? status : note_key(db, key, (int64_t)bytes.len, reterr);
}

static peg_status spool_write(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                              peg_error *reterr)
{
    struct peg__db *db = user;
    peg_status status;

    pthread_mutex_lock(&db->lock);
    status = put_bytes(db, key, bytes, reterr);
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
        status = note_key(db, key, len, reterr);
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
    const peg_status status = peg_spool_store_new(&ops, db_ref(db), ret_store, reterr);

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
