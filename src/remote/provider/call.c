/* SPDX-License-Identifier: Apache-2.0 */

/* A call of the gateway, and as its handler sees it. */

#include <inttypes.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/gate.h"
#include "pegboard/trace.h"
#include "remote/provider/provider.h"

/* ---- the link ---- */

struct remote__prov_link *remote__prov_link_new(struct net_loop *loop)
{
    struct remote__prov_link *link = peg__alloc_zero(1, sizeof(*link));

    if (!link)
        return NULL;
    atomic_init(&link->n_refs, 1);
    atomic_init(&link->n_delta_bytes, 0);
    pthread_mutex_init(&link->lock, NULL);
    link->loop = loop;
    return link;
}

struct remote__prov_link *remote__prov_link_unref(struct remote__prov_link *link)
{
    if (link && peg__refs_drop(&link->n_refs)) {
        pthread_mutex_destroy(&link->lock);
        peg__free(link);
    }
    return NULL;
}

void remote__prov_link_cut(struct remote__prov_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->loop = NULL;
    pthread_mutex_unlock(&link->lock);
}

/* ---- the call ---- */

struct remote__prov_call *remote__prov_call_ref(struct remote__prov_call *call)
{
    peg__refs_take(&call->n_refs);
    return call;
}

void remote__prov_call_drop_gates(struct remote__prov_call *call)
{
    call->asked = peg_gate_unref(call->asked);
    peg__free(call->question);
    call->question = NULL;
    pthread_mutex_lock(&call->gate_lock);
    call->gate = peg_gate_unref(call->gate);
    pthread_mutex_unlock(&call->gate_lock);
}

struct remote__prov_call *remote__prov_call_unref(struct remote__prov_call *call)
{
    if (!call || !peg__refs_drop(&call->n_refs))
        return NULL;
    peg_cancel_unref(call->cancel);
    remote__prov_link_unref(call->link);
    peg__free(call->outcome.json);
    remote__prov_call_drop_gates(call);
    pthread_mutex_destroy(&call->gate_lock);
    peg__arena_free(&call->arena);
    peg__free(call);
    return NULL;
}

void remote__prov_call_drop_ctx(struct remote__prov_call *call)
{
    peg_ctx *ctx = call->ctx;

    call->ctx = NULL;
    peg_ctx_unref(ctx);
}

static void unref_value(void *value)
{
    remote__prov_call_unref(value);
}

/* Its address is the key of the call in its context. */
static const char value_key;

static bool is_too_long(const Pegboard__V1__Call *frame)
{
    return !frame->call_id[0] ||
           strnlen(frame->call_id, PEG_LIMIT_ID_BYTES + 1) > PEG_LIMIT_ID_BYTES ||
           frame->n_metadata > PEG_LIMIT_REMOTE_METADATA;
}

/* Copies a string of the frame. */
static const char *copy_frame_string(struct remote__prov_call *call, const char *text, bool *is_out)
{
    const char *copied = text[0] ? peg__arena_copy(&call->arena, peg__str(text)) : "";

    if (copied)
        return copied;
    *is_out = true;
    return "";
}

static peg_str copy_bytes(struct remote__prov_call *call, ProtobufCBinaryData bytes, bool *is_out)
{
    const peg_str from = peg__strn((const char *)bytes.data, bytes.len);
    const char *copied = bytes.len ? peg__arena_copy(&call->arena, from) : "";

    if (!copied)
        *is_out = true;
    return peg__strn(copied ? copied : "", copied ? bytes.len : 0);
}

static void copy_meta(struct remote__prov_call *call, const Pegboard__V1__CallMeta *meta,
                      bool *is_out)
{
    peg_provider_call *face = &call->face;

    face->run_id = meta ? copy_frame_string(call, meta->run_id, is_out) : "";
    face->session_id = meta ? copy_frame_string(call, meta->session_id, is_out) : "";
    face->turn_id = meta ? copy_frame_string(call, meta->turn_id, is_out) : "";
    face->tool_call_id = meta ? copy_frame_string(call, meta->tool_call_id, is_out) : "";
    face->parent_tool_call_id =
        meta ? copy_frame_string(call, meta->parent_tool_call_id, is_out) : "";
}

static void copy_metadata(struct remote__prov_call *call, const Pegboard__V1__Call *frame,
                          bool *is_out)
{
    peg_provider_entry *entries;

    if (!frame->n_metadata)
        return;
    entries = peg__arena_alloc_zero(&call->arena, frame->n_metadata * sizeof(*entries));
    if (!entries) {
        *is_out = true;
        return;
    }
    for (size_t i = 0; i < frame->n_metadata; i++) {
        entries[i].key = copy_frame_string(call, frame->metadata[i]->key, is_out);
        entries[i].value = copy_frame_string(call, frame->metadata[i]->value, is_out);
    }
    call->face.metadata = entries;
    call->face.n_metadata = frame->n_metadata;
}

