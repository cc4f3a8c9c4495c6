/* SPDX-License-Identifier: Apache-2.0 */

#include "core/pool/state.h"

#include "base/clock.h"
#include "base/limits.h"
#include "core/context/ctx.h"

static bool is_over(void *user)
{
    return ((const struct peg__waiter *)user)->is_over;
}

/* A deadline ends the grace too. */
static void give_grace(struct peg__waiter *waiter, const peg_ctx *ctx)
{
    const peg_clock *clock = peg_ctx_clock(ctx);
    const int64_t grace_ns = peg__clock_in_ms(clock, PEG_LIMIT_CANCEL_GRACE_MS);
    const int64_t stop_ns = peg__ctx_stop_ns(ctx);
    const int64_t until_ns = stop_ns < grace_ns ? stop_ns : grace_ns;

    while (!waiter->is_over && peg_clock_mono_ns(clock) < until_ns)
        peg__clock_wait(clock, &waiter->wait.changed, &waiter->wait.lock, until_ns);
}

/* Until the job is over or the context has said stop, and a grace after a cancellation. */
static void sleep_on(struct peg__waiter *waiter, peg_ctx *ctx)
{
    enum peg__woke woke;

    pthread_mutex_lock(&waiter->wait.lock);
    woke = peg__wait_for(&waiter->wait, ctx, INT64_MAX, is_over, waiter);
    if (woke == PEG__WOKE_STOP && peg_ctx_check(ctx, NULL) == PEG_ECANCELED)
        give_grace(waiter, ctx);
    pthread_mutex_unlock(&waiter->wait.lock);
}

/* After a thread left n_threads. Jobs that nobody will ever run are dropped: the list is the
 * caller's to release. */
static struct peg__job *replace_thread(peg_pool *pool)
{
    /* If it is refused, those that are left do the work, or the next submit tries again. */
    peg__pool_add_thread(pool);
    return pool->n_threads == 0 ? peg__pool_drop_all(pool) : NULL;
}

/* The job that this thread runs, if it is one of the pool's. */
static struct peg__job *own_job(const peg_pool *pool)
{
    return peg__pool_thread.pool == pool ? peg__pool_thread.job : NULL;
}

/* This thread's own handler gives up its place while it waits for another job of the pool. */
static struct peg__job *begin_waiting(peg_pool *pool)
{
    struct peg__job *own = own_job(pool);

    if (!own || own->state != PEG__JOB_RUNNING)
        return NULL;
    own->state = PEG__JOB_WAITING;
    pool->n_waiting++;
    pool->n_running--;
    pool->n_threads--;
    return replace_thread(pool);
}

static void end_waiting(peg_pool *pool)
{
    struct peg__job *own = own_job(pool);

    if (!own || own->state != PEG__JOB_WAITING)
        return;
    own->state = PEG__JOB_RUNNING;
    pool->n_waiting--;
    pool->n_running++;
    pool->n_threads++;
    if (pool->n_threads > pool->max_threads)
        pthread_cond_signal(&pool->work);
}

static struct peg__job *abandon(peg_pool *pool, struct peg__job *job)
{
    if (job->state == PEG__JOB_WAITING) {
        pool->n_waiting--;
    } else {
        pool->n_running--;
        pool->n_threads--;
    }
    job->state = PEG__JOB_GIVEN_UP;
    pool->n_abandoned++;
    pool->total_abandoned++;
    pthread_cond_broadcast(&pool->gone);
    return replace_thread(pool);
}

/* The caller will wait no longer: whatever state the job is in becomes an end. */
static enum peg__job_end settle(peg_pool *pool, struct peg__job *job, struct peg__job **ret_drop)
{
    job->waiter = NULL;
    switch ((enum peg__job_state)job->state) {
    case PEG__JOB_DONE:
        return PEG__JOB_ENDED;
    case PEG__JOB_QUEUED:
        peg__pool_take(pool, job);
        job->next = NULL;
        job->state = PEG__JOB_DROPPED;
        *ret_drop = job;
        return PEG__JOB_NOT_BEGUN;
    case PEG__JOB_DROPPED:
        return PEG__JOB_NOT_BEGUN;
    case PEG__JOB_RUNNING:
    case PEG__JOB_WAITING:
    case PEG__JOB_GIVEN_UP:
        break;
    }
    *ret_drop = abandon(pool, job);
    return PEG__JOB_ABANDONED;
}

enum peg__job_end peg__pool_await(struct peg__job *job, peg_ctx *ctx)
{
    struct peg__waiter waiter = {.is_over = false};
    peg_pool *pool = job->pool;
    struct peg__job *drop = NULL;
    enum peg__job_end end;

    peg__wait_init(&waiter.wait);
    pthread_mutex_lock(&pool->lock);
    if (job->state == PEG__JOB_QUEUED || job->state == PEG__JOB_RUNNING ||
        job->state == PEG__JOB_WAITING) {
        job->waiter = &waiter;
        drop = begin_waiting(pool);
        pthread_mutex_unlock(&pool->lock);
        peg__pool_release_all(drop);
        drop = NULL;

        sleep_on(&waiter, ctx);

        pthread_mutex_lock(&pool->lock);
        end_waiting(pool);
    }
    end = settle(pool, job, &drop);
    pthread_mutex_unlock(&pool->lock);
    peg__pool_release_all(drop);
    peg__wait_destroy(&waiter.wait);
    return end;
}
