/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_CLIENT_H
#define PEG_GRPC_CLIENT_CLIENT_H

#include "grpc/http2/http2.h"
#include "grpc/message.h"
#include "net/stream/stream.h"
#include "pegboard/common.h"

/* ---- channel ------------------------------------------------------------------------------- */

/*
 * Where a client's calls go: a target with one or several addresses, a connection to each that is
 * used, and the calls that wait for one. Only the thread of its loop may touch it.
 *
 * The first call connects. Calls rotate over all connections. One that breaks is made again after a
 * back-off of 1 s that grows by 1.6 to 120 s, with jitter, or at once if it stood for longer and
 * there are calls; calls without waits_for_ready fail (UNAVAILABLE) once every address has failed.
 * After GOAWAY a new connection takes the calls, and the old one ends with its last call. A call
 * that the server has not seen (GOAWAY, REFUSED_STREAM) is sent again, once, and one that has not
 * left goes to another connection: its messages are kept until an answer begins, up to
 * PEG_LIMIT_GRPC_KEPT_BYTES. A name is looked up for the first call, and again after failures.
 *
 * With prefers_one there is one connection at a time, for all calls: to the first address that
 * answers. When it ends, the next address is tried, and so on around; calls fail only if none
 * answers. An address that is silent for 250 ms does not hold up the next one.
 */

struct grpc_channel;
struct grpc_rpc;

/* Hangs on every call of a channel, in the order given. */
struct grpc_client_interceptor {
    /* Before it is sent: may add metadata, or cancel, which skips later interceptors. May be
     * NULL. */
    void (*on_start)(struct grpc_rpc *rpc, void *user);
    /* In the reverse order, before on_end of the call. May be NULL. */
    void (*on_end)(struct grpc_rpc *rpc, const struct grpc_status *status, void *user);
    void *user;
};

enum grpc_channel_state {
    GRPC_CHANNEL_IDLE,       /* no call yet, or not for long */
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
    bool prefers_one;             /* one address at a time; then n_connections is 1 */
    bool begins_anywhere;         /* with prefers_one: at one chosen at random, not the first */
    unsigned n_connections;     /* 1: to each address; PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS in all */
    struct net_tls_config *tls; /* NULL: plain; the channel takes its own reference */
    const char *tls_host;       /* NULL: the host of the target, each its own */
    const char *authority;      /* NULL: the target, each its own */
    const char *user_agent;     /* put before ours; NULL: none */
    const struct grpc_client_interceptor *interceptors; /* copied */
    size_t n_interceptors;
};

/* Does not connect. PEG_EPARSE (E_ADDRESS), PEG_EINVAL. Targets: see net/address.h, also several
 * with commas between them; without a port it is 443 with TLS and 80 otherwise. */
peg_status grpc_channel_new(struct net_loop *loop, peg_str target,
                            const struct grpc_channel_options *options,
                            struct grpc_channel **ret_channel, peg_error *reterr);
/* Before its loop. Ends every call with CANCELLED before it returns. Not from within an event of
 * its calls. */
struct grpc_channel *grpc_channel_free(struct grpc_channel *channel);

enum grpc_channel_state grpc_channel_state(const struct grpc_channel *channel);
/* Called on each change; one at a time, NULL for none. */
void grpc_channel_on_state(struct grpc_channel *channel,
                           void (*fn)(void *user, enum grpc_channel_state state), void *user);
/* Connects now if it is idle, without back-off. */
void grpc_channel_connect(struct grpc_channel *channel);
/* The server at `peer` (grpc_rpc_peer()) takes no more calls: with prefers_one they go to the next
 * address, and its connection ends with its last call. Returns how many other addresses there are;
 * with 0 nothing changes. */
size_t grpc_channel_leave(struct grpc_channel *channel, const char *peer);
struct net_loop *grpc_channel_loop(const struct grpc_channel *channel);
/* Calls that run or wait. */
size_t grpc_channel_n_calls(const struct grpc_channel *channel);

/* ---- rpc ----------------------------------------------------------------------------------- */

/* A call for the client that makes it. Only the thread of its channel's loop may touch it. It ends
 * exactly once, by on_end, never from within grpc_rpc_start(); its memory goes with on_end or the
 * last reference. */

struct grpc_rpc;
struct grpc_call;
struct ProtobufCMessage;

struct grpc_rpc_events {
    /* The server's headers came. May be NULL. */
    void (*on_headers)(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user);
    /* As method->output describes it, or a const peg_str * if that is NULL; borrowed. */
    void (*on_message)(struct grpc_rpc *rpc, const void *message, void *user);
    /* grpc_rpc_is_writable() has become true again. May be NULL. */
    void (*on_writable)(struct grpc_rpc *rpc, void *user);
    /* Exactly once, last. Status and trailers are borrowed until it returns. */
    void (*on_end)(struct grpc_rpc *rpc, const struct grpc_status *status,
                   const struct grpc_metadata *trailers, void *user);
};

struct grpc_rpc_options {
    int64_t timeout_ms;       /* 0: none */
    bool waits_for_ready;     /* wait for a connection rather than fail with UNAVAILABLE */
    bool uses_gzip;           /* compress what is sent */
    size_t max_message_bytes; /* 0: the channel's */
    const struct grpc_metadata *metadata; /* copied; may be NULL */
    struct grpc_call *parent; /* a call on the same loop: this one ends with it, and not later
                               * than its deadline; may be NULL */
};

/* Starts it; options and ret_rpc may be NULL, events are copied. A call that cannot reach a server
 * ends (UNAVAILABLE); a failure here (PEG_EINVAL, PEG_ENOMEM, PEG_ELIMIT, or PEG_ESTATE while the
 * channel is freed) is the caller's, without on_end. */
