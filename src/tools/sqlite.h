/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_SQLITE_H
#define PEG_TOOLS_SQLITE_H

/*
 * What the files of the SQLite tool share. Two walls stand between a query and what is hidden:
 *
 *   1. The query has to compile in an empty database that holds the allowed tables and views by
 *      name and columns, and nothing else (the sketch). What the model reads about a mistake
 *      comes from there, so hidden and missing look the same.
 *   2. In the real database, SQLite's authorizer refuses whatever is not known to be allowed.
 *
 * sqlite_tool.c makes the tool; sqlite_query.c runs a call: opens the database, opens a scope on it
 * (sqlite_scope.c), puts the guard there (sqlite_guard.c), writes the rows (sqlite_rows.c).
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/sqlite/sqlite.h"
#include "pegboard/common.h"
#include "pegboard/sqlite.h"

/* ---- SQL as tokens: sql.c ---- */

/*
 * SQL as words, split as SQLite splits it: enough to know the names that a query gives to things of
 * its own, whether it is sorted, and whether anything comes after it. What a query may read is not
 * decided here (tools/sqlite_guard.c).
 */

enum peg__sql_kind {
    PEG__SQL_WORD,   /* a keyword or a plain name */
    PEG__SQL_QUOTED, /* '...', "...", `...` or [...]: SQLite takes each of them for a name */
    PEG__SQL_OTHER,  /* a number, a parameter, a character */
};

struct peg__sql_token {
    enum peg__sql_kind kind;
    peg_str text;   /* with its quotes; borrowed from the SQL */
    unsigned depth; /* of parentheses around it; of a parenthesis: outside it */
};

/* The next token, without space and comments; false at the end. *depth starts with 0. */
bool peg__sql_next(peg_str *rest, unsigned *depth, struct peg__sql_token *ret_token);

/* Is this token that name? Quotes removed, case of ASCII letters ignored, as SQLite does. */
bool peg__sql_is_name(const struct peg__sql_token *token, peg_str name);
bool peg__sql_names_equal(peg_str a, peg_str b);
/* sqlite_... and pragma_...: these describe the database itself. */
bool peg__sql_is_reserved(peg_str name);

/* A query that was read; owned. */
struct peg__sql {
    struct peg__sql_token *tokens;
    size_t n_tokens;
    size_t capacity;
    const struct peg__sql_token **names; /* that it gives: of its WITH and WINDOW clauses */
    size_t n_names;
    size_t names_capacity;
    bool is_ordered; /* ORDER BY outside all parentheses */
};

/* Out of memory only. The text is borrowed. */
peg_status peg__sql_read(peg_str text, struct peg__sql *ret_sql) PEG_MUST_USE;
void peg__sql_free(struct peg__sql *sql);
/* Does it give this name to something of its own? */
bool peg__sql_gives_name(const struct peg__sql *sql, peg_str name);
/* How many tokens it has once each CTE is written out where it is used; any number above max if it
 * is more than that, uses CTEs in a circle or has more than PEG_LIMIT_SQL_NAMES. Out of memory. */
peg_status peg__sql_size(const struct peg__sql *sql, size_t max, size_t *ret_size) PEG_MUST_USE;
/* Nothing but space, comments and semicolons? */
bool peg__sql_is_blank(peg_str text);

/* ---- the tool: owned by its peg_tool, immutable ------------------------------------- */

struct peg__sqlite_tool {
    struct peg__arena arena; /* all strings */
    const char *path;        /* or NULL: fill */
    peg_sqlite_fill_fn fill;
    void *fill_user;
    const char *const *objects; /* NULL-terminated; NULL: whatever fill made */
    const char *const *functions;
    bool require_order_by;
    size_t max_rows;
    size_t max_columns;
    size_t max_cell_bytes;
    size_t max_bytes;
    int64_t timeout_ms;
};

/* The handler; user is the struct above. */
void peg__sqlite_run_query(peg_call *call, const peg_json *args, void *user);

struct peg_sqlite_db {
    struct peg__sqlite *db;
};

/* Binds a scalar; other kinds are PEG_EINVAL (E_SQL_PARAMS). */
peg_status peg__sqlite_bind_json(struct peg__sqlite_stmt *stmt, int index, const peg_json *value,
                                 peg_error *reterr);

/* ---- what may be read of a database: owned, dies with the call ------------------------ */

struct peg__sqlite_object {
    peg_str name; /* as the database has it */
    bool is_view;
    bool is_virtual;
    bool is_inner; /* a table that a virtual one keeps its data in */
    bool is_allowed;
};

/* A view that reads a table, somewhere below an allowed view. */
struct peg__sqlite_edge {
    peg_str view;
    peg_str table;
};

struct peg__sqlite_scope {
    struct peg__arena arena;
    struct peg__sqlite_object *objects; /* all of the database, hidden ones too */
    size_t n_objects;
    size_t objects_capacity;
    struct peg__sqlite_edge *edges;
    size_t n_edges;
    size_t edges_capacity;
    const char *const *functions; /* table-valued ones that may be used; NULL-terminated */
    struct peg__sqlite *sketch;
};

/* Reads a database that has no guard yet. objects NULL: all of the user's. is_strict: one that
 * is missing is PEG_ENOTFOUND (E_SQLITE_TOOL), else it is passed over. PEG_EINVAL (E_SQLITE_TOOL)
 * for a function that is a table there. ret_scope is to be closed in any case. */
peg_status peg__sqlite_scope_open(struct peg__sqlite *db, const char *const *objects,
                                  const char *const *functions, bool is_strict,
                                  struct peg__sqlite_scope *ret_scope, peg_error *reterr);
void peg__sqlite_scope_close(struct peg__sqlite_scope *scope);
const struct peg__sqlite_object *peg__sqlite_scope_find(const struct peg__sqlite_scope *scope,
                                                        peg_str name);
/* "a, b, c": what is allowed, for sentences. */
void peg__sqlite_scope_list(const struct peg__sqlite_scope *scope, struct peg__buf *out);
/* How the allowed things were made, a statement a line, without a word about hidden ones; in a
 * database without a guard. What goes beyond max_bytes is counted. */
peg_status peg__sqlite_scope_describe(const struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                                      size_t max_bytes, struct peg__buf *out, peg_error *reterr);
/* A name in double quotes. */
void peg__sqlite_quote(peg_str name, struct peg__buf *out);
/* Any bytes as UTF-8: what is none becomes U+FFFD. At most max bytes, whole characters; true if it
 * was cut. */
bool peg__sqlite_add_text(peg_str bytes, size_t max, struct peg__buf *out);

/* ---- the guard: one for each connection of a call --------------------------------------- */

struct peg__sqlite_guard {
    const struct peg__sqlite_scope *scope;
    const struct peg__sql *sql;
    bool is_sketch;  /* nothing of the real database is there: no view reads anything */
    bool is_running; /* what is asked now comes from inside a virtual table */
    /* The first refusal. */
    bool has_refused;
    enum peg__sqlite_action refused;
    char name[128]; /* of the table or function, "" for other things */
};

/* A peg__sqlite_may_fn; user is the guard. */
bool peg__sqlite_may(const struct peg__sqlite_request *request, void *user);

/* ---- rows as JSON -------------------------------------------------------------------------- */

/* The answer: all rows of a statement within the tool's limits. PEG_ELIMIT (E_SQL_LIMIT, or
 * E_SQL_LIMIT when not even the names fit), and what stepping fails with. */
peg_status peg__sqlite_write_rows(const struct peg__sqlite_tool *tool,
                                  struct peg__sqlite_stmt *stmt, struct peg__buf *out,
                                  peg_error *reterr);

#endif
