/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_MACHINE_COORDINATOR_H
#define PEG_CALLS_MACHINE_COORDINATOR_H

/*
 * One call at the node of its callers, as a machine: an event goes in, actions come out. It calls
 * neither the bus nor a timer nor a caller; run_call.c executes its actions and feeds it what comes
 * of them. The same machine coordinates a call and follows one that another node coordinates,
 * because each may become the other.
 *
 * At most one request to the bus is pending for a machine: the one of its state, or of its recheck.
 * A new request replaces it.
 */

#include "base/limits.h"
#include "bus/bus.h"
#include "calls/environment.h"
#include "calls/value.h"

/* ---- states ---- */

/* What each is, its name, and the states that may follow it. Debug builds assert that, tests cover
 * each transition, and tools/draw-states draws docs/walks/call.md from this list. */
#define CALLS_COORDINATOR_STATES(X)                                                                \
    /* its payload is being validated */                                                           \
    X(CHECKING, "checking", ADMITTING | PEEKING | LOCATING | CHOOSING | OVER)                      \
    /* writes the identity: one decision for each */                                               \
    X(ADMITTING, "admitting", PEEKING | CHOOSING | CLOSING | LISTING | OVER)                       \
    /* reads the identity: it may attach, and not begin */                                         \
    X(PEEKING, "peeking", LISTING | OVER)                                                          \
    /* reads the identity of an id: await or stop */                                               \
    X(LOCATING, "locating", LISTING | OVER)                                                        \
    /* asks for a provider */                                                                      \
    X(CHOOSING, "choosing", SENT | CLOSING | WRITING | OVER)                                       \
    /* a provider was asked to run the attempt */                                                  \
    X(SENT, "sent", CHOOSING | REVOKING | CLOSING | WRITING | UNLISTED | OVER)                     \
    /* takes the right to start the attempt back */                                                \
    X(REVOKING, "revoking", CHOOSING | SENT | TELLING | CLOSING | WRITING | UNLISTED | OVER)       \
    /* canceled, but it runs: finds its provider to tell it */                                     \
    X(TELLING, "telling", GRACE | CLOSING | WRITING | OVER)                                        \
    /* the provider may end it by itself */                                                        \
    X(GRACE, "grace", GIVING_UP | CLOSING | WRITING | OVER)                                        \
    /* finds the provider a last time */                                                           \
    X(GIVING_UP, "giving up", CLOSING | WRITING | OVER)                                            \
    /* takes the attempt that would be next: there is none */                                      \
    X(CLOSING, "closing", WRITING | UNLISTED)                                                      \
    /* writes an outcome of its own */                                                             \
    X(WRITING, "writing", NOTIFYING | OVER)                                                        \
    /* reads who else waits for that outcome */                                                    \
    X(NOTIFYING, "notifying", OVER)                                                                \
    /* another node coordinates: adds itself to the waiters */                                     \
    X(LISTING, "listing", GLANCING | UNLISTED | FOLLOWING | OVER)                                  \
    /* no room in that list: reads the outcome at once */                                          \
    X(GLANCING, "glancing", COMPARING | UNLISTED | OVER)                                           \
    /* is that outcome of the same call? */                                                        \
    X(COMPARING, "comparing", CHECKING | LISTING | UNLISTED | OVER)                                \
    /* pauses before it asks to be listed again */                                                 \
    X(UNLISTED, "unlisted", LISTING | OVER)                                                        \
    /* waits for the outcome */                                                                    \
    X(FOLLOWING, "following", CHECKING | LISTING | WALKING | OVER)                                 \
    /* the coordinator is lost: reads who has an attempt */                                        \
    X(WALKING, "walking", FOLLOWING | PROBING | TAKING | CONFIRMING | OVER)                        \
    /* is the owner of that attempt alive? */                                                      \
    X(PROBING, "probing", CHOOSING | WRITING | FOLLOWING | WALKING | OVER)                         \
    /* takes the open attempt, and with it the call */                                             \
    X(TAKING, "taking", FOLLOWING | CONFIRMING | OVER)                                             \
    /* is the identity still that call's? */                                                       \
    X(CONFIRMING, "confirming", CHOOSING | CLOSING | WRITING | OVER)                               \
    /* its callers have its outcome */                                                             \
    X(OVER, "over", 0)

