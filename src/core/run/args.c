/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The arguments of a call: text as a model wrote it, parsed and checked against the
 * tool's schema (core/tool/args.c rejects what does not fit).
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "core/tool/tool.h"
#include "json/json.h"

/* How much of unusable arguments a model is shown again. */
enum { MAX_ECHO = 500 };

static peg_str echo(peg_str text)
{
    if (text.len > MAX_ECHO)
        text.len = peg__utf8_cut(text.ptr, MAX_ECHO);
    return text;
}

static peg_status refuse_too_large(struct peg__run *run, peg_error *reterr)
{
    const int64_t max = run->options.max_args_bytes;

    peg__run_report_limit(run, "E_LIMIT_ARGS_BYTES", "max_args_bytes (%lld)", (long long)max);
    return peg__run_refuse(run, "E_LIMIT_ARGS_BYTES", "", reterr,
                           "the arguments of '%.*s' have %zu bytes, more than max_args_bytes "
                           "(%lld); send less",
                           PEG_ARG(run->record->tool), run->record->args_text.len, (long long)max);
}

static peg_status refuse_text(struct peg__run *run, const peg_error *why, peg_error *reterr)
{
    return peg__run_refuse(run, "E_INVALID_TOOL_ARGS", why->code, reterr,
                           "the arguments of '%.*s' are not valid JSON (line %u, column %u: %s); "
                           "received: %.*s",
                           PEG_ARG(run->record->tool), why->line, why->column, why->message,
                           PEG_ARG(echo(run->record->args_text)));
}

static peg_status refuse_kind(struct peg__run *run, const peg_json *value, peg_error *reterr)
{
    return peg__run_refuse(run, "E_INVALID_TOOL_ARGS", "", reterr,
                           "the arguments of '%.*s' must be a JSON object, not %s; received: %.*s",
                           PEG_ARG(run->record->tool), peg_json_kind_name(peg_json_kind_of(value)),
                           PEG_ARG(echo(run->record->args_text)));
}

peg_status peg__run_read_args(struct peg__run *run, peg_error *reterr)
{
    const peg_str text = run->record->args_text;
    peg_json_doc *doc = NULL;
    peg_error why;
    peg_status status;

    if (!text.len)
        return PEG_OK; /* means {} */
    if ((uint64_t)text.len > (uint64_t)run->options.max_args_bytes)
        return refuse_too_large(run, reterr);
    status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return refuse_text(run, &why, reterr);
    if (peg_json_root(doc)->kind != PEG_JSON_OBJECT) {
        status = refuse_kind(run, peg_json_root(doc), reterr);
        peg_json_doc_free(doc);
        return status;
    }
    run->record->args = doc;
    return PEG_OK;
}

peg_status peg__run_check_args(struct peg__run *run, peg_error *reterr)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    struct peg__scratch scratch;
    peg_json_doc *filled = NULL;
    peg_error why;
    peg_status status;

    peg__scratch_open(run->tool, &scratch);
    status = peg__tool_check_args(run->tool, &scratch, peg_record_args(run->record), &filled,
                                  &sentence, &why);
    peg__scratch_close(run->tool, &scratch);
    if (status == PEG_ENOMEM) {
        peg__buf_free(&sentence);
        return peg__fail_nomem(reterr);
    }
    if (status) {
        if (!sentence.len)
            peg__buf_puts(&sentence, why.message);
        return peg__run_refuse_text(run, why.code, why.cause, &sentence, reterr);
    }

    run->task = peg__task_new(run->tool, run->record);
    if (!run->task) {
        peg_json_doc_free(filled);
        return peg__fail_nomem(reterr);
    }
    run->task->filled = filled;
    run->task->max_result_bytes = (size_t)run->options.max_result_bytes;
    return PEG_OK;
}
