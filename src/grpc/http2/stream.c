/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One call on the wire, either side. Input:
 *
 *   session_input.c -> grpc__stream_data -> deliver_messages -> on_message
 *                      grpc__stream_remote_end               -> on_remote_end
 *
 * While the stream is paused, bytes wait in `waiting` until grpc_stream_resume(). The peer may send
 * as much as its window allows; it opens again when bytes leave `waiting` or were delivered.
 *
 * Output: blocks of headers, and messages that wait in `out` until session_output.c takes them.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/message.h"

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

static void detach_stream(struct grpc_stream *stream)
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
    detach_stream(stream);
    stream->events->on_closed(stream, h2_error);
}

static void put_reset(struct grpc_session *session, int32_t id, uint32_t h2_error)
{
    uint8_t *to;

    if (session->is_lost || session->is_dead)
        return;
    to = grpc__session_control(session, GRPC_H2_U32_FRAME_BYTES);
    if (to)
        grpc_h2_write_u32_frame(to, GRPC_H2_RST_STREAM, id, h2_error);
}

/* A stream that the peer does not know needs no end. */
void grpc_stream_drop(struct grpc_stream *stream, uint32_t h2_error)
{
    struct grpc_session *session = stream->session;

    if (!session)
        return;
    if (stream->has_begun || !session->options.is_client)
        put_reset(session, stream->id, stream->must_reset ? stream->reset_code : h2_error);
    detach_stream(stream);
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

static void report_broken(struct grpc_stream *stream)
{
    if (stream->reported_broken)
        return;
    stream->reported_broken = true;
    stream->events->on_broken(stream, &stream->broken);
}

static void free_input(struct grpc_stream *stream)
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
    const peg_str message = peg__str(error->message);
    const char *copy = peg__arena_copy(stream->arena, message);

    stream->is_broken = true;
    stream->broken = copy ? (struct grpc_status){.code = code, .message = {copy, message.len}}
                          : GRPC_STATUS(GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
    free_input(stream);
    if (stream->has_head)
        report_broken(stream);
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
              "the server sends more than %d headers of status 1xx, and no answer",
              PEG_LIMIT_GRPC_INTERIM);
    grpc__stream_broke(stream, GRPC_INTERNAL, &error);
    return false;
}

void grpc__stream_head_done(struct grpc_stream *stream, bool is_end)
{
    if (stream->has_head && !stream->is_broken)
        return; /* trailers: they come with the end of the stream */
    if (!is_end && is_interim(stream))
        return;
    stream->has_head = true;
    grpc__stream_measure(stream);
    stream->reader.encoding = stream->head.encoding;
    if (stream->is_broken)
        report_broken(stream);
    else
        stream->events->on_headers(stream);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* Reported once it is worth a frame. */
void grpc__stream_open_window(struct grpc_stream *stream, size_t n)
{
    stream->n_free += (uint32_t)n;
    if (stream->remote_ended || stream->must_reset || stream->owes_window || stream->n_free == 0 ||
        stream->n_free < stream->session->options.stream_window / 2)
        return;
    stream->owes_window = true;
    grpc__stream_schedule(stream);
}

/* Delivers the messages in *bytes until the stream is paused. False: it is off the wire and perhaps
 * gone. */
static bool deliver_messages(struct grpc_stream *stream, peg_str *bytes)
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
    peg__fail(&error, PEG_ELIMIT, "E_HELD_LIMIT",
              "this connection has more than %zu bytes of unfinished messages: send fewer at once",
              session->options.max_held);
    grpc__stream_broke(stream, GRPC_RESOURCE_EXHAUSTED, &error);
}

