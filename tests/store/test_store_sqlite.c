/* SPDX-License-Identifier: Apache-2.0 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sqlite/sqlite.h"
#include "pegboard/store.h"
#include "store/internal.h"

static void path_of(const char *folder, char path[64])
{
    snprintf(path, 64, "%s/toolsets.db", folder);
}

static peg_status contract_open(const char *folder, peg_store *ret_store, peg_error *reterr)
{
    char path[64];

    path_of(folder, path);
    return peg_sqlite_store_new(path, ret_store, reterr);
}

static const bool contract_lasts = true;

#include "contract.h"

/* A folder, and no store in it yet. */
static void world_make(struct world *w)
{
    world_open(w);
    w->store.free(w->store.self);
    w->store = (peg_store){0};
    folder_remove(w->folder);
    CHECK_INT(mkdir(w->folder, 0700), 0);
}

static void world_shut(struct world *w)
{
    w->store.free(w->store.self);
    w->store = (peg_store){0};
}

static void check_not_opened(struct world *w, peg_status status, const char *code)
{
    CHECK_STATUS(contract_open(w->folder, &w->store, &w->error), status, w->error);
    CHECK_STR(peg__str(w->error.code), code);
    CHECK(w->store.self == NULL);
}

static struct peg__sqlite *open_beside(struct world *w)
{
    struct peg__sqlite *db = NULL;
    char path[64];

    path_of(w->folder, path);
    CHECK_STATUS(peg__sqlite_open(path, PEG__SQLITE_WRITE, &db, &w->error), PEG_OK, w->error);
    return db;
}

/* Changes the file with a hand that is not ours. */
static void change(struct world *w, const char *sql)
{
    struct peg__sqlite *db = open_beside(w);

    CHECK_STATUS(peg__sqlite_exec(db, sql, &w->error), PEG_OK, w->error);
    peg__sqlite_close(db);
}

/* ---- the file ----------------------------------------------------------------------------------
 */

TEST(the_files_are_for_their_owner_alone)
{
    static const char *const names[] = {"toolsets.db", "toolsets.db-wal", "toolsets.db-lock"};
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "{}"), PEG_OK, w.error);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct stat info;
        char path[64];

        snprintf(path, sizeof(path), "%s/%s", w.folder, names[i]);
        CHECK_INT(stat(path, &info), 0);
        CHECK_INT(info.st_mode & 0777, 0600);
    }
    world_close(&w);
}

