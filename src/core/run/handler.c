/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handler: attempt after attempt, inline or on a pool, under the tool's time and the
 * context's cancellation. What an attempt came to is judged in one place, judge().
 */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "core/run/run.h"
#include "core/tool/tool.h"
#include "pegboard/clock.h"

/* ---- one attempt ---------------------------------------------------------------- */

static void run_handler(peg_call *call)
{
    const peg_tool *tool = call->task->tool;

    tool->def.run(call, peg__call_args(call), tool->def.user);
    call->ended_ns = peg_clock_mono_ns(peg_ctx_clock(call->ctx));
    call->was_canceled = peg_cancel_fired(peg_ctx_cancel(call->ctx));
}

static peg_call *call_of(struct peg__job *job)
{
    return peg__container_of(job, peg_call, job);
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

    return own ? own : run->options.settings.timeout_ms;
}

/* The attempt's own token and time, instead of the context that the hooks saw. */
static peg_status give_time(struct peg__run *run, peg_error *reterr)
{
    peg_ctx *ctx;
    /* Without a start event the clock was just read. */
    const bool is_now =
        run->call->attempt == 1 && !run->options.hooks && !peg__ctx_has_sink(run->ctx);
    const int64_t now_ns = is_now ? run->started_ns : peg_clock_mono_ns(peg_ctx_clock(run->ctx));
    const peg_status status = peg__ctx_for_call_at(run->ctx, timeout_of(run), now_ns, &ctx, reterr);

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
    peg__run_report_limit(run, why.code, "a limit of its pool: %s", why.message);
    return peg__run_refuse(run, why.code, "", reterr, "the tool '%.*s' was not started: %s",
                           PEG_ARG(run->record->tool), why.message);
}

/* Trust is that of the tool when it ran: a call that never ran has none. */
static void count_attempts(struct peg__run *run, unsigned n)
{
    run->record->n_attempts = n;
    run->record->is_trusted = n > 0 && peg_tool_is_trusted(run->tool);
}

static peg_status start_attempt(struct peg__run *run, peg_error *reterr)
{
    peg_status status = give_time(run, reterr);

    if (status)
        return status;
    if (run->options.pool)
        status = submit(run, reterr);
    else
        run_handler(run->call);
    if (!status && !peg__run_is_refused(run))
        count_attempts(run, run->call->attempt);
    return status;
}

/* ---- judging it ----------------------------------------------------------------- */

/* Why an attempt has no answer. A handler's own words may be longer than an error holds: what we
 * say of it is the first `lead` bytes of the message, its words follow. */
struct failure {
    peg_error error;
    size_t lead;
    const char *words; /* borrowed from the call; NULL: it said none, or has not returned */
};

/* Adds what the handler said about it. Requires that it has returned. */
static void add_words(const peg_call *call, struct failure *failure)
{
    const struct peg__answer *answer = &call->answer;
    const peg_error lead = failure->error;
    peg_error said;

    failure->lead = strlen(lead.message);
    failure->words = NULL;
    if (answer->kind != PEG__ANSWER_FAILURE)
        return;
    failure->words = answer->text.ptr ? answer->text.ptr : "";
    peg__fail(&said, PEG_EHOST, answer->cause ? answer->cause : "", "%s", failure->words);
    peg__fail_because(&failure->error, lead.status, lead.code, &said, "%s", lead.message);
}

/* Which limit it was: the time of the call, or the deadline of something around it. */
static void put_limit(const struct peg__run *run, char *out, size_t size)
{
    if (timeout_of(run) >= 0 && peg__ctx_is_over_budget(run->call->ctx))
        snprintf(out, size, "timeout_ms %lld", (long long)timeout_of(run));
    else
        snprintf(out, size, "a deadline around it");
}

static void fail_in_time(const struct peg__run *run, const char *what, peg_error *ret_error)
{
    char limit[48];

    put_limit(run, limit, sizeof(limit));
    peg__fail(ret_error, PEG_ETIMEOUT, "E_TOOL_TIMEOUT", "the tool '%.*s' %s (%s)",
              PEG_ARG(run->record->tool), what, limit);
}

/* Who gave no reason, as a gateway whose caller went away, has said "canceled": no need to say it
 * twice. */
static void fail_canceled(const struct peg__run *run, peg_error *ret_error)
{
    const char *reason = peg_cancel_reason(peg_ctx_cancel(run->call->ctx));
    const bool says_more = strcmp(reason, "canceled") != 0;

    peg__fail(ret_error, PEG_ECANCELED, "E_TOOL_CANCELED",
              "the tool '%.*s' was canceled: the host asked to stop%s%s",
              PEG_ARG(run->record->tool), says_more ? ": " : "", says_more ? reason : "");
}

