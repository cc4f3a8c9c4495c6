/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/observers.h"

int64_t peg_clock_now_ms(const peg_clock *clock)
{
    return clock->now_ms(clock);
}

int64_t peg_clock_mono_ns(const peg_clock *clock)
{
    return clock->mono_ns(clock);
}

int64_t peg__clock_after_ms(int64_t from_ns, int64_t ms)
{
    int64_t ns;

    if (__builtin_mul_overflow(ms, PEG_NS_PER_MS, &ns) || __builtin_add_overflow(ns, from_ns, &ns))
        return ms > 0 ? INT64_MAX : INT64_MIN;
    return ns;
}

int64_t peg__clock_in_ms(const peg_clock *clock, int64_t ms)
{
    return peg__clock_after_ms(clock->mono_ns(clock), ms);
}

void peg__clock_wait(const peg_clock *clock, pthread_cond_t *changed, pthread_mutex_t *lock,
                     int64_t until_ns)
{
    clock->wait(clock, changed, lock, until_ns);
}

/* ---- the system's ---------------------------------------------------------- */

/* Neither clock can fail: both ids are known to every kernel and the memory is ours. */
static int64_t read_ns(clockid_t id)
{
    struct timespec t = {0};

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * PEG_NS_PER_S + t.tv_nsec;
}

static int64_t system_now_ms(const peg_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME) / PEG_NS_PER_MS;
}

static int64_t system_mono_ns(const peg_clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_MONOTONIC);
}

static void system_wait(const peg_clock *clock, pthread_cond_t *changed, pthread_mutex_t *lock,
                        int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / PEG_NS_PER_S,
                                   .tv_nsec = until_ns % PEG_NS_PER_S};

    (void)clock;
    if (until_ns == INT64_MAX)
        pthread_cond_wait(changed, lock);
    else if (until_ns > 0)
        pthread_cond_timedwait(changed, lock, &until);
}

/* None of this fails on Linux: attributes are plain memory and the clock is known. */
void peg__clock_cond_init(pthread_cond_t *ret_cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(ret_cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

const peg_clock *peg_clock_system(void)
{
    static const peg_clock real = {system_now_ms, system_mono_ns, system_wait};

    return &real;
}

/* ---- one that is moved by hand ---------------------------------------------- */

struct manual_clock {
    peg_clock clock;              /* first: a pointer to it is a pointer to the whole */
    _Atomic int64_t wall_base_ms; /* what the wall showed when nothing had elapsed */
    _Atomic int64_t elapsed_ns;
    struct peg__observers moved; /* each thread that waits hangs on it */
};

struct waiter {
    const peg_clock *clock;
    pthread_cond_t *changed;
    pthread_mutex_t *lock;
    int64_t until_ns;
};

/* A const clock is one that others read; its bell and its readings change all the same. */
static struct manual_clock *manual(const peg_clock *clock)
{
    return peg__unconst(clock);
}

static int64_t manual_now_ms(const peg_clock *clock)
{
    struct manual_clock *m = manual(clock);

    return atomic_load(&m->wall_base_ms) + atomic_load(&m->elapsed_ns) / PEG_NS_PER_MS;
}

static int64_t manual_mono_ns(const peg_clock *clock)
{
    return atomic_load(&manual(clock)->elapsed_ns);
}

/* With the waiter's lock, which it holds from its look at the clock until it sleeps: so it
 * cannot be between the two when the signal comes. */
static void wake_if_due(void *user)
{
    struct waiter *waiter = user;

    if (waiter->clock->mono_ns(waiter->clock) < waiter->until_ns)
        return;
    pthread_mutex_lock(waiter->lock);
    pthread_cond_broadcast(waiter->changed);
    pthread_mutex_unlock(waiter->lock);
}

static void manual_wait(const peg_clock *clock, pthread_cond_t *changed, pthread_mutex_t *lock,
                        int64_t until_ns)
{
    struct peg__observers *moved = &manual(clock)->moved;
    struct waiter waiter = {clock, changed, lock, until_ns};
    struct peg__observer hook = {.fn = wake_if_due, .user = &waiter};

    peg__observers_add(moved, &hook);
    /* If the clock moved before the observer was there, it was not called. */
    if (clock->mono_ns(clock) < until_ns)
        pthread_cond_wait(changed, lock);
    /* wake_if_due() may want the lock while we wait for it to end. */
    pthread_mutex_unlock(lock);
    peg__observers_remove(moved, &hook);
    pthread_mutex_lock(lock);
}

peg_status peg_clock_manual_new(int64_t now_ms, peg_clock **ret_clock, peg_error *reterr)
{
    struct manual_clock *m = peg__alloc(sizeof(*m));

    if (!m)
        return peg__fail_nomem(reterr);
    m->clock = (peg_clock){manual_now_ms, manual_mono_ns, manual_wait};
    atomic_init(&m->wall_base_ms, now_ms);
    atomic_init(&m->elapsed_ns, 0);
    m->moved = (struct peg__observers)PEG__OBSERVERS;
    *ret_clock = &m->clock;
    return PEG_OK;
}

peg_clock *peg_clock_manual_free(peg_clock *clock)
{
    if (!clock)
        return NULL;
    peg__observers_destroy(&manual(clock)->moved);
    peg__free(clock);
    return NULL;
}

void peg__clock_manual_advance_ns(peg_clock *clock, int64_t ns)
{
    struct manual_clock *m = manual(clock);
    int64_t before = atomic_load(&m->elapsed_ns);
    int64_t after;

    if (ns <= 0)
        return;
    do {
        if (__builtin_add_overflow(before, ns, &after))
            after = INT64_MAX;
    } while (!atomic_compare_exchange_weak(&m->elapsed_ns, &before, after));
    peg__observers_notify(&m->moved);
}

void peg_clock_manual_advance(peg_clock *clock, int64_t ms)
{
    int64_t ns;

    if (__builtin_mul_overflow(ms, PEG_NS_PER_MS, &ns))
        ns = ms > 0 ? INT64_MAX : 0;
    peg__clock_manual_advance_ns(clock, ns);
}

size_t peg_clock_manual_waiting(const peg_clock *clock)
{
    return peg__observers_len(&manual(clock)->moved);
}

void peg__clock_manual_set_wall_ms(peg_clock *clock, int64_t wall_ms)
{
    struct manual_clock *m = manual(clock);

    atomic_store(&m->wall_base_ms, wall_ms - atomic_load(&m->elapsed_ns) / PEG_NS_PER_MS);
}
