/* SPDX-License-Identifier: Apache-2.0 */

/* The dispatch loop: iterations, the mirror, bounds, and how it ends. */

#include "fixture.h"

/* ---- middlewares ---------------------------------------------------------------- */

static peg_status in(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                     peg_error *reterr)
{
    note(user, "in%u ", peg_dispatch_iteration(dispatch));
    return peg_middleware_run_next(next, reterr);
}

static peg_status out(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                      peg_error *reterr)
{
    note(user, "out%u ", peg_dispatch_iteration(dispatch));
    return peg_middleware_run_next(next, reterr);
}

static peg_status ack_at_once(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    const peg_status status = peg_dispatch_ack(dispatch, reterr);

    (void)user;
    return status ? status : peg_middleware_run_next(next, reterr);
}

static peg_status forget_next(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    (void)dispatch;
    (void)next;
    (void)user;
    (void)reterr;
    return PEG_OK;
}

static peg_status fail_quietly(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
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

static void hear_iterations(const peg_event *event, void *user)
{
    note(user, "%s%d ", peg_event_name(event->kind), event->ids.iteration);
}

static peg_status note_iteration(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    note(stage, "%d ", peg_ctx_ids(peg_dispatch_ctx(dispatch))->iteration);
    return PEG_OK;
}

/* T84, G85 */
TEST(contexts_and_events_carry_the_number_of_their_iteration)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 nope {}";
    s.act = note_iteration;
    s.config.on_event = hear_iterations;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "turn_start-1 dispatch_start-1 iteration_start0 inference_start0 0 "
                                "inference_end0 tool_call0 tool_call0 iteration_end0 "
                                "iteration_start1 inference_start1 1 inference_end1 iteration_end1 "
                                "dispatch_end-1 turn_end-1 ");
    stage_close(&s);
}

/* ---- auto_ack ------------------------------------------------------------------- */

static void check_auto_ack(peg_auto_ack auto_ack, bool is_executor, unsigned n_iterations)
{
    struct stage s;

    opened(&s)->script[0] = "say hi";
    if (is_executor) {
        s.config.loop.executor = (peg_engine){stage_infer, &s};
        s.config.loop.engine = (peg_engine){0};
    }
    s.config.loop.auto_ack = auto_ack;
    s.config.loop.call.settings.max_iterations = 3;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.iterations, n_iterations);
    CHECK_INT(s.outcome.end, n_iterations == 1 ? PEG_END_ACK : PEG_END_NACK);
    stage_close(&s);
}

TEST(a_dispatch_acks_by_itself_with_an_engine_and_otherwise_when_asked)
{
    check_auto_ack(PEG_AUTO_ACK_DEFAULT, false, 1);
    check_auto_ack(PEG_AUTO_ACK_DEFAULT, true, 3);
    check_auto_ack(PEG_AUTO_ACK_ON, false, 1);
    check_auto_ack(PEG_AUTO_ACK_ON, true, 1);
    check_auto_ack(PEG_AUTO_ACK_OFF, false, 3);
    check_auto_ack(PEG_AUTO_ACK_OFF, true, 3);
}

static peg_status call_by_hand(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct stage *s = user;

    s->n_infer++;
    if (peg_dispatch_iteration(dispatch) > 0)
        return PEG_OK;
    return peg_turn_add_call(peg_dispatch_turn(dispatch), peg_cstr("c"), peg_cstr("echo"),
                             peg_cstr("{}"), reterr);
}

TEST(calls_that_an_executor_adds_keep_the_dispatch_from_acking)
{
    struct stage s;

    opened(&s)->config.loop.executor = (peg_engine){call_by_hand, &s};
    s.config.loop.engine = (peg_engine){0};
    s.config.loop.auto_ack = PEG_AUTO_ACK_ON;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 2);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static peg_status add_one_call(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                               peg_error *reterr)
{
    peg_status status = PEG_OK;

    (void)user;
    if (peg_dispatch_iteration(dispatch) == 0)
        status = peg_turn_add_call(peg_dispatch_turn(dispatch), peg_cstr("mine"), peg_cstr("echo"),
                                   peg_cstr("{}"), reterr);
    return status ? status : peg_middleware_run_next(next, reterr);
}

