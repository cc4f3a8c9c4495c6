/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CALLS_CALLS_H
#define PEG_GATEWAY_CALLS_CALLS_H

/*
 * Where the calls of one loop are handled, both sides of them:
 *
 *   caller --gw_calls_start()--> admit -> send --letter--> claim -> provider
 *          <----on_end-------- settle or done <--letter-- complete <-- provider
 *
 * The desk of the caller's loop drives a call (struct gw_call, call.h); the desk of the loop that
 * has the provider's stream holds it (struct gw_assignment, holder.h). They may be the same desk,
 * and talk by bus letters all the same. No stage reads a table of its own as if it were the truth:
 * that is in the registers of the bus.
 *
 * The desk knows neither gRPC nor sockets: tests run it on a simulated bus.
 */

#include "base/buf.h"
#include "bus/bus.h"
#include "gateway/calls/outcome.h"
#include "gateway/calls/result_quota.h"
#include "gateway/calls/table.h"
#include "gateway/catalog/catalog.h"
#include "gateway/telemetry/metrics.h"

struct gw_call;
struct gw_emit;
struct gw_provider;

/* Each 0 means the default named beside it (base/limits.h). */
struct gw_calls_options {
    int64_t call_timeout_ms; /* PEG_LIMIT_GATEWAY_CALL_MS: of a call that names none */
    int64_t lease_ms;        /* PEG_LIMIT_GATEWAY_LEASE_MS: of providers, and of desks */
    int64_t grace_ms;        /* PEG_LIMIT_GATEWAY_GRACE_MS: for a canceled call to end by itself */
    int64_t reattach_ms;     /* PEG_LIMIT_GATEWAY_REATTACH_MS: for a lost caller to ask again */
    int64_t keep_ms;    /* PEG_LIMIT_GATEWAY_KEEP_MS: terminals of named calls, after their end */
    size_t max_calls;   /* PEG_LIMIT_GATEWAY_CALLS: driven here at once */
    size_t max_queue;   /* PEG_LIMIT_GATEWAY_QUEUE: calls that wait for one provider */
    size_t max_payload; /* PEG_LIMIT_GATEWAY_PAYLOAD_BYTES: arguments of a call */
    size_t max_queue_bytes; /* PEG_LIMIT_GATEWAY_QUEUE_BYTES: of their payloads */
    /* PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES: of large requests of calls driven here */
    size_t max_large_bytes;
    unsigned char secret[32]; /* of the registry: makes ids of named calls unguessable */
    /* Callers are asked who they are: each of them has its share of what there is. Else all that
     * there is may be taken by whoever comes. */
    bool has_principals;
};

/* What there is for all principals, each of which has its share. */
struct gw_quotas {
    struct peg__quota calls;
    struct peg__quota large_bytes; /* of their requests, if these are large */
    struct peg__quota providers;
    struct peg__quota held; /* calls that providers have, or say that they have */
    struct peg__quota watchers;
};

struct gw_calls {
    struct bus *bus;
    unsigned number;       /* of its loop */
    struct net_loop *loop; /* for workers; NULL in simulations: everything is done at once */
    struct gw_calls_options options;
    struct gw_presence *presence;
    struct gw_snapshot *snapshot;
    struct gw_metrics *metrics; /* NULL: nothing is counted */
    struct peg_checker *checker;
    bool is_draining; /* takes no new calls, and providers only to finish what they run */
    bool is_closed;   /* has drained: nobody would end the stream of a provider that came now */
    int64_t drain_ends_ns;
    /* what may be pending */
    struct gw_table calls; /* driven here, or joined: several may have one id */
    struct gw_call *first_call;
    struct gw_quotas quotas;      /* of these and the following: quota.c */
    struct gw_table astray;       /* calls that were here: see astray.c */
    struct gw_table held;         /* at providers of this loop, by id and attempt */
    struct gw_table incarnations; /* of the providers below */
    struct gw_provider *providers;
    size_t n_doubted; /* held calls that nobody knows of: see listed.c */
    struct gw_emit *emits;
    uint64_t n_emits;         /* so far */
    struct net_timer renewal; /* of leases */
    struct bus_wait lease_wait;
    uint64_t n_marks;                /* makes each value that this desk writes its own */
    uint64_t n_dropped;              /* calls that were here */
    uint64_t dice;                   /* for picking one of two */
    unsigned char random[512];       /* for ids; used from the front */
    size_t n_random;                 /* of these left */
    struct peg_json_doc *doc;        /* payloads are read into it */
    struct peg__buf text;            /* words that are being made */
    struct peg__buf frame;           /* a message that is being made */
    struct gw_result_quota *results; /* that are not whole, or not read yet */
    uint64_t n_told;                 /* letters that all calls of an id hear */
    uint64_t n_late;                 /* results that came after the terminal */
};

/* `bus` is this loop's, whose events go to gw_calls_on_message() and gw_calls_on_reset() with the
 * desk as user; `presence` and `metrics` are its owner's. */
