/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_CALLER_CALL_H
#define PEG_CALLS_CALLER_CALL_H

/*
 * The host of a call on the callers' side: struct calls_call has the machine (coordinator.h) and
 * all that may be pending for it. There is one for each identity and node, on its home (homes.h);
 * callers of other loops reach it through relay.c. calls_call_drop() is right in any state.
 * docs/modules/calls.md lists the files; each calls only those below it there.
 */

#include "calls/caller/homes.h"
#include "calls/calls.h"
#include "calls/machine/coordinator.h"

/* What the callers of a call know of it. */
enum calls_reported { CALLS_UNREPORTED, CALLS_REPORTED_ADMITTED, CALLS_REPORTED_FOLLOWING };

struct calls_call {
    struct calls_entry entry; /* its id; the first member */
    struct calls_loop *calls;
    struct calls_home *home; /* NULL: it has no identity, or the node has one loop */
    struct calls_call *next; /* the loop's list */
    struct calls_call *prev;
    struct calls_machine machine;
    struct calls_caller *callers;
    struct calls_caller *cursor; /* the caller that gets the current output next */
    enum calls_reported reported;
    bool is_counted;              /* as admitted, and not yet as ended */
    bool is_detached;             /* goes on without callers */
    bool asked_before;            /* under registers that may be gone: it may run still */
    char slot[CALLS_INCARNATION]; /* the provider that it is counted at; "": none */

    /* the request; without a tool: it is known by its id, or has no quota */
    struct calls_toolset *toolset;
    const struct calls_tool *tool;
    struct peg__blob *request;   /* a packed pegboard.v1.Call */
    peg_str payload;             /* in it */
    peg_str caller_name;         /* likewise: the principal */
    size_t large_bytes;          /* counted in the quota of large requests */
    uint16_t account;            /* the key of its quotas; 0: none */
    struct peg__blob *principal; /* of one that was located */
    struct peg__blob *identity;  /* what it writes in that register */
    const char *reject_reason;   /* CALLS_BAR_QUOTA */
    struct calls_meter *meter;
    int64_t begun_ns;
    int64_t deadline_ns;

    /* what may be pending */
    struct peg__blob *outcome; /* its own, or one that was read */
    struct {
        struct peg__blob *blob;
        enum calls_action_kind kind;
        uint32_t attempt;
    } token;              /* the last claim token; a repeated put writes the same */
    struct bus_wait wait; /* the machine's request */
    struct bus_wait sent; /* did a loop receive the message? */
    struct bus_wait waiters;
    struct net_timer deadline;
    struct net_timer again; /* the machine's */
    struct net_timer away;  /* a caller was lost, and has so long to come back */
    struct calls_check *check;
    uint64_t question; /* without callers: number of the question whether others wait, */
    unsigned n_asked;  /* and how many have not answered it */
    struct calls_listeners *listeners; /* loops that get its outputs; NULL: none */
    struct calls_questions *questions; /* NULL: no caller here could be asked so far */
};

/* ---- call.c ---- */

/* *ret_home is NULL for an id without an identity, and if the node has one loop: then this loop has
 * the call, or it has none. False: no memory. */
bool calls_hold_home(struct calls_loop *calls, const struct bus_id *id,
                     struct calls_home **ret_home);
/* The home of the id is held, and it is this loop. NULL: no memory. */
struct calls_call *calls_call_new(struct calls_loop *calls, const struct bus_id *id,
                                  uint16_t account);
void calls_call_drop(struct calls_call *call);
/* The call of an id on this loop; those that only look for one are left out. NULL: none. */
struct calls_call *calls_find(const struct calls_loop *calls, const struct bus_id *id);
bool calls_call_is_keyed(const struct calls_call *call);
/* Attempts whose CLAIM may have been written: with an identity, also the one that closes it. */
uint32_t calls_call_n_claims(const struct calls_call *call);
void calls_call_add_caller(struct calls_call *call, struct calls_caller *caller);
/* One more: it counts by itself, waits until `deadline_ns`, and gets the news of the call. */
void calls_call_attach_caller(struct calls_call *call, struct calls_caller *caller,
                              int64_t deadline_ns);
void calls_call_take_caller(struct calls_caller *caller);
/* It waits until then by itself. NET_NEVER: until the call ends. */
void calls_call_arm_caller(struct calls_caller *caller, int64_t deadline_ns);
/* To those callers that do not know yet. */
void calls_call_report(struct calls_call *call);
/* Its provider has a place again. */
void calls_call_release(struct calls_call *call);

/* ---- request.c ---- */

/* False: no memory. */
bool calls_random_id(struct calls_loop *calls, bool is_node_local, struct bus_id *ret_id);
/* Of the tool and of the payload without white space between its values. False: no memory. */
bool calls_request_digest(const struct calls_request *request, unsigned char ret_digest[32]);
/* Of the quota for large requests; 0 for a small one. */
size_t calls_request_large_bytes(const struct calls_request *request);
/* Packs it for the provider, and writes the identity that the call registers. PEG_ENOMEM. */
peg_status calls_call_pack(struct calls_call *call, const struct calls_request *request);
/* What it writes in that register, with the time and the epoch of now; a call without an identity
 * may be described by one. NULL: no memory. */
