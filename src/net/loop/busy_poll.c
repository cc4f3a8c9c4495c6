/* SPDX-License-Identifier: Apache-2.0 */

#include "net/loop/busy_poll.h"

enum {
    SPIN_NS = 25000,  /* for one answer */
    QUICK_NS = 40000, /* of one that was slept for, with the waking */
    BEST_SCORE = 8,
};

/* With several on their way there is enough to do, and their peers need the processors. */
bool net_busy_poll_goes_on(struct net_busy_poll *spin, int64_t now_ns)
{
    if (spin->n_awaited != 1) {
        spin->since_ns = 0;
        return false;
    }
    if (!spin->since_ns)
        spin->since_ns = now_ns;
    return spin->score > 0 && now_ns - spin->since_ns < SPIN_NS;
}

/* Hope is lost faster than it is gained: to spin for nothing costs more than to sleep. */
void net_busy_poll_note_event(struct net_busy_poll *spin, int64_t now_ns)
{
    if (!spin->since_ns)
        return;
    if (now_ns - spin->since_ns < QUICK_NS)
        spin->score += spin->score < BEST_SCORE;
    else
        spin->score = spin->score > 2 ? spin->score - 2 : 0;
    spin->since_ns = 0;
}
