/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Entering a state and asking for what it waits for; and the decisions that end a call which does
 * not complete by itself. Only a coordinator settles. It takes back the right to start: if it gets
 * that, the call never ran; if a provider has it, the call may have run, and the outcome says so.
 */

#include "calls/machine/coordinator.h"

#include <assert.h>
#include <string.h>

#include "base/text/str.h"

enum {
    PAUSE_MS = 50, /* before a request that failed is repeated */
    FIRST_MS = 1000,
    MAX_MS = 5000,
};

struct calls_action *calls_act(struct calls_machine *m, enum calls_action_kind kind)
{
    struct calls_action *action = &m->out->list[m->out->n++];

    assert(m->out->n <= CALLS_MAX_ACTIONS);
    *action = (struct calls_action){.kind = kind};
    return action;
}

static void read_register(struct calls_machine *m, char what, uint32_t n)
{
    struct calls_action *action = calls_act(m, CALLS_READ);

    action->what = what;
    action->n = n;
}

static void put_token(struct calls_machine *m, enum calls_action_kind kind, uint32_t attempt)
{
    calls_act(m, kind)->n = attempt;
}

void calls_request(struct calls_machine *m)
{
    switch (m->state) {
    case CALLS_ADMITTING:
        calls_act(m, CALLS_PUT_IDENTITY);
        break;
    case CALLS_CONFIRMING:
        if (m->origin == CALLS_STARTS)
            calls_act(m, CALLS_PUT_IDENTITY);
        else
            read_register(m, BUS_IDENTITY, 0);
        break;
    case CALLS_PEEKING:
    case CALLS_LOCATING:
    case CALLS_COMPARING:
        read_register(m, BUS_IDENTITY, 0);
        break;
    case CALLS_CHOOSING:
        calls_act(m, CALLS_CHOOSE);
        break;
    case CALLS_REVOKING:
        put_token(m, CALLS_PUT_REVOKED, m->attempt);
        break;
    case CALLS_TAKING:
        put_token(m, CALLS_PUT_REVOKED, m->walk);
        break;
    case CALLS_CLOSING:
        put_token(m, CALLS_PUT_ENDED, m->attempt + 1);
        break;
    case CALLS_TELLING:
    case CALLS_GIVING_UP:
        calls_act(m, CALLS_READ_LEASE);
        break;
    case CALLS_WRITING:
        calls_act(m, CALLS_PUT_RESULT)->why = m->why;
        break;
    case CALLS_NOTIFYING:
        calls_act(m, CALLS_READ_WAITERS);
        break;
    case CALLS_LISTING:
        calls_act(m, CALLS_LIST);
        break;
    case CALLS_GLANCING:
        read_register(m, BUS_RESULT, 0);
        break;
    case CALLS_WALKING:
        read_register(m, BUS_CLAIM, m->walk);
        break;
    default:
        break;
    }
}

void calls_enter(struct calls_machine *m, enum calls_state state)
{
    assert(calls_state_may_become(m->state, state));
    m->state = state;
    m->recheck = CALLS_RECHECK_NONE;
    calls_request(m);
}

void calls_retry_later(struct calls_machine *m)
{
    calls_act(m, CALLS_ARM)->n = PAUSE_MS;
}

/* ---- rechecks ---- */

/* After a second, and then less and less often. */
void calls_recheck_soon(struct calls_machine *m)
{
    uint32_t ms = FIRST_MS;

    if (m->state != CALLS_SENT && m->state != CALLS_FOLLOWING && m->state != CALLS_UNLISTED)
        return;
    for (unsigned i = 1; i < m->n_rechecks && ms < MAX_MS; i++)
        ms *= 2;
    calls_act(m, CALLS_ARM)->n = ms < MAX_MS ? ms : MAX_MS;
}

void calls_recheck(struct calls_machine *m, enum calls_recheck recheck)
{
    m->recheck = recheck;
    switch (recheck) {
    case CALLS_RECHECK_RESULT:
    case CALLS_RECHECK_LOST:
        read_register(m, BUS_RESULT, 0);
        break;
    case CALLS_RECHECK_IDENTITY:
        read_register(m, BUS_IDENTITY, 0);
        break;
    case CALLS_RECHECK_CLAIM:
        read_register(m, BUS_CLAIM, m->attempt);
        break;
    case CALLS_RECHECK_LEASE:
        if (m->state == CALLS_FOLLOWING)
            calls_act(m, CALLS_READ_NODE)->address = m->coordinator;
        else
            calls_act(m, CALLS_READ_LEASE);
        break;
    case CALLS_RECHECK_NONE:
        break;
    }
}

