/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CALLS_CALL_H
#define PEG_GATEWAY_CALLS_CALL_H

/*
 * A call at the desk of its caller: driven from there, or joined, if somebody else drives it. What
 * may be pending for it is all in this struct, and gw_call_drop() is right in any state.
 *
 *              admit.c          send.c           settle.c
 *   CHECKING -> NAMING -> SENT <--------> REVOKING -> GRACE -> ENDING -> (gone)
 *                  |                                             ^
 *       ASKING ----+-> JOINED (join.c) --------------------------+
 *
 * A terminal that is found in its register ends it in any step.
 */

#include "base/limits.h"
#include "gateway/calls/calls.h"

enum gw_step {
    GW_CHECKING,  /* a worker reads its payload */
    GW_NAMING,    /* asks to be the one that decides about this identity */
    GW_ASKING,    /* known by its id only: asks whose it is, and until then is told nothing */
    GW_FOLLOWING, /* somebody else decides */
    GW_SENT,      /* a provider was asked to run it */
    GW_REVOKING,  /* takes the right to start it back */
    GW_GRACE,     /* canceled, but it runs: its provider may end it */
    GW_ENDING,    /* writes a terminal of its own */
};

/* What is being looked at, one after the other. */
enum gw_recheck {
    GW_RECHECK_NONE,
    GW_RECHECK_OUTCOME,    /* has it ended? */
    GW_RECHECK_IDENTITY,   /* joined: is it still the same call? */
    GW_RECHECK_OWNER,      /* has anybody claimed the attempt? */
    GW_RECHECK_LEASE,      /* is that one alive? */
    GW_RECHECK_LOST,       /* he is not: has it ended after all? */
    GW_RECHECK_UNREPORTED, /* he does not know of it: has it ended? */
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): its members stand where they are read
struct gw_call {
    struct gw_entry entry; /* its id; the first member */
    struct gw_calls *desk;
    struct gw_call *next; /* the desk's list */
    struct gw_call *prev;
    enum gw_step step;
    struct gw_caller *callers;
    bool is_detached; /* goes on without callers */
    bool is_admitted; /* counted as such */
    bool has_told_admitted;

    /* what is asked for; no tool: whoever only awaits it does not know */
    struct gw_toolset *toolset;
    const struct gw_tool *tool;
    struct peg__blob *request; /* a packed pegboard.v1.Call, see gw_provider_events; ASKING: who */
    peg_str payload;           /* in it */
    size_t large_bytes;        /* that it takes of the room for large requests */
    uint16_t account;          /* whose it is; 0: shares are no matter */
    struct peg__blob *named;   /* what it writes, or has read, as 'c' */
    bool has_digest;           /* it is known what is asked for: */
    unsigned char digest[32];
    const char *why_not; /* it may join, and not begin; NULL: it may */
    int64_t begun_ns;
    int64_t deadline_ms;
    int64_t deadline_ns;
    struct gw_toolset_meter *meter;

    /* the attempt that is current; 0: none yet */
    uint32_t attempt;
    unsigned n_sent;     /* letters with it */
    uint64_t sent_epoch; /* of the first of them */
    char incarnation[65];
    struct bus_address holder;
    bool has_slot;                                   /* counted in the entry of its provider */
    uint64_t refused_by[PEG_LIMIT_GATEWAY_ATTEMPTS]; /* hashes of who did not take it, */
    bool was_given_back[PEG_LIMIT_GATEWAY_ATTEMPTS]; /* or took it and did not want it */
    unsigned n_refused;
    enum bus_reason refusal; /* the last one's; note_reason() says which counts more */
    bool met_outdated;       /* somebody had another version of the toolset */
    bool was_unknown;        /* another node said that its provider does not have this attempt */
    bool may_have_run;       /* an attempt before this one, of a tool that may be started again */
    /* It was asked for before, and if nothing stands here of it, it began under registers that are
     * gone, and its provider may run it still. */
    bool may_run_elsewhere;
    unsigned n_astray; /* letters of all attempts that may still arrive somewhere */
    uint32_t answered; /* a bit for each attempt that who had the right to it has answered */
    bool is_closed;    /* nobody can make another attempt */

