/* SPDX-License-Identifier: Apache-2.0 */

#include "base/sqlite/sqlite.h"

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sqlite/text.h"
#include "base/text/str.h"

/* Statements are SQLite's own behind another name. */
struct peg__sqlite {
    sqlite3 *handle;
    int64_t waited_ms; /* for the lock that is waited for now */
    peg__sqlite_stop_fn should_stop;
    void *stop_user;
    peg__sqlite_may_fn may;
    void *may_user;
};

static sqlite3_stmt *real(const struct peg__sqlite_stmt *stmt)
{
    return peg__unconst(stmt);
}

/* ---- errors --------------------------------------------------------------------------- */

static peg_status explain(int rc, const char *words, peg_error *reterr)
{
    switch (rc & 0xFF) { /* what is above says more exactly which of them */
    case SQLITE_NOMEM:
        return peg__fail_nomem(reterr);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return peg__fail(reterr, PEG_ESTATE, "E_SQLITE_BUSY",
                         "another connection is using the database: %.200s; try again", words);
    case SQLITE_INTERRUPT:
        return peg__fail(reterr, PEG_ECANCELED, "E_SQLITE", "%.200s", words);
    case SQLITE_CONSTRAINT:
        return peg__fail(reterr, PEG_EEXISTS, "E_SQLITE_CONSTRAINT", "%.256s", words);
    case SQLITE_TOOBIG:
        return peg__fail(reterr, PEG_ELIMIT, "E_SQLITE_TOO_BIG", "%.200s", words);
    default:
        return peg__fail(reterr, PEG_EIO, "E_SQLITE", "%.300s", words);
    }
}

/* SQLite adds words to these only about the schema, behind "malformed". */
bool peg__sqlite_is_damage(const peg_error *error)
{
    return strcmp(error->message, sqlite3_errstr(SQLITE_CORRUPT)) == 0 ||
           strcmp(error->message, sqlite3_errstr(SQLITE_NOTADB)) == 0 ||
           strncmp(error->message, "malformed", strlen("malformed")) == 0;
}

static peg_status check_result(sqlite3 *handle, int rc, peg_error *reterr)
{
    return rc == SQLITE_OK ? PEG_OK : explain(rc, sqlite3_errmsg(handle), reterr);
}

static peg_status check_stmt(sqlite3_stmt *stmt, int rc, peg_error *reterr)
{
    return rc == SQLITE_OK ? PEG_OK : explain(rc, sqlite3_errmsg(sqlite3_db_handle(stmt)), reterr);
}

/* ---- connections ------------------------------------------------------------------------- */

static int wait_for_lock(void *user, int n_waits)
{
    enum { PAUSE_MS = 5 };
    struct peg__sqlite *db = user;

    if (n_waits == 0)
        db->waited_ms = 0;
    if (db->waited_ms >= PEG_LIMIT_SQLITE_BUSY_MS ||
        (db->should_stop && db->should_stop(db->stop_user)))
        return 0;
    sqlite3_sleep(PAUSE_MS);
    db->waited_ms += PAUSE_MS;
    return 1;
}

static int is_to_stop(void *user)
{
    struct peg__sqlite *db = user;

    return db->should_stop(db->stop_user);
}

static peg_status harden(sqlite3 *handle, peg_error *reterr)
{
    static const struct {
        int option;
        int value;
    } options[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        int now = -1;

        if (sqlite3_db_config(handle, options[i].option, options[i].value, &now) != SQLITE_OK ||
            now != options[i].value)
            return peg__fail(
                reterr, PEG_EIO, "E_SQLITE",
                "this build of SQLite cannot be hardened (option %d); use 3.37 or later",
                options[i].option);
    }
    return PEG_OK;
}

