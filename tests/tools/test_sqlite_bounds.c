/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a query can make SQLite do at once, in a step that no time limit interrupts: each of these
 * would hold its thread for minutes or take all memory, and here ends soon.
 */

#include <sqlite3.h>
#include <string.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "sqlite_world.h"
#include "tools/sqlite.h"

/* ---- functions ------------------------------------------------------------------------------- */

/* 1 MB. */
#define LONG_A "printf('%.1000000c', 'a')"

TEST(text_functions_take_no_longer_for_long_patterns)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT instr(" LONG_A ", " LONG_A " || 'b') AS n", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":0}],\"count\":1}");
    check_answer(&b, "SELECT length(replace(" LONG_A ", substr(" LONG_A ", 9) || 'b', 'x')) AS n",
                 NULL, "{\"columns\":[\"n\"],\"rows\":[{\"n\":1000000}],\"count\":1}");
    base_close(&b);
}

TEST(characters_to_trim_are_limited)
{
    struct base b;

    base_open(&b);
    check_refused(&b, "SELECT length(trim(" LONG_A ", " LONG_A " || 'b'))", NULL, "E_SQL_LIMIT");
    check_refused(&b, "SELECT length(ltrim(" LONG_A ", " LONG_A "))", NULL, "E_SQL_LIMIT");
    check_refused(&b, "SELECT length(rtrim(" LONG_A ", " LONG_A "))", NULL, "E_SQL_LIMIT");
    check_answer(&b, "SELECT length(trim(" LONG_A ", 'ab')) AS n", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":0}],\"count\":1}");
    base_close(&b);
}

TEST(functions_that_take_the_square_of_a_text_are_refused)
{
    struct base b;

    base_open(&b);
    check_refused(&b, "SELECT json_patch('{}', '{}')", NULL, "E_SQL_REFUSED");
    check_refused(&b, "SELECT 'a' LIKE printf('%.201c', 'a')", NULL, NULL);
    base_close(&b);
}

/* One value, as text that shows its type. */
static void evaluate(struct peg__sqlite *db, const char *expression, char *ret_text, size_t size)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    char sql[512];
    bool is_row = false;
    peg_str text;

    snprintf(sql, sizeof(sql), "SELECT typeof(%s) || ' ' || quote(%s)", expression, expression);
    CHECK_INT(peg__sqlite_prepare(db, peg__str(sql), &stmt, NULL, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_step(stmt, &is_row, NULL), PEG_OK);
    text = peg__sqlite_text(stmt, 0);
    snprintf(ret_text, size, "%.*s", PEG_ARG(text));
}

