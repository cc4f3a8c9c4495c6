/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input, frame by frame. DATA is delivered as it comes; other frames are handled when they are
 * whole, mostly in place. What the peer may not do to a stream costs that stream, what it may not
 * do at all the connection (RFC 9113, 5.4). Frames for streams that are gone are ignored. Each
 * event of an owner may drop its stream, so it is looked up again after one.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"

enum { KEPT_PAYLOAD = 256 }; /* memory for the next frame that comes in two pieces */

struct input {
    const uint8_t *at;
    size_t len;
};

static void skip_input(struct input *in, size_t n)
{
    in->at += n;
    in->len -= n;
}

/* ---- DATA --------------------------------------------------------------------------------- */

/* NULL: it is ignored, or fails the stream or the session. */
static struct grpc_stream *find_for_data(struct grpc_session *session)
{
    const struct grpc_h2_head *frame = &session->frame;
    struct grpc_stream *stream = grpc__session_find(session, frame->id);

    if (!stream) {
        if (grpc__session_is_idle(session, frame->id))
            grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "DATA for a stream that is idle");
        else if (!session->options.is_client)
            (void)grpc__session_may_be_late(session, frame->id);
        return NULL;
    }
    if (stream->must_reset)
        return NULL;
    if (stream->remote_ended) {
        grpc__session_die(session, GRPC_H2_STREAM_CLOSED, "DATA after the end of a stream");
        return NULL;
    }
    if (session->options.is_client && !stream->has_final) {
        if (grpc__session_is_idle(session, frame->id))
            grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "DATA for a stream that is idle");
        else
            grpc__session_fail_stream(session, stream, GRPC_H2_PROTOCOL_ERROR);
        return NULL;
    }
    if (stream->n_unreturned + frame->len > session->stream_limit) {
        grpc__session_fail_stream(session, stream, GRPC_H2_FLOW_CONTROL_ERROR);
        return NULL;
    }
    return stream;
}

/* The connection's window is never what a stream waits for (see max_held): it opens at once. */
static void begin_data(struct grpc_session *session)
{
    const struct grpc_h2_head *frame = &session->frame;
    struct grpc_stream *stream;

    session->left = frame->len;
    session->padding = 0;
    session->has_padding = frame->flags & GRPC_H2_PADDED;
    if (session->n_unreturned + frame->len > session->options.session_window) {
        grpc__session_die(session, GRPC_H2_FLOW_CONTROL_ERROR, "DATA beyond the window");
        return;
    }
    session->n_unreturned += frame->len;
    session->input = GRPC__INPUT_DATA;
    stream = find_for_data(session);
    if (stream)
        stream->n_unreturned += frame->len;
    if (session->has_padding && frame->len == 0)
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "DATA: padding without its length");
}

static void take_padding(struct grpc_session *session, struct input *in)
{
    struct grpc_stream *stream = grpc__session_find(session, session->frame.id);

    session->has_padding = false;
    session->padding = in->at[0];
    session->left--;
    skip_input(in, 1);
    if (session->padding > session->left) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "DATA: more padding than bytes");
        return;
    }
    session->left -= session->padding;
    if (stream && !stream->must_reset)
        grpc__stream_open_window(stream, session->padding + 1);
}

static void take_data(struct grpc_session *session, const uint8_t *bytes, size_t len)
{
    struct grpc_stream *stream = grpc__session_find(session, session->frame.id);

    if (!stream || stream->must_reset)
        return;
    grpc__session_made_progress(session);
    session->n_moved += len;
    stream->n_body += (int64_t)len;
    if (stream->content_length >= 0 && stream->n_body > stream->content_length)
        grpc__session_fail_stream(session, stream, GRPC_H2_PROTOCOL_ERROR);
    else if (stream->is_broken)
        grpc__stream_open_window(stream, len);
    else
        grpc__stream_data(stream, peg__strn((const char *)bytes, len));
}

static void end_data(struct grpc_session *session)
{
    session->input = GRPC__INPUT_HEAD;
    if (session->frame.flags & GRPC_H2_END_STREAM)
        grpc__session_remote_end(session, session->frame.id);
}

static void step_data(struct grpc_session *session, struct input *in)
{
    size_t n;

    if (session->has_padding && in->len > 0)
        take_padding(session, in);
    if (session->is_dead)
        return;
    n = grpc__at_most(session->left, in->len);
    if (n > 0) {
        const uint8_t *bytes = in->at;

        session->left -= n;
        skip_input(in, n);
        take_data(session, bytes, n);
    }
    n = session->left == 0 ? grpc__at_most(session->padding, in->len) : 0;
    session->padding -= n;
    skip_input(in, n);
    if (session->left == 0 && session->padding == 0 && !session->has_padding)
        end_data(session);
}

/* ---- frames ------------------------------------------------------------------------------- */