/* What SQLite would take for something else than a file gets "./" in front. */
static peg_status open_handle(const char *path, enum peg__sqlite_mode mode, sqlite3 **ret_handle,
                              peg_error *reterr)
{
    static const int flags[] = {
        [PEG__SQLITE_WRITE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
        [PEG__SQLITE_READ] = SQLITE_OPEN_READONLY,
        [PEG__SQLITE_MEMORY] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
    };
    const bool is_odd =
        mode != PEG__SQLITE_MEMORY && (path[0] == ':' || sqlite3_strnicmp(path, "file:", 5) == 0);
    const size_t size = mode == PEG__SQLITE_MEMORY ? sizeof(":memory:") : strlen(path) + 3;
    PEG_CLEANUP(peg__freep) char *name = peg__alloc(size);
    peg_status status;
    int rc;

    if (!name)
        return peg__fail_nomem(reterr);
    snprintf(name, size, "%s%s", is_odd ? "./" : "",
             mode == PEG__SQLITE_MEMORY ? ":memory:" : path);
    rc = sqlite3_open_v2(name, ret_handle, flags[mode] | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        return PEG_OK;
    status = explain(rc, *ret_handle ? sqlite3_errmsg(*ret_handle) : sqlite3_errstr(rc), reterr);
    sqlite3_close_v2(*ret_handle);
    return status;
}

peg_status peg__sqlite_open(const char *path, enum peg__sqlite_mode mode,
                            struct peg__sqlite **ret_db, peg_error *reterr)
{
    struct peg__sqlite *db;
    peg_status status;

    if (mode != PEG__SQLITE_MEMORY && (!path || !*path))
        return peg__fail(reterr, PEG_EINVAL, "E_SQLITE", "a database file needs a path");
    db = peg__alloc_zero(1, sizeof(*db));
    if (!db)
        return peg__fail_nomem(reterr);
    status = open_handle(path, mode, &db->handle, reterr);
    if (status) {
        peg__free(db);
        return status;
    }
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_handler(db->handle, wait_for_lock, db);
    status = harden(db->handle, reterr);
    if (!status && mode == PEG__SQLITE_WRITE)
        status = peg__sqlite_exec(db, "PRAGMA journal_mode = WAL", reterr);
    if (!status && mode == PEG__SQLITE_READ)
        status = peg__sqlite_freeze(db, reterr);
    if (status) {
        peg__sqlite_close(db);
        return status;
    }
    *ret_db = db;
    return PEG_OK;
}

struct peg__sqlite *peg__sqlite_close(struct peg__sqlite *db)
{
    if (!db)
        return NULL;
    sqlite3_close_v2(db->handle);
    peg__free(db);
    return NULL;
}

peg_status peg__sqlite_freeze(struct peg__sqlite *db, peg_error *reterr)
{
    return peg__sqlite_exec(db, "PRAGMA query_only = ON", reterr);
}

peg_status peg__sqlite_scratch_in_memory(struct peg__sqlite *db, peg_error *reterr)
{
    return peg__sqlite_exec(db, "PRAGMA temp_store = MEMORY", reterr);
}

peg_status peg__sqlite_bound_functions(struct peg__sqlite *db, peg_error *reterr)
{
    return peg__sqlite_text_functions(db->handle, reterr);
}

static bool takes_json_for_unsafe;
static pthread_once_t json_once = PTHREAD_ONCE_INIT;

static void try_json(void)
{
    sqlite3 *handle = NULL;

    if (sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
        SQLITE_OK) {
        sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        takes_json_for_unsafe =
            sqlite3_exec(handle, "CREATE VIEW v AS SELECT json('1')", NULL, NULL, NULL) ==
                SQLITE_OK &&
            sqlite3_exec(handle, "SELECT * FROM v", NULL, NULL, NULL) != SQLITE_OK;
    }
    sqlite3_close_v2(handle);
}

void peg__sqlite_let_views_use_json(struct peg__sqlite *db)
{
    pthread_once(&json_once, try_json);
    if (takes_json_for_unsafe)
        sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
}

int64_t peg__sqlite_changes(const struct peg__sqlite *db)
{
    return sqlite3_changes64(db->handle);
}

int64_t peg__sqlite_last_rowid(const struct peg__sqlite *db)
{
    return sqlite3_last_insert_rowid(db->handle);
}

void peg__sqlite_interrupt(struct peg__sqlite *db)
{
    sqlite3_interrupt(db->handle);
}

int64_t peg__sqlite_memory_used(void)
{
    return sqlite3_memory_used();
}

void peg__sqlite_set_limit(struct peg__sqlite *db, enum peg__sqlite_limit limit, int value)
{
    static const int ids[] = {
        [PEG__SQLITE_LIMIT_LENGTH] = SQLITE_LIMIT_LENGTH,
        [PEG__SQLITE_LIMIT_SQL_LENGTH] = SQLITE_LIMIT_SQL_LENGTH,
        [PEG__SQLITE_LIMIT_COLUMNS] = SQLITE_LIMIT_COLUMN,
        [PEG__SQLITE_LIMIT_EXPR_DEPTH] = SQLITE_LIMIT_EXPR_DEPTH,
        [PEG__SQLITE_LIMIT_COMPOUND] = SQLITE_LIMIT_COMPOUND_SELECT,
        [PEG__SQLITE_LIMIT_ATTACHED] = SQLITE_LIMIT_ATTACHED,
        [PEG__SQLITE_LIMIT_FUNCTION_ARGS] = SQLITE_LIMIT_FUNCTION_ARG,
        [PEG__SQLITE_LIMIT_VARIABLES] = SQLITE_LIMIT_VARIABLE_NUMBER,
    };

    sqlite3_limit(db->handle, ids[limit], value);
}

void peg__sqlite_watch(struct peg__sqlite *db, int steps, peg__sqlite_stop_fn should_stop,
                       void *user)
{
    db->should_stop = should_stop;
    db->stop_user = user;
    sqlite3_progress_handler(db->handle, steps, should_stop ? is_to_stop : NULL, db);
}

static enum peg__sqlite_action action_of(int code)
{
    switch (code) {
    case SQLITE_SELECT:
        return PEG__SQLITE_SELECT;
    case SQLITE_RECURSIVE:
        return PEG__SQLITE_RECURSIVE;
    case SQLITE_FUNCTION:
        return PEG__SQLITE_FUNCTION;
    case SQLITE_READ:
        return PEG__SQLITE_READ_OF;
    case SQLITE_PRAGMA:
        return PEG__SQLITE_PRAGMA;
    default:
        return PEG__SQLITE_OTHER;
    }
}

static int authorize(void *user, int code, const char *first, const char *second,
                     const char *database, const char *source)
{
    struct peg__sqlite *db = user;
    const struct peg__sqlite_request request = {action_of(code), first, second, database, source};

    return db->may(&request, db->may_user) ? SQLITE_OK : SQLITE_DENY;
}

void peg__sqlite_guard(struct peg__sqlite *db, peg__sqlite_may_fn may, void *user)
{
    db->may = may;
    db->may_user = user;
    sqlite3_set_authorizer(db->handle, may ? authorize : NULL, db);
}

/* ---- statements ---------------------------------------------------------------------------- */

peg_status peg__sqlite_exec(struct peg__sqlite *db, const char *sql, peg_error *reterr)
{
    return check_result(db->handle, sqlite3_exec(db->handle, sql, NULL, NULL, NULL), reterr);
}

peg_status peg__sqlite_prepare(struct peg__sqlite *db, peg_str sql,
                               struct peg__sqlite_stmt **ret_stmt, peg_str *ret_tail,
                               peg_error *reterr)
{
    sqlite3_stmt *stmt = NULL;
    const char *tail = NULL;
    peg_status status;

    if (sql.len > INT_MAX)
        return peg__fail(reterr, PEG_ELIMIT, "E_SQLITE_TOO_BIG", "the statement is over 2 GiB");
    if (sql.len == 0)
        sql.ptr = "";
    status = check_result(
        db->handle, sqlite3_prepare_v2(db->handle, sql.ptr, (int)sql.len, &stmt, &tail), reterr);
    if (status)
        return status;
    if (ret_tail)
        *ret_tail = peg__str_from(sql, (size_t)(tail - sql.ptr));
    *ret_stmt = (struct peg__sqlite_stmt *)stmt;
    return PEG_OK;
}

struct peg__sqlite_stmt *peg__sqlite_finalize(struct peg__sqlite_stmt *stmt)
{
    sqlite3_finalize(real(stmt));
    return NULL;
}

int peg__sqlite_n_params(const struct peg__sqlite_stmt *stmt)
{
    return sqlite3_bind_parameter_count(real(stmt));
}

peg_status peg__sqlite_bind_null(struct peg__sqlite_stmt *stmt, int index, peg_error *reterr)
{
    return check_stmt(real(stmt), sqlite3_bind_null(real(stmt), index), reterr);
}

peg_status peg__sqlite_bind_int64(struct peg__sqlite_stmt *stmt, int index, int64_t number,
                                  peg_error *reterr)
{
    return check_stmt(real(stmt), sqlite3_bind_int64(real(stmt), index, number), reterr);
}

peg_status peg__sqlite_bind_double(struct peg__sqlite_stmt *stmt, int index, double number,
                                   peg_error *reterr)
{
    return check_stmt(real(stmt), sqlite3_bind_double(real(stmt), index, number), reterr);
}

/* A NULL pointer would be bound as NULL, but no bytes are still text. */
peg_status peg__sqlite_bind_text(struct peg__sqlite_stmt *stmt, int index, peg_str utf8,
                                 peg_error *reterr)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): SQLite's own constant */
    return check_stmt(real(stmt),
                      sqlite3_bind_text64(real(stmt), index, utf8.len ? utf8.ptr : "", utf8.len,
                                          SQLITE_TRANSIENT, SQLITE_UTF8),
                      reterr);
}

