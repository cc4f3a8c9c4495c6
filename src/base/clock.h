/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_CLOCK_H
#define PEG_BASE_CLOCK_H

/*
 * Time comes from a clock that the caller hands down, so that a test can own it:
 *
 *   int64_t deadline_ns = peg__clock_in_ms(clock, 30000);
 *   while (!is_done && peg_clock_mono_ns(clock) < deadline_ns)
 *       peg__clock_wait(clock, &changed, &lock, deadline_ns);
 */

#include <pthread.h>

#include "pegboard/clock.h"

#define PEG_NS_PER_MS INT64_C(1000000)
#define PEG_NS_PER_S INT64_C(1000000000)

/* Any thread. */
struct peg_clock {
    int64_t (*now_ms)(const peg_clock *clock);
    int64_t (*mono_ns)(const peg_clock *clock);
    void (*wait)(const peg_clock *clock, pthread_cond_t *changed, pthread_mutex_t *lock,
                 int64_t until_ns);
};

/* By the system, where no clock was handed down. */
static inline int64_t peg__mono_ns(void)
{
    return peg_clock_mono_ns(peg_clock_system());
}

/* The moment in so many milliseconds; INT64_MAX, which means never, if it is too far away. */
int64_t peg__clock_in_ms(const peg_clock *clock, int64_t ms);
/* The same from a moment that was read before. */
int64_t peg__clock_after_ms(int64_t from_ns, int64_t ms);

/* A condition that the wait below can be used with. */
void peg__clock_cond_init(pthread_cond_t *ret_cond);

/* Waits with the lock held, which is given up meanwhile: until somebody signals `changed`, until
 * the moment has come (INT64_MAX: never), or for no reason. */
void peg__clock_wait(const peg_clock *clock, pthread_cond_t *changed, pthread_mutex_t *lock,
                     int64_t until_ns);

/* As peg_clock_manual_advance(), by less than a millisecond. */
void peg__clock_manual_advance_ns(peg_clock *clock, int64_t ns);
/* Somebody sets the clock on the wall, perhaps back; the other does not notice. */
void peg__clock_manual_set_wall_ms(peg_clock *clock, int64_t wall_ms);

#endif
