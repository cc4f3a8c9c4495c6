/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a store in files must get right beyond the contract of every store (test_spool.c): the names
 * of files, permissions, what other programs do to its directory, and crashes.
 */

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/hash.h"
#include "spool_world.h"

/* ---- files: names and permissions -------------------------------------------------------- */

static void path_of(const struct world *w, peg_str key, char ret_path[160])
{
    unsigned char digest[PEG_SHA256_BYTES];
    char name[PEG_SHA256_HEX];

    CHECK(peg__sha256(key, digest));
    peg__hex(digest, sizeof(digest), name);
    snprintf(ret_path, 160, "%s/%s", w->directory, name);
}

TEST(file_store_names_files_by_the_digest_of_the_key_and_keeps_them_private)
{
    const mode_t mask = umask(0);
    struct world w;

    world_make(&w, true, 0);
    CHECK_INT(put(&w, peg__str("../../x"), a), PEG_OK);
    CHECK_INT(put(&w, peg__str("CON"), a), PEG_OK);

    CHECK_INT(each_name(&w, check_name), 2);
    umask(mask);
    world_done(&w);
}

TEST(file_store_makes_its_directory_private)
{
    const mode_t mask = umask(0);
    peg_spool_store *store = NULL;
    struct stat about;
    struct world w;
    char path[80];

    world_make(&w, true, 0);
    snprintf(path, sizeof(path), "%s/deeper", w.directory);
    CHECK_INT(peg_spool_file_new(path, 0, &store, NULL), PEG_OK);
    umask(mask);

    CHECK_INT(stat(path, &about), 0);
    CHECK_INT(about.st_mode & 07777, 0700);
    peg_spool_store_unref(store);
    rmdir(path);
    world_done(&w);
}

static void check_not_opened(const char *path, const char *words)
{
    peg_spool_store *store = NULL;
    peg_error error;

    CHECK_STATUS(peg_spool_file_new(path, 0, &store, &error), PEG_EIO, error);
    CHECK_STR(peg__str(error.code), "E_FILE");
    if (!strstr(error.message, words))
        T_FAIL("'%s' does not say '%s'", error.message, words);
    CHECK(!store);
}

TEST(file_store_refuses_directories_that_are_not_safe)
{
    peg_spool_store *store = NULL;
    char link_path[80];
    char file[80];
    struct world w;

    world_make(&w, true, 0);
    snprintf(link_path, sizeof(link_path), "%s-link", w.directory);
    snprintf(file, sizeof(file), "%s/file", w.directory);
    CHECK_INT(symlink(w.directory, link_path), 0);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));

    check_not_opened(link_path, "it is a link");
    check_not_opened(file, "cannot be opened");
    check_not_opened("/tmp/peg-no-such-parent/spool", "cannot be made");
    CHECK_INT(chmod(w.directory, 0770), 0);
    check_not_opened(w.directory, "0700");
    CHECK_INT(chmod(w.directory, 0702), 0);
    check_not_opened(w.directory, "0700");
    CHECK_INT(chmod(w.directory, 0755), 0);
    CHECK_INT(peg_spool_file_new(w.directory, 0, &store, NULL), PEG_OK);
    peg_spool_store_unref(store);
    CHECK_INT(peg_spool_file_new(NULL, 0, &store, NULL), PEG_EINVAL);
    CHECK_INT(peg_spool_file_new("", 0, &store, NULL), PEG_EINVAL);
    unlink(link_path);
    world_done(&w);
}

TEST(file_store_refuses_the_directory_of_another_user)
{
    struct world w;

    if (geteuid() != 0)
        SKIP("only root can give a directory away");
    world_make(&w, true, 0);
    CHECK_INT(chown(w.directory, 12345, 12345), 0);

    check_not_opened(w.directory, "another user");
    world_done(&w);
}

