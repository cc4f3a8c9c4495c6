/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages are hints and may be lost; registers are not. So a call that has waited for a second
 * looks for itself: has it ended, has anybody claimed it, is that one alive?
 *
 *   outcome --none--> owner --claimed--> lease --gone--> outcome again --none--> unknown
 *            joined: its name, then the lease of its coordinator
 *                        |                  |
 *                      none: sent again   alive: asked whether he has it
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"

enum { FIRST_MS = 1000, MAX_MS = 5000 };

static void read_register(struct calls_call *call, enum calls_recheck what);

static struct calls_call *of_recheck(struct bus_wait *wait)
{
    return peg__container_of(wait, struct calls_call, recheck_wait);
}

static bool may_recheck(const struct calls_call *call)
{
    return call->step == CALLS_SENT || call->step == CALLS_FOLLOWING;
}

/* After a second, and then less and less often. */
void calls_recheck_soon(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    int64_t ms = FIRST_MS;

    if (!may_recheck(call))
        return;
    for (unsigned i = 1; i < call->n_rechecks && ms < MAX_MS; i++)
        ms *= 2;
    ms = ms < MAX_MS ? ms : MAX_MS;
    call->has_waited = true;
    call->again.fn = calls_recheck_on_timer;
    bus_arm(bus, &call->again, bus_now_ns(bus) + ms * 1000000);
}

void calls_recheck_now(struct calls_call *call)
{
    if (!may_recheck(call))
        return;
    if (call->recheck) {
        call->must_recheck = true;
        return;
    }
    bus_disarm(call->calls->bus, &call->again);
    if (call->step == CALLS_FOLLOWING && !call->is_reported) {
        if (!call->wait.pending)
            calls_follow_add_waiter(call);
        return;
    }
    call->n_rechecks++;
    read_register(call, CALLS_RECHECK_OUTCOME);
}

void calls_recheck_on_timer(struct net_timer *timer)
{
    calls_recheck_now(peg__container_of(timer, struct calls_call, again));
}

static void recheck_later(struct calls_call *call)
{
    call->recheck = CALLS_RECHECK_NONE;
    if (call->must_recheck) {
        call->must_recheck = false;
        calls_recheck_now(call);
    } else {
        calls_recheck_soon(call);
    }
}

static bool is_placeholder(const struct peg__blob *standing)
{
    struct calls_outcome outcome;

    return calls_outcome_read(standing, &outcome) && outcome.is_placeholder;
}

/* The message with the end is sent as soon as that is written: the one that a stand-in stands for
 * is nowhere else, and what the tool has said comes before it. Who waits for either looks once more
 * before he takes what is written. Who has just come is told at once, or he would never hear it if
 * he asks again and again for a short time. */
bool calls_recheck_awaits_message(struct calls_call *call, const struct peg__blob *standing)
{
    const bool is_waiting =
        call->step == CALLS_SENT || (call->step == CALLS_FOLLOWING && call->has_waited);
    const bool is_behind_output = calls_output_is_wanted(call) && !call->has_heard_end;

    if (!is_waiting || call->has_seen_end || (!is_behind_output && !is_placeholder(standing)))
        return false;
    call->has_seen_end = true;
    return true;
}

/* ---- one after the other ---------------------------------------------------------------------
 */

static void end_with(struct calls_call *call, struct peg__blob *standing)
{
    if (!calls_recheck_awaits_message(call, standing)) {
        calls_call_end(call, standing);
        return;
    }
    call->recheck = CALLS_RECHECK_NONE;
    call->must_recheck = false;
    calls_recheck_soon(call);
}

static void on_outcome(struct calls_call *call, const struct bus_answer *answer)
{
    if (answer->current)
        end_with(call, answer->current);
    else if (call->step != CALLS_FOLLOWING)
        read_register(call, CALLS_RECHECK_OWNER);
    else
        read_register(call, call->attempt ? CALLS_RECHECK_LEASE : CALLS_RECHECK_IDENTITY);
}

/* A call that nobody could run is forgotten with its identity, and somebody else may have asked for
 * that anew. */
static void on_rechecked_identity(struct calls_call *call, const struct bus_answer *answer)
{
    if (calls_follow_is_same(call, answer->current)) {
        read_register(call, CALLS_RECHECK_LEASE);
    } else {
        call->recheck = CALLS_RECHECK_NONE;
        calls_follow_again(call, answer->current);
    }
}

static void query_provider_side(struct calls_call *call)
{
    struct bus_message message = {
        .kind = BUS_ASK,
        .id = call->entry.id,
        .attempt = call->attempt,
        .from = call->calls->bus->self,
    };

    memcpy(message.incarnation, call->incarnation, sizeof(message.incarnation));
    bus_send(call->calls->bus, call->provider_side, &message, NULL);
}

/* The attempt is not his whom it was sent to, but his who was asked by a coordinator before: of a
 * call that was taken over. */
void calls_recheck_follow(struct calls_call *call, peg_str who)
{
    if (peg__str_eq(who, peg__str(call->incarnation)) || who.len >= sizeof(call->incarnation))
        return;
    calls_send_release(call);
    memcpy(call->incarnation, who.ptr, who.len);
    call->incarnation[who.len] = '\0';
}

static void on_unclaimed(struct calls_call *call, uint64_t epoch)
{
    if (epoch == call->sent_epoch) {
        call->recheck = CALLS_RECHECK_NONE;
        calls_send_again(call);
    } else {
        /* It may have been claimed before the registers were lost: only its provider side knows. */
        recheck_later(call);
    }
}

