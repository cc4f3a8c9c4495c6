/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream that takes turns with others of its loop (turns.c): reading, the handshake and the end,
 * of which many may come at once, are done when its turn has come.
 *
 *   readable -> net_stream_await_turn -> on_turn -> the rest, plain bytes of TLS, or the socket
 *            -> again, as long as there may be more; then it is watched again
 *
 * While it waits it is watched until something comes again: most turns come in the same round, and
 * cost no system call but that of the reading.
 */

#include "base/mem.h"
#include "net/stream/internal.h"

void net_stream_set_fair_queue(struct net_stream *stream, enum net_stream_fair_queue turns)
{
    stream->turns = turns;
}

void net_stream_want_turn(struct net_stream *stream)
{
    net_loop_turn(stream->loop, &stream->turn);
}

void net_stream_await_turn(struct net_stream *stream)
{
    if (net_turn_is_waiting(&stream->turn)) {
        stream->waits_unseen = true;
        net_stream_watch(stream);
    }
    net_stream_want_turn(stream);
}

peg_status net_stream_unread(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    peg__buf_add(&stream->rest, bytes, len);
    if (stream->rest.status) {
        peg__buf_clear(&stream->rest);
        return PEG_ENOMEM;
    }
    net_stream_want_turn(stream);
    return PEG_OK;
}

/* The owner may leave a rest of it once more. */
static void tell_rest(struct net_stream *stream)
{
    struct peg__buf rest = stream->rest;

    stream->rest = (struct peg__buf)PEG__BUF(rest.max);
    stream->events.on_bytes(stream->user, (const uint8_t *)rest.ptr, rest.len);
    peg__buf_free(&rest);
}

/* True if there may be more. */
static bool take_one(struct net_stream *stream)
{
    if (stream->state == NET_OPEN && stream->rest.len > 0) {
        tell_rest(stream);
        return true;
    }
    if (stream->state == NET_OPEN && stream->has_plain) {
        net_stream_tls_deliver(stream);
        return true;
    }
    return net_stream_read(stream);
}

/* A rest was read already: it is no reading more that there could be too much of. */
static bool may_hear_last(struct net_stream *stream)
{
    return stream->broke && !stream->is_paused && stream->told_open &&
           (stream->rest.len > 0 || stream->n_last++ < NET_MAX_LAST_READS);
}

/* It broke, perhaps because the peer has said its last word and gone: that is heard first, and to
 * its end if the owner leaves a rest of it. */
static void hear_last(struct net_stream *stream)
{
    const int why = stream->broke;
    const bool hears = may_hear_last(stream);
    bool has_more = false;

    if (hears) {
        stream->state = NET_OPEN;
        has_more = take_one(stream);
    }
    if (stream->state >= NET_ENDING)
        return;
    stream->state = NET_BROKEN;
    if (has_more || (hears && stream->rest.len > 0))
        net_stream_want_turn(stream);
    else
        net_stream_fail_why(stream, why);
}

void net_stream_on_turn(struct net_turn *turn)
{
    struct net_stream *stream = peg__container_of(turn, struct net_stream, turn);
    bool has_more;

    if (stream->is_late) {
        net_stream_time_out(stream);
        return;
    }
    if (stream->state == NET_BROKEN) {
        hear_last(stream);
        return;
    }
    if (stream->shake && net_stream_has_shaken_hands(stream))
        net_stream_finish_handshake(stream);
    if (!net_stream_may_read(stream))
        return;
    has_more = take_one(stream);
    if (has_more && net_stream_may_read(stream)) {
        net_stream_want_turn(stream);
        return;
    }
    stream->waits_unseen = has_more; /* and is paused: net_stream_resume() */
    net_stream_watch(stream);
}
