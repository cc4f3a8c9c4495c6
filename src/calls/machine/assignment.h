/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_MACHINE_ASSIGNMENT_H
#define PEG_CALLS_MACHINE_ASSIGNMENT_H

/*
 * The machine of one attempt of a call on its provider's side: from the message that brought it, or
 * the Hello that reported it, until its result is written or its coordinator knows that it was not
 * started. It takes an event and returns actions; it calls nothing. provider_side.h has its host.
 */

#include "bus/bus.h"
#include "calls/machine/states.h"

enum calls_assignment_state {
#define X(name, text) ASSIGNMENT_##name,
    CALLS_ASSIGNMENT_STATES(X)
#undef X
};

enum calls_assignment_event_kind {
#define X(name, text) ASSIGNMENT_ON_##name,
    CALLS_ASSIGNMENT_EVENTS(X)
#undef X
};

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
    ASSIGNMENT_PUT_PLACEHOLDER, /* a small result, in place of its own */
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
void calls_assignment_step(struct calls_assignment_machine *machine,
                           const struct calls_assignment_event *event,
                           struct calls_assignment_actions *out);
/* Tests count the steps of all machines here; NULL: they are not counted. */
extern void (*calls_assignment_on_step)(enum calls_assignment_state from,
                                        enum calls_assignment_event_kind event,
                                        enum calls_assignment_state to);
extern const char *const calls_assignment_state_names[];
extern const char *const calls_assignment_event_names[];

/* Was it handed to its provider, which has not answered? */
static inline bool calls_assignment_is_at_provider(const struct calls_assignment_machine *machine)
{
    return machine->state >= ASSIGNMENT_REPORTED && machine->state <= ASSIGNMENT_CHECKING_ENDED;
}

#endif
