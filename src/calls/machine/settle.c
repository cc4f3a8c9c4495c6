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

enum { PAUSE_MS = 50 }; /* before a request that failed is repeated */

/* ---- states ---- */

void (*calls_on_step)(enum calls_state from, int event, enum calls_state to);

#define STATE_NAME(name, text, next) text,
const char *const calls_state_names[] = {CALLS_COORDINATOR_STATES(STATE_NAME)};

bool calls_state_may_become(enum calls_state from, enum calls_state to)
{
#define BIT(name, text, next) name = 1 << CALLS_##name,
    enum { CALLS_COORDINATOR_STATES(BIT) };
#define NEXT(name, text, next) next,
    static const unsigned next_states[] = {CALLS_COORDINATOR_STATES(NEXT)};

    return from == to || next_states[from] >> to & 1;
}

/* ---- entering a state ---- */

struct calls_action *calls_act(struct calls_machine *m, enum calls_action_kind kind)
{
    struct calls_action *action = &m->out->list[m->out->n++];

    assert(m->out->n <= CALLS_MAX_ACTIONS);
    *action = (struct calls_action){.kind = kind};
    return action;
}

void calls_request(struct calls_machine *m)
{
    static const struct calls_action requests[CALLS_N_STATES] = {
        [CALLS_ADMITTING] = {.kind = CALLS_PUT_IDENTITY},
        [CALLS_PEEKING] = {.kind = CALLS_READ, .what = BUS_IDENTITY},
        [CALLS_LOCATING] = {.kind = CALLS_READ, .what = BUS_IDENTITY},
        [CALLS_CHOOSING] = {.kind = CALLS_CHOOSE},
        [CALLS_REVOKING] = {.kind = CALLS_PUT_REVOKED},
        [CALLS_TELLING] = {.kind = CALLS_READ_LEASE},
        [CALLS_GIVING_UP] = {.kind = CALLS_READ_LEASE},
        [CALLS_CLOSING] = {.kind = CALLS_PUT_ENDED},
        [CALLS_WRITING] = {.kind = CALLS_PUT_RESULT},
        [CALLS_NOTIFYING] = {.kind = CALLS_READ_WAITERS},
        [CALLS_LISTING] = {.kind = CALLS_LIST},
        [CALLS_GLANCING] = {.kind = CALLS_READ, .what = BUS_RESULT},
        [CALLS_COMPARING] = {.kind = CALLS_READ, .what = BUS_IDENTITY},
        [CALLS_WALKING] = {.kind = CALLS_READ, .what = BUS_CLAIM},
        [CALLS_TAKING] = {.kind = CALLS_PUT_REVOKED},
        [CALLS_CONFIRMING] = {.kind = CALLS_PUT_IDENTITY},
    };
    const bool has_no_identity = m->state == CALLS_CONFIRMING && m->origin != CALLS_STARTS;
    const struct calls_action *request = &requests[has_no_identity ? CALLS_PEEKING : m->state];
    struct calls_action *action;

    if (!request->kind)
        return;
    action = calls_act(m, request->kind);
    *action = *request;
    if (m->state == CALLS_REVOKING)
        action->n = m->attempt;
    else if (m->state == CALLS_CLOSING)
        action->n = m->attempt + 1;
    else if (m->state == CALLS_WALKING || m->state == CALLS_TAKING)
        action->n = m->walk;
    else if (m->state == CALLS_WRITING)
        action->why = m->why;
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

static bool may_recheck(const struct calls_machine *m)
{
    return m->state == CALLS_SENT || m->state == CALLS_FOLLOWING || m->state == CALLS_UNLISTED;
}

/* After a second, and then less and less often. */
void calls_recheck_soon(struct calls_machine *m)
{
    static const uint32_t pauses_ms[] = {1000, 1000, 2000, 4000, 5000};
    const unsigned last = sizeof(pauses_ms) / sizeof(*pauses_ms) - 1;

    if (may_recheck(m))
        calls_act(m, CALLS_ARM)->n = pauses_ms[m->n_rechecks < last ? m->n_rechecks : last];
}

void calls_pause(struct calls_machine *m, enum calls_state state)
{
    calls_enter(m, state);
    calls_recheck_soon(m);
}

void calls_recheck(struct calls_machine *m, enum calls_recheck recheck)
{
    static const struct calls_action requests[] = {
        [CALLS_RECHECK_RESULT] = {.kind = CALLS_READ, .what = BUS_RESULT},
        [CALLS_RECHECK_IDENTITY] = {.kind = CALLS_READ, .what = BUS_IDENTITY},
        [CALLS_RECHECK_CLAIM] = {.kind = CALLS_READ, .what = BUS_CLAIM},
        [CALLS_RECHECK_LEASE] = {.kind = CALLS_READ_LEASE},
        [CALLS_RECHECK_LOST] = {.kind = CALLS_READ, .what = BUS_RESULT},
    };
    struct calls_action *action = calls_act(m, requests[recheck].kind);

    *action = requests[recheck];
    m->recheck = recheck;
    if (recheck == CALLS_RECHECK_CLAIM)
        action->n = m->attempt;
    else if (recheck == CALLS_RECHECK_LEASE && m->state == CALLS_FOLLOWING)
        action->kind = CALLS_READ_NODE;
}

void calls_recheck_now(struct calls_machine *m)
{
    if (!may_recheck(m))
        return;
    if (m->recheck) {
        m->must_recheck = true;
        return;
    }
    m->n_rechecks++;
    calls_act(m, CALLS_DISARM);
    if (m->state == CALLS_UNLISTED)
        calls_enter(m, CALLS_LISTING);
    else
        calls_recheck(m, CALLS_RECHECK_RESULT);
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

void calls_end(struct calls_machine *m, enum calls_action_kind kind, enum calls_why why)
{
    calls_enter(m, CALLS_OVER);
    calls_act(m, kind)->why = why;
}

void calls_reject(struct calls_machine *m, enum calls_why why)
{
    calls_end(m, CALLS_REJECT, why);
}

/* A follower may take a call over and make another attempt. So before this node says that a call
 * was never started, it takes the attempt that would be next, which a follower would take too. A
 * call without an identity has no follower; if it never started, no provider side writes an outcome
 * either. */
void calls_settle_with(struct calls_machine *m, enum calls_why why)
{
    m->why = why;
    calls_act(m, CALLS_DISARM);
    if (why >= CALLS_WHY_RAN_LATE) /* it may have been started */
        calls_enter(m, CALLS_WRITING);
    else if (calls_id_is_keyed(&m->id))
        calls_enter(m, CALLS_CLOSING);
    else
        calls_end(m, CALLS_END_OWN, why);
}

static enum calls_why why_it_ran(const struct calls_machine *m)
{
    if (m->ending == BUS_DEADLINE)
        return CALLS_WHY_RAN_LATE;
    return m->ending == BUS_CANCELED ? CALLS_WHY_RAN_CANCELED : CALLS_WHY_PROVIDER_LOST;
}

void calls_choose_or_settle(struct calls_machine *m)
{
    if (!m->ending)
        calls_enter(m, CALLS_CHOOSING);
    else if (m->may_have_run)
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
    calls_pause(m, CALLS_UNLISTED);
}

bool calls_adopt_claimer(struct calls_machine *m)
{
    struct bus_address address;
    const peg_str owner = calls_claim_token_owner(m->event->answer->current, &address);

    if (calls_claim_token_is_coordinator(owner)) {
        calls_yield(m, address);
        return false;
    }
    if (!peg__str_is(owner, m->incarnation) && owner.len < sizeof(m->incarnation)) {
        calls_act(m, CALLS_RELEASE);
        memcpy(m->incarnation, owner.ptr, owner.len);
        m->incarnation[owner.len] = '\0';
    }
    return true;
}
