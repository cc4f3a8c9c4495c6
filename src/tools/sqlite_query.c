/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One call: its database, its scope, its two guards, its answer.
 *
 * Each call has a connection of its own. Calls run on several threads at once, and a connection
 * shared under a lock would make a quick query wait for a slow one, up to its timeout; what one
 * call does to its connection (limits, guards, an interrupt) could reach another. Opening a file
 * costs some 100 microseconds, a model thinks for seconds.
 *
 * What goes wrong is a failed result with words for the model: those of SQLite as long as they are
 * about the sketch, our own about the real database.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "pegboard/call.h"
#include "tools/sqlite.h"
#include "json/json.h"

struct query {
    peg_call *call;
    const struct peg__sqlite_tool *tool;
    peg_str text;
    struct peg__sql sql;
    struct peg__sqlite *db;
    struct peg__sqlite_scope scope;
    struct peg__sqlite_guard sketch_guard;
    struct peg__sqlite_guard guard;
    struct peg__sqlite_stmt *stmt;
    size_t n_written;      /* its tokens, once each CTE is written out where it is used */
    int64_t memory_before; /* the query, with what fill made */
    bool is_filled;
    bool is_hungry; /* stopped because of memory */
};

/* ---- failing ------------------------------------------------------------------------------- */

/* Names that SQLite or an error has cut may end in the midst of a character. */
static void put_clean_message(struct peg__buf *out, const char *fmt, va_list args) PEG_PRINTF(2, 0);
static void put_clean_message(struct peg__buf *out, const char *fmt, va_list args)
{
    struct peg__buf raw = PEG__BUF(PEG_LIMIT_FAILURE_BYTES / 4);

    peg__buf_vprintf_cut(&raw, fmt, args);
    peg__sqlite_add_text(peg__buf_view(&raw), PEG_LIMIT_FAILURE_BYTES / 4, out);
    if (raw.status == PEG_ENOMEM)
        out->status = PEG_ENOMEM;
    peg__buf_free(&raw);
}

/* Each returns false, for `return fail(...)`. */
static bool fail_query(struct query *q, const char *code, const char *fmt, ...) PEG_PRINTF(3, 4);
static bool fail_query(struct query *q, const char *code, const char *fmt, ...)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    va_list args;

    va_start(args, fmt);
    put_clean_message(&sentence, fmt, args);
    va_end(args);
    peg__call_fail_because(q->call, code, &sentence);
    return false;
}

/* The same, and the names of what can be read. */
static bool fail_listing(struct query *q, const char *code, const char *fmt, ...) PEG_PRINTF(3, 4);
static bool fail_listing(struct query *q, const char *code, const char *fmt, ...)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    struct peg__buf names = PEG__BUF(PEG_LIMIT_FAILURE_BYTES / 2);
    va_list args;

    va_start(args, fmt);
    put_clean_message(&sentence, fmt, args);
    va_end(args);
    peg__sqlite_scope_list(&q->scope, &names);
    if (names.status == PEG_ELIMIT) /* too many to name */
        peg__buf_puts(&sentence, "; the description of this tool says what can be read");
    else
        peg__buf_printf(&sentence, "; tables and views that can be read: %.*s",
                        PEG_ARG(peg__buf_view(&names)));
    if (names.status == PEG_ENOMEM)
        sentence.status = PEG_ENOMEM;
    peg__buf_free(&names);
    peg__call_fail_because(q->call, code, &sentence);
    return false;
}

static bool fail_stopped(struct query *q)
{
    peg_error why;

    if (q->is_hungry)
        return fail_query(q, "E_SQL_LIMIT",
                          "the query needs more memory than it may have; sort, group or join less");
    if (peg_ctx_check(peg_call_ctx(q->call), &why) == PEG_ECANCELED)
        return fail_query(q, "E_SQL_CANCELED", "the query was stopped: %s", why.message);
    return fail_query(
        q, "E_SQL_TIMEOUT",
        "the query took longer than it may (%lld ms) and was stopped; ask for less, with "
        "WHERE or LIMIT",
        (long long)q->tool->timeout_ms);
}

