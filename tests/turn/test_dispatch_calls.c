/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of a response: their order, their records, and what a model can get wrong. */

#include <pthread.h>
#include <sched.h>

#include "base/limits.h"
#include "fixture.h"
#include "pegboard/gate.h"
#include "pegboard/pool.h"

static void run_one(struct stage *s, const char *script)
{
    opened(s)->script[0] = script;
    CHECK_INT(stage_run(s), PEG_OK);
    CHECK_INT(s->outcome.end, PEG_END_ACK);
}

/* ---- what a model can get wrong ------------------------------------------------- */

/* T108, T109, T110, T111, T114, G90 */
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

/* T115, T157, G103 */
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

/* T112, G81 */
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
    CHECK_LACKS(peg__str(s.log), "tool_call(b");
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_INT(peg_turn_len(s.turn), 3);
    stage_close(&s);
}

static void nack_here(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;

    (void)args;
    note(s, "%.*s ", PEG_ARG(peg_call_id(call)));
    CHECK_INT(peg_dispatch_nack(s->user, NULL, NULL), PEG_OK);
    peg_call_reply(call, peg_cstr("done"));
}

TEST(after_a_nack_the_next_call_is_not_started)
{
    struct stage s;
    const peg_tool_def def = tool_def("stop", nack_here, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.act = keep_dispatch;
    s.script[0] = "call a stop {}; call b stop {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "a ");
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    stage_close(&s);
}

static void ack_here(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;

    (void)args;
    note(s, "%.*s ", PEG_ARG(peg_call_id(call)));
    (void)peg_dispatch_ack(s->user, NULL);
    peg_call_reply(call, peg_cstr("done"));
}

TEST(after_an_ack_the_calls_of_the_response_are_still_answered)
{
    struct stage s;
    const peg_tool_def def = tool_def("finish", ack_here, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.act = keep_dispatch;
    s.script[0] = "call a finish {}; call b finish {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "a b ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(peg_turn_next_pending(s.turn, 0), peg_turn_len(s.turn));
    stage_close(&s);
}

static void run_calls_here(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;
    peg_error error;

    (void)args;
    CHECK_INT(peg_dispatch_run_calls(s->user, NULL, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    note(s, "refused ");
    peg_call_reply(call, peg_cstr("done"));
}

TEST(a_handler_cannot_run_the_calls_that_it_is_one_of)
{
    struct stage s;
    const peg_tool_def def = tool_def("again", run_calls_here, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.act = keep_dispatch;
    s.script[0] = "call a again {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "refused ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static peg_status call_and_run(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    size_t n = 99;
    peg_status status = stage_infer(dispatch, user, reterr);

    if (!status)
        status = peg_dispatch_run_calls(dispatch, &n, reterr);
    note(user, "%zu ", n);
    return status;
}

TEST(an_executor_of_the_hosts_can_run_the_calls_in_our_way)
{
    struct stage s;

    opened(&s)->script[0] = "call a echo {}; call b nope {}";
    s.config.loop.executor = (peg_engine){call_and_run, &s};
    s.config.loop.engine = (peg_engine){0};
    s.config.loop.auto_ack = PEG_AUTO_ACK_ON;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "2 0 ");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* T100, G69 */
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

/* G74 */
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

static peg_status add_document(peg_turn *turn, const char *id)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_block *block = NULL;
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER, .type = peg_cstr("retrieved"),
                         .id = peg_cstr(id), .tier = PEG_TIER_FIRST_PARTY};
    peg_status status = peg_reader_from_bytes(peg_cstr("text"), &reader, NULL);

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

TEST(call_ids_that_are_ids_of_artifacts_get_other_handles)
{
    struct stage s;

    opened(&s)->script[0] = "call doc echo {}; call doc echo {}; call doc echo {}";
    s.config.loop.max_calls = 1;
    CHECK_INT(add_document(s.turn, "doc"), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(peg_record_handle(result_at(s.turn, 0)), "doc~2");
    CHECK_STR(peg_record_handle(result_at(s.turn, 1)), "doc~3");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 2))), "E_LIMIT_CALLS");
    stage_close(&s);
}

TEST(a_call_id_as_long_as_may_be_is_run_and_its_result_found_by_its_handle)
{
    struct stage s;
    char id[PEG_LIMIT_CALL_ID_BYTES + 2];
    peg_error error;

    memset(id, 'i', sizeof(id));
    opened(&s)->script[0] = "say wait";
    CHECK_INT(peg_turn_add_call(s.turn, peg__strn(id, sizeof(id) - 1), peg_cstr("echo"),
                                peg_cstr("{}"), &error),
              PEG_ELIMIT);
    CHECK_STR(peg__str(error.where), "/call_id");
    for (int i = 0; i < 2; i++)
        CHECK_INT(peg_turn_add_call(s.turn, peg__strn(id, sizeof(id) - 2), peg_cstr("echo"),
                                    peg_cstr("{}"), NULL),
                  PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.n_handled, 2);
    CHECK_INT(peg_record_handle(result_at(s.turn, 0)).len, PEG_LIMIT_CALL_ID_BYTES);
    CHECK_INT(peg_record_handle(result_at(s.turn, 1)).len, PEG_LIMIT_CALL_ID_BYTES + 2);
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

/* G79 */
TEST(calls_in_parallel_run_at_once_and_are_recorded_in_call_order)
{
    struct stage s;
    const peg_tool_def def = tool_def("meet", meet, NULL);
    const peg_pool_options options = {PEG_POOL_OPTIONS_INIT, .n_threads = 3};
    peg_pool *pool = NULL;

    meeting.n_there = 0;
    meeting.n_wanted = 3;
    CHECK_INT(peg_pool_new(&options, &pool, NULL), PEG_OK);
    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.config.loop.call.pool = pool;
    s.config.loop.call.settings.max_parallel = 3;
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

static void run_parallel(struct stage *s, const peg_pool_options *options, unsigned max_parallel)
{
    peg_pool *pool = NULL;

    CHECK_INT(peg_pool_new(options, &pool, NULL), PEG_OK);
    s->config.loop.call.pool = pool;
    s->config.loop.call.settings.max_parallel = max_parallel;
    CHECK_INT(stage_run(s), PEG_OK);
    peg_pool_unref(pool);
}

TEST(calls_in_parallel_beyond_max_calls_are_refused)
{
    struct stage s;

    opened(&s)->script[0] = "call a echo {\"n\":0}; call b echo {\"n\":1}; call c echo {}; "
                            "call d echo {}; call e echo {}";
    s.config.loop.max_calls = 3;
    run_parallel(&s, NULL, 2);

    CHECK_INT(s.n_handled, 3);
    CHECK_STR(text_of(result_at(s.turn, 1)), "{\"n\":1}");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 3))), "E_LIMIT_CALLS");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 4))), "E_LIMIT_CALLS");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

