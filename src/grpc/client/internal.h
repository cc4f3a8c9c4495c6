/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_INTERNAL_H
#define PEG_GRPC_CLIENT_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"
#include "grpc/client/client.h"
#include "grpc/http2/http2.h"
#include "grpc/server/server.h"
#include "net/address.h"
#include "net/stream/stream.h"
#include "pegboard/common.h"

/* ---- target -------------------------------------------------------------------------------- */

/*
 * The target of a client (see net/address.h for the forms): one endpoint, or several with commas
 * between them. Each is an address or a name that is to be looked up, and has the name of the
 * server in :authority and in TLS.
 */

enum { GRPC_AUTHORITY_BYTES = NET_HOST_BYTES + 16 };

struct grpc_target_entry {
    bool is_name;                 /* looked up by net_resolve() */
    struct net_endpoint endpoint; /* never of every interface: that is localhost for a client */
    char host[NET_HOST_BYTES];    /* that a certificate must name; "localhost" for a unix socket */
    /* What stands in the target behind its scheme: "localhost" for a unix socket and for every
     * interface. */
    char authority[GRPC_AUTHORITY_BYTES];
};

/* Owned. */
struct grpc_target {
    struct grpc_target_entry *entries; /* in the order of the text */
    size_t n;
};

/* What has no port gets `default_port`, which does not go into :authority, as with stock clients;
 * in lists after ipv4: and ipv6: each has one. PEG_EPARSE (E_ADDRESS, says which of several),
 * PEG_ELIMIT, PEG_ENOMEM. */
peg_status grpc_target_parse(peg_str text, uint16_t default_port, struct grpc_target *ret_target,
                             peg_error *reterr);
void grpc_target_free(struct grpc_target *target);

/* ---- lookup -------------------------------------------------------------------------------- */

/* The addresses of a target: those that it names, and those that its names lead to. All names are
 * looked up at once, in rounds; one that fails keeps the addresses that it had. */

struct grpc__lookup {
    struct grpc__lookups *all;
    const struct grpc_target_entry *entry;
    struct net_address *addresses; /* owned */
    size_t n;
    struct net_resolve *resolve; /* pending */
};

/* Part of a channel. */
struct grpc__lookups {
    struct net_loop *loop;
    struct grpc__lookup *items; /* one for each entry of the target */
    size_t n;
    size_t n_pending;
    bool was_asked;    /* a round has begun, or there are no names */
    bool was_answered; /* a round has ended, or there are no names */
    peg_error error;   /* of the last name that was not found */
    int64_t asked_ns;
    int64_t again_ms; /* least time between two rounds */
    struct grpc_backoff backoff;
    struct net_timer timer;        /* the next round */
    void (*on_change)(void *user); /* a name was answered, or a round has ended */
    void *user;
};

/* All zero before. PEG_ENOMEM. */
peg_status grpc__lookups_init(struct grpc__lookups *lookups, struct net_loop *loop,
                              const struct grpc_target *target, peg_error *reterr);
void grpc__lookups_free(struct grpc__lookups *lookups);
/* A round now, unless one is under way. */
void grpc__lookups_start(struct grpc__lookups *lookups);
/* One later: not before again_ms are over, or after a back-off. */
void grpc__lookups_start_later(struct grpc__lookups *lookups);
void grpc__lookups_back_off(struct grpc__lookups *lookups);
/* What is known, in the order of the target, each once; at most `max`. */
size_t grpc__lookups_collect(const struct grpc__lookups *lookups, struct net_address *ret_addresses,
                             size_t max);
/* The entry that an address comes from, or the first one. */
const struct grpc_target_entry *grpc__lookups_entry(const struct grpc__lookups *lookups,
                                                    const struct net_address *address);
/* Is a name that stands before this address looked up for the first time? */
bool grpc__lookups_is_early(const struct grpc__lookups *lookups, const struct net_address *address);

/* ---- pick ---------------------------------------------------------------------------------- */

