/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_LOOP_H
#define PEG_NET_LOOP_LOOP_H

/*
 * A thread with an event loop. A connection and everything that hangs on it belong to one loop
 * for life; other threads reach it by messages only.
 *
 *   status = net_loop_new(&loop, reterr);
 *   status = net_loop_start(loop, reterr);       its own thread, or net_loop_run() in this one
 *   net_loop_post(loop, &request->message);      any thread
 *   loop = net_loop_free(loop);                  stops, joins, closes what is left
 *
 * Threads: functions marked "any thread" may be called from anywhere; all others only on the
 * loop's thread, or before it runs.
 */

#include "pegboard/common.h"

/* ---- timers -------------------------------------------------------------------------------- */

/* Timers in the order in which they are due; the owner reads the clock. A timer lies in its owner's
 * memory, so arming cannot fail; arming is O(1), and so is disarming one that is not next, as
 * nearly every deadline is. One thread at a time. */
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

/* ---- the loop ------------------------------------------------------------------------------ */

struct net_loop;
struct uv_loop_s;

/* Runs on the loop's thread. It lies in the sender's memory until fn is called, which may free it
 * or post it again. */
struct net_message {
    void (*fn)(struct net_message *message);
    struct net_message *next; /* the mailbox's */
};

/* Runs once at the end of this round of the loop, after all reading: writes are gathered that
 * way. */
struct net_later {
    void (*fn)(struct net_later *later);
    bool is_waiting; /* the rest is the loop's */
    struct net_later *next;
    struct net_later *prev;
};

/* A job that may take long, or of which many come at once: it waits in the fair queue. The owner
 * takes it back with net_loop_dequeue() before its memory goes. */
struct net_fair_job {
    void (*fn)(struct net_fair_job *job); /* may queue it again, or free it */
    int64_t served_ns; /* the rest is the loop's; all zeros is one of no cost yet */
    struct net_timer place;
};

/* Work that would block the loop: `work` runs on a thread of the pool, then `done` on the loop. It
 * lies in the owner's memory until `done`. If the loop stops before, `work` may not have run, and
 * `was_canceled` is true. */
struct net_work {
    void (*work)(struct net_work *work);
    void (*done)(struct net_work *work, bool was_canceled);
    struct net_loop *loop; /* the rest is the loop's */
    void *request;
};

/* Arithmetic that would hold up the loop: `work` runs on the loop's offload thread, one task after
 * the other, then `done` on the loop. It lies in the owner's memory until then. */
struct net_task {
    void (*work)(struct net_task *task);
    struct net_message done;
    bool is_waiting; /* the rest is the loop's */
    struct net_task *next;
    struct net_task *prev;
};

/* PEG_EIO (E_LOOP) if the system has no more of what a loop needs. */
peg_status net_loop_new(struct net_loop **ret_loop, peg_error *reterr);
/* Any thread but the loop's own, and not during net_loop_run(). Stops it, joins its thread, runs
 * what was posted, closes what is open on it, cancels work that has not begun and waits for the
 * rest, all in the caller's thread. Armed timers are forgotten. Other threads must not post any
 * more, but for work that runs. */
struct net_loop *net_loop_free(struct net_loop *loop);

/* Runs it in a thread of its own, in which all signals are blocked. */
peg_status net_loop_start(struct net_loop *loop, peg_error *reterr);
/* Runs it in this thread until net_loop_stop(). */
void net_loop_run(struct net_loop *loop);
/* Any thread; async-signal-safe. What was posted before is run first. Before net_loop_run(): it
 * returns after one round. */
void net_loop_stop(struct net_loop *loop);

/* Any thread. Messages of one sender arrive in order. Never fails. Wakes the loop once for as
 * many messages as are there when it reads them. */
void net_loop_post(struct net_loop *loop, struct net_message *message);
/* Any thread. How often a message from another thread has woken it. */
uint64_t net_loop_n_wakes(const struct net_loop *loop);
/* Any thread. Is this the thread that runs the loop? False for a loop that does not run. */
bool net_loop_is_here(const struct net_loop *loop);

/* Monotonic (uv_hrtime()). Read once per round, which begins when the loop has waited. */
int64_t net_loop_now_ns(struct net_loop *loop);
/* A moment in the past: fn is called in the next round. Up to 1 ms late, never early. */
void net_loop_arm(struct net_loop *loop, struct net_timer *timer, int64_t due_ns);
void net_loop_disarm(struct net_loop *loop, struct net_timer *timer);

