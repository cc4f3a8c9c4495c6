/* SPDX-License-Identifier: Apache-2.0 */

/* Deadlines and cancellation of calls: inline, where they are delivered, and on a pool, where they
 * are enforced. The clock is the test's; nothing sleeps. */

#include <pthread.h>
#include <sched.h>

#include "../instrumented.h"
#include "core/run/run.h"
#include "fixture.h"
#include "pegboard/pool.h"

/* ---- fixture -------------------------------------------------------------------- */

/* Holds handlers that never return by themselves. */
struct trap {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n_inside;
    bool is_open;
};

static struct trap trap = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void stay(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    pthread_mutex_lock(&trap.lock);
    trap.n_inside++;
    pthread_cond_broadcast(&trap.changed);
    while (!trap.is_open)
        pthread_cond_wait(&trap.changed, &trap.lock);
    trap.n_inside--;
    pthread_mutex_unlock(&trap.lock);
    /* Its time is over: this goes nowhere, and hurts nobody. */
    peg_call_reply(call, peg_cstr("late"));
}

static void set_trap(bool is_open)
{
    pthread_mutex_lock(&trap.lock);
    trap.is_open = is_open;
    pthread_cond_broadcast(&trap.changed);
    pthread_mutex_unlock(&trap.lock);
}

static void await_inside(unsigned n)
{
    pthread_mutex_lock(&trap.lock);
    while (trap.n_inside < n)
        pthread_cond_wait(&trap.changed, &trap.lock);
    pthread_mutex_unlock(&trap.lock);
}

static void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("ok"));
}

static void be_late(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    CHECK(!peg_call_should_stop(call));
    peg_clock_manual_advance(w->clock, 31000);
    CHECK(peg_call_should_stop(call));
    peg_call_reply(call, peg_cstr("late"));
}

/* A call that runs on a thread of its own, so that the test can move the clock meanwhile. */
struct caller {
    struct world *w;
    const char *tool;
    peg_run_options options;
    peg_record *record;
    pthread_t thread;
};

static void *call_now(void *user)
{
    struct caller *c = user;

    if (world_call(c->w, c->tool, "{}", &c->options, &c->record))
        c->record = NULL;
    return NULL;
}

static void caller_start(struct caller *c)
{
    CHECK_INT(pthread_create(&c->thread, NULL, call_now, c), 0);
}

static void caller_join(struct caller *c)
{
    pthread_join(c->thread, NULL);
    CHECK(c->record != NULL);
}

static void await_waiting(const peg_clock *clock)
{
    while (peg_clock_manual_waiting(clock) == 0)
        sched_yield();
}

static void await_abandoned(peg_pool *pool, unsigned n)
{
    while (peg_pool_info(pool).n_abandoned != n)
        sched_yield();
}

static void open_on_pool(struct world *w, peg_pool **ret_pool)
{
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = 1, .max_abandoned = 2};

    set_trap(false);
    CHECK_INT(world_open(w), PEG_OK);
    CHECK_INT(world_add_fn(w, "stay", NULL, stay), PEG_OK);
    CHECK_INT(world_add_fn(w, "answer", NULL, answer), PEG_OK);
    CHECK_INT(peg_pool_new(&options, ret_pool, NULL), PEG_OK);
}

/* One call of a handler that does not return, given up at its deadline. */
static peg_record *lose_one(struct world *w, peg_pool *pool, unsigned n_before)
{
    struct caller c = {
        .w = w,
        .tool = "stay",
        .options = {PEG_RUN_OPTIONS_INIT, .pool = pool, .settings.timeout_ms = 1000}};

    caller_start(&c);
    await_inside(n_before + 1);
    await_waiting(w->clock);
    peg_clock_manual_advance(w->clock, 1000);
    caller_join(&c);
    return c.record;
}

static void close_on_pool(struct world *w, peg_pool *pool)
{
    set_trap(true);
    await_abandoned(pool, 0);
    peg_pool_unref(pool);
    world_close(w);
}

/* ---- inline --------------------------------------------------------------------- */

