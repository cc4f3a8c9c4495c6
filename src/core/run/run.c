/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Running one call: the stages in order. Read peg_call_run() first; each stage is in the file
 * that core/run/run.h names.
 */

#include "core/run/run.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/context/ctx.h"
#include "core/tool/tool.h"
#include "pegboard/clock.h"

/* ---- failing -------------------------------------------------------------------- */

peg_status peg__run_refuse_text(struct peg__run *run, const char *code, const char *cause,
                                struct peg__buf *sentence, peg_error *reterr)
{
    peg_record *record = run->record;
    const size_t size = strlen(cause) + 1;
    char *text = NULL;
    size_t len = 0;
    peg_status status;

    if (size > 1 && !record->cause) {
        record->cause = peg__alloc(size);
        if (!record->cause) {
            peg__buf_free(sentence);
            return peg__fail_nomem(reterr);
        }
        memcpy(record->cause, cause, size);
    }
    status = peg__buf_take(sentence, &text, &len, reterr);
    if (status)
        return status;
    peg__free(record->text);
    record->text = text;
    record->text_len = len;
    record->result_kind = PEG_RESULT_TEXT;
    record->is_error = true;
    record->code = code;
    return PEG_OK;
}

peg_status peg__run_refuse(struct peg__run *run, const char *code, const char *cause,
                           peg_error *reterr, const char *fmt, ...)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    va_list args;

    va_start(args, fmt);
    peg__buf_vprintf_cut(&sentence, fmt, args);
    va_end(args);
    return peg__run_refuse_text(run, code, cause, &sentence, reterr);
}

void peg__run_report_limit(struct peg__run *run, const char *code, const char *fmt, ...)
{
    peg_event event = {.kind = PEG_EVENT_LIMIT};
    char limit[sizeof(((peg_error *)NULL)->message)];
    peg_error error;
    va_list args;

    if (!peg__ctx_has_sink(run->ctx))
        return;
    va_start(args, fmt);
    vsnprintf(limit, sizeof(limit), fmt, args);
    va_end(args);
    peg__fail(&error, PEG_ELIMIT, code, "tool '%.*s' reached %s", PEG_ARG(run->record->tool),
              limit);
    event.error = &error;
    peg_ctx_emit(run->ctx, &event);
}

/* ---- the call ------------------------------------------------------------------- */

typedef peg_status (*stage_fn)(struct peg__run *run, peg_error *reterr);

static const stage_fn before_handler[] = {
    peg__run_read_args, /* first, because the record of an unknown tool has arguments too */
    peg__run_find_tool,
    peg__run_check_args,
    peg__run_ask_hooks,
};

static const stage_fn after_handler[] = {
    peg__run_await_handler,
    peg__run_check_result,
};

static peg_status run_stages(struct peg__run *run, const stage_fn *stages, size_t n,
                             peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n && !status && !peg__run_is_refused(run); i++)
        status = stages[i](run, reterr);
    return status;
}

static void release(struct peg__run *run)
{
    peg__call_unref(run->call);
    peg__task_unref(run->task);
    peg_tool_unref(run->tool);
    peg_record_unref(run->record);
    peg_json_doc_free(run->masked);
}

static int64_t or_default(int64_t given, int64_t by_default)
{
    if (given < 0)
        return INT64_MAX;
    return given ? given : by_default;
}

static void set_options(struct peg__run *run, const peg_run_options *options)
{
    if (options)
        run->options = *options;
    /* A timeout stays negative where there is none. */
    if (!run->options.settings.timeout_ms)
        run->options.settings.timeout_ms = PEG_LIMIT_TOOL_MS;
    run->options.max_result_bytes =
        or_default(run->options.max_result_bytes, PEG_LIMIT_RESULT_BYTES);
    run->options.max_args_bytes = or_default(run->options.max_args_bytes, PEG_LIMIT_ARGS_BYTES);
    if (!run->options.max_attempts)
        run->options.max_attempts = PEG_LIMIT_ATTEMPTS;
}

static peg_status check_length(const char *field, peg_str s, size_t max, peg_error *reterr)
{
    if (s.len <= max)
        return PEG_OK;
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_REQUEST",
              "%s of a call has %zu bytes, more than %zu: shorten it", field + 1, s.len, max);
    peg__error_where(reterr, peg__str(field));
    return PEG_EINVAL;
}

