/* SPDX-License-Identifier: Apache-2.0 */

/* The dispatch loop: iterations, signals, the mirror, ephemeral tools. */

#include "fixture.h"

static struct stage *opened(struct stage *stage)
{
    CHECK_INT(stage_open(stage), PEG_OK);
    return stage;
}

/* ---- middlewares ---------------------------------------------------------------- */

static peg_status in(peg_dispatch *dispatch, peg_next *next, void *user, peg_error *reterr)
{
    note(user, "in%u ", peg_dispatch_iteration(dispatch));
    return peg_next_run(next, reterr);
}

static peg_status out(peg_dispatch *dispatch, peg_next *next, void *user, peg_error *reterr)
{
    note(user, "out%u ", peg_dispatch_iteration(dispatch));
    return peg_next_run(next, reterr);
}

static peg_status ack_at_once(peg_dispatch *dispatch, peg_next *next, void *user, peg_error *reterr)
{
    const peg_status status = peg_dispatch_ack(dispatch, reterr);

    (void)user;
    return status ? status : peg_next_run(next, reterr);
}

static peg_status nack_at_once(peg_dispatch *dispatch, peg_next *next, void *user,
                               peg_error *reterr)
{
    (void)next;
    (void)user;
    return peg_dispatch_nack(dispatch, NULL, reterr);
}

static peg_status forget_next(peg_dispatch *dispatch, peg_next *next, void *user, peg_error *reterr)
{
    (void)dispatch;
    (void)next;
    (void)user;
    (void)reterr;
    return PEG_OK;
}

static peg_status fail_quietly(peg_dispatch *dispatch, peg_next *next, void *user,
                               peg_error *reterr)
{
    (void)dispatch;
    (void)next;
    (void)user;
    (void)reterr;
    return PEG_EHOST;
}

/* ---- iterations ----------------------------------------------------------------- */

/* T84, T85, T93 */
TEST(a_dispatch_goes_on_while_the_model_asks_for_tools)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.script[1] = "call c2 echo {}";
    s.script[2] = "say done";
    s.input[0] = (peg_dispatch_middleware){in, &s};
    s.output[0] = (peg_dispatch_middleware){out, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "in0 out0 in1 out1 in2 out2 ");
    CHECK_INT(count_of(s.log, "dispatch_start"), 1);
    CHECK_INT(count_of(s.log, "dispatch_end(ack,3)"), 1);
    CHECK_INT(s.outcome.iterations, 3);
    stage_close(&s);
}

/* DESIGN 4.9: after an ack the iteration still finishes. */
static peg_status ack_in_executor(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    note(user, "run ");
    return peg_dispatch_ack(dispatch, reterr);
}

/* T86 */
TEST(an_ack_in_the_executor_still_runs_the_output_pipeline_and_ends_the_iteration)
{
    struct stage s;

    opened(&s)->config.loop.engine = NULL;
    s.config.loop.executor = ack_in_executor;
    s.output[0] = (peg_dispatch_middleware){out, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "run out0 ");
    CHECK_STR(peg__str(s.log), "turn_start dispatch_start iteration_start iteration_end "
                               "dispatch_end(ack,1) turn_end ");
    stage_close(&s);
}

/* T87 */
TEST(an_ack_in_the_output_pipeline_ends_the_dispatch_after_the_iteration)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.output[0] = (peg_dispatch_middleware){ack_at_once, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 1);
    CHECK_INT(count_of(s.log, "iteration_end"), 1);
    CHECK_INT(count_of(s.log, "dispatch_end(ack,1)"), 1);
    CHECK_INT(peg_turn_count(s.turn, PEG_BLOCKS(PEG_BLOCK_RESULT)), 1);
    stage_close(&s);
}

