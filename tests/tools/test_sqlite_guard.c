/* SPDX-License-Identifier: Apache-2.0 */

/* What the SQLite tool lets nobody do. */

#include "base/text/str.h"
#include "sqlite_world.h"
#include "tools/sqlite.h"

static void check_all_refused(const char *const *queries, size_t n, const char *cause)
{
    struct base b;
    char before[PEG_SHA256_HEX];
    char after[PEG_SHA256_HEX];

    base_open(&b);
    file_digest(&b, before);
    for (size_t i = 0; i < n; i++)
        check_refused(&b, queries[i], NULL, cause);
    file_digest(&b, after);
    CHECK_STR(peg__str(after), before);
    base_close(&b);
}

#define CHECK_ALL_REFUSED(queries, cause)                                                          \
    check_all_refused(queries, sizeof(queries) / sizeof(*(queries)), cause)

/* ---- hidden tables ---------------------------------------------------------------------- */

/* G137 */
TEST(every_way_to_name_a_hidden_table_is_refused)
{
    static const char *const queries[] = {
        "SELECT * FROM secret",
        "SELECT * FROM SECRET",
        "SELECT * FROM items, secret",
        "SELECT * FROM \"secret\"",
        "SELECT * FROM [secret]",
        "SELECT * FROM `secret`",
        "SELECT * FROM 'secret'",
        "SELECT * FROM main.secret",
        "SELECT * FROM (secret)",
        "SELECT * FROM ((secret))",
        "SELECT * FROM items WHERE id IN secret",
        "SELECT * FROM items WHERE id IN main.secret",
        "SELECT * FROM items WHERE id IN (SELECT item_id FROM secret)",
        "SELECT * FROM items JOIN secret ON item_id = id",
        "SELECT * FROM items NATURAL JOIN secret",
        "SELECT (SELECT k FROM secret)",
        "SELECT k FROM items, secret s",
        "SELECT 1 UNION SELECT k FROM secret",
        "WITH a AS (SELECT * FROM secret) SELECT * FROM a",
        "SELECT * FROM (SELECT * FROM secret)",
        "VALUES ((SELECT k FROM secret))",
        "TABLE secret",
        "SELECT secret.k FROM secret",
        "SELECT rowid FROM secret",
        "SELECT _rowid_ FROM secret",
        "SELECT nothing FROM secret",
        "SELECT * FROM inner_view",
        "SELECT * FROM search_content",
        "SELECT * FROM search_data",
        "SELECT * FROM hidden_search",
        "SELECT * FROM hidden_search('x')",
        "SELECT * FROM hidden_search_content",
        "SELECT id, /**/k FROM items,secret",
        "SELECT * FROM secret INDEXED BY secret_index",
    };

    CHECK_ALL_REFUSED(queries, NULL);
}

/* G137 */
TEST(counting_and_testing_a_hidden_table_is_refused)
{
    static const char *const queries[] = {
        "SELECT count(*) FROM secret",
        "SELECT count(*) FROM main.secret",
        "SELECT count(*) FROM secret, items",
        "SELECT EXISTS (SELECT 1 FROM secret)",
        "SELECT 1 FROM items WHERE EXISTS (SELECT * FROM secret WHERE item_id = id)",
        "SELECT 1 FROM secret",
        "SELECT count(*) FROM secret, active_items",
        "SELECT count(*) FROM inner_view",
        "SELECT count(*) FROM secret, (WITH secret AS (SELECT 1) SELECT * FROM secret)",
    };

    CHECK_ALL_REFUSED(queries, NULL);
}

/* G137 */
TEST(a_cte_does_not_read_in_the_name_of_a_view)
{
    static const char *const queries[] = {
        "WITH secret AS (SELECT 1) SELECT * FROM main.secret",
        "WITH active_items AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH Active_Items AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH \"active_items\" AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH [active_items] AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH `active_items` AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH 'active_items' AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH active_items(a, b) AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH active_items AS MATERIALIZED (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH active_items AS NOT MATERIALIZED (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH active_items/**/AS/**/(SELECT * FROM secret) SELECT * FROM active_items",
        "WITH RECURSIVE active_items AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH a AS (SELECT 1), active_items AS (SELECT * FROM secret) SELECT * FROM active_items",
        "WITH inner_view AS (SELECT * FROM secret) SELECT * FROM inner_view, top_items",
        "WITH a AS (SELECT $x(')), top_items AS (SELECT k FROM secret) SELECT k FROM top_items --'",
        "SELECT * FROM (WITH active_items AS (SELECT * FROM secret) SELECT * FROM active_items)",
    };

    CHECK_ALL_REFUSED(queries, NULL);
}

