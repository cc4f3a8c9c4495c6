/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output, in this order: what is left of a block of headers that did not fit, frames of the
 * connection, new calls, streams with something that needs no window, and then, while that of the
 * connection is open, streams with messages, a frame each in rotation. A stream that waits for its
 * own window, or has nothing to send, costs nothing. A whole answer (headers, message, trailers) is
 * written at once; DATA is copied once, from the stream's `out` and what it shares.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"

enum {
    LEAST = 2 * GRPC_H2_U32_FRAME_BYTES, /* space with which a stream begins to send */
    /* Ours: what a program may add as headers, trailers and details, all in one block and in base
     * 64, and the protocol's own beside it. */
    MAX_BLOCK = 5 * PEG_LIMIT_GRPC_METADATA_BYTES,
    LITTLE = 256, /* space for which a frame is not cut */
    KEPT_CONTROL = 512,
};

/* ---- queues ------------------------------------------------------------------------------- */

void grpc__stream_leave_queue(struct grpc_stream *stream)
{
    struct grpc__queue *queue = stream->queue;

    if (!queue)
        return;
    PEG_QUEUE_REMOVE(queue, stream, queue_next, queue_prev);
    stream->queue = NULL;
}

static void join_queue(struct grpc_stream *stream, struct grpc__queue *queue)
{
    stream->queue = queue;
    PEG_QUEUE_APPEND(queue, stream, queue_next, queue_prev);
}

static struct grpc__queue *queue_for(const struct grpc_stream *stream)
{
    struct grpc_session *session = stream->session;

    if (stream->must_reset)
        return &session->ready;
    if (stream->has_sent_headers && !stream->has_begun)
        return session->options.is_client ? &session->unsent : &session->ready;
    if (stream->owes_window)
        return &session->ready;
    if (stream->has_sent_end || (!stream->has_begun && !stream->awaits_window))
        return NULL;
    if (grpc__stream_pending(stream) == 0 && (stream->local_ended || !stream->awaits_window))
        return stream->local_ended ? &session->ready : NULL;
    if (grpc__stream_window(stream) <= 0)
        return &session->shut;
    return &session->sending;
}

void grpc__stream_schedule(struct grpc_stream *stream)
{
    struct grpc__queue *queue = queue_for(stream);

    if (queue == stream->queue)
        return;
    grpc__stream_leave_queue(stream);
    if (queue)
        join_queue(stream, queue);
}

/* Behind the others that send. */
static void requeue(struct grpc_stream *stream)
{
    struct grpc__queue *queue = queue_for(stream);

    grpc__stream_leave_queue(stream);
    if (queue)
        join_queue(stream, queue);
}

/* The peer gave every stream more: schedules those that waited, once for all such SETTINGS. */
static void take_wider_windows(struct grpc_session *session)
{
    struct grpc_stream *next;

    session->has_wider_windows = false;
    for (struct grpc_stream *stream = session->shut.first; stream; stream = next) {
        next = stream->queue_next;
        grpc__stream_schedule(stream);
    }
}

/* ---- space --------------------------------------------------------------------------------- */

void grpc__session_output(struct grpc_session *session)
{
    /* The caller of feed checks for output afterwards. */
    if (session->n_busy == 0)
        session->events->on_output(session->user);
}

uint8_t *grpc__session_control(struct grpc_session *session, size_t len)
{
    struct peg__buf *control = &session->control;
    const size_t waits = control->len - session->control_sent;
    uint8_t *to;

    if (session->control_sent > waits) {
        memmove(control->ptr, control->ptr + session->control_sent, waits);
        control->len = waits;
        session->control_sent = 0;
    }
    to = (uint8_t *)peg__buf_reserve(control, len);
    if (to)
        control->len += len;
    else
        grpc__session_lose(session);
    return to;
}

uint8_t *grpc__session_answer(struct grpc_session *session, size_t len)
{
    if (session->control.len - session->control_sent <= PEG_LIMIT_GRPC_CONTROL_BYTES)
        return grpc__session_control(session, len);
    grpc__session_flooded(session, "frames that need an answer, and does not read the answers");
    return NULL;
}

static size_t free_bytes(const struct grpc_session *session)
{
    return session->out_max - session->out_len;
}

/* The place of a frame that fits. */
static uint8_t *reserve_frame(struct grpc_session *session, size_t len)
{
    uint8_t *to = session->out + session->out_len;

    session->out_len += len;
    return to;
}

