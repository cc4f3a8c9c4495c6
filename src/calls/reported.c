/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that a provider lists when it comes (back): it says that it has them, and does not know
 * what became of them meanwhile. Their coordinators are told where it is, and registers are looked
 * at:
 *
 *   outcome and token of the attempt:
 *
 *     the token names it      proven; with an outcome it is over, and its provider may stop
 *     it does not, or none   of this node: as if it were over; of another one: unknown
 *
 * What is another provider's is answered as what there never was: who lists it learns nothing.
 *
 * What is unknown takes no place at the provider, and no node waits for it: it may have been
 * answered on another stream, of which nothing is heard here. So it is with what is over, and
 * stays. After a while it is dropped, unless its coordinator asks for it or its provider speaks of
 * it.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"
#include "calls/provider_side.h"

/* Several times before anything is dropped, and more seldom than coordinators ask. */
enum { REVIEW_MS = PEG_LIMIT_GATEWAY_REPORTED_MS / 6 };

/* So many are looked at before others have their turn: that takes a tenth of a millisecond, and
 * with PEG_LIMIT_GATEWAY_CREDITS of them it is done within some tens of rounds. */
enum { RECHECKS_AT_ONCE = 512 };

/* ---- believing ------------------------------------------------------------------------------- */

void calls_reported_verify(struct calls_assignment *assignment)
{
    if (!assignment->is_unknown)
        return;
    assignment->is_unknown = false;
    assignment->provider->n_unknown--;
    assignment->provider->calls->n_unknown--;
}

/* What was handed over here is answered here. */
static void set_unknown(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;

    if (!assignment->was_reported || assignment->is_unknown || assignment->was_queried)
        return;
    assignment->is_unknown = true;
    assignment->unknown_since_ns = bus_now_ns(provider->calls->bus);
    provider->n_unknown++;
    provider->calls->n_unknown++;
    calls_claim_pump(provider);
}

/* ---- looking --------------------------------------------------------------------------------- */

static struct calls_assignment *of_wait(struct bus_wait *wait)
{
    return peg__container_of(wait, struct calls_assignment, wait);
}

/* One who hears that a call is over answers it, and has a place again; one who does not has
 * answered it elsewhere, and that is seen at the next review. */
static void be_settled(struct calls_assignment *assignment)
{
    if (assignment->canceled) {
        set_unknown(assignment);
    } else {
        assignment->canceled = BUS_SETTLED;
        calls_claim_send_cancel(assignment);
    }
}

static void on_token(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = of_wait(wait);
    struct bus_address address;
    bool is_its;

    if (answer->status || assignment->step != CALLS_HANDED)
        return; /* it is a hint: the answer of the provider is looked at anyway */
    is_its = answer->current && peg__str_eq(calls_claim_token_owner(answer->current, &address),
                                            peg__str(assignment->provider->incarnation));
    if (is_its && !assignment->is_over) {
        assignment->is_unverified = false;
        calls_reported_verify(assignment);
    } else if (is_its || calls_id_is_node_local(&assignment->entry.id)) {
        /* A coordinator that has seen the end of a call removes its registers; those of this node
         * are not lost while it lives. */
        be_settled(assignment);
    } else {
        set_unknown(assignment);
    }
}

static void on_outcome(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = of_wait(wait);
    const struct bus_key key =
        calls_assignment_key(assignment, BUS_CLAIM, assignment->entry.attempt);

    if (answer->status || assignment->step != CALLS_HANDED)
        return;
    assignment->is_over = answer->current != NULL;
    assignment->wait.fn = on_token;
    bus_read(assignment->provider->calls->bus, &key, &assignment->wait);
}

/* Whoever settled a call that was reported here did not know where its provider would turn up. */
static void check_reported(struct calls_assignment *assignment)
{
    const struct bus_key key = calls_assignment_key(assignment, BUS_RESULT, 0);

    if (assignment->wait.pending)
        return;
    if (calls_assignment_is_of_another_node(assignment)) {
        set_unknown(assignment); /* its registers are out of reach */
        return;
    }
    assignment->wait.fn = on_outcome;
    bus_read(assignment->provider->calls->bus, &key, &assignment->wait);
}

/* ---- now and then ---------------------------------------------------------------------------- */

static void review_later(struct calls_provider *provider)
{
    struct bus *bus = provider->calls->bus;

    bus_arm(bus, &provider->review, bus_now_ns(bus) + REVIEW_MS * INT64_C(1000000));
}

static bool has_had_its_time(const struct calls_assignment *assignment)
{
    const int64_t ns = bus_now_ns(assignment->provider->calls->bus) - assignment->unknown_since_ns;

    return assignment->is_unknown && ns >= PEG_LIMIT_GATEWAY_REPORTED_MS * INT64_C(1000000);
}

void calls_reported_review(struct net_timer *timer)
{
    struct calls_provider *provider = peg__container_of(timer, struct calls_provider, review);
    bool has_any = false;
    struct calls_assignment *next;

    if (provider->is_moved)
        provider->owes_cancels = false; /* it has said elsewhere what it has */
    if (provider->owes_cancels) {
        calls_claim_pump(provider); /* which looks on, if its stream is ready */
        return;
    }
    for (struct calls_assignment *assignment = provider->running.first; assignment;
         assignment = next) {
        next = assignment->next;
        if (!assignment->was_reported || assignment->step != CALLS_HANDED)
            continue;
        if (has_had_its_time(assignment)) {
            calls_assignment_drop(assignment);
            continue;
        }
        has_any = true;
        if (!assignment->was_queried)
            check_reported(assignment);
        assignment->was_queried = false;
    }
    if (has_any)
        review_later(provider);
}

void calls_reported_queue(struct calls_provider *provider)
{
    provider->owes_cancels = true;
    provider->unchecked = provider->running.first;
    bus_disarm(provider->calls->bus, &provider->review);
}

/* What was said while it was away, or was lost with its stream; or was said to another loop, and
 * the coordinator, who says it again, has not heard of this one. */
static void notify_reported(struct calls_assignment *assignment)
{
    if (!assignment->is_reported || assignment->step != CALLS_HANDED)
        return;
    assignment->is_reported = false;
    if (assignment->canceled) {
        calls_claim_send_cancel(assignment);
    } else {
        calls_assignment_send(assignment, BUS_HAVE, NULL);
        check_reported(assignment);
    }
}

void calls_reported_recheck(struct calls_provider *provider)
{
    struct bus *bus = provider->calls->bus;

    if (provider->review.is_armed)
        return; /* some were told in this round */
    for (unsigned n = 0; provider->unchecked && n < RECHECKS_AT_ONCE; n++) {
        struct calls_assignment *assignment = provider->unchecked;

        provider->unchecked = assignment->next;
        notify_reported(assignment);
    }
    if (provider->unchecked) {
        bus_arm(bus, &provider->review, bus_now_ns(bus));
    } else {
        provider->owes_cancels = false;
        review_later(provider);
    }
}
