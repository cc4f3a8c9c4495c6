/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whole frames other than DATA: settings and windows of the connection, ends of streams, and blocks
 * of headers, field by field into the head of their stream. Sizes and places were checked before.
 *
 * Whatever becomes of its stream, a whole block is read, since HPACK remembers what was in it; but
 * at most a few times what a block may have, since one byte of it can stand for thousands.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"

enum { MAX_SETTINGS = 32 }; /* in one frame */

/* ---- settings ----------------------------------------------------------------------------- */

/* False: HTTP/2 has no such value, and the session is dead. */
static bool check_setting(struct grpc_session *session, unsigned key, uint32_t value)
{
    switch (key) {
    case GRPC_H2_ENABLE_PUSH:
        if (value <= (session->options.is_client ? 0 : 1))
            return true;
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "SETTINGS: ENABLE_PUSH");
        return false;
    case GRPC_H2_INITIAL_WINDOW_SIZE:
        if (value <= GRPC_H2_MAX_WINDOW)
            return true;
        grpc__session_die(session, GRPC_H2_FLOW_CONTROL_ERROR, "SETTINGS: INITIAL_WINDOW_SIZE");
        return false;
    case GRPC_H2_MAX_FRAME_SIZE:
        if (value >= GRPC_H2_FRAME_BYTES && value < 1 << 24)
            return true;
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "SETTINGS: MAX_FRAME_SIZE");
        return false;
    case GRPC_H2_NO_RFC7540_PRIORITIES:
        if (value <= 1)
            return true;
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "SETTINGS: NO_RFC7540_PRIORITIES");
        return false;
    default:
        return true;
    }
}

/* Is there a stream whose window cannot be so much wider? */
static bool is_too_wide(struct grpc_session *session, uint32_t size)
{
    if (size + session->most_beyond <= GRPC_H2_MAX_WINDOW)
        return false;
    session->most_beyond = 0;
    for (struct grpc_stream *stream = session->streams; stream; stream = stream->next) {
        if (stream->window_beyond > session->most_beyond)
            session->most_beyond = stream->window_beyond;
    }
    return size + session->most_beyond > GRPC_H2_MAX_WINDOW;
}

/* Open streams are given more, or less, too. Those that wait are scheduled with the next output,
 * which comes at once: these settings are answered. */
static bool set_stream_window(struct grpc_session *session, uint32_t size)
{
    if (is_too_wide(session, size)) {
        grpc__session_die(session, GRPC_H2_FLOW_CONTROL_ERROR,
                          "SETTINGS: INITIAL_WINDOW_SIZE, with what a stream was given before");
        return false;
    }
    session->has_wider_windows |= size > session->peer_stream_window;
    session->peer_stream_window = size;
    return true;
}

/* False: the session is dead. */
static bool apply_setting(struct grpc_session *session, unsigned key, uint32_t value)
{
    switch (key) {
    case GRPC_H2_HEADER_TABLE_SIZE:
        grpc_hpack_encoder_limit(&session->encoder, value);
        return true;
    case GRPC_H2_MAX_CONCURRENT_STREAMS:
        session->peer_max_streams = value;
        return true;
    case GRPC_H2_INITIAL_WINDOW_SIZE:
        return set_stream_window(session, value);
    case GRPC_H2_MAX_HEADER_LIST_SIZE:
        session->peer_max_header_bytes = value;
        return true;
    default: /* nothing that we would do otherwise */
        return true;
    }
}

/* SETTINGS may open the window of every stream that waits. Clients that measure the line send them
 * now and then, because of what came or went on it. */
static bool are_too_many(struct grpc_session *session)
{
    enum { BYTES_FOR_ONE = 1024 };

    return ++session->n_settings > PEG_LIMIT_GRPC_SETTINGS + session->n_moved / BYTES_FOR_ONE;
}