/* Hands over bytes that were readied. True: all of them. */
static bool put_readied(struct grpc_session *session, struct peg__buf *buf, size_t *sent,
                        size_t kept)
{
    const size_t waits = buf->len - *sent;
    const size_t n = waits < free_bytes(session) ? waits : free_bytes(session);

    memcpy(reserve_frame(session, n), buf->ptr + *sent, n);
    *sent += n;
    if (n < waits)
        return false;
    *sent = 0;
    if (buf->capacity > kept)
        peg__buf_free(buf);
    peg__buf_clear(buf);
    return true;
}

/* ---- blocks of headers -------------------------------------------------------------------- */

/* A block that does not fit is written apart, and handed over piece by piece. */
static bool spill_block(struct grpc_session *session, int32_t id, const struct grpc_block *block,
                        size_t bound, uint8_t flags)
{
    const size_t n_frames = bound / GRPC_H2_FRAME_BYTES + 1;
    PEG_CLEANUP(peg__freep) uint8_t *bytes = peg__alloc(bound);
    uint8_t *to =
        (uint8_t *)peg__buf_reserve(&session->spill, bound + n_frames * GRPC_H2_HEAD_BYTES);
    size_t left;

    if (!bytes || !to) {
        grpc__session_lose(session);
        return false;
    }
    left = grpc_hpack_encode(&session->encoder, block->fields, block->n, block->is_static, bytes);
    for (const uint8_t *at = bytes; at == bytes || left > 0;) {
        const size_t n = left < GRPC_H2_FRAME_BYTES ? left : GRPC_H2_FRAME_BYTES;
        const uint8_t mark = n == left ? GRPC_H2_END_HEADERS : 0;
        const struct grpc_h2_head head = {.len = (uint32_t)n,
                                          .type =
                                              at == bytes ? GRPC_H2_HEADERS : GRPC_H2_CONTINUATION,
                                          .flags = (uint8_t)(mark | (at == bytes ? flags : 0)),
                                          .id = id};

        to = grpc_h2_write_head(to, &head);
        memcpy(to, at, n);
        to += n;
        at += n;
        left -= n;
        session->spill.len += GRPC_H2_HEAD_BYTES + n;
    }
    session->spill_id = id;
    return true;
}

enum put {
    PUT,
    NO_ROOM, /* now */
    TOO_LARGE,
};

static enum put put_header_block(struct grpc_session *session, int32_t id,
                                 const struct grpc_block *block, uint8_t flags)
{
    const size_t bound = grpc_hpack_bound(block->fields, block->n);
    const size_t need = GRPC_H2_HEAD_BYTES + bound;
    struct grpc_h2_head head = {
        .type = GRPC_H2_HEADERS, .flags = GRPC_H2_END_HEADERS | flags, .id = id};
    uint8_t *to;

    if (bound > MAX_BLOCK)
        return TOO_LARGE;
    if (need > free_bytes(session) || bound > GRPC_H2_FRAME_BYTES) {
        if (need <= session->out_max && bound <= GRPC_H2_FRAME_BYTES && session->out_len > 0)
            return NO_ROOM;
        return spill_block(session, id, block, bound, flags) ? PUT : NO_ROOM;
    }
    to = session->out + session->out_len;
    head.len = (uint32_t)grpc_hpack_encode(&session->encoder, block->fields, block->n,
                                           block->is_static, to + GRPC_H2_HEAD_BYTES);
    grpc_h2_write_head(to, &head);
    session->out_len += GRPC_H2_HEAD_BYTES + head.len;
    return PUT;
}

/* ---- one stream. Each of these returns false if it did not fit ----------------------------- */

/* The last of it was written. A server that has answered does not wait for the client's end, unless
 * that is near. The stream may be gone afterwards. */
static void note_end_sent(struct grpc_session *session, struct grpc_stream *stream)
{
    stream->has_sent_end = true;
    if (stream->remote_ended) {
        grpc__stream_closed(stream, GRPC_H2_NO_ERROR);
        return;
    }
    if (!session->options.is_client && !stream->awaits_end) {
        stream->must_reset = true;
        stream->reset_code = GRPC_H2_NO_ERROR;
    }
    requeue(stream);
}

