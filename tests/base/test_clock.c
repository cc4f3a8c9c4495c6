/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "../t.h"

/* ---- the system's clock ----------------------------------------------------- */

TEST(system_clock_tells_the_time_of_the_system)
{
    const peg_clock *clock = peg_clock_system();
    const int64_t before_ms = (int64_t)time(NULL) * 1000;
    const int64_t now_ms = peg_clock_now_ms(clock);
    const int64_t after_ms = (int64_t)time(NULL) * 1000;

    /* time() has whole seconds, and may lag by a tick of the kernel. */
    CHECK(now_ms >= before_ms - 1000);
    CHECK(now_ms <= after_ms + 2000);
}

TEST(system_clock_never_goes_back)
{
    const peg_clock *clock = peg_clock_system();
    int64_t last_ns = peg_clock_mono_ns(clock);

    for (int i = 0; i < 10000; i++) {
        const int64_t now_ns = peg_clock_mono_ns(clock);

        CHECK(now_ns >= last_ns);
        last_ns = now_ns;
    }
    CHECK(last_ns > 0);
}

TEST(system_clock_waits_until_the_moment_and_not_for_one_that_is_past)
{
    const peg_clock *clock = peg_clock_system();
    const int64_t until_ns = peg__clock_in_ms(clock, 5);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed;

    peg__clock_cond_init(&changed);
    pthread_mutex_lock(&lock);
    while (peg_clock_mono_ns(clock) < until_ns)
        peg__clock_wait(clock, &changed, &lock, until_ns);
    /* A moment that is past, also one before the clock began, does not wait at all. */
    peg__clock_wait(clock, &changed, &lock, until_ns);
    peg__clock_wait(clock, &changed, &lock, INT64_MIN);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&changed);

    CHECK(peg_clock_mono_ns(clock) >= until_ns);
}

TEST(moments_too_far_away_are_never)
{
    const peg_clock *clock = peg_clock_system();

    CHECK(peg__clock_in_ms(clock, INT64_MAX) == INT64_MAX);
    CHECK(peg__clock_in_ms(clock, INT64_MAX / PEG_NS_PER_MS) == INT64_MAX);
    CHECK(peg__clock_in_ms(clock, INT64_MIN) == INT64_MIN);
    CHECK(peg__clock_in_ms(clock, -1) < peg_clock_mono_ns(clock));
}

/* ---- the one that is moved by hand ------------------------------------------- */

static peg_clock *clock_at(int64_t now_ms)
{
    peg_clock *clock = NULL;

    CHECK(peg_clock_manual_new(now_ms, &clock, NULL) == PEG_OK);
    return clock;
}

TEST(manual_clock_stands_still_until_it_is_moved)
{
    peg_clock *clock = clock_at(5000);

    CHECK_INT(peg_clock_now_ms(clock), 5000);
    CHECK_INT(peg_clock_mono_ns(clock), 0);

    peg_clock_manual_advance(clock, 3);

    CHECK_INT(peg_clock_now_ms(clock), 5003);
    CHECK_INT(peg_clock_mono_ns(clock), 3 * PEG_NS_PER_MS);
    CHECK(peg_clock_manual_free(clock) == NULL);
}

TEST(manual_clock_adds_up_parts_of_a_millisecond)
{
    peg_clock *clock = clock_at(0);

    for (int i = 0; i < 1999; i++)
        peg__clock_manual_advance_ns(clock, 1000);

    CHECK_INT(peg_clock_now_ms(clock), 1);
    peg_clock_manual_free(clock);
}

TEST(manual_clock_never_goes_back_nor_over_the_end)
{
    peg_clock *clock = clock_at(0);

    peg_clock_manual_advance(clock, 7);
    peg_clock_manual_advance(clock, -5);
    peg_clock_manual_advance(clock, INT64_MIN);
    CHECK_INT(peg_clock_mono_ns(clock), 7 * PEG_NS_PER_MS);

    peg_clock_manual_advance(clock, INT64_MAX);
    peg_clock_manual_advance(clock, 1);

    CHECK(peg_clock_mono_ns(clock) == INT64_MAX);
    peg_clock_manual_free(clock);
}

