/* SPDX-License-Identifier: Apache-2.0 */

/*
 * instr(), replace(), trim(X, Y), LIKE and GLOB as SQLite has them, but in time that grows with the
 * text alone. SQLite's own take length times length, in one step that nothing can interrupt: two
 * texts of 40 kB keep trim() busy for a minute, whatever the time limit of a query.
 */

#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sqlite/text.h"
#include "base/text/str.h"

/* Out of memory where it should be text: has_text() reports it. */
static peg_str text_of(sqlite3_value *value)
{
    const unsigned char *text = sqlite3_value_text(value);

    return peg__strn((const char *)text, text ? (size_t)sqlite3_value_bytes(value) : 0);
}

static peg_str blob_of(sqlite3_value *value)
{
    const void *bytes = sqlite3_value_blob(value);

    return peg__strn(bytes ? bytes : "", (size_t)sqlite3_value_bytes(value));
}

/* NULL of any of them is the answer NULL, which is there unless something else is said. */
static bool is_any_null(int n, sqlite3_value **values)
{
    for (int i = 0; i < n; i++) {
        if (sqlite3_value_type(values[i]) == SQLITE_NULL)
            return true;
    }
    return false;
}

/* ---- instr(text, part) ---------------------------------------------------------------------- */

static int64_t count_chars(peg_str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += i == 0 || !peg__utf8_is_tail(text.ptr[i]);
    return n;
}

static void find_part(sqlite3_context *context, int n, sqlite3_value **values)
{
    const bool are_blobs = sqlite3_value_type(values[0]) == SQLITE_BLOB &&
                           sqlite3_value_type(values[1]) == SQLITE_BLOB;
    peg_str text;
    peg_str part;
    const char *found;

    if (is_any_null(n, values))
        return;
    text = are_blobs ? blob_of(values[0]) : text_of(values[0]);
    part = are_blobs ? blob_of(values[1]) : text_of(values[1]);
    if (!text.ptr || !part.ptr) {
        sqlite3_result_error_nomem(context);
        return;
    }
    found = memmem(text.ptr, text.len, part.ptr, part.len);
    if (!found) {
        sqlite3_result_int64(context, 0);
        return;
    }
    text.len = (size_t)(found - text.ptr);
    sqlite3_result_int64(context, 1 + (are_blobs ? (int64_t)text.len : count_chars(text)));
}

/* ---- replace(text, part, other) ---------------------------------------------------------------
 */

static void write_replaced(sqlite3_str *out, peg_str text, peg_str part, peg_str other)
{
    const char *found;

    while (!sqlite3_str_errcode(out) && (found = memmem(text.ptr, text.len, part.ptr, part.len))) {
        const size_t before = (size_t)(found - text.ptr);

        sqlite3_str_append(out, text.ptr, (int)before);
        sqlite3_str_append(out, other.ptr, (int)other.len);
        text = peg__str_from(text, before + part.len);
    }
    sqlite3_str_append(out, text.ptr, (int)text.len);
}

void peg__sqlite_give_text(sqlite3_context *context, sqlite3_str *out)
{
    const int rc = sqlite3_str_errcode(out);
    const int len = sqlite3_str_length(out);
    char *text = sqlite3_str_finish(out);

    if (rc != SQLITE_OK)
        sqlite3_result_error_code(context, rc);
    else if (text)
        sqlite3_result_text(context, text, len, sqlite3_free);
    else
        sqlite3_result_text(context, "", 0, SQLITE_STATIC);
    if (rc != SQLITE_OK)
        sqlite3_free(text);
}

static void replace_part(sqlite3_context *context, int n, sqlite3_value **values)
{
    peg_str text;
    peg_str part;
    peg_str other;
    sqlite3_str *out;

    if (is_any_null(2, values))
        return;
    text = text_of(values[0]);
    part = text_of(values[1]);
    if (part.ptr && (part.len == 0 || part.ptr[0] == '\0')) { /* whatever the other one is */
        sqlite3_result_value(context, values[0]);
        return;
    }
    if (is_any_null(n, values))
        return;
    other = text_of(values[2]);
    if (!text.ptr || !part.ptr || !other.ptr) {
        sqlite3_result_error_nomem(context);
        return;
    }
    out = sqlite3_str_new(sqlite3_context_db_handle(context));
    write_replaced(out, text, part, other);
    peg__sqlite_give_text(context, out);
}

/* ---- trim(text, characters) --------------------------------------------------------------------
 */

enum { FROM_LEFT = 1, FROM_RIGHT = 2 };

static const int sides[] = {0, FROM_LEFT, FROM_RIGHT, FROM_LEFT | FROM_RIGHT};

static bool has_char(peg_str characters, const char *c, size_t len)
{
    return memmem(characters.ptr, characters.len, c, len) != NULL;
}

static peg_str without_left(peg_str text, peg_str characters)
{
    while (text.len) {
        size_t len = 1;

        while (len < text.len && (unsigned char)text.ptr[0] >= 0xC0 &&
               peg__utf8_is_tail(text.ptr[len]))
            len++;
        if (!has_char(characters, text.ptr, len))
            break;
        text = peg__str_from(text, len);
    }
    return text;
}

