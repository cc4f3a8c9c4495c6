/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The standard executor: the calls that an earlier run left, then the model, then its calls.
 *
 *   settle what is pending -> sync -> engine -> (pause) -> run the calls -> (pause)
 *   peg_dispatch_run_calls -> run_batch -> begin_next ... end_oldest -> keep_result
 *
 * Calls begin and end in the order of the model, up to max_parallel at once, so that results stand
 * as if they had run one after the other. The turn can be kept at each point (snapshot.c): a call
 * is marked as begun before its handler runs, and the mark goes with its result, so that a resumed
 * turn knows which calls may have run.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "turn/loop/loop.h"
#include "turn/turn.h"

/* The calls of one response, on the stack of peg_dispatch_run_calls(). */
struct batch {
    peg_dispatch *dispatch;
    peg_run_options options;
    peg_block **blocks; /* owned array of references, in the order of the turn */
    size_t n_blocks;
    size_t max_calls;
    size_t n_begun;
    size_t n_ended;
    size_t n_answered; /* all before it have a result on the turn; n_ended unless one was lost */
    struct peg__run *runs; /* a ring of `width`: run i is at i % width */
    size_t width;
    struct peg__run_tap tap;
    struct peg__map handles; /* given out and perhaps not in the turn yet */
    bool is_kept;            /* snapshots are taken */
    bool is_given_up;        /* a call failed, and errors end the loop */
};

/* ---- marks for resuming --------------------------------------------------------- */

static bool is_answered(const struct batch *batch, size_t i)
{
    return peg_turn_result_of(batch->dispatch->turn, peg_block_id(batch->blocks[i])) != NULL;
}

/* Those before `end` that have no result have begun; also one that came to its end, but whose
 * result could not be put on the turn. */
static peg_status mark_begun(struct batch *batch, size_t end, peg_error *reterr)
{
    peg_turn *turn = batch->dispatch->turn;
    peg_json_builder *b;

    while (batch->n_answered < end && is_answered(batch, batch->n_answered))
        batch->n_answered++;
    if (batch->n_answered == end)
        return peg_turn_unset(turn, &peg_key_calls_started, reterr);
    b = peg_json_builder_new();
    peg_json_open_array(b);
    for (size_t i = batch->n_answered; i < end; i++) {
        if (!is_answered(batch, i))
            peg_json_add_string(b, peg_block_id(batch->blocks[i]));
    }
    peg_json_close(b);
    return peg_turn_set_built(turn, &peg_key_calls_started, b, reterr);
}

static peg_status snapshot_calls(struct batch *batch, size_t end, peg_phase phase,
                                 peg_error *reterr)
{
    const peg_dispatch *dispatch = batch->dispatch;
    peg_status status;

    if (!batch->is_kept)
        return PEG_OK;
    status = mark_begun(batch, end, reterr);
    if (!status)
        status = peg__snapshot(dispatch->ctx, dispatch->loop, dispatch->turn, phase, reterr);
    return status;
}

/* ---- results -------------------------------------------------------------------- */

static peg_status keep_result(struct batch *batch, peg_record *record, bool has_begun,
                              peg_error *reterr)
{
    peg_dispatch *dispatch = batch->dispatch;
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT, .record = record,
                               .created_ms = peg_record_completed_ms(record)};
    peg_block *block;
    peg_status status = peg_block_new(&def, &block, reterr);

    if (status)
        return status;
    if (has_begun) /* also if the storage refuses the result: the call had its effect */
        peg__kept_end(dispatch, block);
    status = peg_turn_add(dispatch->turn, block, reterr);
    peg_block_unref(block);
    if (status)
        return status;
    dispatch->has_results = true;
    return peg__streams_complete_call(&dispatch->streams, dispatch->ctx, record, reterr);
}

static void announce_call(const peg_record *record, const peg_json *args, void *user)
{
    struct batch *batch = user;

    peg__streams_announce_call(&batch->dispatch->streams, batch->dispatch->ctx, record, args);
}

