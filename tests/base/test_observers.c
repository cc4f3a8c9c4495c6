/* SPDX-License-Identifier: Apache-2.0 */

#include "base/observers.h"

#include <sched.h>
#include <stdatomic.h>

#include "../t.h"

static void count(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

TEST(bell_calls_everybody_each_time_it_rings)
{
    struct peg__observers bell = PEG__OBSERVERS;
    atomic_int n[3] = {0};
    struct peg__observer hooks[3];

    peg__observers_notify(&bell);
    for (int i = 0; i < 3; i++) {
        hooks[i] = (struct peg__observer){.fn = count, .user = &n[i]};
        peg__observers_add(&bell, &hooks[i]);
        peg__observers_notify(&bell);
    }

    CHECK_INT(peg__observers_len(&bell), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(n[i], 3 - i);
        peg__observers_remove(&bell, &hooks[i]);
    }
    peg__observers_destroy(&bell);
}

TEST(bell_does_not_call_whom_it_was_told_to_forget)
{
    struct peg__observers bell = PEG__OBSERVERS;
    atomic_int n[3] = {0};
    struct peg__observer hooks[3];

    for (int i = 0; i < 3; i++) {
        hooks[i] = (struct peg__observer){.fn = count, .user = &n[i]};
        peg__observers_add(&bell, &hooks[i]);
    }
    peg__observers_remove(&bell, &hooks[1]);
    peg__observers_notify(&bell);
    peg__observers_remove(&bell, &hooks[2]);
    peg__observers_remove(&bell, &hooks[0]);
    peg__observers_notify(&bell);

    CHECK(n[0] == 1 && n[1] == 0 && n[2] == 1);
    CHECK_INT(peg__observers_len(&bell), 0);
    peg__observers_destroy(&bell);
}

struct slow {
    struct peg__observers bell;
    atomic_bool is_running;
    atomic_bool has_ended;
};

static void run_for_a_while(void *user)
{
    struct slow *slow = user;

    atomic_store(&slow->is_running, true);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    atomic_store(&slow->has_ended, true);
}

static void *ring(void *user)
{
    peg__observers_notify(user);
    return NULL;
}

TEST(taking_a_hook_down_waits_for_it_to_end)
{
    struct slow slow = {.bell = PEG__OBSERVERS};
    struct peg__observer hook = {.fn = run_for_a_while, .user = &slow};
    pthread_t thread;

    peg__observers_add(&slow.bell, &hook);
    CHECK_INT(pthread_create(&thread, NULL, ring, &slow.bell), 0);
    while (!atomic_load(&slow.is_running))
        sched_yield();
    peg__observers_remove(&slow.bell, &hook);

    CHECK(atomic_load(&slow.has_ended));
    CHECK_INT(pthread_join(thread, NULL), 0);
    peg__observers_destroy(&slow.bell);
}

enum { N_THREADS = 4, N_ROUNDS = 2000 };

struct crowd {
    struct peg__observers bell;
    atomic_int n_calls;
};

static void *come_and_go(void *user)
{
    struct crowd *crowd = user;

    for (int i = 0; i < N_ROUNDS; i++) {
        struct peg__observer hook = {.fn = count, .user = &crowd->n_calls};

        peg__observers_add(&crowd->bell, &hook);
        if (i % 16 == 0)
            peg__observers_notify(&crowd->bell);
        peg__observers_remove(&crowd->bell, &hook);
    }
    return NULL;
}

TEST(bell_rings_while_others_come_and_go)
{
    static struct crowd crowd = {.bell = PEG__OBSERVERS};
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, come_and_go, &crowd), 0);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);

    /* Each heard at least its own. */
    CHECK(atomic_load(&crowd.n_calls) >= N_THREADS * N_ROUNDS / 16);
    CHECK_INT(peg__observers_len(&crowd.bell), 0);
    peg__observers_destroy(&crowd.bell);
}