    /* joined */
    struct bus_address driver;
    struct bus_address named_driver; /* the one that 'c' tells, whoever took its place */
    uint64_t named_epoch;
    uint32_t walk;      /* attempt that is looked at, to take it over */
    bool is_owner_lost; /* a provider that had one of the attempts before it */
    bool is_listed;     /* among those who wait for it */

    /* what may be pending */
    enum bus_reason ending;     /* why it is being ended; BUS_NO_REASON: it is not */
    struct peg__blob *terminal; /* ENDING: to be written */
    struct peg__blob *mark;     /* REVOKING: likewise */
    struct bus_wait wait;       /* of the step */
    struct bus_wait look;       /* of looking after it */
    enum gw_recheck looking;
    bool must_look;     /* again, when this is over */
    bool has_waited;    /* before it looked */
    bool has_seen_end;  /* that is written, and has waited for the letter with it */
    bool has_heard_end; /* by a letter that only tells to look */
    unsigned n_looks;
    struct bus_wait post; /* was the letter received? */
    struct bus_wait waiters;
    struct net_timer deadline;
    struct net_timer again; /* looks, or tries once more */
    struct net_timer away;  /* its caller was lost, and has so long to come back */
    struct gw_check *check;
    uint64_t told; /* number of the letter that it has heard */
    /* Without callers: the number of the question whether others wait, and who has to answer. */
    uint64_t question;
    unsigned n_asked;
    struct gw_listeners *listeners; /* desks that hear its outputs; NULL: none does */
};

/* ---- call.c: its life ---- */

struct gw_call *gw_call_new(struct gw_calls *desk, const struct bus_id *id, uint16_t account);
void gw_call_drop(struct gw_call *call);
struct bus_key gw_call_key(const struct gw_call *call, char what, uint32_t n);
int64_t gw_call_keep_until(const struct gw_call *call);
/* How long registers of that id are of use, to whichever side writes them. */
int64_t gw_calls_keep_until(const struct gw_calls *desk, const struct bus_id *id,
                            int64_t deadline_ms);
bool gw_call_is_keyed(const struct gw_call *call);
void gw_call_add_caller(struct gw_call *call, struct gw_caller *caller);
void gw_call_take_caller(struct gw_caller *caller);
/* The provider that was asked has a place again. */
void gw_send_release(struct gw_call *call);
void gw_call_report_admitted(struct gw_call *call, bool is_joined);
/* Tells every caller what the register holds, and is gone. */
void gw_call_end(struct gw_call *call, struct peg__blob *blob);
/* Tells every caller that it is not admitted, or not waited for any longer, and is gone. */
void gw_call_refuse(struct gw_call *call, enum wire_error error, peg_str message,
                    int64_t retry_after_ms);
/* Random ids say whether only loops of this node ask for their registers. */
bool gw_calls_random_id(struct gw_calls *desk, bool is_node_local, struct bus_id *ret_id);
static inline bool gw_id_is_node_local(const struct bus_id *id)
{
    return id->len == 16 && (id->bytes[15] & 1);
}
uint64_t gw_calls_random(struct gw_calls *desk);
/* The one call that a desk drives under an id; others may have joined it, or be about to. */
struct gw_call *gw_calls_coordinated(const struct gw_calls *desk, const struct bus_id *id);

/* A value that nobody else writes: "incarnation 9f86d081884c7d65.0 17". */
struct peg__blob *gw_calls_claim_token(struct gw_calls *desk, const char *who);
/* Whose mark it is: its first word, or "" for one that is none; and the address in it. */
peg_str gw_claim_token_owner(const struct peg__blob *mark, struct bus_address *ret_address);
#define GW_REVOKED "revoked"
/* In place of the attempt that would be next: there is none, the call was never started. */
#define GW_ENDED "ended"
/* Is it a driver's, not a provider's? */
bool gw_claim_token_is_coordinator(peg_str who);

