/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One call on the wire, either side. What comes:
 *
 *   session_input.c -> grpc__stream_data -> deliver -> on_message
 *                      grpc__stream_remote_end      -> on_remote_end
 *
 * and, while the stream is paused, waits in `waiting` until grpc_stream_resume(). The peer may
 * send as much as its window allows; the window opens again when bytes leave `waiting` or were
 * delivered. What goes: stream_send.c.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/session_internal.h"

/* A call that is used again keeps small buffers; large ones are rare. */
enum { KEPT_BYTES = 16 << 10 };

static void forget_bytes(struct peg__buf *buf, size_t max)
{
    if (buf->capacity > KEPT_BYTES)
        peg__buf_free(buf);
    peg__buf_clear(buf);
    buf->max = max;
}

static void forget_shared(struct grpc_stream *stream)
{
    stream->shared = peg__blob_unref(stream->shared);
    stream->shared_rest = (peg_str){NULL, 0};
}

void grpc_stream_init(struct grpc_stream *stream, const struct grpc_stream_events *events,
                      struct peg__arena *arena, size_t max_message, size_t max_header_bytes)
{
    memset(stream, 0, offsetof(struct grpc_stream, head));
    forget_bytes(&stream->out, SIZE_MAX / 2);
    forget_bytes(&stream->waiting, SIZE_MAX / 2);
    forget_shared(stream);
    grpc_reader_init(&stream->reader, max_message);
    stream->events = events;
    stream->arena = arena;
    stream->max_out = PEG_LIMIT_GRPC_SEND_BYTES;
    stream->content_length = -1;
    grpc_head_init(&stream->head, arena, max_header_bytes);
}

void grpc_stream_free(struct grpc_stream *stream)
{
    peg__buf_free(&stream->out);
    peg__buf_free(&stream->waiting);
    forget_shared(stream);
    grpc_reader_free(&stream->reader);
}

/* ---- what it holds -------------------------------------------------------------------------- */

size_t grpc_stream_buffers(const struct grpc_stream *stream)
{
    return stream->out.capacity + stream->waiting.capacity + grpc_reader_memory(&stream->reader);
}

void grpc__stream_measure(struct grpc_stream *stream)
{
    enum { AT_REST = 2048 }; /* a stream and its call, with small buffers */
    struct grpc_session *session = stream->session;
    const size_t memory = AT_REST + stream->arena->held + stream->kept +
                          grpc_stream_buffers(stream) + stream->shared_rest.len;

    session->memory += memory - stream->memory;
    stream->memory = memory;
}

/* ---- on the wire, off the wire ------------------------------------------------------------ */

void grpc__stream_attach(struct grpc_stream *stream, struct grpc_session *session, int32_t id)
{
    stream->session = session;
    stream->id = id;
    stream->window_beyond = 0;
    grpc__session_add(session, stream);
    session->queued += grpc__stream_pending(stream);
    grpc__stream_measure(stream);
}

static void detach(struct grpc_stream *stream)
{
    struct grpc_session *session = stream->session;

    for (struct grpc__guard *guard = session->guards; guard; guard = guard->outer) {
        if (guard->stream == stream)
            guard->stream = NULL;
    }
    grpc__stream_leave_queue(stream);
    grpc__session_remove(session, stream);
    if (!session->options.is_client && stream->remote_ended)
        grpc__session_note_ended(session, stream->id);
    if (session->options.is_client && stream->has_begun)
        session->n_active--;
    session->held -= stream->held;
    session->memory -= stream->memory;
    session->queued -= grpc__stream_pending(stream);
    forget_shared(stream);
    stream->held = stream->memory = 0;
    stream->session = NULL;
}

void grpc__stream_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    detach(stream);
    stream->events->on_closed(stream, h2_error);
}

static void say_reset(struct grpc_session *session, int32_t id, uint32_t h2_error)
{
    uint8_t *to;

    if (session->is_lost || session->is_dead)
        return;
    to = grpc__session_control(session, GRPC_H2_U32_FRAME_BYTES);
    if (to)
        grpc_h2_write_u32_frame(to, GRPC_H2_RST_STREAM, id, h2_error);
}