/* What can happen anywhere. False if it is none of these. */
static bool fail_as_always(struct query *q, const peg_error *why)
{
    if (why->status == PEG_ENOMEM)
        peg__call_out_of_memory(q->call);
    else if (why->status == PEG_ECANCELED)
        fail_stopped(q);
    else if (strcmp(why->code, "E_SQLITE_BUSY") == 0)
        fail_query(q, "E_SQLITE_BUSY", "the database is being written; try again");
    else if (strcmp(why->code, "E_SQLITE_TOO_BIG") == 0)
        fail_query(q, "E_SQL_LIMIT", "a value or the statement is too large; ask for less at once");
    else
        return false;
    return true;
}

/* The host has to look: what the model could do about it is nothing. */
static bool fail_unavailable(struct query *q, const char *code, const peg_error *why)
{
    if (fail_as_always(q, why))
        return false;
    peg__log(PEG_LOG_WARN, code, "tool '%.100s': %.300s (%s)",
             peg_tool_name(peg_call_tool(q->call)), why->message, why->code);
    return fail_query(q, code, "the database is not available now; do without it");
}

/* ---- the database ---------------------------------------------------------------------------- */

static bool should_stop(void *user)
{
    struct query *q = user;

    if (q->is_filled && peg__sqlite_memory_used() - q->memory_before > PEG_LIMIT_SQLITE_MEMORY)
        q->is_hungry = true;
    return q->is_hungry || peg_call_should_stop(q->call);
}

/* Temporary tables would come before those of the same name. */
static peg_status check_temporary(struct peg__sqlite *db, peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status =
        peg__sqlite_prepare(db, peg__str("SELECT 1 FROM temp.sqlite_schema"), &stmt, NULL, reterr);

    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status && is_row)
        return peg__fail(reterr, PEG_EHOST, "E_SQLITE_FILL",
                         "fill left temporary tables or views; drop them");
    return status;
}

static bool fill_database(struct query *q)
{
    struct peg_sqlite_db face = {.db = q->db};
    peg_error why = {.code = "", .cause = ""};
    peg_status status = q->tool->fill(&face, peg_call_ctx(q->call), q->tool->fill_user, &why);

    why.status = status;         /* a host that fails may have said no more */
    peg__sqlite_rollback(q->db); /* one that it left open is half of something */
    if (!status)
        status = check_temporary(q->db, &why);
    if (!status)
        status = peg__sqlite_freeze(q->db, &why);
    return !status || fail_unavailable(q, "E_SQLITE_FILL", &why);
}

static bool open_database(struct query *q)
{
    const bool is_file = q->tool->path != NULL;
    peg_error why;
    peg_status status = peg__sqlite_open(
        q->tool->path, is_file ? PEG__SQLITE_READ : PEG__SQLITE_MEMORY, &q->db, &why);

    if (!status) {
        peg__sqlite_watch(q->db, PEG_LIMIT_SQLITE_STEPS, should_stop, q);
        status = peg__sqlite_scratch_in_memory(q->db, &why);
    }
    if (!status)
        status = peg__sqlite_bound_functions(q->db, &why);
    if (status)
        return fail_unavailable(q, "E_SQLITE", &why);
    if (!is_file && !fill_database(q))
        return false;
    q->memory_before = peg__sqlite_memory_used();
    q->is_filled = true;
    /* From here on the schema stays what it is, whichever process writes meanwhile. */
    status = peg__sqlite_begin_read(q->db, &why);
    if (!status)
        status = peg__sqlite_scope_open(q->db, q->tool->objects, q->tool->functions, !is_file,
                                        &q->scope, &why);
    return !status || fail_unavailable(q, is_file ? "E_SQLITE" : "E_SQLITE_FILL", &why);
}

/* Functions and `||` make values; a parameter that is named may be used again and again. What else
 * stands in a list is short, or in the database. */
