/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What may be read of a database, found out anew for each call: tables, what views read below
 * themselves, and the sketch. Virtual tables and table-valued functions are used once before the
 * guard is there: connecting them writes to the schema's table in memory, which it would refuse.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "tools/sqlite.h"
#include "json/json.h"

/* ---- words -------------------------------------------------------------------------------- */

void peg__sqlite_quote(peg_str name, struct peg__buf *out)
{
    peg__buf_putc(out, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"')
            peg__buf_putc(out, '"');
        peg__buf_putc(out, name.ptr[i]);
    }
    peg__buf_putc(out, '"');
}

bool peg__sqlite_add_text(peg_str bytes, size_t max, struct peg__buf *out)
{
    const size_t start = out->len;

    if (bytes.len <= max && peg__utf8_is_valid(bytes)) {
        peg__buf_str(out, bytes);
        return false;
    }
    while (bytes.len) {
        const size_t len = peg__utf8_char_len(bytes);
        const peg_str c = len ? peg__strn(bytes.ptr, len) : peg__str("\xEF\xBF\xBD");

        if (out->status || out->len - start + c.len > max)
            return true;
        peg__buf_str(out, c);
        bytes = peg__str_from(bytes, len ? len : 1);
    }
    return false;
}

/* Prepares a text that is put together: PREFIX "name" SUFFIX. */
static peg_status prepare_about(struct peg__sqlite *db, const char *prefix, peg_str name,
                                const char *suffix, struct peg__sqlite_stmt **ret_stmt,
                                peg_error *reterr)
{
    struct peg__buf sql = PEG__BUF(PEG_LIMIT_SQL_BYTES);
    peg_status status;

    peg__buf_puts(&sql, prefix);
    peg__sqlite_quote(name, &sql);
    peg__buf_puts(&sql, suffix);
    if (sql.status == PEG_OK)
        status = peg__sqlite_prepare(db, peg__buf_view(&sql), ret_stmt, NULL, reterr);
    else if (sql.status == PEG_ENOMEM)
        status = peg__fail_nomem(reterr);
    else
        status = peg__fail(reterr, sql.status, "E_SQLITE", "a name is longer than 100,000 bytes");
    peg__buf_free(&sql);
    return status;
}

/* ---- objects --------------------------------------------------------------------------------- */

const struct peg__sqlite_object *peg__sqlite_scope_find(const struct peg__sqlite_scope *scope,
                                                        peg_str name)
{
    for (size_t i = 0; i < scope->n_objects; i++) {
        if (peg__sql_names_equal(scope->objects[i].name, name))
            return &scope->objects[i];
    }
    return NULL;
}

static peg_status add_object(struct peg__sqlite_scope *scope, peg_str name, peg_str type,
                             peg_error *reterr)
{
    struct peg__sqlite_object *object;

    if (scope->n_objects >= PEG_LIMIT_SQLITE_OBJECTS)
        return peg__fail(reterr, PEG_ELIMIT, "E_SQLITE",
                         "the database has more than 10,000 tables and views");
    if (!PEG__RESERVE(scope->objects, scope->n_objects + 1, scope->objects_capacity))
        return peg__fail_nomem(reterr);
    object = &scope->objects[scope->n_objects];
    *object = (struct peg__sqlite_object){
        .name = {peg__arena_copy(&scope->arena, name), name.len},
        .is_view = peg__str_is(type, "view"),
        .is_virtual = peg__str_is(type, "virtual"),
        .is_inner = peg__str_is(type, "shadow"),
    };
    if (!object->name.ptr)
        return peg__fail_nomem(reterr);
    scope->n_objects++;
    return PEG_OK;
}

