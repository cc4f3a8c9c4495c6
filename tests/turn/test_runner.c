/* SPDX-License-Identifier: Apache-2.0 */

/* The runner: pipelines around a dispatch, and a registry that lives for one turn. */

#include "fixture.h"

/* ---- middlewares ---------------------------------------------------------------- */

static peg_status pass(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                       peg_error *reterr)
{
    (void)scope;
    (void)user;
    return peg_middleware_run_next(next, reterr);
}

static peg_status a_around(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                           peg_error *reterr)
{
    peg_status status;

    (void)scope;
    note(user, "A-pre ");
    status = peg_middleware_run_next(next, reterr);
    note(user, "A-post ");
    return status;
}

static peg_status b_around(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                           peg_error *reterr)
{
    peg_status status;

    (void)scope;
    note(user, "B-pre ");
    status = peg_middleware_run_next(next, reterr);
    note(user, "B-post ");
    return status;
}

static peg_status forget_next(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    (void)scope;
    (void)next;
    (void)user;
    (void)reterr;
    return PEG_OK;
}

static peg_status fail_loudly(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    (void)scope;
    (void)next;
    (void)user;
    *reterr = (peg_error){
        .status = PEG_EHOST, .code = "E_QUOTA", .cause = "", .message = "the quota is used up"};
    return PEG_EHOST;
}

static peg_status abort_it(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                           peg_error *reterr)
{
    peg_status status;

    peg_turn_scope_abort(scope, "not now");
    status = peg_middleware_run_next(next, reterr);
    note(user, "abort-post ");
    return status;
}

/* ---- a plain run ---------------------------------------------------------------- */

/* T73, T74 */
TEST(a_run_tells_start_and_end_of_turn_and_dispatch_in_pairs)
{
    struct stage s;

    opened(&s)->script[0] = "say hi";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start dispatch_start iteration_start iteration_end "
                               "dispatch_end(ack,1) turn_end ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.outcome.error.status, PEG_OK);
    CHECK_INT(peg_turn_len(s.turn), 2);
    stage_close(&s);
}

struct ids {
    char turn[40];
    char dispatch[40];
    unsigned n;
};

static void check_ids(const peg_event *event, void *user)
{
    struct ids *ids = user;

    ids->n++;
    if (event->kind == PEG_EVENT_TURN_START)
        snprintf(ids->turn, sizeof(ids->turn), "%s", event->ids.turn_id);
    if (event->kind == PEG_EVENT_DISPATCH_START)
        snprintf(ids->dispatch, sizeof(ids->dispatch), "%s", event->ids.dispatch_id);
    CHECK(strcmp(event->ids.turn_id, ids->turn) == 0);
    if (event->kind == PEG_EVENT_TOOL_START || event->kind == PEG_EVENT_DISPATCH_END)
        CHECK(strcmp(event->ids.dispatch_id, ids->dispatch) == 0);
    if (event->kind == PEG_EVENT_TOOL_START)
        CHECK_INT(event->ids.iteration, 0);
}

/* T73, G85 */
TEST(every_event_of_a_turn_has_its_id_and_those_of_its_dispatch_too)
{
    struct stage s;
    struct ids ids = {.n = 0};

    opened(&s)->script[0] = "call c1 echo {}";
    s.config.on_event = check_ids;
    s.config.on_event_user = &ids;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(strlen(ids.turn), 36);
    CHECK_INT(strlen(ids.dispatch), 36);
    CHECK(strcmp(ids.turn, ids.dispatch) != 0);
    CHECK_INT(ids.n, 16);
    stage_close(&s);
}

static void note_time(const peg_event *event, void *user)
{
    const peg_span_event *span = &event->u.span;

    if (event->kind == PEG_EVENT_INFERENCE_START || event->kind == PEG_EVENT_INFERENCE_END)
        return;
    note(user, "%s %d-%d=%d ", peg_event_name(event->kind), (int)span->started_ms,
         (int)span->ended_ms, (int)(span->duration_ns / 1000000));
}