static void handle_settings(struct grpc_session *session, const uint8_t *bytes)
{
    const size_t len = session->frame.len;
    const struct grpc_h2_head ack = {.type = GRPC_H2_SETTINGS, .flags = GRPC_H2_ACK};
    uint8_t *to;

    if (len / GRPC_H2_SETTING_BYTES > MAX_SETTINGS || are_too_many(session)) {
        grpc__session_flooded(session, "SETTINGS");
        return;
    }
    if (!session->has_settings)
        session->peer_max_streams = UINT32_MAX; /* unless it says otherwise */
    for (size_t at = 0; at < len; at += GRPC_H2_SETTING_BYTES) {
        const unsigned key = (unsigned)bytes[at] << 8 | bytes[at + 1];
        const uint32_t value = grpc_h2_u32(bytes + at + 2);

        if (!check_setting(session, key, value) || !apply_setting(session, key, value))
            return;
    }
    session->has_settings = true;
    to = grpc__session_answer(session, GRPC_H2_HEAD_BYTES);
    if (!to)
        return;
    grpc_h2_write_head(to, &ack);
    if (session->events->on_settings)
        session->events->on_settings(session->user);
}

/* From here on the peer knows our first SETTINGS. An ACK too many does no harm. */
static void handle_ack(struct grpc_session *session)
{
    session->has_ack = true;
    session->stream_limit = session->options.stream_window;
}

/* ---- the connection ----------------------------------------------------------------------- */

static void handle_ping(struct grpc_session *session, const uint8_t *bytes)
{
    const struct grpc_h2_head head = {
        .len = GRPC_H2_PING_BYTES, .type = GRPC_H2_PING, .flags = GRPC_H2_ACK};
    uint8_t *to;

    if (session->frame.flags & GRPC_H2_ACK) {
        session->events->on_pong(session->user);
        return;
    }
    to = grpc__session_answer(session, GRPC_H2_HEAD_BYTES + GRPC_H2_PING_BYTES);
    if (!to)
        return;
    memcpy(grpc_h2_write_head(to, &head), bytes, GRPC_H2_PING_BYTES);
    session->events->on_ping(session->user);
}

/* Of ours, those that the peer will not handle. */
static struct grpc_stream *find_left_out(struct grpc_session *session, int32_t last_id)
{
    struct grpc_stream *stream = session->streams;

    while (stream && stream->id <= last_id && stream->has_begun)
        stream = stream->next;
    return stream;
}

static void handle_goaway(struct grpc_session *session, const uint8_t *bytes)
{
    const int32_t last_id = (int32_t)grpc_h2_u31(bytes);
    const uint32_t h2_error = grpc_h2_u32(bytes + 4);
    struct grpc_stream *stream;

    session->was_sent_away = true;
    if (session->options.is_client && last_id > session->peer_last_id) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "GOAWAY: its number goes up");
        return;
    }
    session->peer_last_id = last_id;
    if (session->events->on_goaway)
        session->events->on_goaway(session->user, last_id, h2_error);
    while (session->options.is_client && (stream = find_left_out(session, last_id)))
        grpc__stream_closed(stream, GRPC_H2_REFUSED_STREAM);
}

static void handle_window_of_connection(struct grpc_session *session, uint32_t more)
{
    if (more == 0) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
        return;
    }
    session->window += more;
    if (session->window > GRPC_H2_MAX_WINDOW)
        grpc__session_die(session, GRPC_H2_FLOW_CONTROL_ERROR, "WINDOW_UPDATE: too much");
}

static void handle_window(struct grpc_session *session, const uint8_t *bytes)
{
    const int32_t id = session->frame.id;
    const uint32_t more = grpc_h2_u31(bytes);
    struct grpc_stream *stream;

    if (id == 0) {
        handle_window_of_connection(session, more);
        return;
    }
    if (grpc__session_is_idle(session, id)) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR,
                          "WINDOW_UPDATE of a stream that is idle");
        return;
    }
    stream = grpc__session_find(session, id);
    if (!stream)
        return;
    stream->window_beyond += more;
    if (stream->window_beyond > session->most_beyond)
        session->most_beyond = stream->window_beyond;
    if (more == 0)
        grpc__session_fail_stream(session, stream, GRPC_H2_PROTOCOL_ERROR);
    else if (grpc__stream_window(stream) > GRPC_H2_MAX_WINDOW)
        grpc__session_fail_stream(session, stream, GRPC_H2_FLOW_CONTROL_ERROR);
    else
        grpc__stream_schedule(stream);
}

/* ---- ends of streams ---------------------------------------------------------------------- */

