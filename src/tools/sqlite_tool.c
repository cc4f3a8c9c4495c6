/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the SQLite tool: checks and copies the definition, and writes the description, from which
 * a model has to know what there is to ask.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/dispatch.h"
#include "pegboard/sqlite.h"
#include "tools/sqlite.h"
#include "json/json.h"

static const char input_schema[] =
    "{\"type\":\"object\",\"required\":[\"sql\"],\"additionalProperties\":false,\"properties\":{"
    "\"sql\":{\"type\":\"string\",\"description\":\"One SELECT statement; ? for each value of "
    "params\"},"
    "\"params\":{\"type\":\"array\",\"description\":\"Values for the parameters, in order\","
    "\"items\":{\"type\":[\"string\",\"number\",\"boolean\",\"null\"]}}}}";

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"columns\",\"rows\",\"count\"],"
    "\"additionalProperties\":false,\"properties\":{"
    "\"columns\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"count\":{\"type\":\"integer\",\"description\":\"Rows in this result\"},"
    "\"truncated\":{\"type\":\"boolean\",\"description\":\"There are more rows\"},"
    "\"cut_cells\":{\"type\":\"integer\",\"description\":\"Values that were cut\"}}}";

/* ---- checking ------------------------------------------------------------------------------- */

static peg_status reject_def(peg_error *reterr, const char *where, const char *message)
{
    peg__fail(reterr, PEG_EINVAL, "E_SQLITE_TOOL", "%s of a SQLite tool: %s", where, message);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status check_lines(const char *const *lines, const char *where, peg_error *reterr)
{
    size_t n = 0;

    for (; lines && *lines; lines++) {
        if (++n > PEG_LIMIT_SQLITE_OBJECTS)
            return reject_def(reterr, where, "there are more than 10,000");
        if (!**lines)
            return reject_def(reterr, where, "one of them is empty");
    }
    return PEG_OK;
}

static peg_status check_object_names(const char *const *names, const char *where, peg_error *reterr)
{
    const peg_status status = check_lines(names, where, reterr);

    for (; !status && names && *names; names++) {
        if (peg__sql_is_reserved(peg__str(*names)))
            return reject_def(
                reterr, where,
                "names that begin with sqlite_ or pragma_ tell of the database itself, "
                "and cannot be offered");
    }
    return status;
}

static peg_status check_limits(const peg_sqlite_def *def, peg_error *reterr)
{
    if (def->max_rows > PEG_LIMIT_SQLITE_ROWS_MAX)
        return reject_def(reterr, "/max_rows", "it is at most 100,000");
    if (def->max_columns > PEG_LIMIT_SQLITE_COLUMNS_MAX)
        return reject_def(reterr, "/max_columns", "it is at most 2,000");
    if (def->max_cell_bytes > PEG_LIMIT_SQLITE_CELL_BYTES_MAX)
        return reject_def(reterr, "/max_cell_bytes", "it is at most 1 MiB");
    if (def->max_bytes > PEG_LIMIT_SQLITE_RESULT_BYTES_MAX)
        return reject_def(reterr, "/max_bytes", "it is at most 8 MiB");
    if (def->timeout_ms < 0)
        return reject_def(reterr, "/timeout_ms", "a query without an end needs one: leave it 0");
    return PEG_OK;
}

static peg_status check_sqlite_def(const peg_sqlite_def *def, peg_error *reterr)
{
    peg_status status;

    if (!def)
        return reject_def(reterr, "", "there is no definition");
    if (!def->path == !def->fill)
        return reject_def(reterr, "/path", "exactly one of path and fill is needed");
    if (def->path && !*def->path)
        return reject_def(reterr, "/path", "it is empty");
    if (def->objects && !*def->objects)
        return reject_def(reterr, "/objects", "nothing could be read; NULL means everything");
    if ((status = check_object_names(def->objects, "/objects", reterr)) ||
        (status = check_object_names(def->functions, "/functions", reterr)) ||
        (status = check_lines(def->notes, "/notes", reterr)) ||
        (status = check_lines(def->queries, "/queries", reterr)))
        return status;
    return check_limits(def, reterr);
}

/* ---- copying ---- */

static void free_tool(void *user)
{
    struct peg__sqlite_tool *tool = user;

    peg__arena_free(&tool->arena);
    peg__free(tool);
}

/* Without its objects. NULL when out of memory. */
static struct peg__sqlite_tool *copy_def(const peg_sqlite_def *def)
{
    struct peg__sqlite_tool *tool = peg__alloc_zero(1, sizeof(*tool));

    if (!tool)
        return NULL;
    tool->fill = def->fill;
    tool->fill_user = def->fill_user;
    tool->require_order_by = def->require_order_by;
    tool->max_rows = PEG__OR_DEFAULT(def->max_rows, PEG_LIMIT_SQLITE_ROWS);
    tool->max_columns = PEG__OR_DEFAULT(def->max_columns, PEG_LIMIT_SQLITE_COLUMNS);
    tool->max_cell_bytes = PEG__OR_DEFAULT(def->max_cell_bytes, PEG_LIMIT_SQLITE_CELL_BYTES);
    tool->max_bytes = PEG__OR_DEFAULT(def->max_bytes, PEG_LIMIT_SQLITE_RESULT_BYTES);
    tool->timeout_ms = def->timeout_ms ? def->timeout_ms : PEG_LIMIT_SQLITE_MS;
    tool->functions = peg__arena_copy_list(&tool->arena, def->functions, NULL);
    if (def->objects)
        tool->objects = peg__arena_copy_list(&tool->arena, def->objects, NULL);
    if (def->path)
        tool->path = peg__arena_copy(&tool->arena, peg__str(def->path));
    if (tool->functions && !tool->objects == !def->objects && !tool->path == !def->path)
        return tool;
    free_tool(tool);
    return NULL;
}

/* What is allowed is decided once: what is made later is not offered by itself. */
static peg_status keep_objects(struct peg__sqlite_tool *tool, const struct peg__sqlite_scope *scope,
                               peg_error *reterr)
{
    const char **names =
        peg__arena_alloc_zero(&tool->arena, (scope->n_objects + 1) * sizeof(*names));
    size_t n = 0;

    for (size_t i = 0; names && i < scope->n_objects; i++) {
        if (!scope->objects[i].is_allowed)
            continue;
        names[n] = peg__arena_copy(&tool->arena, scope->objects[i].name);
        if (!names[n++])
            return peg__fail_nomem(reterr);
    }
    if (!names)
        return peg__fail_nomem(reterr);
    tool->objects = names;
    return PEG_OK;
}

/* ---- describing ---- */

static void put_titled_list(struct peg__buf *out, const char *title, const char *const *lines)
{
    if (!lines || !*lines)
        return;
    peg__buf_printf(out, "\n%s\n", title);
    for (; *lines; lines++)
        peg__buf_printf(out, "- %s\n", *lines);
}

static void put_object_names(struct peg__buf *out, const char *const *names)
{
    for (const char *const *name = names; *name; name++) {
        peg__buf_puts(out, name == names ? "" : ", ");
        peg__sqlite_add_text(peg__str(*name), SIZE_MAX, out);
    }
}

static void put_intro(struct peg__buf *out, const peg_sqlite_def *def,
                      const struct peg__sqlite_tool *tool)
{
    peg__buf_puts(out, def->description ? def->description
                                        : "Answers questions to a database, read-only.");
    peg__buf_printf(out, "\nTakes one SELECT statement of SQLite; at most %zu rows are returned.\n",
                    tool->max_rows);
    if (tool->objects) {
        peg__buf_puts(out, "Tables and views that can be read: ");
        put_object_names(out, tool->objects);
        peg__buf_puts(out, ".\n");
    }
    if (tool->functions[0]) {
        peg__buf_puts(out, "Table-valued functions: ");
        put_object_names(out, tool->functions);
        peg__buf_puts(out, ".\n");
    }
    if (tool->require_order_by)
        peg__buf_puts(out, "Every query needs an ORDER BY.\n");
}

/* The end of every line is the description's own. */
static void trim_newlines(struct peg__buf *out)
{
    while (out->len && out->ptr[out->len - 1] == '\n')
        out->ptr[--out->len] = '\0';
}

struct making {
    const peg_sqlite_def *def;
    struct peg__sqlite_tool *tool;
    struct peg__buf schema;      /* CREATE statements */
    struct peg__buf description; /* for the model */
};

static void write_description(struct making *m)
{
    put_intro(&m->description, m->def, m->tool);
    if (m->schema.len) {
        peg__buf_puts(&m->description, "\n");
        peg__buf_str(&m->description, peg__buf_view(&m->schema));
    }
    put_titled_list(&m->description, "Notes:", m->def->notes);
    put_titled_list(&m->description, "Queries to start with:", m->def->queries);
    trim_newlines(&m->description);
}

/* ---- making ---- */

static peg_status inspect_file(struct making *m, peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_closep) struct peg__sqlite *db = NULL;
    struct peg__sqlite_scope scope = {0};
    peg_status status = peg__sqlite_open(m->tool->path, PEG__SQLITE_READ, &db, reterr);

    if (status)
        return status;
    status = peg__sqlite_scope_open(db, m->tool->objects, m->tool->functions, true, &scope, reterr);
    if (!status)
        status = keep_objects(m->tool, &scope, reterr);
    if (!status && !m->def->hide_schema)
        status = peg__sqlite_scope_describe(&scope, db, PEG_LIMIT_SQLITE_SCHEMA_BYTES, &m->schema,
                                            reterr);
    peg__sqlite_scope_close(&scope);
    return status;
}

