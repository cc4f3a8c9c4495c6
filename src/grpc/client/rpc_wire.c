/* SPDX-License-Identifier: Apache-2.0 */

/* A call on the wire: its headers and the messages so far go out when it is opened, its answer
 * comes in by the events of its stream. */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "grpc/client/internal.h"
#include "grpc/http2/session.h"

/* Fields of the protocol, of which two are not always there. */
enum { MAX_OWN_FIELDS = 10, HTTP_OK = 200 };
/* Connections on which a call may be tried that break before they have sent it. */
enum { MAX_TRIES = 16 };

static struct grpc_rpc *rpc_of(struct grpc_stream *stream)
{
    return peg__container_of(stream, struct grpc_rpc, stream);
}

/* ---- headers out -------------------------------------------------------------------------- */

struct fields {
    struct grpc_field *at;
    size_t n;
};

static void put_header(struct fields *fields, peg_str name, peg_str value)
{
    fields->at[fields->n++] = (struct grpc_field){name, value};
}

#define PUT(fields, name, value)                                                                   \
    put_header(fields, (peg_str){(name), sizeof(name) - 1}, (peg_str){(value), sizeof(value) - 1})

static bool put_timeout(struct grpc_rpc *rpc, struct fields *fields)
{
    char *text;
    size_t len;

    if (rpc->deadline_ns == NET_NEVER)
        return true;
    text = peg__arena_alloc(&rpc->arena, GRPC_TIMEOUT_TEXT);
    if (!text)
        return false;
    len = grpc_timeout_format(rpc->deadline_ns - net_loop_now_ns(rpc->channel->loop), text);
    put_header(fields, peg__str("grpc-timeout"), peg__strn(text, len));
    return true;
}

static bool put_metadata(struct grpc_rpc *rpc, struct fields *fields)
{
    for (size_t i = 0; i < rpc->metadata.n; i++) {
        const struct grpc_metadata_entry *entry = &rpc->metadata.entries[i];
        peg_str value = entry->value;

        if (grpc_metadata_is_binary(entry->key)) {
            char *text = peg__arena_alloc(&rpc->arena, peg__base64_len(value.len) + 1);

            if (!text)
                return false;
            value = peg__strn(text, grpc_metadata_encode_bin(value, text));
        }
        put_header(fields, entry->key, value);
    }
    return true;
}

