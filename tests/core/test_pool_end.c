/* SPDX-License-Identifier: Apache-2.0 */

/* Handlers on their own pool, pools that end while handlers run, many threads. */

#include <sched.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/pool/pool.h"
#include "pegboard/log.h"
#include "pool_task.h"

/* ---- handlers that use their own pool ------------------------------------------------------ */

/* Runs a job of its own kind until `result` is 0 or the pool refuses. */
static void run_below(struct task *task)
{
    struct task *below;
    peg_error error;

    if (task->result == 0)
        return;
    below = new_task(task->door);
    below->work = run_below;
    below->pool = task->pool;
    below->ctx = task->ctx;
    below->result = task->result - 1;
    if (submit(task->pool, below, &error) != PEG_OK) {
        task->result = strstr(error.message, "calls of their own") ? -2 : -1;
        drop_task(below);
        return;
    }
    peg__pool_await(&below->job, task->ctx);
    task->result = below->result < 0 ? below->result : 0;
    drop_task(below);
}

static struct task *submit_nested(peg_pool *pool, int depth, struct door *door, peg_ctx *ctx)
{
    struct task *task = new_task(door);

    task->work = run_below;
    task->pool = pool;
    task->ctx = ctx;
    task->result = depth;
    CHECK_INT(submit(pool, task, NULL), PEG_OK);
    return task;
}

TEST(a_handler_may_wait_for_jobs_on_its_own_pool)
{
    peg_pool *pool = new_pool(1, 0);
    struct task *task = submit_nested(pool, 5, NULL, NULL);

    CHECK_INT(peg__pool_await(&task->job, NULL), PEG__JOB_ENDED);

    CHECK_INT(task->result, 0);
    while (peg_pool_info(pool).n_threads != 1)
        sched_yield();
    CHECK_INT(await_and_drop(submit_new(pool, NULL), NULL), PEG__JOB_ENDED);
    drop_task(task);
    peg_pool_unref(pool);
}

TEST(handlers_that_wait_for_handlers_without_an_end_are_refused)
{
    peg_pool *pool = new_pool(1, 0);
    struct task *task = submit_nested(pool, 10000, NULL, NULL);

    CHECK_INT(peg__pool_await(&task->job, NULL), PEG__JOB_ENDED);

    CHECK_INT(task->result, -2);
    drop_task(task);
    peg_pool_unref(pool);
}

TEST(a_handler_that_waits_for_another_can_be_abandoned)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct task *task = submit_nested(pool, 1, &door, NULL);
    struct world w;

    world_init(&w, true);
    await_begin(task);
    while (peg_pool_info(pool).n_threads != 2)
        sched_yield();
    peg_clock_manual_advance(w.clock, 100);

    CHECK_INT(await_and_drop(task, w.ctx), PEG__JOB_ABANDONED);
    CHECK_INT(peg_pool_info(pool).n_abandoned, 1);
    CHECK_INT(peg_pool_info(pool).n_threads, 1);

    open_door(&door);
    await_abandoned(pool, 0);
    CHECK_INT(await_and_drop(submit_new(pool, NULL), NULL), PEG__JOB_ENDED);
    peg_pool_unref(pool);
    world_done(&w);
}

/* ---- the end of a pool ------------------------------------------------------------------------
 */

struct heard {
    atomic_int n;
    char code[32];
    char message[PEG_LIMIT_NAME_BYTES];
};

static void hear(peg_log_level level, const char *code, const char *message, void *user)
{
    struct heard *heard = user;

    if (level != PEG_LOG_WARN)
        return;
    snprintf(heard->code, sizeof(heard->code), "%s", code);
    snprintf(heard->message, sizeof(heard->message), "%s", message);
    atomic_fetch_add(&heard->n, 1);
}

static void *open_in_thread(void *door)
{
    open_door(door);
    return NULL;
}

TEST(unref_waits_for_running_jobs)
{
    struct door door = CLOSED_DOOR;
    atomic_int n_released = 0;
    peg_pool *pool = new_pool(1, 0);
    struct task *task = new_task(&door);
    pthread_t opener;

    task->n_released = &n_released;
    CHECK_INT(submit(pool, task, NULL), PEG_OK);
    await_begin(task);
    CHECK_INT(pthread_create(&opener, NULL, open_in_thread, &door), 0);

    peg_pool_unref(pool);

    CHECK(task->has_ended);
    CHECK_INT(n_released, 1);
    pthread_join(opener, NULL);
    drop_task(task);
}

struct opener {
    struct door *door;
    atomic_int n_released;
    int n_wanted;
};

static void *open_when_released(void *user)
{
    struct opener *opener = user;

    while (atomic_load(&opener->n_released) != opener->n_wanted)
        sched_yield();
    open_door(opener->door);
    return NULL;
}

TEST(unref_drops_jobs_that_have_not_begun)
{
    struct door door = CLOSED_DOOR;
    struct opener opener = {.door = &door, .n_wanted = 3};
    peg_pool *pool = new_pool(1, 0);
    struct task *running = submit_new(pool, &door);
    struct task *queued[3];
    pthread_t thread;

    await_begin(running);
    for (int i = 0; i < 3; i++) {
        queued[i] = new_task(NULL);
        queued[i]->n_released = &opener.n_released;
        CHECK_INT(submit(pool, queued[i], NULL), PEG_OK);
    }
    CHECK_INT(pthread_create(&thread, NULL, open_when_released, &opener), 0);

    peg_pool_unref(pool);

    CHECK(running->has_ended);
    for (int i = 0; i < 3; i++) {
        CHECK(!queued[i]->has_begun);
        drop_task(queued[i]);
    }
    pthread_join(thread, NULL);
    drop_task(running);
}

