/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TLS between a socket and the owner of a stream:
 *
 *   socket -> net_tls_feed -> net_tls_read -> on_bytes
 *   net_stream_write -> net_tls_write -> net_tls_wire -> socket
 *
 * What waits for the socket waits in the wire of TLS itself and is not copied again.
 *
 * A step of a handshake is a third of a millisecond of arithmetic, too long for the loop. A stream
 * that uses the fair queue reads it in one job, feeds it to TLS on the offload thread, and answers
 * in another job. Meanwhile the stream is not watched, and its memory waits for that thread.
 */

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "net/stream/internal.h"

/* The alert that says why goes out, if the socket takes it. */
static void fail_with_alert(struct net_stream *stream, const peg_error *error)
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
    peg__fail(&error, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
              "%s does not read what TLS answers: more than twice max_queue (%zu bytes) waits",
              stream->peer, stream->max_queue);
    net_stream_fail(stream, &error);
}

static void end_plain(struct net_stream *stream)
{
    stream->has_plain = net_stream_must_wait(stream); /* it ended, which is then seen again */
    if (stream->has_plain)
        net_stream_enqueue(stream);
    else
        net_stream_end(stream);
}

void net_stream_tls_deliver(struct net_stream *stream)
{
    uint8_t *buffer = net_loop_read_buffer(stream->loop);
    const bool is_one = stream->fair_queue == NET_FAIR_QUEUE_READS; /* read per job */
    const size_t max = is_one && stream->max_read ? stream->max_read : NET_READ_BYTES;
    peg_error error;

    stream->has_plain = false;
    while (net_stream_is_reading(stream) && !stream->has_plain) {
        size_t n = 0;

        if (net_tls_read(stream->tls, buffer, max, &n, &error)) {
            fail_with_alert(stream, &error);
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
        net_stream_enqueue(stream);
    else if (net_stream_is_reading(stream) && net_tls_peer_ended(stream->tls))
        end_plain(stream);
}

/* A client begins with a record of a handshake, of version 3 and 16 KiB at most. */
static bool may_be_tls(const uint8_t *bytes, size_t len)
{
    enum { HANDSHAKE = 22, VERSION = 3, HEAD = 5, MAX = 16 << 10 };

    return bytes[0] == HANDSHAKE && (len < 2 || bytes[1] == VERSION) &&
           (len < HEAD || (bytes[3] << 8 | bytes[4]) <= MAX);
}

/* OpenSSL's part of a connection takes 20 KB, which a silent peer or one without TLS doesn't get.
 */
bool net_stream_tls_begins(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    peg_error error;

    if (may_be_tls(bytes, len))
        return true;
    peg__fail(&error, PEG_EIO, "E_TLS",
              "%s does not use TLS, which this address requires: configure the client to use TLS",
              stream->peer);
    net_stream_fail(stream, &error);
    return false;
}

static void finish_feed(struct net_stream *stream, peg_status status, const peg_error *error)
{
    if (status) {
        fail_with_alert(stream, error);
        return;
    }
    if (stream->state == NET_HANDSHAKING) {
        /* The last answer goes out together with what on_open writes. */
        if (net_tls_is_open(stream->tls))
            net_stream_opened(stream);
        else
            send_answers(stream);
    }
    if (stream->state == NET_OPEN)
        net_stream_tls_deliver(stream);
}

/* Owned by its stream, which lives until the task is done or taken back. */
struct net_handshake {
    struct net_task task;
    struct net_stream *stream;
    struct net_tls *tls; /* of the stream, or made by the task and owned here until it is taken */
    bool is_done;
    peg_status status; /* of the feed */
    peg_error error;
    size_t len;
    uint8_t bytes[];
};

static void feed_task(struct net_task *task)
{
    struct net_handshake *handshake = (struct net_handshake *)(void *)task; /* its first member */

    if (!handshake->tls)
        handshake->status =
            net_tls_new(handshake->stream->tls_config, NULL, &handshake->tls, &handshake->error);
    if (!handshake->status)
        handshake->status =
            net_tls_feed(handshake->tls, handshake->bytes, handshake->len, &handshake->error);
}

static void on_task_done(struct net_message *message)
{
    struct net_handshake *handshake = peg__container_of(message, struct net_handshake, task.done);
    struct net_stream *stream = handshake->stream;

    handshake->is_done = true;
    if (stream->state == NET_GONE)
        net_stream_let_go(stream);
    else
        net_stream_enqueue(stream);
}

static void offload_handshake(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    struct net_handshake *handshake =
        (struct net_handshake *)peg__alloc_zero(1, sizeof(*handshake) + len);

    if (!handshake) {
        net_stream_fail_errno(stream, 0);
        return;
    }
    handshake->task.work = feed_task;
    handshake->task.done.fn = on_task_done;
    handshake->stream = stream;
    handshake->tls = stream->tls;
    handshake->len = len;
    memcpy(handshake->bytes, bytes, len);
    stream->handshake = handshake;
    net_stream_watch(stream);
    net_loop_offload(stream->loop, &handshake->task);
}

void net_stream_finish_handshake(struct net_stream *stream)
{
    struct net_handshake *handshake = stream->handshake;
    peg_status status;
    peg_error error;

    if (!handshake || !handshake->is_done)
        return;
    status = handshake->status;
    error = handshake->error;
    stream->handshake = NULL;
    stream->tls = handshake->tls;
    stream->tls_config = net_tls_config_unref(stream->tls_config);
    peg__free(handshake);
    finish_feed(stream, status, &error);
}

bool net_stream_drop_handshake(struct net_stream *stream)
{
    struct net_handshake *handshake = stream->handshake;

    if (!handshake)
        return true;
    if (!handshake->is_done && !net_loop_cancel_offload(stream->loop, &handshake->task))
        return false;
    if (handshake->tls != stream->tls)
        net_tls_free(handshake->tls);
    stream->handshake = NULL;
    peg__free(handshake);
    return true;
}

static peg_status feed_tls(struct net_stream *stream, const uint8_t *bytes, size_t len,
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

    if (stream->state == NET_HANDSHAKING && stream->fair_queue != NET_NO_FAIR_QUEUE) {
        offload_handshake(stream, bytes, len);
        return;
    }
    status = feed_tls(stream, bytes, len, &error);
    finish_feed(stream, status, &error);
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
