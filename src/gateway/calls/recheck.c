/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Letters are hints and may be lost; registers are not. So a call that has waited for a second
 * looks for itself: has it ended, has anybody claimed it, is that one alive?
 *
 *   terminal --none--> owner --claimed--> lease --gone--> terminal again --none--> unknown
 *            joined: its name, then the lease of its driver
 *                        |                  |
 *                      none: sent again   alive: asked whether he has it
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"

enum { FIRST_MS = 1000, MAX_MS = 5000 };

static void ask_register(struct gw_call *call, enum gw_recheck what);

static struct gw_call *of_look(struct bus_wait *wait)
{
    return peg__container_of(wait, struct gw_call, look);
}

static bool may_look(const struct gw_call *call)
{
    return call->step == GW_SENT || call->step == GW_FOLLOWING;
}

/* After a second, and then less and less often. */
void gw_recheck_soon(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;
    int64_t ms = FIRST_MS;

    if (!may_look(call))
        return;
    for (unsigned i = 1; i < call->n_looks && ms < MAX_MS; i++)
        ms *= 2;
    ms = ms < MAX_MS ? ms : MAX_MS;
    call->has_waited = true;
    call->again.fn = gw_recheck_on_timer;
    bus_arm(bus, &call->again, bus_now_ns(bus) + ms * 1000000);
}

void gw_recheck_now(struct gw_call *call)
{
    if (!may_look(call))
        return;
    if (call->looking) {
        call->must_look = true;
        return;
    }
    bus_disarm(call->desk->bus, &call->again);
    if (call->step == GW_FOLLOWING && !call->is_listed) {
        if (!call->wait.pending)
            gw_follow_add_waiter(call);
        return;
    }
    call->n_looks++;
    ask_register(call, GW_RECHECK_OUTCOME);
}

void gw_recheck_on_timer(struct net_timer *timer)
{
    gw_recheck_now(peg__container_of(timer, struct gw_call, again));
}

static void look_later(struct gw_call *call)
{
    call->looking = GW_RECHECK_NONE;
    if (call->must_look) {
        call->must_look = false;
        gw_recheck_now(call);
    } else {
        gw_recheck_soon(call);
    }
}

static bool is_stand_in(const struct peg__blob *standing)
{
    struct gw_outcome terminal;

    return gw_outcome_read(standing, &terminal) && terminal.is_stand_in;
}

/* The letter with the end is sent as soon as that is written: the one that a stand-in stands for is
 * nowhere else, and what the tool has said comes before it. Who waits for either looks once more
 * before he takes what is written. Who has just come is told at once, or he would never hear it if
 * he asks again and again for a short time. */
bool gw_recheck_awaits_message(struct gw_call *call, const struct peg__blob *standing)
{
    const bool is_waiting =
        call->step == GW_SENT || (call->step == GW_FOLLOWING && call->has_waited);
    const bool is_behind_output = gw_output_is_wanted(call) && !call->has_heard_end;

    if (!is_waiting || call->has_seen_end || (!is_behind_output && !is_stand_in(standing)))
        return false;
    call->has_seen_end = true;
    return true;
}

/* ---- one after the other ---------------------------------------------------------------------
 */

static void end_with(struct gw_call *call, struct peg__blob *standing)
{
    if (!gw_recheck_awaits_message(call, standing)) {
        gw_call_end(call, standing);
        return;
    }
    call->looking = GW_RECHECK_NONE;
    call->must_look = false;
    gw_recheck_soon(call);
}

static void on_terminal(struct gw_call *call, const struct bus_answer *answer)
{
    if (answer->current)
        end_with(call, answer->current);
    else if (call->step != GW_FOLLOWING)
        ask_register(call, GW_RECHECK_OWNER);
    else
        ask_register(call, call->attempt ? GW_RECHECK_LEASE : GW_RECHECK_IDENTITY);
}

/* A call that nobody could run is forgotten with its identity, and somebody else may have asked for
 * that anew. */
static void on_rechecked_name(struct gw_call *call, const struct bus_answer *answer)
{
    if (gw_follow_is_same(call, answer->current)) {
        ask_register(call, GW_RECHECK_LEASE);
    } else {
        call->looking = GW_RECHECK_NONE;
        gw_follow_again(call, answer->current);
    }
}

static void ask_holder(struct gw_call *call)
{
    struct bus_message letter = {
        .kind = BUS_ASK,
        .id = call->entry.id,
        .attempt = call->attempt,
        .from = call->desk->bus->self,
    };

    memcpy(letter.incarnation, call->incarnation, sizeof(letter.incarnation));
    bus_send(call->desk->bus, call->holder, &letter, NULL);
}

/* The attempt is not his whom it was sent to, but his who was asked by a driver before: of a call
 * that was taken over. */
void gw_recheck_follow(struct gw_call *call, peg_str who)
{
    if (peg__str_eq(who, peg__str(call->incarnation)) || who.len >= sizeof(call->incarnation))
        return;
    gw_send_release(call);
    memcpy(call->incarnation, who.ptr, who.len);
    call->incarnation[who.len] = '\0';
}

static void on_unclaimed(struct gw_call *call, uint64_t epoch)
{
    if (epoch == call->sent_epoch) {
        call->looking = GW_RECHECK_NONE;
        gw_send_again(call);
    } else {
        /* It may have been claimed before the registers were lost: only its holder knows. */
        look_later(call);
    }
}

