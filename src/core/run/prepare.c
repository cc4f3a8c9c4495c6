/* SPDX-License-Identifier: Apache-2.0 */

/* A call before its handler: which tool, with which arguments, and whether the host allows it. */

#include "core/run/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "core/registry/registry.h"
#include "core/tool/tool.h"
#include "pegboard/registry.h"
#include "json/json.h"

/* ---- how a call fails -------------------------------------------------------------------- */

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

/* ---- the tool ---------------------------------------------------------------------------- */

/* Which tool a call means, and the failure that the model reads if there is no such tool. */

/* More would not help a model to choose. */
enum { MAX_NAMES_TOLD = 64 };

static int by_name(const void *a, const void *b)
{
    return strcmp(peg_tool_name(*(peg_tool *const *)a), peg_tool_name(*(peg_tool *const *)b));
}

/* Only advertised names: hidden ones stay hidden. */
static void tell_names(peg_tool_list *tools, struct peg__buf *out)
{
    const size_t n_told = tools->len < MAX_NAMES_TOLD ? tools->len : MAX_NAMES_TOLD;

    if (!tools->len) {
        peg__buf_puts(out, "no tools are available");
        return;
    }
    qsort(tools->items, tools->len, sizeof(*tools->items), by_name);
    peg__buf_puts(out, "available tools: ");
    for (size_t i = 0; i < n_told; i++)
        peg__buf_printf(out, "%s%s", i ? ", " : "", peg_tool_name(tools->items[i]));
    if (n_told < tools->len)
        peg__buf_printf(out, " and %zu more", tools->len - n_told);
}

static peg_status refuse_unknown(struct peg__run *run, peg_registry *registry, peg_error *reterr)
{
    struct peg__buf sentence = PEG__BUF(2L * PEG_LIMIT_FAILURE_BYTES);
    peg_tool_list tools;
    peg_status status = peg_registry_visible(registry, &tools, reterr);

    if (status)
        return status;
    if (peg__str_is(run->record->tool, PEG__UNNAMED_TOOL))
        peg__buf_puts(&sentence, "the call names no tool; ");
    else
        peg__buf_printf(&sentence, "there is no tool named '%.*s'; ", PEG_ARG(run->record->tool));
    tell_names(&tools, &sentence);
    peg_tool_list_free(&tools);
    return peg__run_refuse_text(run, "E_TOOL_NOT_FOUND", "", &sentence, reterr);
}

/* A turn that is run from a file without its tools says why nothing works. */
static peg_status refuse_without_registry(struct peg__run *run, peg_error *reterr)
{
    peg__log(PEG_LOG_WARN, "E_TOOL_NO_REGISTRY",
             "a call of '%.*s' was refused: there is no tool registry in the context",
             PEG_ARG(run->record->tool));
    return peg__run_refuse(run, "E_TOOL_NO_REGISTRY", "", reterr,
                           "no tool registry in context: the tool '%.*s' cannot be run here; "
                           "answer without it",
                           PEG_ARG(run->record->tool));
}

static peg_status find_tool(struct peg__run *run, peg_error *reterr)
{
    peg_registry *registry = peg_ctx_registry(run->ctx);

    run->tool = registry ? peg_registry_get(registry, run->record->tool) : NULL;
    if (!run->tool && peg__registry_is_absent(registry))
        return refuse_without_registry(run, reterr);
    if (!run->tool)
        return refuse_unknown(run, registry, reterr);

    run->record->is_inline = peg_tool_is_inline(run->tool);
    if (peg_tool_is_artifact_tool(run->tool)) {
        run->record->is_from_artifact_tool = true;
        run->record->is_inline = true;
    }
    return PEG_OK;
}

/* ---- the arguments ----------------------------------------------------------------------- */

/*
 * The arguments of a call: text as a model wrote it, parsed and checked against the
 * tool's schema (core/tool/args.c rejects what does not fit).
 */

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

static peg_status read_args(struct peg__run *run, peg_error *reterr)
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

static peg_status check_args(struct peg__run *run, peg_error *reterr)
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

