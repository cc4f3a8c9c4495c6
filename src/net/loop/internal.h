/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_INTERNAL_H
#define PEG_NET_LOOP_INTERNAL_H

/* What loop.c, loop_end.c, loop_work.c, loop_aside.c, loops.c and turns.c share. Nobody else
 * includes it. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <uv.h>

#include "net/loop/busy_poll.h"
#include "net/loop/loop.h"
#include "net/loop/mailbox.h"

/* One call of net_loop_work(). */
struct net_work_request {
    uv_work_t uv;
    struct net_work *work;
    struct net_work_request *next;
    struct net_work_request *prev;
};

/* What is done aside. */
struct net_offload {
    bool stays_here;
    bool has_thread; /* the rest is good then */
    pthread_t thread;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t changed;
    bool must_end;
    struct net_task *first;
    struct net_task *last;
};

/* Those that wait for their turn. */
struct net_fair_queue {
    struct net_timers queue; /* by what each was served */
    size_t n;
    int64_t served_ns; /* what somebody who always waited would have been served */
    struct net_turn *running;
    bool runs_again; /* the one that runs wants another turn */
};

struct net_loop {
    /* What other threads write; apart, so that they do not slow down what the loop reads. */
    struct net_mailbox mailbox;
    atomic_bool must_stop;
    atomic_ptrdiff_t load_by_others;
    atomic_uint_least64_t n_wakes;
    char apart[64];

    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t busy;   /* runs while something waits for the next round: polling must not block */
    uv_timer_t alarm; /* runs until alarm_ns or earlier than that; it only ends the polling */
    int64_t alarm_ns;

    bool is_now_fresh; /* now_ns was read in this round */
    int64_t now_ns;
    struct net_timers timers;

    /* Rings; these are their heads. */
    struct net_later laters;
    struct net_fair_queue turns;
    struct net_busy_poll spin;
    struct net_open opens;
    struct net_open closing; /* close was called, the end has not come */
    struct net_work_request *works;
    struct net_offload aside;

    atomic_ptrdiff_t load; /* by the loop's own thread */
    uint8_t *scratch;      /* and behind it the read buffer */

    bool has_thread;
    pthread_t thread;
    bool may_spin; /* there is another processor for the peer */
    bool is_ending;
    bool is_shut; /* its handles are closed: it can no longer be woken */
};

/* The loop that this thread runs, or NULL; returns what it was before. */
struct net_loop *net_loop_enter(struct net_loop *loop);

/* Runs what was posted, and what is to be done later. */
void net_loop_run_posted(struct net_loop *loop);
void net_loop_run_later(struct net_loop *loop);
/* Gives those that wait their turns, as many as a round has. */
void net_loop_run_fair_queue(struct net_loop *loop);

/* All but the signals of a thread's own faults; the caller restores what was before. */
void net_block_signals(sigset_t *ret_before);

/* For tests that count allocations, which they do in one thread: tasks are done here, at once. */
void net_loop_keep_here(struct net_loop *loop);
/* Joins the thread aside; nothing waits for it any more. */
void net_loop_end_offload(struct net_loop *loop);

/* Cancels all work that has not begun. */
void net_loop_cancel_works(struct net_loop *loop);

/* Ends and frees loops that may post to each other: none is freed before all have ended. */
void net_loops_end(struct net_loop **loops, size_t n);

#endif
