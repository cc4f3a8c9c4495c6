/* SPDX-License-Identifier: Apache-2.0 */

/* Reports of an executor, and its requests to the storage. */

#include "fixture.h"

/* ---- reports -------------------------------------------------------------------- */

static peg_status report_all(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_json payload = {.kind = PEG_JSON_BOOL, .u.truth = 1};
    peg_error error;
    peg_status status;

    (void)stage;
    peg_dispatch_log(dispatch, "info", "retry", "second try", NULL);
    peg_dispatch_log(dispatch, "error", "retry", "third try", &payload);
    if ((status =
             peg_dispatch_report_message(dispatch, peg_cstr("m"), peg_cstr("he"), false, reterr)) ||
        (status =
             peg_dispatch_report_message(dispatch, peg_cstr("m"), peg_cstr("llo"), true, reterr)) ||
        (status =
             peg_dispatch_report_thought(dispatch, peg_cstr("t"), peg_cstr("hm"), true, reterr)))
        return status;
    CHECK_INT(peg_dispatch_report_message(dispatch, peg_cstr("m"), peg_cstr("!"), true, &error),
              PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    return PEG_OK;
}

static void hear_streams(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_MESSAGE)
        note(user, "[%.*s|%.*s|%d]", PEG_ARG(event->u.stream.full), PEG_ARG(event->u.stream.delta),
             event->u.stream.is_complete);
    if (event->kind == PEG_EVENT_THOUGHT)
        note(user, "{%.*s}", PEG_ARG(event->u.stream.full));
    if (event->kind != PEG_EVENT_LOG)
        return;
    CHECK(event->ids.dispatch_id[0] != '\0');
    note(user, "(%s %.*s: %.*s %d %d)", event->u.log.level, PEG_ARG(event->u.log.kind),
         PEG_ARG(event->u.log.message), event->ids.iteration,
         event->u.log.payload && event->u.log.payload->u.truth);
}

/* T99, T101 */
TEST(an_executor_can_tell_messages_that_grow_and_log)
{
    struct stage s;

    opened(&s)->act = report_all;
    s.config.on_event = hear_streams;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "(info retry: second try 0 0)(error retry: third try 0 1)"
                                "[he|he|0][hello|llo|1]{hm}");
    CHECK_INT(peg_turn_len(s.turn), 1); /* reporting stores nothing */
    stage_close(&s);
}

static peg_status report_usage(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_json_doc *usage = NULL;

    (void)stage;
    CHECK_INT(peg_json_parse(peg_cstr("{\"input_tokens\":12}"), NULL, &usage, reterr), PEG_OK);
    peg_dispatch_report_stats(dispatch, peg_json_root(usage));
    peg_json_doc_free(usage);
    return PEG_OK;
}

static void hear_usage(const peg_event *event, void *user)
{
    int64_t n = 0;

    if (event->kind != PEG_EVENT_STATS)
        return;
    CHECK(peg_json_int64(peg_json_get(event->u.stats, "input_tokens"), &n));
    CHECK(event->ids.dispatch_id[0] != '\0');
    note(user, "%d in iteration %d ", (int)n, event->ids.iteration);
}

TEST(an_executor_can_tell_what_the_model_used)
{
    struct stage s;

    opened(&s)->act = report_usage;
    s.script[0] = "call c1 echo {}";
    s.config.on_event = hear_usage;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "12 in iteration 0 12 in iteration 1 ");
    stage_close(&s);
}