/* Which connection takes the next call: in rotation, without those that are full. */

/* Part of a connection; all zero is one that is not in. */
struct grpc_pick_entry {
    size_t n_streams;
    size_t max_streams;
    bool is_in; /* the rest is the pick's */
    size_t at;
};

/* Owned; all zero is empty. */
struct grpc_pick {
    struct grpc_pick_entry **entries;
    size_t n;
    size_t capacity;
    size_t next; /* in rotation */
};

/* Memory for so many in all, so that adding cannot fail. */
peg_status grpc_pick_reserve(struct grpc_pick *pick, size_t n) PEG_MUST_USE;
void grpc_pick_free(struct grpc_pick *pick);
void grpc_pick_add(struct grpc_pick *pick, struct grpc_pick_entry *entry);
/* One that is not in is left alone. */
void grpc_pick_remove(struct grpc_pick *pick, struct grpc_pick_entry *entry);
/* NULL: none is in, or all are full. */
struct grpc_pick_entry *grpc_pick_next(struct grpc_pick *pick);

/* ---- conn ---------------------------------------------------------------------------------- */

/*
 * One connection of a client: a socket, the session on it, and the streams of calls, which count
 * themselves by grpc_client_conn_took() and _gave(). Lives on one loop.
 *
 *   new -> connecting -> on_ready (the server's SETTINGS came) -> ... -> on_lost
 *                                    \-> on_retired (GOAWAY) -> its last stream ends -> on_lost
 *
 * Output is gathered: whatever a round of the loop produces goes out in one write.
 */

struct grpc_client_conn;

/* None of them comes from within a function of this header, but for grpc_client_conn_retire(). */
struct grpc_client_conn_events {
    /* Calls can be made; pick.max_streams says how many. Comes again when that changes. */
    void (*on_ready)(void *user, struct grpc_client_conn *conn);
    /* Bytes that came were delivered to all streams. */
    void (*on_fed)(void *user);
    /* It takes no more calls: because of GOAWAY, or it has no more numbers for them.
     * `is_too_eager`: because of too many pings. */
    void (*on_retired)(void *user, struct grpc_client_conn *conn, bool is_too_eager);
    /* Last. Its streams get on_closed after it returns, then it is gone. The error is that of
     * conn->lost; PEG_OK if it was retired and had nothing more to do. */
    void (*on_lost)(void *user, struct grpc_client_conn *conn);
};

struct grpc_client_conn_options {
    struct grpc_session_options session;
    struct net_stream_options stream;
    int64_t keepalive_ms; /* 0: never */
    int64_t keepalive_timeout_ms;
    const char *authority; /* of its calls; borrowed */
    const struct grpc_client_conn_events *events;
    void *user;
};