TEST(a_folder_that_is_not_there_is_told)
{
    peg_store store;
    peg_error error;

    CHECK_INT(peg_sqlite_store_new("/tmp/peg-there-is-no-such/x.db", &store, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_STORE");
    CHECK(strstr(error.message, "make that first") != NULL);
}

TEST(a_path_is_needed)
{
    peg_store store;

    CHECK_INT(peg_sqlite_store_new("", &store, NULL), PEG_EINVAL);
    CHECK_INT(peg_sqlite_store_new(NULL, &store, NULL), PEG_EINVAL);
}

TEST(a_file_that_is_no_database_is_left_alone_and_told)
{
    struct world w;
    char path[64];
    char text[32] = "";
    int fd;

    world_make(&w);
    path_of(w.folder, path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 100; i++)
        CHECK_INT(write(fd, "this is a diary of mine\n", 24), 24);
    check_not_opened(&w, PEG_EIO, "E_STORE");
    CHECK(strstr(w.error.message, "is damaged") != NULL);
    CHECK(strstr(w.error.message, "restore it from a copy") != NULL);
    CHECK_INT(pread(fd, text, 24, 0), 24);
    CHECK_STR(peg__str(text), "this is a diary of mine\n");
    close(fd);
    world_close(&w);
}

TEST(the_database_of_another_program_is_left_alone_and_told)
{
    struct world w;

    world_make(&w);
    change(&w, "CREATE TABLE songs (name TEXT)");
    check_not_opened(&w, PEG_EIO, "E_STORE");
    CHECK(strstr(w.error.message, "choose another file") != NULL);
    world_close(&w);
}

TEST(pages_that_were_overwritten_are_found_out_when_it_is_opened)
{
    struct world w;
    char path[64];
    char junk[4096];
    int fd;

    world_open(&w);
    for (unsigned i = 0; i < 200; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%u", i);
        CHECK_STATUS(put(&w, name, 1, "{\"some\":\"text to fill more than a page\"}"), PEG_OK,
                     w.error);
    }
    world_shut(&w);
    path_of(w.folder, path);
    memset(junk, 0x5A, sizeof(junk));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK_INT(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
    close(fd);
    check_not_opened(&w, PEG_EIO, "E_STORE");
    CHECK(strstr(w.error.message, "is damaged") != NULL);
    CHECK(strstr(w.error.message, path) != NULL);
    world_close(&w);
}

/* ---- one user at a time -----------------------------------------------------------------------
 */

TEST(a_second_user_is_told_who_holds_the_store)
{
    struct world w;
    peg_store second;
    char who[32];

    world_open(&w);
    snprintf(who, sizeof(who), "process %ld", (long)getpid());
    CHECK_STATUS(contract_open(w.folder, &second, &w.error), PEG_ESTATE, w.error);
    CHECK_STR(peg__str(w.error.code), "E_STORE_LOCKED");
    CHECK(strstr(w.error.message, who) != NULL);
    CHECK_STATUS(put(&w, "a", 1, "goes on"), PEG_OK, w.error);
    world_shut(&w);
    world_reopen(&w);
    check_all(&w, "a 1 1000 goes on\n");
    world_close(&w);
}

TEST(another_name_of_the_file_has_the_same_lock)
{
    struct world w;
    peg_store second;
    char path[64];
    char link[64];

    world_open(&w);
    path_of(w.folder, path);
    snprintf(link, sizeof(link), "%s/link.db", w.folder);
    CHECK_INT(symlink(path, link), 0);
    CHECK_STATUS(peg_sqlite_store_new(link, &second, &w.error), PEG_ESTATE, w.error);
    CHECK_STR(peg__str(w.error.code), "E_STORE_LOCKED");
    world_close(&w);
}

TEST(a_lock_that_says_nothing_is_a_lock)
{
    struct world w;
    peg_store second;
    char path[80];

    world_open(&w);
    snprintf(path, sizeof(path), "%s/toolsets.db-lock", w.folder);
    CHECK_INT(truncate(path, 0), 0);
    CHECK_STATUS(contract_open(w.folder, &second, &w.error), PEG_ESTATE, w.error);
    CHECK(strstr(w.error.message, "another process") != NULL);
    world_close(&w);
}

/* ---- versions -----------------------------------------------------------------------------------
 */

/* What each released version made of an empty database, and a record in it. Never change one: add
 * the next when there is a new version. */
static const char *const released[] = {
    [1] = "CREATE TABLE records (name TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,"
          "  at_ms INTEGER NOT NULL, is_removed INTEGER NOT NULL, body TEXT NOT NULL);"
          "CREATE INDEX records_removed ON records (at_ms) WHERE is_removed;"
          "INSERT INTO records VALUES ('a', 7, 1000, 0, '{}');"
          "PRAGMA application_id = 1885693779; PRAGMA user_version = 1",
};

TEST(a_store_of_each_version_that_was_released_is_brought_up_to_date)
{
    const int n = sizeof(released) / sizeof(*released);

    CHECK_INT(n - 1, store_sqlite_schema.version);
    for (int version = 1; version < n; version++) {
        struct world w;

        world_make(&w);
        change(&w, released[version]);
        world_reopen(&w);
        check_all(&w, "a 7 1000 {}\n");
        CHECK_STATUS(put(&w, "b", 1, "{}"), PEG_OK, w.error);
        world_close(&w);
    }
}

TEST(a_store_of_a_later_version_is_refused_and_left_as_it_is)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "{}"), PEG_OK, w.error);
    world_shut(&w);
    change(&w, "PRAGMA user_version = 1000");
    check_not_opened(&w, PEG_EUNSUPPORTED, "E_STORE_VERSION");
    CHECK(strstr(w.error.message, "1000") != NULL);
    change(&w, "PRAGMA user_version = 1");
    world_reopen(&w);
    check_all(&w, "a 1 1000 {}\n");
    world_close(&w);
}

