/* SPDX-License-Identifier: Apache-2.0 */

/* What is particular about turns in SQLite: what is stored once, what goes, what is refused. */

#include <sys/resource.h>

#include "base/sqlite/sqlite.h"
#include "store_world.h"

static const struct store_kind *const in_sqlite = &store_kinds[2];

/* ---- looking into the database --------------------------------------------------------------- */

static const char *path_of(const struct world *w)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/turns.db", w->folder);
    return path;
}

static int64_t ask(const struct world *w, const char *query)
{
    struct peg__sqlite *db = NULL;
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    int64_t answer;
    peg_error error;

    CHECK_STATUS(peg__sqlite_open(path_of(w), PEG__SQLITE_READ, &db, &error), PEG_OK, error);
    CHECK_STATUS(peg__sqlite_prepare(db, peg_cstr(query), &stmt, NULL, &error), PEG_OK, error);
    CHECK_STATUS(peg__sqlite_step(stmt, &is_row, &error), PEG_OK, error);
    answer = is_row ? peg__sqlite_int64(stmt, 0) : -1;
    peg__sqlite_finalize(stmt);
    peg__sqlite_close(db);
    return answer;
}

static void execute(const struct world *w, const char *statements)
{
    struct peg__sqlite *db = NULL;
    peg_error error;

    CHECK_STATUS(peg__sqlite_open(path_of(w), PEG__SQLITE_WRITE, &db, &error), PEG_OK, error);
    CHECK_STATUS(peg__sqlite_exec(db, statements, &error), PEG_OK, error);
    peg__sqlite_close(db);
}

/* Each part has as many uses as there are places that lead to it, and no bytes are left over. */
static void check_counts(const struct world *w)
{
    CHECK_INT(ask(w, "SELECT count(*) FROM parts WHERE n_uses <= 0"), 0);
    CHECK_INT(ask(w, "SELECT coalesce(sum(n_uses), 0) FROM parts") -
                  ask(w, "SELECT coalesce(sum(n_blocks), 0) + count(nullif(length(data), 0))"
                         " FROM turns"),
              0);
    CHECK_INT(ask(w, "SELECT count(*) FROM part_bytes WHERE part NOT IN (SELECT hash FROM parts)"),
              0);
    CHECK_INT(ask(w, "SELECT count(*) FROM bytes WHERE key NOT IN (SELECT key FROM part_bytes)"),
              0);
    CHECK_INT(ask(w, "SELECT count(*) FROM pages WHERE turn NOT IN (SELECT no FROM turns)"), 0);
}

static void check_load_fails(struct world *w, const char *id)
{
    peg_turn *turn = NULL;
    peg_error error = {0};

    CHECK_INT(peg_turn_store_load(w->store, peg_cstr(id), &turn, NULL, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TURN_STORE");
    CHECK(error.message[0] && !turn);
}

/* ---- once -------------------------------------------------------------------------------------
 */

TEST(turns_that_share_blocks_store_them_once)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    int64_t n;

    world_init(&w, in_sqlite);
    save(&w, turn);
    n = ask(&w, "SELECT count(*) FROM parts");
    for (int i = 0; i < 5; i++) {
        TURN next = NULL;

        CHECK_INT(peg_turn_follow(turn, peg_cstr("more"), &next, NULL), PEG_OK);
        save(&w, next);
    }

    CHECK_INT(ask(&w, "SELECT count(*) FROM parts"), n + 5);
    CHECK_INT(ask(&w, "SELECT count(DISTINCT key) FROM bytes"), 2);
    check_counts(&w);
    world_done(&w);
}

TEST(a_turn_that_another_process_loaded_shares_its_blocks_when_it_is_saved)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    TURN loaded = NULL;
    int64_t n;

    world_init(&w, in_sqlite);
    save(&w, turn);
    n = ask(&w, "SELECT count(*) FROM parts");
    world_reopen(&w);
    loaded = load(&w, peg_cstr("t1"));
    CHECK_INT(peg_turn_set_id(loaded, peg_cstr("t2"), NULL), PEG_OK);
    /* Nothing remembered: each block is written, and found to be there. */
    world_reopen(&w);

    save(&w, loaded);

    CHECK_INT(ask(&w, "SELECT count(*) FROM parts"), n);
    check_counts(&w);
    world_done(&w);
}