static bool makes_value(const struct peg__sql *sql, size_t i)
{
    const peg_str text = sql->tokens[i].text;

    if (peg__str_is(text, "("))
        return i > 0 && sql->tokens[i - 1].kind != PEG__SQL_OTHER;
    return text.ptr[0] == '|' || (text.len > 1 && strchr("?:@$", text.ptr[0]));
}

/* SQLite asks whether to stop where its program jumps. A list is filled without a jump, so all the
 * values that a query makes side by side are to fit into the memory that it may have. */
static int max_value_bytes(const struct query *q)
{
    const size_t times = (q->n_written + q->sql.n_tokens - 1) / q->sql.n_tokens;
    size_t n = 1;

    for (size_t i = 0; i < q->sql.n_tokens; i++)
        n += makes_value(&q->sql, i);
    return n * times <= PEG_LIMIT_SQLITE_MEMORY / PEG_LIMIT_SQLITE_VALUE_BYTES
               ? PEG_LIMIT_SQLITE_VALUE_BYTES
               : (int)(PEG_LIMIT_SQLITE_MEMORY / (n * times));
}

static void set_limits(struct peg__sqlite *db, int value_bytes)
{
    const struct {
        enum peg__sqlite_limit limit;
        int value;
    } limits[] = {
        {PEG__SQLITE_LIMIT_LENGTH, value_bytes},
        {PEG__SQLITE_LIMIT_SQL_LENGTH, PEG_LIMIT_SQL_BYTES},
        {PEG__SQLITE_LIMIT_EXPR_DEPTH, 200},
        {PEG__SQLITE_LIMIT_COMPOUND, 100},
        {PEG__SQLITE_LIMIT_ATTACHED, 0},
        {PEG__SQLITE_LIMIT_FUNCTION_ARGS, PEG_LIMIT_SQLITE_FUNCTION_ARGS},
        {PEG__SQLITE_LIMIT_VARIABLES, PEG_LIMIT_SQL_PARAMS},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        peg__sqlite_set_limit(db, limits[i].limit, limits[i].value);
}

static void put_guards(struct query *q)
{
    q->guard = (struct peg__sqlite_guard){.scope = &q->scope, .sql = &q->sql};
    q->sketch_guard = q->guard;
    q->sketch_guard.is_sketch = true;
    set_limits(q->db, max_value_bytes(q));
    set_limits(q->scope.sketch, PEG_LIMIT_SQLITE_VALUE_BYTES);
    peg__sqlite_guard(q->db, peg__sqlite_may, &q->guard);
    peg__sqlite_guard(q->scope.sketch, peg__sqlite_may, &q->sketch_guard);
}

/* ---- the statement ---- */

static bool fail_kind(struct query *q)
{
    return fail_query(q, "E_SQL_REFUSED", "only SELECT statements can be run here, one at a time");
}

/* A view's name given to something else would make it read in the view's name. */
static bool check_given_names(struct query *q)
{
    for (size_t i = 0; i < q->sql.n_names; i++) {
        const struct peg__sql_token *name = q->sql.names[i];

        for (size_t k = 0; k < q->scope.n_objects; k++) {
            const struct peg__sqlite_object *object = &q->scope.objects[k];

            if (object->is_allowed && peg__sql_is_name(name, object->name))
                return fail_query(
                    q, "E_SQL_REFUSED",
                    "the query calls something of its own %.*s, which is a table or view; "
                    "choose another name",
                    PEG_ARG(name->text));
        }
    }
    return true;
}

/* At once, before the model reads why a view cannot be written. */
static bool is_other_statement(const struct peg__sql_token *first)
{
    static const char *const verbs[] = {
        "ALTER",   "ANALYZE", "ATTACH", "BEGIN",  "COMMIT",   "CREATE",    "DELETE",
        "DETACH",  "DROP",    "END",    "INSERT", "EXPLAIN",  "PRAGMA",    "REINDEX",
        "RELEASE", "REPLACE", "UPDATE", "VACUUM", "ROLLBACK", "SAVEPOINT",
    };

    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        if (first->kind == PEG__SQL_WORD && peg__sql_names_equal(first->text, peg__str(verbs[i])))
            return true;
    }
    return false;
}