TEST(a_call_that_a_middleware_adds_is_run_before_the_model_is_asked)
{
    for (int i = 0; i < 2; i++) {
        struct stage s;

        opened(&s)->script[0] = "say hm";
        (i ? s.output : s.input)[0] = (peg_dispatch_middleware){add_one_call, &s};
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_INT(s.outcome.end, PEG_END_ACK);
        CHECK_INT(s.n_handled, 1);
        /* A call of the output pipeline waits for the next iteration, which runs it. */
        CHECK_INT(s.n_infer, i ? 2 : 1);
        stage_close(&s);
    }
}

/* Takes the oldest call and its result out of the turn, as a host does that keeps prompts short.
 */
static peg_status forget_oldest(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_status status = PEG_OK;

    (void)user;
    for (int i = 0; i < 2 && !status; i++) {
        peg_block *old = peg_turn_at(turn, peg_turn_next(turn, PEG_BLOCKS_CALLS, 0));

        if (old)
            status = peg_turn_remove(turn, peg_block_id(old), reterr);
    }
    return status ? status : peg_middleware_run_next(next, reterr);
}

static void check_forgetting(bool in_output, const char *second, unsigned n_infer)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}";
    s.script[1] = second;
    (in_output ? s.output : s.input)[0] = (peg_dispatch_middleware){forget_oldest, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.n_infer, n_infer);
    stage_close(&s);
}

TEST(calls_that_a_middleware_takes_away_count_neither_for_nor_against_an_ack)
{
    check_forgetting(false, "call c2 echo {}", 3);
    check_forgetting(false, "say done", 2);
    check_forgetting(true, "call c2 echo {}", 3);
    check_forgetting(true, "say done", 2);
}

/* An engine that keeps the prompt short itself: as many blocks go as come. */
static peg_status forget_and_call(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_status status = PEG_OK;

    (void)stage;
    for (int i = 0; i < 2 && !status; i++) {
        peg_block *old = peg_turn_at(turn, peg_turn_next(turn, PEG_BLOCKS_CALLS, 0));

        if (old)
            status = peg_turn_remove(turn, peg_block_id(old), reterr);
    }
    if (!status && peg_dispatch_iteration(dispatch) < 3)
        status = peg_turn_add_call(turn, peg_cstr("c"), peg_cstr("echo"), peg_cstr("{}"), reterr);
    return status;
}

TEST(calls_that_were_run_keep_the_dispatch_from_acking_however_many_an_engine_takes_away)
{
    struct stage s;

    opened(&s)->act = forget_and_call;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.outcome.iterations, 4);
    stage_close(&s);
}

TEST(calls_of_an_executor_count_though_the_output_pipeline_takes_them_away)
{
    struct stage s;

    opened(&s)->config.loop.executor = (peg_engine){call_by_hand, &s};
    s.config.loop.engine = (peg_engine){0};
    s.config.loop.auto_ack = PEG_AUTO_ACK_ON;
    s.output[0] = (peg_dispatch_middleware){forget_oldest, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_infer, 2);
    stage_close(&s);
}

/* ---- an ack in an iteration ------------------------------------------------------- */

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

    opened(&s)->config.loop.executor = (peg_engine){ack_in_executor, &s};
    s.config.loop.engine = (peg_engine){0};
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

static peg_status ack_alone(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                            peg_error *reterr)
{
    (void)next;
    (void)user;
    return peg_dispatch_ack(dispatch, reterr);
}

TEST(whoever_acks_in_a_pipeline_need_not_run_the_rest)
{
    for (int i = 0; i < 2; i++) {
        struct stage s;

        opened(&s);
        (i ? s.output : s.input)[0] = (peg_dispatch_middleware){ack_alone, &s};
        (i ? s.output : s.input)[1] = (peg_dispatch_middleware){in, &s};
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_INT(s.outcome.end, PEG_END_ACK);
        CHECK_STR(peg__str(s.seen), "");
        stage_close(&s);
    }
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

    CHECK_INT(count_of(s.log, "error(E_EXECUTOR)"), 1);
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
        peg_status (*run)(peg_dispatch *, peg_middleware_next *, void *, peg_error *);
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
        /* Nothing of the iteration was mirrored, but for the call that ran. */
        CHECK_INT(peg_turn_len(s.turn), cases[i].is_output ? 3 : 1);
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

/* G96 */
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

static peg_status call_often(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    return peg_dispatch_iteration(dispatch) < 100 ? always_call(stage, dispatch, reterr) : PEG_OK;
}

TEST(max_iterations_can_be_set_and_lifted)
{
    struct stage s;

    opened(&s)->act = always_call;
    s.config.loop.call.settings.max_iterations = 3;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.n_infer, 3);
    stage_close(&s);

    opened(&s)->act = call_often;
    s.config.loop.call.settings.max_iterations = -1;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.outcome.iterations, 101);
    stage_close(&s);
}