/* T88 */
TEST(an_ack_in_the_input_pipeline_keeps_the_model_from_being_asked)
{
    struct stage s;

    opened(&s)->input[0] = (peg_dispatch_middleware){ack_at_once, &s};
    s.output[0] = (peg_dispatch_middleware){out, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 0);
    CHECK_STR(peg__str(s.seen), "out0 ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static peg_status signal_twice(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_error second;

    (void)stage;
    CHECK(!peg_dispatch_is_signalled(dispatch));
    CHECK_INT(peg_dispatch_ack(dispatch, reterr), PEG_OK);
    CHECK_INT(peg_dispatch_nack(dispatch, NULL, &second), PEG_ESTATE);
    CHECK_STR(peg__str(second.code), "E_LLM_EXECUTION_ALREADY_SIGNALLED");
    CHECK_INT(peg_dispatch_ack(dispatch, &second), PEG_ESTATE);
    CHECK(peg_dispatch_is_acked(dispatch));
    CHECK(!peg_dispatch_nack_error(dispatch));
    return PEG_OK;
}

/* T89 */
TEST(a_second_signal_is_refused_and_the_first_stays)
{
    struct stage s;

    opened(&s)->act = signal_twice;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* ---- who hears of an ack -------------------------------------------------------- */

static peg_status first(void *user)
{
    note(user, "first ");
    return PEG_EHOST;
}

static peg_status second(void *user)
{
    note(user, "second ");
    return PEG_OK;
}

static peg_status third(void *user)
{
    note(user, "third ");
    return PEG_OK;
}

static peg_status subscribe(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_subscription *removed = NULL;
    peg_status status;

    if ((status = peg_dispatch_on_ack(dispatch, first, stage, NULL, reterr)) ||
        (status = peg_dispatch_on_ack(dispatch, third, stage, &removed, reterr)) ||
        (status = peg_dispatch_on_ack(dispatch, second, stage, NULL, reterr)))
        return status;
    peg_subscription_end(removed);
    if (stage->user)
        return peg_dispatch_nack(dispatch, NULL, reterr);
    status = peg_dispatch_ack(dispatch, reterr);
    note(stage, "acked ");
    peg_subscription_end(removed);
    return status;
}

/* T90 */
TEST(subscribers_hear_of_an_ack_in_order_inside_it_and_one_that_fails_stops_nobody)
{
    struct stage s;

    opened(&s)->act = subscribe;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "first second acked ");
    stage_close(&s);
}

/* T90 */
TEST(subscribers_do_not_hear_of_a_nack)
{
    struct stage s;

    opened(&s)->act = subscribe;
    s.user = &s;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "");
    stage_close(&s);
}

/* ---- failures ------------------------------------------------------------------- */

static peg_status fail_infer(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)stage;
    (void)dispatch;
    *reterr = (peg_error){
        .status = PEG_EHOST, .code = "E_HTTP", .cause = "", .message = "the provider said 503"};
    return PEG_EHOST;
}

/* T74, T91 */
TEST(a_failing_executor_is_one_error_that_contains_its_words)
{
    struct stage s;

    opened(&s)->act = fail_infer;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.log, "error(E_LLM_EXECUTION_EXECUTOR_ERROR)"), 1);
    CHECK_INT(count_of(s.log, "turn_end"), 1);
    CHECK_INT(count_of(s.log, "dispatch_end(nack,1)"), 1);
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "the provider said 503");
    CHECK_STR(peg__str(s.outcome.error.cause), "E_HTTP");
    stage_close(&s);
}

