/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the first headers to the handler:
 *
 *   grpc__call_begin   a stream was opened; a call is readied for it
 *   on_call_headers    is it gRPC, is there such a method, can it be read  -> reject_unroutable
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

/* ---- pages --------------------------------------------------------------------------------- */

/*
 * A GET or HEAD goes to options.on_http1, as on HTTP/1.1. Over TLS the client's library chooses the
 * version, and probes, curl and Prometheus choose HTTP/2 where it is offered.
 *
 *   answer_page -> on_http1 -> the head, and all of the body, or a piece of a shared one
 *                           -> comes_later: on_page_wake, and on_http1 is called again
 *   on_writable -> the next piece
 */

enum { PIECE_BYTES = 64 << 10 };

static bool is_page(const struct grpc_call *call)
{
    const peg_str method = call->stream.head.method;

    return call->server_loop->server->options.on_http1 &&
           (peg__str_is(method, "GET") || peg__str_is(method, "HEAD"));
}

/* False: it has more fields than a request may have. */
static bool make_page_request(struct grpc_call *call, struct net_http1_request *ret_request)
{
    const struct grpc_head *head = &call->stream.head;
    const char *mark = head->path.len ? memchr(head->path.ptr, '?', head->path.len) : NULL;
    const size_t path_len = mark ? (size_t)(mark - head->path.ptr) : head->path.len;

    if (head->metadata.n > NET_HTTP1_MAX_FIELDS)
        return false;
    *ret_request = (struct net_http1_request){
        .method = head->method,
        .target = head->path,
        .path = peg__strn(head->path.ptr, path_len),
        .query = mark ? peg__str_from(head->path, path_len + 1) : peg__str(""),
        .keeps_alive = true,
        .peer = grpc_call_peer(call),
        .peer_name = grpc_call_peer_name(call),
        .waiter = &call->page_waiter,
        .n_fields = head->metadata.n,
    };
    for (size_t i = 0; i < head->metadata.n; i++)
        ret_request->fields[i] = (struct net_http1_field){head->metadata.entries[i].key,
                                                          head->metadata.entries[i].value};
    return true;
}

static peg_status send_page_head(struct grpc_call *call, const struct net_http1_answer *answer)
{
    enum { DECIMAL = 20 };
    const size_t len = net_http1_answer_body(answer).len;
    const bool wants_body = peg__str_is(call->stream.head.method, "GET") && len > 0;
    char code[DECIMAL];
    char length[DECIMAL];
    const struct grpc_field fields[] = {
        {PEG_LIT(":status"),
         peg__strn(code, (size_t)(peg__put_decimal(code, (uint64_t)answer->status) - code))},
        {PEG_LIT("content-type"), peg__str(answer->content_type)},
        {PEG_LIT("content-length"),
         peg__strn(length, (size_t)(peg__put_decimal(length, len) - length))},
    };
    const struct grpc_block block = {.fields = fields, .n = sizeof(fields) / sizeof(fields[0])};
    const peg_status status = grpc_stream_respond(&call->stream, &block, !wants_body, NULL);

    if (!status && wants_body && answer->shared) {
        call->page = net_http1_body_ref(answer->shared);
        call->conn->page_bytes += len;
    }
    return status;
}

static void drop_page(struct grpc_call *call)
{
    if (call->page && call->conn)
        call->conn->page_bytes -= call->page->bytes.len;
    call->page = net_http1_body_unref(call->page);
}

/* Sends the next piece of a page that is shared. The rest follows when the client has taken it, so
 * that a slow one holds a piece, and not a page. */
static peg_status send_page_piece(struct grpc_call *call)
{
    const peg_str left = peg__str_from(peg__buf_view(&call->page->bytes), call->page_sent);
    const size_t n = left.len < PIECE_BYTES ? left.len : (size_t)PIECE_BYTES;
    peg_status status = grpc_stream_send_plain(&call->stream, peg__strn(left.ptr, n), NULL);

    if (status)
        return status;
    call->page_sent += n;
    if (n == left.len) {
        drop_page(call);
        return grpc_stream_end(&call->stream, NULL, NULL);
    }
    call->awaits_window = !grpc_stream_await_window(&call->stream);
    return PEG_OK;
}

