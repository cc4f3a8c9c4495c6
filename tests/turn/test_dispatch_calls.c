/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of a response: their order, their records, and what a model can get wrong. */

#include <pthread.h>
#include <sched.h>

#include "fixture.h"
#include "pegboard/gate.h"
#include "pegboard/pool.h"

static struct stage *opened(struct stage *stage)
{
    CHECK_INT(stage_open(stage), PEG_OK);
    return stage;
}

static void run_one(struct stage *s, const char *script)
{
    opened(s)->script[0] = script;
    CHECK_INT(stage_run(s), PEG_OK);
    CHECK_INT(s->outcome.end, PEG_END_ACK);
}

/* ---- what a model can get wrong ------------------------------------------------- */

/* T108, T109, T110, T111, T114 */
TEST(each_wrong_call_becomes_its_own_failed_result_and_the_loop_goes_on)
{
    struct stage s;
    const peg_tool_def broken = tool_def("broken", failing, NULL);

    CHECK_INT(stage_add(opened(&s), &broken), PEG_OK);
    s.script[0] = "call c1 nope {}; call c2 - {}; call c3 echo [1]; call c4 echo {x; "
                  "call c5 broken {}; call c6 echo {\"ok\":1}";
    s.script[1] = "say I see";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOL_NOT_FOUND");
    CHECK_STR(peg_record_tool(result_at(s.turn, 1)), "(unnamed tool call)");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 2))), "E_INVALID_TOOL_ARGS");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 3))), "E_INVALID_TOOL_ARGS");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 4))), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_CONTAINS(text_of(result_at(s.turn, 4)), "it is broken");
    CHECK(!peg_record_is_error(result_at(s.turn, 5)));
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.outcome.iterations, 2);
    stage_close(&s);
}

/* T115, T157 */
TEST(the_same_call_id_twice_gives_two_results_that_are_never_exchanged)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {\"n\":1}; call c1 echo {\"n\":2}";
    s.script[1] = "call c1 echo {\"n\":3}";
    s.script[2] = "call q artifact_cat {\"callId\":\"c1~2\"}; call q artifact_cat "
                  "{\"callId\":\"c1~3\"}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(text_of(result_at(s.turn, 0)), "{\"n\":1}");
    CHECK_STR(text_of(result_at(s.turn, 1)), "{\"n\":2}");
    CHECK_STR(text_of(result_at(s.turn, 2)), "{\"n\":3}");
    CHECK_STR(peg_record_call_id(result_at(s.turn, 2)), "c1");
    CHECK_STR(text_of(result_at(s.turn, 3)), "{\"n\":2}");
    CHECK_STR(text_of(result_at(s.turn, 4)), "{\"n\":3}");
    stage_close(&s);
}

TEST(results_stand_in_the_turn_behind_their_calls_by_block_id)
{
    struct stage s;
    peg_block *call;

    run_one(&s, "call c1 echo {\"n\":1}; call c1 echo {\"n\":2}");
    call = peg_turn_at(s.turn, 2);

    CHECK_INT(peg_block_kind_of(call), PEG_BLOCK_CALL);
    CHECK_STR(text_of(peg_turn_result_of(s.turn, peg_block_id(call))), "{\"n\":2}");
    CHECK_INT(peg_turn_next_pending(s.turn, 0), peg_turn_len(s.turn));
    stage_close(&s);
}

/* ---- order ---------------------------------------------------------------------- */

static void look_back(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;

    (void)args;
    note(s, "%zu ", peg_turn_count(s->user, PEG_BLOCKS(PEG_BLOCK_RESULT)));
    peg_call_reply(call, peg_cstr("ok"));
}

static peg_status keep_turn(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    stage->user = peg_dispatch_turn(dispatch);
    return PEG_OK;
}

/* T112 */
TEST(calls_run_in_order_and_each_sees_the_results_before_it)
{
    struct stage s;
    const peg_tool_def def = tool_def("back", look_back, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.act = keep_turn;
    s.script[0] = "call a back {}; call b back {}; call c back {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 1 2 ");
    stage_close(&s);
}

