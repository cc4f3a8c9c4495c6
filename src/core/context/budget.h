/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CONTEXT_BUDGET_H
#define PEG_CORE_CONTEXT_BUDGET_H

/*
 * The time that one call may take; it stands still while the call waits for a person. A call made
 * by a handler has its own budget inside that of the handler's call: both hold, and a pause stops
 * both.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/observers.h"

/* Any thread. Part of a context, outlived by the budget around it. */
struct peg__budget {
    struct peg__budget *outer; /* or NULL */
    int64_t timeout_ms;        /* as it was given */
    _Atomic int64_t end_ns;    /* INT64_MAX while it stands still */
    pthread_mutex_t lock;
    unsigned n_pauses;
    bool is_still;   /* under lock: there is something to go on from when the last pause ends */
    int64_t left_ns; /* under lock: while it stands still */
    struct peg__budget *outermost; /* whose bell rings for all: one hook hears every resumption */
    struct peg__observers resumed;
};

/* There is nothing to destroy: see destroy() of cancel.c. */
void peg__budget_init(struct peg__budget *budget, struct peg__budget *outer, int64_t now_ns,
                      int64_t timeout_ms);

/* All of these accept NULL: no budget. Pausing one that is used up already changes nothing. */
void peg__budget_pause(struct peg__budget *budget, const peg_clock *clock);
void peg__budget_resume(struct peg__budget *budget, const peg_clock *clock);
/* Of this one and of those around it, the earliest. */
int64_t peg__budget_end_ns(const struct peg__budget *budget);

/* Not NULL. */
static inline int64_t peg__budget_own_end_ns(const struct peg__budget *budget)
{
    return atomic_load_explicit(&budget->end_ns, memory_order_acquire);
}

#endif
