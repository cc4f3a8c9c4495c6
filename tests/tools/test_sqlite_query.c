/* SPDX-License-Identifier: Apache-2.0 */

/* What the SQLite tool answers. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "sqlite_world.h"

#define ENDLESS                                                                                    \
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"

/* ---- what is allowed ------------------------------------------------------------------------ */

/* G135 */
TEST(a_query_is_answered_with_columns_rows_and_their_count)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT id, name FROM items ORDER BY id LIMIT 2", NULL,
                 "{\"columns\":[\"id\",\"name\"],\"rows\":[{\"id\":1,\"name\":\"lamp\"},"
                 "{\"id\":2,\"name\":\"chair\"}],\"count\":2}");
    check_answer(&b, "SELECT id FROM items WHERE id > 5", NULL,
                 "{\"columns\":[\"id\"],\"rows\":[],\"count\":0}");
    base_close(&b);
}

/* G135 */
TEST(a_view_can_be_read_where_its_table_cannot)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT name FROM active_items ORDER BY name", NULL,
                 "{\"columns\":[\"name\"],\"rows\":[{\"name\":\"chair\"},{\"name\":\"lamp\"}],"
                 "\"count\":2}");
    check_answer(&b, "SELECT count(*) AS n FROM active_items", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":2}],\"count\":1}");
    check_answer(&b, "SELECT count(*) AS n FROM top_items", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":2}],\"count\":1}");
    check_answer(&b, "SELECT EXISTS (SELECT 1 FROM top_items) AS n", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":1}],\"count\":1}");
    check_answer(&b,
                 "SELECT sum(t.n) AS n FROM top_items t JOIN active_items a ON a.id = t.item_id",
                 NULL, "{\"columns\":[\"n\"],\"rows\":[{\"n\":13}],\"count\":1}");
    check_refused(&b, "SELECT count(*) FROM secret", NULL, "E_SQL_REFUSED");
    base_close(&b);
}

/* G135 */
TEST(ctes_on_allowed_tables_work)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "WITH a AS (SELECT id FROM items) SELECT count(*) AS n FROM a", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":3}],\"count\":1}");
    check_answer(&b, "WITH a(x) AS (SELECT id FROM active_items) SELECT max(x) AS n FROM a", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":2}],\"count\":1}");
    check_answer(&b,
                 "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) "
                 "SELECT count(*) AS n FROM r",
                 NULL, "{\"columns\":[\"n\"],\"rows\":[{\"n\":4}],\"count\":1}");
    check_answer(&b, "SELECT n FROM (SELECT count(*) AS n FROM items) AS active_items", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":3}],\"count\":1}");
    base_close(&b);
}

/* G141 */
TEST(a_select_may_be_written_in_any_way)
{
    static const char *const queries[] = {
        "SELECT\n1 AS a", "select 1 AS a;", "SELECT 1 AS a;  -- done",   " \t\nSELECT 1 AS a ;;",
        "VALUES (1)",     "SeLeCt(1)AS a",  "/* first */ SELECT 1 AS a", "-- x\nSELECT 1 AS a",
    };
    struct base b;

    base_open(&b);
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        peg_record *record = query(&b, queries[i], NULL);

        if (peg_record_is_error(record))
            T_FAIL("%s: %.*s", queries[i], PEG_ARG(text_of(record)));
        CHECK_CONTAINS(text_of(record), "\"rows\":[{");
        peg_record_unref(record);
    }
    base_close(&b);
}

TEST(functions_of_sqlite_that_only_compute_work)
{
    struct base b;

    base_open(&b);
    check_answer(&b,
                 "SELECT upper(name) AS a, round(price) AS b, json_extract('[7]', '$[0]') AS c, "
                 "row_number() OVER (ORDER BY id) AS d, name LIKE 'l%' AS e, "
                 "coalesce(NULL, strftime('%Y', 0, 'unixepoch')) AS f FROM items WHERE id = 1",
                 NULL,
                 "{\"columns\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"rows\":[{\"a\":\"LAMP\","
                 "\"b\":10,\"c\":7,\"d\":1,\"e\":1,\"f\":\"1970\"}],\"count\":1}");
    base_close(&b);
}