/* G137 */
TEST(an_alias_named_like_a_view_opens_nothing)
{
    static const char *const queries[] = {
        "SELECT * FROM (SELECT * FROM secret) AS active_items",
        "SELECT * FROM (SELECT * FROM secret) active_items",
        "SELECT * FROM secret AS active_items",
        "SELECT * FROM secret active_items, active_items x",
        "SELECT count(*) FROM (SELECT k FROM secret) AS top_items",
    };

    CHECK_ALL_REFUSED(queries, NULL);
}

/* The query with a name for every %, and what becomes of it, with % for the name again. */
static void ask_about(struct base *b, const char *pattern, const char *name, char *ret, size_t size)
{
    struct peg__buf sql = PEG__BUF(1000);
    peg_record *record;

    for (; *pattern; pattern++) {
        if (*pattern == '%')
            peg__buf_puts(&sql, name);
        else
            peg__buf_putc(&sql, *pattern);
    }
    record = query(b, sql.ptr, NULL);
    snprintf(ret, size, "%d %s %.*s", peg_record_is_error(record), peg_record_cause(record),
             PEG_ARG(text_of(record)));
    for (char *at; (at = strstr(ret, name));)
        memset(at, '%', strlen(name));
    peg_record_unref(record);
    peg__buf_free(&sql);
}

TEST(a_hidden_table_and_a_missing_one_cannot_be_told_apart)
{
    static const char *const queries[] = {
        "SELECT * FROM %",
        "SELECT k FROM %",
        "SELECT nothing FROM %",
        "SELECT count(*) FROM %",
        "SELECT * FROM items WHERE id IN %",
        "SELECT nothing, % FROM items",
        "SELECT %.k FROM items",
        "SELECT %(1)",
        "SELECT * FROM %(1)",
        "SELECT '%'",
        "SELECT \"%\" FROM items",
        "WITH % AS (SELECT 1 AS a) SELECT a FROM %",
        "WITH % AS (SELECT 1 AS a) SELECT count(*) FROM %",
        "DROP TABLE %",
        "INSERT INTO % VALUES (1)",
        "PRAGMA table_info(%)",
        "SELECT * FROM pragma_table_info('%')",
        "SELECT 1 FROM items AS %",
    };
    struct base b;
    char there[512];
    char missing[512];

    base_open(&b);
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        ask_about(&b, queries[i], "secret", there, sizeof(there));
        ask_about(&b, queries[i], "absent", missing, sizeof(missing));
        if (strcmp(there, missing) != 0)
            T_FAIL("%s\n# hidden: %s\n# missing: %s", queries[i], there, missing);
    }
    base_close(&b);
}

/* ---- other doors ------------------------------------------------------------------------- */

/* G136 */
TEST(tables_of_sqlite_itself_are_refused)
{
    static const char *const queries[] = {
        "SELECT * FROM sqlite_master",
        "SELECT sql FROM sqlite_schema",
        "SELECT count(*) FROM sqlite_master",
        "SELECT * FROM main.sqlite_master",
        "SELECT * FROM temp.sqlite_schema",
        "SELECT * FROM sqlite_temp_master",
        "SELECT count(*) FROM sqlite_schema, (WITH sqlite_schema AS (SELECT 1) SELECT 1)",
        "SELECT * FROM sqlite_sequence",
        "SELECT * FROM sqlite_stat1",
        "SELECT * FROM dbstat",
        "SELECT count(*) FROM dbstat",
        "SELECT count(*) FROM dbstat, (WITH dbstat AS (SELECT 1) SELECT 1)",
        "SELECT * FROM sqlite_dbpage",
        "SELECT * FROM sqlite_stmt",
        "SELECT count(*) FROM sqlite_stmt, (WITH sqlite_stmt AS (SELECT 1) SELECT 1)",
        "SELECT * FROM pragma_table_list",
        "SELECT * FROM pragma_table_info('secret')",
        "SELECT count(*) FROM pragma_table_list",
        "SELECT count(*) FROM pragma_table_list, (WITH pragma_table_list AS (SELECT 1) SELECT 1)",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_compile_options",
        "SELECT * FROM json_tree('[1]')",
        "SELECT * FROM generate_series(1, 2)",
        "SELECT * FROM fts5vocab",
    };

    CHECK_ALL_REFUSED(queries, NULL);
}