static void begin_call(void *user)
{
    struct batch *batch = user;

    peg__kept_begin(batch->dispatch, batch->blocks[batch->n_begun]);
}

/* ---- one call ------------------------------------------------------------------- */

static peg_status make_handle(struct batch *batch, peg_str call_id, peg_str *ret_handle,
                              peg_error *reterr)
{
    struct peg__map_entry *entry;
    char *handle;
    size_t len;
    peg_status status =
        peg__turn_handle(batch->dispatch->turn, call_id, &batch->handles, &handle, &len);

    if (!status) {
        status = peg__map_add(&batch->handles, peg__strn(handle, len), NULL);
        entry = status ? NULL : peg__map_find(&batch->handles, peg__strn(handle, len));
        peg__free(handle);
        if (entry)
            *ret_handle = entry->name;
    }
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* After a nack the answers of handlers are not used; an ack lets the iteration finish. */
static bool is_ended_early(const struct batch *batch)
{
    return peg_dispatch_nack_error(batch->dispatch) || peg__dispatch_is_stopped(batch->dispatch);
}

static peg_status begin_next(struct batch *batch, peg_error *reterr)
{
    const peg_block *block = batch->blocks[batch->n_begun];
    peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_block_call_id(block),
                                .tool = peg_block_tool(block), .args = peg_block_args(block),
                                .key = peg_block_id(block)};
    peg_status status = make_handle(batch, request.call_id, &request.handle, reterr);

    if (!status)
        status = peg__kept_prepare(batch->dispatch, block, reterr);
    if (!status)
        status = snapshot_calls(batch, batch->n_begun + 1, PEG_PHASE_PRE_CALL, reterr);
    if (status || is_ended_early(batch)) /* perhaps by the snapshot function */
        return status;
    status = peg__run_begin(&batch->runs[batch->n_begun % batch->width], batch->dispatch->ctx,
                            &request, &batch->options, &batch->tap, reterr);
    if (!status)
        batch->n_begun++;
    return status;
}

/* The first failure counts. */
static void give_up_after(struct batch *batch, const peg_record *record)
{
    peg_dispatch *dispatch = batch->dispatch;
    const peg_str tool = peg_record_tool(record);

    if (dispatch->config.errors != PEG_ERRORS_ABORT || !peg_record_is_error(record) ||
        batch->is_given_up)
        return;
    batch->is_given_up = true;
    dispatch->stops_after_iteration = true;
    peg__fail(&dispatch->stop_error, PEG_EHOST, "E_TOOL_ABORTED",
              "tool execution was aborted because '%.*s' failed (%s); tool_error_handling is abort",
              PEG_ARG(tool), peg_record_code(record));
}

static peg_status end_oldest(struct batch *batch, peg_error *reterr)
{
    struct peg__run *run = &batch->runs[batch->n_ended++ % batch->width];
    const bool has_begun = run->has_started;
    peg_record *record;
    peg_status status = peg__run_end(run, &record, reterr);

    if (status)
        return status;
    status = keep_result(batch, record, has_begun, reterr);
    if (!status)
        status = snapshot_calls(batch, batch->n_begun, PEG_PHASE_POST_CALL, reterr);
    give_up_after(batch, record);
    peg_record_unref(record);
    return status;
}

/* ---- answered without being run --------------------------------------------------- */

static peg_status refuse_one(struct batch *batch, const peg_block *block, const peg_error *why,
                             peg_error *reterr)
{
    peg_record_def def = {PEG_RECORD_DEF_INIT,
                          .key = peg_block_id(block),
                          .call_id = peg_block_call_id(block),
                          .tool = peg_block_tool(block),
                          .is_error = true,
                          .code = why->code,
                          .text = peg__str(why->message),
                          .created_ms = peg_block_created_ms(block),
                          .completed_ms = peg_block_created_ms(block)};
    peg_record *record;
    peg_status status = make_handle(batch, def.call_id, &def.handle, reterr);

    if (status)
        return status;
    if (!def.tool.len)
        def.tool = peg__str(PEG__UNNAMED_TOOL);
    if (def.tool.len > PEG_LIMIT_NAME_BYTES)
        def.tool.len = peg__utf8_cut(def.tool.ptr, PEG_LIMIT_NAME_BYTES);
    status = peg_record_new(&def, &record, reterr);
    if (status)
        return status;
    announce_call(record, NULL, batch);
    status = keep_result(batch, record, false, reterr);
    peg_record_unref(record);
    return status;
}

