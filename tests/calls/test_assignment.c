/* SPDX-License-Identifier: Apache-2.0 */

/* The machine of an assignment as a table: a state and an event, the actions and the state that
 * follow. */

#include "../t.h"

#include "base/limits.h"
#include "calls/machine/assignment.h"

enum { DEADLINE_MS = 60000, UNKNOWN = -1 };
#define NOW_NS INT64_C(7000000000)
#define LONG_AGO_NS (NOW_NS - PEG_LIMIT_GATEWAY_REPORTED_MS * INT64_C(1000000))

/* ---- actions as text ---- */

static const char *message_name(enum bus_message_kind kind)
{
    switch (kind) {
    case BUS_NAK:
        return "nak";
    case BUS_HAVE:
        return "have";
    case BUS_DELTA:
        return "delta";
    case BUS_DONE:
        return "done";
    case BUS_LOST:
        return "lost";
    default:
        return "?";
    }
}

static const char *reason_name(enum bus_reason reason)
{
    static const char *const NAMES[] = {
        [BUS_NO_REASON] = "",           [BUS_OVERLOADED] = " overloaded",
        [BUS_DRAINING] = " draining",   [BUS_GONE] = " gone",
        [BUS_EPOCH] = " epoch",         [BUS_LATE] = " late",
        [BUS_UNKNOWN] = " unknown",     [BUS_DEADLINE] = " deadline",
        [BUS_CANCELED] = " canceled",   [BUS_SETTLED] = " settled",
        [BUS_FULL] = " full",           [BUS_OUTDATED] = " outdated",
        [BUS_DUPLICATE] = " duplicate",
    };

    return NAMES[reason];
}

static void print_action(const struct calls_assignment_action *action, char text[64])
{
    static const char *const NAMES[] = {
        [ASSIGNMENT_PUT_PLACEHOLDER] = "put placeholder",
        [ASSIGNMENT_SEND_WAITERS] = "send waiters",
        [ASSIGNMENT_HAND_OVER] = "hand over",
        [ASSIGNMENT_ACKNOWLEDGE] = "ack",
        [ASSIGNMENT_COUNT_LATE] = "late",
        [ASSIGNMENT_DROP] = "drop",
        [ASSIGNMENT_PUMP] = "pump",
    };

    switch (action->kind) {
    case ASSIGNMENT_PUT:
        snprintf(text, 64, "put %c", action->what);
        break;
    case ASSIGNMENT_READ:
        snprintf(text, 64, "read %c", action->what);
        break;
    case ASSIGNMENT_SEND:
        snprintf(text, 64, "send %s%s%s", message_name(action->message),
                 reason_name(action->reason), action->was_claimed ? " claimed" : "");
        break;
    case ASSIGNMENT_CANCEL:
        snprintf(text, 64, "cancel%s", reason_name(action->reason));
        break;
    case ASSIGNMENT_ARM:
        snprintf(text, 64, "arm %d", action->delay_ms);
        break;
    default:
        snprintf(text, 64, "%s", NAMES[action->kind]);
        break;
    }
}

static void print_actions(const struct calls_assignment_actions *actions, char text[256])
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < actions->n; i++) {
        char one[64];

        print_action(&actions->list[i], one);
        len += (size_t)snprintf(text + len, 256 - len, "%s%s", i ? ", " : "", one);
    }
}

/* ---- the table ---- */

struct row {
    const char *about;
    struct calls_assignment_machine before;
    struct calls_assignment_event event;
    const char *actions;
    enum calls_assignment_state after;
    /* what else it remembers */
    enum calls_assignment_right right;
    enum bus_reason reason;
    bool was_queried;
    bool is_unknown;
};

/* What a row does not say: the deadline is DEADLINE_MS, an answer takes no time. */
#define IN(state_, ...) .before = {.state = ASSIGNMENT_##state_, __VA_ARGS__}
#define ON(kind_, ...) .event = {.kind = ASSIGNMENT_ON_##kind_, __VA_ARGS__}
#define TO(state_, text, ...) .actions = text, .after = ASSIGNMENT_##state_, __VA_ARGS__
#define CLAIMS .right = ASSIGNMENT_CLAIMS
#define VERIFIED .right = ASSIGNMENT_VERIFIED
#define KEYED .scope = ASSIGNMENT_KEYED
#define LOCAL .scope = ASSIGNMENT_LOCAL
#define FOREIGN .scope = ASSIGNMENT_FOREIGN

