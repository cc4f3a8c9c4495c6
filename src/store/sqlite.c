/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records in a database. A change is one transaction, and is in the log on the disk before it is
 * acknowledged.
 *
 *   open   file (0600) -> lock -> database -> quick check -> migrations -> statements
 *   put    what stands? -> the record in its place -> commit
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "store/internal.h"

/* Each brings a database to its number. Revisions are unsigned: those above 2^63 are there as
 * negative numbers, and are compared only in here. */
static const char *const migrations[] = {
    [1] = "CREATE TABLE records (name TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,"
          "  at_ms INTEGER NOT NULL, is_removed INTEGER NOT NULL, body TEXT NOT NULL);"
          "CREATE INDEX records_removed ON records (at_ms) WHERE is_removed;",
};

const struct store_schema store_sqlite_schema = {
    .application_id = 0x70656753, /* "pegS" */
    .migrations = migrations,
    .version = sizeof(migrations) / sizeof(*migrations) - 1,
};

enum which { STANDING, PUT, READ, FORGET, N_STATEMENTS };

static const char *const sql[N_STATEMENTS] = {
    [STANDING] = "SELECT revision FROM records WHERE name = ?",
    [PUT] = "INSERT INTO records (name, revision, at_ms, is_removed, body) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET revision = excluded.revision,"
            " at_ms = excluded.at_ms, is_removed = excluded.is_removed, body = excluded.body",
    [READ] = "SELECT name, revision, at_ms, is_removed, body FROM records ORDER BY name",
    [FORGET] = "DELETE FROM records WHERE is_removed AND at_ms < ?",
};

/* Owned. */
struct sqlite_store {
    int lock_fd; /* -1: not yet */
    struct peg__sqlite *db;
    struct peg__sqlite_stmt *statements[N_STATEMENTS];
    char path[]; /* for messages */
};

/* ---- errors ---- */

static peg_status fail_damaged(const struct sqlite_store *store, const peg_error *why,
                               peg_error *reterr)
{
    return peg__fail_because(reterr, PEG_EIO, "E_STORE", why,
                             "the store '%.120s' is damaged; restore it from a copy, or move it "
                             "away and let the toolsets be registered again",
                             store->path);
}

/* Our own errors as they are, those of SQLite with the file and what to do. */
static peg_status explain_failure(const struct sqlite_store *store, peg_status status,
                                  const peg_error *why, peg_error *reterr)
{
    if (strncmp(why->code, "E_SQLITE", strlen("E_SQLITE")) != 0) {
        if (reterr)
            *reterr = *why;
        return status;
    }
    if (peg__sqlite_is_damage(why))
        return fail_damaged(store, why, reterr);
    return peg__fail_because(reterr, PEG_EIO, "E_STORE", why,
                             "the store '%.120s' cannot be used, nothing was changed; see to the "
                             "file and the room on its disk, then try again",
                             store->path);
}

/* ---- records ---- */

static peg_status check_standing(struct sqlite_store *store, const peg_store_record *record,
                                 peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = store->statements[STANDING];
    bool is_row = false;
    peg_status status = peg__sqlite_bind_text(stmt, 1, record->name, reterr);

    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status && is_row)
        status = store_check_revision(record, (uint64_t)peg__sqlite_int64(stmt, 0), reterr);
    peg__sqlite_reset(stmt);
    return status;
}

static peg_status write_record(struct sqlite_store *store, const peg_store_record *record,
                               peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = store->statements[PUT];
    const peg_str body = record->is_removed ? peg__str("") : record->body;
    peg_status status = peg__sqlite_bind_text(stmt, 1, record->name, reterr);

    if (!status)
        status = peg__sqlite_bind_int64(stmt, 2, (int64_t)record->revision, reterr);
    if (!status)
        status = peg__sqlite_bind_int64(stmt, 3, record->at_ms, reterr);
    if (!status)
        status = peg__sqlite_bind_int64(stmt, 4, record->is_removed, reterr);
    if (!status)
        status = peg__sqlite_bind_text(stmt, 5, body, reterr);
    if (!status)
        return peg__sqlite_run(stmt, reterr);
    peg__sqlite_reset(stmt);
    return status;
}

static peg_status put_in(struct sqlite_store *store, const peg_store_record *record,
                         peg_error *reterr)
{
    peg_status status = check_standing(store, record, reterr);

    return status ? status : write_record(store, record, reterr);
}

