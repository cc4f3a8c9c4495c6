/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_CALL_H
#define PEG_CALLS_CALL_H

/*
 * A call at the loop of its caller: coordinated from there, or followed if another loop coordinates
 * it. What may be pending for it is all in this struct, and calls_call_drop() is right in any
 * state.
 *
 *                 admit.c        send.c        settle.c
 *   CHECKING -> ADMITTING -> SENT <----> REVOKING -> GRACE -> ENDING -> (gone)
 *                   |                                            ^
 *     RESOLVING ----+-> FOLLOWING (follow.c) --------------------+
 *
 * An outcome that is found in its register ends it in any step.
 */

#include "base/limits.h"
#include "calls/calls.h"

enum calls_step {
    CALLS_CHECKING,  /* a worker reads its payload */
    CALLS_ADMITTING, /* asks to be the one that decides about this identity */
    CALLS_RESOLVING, /* known by its id only: asks whose it is, and until then is told nothing */
    CALLS_FOLLOWING, /* somebody else decides */
    CALLS_SENT,      /* a provider was asked to run it */
    CALLS_REVOKING,  /* takes the right to start it back */
    CALLS_GRACE,     /* canceled, but it runs: its provider may end it */
    CALLS_ENDING,    /* writes an outcome of its own */
};

/* What is being looked at, one after the other. */
enum calls_recheck {
    CALLS_RECHECK_NONE,
    CALLS_RECHECK_OUTCOME,    /* has it ended? */
    CALLS_RECHECK_IDENTITY,   /* joined: is it still the same call? */
    CALLS_RECHECK_OWNER,      /* has anybody claimed the attempt? */
    CALLS_RECHECK_LEASE,      /* is that one alive? */
    CALLS_RECHECK_LOST,       /* he is not: has it ended after all? */
    CALLS_RECHECK_UNREPORTED, /* he does not know of it: has it ended? */
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): its members stand where they are read
struct calls_call {
    struct calls_entry entry; /* its id; the first member */
    struct calls_loop *calls;
    struct calls_call *next; /* the loop's list */
    struct calls_call *prev;
    enum calls_step step;
    struct calls_caller *callers;
    bool is_detached; /* goes on without callers */
    bool is_admitted; /* counted as such */
    bool has_notified_admitted;

    /* what is asked for; no tool: whoever only awaits it does not know */
    struct calls_toolset *toolset;
    const struct calls_tool *tool;
    struct peg__blob
        *request;       /* a packed pegboard.v1.Call, see calls_provider_events; RESOLVING: who */
    peg_str payload;    /* in it */
    size_t large_bytes; /* that it takes of the room for large requests */
    uint16_t account;   /* whose it is; 0: shares are no matter */
    struct peg__blob *identity; /* what it writes, or has read, as 'c' */
    bool has_digest;            /* it is known what is asked for: */
    unsigned char digest[32];
    const char *why_not; /* it may join, and not begin; NULL: it may */
    int64_t begun_ns;
    int64_t deadline_ms;
    int64_t deadline_ns;
    struct calls_meter *meter;

    /* the attempt that is current; 0: none yet */
    uint32_t attempt;
    unsigned n_sent;     /* messages with it */
    uint64_t sent_epoch; /* of the first of them */
    char incarnation[65];
    struct bus_address provider_side;
    bool has_slot; /* counted in the entry of its provider */
    struct calls_refusals refusals;
    enum bus_reason refusal; /* the last one's; note_reason() says which counts more */
    bool met_outdated;       /* somebody had another version of the toolset */
    bool was_unknown;        /* another node said that its provider does not have this attempt */
    bool may_have_run;       /* an attempt before this one, of a tool that may be started again */
    /* It was asked for before, and if nothing stands here of it, it began under registers that are
     * gone, and its provider may run it still. */
    bool may_run_elsewhere;
    unsigned n_outstanding; /* messages of all attempts that may still arrive somewhere */
    uint32_t answered;      /* a bit for each attempt that who had the right to it has answered */
    bool is_closed;         /* nobody can make another attempt */

