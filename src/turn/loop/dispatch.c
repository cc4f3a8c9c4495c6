/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The dispatch loop. Read it from the bottom up:
 *
 *   peg__dispatch_run -> loop -> iterate -> the pipelines and the executor
 *
 * An iteration works on the dispatch's own copy of the blocks. What it stored reaches the turn when
 * it ends, all at once. A nack leaves the turn as the iteration found it; an abort or a failure
 * adds the calls that began (dispatch_kept.c).
 */

#include "turn/loop/loop.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "core/registry/registry.h"
#include "turn/store/store.h"
#include "turn/turn.h"

/* ---- events --------------------------------------------------------------------- */

struct span {
    int64_t started_ms;
    int64_t started_ns;
};

static struct span start_span(peg_ctx *ctx, peg_event_kind kind)
{
    const peg_clock *clock = peg_ctx_clock(ctx);
    const struct span span = {peg_clock_now_ms(clock), peg_clock_mono_ns(clock)};
    peg_event event = {.kind = kind};

    event.u.span.started_ms = span.started_ms;
    peg_ctx_emit(ctx, &event);
    return span;
}

static void end_span(peg_ctx *ctx, const struct span *span, peg_event *event)
{
    const peg_clock *clock = peg_ctx_clock(ctx);

    event->u.span.started_ms = span->started_ms;
    event->u.span.ended_ms = peg_clock_now_ms(clock);
    event->u.span.duration_ns = peg_clock_mono_ns(clock) - span->started_ns;
    peg_ctx_emit(ctx, event);
}

/* ---- pipelines ------------------------------------------------------------------ */

struct dispatch_pipeline {
    peg_dispatch *dispatch;
    const peg_dispatch_middleware *steps;
};

static peg_status run_step(void *owner, size_t i, peg_middleware_next *next, peg_error *reterr)
{
    struct dispatch_pipeline *pipeline = owner;
    const peg_dispatch_middleware *step = &pipeline->steps[i];

    return step->run(pipeline->dispatch, next, step->user, reterr);
}

static bool is_pipeline_stopped(void *owner)
{
    return peg__dispatch_is_stopped(((struct dispatch_pipeline *)owner)->dispatch);
}

static peg_status run_pipeline(peg_dispatch *dispatch, const peg_dispatch_middleware *steps,
                               size_t n_steps, const char *name, peg_error *reterr)
{
    struct dispatch_pipeline owner = {dispatch, steps};
    const struct peg__pipeline pipeline = {.n_steps = n_steps,
                                           .nexts = dispatch->nexts,
                                           .run_step = run_step,
                                           .is_stopped = is_pipeline_stopped,
                                           .owner = &owner};
    enum peg__pipeline_end end;
    peg_error why;

    end = peg__pipeline_run(&pipeline, &why);
    /* A middleware that ended the dispatch need not run the rest. */
    if (end == PEG__PIPELINE_SHORT && peg_dispatch_is_signalled(dispatch))
        return PEG_OK;
    return peg__pipeline_status(end, name, "E_DISPATCH_PIPELINE_ERROR", &why, reterr);
}

/* ---- the executor --------------------------------------------------------------- */

static bool acks_by_itself(const peg_dispatch_options *loop)
{
    if (loop->auto_ack == PEG_AUTO_ACK_DEFAULT)
        return loop->engine.fn != NULL;
    return loop->auto_ack == PEG_AUTO_ACK_ON;
}

static peg_status execute(peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_dispatch_options *loop = dispatch->loop;
    peg_error why = PEG__HOST_ERROR;
    peg_status status;

    status = loop->engine.fn ? peg__dispatch_infer(dispatch, &why)
                             : loop->executor.fn(dispatch, loop->executor.user, &why);
    if (!status || peg__dispatch_is_stopped(dispatch))
        return PEG_OK; /* with any status: it was asked to stop */
    peg__host_failed(status, &why, "E_EXECUTOR", "the executor", &why);
    return peg__fail_because(reterr, PEG_EHOST, "E_EXECUTOR", &why,
                             "the executor failed in iteration %u", dispatch->iteration);
}

/* ---- an iteration --------------------------------------------------------------- */

/* The context of this iteration: the base with the iteration's number. */
static peg_status enter(peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_ids ids = {.iteration = (int)dispatch->iteration};
    peg_ctx *ctx;
    const peg_status status = peg_ctx_with_ids(dispatch->base_ctx, &ids, &ctx, reterr);

    if (status)
        return status;
    peg_ctx_unref(dispatch->ctx);
    dispatch->ctx = ctx;
    dispatch->has_run_calls = false;
    dispatch->n_iterations++;
    peg__turn_attach(dispatch->turn, dispatch->loop->storage, ctx);
    return PEG_OK;
}

static bool is_nacked(const peg_dispatch *dispatch)
{
    return dispatch->signal == PEG__SIGNAL_NACK;
}

/* True while the iteration may go on: an ack does not end it, everything else does. What was acked
 * is done, also if it is stopped afterwards. */
