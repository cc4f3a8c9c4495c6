/* SPDX-License-Identifier: Apache-2.0 */

#include "core/pool/pool.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../instrumented.h"
#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pool_task.h"

/* ---- running ------------------------------------------------------------------------- */

TEST(pool_runs_a_job_on_a_thread_of_its_own)
{
    peg_pool *pool = new_pool(2, 0);
    struct task *task = submit_new(pool, NULL);

    CHECK_INT(peg__pool_await(&task->job, NULL), PEG__JOB_ENDED);

    CHECK(task->has_ended);
    drop_task(task);
    peg_pool_unref(pool);
}

TEST(pool_runs_jobs_in_the_order_of_their_arrival)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct task *first = submit_new(pool, &door);
    struct task *second = submit_new(pool, &door);
    struct task *third = submit_new(pool, NULL);

    await_begin(first);
    CHECK(!second->has_begun);
    CHECK(!third->has_begun);
    CHECK_INT(peg_pool_info(pool).n_queued, 2);

    open_door(&door);
    CHECK_INT(await_and_drop(third, NULL), PEG__JOB_ENDED);
    CHECK(second->has_ended);
    CHECK_INT(await_and_drop(first, NULL), PEG__JOB_ENDED);
    CHECK_INT(await_and_drop(second, NULL), PEG__JOB_ENDED);
    peg_pool_unref(pool);
}

TEST(pool_starts_threads_when_they_are_needed)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(3, 0);
    struct task *tasks[4];

    CHECK_INT(peg_pool_info(pool).n_threads, 1);
    for (int i = 0; i < 4; i++)
        tasks[i] = submit_new(pool, &door);
    for (int i = 0; i < 3; i++)
        await_begin(tasks[i]);

    CHECK_INT(peg_pool_info(pool).n_threads, 3);
    CHECK_INT(peg_pool_info(pool).n_running, 3);
    CHECK_INT(peg_pool_info(pool).n_queued, 1);
    open_door(&door);
    for (int i = 0; i < 4; i++)
        CHECK_INT(await_and_drop(tasks[i], NULL), PEG__JOB_ENDED);
    peg_pool_unref(pool);
}

TEST(pool_uses_one_thread_for_jobs_that_come_one_after_the_other)
{
    peg_pool *pool = new_pool(8, 0);

    for (int i = 0; i < 100; i++)
        CHECK_INT(await_and_drop(submit_new(pool, NULL), NULL), PEG__JOB_ENDED);

    CHECK_INT(peg_pool_info(pool).n_threads, 1);
    peg_pool_unref(pool);
}

static void look_at_signals(struct task *task)
{
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    task->result = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGCHLD) &&
                   sigismember(&mask, SIGPIPE) && !sigismember(&mask, SIGSEGV);
}

TEST(threads_block_signals_but_those_of_their_own_faults)
{
    peg_pool *pool = new_pool(1, 0);
    struct task *task = new_task(NULL);
    sigset_t mask;

    task->work = look_at_signals;
    CHECK_INT(submit(pool, task, NULL), PEG_OK);
    CHECK_INT(peg__pool_await(&task->job, NULL), PEG__JOB_ENDED);

    CHECK(task->result);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGTERM));
    drop_task(task);
    peg_pool_unref(pool);
}

/* ---- deadlines and cancellation --------------------------------------------------------- */

