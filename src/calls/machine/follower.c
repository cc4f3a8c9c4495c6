/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call that another node coordinates: its identity was used before, or it is awaited by its id.
 * If the coordinator's node is lost, one of the followers takes its place: the one that takes the
 * attempt which is open.
 */

#include "calls/machine/coordinator.h"

#include <string.h>

#include "base/text/str.h"

/* ---- attaching ---- */

void calls_machine_follow(struct calls_machine *m)
{
    const bool has_digest = m->origin <= CALLS_ATTACHES;
    struct calls_identity identity;

    if (!calls_identity_read(m->event->answer->current, &identity)) {
        calls_reject(m, CALLS_WHY_OTHER_VERSION);
    } else if (has_digest && memcmp(identity.digest, m->digest, sizeof(m->digest)) != 0) {
        calls_reject(m, CALLS_WHY_OTHER_REQUEST);
    } else if (m->ending) {
        calls_reject(m, CALLS_WHY_WAIT_OVER);
    } else {
        m->identity = identity;
        m->coordinator = identity.coordinator;
        m->deadline_ms = identity.deadline_ms;
        m->n_rechecks = 0;
        m->end_seen = CALLS_END_UNSEEN;
        calls_enter(m, CALLS_LISTING);
    }
}

bool calls_machine_is_same(const struct calls_machine *m)
{
    struct calls_identity identity;

    return calls_identity_read(m->event->answer->current, &identity) &&
           bus_address_equal(identity.coordinator, m->identity.coordinator) &&
           identity.number == m->identity.number && identity.epoch == m->identity.epoch;
}

/* Nothing of what is known belongs to the call that will have the identity, whose attempts count
 * from one. Only messages with an earlier one may still arrive. */
static void begin_again(struct calls_machine *m)
{
    struct calls_machine fresh = {
        .event = m->event,
        .out = m->out,
        .state = m->state,
        .origin = m->origin,
        .ending = m->ending,
        .id = m->id,
        .deadline_ms = m->deadline_ms,
        .is_idempotent = m->is_idempotent,
        .n_outstanding = m->n_outstanding,
    };

    memcpy(fresh.digest, m->digest, sizeof(fresh.digest));
    *m = fresh;
    calls_enter(m, CALLS_CHECKING);
    calls_act(m, CALLS_READMIT);
}

/* A call that no provider could run is forgotten with its identity: this one asks for itself, or
 * for the call that has the identity now. */
void calls_machine_follow_again(struct calls_machine *m)
{
    if (m->event->answer->current)
        calls_machine_follow(m);
    else if (m->origin == CALLS_STARTS)
        begin_again(m);
    else
        calls_reject(m, m->origin == CALLS_ATTACHES ? CALLS_WHY_BARRED : CALLS_WHY_UNKNOWN_CALL);
}

/* Listed before it reads: registers are not forgotten as long as a waiter is listed. */
void calls_handle_listed(struct calls_machine *m)
{
    const peg_status status = m->event->answer->status;

    if (status == PEG_ELIMIT || status == PEG_ENOMEM) {
        calls_enter(m, CALLS_GLANCING); /* a call that has ended needs no room */
    } else if (status) {
        calls_pause(m, CALLS_UNLISTED);
    } else {
        calls_enter(m, CALLS_FOLLOWING);
        calls_act(m, CALLS_SEND_LISTEN);
        calls_act(m, CALLS_REPORT_FOLLOWING);
        calls_recheck_now(m);
    }
}

void calls_handle_glance(struct calls_machine *m)
{
    if (m->event->answer->status || !m->event->answer->current || calls_awaits_message(m)) {
        calls_pause(m, CALLS_UNLISTED);
    } else {
        calls_act(m, CALLS_KEEP);
        calls_enter(m, CALLS_COMPARING);
    }
}

/* An unlisted follower keeps nothing from being forgotten, and the identity from being used again.
 */
void calls_handle_compared(struct calls_machine *m)
{
    if (m->event->answer->status) {
        calls_pause(m, CALLS_UNLISTED);
    } else if (calls_machine_is_same(m)) {
        calls_act(m, CALLS_REPORT_FOLLOWING);
        calls_end(m, CALLS_END_OWN, CALLS_NO_WHY);
    } else {
        calls_machine_follow_again(m);
    }
}

/* ---- taking over ---- */

/* The attempt that was walked to is this node's, or the call has no other: it coordinates now. */
static void take_over(struct calls_machine *m)
{
    m->attempt = m->walk;
    m->n_outstanding++; /* what the other coordinator sent is not known */
    calls_act(m, CALLS_COORDINATE);
}