static void keep_waiting(struct grpc_stream *stream, peg_str bytes)
{
    peg_error error;

    if (stream->max_waiting && stream->waiting.len + bytes.len > stream->max_waiting) {
        peg__fail(&error, PEG_ELIMIT, "E_HELD_LIMIT",
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
        if (!deliver_messages(stream, &bytes))
            return;
        grpc__stream_open_window(stream, stream->is_broken ? len : len - bytes.len);
    }
    if (bytes.len > 0 && !stream->is_broken)
        keep_waiting(stream, bytes);
    if (!stream->is_broken)
        count_held(stream);
}

static void report_remote_end(struct grpc_stream *stream)
{
    peg_error error;

    if (stream->reported_remote_end || !stream->remote_ended || stream->is_paused ||
        stream->is_broken || stream->waiting.len > 0)
        return;
    stream->reported_remote_end = true;
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
    report_remote_end(stream);
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
        const bool is_there = deliver_messages(stream, &bytes);

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
        report_remote_end(stream);
}

/* ---- sending headers ---------------------------------------------------------------------- */

static char *copy_str(peg_str *s, char *to)
{
    if (s->len > 0)
        memcpy(to, s->ptr, s->len);
    s->ptr = to;
    return to + s->len;
}

/* They are sent later, when those who made them may have gone. */
static peg_status keep_block(struct grpc_stream *stream, const struct grpc_block *block)
{
    size_t n_bytes = block->n * sizeof(struct grpc_field);
    struct grpc_field *fields;
    char *to;

    stream->headers = *block;
    if (block->is_static || block->is_kept || block->n == 0)
        return PEG_OK;
    for (size_t i = 0; i < block->n; i++)
        n_bytes += block->fields[i].name.len + block->fields[i].value.len;
    fields = peg__arena_alloc(stream->arena, n_bytes);
    if (!fields)
        return PEG_ENOMEM;
    memcpy(fields, block->fields, block->n * sizeof(*fields));
    to = (char *)(fields + block->n);
    for (size_t i = 0; i < block->n; i++) {
        to = copy_str(&fields[i].name, to);
        to = copy_str(&fields[i].value, to);
    }
    stream->headers.fields = fields;
    return PEG_OK;
}

peg_status grpc_stream_open(struct grpc_stream *stream, struct grpc_session *session,
                            const struct grpc_block *headers, peg_error *reterr)
{
    if (session->is_lost)
        return peg__fail_nomem(reterr);
    if (session->is_dead || session->was_sent_away)
        return peg__fail(reterr, PEG_ESTATE, "E_HTTP2",
                         "this connection takes no more streams: use a new one");
    if (session->next_id < 0)
        return peg__fail(reterr, PEG_ELIMIT, "E_HTTP2_LIMIT",
                         "this connection has had all the streams that it can have: use a new one");
    if (keep_block(stream, headers))
        return peg__fail_nomem(reterr);
    stream->has_sent_headers = true;
    grpc__stream_attach(stream, session, session->next_id);
    session->next_id = session->next_id < INT32_MAX ? session->next_id + 2 : -1;
    grpc__stream_schedule(stream);
    grpc__session_output(session);
    return PEG_OK;
}

peg_status grpc_stream_respond(struct grpc_stream *stream, const struct grpc_block *headers,
                               bool is_last, peg_error *reterr)
{
    struct grpc_session *session = stream->session;

    if (!session || stream->has_sent_headers)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE", "the headers have been sent");
    if (session->is_lost || keep_block(stream, headers))
        return peg__fail_nomem(reterr);
    stream->has_sent_headers = true;
    stream->local_ended = is_last;
    session->has_new_output = true;
    grpc__stream_schedule(stream);
    grpc__session_output(session);
    return PEG_OK;
}

/* ---- sending messages --------------------------------------------------------------------- */

static void schedule_output(struct grpc_stream *stream)
{
    if (!stream->session)
        return;
    grpc__stream_schedule(stream);
    grpc__session_output(stream->session);
}

/* `shared` bytes of the message take none of the stream's memory: they count for the connection
 * only, which keeps them from being freed. */
static peg_status check_sending(struct grpc_stream *stream, size_t len, size_t shared,
                                peg_error *reterr)
{
    const size_t own = grpc__stream_pending(stream) + len - shared;

    if (stream->local_ended || stream->shared)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "nothing can be sent after the end of what is sent");
    if (len > UINT32_MAX - GRPC_PREFIX_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_MESSAGE_TOO_LARGE",
                         "a message of gRPC has at most 4 GiB");
    if (grpc__stream_pending(stream) > 0 && own > stream->max_out) {
        stream->was_full = true; /* so that on_writable comes */
        return peg__fail(reterr, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
                         "more than %zu bytes wait to be sent: wait for on_writable",
                         stream->max_out);
    }
    if (stream->session && stream->session->queued > 0 &&
        stream->session->queued + len > stream->session->options.max_held)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
            "more than %zu bytes wait to be sent on this connection: its peer does not "
            "read",
            stream->session->options.max_held);
    return PEG_OK;
}

