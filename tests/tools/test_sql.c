/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/sqlite.h"

#include "../t.h"
#include "base/text/str.h"

/* Tokens with a bar between them. */
static void check_tokens(const char *text, const char *expected)
{
    char joined[512] = "";
    peg_str rest = peg__str(text);
    struct peg__sql_token token;
    unsigned depth = 0;

    while (peg__sql_next(&rest, &depth, &token)) {
        const size_t len = strlen(joined);

        snprintf(joined + len, sizeof(joined) - len, "%s%.*s", len ? "|" : "", PEG_ARG(token.text));
    }
    CHECK_STR(peg__str(joined), expected);
}

static bool gives(const char *text, const char *name)
{
    struct peg__sql sql;
    bool result;

    CHECK_INT(peg__sql_read(peg__str(text), &sql), PEG_OK);
    result = peg__sql_gives_name(&sql, peg__str(name));
    peg__sql_free(&sql);
    return result;
}

static bool is_ordered(const char *text)
{
    struct peg__sql sql;
    bool result;

    CHECK_INT(peg__sql_read(peg__str(text), &sql), PEG_OK);
    result = sql.is_ordered;
    peg__sql_free(&sql);
    return result;
}

TEST(sql_is_split_as_sqlite_splits_it)
{
    check_tokens("SELECT a.b,1.5e3 FROM t", "SELECT|a|.|b|,|1.5e3|FROM|t");
    check_tokens("a-- b\nc/* d */e", "a|c|e");
    check_tokens("a/* b", "a");
    check_tokens("'it''s' \"a\"\"b\" `c``d` [e]f", "'it''s'|\"a\"\"b\"|`c``d`|[e]|f");
    check_tokens("'open", "'open");
    check_tokens("a--", "a");
    check_tokens("?1 :a @b $c $d::e(f)g", "?|1|:a|@b|$c|$d::e(f)|g");
    check_tokens("$x(') y", "$x(')|y");
    check_tokens("\xC3\xA4$1 x", "\xC3\xA4$1|x");
    check_tokens("", "");
    check_tokens(" \t\n\f\r", "");
    check_tokens("-", "-");
    check_tokens("$", "$");
    check_tokens("[", "[");
}

TEST(names_are_compared_without_quotes_and_case)
{
    CHECK(gives("WITH \"A\"\"b\" AS (SELECT 1) SELECT 1", "a\"B"));
    CHECK(gives("WITH [a] AS (SELECT 1) SELECT 1", "A"));
    CHECK(gives("WITH 'a' AS (SELECT 1) SELECT 1", "a"));
    CHECK(gives("WITH `a` AS (SELECT 1) SELECT 1", "a"));
    CHECK(!gives("WITH `a` AS (SELECT 1) SELECT 1", "ab"));
    CHECK(!gives("WITH `ab` AS (SELECT 1) SELECT 1", "a"));
    CHECK(!gives("WITH `ab AS (SELECT 1) SELECT 1", "ab"));
}

TEST(every_form_of_a_cte_gives_its_name)
{
    CHECK(gives("WITH a AS (SELECT 1) SELECT 1", "a"));
    CHECK(gives("WITH a(b, c) AS (SELECT 1, 2) SELECT 1", "a"));
    CHECK(gives("WITH a AS MATERIALIZED (SELECT 1) SELECT 1", "a"));
    CHECK(gives("WITH a AS NOT MATERIALIZED (SELECT 1) SELECT 1", "a"));
    CHECK(gives("WITH RECURSIVE a AS (SELECT 1), b(x) AS (SELECT 2) SELECT 1", "b"));
    CHECK(gives("SELECT (WITH a AS (SELECT 1) SELECT * FROM a)", "a"));
    CHECK(gives("WITH a /* ( */ (b /* ) */) -- AS\nAS(SELECT 1) SELECT 1", "a"));
}

TEST(what_is_no_cte_gives_no_name)
{
    CHECK(!gives("SELECT 1 AS a, (SELECT 2)", "a"));
    CHECK(!gives("SELECT * FROM t AS a", "a"));
    CHECK(!gives("SELECT ' a AS (SELECT 1)'", "a"));
    CHECK(!gives("AS (", "AS"));
    CHECK(!gives(") AS (", ")"));
    CHECK(!gives("(x) AS (", "x"));
}

TEST(only_an_order_outside_parentheses_counts)
{
    CHECK(is_ordered("SELECT 1 ORDER BY 1"));
    CHECK(is_ordered("SELECT 1 order /* */ by 1"));
    CHECK(!is_ordered("SELECT * FROM (SELECT 1 ORDER BY 1)"));
    CHECK(!is_ordered("SELECT 'ORDER BY'"));
    CHECK(!is_ordered("SELECT 1 -- ORDER BY 1"));
    CHECK(!is_ordered("SELECT \"order\" by"));
    CHECK(!is_ordered("SELECT 1 ORDER"));
}

TEST(blank_is_space_comments_and_semicolons)
{
    CHECK(peg__sql_is_blank(peg__str("")));
    CHECK(peg__sql_is_blank(peg__str(" ; -- x\n/* y */;")));
    CHECK(!peg__sql_is_blank(peg__str("; x")));
    CHECK(!peg__sql_is_blank(peg__strn("\0", 1)));
}

TORTURE(reading_survives_any_allocation_failure)
{
    struct peg__sql sql;
    const peg_status status = peg__sql_read(
        peg__str("WITH a AS (SELECT 1), b AS (SELECT 2), c AS (SELECT 3) SELECT 1"), &sql);

    if (!status)
        peg__sql_free(&sql);
    return status;
}