static peg_status refuse_from(struct batch *batch, size_t first, const peg_error *why,
                              peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = first; i < batch->n_blocks && !status; i++)
        status = refuse_one(batch, batch->blocks[i], why, reterr);
    return status;
}

static peg_status refuse_too_many(struct batch *batch, peg_error *reterr)
{
    peg_error why;

    peg__fail(&why, PEG_ELIMIT, "E_LIMIT_CALLS",
              "not run: the response asks for %zu calls, more than max_calls (%zu); ask for fewer "
              "at a time",
              batch->n_blocks, batch->max_calls);
    peg__emit_error(batch->dispatch->ctx, PEG_EVENT_LIMIT, &why);
    return refuse_from(batch, batch->max_calls, &why, reterr);
}

static peg_status refuse_after_failure(struct batch *batch, peg_error *reterr)
{
    peg_error why;

    peg__fail(&why, PEG_EHOST, "E_TOOL_ABORTED", "not executed: an earlier call failed");
    return refuse_from(batch, batch->n_begun, &why, reterr);
}

/* ---- all of them ---------------------------------------------------------------- */

static bool may_begin(const struct batch *batch, size_t n_calls)
{
    return batch->n_begun < n_calls && batch->n_begun - batch->n_ended < batch->width &&
           !batch->is_given_up && !is_ended_early(batch);
}

/* Whatever was begun is ended, also after a failure: its handler may still hold a thread. */
static peg_status run_batch(struct batch *batch, peg_error *reterr)
{
    const size_t n_calls = batch->n_blocks < batch->max_calls ? batch->n_blocks : batch->max_calls;
    peg_status status = PEG_OK;

    while (!status) {
        while (!status && may_begin(batch, n_calls))
            status = begin_next(batch, reterr);
        if (status || batch->n_ended == batch->n_begun)
            break;
        status = end_oldest(batch, reterr);
    }
    while (batch->n_ended < batch->n_begun)
        end_oldest(batch, NULL);
    if (!status && batch->is_given_up)
        return refuse_after_failure(batch, reterr);
    if (!status && batch->n_ended == n_calls && n_calls < batch->n_blocks)
        status = refuse_too_many(batch, reterr);
    return status;
}

static peg_status collect_pending(struct batch *batch, peg_error *reterr)
{
    const peg_turn *turn = batch->dispatch->turn;
    const size_t len = peg_turn_len(turn);
    size_t capacity = 0;

    for (size_t i = peg_turn_next_pending(turn, 0); i < len;
         i = peg_turn_next_pending(turn, i + 1)) {
        if (!PEG__RESERVE(batch->blocks, batch->n_blocks + 1, capacity))
            return peg__fail_nomem(reterr);
        batch->blocks[batch->n_blocks++] = peg_block_ref(peg_turn_at(turn, i));
    }
    return PEG_OK;
}

/* The turn's settings fill in what the host left unset. */
static void fill_settings(peg_run_settings *settings, const peg_tool_config *config)
{
    if (!settings->timeout_ms)
        settings->timeout_ms = config->settings.timeout_ms;
    if (settings->max_retries || config->errors != PEG_ERRORS_RETRY)
        return;
    settings->max_retries = config->settings.max_retries;
    settings->retry_delay_ms = config->settings.retry_delay_ms;
    settings->retry_factor = config->settings.retry_factor;
}

