/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call that a provider was asked to run. An attempt goes to one provider; the next attempt exists
 * only when it is proven that the one before did not start.
 *
 * What proves it: each message arrives at most once. So if an attempt was sent in one message, a
 * provider side that answers that it did not start it has used it up. If it was sent in several,
 * only the claim register proves it, under the epoch of the first of them.
 */

#include "calls/machine/coordinator.h"

#include <string.h>

#include "base/text/str.h"

/* Clocks of nodes, and of the server that lets registers expire, differ by less. */
enum { SKEW_MS = 1000 };

/* ---- sending ---- */

static void send_call(struct calls_machine *m)
{
    if (m->n_sent++ == 0)
        m->sent_epoch = m->event->epoch;
    m->n_outstanding++;
    calls_recheck_soon(m);
    calls_act(m, CALLS_SEND_CALL);
}

static void revoke(struct calls_machine *m)
{
    calls_act(m, CALLS_DISARM);
    calls_enter(m, CALLS_REVOKING);
}

static void send_next_attempt(struct calls_machine *m)
{
    m->attempt++;
    m->n_sent = 0;
    m->was_unknown = false;
    m->n_rechecks = 0;
    m->address = m->event->address;
    memcpy(m->incarnation, m->event->incarnation, strlen(m->event->incarnation) + 1);
    calls_enter(m, CALLS_SENT);
    send_call(m);
}

/* No provider can run it, and, but for attempts that may be repeated, none has started it. */
static void give_up_sending(struct calls_machine *m)
{
    if (m->may_have_run) {
        calls_settle_with(m, CALLS_WHY_NOBODY_ELSE);
    } else if (calls_id_is_keyed(&m->id)) {
        calls_settle_with(m, CALLS_WHY_NO_PROVIDER);
    } else {
        calls_reject(m, CALLS_WHY_NO_PROVIDER);
    }
}

/* SENT: the same attempt once more. A provider that has become silent, or drains, will not start
 * it: the right to start is taken back, and the call goes elsewhere or fails now, not at its
 * deadline. */
void calls_machine_provider(struct calls_machine *m)
{
    const bool is_found = m->event->kind == CALLS_PROVIDER;

    if (m->state == CALLS_CHOOSING && is_found) {
        send_next_attempt(m);
    } else if (m->state == CALLS_CHOOSING) {
        give_up_sending(m);
    } else if (is_found) {
        m->address = m->event->address;
        send_call(m);
    } else {
        revoke(m);
    }
}

/* ---- being refused ---- */

/* Not a secret: it tells a dozen providers apart. */
uint64_t calls_provider_hash(const char *incarnation, struct bus_address address)
{
    static const struct peg__hash_key key;

    return peg__hash(key, peg__str(incarnation)) ^ address.node ^ address.loop;
}

bool calls_choice_has_refused(const struct calls_choice *choice, const char *incarnation,
                              struct bus_address address, bool is_forgiven)
{
    const struct calls_refusals *refusals = choice->refusals;
    const uint64_t hash = refusals->n ? calls_provider_hash(incarnation, address) : 0;

    for (unsigned i = 0; i < refusals->n; i++)
        if (refusals->by[i] == hash && !(is_forgiven && refusals->was_given_back[i]))
            return true;
    return false;
}

/* A message of no attempt is a coordinator's, perhaps about an earlier call of the identity. */
static bool is_current(const struct calls_machine *m, const struct bus_message *message)
{
    return message->attempt && message->attempt == m->attempt &&
           strcmp(message->incarnation, m->incarnation) == 0;
}

/* A call with an identity may have several nodes that think they coordinate it. The claim register
 * decides between them, so it is written before there is another attempt. */
static bool is_proof(const struct calls_machine *m, const struct bus_message *nak)
{
    return (m->n_sent == 1 && !calls_id_is_keyed(&m->id)) ||
           (nak->was_claimed && nak->epoch == m->sent_epoch);
}

/* A provider that did not take the call is not asked again. One that had claimed it and gives it
 * back is asked when no other is left, unless it would do the same again: it has another version,
 * or drains. If it came back from a break without the call, nothing speaks against it. */
static void remember_refusal(struct calls_machine *m, const struct bus_message *nak)
{
    const bool is_final = nak->reason == BUS_OUTDATED || nak->reason == BUS_DRAINING;
    const struct bus_address where = nak->from.node ? nak->from : m->address;
    struct calls_refusals *refusals = &m->refusals;

    if ((nak->was_claimed && nak->reason != BUS_OVERLOADED && !is_final) ||
        refusals->n == PEG_LIMIT_GATEWAY_ATTEMPTS)
        return;
    if (nak->was_claimed && !is_final)
        refusals->was_given_back[refusals->n] = true;
    refusals->by[refusals->n++] = calls_provider_hash(m->incarnation, where);
}