TEST(a_middleware_that_fails_or_forgets_the_rest_ends_the_dispatch)
{
    static const struct {
        bool is_output;
        peg_status (*run)(peg_dispatch *, peg_next *, void *, peg_error *);
        const char *code;
        const char *name;
    } cases[] = {
        {false, fail_quietly, "E_DISPATCH_PIPELINE_ERROR", "dispatch-input"},
        {true, fail_quietly, "E_DISPATCH_PIPELINE_ERROR", "dispatch-output"},
        {false, forget_next, "E_PIPELINE_SHORT_CIRCUITED", "dispatch-input"},
        {true, forget_next, "E_PIPELINE_SHORT_CIRCUITED", "dispatch-output"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stage s;

        opened(&s)->script[0] = "call c1 echo {}";
        (cases[i].is_output ? s.output : s.input)[0] = (peg_dispatch_middleware){cases[i].run, &s};
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_STR(peg__str(s.outcome.error.code), cases[i].code);
        CHECK_CONTAINS(peg__str(s.outcome.error.message), cases[i].name);
        CHECK_INT(peg_turn_len(s.turn), 1); /* nothing of the iteration was mirrored */
        stage_close(&s);
    }
}

/* ---- bounds --------------------------------------------------------------------- */

static peg_status always_call(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)stage;
    return peg_turn_add_call(peg_dispatch_turn(dispatch), peg_cstr("c"), peg_cstr("echo"),
                             peg_cstr("{}"), reterr);
}

TEST(a_model_that_never_finishes_is_stopped_by_max_iterations)
{
    struct stage s;

    opened(&s)->act = always_call;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 20);
    CHECK_STR(peg__str(s.outcome.error.code), "E_LIMIT_ITERATIONS");
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "max_iterations (20)");
    CHECK_INT(count_of(s.log, "limit(E_LIMIT_ITERATIONS)"), 1);
    CHECK_INT(count_of(s.log, "dispatch_end(nack,20)"), 1);
    CHECK_INT(peg_turn_count(s.turn, PEG_BLOCKS(PEG_BLOCK_RESULT)), 20);
    stage_close(&s);
}

TEST(max_iterations_can_be_set_and_lifted)
{
    struct stage s;

    opened(&s)->act = always_call;
    s.config.loop.max_iterations = 3;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.n_infer, 3);
    stage_close(&s);

    opened(&s);
    for (int i = 0; i < MAX_STEPS - 1; i++)
        s.script[i] = "call c echo {}";
    s.config.loop.max_iterations = -1;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* ---- the mirror ----------------------------------------------------------------- */

static peg_status look_at_turn(peg_dispatch *dispatch, peg_next *next, void *user,
                               peg_error *reterr)
{
    struct stage *s = user;

    note(s, "%zu/%zu ", peg_turn_len(peg_dispatch_turn(dispatch)), peg_turn_len(s->turn));
    return peg_next_run(next, reterr);
}

/* T95 */
TEST(what_an_iteration_stores_is_in_the_dispatch_at_once_and_in_the_turn_at_its_end)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.script[1] = "say done";
    s.input[0] = (peg_dispatch_middleware){look_at_turn, &s};
    s.output[0] = (peg_dispatch_middleware){look_at_turn, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    /* input 0, output 0 (call and result), input 1 (flushed), output 1 (one more) */
    CHECK_STR(peg__str(s.seen), "1/1 3/1 3/3 4/3 ");
    CHECK_INT(peg_turn_len(s.turn), 4);
    stage_close(&s);
}

static peg_status note_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)ctx;
    (void)reterr;
    note(user, "%s ", peg_block_kind_name(peg_block_kind_of(block)));
    return PEG_OK;
}

static peg_status no_remove(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)id;
    (void)reterr;
    return PEG_OK;
}

static peg_status no_fetch(void *user, peg_ctx *ctx, unsigned kinds, peg_turn *into,
                           peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)kinds;
    (void)into;
    (void)reterr;
    return PEG_OK;
}

static peg_status no_bytes(void *user, peg_ctx *ctx, const char *what, peg_str id, peg_str bytes,
                           peg_reader **ret_reader, peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)what;
    (void)id;
    return peg_reader_from_bytes(bytes, ret_reader, reterr);
}

