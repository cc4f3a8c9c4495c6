/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The inside of a pool: a queue of jobs and the threads that take them, under one lock.
 *
 * The life of a job:
 *
 *   QUEUED -> RUNNING <-> WAITING    its handler awaits a job of its own on this pool
 *      |         |            |
 *      |         +-> DONE     |      run has returned
 *      |         +------------+-> GIVEN_UP    its waiter went on
 *      +-> DROPPED                   taken back, or no thread left to run it
 *
 * The life of a thread: counted in n_threads from its start to its end, but not while its job is
 * WAITING (n_waiting) or GIVEN_UP (n_abandoned). There may be more than max_threads when one
 * comes back from there; the next that has nothing to do then ends. A thread that ends joins
 * the one that ended before it, so that at most one is left to join.
 *
 * peg_pool_unref() closes the pool, and frees it if no thread is left. Else it becomes an orphan,
 * which the last thread frees.
 */

#include "core/pool/pool.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/context/context.h"

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
 * A thread that awaits a job sleeps on a place of its own, on its stack, so that an ending job
 * wakes one thread and not all. Others touch it under the pool's lock, as long as the job points to
 * it. Order of locks: the pool's, then the waiter's.
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

static _Thread_local struct peg__pool_thread peg__pool_thread;

/* ---- the queue: with the lock held ------------------------------------------------ */

static void pool_push(peg_pool *pool, struct peg__job *job)
{
    job->next = NULL;
    job->prev = pool->last;
    if (pool->last)
        pool->last->next = job;
    else
        pool->first = job;
    pool->last = job;
    pool->n_queued++;
}

static void pool_take(peg_pool *pool, struct peg__job *job)
{
    if (job->prev)
        job->prev->next = job->next;
    else
        pool->first = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        pool->last = job->prev;
    pool->n_queued--;
}

static void set_over(struct peg__job *job, enum peg__job_state state)
{
    struct peg__waiter *waiter = job->waiter;

    job->state = (int)state;
    if (!waiter)
        return;
    pthread_mutex_lock(&waiter->wait.lock);
    waiter->is_over = true;
    peg__wait_wake(&waiter->wait);
    pthread_mutex_unlock(&waiter->wait.lock);
}

/* Empties the queue and wakes who awaits its jobs; the list is the caller's to release. */
static struct peg__job *pool_drop_all(peg_pool *pool)
{
    struct peg__job *list = pool->first;

    for (struct peg__job *job = list; job; job = job->next)
        set_over(job, PEG__JOB_DROPPED);
    pool->first = NULL;
    pool->last = NULL;
    pool->n_queued = 0;
    return list;
}

static void pool_release_all(struct peg__job *list)
{
    while (list) {
        struct peg__job *next = list->next;

        list->release(list);
        list = next;
    }
}

/* ---- threads: with the lock held ----------------------------------------------------- */

static void pool_free(peg_pool *pool)
{
    pthread_cond_destroy(&pool->gone);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    peg__free(pool);
}

/* The next job for this thread, or NULL if it has to end. */
static struct peg__job *next_job(peg_pool *pool)
{
    struct peg__job *job;

    while (!pool->first && !pool->is_closed && pool->n_threads <= pool->max_threads)
        pthread_cond_wait(&pool->work, &pool->lock);
    if (pool->is_closed || pool->n_threads > pool->max_threads)
        return NULL;
    job = pool->first;
    pool_take(pool, job);
    return job;
}

static void run_job(peg_pool *pool, struct peg__job *job)
{
    bool was_abandoned;

    job->state = PEG__JOB_RUNNING;
    pool->n_running++;
    pthread_mutex_unlock(&pool->lock);
    peg__pool_thread.job = job;
    job->run(job);
    peg__pool_thread.job = NULL;
    pthread_mutex_lock(&pool->lock);

    was_abandoned = job->state == PEG__JOB_GIVEN_UP;
    if (!was_abandoned) {
        pool->n_running--;
        set_over(job, PEG__JOB_DONE);
    }
    pthread_mutex_unlock(&pool->lock);
    job->release(job);
    pthread_mutex_lock(&pool->lock);
    if (was_abandoned) { /* counted until here, so that an orphan outlives it */
        pool->n_abandoned--;
        pool->n_threads++;
    }
}