enum { MAX_VERSIONS = 16 };

/* This version's migrations and one more, migrated to. */
static peg_status migrate_on(struct world *w, const char *more)
{
    const char *migrations[MAX_VERSIONS] = {NULL};
    struct store_schema schema = store_sqlite_schema;
    struct peg__sqlite *db = open_beside(w);
    peg_status status;

    for (int i = 1; i <= schema.version; i++)
        migrations[i] = schema.migrations[i];
    migrations[++schema.version] = more;
    schema.migrations = migrations;
    status = store_migrate(db, "toolsets.db", &schema, &w->error);
    peg__sqlite_close(db);
    return status;
}

TEST(a_migration_keeps_the_records)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "{}"), PEG_OK, w.error);
    world_shut(&w);
    CHECK_STATUS(migrate_on(&w, "ALTER TABLE records ADD COLUMN more TEXT"), PEG_OK, w.error);
    check_not_opened(&w, PEG_EUNSUPPORTED, "E_STORE_VERSION");
    CHECK_STATUS(migrate_on(&w, "this one is not run again"), PEG_OK, w.error);
    change(&w, "ALTER TABLE records DROP COLUMN more; PRAGMA user_version = 1");
    world_reopen(&w);
    check_all(&w, "a 1 1000 {}\n");
    world_close(&w);
}

TEST(a_migration_that_fails_half_way_is_taken_back)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "{}"), PEG_OK, w.error);
    world_shut(&w);
    CHECK_STATUS(migrate_on(&w, "ALTER TABLE records ADD COLUMN more TEXT;"
                                "DELETE FROM records; INSERT INTO nowhere VALUES (1)"),
                 PEG_EIO, w.error);
    world_reopen(&w);
    check_all(&w, "a 1 1000 {}\n");
    CHECK_STATUS(put(&w, "b", 1, "{}"), PEG_OK, w.error);
    world_close(&w);
}

TEST(an_empty_file_whose_first_migration_fails_stays_empty)
{
    static const char *const migrations[] = {[1] = "CREATE TABLE a (b); nonsense"};
    const struct store_schema schema = {0x70656753, migrations, 1};
    struct world w;
    struct peg__sqlite *db;

    world_make(&w);
    db = open_beside(&w);
    CHECK_STATUS(store_migrate(db, "toolsets.db", &schema, &w.error), PEG_EIO, w.error);
    peg__sqlite_close(db);
    world_reopen(&w);
    check_all(&w, "");
    world_close(&w);
}

/* ---- a full disk
 * --------------------------------------------------------------------------------- */

/* No file of this process grows beyond so many bytes. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(a_full_disk_is_told_and_leaves_the_old_record)
{
    enum { BYTES = 1 << 20 };
    static char body[BYTES];
    peg_store_record record = {.name = PEG_LIT("a"), .revision = 2, .body = {body, BYTES}};
    struct world w;
    peg_status status;

    memset(body, 'x', BYTES);
    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "old"), PEG_OK, w.error);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(256 << 10);
    status = w.store.put(w.store.self, &record, &w.error);
    limit_files(RLIM_INFINITY);
    CHECK_STATUS(status, PEG_EIO, w.error);
    CHECK_STR(peg__str(w.error.code), "E_STORE");
    CHECK(strstr(w.error.message, "the room on its disk") != NULL);
    check_all(&w, "a 1 1000 old\n");
    CHECK_STATUS(put(&w, "a", 2, "there is room again"), PEG_OK, w.error);
    world_shut(&w);
    world_reopen(&w);
    check_all(&w, "a 2 1000 there is room again\n");
    world_close(&w);
}

/* ---- killed at any moment
 * ------------------------------------------------------------------------
 */

