/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_PROVIDER_PROVIDER_H
#define PEG_REMOTE_PROVIDER_PROVIDER_H

/*
 * The files of the provider:
 *
 *   provider.c  new, start, stop, wait, free; signals; the end
 *   options.c   checks and copies its options
 *   registration.c  what a gateway gets: the tools, and the token
 *   attach.c    the stream: Hello with the tools, frames that come, breaks, another gateway
 *   table.c     calls without an Ack, and what is sent of them: deltas and results
 *
 * A provider is attached, by a stream to a gateway (attach.c, table.c), or direct, by streams on
 * Redis (remote/direct/): struct remote__prov_transport is what differs. Both have:
 *
 *   call.c      a call: made of a frame, counted, and as its handler sees it
 *   gate.c      questions of running calls, and their answers
 *   stream.c    sends frames
 *   work.c      the threads that run handlers, and their queue
 *   result.c    a record as a result of the wire
 *   event.c     reports events to the host
 *
 * The loop's thread owns the streams and the table of calls. A call goes to a worker through the
 * queue, under the lock, and comes back as a message. A handler's deltas are messages too.
 *
 *   queued -> with a worker -> done -> forgotten, with its Ack
 *      \-> Nak, forgotten
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/context/context.h"
#include "core/registry/registry.h"
#include "grpc/client/client.h"
#include "net/tls/tls.h"
#include "otlp/otlp.h"
#include "pegboard/provider.h"
#include "pegboard/v1/registry.grpc.h"
#include "wire/wire.h"

/* ---- one call -------------------------------------------------------------------------------- */

/* Owned in turn by the handler, the mailbox and the transport. */
struct remote__prov_delta {
    struct net_message message;
    struct remote__prov_delta *next;
    struct remote__prov_call *call;
    size_t n_bytes; /* all that it takes: many short ones are not little */
    char *text;
    char stream[PEG_LIMIT_REMOTE_STREAM_NAME_BYTES + 1];
};
void remote__prov_delta_free(struct remote__prov_delta *delta);

/* Its memory is the call's; the error's message may be static. */
struct remote__prov_outcome {
    char *json; /* owned, NULL of a failure */
    size_t json_len;
    bool is_content;  /* it is no JSON, but a packed ContentList */
    const char *code; /* "" is success */
    const char *message;
    bool is_outdated; /* not started: the gateway has another version of the toolset */
    Pegboard__V1__ServerData **server_data; /* in the arena */
    size_t n_server_data;
    int64_t duration_ms;
};

/* Leads a handler to the loop: a handler that was abandoned on a pool may outlive the provider.
 * Counted. */
struct remote__prov_link {
    atomic_uint n_refs;
    pthread_mutex_t lock;
    struct net_loop *loop;       /* NULL: gone */
    atomic_size_t n_delta_bytes; /* taken, and not sent yet */
};
struct remote__prov_link *remote__prov_link_new(struct net_loop *loop);
struct remote__prov_link *remote__prov_link_unref(struct remote__prov_link *link);
void remote__prov_link_cut(struct remote__prov_link *link);