static bool is_full(enum bus_reason reason)
{
    return reason == BUS_OVERLOADED || reason == BUS_FULL;
}

/* What its caller reads if no provider takes it: that one was full, since then it may try again;
 * then that one has another version; then that one was away. */
static void note_reason(struct calls_machine *m, enum bus_reason reason)
{
    m->refusals.met_outdated |= reason == BUS_OUTDATED;
    if (is_full(reason) || (!is_full(m->refusal) && m->refusal != BUS_OUTDATED))
        m->refusal = reason;
}

/* Provider sides start nothing in the last millisecond or two, before this loop's own timer:
 * deadlines in messages are whole milliseconds. A claim that only took too long is not late. */
static bool is_behind_deadline(const struct calls_machine *m, const struct bus_message *nak)
{
    return nak->reason == BUS_LATE && (!nak->was_claimed || m->event->now_ms >= m->deadline_ms);
}

static bool awaits_provider(enum calls_state state)
{
    return state == CALLS_SENT || state == CALLS_REVOKING || state == CALLS_TELLING ||
           state == CALLS_GRACE || state == CALLS_GIVING_UP;
}

void calls_machine_nak(struct calls_machine *m, const struct bus_message *nak)
{
    if (!is_current(m, nak) || !awaits_provider(m->state))
        return;
    note_reason(m, nak->reason);
    remember_refusal(m, nak);
    if (!m->ending && is_behind_deadline(m, nak))
        m->ending = BUS_DEADLINE;
    if (is_proof(m, nak) && m->ending)
        calls_settle_unstarted(m);
    else if (is_proof(m, nak))
        calls_enter(m, CALLS_CHOOSING);
    else if (nak->reason == BUS_EPOCH) /* no register can tell any more */
        calls_settle_unknown(m, CALLS_WHY_STATE_LOST);
    else if (m->state == CALLS_SENT)
        revoke(m);
}

/* ---- what a provider side reports ---- */

/* A provider that came back elsewhere may not know that the call was canceled. */
void calls_machine_have(struct calls_machine *m)
{
    const struct bus_message *message = m->event->message;

    if (!is_current(m, message) || calls_state_follows(m->state))
        return;
    m->address = message->from;
    if (m->ending)
        calls_act(m, CALLS_SEND_CANCEL)->reason = m->ending;
}

/* The outcome is taken from the message only if the call cannot have been settled otherwise; else
 * the register tells. Registers that stay in a node are out of reach for others: a sender elsewhere
 * has moved with its provider. A coordinator reports an outcome of no attempt, and may have
 * forgotten the call since: the identity may have been used anew. */
static bool may_trust(const struct calls_machine *m)
{
    const struct bus_message *done = m->event->message;

    if (!done->body || (m->event->is_fenced && !calls_id_is_node_local(&m->id)))
        return false;
    if (!calls_state_follows(m->state))
        return done->attempt && is_current(m, done);
    return done->attempt ||
           (bus_address_equal(done->from, m->coordinator) && done->deadline_ms == m->deadline_ms);
}

/* CLOSING: no attempt runs, or the register that is written next tells. */
void calls_machine_done(struct calls_machine *m)
{
    if (m->state <= CALLS_CHOOSING || m->state == CALLS_CLOSING)
        return;
    if (may_trust(m)) {
        calls_end_current(m);
        return;
    }
    if (m->end_seen == CALLS_END_UNSEEN)
        m->end_seen = CALLS_END_HEARD;
    calls_recheck_now(m);
}

/* ---- deadline and cancellation ---- */

void calls_machine_settle(struct calls_machine *m, enum bus_reason reason)
{
    const bool was_ending = m->ending != BUS_NO_REASON;

    if (m->ending != BUS_DEADLINE)
        m->ending = reason;
    switch (m->state) {
    case CALLS_CHECKING:
        calls_reject(m, CALLS_WHY_UNSTARTED);
        break;
    case CALLS_LOCATING:
        calls_reject(m, CALLS_WHY_UNANSWERED);
        break;
    case CALLS_SENT:
        calls_act(m, CALLS_SEND_CANCEL)->reason = reason;
        revoke(m);
        break;
    case CALLS_REVOKING:
        if (!was_ending)
            calls_act(m, CALLS_SEND_CANCEL)->reason = reason;
        break;
    case CALLS_GRACE:
        if (reason == BUS_DEADLINE)
            calls_enter(m, CALLS_GIVING_UP);
        break;
    default: /* when it is known who coordinates; or it is ending already */
        break;
    }
}

