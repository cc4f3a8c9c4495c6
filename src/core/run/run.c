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
#include "core/artifact/artifact.h"
#include "core/context/context.h"
#include "core/result/result.h"
#include "core/tool/tool.h"
#include "pegboard/artifact.h"
#include "pegboard/clock.h"
#include "json/json.h"

/* ---- what the handler answered ----------------------------------------------------------- */

/*
 * What a handler answered: checked against the output schema, then wrapped. Text, bytes and JSON
 * go to the spool and become an artifact; media stay media; an artifact passes through; the text of
 * an artifact tool stays text.
 */

/* ---- checking ------------------------------------------------------------------- */

static peg_status refuse_output(struct peg__run *run, const char *cause, peg_error *reterr,
                                const char *why)
{
    return peg__run_refuse(run, "E_TOOL_OUTPUT_INVALID", cause, reterr,
                           "the result of '%.*s' does not fit its output schema: %s",
                           PEG_ARG(run->record->tool), why);
}

static peg_status check_value(struct peg__run *run, const peg_json *value, peg_error *reterr)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    struct peg__scratch scratch;
    peg_error why;
    peg_status status;

    peg__scratch_open(run->tool, &scratch);
    status = peg__tool_check_output(run->tool, &scratch, value, &sentence, &why);
    peg__scratch_close(run->tool, &scratch);
    if (!status)
        return PEG_OK;
    if (status == PEG_ENOMEM) {
        peg__buf_free(&sentence);
        return peg__fail_nomem(reterr);
    }
    if (!sentence.len)
        peg__buf_puts(&sentence, why.message);
    return peg__run_refuse_text(run, why.code, why.cause, &sentence, reterr);
}

static peg_status check_text(struct peg__run *run, peg_str text, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_error why;
    peg_status status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, &why);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return refuse_output(run, why.code, reterr,
                             peg__json_is_duplicate(&why) ? why.message : "it is not JSON");
    status = check_value(run, peg_json_root(doc), reterr);
    peg_json_doc_free(doc);
    return status;
}

static peg_status check_artifact(struct peg__run *run, peg_error *reterr)
{
    peg_str bytes;
    peg_error why;
    const peg_status status = peg_artifact_bytes(run->call->answer.artifact, &bytes, &why);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return refuse_output(run, why.code, reterr, why.message);
    return check_text(run, bytes, reterr);
}

static peg_status check_output(struct peg__run *run, peg_error *reterr)
{
    const struct peg__answer *answer = &run->call->answer;

    if (!run->tool->output)
        return PEG_OK;
    if (answer->kind == PEG__ANSWER_MEDIA)
        return refuse_output(run, "", reterr, "it is media, not JSON");
    if (answer->kind == PEG__ANSWER_ARTIFACT)
        return check_artifact(run, reterr);
    return check_text(run, peg__buf_view(&answer->text), reterr);
}

/* Malformed server-data voids the result: a host must not see half of what a tool meant. */
static peg_status refuse_server_data(struct peg__run *run, const char *why, peg_error *reterr)
{
    return peg__run_refuse(run, "E_TOOL_OUTPUT_INVALID", "", reterr,
                           "the result of '%.*s' is void: its server-data is malformed: %s",
                           PEG_ARG(run->record->tool), why);
}

static peg_status take_server_data(struct peg__run *run, peg_error *reterr)
{
    /* Data as deep as JSON may be is in an array of objects. */
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_depth = PEG_LIMIT_JSON_DEPTH + 2};
    peg_call *call = run->call;
    peg_error why;
    peg_status status;

    if (call->server_data_wrong)
        return refuse_server_data(run, call->server_data_wrong, reterr);
    if (!call->server_data.len)
        return PEG_OK;
    call->server_data.max++; /* the limit is about what the handler gave */
    peg__buf_putc(&call->server_data, ']');
    if (call->server_data.status)
        return peg__fail_nomem(reterr);
    status = peg_json_parse(peg__buf_view(&call->server_data), &options, &run->record->server_data,
                            &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return status ? refuse_server_data(run, why.message, reterr) : PEG_OK;
}

static peg_status check_result(struct peg__run *run, peg_error *reterr)
{
    const enum peg__answer_kind kind = run->call->answer.kind;
    peg_status status;

    if (run->record->is_from_artifact_tool && kind != PEG__ANSWER_TEXT && kind != PEG__ANSWER_JSON)
        return peg__run_refuse(run, "E_TOOL_OUTPUT_INVALID", "", reterr,
                               "the artifact tool '%.*s' must answer with text",
                               PEG_ARG(run->record->tool));
    status = check_output(run, reterr);
    if (status || peg__run_is_refused(run))
        return status;
    return take_server_data(run, reterr);
}