/* Counted: the table's, the worker's, and the context's that a handler has. */
struct remote__prov_call {
    atomic_uint n_refs;
    peg_provider *prov; /* of the loop's and the workers' threads */
    struct remote__prov_link *link;
    struct peg__arena arena;
    peg_str key; /* call id and attempt */
    peg_str call_id;
    peg_str tool;
    peg_str payload;
    peg_str route;
    peg_provider_call face;
    struct otlp_span span; /* all zero: none */
    peg_ctx *ctx;          /* NULL once it is done: the context holds the call */
    peg_cancel *cancel;
    struct remote__prov_outcome outcome; /* the worker's until it is done */
    struct net_message done;
    atomic_size_t n_delta_bytes; /* as the link's, of this call */
    pthread_mutex_t gate_lock;
    peg_gate *gate; /* under the lock: the last one that its handler opened; NULL: none */
    /* the loop's */
    peg_gate *asked;      /* what is asked, and has no answer; NULL: nothing is */
    unsigned n_questions; /* ever */
    char *question;       /* the last of them; owned */
    size_t question_len;
    bool is_done;                    /* its outcome waits to be sent, or for its Ack */
    size_t n_kept_bytes;             /* of memory, since it was first sent; 0: it was not */
    unsigned n_reviews;              /* at which it was sent, and there was no Ack */
    unsigned n_deltas;               /* that wait at its stream: its result comes behind them */
    struct remote__prov_stream *via; /* where its result goes; NULL: to the next one */
    size_t n_sent;                   /* bytes of its result on that stream */
    bool is_sent;                    /* all of it */
    bool is_waiting;                 /* in the list of those to be sent */
    bool is_published;               /* of a direct one: its entry is to be acknowledged */
    struct remote__prov_call *next_to_send;
    /* of the queue, under the lock */
    bool is_queued;
    struct remote__prov_call *next;
    struct remote__prov_call *prev;
};

/* Copies a frame. PEG_ELIMIT: an id or the metadata is too long. PEG_ENOMEM. */
peg_status remote__prov_call_new(peg_provider *prov, const Pegboard__V1__Call *frame,
                                 struct remote__prov_call **ret_call);
struct remote__prov_call *remote__prov_call_ref(struct remote__prov_call *call);
struct remote__prov_call *remote__prov_call_unref(struct remote__prov_call *call);
/* The one of a handler's call, or NULL. */
struct remote__prov_call *remote__prov_call_of(const peg_call *call);
/* The loop: its handler has returned, and waits at no gate. */
void remote__prov_call_drop_gates(struct remote__prov_call *call);
/* Breaks the circle of call and context. */
void remote__prov_call_drop_ctx(struct remote__prov_call *call);

/* Content as JSON, for a gateway that knows no other form: result.c. */
void remote__prov_outcome_flatten(struct remote__prov_call *call);

/* ---- one stream ------------------------------------------------------------------------------ */

/* On the loop; freed when its RPC has ended. */
struct remote__prov_stream {
    peg_provider *prov;
    struct grpc_rpc *rpc;
    bool is_welcome;
    bool takes_input;          /* its gateway passes on questions */
    bool takes_content;        /* results may be typed content */
    bool is_leaving;           /* GatewayDrain came: nothing new is taken from it */
    bool is_last_call_seen;    /* Drained or GatewayDrain came: no call follows them */
    bool is_closed;            /* half-closed */
    bool is_broken;            /* a frame could not be sent: it is canceled */
    bool is_offering;          /* its Offer has no Offered yet */
    bool has_old_tools;        /* the tools changed after its Hello or Offer */
    struct net_timer patience; /* for Welcome, or for its end */
    struct remote__prov_call *first_to_send;
    struct remote__prov_call *last_to_send;
    struct remote__prov_delta *first_delta;
    struct remote__prov_delta *last_delta;
    bool is_deltas_turn;              /* the last thing that was sent is a piece of a result */
    struct remote__prov_stream *next; /* an older one that still finishes */
};

/* ---- the provider ---------------------------------------------------------------------------- */

/* The toolset's description beside its name and tools. Owned; arena: all strings. */
struct remote__prov_about {
    struct peg__arena arena;
    const char *description;
    const char *version;
    const char **tags;
    size_t n_tags;
};

/* NULL: none of it. PEG_EINVAL (E_PROVIDER), PEG_ENOMEM. */
peg_status remote__prov_about_new(const char *description, const char *version,
                                  const char *const *tags, struct remote__prov_about **ret_about,
                                  peg_error *reterr);
struct remote__prov_about *remote__prov_about_free(struct remote__prov_about *about);