static bool make_headers(struct grpc_rpc *rpc, const char *authority, struct grpc_block *ret_block)
{
    const struct grpc_channel *channel = rpc->channel;
    struct fields fields = {.at = peg__arena_alloc(&rpc->arena, (MAX_OWN_FIELDS + rpc->metadata.n) *
                                                                    sizeof(struct grpc_field))};

    if (!fields.at)
        return false;
    PUT(&fields, ":method", "POST");
    if (channel->options.tls)
        PUT(&fields, ":scheme", "https");
    else
        PUT(&fields, ":scheme", "http");
    put_header(&fields, peg__str(":path"), peg__str(rpc->method->path));
    put_header(&fields, peg__str(":authority"), peg__str(authority));
    PUT(&fields, "te", "trailers");
    PUT(&fields, "content-type", "application/grpc");
    put_header(&fields, peg__str("user-agent"), peg__str(channel->user_agent));
    PUT(&fields, "grpc-accept-encoding", "identity,gzip");
    if (rpc->uses_gzip)
        PUT(&fields, "grpc-encoding", "gzip");
    if (!put_timeout(rpc, &fields) || !put_metadata(rpc, &fields))
        return false;
    *ret_block = (struct grpc_block){.fields = fields.at, .n = fields.n, .is_kept = true};
    return true;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Messages from before there was a stream. */
static peg_status send_kept(struct grpc_rpc *rpc, peg_error *reterr)
{
    peg_str left = peg__buf_view(&rpc->kept);
    peg_status status = PEG_OK;

    /* Its bound was that of `kept`; a prefix more for each message must not be too much. */
    rpc->stream.max_out = SIZE_MAX / 2;
    while (!status && left.len > 0) {
        struct grpc__kept kept;

        memcpy(&kept, left.ptr, sizeof(kept));
        left = peg__str_from(left, sizeof(kept));
        rpc->stream.skips_gzip = kept.skips_gzip;
        status = grpc_stream_send(&rpc->stream, peg__strn(left.ptr, kept.len), reterr);
        left = peg__str_from(left, kept.len);
    }
    rpc->stream.skips_gzip = rpc->skips_gzip;
    rpc->stream.max_out = rpc->channel->options.max_send_bytes;
    if (!status && rpc->kept.len > PEG_LIMIT_GRPC_KEPT_BYTES) {
        peg__buf_free(&rpc->kept);
        rpc->kept.max = SIZE_MAX / 2;
        rpc->is_keeping = false;
    }
    return status;
}

static void fail_opening(struct grpc_rpc *rpc, struct grpc_client_conn *conn,
                         const peg_error *error)
{
    struct grpc_channel *channel = rpc->channel;

    if (error->status == PEG_ENOMEM) {
        grpc__rpc_fail(rpc, GRPC_RESOURCE_EXHAUSTED, "%s", error->message);
        return;
    }
    /* No more numbers for streams, or at its end already: another connection takes it. */
    grpc_client_conn_retire(conn);
    grpc__channel_send_again(channel, rpc);
}

static peg_status open_stream(struct grpc_rpc *rpc, struct grpc_client_conn *conn,
                              peg_error *reterr)
{
    struct grpc_block block;
    const char *peer = peg__arena_copy(&rpc->arena, peg__str(conn->peer));

    if (!peer || !make_headers(rpc, conn->options.authority, &block))
        return peg__fail_nomem(reterr);
    rpc->peer = peer;
    rpc->stream.uses_gzip = rpc->uses_gzip;
    rpc->stream.is_paused = rpc->is_paused;
    return grpc_stream_open(&rpc->stream, conn->session, &block, reterr);
}

void grpc__rpc_open(struct grpc_rpc *rpc, struct grpc_client_conn *conn)
{
    peg_error error;

    rpc->state = GRPC__RPC_OPEN;
    rpc->n_tries++;
    if (open_stream(rpc, conn, &error)) {
        fail_opening(rpc, conn, &error);
        return;
    }
    rpc->conn = conn;
    /* What filled the queue may be less on the wire: on_writable is owed all the same. */
    rpc->stream.was_full |= rpc->kept.len > GRPC_HIGH_MARK;
    grpc_client_conn_took(conn);
    if (send_kept(rpc, &error) ||
        (rpc->is_half_closed && grpc_stream_end(&rpc->stream, NULL, &error)))
        grpc__rpc_fail(rpc, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
}

/* ---- the answer --------------------------------------------------------------------------- */

static void stop_keeping(struct grpc_rpc *rpc)
{
    rpc->is_keeping = false;
    peg__buf_clear(&rpc->kept);
}

static void on_rpc_headers(struct grpc_stream *stream)
{
    struct grpc_rpc *rpc = rpc_of(stream);
    const struct grpc_head *head = &stream->head;
    const bool is_grpc = grpc_head_is_grpc(head);

    rpc->was_answered = true;
    stop_keeping(rpc);
    if (rpc->state != GRPC__RPC_OPEN)
        return;
    if (head->http_status != HTTP_OK && !(is_grpc && head->has_status))
        grpc__rpc_fail(rpc, grpc_code_from_http(head->http_status),
                       "the server answered with HTTP status %d, which is no answer of gRPC",
                       head->http_status);
    else if (!is_grpc)
        grpc__rpc_fail(rpc, GRPC_UNKNOWN,
                       "the server answered with content type '%.100s', which is none of gRPC",
                       head->content_type.ptr ? head->content_type.ptr : "");
    else if (!head->has_status && rpc->events.on_headers)
        rpc->events.on_headers(rpc, &head->metadata, rpc->user);
}

static void deliver_message(struct grpc_rpc *rpc, const void *message)
{
    if (rpc->events.on_message)
        rpc->events.on_message(rpc, message, rpc->user);
}

static void deliver_unpacked(struct grpc_rpc *rpc, peg_str bytes)
{
    const struct ProtobufCMessage *message;
    peg_error error;
    const peg_status status =
        grpc_message_unpack(rpc->method->output, &rpc->messages, bytes, &message, &error);

    if (status)
        grpc__rpc_fail(rpc, status == PEG_EPARSE ? GRPC_INTERNAL : GRPC_RESOURCE_EXHAUSTED,
                       "the answer cannot be read: %s", error.message);
    else
        deliver_message(rpc, message);
    peg__arena_reset(&rpc->messages);
    if (rpc->messages.held > PEG_LIMIT_GRPC_SPARE_BYTES)
        peg__arena_free(&rpc->messages);
}

static void on_rpc_message(struct grpc_stream *stream, peg_str message)
{
    struct grpc_rpc *rpc = rpc_of(stream);

    if (rpc->state != GRPC__RPC_OPEN)
        return;
    if (!rpc->method->server_streams && rpc->n_messages > 0) {
        grpc__rpc_fail(rpc, GRPC_INTERNAL,
                       "the server sent more than one message, and %s answers with one",
                       rpc->method->path);
        return;
    }
    rpc->n_messages = 1;
    if (rpc->method->output)
        deliver_unpacked(rpc, message);
    else
        deliver_message(rpc, &message);
}

/* The head is that of the trailers if it has no HTTP status, or the only one. */
static void on_rpc_remote_end(struct grpc_stream *stream)
{
    struct grpc_rpc *rpc = rpc_of(stream);
    const struct grpc_head *head = &stream->head;
    const bool is_first_head = head->http_status != 0;
    const struct grpc_status status = {
        .code = head->code, .message = head->message, .details = head->details};

    if (rpc->state != GRPC__RPC_OPEN)
        return;
    rpc->has_trailers = head->has_status || !is_first_head;
    if (!head->has_status && is_first_head)
        grpc__rpc_fail(rpc, GRPC_INTERNAL, "the server ended the call without trailers");
    else if (!head->has_status)
        grpc__rpc_fail(rpc, GRPC_UNKNOWN, "the server ended the call without grpc-status");
    else if (head->code == GRPC_OK && rpc->n_messages == 0 && !rpc->method->server_streams)
        grpc__rpc_fail(rpc, GRPC_INTERNAL,
                       "the server answered OK without a message, and %s answers with one",
                       rpc->method->path);
    else
        grpc__rpc_settle(rpc, &status);
}

static void on_rpc_writable(struct grpc_stream *stream)
{
    struct grpc_rpc *rpc = rpc_of(stream);

    if (rpc->state == GRPC__RPC_OPEN && rpc->events.on_writable)
        rpc->events.on_writable(rpc, rpc->user);
}

static void on_rpc_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    grpc__rpc_fail(rpc_of(stream), status->code, "%.*s", PEG_ARG(status->message));
}

/* ---- off the wire ------------------------------------------------------------------------- */

/* A server that refused it, or has never seen it, has done nothing. */
static bool may_go_again(const struct grpc_rpc *rpc, uint32_t h2_error)
{
    if (rpc->was_answered || !rpc->is_keeping || net_loop_is_ending(rpc->channel->loop))
        return false;
    if (!rpc->was_sent)
        return rpc->n_tries < MAX_TRIES;
    return h2_error == GRPC_H2_REFUSED_STREAM && !rpc->was_sent_again;
}

static void send_again(struct grpc_rpc *rpc)
{
    const bool was_full = rpc->stream.was_full;

    rpc->was_sent_again |= rpc->was_sent;
    grpc__rpc_ready_stream(rpc);
    rpc->stream.was_full = was_full; /* on_writable is still owed */
    grpc__channel_send_again(rpc->channel, rpc);
}

static void on_rpc_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    struct grpc_rpc *rpc = rpc_of(stream);
    const struct grpc_client_conn *conn = rpc->conn;

    grpc__rpc_leave_wire(rpc);
    if (rpc->state != GRPC__RPC_OPEN)
        return;
    if (stream->remote_ended && rpc->is_paused)
        return; /* the answer is whole, and its rest waits for grpc__rpc_resume() */
    if (may_go_again(rpc, h2_error))
        send_again(rpc);
    else if (conn && conn->lost.status)
        grpc__rpc_fail(rpc, GRPC_UNAVAILABLE, "the connection was lost: %s", conn->lost.message);
    else
        grpc__rpc_fail(
            rpc,
            grpc_code_from_h2(h2_error, rpc->deadline_ns <= net_loop_now_ns(rpc->channel->loop)),
            "the server reset the call (HTTP/2 error %u, %s)", h2_error,
            grpc_h2_error_name(h2_error));
}