/* Nothing is filled yet; but whether the functions exist can be seen. */
static peg_status inspect_functions(struct making *m, peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_closep) struct peg__sqlite *db = NULL;
    struct peg__sqlite_scope scope = {0};
    peg_status status = peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &db, reterr);

    if (status)
        return status;
    status = peg__sqlite_scope_open(db, NULL, m->tool->functions, true, &scope, reterr);
    peg__sqlite_scope_close(&scope);
    return status;
}

static peg_status make_tool_of(struct making *m, peg_tool **ret_tool, peg_error *reterr)
{
    peg_tool_def tool = {PEG_TOOL_DEF_INIT,
                         .name = m->def->name ? m->def->name : "sql_query",
                         .input_schema = input_schema,
                         .output_schema = output_schema,
                         .run = peg__sqlite_run_query,
                         .user = m->tool,
                         .user_free = free_tool,
                         .read_only = true,
                         .idempotent = true,
                         .timeout_ms = m->tool->timeout_ms};
    peg_status status = m->tool->path ? inspect_file(m, reterr) : inspect_functions(m, reterr);

    if (status)
        return status;
    write_description(m);
    if (m->schema.status == PEG_ENOMEM || m->description.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (m->schema.status || m->description.status)
        return reject_def(reterr, "/description",
                          "with notes, queries and tables it is longer than "
                          "64 KiB; shorten it, or set hide_schema");
    tool.description = m->description.ptr;
    return peg_tool_new(&tool, ret_tool, reterr);
}

peg_status peg_sqlite_tool_new(const peg_sqlite_def *def, peg_tool **ret_tool, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_SQLITE_DEF_INIT, reterr);
    struct making m = {.def = def,
                       .schema = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
                       .description = PEG__BUF(PEG_LIMIT_DESCRIPTION_BYTES)};
    peg_status status = check_sqlite_def(def, reterr);

    if (status)
        return status;
    m.tool = copy_def(def);
    if (!m.tool)
        return peg__fail_nomem(reterr);
    status = make_tool_of(&m, ret_tool, reterr);
    if (status)
        free_tool(m.tool);
    peg__buf_free(&m.schema);
    peg__buf_free(&m.description);
    return status;
}