TEST(a_listed_function_can_be_read_like_a_table)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT i.name FROM items i, json_each('[1,3]') j WHERE j.value = i.id", NULL,
                 "{\"columns\":[\"name\"],\"rows\":[{\"name\":\"lamp\"},{\"name\":\"table\"}],"
                 "\"count\":2}");
    base_close(&b);
}

TEST(full_text_search_works_on_an_allowed_table)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT body FROM search WHERE search MATCH ? ORDER BY rank", "[\"brass\"]",
                 "{\"columns\":[\"body\"],\"rows\":[{\"body\":\"a lamp of brass\"}],\"count\":1}");
    check_answer(&b,
                 "SELECT highlight(search, 0, '<', '>') AS h FROM search WHERE search MATCH 'oak'",
                 NULL, "{\"columns\":[\"h\"],\"rows\":[{\"h\":\"a chair of <oak>\"}],\"count\":1}");
    base_close(&b);
}

TEST(a_view_with_functions_and_ctes_of_its_own_works)
{
    static const char *const objects[] = {"v", NULL};
    struct base b;

    base_make_file(&b,
                   "CREATE TABLE secret(k TEXT); INSERT INTO secret VALUES ('{\"a\":[1,2]}');"
                   "CREATE VIEW v AS WITH t AS (SELECT k FROM secret), u AS (SELECT j.value AS n "
                   "FROM t, json_each(t.k, '$.a') j) SELECT n FROM u");
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects});
    check_answer(&b, "SELECT sum(n) AS n FROM v", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":3}],\"count\":1}");
    check_answer(&b, "WITH t AS (SELECT n FROM v) SELECT count(*) AS n FROM t", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":2}],\"count\":1}");
    check_refused(&b, "WITH t AS (SELECT k FROM secret) SELECT * FROM t", NULL, "E_SQL_REFUSED");
    check_refused(&b, "SELECT * FROM json_each('[1]')", NULL, "E_SQL_REFUSED");
    base_close(&b);
}

/* ---- values --------------------------------------------------------------------------------- */

/* G135 */
TEST(parameters_are_bound_by_their_type)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT name FROM items WHERE id = ?", "[\"2\"]",
                 "{\"columns\":[\"name\"],\"rows\":[{\"name\":\"chair\"}],\"count\":1}");
    check_answer(&b, "SELECT name FROM items WHERE id = ?", "[2]",
                 "{\"columns\":[\"name\"],\"rows\":[{\"name\":\"chair\"}],\"count\":1}");
    check_answer(&b, "SELECT typeof(?) a, typeof(?) b, typeof(?) c, ? d, ? e, ? f",
                 "[\"x\", 1, 1.5, true, false, null]",
                 "{\"columns\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"rows\":[{\"a\":\"text\","
                 "\"b\":\"integer\",\"c\":\"real\",\"d\":1,\"e\":0,\"f\":null}],\"count\":1}");
    check_answer(&b, "SELECT ?2 || ?1 AS a", "[\"x\", \"y\"]",
                 "{\"columns\":[\"a\"],\"rows\":[{\"a\":\"yx\"}],\"count\":1}");
    check_answer(&b, "SELECT id FROM items ORDER BY id LIMIT :n", "[1]",
                 "{\"columns\":[\"id\"],\"rows\":[{\"id\":1}],\"count\":1}");
    check_answer(&b, "SELECT '''; DROP TABLE items' || ? AS a", "[\"'; DROP TABLE items\"]",
                 "{\"columns\":[\"a\"],\"rows\":[{\"a\":\"'; DROP TABLE items'; DROP TABLE "
                 "items\"}],\"count\":1}");
    base_close(&b);
}

