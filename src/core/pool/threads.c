/* SPDX-License-Identifier: Apache-2.0 */

#include "core/pool/state.h"

#include <signal.h>

#include "base/mem.h"

_Thread_local struct peg__pool_thread peg__pool_thread;

/* ---- the queue: with the lock held ------------------------------------------------ */

void peg__pool_push(peg_pool *pool, struct peg__job *job)
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

void peg__pool_take(peg_pool *pool, struct peg__job *job)
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

struct peg__job *peg__pool_drop_all(peg_pool *pool)
{
    struct peg__job *list = pool->first;

    for (struct peg__job *job = list; job; job = job->next)
        set_over(job, PEG__JOB_DROPPED);
    pool->first = NULL;
    pool->last = NULL;
    pool->n_queued = 0;
    return list;
}

void peg__pool_release_all(struct peg__job *list)
{
    while (list) {
        struct peg__job *next = list->next;

        list->release(list);
        list = next;
    }
}

/* ---- threads: with the lock held ----------------------------------------------------- */

void peg__pool_free(peg_pool *pool)
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
    peg__pool_take(pool, job);
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
        peg__pool_free(pool);
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

int peg__pool_start_thread(peg_pool *pool)
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

int peg__pool_add_thread(peg_pool *pool)
{
    if (pool->n_queued <= pool->n_threads - pool->n_running ||
        pool->n_threads >= pool->max_threads ||
        pool->n_threads + pool->n_abandoned >= pool->max_threads + pool->max_abandoned)
        return 0;
    return peg__pool_start_thread(pool);
}