/* Arena: all strings. */
struct remote__prov_config {
    struct peg__arena arena;
    const char *toolset;
    const char *address;
    const char *token;      /* NULL: none */
    const char *token_file; /* NULL: none */
    const char *tls_host;   /* NULL: the address's */
    struct net_tls_config *tls;
    unsigned concurrency;
    unsigned max_queued;
    bool runs_inline;
    bool handles_signals;
    int64_t drain_ms;
    int64_t backoff_ms;
    int64_t max_backoff_ms;
    peg_run_options run;
    peg_run_hooks hooks;
    peg_ctx *ctx; /* with the registry */
    void (*on_event)(const peg_provider_event *event, void *user);
    void *user;
};

peg_status remote__prov_config_copy(struct remote__prov_config *config, peg_registry *registry,
                                    const peg_provider_options *options, peg_error *reterr);
void remote__prov_config_free(struct remote__prov_config *config);

enum remote__prov_phase {
    REMOTE__PROV_SERVING,
    REMOTE__PROV_DRAINING, /* what it has is finished */
    REMOTE__PROV_STOPPING, /* what it has is canceled */
    REMOTE__PROV_ENDED,
};

/* Calls for the workers. */
struct remote__prov_queue {
    struct remote__prov_call *first;
    struct remote__prov_call *last;
    unsigned n;
    unsigned n_asleep; /* workers that wait for `changed` */
    bool is_waking;    /* one of them has been woken, and hasn't come to the queue yet */
    bool is_closed;
    pthread_cond_t changed;
};

struct remote__prov_pending_event;
struct remote__prov_events {
    pthread_mutex_t lock; /* of all below; not held while the host is called */
    pthread_cond_t is_free;
    bool is_reporting;                        /* one at a time */
    struct remote__prov_pending_event *first; /* the loop's, that came meanwhile */
    struct remote__prov_pending_event *last;
    unsigned n_pending;
};

/* How calls come and their results go. On the loop. */
struct remote__prov_transport {
    void (*begin)(peg_provider *prov);
    /* The tools changed. */
    void (*offer)(peg_provider *prov);
    /* Takes no new calls from now on. */
    void (*drain)(peg_provider *prov);
    /* It is draining or paused, and no call is left: ends it, or does what leads to that. */
    void (*close)(peg_provider *prov);
    /* is_paused has changed; NULL: it makes no difference. */
    void (*pause)(peg_provider *prov);
    /* The end: drops its connections, the channel too. */
    void (*drop)(peg_provider *prov);
    /* The outcome of a call is there. */
    void (*finish)(struct remote__prov_call *call);
    /* Takes a delta of a call that is not done. */
    void (*take_delta)(struct remote__prov_delta *delta);
};

struct peg_provider {
    const struct remote__prov_transport *transport;
    void *transport_state; /* owned; freed by free_state */
    void (*free_state)(void *state);
    struct remote__prov_config config;
    peg_registry *registry;
    char incarnation[40];
    uint32_t n_hellos;
    bool is_started;
    struct net_loop *loop;
    struct remote__prov_link *link;
    struct otlp_exporter *otlp; /* NULL: calls have no spans */
    pthread_t *workers;
    unsigned n_workers;
    atomic_uint n_stops;
    struct net_message stops[2];
    struct net_message begin;
    struct net_message end;
    struct net_message refresh;
    atomic_bool is_refreshing; /* the message is on its way */
    struct net_message pause;
    atomic_bool is_pausing; /* the message is on its way */
    atomic_bool wants_pause;
    struct peg__registry_observer observer;
    struct remote__prov_events events;

    /* the loop's */
    struct remote__prov_about *about;
    struct grpc_channel *channel;
    struct remote__prov_stream *streams; /* the newest first; NULL: none */
    struct grpc_backoff backoff;
    int64_t lease_ms; /* of the last Welcome; 0: not known */
    struct net_timer retry;
    struct net_timer drained; /* the end of draining, and of stopping */
    struct net_timer quiet;   /* no call is left, but one may still be on its way to us */
    struct peg__map calls;    /* key -> call: without an Ack */
    struct peg__map recent;   /* keys of those acknowledged last */
    unsigned n_done;          /* of the calls */
    unsigned n_kept;          /* of those: sent, and kept until their Acks */
    size_t n_kept_bytes;      /* that these take */
    struct net_timer review;  /* of those, while there are any */
    int64_t keep_ms;          /* how long at most; before it is started a test may change it */
    enum remote__prov_phase phase;
    bool was_welcome; /* ever */
    bool is_ending;   /* `end` is on its way */
    bool is_paused;
    char peer[NET_ADDRESS_TEXT];

