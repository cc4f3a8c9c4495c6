/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_CALLS_H
#define PEG_CALLS_CALLS_H

/*
 * Where the calls of one loop are handled, both sides of them:
 *
 *   caller --calls_start()--> admit -> send --message--> claim -> provider
 *          <----on_end-------- settle or done <--message-- complete <-- provider
 *
 * The caller's loop coordinates a call (struct calls_call, caller/call.h); the loop that has the
 * provider's stream has its assignment (struct calls_assignment, provider/provider_side.h). They
 * may be the same loop, and talk by bus messages all the same: neither calls the other. No stage
 * reads a table of its own as if it were the truth: that is in the registers of the bus. What each
 * side decides is in machine/, which calls neither.
 *
 * It knows neither gRPC nor sockets, and of the gateway what environment.h names: tests run it on a
 * simulated bus.
 */

#include "base/buf.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "calls/environment.h"
#include "calls/outcome.h"
#include "calls/recent.h"
#include "calls/result_quota.h"
#include "calls/table.h"
#include "calls/value.h"

struct calls_call;
struct calls_homes;
struct calls_relay;
struct calls_emission;
struct calls_provider;

/* Each 0 means the default named beside it (base/limits.h). */
struct calls_options {
    int64_t call_timeout_ms; /* PEG_LIMIT_GATEWAY_CALL_MS: of a call that names none */
    int64_t lease_ms;        /* PEG_LIMIT_GATEWAY_LEASE_MS: of providers, and of loops */
    int64_t grace_ms;        /* PEG_LIMIT_GATEWAY_GRACE_MS: for a canceled call to end by itself */
    int64_t settle_ms;   /* PEG_LIMIT_GATEWAY_SETTLE_MS: after a deadline, for the bus to answer */
    int64_t reattach_ms; /* PEG_LIMIT_GATEWAY_REATTACH_MS: for a lost caller to ask again */
    int64_t keep_ms;     /* PEG_LIMIT_GATEWAY_KEEP_MS: outcomes of named calls, after their end */
    size_t max_calls;    /* PEG_LIMIT_GATEWAY_CALLS: coordinated here at once */
    size_t max_queue;    /* PEG_LIMIT_GATEWAY_QUEUE: calls that wait for one provider */
    size_t max_payload;  /* PEG_LIMIT_GATEWAY_PAYLOAD_BYTES: arguments of a call */
    size_t max_queue_bytes; /* PEG_LIMIT_GATEWAY_QUEUE_BYTES: of their payloads */
    /* PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES: of large requests of calls coordinated here */
    size_t max_large_bytes;
    struct calls_homes *homes; /* of this node; it outlives its loops. NULL: there is one loop */
    unsigned char secret[32];  /* of the registry: makes ids of named calls unguessable */
    /* Callers are asked who they are: each of them has its share of what there is. Else all that
     * there is may be taken by any of them. */
    bool has_principals;
};

/* What there is for all principals, each of which has its share. */
struct calls_quotas {
    struct peg__quota calls;
    struct peg__quota large_bytes; /* of their requests, if these are large */
    struct peg__quota providers;
    struct peg__quota assignments; /* calls that providers have, or say that they have */
    struct peg__quota watchers;
};

struct calls_loop {
    struct bus *bus;
    struct net_loop *loop; /* for workers; NULL in simulations: everything is done at once */
    struct calls_options options;
    const struct calls_environment *env;
    void *user; /* the environment's */
    struct peg_checker *checker;
    bool is_draining; /* takes no new calls, and providers only to finish what they run */
    bool is_closed;   /* has drained: the stream of a provider that came now would not end */
    int64_t drain_ends_ns;
    /* what may be pending */
    struct calls_table by_id; /* coordinated or followed here: several may have one id */
    struct calls_call *first_call;
    struct peg__spares spare_calls; /* memory */
    struct peg__spares spare_assignments;
    struct calls_relay *first_relay; /* to calls of other loops */
    struct calls_quotas quotas;      /* of these and the following: quota.c */
    struct calls_table outstanding;  /* calls that were here: see outstanding.c */
    struct calls_table assignments;  /* at providers of this loop, by id and attempt */
    struct calls_table incarnations; /* of the providers below */
    struct calls_provider *providers;
    size_t n_unknown; /* assignments that no coordinator knows of: see reattach.c */
    struct calls_emission *emits;
    struct calls_replying *replies;
    uint64_t n_emits;                   /* so far */
    struct net_timer renewal;           /* of leases */
    uint64_t n_tokens;                  /* makes each value that this loop writes its own */
    uint64_t n_dropped;                 /* calls that were here */
    unsigned char random[512];          /* for ids; used from the front */
    size_t n_random;                    /* of these left */
    struct peg_json_doc *doc;           /* payloads are read into it */
    struct peg__buf text;               /* words that are being made */
    struct peg__buf frame;              /* a message that is being made */
    struct calls_result_quota *results; /* that are not whole, or not read yet */
    uint64_t n_late;                    /* results that came after the outcome */
    struct calls_recent *recent;        /* calls that were admitted here and have ended */
};