/* ---- taking the right to start back ---- */

static void handle_revoked(struct calls_machine *m)
{
    if (m->event->answer->epoch != m->sent_epoch) {
        calls_settle_unknown(m, CALLS_WHY_STATE_LOST);
    } else if (m->event->now_ms + SKEW_MS >= m->event->keep_until_ms) {
        /* A claim may have expired: its absence proves nothing. */
        calls_settle_unknown(m, CALLS_WHY_HALTED);
    } else if (m->ending) {
        calls_settle_unstarted(m);
    } else {
        calls_act(m, CALLS_SEND_CANCEL)->reason = BUS_CANCELED; /* it need not stay queued */
        calls_enter(m, CALLS_CHOOSING);
    }
}

static void handle_claimed(struct calls_machine *m)
{
    struct bus_address address;
    const peg_str owner = calls_claim_token_owner(m->event->answer->current, &address);

    if (calls_claim_token_is_coordinator(owner)) {
        calls_yield(m, address); /* a follower took the call over: this node was away */
        return;
    }
    calls_adopt_provider(m, owner);
    calls_enter(m, m->ending ? CALLS_TELLING : CALLS_SENT);
    calls_recheck_soon(m);
}

static void handle_revocation(struct calls_machine *m)
{
    const peg_status status = m->event->answer->status;

    if (status == PEG_EIO || status == PEG_ENOMEM || (status && !m->ending))
        calls_retry_later(m); /* there may be room before its time is over */
    else if (status)
        calls_settle_unknown(m, CALLS_WHY_NO_ROOM);
    else if (m->event->answer->written)
        handle_revoked(m);
    else
        handle_claimed(m);
}

/* A cancel may have arrived before the call itself, or at a loop that the provider has left. So it
 * is sent again to where the provider is now: before the grace, and after it. */
static void handle_told(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (!answer->status && answer->n_addresses && answer->addresses[0].node)
        m->address = answer->addresses[0];
    calls_act(m, CALLS_SEND_CANCEL)->reason = m->ending;
    if (m->ending == BUS_CANCELED && m->state == CALLS_TELLING) {
        calls_enter(m, CALLS_GRACE);
        calls_act(m, CALLS_ARM)->n = (uint32_t)m->event->grace_ms;
    } else {
        calls_settle_unknown(m, CALLS_NO_WHY);
    }
}

/* ---- writing an outcome ---- */

/* Lost to a follower that took the call over while this node was away. If that one has ended it
 * too, it does not matter which of them says so. A provider has no right to an attempt that was
 * never sent, unless it claimed one of an earlier call whose registers were lost. */
static void handle_closed(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;
    struct bus_address address;
    const peg_str owner = calls_claim_token_owner(answer->current, &address);

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM)
        calls_retry_later(m);
    else if (answer->status || answer->written || peg__str_is(owner, CALLS_TOKEN_ENDED))
        calls_enter(m, CALLS_WRITING);
    else if (calls_claim_token_is_coordinator(owner))
        calls_yield(m, address);
    else
        calls_settle_with(m, CALLS_WHY_STATE_LOST);
}

static void end_own(struct calls_machine *m)
{
    calls_enter(m, CALLS_OVER);
    calls_act(m, CALLS_END_OWN)->why = m->why;
}

static void handle_outcome(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM)
        calls_retry_later(m);
    else if (!answer->status && !answer->written)
        calls_end_current(m);
    else if (!answer->status && calls_id_is_keyed(&m->id))
        calls_enter(m, CALLS_NOTIFYING);
    else
        end_own(m); /* full: no other node could write it either */
}

static void handle_waiters(struct calls_machine *m)
{
    if (!m->event->answer->status)
        calls_act(m, CALLS_SEND_OUTCOME);
    end_own(m);
}

void calls_machine_settled(struct calls_machine *m)
{
    static calls_handler *const handlers[CALLS_N_STATES] = {
        [CALLS_REVOKING] = handle_revocation, [CALLS_TELLING] = handle_told,
        [CALLS_GIVING_UP] = handle_told,      [CALLS_CLOSING] = handle_closed,
        [CALLS_WRITING] = handle_outcome,     [CALLS_NOTIFYING] = handle_waiters,
    };

    if (handlers[m->state])
        handlers[m->state](m);
}
