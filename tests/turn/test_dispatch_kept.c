/* SPDX-License-Identifier: Apache-2.0 */

/* An iteration that does not come to its end: the calls that began are on the turn. */

#include "fixture.h"

/* One way to cut an iteration short after `pay` had its effect. */
enum cut {
    CUT_ABORT,            /* the handler's call is aborted while it runs */
    CUT_CANCEL,           /* the context of the run is canceled */
    CUT_FAILING_OUTPUT,   /* a middleware fails after the calls */
    CUT_FAILING_STORAGE,  /* the storage refuses the result */
    CUT_FAILING_SNAPSHOT, /* the turn cannot be kept after the call */
    CUT_FAILING_EXECUTOR, /* the host's executor fails after it ran the calls */
    CUT_NACK,             /* the host rejects the iteration */
    CUT_NACK_IN_HANDLER,
    N_CUTS
};

struct cutting {
    struct stage stage; /* first: what stage functions get */
    enum cut cut;
    bool is_over; /* the second run is not cut short */
    peg_dispatch *dispatch;
    peg_cancel *cancel;
    peg_storage storage;
};

static bool cuts(const struct cutting *c, enum cut cut)
{
    return c->cut == cut && !c->is_over;
}

static void pay(peg_call *call, const peg_json *args, void *user)
{
    struct cutting *c = user;

    (void)args;
    c->stage.n_handled++;
    if (cuts(c, CUT_ABORT))
        peg_dispatch_abort(c->dispatch, "enough");
    if (cuts(c, CUT_CANCEL))
        peg_cancel_fire(c->cancel, "enough");
    if (cuts(c, CUT_NACK_IN_HANDLER))
        CHECK_INT(peg_dispatch_nack(c->dispatch, NULL, NULL), PEG_OK);
    peg_call_reply(call, peg_cstr("paid"));
}

static peg_status find_dispatch(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                peg_error *reterr)
{
    struct cutting *c = user;

    c->dispatch = dispatch;
    return peg_middleware_run_next(next, reterr);
}

static peg_status check_output(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                               peg_error *reterr)
{
    const struct cutting *c = user;

    if (cuts(c, CUT_FAILING_OUTPUT))
        return PEG_EIO;
    if (cuts(c, CUT_NACK))
        return peg_dispatch_nack(dispatch, NULL, reterr);
    return peg_middleware_run_next(next, reterr);
}

static peg_status store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    const struct cutting *c = user;

    (void)ctx;
    (void)reterr;
    return cuts(c, CUT_FAILING_STORAGE) && peg_block_kind_of(block) == PEG_BLOCK_RESULT ? PEG_EIO
                                                                                        : PEG_OK;
}

static peg_status take_snapshot(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                                peg_error *reterr)
{
    const struct cutting *c = user;

    (void)ctx;
    (void)turn;
    (void)reterr;
    return cuts(c, CUT_FAILING_SNAPSHOT) && phase == PEG_PHASE_POST_CALL ? PEG_EIO : PEG_OK;
}

static peg_status execute(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    const struct cutting *c = user;
    peg_status status = stage_infer(dispatch, user, reterr);

    if (!status)
        status = peg_dispatch_run_calls(dispatch, NULL, reterr);
    return !status && !c->is_over ? PEG_EIO : status;
}

static void open_cutting(struct cutting *c, enum cut cut)
{
    const peg_tool_def def = tool_def("pay", pay, c);

    memset(c, 0, sizeof(*c));
    CHECK_INT(stage_add(opened(&c->stage), &def), PEG_OK);
    c->cut = cut;
    c->storage = (peg_storage){store, store, no_remove, no_fetch, no_bytes, c};
    c->stage.input[0] = (peg_dispatch_middleware){find_dispatch, c};
    c->stage.output[0] = (peg_dispatch_middleware){check_output, c};
    c->stage.config.loop.storage = &c->storage;
    if (cut == CUT_FAILING_SNAPSHOT) {
        c->stage.config.loop.snapshot = take_snapshot;
        c->stage.config.loop.snapshot_user = c;
    }
    if (cut == CUT_FAILING_EXECUTOR) {
        c->stage.config.loop.executor = (peg_engine){execute, &c->stage};
        c->stage.config.loop.engine = (peg_engine){0};
        c->stage.config.loop.auto_ack = PEG_AUTO_ACK_ON;
    }
    CHECK_INT(peg_ctx_with_cancel(NULL, &c->stage.ctx, &c->cancel, NULL), PEG_OK);
}

static void close_cutting(struct cutting *c)
{
    peg_ctx_unref(c->stage.ctx);
    peg_cancel_unref(c->cancel);
    stage_close(&c->stage);
}

/* Runs the turn again, which is not cut short now; the model has nothing more to ask for. */
static void run_again(struct cutting *c)
{
    c->is_over = true;
    c->stage.script[0] = "say done";
    peg_ctx_unref(c->stage.ctx);
    c->stage.ctx = NULL;
    CHECK_INT(stage_run(&c->stage), PEG_OK);
    CHECK_INT(c->stage.outcome.end, PEG_END_ACK);
}

static bool has_marks(const peg_turn *turn)
{
    return peg_bag_find(peg_turn_metadata(turn), peg_cstr("pegboard.calls_started@v1")) != NULL;
}