/* G78 */
TEST(a_late_answer_of_an_inline_handler_is_a_timeout_and_dropped)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "late", NULL, be_late), PEG_OK);
    CHECK_INT(world_call(&w, "late", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(peg_record_text(record), "timeout_ms 30000");
    CHECK_INT(peg_record_result_kind(record), PEG_RESULT_TEXT);
    CHECK_STR(peg__str(w.log), "tool_start limit tool_end ");
    peg_record_unref(record);
    world_close(&w);
}

static void stop_in_time(peg_call *call, const peg_json *args, void *user)
{
    const struct world *w = user;
    const peg_error why = {.code = "E_HALF", .cause = "", .message = "stopped after page 3"};

    (void)args;
    peg_clock_manual_advance(w->clock, 31000);
    CHECK(peg_call_should_stop(call));
    peg_call_fail_with(call, &why);
}

TEST(a_handler_that_stops_at_its_deadline_is_a_timeout_with_its_own_words_and_code)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "polite", NULL, stop_in_time), PEG_OK);
    CHECK_INT(world_call(&w, "polite", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_TIMEOUT");
    CHECK_STR(peg__str(peg_record_cause(record)), "E_HALF");
    CHECK_CONTAINS(peg_record_text(record), "timeout_ms 30000");
    CHECK_CONTAINS(peg_record_text(record), "stopped after page 3");
    peg_record_unref(record);
    world_close(&w);
}

TEST(a_tool_has_a_timeout_of_its_own_or_none)
{
    struct world w;
    peg_record *patient = NULL;
    peg_record *hasty = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "hasty", .description = "h",
                                            .run = be_late, .user = &w, .timeout_ms = 30500}),
              PEG_OK);
    CHECK_INT(world_add(&w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "patient",
                                            .description = "p", .run = answer, .timeout_ms = -1}),
              PEG_OK);
    CHECK_INT(world_call(&w, "hasty", "{}", NULL, &hasty), PEG_OK);
    CHECK_INT(world_call(&w, "patient", "{}", NULL, &patient), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(hasty)), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(peg_record_text(hasty), "timeout_ms 30500");
    CHECK(!peg_record_is_error(patient));
    peg_record_unref(hasty);
    peg_record_unref(patient);
    world_close(&w);
}

static void hear_limit(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_LIMIT)
        snprintf(user, sizeof(event->error->message), "%s", event->error->message);
}

TEST(a_timeout_tells_which_time_was_over)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("late")};
    char limit[sizeof(((peg_error *)NULL)->message)] = "";
    struct world w;
    peg_ctx *hurried = NULL;
    peg_ctx *heard = NULL;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "late", .description = "l",
                                            .run = be_late, .user = &w, .timeout_ms = -1}),
              PEG_OK);
    CHECK_INT(peg_ctx_with_deadline(w.ctx, 100, &hurried, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_events(hurried, hear_limit, limit, &heard, NULL), PEG_OK);
    CHECK_INT(peg_call_run(heard, &request, NULL, &record, NULL), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(peg_record_text(record), "(a deadline around it)");
    CHECK_STR(peg__str(limit), "tool 'late' reached a deadline around it");
    peg_record_unref(record);
    peg_ctx_unref(heard);
    peg_ctx_unref(hurried);
    world_close(&w);
}

TEST(a_call_below_a_canceled_context_does_not_start)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "answer", NULL, answer), PEG_OK);
    peg_cancel_fire(w.cancel, "the user left");
    CHECK_INT(world_call(&w, "answer", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_CANCELED");
    CHECK_CONTAINS(peg_record_text(record), "the user left");
    CHECK_INT(peg_record_attempts(record), 0);
    CHECK_STR(peg__str(w.log), "");
    peg_record_unref(record);
    world_close(&w);
}

static void answer_when_canceled(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    peg_cancel_fire(w->cancel, "too late");
    CHECK(peg_call_should_stop(call));
    peg_call_reply(call, peg_cstr("already done"));
}

TEST(an_answer_that_was_given_in_spite_of_a_cancellation_stands)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "done", NULL, answer_when_canceled), PEG_OK);
    CHECK_INT(world_call(&w, "done", "{}", NULL, &record), PEG_OK);

    CHECK(!peg_record_is_error(record));
    CHECK_STR(text_of(record), "already done");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- on a pool ------------------------------------------------------------------ */

TEST(a_handler_on_a_pool_answers_as_it_would_inline)
{
    struct world w;
    peg_pool *pool = NULL;
    peg_record *record = NULL;

    open_on_pool(&w, &pool);
    CHECK_INT(world_call(&w, "answer", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .pool = pool},
                         &record),
              PEG_OK);

    CHECK_STR(text_of(record), "ok");
    CHECK_STR(peg__str(w.log), "tool_start tool_end ");
    peg_record_unref(record);
    close_on_pool(&w, pool);
}

