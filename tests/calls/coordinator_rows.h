/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CALLS_COORDINATOR_ROWS_H
#define PEG_TESTS_CALLS_COORDINATOR_ROWS_H

/* The machine of a call as a table: a state and an event; the actions, the state, and what else has
 * changed in the machine. Include it behind t.h. */

#include "base/limits.h"
#include "calls/machine/coordinator.h"

/* What a register holds. */
enum value {
    NOTHING,
    SAME,           /* the identity of the call that is followed */
    NEXT,           /* a later call of that identity */
    OTHER_REQUEST,  /* an identity, used for another request */
    OTHER_VERSION,  /* what no gateway of this version writes */
    OUTCOME,        /* an outcome */
    PLACEHOLDER,    /* an outcome that stands for another */
    BY_PROVIDER,    /* a claim of the provider that was asked */
    BY_ANOTHER,     /* of another provider */
    BY_COORDINATOR, /* of a node that took the attempt back, or the call over */
    BY_ENDED,       /* of one that said: there is no such attempt */
};

/* An event; facts that a row does not name are those of at(). */
struct input {
    enum calls_event_kind kind;
    enum calls_bar bar;
    int64_t now_ms;
    bool is_fenced;
    bool wants_output;
    bool is_owner;
    bool is_own_token;
    /* CALLS_ANSWER */
    peg_status status;
    bool written;
    enum value value;
    uint64_t epoch;
    struct bus_address lease;
    /* CALLS_MESSAGE; about the current attempt unless it says otherwise */
    struct bus_message message;
};

struct row {
    const char *about;
    struct calls_machine before;
    struct input on;
    const char *actions;
    enum calls_state after;
    const char *changes;
};

enum { NOW_MS = 50000, DEADLINE_MS = 60000, GRACE_MS = 5000, KEEP_UNTIL_MS = 90000 };
enum { LATE_MS = DEADLINE_MS + GRACE_MS + 1, LAST_WALK = PEG_LIMIT_GATEWAY_ATTEMPTS + 1 };
#define NO_ATTEMPT UINT32_MAX

/* What a row does not say: the call has an identity and a request; one that was sent is at its
 * first attempt, by "incarnation-1" at 3.0; one that is followed is coordinated by 2.0. */