#define CALLS_STATE(name, text, next) CALLS_##name,
enum calls_state { CALLS_COORDINATOR_STATES(CALLS_STATE) CALLS_N_STATES };

extern const char *const calls_state_names[];
/* Is the transition in the list? Staying is. */
bool calls_state_may_become(enum calls_state from, enum calls_state to);

/* Does another node coordinate the call, or is that not known yet? */
static inline bool calls_state_follows(enum calls_state state)
{
    return state >= CALLS_LISTING && state <= CALLS_CONFIRMING;
}

/* Tests count the steps of machines here; NULL: nothing is counted. */
extern void (*calls_on_step)(enum calls_state from, int event, enum calls_state to);

/* ---- events ---- */

enum calls_event_kind {
    CALLS_ADMIT,       /* the payload is valid: `bar` */
    CALLS_LOCATE,      /* known by its id alone */
    CALLS_ANSWER,      /* of the pending request: `answer` */
    CALLS_TIMER,       /* the one that CALLS_ARM armed */
    CALLS_PROVIDER,    /* of CALLS_CHOOSE or CALLS_FIND: `address`, `incarnation` */
    CALLS_NO_PROVIDER, /* likewise: there is none */
    CALLS_UNRECEIVED,  /* no loop received the message that was sent last */
    CALLS_MESSAGE,     /* `message`: NAK, HAVE, LOST or DONE */
    CALLS_DEADLINE,
    CALLS_CANCEL,
    CALLS_RESET, /* messages and answers may have been lost */
    CALLS_N_EVENTS,
};

/* Why a call may attach to one of its identity and not begin. */
enum calls_bar {
    CALLS_NO_BAR,
    CALLS_BAR_UNHEALTHY,
    CALLS_BAR_DRAINING,
    CALLS_BAR_QUOTA,
    CALLS_BAR_ASKED_BEFORE, /* under registers that are gone: it may run still */
    CALLS_BAR_FULL,         /* no room for its identity */
    CALLS_BAR_NO_MEMORY,
};

struct calls_event {
    enum calls_event_kind kind;
    /* facts, in every event */
    int64_t now_ms;
    uint64_t epoch;
    struct bus_address self;
    int64_t grace_ms;
    int64_t keep_until_ms; /* of its registers */
    bool is_fenced;
    bool wants_output; /* a caller does */
    /* of one kind */
    enum calls_bar bar;
    const struct bus_answer *answer;
    bool is_own_token; /* answer->current is what this call has written */
    bool is_owner;     /* answer->current names the principal that asks */
    const struct bus_message *message;
    struct bus_address address;
    const char *incarnation;
};

/* ---- actions ---- */

enum calls_action_kind {
    CALLS_NO_ACTION,
    CALLS_PUT_IDENTITY,
    CALLS_PUT_REVOKED, /* as the claim of attempt `n` */
    CALLS_PUT_ENDED,   /* likewise */
    CALLS_PUT_RESULT,  /* the outcome of `why` */
    CALLS_READ,        /* register `what`, `n` */
    CALLS_READ_LEASE,  /* of the provider */
    CALLS_READ_NODE,   /* the lease of the coordinator */
    CALLS_READ_OWNER,  /* of the provider whose claim token answer->current is */
    CALLS_LIST,        /* adds this loop to the waiters */
    CALLS_READ_WAITERS,
    CALLS_ARM, /* `n` milliseconds */
    CALLS_DISARM,
    CALLS_CHOOSE,  /* the best provider */
    CALLS_FIND,    /* the provider that has the attempt, if it may still run it */
    CALLS_RELEASE, /* the provider has a place again */
    CALLS_SEND_CALL,
    CALLS_SEND_CANCEL, /* `reason` */
    CALLS_SEND_ASK,
    CALLS_SEND_LISTEN,  /* to the coordinator, if a caller wants outputs */
    CALLS_SEND_STOP,    /* to the coordinator; its caller is answered */
    CALLS_SEND_OUTCOME, /* to the addresses in the answer */
    CALLS_REPORT_ADMITTED,
    CALLS_REPORT_FOLLOWING,
    CALLS_READMIT,     /* a new identity value, then CALLS_ADMIT */
    CALLS_KEEP,        /* answer->current as the outcome */
    CALLS_COORDINATE,  /* this node has taken the call over: its deadline is due here */
    CALLS_END_CURRENT, /* callers get what the register holds: answer->current, or the message's */
    CALLS_END_OWN,     /* callers get the outcome of `why`, or the one that was kept */
    CALLS_REJECT,      /* callers get `why`, and nothing was written */
    CALLS_N_ACTIONS,
};