TEST(too_few_and_too_many_values_are_reported)
{
    struct base b;

    base_open(&b);
    check_refused(&b, "SELECT ?", NULL, "E_SQL_PARAMS");
    check_refused(&b, "SELECT ?", "[]", "E_SQL_PARAMS");
    check_refused(&b, "SELECT ?", "[1, 2]", "E_SQL_PARAMS");
    check_refused(&b, "SELECT ?9999", "[1]", NULL);
    base_close(&b);
}

TEST(every_type_comes_out_as_json)
{
    struct base b;

    base_open(&b);
    check_answer(&b,
                 "SELECT NULL AS a, 9223372036854775807 AS b, 0.1 AS c, 'x' AS d, 9e999 AS e, "
                 "-9e999 AS f, ? AS g, '' AS h",
                 "[1e308]",
                 "{\"columns\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"],\"rows\":[{"
                 "\"a\":null,\"b\":9223372036854775807,\"c\":0.1,\"d\":\"x\",\"e\":\"Infinity\","
                 "\"f\":\"-Infinity\",\"g\":1e308,\"h\":\"\"}],\"count\":1}");
    check_answer(&b, "SELECT data FROM items ORDER BY id", NULL,
                 "{\"columns\":[\"data\"],\"rows\":[{\"data\":{\"$blob_base64\":\"AP8=\","
                 "\"bytes\":2}},{\"data\":null},{\"data\":{\"$blob_base64\":\"\",\"bytes\":0}}],"
                 "\"count\":3}");
    base_close(&b);
}

TEST(text_that_is_no_utf8_is_made_safe)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT CAST(x'41ff42' AS TEXT) AS a, CAST(x'410042' AS TEXT) AS b", NULL,
                 "{\"columns\":[\"a\",\"b\"],\"rows\":[{\"a\":\"A\xEF\xBF\xBD"
                 "B\",\"b\":\"A\\u0000B\"}],\"count\":1}");
    base_close(&b);
}

TEST(columns_of_one_name_are_told_apart)
{
    struct base b;

    base_open(&b);
    check_answer(&b, "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a, 5 AS \"\"", NULL,
                 "{\"columns\":[\"a\",\"a_2\",\"a_2_2\",\"a_3\",\"column_5\"],\"rows\":[{\"a\":1,"
                 "\"a_2\":2,\"a_2_2\":3,\"a_3\":4,\"column_5\":5}],\"count\":1}");
    base_close(&b);
}

/* ---- limits ---------------------------------------------------------------------------------- */

#define NUMBERS "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 200) "

/* G138 */
TEST(more_rows_than_allowed_are_left_out_and_reported)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .max_rows = 2});
    check_answer(&b, "SELECT id FROM items", NULL,
                 "{\"columns\":[\"id\"],\"rows\":[{\"id\":1},{\"id\":2}],\"count\":2,"
                 "\"truncated\":true}");
    check_answer(&b, "SELECT id FROM items LIMIT 2", NULL,
                 "{\"columns\":[\"id\"],\"rows\":[{\"id\":1},{\"id\":2}],\"count\":2}");
    base_close(&b);
}

/* G138 */
TEST(a_hundred_rows_are_returned_by_default)
{
    struct base b;
    peg_record *record;

    base_open(&b);
    record = query(&b, NUMBERS "SELECT n FROM r", NULL);
    CHECK_CONTAINS(text_of(record), "\"count\":100,\"truncated\":true");
    peg_record_unref(record);
    base_close(&b);
}

/* G138 */
TEST(more_columns_than_allowed_are_an_error)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .max_columns = 3});
    check_refused(&b, "SELECT 1, 2, 3, 4", NULL, "E_SQL_LIMIT");
    check_answer(&b, "SELECT 1 a, 2 b, 3 c", NULL,
                 "{\"columns\":[\"a\",\"b\",\"c\"],\"rows\":[{\"a\":1,\"b\":2,\"c\":3}],"
                 "\"count\":1}");
    base_close(&b);
}

