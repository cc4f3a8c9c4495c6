/* SPDX-License-Identifier: Apache-2.0 */

/* Dispatches of their own, and turns in turns. */

#include <stdlib.h>

#include "fixture.h"
#include "pegboard/pool.h"

/* ---- standalone ----------------------------------------------------------------- */

/* T92 */
TEST(a_standalone_dispatch_takes_exactly_one_of_source_and_turn)
{
    struct stage s;
    peg_ctx *ctx = NULL;
    peg_error error;
    const peg_dispatch_input neither = {PEG_DISPATCH_INPUT_INIT, .turn = NULL};

    opened(&s);
    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(peg_dispatch_run(ctx, &s.config.loop, &neither, NULL, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_LLM_DISPATCH_INPUT");
    CHECK_INT(peg_dispatch_run(ctx, &s.config.loop,
                               &(peg_dispatch_input){PEG_DISPATCH_INPUT_INIT, .turn = s.turn,
                                                     .source = (void *)&s},
                               NULL, &error),
              PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_LLM_DISPATCH_INPUT");
    peg_ctx_unref(ctx);
    stage_close(&s);
}

TEST(a_standalone_dispatch_runs_on_its_own_blocks_and_registry)
{
    struct stage s;
    peg_registry *registry = NULL;
    peg_dispatch_input input;

    opened(&s)->script[0] = "call c1 echo {\"sub\":1}";
    CHECK_INT(peg_registry_new(s.tools, s.n_tools, &registry, NULL), PEG_OK);
    input = (peg_dispatch_input){PEG_DISPATCH_INPUT_INIT, .turn = s.turn, .registry = registry};
    CHECK_INT(peg_dispatch_run(NULL, &s.config.loop, &input, &s.outcome, NULL), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(text_of(result_at(s.turn, 0)), "{\"sub\":1}");
    CHECK_INT(peg_registry_len(registry), 1);
    peg_registry_unref(registry);
    stage_close(&s);
}

TEST(a_standalone_dispatch_takes_the_registry_of_its_context_or_has_none)
{
    struct stage s;
    peg_ctx *ctx = NULL;
    peg_registry *registry = NULL;
    peg_dispatch_input input;

    opened(&s)->script[0] = "call c1 echo {}";
    CHECK_INT(peg_registry_new(s.tools, s.n_tools, &registry, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_registry(NULL, registry, &ctx, NULL), PEG_OK);
    input = (peg_dispatch_input){PEG_DISPATCH_INPUT_INIT, .turn = s.turn};
    CHECK_INT(peg_dispatch_run(ctx, &s.config.loop, &input, NULL, NULL), PEG_OK);
    CHECK_INT(peg_dispatch_run(NULL, &s.config.loop, &input, NULL, NULL), PEG_OK);

    CHECK(!peg_record_is_error(result_at(s.turn, 0)));
    CHECK_CONTAINS(text_of(result_at(s.turn, 1)), "no tool registry in context");
    peg_ctx_unref(ctx);
    peg_registry_unref(registry);
    stage_close(&s);
}

static peg_status sub_dispatch(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                               peg_error *reterr)
{
    struct stage *s = user;
    const peg_dispatch_options loop = {PEG_DISPATCH_OPTIONS_INIT, .engine = {stage_infer, s}};
    const peg_dispatch_input input = {PEG_DISPATCH_INPUT_INIT, .source = scope};
    peg_outcome outcome;

    CHECK_INT(peg_dispatch_run(NULL, &loop, &input, &outcome, reterr), PEG_OK);
    note(s, "%s %zu ", peg_turn_end_name(outcome.end), peg_turn_len(peg_turn_scope_turn(scope)));
    return peg_middleware_run_next(next, reterr);
}

TEST(a_dispatch_of_a_running_turn_uses_its_blocks_and_tools)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.turn_input[0] = (peg_turn_middleware){sub_dispatch, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "ack 3 ");
    stage_close(&s);
}

static peg_status sub_with_less(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                                peg_error *reterr)
{
    struct stage *s = user;
    const peg_dispatch_options loop = {PEG_DISPATCH_OPTIONS_INIT, .engine = {stage_infer, s}};
    peg_dispatch_input input = {PEG_DISPATCH_INPUT_INIT, .source = scope};
    peg_registry *none = NULL;
    peg_ctx *hurried = NULL;
    peg_outcome outcome;

    CHECK_INT(peg_registry_new(NULL, 0, &none, reterr), PEG_OK);
    CHECK_INT(peg_ctx_with_deadline(peg_turn_scope_ctx(scope), 0, &hurried, reterr), PEG_OK);

    input.registry = none;
    CHECK_INT(peg_dispatch_run(NULL, &loop, &input, &outcome, reterr), PEG_OK);
    note(s, "%s ", peg_record_code(result_at(peg_turn_scope_turn(scope), 0)));
    CHECK_INT(peg_dispatch_run(hurried, &loop, &input, &outcome, reterr), PEG_ETIMEOUT);
    note(s, "%s %s ", peg_turn_end_name(outcome.end), outcome.error.code);
    peg_ctx_unref(hurried);
    peg_registry_unref(none);
    return peg_middleware_run_next(next, reterr);
}

TEST(a_dispatch_of_a_running_turn_may_have_fewer_tools_and_less_time)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.turn_input[0] = (peg_turn_middleware){sub_with_less, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "E_TOOL_NOT_FOUND aborted E_DEADLINE_EXCEEDED ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* ---- turns in turns --------------------------------------------------------------- */

/* A model that answers a turn that begins with a number: with one call that asks for the turn of
 * the next smaller number, and then with the result. 0 calls echo. */
static peg_status count_down(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    const int n = atoi(peg_block_text(peg_turn_at(turn, 0)).ptr);
    char args[32];

    (void)user;
    if (peg_turn_count(turn, PEG_BLOCKS(PEG_BLOCK_RESULT)) > 0)
        return peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, text_of(result_at(turn, 0)), reterr);
    snprintf(args, sizeof(args), "{\"n\":%d}", n - 1);
    return peg_turn_add_call(turn, peg_cstr("c"), peg_cstr(n ? "ask" : "echo"), peg_cstr(args),
                             reterr);
}

/* Asks another agent, which is this one. */
static void ask(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;
    peg_outcome outcome = {.end = PEG_END_NACK};
    peg_turn *turn = NULL;
    char text[16];
    int64_t n = 0;

    CHECK(peg_json_int64(peg_json_get(args, "n"), &n));
    snprintf(text, sizeof(text), "%d", (int)n);
    if (peg_turn_new(&turn, NULL) ||
        peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr(text), NULL) ||
        peg_runner_run(s->runner, peg_call_ctx(call), turn, &outcome, NULL))
        peg_call_fail(call, "the other agent failed: %s", outcome.error.message);
    else
        peg_call_reply(call, peg_block_text(peg_turn_at(turn, peg_turn_len(turn) - 1)));
    peg_turn_free(turn);
}

static void open_nest(struct stage *s, const char *depth)
{
    const peg_tool_def def = tool_def("ask", ask, s);

    CHECK_INT(stage_add(opened(s), &def), PEG_OK);
    s->config.loop.engine.fn = count_down;
    peg_turn_free(s->turn);
    s->turn = NULL;
    CHECK_INT(peg_turn_new(&s->turn, NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(s->turn, PEG_BLOCK_USER, peg_cstr(depth), NULL), PEG_OK);
}

TEST(a_handler_can_run_a_turn_on_its_own_runner_and_each_event_is_heard_once)
{
    struct stage s;

    open_nest(&s, "1");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log),
              "turn_start dispatch_start iteration_start tool_call(c,announced) tool_start "
              "turn_start dispatch_start iteration_start tool_call(c,announced) tool_start "
              "tool_end tool_call(c,complete) iteration_end iteration_start iteration_end "
              "dispatch_end(ack,2) turn_end "
              "tool_end tool_call(c,complete) iteration_end iteration_start iteration_end "
              "dispatch_end(ack,2) turn_end ");
    CHECK_STR(peg_block_text(peg_turn_at(s.turn, 3)), "{\"n\":-1}");
    stage_close(&s);
}

static void hear_places(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_TURN_START || event->kind == PEG_EVENT_TURN_END)
        note(user, "%s%s%d ", peg_event_name(event->kind),
             event->ids.dispatch_id[0] ? " in a dispatch" : "", event->ids.iteration);
    if (event->kind == PEG_EVENT_DISPATCH_START)
        note(user, "dispatch%d ", event->ids.iteration);
}

TEST(events_of_a_turn_in_a_turn_say_where_they_belong)
{
    struct stage s;

    open_nest(&s, "1");
    s.config.on_event = hear_places;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "turn_start-1 dispatch-1 turn_start-1 dispatch-1 "
                                "turn_end-1 turn_end-1 ");
    stage_close(&s);
}