/* What the peer never heard of needs no end. */
void grpc_stream_drop(struct grpc_stream *stream, uint32_t h2_error)
{
    struct grpc_session *session = stream->session;

    if (!session)
        return;
    if (stream->has_begun || !session->options.is_client)
        say_reset(session, stream->id, stream->must_reset ? stream->reset_code : h2_error);
    detach(stream);
    grpc__session_output(session);
}

void grpc_stream_reset(struct grpc_stream *stream, uint32_t h2_error)
{
    if (!stream->session)
        return;
    stream->local_ended = true;
    if (!stream->must_reset) {
        stream->must_reset = true;
        stream->reset_code = h2_error;
        grpc__stream_schedule(stream);
    }
    grpc__session_output(stream->session);
}

/* ---- what cannot be read ------------------------------------------------------------------ */

static void tell_broken(struct grpc_stream *stream)
{
    if (stream->told_broken)
        return;
    stream->told_broken = true;
    stream->events->on_broken(stream, &stream->broken);
}

/* Nobody will read it any more. */
static void let_go(struct grpc_stream *stream)
{
    stream->session->held -= stream->held;
    stream->held = 0;
    peg__buf_free(&stream->waiting);
    grpc_reader_free(&stream->reader);
    grpc__stream_measure(stream);
}

