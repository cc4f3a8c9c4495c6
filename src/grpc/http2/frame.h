/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_FRAME_H
#define PEG_GRPC_HTTP2_FRAME_H

/* Frames of HTTP/2 (RFC 9113): their names and numbers, and the nine bytes before each. */

#include <stddef.h>
#include <stdint.h>

enum grpc_h2_type {
    GRPC_H2_DATA,
    GRPC_H2_HEADERS,
    GRPC_H2_PRIORITY,
    GRPC_H2_RST_STREAM,
    GRPC_H2_SETTINGS,
    GRPC_H2_PUSH_PROMISE,
    GRPC_H2_PING,
    GRPC_H2_GOAWAY,
    GRPC_H2_WINDOW_UPDATE,
    GRPC_H2_CONTINUATION,
};

enum {
    GRPC_H2_END_STREAM = 0x01,
    GRPC_H2_ACK = 0x01,
    GRPC_H2_END_HEADERS = 0x04,
    GRPC_H2_PADDED = 0x08,
    GRPC_H2_HAS_PRIORITY = 0x20,
};

enum grpc_h2_setting {
    GRPC_H2_HEADER_TABLE_SIZE = 1,
    GRPC_H2_ENABLE_PUSH,
    GRPC_H2_MAX_CONCURRENT_STREAMS,
    GRPC_H2_INITIAL_WINDOW_SIZE,
    GRPC_H2_MAX_FRAME_SIZE,
    GRPC_H2_MAX_HEADER_LIST_SIZE,
    GRPC_H2_NO_RFC7540_PRIORITIES = 9,
};

enum grpc_h2_error {
    GRPC_H2_NO_ERROR,
    GRPC_H2_PROTOCOL_ERROR,
    GRPC_H2_INTERNAL_ERROR,
    GRPC_H2_FLOW_CONTROL_ERROR,
    GRPC_H2_SETTINGS_TIMEOUT,
    GRPC_H2_STREAM_CLOSED,
    GRPC_H2_FRAME_SIZE_ERROR,
    GRPC_H2_REFUSED_STREAM,
    GRPC_H2_CANCEL,
    GRPC_H2_COMPRESSION_ERROR,
    GRPC_H2_CONNECT_ERROR,
    GRPC_H2_ENHANCE_YOUR_CALM,
    GRPC_H2_INADEQUATE_SECURITY,
    GRPC_H2_HTTP_1_1_REQUIRED,
};
/* "CANCEL"; "an unknown error" of numbers that have no name. Static. */
const char *grpc_h2_error_name(uint32_t h2_error);

enum {
    GRPC_H2_HEAD_BYTES = 9,
    GRPC_H2_SETTING_BYTES = 6,
    GRPC_H2_PING_BYTES = 8,
    GRPC_H2_PRIORITY_BYTES = 5,
    GRPC_H2_PREFACE_BYTES = 24,
    /* What every peer takes, and the most that we take. */
    GRPC_H2_FRAME_BYTES = 16384,
    GRPC_H2_FIRST_WINDOW = 65535,
};
#define GRPC_H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define GRPC_H2_MAX_WINDOW INT32_MAX

struct grpc_h2_head {
    uint32_t len; /* of what follows */
    uint8_t type;
    uint8_t flags;
    int32_t id;
};

static inline uint32_t grpc_h2_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Numbers of streams and steps of windows have a bit that says nothing. */
static inline uint32_t grpc_h2_u31(const uint8_t *bytes)
{
    return grpc_h2_u32(bytes) & INT32_MAX;
}

static inline void grpc_h2_put_u32(uint8_t *ret_bytes, uint32_t n)
{
    ret_bytes[0] = (uint8_t)(n >> 24);
    ret_bytes[1] = (uint8_t)(n >> 16);
    ret_bytes[2] = (uint8_t)(n >> 8);
    ret_bytes[3] = (uint8_t)n;
}

static inline struct grpc_h2_head grpc_h2_read_head(const uint8_t bytes[GRPC_H2_HEAD_BYTES])
{
    return (struct grpc_h2_head){
        .len = grpc_h2_u32(bytes) >> 8,
        .type = bytes[3],
        .flags = bytes[4],
        .id = (int32_t)grpc_h2_u31(bytes + 5),
    };
}

/* Returns where what follows begins. */
static inline uint8_t *grpc_h2_write_head(uint8_t *ret_bytes, const struct grpc_h2_head *head)
{
    grpc_h2_put_u32(ret_bytes, head->len << 8 | head->type);
    ret_bytes[4] = head->flags;
    grpc_h2_put_u32(ret_bytes + 5, (uint32_t)head->id);
    return ret_bytes + GRPC_H2_HEAD_BYTES;
}

/* A frame of one number: RST_STREAM, WINDOW_UPDATE. */
enum { GRPC_H2_U32_FRAME_BYTES = GRPC_H2_HEAD_BYTES + 4 };
static inline void grpc_h2_write_u32_frame(uint8_t *ret_bytes, enum grpc_h2_type type, int32_t id,
                                           uint32_t n)
{
    const struct grpc_h2_head head = {.len = 4, .type = (uint8_t)type, .id = id};

    grpc_h2_put_u32(grpc_h2_write_head(ret_bytes, &head), n);
}

static inline uint8_t *grpc_h2_write_setting(uint8_t *ret_bytes, enum grpc_h2_setting key,
                                             uint32_t value)
{
    ret_bytes[0] = 0;
    ret_bytes[1] = (uint8_t)key;
    grpc_h2_put_u32(ret_bytes + 2, value);
    return ret_bytes + GRPC_H2_SETTING_BYTES;
}

#endif
