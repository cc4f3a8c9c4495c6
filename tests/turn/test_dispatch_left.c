/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must not happen to calls whose outcome is not known: to be run twice because a mark was
 * lost, is damaged, or was not looked at; and what a run does that is ended by its snapshot
 * function.
 */

#include "../t.h"
#include "fixture.h"
#include "pegboard/pool.h"
#include "pegboard/tool_config.h"

/* ---- calls that are left ------------------------------------------------------------- */

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

/* As a file has it: its type is not checked. */
static void mark(peg_turn *turn, const char *json)
{
    const peg_key key = {
        .bag = PEG_BAG_METADATA, .id = "pegboard.calls_started@v1", .type = PEG_KEY_ANY};
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(json), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_turn_set(turn, &key, peg_json_root(doc), NULL), PEG_OK);
    peg_json_doc_free(doc);
}

TEST(a_mark_that_is_damaged_counts_for_every_call)
{
    static const char *const marks[] = {"{\"left\":true}", "[7]", "\"left\"", "null"};

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        struct stage s;

        opened(&s);
        leave_call(s.turn, "left", "echo");
        mark(s.turn, marks[i]);
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_INT(s.n_handled, 0);
        CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_OUTCOME_UNKNOWN");
        CHECK(!peg_bag_find(peg_turn_metadata(s.turn), peg_cstr(peg_key_calls_started.id)));
        stage_close(&s);
    }
}

TEST(a_mark_is_of_one_call_and_may_come_twice)
{
    struct stage s;

    opened(&s);
    leave_call(s.turn, "begun", "echo");
    leave_call(s.turn, "not_begun", "echo");
    mark(s.turn, "[\"begun\",\"begun\",\"gone\"]");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_handled, 1);
    CHECK_STR(peg_record_call_id(result_at(s.turn, 0)), "begun");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_OUTCOME_UNKNOWN");
    CHECK(!peg_record_is_error(result_at(s.turn, 1)));
    stage_close(&s);
}

static peg_status only_run(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    size_t n = 0;
    const peg_status status = peg_dispatch_run_calls(dispatch, &n, reterr);

    note(user, "%zu ", n);
    return status;
}

/* Nothing settles the calls left before it: running the calls has to check the marks. */
TEST(an_executor_of_the_hosts_does_not_run_twice_what_had_begun)
{
    static const struct {
        peg_pending_policy policy;
        bool is_idempotent;
        const char *seen;
    } cases[] = {{PEG_PENDING_SAFE, false, "1 "},
                 {PEG_PENDING_SAFE, true, "2 "},
                 {PEG_PENDING_RUN, false, "2 "},
                 {PEG_PENDING_UNKNOWN, true, "1 "}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage s;
        peg_tool_def def = tool_def("once", echo, &s);

        opened(&s);
        def.idempotent = cases[i].is_idempotent;
        CHECK_INT(stage_add(&s, &def), PEG_OK);
        leave_call(s.turn, "begun", "once");
        leave_call(s.turn, "asked_for", "once");
        mark(s.turn, "[\"begun\"]");
        s.config.loop.executor = (peg_engine){only_run, &s};
        s.config.loop.engine = (peg_engine){0};
        s.config.loop.call.settings.max_iterations = 1;
        s.config.loop.pending = cases[i].policy;
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_STR(peg__str(s.seen), cases[i].seen);
        CHECK_INT(s.n_handled, (unsigned)(cases[i].seen[0] - '0'));
        CHECK_INT(peg_turn_next_pending(s.turn, 0), peg_turn_len(s.turn));
        stage_close(&s);
    }
}

/* ---- a failed call that was left, and errors end the loop -------------------------------- */