/* G100 */
TEST(an_iteration_that_is_cut_short_keeps_the_calls_that_began_unless_it_was_nacked)
{
    for (int cut = 0; cut < N_CUTS; cut++) {
        const bool is_nacked = cut == CUT_NACK || cut == CUT_NACK_IN_HANDLER;
        struct cutting c;
        struct stage *s = &c.stage;

        open_cutting(&c, (enum cut)cut);
        s->script[0] = "say paying; call c1 pay {}";
        CHECK_INT(stage_run(s), PEG_OK);

        CHECK(s->outcome.end != PEG_END_ACK);
        CHECK_INT(s->n_handled, 1);
        CHECK_INT(peg_turn_len(s->turn), is_nacked ? 1 : 3);
        CHECK(!has_marks(s->turn));
        if (!is_nacked) {
            CHECK_STR(peg_block_call_id(peg_turn_at(s->turn, 1)), "c1");
            CHECK_STR(text_of(result_at(s->turn, 0)), "paid");
            run_again(&c);
            CHECK_INT(s->n_handled, 1);
        }
        close_cutting(&c);
    }
}

/* G100 */
TEST(calls_that_had_not_begun_are_not_on_the_turn)
{
    struct cutting c;

    open_cutting(&c, CUT_ABORT);
    c.stage.script[0] = "call c0 echo {}; call c1 nope {}; call c2 pay {}; call c3 pay {}";
    CHECK_INT(stage_run(&c.stage), PEG_OK);

    CHECK_INT(c.stage.n_handled, 2);
    CHECK_INT(peg_turn_len(c.stage.turn), 5);
    CHECK_STR(peg_record_call_id(result_at(c.stage.turn, 0)), "c0");
    CHECK_STR(peg_record_call_id(result_at(c.stage.turn, 1)), "c2");
    close_cutting(&c);
}

static peg_status think(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_status status = peg_turn_add_text(turn, PEG_BLOCK_REASONING, peg_cstr("hm"), reterr);

    (void)stage;
    return status ? status : follow(turn, "call c1 echo {}", reterr);
}

TEST(thoughts_that_led_to_a_call_stay_with_it)
{
    struct cutting c;

    open_cutting(&c, CUT_ABORT);
    c.stage.act = think;
    c.stage.script[0] = "call c2 pay {}; say unheard";
    CHECK_INT(stage_run(&c.stage), PEG_OK);

    CHECK_INT(peg_turn_len(c.stage.turn), 6);
    CHECK_STR(peg_block_text(peg_turn_at(c.stage.turn, 1)), "hm");
    CHECK_STR(peg_block_call_id(peg_turn_at(c.stage.turn, 2)), "c1");
    CHECK_STR(peg_block_call_id(peg_turn_at(c.stage.turn, 4)), "c2");
    close_cutting(&c);
}

static void leave_call(peg_turn *turn, const char *id, const char *tool)
{
    const peg_block_def def = {PEG_BLOCK_DEF_INIT,     .kind = PEG_BLOCK_CALL,
                               .id = peg_cstr(id),     .call_id = peg_cstr(id),
                               .tool = peg_cstr(tool), .args = peg_cstr("{}")};
    peg_block *block = NULL;

    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    CHECK_INT(peg_turn_add(turn, block, NULL), PEG_OK);
    peg_block_unref(block);
}

TEST(a_call_that_an_earlier_run_left_is_answered_once_and_the_next_one_stays)
{
    struct cutting c;
    struct stage *s = &c.stage;

    open_cutting(&c, CUT_ABORT);
    leave_call(s->turn, "first", "pay");
    leave_call(s->turn, "second", "echo");
    CHECK_INT(stage_run(s), PEG_OK);
    CHECK_INT(s->outcome.end, PEG_END_ABORTED);
    CHECK_INT(peg_turn_len(s->turn), 4);
    CHECK(!has_marks(s->turn));

    run_again(&c);
    CHECK_INT(s->n_handled, 2);
    CHECK_STR(peg_record_call_id(result_at(s->turn, 0)), "first");
    CHECK_STR(peg_record_call_id(result_at(s->turn, 1)), "second");
    close_cutting(&c);
}

/* The first run may fail at any allocation; the second one has all the memory there is. Whatever
 * the turn could keep of the call, its handler is not run again for it. */
TORTURE(a_call_that_began_is_not_run_again_wherever_memory_ran_out)
{
    struct cutting c = {.cut = N_CUTS};
    struct stage *s = &c.stage;
    const peg_tool_def def = tool_def("pay", pay, &c);
    peg_status status = stage_open(s);

    if (!status)
        status = stage_add(s, &def);
    s->script[0] = "call c1 pay {}";
    s->script[1] = "say done";
    if (!status)
        status = stage_run(s);
    if (!status && s->outcome.end != PEG_END_ACK) {
        const unsigned n_handled = s->n_handled;

        peg__mem_fail_at(0);
        s->script[0] = "say done";
        CHECK_INT(stage_run(s), PEG_OK);
        CHECK_INT(s->outcome.end, PEG_END_ACK);
        CHECK_INT(s->n_handled, n_handled);
        if (n_handled)
            CHECK_INT(peg_turn_count(s->turn, PEG_BLOCKS_CALLS), 2);
        status = PEG_ENOMEM;
    }
    stage_close(s);
    return status;
}
