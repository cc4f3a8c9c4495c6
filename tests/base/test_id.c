/* SPDX-License-Identifier: Apache-2.0 */

#include "base/id.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../t.h"
#include "base/text/str.h"

/* ---- fixture ---------------------------------------------------------------- */

/* 2022-02-22T19:22:22Z, the example of RFC 9562 appendix A.6: 017F22E2-79B0-7... */
enum { N_THREADS = 4, IDS_PER_THREAD = 2000 };
static const int64_t rfc_example_ms = INT64_C(1645557742000);

static peg_clock *clock_at(int64_t now_ms)
{
    peg_clock *clock = NULL;

    CHECK(peg_clock_manual_new(now_ms, &clock, NULL) == PEG_OK);
    return clock;
}

static bool is_hex(peg_str s)
{
    return s.len && strspn(s.ptr, "0123456789abcdef") >= s.len;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* ---- random ids ------------------------------------------------------------- */

TEST(random_fills_every_byte_of_a_large_request)
{
    static unsigned char bytes[100000];
    size_t seen[256] = {0};

    CHECK(peg__random(bytes, sizeof(bytes)));

    for (size_t i = 0; i < sizeof(bytes); i++)
        seen[bytes[i]]++;
    /* 390 of each value are expected: a stretch left at zero would show. */
    for (int value = 0; value < 256; value++)
        CHECK(seen[value] > 200 && seen[value] < 600);
}

TEST(random_bytes_are_never_handed_out_twice)
{
    enum { N = 4096 };
    static char all[N][17];

    /* Sizes that do not divide a pool, so that its end is met in every way. */
    for (int i = 0; i < N; i++) {
        unsigned char odd[61];

        CHECK(peg__random(all[i], 16) && peg__random(odd, (size_t)i % sizeof(odd)));
        CHECK(peg__random(odd, 0));
        for (int k = 0; k < 16; k++)
            all[i][k] = (char)(all[i][k] ? all[i][k] : 1); /* compare_texts() wants text */
    }

    qsort(all, N, sizeof(all[0]), compare_texts);
    for (int i = 1; i < N; i++)
        CHECK(memcmp(all[i - 1], all[i], 12) != 0);
}

/* ---- processes ---------------------------------------------------------------- */

enum { CHILD_BYTES = 1024 };

/* A child without what pthread_atfork() asked for: a bare clone, as a sandbox makes it. */
static pid_t bare_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static bool write_random(int out)
{
    unsigned char bytes[CHILD_BYTES];

    for (size_t i = 0; i < sizeof(bytes); i += 16) {
        if (!peg__random(bytes + i, 16))
            return false;
    }
    return write(out, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes);
}

/* Writes random bytes of its own, then has a child that does the same. */
static _Noreturn void be_child(pid_t (*make_child)(void), int out)
{
    int status = 0;
    pid_t pid;

    if (!write_random(out))
        _exit(1);
    pid = make_child();
    if (pid == 0)
        _exit(!write_random(out));
    _exit(waitpid(pid, &status, 0) != pid || status != 0);
}

static void read_all(int in, unsigned char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t got = read(in, bytes, n);

        CHECK(got > 0);
        bytes += got;
        n -= (size_t)got;
    }
}

/* No 8 bytes of one are 8 bytes of another at the same place of their pools or any other. */
static void check_apart(const unsigned char *a, const unsigned char *b)
{
    for (size_t i = 0; i + 8 <= CHILD_BYTES; i += 8) {
        for (size_t k = 0; k + 8 <= CHILD_BYTES; k += 8)
            CHECK(memcmp(a + i, b + k, 8) != 0);
    }
}

static void check_family(pid_t (*make_child)(void))
{
    static unsigned char own[CHILD_BYTES];
    static unsigned char child[CHILD_BYTES];
    static unsigned char grandchild[CHILD_BYTES];
    int ends[2];
    int status = 0;
    pid_t pid;

    CHECK(peg__random(own, 16)); /* a pool that is full but for this is handed down */
    CHECK_INT(pipe(ends), 0);
    fflush(stdout);
    pid = make_child();
    CHECK(pid >= 0);
    if (pid == 0)
        be_child(make_child, ends[1]);
    for (size_t i = 0; i < sizeof(own); i += 16)
        CHECK(peg__random(own + i, 16));
    read_all(ends[0], child, sizeof(child));
    read_all(ends[0], grandchild, sizeof(grandchild));
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    close(ends[0]);
    close(ends[1]);

    check_apart(own, child);
    check_apart(own, grandchild);
    check_apart(child, grandchild);
}

TEST(child_never_gets_the_random_bytes_of_its_parent)
{
    check_family(fork);
}

TEST(child_of_a_bare_clone_never_gets_the_random_bytes_of_its_parent)
{
    check_family(bare_fork);
}