/* Before the headers are whole it is only noted: an answer has to wait for their end. */
void grpc__stream_broke(struct grpc_stream *stream, enum grpc_code code, const peg_error *error)
{
    const peg_str words = peg__str(error->message);
    const char *copy = peg__arena_copy(stream->arena, words);

    stream->is_broken = true;
    stream->broken = copy ? (struct grpc_status){.code = code, .message = {copy, words.len}}
                          : GRPC_STATUS(GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
    let_go(stream);
    if (stream->has_head)
        tell_broken(stream);
}

static enum grpc_code code_of_reader(peg_status status)
{
    switch (status) {
    case PEG_ELIMIT:
    case PEG_ENOMEM:
        return GRPC_RESOURCE_EXHAUSTED;
    case PEG_EUNSUPPORTED:
        return GRPC_UNIMPLEMENTED;
    default:
        return GRPC_INTERNAL;
    }
}

/* ---- headers ------------------------------------------------------------------------------ */

/* 1xx: the answer is still to come. Each block takes memory, so they come to an end. */
static bool is_interim(struct grpc_stream *stream)
{
    peg_error error;

    if (stream->is_broken || stream->head.http_status < 100 || stream->head.http_status >= 200)
        return false;
    if (++stream->n_interim <= PEG_LIMIT_GRPC_INTERIM)
        return true;
    peg__fail(&error, PEG_ELIMIT, "E_HTTP2_LIMIT",
              "the server sends headers of status 1xx, more than PEG_LIMIT_GRPC_INTERIM (%d), and "
              "no answer",
              PEG_LIMIT_GRPC_INTERIM);
    grpc__stream_broke(stream, GRPC_INTERNAL, &error);
    return false;
}

void grpc__stream_head_done(struct grpc_stream *stream, bool is_end)
{
    const struct grpc_head *head = &stream->head;

    if (stream->has_head && !stream->is_broken)
        return; /* trailers: the end of the stream tells them */
    if (!is_end && is_interim(stream))
        return;
    stream->has_head = true;
    grpc__stream_measure(stream);
    stream->reader.encoding = head->encoding;
    if (stream->is_broken)
        tell_broken(stream);
    else
        stream->events->on_headers(stream);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* It is told when it is worth a frame. */
void grpc__stream_open_window(struct grpc_stream *stream, size_t n)
{
    stream->n_free += (uint32_t)n;
    if (stream->remote_ended || stream->must_reset || stream->owes_window || stream->n_free == 0 ||
        stream->n_free < stream->session->options.stream_window / 2)
        return;
    stream->owes_window = true;
    grpc__stream_schedule(stream);
}

/* Hands over the messages that are in *bytes, as long as somebody wants them. False: the stream is
 * off the wire and perhaps gone. */
static bool deliver(struct grpc_stream *stream, peg_str *bytes)
{
    struct grpc_session *session = stream->session;
    struct grpc__guard guard = {.stream = stream, .outer = session->guards};

    session->guards = &guard;
    session->n_busy++;
    stream->is_delivering = true;
    while (guard.stream && !stream->is_paused && !stream->is_broken) {
        bool has_message;
        peg_str message;
        peg_error error;
        const peg_status status =
            grpc_reader_next(&stream->reader, bytes, &has_message, &message, &error);

        if (status)
            grpc__stream_broke(stream, code_of_reader(status), &error);
        else if (!has_message)
            break;
        else {
            stream->n_steps++;
            stream->events->on_message(stream, message);
        }
    }
    session->n_busy--;
    session->guards = guard.outer;
    if (!guard.stream)
        return false;
    stream->is_delivering = false;
    grpc_reader_release(&stream->reader); /* the next message may be long in coming */
    return true;
}

void grpc_stream_keep(struct grpc_stream *stream, size_t n)
{
    stream->kept += n;
}

/* What a stream holds belongs to the connection's bound. */
static void count_held(struct grpc_stream *stream)
{
    struct grpc_session *session = stream->session;
    const size_t held = stream->waiting.len + grpc_reader_held(&stream->reader) + stream->kept;
    peg_error error;

    session->held += held - stream->held;
    stream->held = held;
    grpc__stream_measure(stream);
    if (session->held <= session->options.max_held || held == 0)
        return;
    peg__fail(&error, PEG_ELIMIT, "E_HELD_BYTES",
              "this connection has more than %zu bytes of unfinished messages "
              "(PEG_LIMIT_GRPC_HELD_BYTES): send fewer at once",
              session->options.max_held);
    grpc__stream_broke(stream, GRPC_RESOURCE_EXHAUSTED, &error);
}

static void keep(struct grpc_stream *stream, peg_str bytes)
{
    peg_error error;

    if (stream->max_waiting && stream->waiting.len + bytes.len > stream->max_waiting) {
        peg__fail(&error, PEG_ELIMIT, "E_HELD_BYTES",
                  "more than %zu bytes wait to be read on this stream: read the answers first",
                  stream->max_waiting);
        grpc__stream_broke(stream, GRPC_RESOURCE_EXHAUSTED, &error);
        return;
    }
    peg__buf_str(&stream->waiting, bytes);
    if (!stream->waiting.status)
        return;
    peg__fail_nomem(&error);
    grpc__stream_broke(stream, GRPC_RESOURCE_EXHAUSTED, &error);
}

void grpc__stream_data(struct grpc_stream *stream, peg_str bytes)
{
    const size_t len = bytes.len;

    if (stream->waiting.len == 0 && !stream->is_paused) {
        if (!deliver(stream, &bytes))
            return;
        /* Nobody waits for the rest of what is broken. */
        grpc__stream_open_window(stream, stream->is_broken ? len : len - bytes.len);
    }
    if (bytes.len > 0 && !stream->is_broken)
        keep(stream, bytes);
    if (!stream->is_broken)
        count_held(stream);
}

static void tell_remote_end(struct grpc_stream *stream)
{
    peg_error error;

    if (stream->told_remote_end || !stream->remote_ended || stream->is_paused ||
        stream->is_broken || stream->waiting.len > 0)
        return;
    stream->told_remote_end = true;
    if (grpc_reader_held(&stream->reader) == 0) {
        stream->events->on_remote_end(stream);
        return;
    }
    peg__fail(&error, PEG_EPARSE, "E_GRPC_FRAME", "the stream ended within a message");
    grpc__stream_broke(stream, GRPC_INTERNAL, &error);
}

void grpc__stream_remote_end(struct grpc_stream *stream)
{
    stream->remote_ended = true;
    tell_remote_end(stream);
}

void grpc_stream_pause(struct grpc_stream *stream)
{
    stream->is_paused = true;
}

void grpc_stream_resume(struct grpc_stream *stream)
{
    struct grpc_session *session = stream->session;
    peg_str bytes = peg__buf_view(&stream->waiting);
    const size_t len = bytes.len;

    stream->is_paused = false;
    if (!session || stream->is_delivering)
        return;
    if (len > 0) {
        const bool is_there = deliver(stream, &bytes);

        if (is_there)
            grpc__stream_open_window(stream, stream->is_broken ? len : len - bytes.len);
        grpc__session_output(session);
        if (!is_there || stream->is_broken)
            return;
        memmove(stream->waiting.ptr, bytes.ptr, bytes.len);
        stream->waiting.len = bytes.len;
        count_held(stream);
    }
    if (stream->session)
        tell_remote_end(stream);
}
