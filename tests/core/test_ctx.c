/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/context.h"

#include <pthread.h>
#include <sched.h>

#include "../t.h"
#include "base/clock.h"
#include "base/limits.h"
#include "pegboard/registry.h"

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

/* ---- the chain --------------------------------------------------------------------- */

/* G47 */
TEST(context_starts_with_the_clock_of_the_system_and_nothing_else)
{
    peg_ctx *ctx = NULL;
    void *user = NULL;

    CHECK(peg_ctx_new(&ctx, NULL) == PEG_OK);

    CHECK(peg_ctx_clock(ctx) == peg_clock_system());
    CHECK(!peg_ctx_cancel(ctx) && !peg_ctx_registry(ctx) && !peg__ctx_has_sink(ctx));
    CHECK(!peg__ctx_gate_listener(ctx, &user));
    CHECK(peg_ctx_deadline_ns(ctx) == INT64_MAX && peg__ctx_stop_ns(ctx) == INT64_MAX);
    CHECK_STR(peg_cstr(peg_ctx_ids(ctx)->run_id), "");
    CHECK_STR(peg_cstr(peg_ctx_ids(ctx)->turn_id), "");
    CHECK_STR(peg_cstr(peg_ctx_ids(ctx)->dispatch_id), "");
    CHECK_INT(peg_ctx_ids(ctx)->iteration, -1);
    CHECK_INT(peg_ctx_check(ctx, NULL), PEG_OK);
    CHECK(peg_ctx_unref(ctx) == NULL);
    CHECK(peg_ctx_unref(NULL) == NULL);
}

TEST(child_differs_in_one_thing_and_keeps_its_parent)
{
    struct world w;
    peg_ctx *child;

    world_init(&w);
    child = with_deadline(w.ctx, 20);

    CHECK(peg_ctx_deadline_ns(w.ctx) == INT64_MAX);
    CHECK(peg_ctx_deadline_ns(child) == 20 * PEG_NS_PER_MS);
    CHECK(peg_ctx_clock(child) == w.clock);
    w.ctx = peg_ctx_unref(w.ctx);
    CHECK(peg_ctx_clock(child) == w.clock);
    peg_ctx_unref(child);
    world_free(&w);
}

TEST(long_chain_goes_without_a_stack)
{
    peg_ctx *ctx = NULL;
    static const char key;
    int value = 0;

    CHECK(peg_ctx_new(&ctx, NULL) == PEG_OK);
    for (int i = 0; i < 100000; i++) {
        peg_ctx *child = NULL;

        CHECK(peg_ctx_with_value(ctx, &key, &value, NULL, &child, NULL) == PEG_OK);
        peg_ctx_unref(ctx);
        ctx = child;
    }
    peg_ctx_unref(ctx);
}

TEST(ids_are_copied_and_what_is_not_given_is_kept)
{
    struct world w;
    peg_ctx *turn = NULL;
    peg_ctx *dispatch = NULL;
    char turn_id[] = "turn-1";

    world_init(&w);
    CHECK(peg_ctx_with_ids(w.ctx, &(peg_ids){"run", turn_id, NULL, -1}, &turn, NULL) == PEG_OK);
    turn_id[0] = 'X';
    CHECK(peg_ctx_with_ids(turn, &(peg_ids){NULL, NULL, "d", 0}, &dispatch, NULL) == PEG_OK);
    peg_ctx_unref(turn);

    CHECK_STR(peg_cstr(peg_ctx_ids(dispatch)->run_id), "run");
    CHECK_STR(peg_cstr(peg_ctx_ids(dispatch)->turn_id), "turn-1");
    CHECK_STR(peg_cstr(peg_ctx_ids(dispatch)->dispatch_id), "d");
    CHECK_INT(peg_ctx_ids(dispatch)->iteration, 0);
    peg_ctx_unref(dispatch);
    world_free(&w);
}