TEST(turns_in_turns_do_not_wait_for_each_other_on_a_pool_of_one_thread)
{
    const peg_pool_options one = {PEG_POOL_OPTIONS_INIT, .n_threads = 1};
    struct stage s;
    peg_pool *pool = NULL;

    CHECK_INT(peg_pool_new(&one, &pool, NULL), PEG_OK);
    open_nest(&s, "8");
    s.config.on_event = NULL;
    s.config.loop.call.pool = pool;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(peg_block_text(peg_turn_at(s.turn, 3)), "{\"n\":-1}");
    stage_close(&s);
    peg_pool_unref(pool);
}

static void abort_inner(const peg_event *event, void *user)
{
    struct stage *s = user;

    if (event->kind == PEG_EVENT_ITERATION_START && ++s->n_infer == 2)
        peg_cancel_fire(s->user, "the user is gone");
}

TEST(canceling_the_outermost_turn_ends_those_in_it)
{
    struct stage s;
    peg_ctx *root = NULL;
    peg_cancel *cancel = NULL;

    open_nest(&s, "3");
    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(root, &s.ctx, &cancel, NULL), PEG_OK);
    s.user = cancel;
    s.config.on_event = abort_inner;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 2);
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "the user is gone");
    stage_close(&s);
    peg_cancel_unref(cancel);
    peg_ctx_unref(s.ctx);
    peg_ctx_unref(root);
}