/* ---- quota.c: whose calls take how much of what a loop has ---- */

peg_status gw_quotas_init(struct gw_calls *calls) PEG_MUST_USE; /* PEG_ENOMEM */
void gw_quotas_destroy(struct gw_calls *calls);
/* The key of a principal's quotas; 0 without authentication. */
uint16_t gw_calls_quota_key(const struct gw_calls *calls, peg_str principal);
/* Of the owner of a toolset, for messages. */
uint64_t gw_calls_owner_hash(const struct gw_calls *calls, const struct gw_toolset *toolset);
/* Why one more call, with so much of a large request, may not begin; NULL: there is room. */
const char *gw_quota_reject_call(const struct gw_calls *calls, uint16_t key, size_t large_bytes);
/* Is there room for one who begins nothing, and waits for a call that stands? */
bool gw_quota_has_wait(const struct gw_calls *calls, uint16_t key);
/* Likewise for a provider, for a call that one lists, and for one who watches, with so many. */
const char *gw_quota_reject_provider(const struct gw_calls *calls, uint16_t key);
const char *gw_quota_reject_report(const struct gw_calls *calls, uint16_t key);
const char *gw_quota_reject_watch(const struct gw_calls *calls, uint16_t key);
/* One that goes gives back what it took. */
void gw_quota_count_call(const struct gw_call *call, bool is_here);
void gw_quota_take_bytes(struct gw_call *call, size_t large_bytes);

/* ---- admit.c: known, valid, healthy, named ---- */

void gw_admit_checked(struct gw_call *call);
/* The call that it had joined is forgotten, as one that nobody could run is: it asks for itself. */
void gw_admit_again(struct gw_call *call);
/* A little before a caller's own deadline. */
int64_t gw_give_up_ns(int64_t now_ns, int64_t deadline_ns);

/* ---- ask_digest.c: is it the same call? ---- */

/* Of the tool and of the payload without white space between its values. False: no memory. */
bool gw_ask_digest(const struct gw_ask *ask, unsigned char ret_digest[32]);

/* ---- check.c: payloads against schemas ---- */

/* Does the JSON text, of this name, fit? PEG_OK; PEG_ESCHEMA, PEG_EPARSE with words in desk->text;
 * PEG_ELIMIT: it takes long, so if the desk has a loop ask a worker. PEG_ENOMEM: there are no words
 * about it. */
peg_status gw_check_now(struct gw_calls *desk, peg_schema *schema, peg_str json, const char *name);
/* The same on a worker for what is large; `done` comes on the loop, `words` borrowed. NULL: no
 * memory, and `done` will not come. */
struct gw_check *gw_check_start(struct gw_calls *desk, peg_schema *schema, struct peg__blob *keep,
                                peg_str json,
                                void (*done)(void *user, peg_status status, peg_str words),
                                void *user);
/* Likewise a response as gw_provider_result() takes it: its result, unless that is "", and the data
 * of all its server-data. Both lie in `keep`. */
struct gw_check_answer {
    peg_str response;
    peg_str result;
    uint16_t account; /* for which `keep` is counted until it is read */
};
struct gw_check *gw_check_start_answer(struct gw_calls *desk, peg_schema *schema,
                                       struct peg__blob *keep, const struct gw_check_answer *answer,
                                       void (*done)(void *user, peg_status status, peg_str words),
                                       void *user);
/* `done` does not come any more. */
void gw_check_forget(struct gw_check *check);

/* ---- send.c ---- */

/* To the best provider, as the next attempt; refuses or ends the call if there is none. */
void gw_send(struct gw_call *call);
/* The same attempt once more. */
void gw_send_again(struct gw_call *call);
/* Whoever was asked does not run it, and it is proven: somebody else may. */
void gw_send_elsewhere(struct gw_call *call);
void gw_send_on_nak(struct gw_call *call, const struct bus_message *letter);

/* ---- settle.c: whatever does not complete by itself ---- */

