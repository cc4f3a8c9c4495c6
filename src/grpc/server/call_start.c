/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the first headers to the handler:
 *
 *   grpc__call_begin   a stream was opened; a call is readied for it
 *   on_call_headers    is it gRPC, is there such a method, can it be read  -> reject_unroutable
 *                      other requests of HTTP                              -> begin_http
 *                      deadline, interceptors, on_start of the handler
 *   on_call_message    unpack, to the handler (a client that does not stream: when it has ended)
 *   on_call_remote_end
 *   on_call_closed     -> grpc__call_ended
 *
 * Every event holds a reference, so that a call outlives what its handler does.
 */

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/server/internal.h"

static struct grpc_call *call_of(struct grpc_stream *stream)
{
    return (struct grpc_call *)stream; /* its first member */
}

struct grpc_stream *grpc__call_begin(struct grpc__conn *conn)
{
    struct grpc__server_loop *server_loop = conn->server_loop;
    const struct grpc_server_options *options = &server_loop->server->options;
    struct grpc_call *call;

    grpc__conn_count(conn); /* a few bytes of headers may stand for many */
    call = conn->has_final_goaway || conn->is_evicted ? NULL
                                                      : grpc__server_loop_take_call(server_loop);
    if (!call)
        return NULL;
    grpc_stream_init(&call->stream, &grpc__call_events, &call->arena, options->max_message_bytes,
                     options->max_header_bytes);
    call->stream.max_out = options->max_send_bytes;
    call->conn = conn;
    PEG_LIST_PUSH(conn->calls, call, next, prev);
    call->deadline_ns = NET_NEVER;
    call->n_refs = 1;
    net_loop_add_load(server_loop->loop, 1);
    grpc__count(&server_loop->counts.n_started, 1);
    return &call->stream;
}

/* ---- the deadline -------------------------------------------------------------------------- */

/* Before an answer the client gets the status; within one the stream is reset. */
static void on_deadline(struct net_timer *timer)
{
    struct grpc_call *call = peg__container_of(timer, struct grpc_call, deadline);
    const struct grpc_status status =
        GRPC_STATUS(GRPC_DEADLINE_EXCEEDED, "the deadline of the client has passed");

    if (!call->is_finished && call->stream.out.len == 0)
        grpc_call_finish(call, &status);
    else
        grpc_stream_reset(&call->stream, GRPC_H2_CANCEL);
}

static void arm_deadline(struct grpc_call *call)
{
    const int64_t timeout_ns = call->stream.head.timeout_ns;
    const int64_t now_ns = net_loop_now_ns(call->server_loop->loop);

    if (timeout_ns < 0 || timeout_ns >= NET_NEVER - now_ns)
        return;
    call->deadline_ns = now_ns + timeout_ns;
    call->deadline.fn = on_deadline;
    net_loop_arm(call->server_loop->loop, &call->deadline, call->deadline_ns);
}

/* ---- headers ------------------------------------------------------------------------------- */

/* The method that was called before is mostly the one that is called again. */
static const struct grpc_route *find_route(struct grpc__server_loop *server_loop, peg_str path)
{
    const struct grpc_route *last = server_loop->last_route;

    if (last && peg__str_eq(path, server_loop->last_path))
        return last;
    last = peg__map_get(&server_loop->server->routes, path);
    if (last) {
        server_loop->last_route = last;
        server_loop->last_path = peg__str(last->method->path);
    }
    return last;
}

/* A call, or a request that is no gRPC. */
static bool is_call(const struct grpc_head *head)
{
    return peg__str_is(head->method, "POST") && grpc_head_is_grpc(head);
}

/* For the handlers of HTTP, or refused: at its end, since until then it may prove malformed. */
static void begin_http(struct grpc_call *call)
{
    const struct grpc_head *head = &call->stream.head;
    const bool is_post = peg__str_is(head->method, "POST");

    if (is_post && find_route(call->server_loop, head->path))
        call->http_refusal = "415";
    else if (call->server_loop->server->options.http)
        grpc__http_begin(call);
    else
        call->http_refusal = is_post ? "415" : "405";
    if (call->http)
        grpc_call_add_hook(call, &call->http->hook);
}