static bool copy_frame(struct remote__prov_call *call, const Pegboard__V1__Call *frame)
{
    peg_provider_call *face = &call->face;
    bool is_out = false;
    char *key = peg__arena_alloc(&call->arena, strlen(frame->call_id) + 16);

    if (!key)
        return false;
    call->key = peg__strn(key, (size_t)sprintf(key, "%s %" PRIu32, frame->call_id, frame->attempt));
    face->call_id = copy_frame_string(call, frame->call_id, &is_out);
    call->call_id = peg__str(face->call_id);
    call->tool = peg__str(copy_frame_string(call, frame->tool, &is_out));
    call->payload = copy_bytes(call, frame->payload, &is_out);
    call->route = copy_bytes(call, frame->route, &is_out);
    face->attempt = frame->attempt;
    face->caller = copy_frame_string(call, frame->caller, &is_out);
    face->traceparent = copy_frame_string(call, frame->traceparent, &is_out);
    face->tracestate = copy_frame_string(call, frame->tracestate, &is_out);
    face->baggage = copy_frame_string(call, frame->baggage, &is_out);
    face->deadline_unix_ms = frame->deadline_unix_ms;
    copy_meta(call, frame->meta, &is_out);
    copy_metadata(call, frame, &is_out);
    return !is_out;
}

/* Replaces a context by the one that was made below it. */
static peg_status replace_ctx(peg_ctx **ctx, peg_status status, peg_ctx *const *made)
{
    if (status)
        return status;
    peg_ctx_unref(*ctx);
    *ctx = *made;
    return PEG_OK;
}

static peg_status name_run(const peg_provider_call *face, peg_ctx **ctx)
{
    const peg_ids ids = {.run_id = face->run_id[0] ? face->run_id : NULL,
                         .turn_id = face->turn_id[0] ? face->turn_id : NULL,
                         .iteration = -1};
    peg_ctx *made = NULL;

    /* Ids come from outside: one that a context does not take is still in the metadata. */
    if ((!ids.run_id && !ids.turn_id) || strlen(face->run_id) > PEG_LIMIT_ID_BYTES ||
        strlen(face->turn_id) > PEG_LIMIT_ID_BYTES)
        return PEG_OK;
    return replace_ctx(ctx, peg_ctx_with_ids(*ctx, &ids, &made, NULL), &made);
}

/* So that the handler's own calls belong to the caller's trace. */
static peg_status put_trace(const peg_provider_call *face, peg_ctx **ctx)
{
    const peg_trace trace = {
        .traceparent = face->traceparent, .tracestate = face->tracestate, .baggage = face->baggage};
    peg_ctx *made = NULL;
    peg_status status;

    if (!face->traceparent[0] && !face->baggage[0])
        return PEG_OK;
    status = replace_ctx(ctx, peg_ctx_with_trace(*ctx, &trace, &made, NULL), &made);
    return status == PEG_ENOMEM ? status : PEG_OK; /* an invalid one is still in the call */
}

/* The handler's own calls are children of its span. False: no memory. */
static bool begin_span(struct remote__prov_call *call)
{
    peg_provider_call *face = &call->face;
    char text[OTLP_TRACEPARENT_TEXT];
    struct otlp_span span;

    if (!otlp_span_begin(call->prov->otlp, peg__str(face->traceparent), &span) ||
        (!span.exporter && span.has_parent))
        return true;
    otlp_context_print(&span.context, text);
    face->traceparent = peg__arena_copy(&call->arena, peg__str(text));
    call->span = span;
    return face->traceparent != NULL;
}

static peg_status make_ctx(struct remote__prov_call *call, int64_t timeout_ms)
{
    peg_ctx *ctx = peg_ctx_ref(call->prov->config.ctx);
    peg_ctx *made = NULL;
    peg_status status = name_run(&call->face, &ctx);

    if (!status)
        status = put_trace(&call->face, &ctx);
    if (!status)
        status = replace_ctx(&ctx, peg_ctx_with_cancel(ctx, &made, &call->cancel, NULL), &made);
    if (!status && timeout_ms > 0)
        status = replace_ctx(&ctx, peg_ctx_with_deadline(ctx, timeout_ms, &made, NULL), &made);
    if (!status)
        status = peg_ctx_with_value(ctx, &value_key, call, unref_value, &made, NULL);
    peg_ctx_unref(ctx);
    if (status)
        return PEG_ENOMEM;
    remote__prov_call_ref(call);
    call->ctx = made;
    return PEG_OK;
}

peg_status remote__prov_call_new(peg_provider *prov, const Pegboard__V1__Call *frame,
                                 struct remote__prov_call **ret_call)
{
    struct remote__prov_call *call;

    if (is_too_long(frame))
        return PEG_ELIMIT;
    call = peg__alloc_zero(1, sizeof(*call));
    if (!call)
        return PEG_ENOMEM;
    atomic_init(&call->n_refs, 1);
    pthread_mutex_init(&call->gate_lock, NULL);
    peg__refs_take(&prov->link->n_refs);
    call->prov = prov;
    call->link = prov->link;
    call->outcome.code = "";
    call->outcome.message = "";
    if (copy_frame(call, frame) && begin_span(call) &&
        make_ctx(call, frame->timeout_ms) == PEG_OK) {
        *ret_call = call;
        return PEG_OK;
    }
    remote__prov_call_unref(call);
    return PEG_ENOMEM;
}

/* ---- what a handler sees ---- */

struct remote__prov_call *remote__prov_call_of(const peg_call *call)
{
    return peg_ctx_value(peg_call_ctx(call), &value_key);
}

const peg_provider_call *peg_provider_call_of(const peg_call *call)
{
    const struct remote__prov_call *found = remote__prov_call_of(call);

    return found ? &found->face : NULL;
}

const char *peg_provider_metadata(const peg_call *call, const char *key)
{
    const struct remote__prov_call *found = remote__prov_call_of(call);

    for (size_t i = 0; found && i < found->face.n_metadata; i++) {
        if (strcmp(found->face.metadata[i].key, key) == 0)
            return found->face.metadata[i].value;
    }
    return "";
}