void grpc__rpc_take_back(struct grpc_rpc *rpc)
{
    if (rpc->state != GRPC__RPC_OPEN || rpc->stream.has_left)
        return;
    grpc__rpc_leave_wire(rpc);
    if (may_go_again(rpc, GRPC_H2_REFUSED_STREAM))
        send_again(rpc);
    else
        grpc__rpc_fail(rpc, GRPC_UNAVAILABLE, "%s takes no more calls", rpc->peer);
}

static const struct grpc_stream_events stream_events = {
    .on_headers = on_rpc_headers,
    .on_message = on_rpc_message,
    .on_remote_end = on_rpc_remote_end,
    .on_writable = on_rpc_writable,
    .on_broken = on_rpc_broken,
    .on_closed = on_rpc_closed,
};

void grpc__rpc_ready_stream(struct grpc_rpc *rpc)
{
    grpc_stream_init(&rpc->stream, &stream_events, &rpc->arena, rpc->max_message,
                     rpc->channel->options.max_header_bytes);
}

/* ---- resuming ----------------------------------------------------------------------------- */

/* The stream has closed behind a whole answer while the call was paused: the rest is read here. */
static void read_paused_rest(struct grpc_rpc *rpc)
{
    struct grpc_stream *stream = &rpc->stream;
    peg_str bytes = peg__buf_view(&stream->waiting);
    peg_status status = PEG_OK;
    bool has_message = true;
    peg_str message;
    peg_error error;

    while (!status && has_message && !rpc->is_paused && rpc->state == GRPC__RPC_OPEN) {
        status = grpc_reader_next(&stream->reader, &bytes, &has_message, &message, &error);
        if (!status && has_message)
            on_rpc_message(stream, message);
    }
    if (bytes.len > 0)
        memmove(stream->waiting.ptr, bytes.ptr, bytes.len);
    stream->waiting.len = bytes.len;
    if (status || (!has_message && grpc_reader_held(&stream->reader) > 0))
        grpc__rpc_fail(rpc, status == PEG_ELIMIT ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL, "%s",
                       status ? error.message : "the stream ended within a message");
    else if (!has_message)
        on_rpc_remote_end(stream);
}

void grpc__rpc_resume(struct grpc_rpc *rpc)
{
    if (rpc->conn) {
        grpc_stream_resume(&rpc->stream);
        return;
    }
    if (rpc->state != GRPC__RPC_OPEN || rpc->is_draining)
        return;
    rpc->is_draining = true;
    read_paused_rest(rpc);
    rpc->is_draining = false;
}