static void refuse_http(struct grpc_call *call, const char *http_status)
{
    if (call->is_finished)
        return;
    if (grpc__call_refuse_http(call, http_status))
        grpc_stream_reset(&call->stream, GRPC_H2_INTERNAL_ERROR);
    call->status = GRPC_STATUS(GRPC_UNKNOWN, "this is no gRPC request");
    call->is_finished = true;
}

/* Refuses a call that no handler can have; true if it was. */
static bool reject_unroutable(struct grpc_call *call)
{
    const struct grpc_head *head = &call->stream.head;

    call->route = find_route(call->server_loop, head->path);
    call->method = call->route ? call->route->method : NULL;
    if (!call->route || !call->route->handler.on_message) {
        grpc_call_fail(call, GRPC_UNIMPLEMENTED,
                       "there is no method '%.*s' here: use reflection to list the methods",
                       (int)(head->path.len < 200 ? head->path.len : 200), head->path.ptr);
        return true;
    }
    if (head->has_bad_timeout) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT,
                       "grpc-timeout must be one to eight digits and one of H, M, S, m, u, n");
        return true;
    }
    if (head->encoding == GRPC_ENCODING_UNKNOWN) {
        grpc_call_fail(call, GRPC_UNIMPLEMENTED, "unknown message encoding: use gzip or identity");
        return true;
    }
    return false;
}

void grpc__call_run_interceptors(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->server_loop->server->options;

    while (call->n_interceptors < options->n_interceptors && !call->is_finished) {
        const struct grpc_interceptor *one = &options->interceptors[call->n_interceptors++];

        if (one->on_start)
            one->on_start(call, one->user);
    }
}

