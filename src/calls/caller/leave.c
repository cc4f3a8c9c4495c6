/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Callers that go, followers on other nodes, and outputs, which go to both.
 *
 * A caller that cancels is gone at once; one whose connection broke, and whose call has an
 * identity, is expected back for a while; one that only started the call leaves it running. A call
 * without callers is canceled: its coordinator asks all nodes that may.
 */

#include "calls/caller/call.h"

#include <string.h>

#include "base/mem.h"

struct calls_listeners {
    unsigned n;
    struct bus_address loops[PEG_LIMIT_GATEWAY_LISTENERS];
};

static bool is_waited_for(const struct calls_call *call)
{
    return call->callers || call->away.is_armed;
}

/* The call that this loop coordinates, or is about to. */
static struct calls_call *find_coordinated(const struct calls_loop *calls, const struct bus_id *id)
{
    struct calls_call *call = calls_find(calls, id);

    return call && !calls_state_follows(call->machine.state) ? call : NULL;
}

static void send_left(struct calls_loop *calls, const struct bus_id *id, enum bus_reason reason,
                      uint64_t question, struct bus_address to)
{
    const struct bus_message message = {
        .kind = BUS_FOLLOWER,
        .reason = reason,
        .id = *id,
        .epoch = question,
        .from = calls->bus->self,
    };

    bus_send(calls->bus, to, &message, NULL);
}

/* ---- does anybody wait? ---- */

/* A node stays listed as a waiter when its last caller has gone. So a coordinator without callers
 * asks each of them, and cancels the call when all have answered that no caller waits there. */
static void on_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, waiters);
    struct calls_loop *calls = call->calls;

    call->n_asked = 0;
    if (call->is_detached || is_waited_for(call))
        return;
    for (size_t i = 0; !answer->status && i < answer->n_addresses; i++) {
        const struct bus_message message = {
            .kind = BUS_WAITING,
            .id = call->entry.id,
            .epoch = call->question,
            .from = calls->bus->self,
        };

        if (bus_address_equal(answer->addresses[i], calls->bus->self))
            continue;
        bus_send(calls->bus, answer->addresses[i], &message, NULL);
        call->n_asked++;
    }
    if (!call->n_asked)
        calls_run_cancel(call);
}

static void ask_waiters(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    const struct bus_key key = calls_call_key(call, BUS_WAITERS, 0);

    call->question = ++call->calls->n_tokens; /* no answer to an earlier call is one to this */
    bus_forget_wait(bus, &call->waiters);
    call->waiters.fn = on_waiters;
    bus_waiters(bus, &key, &call->waiters);
}

void calls_on_waiting(struct calls_loop *calls, const struct bus_message *message)
{
    const struct calls_call *call = calls_find(calls, &message->id);

    if (!call || !is_waited_for(call))
        send_left(calls, &message->id, BUS_LEFT, message->epoch, message->from);
}

/* Its coordinator may have no callers, and not know that this was the last. */
static void leave_following(struct calls_call *call, enum bus_reason reason)
{
    struct calls_loop *calls = call->calls;
    const struct bus_id id = call->entry.id;
    const struct bus_address coordinator = call->machine.coordinator;

    calls_call_count_ended(call, &(struct calls_outcome){.kind = CALLS_KIND_CANCELED});
    calls_call_drop(call);
    if (coordinator.node)
        send_left(calls, &id, reason, 0, coordinator);
}

void calls_leave_alone(struct calls_call *call)
{
    const enum calls_state state = call->machine.state;

    if (call->callers || call->is_detached || state == CALLS_OVER)
        return;
    if (state == CALLS_LOCATING)
        calls_call_drop(call);
    else if (calls_state_follows(state))
        leave_following(call, BUS_LEFT);
    else if (calls_call_is_keyed(call))
        ask_waiters(call);
    else
        calls_run_cancel(call);
}

static void on_away(struct net_timer *timer)
{
    calls_leave_alone(peg__container_of(timer, struct calls_call, away));
}

/* A caller that asks again is one of those that wait: then the call is not canceled. */
static void expect_back(struct calls_call *call, int64_t ms)
{
    struct bus *bus = call->calls->bus;

    call->away.fn = on_away;
    bus_arm(bus, &call->away, bus_now_ns(bus) + ms * 1000000);
}

/* ---- callers ---- */

static void lose(struct calls_call *call)
{
    if (!calls_state_follows(call->machine.state))
        expect_back(call, call->calls->options.reattach_ms);
    else if (!call->callers)
        leave_following(call, BUS_AWAY);
}