TEST(new_turn_is_in_no_dispatch_and_new_dispatch_in_no_iteration)
{
    struct world w;
    peg_ctx *outer = NULL;
    peg_ctx *turn = NULL;
    peg_ctx *dispatch = NULL;

    world_init(&w);
    CHECK(peg_ctx_with_ids(w.ctx, &(peg_ids){"run", "t1", "d1", 4}, &outer, NULL) == PEG_OK);
    CHECK(peg_ctx_with_ids(outer, &(peg_ids){NULL, "t2", NULL, -1}, &turn, NULL) == PEG_OK);
    CHECK(peg_ctx_with_ids(outer, &(peg_ids){NULL, NULL, "d2", -1}, &dispatch, NULL) == PEG_OK);

    CHECK_STR(peg_cstr(peg_ctx_ids(turn)->run_id), "run");
    CHECK_STR(peg_cstr(peg_ctx_ids(turn)->dispatch_id), "");
    CHECK_INT(peg_ctx_ids(turn)->iteration, -1);
    CHECK_STR(peg_cstr(peg_ctx_ids(dispatch)->turn_id), "t1");
    CHECK_STR(peg_cstr(peg_ctx_ids(dispatch)->dispatch_id), "d2");
    CHECK_INT(peg_ctx_ids(dispatch)->iteration, -1);
    peg_ctx_unref(dispatch);
    peg_ctx_unref(turn);
    peg_ctx_unref(outer);
    world_free(&w);
}

TEST(id_that_is_too_long_is_refused_by_the_name_of_the_limit)
{
    struct world w;
    peg_ctx *ctx = NULL;
    char id[PEG_LIMIT_ID_BYTES + 2];

    world_init(&w);
    memset(id, 'i', sizeof(id));
    id[PEG_LIMIT_ID_BYTES + 1] = '\0';

    CHECK_INT(peg_ctx_with_ids(w.ctx, &(peg_ids){id, NULL, NULL, -1}, &ctx, &w.error), PEG_ELIMIT);
    CHECK_STR(peg_cstr(w.error.code), "E_TEXT_TOO_LARGE");
    CHECK(strstr(w.error.message, "more than 256 bytes") && !ctx);
    id[PEG_LIMIT_ID_BYTES] = '\0';
    CHECK_INT(peg_ctx_with_ids(w.ctx, &(peg_ids){id, NULL, NULL, -1}, &ctx, NULL), PEG_OK);
    peg_ctx_unref(ctx);
    world_free(&w);
}

static void count_free(void *user)
{
    ++*(int *)user;
}

TEST(values_are_found_by_key_the_nearest_first_and_freed_once)
{
    static const char name_key;
    static const char other_key;
    struct world w;
    peg_ctx *outer = NULL;
    peg_ctx *between = NULL;
    peg_ctx *inner = NULL;
    int a = 0;
    int b = 0;

    world_init(&w);
    CHECK(peg_ctx_with_value(w.ctx, &name_key, &a, count_free, &outer, NULL) == PEG_OK);
    CHECK(peg_ctx_with_value(outer, &other_key, &b, NULL, &between, NULL) == PEG_OK);
    CHECK(peg_ctx_with_value(between, &name_key, &b, count_free, &inner, NULL) == PEG_OK);

    CHECK(peg_ctx_value(inner, &name_key) == &b);
    CHECK(peg_ctx_value(between, &name_key) == &a);
    CHECK(peg_ctx_value(w.ctx, &name_key) == NULL);
    peg_ctx_unref(outer);
    peg_ctx_unref(between);
    CHECK(a == 0 && b == 0);
    peg_ctx_unref(inner);
    CHECK(a == 1 && b == 1);
    world_free(&w);
}

static void answer(peg_gate *gate, void *user)
{
    (void)gate;
    (void)user;
}

