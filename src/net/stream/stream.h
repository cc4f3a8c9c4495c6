/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_STREAM_STREAM_H
#define PEG_NET_STREAM_STREAM_H

/*
 * Bytes in both directions: a TCP or unix socket, with or without TLS. Owned by one loop, whose
 * thread alone may touch it.
 *
 * Events: on_open once, then bytes, and at the end on_closed, exactly once and last: the stream is
 * gone when it returns. No event comes from within a call of the owner's. A plain socket that was
 * taken is open from the start, so it may be written to at once; its on_open comes at the end of
 * the same round. After net_stream_close() or net_stream_drop(), which are allowed in any event, no
 * event comes.
 *
 * Writes go out at once as far as the socket takes them. What it does not take waits in a queue
 * of at most max_queue bytes; while anything waits, net_stream_is_blocked() is true, and an owner
 * that stops producing then never holds more than it wrote at once. on_drained
 * reports the end of that.
 */

#include <sys/types.h>

#include "net/address.h"
#include "net/tls/tls.h"

struct net_stream;

struct net_stream_events {
    /* It is connected, with TLS if any. May be NULL. */
    void (*on_open)(void *user);
    /* Borrowed until it returns. The owner may close or drop the stream meanwhile. */
    void (*on_bytes)(void *user, const uint8_t *bytes, size_t len);
    /* Nothing waits to be written any more. May be NULL. */
    void (*on_drained)(void *user);
    /* The peer ended it (error->code is E_STREAM_ENDED, PEG_ECANCELED; what waits is still sent to
     * it for linger_ms), or its loop ends (E_LOOP_ENDED, PEG_ECANCELED), or it broke (PEG_EIO:
     * E_STREAM with the system's message, or E_TLS), or a limit or time was passed (PEG_ELIMIT,
     * PEG_ETIMEOUT), or there was no memory (PEG_ENOMEM). */
    void (*on_closed)(void *user, const peg_error *error);
};

struct net_stream_options {
    struct net_tls_config *tls; /* NULL: plain; the stream takes its own reference */
    const char *tls_host;       /* client: the name that the certificate must have */
    size_t max_queue;           /* 0: PEG_LIMIT_NET_QUEUE_BYTES */
    int64_t open_ms;            /* connecting and TLS handshake; 0: PEG_LIMIT_NET_OPEN_MS */
    int64_t linger_ms;          /* net_stream_close(); 0: PEG_LIMIT_NET_LINGER_MS */
};

/* Takes over a connected socket (also on failure: it is then closed). */
peg_status net_stream_take(struct net_loop *loop, int fd, const struct net_stream_options *options,
                           const struct net_stream_events *events, void *user,
                           struct net_stream **ret_stream, peg_error *reterr);
/* Connects. Failure to connect comes as on_closed, never from within this call. */
peg_status net_stream_connect(struct net_loop *loop, const struct net_address *address,
                              const struct net_stream_options *options,
                              const struct net_stream_events *events, void *user,
                              struct net_stream **ret_stream, peg_error *reterr);
/* Another owner from now on. */
void net_stream_set_events(struct net_stream *stream, const struct net_stream_events *events,
                           void *user);

/* Copies what cannot go out at once. PEG_ELIMIT (E_SEND_QUEUE_FULL): with what waits these would
 * be more than max_queue bytes; nothing was taken. PEG_EIO: the socket broke; on_closed follows in
 * this round or the next, after the bytes that the peer sent before. PEG_ENOMEM: nothing was taken,
 * or, if a part had gone out already, on_closed follows. PEG_ESTATE before it is open. */
peg_status net_stream_write(struct net_stream *stream, const uint8_t *bytes, size_t len,
                            peg_error *reterr);
bool net_stream_is_blocked(const struct net_stream *stream);
size_t net_stream_queued(const struct net_stream *stream);

/* Reads at most so many bytes at a time; NET_READ_BYTES at first, and at most. For an owner whose
 * work for a byte may be large. */
void net_stream_set_max_read(struct net_stream *stream, size_t max);

/* What of it waits in the loop's fair queue (net/loop/fair_queue.c): for an owner of many
 * connections with unknown peers. */
enum net_stream_fair_queue {
    NET_NO_FAIR_QUEUE,    /* nothing: what comes is read at once; so at the beginning */
    NET_FAIR_QUEUE_ENDS,  /* its end */
    NET_FAIR_QUEUE_READS, /* that, the handshake and its reads: one read per job */
};
void net_stream_set_fair_queue(struct net_stream *stream, enum net_stream_fair_queue fair_queue);
/* Within on_bytes of a stream that uses the fair queue: the last `len` bytes are too much for this
 * job, and come again in the next. PEG_ENOMEM: they have to be taken now. */
peg_status net_stream_unread(struct net_stream *stream, const uint8_t *bytes,
                             size_t len) PEG_MUST_USE;

/* While paused nothing is read, and so the end of the peer is not noticed either. */
void net_stream_pause(struct net_stream *stream);
void net_stream_resume(struct net_stream *stream);

/* Sends what waits and its end, and waits for the peer's end (for at most linger_ms, and
 * PEG_LIMIT_NET_LINGER_BYTES of the peer's), so that the last bytes are not lost; then closes. No
 * event comes any more. One that is not open is dropped. */
void net_stream_close(struct net_stream *stream);
/* Closes now. No event comes any more; right in any state. */
void net_stream_drop(struct net_stream *stream);

/* Before it is closed or dropped, or in on_closed: keeps its peer's name, and nothing else, until
 * net_stream_forget(). */
void net_stream_keep(struct net_stream *stream);
void net_stream_forget(struct net_stream *stream);

struct net_loop *net_stream_loop(const struct net_stream *stream);
/* Text of the other end; borrowed from the stream. */
const char *net_stream_peer(const struct net_stream *stream);
/* A loopback address or a unix socket. */
bool net_stream_is_local(const struct net_stream *stream);
/* Of a unix socket: the user that connected it, from the kernel. False: it is none. */
bool net_stream_unix_uid(const struct net_stream *stream, uid_t *ret_uid);
/* NULL without TLS; borrowed. */
const struct net_tls *net_stream_tls(const struct net_stream *stream);

#endif