static void note_queued(struct grpc_stream *stream, size_t n)
{
    stream->was_full |= grpc__stream_pending(stream) > GRPC_HIGH_MARK;
    if (!stream->session)
        return;
    stream->session->queued += n;
    grpc__stream_measure(stream);
}

/* What is gone makes room before more memory is asked for. */
static void pack_out(struct grpc_stream *stream, size_t len)
{
    struct peg__buf *out = &stream->out;

    if (stream->out_sent == 0 || out->capacity - out->len > len)
        return;
    memmove(out->ptr, out->ptr + stream->out_sent, out->len - stream->out_sent);
    out->len -= stream->out_sent;
    stream->out_sent = 0;
}

/* NULL: out of memory, in *reterr. */
static uint8_t *reserve_out(struct grpc_stream *stream, size_t len, peg_error *reterr)
{
    uint8_t *at;

    pack_out(stream, len);
    at = (uint8_t *)peg__buf_reserve(&stream->out, len);
    if (!at) {
        stream->out.status = PEG_OK;
        peg__fail_nomem(reterr);
    }
    return at;
}

uint8_t *grpc_stream_reserve(struct grpc_stream *stream, size_t len, peg_error *reterr)
{
    uint8_t *prefix;

    if (check_sending(stream, len, 0, reterr))
        return NULL;
    prefix = reserve_out(stream, len + GRPC_PREFIX_BYTES, reterr);
    return prefix ? prefix + GRPC_PREFIX_BYTES : NULL;
}

void grpc_stream_commit(struct grpc_stream *stream, size_t len)
{
    grpc_prefix_write((uint8_t *)stream->out.ptr + stream->out.len, false, (uint32_t)len);
    stream->out.len += GRPC_PREFIX_BYTES + len;
    note_queued(stream, GRPC_PREFIX_BYTES + len);
    schedule_output(stream);
}

peg_status grpc_stream_send_shared(struct grpc_stream *stream, peg_str head, struct peg__blob *blob,
                                   peg_str rest, peg_error *reterr)
{
    const size_t len = head.len + rest.len;
    const size_t n_prefix = stream->reader.is_plain ? 0 : GRPC_PREFIX_BYTES;
    peg_status status = check_sending(stream, len, rest.len, reterr);
    char prefix[GRPC_PREFIX_BYTES];

    if (status)
        return status;
    if (!reserve_out(stream, GRPC_PREFIX_BYTES + head.len, reterr))
        return PEG_ENOMEM;
    grpc_prefix_write((uint8_t *)prefix, false, (uint32_t)len);
    peg__buf_add(&stream->out, prefix, n_prefix);
    peg__buf_str(&stream->out, head);
    stream->shared = peg__blob_ref(blob);
    stream->shared_rest = rest;
    note_queued(stream, n_prefix + len);
    schedule_output(stream);
    return PEG_OK;
}

