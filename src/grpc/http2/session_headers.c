/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks of headers, field by field as they come, into the head of their stream. Whatever becomes
 * of the stream, the whole block is read, since HPACK remembers what was in it; but not more than a
 * few times what may be in a block, since one byte of it can stand for thousands.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session_internal.h"

enum {
    KEPT_REST = 256,
};

static const char too_large[] = "headers that are far too large "
                                "(max_header_bytes, PEG_LIMIT_GRPC_HEADER_TIMES)";

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

/* A stream that the client begins. Who has not heard how many there may be is told; who has is not
 * waited for. */
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

void grpc__block_begin(struct grpc_session *session)
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

static void hand_on(struct grpc_session *session, const struct grpc_hpack_field *field)
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

static void take_field(struct grpc_session *session, struct grpc_hpack_field *field)
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
        hand_on(session, field);
}

/* ---- its end ------------------------------------------------------------------------------ */

/* What the block says of the rest of the stream. */
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
            take_field(session, &field);
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

void grpc__block_take(struct grpc_session *session, const uint8_t *bytes, size_t len, bool is_last)
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