static peg_status keep_dispatch(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    stage->user = dispatch;
    return PEG_OK;
}

static void abort_here(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;

    (void)args;
    note(s, "%.*s ", PEG_ARG(peg_call_id(call)));
    peg_dispatch_abort(s->user, "stop");
    peg_call_reply(call, peg_cstr("done"));
}

/* T113 */
TEST(after_an_abort_the_next_call_is_not_started)
{
    struct stage s;
    const peg_tool_def def = tool_def("stop", abort_here, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.act = keep_dispatch;
    s.script[0] = "call a stop {}; call b stop {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "a ");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_INT(peg_turn_len(s.turn), 1);
    stage_close(&s);
}

/* T100 */
TEST(each_call_is_announced_and_completed_once)
{
    struct stage s;

    run_one(&s, "call a echo {}; call b nope {}");

    CHECK_CONTAINS(peg__str(s.log), "tool_call(a,announced) tool_start tool_end "
                                    "tool_call(a,complete) tool_call(b,announced) "
                                    "tool_call(b,complete) ");
    CHECK_INT(count_of(s.log, "tool_call("), 4);
    stage_close(&s);
}

static peg_status mask(const peg_call *call, const peg_json *args, peg_json_doc **ret_masked,
                       void *user, peg_error *reterr)
{
    (void)call;
    (void)args;
    (void)user;
    return peg_json_parse(peg_cstr("{\"key\":\"***\"}"), NULL, ret_masked, reterr);
}

static void hear_args(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_TOOL_CALL)
        note(user, "%.*s ", PEG_ARG(event->u.tool_call.args));
}

TEST(announcements_show_masked_arguments_or_none)
{
    struct stage s;
    const peg_run_hooks hooks = {.mask_arguments = mask};

    opened(&s)->script[0] = "call a echo {\"key\":\"secret\"}; call b nope {\"key\":\"secret\"}";
    s.config.loop.call.hooks = &hooks;
    s.config.on_event = hear_args;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "{\"key\":\"***\"} {\"key\":\"***\"} {} {} ");
    stage_close(&s);
}

/* ---- bounds --------------------------------------------------------------------- */

TEST(calls_beyond_max_calls_are_refused_one_by_one_and_the_loop_goes_on)
{
    struct stage s;

    opened(&s)->script[0] = "call a echo {}; call b echo {}; call c - {}; call d echo {}";
    s.config.loop.max_calls = 2;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.n_handled, 2);
    CHECK(!peg_record_is_error(result_at(s.turn, 1)));
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 2))), "E_LIMIT_CALLS");
    CHECK_CONTAINS(text_of(result_at(s.turn, 3)), "max_calls (2)");
    CHECK_INT(count_of(s.log, "limit(E_LIMIT_CALLS)"), 1);
    CHECK_INT(count_of(s.log, "tool_call("), 8);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* T98 */
TEST(equal_calls_are_counted_by_their_checksum)
{
    struct stage s;
    char checksum[65];

    run_one(&s, "call a echo {\"x\":1,\"y\":2}; call b echo {\"y\":2,\"x\":1}; call c echo {}");
    snprintf(checksum, sizeof(checksum), "%s", peg_record_checksum(result_at(s.turn, 0)));

    CHECK_INT(peg_turn_call_count(s.turn, checksum), 2);
    stage_close(&s);
}

/* ---- in parallel ---------------------------------------------------------------- */