static peg_status sqlite_put(void *self, const peg_store_record *record, peg_error *reterr)
{
    struct sqlite_store *store = self;
    peg_status status = store_check_record(record, reterr);
    peg_error why;

    if (status)
        return status;
    status = peg__sqlite_begin(store->db, &why);
    if (!status)
        status = peg__sqlite_end(store->db, put_in(store, record, &why), &why);
    return status ? explain_failure(store, status, &why, reterr) : PEG_OK;
}

static peg_status sqlite_read(void *self, peg_store_each_fn each, void *user, peg_error *reterr)
{
    struct sqlite_store *store = self;
    struct peg__sqlite_stmt *stmt = store->statements[READ];
    bool is_row = false;
    peg_error why;
    peg_status status;

    while (!(status = peg__sqlite_step(stmt, &is_row, &why)) && is_row) {
        const peg_store_record record = {
            .name = peg__sqlite_text(stmt, 0),
            .revision = (uint64_t)peg__sqlite_int64(stmt, 1),
            .at_ms = peg__sqlite_int64(stmt, 2),
            .is_removed = peg__sqlite_int64(stmt, 3) != 0,
            .body = peg__sqlite_text(stmt, 4),
        };
        const peg_status theirs = each(&record, user, reterr);

        if (theirs) {
            peg__sqlite_reset(stmt);
            return theirs;
        }
    }
    peg__sqlite_reset(stmt);
    return status ? explain_failure(store, status, &why, reterr) : PEG_OK;
}

static peg_status sqlite_forget(void *self, int64_t before_ms, peg_error *reterr)
{
    struct sqlite_store *store = self;
    struct peg__sqlite_stmt *stmt = store->statements[FORGET];
    peg_error why;
    peg_status status = peg__sqlite_bind_int64(stmt, 1, before_ms, &why);

    if (!status)
        status = peg__sqlite_run(stmt, &why);
    return status ? explain_failure(store, status, &why, reterr) : PEG_OK;
}

/* ---- the lock: a file has one user at a time. A file beside it ("toolsets.db-lock") names the
 * process; the system drops the lock when that ends. The file stays: removing it could remove the
 * next one's ---- */

/* The process that has it, as it wrote; 0 if it has not yet, or could not. */
static long read_owner(int fd)
{
    char text[24] = "";

    if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    return strtol(text, NULL, 10);
}

/* A disk that is full must not keep a store from being read: without the number the
 * message of others has less. */
static void write_owner(int fd)
{
    char text[24];
    const int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0)
        return;
}

static peg_status fail_locked(const char *path, int fd, peg_error *reterr)
{
    const long owner = read_owner(fd);
    char who[40] = "another process";

    if (owner > 0)
        snprintf(who, sizeof(who), "process %ld", owner);
    return peg__fail(reterr, PEG_ESTATE, "E_STORE_LOCKED",
                     "the store '%.160s' is in use by %s: stop that one, or choose another file",
                     path, who);
}

/* Behind all symbolic links, so that a file has one lock whatever it is called. */
static peg_status lock_store(const char *path, int *ret_fd, peg_error *reterr)
{
    char real[PATH_MAX];
    char name[PATH_MAX + 8];
    int fd;

    if (!realpath(path, real))
        return peg__fail(reterr, PEG_EIO, "E_STORE", "the store '%.160s' cannot be found: %m",
                         path);
    snprintf(name, sizeof(name), "%s-lock", real);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "the store '%.120s' cannot be locked, for the file '%.100s' beside it "
                         "cannot be opened: %m",
                         path, name);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const peg_status status =
            errno == EWOULDBLOCK
                ? fail_locked(path, fd, reterr)
                : peg__fail(reterr, PEG_EIO, "E_STORE",
                            "the store '%.160s' cannot be locked: %m; use a local disk", path);

        close(fd);
        return status;
    }
    write_owner(fd);
    *ret_fd = fd;
    return PEG_OK;
}

/* ---- life ---- */

/* Made without being opened: SQLite opens it, and the files beside it get the same mode. */
static peg_status make_file(const char *path, peg_error *reterr)
{
    if (mknod(path, S_IFREG | 0600, 0) == 0 || errno == EEXIST)
        return PEG_OK;
    if (errno == ENOENT)
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "the store '%.160s' cannot be made: its folder is not there; make that "
                         "first",
                         path);
    return peg__fail(reterr, PEG_EIO, "E_STORE", "the store '%.160s' cannot be made: %m", path);
}

/* Damage that is found now is not found in the midst of a registration. */
static peg_status check_file(struct sqlite_store *store, peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_error why;
    peg_status status =
        peg__sqlite_prepare(store->db, peg__str("PRAGMA quick_check(1)"), &stmt, NULL, reterr);

    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (status || (is_row && peg__str_is(peg__sqlite_text(stmt, 0), "ok")))
        return status;
    peg__fail(&why, PEG_EIO, "E_SQLITE", "%.160s", is_row ? peg__sqlite_text(stmt, 0).ptr : "");
    return fail_damaged(store, &why, reterr);
}