static inline void calls_arm(const struct calls_loop *calls, struct net_timer *timer, int64_t ms)
{
    bus_arm(calls->bus, timer, bus_now_ns(calls->bus) + ms * INT64_C(1000000));
}

/* `bus` is this loop's, whose events go to calls_on_message() and calls_on_reset() with the
 * struct calls_loop as user. The environment outlives it. */
peg_status calls_loop_new(struct bus *bus, struct net_loop *loop,
                          const struct calls_options *options,
                          const struct calls_environment *environment, void *user,
                          struct calls_loop **ret_calls, peg_error *reterr);
/* Callers that still wait get no event any more: their owners end them first. */
struct calls_loop *calls_loop_free(struct calls_loop *calls);
void calls_on_message(void *user, const struct bus_message *message);
void calls_on_reset(void *user);
/* Before the reset of a registry that lost its secret, and has another node's now. Calls that run
 * keep their ids; new ones have those that all nodes derive. False: it is the same one. */
bool calls_set_secret(struct calls_loop *calls, const unsigned char secret[32]);
void calls_on_node_lost(void *user, struct bus_address address);
/* The environment has other toolsets than before: providers whose toolset is gone, or is another
 * principal's now, are evicted. */
void calls_on_catalog(struct calls_loop *calls);
/* The environment knows fewer principals: their providers are evicted. */
void calls_evict_unknown(struct calls_loop *calls);
/* A provider of this loop has moved to another; may be called in the middle of anything. `user` is
 * the struct calls_loop. */
void calls_on_moved(void *user, const char *incarnation);
/* Calls coordinated, followed and assigned here, but for those that no coordinator knows of. */
size_t calls_count(const struct calls_loop *calls);
/* From now on: no new calls, and those that ended elsewhere are found soon. It has `ms`. */
void calls_begin_drain(struct calls_loop *calls, int64_t ms);
/* Those of them that are on their way to a provider, and in no queue yet. */
size_t calls_count_unsent(const struct calls_loop *calls);

/* ---- the caller's side -------------------------------------------------------------------- */

/* What is asked for. All borrowed until calls_start() returns. */
struct calls_request {
    peg_str toolset;
    peg_str tool;
    peg_str payload;   /* JSON; empty: {} */
    peg_str principal; /* who asks */
    /* The identity: run_id and tool_call_id, or key. Without one each request is a call of its own.
     */
    peg_str run_id;
    peg_str tool_call_id;
    peg_str key;
    /* It was asked for before, of registers that may have been others: it is followed, or started
     * if the tool may be started twice, or its outcome is unknown. */
    bool may_have_run;
    /* Somebody who waits for it answers what the tool asks. Only with an identity. */
    bool can_be_asked;
    bool is_mcp;         /* an MCP client asks: so its span is named */
    int64_t timeout_ms;  /* gw_check_timeout() takes it; 0: the tool's, or the loop's */
    int64_t deadline_ns; /* of bus_now_ns(); the caller gives up then. NET_NEVER: not by itself */
    /* Fields of pegboard.v1.Call that are handed on as they are: meta, metadata, trace context, in
     * their packed form. */
    peg_str packed;
};

/* What tells registers that know of a call from those that have lost it, to be named when it is
 * asked for again: "9f86d081884c7d65-1". */
enum { CALLS_EPOCH_TEXT = 40 };
void calls_epoch(const struct calls_loop *calls, char ret_text[CALLS_EPOCH_TEXT]);

/* The message of calls that are refused because the node drains. */
#define CALLS_SHUTTING_DOWN "this node is shutting down: call another one, or try again"