TEST(bounded_functions_answer_as_those_of_sqlite)
{
    static const char *const values[] = {
        "NULL",   "''",  "'a'",      "'aa'",  "'abcabc'",      "'bca'",
        "'  x '", "12",  "1.5",      "x''",   "x'6162'",       "x'62'",
        "'äöä'",  "'ö'", "'日本'",   "'本'",  "char(0x1F600)", "'a' || char(0) || 'b'",
        "'A%'",   "'_'", "'[a-c]*'", "'*a?'", "'%%b_a'",       "'%a_c%'",
    };
    static const size_t n = sizeof(values) / sizeof(*values);
    static const char *const forms[] = {
        "instr(%s, %s)", "replace(%s, %s, '<b>')", "trim(%s, %s)",
        "ltrim(%s, %s)", "rtrim(%s, %s)",          "replace('xabcay', %s, %s)",
        "like(%s, %s)",  "glob(%s, %s)",           "%s LIKE %s ESCAPE 'b'"};
    static const size_t n_forms = sizeof(forms) / sizeof(*forms);
    struct peg__sqlite *plain = NULL;
    struct peg__sqlite *bounded = NULL;

    CHECK_INT(peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &plain, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &bounded, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bound_functions(bounded, NULL), PEG_OK);
    for (size_t i = 0; i < n * n * n_forms; i++) {
        char expression[256];
        char expected[256];
        char actual[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(expression, sizeof(expression), forms[i % n_forms], values[i / n_forms % n],
                 values[i / n_forms / n]);
#pragma GCC diagnostic pop
        evaluate(plain, expression, expected, sizeof(expected));
        evaluate(bounded, expression, actual, sizeof(actual));
        if (strcmp(expected, actual) != 0)
            T_FAIL("%s is %s, expected %s", expression, actual, expected);
    }
    peg__sqlite_close(plain);
    peg__sqlite_close(bounded);
}

TEST(printf_answers_as_that_of_sqlite)
{
    static const char *const formats[] = {
        "'%d|%5d|%-5d|%05d|%+d|% d|%,d|%.3d', 12, 12, 12, 12, 12, 12, 1234567, 5",
        "'%x %X %o %u %i %p %#x %lld %ld', 255, 255, 8, -1, 7, 255, 255, 1, 2",
        "'%f %.2f %10.3f %e %E %g', 1.5, 2.345, 3.14159, 1e10, 1e-5, 1e20",
        "'%G %!.15g %.0f', 0.1, 0.1, 2.5",
        "'%s|%10s|%-10s|%.2s|%!5.1s|%z', 'abc', 'abc', 'abc', 'abc', 'äöü', 'z'",
        "'%q %Q %w %Q', 'it''s', 'it''s', 'a\"b', NULL",
        "'%c|%5c|%-5c|%.3c|%5.3c|%c|%c', 'abc', 'a', 'a', 'a', 'b', 'ä', ''",
        "'%*d|%*d|%.*f|%-*s|%.*c|%*c', 5, 12, -5, 12, 2, 1.2345, 6, 'ab', 3, 'x', 4, 'y'",
        "'%r %r %r %r', 1, 2, 3, 11",
        "'100%%|%n|%', 1",
        "'%d %s %f %c|'",
        "'a%k%d', 1",
        "'%d', 'no number'",
        "'%s', x'6162'",
        "'%s', 1.5",
        "'%d %d', 9223372036854775807, 3.9",
        "NULL, 1",
        "'', 1",
        "12, 1",
        "'%5', 1",
        "'%.*d|%.*s', -3, 7, -2, 'abc'",
        "'%-+05d|%+-5d|%!s|%#o|%,.2f', 3, 3, 'x', 8, 1234567.891",
    };
    struct peg__sqlite *plain = NULL;
    struct peg__sqlite *bounded = NULL;

    CHECK_INT(peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &plain, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &bounded, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bound_functions(bounded, NULL), PEG_OK);
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        char expression[200];
        char expected[256];
        char actual[256];

        snprintf(expression, sizeof(expression), "%s(%s)", i % 2 ? "format" : "printf", formats[i]);
        evaluate(plain, expression, expected, sizeof(expected));
        evaluate(bounded, expression, actual, sizeof(actual));
        if (strcmp(expected, actual) != 0)
            T_FAIL("%s is %s, expected %s", expression, actual, expected);
    }
    peg__sqlite_close(plain);
    peg__sqlite_close(bounded);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const char *large_param(void)
{
    enum { N = 1000000 };
    static char json[N + 5];

    memset(json, 'x', sizeof(json));
    memcpy(json, "[\"", 2);
    memcpy(json + N, "\"]", 3);
    return json;
}

/* SQLite asks whether to stop where a program jumps, and a list is filled whole before: what fits
 * into memory is known by how many values there are. */
static void check_list_is_refused(const char *value, unsigned n, const char *params)
{
    struct base b;
    struct peg__buf sql = PEG__BUF(PEG_LIMIT_SQL_BYTES);
    const int64_t before = sqlite3_memory_highwater(true);

    base_open(&b);
    peg__buf_puts(&sql, "SELECT id FROM items WHERE name IN (''");
    for (unsigned i = 0; i < n; i++)
        peg__buf_printf(&sql, ", %s || %u", value, i);
    peg__buf_puts(&sql, ")");
    CHECK_INT(sql.status, PEG_OK);
    check_refused(&b, sql.ptr, params, "E_SQL_LIMIT");
    CHECK(sqlite3_memory_highwater(false) - before < PEG_LIMIT_SQLITE_MEMORY);
    peg__buf_free(&sql);
    base_close(&b);
}
TEST(lists_of_large_values_are_refused_before_they_fill_memory)
{
    check_list_is_refused("hex(zeroblob(1000000))", 400, NULL);
    check_list_is_refused("zeroblob(1000000)", 400, NULL);
    check_list_is_refused("?1", 2000, large_param());
}

/* As a model asks for many rows by their numbers, or for many columns. */
TEST(a_long_list_of_small_values_leaves_room_for_a_large_one)
{
    struct base b;
    struct peg__buf sql = PEG__BUF(PEG_LIMIT_SQL_BYTES);

    base_open(&b);
    peg__buf_puts(&sql, "SELECT length(hex(zeroblob(1000000))) AS n FROM items WHERE id IN (1");
    for (unsigned i = 0; i < 5000; i++)
        peg__buf_printf(&sql, ", %u", 1000000 + i);
    peg__buf_puts(&sql, ") LIMIT 1");
    CHECK_INT(sql.status, PEG_OK);
    check_answer(&b, sql.ptr, NULL, "{\"columns\":[\"n\"],\"rows\":[{\"n\":2000000}],\"count\":1}");
    peg__buf_free(&sql);
    base_close(&b);
}

TEST(a_large_value_alone_is_made)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT length(hex(zeroblob(1000000))) AS n", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":2000000}],\"count\":1}");
    base_close(&b);
}

/* ---- CTEs ------------------------------------------------------------------------------------ */

