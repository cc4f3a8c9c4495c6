/* SPDX-License-Identifier: Apache-2.0 */

#include "net/loop/internal.h"

enum {
    BUSY_POLL_NS = 25000, /* for one answer */
    QUICK_NS = 40000,     /* of one that was slept for, with the waking */
    BEST_SCORE = 8,
};

/* With several on their way there is enough to do, and their peers need the processors. */
bool net_busy_poll_goes_on(struct net_busy_poll *busy_poll, int64_t now_ns)
{
    if (busy_poll->n_awaited != 1) {
        busy_poll->since_ns = 0;
        return false;
    }
    if (!busy_poll->since_ns)
        busy_poll->since_ns = now_ns;
    return busy_poll->score > 0 && now_ns - busy_poll->since_ns < BUSY_POLL_NS;
}

/* The score falls faster than it rises: polling for nothing costs more than sleeping. */
void net_busy_poll_note_event(struct net_busy_poll *busy_poll, int64_t now_ns)
{
    if (!busy_poll->since_ns)
        return;
    if (now_ns - busy_poll->since_ns < QUICK_NS)
        busy_poll->score += busy_poll->score < BEST_SCORE;
    else
        busy_poll->score = busy_poll->score > 2 ? busy_poll->score - 2 : 0;
    busy_poll->since_ns = 0;
}