static peg_status send_page(struct grpc_call *call, const struct net_http1_answer *answer)
{
    peg_status status = send_page_head(call, answer);

    if (status || call->stream.local_ended)
        return status;
    if (call->page)
        return send_page_piece(call);
    status = grpc_stream_send_plain(&call->stream, peg__buf_view(&answer->body), NULL);
    return status ? status : grpc_stream_end(&call->stream, NULL, NULL);
}

static peg_status request_page(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->server_loop->server->options;
    struct net_http1_request request;
    struct net_http1_answer answer;
    peg_status status = PEG_OK;

    if (!make_page_request(call, &request))
        return grpc__call_refuse_http(call, "431");
    net_http1_answer_init(&answer);
    options->on_http1(options->http1_user, &request, &answer);
    if (answer.comes_later)
        call->awaits_page = true;
    else if (net_http1_answer_is_right(&answer))
        status = send_page(call, &answer);
    else
        status = grpc__call_refuse_http(call, "500");
    net_http1_answer_free(&answer);
    return status;
}

static void answer_http(struct grpc_call *call, bool has_body);

static void on_page_wake(struct net_http1_waiter *waiter)
{
    struct grpc_call *call = peg__container_of(waiter, struct grpc_call, page_waiter);

    call->awaits_page = false;
    grpc_call_ref(call);
    answer_http(call, false);
    grpc_call_unref(call);
}

static peg_status answer_page(struct grpc_call *call)
{
    call->page_waiter.wake = on_page_wake;
    return call->page ? send_page_piece(call) : request_page(call);
}

void grpc__call_forget_page(struct grpc_call *call)
{
    net_http1_not_wait(&call->page_waiter);
    call->awaits_page = false;
    drop_page(call);
}

/* ---- headers ------------------------------------------------------------------------------- */

/* True: it is no gRPC, and http_refusal is its answer. */
static bool is_http(struct grpc_call *call)
{
    const struct grpc_head *head = &call->stream.head;

    if (is_page(call)) {
        call->is_page = true;
        call->http_refusal = "413"; /* if it has a body */
        grpc__count(&call->server_loop->counts.n_pages, 1);
    } else if (!peg__str_is(head->method, "POST")) {
        call->http_refusal = "405";
    } else if (!grpc_head_is_grpc(head)) {
        call->http_refusal = "415";
    }
    return call->http_refusal;
}

/* After the end of the request, or with its body; before that it may prove malformed. */
static void answer_http(struct grpc_call *call, bool has_body)
{
    peg_status status;

    if (call->is_finished || (call->awaits_page && !has_body))
        return;
    /* A page is made when the client takes it. */
    call->awaits_window = call->is_page && !has_body && !grpc_stream_await_window(&call->stream);
    if (call->awaits_window)
        return;
    status = call->is_page && !has_body ? answer_page(call)
                                        : grpc__call_refuse_http(call, call->http_refusal);
    if (status)
        grpc_stream_reset(&call->stream, GRPC_H2_INTERNAL_ERROR);
    else if (!has_body && (call->awaits_page || call->page))
        return;
    call->status = GRPC_STATUS(GRPC_UNKNOWN, "this is no gRPC request");
    call->is_finished = true;
}

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

static void run_interceptors(struct grpc_call *call)
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

    if (!is_http(call) && !reject_unroutable(call)) {
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
    if (call->http_refusal)
        answer_http(call, true);
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
    if (call->http_refusal) {
        answer_http(call, false);
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

    if (call->awaits_window && call->is_page)
        answer_http(call, false);
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
    if (call->is_finished || call->http_refusal || call->stream.awaits_window ||
        call->stream.out.len > 0)
        grpc_stream_reset(&call->stream, GRPC_H2_CANCEL);
    else
        grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, "the message was incomplete after %lld ms",
                       (long long)stall_ms);
    grpc_call_unref(call);
}

static void on_call_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    struct grpc_call *call = call_of(stream);

    if (call->http_refusal)
        answer_http(call, true);
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
