/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_PROVIDER_SIDE_H
#define PEG_CALLS_PROVIDER_SIDE_H

/*
 * The provider's side of a loop: the providers that are attached here, and their assignments. Files
 * call those below them:
 *
 *   receive.c           messages of coordinators
 *   emit.c              results by EmitToolResult
 *   providers.c         providers come, go, move, drain; leases
 *   reattach.c          what a provider reports when it comes back
 *   result.c            what a provider answers
 *   toolset.c           the revision that a provider serves; eviction
 *   host_assignment.c   executes the actions of machines and feeds them events
 *   gate.c              questions of running calls, and their answers
 */

#include "calls/calls.h"
#include "calls/machine/assignment.h"
#include "calls/value.h"

struct calls_gate;

struct calls_assignment {
    struct calls_entry entry; /* id and attempt; the first member */
    struct calls_provider *provider;
    struct calls_assignment_list *list; /* of the provider: its queue, or those that it has */
    struct calls_assignment *next;
    struct calls_assignment *prev;
    struct calls_assignment_machine machine;
    struct peg__blob *request;     /* until it is handed over: a packed pegboard.v1.Call */
    const struct calls_tool *tool; /* of the provider's toolset; NULL: not known (any more) */
    struct bus_address coordinator;
    uint16_t account; /* the quota key of its registers; 0: not known, or without quotas */
    /* what may be pending */
    struct peg__blob *value;       /* CLAIMING: its token; VALIDATING and later: its outcome */
    struct peg__blob *placeholder; /* written in place of an outcome that there is no room for */
    struct bus_wait wait;
    struct net_timer retry;
    struct calls_check *check;
    struct calls_gate *gate; /* the question that it waits with; NULL: none */
    uint32_t last_question;  /* the place of the last one; 0: none, as far as this loop knows */
};

struct calls_assignment_list {
    struct calls_assignment *first;
    struct calls_assignment *last;
    size_t n;
};

enum calls_provider_place {
    CALLS_HERE,
    CALLS_MOVED,      /* another loop has it, and its lease; its stream here ends soon */
    CALLS_AWAY,       /* its stream is over, its lease is not: it may come back */
    CALLS_MOVED_AWAY, /* both */
};

struct calls_provider {
    struct calls_entry entry; /* by a hash of its incarnation; the first member */
    struct calls_loop *calls;
    struct calls_provider *next; /* the loop's */
    struct calls_provider *prev;
    struct calls_toolset *toolset; /* as it is registered */
    struct calls_toolset *serves;  /* as its stream has spoken of it, by Hello or Offer */
    bool is_offering;              /* its Offer is being registered: it serves what comes of that */
    uint16_t account;              /* of its owner, which never changes, */
    uint64_t owner_hash;           /* and which each BUS_CALL names */
    char incarnation[65];
    uint32_t credits;
    uint32_t number; /* of its last Hello; 0: it does not count them */
    bool is_draining;
    enum calls_provider_place place;
    struct net_timer away; /* AWAY: it may come back until then; MOVED: its stream ends */
    /* CALLS_NOT_FOUND, CALLS_PERMISSION_DENIED, CALLS_UNAUTHENTICATED: the toolset is not its any
     * more. It finishes what it runs, and gets nothing else. */
    enum calls_error eviction;
    int64_t evicted_ms;
    struct net_timer eviction_timer; /* ends its stream, if no call awaits its result any more */
    struct calls_assignment_list queue;
    size_t queued_bytes;
    struct calls_assignment_list running; /* CLAIMING and later */
    size_t n_unknown;                     /* of these: they take no place */
    struct net_timer review;              /* of those that it reported, or the next part of them */
    bool is_pumping;
    bool has_unchecked;                 /* some that its last Hello lists were not looked at */
    struct calls_assignment *unchecked; /* of `running`: the first of these, or one before it */
    struct calls_meter *meter;
    const struct calls_provider_events *events;
    void *user;
};

static inline bool calls_provider_is_away(const struct calls_provider *provider)
{
    return provider->place >= CALLS_AWAY;
}

/* ---- host_assignment.c ---- */

/* In its provider's queue (`request`: takes a reference), or reported by it (NULL). */
struct calls_assignment *calls_assignment_new(struct calls_provider *provider,
                                              const struct bus_id *id, uint32_t attempt,
                                              struct bus_address coordinator,
                                              struct peg__blob *request);
