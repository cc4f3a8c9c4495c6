/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection of HTTP/1.1. There is one request at a time; the next is looked at when the answer
 * of the last is gone. serve() takes one step after the other until it has to wait: send what is to
 * be sent, end a request that is answered, read a head, hand on a piece of its body. What a handler
 * says is queued, and sent by the next step.
 *
 * Reading goes on while a handler works, or the end of the client would not be noticed; but only up
 * to the size of a head. So a peer that neither reads nor stops sending holds one request, what its
 * handler has queued, one piece in the queue of its stream, and one read.
 */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "net/http/internal.h"

enum {
    MAX_READ = 16 << 10,
    STEPS_AT_ONCE = 64, /* before others on the loop have their turn */
};

enum stay {
    STAYS,
    LEAVES, /* ends after this answer */
    RESETS, /* ends now, as soon as no handler is within */
    BROKEN, /* the stream is about to report its end */
};

enum wait { NO_WAIT, WAITS_IDLE, WAITS_FOR_HEAD, WAITS_FOR_REST, WAITS_TO_SEND };

enum step { GOES_ON, WAITS, GONE };

/* Owned by the loop of its stream. What may be pending: the timer, `later`. */
struct net_http_conn {
    struct net_stream *stream;
    struct net_loop *loop;
    struct net_http_server *server;
    struct net_http_conn_events events;
    void *user;
    struct peg__buf in;
    peg_str input; /* what was not taken yet: of `in`, or of the stream's buffer */
    struct net_http_output output;
    struct net_http1_request *request; /* NULL: none */
    struct net_http_framing framing;
    bool is_1_0;
    bool keeps_alive;
    bool awaits_continue;
    bool was_full; /* on_writable is due */
    bool is_serving;
    enum stay stay;
    enum wait wait;
    struct net_timer timer;
    struct net_later later;
};

static struct net_http_conn *conn_of(const struct net_http_request *request)
{
    return ((const struct net_http1_request *)request)->conn;
}

