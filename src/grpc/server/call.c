/* SPDX-License-Identifier: Apache-2.0 */

/* A call for its handler: what is known of it, its answer, and its end. */

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/server/internal.h"

/* ---- what the client said ------------------------------------------------------------------ */

const struct grpc_method *grpc_call_method(const struct grpc_call *call)
{
    return call->method;
}

const struct grpc_metadata *grpc_call_metadata(const struct grpc_call *call)
{
    return &call->stream.head.metadata;
}

int64_t grpc_call_deadline_ns(const struct grpc_call *call)
{
    return call->deadline_ns;
}

const char *grpc_call_peer(const struct grpc_call *call)
{
    if (call->bridge)
        return call->bridge->peer;
    return call->conn ? net_stream_peer(call->conn->stream) : "";
}

bool grpc_call_peer_is_local(const struct grpc_call *call)
{
    if (call->bridge)
        return call->bridge->is_local;
    return call->conn && net_stream_is_local(call->conn->stream);
}

bool grpc_call_peer_uid(const struct grpc_call *call, uid_t *ret_uid)
{
    return call->conn && net_stream_unix_uid(call->conn->stream, ret_uid);
}

peg_str grpc_call_peer_name(const struct grpc_call *call)
{
    const struct net_tls *tls = call->conn ? net_stream_tls(call->conn->stream) : NULL;

    if (call->bridge)
        return call->bridge->peer_name;
    return tls ? net_tls_peer_name(tls) : (peg_str){"", 0};
}

struct net_loop *grpc_call_loop(const struct grpc_call *call)
{
    return call->loop;
}

struct peg__arena *grpc_call_arena(struct grpc_call *call)
{
    return &call->arena;
}

/* ---- answering ----------------------------------------------------------------------------- */

peg_status grpc_call_add_header(struct grpc_call *call, peg_str key, peg_str value,
                                peg_error *reterr)
{
    if (call->stream.has_sent_headers || call->is_finished)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "the headers have been sent: add a trailer, or add it earlier");
    return grpc_metadata_add(&call->headers, &call->arena, key, value, reterr);
}

peg_status grpc_call_add_trailer(struct grpc_call *call, peg_str key, peg_str value,
                                 peg_error *reterr)
{
    if (call->is_finished)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "the call is finished: add trailers before that");
    return grpc_metadata_add(&call->trailers, &call->arena, key, value, reterr);
}

void grpc_call_use_gzip(struct grpc_call *call)
{
    if (!call->stream.has_sent_headers && call->stream.head.accepts_gzip)
        call->stream.uses_gzip = true;
}

void grpc_call_skip_gzip(struct grpc_call *call, bool skips)
{
    call->stream.skips_gzip = skips;
}

bool grpc_call_was_compressed(const struct grpc_call *call)
{
    return grpc_reader_was_compressed(&call->stream.reader);
}

/* Without memory the code alone has to do. Details that no client would take are left out. */
static struct grpc_status copy_status(struct grpc_call *call, const struct grpc_status *status)
{
    struct grpc_status copy = {.code = status->code};
    const size_t len = status->message.len <= PEG_LIMIT_GRPC_STATUS_BYTES
                           ? status->message.len
                           : peg__utf8_cut(status->message.ptr, PEG_LIMIT_GRPC_STATUS_BYTES);
    const peg_str text = {status->message.ptr, len};
    const char *message = len > 0 ? peg__arena_copy(&call->arena, text) : NULL;
    const bool has_details =
        status->details.len > 0 && status->details.len <= PEG_LIMIT_GRPC_STATUS_WIRE_BYTES;
    const char *details = has_details ? peg__arena_copy(&call->arena, status->details) : NULL;

    if (message)
        copy.message = peg__strn(message, len);
    if (details)
        copy.details = peg__strn(details, status->details.len);
    return copy;
}

static void describe_status(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->server_loop->server->options;

    if (options->describe)
        options->describe(call, &call->status);
}

