/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_INTERNAL_H
#define PEG_GRPC_SERVER_INTERNAL_H

/*
 * What the files of the server share, in the order in which a call meets them:
 *
 *   server.c       options, services, listeners, the end
 *   server_home.c  the server on one loop: its connections, and calls to be used again
 *   server_conn.c  one connection: first bytes, session, its end
 *   server_times.c when it is pinged, and when it has to go
 *   server_held.c  what it holds, and whose connection is cut when all hold too much
 *   call_start.c   headers to handler
 *   call.c         what a handler says, and the end of a call
 *   call_send.c    the headers, messages and trailers that go out
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/quota.h"
#include "grpc/http2/session.h"
#include "grpc/server/server.h"

struct grpc_route {
    const struct grpc_method *method;
    struct grpc_handler handler;
    void *user;
    struct grpc_method_bounds bounds;
};

/* Counts of one loop: written by its thread alone, read by any. */
struct grpc__counts {
    atomic_uint_fast64_t n_connections;
    atomic_uint_fast64_t n_started; /* pages too */
    atomic_uint_fast64_t n_pages;
    atomic_uint_fast64_t n_ended; /* no pages */
    atomic_uint_fast64_t n_refused_connections;
    atomic_uint_fast64_t n_evicted_connections;
};

static inline void grpc__count(atomic_uint_fast64_t *counter, int64_t n)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + (uint64_t)n,
                          memory_order_relaxed);
}