static peg_status send_gzip(struct grpc_stream *stream, peg_str message, peg_error *reterr)
{
    struct peg__buf *out = &stream->out;
    peg_status status = check_sending(stream, message.len, 0, reterr);
    size_t start;
    char prefix[GRPC_PREFIX_BYTES] = {0};

    if (status)
        return status;
    pack_out(stream, message.len);
    start = out->len;
    peg__buf_add(out, prefix, sizeof(prefix));
    status = out->status ? peg__fail_nomem(reterr) : grpc_gzip(message, out, reterr);
    if (status) {
        out->len = start;
        out->status = PEG_OK;
        return status;
    }
    grpc_prefix_write((uint8_t *)out->ptr + start, true,
                      (uint32_t)(out->len - start - GRPC_PREFIX_BYTES));
    note_queued(stream, out->len - start);
    schedule_output(stream);
    return PEG_OK;
}

peg_status grpc_stream_send(struct grpc_stream *stream, peg_str message, peg_error *reterr)
{
    peg_error error;
    uint8_t *to;

    if (stream->uses_gzip && !stream->skips_gzip)
        return send_gzip(stream, message, reterr);
    to = grpc_stream_reserve(stream, message.len, &error);
    if (!to) {
        if (reterr)
            *reterr = error;
        return error.status;
    }
    if (message.len > 0)
        memcpy(to, message.ptr, message.len);
    grpc_stream_commit(stream, message.len);
    return PEG_OK;
}

peg_status grpc_stream_send_plain(struct grpc_stream *stream, peg_str bytes, peg_error *reterr)
{
    const peg_status status = check_sending(stream, bytes.len, 0, reterr);

    if (status)
        return status;
    if (!reserve_out(stream, bytes.len, reterr))
        return PEG_ENOMEM;
    peg__buf_str(&stream->out, bytes);
    note_queued(stream, bytes.len);
    schedule_output(stream);
    return PEG_OK;
}

peg_status grpc_stream_end(struct grpc_stream *stream, const struct grpc_block *trailers,
                           peg_error *reterr)
{
    if (stream->local_ended)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE", "the end has been said already");
    stream->local_ended = true;
    stream->trailers = trailers;
    schedule_output(stream);
    return PEG_OK;
}

bool grpc_stream_is_writable(const struct grpc_stream *stream)
{
    return !stream->local_ended && grpc__stream_pending(stream) <= GRPC_HIGH_MARK;
}

bool grpc_stream_await_window(struct grpc_stream *stream)
{
    const struct grpc_session *session = stream->session;

    if (!session || (grpc__stream_pending(stream) == 0 && grpc__stream_window(stream) > 0 &&
                     session->window > 0))
        return true;
    stream->awaits_window = true;
    grpc__stream_schedule(stream);
    return false;
}

bool grpc_stream_is_waiting(const struct grpc_stream *stream)
{
    return stream->awaits_window || grpc__stream_pending(stream) > 0 ||
           (!stream->is_paused && !stream->remote_ended && grpc_reader_held(&stream->reader) > 0);
}

static void forget_sent(struct grpc_stream *stream, size_t n)
{
    const size_t own = stream->out.len - stream->out_sent;

    if (n < own) {
        stream->out_sent += n;
        return;
    }
    stream->out.len = 0;
    stream->out_sent = 0;
    if (!stream->shared)
        return;
    stream->shared_rest = peg__str_from(stream->shared_rest, n - own);
    if (stream->shared_rest.len == 0)
        stream->shared = peg__blob_unref(stream->shared);
}

bool grpc__stream_took(struct grpc_stream *stream, size_t n)
{
    struct grpc_session *session = stream->session;

    grpc__session_made_progress(session);
    session->n_moved += n;
    session->has_new_output = true;
    session->queued -= n;
    stream->n_steps++;
    forget_sent(stream, n);
    grpc__stream_measure(stream);
    if (!stream->was_full || grpc__stream_pending(stream) >= GRPC_LOW_MARK)
        return false;
    stream->was_full = false;
    return !stream->local_ended;
}