/* Streams that begin and end again cost us more than the peer (CVE-2023-44487). */
static void count_reset(struct grpc_session *session)
{
    const struct grpc_session_options *options = &session->options;
    const int64_t now_ns = peg__mono_ns();

    if (options->is_client)
        return;
    if (session->reset_ns)
        session->reset_tokens +=
            (double)(now_ns - session->reset_ns) * options->reset_per_s / (double)PEG_NS_PER_S;
    session->reset_ns = now_ns;
    if (session->reset_tokens > options->reset_burst)
        session->reset_tokens = options->reset_burst;
    session->reset_tokens -= 1;
    if (session->reset_tokens < 0)
        grpc__session_flooded(session, "RST_STREAM (reset_burst, reset_per_s)");
}

static void handle_reset(struct grpc_session *session, const uint8_t *bytes)
{
    const int32_t id = session->frame.id;
    struct grpc_stream *stream;

    /* gRPC's C core resets a call that is canceled before its HEADERS were written, which then
     * never come: ended would be every call of that client (decision 52). */
    if (grpc__session_is_idle(session, id) && (session->options.is_client || !(id & 1))) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "RST_STREAM of a stream that is idle");
        return;
    }
    stream = grpc__session_find(session, id);
    if (stream) {
        grpc__session_note_ended(session, id);
        grpc__stream_closed(stream, grpc_h2_u32(bytes));
    }
    count_reset(session);
}

void grpc__session_remote_end(struct grpc_session *session, int32_t id)
{
    struct grpc_stream *stream = grpc__session_find(session, id);

    if (!stream || stream->must_reset)
        return;
    if (stream->content_length >= 0 && stream->n_body != stream->content_length) {
        grpc__session_fail_stream(session, stream, GRPC_H2_PROTOCOL_ERROR);
        return;
    }
    grpc__stream_remote_end(stream);
    stream = grpc__session_find(session, id);
    if (stream && stream->has_sent_end)
        grpc__stream_closed(stream, GRPC_H2_NO_ERROR);
}

/* ---- headers ------------------------------------------------------------------------------ */

enum { KEPT_REST = 256 };

static const char too_large[] = "headers that are far too large (max_header_bytes)";

/* ---- whose block it is -------------------------------------------------------------------- */

static enum grpc_block_kind open_stream(struct grpc_session *session, int32_t id)
{
    struct grpc_stream *stream;

    grpc__session_made_progress(session);
    stream = session->events->on_stream(session->user);
    if (!stream) {
        grpc__session_reset_id(session, id, GRPC_H2_REFUSED_STREAM);
        return GRPC_BLOCK_IGNORED;
    }
    session->last_taken_id = id;
    grpc__stream_attach(stream, session, id);
    return GRPC_BLOCK_REQUEST;
}

/* A stream that the client begins. One beyond the limit is an error once the client has seen it. */
static enum grpc_block_kind take_request(struct grpc_session *session, int32_t id)
{
    if (!(id & 1)) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "HEADERS on a stream that is even");
        return GRPC_BLOCK_IGNORED;
    }
    /* Trailers of a stream that we ended first may be late. They are checked nevertheless. */
    if (id <= session->last_id)
        return grpc__session_may_be_late(session, id) ? GRPC_BLOCK_TRAILERS : GRPC_BLOCK_IGNORED;
    grpc__session_note_begun(session, id);
    if (session->has_goaway)
        return GRPC_BLOCK_IGNORED;
    if (session->n_streams < session->options.max_streams)
        return open_stream(session, id);
    if (session->has_ack) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "more streams than agreed");
        return GRPC_BLOCK_IGNORED;
    }
    grpc__session_reset_id(session, id, GRPC_H2_REFUSED_STREAM);
    grpc__session_count_invalid(session);
    return GRPC_BLOCK_IGNORED;
}

static enum grpc_block_kind kind_of_block(struct grpc_session *session, int32_t id)
{
    struct grpc_stream *stream = grpc__session_find(session, id);
    const bool is_client = session->options.is_client;

    if (is_client && grpc__session_is_idle(session, id)) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "HEADERS on a stream that is idle");
        return GRPC_BLOCK_IGNORED;
    }
    if (!stream)
        return is_client ? GRPC_BLOCK_IGNORED : take_request(session, id);
    if (stream->must_reset)
        return GRPC_BLOCK_IGNORED;
    if (stream->remote_ended) {
        grpc__session_die(session, GRPC_H2_STREAM_CLOSED, "HEADERS after the end of a stream");
        return GRPC_BLOCK_IGNORED;
    }
    grpc__session_made_progress(session);
    if (!is_client)
        return GRPC_BLOCK_TRAILERS;
    /* The answer to a call of ours, or what ends its messages. */
    grpc_head_init(&stream->head, stream->arena, session->options.max_header_bytes);
    return stream->has_final ? GRPC_BLOCK_TRAILERS : GRPC_BLOCK_RESPONSE;
}