/* G80 */
TEST(more_calls_at_once_than_the_pool_has_threads_wait_for_one)
{
    const peg_pool_options one = {PEG_POOL_OPTIONS_INIT, .n_threads = 1};
    struct stage s;

    opened(&s)->script[0] = "call a echo {\"n\":0}; call b echo {\"n\":1}; call c echo {\"n\":2}; "
                            "call d echo {\"n\":3}";
    run_parallel(&s, &one, 16);

    CHECK_INT(s.n_handled, 4);
    CHECK_STR(text_of(result_at(s.turn, 3)), "{\"n\":3}");
    stage_close(&s);
}

/* One runs until the other's refusal is reported, one waits in the queue, the others are refused.
 */
static void wait_for_refusal(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;

    while (!__atomic_load_n(&s->n_handled, __ATOMIC_ACQUIRE))
        sched_yield();
    peg_call_reply_json(call, args);
}

static void hear_refusal(const peg_event *event, void *user)
{
    struct stage *s = user;

    stage_hear(event, s);
    if (event->kind == PEG_EVENT_LIMIT)
        __atomic_store_n(&s->n_handled, 1, __ATOMIC_RELEASE);
}

TEST(calls_that_the_pool_refuses_fail_by_themselves_and_keep_their_place)
{
    const peg_pool_options small = {PEG_POOL_OPTIONS_INIT, .n_threads = 1, .max_queued = 1};
    struct stage s;
    const peg_tool_def def = tool_def("wait", wait_for_refusal, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.config.on_event = hear_refusal;
    s.script[0] = "call a wait {\"n\":0}; call b wait {\"n\":1}; call c wait {\"n\":2}";
    run_parallel(&s, &small, 3);

    CHECK_STR(text_of(result_at(s.turn, 0)), "{\"n\":0}");
    CHECK_STR(text_of(result_at(s.turn, 1)), "{\"n\":1}");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 2))), "E_POOL_FULL");
    CHECK_INT(count_of(s.log, "limit(E_POOL_FULL)"), 1);
    CHECK_INT(count_of(s.log, "tool_call("), 6);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static void wait_for_stop(peg_call *call, const peg_json *args, void *user)
{
    struct stage *s = user;

    (void)args;
    /* The last to come stops them all. */
    if (__atomic_add_fetch(&s->n_handled, 1, __ATOMIC_ACQ_REL) == 2)
        peg_dispatch_abort(s->user, "stop");
    while (!peg_call_should_stop(call))
        sched_yield();
    peg_call_fail(call, "stopped");
}

/* G100 */
TEST(an_abort_ends_all_calls_that_run_in_parallel_and_starts_no_more)
{
    const peg_pool_options two = {PEG_POOL_OPTIONS_INIT, .n_threads = 2};
    struct stage s;
    const peg_tool_def def = tool_def("wait", wait_for_stop, &s);

    CHECK_INT(stage_add(opened(&s), &def), PEG_OK);
    s.act = keep_dispatch;
    s.script[0] = "call a wait {}; call b wait {}; call c wait {}; call d wait {}";
    run_parallel(&s, &two, 2);

    CHECK_INT(s.n_handled, 2);
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    CHECK_INT(count_of(s.log, "tool_start"), 2);
    CHECK_INT(count_of(s.log, "tool_end"), 2);
    CHECK_INT(peg_turn_len(s.turn), 5); /* both calls that began, with their results */
    stage_close(&s);
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
    CHECK_INT(peg_pool_info(pool).n_abandoned, 1);
    pthread_mutex_lock(&trap.lock);
    trap.is_open = true;
    pthread_cond_broadcast(&trap.changed);
    pthread_mutex_unlock(&trap.lock);
    while (peg_pool_info(pool).n_abandoned)
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
    const peg_gate_def def = {PEG_GATE_DEF_INIT, .reason = "delete everything?", .payload = args};
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
    CHECK_STR(peg__str(peg_record_cause(result_at(s.turn, 0))), "E_GATE_UNSUPPORTED");
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
    s.config.loop.call.settings.max_parallel = max_parallel;
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
