/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_POOL_H
#define PEG_CORE_POOL_H

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
    struct peg__job *next;
    peg_pool *pool;
    int state;
};

/* PEG_ELIMIT (E_POOL_ABANDONED, E_POOL_FULL): not taken, release is not called. */
peg_status peg__pool_submit(peg_pool *pool, struct peg__job *job, peg_error *reterr);

enum peg__job_end {
    PEG__JOB_ENDED,     /* run has returned */
    PEG__JOB_NOT_BEGUN, /* taken back from the queue: run is not called */
    PEG__JOB_ABANDONED, /* still running; its thread is replaced and counted */
};

/* Waits for a submitted job. When ctx says stop: a deadline or budget gives up at once, a
 * cancellation after a grace of PEG_LIMIT_CANCEL_GRACE_MS, so that handlers that watch their token
 * are not counted as lost. ctx may be NULL. The caller holds its own share of the job. */
enum peg__job_end peg__pool_await(struct peg__job *job, peg_ctx *ctx);

#endif
