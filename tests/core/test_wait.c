/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/context.h"

#include <sched.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/clock.h"

/* ---- fixture: a thread that waits for a flag, on a clock of the test's --------------- */

struct world {
    peg_clock *clock;
    peg_ctx *ctx;       /* with the clock and a token */
    peg_cancel *cancel; /* of ctx */
};

struct waiter {
    pthread_t thread;
    struct peg__wait wait;
    peg_ctx *ctx;
    int64_t until_ns;
    bool flag; /* under wait.lock */
    enum peg__woke woke;
};

static void world_init(struct world *w)
{
    peg_ctx *root = NULL;
    peg_ctx *timed = NULL;

    *w = (struct world){0};
    CHECK(peg_clock_manual_new(0, &w->clock, NULL) == PEG_OK);
    CHECK(peg_ctx_new(&root, NULL) == PEG_OK);
    CHECK(peg_ctx_with_clock(root, w->clock, &timed, NULL) == PEG_OK);
    CHECK(peg_ctx_with_cancel(timed, &w->ctx, &w->cancel, NULL) == PEG_OK);
    peg_ctx_unref(timed);
    peg_ctx_unref(root);
}

static void world_free(struct world *w)
{
    peg_ctx_unref(w->ctx);
    peg_cancel_unref(w->cancel);
    peg_clock_manual_free(w->clock);
}

static bool is_set(void *user)
{
    return ((struct waiter *)user)->flag;
}

static void *wait_for_flag(void *user)
{
    struct waiter *waiter = user;

    pthread_mutex_lock(&waiter->wait.lock);
    waiter->woke = peg__wait_for(&waiter->wait, waiter->ctx, waiter->until_ns, is_set, waiter);
    pthread_mutex_unlock(&waiter->wait.lock);
    return NULL;
}

static void start(struct waiter *waiter, peg_ctx *ctx, int64_t until_ns)
{
    *waiter = (struct waiter){.ctx = ctx, .until_ns = until_ns};
    peg__wait_init(&waiter->wait);
    CHECK_INT(pthread_create(&waiter->thread, NULL, wait_for_flag, waiter), 0);
}

static enum peg__woke join(struct waiter *waiter)
{
    CHECK_INT(pthread_join(waiter->thread, NULL), 0);
    peg__wait_destroy(&waiter->wait);
    return waiter->woke;
}

static void set_flag(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->wait.lock);
    waiter->flag = true;
    peg__wait_wake(&waiter->wait);
    pthread_mutex_unlock(&waiter->wait.lock);
}

static void await_waiting(const peg_clock *clock, size_t n)
{
    while (peg_clock_manual_waiting(clock) != n)
        sched_yield();
}

/* Waits on this thread: for what does not block. */
static enum peg__woke wait_here(peg_ctx *ctx, int64_t until_ns, bool flag)
{
    struct waiter waiter = {.ctx = ctx, .until_ns = until_ns, .flag = flag};

    peg__wait_init(&waiter.wait);
    wait_for_flag(&waiter);
    peg__wait_destroy(&waiter.wait);
    return waiter.woke;
}

/* ---- why it ends ----------------------------------------------------------------------- */

TEST(wait_ends_when_it_has_become_true)
{
    struct world w;
    struct waiter waiter;

    world_init(&w);
    start(&waiter, w.ctx, INT64_MAX);
    await_waiting(w.clock, 1);
    set_flag(&waiter);

    CHECK_INT(join(&waiter), PEG__WOKE_DONE);
    world_free(&w);
}

TEST(wait_without_a_context_ends_when_it_has_become_true)
{
    struct waiter waiter;

    start(&waiter, NULL, INT64_MAX);
    set_flag(&waiter);

    CHECK_INT(join(&waiter), PEG__WOKE_DONE);
}

TEST(wait_without_a_context_ends_at_a_moment_of_the_system)
{
    CHECK_INT(wait_here(NULL, peg__clock_in_ms(peg_clock_system(), 2), false), PEG__WOKE_TIME);
}

TEST(wait_ends_at_its_moment)
{
    struct world w;
    struct waiter waiter;

    world_init(&w);
    start(&waiter, w.ctx, 10 * PEG_NS_PER_MS);
    await_waiting(w.clock, 1);
    peg_clock_manual_advance(w.clock, 9);
    await_waiting(w.clock, 1);
    peg_clock_manual_advance(w.clock, 1);

    CHECK_INT(join(&waiter), PEG__WOKE_TIME);
    world_free(&w);
}

TEST(wait_ends_when_the_token_or_one_above_fires)
{
    struct world w;
    peg_ctx *below = NULL;
    struct waiter waiters[2];

    world_init(&w);
    CHECK(peg_ctx_with_cancel(w.ctx, &below, NULL, NULL) == PEG_OK);
    start(&waiters[0], w.ctx, INT64_MAX);
    start(&waiters[1], below, INT64_MAX);
    await_waiting(w.clock, 2);
    peg_cancel_fire(w.cancel, NULL);

    CHECK_INT(join(&waiters[0]), PEG__WOKE_STOP);
    CHECK_INT(join(&waiters[1]), PEG__WOKE_STOP);
    peg_ctx_unref(below);
    world_free(&w);
}

