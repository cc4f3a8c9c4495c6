/* SPDX-License-Identifier: Apache-2.0 */

/* The headers, messages and trailers of a call that go to its client. */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/message.h"
#include "grpc/server/internal.h"

#define FIELD(name, value)                                                                         \
    {                                                                                              \
        PEG_LIT(name), PEG_LIT(value)                                                              \
    }

/* What nearly every call is answered with. */
static const struct grpc_field plain_headers[] = {
    FIELD(":status", "200"),
    FIELD("content-type", "application/grpc"),
};
static const struct grpc_field gzip_headers[] = {
    FIELD(":status", "200"),
    FIELD("content-type", "application/grpc"),
    FIELD("grpc-encoding", "gzip"),
    FIELD("grpc-accept-encoding", "identity,gzip"),
};
static const struct grpc_field unimplemented_encoding_headers[] = {
    FIELD(":status", "200"),
    FIELD("content-type", "application/grpc"),
    FIELD("grpc-accept-encoding", "identity,gzip"),
};
static const struct grpc_field ok_trailers[] = {
    FIELD("grpc-status", "0"),
};
static const struct grpc_block ok_block = {.fields = ok_trailers, .n = 1, .is_static = true};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Collects fields in the arena of the call. `fields` is NULL when there was no memory. */
struct block {
    struct peg__arena *arena;
    struct grpc_field *fields;
    size_t n;
};

static struct block new_block(struct grpc_call *call, size_t max_fields)
{
    return (struct block){
        .arena = &call->arena,
        .fields = peg__arena_alloc(&call->arena, max_fields * sizeof(struct grpc_field)),
    };
}

static void add_call_field(struct block *block, peg_str name, peg_str value)
{
    if (block->fields)
        block->fields[block->n++] = (struct grpc_field){name, value};
}

/* Adds what was written into `text`, which is NULL when there was no memory. */
static void add_written(struct block *block, const char *name, const char *text, size_t len)
{
    if (text)
        add_call_field(block, peg__str(name), peg__strn(text, len));
    else
        block->fields = NULL;
}

static void add_bytes(struct block *block, peg_str name, peg_str bytes)
{
    char *text = peg__arena_alloc(block->arena, peg__base64_len(bytes.len) + 1);

    if (!text) {
        block->fields = NULL;
        return;
    }
    add_call_field(block, name, peg__strn(text, grpc_metadata_encode_bin(bytes, text)));
}

static void add_call_metadata(struct block *block, const struct grpc_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        const struct grpc_metadata_entry *entry = &metadata->entries[i];

        if (grpc_metadata_is_binary(entry->key))
            add_bytes(block, entry->key, entry->value);
        else
            add_call_field(block, entry->key, entry->value);
    }
}

static void add_metadata_fields(struct block *block, const struct grpc_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_call_field(block, fields[i].name, fields[i].value);
}

static size_t count_bytes(const struct grpc_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        const struct grpc_metadata_entry *entry = &metadata->entries[i];

        n += entry->key.len + GRPC_HPACK_FIELD_BYTES;
        n += grpc_metadata_is_binary(entry->key) ? peg__base64_len(entry->value.len)
                                                 : entry->value.len;
    }
    return n;
}

size_t grpc_call_max_status_bytes(const struct grpc_call *call)
{
    enum { OWN_FIELDS = 400 }; /* gzip_headers, and the names of what add_status() adds */
    const size_t others = OWN_FIELDS + count_bytes(&call->headers) + count_bytes(&call->trailers);
    const struct grpc_session *session = call->stream.session;
    const size_t peer_max = session ? grpc_session_peer_max_header_bytes(session) : UINT32_MAX;

    if (peer_max < others)
        return 0;
    return peer_max - others < PEG_LIMIT_GRPC_STATUS_WIRE_BYTES ? peer_max - others
                                                                : PEG_LIMIT_GRPC_STATUS_WIRE_BYTES;
}

