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

/* `question`: the one that is asked or answered; 0: none. */
static void send_hint(struct calls_loop *calls, const struct bus_id *id, struct bus_address to,
                      enum bus_message_kind kind, enum bus_reason reason, uint64_t question)
{
    const struct bus_message message = {
        .kind = kind,
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
        if (bus_address_equal(answer->addresses[i], calls->bus->self))
            continue;
        send_hint(calls, &call->entry.id, answer->addresses[i], BUS_WAITING, BUS_NO_REASON,
                  call->question);
        call->n_asked++;
    }
    if (!call->n_asked)
        calls_run_event(call, CALLS_CANCEL);
}

static void ask_waiters(struct calls_call *call)
{
    const struct bus_key key = calls_key(&call->entry.id, BUS_WAITERS, 0);

    call->question = ++call->calls->n_tokens; /* no answer to an earlier call is one to this */
    call->waiters.fn = on_waiters;
    bus_waiters(call->calls->bus, &key, &call->waiters);
}

void calls_on_waiting(struct calls_loop *calls, const struct bus_message *message)
{
    const struct calls_call *call = calls_find(calls, &message->id);

    if (!call || !is_waited_for(call))
        send_hint(calls, &message->id, message->from, BUS_FOLLOWER, BUS_LEFT, message->epoch);
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
        send_hint(calls, &id, coordinator, BUS_FOLLOWER, reason, 0);
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
        calls_run_event(call, CALLS_CANCEL);
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

static void leave_coordinated(struct calls_call *call, enum calls_leaving leaving)
{
    if (leaving == CALLS_LOSES_CONNECTION) {
        expect_back(call, call->calls->options.reattach_ms);
        return;
    }
    if (leaving != CALLS_LEAVES)
        call->is_detached = leaving == CALLS_DETACHES;
    calls_leave_alone(call);
}

/* A follower that does not wait has no part in the call but that it goes on. It may be in the
 * middle of reporting that the call was admitted, so it is dropped a little later. */
static void leave_followed(struct calls_call *call, enum calls_leaving leaving)
{
    if (leaving == CALLS_DETACHES) {
        calls_send(call, call->machine.coordinator, BUS_FOLLOWER, BUS_KEEP, NULL);
        expect_back(call, 0);
    } else if (leaving == CALLS_LEAVES) {
        calls_leave_alone(call);
    } else if (!call->callers) {
        leave_following(call, leaving == CALLS_ABANDONS ? BUS_ABANDONED : BUS_AWAY);
    }
}

void calls_leave(struct calls_caller *caller, enum calls_leaving leaving)
{
    struct calls_call *call = caller->call;

    if (!call)
        return;
    calls_call_take_caller(caller);
    if (call->machine.state == CALLS_OVER)
        return;
    if (leaving == CALLS_LOSES_CONNECTION &&
        (!calls_call_is_keyed(call) || call->machine.state == CALLS_LOCATING))
        leaving = CALLS_LEAVES;
    if (calls_state_follows(call->machine.state))
        leave_followed(call, leaving);
    else
        leave_coordinated(call, leaving);
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
        calls_run_event(call, CALLS_CANCEL);
}

void calls_on_follower(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = calls_find(calls, &message->id);

    if (!call || calls_state_follows(call->machine.state))
        return;
    switch (message->reason) {
    case BUS_STOP:
        calls_run_event(call, CALLS_CANCEL);
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
