/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_FIELD_H
#define PEG_GRPC_HTTP2_FIELD_H

/*
 * Which fields may stand in a block of headers (RFC 9113, 8.2 and 8.3). What can be said of a
 * field alone is found out once, when its bytes are read: HPACK keeps the answer beside the field,
 * so one that is sent again by its number is not looked at again.
 */

#include "pegboard/common.h"

enum grpc_field_kind {
    GRPC_FIELD_BAD, /* the end of the stream: letters, values, or a field of the connection */
    GRPC_FIELD_PLAIN,
    GRPC_FIELD_CONTENT_LENGTH,
    GRPC_FIELD_HOST,
    /* pseudo-fields; the order counts */
    GRPC_FIELD_AUTHORITY,
    GRPC_FIELD_METHOD,
    GRPC_FIELD_PATH,
    GRPC_FIELD_SCHEME,
    GRPC_FIELD_STATUS,
};

/* The kind of a field that is no pseudo-field is that of its value without spaces around it. */
enum grpc_field_kind grpc_field_kind_of(peg_str name, peg_str value);

static inline bool grpc_field_is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* A value without the spaces around it. A request with such spaces is malformed (RFC 9113, 8.2.1),
 * and its stream is reset. A response is stripped of them, as "PROTOCOL-HTTP2" of gRPC allows:
 * servers, those of gRPC's own core among them, send "not found: " as their grpc-message, and the
 * status must not be lost for the space. */
static inline peg_str grpc_field_trim(peg_str value)
{
    while (value.len > 0 && grpc_field_is_space(value.ptr[value.len - 1]))
        value.len--;
    while (value.len > 0 && grpc_field_is_space(value.ptr[0])) {
        value.ptr++;
        value.len--;
    }
    return value;
}

/* What a block must be, field by field. */
enum grpc_block_kind {
    GRPC_BLOCK_REQUEST,
    GRPC_BLOCK_RESPONSE,
    GRPC_BLOCK_TRAILERS,
    GRPC_BLOCK_IGNORED, /* of a stream that is gone: read, since HPACK has a memory */
};

struct grpc_block_check {
    enum grpc_block_kind kind;
    bool is_bad;
    bool has_plain;  /* a field that is no pseudo-field */
    bool is_connect; /* :method CONNECT has no path and no scheme */
    bool is_star;    /* the path "*" */
    bool is_options;
    uint16_t seen;          /* kinds that may come once, as bits */
    int http_status;        /* 0: none */
    int64_t content_length; /* -1: none */
};

void grpc_block_check_begin(struct grpc_block_check *check, enum grpc_block_kind kind);
/* False: the block is bad, what follows need not be looked at. */
bool grpc_block_check_add(struct grpc_block_check *check, enum grpc_field_kind kind, peg_str value);
/* Is everything there that must be? */
bool grpc_block_check_end(const struct grpc_block_check *check, bool ends_stream);

#endif
