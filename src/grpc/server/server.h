/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_SERVER_H
#define PEG_GRPC_SERVER_SERVER_H

#include <sys/types.h>

#include "base/blob.h"
#include "grpc/http2/http2.h"
#include "grpc/message.h"
#include "net/http/http.h"
#include "net/listener.h"
#include "net/loop/loop.h"
#include "pegboard/common.h"

/* ---- call ---------------------------------------------------------------------------------- */

/* A call for the server that answers it. Only the thread of its connection's loop may touch it. It
 * ends exactly once, whatever happens: on_end is its last event. A handler that works elsewhere
 * takes a reference; sending to a call that has ended is PEG_ECANCELED and changes nothing. */

struct grpc_call;
struct ProtobufCMessage;

/* What a service does with the calls of one method. `user` is what the service was added with. */
struct grpc_handler {
    /* Headers came. May be NULL. */
    void (*on_start)(struct grpc_call *call, void *user);
    /* A message as method->input describes it, or a const peg_str * if that is NULL. Unless the
     * client streams it comes once, after the client's end, and lives as long as the call; else
     * until on_message returns. */
    void (*on_message)(struct grpc_call *call, const void *message, void *user);
    /* The client of a client-streaming method sends nothing more. May be NULL for the others. */
    void (*on_half_close)(struct grpc_call *call, void *user);
    /* grpc_call_is_writable() has become true again. May be NULL. */
    void (*on_writable)(struct grpc_call *call, void *user);
    /* The call is over: how, tells grpc_call_ended_as(). May be NULL. */
    void (*on_end)(struct grpc_call *call, void *user);
};

/* Hangs on every call of a server, in the order given, before and around its handler. */
struct grpc_interceptor {
    /* Before its handler. Finishing the call here rejects it: later interceptors and the handler do
     * not see it, on_end is called for the earlier ones. May be NULL. */
    void (*on_start)(struct grpc_call *call, void *user);
    /* The call is over; in the reverse order. May be NULL. */
    void (*on_end)(struct grpc_call *call, const struct grpc_status *status, void *user);
    void *user;
};

/* ---- what the client said; all borrowed from the call --------------------------------------- */

const struct grpc_method *grpc_call_method(const struct grpc_call *call);
const struct grpc_metadata *grpc_call_metadata(const struct grpc_call *call);
/* Within on_message: did the message come compressed? */
bool grpc_call_was_compressed(const struct grpc_call *call);
/* The moment at which the client gives up, or NET_NEVER. */
int64_t grpc_call_deadline_ns(const struct grpc_call *call);
/* The peer: its address, whether it is this machine, its user (false: no unix socket), the name in
 * its certificate or "". */
const char *grpc_call_peer(const struct grpc_call *call);
bool grpc_call_peer_is_local(const struct grpc_call *call);
bool grpc_call_peer_uid(const struct grpc_call *call, uid_t *ret_uid);
peg_str grpc_call_peer_name(const struct grpc_call *call);
struct net_loop *grpc_call_loop(const struct grpc_call *call);

/* Memory that lives as long as the call. */
struct peg__arena *grpc_call_arena(struct grpc_call *call);

/* ---- answering ------------------------------------------------------------------------------ */

/* PEG_ESTATE once the headers are sent; else as grpc_metadata_add(). */
peg_status grpc_call_add_header(struct grpc_call *call, peg_str key, peg_str value,
                                peg_error *reterr);
peg_status grpc_call_add_trailer(struct grpc_call *call, peg_str key, peg_str value,
                                 peg_error *reterr);
/* Sends the headers now; without it they go with the first message or the end. */
peg_status grpc_call_send_headers(struct grpc_call *call, peg_error *reterr);
/* Messages are compressed, if the client takes gzip. Before the headers are sent. */
void grpc_call_use_gzip(struct grpc_call *call);
/* Messages of such a call go as they are from now on, or compressed again. */
void grpc_call_skip_gzip(struct grpc_call *call, bool skips);

