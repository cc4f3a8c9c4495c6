/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CALLS_PROVIDER_SIDE_H
#define PEG_GATEWAY_CALLS_PROVIDER_SIDE_H

/*
 * The provider's side of a desk: who is attached here, and the calls it has, each from the letter
 * that brought it until its terminal is written.
 *
 *   QUEUED -> CLAIMING -> HANDED -> (CHECKING) -> COMPLETING -> (gone)
 *   claim.c                         complete.c
 */

#include "gateway/calls/calls.h"

struct gw_auth; /* auth.h */

enum gw_assignment_step {
    GW_QUEUED,     /* waits until the provider has a place */
    GW_CLAIMING,   /* asks for the right to start it */
    GW_HANDED,     /* the provider has it */
    GW_VETTING,    /* a worker reads its result */
    GW_COMPLETING, /* its terminal is being written */
};

struct gw_assignment {
    struct gw_entry entry; /* id and attempt; the first member */
    struct gw_provider *provider;
    struct gw_assignment *next; /* the provider's queue, or those that it has */
    struct gw_assignment *prev;
    enum gw_assignment_step step;
    struct peg__blob *request;  /* a packed pegboard.v1.Call; NULL: it was listed by a provider */
    const struct gw_tool *tool; /* of the provider's toolset; NULL: not known (any more) */
    struct bus_address driver;
    int64_t deadline_ms; /* 0: it was listed, and that is not known */
    uint64_t epoch;
    uint16_t account;         /* whose its registers are; 0: not known, or no matter */
    enum bus_reason canceled; /* BUS_NO_REASON: it is not */
    bool is_listed;           /* by the last Hello, and it was not looked at since */
    /* A provider said that it has it, and nobody has looked yet whether it was ever handed it: what
     * it answers counts only if the register of the attempt names it. */
    bool is_unproven;
    bool was_listed; /* it came with a Hello, not with a letter */
    bool is_over;    /* its terminal stands; whether it was this provider's call is looked at */
    /* Nobody knows of it, or it has ended: it takes no place at its provider. Since then. */
    bool is_doubted;
    int64_t doubted_ns;
    bool was_asked; /* its driver waits for it, or did at the last review */
    /* what may be pending */
    enum bus_reason given_back; /* COMPLETING: by its provider, if it was its; else BUS_NO_REASON */
    struct peg__blob *mark;     /* CLAIMING */
    struct peg__blob *terminal;
    struct peg__blob *stand_in; /* written in place of a terminal that there is no room for */
    struct bus_wait wait;
    struct bus_wait waiters;
    struct net_timer again;
    struct gw_check *check;
};

struct gw_assignment_list {
    struct gw_assignment *first;
    struct gw_assignment *last;
    size_t n;
};

struct gw_provider {
    struct gw_entry entry; /* by a hash of its incarnation; the first member */
    struct gw_calls *desk;
    struct gw_provider *next; /* the desk's */
    struct gw_provider *prev;
    struct gw_toolset *toolset; /* as it is registered */
    struct gw_toolset *serves;  /* as its stream has spoken of it, by Hello or Offer */
    bool is_offering;           /* its Offer is being registered: it serves what comes of that */
    uint16_t account;           /* of its owner, who is always the same one, */
    uint64_t owner_hash;        /* whom each letter names */
    char incarnation[65];
    uint32_t credits;
    uint32_t number; /* of its last hello; 0: it does not tell */
    bool is_draining;
    bool is_away;          /* its stream is over, its lease is not */
    bool is_moved;         /* another loop has it, and its lease */
    struct net_timer away; /* until then it may come back; of one that moved: its stream ends */
    /* WIRE_NOT_FOUND, WIRE_PERMISSION_DENIED: the toolset is not its any more. It finishes what it
     * runs, and gets nothing else. */
    enum wire_error dismissal;
    int64_t dismissed_ms;
    struct net_timer farewell; /* its stream ends then, if nobody waits any more for what it has */
    struct gw_assignment_list queue;
    size_t queued_bytes;
    struct gw_assignment_list running; /* CLAIMING and later */
    size_t n_doubted;                  /* of these */
    struct net_timer review;           /* of those that it has listed, or the next look at some */
    bool is_pumping;
    bool owes_cancels; /* it has come back, and may not know which of its calls nobody awaits */
    struct gw_assignment *unlooked; /* of `running`: those before it were told; NULL: all */
    struct gw_toolset_meter *meter;
    struct bus_wait lease;
    const struct gw_provider_events *events;
    void *user;
};

/* ---- holder.c ---- */

