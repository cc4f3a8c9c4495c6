/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_CONN_H
#define PEG_GRPC_CLIENT_CONN_H

/*
 * One connection of a client: a socket, the session on it, and the streams of calls, which count
 * themselves by grpc_client_conn_took() and _gave(). Lives on one loop.
 *
 *   new -> connecting -> on_ready (the server's SETTINGS came) -> ... -> on_lost
 *                                    \-> on_retired (GOAWAY) -> its last stream ends -> on_lost
 *
 * Output is gathered: whatever a round of the loop produces goes out in one write.
 */

#include "grpc/client/pick.h"
#include "grpc/http2/session.h"
#include "net/stream/stream.h"

struct grpc_client_conn;

/* None of them comes from within a function of this header, but for grpc_client_conn_retire(). */
struct grpc_client_conn_events {
    /* Calls can be made; pick.max_streams says how many. Comes again when that changes. */
    void (*on_ready)(void *user, struct grpc_client_conn *conn);
    /* Bytes that came have been told to all streams. */
    void (*on_fed)(void *user);
    /* It takes no more calls: the server said so (GOAWAY), or it has no more numbers for them.
     * `is_too_eager`: because of too many pings. */
    void (*on_retired)(void *user, struct grpc_client_conn *conn, bool is_too_eager);
    /* Last. Its streams hear on_closed after it returns, then it is gone. The error is that of
     * conn->lost; PEG_OK if it was retired and had nothing more to do. */
    void (*on_lost)(void *user, struct grpc_client_conn *conn);
};

struct grpc_client_conn_options {
    struct grpc_session_options session;
    struct net_stream_options stream;
    int64_t keepalive_ms; /* 0: never */
    int64_t keepalive_timeout_ms;
    const struct grpc_client_conn_events *events;
    void *user;
};

/* Owned by its channel. */
struct grpc_client_conn {
    struct grpc_pick_entry pick; /* first: an entry is its connection */
    struct net_loop *loop;
    void *slot; /* whatever its owner hangs here */
    struct grpc_client_conn_options options;
    struct grpc_session *session;
    char peer[NET_ADDRESS_TEXT];
    int64_t last_read_ns;
    peg_error lost; /* status PEG_OK as long as it stands */
    bool is_open;
    bool is_ready;
    bool is_retired;
    bool is_pinging;
    /* What may be pending. */
    struct net_stream *stream;
    struct net_later flush;
    struct net_timer timer; /* SETTINGS, then keepalive */
    /* The owner's list. */
    struct grpc_client_conn *next;
    struct grpc_client_conn *prev;
};

/* Begins to connect. PEG_EIO, PEG_ENOMEM. */
peg_status grpc_client_conn_new(struct net_loop *loop, const struct net_address *address,
                                const struct grpc_client_conn_options *options,
                                struct grpc_client_conn **ret_conn, peg_error *reterr);
/* Right in any state but within its own events: says good-bye if it can, and is gone without a
 * word to its owner. It must have no streams. */
struct grpc_client_conn *grpc_client_conn_free(struct grpc_client_conn *conn);

/* A stream was opened on it; a stream is off it. */
void grpc_client_conn_took(struct grpc_client_conn *conn);
void grpc_client_conn_gave(struct grpc_client_conn *conn);
/* No more calls on this one; on_lost comes (in a later round) when the last has ended. */
void grpc_client_conn_retire(struct grpc_client_conn *conn);

#endif