static peg_status take_time(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)dispatch;
    (void)reterr;
    peg_clock_manual_advance(stage->user, 7);
    return PEG_OK;
}

static peg_status take_more_time(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                                 peg_error *reterr)
{
    (void)scope;
    peg_clock_manual_advance(user, 100);
    return peg_middleware_run_next(next, reterr);
}

TEST(the_ends_of_turn_dispatch_and_iteration_tell_when_and_how_long)
{
    struct stage s;
    peg_clock *clock = NULL;

    CHECK_INT(peg_clock_manual_new(1000, &clock, NULL), PEG_OK);
    opened(&s)->act = take_time;
    CHECK_INT(peg_ctx_with_clock(NULL, clock, &s.ctx, NULL), PEG_OK);
    s.user = clock;
    s.turn_input[0] = (peg_turn_middleware){take_more_time, clock};
    s.config.on_event = note_time;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "turn_start 1000-0=0 dispatch_start 1100-0=0 "
                                "iteration_start 1100-0=0 iteration_end 1100-1107=7 "
                                "dispatch_end 1100-1107=7 turn_end 1000-1107=107 ");
    stage_close(&s);
    peg_ctx_unref(s.ctx);
    peg_clock_manual_free(clock);
}

/* T71 */
TEST(a_runner_without_tools_and_pipelines_is_fine)
{
    struct stage s;
    peg_runner *bare = NULL;

    opened(&s)->script[0] = "call c1 echo {}";
    s.config.n_tools = 0;
    CHECK_INT(peg_runner_new(&s.config, &bare, NULL), PEG_OK);
    CHECK_INT(peg_runner_run(bare, NULL, s.turn, &s.outcome, NULL), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_CONTAINS(text_of(result_at(s.turn, 0)), "no tool registry in context");
    peg_runner_unref(bare);
    stage_close(&s);
}

/* T72, G148 */
TEST(a_turn_without_blocks_is_refused_before_anything_starts)
{
    struct stage s;
    peg_turn *empty = NULL;
    peg_error error;

    stage_configure(opened(&s));
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    CHECK_INT(peg_turn_new(&empty, NULL), PEG_OK);

    CHECK_INT(peg_runner_run(s.runner, NULL, empty, NULL, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_TURN_CONTEXT");
    CHECK_INT(peg_runner_run(s.runner, NULL, NULL, NULL, NULL), PEG_EINVAL);
    CHECK_STR(peg__str(s.log), "");
    peg_turn_free(empty);
    stage_close(&s);
}

static peg_status fail_with_a_reason(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    const peg_error why = {.status = PEG_ELIMIT, .code = "E_MINE", .message = "no more today"};

    (void)user;
    return peg_dispatch_nack(dispatch, &why, reterr);
}

TEST(a_run_that_failed_returns_the_error_of_its_outcome)
{
    struct stage s;
    peg_error error;

    opened(&s)->config.loop.engine = (peg_engine){.fn = fail_with_a_reason};
    stage_configure(&s);
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);

    CHECK_INT(peg_runner_run(s.runner, NULL, s.turn, &s.outcome, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_MINE");
    CHECK_STR(peg__str(error.message), "no more today");
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_INT(s.outcome.iterations, 1);
    CHECK_INT(peg_runner_run(s.runner, NULL, s.turn, NULL, NULL), PEG_ELIMIT);
    CHECK_INT(peg_dispatch_run(NULL, &s.config.loop,
                               &(peg_dispatch_input){PEG_DISPATCH_INPUT_INIT, .turn = s.turn}, NULL,
                               &error),
              PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_MINE");
    stage_close(&s);
}

/* ---- configuration -------------------------------------------------------------- */

static void check_config(const peg_runner_config *config, const char *first, const char *second)
{
    peg_runner *runner = NULL;
    peg_error error;

    CHECK_INT(peg_runner_new(config, &runner, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_TURN_RUNNER_CONFIG");
    CHECK_CONTAINS(peg__str(error.message), first);
    CHECK_CONTAINS(peg__str(error.message), second);
}

/* T70, G94 */
TEST(a_configuration_that_cannot_work_is_refused_and_everything_wrong_is_named)
{
    const peg_turn_middleware nothing = {.run = NULL};
    const peg_storage half = {.store = NULL};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .input = &nothing, .n_input = 1};

    check_config(&config, "loop.engine or loop.executor is missing", "input[0].run is missing");
    config =
        (peg_runner_config){PEG_RUNNER_CONFIG_INIT, .loop.engine.fn = stage_infer,
                            .loop.executor.fn = stage_infer, .loop.call.settings.max_parallel = 4};
    check_config(&config, "both set", "loop.call.settings.max_parallel needs loop.call.pool");
    config = (peg_runner_config){PEG_RUNNER_CONFIG_INIT, .loop.engine.fn = stage_infer,
                                 .loop.storage = &half};
    check_config(&config, "store, mutate, remove, fetch, store_bytes", "storage");
    config =
        (peg_runner_config){PEG_RUNNER_CONFIG_INIT, .loop.engine.fn = stage_infer, .n_tools = 1};
    check_config(&config, "tools is NULL", "n_tools");
}

TEST(more_mistakes_than_an_error_has_room_for_are_counted)
{
    const peg_turn_middleware nothing[32] = {{.run = NULL}};
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .input = nothing, .n_input = 32,
                                      .output = nothing, .n_output = 32};

    check_config(&config, "loop.engine or loop.executor is missing; input[0].run is missing; ",
                 "is missing; and 54 more");
}

TEST(two_tools_of_one_name_are_refused_when_the_runner_is_made)
{
    struct stage s;
    const peg_tool_def def = tool_def("echo", echo, NULL);
    peg_error error;

    opened(&s);
    CHECK_INT(stage_add(&s, &def), PEG_OK);
    stage_configure(&s);

    CHECK_INT(peg_runner_new(&s.config, &s.runner, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_TOOL_ALREADY_REGISTERED");
    CHECK_CONTAINS(peg__str(error.message), "echo");
    stage_close(&s);
}

/* ---- pipelines ------------------------------------------------------------------ */

/* T82, T83, G131 */
TEST(middlewares_are_an_onion_on_every_run)
{
    struct stage s;

    opened(&s);
    s.turn_input[0] = (peg_turn_middleware){a_around, &s};
    s.turn_input[1] = (peg_turn_middleware){b_around, &s};
    s.turn_output[0] = (peg_turn_middleware){a_around, &s};
    for (int i = 0; i < 3; i++) {
        s.seen[0] = '\0';
        CHECK_INT(stage_run(&s), PEG_OK);
        CHECK_STR(peg__str(s.seen), "A-pre B-pre B-post A-post A-pre A-post ");
    }
    stage_close(&s);
}

/* T74, T75 */
TEST(an_input_middleware_that_forgets_the_rest_is_an_error_and_nothing_is_dispatched)
{
    struct stage s;

    opened(&s);
    s.turn_input[0] = (peg_turn_middleware){forget_next, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start error(E_PIPELINE_SHORT_CIRCUITED) turn_end ");
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "turn-input");
    CHECK_INT(s.n_infer, 0);
    stage_close(&s);
}

/* T74, T76 */
TEST(an_output_middleware_that_forgets_the_rest_is_an_error)
{
    struct stage s;

    opened(&s);
    s.turn_output[0] = (peg_turn_middleware){forget_next, &s};
    s.turn_output[1] = (peg_turn_middleware){pass, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.log, "error(E_PIPELINE_SHORT_CIRCUITED)"), 1);
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "turn-output");
    CHECK_INT(count_of(s.log, "turn_end"), 1);
    stage_close(&s);
}

/* T74, T77 */
TEST(a_failing_input_middleware_is_an_error_with_its_cause)
{
    struct stage s;

    opened(&s);
    s.turn_input[0] = (peg_turn_middleware){fail_loudly, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start error(E_INPUT_PIPELINE_ERROR) turn_end ");
    CHECK_STR(peg__str(s.outcome.error.cause), "E_QUOTA");
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "the quota is used up");
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    stage_close(&s);
}

/* T74 */
TEST(a_failing_output_middleware_is_an_error_after_the_dispatch)
{
    struct stage s;

    opened(&s);
    s.turn_output[0] = (peg_turn_middleware){fail_loudly, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.log, "error(E_OUTPUT_PIPELINE_ERROR)"), 1);
    CHECK_INT(count_of(s.log, "turn_end"), 1);
    CHECK_INT(count_of(s.log, "dispatch_end(ack,1)"), 1);
    stage_close(&s);
}

/* T74, T78 */
TEST(an_abort_in_a_middleware_skips_what_follows_without_an_error)
{
    struct stage s;

    opened(&s);
    s.turn_input[0] = (peg_turn_middleware){abort_it, &s};
    s.turn_input[1] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start turn_end ");
    CHECK_STR(peg__str(s.seen), "abort-post ");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "not now");
    stage_close(&s);
}

/* T79 */
TEST(a_turn_that_is_aborted_before_it_starts_only_starts_and_ends)
{
    struct stage s;
    peg_ctx *root = NULL;
    peg_cancel *cancel = NULL;

    opened(&s);
    s.turn_input[0] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(root, &s.ctx, &cancel, NULL), PEG_OK);
    peg_cancel_fire(cancel, "never mind");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start turn_end ");
    CHECK_STR(peg__str(s.seen), "");
    CHECK_INT(s.n_infer, 0);
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_STR(peg__str(s.outcome.error.code), "E_CANCELED");
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "never mind");
    peg_cancel_unref(cancel);
    peg_ctx_unref(s.ctx);
    peg_ctx_unref(root);
    stage_close(&s);
}

static peg_status nack_it(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_error why = {.status = PEG_EHOST, .code = "E_MODEL", .cause = "", .message = "no"};

    (void)stage;
    return peg_dispatch_nack(dispatch, &why, reterr);
}

/* T74, T80, T81 */
TEST(a_nack_ends_the_turn_with_its_error_and_without_the_output_pipeline)
{
    struct stage s;

    opened(&s)->act = nack_it;
    s.turn_output[0] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start dispatch_start iteration_start dispatch_end(nack,1) "
                               "error(E_MODEL) turn_end ");
    CHECK_STR(peg__str(s.seen), "");
    CHECK_STR(peg__str(s.outcome.error.code), "E_MODEL");
    stage_close(&s);
}

