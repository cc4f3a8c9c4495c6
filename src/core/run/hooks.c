/* SPDX-License-Identifier: Apache-2.0 */

/* What the host has to say before the handler: may it run, what may be shown, with what. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"

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
    return peg__run_refuse(run, "E_TOOL_REFUSED", why->code ? why->code : "", reterr,
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
        status = peg__fail(&why, PEG_EHOST, "E_HOOK",
                           "the host's pre_execute put something in the place of its arguments "
                           "that is no object");
    return status ? refuse_because(run, &why, reterr) : PEG_OK;
}

peg_status peg__run_ask_hooks(struct peg__run *run, peg_error *reterr)
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
