/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The standard executor: what an earlier run left open, then the model, then the calls it asks for.
 *
 *   settle what is pending -> sync -> engine -> (pause) -> run the calls -> (pause)
 *
 * At each point the turn can be kept, so that a process that dies here is resumed there.
 */

#include "base/error.h"
#include "base/text/str.h"
#include "turn/loop/dispatch.h"
#include "turn/turn.h"

static peg_status snapshot(peg_dispatch *dispatch, peg_phase phase, peg_error *reterr)
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

static peg_status ask(peg_dispatch *dispatch, peg_error *reterr)
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

    *ret_decision = PEG_STEP_CONTINUE;
    if (!dispatch->loop->steps ||
        peg_turn_get_string(dispatch->turn, &peg_key_session_id, &session, NULL) || !session.len)
        return PEG_OK;
    return peg_stepper_pause(dispatch->loop->steps, dispatch->ctx, session, phase, n_pending,
                             ret_decision, reterr);
}

/* ---- the calls ------------------------------------------------------------------ */

static peg_status skip_calls(peg_dispatch *dispatch, const char *code, const char *why,
                             peg_error *reterr)
{
    peg_error error;

    peg__fail(&error, PEG_ESTATE, code, "%s", why);
    return peg__dispatch_refuse_pending(dispatch, &error, reterr);
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
                          "not run: whoever watches this conversation skipped it", reterr);
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
    if (!status && decision == PEG_STEP_ABORT)
        peg_dispatch_abort(dispatch, "aborted at a step");
    if (status || peg__dispatch_is_over(dispatch))
        return status;
    status = answer_calls(dispatch, decision, reterr);
    if (status || peg__dispatch_is_stopped(dispatch))
        return status;
    status = snapshot(dispatch, PEG_PHASE_POST_TOOLS, reterr);
    if (!status)
        status = pause_at(dispatch, "after_tools", 0, &decision, reterr);
    if (!status && decision == PEG_STEP_ABORT)
        peg_dispatch_abort(dispatch, "aborted at a step");
    return status;
}

/* ---- what an earlier run left --------------------------------------------------- */

peg_status peg__dispatch_settle_pending(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status;

    if (peg_turn_next_pending(dispatch->turn, 0) == peg_turn_len(dispatch->turn))
        return PEG_OK;
    status = peg__dispatch_read_config(dispatch, reterr);
    if (!status)
        status = peg__dispatch_close_left(dispatch, reterr);
    if (!status && count_pending(dispatch->turn))
        status = answer_calls(dispatch, PEG_STEP_CONTINUE, reterr);
    if (!status)
        status = peg_turn_unset(dispatch->turn, &peg_key_calls_started, reterr);
    if (!status)
        status = snapshot(dispatch, PEG_PHASE_POST_TOOLS, reterr);
    /* They do not count as asked for in this iteration: the model has not spoken yet. */
    dispatch->has_run_calls = false;
    return status;
}

/* ---- all of it ------------------------------------------------------------------ */

peg_status peg__dispatch_infer(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status;

    if ((status = peg_dispatch_sync(dispatch, reterr)) ||
        (status = snapshot(dispatch, PEG_PHASE_PRE_INFERENCE, reterr)) ||
        peg__dispatch_is_over(dispatch) || (status = ask(dispatch, reterr)) ||
        peg__dispatch_is_over(dispatch))
        return status;
    status = snapshot(dispatch, PEG_PHASE_POST_INFERENCE, reterr);
    return status ? status : run_asked(dispatch, reterr);
}