/* How a call ends that does not complete, and what its callers read: messages in reject.c. */
enum calls_why {
    CALLS_NO_WHY,
    /* rejected: nothing was begun for this caller */
    CALLS_WHY_BARRED, /* by `bar` */
    CALLS_WHY_UNSTARTED,
    CALLS_WHY_UNREAD,
    CALLS_WHY_UNANSWERED,
    CALLS_WHY_UNSETTLED,
    CALLS_WHY_UNKNOWN_CALL,
    CALLS_WHY_OTHER_VERSION,
    CALLS_WHY_OTHER_REQUEST,
    CALLS_WHY_WAIT_OVER,
    CALLS_WHY_COORDINATOR_LOST,
    /* settled */
    CALLS_WHY_NO_PROVIDER,
    CALLS_WHY_FORGOTTEN, /* for want of a provider, as far as a follower can tell */
    CALLS_WHY_TIMEOUT,
    CALLS_WHY_CANCELED,
    /* settled as unknown */
    CALLS_WHY_RAN_LATE,
    CALLS_WHY_RAN_CANCELED,
    CALLS_WHY_PROVIDER_LOST,
    CALLS_WHY_NOBODY_ELSE,
    CALLS_WHY_PROVIDER_MOVED,
    CALLS_WHY_NODE_LOST,
    CALLS_WHY_STATE_LOST,
    CALLS_WHY_HALTED,
    CALLS_WHY_NO_ROOM,
    CALLS_N_WHY,
};

struct calls_action {
    enum calls_action_kind kind;
    enum calls_why why;
    enum bus_reason reason;
    char what;
    uint32_t n;
};

/* More than any event needs: the tests of the table reach four. */
enum { CALLS_MAX_ACTIONS = 6 };

struct calls_actions {
    unsigned n;
    struct calls_action list[CALLS_MAX_ACTIONS];
};

/* ---- the machine ---- */

enum calls_origin {
    CALLS_STARTS,   /* has a request: may begin, and take over */
    CALLS_ATTACHES, /* has a digest, and no quota to begin */
    CALLS_AWAITS,   /* has an id */
    CALLS_STOPS,    /* likewise, to cancel the call */
};

/* What to read after silence, one after the other. */
enum calls_recheck {
    CALLS_RECHECK_NONE,
    CALLS_RECHECK_RESULT,   /* has it ended? */
    CALLS_RECHECK_IDENTITY, /* following: is it still the same call? */
    CALLS_RECHECK_CLAIM,    /* is the attempt claimed? */
    CALLS_RECHECK_LEASE,    /* is that provider, or the coordinator, alive? */
    CALLS_RECHECK_LOST,     /* it is not: has the call ended after all? */
};

/* What the call knows of an outcome that it has not reported yet. */
enum calls_end_seen {
    CALLS_END_UNSEEN,
    CALLS_END_HEARD, /* a message said so */
    CALLS_END_READ,  /* in its register; the message with it may be under way */
};

