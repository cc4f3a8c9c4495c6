/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a turn says before its model is asked: settings no larger than a file may have them, no
 * tools that are not visible; and how far a run goes that is ended between its parts.
 */

#include "../t.h"
#include "base/limits.h"
#include "fixture.h"
#include "pegboard/pool.h"
#include "pegboard/step.h"
#include "pegboard/tool_config.h"

static void put(peg_turn *turn, const peg_key *key, const char *json)
{
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(json), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_turn_set(turn, key, peg_json_root(doc), NULL), PEG_OK);
    peg_json_doc_free(doc);
}

static peg_tool_config stored_config(const peg_turn *turn)
{
    peg_tool_config config;
    bool is_there = false;

    CHECK_INT(peg_turn_tool_config(turn, &config, &is_there, NULL), PEG_OK);
    CHECK(is_there);
    return config;
}

/* ---- settings ---------------------------------------------------------------------------- */

TEST(settings_of_a_turn_are_bounded_and_the_turn_says_what_holds)
{
    struct stage s;
    peg_tool_config config;

    opened(&s);
    put(s.turn, &peg_key_tool_config,
        "{\"max_iterations\":100000,\"execution_timeout\":\"1000h\",\"max_parallel_tools\":4,"
        "\"retry_config\":{\"max_retries\":1000}}");
    CHECK_INT(stage_run(&s), PEG_OK);

    config = stored_config(s.turn);
    CHECK_INT(config.settings.max_iterations, PEG_LIMIT_TURN_ITERATIONS);
    CHECK_INT(config.settings.timeout_ms, PEG_LIMIT_TURN_TIMEOUT_MS);
    CHECK_INT(config.settings.max_retries, PEG_LIMIT_ATTEMPTS);
    CHECK_INT(config.settings.max_parallel,
              4); /* the model may ask for so many; there is no pool to run them */
    stage_close(&s);
}

static peg_status switch_off(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                             peg_error *reterr)
{
    (void)user;
    put(peg_dispatch_turn(dispatch), &peg_key_tool_config, "{\"enabled\":false}");
    return peg_middleware_run_next(next, reterr);
}

TEST(a_call_that_was_left_is_not_run_if_a_middleware_switches_tools_off)
{
    struct stage s;

    opened(&s)->input[0] = (peg_dispatch_middleware){switch_off, NULL};
    CHECK_INT(peg_turn_add_call(s.turn, peg_cstr("left"), peg_cstr("echo"), peg_cstr("{}"), NULL),
              PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_handled, 0);
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOLS_OFF");
    stage_close(&s);
}

/* ---- definitions --------------------------------------------------------------------------- */

TEST(a_registry_that_shows_no_tools_leaves_none_on_the_turn)
{
    const char *const name = "echo";
    struct stage s;

    opened(&s);
    CHECK_INT(peg_registry_new(s.tools, s.n_tools, &s.config.registry, NULL), PEG_OK);
    CHECK_INT(peg_registry_hide(s.config.registry, &name, 1, NULL), PEG_OK);
    put(s.turn, &peg_key_tool_definitions, "[{\"name\":\"old\"}]");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK(!peg_bag_find(peg_turn_data(s.turn), peg_cstr(peg_key_tool_definitions.id)));
    peg_registry_unref(s.config.registry);
    stage_close(&s);
}

/* A store would keep it, and could not load it again. */
TEST(definitions_that_no_file_could_hold_fail_the_run_before_the_model_is_asked)
{
    char examples[2 * PEG_LIMIT_BAG_DEPTH + 16] = "[{\"x\":";
    const size_t start = strlen(examples);
    struct stage s;
    peg_tool_def def = tool_def("deep", echo, NULL);

    memset(examples + start, '[', PEG_LIMIT_BAG_DEPTH);
    memset(examples + start + PEG_LIMIT_BAG_DEPTH, ']', PEG_LIMIT_BAG_DEPTH);
    memcpy(examples + start + (size_t)2 * PEG_LIMIT_BAG_DEPTH, "}]", 3);
    def.examples = examples;
    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(s.outcome.error.cause), "E_BAG_TOO_LARGE");
    CHECK_INT(s.n_infer, 0);
    stage_close(&s);
}

/* ---- ended between the parts ------------------------------------------------------------------
 */

static peg_status note_phase(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                             peg_error *reterr)
{
    (void)ctx;
    (void)turn;
    (void)reterr;
    note(user, "%s ", peg_phase_name(phase));
    return PEG_OK;
}

TEST(a_context_that_keeps_turns_is_told_around_each_call_too)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    CHECK_INT(peg_ctx_with_snapshots(NULL, note_phase, &s, &s.ctx, NULL), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "pre_inference post_inference pre_call post_call post_tools "
                                "pre_inference post_inference final ");
    peg_ctx_unref(s.ctx);
    stage_close(&s);
}

