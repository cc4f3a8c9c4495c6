/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What nghttp2 found in the bytes that came, told to the stream that it is about. A stream that
 * was dropped has no owner any more (its user data is NULL): what still comes for it is consumed
 * and forgotten. Each event of an owner may drop the stream, so it is looked up again after one.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "grpc/session_internal.h"

/* The peer sends too much of something: this is the end of the connection. */
static int flooded(struct grpc_session *session)
{
    session->is_flooded = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void made_progress(struct grpc_session *session)
{
    session->n_idle_frames = 0;
    session->n_idle_bytes = 0;
}

/* Frames that carry neither a call nor a message: a peer that sends nothing else costs us time
 * for nothing. Those that it needs for what we send are forgiven by stream.c. */
static int begin_frame(nghttp2_session *h2, const nghttp2_frame_hd *hd, void *user)
{
    struct grpc_session *session = user;

    (void)h2;
    (void)hd;
    return ++session->n_idle_frames <= PEG_LIMIT_GRPC_IDLE_FRAMES ? 0 : flooded(session);
}

/* SETTINGS change the window of every stream that is open. Clients that measure the line send them
 * now and then, because of what came or went on it. */
static int settings_came(struct grpc_session *session)
{
    enum { BYTES_FOR_ONE = 1024 };

    if (++session->n_settings > PEG_LIMIT_GRPC_SETTINGS + session->n_moved / BYTES_FOR_ONE)
        return flooded(session);
    if (session->events->on_settings)
        session->events->on_settings(session->user);
    return 0;
}

/* Frames for which a stream is reset or refused. The peer that makes us reset its streams gets
 * no further than the one that resets them itself. */
static int invalid_frame(nghttp2_session *h2, const nghttp2_frame *frame, int h2_error, void *user)
{
    struct grpc_session *session = user;

    (void)h2;
    (void)frame;
    (void)h2_error;
    return ++session->n_invalid_frames <= PEG_LIMIT_GRPC_INVALID_FRAMES ? 0 : flooded(session);
}

/* ---- headers ------------------------------------------------------------------------------------
 */

static int begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
    struct grpc_session *session = user;
    const int32_t id = frame->hd.stream_id;
    struct grpc_stream *stream = grpc__session_find(session, id);

    session->block_bytes = 0;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    made_progress(session);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        stream = session->events->on_stream(session->user);
        if (!stream)
            return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        grpc__stream_attach(stream, session, id);
        nghttp2_session_set_stream_user_data(h2, id, stream);
    } else if (stream && session->options.is_client) {
        /* The answer to a call of ours, or what ends its messages. */
        grpc_head_init(&stream->head, stream->arena, session->options.max_header_bytes);
    }
    return 0;
}

/* A block that is too large is answered, but not read to its end whatever that may be: with HPACK
 * one byte can stand for thousands, and each of them is looked at. A field that is wrong is the end
 * of its stream, and nghttp2 does not look at what follows it. */
static int count_field(struct grpc_session *session, size_t name_len, size_t value_len)
{
    enum { FIELD_BYTES = 32, MAX_TIMES = 4 }; /* as HTTP/2 counts */

    session->block_bytes += name_len + value_len + FIELD_BYTES;
    return session->block_bytes / MAX_TIMES <= session->options.max_header_bytes ? 0
                                                                                 : flooded(session);
}

// NOLINTNEXTLINE(readability-function-size): nghttp2's parameters
static int header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
                  size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                  void *user)
{
    struct grpc_session *session = user;
    struct grpc_stream *stream = grpc__session_find(session, frame->hd.stream_id);
    const int failed = count_field(session, name_len, value_len);
    peg_error error;
    peg_status status;

    (void)h2;
    (void)flags;
    if (failed || !stream || stream->is_broken)
        return failed;
    /* What a client sends behind its messages means nothing in gRPC. */
    if (stream->has_head && !session->options.is_client)
        return 0;
    status = grpc_head_add(&stream->head, peg__strn((const char *)name, name_len),
                           peg__strn((const char *)value, value_len), &error);
    if (status)
        grpc__stream_broke(stream, status == PEG_EPARSE ? GRPC_INTERNAL : GRPC_RESOURCE_EXHAUSTED,
                           &error);
    return 0;
}

