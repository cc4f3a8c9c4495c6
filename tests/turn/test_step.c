/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "pegboard/step.h"

/* ---- fixture: a controller, a context whose clock stands still, the pauses it emits ------------
 */

struct world {
    peg_clock *clock;
    peg_ctx *ctx;
    peg_cancel *cancel;
    peg_stepper *steps;
    atomic_int n_events;
    pthread_mutex_t lock;
    peg_pause_info last; /* under lock: the last one */
    char summary[64];
    char session[300];
    bool continues;             /* the listener lets the pause go on at once */
    peg_step_decision decision; /* with this */
};

static void hear(const peg_event *event, void *user)
{
    const peg_pause_event *pause = &event->u.pause;
    struct world *w = user;

    if (event->kind != PEG_EVENT_PAUSE)
        return;
    pthread_mutex_lock(&w->lock);
    w->last = (peg_pause_info){.n_pending = pause->n_pending, .deadline_ms = pause->deadline_ms};
    snprintf(w->last.pause_id, sizeof(w->last.pause_id), "%s", pause->pause_id);
    snprintf(w->last.phase, sizeof(w->last.phase), "%s", pause->phase);
    snprintf(w->summary, sizeof(w->summary), "%s", pause->summary);
    snprintf(w->session, sizeof(w->session), "%s", pause->session_id);
    pthread_mutex_unlock(&w->lock);
    if (w->continues)
        CHECK_INT(peg_stepper_continue(w->steps, pause->pause_id, w->decision, NULL, NULL), PEG_OK);
    atomic_fetch_add(&w->n_events, 1);
}

static void world_init(struct world *w, int64_t max_wait_ms)
{
    peg_ctx *c[3] = {NULL};

    *w = (struct world){0};
    pthread_mutex_init(&w->lock, NULL);
    CHECK(peg_clock_manual_new(5000, &w->clock, NULL) == PEG_OK);
    CHECK(peg_ctx_with_clock(NULL, w->clock, &c[0], NULL) == PEG_OK);
    CHECK(peg_ctx_with_cancel(c[0], &c[1], &w->cancel, NULL) == PEG_OK);
    CHECK(peg_ctx_with_events(c[1], hear, w, &c[2], NULL) == PEG_OK);
    peg_ctx_unref(c[0]);
    peg_ctx_unref(c[1]);
    w->ctx = c[2];
    CHECK(peg_stepper_new(max_wait_ms, &w->steps, NULL) == PEG_OK);
}

static void world_free(struct world *w)
{
    peg_stepper_unref(w->steps);
    peg_ctx_unref(w->ctx);
    peg_cancel_unref(w->cancel);
    peg_clock_manual_free(w->clock);
    pthread_mutex_destroy(&w->lock);
}

static void enable(struct world *w, const char *session)
{
    peg_error error;

    CHECK_STATUS(peg_stepper_enable(w->steps, peg_cstr(session), &error), PEG_OK, error);
}

/* ---- a run on its own thread, which pauses --------------------------------------------------- */

struct run {
    pthread_t thread;
    struct world *world;
    peg_ctx *ctx;
    const char *session;
    char pause_id[40];
    peg_status status;
    peg_step_decision decision;
    peg_error error;
};

static void *pause_once(void *user)
{
    struct run *r = user;

    r->decision = (peg_step_decision)-1;
    r->status = peg_stepper_pause(r->world->steps, r->ctx, peg_cstr(r->session), "after_inference",
                                  2, &r->decision, &r->error);
    return NULL;
}

/* Returns when the run sleeps at its pause. */
static void start_in(struct run *r, struct world *w, peg_ctx *ctx, const char *session)
{
    const size_t n_waiting = peg_clock_manual_waiting(w->clock);

    *r = (struct run){.world = w, .ctx = ctx, .session = session};
    CHECK_INT(pthread_create(&r->thread, NULL, pause_once, r), 0);
    while (peg_clock_manual_waiting(w->clock) == n_waiting)
        sched_yield();
    pthread_mutex_lock(&w->lock);
    memcpy(r->pause_id, w->last.pause_id, sizeof(r->pause_id));
    pthread_mutex_unlock(&w->lock);
}