/* Asking again before it was done is the same as asking once. */
void net_loop_later(struct net_loop *loop, struct net_later *later);
void net_loop_not_later(struct net_loop *loop, struct net_later *later);

/* The time of a job; jobs begin until half of it is over in a round. It is between these two: four
 * times what a short send takes on this machine, or each job would be mostly system calls. */
enum { NET_FAIR_QUEUE_LEAST_NS = 12000, NET_FAIR_QUEUE_MOST_NS = 64000 };
int64_t net_loop_fair_queue_ns(const struct net_loop *loop);
/* Before a short send: the time, if this one is to be measured, else 0. */
int64_t net_loop_begin_send(struct net_loop *loop);
void net_loop_note_send(struct net_loop *loop, int64_t took_ns);
/* A job that is queued already stays where it is. */
void net_loop_enqueue(struct net_loop *loop, struct net_fair_job *job);
void net_loop_dequeue(struct net_loop *loop, struct net_fair_job *job);
/* Is this the job that runs now? */
bool net_loop_is_running(const struct net_loop *loop, const struct net_fair_job *job);
static inline bool net_fair_job_is_queued(const struct net_fair_job *job)
{
    return job->place.is_armed;
}

/* So many more answers of peers are on their way to this loop, or fewer: for a single one, if the
 * last ones were quick, the loop polls for a while before it sleeps. On its thread. */
void net_loop_await(struct net_loop *loop, int n);
/* Something came: for net/stream/stream.c. */
void net_loop_note_event(struct net_loop *loop);

/* Never fails. The owner of a pending task is among the open things below until it is done or taken
 * back. */
void net_loop_offload(struct net_loop *loop, struct net_task *task);
/* Takes it back. False: it has begun, and `done` comes, or has come. */
bool net_loop_cancel_offload(struct net_loop *loop, struct net_task *task);

/* PEG_ENOMEM: `done` will not be called. */
peg_status net_loop_work(struct net_loop *loop, struct net_work *work) PEG_MUST_USE;

/* Any thread: the load, for handing out connections. Adding is cheapest on the loop's own
 * thread. */
size_t net_loop_load(const struct net_loop *loop);
void net_loop_add_load(struct net_loop *loop, ptrdiff_t n);

/* A buffer of NET_SCRATCH_BYTES for the function that runs on the loop, until it returns. */
enum { NET_SCRATCH_BYTES = 64 << 10 };
uint8_t *net_loop_scratch(struct net_loop *loop);
/* Another one of NET_READ_BYTES, for net/stream/stream.c. */
enum { NET_READ_BYTES = 64 << 10 };
uint8_t *net_loop_read_buffer(struct net_loop *loop);

/* For what libuv offers and this does not: other files of net/, and bus/. */
struct uv_loop_s *net_loop_uv(struct net_loop *loop);

/* What is open on the loop, for net_loop_free() to close. `close` is called once and must lead to
 * net_loop_closed() within a few rounds, without an answer from another loop. */
struct net_open {
    void (*close)(struct net_open *open);
    struct net_open *next; /* the loop's */
    struct net_open *prev;
};
void net_loop_opened(struct net_loop *loop, struct net_open *open);
/* One that is not in (all zeros, or taken out before) is left alone. */
void net_loop_closed(struct net_loop *loop, struct net_open *open);
/* net_loop_free() has begun: what ends now should not be begun again. */
bool net_loop_is_ending(const struct net_loop *loop);

/* ---- several loops ------------------------------------------------------------------------ */

/* A fixed set of started loops. Any thread. */
struct net_loops;

/* 1..PEG_LIMIT_NET_LOOPS of them; 0 means 1. */
peg_status net_loops_new(unsigned n, struct net_loops **ret_loops, peg_error *reterr);
/* As net_loop_free() for each; they may post to each other until all have ended. */
struct net_loops *net_loops_free(struct net_loops *loops);
unsigned net_loops_len(const struct net_loops *loops);
struct net_loop *net_loops_at(const struct net_loops *loops, unsigned i);
/* The one with the least load; equals in rotation. */
struct net_loop *net_loops_least(struct net_loops *loops);

#endif