/* Handlers that wait for each other: they only end if they run at once. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n_there;
    unsigned n_wanted;
};

static struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER};

static void meet(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    pthread_mutex_lock(&meeting.lock);
    meeting.n_there++;
    pthread_cond_broadcast(&meeting.changed);
    while (meeting.n_there < meeting.n_wanted)
        pthread_cond_wait(&meeting.changed, &meeting.lock);
    pthread_mutex_unlock(&meeting.lock);
    peg_call_reply_json(call, args);
}

TEST(calls_in_parallel_run_at_once_and_are_recorded_in_call_order)
{
    struct stage s;
    const peg_tool_def def = tool_def("meet", meet, NULL);
    const peg_pool_options options = {.n_threads = 3};
    peg_pool *pool = NULL;

    meeting.n_there = 0;
    meeting.n_wanted = 3;
    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.config.loop.call.pool = pool;
    s.config.loop.max_parallel = 3;
    s.script[0] = "call c meet {\"n\":0}; call c meet {\"n\":1}; call c meet {\"n\":2}; "
                  "call c meet {\"n\":3}; call c nope {}; call c meet {\"n\":5}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(text_of(result_at(s.turn, 0)), "{\"n\":0}");
    CHECK_STR(text_of(result_at(s.turn, 2)), "{\"n\":2}");
    CHECK_STR(text_of(result_at(s.turn, 3)), "{\"n\":3}");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 4))), "E_TOOL_NOT_FOUND");
    CHECK_STR(text_of(result_at(s.turn, 5)), "{\"n\":5}");
    CHECK_STR(peg_record_handle(result_at(s.turn, 5)), "c~6");
    stage_close(&s);
    peg_pool_unref(pool);
}

/* ---- a handler that never returns ----------------------------------------------- */

struct trap {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool is_inside;
};

static struct trap trap = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void stay(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    pthread_mutex_lock(&trap.lock);
    trap.is_inside = true;
    pthread_cond_broadcast(&trap.changed);
    while (!trap.is_open)
        pthread_cond_wait(&trap.changed, &trap.lock);
    pthread_mutex_unlock(&trap.lock);
    peg_call_reply(call, peg_cstr("too late"));
}

static void *move_clock(void *user)
{
    peg_clock *clock = user;

    pthread_mutex_lock(&trap.lock);
    while (!trap.is_inside)
        pthread_cond_wait(&trap.changed, &trap.lock);
    pthread_mutex_unlock(&trap.lock);
    while (peg_clock_manual_waiting(clock) == 0)
        sched_yield();
    peg_clock_manual_advance(clock, 30000);
    return NULL;
}

