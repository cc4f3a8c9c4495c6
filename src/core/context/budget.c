/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/context.h"

void peg__budget_init(struct peg__budget *budget, struct peg__budget *outer, int64_t now_ns,
                      int64_t timeout_ms)
{
    budget->outer = outer;
    budget->outermost = outer ? outer->outermost : budget;
    budget->timeout_ms = timeout_ms;
    atomic_init(&budget->end_ns, peg__clock_after_ms(now_ns, timeout_ms));
    budget->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    budget->n_pauses = 0;
    budget->is_still = false;
    budget->left_ns = 0;
    budget->resumed = (struct peg__observers)PEG__OBSERVERS;
}

/* With the lock. */
static void stop(struct peg__budget *budget, int64_t now_ns)
{
    const int64_t end_ns = peg__budget_own_end_ns(budget);

    budget->is_still = end_ns > now_ns;
    if (!budget->is_still)
        return;
    budget->left_ns = end_ns - now_ns;
    atomic_store_explicit(&budget->end_ns, INT64_MAX, memory_order_release);
}

/* With the lock. */
static void go_on(struct peg__budget *budget, int64_t now_ns)
{
    int64_t end_ns;

    if (!budget->is_still)
        return;
    budget->is_still = false;
    if (__builtin_add_overflow(now_ns, budget->left_ns, &end_ns))
        end_ns = INT64_MAX;
    atomic_store_explicit(&budget->end_ns, end_ns, memory_order_release);
}

void peg__budget_pause(struct peg__budget *budget, const peg_clock *clock)
{
    for (; budget; budget = budget->outer) {
        pthread_mutex_lock(&budget->lock);
        if (budget->n_pauses++ == 0)
            stop(budget, peg_clock_mono_ns(clock));
        pthread_mutex_unlock(&budget->lock);
    }
}

/* Threads that wait for its end must learn when that is. A pause notifies none: they wake up at
 * the end that they know, and see. */
void peg__budget_resume(struct peg__budget *budget, const peg_clock *clock)
{
    struct peg__budget *outermost = budget ? budget->outermost : NULL;

    for (; budget; budget = budget->outer) {
        pthread_mutex_lock(&budget->lock);
        if (--budget->n_pauses == 0)
            go_on(budget, peg_clock_mono_ns(clock));
        pthread_mutex_unlock(&budget->lock);
    }
    if (outermost)
        peg__observers_notify(&outermost->resumed);
}

int64_t peg__budget_end_ns(const struct peg__budget *budget)
{
    int64_t end_ns = INT64_MAX;

    for (; budget; budget = budget->outer) {
        const int64_t own_ns = peg__budget_own_end_ns(budget);

        if (own_ns < end_ns)
            end_ns = own_ns;
    }
    return end_ns;
}