static void on_call_headers(struct grpc_stream *stream)
{
    struct grpc_call *call = grpc_call_ref(call_of(stream));

    if (!is_call(&stream->head)) {
        begin_http(call);
    } else if (!reject_unroutable(call)) {
        const struct grpc_method_bounds *bounds = &call->route->bounds;

        if (bounds->max_message_bytes)
            grpc_reader_limit(&stream->reader, bounds->max_message_bytes);
        stream->max_waiting = bounds->max_waiting_bytes;
        arm_deadline(call);
        grpc__call_run_interceptors(call);
        call->handler_knows = !call->is_finished;
        if (call->handler_knows && call->route->handler.on_start)
            call->route->handler.on_start(call, call->route->user);
    }
    grpc_call_unref(call);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void reject_message(struct grpc_call *call, peg_status status, const peg_error *error)
{
    grpc_call_fail(call, status == PEG_EPARSE ? GRPC_INTERNAL : GRPC_RESOURCE_EXHAUSTED,
                   "the request cannot be read: %s", error->message);
}

/* A message as its handler wants it, or NULL: then the call has failed. */
static const void *unpack_request(struct grpc_call *call, struct peg__arena *arena,
                                  const peg_str *bytes)
{
    const struct grpc_method *method = call->method;
    const struct ProtobufCMessage *message;
    peg_error error;
    peg_status status;

    if (!method->input)
        return bytes;
    status = grpc_message_unpack(method->input, arena, *bytes, &message, &error);
    if (!status)
        return message;
    reject_message(call, status, &error);
    return NULL;
}

/* The next message may be long in coming: the memory of a large one is given back. */
static void take_streamed(struct grpc_call *call, peg_str bytes)
{
    enum { KEPT_BYTES = 16 << 10 };
    const void *message = unpack_request(call, &call->message_arena, &bytes);

    if (message)
        call->route->handler.on_message(call, message, call->route->user);
    peg__arena_reset(&call->message_arena);
    if (call->message_arena.held > KEPT_BYTES)
        peg__arena_free(&call->message_arena);
}

/* They have to live as long as the call. Large ones came in pieces, and are not copied again. */
static const peg_str *copy_request(struct grpc_call *call, peg_str bytes)
{
    peg_str *copy = peg__arena_alloc(&call->arena, sizeof(*copy));
    char *text;

    call->taken = grpc_reader_take(&call->stream.reader, bytes);
    text = call->taken ? call->taken : peg__arena_copy(&call->arena, bytes);
    if (!copy || !text)
        return NULL;
    *copy = peg__strn(text, bytes.len);
    return copy;
}

static void take_only(struct grpc_call *call, peg_str bytes)
{
    if (call->message) {
        grpc_call_fail(call, GRPC_INTERNAL, "%s takes one message, and this is a second one",
                       call->method->path);
        return;
    }
    call->message = call->method->input ? unpack_request(call, &call->arena, &bytes)
                                        : copy_request(call, bytes);
    if (call->message)
        grpc_stream_keep(&call->stream, call->arena.held + (call->taken ? bytes.len : 0));
    else if (!call->is_finished)
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
}

static void on_call_message(struct grpc_stream *stream, peg_str bytes)
{
    struct grpc_call *call = call_of(stream);

    if (call->is_finished)
        return; /* after the answer */
    grpc_call_ref(call);
    if (call->http)
        grpc__http_body(call, bytes);
    else if (call->http_refusal)
        refuse_http(call, call->http_refusal);
    else if (call->method->client_streams)
        take_streamed(call, bytes);
    else
        take_only(call, bytes);
    grpc_call_unref(call);
}

/* The only message goes to its handler, perhaps not before the client takes an answer. */
static void start_handler(struct grpc_call *call)
{
    call->awaits_window =
        call->route->bounds.waits_for_window && !grpc_stream_await_window(&call->stream);
    if (call->awaits_window)
        return;
    call->has_request = true;
    call->route->handler.on_message(call, call->message, call->route->user);
}

static void on_call_remote_end(struct grpc_stream *stream)
{
    struct grpc_call *call = call_of(stream);

    if (call->is_finished)
        return;
    grpc_call_ref(call);
    if (call->http) {
        grpc__http_body_end(call);
    } else if (call->http_refusal) {
        refuse_http(call, call->http_refusal);
    } else if (call->method->client_streams) {
        if (call->route->handler.on_half_close)
            call->route->handler.on_half_close(call, call->route->user);
    } else if (call->message) {
        start_handler(call);
    } else {
        grpc_call_fail(call, GRPC_INTERNAL, "%s takes one message, and there was none",
                       call->method->path);
    }
    grpc_call_unref(call);
}

static void on_call_writable(struct grpc_stream *stream)
{
    struct grpc_call *call = grpc_call_ref(call_of(stream));

    if (call->http)
        grpc__http_writable(call);
    else if (call->awaits_window && !call->is_finished)
        start_handler(call);
    else if (!call->is_finished && call->handler_knows && call->route->handler.on_writable)
        call->route->handler.on_writable(call, call->route->user);
    grpc_call_unref(call);
}

/* An incomplete message is answered; an answer without a taker is dropped. */
void grpc__call_stalled(struct grpc_call *call)
{
    const int64_t stall_ms = call->server_loop->server->options.stall_ms;

    grpc_call_ref(call);
    if (call->is_finished || call->http || call->http_refusal || call->stream.awaits_window ||
        call->stream.out.len > 0)
        grpc_stream_reset(&call->stream, GRPC_H2_CANCEL);
    else
        grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, "the message was incomplete after %lld ms",
                       (long long)stall_ms);
    grpc_call_unref(call);
}

/* Of headers that did not come whole. */
static bool is_surely_http(const struct grpc_head *head)
{
    return head->method.ptr && (head->content_type.ptr || !peg__str_is(head->method, "POST")) &&
           !is_call(head);
}

static void on_call_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    struct grpc_call *call = call_of(stream);

    const struct grpc_head *head = &stream->head;

    /* Before on_call_headers() it is the headers that are too large, or no memory is left. */
    if (call->http)
        grpc__http_body_broke(call, status);
    else if (call->http_refusal)
        refuse_http(call, call->http_refusal);
    else if (!call->route && call->server_loop->server->options.http && is_surely_http(head))
        refuse_http(call, "431");
    else
        grpc_call_finish(call, status);
}

static void on_call_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    grpc__call_ended(call_of(stream), h2_error);
}

const struct grpc_stream_events grpc__call_events = {
    .on_headers = on_call_headers,
    .on_message = on_call_message,
    .on_remote_end = on_call_remote_end,
    .on_writable = on_call_writable,
    .on_broken = on_call_broken,
    .on_closed = on_call_closed,
};