static const peg_error *dispatch_error;

static void hear_errors(const peg_event *event, void *user)
{
    struct stage *s = user;

    if (event->kind == PEG_EVENT_DISPATCH_END)
        dispatch_error = event->error;
    if (event->kind == PEG_EVENT_ERROR)
        note(s, "%s ", event->error == dispatch_error ? "the same" : "another");
    if (event->kind == PEG_EVENT_TURN_END)
        note(s, "%s %s", peg_turn_end_name(event->u.span.end), event->error->code);
}

/* T80 */
TEST(the_error_of_a_nack_is_in_all_events_that_tell_of_it)
{
    struct stage s;

    opened(&s)->act = nack_it;
    s.config.on_event = hear_errors;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "the same nack E_MODEL");
    stage_close(&s);
}

static peg_status keep_scope(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                             peg_error *reterr)
{
    ((struct stage *)user)->user = scope;
    return peg_middleware_run_next(next, reterr);
}

static peg_status abort_turn(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    peg_turn_scope_abort(stage->user, "the window was closed");
    CHECK_INT(peg_ctx_check(peg_dispatch_ctx(dispatch), NULL), PEG_ECANCELED);
    return PEG_OK;
}

/* T74, T81 */
TEST(a_turn_that_is_aborted_in_its_dispatch_has_no_output_pipeline)
{
    struct stage s;

    opened(&s)->act = abort_turn;
    s.turn_input[0] = (peg_turn_middleware){keep_scope, &s};
    s.turn_output[0] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.log), "turn_start dispatch_start iteration_start dispatch_end(aborted,1) "
                               "turn_end ");
    CHECK_STR(peg__str(s.seen), "");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "the window was closed");
    stage_close(&s);
}