/* Owned by its channel. */
struct grpc_client_conn {
    struct grpc_pick_entry pick; /* first: an entry is its connection */
    struct net_loop *loop;
    void *slot; /* its owner's */
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
/* Right in any state but within its own events: sends GOAWAY if it can, and is gone without an
 * event. It must have no streams. */
struct grpc_client_conn *grpc_client_conn_free(struct grpc_client_conn *conn);

/* A stream was opened on it; a stream is off it. */
void grpc_client_conn_took(struct grpc_client_conn *conn);
void grpc_client_conn_gave(struct grpc_client_conn *conn);
/* No more calls on this one; on_lost comes (in a later round) when the last has ended. */
void grpc_client_conn_retire(struct grpc_client_conn *conn);

/* ---- channel internal ---------------------------------------------------------------------- */

/*
 *   rpc.c         what a program does with a call
 *   rpc_wire.c    its headers out, its answer in
 *   calls.c       the calls of a channel: memory, waiting, ends
 *   channel.c     options of a channel, making and freeing
 *   slots.c       addresses: a slot for each connection that there should be
 *   slot_list.c   these slots, as addresses come and go
 *   lookup.c      which addresses there are
 *   conn.c        one connection
 */

/* ---- a call ------------------------------------------------------------------------------- */

enum grpc__rpc_state {
    GRPC__RPC_NEW,      /* not started */
    GRPC__RPC_WAITING,  /* for a connection, in channel->waiting */
    GRPC__RPC_OPEN,     /* on `conn` */
    GRPC__RPC_ENDED,    /* its status is known; in channel->ended */
    GRPC__RPC_REPORTED, /* on_end was called; it may still be referenced */
};

/* Two links, for the lists that a call can be in at once. */
struct grpc__link {
    struct grpc_rpc *next;
    struct grpc_rpc *prev;
};

/* Before each message that is kept. */
struct grpc__kept {
    uint32_t len;
    bool skips_gzip;
};

/* Pooled: a call that has ended keeps its small buffers for the next one. */
struct grpc_rpc {
    struct grpc_channel *channel; /* NULL: the channel is gone, and so the call has ended */
    enum grpc__rpc_state state;
    unsigned n_refs;
    const struct grpc_method *method;
    struct grpc_rpc_events events;
    void *user;
    struct grpc_metadata metadata;
    size_t max_message;
    size_t n_started; /* interceptors that know it */
    int64_t deadline_ns;
    bool waits_for_ready;
    bool uses_gzip;
    bool skips_gzip;
    bool is_half_closed;
    bool is_paused;
    bool is_keeping; /* `kept` has all messages, from the beginning */
    bool was_sent;   /* it has reached the wire of a connection that it is no longer on */
    bool was_sent_again;
    bool was_answered; /* something came back */
    bool has_trailers; /* stream.head holds them */
    bool is_draining;  /* grpc__rpc_resume() delivers */
    unsigned n_messages;
    unsigned n_tries; /* connections that it was given to */
    const char *peer; /* arena; "" at first */
    struct grpc_status status;
    /* What may be pending. */
    struct grpc_client_conn *conn;
    struct net_timer timer; /* the deadline */
    struct grpc_end_hook hook;
    struct grpc__link all;   /* of a channel's calls, or of its spare ones */
    struct grpc__link queue; /* waiting or ended */
    /* From here on it is not cleared for the next call, but readied. */
    struct peg__arena arena;    /* metadata, headers, status */
    struct peg__arena messages; /* of the message that is being delivered */
    /* Messages as struct grpc__kept and bytes: what waits for a connection, and what would have
     * to be sent again. */
    struct peg__buf kept;
    struct grpc_stream stream;
};

struct grpc__list {
    struct grpc_rpc *first;
    struct grpc_rpc *last;
    size_t n;
};

/* ---- a channel ---------------------------------------------------------------------------- */

/* A connection that there should be. Owned by its channel. */
struct grpc__slot {
    struct grpc_channel *channel;
    struct net_address address;
    struct grpc_client_conn *conn; /* connecting or ready; NULL: waits for its timer, or idle */
    struct grpc_backoff backoff;
    int64_t not_before_ns; /* when it may be tried again */
    bool has_failed;       /* since it was last ready */
    bool is_listed;        /* while new addresses are compared with the old ones */
    struct net_timer timer;
};

struct grpc_channel {
    struct net_loop *loop;
    struct grpc_channel_options options; /* each 0 filled in; its strings are not ours */
    struct grpc_client_conn_options conn_options;
    struct grpc_client_interceptor *interceptors;
    size_t n_interceptors;
    struct grpc_target target;
    struct grpc__lookups lookups;
    char *user_agent;
    char *authority; /* NULL: each server's own */
    char *tls_host;  /* NULL: each server's own */
    char *label;     /* the target, in messages */