/* SQLite writes CTEs out while it prepares, and does not look at the clock meanwhile. */
static bool check_query_size(struct query *q)
{
    if (peg__sql_size(&q->sql, PEG_LIMIT_SQL_SYMBOLS, &q->n_written)) {
        peg__call_out_of_memory(q->call);
        return false;
    }
    if (q->n_written > PEG_LIMIT_SQL_SYMBOLS)
        return fail_query(
            q, "E_SQL_LIMIT",
            "the query is too large once what its WITH names is written out where it is "
            "used, or uses it in a circle; use fewer of them");
    return true;
}

static bool read_query(struct query *q)
{
    if (q->text.len > PEG_LIMIT_SQL_BYTES)
        return fail_query(q, "E_SQL_LIMIT",
                          "the statement is longer than %d bytes; write a shorter one",
                          PEG_LIMIT_SQL_BYTES);
    if (memchr(q->text.ptr, '\0', q->text.len))
        return fail_query(q, "E_SQL_SYNTAX",
                          "the statement has a NUL character in it; leave it out");
    if (peg__sql_read(q->text, &q->sql)) {
        peg__call_out_of_memory(q->call);
        return false;
    }
    if (q->sql.n_tokens == 0)
        return fail_query(q, "E_SQL_SYNTAX", "there is no statement; write a SELECT");
    if (is_other_statement(&q->sql.tokens[0]))
        return fail_kind(q);
    if (!check_given_names(q) || !check_query_size(q))
        return false;
    if (q->tool->require_order_by && !q->sql.is_ordered)
        return fail_query(q, "E_SQL_REFUSED",
                          "the query needs an ORDER BY of its own, outside parentheses");
    return true;
}

/* What the sketch says tells of allowed things only, and of the model's own words. */
static bool explain_sketch(struct query *q, const peg_error *why)
{
    const struct peg__sqlite_guard *guard = &q->sketch_guard;

    if (fail_as_always(q, why))
        return false;
    if (!guard->has_refused)
        return strncmp(why->message, "no such table", 13) == 0
                   ? fail_listing(q, "E_SQL_REFUSED", "%s", why->message)
                   : fail_query(q, "E_SQL_SYNTAX", "%s", why->message);
    if (guard->refused == PEG__SQLITE_READ_OF)
        return fail_listing(q, "E_SQL_REFUSED", "no such table: %s", guard->name);
    if (guard->refused == PEG__SQLITE_FUNCTION)
        return fail_query(q, "E_SQL_REFUSED", "the function %s() cannot be used here", guard->name);
    return fail_kind(q);
}

/* The first wall. */
static bool try_on_sketch(struct query *q)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    peg_str tail;
    peg_error why;

    if (peg__sqlite_prepare(q->scope.sketch, q->text, &stmt, &tail, &why))
        return explain_sketch(q, &why);
    if (!stmt || !peg__sql_is_blank(tail) || !peg__sqlite_is_read_only(stmt) ||
        peg__sqlite_is_explain(stmt) || peg__sqlite_n_columns(stmt) == 0)
        return fail_kind(q);
    return true;
}

/* The second wall. A query that came through the first and not through this one shows that the
 * database has something that the sketch has not: a broken view, a table without rowids. */
static bool prepare_query(struct query *q)
{
    peg_error why;
    const peg_status status = peg__sqlite_prepare(q->db, q->text, &q->stmt, NULL, &why);

    if (!status)
        return true;
    if (fail_as_always(q, &why))
        return false;
    peg__log(PEG_LOG_INFO, "E_SQL_REFUSED", "tool '%.100s': %.300s",
             peg_tool_name(peg_call_tool(q->call)), why.message);
    return fail_listing(q, "E_SQL_REFUSED",
                        "the query cannot be run as it is: it reads what is not available here");
}