static void start(struct run *r, struct world *w, const char *session)
{
    start_in(r, w, w->ctx, session);
}

static peg_status join(struct run *r)
{
    CHECK_INT(pthread_join(r->thread, NULL), 0);
    return r->status;
}

/* ---- pausing sessions ----------------------------------------------------------------------- */

/* G104 */
TEST(a_session_that_is_not_enabled_goes_on_at_once_and_nobody_hears_of_it)
{
    struct world w;
    struct run r = {.session = "other"};

    world_init(&w, 0);
    enable(&w, "mine");
    r.world = &w;
    r.ctx = w.ctx;

    pause_once(&r);

    CHECK_INT(r.status, PEG_OK);
    CHECK_INT(r.decision, PEG_STEP_CONTINUE);
    CHECK_INT(w.n_events, 0);
    CHECK_INT(peg_stepper_n_waiting(w.steps), 0);
    world_free(&w);
}

/* G104 */
TEST(a_session_that_is_enabled_waits_and_the_event_says_what_for)
{
    struct world w;
    struct run r;

    world_init(&w, 0);
    enable(&w, "mine");

    start(&r, &w, "mine");

    CHECK_INT(peg_stepper_n_waiting(w.steps), 1);
    CHECK_INT(w.n_events, 1);
    CHECK_STR(peg_cstr(w.last.phase), "after_inference");
    CHECK_STR(peg_cstr(w.summary), "Review next action");
    CHECK_STR(peg_cstr(w.session), "mine");
    CHECK_INT(w.last.n_pending, 2);
    CHECK_INT(w.last.deadline_ms, 5000 + 30000);
    peg_stepper_disable(w.steps, peg_cstr("mine"));
    CHECK_INT(join(&r), PEG_OK);
    world_free(&w);
}

TEST(a_pause_after_tools_asks_to_review_their_results)
{
    struct world w;
    peg_step_decision decision;

    world_init(&w, 0);
    enable(&w, "mine");
    w.continues = true;

    CHECK_INT(
        peg_stepper_pause(w.steps, w.ctx, peg_cstr("mine"), "after_tools", 0, &decision, NULL),
        PEG_OK);

    CHECK_STR(peg_cstr(w.summary), "Review tool results");
    world_free(&w);
}

TEST(a_session_without_an_id_never_pauses)
{
    struct world w;
    peg_step_decision decision;

    world_init(&w, 0);

    CHECK_INT(peg_stepper_pause(w.steps, w.ctx, (peg_str){0}, "after_tools", 0, &decision, NULL),
              PEG_OK);

    CHECK_INT(decision, PEG_STEP_CONTINUE);
    world_free(&w);
}

TEST(enabling_twice_and_disabling_what_is_not_enabled_are_silent)
{
    struct world w;

    world_init(&w, 0);
    enable(&w, "mine");
    enable(&w, "mine");
    CHECK(peg_stepper_is_enabled(w.steps, peg_cstr("mine")));

    peg_stepper_disable(w.steps, peg_cstr("mine"));
    peg_stepper_disable(w.steps, peg_cstr("mine"));

    CHECK(!peg_stepper_is_enabled(w.steps, peg_cstr("mine")));
    world_free(&w);
}

/* ---- going on ----------------------------------------------------------------------------------
 */

/* G105 */
TEST(continue_lets_a_pause_go_and_tells_what_it_was_once)
{
    struct world w;
    struct run r;
    peg_pause_info info;
    peg_error error;

    world_init(&w, 0);
    enable(&w, "mine");
    start(&r, &w, "mine");

    CHECK_STATUS(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_SKIP_TOOLS, &info, &error),
                 PEG_OK, error);
    CHECK_INT(join(&r), PEG_OK);

    CHECK_INT(r.decision, PEG_STEP_SKIP_TOOLS);
    CHECK_STR(peg_cstr(info.pause_id), r.pause_id);
    CHECK_STR(peg_cstr(info.session_id), "mine");
    CHECK_STR(peg_cstr(info.phase), "after_inference");
    CHECK_INT(info.n_pending, 2);
    CHECK_INT(info.deadline_ms, 35000);
    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_CONTINUE, NULL, &error),
              PEG_ENOTFOUND);
    CHECK_STR(peg_cstr(error.code), "E_STEP_PAUSE");
    CHECK_INT(peg_stepper_n_waiting(w.steps), 0);
    world_free(&w);
}

