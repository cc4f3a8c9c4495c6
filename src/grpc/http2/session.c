/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One HTTP/2 connection (RFC 9113): its beginning, its streams by number, its end. Input:
 *
 *   grpc_session_feed  session_input.c    bytes -> frames, DATA
 *                      session_frames.c   settings, windows, headers, ends of streams
 *                      stream.c           DATA -> messages
 *
 * Output: session_output.c, by grpc_session_pull().
 */

#include "grpc/http2/session.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

/* Until the peer has sent how many streams it takes. */
enum { PEER_STREAMS_AT_FIRST = 100 };

/* ---- the beginning ------------------------------------------------------------------------ */

static uint8_t *put_own_settings(const struct grpc_session *session, uint8_t *to)
{
    const struct grpc_session_options *options = &session->options;
    const struct grpc_h2_head head = {.len = 4 * GRPC_H2_SETTING_BYTES, .type = GRPC_H2_SETTINGS};

    to = grpc_h2_write_head(to, &head);
    to = grpc_h2_write_setting(to, GRPC_H2_INITIAL_WINDOW_SIZE, options->stream_window);
    to = grpc_h2_write_setting(to, GRPC_H2_MAX_HEADER_LIST_SIZE,
                               (uint32_t)options->max_header_bytes);
    to = grpc_h2_write_setting(to, GRPC_H2_NO_RFC7540_PRIORITIES, 1);
    return options->is_client
               ? grpc_h2_write_setting(to, GRPC_H2_ENABLE_PUSH, 0)
               : grpc_h2_write_setting(to, GRPC_H2_MAX_CONCURRENT_STREAMS, options->max_streams);
}

/* The first frames of either side. */
static peg_status put_preface(struct grpc_session *session)
{
    enum { SETTINGS_BYTES = GRPC_H2_HEAD_BYTES + 4 * GRPC_H2_SETTING_BYTES };
    const size_t preface = session->options.is_client ? GRPC_H2_PREFACE_BYTES : 0;
    const size_t window = session->n_unreturned > 0 ? GRPC_H2_U32_FRAME_BYTES : 0;
    uint8_t *to = grpc__session_control(session, preface + SETTINGS_BYTES + window);

    if (!to)
        return PEG_ENOMEM;
    memcpy(to, GRPC_H2_PREFACE, preface);
    to = put_own_settings(session, to + preface);
    if (window) {
        grpc_h2_write_u32_frame(to, GRPC_H2_WINDOW_UPDATE, 0, (uint32_t)session->n_unreturned);
        session->n_unreturned = 0;
    }
    return PEG_OK;
}

peg_status grpc_session_new(const struct grpc_session_options *options,
                            const struct grpc_session_events *events, void *user,
                            struct grpc_session **ret_session, peg_error *reterr)
{
    struct grpc_session *session = peg__alloc_zero(1, sizeof(*session));

    if (!session)
        return peg__fail_nomem(reterr);
    session->options = *options;
    session->options.stream_window =
        (uint32_t)grpc__at_most(options->stream_window, GRPC_H2_MAX_WINDOW);
    session->options.session_window =
        (uint32_t)grpc__at_most(options->session_window, GRPC_H2_MAX_WINDOW);
    session->events = events;
    session->user = user;
    session->buckets = session->few;
    session->n_buckets = GRPC__BUCKETS;
    session->next_id = 1;
    session->input = options->is_client ? GRPC__INPUT_HEAD : GRPC__INPUT_PREFACE;
    session->payload.max = GRPC_H2_FRAME_BYTES + 1;
    session->block.rest.max = SIZE_MAX / 2;
    session->control.max = session->spill.max = SIZE_MAX / 2;
    session->stream_limit = session->options.stream_window > GRPC_H2_FIRST_WINDOW
                                ? session->options.stream_window
                                : GRPC_H2_FIRST_WINDOW;
    session->n_unreturned = (int64_t)session->options.session_window - GRPC_H2_FIRST_WINDOW;
    session->peer_max_streams = PEER_STREAMS_AT_FIRST;
    session->peer_stream_window = GRPC_H2_FIRST_WINDOW;
    session->peer_max_header_bytes = UINT32_MAX;
    session->peer_last_id = INT32_MAX;
    session->window = GRPC_H2_FIRST_WINDOW;
    session->reset_tokens = options->reset_burst;
    session->idle_ns = peg__mono_ns();
    grpc_hpack_decoder_init(&session->decoder);
    grpc_hpack_encoder_init(&session->encoder);
    if (put_preface(session)) {
        grpc_session_free(session);
        return peg__fail_nomem(reterr);
    }
    *ret_session = session;
    return PEG_OK;
}