/* G136, G142 */
TEST(every_statement_that_is_no_select_is_refused)
{
    static const char *const queries[] = {
        "DELETE FROM items",
        "DELETE FROM items RETURNING *",
        "INSERT INTO items(name) VALUES ('x')",
        "INSERT INTO items(name) VALUES ('x') RETURNING id",
        "REPLACE INTO items(id) VALUES (1)",
        "UPDATE items SET name = 'x'",
        "WITH a AS (SELECT 1) DELETE FROM items",
        "WITH a AS (SELECT 1) INSERT INTO items(name) SELECT 'x'",
        "INSERT INTO search(search) VALUES ('rebuild')",
        "CREATE TABLE t(a)",
        "CREATE TEMP TABLE t(a)",
        "CREATE TABLE t AS SELECT * FROM items",
        "CREATE VIEW v AS SELECT * FROM secret",
        "CREATE TEMP VIEW v AS SELECT * FROM secret",
        "CREATE INDEX i ON items(name)",
        "CREATE TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items; END",
        "CREATE VIRTUAL TABLE v USING fts5vocab(search, 'row')",
        "DROP TABLE items",
        "DROP VIEW active_items",
        "ALTER TABLE items RENAME TO other",
        "ALTER TABLE items ADD COLUMN x",
        "PRAGMA table_info(items)",
        "PRAGMA table_list",
        "PRAGMA user_version = 7",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = WAL",
        "PRAGMA temp_store_directory = '/tmp'",
        "PRAGMA case_sensitive_like = ON",
        "ATTACH DATABASE '/tmp/peg_attached.db' AS other",
        "ATTACH ':memory:' AS other",
        "ATTACH (SELECT name FROM items) AS other",
        "DETACH DATABASE main",
        "VACUUM",
        "VACUUM INTO '/tmp/peg_vacuumed.db'",
        "BEGIN",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "RELEASE a",
        "ANALYZE",
        "REINDEX",
        "EXPLAIN SELECT * FROM active_items",
        "EXPLAIN QUERY PLAN SELECT * FROM active_items",
        "",
        ";",
        "-- nothing",
    };

    CHECK_ALL_REFUSED(queries, NULL);
    CHECK(access("/tmp/peg_vacuumed.db", F_OK) != 0);
    CHECK(access("/tmp/peg_attached.db", F_OK) != 0);
}

/* G142 */
TEST(functions_that_reach_outside_are_refused)
{
    static const char *const queries[] = {
        "SELECT load_extension('x')",
        "SELECT load_extension('x', 'y')",
        "SELECT \"load_extension\"('x')",
        "SELECT LOAD_EXTENSION('x')",
        "SELECT writefile('/tmp/peg_written', 'x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT edit('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT fts3_tokenizer('simple', x'00')",
        "SELECT sqlite_log(1, 'x')",
        "SELECT rtreecheck('main', 'secret')",
        "SELECT optimize(search) FROM search",
        "SELECT sqlite_compileoption_get(0)",
        "SELECT last_insert_rowid()",
        "SELECT total_changes()",
        "SELECT eval('SELECT 1')",
        "SELECT * FROM items WHERE load_extension('x')",
        "SELECT * FROM items ORDER BY load_extension('x')",
        "WITH a AS (SELECT load_extension('x')) SELECT * FROM a",
        "SELECT name REGEXP 'x' FROM items",
    };

    CHECK_ALL_REFUSED(queries, NULL);
}

/* G136 */
TEST(a_second_statement_is_refused)
{
    static const char *const queries[] = {
        "SELECT 1; SELECT 2",
        "SELECT 1; DELETE FROM items",
        "SELECT 1;;; DELETE FROM items",
        "SELECT 1; -- x\nDELETE FROM items",
        "SELECT 1; /* x */ DROP TABLE items",
        "SELECT 1; x",
        "SELECT ';'; DELETE FROM items",
    };

    CHECK_ALL_REFUSED(queries, "E_SQL_REFUSED");
}

TEST(messages_of_sqlite_are_passed_on)
{
    struct base b;
    peg_record *record;

    base_open(&b);
    record = query(&b, "SELECT nme FROM items", NULL);
    CHECK_STR(peg__str(peg_record_cause(record)), "E_SQL_SYNTAX");
    CHECK_CONTAINS(text_of(record), "no such column: nme");
    peg_record_unref(record);
    record = query(&b, "SELEC 1", NULL);
    CHECK_CONTAINS(text_of(record), "near \"SELEC\": syntax error");
    peg_record_unref(record);
    record = query(&b, "SELECT * FROM secret", NULL);
    CHECK_STR(peg__str(peg_record_cause(record)), "E_SQL_REFUSED");
    CHECK_CONTAINS(text_of(record), "no such table: secret; tables and views that can be read: "
                                    "active_items, items, search, tags, top_items");
    peg_record_unref(record);
    base_close(&b);
}

