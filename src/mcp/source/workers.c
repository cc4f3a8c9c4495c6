/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that run handlers, and the mailbox for what these report. */

#include <signal.h>

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "mcp/source/internal.h"

struct mcp__workers *mcp__workers_new(const struct mcp_host_config *config,
                                      void (*run)(struct mcp__job *job))
{
    struct mcp__workers *workers = peg__alloc_zero(1, sizeof(*workers));

    if (!workers)
        return NULL;
    atomic_init(&workers->n_refs, 1);
    workers->concurrency = config->concurrency;
    workers->run = run;
    workers->wake = config->wake;
    workers->user = config->user;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, NULL);
    return workers;
}

struct mcp__workers *mcp__workers_unref(struct mcp__workers *workers)
{
    if (workers && peg__refs_drop(&workers->n_refs)) {
        pthread_cond_destroy(&workers->changed);
        pthread_mutex_destroy(&workers->lock);
        peg__free(workers);
    }
    return NULL;
}

/* ---- threads ---- */

/* With the lock. There are as many as may run, and one for each that waits for a person. */
static bool is_superfluous(const struct mcp__workers *workers)
{
    return workers->n_threads - workers->n_blocked > workers->concurrency;
}

/* NULL: the thread ends. */
static struct mcp__job *next_job(struct mcp__workers *workers)
{
    struct mcp__job *job;

    pthread_mutex_lock(&workers->lock);
    while (!workers->is_closed && !is_superfluous(workers) && !workers->first) {
        workers->n_idle++;
        pthread_cond_wait(&workers->changed, &workers->lock);
        workers->n_idle--;
    }
    job = is_superfluous(workers) && !workers->is_closed ? NULL : workers->first;
    if (job) {
        workers->first = job->next;
        if (!workers->first)
            workers->last = NULL;
    } else {
        workers->n_threads--;
        pthread_cond_broadcast(&workers->changed);
    }
    pthread_mutex_unlock(&workers->lock);
    return job;
}

static void *run_jobs(void *user)
{
    struct mcp__workers *workers = user;
    struct mcp__job *job;

    while ((job = next_job(workers)))
        workers->run(job);
    return NULL;
}

/* With the lock. Signals belong to the host's threads, but for faults. */
static bool start_thread(struct mcp__workers *workers)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int error;

    if (pthread_attr_init(&attributes))
        return false;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_attr_setstacksize(&attributes, PEG_LIMIT_POOL_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, run_jobs, workers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!error)
        workers->n_threads++;
    return !error;
}

/* With the lock. */
static bool needs_thread(const struct mcp__workers *workers)
{
    return workers->first && !workers->n_idle &&
           workers->n_threads - workers->n_blocked < workers->concurrency &&
           workers->n_threads < workers->concurrency + PEG_LIMIT_MCP_WAITING;
}

peg_status mcp__workers_submit(struct mcp__workers *workers, struct mcp__job *job)
{
    peg_status status = PEG_OK;

    pthread_mutex_lock(&workers->lock);
    job->next = NULL;
    if (workers->last)
        workers->last->next = job;
    else
        workers->first = job;
    workers->last = job;
    if (needs_thread(workers) && !start_thread(workers) && !workers->n_threads) {
        workers->first = workers->last = NULL; /* no thread at all: it was the only one */
        status = PEG_EIO;
    }
    pthread_cond_signal(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    return status;
}

void mcp__workers_block(struct mcp__workers *workers, bool is_blocked)
{
    pthread_mutex_lock(&workers->lock);
    if (is_blocked)
        workers->n_blocked++;
    else
        workers->n_blocked--;
    if (needs_thread(workers))
        (void)start_thread(workers);
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
}

void mcp__workers_close(struct mcp__workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->is_closed = true;
    pthread_cond_broadcast(&workers->changed);
    while (workers->n_threads)
        pthread_cond_wait(&workers->changed, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
}

/* ---- the mailbox: the loop is woken under the lock, so that it is still there ---- */

bool mcp__post(struct mcp__workers *workers, struct mcp__report *report)
{
    bool is_taken;

    pthread_mutex_lock(&workers->lock);
    is_taken = !workers->is_closed || report->kind == MCP__END;
    if (is_taken) {
        if (!workers->first_report)
            workers->wake(workers->user);
        report->next = NULL;
        if (workers->last_report)
            workers->last_report->next = report;
        else
            workers->first_report = report;
        workers->last_report = report;
    }
    pthread_mutex_unlock(&workers->lock);
    return is_taken;
}

void mcp__post_change(struct mcp__workers *workers, enum mcp_list_kind kind)
{
    pthread_mutex_lock(&workers->lock);
    workers->is_changed[kind] = true;
    workers->wake(workers->user);
    pthread_mutex_unlock(&workers->lock);
}

struct mcp__report *mcp__take_reports(struct mcp__workers *workers)
{
    struct mcp__report *first;

    pthread_mutex_lock(&workers->lock);
    first = workers->first_report;
    workers->first_report = workers->last_report = NULL;
    pthread_mutex_unlock(&workers->lock);
    return first;
}