/* A block that cannot be sent would leave its stream open for ever. */
static bool reset_unsendable(struct grpc_stream *stream)
{
    stream->must_reset = true;
    stream->reset_code = GRPC_H2_INTERNAL_ERROR;
    grpc__stream_schedule(stream);
    return true;
}

/* A stream that the peer does not know ends without a frame. */
static bool write_reset(struct grpc_session *session, struct grpc_stream *stream)
{
    if (stream->has_begun || !session->options.is_client)
        grpc_h2_write_u32_frame(reserve_frame(session, GRPC_H2_U32_FRAME_BYTES), GRPC_H2_RST_STREAM,
                                stream->id, stream->reset_code);
    grpc__stream_closed(stream, stream->reset_code);
    return true;
}

static void write_window(struct grpc_session *session, struct grpc_stream *stream)
{
    stream->owes_window = false;
    grpc_h2_write_u32_frame(reserve_frame(session, GRPC_H2_U32_FRAME_BYTES), GRPC_H2_WINDOW_UPDATE,
                            stream->id, stream->n_free);
    stream->n_unreturned -= stream->n_free;
    stream->n_free = 0;
}

/* What waits is in `out`, and behind it in what is shared. */
static void copy_waiting(const struct grpc_stream *stream, uint8_t *to, size_t n)
{
    const size_t own = stream->out.len - stream->out_sent;
    const size_t n_own = n < own ? n : own;

    if (n_own > 0)
        memcpy(to, stream->out.ptr + stream->out_sent, n_own);
    if (n > n_own)
        memcpy(to + n_own, stream->shared_rest.ptr, n - n_own);
}

static void write_data(struct grpc_session *session, struct grpc_stream *stream, size_t n,
                       bool is_end)
{
    const struct grpc_h2_head head = {.len = (uint32_t)n,
                                      .type = GRPC_H2_DATA,
                                      .flags = is_end ? GRPC_H2_END_STREAM : 0,
                                      .id = stream->id};
    uint8_t *to = grpc_h2_write_head(reserve_frame(session, GRPC_H2_HEAD_BYTES + n), &head);

    copy_waiting(stream, to, n);
    stream->window_beyond -= (int64_t)n;
    session->window -= (int64_t)n;
}

/* Behind the last message. */
static bool write_end(struct grpc_session *session, struct grpc_stream *stream)
{
    if (!stream->trailers) {
        write_data(session, stream, 0, true);
        note_end_sent(session, stream);
        return true;
    }
    switch (put_header_block(session, stream->id, stream->trailers, GRPC_H2_END_STREAM)) {
    case PUT:
        session->has_new_output = true;
        note_end_sent(session, stream);
        return true;
    case NO_ROOM:
        return false;
    default:
        return reset_unsendable(stream);
    }
}

/* How much of its messages can go now, into so many bytes. */
static size_t sendable_bytes(const struct grpc_session *session, const struct grpc_stream *stream,
                             size_t room)
{
    const int64_t own = grpc__stream_window(stream);
    const int64_t window = own < session->window ? own : session->window;
    size_t n = grpc__stream_pending(stream);

    if (n > GRPC_H2_FRAME_BYTES)
        n = GRPC_H2_FRAME_BYTES;
    if ((int64_t)n > window)
        n = (size_t)window;
    if (n > room)
        n = room < LITTLE ? 0 : room;
    return n;
}

/* Some of it is gone. The stream may be gone afterwards. */
static void note_message_sent(struct grpc_stream *stream, size_t n)
{
    const bool is_writable = grpc__stream_took(stream, n);

    requeue(stream);
    if (is_writable)
        stream->events->on_writable(stream);
}

static bool write_messages(struct grpc_session *session, struct grpc_stream *stream)
{
    const struct grpc__queue *place = queue_for(stream);
    const size_t room = free_bytes(session);
    bool is_last;
    size_t n;

    if (place != &session->ready && (place != &session->sending || session->window <= 0)) {
        grpc__stream_schedule(stream);
        return true;
    }
    if (grpc__stream_pending(stream) == 0 && !stream->local_ended) {
        stream->awaits_window = false;
        requeue(stream);
        stream->events->on_writable(stream);
        return true;
    }
    if (grpc__stream_pending(stream) == 0)
        return room >= GRPC_H2_HEAD_BYTES && write_end(session, stream);
    n = room > GRPC_H2_HEAD_BYTES ? sendable_bytes(session, stream, room - GRPC_H2_HEAD_BYTES) : 0;
    if (n == 0)
        return false;
    is_last = n == grpc__stream_pending(stream) && stream->local_ended;
    write_data(session, stream, n, is_last && !stream->trailers);
    if (!is_last) {
        note_message_sent(stream, n);
        return true;
    }
    (void)grpc__stream_took(stream, n); /* not reported: nothing more can be sent */
    if (!stream->trailers) {
        note_end_sent(session, stream);
        return true;
    }
    if (write_end(session, stream))
        return true;
    grpc__stream_schedule(stream); /* what is left needs no window */
    return false;
}