peg_status peg__sqlite_bind_blob(struct peg__sqlite_stmt *stmt, int index, peg_str bytes,
                                 peg_error *reterr)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): SQLite's own constant */
    return check_stmt(real(stmt),
                      sqlite3_bind_blob64(real(stmt), index, bytes.len ? bytes.ptr : "", bytes.len,
                                          SQLITE_TRANSIENT),
                      reterr);
}

peg_status peg__sqlite_step(struct peg__sqlite_stmt *stmt, bool *ret_is_row, peg_error *reterr)
{
    const int rc = sqlite3_step(real(stmt));

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return check_stmt(real(stmt), rc, reterr);
    *ret_is_row = rc == SQLITE_ROW;
    return PEG_OK;
}

peg_status peg__sqlite_run(struct peg__sqlite_stmt *stmt, peg_error *reterr)
{
    peg_status status;
    bool is_row;

    do {
        is_row = false;
        status = peg__sqlite_step(stmt, &is_row, reterr);
    } while (!status && is_row);
    peg__sqlite_reset(stmt);
    return status;
}

void peg__sqlite_reset(struct peg__sqlite_stmt *stmt)
{
    sqlite3_reset(real(stmt)); /* repeats the error of the last step, which was reported then */
    sqlite3_clear_bindings(real(stmt));
}