/* A client that takes few bytes of headers gets at least the code and small details. */
static void fit_status(struct grpc_call *call)
{
    enum { SMALL_DETAILS = 512 };
    struct grpc_status *status = &call->status;
    const size_t max = grpc_call_max_status_bytes(call);
    size_t n_details = peg__base64_len(status->details.len);

    if (n_details > max && n_details > SMALL_DETAILS) {
        status->details = (peg_str){NULL, 0};
        n_details = 0;
    }
    status->message.len = grpc_percent_fit(status->message, max > n_details ? max - n_details : 0);
}

void grpc_call_finish(struct grpc_call *call, const struct grpc_status *status)
{
    if (call->is_finished || call->has_ended)
        return;
    call->status = copy_status(call, status);
    if (call->status.code != GRPC_OK && !call->status.details.len && !call->has_request)
        describe_status(call);
    if (call->status.code != GRPC_OK)
        fit_status(call);
    if (call->bridge) {
        call->is_finished = true;
        call->bridge->ops->finish(call, &call->status, call->bridge->user);
        return;
    }
    if (grpc__call_send_end(call))
        grpc_stream_reset(&call->stream, GRPC_H2_INTERNAL_ERROR);
    call->is_finished = true;
}

void grpc_call_fail(struct grpc_call *call, enum grpc_code code, const char *fmt, ...)
{
    char text[PEG_LIMIT_GRPC_STATUS_BYTES + 2]; /* one too many shows where to cut */
    struct grpc_status status = {.code = code};
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len > 0)
        status.message =
            peg__strn(text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
    grpc_call_finish(call, &status);
}

static void finish_reply(struct grpc_call *call, peg_status failed, const peg_error *error)
{
    const struct grpc_status ok = {.code = GRPC_OK};

    if (!failed)
        grpc_call_finish(call, &ok);
    else
        grpc_call_fail(call,
                       failed == PEG_ELIMIT || failed == PEG_ENOMEM ? GRPC_RESOURCE_EXHAUSTED
                                                                    : GRPC_INTERNAL,
                       "the answer cannot be sent: %s", error->message);
}

void grpc_call_reply(struct grpc_call *call, peg_str message)
{
    peg_error error;

    finish_reply(call, grpc_call_send(call, message, &error), &error);
}

peg_status grpc_call_reply_shared(struct grpc_call *call, peg_str head, struct peg__blob *blob,
                                  peg_str rest, peg_error *reterr)
{
    const struct grpc_status ok = {.code = GRPC_OK};
    const peg_status status = grpc__call_send_shared(call, head, blob, rest, reterr);

    if (!status)
        grpc_call_finish(call, &ok);
    return status;
}

void grpc_call_reply_message(struct grpc_call *call, const struct ProtobufCMessage *message)
{
    peg_error error;

    finish_reply(call, grpc_call_send_message(call, message, &error), &error);
}

bool grpc_call_await_window(struct grpc_call *call)
{
    return grpc_stream_await_window(&call->stream);
}

void grpc_call_authenticate(struct grpc_call *call, peg_str principal)
{
    if (call->bridge)
        call->bridge->ops->authenticate(principal, call->bridge->user);
    else if (call->conn)
        grpc__conn_authenticate(call->conn, principal);
}

void grpc_call_pause(struct grpc_call *call)
{
    grpc_stream_pause(&call->stream);
}

void grpc_call_resume(struct grpc_call *call)
{
    grpc_stream_resume(&call->stream);
}

/* ---- values and hooks ---------------------------------------------------------------------- */

void grpc_call_set_state(struct grpc_call *call, void *state)
{
    call->state = state;
}

void *grpc_call_state(const struct grpc_call *call)
{
    return call->state;
}

peg_status grpc_call_put(struct grpc_call *call, const void *key, void *value)
{
    struct grpc__value *item = peg__arena_alloc(&call->arena, sizeof(*item));

    if (!item)
        return PEG_ENOMEM;
    *item = (struct grpc__value){.key = key, .value = value, .next = call->values};
    call->values = item;
    return PEG_OK;
}

void *grpc_call_get(const struct grpc_call *call, const void *key)
{
    for (const struct grpc__value *item = call->values; item; item = item->next) {
        if (item->key == key)
            return item->value;
    }
    return NULL;
}

