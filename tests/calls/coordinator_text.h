/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CALLS_COORDINATOR_TEXT_H
#define PEG_TESTS_CALLS_COORDINATOR_TEXT_H

/* Actions of the machine of a call, and what changed in it, as text. Include it behind t.h. */

#include <stdarg.h>

#include "calls/machine/coordinator.h"

static const char *reason_name(enum bus_reason reason)
{
    static const char *const NAMES[] = {
        [BUS_NO_REASON] = "",           [BUS_OVERLOADED] = " overloaded",
        [BUS_DRAINING] = " draining",   [BUS_GONE] = " gone",
        [BUS_EPOCH] = " epoch",         [BUS_LATE] = " late",
        [BUS_DEADLINE] = " deadline",   [BUS_CANCELED] = " canceled",
        [BUS_FULL] = " full",           [BUS_OUTDATED] = " outdated",
        [BUS_DUPLICATE] = " duplicate",
    };

    return NAMES[reason];
}

static const char *why_name(enum calls_why why)
{
    static const char *const NAMES[CALLS_N_WHY] = {
        [CALLS_NO_WHY] = "",
        [CALLS_WHY_BARRED] = " barred",
        [CALLS_WHY_UNSTARTED] = " unstarted",
        [CALLS_WHY_UNREAD] = " unread",
        [CALLS_WHY_UNANSWERED] = " unanswered",
        [CALLS_WHY_UNSETTLED] = " unsettled",
        [CALLS_WHY_UNKNOWN_CALL] = " unknown call",
        [CALLS_WHY_OTHER_VERSION] = " other version",
        [CALLS_WHY_OTHER_REQUEST] = " other request",
        [CALLS_WHY_WAIT_OVER] = " wait over",
        [CALLS_WHY_COORDINATOR_LOST] = " coordinator lost",
        [CALLS_WHY_NO_PROVIDER] = " no provider",
        [CALLS_WHY_FORGOTTEN] = " forgotten",
        [CALLS_WHY_TIMEOUT] = " timeout",
        [CALLS_WHY_CANCELED] = " canceled",
        [CALLS_WHY_RAN_LATE] = " ran late",
        [CALLS_WHY_RAN_CANCELED] = " ran canceled",
        [CALLS_WHY_PROVIDER_LOST] = " provider lost",
        [CALLS_WHY_NOBODY_ELSE] = " nobody else",
        [CALLS_WHY_PROVIDER_MOVED] = " provider moved",
        [CALLS_WHY_NODE_LOST] = " node lost",
        [CALLS_WHY_STATE_LOST] = " state lost",
        [CALLS_WHY_HALTED] = " halted",
        [CALLS_WHY_NO_ROOM] = " no room",
    };

    return NAMES[why];
}

static const char *const ACTION_NAMES[CALLS_N_ACTIONS] = {
    [CALLS_PUT_IDENTITY] = "put c",
    [CALLS_PUT_REVOKED] = "revoke",
    [CALLS_PUT_ENDED] = "close",
    [CALLS_PUT_RESULT] = "put t",
    [CALLS_READ] = "read",
    [CALLS_READ_LEASE] = "read lease",
    [CALLS_READ_NODE] = "read node",
    [CALLS_READ_OWNER] = "read owner",
    [CALLS_LIST] = "list",
    [CALLS_READ_WAITERS] = "read w",
    [CALLS_ARM] = "arm",
    [CALLS_DISARM] = "disarm",
    [CALLS_CHOOSE] = "choose",
    [CALLS_FIND] = "find",
    [CALLS_RELEASE] = "release",
    [CALLS_SEND_CALL] = "send call",
    [CALLS_SEND_CANCEL] = "send cancel",
    [CALLS_SEND_ASK] = "ask",
    [CALLS_SEND_LISTEN] = "listen",
    [CALLS_SEND_STOP] = "stop",
    [CALLS_SEND_OUTCOME] = "send outcome",
    [CALLS_REPORT_ADMITTED] = "admitted",
    [CALLS_REPORT_FOLLOWING] = "following",
    [CALLS_READMIT] = "readmit",
    [CALLS_KEEP] = "keep",
    [CALLS_COORDINATE] = "coordinate",
    [CALLS_END_CURRENT] = "end current",
    [CALLS_END_OWN] = "end",
    [CALLS_REJECT] = "reject",
};

struct text {
    char bytes[256];
    size_t len;
};

/* One more of a list. */
PEG_PRINTF(2, 3) static void add(struct text *text, const char *fmt, ...)
{
    va_list args;

    if (text->len)
        text->len += (size_t)snprintf(text->bytes + text->len, 3, ", ");
    va_start(args, fmt);
    text->len +=
        (size_t)vsnprintf(text->bytes + text->len, sizeof(text->bytes) - text->len, fmt, args);
    va_end(args);
    CHECK(text->len < sizeof(text->bytes));
}