struct calls_caller;
struct calls_caller_events {
    /* The call has been admitted, or is followed (`is_follower`): its id and its deadline are
     * known. The caller may detach now, but not be dropped. May be NULL. */
    void (*on_admitted)(struct calls_caller *caller, const struct bus_id *id, int64_t deadline_ms,
                        bool is_follower);
    /* A packed pegboard.v1.Output. May be NULL. */
    void (*on_output)(struct calls_caller *caller, peg_str output);
    /* Exactly once, last; the caller is off the loop. `outcome` CALLS_KIND_REFUSED: never admitted.
     */
    void (*on_end)(struct calls_caller *caller, const struct calls_outcome *outcome);
    /* Asked by the tool, with no answer yet: `requests` is that of pegboard.v1.Question. For
     * callers that can be asked; the caller may detach, but not be dropped. False: it could not be
     * passed on, and comes again. NULL: it cannot be asked. */
    bool (*on_question)(struct calls_caller *caller, uint32_t number, peg_str requests);
};

/* One who waits; lies in its owner's memory. */
struct calls_caller {
    const struct calls_caller_events *events;
    struct bus_id id;
    bool is_follower;
    /* It awaits or stops a call that was asked for under registers that are gone. */
    bool was_asked_elsewhere;
    /* Its call goes by streams (gateway/direct/), and none of this loop's functions gets it. */
    void *direct;
    void *span;        /* the gateway's (gateway/routing/call_span.h); NULL: none */
    bool can_be_asked; /* on_question() is to be called */
    /* the rest is the loop's */
    uint32_t last_question; /* that it got */
    bool is_attached;       /* not the first caller of its call */
    bool is_reported;       /* on_admitted() was called */
    struct calls_call *call;
    struct calls_relay *relay; /* to the call, which is on another loop */
    struct calls_caller *next;
    struct calls_caller *prev;
    struct net_timer deadline; /* its own; armed if the call's is not its */
};

/* Asks. on_end may come before it returns. */
void calls_start(struct calls_loop *calls, const struct calls_request *request,
                 struct calls_caller *caller);
/* Waits for a call of that principal's by its id, until deadline_ns: not_found if there is none
 * (any more), or outcome_unknown if it was asked for elsewhere. */
void calls_await(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                 int64_t deadline_ns, struct calls_caller *caller);
/* The same to cancel it: on_end with CALLS_KIND_CANCELED and no error means that its coordinator
 * was notified. */
void calls_cancel(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                  struct calls_caller *caller);
enum calls_leaving {
    CALLS_LEAVES, /* a call without other callers is canceled */
    /* Its connection broke: a call with an identity goes on for reattach_ms, and is canceled if
     * no caller has asked for it again by then. */
    CALLS_LOSES_CONNECTION,
    CALLS_DETACHES, /* the call goes on */
    /* As CALLS_LEAVES, also for a call that a caller has detached from: this one had come back for
     * it. */
    CALLS_ABANDONS,
};
/* The caller is gone: no event comes any more. */
void calls_caller_leave(struct calls_caller *caller, enum calls_leaving leaving);

/* The id of a request: with an identity the same for each that has it. False: no memory. */
bool calls_request_id(struct calls_loop *calls, const struct calls_request *request,
                      struct bus_id *ret_id);

/* ---- what became of a call ---- */

/* Which side has, or had, the right to start an attempt. */
struct calls_claim {
    char owner[CALLS_INCARNATION]; /* the provider, unless a coordinator took it: value.h */
    struct bus_address address;    /* the loop that wrote it */
    bool is_attached;              /* that provider is alive */
};

enum { CALLS_MAX_CLAIMS = PEG_LIMIT_GATEWAY_ATTEMPTS + 1 };

struct calls_inquiry;

/* Lies in its owner's memory. */
struct calls_description {
    /* Once, last. CALLS_NOT_FOUND: nothing is known of such a call, or it is another principal's;
     * CALLS_SERVICE_UNAVAILABLE: the registers cannot be read; CALLS_OVERLOADED: no memory. */
    void (*fn)(struct calls_description *description, enum calls_error error);
    bool wants_question; /* what it asks is to be read, too */
    /* What fn finds. */
    struct bus_id id;
    bool has_identity;   /* the following is known. Strings are borrowed from the description */
    bool is_other_epoch; /* registers were lost since: some of this call may be missing */
    bool is_coordinator_alive;
    struct calls_identity identity;
    struct calls_subject subject;
    struct calls_claim claims[CALLS_MAX_CLAIMS]; /* of attempts 1, 2, ... */
    unsigned n_claims;
    size_t n_waiters; /* loops of other nodes that wait for its outcome */
    bool has_ended;
    struct calls_outcome outcome;
    uint32_t question; /* that is open; 0: none */
    peg_str requests;  /* of that one: see pegboard.v1.Question */
    /* the loop's */
    struct calls_loop *calls;
    struct calls_inquiry *inquiry; /* to the loop that has the call */
    struct peg__blob *principal;   /* whose call it must be; NULL: anyone's */
    struct peg__blob *kept[3];     /* identity, outcome, the last question */
    uint32_t n_questions;
    struct bus_wait wait;
    /* Gets the answer, unless that is a failure. */
    void (*step)(struct calls_description *description, const struct bus_answer *answer);
};