/* Gives up the lock for good. */
static void end_thread(peg_pool *pool)
{
    const bool has_ended = pool->has_ended;
    const pthread_t ended = pool->ended;
    bool is_last;

    pool->n_threads--;
    is_last = pool->is_orphan && pool->n_threads + pool->n_waiting + pool->n_abandoned == 0;
    if (!is_last) {
        pool->has_ended = true;
        pool->ended = pthread_self();
        pthread_cond_broadcast(&pool->gone);
    }
    if (pool->first) /* it may have been this thread that was woken for it */
        pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);

    if (has_ended)
        pthread_join(ended, NULL);
    if (is_last) {
        pthread_detach(pthread_self());
        pool_free(pool);
    }
}

static void *work(void *user)
{
    peg_pool *pool = user;
    struct peg__job *job;

    pthread_setname_np(pthread_self(), "pegboard-pool");
    peg__pool_thread.pool = pool;
    pthread_mutex_lock(&pool->lock);
    while ((job = next_job(pool)))
        run_job(pool, job);
    end_thread(pool);
    return NULL;
}

/* All but the signals of a thread's own faults: blocked, they would kill the process without the
 * host's crash handler. */
static void block_signals(sigset_t *ret_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, ret_before);
}

/* 0, or the error of the system. */
static int pool_start_thread(peg_pool *pool)
{
    pthread_attr_t attr;
    sigset_t before;
    pthread_t thread;
    int error = pthread_attr_init(&attr);

    if (error)
        return error;
    error = pthread_attr_setstacksize(&attr, pool->stack_bytes);
    if (!error) {
        block_signals(&before);
        error = pthread_create(&thread, &attr, work, pool);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attr);
    if (!error)
        pool->n_threads++;
    return error;
}

/* Starts a thread if a job would have to wait for one and there may be one more. */
static int pool_add_thread(peg_pool *pool)
{
    if (pool->n_queued <= pool->n_threads - pool->n_running ||
        pool->n_threads >= pool->max_threads ||
        pool->n_threads + pool->n_abandoned >= pool->max_threads + pool->max_abandoned)
        return 0;
    return pool_start_thread(pool);
}

/* ---- waiting for a job, giving it up ----------------------------------------------------- */

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

/* After a thread left n_threads. Jobs that no thread will run are dropped: the list is the
 * caller's to release. */
static struct peg__job *replace_thread(peg_pool *pool)
{
    /* If it is refused, those that are left do the work, or the next submit tries again. */
    pool_add_thread(pool);
    return pool->n_threads == 0 ? pool_drop_all(pool) : NULL;
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
static enum peg__job_end settle_job(peg_pool *pool, struct peg__job *job,
                                    struct peg__job **ret_drop)
{
    job->waiter = NULL;
    switch ((enum peg__job_state)job->state) {
    case PEG__JOB_DONE:
        return PEG__JOB_ENDED;
    case PEG__JOB_QUEUED:
        pool_take(pool, job);
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
        pool_release_all(drop);
        drop = NULL;

        sleep_on(&waiter, ctx);

        pthread_mutex_lock(&pool->lock);
        end_waiting(pool);
    }
    end = settle_job(pool, job, &drop);
    pthread_mutex_unlock(&pool->lock);
    pool_release_all(drop);
    peg__wait_destroy(&waiter.wait);
    return end;
}

/* ---- making and closing it, submitting --------------------------------------------------- */

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
        return peg__fail(reterr, PEG_ELIMIT, "E_POOL_FULL",
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
    pool_push(pool, job);
    error = pool_add_thread(pool);
    if (error && pool->n_threads == 0) {
        pool_take(pool, job);
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
        peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                  "%s of a pool is %s, or 0 for the default", name + 1, range);

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
    error = pool_start_thread(pool);
    pthread_mutex_unlock(&pool->lock);
    if (error) {
        const size_t stack_bytes = pool->stack_bytes;

        pool_free(pool);
        return fail_thread(stack_bytes, error, reterr);
    }
    *ret_pool = pool;
    return PEG_OK;
}

PEG__DEFINE_REF(peg_pool)

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
    pool_free(pool);
}

peg_pool *peg_pool_unref(peg_pool *pool)
{
    struct peg__job *dropped;

    if (!pool || !peg__refs_drop(&pool->n_refs))
        return NULL;
    pthread_mutex_lock(&pool->lock);
    pool->is_closed = true;
    dropped = pool_drop_all(pool);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    pool_release_all(dropped);

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