static bool goes_on(const peg_dispatch *dispatch, peg_status status)
{
    if (status || is_nacked(dispatch))
        return false;
    return peg_dispatch_is_acked(dispatch) || !peg__dispatch_is_stopped(dispatch);
}

/* Did a part of the iteration add calls or results, or run some? Counted around each part, because
 * a middleware before it may take old calls out of the turn. */
struct asking {
    size_t n_calls; /* when the part began */
    bool wants_tools;
};

static size_t count_calls(const peg_dispatch *dispatch)
{
    return peg_turn_count(dispatch->turn, PEG_BLOCKS_CALLS);
}

static void count_again(const peg_dispatch *dispatch, struct asking *asking)
{
    const size_t n_calls = count_calls(dispatch);

    if (n_calls > asking->n_calls || dispatch->has_run_calls)
        asking->wants_tools = true;
    asking->n_calls = n_calls;
}

/* After the output pipeline, so that a guard there can still nack the model's answer. */
static peg_status auto_ack(peg_dispatch *dispatch, const struct asking *asking, peg_error *reterr)
{
    if (asking->wants_tools || peg_dispatch_is_signalled(dispatch) ||
        dispatch->stops_after_iteration || !acks_by_itself(dispatch->loop))
        return PEG_OK;
    return peg_dispatch_ack(dispatch, reterr);
}

static peg_status run_parts(peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_dispatch_options *loop = dispatch->loop;
    struct asking asking = {.wants_tools = false};
    peg_status status = peg__dispatch_forge(dispatch, reterr);

    if (!status)
        status = run_pipeline(dispatch, loop->input, loop->n_input, "dispatch-input", reterr);
    if (loop->engine.fn && goes_on(dispatch, status) && !peg_dispatch_is_signalled(dispatch))
        status = peg__dispatch_settle_pending(dispatch, reterr);
    asking.n_calls = count_calls(dispatch);
    if (goes_on(dispatch, status) && !peg_dispatch_is_signalled(dispatch) &&
        !dispatch->stops_after_iteration)
        status = execute(dispatch, reterr);
    count_again(dispatch, &asking);
    if (goes_on(dispatch, status))
        status = run_pipeline(dispatch, loop->output, loop->n_output, "dispatch-output", reterr);
    count_again(dispatch, &asking);
    if (goes_on(dispatch, status))
        status = auto_ack(dispatch, &asking, reterr);
    return status;
}

/* A tool that is gone with the dispatch is not offered by its turn. Without memory for a shorter
 * list the turn keeps the longer one: an ack is an ack. */
static void drop_ephemeral(peg_turn *turn)
{
    peg_error why;

    if (peg__turn_drop_ephemeral(turn, &why))
        peg__log(PEG_LOG_WARN, why.code, "ephemeral tools stay on a turn: %s", why.message);
}

static void flush(peg_dispatch *dispatch, bool is_whole)
{
    if (peg_dispatch_is_acked(dispatch))
        drop_ephemeral(dispatch->turn);
    if (is_whole)
        peg__turn_swap_in(dispatch->target, dispatch->turn);
    else if (!is_nacked(dispatch))
        peg__kept_flush(dispatch);
    peg__kept_clear(dispatch);
}

static peg_status iterate(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_event end = {.kind = PEG_EVENT_ITERATION_END};
    struct span span;
    bool is_whole;
    peg_status status = enter(dispatch, reterr);

    if (status)
        return status;
    span = start_span(dispatch->ctx, PEG_EVENT_ITERATION_START);
    status = run_parts(dispatch, reterr);
    is_whole = goes_on(dispatch, status);
    flush(dispatch, is_whole);
    if (!is_whole)
        return status;
    end_span(dispatch->ctx, &span, &end);
    if (!dispatch->stops_after_iteration || peg_dispatch_is_acked(dispatch))
        return PEG_OK;
    if (reterr)
        *reterr = dispatch->stop_error;
    return dispatch->stop_error.status;
}

/* ---- the loop ------------------------------------------------------------------- */

static peg_status refuse_more(peg_dispatch *dispatch, unsigned max, peg_error *reterr)
{
    peg__fail(reterr, PEG_ELIMIT, "E_LIMIT_ITERATIONS",
              "the model wants more than max_iterations (%u); raise the limit, or find out why it "
              "does not come to an end",
              max);
    peg__emit_error(dispatch->ctx, PEG_EVENT_LIMIT, reterr);
    return PEG_ELIMIT;
}

static peg_status loop(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status = peg__dispatch_read_config(dispatch, reterr);

    while (!status && !peg__dispatch_is_over(dispatch)) {
        const unsigned max = (unsigned)dispatch->config.settings.max_iterations;

        if (dispatch->iteration >= max && max != INT32_MAX)
            return refuse_more(dispatch, max, reterr);
        status = iterate(dispatch, reterr);
        dispatch->iteration++;
    }
    return status;
}

static peg_turn_end how_it_ended(const peg_dispatch *dispatch, peg_status status)
{
    if (status || is_nacked(dispatch))
        return PEG_END_NACK;
    return peg_dispatch_is_acked(dispatch) ? PEG_END_ACK : PEG_END_ABORTED;
}

