/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_CHANNEL_H
#define PEG_GRPC_CLIENT_CHANNEL_H

/*
 * Where a client's calls go: one target, one or several addresses behind it, a connection to
 * each that is used, and the calls that wait for one. It lives on one loop, whose thread alone
 * may touch it.
 *
 * Connections are made when the first call needs one. Calls take turns over all addresses that
 * have a connection. One that breaks is made again after a back-off of 1 s that grows by 1.6 to
 * 120 s, with jitter; a call without waits_for_ready fails meanwhile (UNAVAILABLE) once every
 * address has failed. After GOAWAY a new connection takes the calls, and the old one ends with
 * its last call; a call that the server says it has not seen (GOAWAY, REFUSED_STREAM) is sent
 * again, once, and one that has not left is given to another connection. Both need what was said so
 * far: it is kept until an answer begins, up to PEG_LIMIT_GRPC_KEPT_BYTES.
 *
 * A connection that has stood longer than the back-off is made again at once when it breaks, if
 * there are calls; a channel without calls waits for the next one. A name is looked up when the
 * first call comes, and again after failures.
 */

#include "grpc/http2/head.h"
#include "net/stream/stream.h"

struct grpc_channel;
struct grpc_rpc;

/* Hangs on every call of a channel, in the order given. */
struct grpc_client_interceptor {
    /* Before it is sent: may add metadata, may cancel, and then those behind hear nothing of it.
     * May be NULL. */
    void (*on_start)(struct grpc_rpc *rpc, void *user);
    /* In the reverse order, before on_end of the call. May be NULL. */
    void (*on_end)(struct grpc_rpc *rpc, const struct grpc_status *status, void *user);
    void *user;
};

enum grpc_channel_state {
    GRPC_CHANNEL_IDLE,       /* nobody has called yet, or not for long */
    GRPC_CHANNEL_CONNECTING, /* no address has a connection, some may get one */
    GRPC_CHANNEL_READY,      /* at least one has */
    GRPC_CHANNEL_FAILING,    /* every one has failed; it goes on trying */
};

/* All 0 is good; each 0 means the default named beside it (base/limits.h). */
struct grpc_channel_options {
    size_t max_message_bytes;     /* PEG_LIMIT_GRPC_MESSAGE_BYTES */
    size_t max_header_bytes;      /* PEG_LIMIT_GRPC_HEADER_BYTES */
    uint32_t stream_window;       /* PEG_LIMIT_GRPC_STREAM_WINDOW */
    uint32_t session_window;      /* PEG_LIMIT_GRPC_SESSION_WINDOW */
    size_t max_held_bytes;        /* PEG_LIMIT_GRPC_HELD_BYTES, of a connection */
    size_t max_send_bytes;        /* PEG_LIMIT_GRPC_SEND_BYTES, waiting on one call */
    size_t max_waiting;           /* PEG_LIMIT_GRPC_WAITING_CALLS for a connection or a stream */
    int64_t connect_ms;           /* PEG_LIMIT_NET_OPEN_MS */
    int64_t backoff_ms;           /* 1,000: after the first failure */
    int64_t max_backoff_ms;       /* 120,000 */
    int64_t keepalive_ms;         /* 0: never */
    int64_t keepalive_timeout_ms; /* PEG_LIMIT_GRPC_KEEPALIVE_TIMEOUT_MS */
    int64_t resolve_again_ms;     /* PEG_LIMIT_GRPC_RESOLVE_MS: least time between two lookups */
    int64_t idle_ms;              /* PEG_LIMIT_GRPC_CHANNEL_IDLE_MS: then connections without any
                                   * call are closed, and made again for the next one */
    unsigned n_connections;     /* 1: to each address; PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS in all */
    struct net_tls_config *tls; /* NULL: plain; the channel takes its own reference */
    const char *tls_host;       /* NULL: the host of the target */
    const char *authority;      /* NULL: the target */
    const char *user_agent;     /* put before ours; NULL: none */
    const struct grpc_client_interceptor *interceptors; /* copied */
    size_t n_interceptors;
};

/* Does not connect. PEG_EPARSE (E_ADDRESS), PEG_EINVAL (an option that means nothing). Targets: see
 * net/address.h; without a port it is 443 with TLS and 80 otherwise. */
peg_status grpc_channel_new(struct net_loop *loop, peg_str target,
                            const struct grpc_channel_options *options,
                            struct grpc_channel **ret_channel, peg_error *reterr);
/* Every call that still runs ends with CANCELLED before it returns. Not from within an event of
 * one of its calls, and before its loop. */
struct grpc_channel *grpc_channel_free(struct grpc_channel *channel);

enum grpc_channel_state grpc_channel_state(const struct grpc_channel *channel);
/* Called on each change; one at a time, NULL for none. */
void grpc_channel_on_state(struct grpc_channel *channel,
                           void (*fn)(void *user, enum grpc_channel_state state), void *user);
/* Connects now if it is idle; forgets the back-off, and that every address had failed: calls wait
 * for what comes of it. */
void grpc_channel_connect(struct grpc_channel *channel);
struct net_loop *grpc_channel_loop(const struct grpc_channel *channel);
/* Calls that run or wait. */
size_t grpc_channel_n_calls(const struct grpc_channel *channel);

#endif
