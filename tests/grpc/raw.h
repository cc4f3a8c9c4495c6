/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_RAW_H
#define PEG_TESTS_GRPC_RAW_H

/*
 * A client that says what no client should: a blocking socket, frames of HTTP/2 put together by
 * hand, and a look at what comes back. Nothing here fails a test, so any thread may use it.
 *
 *   raw_open(&raw, port);
 *   raw_hello(&raw.out);
 *   raw_frame(&raw.out, RAW_DATA, 0, 0, "x", 1);        DATA on stream 0
 *   raw_send(&raw);
 *   raw_read_all(&raw, 2000);
 *   raw.goaway_code ...
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text/str.h"

enum raw_type {
    RAW_DATA,
    RAW_HEADERS,
    RAW_PRIORITY,
    RAW_RST_STREAM,
    RAW_SETTINGS,
    RAW_PUSH_PROMISE,
    RAW_PING,
    RAW_GOAWAY,
    RAW_WINDOW_UPDATE,
    RAW_CONTINUATION,
};
enum { RAW_END_STREAM = 1, RAW_ACK = 1, RAW_END_HEADERS = 4, RAW_PADDED = 8, RAW_PRIO = 32 };
enum { RAW_ANY = 0xffff, RAW_IN_BYTES = 64 << 10, RAW_MAX_OUT = 256 << 20 };

struct raw {
    int fd;
    struct peg__buf out;
    size_t n_sent;
    bool is_closed; /* by the server */
    /* What came. */
    unsigned n_frames;
    unsigned n_headers;
    unsigned n_settings;
    unsigned n_acks;
    unsigned n_pongs;
    unsigned n_resets;
    uint32_t reset_code; /* of the last */
    unsigned n_goaways;
    uint32_t goaway_code;
    unsigned n_ended; /* streams, by END_STREAM */
    size_t n_data_bytes;
    size_t n_bytes;
    uint8_t in[RAW_IN_BYTES];
    size_t in_len;
};

static inline int64_t raw_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the connection ------------------------------------------------------------------------- */