/* G78 */
TEST(a_handler_that_never_returns_is_given_up_and_others_go_on)
{
    struct world w;
    peg_pool *pool = NULL;
    peg_record *lost;
    peg_record *record = NULL;

    open_on_pool(&w, &pool);
    lost = lose_one(&w, pool, 0);
    CHECK_INT(world_call(&w, "answer", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .pool = pool},
                         &record),
              PEG_OK);

    CHECK_STR(peg__str(peg_record_code(lost)), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(peg_record_text(lost), "whether it had its effect is not known");
    CHECK_STR(text_of(record), "ok");
    CHECK_INT(peg_pool_info(pool).n_abandoned, 1);
    peg_record_unref(lost);
    peg_record_unref(record);
    close_on_pool(&w, pool);
}

TEST(the_abandoned_are_bounded_and_a_pool_recovers_when_they_return)
{
    struct world w;
    peg_pool *pool = NULL;
    peg_record *refused = NULL;
    peg_record *after = NULL;

    open_on_pool(&w, &pool);
    peg_record_unref(lose_one(&w, pool, 0));
    peg_record_unref(lose_one(&w, pool, 1));
    CHECK_INT(world_call(&w, "answer", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .pool = pool},
                         &refused),
              PEG_OK);

    CHECK_STR(peg__str(peg_record_code(refused)), "E_POOL_ABANDONED");
    CHECK_CONTAINS(peg_record_text(refused), "max_abandoned");
    set_trap(true);
    await_abandoned(pool, 0);
    CHECK_INT(world_call(&w, "answer", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .pool = pool},
                         &after),
              PEG_OK);
    CHECK_STR(text_of(after), "ok");
    CHECK_INT(peg_pool_info(pool).total_abandoned, 2);
    peg_record_unref(refused);
    peg_record_unref(after);
    close_on_pool(&w, pool);
}

TEST(a_record_of_a_lost_call_outlives_it_and_the_other_way_round)
{
    struct world w;
    peg_pool *pool = NULL;
    peg_record *lost;

    open_on_pool(&w, &pool);
    lost = lose_one(&w, pool, 0);
    set_trap(true);
    await_abandoned(pool, 0);

    CHECK_STR(peg__str(peg_record_code(lost)), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(peg_record_text(lost), "stay");
    peg_record_unref(lost);
    close_on_pool(&w, pool);
}

TEST(a_cancellation_gives_a_handler_on_a_pool_up_after_a_grace)
{
    struct world w;
    peg_pool *pool = NULL;
    struct caller c = {.w = &w, .tool = "stay", .options = {PEG_RUN_OPTIONS_INIT}};

    open_on_pool(&w, &pool);
    c.options.pool = pool;
    caller_start(&c);
    await_inside(1);
    peg_cancel_fire(w.cancel, "the user left");
    while (!peg_pool_info(pool).total_abandoned) {
        if (peg_clock_manual_waiting(w.clock))
            peg_clock_manual_advance(w.clock, 100);
        sched_yield();
    }
    caller_join(&c);

    CHECK_STR(peg__str(peg_record_code(c.record)), "E_TOOL_CANCELED");
    CHECK_CONTAINS(peg_record_text(c.record), "the user left");
    peg_record_unref(c.record);
    close_on_pool(&w, pool);
}

/* ---- awaited late, as of several calls at once the last ------------------------- */

static void fail(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "the disk is full");
}

static void begin_on_pool(struct world *w, peg_pool *pool, const char *tool, struct peg__run *run)
{
    const peg_run_options options = {PEG_RUN_OPTIONS_INIT, .pool = pool,
                                     .settings.timeout_ms = 1000};
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c"),
                                      .tool = peg_cstr(tool)};

    CHECK_INT(peg__run_begin(run, w->ctx, &request, &options, NULL, NULL), PEG_OK);
}

static void await_idle(peg_pool *pool)
{
    peg_pool_state state;

    do {
        sched_yield();
        state = peg_pool_info(pool);
    } while (state.n_queued || state.n_running);
}

TEST(an_answer_that_came_in_time_counts_however_late_it_is_awaited)
{
    struct world w;
    peg_pool *pool = NULL;
    struct peg__run run;
    peg_record *record = NULL;

    open_on_pool(&w, &pool);
    begin_on_pool(&w, pool, "answer", &run);
    await_idle(pool);
    peg_clock_manual_advance(w.clock, 5000);
    CHECK_INT(peg__run_end(&run, &record, NULL), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "");
    CHECK_STR(text_of(record), "ok");
    peg_record_unref(record);
    close_on_pool(&w, pool);
}

