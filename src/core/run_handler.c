/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handler: attempt after attempt, inline or on a pool, under the tool's time and the
 * context's cancellation. What an attempt came to is judged in one place, judge().
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/ctx.h"
#include "core/run.h"
#include "core/tool.h"
#include "pegboard/clock.h"

/* ---- one attempt ---------------------------------------------------------------- */

static void run_handler(peg_call *call)
{
    const peg_tool *tool = call->task->tool;

    tool->def.run(call, peg__call_args(call), tool->def.user);
    call->ended_ns = peg_clock_mono_ns(peg_ctx_clock(call->ctx));
}

static peg_call *call_of(struct peg__job *job)
{
    return (peg_call *)((char *)job - offsetof(struct peg_call, job));
}

static void run_job(struct peg__job *job)
{
    run_handler(call_of(job));
}

static void release_job(struct peg__job *job)
{
    peg__call_unref(call_of(job));
}

static int64_t timeout_of(const struct peg__run *run)
{
    const int64_t own = peg_tool_timeout_ms(run->tool);

    return own ? own : run->options.timeout_ms;
}

/* The attempt's own token and time, instead of the context that the hooks saw. */
static peg_status give_time(struct peg__run *run, peg_error *reterr)
{
    peg_ctx *ctx;
    const peg_status status = peg__ctx_for_call(run->ctx, timeout_of(run), &ctx, reterr);

    if (status)
        return status;
    peg_ctx_unref(run->call->ctx);
    run->call->ctx = ctx;
    return PEG_OK;
}

static peg_status submit(struct peg__run *run, peg_error *reterr)
{
    peg_call *call = run->call;
    peg_error why;
    peg_status status;

    call->job = (struct peg__job){.run = run_job, .release = release_job};
    peg__call_ref(call);
    status = peg__pool_submit(run->options.pool, &call->job, &why);
    if (!status) {
        run->is_on_pool = true;
        return PEG_OK;
    }
    peg__call_unref(call);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    peg__run_tell_limit(run, why.code, "the pool's limit", 0);
    return peg__run_refuse(run, why.code, "", reterr, "the tool '%.*s' was not started: %s",
                           PEG_ARG(run->record->tool), why.message);
}

static peg_status start_attempt(struct peg__run *run, peg_error *reterr)
{
    const peg_status status = give_time(run, reterr);

    if (status)
        return status;
    run->record->n_attempts = run->call->attempt;
    if (run->options.pool)
        return submit(run, reterr);
    run_handler(run->call);
    return PEG_OK;
}

/* ---- judging it ----------------------------------------------------------------- */

enum outcome {
    OUTCOME_ANSWERED,
    OUTCOME_FAILED, /* *ret_failure says how */
};

/* A handler that stopped because it was told to has said how far it came. What an abandoned one
 * says, and when, is its own. */
static enum outcome fail_in_time(const struct peg__run *run, bool is_abandoned, peg_error *failure)
{
    const char *what = is_abandoned
                           ? "did not answer in time and was given up; whether it had its effect "
                             "is not known"
                           : "answered too late; the answer was dropped, its effect was not undone";
    const struct peg__answer *answer = is_abandoned ? NULL : &run->call->answer;

    if (answer && answer->kind == PEG__ANSWER_FAILURE) {
        peg__fail(failure, PEG_ETIMEOUT, "E_TOOL_TIMEOUT",
                  "the tool '%.*s' stopped at its deadline (timeout_ms %lld): %s",
                  PEG_ARG(run->record->tool), (long long)timeout_of(run),
                  answer->text.ptr ? answer->text.ptr : "");
        failure->cause = answer->cause ? answer->cause : "";
        return OUTCOME_FAILED;
    }
    peg__fail(failure, PEG_ETIMEOUT, "E_TOOL_TIMEOUT", "the tool '%.*s' %s (timeout_ms %lld)",
              PEG_ARG(run->record->tool), what, (long long)timeout_of(run));
    return OUTCOME_FAILED;
}

static enum outcome fail_canceled(const struct peg__run *run, peg_error *failure)
{
    peg_error why;

    peg_ctx_check(run->call->ctx, &why);
    peg__fail(failure, PEG_ECANCELED, "E_TOOL_CANCELED", "the tool '%.*s' was canceled: %s",
              PEG_ARG(run->record->tool), why.message);
    return OUTCOME_FAILED;
}

