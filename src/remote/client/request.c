/* SPDX-License-Identifier: Apache-2.0 */

/* A call as it is sent: what is asked, by whom, and how long it may take. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "pegboard/trace.h"
#include "remote/client/remote.h"
#include "wire/wire.h"

enum { MARGIN_MS = 100 };

static bool is_given(const char *text)
{
    return text && *text;
}

static void fill_meta(struct remote__sending *s, const peg_remote_request *request)
{
    pegboard__v1__call_meta__init(&s->meta);
    s->meta.run_id = remote__text(request->run_id);
    s->meta.session_id = remote__text(request->session_id);
    s->meta.turn_id = remote__text(request->turn_id);
    s->meta.tool_call_id = remote__text(request->tool_call_id);
    s->meta.parent_tool_call_id = remote__text(request->parent_tool_call_id);
    if (is_given(request->run_id) || is_given(request->session_id) || is_given(request->turn_id) ||
        is_given(request->tool_call_id) || is_given(request->parent_tool_call_id))
        s->message.meta = &s->meta;
    s->message.idempotency_key = remote__text(request->idempotency_key);
    s->has_identity = is_given(request->idempotency_key) ||
                      (is_given(request->run_id) && is_given(request->tool_call_id));
}

static void fill_trace(struct remote__sending *s, const peg_ctx *ctx)
{
    const peg_trace *trace = peg_ctx_trace(ctx);

    if (!trace)
        return;
    s->message.traceparent = peg__unconst(trace->traceparent);
    s->message.tracestate = peg__unconst(trace->tracestate);
    s->message.baggage = peg__unconst(trace->baggage);
}

static peg_status fill_metadata(struct remote__sending *s, const peg_remote_request *request,
                                peg_error *reterr)
{
    const size_t n = request->n_metadata;

    if (n > PEG_LIMIT_REMOTE_METADATA)
        return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT",
                         "n_metadata is more than %d: send fewer entries",
                         PEG_LIMIT_REMOTE_METADATA);
    s->entries = peg__arena_alloc(&s->arena, (n + 1) * sizeof(*s->entries));
    s->entry_pointers = peg__arena_alloc(&s->arena, (n + 1) * sizeof(*s->entry_pointers));
    if (!s->entries || !s->entry_pointers)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        pegboard__v1__metadata_entry__init(&s->entries[i]);
        s->entries[i].key = remote__text(request->metadata[i].key);
        s->entries[i].value = remote__text(request->metadata[i].value);
        s->entry_pointers[i] = &s->entries[i];
    }
    s->message.metadata = s->entry_pointers;
    s->message.n_metadata = n;
    return PEG_OK;
}

/* The gateway gets a deadline that is a little early: it knows whether the call was started, and we
 * do not. It refuses a time beyond its limit, so one that the caller asked for goes out unchanged;
 * a context that lasts longer asks for none. */
static int64_t sent_timeout_ms(const peg_remote_request *request, const peg_ctx *ctx)
{
    const int64_t left_ms = remote__ctx_left_ms(ctx);
    const int64_t margin_ms = left_ms / 10 < MARGIN_MS ? left_ms / 10 : MARGIN_MS;
    const int64_t asked_ms = request->timeout_ms > 0 ? request->timeout_ms : 0;

    if (left_ms == INT64_MAX || asked_ms > PEG_LIMIT_GATEWAY_MAX_CALL_MS)
        return asked_ms;
    if (asked_ms && asked_ms < left_ms - margin_ms)
        return asked_ms;
    if (left_ms - margin_ms > PEG_LIMIT_GATEWAY_MAX_CALL_MS)
        return PEG_LIMIT_GATEWAY_MAX_CALL_MS;
    return left_ms - margin_ms;
}

static peg_status check_call_request(const peg_remote_request *request, peg_error *reterr)
{
    peg_status status;

    if (!request || !request->toolset || !request->tool)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                         "toolset and tool are required: name what to call");
    if (request->n_metadata && !request->metadata)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "n_metadata is set, metadata is not");
    status = wire_check_name(peg__str(request->toolset), "toolset", reterr);
    return status ? status : wire_check_name(peg__str(request->tool), "tool", reterr);
}

/* What is too large for the gateway would come back as an end that says nothing of the call. */
static peg_status check_request_size(const struct remote__sending *s, peg_error *reterr)
{
    const size_t size = grpc_message_packed_size(&s->message.base);

    if (size <= PEG_LIMIT_REMOTE_REQUEST_BYTES)
        return PEG_OK;
    return peg__fail(
        reterr, PEG_ELIMIT, "E_CLIENT",
        "the call takes %zu bytes, more than the %d of a request: send less, or a reference to it",
        size, PEG_LIMIT_REMOTE_REQUEST_BYTES);
}

peg_status remote__sending_fill(struct remote__sending *s, const peg_remote_request *request,
                                peg_ctx *ctx, bool outlives_ctx, peg_error *reterr)
{
    peg_status status = check_call_request(request, reterr);

    if (status)
        return status;
    pegboard__v1__call_tool_request__init(&s->message);
    s->message.toolset = remote__text(request->toolset);
    s->message.tool = remote__text(request->tool);
    s->message.payload.data = peg__unconst(request->args.ptr);
    s->message.payload.len = request->args.len;
    s->message.accepts_content = request->accepts_content;
    s->message.timeout_ms = sent_timeout_ms(request, outlives_ctx ? NULL : ctx);
    s->message.can_be_asked = request->on_question && !outlives_ctx;
    fill_meta(s, request);
    fill_trace(s, ctx);
    status = fill_metadata(s, request, reterr);
    return status ? status : check_request_size(s, reterr);
}