/* T96 */
TEST(a_nack_drops_what_its_iteration_stored_though_the_storage_has_it)
{
    struct stage s;
    peg_storage storage = {note_store, note_store, no_remove, no_fetch, no_bytes, &s};

    opened(&s)->script[0] = "call c1 echo {}";
    s.script[1] = "say half";
    s.config.loop.storage = &storage;
    s.output[0] = (peg_dispatch_middleware){look_at_turn, &s};
    s.config.loop.max_iterations = 5;
    s.output[1] = (peg_dispatch_middleware){NULL, NULL};
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(peg_turn_len(s.turn), 4);
    stage_close(&s);

    opened(&s)->script[0] = "say half";
    s.config.loop.storage = &storage;
    s.output[0] = (peg_dispatch_middleware){nack_at_once, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "assistant ");
    CHECK_INT(peg_turn_len(s.turn), 1);
    CHECK_STR(peg__str(s.outcome.error.code), "E_LLM_EXECUTION_NACK");
    stage_close(&s);
}

static peg_status refuse_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)block;
    (void)reterr;
    return PEG_EHOST;
}

TEST(a_storage_that_fails_fails_the_executor_and_changes_no_turn)
{
    struct stage s;
    peg_storage storage = {refuse_store, refuse_store, no_remove, no_fetch, no_bytes, &s};

    opened(&s)->script[0] = "say hi";
    s.config.loop.storage = &storage;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.outcome.error.code), "E_LLM_EXECUTION_EXECUTOR_ERROR");
    CHECK_INT(peg_turn_len(s.turn), 1);
    stage_close(&s);
}

static peg_status replace_message(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_block_def def = {.kind = PEG_BLOCK_ASSISTANT,
                               .id = peg_cstr("m1"),
                               .text =
                                   peg_cstr(peg_dispatch_iteration(dispatch) ? "better" : "draft")};
    peg_block *block = NULL;
    peg_status status = peg_block_new(&def, &block, reterr);

    (void)stage;
    if (!status)
        status = peg_turn_put(peg_dispatch_turn(dispatch), block, reterr);
    peg_block_unref(block);
    return status;
}

/* T97 */
TEST(a_mutated_block_keeps_its_place_in_the_dispatch_and_in_the_turn)
{
    struct stage s;

    opened(&s)->act = replace_message;
    s.script[0] = "call c1 echo {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(peg_turn_count(s.turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT)), 1);
    CHECK_STR(peg_block_text(peg_turn_at(s.turn, 1)), "better");
    stage_close(&s);
}

/* ---- aborting ------------------------------------------------------------------- */

static peg_status abort_after_first(peg_dispatch *dispatch, peg_next *next, void *user,
                                    peg_error *reterr)
{
    const peg_status status = peg_next_run(next, reterr);

    (void)user;
    peg_dispatch_abort(dispatch, "enough");
    return status;
}

/* T94 */
TEST(an_abort_between_iterations_stops_before_the_model_is_asked_again)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.output[0] = (peg_dispatch_middleware){abort_after_first, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 1);
    CHECK_INT(count_of(s.log, "dispatch_end(aborted,1)"), 1);
    CHECK_INT(count_of(s.log, "error"), 0);
    stage_close(&s);
}

/* ---- ephemeral tools ------------------------------------------------------------ */

static peg_status add_ephemeral(peg_registry *registry, const char *name)
{
    peg_tool_def def = tool_def(name, echo, NULL);
    peg_tool *tool = NULL;
    peg_status status;

    def.ephemeral = true;
    status = peg_tool_new(&def, &tool, NULL);
    if (!status)
        status = peg_registry_register(registry, tool, false, NULL);
    peg_tool_unref(tool);
    return status;
}

static peg_status ephemeral_then_end(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    const char *how = stage->user;
    peg_status status = add_ephemeral(registry, "brief");

    if (status)
        return status;
    if (strcmp(how, "ack") == 0)
        status = peg_dispatch_ack(dispatch, reterr);
    else if (strcmp(how, "nack") == 0)
        status = peg_dispatch_nack(dispatch, NULL, reterr);
    else
        peg_dispatch_abort(dispatch, "stop");
    note(stage, "%s:%s ", how, peg_registry_has(registry, peg_cstr("brief")) ? "there" : "gone");
    return status;
}

