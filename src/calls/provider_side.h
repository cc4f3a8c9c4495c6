/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_PROVIDER_SIDE_H
#define PEG_CALLS_PROVIDER_SIDE_H

/*
 * The provider's side of a loop: who is attached here, and the calls it has, each from the message
 * that brought it until its outcome is written.
 *
 *   QUEUED -> CLAIMING -> HANDED -> (VALIDATING) -> COMPLETING -> (gone)
 *   claim.c                         complete.c
 */

#include "calls/calls.h"

enum calls_assignment_step {
    CALLS_QUEUED,     /* waits until the provider has a place */
    CALLS_CLAIMING,   /* asks for the right to start it */
    CALLS_HANDED,     /* the provider has it */
    CALLS_VALIDATING, /* a worker reads its result */
    CALLS_COMPLETING, /* its outcome is being written */
};

struct calls_assignment {
    struct calls_entry entry; /* id and attempt; the first member */
    struct calls_provider *provider;
    struct calls_assignment *next; /* the provider's queue, or those that it has */
    struct calls_assignment *prev;
    enum calls_assignment_step step;
    struct peg__blob *request; /* a packed pegboard.v1.Call; NULL: it was reported by a provider */
    const struct calls_tool *tool; /* of the provider's toolset; NULL: not known (any more) */
    struct bus_address coordinator;
    int64_t deadline_ms; /* 0: it was reported, and that is not known */
    uint64_t epoch;
    uint16_t account;         /* whose its registers are; 0: not known, or no matter */
    enum bus_reason canceled; /* BUS_NO_REASON: it is not */
    bool is_reported;         /* by the last Hello, and it was not looked at since */
    /* A provider said that it has it, and nobody has looked yet whether it was ever handed it: what
     * it answers counts only if the register of the attempt names it. */
    bool is_unverified;
    bool was_reported; /* it came with a Hello, not with a message */
    bool is_over;      /* its outcome stands; whether it was this provider's call is looked at */
    /* Nobody knows of it, or it has ended: it takes no place at its provider. Since then. */
    bool is_unknown;
    int64_t unknown_since_ns;
    bool was_queried; /* its coordinator waits for it, or did at the last review */
    /* what may be pending */
    enum bus_reason given_back; /* COMPLETING: by its provider, if it was its; else BUS_NO_REASON */
    struct peg__blob *token;    /* CLAIMING */
    struct peg__blob *outcome;
    struct peg__blob *placeholder; /* written in place of an outcome that there is no room for */
    struct bus_wait wait;
    struct bus_wait waiters;
    struct net_timer again;
    struct calls_check *check;
};

struct calls_assignment_list {
    struct calls_assignment *first;
    struct calls_assignment *last;
    size_t n;
};

struct calls_provider {
    struct calls_entry entry; /* by a hash of its incarnation; the first member */
    struct calls_loop *calls;
    struct calls_provider *next; /* the loop's */
    struct calls_provider *prev;
    struct calls_toolset *toolset; /* as it is registered */
    struct calls_toolset *serves;  /* as its stream has spoken of it, by Hello or Offer */
    bool is_offering;              /* its Offer is being registered: it serves what comes of that */
    uint16_t account;              /* of its owner, who is always the same one, */
    uint64_t owner_hash;           /* whom each message names */
    char incarnation[65];
    uint32_t credits;
    uint32_t number; /* of its last hello; 0: it does not tell */
    bool is_draining;
    bool is_away;          /* its stream is over, its lease is not */
    bool is_moved;         /* another loop has it, and its lease */
    struct net_timer away; /* until then it may come back; of one that moved: its stream ends */
    /* CALLS_NOT_FOUND, CALLS_PERMISSION_DENIED: the toolset is not its any more. It finishes what
     * it runs, and gets nothing else. */
    enum calls_error eviction;
    int64_t evicted_ms;
    struct net_timer
        eviction_timer; /* its stream ends then, if nobody waits any more for what it has */
    struct calls_assignment_list queue;
    size_t queued_bytes;
    struct calls_assignment_list running; /* CLAIMING and later */
    size_t n_unknown;                     /* of these */
    struct net_timer review; /* of those that it has reported, or the next look at some */
    bool is_pumping;
    bool owes_cancels; /* it has come back, and may not know which of its calls nobody awaits */
    struct calls_assignment *unchecked; /* of `running`: those before it were told; NULL: all */
    struct calls_meter *meter;
    struct bus_wait lease;
    const struct calls_provider_events *events;
    void *user;
};

