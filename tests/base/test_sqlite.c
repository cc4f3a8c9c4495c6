/* SPDX-License-Identifier: Apache-2.0 */

#include "base/sqlite/sqlite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../t.h"
#include "base/text/str.h"

/* ---- fixture: a folder of its own with one database file ---------------------------------- */

struct place {
    char directory[64];
    char path[128];
};

static void place_open(struct place *place)
{
    snprintf(place->directory, sizeof(place->directory), "/tmp/peg_sqlite_XXXXXX");
    CHECK(mkdtemp(place->directory) != NULL);
    snprintf(place->path, sizeof(place->path), "%s/a.db", place->directory);
}

static void place_close(struct place *place)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[160];

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        snprintf(path, sizeof(path), "%s%s", place->path, ends[i]);
        unlink(path);
    }
    rmdir(place->directory);
}

static struct peg__sqlite *open_db(const char *path, enum peg__sqlite_mode mode)
{
    struct peg__sqlite *db = NULL;

    CHECK_INT(peg__sqlite_open(path, mode, &db, NULL), PEG_OK);
    return db;
}

static struct peg__sqlite_stmt *prepare(struct peg__sqlite *db, const char *sql)
{
    struct peg__sqlite_stmt *stmt = NULL;

    CHECK_INT(peg__sqlite_prepare(db, peg__str(sql), &stmt, NULL, NULL), PEG_OK);
    return stmt;
}

static int64_t ask(struct peg__sqlite *db, const char *sql)
{
    struct peg__sqlite_stmt *stmt = prepare(db, sql);
    bool is_row = false;
    int64_t number;

    CHECK_INT(peg__sqlite_step(stmt, &is_row, NULL), PEG_OK);
    CHECK(is_row);
    number = peg__sqlite_int64(stmt, 0);
    peg__sqlite_finalize(stmt);
    return number;
}

/* ---- statements ------------------------------------------------------------------------------ */

