/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_BUSY_POLL_H
#define PEG_NET_LOOP_BUSY_POLL_H

/*
 * To sleep and to be woken costs a loop some 5 us, and the one that wakes it 2 more: as much as
 * a quick answer takes to come. So a loop that waits for exactly one answer, of a peer whose last
 * answers were quick, looks for it a few times before it sleeps. What takes longer is learned:
 * nobody spins for it. One thread; knows no loop.
 *
 *   if (net_busy_poll_goes_on(&spin, now_ns)) poll without waiting; else poll
 *   net_busy_poll_note_event(&spin, now_ns)        something came
 */

#include "pegboard/common.h"

struct net_busy_poll {
    int n_awaited;    /* answers that are on their way */
    int score;        /* 0: the last answers were slow */
    int64_t since_ns; /* when there was nothing left to do; 0: there is */
};

/* May the loop look again without sleeping? */
bool net_busy_poll_goes_on(struct net_busy_poll *spin, int64_t now_ns);
void net_busy_poll_note_event(struct net_busy_poll *spin, int64_t now_ns);

#endif
