/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_POOL_POOL_H
#define PEG_CORE_POOL_POOL_H

#include "pegboard/ctx.h"
#include "pegboard/pool.h"

/*
 * Work for a pool. The memory is counted by its owner; the pool holds one share from submit until
 * it calls release, exactly once, after run or instead of it.
 */
struct peg__job {
    void (*run)(struct peg__job *job);     /* on a thread of the pool */
    void (*release)(struct peg__job *job); /* on any thread */
    /* The pool's own. */
    struct peg__job *next; /* in the queue */
    struct peg__job *prev;
    peg_pool *pool;
    struct peg__waiter *waiter; /* that awaits it, or NULL */
    int state;
};

/* PEG_ELIMIT (E_POOL_ABANDONED, E_POOL_FULL), PEG_EIO
 * (E_POOL_THREAD: there is no thread, and the system refuses one): not taken, release is not
 * called. The caller holds a reference to the pool until the job is awaited. */
peg_status peg__pool_submit(peg_pool *pool, struct peg__job *job, peg_error *reterr);

enum peg__job_end {
    PEG__JOB_ENDED, /* run has returned */
    /* Taken back from the queue: run is not called. If ctx says go on, there is no thread left for
     * it: all are abandoned, or the pool is gone. */
    PEG__JOB_NOT_BEGUN,
    PEG__JOB_ABANDONED, /* still running; its thread is replaced and counted */
};

/* Waits for a submitted job. When ctx says stop: a deadline or budget gives up at once, a
 * cancellation after a grace of PEG_LIMIT_CANCEL_GRACE_MS, so that handlers that watch their token
 * are not counted as lost. ctx may be NULL. The caller holds its own share of the job. Once for a
 * job, from one thread. */
enum peg__job_end peg__pool_await(struct peg__job *job, peg_ctx *ctx);

#endif
