/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a tool says while it runs. Its holder tells the driver; he tells his caller, those who have
 * joined the call at the same desk, and the desks of others who have joined: they asked him to.
 * Outputs are hints: who joins hears those that come from then on, if nothing is lost.
 */

#include <string.h>

#include "base/mem.h"
#include "gateway/calls/call.h"

struct gw_listeners {
    unsigned n;
    struct bus_address desks[PEG_LIMIT_GATEWAY_LISTENERS];
};

bool gw_output_is_wanted(const struct gw_call *call)
{
    return call->callers && call->callers->events->on_output;
}

void gw_output_listen(struct gw_call *call)
{
    const struct bus_message letter = {
        .kind = BUS_LISTEN,
        .id = call->entry.id,
        .from = call->desk->bus->self,
    };

    if (gw_output_is_wanted(call) && !bus_address_equal(call->driver, letter.from))
        bus_send(call->desk->bus, call->driver, &letter, NULL);
}

void gw_output_on_listener(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_call *call = gw_calls_coordinated(desk, &letter->id);
    struct gw_listeners *listeners = call ? call->listeners : NULL;

    if (call && !listeners) {
        listeners = (struct gw_listeners *)peg__alloc_zero(1, sizeof(*listeners));
        call->listeners = listeners;
    }
    if (!listeners)
        return;
    for (unsigned i = 0; i < listeners->n; i++)
        if (bus_address_equal(listeners->desks[i], letter->from))
            return;
    if (listeners->n < PEG_LIMIT_GATEWAY_LISTENERS)
        listeners->desks[listeners->n++] = letter->from;
}

static void forward_output(const struct gw_call *call, const struct bus_message *letter)
{
    struct bus *bus = call->desk->bus;
    struct bus_message copy = *letter;

    copy.from = bus->self;
    for (unsigned i = 0; call->listeners && i < call->listeners->n; i++)
        bus_send(bus, call->listeners->desks[i], &copy, NULL);
}

static void send_output(struct gw_call *call, const struct bus_message *letter)
{
    if (gw_output_is_wanted(call))
        call->callers->events->on_output(call->callers, peg__blob_str(letter->body));
}

/* Who hears it may go, and others with him: then it is looked for the next anew. */
static void tell_joined(struct gw_calls *desk, const struct bus_message *letter,
                        struct bus_address driver)
{
    const uint64_t number = ++desk->n_told;
    struct gw_entry *entry = gw_table_find(&desk->calls, &letter->id, 0);
    uint64_t n_dropped;

    while (entry) {
        struct gw_call *call = (struct gw_call *)entry;

        if (call->told == number || call->step != GW_FOLLOWING ||
            !bus_address_equal(call->driver, driver)) {
            entry = gw_table_again(entry);
            continue;
        }
        call->told = number;
        n_dropped = desk->n_dropped;
        send_output(call, letter);
        entry = desk->n_dropped == n_dropped ? gw_table_again(entry)
                                             : gw_table_find(&desk->calls, &letter->id, 0);
    }
}

void gw_output_on_message(struct gw_calls *desk, const struct bus_message *letter)
{
    struct gw_call *call = gw_calls_coordinated(desk, &letter->id);

    if (!call) {
        tell_joined(desk, letter, letter->from);
        return;
    }
    if (call->attempt != letter->attempt || strcmp(call->incarnation, letter->incarnation) != 0)
        return;
    forward_output(call, letter);
    send_output(call, letter); /* which may be the end of it */
    tell_joined(desk, letter, desk->bus->self);
}