// clang-format off
static const struct row ROWS[] = {
    /* ---- in the queue ---- */
    {"a place", IN(QUEUED), ON(PLACE), TO(CLAIMING, "put k")},
    {"its provider drains", IN(QUEUED), ON(REFUSE, .reason = BUS_DRAINING), TO(OVER, "send nak draining, drop")},
    {"canceled", IN(QUEUED), ON(CANCEL, .reason = BUS_DEADLINE), TO(OVER, "send nak canceled, drop")},
    {"asked for", IN(QUEUED), ON(ASK), TO(QUEUED, "send have", .was_queried = true)},
    {"a result of what was not handed over", IN(QUEUED), ON(RESULT), TO(QUEUED, "")},
    {"its provider is lost", IN(QUEUED), ON(LOST), TO(OVER, "drop")},
    {"its provider has it from another loop", IN(QUEUED), ON(LISTED), TO(OVER, "send nak duplicate, drop")},

    /* ---- claiming ---- */
    {"claimed", IN(CLAIMING), ON(ANSWER, .is_own = true), TO(RUNNING, "hand over, pump")},
    {"the answer was lost", IN(CLAIMING), ON(ANSWER, .status = PEG_EIO), TO(CLAIMING, "arm 50")},
    {"claims again", IN(CLAIMING), ON(RETRY), TO(CLAIMING, "put k")},
    {"its provider has it from another loop", IN(CLAIMING), ON(LISTED), TO(OVER, "send nak duplicate, drop")},
    {"no memory for a register", IN(CLAIMING), ON(ANSWER, .status = PEG_ENOMEM), TO(OVER, "send nak full, drop, pump")},
    {"no room for a register", IN(CLAIMING), ON(ANSWER, .status = PEG_ELIMIT), TO(OVER, "send nak full, drop, pump")},
    {"revoked, or another's", IN(CLAIMING), ON(ANSWER), TO(OVER, "send nak duplicate, drop, pump")},
    {"canceled meanwhile", IN(CLAIMING, .reason = BUS_DEADLINE), ON(ANSWER, .is_own = true),
     TO(OVER, "send nak canceled claimed, drop, pump", .reason = BUS_DEADLINE)},
    {"its provider went meanwhile", IN(CLAIMING), ON(ANSWER, .is_own = true, .closed = BUS_GONE),
     TO(OVER, "send nak gone claimed, drop, pump")},
    {"it went, and it was canceled", IN(CLAIMING, .reason = BUS_CANCELED),
     ON(ANSWER, .is_own = true, .closed = BUS_GONE), TO(OVER, "send nak gone claimed, drop, pump", .reason = BUS_CANCELED)},
    {"its provider drains meanwhile", IN(CLAIMING), ON(ANSWER, .is_own = true, .closed = BUS_DRAINING),
     TO(OVER, "send nak draining claimed, drop, pump")},
    {"it drains, and it was canceled", IN(CLAIMING, .reason = BUS_CANCELED),
     ON(ANSWER, .is_own = true, .closed = BUS_DRAINING), TO(OVER, "send nak canceled claimed, drop, pump", .reason = BUS_CANCELED)},
    {"under another epoch than it was sent", IN(CLAIMING), ON(ANSWER, .is_own = true, .epoch = 1),
     TO(OVER, "send nak epoch, drop, pump")},
    {"canceled, under another epoch", IN(CLAIMING, .reason = BUS_CANCELED), ON(ANSWER, .is_own = true, .epoch = 1),
     TO(OVER, "send nak canceled, drop, pump", .reason = BUS_CANCELED)},
    {"an answer that took a second", IN(CLAIMING), ON(ANSWER, .is_own = true, .asked_ns = NOW_NS - 1000000000), TO(RUNNING, "hand over, pump")},
    {"an answer that took longer", IN(CLAIMING), ON(ANSWER, .is_own = true, .asked_ns = NOW_NS - 1000000001),
     TO(OVER, "send nak late claimed, drop, pump")},
    {"an answer that took as long as it may with a short lease", IN(CLAIMING),
     ON(ANSWER, .is_own = true, .asked_ns = NOW_NS - 100, .trust_ns = 100), TO(RUNNING, "hand over, pump")},
    {"an answer that took longer than it may with a short lease", IN(CLAIMING),
     ON(ANSWER, .is_own = true, .asked_ns = NOW_NS - 101, .trust_ns = 100), TO(OVER, "send nak late claimed, drop, pump")},
    {"behind its deadline", IN(CLAIMING), ON(ANSWER, .is_own = true, .now_ms = DEADLINE_MS),
     TO(OVER, "send nak late claimed, drop, pump")},
    {"canceled", IN(CLAIMING), ON(CANCEL, .reason = BUS_CANCELED), TO(CLAIMING, "", .reason = BUS_CANCELED)},
    {"asked for", IN(CLAIMING), ON(ASK), TO(CLAIMING, "send have", .was_queried = true)},
    {"registers were lost", IN(CLAIMING), ON(RESET), TO(CLAIMING, "")},
    {"a Hello does not list what it has not got", IN(CLAIMING), ON(UNLISTED), TO(CLAIMING, "")},
    {"its provider is lost", IN(CLAIMING), ON(LOST), TO(OVER, "drop")},

    /* ---- running ---- */
    {"a result", IN(RUNNING), ON(RESULT), TO(WRITING, "put t")},
    {"a result that a worker reads", IN(RUNNING), ON(VALIDATE), TO(VALIDATING, "")},
    {"a result without memory", IN(RUNNING), ON(DISCARD), TO(OVER, "drop, ack, pump")},
    {"output", IN(RUNNING), ON(OUTPUT), TO(RUNNING, "send delta")},
    {"given back", IN(RUNNING), ON(GIVE_BACK, .reason = BUS_OVERLOADED), TO(OVER, "send nak overloaded claimed, drop")},
    {"canceled", IN(RUNNING), ON(CANCEL, .reason = BUS_DEADLINE), TO(RUNNING, "cancel deadline", .reason = BUS_DEADLINE)},
    {"canceled twice", IN(RUNNING, .reason = BUS_CANCELED), ON(CANCEL, .reason = BUS_DEADLINE),
     TO(RUNNING, "", .reason = BUS_CANCELED)},
    {"asked for", IN(RUNNING), ON(ASK), TO(RUNNING, "send have", .was_queried = true)},
    {"its provider is lost", IN(RUNNING), ON(LOST), TO(OVER, "send lost, drop")},
    {"an answer to a check that has ended", IN(RUNNING), ON(ANSWER, .is_there = true), TO(RUNNING, "")},
    {"a timer of before", IN(RUNNING), ON(RETRY), TO(RUNNING, "")},
    {"registers were lost", IN(RUNNING), ON(RESET), TO(RUNNING, "")},
    {"a review of what was handed over here", IN(RUNNING), ON(REVIEW), TO(RUNNING, "")},

    /* ---- its provider comes back ---- */
    {"a Hello", IN(RUNNING), ON(HELLO), TO(RUNNING, "")},
    {"listed", IN(RUNNING), ON(LISTED), TO(REPORTED, "")},
    {"listed twice", IN(REPORTED), ON(LISTED), TO(REPORTED, "")},
    {"not listed, of one that was elsewhere", IN(RUNNING), ON(UNLISTED), TO(OVER, "drop")},
    {"not listed: it never got it", IN(RUNNING), ON(GIVE_BACK, .reason = BUS_GONE), TO(OVER, "send nak gone claimed, drop")},
    {"a Hello before the last one was looked at", IN(REPORTED), ON(HELLO), TO(RUNNING, "")},
    {"a Hello while it is checked", IN(CHECKING_RESULT), ON(HELLO), TO(RUNNING, "")},
    {"listed while it is checked", IN(CHECKING_CLAIM), ON(LISTED), TO(REPORTED, "")},
    {"its coordinator is notified", IN(REPORTED), ON(NOTIFY), TO(CHECKING_RESULT, "send have, read t")},
    {"its provider is told again", IN(REPORTED, .reason = BUS_CANCELED), ON(NOTIFY),
     TO(RUNNING, "cancel canceled", .reason = BUS_CANCELED)},
    {"of another node", IN(REPORTED, CLAIMS, FOREIGN), ON(NOTIFY),
     TO(RUNNING, "send have, pump", CLAIMS, .is_unknown = true)},
    {"of another node, asked for", IN(REPORTED, CLAIMS, FOREIGN, .was_queried = true), ON(NOTIFY),
     TO(RUNNING, "send have", CLAIMS, .was_queried = true)},
    {"only what was reported is notified", IN(RUNNING), ON(NOTIFY), TO(RUNNING, "")},
    {"a result before it was looked at", IN(REPORTED), ON(RESULT), TO(WRITING, "put t")},
    {"canceled before it was looked at", IN(REPORTED), ON(CANCEL, .reason = BUS_CANCELED),
     TO(REPORTED, "cancel canceled", .reason = BUS_CANCELED)},
    {"asked for before it was looked at", IN(REPORTED, CLAIMS), ON(ASK), TO(REPORTED, "send have", CLAIMS, .was_queried = true)},
    {"lost before it was looked at", IN(REPORTED), ON(LOST), TO(OVER, "send lost, drop")},

    /* ---- checks of what was reported ---- */
    {"it has not ended", IN(CHECKING_RESULT, CLAIMS), ON(ANSWER), TO(CHECKING_CLAIM, "read k", CLAIMS)},
    {"it has ended", IN(CHECKING_RESULT, CLAIMS), ON(ANSWER, .is_there = true), TO(CHECKING_ENDED, "read k", CLAIMS)},
    {"a read that failed", IN(CHECKING_RESULT, CLAIMS), ON(ANSWER, .status = PEG_EIO), TO(RUNNING, "", CLAIMS)},
    {"the claim names its provider", IN(CHECKING_CLAIM, CLAIMS, .unknown_ns = 1),
     ON(ANSWER, .is_own = true, .is_there = true), TO(RUNNING, "", VERIFIED)},
    {"the same of what was handed over here", IN(CHECKING_CLAIM), ON(ANSWER, .is_own = true, .is_there = true), TO(RUNNING, "")},
    {"the claim names another", IN(CHECKING_CLAIM, CLAIMS), ON(ANSWER, .is_there = true),
     TO(RUNNING, "pump", CLAIMS, .is_unknown = true)},
    {"no claim, with an identity", IN(CHECKING_CLAIM, CLAIMS, KEYED), ON(ANSWER), TO(RUNNING, "pump", CLAIMS, .is_unknown = true)},
    {"the same, and it is asked for", IN(CHECKING_CLAIM, CLAIMS, .was_queried = true), ON(ANSWER),
     TO(RUNNING, "", CLAIMS, .was_queried = true)},
    {"no claim of what was handed over here", IN(CHECKING_CLAIM), ON(ANSWER), TO(RUNNING, "")},
    {"no claim on this node: it has ended", IN(CHECKING_CLAIM, CLAIMS, LOCAL), ON(ANSWER),
     TO(RUNNING, "cancel settled", CLAIMS, .reason = BUS_SETTLED)},
    {"the same, and its provider knows", IN(CHECKING_CLAIM, CLAIMS, LOCAL, .reason = BUS_SETTLED), ON(ANSWER),
     TO(RUNNING, "pump", CLAIMS, .reason = BUS_SETTLED, .is_unknown = true)},
    {"a claim that cannot be read", IN(CHECKING_CLAIM, CLAIMS), ON(ANSWER, .status = PEG_EIO), TO(RUNNING, "", CLAIMS)},
    {"it has ended, and was its own", IN(CHECKING_ENDED, CLAIMS), ON(ANSWER, .is_own = true, .is_there = true),
     TO(RUNNING, "cancel settled", CLAIMS, .reason = BUS_SETTLED)},
    {"the same, canceled before", IN(CHECKING_ENDED, VERIFIED, .reason = BUS_DEADLINE),
     ON(ANSWER, .is_own = true, .is_there = true),
     TO(RUNNING, "pump", VERIFIED, .reason = BUS_DEADLINE, .is_unknown = true)},
    {"it has ended, and was another's", IN(CHECKING_ENDED, CLAIMS), ON(ANSWER, .is_there = true),
     TO(RUNNING, "pump", CLAIMS, .is_unknown = true)},
    {"unverified before", IN(CHECKING_ENDED, CLAIMS, .unknown_ns = 1), ON(ANSWER, .is_there = true),
     TO(RUNNING, "", CLAIMS, .is_unknown = true)},
    {"canceled while it is checked", IN(CHECKING_CLAIM), ON(CANCEL, .reason = BUS_CANCELED),
     TO(CHECKING_CLAIM, "cancel canceled", .reason = BUS_CANCELED)},
    {"a result while it is checked", IN(CHECKING_ENDED, CLAIMS), ON(RESULT), TO(VERIFYING, "read k", CLAIMS)},
    {"lost while it is checked", IN(CHECKING_ENDED, CLAIMS), ON(LOST), TO(OVER, "send lost, drop", CLAIMS)},

    /* ---- reviews ---- */
    {"a review", IN(RUNNING, CLAIMS), ON(REVIEW), TO(CHECKING_RESULT, "read t", CLAIMS)},
    {"a review of what is verified", IN(RUNNING, VERIFIED), ON(REVIEW), TO(CHECKING_RESULT, "read t", VERIFIED)},
    {"a review of what moved before it was looked at", IN(REPORTED, CLAIMS), ON(REVIEW), TO(CHECKING_RESULT, "read t", CLAIMS)},
    {"a review of what was asked for", IN(RUNNING, CLAIMS, .was_queried = true), ON(REVIEW), TO(RUNNING, "", CLAIMS)},
    {"a review of what is checked", IN(CHECKING_CLAIM, CLAIMS), ON(REVIEW), TO(CHECKING_CLAIM, "", CLAIMS)},
    {"a review of what is on another node", IN(RUNNING, CLAIMS, FOREIGN), ON(REVIEW),
     TO(RUNNING, "pump", CLAIMS, .is_unknown = true)},
    {"unverified for a while", IN(RUNNING, CLAIMS, .unknown_ns = LONG_AGO_NS + 1), ON(REVIEW),
     TO(CHECKING_RESULT, "read t", CLAIMS, .is_unknown = true)},
    {"unverified for long", IN(RUNNING, CLAIMS, .unknown_ns = LONG_AGO_NS), ON(REVIEW), TO(OVER, "drop", CLAIMS, .is_unknown = true)},
    {"unverified for long, and checked", IN(CHECKING_RESULT, CLAIMS, .unknown_ns = LONG_AGO_NS), ON(REVIEW),
     TO(OVER, "drop", CLAIMS, .is_unknown = true)},
    {"asked for, it is not unverified", IN(RUNNING, CLAIMS, .unknown_ns = 1), ON(ASK),
     TO(RUNNING, "send have", CLAIMS, .was_queried = true)},
    {"nor when its provider speaks of it", IN(RUNNING, CLAIMS, .unknown_ns = 1), ON(OUTPUT), TO(RUNNING, "send delta", CLAIMS)},
    {"nor when it is answered", IN(RUNNING, VERIFIED, .unknown_ns = 1), ON(RESULT), TO(WRITING, "put t", VERIFIED)},

    /* ---- is it its provider's? ---- */
    {"a result of what was reported", IN(RUNNING, CLAIMS), ON(RESULT), TO(VERIFYING, "read k", CLAIMS)},
    {"the same, verified", IN(RUNNING, VERIFIED), ON(RESULT), TO(WRITING, "put t", VERIFIED)},
    {"the same, and its deadline is not known", IN(RUNNING, VERIFIED, KEYED, .deadline_ms = UNKNOWN), ON(RESULT),
     TO(READING_DEADLINE, "read c", VERIFIED)},
    {"it is", IN(VERIFYING, CLAIMS), ON(ANSWER, .is_own = true, .is_there = true), TO(WRITING, "put t", CLAIMS)},
    {"it is, with an identity", IN(VERIFYING, CLAIMS, KEYED, .deadline_ms = UNKNOWN),
     ON(ANSWER, .is_own = true, .is_there = true), TO(READING_DEADLINE, "read c", CLAIMS)},
    {"it is not", IN(VERIFYING, CLAIMS), ON(ANSWER, .is_there = true), TO(OVER, "late, drop, ack, pump", CLAIMS)},
    {"nothing tells", IN(VERIFYING, CLAIMS), ON(ANSWER), TO(OVER, "late, drop, ack, pump", CLAIMS)},
    {"of another node, unknown here", IN(VERIFYING, CLAIMS, FOREIGN), ON(ANSWER), TO(WRITING, "put t", CLAIMS)},
    {"of another node, and a call of this one", IN(VERIFYING, CLAIMS, FOREIGN), ON(ANSWER, .is_there = true, .is_own = true),
     TO(OVER, "late, drop, ack, pump", CLAIMS)},
    {"the answer was lost", IN(VERIFYING, CLAIMS), ON(ANSWER, .status = PEG_EIO), TO(VERIFYING, "arm 50", CLAIMS)},
    {"no memory for it", IN(VERIFYING, CLAIMS), ON(ANSWER, .status = PEG_ENOMEM), TO(VERIFYING, "arm 50", CLAIMS)},
    {"reads again", IN(VERIFYING, CLAIMS), ON(RETRY), TO(VERIFYING, "read k", CLAIMS)},
    {"registers were lost", IN(VERIFYING, CLAIMS), ON(RESET), TO(VERIFYING, "arm 0", CLAIMS)},
    {"given back by one that reported it", IN(RUNNING, CLAIMS), ON(GIVE_BACK, .reason = BUS_OVERLOADED),
     TO(RETURNING, "read k", CLAIMS, .reason = BUS_OVERLOADED)},
    {"given back while it is checked", IN(CHECKING_RESULT, CLAIMS, .reason = BUS_CANCELED), ON(GIVE_BACK, .reason = BUS_GONE),
     TO(RETURNING, "read k", CLAIMS, .reason = BUS_GONE)},
    {"it was its own", IN(RETURNING, CLAIMS, .reason = BUS_GONE), ON(ANSWER, .is_own = true, .is_there = true),
     TO(OVER, "send nak gone claimed, drop, pump", CLAIMS, .reason = BUS_GONE)},
    {"it was not", IN(RETURNING, CLAIMS, .reason = BUS_GONE), ON(ANSWER, .is_there = true),
     TO(OVER, "drop, pump", CLAIMS, .reason = BUS_GONE)},
    {"the answer was lost", IN(RETURNING, CLAIMS, .reason = BUS_GONE), ON(ANSWER, .status = PEG_EIO),
     TO(RETURNING, "arm 50", CLAIMS, .reason = BUS_GONE)},
    {"reads again", IN(RETURNING, CLAIMS, .reason = BUS_GONE), ON(RETRY), TO(RETURNING, "read k", CLAIMS, .reason = BUS_GONE)},
    {"canceled meanwhile", IN(RETURNING, CLAIMS, .reason = BUS_GONE), ON(CANCEL, .reason = BUS_DEADLINE),
     TO(RETURNING, "", CLAIMS, .reason = BUS_GONE)},
    {"its provider is lost", IN(RETURNING, CLAIMS), ON(LOST), TO(OVER, "drop", CLAIMS)},
    {"its provider is lost", IN(VERIFYING, CLAIMS), ON(LOST), TO(OVER, "drop", CLAIMS)},

    /* ---- a worker reads the result ---- */
    {"it is good, or its error is made", IN(VALIDATING), ON(RESULT), TO(WRITING, "put t")},
    {"the same of what was reported", IN(VALIDATING, CLAIMS), ON(RESULT), TO(VERIFYING, "read k", CLAIMS)},
    {"the same, verified", IN(VALIDATING, VERIFIED, KEYED, .deadline_ms = UNKNOWN), ON(RESULT), TO(READING_DEADLINE, "read c", VERIFIED)},
    {"no memory for the error", IN(VALIDATING), ON(DISCARD), TO(OVER, "drop, ack, pump")},
    {"canceled", IN(VALIDATING), ON(CANCEL, .reason = BUS_CANCELED), TO(VALIDATING, "")},
    {"asked for", IN(VALIDATING), ON(ASK), TO(VALIDATING, "send have", .was_queried = true)},
    {"an answer to a check that has ended", IN(VALIDATING, CLAIMS), ON(ANSWER), TO(VALIDATING, "", CLAIMS)},
    {"a second result", IN(VALIDATING), ON(VALIDATE), TO(VALIDATING, "")},
    {"given back as well", IN(VALIDATING), ON(GIVE_BACK, .reason = BUS_OVERLOADED), TO(VALIDATING, "")},
    {"registers were lost", IN(VALIDATING), ON(RESET), TO(VALIDATING, "")},
    {"its provider is lost", IN(VALIDATING), ON(LOST), TO(OVER, "drop")},

    /* ---- how long is the result kept? ---- */
    {"the identity tells", IN(READING_DEADLINE, VERIFIED, KEYED, .deadline_ms = UNKNOWN),
     ON(ANSWER, .deadline_ms = DEADLINE_MS), TO(WRITING, "put t", VERIFIED)},
    {"the answer was lost", IN(READING_DEADLINE, VERIFIED, KEYED, .deadline_ms = UNKNOWN), ON(ANSWER, .status = PEG_EIO),
     TO(READING_DEADLINE, "arm 50", VERIFIED)},
    {"reads again", IN(READING_DEADLINE, VERIFIED, KEYED, .deadline_ms = UNKNOWN), ON(RETRY), TO(READING_DEADLINE, "read c", VERIFIED)},
    {"registers were lost", IN(READING_DEADLINE, VERIFIED, KEYED), ON(RESET), TO(READING_DEADLINE, "arm 0", VERIFIED)},
    {"its provider is lost", IN(READING_DEADLINE, VERIFIED, KEYED), ON(LOST), TO(OVER, "drop", VERIFIED)},

    /* ---- writing ---- */
    {"written", IN(WRITING), ON(ANSWER, .is_own = true), TO(OVER, "send done, drop, ack, pump")},
    {"written, with an identity", IN(WRITING, KEYED), ON(ANSWER, .is_own = true), TO(NOTIFYING, "send done, read w")},
    {"there is another outcome", IN(WRITING), ON(ANSWER), TO(OVER, "late, drop, ack, pump")},
    {"the answer was lost", IN(WRITING), ON(ANSWER, .status = PEG_EIO), TO(WRITING, "arm 50")},
    {"no memory for it", IN(WRITING), ON(ANSWER, .status = PEG_ENOMEM), TO(WRITING, "arm 50")},
    {"writes again", IN(WRITING), ON(RETRY), TO(WRITING, "put t")},
    {"registers were lost", IN(WRITING), ON(RESET), TO(WRITING, "arm 0")},
    {"no room for it", IN(WRITING), ON(ANSWER, .status = PEG_ELIMIT), TO(WRITING_PLACEHOLDER, "put placeholder")},
    {"asked for", IN(WRITING), ON(ASK), TO(WRITING, "send have", .was_queried = true)},
    {"a second result", IN(WRITING), ON(RESULT), TO(WRITING, "")},
    {"a Hello does not list what it has answered", IN(WRITING), ON(UNLISTED), TO(WRITING, "")},
    {"its provider is lost", IN(WRITING), ON(LOST), TO(OVER, "drop")},
    {"a placeholder is written", IN(WRITING_PLACEHOLDER), ON(ANSWER, .is_own = true), TO(OVER, "send done, drop, ack, pump")},
    {"with an identity", IN(WRITING_PLACEHOLDER, KEYED), ON(ANSWER, .is_own = true), TO(NOTIFYING, "send done, read w")},
    {"no room for that, either", IN(WRITING_PLACEHOLDER, KEYED), ON(ANSWER, .status = PEG_ELIMIT), TO(NOTIFYING, "send done, read w")},
    {"there is another outcome", IN(WRITING_PLACEHOLDER), ON(ANSWER), TO(OVER, "late, drop, ack, pump")},
    {"the answer was lost", IN(WRITING_PLACEHOLDER), ON(ANSWER, .status = PEG_EIO), TO(WRITING_PLACEHOLDER, "arm 50")},
    {"writes it again", IN(WRITING_PLACEHOLDER), ON(RETRY), TO(WRITING_PLACEHOLDER, "put placeholder")},
    {"registers were lost", IN(WRITING_PLACEHOLDER), ON(RESET), TO(WRITING_PLACEHOLDER, "arm 0")},
    {"its provider is lost", IN(WRITING_PLACEHOLDER), ON(LOST), TO(OVER, "drop")},

    /* ---- those who wait ---- */
    {"they are known", IN(NOTIFYING, KEYED), ON(ANSWER), TO(OVER, "send waiters, drop, ack, pump")},
    {"they are not", IN(NOTIFYING, KEYED), ON(ANSWER, .status = PEG_EIO), TO(OVER, "drop, ack, pump")},
    {"registers were lost", IN(NOTIFYING, KEYED), ON(RESET), TO(NOTIFYING, "arm 0")},
    {"the result is written again", IN(NOTIFYING, KEYED), ON(RETRY), TO(WRITING, "put t")},
    {"its provider is lost", IN(NOTIFYING, KEYED), ON(LOST), TO(OVER, "drop")},
};
// clang-format on