struct peg__blob *calls_call_make_identity(const struct calls_call *call, uint64_t number);
/* False: no memory. */
bool calls_call_renew_identity(struct calls_call *call);
/* The cluster's time of call->deadline_ns. */
void calls_call_set_deadline(struct calls_call *call);
/* When its caller, its own timeout or the tool's gives up, of bus_now_ns(). */
int64_t calls_request_deadline(struct calls_loop *calls, const struct calls_request *request,
                               const struct calls_tool *tool);
/* A little before a caller's own deadline, so that the caller learns how the call ended. */
int64_t calls_give_up_ns(int64_t now_ns, int64_t deadline_ns);

/* ---- list.c ---- */

/* What it is; borrowed from the call. */
struct calls_subject calls_call_subject(const struct calls_call *call);
/* Once, if it was counted as admitted: counts it, and notes it among those that ended. */
void calls_call_count_ended(struct calls_call *call, const struct calls_outcome *outcome);

/* ---- reject.c ---- */

/* The message lies in calls->text, or is static. `is_anothers`: another node coordinates the call,
 * or that is not known. */
void calls_explain(struct calls_call *call, enum calls_why why, bool is_anothers,
                   struct calls_outcome *ret_outcome);
/* Before there is a call. */
void calls_reject_caller(struct calls_caller *caller, enum calls_error error, peg_str message,
                         int64_t retry_after_ms);
/* The same for a bar that does not depend on a call: DRAINING, NO_MEMORY. */
void calls_reject_barred(struct calls_caller *caller, enum calls_bar bar);

/* ---- outstanding.c ---- */

/* The call is about to go, and messages with it may still arrive: its registers are forgotten when
 * the last of them is answered. */
void calls_outstanding_count(const struct calls_call *call);
/* An answer to the coordinator of a call that is not here any more. */
void calls_outstanding_on_answer(struct calls_loop *calls, const struct bus_message *message);
void calls_outstanding_free(struct calls_loop *calls);

/* ---- end_call.c: each notifies the callers, and frees the call ---- */

/* With the outcome that a register holds. */
void calls_end_with(struct calls_call *call, struct peg__blob *blob, bool was_following);
/* With the outcome of `why`, or the one that was kept. */
void calls_end_own(struct calls_call *call, enum calls_why why, bool was_following);
void calls_end_rejected(struct calls_call *call, enum calls_why why, enum calls_state before);
/* Callers get this. */
void calls_run_reject(struct calls_call *call, enum calls_error error, peg_str message,
                      int64_t retry_after_ms);
/* Its coordinator, by the identity in the answer, cancels the call. */
void calls_end_stopped(struct calls_call *call, const struct bus_answer *answer);
/* call->outcome, if there is none yet; NULL without memory. Frees nothing. */
void calls_end_make_outcome(struct calls_call *call, enum calls_why why);
void calls_send(struct calls_call *call, struct bus_address to, enum bus_message_kind kind,
                enum bus_reason reason, struct peg__blob *body);

/* ---- questions.c ---- */

/* Soon: there may be a question that a caller here does not know. */
void calls_questions_look(struct calls_call *call);
void calls_questions_free(struct calls_call *call);

/* ---- run_call.c: each may end the call ---- */

/* Names what its answers and timers call, and arms its deadline. */
void calls_run_begin(struct calls_call *call);
/* Its payload is valid, or it only attaches. */
void calls_run_admit(struct calls_call *call);
void calls_run_message(struct calls_call *call, const struct bus_message *message);
/* An event without data. CALLS_TIMER: what it has read may be old. */
void calls_run_event(struct calls_call *call, enum calls_event_kind kind);

/* ---- leave.c ---- */

void calls_leave(struct calls_caller *caller, enum calls_leaving leaving);
/* A caller has left, or its time is over: a call without callers is canceled. */
void calls_leave_alone(struct calls_call *call);
void calls_on_waiting(struct calls_loop *calls, const struct bus_message *message);
void calls_on_follower(struct calls_loop *calls, const struct bus_message *message);
void calls_on_output(struct calls_loop *calls, const struct bus_message *message);

/* ---- start.c ---- */

/* An incoming request, or wait, and what was looked up for it. */
struct calls_incoming {
    struct calls_loop *calls;
    struct calls_caller *caller;
    enum calls_origin origin;
    struct bus_id id;
    const struct calls_request *request; /* of one by its id: the principal, the deadline */
    /* start.c's, of one that starts a call */
    struct calls_toolset *toolset;
    const struct calls_tool *tool;
    const char *reject_reason; /* there is no quota for a call to begin; NULL: there is */
};

/* The home of the id is held, and it is this loop. */
void calls_begin_here(struct calls_incoming *incoming);

/* ---- relay.c ---- */

/* The loop ends: notifies callers of other loops. */
void calls_abandon_callers(struct calls_call *call);
/* Its own callers of calls on other loops hear nothing any more. */
void calls_drop_relays(struct calls_loop *calls);

#endif
