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

static void begin_attempt(struct calls_machine *m)
{
    m->attempt++;
    m->n_sent = 0;
    m->was_unknown = false;
    m->n_rechecks = 0;
    memcpy(m->incarnation, m->event->incarnation, strlen(m->event->incarnation) + 1);
    calls_enter(m, CALLS_SENT);
}

/* No provider can run it, and, but for attempts that may be repeated, none has started it. */
static void give_up_sending(struct calls_machine *m)
{
    if (m->may_have_run)
        calls_settle_with(m, CALLS_WHY_NOBODY_ELSE);
    else if (calls_id_is_keyed(&m->id))
        calls_settle_with(m, CALLS_WHY_NO_PROVIDER);
    else
        calls_reject(m, CALLS_WHY_NO_PROVIDER);
}

/* SENT: the same attempt once more. A provider that has become silent, or drains, will not start
 * it: the right to start is taken back, and the call goes elsewhere or fails now, not at its
 * deadline. */
void calls_machine_provider(struct calls_machine *m)
{
    if (m->event->kind == CALLS_PROVIDER) {
        m->address = m->event->address;
        if (m->state == CALLS_CHOOSING)
            begin_attempt(m);
        send_call(m);
    } else if (m->state == CALLS_CHOOSING) {
        give_up_sending(m);
    } else {
        revoke(m);
    }
}

/* ---- being refused ---- */

/* Of a provider where it is: what it refuses at one loop it may take at the next. Not a secret: it
 * tells a dozen providers apart. */
static uint64_t hash_provider(const char *incarnation, struct bus_address address)
{
    static const struct peg__hash_key key;

    return peg__hash(key, peg__str(incarnation)) ^ address.node ^ address.loop;
}

bool calls_choice_has_refused(const struct calls_choice *choice, const char *incarnation,
                              struct bus_address address, bool is_forgiven)
{
    const struct calls_refusals *refusals = choice->refusals;
    const uint64_t hash = refusals->n ? hash_provider(incarnation, address) : 0;

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
    const bool is_given_back = nak->was_claimed && !is_final;
    struct calls_refusals *refusals = &m->refusals;