/* Each one uses the one before twice: n of them are 2^n. */
static void write_doubling(struct peg__buf *out, unsigned n, const char *use)
{
    peg__buf_puts(out, "WITH a0 AS (SELECT 1 x)");
    for (unsigned i = 1; i < n; i++) {
        peg__buf_printf(out, ", a%u(x) AS (", i);
        for (const char *c = use; *c; c++) {
            if (*c == '#')
                peg__buf_printf(out, "a%u", i - 1);
            else
                peg__buf_putc(out, *c);
        }
        peg__buf_putc(out, ')');
    }
    peg__buf_printf(out, " SELECT count(*) AS n FROM a%u", n - 1);
}

TEST(ctes_that_grow_without_bounds_are_refused)
{
    static const char *const uses[] = {
        "SELECT p.x FROM # p, # q",
        "SELECT p.x FROM # p JOIN # q",
        "SELECT p.x FROM # p CROSS JOIN (# q)",
        "SELECT x FROM # UNION ALL SELECT x FROM #",
        "SELECT p.x FROM (# p, \"#\" q)",
        "SELECT p.x FROM [#] p, (SELECT x FROM `#`) q",
        "SELECT 1 WHERE 1 IN # AND 2 IN #",
        "SELECT (SELECT x FROM #) + (SELECT x FROM #)",
        "SELECT p.x FROM # p LEFT JOIN # q ON max(p.x, 1), # r",
        "WITH c AS (SELECT x FROM #) SELECT p.x FROM c p, c q",
        "SELECT p.x FROM # window, # q",
        "SELECT p.x FROM/**/'#' p,--\n # q",
        "SELECT p.x FROM # p, \xEF\xBB\xBF# q",
    };
    struct base b;

    base_open(&b);
    for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
        struct peg__buf sql = PEG__BUF(PEG_LIMIT_SQL_BYTES);

        write_doubling(&sql, 60, uses[i]);
        CHECK_INT(sql.status, PEG_OK);
        check_refused(&b, sql.ptr, NULL, "E_SQL_LIMIT");
        peg__buf_free(&sql);
    }
    base_close(&b);
}

TEST(ctes_that_people_write_are_answered)
{
    struct base b;
    struct peg__buf sql = PEG__BUF(PEG_LIMIT_SQL_BYTES);

    base_open(&b);
    write_doubling(&sql, 6, "SELECT p.x FROM # p, # q");
    check_answer(&b, sql.ptr, NULL, "{\"columns\":[\"n\"],\"rows\":[{\"n\":1}],\"count\":1}");
    check_answer(&b,
                 "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9), "
                 "s AS (SELECT sum(n) AS c FROM c) SELECT c AS n, c IN (c, 2) AS s FROM s",
                 NULL, "{\"columns\":[\"n\",\"s\"],\"rows\":[{\"n\":45,\"s\":1}],\"count\":1}");
    check_answer(&b,
                 "WITH x AS (SELECT 1 AS y, 2 AS z), y AS (SELECT x.y, x.z AS x FROM x) "
                 "SELECT y, x FROM y",
                 NULL, "{\"columns\":[\"y\",\"x\"],\"rows\":[{\"y\":1,\"x\":2}],\"count\":1}");
    peg__buf_free(&sql);
    base_close(&b);
}

static size_t size_of(const char *text, size_t max)
{
    struct peg__sql sql;
    size_t size = 0;

    CHECK_INT(peg__sql_read(peg__str(text), &sql), PEG_OK);
    CHECK_INT(peg__sql_size(&sql, max, &size), PEG_OK);
    peg__sql_free(&sql);
    return size;
}

TEST(a_query_is_as_large_as_its_ctes_where_they_are_used)
{
    CHECK_INT(size_of("SELECT 1", 100), 2);
    CHECK_INT(size_of("WITH a AS (SELECT 1) SELECT 2", 100), 7);
    CHECK_INT(size_of("WITH a AS (SELECT 1) SELECT * FROM a", 100), 11);
    CHECK_INT(size_of("WITH \"a\"\"b\" AS (SELECT 1) SELECT * FROM \"A\"\"b\"", 100), 11);
    CHECK_INT(size_of("WITH \"a\"\"b\" AS (SELECT 1) SELECT * FROM [a\"b]", 100), 11);
    CHECK(size_of("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT 1", 100) > 100);
}

TORTURE(sizing_survives_any_allocation_failure)
{
    struct peg__sql sql;
    size_t size;
    peg_status status = peg__sql_read(peg__str("WITH a AS (SELECT 1) SELECT * FROM a"), &sql);

    if (status)
        return status;
    status = peg__sql_size(&sql, 100, &size);
    peg__sql_free(&sql);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(a_byte_order_mark_hides_no_name)
{
    struct base b;

    base_open(&b);
    check_refused(&b,
                  "WITH \xEF\xBB\xBF"
                  "active_items AS (SELECT 1) SELECT * FROM active_items",
                  NULL, "E_SQL_REFUSED");
    base_close(&b);
}