static enum outcome judge_answer(const struct peg__run *run, peg_error *failure)
{
    const struct peg__answer *answer = &run->call->answer;
    const peg_str name = run->record->tool;

    switch (answer->kind) {
    case PEG__ANSWER_NONE:
        peg__fail(failure, PEG_EHOST, "E_TOOL_NO_ANSWER",
                  "the tool '%.*s' returned without an answer", PEG_ARG(name));
        return OUTCOME_FAILED;
    case PEG__ANSWER_TOO_LARGE:
        peg__fail(failure, PEG_ELIMIT, "E_LIMIT_RESULT_BYTES",
                  "the result of '%.*s' is larger than max_result_bytes (%lld); ask for less",
                  PEG_ARG(name), (long long)run->options.max_result_bytes);
        return OUTCOME_FAILED;
    case PEG__ANSWER_FAILURE:
        peg__fail(failure, PEG_EHOST, "E_TOOL_DOWNSTREAM_ERROR", "the tool '%.*s' failed: %s",
                  PEG_ARG(name), answer->text.ptr ? answer->text.ptr : "");
        failure->cause = answer->cause ? answer->cause : "";
        return OUTCOME_FAILED;
    default:
        return OUTCOME_ANSWERED;
    }
}

static enum outcome fail_not_begun(const struct peg__run *run, peg_status stop, peg_error *failure)
{
    const peg_str name = run->record->tool;

    if (stop == PEG_ETIMEOUT)
        peg__fail(failure, PEG_ETIMEOUT, "E_TOOL_TIMEOUT",
                  "the tool '%.*s' was not started: its time ran out while it waited for a thread "
                  "(timeout_ms %lld)",
                  PEG_ARG(name), (long long)timeout_of(run));
    else
        peg__fail(failure, PEG_EHOST, "E_POOL_ABANDONED",
                  "the tool '%.*s' was not started: every thread of the pool is held by a handler "
                  "that did not return",
                  PEG_ARG(name));
    return OUTCOME_FAILED;
}

/* A late answer is no answer; a cancellation does not undo one. */
static enum outcome judge(struct peg__run *run, enum peg__job_end end, peg_error *failure)
{
    const peg_status stop = peg_ctx_check(run->call->ctx, NULL);
    enum outcome outcome;

    if (end != PEG__JOB_ENDED && stop == PEG_ECANCELED)
        return fail_canceled(run, failure);
    if (end == PEG__JOB_NOT_BEGUN)
        return fail_not_begun(run, stop, failure);
    if (end == PEG__JOB_ABANDONED)
        return fail_in_time(run, true, failure);
    if (stop == PEG_ETIMEOUT)
        return fail_in_time(run, false, failure);
    outcome = judge_answer(run, failure);
    if (outcome == OUTCOME_FAILED && stop == PEG_ECANCELED)
        return fail_canceled(run, failure);
    return outcome;
}

/* A handler's own sentence may be longer than an error holds. */
static peg_status settle(struct peg__run *run, const peg_error *failure, peg_error *reterr)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES * 2);
    const struct peg__answer *answer = &run->call->answer;

    if (failure->status == PEG_ELIMIT)
        peg__run_tell_limit(run, failure->code, "max_result_bytes", run->options.max_result_bytes);
    if (failure->status == PEG_ETIMEOUT)
        peg__run_tell_limit(run, failure->code, "timeout_ms", timeout_of(run));
    if (failure->status == PEG_EHOST && answer->kind == PEG__ANSWER_FAILURE)
        peg__buf_printf(&sentence, "the tool '%.*s' failed: %s", PEG_ARG(run->record->tool),
                        answer->text.ptr ? answer->text.ptr : "");
    else
        peg__buf_puts(&sentence, failure->message);
    return peg__run_refuse_text(run, failure->code, failure->cause, &sentence, reterr);
}

/* ---- start and end -------------------------------------------------------------- */

static void tell_start(struct peg__run *run)
{
    const peg_clock *clock = peg_ctx_clock(run->ctx);
    const peg_run_hooks *hooks = run->options.hooks;
    peg_event event = {.kind = PEG_EVENT_TOOL_START};

    run->has_started = true;
    run->started_ns = peg_clock_mono_ns(clock);
    if (hooks && hooks->on_start)
        hooks->on_start(run->call, hooks->user);
    if (!peg__ctx_has_sink(run->ctx))
        return;
    run->started_ms = peg_clock_now_ms(clock);
    event.u.tool = (peg_tool_event){.tool = run->record->tool,
                                    .call_id = run->record->call_id,
                                    .checksum = peg__str(run->record->checksum),
                                    .args = peg__run_shown_args(run),
                                    .attempt = 1,
                                    .started_ms = run->started_ms};
    peg_ctx_emit(run->ctx, &event);
}