static peg_status set_options(struct batch *batch, peg_error *reterr)
{
    const peg_dispatch_options *loop = batch->dispatch->loop;
    const peg_tool_config *config = &batch->dispatch->config;
    const int max_calls = loop->max_calls;

    batch->options = loop->call;
    fill_settings(&batch->options.settings, config);
    batch->is_kept = peg__snapshot_is_wanted(batch->dispatch->ctx, loop);
    batch->max_calls = max_calls < 0 ? SIZE_MAX : max_calls ? (size_t)max_calls : PEG_LIMIT_CALLS;
    batch->width = loop->call.pool && config->settings.max_parallel > 1
                       ? (size_t)config->settings.max_parallel
                       : 1;
    if (batch->width > batch->n_blocks)
        batch->width = batch->n_blocks;
    batch->runs = peg__alloc_zero(batch->width, sizeof(*batch->runs));
    return batch->runs ? PEG_OK : peg__fail_nomem(reterr);
}

static void free_batch(struct batch *batch)
{
    for (size_t i = 0; i < batch->n_blocks; i++)
        peg_block_unref(batch->blocks[i]);
    peg__free(batch->blocks);
    peg__free(batch->runs);
    peg__map_free(&batch->handles);
}

/* ---- without running them --------------------------------------------------------- */

/* Which calls? */
typedef bool (*must_fn)(peg_dispatch *dispatch, const peg_block *call, void *user);

static peg_status refuse_those(peg_dispatch *dispatch, const peg_error *why, must_fn must,
                               void *user, peg_error *reterr)
{
    struct batch batch = {.dispatch = dispatch, .handles = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)};
    peg_status status = collect_pending(&batch, reterr);

    for (size_t i = 0; i < batch.n_blocks && !status; i++) {
        if (!must || must(dispatch, batch.blocks[i], user))
            status = refuse_one(&batch, batch.blocks[i], why, reterr);
    }
    free_batch(&batch);
    return status;
}

/* ---- calls that an earlier run left ------------------------------------------------- */

/* Calls that are marked as begun may have had their effect: they run again only if they may. */
struct left {
    struct peg__map begun;      /* ids of blocks */
    bool is_unreadable;         /* the marks are damaged: any call may have begun */
    bool is_everything_pending; /* or only what is marked */
};

static peg_status read_marks(const peg_json *marks, struct left *left, peg_error *reterr)
{
    PEG_JSON_EACH_ITEM (marks, item) {
        const peg_status status = peg__map_add(&left->begun, peg_json_str(item), NULL);

        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        if (status == PEG_ELIMIT)
            left->is_unreadable = true;
    }
    return PEG_OK;
}

/* May it run again? It is unknown whether it ran. */
static bool is_repeatable(peg_dispatch *dispatch, peg_str name)
{
    peg_tool *tool = peg_registry_get(dispatch->registry, name);
    const bool is = tool && (peg_tool_is_idempotent(tool) || peg_tool_is_read_only(tool));

    peg_tool_unref(tool);
    return is;
}

static bool must_not_run(peg_dispatch *dispatch, const peg_block *call, void *user)
{
    const struct left *left = user;
    const bool has_begun =
        left->is_unreadable || peg__map_find(&left->begun, peg_block_id(call)) != NULL;

    switch (dispatch->loop->pending) {
    case PEG_PENDING_RUN:
        return false;
    case PEG_PENDING_UNKNOWN:
        return has_begun || left->is_everything_pending;
    case PEG_PENDING_SAFE:
        break;
    }
    return has_begun && !is_repeatable(dispatch, peg_block_tool(call));
}

