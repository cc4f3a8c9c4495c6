/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_SERVER_H
#define PEG_GRPC_SERVER_SERVER_H

/*
 * A gRPC server.
 *
 *   grpc_server_new(loops, &options, &server, reterr);
 *   grpc_server_add(server, &echo_service, handlers, user, reterr);   one handler per method
 *   grpc_server_listen(server, peg_cstr("127.0.0.1:9090"), NULL, &address, reterr);
 *   ...
 *   grpc_server_drain(server, 10000);
 *   server = grpc_server_free(server);
 *
 * HTTP/1.1 on the same port goes to options.on_http1, if there is one, and so do GET and HEAD of
 * HTTP/2.
 */

#include "grpc/client/call.h"
#include "net/http1/http1.h"
#include "net/listener.h"

struct grpc_server;

/* All 0 is a good server; each 0 means the default named beside it (base/limits.h). */
struct grpc_server_options {
    size_t max_message_bytes;     /* PEG_LIMIT_GRPC_MESSAGE_BYTES, after decompression */
    size_t max_header_bytes;      /* PEG_LIMIT_GRPC_HEADER_BYTES */
    uint32_t max_streams;         /* PEG_LIMIT_GRPC_STREAMS, at once on a connection */
    uint32_t stream_window;       /* PEG_LIMIT_GRPC_STREAM_WINDOW */
    uint32_t session_window;      /* PEG_LIMIT_GRPC_SESSION_WINDOW */
    size_t max_held_bytes;        /* PEG_LIMIT_GRPC_HELD_BYTES, of a connection */
    size_t max_node_held_bytes;   /* PEG_LIMIT_GRPC_NODE_HELD_BYTES, of all connections */
    size_t max_send_bytes;        /* PEG_LIMIT_GRPC_SEND_BYTES, waiting on one stream */
    uint32_t reset_burst;         /* PEG_LIMIT_GRPC_RESET_BURST */
    uint32_t reset_per_s;         /* PEG_LIMIT_GRPC_RESETS */
    int64_t keepalive_ms;         /* PEG_LIMIT_GRPC_KEEPALIVE_MS: a silent connection is pinged */
    int64_t keepalive_timeout_ms; /* PEG_LIMIT_GRPC_KEEPALIVE_TIMEOUT_MS: then it is closed */
    int64_t min_ping_ms;          /* PEG_LIMIT_GRPC_PING_MS: pings that come faster are strikes */
    int64_t max_age_ms;           /* 0: never; a connection is asked to go after so long */
    int64_t max_age_grace_ms;     /* PEG_LIMIT_GRPC_AGE_GRACE_MS: and closed then */
    int64_t max_idle_ms;          /* 0: never; a connection without calls is asked to go */
    int64_t preface_ms;           /* PEG_LIMIT_GRPC_PREFACE_MS: until SETTINGS have come */
    int64_t stall_ms;             /* PEG_LIMIT_GRPC_STALL_MS: of a message or an answer */
    /* Clients have to authenticate (grpc_call_authenticate(), or a certificate): a connection that
     * has not is ended after PEG_LIMIT_GRPC_UNAUTHENTICATED_MS, unless it watches something. */
    bool asks_who;
    int64_t unauthenticated_ms;

    const struct grpc_interceptor *interceptors; /* copied */
    size_t n_interceptors;

    /* A call is refused with a code and words alone before its handler has its request, or because
     * of what a client streams: adds details, in the call's arena, and may send another code. On
     * the loop of the call, whose method may be NULL. May be NULL. */
    void (*describe)(struct grpc_call *call, struct grpc_status *status);

    /* On the loop of the connection. NULL: HTTP/1.1 is refused, and GET and HEAD of HTTP/2. */
    void (*on_http1)(void *user, const struct net_http1_request *request,
                     struct net_http1_answer *answer);
    void *http1_user;
};

/* `loops` outlives the server. Any thread. */
peg_status grpc_server_new(struct net_loops *loops, const struct grpc_server_options *options,
                           struct grpc_server **ret_server, peg_error *reterr);
/* Any thread but the loops'. Every call that still runs is ended (UNAVAILABLE). */
struct grpc_server *grpc_server_free(struct grpc_server *server);

/* Before the first grpc_server_listen(). handlers[i] is for service->methods[i]; it is copied. A
 * handler without on_message answers UNIMPLEMENTED. PEG_EEXISTS (E_GRPC_SERVICE_EXISTS). */
peg_status grpc_server_add(struct grpc_server *server, const struct grpc_service *service,
                           const struct grpc_handler *handlers, void *user, peg_error *reterr);
/* What holds for a method that anybody may call, or whose answers can be made again. */
struct grpc_method_bounds {
    size_t max_message_bytes; /* 0: the server's */
    size_t max_waiting_bytes; /* that come while the call is paused; 0: its window */
    bool waits_for_window;    /* a request is handed over when the client takes the answer */
    bool keeps_connection;    /* while it streams, a client need not authenticate */
};
/* Before the first grpc_server_listen(). A method that was not added is no matter. */
void grpc_server_bound(struct grpc_server *server, const char *path,
                       const struct grpc_method_bounds *bounds);
/* The services in the order in which they were added; NULL behind the last. */
const struct grpc_service *grpc_server_service_at(const struct grpc_server *server, size_t i);

/* Any thread, but one at a time. May be called several times. ret_address (may be NULL) tells the
 * port. */
peg_status grpc_server_listen(struct grpc_server *server, peg_str address,
                              const struct net_listener_options *options,
                              struct net_address *ret_address, peg_error *reterr);
/* PEG_EINVAL (E_LISTEN): what listening on a name fails with, which is not looked up. */
peg_status grpc_server_refuse_name(const struct net_endpoint *endpoint, peg_error *reterr);
peg_status grpc_server_listen_on(struct grpc_server *server, int fd,
                                 const struct net_listener_options *options, peg_error *reterr);

/* Any thread but the loops'. Accepts nothing more, sends GOAWAY, waits until what runs has ended,
 * at most so long, then closes. True if everything ended in good order. May be called again: then
 * it only waits. */
bool grpc_server_drain(struct grpc_server *server, int64_t drain_ms);

/* Any thread; relaxed sums over all loops. */
struct grpc_server_counts {
    uint64_t n_connections; /* open now */
    uint64_t n_calls;       /* running now */
    uint64_t n_started;     /* calls since the start; pages are none */
    uint64_t n_ended;
    uint64_t n_refused_connections; /* ended because of what they sent */
    uint64_t n_evicted_connections; /* ended because they held most when all held too much */
    uint64_t n_held_bytes;          /* by all connections, now */
};
void grpc_server_counts(const struct grpc_server *server, struct grpc_server_counts *ret_counts);

#endif
