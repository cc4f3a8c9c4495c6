/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/machine/coordinator.h"

/* ---- admission ---- */

/*
 * The first stage of a call whose payload is valid: is there a healthy provider, and is this node
 * the one that decides about its identity? A call that may not begin still attaches to one of its
 * identity, so the identity is read before it is rejected.
 */

static void begin(struct calls_machine *m)
{
    calls_act(m, CALLS_REPORT_ADMITTED);
    calls_choose_or_settle(m);
}

static void admit(struct calls_machine *m)
{
    m->bar = m->event->bar;
    if (calls_id_is_keyed(&m->id))
        calls_enter(m, m->bar ? CALLS_PEEKING : CALLS_ADMITTING);
    else if (m->bar)
        calls_reject(m, CALLS_WHY_BARRED);
    else
        begin(m);
}

/* A bus that is full, or has no memory, may not have looked whether the identity is there: it is
 * read. A coordinator may lose the call to a follower and take it over again: then it has to know
 * which call, and under which epoch, like any other follower. */
static void handle_admitted(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (answer->status == PEG_EIO) {
        calls_retry_later(m);
    } else if (answer->status) {
        m->bar = answer->status == PEG_ELIMIT ? CALLS_BAR_FULL : CALLS_BAR_NO_MEMORY;
        calls_enter(m, CALLS_PEEKING);
    } else if (answer->written) {
        calls_identity_read(answer->current, &m->identity);
        begin(m);
    } else {
        calls_machine_follow(m);
    }
}

static void handle_peeked(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (!answer->status && answer->current)
        calls_machine_follow(m);
    else if (!answer->status)
        calls_reject(m, CALLS_WHY_BARRED);
    else if (m->ending)
        calls_reject(m, CALLS_WHY_UNREAD);
    else
        calls_retry_later(m);
}

/* The same answer for a call that never was and for another principal's. */
static void handle_located(struct calls_machine *m)
{
    if (m->event->answer->status)
        calls_reject(m, CALLS_WHY_UNANSWERED);
    else if (!m->event->is_owner)
        calls_reject(m, CALLS_WHY_UNKNOWN_CALL);
    else if (m->origin == CALLS_AWAITS)
        calls_machine_follow(m);
    else
        calls_end(m, CALLS_SEND_STOP, CALLS_NO_WHY);
}

/* ---- events ---- */

static void locate_call(struct calls_machine *m)
{
    calls_enter(m, CALLS_LOCATING);
}

static void handle_answer(struct calls_machine *m)
{
    static calls_handler *const handlers[CALLS_N_STATES] = {
        [CALLS_ADMITTING] = handle_admitted,      [CALLS_PEEKING] = handle_peeked,
        [CALLS_LOCATING] = handle_located,        [CALLS_REVOKING] = calls_handle_revocation,
        [CALLS_TELLING] = calls_handle_told,      [CALLS_GIVING_UP] = calls_handle_told,
        [CALLS_CLOSING] = calls_handle_closed,    [CALLS_WRITING] = calls_handle_outcome,
        [CALLS_NOTIFYING] = calls_handle_waiters, [CALLS_LISTING] = calls_handle_listed,
        [CALLS_GLANCING] = calls_handle_glance,   [CALLS_COMPARING] = calls_handle_compared,
        [CALLS_WALKING] = calls_handle_walked,    [CALLS_PROBING] = calls_handle_probed,
        [CALLS_TAKING] = calls_handle_taken,      [CALLS_CONFIRMING] = calls_handle_confirmed,
    };

    if (m->recheck)
        calls_machine_rechecked(m);
    else if (handlers[m->state])
        handlers[m->state](m);
}

static void handle_timer(struct calls_machine *m)
{
    switch (m->state) {
    case CALLS_GRACE:
        calls_enter(m, CALLS_GIVING_UP);
        break;
    case CALLS_ADMITTING:
    case CALLS_PEEKING:
    case CALLS_LOCATING:
    case CALLS_REVOKING:
    case CALLS_CLOSING:
    case CALLS_WRITING:
    case CALLS_CONFIRMING:
        calls_request(m);
        break;
    default:
        calls_recheck_now(m);
        break;
    }
}

void calls_machine_step(struct calls_machine *m, const struct calls_event *event,
                        struct calls_actions *out)
{
    static calls_handler *const handlers[CALLS_N_EVENTS] = {
        [CALLS_ADMIT] = admit,
        [CALLS_LOCATE] = locate_call,
        [CALLS_ANSWER] = handle_answer,
        [CALLS_TIMER] = handle_timer,
        [CALLS_PROVIDER] = calls_machine_provider,
        [CALLS_NO_PROVIDER] = calls_machine_provider,
        [CALLS_UNRECEIVED] = calls_handle_unreceived,
        [CALLS_MESSAGE] = calls_handle_message,
        [CALLS_DEADLINE] = calls_machine_settle,
        [CALLS_CANCEL] = calls_machine_settle,
        [CALLS_RESET] = calls_recheck_soon,
    };

    m->event = event;
    m->out = out;
    handlers[event->kind](m);
}