static peg_status ack_and_abort_turn(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_status status = peg_dispatch_ack(dispatch, reterr);

    peg_turn_scope_abort(stage->user, "the window was closed");
    return status;
}

TEST(a_turn_whose_output_pipeline_was_passed_over_is_aborted_and_keeps_what_was_acked)
{
    struct stage s;

    opened(&s)->act = ack_and_abort_turn;
    s.script[0] = "say hi";
    s.turn_input[0] = (peg_turn_middleware){keep_scope, &s};
    s.turn_output[0] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.log, "dispatch_end(ack,1)"), 1);
    CHECK_STR(peg__str(s.seen), "");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_INT(peg_turn_len(s.turn), 2);
    stage_close(&s);

    /* Without one there is nothing that was left out. */
    opened(&s)->act = ack_and_abort_turn;
    s.turn_input[0] = (peg_turn_middleware){keep_scope, &s};
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.outcome.error.status, PEG_OK);
    stage_close(&s);
}

TEST(an_abort_in_the_output_pipeline_is_told_in_the_outcome)
{
    struct stage s;

    opened(&s)->turn_output[0] = (peg_turn_middleware){abort_it, &s};
    s.turn_output[1] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "abort-post ");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "not now");
    CHECK_INT(count_of(s.log, "error"), 0);
    stage_close(&s);
}

