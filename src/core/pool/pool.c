/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/pool/state.h"

/* ---- submitting ------------------------------------------------------------------------- */

static peg_status check_room(const peg_pool *pool, peg_error *reterr)
{
    if (pool->n_abandoned >= pool->max_abandoned)
        return peg__fail(reterr, PEG_ELIMIT, "E_POOL_ABANDONED",
                         "%u handlers of the pool have not returned in time and max_abandoned is "
                         "%u: wait until they return, or make them watch their call's token",
                         pool->n_abandoned, pool->max_abandoned);
    /* Those for which there is a thread, or will be, do not wait. */
    if (pool->n_running + pool->n_queued >= pool->max_threads + pool->max_queued)
        return peg__fail(reterr, PEG_ELIMIT, "E_POOL_FULL",
                         "%u calls wait for a thread of the pool and max_queued is %u: send fewer "
                         "at once, or give the pool more threads",
                         pool->n_queued, pool->max_queued);
    if (peg__pool_thread.pool == pool && pool->n_waiting >= PEG_LIMIT_POOL_NESTED)
        return peg__fail(reterr, PEG_ELIMIT, "E_POOL_NESTED",
                         "%u handlers wait for calls of their own on the pool, the limit is %d: "
                         "look for an agent that calls itself",
                         pool->n_waiting, PEG_LIMIT_POOL_NESTED);
    return PEG_OK;
}

static peg_status fail_thread(size_t stack_bytes, int error, peg_error *reterr)
{
    char words[128];

    return peg__fail(reterr, PEG_EIO, "E_POOL_THREAD",
                     "the system refuses a thread with %zu bytes of stack (%s): look at the limits "
                     "of the process",
                     stack_bytes, strerror_r(error, words, sizeof(words)));
}

static peg_status submit(peg_pool *pool, struct peg__job *job, peg_error *reterr)
{
    const peg_status status = check_room(pool, reterr);
    int error;

    if (status)
        return status;
    job->pool = pool;
    job->waiter = NULL;
    job->state = PEG__JOB_QUEUED;
    peg__pool_push(pool, job);
    error = peg__pool_add_thread(pool);
    if (error && pool->n_threads == 0) {
        peg__pool_take(pool, job);
        return fail_thread(pool->stack_bytes, error, reterr);
    }
    return PEG_OK;
}

peg_status peg__pool_submit(peg_pool *pool, struct peg__job *job, peg_error *reterr)
{
    peg_status status;

    pthread_mutex_lock(&pool->lock);
    status = submit(pool, job, reterr);
    pthread_mutex_unlock(&pool->lock);
    if (status == PEG_OK)
        pthread_cond_signal(&pool->work);
    return status;
}

/* ---- the pool --------------------------------------------------------------------------- */

static peg_status refuse_option(const char *name, const char *range, peg_error *reterr)
{
    const peg_status status =
        peg__fail(reterr, PEG_EINVAL, "E_POOL_OPTIONS", "%s of a pool is %s, or 0 for the default",
                  name + 1, range);

    peg__error_where(reterr, peg__str(name));
    return status;
}

static peg_status check_options(const peg_pool_options *options, peg_error *reterr)
{
    if (options->n_threads > PEG_LIMIT_POOL_THREADS_MAX)
        return refuse_option("/n_threads", "at most 256", reterr);
    if (options->max_abandoned > PEG_LIMIT_POOL_THREADS_MAX)
        return refuse_option("/max_abandoned", "at most 256", reterr);
    if (options->max_queued > PEG_LIMIT_POOL_QUEUED_MAX)
        return refuse_option("/max_queued", "at most 1,000,000", reterr);
    if (options->stack_bytes && options->stack_bytes < PEG_LIMIT_POOL_STACK_MIN)
        return refuse_option("/stack_bytes", "at least 512 KiB", reterr);
    return PEG_OK;
}

static void init_pool(peg_pool *pool, const peg_pool_options *options)
{
    atomic_init(&pool->n_refs, 1);
    pool->max_threads = PEG__OR_DEFAULT(options->n_threads, PEG_LIMIT_POOL_THREADS);
    pool->max_abandoned = PEG__OR_DEFAULT(options->max_abandoned, PEG_LIMIT_POOL_ABANDONED);
    pool->max_queued = PEG__OR_DEFAULT(options->max_queued, PEG_LIMIT_POOL_QUEUED);
    pool->stack_bytes = options->stack_bytes ? options->stack_bytes : PEG_LIMIT_POOL_STACK_BYTES;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->gone, NULL);
}

peg_status peg_pool_new(const peg_pool_options *options, peg_pool **ret_pool, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_POOL_OPTIONS_INIT, reterr);
    static const peg_pool_options defaults = {PEG_POOL_OPTIONS_INIT};
    const peg_pool_options *chosen = options ? options : &defaults;
    const peg_status status = check_options(chosen, reterr);
    peg_pool *pool;
    int error;

    if (status)
        return status;
    pool = peg__alloc_zero(1, sizeof(*pool));
    if (!pool)
        return peg__fail_nomem(reterr);
    init_pool(pool, chosen);
    pthread_mutex_lock(&pool->lock);
    error = peg__pool_start_thread(pool);
    pthread_mutex_unlock(&pool->lock);
    if (error) {
        const size_t stack_bytes = pool->stack_bytes;

        peg__pool_free(pool);
        return fail_thread(stack_bytes, error, reterr);
    }
    *ret_pool = pool;
    return PEG_OK;
}

peg_pool *peg_pool_ref(peg_pool *pool)
{
    if (pool)
        atomic_fetch_add_explicit(&pool->n_refs, 1, memory_order_relaxed);
    return pool;
}

/* Leaves the pool to the threads that are still in it; the last one frees it. */
static void orphan(peg_pool *pool)
{
    pool->is_orphan = true;
    pthread_mutex_unlock(&pool->lock);
}

static void await_threads(peg_pool *pool)
{
    while (pool->n_threads + pool->n_waiting > 0)
        pthread_cond_wait(&pool->gone, &pool->lock);
    if (pool->has_ended)
        pthread_join(pool->ended, NULL); /* it needs the lock no more */
    pool->has_ended = false;
}

/* With the lock, which it gives up. */
static void close_pool(peg_pool *pool)
{
    unsigned n_left;

    if (peg__pool_thread.pool == pool) {
        orphan(pool);
        return;
    }
    await_threads(pool);
    n_left = pool->n_abandoned;
    if (n_left) {
        orphan(pool);
        peg__log(PEG_LOG_WARN, "E_POOL_ABANDONED",
                 "%u threads of a pool are left behind: their handlers have not returned", n_left);
        return;
    }
    pthread_mutex_unlock(&pool->lock);
    peg__pool_free(pool);
}

peg_pool *peg_pool_unref(peg_pool *pool)
{
    struct peg__job *dropped;

    if (!pool || atomic_fetch_sub_explicit(&pool->n_refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    pool->is_closed = true;
    dropped = peg__pool_drop_all(pool);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    peg__pool_release_all(dropped);

    pthread_mutex_lock(&pool->lock);
    close_pool(pool);
    return NULL;
}

peg_pool_state peg_pool_info(peg_pool *pool)
{
    peg_pool_state state;

    pthread_mutex_lock(&pool->lock);
    state = (peg_pool_state){
        .n_threads = pool->n_threads + pool->n_waiting,
        .n_running = pool->n_running + pool->n_waiting,
        .n_queued = pool->n_queued,
        .n_abandoned = pool->n_abandoned,
        .total_abandoned = pool->total_abandoned,
    };
    pthread_mutex_unlock(&pool->lock);
    return state;
}