void peg__run_tell_end(struct peg__run *run)
{
    const peg_clock *clock = peg_ctx_clock(run->ctx);
    peg_event event = {.kind = PEG_EVENT_TOOL_END};
    int64_t ended_ns;

    if (!run->has_started)
        return;
    /* An abandoned handler has not ended, and its thread may write the time any moment. */
    ended_ns = run->is_on_pool ? 0 : run->call->ended_ns;
    if (!ended_ns)
        ended_ns = peg_clock_mono_ns(clock);
    run->record->duration_ns = ended_ns - run->started_ns;
    if (!peg__ctx_has_sink(run->ctx))
        return;
    event.u.tool = (peg_tool_event){.tool = run->record->tool,
                                    .call_id = run->record->call_id,
                                    .checksum = peg__str(run->record->checksum),
                                    .attempt = run->record->n_attempts,
                                    .started_ms = run->started_ms,
                                    .ended_ms = peg_clock_now_ms(clock),
                                    .duration_ns = run->record->duration_ns,
                                    .is_error = run->record->is_error};
    peg_ctx_emit(run->ctx, &event);
}

/* A call whose time is over before it began does not begin. */
static peg_status refuse_late(struct peg__run *run, peg_error *reterr)
{
    peg_error why;
    const peg_status stop = peg_ctx_check(run->ctx, &why);

    if (!stop)
        return PEG_OK;
    return peg__run_refuse(run, stop == PEG_ECANCELED ? "E_TOOL_CANCELED" : "E_TOOL_TIMEOUT",
                           why.code, reterr, "the tool '%.*s' was not started: %s",
                           PEG_ARG(run->record->tool), why.message);
}

peg_status peg__run_start_handler(struct peg__run *run, peg_error *reterr)
{
    const peg_status status = refuse_late(run, reterr);

    if (status || peg__run_is_refused(run))
        return status;
    tell_start(run);
    return start_attempt(run, reterr);
}

/* ---- attempt after attempt ------------------------------------------------------ */

static enum peg__job_end await_attempt(struct peg__run *run)
{
    enum peg__job_end end = PEG__JOB_ENDED;

    if (run->is_on_pool)
        end = peg__pool_await(&run->call->job, run->call->ctx);
    if (end == PEG__JOB_ENDED)
        run->is_on_pool = false;
    return end;
}

static bool wants_retry(struct peg__run *run, const peg_error *failure)
{
    const peg_run_hooks *hooks = run->options.hooks;
    int64_t delay_ms = 0;

    if (!hooks || !hooks->should_retry || run->call->attempt >= run->options.max_attempts)
        return false;
    if (peg_ctx_check(run->ctx, NULL))
        return false;
    if (!hooks->should_retry(run->call, failure, run->call->attempt, &delay_ms, hooks->user))
        return false;
    return delay_ms <= 0 || peg_ctx_wait(run->ctx, delay_ms, NULL) == PEG_OK;
}

static peg_status start_again(struct peg__run *run, peg_error *reterr)
{
    peg_call *next = peg__call_new(run->task, run->ctx, run->call->attempt + 1);

    if (!next)
        return peg__fail_nomem(reterr);
    peg__call_unref(run->call);
    run->call = next;
    run->is_on_pool = false;
    return start_attempt(run, reterr);
}

peg_status peg__run_await_handler(struct peg__run *run, peg_error *reterr)
{
    for (;;) {
        const enum peg__job_end end = await_attempt(run);
        peg_error failure;
        peg_status status;

        if (end == PEG__JOB_ENDED && run->call->is_out_of_memory)
            return peg__fail_nomem(reterr);
        if (judge(run, end, &failure) == OUTCOME_ANSWERED)
            return PEG_OK;
        if (end == PEG__JOB_ABANDONED) /* perhaps it listens, if not to the clock */
            peg_cancel_fire(peg_ctx_cancel(run->call->ctx), "the call was given up");
        if (!wants_retry(run, &failure))
            return settle(run, &failure, reterr);
        status = start_again(run, reterr);
        if (status || peg__run_is_refused(run))
            return status;
    }
}