    /* joined */
    struct bus_address coordinator;
    struct bus_address identity_coordinator; /* the one that 'c' tells, whoever took its place */
    uint64_t identity_epoch;
    uint32_t walk;      /* attempt that is looked at, to take it over */
    bool is_owner_lost; /* a provider that had one of the attempts before it */
    bool is_reported;   /* among those who wait for it */

    /* what may be pending */
    enum bus_reason ending;       /* why it is being ended; BUS_NO_REASON: it is not */
    struct peg__blob *outcome;    /* ENDING: to be written */
    struct peg__blob *token;      /* REVOKING: likewise */
    struct bus_wait wait;         /* of the step */
    struct bus_wait recheck_wait; /* of looking after it */
    enum calls_recheck recheck;
    bool must_recheck;  /* again, when this is over */
    bool has_waited;    /* before it looked */
    bool has_seen_end;  /* that is written, and has waited for the message with it */
    bool has_heard_end; /* by a message that only tells to look */
    unsigned n_rechecks;
    struct bus_wait post; /* was the message received? */
    struct bus_wait waiters;
    struct net_timer deadline;
    struct net_timer again; /* looks, or tries once more */
    struct net_timer away;  /* its caller was lost, and has so long to come back */
    struct calls_check *check;
    uint64_t notified; /* number of the message that it has heard */
    /* Without callers: the number of the question whether others wait, and who has to answer. */
    uint64_t question;
    unsigned n_queried;
    struct calls_listeners *listeners; /* loops that hear its outputs; NULL: none does */
};

/* ---- call.c: its life ---- */

struct calls_call *calls_call_new(struct calls_loop *calls, const struct bus_id *id,
                                  uint16_t account);
void calls_call_drop(struct calls_call *call);
struct bus_key calls_call_key(const struct calls_call *call, char what, uint32_t n);
int64_t calls_call_keep_until(const struct calls_call *call);
/* How long registers of that id are of use, to whichever side writes them. */
int64_t calls_keep_until(const struct calls_loop *calls, const struct bus_id *id,
                         int64_t deadline_ms);
bool calls_call_is_keyed(const struct calls_call *call);
void calls_call_add_caller(struct calls_call *call, struct calls_caller *caller);
void calls_call_take_caller(struct calls_caller *caller);
/* The provider that was asked has a place again. */
void calls_send_release(struct calls_call *call);
void calls_call_report_admitted(struct calls_call *call, bool is_follower);
/* Tells every caller what the register has, and is gone. */
void calls_call_end(struct calls_call *call, struct peg__blob *blob);
/* Tells every caller that it is not admitted, or not waited for any longer, and is gone. */
void calls_call_refuse(struct calls_call *call, enum calls_error error, peg_str message,
                       int64_t retry_after_ms);
/* Random ids say whether only loops of this node ask for their registers. */
bool calls_random_id(struct calls_loop *calls, bool is_node_local, struct bus_id *ret_id);
static inline bool calls_id_is_node_local(const struct bus_id *id)
{
    return id->len == 16 && (id->bytes[15] & 1);
}
/* The one call that a loop coordinates under an id; others may have joined it, or be about to. */
struct calls_call *calls_coordinated(const struct calls_loop *calls, const struct bus_id *id);

/* A value that nobody else writes: "incarnation 9f86d081884c7d65.0 17". */
struct peg__blob *calls_claim_token(struct calls_loop *calls, const char *who);
/* Whose token it is: its first word, or "" for one that is none; and the address in it. */
peg_str calls_claim_token_owner(const struct peg__blob *token, struct bus_address *ret_address);
#define CALLS_TOKEN_REVOKED "revoked"
/* In place of the attempt that would be next: there is none, the call was never started. */
#define CALLS_TOKEN_ENDED "ended"
/* Is it a coordinator's, not a provider's? */
bool calls_claim_token_is_coordinator(peg_str who);

/* ---- quota.c: whose calls take how much of what a loop has ---- */