TEST(gates_are_answered_by_the_nearest_listener_and_by_nobody_below_none)
{
    struct world w;
    peg_ctx *heard = NULL;
    peg_ctx *deaf = NULL;
    void *user = NULL;
    int mark;

    world_init(&w);
    CHECK(peg_ctx_with_gates(w.ctx, answer, &mark, &heard, NULL) == PEG_OK);
    CHECK(peg_ctx_with_gates(heard, NULL, NULL, &deaf, NULL) == PEG_OK);

    CHECK(peg__ctx_gate_listener(heard, &user) == answer && user == &mark);
    CHECK(peg__ctx_gate_listener(deaf, &user) == NULL);
    peg_ctx_unref(deaf);
    peg_ctx_unref(heard);
    world_free(&w);
}

/* G46, G48, G49 */
TEST(registry_is_kept_by_its_context_and_hidden_by_none)
{
    struct world w;
    peg_registry *registry = NULL;
    peg_ctx *with = NULL;
    peg_ctx *below;
    peg_ctx *without = NULL;

    world_init(&w);
    CHECK(peg_registry_new(NULL, 0, &registry, NULL) == PEG_OK);
    CHECK(peg_ctx_with_registry(w.ctx, registry, &with, NULL) == PEG_OK);
    peg_registry_unref(registry);
    below = with_deadline(with, 10);
    CHECK(peg_ctx_with_registry(below, NULL, &without, NULL) == PEG_OK);
    peg_ctx_unref(with);

    CHECK(peg_ctx_registry(below) == registry);
    CHECK_INT(peg_registry_len(peg_ctx_registry(below)), 0);
    CHECK(!peg_ctx_registry(without) && !peg_ctx_registry(w.ctx));
    peg_ctx_unref(below);
    peg_ctx_unref(without);
    world_free(&w);
}

/* ---- stopping -------------------------------------------------------------------------- */

TEST(token_of_a_context_cancels_it_and_those_below_with_the_reason)
{
    struct world w;
    peg_ctx *turn = NULL;
    peg_ctx *call = NULL;
    peg_cancel *cancel = NULL;

    world_init(&w);
    CHECK(peg_ctx_with_cancel(w.ctx, &turn, &cancel, NULL) == PEG_OK);
    CHECK(peg_ctx_with_cancel(turn, &call, NULL, NULL) == PEG_OK);
    peg_cancel_fire(cancel, "the user left");

    CHECK_INT(peg_ctx_check(w.ctx, NULL), PEG_OK);
    CHECK_INT(peg_ctx_check(call, &w.error), PEG_ECANCELED);
    CHECK_STR(peg_cstr(w.error.code), "E_CANCELED");
    CHECK(strstr(w.error.message, "the user left"));
    peg_cancel_unref(cancel);
    peg_ctx_unref(turn);
    peg_ctx_unref(call);
    world_free(&w);
}

TEST(token_outlives_its_context)
{
    struct world w;
    peg_ctx *turn = NULL;
    peg_cancel *cancel = NULL;

    world_init(&w);
    CHECK(peg_ctx_with_cancel(w.ctx, &turn, &cancel, NULL) == PEG_OK);
    peg_ctx_unref(turn);
    peg_cancel_fire(cancel, "nobody hears");

    CHECK_STR(peg_cstr(peg_cancel_reason(cancel)), "nobody hears");
    peg_cancel_unref(cancel);
    world_free(&w);
}

TEST(context_stops_at_its_deadline)
{
    struct world w;
    peg_ctx *ctx;

    world_init(&w);
    ctx = with_deadline(w.ctx, 10);
    peg__clock_manual_advance_ns(w.clock, 10 * PEG_NS_PER_MS - 1);
    CHECK_INT(peg_ctx_check(ctx, &w.error), PEG_OK);
    peg__clock_manual_advance_ns(w.clock, 1);

    CHECK_INT(peg_ctx_check(ctx, &w.error), PEG_ETIMEOUT);
    CHECK_STR(peg_cstr(w.error.code), "E_DEADLINE_EXCEEDED");
    CHECK(!peg__ctx_is_over_budget(ctx));
    peg_ctx_unref(ctx);
    world_free(&w);
}