    /* under the lock */
    pthread_mutex_t lock;
    struct remote__prov_about *next_about; /* NULL: the one that the loop has */
    pthread_cond_t ended;
    struct remote__prov_queue queue;
    bool has_ended;
    peg_status status; /* of the end */
    peg_error error;
    peg_provider_state state;
};

/* peg_provider_new() for a transport. On failure the state is the caller's. */
peg_status remote__prov_new(peg_registry *registry, const peg_provider_options *options,
                            const struct remote__prov_transport *transport,
                            peg_provider **ret_provider, peg_error *reterr);
/* peg_provider_serve() for one that was made; frees it. */
peg_status remote__prov_serve(peg_provider *prov, peg_error *reterr);
/* The loop: proceeds towards the end if it is time. */
void remote__prov_check_end(peg_provider *prov);
/* The loop: the end, and why. Only the first one counts. */
void remote__prov_end(peg_provider *prov, peg_status status, const peg_error *error);

/* The loop: what peg_provider_info() reports. */
void remote__prov_set_attached(peg_provider *prov, bool is_attached);

/* ---- registration.c: on the loop ---- */

/* The registry's visible tools, as those of an attached toolset; all of it lies in the arena. */
peg_status remote__prov_fill_registration(peg_provider *prov, struct peg__arena *arena,
                                          Pegboard__V1__RegisterRequest **ret_request,
                                          peg_error *reterr);
/* Adds the token to the metadata of an RPC; nothing if there is none. */
peg_status remote__prov_put_token(const peg_provider *prov, struct peg__arena *arena,
                                  struct grpc_metadata *metadata, peg_error *reterr);
/* Any thread. Checks the token file: the errors of remote__token_read(), as E_PROVIDER. */
peg_status remote__prov_check_token(const peg_provider *prov, peg_error *reterr);

/* How a gateway refused: an error of the wire and its message, cut at a character. */
enum { REMOTE__PROV_MESSAGE_BYTES = 256 };
enum wire_error remote__prov_refusal(const struct grpc_status *status,
                                     char ret_message[REMOTE__PROV_MESSAGE_BYTES]);
/* Would a retry get the same answer? */
bool remote__prov_is_permanent(enum wire_error error);
/* Ends it with E_PROVIDER_REFUSED. */
void remote__prov_end_refused(peg_provider *prov, enum wire_error error, const char *message);
void remote__prov_report_refused_offer(peg_provider *prov, const char *code, const char *message);

/* ---- stream.c: on the loop ---- */

/* The stream for new frames, or NULL. */
struct remote__prov_stream *remote__prov_current(const peg_provider *prov);
/* Sends a frame, the message that belongs to `kind`. A failure breaks the stream: the next one
 * repeats what it carried. */
void remote__prov_send(struct remote__prov_stream *stream,
                       Pegboard__V1__AttachRequest__FrameCase kind, void *frame);
/* The same, and a failure breaks nothing. */
peg_status remote__prov_try_send(struct remote__prov_stream *stream,
                                 Pegboard__V1__AttachRequest__FrameCase kind, void *frame,
                                 peg_error *reterr);
/* The call was not started, and will not be. */
void remote__prov_send_nak(struct remote__prov_stream *stream, const char *call_id,
                           uint32_t attempt, Pegboard__V1__Nak__Reason reason);
/* Its end leads to the next one. */
void remote__prov_break(struct remote__prov_stream *stream);

/* ---- attach.c: on the loop ---- */

extern const struct remote__prov_transport remote__prov_attached;
void remote__prov_attach(peg_provider *prov);

/* ---- table.c: on the loop ---- */