/* Queues a message, as grpc_stream_send(). The second packs it in place. */
peg_status grpc_call_send(struct grpc_call *call, peg_str message, peg_error *reterr);
peg_status grpc_call_send_message(struct grpc_call *call, const struct ProtobufCMessage *message,
                                  peg_error *reterr);
bool grpc_call_is_writable(const struct grpc_call *call);

/* Ends the call: what is queued, then the status. Only the first one counts. Without memory the
 * call is reset. The message is cut at PEG_LIMIT_GRPC_STATUS_BYTES, and where it does not fit
 * beside the details (grpc_call_max_status_bytes()); large details that do not fit are left out. */
void grpc_call_finish(struct grpc_call *call, const struct grpc_status *status);
/* Encoded bytes that message and details of its status may take: PEG_LIMIT_GRPC_STATUS_WIRE_BYTES,
 * or less if the client takes smaller headers. */
size_t grpc_call_max_status_bytes(const struct grpc_call *call);
/* The same with words made here. */
void grpc_call_fail(struct grpc_call *call, enum grpc_code code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* One message, then OK. Fails the call (INTERNAL, RESOURCE_EXHAUSTED) if it cannot be sent. */
void grpc_call_reply(struct grpc_call *call, peg_str message);
void grpc_call_reply_message(struct grpc_call *call, const struct ProtobufCMessage *message);
/* Likewise with `head` and `rest`, which lies in the blob and is not copied as a whole. A failure
 * does not fail the call. */
peg_status grpc_call_reply_shared(struct grpc_call *call, peg_str head, struct peg__blob *blob,
                                  peg_str rest, peg_error *reterr);

/* Client-streaming methods: no on_message until it is resumed. */
void grpc_call_pause(struct grpc_call *call);
void grpc_call_resume(struct grpc_call *call);

/* Is nothing queued, and does the client take more now? If not, on_writable comes when that is
 * so. */
bool grpc_call_await_window(struct grpc_call *call);

/* The client has authenticated: its connection may stay, and its memory counts for `principal`. The
 * first one counts. For interceptors. */
void grpc_call_authenticate(struct grpc_call *call, peg_str principal);

/* ---- its life ---------------------------------------------------------------------------------
 */

/* Keeps the memory of the call, also after its end and its server's. On its loop only. */
struct grpc_call *grpc_call_ref(struct grpc_call *call);
struct grpc_call *grpc_call_unref(struct grpc_call *call);
bool grpc_call_has_ended(const struct grpc_call *call);
/* After the end: the status that was sent; else CANCELLED (the client canceled), DEADLINE_EXCEEDED
 * or UNAVAILABLE (the connection ended). Borrowed from the call. */
const struct grpc_status *grpc_call_ended_as(const struct grpc_call *call);

/* Whatever a handler keeps for the call. */
void grpc_call_set_state(struct grpc_call *call, void *state);
void *grpc_call_state(const struct grpc_call *call);

/* A value that an interceptor leaves for others; the key is the address of a variable of theirs.
 * The value must live as long as the call. */
peg_status grpc_call_put(struct grpc_call *call, const void *key, void *value);
void *grpc_call_get(const struct grpc_call *call, const void *key);

/* Runs at the end of a call, before on_end, or at once if it has ended: calls that this one makes
 * are canceled so. Lies in its owner's memory. */
struct grpc_end_hook {
    void (*fn)(struct grpc_end_hook *hook);
    struct grpc_end_hook *next; /* the call's */
    struct grpc_end_hook *prev;
    struct grpc_call *call; /* NULL: hangs nowhere */
};
void grpc_call_add_hook(struct grpc_call *call, struct grpc_end_hook *hook);
void grpc_call_remove_hook(struct grpc_end_hook *hook);

/* ---- server -------------------------------------------------------------------------------- */

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
 * HTTP/1.1 on the same port goes to options.http, if there is one, and so do requests of HTTP/2
 * that are not gRPC.
 */

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
    /* Clients have to authenticate (grpc_call_authenticate(), or a certificate) within
     * PEG_LIMIT_GRPC_UNAUTHENTICATED_MS, unless they watch something. */
    bool asks_who;
    int64_t unauthenticated_ms;

    const struct grpc_interceptor *interceptors; /* copied */
    size_t n_interceptors;

    /* Adds details to the status of a call that the server itself rejects, in the call's arena; may
     * change the code. On the loop of the call, whose method may be NULL. May be NULL. */
    void (*describe)(struct grpc_call *call, struct grpc_status *status);

    /* For requests that are no gRPC, of HTTP/1.1 and HTTP/2; it outlives the server. NULL: they are
     * refused. */
    struct net_http_server *http;
};