peg_status calls_quotas_init(struct calls_loop *calls) PEG_MUST_USE; /* PEG_ENOMEM */
void calls_quotas_destroy(struct calls_loop *calls);
/* The key of a principal's quotas; 0 without authentication. */
uint16_t calls_quota_key(const struct calls_loop *calls, peg_str principal);
/* Of the owner of a toolset, for messages. */
uint64_t calls_owner_hash(const struct calls_loop *calls, const struct calls_toolset *toolset);
/* Why one more call, with so much of a large request, may not begin; NULL: there is room. */
const char *calls_quota_reject_call(const struct calls_loop *calls, uint16_t key,
                                    size_t large_bytes);
/* Is there room for one who begins nothing, and waits for a call that stands? */
bool calls_quota_has_wait(const struct calls_loop *calls, uint16_t key);
/* Likewise for a provider, for a call that one lists, and for one who watches, with so many. */
const char *calls_quota_reject_provider(const struct calls_loop *calls, uint16_t key);
const char *calls_quota_reject_report(const struct calls_loop *calls, uint16_t key);
const char *calls_quota_reject_watch(const struct calls_loop *calls, uint16_t key);
/* One that goes gives back what it took. */
void calls_quota_count_call(const struct calls_call *call, bool is_here);
void calls_quota_take_bytes(struct calls_call *call, size_t large_bytes);

/* ---- admit.c: known, valid, healthy, named ---- */

void calls_admit_checked(struct calls_call *call);
/* The call that it had joined is forgotten, as one that nobody could run is: it asks for itself. */
void calls_admit_again(struct calls_call *call);
/* A little before a caller's own deadline. */
int64_t calls_give_up_ns(int64_t now_ns, int64_t deadline_ns);

/* ---- request_digest.c: is it the same call? ---- */

/* Of the tool and of the payload without white space between its values. False: no memory. */
bool calls_request_digest(const struct calls_request *request, unsigned char ret_digest[32]);

/* ---- check.c: payloads against schemas ---- */

/* Does the JSON text, of this name, fit? PEG_OK; PEG_ESCHEMA, PEG_EPARSE with words in loop->text;
 * PEG_ELIMIT: it takes long, so if the loop has a loop ask a worker. PEG_ENOMEM: there are no words
 * about it. */
peg_status calls_check_now(struct calls_loop *calls, peg_schema *schema, peg_str json,
                           const char *name);
/* The same on a worker for what is large; `done` comes on the loop, `words` borrowed. NULL: no
 * memory, and `done` will not come. */
struct calls_check *calls_check_start(struct calls_loop *calls, peg_schema *schema,
                                      struct peg__blob *keep, peg_str json,
                                      void (*done)(void *user, peg_status status, peg_str words),
                                      void *user);
/* Likewise a response as calls_provider_result() takes it: its result, unless that is "", and the
 * data of all its server-data. Both lie in `keep`. */
struct calls_check_answer {
    peg_str response;
    peg_str result;
    uint16_t account; /* for which `keep` is counted until it is read */
};
struct calls_check *
calls_check_start_answer(struct calls_loop *calls, peg_schema *schema, struct peg__blob *keep,
                         const struct calls_check_answer *answer,
                         void (*done)(void *user, peg_status status, peg_str words), void *user);
/* `done` does not come any more. */
void calls_check_forget(struct calls_check *check);

/* ---- send.c ---- */

/* To the best provider, as the next attempt; refuses or ends the call if there is none. */
void calls_send(struct calls_call *call);
/* The same attempt once more. */
void calls_send_again(struct calls_call *call);
/* Whoever was asked does not run it, and it is proven: somebody else may. */
void calls_send_elsewhere(struct calls_call *call);
void calls_send_on_nak(struct calls_call *call, const struct bus_message *message);

/* ---- settle.c: whatever does not complete by itself ---- */

