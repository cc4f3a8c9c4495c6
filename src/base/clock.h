/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_CLOCK_H
#define PEG_BASE_CLOCK_H

/*
 * Time comes from a clock that the caller hands down, so that a test can own it:
 *
 *   const struct peg__clock *clock = peg__clock_real();
 *   int64_t deadline_ns = clock->mono_ns(clock) + 30 * PEG_NS_PER_S;
 */

#include <stdatomic.h>

#include "pegboard/common.h"

#define PEG_NS_PER_MS INT64_C(1000000)
#define PEG_NS_PER_S INT64_C(1000000000)

/* Any thread. */
struct peg__clock {
    /* Milliseconds since 1970, for people and records: may jump either way. */
    int64_t (*now_ms)(const struct peg__clock *clock);
    /* Nanoseconds since some moment, for deadlines and durations: never goes back. */
    int64_t (*mono_ns)(const struct peg__clock *clock);
};

/* The clock of the system; static. */
const struct peg__clock *peg__clock_real(void);

/* A clock that stands still until a test moves it. A value; may be moved while others read. */
struct peg__test_clock {
    struct peg__clock clock;      /* first: a pointer to it is a pointer to the whole */
    _Atomic int64_t wall_base_ms; /* what the wall showed when nothing had elapsed */
    _Atomic int64_t elapsed_ns;
};

void peg__test_clock_init(struct peg__test_clock *test, int64_t wall_ms);
/* Time passes: both clocks move. */
void peg__test_clock_advance_ns(struct peg__test_clock *test, int64_t ns);
/* Somebody sets the clock on the wall, perhaps back; the other does not notice. */
void peg__test_clock_set_wall_ms(struct peg__test_clock *test, int64_t wall_ms);

#endif