TEST(wait_ends_at_the_deadline_of_the_context)
{
    struct world w;
    peg_ctx *ctx = NULL;
    struct waiter waiter;

    world_init(&w);
    CHECK(peg_ctx_with_deadline(w.ctx, 5, &ctx, NULL) == PEG_OK);
    start(&waiter, ctx, 10 * PEG_NS_PER_MS);
    await_waiting(w.clock, 1);
    peg_clock_manual_advance(w.clock, 5);

    CHECK_INT(join(&waiter), PEG__WOKE_STOP);
    peg_ctx_unref(ctx);
    world_free(&w);
}

TEST(of_several_reasons_done_comes_first_then_stop_then_time)
{
    struct world w;

    world_init(&w);
    peg_cancel_fire(w.cancel, NULL);

    CHECK_INT(wait_here(w.ctx, 0, true), PEG__WOKE_DONE);
    CHECK_INT(wait_here(w.ctx, 0, false), PEG__WOKE_STOP);
    CHECK_INT(wait_here(NULL, 0, false), PEG__WOKE_TIME);
    world_free(&w);
}

/* ---- budgets that stand still ----------------------------------------------------------- */

TEST(wait_is_told_when_a_budget_goes_on)
{
    struct world w;
    peg_ctx *call = NULL;
    struct waiter waiter;

    world_init(&w);
    CHECK(peg__ctx_for_call(w.ctx, 10, &call, NULL) == PEG_OK);
    peg_clock_manual_advance(w.clock, 4);
    peg__ctx_pause_budget(call);
    start(&waiter, call, INT64_MAX);
    await_waiting(w.clock, 1);
    peg_clock_manual_advance(w.clock, 1000);
    peg__ctx_resume_budget(call);
    /* It has waited for no moment until now; 6 ms are left. */
    peg_clock_manual_advance(w.clock, 6);

    CHECK_INT(join(&waiter), PEG__WOKE_STOP);
    peg_ctx_unref(call);
    world_free(&w);
}

TEST(wait_inside_is_told_when_the_budget_around_goes_on)
{
    struct world w;
    peg_ctx *outer = NULL;
    peg_ctx *inner = NULL;
    struct waiter waiter;

    world_init(&w);
    CHECK(peg__ctx_for_call(w.ctx, 10, &outer, NULL) == PEG_OK);
    CHECK(peg__ctx_for_call(outer, 100000, &inner, NULL) == PEG_OK);
    peg__ctx_pause_budget(outer);
    start(&waiter, inner, INT64_MAX);
    await_waiting(w.clock, 1);
    peg_clock_manual_advance(w.clock, 1000);
    peg__ctx_resume_budget(outer);
    peg_clock_manual_advance(w.clock, 10);

    CHECK_INT(join(&waiter), PEG__WOKE_STOP);
    peg_ctx_unref(inner);
    peg_ctx_unref(outer);
    world_free(&w);
}

TEST(wait_goes_on_past_the_end_of_a_budget_that_stands_still_since)
{
    struct world w;
    peg_ctx *call = NULL;
    struct waiter waiter;

    world_init(&w);
    CHECK(peg__ctx_for_call(w.ctx, 10, &call, NULL) == PEG_OK);
    start(&waiter, call, INT64_MAX);
    await_waiting(w.clock, 1);
    peg__ctx_pause_budget(call);
    peg_clock_manual_advance(w.clock, 50);
    await_waiting(w.clock, 1);
    set_flag(&waiter);

    CHECK_INT(join(&waiter), PEG__WOKE_DONE);
    peg__ctx_resume_budget(call);
    peg_ctx_unref(call);
    world_free(&w);
}

/* ---- no wake-up is lost -------------------------------------------------------------------- */

enum { N_ROUNDS = 300 };

static void *fire(void *user)
{
    peg_cancel_fire(user, NULL);
    return NULL;
}

/* Nobody awaits the waiter: a wake-up between its look and its sleep would hang the test. */
TEST(wait_misses_neither_token_nor_clock_nor_flag)
{
    for (int i = 0; i < N_ROUNDS; i++) {
        struct world w;
        struct waiter waiter;
        pthread_t firing;

        world_init(&w);
        start(&waiter, w.ctx, i % 3 == 0 ? PEG_NS_PER_MS : INT64_MAX);
        if (i % 3 == 0)
            peg_clock_manual_advance(w.clock, 1);
        else if (i % 3 == 1)
            set_flag(&waiter);
        else
            CHECK_INT(pthread_create(&firing, NULL, fire, w.cancel), 0);
        join(&waiter);
        if (i % 3 == 2)
            CHECK_INT(pthread_join(firing, NULL), 0);
        world_free(&w);
    }
}