/* It was given up, or never began. */
static void judge_unfinished(const struct peg__run *run, enum peg__job_end end,
                             peg_error *ret_error)
{
    const peg_status stop = peg_ctx_check(run->call->ctx, NULL);

    if (stop == PEG_ECANCELED)
        fail_canceled(run, ret_error);
    else if (end == PEG__JOB_ABANDONED)
        fail_in_time(run,
                     "did not answer in time and was given up; whether it had its effect is not "
                     "known",
                     ret_error);
    else if (stop == PEG_ETIMEOUT)
        fail_in_time(run, "was not started: its time ran out while it waited for a thread",
                     ret_error);
    else
        peg__fail(ret_error, PEG_EHOST, "E_POOL_ABANDONED",
                  "the tool '%.*s' was not started: every thread of the pool is held by a handler "
                  "that did not return",
                  PEG_ARG(run->record->tool));
}

/* It has returned, and in time: false if it did not answer. */
static bool judge_answer(const struct peg__run *run, peg_error *ret_error)
{
    const peg_str name = run->record->tool;

    switch (run->call->answer.kind) {
    case PEG__ANSWER_NONE:
        peg__fail(ret_error, PEG_EHOST, "E_TOOL_NO_ANSWER",
                  "the tool '%.*s' returned without an answer", PEG_ARG(name));
        return false;
    case PEG__ANSWER_TOO_LARGE:
        peg__fail(ret_error, PEG_ELIMIT, "E_LIMIT_RESULT_BYTES",
                  "the result of '%.*s' is larger than max_result_bytes (%lld); ask for less",
                  PEG_ARG(name), (long long)run->options.max_result_bytes);
        return false;
    case PEG__ANSWER_FAILURE:
        peg__fail(ret_error, PEG_EHOST, "E_TOOL_DOWNSTREAM_ERROR", "the tool '%.*s' failed",
                  PEG_ARG(name));
        return false;
    default:
        return true;
    }
}

/* When it returned counts, not when somebody came to look: of several calls that run at once, one
 * is awaited after the other. A late answer is no answer; a cancellation does not undo one. */
static bool judge_returned(const struct peg__run *run, struct failure *failure)
{
    const peg_call *call = run->call;
    const bool is_late = call->ended_ns >= peg__ctx_stop_ns(call->ctx);

    if (!is_late && judge_answer(run, &failure->error))
        return true;
    if (call->was_canceled)
        fail_canceled(run, &failure->error);
    else if (is_late && call->answer.kind == PEG__ANSWER_FAILURE)
        fail_in_time(run, "stopped at the end of its time", &failure->error);
    else if (is_late)
        fail_in_time(run, "answered too late; the answer was dropped, its effect was not undone",
                     &failure->error);
    add_words(call, failure);
    return false;
}

/* True if the attempt has an answer. */
static bool judge(const struct peg__run *run, enum peg__job_end end, struct failure *failure)
{
    if (end == PEG__JOB_ENDED)
        return judge_returned(run, failure);
    judge_unfinished(run, end, &failure->error);
    failure->words = NULL;
    return false;
}

static void tell_limit(struct peg__run *run, const peg_error *error)
{
    char limit[48];

    if (error->status == PEG_ELIMIT)
        peg__run_report_limit(run, error->code, "max_result_bytes (%lld)",
                              (long long)run->options.max_result_bytes);
    if (error->status != PEG_ETIMEOUT)
        return;
    put_limit(run, limit, sizeof(limit));
    peg__run_report_limit(run, error->code, "%s", limit);
}

static peg_status settle_failure(struct peg__run *run, const struct failure *failure,
                                 peg_error *reterr)
{
    struct peg__buf sentence = PEG__BUF(2L * PEG_LIMIT_FAILURE_BYTES);
    const peg_error *error = &failure->error;

    tell_limit(run, error);
    if (failure->words)
        peg__buf_printf(&sentence, "%.*s: %s", (int)failure->lead, error->message, failure->words);
    else
        peg__buf_puts(&sentence, error->message);
    return peg__run_refuse_text(run, error->code, error->cause, &sentence, reterr);
}

/* ---- start and end -------------------------------------------------------------- */