TEST(every_type_is_bound_and_read_back)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *stmt = prepare(db, "SELECT ?, ?, ?, ?, ?, ?");
    bool is_row = false;

    CHECK_INT(peg__sqlite_n_params(stmt), 6);
    CHECK_INT(peg__sqlite_bind_null(stmt, 1, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bind_int64(stmt, 2, INT64_MIN, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bind_double(stmt, 3, 0.5, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bind_text(stmt, 4, peg__strn("a\0b", 3), NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bind_blob(stmt, 5, peg__strn("\0\1", 2), NULL), PEG_OK);
    CHECK_INT(peg__sqlite_bind_text(stmt, 6, peg__strn(NULL, 0), NULL), PEG_OK);
    CHECK_INT(peg__sqlite_step(stmt, &is_row, NULL), PEG_OK);

    CHECK(is_row);
    CHECK_INT(peg__sqlite_n_columns(stmt), 6);
    CHECK_INT(peg__sqlite_type_of(stmt, 0), PEG__SQLITE_NULL);
    CHECK_INT(peg__sqlite_type_of(stmt, 1), PEG__SQLITE_INTEGER);
    CHECK_INT(peg__sqlite_int64(stmt, 1), INT64_MIN);
    CHECK_INT(peg__sqlite_type_of(stmt, 2), PEG__SQLITE_REAL);
    CHECK(peg__sqlite_double(stmt, 2) == 0.5);
    CHECK_INT(peg__sqlite_type_of(stmt, 3), PEG__SQLITE_TEXT);
    CHECK(peg__str_eq(peg__sqlite_text(stmt, 3), peg__strn("a\0b", 3)));
    CHECK_INT(peg__sqlite_type_of(stmt, 4), PEG__SQLITE_BLOB);
    CHECK(peg__str_eq(peg__sqlite_blob(stmt, 4), peg__strn("\0\1", 2)));
    CHECK_INT(peg__sqlite_type_of(stmt, 5), PEG__SQLITE_TEXT);
    CHECK_INT(peg__sqlite_text(stmt, 5).len, 0);
    CHECK_INT(peg__sqlite_text(stmt, 0).len, 0);
    CHECK_INT(peg__sqlite_blob(stmt, 0).len, 0);
    peg__sqlite_finalize(stmt);
    peg__sqlite_close(db);
}

TEST(a_statement_that_was_run_is_ready_to_be_bound_again)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *stmt;

    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a)", NULL), PEG_OK);
    stmt = prepare(db, "INSERT INTO t VALUES (?)");
    CHECK_INT(peg__sqlite_bind_int64(stmt, 1, 7, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_run(stmt, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_changes(db), 1);
    CHECK_INT(peg__sqlite_last_rowid(db), 1);
    CHECK_INT(peg__sqlite_run(stmt, NULL), PEG_OK);

    CHECK_INT(ask(db, "SELECT count(*) FROM t"), 2);
    CHECK_INT(ask(db, "SELECT count(a) FROM t"), 1);
    peg__sqlite_finalize(stmt);
    peg__sqlite_close(db);
}

TEST(prepare_hands_out_what_comes_after_the_first_statement)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *stmt = NULL;
    peg_str tail;

    CHECK_INT(peg__sqlite_prepare(db, peg__str("SELECT 1; SELECT 2"), &stmt, &tail, NULL), PEG_OK);

    CHECK_STR(tail, " SELECT 2");
    CHECK_STR(peg__str(peg__sqlite_column_name(stmt, 0)), "1");
    peg__sqlite_finalize(stmt);
    peg__sqlite_close(db);
}

TEST(a_text_without_a_statement_gives_none)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *stmt = (struct peg__sqlite_stmt *)&db;

    CHECK_INT(peg__sqlite_prepare(db, peg__str(" -- nothing\n"), &stmt, NULL, NULL), PEG_OK);
    CHECK(stmt == NULL);
    stmt = (struct peg__sqlite_stmt *)&db;
    CHECK_INT(peg__sqlite_prepare(db, peg__strn(NULL, 0), &stmt, NULL, NULL), PEG_OK);
    CHECK(stmt == NULL);
    CHECK(peg__sqlite_finalize(NULL) == NULL);
    peg__sqlite_close(db);
}

TEST(statements_tell_what_they_are)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *select = prepare(db, "SELECT 1");
    struct peg__sqlite_stmt *create = prepare(db, "CREATE TABLE t(a)");
    struct peg__sqlite_stmt *explain = prepare(db, "EXPLAIN SELECT 1");

    CHECK(peg__sqlite_is_read_only(select));
    CHECK(!peg__sqlite_is_explain(select));
    CHECK(!peg__sqlite_is_read_only(create));
    CHECK(peg__sqlite_is_explain(explain));
    peg__sqlite_finalize(select);
    peg__sqlite_finalize(create);
    peg__sqlite_finalize(explain);
    peg__sqlite_close(db);
}

/* ---- errors ------------------------------------------------------------------------------------
 */