peg_status gw_calls_new(struct bus *bus, struct net_loop *loop, unsigned number,
                        const struct gw_calls_options *options, struct gw_presence *presence,
                        struct gw_metrics *metrics, struct gw_calls **ret_desk, peg_error *reterr);
/* Callers that still wait hear nothing any more: whoever owns them ends them first. */
struct gw_calls *gw_calls_free(struct gw_calls *desk);
void gw_calls_on_message(void *user, const struct bus_message *letter);
void gw_calls_on_reset(void *user);
/* A new catalog; takes a reference. */
void gw_calls_on_snapshot(void *user, struct gw_snapshot *snapshot);
/* Calls driven, joined and held here, but for those that nobody knows of. */
size_t gw_calls_count(const struct gw_calls *desk);
/* Those of them that are on their way to a provider, and in no queue yet. */
size_t gw_calls_count_unsent(const struct gw_calls *desk);

/* ---- the caller's side -------------------------------------------------------------------- */

/* What is asked for. All borrowed until gw_calls_start() returns. */
struct gw_ask {
    peg_str toolset;
    peg_str tool;
    peg_str payload;   /* JSON; empty: {} */
    peg_str principal; /* who asks */
    /* The identity: run_id and tool_call_id, or key. Without: the call is nobody's second. */
    peg_str run_id;
    peg_str tool_call_id;
    peg_str key;
    /* It was asked for before, of registers that may have been others: it is joined, or started if
     * the tool may be started twice, or its outcome is unknown. */
    bool may_have_run;
    int64_t timeout_ms;  /* gw_check_timeout() takes it; 0: the tool's, or the desk's */
    int64_t deadline_ns; /* of bus_now_ns(); the caller gives up then. NET_NEVER: not by itself */
    /* Fields of pegboard.v1.Call that are handed on as they are: meta, metadata, trace context, in
     * their packed form. */
    peg_str packed;
};

/* What tells registers that know of a call from those that have lost it, to be named when it is
 * asked for again: "9f86d081884c7d65-1". */
enum { GW_EPOCH_TEXT = 40 };
void gw_calls_epoch(const struct gw_calls *desk, char ret_text[GW_EPOCH_TEXT]);

struct gw_caller;
struct gw_caller_events {
    /* The call has been admitted, or joined (`is_joined`): its id and its deadline are known. The
     * caller may detach now, but not be dropped. May be NULL. */
    void (*on_admitted)(struct gw_caller *caller, const struct bus_id *id, int64_t deadline_ms,
                        bool is_joined);
    /* A packed pegboard.v1.Output. May be NULL. */
    void (*on_output)(struct gw_caller *caller, peg_str output);
    /* Exactly once, last; the caller is off the desk. `outcome` GW_REFUSED: never admitted. */
    void (*on_end)(struct gw_caller *caller, const struct gw_outcome *terminal);
};

/* One who waits; lies in its owner's memory. */
struct gw_caller {
    const struct gw_caller_events *events;
    struct bus_id id;
    bool is_joined;
    /* Who awaits or stops a call: it was asked for of registers that are gone. */
    bool was_asked_elsewhere;
    /* the desk's */
    struct gw_call *call;
    struct gw_caller *next;
    struct gw_caller *prev;
};

/* Asks. on_end may come before it returns. */
void gw_calls_start(struct gw_calls *desk, const struct gw_ask *ask, struct gw_caller *caller);
/* Waits for a call of that principal's by its id, until deadline_ns: not_found if there is none
 * (any more), or outcome_unknown if it was asked for elsewhere. */
void gw_calls_await(struct gw_calls *desk, const struct bus_id *id, peg_str principal,
                    int64_t deadline_ns, struct gw_caller *caller);
/* The same to cancel it: on_end with GW_CANCELED and no error means that its driver was told. */
void gw_calls_cancel(struct gw_calls *desk, const struct bus_id *id, peg_str principal,
                     struct gw_caller *caller);
/* The caller is gone: no event comes any more. A call that nobody else waits for is canceled. */
void gw_caller_drop(struct gw_caller *caller);
/* The same of a caller whose connection broke: a call with an identity goes on for reattach_ms, and
 * is canceled if nobody has asked for it again by then. */
void gw_caller_lose(struct gw_caller *caller);
/* The same, and the call goes on. */
void gw_caller_detach(struct gw_caller *caller);

/* A result by whoever cannot send it on its stream. Lies in its owner's memory. */
struct gw_emit {
    /* WIRE_OK: it was taken, as if the provider had sent it. `words` are static. */
    void (*fn)(struct gw_emit *emit, enum wire_error error, const char *words);
    /* the desk's */
    struct gw_calls *desk;
    uint64_t number; /* its own: one call may be answered twice at once */
    struct bus_id id;
    uint32_t attempt;
    char incarnation[65];
    struct peg__blob *body;
    struct bus_wait wait;
    struct net_timer late;
    struct gw_emit *next;
    struct gw_emit *prev;
};