enum { N_KILLS = 50, SPREAD_US = 3000, N_NAMES = 7 };

/* The n-th change; every third takes a name away. */
static peg_status put_nth(struct world *w, unsigned n)
{
    char name[16];
    char body[32];

    snprintf(name, sizeof(name), "n%u", n % N_NAMES);
    snprintf(body, sizeof(body), "%u", n);
    return put(w, name, n, n % 3 ? body : NULL);
}

static void put_for_ever(struct world *w, unsigned n, int acks)
{
    if (contract_open(w->folder, &w->store, &w->error) == PEG_OK) {
        while (put_nth(w, n) == PEG_OK && write(acks, &n, sizeof(n)) == (ssize_t)sizeof(n))
            n++;
    }
    _exit(3);
}

/* Returns the last change that was acknowledged. */
static unsigned run_and_kill(struct world *w, unsigned last, long wait_us)
{
    const struct timespec wait = {.tv_nsec = wait_us * 1000};
    int status = 0;
    int acks[2];
    pid_t child;

    CHECK_INT(pipe(acks), 0);
    fflush(stdout);
    child = fork();
    if (child == 0)
        put_for_ever(w, last + 1, acks[1]);
    close(acks[1]);
    /* One change at least; then some time, not a condition: the moment is to be by chance. */
    CHECK_INT(read(acks[0], &last, sizeof(last)), sizeof(last));
    nanosleep(&wait, NULL);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    while (read(acks[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
        continue;
    close(acks[0]);
    return last;
}

/* The greatest revision that is there, each record being whole. */
static peg_status check_whole(const peg_store_record *record, void *user, peg_error *reterr)
{
    unsigned *last = user;
    const unsigned n = (unsigned)record->revision;
    char body[32];

    (void)reterr;
    snprintf(body, sizeof(body), "%u", n);
    if (record->is_removed != (n % 3 == 0) || !peg__str_is(record->body, n % 3 ? body : ""))
        return PEG_EHOST;
    *last = n > *last ? n : *last;
    return PEG_OK;
}

/* All names have the last of their changes up to `last`: those are as many lines. */
static void check_state(struct world *w, unsigned last)
{
    struct peg__buf told = PEG__BUF(1 << 16);

    for (unsigned name = 0; name < N_NAMES; name++) {
        const unsigned back = (last + N_NAMES - name) % N_NAMES;
        const unsigned n = last >= back ? last - back : 0;
        char body[32] = "removed";

        if (n == 0)
            continue;
        if (n % 3)
            snprintf(body, sizeof(body), "%u", n);
        peg__buf_printf(&told, "n%u %u 1000 %s\n", name, n, body);
    }
    check_all(w, told.ptr);
    peg__buf_free(&told);
}

TEST(what_was_acknowledged_is_there_after_any_kill)
{
    struct world w;
    unsigned seed = 4711;
    unsigned last = 0;

    world_make(&w);
    for (int round = 0; round < N_KILLS; round++) {
        unsigned found = 0;

        seed = seed * 1664525U + 1013904223U;
        last = run_and_kill(&w, last, (long)(seed >> 8) % SPREAD_US);
        world_reopen(&w);
        CHECK_INT(w.store.read(w.store.self, check_whole, &found, NULL), PEG_OK);
        /* The one in the midst of being kept may be there or not. */
        CHECK(found == last || found == last + 1);
        check_state(&w, found);
        last = found;
        world_shut(&w);
    }
    world_close(&w);
}