TEST(a_mistake_in_a_statement_is_told_in_the_words_of_sqlite)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *stmt = NULL;
    peg_error error;

    CHECK_INT(peg__sqlite_prepare(db, peg__str("SELEC 1"), &stmt, NULL, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_SQLITE");
    CHECK_STR(peg__str(error.message), "near \"SELEC\": syntax error");
    CHECK(stmt == NULL);
    peg__sqlite_close(db);
}

TEST(a_key_that_is_taken_can_be_told_from_other_errors)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    peg_error error;

    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a PRIMARY KEY); INSERT INTO t VALUES (1)", NULL),
              PEG_OK);
    CHECK_INT(peg__sqlite_exec(db, "INSERT INTO t VALUES (1)", &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_SQLITE_CONSTRAINT");
    peg__sqlite_close(db);
}

TEST(a_value_beyond_the_limit_is_refused)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    peg_error error;

    peg__sqlite_set_limit(db, PEG__SQLITE_LIMIT_LENGTH, 1000);
    CHECK_INT(peg__sqlite_exec(db, "SELECT zeroblob(1001)", &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_SQLITE_TOO_BIG");
    peg__sqlite_close(db);
}

TEST(a_parameter_that_is_not_there_is_an_error)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct peg__sqlite_stmt *stmt = prepare(db, "SELECT ?");

    CHECK_INT(peg__sqlite_bind_int64(stmt, 2, 1, NULL), PEG_EIO);
    peg__sqlite_finalize(stmt);
    peg__sqlite_close(db);
}

/* ---- files
 * ---------------------------------------------------------------------------------------- */

TEST(a_file_that_is_missing_is_made_for_writing_only)
{
    struct place place;
    struct peg__sqlite *db = NULL;
    peg_error error;

    place_open(&place);
    CHECK_INT(peg__sqlite_open(place.path, PEG__SQLITE_READ, &db, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_SQLITE");
    CHECK(db == NULL);
    CHECK(access(place.path, F_OK) != 0);

    db = open_db(place.path, PEG__SQLITE_WRITE);
    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a)", NULL), PEG_OK);
    CHECK(access(place.path, F_OK) == 0);
    peg__sqlite_close(db);
    place_close(&place);
}

TEST(what_is_opened_for_reading_cannot_be_changed)
{
    struct place place;
    struct peg__sqlite *db;

    place_open(&place);
    db = open_db(place.path, PEG__SQLITE_WRITE);
    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES (5)", NULL), PEG_OK);
    peg__sqlite_close(db);

    db = open_db(place.path, PEG__SQLITE_READ);
    CHECK_INT(peg__sqlite_exec(db, "INSERT INTO t VALUES (6)", NULL), PEG_EIO);
    CHECK_INT(peg__sqlite_exec(db, "PRAGMA query_only = OFF; DELETE FROM t", NULL), PEG_EIO);
    CHECK_INT(ask(db, "SELECT sum(a) FROM t"), 5);
    peg__sqlite_close(db);
    place_close(&place);
}

TEST(a_path_is_a_file_also_if_it_looks_like_something_else)
{
    struct place place;
    struct peg__sqlite *db = NULL;
    char here[512];

    place_open(&place);
    CHECK(getcwd(here, sizeof(here)) != NULL);
    CHECK_INT(chdir(place.directory), 0);
    db = open_db(":memory:", PEG__SQLITE_WRITE);
    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a)", NULL), PEG_OK);
    peg__sqlite_close(db);
    db = open_db("file:x?mode=memory", PEG__SQLITE_WRITE);
    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a)", NULL), PEG_OK);
    peg__sqlite_close(db);

    CHECK_INT(unlink(":memory:"), 0);
    CHECK_INT(unlink("file:x?mode=memory"), 0);
    CHECK_INT(chdir(here), 0);
    place_close(&place);
}

TEST(opening_needs_a_path)
{
    struct peg__sqlite *db = NULL;

    CHECK_INT(peg__sqlite_open(NULL, PEG__SQLITE_READ, &db, NULL), PEG_EINVAL);
    CHECK_INT(peg__sqlite_open("", PEG__SQLITE_WRITE, &db, NULL), PEG_EINVAL);
    CHECK(peg__sqlite_close(NULL) == NULL);
}

TEST(a_frozen_database_does_not_change)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);

    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a)", NULL), PEG_OK);
    CHECK_INT(peg__sqlite_freeze(db, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_exec(db, "INSERT INTO t VALUES (1)", NULL), PEG_EIO);
    CHECK_INT(peg__sqlite_exec(db, "DROP TABLE t", NULL), PEG_EIO);
    peg__sqlite_close(db);
}

TEST(a_hardened_connection_loads_nothing_and_keeps_its_schema)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);

    CHECK_INT(peg__sqlite_exec(db, "SELECT load_extension('x')", NULL), PEG_EIO);
    CHECK_INT(peg__sqlite_exec(db, "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema", NULL),
              PEG_EIO);
    peg__sqlite_close(db);
}

TEST(views_can_be_let_use_json_and_nothing_that_reaches_outside)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);

    peg__sqlite_let_views_use_json(db);
    CHECK_INT(peg__sqlite_exec(db,
                               "CREATE VIEW v AS SELECT json_extract('{\"a\":5}', '$.a') AS a;"
                               "CREATE VIEW w AS SELECT load_extension('x') AS a",
                               NULL),
              PEG_OK);
    CHECK_INT(ask(db, "SELECT a FROM v"), 5);
    CHECK_INT(peg__sqlite_exec(db, "SELECT * FROM w", NULL), PEG_EIO);
    peg__sqlite_close(db);
}

/* ---- transactions
 * ------------------------------------------------------------------------------------ */

