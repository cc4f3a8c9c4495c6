/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_CHANNEL_INTERNAL_H
#define PEG_GRPC_CLIENT_CHANNEL_INTERNAL_H

/*
 * What the files of the client share. Calls go one way:
 *
 *   rpc.c         what a program says to a call
 *   rpc_wire.c    its headers out, its answer in
 *   rpc_end.c     its end, and its memory
 *   channel.c     the face of a channel: options, making and freeing
 *   calls.c       which call goes where, which ones wait
 *   slots.c       addresses: a slot for each connection that there should be
 *   client_conn.c one connection
 *
 * and come back by events: a connection that is ready opens the calls that wait.
 */

#include "base/buf.h"
#include "grpc/client/backoff.h"
#include "grpc/client/call.h"
#include "grpc/client/conn.h"
#include "grpc/client/target.h"
#include "grpc/server/rpc.h"

/* ---- a call ------------------------------------------------------------------------------- */

enum grpc__rpc_state {
    GRPC__RPC_NEW,     /* nobody but its maker knows it */
    GRPC__RPC_WAITING, /* for a connection, in channel->waiting */
    GRPC__RPC_OPEN,    /* on `conn` */
    GRPC__RPC_ENDED,   /* its status is known; in channel->ended */
    GRPC__RPC_TOLD,    /* on_end was called; somebody may hold a reference */
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
    bool is_keeping; /* `kept` has all that was said, from the beginning */
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
     * to be said again. */
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
    /* Strings that every call sends. */
    char *authority;
    char *user_agent;
    char *tls_host;

    struct grpc__slot **slots;
    size_t n_slots;
    size_t n_idle; /* slots that nobody has woken */
    struct grpc_pick pick;
    struct grpc_client_conn *retired; /* that still have calls */
    peg_error last_error;             /* why the last connection or lookup failed */
    bool is_failing;                  /* every slot has failed, or there are none */
    bool is_ending;
    bool is_asked; /* to connect, though there are no calls, once it has addresses */
    enum grpc_channel_state told_state;
    void (*on_state)(void *user, enum grpc_channel_state state);
    void *on_state_user;

    struct grpc_rpc *calls;    /* all that somebody may know, by `all` */
    size_t n_calls;            /* that have not been told their end */
    struct grpc__list waiting; /* by `queue` */
    struct grpc__list ended;   /* by `queue` */
    struct grpc_rpc *spare;
    size_t n_spare;
    size_t spare_bytes;
    int64_t last_call_ns; /* when the last one ended */

    int64_t resolved_ns; /* when it was last looked up */
    struct grpc_backoff resolve_backoff;
    /* What may be pending. */
    struct net_resolve *resolve;
    struct net_timer resolve_timer;
    struct net_timer idle_timer;
    struct net_later later; /* ended calls, a changed state */
};

/* rpc_end.c */
/* Ends a call that nothing has ended before: off the wire, out of the queue, on_end later. */
void grpc__rpc_fail(struct grpc_rpc *rpc, enum grpc_code code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* The same with what the server said; what is left of its stream is taken away later. */
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

/* rpc_wire.c */
/* Opens it on a connection that has room. It may have ended or wait again when it returns. */
void grpc__rpc_open(struct grpc_rpc *rpc, struct grpc_client_conn *conn);
/* Its connection takes no more calls: one that has not left goes elsewhere. */
void grpc__rpc_take_back(struct grpc_rpc *rpc);
/* Readies the stream of a call that is on no connection. */
void grpc__rpc_ready_stream(struct grpc_rpc *rpc);
/* Delivers again; also of a paused call whose stream has closed meanwhile. */
void grpc__rpc_resume(struct grpc_rpc *rpc);

/* calls.c */
/* Sends it now or lets it wait; ends it if it may do neither. */
void grpc__channel_send(struct grpc_channel *channel, struct grpc_rpc *rpc);
/* The same for one that was under way: it is the next, and no limit stops it. */
void grpc__channel_send_again(struct grpc_channel *channel, struct grpc_rpc *rpc);
void grpc__channel_forget_waiting(struct grpc_channel *channel, struct grpc_rpc *rpc);
/* A connection is ready or has room again: those that wait go. */
void grpc__channel_go_on(struct grpc_channel *channel);
/* Every address has failed: those that do not wait for better times end. */
void grpc__channel_give_up(struct grpc_channel *channel);
void grpc__list_append(struct grpc__list *list, struct grpc_rpc *rpc);
void grpc__list_remove(struct grpc__list *list, struct grpc_rpc *rpc);

/* slots.c */
/* Connects, or looks the name up, where nobody does so yet. */
void grpc__slots_wake(struct grpc_channel *channel);
/* These addresses from now on. What stays keeps its connections, what goes ends with its last
 * call. False when out of memory: then all that was stays. */
bool grpc__slots_set(struct grpc_channel *channel, const struct net_address *addresses, size_t n);
/* Now, whatever the back-off says. */
void grpc__slots_hurry(struct grpc_channel *channel);
/* Closes all connections, forgets all slots. No call may be on one. */
void grpc__slots_free(struct grpc_channel *channel);
peg_status grpc__slots_init(struct grpc_channel *channel, peg_error *reterr);
enum grpc_channel_state grpc__slots_state(const struct grpc_channel *channel);

#endif