/* Doors are static where nothing tells the test when the last thread has let go of them. */
TEST(unref_leaves_abandoned_threads_behind_and_says_so)
{
    const size_t live_before = peg__mem_live();
    static struct door door = CLOSED_DOOR;
    struct heard heard = {.n = 0};
    peg_pool *pool = new_pool(2, 0);
    struct task *stuck = submit_new(pool, &door);
    struct world w;

    world_init(&w, true);
    await_begin(stuck);
    peg_clock_manual_advance(w.clock, 100);
    CHECK_INT(await_and_drop(stuck, w.ctx), PEG__JOB_ABANDONED);
    world_done(&w);
    CHECK_INT(peg_log_set(hear, PEG_LOG_DEBUG, &heard), PEG_OK);

    peg_pool_unref(pool);

    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);
    CHECK_INT(heard.n, 1);
    CHECK_STR(peg__str(heard.code), "E_POOL_ABANDONED");
    CHECK(strstr(heard.message, "1 thread"));
    CHECK_INT(peg__mem_live(), live_before + 2); /* the pool and the task */
    open_door(&door);
    await_live(live_before);
}

TEST(several_threads_left_behind_free_the_pool_when_the_last_is_through)
{
    const size_t live_before = peg__mem_live();
    static struct door doors[3] = {CLOSED_DOOR, CLOSED_DOOR, CLOSED_DOOR};
    peg_pool *pool = new_pool(3, 3);
    struct world w;

    world_init(&w, true);
    peg_clock_manual_advance(w.clock, 100);
    for (int i = 0; i < 3; i++) {
        struct task *stuck = submit_new(pool, &doors[i]);

        await_begin(stuck);
        CHECK_INT(await_and_drop(stuck, w.ctx), PEG__JOB_ABANDONED);
    }
    world_done(&w);

    peg_pool_unref(pool);

    for (int i = 0; i < 3; i++) {
        CHECK_INT(peg__mem_live(), live_before + 4 - (size_t)i);
        open_door(&doors[i]);
        await_live(i < 2 ? live_before + 3 - (size_t)i : live_before);
    }
}

static void drop_pool(struct task *task)
{
    pass_door(task->door);
    peg_pool_unref(task->pool);
}

TEST(the_last_reference_may_be_dropped_by_a_handler)
{
    const size_t live_before = peg__mem_live();
    static struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct task *task = new_task(&door);

    task->work = drop_pool;
    task->pool = peg_pool_ref(pool);
    CHECK_INT(submit(pool, task, NULL), PEG_OK);
    CHECK(!peg_pool_unref(pool));
    open_door(&door);
    drop_task(task);

    await_live(live_before);
}

/* ---- many threads ---------------------------------------------------------------------------- */

enum { N_CALLERS = 8, N_ROUNDS = 500 };

struct caller {
    pthread_t thread;
    peg_pool *pool;
    struct world *world;
    atomic_int *n_released;
    int n_ended;
    int n_submitted;
};

static void *call_often(void *user)
{
    struct caller *caller = user;

    for (int i = 0; i < N_ROUNDS; i++) {
        struct task *task = new_task(NULL);

        task->n_released = caller->n_released;
        if (submit(caller->pool, task, NULL) == PEG_OK) {
            caller->n_submitted++;
            caller->n_ended += peg__pool_await(&task->job, caller->world->ctx) == PEG__JOB_ENDED;
        }
        drop_task(task);
        if (i == N_ROUNDS / 2)
            peg_clock_manual_advance(caller->world->clock, 10);
    }
    return NULL;
}

static void call_from_many_threads(peg_pool *pool, struct world *w, struct caller *callers,
                                   atomic_int *n_released)
{
    for (int i = 0; i < N_CALLERS; i++) {
        callers[i] = (struct caller){.pool = pool, .world = w, .n_released = n_released};
        CHECK_INT(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < N_CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
}

TEST(jobs_from_eight_threads_all_end)
{
    struct caller callers[N_CALLERS];
    atomic_int n_released = 0;
    peg_pool *pool = new_pool(4, 0);
    struct world w;

    world_init(&w, false);
    call_from_many_threads(pool, &w, callers, &n_released);

    for (int i = 0; i < N_CALLERS; i++)
        CHECK_INT(callers[i].n_ended, N_ROUNDS);
    peg_pool_unref(pool);
    CHECK_INT(n_released, N_CALLERS * N_ROUNDS);
    world_done(&w);
}

/* From the middle on the deadline has passed, while jobs begin and end. */
TEST(every_job_is_released_once_when_deadlines_race_with_ends)
{
    struct caller callers[N_CALLERS];
    atomic_int n_released = 0;
    int n_submitted = 0;
    peg_pool *pool = new_pool(2, 256);
    struct world w;

    world_init(&w, true);
    peg_clock_manual_advance(w.clock, 25);
    call_from_many_threads(pool, &w, callers, &n_released);

    for (int i = 0; i < N_CALLERS; i++)
        n_submitted += callers[i].n_submitted;
    await_abandoned(pool, 0);
    CHECK_INT(peg_pool_info(pool).n_running, 0);
    CHECK_INT(peg_pool_info(pool).n_queued, 0);
    peg_pool_unref(pool);
    CHECK_INT(n_released, n_submitted);
    world_done(&w);
}