static peg_str without_right(peg_str text, peg_str characters)
{
    while (text.len) {
        size_t at = text.len - 1;

        while (at > 0 && peg__utf8_is_tail(text.ptr[at]))
            at--;
        if (!has_char(characters, text.ptr + at, text.len - at))
            break;
        text.len = at;
    }
    return text;
}

static void trim_text(sqlite3_context *context, int n, sqlite3_value **values)
{
    const int *from = sqlite3_user_data(context);
    peg_str text;
    peg_str characters;

    if (is_any_null(n, values))
        return;
    text = text_of(values[0]);
    characters = text_of(values[1]);
    if (!text.ptr || !characters.ptr) {
        sqlite3_result_error_nomem(context);
        return;
    }
    characters.len = strnlen(characters.ptr, characters.len); /* SQLite's own stop there too */
    if (characters.len > PEG_LIMIT_SQLITE_PATTERN_BYTES) {
        sqlite3_result_error_toobig(context);
        return;
    }
    if (*from & FROM_LEFT)
        text = without_left(text, characters);
    if (*from & FROM_RIGHT)
        text = without_right(text, characters);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): SQLite's own constant */
    sqlite3_result_text(context, text.ptr, (int)text.len, SQLITE_TRANSIENT);
}

/* ---- LIKE and GLOB --------------------------------------------------------------------------- */

/* As it was built, SQLite may match blobs or not. */
static bool is_unmatched_blob(sqlite3_value **values)
{
    return (sqlite3_value_type(values[0]) == SQLITE_BLOB ||
            sqlite3_value_type(values[1]) == SQLITE_BLOB) &&
           sqlite3_compileoption_used("LIKE_DOESNT_MATCH_BLOBS");
}

/* Both texts; false if the answer is known without looking: NULL, a blob, an error. */
static bool read_match(sqlite3_context *context, sqlite3_value **values, const char **ret_pattern,
                       const char **ret_text)
{
    const char *pattern;
    const char *text;
    int64_t pattern_len;

    if (is_unmatched_blob(values)) {
        sqlite3_result_int(context, 0);
        return false;
    }
    pattern = (const char *)sqlite3_value_text(values[0]);
    text = (const char *)sqlite3_value_text(values[1]);
    pattern_len = sqlite3_value_bytes(values[0]);
    if (pattern_len > PEG_LIMIT_SQLITE_PATTERN_BYTES) {
        sqlite3_result_error(context, "LIKE or GLOB pattern too complex", -1);
        return false;
    }
    if (!pattern || !text)
        return false;
    if (pattern_len * sqlite3_value_bytes(values[1]) > PEG_LIMIT_SQLITE_PATTERN_STEPS) {
        sqlite3_result_error_toobig(context);
        return false;
    }
    *ret_pattern = pattern;
    *ret_text = text;
    return true;
}

static void match_glob(sqlite3_context *context, int n, sqlite3_value **values)
{
    const char *pattern;
    const char *text;

    (void)n;
    if (read_match(context, values, &pattern, &text))
        sqlite3_result_int(context, sqlite3_strglob(pattern, text) == 0);
}

static void match_like(sqlite3_context *context, int n, sqlite3_value **values)
{
    unsigned escape = 0;
    const char *pattern;
    const char *text;

    if (n == 3) {
        const char *c = (const char *)sqlite3_value_text(values[2]);

        if (!c)
            return;
        escape = (unsigned char)c[0];
        if (c[0] == '\0' || c[1] != '\0' || escape >= 0x80 || c[0] == '%' || c[0] == '_') {
            sqlite3_result_error(context, "ESCAPE expression must be a single character", -1);
            return;
        }
    }
    if (read_match(context, values, &pattern, &text))
        sqlite3_result_int(context, sqlite3_strlike(pattern, text, escape) == 0);
}

/* ---- all of them -------------------------------------------------------------------------------
 */

peg_status peg__sqlite_text_functions(sqlite3 *handle, peg_error *reterr)
{
    static const struct {
        const char *name;
        int n_args;
        const int *side;
        void (*fn)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"instr", 2, NULL, find_part},
        {"replace", 3, NULL, replace_part},
        {"ltrim", 2, &sides[FROM_LEFT], trim_text},
        {"rtrim", 2, &sides[FROM_RIGHT], trim_text},
        {"trim", 2, &sides[FROM_LEFT | FROM_RIGHT], trim_text},
        {"glob", 2, NULL, match_glob},
        {"like", 2, NULL, match_like},
        {"like", 3, NULL, match_like},
        {"printf", -1, NULL, peg__sqlite_print},
        {"format", -1, NULL, peg__sqlite_print},
    };
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        const int rc = sqlite3_create_function_v2(handle, functions[i].name, functions[i].n_args,
                                                  flags, peg__unconst(functions[i].side),
                                                  functions[i].fn, NULL, NULL, NULL);

        if (rc == SQLITE_NOMEM)
            return peg__fail_nomem(reterr);
        if (rc != SQLITE_OK)
            return peg__fail(reterr, PEG_EIO, "E_SQLITE", "the function %s() cannot be made: %s",
                             functions[i].name, sqlite3_errstr(rc));
    }
    return PEG_OK;
}