void calls_settle_on_deadline(struct net_timer *timer);
/* reason: BUS_CANCELED, BUS_DEADLINE. */
void calls_settle(struct calls_call *call, enum bus_reason reason);
/* Writes this outcome, and tells what stands then. */
void calls_settle_with(struct calls_call *call, const struct calls_outcome *outcome);
/* The attempt is proven not to have started, while the call is being ended. */
void calls_settle_unstarted(struct calls_call *call);
/* It was started, and nobody knows how it ended: sent elsewhere if it may be, else told. */
void calls_settle_unknown(struct calls_call *call, const char *why);
/* The same, told in any case. */
void calls_settle_lost(struct calls_call *call, const char *why);
/* A provider side says that his provider has it. */
void calls_settle_on_have(struct calls_call *call, const struct bus_message *message);
/* Takes the right to start the current attempt back, to end the call or to ask somebody else. */
void calls_settle_revoke(struct calls_call *call);

/* ---- recheck.c: hints get lost, registers do not ---- */

void calls_recheck_soon(struct calls_call *call);
void calls_recheck_now(struct calls_call *call);
void calls_recheck_on_timer(struct net_timer *timer);
void calls_recheck_on_unknown(struct calls_call *call, const struct bus_message *message);
void calls_recheck_on_lost(struct calls_call *call, const struct bus_message *message);
/* What stands as its outcome is not to be told before its message had time to come, and is seen for
 * the first time: calls_recheck_soon(). */
bool calls_recheck_awaits_message(struct calls_call *call, const struct peg__blob *standing);
/* The attempt is that provider's. */
void calls_recheck_follow(struct calls_call *call, peg_str who);

/* ---- follow.c ---- */

/* Another call has this identity: 'c' tells whose. */
void calls_follow(struct calls_call *call, struct peg__blob *blob);
/* It wants to be told, too; then it looks. */
void calls_follow_add_waiter(struct calls_call *call);
/* Its coordinator seems to be gone. */
void calls_follow_take_over(struct calls_call *call);
/* What stands as 'c': is it what it has joined? If not, it joins that, or asks for itself. */
bool calls_follow_is_same(const struct calls_call *call, const struct peg__blob *identity);
void calls_follow_again(struct calls_call *call, struct peg__blob *identity);
/* Its time is over before it is known whose it is. */
void calls_follow_reject_unanswered(struct calls_call *call);

/* ---- output.c: what tools say meanwhile ---- */

bool calls_output_is_wanted(const struct calls_call *call);
/* Whoever has joined asks its coordinator for them. */
void calls_output_listen(struct calls_call *call);
void calls_output_on_message(struct calls_loop *calls, const struct bus_message *message);
void calls_output_on_listener(struct calls_loop *calls, const struct bus_message *message);

/* ---- done.c: what provider sides tell coordinators and joiners, and coordinators joiners ---- */

void calls_done_on_message(struct calls_loop *calls, const struct bus_message *message);

/* ---- outstanding.c: messages that outlive their call ---- */

/* Somebody tells its coordinator that he does not start it, has it already (BUS_DUPLICATE), or has
 * run it: one message less may arrive, if he got one. */
void calls_outstanding_answer(struct calls_call *call, const struct bus_message *message);
/* The call is about to go, its registers are of no use, and there are some. */
void calls_outstanding_count(const struct calls_call *call);
/* A message to a coordinator that is not here any more. */
void calls_outstanding_on_answer(struct calls_loop *calls, const struct bus_message *message);
void calls_outstanding_free(struct calls_loop *calls);

/* ---- leave.c: callers who go; calls_caller_drop() and its like are in calls.h ---- */

void calls_leave_on_waiting(struct calls_loop *calls, const struct bus_message *message);
void calls_leave_on_left(struct calls_loop *calls, const struct bus_message *message);
void calls_leave_on_keep(struct calls_loop *calls, const struct bus_message *message);

/* What 'c' has. */
struct calls_identity {
    unsigned char digest[32];
    struct bus_address coordinator;
    int64_t deadline_ms;
    uint64_t epoch;
    peg_str principal; /* borrowed */
};
bool calls_identity_read(const struct peg__blob *blob, struct calls_identity *ret_identity);

#endif
