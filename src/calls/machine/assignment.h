/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_MACHINE_ASSIGNMENT_H
#define PEG_CALLS_MACHINE_ASSIGNMENT_H

/*
 * The machine of one attempt of a call on its provider's side: from the message that brought it, or
 * the Hello that reported it, until its result is written or its coordinator knows that it was not
 * started. It takes an event and returns actions; it calls nothing. provider_side.h has its host.
 */

#include "bus/bus.h"

/* What each state is, its name, and those that may follow it: as CALLS_COORDINATOR_STATES. */
#define CALLS_ASSIGNMENT_STATES(X)                                                                 \
    /* waits until its provider has a place */                                                     \
    X(QUEUED, "queued", CLAIMING | OVER)                                                           \
    /* writes the right to start it */                                                             \
    X(CLAIMING, "claiming", RUNNING | OVER)                                                        \
    /* in its provider's Hello; coordinator not notified */                                        \
    X(REPORTED, "reported", RUNNING | CHECKING_RESULT)                                             \
    /* its provider has it */                                                                      \
    X(RUNNING, "running",                                                                          \
      REPORTED | CHECKING_RESULT | VALIDATING | VERIFYING | RETURNING | READING_DEADLINE |         \
          WRITING | OVER)                                                                          \
    /* reads whether it has ended; its provider has it */                                          \
    X(CHECKING_RESULT, "checking result", RUNNING | CHECKING_CLAIM | CHECKING_ENDED)               \
    /* it has not: reads whose it is */                                                            \
    X(CHECKING_CLAIM, "checking claim", RUNNING)                                                   \
    /* it has: reads whose it was */                                                               \
    X(CHECKING_ENDED, "checking ended", RUNNING)                                                   \
    /* a worker reads its result */                                                                \
    X(VALIDATING, "validating", VERIFYING | READING_DEADLINE | WRITING | OVER)                     \
    /* has a result: reads whether it is its provider's */                                         \
    X(VERIFYING, "verifying", READING_DEADLINE | WRITING | OVER)                                   \
    /* will not start: reads whether it was to start it */                                         \
    X(RETURNING, "returning", OVER)                                                                \
    /* reads how long its result has to be kept */                                                 \
    X(READING_DEADLINE, "reading deadline", WRITING | OVER)                                        \
    /* writes its result */                                                                        \
    X(WRITING, "writing", WRITING_PLACEHOLDER | NOTIFYING | OVER)                                  \
    /* no room for the result: writes a small one */                                               \
    X(WRITING_PLACEHOLDER, "writing placeholder", NOTIFYING | OVER)                                \
    /* reads which loops wait for its result */                                                    \
    X(NOTIFYING, "notifying", WRITING | OVER)                                                      \
    /* nothing is left to do here */                                                               \
    X(OVER, "over", 0)

#define CALLS_ASSIGNMENT_STATE(name, text, next) ASSIGNMENT_##name,
enum calls_assignment_state { CALLS_ASSIGNMENT_STATES(CALLS_ASSIGNMENT_STATE) };

#define CALLS_ASSIGNMENT_EVENTS(X)                                                                 \
    X(ANSWER, "answer")       /* of the bus, to what it asked last */                              \
    X(RETRY, "retry")         /* the time that it armed is over */                                 \
    X(RESET, "reset")         /* the registers may have been lost, and nothing is pending */       \
    X(CANCEL, "cancel")       /* by its coordinator */                                             \
    X(ASK, "ask")             /* by its coordinator: is it here? */                                \
    X(LOST, "lost")           /* its provider did not come back */                                 \
    X(PLACE, "place")         /* its provider has one for it */                                    \
    X(REFUSE, "refuse")       /* its provider takes nothing out of the queue any more */           \
    X(HELLO, "hello")         /* its provider has come back, and lists what it has */              \
    X(LISTED, "listed")       /* it is in that list */                                             \
    X(UNLISTED, "unlisted")   /* it is not, and its provider has been elsewhere meanwhile */       \
    X(NOTIFY, "notify")       /* its coordinator is to learn where it is */                        \
    X(REVIEW, "review")       /* is it still worth its place? */                                   \
    X(OUTPUT, "output")       /* of the tool */                                                    \
    X(GIVE_BACK, "give back") /* its provider has not started it, and will not */                  \
    X(VALIDATE, "validate")   /* a worker begins to read its result */                             \
    X(RESULT, "result")       /* is there, in the form that is written */                          \
    X(DISCARD, "discard")     /* has come, and there is no memory for it */

#define CALLS_ASSIGNMENT_EVENT(name, text) ASSIGNMENT_ON_##name,
enum calls_assignment_event_kind { CALLS_ASSIGNMENT_EVENTS(CALLS_ASSIGNMENT_EVENT) };

/* Where the registers of its id are, and who else may read them. */
enum calls_assignment_scope {
    ASSIGNMENT_SHARED,  /* a random id: its coordinator forgets them when the call ends */
    ASSIGNMENT_KEYED,   /* an identity: they stay, and other loops may wait for the result */
    ASSIGNMENT_LOCAL,   /* on this node, which does not lose them */
    ASSIGNMENT_FOREIGN, /* on another node, out of reach */
};

