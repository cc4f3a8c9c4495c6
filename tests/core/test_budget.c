/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/context.h"

#include "../t.h"

/* ---- fixture: a context on a clock of the test's -------------------------------- */

struct world {
    peg_clock *clock;
    peg_ctx *ctx;
    peg_error error;
};

static void world_init(struct world *w)
{
    peg_ctx *root = NULL;

    *w = (struct world){0};
    CHECK(peg_clock_manual_new(5000, &w->clock, NULL) == PEG_OK);
    CHECK(peg_ctx_new(&root, NULL) == PEG_OK);
    CHECK(peg_ctx_with_clock(root, w->clock, &w->ctx, NULL) == PEG_OK);
    peg_ctx_unref(root);
}

static void world_free(struct world *w)
{
    peg_ctx_unref(w->ctx);
    peg_clock_manual_free(w->clock);
}

static peg_ctx *with_deadline(peg_ctx *parent, int64_t ms)
{
    peg_ctx *ctx = NULL;

    CHECK(peg_ctx_with_deadline(parent, ms, &ctx, NULL) == PEG_OK);
    return ctx;
}

static peg_ctx *for_call(peg_ctx *parent, int64_t timeout_ms)
{
    peg_ctx *ctx = NULL;

    CHECK(peg__ctx_for_call(parent, timeout_ms, &ctx, NULL) == PEG_OK);
    return ctx;
}

/* ---- budgets of calls ------------------------------------------------------------------- */

TEST(call_has_a_token_and_a_budget_of_its_own)
{
    struct world w;
    peg_ctx *call;

    world_init(&w);
    call = for_call(w.ctx, 30);
    CHECK(peg_ctx_cancel(call) != NULL);
    CHECK(peg__ctx_stop_ns(call) == 30 * PEG_NS_PER_MS);
    CHECK(peg_ctx_deadline_ns(call) == INT64_MAX);
    peg_clock_manual_advance(w.clock, 30);

    CHECK_INT(peg_ctx_check(call, &w.error), PEG_ETIMEOUT);
    CHECK_STR(peg_cstr(w.error.code), "E_DEADLINE_EXCEEDED");
    CHECK(strstr(w.error.message, "30 ms"));
    CHECK(peg__ctx_is_over_budget(call));
    peg_ctx_unref(call);
    world_free(&w);
}

TEST(call_without_a_limit_has_that_of_the_call_around_it)
{
    struct world w;
    peg_ctx *free_call;
    peg_ctx *outer;
    peg_ctx *inner;

    world_init(&w);
    free_call = for_call(w.ctx, -1);
    outer = for_call(w.ctx, 10);
    inner = for_call(outer, -1);

    CHECK(peg__ctx_stop_ns(free_call) == INT64_MAX);
    CHECK(peg__ctx_stop_ns(inner) == 10 * PEG_NS_PER_MS);
    CHECK(peg_ctx_cancel(inner) != peg_ctx_cancel(outer));
    peg_ctx_unref(free_call);
    peg_ctx_unref(outer);
    peg_ctx_unref(inner);
    world_free(&w);
}

TEST(deadline_is_told_from_the_budget_by_which_came_first)
{
    struct world w;
    peg_ctx *timed;
    peg_ctx *early;
    peg_ctx *late;
    peg_ctx *inner;

    world_init(&w);
    timed = with_deadline(w.ctx, 20);
    early = for_call(timed, 10);
    late = for_call(timed, 30);
    inner = for_call(early, 15);
    CHECK(!peg__ctx_is_over_budget(early));
    peg_clock_manual_advance(w.clock, 40);

    CHECK(peg__ctx_is_over_budget(early));
    CHECK(!peg__ctx_is_over_budget(late));
    /* The time of the call around it was over before its own. */
    CHECK(!peg__ctx_is_over_budget(inner));
    CHECK_INT(peg_ctx_check(inner, NULL), PEG_ETIMEOUT);
    peg_ctx_unref(inner);
    peg_ctx_unref(early);
    peg_ctx_unref(late);
    peg_ctx_unref(timed);
    world_free(&w);
}

TEST(budget_stands_still_while_it_is_paused_and_pauses_nest)
{
    struct world w;
    peg_ctx *call;

    world_init(&w);
    call = for_call(w.ctx, 10);
    peg_clock_manual_advance(w.clock, 4);
    peg__ctx_pause_budget(call);
    peg__ctx_pause_budget(call);
    peg_clock_manual_advance(w.clock, 1000);
    CHECK(peg__ctx_stop_ns(call) == INT64_MAX);
    peg__ctx_resume_budget(call);
    CHECK(peg__ctx_stop_ns(call) == INT64_MAX);
    CHECK_INT(peg_ctx_check(call, NULL), PEG_OK);
    peg__ctx_resume_budget(call);

    CHECK(peg__ctx_stop_ns(call) == 1010 * PEG_NS_PER_MS);
    peg_clock_manual_advance(w.clock, 6);
    CHECK_INT(peg_ctx_check(call, NULL), PEG_ETIMEOUT);
    peg_ctx_unref(call);
    world_free(&w);
}

TEST(pause_inside_stops_the_budgets_around_it)
{
    struct world w;
    peg_ctx *outer;
    peg_ctx *inner;
    peg_ctx *below = NULL;

    world_init(&w);
    outer = for_call(w.ctx, 10);
    inner = for_call(outer, 20);
    CHECK(peg_ctx_with_cancel(inner, &below, NULL, NULL) == PEG_OK);
    peg__ctx_pause_budget(below);
    peg_clock_manual_advance(w.clock, 100);
    CHECK_INT(peg_ctx_check(outer, NULL), PEG_OK);
    peg__ctx_resume_budget(below);

    CHECK(peg__ctx_stop_ns(outer) == 110 * PEG_NS_PER_MS);
    CHECK(peg__ctx_stop_ns(below) == 110 * PEG_NS_PER_MS);
    peg_ctx_unref(below);
    peg_ctx_unref(inner);
    peg_ctx_unref(outer);
    world_free(&w);
}

TEST(pause_does_not_bring_a_used_up_budget_back)
{
    struct world w;
    peg_ctx *call;

    world_init(&w);
    call = for_call(w.ctx, 10);
    peg_clock_manual_advance(w.clock, 10);
    peg__ctx_pause_budget(call);

    CHECK(peg__ctx_is_over_budget(call));
    peg__ctx_resume_budget(call);
    CHECK(peg__ctx_is_over_budget(call));
    peg_ctx_unref(call);
    world_free(&w);
}

TEST(pause_without_a_budget_does_nothing)
{
    struct world w;

    world_init(&w);
    peg__ctx_pause_budget(w.ctx);
    peg__ctx_resume_budget(w.ctx);

    CHECK_INT(peg_ctx_check(w.ctx, NULL), PEG_OK);
    world_free(&w);
}