TEST(hex_ids_are_32_hex_digits_and_differ)
{
    char a[PEG_ID_HEX_TEXT];
    char b[PEG_ID_HEX_TEXT];

    CHECK(peg__id_hex(a) && peg__id_hex(b));

    CHECK_INT(strlen(a), 32);
    CHECK(is_hex(peg__str(a)));
    CHECK(strcmp(a, b) != 0);
}

/* ---- UUIDs ------------------------------------------------------------------ */

TEST(uuid7_has_the_fields_of_the_rfc)
{
    _Atomic uint64_t last = 0;
    peg_clock *clock = clock_at(rfc_example_ms);
    char text[PEG_UUID_TEXT];

    CHECK(peg__uuid7_after(&last, clock, text));

    CHECK_INT(strlen(text), 36);
    CHECK_STR(peg__strn(text, 15), "017f22e2-79b0-7");
    CHECK(is_hex(peg__strn(text + 15, 3)));
    CHECK(text[18] == '-' && text[23] == '-');
    CHECK(strchr("89ab", text[19]) != NULL);
    CHECK(is_hex(peg__strn(text + 20, 3)));
    CHECK(is_hex(peg__strn(text + 24, 12)));
    peg_clock_manual_free(clock);
}

TEST(uuid7_of_a_clock_before_1970_starts_at_zero)
{
    _Atomic uint64_t last = 0;
    peg_clock *clock = clock_at(-1);
    char text[PEG_UUID_TEXT];

    CHECK(peg__uuid7_after(&last, clock, text));

    CHECK_STR(peg__strn(text, 15), "00000000-0000-7");
    peg_clock_manual_free(clock);
}

TEST(uuid7_grows_within_a_millisecond_also_when_the_counter_overflows)
{
    _Atomic uint64_t last = 0;
    peg_clock *clock = clock_at(rfc_example_ms);
    char previous[PEG_UUID_TEXT];
    char text[PEG_UUID_TEXT];

    CHECK(peg__uuid7_after(&last, clock, previous));
    for (int i = 0; i < 10000; i++) {
        CHECK(peg__uuid7_after(&last, clock, text));
        CHECK(strcmp(previous, text) < 0);
        CHECK_INT(text[14], '7');
        memcpy(previous, text, sizeof(text));
    }
    /* 10,000 ids are more than two counters of 4,096: the carry went into the milliseconds. */
    CHECK(strcmp(text, "017f22e2-79b1") > 0);
    peg_clock_manual_free(clock);
}

TEST(uuid7_grows_when_the_clock_is_set_back)
{
    _Atomic uint64_t last = 0;
    peg_clock *clock = clock_at(rfc_example_ms);
    char before[PEG_UUID_TEXT];
    char after[PEG_UUID_TEXT];

    CHECK(peg__uuid7_after(&last, clock, before));

    peg__clock_manual_set_wall_ms(clock, rfc_example_ms - 3600 * 1000);
    CHECK(peg__uuid7_after(&last, clock, after));

    CHECK(strcmp(before, after) < 0);
    CHECK_STR(peg__strn(after, 13), "017f22e2-79b0");
    peg_clock_manual_free(clock);
}

TEST(uuid7_follows_the_clock_when_it_moves_on)
{
    _Atomic uint64_t last = 0;
    peg_clock *clock = clock_at(rfc_example_ms);
    char text[PEG_UUID_TEXT];

    CHECK(peg__uuid7_after(&last, clock, text));

    peg_clock_manual_advance(clock, 5);
    CHECK(peg__uuid7_after(&last, clock, text));

    CHECK_STR(peg__strn(text, 13), "017f22e2-79b5");
    peg_clock_manual_free(clock);
}

/* ---- threads ---------------------------------------------------------------- */

struct maker {
    pthread_t thread;
    char ids[IDS_PER_THREAD][PEG_UUID_TEXT];
    bool ok;
};

static void *make_ids(void *arg)
{
    struct maker *maker = arg;

    maker->ok = true;
    for (int i = 0; i < IDS_PER_THREAD; i++) {
        if (!peg__uuid7(peg_clock_system(), maker->ids[i]) ||
            (i > 0 && strcmp(maker->ids[i - 1], maker->ids[i]) >= 0))
            maker->ok = false;
    }
    return NULL;
}

TEST(uuid7_is_unique_over_threads_and_grows_in_each)
{
    static struct maker makers[N_THREADS];
    static char all[N_THREADS * IDS_PER_THREAD][PEG_UUID_TEXT];

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&makers[i].thread, NULL, make_ids, &makers[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(makers[i].thread, NULL), 0);

    for (int i = 0; i < N_THREADS; i++) {
        CHECK(makers[i].ok);
        memcpy(all[(size_t)i * IDS_PER_THREAD], makers[i].ids, sizeof(makers[i].ids));
    }
    /* Milliseconds, version and counter alone must differ: the order may not rest on luck. */
    qsort(all, N_THREADS * IDS_PER_THREAD, sizeof(all[0]), compare_texts);
    for (int i = 1; i < N_THREADS * IDS_PER_THREAD; i++)
        CHECK(memcmp(all[i - 1], all[i], 18) != 0);
}
