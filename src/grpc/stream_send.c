/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a stream sends: blocks of headers, and messages that wait in `out` until the connection
 * and the peer's window take them. nghttp2 asks for them by grpc__stream_read().
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "grpc/gzip.h"
#include "grpc/session_internal.h"

enum { FIELDS_ON_STACK = 24 };

static size_t pending(const struct grpc_stream *stream)
{
    return stream->out.len - stream->out_sent;
}

/* ---- headers
 * --------------------------------------------------------------------------------------- */

/* nghttp2 copies names and values that may go before they are sent. */
static nghttp2_nv *to_nva(struct grpc_stream *stream, const struct grpc_block *block,
                          nghttp2_nv on_stack[FIELDS_ON_STACK])
{
    const uint8_t flags =
        block->is_static ? NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE : 0;
    nghttp2_nv *nva = on_stack;

    if (block->n > FIELDS_ON_STACK)
        nva = peg__arena_alloc(stream->arena, block->n * sizeof(*nva));
    if (!nva)
        return NULL;
    for (size_t i = 0; i < block->n; i++) {
        const struct grpc_field *field = &block->fields[i];

        nva[i] = (nghttp2_nv){.name = peg__unconst(field->name.ptr),
                              .value = peg__unconst(field->value.ptr),
                              .namelen = field->name.len,
                              .valuelen = field->value.len,
                              .flags = flags};
    }
    return nva;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are nghttp2's. */
static ssize_t read_out(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t max, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct grpc_stream *stream = grpc__session_find(user, id);

    (void)h2;
    (void)buf;
    (void)source;
    return stream ? grpc__stream_read(stream, max, flags) : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static const nghttp2_data_provider provider = {.read_callback = read_out};

static peg_status fail_h2(int h2_error, peg_error *reterr)
{
    if (h2_error == NGHTTP2_ERR_NOMEM)
        return peg__fail_nomem(reterr);
    if (h2_error == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
        return peg__fail(reterr, PEG_ELIMIT, "E_HTTP2_STREAM_IDS",
                         "this connection has had all the streams that it can have: use a new one");
    return peg__fail(reterr, PEG_ESTATE, "E_HTTP2", "HTTP/2 refuses: %s",
                     nghttp2_strerror(h2_error));
}

peg_status grpc_stream_open(struct grpc_stream *stream, struct grpc_session *session,
                            const struct grpc_block *headers, peg_error *reterr)
{
    nghttp2_nv on_stack[FIELDS_ON_STACK];
    const nghttp2_nv *nva = to_nva(stream, headers, on_stack);
    int32_t id;

    if (!nva || grpc__session_is_lost(session))
        return peg__fail_nomem(reterr);
    id = nghttp2_submit_request(session->h2, NULL, nva, headers->n, &provider, stream);
    if (id < 0)
        return fail_h2(id, reterr);
    stream->has_sent_headers = true;
    grpc__stream_attach(stream, session, id);
    grpc__session_output(session);
    return PEG_OK;
}

peg_status grpc_stream_respond(struct grpc_stream *stream, const struct grpc_block *headers,
                               bool is_last, peg_error *reterr)
{
    nghttp2_nv on_stack[FIELDS_ON_STACK];
    const nghttp2_nv *nva = to_nva(stream, headers, on_stack);
    int failed;

    if (!stream->session || stream->has_sent_headers)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE", "the headers have been sent");
    if (!nva || grpc__session_is_lost(stream->session))
        return peg__fail_nomem(reterr);
    failed = nghttp2_submit_response(stream->session->h2, stream->id, nva, headers->n,
                                     is_last ? NULL : &provider);
    if (failed)
        return fail_h2(failed, reterr);
    stream->has_sent_headers = true;
    stream->local_ended = is_last;
    stream->session->has_said_more = true;
    grpc__session_output(stream->session);
    return PEG_OK;
}

/* ---- messages
 * -------------------------------------------------------------------------------------- */

static void there_is_more(struct grpc_stream *stream)
{
    if (!stream->session || grpc__session_is_lost(stream->session))
        return;
    if (stream->is_deferred) {
        stream->is_deferred = false;
        nghttp2_session_resume_data(stream->session->h2, stream->id);
    }
    grpc__session_output(stream->session);
}

static peg_status check_room(struct grpc_stream *stream, size_t len, peg_error *reterr)
{
    if (stream->local_ended)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "nothing can be sent after the end of what is sent");
    if (len > UINT32_MAX - GRPC_PREFIX_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_MESSAGE_TOO_LARGE",
                         "a message of gRPC has at most 4 GiB");
    if (pending(stream) > 0 && pending(stream) + len > stream->max_out) {
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
    stream->was_full |= pending(stream) > GRPC_HIGH_MARK;
    if (stream->session)
        stream->session->queued += n;
}

/* What is gone makes room before more memory is asked for. */
static void pack_out(struct grpc_stream *stream, size_t len)
{
    struct peg__buf *out = &stream->out;

    if (stream->out_sent == 0 || out->capacity - out->len > len)
        return;
    memmove(out->ptr, out->ptr + stream->out_sent, pending(stream));
    out->len -= stream->out_sent;
    stream->out_sent = 0;
}

uint8_t *grpc_stream_reserve(struct grpc_stream *stream, size_t len, peg_error *reterr)
{
    uint8_t *prefix;

    if (check_room(stream, len, reterr))
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

static peg_status send_gzip(struct grpc_stream *stream, peg_str message, peg_error *reterr)
{
    struct peg__buf *out = &stream->out;
    peg_status status = check_room(stream, message.len, reterr);
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
    return !stream->local_ended && pending(stream) <= GRPC_HIGH_MARK;
}

/* ---- asked by nghttp2
 * ------------------------------------------------------------------------------- */

static int submit_trailers(struct grpc_stream *stream)
{
    nghttp2_nv on_stack[FIELDS_ON_STACK];
    const nghttp2_nv *nva = to_nva(stream, stream->trailers, on_stack);

    stream->session->has_said_more = true;
    return nva ? nghttp2_submit_trailer(stream->session->h2, stream->id, nva, stream->trailers->n)
               : NGHTTP2_ERR_NOMEM;
}

/* A frame that fits where somebody pulls, or where the next one will. */
static size_t fit(const struct grpc_session *session, size_t n)
{
    enum { FRAME_HEAD = 9, LITTLE = 256 };
    const size_t room = session->out_max - session->out_len;
    const size_t most = room >= LITTLE ? room - FRAME_HEAD : session->out_max - FRAME_HEAD;

    return n < most ? n : most;
}

/* How much can be sent now; the bytes are taken by grpc__stream_took(). */
ssize_t grpc__stream_read(struct grpc_stream *stream, size_t max, uint32_t *flags)
{
    const size_t n = fit(stream->session, pending(stream) < max ? pending(stream) : max);

    if (n == 0 && !stream->local_ended) {
        stream->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n < pending(stream) || !stream->local_ended)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!stream->trailers)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return submit_trailers(stream) ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : (ssize_t)n;
}

void grpc__stream_took(struct grpc_stream *stream, size_t n)
{
    stream->session->n_idle_frames = 0;
    stream->session->n_idle_bytes = 0;
    stream->session->n_moved += n;
    stream->session->has_said_more = true;
    stream->session->queued -= n;
    stream->out_sent += n;
    if (pending(stream) == 0) {
        stream->out.len = 0;
        stream->out_sent = 0;
    }
    if (stream->was_full && pending(stream) < GRPC_LOW_MARK) {
        stream->was_full = false;
        if (!stream->local_ended)
            stream->events->on_writable(stream);
    }
}