TEST(earlier_deadline_holds)
{
    struct world w;
    peg_ctx *soon;
    peg_ctx *later;
    peg_ctx *never;
    peg_ctx *past;

    world_init(&w);
    soon = with_deadline(w.ctx, 10);
    later = with_deadline(soon, 20);
    never = with_deadline(soon, INT64_MAX);
    past = with_deadline(soon, -1);

    CHECK(peg_ctx_deadline_ns(later) == 10 * PEG_NS_PER_MS);
    CHECK(peg_ctx_deadline_ns(never) == 10 * PEG_NS_PER_MS);
    CHECK_INT(peg_ctx_check(past, NULL), PEG_ETIMEOUT);
    peg_ctx_unref(soon);
    peg_ctx_unref(later);
    peg_ctx_unref(never);
    peg_ctx_unref(past);
    world_free(&w);
}

TEST(clock_cannot_change_below_a_deadline_or_a_budget)
{
    struct world w;
    peg_ctx *timed;
    peg_ctx *call;
    peg_ctx *ctx = NULL;

    world_init(&w);
    timed = with_deadline(w.ctx, 10);
    call = for_call(w.ctx, 10);

    CHECK_INT(peg_ctx_with_clock(timed, peg_clock_system(), &ctx, &w.error), PEG_ESTATE);
    CHECK_STR(peg_cstr(w.error.code), "E_WRONG_STATE");
    CHECK_INT(peg_ctx_with_clock(call, peg_clock_system(), &ctx, &w.error), PEG_ESTATE);
    CHECK_INT(peg_ctx_with_clock(w.ctx, NULL, &ctx, &w.error), PEG_EINVAL);
    CHECK(!ctx);
    peg_ctx_unref(timed);
    peg_ctx_unref(call);
    world_free(&w);
}

/* ---- waiting ------------------------------------------------------------------------------ */

struct sleeper {
    pthread_t thread;
    peg_ctx *ctx;
    int64_t ms;
    peg_status status;
    peg_error error;
};

static void *sleep_on_ctx(void *user)
{
    struct sleeper *s = user;

    s->status = peg_ctx_wait(s->ctx, s->ms, &s->error);
    return NULL;
}

static void start(struct sleeper *s, peg_ctx *ctx, int64_t ms)
{
    *s = (struct sleeper){.ctx = ctx, .ms = ms};
    CHECK_INT(pthread_create(&s->thread, NULL, sleep_on_ctx, s), 0);
    while (peg_clock_manual_waiting(peg_ctx_clock(ctx)) == 0)
        sched_yield();
}

TEST(waiting_ends_well_when_the_time_has_passed)
{
    struct world w;
    struct sleeper s;

    world_init(&w);
    start(&s, w.ctx, 10);
    peg_clock_manual_advance(w.clock, 10);
    CHECK_INT(pthread_join(s.thread, NULL), 0);

    CHECK_STATUS(s.status, PEG_OK, s.error);
    CHECK_INT(peg_ctx_wait(w.ctx, 0, NULL), PEG_OK);
    CHECK_INT(peg_ctx_wait(w.ctx, -5, NULL), PEG_OK);
    world_free(&w);
}

TEST(waiting_ends_at_once_when_it_is_canceled)
{
    struct world w;
    struct sleeper s;
    peg_ctx *ctx = NULL;
    peg_cancel *cancel = NULL;

    world_init(&w);
    CHECK(peg_ctx_with_cancel(w.ctx, &ctx, &cancel, NULL) == PEG_OK);
    start(&s, ctx, 10);
    peg_cancel_fire(cancel, "no more");
    CHECK_INT(pthread_join(s.thread, NULL), 0);

    CHECK_INT(s.status, PEG_ECANCELED);
    CHECK_STR(peg_cstr(s.error.code), "E_CANCELED");
    CHECK_INT(peg_ctx_wait(ctx, 0, NULL), PEG_ECANCELED);
    peg_cancel_unref(cancel);
    peg_ctx_unref(ctx);
    world_free(&w);
}

