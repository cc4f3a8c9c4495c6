/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages are hints and may be lost; registers are not. So a call that has waited for a second
 * reads: has it ended, is the attempt claimed, is that provider alive?
 *
 *   result --none--> claim --claimed--> lease --gone--> result again --none--> unknown
 *      following: identity, then the coordinator's lease
 *                      |                  |
 *                    none: send again   alive: ask whether it has the call
 */

#include "calls/machine/coordinator.h"

static void recheck_later(struct calls_machine *m)
{
    m->recheck = CALLS_RECHECK_NONE;
    if (m->must_recheck) {
        m->must_recheck = false;
        calls_recheck_now(m);
    } else {
        calls_recheck_soon(m);
    }
}

static void end_with_current(struct calls_machine *m)
{
    if (!calls_awaits_message(m)) {
        calls_end(m, CALLS_END_CURRENT, CALLS_NO_WHY);
        return;
    }
    m->must_recheck = false;
    recheck_later(m);
}

/* LOST: the provider is gone, or has come back without the call. */
static void handle_result(struct calls_machine *m)
{
    if (m->event->answer->current)
        end_with_current(m);
    else if (m->recheck == CALLS_RECHECK_LOST)
        calls_settle_unknown(m, CALLS_WHY_PROVIDER_LOST);
    else if (m->state == CALLS_SENT)
        calls_recheck(m, CALLS_RECHECK_CLAIM);
    else
        calls_recheck(m, m->attempt ? CALLS_RECHECK_LEASE : CALLS_RECHECK_IDENTITY);
}

static void handle_identity(struct calls_machine *m)
{
    if (calls_machine_is_same(m))
        calls_recheck(m, CALLS_RECHECK_LEASE);
    else
        calls_machine_follow_again(m);
}

/* Without a claim under another epoch it may have been claimed before the registers were lost: its
 * provider knows. */
static void handle_claim(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (!answer->current && answer->epoch == m->sent_epoch) {
        m->recheck = CALLS_RECHECK_NONE;
        calls_act(m, CALLS_FIND);
    } else if (!answer->current) {
        calls_act(m, CALLS_SEND_ASK);
        recheck_later(m);
    } else if (calls_adopt_claimer(m)) {
        calls_recheck(m, CALLS_RECHECK_LEASE);
    }
}

/* A node that is alive may have given the call up meanwhile, when all its callers there were gone:
 * a call that should have ended long ago has no coordinator. A follower without a request leaves
 * the take-over to those that have one, until then. */
static void handle_coordinator(struct calls_machine *m, bool is_alive)
{
    const bool is_late = m->event->now_ms > m->deadline_ms + m->event->grace_ms;

    if ((is_alive || m->origin == CALLS_ATTACHES) && !is_late) {
        recheck_later(m);
    } else {
        m->walk = 1;
        m->is_owner_lost = false;
        calls_enter(m, CALLS_WALKING);
    }
}

static void handle_lease(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;
    const struct bus_address address =
        answer->n_addresses ? answer->addresses[0] : (struct bus_address){0};

    if (m->state == CALLS_FOLLOWING) {
        handle_coordinator(m, address.node != 0);
    } else if (!address.node) {
        calls_recheck(m, CALLS_RECHECK_LOST);
    } else {
        m->address = address;
        calls_act(m, CALLS_SEND_ASK);
        recheck_later(m);
    }
}

void calls_machine_rechecked(struct calls_machine *m)
{
    static calls_handler *const handlers[] = {
        [CALLS_RECHECK_RESULT] = handle_result, [CALLS_RECHECK_IDENTITY] = handle_identity,
        [CALLS_RECHECK_CLAIM] = handle_claim,   [CALLS_RECHECK_LEASE] = handle_lease,
        [CALLS_RECHECK_LOST] = handle_result,
    };

    if (m->event->answer->status)
        recheck_later(m);
    else
        handlers[m->recheck](m);
}

/* ---- what the provider's loop says when asked ---- */

static void settle_second_unknown(struct calls_machine *m, enum calls_why why)
{
    if (m->was_unknown)
        calls_settle_unknown(m, why);
    m->was_unknown = true;
}

/* The loop that should have the provider does not have the call. That proves nothing: it may not
 * know yet that the provider has gone elsewhere and runs the call there. So only a call that may
 * run twice goes on elsewhere; others wait. A call whose registers stay in this node has no outcome
 * to wait for when its provider went to another one: the message with it may be under way, so that
 * node is asked once more. So it is with a call that was sent before the registers were lost, and
 * perhaps lost with them. */
void calls_machine_unknown(struct calls_machine *m)
{
    if (m->recheck)
        return;
    if (calls_id_is_node_local(&m->id) && m->address.node != m->event->self.node) {
        settle_second_unknown(m, CALLS_WHY_PROVIDER_MOVED);
    } else if (m->is_idempotent) {
        calls_act(m, CALLS_DISARM);
        calls_recheck(m, CALLS_RECHECK_LOST);
    } else if (m->event->epoch != m->sent_epoch) {
        settle_second_unknown(m, CALLS_WHY_STATE_LOST);
    }
}

/* The provider's lease has ended, or is about to: rechecks are as frequent as at first. A provider
 * that came back elsewhere has another address by then. */
void calls_machine_lost(struct calls_machine *m)
{
    m->n_rechecks = 0;
    if (!m->recheck)
        calls_recheck_soon(m);
}