/* ---- the mirror ----------------------------------------------------------------- */

static peg_status look_at_turn(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                               peg_error *reterr)
{
    struct stage *s = user;

    note(s, "%zu/%zu ", peg_turn_len(peg_dispatch_turn(dispatch)), peg_turn_len(s->turn));
    return peg_middleware_run_next(next, reterr);
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

static peg_status nack_the_second(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                  peg_error *reterr)
{
    (void)user;
    if (peg_dispatch_iteration(dispatch) == 1)
        return peg_dispatch_nack(dispatch, NULL, reterr);
    return peg_middleware_run_next(next, reterr);
}

/* T96 */
TEST(a_nack_drops_what_its_iteration_stored_though_the_storage_has_it)
{
    struct stage s;
    peg_storage storage = {note_store, note_store, no_remove, no_fetch, no_bytes, &s};

    opened(&s)->script[0] = "call c1 echo {}";
    s.script[1] = "say half; call c2 echo {}";
    s.config.loop.storage = &storage;
    s.output[0] = (peg_dispatch_middleware){nack_the_second, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "call result assistant call result ");
    CHECK_INT(peg_turn_len(s.turn), 3); /* the question, and the iteration before */
    CHECK_STR(peg__str(s.outcome.error.code), "E_NACK");
    CHECK_INT(s.outcome.iterations, 2);
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

    CHECK_STR(peg__str(s.outcome.error.code), "E_EXECUTOR");
    CHECK_INT(peg_turn_len(s.turn), 1);
    stage_close(&s);
}

/* Refuses the n-th change it hears of. */
struct fussy {
    struct stage stage;
    unsigned n_left;
};

static peg_status count_down(struct fussy *fussy, peg_error *reterr)
{
    if (fussy->n_left-- > 0)
        return PEG_OK;
    *reterr = (peg_error){.code = "E_DISK", .cause = "", .message = "the disk is full"};
    return PEG_EIO;
}

static peg_status fussy_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)ctx;
    (void)block;
    return count_down(user, reterr);
}

static peg_status fussy_remove(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr)
{
    (void)ctx;
    (void)id;
    return count_down(user, reterr);
}

/* Two iterations with four and three changes; what the turn has then are whole iterations, and the
 * call that ran although its result, the fourth change, was refused. */
TEST(a_storage_that_fails_at_any_change_leaves_whole_iterations_and_calls_that_ran)
{
    for (unsigned n = 0; n < 8; n++) {
        struct fussy fussy;
        struct stage *s = &fussy.stage;
        peg_storage storage = {fussy_store, fussy_store, fussy_remove, no_fetch, no_bytes, &fussy};

        opened(s)->script[0] = "say one; say two; call c1 echo {}";
        s->script[1] = "say done";
        s->input[0] = (peg_dispatch_middleware){forget_oldest, s};
        s->config.loop.storage = &storage;
        fussy.n_left = n;
        CHECK_INT(stage_run(s), PEG_OK);

        CHECK_INT(peg_turn_len(s->turn), n < 3 ? 1 : n == 3 ? 3 : n < 7 ? 5 : 4);
        CHECK_INT(s->outcome.end, n < 7 ? PEG_END_NACK : PEG_END_ACK);
        CHECK_INT(s->outcome.iterations, n < 4 ? 1 : 2);
        if (n < 7)
            CHECK_CONTAINS(peg__str(s->outcome.error.message), "the disk is full");
        stage_close(s);
    }
}