/* Right in any state, and nothing is sent. */
void calls_assignment_drop(struct calls_assignment *assignment);
/* One event, and what comes of it: the assignment may be gone then. `output`: of OUTPUT. */
void calls_assignment_feed_with(struct calls_assignment *assignment,
                                enum calls_assignment_event_kind kind, enum bus_reason reason,
                                struct peg__blob *output);
// NOLINTNEXTLINE(misc-no-recursion): see host_assignment.c
static inline void calls_assignment_feed(struct calls_assignment *assignment,
                                         enum calls_assignment_event_kind kind)
{
    calls_assignment_feed_with(assignment, kind, BUS_NO_REASON, NULL);
}
/* Several providers may report one call; the first was handed it, unless that one has ended. */
struct calls_assignment *calls_assignment_find(const struct calls_loop *calls,
                                               const struct bus_id *id, uint32_t attempt);
/* That of a provider, which may be NULL. */
struct calls_assignment *calls_assignment_find_by(const struct calls_provider *provider,
                                                  const struct bus_id *id, uint32_t attempt);
/* Likewise, if the provider has it and has not answered. */
struct calls_assignment *calls_assignment_find_running(const struct calls_provider *provider,
                                                       const struct bus_id *id, uint32_t attempt);
/* `question`: of QUESTION and REPLY, else 0. */
struct bus_key calls_assignment_key(const struct calls_assignment *assignment,
                                    enum bus_register what, uint32_t question);
/* How long its registers are of use. */
int64_t calls_assignment_keep_until(const struct calls_assignment *assignment);
/* The message of an action, to its coordinator or another loop. */
void calls_assignment_send(const struct calls_assignment *assignment, struct bus_address to,
                           const struct calls_assignment_action *action, struct peg__blob *body);
/* Why it takes no call any more: BUS_GONE, BUS_DRAINING; BUS_NO_REASON: it takes some. */
enum bus_reason calls_provider_closed(const struct calls_provider *provider);
/* Hands over as many calls as the provider has places for. */
void calls_provider_pump(struct calls_provider *provider);
/* What waits for it goes elsewhere. */
void calls_provider_refuse_queue(struct calls_provider *provider, enum bus_reason reason);

/* ---- gate.c ---- */

/* If there is one. */
void calls_gate_drop(struct calls_assignment *assignment);
/* A hint: a question may have its answer. */
void calls_gate_on_answered(struct calls_loop *calls, const struct bus_message *message);

/* ---- toolset.c ---- */

/* May it be handed this call, a packed pegboard.v1.Call, by what its stream has spoken of? */
bool calls_provider_serves(struct calls_provider *provider, peg_str call);
/* Another definition of its toolset is in force. */
void calls_provider_set_toolset(struct calls_provider *provider, struct calls_toolset *toolset);
/* Its stream speaks of that one. */
void calls_provider_set_serves(struct calls_provider *provider, struct calls_toolset *toolset);

/* ---- reattach.c ---- */

/* Takes the list of a Hello: all of it, or nothing that is new. */
peg_status calls_reattach_take(struct calls_provider *provider, const struct calls_attach *attach,
                               peg_error *reterr);
/* What the provider was handed and does not list. */
void calls_reattach_drop_unlisted(struct calls_provider *provider,
                                  const struct calls_attach *attach);
/* Coordinators and registers have their turn in parts, when the stream is ready. */
void calls_reattach_begin(struct calls_provider *provider);
void calls_reattach_continue(struct calls_provider *provider);
/* Those that have ended elsewhere are found sooner. */
void calls_reattach_begin_drain(struct calls_loop *calls);

/* ---- providers.c ---- */

struct calls_provider *calls_providers_find(const struct calls_loop *calls, peg_str incarnation);
void calls_provider_renew(const struct calls_provider *provider);
void calls_provider_free(struct calls_provider *provider);
void calls_providers_on_reset(struct calls_loop *calls);

/* ---- receive.c ---- */

void calls_providers_on_message(struct calls_loop *calls, const struct bus_message *message);

/* ---- emit.c ---- */

void calls_emit_on_message(struct calls_loop *calls, const struct bus_message *message);
void calls_emit_on_answer(struct calls_loop *calls, const struct bus_message *message);

#endif