static bool is_answered(const struct net_http_conn *conn)
{
    return conn->request && conn->request->request.is_finished;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void end_request(struct net_http_conn *conn, bool was_lost)
{
    struct net_http1_request *own = conn->request;

    if (!own)
        return;
    conn->request = NULL;
    net_http_request_ended(&own->request, was_lost);
    own->conn = NULL;
    net_http1_request_unref(&own->request);
}

/* The stream was let go. */
static void free_conn(struct net_http_conn *conn)
{
    net_loop_disarm(conn->loop, &conn->timer);
    net_loop_not_later(conn->loop, &conn->later);
    end_request(conn, true);
    peg__buf_free(&conn->in);
    net_http_output_free(&conn->output);
    peg__free(conn);
}

static enum step end_conn(struct net_http_conn *conn)
{
    const struct net_http_conn_events events = conn->events;
    void *user = conn->user;

    free_conn(conn);
    events.on_end(user);
    return GONE;
}

static enum step drop_and_end(struct net_http_conn *conn)
{
    net_stream_drop(conn->stream);
    return end_conn(conn);
}

static enum step close_and_end(struct net_http_conn *conn)
{
    net_stream_close(conn->stream);
    return end_conn(conn);
}

/* ---- what a handler says ------------------------------------------------------------------- */

static void serve_later(struct net_http_conn *conn)
{
    if (!conn->is_serving)
        net_loop_later(conn->loop, &conn->later);
}

/* A body that has not come is read to its end if that is soon; else the connection ends. */
static bool has_long_rest(const struct net_http_conn *conn)
{
    return !net_http_framing_is_done(&conn->framing) &&
           (conn->awaits_continue || conn->framing.state != NET_HTTP_LENGTH ||
            conn->framing.left > PEG_LIMIT_NET_HTTP_DISCARD_BYTES);
}

static peg_status begin_answer(struct net_http_request *request,
                               const struct net_http_answer *answer, int64_t length,
                               bool is_bodyless, peg_error *reterr)
{
    struct net_http_conn *conn = conn_of(request);
    const bool ends_by_close = length < 0 && !is_bodyless && conn->is_1_0;

    conn->output.is_chunked = length < 0 && !is_bodyless && !conn->is_1_0;
    if (conn->stay == STAYS && (!conn->keeps_alive || ends_by_close || has_long_rest(conn)))
        conn->stay = LEAVES;
    serve_later(conn);
    return net_http_output_head(&conn->output, answer, length, conn->stay != STAYS, reterr);
}

static peg_status send_bytes(struct net_http_request *request, peg_str bytes, peg_error *reterr)
{
    struct net_http_conn *conn = conn_of(request);
    const size_t max = conn->server->options.max_send_bytes;
    const size_t pending = net_http_output_pending(&conn->output);

    conn->was_full |= pending + bytes.len > NET_HTTP_HIGH_MARK;
    if (pending > NET_HTTP_HIGH_MARK && pending + bytes.len > max)
        return peg__fail(reterr, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
                         "more than %zu bytes wait to be sent: wait for on_writable", max);
    serve_later(conn);
    return net_http_output_body(&conn->output, bytes, reterr);
}

static peg_status send_blob(struct net_http_request *request, struct peg__blob *blob,
                            peg_error *reterr)
{
    struct net_http_conn *conn = conn_of(request);

    (void)reterr;
    conn->output.blob = peg__blob_ref(blob);
    serve_later(conn);
    return PEG_OK;
}

static bool is_writable(const struct net_http_request *request)
{
    return net_http_output_pending(&conn_of(request)->output) <= NET_HTTP_HIGH_MARK;
}

static void finish_answer(struct net_http_request *request)
{
    struct net_http_conn *conn = conn_of(request);

    if (conn->output.is_chunked && net_http_output_text(&conn->output, "0\r\n\r\n"))
        conn->stay = RESETS;
    serve_later(conn);
}

static void reset_answer(struct net_http_request *request)
{
    struct net_http_conn *conn = conn_of(request);

    conn->stay = RESETS;
    serve_later(conn);
}

static void note_paused(struct net_http_request *request)
{
    serve_later(conn_of(request));
}

static void authenticate(struct net_http_request *request, peg_str principal)
{
    const struct net_http_conn *conn = conn_of(request);

    if (conn->events.on_authenticate)
        conn->events.on_authenticate(conn->user, principal);
}

static const struct net_http_transport transport = {
    .begin = begin_answer,
    .send = send_bytes,
    .send_blob = send_blob,
    .is_writable = is_writable,
    .finish = finish_answer,
    .reset = reset_answer,
    .pause = note_paused,
    .authenticate = authenticate,
    .ref = net_http1_request_ref,
    .unref = net_http1_request_unref,
};

/* ---- a request ----------------------------------------------------------------------------- */

/* What cannot be read, or has not come whole, may still be one whose answer has no body. */
static bool is_head_request(const struct net_http_conn *conn)
{
    return peg__str_starts(conn->input, (peg_str)PEG_LIT("HEAD "));
}

/* The last answer, to what is no request. */
static enum step refuse_input(struct net_http_conn *conn, int status)
{
    const struct net_http_answer answer = {.status = status,
                                           .content_type = "text/plain; charset=utf-8"};
    const char *reason = net_http_reason(status);

    conn->stay = LEAVES;
    conn->output.is_chunked = false;
    if (net_http_output_head(&conn->output, &answer, (int64_t)strlen(reason) + 1, true, NULL) ||
        (!is_head_request(conn) && (net_http_output_text(&conn->output, reason) ||
                                    net_http_output_text(&conn->output, "\n"))))
        return drop_and_end(conn);
    conn->input.len = 0;
    return GOES_ON;
}

static enum step begin_request(struct net_http_conn *conn)
{
    struct net_http_head head;
    struct net_http1_request *own;
    size_t used = 0;
    int status;

    if (conn->stay == LEAVES)
        return close_and_end(conn);
    status = conn->input.len ? net_http_head_read(conn->input, &head, &used) : 0;
    if (status)
        return refuse_input(conn, status);
    if (used == 0)
        return WAITS;
    own = net_http1_request_new(conn, conn->stream, &head, peg__strn(conn->input.ptr, used));
    if (!own)
        return refuse_input(conn, 503);
    if (!net_http_request_read(&own->request)) {
        net_http1_request_unref(&own->request);
        return refuse_input(conn, 400);
    }
    conn->input = peg__str_from(conn->input, used);
    conn->request = own;
    own->request.transport = &transport;
    conn->wait = NO_WAIT;
    conn->is_1_0 = head.is_1_0;
    conn->keeps_alive = head.keeps_alive;
    conn->awaits_continue = head.awaits_continue;
    net_http_framing_begin(&conn->framing, &head);
    net_http_request_start(conn->server, &own->request);
    return GOES_ON;
}

/* ---- its body ------------------------------------------------------------------------------ */

static enum step await_body(struct net_http_conn *conn)
{
    if (!conn->awaits_continue || conn->request->request.has_begun)
        return WAITS;
    conn->awaits_continue = false;
    if (net_http_output_text(&conn->output, "HTTP/1.1 100 Continue\r\n\r\n"))
        return drop_and_end(conn);
    return GOES_ON;
}

static enum step take_piece(struct net_http_conn *conn)
{
    struct net_http_request *request = &conn->request->request;
    peg_str piece;
    const int status = net_http_framing_next(&conn->framing, &conn->input, &piece);

    conn->awaits_continue = false;
    if (status) {
        /* Where the next request would begin is not known. */
        conn->input.len = 0;
        if (conn->stay == STAYS)
            conn->stay = LEAVES;
        net_http_request_body_broke(request, status, "the chunks of the body cannot be read");
    } else if (piece.len > 0) {
        net_http_request_body(request, piece);
    }
    return GOES_ON;
}

static enum step take_body(struct net_http_conn *conn)
{
    struct net_http_request *request = &conn->request->request;

    if (request->is_paused && !request->is_finished)
        return WAITS;
    if (!net_http_framing_is_done(&conn->framing))
        return conn->input.len ? take_piece(conn) : await_body(conn);
    if (request->is_whole)
        return WAITS;
    net_http_request_body_end(request);
    return GOES_ON;
}

/* ---- one step after the other -------------------------------------------------------------- */

static enum step end_answered(struct net_http_conn *conn)
{
    end_request(conn, false);
    return conn->stay == LEAVES ? close_and_end(conn) : GOES_ON;
}

static enum step send_output(struct net_http_conn *conn)
{
    bool has_moved;
    const peg_status status = net_http_output_send(&conn->output, conn->stream, &has_moved);

    if (status && status != PEG_EIO)
        return drop_and_end(conn);
    if (has_moved)
        conn->wait = NO_WAIT; /* its time begins again */
    if (status)
        conn->stay = BROKEN;
    return status || net_stream_is_blocked(conn->stream) ? WAITS : GOES_ON;
}

static enum step take_step(struct net_http_conn *conn)
{
    enum step step;

    if (conn->stay == BROKEN)
        return WAITS;
    if (conn->stay == RESETS)
        return drop_and_end(conn);
    step = send_output(conn);
    if (step != GOES_ON)
        return step;
    if (is_answered(conn) && (net_http_framing_is_done(&conn->framing) || conn->stay == LEAVES))
        return end_answered(conn);
    if (conn->was_full) {
        conn->was_full = false;
        if (conn->request)
            net_http_request_writable(&conn->request->request);
        return GOES_ON;
    }
    return conn->request ? take_body(conn) : begin_request(conn);
}

/* Keeps what was not taken. False: no memory. */
static bool keep_input(struct net_http_conn *conn)
{
    const bool is_own = conn->in.len > 0;

    if (conn->input.len == 0)
        peg__buf_free(&conn->in);
    else if (!is_own)
        peg__buf_str(&conn->in, conn->input);
    else if (conn->input.ptr != conn->in.ptr)
        memmove(conn->in.ptr, conn->input.ptr, conn->input.len);
    if (!conn->in.status)
        conn->in.len = conn->input.len;
    conn->input = peg__buf_view(&conn->in);
    return !conn->in.status;
}

static enum wait what_waits(const struct net_http_conn *conn)
{
    if (net_http_output_pending(&conn->output) > 0 || net_stream_is_blocked(conn->stream))
        return WAITS_TO_SEND;
    if (conn->request)
        return is_answered(conn) ? WAITS_FOR_REST : NO_WAIT;
    return conn->input.len > 0 ? WAITS_FOR_HEAD : WAITS_IDLE;
}

/* A wait that goes on keeps its time. */
static void time_wait(struct net_http_conn *conn)
{
    const struct net_http_options *options = &conn->server->options;
    const int64_t ms[] = {
        [WAITS_IDLE] = options->idle_ms,
        [WAITS_FOR_HEAD] = options->head_ms,
        [WAITS_FOR_REST] = options->body_ms,
        [WAITS_TO_SEND] = options->send_ms,
    };
    const enum wait wait = what_waits(conn);

    if (wait == NO_WAIT)
        net_loop_disarm(conn->loop, &conn->timer);
    else if (wait != conn->wait)
        net_loop_arm(conn->loop, &conn->timer,
                     peg__clock_after_ms(net_loop_now_ns(conn->loop), ms[wait]));
    conn->wait = wait;
}

static bool wants_input(const struct net_http_conn *conn)
{
    return !net_stream_is_blocked(conn->stream) && conn->input.len < PEG_LIMIT_NET_HTTP_HEAD_BYTES;
}

/* False: the connection is gone. */
static bool serve(struct net_http_conn *conn)
{
    enum step step = GOES_ON;

    conn->is_serving = true;
    for (unsigned n = 0; n < STEPS_AT_ONCE && step == GOES_ON; n++)
        step = take_step(conn);
    if (step == GONE)
        return false;
    conn->is_serving = false;
    if (!keep_input(conn)) {
        drop_and_end(conn);
        return false;
    }
    if (step == GOES_ON)
        net_loop_later(conn->loop, &conn->later);
    if (step == WAITS && wants_input(conn))
        net_stream_resume(conn->stream);
    else if (conn->stay != BROKEN)
        net_stream_pause(conn->stream);
    time_wait(conn);
    if (conn->events.on_memory)
        conn->events.on_memory(conn->user);
    return true;
}

/* ---- events of the stream and the loop ----------------------------------------------------- */

/* A short request that is answered quickly does not wait in the fair queue. */
static void on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct net_http_conn *conn = user;
    const int64_t from_ns = peg__mono_ns();
    bool is_quick;

    if (conn->stay == BROKEN)
        return;
    if (conn->input.len == 0) {
        conn->input = peg__strn((const char *)bytes, len);
    } else {
        peg__buf_add(&conn->in, bytes, len);
        conn->input = peg__buf_view(&conn->in);
        if (conn->in.status) {
            drop_and_end(conn);
            return;
        }
    }
    if (!serve(conn))
        return;
    is_quick = len < MAX_READ && peg__mono_ns() - from_ns <= net_loop_fair_queue_ns(conn->loop);
    net_stream_set_fair_queue(conn->stream, is_quick ? NET_FAIR_QUEUE_ENDS : NET_FAIR_QUEUE_READS);
}

