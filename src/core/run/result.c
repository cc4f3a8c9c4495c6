/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a handler answered: checked against the output schema, then wrapped. Text, bytes and JSON
 * go to the spool and become an artifact; media stay media; an artifact passes through; the text of
 * an artifact tool stays text.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "core/result/spool.h"
#include "core/run/run.h"
#include "core/tool/tool.h"
#include "pegboard/artifact.h"
#include "json/json.h"

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
    return peg__run_refuse(run, "E_TOOL_SERVER_DATA", "", reterr,
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

peg_status peg__run_check_result(struct peg__run *run, peg_error *reterr)
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

peg_status peg__run_wrap(struct peg__run *run, peg_error *reterr)
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
