/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_POOL_STATE_H
#define PEG_CORE_POOL_STATE_H

/*
 * The inside of a pool: a queue of jobs and the threads that take them, under one lock.
 *
 *   pool.c           making and closing it, submitting
 *   pool_threads.c   the queue, the threads
 *   pool_await.c     waiting for a job, giving it up
 *
 * The life of a job:
 *
 *   QUEUED -> RUNNING <-> WAITING    its handler awaits a job of its own on this pool
 *      |         |            |
 *      |         +-> DONE     |      run has returned
 *      |         +------------+-> GIVEN_UP    whoever awaited it went on
 *      +-> DROPPED                   taken back, or nobody left to run it
 *
 * The life of a thread: counted in n_threads from its start to its end, but not while its job is
 * WAITING (n_waiting) or GIVEN_UP (n_abandoned). There may be more than max_threads when one
 * comes back from there; the next that has nothing to do then ends. A thread that ends joins
 * the one that ended before it, so that at most one is left to join.
 *
 * peg_pool_unref() closes the pool, and frees it if no thread is left. Else it becomes an orphan,
 * which the last thread frees.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "core/context/wait.h"
#include "core/pool/pool.h"

enum peg__job_state {
    PEG__JOB_QUEUED,
    PEG__JOB_RUNNING,
    PEG__JOB_WAITING,
    PEG__JOB_DONE,
    PEG__JOB_GIVEN_UP,
    PEG__JOB_DROPPED,
};

/* Shared; all but n_refs and the options is under lock. */
struct peg_pool {
    atomic_uint n_refs;
    unsigned max_threads;
    unsigned max_abandoned;
    unsigned max_queued;
    size_t stack_bytes;

    pthread_mutex_t lock;
    pthread_cond_t work; /* a job was queued, there are too many threads, or the pool closes */
    pthread_cond_t gone; /* there is a thread less */

    struct peg__job *first; /* the queue */
    struct peg__job *last;
    unsigned n_queued;

    unsigned
        n_threads; /* n_running of them have a job, the others sleep or are about to take one */
    unsigned n_running;
    unsigned n_waiting;
    unsigned n_abandoned;
    uint64_t total_abandoned;

    bool has_ended;
    pthread_t ended; /* if has_ended: not joined yet */
    bool is_closed;
    bool is_orphan;
};

/*
 * Whoever awaits a job sleeps on a place of its own, on its stack, so that an ending job wakes one
 * thread and not all. Others touch it under the pool's lock, as long as the job points to it.
 * Order of locks: the pool's, then the waiter's.
 */
struct peg__waiter {
    struct peg__wait wait;
    bool is_over; /* under wait.lock */
};

/* What this thread is, if it is one of a pool's. */
struct peg__pool_thread {
    peg_pool *pool;
    struct peg__job *job; /* NULL between jobs */
};

extern _Thread_local struct peg__pool_thread peg__pool_thread;

/* ---- with the lock held ------------------------------------------------------------ */

void peg__pool_push(peg_pool *pool, struct peg__job *job);
void peg__pool_take(peg_pool *pool, struct peg__job *job);
/* Empties the queue and wakes who awaits its jobs; the list is the caller's to release. */
struct peg__job *peg__pool_drop_all(peg_pool *pool);

/* 0, or the error of the system. */
int peg__pool_start_thread(peg_pool *pool);
/* Starts a thread if a job would have to wait for one and there may be one more. */
int peg__pool_add_thread(peg_pool *pool);

/* ---- without it ---------------------------------------------------------------------- */

void peg__pool_release_all(struct peg__job *list);
void peg__pool_free(peg_pool *pool);

#endif