static peg_status abort_dispatch(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)stage;
    (void)reterr;
    peg_dispatch_abort(dispatch, "enough of this one");
    return PEG_OK;
}

/* T81 */
TEST(a_dispatch_that_is_aborted_alone_does_not_abort_its_turn)
{
    struct stage s;

    opened(&s)->act = abort_dispatch;
    s.turn_output[0] = (peg_turn_middleware){b_around, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "B-pre B-post ");
    CHECK_INT(count_of(s.log, "dispatch_end(aborted,1)"), 1);
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    stage_close(&s);
}

/* ---- the registry of a turn ----------------------------------------------------- */

static peg_status swap_tools(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                             peg_error *reterr)
{
    struct stage *s = user;
    peg_registry *registry = peg_turn_scope_registry(scope);
    const peg_tool_def def = tool_def("extra", echo, NULL);
    peg_tool *extra = NULL;
    peg_status status = peg_tool_new(&def, &extra, reterr);
    char names[256];

    names_of(registry, false, names, sizeof(names));
    note(s, "[%s]", names);
    if (!status)
        status = peg_registry_register(registry, extra, false, reterr);
    if (!status)
        status = peg_registry_unregister(registry, peg_cstr("echo"), reterr);
    peg_tool_unref(extra);
    return status ? status : peg_middleware_run_next(next, reterr);
}

static peg_status note_tools(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    char names[256];

    (void)reterr;
    names_of(peg_dispatch_registry(dispatch), true, names, sizeof(names));
    note(stage, "model sees [%s]", names);
    return PEG_OK;
}

/* T61, T62, T64, T66 */
TEST(what_a_middleware_does_to_the_registry_is_gone_with_the_turn)
{
    struct stage s;
    const peg_tool_def second = tool_def("second", echo, NULL);

    opened(&s)->act = note_tools;
    CHECK_INT(stage_add(&s, &second), PEG_OK);
    s.turn_input[0] = (peg_turn_middleware){swap_tools, &s};
    for (int i = 0; i < 3; i++) {
        s.seen[0] = '\0';
        CHECK_INT(stage_run(&s), PEG_OK);
        CHECK_STR(peg__str(s.seen), "[echo second ]model sees [second extra ]");
    }
    stage_close(&s);
}

/* T65 */
TEST(the_callers_array_of_tools_is_copied)
{
    struct stage s;
    peg_tool *kept;

    opened(&s)->act = note_tools;
    stage_configure(&s);
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    kept = s.tools[0];
    s.tools[0] = NULL;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "model sees [echo ]");
    s.tools[0] = kept;
    stage_close(&s);
}

static bool allow_nothing(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    note(user, "asked ");
    return false;
}