static void begin_block(struct grpc_session *session)
{
    struct grpc__incoming *block = &session->block;
    const struct grpc_h2_head *frame = &session->frame;
    const enum grpc_block_kind kind = kind_of_block(session, frame->id);

    block->id = frame->id;
    block->ends_stream = frame->flags & GRPC_H2_END_STREAM;
    block->n_frames = 0;
    block->n_bytes = 0;
    grpc_block_check_begin(&block->check, kind);
    grpc_hpack_decode_begin(&session->decoder);
}

/* ---- its fields --------------------------------------------------------------------------- */

static void add_to_head(struct grpc_session *session, const struct grpc_hpack_field *field)
{
    struct grpc_stream *stream = grpc__session_find(session, session->block.id);
    peg_error error;
    peg_status status;

    if (!stream || stream->is_broken || stream->must_reset)
        return;
    /* What a client sends behind its messages means nothing in gRPC. */
    if (stream->has_head && !session->options.is_client)
        return;
    status = grpc_head_add(&stream->head, field->name, field->value, &error);
    if (status)
        grpc__stream_broke(stream, status == PEG_EPARSE ? GRPC_INTERNAL : GRPC_RESOURCE_EXHAUSTED,
                           &error);
}

/* See grpc_field_trim(). */
static void trim_field(const struct grpc_session *session, struct grpc_hpack_field *field)
{
    const peg_str trimmed = grpc_field_trim(field->value);

    if (trimmed.len < field->value.len && !session->options.is_client)
        field->kind = GRPC_FIELD_BAD;
    field->value = trimmed;
}

static void handle_field(struct grpc_session *session, struct grpc_hpack_field *field)
{
    struct grpc__incoming *block = &session->block;

    block->n_bytes += field->name.len + field->value.len + GRPC_HPACK_FIELD_BYTES;
    if (block->n_bytes / PEG_LIMIT_GRPC_HEADER_TIMES > session->options.max_header_bytes) {
        grpc__session_flooded(session, too_large);
        return;
    }
    if (block->check.kind == GRPC_BLOCK_IGNORED || block->check.is_bad)
        return;
    if (field->kind < GRPC_FIELD_AUTHORITY)
        trim_field(session, field);
    if (grpc_block_check_add(&block->check, field->kind, field->value))
        add_to_head(session, field);
}

/* ---- its end ------------------------------------------------------------------------------ */

static void note_block(struct grpc_stream *stream, const struct grpc_block_check *check)
{
    if (check->kind == GRPC_BLOCK_TRAILERS)
        return;
    stream->content_length = check->content_length;
    stream->has_final = check->http_status >= 200;
}

static void fail_block(struct grpc_session *session, struct grpc_stream *stream, int32_t id)
{
    if (stream) {
        grpc__session_fail_stream(session, stream, GRPC_H2_PROTOCOL_ERROR);
    } else if (session->block.check.kind == GRPC_BLOCK_TRAILERS) {
        grpc__session_reset_id(session, id, GRPC_H2_PROTOCOL_ERROR);
        grpc__session_count_invalid(session);
    }
}

static void end_block(struct grpc_session *session)
{
    const struct grpc__incoming *block = &session->block;
    const int32_t id = block->id;
    struct grpc_stream *stream = grpc__session_find(session, id);

    session->block.id = 0;
    grpc_hpack_decode_end(&session->decoder);
    if (block->check.kind == GRPC_BLOCK_IGNORED || (stream && stream->must_reset))
        return;
    if (!grpc_block_check_end(&block->check, block->ends_stream)) {
        fail_block(session, stream, id);
        return;
    }
    if (!stream)
        return;
    note_block(stream, &block->check);
    if (block->ends_stream && stream->content_length >= 0 &&
        stream->n_body != stream->content_length) {
        grpc__session_fail_stream(session, stream, GRPC_H2_PROTOCOL_ERROR);
        return;
    }
    grpc__stream_head_done(stream, block->ends_stream);
    if (block->ends_stream)
        grpc__session_remote_end(session, id);
}

/* ---- its bytes ---------------------------------------------------------------------------- */