struct calls_machine {
    const struct calls_event *event; /* of this step */
    struct calls_actions *out;
    enum calls_state state;
    enum calls_recheck recheck;
    enum calls_origin origin;
    enum calls_bar bar;
    enum bus_reason ending; /* BUS_DEADLINE, BUS_CANCELED; BUS_NO_REASON: it goes on */
    enum calls_why why;     /* CLOSING, WRITING, NOTIFYING: the outcome */
    struct bus_id id;
    int64_t deadline_ms; /* cluster time; following: the other coordinator's */
    unsigned char digest[32];
    /* Not states: each holds in several of them, and each is read once, much later. */
    bool is_idempotent; /* the tool may be started again */
    bool may_have_run;  /* an attempt before this one */
    bool was_unknown;   /* a loop that was asked does not know this attempt */
    bool is_owner_lost; /* a provider that had one of the attempts walked over */
    bool must_recheck;  /* again, when this recheck is over */
    enum calls_end_seen end_seen;
    unsigned n_rechecks;

    /* the current attempt; 0: none yet */
    uint32_t attempt;
    unsigned n_sent;     /* messages with it */
    uint64_t sent_epoch; /* of the first of them */
    char incarnation[65];
    struct bus_address address; /* of the provider */
    struct calls_refusals refusals;
    enum bus_reason refusal; /* the reason among them that counts most */

    /* messages that may still arrive: registers stay until then */
    unsigned n_outstanding;
    uint32_t answered; /* a bit for each attempt whose claimer has answered */

    /* following */
    struct calls_identity identity;
    struct bus_address coordinator; /* now: it may have taken over from identity.coordinator */
    uint32_t walk;                  /* the attempt that is read to take the call over */
};

/* `out` is empty. */
void calls_machine_step(struct calls_machine *m, const struct calls_event *event,
                        struct calls_actions *out);

/* Counts the answer to a message with a call; true: it was counted. */
bool calls_count_answer(const struct bus_message *message, uint32_t *answered);

/* ---- between the files of the machine ---- */

/* Handles m->event. */
typedef void calls_handler(struct calls_machine *m);

/* sent.c */
calls_handler calls_machine_provider, calls_handle_message, calls_handle_unreceived;
calls_handler calls_machine_settle; /* a deadline, a cancellation */
calls_handler calls_handle_revocation, calls_handle_told, calls_handle_closed;
calls_handler calls_handle_outcome, calls_handle_waiters;
/* recheck.c */
calls_handler calls_machine_rechecked, calls_machine_unknown, calls_machine_lost;
/* follower.c */
calls_handler calls_handle_listed, calls_handle_glance, calls_handle_compared;
calls_handler calls_handle_walked, calls_handle_probed, calls_handle_taken;
calls_handler calls_handle_confirmed, calls_machine_follow, calls_machine_follow_again;
/* Is the identity in answer->current that of the call that is followed? */
bool calls_machine_is_same(const struct calls_machine *m);

/* settle.c */
struct calls_action *calls_act(struct calls_machine *m, enum calls_action_kind kind);
/* Sets the state and asks for what it waits for. */
void calls_enter(struct calls_machine *m, enum calls_state state);
/* Asks again for what the state waits for: now, or after a pause. */
calls_handler calls_request, calls_retry_later;
/* Enters a state that waits, for a while. */
void calls_pause(struct calls_machine *m, enum calls_state state);
calls_handler calls_recheck_soon, calls_recheck_now;
void calls_recheck(struct calls_machine *m, enum calls_recheck recheck);
/* The outcome in answer->current is not reported before its message had time to come. */
bool calls_awaits_message(struct calls_machine *m);
/* `kind`: the action that ends the call. */
void calls_end(struct calls_machine *m, enum calls_action_kind kind, enum calls_why why);
void calls_reject(struct calls_machine *m, enum calls_why why);
void calls_settle_with(struct calls_machine *m, enum calls_why why);
/* This attempt was not started, though one before it may have been: a provider for the next one, or
 * the end of a call that is ending. */
void calls_choose_or_settle(struct calls_machine *m);
/* It was started, and its end is not known: another attempt if the tool allows it. */
void calls_settle_unknown(struct calls_machine *m, enum calls_why why);
/* A follower took the call over: this node follows it. */
void calls_yield(struct calls_machine *m, struct bus_address coordinator);
/* The owner of the claim in answer->current is the provider of the attempt, which an earlier
 * coordinator may have asked. False: it is a follower that took the call over while this node was
 * away; this node follows it. */
bool calls_adopt_claimer(struct calls_machine *m);

#endif