/* T56, T57, T58 */
TEST(an_ephemeral_tool_is_gone_when_ack_returns_and_not_on_nack_or_abort)
{
    static const char *const ways[] = {"ack", "nack", "abort"};
    static const char *const expected[] = {"ack:gone ", "nack:there ", "abort:there "};

    for (size_t i = 0; i < 3; i++) {
        struct stage s;
        char way[8];

        opened(&s)->act = ephemeral_then_end;
        snprintf(way, sizeof(way), "%s", ways[i]);
        s.user = way;
        CHECK_INT(stage_run(&s), PEG_OK);
        CHECK_STR(peg__str(s.seen), expected[i]);
        stage_close(&s);
    }
}

static peg_status bind_another(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_registry *bound = NULL;
    peg_registry *unbound = NULL;
    peg_registry *merged = NULL;
    peg_subscription *subscription = NULL;
    peg_status status;

    CHECK_INT(peg_registry_new(NULL, 0, &bound, NULL), PEG_OK);
    CHECK_INT(add_ephemeral(bound, "brief"), PEG_OK);
    CHECK_INT(peg_registry_copy(bound, &unbound, NULL), PEG_OK);
    CHECK_INT(peg_registry_merge(&bound, 1, PEG_COLLISION_THROW, &merged, NULL), PEG_OK);
    CHECK_INT(peg_registry_bind(bound, dispatch, NULL, NULL), PEG_OK);
    CHECK_INT(peg_registry_bind(bound, dispatch, NULL, NULL), PEG_OK); /* twice is once */
    CHECK_INT(peg_registry_bind(unbound, dispatch, &subscription, NULL), PEG_OK);
    peg_subscription_end(subscription);
    status = peg_dispatch_ack(dispatch, reterr);
    note(stage, "%zu %zu %zu", peg_registry_len(bound), peg_registry_len(unbound),
         peg_registry_len(merged));
    peg_subscription_end(subscription);
    peg_registry_unref(bound);
    peg_registry_unref(unbound);
    peg_registry_unref(merged);
    return status;
}

/* T59, T60 */
TEST(a_registry_that_is_not_bound_any_more_or_was_merged_from_one_is_not_pruned)
{
    struct stage s;

    opened(&s)->act = bind_another;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 1 1");
    stage_close(&s);
}

static peg_status ephemeral_at_turn(peg_turn_scope *scope, peg_next *next, void *user,
                                    peg_error *reterr)
{
    (void)user;
    CHECK_INT(add_ephemeral(peg_turn_scope_registry(scope), "brief"), PEG_OK);
    return peg_next_run(next, reterr);
}

static peg_status tell_brief(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    note(stage, "%d ", peg_registry_has(peg_dispatch_registry(dispatch), peg_cstr("brief")));
    return PEG_OK;
}

TEST(a_hosts_ephemeral_tool_lives_through_every_iteration_in_spite_of_forging)
{
    struct stage s;

    opened(&s)->act = tell_brief;
    s.script[0] = "call c1 echo {}";
    s.script[1] = "call c2 echo {}";
    s.turn_input[0] = (peg_turn_middleware){ephemeral_at_turn, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "1 1 1 ");
    stage_close(&s);
}

/* ---- artifacts ------------------------------------------------------------------ */

static peg_status note_queries(peg_dispatch *dispatch, peg_next *next, void *user,
                               peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    peg_tool *head = peg_registry_get(registry, peg_cstr("artifact_head"));
    const peg_json *ids = NULL;

    if (head)
        CHECK_INT(peg_json_pointer(peg_tool_input_schema(head), peg_cstr("/properties/callId/enum"),
                                   &ids, NULL),
                  PEG_OK);
    note(user, "%u:%zu/%zu ", peg_dispatch_iteration(dispatch), peg_registry_len(registry),
         ids ? peg_json_len(ids) : 0);
    peg_tool_unref(head);
    return peg_next_run(next, reterr);
}