static void add_action(struct text *text, const struct calls_machine *m,
                       const struct calls_action *action)
{
    const char *name = ACTION_NAMES[action->kind];

    switch (action->kind) {
    case CALLS_READ:
        if (action->n)
            add(text, "%s %c%u", name, action->what, action->n);
        else
            add(text, "%s %c", name, action->what);
        break;
    case CALLS_PUT_REVOKED:
    case CALLS_PUT_ENDED:
    case CALLS_ARM:
        add(text, "%s %u", name, action->n);
        break;
    case CALLS_READ_NODE:
        add(text, "%s %u.%u", name, (unsigned)m->coordinator.node, m->coordinator.loop);
        break;
    default:
        add(text, "%s%s%s", name, why_name(action->why), reason_name(action->reason));
        break;
    }
}

static void add_flag(struct text *text, const char *name, bool before, bool after)
{
    if (before != after)
        add(text, "%s%s", after ? "" : "not ", name);
}

static void add_number(struct text *text, const char *name, uint64_t before, uint64_t after)
{
    if (before != after)
        add(text, "%s %llu", name, (unsigned long long)after);
}

static void add_address(struct text *text, const char *name, struct bus_address before,
                        struct bus_address after)
{
    if (!bus_address_equal(before, after))
        add(text, "%s %u.%u", name, (unsigned)after.node, after.loop);
}

static void add_decisions(struct text *text, const struct calls_machine *a,
                          const struct calls_machine *b)
{
    static const char *const RECHECKS[] = {"none", "result", "identity", "claim", "lease", "lost"};
    static const char *const BARS[] = {"no",           "unhealthy", "draining", "quota",
                                       "asked before", "full",      "no memory"};
    static const char *const ENDS[] = {"unseen", "heard", "read"};

    if (a->recheck != b->recheck)
        add(text, "recheck %s", RECHECKS[b->recheck]);
    if (a->bar != b->bar)
        add(text, "bar %s", BARS[b->bar]);
    if (a->ending != b->ending)
        add(text, "ending%s", reason_name(b->ending));
    if (a->why != b->why)
        add(text, "why%s", why_name(b->why));
    if (a->deadline_ms != b->deadline_ms)
        add(text, "deadline");
    add_flag(text, "may have run", a->may_have_run, b->may_have_run);
    add_flag(text, "unknown", a->was_unknown, b->was_unknown);
    add_flag(text, "owner lost", a->is_owner_lost, b->is_owner_lost);
    add_flag(text, "again", a->must_recheck, b->must_recheck);
    if (a->end_seen != b->end_seen)
        add(text, "end %s", ENDS[b->end_seen]);
    add_number(text, "rechecks", a->n_rechecks, b->n_rechecks);
}

static void add_attempt(struct text *text, const struct calls_machine *a,
                        const struct calls_machine *b)
{
    const bool is_forgivable = b->refusals.n && b->refusals.was_given_back[b->refusals.n - 1];

    add_number(text, "attempt", a->attempt, b->attempt);
    add_number(text, "sent", a->n_sent, b->n_sent);
    add_number(text, "epoch", a->sent_epoch, b->sent_epoch);
    if (strcmp(a->incarnation, b->incarnation) != 0)
        add(text, "incarnation %s", b->incarnation);
    add_address(text, "address", a->address, b->address);
    if (a->refusals.n != b->refusals.n)
        add(text, "refused %u%s", b->refusals.n, is_forgivable ? " forgivable" : "");
    if (a->refusal != b->refusal)
        add(text, "refusal%s", reason_name(b->refusal));
    add_flag(text, "outdated", a->refusals.met_outdated, b->refusals.met_outdated);
    add_number(text, "outstanding", a->n_outstanding, b->n_outstanding);
    add_number(text, "answered", a->answered, b->answered);
}

static void print_changes(const struct calls_machine *a, const struct calls_machine *b,
                          struct text *ret_text)
{
    ret_text->len = 0;
    ret_text->bytes[0] = '\0';
    add_decisions(ret_text, a, b);
    add_attempt(ret_text, a, b);
    if (a->identity.number != b->identity.number ||
        a->identity.deadline_ms != b->identity.deadline_ms ||
        a->identity.epoch != b->identity.epoch ||
        !bus_address_equal(a->identity.coordinator, b->identity.coordinator))
        add(ret_text, "identity");
    add_address(ret_text, "coordinator", a->coordinator, b->coordinator);
    add_number(ret_text, "walk", a->walk, b->walk);
    CHECK(a->origin == b->origin && a->is_idempotent == b->is_idempotent &&
          bus_id_equal(&a->id, &b->id));
}

static void print_actions(const struct calls_machine *m, const struct calls_actions *actions,
                          struct text *ret_text)
{
    ret_text->len = 0;
    ret_text->bytes[0] = '\0';
    for (unsigned i = 0; i < actions->n; i++)
        add_action(ret_text, m, &actions->list[i]);
}

#endif
