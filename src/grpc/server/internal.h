/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_INTERNAL_H
#define PEG_GRPC_SERVER_INTERNAL_H

#include <protobuf-c/protobuf-c.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/quota.h"
#include "grpc/http2/http2.h"
#include "grpc/message.h"
#include "grpc/server/server.h"

/* ---- internal ------------------------------------------------------------------------------ */

/*
 * Shared by the files of the server, in the order in which a call meets them:
 *
 *   server.c       options, services, listeners, the end
 *   conn.c         one connection: first bytes, session, its end
 *   times.c        its timers: pings, and when it has to go
 *   quota.c        its memory, and eviction when all hold too much
 *   call_start.c   headers to handler
 *   http.c         what is no gRPC, to the handlers of HTTP
 *   bridge.c       calls that came as something else than gRPC
 *   call.c         what a handler does with a call, and its end
 *   call_send.c    the headers, messages and trailers that go out
 *   server_loop.c  ended calls, to be used again
 */

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
    struct grpc_call *held;              /* ended calls that are still referenced */
    const struct grpc_route *last_route; /* that was called; NULL: none yet */
    peg_str last_path;
    bool is_draining;
    bool is_empty_reported;
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
    struct grpc__server_loop *server_loops;
    unsigned n_server_loops;
    bool is_draining; /* the loops were notified */
    struct peg__hash_key secret;
    struct peg__quota held;            /* by all connections; those that did not authenticate ... */
    struct peg__quota unauthenticated; /* ... count here, if clients have to */
    pthread_mutex_t lock;              /* for what follows */
    pthread_cond_t changed;
    unsigned n_empty_loops;   /* that drain and have no connection */
    unsigned n_dropped_loops; /* whose thread does not touch them any more */
};

/* One connection. Owned by its loop. What may be pending: the flush, the timer, the job;
 * grpc__conn_drop() is right in any state but within an event of its session. */
struct grpc__conn {
    struct grpc__server_loop *server_loop;
    struct net_stream *stream;
    struct grpc_session *session; /* HTTP/2 */
    struct net_http_conn *http1;  /* or HTTP/1.1; neither: the first bytes have not come */
    uint8_t first[4];
    size_t n_first;
    struct net_later flush;
    struct net_fair_job job; /* there is more to send, or a time has come */
    struct net_timer timer;  /* the next of the times below */
    int64_t opened_ns;
    int64_t last_read_ns;
    int64_t idle_since_ns;
    int64_t ping_sent_ns; /* 0: no ping of ours is unanswered */
    int64_t pinged_ns;    /* the last ping of the peer; 0: none */
    int64_t leave_ns;     /* when it is asked to go because of its age */
    int64_t close_ns;     /* when it is closed at the latest */
    unsigned n_strikes;
    int64_t known_ns;         /* until when it has to authenticate; NET_NEVER: not */
    int64_t sweep_ns;         /* when its calls are checked for progress */
    struct peg__quota *quota; /* that it is counted in: the server's */
    size_t counted;           /* what it holds, as far as it is counted */
    size_t max_read;          /* bytes that it reads in a job */
    size_t piece;             /* of them, between two readings of the clock */
    struct grpc_call *calls;  /* that have not ended */
    bool is_ending;           /* the stream is gone, and the calls end in jobs */
    bool has_settings;        /* the peer's; HTTP/2 has begun */
    bool has_goaway;
    bool has_final_goaway;
    bool is_refused;  /* what it sent ends it */
    bool was_dropped; /* we end it, not the client */
    bool is_due;      /* its timer fired, and its job waits */
    bool pings_again; /* as soon as it is answered */
    uint16_t quota_key;
    bool is_authenticated;
    bool is_evicted; /* it holds most, and its job ends it */
    struct grpc__conn *next;
    struct grpc__conn *prev;
};

static inline const struct grpc_server_options *grpc__conn_options(const struct grpc__conn *conn)
{
    return &conn->server_loop->server->options;
}

static inline int64_t grpc__conn_now_ns(const struct grpc__conn *conn)
{
    return net_loop_now_ns(conn->server_loop->loop);
}