/* Why its provider may answer it. */
enum calls_assignment_right {
    ASSIGNMENT_CLAIMED,  /* this side wrote the claim and handed it over */
    ASSIGNMENT_CLAIMS,   /* its provider says that it has it: answers count only if the claim of the
                            attempt names the provider */
    ASSIGNMENT_VERIFIED, /* the same, and the claim does */
};

struct calls_assignment_machine {
    const struct calls_assignment_event *event; /* of this step */
    struct calls_assignment_actions *out;
    enum calls_assignment_state state;
    enum calls_assignment_scope scope;
    enum calls_assignment_right right;
    /* Why it is canceled; RETURNING: why its provider does not start it. BUS_NO_REASON: neither. */
    enum bus_reason reason;
    /* Its coordinator waits for it, or did at the last review. Not a state: it may be asked for
     * while anything else goes on. */
    bool was_queried;
    /* Since then nothing vouches for it (no register, no coordinator), so it takes no place at its
     * provider; 0: something does. */
    int64_t unknown_ns;
    int64_t deadline_ms; /* 0: it was reported, and the deadline is not known */
    uint64_t epoch;      /* of the registers under which it was sent, or reported */
};

/* What a step depends on beside the state. */
struct calls_assignment_event {
    enum calls_assignment_event_kind kind;
    peg_status status; /* ANSWER */
    /* ANSWER to a put: the register holds what was put, or the result it stands for. To a read of a
     * claim: it names the provider. */
    bool is_own;
    bool is_there;          /* ANSWER to a read: the register has a value */
    uint64_t epoch;         /* ANSWER: of the registers */
    int64_t asked_ns;       /* ANSWER: when it was asked */
    int64_t trust_ns;       /* ANSWER to a claim: one that took longer is given back */
    int64_t now_ns;         /* ANSWER, NOTIFY, REVIEW */
    int64_t now_ms;         /* ANSWER */
    int64_t deadline_ms;    /* ANSWER to a read of the identity: the deadline in it, or now */
    enum bus_reason reason; /* CANCEL, REFUSE, GIVE_BACK */
    /* ANSWER to a claim: why its provider takes nothing any more (BUS_GONE, BUS_DRAINING). */
    enum bus_reason closed;
};

enum calls_assignment_action_kind {
    ASSIGNMENT_PUT,             /* `what`: BUS_CLAIM, BUS_RESULT */
    ASSIGNMENT_PUT_PLACEHOLDER, /* a small BUS_RESULT, in place of its own */
    ASSIGNMENT_READ,            /* `what` */
    ASSIGNMENT_SEND,            /* `message` to its coordinator, with `reason`, `was_claimed` */
    ASSIGNMENT_SEND_WAITERS,    /* BUS_DONE to the loops in the answer */
    ASSIGNMENT_HAND_OVER,       /* to its provider */
    ASSIGNMENT_CANCEL,          /* at its provider: `reason` */
    ASSIGNMENT_ACKNOWLEDGE,     /* its provider may forget its result */
    ASSIGNMENT_ARM,             /* RETRY in `delay_ms` */
    ASSIGNMENT_COUNT_LATE,      /* a result came after the outcome */
    ASSIGNMENT_DROP,            /* the assignment is gone */
    ASSIGNMENT_PUMP,            /* its provider may have a place for another call */
};

struct calls_assignment_action {
    enum calls_assignment_action_kind kind;
    enum bus_register what;
    enum bus_message_kind message;
    enum bus_reason reason;
    bool was_claimed; /* BUS_NAK: the attempt was this side's, and never starts */
    int delay_ms;
};

/* Executed in order. A put or a read may be answered before it returns, so only PUMP follows it. */
enum { ASSIGNMENT_MAX_ACTIONS = 5 };
struct calls_assignment_actions {
    unsigned n;
    struct calls_assignment_action list[ASSIGNMENT_MAX_ACTIONS];
};

/* An event that means nothing in a state changes nothing. After DROP the machine is not used. */
void calls_assignment_step(struct calls_assignment_machine *m,
                           const struct calls_assignment_event *event,
                           struct calls_assignment_actions *out);
/* Tests count the steps of all machines here; NULL: they are not counted. */
extern void (*calls_assignment_on_step)(enum calls_assignment_state from,
                                        enum calls_assignment_event_kind event,
                                        enum calls_assignment_state to);
extern const char *const calls_assignment_state_names[];
extern const char *const calls_assignment_event_names[];
/* Is the transition in the list? */
bool calls_assignment_may_become(enum calls_assignment_state from, enum calls_assignment_state to);

/* Was it handed to its provider, which has not answered? */
static inline bool calls_assignment_is_at_provider(const struct calls_assignment_machine *m)
{
    return m->state >= ASSIGNMENT_REPORTED && m->state <= ASSIGNMENT_CHECKING_ENDED;
}

#endif