/* G138 */
TEST(long_cells_are_cut_at_a_character)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .max_cell_bytes = 8});
    check_answer(&b,
                 "SELECT 'abcdefghi' AS a, 'abcdefg\xC3\xA4' AS b, 'abcdef\xC3\xA4' AS c, "
                 "x'000102030405060708' AS d",
                 NULL,
                 "{\"columns\":[\"a\",\"b\",\"c\",\"d\"],\"rows\":[{\"a\":\"abcdefgh\",\"b\":"
                 "\"abcdefg\",\"c\":\"abcdef\xC3\xA4\",\"d\":{\"$blob_base64\":\"AAECAwQF\","
                 "\"bytes\":9}}],\"count\":1,\"cut_cells\":3}");
    base_close(&b);
}

VOLUME_TEST(a_result_has_no_more_bytes_than_allowed)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .max_bytes = 600});
    for (unsigned n = 1; n < 500; n += 7) {
        char sql[128];
        peg_record *record;
        const char *expected = n < 441 ? "\"rows\":[{" : "\"rows\":[]";

        snprintf(sql, sizeof(sql), NUMBERS "SELECT printf('%%.*c', %u, 'x') AS a FROM r", n);
        record = query(&b, sql, NULL);
        CHECK(text_of(record).len <= 600);
        CHECK_CONTAINS(text_of(record), expected);
        CHECK_CONTAINS(text_of(record), "\"truncated\":true");
        peg_record_unref(record);
    }
    base_close(&b);
}

TEST(names_that_do_not_fit_are_an_error)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .max_bytes = 200});
    check_refused(
        &b, "SELECT 1 AS aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        NULL, "E_SQL_LIMIT");
    base_close(&b);
}

TEST(a_value_that_is_computed_too_large_is_refused)
{
    struct base b;

    base_open(&b);
    check_refused(&b, "SELECT zeroblob(100000000)", NULL, "E_SQL_LIMIT");
    check_refused(&b, "SELECT hex(zeroblob(10000000))", NULL, "E_SQL_LIMIT");
    base_close(&b);
}

TEST(a_statement_that_is_too_long_is_refused)
{
    struct base b;
    static char sql[PEG_LIMIT_SQL_BYTES + 100];

    base_open(&b);
    memset(sql, ' ', sizeof(sql) - 1);
    memcpy(sql, "SELECT 1 AS a", 13);
    check_refused(&b, sql, NULL, "E_SQL_LIMIT");
    sql[PEG_LIMIT_SQL_BYTES] = '\0';
    check_answer(&b, sql, NULL, "{\"columns\":[\"a\"],\"rows\":[{\"a\":1}],\"count\":1}");
    base_close(&b);
}

TEST(a_nul_in_a_statement_is_refused)
{
    struct base b;
    peg_record *record = NULL;

    base_open(&b);
    CHECK_INT(world_call(&b.w, "sql_query", "{\"sql\":\"SELECT 1\\u0000; DELETE FROM items\"}",
                         NULL, &record),
              PEG_OK);
    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_cause(record)), "E_SQL_SYNTAX");
    peg_record_unref(record);
    base_close(&b);
}

TEST(a_deeply_nested_expression_is_refused)
{
    struct base b;
    static char sql[40000];
    size_t len = 0;

    base_open(&b);
    len += (size_t)snprintf(sql, sizeof(sql), "SELECT ");
    for (unsigned i = 0; i < 5000; i++)
        sql[len++] = '(';
    sql[len++] = '1';
    for (unsigned i = 0; i < 5000; i++)
        sql[len++] = ')';
    sql[len] = '\0';
    check_refused(&b, sql, NULL, NULL);
    base_close(&b);
}

