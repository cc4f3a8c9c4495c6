/* SPDX-License-Identifier: Apache-2.0 */

/* What a holder tells when a call has ended, and callers who go away. */

#include <string.h>

#include "gateway/call.h"

/* The payload is taken from the letter only if nobody can have settled the call otherwise
 * meanwhile; else the register tells. */
static bool may_trust(const struct gw_call *call, const struct bus_letter *letter)
{
    if (!letter->body)
        return false;
    /* Registers that stay in a node nobody else can write: who sends this has moved elsewhere with
     * its provider, and could not reach them. */
    if (gw_id_is_node_local(&call->entry.id))
        return letter->attempt == call->attempt &&
               strcmp(letter->incarnation, call->incarnation) == 0;
    if (bus_is_fenced(call->desk->bus))
        return false;
    return call->step == GW_JOINED || (letter->attempt == call->attempt &&
                                       strcmp(letter->incarnation, call->incarnation) == 0);
}

static void hear(struct gw_call *call, const struct bus_letter *letter)
{
    const bool is_ours = call->step != GW_JOINED && letter->attempt == call->attempt;

    if (call->step < GW_JOINED)
        return;
    if (is_ours && call->n_astray)
        call->n_astray--;
    if (may_trust(call, letter))
        gw_call_end(call, letter->body);
    else
        gw_look_now(call);
}

/* Several calls of this desk may have the id, and ending one may end others. */
void gw_done_on_letter(struct gw_desk *desk, const struct bus_letter *letter)
{
    const uint64_t number = ++desk->n_done;
    struct gw_entry *entry = gw_table_find(&desk->calls, &letter->id, 0);

    while (entry) {
        struct gw_call *call = (struct gw_call *)entry;

        if (call->told == number) {
            entry = gw_table_again(entry);
            continue;
        }
        call->told = number;
        hear(call, letter);
        entry = gw_table_find(&desk->calls, &letter->id, 0);
    }
}

/* ---- callers --------------------------------------------------------------------------------- */

static void on_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = (struct gw_call *)((char *)wait - offsetof(struct gw_call, post));

    if (!call->callers && (answer->status || !answer->n_addresses))
        gw_settle(call, BUS_CANCELED);
}

/* Somebody else may wait for it. */
static void ask_waiters(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, 'w', 0);

    bus_forget_wait(call->desk->bus, &call->post);
    call->post.fn = on_waiters;
    bus_waiters(call->desk->bus, &key, &call->post);
}

void gw_caller_drop(struct gw_caller *caller)
{
    struct gw_call *call = caller->call;

    if (!call)
        return;
    gw_call_take_caller(caller);
    if (call->callers || call->is_detached)
        return;
    if (call->step == GW_JOINED)
        gw_call_drop(call);
    else if (gw_call_is_keyed(call))
        ask_waiters(call);
    else
        gw_settle(call, BUS_CANCELED);
}

void gw_caller_detach(struct gw_caller *caller)
{
    struct gw_call *call = caller->call;

    if (!call)
        return;
    call->is_detached = call->step != GW_JOINED;
    gw_call_take_caller(caller);
    /* Whoever joined and does not wait has no part in it. Within on_admitted the joiner looks on,
     * and is dropped with its next look. */
    if (call->step == GW_JOINED)
        bus_arm(call->desk->bus, &call->deadline, bus_now_ns(call->desk->bus));
}
