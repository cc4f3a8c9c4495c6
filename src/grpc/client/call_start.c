/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the first headers to the handler:
 *
 *   grpc__call_begin   a stream was opened; a call is readied for it
 *   on_headers         is it gRPC, is there such a method, can it be read  -> refuse
 *                      deadline, interceptors, on_start of the handler
 *   on_message         unpack, hand over (a client that does not stream: when it has ended)
 *   on_remote_end
 *   on_closed          -> grpc__call_ended
 *
 * Every event holds a reference, so that a call outlives what its handler does.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/frame.h"
#include "grpc/message.h"
#include "grpc/server/internal.h"

static struct grpc_call *call_of(struct grpc_stream *stream)
{
    return (struct grpc_call *)stream; /* its first member */
}

static struct grpc_call *call_of_timer(struct net_timer *timer)
{
    return peg__container_of(timer, struct grpc_call, deadline);
}

struct grpc_stream *grpc__call_begin(struct grpc__conn *conn)
{
    struct grpc__server_loop *home = conn->home;
    const struct grpc_server_options *options = &home->server->options;
    struct grpc_call *call;

    grpc__conn_count(conn); /* a few bytes of headers may stand for many */
    call = conn->was_told_finally || conn->is_evicted ? NULL : grpc__server_loop_take_call(home);
    if (!call)
        return NULL;
    grpc_stream_init(&call->stream, &grpc__call_events, &call->arena, options->max_message_bytes,
                     options->max_header_bytes);
    call->stream.max_out = options->max_send_bytes;
    call->conn = conn;
    call->next = conn->calls;
    if (call->next)
        call->next->prev = call;
    conn->calls = call;
    call->deadline_ns = NET_NEVER;
    call->n_refs = 1;
    net_loop_add_load(home->loop, 1);
    grpc__count(&home->counts.n_started, 1);
    return &call->stream;
}

/* ---- the deadline
 * ---------------------------------------------------------------------------------- */

/* A client that has heard nothing is told; one that has heard a part is cut off. */
static void deadline_passed(struct net_timer *timer)
{
    struct grpc_call *call = call_of_timer(timer);
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
    const int64_t now_ns = net_loop_now_ns(call->home->loop);

    if (timeout_ns < 0 || timeout_ns >= NET_NEVER - now_ns)
        return;
    call->deadline_ns = now_ns + timeout_ns;
    call->deadline.fn = deadline_passed;
    net_loop_arm(call->home->loop, &call->deadline, call->deadline_ns);
}

/* ---- headers
 * ------------------------------------------------------------------------------------------ */

/* Is it no call? Then what answers it is noted. */
static bool is_http(struct grpc_call *call)
{
    const struct grpc_head *head = &call->stream.head;

    if (grpc__call_is_page(call)) {
        call->is_page = true;
        call->http_refusal = "413"; /* if it has a body */
        grpc__count(&call->home->counts.n_pages, 1);
    } else if (!peg__str_is(head->method, "POST")) {
        call->http_refusal = "405";
    } else if (!grpc_head_is_grpc(head)) {
        call->http_refusal = "415";
    }
    return call->http_refusal;
}

/* Answers it when its request has ended, or more of it comes; before that it may turn out to be
 * malformed. */
static void answer_http(struct grpc_call *call, bool has_body)
{
    peg_status status;

    if (call->is_finished || (call->awaits_page && !has_body))
        return;
    /* A page can be made again: it is made when the client takes it. */
    call->awaits_window = call->is_page && !has_body && !grpc_stream_await_window(&call->stream);
    if (call->awaits_window)
        return;
    status = call->is_page && !has_body ? grpc__call_answer_page(call)
                                        : grpc__call_refuse_http(call, call->http_refusal);
    if (status)
        grpc_stream_reset(&call->stream, GRPC_H2_INTERNAL_ERROR);
    else if (!has_body && (call->awaits_page || call->page))
        return;
    call->status = GRPC_STATUS(GRPC_UNKNOWN, "this is no gRPC request");
    call->is_finished = true;
}

void grpc__call_go_on_page(struct grpc_call *call)
{
    grpc_call_ref(call);
    answer_http(call, false);
    grpc_call_unref(call);
}

/* The method that was called before is mostly the one that is called again. */
static const struct grpc_route *find_route(struct grpc__server_loop *home, peg_str path)
{
    const struct grpc_route *last = home->last_route;

    if (last && peg__str_eq(path, home->last_path))
        return last;
    last = peg__map_get(&home->server->routes, path);
    if (last) {
        home->last_route = last;
        home->last_path = peg__str(last->method->path);
    }
    return last;
}

/* Refuses a call that no handler can have; true if it was. */
static bool refuse_call(struct grpc_call *call)
{
    const struct grpc_head *head = &call->stream.head;

    call->route = find_route(call->home, head->path);
    call->method = call->route ? call->route->method : NULL;
    if (!call->route || !call->route->handler.on_message) {
        grpc_call_fail(call, GRPC_UNIMPLEMENTED,
                       "there is no method '%.*s' here: reflection lists those that there are",
                       (int)(head->path.len < 200 ? head->path.len : 200), head->path.ptr);
        return true;
    }
    if (head->has_bad_timeout) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT,
                       "grpc-timeout must be one to eight digits and one of H, M, S, m, u, n");
        return true;
    }
    if (head->encoding == GRPC_ENCODING_UNKNOWN) {
        grpc_call_fail(call, GRPC_UNIMPLEMENTED,
                       "the messages are compressed in a way that is not known here: use gzip, or "
                       "none");
        return true;
    }
    return false;
}