static peg_status report_call(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_str id = peg_cstr("theirs");
    const peg_record_def def = {PEG_RECORD_DEF_INIT, .call_id = id, .tool = peg_cstr("search"),
                                .text = peg_cstr("found nothing")};
    peg_record *record = NULL;
    peg_error error;

    (void)stage;
    CHECK_INT(peg_record_new(&def, &record, reterr), PEG_OK);
    CHECK_INT(peg_dispatch_report_tool_call(dispatch, id, peg_cstr("search"), peg_cstr("{}"), NULL,
                                            reterr),
              PEG_OK);
    CHECK_INT(
        peg_dispatch_report_tool_call(dispatch, id, peg_cstr(""), peg_cstr(""), record, reterr),
        PEG_OK);
    CHECK_INT(
        peg_dispatch_report_tool_call(dispatch, id, peg_cstr(""), peg_cstr(""), record, &error),
        PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    peg_record_unref(record);
    return PEG_OK;
}

/* T99, T100 */
TEST(an_executor_can_tell_of_calls_that_it_runs_in_its_own_way)
{
    struct stage s;

    opened(&s)->act = report_call;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_CONTAINS(peg__str(s.log), "tool_call(theirs,announced) tool_call(theirs,complete) ");
    CHECK_INT(count_of(s.log, "tool_call("), 2);
    CHECK_INT(peg_turn_len(s.turn), 1);
    stage_close(&s);
}

/* ---- the storage ---------------------------------------------------------------- */

static peg_status use_storage(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_memory_storage *storage = stage->user;
    const size_t len = peg_turn_len(peg_dispatch_turn(dispatch));
    peg_reader *reader = NULL;
    peg_reader *kept = NULL;
    peg_turn *fetched = NULL;

    CHECK_INT(peg_dispatch_store_bytes(dispatch, "retrieved", peg_cstr("doc"), peg_cstr("abc"),
                                       &reader, reterr),
              PEG_OK);
    if (storage) {
        kept = peg_memory_storage_bytes(storage, peg_dispatch_ctx(dispatch), "retrieved",
                                        peg_cstr("doc"));
        CHECK(kept == reader);
    }
    CHECK_INT(peg_dispatch_fetch(dispatch, PEG_BLOCKS_MESSAGES, &fetched, reterr), PEG_OK);
    note(stage, "%zu ", peg_turn_len(fetched));
    CHECK_INT(peg_turn_len(peg_dispatch_turn(dispatch)), len);
    peg_turn_free(fetched);
    peg_reader_unref(kept);
    peg_reader_unref(reader);
    return PEG_OK;
}

/* T102 */
TEST(an_executor_can_fetch_and_store_bytes_without_changing_the_turn)
{
    struct stage s;
    peg_memory_storage *memory = NULL;
    peg_storage storage;

    CHECK_INT(peg_memory_storage_new(&memory, NULL), PEG_OK);
    storage = peg_memory_storage_ops(memory);
    opened(&s)->act = use_storage;
    s.user = memory;
    s.script[0] = "say hm; call c1 echo {}";
    s.config.loop.storage = &storage;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 1 ");
    stage_close(&s);
    peg_memory_storage_free(memory);
}

TEST(without_a_storage_there_is_nothing_to_fetch_and_bytes_stay_in_memory)
{
    struct stage s;

    opened(&s)->act = use_storage;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 ");
    stage_close(&s);
}

static peg_status store_wrongly(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_reader *reader = NULL;

    (void)stage;
    return peg_dispatch_store_bytes(dispatch, "memory", peg_cstr("m"), peg_cstr("x"), &reader,
                                    reterr);
}

TEST(bytes_are_media_or_something_retrieved)
{
    struct stage s;

    opened(&s)->act = store_wrongly;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.outcome.error.cause), "E_INVALID_ARGUMENT");
    stage_close(&s);
}

static peg_status nack_first_run(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                 peg_error *reterr)
{
    struct stage *s = user;

    return s->n_handled == 1 ? peg_dispatch_nack(dispatch, NULL, reterr)
                             : peg_middleware_run_next(next, reterr);
}

/* A nack leaves the result of its iteration in the storage; the next run, which does not know it,
 * gives its own result the same handle. */
/* T115, T157 */
TEST(what_several_runs_left_in_a_storage_goes_into_one_turn_and_is_not_exchanged)
{
    struct stage s;
    peg_memory_storage *memory = NULL;
    peg_turn *fetched = NULL;
    peg_storage storage;

    CHECK_INT(peg_memory_storage_new(&memory, NULL), PEG_OK);
    storage = peg_memory_storage_ops(memory);
    opened(&s)->script[0] = "call call_0 echo {\"n\":0}";
    s.output[0] = (peg_dispatch_middleware){nack_first_run, &s};
    s.config.loop.storage = &storage;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    s.script[0] = "call call_0 echo {\"n\":1}";
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_ACK);

    CHECK_INT(peg_turn_new(&fetched, NULL), PEG_OK);
    CHECK_INT(storage.fetch(storage.user, NULL, PEG_BLOCKS_ALL, fetched, NULL), PEG_OK);
    peg_turn_free(s.turn);
    s.turn = fetched;
    s.script[0] = "call a artifact_cat {\"callId\":\"call_0\"}; "
                  "call b artifact_cat {\"callId\":\"call_0~2\"}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(text_of(result_at(s.turn, 2)), "{\"n\":0}");
    CHECK_STR(text_of(result_at(s.turn, 3)), "{\"n\":1}");
    stage_close(&s);
    peg_memory_storage_free(memory);
}