struct grpc_session *grpc_session_free(struct grpc_session *session)
{
    if (!session)
        return NULL;
    session->n_busy++; /* what the streams do now does not come back to the owner */
    while (session->streams)
        grpc__stream_closed(session->streams,
                            session->options.is_client ? GRPC_H2_CANCEL : GRPC_H2_CONNECT_ERROR);
    if (session->buckets != session->few)
        peg__free(session->buckets);
    grpc_hpack_decoder_free(&session->decoder);
    grpc_hpack_encoder_free(&session->encoder);
    peg__buf_free(&session->payload);
    peg__buf_free(&session->block.rest);
    peg__buf_free(&session->control);
    peg__buf_free(&session->spill);
    peg__free(session);
    return NULL;
}

/* ---- streams by number -------------------------------------------------------------------- */

/* Numbers are odd and go up, so neighbours have places of their own. */
static struct grpc_stream **bucket_of(const struct grpc_session *session, int32_t id)
{
    return &session->buckets[((uint32_t)id >> 1) & (session->n_buckets - 1)];
}

/* Without memory the old ones have to do. */
static void grow_buckets(struct grpc_session *session)
{
    const uint32_t n_buckets = 4 * session->n_buckets;
    struct grpc_stream **buckets = peg__alloc_zero(n_buckets, sizeof(struct grpc_stream *));

    if (!buckets)
        return;
    if (session->buckets != session->few)
        peg__free(session->buckets);
    session->buckets = buckets;
    session->n_buckets = n_buckets;
    for (struct grpc_stream *stream = session->streams; stream; stream = stream->next) {
        struct grpc_stream **bucket = bucket_of(session, stream->id);

        stream->bucket_next = *bucket;
        *bucket = stream;
    }
}

void grpc__session_add(struct grpc_session *session, struct grpc_stream *stream)
{
    struct grpc_stream **bucket;

    if (session->n_streams >= 2 * (size_t)session->n_buckets)
        grow_buckets(session);
    bucket = bucket_of(session, stream->id);
    stream->bucket_next = *bucket;
    *bucket = stream;
    PEG_LIST_PUSH(session->streams, stream, next, prev);
    session->n_streams++;
    session->found = stream;
}

void grpc__session_remove(struct grpc_session *session, struct grpc_stream *stream)
{
    struct grpc_stream **at = bucket_of(session, stream->id);

    while (*at != stream)
        at = &(*at)->bucket_next;
    *at = stream->bucket_next;
    if (session->found == stream)
        session->found = NULL;
    PEG_LIST_REMOVE(session->streams, stream, next, prev);
    session->n_streams--;
}

struct grpc_stream *grpc__session_find_stream(struct grpc_session *session, int32_t id)
{
    struct grpc_stream *stream = *bucket_of(session, id);

    while (stream && stream->id != id)
        stream = stream->bucket_next;
    session->found = stream;
    return stream;
}

bool grpc__session_is_idle(const struct grpc_session *session, int32_t id)
{
    const bool is_odd = id & 1;

    /* Only clients begin streams. */
    return !is_odd || id > (session->options.is_client ? session->last_sent_id : session->last_id);
}

/* ---- streams of the past ------------------------------------------------------------------ */

void grpc__session_note_begun(struct grpc_session *session, int32_t id)
{
    struct grpc__past_ids *past = &session->past;
    const int32_t next_id = session->last_id ? session->last_id + 2 : 1;

    if (id > next_id) {
        const unsigned at = past->n_skipped++ % GRPC__SKIPPED_IDS;

        past->skipped[at].first = next_id;
        past->skipped[at].last = id - 2;
    }
    session->last_id = id;
}

void grpc__session_note_ended(struct grpc_session *session, int32_t id)
{
    session->past.ended[session->past.n_ended++ % GRPC__ENDED_IDS] = id;
}

