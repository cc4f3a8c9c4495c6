/* SPDX-License-Identifier: Apache-2.0 */

/* What an executor tells while it works, and what it asks of the host's storage. */

#include "base/error.h"
#include "base/text/str.h"
#include "turn/loop/dispatch.h"
#include "turn/store/storage.h"

peg_status peg_dispatch_report_message(peg_dispatch *dispatch, peg_str id, peg_str delta,
                                       bool is_complete, peg_error *reterr)
{
    const struct peg__stream_part part = {id, delta, is_complete};

    return peg__streams_notify(&dispatch->streams, dispatch->ctx, PEG_EVENT_MESSAGE, &part, reterr);
}

peg_status peg_dispatch_report_thought(peg_dispatch *dispatch, peg_str id, peg_str delta,
                                       bool is_complete, peg_error *reterr)
{
    const struct peg__stream_part part = {id, delta, is_complete};

    return peg__streams_notify(&dispatch->streams, dispatch->ctx, PEG_EVENT_THOUGHT, &part, reterr);
}

peg_status peg_dispatch_report_tool_call(peg_dispatch *dispatch, peg_str call_id, peg_str tool,
                                         peg_str args, const peg_record *record, peg_error *reterr)
{
    const struct peg__call_part part = {
        .call_id = call_id, .tool = tool, .args = args, .record = record};

    return peg__streams_notify_call(&dispatch->streams, dispatch->ctx, &part, reterr);
}

/* Where a host masks arguments, they are not shown while they come in either. */
peg_status peg_dispatch_report_args(peg_dispatch *dispatch, peg_str call_id, peg_str tool,
                                    peg_str delta, peg_error *reterr)
{
    const peg_run_hooks *hooks = dispatch->loop->call.hooks;

    if (hooks && hooks->mask_arguments)
        return PEG_OK;
    return peg__streams_notify_args(&dispatch->streams, dispatch->ctx, call_id, tool, delta,
                                    reterr);
}

void peg_dispatch_log(peg_dispatch *dispatch, const char *level, const char *kind,
                      const char *message, const peg_json *payload)
{
    peg_event event = {.kind = PEG_EVENT_LOG};

    event.u.log = (peg_log_event){
        .level = level, .kind = peg_cstr(kind), .message = peg_cstr(message), .payload = payload};
    peg_ctx_emit(dispatch->ctx, &event);
}

void peg_dispatch_report_stats(peg_dispatch *dispatch, const peg_json *stats)
{
    peg_event event = {.kind = PEG_EVENT_STATS};

    event.u.stats = stats;
    peg_ctx_emit(dispatch->ctx, &event);
}

peg_status peg_dispatch_fetch(peg_dispatch *dispatch, unsigned kinds, peg_turn **ret_turn,
                              peg_error *reterr)
{
    return peg__storage_fetch(dispatch->turn, kinds, ret_turn, reterr);
}

peg_status peg_dispatch_store_bytes(peg_dispatch *dispatch, const char *what, peg_str id,
                                    peg_str bytes, peg_reader **ret_reader, peg_error *reterr)
{
    return peg__storage_store_bytes(dispatch->turn, what, id, bytes, ret_reader, reterr);
}