TEST(a_call_that_was_left_and_fails_ends_an_aborting_loop_before_the_model_is_asked)
{
    struct stage s;
    const peg_tool_def def = tool_def("fails", failing, NULL);
    peg_tool_config config;

    opened(&s)->script[0] = "call more echo {}";
    config = peg_tool_config_default();
    config.errors = PEG_ERRORS_ABORT;
    s.config.loop.tools = &config;
    CHECK_INT(stage_add(&s, &def), PEG_OK);
    leave_call(s.turn, "left", "fails");
    leave_call(s.turn, "behind", "echo");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(s.outcome.error.code), "E_TOOL_ABORTED");
    CHECK_INT(s.n_infer, 0);
    CHECK_INT(s.n_handled, 0);
    CHECK_INT(peg_turn_next_pending(s.turn, 0), peg_turn_len(s.turn));
    stage_close(&s);
}

static peg_status ack_first(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status = follow(peg_dispatch_turn(dispatch), "call c1 fails {}", reterr);

    (void)stage;
    if (!status)
        status = peg_dispatch_ack(dispatch, reterr);
    return status ? status : peg_dispatch_run_calls(dispatch, NULL, reterr);
}

/* The subscribers of the ack were notified already. */
TEST(a_dispatch_that_was_acked_ends_with_the_ack_though_a_call_fails_afterwards)
{
    struct stage s;
    const peg_tool_def def = tool_def("fails", failing, NULL);
    peg_tool_config config;

    opened(&s)->act = ack_first;
    config = peg_tool_config_default();
    config.errors = PEG_ERRORS_ABORT;
    s.config.loop.tools = &config;
    CHECK_INT(stage_add(&s, &def), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK(peg_record_is_error(result_at(s.turn, 0)));
    stage_close(&s);
}

/* ---- a result that is lost ------------------------------------------------------------------ */

static peg_status lose_first(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)reterr;
    return peg_block_kind_of(block) == PEG_BLOCK_RESULT &&
                   peg__str_is(peg_block_call_id(block), "c1")
               ? PEG_EIO
               : PEG_OK;
}

/* The last state that was kept: the results there, and the calls that are marked. */
static peg_status note_last(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                            peg_error *reterr)
{
    struct stage *stage = user;
    const size_t pending = peg_turn_next_pending(turn, 0);
    const peg_json *begun = NULL;

    (void)ctx;
    (void)phase;
    (void)reterr;
    CHECK_INT(peg_turn_get(turn, &peg_key_calls_started, &begun, NULL), PEG_OK);
    stage->seen[0] = '\0';
    note(stage, "%s", peg_phase_name(phase));
    for (size_t i = 0; begun && i < peg_json_len(begun); i++) {
        const bool is_pending =
            pending < peg_turn_len(turn) && peg__str_eq(peg_json_str(peg_json_at(begun, i)),
                                                        peg_block_id(peg_turn_at(turn, pending)));

        note(stage, " %s", is_pending ? "pending" : "another");
    }
    return PEG_OK;
}

/* Two run at once. The first one's result cannot be kept; what is kept when the second one ends
 * must still have the mark of the first: resuming would run it again. */
TEST(a_call_whose_result_was_lost_stays_marked_when_others_end)
{
    struct stage s;
    peg_storage storage = {lose_first, lose_first, no_remove, no_fetch, no_bytes, NULL};
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = 2};
    peg_pool *pool = NULL;

    opened(&s)->script[0] = "call c1 echo {}; call c2 echo {}";
    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    s.config.loop.call.pool = pool;
    s.config.loop.call.settings.max_parallel = 2;
    s.config.loop.storage = &storage;
    s.config.loop.snapshot = note_last;
    s.config.loop.snapshot_user = &s;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_INT(s.n_handled, 2);
    CHECK_STR(peg__str(s.seen), "post_call pending");
    stage_close(&s);
    peg_pool_unref(pool);
}

/* ---- ended by the snapshot function ------------------------------------------------------------
 */

struct ending {
    struct stage stage;
    peg_dispatch *dispatch;
    peg_phase phase;
    bool is_abort;
};