TEST(the_callers_hooks_middlewares_and_stores_need_not_outlive_the_call_that_makes_a_runner)
{
    struct stage s;
    peg_run_hooks hooks = {.is_allowed = allow_nothing, .user = &s};
    peg_spool_store *spool = NULL;
    peg_pool *pool = NULL;

    opened(&s)->script[0] = "call c1 echo {}";
    CHECK_INT(peg_spool_memory_new(0, &spool, NULL), PEG_OK);
    CHECK_INT(peg_pool_new(NULL, &pool, NULL), PEG_OK);
    s.turn_input[0] = (peg_turn_middleware){a_around, &s};
    s.config.loop.call =
        (peg_run_options){PEG_RUN_OPTIONS_INIT, .hooks = &hooks, .spool = spool, .pool = pool};
    stage_configure(&s);
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    hooks.is_allowed = NULL;
    memset(s.turn_input, 0, sizeof(s.turn_input));
    peg_spool_store_unref(spool);
    peg_pool_unref(pool);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "A-pre A-post asked ");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOL_NOT_ALLOWED");
    stage_close(&s);
}

static peg_status hide_echo(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                            peg_error *reterr)
{
    const char *name = "echo";
    const peg_status status = peg_registry_hide(peg_turn_scope_registry(scope), &name, 1, reterr);

    (void)user;
    return status ? status : peg_middleware_run_next(next, reterr);
}

/* T68 */
TEST(a_tool_hidden_by_a_middleware_is_hidden_in_the_dispatch_and_still_callable)
{
    struct stage s;

    opened(&s)->act = note_tools;
    s.script[0] = "call c1 echo {}";
    s.turn_input[0] = (peg_turn_middleware){hide_echo, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_LACKS(peg__str(s.seen), "echo");
    CHECK(!peg_record_is_error(result_at(s.turn, 0)));
    stage_close(&s);
}

static peg_status register_in_dispatch(struct stage *stage, peg_dispatch *dispatch,
                                       peg_error *reterr)
{
    const peg_tool_def def = tool_def("inner", echo, NULL);
    peg_tool *inner = NULL;
    peg_status status = peg_tool_new(&def, &inner, reterr);

    (void)stage;
    if (!status)
        status = peg_registry_register(peg_dispatch_registry(dispatch), inner, false, reterr);
    peg_tool_unref(inner);
    return status;
}

static peg_status note_turn_tools(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                                  peg_error *reterr)
{
    char names[256];

    names_of(peg_turn_scope_registry(scope), false, names, sizeof(names));
    note(user, "[%s]", names);
    return peg_middleware_run_next(next, reterr);
}

/* T67 */
TEST(what_is_registered_in_a_dispatch_does_not_reach_the_turn)
{
    struct stage s;

    opened(&s)->act = register_in_dispatch;
    s.turn_output[0] = (peg_turn_middleware){note_turn_tools, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "[echo ]");
    stage_close(&s);
}

TEST(a_runner_takes_a_registry_with_its_hidden_marks)
{
    struct stage s;
    const char *name = "echo";
    peg_registry *registry = NULL;

    opened(&s)->act = note_tools;
    CHECK_INT(peg_registry_new(s.tools, s.n_tools, &registry, NULL), PEG_OK);
    CHECK_INT(peg_registry_hide(registry, &name, 1, NULL), PEG_OK);
    s.config.registry = registry;
    stage_configure(&s);
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(peg_registry_clear_hidden(registry, NULL), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "model sees []model sees []");
    peg_registry_unref(registry);
    stage_close(&s);
}

/* ---- storage -------------------------------------------------------------------- */

static peg_status count_fetch(void *user, peg_ctx *ctx, unsigned kinds, peg_turn *into,
                              peg_error *reterr)
{
    (void)ctx;
    (void)kinds;
    (void)into;
    (void)reterr;
    note(user, "fetch ");
    return PEG_OK;
}

static peg_status count_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)reterr;
    CHECK(peg_ctx_ids(ctx)->turn_id[0] != '\0');
    note(user, "store-%s ", peg_block_kind_name(peg_block_kind_of(block)));
    return PEG_OK;
}

