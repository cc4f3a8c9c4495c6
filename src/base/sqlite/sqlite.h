/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_SQLITE_SQLITE_H
#define PEG_BASE_SQLITE_SQLITE_H

/*
 * A thin face on SQLite: only sqlite.c, sqlite_print.c and sqlite_text.c know it.
 *
 *   status = peg__sqlite_open(path, PEG__SQLITE_WRITE, &db, reterr);
 *   status = peg__sqlite_prepare(db, peg__str("SELECT a FROM t WHERE b = ?"), &stmt, NULL, reterr);
 *   status = peg__sqlite_bind_text(stmt, 1, text, reterr);
 *   while (!(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row)
 *       use(peg__sqlite_text(stmt, 0));
 *   peg__sqlite_finalize(stmt);
 *   peg__sqlite_close(db);
 *
 * Errors, everywhere, in the words of SQLite:
 *   PEG_ENOMEM     E_OUT_OF_MEMORY
 *   PEG_ESTATE     E_SQLITE_BUSY: another connection is writing, and was for longer than we wait
 *   PEG_ECANCELED  E_SQLITE: peg__sqlite_interrupt(), or what watches it said stop
 *   PEG_EEXISTS    E_SQLITE_CONSTRAINT: a key that is taken, or another constraint
 *   PEG_ELIMIT     E_SQLITE_TOO_BIG: a value or row is longer than a limit
 *   PEG_EIO        E_SQLITE: anything else, syntax errors included
 *
 * Damage among them (a file that is no database, or no longer a whole one) can be told apart:
 * peg__sqlite_is_damage().
 *
 * Threads: a connection and its statements are used by one thread at a time; interrupting is for
 * any thread. SQLite's own allocations are not ours, so no test makes them fail.
 */

#include "pegboard/common.h"

struct peg__sqlite;      /* a connection; owned */
struct peg__sqlite_stmt; /* a statement; owned, dies before its connection */

/* Was that error, as it came from here, about a damaged file? */
bool peg__sqlite_is_damage(const peg_error *error);

/* ---- connections ----------------------------------------------------------------- */

enum peg__sqlite_mode {
    PEG__SQLITE_WRITE,  /* the file is made if it is missing; write-ahead log, foreign keys */
    PEG__SQLITE_READ,   /* the file is there, and never changed through this connection */
    PEG__SQLITE_MEMORY, /* a database of this connection's own; path is not looked at */
};

/* Every connection is hardened: no extensions are loaded, the schema is not trusted with functions
 * that have side effects, and what would corrupt the file is refused. A path is a path, also if it
 * looks like a URI. A file that is no database may be found out only here or at the first use. */
peg_status peg__sqlite_open(const char *path, enum peg__sqlite_mode mode,
                            struct peg__sqlite **ret_db, peg_error *reterr) PEG_MUST_USE;
/* After its statements are finalized. */
struct peg__sqlite *peg__sqlite_close(struct peg__sqlite *db);

/* No statement of this connection changes anything from now on. */
peg_status peg__sqlite_freeze(struct peg__sqlite *db, peg_error *reterr) PEG_MUST_USE;
/* Sorts and other scratch in memory only, no temporary files. */
peg_status peg__sqlite_scratch_in_memory(struct peg__sqlite *db, peg_error *reterr) PEG_MUST_USE;
/* Text functions whose time grows with the text alone: SQLite's own can take hours for one step,
 * which no watch can stop. LIKE and GLOB then use no index. */
peg_status peg__sqlite_bound_functions(struct peg__sqlite *db, peg_error *reterr) PEG_MUST_USE;
/* SQLite 3.38 to 3.40 take their own JSON functions for unsafe in a view. Where that is so, this
 * trusts the schema with functions after all: its caller guards functions (below). */
void peg__sqlite_let_views_use_json(struct peg__sqlite *db);
/* Rows changed by the last INSERT, UPDATE or DELETE. */
int64_t peg__sqlite_changes(const struct peg__sqlite *db);
int64_t peg__sqlite_last_rowid(const struct peg__sqlite *db);
/* Stops what runs there now, as soon as it can be. Any thread, while the connection lives. */
void peg__sqlite_interrupt(struct peg__sqlite *db);
/* Bytes that all connections of the process hold; 0 if SQLite is configured not to count. */
int64_t peg__sqlite_memory_used(void);

enum peg__sqlite_limit {
    PEG__SQLITE_LIMIT_LENGTH, /* bytes of a value or a row */
    PEG__SQLITE_LIMIT_SQL_LENGTH,
    PEG__SQLITE_LIMIT_COLUMNS,
    PEG__SQLITE_LIMIT_EXPR_DEPTH,
    PEG__SQLITE_LIMIT_COMPOUND,
    PEG__SQLITE_LIMIT_ATTACHED,
    PEG__SQLITE_LIMIT_FUNCTION_ARGS,
    PEG__SQLITE_LIMIT_VARIABLES,
};
void peg__sqlite_set_limit(struct peg__sqlite *db, enum peg__sqlite_limit limit, int value);

/* Asked every `steps` steps of a statement, and while another connection has the lock; true stops
 * it. NULL takes it away. */
typedef bool (*peg__sqlite_stop_fn)(void *user);
void peg__sqlite_watch(struct peg__sqlite *db, int steps, peg__sqlite_stop_fn should_stop,
                       void *user);

