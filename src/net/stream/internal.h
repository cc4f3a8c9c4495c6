/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_STREAM_INTERNAL_H
#define PEG_NET_STREAM_INTERNAL_H

/* What stream.c, stream_open.c, stream_tls.c, stream_turns.c, stream_shake.c and listener.c
 * share. Nobody else
 * includes it. */

#include <uv.h>

#include "base/buf.h"
#include "net/stream/stream.h"

enum net_stream_state {
    NET_CONNECTING,
    NET_SHAKING_HANDS, /* TLS */
    NET_OPEN,
    NET_BROKEN, /* a write failed: on_closed comes at the end of the round, or in its turn */
    NET_ENDING, /* the owner has gone; sends what waits, then waits for the peer's end */
    NET_GONE,   /* off the loop; the memory lives until libuv lets the handle go */
};

/*
 * Owned by its loop. What may be pending: `poll` (watching for `watched`), `timer` (opening, or
 * ending), `later` (on_open or a break is to be told, TLS is to begin or has bytes that came while
 * paused), `turn` (to read, or to end), `shake` (TLS is fed aside).
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
    bool told_open;
    bool is_paused;
    size_t max_read; /* 0: NET_READ_BYTES */
    enum net_stream_fair_queue turns;
    bool waits_unseen;    /* for its turn, and is not watched until then */
    bool is_late;         /* its time is over: it ends in its turn */
    bool has_plain;       /* TLS may have more of what came */
    unsigned n_last;      /* reads since it broke */
    struct peg__buf rest; /* that the owner did not take in the last turn */
    bool is_blocked;      /* something waits for the socket */
    bool is_local;
    uid_t unix_uid; /* of the peer; (uid_t)-1: it is no unix socket */
    bool peer_ended;
    bool was_reset; /* an end is no good one: `broke` says why */
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
    struct net_turn turn;
    struct net_handshake *shake;
    bool is_unwatched; /* libuv has let the handle go */
    bool is_kept;      /* the owner has not */
    struct net_open open;
    /* Called once when the socket is closed; the listener counts so. */
    void (*on_gone)(void *on_gone_user);
    void *on_gone_user;
    char peer[];
};

/* stream_open.c: the socket is connected; goes on with TLS, or is open. */
void net_stream_connected(struct net_stream *stream);
/* stream_open.c: says the first word of TLS, if it is ours. */
void net_stream_handshake(struct net_stream *stream);

/* ---- stream.c ------------------------------------------------------------------------------ */

/* Off the loop, at once; the memory goes in a later round. */
void net_stream_leave(struct net_stream *stream);
/* Frees it, when libuv, the feed and the owner have let it go. */
void net_stream_let_go(struct net_stream *stream);
/* Leaves, and tells the owner why. */
void net_stream_fail(struct net_stream *stream, const peg_error *error);
/* The same at the end of the round, for when the owner is in the midst of something. `why` is an
 * errno, or 0 if there was no memory. */
void net_stream_break(struct net_stream *stream, int why);
/* The peer has ended it. What waits is still sent to it, without the owner. */
void net_stream_end(struct net_stream *stream);
/* It stands: the timer is off, writes are taken, and on_open was told when it returns. */
void net_stream_opened(struct net_stream *stream);
/* Watches for what the state asks for. False: libuv refuses, which it does at the start only. */
bool net_stream_watch(struct net_stream *stream);
/* Sends what waits, as far as the socket takes it; a failure breaks the stream. */
void net_stream_flush(struct net_stream *stream);
/* Words for errno. */
void net_stream_explain(const struct net_stream *stream, int why, peg_error *ret_error);
/* What comes is for the owner now. */
static inline bool net_stream_is_reading(const struct net_stream *stream)
{
    return stream->state == NET_OPEN && !stream->is_paused;
}

/* What comes is taken now, be it only to look for the end. */
bool net_stream_may_read(const struct net_stream *stream);
/* Once. True if there may be more now. */
bool net_stream_read(struct net_stream *stream);
/* Ends it, and tells the owner what broke it: an errno, or 0. */
void net_stream_fail_why(struct net_stream *stream, int why);
/* The time to open it, or to end it, is over. */
void net_stream_time_out(struct net_stream *stream);
/* The most that is looked at of a connection that is lost already (its last words), in reads. */
enum { NET_MAX_LAST_READS = 64 };

void net_stream_on_poll(uv_poll_t *poll, int status, int events);
void net_stream_on_later(struct net_later *later);
void net_stream_on_close(struct net_open *open);
void net_stream_on_timer(struct net_timer *timer);

/* ---- stream_turns.c ------------------------------------------------------------------------ */

void net_stream_on_turn(struct net_turn *turn);
/* There is something to read, or it broke, or its time is over. */
void net_stream_want_turn(struct net_stream *stream);
/* The socket has something to read, of a stream that reads in its turn. */
void net_stream_await_turn(struct net_stream *stream);
/* May what comes be read when it comes? */
static inline bool net_stream_reads_at_once(const struct net_stream *stream)
{
    return stream->turns != NET_TURN_READS && stream->rest.len == 0 && !stream->has_plain;
}
/* It takes turns, and this is not one. */
static inline bool net_stream_must_wait(const struct net_stream *stream)
{
    return stream->turns != NET_NO_FAIR_QUEUE && !net_loop_has_turn(stream->loop, &stream->turn);
}

/* ---- stream_shake.c ------------------------------------------------------------------------ */

/* Feeds what came of a handshake to TLS, aside; its turn comes when that is done. */
void net_stream_offload_handshake(struct net_stream *stream, const uint8_t *bytes, size_t len);
/* Of one that has a `shake`: is that done? Then it is taken, in its turn. */
bool net_stream_has_shaken_hands(const struct net_stream *stream);
void net_stream_finish_handshake(struct net_stream *stream);
/* False: it is being fed, and calls net_stream_let_go() when that is done. */
bool net_stream_drop_handshake(struct net_stream *stream);

/* ---- stream_tls.c -------------------------------------------------------------------------- */

/* The first bytes of one that was taken are here. False: they are no TLS, and it is gone. */
bool net_stream_tls_begins(struct net_stream *stream, const uint8_t *bytes, size_t len);
/* Bytes from the wire, in the loop's read buffer, which is used for the plain ones. */
void net_stream_tls_feed(struct net_stream *stream, const uint8_t *bytes, size_t len);
/* They were fed to TLS, with this result. */
void net_stream_tls_fed(struct net_stream *stream, peg_status status, const peg_error *error);
/* Hands out what came while the stream was paused. */
void net_stream_tls_deliver(struct net_stream *stream);
peg_status net_stream_tls_write(struct net_stream *stream, const uint8_t *bytes, size_t len,
                                peg_error *reterr);

#endif
