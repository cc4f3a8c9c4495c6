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

#include "net/loop/timers.h"

struct net_loop;
struct uv_loop_s;

/* Something to be done on the loop's thread. It lies in the sender's memory until fn is called,
 * which may free it or post it again. */
struct net_message {
    void (*fn)(struct net_message *message);
    struct net_message *next; /* the mailbox's */
};

/* Something to be done once at the end of this round of the loop, after all that can be read
 * was read: writes of a connection are gathered that way. */
struct net_later {
    void (*fn)(struct net_later *later);
    bool is_waiting; /* the rest is the loop's */
    struct net_later *next;
    struct net_later *prev;
};

/* Something that may take long, or that many want at once: it waits for its turn
 * (net/stream/queue.c). Whoever lets it wait takes it back with net_loop_no_turn() before its
 * memory goes. */
struct net_turn {
    void (*fn)(struct net_turn *turn); /* may ask for the next turn, or free it */
    int64_t served_ns;                 /* the rest is the loop's; all zeros is one of no cost yet */
    struct net_timer place;
};

/* Work that would block the loop: `work` runs on a thread of the pool, then `done` on the loop.
 * It lies in the owner's memory, who keeps it until `done` is called, also when the loop stops
 * before: then `work` may not have run, and `was_canceled` is true. */
struct net_work {
    void (*work)(struct net_work *work);
    void (*done)(struct net_work *work, bool was_canceled);
    struct net_loop *loop; /* the rest is the loop's */
    void *request;
};

/* Arithmetic that would hold up the loop (loop_aside.c): `work` runs on another thread of the
 * loop, one after the other and behind all others, then `done` on the loop. It lies in the owner's
 * memory until then. */
struct net_task {
    void (*work)(struct net_task *task);
    struct net_message done;
    bool is_waiting; /* the rest is the loop's */
    struct net_task *next;
    struct net_task *prev;
};

/* PEG_EIO (E_LOOP) if the system has no more of what a loop needs. */
peg_status net_loop_new(struct net_loop **ret_loop, peg_error *reterr);
/* Any thread but the loop's own, and not while net_loop_run() runs it elsewhere. Stops it, waits
 * for its thread, runs what was posted, closes everything that is still open on it (each owner
 * hears of it as of any other end), cancels work that has not begun and waits for the rest. All
 * of that runs in the caller's thread, which is the loop's for as long: what it posts to the loop,
 * asks for later or works on is done too. Timers that are armed at the end are forgotten. Other
 * threads must not post any more, but for the functions of work that runs. */
struct net_loop *net_loop_free(struct net_loop *loop);

/* Runs it in a thread of its own, in which all signals are blocked. */
peg_status net_loop_start(struct net_loop *loop, peg_error *reterr);
/* Runs it in this thread until net_loop_stop(). */
void net_loop_run(struct net_loop *loop);
/* Any thread; async-signal-safe. What was posted before is run first. Before net_loop_run(): it
 * returns after one round. */
void net_loop_stop(struct net_loop *loop);

/* Any thread. Messages of one sender arrive in order. Never fails. Wakes the loop once for as
 * many messages as are there when it looks. */
void net_loop_post(struct net_loop *loop, struct net_message *message);
/* Any thread. How often a message from another thread has woken it. */
uint64_t net_loop_n_wakes(const struct net_loop *loop);
/* Any thread. Is this the thread that runs the loop? False for a loop that does not run. */
bool net_loop_is_here(const struct net_loop *loop);

/* Monotonic (that of uv_hrtime()). Read when it is first asked for in a round: cheap, and the same
 * for all of a round, which begins when the loop has waited. */
int64_t net_loop_now_ns(struct net_loop *loop);
/* Arms with the moment, which may be in the past: fn is then called in the next round. It is
 * called up to 1 ms late, never early by net_loop_now_ns(). */
void net_loop_arm(struct net_loop *loop, struct net_timer *timer, int64_t due_ns);
void net_loop_disarm(struct net_loop *loop, struct net_timer *timer);

/* Asking again before it was done is the same as asking once. */
void net_loop_later(struct net_loop *loop, struct net_later *later);
void net_loop_not_later(struct net_loop *loop, struct net_later *later);

/* What turns of one round take together, but for one that takes longer alone. */
enum { NET_TURN_NS = 12000 };
/* Asking again before it came is the same as asking once. */
void net_loop_turn(struct net_loop *loop, struct net_turn *turn);
void net_loop_no_turn(struct net_loop *loop, struct net_turn *turn);
/* Is it its turn now? */
bool net_loop_has_turn(const struct net_loop *loop, const struct net_turn *turn);
static inline bool net_turn_is_waiting(const struct net_turn *turn)
{
    return turn->place.is_armed;
}

/* So many more answers of peers are on their way to this loop, or fewer: for a single one, if the
 * last ones were quick, the loop does not sleep at once (spin.h). On its thread. */
void net_loop_await(struct net_loop *loop, int n);
/* Something came: for net/stream/stream.c. */
void net_loop_note_event(struct net_loop *loop);

/* Never fails. The owner of what is still aside when the loop ends is among the open things
 * below, and leaves them when it is done or taken back. */
void net_loop_offload(struct net_loop *loop, struct net_task *task);
/* Takes it back. False: it has begun, and `done` comes, or has come. */
bool net_loop_cancel_offload(struct net_loop *loop, struct net_task *task);

/* PEG_ENOMEM: `done` will not be called. */
peg_status net_loop_work(struct net_loop *loop, struct net_work *work) PEG_MUST_USE;

/* Any thread: how much hangs on this loop, for whoever hands out connections. Adding is cheapest
 * on the loop's own thread. */
size_t net_loop_load(const struct net_loop *loop);
void net_loop_add_load(struct net_loop *loop, ptrdiff_t n);

/* A buffer of NET_SCRATCH_BYTES for whoever is running on the loop, until it returns. */
enum { NET_SCRATCH_BYTES = 64 << 10 };
uint8_t *net_loop_scratch(struct net_loop *loop);
/* Another one of NET_READ_BYTES, for net/stream/stream.c: what it read lies there while the owner
 * of the stream may be writing in the scratch buffer. */
enum { NET_READ_BYTES = 64 << 10 };
uint8_t *net_loop_read_buffer(struct net_loop *loop);

/* For what libuv offers and this does not: other files of net/, and bus/. */
struct uv_loop_s *net_loop_uv(struct net_loop *loop);

/* Things that are open on the loop, so that net_loop_free() can close them: put one in at the
 * start and take it out at the end. `close` is called once and must lead to that end, at once or
 * within a few rounds, and without an answer from another loop, which may have ended. */
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
/* As net_loop_free() for each; none is gone before all have ended, so that they may post to each
 * other until then. */
struct net_loops *net_loops_free(struct net_loops *loops);
unsigned net_loops_len(const struct net_loops *loops);
struct net_loop *net_loops_at(const struct net_loops *loops, unsigned i);
/* The one on which the least hangs; equals take turns. */
struct net_loop *net_loops_least(struct net_loops *loops);

#endif