TEST(a_pause_can_be_looked_up_while_it_waits)
{
    struct world w;
    struct run r;
    peg_pause_info info = {.n_pending = 77};

    world_init(&w, 0);
    enable(&w, "mine");
    start(&r, &w, "mine");

    CHECK(peg_stepper_lookup(w.steps, r.pause_id, &info));
    CHECK_INT(info.n_pending, 2);
    CHECK(!peg_stepper_lookup(w.steps, "nope", &info));

    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_ABORT, NULL, NULL), PEG_OK);
    CHECK_INT(join(&r), PEG_OK);
    CHECK_INT(r.decision, PEG_STEP_ABORT);
    CHECK(!peg_stepper_lookup(w.steps, r.pause_id, &info));
    world_free(&w);
}

TEST(continue_refuses_a_decision_that_there_is_not)
{
    struct world w;
    struct run r;
    peg_error error;

    world_init(&w, 0);
    enable(&w, "mine");
    start(&r, &w, "mine");

    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, (peg_step_decision)7, NULL, &error),
              PEG_EINVAL);

    CHECK_STR(peg_cstr(error.code), "E_INVALID_ARGUMENT");
    CHECK_INT(peg_stepper_n_waiting(w.steps), 1);
    peg_stepper_disable(w.steps, peg_cstr("mine"));
    CHECK_INT(join(&r), PEG_OK);
    world_free(&w);
}

TEST(a_listener_may_let_the_pause_go_on_from_within_the_event)
{
    struct world w;
    peg_step_decision decision = PEG_STEP_CONTINUE;

    world_init(&w, -1);
    enable(&w, "mine");
    w.continues = true;
    w.decision = PEG_STEP_ABORT;

    CHECK_INT(
        peg_stepper_pause(w.steps, w.ctx, peg_cstr("mine"), "after_inference", 1, &decision, NULL),
        PEG_OK);

    CHECK_INT(decision, PEG_STEP_ABORT);
    CHECK_INT(w.n_events, 1);
    world_free(&w);
}

/* G106 */
TEST(a_pause_goes_on_by_itself_when_its_time_is_over_and_is_gone_then)
{
    struct world w;
    struct run r;

    world_init(&w, 1000);
    enable(&w, "mine");
    start(&r, &w, "mine");
    CHECK_INT(w.last.deadline_ms, 6000);

    peg_clock_manual_advance(w.clock, 1000);

    CHECK_INT(join(&r), PEG_OK);
    CHECK_INT(r.decision, PEG_STEP_CONTINUE);
    CHECK_INT(peg_stepper_n_waiting(w.steps), 0);
    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_CONTINUE, NULL, NULL),
              PEG_ENOTFOUND);
    world_free(&w);
}

TEST(without_a_time_a_pause_waits_however_long_it_takes)
{
    struct world w;
    struct run r;

    world_init(&w, -1);
    enable(&w, "mine");
    start(&r, &w, "mine");

    CHECK(w.last.deadline_ms == INT64_MAX);
    peg_clock_manual_advance(w.clock, (int64_t)1000 * 86400 * 365);
    CHECK_INT(peg_stepper_n_waiting(w.steps), 1);

    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_CONTINUE, NULL, NULL), PEG_OK);
    CHECK_INT(join(&r), PEG_OK);
    world_free(&w);
}

TEST(a_time_too_far_away_to_count_is_never)
{
    struct world w;
    struct run r;

    world_init(&w, INT64_MAX);
    enable(&w, "mine");
    start(&r, &w, "mine");

    CHECK(w.last.deadline_ms == INT64_MAX);
    peg_stepper_disable(w.steps, peg_cstr("mine"));
    CHECK_INT(join(&r), PEG_OK);
    world_free(&w);
}

