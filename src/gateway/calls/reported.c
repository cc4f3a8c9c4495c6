/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that a provider lists when it comes (back): it says that it has them, and does not know
 * what became of them meanwhile. Their drivers are told where it is, and registers are looked at:
 *
 *   terminal and mark of the attempt:
 *
 *     the mark names it      proven; with a terminal it is over, and its provider may stop
 *     it does not, or none   of this node: as if it were over; of another one: doubted
 *
 * What is another provider's is answered as what there never was: who lists it learns nothing.
 *
 * What is doubted takes no place at the provider, and no node waits for it: it may have been
 * answered on another stream, of which nothing is heard here. So it is with what is over, and
 * stays. After a while it is dropped, unless its driver asks for it or its provider speaks of it.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"

/* Several times before anything is dropped, and more seldom than drivers ask. */
enum { REVIEW_MS = PEG_LIMIT_GATEWAY_REPORTED_MS / 6 };

/* So many are looked at before others have their turn: that takes a tenth of a millisecond, and
 * with PEG_LIMIT_GATEWAY_CREDITS of them it is done within some tens of rounds. */
enum { LOOKS_AT_ONCE = 512 };

/* ---- believing ------------------------------------------------------------------------------- */

void gw_reported_verify(struct gw_assignment *held)
{
    if (!held->is_doubted)
        return;
    held->is_doubted = false;
    held->provider->n_doubted--;
    held->provider->desk->n_doubted--;
}

/* What was handed over here is answered here. */
static void doubt(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;

    if (!held->was_listed || held->is_doubted || held->was_asked)
        return;
    held->is_doubted = true;
    held->doubted_ns = bus_now_ns(provider->desk->bus);
    provider->n_doubted++;
    provider->desk->n_doubted++;
    gw_claim_pump(provider);
}

/* ---- looking --------------------------------------------------------------------------------- */

static struct gw_assignment *of_wait(struct bus_wait *wait)
{
    return peg__container_of(wait, struct gw_assignment, wait);
}

/* One who hears that a call is over answers it, and has a place again; one who does not has
 * answered it elsewhere, and that is seen at the next review. */
static void be_settled(struct gw_assignment *held)
{
    if (held->canceled) {
        doubt(held);
    } else {
        held->canceled = BUS_SETTLED;
        gw_claim_send_cancel(held);
    }
}

static void on_mark(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = of_wait(wait);
    struct bus_address address;
    bool is_its;

    if (answer->status || held->step != GW_HANDED)
        return; /* it is a hint: the answer of the provider is looked at anyway */
    is_its = answer->current && peg__str_eq(gw_claim_token_owner(answer->current, &address),
                                            peg__str(held->provider->incarnation));
    if (is_its && !held->is_over) {
        held->is_unproven = false;
        gw_reported_verify(held);
    } else if (is_its || gw_id_is_node_local(&held->entry.id)) {
        /* A driver that has seen the end of a call removes its registers; those of this node are
         * not lost while it lives. */
        be_settled(held);
    } else {
        doubt(held);
    }
}

static void on_terminal(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = of_wait(wait);
    const struct bus_key key = gw_assignment_key(held, BUS_CLAIM, held->entry.attempt);

    if (answer->status || held->step != GW_HANDED)
        return;
    held->is_over = answer->current != NULL;
    held->wait.fn = on_mark;
    bus_read(held->provider->desk->bus, &key, &held->wait);
}

/* Whoever settled a call that was listed here did not know where its provider would turn up. */
static void check_reported(struct gw_assignment *held)
{
    const struct bus_key key = gw_assignment_key(held, BUS_RESULT, 0);

    if (held->wait.pending)
        return;
    if (gw_assignment_is_of_another_node(held)) {
        doubt(held); /* its registers are out of reach */
        return;
    }
    held->wait.fn = on_terminal;
    bus_read(held->provider->desk->bus, &key, &held->wait);
}

/* ---- now and then ---------------------------------------------------------------------------- */

static void review_later(struct gw_provider *provider)
{
    struct bus *bus = provider->desk->bus;

    bus_arm(bus, &provider->review, bus_now_ns(bus) + REVIEW_MS * INT64_C(1000000));
}

static bool has_had_its_time(const struct gw_assignment *held)
{
    const int64_t ns = bus_now_ns(held->provider->desk->bus) - held->doubted_ns;

    return held->is_doubted && ns >= PEG_LIMIT_GATEWAY_REPORTED_MS * INT64_C(1000000);
}

void gw_reported_review(struct net_timer *timer)
{
    struct gw_provider *provider = peg__container_of(timer, struct gw_provider, review);
    bool has_any = false;
    struct gw_assignment *next;

    if (provider->is_moved)
        provider->owes_cancels = false; /* it has said elsewhere what it has */
    if (provider->owes_cancels) {
        gw_claim_pump(provider); /* which looks on, if its stream is ready */
        return;
    }
    for (struct gw_assignment *held = provider->running.first; held; held = next) {
        next = held->next;
        if (!held->was_listed || held->step != GW_HANDED)
            continue;
        if (has_had_its_time(held)) {
            gw_assignment_drop(held);
            continue;
        }
        has_any = true;
        if (!held->was_asked)
            check_reported(held);
        held->was_asked = false;
    }
    if (has_any)
        review_later(provider);
}

void gw_reported_queue(struct gw_provider *provider)
{
    provider->owes_cancels = true;
    provider->unlooked = provider->running.first;
    bus_disarm(provider->desk->bus, &provider->review);
}

/* What was said while it was away, or was lost with its stream; or was said to another desk, and
 * the driver, who says it again, has not heard of this one. */
static void notify_reported(struct gw_assignment *held)
{
    if (!held->is_listed || held->step != GW_HANDED)
        return;
    held->is_listed = false;
    if (held->canceled) {
        gw_claim_send_cancel(held);
    } else {
        gw_assignment_send(held, BUS_HAVE, NULL);
        check_reported(held);
    }
}

void gw_reported_recheck(struct gw_provider *provider)
{
    struct bus *bus = provider->desk->bus;

    if (provider->review.is_armed)
        return; /* some were told in this round */
    for (unsigned n = 0; provider->unlooked && n < LOOKS_AT_ONCE; n++) {
        struct gw_assignment *held = provider->unlooked;

        provider->unlooked = held->next;
        notify_reported(held);
    }
    if (provider->unlooked) {
        bus_arm(bus, &provider->review, bus_now_ns(bus));
    } else {
        provider->owes_cancels = false;
        review_later(provider);
    }
}