peg_status grpc_rpc_start(struct grpc_channel *channel, const struct grpc_method *method,
                          const struct grpc_rpc_options *options,
                          const struct grpc_rpc_events *events, void *user,
                          struct grpc_rpc **ret_rpc, peg_error *reterr);

/* Queues a message (also before there is a connection). As grpc_stream_send(); PEG_ECANCELED
 * (E_CALL_ENDED) once the call has ended. */
peg_status grpc_rpc_send(struct grpc_rpc *rpc, peg_str message, peg_error *reterr);
peg_status grpc_rpc_send_message(struct grpc_rpc *rpc, const struct ProtobufCMessage *message,
                                 peg_error *reterr);
/* Messages of a call with uses_gzip go as they are from now on, or compressed again. */
void grpc_rpc_skip_gzip(struct grpc_rpc *rpc, bool skips);
bool grpc_rpc_is_writable(const struct grpc_rpc *rpc);
/* Sends nothing more. */
void grpc_rpc_half_close(struct grpc_rpc *rpc);
/* Ends it with CANCELLED, unless it has ended; on_end comes in a later round. */
void grpc_rpc_cancel(struct grpc_rpc *rpc);
void grpc_rpc_pause(struct grpc_rpc *rpc);
void grpc_rpc_resume(struct grpc_rpc *rpc);

/* One request, as method->input describes it or a const peg_str *, and one answer: on_message
 * (unless there is none), then on_end. */
peg_status grpc_rpc_unary(struct grpc_channel *channel, const struct grpc_method *method,
                          const void *request, const struct grpc_rpc_options *options,
                          const struct grpc_rpc_events *events, void *user,
                          struct grpc_rpc **ret_rpc, peg_error *reterr);

/* Keeps the memory; on its loop only. */
struct grpc_rpc *grpc_rpc_ref(struct grpc_rpc *rpc);
struct grpc_rpc *grpc_rpc_unref(struct grpc_rpc *rpc);
const struct grpc_method *grpc_rpc_method(const struct grpc_rpc *rpc);
struct peg__arena *grpc_rpc_arena(struct grpc_rpc *rpc);
/* The address it was sent to, or "" while there is none; borrowed. */
const char *grpc_rpc_peer(const struct grpc_rpc *rpc);
/* Did anything of it reach the wire? False: no server has seen it, it may be made again. */
bool grpc_rpc_was_sent(const struct grpc_rpc *rpc);
/* Within on_message: did the message come compressed? */
bool grpc_rpc_was_compressed(const struct grpc_rpc *rpc);
/* For interceptors, before it is sent: as grpc_metadata_add(). */
peg_status grpc_rpc_add_metadata(struct grpc_rpc *rpc, peg_str key, peg_str value,
                                 peg_error *reterr);

/* ---- blocking ------------------------------------------------------------------------------ */

/*
 * Blocking calls, for commands and tests, on a channel whose loop runs in its own thread.
 *
 *   grpc_channel_new_wait(loop, target, NULL, &channel, reterr);
 *   grpc_call_wait(channel, &method, &request, NULL, &answer, reterr);
 *   if (answer.status.code == GRPC_OK) ... answer.message ...
 *   grpc_answer_free(&answer);
 *   grpc_channel_free_wait(channel);
 *
 * Any thread but the loop's own (PEG_ESTATE).
 */

/* Owned. */
struct grpc_answer {
    struct grpc_status status;
    /* What method->output describes, or a const peg_str * if that is NULL; NULL if none came. */
    const void *message;
    struct grpc_metadata headers;
    struct grpc_metadata trailers;
    struct peg__arena arena; /* in which all of it lies */
};

/* As grpc_channel_new(). */
peg_status grpc_channel_new_wait(struct net_loop *loop, peg_str target,
                                 const struct grpc_channel_options *options,
                                 struct grpc_channel **ret_channel, peg_error *reterr);
/* As grpc_channel_free(). */
struct grpc_channel *grpc_channel_free_wait(struct grpc_channel *channel);

/* A call that fails is an answer with its status; a failure here is the caller's, as with
 * grpc_rpc_unary(), or PEG_ENOMEM. options->parent must be NULL. */
peg_status grpc_call_wait(struct grpc_channel *channel, const struct grpc_method *method,
                          const void *request, const struct grpc_rpc_options *options,
                          struct grpc_answer *ret_answer, peg_error *reterr);
void grpc_answer_free(struct grpc_answer *answer);

/* ---- backoff ------------------------------------------------------------------------------- */

/* The wait between attempts to connect: longer after each failure, with jitter. A value. */

struct grpc_backoff {
    int64_t first_ms;
    int64_t max_ms;
    int64_t next_ms; /* without jitter */
    uint64_t random; /* its state */
};

/* 0 means PEG_LIMIT_GRPC_BACKOFF_MS and PEG_LIMIT_GRPC_BACKOFF_MAX_MS. */
void grpc_backoff_init(struct grpc_backoff *backoff, int64_t first_ms, int64_t max_ms,
                       uint64_t seed);
/* The wait after one more failure: 1.6 times the one before, at most max_ms, +/- 20 %. */
int64_t grpc_backoff_take_ms(struct grpc_backoff *backoff);
/* The same, with another greatest wait this time. */
int64_t grpc_backoff_take_below_ms(struct grpc_backoff *backoff, int64_t max_ms);
/* A success: the next wait is the first again. */
void grpc_backoff_reset(struct grpc_backoff *backoff);

#endif