/* ---- wrapping ------------------------------------------------------------------- */

static const peg_artifact_kind *kind_of(const struct peg__run *run)
{
    const peg_artifact_kind *kind = peg_tool_artifact_kind(run->tool);

    if (kind)
        return kind;
    return run->call->answer.kind == PEG__ANSWER_JSON ? &peg_artifact_json : &peg_artifact_text;
}

/* A store that is full costs this result, not the conversation. */
static peg_status refuse_unkept(struct peg__run *run, const peg_error *why, peg_error *reterr)
{
    peg__run_report_limit(run, why->code, "a limit of its spool: %s", why->message);
    return peg__run_refuse(run, why->code, "", reterr,
                           "the result of '%.*s' could not be kept: %s; it had its effect, ask for "
                           "less or go on without the result",
                           PEG_ARG(run->record->tool), why->message);
}

static peg_status wrap_text(struct peg__run *run, peg_error *reterr)
{
    peg_record *record = run->record;
    peg_reader *reader = NULL;
    peg_error why;
    peg_status status;

    if (record->is_from_artifact_tool)
        return peg__buf_take(&run->call->answer.text, &record->text, &record->text_len, reterr);

    status = peg__spool_write_owned(run->options.spool, record->key, &run->call->answer.text,
                                    &reader, &why);
    if (status == PEG_ELIMIT)
        return refuse_unkept(run, &why, reterr);
    if (status) {
        if (reterr)
            *reterr = why;
        return status;
    }
    status = peg__artifact_new(kind_of(run), reader, &record->artifact, reterr);
    peg_reader_unref(reader);
    if (!status)
        record->result_kind = PEG_RESULT_ARTIFACT;
    return status;
}

static peg_status wrap_result(struct peg__run *run, peg_error *reterr)
{
    struct peg__answer *answer = &run->call->answer;
    peg_record *record = run->record;

    switch (answer->kind) {
    case PEG__ANSWER_MEDIA:
        record->result_kind = PEG_RESULT_MEDIA;
        record->media = answer->media;
        record->n_media = answer->n_media;
        answer->media = NULL;
        answer->n_media = 0;
        return PEG_OK;
    case PEG__ANSWER_ARTIFACT:
        record->result_kind = PEG_RESULT_ARTIFACT;
        record->artifact = answer->artifact;
        answer->artifact = NULL;
        return PEG_OK;
    default:
        return wrap_text(run, reterr);
    }
}

/* ---- the call ------------------------------------------------------------------- */

static void release_run(struct peg__run *run)
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
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
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

/* A program that was built with a later version may set what this one does not have. */
static peg_status check_settings(const peg_run_settings *settings, peg_error *reterr)
{
    for (size_t i = 0; i < sizeof(settings->reserved) / sizeof(*settings->reserved); i++) {
        if (settings->reserved[i])
            return peg__fail(reterr, PEG_EINVAL, "E_STRUCT_SIZE",
                             "the settings of a call set a member that this libpegboard does not "
                             "have: install the version that the program was built with");
    }
    return PEG_OK;
}

static void announce_call(struct peg__run *run)
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
        status = check_settings(&run->options.settings, reterr);
    if (!status)
        status = peg__record_start(&start, &run->record, reterr);
    if (status)
        return status;

    status = peg__run_prepare(run, reterr);
    if (!status)
        announce_call(run);
    if (!status && !peg__run_is_refused(run))
        status = peg__run_start_handler(run, reterr);
    if (status) {
        peg__run_report_end(run, true);
        release_run(run);
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

static peg_status finish_run(struct peg__run *run, peg_error *reterr)
{
    peg_record *record = run->record;
    peg_status status = PEG_OK;

    if (!peg__run_is_refused(run))
        status = peg__run_await_handler(run, reterr);
    if (!status && !peg__run_is_refused(run))
        status = check_result(run, reterr);
    peg__run_report_end(run, status != PEG_OK);
    if (!status && !peg__run_is_refused(run))
        status = wrap_result(run, reterr);
    record->completed_ms = completed_ms(run);
    if (!status && run->options.hooks && run->options.hooks->on_end)
        run->options.hooks->on_end(record, run->options.hooks->user);
    return status;
}

peg_status peg__run_end(struct peg__run *run, peg_record **ret_record, peg_error *reterr)
{
    const peg_status status = finish_run(run, reterr);

    if (!status) {
        *ret_record = run->record;
        run->record = NULL;
    }
    release_run(run);
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