static void run_interceptors(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->home->server->options;

    while (call->n_interceptors < options->n_interceptors && !call->is_finished) {
        const struct grpc_interceptor *one = &options->interceptors[call->n_interceptors++];

        if (one->on_start)
            one->on_start(call, one->user);
    }
}

static void on_headers(struct grpc_stream *stream)
{
    struct grpc_call *call = grpc_call_ref(call_of(stream));

    if (!is_http(call) && !refuse_call(call)) {
        const struct grpc_method_bounds *bounds = &call->route->bounds;

        if (bounds->max_message_bytes)
            grpc_reader_limit(&stream->reader, bounds->max_message_bytes);
        stream->max_waiting = bounds->max_waiting_bytes;
        arm_deadline(call);
        run_interceptors(call);
        call->handler_knows = !call->is_finished;
        if (call->handler_knows && call->route->handler.on_start)
            call->route->handler.on_start(call, call->route->user);
    }
    grpc_call_unref(call);
}

/* ---- messages
 * ------------------------------------------------------------------------------------------ */

static void refuse_message(struct grpc_call *call, peg_status status, const peg_error *error)
{
    grpc_call_fail(call, status == PEG_EPARSE ? GRPC_INTERNAL : GRPC_RESOURCE_EXHAUSTED,
                   "the request cannot be read: %s", error->message);
}

/* A message as its handler wants it, or NULL: then the call has failed. */
static const void *unpack(struct grpc_call *call, struct peg__arena *arena, const peg_str *bytes)
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
    refuse_message(call, status, &error);
    return NULL;
}

/* The next message may be long in coming, and many calls may wait for theirs: what a large one
 * took is given back. */
static void take_streamed(struct grpc_call *call, peg_str bytes)
{
    enum { KEPT_BYTES = 16 << 10 };
    const void *message = unpack(call, &call->message_arena, &bytes);

    if (message)
        call->route->handler.on_message(call, message, call->route->user);
    peg__arena_reset(&call->message_arena);
    if (call->message_arena.held > KEPT_BYTES)
        peg__arena_free(&call->message_arena);
}

/* Bytes are only there until we return; they have to live as long as the call. Large ones came in
 * pieces, and are not copied again. */
static const peg_str *keep_bytes(struct grpc_call *call, peg_str bytes)
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
    call->message =
        call->method->input ? unpack(call, &call->arena, &bytes) : keep_bytes(call, bytes);
    if (call->message)
        grpc_stream_keep(&call->stream, call->arena.held + (call->taken ? bytes.len : 0));
    else if (!call->is_finished)
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
}

static void on_message(struct grpc_stream *stream, peg_str bytes)
{
    struct grpc_call *call = call_of(stream);

    if (call->is_finished)
        return; /* what the client says after the answer */
    grpc_call_ref(call);
    if (call->http_refusal)
        answer_http(call, true);
    else if (call->method->client_streams)
        take_streamed(call, bytes);
    else
        take_only(call, bytes);
    grpc_call_unref(call);
}

/* The only message goes to its handler, which may have to wait until the client takes an answer. */
static void hand_over(struct grpc_call *call)
{
    call->awaits_window =
        call->route->bounds.waits_for_window && !grpc_stream_await_window(&call->stream);
    if (call->awaits_window)
        return;
    call->was_handed = true;
    call->route->handler.on_message(call, call->message, call->route->user);
}

static void on_remote_end(struct grpc_stream *stream)
{
    struct grpc_call *call = call_of(stream);

    if (call->is_finished)
        return;
    grpc_call_ref(call);
    if (call->http_refusal) {
        answer_http(call, false);
    } else if (call->method->client_streams) {
        if (call->route->handler.on_half_close)
            call->route->handler.on_half_close(call, call->route->user);
    } else if (call->message) {
        hand_over(call);
    } else {
        grpc_call_fail(call, GRPC_INTERNAL, "%s takes one message, and there was none",
                       call->method->path);
    }
    grpc_call_unref(call);
}

static void on_writable(struct grpc_stream *stream)
{
    struct grpc_call *call = grpc_call_ref(call_of(stream));

    if (call->awaits_window && call->is_page)
        answer_http(call, false);
    else if (call->awaits_window && !call->is_finished)
        hand_over(call);
    else if (!call->is_finished && call->handler_knows && call->route->handler.on_writable)
        call->route->handler.on_writable(call, call->route->user);
    grpc_call_unref(call);
}

/* A message that is not whole is answered; an answer that nobody takes is not. */
void grpc__call_stalled(struct grpc_call *call)
{
    const int64_t stall_ms = call->home->server->options.stall_ms;

    grpc_call_ref(call);
    if (call->is_finished || call->http_refusal || call->stream.awaits_window ||
        call->stream.out.len > 0)
        grpc_stream_reset(&call->stream, GRPC_H2_CANCEL);
    else
        grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED,
                       "a message was not whole after %lld ms (PEG_LIMIT_GRPC_STALL_MS)",
                       (long long)stall_ms);
    grpc_call_unref(call);
}

static void on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    struct grpc_call *call = call_of(stream);

    if (call->http_refusal)
        answer_http(call, true);
    else
        grpc_call_finish(call, status);
}

static void on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    grpc__call_ended(call_of(stream), h2_error);
}

const struct grpc_stream_events grpc__call_events = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_remote_end = on_remote_end,
    .on_writable = on_writable,
    .on_broken = on_broken,
    .on_closed = on_closed,
};