TEST(a_failure_is_not_taken_for_the_cancellation_that_came_after_it)
{
    struct world w;
    peg_pool *pool = NULL;
    struct peg__run run;
    peg_record *record = NULL;

    open_on_pool(&w, &pool);
    CHECK_INT(world_add_fn(&w, "fail", NULL, fail), PEG_OK);
    begin_on_pool(&w, pool, "fail", &run);
    await_idle(pool);
    peg_cancel_fire(w.cancel, "the user left");
    CHECK_INT(peg__run_end(&run, &record, NULL), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_CONTAINS(peg_record_text(record), "the disk is full");
    peg_record_unref(record);
    close_on_pool(&w, pool);
}

/* ---- handlers that never began -------------------------------------------------- */

TEST(a_call_whose_time_ran_out_in_the_queue_has_no_attempt)
{
    struct world w;
    peg_pool *pool = NULL;
    struct peg__run first;
    struct peg__run second;
    peg_record *lost = NULL;
    peg_record *record = NULL;

    open_on_pool(&w, &pool);
    begin_on_pool(&w, pool, "stay", &first);
    await_inside(1);
    begin_on_pool(&w, pool, "answer", &second);
    peg_clock_manual_advance(w.clock, 1000);
    CHECK_INT(peg__run_end(&second, &record, NULL), PEG_OK);
    CHECK_INT(peg__run_end(&first, &lost, NULL), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(peg_record_text(record), "waited for a thread (timeout_ms 1000)");
    CHECK_INT(peg_record_attempts(record), 0);
    CHECK_INT(peg_record_attempts(lost), 1);
    peg_record_unref(record);
    peg_record_unref(lost);
    close_on_pool(&w, pool);
}

TEST(a_call_that_a_pool_refuses_has_no_attempt_and_the_limit_is_told)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("answer")};
    char limit[sizeof(((peg_error *)NULL)->message)] = "";
    struct world w;
    peg_pool *pool = NULL;
    peg_ctx *heard = NULL;
    peg_record *record = NULL;

    open_on_pool(&w, &pool);
    CHECK_INT(peg_ctx_with_events(w.ctx, hear_limit, limit, &heard, NULL), PEG_OK);
    peg_record_unref(lose_one(&w, pool, 0));
    peg_record_unref(lose_one(&w, pool, 1));
    CHECK_INT(peg_call_run(heard, &request, &(peg_run_options){PEG_RUN_OPTIONS_INIT, .pool = pool},
                           &record, NULL),
              PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_POOL_ABANDONED");
    CHECK_INT(peg_record_attempts(record), 0);
    CHECK_CONTAINS(peg__str(limit), "max_abandoned is 2");
    peg_record_unref(record);
    peg_ctx_unref(heard);
    close_on_pool(&w, pool);
}

/* ---- stacks --------------------------------------------------------------------- */

/* Instrumented frames are several times as large. */
enum { SMALLEST_STACK = T_SANITIZED ? 4 << 20 : 512 << 10 };

/* Seven schemas for each level of the arguments, up to the depth at which checking stops. */
#define WINDING                                                                                    \
    "{\"type\":\"object\",\"properties\":{\"a\":{\"allOf\":[{\"anyOf\":[{\"not\":{\"not\":{"       \
    "\"if\":true,\"then\":{\"oneOf\":[{\"$ref\":\"#\"}]}}}}]}]}}}"

static void call_deeply(peg_call *call, const peg_json *args, void *user)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("deep"),
                                      .args = peg_cstr(user)};
    peg_record *record = NULL;

    (void)args;
    if (peg_call_run(peg_call_ctx(call), &request, NULL, &record, NULL) == PEG_OK)
        peg_call_reply(call, peg_cstr(peg_record_code(record)));
    peg_record_unref(record);
}

TEST(the_smallest_stack_of_a_pool_is_enough_for_calls_of_a_handler)
{
    enum { DEPTH = 250 };
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .stack_bytes = SMALLEST_STACK};
    char args[6 * DEPTH + 3] = "";
    struct world w;
    peg_pool *pool = NULL;
    peg_record *record = NULL;

    for (int i = 0; i < DEPTH; i++)
        memcpy(args + 5 * (size_t)i, "{\"a\":", 5);
    memcpy(args + 5 * DEPTH, "{}", 2);
    memset(args + 5 * DEPTH + 2, '}', DEPTH);
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "deep", WINDING, answer), PEG_OK);
    CHECK_INT(world_add(&w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "outer", .description = "o",
                                            .run = call_deeply, .user = args}),
              PEG_OK);
    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "outer", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .pool = pool},
                         &record),
              PEG_OK);

    CHECK_STR(text_of(record), "E_CHECK_UNDECIDED");
    peg_record_unref(record);
    peg_pool_unref(pool);
    world_close(&w);
}
