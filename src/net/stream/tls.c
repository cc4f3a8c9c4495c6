/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TLS between a socket and the owner of a stream:
 *
 *   socket -> net_tls_feed, for a handshake aside -> net_tls_read -> on_bytes
 *   net_stream_write -> net_tls_write -> net_tls_wire -> socket
 *
 * What waits for the socket waits in the wire of TLS itself and is not copied again.
 */

#include <errno.h>

#include "base/error.h"
#include "net/stream/internal.h"

/* The alert that says why goes out, if the socket takes it. */
static void lose(struct net_stream *stream, const peg_error *error)
{
    if (!stream->is_blocked)
        net_stream_flush(stream);
    net_stream_fail(stream, error);
}

/* Answers of the protocol itself. A peer that asks for them and never reads them is ended. */
static void send_answers(struct net_stream *stream)
{
    peg_error error;

    if (!stream->is_blocked)
        net_stream_flush(stream);
    if (stream->state >= NET_BROKEN || net_stream_queued(stream) / 2 <= stream->max_queue)
        return;
    peg__fail(&error, PEG_ELIMIT, "E_WRITE_QUEUE_FULL",
              "%s does not read what TLS answers: more than twice max_queue (%zu bytes) waits",
              stream->peer, stream->max_queue);
    net_stream_fail(stream, &error);
}

static void end(struct net_stream *stream)
{
    stream->has_plain = net_stream_must_wait(stream); /* it ended, which is then seen again */
    if (stream->has_plain)
        net_stream_want_turn(stream);
    else
        net_stream_end(stream);
}

void net_stream_tls_deliver(struct net_stream *stream)
{
    uint8_t *buffer = net_loop_read_buffer(stream->loop);
    const bool is_one = stream->turns == NET_TURN_READS; /* read a turn */
    const size_t max = is_one && stream->max_read ? stream->max_read : NET_READ_BYTES;
    peg_error error;

    stream->has_plain = false;
    while (net_stream_is_reading(stream) && !stream->has_plain) {
        size_t n = 0;

        if (net_tls_read(stream->tls, buffer, max, &n, &error)) {
            lose(stream, &error);
            return;
        }
        if (n == 0)
            break;
        stream->events.on_bytes(stream->user, buffer, n);
        stream->has_plain = is_one || stream->rest.len > 0;
    }
    if (stream->state != NET_OPEN)
        return;
    send_answers(stream);
    if (stream->state == NET_OPEN && stream->has_plain)
        net_stream_want_turn(stream);
    else if (net_stream_is_reading(stream) && net_tls_peer_ended(stream->tls))
        end(stream);
}

/* A client begins with a record of a handshake, of version 3 and 16 KiB at most. */
static bool may_be_tls(const uint8_t *bytes, size_t len)
{
    enum { HANDSHAKE = 22, VERSION = 3, HEAD = 5, MAX = 16 << 10 };

    return bytes[0] == HANDSHAKE && (len < 2 || bytes[1] == VERSION) &&
           (len < HEAD || (bytes[3] << 8 | bytes[4]) <= MAX);
}

/* OpenSSL's part of a connection takes 20 KB: whoever says nothing, or what is no TLS, does not get
 * it. */
bool net_stream_tls_begins(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    peg_error error;

    if (may_be_tls(bytes, len))
        return true;
    peg__fail(&error, PEG_EIO, "E_TLS",
              "what %s sends is no TLS, and this address speaks nothing else: see "
              "whether the client was told to use TLS",
              stream->peer);
    net_stream_fail(stream, &error);
    return false;
}

static peg_status feed(struct net_stream *stream, const uint8_t *bytes, size_t len,
                       peg_error *reterr)
{
    if (!stream->tls) {
        const peg_status status = net_tls_new(stream->tls_config, NULL, &stream->tls, reterr);

        if (status)
            return status;
        stream->tls_config = net_tls_config_unref(stream->tls_config);
    }
    return net_tls_feed(stream->tls, bytes, len, reterr);
}

void net_stream_tls_feed(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    peg_error error;
    peg_status status;

    if (stream->state == NET_SHAKING_HANDS && stream->turns != NET_NO_FAIR_QUEUE) {
        net_stream_offload_handshake(stream, bytes, len);
        return;
    }
    status = feed(stream, bytes, len, &error);
    net_stream_tls_fed(stream, status, &error);
}

void net_stream_tls_fed(struct net_stream *stream, peg_status status, const peg_error *error)
{
    if (status) {
        lose(stream, error);
        return;
    }
    if (stream->state == NET_SHAKING_HANDS) {
        /* The last answer goes out together with what on_open writes. */
        if (net_tls_is_open(stream->tls))
            net_stream_opened(stream);
        else
            send_answers(stream);
    }
    if (stream->state == NET_OPEN)
        net_stream_tls_deliver(stream);
}

peg_status net_stream_tls_write(struct net_stream *stream, const uint8_t *bytes, size_t len,
                                peg_error *reterr)
{
    const peg_status status = net_tls_write(stream->tls, bytes, len, reterr);

    if (status == PEG_EIO)
        net_stream_break(stream, EPROTO);
    if (status || stream->is_blocked)
        return status;
    net_stream_flush(stream);
    if (stream->state == NET_OPEN)
        return PEG_OK;
    net_stream_explain(stream, stream->broke, reterr);
    return PEG_EIO;
}