/* G140 */
TEST(an_order_can_be_required)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b,
               &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .require_order_by = true});
    check_refused(&b, "SELECT id FROM items", NULL, "E_SQL_REFUSED");
    check_refused(&b, "SELECT id FROM (SELECT id FROM items ORDER BY id)", NULL, "E_SQL_REFUSED");
    check_refused(&b, "SELECT id FROM items -- ORDER BY id", NULL, "E_SQL_REFUSED");
    check_answer(&b, "SELECT id FROM items ORDER BY id DESC LIMIT 1", NULL,
                 "{\"columns\":[\"id\"],\"rows\":[{\"id\":3}],\"count\":1}");
    CHECK_CONTAINS(peg__str(peg_tool_description(b.tool)), "ORDER BY");
    base_close(&b);
}

/* ---- time --------------------------------------------------------------------------------------
 */

struct ender {
    struct base *b;
    atomic_bool has_begun;
    void (*end)(struct base *b);
    peg_record *record;
};

static peg_status fill_and_report(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    struct ender *ender = user;

    (void)ctx;
    atomic_store(&ender->has_begun, true);
    return peg_sqlite_exec(db, "CREATE TABLE t(a)", NULL, reterr);
}

static void *end_it(void *user)
{
    struct ender *ender = user;

    while (!atomic_load(&ender->has_begun))
        sched_yield();
    ender->end(ender->b);
    return NULL;
}

static void run_endless(struct base *b, struct ender *ender)
{
    pthread_t thread;

    memset(b, 0, sizeof(*b));
    ender->b = b;
    base_offer(b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill_and_report,
                                    .fill_user = ender, .timeout_ms = 5000});
    CHECK_INT(pthread_create(&thread, NULL, end_it, ender), 0);
    ender->record = query(b, ENDLESS, NULL);
    pthread_join(thread, NULL);
}

static void pass_time(struct base *b)
{
    peg_clock_manual_advance(b->w.clock, 5001);
}

static void cancel(struct base *b)
{
    peg_cancel_fire(b->w.cancel, "enough");
}

/* G139 */
TEST(a_query_without_an_end_is_stopped_at_its_timeout)
{
    struct base b;
    struct ender ender = {.end = pass_time};

    run_endless(&b, &ender);
    CHECK(peg_record_is_error(ender.record));
    CHECK_STR(peg__str(peg_record_code(ender.record)), "E_TOOL_TIMEOUT");
    CHECK_STR(peg__str(peg_record_cause(ender.record)), "E_SQL_TIMEOUT");
    CHECK_CONTAINS(text_of(ender.record), "5000 ms");
    peg_record_unref(ender.record);
    base_close(&b);
}

/* G139 */
TEST(a_query_without_an_end_is_stopped_when_its_call_is_canceled)
{
    struct base b;
    struct ender ender = {.end = cancel};

    run_endless(&b, &ender);
    CHECK(peg_record_is_error(ender.record));
    CHECK_STR(peg__str(peg_record_cause(ender.record)), "E_SQL_CANCELED");
    peg_record_unref(ender.record);
    base_close(&b);
}

VOLUME_TEST(a_query_that_needs_too_much_memory_is_stopped)
{
    struct base b;

    base_open(&b);
    check_refused(&b,
                  "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r), "
                  "big AS (SELECT zeroblob(1000000) || n AS x FROM r) SELECT x FROM big ORDER BY x",
                  NULL, "E_SQL_LIMIT");
    base_close(&b);
}

/* ---- other connections
 * ---------------------------------------------------------------------------- */

