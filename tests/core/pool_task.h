/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CORE_POOL_TASK_H
#define PEG_TESTS_CORE_POOL_TASK_H

/* What the tests of the pool share: jobs whose handlers wait until the test lets them go, and a
 * context whose time and token the test owns. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../t.h"
#include "core/pool/pool.h"

/* ---- fixture: a door that handlers wait at, and counted tasks ------------------- */

struct door {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
};

#define CLOSED_DOOR                                                                                \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false                                 \
    }

static inline void open_door(struct door *door)
{
    pthread_mutex_lock(&door->lock);
    door->is_open = true;
    pthread_cond_broadcast(&door->opened);
    pthread_mutex_unlock(&door->lock);
}

static inline void pass_door(struct door *door)
{
    pthread_mutex_lock(&door->lock);
    while (!door->is_open)
        pthread_cond_wait(&door->opened, &door->lock);
    pthread_mutex_unlock(&door->lock);
}

struct task {
    struct peg__job job; /* first: a pointer to it is a pointer to the whole */
    atomic_uint n_refs;
    struct door *door; /* its handler waits here; may be NULL */
    void (*work)(struct task *task);
    peg_pool *pool;
    peg_ctx *ctx;
    atomic_int *n_released;
    atomic_bool has_begun;
    atomic_bool has_ended;
    int result;
};

static inline void drop_task(struct task *task)
{
    if (atomic_fetch_sub(&task->n_refs, 1) == 1)
        peg__free(task);
}

static inline void run_task(struct peg__job *job)
{
    struct task *task = (struct task *)job;

    atomic_store(&task->has_begun, true);
    if (task->work)
        task->work(task);
    if (task->door)
        pass_door(task->door);
    atomic_store(&task->has_ended, true);
}

static inline void release_task(struct peg__job *job)
{
    struct task *task = (struct task *)job;

    if (task->n_released)
        atomic_fetch_add(task->n_released, 1);
    drop_task(task);
}

/* NULL when out of memory. */
static inline struct task *try_task(struct door *door)
{
    struct task *task = peg__alloc_zero(1, sizeof(*task));

    if (!task)
        return NULL;
    atomic_init(&task->n_refs, 1);
    task->job.run = run_task;
    task->job.release = release_task;
    task->door = door;
    return task;
}

static inline struct task *new_task(struct door *door)
{
    struct task *task = try_task(door);

    if (!task)
        abort();
    return task;
}

/* One share for the pool. */
static inline peg_status submit(peg_pool *pool, struct task *task, peg_error *reterr)
{
    peg_status status;

    atomic_fetch_add(&task->n_refs, 1);
    status = peg__pool_submit(pool, &task->job, reterr);
    if (status)
        drop_task(task);
    return status;
}

static inline struct task *submit_new(peg_pool *pool, struct door *door)
{
    struct task *task = new_task(door);

    CHECK_INT(submit(pool, task, NULL), PEG_OK);
    return task;
}

static inline enum peg__job_end await_and_drop(struct task *task, peg_ctx *ctx)
{
    const enum peg__job_end end = peg__pool_await(&task->job, ctx);

    drop_task(task);
    return end;
}

static inline void await_begin(const struct task *task)
{
    while (!atomic_load(&task->has_begun))
        sched_yield();
}

static inline void await_abandoned(peg_pool *pool, unsigned n)
{
    while (peg_pool_info(pool).n_abandoned != n)
        sched_yield();
}

static inline void await_live(size_t n_blocks)
{
    while (peg__mem_live() != n_blocks)
        sched_yield();
}

static inline peg_pool *new_pool(unsigned n_threads, unsigned max_abandoned)
{
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = n_threads,
                                      .max_abandoned = max_abandoned};
    peg_pool *pool;

    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    return pool;
}

/* ---- fixture: a context whose time and token the test owns ------------------------- */

struct world {
    peg_clock *clock;
    peg_ctx *root;
    peg_ctx *timed; /* on the clock */
    peg_ctx *ctx;   /* with a deadline in 100 ms, if wanted, and a token */
    peg_cancel *cancel;
};

static inline void world_init(struct world *w, bool has_deadline)
{
    peg_ctx *late = NULL;

    CHECK_INT(peg_clock_manual_new(0, &w->clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_new(&w->root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(w->root, w->clock, &w->timed, NULL), PEG_OK);
    if (has_deadline)
        CHECK_INT(peg_ctx_with_deadline(w->timed, 100, &late, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(late ? late : w->timed, &w->ctx, &w->cancel, NULL), PEG_OK);
    peg_ctx_unref(late);
}

static inline void world_done(struct world *w)
{
    peg_cancel_unref(w->cancel);
    peg_ctx_unref(w->ctx);
    peg_ctx_unref(w->timed);
    peg_ctx_unref(w->root);
    peg_clock_manual_free(w->clock);
}

/* A thread that awaits a task, so that the test can let time pass meanwhile. */
struct awaiter {
    pthread_t thread;
    struct task *task;
    peg_ctx *ctx;
    enum peg__job_end end;
};

static inline void *await_in_thread(void *user)
{
    struct awaiter *awaiter = user;

    awaiter->end = peg__pool_await(&awaiter->task->job, awaiter->ctx);
    return NULL;
}

static inline void start_awaiter(struct awaiter *awaiter, struct task *task, peg_ctx *ctx)
{
    awaiter->task = task;
    awaiter->ctx = ctx;
    CHECK_INT(pthread_create(&awaiter->thread, NULL, await_in_thread, awaiter), 0);
}

static inline enum peg__job_end join_awaiter(struct awaiter *awaiter)
{
    pthread_join(awaiter->thread, NULL);
    drop_task(awaiter->task);
    return awaiter->end;
}

static inline void await_sleeper(const struct world *w)
{
    while (peg_clock_manual_waiting(w->clock) == 0)
        sched_yield();
}

#endif