enum { N_ROWS = sizeof(ROWS) / sizeof(*ROWS) };

static void step_row(const struct row *row, struct calls_assignment_machine *ret_machine,
                     struct calls_assignment_actions *ret_actions)
{
    struct calls_assignment_event event = row->event;

    *ret_machine = row->before;
    ret_machine->deadline_ms = row->before.deadline_ms == UNKNOWN ? 0 : DEADLINE_MS;
    event.now_ns = NOW_NS;
    event.asked_ns = event.asked_ns ? event.asked_ns : NOW_NS;
    event.trust_ns = event.trust_ns ? event.trust_ns : 1000000000;
    calls_assignment_step(ret_machine, &event, ret_actions);
}

static void check_row(const struct row *row)
{
    struct calls_assignment_machine machine;
    struct calls_assignment_actions actions;
    char text[256];

    step_row(row, &machine, &actions);
    print_actions(&actions, text);
    if (strcmp(text, row->actions) != 0 || machine.state != row->after ||
        machine.right != row->right || machine.reason != row->reason ||
        machine.was_queried != row->was_queried || (machine.unknown_ns != 0) != row->is_unknown)
        T_FAIL("%s, %s (%s): \"%s\" and %s, right %d, reason %d, asked %d, unverified %d",
               calls_assignment_state_names[row->before.state],
               calls_assignment_event_names[row->event.kind], row->about, text,
               calls_assignment_state_names[machine.state], (int)machine.right, (int)machine.reason,
               machine.was_queried, machine.unknown_ns != 0);
}