void gw_settle_on_deadline(struct net_timer *timer);
/* reason: BUS_CANCELED, BUS_DEADLINE. */
void gw_settle(struct gw_call *call, enum bus_reason reason);
/* Writes this terminal, and tells what stands then. */
void gw_settle_with(struct gw_call *call, const struct gw_outcome *terminal);
/* The attempt is proven not to have started, while the call is being ended. */
void gw_settle_unstarted(struct gw_call *call);
/* It was started, and nobody knows how it ended: sent elsewhere if it may be, else told. */
void gw_settle_unknown(struct gw_call *call, const char *why);
/* The same, told in any case. */
void gw_settle_lost(struct gw_call *call, const char *why);
/* A holder says that his provider has it. */
void gw_settle_on_have(struct gw_call *call, const struct bus_message *letter);
/* Takes the right to start the current attempt back, to end the call or to ask somebody else. */
void gw_settle_revoke(struct gw_call *call);

/* ---- look.c: hints get lost, registers do not ---- */

void gw_recheck_soon(struct gw_call *call);
void gw_recheck_now(struct gw_call *call);
void gw_recheck_on_timer(struct net_timer *timer);
void gw_recheck_on_unknown(struct gw_call *call, const struct bus_message *letter);
void gw_recheck_on_lost(struct gw_call *call, const struct bus_message *letter);
/* What stands as its terminal is not to be told before its letter had time to come, and is seen for
 * the first time: gw_recheck_soon(). */
bool gw_recheck_awaits_message(struct gw_call *call, const struct peg__blob *standing);
/* The attempt is that provider's. */
void gw_recheck_follow(struct gw_call *call, peg_str who);

/* ---- join.c ---- */

/* Another call has this identity: 'c' tells whose. */
void gw_follow(struct gw_call *call, struct peg__blob *blob);
/* It wants to be told, too; then it looks. */
void gw_follow_add_waiter(struct gw_call *call);
/* Its driver seems to be gone. */
void gw_follow_take_over(struct gw_call *call);
/* What stands as 'c': is it what it has joined? If not, it joins that, or asks for itself. */
bool gw_follow_is_same(const struct gw_call *call, const struct peg__blob *named);
void gw_follow_again(struct gw_call *call, struct peg__blob *named);
/* Its time is over before it is known whose it is. */
void gw_follow_reject_unanswered(struct gw_call *call);

/* ---- output.c: what tools say meanwhile ---- */

bool gw_output_is_wanted(const struct gw_call *call);
/* Whoever has joined asks its driver for them. */
void gw_output_listen(struct gw_call *call);
void gw_output_on_message(struct gw_calls *desk, const struct bus_message *letter);
void gw_output_on_listener(struct gw_calls *desk, const struct bus_message *letter);

/* ---- done.c: what holders tell drivers and joiners, and drivers joiners ---- */

void gw_done_on_message(struct gw_calls *desk, const struct bus_message *letter);

/* ---- astray.c: letters that outlive their call ---- */

/* Somebody tells its driver that he does not start it, has it already (BUS_DUPLICATE), or has run
 * it: one letter less may arrive, if he got one. */
void gw_outstanding_answer(struct gw_call *call, const struct bus_message *letter);
/* The call is about to go, its registers are of no use, and there are some. */
void gw_outstanding_count(const struct gw_call *call);
/* A letter to a driver that is not here any more. */
void gw_outstanding_on_answer(struct gw_calls *desk, const struct bus_message *letter);
void gw_outstanding_free(struct gw_calls *desk);

/* ---- leave.c: callers who go; gw_caller_drop() and its like are in desk.h ---- */

void gw_leave_on_waiting(struct gw_calls *desk, const struct bus_message *letter);
void gw_leave_on_left(struct gw_calls *desk, const struct bus_message *letter);
void gw_leave_on_keep(struct gw_calls *desk, const struct bus_message *letter);

/* What 'c' holds. */
struct gw_named {
    unsigned char digest[32];
    struct bus_address driver;
    int64_t deadline_ms;
    uint64_t epoch;
    peg_str principal; /* borrowed */
};
bool gw_named_read(const struct peg__blob *blob, struct gw_named *ret_named);

#endif