/* `loops` outlives the server. Any thread. */
peg_status grpc_server_new(struct net_loops *loops, const struct grpc_server_options *options,
                           struct grpc_server **ret_server, peg_error *reterr);
/* Any thread but the loops'. Every call that still runs is ended (UNAVAILABLE). */
struct grpc_server *grpc_server_free(struct grpc_server *server);

/* Before the first grpc_server_listen(). handlers[i], copied, is for service->methods[i]; without
 * on_message it answers UNIMPLEMENTED. PEG_EEXISTS (E_GRPC_SERVICE). */
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

/* Any thread, but one at a time; several times. ret_address may be NULL. */
peg_status grpc_server_listen(struct grpc_server *server, peg_str address,
                              const struct net_listener_options *options,
                              struct net_address *ret_address, peg_error *reterr);
/* PEG_EINVAL (E_LISTEN): what listening on a name fails with, which is not looked up. */
peg_status grpc_server_refuse_name(const struct net_endpoint *endpoint, peg_error *reterr);
peg_status grpc_server_listen_on(struct grpc_server *server, int fd,
                                 const struct net_listener_options *options, peg_error *reterr);

/* Any thread but the loops'. Accepts nothing more, sends GOAWAY, waits at most so long for calls to
 * end, then closes. True if all ended in good order. A second call only waits. */
bool grpc_server_drain(struct grpc_server *server, int64_t drain_ms);

/* Any thread; relaxed sums over all loops. */
struct grpc_server_counts {
    uint64_t n_connections; /* open now */
    uint64_t n_calls;       /* running now */
    uint64_t n_started;     /* calls since the start; other requests of HTTP are none */
    uint64_t n_ended;
    uint64_t n_refused_connections; /* ended because of what they sent */
    uint64_t n_evicted_connections; /* ended because they held most when all held too much */
    uint64_t n_held_bytes;          /* by all connections, now */
};
void grpc_server_counts(const struct grpc_server *server, struct grpc_server_counts *ret_counts);

/* ---- calls that came as something else ------------------------------------------------------ */

/*
 * A call of a method by another protocol, such as JSON over HTTP: the same interceptors, the same
 * handler. The bridge takes what the handler sends.
 *
 *   grpc_bridge_open(server, loop, "/pegboard.v1.Registry/Search", &bridge, &call, reterr);
 *   grpc_bridge_add_metadata(call, key, value);
 *   grpc_bridge_start(call, &request.base);   perhaps finished when it returns
 *   ...
 *   grpc_bridge_end(call, was_lost);          once
 *
 * Methods whose clients stream cannot be called so. All on the loop of the call.
 */

struct grpc_bridge_ops {
    /* A packed message, or one that is none yet; both borrowed. As grpc_call_send(). */
    peg_status (*send)(struct grpc_call *call, peg_str message, void *user);
    peg_status (*send_message)(struct grpc_call *call, const struct ProtobufCMessage *message,
                               void *user);
    bool (*is_writable)(void *user);
    /* The last one. The call goes on until grpc_bridge_end(), not from within. */
    void (*finish)(struct grpc_call *call, const struct grpc_status *status, void *user);
    void (*authenticate)(peg_str principal, void *user);
};

