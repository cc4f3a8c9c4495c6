/* SPDX-License-Identifier: Apache-2.0 */

/* The directory that tells the loops of a node which of them has the call of an identity. */

#include "../t.h"

#include <pthread.h>
#include <stdatomic.h>

#include "calls/caller/homes.h"

static struct bus_id make_id(unsigned n)
{
    struct bus_id id = {.len = 32};

    memcpy(id.bytes, &n, sizeof(n));
    memcpy(id.bytes + 16, &n, sizeof(n));
    return id;
}

TEST(the_loop_that_asks_first_is_the_home)
{
    const struct bus_id id = make_id(1);
    const struct bus_id other = make_id(2);
    struct calls_homes *homes = calls_homes_new();
    struct calls_home *first = calls_homes_hold(homes, &id, 3);
    struct calls_home *second = calls_homes_hold(homes, &id, 1);
    struct calls_home *third = calls_homes_hold(homes, &other, 1);

    CHECK_INT(calls_home_loop(first), 3);
    CHECK_INT(calls_home_loop(second), 3);
    CHECK_INT(calls_home_loop(third), 1);
    calls_home_release(first);
    calls_home_release(second);
    calls_home_release(third);
    CHECK(!calls_homes_free(homes));
}

TEST(a_home_lasts_until_its_last_hold_is_released)
{
    const struct bus_id id = make_id(1);
    struct calls_homes *homes = calls_homes_new();
    struct calls_home *first = calls_homes_hold(homes, &id, 0);
    struct calls_home *second = calls_homes_hold(homes, &id, 1);
    struct calls_home *third;

    CHECK(!calls_home_release(first));
    third = calls_homes_hold(homes, &id, 2);
    CHECK_INT(calls_home_loop(third), 0);
    calls_home_release(second);
    calls_home_release(third);
    first = calls_homes_hold(homes, &id, 2);
    CHECK_INT(calls_home_loop(first), 2);
    calls_home_release(first);
    calls_homes_free(homes);
}

/* More than the tables begin with, in one shard. */
TEST(a_directory_keeps_many_homes_apart)
{
    enum { N = 3000 };
    static struct calls_home *held[N];
    struct calls_homes *homes = calls_homes_new();

    for (unsigned i = 0; i < N; i++) {
        const struct bus_id id = make_id(i << 8);

        held[i] = calls_homes_hold(homes, &id, i % 7);
        CHECK(held[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        const struct bus_id id = make_id(i << 8);
        struct calls_home *home = calls_homes_hold(homes, &id, 9);

        CHECK(home == held[i]);
        CHECK_INT(calls_home_loop(home), i % 7);
        calls_home_release(home);
        calls_home_release(held[i]);
    }
    calls_homes_free(homes);
}

TEST(a_home_that_exists_is_held_without_memory)
{
    const struct bus_id id = make_id(1);
    const struct bus_id other = make_id(2);
    struct calls_homes *homes = calls_homes_new();
    struct calls_home *first = calls_homes_hold(homes, &id, 0);
    struct calls_home *second;

    peg__mem_fail_at(1);
    second = calls_homes_hold(homes, &id, 1);
    CHECK(!calls_homes_hold(homes, &other, 1));
    peg__mem_fail_at(0);

    CHECK(second == first);
    calls_home_release(first);
    calls_home_release(second);
    calls_homes_free(homes);
}

TEST(nothing_is_released_and_freed_in_vain)
{
    CHECK(!calls_home_release(NULL));
    CHECK(!calls_homes_free(NULL));
}

TORTURE(homes_survive_any_allocation_failure)
{
    struct calls_homes *homes = calls_homes_new();
    peg_status status = homes ? PEG_OK : PEG_ENOMEM;

    for (unsigned i = 0; i < 3 && !status; i++) {
        const struct bus_id id = make_id(i);
        struct calls_home *home = calls_homes_hold(homes, &id, i);

        if (!home)
            status = PEG_ENOMEM;
        calls_home_release(home);
    }
    calls_homes_free(homes);
    return status;
}

/* ---- threads ---- */

enum { N_LOOPS = 4, N_IDS = 3, N_ROUNDS = 20000 };

static struct {
    struct calls_homes *homes;
    atomic_uint n_held[N_IDS][N_LOOPS]; /* by the home that the holder was given */
    atomic_uint n_wrong;
} shared;

/* As long as one holds a home, no other is given another one. */
static void *ask_as_loop(void *arg)
{
    const uint32_t self = (uint32_t)(uintptr_t)arg;

    for (unsigned round = 0; round < N_ROUNDS; round++) {
        const unsigned n = (round + round / 7 * self) % N_IDS;
        const struct bus_id id = make_id(n);
        struct calls_home *home = calls_homes_hold(shared.homes, &id, self);
        const uint32_t loop = calls_home_loop(home);

        atomic_fetch_add(&shared.n_held[n][loop], 1);
        for (uint32_t other = 0; other < N_LOOPS; other++)
            if (other != loop && atomic_load(&shared.n_held[n][other]))
                atomic_fetch_add(&shared.n_wrong, 1);
        atomic_fetch_sub(&shared.n_held[n][loop], 1);
        calls_home_release(home);
    }
    return NULL;
}

TEST(loops_that_hold_an_id_at_the_same_time_agree_on_its_home)
{
    pthread_t threads[N_LOOPS];

    shared.homes = calls_homes_new();
    for (uintptr_t i = 0; i < N_LOOPS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, ask_as_loop, (void *)i), 0);
    for (unsigned i = 0; i < N_LOOPS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(atomic_load(&shared.n_wrong), 0);
    calls_homes_free(shared.homes);
}