/* Either all that is pending, or only what is marked. */
static peg_status close_left(peg_dispatch *dispatch, bool is_everything_pending, peg_error *reterr)
{
    struct left left = {.begun = PEG__MAP(PEG_LIMIT_TURN_BLOCKS),
                        .is_everything_pending = is_everything_pending};
    const peg_json *marks = NULL;
    peg_error why;
    peg_status status = PEG_OK;

    if (peg_turn_get(dispatch->turn, &peg_key_calls_started, &marks, NULL))
        left.is_unreadable = true;
    if (!marks && !left.is_unreadable && !left.is_everything_pending)
        return PEG_OK;
    peg__fail(&why, PEG_ESTATE, "E_OUTCOME_UNKNOWN",
              "it is not known whether this call was carried out: the run that began it did not "
              "come to its end. It was not repeated; find out what is the case before you call "
              "it again");
    if (marks)
        status = read_marks(marks, &left, reterr);
    if (!status)
        status = refuse_those(dispatch, &why, must_not_run, &left, reterr);
    if (!status)
        status = peg_turn_unset(dispatch->turn, &peg_key_calls_started, reterr);
    peg__map_free(&left.begun);
    return status;
}

/* ---- running them ----------------------------------------------------------------- */

static peg_status run_calls(peg_dispatch *dispatch, size_t *ret_n, peg_error *reterr)
{
    struct batch batch = {.dispatch = dispatch,
                          .tap = {.announce = announce_call, .start = begin_call, .user = &batch},
                          .handles = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)};
    peg_status status = close_left(dispatch, false, reterr);

    if (!status)
        status = collect_pending(&batch, reterr);
    if (!status && batch.n_blocks)
        status = set_options(&batch, reterr);
    if (!status && batch.n_blocks) {
        dispatch->has_run_calls = true;
        status = run_batch(&batch, reterr);
    }
    if (!status && ret_n)
        *ret_n = batch.n_ended;
    free_batch(&batch);
    return status;
}

/* A handler that came back here would find its own call without a result, and run itself. */
peg_status peg_dispatch_run_calls(peg_dispatch *dispatch, size_t *ret_n, peg_error *reterr)
{
    peg_status status;

    if (dispatch->is_running_calls)
        return peg__fail(
            reterr, PEG_ESTATE, "E_WRONG_STATE",
            "the calls of this dispatch are being run: let that come to its end first");
    dispatch->is_running_calls = true;
    status = run_calls(dispatch, ret_n, reterr);
    dispatch->is_running_calls = false;
    return status;
}

static peg_status snapshot_turn(peg_dispatch *dispatch, peg_phase phase, peg_error *reterr)
{
    return peg__snapshot(dispatch->ctx, dispatch->loop, dispatch->turn, phase, reterr);
}

static size_t count_pending(const peg_turn *turn)
{
    const size_t len = peg_turn_len(turn);
    size_t n = 0;

    for (size_t i = peg_turn_next_pending(turn, 0); i < len; i = peg_turn_next_pending(turn, i + 1))
        n++;
    return n;
}

/* ---- the model ------------------------------------------------------------------ */

/* How many calls stand in the turn beyond those; an engine may take some out. */
static size_t count_calls(const peg_dispatch *dispatch, size_t beyond)
{
    const size_t n = peg_turn_count(dispatch->turn, PEG_BLOCKS(PEG_BLOCK_CALL));

    return n > beyond ? n - beyond : 0;
}

static peg_status ask_model(peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_clock *clock = peg_ctx_clock(dispatch->ctx);
    const int64_t started_ns = peg_clock_mono_ns(clock);
    const peg_engine *engine = &dispatch->loop->engine;
    const size_t n_calls = count_calls(dispatch, 0);
    peg_event event = {.kind = PEG_EVENT_INFERENCE_START};
    peg_status status;

    peg__streams_forget_args(&dispatch->streams);
    event.u.inference.definitions = peg_dispatch_definitions(dispatch);
    peg_ctx_emit(dispatch->ctx, &event);

    status = engine->fn(dispatch, engine->user, reterr);

    event.kind = PEG_EVENT_INFERENCE_END;
    event.u.inference.is_error = status != PEG_OK;
    event.u.inference.duration_ns = peg_clock_mono_ns(clock) - started_ns;
    event.u.inference.n_calls = count_calls(dispatch, n_calls);
    if (status ||
        peg_turn_get(dispatch->turn, &peg_key_inference_result, &event.u.inference.result, NULL))
        event.u.inference.result = NULL;
    peg_ctx_emit(dispatch->ctx, &event);
    return status;
}