/* True: all of them were taken, but for the beginning of a field. */
static bool take_fields(struct grpc_session *session, const uint8_t **at, const uint8_t *end)
{
    while (!session->is_dead) {
        struct grpc_hpack_field field;

        switch (grpc_hpack_decode(&session->decoder, at, end, &field)) {
        case GRPC_HPACK_FIELD:
            handle_field(session, &field);
            break;
        case GRPC_HPACK_MORE:
            return true;
        case GRPC_HPACK_NOMEM:
            grpc__session_lose(session);
            return false;
        default:
            grpc__session_die(session, GRPC_H2_COMPRESSION_ERROR, "the headers are no HPACK");
            return false;
        }
    }
    return false;
}

static void keep_rest(struct grpc_session *session, const uint8_t *at, size_t len)
{
    struct peg__buf *rest = &session->block.rest;

    if (len > PEG_LIMIT_GRPC_HEADER_TIMES * session->options.max_header_bytes) {
        grpc__session_flooded(session, too_large);
        return;
    }
    if (rest->len > 0 && len > 0)
        memmove(rest->ptr, at, len);
    else
        peg__buf_add(rest, at, len);
    rest->len = len;
    if (rest->status)
        grpc__session_lose(session);
}

static void take_block(struct grpc_session *session, const uint8_t *bytes, size_t len, bool is_last)
{
    struct peg__buf *rest = &session->block.rest;
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + len;

    if (rest->len > 0) {
        peg__buf_add(rest, bytes, len);
        if (rest->status) {
            grpc__session_lose(session);
            return;
        }
        at = (const uint8_t *)rest->ptr;
        end = at + rest->len;
    }
    if (!take_fields(session, &at, end))
        return;
    if (!is_last) {
        keep_rest(session, at, (size_t)(end - at));
        return;
    }
    if (at < end) {
        grpc__session_die(session, GRPC_H2_COMPRESSION_ERROR, "the headers are cut off");
        return;
    }
    if (rest->capacity > KEPT_REST)
        peg__buf_free(rest);
    peg__buf_clear(rest);
    end_block(session);
}

/* Takes padding and priority off. */
static void handle_headers(struct grpc_session *session, const uint8_t *bytes)
{
    const uint8_t flags = session->frame.flags;
    const size_t padding = flags & GRPC_H2_PADDED && session->frame.len > 0 ? bytes[0] : 0;
    const size_t before = (flags & GRPC_H2_PADDED ? 1 : 0) +
                          (size_t)(flags & GRPC_H2_HAS_PRIORITY ? GRPC_H2_PRIORITY_BYTES : 0);

    if (before > session->frame.len) {
        grpc__session_die(session, GRPC_H2_FRAME_SIZE_ERROR, "HEADERS: too short");
        return;
    }
    if (before + padding > session->frame.len) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "HEADERS: more padding than bytes");
        return;
    }
    begin_block(session);
    if (!session->is_dead)
        take_block(session, bytes + before, session->frame.len - before - padding,
                   flags & GRPC_H2_END_HEADERS);
}

static void handle_continuation(struct grpc_session *session, const uint8_t *bytes)
{
    if (++session->block.n_frames > PEG_LIMIT_GRPC_CONTINUATIONS)
        grpc__session_flooded(session, "CONTINUATION");
    else
        take_block(session, bytes, session->frame.len, session->frame.flags & GRPC_H2_END_HEADERS);
}

/* ---- all of them --------------------------------------------------------------------------- */

void grpc__session_handle_frame(struct grpc_session *session, const uint8_t *bytes)
{
    switch (session->frame.type) {
    case GRPC_H2_HEADERS:
        handle_headers(session, bytes);
        break;
    case GRPC_H2_RST_STREAM:
        handle_reset(session, bytes);
        break;
    case GRPC_H2_SETTINGS:
        if (session->frame.flags & GRPC_H2_ACK)
            handle_ack(session);
        else
            handle_settings(session, bytes);
        break;
    case GRPC_H2_PING:
        handle_ping(session, bytes);
        break;
    case GRPC_H2_GOAWAY:
        handle_goaway(session, bytes);
        break;
    case GRPC_H2_WINDOW_UPDATE:
        handle_window(session, bytes);
        break;
    case GRPC_H2_CONTINUATION:
        handle_continuation(session, bytes);
        break;
    default: /* PRIORITY, and unknown ones */
        break;
    }
}