static void on_drained(void *user)
{
    (void)serve(user);
}

static void on_closed(void *user, const peg_error *error)
{
    (void)error; /* clients come and go */
    end_conn(user);
}

static void on_later(struct net_later *later)
{
    (void)serve(peg__container_of(later, struct net_http_conn, later));
}

static void on_timer(struct net_timer *timer)
{
    struct net_http_conn *conn = peg__container_of(timer, struct net_http_conn, timer);

    if (conn->wait == WAITS_IDLE) {
        close_and_end(conn);
    } else if (conn->wait == WAITS_FOR_HEAD) {
        if (refuse_input(conn, 408) == GOES_ON)
            (void)serve(conn);
    } else {
        drop_and_end(conn);
    }
}

static const struct net_stream_events stream_events = {
    .on_bytes = on_bytes,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

/* ---- the face ------------------------------------------------------------------------------ */

peg_status net_http_conn_new(struct net_http_server *server, struct net_stream *stream,
                             const struct net_http_conn_events *events, void *user, peg_str first,
                             struct net_http_conn **ret_conn)
{
    struct net_http_conn *conn = peg__alloc_zero(1, sizeof(*conn));
    peg_status status = PEG_ENOMEM;

    if (conn) {
        conn->in.max = PEG_LIMIT_NET_HTTP_HEAD_BYTES + NET_READ_BYTES;
        conn->output.bytes.max = SIZE_MAX / 2;
        peg__buf_str(&conn->in, first);
        status = conn->in.status;
    }
    if (status) {
        if (conn)
            peg__buf_free(&conn->in);
        peg__free(conn);
        net_stream_drop(stream);
        return status;
    }
    conn->stream = stream;
    conn->loop = net_stream_loop(stream);
    conn->server = server;
    conn->events = *events;
    conn->user = user;
    conn->input = peg__buf_view(&conn->in);
    conn->timer.fn = on_timer;
    conn->later.fn = on_later;
    net_stream_set_events(stream, &stream_events, conn);
    net_stream_set_max_read(stream, MAX_READ);
    time_wait(conn);
    if (first.len) {
        net_stream_pause(stream);
        net_loop_later(conn->loop, &conn->later);
    }
    *ret_conn = conn;
    return PEG_OK;
}

void net_http_conn_leave(struct net_http_conn *conn)
{
    if (conn->stay != STAYS)
        return;
    conn->stay = LEAVES;
    if (!conn->request && net_http_output_pending(&conn->output) == 0)
        close_and_end(conn);
}

void net_http_conn_drop(struct net_http_conn *conn)
{
    net_stream_drop(conn->stream);
    free_conn(conn);
}

size_t net_http_conn_memory(const struct net_http_conn *conn)
{
    const struct net_http1_request *own = conn->request;

    return sizeof(*conn) + conn->in.capacity + net_http_output_memory(&conn->output) +
           (own ? sizeof(*own) + own->arena.held + own->request.body.capacity : 0);
}