/* What is known of a frame by its type. */
static const struct rule {
    enum { ON_STREAM, ON_CONNECTION, ON_BOTH } where;
    uint16_t min_len;
    uint16_t max_len;
} rules[] = {
    [GRPC_H2_DATA] = {ON_STREAM, 0, GRPC_H2_FRAME_BYTES},
    [GRPC_H2_HEADERS] = {ON_STREAM, 0, GRPC_H2_FRAME_BYTES},
    [GRPC_H2_PRIORITY] = {ON_STREAM, GRPC_H2_PRIORITY_BYTES, GRPC_H2_PRIORITY_BYTES},
    [GRPC_H2_RST_STREAM] = {ON_STREAM, 4, 4},
    [GRPC_H2_SETTINGS] = {ON_CONNECTION, 0, GRPC_H2_FRAME_BYTES},
    [GRPC_H2_PUSH_PROMISE] = {ON_STREAM, 0, GRPC_H2_FRAME_BYTES},
    [GRPC_H2_PING] = {ON_CONNECTION, GRPC_H2_PING_BYTES, GRPC_H2_PING_BYTES},
    [GRPC_H2_GOAWAY] = {ON_CONNECTION, 8, GRPC_H2_FRAME_BYTES},
    [GRPC_H2_WINDOW_UPDATE] = {ON_BOTH, 4, 4},
    [GRPC_H2_CONTINUATION] = {ON_STREAM, 0, GRPC_H2_FRAME_BYTES},
};

static bool has_known_type(const struct grpc_h2_head *frame)
{
    return frame->type < sizeof(rules) / sizeof(rules[0]);
}

/* Sizes and places; NULL: nothing is wrong with them. */
static const char *check_rules(const struct grpc_h2_head *frame, uint32_t *ret_error)
{
    const struct rule *rule = &rules[frame->type];

    *ret_error = GRPC_H2_FRAME_SIZE_ERROR;
    if (frame->len < rule->min_len || frame->len > rule->max_len)
        return "a frame of a wrong size";
    if (frame->type == GRPC_H2_SETTINGS &&
        (frame->len % GRPC_H2_SETTING_BYTES || (frame->flags & GRPC_H2_ACK && frame->len > 0)))
        return "SETTINGS of a wrong size";
    *ret_error = GRPC_H2_PROTOCOL_ERROR;
    if (rule->where != ON_BOTH && (frame->id == 0) != (rule->where == ON_CONNECTION))
        return "a frame where it does not belong";
    if (frame->type == GRPC_H2_PUSH_PROMISE)
        return "PUSH_PROMISE without a request for it";
    return NULL;
}

/* What may come now. */
static bool check_frame(struct grpc_session *session)
{
    const struct grpc_h2_head *frame = &session->frame;
    const struct grpc__incoming *block = &session->block;
    const bool goes_on = frame->type == GRPC_H2_CONTINUATION && frame->id == block->id;
    uint32_t error = GRPC_H2_PROTOCOL_ERROR;
    const char *why = NULL;

    if (!session->has_settings && (frame->type != GRPC_H2_SETTINGS || frame->flags & GRPC_H2_ACK)) {
        why = "SETTINGS must come first";
    } else if (frame->len > GRPC_H2_FRAME_BYTES) {
        why = "a frame that is too large";
        error = GRPC_H2_FRAME_SIZE_ERROR;
    } else if ((block->id != 0 || frame->type == GRPC_H2_CONTINUATION) && !goes_on) {
        why = "headers are not ended by CONTINUATION";
    } else if (has_known_type(frame)) {
        why = check_rules(frame, &error);
    }
    if (why)
        grpc__session_die(session, error, why);
    return !why;
}

/* The payload is whole. */
static void handle_frame(struct grpc_session *session, const uint8_t *bytes)
{
    session->input = GRPC__INPUT_HEAD;
    grpc__session_handle_frame(session, bytes);
}

/* Frames that carry neither a call nor a message waste our time. Those that the peer needs for our
 * output are forgiven by grpc__stream_took(), those that come slowly here. */
static bool is_idle_flood(struct grpc_session *session)
{
    int64_t now_ns;

    session->n_idle_bytes += GRPC_H2_HEAD_BYTES + session->frame.len;
    if (++session->n_idle_frames <= PEG_LIMIT_GRPC_IDLE_FRAMES &&
        session->n_idle_bytes <= PEG_LIMIT_GRPC_IDLE_BYTES)
        return false;
    now_ns = peg__mono_ns();
    if (now_ns < peg__clock_after_ms(session->idle_ns, PEG_LIMIT_GRPC_IDLE_MS))
        return true;
    session->idle_ns = now_ns;
    grpc__session_made_progress(session);
    return false;
}

/* Streams that begin after our final GOAWAY are ignored. */
static bool is_unwanted_flood(struct grpc_session *session)
{
    if (!session->has_goaway || session->options.is_client ||
        session->frame.id <= session->last_taken_id)
        return false;
    session->n_unwanted += GRPC_H2_HEAD_BYTES + session->frame.len;
    return session->n_unwanted > PEG_LIMIT_GRPC_UNWANTED_BYTES;
}

