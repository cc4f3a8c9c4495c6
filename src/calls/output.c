/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a tool says while it runs. Its provider side tells the coordinator; he tells his caller,
 * those who have joined the call at the same loop, and the loops of others who have joined: they
 * asked him to. Outputs are hints: who joins hears those that come from then on, if nothing is
 * lost.
 */

#include <string.h>

#include "base/mem.h"
#include "calls/call.h"

struct calls_listeners {
    unsigned n;
    struct bus_address loops[PEG_LIMIT_GATEWAY_LISTENERS];
};

bool calls_output_is_wanted(const struct calls_call *call)
{
    return call->callers && call->callers->events->on_output;
}

void calls_output_listen(struct calls_call *call)
{
    const struct bus_message message = {
        .kind = BUS_LISTEN,
        .id = call->entry.id,
        .from = call->calls->bus->self,
    };

    if (calls_output_is_wanted(call) && !bus_address_equal(call->coordinator, message.from))
        bus_send(call->calls->bus, call->coordinator, &message, NULL);
}

void calls_output_on_listener(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = calls_coordinated(calls, &message->id);
    struct calls_listeners *listeners = call ? call->listeners : NULL;

    if (call && !listeners) {
        listeners = (struct calls_listeners *)peg__alloc_zero(1, sizeof(*listeners));
        call->listeners = listeners;
    }
    if (!listeners)
        return;
    for (unsigned i = 0; i < listeners->n; i++)
        if (bus_address_equal(listeners->loops[i], message->from))
            return;
    if (listeners->n < PEG_LIMIT_GATEWAY_LISTENERS)
        listeners->loops[listeners->n++] = message->from;
}

static void forward_output(const struct calls_call *call, const struct bus_message *message)
{
    struct bus *bus = call->calls->bus;
    struct bus_message copy = *message;

    copy.from = bus->self;
    for (unsigned i = 0; call->listeners && i < call->listeners->n; i++)
        bus_send(bus, call->listeners->loops[i], &copy, NULL);
}

static void send_output(struct calls_call *call, const struct bus_message *message)
{
    if (calls_output_is_wanted(call))
        call->callers->events->on_output(call->callers, peg__blob_str(message->body));
}

/* Who hears it may go, and others with him: then it is looked for the next anew. */
static void notify_followers(struct calls_loop *calls, const struct bus_message *message,
                             struct bus_address coordinator)
{
    const uint64_t number = ++calls->n_notified;
    struct calls_entry *entry = calls_table_find(&calls->by_id, &message->id, 0);
    uint64_t n_dropped;

    while (entry) {
        struct calls_call *call = (struct calls_call *)entry;

        if (call->notified == number || call->step != CALLS_FOLLOWING ||
            !bus_address_equal(call->coordinator, coordinator)) {
            entry = calls_table_again(entry);
            continue;
        }
        call->notified = number;
        n_dropped = calls->n_dropped;
        send_output(call, message);
        entry = calls->n_dropped == n_dropped ? calls_table_again(entry)
                                              : calls_table_find(&calls->by_id, &message->id, 0);
    }
}

void calls_output_on_message(struct calls_loop *calls, const struct bus_message *message)
{
    struct calls_call *call = calls_coordinated(calls, &message->id);

    if (!call) {
        notify_followers(calls, message, message->from);
        return;
    }
    if (call->attempt != message->attempt || strcmp(call->incarnation, message->incarnation) != 0)
        return;
    forward_output(call, message);
    send_output(call, message); /* which may be the end of it */
    notify_followers(calls, message, calls->bus->self);
}