/* ---- frames that are whole ----------------------------------------------------------------------
 */

static void headers_came(struct grpc_session *session, const nghttp2_frame *frame)
{
    struct grpc_stream *stream = grpc__session_find(session, frame->hd.stream_id);
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (stream)
        grpc__stream_head_done(stream, is_end);
    stream = grpc__session_find(session, frame->hd.stream_id);
    if (stream && is_end)
        grpc__stream_remote_end(stream);
}

static void data_ended(struct grpc_session *session, const nghttp2_frame *frame)
{
    struct grpc_stream *stream = grpc__session_find(session, frame->hd.stream_id);

    if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        grpc__stream_remote_end(stream);
}

static void ping_came(struct grpc_session *session, const nghttp2_frame *frame)
{
    if (frame->hd.flags & NGHTTP2_FLAG_ACK)
        session->events->on_pong(session->user);
    else
        session->events->on_ping(session->user);
}

static int frame_came(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
    struct grpc_session *session = user;

    (void)h2;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        headers_came(session, frame);
        break;
    case NGHTTP2_DATA:
        data_ended(session, frame);
        break;
    case NGHTTP2_PING:
        ping_came(session, frame);
        break;
    case NGHTTP2_GOAWAY:
        if (session->events->on_goaway)
            session->events->on_goaway(session->user, frame->goaway.last_stream_id,
                                       frame->goaway.error_code);
        break;
    case NGHTTP2_SETTINGS:
        return frame->hd.flags & NGHTTP2_FLAG_ACK ? 0 : settings_came(session);
    default:
        break;
    }
    return 0;
}

static int data_came(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes,
                     size_t len, void *user)
{
    struct grpc_session *session = user;
    struct grpc_stream *stream = grpc__session_find(session, id);

    (void)flags;
    made_progress(session);
    session->n_moved += len;
    /* The connection's window is never what a stream waits for; see max_held. */
    if (nghttp2_session_consume_connection(h2, len))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (stream && !stream->is_broken)
        grpc__stream_data(stream, peg__strn((const char *)bytes, len));
    else
        nghttp2_session_consume_stream(h2, id, len);
    return 0;
}

static int stream_ended(nghttp2_session *h2, int32_t id, uint32_t h2_error, void *user)
{
    struct grpc_session *session = user;
    struct grpc_stream *stream = grpc__session_find(session, id);

    (void)h2;
    if (stream)
        grpc__stream_closed(stream, h2_error);
    return 0;
}

/* ---- output -------------------------------------------------------------------------------------
 */

static int send_data(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head, size_t len,
                     nghttp2_data_source *source, void *user)
{
    struct grpc_session *session = user;
    struct grpc_stream *stream = grpc__session_find(session, frame->hd.stream_id);
    enum { FRAME_HEAD = 9 };

    (void)h2;
    (void)source;
    if (!stream)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (session->out_max - session->out_len < FRAME_HEAD + len)
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(session->out + session->out_len, head, FRAME_HEAD);
    if (len > 0)
        memcpy(session->out + session->out_len + FRAME_HEAD, stream->out.ptr + stream->out_sent,
               len);
    session->out_len += FRAME_HEAD + len;
    grpc__stream_took(stream, len);
    return 0;
}

/* A server that has answered does not wait for a client that goes on talking. */
static int frame_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
    struct grpc_session *session = user;
    struct grpc_stream *stream;

    if (frame->hd.type == NGHTTP2_GOAWAY)
        session->has_complained |= frame->goaway.error_code != NGHTTP2_NO_ERROR;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    stream = grpc__session_find(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    stream->has_left = true;
    if (!session->options.is_client && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        !stream->remote_ended)
        return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    return 0;
}

/* An answer that cannot be sent (too large, for one) would leave its stream open for ever. The
 * requests of a client are closed by nghttp2. */
static int frame_not_sent(nghttp2_session *h2, const nghttp2_frame *frame, int h2_error, void *user)
{
    struct grpc_session *session = user;
    const struct grpc_stream *stream;

    (void)h2_error;
    if (frame->hd.type != NGHTTP2_HEADERS || session->options.is_client)
        return 0;
    stream = grpc__session_find(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
}

void grpc__session_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalid_frame);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_came);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_came);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_ended);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, frame_not_sent);
}