/* ---- the hooks --------------------------------------------------------------------------- */

/* What the host has to say before the handler: may it run, what may be shown, with what. */

const peg_json *peg__run_shown_args(const struct peg__run *run)
{
    const peg_run_hooks *hooks = run->options.hooks;

    if (run->masked)
        return peg_json_root(run->masked);
    if (hooks && hooks->mask_arguments)
        return NULL; /* the call was refused before the mask was asked */
    if (run->task && run->task->filled)
        return peg_json_root(run->task->filled);
    return peg_record_args(run->record);
}

static peg_status refuse_not_allowed(struct peg__run *run, peg_error *reterr)
{
    struct peg__answer *answer = &run->call->answer;

    if (run->call->is_out_of_memory)
        return peg__fail_nomem(reterr);
    if (answer->kind == PEG__ANSWER_FAILURE)
        return peg__run_refuse_text(run, "E_TOOL_NOT_ALLOWED", answer->cause ? answer->cause : "",
                                    &answer->text, reterr);
    return peg__run_refuse(run, "E_TOOL_NOT_ALLOWED", "", reterr, "the tool '%.*s' is not allowed",
                           PEG_ARG(run->record->tool));
}

static peg_status refuse_because(struct peg__run *run, const peg_error *why, peg_error *reterr)
{
    return peg__run_refuse(run, "E_TOOL_NOT_ALLOWED", why->code ? why->code : "", reterr,
                           "the tool '%.*s' was refused: %s", PEG_ARG(run->record->tool),
                           why->message);
}

static void no_words(peg_error *error)
{
    *error = (peg_error){.code = "", .cause = "", .message = "the host gave no reason"};
}

static peg_status mask(struct peg__run *run, const peg_run_hooks *hooks, peg_error *reterr)
{
    peg_error why;
    peg_status status;

    no_words(&why);
    status = hooks->mask_arguments(run->call, peg__call_args(run->call), &run->masked, hooks->user,
                                   &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return status ? refuse_because(run, &why, reterr) : PEG_OK;
}

static peg_status pre_execute(struct peg__run *run, const peg_run_hooks *hooks, peg_error *reterr)
{
    peg_error why;
    peg_status status;

    no_words(&why);
    status = hooks->pre_execute(run->call, peg__call_args(run->call), &run->task->replaced,
                                hooks->user, &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (!status && peg__call_args(run->call)->kind != PEG_JSON_OBJECT)
        status = peg__fail(&why, PEG_EHOST, "E_CALLBACK",
                           "the host's pre_execute put something in the place of its arguments "
                           "that is no object");
    return status ? refuse_because(run, &why, reterr) : PEG_OK;
}

static peg_status ask_hooks(struct peg__run *run, peg_error *reterr)
{
    const peg_run_hooks *hooks = run->options.hooks;
    peg_status status = PEG_OK;

    run->call = peg__call_new(run->task, run->ctx, 1);
    if (!run->call)
        return peg__fail_nomem(reterr);
    if (!hooks)
        return PEG_OK;
    if (hooks->is_allowed && !hooks->is_allowed(run->call, peg__call_args(run->call), hooks->user))
        return refuse_not_allowed(run, reterr);
    if (hooks->mask_arguments)
        status = mask(run, hooks, reterr);
    if (!status && !peg__run_is_refused(run) && hooks->pre_execute)
        status = pre_execute(run, hooks, reterr);
    peg__call_forget_answer(run->call); /* the handler's is the first that counts */
    return status;
}

/* ---- all of it -------------------------------------------------------------------------- */

peg_status peg__run_prepare(struct peg__run *run, peg_error *reterr)
{
    /* First the arguments: the record of an unknown tool has them too. */
    peg_status status = read_args(run, reterr);

    if (!status && !peg__run_is_refused(run))
        status = find_tool(run, reterr);
    if (!status && !peg__run_is_refused(run))
        status = check_args(run, reterr);
    if (!status && !peg__run_is_refused(run))
        status = ask_hooks(run, reterr);
    return status;
}