TEST(waiting_ends_at_the_deadline)
{
    struct world w;
    struct sleeper s;
    peg_ctx *ctx;

    world_init(&w);
    ctx = with_deadline(w.ctx, 5);
    start(&s, ctx, 10);
    peg_clock_manual_advance(w.clock, 5);
    CHECK_INT(pthread_join(s.thread, NULL), 0);

    CHECK_INT(s.status, PEG_ETIMEOUT);
    CHECK_STR(peg_cstr(s.error.code), "E_DEADLINE_EXCEEDED");
    peg_ctx_unref(ctx);
    world_free(&w);
}

TEST(waiting_on_the_clock_of_the_system_takes_its_time)
{
    peg_ctx *ctx = NULL;
    const int64_t until_ns = peg__clock_in_ms(peg_clock_system(), 3);

    CHECK(peg_ctx_new(&ctx, NULL) == PEG_OK);

    CHECK_INT(peg_ctx_wait(ctx, 3, NULL), PEG_OK);
    CHECK(peg_clock_mono_ns(peg_clock_system()) >= until_ns);
    peg_ctx_unref(ctx);
}

/* ---- telling --------------------------------------------------------------------------------- */

struct heard {
    struct heard *log; /* where all of them write their order */
    int n;
    char order[4];
    char name;
    peg_event last;
};

static void hear(const peg_event *event, void *user)
{
    struct heard *heard = user;

    heard->last = *event;
    heard->log->order[heard->log->n++] = heard->name;
}

TEST(event_goes_to_every_sink_the_nearest_first_with_ids_and_time)
{
    struct world w;
    peg_ctx *outer = NULL;
    peg_ctx *inner = NULL;
    peg_ctx *turn = NULL;
    struct heard log = {0};
    struct heard a = {.log = &log, .name = 'a'};
    struct heard b = {.log = &log, .name = 'b'};
    peg_event event = {.kind = PEG_EVENT_TURN_START, .u.span.started_ms = 17};

    world_init(&w);
    CHECK(peg_ctx_with_events(w.ctx, hear, &a, &outer, NULL) == PEG_OK);
    CHECK(peg_ctx_with_events(outer, hear, &b, &inner, NULL) == PEG_OK);
    CHECK(peg_ctx_with_ids(inner, &(peg_ids){"r", "t", NULL, 3}, &turn, NULL) == PEG_OK);
    peg_clock_manual_advance(w.clock, 1);
    peg_ctx_emit(turn, &event);

    CHECK_STR(peg_cstr(log.order), "ba");
    CHECK(peg__ctx_has_sink(turn) && !peg__ctx_has_sink(w.ctx));
    CHECK_INT(a.last.kind, PEG_EVENT_TURN_START);
    CHECK_INT(a.last.u.span.started_ms, 17);
    CHECK_INT(a.last.at_ms, 5001);
    CHECK_STR(peg_cstr(b.last.ids.turn_id), "t");
    CHECK_INT(b.last.ids.iteration, 3);
    peg_ctx_emit(w.ctx, &event);
    CHECK_INT(log.n, 2);
    peg_ctx_unref(turn);
    peg_ctx_unref(inner);
    peg_ctx_unref(outer);
    world_free(&w);
}

TEST(sink_that_is_none_is_refused)
{
    struct world w;
    peg_ctx *ctx = NULL;

    world_init(&w);

    CHECK_INT(peg_ctx_with_events(w.ctx, NULL, NULL, &ctx, &w.error), PEG_EINVAL);
    CHECK_STR(peg_cstr(w.error.code), "E_INVALID_ARGUMENT");
    world_free(&w);
}

/* ---- out of memory ----------------------------------------------------------------------------
 */