void calls_recheck_now(struct calls_machine *m)
{
    if (m->state == CALLS_UNLISTED) {
        m->n_rechecks++;
        calls_act(m, CALLS_DISARM);
        calls_enter(m, CALLS_LISTING);
    } else if (m->state != CALLS_SENT && m->state != CALLS_FOLLOWING) {
        return;
    } else if (m->recheck) {
        m->must_recheck = true;
    } else {
        m->n_rechecks++;
        calls_act(m, CALLS_DISARM);
        calls_recheck(m, CALLS_RECHECK_RESULT);
    }
}

static bool is_placeholder(const struct peg__blob *current)
{
    struct calls_outcome outcome;

    return calls_outcome_read(current, &outcome) && outcome.is_placeholder;
}

/* The message with an outcome is sent as soon as that is written: the outcome that a placeholder
 * stands for is nowhere else, and outputs come before it. A call that waits for either reads once
 * more before it takes what is written. A new caller gets it at once, or one that asks again and
 * again for a short time would never get it. */
bool calls_awaits_message(struct calls_machine *m)
{
    const bool has_waited = m->state == CALLS_SENT || m->n_rechecks > 1;
    const bool is_behind_output = m->event->wants_output && m->end_seen == CALLS_END_UNSEEN;

    if (!has_waited || m->end_seen == CALLS_END_READ ||
        (!is_behind_output && !is_placeholder(m->event->answer->current)))
        return false;
    m->end_seen = CALLS_END_READ;
    return true;
}

/* ---- ends ---- */

void calls_end_current(struct calls_machine *m)
{
    calls_enter(m, CALLS_OVER);
    calls_act(m, CALLS_END_CURRENT);
}

void calls_reject(struct calls_machine *m, enum calls_why why)
{
    struct calls_action *action;

    calls_enter(m, CALLS_OVER);
    action = calls_act(m, CALLS_REJECT);
    action->why = why;
}

bool calls_why_started(enum calls_why why)
{
    return why >= CALLS_WHY_RAN_LATE;
}

/* A follower may take a call over and make another attempt. So before this node says that a call
 * was never started, it takes the attempt that would be next, which a follower would take too. A
 * call without an identity has no follower; if it never started, no provider side writes an outcome
 * either. */
void calls_settle_with(struct calls_machine *m, enum calls_why why)
{
    m->why = why;
    calls_act(m, CALLS_DISARM);
    if (calls_why_started(why)) {
        calls_enter(m, CALLS_WRITING);
    } else if (calls_id_is_keyed(&m->id)) {
        calls_enter(m, CALLS_CLOSING);
    } else {
        calls_enter(m, CALLS_OVER);
        calls_act(m, CALLS_END_OWN)->why = why;
    }
}

static enum calls_why why_it_ran(const struct calls_machine *m)
{
    if (m->ending == BUS_DEADLINE)
        return CALLS_WHY_RAN_LATE;
    return m->ending == BUS_CANCELED ? CALLS_WHY_RAN_CANCELED : CALLS_WHY_PROVIDER_LOST;
}

/* This attempt was not started; one before it may have been. */
void calls_settle_unstarted(struct calls_machine *m)
{
    if (m->may_have_run)
        calls_settle_with(m, why_it_ran(m));
    else
        calls_settle_with(m, m->ending == BUS_DEADLINE ? CALLS_WHY_TIMEOUT : CALLS_WHY_CANCELED);
}

void calls_settle_unknown(struct calls_machine *m, enum calls_why why)
{
    const bool may_repeat = m->is_idempotent && m->origin == CALLS_STARTS;

    if (!m->ending && may_repeat && m->event->now_ms < m->deadline_ms) {
        m->may_have_run = true;
        calls_enter(m, CALLS_CHOOSING);
    } else {
        calls_settle_with(m, why == CALLS_NO_WHY ? why_it_ran(m) : why);
    }
}

void calls_yield(struct calls_machine *m, struct bus_address coordinator)
{
    m->coordinator = coordinator;
    m->n_rechecks = 0;
    calls_enter(m, CALLS_UNLISTED);
    calls_recheck_soon(m);
}

/* The claim is not of the provider that was asked here, but of one that an earlier coordinator
 * asked. */
void calls_adopt_provider(struct calls_machine *m, peg_str incarnation)
{
    if (peg__str_eq(incarnation, peg__str(m->incarnation)) ||
        incarnation.len >= sizeof(m->incarnation))
        return;
    calls_act(m, CALLS_RELEASE);
    memcpy(m->incarnation, incarnation.ptr, incarnation.len);
    m->incarnation[incarnation.len] = '\0';
}