TEST(file_store_does_not_follow_a_link_that_somebody_put_in_the_place_of_a_key)
{
    peg_reader *reader = NULL;
    char victim[80];
    char path[160];
    struct stat about;
    peg_error error;
    struct world w;

    world_make(&w, true, 0);
    snprintf(victim, sizeof(victim), "%s-victim", w.directory);
    close(open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    path_of(&w, a, path);
    CHECK_INT(symlink(victim, path), 0);

    CHECK_INT(peg_spool_read(w.store, a, &reader, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_FILE");
    CHECK_INT(put(&w, a, peg__str("hello")), PEG_OK);
    check_key(&w, a, peg__str("hello"));
    CHECK_INT(stat(victim, &about), 0);
    CHECK_INT(about.st_size, 0);
    unlink(victim);
    world_done(&w);
}

TEST(file_store_says_so_when_something_else_is_in_the_place_of_a_key)
{
    peg_reader *reader = NULL;
    peg_error error;
    char path[160];
    struct world w;

    world_make(&w, true, 0);
    path_of(&w, a, path);
    CHECK_INT(mkdir(path, 0700), 0);

    CHECK_INT(peg_spool_read(w.store, a, &reader, &error), PEG_EIO);
    CHECK_INT(peg_spool_write(w.store, a, b, &reader, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_FILE");
    CHECK_INT(peg_spool_remove(w.store, a, NULL, &error), PEG_EIO);
    CHECK(!reader);
    CHECK_INT(each_name(&w, NULL), 1); /* the new file was cleared away */
    rmdir(path);
    world_done(&w);
}

TEST(file_store_closes_its_files_and_leaves_none_to_children)
{
    peg_reader *readers[3] = {NULL};
    struct world w;
    int before;
    int after;

    before = open("/", O_RDONLY | O_CLOEXEC);
    close(before);
    world_make(&w, true, 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(peg_spool_write(w.store, a, b, &readers[i], NULL), PEG_OK);
    check_key(&w, a, b);
    for (int fd = before; fd < before + 4; fd++)
        CHECK_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        peg_reader_unref(readers[i]);
    world_done(&w);

    after = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_INT(after, before);
    close(after);
}

/* ---- files: opened again ----------------------------------------------------------------- */

TEST(file_store_opened_again_has_what_was_written_before_and_counts_it)
{
    struct world w;

    world_make(&w, true, 0);
    CHECK_INT(put(&w, a, peg__str("12345")), PEG_OK);

    CHECK_INT(open_again(&w, 10, NULL), PEG_OK);

    check_key(&w, a, peg__str("12345"));
    CHECK_INT(put(&w, b, peg__str("123456")), PEG_ELIMIT);
    CHECK_INT(put(&w, b, peg__str("12345")), PEG_OK);
    CHECK_INT(open_again(&w, 4, NULL), PEG_OK); /* too full already: only removing helps */
    CHECK_INT(put(&w, a, peg__str("1")), PEG_ELIMIT);
    CHECK_INT(peg_spool_remove(w.store, b, NULL, NULL), PEG_OK);
    CHECK_INT(put(&w, a, peg__str("1")), PEG_OK);
    world_done(&w);
}

static void touch(const struct world *w, const char *name)
{
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", w->directory, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, "left", 4), 4);
    close(fd);
}

#define LEFTOVER "new-0123456789abcdef0123456789abcdef"

TEST(file_store_clears_away_what_a_crash_left_and_nothing_else)
{
    struct world w;

    world_make(&w, true, 0);
    CHECK_INT(put(&w, a, b), PEG_OK);
    touch(&w, LEFTOVER);
    touch(&w, "new-year.txt");
    touch(&w, "README");

    CHECK_INT(open_again(&w, 5, NULL), PEG_OK);

    CHECK_INT(each_name(&w, NULL), 3);
    check_key(&w, a, b);
    CHECK_INT(put(&w, b, peg__str("1234")), PEG_OK); /* what is not ours is not counted */
    world_done(&w);
}

TEST(file_store_does_not_clear_away_what_another_store_may_be_writing)
{
    peg_spool_store *other = NULL;
    struct world w;

    world_make(&w, true, 0);
    touch(&w, LEFTOVER);

    CHECK_INT(peg_spool_file_new(w.directory, 0, &other, NULL), PEG_OK);
    CHECK_INT(each_name(&w, NULL), 1);
    peg_spool_store_unref(other);
    CHECK_INT(open_again(&w, 0, NULL), PEG_OK);
    CHECK_INT(each_name(&w, NULL), 0);
    world_done(&w);
}

TEST(file_stores_on_one_directory_see_each_others_keys)
{
    peg_spool_store *other = NULL;
    struct world w;

    world_make(&w, true, 0);
    CHECK_INT(peg_spool_file_new(w.directory, 0, &other, NULL), PEG_OK);
    CHECK_INT(put(&w, a, peg__str("hello")), PEG_OK);
    CHECK_INT(peg_spool_remove(other, a, NULL, NULL), PEG_OK);

    check_missing(&w, a);
    peg_spool_store_unref(other);
    world_done(&w);
}

/* ---- files: crashes ---------------------------------------------------------------------- */

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(file_store_that_cannot_write_leaves_everything_as_it_was)
{
    static char large[20000];
    peg_reader *reader = NULL;
    peg_error error;
    struct world w;

    world_make(&w, true, 30000);
    CHECK_INT(put(&w, a, peg__str("old")), PEG_OK);
    signal(SIGXFSZ, SIG_IGN);
    limit_file_size(10000);
    CHECK_INT(peg_spool_write(w.store, a, peg__strn(large, sizeof(large)), &reader, &error),
              PEG_EIO);
    limit_file_size(RLIM_INFINITY);
    signal(SIGXFSZ, SIG_DFL);

    CHECK_STR(peg__str(error.code), "E_FILE");
    CHECK(strstr(error.message, "File too large"));
    CHECK(!reader);
    check_key(&w, a, peg__str("old"));
    CHECK_INT(each_name(&w, NULL), 1);
    CHECK_INT(put(&w, b, peg__strn(large, sizeof(large))), PEG_OK); /* the room was given back */
    world_done(&w);
}

/* In a child: dies in the middle of replacing the key. */
static void die_while_writing(const struct world *w)
{
    static char large[20000];
    peg_spool_store *store = NULL;
    peg_reader *reader = NULL;
    struct rlimit limit = {10000, 10000};
    const struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &limit);
    if (peg_spool_file_new(w->directory, 0, &store, NULL) == PEG_OK &&
        peg_spool_write(store, a, peg__strn(large, sizeof(large)), &reader, NULL) == PEG_OK)
        _exit(0);
    _exit(1);
}

TEST(file_store_has_the_old_bytes_after_a_crash_in_the_middle_of_a_write)
{
    struct world w;
    int end = 0;
    pid_t child;

    world_make(&w, true, 0);
    CHECK_INT(put(&w, a, peg__str("old")), PEG_OK);
    fflush(stdout);
    child = fork();
    if (child == 0)
        die_while_writing(&w);
    CHECK_INT(waitpid(child, &end, 0), child);

    CHECK(WIFSIGNALED(end));
    CHECK_INT(WTERMSIG(end), SIGXFSZ);
    CHECK_INT(each_name(&w, NULL), 2); /* the half-written file */
    CHECK_INT(open_again(&w, 0, NULL), PEG_OK);
    check_key(&w, a, peg__str("old"));
    CHECK_INT(each_name(&w, NULL), 1);
    world_done(&w);
}

enum { N_CRASH_KEYS = 4, CRASH_BYTES_MAX = 60000 };

/* What version a value is of stands in its first bytes; its length and the rest follow from it. */
static size_t fill_version(uint32_t version, char *bytes)
{
    const size_t len = 4 + (version * UINT32_C(2654435761) >> 8) % (CRASH_BYTES_MAX - 4);

    memcpy(bytes, &version, 4);
    for (size_t i = 4; i < len; i++)
        bytes[i] = (char)(version * 31 + i);
    return len;
}

static peg_str key_of_version(uint32_t version)
{
    return peg__strn(&"0123"[version % N_CRASH_KEYS], 1);
}

/* In a child: version after version, each told to the parent once it is written. */
static void write_versions(const struct world *w, uint32_t version, int to_parent)
{
    static char bytes[CRASH_BYTES_MAX];
    peg_spool_store *store = NULL;

    if (peg_spool_file_new(w->directory, 0, &store, NULL))
        _exit(1);
    for (;; version++) {
        const size_t len = fill_version(version, bytes);
        peg_reader *reader = NULL;

        if (peg_spool_write(store, key_of_version(version), peg__strn(bytes, len), &reader, NULL) ||
            write(to_parent, &version, sizeof(version)) != sizeof(version))
            _exit(1);
        peg_reader_unref(reader);
    }
}

/* Not asleep, so that it ends at any moment, and soon. */
static void spin_ns(long ns)
{
    struct timespec start;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

/* The last version that the child told before it was killed. */
static uint32_t kill_a_writer(const struct world *w, uint32_t first, unsigned n_told, long then_ns)
{
    uint32_t last = first;
    int pipes[2];
    pid_t child;

    CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
    fflush(stdout);
    child = fork();
    if (child == 0)
        write_versions(w, first, pipes[1]);
    close(pipes[1]);
    for (unsigned i = 0; i < n_told; i++)
        CHECK_INT(read(pipes[0], &last, sizeof(last)), sizeof(last));
    spin_ns(then_ns);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    while (read(pipes[0], &last, sizeof(last)) == sizeof(last))
        continue;
    close(pipes[0]);
    return last;
}

/* The key has a whole version, no older than what the child said it wrote. */
static void check_versions(struct world *w, uint32_t last)
{
    static char expected[CRASH_BYTES_MAX];

    for (uint32_t told = last > 3 ? last - 3 : 0; told <= last; told++) {
        peg_reader *reader = get(w, key_of_version(told));
        uint32_t version = 0;
        size_t n = 0;

        CHECK(reader);
        CHECK_INT(peg_reader_read_at(reader, 0, &version, 4, &n, NULL), PEG_OK);
        CHECK_INT(n, 4);
        CHECK(version >= told);
        check_reader(reader, peg__strn(expected, fill_version(version, expected)));
        peg_reader_unref(reader);
    }
}

TEST(file_store_has_every_key_whole_after_its_process_was_killed)
{
    enum { N_KILLS = 25 };
    uint32_t last = 0;
    unsigned random = 1;
    struct world w;

    world_make(&w, true, 0);
    w.store = peg_spool_store_unref(w.store);
    for (int i = 0; i < N_KILLS; i++) {
        random = random * 1664525 + 1013904223;
        last = kill_a_writer(&w, last, 4 + (random >> 16) % 8, (long)(random >> 8) % 2000000);
        CHECK_INT(open_again(&w, 0, NULL), PEG_OK);
        check_versions(&w, last);
        CHECK_INT(each_name(&w, check_name), N_CRASH_KEYS);
        w.store = peg_spool_store_unref(w.store); /* the next child must be alone */
    }
    world_done(&w);
}