void grpc_call_add_hook(struct grpc_call *call, struct grpc_end_hook *hook)
{
    hook->call = NULL;
    if (call->has_ended) {
        hook->fn(hook);
        return;
    }
    hook->call = call;
    PEG_LIST_PUSH(call->hooks, hook, next, prev);
}

void grpc_call_remove_hook(struct grpc_end_hook *hook)
{
    if (!hook->call)
        return;
    PEG_LIST_REMOVE(hook->call->hooks, hook, next, prev);
    hook->call = NULL;
}

/* ---- the end ------------------------------------------------------------------------------- */

struct grpc_call *grpc_call_ref(struct grpc_call *call)
{
    call->n_refs++;
    return call;
}

struct grpc_call *grpc_call_unref(struct grpc_call *call)
{
    if (call && --call->n_refs == 0)
        grpc__server_loop_pool_call(call);
    return NULL;
}

void grpc__call_ref_http(struct net_http_request *request)
{
    grpc_call_ref(((struct grpc__http *)request)->call);
}

void grpc__call_unref_http(struct net_http_request *request)
{
    grpc_call_unref(((struct grpc__http *)request)->call);
}

bool grpc_call_has_ended(const struct grpc_call *call)
{
    return call->has_ended;
}

const struct grpc_status *grpc_call_ended_as(const struct grpc_call *call)
{
    return &call->status;
}

static struct grpc_status status_of_lost(const struct grpc_call *call, uint32_t h2_error)
{
    if (call->deadline_ns <= net_loop_now_ns(call->server_loop->loop))
        return GRPC_STATUS(GRPC_DEADLINE_EXCEEDED, "the deadline of the client has passed");
    if (call->conn && call->conn->was_dropped)
        return GRPC_STATUS(GRPC_UNAVAILABLE, "the server ended the connection");
    if (h2_error == GRPC_H2_CANCEL)
        return GRPC_STATUS(GRPC_CANCELLED, "the client canceled the call");
    return GRPC_STATUS(GRPC_UNAVAILABLE, "the connection to the client broke");
}

static void notify_interceptors(struct grpc_call *call)
{
    const struct grpc_interceptor *interceptors = call->server_loop->server->options.interceptors;

    while (call->n_interceptors > 0) {
        const struct grpc_interceptor *one = &interceptors[--call->n_interceptors];

        if (one->on_end)
            one->on_end(call, &call->status, one->user);
    }
}

static void leave_conn(struct grpc_call *call)
{
    struct grpc__conn *conn = call->conn;

    call->bridge = NULL; /* a handler that keeps the call finds it ended */
    if (!conn)
        return;
    PEG_LIST_REMOVE(conn->calls, call, next, prev);
    call->next = NULL;
    call->prev = NULL;
    call->conn = NULL;
    grpc__conn_note_call_end(conn);
}

/* The stream is off the wire: whatever happened, this is called once for every call. */
void grpc__call_ended(struct grpc_call *call, uint32_t h2_error)
{
    struct grpc__server_loop *server_loop = call->server_loop;

    net_loop_disarm(server_loop->loop, &call->deadline);
    if (!call->is_finished || h2_error > GRPC_H2_NO_ERROR)
        call->status = status_of_lost(call, h2_error);
    call->is_finished = true;
    call->has_ended = true;
    while (call->hooks) {
        struct grpc_end_hook *hook = call->hooks;

        grpc_call_remove_hook(hook);
        hook->fn(hook);
    }
    if (call->handler_knows && call->route->handler.on_end)
        call->route->handler.on_end(call, call->route->user);
    notify_interceptors(call);

    leave_conn(call);
    net_loop_add_load(server_loop->loop, -1);
    if (!call->is_page)
        grpc__count(&server_loop->counts.n_ended, 1);
    if (call->n_refs > 1)
        grpc__server_loop_hold_call(server_loop, call);
    grpc_call_unref(call);
}

/* Not canceled: its client may come back and ask for it again. */
void grpc__call_lost(struct grpc_call *call)
{
    grpc_stream_drop(&call->stream, GRPC_H2_CANCEL);
    grpc__call_ended(call, GRPC_H2_CONNECT_ERROR);
}