/* ---- provider_side.c ---- */

void calls_providers_on_message(struct calls_loop *calls, const struct bus_message *message);
void calls_providers_on_reset(struct calls_loop *calls);
/* Tells whoever sent a message what became of it. */
void calls_providers_reply(struct calls_loop *calls, const struct bus_message *about,
                           enum bus_message_kind kind, enum bus_reason reason);
/* Answers a message whose call is not here, or does not get in. */
void calls_providers_refuse(struct calls_loop *calls, const struct bus_message *about,
                            enum bus_reason reason);
struct bus_id calls_providers_hash(const struct calls_loop *calls, const char *incarnation);
struct calls_provider *calls_providers_find(struct calls_loop *calls, const char *incarnation);
/* Several may say that they have one call; the first was handed it, unless that one has ended. */
struct calls_assignment *calls_assignment_find(const struct calls_loop *calls,
                                               const struct bus_id *id, uint32_t attempt);
/* That of a provider, which may be NULL. */
struct calls_assignment *calls_assignment_find_by(const struct calls_provider *provider,
                                                  const struct bus_id *id, uint32_t attempt);
void calls_provider_renew(struct calls_provider *provider);
/* It goes, and has all of its lease to come back. */
void calls_provider_renew_last(struct calls_provider *provider);
/* Every loop and node is to know that it is here, and whether it drains. */
peg_status calls_provider_report_presence(struct calls_provider *provider, peg_error *reterr);

/* ---- attach.c ---- */

void calls_provider_free(struct calls_provider *provider);

/* ---- assignment.c ---- */

struct calls_assignment *calls_assignment_new(struct calls_provider *provider,
                                              const struct bus_id *id, uint32_t attempt);
void calls_assignment_drop(struct calls_assignment *assignment);
/* From the queue to those that the provider has, or is about to have. */
void calls_assignment_run(struct calls_assignment *assignment);
/* Tells the coordinator that it was not started, and drops it. */
void calls_assignment_nak(struct calls_assignment *assignment, enum bus_reason reason,
                          bool was_claimed);
void calls_assignment_send(struct calls_assignment *assignment, enum bus_message_kind kind,
                           struct peg__blob *body);
struct bus_key calls_assignment_key(const struct calls_assignment *assignment, char what,
                                    uint32_t n);
int64_t calls_assignment_keep_until(const struct calls_assignment *assignment);

/* ---- evict.c ---- */

/* It has a call less. One that is evicted goes when nobody waits any more for what it has. */
void calls_evict_if_done(struct calls_provider *provider);

/* ---- claim.c ---- */

void calls_claim_on_call(struct calls_loop *calls, const struct bus_message *message);
void calls_claim_on_cancel(struct calls_loop *calls, const struct bus_message *message);
/* To its provider, if that has it and is here. */
void calls_claim_send_cancel(const struct calls_assignment *assignment);
/* Hands over as many calls as the provider has places for. */
void calls_claim_pump(struct calls_provider *provider);

/* ---- version.c ---- */

/* May it be handed this call, a packed pegboard.v1.Call, by what its stream has spoken of? */
bool calls_provider_serves(struct calls_provider *provider, peg_str call);
/* Another definition of its toolset is in force. */
void calls_provider_set_toolset(struct calls_provider *provider, struct calls_toolset *toolset);
/* Its stream speaks of that one. */
void calls_provider_set_serves(struct calls_provider *provider, struct calls_toolset *toolset);

/* ---- reported.c ---- */

/* A Hello was read: those of its calls that it names are to be looked at. */
void calls_reported_queue(struct calls_provider *provider);
/* What became of the calls that a provider has come (back) with? Of some of them; the others have
 * their turn soon. */
void calls_reported_recheck(struct calls_provider *provider);
void calls_reported_review(struct net_timer *timer);
/* Its coordinator asks for it, or its provider speaks of it. */
void calls_reported_verify(struct calls_assignment *assignment);

/* ---- complete.c ---- */

/* Its provider has not started it, and will not: that is told if it was its to start. */
void calls_complete_give_back(struct calls_assignment *assignment, enum bus_reason reason);
void calls_complete_retry(struct calls_assignment *assignment);
bool calls_assignment_is_of_another_node(const struct calls_assignment *assignment);

/* ---- emit.c ---- */

void calls_emit_on_message(struct calls_loop *calls, const struct bus_message *message);
void calls_emit_on_answer(struct calls_loop *calls, const struct bus_message *message);

#endif