    struct grpc__slot **slots;
    size_t n_slots;
    size_t n_idle;  /* slots without a connection or timer */
    size_t first;   /* slot to begin with, if one is preferred */
    bool is_moving; /* to another slot, in the next round of the loop */
    struct grpc_pick pick;
    struct grpc_client_conn *retired; /* that still have calls */
    peg_error last_error;             /* why the last connection or lookup failed */
    bool is_failing;                  /* every slot has failed, or there are none */
    bool is_ending;
    bool is_asked; /* to connect, though there are no calls, once it has addresses */
    enum grpc_channel_state reported_state;
    void (*on_state)(void *user, enum grpc_channel_state state);
    void *on_state_user;

    struct grpc_rpc *calls;    /* all that are referenced, by `all` */
    size_t n_calls;            /* without on_end so far */
    struct grpc__list waiting; /* by `queue` */
    struct grpc__list ended;   /* by `queue` */
    struct grpc_rpc *spare;
    size_t n_spare;
    size_t spare_bytes;
    int64_t last_call_ns; /* when the last one ended */

    /* What may be pending. */
    struct net_timer idle_timer;
    struct net_timer step_timer; /* the next address is tried, too */
    struct net_later later;      /* ended calls, a changed state */
};

/* calls.c */
/* Ends a call that nothing has ended before: off the wire, out of the queue, on_end later. */
void grpc__rpc_fail(struct grpc_rpc *rpc, enum grpc_code code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* The same with the server's status; its stream is taken off the wire later. */
void grpc__rpc_settle(struct grpc_rpc *rpc, const struct grpc_status *status);
/* Off the wire, if it is on it. */
void grpc__rpc_leave_wire(struct grpc_rpc *rpc);
/* on_end of those that have ended by now. */
void grpc__channel_report_ended(struct grpc_channel *channel);
/* A new one, with one reference; NULL when out of memory. */
struct grpc_rpc *grpc__rpc_new(struct grpc_channel *channel);
/* Gives back one that was never started. */
void grpc__rpc_undo(struct grpc_rpc *rpc);
void grpc__channel_free_spare(struct grpc_channel *channel);
/* Sends it now or lets it wait; ends it if it may do neither. */
void grpc__channel_send(struct grpc_channel *channel, struct grpc_rpc *rpc);
/* The same for one that was under way: it is the next, and no limit stops it. */
void grpc__channel_send_again(struct grpc_channel *channel, struct grpc_rpc *rpc);
/* A connection is ready or has a stream again: opens calls that wait. */
void grpc__channel_open_waiting(struct grpc_channel *channel);
/* Every address has failed: calls without waits_for_ready end. */
void grpc__channel_fail_waiting(struct grpc_channel *channel);

/* rpc_wire.c */
/* Opens it on a connection that takes one more. It may have ended or wait again when it returns. */
void grpc__rpc_open(struct grpc_rpc *rpc, struct grpc_client_conn *conn);
/* Its connection takes no more calls: one that has not left goes elsewhere. */
void grpc__rpc_take_back(struct grpc_rpc *rpc);
/* Readies the stream of a call that is on no connection. */
void grpc__rpc_ready_stream(struct grpc_rpc *rpc);
/* Delivers again; also of a paused call whose stream has closed meanwhile. */
void grpc__rpc_resume(struct grpc_rpc *rpc);

/* slot_list.c */
static inline bool grpc__slot_is_idle(const struct grpc__slot *slot)
{
    return !slot->conn && !slot->timer.is_armed;
}
/* These addresses from now on, in this order. What stays keeps its connections, what goes ends with
 * its last call. False when out of memory: then all that was stays. */
bool grpc__slots_set(struct grpc_channel *channel, const struct net_address *addresses, size_t n);
/* No call may be on one. */
void grpc__slots_clear(struct grpc_channel *channel);

/* slots.c */
/* Connects, or looks the name up, unless that is under way. */
void grpc__slots_wake(struct grpc_channel *channel);
/* Closes all connections, forgets all slots. No call may be on one. */
void grpc__slots_free(struct grpc_channel *channel);
peg_status grpc__slots_init(struct grpc_channel *channel, peg_error *reterr);

#endif
