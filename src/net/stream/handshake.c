/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A step of a TLS handshake is a third of a millisecond of arithmetic, and to make OpenSSL's part
 * of the connection 40 us: too long for a turn. So what came is read in one, fed to TLS aside
 * (loop_aside.c), and answered in another.
 *
 *   its turn -> net_stream_offload_handshake -> (the thread aside) feed -> on_done
 *   its turn -> net_stream_finish_handshake
 *
 * Meanwhile nobody else touches its TLS: the stream is not watched, and when it has to go its
 * memory waits for the feed.
 */

#include <string.h>

#include "base/mem.h"
#include "net/stream/internal.h"

/* Owned by its stream, which lives until the task is done or taken back. */
struct net_handshake {
    struct net_task task;
    struct net_stream *stream;
    struct net_tls *tls; /* of the stream, or made aside and owned here until it is taken */
    bool is_done;
    peg_status status; /* of the feed */
    peg_error error;
    size_t len;
    uint8_t bytes[];
};

static void feed(struct net_task *task)
{
    struct net_handshake *shake = (struct net_handshake *)(void *)task; /* its first member */

    if (!shake->tls)
        shake->status = net_tls_new(shake->stream->tls_config, NULL, &shake->tls, &shake->error);
    if (!shake->status)
        shake->status = net_tls_feed(shake->tls, shake->bytes, shake->len, &shake->error);
}

static void on_done(struct net_message *message)
{
    struct net_handshake *shake = peg__container_of(message, struct net_handshake, task.done);
    struct net_stream *stream = shake->stream;

    shake->is_done = true;
    if (stream->state == NET_GONE)
        net_stream_let_go(stream);
    else
        net_stream_want_turn(stream);
}

void net_stream_offload_handshake(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    struct net_handshake *shake = (struct net_handshake *)peg__alloc_zero(1, sizeof(*shake) + len);

    if (!shake) {
        net_stream_fail_why(stream, 0);
        return;
    }
    shake->task.work = feed;
    shake->task.done.fn = on_done;
    shake->stream = stream;
    shake->tls = stream->tls;
    shake->len = len;
    memcpy(shake->bytes, bytes, len);
    stream->shake = shake;
    net_stream_watch(stream);
    net_loop_offload(stream->loop, &shake->task);
}

bool net_stream_has_shaken_hands(const struct net_stream *stream)
{
    return stream->shake->is_done;
}

void net_stream_finish_handshake(struct net_stream *stream)
{
    struct net_handshake *shake = stream->shake;
    const peg_status status = shake->status;
    const peg_error error = shake->error;

    stream->shake = NULL;
    stream->tls = shake->tls;
    stream->tls_config = net_tls_config_unref(stream->tls_config);
    peg__free(shake);
    net_stream_tls_fed(stream, status, &error);
}

bool net_stream_drop_handshake(struct net_stream *stream)
{
    struct net_handshake *shake = stream->shake;

    if (!shake)
        return true;
    if (!shake->is_done && !net_loop_cancel_offload(stream->loop, &shake->task))
        return false;
    if (shake->tls != stream->tls)
        net_tls_free(shake->tls);
    stream->shake = NULL;
    peg__free(shake);
    return true;
}