static void on_owner(struct gw_call *call, const struct bus_answer *answer)
{
    struct bus_address address;
    peg_str who;

    if (!answer->current) {
        on_unclaimed(call, answer->epoch);
        return;
    }
    who = gw_claim_token_owner(answer->current, &address);
    if (gw_claim_token_is_coordinator(who)) {
        call->step = GW_FOLLOWING;
        call->driver = address;
        look_later(call);
        return;
    }
    gw_recheck_follow(call, who);
    ask_register(call, GW_RECHECK_LEASE);
}

/* A node that is alive may have given the call up meanwhile, when all who waited for it there were
 * gone: what should have ended long ago has no driver. */
static void on_driver_lease(struct gw_call *call, struct bus_address address)
{
    const struct gw_calls *desk = call->desk;
    const bool is_late = bus_now_ms(desk->bus) > call->deadline_ms + desk->options.grace_ms;

    /* Who may not begin it has nothing to send: it is for those who have. */
    if ((address.node || call->why_not) && !is_late) {
        look_later(call);
    } else {
        call->looking = GW_RECHECK_NONE;
        gw_follow_take_over(call);
    }
}

static void on_rechecked_lease(struct gw_call *call, const struct bus_answer *answer)
{
    const struct bus_address address =
        answer->n_addresses ? answer->addresses[0] : (struct bus_address){0};

    if (call->step == GW_FOLLOWING) {
        on_driver_lease(call, address);
    } else if (!address.node) {
        ask_register(call, GW_RECHECK_LOST);
    } else {
        call->holder = address;
        ask_holder(call);
        look_later(call);
    }
}

/* The provider is gone, or has come back without the call. */
static void on_lost(struct gw_call *call, const struct bus_answer *answer)
{
    call->looking = GW_RECHECK_NONE;
    if (answer->current)
        end_with(call, answer->current);
    else
        gw_settle_unknown(call, "the provider was lost while the tool was running");
}

static void on_look(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = of_look(wait);

    if (answer->status) {
        look_later(call);
        return;
    }
    switch (call->looking) {
    case GW_RECHECK_OUTCOME:
        on_terminal(call, answer);
        break;
    case GW_RECHECK_IDENTITY:
        on_rechecked_name(call, answer);
        break;
    case GW_RECHECK_OWNER:
        on_owner(call, answer);
        break;
    case GW_RECHECK_LEASE:
        on_rechecked_lease(call, answer);
        break;
    case GW_RECHECK_LOST:
    case GW_RECHECK_UNREPORTED:
        on_lost(call, answer);
        break;
    case GW_RECHECK_NONE:
        break;
    }
}

static void ask_lease(struct gw_call *call)
{
    char driver[BUS_ADDRESS_TEXT];
    peg_str name = peg__str(call->incarnation);

    if (call->step == GW_FOLLOWING) {
        bus_address_print(call->driver, driver);
        name = peg__str(driver);
    }
    bus_leases(call->desk->bus, &name, 1, &call->look);
}

static void ask_register(struct gw_call *call, enum gw_recheck what)
{
    struct bus *bus = call->desk->bus;
    struct bus_key key = gw_call_key(call, BUS_RESULT, 0);

    if (what == GW_RECHECK_OWNER)
        key = gw_call_key(call, BUS_CLAIM, call->attempt);
    else if (what == GW_RECHECK_IDENTITY)
        key = gw_call_key(call, BUS_IDENTITY, 0);
    call->looking = what;
    call->look.fn = on_look;
    if (what == GW_RECHECK_LEASE)
        ask_lease(call);
    else
        bus_read(bus, &key, &call->look);
}

/* A call of this node whose provider has come back to another one: that node wrote its terminal, if
 * there is one, where it is not seen from here, and the letter about it may be on its way. It is
 * waited for until that node is asked once more. */
static void on_unknown_elsewhere(struct gw_call *call)
{
    if (!call->was_unknown)
        call->was_unknown = true; /* `again` is armed */
    else
        gw_settle_unknown(call, "the provider went to another node while the tool was running");
}

/* The one who should have its provider does not have the call. That proves nothing: he may have the
 * name and not know yet that the provider has gone elsewhere, and runs it there. So only a call
 * that may run twice goes on elsewhere; others wait for their terminal. */
void gw_recheck_on_unknown(struct gw_call *call, const struct bus_message *letter)
{
    if (call->step != GW_SENT || letter->attempt != call->attempt || call->looking ||
        !bus_address_equal(letter->from, call->holder))
        return;
    if (gw_id_is_node_local(&call->entry.id) && letter->from.node != call->desk->bus->self.node) {
        on_unknown_elsewhere(call);
        return;
    }
    if (!call->tool || !call->tool->is_idempotent)
        return;
    bus_disarm(call->desk->bus, &call->again);
    ask_register(call, GW_RECHECK_UNREPORTED);
}

/* The lease ends now, or has: that it has is the proof, and is looked for as often as at first. One
 * that came back elsewhere has another holder by then. */
void gw_recheck_on_lost(struct gw_call *call, const struct bus_message *letter)
{
    if (call->step != GW_SENT || letter->attempt != call->attempt ||
        !bus_address_equal(letter->from, call->holder))
        return;
    call->n_looks = 0;
    if (!call->looking)
        gw_recheck_soon(call);
}
