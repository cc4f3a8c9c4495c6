/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Callers who go. One who cancels his call is gone at once; one whose connection broke, and whose
 * call has an identity, is expected back for a while; one who only started it leaves it running. A
 * call that nobody waits for any more is canceled: its driver asks all who may.
 */

#include "base/mem.h"
#include "gateway/calls/call.h"

/* Not one who still asks whose call it is: it may be none of his. If it is, he comes as late as he
 * would from another node. */
static bool has_caller(const struct gw_call *call)
{
    return (call->callers && call->step != GW_ASKING) || call->away.is_armed;
}

/* A desk stays among those who wait for a call when its last caller has gone. So a driver who has
 * no callers asks each of them, and cancels the call only when all have said that nobody is there.
 * One whose connection broke is expected back for a while. */
static bool is_waited_for(const struct gw_calls *desk, const struct bus_id *id)
{
    const struct gw_entry *entry = gw_table_find(&desk->calls, id, 0);

    while (entry && !has_caller((const struct gw_call *)entry))
        entry = gw_table_again(entry);
    return entry != NULL;
}

static void send_left(struct gw_calls *desk, const struct bus_id *id, enum bus_message_kind kind,
                      enum bus_reason why, uint64_t question, struct bus_address to)
{
    const struct bus_message letter = {
        .kind = kind,
        .reason = why,
        .id = *id,
        .epoch = question,
        .from = desk->bus->self,
    };

    bus_send(desk->bus, to, &letter, NULL);
}

static void on_left_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, waiters);
    struct gw_calls *desk = call->desk;

    call->n_asked = 0;
    if (call->is_detached || is_waited_for(desk, &call->entry.id))
        return;
    for (size_t i = 0; !answer->status && i < answer->n_addresses; i++) {
        if (bus_address_equal(answer->addresses[i], desk->bus->self))
            continue;
        send_left(desk, &call->entry.id, BUS_WAITING, 0, call->question, answer->addresses[i]);
        call->n_asked++;
    }
    if (!call->n_asked)
        gw_settle(call, BUS_CANCELED);
}

/* Somebody else may wait for it. */
static void ask_waiters(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_WAITERS, 0);

    call->question = ++call->desk->n_marks; /* no answer to an earlier call is one to this */
    bus_forget_wait(call->desk->bus, &call->waiters);
    call->waiters.fn = on_left_waiters;
    bus_waiters(call->desk->bus, &key, &call->waiters);
}

void gw_leave_on_waiting(struct gw_calls *desk, const struct bus_message *letter)
{
    if (!is_waited_for(desk, &letter->id))
        send_left(desk, &letter->id, BUS_LEFT, 0, letter->epoch, letter->from);
}

/* Its driver may have no callers any more, and not know that this was the last. */
static void leave_joined(struct gw_call *call, enum bus_reason why)
{
    struct gw_calls *desk = call->desk;
    const struct bus_id id = call->entry.id;
    const struct bus_address driver = call->driver;

    gw_call_drop(call);
    if (driver.node && (why == BUS_GONE || !is_waited_for(desk, &id)))
        send_left(desk, &id, BUS_LEFT, why, 0, driver);
}

static void leave_alone(struct gw_call *call)
{
    if (call->callers || call->is_detached)
        return;
    if (call->step == GW_ASKING)
        gw_call_drop(call);
    else if (call->step == GW_FOLLOWING)
        leave_joined(call, BUS_CANCELED);
    else if (gw_call_is_keyed(call))
        ask_waiters(call);
    else
        gw_settle(call, BUS_CANCELED);
}

static void on_away(struct net_timer *timer)
{
    leave_alone(peg__container_of(timer, struct gw_call, away));
}

/* Who asks again joins as one of those who wait: then it is not canceled. */
static void await_again(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;

    call->away.fn = on_away;
    bus_arm(bus, &call->away, bus_now_ns(bus) + call->desk->options.reattach_ms * 1000000);
}

/* An answer, or somebody has left without being asked. */
void gw_leave_on_left(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_call *call = gw_calls_coordinated(desk, &letter->id);

    if (!call || call->is_detached || call->ending)
        return;
    if (!letter->epoch && letter->reason == BUS_GONE)
        await_again(call); /* also if others wait now: it is looked again then */
    else if (is_waited_for(desk, &letter->id))
        return;
    else if (!letter->epoch)
        ask_waiters(call);
    else if (letter->epoch == call->question && call->n_asked && --call->n_asked == 0)
        gw_settle(call, BUS_CANCELED);
}

void gw_leave_on_keep(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_call *call = gw_calls_coordinated(desk, &letter->id);

    if (call)
        call->is_detached = true;
}

void gw_caller_drop(struct gw_caller *caller)
{
    struct gw_call *call = caller->call;

    if (!call)
        return;
    gw_call_take_caller(caller);
    leave_alone(call);
}

void gw_caller_lose(struct gw_caller *caller)
{
    struct gw_call *call = caller->call;

    if (!call || !gw_call_is_keyed(call) || call->step == GW_ASKING) {
        gw_caller_drop(caller);
        return;
    }
    gw_call_take_caller(caller);
    if (call->step != GW_FOLLOWING)
        await_again(call);
    else if (!call->callers)
        leave_joined(call, BUS_GONE);
}

void gw_caller_detach(struct gw_caller *caller)
{
    struct gw_call *call = caller->call;

    if (!call)
        return;
    call->is_detached = call->step != GW_FOLLOWING;
    gw_call_take_caller(caller);
    /* Whoever joined and does not wait has no part in it, but that it goes on. Within on_admitted
     * the joiner looks on, and is dropped with its next look. */
    if (call->step == GW_FOLLOWING) {
        send_left(call->desk, &call->entry.id, BUS_KEEP, 0, 0, call->driver);
        bus_arm(call->desk->bus, &call->deadline, bus_now_ns(call->desk->bus));
    }
}