/* G107 */
TEST(cancelling_takes_the_pause_away_and_says_so)
{
    struct world w;
    struct run r;

    world_init(&w, 0);
    enable(&w, "mine");
    start(&r, &w, "mine");

    peg_cancel_fire(w.cancel, "enough");

    CHECK_INT(join(&r), PEG_ECANCELED);
    CHECK_STR(peg_cstr(r.error.code), "E_CANCELED");
    CHECK(r.decision == (peg_step_decision)-1);
    CHECK_INT(peg_stepper_n_waiting(w.steps), 0);
    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_CONTINUE, NULL, NULL),
              PEG_ENOTFOUND);
    world_free(&w);
}

/* G107 */
TEST(a_deadline_of_the_context_ends_a_pause)
{
    struct world w;
    struct run r;
    peg_ctx *ctx = NULL;

    world_init(&w, 1000);
    enable(&w, "mine");
    CHECK_INT(peg_ctx_with_deadline(w.ctx, 10, &ctx, NULL), PEG_OK);
    start_in(&r, &w, ctx, "mine");

    peg_clock_manual_advance(w.clock, 10);

    CHECK_INT(join(&r), PEG_ETIMEOUT);
    CHECK_STR(peg_cstr(r.error.code), "E_DEADLINE_EXCEEDED");
    CHECK_INT(peg_stepper_n_waiting(w.steps), 0);
    peg_ctx_unref(ctx);
    world_free(&w);
}

TEST(the_time_of_a_call_stands_still_while_a_person_thinks)
{
    struct world w;
    struct run r;
    peg_ctx *ctx = NULL;

    world_init(&w, -1);
    enable(&w, "mine");
    CHECK_INT(peg__ctx_for_call(w.ctx, 10, &ctx, NULL), PEG_OK);
    start_in(&r, &w, ctx, "mine");

    peg_clock_manual_advance(w.clock, 1000);
    CHECK_INT(peg_stepper_continue(w.steps, r.pause_id, PEG_STEP_CONTINUE, NULL, NULL), PEG_OK);

    CHECK_INT(join(&r), PEG_OK);
    CHECK_INT(peg_ctx_check(ctx, NULL), PEG_OK);
    peg_ctx_unref(ctx);
    world_free(&w);
}

/* G108 */
TEST(disabling_a_session_lets_all_of_its_pauses_go_and_no_other)
{
    struct world w;
    struct run mine[3];
    struct run other;

    world_init(&w, -1);
    enable(&w, "mine");
    enable(&w, "mine too");
    for (int i = 0; i < 3; i++)
        start(&mine[i], &w, "mine");
    start(&other, &w, "mine too");
    CHECK_INT(peg_stepper_n_waiting(w.steps), 4);

    peg_stepper_disable(w.steps, peg_cstr("mine"));

    CHECK_INT(peg_stepper_n_waiting(w.steps), 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(join(&mine[i]), PEG_OK);
        CHECK_INT(mine[i].decision, PEG_STEP_CONTINUE);
    }
    CHECK(peg_stepper_lookup(w.steps, other.pause_id, &(peg_pause_info){0}));
    peg_stepper_disable(w.steps, peg_cstr("mine too"));
    CHECK_INT(join(&other), PEG_OK);
    world_free(&w);
}

/* ---- stress: pauses against enabling, disabling and continuing ----------------------------------
 */

enum { N_PAUSERS = 4, N_ROUNDS = 500 };

struct stress {
    peg_stepper *steps;
    peg_ctx *ctx;
    atomic_bool is_over;
    atomic_int n_failed;
    atomic_int n_paused;
};

static void count_pause(const peg_event *event, void *user)
{
    (void)event;
    atomic_fetch_add(&((struct stress *)user)->n_paused, 1);
}

static void *pause_again_and_again(void *user)
{
    struct stress *s = user;

    while (!atomic_load(&s->is_over)) {
        peg_step_decision decision = (peg_step_decision)-1;

        if (peg_stepper_pause(s->steps, s->ctx, peg_cstr("mine"), "after_tools", 0, &decision,
                              NULL) != PEG_OK ||
            decision != PEG_STEP_CONTINUE)
            atomic_fetch_add(&s->n_failed, 1);
    }
    return NULL;
}

/* A pause that slipped in after the session was disabled would wait for ever here: nothing lets it
 * go, and there is no time after which it goes by itself. */