static peg_status change_the_other(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_error error;

    (void)dispatch;
    (void)reterr;
    CHECK_INT(peg_turn_add_text(stage->turn, PEG_BLOCK_USER, peg_cstr("wait"), &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_TURN_BUSY");
    CHECK_INT(peg_turn_remove(stage->turn, peg_block_id(peg_turn_at(stage->turn, 0)), NULL),
              PEG_ESTATE);
    note(stage, "refused ");
    return PEG_OK;
}

static void change_at_the_end(const peg_event *event, void *user)
{
    struct stage *s = user;

    if (event->kind == PEG_EVENT_DISPATCH_END)
        CHECK_INT(peg_turn_add_text(s->turn, PEG_BLOCK_USER, peg_cstr("more"), NULL), PEG_OK);
}

/* G145 */
TEST(what_the_flush_would_overwrite_is_refused_while_a_dispatch_runs)
{
    struct stage s;

    opened(&s)->act = change_the_other;
    s.script[0] = "say hi";
    s.config.on_event = change_at_the_end;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "refused ");
    CHECK_INT(peg_turn_len(s.turn), 3);
    CHECK_STR(peg_block_text(peg_turn_at(s.turn, 2)), "more");
    CHECK_INT(peg_turn_add_text(s.turn, PEG_BLOCK_USER, peg_cstr("and more"), NULL), PEG_OK);
    stage_close(&s);
}

static peg_status replace_message(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_block_def def = {
        PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT, .id = peg_cstr("m1"),
        .text = peg_cstr(peg_dispatch_iteration(dispatch) ? "better" : "draft")};
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

static peg_status abort_after_first(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                    peg_error *reterr)
{
    const peg_status status = peg_middleware_run_next(next, reterr);

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

static void hear_why(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_ERROR)
        note(user, "error ");
    if (event->kind == PEG_EVENT_DISPATCH_END || event->kind == PEG_EVENT_TURN_END)
        note(user, "%s(%s) ", peg_turn_end_name(event->u.span.end),
             event->error ? event->error->message : "");
}

TEST(the_reason_of_an_abort_is_in_the_outcome_and_in_the_end_events)
{
    struct stage s;

    opened(&s)->output[0] = (peg_dispatch_middleware){abort_after_first, &s};
    s.config.on_event = hear_why;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_INT(s.outcome.error.status, PEG_ECANCELED);
    CHECK_STR(peg__str(s.outcome.error.code), "E_CANCELED");
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "enough");
    CHECK_STR(peg__str(s.seen), "aborted(the host asked to stop: enough) "
                                "aborted(the host asked to stop: enough) ");
    stage_close(&s);
}

static peg_status take_an_hour(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    if (peg_dispatch_iteration(dispatch) == 1)
        peg_clock_manual_advance(stage->user, 3600000);
    return PEG_OK;
}

TEST(a_deadline_that_passes_in_an_iteration_aborts_and_says_so)
{
    struct stage s;
    peg_clock *clock = NULL;
    peg_ctx *root = NULL;
    peg_ctx *timed = NULL;

    CHECK_INT(peg_clock_manual_new(0, &clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(root, clock, &timed, NULL), PEG_OK);
    opened(&s)->act = take_an_hour;
    CHECK_INT(peg_ctx_with_deadline(timed, 60000, &s.ctx, NULL), PEG_OK);
    s.user = clock;
    s.script[0] = "call c1 echo {}";
    s.script[1] = "call c2 echo {}";
    s.config.on_event = hear_why;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_STR(peg__str(s.outcome.error.code), "E_DEADLINE_EXCEEDED");
    CHECK_INT(s.n_handled, 1);          /* the call of the second iteration was not begun */
    CHECK_INT(peg_turn_len(s.turn), 3); /* and nothing of it was mirrored */
    CHECK_INT(count_of(s.seen, "aborted(the deadline has passed"), 2);
    CHECK_LACKS(peg__str(s.seen), "error");
    stage_close(&s);
    peg_ctx_unref(s.ctx);
    peg_ctx_unref(timed);
    peg_ctx_unref(root);
    peg_clock_manual_free(clock);
}

static peg_status ack_then_abort(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_status status = peg_dispatch_ack(dispatch, reterr);

    (void)stage;
    peg_dispatch_abort(dispatch, "too late to stop");
    return status;
}

TEST(what_was_acked_reaches_the_turn_whoever_aborts_it_afterwards)
{
    struct stage s;

    opened(&s)->act = ack_then_abort;
    s.script[0] = "say hi";
    s.output[0] = (peg_dispatch_middleware){out, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.outcome.error.status, PEG_OK);
    CHECK_INT(peg_turn_len(s.turn), 2);
    CHECK_INT(count_of(s.log, "iteration_end"), 1);
    CHECK_STR(peg__str(s.seen), ""); /* middlewares that have not begun are passed over */
    stage_close(&s);
}
