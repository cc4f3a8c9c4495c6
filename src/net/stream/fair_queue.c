/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream that shares its loop with others through the fair queue: reading, the handshake and the
 * end, of which many may come at once, are done in its job.
 *
 *   readable -> net_stream_enqueue_read -> net_stream_run_job -> the rest, plain bytes of TLS, or
 *            the socket -> again, as long as there may be more; then it is watched again
 *
 * While it waits it is still watched, since most jobs run in the same round or the next and cost no
 * system call but that of the reading. One that waits for longer is not watched until its turn:
 * else thousands that wait would be reported in every round.
 */

#include "net/stream/internal.h"

/* Of one that waits; to stop watching and to start again takes two system calls. */
enum { MAX_REPORTS = 4 };

void net_stream_set_fair_queue(struct net_stream *stream, enum net_stream_fair_queue fair_queue)
{
    stream->fair_queue = fair_queue;
}

void net_stream_enqueue_read(struct net_stream *stream)
{
    if (net_fair_job_is_queued(&stream->job) && ++stream->n_reports >= MAX_REPORTS) {
        stream->waits_unseen = true;
        net_stream_watch(stream);
    }
    net_stream_enqueue(stream);
}

peg_status net_stream_unread(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    peg__buf_add(&stream->rest, bytes, len);
    if (stream->rest.status) {
        peg__buf_clear(&stream->rest);
        return PEG_ENOMEM;
    }
    net_stream_enqueue(stream);
    return PEG_OK;
}

/* The owner may leave a rest of it once more. */
static void deliver_rest(struct net_stream *stream)
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
        deliver_rest(stream);
        return true;
    }
    if (stream->state == NET_OPEN && stream->has_plain) {
        net_stream_tls_deliver(stream);
        return true;
    }
    return net_stream_read(stream);
}

/* A rest was read already, and does not count. */
static bool may_read_last(struct net_stream *stream)
{
    return stream->broke && !stream->is_paused && stream->reported_open &&
           (stream->rest.len > 0 || stream->n_last++ < NET_MAX_LAST_READS);
}

/* It broke, perhaps because the peer has sent its last bytes and gone: they are read first, to
 * their end if the owner leaves a rest of them. */
static void fail_after_last_read(struct net_stream *stream)
{
    const int error = stream->broke;
    const bool reads = may_read_last(stream);
    bool has_more = false;

    if (reads) {
        stream->state = NET_OPEN;
        has_more = take_one(stream);
    }
    if (stream->state >= NET_ENDING)
        return;
    stream->state = NET_BROKEN;
    if (has_more || (reads && stream->rest.len > 0))
        net_stream_enqueue(stream);
    else
        net_stream_fail_errno(stream, error);
}

void net_stream_run_job(struct net_fair_job *job)
{
    struct net_stream *stream = peg__container_of(job, struct net_stream, job);
    bool has_more;

    if (stream->is_late) {
        net_stream_time_out(stream);
        return;
    }
    if (stream->state == NET_BROKEN) {
        fail_after_last_read(stream);
        return;
    }
    net_stream_finish_handshake(stream);
    if (!net_stream_may_read(stream))
        return;
    has_more = take_one(stream);
    if (has_more && net_stream_may_read(stream)) {
        net_stream_enqueue(stream);
        return;
    }
    stream->n_reports = 0;
    stream->waits_unseen = has_more; /* and is paused: net_stream_resume() */
    net_stream_watch(stream);
}