/* G110 */
TEST(nobody_waits_once_a_session_is_disabled_whoever_was_about_to)
{
    struct stress s = {0};
    pthread_t threads[N_PAUSERS];

    CHECK_INT(peg_stepper_new(-1, &s.steps, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_events(NULL, count_pause, &s, &s.ctx, NULL), PEG_OK);
    for (int i = 0; i < N_PAUSERS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, pause_again_and_again, &s), 0);

    for (int round = 0; round < N_ROUNDS; round++) {
        const int n = atomic_load(&s.n_paused);

        CHECK_INT(peg_stepper_enable(s.steps, peg_cstr("mine"), NULL), PEG_OK);
        /* Every other round gives them time to pause, the rest is a race. */
        while (round % 2 == 0 && atomic_load(&s.n_paused) == n)
            sched_yield();
        peg_stepper_disable(s.steps, peg_cstr("mine"));
        CHECK_INT(peg_stepper_n_waiting(s.steps), 0);
    }
    atomic_store(&s.is_over, true);

    for (int i = 0; i < N_PAUSERS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(s.n_failed, 0);
    peg_ctx_unref(s.ctx);
    peg_stepper_unref(s.steps);
}

/* ---- limits, hostile ids, memory ---------------------------------------------------------------
 */

static void check_refused(struct world *w, peg_str id)
{
    peg_error error;

    CHECK_INT(peg_stepper_enable(w->steps, id, &error), PEG_EINVAL);
    CHECK_STR(peg_cstr(error.code), "E_INVALID_ARGUMENT");
    CHECK(!peg_stepper_is_enabled(w->steps, id));
}

TEST(enable_refuses_ids_that_are_none)
{
    struct world w;
    char id[PEG_LIMIT_ID_BYTES + 1];

    world_init(&w, 0);
    memset(id, 'x', sizeof(id));

    check_refused(&w, peg_cstr(""));
    check_refused(&w, peg__strn(id, sizeof(id)));
    check_refused(&w, peg__strn("a\0b", 3));
    check_refused(&w, peg_cstr("\xff"));
    CHECK_INT(peg_stepper_enable(w.steps, peg__strn(id, sizeof(id) - 1), NULL), PEG_OK);
    world_free(&w);
}

TEST(a_long_session_id_is_cut_at_a_character_in_what_is_looked_up_and_whole_in_the_event)
{
    struct world w;
    struct run r;
    char id[202];
    peg_pause_info info;

    world_init(&w, 0);
    /* 126 letters, then characters of two bytes, one of which would be split. */
    memset(id, 'x', 126);
    for (size_t i = 126; i < 200; i += 2)
        memcpy(id + i, "\xc3\xa9", 3);
    enable(&w, id);

    start(&r, &w, id);

    CHECK(peg_stepper_lookup(w.steps, r.pause_id, &info));
    CHECK_INT(strlen(info.session_id), 126);
    CHECK_STR(peg_cstr(w.session), id);
    peg_stepper_disable(w.steps, peg_cstr(id));
    CHECK_INT(join(&r), PEG_OK);
    world_free(&w);
}

TEST(enable_stops_at_the_limit_of_sessions)
{
    struct world w;
    char id[16];
    peg_error error;

    world_init(&w, 0);
    for (int i = 0; i < PEG_LIMIT_STEP_SESSIONS; i++) {
        snprintf(id, sizeof(id), "s%d", i);
        enable(&w, id);
    }

    CHECK_INT(peg_stepper_enable(w.steps, peg_cstr("more"), &error), PEG_ELIMIT);

    CHECK_STR(peg_cstr(error.code), "E_STEPS_FULL");
    CHECK(strstr(error.message, "disable those that have ended"));
    enable(&w, "s1");
    peg_stepper_disable(w.steps, peg_cstr("s1"));
    enable(&w, "more");
    world_free(&w);
}

TORTURE(a_controller_survives_any_allocation_failure)
{
    peg_stepper *steps = NULL;
    peg_status status = peg_stepper_new(0, &steps, NULL);

    if (!status)
        status = peg_stepper_enable(steps, peg_cstr("a"), NULL);
    if (!status)
        status = peg_stepper_enable(steps, peg_cstr("b"), NULL);
    if (status && steps)
        CHECK(!peg_stepper_is_enabled(steps, peg_cstr("b")));
    peg_stepper_unref(steps);
    return status;
}