TEST(what_others_write_is_seen_by_the_next_call)
{
    struct base b;
    struct peg__sqlite *writer = NULL;

    base_open(&b);
    CHECK_INT(peg__sqlite_open(b.path, PEG__SQLITE_WRITE, &writer, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_exec(writer, "UPDATE items SET name = 'new' WHERE id = 1", NULL), PEG_OK);
    check_answer(&b, "SELECT name FROM items WHERE id = 1", NULL,
                 "{\"columns\":[\"name\"],\"rows\":[{\"name\":\"new\"}],\"count\":1}");
    CHECK_INT(peg__sqlite_exec(writer, "ALTER TABLE items ADD COLUMN colour DEFAULT 'red'", NULL),
              PEG_OK);
    check_answer(&b, "SELECT colour FROM items WHERE id = 1", NULL,
                 "{\"columns\":[\"colour\"],\"rows\":[{\"colour\":\"red\"}],\"count\":1}");
    CHECK_INT(peg__sqlite_exec(writer, "CREATE TABLE later(a)", NULL), PEG_OK);
    check_refused(&b, "SELECT * FROM later", NULL, "E_SQL_REFUSED");
    CHECK_INT(peg__sqlite_exec(writer, "DROP TABLE tags", NULL), PEG_OK);
    check_refused(&b, "SELECT * FROM tags", NULL, "E_SQL_REFUSED");
    peg__sqlite_close(writer);
    base_close(&b);
}

TEST(a_file_that_is_gone_is_reported_without_its_path)
{
    struct base b;
    peg_record *record;

    base_open(&b);
    CHECK_INT(unlink(b.path), 0);
    record = query(&b, "SELECT 1", NULL);
    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_cause(record)), "E_SQLITE");
    CHECK_LACKS(text_of(record), b.directory);
    peg_record_unref(record);
    base_close(&b);
}

enum { N_THREADS = 4, N_CALLS = 25 };

static void *ask_many(void *user)
{
    struct base *b = user;

    for (int i = 0; i < N_CALLS; i++) {
        peg_record *record = NULL;

        if (peg_registry_call(b->w.registry, "sql_query",
                              "{\"sql\":\"SELECT count(*) AS n FROM active_items\"}", &record,
                              NULL))
            return b;
        if (!peg__str_is(text_of(record), "{\"columns\":[\"n\"],\"rows\":[{\"n\":2}],\"count\":1}"))
            return b;
        peg_record_unref(record);
    }
    return NULL;
}

TEST(calls_on_several_threads_do_not_disturb_each_other)
{
    struct base b;
    pthread_t threads[N_THREADS];
    void *failed;

    base_open(&b);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, ask_many, &b), 0);
    for (int i = 0; i < N_THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], &failed), 0);
        CHECK(failed == NULL);
    }
    base_close(&b);
}

/* ---- memory -------------------------------------------------------------------------------------
 */

static struct base tortured; /* only its file */

static peg_status ask_tortured(const char *args)
{
    const peg_sqlite_def def = {PEG_SQLITE_DEF_INIT, .path = tortured.path, .objects = listed};
    struct world w;
    peg_record *record = NULL;
    peg_status status = world_open(&w);

    if (!status)
        status = peg_sqlite_offer(w.registry, &def, NULL);
    if (!status)
        status = world_call(&w, "sql_query", args, NULL, &record);
    peg_record_unref(record);
    world_close(&w);
    return status;
}

/* Before any allocation fails. */
TEST(torture_has_a_file)
{
    base_make_file(&tortured, SCHEMA);
    CHECK_INT(ask_tortured("{\"sql\":\"SELECT 1\"}"), PEG_OK);
}

TORTURE(answering_survives_any_allocation_failure)
{
    return ask_tortured("{\"sql\":\"WITH a AS (SELECT * FROM items) SELECT a.*, a.name, t.n FROM a "
                        "JOIN top_items t ON t.item_id = a.id WHERE a.id < ?\",\"params\":[9]}");
}

TORTURE(refusing_survives_any_allocation_failure)
{
    return ask_tortured("{\"sql\":\"SELECT * FROM secret\"}");
}

TEST(torture_leaves_no_file)
{
    base_remove_file(&tortured);
    CHECK(access(tortured.path, F_OK) != 0);
}