bool grpc__session_may_be_late(struct grpc_session *session, int32_t id)
{
    const struct grpc__past_ids *past = &session->past;

    for (unsigned i = 0; i < GRPC__ENDED_IDS; i++) {
        if (past->ended[i] != id)
            continue;
        grpc__session_die(session, GRPC_H2_STREAM_CLOSED, "a frame after the end of its stream");
        return false;
    }
    for (unsigned i = 0; i < GRPC__SKIPPED_IDS; i++) {
        if (id < past->skipped[i].first || id > past->skipped[i].last)
            continue;
        grpc__session_die(session, GRPC_H2_PROTOCOL_ERROR,
                          "a stream whose number is below one that was used");
        return false;
    }
    return true;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void put_goaway(struct grpc_session *session, int32_t last_id, uint32_t h2_error,
                       const char *why)
{
    enum { LAST_AND_ERROR = 8, MAX_WHY = 200 };
    const size_t len = strnlen(why, MAX_WHY);
    const struct grpc_h2_head head = {.len = (uint32_t)(LAST_AND_ERROR + len),
                                      .type = GRPC_H2_GOAWAY};
    uint8_t *to = grpc__session_control(session, GRPC_H2_HEAD_BYTES + head.len);

    if (!to)
        return;
    to = grpc_h2_write_head(to, &head);
    grpc_h2_put_u32(to, (uint32_t)last_id);
    grpc_h2_put_u32(to + 4, h2_error);
    memcpy(to + LAST_AND_ERROR, why, len);
    session->has_sent_error |= h2_error != GRPC_H2_NO_ERROR;
}

void grpc__session_lose(struct grpc_session *session)
{
    session->is_lost = true;
}

void grpc__session_die(struct grpc_session *session, uint32_t h2_error, const char *why)
{
    if (session->is_dead || session->is_lost)
        return;
    session->is_dead = true;
    session->why = why;
    put_goaway(session, session->last_taken_id, h2_error, why);
}

void grpc__session_flooded(struct grpc_session *session, const char *of_what)
{
    session->is_flooded = true;
    grpc__session_die(session, GRPC_H2_ENHANCE_YOUR_CALM, of_what);
}

/* A client with a bug in one of its calls is no flood, however long it stays. */
void grpc__session_count_invalid(struct grpc_session *session)
{
    const int64_t now_ns = peg__mono_ns();

    if (now_ns >= peg__clock_after_ms(session->invalid_ns, PEG_LIMIT_GRPC_IDLE_MS)) {
        session->n_invalid_frames = 0;
        session->invalid_ns = now_ns;
    }
    if (++session->n_invalid_frames > PEG_LIMIT_GRPC_INVALID_FRAMES)
        grpc__session_flooded(session, "frames that make us reset or refuse a stream");
}

void grpc__session_fail_stream(struct grpc_session *session, struct grpc_stream *stream,
                               uint32_t h2_error)
{
    grpc__session_count_invalid(session);
    if (stream->must_reset)
        return;
    stream->must_reset = true;
    stream->reset_code = h2_error;
    grpc__stream_schedule(stream);
}

void grpc__session_reset_id(struct grpc_session *session, int32_t id, uint32_t h2_error)
{
    uint8_t *to = grpc__session_answer(session, GRPC_H2_U32_FRAME_BYTES);

    if (to)
        grpc_h2_write_u32_frame(to, GRPC_H2_RST_STREAM, id, h2_error);
}

void grpc_session_goaway(struct grpc_session *session, bool is_final, uint32_t h2_error,
                         const char *why)
{
    if (session->has_goaway || session->is_dead || session->is_lost)
        return;
    if (is_final) {
        session->has_goaway = true;
        put_goaway(session, session->last_taken_id, h2_error, why);
    } else if (!session->options.is_client) {
        put_goaway(session, INT32_MAX, GRPC_H2_NO_ERROR, "");
    }
    grpc__session_output(session);
}

void grpc_session_ping(struct grpc_session *session)
{
    const struct grpc_h2_head head = {.len = GRPC_H2_PING_BYTES, .type = GRPC_H2_PING};
    uint8_t *to;

    if (session->is_dead || session->is_lost)
        return;
    to = grpc__session_control(session, GRPC_H2_HEAD_BYTES + GRPC_H2_PING_BYTES);
    if (to)
        memset(grpc_h2_write_head(to, &head), 0, GRPC_H2_PING_BYTES);
    grpc__session_output(session);
}

/* ---- state -------------------------------------------------------------------------------- */

bool grpc_session_is_feeding(const struct grpc_session *session)
{
    return session->n_busy > 0;
}

bool grpc_session_has_sent_error(const struct grpc_session *session)
{
    return session->has_sent_error;
}

bool grpc_session_is_over(const struct grpc_session *session)
{
    if (session->is_lost)
        return true;
    if (grpc_session_has_output(session))
        return false;
    return session->is_dead ||
           (session->n_streams == 0 && (session->has_goaway || session->was_sent_away));
}

size_t grpc_session_n_streams(const struct grpc_session *session)
{
    return session->n_streams;
}

uint32_t grpc_session_peer_max_streams(const struct grpc_session *session)
{
    return session->peer_max_streams;
}

uint32_t grpc_session_peer_max_header_bytes(const struct grpc_session *session)
{
    return session->peer_max_header_bytes;
}

bool grpc_session_has_new_output(struct grpc_session *session)
{
    const bool has_new_output = session->has_new_output;

    session->has_new_output = false;
    return has_new_output;
}

size_t grpc_session_held(const struct grpc_session *session)
{
    return session->held;
}

size_t grpc_session_memory(const struct grpc_session *session)
{
    return session->memory + session->control.capacity + session->spill.capacity +
           session->payload.capacity + session->block.rest.capacity +
           session->decoder.table.capacity + session->decoder.text_capacity +
           session->encoder.table.capacity;
}

const char *grpc_h2_error_name(uint32_t h2_error)
{
    static const char *const names[] = {
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    };

    return h2_error < sizeof(names) / sizeof(names[0]) ? names[h2_error] : "an unknown error";
}