/* A follower that does not wait has no part in the call but that it goes on. It may be in the
 * middle of reporting that the call was admitted, so it is dropped a little later. */
static void detach(struct calls_call *call)
{
    if (!calls_state_follows(call->machine.state)) {
        call->is_detached = true;
        return;
    }
    calls_send(call, call->machine.coordinator, BUS_FOLLOWER, BUS_KEEP, NULL);
    expect_back(call, 0);
}

static void abandon(struct calls_call *call)
{
    if (!calls_state_follows(call->machine.state)) {
        call->is_detached = false;
        calls_leave_alone(call);
    } else if (!call->callers) {
        leave_following(call, BUS_ABANDONED);
    }
}

void calls_leave(struct calls_caller *caller, enum calls_leaving leaving)
{
    struct calls_call *call = caller->call;
    const bool may_return =
        call && calls_call_is_keyed(call) && call->machine.state != CALLS_LOCATING;

    if (!call)
        return;
    calls_call_take_caller(caller);
    if (call->machine.state == CALLS_OVER)
        return;
    if (leaving == CALLS_DETACHES)
        detach(call);
    else if (leaving == CALLS_LOSES_CONNECTION && may_return)
        lose(call);
    else if (leaving == CALLS_ABANDONS)
        abandon(call);
    else
        calls_leave_alone(call);
}

/* ---- followers ---- */

static void add_listener(struct calls_call *call, struct bus_address loop)
{
    if (!call->listeners)
        call->listeners = (struct calls_listeners *)peg__alloc_zero(1, sizeof(*call->listeners));
    if (!call->listeners)
        return;
    for (unsigned i = 0; i < call->listeners->n; i++)
        if (bus_address_equal(call->listeners->loops[i], loop))
            return;
    if (call->listeners->n < PEG_LIMIT_GATEWAY_LISTENERS)
        call->listeners->loops[call->listeners->n++] = loop;
}

/* An answer, or no caller waits there any more. */
static void on_left(struct calls_call *call, const struct bus_message *message)
{
    if (call->is_detached || call->machine.ending || is_waited_for(call))
        return;
    if (!message->epoch)
        ask_waiters(call);
    else if (message->epoch == call->question && call->n_asked && --call->n_asked == 0)
        calls_run_cancel(call);
}

void calls_on_follower(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = find_coordinated(calls, &message->id);

    if (!call)
        return;
    switch (message->reason) {
    case BUS_STOP:
        calls_run_cancel(call);
        break;
    case BUS_LISTEN:
        add_listener(call, message->from);
        break;
    case BUS_KEEP:
        call->is_detached = true;
        break;
    case BUS_ABANDONED:
        call->is_detached = false;
        on_left(call, message);
        break;
    case BUS_AWAY: /* also if others wait now: it is rechecked then */
        if (!call->is_detached && !call->machine.ending)
            expect_back(call, calls->options.reattach_ms);
        break;
    default:
        on_left(call, message);
        break;
    }
}

/* ---- outputs, and that there is a question: hints, from the provider side to the coordinator to
 * callers and followers ---- */

static void forward(const struct calls_call *call, const struct bus_message *message)
{
    struct bus *bus = call->calls->bus;
    struct bus_message copy = *message;

    copy.from = bus->self;
    for (unsigned i = 0; call->listeners && i < call->listeners->n; i++)
        bus_send(bus, call->listeners->loops[i], &copy, NULL);
}

/* A caller that gets it may go, and the call with it. */
static void report_output(struct calls_call *call, peg_str output)
{
    struct calls_loop *calls = call->calls;
    const uint64_t n_dropped = calls->n_dropped;

    call->cursor = call->callers;
    while (calls->n_dropped == n_dropped && call->cursor) {
        struct calls_caller *caller = call->cursor;

        call->cursor = caller->next;
        if (caller->events->on_output)
            caller->events->on_output(caller, output);
    }
}

static void report_news(struct calls_call *call, const struct bus_message *message)
{
    if (message->reason == BUS_ASKED)
        calls_questions_look(call);
    else if (message->body)
        report_output(call, peg__blob_str(message->body));
}

void calls_on_output(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = calls_find(calls, &message->id);
    const struct calls_machine *machine = call ? &call->machine : NULL;

    if (!call)
        return;
    if (calls_state_follows(machine->state)) {
        if (bus_address_equal(message->from, machine->coordinator))
            report_news(call, message);
    } else if (machine->attempt == message->attempt &&
               strcmp(machine->incarnation, message->incarnation) == 0) {
        forward(call, message);
        report_news(call, message);
    }
}