TEST(a_transaction_is_kept_whole_or_not_at_all)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);

    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a)", NULL), PEG_OK);
    CHECK_INT(peg__sqlite_begin(db, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_exec(db, "INSERT INTO t VALUES (1)", NULL), PEG_OK);
    CHECK_INT(peg__sqlite_end(db, PEG_ELIMIT, NULL), PEG_ELIMIT);
    CHECK_INT(ask(db, "SELECT count(*) FROM t"), 0);

    CHECK_INT(peg__sqlite_begin(db, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_exec(db, "INSERT INTO t VALUES (1)", NULL), PEG_OK);
    CHECK_INT(peg__sqlite_end(db, PEG_OK, NULL), PEG_OK);
    CHECK_INT(ask(db, "SELECT count(*) FROM t"), 1);
    peg__sqlite_rollback(db);
    peg__sqlite_close(db);
}

TEST(a_commit_that_fails_leaves_no_transaction)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);

    CHECK_INT(peg__sqlite_exec(db,
                               "CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(a REFERENCES p(a) "
                               "DEFERRABLE INITIALLY DEFERRED)",
                               NULL),
              PEG_OK);
    CHECK_INT(peg__sqlite_begin(db, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_exec(db, "INSERT INTO c VALUES (1)", NULL), PEG_OK);
    CHECK_INT(peg__sqlite_commit(db, NULL), PEG_EEXISTS);

    CHECK_INT(ask(db, "SELECT count(*) FROM c"), 0);
    CHECK_INT(peg__sqlite_begin(db, NULL), PEG_OK);
    peg__sqlite_close(db);
}

TEST(a_read_transaction_sees_one_state)
{
    struct place place;
    struct peg__sqlite *writer;
    struct peg__sqlite *reader;

    place_open(&place);
    writer = open_db(place.path, PEG__SQLITE_WRITE);
    CHECK_INT(peg__sqlite_exec(writer, "CREATE TABLE t(a)", NULL), PEG_OK);
    reader = open_db(place.path, PEG__SQLITE_READ);
    CHECK_INT(peg__sqlite_begin_read(reader, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_exec(writer, "INSERT INTO t VALUES (1)", NULL), PEG_OK);

    CHECK_INT(ask(reader, "SELECT count(*) FROM t"), 0);
    CHECK_INT(peg__sqlite_commit(reader, NULL), PEG_OK);
    CHECK_INT(ask(reader, "SELECT count(*) FROM t"), 1);
    peg__sqlite_close(reader);
    peg__sqlite_close(writer);
    place_close(&place);
}

/* ---- stopping
 * -------------------------------------------------------------------------------------------- */

#define ENDLESS                                                                                    \
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"

static bool stop_at_the_third(void *user)
{
    return ++*(int *)user >= 3;
}

TEST(what_watches_a_statement_can_stop_it)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    int n_asked = 0;
    peg_error error;

    peg__sqlite_watch(db, 1000, stop_at_the_third, &n_asked);
    CHECK_INT(peg__sqlite_exec(db, ENDLESS, &error), PEG_ECANCELED);
    CHECK_STR(peg__str(error.code), "E_SQLITE");
    CHECK_INT(n_asked, 3);
    peg__sqlite_watch(db, 0, NULL, NULL);
    CHECK_INT(ask(db, "SELECT 1"), 1);
    peg__sqlite_close(db);
}