static void begin_frame(struct grpc_session *session, const uint8_t *head)
{
    session->frame = grpc_h2_read_head(head);
    session->n_head = 0;
    session->left = session->frame.len;
    if (!check_frame(session))
        return;
    if (is_idle_flood(session))
        grpc__session_flooded(session, "frames without progress");
    else if (is_unwanted_flood(session))
        grpc__session_flooded(session, "streams after GOAWAY");
    else if (session->frame.type == GRPC_H2_DATA)
        begin_data(session);
    else if (!has_known_type(&session->frame))
        session->input = GRPC__INPUT_SKIPPED;
    else if (session->frame.len == 0)
        handle_frame(session, head);
    else
        session->input = GRPC__INPUT_PAYLOAD;
}

/* ---- bytes -------------------------------------------------------------------------------- */

/* Gathers what comes in pieces; true when so many are there. */
static bool gather_head(struct grpc_session *session, struct input *in, size_t want)
{
    const size_t n = grpc__at_most(want - session->n_head, in->len);

    memcpy(session->head + session->n_head, in->at, n);
    session->n_head += n;
    skip_input(in, n);
    return session->n_head == want;
}

static void step_preface(struct grpc_session *session, struct input *in)
{
    const bool is_whole = gather_head(session, in, GRPC_H2_PREFACE_BYTES);

    if (memcmp(session->head, GRPC_H2_PREFACE, session->n_head) != 0) {
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR, "it does not begin as HTTP/2 does");
    } else if (is_whole) {
        session->n_head = 0;
        session->input = GRPC__INPUT_HEAD;
    }
}

static void step_head(struct grpc_session *session, struct input *in)
{
    if (session->n_head == 0 && in->len >= GRPC_H2_HEAD_BYTES) {
        const uint8_t *head = in->at;

        skip_input(in, GRPC_H2_HEAD_BYTES);
        begin_frame(session, head);
    } else if (gather_head(session, in, GRPC_H2_HEAD_BYTES)) {
        begin_frame(session, session->head);
    }
    /* A frame without bytes does not wait for one. */
    if (session->input == GRPC__INPUT_DATA && session->frame.len == 0 && !session->is_dead)
        end_data(session);
    else if (session->input == GRPC__INPUT_SKIPPED && session->left == 0)
        session->input = GRPC__INPUT_HEAD;
}

static void step_payload(struct grpc_session *session, struct input *in)
{
    struct peg__buf *payload = &session->payload;
    const size_t n = grpc__at_most(session->frame.len - payload->len, in->len);
    const uint8_t *bytes = in->at;

    skip_input(in, n);
    if (n == session->frame.len) {
        handle_frame(session, bytes);
        return;
    }
    peg__buf_add(payload, bytes, n);
    if (payload->status) {
        grpc__session_lose(session);
        return;
    }
    if (payload->len < session->frame.len)
        return;
    handle_frame(session, (const uint8_t *)payload->ptr);
    if (payload->capacity > KEPT_PAYLOAD)
        peg__buf_free(payload);
    peg__buf_clear(payload);
}

static void step_skipped(struct grpc_session *session, struct input *in)
{
    const size_t n = grpc__at_most(session->left, in->len);

    session->left -= n;
    skip_input(in, n);
    if (session->left == 0)
        session->input = GRPC__INPUT_HEAD;
}

static void take_step(struct grpc_session *session, struct input *in)
{
    switch (session->input) {
    case GRPC__INPUT_PREFACE:
        step_preface(session, in);
        break;
    case GRPC__INPUT_HEAD:
        step_head(session, in);
        break;
    case GRPC__INPUT_PAYLOAD:
        step_payload(session, in);
        break;
    case GRPC__INPUT_DATA:
        step_data(session, in);
        break;
    case GRPC__INPUT_SKIPPED:
        step_skipped(session, in);
        break;
    }
}

static peg_status fail_feed(const struct grpc_session *session, peg_error *reterr)
{
    if (session->is_flooded)
        return peg__fail(reterr, PEG_ELIMIT, "E_HTTP2_LIMIT",
                         "the peer sends more than a connection may: %s", session->why);
    return peg__fail(reterr, PEG_EPARSE, "E_HTTP2", "this is no HTTP/2: %s", session->why);
}

peg_status grpc_session_feed(struct grpc_session *session, const uint8_t *bytes, size_t len,
                             peg_error *reterr)
{
    struct input in = {bytes, len};

    session->n_busy++;
    while (in.len > 0 && !session->is_dead && !session->is_lost)
        take_step(session, &in);
    session->n_busy--;
    if (session->is_lost)
        return peg__fail_nomem(reterr);
    return session->is_dead ? fail_feed(session, reterr) : PEG_OK;
}