#define IN(state_, ...) .before = {.state = CALLS_##state_, __VA_ARGS__}
#define ON(kind_, ...) .on = {.kind = CALLS_##kind_, __VA_ARGS__}
#define MESSAGE(kind_, ...)                                                                        \
    .on = {.kind = CALLS_MESSAGE, .message = {.kind = BUS_##kind_, __VA_ARGS__}}
#define TO(state_, actions_, changes_)                                                             \
    .actions = actions_, .after = CALLS_##state_, .changes = changes_
#define RANDOM .id = {.len = 16}
#define NODE_LOCAL .id = {.len = 16, .bytes = {[15] = 1}}
#define RECHECK(what) .recheck = CALLS_RECHECK_##what
#define ORIGIN(what) .origin = CALLS_##what
#define CANCELED .ending = BUS_CANCELED
#define LATE .ending = BUS_DEADLINE
#define WHY(what) .why = CALLS_WHY_##what
#define BODY .body = &some_body

static struct peg__blob some_body;

// clang-format off
static const struct row ROWS[] = {
    /* ---- its payload is being validated ---- */
    {"valid", IN(CHECKING), ON(ADMIT), TO(ADMITTING, "put c", "")},
    {"valid, and it may not begin", IN(CHECKING), ON(ADMIT, .bar = CALLS_BAR_QUOTA), TO(PEEKING, "read c", "bar quota")},
    {"without an identity", IN(CHECKING, RANDOM), ON(ADMIT), TO(CHOOSING, "admitted, choose", "")},
    {"the same, and it may not begin", IN(CHECKING, RANDOM), ON(ADMIT, .bar = CALLS_BAR_UNHEALTHY), TO(OVER, "reject barred", "bar unhealthy")},
    {"known by its id alone", IN(CHECKING, ORIGIN(AWAITS)), ON(LOCATE), TO(LOCATING, "read c", "")},
    {"its time is over", IN(CHECKING), ON(DEADLINE), TO(OVER, "reject unstarted", "ending deadline")},
    {"canceled", IN(CHECKING), ON(CANCEL), TO(OVER, "reject unstarted", "ending canceled")},
    {"registers were lost", IN(CHECKING), ON(RESET), TO(CHECKING, "", "")},
    {"the outcome of an earlier call", IN(CHECKING), MESSAGE(DONE, BODY), TO(CHECKING, "", "")},

    /* ---- one decision for each identity ---- */
    {"this node decides", IN(ADMITTING), ON(ANSWER, .written = true), TO(CHOOSING, "admitted, choose", "")},
    {"this node decides, and may have to know about what", IN(ADMITTING), ON(ANSWER, .written = true, .value = NEXT), TO(CHOOSING, "admitted, choose", "identity")},
    {"canceled before it knows that it decides", IN(ADMITTING), ON(CANCEL), TO(ADMITTING, "", "ending canceled")},
    {"then it decides", IN(ADMITTING, CANCELED), ON(ANSWER, .written = true), TO(CLOSING, "admitted, disarm, close 1", "why canceled")},
    {"its time is over before it knows", IN(ADMITTING), ON(DEADLINE), TO(ADMITTING, "", "ending deadline")},
    {"then it decides", IN(ADMITTING, LATE), ON(ANSWER, .written = true), TO(CLOSING, "admitted, disarm, close 1", "why timeout")},
    {"canceled, then late", IN(ADMITTING, CANCELED), ON(DEADLINE), TO(ADMITTING, "", "ending deadline")},
    {"late, then canceled", IN(ADMITTING, LATE), ON(CANCEL), TO(ADMITTING, "", "")},
    {"the answer was lost", IN(ADMITTING), ON(ANSWER, .status = PEG_EIO), TO(ADMITTING, "arm 50", "")},
    {"asks again", IN(ADMITTING), ON(TIMER), TO(ADMITTING, "put c", "")},
    {"no room for an identity, but one may be there", IN(ADMITTING), ON(ANSWER, .status = PEG_ELIMIT), TO(PEEKING, "read c", "bar full")},
    {"no memory, but one may be there", IN(ADMITTING), ON(ANSWER, .status = PEG_ENOMEM), TO(PEEKING, "read c", "bar no memory")},
    {"another node decides", IN(ADMITTING, .end_seen = CALLS_END_READ), ON(ANSWER, .value = SAME), TO(LISTING, "list", "end unseen, identity, coordinator 2.0")},
    {"another node decided, with its own deadline", IN(ADMITTING), ON(ANSWER, .value = NEXT), TO(LISTING, "list", "deadline, identity, coordinator 2.0")},
    {"about another request", IN(ADMITTING), ON(ANSWER, .value = OTHER_REQUEST), TO(OVER, "reject other request", "")},
    {"a value of another version", IN(ADMITTING), ON(ANSWER, .value = OTHER_VERSION), TO(OVER, "reject other version", "")},
    {"another node decides, and nobody waits here", IN(ADMITTING, CANCELED), ON(ANSWER, .value = SAME), TO(OVER, "reject wait over", "")},
    {"registers were lost", IN(ADMITTING), ON(RESET), TO(ADMITTING, "", "")},
    {"a late refusal of an earlier call", IN(ADMITTING), MESSAGE(NAK, .reason = BUS_GONE), TO(ADMITTING, "", "")},
    {"the outcome of an earlier call", IN(ADMITTING), MESSAGE(DONE, BODY), TO(ADMITTING, "", "")},

    /* ---- it may attach, and not begin ---- */
    {"there is one to attach to", IN(PEEKING, ORIGIN(ATTACHES)), ON(ANSWER, .value = SAME), TO(LISTING, "list", "identity, coordinator 2.0")},
    {"there is none", IN(PEEKING, ORIGIN(ATTACHES)), ON(ANSWER), TO(OVER, "reject barred", "")},
    {"about another request", IN(PEEKING, ORIGIN(ATTACHES)), ON(ANSWER, .value = OTHER_REQUEST), TO(OVER, "reject other request", "")},
    {"the answer was lost", IN(PEEKING), ON(ANSWER, .status = PEG_EIO), TO(PEEKING, "arm 50", "")},
    {"asks again", IN(PEEKING), ON(TIMER), TO(PEEKING, "read c", "")},
    {"canceled", IN(PEEKING), ON(CANCEL), TO(PEEKING, "", "ending canceled")},
    {"its time is over", IN(PEEKING), ON(DEADLINE), TO(PEEKING, "", "ending deadline")},
    {"the answer was lost, and nobody waits", IN(PEEKING, LATE), ON(ANSWER, .status = PEG_EIO), TO(OVER, "reject unread", "")},
    {"the outcome of an earlier call", IN(PEEKING), MESSAGE(DONE, BODY), TO(PEEKING, "", "")},

    /* ---- known by its id ---- */
    {"it is the principal's", IN(LOCATING, ORIGIN(AWAITS)), ON(ANSWER, .value = OTHER_REQUEST, .is_owner = true), TO(LISTING, "list", "identity, coordinator 2.0")},
    {"the same, to stop it", IN(LOCATING, ORIGIN(STOPS)), ON(ANSWER, .value = SAME, .is_owner = true), TO(OVER, "stop", "")},
    {"another principal's", IN(LOCATING, ORIGIN(AWAITS)), ON(ANSWER, .value = SAME), TO(OVER, "reject unknown call", "")},
    {"another's, to stop it", IN(LOCATING, ORIGIN(STOPS)), ON(ANSWER, .value = SAME), TO(OVER, "reject unknown call", "")},
    {"there is none", IN(LOCATING, ORIGIN(AWAITS)), ON(ANSWER), TO(OVER, "reject unknown call", "")},
    {"the answer was lost", IN(LOCATING, ORIGIN(AWAITS)), ON(ANSWER, .status = PEG_EIO), TO(OVER, "reject unanswered", "")},
    {"one of this loop is not admitted yet", IN(LOCATING, ORIGIN(AWAITS)), ON(TIMER), TO(LOCATING, "read c", "")},
    {"its time is over", IN(LOCATING, ORIGIN(AWAITS)), ON(DEADLINE), TO(OVER, "reject unanswered", "ending deadline")},
    {"a message about the call", IN(LOCATING, ORIGIN(AWAITS)), MESSAGE(DONE, BODY), TO(LOCATING, "", "")},

    /* ---- choosing ---- */
    {"a provider", IN(CHOOSING), ON(PROVIDER),
     TO(SENT, "arm 1000, send call", "attempt 1, sent 1, epoch 1, incarnation incarnation-1, address 3.0, outstanding 1")},
    {"the next provider", IN(CHOOSING, .attempt = 1, .n_sent = 2, .sent_epoch = 7, .was_unknown = true, .n_rechecks = 3, .n_outstanding = 1), ON(PROVIDER),
     TO(SENT, "arm 1000, send call", "not unknown, rechecks 0, attempt 2, sent 1, epoch 1, incarnation incarnation-1, address 3.0, outstanding 2")},
    {"none", IN(CHOOSING), ON(NO_PROVIDER), TO(CLOSING, "disarm, close 1", "why no provider")},
    {"none, without an identity", IN(CHOOSING, RANDOM), ON(NO_PROVIDER), TO(OVER, "reject no provider", "")},
    {"none, and it may have run", IN(CHOOSING, .attempt = 1, .may_have_run = true), ON(NO_PROVIDER),
     TO(WRITING, "disarm, put t nobody else", "why nobody else")},

    /* ---- sent, and refused ---- */
    {"refused", IN(SENT), MESSAGE(NAK, .reason = BUS_GONE), TO(REVOKING, "disarm, revoke 1", "refused 1, refusal gone, outstanding 0")},
    {"given back by who has claimed it", IN(SENT), MESSAGE(NAK, .reason = BUS_GONE, .was_claimed = true),
     TO(CHOOSING, "choose", "refusal gone, outstanding 0, answered 2")},
    {"given back for want of room", IN(SENT), MESSAGE(NAK, .reason = BUS_OVERLOADED, .was_claimed = true),
     TO(CHOOSING, "choose", "refused 1 forgivable, refusal overloaded, outstanding 0, answered 2")},
    {"given back by one that drains", IN(SENT), MESSAGE(NAK, .reason = BUS_DRAINING, .was_claimed = true),
     TO(CHOOSING, "choose", "refused 1, refusal draining, outstanding 0, answered 2")},
    {"given back by another version", IN(SENT), MESSAGE(NAK, .reason = BUS_OUTDATED, .was_claimed = true),
     TO(CHOOSING, "choose", "refused 1, refusal outdated, outdated, outstanding 0, answered 2")},
    {"that one was full counts most", IN(SENT, .refusal = BUS_FULL), MESSAGE(NAK, .reason = BUS_OUTDATED),
     TO(REVOKING, "disarm, revoke 1", "refused 1, outdated, outstanding 0")},
    {"then that one is outdated", IN(SENT, .refusal = BUS_OUTDATED), MESSAGE(NAK, .reason = BUS_GONE),
     TO(REVOKING, "disarm, revoke 1", "refused 1, outstanding 0")},
    {"claimed under other registers", IN(SENT), MESSAGE(NAK, .reason = BUS_GONE, .was_claimed = true, .epoch = 2),
     TO(REVOKING, "disarm, revoke 1", "refusal gone, outstanding 0, answered 2")},
    {"refused, without an identity", IN(SENT, RANDOM), MESSAGE(NAK, .reason = BUS_OVERLOADED),
     TO(CHOOSING, "choose", "refused 1, refusal overloaded, outstanding 0")},
    {"the same, and it was sent twice", IN(SENT, RANDOM, .n_sent = 2, .n_outstanding = 2), MESSAGE(NAK, .reason = BUS_OVERLOADED),
     TO(REVOKING, "disarm, revoke 1", "refused 1, refusal overloaded, outstanding 1")},
    {"registers are others than when it was sent", IN(SENT), MESSAGE(NAK, .reason = BUS_EPOCH),
     TO(WRITING, "disarm, put t state lost", "why state lost, refused 1, refusal epoch, outstanding 0")},
    {"the same, and it may be started again", IN(SENT, .is_idempotent = true), MESSAGE(NAK, .reason = BUS_EPOCH),
     TO(CHOOSING, "choose", "may have run, refused 1, refusal epoch, outstanding 0")},
    {"it came too late", IN(SENT), MESSAGE(NAK, .reason = BUS_LATE), TO(REVOKING, "disarm, revoke 1", "ending deadline, refused 1, refusal late, outstanding 0")},
    {"its claim took too long", IN(SENT), MESSAGE(NAK, .reason = BUS_LATE, .was_claimed = true), TO(CHOOSING, "choose", "refusal late, outstanding 0, answered 2")},
    {"claimed at its deadline", IN(SENT), .on = {CALLS_MESSAGE, .now_ms = DEADLINE_MS, .message = {.kind = BUS_NAK, .reason = BUS_LATE, .was_claimed = true}},
     TO(CLOSING, "disarm, close 2", "ending deadline, why timeout, refusal late, outstanding 0, answered 2")},
    {"it came too late, without an identity", IN(SENT, RANDOM), MESSAGE(NAK, .reason = BUS_LATE),
     TO(OVER, "disarm, end timeout", "ending deadline, why timeout, refused 1, refusal late, outstanding 0")},
    {"claimed at its deadline, without an identity", IN(SENT, RANDOM), .on = {CALLS_MESSAGE, .now_ms = DEADLINE_MS, .message = {.kind = BUS_NAK, .reason = BUS_LATE, .was_claimed = true}},
     TO(OVER, "disarm, end timeout", "ending deadline, why timeout, refusal late, outstanding 0, answered 2")},
    {"a late refusal of the attempt before", IN(SENT, .attempt = 2, .n_outstanding = 2), MESSAGE(NAK, .reason = BUS_GONE), TO(SENT, "", "outstanding 1")},
    {"the same, said twice by who had claimed it", IN(SENT, .attempt = 2, .answered = 2), MESSAGE(NAK, .reason = BUS_GONE, .was_claimed = true), TO(SENT, "", "")},
    {"a refusal by another provider", IN(SENT), MESSAGE(NAK, .reason = BUS_GONE, .incarnation = "incarnation-2"), TO(SENT, "", "outstanding 0")},
    {"another node refuses a call that is not seen there", IN(SENT, NODE_LOCAL, .attempt = 2), MESSAGE(NAK, .reason = BUS_GONE), TO(SENT, "", "")},
    {"the provider has it already", IN(SENT, .n_outstanding = 2), MESSAGE(NAK, .reason = BUS_DUPLICATE), TO(SENT, "", "outstanding 1")},
    {"no loop received it", IN(SENT), ON(UNRECEIVED), TO(REVOKING, "disarm, revoke 1", "refused 1, refusal gone, outstanding 0")},
    {"the same, without an identity", IN(SENT, RANDOM), ON(UNRECEIVED), TO(CHOOSING, "choose", "refused 1, refusal gone, outstanding 0")},

    /* ---- sent, and heard of ---- */
    {"the provider has it", IN(SENT), MESSAGE(HAVE), TO(SENT, "", "")},
    {"the provider has it elsewhere", IN(SENT), MESSAGE(HAVE, .from = {3, 1}), TO(SENT, "", "address 3.1")},
    {"another has the attempt before", IN(SENT, .attempt = 2), MESSAGE(HAVE, .from = {3, 1}), TO(SENT, "", "")},
    {"it is not there", IN(SENT), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(SENT, "", "")},
    {"it is not there, and may be started again", IN(SENT, .is_idempotent = true), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(SENT, "disarm, read t", "recheck lost")},
    {"the same of where its provider was", IN(SENT, .is_idempotent = true), MESSAGE(NAK, .reason = BUS_UNKNOWN, .from = {3, 1}), TO(SENT, "", "")},
    {"the same of the attempt before", IN(SENT, .is_idempotent = true, .attempt = 2), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(SENT, "", "")},
    {"the same while it reads", IN(SENT, .is_idempotent = true, RECHECK(CLAIM)), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(SENT, "", "")},
    {"its provider went to another node", IN(SENT, NODE_LOCAL), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(SENT, "", "unknown")},
    {"that node was asked once more", IN(SENT, NODE_LOCAL, .was_unknown = true), MESSAGE(NAK, .reason = BUS_UNKNOWN),
     TO(WRITING, "disarm, put t provider moved", "why provider moved")},
    {"it is not there, and the registers were lost since", IN(SENT, .sent_epoch = 7), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(SENT, "", "unknown")},
    {"its loop was asked once more", IN(SENT, .sent_epoch = 7, .was_unknown = true), MESSAGE(NAK, .reason = BUS_UNKNOWN),
     TO(WRITING, "disarm, put t state lost", "why state lost")},
    {"its provider is lost", IN(SENT, .n_rechecks = 20), MESSAGE(LOST), TO(SENT, "arm 1000", "rechecks 0")},
    {"its provider came back elsewhere, and is not lost", IN(SENT, .n_rechecks = 20), MESSAGE(LOST, .from = {3, 1}), TO(SENT, "", "")},
    {"who had the attempt before is lost", IN(SENT, .n_rechecks = 20, .attempt = 2), MESSAGE(LOST), TO(SENT, "", "")},
    {"lost while it reads", IN(SENT, .n_rechecks = 20, RECHECK(LEASE)), MESSAGE(LOST), TO(SENT, "", "rechecks 0")},
    {"done", IN(SENT), MESSAGE(DONE, BODY), TO(OVER, "end current", "outstanding 0, answered 2")},
    {"done, and the outcome is in its register", IN(SENT), MESSAGE(DONE),
     TO(SENT, "disarm, read t", "recheck result, end heard, rechecks 1, outstanding 0, answered 2")},
    {"the attempt before is done", IN(SENT, .attempt = 2), MESSAGE(DONE, BODY), TO(SENT, "disarm, read t", "recheck result, end heard, rechecks 1")},
    {"done, says another provider", IN(SENT), MESSAGE(DONE, BODY, .incarnation = "incarnation-2"),
     TO(SENT, "disarm, read t", "recheck result, end heard, rechecks 1, outstanding 0, answered 2")},
    {"done, and this node may have been away", IN(SENT), .on = {CALLS_MESSAGE, .is_fenced = true, .message = {.kind = BUS_DONE, BODY}},
     TO(SENT, "disarm, read t", "recheck result, end heard, rechecks 1, outstanding 0, answered 2")},
    {"the same of what no other node settles", IN(SENT, NODE_LOCAL), .on = {CALLS_MESSAGE, .is_fenced = true, .message = {.kind = BUS_DONE, BODY}},
     TO(OVER, "end current", "outstanding 0, answered 2")},
    {"done while it reads", IN(SENT, RECHECK(LEASE)), MESSAGE(DONE), TO(SENT, "", "again, end heard, outstanding 0, answered 2")},
    {"its time is over", IN(SENT), ON(DEADLINE), TO(REVOKING, "send cancel deadline, disarm, revoke 1", "ending deadline")},
    {"canceled", IN(SENT, RECHECK(CLAIM)), ON(CANCEL), TO(REVOKING, "send cancel canceled, disarm, revoke 1", "recheck none, ending canceled")},

    /* ---- silence ---- */
    {"silence", IN(SENT), ON(TIMER), TO(SENT, "disarm, read t", "recheck result, rechecks 1")},
    {"silence while it reads", IN(SENT, RECHECK(LEASE)), ON(TIMER), TO(SENT, "", "again")},
    {"registers were lost", IN(SENT, .n_rechecks = 1), ON(RESET), TO(SENT, "arm 1000", "")},
    {"rechecks become seldom", IN(SENT, .n_rechecks = 2), ON(RESET), TO(SENT, "arm 2000", "")},
    {"and more seldom", IN(SENT, .n_rechecks = 3), ON(RESET), TO(SENT, "arm 4000", "")},
    {"and no more than that", IN(SENT, .n_rechecks = 4), ON(RESET), TO(SENT, "arm 5000", "")},
    {"it has not ended", IN(SENT, RECHECK(RESULT)), ON(ANSWER), TO(SENT, "read k1", "recheck claim")},
    {"it has ended", IN(SENT, RECHECK(RESULT)), ON(ANSWER, .value = OUTCOME), TO(OVER, "end current", "recheck none")},
    {"it has ended, and outputs may be under way", IN(SENT, RECHECK(RESULT)), ON(ANSWER, .value = OUTCOME, .wants_output = true),
     TO(SENT, "arm 1000", "recheck none, end read")},
    {"they had their time", IN(SENT, RECHECK(RESULT), .end_seen = CALLS_END_READ), ON(ANSWER, .value = OUTCOME, .wants_output = true),
     TO(OVER, "end current", "recheck none")},
    {"they came: a message said so", IN(SENT, RECHECK(RESULT), .end_seen = CALLS_END_HEARD), ON(ANSWER, .value = OUTCOME, .wants_output = true),
     TO(OVER, "end current", "recheck none")},
    {"its outcome may be under way", IN(SENT, RECHECK(RESULT), .must_recheck = true), ON(ANSWER, .value = PLACEHOLDER),
     TO(SENT, "arm 1000", "recheck none, not again, end read")},
    {"the answer was lost", IN(SENT, RECHECK(RESULT)), ON(ANSWER, .status = PEG_EIO), TO(SENT, "arm 1000", "recheck none")},
    {"the answer was lost, and it was to read again", IN(SENT, RECHECK(LEASE), .must_recheck = true), ON(ANSWER, .status = PEG_EIO),
     TO(SENT, "disarm, read t", "recheck result, not again, rechecks 1")},
    {"not claimed", IN(SENT, RECHECK(CLAIM)), ON(ANSWER), TO(SENT, "find", "recheck none")},
    {"its provider is there: sent again", IN(SENT), ON(PROVIDER), TO(SENT, "arm 1000, send call", "sent 2, outstanding 2")},
    {"its provider may not run it any more", IN(SENT), ON(NO_PROVIDER), TO(REVOKING, "disarm, revoke 1", "")},
    {"not claimed, under other registers", IN(SENT, RECHECK(CLAIM)), ON(ANSWER, .epoch = 2), TO(SENT, "ask, arm 1000", "recheck none")},
    {"claimed", IN(SENT, RECHECK(CLAIM)), ON(ANSWER, .value = BY_PROVIDER), TO(SENT, "read lease", "recheck lease")},
    {"claimed by one that another node asked", IN(SENT, RECHECK(CLAIM)), ON(ANSWER, .value = BY_ANOTHER),
     TO(SENT, "release, read lease", "recheck lease, incarnation incarnation-2")},
    {"taken over", IN(SENT, RECHECK(CLAIM), .n_rechecks = 3), ON(ANSWER, .value = BY_COORDINATOR), TO(UNLISTED, "arm 1000", "recheck none, rechecks 0, coordinator 4.0")},
    {"its provider is alive", IN(SENT, RECHECK(LEASE)), ON(ANSWER, .lease = {3, 1}), TO(SENT, "ask, arm 1000", "recheck none, address 3.1")},
    {"alive, and it was to read again", IN(SENT, RECHECK(LEASE), .must_recheck = true), ON(ANSWER, .lease = {3, 0}),
     TO(SENT, "ask, disarm, read t", "recheck result, not again, rechecks 1")},
    {"its provider is gone", IN(SENT, RECHECK(LEASE)), ON(ANSWER), TO(SENT, "read t", "recheck lost")},
    {"gone, and it has not ended", IN(SENT, RECHECK(LOST)), ON(ANSWER), TO(WRITING, "disarm, put t provider lost", "recheck none, why provider lost")},
    {"the same, and it may be started again", IN(SENT, RECHECK(LOST), .is_idempotent = true), ON(ANSWER), TO(CHOOSING, "choose", "recheck none, may have run")},
    {"the same behind its deadline", IN(SENT, RECHECK(LOST), .is_idempotent = true), ON(ANSWER, .now_ms = DEADLINE_MS),
     TO(WRITING, "disarm, put t provider lost", "recheck none, why provider lost")},
    {"gone, and it has ended", IN(SENT, RECHECK(LOST)), ON(ANSWER, .value = OUTCOME), TO(OVER, "end current", "recheck none")},

    /* ---- the right to start is taken back ---- */
    {"it will not start", IN(REVOKING), ON(ANSWER, .written = true), TO(CHOOSING, "send cancel canceled, choose", "")},
    {"it will not start, and its time is over", IN(REVOKING, LATE), ON(ANSWER, .written = true), TO(CLOSING, "disarm, close 2", "why timeout")},
    {"the same, canceled", IN(REVOKING, CANCELED), ON(ANSWER, .written = true), TO(CLOSING, "disarm, close 2", "why canceled")},
    {"the same, without an identity", IN(REVOKING, CANCELED, RANDOM), ON(ANSWER, .written = true), TO(OVER, "disarm, end canceled", "why canceled")},
    {"the same, and an earlier attempt may have run", IN(REVOKING, LATE, .may_have_run = true), ON(ANSWER, .written = true),
     TO(WRITING, "disarm, put t ran late", "why ran late")},
    {"under other registers", IN(REVOKING), ON(ANSWER, .written = true, .epoch = 2), TO(WRITING, "disarm, put t state lost", "why state lost")},
    {"a claim may have expired", IN(REVOKING, CANCELED), ON(ANSWER, .written = true, .now_ms = KEEP_UNTIL_MS - 1000),
     TO(WRITING, "disarm, put t halted", "why halted")},
    {"it has started", IN(REVOKING), ON(ANSWER, .value = BY_PROVIDER), TO(SENT, "arm 1000", "")},
    {"it has started, canceled", IN(REVOKING, CANCELED), ON(ANSWER, .value = BY_PROVIDER), TO(TELLING, "read lease", "")},
    {"another has started it", IN(REVOKING, LATE), ON(ANSWER, .value = BY_ANOTHER), TO(TELLING, "release, read lease", "incarnation incarnation-2")},
    {"taken over", IN(REVOKING, LATE), ON(ANSWER, .value = BY_COORDINATOR), TO(UNLISTED, "arm 1000", "coordinator 4.0")},
    {"the answer was lost", IN(REVOKING), ON(ANSWER, .status = PEG_EIO), TO(REVOKING, "arm 50", "")},
    {"no memory", IN(REVOKING, LATE), ON(ANSWER, .status = PEG_ENOMEM), TO(REVOKING, "arm 50", "")},
    {"no room", IN(REVOKING), ON(ANSWER, .status = PEG_ELIMIT), TO(REVOKING, "arm 50", "")},
    {"no room, and its time is over", IN(REVOKING, LATE), ON(ANSWER, .status = PEG_ELIMIT), TO(WRITING, "disarm, put t no room", "why no room")},
    {"asks again", IN(REVOKING), ON(TIMER), TO(REVOKING, "revoke 1", "")},
    {"canceled meanwhile", IN(REVOKING), ON(CANCEL), TO(REVOKING, "send cancel canceled", "ending canceled")},
    {"late meanwhile: its provider knows already", IN(REVOKING, CANCELED), ON(DEADLINE), TO(REVOKING, "", "ending deadline")},
    {"refused", IN(REVOKING), MESSAGE(NAK, .reason = BUS_GONE), TO(REVOKING, "", "refused 1, refusal gone, outstanding 0")},
    {"given back", IN(REVOKING), MESSAGE(NAK, .reason = BUS_GONE, .was_claimed = true), TO(CHOOSING, "choose", "refusal gone, outstanding 0, answered 2")},
    {"given back, canceled", IN(REVOKING, CANCELED), MESSAGE(NAK, .reason = BUS_CANCELED, .was_claimed = true),
     TO(CLOSING, "disarm, close 2", "why canceled, refusal canceled, outstanding 0, answered 2")},
    {"its provider came back elsewhere", IN(REVOKING), MESSAGE(HAVE, .from = {3, 1}), TO(REVOKING, "", "address 3.1")},
    {"the same, canceled", IN(REVOKING, CANCELED), MESSAGE(HAVE, .from = {3, 1}), TO(REVOKING, "send cancel canceled", "address 3.1")},
    {"done", IN(REVOKING), MESSAGE(DONE, BODY), TO(OVER, "end current", "outstanding 0, answered 2")},
    {"done, and the outcome is in its register", IN(REVOKING), MESSAGE(DONE), TO(REVOKING, "", "end heard, outstanding 0, answered 2")},
    {"its provider is lost", IN(REVOKING), MESSAGE(LOST), TO(REVOKING, "", "")},
    {"it is not there", IN(REVOKING, .is_idempotent = true), MESSAGE(NAK, .reason = BUS_UNKNOWN), TO(REVOKING, "", "")},
    {"registers were lost", IN(REVOKING), ON(RESET), TO(REVOKING, "", "")},

    /* ---- canceled, and it runs ---- */
    {"its provider is found", IN(TELLING, CANCELED), ON(ANSWER, .lease = {3, 1}), TO(GRACE, "send cancel canceled, arm 5000", "address 3.1")},
    {"its provider is not found", IN(TELLING, CANCELED), ON(ANSWER), TO(GRACE, "send cancel canceled, arm 5000", "")},
    {"the answer was lost", IN(TELLING, CANCELED), ON(ANSWER, .status = PEG_EIO), TO(GRACE, "send cancel canceled, arm 5000", "")},
    {"its time is over", IN(TELLING, LATE), ON(ANSWER, .lease = {3, 0}), TO(WRITING, "send cancel deadline, disarm, put t ran late", "why ran late")},
    {"late meanwhile", IN(TELLING, CANCELED), ON(DEADLINE), TO(TELLING, "", "ending deadline")},
    {"given back", IN(TELLING, LATE), MESSAGE(NAK, .reason = BUS_CANCELED, .was_claimed = true),
     TO(CLOSING, "disarm, close 2", "why timeout, refusal canceled, outstanding 0, answered 2")},
    {"its provider came back elsewhere", IN(TELLING, CANCELED), MESSAGE(HAVE, .from = {3, 1}), TO(TELLING, "send cancel canceled", "address 3.1")},
    {"done", IN(TELLING, CANCELED), MESSAGE(DONE, BODY), TO(OVER, "end current", "outstanding 0, answered 2")},
    {"the grace is over", IN(GRACE, CANCELED), ON(TIMER), TO(GIVING_UP, "read lease", "")},
    {"its time is over", IN(GRACE, CANCELED), ON(DEADLINE), TO(GIVING_UP, "read lease", "ending deadline")},
    {"canceled twice", IN(GRACE, CANCELED), ON(CANCEL), TO(GRACE, "", "")},
    {"given back", IN(GRACE, CANCELED), MESSAGE(NAK, .reason = BUS_CANCELED, .was_claimed = true),
     TO(CLOSING, "disarm, close 2", "why canceled, refusal canceled, outstanding 0, answered 2")},
    {"registers are others than when it was sent", IN(GRACE, CANCELED, .is_idempotent = true), MESSAGE(NAK, .reason = BUS_EPOCH),
     TO(WRITING, "disarm, put t state lost", "why state lost, refused 1, refusal epoch, outstanding 0")},
    {"its provider came back elsewhere", IN(GRACE, CANCELED), MESSAGE(HAVE, .from = {3, 1}), TO(GRACE, "send cancel canceled", "address 3.1")},
    {"done", IN(GRACE, CANCELED), MESSAGE(DONE, BODY), TO(OVER, "end current", "outstanding 0, answered 2")},
    {"told a last time", IN(GIVING_UP, CANCELED), ON(ANSWER, .lease = {3, 1}), TO(WRITING, "send cancel canceled, disarm, put t ran canceled", "why ran canceled, address 3.1")},
    {"told a last time, behind its deadline", IN(GIVING_UP, LATE), ON(ANSWER, .status = PEG_EIO), TO(WRITING, "send cancel deadline, disarm, put t ran late", "why ran late")},
    {"given back", IN(GIVING_UP, CANCELED), MESSAGE(NAK, .reason = BUS_CANCELED, .was_claimed = true),
     TO(CLOSING, "disarm, close 2", "why canceled, refusal canceled, outstanding 0, answered 2")},
    {"done", IN(GIVING_UP, CANCELED), MESSAGE(DONE, BODY), TO(OVER, "end current", "outstanding 0, answered 2")},

    /* ---- an outcome of its own ---- */
    {"there is no next attempt", IN(CLOSING, WHY(TIMEOUT)), ON(ANSWER, .written = true), TO(WRITING, "put t timeout", "")},
    {"another said so as well", IN(CLOSING, WHY(NO_PROVIDER)), ON(ANSWER, .value = BY_ENDED), TO(WRITING, "put t no provider", "")},
    {"taken over", IN(CLOSING, WHY(TIMEOUT)), ON(ANSWER, .value = BY_COORDINATOR), TO(UNLISTED, "arm 1000", "coordinator 4.0")},
    {"claimed by a provider of an earlier call", IN(CLOSING, WHY(TIMEOUT)), ON(ANSWER, .value = BY_PROVIDER), TO(WRITING, "disarm, put t state lost", "why state lost")},
    {"the answer was lost", IN(CLOSING), ON(ANSWER, .status = PEG_EIO), TO(CLOSING, "arm 50", "")},
    {"no memory", IN(CLOSING), ON(ANSWER, .status = PEG_ENOMEM), TO(CLOSING, "arm 50", "")},
    {"no room", IN(CLOSING, WHY(CANCELED)), ON(ANSWER, .status = PEG_ELIMIT), TO(WRITING, "put t canceled", "")},
    {"asks again", IN(CLOSING), ON(TIMER), TO(CLOSING, "close 2", "")},
    {"asks again, and was never sent", IN(CLOSING, .attempt = NO_ATTEMPT), ON(TIMER), TO(CLOSING, "close 1", "")},
    {"done all the same, as the register will tell", IN(CLOSING), MESSAGE(DONE, BODY), TO(CLOSING, "", "outstanding 0, answered 2")},
    {"the coordinator of an earlier call reports its end", IN(CLOSING, .attempt = NO_ATTEMPT), MESSAGE(DONE, BODY, .attempt = NO_ATTEMPT, .from = {2, 0}),
     TO(CLOSING, "", "")},
    {"a late refusal", IN(CLOSING), MESSAGE(NAK, .reason = BUS_GONE), TO(CLOSING, "", "outstanding 0")},
    {"canceled, and it ends already", IN(CLOSING, LATE), ON(CANCEL), TO(CLOSING, "", "")},
    {"written", IN(WRITING, WHY(TIMEOUT)), ON(ANSWER, .written = true), TO(NOTIFYING, "read w", "")},
    {"written, without an identity", IN(WRITING, RANDOM, WHY(RAN_LATE)), ON(ANSWER, .written = true), TO(OVER, "end ran late", "")},
    {"there is another outcome", IN(WRITING), ON(ANSWER, .value = OUTCOME), TO(OVER, "end current", "")},
    {"the answer was lost", IN(WRITING), ON(ANSWER, .status = PEG_EIO), TO(WRITING, "arm 50", "")},
    {"no memory", IN(WRITING), ON(ANSWER, .status = PEG_ENOMEM), TO(WRITING, "arm 50", "")},
    {"asks again", IN(WRITING, WHY(HALTED)), ON(TIMER), TO(WRITING, "put t halted", "")},
    {"no room", IN(WRITING, WHY(HALTED)), ON(ANSWER, .status = PEG_ELIMIT), TO(OVER, "end halted", "")},
    {"done all the same", IN(WRITING), MESSAGE(DONE, BODY), TO(OVER, "end current", "outstanding 0, answered 2")},
    {"its provider came back elsewhere", IN(WRITING, CANCELED), MESSAGE(HAVE, .from = {3, 1}), TO(WRITING, "send cancel canceled", "address 3.1")},
    {"others wait", IN(NOTIFYING, WHY(TIMEOUT)), ON(ANSWER), TO(OVER, "send outcome, end timeout", "")},
    {"it is not known who", IN(NOTIFYING, WHY(TIMEOUT)), ON(ANSWER, .status = PEG_EIO), TO(OVER, "end timeout", "")},
    {"a timer of before", IN(NOTIFYING), ON(TIMER), TO(NOTIFYING, "", "")},

    /* ---- another node coordinates ---- */
    {"listed", IN(LISTING), ON(ANSWER), TO(FOLLOWING, "listen, following, disarm, read t", "recheck result, rechecks 1")},
    {"no room in the list", IN(LISTING), ON(ANSWER, .status = PEG_ELIMIT), TO(GLANCING, "read t", "")},
    {"no memory", IN(LISTING), ON(ANSWER, .status = PEG_ENOMEM), TO(GLANCING, "read t", "")},
    {"the answer was lost", IN(LISTING), ON(ANSWER, .status = PEG_EIO), TO(UNLISTED, "arm 1000", "")},
    {"done", IN(LISTING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"a timer of before", IN(LISTING), ON(TIMER), TO(LISTING, "", "")},
    {"it has ended", IN(GLANCING), ON(ANSWER, .value = OUTCOME), TO(COMPARING, "keep, read c", "")},
    {"it has not", IN(GLANCING), ON(ANSWER), TO(UNLISTED, "arm 1000", "")},
    {"the answer was lost", IN(GLANCING), ON(ANSWER, .status = PEG_EIO), TO(UNLISTED, "arm 1000", "")},
    {"it has ended, and outputs may be under way", IN(GLANCING, .n_rechecks = 2), ON(ANSWER, .value = OUTCOME, .wants_output = true), TO(UNLISTED, "arm 2000", "end read")},
    {"it has ended, and who asks is new", IN(GLANCING, .n_rechecks = 1), ON(ANSWER, .value = OUTCOME, .wants_output = true), TO(COMPARING, "keep, read c", "")},
    {"done", IN(GLANCING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"the same call", IN(COMPARING), ON(ANSWER, .value = SAME), TO(OVER, "following, end", "")},
    {"a later call", IN(COMPARING, .n_rechecks = 3), ON(ANSWER, .value = NEXT), TO(LISTING, "list", "deadline, rechecks 0, identity")},
    {"forgotten: it asks for itself", IN(COMPARING), ON(ANSWER), TO(CHECKING, "readmit", "identity, coordinator 0.0")},
    {"forgotten, and this node has coordinated it", IN(COMPARING, LATE, .attempt = 2, .may_have_run = true, .n_outstanding = 1, .answered = 2, .refusal = BUS_OUTDATED, .refusals = {.n = 1, .met_outdated = true}, .n_rechecks = 2),
     ON(ANSWER), TO(CHECKING, "readmit", "not may have run, rechecks 0, attempt 0, refused 0, refusal, not outdated, answered 0, identity, coordinator 0.0")},
    {"forgotten, and it may not begin", IN(COMPARING, ORIGIN(ATTACHES)), ON(ANSWER), TO(OVER, "reject barred", "")},
    {"forgotten, and known by its id alone", IN(COMPARING, ORIGIN(AWAITS)), ON(ANSWER), TO(OVER, "reject unknown call", "")},
    {"the answer was lost", IN(COMPARING), ON(ANSWER, .status = PEG_EIO), TO(UNLISTED, "arm 1000", "")},
    {"done", IN(COMPARING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"the pause is over", IN(UNLISTED, .n_rechecks = 1), ON(TIMER), TO(LISTING, "disarm, list", "rechecks 2")},
    {"registers were lost", IN(UNLISTED), ON(RESET), TO(UNLISTED, "arm 1000", "")},
    {"done", IN(UNLISTED), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"done, and the outcome is in its register", IN(UNLISTED), MESSAGE(DONE), TO(LISTING, "disarm, list", "end heard, rechecks 1")},
    {"its time is over, which the other coordinator sees to", IN(UNLISTED), ON(DEADLINE), TO(UNLISTED, "", "ending deadline")},

    /* ---- waiting for its outcome ---- */
    {"silence", IN(FOLLOWING), ON(TIMER), TO(FOLLOWING, "disarm, read t", "recheck result, rechecks 1")},
    {"silence while it reads", IN(FOLLOWING, RECHECK(LEASE)), ON(TIMER), TO(FOLLOWING, "", "again")},
    {"registers were lost", IN(FOLLOWING, .n_rechecks = 2), ON(RESET), TO(FOLLOWING, "arm 2000", "")},
    {"it has not ended", IN(FOLLOWING, RECHECK(RESULT)), ON(ANSWER), TO(FOLLOWING, "read c", "recheck identity")},
    {"it has not ended, and was taken over from this node", IN(FOLLOWING, RECHECK(RESULT), .attempt = 1), ON(ANSWER), TO(FOLLOWING, "read node 2.0", "recheck lease")},
    {"it has ended", IN(FOLLOWING, RECHECK(RESULT)), ON(ANSWER, .value = OUTCOME), TO(OVER, "end current", "recheck none")},
    {"it has ended, and outputs may be under way", IN(FOLLOWING, RECHECK(RESULT), .n_rechecks = 2), ON(ANSWER, .value = OUTCOME, .wants_output = true),
     TO(FOLLOWING, "arm 2000", "recheck none, end read")},
    {"it has ended, and who asks is new", IN(FOLLOWING, RECHECK(RESULT), .n_rechecks = 1), ON(ANSWER, .value = PLACEHOLDER, .wants_output = true), TO(OVER, "end current", "recheck none")},
    {"the answer was lost", IN(FOLLOWING, RECHECK(RESULT), .n_rechecks = 3), ON(ANSWER, .status = PEG_EIO), TO(FOLLOWING, "arm 4000", "recheck none")},
    {"the same call", IN(FOLLOWING, RECHECK(IDENTITY)), ON(ANSWER, .value = SAME), TO(FOLLOWING, "read node 2.0", "recheck lease")},
    {"a later call", IN(FOLLOWING, RECHECK(IDENTITY), .n_rechecks = 3), ON(ANSWER, .value = NEXT), TO(LISTING, "list", "recheck none, deadline, rechecks 0, identity")},
    {"a later call, of another request", IN(FOLLOWING, RECHECK(IDENTITY)), ON(ANSWER, .value = OTHER_REQUEST), TO(OVER, "reject other request", "recheck none")},
    {"forgotten: it asks for itself", IN(FOLLOWING, RECHECK(IDENTITY), .n_rechecks = 3), ON(ANSWER), TO(CHECKING, "readmit", "recheck none, rechecks 0, identity, coordinator 0.0")},
    {"forgotten, and it may not begin", IN(FOLLOWING, ORIGIN(ATTACHES), RECHECK(IDENTITY)), ON(ANSWER), TO(OVER, "reject barred", "recheck none")},
    {"forgotten, and known by its id alone", IN(FOLLOWING, ORIGIN(AWAITS), RECHECK(IDENTITY)), ON(ANSWER), TO(OVER, "reject unknown call", "recheck none")},
    {"its coordinator is alive", IN(FOLLOWING, RECHECK(LEASE)), ON(ANSWER, .lease = {2, 0}), TO(FOLLOWING, "arm 1000", "recheck none")},
    {"alive, and should have ended it long ago", IN(FOLLOWING, RECHECK(LEASE)), ON(ANSWER, .lease = {2, 0}, .now_ms = LATE_MS), TO(WALKING, "read k1", "recheck none, walk 1")},
    {"its coordinator is lost", IN(FOLLOWING, RECHECK(LEASE), .is_owner_lost = true, .walk = 5), ON(ANSWER), TO(WALKING, "read k1", "recheck none, not owner lost, walk 1")},
    {"lost, and who may not begin does not take it over", IN(FOLLOWING, ORIGIN(ATTACHES), RECHECK(LEASE)), ON(ANSWER), TO(FOLLOWING, "arm 1000", "recheck none")},
    {"the same, until it should have ended long ago", IN(FOLLOWING, ORIGIN(ATTACHES), RECHECK(LEASE)), ON(ANSWER, .now_ms = LATE_MS), TO(WALKING, "read k1", "recheck none, walk 1")},
    {"lost, and known by its id alone", IN(FOLLOWING, ORIGIN(AWAITS), RECHECK(LEASE)), ON(ANSWER), TO(WALKING, "read k1", "recheck none, walk 1")},
    {"done, says the provider", IN(FOLLOWING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"done, says its coordinator", IN(FOLLOWING), MESSAGE(DONE, BODY, .attempt = NO_ATTEMPT, .from = {2, 0}, .deadline_ms = DEADLINE_MS), TO(OVER, "end current", "")},
    {"about the call before", IN(FOLLOWING), MESSAGE(DONE, BODY, .attempt = NO_ATTEMPT, .from = {2, 0}, .deadline_ms = DEADLINE_MS - 1),
     TO(FOLLOWING, "disarm, read t", "recheck result, end heard, rechecks 1")},
    {"done, says another coordinator", IN(FOLLOWING), MESSAGE(DONE, BODY, .attempt = NO_ATTEMPT, .from = {4, 0}, .deadline_ms = DEADLINE_MS),
     TO(FOLLOWING, "disarm, read t", "recheck result, end heard, rechecks 1")},
    {"done, and the outcome is in its register", IN(FOLLOWING), MESSAGE(DONE), TO(FOLLOWING, "disarm, read t", "recheck result, end heard, rechecks 1")},
    {"done, and this node may have been away", IN(FOLLOWING), .on = {CALLS_MESSAGE, .is_fenced = true, .message = {.kind = BUS_DONE, BODY}},
     TO(FOLLOWING, "disarm, read t", "recheck result, end heard, rechecks 1")},
    {"a refusal of when this node coordinated", IN(FOLLOWING, .attempt = 1, .n_outstanding = 1), MESSAGE(NAK, .reason = BUS_GONE), TO(FOLLOWING, "", "")},
    {"its provider has it", IN(FOLLOWING, CANCELED, .attempt = 1, .incarnation = "incarnation-1"), MESSAGE(HAVE, .from = {3, 1}), TO(FOLLOWING, "", "")},
    {"its provider is lost", IN(FOLLOWING), MESSAGE(LOST), TO(FOLLOWING, "", "")},
    {"what this node sent last was not received", IN(FOLLOWING, .attempt = 1, .n_outstanding = 1), ON(UNRECEIVED), TO(FOLLOWING, "", "outstanding 0")},
    {"canceled, before it knew that another coordinates", IN(FOLLOWING), ON(CANCEL), TO(FOLLOWING, "", "ending canceled")},

    /* ---- taking over ---- */
    {"an open attempt", IN(WALKING), ON(ANSWER), TO(TAKING, "revoke 1", "")},
    {"a provider has it", IN(WALKING), ON(ANSWER, .value = BY_PROVIDER), TO(PROBING, "read owner", "coordinator 0.0")},
    {"a coordinator took it back", IN(WALKING), ON(ANSWER, .value = BY_COORDINATOR), TO(PROBING, "read node 4.0", "coordinator 4.0")},
    {"there is none: it was never started", IN(WALKING, .walk = 2), ON(ANSWER, .value = BY_ENDED), TO(OVER, "reject coordinator lost", "")},
    {"taken before", IN(WALKING), ON(ANSWER, .value = BY_COORDINATOR, .is_own_token = true), TO(CONFIRMING, "put c", "")},
    {"the answer was lost", IN(WALKING), ON(ANSWER, .status = PEG_EIO), TO(FOLLOWING, "arm 1000", "")},
    {"a timer of before", IN(WALKING), ON(TIMER), TO(WALKING, "", "")},
    {"done", IN(WALKING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"done, and the outcome is in its register", IN(WALKING), MESSAGE(DONE), TO(WALKING, "", "end heard")},
    {"the provider is alive", IN(PROBING), ON(ANSWER, .lease = {3, 0}), TO(FOLLOWING, "arm 1000", "")},
    {"alive, and should have ended it long ago", IN(PROBING, .coordinator = {NO_ATTEMPT, 0}), ON(ANSWER, .lease = {3, 0}, .now_ms = LATE_MS), TO(WALKING, "read k2", "owner lost, walk 2")},
    {"the provider is lost", IN(PROBING, .coordinator = {NO_ATTEMPT, 0}), ON(ANSWER), TO(WALKING, "read k2", "owner lost, walk 2")},
    {"who took it back is lost", IN(PROBING, .coordinator = {4, 0}, .walk = 2), ON(ANSWER), TO(WALKING, "read k3", "walk 3")},
    {"the answer was lost", IN(PROBING), ON(ANSWER, .status = PEG_EIO), TO(FOLLOWING, "arm 1000", "")},
    {"the last of them is lost", IN(PROBING, .walk = LAST_WALK), ON(ANSWER), TO(WRITING, "coordinate, disarm, put t node lost", "why node lost, attempt 9, outstanding 1")},
    {"the same, and it may be started again", IN(PROBING, .walk = LAST_WALK, .is_idempotent = true), ON(ANSWER), TO(CHOOSING, "coordinate, choose", "may have run, attempt 9, outstanding 1")},
    {"the same, without a request", IN(PROBING, ORIGIN(AWAITS), .walk = LAST_WALK, .is_idempotent = true), ON(ANSWER),
     TO(WRITING, "coordinate, disarm, put t node lost", "why node lost, attempt 9, outstanding 1")},
    {"done", IN(PROBING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"taken", IN(TAKING), ON(ANSWER, .written = true), TO(CONFIRMING, "put c", "")},
    {"taken, without a request", IN(TAKING, ORIGIN(ATTACHES)), ON(ANSWER, .written = true), TO(CONFIRMING, "read c", "")},
    {"another was faster", IN(TAKING), ON(ANSWER, .value = BY_COORDINATOR), TO(FOLLOWING, "arm 1000", "")},
    {"the answer was lost", IN(TAKING), ON(ANSWER, .status = PEG_EIO), TO(FOLLOWING, "arm 1000", "")},
    {"done", IN(TAKING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
    {"it is still that call's", IN(CONFIRMING, .walk = 2), ON(ANSWER, .value = SAME), TO(CHOOSING, "coordinate, choose", "may have run, attempt 2, outstanding 1")},
    {"the same, behind its deadline", IN(CONFIRMING), ON(ANSWER, .value = SAME, .now_ms = DEADLINE_MS),
     TO(WRITING, "coordinate, disarm, put t ran late", "ending deadline, why ran late, may have run, attempt 1, outstanding 1")},
    {"the same, canceled", IN(CONFIRMING, CANCELED), ON(ANSWER, .value = SAME),
     TO(WRITING, "coordinate, disarm, put t ran canceled", "why ran canceled, may have run, attempt 1, outstanding 1")},
    {"the same, without a request", IN(CONFIRMING, ORIGIN(AWAITS)), ON(ANSWER, .value = SAME),
     TO(WRITING, "coordinate, disarm, put t ran late", "ending deadline, why ran late, may have run, attempt 1, outstanding 1")},
    {"the same, under other registers", IN(CONFIRMING), ON(ANSWER, .value = SAME, .epoch = 2),
     TO(WRITING, "coordinate, disarm, put t state lost", "why state lost, may have run, attempt 1, outstanding 1")},
    {"a provider that had it is lost", IN(CONFIRMING, .is_owner_lost = true, .walk = 2), ON(ANSWER, .value = SAME),
     TO(WRITING, "coordinate, disarm, put t node lost", "why node lost, attempt 2, outstanding 1")},
    {"the same, and the identity is one that this node wrote", IN(CONFIRMING, .is_owner_lost = true, .walk = 2), ON(ANSWER, .written = true, .value = SAME),
     TO(WRITING, "coordinate, disarm, put t node lost", "why node lost, attempt 2, outstanding 1")},
    {"the same, and the call was forgotten", IN(CONFIRMING, .is_owner_lost = true), ON(ANSWER, .written = true), TO(CHOOSING, "coordinate, choose", "may have run, attempt 1, outstanding 1")},
    {"the same, read without a request", IN(CONFIRMING, ORIGIN(ATTACHES), .is_owner_lost = true), ON(ANSWER),
     TO(WRITING, "coordinate, disarm, put t ran late", "ending deadline, why ran late, may have run, attempt 1, outstanding 1")},
    {"awaited, and the call was forgotten", IN(CONFIRMING, ORIGIN(AWAITS), .walk = 1), ON(ANSWER),
     TO(CLOSING, "coordinate, disarm, close 2", "why forgotten, attempt 1, outstanding 1")},
    {"the same, and its registers may have expired", IN(CONFIRMING, ORIGIN(AWAITS), .walk = 1), ON(ANSWER, .now_ms = DEADLINE_MS),
     TO(WRITING, "coordinate, disarm, put t ran late", "ending deadline, why ran late, may have run, attempt 1, outstanding 1")},
    {"the same, under other registers", IN(CONFIRMING, ORIGIN(AWAITS), .walk = 1), ON(ANSWER, .epoch = 2),
     TO(WRITING, "coordinate, disarm, put t state lost", "why state lost, may have run, attempt 1, outstanding 1")},
    {"no room for the identity", IN(CONFIRMING), ON(ANSWER, .status = PEG_ELIMIT), TO(CONFIRMING, "arm 50", "")},
    {"the answer was lost", IN(CONFIRMING), ON(ANSWER, .status = PEG_EIO), TO(CONFIRMING, "arm 50", "")},
    {"asks again", IN(CONFIRMING), ON(TIMER), TO(CONFIRMING, "put c", "")},
    {"done", IN(CONFIRMING), MESSAGE(DONE, BODY), TO(OVER, "end current", "")},
};
// clang-format on

enum { N_ROWS = sizeof(ROWS) / sizeof(*ROWS) };

#endif