static void say_text(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("one\ntwo\nthree"));
}

static peg_status add_text_tool(struct stage *s)
{
    const peg_tool_def def = tool_def("read", say_text, NULL);

    return stage_add(s, &def);
}

/* T123, T127, T128 */
TEST(queries_appear_in_the_iteration_after_an_artifact_and_their_ids_grow)
{
    struct stage s;

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    s.script[0] = "say wait";
    s.script[0] = "call c1 read {}";
    s.script[1] = "call q1 artifact_head {\"callId\":\"c1\",\"n\":1}";
    s.script[2] = "call c2 read {}";
    s.input[0] = (peg_dispatch_middleware){note_queries, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    /* two tools of the host; seven queries; the answer of a query is no artifact */
    CHECK_STR(peg__str(s.seen), "0:2/0 1:9/1 2:9/1 3:9/2 ");
    CHECK_STR(text_of(result_at(s.turn, 1)), "one");
    stage_close(&s);
}

static peg_status artifact_late(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    peg_status status;

    if (peg_dispatch_iteration(dispatch) != 4)
        return PEG_OK;
    note(stage, "%d", peg_registry_has(registry, peg_cstr("artifact_head")));
    status = peg_dispatch_ack(dispatch, reterr);
    note(stage, "%d", peg_registry_has(registry, peg_cstr("artifact_head")));
    return status;
}

/* T129 */
TEST(queries_are_gone_when_ack_returns_even_if_the_first_artifact_came_at_iteration_3)
{
    struct stage s;

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    s.act = artifact_late;
    for (int i = 0; i < 3; i++)
        s.script[i] = "call x nope {}";
    s.script[3] = "call c1 read {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "10");
    stage_close(&s);
}

TEST(a_hosts_tool_with_the_name_of_a_query_stays_and_a_warning_says_so)
{
    struct stage s;
    const peg_tool_def mine = tool_def("artifact_head", echo, NULL);

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    CHECK_INT(stage_add(&s, &mine), PEG_OK);
    s.script[0] = "call c1 read {}";
    s.script[1] = "call c2 artifact_head {\"mine\":1}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.log, "warning(E_QUERY_SHADOWED)"), 1);
    CHECK_STR(text_of(result_at(s.turn, 1)), "{\"mine\":1}");
    stage_close(&s);
}

static peg_status add_retrieved(peg_turn *turn, const char *id)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_block *block = NULL;
    peg_block_def def = {.kind = PEG_BLOCK_OTHER,
                         .type = peg_cstr("retrieved"),
                         .id = peg_cstr(id),
                         .tier = PEG_TIER_THIRD_PARTY_PUBLIC};
    peg_status status = peg_reader_from_bytes(peg_cstr("alpha\nbeta"), &reader, NULL);

    if (!status)
        status = peg_artifact_new(NULL, reader, &artifact, NULL);
    def.artifact = artifact;
    if (!status)
        status = peg_block_new(&def, &block, NULL);
    if (!status)
        status = peg_turn_add(turn, block, NULL);
    peg_block_unref(block);
    peg_artifact_unref(artifact);
    peg_reader_unref(reader);
    return status;
}