/* Lives as long as the call. */
struct grpc_bridge {
    const struct grpc_bridge_ops *ops;
    void *user;
    const char *peer; /* as grpc_call_peer() ... */
    peg_str peer_name;
    bool is_local;
};

/* PEG_ENOTFOUND (E_GRPC_SERVICE): there is no such method, or its client streams. PEG_ENOMEM. */
peg_status grpc_bridge_open(struct grpc_server *server, const struct net_loop *loop,
                            const char *path, const struct grpc_bridge *bridge,
                            struct grpc_call **ret_call, peg_error *reterr);
/* As grpc_metadata_add(); a text that is not printable ASCII is left out. */
peg_status grpc_bridge_add_metadata(struct grpc_call *call, peg_str key, peg_str value);
/* `message` is as method->input describes it, and lives as long as the call. */
void grpc_bridge_start(struct grpc_call *call, const struct ProtobufCMessage *message);
/* What is sent is taken again. */
void grpc_bridge_writable(struct grpc_call *call);
/* Ends the call; lost: as if its connection had broken. NULL for the caller. */
struct grpc_call *grpc_bridge_end(struct grpc_call *call, bool was_lost);
/* What the handler added. */
const struct grpc_metadata *grpc_bridge_headers(const struct grpc_call *call);
const struct grpc_metadata *grpc_bridge_trailers(const struct grpc_call *call);

/* ---- health -------------------------------------------------------------------------------- */

/* grpc.health.v1: the health of a server and its services. At the end call grpc_health_shut_down(),
 * then drain and free the server, then grpc_health_free(). All but new and free: any thread. */

struct grpc_server;
struct grpc_health;

/* The numbers of the protocol. */
enum grpc_health_status {
    GRPC_HEALTH_UNKNOWN = 0,
    GRPC_SERVING = 1,
    GRPC_NOT_SERVING = 2,
    GRPC_SERVICE_UNKNOWN = 3, /* the service was never set */
};

/* Adds the service to the server. As grpc_server_add(). */
peg_status grpc_health_new(struct grpc_server *server, struct grpc_health **ret_health,
                           peg_error *reterr);
/* After the server. */
struct grpc_health *grpc_health_free(struct grpc_health *health);

/* "" is the whole server. Watchers are notified of a change. PEG_EINVAL for GRPC_SERVICE_UNKNOWN;
 * PEG_ELIMIT (names PEG_LIMIT_GRPC_HEALTH_SERVICES), PEG_ENOMEM. */
peg_status grpc_health_set(struct grpc_health *health, peg_str service,
                           enum grpc_health_status status, peg_error *reterr);
/* Forgets the service; its watchers keep waiting for it. */
void grpc_health_forget(struct grpc_health *health, peg_str service);
/* As a client sees it; GRPC_SERVICE_UNKNOWN if it was never set. */
enum grpc_health_status grpc_health_get(const struct grpc_health *health, peg_str service);

/* From now on every service is GRPC_NOT_SERVING. Watchers are notified, and their calls end
 * (UNAVAILABLE), so that the server can drain. */
void grpc_health_shut_down(struct grpc_health *health);

/* ---- reflection ---------------------------------------------------------------------------- */

/* Server reflection, grpc.reflection.v1 and v1alpha: lists services and their messages for clients,
 * from the descriptors that tools/grpc-gen put into the program. */

struct grpc_file;
struct grpc_server;
struct grpc_reflection;

/* Adds both to the server, after its other services. As grpc_server_add() and grpc_symbols_new();
 * after a failure the server can only be freed. */
peg_status grpc_reflection_new(struct grpc_server *server, struct grpc_reflection **ret_reflection,
                               peg_error *reterr);
/* The same with files that no service names: those of details of errors. */
peg_status grpc_reflection_new_with(struct grpc_server *server,
                                    const struct grpc_file *const *files, size_t n_files,
                                    struct grpc_reflection **ret_reflection, peg_error *reterr);
/* After the server. */
struct grpc_reflection *grpc_reflection_free(struct grpc_reflection *reflection);

#endif