static inline uint64_t grpc__counted(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The server on one loop, whose thread alone touches it. Owned by the server. */
struct grpc__server_loop {
    struct grpc_server *server;
    struct net_loop *loop;
    struct grpc__conn *conns;
    struct grpc_call *spare; /* ended calls, to be used again */
    size_t n_spare;
    size_t spare_bytes;
    struct grpc_call *held;              /* ended calls to which somebody has a reference */
    const struct grpc_route *last_route; /* that was called; NULL: none yet */
    peg_str last_path;
    bool is_draining;
    bool is_empty_told;
    struct net_message drain; /* to the loop: GOAWAY to all */
    struct net_message drop;  /* to the loop: close all now */
    struct net_message evict; /* to the loop: cut those that hold most */
    bool is_evict_posted;     /* under the server's lock */
    bool is_dropped;          /* likewise: its thread does not touch it any more, but for `evict` */
    struct grpc__counts counts;
};

struct grpc_server {
    struct grpc_server_options options; /* with defaults filled in */
    struct net_loops *loops;
    struct peg__map routes; /* path -> struct grpc_route, in the blocks below */
    const struct grpc_service **services;
    struct grpc_route **route_blocks; /* one for each service */
    size_t n_services;
    size_t services_capacity;
    size_t blocks_capacity;
    struct net_listener **listeners;
    size_t n_listeners;
    size_t listeners_capacity;
    struct grpc__server_loop *homes;
    unsigned n_homes;
    bool is_draining; /* the homes have been told */
    struct peg__hash_key secret;
    struct peg__quota held;            /* by all connections; those that did not authenticate ... */
    struct peg__quota unauthenticated; /* ... count here, if clients have to */
    pthread_mutex_t lock;              /* for what follows */
    pthread_cond_t changed;
    unsigned n_empty_homes;   /* that drain and have no connection */
    unsigned n_dropped_homes; /* whose thread does not touch them any more */
};

/* One connection. Owned by its home. What may be pending: the flush, the timer, the turn;
 * grpc__conn_drop() is right in any state but within an event of its session. */
struct grpc__conn {
    struct grpc__server_loop *home;
    struct net_stream *stream;
    struct grpc_session *session; /* HTTP/2 */
    struct net_http1 *http1;      /* or HTTP/1.1; neither: the first bytes have not come */
    uint8_t first[4];
    size_t n_first;
    struct net_later flush;
    struct net_turn turn;   /* there is more to send, or a time has come */
    struct net_timer timer; /* the next of the times below */
    int64_t opened_ns;
    int64_t last_read_ns;
    int64_t idle_since_ns;
    int64_t ping_sent_ns; /* 0: no ping of ours is unanswered */
    int64_t pinged_ns;    /* the last ping of the peer; 0: none */
    int64_t leave_ns;     /* when it is asked to go because of its age */
    int64_t close_ns;     /* when it is closed at the latest */
    unsigned n_strikes;
    int64_t known_ns;         /* until when it has to authenticate; NET_NEVER: not */
    int64_t sweep_ns;         /* when its calls are looked at that do not get on */
    struct peg__quota *quota; /* that it is counted in: the server's */
    size_t counted;           /* what it holds, as far as it is counted */
    size_t page_bytes;        /* of the last answer of HTTP/1.1, or of shared ones of HTTP/2 */
    size_t max_read;          /* bytes that it reads in its turn */
    size_t piece;             /* of them, between two looks at the clock */
    struct grpc_call *calls;  /* that have not ended */
    bool is_ending;           /* the stream is no more ours, and the calls hear of it in turns */
    bool has_settings;        /* the peer's; HTTP/2 has begun */
    bool was_asked_to_go;
    bool was_told_finally;
    bool is_refused;  /* what it sent ends it */
    bool was_dropped; /* we end it, not the client */
    bool is_due;      /* one of them has come, and waits for its turn */
    bool pings_again; /* as soon as it is answered */
    uint16_t quota_key;
    bool is_authenticated;
    bool is_evicted; /* it holds most, and goes in its turn */
    struct grpc__conn *next;
    struct grpc__conn *prev;
};

struct grpc__value {
    const void *key;
    void *value;
    struct grpc__value *next;
};

/* One call. Its home keeps it for the next one when the last reference is gone; a reference may
 * outlive the home. */
struct grpc_call {
    struct grpc_stream stream;
    struct peg__arena arena;
    struct peg__arena message_arena; /* of one message of a client that streams */
    char *taken;                     /* the only message, if it is bytes that came in pieces */
    /* The rest begins with zeros for each call. */
    struct grpc__server_loop *home; /* NULL after the end of the server */
    struct grpc__conn *conn;        /* NULL after the end */
    const struct grpc_route *route;
    const struct grpc_method *method; /* of the route */
    struct net_loop *loop;
    struct net_timer deadline;
    int64_t deadline_ns;
    unsigned n_refs;
    size_t n_interceptors; /* that have heard of it */
    bool handler_knows;
    const char
        *http_refusal; /* a status of HTTP: it is no call, and ends with it if it is no page */
    bool is_page;
    bool awaits_window; /* its request is handed over, or the page made, when the client takes it */
    bool awaits_page;   /* options.on_http1 is asked again when it is woken */
    struct net_http1_waiter page_waiter;
    struct net_http1_body *page; /* NULL, or what is sent in pieces, */
    size_t page_sent;            /* and so much of it was */
    bool was_seen;               /* waiting for its client, when it was last looked at */
    uint32_t n_steps;            /* of its stream, then */
    bool was_handed;             /* its handler has the only message */
    bool is_finished;            /* its status is decided */
    bool has_ended;
    const void *message; /* of a client that does not stream */
    struct grpc_metadata headers;
    struct grpc_metadata trailers;
    struct grpc_status status;
    void *state;
    struct grpc__value *values;
    struct grpc_end_hook *hooks;
    bool is_held;           /* in the list of its home */
    struct grpc_call *next; /* of its connection, then held or spare */
    struct grpc_call *prev; /* not if spare */
};

/* server_home.c */
void grpc__server_loop_accept(void *server, struct net_stream *stream);
void grpc__server_loop_drain(struct net_message *message);
void grpc__server_loop_drop(struct net_message *message);
/* A home that is asked to end says when its last connection is gone. */
void grpc__server_loop_report_if_empty(struct grpc__server_loop *home);
struct grpc_call *grpc__server_loop_take_call(struct grpc__server_loop *home);
/* It has ended, and not all references are gone. */
void grpc__server_loop_hold_call(struct grpc__server_loop *home, struct grpc_call *call);
/* It has ended, and they are. */
void grpc__server_loop_keep_call(struct grpc_call *call);
void grpc__server_loop_free(struct grpc__server_loop *home);

/* server_conn.c */
peg_status grpc__conn_new(struct grpc__server_loop *home, struct net_stream *stream);
/* All of it goes now. */
void grpc__conn_drop(struct grpc__conn *conn);
/* The same, and calls hear of it in turns. */
void grpc__conn_lose(struct grpc__conn *conn);
/* The same, after what was written. */
void grpc__conn_close(struct grpc__conn *conn);

/* server_held.c */
peg_status grpc__held_init(struct grpc_server *server);
void grpc__held_destroy(struct grpc_server *server);
void grpc__conn_begin_count(struct grpc__conn *conn);
void grpc__conn_end_count(struct grpc__conn *conn);
/* Counts what it holds now. If all hold too much, those that hold most go in their turns. */
void grpc__conn_count(struct grpc__conn *conn);
void grpc__conn_authenticate(struct grpc__conn *conn, peg_str principal);
void grpc__server_loop_evict(struct net_message *message);

/* server_times.c */
/* Asks the client to go: calls that run go on. */
void grpc__conn_leave(struct grpc__conn *conn, int64_t grace_ms);
void grpc__conn_arm(struct grpc__conn *conn);
void grpc__conn_time_passed(struct net_timer *timer);
/* False: it is gone, or goes. */
bool grpc__conn_check_times(struct grpc__conn *conn);
void grpc__conn_ping(struct grpc__conn *conn);
/* The second GOAWAY: what the client sends from now on is not taken. */
void grpc__conn_report_end(struct grpc__conn *conn);
/* One of its calls has ended. */
void grpc__conn_lost_call(struct grpc__conn *conn);

/* call_start.c */
/* The client has taken nothing of its answer, or not finished its message, for stall_ms. */
void grpc__call_stalled(struct grpc_call *call);
extern const struct grpc_stream_events grpc__call_events;
struct grpc_stream *grpc__call_begin(struct grpc__conn *conn);

/* call.c */
void grpc__call_ended(struct grpc_call *call, uint32_t h2_error);
/* Its connection goes. */
void grpc__call_lost(struct grpc_call *call);

/* call_send.c: PEG_OK, or it could not be said. */
peg_status grpc__call_send_headers(struct grpc_call *call, peg_error *reterr);
peg_status grpc__call_send_end(struct grpc_call *call);
peg_status grpc__call_send_shared(struct grpc_call *call, peg_str head, struct peg__blob *blob,
                                  peg_str rest, peg_error *reterr);
/* Not gRPC: an HTTP status alone. */
peg_status grpc__call_refuse_http(struct grpc_call *call, const char *http_status);

/* call_page.c: not gRPC, but what options.on_http1 answers. */
bool grpc__call_is_page(const struct grpc_call *call);
/* Its answer, or the next piece of it. PEG_OK, or it could not be said. There is more to come while
 * `awaits_page` or `page` is set. */
peg_status grpc__call_answer_page(struct grpc_call *call);
/* It ends: nobody wakes it any more. */
void grpc__call_forget_page(struct grpc_call *call);
/* call_start.c: its answer may be there. */
void grpc__call_go_on_page(struct grpc_call *call);

#endif