TEST(something_retrieved_is_queried_by_the_id_of_its_block)
{
    struct stage s;

    opened(&s)->script[0] = "call q artifact_tail {\"callId\":\"doc-1\",\"n\":1}";
    CHECK_INT(add_retrieved(s.turn, "doc-1"), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(text_of(result_at(s.turn, 0)), "beta");
    stage_close(&s);
}

/* ---- standalone ----------------------------------------------------------------- */

/* T92 */
TEST(a_standalone_dispatch_takes_exactly_one_of_source_and_turn)
{
    struct stage s;
    peg_ctx *ctx = NULL;
    peg_error error;
    const peg_dispatch_input neither = {.turn = NULL};

    opened(&s);
    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(peg_dispatch_run(ctx, &s.config.loop, &neither, NULL, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_LLM_DISPATCH_INPUT");
    CHECK_INT(peg_dispatch_run(ctx, &s.config.loop,
                               &(peg_dispatch_input){.turn = s.turn, .source = (void *)&s}, NULL,
                               &error),
              PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_LLM_DISPATCH_INPUT");
    peg_ctx_unref(ctx);
    stage_close(&s);
}

TEST(a_standalone_dispatch_runs_on_its_own_blocks_and_registry)
{
    struct stage s;
    peg_ctx *ctx = NULL;
    peg_registry *registry = NULL;
    peg_dispatch_input input;

    opened(&s)->script[0] = "call c1 echo {\"sub\":1}";
    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(peg_registry_new(s.tools, s.n_tools, &registry, NULL), PEG_OK);
    input = (peg_dispatch_input){.turn = s.turn, .registry = registry};
    CHECK_INT(peg_dispatch_run(ctx, &s.config.loop, &input, &s.outcome, NULL), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(text_of(result_at(s.turn, 0)), "{\"sub\":1}");
    CHECK_INT(peg_registry_len(registry), 1);
    peg_registry_unref(registry);
    peg_ctx_unref(ctx);
    stage_close(&s);
}

static peg_status sub_dispatch(peg_turn_scope *scope, peg_next *next, void *user, peg_error *reterr)
{
    struct stage *s = user;
    const peg_loop loop = {.engine = stage_infer, .user = s};
    const peg_dispatch_input input = {.source = scope};
    peg_outcome outcome;

    CHECK_INT(peg_dispatch_run(NULL, &loop, &input, &outcome, reterr), PEG_OK);
    note(s, "%s %zu ", peg_end_name(outcome.end), peg_turn_len(peg_turn_scope_turn(scope)));
    return peg_next_run(next, reterr);
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

/* ---- telling -------------------------------------------------------------------- */

static peg_status tell(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_error error;
    peg_status status;

    (void)stage;
    peg_dispatch_log(dispatch, "info", "retry", "second try", NULL);
    if ((status =
             peg_dispatch_report_message(dispatch, peg_cstr("m"), peg_cstr("he"), false, reterr)) ||
        (status =
             peg_dispatch_report_message(dispatch, peg_cstr("m"), peg_cstr("llo"), true, reterr)) ||
        (status =
             peg_dispatch_report_thought(dispatch, peg_cstr("t"), peg_cstr("hm"), true, reterr)))
        return status;
    CHECK_INT(peg_dispatch_report_message(dispatch, peg_cstr("m"), peg_cstr("!"), true, &error),
              PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_STREAM_COMPLETE");
    return PEG_OK;
}

static void hear_streams(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_MESSAGE)
        note(user, "[%.*s|%.*s|%d]", PEG_ARG(event->u.stream.full), PEG_ARG(event->u.stream.delta),
             event->u.stream.is_complete);
    if (event->kind != PEG_EVENT_LOG)
        return;
    CHECK(event->ids.dispatch_id[0] != '\0');
    note(user, "(%s %.*s %d %d)", event->u.log.level, PEG_ARG(event->u.log.kind),
         event->ids.iteration, event->u.log.payload != NULL);
}

/* T99, T101 */
TEST(an_executor_can_tell_messages_that_grow_and_log)
{
    struct stage s;

    opened(&s)->act = tell;
    s.config.on_event = hear_streams;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "(info retry 0 0)[he|he|0][hello|llo|1]");
    CHECK_INT(peg_turn_len(s.turn), 1); /* telling stores nothing */
    stage_close(&s);
}