/* Reads the registers of a call. One without an identity is known to the node that coordinates it,
 * as long as it runs. `principal` NULL: of any principal. fn may come before it returns. */
void calls_describe(struct calls_loop *calls, const struct bus_id *id, const peg_str *principal,
                    struct calls_description *description);
/* Frees what it holds; fn is not called any more. Does nothing for one that is all 0. */
void calls_description_clear(struct calls_description *description);

/* ---- which calls there are ---- */

/* A call of the list. */
typedef void calls_list_fn(void *user, const struct calls_summary *summary);
/* The calls of a principal that were admitted on this loop: the newest of those that are not over,
 * and those that ended lately. False: so many are not over that some were not looked at
 * (PEG_LIMIT_GATEWAY_LISTED_CALLS). */
bool calls_list(struct calls_loop *calls, peg_str principal, calls_list_fn *fn, void *user);

/* An answer to what a call asks. Lies in its owner's memory. */
struct calls_reply_request {
    const struct bus_id *id;
    uint32_t number; /* of the question */
    peg_str principal;
    peg_str responses; /* JSON, which is an object; "": there is a refusal */
    peg_str refusal;
};
struct calls_replying {
    /* CALLS_OK: it is the answer. CALLS_CONFLICT: there was one before. `words` are static, or the
     * loop's. */
    void (*fn)(struct calls_replying *replying, enum calls_error error, peg_str words);
    /* the loop's */
    struct calls_loop *calls;
    struct bus_id id;
    uint32_t number;
    uint32_t attempt;
    char incarnation[CALLS_INCARNATION]; /* of the provider that asks */
    struct peg__blob *principal;
    struct peg__blob *value;
    struct bus_wait wait;
    struct net_timer late;
    struct net_timer again;
    struct calls_replying *next;
    struct calls_replying *prev;
};
/* Any loop of any node, for the principal of the call. */
void calls_reply(struct calls_loop *calls, const struct calls_reply_request *request,
                 struct calls_replying *replying);
/* `fn` does not come any more; one that waits for nothing is left alone. */
void calls_replying_forget(struct calls_replying *replying);

/* A result from a provider that cannot send it on its stream. Lies in its owner's memory. */
struct calls_emission {
    /* CALLS_OK: it was taken, as if the provider had sent it. `words` are static. */
    void (*fn)(struct calls_emission *emit, enum calls_error error, const char *words);
    /* the loop's */
    struct calls_loop *calls;
    struct bus_message message; /* BUS_EMIT, with a number of its own as its epoch */
    struct bus_wait wait;
    struct net_timer late;
    struct calls_emission *next;
    struct calls_emission *prev;
};

struct calls_emitted {
    const struct bus_id *id;
    uint32_t attempt; /* 0: whichever runs */
    peg_str principal;
    peg_str response; /* as calls_provider_result() */
    peg_str result;   /* in it */
    bool is_error;
};
void calls_emit(struct calls_loop *calls, const struct calls_emitted *emitted,
                struct calls_emission *emit);
/* No answer comes any more; one that waits for none is left alone. */
void calls_emission_forget(struct calls_emission *emit);
/* The provider that is attached to that loop answers a ping by another way than its stream. */
void calls_pong(struct calls_loop *calls, const char *incarnation, struct bus_address at);

/* ---- the provider's side ------------------------------------------------------------------ */

struct calls_handed {
    const struct bus_id *id;
    uint32_t attempt;
    peg_str call;
    int64_t timeout_ms;
    int64_t deadline_ms;
    struct bus_address route;
};

struct calls_answered {
    const struct bus_id *id;
    uint32_t attempt;
    uint32_t number;   /* of the provider's Input */
    peg_str responses; /* "": there will be none */
    peg_str refusal;   /* and why */
};

