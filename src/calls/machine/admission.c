/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first stage of a call whose payload is valid: is there a healthy provider, and is this node
 * the one that decides about its identity? A call that may not begin still attaches to one of its
 * identity, so the identity is read before it is rejected.
 */

#include "calls/machine/coordinator.h"

static void begin(struct calls_machine *m)
{
    calls_act(m, CALLS_REPORT_ADMITTED);
    if (m->ending)
        calls_settle_unstarted(m);
    else
        calls_enter(m, CALLS_CHOOSING);
}

void calls_machine_admit(struct calls_machine *m)
{
    m->bar = m->event->bar;
    if (calls_id_is_keyed(&m->id))
        calls_enter(m, m->bar ? CALLS_PEEKING : CALLS_ADMITTING);
    else if (m->bar)
        calls_reject(m, CALLS_WHY_BARRED);
    else
        begin(m);
}

/* It may lose the call to a follower and take it over again: then it has to know which call, and
 * under which epoch, like any other follower. */
static void begin_as_coordinator(struct calls_machine *m)
{
    calls_identity_read(m->event->answer->current, &m->identity);
    begin(m);
}

/* A bus that is full, or has no memory, may not have looked whether the identity is there. */
static void peek_without_room(struct calls_machine *m)
{
    m->bar = m->event->answer->status == PEG_ELIMIT ? CALLS_BAR_FULL : CALLS_BAR_NO_MEMORY;
    calls_enter(m, CALLS_PEEKING);
}

static void handle_written(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (answer->status == PEG_EIO)
        calls_retry_later(m);
    else if (answer->status)
        peek_without_room(m);
    else if (answer->written)
        begin_as_coordinator(m);
    else
        calls_machine_follow(m, answer->current);
}

static void handle_read(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (!answer->status && answer->current)
        calls_machine_follow(m, answer->current);
    else if (!answer->status)
        calls_reject(m, CALLS_WHY_BARRED);
    else if (m->ending)
        calls_reject(m, CALLS_WHY_UNREAD);
    else
        calls_retry_later(m);
}

void calls_machine_admitted(struct calls_machine *m)
{
    if (m->state == CALLS_ADMITTING)
        handle_written(m);
    else
        handle_read(m);
}

/* The same answer for a call that never was and for another principal's. */
void calls_machine_located(struct calls_machine *m)
{
    if (m->event->answer->status) {
        calls_reject(m, CALLS_WHY_UNANSWERED);
    } else if (!m->event->is_owner) {
        calls_reject(m, CALLS_WHY_UNKNOWN_CALL);
    } else if (m->origin == CALLS_AWAITS) {
        calls_machine_follow(m, m->event->answer->current);
    } else {
        calls_enter(m, CALLS_OVER);
        calls_act(m, CALLS_SEND_STOP);
    }
}