TEST(each_event_has_the_actions_and_the_state_that_the_table_says)
{
    for (size_t i = 0; i < N_ROWS; i++)
        check_row(&ROWS[i]);
}

TEST(every_legal_transition_is_in_the_table)
{
    for (unsigned from = 0; from <= ASSIGNMENT_OVER; from++)
        for (unsigned to = 0; to <= ASSIGNMENT_OVER; to++) {
            size_t n = !calls_assignment_may_become((enum calls_assignment_state)from,
                                                    (enum calls_assignment_state)to);

            for (size_t i = 0; i < N_ROWS; i++)
                n += ROWS[i].before.state == from && ROWS[i].after == to;
            if (!n)
                T_FAIL("no row from %s to %s", calls_assignment_state_names[from],
                       calls_assignment_state_names[to]);
        }
}

/* A request may be answered before it returns, and a dropped assignment is gone. */
TEST(only_a_pump_follows_a_request_and_only_its_provider_learns_of_a_dropped_assignment)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        struct calls_assignment_machine machine;
        struct calls_assignment_actions actions;
        bool is_asked = false;
        bool is_dropped = false;

        step_row(&ROWS[i], &machine, &actions);
        for (unsigned j = 0; j < actions.n; j++) {
            const enum calls_assignment_action_kind kind = actions.list[j].kind;

            CHECK(!is_asked || kind == ASSIGNMENT_PUMP);
            CHECK(!is_dropped || kind == ASSIGNMENT_PUMP || kind == ASSIGNMENT_ACKNOWLEDGE);
            is_asked = is_asked || kind == ASSIGNMENT_PUT || kind == ASSIGNMENT_READ ||
                       kind == ASSIGNMENT_PUT_PLACEHOLDER || kind == ASSIGNMENT_HAND_OVER;
            is_dropped = is_dropped || kind == ASSIGNMENT_DROP;
        }
        CHECK(is_dropped == (machine.state == ASSIGNMENT_OVER));
    }
}