static void add_first_headers(struct block *block, const struct grpc_call *call)
{
    if (call->stream.uses_gzip)
        add_metadata_fields(block, gzip_headers, COUNT(gzip_headers));
    else if (call->stream.head.encoding == GRPC_ENCODING_UNKNOWN)
        add_metadata_fields(block, unimplemented_encoding_headers,
                            COUNT(unimplemented_encoding_headers));
    else
        add_metadata_fields(block, plain_headers, COUNT(plain_headers));
    add_call_metadata(block, &call->headers);
}

static void add_status(struct block *block, const struct grpc_call *call)
{
    const struct grpc_status *status = &call->status;
    enum { CODE_TEXT = 20 };
    char *code = peg__arena_alloc(block->arena, CODE_TEXT);

    add_written(block, "grpc-status", code,
                code ? (size_t)(peg__put_decimal(code, (uint64_t)status->code) - code) : 0);
    if (status->message.len > 0) {
        char *text = peg__arena_alloc(block->arena, 3 * status->message.len);

        add_written(block, "grpc-message", text,
                    text ? grpc_percent_encode(status->message, text) : 0);
    }
    if (status->details.len > 0)
        add_bytes(block, peg__str("grpc-status-details-bin"), status->details);
    add_call_metadata(block, &call->trailers);
}

/* As new_block() makes them: enough for everything that the functions above add. */
static size_t count_headers(const struct grpc_call *call)
{
    return COUNT(gzip_headers) + call->headers.n;
}

static size_t count_trailers(const struct grpc_call *call)
{
    return 3 + call->trailers.n;
}

peg_status grpc__call_send_headers(struct grpc_call *call, peg_error *reterr)
{
    const bool is_plain = call->headers.n == 0 && !call->stream.uses_gzip;
    struct grpc_block headers = {
        .fields = plain_headers, .n = COUNT(plain_headers), .is_static = true};

    if (!is_plain) {
        struct block block = new_block(call, count_headers(call));

        add_first_headers(&block, call);
        if (!block.fields)
            return peg__fail_nomem(reterr);
        headers = (struct grpc_block){.fields = block.fields, .n = block.n};
    }
    return grpc_stream_respond(&call->stream, &headers, false, reterr);
}

/* Nothing was sent yet and nothing waits: one block says everything. */
static peg_status send_end_alone(struct grpc_call *call)
{
    struct block block = new_block(call, count_headers(call) + count_trailers(call));
    struct grpc_block headers;

    add_first_headers(&block, call);
    add_status(&block, call);
    if (!block.fields)
        return PEG_ENOMEM;
    headers = (struct grpc_block){.fields = block.fields, .n = block.n};
    return grpc_stream_respond(&call->stream, &headers, true, NULL);
}

static const struct grpc_block *new_trailers(struct grpc_call *call)
{
    struct block block = new_block(call, count_trailers(call));
    struct grpc_block *trailers = peg__arena_alloc(&call->arena, sizeof(*trailers));

    add_status(&block, call);
    if (!block.fields || !trailers)
        return NULL;
    *trailers = (struct grpc_block){.fields = block.fields, .n = block.n};
    return trailers;
}

peg_status grpc__call_send_end(struct grpc_call *call)
{
    const struct grpc_stream *stream = &call->stream;
    const struct grpc_status *status = &call->status;
    const bool is_plain = status->code == GRPC_OK && status->message.len == 0 &&
                          status->details.len == 0 && call->trailers.n == 0;
    const struct grpc_block *trailers;
    peg_status failed;

    if (!stream->has_sent_headers && stream->out.len == 0)
        return send_end_alone(call);
    trailers = is_plain ? &ok_block : new_trailers(call);
    if (!trailers)
        return PEG_ENOMEM;
    failed = stream->has_sent_headers ? PEG_OK : grpc__call_send_headers(call, NULL);
    return failed ? failed : grpc_stream_end(&call->stream, trailers, NULL);
}