TEST(a_lock_is_waited_for_until_what_watches_says_stop)
{
    struct place place;
    struct peg__sqlite *first;
    struct peg__sqlite *second;
    int n_asked = 0;
    peg_error error;

    place_open(&place);
    first = open_db(place.path, PEG__SQLITE_WRITE);
    second = open_db(place.path, PEG__SQLITE_WRITE);
    peg__sqlite_watch(second, 1000, stop_at_the_third, &n_asked);
    CHECK_INT(peg__sqlite_begin(first, NULL), PEG_OK);

    CHECK_INT(peg__sqlite_begin(second, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_SQLITE_BUSY");
    CHECK_INT(n_asked, 3);
    CHECK_INT(peg__sqlite_commit(first, NULL), PEG_OK);
    n_asked = -1000;
    CHECK_INT(peg__sqlite_begin(second, NULL), PEG_OK);
    peg__sqlite_close(second);
    peg__sqlite_close(first);
    place_close(&place);
}

struct runaway {
    struct peg__sqlite *db;
    atomic_bool is_running;
};

static bool tell_that_it_runs(void *user)
{
    struct runaway *runaway = user;

    atomic_store(&runaway->is_running, true);
    return false;
}

static void *interrupt_it(void *user)
{
    struct runaway *runaway = user;

    while (!atomic_load(&runaway->is_running))
        sched_yield();
    peg__sqlite_interrupt(runaway->db);
    return NULL;
}

TEST(another_thread_can_interrupt_a_statement)
{
    struct runaway runaway = {.db = open_db(NULL, PEG__SQLITE_MEMORY)};
    pthread_t thread;

    peg__sqlite_watch(runaway.db, 1000, tell_that_it_runs, &runaway);
    CHECK_INT(pthread_create(&thread, NULL, interrupt_it, &runaway), 0);
    CHECK_INT(peg__sqlite_exec(runaway.db, ENDLESS, NULL), PEG_ECANCELED);
    pthread_join(thread, NULL);
    peg__sqlite_close(runaway.db);
}

/* ---- guarding
 * -----------------------------------------------------------------------------------------------
 */

struct seen {
    unsigned actions; /* a bit for each */
    char table[32];
    char column[32];
    char source[32];
    char function[32];
};

static void copy_word(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static bool note_and_refuse_others(const struct peg__sqlite_request *request, void *user)
{
    struct seen *seen = user;

    seen->actions |= 1U << request->action;
    if (request->action == PEG__SQLITE_FUNCTION)
        copy_word(seen->function, sizeof(seen->function), request->second);
    if (request->action == PEG__SQLITE_READ_OF && request->source) {
        copy_word(seen->table, sizeof(seen->table), request->first);
        copy_word(seen->column, sizeof(seen->column), request->second);
        copy_word(seen->source, sizeof(seen->source), request->source);
    }
    return request->action != PEG__SQLITE_OTHER;
}

TEST(the_guard_is_asked_for_everything_and_can_refuse)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);
    struct seen seen = {0};

    CHECK_INT(peg__sqlite_exec(db, "CREATE TABLE t(a); CREATE VIEW v AS SELECT a FROM t", NULL),
              PEG_OK);
    peg__sqlite_guard(db, note_and_refuse_others, &seen);
    CHECK_INT(peg__sqlite_exec(db, "SELECT upper(a) FROM v", NULL), PEG_OK);
    CHECK_STR(peg__str(seen.table), "t");
    CHECK_STR(peg__str(seen.column), "a");
    CHECK_STR(peg__str(seen.source), "v");
    CHECK_STR(peg__str(seen.function), "upper");
    CHECK_INT(seen.actions,
              1U << PEG__SQLITE_SELECT | 1U << PEG__SQLITE_READ_OF | 1U << PEG__SQLITE_FUNCTION);

    CHECK_INT(peg__sqlite_exec(db, "DELETE FROM t", NULL), PEG_EIO);
    CHECK_INT(peg__sqlite_exec(db, "ATTACH '' AS x", NULL), PEG_EIO);
    CHECK_INT(peg__sqlite_exec(db, "PRAGMA user_version", NULL), PEG_OK);
    CHECK(seen.actions & 1U << PEG__SQLITE_PRAGMA);
    peg__sqlite_guard(db, NULL, NULL);
    CHECK_INT(peg__sqlite_exec(db, "DELETE FROM t", NULL), PEG_OK);
    peg__sqlite_close(db);
}

TEST(scratch_in_memory_counts_as_memory)
{
    struct peg__sqlite *db = open_db(NULL, PEG__SQLITE_MEMORY);

    CHECK_INT(peg__sqlite_scratch_in_memory(db, NULL), PEG_OK);
    CHECK_INT(ask(db, "PRAGMA temp_store"), 2);
    CHECK(peg__sqlite_memory_used() > 0);
    peg__sqlite_close(db);
}

TORTURE(opening_survives_any_allocation_failure)
{
    struct peg__sqlite *db = NULL;
    const peg_status status = peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &db, NULL);

    CHECK(!status == !!db);
    peg__sqlite_close(db);
    return status;
}