TEST(the_last_turn_takes_its_blocks_and_bytes_with_it)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    TURN next = NULL;

    world_init(&w, in_sqlite);
    CHECK_INT(peg_turn_follow(turn, peg_cstr("more"), &next, NULL), PEG_OK);
    save(&w, turn);
    save(&w, next);

    CHECK_INT(peg_turn_store_remove(w.store, peg_cstr("t1"), NULL), PEG_OK);
    check_counts(&w);
    CHECK_INT(ask(&w, "SELECT count(DISTINCT key) FROM bytes"), 2);
    CHECK_INT(peg_turn_store_remove(w.store, peg_turn_id(next), NULL), PEG_OK);

    CHECK_INT(ask(&w, "SELECT count(*) FROM parts"), 0);
    CHECK_INT(ask(&w, "SELECT count(*) FROM bytes"), 0);
    check_counts(&w);
    world_done(&w);
}

TEST(blocks_that_a_turn_loses_go_when_it_is_saved)
{
    struct world w;
    TURN turn = turn_of_everything("t1");

    world_init(&w, in_sqlite);
    save(&w, turn);
    while (peg_turn_len(turn) > 1)
        CHECK_INT(peg_turn_remove(turn, peg_block_id(peg_turn_at(turn, 1)), NULL), PEG_OK);

    save(&w, turn);

    CHECK_INT(ask(&w, "SELECT count(*) FROM parts"), 2); /* a block and the data */
    CHECK_INT(ask(&w, "SELECT count(*) FROM bytes"), 0);
    check_counts(&w);
    check_loads(&w, turn);
    world_done(&w);
}

TEST(bytes_that_two_blocks_need_stay_for_the_other)
{
    struct world w;
    TURN turn = turn_named(peg_cstr("t1"));
    TURN loaded = NULL;

    world_init(&w, in_sqlite);
    add_image(turn, 70000);
    add_image(turn, 70000);
    save(&w, turn);
    CHECK_INT(ask(&w, "SELECT count(DISTINCT key) FROM bytes"), 1);

    CHECK_INT(peg_turn_remove(turn, peg_block_id(peg_turn_at(turn, 0)), NULL), PEG_OK);
    save(&w, turn);
    check_counts(&w);
    world_reopen(&w);

    loaded = load(&w, peg_cstr("t1"));
    check_same(loaded, turn);
    world_done(&w);
}

/* Another process removes a turn whose blocks this one remembers to have stored. */
TEST(blocks_that_another_process_took_away_are_stored_again)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    peg_turn_store *other = NULL;

    world_init(&w, in_sqlite);
    save(&w, turn);
    CHECK_INT(open_sqlite(w.folder, &other, NULL), PEG_OK);
    CHECK_INT(peg_turn_store_remove(other, peg_cstr("t1"), NULL), PEG_OK);
    CHECK_INT(ask(&w, "SELECT count(*) FROM parts"), 0);

    say(turn, "more");
    save(&w, turn);

    check_loads(&w, turn);
    check_counts(&w);
    peg_turn_store_unref(other);
    world_done(&w);
}

TEST(a_loaded_turn_outlives_its_store)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    TURN loaded = NULL;

    world_init(&w, in_sqlite);
    save(&w, turn);
    loaded = load(&w, peg_cstr("t1"));
    w.store = peg_turn_store_unref(w.store);

    check_same(loaded, turn);
    world_done(&w);
}

/* Counts rows that a save touches, not time: a long turn and one block more. */
VOLUME_TEST(a_save_writes_what_is_new_however_long_the_turn_is)
{
    enum { LEN = 10000 };
    struct world w;
    TURN turn = turn_named(peg_cstr("t1"));

    world_init(&w, in_sqlite);
    for (int i = 0; i < LEN; i++)
        say(turn, "hello");
    save(&w, turn);
    execute(&w,
            "CREATE TABLE touched (what TEXT);"
            "CREATE TRIGGER a AFTER INSERT ON parts BEGIN INSERT INTO touched VALUES ('p'); END;"
            "CREATE TRIGGER b AFTER UPDATE ON parts BEGIN INSERT INTO touched VALUES ('u'); END;"
            "CREATE TRIGGER c AFTER INSERT ON pages BEGIN INSERT INTO touched VALUES ('g'); END;"
            "CREATE TRIGGER d AFTER UPDATE ON pages BEGIN INSERT INTO touched VALUES ('g'); END;");

    say(turn, "one more");
    save(&w, turn);
    CHECK_INT(ask(&w, "SELECT count(*) FROM touched"), 2);
    /* Also if nothing is remembered. */
    world_reopen(&w);
    say(turn, "and one");
    save(&w, turn);
    CHECK_INT(ask(&w, "SELECT count(*) FROM touched"), 4);

    execute(&w, "DROP TRIGGER a; DROP TRIGGER b; DROP TRIGGER c; DROP TRIGGER d");
    check_loads(&w, turn);
    check_counts(&w);
    world_done(&w);
}

