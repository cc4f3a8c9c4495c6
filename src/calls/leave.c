/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Callers who go. One who cancels his call is gone at once; one whose connection broke, and whose
 * call has an identity, is expected back for a while; one who only started it leaves it running. A
 * call that nobody waits for any more is canceled: its coordinator asks all who may.
 */

#include "base/mem.h"
#include "calls/call.h"

/* Not one who still asks whose call it is: it may be none of his. If it is, he comes as late as he
 * would from another node. */
static bool has_caller(const struct calls_call *call)
{
    return (call->callers && call->step != CALLS_RESOLVING) || call->away.is_armed;
}

/* A loop stays among those who wait for a call when its last caller has gone. So a coordinator who
 * has no callers asks each of them, and cancels the call only when all have said that nobody is
 * there. One whose connection broke is expected back for a while. */
static bool is_waited_for(const struct calls_loop *calls, const struct bus_id *id)
{
    const struct calls_entry *entry = calls_table_find(&calls->by_id, id, 0);

    while (entry && !has_caller((const struct calls_call *)entry))
        entry = calls_table_again(entry);
    return entry != NULL;
}

static void send_left(struct calls_loop *calls, const struct bus_id *id, enum bus_message_kind kind,
                      enum bus_reason why, uint64_t question, struct bus_address to)
{
    const struct bus_message message = {
        .kind = kind,
        .reason = why,
        .id = *id,
        .epoch = question,
        .from = calls->bus->self,
    };

    bus_send(calls->bus, to, &message, NULL);
}

static void on_left_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, waiters);
    struct calls_loop *calls = call->calls;

    call->n_queried = 0;
    if (call->is_detached || is_waited_for(calls, &call->entry.id))
        return;
    for (size_t i = 0; !answer->status && i < answer->n_addresses; i++) {
        if (bus_address_equal(answer->addresses[i], calls->bus->self))
            continue;
        send_left(calls, &call->entry.id, BUS_WAITING, 0, call->question, answer->addresses[i]);
        call->n_queried++;
    }
    if (!call->n_queried)
        calls_settle(call, BUS_CANCELED);
}

/* Somebody else may wait for it. */
static void query_waiters(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_WAITERS, 0);

    call->question = ++call->calls->n_tokens; /* no answer to an earlier call is one to this */
    bus_forget_wait(call->calls->bus, &call->waiters);
    call->waiters.fn = on_left_waiters;
    bus_waiters(call->calls->bus, &key, &call->waiters);
}

void calls_leave_on_waiting(struct calls_loop *calls, const struct bus_message *message)
{
    if (!is_waited_for(calls, &message->id))
        send_left(calls, &message->id, BUS_LEFT, 0, message->epoch, message->from);
}

/* Its coordinator may have no callers any more, and not know that this was the last. */
static void leave_follower(struct calls_call *call, enum bus_reason why)
{
    struct calls_loop *calls = call->calls;
    const struct bus_id id = call->entry.id;
    const struct bus_address coordinator = call->coordinator;

    calls_call_drop(call);
    if (coordinator.node && (why == BUS_GONE || !is_waited_for(calls, &id)))
        send_left(calls, &id, BUS_LEFT, why, 0, coordinator);
}

static void leave_alone(struct calls_call *call)
{
    if (call->callers || call->is_detached)
        return;
    if (call->step == CALLS_RESOLVING)
        calls_call_drop(call);
    else if (call->step == CALLS_FOLLOWING)
        leave_follower(call, BUS_CANCELED);
    else if (calls_call_is_keyed(call))
        query_waiters(call);
    else
        calls_settle(call, BUS_CANCELED);
}

static void on_away(struct net_timer *timer)
{
    leave_alone(peg__container_of(timer, struct calls_call, away));
}

/* Who asks again joins as one of those who wait: then it is not canceled. */
static void await_again(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;

    call->away.fn = on_away;
    bus_arm(bus, &call->away, bus_now_ns(bus) + call->calls->options.reattach_ms * 1000000);
}

/* An answer, or somebody has left without being asked. */
void calls_leave_on_left(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = calls_coordinated(calls, &message->id);

    if (!call || call->is_detached || call->ending)
        return;
    if (!message->epoch && message->reason == BUS_GONE)
        await_again(call); /* also if others wait now: it is looked again then */
    else if (is_waited_for(calls, &message->id))
        return;
    else if (!message->epoch)
        query_waiters(call);
    else if (message->epoch == call->question && call->n_queried && --call->n_queried == 0)
        calls_settle(call, BUS_CANCELED);
}

void calls_leave_on_keep(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = calls_coordinated(calls, &message->id);

    if (call)
        call->is_detached = true;
}

void calls_caller_drop(struct calls_caller *caller)
{
    struct calls_call *call = caller->call;

    if (!call)
        return;
    calls_call_take_caller(caller);
    leave_alone(call);
}

void calls_caller_lose(struct calls_caller *caller)
{
    struct calls_call *call = caller->call;

    if (!call || !calls_call_is_keyed(call) || call->step == CALLS_RESOLVING) {
        calls_caller_drop(caller);
        return;
    }
    calls_call_take_caller(caller);
    if (call->step != CALLS_FOLLOWING)
        await_again(call);
    else if (!call->callers)
        leave_follower(call, BUS_GONE);
}

void calls_caller_detach(struct calls_caller *caller)
{
    struct calls_call *call = caller->call;

    if (!call)
        return;
    call->is_detached = call->step != CALLS_FOLLOWING;
    calls_call_take_caller(caller);
    /* Whoever joined and does not wait has no part in it, but that it goes on. Within on_admitted
     * the joiner looks on, and is dropped with its next look. */
    if (call->step == CALLS_FOLLOWING) {
        send_left(call->calls, &call->entry.id, BUS_KEEP, 0, 0, call->coordinator);
        bus_arm(call->calls->bus, &call->deadline, bus_now_ns(call->calls->bus));
    }
}
