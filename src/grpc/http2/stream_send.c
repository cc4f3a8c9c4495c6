/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a stream sends: blocks of headers, and messages that wait in `out` until the connection
 * and the peer's window take them. session_output.c asks for them.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/gzip.h"
#include "grpc/http2/session_internal.h"

/* ---- headers ------------------------------------------------------------------------------ */

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
        return peg__fail(reterr, PEG_ELIMIT, "E_HTTP2_STREAM_IDS",
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
    session->has_said_more = true;
    grpc__stream_schedule(stream);
    grpc__session_output(session);
    return PEG_OK;
}

/* ---- messages ----------------------------------------------------------------------------- */

static void there_is_more(struct grpc_stream *stream)
{
    if (!stream->session)
        return;
    grpc__stream_schedule(stream);
    grpc__session_output(stream->session);
}

/* `shared` bytes of the message take none of the stream's memory: they count for the connection
 * only, which keeps them from being freed. */
static peg_status check_room(struct grpc_stream *stream, size_t len, size_t shared,
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
                         "more than %zu bytes wait to be sent (PEG_LIMIT_GRPC_SEND_BYTES): wait "
                         "for on_writable",
                         stream->max_out);
    }
    if (stream->session && stream->session->queued > 0 &&
        stream->session->queued + len > stream->session->options.max_held)
        return peg__fail(reterr, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
                         "more than %zu bytes wait to be sent on this connection "
                         "(PEG_LIMIT_GRPC_HELD_BYTES): its peer does not read",
                         stream->session->options.max_held);
    return PEG_OK;
}

static void queued(struct grpc_stream *stream, size_t n)
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

uint8_t *grpc_stream_reserve(struct grpc_stream *stream, size_t len, peg_error *reterr)
{
    uint8_t *prefix;

    if (check_room(stream, len, 0, reterr))
        return NULL;
    pack_out(stream, len + GRPC_PREFIX_BYTES);
    prefix = (uint8_t *)peg__buf_reserve(&stream->out, len + GRPC_PREFIX_BYTES);
    if (!prefix) {
        stream->out.status = PEG_OK;
        peg__fail_nomem(reterr);
        return NULL;
    }
    return prefix + GRPC_PREFIX_BYTES;
}

void grpc_stream_commit(struct grpc_stream *stream, size_t len)
{
    grpc_prefix_write((uint8_t *)stream->out.ptr + stream->out.len, false, (uint32_t)len);
    stream->out.len += GRPC_PREFIX_BYTES + len;
    queued(stream, GRPC_PREFIX_BYTES + len);
    there_is_more(stream);
}

peg_status grpc_stream_send_shared(struct grpc_stream *stream, peg_str head, struct peg__blob *blob,
                                   peg_str rest, peg_error *reterr)
{
    const size_t len = head.len + rest.len;
    peg_status status = check_room(stream, len, rest.len, reterr);
    char prefix[GRPC_PREFIX_BYTES];

    if (status)
        return status;
    pack_out(stream, GRPC_PREFIX_BYTES + head.len);
    if (!peg__buf_reserve(&stream->out, GRPC_PREFIX_BYTES + head.len)) {
        stream->out.status = PEG_OK;
        return peg__fail_nomem(reterr);
    }
    grpc_prefix_write((uint8_t *)prefix, false, (uint32_t)len);
    peg__buf_add(&stream->out, prefix, sizeof(prefix));
    peg__buf_str(&stream->out, head);
    stream->shared = peg__blob_ref(blob);
    stream->shared_rest = rest;
    queued(stream, GRPC_PREFIX_BYTES + len);
    there_is_more(stream);
    return PEG_OK;
}

static peg_status send_gzip(struct grpc_stream *stream, peg_str message, peg_error *reterr)
{
    struct peg__buf *out = &stream->out;
    peg_status status = check_room(stream, message.len, 0, reterr);
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
    queued(stream, out->len - start);
    there_is_more(stream);
    return PEG_OK;
}

peg_status grpc_stream_send(struct grpc_stream *stream, peg_str message, peg_error *reterr)
{
    peg_error error;
    uint8_t *room;

    if (stream->uses_gzip && !stream->skips_gzip)
        return send_gzip(stream, message, reterr);
    room = grpc_stream_reserve(stream, message.len, &error);
    if (!room) {
        if (reterr)
            *reterr = error;
        return error.status;
    }
    if (message.len > 0)
        memcpy(room, message.ptr, message.len);
    grpc_stream_commit(stream, message.len);
    return PEG_OK;
}

peg_status grpc_stream_send_plain(struct grpc_stream *stream, peg_str bytes, peg_error *reterr)
{
    const peg_status status = check_room(stream, bytes.len, 0, reterr);

    if (status)
        return status;
    pack_out(stream, bytes.len);
    if (!peg__buf_reserve(&stream->out, bytes.len)) {
        stream->out.status = PEG_OK;
        return peg__fail_nomem(reterr);
    }
    peg__buf_str(&stream->out, bytes);
    queued(stream, bytes.len);
    there_is_more(stream);
    return PEG_OK;
}

peg_status grpc_stream_end(struct grpc_stream *stream, const struct grpc_block *trailers,
                           peg_error *reterr)
{
    if (stream->local_ended)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE", "the end has been said already");
    stream->local_ended = true;
    stream->trailers = trailers;
    there_is_more(stream);
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

/* ---- what is gone ------------------------------------------------------------------------- */

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
    session->has_said_more = true;
    session->queued -= n;
    stream->n_steps++;
    forget_sent(stream, n);
    grpc__stream_measure(stream);
    if (!stream->was_full || grpc__stream_pending(stream) >= GRPC_LOW_MARK)
        return false;
    stream->was_full = false;
    return !stream->local_ended;
}