TEST(the_loop_goes_on_when_a_handler_on_a_pool_never_returns)
{
    struct stage s;
    const peg_tool_def def = tool_def("stay", stay, NULL);
    peg_clock *clock = NULL;
    peg_ctx *root = NULL;
    peg_pool *pool = NULL;
    pthread_t mover;

    CHECK_INT(peg_pool_new(NULL, &pool, NULL), PEG_OK);
    CHECK_INT(peg_clock_manual_new(0, &clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(root, clock, &s.ctx, NULL), PEG_OK);
    s.config.loop.call.pool = pool;
    s.script[0] = "call a stay {}; call b echo {}";
    s.script[1] = "say never mind";
    CHECK_INT(pthread_create(&mover, NULL, move_clock, clock), 0);
    CHECK_INT(stage_run(&s), PEG_OK);
    pthread_join(mover, NULL);

    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOL_TIMEOUT");
    CHECK(!peg_record_is_error(result_at(s.turn, 1)));
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(peg_pool_look(pool).n_abandoned, 1);
    pthread_mutex_lock(&trap.lock);
    trap.is_open = true;
    pthread_cond_broadcast(&trap.changed);
    pthread_mutex_unlock(&trap.lock);
    while (peg_pool_look(pool).n_abandoned)
        sched_yield();
    stage_close(&s);
    peg_ctx_unref(s.ctx);
    peg_ctx_unref(root);
    peg_pool_unref(pool);
    peg_clock_manual_free(clock);
}

/* ---- gates in a turn ------------------------------------------------------------ */

static void ask_first(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;
    const peg_gate_def def = {.reason = "delete everything?", .payload = args};
    peg_error error;

    if (peg_gate_wait(peg_call_ctx(call), &def, NULL, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    note(s, "deleted ");
    peg_call_reply(call, peg_cstr("deleted"));
}

static void approve(peg_gate *gate, void *user)
{
    const peg_json yes = {.kind = PEG_JSON_BOOL, .u.truth = 1};

    note(user, "asked ");
    CHECK(peg_gate_ids(gate)->turn_id[0] != '\0');
    CHECK_INT(peg_gate_resolve(gate, &yes, NULL), PEG_OK);
}

static void deny(peg_gate *gate, void *user)
{
    note(user, "asked ");
    peg_gate_reject(gate, "E_DENIED", "not on my watch");
}

static void abort_turn(peg_gate *gate, void *user)
{
    struct stage *s = user;

    (void)gate;
    peg_dispatch_abort(s->user, "the user closed the window");
}

static void run_gated(struct stage *s, peg_gate_fn listener)
{
    const peg_tool_def def = tool_def("delete", ask_first, s);

    CHECK_INT(stage_add(opened(s), &def), PEG_OK);
    s->act = keep_dispatch;
    s->config.on_gate = listener;
    s->config.on_gate_user = s;
    s->script[0] = "call a delete {\"path\":\"/\"}";
    CHECK_INT(stage_run(s), PEG_OK);
}

TEST(a_gate_that_is_approved_lets_the_handler_go_on)
{
    struct stage s;

    run_gated(&s, approve);

    CHECK_STR(peg__str(s.seen), "asked deleted ");
    CHECK_CONTAINS(peg__str(s.log), "tool_start gate_open gate_closed tool_end ");
    stage_close(&s);
}

/* T144 */
TEST(a_gate_that_is_denied_fails_the_call_before_its_effect)
{
    struct stage s;

    run_gated(&s, deny);

    CHECK_STR(peg__str(s.seen), "asked ");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_STR(peg__str(peg_record_cause(result_at(s.turn, 0))), "E_TURN_GATE_REJECTED");
    CHECK_CONTAINS(text_of(result_at(s.turn, 0)), "not on my watch");
    stage_close(&s);
}

/* T145 */
TEST(a_gate_that_nobody_listens_to_fails_at_once)
{
    struct stage s;

    run_gated(&s, NULL);

    CHECK_STR(peg__str(s.seen), "");
    CHECK_STR(peg__str(peg_record_cause(result_at(s.turn, 0))),
              "E_LLM_EXECUTION_GATE_NOT_SUPPORTED");
    stage_close(&s);
}

/* T141 */
TEST(an_abort_of_the_dispatch_settles_its_gates)
{
    struct stage s;

    run_gated(&s, abort_turn);

    CHECK_STR(peg__str(s.seen), "");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_INT(count_of(s.log, "gate_closed"), 1);
    stage_close(&s);
}

/* ---- out of memory -------------------------------------------------------------- */

static peg_status torture(const char *script, unsigned max_parallel)
{
    struct stage s;
    peg_pool *pool = NULL;
    peg_status status = stage_open(&s);

    s.script[0] = script;
    s.script[1] = "say done";
    s.config.loop.max_calls = 2;
    if (!status && max_parallel > 1)
        status = peg_pool_new(NULL, &pool, NULL);
    s.config.loop.call.pool = pool;
    s.config.loop.max_parallel = max_parallel;
    if (!status)
        status = stage_run(&s);
    if (!status)
        status = s.outcome.error.status;
    if (status == PEG_EHOST && count_of(s.outcome.error.message, "out of memory"))
        status = PEG_ENOMEM;
    stage_close(&s);
    peg_pool_unref(pool);
    return status;
}

TORTURE(calls_survive_any_allocation_failure)
{
    return torture("call a echo {\"x\":1}; call a nope {}; call c echo {}", 1);
}

TORTURE(parallel_calls_survive_any_allocation_failure)
{
    return torture("call a echo {\"x\":1}; call b echo {}; call c echo {}", 2);
}