peg_status grpc__call_refuse_http(struct grpc_call *call, const char *http_status)
{
    const struct grpc_field field = {PEG_LIT(":status"), peg__str(http_status)};
    const struct grpc_block block = {.fields = &field, .n = 1};

    return grpc_stream_respond(&call->stream, &block, true, NULL);
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static peg_status ready_to_send(struct grpc_call *call, peg_error *reterr)
{
    if (call->has_ended)
        return peg__fail(reterr, PEG_ECANCELED, "E_CALL_ENDED", "the call has ended");
    if (call->is_finished)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "the call is finished: nothing can be sent after its status");
    return PEG_OK;
}

peg_status grpc_call_send_headers(struct grpc_call *call, peg_error *reterr)
{
    const peg_status status = ready_to_send(call, reterr);

    if (status || call->stream.has_sent_headers || call->bridge)
        return status;
    return grpc__call_send_headers(call, reterr);
}

/* Bridges have no words of their own. */
static peg_status check_bridged(peg_status status, peg_error *reterr)
{
    if (!status)
        return PEG_OK;
    return peg__fail(reterr, status, "E_GRPC_BRIDGE",
                     "the answer is too large, or the gateway is out of memory");
}

peg_status grpc_call_send(struct grpc_call *call, peg_str message, peg_error *reterr)
{
    peg_status status = ready_to_send(call, reterr);

    if (!status && call->bridge)
        return check_bridged(call->bridge->ops->send(call, message, call->bridge->user), reterr);
    if (!status && !call->stream.has_sent_headers)
        status = grpc__call_send_headers(call, reterr);
    if (status)
        return status;
    return grpc_stream_send(&call->stream, message, reterr);
}

/* Compressed messages need their bytes in one piece first. */
static peg_status send_packed(struct grpc_call *call, const struct ProtobufCMessage *message,
                              size_t len, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) uint8_t *bytes = peg__alloc(len);

    if (!bytes)
        return peg__fail_nomem(reterr);
    grpc_message_pack(message, bytes);
    return grpc_stream_send(&call->stream, peg__strn((const char *)bytes, len), reterr);
}

peg_status grpc_call_send_message(struct grpc_call *call, const struct ProtobufCMessage *message,
                                  peg_error *reterr)
{
    const size_t len = grpc_message_packed_size(message);
    peg_status status = grpc_call_send_headers(call, reterr);
    peg_error error;
    uint8_t *room;

    if (status)
        return status;
    if (call->bridge)
        return check_bridged(call->bridge->ops->send_message(call, message, call->bridge->user),
                             reterr);
    if (call->stream.uses_gzip && !call->stream.skips_gzip)
        return send_packed(call, message, len, reterr);
    room = grpc_stream_reserve(&call->stream, len, &error);
    if (!room) {
        if (reterr)
            *reterr = error;
        return error.status;
    }
    grpc_message_pack(message, room);
    grpc_stream_commit(&call->stream, len);
    return PEG_OK;
}

/* Compressed messages need their bytes in one piece first. */
static peg_status send_joined(struct grpc_call *call, peg_str head, peg_str rest, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *bytes = peg__alloc(head.len + rest.len + 1);

    if (!bytes)
        return peg__fail_nomem(reterr);
    memcpy(bytes, head.ptr, head.len);
    memcpy(bytes + head.len, rest.ptr, rest.len);
    return grpc_call_send(call, peg__strn(bytes, head.len + rest.len), reterr);
}

peg_status grpc__call_send_shared(struct grpc_call *call, peg_str head, struct peg__blob *blob,
                                  peg_str rest, peg_error *reterr)
{
    const peg_status status = grpc_call_send_headers(call, reterr);

    if (status)
        return status;
    if (call->bridge || (call->stream.uses_gzip && !call->stream.skips_gzip))
        return send_joined(call, head, rest, reterr);
    return grpc_stream_send_shared(&call->stream, head, blob, rest, reterr);
}

bool grpc_call_is_writable(const struct grpc_call *call)
{
    if (call->has_ended || call->is_finished)
        return false;
    return call->bridge ? call->bridge->ops->is_writable(call->bridge->user)
                        : grpc_stream_is_writable(&call->stream);
}