struct grpc__value {
    const void *key;
    void *value;
    struct grpc__value *next;
};

/* A request of HTTP that is no gRPC, in the arena of its call. */
struct grpc__http {
    struct net_http_request request; /* first */
    struct grpc_call *call;
    struct grpc_end_hook hook;
    struct net_later resume;
    size_t kept; /* of its body, as the stream counts it */
};

/* One call. Its loop keeps it for the next one when the last reference is gone; a reference may
 * outlive the loop. */
struct grpc_call {
    struct grpc_stream stream;
    struct peg__arena arena;
    struct peg__arena message_arena; /* of one message of a client that streams */
    char *taken;                     /* the only message, if it is bytes that came in pieces */
    /* The rest begins with zeros for each call. */
    struct grpc__server_loop *server_loop; /* NULL after the end of the server */
    struct grpc__conn *conn;               /* NULL after the end */
    const struct grpc_route *route;
    const struct grpc_method *method; /* of the route */
    struct net_loop *loop;
    struct net_timer deadline;
    int64_t deadline_ns;
    size_t n_interceptors;            /* that were started */
    const char *http_refusal;         /* a status of HTTP: it is no call, and ends with it */
    struct grpc__http *http;          /* arena; NULL: it is a call, or was refused */
    const struct grpc_bridge *bridge; /* NULL: it came on a stream of HTTP/2 */
    unsigned n_refs;
    uint32_t n_steps; /* of its stream, when it was last checked */
    bool handler_knows;
    bool is_page;       /* no gRPC, for the handlers of HTTP */
    bool awaits_window; /* its request is handed over when the client takes the answer */
    bool was_waiting;   /* waiting for its client, when it was last checked */
    bool has_request;   /* its handler has the only message */
    bool is_finished;   /* its status is decided */
    bool has_ended;
    bool is_held;        /* in the list of its loop */
    const void *message; /* of a client that does not stream */
    struct grpc_metadata headers;
    struct grpc_metadata trailers;
    struct grpc_status status;
    void *state;
    struct grpc__value *values;
    struct grpc_end_hook *hooks;
    struct grpc_call *next; /* of its connection, then held or spare */
    struct grpc_call *prev; /* not if spare */
};

/* server_loop.c */
struct grpc_call *grpc__server_loop_take_call(struct grpc__server_loop *server_loop);
/* It has ended, and is still referenced. */
void grpc__server_loop_hold_call(struct grpc__server_loop *server_loop, struct grpc_call *call);
/* It has ended, and the last reference is gone. */
void grpc__server_loop_pool_call(struct grpc_call *call);
/* Calls that are still referenced outlive the server. */
void grpc__server_loop_orphan_calls(struct grpc__server_loop *server_loop);
/* One that drains reports when its last connection is gone. */
void grpc__server_loop_report_if_empty(struct grpc__server_loop *server_loop);
void grpc__server_loop_free(struct grpc__server_loop *server_loop);

/* conn.c */
peg_status grpc__conn_new(struct grpc__server_loop *server_loop, struct net_stream *stream);
/* All of it goes now. */
void grpc__conn_drop(struct grpc__conn *conn);
/* The same, and its calls end in jobs of the fair queue. */
void grpc__conn_lose(struct grpc__conn *conn);
/* The same, after what was written. */
void grpc__conn_close(struct grpc__conn *conn);

/* quota.c */
peg_status grpc__quotas_init(struct grpc_server *server);
void grpc__quotas_destroy(struct grpc_server *server);
void grpc__conn_begin_count(struct grpc__conn *conn);
void grpc__conn_end_count(struct grpc__conn *conn);
/* Counts what it holds now. If all hold too much, those that hold most are evicted. */
void grpc__conn_count(struct grpc__conn *conn);
void grpc__conn_authenticate(struct grpc__conn *conn, peg_str principal);
void grpc__server_loop_evict(struct net_message *message);