/* ---- what two of them share -------------------------------------------------------- */

static peg_status say_there(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    const bool is_there = peg_registry_has(peg_dispatch_registry(dispatch), peg_cstr("brief"));

    (void)user;
    return peg_turn_add_text(peg_dispatch_turn(dispatch), PEG_BLOCK_ASSISTANT,
                             peg_cstr(is_there ? "there" : "gone"), reterr);
}

/* A dispatch of its own on the registry that the call's context carries. */
static void ask_below(peg_call *call, const peg_json *args, void *user)
{
    const peg_dispatch_options loop = {PEG_DISPATCH_OPTIONS_INIT, .engine.fn = say_there};
    peg_registry *registry = peg_ctx_registry(peg_call_ctx(call));
    peg_dispatch_input input = {PEG_DISPATCH_INPUT_INIT, .turn = NULL};
    peg_outcome outcome;
    peg_turn *turn = NULL;

    (void)args;
    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("look"), NULL), PEG_OK);
    input.turn = turn;
    CHECK_INT(peg_dispatch_run(peg_call_ctx(call), &loop, &input, &outcome, NULL), PEG_OK);
    note(user, "below %.*s, above %s ", PEG_ARG(peg_block_text(peg_turn_at(turn, 1))),
         peg_registry_has(registry, peg_cstr("brief")) ? "there" : "gone");
    peg_call_reply(call, peg_cstr("ok"));
    peg_turn_free(turn);
}