struct gw_emitted {
    const struct bus_id *id;
    uint32_t attempt; /* 0: whichever runs */
    peg_str principal;
    peg_str response; /* as gw_provider_result() */
    peg_str result;   /* in it */
    bool is_error;
};
void gw_calls_emit(struct gw_calls *desk, const struct gw_emitted *emitted, struct gw_emit *emit);
/* No answer comes any more; one that waits for none is left alone. */
void gw_emit_forget(struct gw_emit *emit);
/* A pong for a ping whose id begins with the incarnation; whatever it is, it is well. */
void gw_calls_pong(struct gw_calls *desk, peg_str ping_id);

/* ---- the provider's side ------------------------------------------------------------------ */

struct gw_handed {
    const struct bus_id *id;
    uint32_t attempt;
    peg_str call;
    int64_t timeout_ms;
    int64_t deadline_ms;
    struct bus_address route;
};

struct gw_provider_events {
    /* Hands over a call: `call` is a packed pegboard.v1.Call without attempt, timeout and route. */
    void (*hand)(void *user, const struct gw_handed *call);
    void (*cancel)(void *user, const struct bus_id *id, uint32_t attempt, enum bus_reason reason);
    /* Its result is settled: the provider may forget it. */
    void (*ack)(void *user, const struct bus_id *id, uint32_t attempt);
    /* It was handed this call, and does not have it any more, whatever became of it: what is kept
     * for it can go. May be NULL. Not called for the calls that it has when it leaves. */
    void (*dropped)(void *user, const struct bus_id *id, uint32_t attempt);
    /* May calls be handed over now? False: gw_provider_ready() will be called. */
    bool (*is_ready)(void *user);
    /* Another stream of the same incarnation took its place: the user ends this one, and the
     * provider is gone when it returns. */
    void (*replaced)(void *user);
    /* The toolset was unregistered (WIRE_NOT_FOUND), or is another principal's by now
     * (WIRE_PERMISSION_DENIED), or its token was taken out (WIRE_UNAUTHENTICATED), and what the
     * provider ran is finished or too late: the user ends the stream, and calls
     * gw_provider_leave(). */
    void (*dismissed)(void *user, enum wire_error why);
    /* Its toolset has other schemas: asks at once whether it is well, and takes no answer to an
     * earlier ping for one. */
    void (*ping)(void *user);
};

struct gw_running {
    struct bus_id id;
    uint32_t attempt;
    struct bus_address route;
    peg_str tool;
};

struct gw_attach {
    struct gw_toolset *toolset; /* takes a reference */
    peg_str incarnation; /* at most 64 characters; of one toolset and owner: see attach_hello.c */
    uint32_t credits;
    const struct gw_running *running;
    size_t n_running;
    /* How often this incarnation has said hello, this one included; 0: it does not tell. One that
     * has been nowhere else and does not list a call was never handed it. */
    uint32_t number;
};

/* PEG_ELIMIT, PEG_ENOMEM; PEG_ESTATE (E_DRAINING). */
peg_status gw_provider_attach(struct gw_calls *desk, const struct gw_attach *attach,
                              const struct gw_provider_events *events, void *user,
                              struct gw_provider **ret_provider, peg_error *reterr);
/* It offers other tools, which are being registered: until then it gets any call. */
void gw_provider_begin_offer(struct gw_provider *provider);
/* They are registered as that toolset; NULL: they were refused. */
void gw_provider_end_offer(struct gw_provider *provider, struct gw_toolset *toolset);
void gw_provider_ready(struct gw_provider *provider);
void gw_provider_pong(struct gw_provider *provider);
void gw_provider_drain(struct gw_provider *provider);
/* Has it nothing handed over or waiting? */
bool gw_provider_is_idle(const struct gw_provider *provider);
/* A whole result. `response` is a packed pegboard.v1.CallToolResponse without call_id, `result` the
 * JSON in it ("" with an error), borrowed. False: it was not handed this call. */
bool gw_provider_result(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                        peg_str response, peg_str result, bool is_error);
/* The same for one of `len` bytes that gw_outcome_of_result() made, which is taken (NULL: there
 * was no memory for it); a worker reads it. */
bool gw_provider_large_result(struct gw_provider *provider, const struct bus_id *id,
                              uint32_t attempt, struct peg__blob *terminal, size_t len);
/* What it says is no result: the call ends with this error, which is the tool's. */
bool gw_provider_bad_result(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                            const char *code, peg_str message);
/* There was no memory to read what it says: the call ends, and how is not known. */
bool gw_provider_unread_result(struct gw_provider *provider, const struct bus_id *id,
                               uint32_t attempt);
void gw_provider_output(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                        peg_str output);
/* It will not start this call. */
void gw_provider_nak(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                     enum bus_reason reason);
/* Was it handed this call, and has not answered? */
bool gw_provider_has(const struct gw_provider *provider, const struct bus_id *id, uint32_t attempt);
/* Its stream is over. If it was handed calls it has lease_ms to come back, and they are neither
 * lost nor told until then; if not, it is forgotten at once. Frees the provider. */
void gw_provider_leave(struct gw_provider *provider);

#endif
