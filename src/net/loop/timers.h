/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_TIMERS_H
#define PEG_NET_LOOP_TIMERS_H

/*
 * Timers in the order in which they are due. They know no clock and no loop: the owner asks when
 * the next one is due, and says what time it is. A timer lies in its owner's memory, so arming
 * cannot fail; arming is O(1), and so is disarming one that is not next, which is what becomes
 * of nearly every deadline.
 *
 *   struct net_timers timers = {0};
 *   net_timers_arm(&timers, &call->deadline, due_ns);
 *   ...
 *   while ((timer = net_timers_take_due(&timers, now_ns)))
 *       timer->fn(timer);
 *
 * One thread at a time.
 */

#include "pegboard/common.h"

struct net_timer {
    void (*fn)(struct net_timer *timer); /* called disarmed; may arm it again, or free it */
    int64_t due_ns;
    /* The rest belongs to the heap; a timer of all zeros is disarmed. */
    bool is_armed;
    struct net_timer *child;
    struct net_timer *next; /* among the children of one parent */
    struct net_timer *prev; /* the one before it, or the parent of a first child */
};

struct net_timers {
    struct net_timer *root; /* due first; NULL if none is armed */
};

#define NET_NEVER INT64_MAX

/* Arms it, or moves it if it is armed. NET_NEVER disarms. */
void net_timers_arm(struct net_timers *timers, struct net_timer *timer, int64_t due_ns);
/* A timer that is not armed is left alone. */
void net_timers_disarm(struct net_timers *timers, struct net_timer *timer);
/* When the first one is due, or NET_NEVER. */
int64_t net_timers_next_ns(const struct net_timers *timers);
/* Disarms and returns the first timer that is due at `now_ns`, or NULL. */
struct net_timer *net_timers_take_due(struct net_timers *timers, int64_t now_ns);

#endif
