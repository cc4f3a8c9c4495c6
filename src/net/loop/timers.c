/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pairing heap: a tree in which no timer is due before its parent. Melding two of them hangs
 * the later root below the earlier one. Only taking a timer that has children away costs more
 * than that: they are melded in pairs, then from the last to the first.
 */

#include "net/loop/loop.h"

static struct net_timer *meld(struct net_timer *a, struct net_timer *b)
{
    struct net_timer *first;
    struct net_timer *second;

    if (!a || !b)
        return a ? a : b;
    first = b->due_ns < a->due_ns ? b : a;
    second = first == a ? b : a;

    second->prev = first;
    second->next = first->child;
    if (second->next)
        second->next->prev = second;
    first->child = second;
    return first;
}

/* Siblings into one tree, without recursion: pairs are put on a list, then melded from it. */
static struct net_timer *meld_all(struct net_timer *sibling)
{
    struct net_timer *pairs = NULL;
    struct net_timer *root = NULL;

    while (sibling) {
        struct net_timer *a = sibling;
        struct net_timer *b = a->next;

        sibling = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct net_timer *pair = pairs;

        pairs = pair->next;
        pair->next = NULL;
        root = meld(root, pair);
    }
    if (root) {
        root->prev = NULL;
        root->next = NULL;
    }
    return root;
}

static void cut_from_parent(struct net_timer *timer)
{
    if (timer->prev->child == timer)
        timer->prev->child = timer->next;
    else
        timer->prev->next = timer->next;
    if (timer->next)
        timer->next->prev = timer->prev;
}

void net_timers_disarm(struct net_timers *timers, struct net_timer *timer)
{
    struct net_timer *rest;

    if (!timer->is_armed)
        return;
    rest = meld_all(timer->child);
    if (timers->root == timer) {
        timers->root = rest;
    } else {
        cut_from_parent(timer);
        timers->root = meld(timers->root, rest);
    }
    timer->is_armed = false;
    timer->child = NULL;
    timer->next = NULL;
    timer->prev = NULL;
}

void net_timers_arm(struct net_timers *timers, struct net_timer *timer, int64_t due_ns)
{
    net_timers_disarm(timers, timer);
    if (due_ns == NET_NEVER)
        return;
    timer->due_ns = due_ns;
    timer->is_armed = true;
    timers->root = meld(timers->root, timer);
}

int64_t net_timers_next_ns(const struct net_timers *timers)
{
    return timers->root ? timers->root->due_ns : NET_NEVER;
}

struct net_timer *net_timers_take_due(struct net_timers *timers, int64_t now_ns)
{
    struct net_timer *first = timers->root;

    if (!first || first->due_ns > now_ns)
        return NULL;
    net_timers_disarm(timers, first);
    return first;
}