static peg_status remember(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                           peg_error *reterr)
{
    ((struct ending *)user)->dispatch = dispatch;
    return peg_middleware_run_next(next, reterr);
}

static peg_status end_at(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                         peg_error *reterr)
{
    struct ending *ending = user;

    (void)ctx;
    (void)turn;
    if (phase != ending->phase)
        return PEG_OK;
    if (!ending->is_abort)
        return peg_dispatch_nack(ending->dispatch, NULL, reterr);
    peg_dispatch_abort(ending->dispatch, "enough");
    return PEG_OK;
}

TEST(a_dispatch_that_is_ended_while_it_is_kept_asks_and_runs_nothing_more)
{
    for (int i = 0; i < 2 * PEG_PHASE_POST_CALL; i++) {
        struct ending ending;
        struct stage *s = opened(&ending.stage);

        ending.phase = (peg_phase)(i / 2);
        ending.is_abort = i % 2;
        s->script[0] = "call c1 echo {}";
        s->input[0] = (peg_dispatch_middleware){remember, &ending};
        s->config.loop.snapshot = end_at;
        s->config.loop.snapshot_user = &ending;
        CHECK_INT(stage_run(s), PEG_OK);

        CHECK_INT(s->outcome.end, ending.is_abort ? PEG_END_ABORTED : PEG_END_NACK);
        CHECK_INT(s->n_infer, ending.phase > PEG_PHASE_PRE_INFERENCE);
        CHECK_INT(s->n_handled, 0);
        stage_close(s);
    }
}

/* ---- numbers
 * ------------------------------------------------------------------------------------- */

TEST(a_call_may_have_all_the_time_there_is)
{
    struct stage s;
    peg_tool_config config;

    opened(&s)->script[0] = "call c1 echo {}";
    config = peg_tool_config_default();
    config.settings.timeout_ms = INT64_MAX;
    s.config.loop.tools = &config;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK(!peg_record_is_error(result_at(s.turn, 0)));
    stage_close(&s);
}

static peg_status forget_calls(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_status status = PEG_OK;

    (void)stage;
    while (!status && peg_turn_next(turn, PEG_BLOCKS_CALLS, 0) < peg_turn_len(turn))
        status = peg_turn_remove(
            turn, peg_block_id(peg_turn_at(turn, peg_turn_next(turn, PEG_BLOCKS_CALLS, 0))),
            reterr);
    return status;
}

static void hear_count(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_INFERENCE_END)
        note(user, "%zu ", event->u.inference.n_calls);
}

TEST(an_engine_that_takes_calls_out_of_the_turn_asked_for_none)
{
    struct stage s;

    opened(&s)->act = forget_calls;
    leave_call(s.turn, "left", "echo");
    s.config.on_event = hear_count;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 ");
    stage_close(&s);
}

/* ---- out of memory -----------------------------------------------------------------------------
 */

TORTURE(marks_of_an_earlier_run_survive_any_allocation_failure)
{
    struct stage s;
    peg_json_builder *b;
    peg_status status = stage_open(&s);

    if (!status)
        status =
            peg_turn_add_call(s.turn, peg_cstr("left"), peg_cstr("echo"), peg_cstr("{}"), NULL);
    b = peg_json_builder_new();
    peg_json_open_array(b);
    if (!status)
        peg_json_add_string(b, peg_block_id(peg_turn_at(s.turn, 1)));
    peg_json_close(b);
    if (!status)
        status = peg_turn_set_built(s.turn, &peg_key_calls_started, b, NULL);
    else
        peg_json_builder_free(b);
    if (!status)
        status = stage_run(&s);
    if (!status && s.outcome.end == PEG_END_ACK)
        CHECK_INT(s.n_handled, 0);
    if (!status && s.outcome.end != PEG_END_ACK)
        status = PEG_ENOMEM;
    stage_close(&s);
    return status;
}