static void on_owner(struct calls_call *call, const struct bus_answer *answer)
{
    struct bus_address address;
    peg_str who;

    if (!answer->current) {
        on_unclaimed(call, answer->epoch);
        return;
    }
    who = calls_claim_token_owner(answer->current, &address);
    if (calls_claim_token_is_coordinator(who)) {
        call->step = CALLS_FOLLOWING;
        call->coordinator = address;
        recheck_later(call);
        return;
    }
    calls_recheck_follow(call, who);
    read_register(call, CALLS_RECHECK_LEASE);
}

/* A node that is alive may have given the call up meanwhile, when all who waited for it there were
 * gone: what should have ended long ago has no coordinator. */
static void on_coordinator_lease(struct calls_call *call, struct bus_address address)
{
    const struct calls_loop *calls = call->calls;
    const bool is_late = bus_now_ms(calls->bus) > call->deadline_ms + calls->options.grace_ms;

    /* Who may not begin it has nothing to send: it is for those who have. */
    if ((address.node || call->why_not) && !is_late) {
        recheck_later(call);
    } else {
        call->recheck = CALLS_RECHECK_NONE;
        calls_follow_take_over(call);
    }
}

static void on_rechecked_lease(struct calls_call *call, const struct bus_answer *answer)
{
    const struct bus_address address =
        answer->n_addresses ? answer->addresses[0] : (struct bus_address){0};

    if (call->step == CALLS_FOLLOWING) {
        on_coordinator_lease(call, address);
    } else if (!address.node) {
        read_register(call, CALLS_RECHECK_LOST);
    } else {
        call->provider_side = address;
        query_provider_side(call);
        recheck_later(call);
    }
}

/* The provider is gone, or has come back without the call. */
static void on_lost(struct calls_call *call, const struct bus_answer *answer)
{
    call->recheck = CALLS_RECHECK_NONE;
    if (answer->current)
        end_with(call, answer->current);
    else
        calls_settle_unknown(call, "the provider was lost while the tool was running");
}

static void on_recheck(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = of_recheck(wait);

    if (answer->status) {
        recheck_later(call);
        return;
    }
    switch (call->recheck) {
    case CALLS_RECHECK_OUTCOME:
        on_outcome(call, answer);
        break;
    case CALLS_RECHECK_IDENTITY:
        on_rechecked_identity(call, answer);
        break;
    case CALLS_RECHECK_OWNER:
        on_owner(call, answer);
        break;
    case CALLS_RECHECK_LEASE:
        on_rechecked_lease(call, answer);
        break;
    case CALLS_RECHECK_LOST:
    case CALLS_RECHECK_UNREPORTED:
        on_lost(call, answer);
        break;
    case CALLS_RECHECK_NONE:
        break;
    }
}

static void read_lease(struct calls_call *call)
{
    char coordinator[BUS_ADDRESS_TEXT];
    peg_str name = peg__str(call->incarnation);

    if (call->step == CALLS_FOLLOWING) {
        bus_address_print(call->coordinator, coordinator);
        name = peg__str(coordinator);
    }
    bus_leases(call->calls->bus, &name, 1, &call->recheck_wait);
}

static void read_register(struct calls_call *call, enum calls_recheck what)
{
    struct bus *bus = call->calls->bus;
    struct bus_key key = calls_call_key(call, BUS_RESULT, 0);

    if (what == CALLS_RECHECK_OWNER)
        key = calls_call_key(call, BUS_CLAIM, call->attempt);
    else if (what == CALLS_RECHECK_IDENTITY)
        key = calls_call_key(call, BUS_IDENTITY, 0);
    call->recheck = what;
    call->recheck_wait.fn = on_recheck;
    if (what == CALLS_RECHECK_LEASE)
        read_lease(call);
    else
        bus_read(bus, &key, &call->recheck_wait);
}

/* A call of this node whose provider has come back to another one: that node wrote its outcome, if
 * there is one, where it is not seen from here, and the message about it may be on its way. It is
 * waited for until that node is asked once more. */
static void on_unknown_elsewhere(struct calls_call *call)
{
    if (!call->was_unknown)
        call->was_unknown = true; /* `again` is armed */
    else
        calls_settle_unknown(call, "the provider went to another node while the tool was running");
}

/* The one who should have its provider does not have the call. That proves nothing: he may have the
 * name and not know yet that the provider has gone elsewhere, and runs it there. So only a call
 * that may run twice goes on elsewhere; others wait for their outcome. */
void calls_recheck_on_unknown(struct calls_call *call, const struct bus_message *message)
{
    if (call->step != CALLS_SENT || message->attempt != call->attempt || call->recheck ||
        !bus_address_equal(message->from, call->provider_side))
        return;
    if (calls_id_is_node_local(&call->entry.id) &&
        message->from.node != call->calls->bus->self.node) {
        on_unknown_elsewhere(call);
        return;
    }
    if (!call->tool || !call->tool->is_idempotent)
        return;
    bus_disarm(call->calls->bus, &call->again);
    read_register(call, CALLS_RECHECK_UNREPORTED);
}

/* The lease ends now, or has: that it has is the proof, and is looked for as often as at first. One
 * that came back elsewhere has another provider side by then. */
void calls_recheck_on_lost(struct calls_call *call, const struct bus_message *message)
{
    if (call->step != CALLS_SENT || message->attempt != call->attempt ||
        !bus_address_equal(message->from, call->provider_side))
        return;
    call->n_rechecks = 0;
    if (!call->recheck)
        calls_recheck_soon(call);
}