TEST(what_was_answered_for_an_earlier_run_is_kept_before_the_model_is_asked)
{
    struct stage s;

    opened(&s)->config.loop.pending = PEG_PENDING_UNKNOWN;
    s.config.loop.snapshot = note_phase;
    s.config.loop.snapshot_user = &s;
    CHECK_INT(peg_turn_add_call(s.turn, peg_cstr("left"), peg_cstr("echo"), peg_cstr("{}"), NULL),
              PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "post_tools pre_inference post_inference final ");
    stage_close(&s);
}

struct ending {
    struct stage stage;
    peg_dispatch *dispatch;
    bool is_nack;
};

static peg_status remember(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                           peg_error *reterr)
{
    ((struct ending *)user)->dispatch = dispatch;
    return peg_middleware_run_next(next, reterr);
}

static void end_it(peg_call *call, const peg_json *args, void *user)
{
    struct ending *ending = user;

    (void)args;
    if (!ending->is_nack)
        peg_dispatch_abort(ending->dispatch, "enough");
    else if (peg_dispatch_nack(ending->dispatch, NULL, NULL))
        peg_call_fail(call, "it was ended before");
    peg_call_replyf(call, "ended");
}

static void run_ending(struct ending *ending, bool is_nack)
{
    const peg_tool_def def = tool_def("end", end_it, ending);
    struct stage *s = opened(&ending->stage);

    ending->is_nack = is_nack;
    s->script[0] = "call c1 end {}; call c2 echo {}; call c3 echo {}";
    s->input[0] = (peg_dispatch_middleware){remember, ending};
    s->config.loop.max_calls = 2;
    s->config.loop.snapshot = note_phase;
    s->config.loop.snapshot_user = s;
    CHECK_INT(stage_add(s, &def), PEG_OK);
    CHECK_INT(stage_run(s), PEG_OK);
}

TEST(a_run_that_is_aborted_among_its_calls_does_not_say_that_all_are_answered)
{
    struct ending ending;

    run_ending(&ending, false);
    CHECK_INT(ending.stage.outcome.end, PEG_END_ABORTED);
    CHECK_STR(peg__str(ending.stage.seen), "pre_inference post_inference pre_call post_call ");
    stage_close(&ending.stage);
}

/* Those beyond max_calls are not refused any more: the refusal would not be used. */
TEST(a_run_that_is_nacked_among_its_calls_tells_of_no_limit)
{
    struct ending ending;

    run_ending(&ending, true);
    CHECK_INT(ending.stage.outcome.end, PEG_END_NACK);
    CHECK(strstr(ending.stage.log, "c1"));
    CHECK(!strstr(ending.stage.log, "E_LIMIT_CALLS"));
    stage_close(&ending.stage);
}

TEST(of_two_calls_that_fail_at_once_the_first_is_told)
{
    struct stage s;
    const peg_tool_def one = tool_def("one", failing, NULL);
    const peg_tool_def two = tool_def("two", failing, NULL);
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = 2};
    peg_pool *pool = NULL;

    opened(&s)->script[0] = "call c1 one {}; call c2 two {}";
    CHECK_INT(stage_add(&s, &one), PEG_OK);
    CHECK_INT(stage_add(&s, &two), PEG_OK);
    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    s.config.loop.call.pool = pool;
    s.config.loop.call.settings.max_parallel = 2;
    put(s.turn, &peg_key_tool_config, "{\"tool_error_handling\":\"abort\"}");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.outcome.error.code), "E_TOOL_ABORTED");
    CHECK(strstr(s.outcome.error.message, "'one'"));
    stage_close(&s);
    peg_pool_unref(pool);
}

static void abort_after_tools(const peg_event *event, void *user)
{
    const bool is_after =
        event->kind == PEG_EVENT_PAUSE && strcmp(event->u.pause.phase, "after_tools") == 0;

    if (event->kind == PEG_EVENT_PAUSE)
        CHECK_INT(peg_stepper_continue(user, event->u.pause.pause_id,
                                       is_after ? PEG_STEP_ABORT : PEG_STEP_CONTINUE, NULL, NULL),
                  PEG_OK);
}

TEST(who_watches_can_abort_after_the_tools)
{
    struct stage s;
    peg_stepper *steps = NULL;

    CHECK_INT(peg_stepper_new(0, &steps, NULL), PEG_OK);
    CHECK_INT(peg_stepper_enable(steps, peg_cstr("s1"), NULL), PEG_OK);
    opened(&s)->script[0] = "call c1 echo {}";
    CHECK_INT(peg_turn_set_string(s.turn, &peg_key_session_id, peg_cstr("s1"), NULL), PEG_OK);
    s.config.loop.steps = steps;
    s.config.on_event = abort_after_tools;
    s.config.on_event_user = steps;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_handled, 1);
    CHECK_INT(s.n_infer, 1);
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    stage_close(&s);
    peg_stepper_unref(steps);
}