TEST(a_deadline_abandons_a_handler_and_the_caller_goes_on)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct awaiter awaiter;
    struct world w;

    world_init(&w, true);
    start_awaiter(&awaiter, submit_new(pool, &door), w.ctx);
    await_begin(awaiter.task);
    await_sleeper(&w);
    peg_clock_manual_advance(w.clock, 99);
    CHECK_INT(peg_pool_info(pool).n_abandoned, 0);
    peg_clock_manual_advance(w.clock, 1);

    CHECK_INT(join_awaiter(&awaiter), PEG__JOB_ABANDONED);
    CHECK_INT(peg_pool_info(pool).n_abandoned, 1);
    CHECK_INT(peg_pool_info(pool).n_running, 0);
    CHECK_INT(peg_pool_info(pool).n_threads, 0);

    open_door(&door);
    await_abandoned(pool, 0);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(an_abandoned_thread_is_replaced)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct task *stuck = submit_new(pool, &door);
    struct task *next;
    struct world w;

    world_init(&w, true);
    await_begin(stuck);
    next = submit_new(pool, NULL);
    peg_clock_manual_advance(w.clock, 100);
    CHECK_INT(await_and_drop(stuck, w.ctx), PEG__JOB_ABANDONED);

    CHECK_INT(await_and_drop(next, NULL), PEG__JOB_ENDED);
    CHECK_INT(await_and_drop(submit_new(pool, NULL), NULL), PEG__JOB_ENDED);

    open_door(&door);
    await_abandoned(pool, 0);
    CHECK_INT(peg_pool_info(pool).total_abandoned, 1);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(a_surplus_thread_ends_when_its_handler_returns_after_all)
{
    struct door late = CLOSED_DOOR;
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct task *stuck = submit_new(pool, &late);
    struct task *next;
    struct world w;

    world_init(&w, true);
    await_begin(stuck);
    peg_clock_manual_advance(w.clock, 100);
    CHECK_INT(await_and_drop(stuck, w.ctx), PEG__JOB_ABANDONED);
    next = submit_new(pool, &door);
    await_begin(next);

    open_door(&late);
    while (peg_pool_info(pool).n_abandoned != 0 || peg_pool_info(pool).n_threads != 1)
        sched_yield();

    open_door(&door);
    CHECK_INT(await_and_drop(next, NULL), PEG__JOB_ENDED);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(a_job_that_ended_is_not_abandoned_by_a_deadline)
{
    peg_pool *pool = new_pool(1, 0);
    struct task *task = submit_new(pool, NULL);
    struct world w;

    world_init(&w, true);
    while (!atomic_load(&task->has_ended) || peg_pool_info(pool).n_running)
        sched_yield();
    peg_clock_manual_advance(w.clock, 1000);

    CHECK_INT(await_and_drop(task, w.ctx), PEG__JOB_ENDED);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(a_job_that_has_not_begun_is_taken_back)
{
    struct door door = CLOSED_DOOR;
    atomic_int n_released = 0;
    peg_pool *pool = new_pool(1, 0);
    struct task *first = submit_new(pool, &door);
    struct task *second = new_task(NULL);
    struct task *third;
    struct world w;

    world_init(&w, true);
    await_begin(first);
    second->n_released = &n_released;
    CHECK_INT(submit(pool, second, NULL), PEG_OK);
    third = submit_new(pool, NULL);
    peg_clock_manual_advance(w.clock, 100);

    CHECK_INT(peg__pool_await(&second->job, w.ctx), PEG__JOB_NOT_BEGUN);
    CHECK_INT(n_released, 1);
    CHECK_INT(peg_pool_info(pool).n_queued, 1);
    CHECK_INT(peg_pool_info(pool).n_abandoned, 0);

    open_door(&door);
    CHECK_INT(await_and_drop(third, NULL), PEG__JOB_ENDED);
    CHECK(!second->has_begun);
    CHECK_INT(await_and_drop(first, NULL), PEG__JOB_ENDED);
    drop_task(second);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(a_cancellation_gives_a_grace_and_then_abandons)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct awaiter awaiter;
    struct world w;

    world_init(&w, false);
    peg_cancel_fire(w.cancel, "enough");
    start_awaiter(&awaiter, submit_new(pool, &door), w.ctx);
    await_begin(awaiter.task);
    await_sleeper(&w);
    peg_clock_manual_advance(w.clock, PEG_LIMIT_CANCEL_GRACE_MS - 1);
    CHECK_INT(peg_pool_info(pool).n_abandoned, 0);
    peg_clock_manual_advance(w.clock, 1);

    CHECK_INT(join_awaiter(&awaiter), PEG__JOB_ABANDONED);
    open_door(&door);
    await_abandoned(pool, 0);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(a_cancellation_wakes_whoever_awaits)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct awaiter awaiter;
    struct world w;

    world_init(&w, false);
    start_awaiter(&awaiter, submit_new(pool, &door), w.ctx);
    await_begin(awaiter.task);
    await_sleeper(&w);
    peg_cancel_fire(w.cancel, "enough");
    while (peg_pool_info(pool).n_abandoned == 0)
        peg_clock_manual_advance(w.clock, 10);

    CHECK_INT(join_awaiter(&awaiter), PEG__JOB_ABANDONED);
    CHECK(peg_clock_now_ms(w.clock) >= PEG_LIMIT_CANCEL_GRACE_MS);
    open_door(&door);
    await_abandoned(pool, 0);
    peg_pool_unref(pool);
    world_done(&w);
}

static void watch_token(struct task *task)
{
    while (peg_ctx_check(task->ctx, NULL) == PEG_OK)
        sched_yield();
}

TEST(a_handler_that_watches_its_token_is_not_abandoned)
{
    peg_pool *pool = new_pool(1, 0);
    struct task *task = new_task(NULL);
    struct awaiter awaiter;
    struct world w;

    world_init(&w, false);
    task->ctx = w.ctx;
    task->work = watch_token;
    CHECK_INT(submit(pool, task, NULL), PEG_OK);
    start_awaiter(&awaiter, task, w.ctx);
    await_begin(task);
    peg_cancel_fire(w.cancel, "enough");

    CHECK_INT(join_awaiter(&awaiter), PEG__JOB_ENDED);
    CHECK_INT(peg_pool_info(pool).total_abandoned, 0);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(a_deadline_ends_the_grace_of_a_cancellation)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 0);
    struct awaiter awaiter;
    struct world w;

    world_init(&w, true);
    start_awaiter(&awaiter, submit_new(pool, &door), w.ctx);
    await_begin(awaiter.task);
    peg_cancel_fire(w.cancel, "enough");
    await_sleeper(&w);
    peg_clock_manual_advance(w.clock, 100);

    CHECK_INT(join_awaiter(&awaiter), PEG__JOB_ABANDONED);
    open_door(&door);
    await_abandoned(pool, 0);
    peg_pool_unref(pool);
    world_done(&w);
}

/* ---- limits --------------------------------------------------------------------------------- */

TEST(pool_refuses_jobs_while_max_abandoned_are_lost)
{
    struct door doors[2] = {CLOSED_DOOR, CLOSED_DOOR};
    peg_pool *pool = new_pool(2, 2);
    struct task *next = new_task(NULL);
    peg_error error;
    struct world w;

    world_init(&w, true);
    peg_clock_manual_advance(w.clock, 100);
    for (int i = 0; i < 2; i++) {
        struct task *stuck = submit_new(pool, &doors[i]);

        await_begin(stuck);
        CHECK_INT(await_and_drop(stuck, w.ctx), PEG__JOB_ABANDONED);
    }

    CHECK_INT(submit(pool, next, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_POOL_ABANDONED");
    CHECK(strstr(error.message, "max_abandoned is 2: wait until they return"));

    open_door(&doors[0]);
    await_abandoned(pool, 1);
    CHECK_INT(submit(pool, next, NULL), PEG_OK);
    CHECK_INT(await_and_drop(next, NULL), PEG__JOB_ENDED);
    open_door(&doors[1]);
    await_abandoned(pool, 0);
    CHECK_INT(peg_pool_info(pool).total_abandoned, 2);
    peg_pool_unref(pool);
    world_done(&w);
}

/* One thread and one abandoned are allowed, so the third job finds nobody. */
TEST(a_queued_job_is_dropped_when_every_thread_is_lost)
{
    struct door door = CLOSED_DOOR;
    peg_pool *pool = new_pool(1, 1);
    struct task *first = submit_new(pool, &door);
    struct task *second;
    struct awaiter third;
    struct world w;

    world_init(&w, true);
    await_begin(first);
    second = submit_new(pool, &door);
    start_awaiter(&third, submit_new(pool, NULL), NULL);
    peg_clock_manual_advance(w.clock, 100);
    CHECK_INT(await_and_drop(first, w.ctx), PEG__JOB_ABANDONED);
    await_begin(second);
    CHECK_INT(await_and_drop(second, w.ctx), PEG__JOB_ABANDONED);

    CHECK_INT(join_awaiter(&third), PEG__JOB_NOT_BEGUN);
    CHECK_INT(peg_pool_info(pool).n_abandoned, 2);
    open_door(&door);
    await_abandoned(pool, 0);
    CHECK_INT(await_and_drop(submit_new(pool, NULL), NULL), PEG__JOB_ENDED);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(pool_refuses_jobs_when_its_queue_is_full)
{
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = 1, .max_queued = 2};
    struct door door = CLOSED_DOOR;
    struct task *tasks[3];
    struct task *next = new_task(NULL);
    peg_error error;
    peg_pool *pool;

    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    for (int i = 0; i < 3; i++)
        tasks[i] = submit_new(pool, &door);

    CHECK_INT(submit(pool, next, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_POOL_FULL");
    CHECK(strstr(error.message, "max_queued is 2"));

    open_door(&door);
    for (int i = 0; i < 3; i++)
        CHECK_INT(await_and_drop(tasks[i], NULL), PEG__JOB_ENDED);
    CHECK_INT(submit(pool, next, NULL), PEG_OK);
    CHECK_INT(await_and_drop(next, NULL), PEG__JOB_ENDED);
    peg_pool_unref(pool);
}

TEST(pool_refuses_options_out_of_range_by_name)
{
    static const struct {
        peg_pool_options options;
        const char *where;
    } cases[] = {
        {{PEG_POOL_OPTIONS_INIT, .n_threads = 257}, "/n_threads"},
        {{PEG_POOL_OPTIONS_INIT, .max_abandoned = 257}, "/max_abandoned"},
        {{PEG_POOL_OPTIONS_INIT, .max_queued = 1000001}, "/max_queued"},
        {{PEG_POOL_OPTIONS_INIT, .stack_bytes = (512 << 10) - 1}, "/stack_bytes"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        peg_pool *pool = NULL;
        peg_error error;

        CHECK_INT(peg_pool_new(&cases[i].options, &pool, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
        CHECK_STR(peg__str(error.where), cases[i].where);
        CHECK(!pool);
    }
}

TEST(pool_says_when_the_system_refuses_the_first_thread)
{
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .stack_bytes = SIZE_MAX / 4};
    peg_pool *pool = NULL;
    peg_error error;

    CHECK_INT(peg_pool_new(&options, &pool, &error), PEG_EIO);

    CHECK_STR(peg__str(error.code), "E_POOL_THREAD");
    CHECK(!pool);
}

TEST(submit_says_when_there_is_no_thread_and_the_system_refuses_one)
{
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = 1,
                                      .stack_bytes = 512 << 20};
    struct door door = CLOSED_DOOR;
    struct rlimit before;
    struct rlimit tight;
    struct task *stuck;
    struct task *next;
    peg_error error;
    peg_pool *pool;
    struct world w;

    if (t_is_instrumented())
        SKIP("a limit of the address space would end the instrumentation");
    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    world_init(&w, true);
    next = new_task(NULL);
    stuck = submit_new(pool, &door);
    await_begin(stuck);
    peg_clock_manual_advance(w.clock, 100);
    CHECK_INT(await_and_drop(stuck, w.ctx), PEG__JOB_ABANDONED);

    CHECK_INT(getrlimit(RLIMIT_AS, &before), 0);
    tight = (struct rlimit){t_memory().address_space + (64 << 20), before.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_AS, &tight), 0);
    CHECK_INT(submit(pool, next, &error), PEG_EIO);
    CHECK_INT(setrlimit(RLIMIT_AS, &before), 0);

    CHECK_STR(peg__str(error.code), "E_POOL_THREAD");
    CHECK_INT(peg_pool_info(pool).n_queued, 0);
    CHECK_INT(submit(pool, next, NULL), PEG_OK);
    CHECK_INT(await_and_drop(next, NULL), PEG__JOB_ENDED);
    open_door(&door);
    await_abandoned(pool, 0);
    peg_pool_unref(pool);
    world_done(&w);
}

TEST(references_keep_a_pool)
{
    peg_pool *pool = new_pool(1, 0);

    CHECK(peg_pool_ref(pool) == pool);
    CHECK(!peg_pool_unref(pool));
    CHECK_INT(await_and_drop(submit_new(pool, NULL), NULL), PEG__JOB_ENDED);
    CHECK(!peg_pool_unref(pool));
    CHECK(!peg_pool_unref(NULL));
}

TORTURE(pool_survives_any_allocation_failure)
{
    peg_pool *pool;
    peg_error error;
    struct task *task;
    peg_status status = peg_pool_new(NULL, &pool, &error);

    if (status)
        return status;
    task = try_task(NULL);
    status = task ? submit(pool, task, &error) : PEG_ENOMEM;
    if (!status)
        CHECK_INT(peg__pool_await(&task->job, NULL), PEG__JOB_ENDED);
    if (task)
        drop_task(task);
    peg_pool_unref(pool);
    return status;
}