/* Why, of an end that is no ack. */
static peg_error what_ended_it(const peg_dispatch *dispatch, peg_status status,
                               const peg_error *failure)
{
    peg_error why;

    if (is_nacked(dispatch)) /* it came first, whatever failed after it */
        return dispatch->nack_error;
    if (status)
        return *failure;
    peg__ctx_why_stopped(dispatch->base_ctx, &why);
    return why;
}

static peg_outcome run_to_the_end(peg_dispatch *dispatch)
{
    peg_event event = {.kind = PEG_EVENT_DISPATCH_END};
    peg_outcome outcome = {.error = {.code = "", .cause = ""}};
    peg_error why;
    struct span span;
    peg_status status;

    dispatch->target->is_lent = true; /* changes made there would be lost in the flush */
    span = start_span(dispatch->ctx, PEG_EVENT_DISPATCH_START);
    status = loop(dispatch, &why);
    dispatch->target->is_lent = false;
    drop_ephemeral(dispatch->target); /* of iterations before one that did not end well */

    outcome.end = how_it_ended(dispatch, status);
    outcome.iterations = dispatch->n_iterations;
    if (outcome.end != PEG_END_ACK)
        outcome.error = what_ended_it(dispatch, status, &why);
    event.u.span.iterations = outcome.iterations;
    event.u.span.end = outcome.end;
    event.error = outcome.end == PEG_END_ACK ? NULL : &outcome.error;
    end_span(dispatch->base_ctx, &span, &event);
    if (outcome.end == PEG_END_NACK)
        peg__emit_error(dispatch->base_ctx, PEG_EVENT_ERROR, &outcome.error);
    return outcome;
}

/* ---- setting up ----------------------------------------------------------------- */

static peg_status make_context(peg_dispatch *dispatch, peg_ctx *ctx, peg_error *reterr)
{
    const peg_ids ids = {.dispatch_id = dispatch->id, .iteration = -1};
    peg_ctx *canceling = NULL;
    peg_ctx *named = NULL;
    peg_status status = peg_ctx_with_cancel(ctx, &canceling, &dispatch->cancel, reterr);

    if (!status)
        status = peg_ctx_with_ids(canceling, &ids, &named, reterr);
    if (!status)
        status = peg_ctx_with_registry(named, dispatch->registry, &dispatch->base_ctx, reterr);
    if (!status)
        dispatch->ctx = peg_ctx_ref(dispatch->base_ctx);
    peg_ctx_unref(named);
    peg_ctx_unref(canceling);
    return status;
}

static peg_status set_up(peg_dispatch *dispatch, peg_ctx *ctx, peg_registry *registry,
                         peg_error *reterr)
{
    peg_status status;

    if (!peg__uuid7(peg_ctx_clock(ctx), dispatch->id))
        return peg__fail_no_randomness(reterr);
    dispatch->last_subscription = &dispatch->subscriptions;
    if ((status = registry ? peg_registry_copy(registry, &dispatch->registry, reterr)
                           : peg__registry_placeholder(&dispatch->registry, reterr)) ||
        (status = peg_turn_copy(dispatch->target, &dispatch->turn, reterr)) ||
        (status = make_context(dispatch, ctx, reterr)))
        return status;
    /* Bound once, here: whenever an ephemeral tool appears, it is gone when ack returns. */
    return peg_registry_bind(dispatch->registry, dispatch, NULL, reterr);
}

static void tear_down(peg_dispatch *dispatch)
{
    peg__dispatch_end_subscriptions(dispatch);
    peg__streams_free(&dispatch->streams);
    peg__shared_unref(dispatch->offered);
    peg_turn_free(dispatch->turn);
    peg_ctx_unref(dispatch->ctx);
    peg_ctx_unref(dispatch->base_ctx);
    peg_cancel_unref(dispatch->cancel);
    peg_registry_unref(dispatch->registry);
}

peg_status peg__dispatch_run(peg_ctx *ctx, const peg_dispatch_options *loop_, peg_turn *target,
                             peg_registry *registry, peg_outcome *ret_outcome, peg_error *reterr)
{
    peg_dispatch dispatch = {.loop = loop_, .target = target, .streams = PEG__STREAMS};
    peg_status status = peg__turn_check_lent(target, reterr);

    if (status)
        return status;
    status = set_up(&dispatch, ctx, registry, reterr);
    if (!status) {
        const peg_outcome outcome = run_to_the_end(&dispatch);

        if (ret_outcome)
            *ret_outcome = outcome;
    }
    tear_down(&dispatch);
    return status;
}

/* ---- from inside ---------------------------------------------------------------- */

peg_ctx *peg_dispatch_ctx(const peg_dispatch *dispatch)
{
    return dispatch->ctx;
}

peg_registry *peg_dispatch_registry(const peg_dispatch *dispatch)
{
    return dispatch->registry;
}

peg_turn *peg_dispatch_turn(const peg_dispatch *dispatch)
{
    return dispatch->turn;
}

const char *peg_dispatch_id(const peg_dispatch *dispatch)
{
    return dispatch->id;
}

unsigned peg_dispatch_iteration(const peg_dispatch *dispatch)
{
    return dispatch->iteration;
}