TEST(what_a_view_cannot_compute_does_not_tell_its_data)
{
    static const char *const objects[] = {"v", "w", NULL};
    static const char *const queries[] = {"SELECT * FROM v", "SELECT a FROM w",
                                          "SELECT max(a) FROM v"};
    struct base b;

    base_make_file(&b, "CREATE TABLE secret(k TEXT); INSERT INTO secret VALUES ('" MARKER "');"
                       "CREATE VIEW v AS SELECT json_extract('{}', k) AS a FROM secret;"
                       "CREATE VIEW w AS SELECT json(k) AS a FROM secret");
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects});
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++)
        check_refused(&b, queries[i], NULL, "E_SQL_FAILED");
    base_close(&b);
}

TEST(long_names_of_many_bytes_are_cut_at_a_character)
{
    struct base b;
    char sql[3000] = "SELECT * FROM \"";
    peg_record *record;

    base_open(&b);
    for (size_t shift = 0; shift < 3; shift++) {
        size_t len = strlen("SELECT * FROM \"");

        for (size_t i = 0; i < shift; i++)
            sql[len++] = 'x';
        while (len < 2900) {
            memcpy(sql + len, "\xE2\x82\xAC", 3);
            len += 3;
        }
        memcpy(sql + len, "\"", 2);
        record = query(&b, sql, NULL);
        CHECK(peg_record_is_error(record));
        CHECK(peg__utf8_is_valid(text_of(record)));
        peg_record_unref(record);
    }
    base_close(&b);
}

/* ---- the second wall ----------------------------------------------------------------------- */

/* What the authorizer says by itself, without the sketch before it. */
static peg_status ask_guard(struct peg__sqlite *db, const struct peg__sqlite_scope *scope,
                            const char *text)
{
    struct peg__sql sql;
    struct peg__sqlite_guard guard = {.scope = scope, .sql = &sql};
    struct peg__sqlite_stmt *stmt = NULL;
    peg_status status;

    CHECK_INT(peg__sql_read(peg__str(text), &sql), PEG_OK);
    peg__sqlite_guard(db, peg__sqlite_may, &guard);
    status = peg__sqlite_prepare(db, peg__str(text), &stmt, NULL, NULL);
    peg__sqlite_guard(db, NULL, NULL);
    CHECK_INT(guard.has_refused, status != PEG_OK);
    peg__sqlite_finalize(stmt);
    peg__sql_free(&sql);
    return status;
}

/* G137, G142 */
TEST(the_guard_refuses_hidden_data_by_itself)
{
    static const char *const refused[] = {
        "SELECT * FROM secret",
        "SELECT k FROM items, \"secret\"",
        "SELECT * FROM items WHERE name IN (SELECT k FROM secret)",
        "SELECT rowid FROM secret",
        "WITH secret AS (SELECT 1) SELECT * FROM main.secret",
        "WITH active_items AS (SELECT k FROM secret) SELECT * FROM active_items",
        "WITH [active_items](a) AS MATERIALIZED (SELECT k FROM secret) SELECT * FROM active_items",
        "WITH inner_view AS (SELECT k FROM secret) SELECT * FROM inner_view, top_items",
        "SELECT * FROM (SELECT k FROM secret) AS active_items",
        "SELECT * FROM inner_view",
        "SELECT * FROM sqlite_schema",
        "SELECT count(*) FROM sqlite_schema",
        "SELECT count(*) FROM sqlite_schema, (WITH sqlite_schema AS (SELECT 1) SELECT 1)",
        "SELECT body FROM hidden_search",
        "SELECT block FROM search_data",
        "SELECT * FROM pragma_table_list",
        "SELECT load_extension('x')",
        "DELETE FROM items",
        "PRAGMA user_version",
        "PRAGMA data_version",
        "ATTACH '' AS x",
        "CREATE TEMP TABLE x(a)",
    };
    static const char *const allowed[] = {
        "SELECT * FROM items",
        "SELECT * FROM active_items, top_items",
        "SELECT count(*) FROM top_items",
        "WITH a AS (SELECT * FROM items) SELECT count(*) FROM a",
        "SELECT value FROM json_each('[]')",
    };
    struct base b;
    struct peg__sqlite *db = NULL;
    struct peg__sqlite_scope scope;

    base_make_file(&b, SCHEMA);
    CHECK_INT(peg__sqlite_open(b.path, PEG__SQLITE_READ, &db, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_scope_open(db, listed, one_function, true, &scope, NULL), PEG_OK);
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        if (ask_guard(db, &scope, refused[i]) == PEG_OK)
            T_FAIL("%s is let through", refused[i]);
    }
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
        if (ask_guard(db, &scope, allowed[i]) != PEG_OK)
            T_FAIL("%s is refused", allowed[i]);
    }
    peg__sqlite_scope_close(&scope);
    peg__sqlite_close(db);
    base_remove_file(&b);
}