/* Found out now, because when the result is kept the handler has had its effect. What a model wrote
 * is not looked at here. */
static peg_status check_request(const peg_call_request *request, peg_error *reterr)
{
    peg_status status = check_length("/key", request->key, PEG_LIMIT_SPOOL_KEY_BYTES, reterr);

    if (!status)
        status = check_length("/call_id", request->call_id, PEG_LIMIT_CALL_ID_BYTES, reterr);
    if (!status)
        status = check_length("/handle", request->handle, PEG_LIMIT_HANDLE_BYTES, reterr);
    return status;
}

static void announce(struct peg__run *run)
{
    if (run->tap)
        run->tap->announce(run->record, peg__run_shown_args(run), run->tap->user);
}

peg_status peg__run_begin(struct peg__run *run, peg_ctx *ctx, const peg_call_request *request,
                          const peg_run_options *options, const struct peg__run_tap *tap,
                          peg_error *reterr)
{
    const struct peg__record_start start = {.key = request->key,
                                            .call_id = request->call_id,
                                            .handle = request->handle,
                                            .tool = request->tool,
                                            .args = request->args,
                                            .now_ms = peg_clock_now_ms(peg_ctx_clock(ctx))};
    peg_status status;

    *run = (struct peg__run){.ctx = ctx, .tap = tap};
    set_options(run, options);
    status = check_request(request, reterr);
    if (!status)
        status = peg__record_start(&start, &run->record, reterr);
    if (status)
        return status;

    status =
        run_stages(run, before_handler, sizeof(before_handler) / sizeof(*before_handler), reterr);
    if (!status)
        announce(run);
    if (!status && !peg__run_is_refused(run))
        status = peg__run_start_handler(run, reterr);
    if (status) {
        peg__run_report_end(run, true);
        release(run);
    }
    return status;
}

/* Without hooks nothing takes time but the handler, and the clock need not be asked again. */
static int64_t completed_ms(const struct peg__run *run)
{
    if (run->options.hooks)
        return peg_clock_now_ms(peg_ctx_clock(run->ctx));
    return run->record->created_ms + run->record->duration_ns / PEG_NS_PER_MS;
}

static peg_status finish(struct peg__run *run, peg_error *reterr)
{
    peg_record *record = run->record;
    peg_status status =
        run_stages(run, after_handler, sizeof(after_handler) / sizeof(*after_handler), reterr);

    peg__run_report_end(run, status != PEG_OK);
    if (!status && !peg__run_is_refused(run))
        status = peg__run_wrap(run, reterr);
    record->completed_ms = completed_ms(run);
    if (!status && run->options.hooks && run->options.hooks->on_end)
        run->options.hooks->on_end(record, run->options.hooks->user);
    return status;
}

peg_status peg__run_end(struct peg__run *run, peg_record **ret_record, peg_error *reterr)
{
    const peg_status status = finish(run, reterr);

    if (!status) {
        *ret_record = run->record;
        run->record = NULL;
    }
    release(run);
    return status;
}

peg_status peg_call_run(peg_ctx *ctx, const peg_call_request *request,
                        const peg_run_options *options, peg_record **ret_record, peg_error *reterr)
{
    PEG__READ_OR_RETURN(request, PEG_CALL_REQUEST_INIT, reterr);
    PEG__READ_OR_RETURN(options, PEG_RUN_OPTIONS_INIT, reterr);
    struct peg__run run;
    const peg_status status = peg__run_begin(&run, ctx, request, options, NULL, reterr);

    return status ? status : peg__run_end(&run, ret_record, reterr);
}

peg_status peg_registry_call(peg_registry *registry, const char *tool, const char *args,
                             peg_record **ret_record, peg_error *reterr)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr(tool),
                                      .args = peg_cstr(args)};
    peg_ctx *ctx;
    peg_status status = peg_ctx_with_registry(NULL, registry, &ctx, reterr);

    if (status)
        return status;
    status = peg_call_run(ctx, &request, NULL, ret_record, reterr);
    peg_ctx_unref(ctx);
    return status;
}
