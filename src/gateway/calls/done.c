/* SPDX-License-Identifier: Apache-2.0 */

/* What a holder tells when a call has ended, or its driver those who have joined. */

#include <string.h>

#include "gateway/calls/call.h"

/* A driver says it of no attempt, and may have forgotten the call since: somebody may have asked
 * for that identity anew. */
static bool is_of_its_driver(const struct gw_call *call, const struct bus_message *letter)
{
    return bus_address_equal(letter->from, call->driver) &&
           letter->deadline_ms == call->deadline_ms;
}

/* The payload is taken from the letter only if nobody can have settled the call otherwise
 * meanwhile; else the register tells. */
static bool may_trust(const struct gw_call *call, const struct bus_message *letter)
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
    if (call->step == GW_FOLLOWING)
        return letter->attempt || is_of_its_driver(call, letter);
    return letter->attempt == call->attempt && strcmp(letter->incarnation, call->incarnation) == 0;
}

static void handle_done(struct gw_call *call, const struct bus_message *letter)
{
    const bool is_ours = call->step != GW_FOLLOWING && letter->attempt == call->attempt;

    if (call->step < GW_FOLLOWING)
        return;
    if (is_ours)
        gw_outstanding_answer(call, letter);
    if (may_trust(call, letter)) {
        gw_call_end(call, letter->body);
    } else {
        call->has_heard_end = true;
        gw_recheck_now(call);
    }
}

/* Several calls of this desk may have the id, and ending one may end others. */
void gw_done_on_message(struct gw_calls *desk, const struct bus_message *letter)
{
    const uint64_t number = ++desk->n_told;
    struct gw_entry *entry = gw_table_find(&desk->calls, &letter->id, 0);

    while (entry) {
        struct gw_call *call = (struct gw_call *)entry;

        if (call->told == number) {
            entry = gw_table_again(entry);
            continue;
        }
        call->told = number;
        handle_done(call, letter);
        entry = gw_table_find(&desk->calls, &letter->id, 0);
    }
}
