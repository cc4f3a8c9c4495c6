/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_INTERNAL_H
#define PEG_NET_LOOP_INTERNAL_H

/* Shared by the files of net/loop only. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/loop/loop.h"

/* ---- busy_poll.c --------------------------------------------------------------------------- */

/*
 * Sleeping and waking costs a loop some 5 us, and its waker 2 more: as much as a quick answer
 * takes. So a loop that waits for exactly one answer, from a peer whose last answers were quick,
 * polls a few times before it sleeps. It stops when answers take longer.
 *
 *   if (net_busy_poll_goes_on(&busy_poll, now_ns)) poll without waiting; else poll
 *   net_busy_poll_note_event(&busy_poll, now_ns)        something came
 */
struct net_busy_poll {
    int n_awaited;    /* answers that are on their way */
    int score;        /* 0: the last answers were slow */
    int64_t since_ns; /* when there was nothing left to do; 0: there is */
};

/* May the loop poll again without sleeping? */
bool net_busy_poll_goes_on(struct net_busy_poll *busy_poll, int64_t now_ns);
void net_busy_poll_note_event(struct net_busy_poll *busy_poll, int64_t now_ns);

/* ---- scheduling.c -------------------------------------------------------------------------- */

/*
 * How this thread shares the processors. A loop works for some microseconds at a time, and somebody
 * waits for each of them: it requests short time slices, and Linux 6.12 or later lets it run at
 * once when it wakes. A computing thread requests long ones and does not preempt on waking
 * (SCHED_BATCH), or the loop that feeds it would lose its processor to it. Threads inherit this.
 * A program that chose another policy, such as real time, keeps it.
 */
void net_schedule_loop(void);
/* Uses only idle time if `nice` is above 0 (see nice(2)). */
void net_schedule_worker(int nice);

/* ---- the loop ------------------------------------------------------------------------------ */

/* One call of net_loop_work(). */
struct net_work_request {
    uv_work_t uv;
    struct net_work *work;
    struct net_work_request *next;
    struct net_work_request *prev;
};

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

struct net_fair_queue {
    struct net_timers jobs; /* by the time each was served */
    size_t n;
    int64_t served_ns; /* that a job which always waited would have been served */
    int64_t send_ns;   /* what a short send takes, about */
    unsigned n_sends;
    struct net_fair_job *running;
    bool runs_again; /* the running job is to be queued again */
};

struct net_loop {
    /* Written by other threads; apart, so that they do not slow down what the loop reads. */
    _Atomic(struct net_message *) mailbox; /* the last message; each knows the one before it */
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
    struct net_fair_queue fair_queue;
    struct net_busy_poll busy_poll;
    struct net_open opens;
    struct net_open closing; /* close was called, the end has not come */
    struct net_work_request *works;
    struct net_offload offload;

    atomic_ptrdiff_t load; /* by the loop's own thread */
    uint8_t *scratch;      /* and behind it the read buffer */

    bool has_thread;
    pthread_t thread;
    bool may_busy_poll; /* there is another processor for the peer */
    bool is_ending;
    bool is_shut; /* its handles are closed: it can no longer be woken */
};

/* loop.c: runs what is to be done later. */
void net_loop_run_later(struct net_loop *loop);
/* loop.c: all but the signals of a thread's own faults; the caller restores what was before. */
void net_block_signals(sigset_t *ret_before);
/* loop.c: ends and frees loops that may post to each other: none is freed before all have ended. */
void net_loops_end(struct net_loop **loops, size_t n);

/* fair_queue.c: runs queued jobs, as many as a round has time for. */
void net_loop_run_fair_queue(struct net_loop *loop);

/* offload.c: for tests that count allocations, which they do in one thread: tasks run here, at
 * once. */
void net_loop_keep_here(struct net_loop *loop);
/* offload.c: joins the offload thread; nothing waits for it any more. */
void net_loop_end_offload(struct net_loop *loop);
/* offload.c: cancels all work that has not begun. */
void net_loop_cancel_works(struct net_loop *loop);

#endif