static peg_status count_remove(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr)
{
    (void)ctx;
    (void)id;
    (void)reterr;
    note(user, "remove ");
    return PEG_OK;
}

static peg_status count_bytes(void *user, peg_ctx *ctx, const char *what, peg_str id, peg_str bytes,
                              peg_reader **ret_reader, peg_error *reterr)
{
    (void)ctx;
    note(user, "bytes-%s-%.*s-%zu ", what, PEG_ARG(id), bytes.len);
    return peg_reader_from_bytes(bytes, ret_reader, reterr);
}

static peg_storage counting_storage(struct stage *s)
{
    return (peg_storage){.store = count_store,
                         .mutate = count_store,
                         .remove = count_remove,
                         .fetch = count_fetch,
                         .store_bytes = count_bytes,
                         .user = s};
}

/* T69 */
TEST(nothing_is_fetched_unless_somebody_asks)
{
    struct stage s;
    peg_storage storage;

    opened(&s)->script[0] = "say hi";
    storage = counting_storage(&s);
    s.config.loop.storage = &storage;
    stage_configure(&s);
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    memset(&storage, 0, sizeof(storage)); /* it was copied */
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "store-assistant ");
    stage_close(&s);
}

static peg_status use_storage(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    peg_turn *fetched = NULL;
    peg_reader *reader = NULL;
    peg_status status;

    (void)user;
    if ((status = peg_turn_scope_fetch(scope, PEG_BLOCKS_ALL, &fetched, reterr)) ||
        (status = peg_turn_scope_store_bytes(scope, "media", peg_cstr("m1"), peg_cstr("abc"),
                                             &reader, reterr)))
        return status;
    CHECK_INT(peg_turn_len(peg_turn_scope_turn(scope)), 1);
    peg_turn_free(fetched);
    peg_reader_unref(reader);
    return peg_middleware_run_next(next, reterr);
}

/* T69, T102 */
TEST(a_middleware_can_fetch_and_store_bytes_without_changing_the_turn)
{
    struct stage s;
    peg_storage storage;

    opened(&s);
    storage = counting_storage(&s);
    s.config.loop.storage = &storage;
    s.turn_input[0] = (peg_turn_middleware){use_storage, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "fetch bytes-media-m1-3 ");
    stage_close(&s);
}

/* ---- out of memory -------------------------------------------------------------- */

/* Whatever failed: what began was ended, and the turn has whole iterations: none, the two calls
 * with their results, or the answer too. */
static void check_whole(const struct stage *s)
{
    const size_t len = s->turn ? peg_turn_len(s->turn) : 0;

    CHECK(len <= 1 || len == 5 || len == 6);
    CHECK_INT(count_of(s->log, "turn_start"), count_of(s->log, "turn_end"));
    CHECK_INT(count_of(s->log, "dispatch_start"), count_of(s->log, "dispatch_end"));
    CHECK_INT(count_of(s->log, "tool_start"), count_of(s->log, "tool_end"));
    CHECK(count_of(s->log, "iteration_end") == (len < 5 ? 0 : len - 4));
    CHECK_INT(count_of(s->log, "error("), s->log[0] && s->outcome.end == PEG_END_NACK ? 1 : 0);
}

static peg_status torture_run(void)
{
    struct stage s;
    peg_status status = stage_open(&s);

    s.script[0] = "call c1 echo {\"x\":1}; call c2 nope {}";
    s.script[1] = "say done";
    s.turn_input[0] = (peg_turn_middleware){swap_tools, &s};
    s.turn_output[0] = (peg_turn_middleware){a_around, &s};
    if (!status)
        status = stage_run(&s);
    check_whole(&s);
    if (!status)
        status = s.outcome.error.status; /* memory ran out while the turn was under way */
    if (status == PEG_EHOST && count_of(s.outcome.error.message, "out of memory"))
        status = PEG_ENOMEM;
    stage_close(&s);
    return status;
}

TORTURE(a_run_survives_any_allocation_failure)
{
    return torture_run();
}