    if ((is_given_back && nak->reason != BUS_OVERLOADED) ||
        refusals->n == PEG_LIMIT_GATEWAY_ATTEMPTS)
        return;
    refusals->was_given_back[refusals->n] = is_given_back;
    refusals->by[refusals->n++] = hash_provider(m->incarnation, where);
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

static void handle_nak(struct calls_machine *m, const struct bus_message *nak)
{
    if (!is_current(m, nak) || m->state < CALLS_SENT || m->state > CALLS_GIVING_UP)
        return;
    note_reason(m, nak->reason);
    remember_refusal(m, nak);
    if (!m->ending && is_behind_deadline(m, nak))
        m->ending = BUS_DEADLINE;
    if (is_proof(m, nak))
        calls_choose_or_settle(m);
    else if (nak->reason == BUS_EPOCH) /* no register can tell any more */
        calls_settle_unknown(m, CALLS_WHY_STATE_LOST);
    else if (m->state == CALLS_SENT)
        revoke(m);
}

/* ---- what a provider side reports ---- */

/* A provider that came back elsewhere may not know that the call was canceled. */
static void handle_have(struct calls_machine *m)
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
static void handle_done(struct calls_machine *m)
{
    if (m->state <= CALLS_CHOOSING || m->state == CALLS_CLOSING)
        return;
    if (may_trust(m)) {
        calls_end(m, CALLS_END_CURRENT, CALLS_NO_WHY);
        return;
    }
    if (m->end_seen == CALLS_END_UNSEEN)
        m->end_seen = CALLS_END_HEARD;
    calls_recheck_now(m);
}

/* ---- messages ---- */

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
static bool is_unverified(const struct calls_machine *m, const struct bus_message *message)
{
    return !is_current(m, message) && calls_id_is_node_local(&m->id) && message->from.node &&
           message->from.node != m->event->self.node;
}

static void count_answer(struct calls_machine *m, const struct bus_message *message)
{
    if (!is_unverified(m, message) && calls_count_answer(message, &m->answered) && m->n_outstanding)
        m->n_outstanding--;
}

/* From the loop that was asked to run the attempt, and that is not settled. */
static bool is_from_asked(const struct calls_machine *m, const struct bus_message *message)
{
    return m->state == CALLS_SENT && message->attempt == m->attempt &&
           bus_address_equal(message->from, m->address);
}

void calls_handle_message(struct calls_machine *m)
{
    const struct bus_message *message = m->event->message;
    const bool is_nak = message->kind == BUS_NAK && message->reason != BUS_UNKNOWN;
    const bool is_own_done =
        message->kind == BUS_DONE && message->attempt && message->attempt == m->attempt;

    if (!calls_state_follows(m->state) && (is_nak || (is_own_done && m->state > CALLS_CHOOSING)))
        count_answer(m, message);
    if (is_nak && message->reason != BUS_DUPLICATE)
        handle_nak(m, message);
    else if (message->kind == BUS_NAK && !is_nak && is_from_asked(m, message))
        calls_machine_unknown(m);
    else if (message->kind == BUS_HAVE)
        handle_have(m);
    else if (message->kind == BUS_LOST && is_from_asked(m, message))
        calls_machine_lost(m);
    else if (message->kind == BUS_DONE)
        handle_done(m);
}

void calls_handle_unreceived(struct calls_machine *m)
{
    struct bus_message nak = {.kind = BUS_NAK, .reason = BUS_GONE, .attempt = m->attempt};

    memcpy(nak.incarnation, m->incarnation, sizeof(nak.incarnation));
    count_answer(m, &nak);
    handle_nak(m, &nak);
}

/* ---- deadline and cancellation ---- */

/* In other states it waits until it is known who coordinates the call, or that is ending already.
 */
void calls_machine_settle(struct calls_machine *m)
{
    const enum bus_reason reason = m->event->kind == CALLS_DEADLINE ? BUS_DEADLINE : BUS_CANCELED;
    const bool was_ending = m->ending != BUS_NO_REASON;

    if (m->ending != BUS_DEADLINE)
        m->ending = reason;
    if (m->state == CALLS_CHECKING)
        calls_reject(m, CALLS_WHY_UNSTARTED);
    else if (m->state == CALLS_LOCATING)
        calls_reject(m, CALLS_WHY_UNANSWERED);
    else if (m->state == CALLS_GRACE && reason == BUS_DEADLINE)
        calls_enter(m, CALLS_GIVING_UP);
    else if (m->state == CALLS_SENT || (m->state == CALLS_REVOKING && !was_ending))
        calls_act(m, CALLS_SEND_CANCEL)->reason = reason;
    if (m->state == CALLS_SENT)
        revoke(m);
}

/* ---- taking the right to start back ---- */

static void handle_revoked(struct calls_machine *m)
{
    if (m->event->answer->epoch != m->sent_epoch) {
        calls_settle_unknown(m, CALLS_WHY_STATE_LOST);
    } else if (m->event->now_ms + SKEW_MS >= m->event->keep_until_ms) {
        /* A claim may have expired: its absence proves nothing. */
        calls_settle_unknown(m, CALLS_WHY_HALTED);
    } else {
        if (!m->ending)
            calls_act(m, CALLS_SEND_CANCEL)->reason = BUS_CANCELED; /* it need not stay queued */
        calls_choose_or_settle(m);
    }
}

void calls_handle_revocation(struct calls_machine *m)
{
    const peg_status status = m->event->answer->status;

    if (status == PEG_EIO || status == PEG_ENOMEM || (status && !m->ending))
        calls_retry_later(m); /* there may be room before its time is over */
    else if (status)
        calls_settle_unknown(m, CALLS_WHY_NO_ROOM);
    else if (m->event->answer->written)
        handle_revoked(m);
    else if (calls_adopt_claimer(m))
        calls_pause(m, m->ending ? CALLS_TELLING : CALLS_SENT);
}

/* A cancel may have arrived before the call itself, or at a loop that the provider has left. So it
 * is sent again to where the provider is now: before the grace, and after it. */
void calls_handle_told(struct calls_machine *m)
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
void calls_handle_closed(struct calls_machine *m)
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

void calls_handle_outcome(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM)
        calls_retry_later(m);
    else if (!answer->status && !answer->written)
        calls_end(m, CALLS_END_CURRENT, CALLS_NO_WHY);
    else if (!answer->status && calls_id_is_keyed(&m->id))
        calls_enter(m, CALLS_NOTIFYING);
    else
        calls_end(m, CALLS_END_OWN, m->why); /* full: no other node could write it either */
}

void calls_handle_waiters(struct calls_machine *m)
{
    if (!m->event->answer->status)
        calls_act(m, CALLS_SEND_OUTCOME);
    calls_end(m, CALLS_END_OWN, m->why);
}