/* times.c */
/* Asks the client to go: calls that run go on. */
void grpc__conn_leave(struct grpc__conn *conn, int64_t grace_ms);
void grpc__conn_arm(struct grpc__conn *conn);
void grpc__conn_on_timer(struct net_timer *timer);
/* False: it is gone, or goes. */
bool grpc__conn_check_times(struct grpc__conn *conn);
void grpc__conn_ping(struct grpc__conn *conn);
/* The second GOAWAY: what the client sends from now on is not taken. */
void grpc__conn_report_end(struct grpc__conn *conn);
/* One of its calls has ended. */
void grpc__conn_note_call_end(struct grpc__conn *conn);

/* call_start.c */
/* The client has taken nothing of its answer, or not finished its message, for stall_ms. */
void grpc__call_stalled(struct grpc_call *call);
extern const struct grpc_stream_events grpc__call_events;
void grpc__call_run_interceptors(struct grpc_call *call);
struct grpc_stream *grpc__call_begin(struct grpc__conn *conn);

/* http.c: requests that are no gRPC, on HTTP/2 */
/* Its headers are whole; the rest while call->http is set, whose hook the caller adds. */
void grpc__http_begin(struct grpc_call *call);
void grpc__http_body(struct grpc_call *call, peg_str bytes);
void grpc__http_body_end(struct grpc_call *call);
void grpc__http_body_broke(struct grpc_call *call, const struct grpc_status *status);
void grpc__http_writable(struct grpc_call *call);

/* call.c */
void grpc__call_ended(struct grpc_call *call, uint32_t h2_error);
/* Its connection goes. */
void grpc__call_lost(struct grpc_call *call);
/* For the transport of http.c. */
void grpc__call_ref_http(struct net_http_request *request);
void grpc__call_unref_http(struct net_http_request *request);

/* call_send.c: PEG_OK, or it could not be sent. */
peg_status grpc__call_send_headers(struct grpc_call *call, peg_error *reterr);
peg_status grpc__call_send_end(struct grpc_call *call);
peg_status grpc__call_send_shared(struct grpc_call *call, peg_str head, struct peg__blob *blob,
                                  peg_str rest, peg_error *reterr);
/* Not gRPC: an HTTP status alone. */
peg_status grpc__call_refuse_http(struct grpc_call *call, const char *http_status);

/* ---- symbols ------------------------------------------------------------------------------- */

/* What a set of .proto files declares, by name: files, services, methods, messages, fields, enums
 * and their values, extensions. Immutable once built: any thread may read it. */

struct grpc_symbols;

/* Borrowed from the symbols. */
struct grpc_symbol_file {
    const struct grpc_file *file;
    /* The bytes of the file, then of everything that it imports, directly or not. */
    ProtobufCBinaryData *with_imports;
    size_t n_with_imports;
};

/* The files, which outlive the symbols, and all that they import, each once. PEG_EEXISTS
 * (E_GRPC_SERVICE): two different files of one name. PEG_EPARSE (E_GRPC_SERVICE). PEG_ELIMIT
 * (names PEG_LIMIT_GRPC_FILES, PEG_LIMIT_GRPC_SYMBOLS or PEG_LIMIT_GRPC_NESTING), PEG_ENOMEM. */
peg_status grpc_symbols_new(const struct grpc_file *const *files, size_t n_files,
                            struct grpc_symbols **ret_symbols, peg_error *reterr);
struct grpc_symbols *grpc_symbols_free(struct grpc_symbols *symbols);

/* Each NULL if there is none. Names are full, without a leading dot: "grpc.health.v1.Health". */
const struct grpc_symbol_file *grpc_symbols_file(const struct grpc_symbols *symbols, peg_str name);
const struct grpc_symbol_file *grpc_symbols_find(const struct grpc_symbols *symbols, peg_str name);
const struct grpc_symbol_file *grpc_symbols_extension(const struct grpc_symbols *symbols,
                                                      peg_str type, int32_t number);
/* How many extensions a type has; writes the numbers of the first `max`. */
size_t grpc_symbols_extension_numbers(const struct grpc_symbols *symbols, peg_str type,
                                      int32_t *ret_numbers, size_t max);

#endif