/* Starts a call that has come. False: the provider is full, and has forgotten it. */
bool remote__prov_start_call(struct remote__prov_call *call);
/* One that is done and that its transport has delivered; it is not started again. */
void remote__prov_forget_done(struct remote__prov_call *call);
/* Was the call of this key forgotten so, and lately? */
bool remote__prov_is_recent(const peg_provider *prov, peg_str key);
void remote__prov_count_refused(peg_provider *prov, const Pegboard__V1__Call *frame,
                                const char *code);
/* The attached transport's. */
void remote__prov_finish_attached(struct remote__prov_call *call);
void remote__prov_queue_delta(struct remote__prov_delta *delta);
void remote__prov_take(struct remote__prov_stream *stream, const Pegboard__V1__Call *frame);
void remote__prov_cancel(struct remote__prov_stream *stream, const Pegboard__V1__Cancel *frame);
void remote__prov_acknowledge(peg_provider *prov, const Pegboard__V1__Ack *frame);
/* NULL: there is none. */
struct remote__prov_call *remote__prov_find(peg_provider *prov, const char *call_id,
                                            uint32_t attempt);
/* A timer: drops results that were sent long ago. */
void remote__prov_review_kept(struct net_timer *timer);
/* For Hello, in the arena. */
peg_status remote__prov_list_running(peg_provider *prov, struct peg__arena *arena,
                                     Pegboard__V1__Hello *hello);
/* After Welcome: takes over the calls that have no stream. */
void remote__prov_adopt_calls(struct remote__prov_stream *stream);
/* At the end of a stream: its calls go to the next one. */
void remote__prov_orphan_calls(struct remote__prov_stream *stream);
/* Sends deltas and results for as long as the stream takes them. */
void remote__prov_pump(struct remote__prov_stream *stream);
void remote__prov_cancel_all(peg_provider *prov, const char *reason);
void remote__prov_drop_calls(peg_provider *prov);
/* Passes on the output of commands, but only of the call itself. */
extern const struct peg__listener remote__prov_listener;

/* ---- gate.c ---- */

/* As remote__prov_call_new(); its gates are asked of the caller, if it can be. */
peg_status remote__prov_make_call(peg_provider *prov, const Pegboard__V1__Call *frame,
                                  struct remote__prov_call **ret_call);
/* The loop: once more, if there is an open question; the call has another stream. */
void remote__prov_send_question(struct remote__prov_call *call);
/* The call may be NULL: it is gone. */
void remote__prov_take_answer(struct remote__prov_call *call, const Pegboard__V1__Answer *frame);

/* ---- work.c ---- */

peg_status remote__prov_start_workers(peg_provider *prov, peg_error *reterr);
/* Workers finish the calls that they run, and take no others. */
void remote__prov_close_queue(peg_provider *prov);
void remote__prov_join_workers(peg_provider *prov);
/* The loop: queues a call for a worker, which posts call->done; false: the queue is full. */
bool remote__prov_submit(struct remote__prov_call *call);
/* The loop: runs a call itself, of a provider without workers. */
void remote__prov_run_inline(struct remote__prov_call *call);
/* The loop: takes a call back that no worker has taken. */
bool remote__prov_take_back(struct remote__prov_call *call);

/* ---- result.c ---- */

/* The outcome of a record; cannot fail, because being out of memory is an outcome too. */
void remote__prov_outcome_of(struct remote__prov_call *call, const peg_record *record);
void remote__prov_outcome_error(struct remote__prov_call *call, const peg_error *error);

/* ---- event.c ---- */

void remote__prov_events_init(struct remote__prov_events *events);
void remote__prov_events_destroy(struct remote__prov_events *events);
/* Report to the host, one event at a time, with the toolset, and "" for NULL. The loop: does not
 * wait. */
void remote__prov_notify(peg_provider *prov, const peg_provider_event *event);
/* A worker, or a loop without workers: waits for its turn. */
void remote__prov_notify_in_order(peg_provider *prov, const peg_provider_event *event);

#endif
