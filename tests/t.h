/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_T_H
#define PEG_TESTS_T_H

/*
 * The whole test framework. A test file includes this and defines TESTs; each
 * registers itself, and the binary prints TAP for `meson test`.
 *
 *   TEST(registry_refuses_a_second_tool_of_the_same_name) { ... CHECK(...); }
 *   TORTURE(run_survives_any_allocation_failure) { ... return status; }
 *
 * A TORTURE body runs again and again with the 1st, 2nd, 3rd, ... allocation
 * failing, until it returns PEG_OK. It may only ever return PEG_ENOMEM before,
 * and whatever it returns it must have freed all it allocated. A TEST that passes
 * must have freed everything too.
 *
 * A VOLUME_TEST is a TEST whose point is that there is much of something: a limit that is
 * reached, time that does not grow. t_rounds() is how often a test does what it does with
 * other random numbers each time.
 *
 * PEG_TEST_SPARE=N spares those who wait for a tool that makes everything slow: beyond the
 * first hundred only every N-th allocation fails, rounds are an N-th, and VOLUME_TESTs are
 * left out.
 *
 * SKIP("why") ends a test without a verdict. An argument on the command line
 * runs only the tests whose name contains it.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/mem.h"
#include "pegboard/common.h"

struct t_test {
    const char *name;
    void (*run)(void);
    peg_status (*torture)(void);
    bool is_of_volume;
    struct t_test *next;
};

enum t_outcome { T_PASSED, T_FAILED, T_SKIPPED };

static struct t_test *t_first;
static struct t_test **t_last = &t_first;
static jmp_buf t_stop;
static const char *t_skip_reason;

#define T_REGISTER(fn, ...)                                                                        \
    __attribute__((constructor)) static void t_register_##fn(void)                                 \
    {                                                                                              \
        static struct t_test test = {.name = #fn, __VA_ARGS__};                                    \
        *t_last = &test;                                                                           \
        t_last = &test.next;                                                                       \
    }

#define TEST(fn)                                                                                   \
    static void fn(void);                                                                          \
    T_REGISTER(fn, .run = fn)                                                                      \
    static void fn(void)

#define VOLUME_TEST(fn)                                                                            \
    static void fn(void);                                                                          \
    T_REGISTER(fn, .run = fn, .is_of_volume = true)                                                \
    static void fn(void)

#define TORTURE(fn)                                                                                \
    static peg_status fn(void);                                                                    \
    T_REGISTER(fn, .torture = fn)                                                                  \
    static peg_status fn(void)

#define T_FAIL(...)                                                                                \
    do {                                                                                           \
        printf("# %s:%d: ", __FILE__, __LINE__);                                                   \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        longjmp(t_stop, T_FAILED);                                                                 \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        t_skip_reason = (reason);                                                                  \
        longjmp(t_stop, T_SKIPPED);                                                                \
    } while (0)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            T_FAIL("expected %s", #condition);                                                     \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        const long long t_a = (long long)(actual), t_e = (long long)(expected);                    \
        if (t_a != t_e)                                                                            \
            T_FAIL("%s is %lld, expected %s = %lld", #actual, t_a, #expected, t_e);                \
    } while (0)

#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        const peg_str t_s = (actual);                                                              \
        const char *t_e = (expected);                                                              \
        if (t_s.len != strlen(t_e) || (t_s.len && memcmp(t_s.ptr, t_e, t_s.len) != 0))             \
            T_FAIL("%s is \"%.*s\", expected \"%s\"", #actual, (int)t_s.len, t_s.ptr, t_e);        \
    } while (0)

/* The status of a call that fills `error`; prints the error's words when it differs. */
#define CHECK_STATUS(actual, expected, error)                                                      \
    do {                                                                                           \
        const peg_status t_a = (actual), t_e = (expected);                                         \
        if (t_a != t_e)                                                                            \
            T_FAIL("%s is %d (%s), expected %d", #actual, (int)t_a, t_a ? (error).message : "",    \
                   (int)t_e);                                                                      \
    } while (0)

/* How often does a text say this? */
static inline unsigned t_count(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

static inline unsigned t_spare(void)
{
    const char *spare = getenv("PEG_TEST_SPARE");
    const int n = spare ? atoi(spare) : 1;

    return n > 1 ? (unsigned)n : 1;
}

static inline unsigned t_rounds(unsigned n)
{
    const unsigned spared = n / t_spare();

    return spared > 0 ? spared : 1;
}

/* What a test does before a time is over may take longer than that on a slow machine: then it says
 * so, and is tried with more of it. A promise that is broken fails every try. */
static inline void t_try_with_more_time(bool (*was_in_time)(int64_t time_ms), int64_t time_ms)
{
    for (; time_ms < 10000; time_ms *= 4)
        if (was_in_time(time_ms))
            return;
    T_FAIL("not done in %lld ms", (long long)time_ms / 4);
}

/* Which allocation is to fail once the nth has. */
static inline unsigned t_next_allocation(unsigned nth)
{
    return nth + (nth < 100 ? 1 : t_spare());
}

static void t_run_torture(const struct t_test *test)
{
    peg_status status = PEG_ENOMEM;

    for (unsigned nth = 1; status != PEG_OK; nth = t_next_allocation(nth)) {
        const size_t live = peg__mem_live();

        peg__mem_fail_at(nth);
        status = test->torture();
        peg__mem_fail_at(0);
        if (status != PEG_OK && status != PEG_ENOMEM)
            T_FAIL("allocation %u failing gave status %d", nth, (int)status);
        if (peg__mem_live() != live)
            T_FAIL("allocation %u failing left %zd blocks", nth, (ssize_t)(peg__mem_live() - live));
    }
}

static void t_run_test(const struct t_test *test)
{
    const size_t live = peg__mem_live();

    test->run();
    if (peg__mem_live() != live)
        T_FAIL("%zd blocks were not freed", (ssize_t)(peg__mem_live() - live));
}

static enum t_outcome t_run(const struct t_test *test)
{
    const int stopped = setjmp(t_stop);

    if (test->is_of_volume && t_spare() > 1) {
        t_skip_reason = "its point is volume, and PEG_TEST_SPARE is set";
        return T_SKIPPED;
    }
    if (stopped) {
        peg__mem_fail_at(0);
        return (enum t_outcome)stopped;
    }
    if (test->torture)
        t_run_torture(test);
    else
        t_run_test(test);
    return T_PASSED;
}

int main(int argc, char **argv)
{
    int n = 0;
    int n_failed = 0;

    for (struct t_test *test = t_first; test; test = test->next) {
        enum t_outcome outcome;

        if (argc > 1 && !strstr(test->name, argv[1]))
            continue;
        outcome = t_run(test);
        n_failed += outcome == T_FAILED;
        printf("%s %d - %s%s%s\n", outcome == T_FAILED ? "not ok" : "ok", ++n, test->name,
               outcome == T_SKIPPED ? " # SKIP " : "", outcome == T_SKIPPED ? t_skip_reason : "");
        fflush(stdout);
    }
    printf("1..%d\n", n);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
