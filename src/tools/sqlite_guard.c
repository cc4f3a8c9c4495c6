/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The authorizer: SQLite asks it about everything that a statement is about to do, while it is
 * prepared, and it says no unless it knows better.
 *
 * SQLite names the innermost view as the source of a read, and in the same place the name of a CTE.
 * A query that calls a CTE like a view would so read in the view's name: names that the query gives
 * itself count for nothing.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "tools/sqlite.h"

/* ---- functions ------------------------------------------------------------------------------ */

/* Those that compute and do nothing else, in time that does not grow with the square of a text, as
 * that of json_patch() and json_pretty() does. In order: they are searched by halves. */
static const char *const harmless[] = {
    "->",
    "->>",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "bm25",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "highlight",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "match",
    "matchinfo",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "offsets",
    "percent_rank",
    "percentile",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "random",
    "randomblob",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "snippet",
    "soundex",
    "sqlite_version",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unixepoch",
    "unlikely",
    "upper",
    "zeroblob",
};

static int compare_words(const void *a, const void *b)
{
    return strcmp(a, *(const char *const *)b);
}

static bool is_harmless(const char *function)
{
    return function && bsearch(function, harmless, sizeof(harmless) / sizeof(*harmless),
                               sizeof(*harmless), compare_words);
}

/* ---- tables ---- */

static bool is_listed(const char *const *names, peg_str name)
{
    for (; names && *names; names++) {
        if (peg__sql_names_equal(peg__str(*names), name))
            return true;
    }
    return false;
}

static bool is_read_by(const struct peg__sqlite_scope *scope, const char *view, peg_str table)
{
    for (size_t i = 0; i < scope->n_edges; i++) {
        if (peg__sql_names_equal(scope->edges[i].table, table) &&
            (!view || peg__sql_names_equal(scope->edges[i].view, peg__str(view))))
            return true;
    }
    return false;
}

/* The virtual table that keeps its data in this one: that with the longest name before a "_". */
static bool is_inside_of_allowed(const struct peg__sqlite_scope *scope, peg_str table)
{
    const struct peg__sqlite_object *owner = NULL;

    for (size_t i = 0; i < scope->n_objects; i++) {
        const struct peg__sqlite_object *object = &scope->objects[i];

        if (object->is_virtual && table.len > object->name.len &&
            table.ptr[object->name.len] == '_' &&
            peg__sql_names_equal(object->name, peg__strn(table.ptr, object->name.len)) &&
            (!owner || owner->name.len < object->name.len))
            owner = object;
    }
    return owner && owner->is_allowed;
}

static bool may_read_inside(const struct peg__sqlite_guard *guard, peg_str table)
{
    const struct peg__sqlite_object *object = peg__sqlite_scope_find(guard->scope, table);

    return guard->is_running && object && object->is_inner &&
           is_inside_of_allowed(guard->scope, table);
}

/* Through an allowed view, or a CTE in its text; the query itself has no such name for a CTE of its
 * own if there is a view that is called so. Of tables whose rows are only counted, SQLite does not
 * tell the view once it has merged it into the query; the sketch has made sure that the query does
 * not name them. */
static bool may_read_below(const struct peg__sqlite_guard *guard, peg_str table, bool is_count,
                           const char *source)
{
    if (guard->is_sketch)
        return false;
    if (!source)
        return is_count && is_read_by(guard->scope, NULL, table);
    if (peg__sqlite_scope_find(guard->scope, peg__str(source)) &&
        peg__sql_gives_name(guard->sql, peg__str(source)))
        return false;
    return is_read_by(guard->scope, source, table);
}

static bool may_read(const struct peg__sqlite_guard *guard,
                     const struct peg__sqlite_request *request)
{
    const peg_str table = peg_cstr(request->first);
    const bool is_count = !request->second || !*request->second;
    const struct peg__sqlite_object *object = peg__sqlite_scope_find(guard->scope, table);

    if (request->database && strcmp(request->database, "main") != 0)
        return false;
    if ((object && object->is_allowed) || is_listed(guard->scope->functions, table))
        return true;
    /* The rows of a CTE are counted. What has "main" before it is none. */
    if (is_count && !request->database && !peg__sql_is_reserved(table) &&
        peg__sql_gives_name(guard->sql, table))
        return true;
    return may_read_below(guard, table, is_count, request->source) || may_read_inside(guard, table);
}

/* ---- everything ---- */

static bool may(const struct peg__sqlite_guard *guard, const struct peg__sqlite_request *request)
{
    switch (request->action) {
    case PEG__SQLITE_SELECT:
    case PEG__SQLITE_RECURSIVE:
        return true;
    case PEG__SQLITE_FUNCTION:
        return is_harmless(request->second);
    case PEG__SQLITE_READ_OF:
        return may_read(guard, request);
    case PEG__SQLITE_PRAGMA: /* full-text search looks whether its cache is still good */
        return guard->is_running && !request->second &&
               peg__str_is(peg_cstr(request->first), "data_version");
    case PEG__SQLITE_OTHER:
        return false;
    }
    return false;
}

static const char *name_in(const struct peg__sqlite_request *request)
{
    if (request->action == PEG__SQLITE_FUNCTION)
        return request->second;
    return request->action == PEG__SQLITE_READ_OF ? request->first : "";
}

bool peg__sqlite_may(const struct peg__sqlite_request *request, void *user)
{
    struct peg__sqlite_guard *guard = user;

    if (may(guard, request))
        return true;
    if (!guard->has_refused) {
        const char *name = name_in(request);

        guard->has_refused = true;
        guard->refused = request->action;
        snprintf(guard->name, sizeof(guard->name), "%s", name ? name : "");
    }
    return false;
}