/* A query can come to the guard of the real database only through the sketch. A table without
 * rowids is the one difference that an honest query may meet. */
TEST(the_guard_stands_on_the_real_database)
{
    static const char *const objects[] = {"t", "u", NULL};
    struct base b;

    base_make_file(&b, "CREATE TABLE t(a PRIMARY KEY) WITHOUT ROWID;"
                       "CREATE TABLE secret(k); INSERT INTO secret VALUES ('" MARKER "');"
                       "CREATE VIEW u AS SELECT sqlite_source_id() AS a, k FROM secret");
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects});
    check_refused(&b, "SELECT rowid FROM t", NULL, "E_SQL_REFUSED");
    check_refused(&b, "SELECT a FROM u", NULL, "E_SQL_REFUSED"); /* a function that is not listed */
    base_close(&b);
}

/* ---- a storm ----------------------------------------------------------------------------------
 */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *const pieces[] = {
    "SELECT ",
    "* ",
    "FROM ",
    "secret ",
    "items ",
    "active_items ",
    "WHERE ",
    "k ",
    "id ",
    "name ",
    "IN ",
    "(",
    ")",
    ", ",
    "WITH ",
    "AS ",
    "RECURSIVE ",
    "MATERIALIZED ",
    "UNION ",
    "ALL ",
    "count(*) ",
    "EXISTS ",
    "main.",
    "\"secret\" ",
    "[secret] ",
    "; ",
    "DELETE ",
    "INSERT INTO ",
    "VALUES ",
    "UPDATE ",
    "SET ",
    "= ",
    "PRAGMA ",
    "ATTACH ",
    "'x' ",
    "sqlite_master ",
    "DROP ",
    "TABLE ",
    "inner_view ",
    "top_items ",
    "search ",
    "MATCH ",
    "JOIN ",
    "ON ",
    "ORDER BY ",
    "1 ",
    "load_extension(",
    "search_data ",
    "EXPLAIN ",
    "-- ",
    "/* ",
    "*/ ",
    "\n",
    "hidden_search ",
    "LIMIT ",
    "VACUUM ",
    "INTO ",
    "pragma_table_list ",
    "(SELECT k FROM secret) ",
    "SELECT * FROM ",
    "SELECT k FROM secret ",
    "WITH active_items AS (SELECT k FROM secret) ",
    "SELECT * FROM active_items ",
    "SELECT name FROM items ",
    "(SELECT 1) ",
    "WITH a AS (",
    "SELECT count(*) FROM ",
    "secret s ",
    "UNION ALL SELECT k, 1 FROM secret ",
};

/* Pieces by chance, every other time after a whole query. */
static void make_hostile(char *sql, size_t size, uint64_t *state)
{
    static const char *const whole[] = {"SELECT name FROM items ", "SELECT * FROM active_items ",
                                        "SELECT count(*) FROM top_items ",
                                        "SELECT body FROM search WHERE search MATCH 'oak' "};
    const bool has_whole = next_random(state) % 2;
    const size_t n = has_whole ? next_random(state) % 4 : 1 + next_random(state) % 12;

    snprintf(sql, size, "%s", has_whole ? whole[next_random(state) % 4] : "");
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(sql);

        snprintf(sql + len, size - len, "%s",
                 pieces[next_random(state) % (sizeof(pieces) / sizeof(*pieces))]);
    }
}

/* Each of them takes a tenth of a second there. */
static unsigned storm_size(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload") ? 50 : 1200;
}

/* G142 */
TEST(a_storm_of_hostile_statements_changes_nothing_and_learns_nothing)
{
    struct base b;
    char before[PEG_SHA256_HEX];
    char after[PEG_SHA256_HEX];
    uint64_t state = 20241115;
    const unsigned n = storm_size();
    unsigned n_answered = 0;

    base_open(&b);
    file_digest(&b, before);
    for (unsigned i = 0; i < n; i++) {
        char sql[512];
        peg_record *record;

        make_hostile(sql, sizeof(sql), &state);
        record = query(&b, sql, NULL);
        if (contains(text_of(record), MARKER))
            T_FAIL("%s tells %.*s", sql, PEG_ARG(text_of(record)));
        n_answered += !peg_record_is_error(record);
        peg_record_unref(record);
    }
    file_digest(&b, after);
    CHECK_STR(peg__str(after), before);
    CHECK(n_answered > n / 12); /* else it tested nothing but syntax */
    base_close(&b);
}