/* ---- what is no store of ours
 * -------------------------------------------------------------------- */

static void check_refused(struct world *w, const char *expected)
{
    peg_turn_store *store = NULL;
    peg_error error = {0};

    CHECK_INT(open_sqlite(w->folder, &store, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TURN_STORE");
    if (!strstr(error.message, expected))
        T_FAIL("the message is \"%s\", expected \"%s\" in it", error.message, expected);
}

TEST(a_store_of_a_newer_version_is_refused_and_left_alone)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");

    world_init(&w, in_sqlite);
    save(&w, turn);
    w.store = peg_turn_store_unref(w.store);
    execute(&w, "PRAGMA user_version = 99");

    check_refused(&w, "newer pegboard");

    CHECK_INT(ask(&w, "SELECT count(*) FROM turns"), 1);
    world_done(&w);
}

TEST(a_database_of_somebody_elses_is_refused_and_left_alone)
{
    struct world w = {.kind = in_sqlite};

    folder_make(w.folder);
    execute(&w, "CREATE TABLE precious (x)");

    check_refused(&w, "no turn store");

    CHECK_INT(ask(&w, "SELECT count(*) FROM sqlite_schema"), 1);
    world_done(&w);
}

TEST(a_file_that_is_no_database_is_refused)
{
    struct world w = {.kind = in_sqlite};
    FILE *stream;

    folder_make(w.folder);
    stream = fopen(path_of(&w), "we");
    CHECK(stream);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database, but it is long enough to be one\n", stream);
    fclose(stream);

    check_refused(&w, "cannot be opened");
    world_done(&w);
}

TEST(a_path_that_leads_nowhere_is_refused)
{
    peg_turn_store *store = NULL;
    peg_error error = {0};

    CHECK_INT(peg_turn_store_sqlite_new("/nonexistent/turns.db", &store, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TURN_STORE");
    CHECK_INT(peg_turn_store_sqlite_new("", &store, &error), PEG_EIO);
}

TEST(the_database_is_its_owners_alone)
{
    struct world w;
    struct stat about;

    world_init(&w, in_sqlite);

    CHECK_INT(stat(path_of(&w), &about), 0);
    CHECK_INT(about.st_mode & 07777, 0600);
    world_done(&w);
}

/* ---- damage
 * ---------------------------------------------------------------------------------------- */

TEST(a_block_that_is_missing_or_another_makes_the_turn_unreadable)
{
    static const char *const damages[] = {
        "DELETE FROM parts WHERE no = 2",
        "UPDATE parts SET json = replace(json, 'brief', 'quick')",
        "UPDATE parts SET json = '{' WHERE no = 1",
        "DELETE FROM pages",
        "UPDATE pages SET hashes = substr(hashes, 1, 40)",
        "UPDATE pages SET hashes = substr(hashes, 1, 64)",
        "UPDATE pages SET page = 1",
        "UPDATE turns SET n_blocks = n_blocks + 1",
        "UPDATE turns SET n_blocks = 9223372036854775807",
        "UPDATE turns SET n_blocks = -1",
        "UPDATE turns SET head = '{\"id\":'",
        "UPDATE turns SET data = x'00'",
        "UPDATE turns SET data = zeroblob(32)",
        "UPDATE turns SET phase = 'never'",
        /* The same block twice. */
        ("UPDATE pages SET hashes = substr(hashes, 1, 32) || substr(hashes, 1, 32)"
         " || substr(hashes, 65)"),
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        struct world w;
        TURN turn = turn_of_everything("t1");
        TURN other = turn_saying("t2", "hello");

        world_init(&w, in_sqlite);
        save(&w, turn);
        w.store = peg_turn_store_unref(w.store);
        execute(&w, damages[i]);
        world_open(&w);

        check_load_fails(&w, "t1");
        save(&w, other);
        check_loads(&w, other);
        world_done(&w);
    }
}

TEST(bytes_that_changed_fail_when_they_are_read)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    TURN loaded = NULL;
    peg_str bytes;

    world_init(&w, in_sqlite);
    save(&w, turn);
    execute(&w, "UPDATE bytes SET content = zeroblob(length(content))");
    loaded = load(&w, peg_cstr("t1"));
    CHECK(loaded);

    /* The image is zeros anyway; the artifact is not. */
    CHECK_INT(peg_artifact_bytes(peg_record_artifact(peg_turn_result_of(loaded, peg_cstr("c2"))),
                                 &bytes, NULL),
              PEG_EIO);
    world_done(&w);
}

/* A page of the file that is garbage: what is loaded is a turn that was saved, or an error. */
TEST(a_file_with_garbage_in_it_crashes_nobody)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    char garbage[512];
    struct stat about;

    world_init(&w, in_sqlite);
    for (int i = 0; i < 150; i++)
        say(turn, "hello");
    save(&w, turn);
    w.store = peg_turn_store_unref(w.store);
    CHECK_INT(stat(path_of(&w), &about), 0);
    memset(garbage, 0xA5, sizeof(garbage));
    for (off_t at = 0; at < about.st_size; at += 4096 + 512) {
        const int fd = open(path_of(&w), O_RDWR | O_CLOEXEC);
        char was[sizeof(garbage)];
        peg_turn_store *store = NULL;
        peg_turn *loaded = NULL;
        peg_status status;

        CHECK(pread(fd, was, sizeof(was), at) == (ssize_t)sizeof(was));
        CHECK(pwrite(fd, garbage, sizeof(garbage), at) == (ssize_t)sizeof(garbage));
        status = open_sqlite(w.folder, &store, NULL);
        if (!status) {
            status = peg_turn_store_load(store, peg_cstr("t1"), &loaded, NULL, NULL);
            CHECK(status == PEG_OK || status == PEG_EIO);
            if (loaded)
                CHECK_INT(peg_turn_len(loaded), peg_turn_len(turn));
        }
        peg_turn_free(loaded);
        peg_turn_store_unref(store);
        CHECK(pwrite(fd, was, sizeof(was), at) == (ssize_t)sizeof(was));
        close(fd);
    }
    world_open(&w);
    check_loads(&w, turn);
    world_done(&w);
}

/* ---- a disk that is full
 * ------------------------------------------------------------------------------ */

TEST(a_disk_that_is_full_is_an_error_and_the_state_before_stays)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    TURN larger = NULL;
    pid_t child;

    world_init(&w, in_sqlite);
    save(&w, turn);
    w.store = peg_turn_store_unref(w.store);
    CHECK_INT(peg_turn_copy(turn, &larger, NULL), PEG_OK);
    add_result(larger, "c1", 4 << 20);

    child = child_start(0);
    if (child == 0) {
        const struct rlimit limit = {1 << 20, 1 << 20};
        peg_error error = {0};

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        if (open_sqlite(w.folder, &w.store, NULL))
            child_end(0, 3);
        child_end(0, peg_turn_store_save(w.store, larger, PEG_PHASE_FINAL, &error) == PEG_EIO &&
                             strcmp(error.code, "E_TURN_STORE") == 0 && error.message[0]
                         ? CHILD_WELL
                         : 2);
    }
    CHECK_INT(child_wait(0, child), CHILD_WELL);
    world_open(&w);
    check_loads(&w, turn);
    check_counts(&w);
    world_done(&w);
}

