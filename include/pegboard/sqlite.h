/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_SQLITE_H
#define PEGBOARD_SQLITE_H

/*
 * A tool that answers SELECT statements on a database: read-only, limited to the tables and views
 * that are listed, bounded in rows, columns, bytes and time. Everything else is refused by SQLite's
 * own authorizer, default deny; the words of a refusal tell nothing of what is hidden.
 *
 *   arguments {"sql": "SELECT ...", "params": ["1"]}
 *   result    {"columns": [...], "rows": [{...}], "count": n, "truncated": true?, "cut_cells": n?}
 *
 * params are strings, numbers, booleans and null. Of columns with one name the second is called
 * name_2; blobs are {"$blob_base64": "...", "bytes": n}; what is no UTF-8 becomes U+FFFD.
 *
 * The file is chosen here, by the host, never by a turn or a model.
 */

#include <pegboard/registry.h>
#include <pegboard/runner.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the database of one call: for a view of the world that depends on who asks. Runs its
 * statements with peg_sqlite_exec(). The context is the call's. If it fails, the log says why,
 * and the model gets the error that the database is not available. It leaves no temporary tables.
 */
typedef struct peg_sqlite_db peg_sqlite_db;
typedef peg_status (*peg_sqlite_fill_fn)(peg_sqlite_db *db, peg_ctx *ctx, void *user,
                                         peg_error *reterr);
/* Statements with an end, no result; or one statement with values: a JSON array for its ?. Before
 * the tool reads, so anything goes. PEG_EIO (E_SQLITE), PEG_EEXISTS (E_SQLITE_CONSTRAINT),
 * PEG_EINVAL (E_SQL_PARAMS). */
PEG_API PEG_MUST_USE peg_status peg_sqlite_exec(peg_sqlite_db *db, const char *sql,
                                                const peg_json *params, peg_error *reterr);

/* Only path or fill is required. Zero means the default, told here in brackets. */
typedef struct peg_sqlite_def {
    size_t size;             /* set by PEG_SQLITE_DEF_INIT */
    const char *path;        /* of the database file */
    peg_sqlite_fill_fn fill; /* instead of path: a database in memory, made for each call */
    void *fill_user;
    const char *const *objects; /* tables and views that may be read, NULL-terminated [all that are
                                 * there when the tool is made; with fill: all that it makes] */
    const char *const *functions; /* table-valued functions too, such as json_each [none] */

    const char *name;           /* of the tool ["sql_query"] */
    const char *description;    /* what the data is; tables and examples are added ["..."] */
    const char *const *notes;   /* lines for the description, NULL-terminated; may be NULL */
    const char *const *queries; /* to start with, NULL-terminated; may be NULL */
    bool require_order_by;
    bool hide_schema; /* leave the CREATE statements out of the description */

    size_t max_rows;       /* more: the result says truncated [100] */
    size_t max_columns;    /* more: an error [64] */
    size_t max_cell_bytes; /* longer text is cut, at a character [2,000] */
    size_t max_bytes;      /* of the result; more: truncated [256 KiB] */
    int64_t timeout_ms;    /* [5,000] */
} peg_sqlite_def;
#define PEG_SQLITE_DEF_INIT .size = sizeof(peg_sqlite_def)

/* PEG_EINVAL (E_SQLITE_TOOL, `where` names the field), PEG_EIO (E_SQLITE): it cannot be opened or
 * is no database; PEG_ENOTFOUND (E_SQLITE_TOOL): there is no such table or view. */
PEG_API PEG_MUST_USE peg_status peg_sqlite_tool_new(const peg_sqlite_def *def, peg_tool **ret_tool,
                                                    peg_error *reterr);
/* One call gives an agent a view of a database: makes the tool and registers it. */
PEG_API PEG_MUST_USE peg_status peg_sqlite_offer(peg_registry *registry, const peg_sqlite_def *def,
                                                 peg_error *reterr);
/* A dispatch middleware that offers a tool (user: a peg_tool) to the run it is in, and to no other:
 * for .input of a loop. */
PEG_API peg_status peg_offer_middleware(peg_dispatch *dispatch, peg_middleware_next *next,
                                        void *tool, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
