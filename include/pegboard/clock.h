/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CLOCK_H
#define PEGBOARD_CLOCK_H

/*
 * Time, as a thing that is handed down: deadlines, gates and records read the
 * clock of their context, so that a test can own it.
 *
 * Threads: any.
 */

#include <pegboard/common.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The clock of the system; static. */
PEG_API const peg_clock *peg_clock_system(void);

/* Milliseconds since 1970, for people and records: may jump either way. */
PEG_API int64_t peg_clock_now_ms(const peg_clock *clock);
/* Nanoseconds since some moment, for deadlines and durations: never goes back. */
PEG_API int64_t peg_clock_mono_ns(const peg_clock *clock);

/* A clock that stands still until it is moved. Owned; outlives every context that has it. */
PEG_API PEG_MUST_USE peg_status peg_clock_manual_new(int64_t now_ms, peg_clock **ret_clock,
                                                     peg_error *reterr);
PEG_API peg_clock *peg_clock_manual_free(peg_clock *clock);
/* Time passes: both readings move, and those that wait for a moment now past wake up. */
PEG_API void peg_clock_manual_advance(peg_clock *clock, int64_t ms);
/* How many threads wait on this clock, for a moment of it or for something else in a context that
 * has it: a test awaits that before it advances. */
PEG_API size_t peg_clock_manual_waiting(const peg_clock *clock);

#ifdef __cplusplus
}
#endif
#endif