static inline int raw_connect(unsigned port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    const struct timeval limit = {.tv_sec = 20};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline bool raw_open(struct raw *raw, unsigned port)
{
    memset(raw, 0, offsetof(struct raw, in));
    raw->in_len = 0;
    raw->out.max = RAW_MAX_OUT;
    raw->fd = raw_connect(port);
    return raw->fd >= 0;
}

static inline void raw_close(struct raw *raw)
{
    if (raw->fd >= 0)
        close(raw->fd);
    raw->fd = -1;
    peg__buf_free(&raw->out);
}

/* Sends what was put together. False: the server has closed, or takes nothing for too long. */
static inline bool raw_send(struct raw *raw)
{
    size_t at = 0;

    while (at < raw->out.len) {
        const ssize_t n = send(raw->fd, raw->out.ptr + at, raw->out.len - at, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    raw->n_sent += at;
    raw->is_closed |= at < raw->out.len;
    peg__buf_clear(&raw->out);
    return !raw->is_closed;
}

/* ---- what came ------------------------------------------------------------------------------- */

static inline uint32_t raw_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void raw_note(struct raw *raw, const uint8_t *frame, size_t len)
{
    const uint8_t flags = frame[4];

    raw->n_frames++;
    switch (frame[3]) {
    case RAW_DATA:
        raw->n_data_bytes += len;
        raw->n_ended += flags & RAW_END_STREAM;
        break;
    case RAW_HEADERS:
        raw->n_headers++;
        raw->n_ended += flags & RAW_END_STREAM;
        break;
    case RAW_RST_STREAM:
        raw->n_resets++;
        raw->reset_code = raw_u32(frame + 9);
        break;
    case RAW_SETTINGS:
        raw->n_acks += flags & RAW_ACK;
        raw->n_settings += !(flags & RAW_ACK);
        break;
    case RAW_PING:
        raw->n_pongs += flags & RAW_ACK;
        break;
    case RAW_GOAWAY:
        raw->n_goaways++;
        raw->goaway_code = len >= 8 ? raw_u32(frame + 13) : RAW_ANY;
        break;
    default:
        break;
    }
}

static inline void raw_parse(struct raw *raw)
{
    size_t at = 0;

    while (raw->in_len - at >= 9) {
        const size_t len = raw_u32(raw->in + at) >> 8;

        if (raw->in_len - at < 9 + len)
            break;
        raw_note(raw, raw->in + at, len);
        at += 9 + len;
    }
    memmove(raw->in, raw->in + at, raw->in_len - at);
    raw->in_len -= at;
}

/* Waits for bytes at most so long. False: there were none, or it is closed. */
static inline bool raw_read(struct raw *raw, int timeout_ms)
{
    struct pollfd fd = {.fd = raw->fd, .events = POLLIN};
    ssize_t n;

    if (raw->fd < 0 || poll(&fd, 1, timeout_ms) <= 0)
        return false;
    n = recv(raw->fd, raw->in + raw->in_len, sizeof(raw->in) - raw->in_len, 0);
    if (n <= 0) {
        raw->is_closed = true;
        return false;
    }
    raw->n_bytes += (size_t)n;
    raw->in_len += (size_t)n;
    raw_parse(raw);
    if (raw->in_len == sizeof(raw->in))
        raw->in_len = 0; /* no HTTP/2 */
    return true;
}

/* Until the server closes. True if it did. */
static inline bool raw_read_all(struct raw *raw, int timeout_ms)
{
    const int64_t until = raw_now_ms() + timeout_ms;

    while (!raw->is_closed && raw_now_ms() < until)
        raw_read(raw, (int)(until - raw_now_ms()));
    /* A reset connection is closed too; the send that failed must not hide what was said. */
    while (raw_read(raw, 0))
        ;
    return raw->is_closed;
}

/* ---- frames -----------------------------------------------------------------------------------
 */

static inline void raw_put_u32(struct peg__buf *out, uint32_t n)
{
    const uint8_t bytes[] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

    peg__buf_add(out, bytes, sizeof(bytes));
}

/* The head alone, for a payload that is not what it says. */
static inline void raw_head(struct peg__buf *out, size_t len, unsigned type, unsigned flags,
                            uint32_t id)
{
    const uint8_t head[] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)type,
                            (uint8_t)flags};

    peg__buf_add(out, head, sizeof(head));
    raw_put_u32(out, id);
}

static inline void raw_frame(struct peg__buf *out, unsigned type, unsigned flags, uint32_t id,
                             const void *payload, size_t len)
{
    raw_head(out, len, type, flags, id);
    if (len > 0)
        peg__buf_add(out, payload, len);
}

static inline void raw_u32_frame(struct peg__buf *out, unsigned type, uint32_t id, uint32_t value)
{
    raw_head(out, 4, type, 0, id);
    raw_put_u32(out, value);
}

static inline void raw_setting(struct peg__buf *out, unsigned key, uint32_t value)
{
    const uint8_t bytes[] = {(uint8_t)(key >> 8), (uint8_t)key};

    raw_head(out, 6, RAW_SETTINGS, 0, 0);
    peg__buf_add(out, bytes, sizeof(bytes));
    raw_put_u32(out, value);
}

static inline void raw_preface(struct peg__buf *out)
{
    peg__buf_puts(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

/* What every client begins with. */
static inline void raw_hello(struct peg__buf *out)
{
    raw_preface(out);
    raw_head(out, 0, RAW_SETTINGS, 0, 0);
    raw_head(out, 0, RAW_SETTINGS, RAW_ACK, 0);
}

/* ---- HPACK, the plainest of it ----------------------------------------------------------------
 */

static inline void raw_hpack_int(struct peg__buf *out, unsigned bits, unsigned first, size_t n)
{
    const size_t most = (1U << bits) - 1;

    if (n < most) {
        peg__buf_putc(out, (char)(first | n));
        return;
    }
    peg__buf_putc(out, (char)(first | most));
    for (n -= most; n >= 128; n /= 128)
        peg__buf_putc(out, (char)(128 | n % 128));
    peg__buf_putc(out, (char)n);
}

/* first: 0x00 is not remembered, 0x40 is. */
static inline void raw_field(struct peg__buf *out, unsigned first, peg_str name, peg_str value)
{
    peg__buf_putc(out, (char)first);
    raw_hpack_int(out, 7, 0, name.len);
    peg__buf_str(out, name);
    raw_hpack_int(out, 7, 0, value.len);
    peg__buf_str(out, value);
}

static inline void raw_fields(struct peg__buf *out, const char *path)
{
    raw_field(out, 0, peg__str(":method"), peg__str("POST"));
    raw_field(out, 0, peg__str(":scheme"), peg__str("http"));
    raw_field(out, 0, peg__str(":path"), peg__str(path));
    raw_field(out, 0, peg__str(":authority"), peg__str("test"));
    raw_field(out, 0, peg__str("te"), peg__str("trailers"));
    raw_field(out, 0, peg__str("content-type"), peg__str("application/grpc"));
}

/* HEADERS of a call, with `more` behind what a call needs (an encoded block; may be empty). */
static inline void raw_headers(struct peg__buf *out, uint32_t id, unsigned flags, const char *path,
                               peg_str more)
{
    struct peg__buf block = PEG__BUF(RAW_MAX_OUT);

    raw_fields(&block, path);
    peg__buf_str(&block, more);
    raw_frame(out, RAW_HEADERS, flags | RAW_END_HEADERS, id, block.ptr, block.len);
    peg__buf_free(&block);
}

/* DATA with one message of gRPC; `told` is the length that its prefix tells. */
static inline void raw_message(struct peg__buf *out, uint32_t id, unsigned flags, peg_str message,
                               uint32_t told, bool is_compressed)
{
    raw_head(out, 5 + message.len, RAW_DATA, flags, id);
    peg__buf_putc(out, (char)is_compressed);
    raw_put_u32(out, told);
    peg__buf_str(out, message);
}

static inline void raw_call(struct peg__buf *out, uint32_t id, const char *path, const char *text)
{
    raw_headers(out, id, 0, path, peg__str(""));
    raw_message(out, id, RAW_END_STREAM, peg__str(text), (uint32_t)strlen(text), false);
}

#endif