void gw_providers_on_message(struct gw_calls *desk, const struct bus_message *letter);
void gw_providers_on_reset(struct gw_calls *desk);
/* Tells whoever sent a letter what became of it. */
void gw_providers_reply(struct gw_calls *desk, const struct bus_message *about,
                        enum bus_message_kind kind, enum bus_reason reason);
/* Answers a letter whose call is not here, or does not get in. */
void gw_providers_refuse(struct gw_calls *desk, const struct bus_message *about,
                         enum bus_reason reason);
struct bus_id gw_providers_hash(const struct gw_calls *desk, const char *incarnation);
struct gw_provider *gw_providers_find(struct gw_calls *desk, const char *incarnation);
/* Several may say that they have one call; the first was handed it, unless that one has ended. */
struct gw_assignment *gw_assignment_find(const struct gw_calls *desk, const struct bus_id *id,
                                         uint32_t attempt);
/* That of a provider, which may be NULL. */
struct gw_assignment *gw_assignment_find_by(const struct gw_provider *provider,
                                            const struct bus_id *id, uint32_t attempt);
void gw_provider_renew(struct gw_provider *provider);
/* It goes, and has all of its lease to come back. */
void gw_provider_renew_last(struct gw_provider *provider);
/* Every loop and node is to know that it is here, and whether it drains. */
peg_status gw_provider_report_presence(struct gw_provider *provider, peg_error *reterr);

/* ---- attach.c ---- */

/* gw_presence_on_moved() with the desk. */
void gw_providers_on_moved(void *user, const char *incarnation);
void gw_provider_free(struct gw_provider *provider);

/* ---- held.c ---- */

struct gw_assignment *gw_assignment_new(struct gw_provider *provider, const struct bus_id *id,
                                        uint32_t attempt);
void gw_assignment_drop(struct gw_assignment *held);
/* From the queue to those that the provider has, or is about to have. */
void gw_assignment_run(struct gw_assignment *held);
/* Tells the driver that it was not started, and drops it. */
void gw_assignment_nak(struct gw_assignment *held, enum bus_reason reason, bool was_claimed);
void gw_assignment_send(struct gw_assignment *held, enum bus_message_kind kind,
                        struct peg__blob *body);
struct bus_key gw_assignment_key(const struct gw_assignment *held, char what, uint32_t n);
int64_t gw_assignment_keep_until(const struct gw_assignment *held);

/* ---- dismiss.c ---- */

void gw_providers_on_snapshot(struct gw_calls *desk);
/* Dismisses those whose owners are not known any more. */
void gw_providers_evict_unknown(struct gw_calls *desk, const struct gw_auth *auth);
/* It has a call less. One that is dismissed goes when nobody waits any more for what it has. */
void gw_evict_if_done(struct gw_provider *provider);

/* ---- claim.c ---- */

void gw_claim_on_call(struct gw_calls *desk, const struct bus_message *letter);
void gw_claim_on_cancel(struct gw_calls *desk, const struct bus_message *letter);
/* To its provider, if that has it and is here. */
void gw_claim_send_cancel(const struct gw_assignment *held);
/* Hands over as many calls as the provider has places for. */
void gw_claim_pump(struct gw_provider *provider);

/* ---- version.c ---- */

/* May it be handed this call, a packed pegboard.v1.Call, by what its stream has spoken of? */
bool gw_provider_serves(struct gw_provider *provider, peg_str call);
/* Another definition of its toolset is in force. */
void gw_provider_set_toolset(struct gw_provider *provider, struct gw_toolset *toolset);
/* Its stream speaks of that one. */
void gw_provider_set_serves(struct gw_provider *provider, struct gw_toolset *toolset);

/* ---- listed.c ---- */

/* A Hello was read: those of its calls that it names are to be looked at. */
void gw_reported_queue(struct gw_provider *provider);
/* What became of the calls that a provider has come (back) with? Of some of them; the others have
 * their turn soon. */
void gw_reported_recheck(struct gw_provider *provider);
void gw_reported_review(struct net_timer *timer);
/* Its driver asks for it, or its provider speaks of it. */
void gw_reported_verify(struct gw_assignment *held);

/* ---- complete.c ---- */

/* Its provider has not started it, and will not: that is told if it was its to start. */
void gw_complete_give_back(struct gw_assignment *held, enum bus_reason reason);
void gw_complete_retry(struct gw_assignment *held);
bool gw_assignment_is_of_another_node(const struct gw_assignment *held);

/* ---- emit.c ---- */

void gw_emit_on_message(struct gw_calls *desk, const struct bus_message *letter);
void gw_emit_on_answer(struct gw_calls *desk, const struct bus_message *letter);

#endif