bool peg__sqlite_is_read_only(const struct peg__sqlite_stmt *stmt)
{
    return sqlite3_stmt_readonly(real(stmt)) != 0;
}

bool peg__sqlite_is_explain(const struct peg__sqlite_stmt *stmt)
{
    return sqlite3_stmt_isexplain(real(stmt)) != 0;
}

int peg__sqlite_n_columns(const struct peg__sqlite_stmt *stmt)
{
    return sqlite3_column_count(real(stmt));
}

const char *peg__sqlite_column_name(struct peg__sqlite_stmt *stmt, int column)
{
    const char *name = sqlite3_column_name(real(stmt), column);

    return name ? name : "";
}

enum peg__sqlite_type peg__sqlite_type_of(struct peg__sqlite_stmt *stmt, int column)
{
    switch (sqlite3_column_type(real(stmt), column)) {
    case SQLITE_INTEGER:
        return PEG__SQLITE_INTEGER;
    case SQLITE_FLOAT:
        return PEG__SQLITE_REAL;
    case SQLITE_TEXT:
        return PEG__SQLITE_TEXT;
    case SQLITE_BLOB:
        return PEG__SQLITE_BLOB;
    default:
        return PEG__SQLITE_NULL;
    }
}

int64_t peg__sqlite_int64(struct peg__sqlite_stmt *stmt, int column)
{
    return sqlite3_column_int64(real(stmt), column);
}

double peg__sqlite_double(struct peg__sqlite_stmt *stmt, int column)
{
    return sqlite3_column_double(real(stmt), column);
}

/* The pointer first: asking for it may convert the value and change how many bytes it has. */
peg_str peg__sqlite_text(struct peg__sqlite_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(real(stmt), column);

    if (!text)
        return peg__strn("", 0);
    return peg__strn((const char *)text, (size_t)sqlite3_column_bytes(real(stmt), column));
}

peg_str peg__sqlite_blob(struct peg__sqlite_stmt *stmt, int column)
{
    const void *bytes = sqlite3_column_blob(real(stmt), column);

    if (!bytes)
        return peg__strn("", 0);
    return peg__strn(bytes, (size_t)sqlite3_column_bytes(real(stmt), column));
}

/* ---- transactions -----------------------------------------------------------------------------
 */

peg_status peg__sqlite_begin(struct peg__sqlite *db, peg_error *reterr)
{
    return peg__sqlite_exec(db, "BEGIN IMMEDIATE", reterr);
}

/* BEGIN alone takes no lock: the first read does. */
peg_status peg__sqlite_begin_read(struct peg__sqlite *db, peg_error *reterr)
{
    peg_status status = peg__sqlite_exec(db, "BEGIN", reterr);

    if (status)
        return status;
    status = peg__sqlite_exec(db, "SELECT 1 FROM sqlite_schema LIMIT 1", reterr);
    if (status)
        peg__sqlite_rollback(db);
    return status;
}

peg_status peg__sqlite_commit(struct peg__sqlite *db, peg_error *reterr)
{
    const peg_status status = peg__sqlite_exec(db, "COMMIT", reterr);

    if (status)
        peg__sqlite_rollback(db);
    return status;
}

void peg__sqlite_rollback(struct peg__sqlite *db)
{
    if (!sqlite3_get_autocommit(db->handle))
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

peg_status peg__sqlite_end(struct peg__sqlite *db, peg_status status, peg_error *reterr)
{
    if (!status)
        return peg__sqlite_commit(db, reterr);
    peg__sqlite_rollback(db);
    return status;
}