/* ---- values ---- */

peg_status peg__sqlite_bind_json(struct peg__sqlite_stmt *stmt, int index, const peg_json *value,
                                 peg_error *reterr)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_NULL:
        return peg__sqlite_bind_null(stmt, index, reterr);
    case PEG_JSON_BOOL:
        return peg__sqlite_bind_int64(stmt, index, peg_json_is_true(value), reterr);
    case PEG_JSON_INTEGER:
        return peg__sqlite_bind_int64(stmt, index, value->u.number, reterr);
    case PEG_JSON_DECIMAL:
        return peg__sqlite_bind_double(stmt, index, peg_json_double(value), reterr);
    case PEG_JSON_STRING:
        return peg__sqlite_bind_text(stmt, index, peg_json_str(value), reterr);
    case PEG_JSON_ARRAY:
    case PEG_JSON_OBJECT:
        break;
    }
    return peg__fail(reterr, PEG_EINVAL, "E_SQL_PARAMS",
                     "value %d is an %s; bind strings, numbers, booleans and null", index,
                     peg_json_kind_name(peg_json_kind_of(value)));
}

static bool bind_params(struct query *q, const peg_json *params)
{
    const size_t n = params ? peg_json_len(params) : 0;
    const size_t n_wanted = (size_t)peg__sqlite_n_params(q->stmt);
    int index = 0;

    if (n != n_wanted)
        return fail_query(q, "E_SQL_PARAMS",
                          "the query has %zu parameters and params has %zu values", n_wanted, n);
    if (n == 0)
        return true;
    PEG_JSON_EACH_ITEM (params, value) {
        peg_error why;
        const peg_status status = peg__sqlite_bind_json(q->stmt, ++index, value, &why);

        if (status && !fail_as_always(q, &why))
            fail_query(q, "E_SQL_PARAMS", "params: %s", why.message);
        if (status)
            return false;
    }
    return true;
}

/* ---- running ---- */

/* Words of SQLite at run time that tell nothing of the data; others could, from inside a view. */
static const char *message_at_run_time(const char *message)
{
    static const char *const known[] = {
        "integer overflow",
        "malformed JSON",
        "datatype mismatch",
        "string or blob too big",
        "LIKE or GLOB pattern too complex",
        "ESCAPE expression must be a single character",
        "unable to use function MATCH in the requested context",
        "JSON cannot hold BLOB values",
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (strcmp(message, known[i]) == 0)
            return known[i];
    }
    return "an expression in it, or in a view that it reads, cannot be computed";
}

static void answer_query(struct query *q)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_json_doc *doc = NULL;
    peg_error why;
    peg_status status;

    q->guard.is_running = true;
    status = peg__sqlite_write_rows(q->tool, q->stmt, &text, &why);
    if (!status)
        status = peg_json_parse(peg__buf_view(&text), NULL, &doc, &why);
    peg__buf_free(&text);
    if (!status) {
        peg_call_reply_json(q->call, peg_json_root(doc));
        peg_json_doc_free(doc);
        return;
    }
    if (strncmp(why.code, "E_SQL_", 6) == 0)
        peg_call_fail_with(q->call, &why);
    else if (!fail_as_always(q, &why))
        fail_query(q, "E_SQL_FAILED", "the query failed while it ran: %s",
                   message_at_run_time(why.message));
}

void peg__sqlite_run_query(peg_call *call, const peg_json *args, void *user)
{
    struct query q = {.call = call, .tool = user, .text = peg_json_str(peg_json_get(args, "sql"))};

    if (open_database(&q) && read_query(&q)) {
        put_guards(&q);
        if (try_on_sketch(&q) && prepare_query(&q) && bind_params(&q, peg_json_get(args, "params")))
            answer_query(&q);
    }
    peg__sqlite_finalize(q.stmt);
    peg__sqlite_scope_close(&q.scope);
    peg__sqlite_close(q.db);
    peg__sql_free(&q.sql);
}