/* PEG_ENOMEM before anyone was notified. */
static peg_status tell_start(struct peg__run *run, peg_error *reterr)
{
    const peg_clock *clock = peg_ctx_clock(run->ctx);
    const peg_run_hooks *hooks = run->options.hooks;
    const bool has_sink = peg__ctx_has_sink(run->ctx);
    peg_event event = {.kind = PEG_EVENT_TOOL_START};
    const char *checksum = "";
    peg_status status;

    if (has_sink && (status = peg__record_checksum(run->record, &checksum, reterr)))
        return status;
    run->has_started = true;
    if (run->tap)
        run->tap->start(run->tap->user);
    run->started_ns = peg_clock_mono_ns(clock);
    if (hooks && hooks->on_start)
        hooks->on_start(run->call, hooks->user);
    if (!has_sink)
        return PEG_OK;
    run->started_ms = peg_clock_now_ms(clock);
    event.u.tool = (peg_tool_event){.tool = run->record->tool,
                                    .call_id = run->record->call_id,
                                    .checksum = peg__str(checksum),
                                    .args = peg__run_shown_args(run),
                                    .attempt = 1,
                                    .started_ms = run->started_ms};
    peg_ctx_emit(run->ctx, &event);
    return PEG_OK;
}

void peg__run_report_end(struct peg__run *run, bool has_failed)
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
                                    .checksum = peg__str(peg_record_checksum(run->record)),
                                    .attempt = run->record->n_attempts,
                                    .started_ms = run->started_ms,
                                    .ended_ms = peg_clock_now_ms(clock),
                                    .duration_ns = run->record->duration_ns,
                                    .is_error = has_failed || run->record->is_error};
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

/* A handler that calls itself must not reach the end of the stack. */
static peg_status refuse_too_deep(struct peg__run *run, peg_error *reterr)
{
    if (peg__ctx_call_depth(run->ctx) < PEG_LIMIT_CALL_DEPTH)
        return PEG_OK;
    peg__run_report_limit(run, "E_LIMIT_CALL_DEPTH", "the limit of %d nested calls",
                          PEG_LIMIT_CALL_DEPTH);
    return peg__run_refuse(run, "E_LIMIT_CALL_DEPTH", "", reterr,
                           "the tool '%.*s' was not started: handlers have called handlers "
                           "%d levels deep",
                           PEG_ARG(run->record->tool), PEG_LIMIT_CALL_DEPTH);
}

peg_status peg__run_start_handler(struct peg__run *run, peg_error *reterr)
{
    peg_status status = refuse_late(run, reterr);

    if (!status && !peg__run_is_refused(run))
        status = refuse_too_deep(run, reterr);
    if (status || peg__run_is_refused(run))
        return status;
    status = tell_start(run, reterr);
    return status ? status : start_attempt(run, reterr);
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

/* What the options say, where no hook decides. */
static bool has_retries(const struct peg__run *run, const peg_error *failure, int64_t *ret_delay_ms)
{
    const peg_run_settings *settings = &run->options.settings;
    double delay_ms = (double)settings->retry_delay_ms;

    if ((int64_t)run->call->attempt > settings->max_retries || failure->status == PEG_ETIMEOUT ||
        failure->status == PEG_ECANCELED)
        return false;
    for (unsigned i = 1; i < run->call->attempt && settings->retry_factor > 0; i++)
        delay_ms *= settings->retry_factor;
    *ret_delay_ms = delay_ms < PEG_LIMIT_RETRY_MS ? (int64_t)delay_ms : PEG_LIMIT_RETRY_MS;
    return true;
}

static bool wants_retry(struct peg__run *run, const peg_error *failure)
{
    const peg_run_hooks *hooks = run->options.hooks;
    int64_t delay_ms = 0;
    bool wants;

    if (run->call->attempt >= run->options.max_attempts || peg_ctx_check(run->ctx, NULL))
        return false;
    if (hooks && hooks->should_retry)
        wants = hooks->should_retry(run->call, failure, run->call->attempt, &delay_ms, hooks->user);
    else
        wants = has_retries(run, failure, &delay_ms);
    if (!wants)
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
        struct failure failure;
        peg_status status;

        if (end == PEG__JOB_ENDED && run->call->is_out_of_memory)
            return peg__fail_nomem(reterr);
        if (judge(run, end, &failure))
            return PEG_OK;
        if (end == PEG__JOB_NOT_BEGUN)
            count_attempts(run, run->call->attempt - 1);
        if (end == PEG__JOB_ABANDONED) /* perhaps it listens, if not to the clock */
            peg_cancel_fire(peg_ctx_cancel(run->call->ctx), "the call was given up");
        if (!wants_retry(run, &failure.error))
            return settle_failure(run, &failure, reterr);
        status = start_again(run, reterr);
        if (status || peg__run_is_refused(run))
            return status;
    }
}