/* What a statement is about to do, asked while it is prepared. */
enum peg__sqlite_action {
    PEG__SQLITE_SELECT,
    PEG__SQLITE_RECURSIVE,
    PEG__SQLITE_FUNCTION, /* second: its name */
    PEG__SQLITE_READ_OF,  /* first: table, second: column, perhaps "" */
    PEG__SQLITE_PRAGMA,   /* first: its name, second: its argument or NULL */
    PEG__SQLITE_OTHER,    /* everything else: writing, schemas, transactions, other files */
};
struct peg__sqlite_request {
    enum peg__sqlite_action action;
    const char *first; /* each may be NULL */
    const char *second;
    const char *database; /* "main", "temp" or the name of an attached one */
    const char *source;   /* the innermost view or trigger, or a CTE of the same name */
};
/* False refuses the statement. NULL takes it away. Prepared statements are prepared again. */
typedef bool (*peg__sqlite_may_fn)(const struct peg__sqlite_request *request, void *user);
void peg__sqlite_guard(struct peg__sqlite *db, peg__sqlite_may_fn may, void *user);

/* ---- statements -------------------------------------------------------------------- */

/* Runs all statements of a text and drops their rows. */
peg_status peg__sqlite_exec(struct peg__sqlite *db, const char *sql, peg_error *reterr);
/* The first statement of a text; *ret_stmt is NULL if there is none. ret_tail (may be NULL): what
 * comes after it, borrowed from sql. */
peg_status peg__sqlite_prepare(struct peg__sqlite *db, peg_str sql,
                               struct peg__sqlite_stmt **ret_stmt, peg_str *ret_tail,
                               peg_error *reterr) PEG_MUST_USE;
struct peg__sqlite_stmt *peg__sqlite_finalize(struct peg__sqlite_stmt *stmt);
static inline void peg__sqlite_finalizep(struct peg__sqlite_stmt **stmt)
{
    peg__sqlite_finalize(*stmt);
}
static inline void peg__sqlite_closep(struct peg__sqlite **db)
{
    peg__sqlite_close(*db);
}

/* Parameters count from 1; what is bound is copied. Whatever is not bound is NULL. */
int peg__sqlite_n_params(const struct peg__sqlite_stmt *stmt);
peg_status peg__sqlite_bind_null(struct peg__sqlite_stmt *stmt, int index, peg_error *reterr);
peg_status peg__sqlite_bind_int64(struct peg__sqlite_stmt *stmt, int index, int64_t number,
                                  peg_error *reterr) PEG_MUST_USE;
peg_status peg__sqlite_bind_double(struct peg__sqlite_stmt *stmt, int index, double number,
                                   peg_error *reterr) PEG_MUST_USE;
peg_status peg__sqlite_bind_text(struct peg__sqlite_stmt *stmt, int index, peg_str utf8,
                                 peg_error *reterr) PEG_MUST_USE;
peg_status peg__sqlite_bind_blob(struct peg__sqlite_stmt *stmt, int index, peg_str bytes,
                                 peg_error *reterr) PEG_MUST_USE;

/* The next row. After its end, and after an error, the statement has to be reset. */
peg_status peg__sqlite_step(struct peg__sqlite_stmt *stmt, bool *ret_is_row,
                            peg_error *reterr) PEG_MUST_USE;
/* To its end, dropping rows; then it is reset and has nothing bound. */
peg_status peg__sqlite_run(struct peg__sqlite_stmt *stmt, peg_error *reterr) PEG_MUST_USE;
/* To its beginning, with nothing bound. */
void peg__sqlite_reset(struct peg__sqlite_stmt *stmt);
/* Changes no database directly? True for a SELECT, also for BEGIN. */
bool peg__sqlite_is_read_only(const struct peg__sqlite_stmt *stmt);
bool peg__sqlite_is_explain(const struct peg__sqlite_stmt *stmt);

/* Columns count from 0. What is handed out is borrowed until the next step, reset or conversion. */
enum peg__sqlite_type {
    PEG__SQLITE_NULL,
    PEG__SQLITE_INTEGER,
    PEG__SQLITE_REAL,
    PEG__SQLITE_TEXT,
    PEG__SQLITE_BLOB,
};
int peg__sqlite_n_columns(const struct peg__sqlite_stmt *stmt);
const char *peg__sqlite_column_name(struct peg__sqlite_stmt *stmt, int column); /* never NULL */
enum peg__sqlite_type peg__sqlite_type_of(struct peg__sqlite_stmt *stmt, int column);
int64_t peg__sqlite_int64(struct peg__sqlite_stmt *stmt, int column);
double peg__sqlite_double(struct peg__sqlite_stmt *stmt, int column);
/* Text as it was stored, NUL-terminated: perhaps no UTF-8, perhaps with NULs. Empty for NULL. */
peg_str peg__sqlite_text(struct peg__sqlite_stmt *stmt, int column);
peg_str peg__sqlite_blob(struct peg__sqlite_stmt *stmt, int column);

/* ---- transactions ------------------------------------------------------------------- */

/* For writing: waits for other writers here, not in the midst of it. */
peg_status peg__sqlite_begin(struct peg__sqlite *db, peg_error *reterr) PEG_MUST_USE;
/* For reading: all that follows sees one state of the database. */
peg_status peg__sqlite_begin_read(struct peg__sqlite *db, peg_error *reterr) PEG_MUST_USE;
/* A commit that fails has been rolled back. */
peg_status peg__sqlite_commit(struct peg__sqlite *db, peg_error *reterr) PEG_MUST_USE;
/* Silent if there is no transaction. */
void peg__sqlite_rollback(struct peg__sqlite *db);
/* status PEG_OK commits, any other rolls back and is returned, with *reterr as it was:
 *   return peg__sqlite_end(db, save_all(db, ..., reterr), reterr); */
peg_status peg__sqlite_end(struct peg__sqlite *db, peg_status status, peg_error *reterr);

#endif