/* ---- pauses --------------------------------------------------------------------- */

static peg_status pause_at(peg_dispatch *dispatch, const char *phase, size_t n_pending,
                           peg_step_decision *ret_decision, peg_error *reterr)
{
    peg_str session = {NULL, 0};
    peg_status status;

    *ret_decision = PEG_STEP_CONTINUE;
    if (!dispatch->loop->steps ||
        peg_turn_get_string(dispatch->turn, &peg_key_session_id, &session, NULL) || !session.len)
        return PEG_OK;
    status = peg_stepper_pause(dispatch->loop->steps, dispatch->ctx, session, phase, n_pending,
                               ret_decision, reterr);
    if (!status && *ret_decision == PEG_STEP_ABORT)
        peg_dispatch_abort(dispatch, "aborted at a step");
    return status;
}

/* ---- the calls ------------------------------------------------------------------ */

static peg_status skip_calls(peg_dispatch *dispatch, const char *code, const char *why,
                             peg_error *reterr)
{
    peg_error error;

    peg__fail(&error, PEG_ESTATE, code, "%s", why);
    return refuse_those(dispatch, &error, NULL, NULL, reterr);
}

static peg_status answer_calls(peg_dispatch *dispatch, peg_step_decision decision,
                               peg_error *reterr)
{
    if (!peg__dispatch_uses_tools(dispatch))
        return skip_calls(dispatch, "E_TOOLS_OFF",
                          "not run: tools are switched off in this conversation; answer without",
                          reterr);
    if (decision == PEG_STEP_SKIP_TOOLS)
        return skip_calls(dispatch, "E_TOOL_SKIPPED",
                          "not run: skipped by the person who watches this conversation", reterr);
    return peg_dispatch_run_calls(dispatch, NULL, reterr);
}

static peg_status run_asked(peg_dispatch *dispatch, peg_error *reterr)
{
    const size_t n_pending = count_pending(dispatch->turn);
    peg_step_decision decision;
    peg_status status;

    if (!n_pending)
        return PEG_OK;
    status = pause_at(dispatch, "after_inference", n_pending, &decision, reterr);
    if (status || peg__dispatch_is_over(dispatch))
        return status;
    status = answer_calls(dispatch, decision, reterr);
    if (status || peg__dispatch_is_stopped(dispatch))
        return status;
    status = snapshot_turn(dispatch, PEG_PHASE_POST_TOOLS, reterr);
    return status ? status : pause_at(dispatch, "after_tools", 0, &decision, reterr);
}

/* ---- what an earlier run left --------------------------------------------------- */

peg_status peg__dispatch_settle_pending(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status;

    if (peg_turn_next_pending(dispatch->turn, 0) == peg_turn_len(dispatch->turn))
        return PEG_OK;
    status = peg__dispatch_read_config(dispatch, reterr);
    if (!status)
        status = close_left(dispatch, true, reterr);
    if (!status && count_pending(dispatch->turn))
        status = answer_calls(dispatch, PEG_STEP_CONTINUE, reterr);
    if (!status)
        status = peg_turn_unset(dispatch->turn, &peg_key_calls_started, reterr);
    if (!status)
        status = snapshot_turn(dispatch, PEG_PHASE_POST_TOOLS, reterr);
    /* They do not count as asked for in this iteration: the model has not spoken yet. */
    dispatch->has_run_calls = false;
    return status;
}

/* ---- all of it ------------------------------------------------------------------ */

peg_status peg__dispatch_infer(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status;

    if ((status = peg_dispatch_sync(dispatch, reterr)) ||
        (status = snapshot_turn(dispatch, PEG_PHASE_PRE_INFERENCE, reterr)) ||
        peg__dispatch_is_over(dispatch) || (status = ask_model(dispatch, reterr)) ||
        peg__dispatch_is_over(dispatch))
        return status;
    status = snapshot_turn(dispatch, PEG_PHASE_POST_INFERENCE, reterr);
    return status ? status : run_asked(dispatch, reterr);
}