static peg_status prepare_statements(struct sqlite_store *store, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (int i = 0; !status && i < N_STATEMENTS; i++)
        status =
            peg__sqlite_prepare(store->db, peg__str(sql[i]), &store->statements[i], NULL, reterr);
    return status;
}

static peg_status open_store(struct sqlite_store *store, peg_error *reterr)
{
    peg_status status = make_file(store->path, reterr);

    if (!status)
        status = lock_store(store->path, &store->lock_fd, reterr);
    if (!status)
        status = peg__sqlite_open(store->path, PEG__SQLITE_WRITE, &store->db, reterr);
    /* Kept means kept, also if the power goes. */
    if (!status)
        status = peg__sqlite_exec(store->db, "PRAGMA synchronous = FULL", reterr);
    if (!status)
        status = check_file(store, reterr);
    if (!status)
        status = store_migrate(store->db, store->path, &store_sqlite_schema, reterr);
    return status ? status : prepare_statements(store, reterr);
}

static void sqlite_free(void *self)
{
    struct sqlite_store *store = self;

    if (!store)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        peg__sqlite_finalize(store->statements[i]);
    peg__sqlite_close(store->db);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    peg__free(store);
}

peg_status peg_sqlite_store_new(const char *path, peg_store *ret_store, peg_error *reterr)
{
    struct sqlite_store *store;
    peg_error why;
    peg_status status;

    if (!path || !*path)
        return peg__fail(reterr, PEG_EINVAL, "E_STORE", "a store in a file needs its path");
    store = peg__alloc_zero(1, sizeof(*store) + strlen(path) + 1);
    if (!store)
        return peg__fail_nomem(reterr);
    store->lock_fd = -1;
    memcpy(store->path, path, strlen(path) + 1);
    status = open_store(store, &why);
    if (status) {
        status = explain_failure(store, status, &why, reterr);
        sqlite_free(store);
        return status;
    }
    *ret_store = (peg_store){
        .kind = "sqlite",
        .put = sqlite_put,
        .read = sqlite_read,
        .forget = sqlite_forget,
        .free = sqlite_free,
        .self = store,
    };
    return PEG_OK;
}

static peg_status get_number(struct peg__sqlite *db, const char *query, int64_t *ret_number,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status = peg__sqlite_prepare(db, peg__str(query), &stmt, NULL, reterr);

    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status)
        *ret_number = is_row ? peg__sqlite_int64(stmt, 0) : 0;
    return status;
}

static peg_status get_version(struct peg__sqlite *db, const char *path,
                              const struct store_schema *schema, int64_t *ret_version,
                              peg_error *reterr)
{
    int64_t id = 0;
    int64_t n_tables = 0;
    int64_t version = 0;
    peg_status status = get_number(db, "PRAGMA application_id", &id, reterr);

    if (!status)
        status = get_number(db, "PRAGMA user_version", &version, reterr);
    if (!status)
        status = get_number(db, "SELECT count(*) FROM sqlite_schema", &n_tables, reterr);
    if (status)
        return status;
    if (id != schema->application_id && (id || version || n_tables))
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "'%.128s' is a database, but no store of toolsets: choose another file",
                         path);
    if (version > schema->version || version < 0)
        return peg__fail(reterr, PEG_EUNSUPPORTED, "E_STORE_VERSION",
                         "the store '%.128s' was written by a later pegboard (its schema is %lld, "
                         "this one knows %d): use that one, or another file",
                         path, (long long)version, schema->version);
    *ret_version = version;
    return PEG_OK;
}

static peg_status migrate_from(struct peg__sqlite *db, const struct store_schema *schema,
                               int64_t version, peg_error *reterr)
{
    char pragmas[96];
    peg_status status = PEG_OK;

    while (!status && version < schema->version)
        status = peg__sqlite_exec(db, schema->migrations[++version], reterr);
    if (status)
        return status;
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             schema->application_id, schema->version);
    return peg__sqlite_exec(db, pragmas, reterr);
}

peg_status store_migrate(struct peg__sqlite *db, const char *path,
                         const struct store_schema *schema, peg_error *reterr)
{
    int64_t version = 0;
    peg_status status = get_version(db, path, schema, &version, reterr);

    if (status || version == schema->version)
        return status;
    status = peg__sqlite_begin(db, reterr);
    if (status)
        return status;
    return peg__sqlite_end(db, migrate_from(db, schema, version, reterr), reterr);
}