struct calls_provider_events {
    /* Hands over a call: `call` is a packed pegboard.v1.Call without attempt, timeout and route. */
    void (*hand)(void *user, const struct calls_handed *call);
    void (*cancel)(void *user, const struct bus_id *id, uint32_t attempt, enum bus_reason reason);
    /* The answer to an Input. False: it cannot be sent now, and comes again. */
    bool (*answer)(void *user, const struct calls_answered *answered);
    /* Its result is settled: the provider may forget it. */
    void (*ack)(void *user, const struct bus_id *id, uint32_t attempt);
    /* It was handed this call, and does not have it any more, whatever became of it: what is kept
     * for it can go. May be NULL. Not called for the calls that it has when it leaves. */
    void (*dropped)(void *user, const struct bus_id *id, uint32_t attempt);
    /* May calls be handed over now? False: calls_provider_ready() will be called. */
    bool (*is_ready)(void *user);
    /* Another stream of the same incarnation took its place: the user ends this one, and the
     * provider is gone when it returns. */
    void (*replaced)(void *user);
    /* The toolset was unregistered (CALLS_NOT_FOUND), or is another principal's by now
     * (CALLS_PERMISSION_DENIED), or its token was taken out (CALLS_UNAUTHENTICATED), and what the
     * provider ran is finished or too late: the user ends the stream, and calls
     * calls_provider_leave(). */
    void (*evicted)(void *user, enum calls_error why);
    /* Its toolset has other schemas: asks at once whether it is well, and takes no answer to an
     * earlier ping for one. */
    void (*ping)(void *user);
};

struct calls_running {
    struct bus_id id;
    uint32_t attempt;
    struct bus_address route;
    peg_str tool;
};

struct calls_attach {
    struct calls_toolset *toolset; /* takes a reference */
    peg_str incarnation; /* at most 64 characters; of one toolset and owner: see attach_hello.c */
    uint32_t credits;
    const struct calls_running *running;
    size_t n_running;
    /* How often this incarnation has said hello, this one included; 0: it does not tell. One that
     * has been nowhere else and does not list a call was never handed it. */
    uint32_t number;
};

/* PEG_ELIMIT, PEG_ENOMEM; PEG_ESTATE (E_DRAINING). */
peg_status calls_provider_attach(struct calls_loop *calls, const struct calls_attach *attach,
                                 const struct calls_provider_events *events, void *user,
                                 struct calls_provider **ret_provider, peg_error *reterr);
/* It offers other tools, which are being registered: until then it gets any call. */
void calls_provider_begin_offer(struct calls_provider *provider);
/* They are registered as that toolset; NULL: they were refused. */
void calls_provider_end_offer(struct calls_provider *provider, struct calls_toolset *toolset);
void calls_provider_ready(struct calls_provider *provider);
void calls_provider_pong(struct calls_provider *provider);
void calls_provider_drain(struct calls_provider *provider);
/* A whole result. `response` is a packed pegboard.v1.CallToolResponse without call_id, `result` the
 * JSON in it ("" with an error), borrowed. False: it was not handed this call. */
bool calls_provider_result(struct calls_provider *provider, const struct bus_id *id,
                           uint32_t attempt, peg_str response, peg_str result, bool is_error);
/* The same for one of `len` bytes that calls_outcome_of_result() made, which is taken (NULL: there
 * was no memory for it); a worker reads it. */
void calls_provider_large_result(struct calls_provider *provider, const struct bus_id *id,
                                 uint32_t attempt, struct peg__blob *outcome, size_t len);
/* What it says is no result: the call ends with this error, which is the tool's. PEG_ENOMEM: there
 * was no memory to read it, and how the call ends is not known. */
void calls_provider_bad_result(struct calls_provider *provider, const struct bus_id *id,
                               uint32_t attempt, peg_status status, peg_str message);
void calls_provider_output(struct calls_provider *provider, const struct bus_id *id,
                           uint32_t attempt, peg_str output);
/* A call that it runs waits for the answer to this, one at a time. False: there will be none, as
 * the call has no identity or there is no memory. */
bool calls_provider_input(struct calls_provider *provider, const struct bus_id *id,
                          uint32_t attempt, uint32_t number, peg_str requests);
/* It does not wait for that any more. */
void calls_provider_withdraw(struct calls_provider *provider, const struct bus_id *id,
                             uint32_t attempt, uint32_t number);
/* It will not start this call. */
void calls_provider_nak(struct calls_provider *provider, const struct bus_id *id, uint32_t attempt,
                        enum bus_reason reason);
/* Was it handed this call, and has not answered? */
bool calls_provider_has(const struct calls_provider *provider, const struct bus_id *id,
                        uint32_t attempt);
/* Its stream is over. If it was handed calls it has lease_ms to come back, and they are neither
 * lost nor told until then; if not, it is forgotten at once. Frees the provider. */
void calls_provider_leave(struct calls_provider *provider);

#endif