peg_status peg_sqlite_offer(peg_registry *registry, const peg_sqlite_def *def, peg_error *reterr)
{
    peg_tool *tool = NULL;
    peg_status status;

    if (!registry)
        return reject_def(reterr, "/registry", "there is none to offer it in");
    status = peg_sqlite_tool_new(def, &tool, reterr);
    if (!status)
        status = peg_registry_register(registry, tool, false, reterr);
    peg_tool_unref(tool);
    return status;
}

/* ---- filling ---- */

static peg_status exec_with(struct peg__sqlite *db, const char *sql, const peg_json *params,
                            peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    peg_str tail;
    peg_status status = peg__sqlite_prepare(db, peg__str(sql), &stmt, &tail, reterr);
    int index = 0;

    if (status)
        return status;
    if (!stmt || !peg__sql_is_blank(tail))
        return peg__fail(reterr, PEG_EINVAL, "E_SQL_PARAMS",
                         "values go with exactly one statement");
    if ((size_t)peg__sqlite_n_params(stmt) != peg_json_len(params))
        return peg__fail(reterr, PEG_EINVAL, "E_SQL_PARAMS",
                         "the statement has %d parameters and %zu values were given",
                         peg__sqlite_n_params(stmt), peg_json_len(params));
    PEG_JSON_EACH_ITEM (params, value) {
        status = peg__sqlite_bind_json(stmt, ++index, value, reterr);
        if (status)
            return status;
    }
    return peg__sqlite_run(stmt, reterr);
}

peg_status peg_sqlite_exec(peg_sqlite_db *db, const char *sql, const peg_json *params,
                           peg_error *reterr)
{
    if (!db || !sql)
        return peg__fail(reterr, PEG_EINVAL, "E_SQLITE", "a database and a statement are needed");
    if (!params)
        return peg__sqlite_exec(db->db, sql, reterr);
    if (params->kind != PEG_JSON_ARRAY)
        return peg__fail(reterr, PEG_EINVAL, "E_SQL_PARAMS", "params is no array");
    return exec_with(db->db, sql, params, reterr);
}

/* The registry is the run's own. A pipeline runs in each iteration, so the tool is mostly there
 * already; it is not taken away at the end of one, because its calls run after the pipeline. */
peg_status peg_offer_middleware(peg_dispatch *dispatch, peg_middleware_next *next, void *tool,
                                peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    peg_tool *there;
    peg_status status = PEG_OK;

    if (!tool)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "peg_offer_middleware() needs a tool as its user pointer");
    there = peg_registry_get(registry, peg_cstr(peg_tool_name(tool)));
    if (there != tool)
        status = peg_registry_register(registry, tool, false, reterr);
    peg_tool_unref(there);
    return status ? status : peg_middleware_run_next(next, reterr);
}