/* No event may break the machine in any state, with any right and scope. */
TEST(any_event_in_any_state_is_legal)
{
    for (unsigned state = 0; state < ASSIGNMENT_OVER; state++)
        for (unsigned kind = 0; kind <= ASSIGNMENT_ON_DISCARD; kind++)
            for (unsigned bits = 0; bits < 3 * 4 * 64; bits++) {
                struct calls_assignment_machine machine = {
                    .state = (enum calls_assignment_state)state,
                    .right = (enum calls_assignment_right)(bits % 3),
                    .scope = (enum calls_assignment_scope)(bits / 3 % 4),
                    .was_queried = bits / 12 & 1,
                    .unknown_ns = bits / 12 & 2,
                    .deadline_ms = bits / 12 & 4 ? DEADLINE_MS : 0,
                };
                const struct calls_assignment_event event = {
                    .kind = (enum calls_assignment_event_kind)kind,
                    .status = bits / 12 & 8 ? PEG_EIO : PEG_OK,
                    .is_own = bits / 12 & 16,
                    .is_there = bits / 12 & 32,
                    .now_ns = NOW_NS,
                };
                struct calls_assignment_actions actions;

                calls_assignment_step(&machine, &event, &actions);
                CHECK(actions.n <= ASSIGNMENT_MAX_ACTIONS);
            }
}

TEST(a_deadline_that_was_read_is_kept)
{
    struct calls_assignment_machine machine = {.state = ASSIGNMENT_READING_DEADLINE};
    const struct calls_assignment_event event = {.kind = ASSIGNMENT_ON_ANSWER,
                                                 .deadline_ms = DEADLINE_MS};
    struct calls_assignment_actions actions;

    calls_assignment_step(&machine, &event, &actions);
    CHECK_INT(machine.deadline_ms, DEADLINE_MS);
}
