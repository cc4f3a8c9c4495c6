/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/machine/coordinator.h"

#include <string.h>

/* Who had the right to an attempt got one message with it. It may report the call again when it
 * comes back, and answer it again: that is about no other message. */
bool calls_count_answer(const struct bus_message *message, uint32_t *answered)
{
    const uint32_t bit = message->attempt < 32 ? UINT32_C(1) << message->attempt : 0;
    const bool is_first = bit && !(*answered & bit);

    if (!message->was_claimed && message->kind != BUS_DONE)
        return true;
    *answered |= bit;
    return is_first;
}

/* Another node cannot read whose a call of this node is. No message with it went there, but its
 * provider may have gone there, and answers for the current attempt. */
static bool is_hearsay(const struct calls_machine *m, const struct bus_message *message)
{
    const bool is_current =
        message->attempt == m->attempt && strcmp(message->incarnation, m->incarnation) == 0;

    return !is_current && calls_id_is_node_local(&m->id) && message->from.node &&
           message->from.node != m->event->self.node;
}

static void count_answer(struct calls_machine *m, const struct bus_message *message)
{
    if (!is_hearsay(m, message) && calls_count_answer(message, &m->answered) && m->n_outstanding)
        m->n_outstanding--;
}

static void handle_message(struct calls_machine *m)
{
    const struct bus_message *message = m->event->message;
    const bool is_nak = message->kind == BUS_NAK && message->reason != BUS_UNKNOWN;
    const bool is_own_done =
        message->kind == BUS_DONE && message->attempt && message->attempt == m->attempt;

    if (!calls_state_follows(m->state) && (is_nak || (is_own_done && m->state > CALLS_CHOOSING)))
        count_answer(m, message);
    switch (message->kind) {
    case BUS_NAK:
        if (message->reason == BUS_UNKNOWN)
            calls_machine_unknown(m);
        else if (message->reason != BUS_DUPLICATE)
            calls_machine_nak(m, message);
        break;
    case BUS_HAVE:
        calls_machine_have(m);
        break;
    case BUS_LOST:
        calls_machine_lost(m);
        break;
    case BUS_DONE:
        calls_machine_done(m);
        break;
    default:
        break;
    }
}

static void handle_unreceived(struct calls_machine *m)
{
    struct bus_message nak = {.kind = BUS_NAK, .reason = BUS_GONE, .attempt = m->attempt};

    memcpy(nak.incarnation, m->incarnation, sizeof(nak.incarnation));
    count_answer(m, &nak);
    calls_machine_nak(m, &nak);
}

static void handle_answer(struct calls_machine *m)
{
    if (m->recheck)
        calls_machine_rechecked(m);
    else if (m->state == CALLS_ADMITTING || m->state == CALLS_PEEKING)
        calls_machine_admitted(m);
    else if (m->state == CALLS_LOCATING)
        calls_machine_located(m);
    else if (calls_state_follows(m->state))
        calls_machine_followed(m);
    else
        calls_machine_settled(m);
}

static void handle_timer(struct calls_machine *m)
{
    switch (m->state) {
    case CALLS_SENT:
    case CALLS_FOLLOWING:
    case CALLS_UNLISTED:
        calls_recheck_now(m);
        break;
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
        break;
    }
}

void calls_machine_step(struct calls_machine *m, const struct calls_event *event,
                        struct calls_actions *out)
{
    m->event = event;
    m->out = out;
    switch (m->event->kind) {
    case CALLS_ADMIT:
        calls_machine_admit(m);
        break;
    case CALLS_LOCATE:
        calls_enter(m, CALLS_LOCATING);
        break;
    case CALLS_ANSWER:
        handle_answer(m);
        break;
    case CALLS_TIMER:
        handle_timer(m);
        break;
    case CALLS_PROVIDER:
    case CALLS_NO_PROVIDER:
        calls_machine_provider(m);
        break;
    case CALLS_UNRECEIVED:
        handle_unreceived(m);
        break;
    case CALLS_MESSAGE:
        handle_message(m);
        break;
    case CALLS_DEADLINE:
        calls_machine_settle(m, BUS_DEADLINE);
        break;
    case CALLS_CANCEL:
        calls_machine_settle(m, BUS_CANCELED);
        break;
    case CALLS_RESET:
        calls_recheck_soon(m);
        break;
    case CALLS_N_EVENTS:
        break;
    }
}