/* One context above the other; each failure leaves those that there are as they were. */
static peg_status grow(peg_ctx **chain, int *freed, peg_error *reterr)
{
    static const char key;
    peg_status status = peg_ctx_new(&chain[0], reterr);

    if (!status)
        status = peg_ctx_with_clock(chain[0], peg_clock_system(), &chain[1], reterr);
    if (!status)
        status = peg_ctx_with_cancel(chain[1], &chain[2], NULL, reterr);
    if (!status)
        status = peg_ctx_with_deadline(chain[2], 1000000, &chain[3], reterr);
    if (!status)
        status = peg_ctx_with_events(chain[3], hear, NULL, &chain[4], reterr);
    if (!status)
        status = peg_ctx_with_gates(chain[4], NULL, NULL, &chain[5], reterr);
    if (!status)
        status = peg_ctx_with_ids(chain[5], &(peg_ids){"r", "t", "d", 0}, &chain[6], reterr);
    if (!status)
        status = peg_ctx_with_value(chain[6], &key, freed, count_free, &chain[7], reterr);
    if (!status)
        status = peg_ctx_with_registry(chain[7], NULL, &chain[8], reterr);
    if (!status)
        status = peg__ctx_for_call(chain[8], 1000, &chain[9], reterr);
    return status;
}

TORTURE(contexts_survive_any_allocation_failure)
{
    peg_ctx *chain[10] = {NULL};
    peg_error error;
    int freed = 0;
    const peg_status status = grow(chain, &freed, &error);

    CHECK(!status || strcmp(error.code, "E_OUT_OF_MEMORY") == 0);
    CHECK(status || peg_ctx_check(chain[9], NULL) == PEG_OK);
    for (int i = 0; i < 10; i++)
        peg_ctx_unref(chain[i]);
    /* A value that could not be kept stays its owner's. */
    CHECK(freed == (chain[7] ? 1 : 0));
    return status;
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { N_THREADS = 4, N_CALLS = 2000 };

static void *make_calls(void *user)
{
    peg_ctx *turn = user;

    for (int i = 0; i < N_CALLS; i++) {
        peg_ctx *call = NULL;

        if (peg__ctx_for_call(turn, 30000, &call, NULL))
            return turn;
        if (i == N_CALLS / 2)
            peg_cancel_fire(peg_ctx_cancel(call), "one of them");
        else if (peg_ctx_check(call, NULL))
            return turn;
        peg_ctx_unref(call);
    }
    return NULL;
}

TEST(many_threads_make_calls_below_one_context)
{
    peg_ctx *root = NULL;
    peg_ctx *turn = NULL;
    pthread_t threads[N_THREADS];

    CHECK(peg_ctx_new(&root, NULL) == PEG_OK);
    CHECK(peg_ctx_with_cancel(root, &turn, NULL, NULL) == PEG_OK);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, make_calls, turn), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *failed = NULL;

        CHECK_INT(pthread_join(threads[i], &failed), 0);
        CHECK(!failed);
    }
    CHECK_INT(peg_ctx_check(turn, NULL), PEG_OK);
    peg_ctx_unref(turn);
    peg_ctx_unref(root);
}

static void ignore(const peg_event *event, void *user)
{
    (void)event;
    (void)user;
}

TEST(every_way_to_a_context_takes_no_parent_for_a_fresh_one)
{
    static int key;
    peg_ctx *made[7] = {NULL};
    const peg_ids ids = {.turn_id = "t", .iteration = -1};

    CHECK_INT(peg_ctx_with_cancel(NULL, &made[0], NULL, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_deadline(NULL, 1000, &made[1], NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, peg_clock_system(), &made[2], NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_events(NULL, ignore, NULL, &made[3], NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_gates(NULL, NULL, NULL, &made[4], NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_ids(NULL, &ids, &made[5], NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_value(NULL, &key, &key, NULL, &made[6], NULL), PEG_OK);

    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
        CHECK(peg_ctx_clock(made[i]) == peg_clock_system());
        CHECK_INT(peg_ctx_check(made[i], NULL), PEG_OK);
        CHECK_INT(peg_ctx_ids(made[i])->iteration, -1);
        peg_ctx_unref(made[i]);
    }
}