TEST(manual_clock_on_the_wall_may_be_set_back_alone)
{
    peg_clock *clock = clock_at(5000);

    peg_clock_manual_advance(clock, 10);
    peg__clock_manual_set_wall_ms(clock, 100);

    CHECK_INT(peg_clock_now_ms(clock), 100);
    CHECK_INT(peg_clock_mono_ns(clock), 10 * PEG_NS_PER_MS);
    peg_clock_manual_free(clock);
}

TEST(manual_clock_may_be_freed_when_there_is_none)
{
    CHECK(peg_clock_manual_free(NULL) == NULL);
}

TORTURE(manual_clock_survives_any_allocation_failure)
{
    peg_clock *clock = NULL;
    const peg_status status = peg_clock_manual_new(0, &clock, NULL);

    peg_clock_manual_free(clock);
    return status;
}

/* ---- waiting for a moment of it ------------------------------------------------ */

enum { N_SLEEPERS = 4, N_STEPS = 200 };

struct sleeper {
    pthread_t thread;
    const peg_clock *clock;
    int64_t step_ms;
    int n_steps;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool was_early;
    atomic_bool is_done;
};

/* Waits for a moment n_steps times. */
static void *sleep_in_steps(void *arg)
{
    struct sleeper *s = arg;

    pthread_mutex_lock(&s->lock);
    for (int i = 1; i <= s->n_steps; i++) {
        const int64_t until_ns = i * s->step_ms * PEG_NS_PER_MS;

        while (peg_clock_mono_ns(s->clock) < until_ns)
            peg__clock_wait(s->clock, &s->changed, &s->lock, until_ns);
        s->was_early |= peg_clock_mono_ns(s->clock) < until_ns;
    }
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->is_done, true);
    return NULL;
}

static void start_sleeper(struct sleeper *s, const peg_clock *clock, int64_t step_ms, int n_steps)
{
    s->clock = clock;
    s->step_ms = step_ms;
    s->n_steps = n_steps;
    pthread_mutex_init(&s->lock, NULL);
    peg__clock_cond_init(&s->changed);
    CHECK_INT(pthread_create(&s->thread, NULL, sleep_in_steps, s), 0);
}

static void join_sleeper(struct sleeper *s)
{
    CHECK_INT(pthread_join(s->thread, NULL), 0);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

static void await_waiting(const peg_clock *clock, size_t n)
{
    while (peg_clock_manual_waiting(clock) != n)
        sched_yield();
}

TEST(manual_clock_counts_and_wakes_those_whose_moment_has_come)
{
    peg_clock *clock = clock_at(0);
    struct sleeper soon = {0};
    struct sleeper late = {0};

    start_sleeper(&soon, clock, 10, 1);
    start_sleeper(&late, clock, 20, 1);
    await_waiting(clock, 2);

    peg_clock_manual_advance(clock, 9);
    CHECK_INT(peg_clock_manual_waiting(clock), 2);
    peg_clock_manual_advance(clock, 1);
    join_sleeper(&soon);
    CHECK(!atomic_load(&late.is_done));
    CHECK_INT(peg_clock_manual_waiting(clock), 1);
    peg_clock_manual_advance(clock, 10);
    join_sleeper(&late);

    CHECK_INT(peg_clock_manual_waiting(clock), 0);
    CHECK(!soon.was_early && !late.was_early);
    peg_clock_manual_free(clock);
}

/* Nobody awaits the sleepers before moving the clock: a wake-up that got lost would hang here. */
TEST(manual_clock_loses_no_wake_up_between_the_look_and_the_sleep)
{
    static struct sleeper sleepers[N_SLEEPERS];
    peg_clock *clock = clock_at(0);

    for (int i = 0; i < N_SLEEPERS; i++)
        start_sleeper(&sleepers[i], clock, 1 + i % 2, N_STEPS);
    for (int i = 0; i < 2 * N_STEPS; i++) {
        peg_clock_manual_advance(clock, 1);
        if (i % 8 == 0)
            sched_yield();
    }
    for (int i = 0; i < N_SLEEPERS; i++) {
        join_sleeper(&sleepers[i]);
        CHECK(!sleepers[i].was_early);
    }
    peg_clock_manual_free(clock);
}