static void give_up_lost(struct calls_machine *m)
{
    take_over(m);
    calls_settle_unknown(m, CALLS_WHY_NODE_LOST);
}

/* The owner may have given the attempt back, and the coordinator have gone on, or have ended the
 * call and forgotten it: the attempt behind it tells, and with that the right to settle the call.
 */
static void walk_on(struct calls_machine *m)
{
    if (m->walk < PEG_LIMIT_GATEWAY_ATTEMPTS + 1) {
        m->walk++;
        calls_enter(m, CALLS_WALKING);
    } else {
        give_up_lost(m);
    }
}

void calls_handle_walked(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;
    struct bus_address address;
    const peg_str owner = calls_claim_token_owner(answer->current, &address);

    if (answer->status) {
        calls_pause(m, CALLS_FOLLOWING);
    } else if (!answer->current) {
        calls_enter(m, CALLS_TAKING);
    } else if (peg__str_is(owner, CALLS_TOKEN_ENDED)) {
        /* nothing is written: the identity may be used anew */
        calls_reject(m, CALLS_WHY_COORDINATOR_LOST);
    } else if (m->event->is_own_token) {
        calls_enter(m, CALLS_CONFIRMING); /* taken before, and the answer was lost */
    } else if (peg__str_is(owner, CALLS_TOKEN_REVOKED)) {
        m->coordinator = address;
        calls_enter(m, CALLS_PROBING);
        calls_act(m, CALLS_READ_NODE);
    } else {
        m->coordinator = (struct bus_address){0};
        calls_enter(m, CALLS_PROBING);
        calls_act(m, CALLS_READ_OWNER);
    }
}

void calls_handle_probed(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;
    const bool is_alive = answer->n_addresses && answer->addresses[0].node;
    const bool is_long_over = m->event->now_ms > m->deadline_ms + m->event->grace_ms;

    if (answer->status || (is_alive && !is_long_over)) {
        calls_pause(m, CALLS_FOLLOWING);
    } else {
        m->is_owner_lost |= !m->coordinator.node;
        walk_on(m);
    }
}

void calls_handle_taken(struct calls_machine *m)
{
    if (!m->event->answer->status && m->event->answer->written)
        calls_enter(m, CALLS_CONFIRMING);
    else
        calls_pause(m, CALLS_FOLLOWING); /* another was faster, or it is not known */
}

static void coordinate(struct calls_machine *m)
{
    take_over(m);
    m->may_have_run = true; /* nor is it known which attempts came after this one */
    m->incarnation[0] = '\0';
    if (m->event->answer->epoch != m->identity.epoch) {
        calls_settle_unknown(m, CALLS_WHY_STATE_LOST);
        return;
    }
    if (m->origin != CALLS_STARTS || m->event->now_ms >= m->deadline_ms)
        m->ending = BUS_DEADLINE;
    calls_choose_or_settle(m);
}

/* The coordinator has ended the call as one that no provider could run, and forgotten it; the first
 * attempt was taken after that, so it cannot start. One that has used the identity meanwhile
 * finds the token and follows: it needs an end, which is that of the call that was forgotten. After
 * the deadline registers may have expired instead, of a call that ran. */
static void end_forgotten(struct calls_machine *m)
{
    take_over(m);
    calls_settle_with(m, CALLS_WHY_FORGOTTEN);
}

static bool never_ran(const struct calls_machine *m)
{
    return m->origin != CALLS_STARTS && m->event->answer->epoch == m->identity.epoch &&
           m->event->now_ms < m->deadline_ms && !m->is_owner_lost && m->walk == 1;
}

/* The coordinator was alive after all, perhaps, and has ended the call as one that no provider
 * could run. Then its registers are forgotten, and this node has taken the first attempt of a call
 * without an identity. One that has used the identity meanwhile finds the token and follows. A node
 * that admitted the call itself, lost it and takes it again finds its own value: that is there
 * still. Without an answer it is not known whose call this is, also if there is no room. */
void calls_handle_confirmed(struct calls_machine *m)
{
    const struct bus_answer *answer = m->event->answer;
    const bool is_forgotten =
        m->origin == CALLS_STARTS ? answer->written && !calls_machine_is_same(m) : !answer->current;

    if (answer->status)
        calls_retry_later(m);
    else if (m->is_owner_lost && !is_forgotten)
        give_up_lost(m);
    else if (is_forgotten && never_ran(m))
        end_forgotten(m);
    else
        coordinate(m);
}