/* A server's block may be the whole answer. Clients end with DATA always: there are servers (of
 * grpc-go) that wait for it. */
static bool write_stream_headers(struct grpc_session *session, struct grpc_stream *stream)
{
    const bool is_all = !session->options.is_client && stream->local_ended && !stream->trailers &&
                        grpc__stream_pending(stream) == 0;

    switch (
        put_header_block(session, stream->id, &stream->headers, is_all ? GRPC_H2_END_STREAM : 0)) {
    case PUT:
        break;
    case NO_ROOM:
        return false;
    default:
        return reset_unsendable(stream);
    }
    stream->has_begun = true;
    stream->has_left = session->spill.len == 0;
    if (session->options.is_client) {
        session->last_sent_id = stream->id;
        session->n_active++;
    }
    if (is_all) {
        note_end_sent(session, stream);
        return true;
    }
    grpc__stream_schedule(stream);
    return session->spill.len > 0 || write_messages(session, stream);
}

static bool write_stream(struct grpc_session *session, struct grpc_stream *stream)
{
    if (free_bytes(session) < LEAST)
        return false;
    if (stream->must_reset)
        return write_reset(session, stream);
    if (stream->owes_window)
        write_window(session, stream);
    if (stream->has_sent_headers && !stream->has_begun)
        return write_stream_headers(session, stream);
    return write_messages(session, stream);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static bool owes_window(const struct grpc_session *session)
{
    return session->n_unreturned > 0 &&
           2 * session->n_unreturned >= session->options.session_window;
}

/* A client has no more calls on the wire than the server takes. */
static struct grpc_stream *next_stream(const struct grpc_session *session)
{
    if (session->unsent.first && session->n_active < session->peer_max_streams &&
        !session->was_sent_away)
        return session->unsent.first;
    if (session->ready.first)
        return session->ready.first;
    return session->window > 0 ? session->sending.first : NULL;
}

static bool put_spilled(struct grpc_session *session)
{
    struct grpc_stream *stream;

    if (!put_readied(session, &session->spill, &session->spill_sent, 0))
        return false;
    stream = grpc__session_find(session, session->spill_id);
    if (stream)
        stream->has_left = true;
    return true;
}

static bool put_window(struct grpc_session *session)
{
    if (free_bytes(session) < GRPC_H2_U32_FRAME_BYTES)
        return false;
    grpc_h2_write_u32_frame(reserve_frame(session, GRPC_H2_U32_FRAME_BYTES), GRPC_H2_WINDOW_UPDATE,
                            0, (uint32_t)session->n_unreturned);
    session->n_unreturned = 0;
    return true;
}

/* False: there is no room, or nothing more. */
static bool put_more(struct grpc_session *session)
{
    struct grpc_stream *stream;

    if (session->spill.len > 0 && !put_spilled(session))
        return false;
    if (session->control.len > 0 &&
        !put_readied(session, &session->control, &session->control_sent, KEPT_CONTROL))
        return false;
    if (session->is_dead)
        return false;
    if (owes_window(session) && !put_window(session))
        return false;
    stream = next_stream(session);
    return stream && write_stream(session, stream);
}

size_t grpc_session_pull(struct grpc_session *session, uint8_t *ret_bytes, size_t max)
{
    session->out = ret_bytes;
    session->out_len = 0;
    session->out_max = max;
    session->n_busy++;
    if (session->has_wider_windows)
        take_wider_windows(session);
    while (!session->is_lost && put_more(session))
        ;
    session->n_busy--;
    session->out = NULL;
    return session->out_len;
}

bool grpc_session_has_output(const struct grpc_session *session)
{
    if (session->is_lost)
        return false;
    if (session->spill.len > 0 || session->control.len > 0)
        return true;
    return !session->is_dead && (owes_window(session) || next_stream(session));
}