TEST(a_dispatch_in_a_handler_sees_the_tools_and_its_ack_takes_none_away)
{
    struct stage s;
    const peg_tool_def below = tool_def("below", ask_below, &s);
    peg_tool_def brief = tool_def("brief", echo, NULL);

    brief.ephemeral = true;
    CHECK_INT(stage_add(opened(&s), &below), PEG_OK);
    CHECK_INT(stage_add(&s, &brief), PEG_OK);
    s.script[0] = "call c below {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "below there, above there ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static peg_status note_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)ctx;
    (void)reterr;
    note(user, "%.*s ", PEG_ARG(peg_block_text(block)));
    return PEG_OK;
}

/* Has another runner, which keeps nothing, go on with the blocks of this dispatch. */
static peg_status let_another(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    struct stage *s = user;

    CHECK_INT(peg_runner_run(s->user, peg_dispatch_ctx(dispatch), peg_dispatch_turn(dispatch), NULL,
                             reterr),
              PEG_OK);
    return peg_middleware_run_next(next, reterr);
}

TEST(a_turn_that_another_runner_went_on_with_is_still_stored_afterwards)
{
    struct stage s;
    peg_storage storage = {note_store, note_store, no_remove, no_fetch, no_bytes, &s};
    const peg_runner_config other = {PEG_RUNNER_CONFIG_INIT, .loop.engine.fn = say_there};
    peg_runner *runner = NULL;

    CHECK_INT(peg_runner_new(&other, &runner, NULL), PEG_OK);
    opened(&s)->script[0] = "say mine";
    s.user = runner;
    s.input[0] = (peg_dispatch_middleware){let_another, &s};
    s.config.loop.storage = &storage;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "mine ");
    CHECK_INT(peg_turn_len(s.turn), 3);
    stage_close(&s);
    peg_runner_unref(runner);
}

static peg_status keep_scope(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                             peg_error *reterr)
{
    ((struct stage *)user)->user = scope;
    return peg_middleware_run_next(next, reterr);
}

/* What either of them added would be gone with the flush of the dispatch that runs this. */
static void run_the_same(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;
    const peg_dispatch_input source = {PEG_DISPATCH_INPUT_INIT, .source = s->user};
    peg_error error;

    (void)args;
    CHECK_INT(peg_runner_run(s->runner, peg_call_ctx(call), s->turn, NULL, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_TURN_BUSY");
    CHECK_INT(peg_dispatch_run(peg_call_ctx(call), &s->config.loop, &source, NULL, &error),
              PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_TURN_BUSY");
    note(s, "refused ");
    peg_call_reply(call, peg_cstr("ok"));
}

TEST(a_turn_cannot_be_run_by_a_handler_of_its_own_dispatch)
{
    struct stage s;
    const peg_tool_def def = tool_def("same", run_the_same, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.turn_input[0] = (peg_turn_middleware){keep_scope, &s};
    s.script[0] = "call c same {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "refused ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* ---- out of memory ----------------------------------------------------------------- */

TORTURE(a_turn_in_a_turn_survives_any_allocation_failure)
{
    struct stage s;
    const peg_tool_def def = tool_def("ask", ask, &s);
    peg_status status = stage_open(&s);

    s.config.loop.engine.fn = count_down;
    if (!status)
        status = stage_add(&s, &def);
    if (!status)
        status = peg_turn_remove(s.turn, peg_block_id(peg_turn_at(s.turn, 0)), NULL);
    if (!status)
        status = peg_turn_add_text(s.turn, PEG_BLOCK_USER, peg_cstr("1"), NULL);
    if (!status)
        status = stage_run(&s);
    if (!status)
        status = s.outcome.error.status;
    if (!status && peg_record_is_error(result_at(s.turn, 0)))
        status = PEG_EHOST;
    if (status == PEG_EHOST)
        status = PEG_ENOMEM;
    stage_close(&s);
    return status;
}
