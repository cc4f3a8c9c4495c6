/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_STREAM_INTERNAL_H
#define PEG_NET_STREAM_INTERNAL_H

/* Shared by the files of net/stream, and by net/listener.c. */

#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/stream/stream.h"

enum net_stream_state {
    NET_CONNECTING,
    NET_HANDSHAKING, /* TLS */
    NET_OPEN,
    NET_BROKEN, /* a write failed: on_closed comes at the end of the round, or from the fair queue
                 */
    NET_ENDING, /* without its owner: sends what waits, then waits for the peer's end */
    NET_GONE,   /* off the loop; the memory lives until libuv lets the handle go */
};

/*
 * Owned by its loop. What may be pending: `poll` (watching for `watched`), `timer` (opening, or
 * ending), `later` (on_open or a break is to be reported, TLS is to begin or has bytes that came
 * while paused), `job` (to read, or to end), `handshake` (TLS is fed on the offload thread).
 * net_stream_leave() takes all of them back, but for a feed that runs: its memory waits for that.
 */
struct net_stream {
    uv_poll_t poll;
    struct net_loop *loop;
    struct net_stream_events events;
    void *user;
    int fd;
    int broke; /* errno of what failed; 0: no memory for what was left */
    enum net_stream_state state;
    int watched; /* of UV_READABLE, UV_WRITABLE */
    bool reported_open;
    bool is_paused;
    size_t max_read; /* 0: NET_READ_BYTES */
    enum net_stream_fair_queue fair_queue;
    unsigned n_reports;   /* that it is readable, while it waits in the fair queue */
    bool waits_unseen;    /* in the fair queue, and is not watched until then */
    bool is_late;         /* its time is over: its job ends it */
    bool has_plain;       /* TLS may have more of what came */
    unsigned n_last;      /* reads since it broke */
    struct peg__buf rest; /* of the last read, which the owner did not take */
    bool is_blocked;      /* something waits for the socket */
    bool is_local;
    uid_t unix_uid; /* of the peer; (uid_t)-1: it is no unix socket */
    bool peer_ended;
    bool was_reset; /* an end is an error: `broke` says which */
    bool was_shut;  /* our end was sent */
    struct peg__buf queue;
    size_t queue_sent; /* bytes of `queue` that are gone */
    size_t max_queue;
    int64_t linger_ms;
    size_t n_unwanted;                 /* bytes that came after net_stream_close() */
    struct net_tls *tls;               /* what waits is then in its wire */
    struct net_tls_config *tls_config; /* of one that was taken, until its `tls` is made */
    struct net_timer timer;
    struct net_later later;
    struct net_fair_job job;
    struct net_handshake *handshake;
    bool is_unwatched; /* libuv has let the handle go */
    bool is_kept;      /* the owner has not */
    struct net_open open;
    /* Called once when the socket is closed; the listener counts so. */
    void (*on_gone)(void *on_gone_user);
    void *on_gone_user;
    char peer[];
};

/* ---- open.c -------------------------------------------------------------------------------- */

/* The socket is connected; goes on with TLS, or is open. */
void net_stream_connected(struct net_stream *stream);
/* Sends the first message of TLS, if it is ours. */
void net_stream_handshake(struct net_stream *stream);
/* The time to open it, or to end it, is over. */
void net_stream_time_out(struct net_stream *stream);

/* ---- stream.c ------------------------------------------------------------------------------ */

/* Off the loop, at once; the memory goes in a later round. */
void net_stream_leave(struct net_stream *stream);
/* Frees it, when libuv, the offload thread and the owner have let it go. */
void net_stream_let_go(struct net_stream *stream);
/* Leaves, and reports the error to the owner. */
void net_stream_fail(struct net_stream *stream, const peg_error *error);
/* The same with an errno, or 0 if there was no memory. */
void net_stream_fail_errno(struct net_stream *stream, int error);
/* The same at the end of the round, for when the owner is in the midst of something. */
void net_stream_break(struct net_stream *stream, int error);
/* The peer has ended it. What waits is still sent to it, without the owner. */
void net_stream_end(struct net_stream *stream);
/* It is open: stops the timer and reports on_open. */
void net_stream_opened(struct net_stream *stream);
/* Watches for what the state asks for. */
void net_stream_watch(struct net_stream *stream);
/* Sends what waits, as far as the socket takes it; a failure breaks the stream. */
void net_stream_flush(struct net_stream *stream);
/* The message for an errno. */
void net_stream_explain(const struct net_stream *stream, int error, peg_error *ret_error);
/* Are bytes read now, be it only to find the end? */
bool net_stream_may_read(const struct net_stream *stream);
/* Once. True if there may be more now. */
bool net_stream_read(struct net_stream *stream);

void net_stream_on_later(struct net_later *later);
void net_stream_on_close(struct net_open *open);

static inline bool net_stream_is_reading(const struct net_stream *stream)
{
    return stream->state == NET_OPEN && !stream->is_paused;
}

/* Reads at most of a connection that is broken already, for what the peer sent before. */
enum { NET_MAX_LAST_READS = 64 };

/* ---- fair_queue.c -------------------------------------------------------------------------- */

void net_stream_run_job(struct net_fair_job *job);
/* There is something to read, or it broke, or its time is over. */
static inline void net_stream_enqueue(struct net_stream *stream)
{
    net_loop_enqueue(stream->loop, &stream->job);
}
/* The socket has something to read, of a stream that reads from the fair queue. */
void net_stream_enqueue_read(struct net_stream *stream);
/* May bytes be read as soon as they come? */
static inline bool net_stream_reads_at_once(const struct net_stream *stream)
{
    return stream->fair_queue != NET_FAIR_QUEUE_READS && stream->rest.len == 0 &&
           !stream->has_plain;
}
/* It uses the fair queue, and its job is not running. */
static inline bool net_stream_must_wait(const struct net_stream *stream)
{
    return stream->fair_queue != NET_NO_FAIR_QUEUE &&
           !net_loop_is_running(stream->loop, &stream->job);
}

/* ---- tls.c --------------------------------------------------------------------------------- */

/* The first bytes of one that was taken are here. False: they are no TLS, and it is gone. */
bool net_stream_tls_begins(struct net_stream *stream, const uint8_t *bytes, size_t len);
/* Bytes from the wire, in the loop's read buffer, which is used for the plain ones. */
void net_stream_tls_feed(struct net_stream *stream, const uint8_t *bytes, size_t len);
/* Delivers what came while the stream was paused. */
void net_stream_tls_deliver(struct net_stream *stream);
peg_status net_stream_tls_write(struct net_stream *stream, const uint8_t *bytes, size_t len,
                                peg_error *reterr);
/* Finishes an offloaded step of the handshake, if there is one and it is done. */
void net_stream_finish_handshake(struct net_stream *stream);
/* False: a step runs on the offload thread, and calls net_stream_let_go() when it is done. */
bool net_stream_drop_handshake(struct net_stream *stream);

#endif