static peg_status find_objects(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                               peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    peg_status status = peg__sqlite_prepare(
        db,
        peg__str("SELECT name, type FROM pragma_table_list WHERE schema = 'main' ORDER BY name"),
        &stmt, NULL, reterr);
    bool is_row;

    while (!status && !(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row) {
        const peg_str name = peg__sqlite_text(stmt, 0);

        if (!peg__sql_is_reserved(name))
            status = add_object(scope, name, peg__sqlite_text(stmt, 1), reterr);
    }
    return status;
}

/* ---- columns, for the sketch ---- */

/* Appends them to a list of columns, each after `before`; hidden ones of virtual tables too. */
static peg_status add_columns(struct peg__sqlite *db, peg_str table, const char *before,
                              struct peg__buf *out, peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    peg_status status = prepare_about(db, "PRAGMA main.table_xinfo(", table, ")", &stmt, reterr);
    bool is_row;
    size_t n = 0;

    while (!status && !(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row) {
        peg__buf_puts(out, n++ ? ", " : "");
        peg__buf_puts(out, before);
        peg__sqlite_quote(peg__sqlite_text(stmt, 1), out);
    }
    if (!status && n == 0)
        return peg__fail(reterr, PEG_EIO, "E_SQLITE", "'%.100s' cannot be read", table.ptr);
    return status;
}

static peg_status take_status(const struct peg__buf *buf, peg_error *reterr)
{
    if (buf->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (buf->status)
        return peg__fail(reterr, buf->status, "E_SQLITE", "the schema takes more than 256 MiB");
    return PEG_OK;
}

static peg_status add_to_sketch(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                                const struct peg__sqlite_object *object, peg_error *reterr)
{
    struct peg__buf sql = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    peg__buf_puts(&sql, object->is_view ? "CREATE VIEW " : "CREATE TABLE ");
    peg__sqlite_quote(object->name, &sql);
    peg__buf_puts(&sql, object->is_view ? " AS SELECT " : "(");
    status = add_columns(db, object->name, object->is_view ? "NULL AS " : "", &sql, reterr);
    if (!object->is_view)
        peg__buf_puts(&sql, ")");
    if (!status)
        status = take_status(&sql, reterr);
    if (!status)
        status = peg__sqlite_exec(scope->sketch, sql.ptr, reterr);
    peg__buf_free(&sql);
    return status;
}

/* ---- what views read ---- */

struct recorder {
    struct peg__sqlite_scope *scope;
    peg_status status;
};

static bool has_edge(const struct peg__sqlite_scope *scope, peg_str view, peg_str table)
{
    for (size_t i = 0; i < scope->n_edges; i++) {
        if (peg__str_eq(scope->edges[i].view, view) && peg__str_eq(scope->edges[i].table, table))
            return true;
    }
    return false;
}

static peg_status add_edge(struct peg__sqlite_scope *scope, peg_str view, peg_str table)
{
    struct peg__sqlite_edge *edge;

    if (has_edge(scope, view, table))
        return PEG_OK;
    if (scope->n_edges >= PEG_LIMIT_SQLITE_OBJECTS)
        return PEG_ELIMIT;
    if (!PEG__RESERVE(scope->edges, scope->n_edges + 1, scope->edges_capacity))
        return PEG_ENOMEM;
    edge = &scope->edges[scope->n_edges];
    edge->view = peg__strn(peg__arena_copy(&scope->arena, view), view.len);
    edge->table = peg__strn(peg__arena_copy(&scope->arena, table), table.len);
    if (!edge->view.ptr || !edge->table.ptr)
        return PEG_ENOMEM;
    scope->n_edges++;
    return PEG_OK;
}

/* Below one view everything is its own: a CTE in its text is a source like a view, and what that
 * reads, the view may read. */
static bool record(const struct peg__sqlite_request *request, void *user)
{
    struct recorder *recorder = user;

    if (request->action == PEG__SQLITE_READ_OF && request->first && request->source &&
        !recorder->status)
        recorder->status =
            add_edge(recorder->scope, peg__str(request->source), peg__str(request->first));
    return true;
}

static peg_status follow_view(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                              const struct peg__sqlite_object *view, peg_error *reterr)
{
    struct recorder recorder = {.scope = scope};
    struct peg__sqlite_stmt *stmt = NULL;
    peg_status status;

    peg__sqlite_guard(db, record, &recorder);
    status = prepare_about(db, "SELECT * FROM main.", view->name, "", &stmt, reterr);
    peg__sqlite_guard(db, NULL, NULL);
    peg__sqlite_finalize(stmt);
    if (status || !recorder.status)
        return status;
    if (recorder.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_SQLITE", "views read more than 10,000 tables");
}

/* ---- opening ---- */

/* Uses it once, so that it is connected. */
static peg_status touch(struct peg__sqlite *db, peg_str table, peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = NULL;
    const peg_status status = prepare_about(db, "SELECT 1 FROM ", table, "", &stmt, reterr);

    peg__sqlite_finalize(stmt);
    return status;
}

static peg_status return_error(peg_error *reterr, const peg_error *why)
{
    if (reterr)
        *reterr = *why;
    return why->status;
}

static peg_status open_functions(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                                 peg_error *reterr)
{
    const char *const *name = scope->functions;
    peg_error why;

    for (; name && *name; name++) {
        peg_status status;

        if (peg__sqlite_scope_find(scope, peg__str(*name)))
            return peg__fail(reterr, PEG_EINVAL, "E_SQLITE_TOOL",
                             "'%.100s' is a table of this database, not a function; list it under "
                             "objects",
                             *name);
        status = touch(db, peg__str(*name), &why);
        if (!status)
            status = touch(scope->sketch, peg__str(*name), &why);
        if (status == PEG_EIO)
            return peg__fail_because(reterr, PEG_ENOTFOUND, "E_SQLITE_TOOL", &why,
                                     "there is no table-valued function '%.100s'", *name);
        if (status)
            return return_error(reterr, &why);
    }
    return PEG_OK;
}

static peg_status open_object(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                              struct peg__sqlite_object *object, peg_error *reterr)
{
    peg_status status;

    if (object->is_allowed) /* listed twice */
        return PEG_OK;
    status = touch(db, object->name, reterr);
    if (!status)
        status = add_to_sketch(scope, db, object, reterr);
    if (!status && object->is_view)
        status = follow_view(scope, db, object, reterr);
    if (!status)
        object->is_allowed = true;
    return status;
}

/* A view that cannot be read any more, or a virtual table of an unknown kind, is passed over. */
static peg_status open_all(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                           peg_error *reterr)
{
    for (size_t i = 0; i < scope->n_objects; i++) {
        peg_error why;
        peg_status status;

        if (scope->objects[i].is_inner)
            continue;
        status = open_object(scope, db, &scope->objects[i], &why);
        if (status && status != PEG_EIO)
            return return_error(reterr, &why);
    }
    return PEG_OK;
}

static peg_status open_listed(struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                              const char *const *names, bool is_strict, peg_error *reterr)
{
    for (; *names; names++) {
        const struct peg__sqlite_object *found = peg__sqlite_scope_find(scope, peg__str(*names));
        peg_error why;
        peg_status status;

        if (!found && is_strict)
            return peg__fail(reterr, PEG_ENOTFOUND, "E_SQLITE_TOOL",
                             "there is no table or view '%.100s' in the database", *names);
        if (!found)
            continue;
        status = open_object(scope, db, &scope->objects[found - scope->objects], &why);
        if (status && (is_strict || status != PEG_EIO))
            return return_error(reterr, &why);
    }
    return PEG_OK;
}

peg_status peg__sqlite_scope_open(struct peg__sqlite *db, const char *const *objects,
                                  const char *const *functions, bool is_strict,
                                  struct peg__sqlite_scope *ret_scope, peg_error *reterr)
{
    peg_status status;

    *ret_scope = (struct peg__sqlite_scope){.functions = functions};
    peg__sqlite_let_views_use_json(db);
    status = peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &ret_scope->sketch, reterr);
    if (!status)
        status = find_objects(ret_scope, db, reterr);
    if (status)
        return status;
    status = objects ? open_listed(ret_scope, db, objects, is_strict, reterr)
                     : open_all(ret_scope, db, reterr);
    return status ? status : open_functions(ret_scope, db, reterr);
}

void peg__sqlite_scope_close(struct peg__sqlite_scope *scope)
{
    peg__sqlite_close(scope->sketch);
    peg__free(scope->objects);
    peg__free(scope->edges);
    peg__arena_free(&scope->arena);
    *scope = (struct peg__sqlite_scope){0};
}

void peg__sqlite_scope_list(const struct peg__sqlite_scope *scope, struct peg__buf *out)
{
    bool is_first = true;

    for (size_t i = 0; i < scope->n_objects; i++) {
        if (!scope->objects[i].is_allowed)
            continue;
        if (!is_first)
            peg__buf_puts(out, ", ");
        peg__sqlite_add_text(scope->objects[i].name, SIZE_MAX, out);
        is_first = false;
    }
    if (is_first)
        peg__buf_puts(out, "none");
}

/* ---- describing ---- */

/* A foreign key, a comment or the text of a view may say what is not to be known. */
static bool names_hidden(const struct peg__sqlite_scope *scope, peg_str sql)
{
    struct peg__sql_token token;
    unsigned depth = 0;
    const peg_str whole = sql;

    if (memmem(sql.ptr, sql.len, "--", 2) || memmem(whole.ptr, whole.len, "/*", 2))
        return true;
    while (peg__sql_next(&sql, &depth, &token)) {
        for (size_t i = 0; i < scope->n_objects; i++) {
            if (!scope->objects[i].is_allowed && peg__sql_is_name(&token, scope->objects[i].name))
                return true;
        }
    }
    return false;
}

static bool has_hidden(const struct peg__sqlite_scope *scope)
{
    for (size_t i = 0; i < scope->n_objects; i++) {
        if (!scope->objects[i].is_allowed && !scope->objects[i].is_inner)
            return true;
    }
    return false;
}

/* CREATE TABLE name (column TYPE, ...), from what SQLite knows. */
static peg_status put_columns(struct peg__sqlite *db, const struct peg__sqlite_object *object,
                              struct peg__buf *out, peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    peg_status status =
        prepare_about(db, "PRAGMA main.table_info(", object->name, ")", &stmt, reterr);
    bool is_row;
    size_t n = 0;

    peg__buf_puts(out, object->is_view ? "CREATE VIEW " : "CREATE TABLE ");
    peg__sqlite_add_text(object->name, SIZE_MAX, out);
    peg__buf_puts(out, " (");
    while (!status && !(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row) {
        const peg_str type = peg__sqlite_text(stmt, 2);

        peg__buf_puts(out, n++ ? ", " : "");
        peg__sqlite_add_text(peg__sqlite_text(stmt, 1), SIZE_MAX, out);
        if (type.len)
            peg__buf_putc(out, ' ');
        peg__sqlite_add_text(peg__sqlite_text(stmt, 2), SIZE_MAX, out);
    }
    peg__buf_puts(out, ")");
    return status;
}

static peg_status describe_object(const struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                                  const struct peg__sqlite_object *object, struct peg__buf *out,
                                  peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status = peg__sqlite_prepare(
        db,
        peg__str("SELECT sql FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE AND type IN "
                 "('table', 'view')"),
        &stmt, NULL, reterr);

    if (!status)
        status = peg__sqlite_bind_text(stmt, 1, object->name, reterr);
    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (status)
        return status;
    if (is_row && !(has_hidden(scope) && names_hidden(scope, peg__sqlite_text(stmt, 0))))
        peg__sqlite_add_text(peg__sqlite_text(stmt, 0), SIZE_MAX, out);
    else
        status = put_columns(db, object, out, reterr);
    peg__buf_puts(out, ";\n");
    return status;
}

peg_status peg__sqlite_scope_describe(const struct peg__sqlite_scope *scope, struct peg__sqlite *db,
                                      size_t max_bytes, struct peg__buf *out, peg_error *reterr)
{
    const size_t start = out->len;
    size_t n_left = 0;

    for (size_t i = 0; i < scope->n_objects; i++) {
        const size_t mark = out->len;
        peg_status status;

        if (!scope->objects[i].is_allowed)
            continue;
        status = describe_object(scope, db, &scope->objects[i], out, reterr);
        if (status)
            return status;
        if (!out->status && out->len - start > max_bytes) {
            out->len = mark;
            n_left++;
        }
    }
    if (n_left)
        peg__buf_printf(out, "(%zu more are too long to be shown)\n", n_left);
    return PEG_OK;
}