/* ---- random changes
 * ------------------------------------------------------------------------------------- */

TEST(counts_are_right_after_any_changes_of_several_turns)
{
    struct world w;
    peg_turn *turns[3];
    unsigned seed = 7;

    world_init(&w, in_sqlite);
    turns[0] = turn_of_everything("t0");
    CHECK_INT(peg_turn_follow(turns[0], peg_cstr(""), &turns[1], NULL), PEG_OK);
    CHECK_INT(peg_turn_follow(turns[0], peg_cstr(""), &turns[2], NULL), PEG_OK);
    for (int step = 0; step < 120; step++) {
        peg_turn *turn;
        size_t n;

        seed = seed * 1664525U + 1013904223U;
        turn = turns[(seed >> 8) % 3];
        n = peg_turn_len(turn);
        if ((seed >> 12) % 3 == 0 && n)
            CHECK_INT(
                peg_turn_remove(turn, peg_block_id(peg_turn_at(turn, (seed >> 16) % n)), NULL),
                PEG_OK);
        else if ((seed >> 12) % 3 == 1)
            say(turn, "more");
        if ((seed >> 20) % 8 == 0)
            CHECK_INT(peg_turn_store_remove(w.store, peg_turn_id(turn), NULL), PEG_OK);
        else
            save(&w, turn);
        if (step % 20 == 0)
            check_counts(&w);
    }
    check_counts(&w);
    for (int i = 0; i < 3; i++) {
        save(&w, turns[i]);
        check_loads(&w, turns[i]);
        CHECK_INT(peg_turn_store_remove(w.store, peg_turn_id(turns[i]), NULL), PEG_OK);
        peg_turn_free(turns[i]);
    }
    CHECK_INT(ask(&w, "SELECT count(*) FROM parts"), 0);
    CHECK_INT(ask(&w, "SELECT count(*) FROM bytes"), 0);
    world_done(&w);
}
