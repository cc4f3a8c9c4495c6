/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What whole frames say, other than DATA: settings and windows of the connection, ends of streams,
 * and fragments of headers, which go on to session_headers.c. Their sizes and places were looked at
 * before.
 */

#include "base/clock.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session_internal.h"

enum { MAX_SETTINGS = 32 }; /* in one frame */

/* ---- settings ----------------------------------------------------------------------------- */

/* Those that HTTP/2 knows no such value of. */
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

/* Streams that are open are given more, or less, too. Those that waited hear of it when something
 * is to be sent, which is the case at once: these settings are answered. */
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

static void settings_came(struct grpc_session *session, const uint8_t *bytes)
{
    const size_t len = session->frame.len;
    const struct grpc_h2_head ack = {.type = GRPC_H2_SETTINGS, .flags = GRPC_H2_ACK};
    uint8_t *to;

    if (len / GRPC_H2_SETTING_BYTES > MAX_SETTINGS || are_too_many(session)) {
        grpc__session_flooded(session, "SETTINGS (PEG_LIMIT_GRPC_SETTINGS)");
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

/* From here on the peer knows what we said first. One more than we sent is nobody's harm. */
static void ack_came(struct grpc_session *session)
{
    session->has_ack = true;
    session->stream_limit = session->options.stream_window;
}

/* ---- the connection ----------------------------------------------------------------------- */

static void ping_came(struct grpc_session *session, const uint8_t *bytes)
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

/* Of ours, those that the peer will not look at. */
static struct grpc_stream *find_left_out(struct grpc_session *session, int32_t last_id)
{
    struct grpc_stream *stream = session->streams;

    while (stream && stream->id <= last_id && stream->has_begun)
        stream = stream->next;
    return stream;
}

static void goaway_came(struct grpc_session *session, const uint8_t *bytes)
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

static void window_of_connection_came(struct grpc_session *session, uint32_t more)
{
    if (more == 0) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
        return;
    }
    session->window += more;
    if (session->window > GRPC_H2_MAX_WINDOW)
        grpc__session_die(session, GRPC_H2_FLOW_CONTROL_ERROR, "WINDOW_UPDATE: too much");
}

static void window_came(struct grpc_session *session, const uint8_t *bytes)
{
    const int32_t id = session->frame.id;
    const uint32_t more = grpc_h2_u31(bytes);
    struct grpc_stream *stream;

    if (id == 0) {
        window_of_connection_came(session, more);
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

static void reset_came(struct grpc_session *session, const uint8_t *bytes)
{
    const int32_t id = session->frame.id;
    struct grpc_stream *stream;

    if (grpc__session_is_idle(session, id)) {
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

/* Takes padding and priority off. */
static void headers_came(struct grpc_session *session, const uint8_t *bytes)
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
    grpc__block_begin(session);
    if (!session->is_dead)
        grpc__block_take(session, bytes + before, session->frame.len - before - padding,
                         flags & GRPC_H2_END_HEADERS);
}

static void continuation_came(struct grpc_session *session, const uint8_t *bytes)
{
    if (++session->block.n_frames > PEG_LIMIT_GRPC_CONTINUATIONS)
        grpc__session_flooded(session, "CONTINUATION (PEG_LIMIT_GRPC_CONTINUATIONS)");
    else
        grpc__block_take(session, bytes, session->frame.len,
                         session->frame.flags & GRPC_H2_END_HEADERS);
}

/* ---- all of them --------------------------------------------------------------------------- */

void grpc__frame_came(struct grpc_session *session, const uint8_t *bytes)
{
    switch (session->frame.type) {
    case GRPC_H2_HEADERS:
        headers_came(session, bytes);
        break;
    case GRPC_H2_RST_STREAM:
        reset_came(session, bytes);
        break;
    case GRPC_H2_SETTINGS:
        if (session->frame.flags & GRPC_H2_ACK)
            ack_came(session);
        else
            settings_came(session, bytes);
        break;
    case GRPC_H2_PING:
        ping_came(session, bytes);
        break;
    case GRPC_H2_GOAWAY:
        goaway_came(session, bytes);
        break;
    case GRPC_H2_WINDOW_UPDATE:
        window_came(session, bytes);
        break;
    case GRPC_H2_CONTINUATION:
        continuation_came(session, bytes);
        break;
    default: /* PRIORITY, and those that nobody knows */
        break;
    }
}
