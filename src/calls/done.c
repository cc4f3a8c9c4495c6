/* SPDX-License-Identifier: Apache-2.0 */

/* What a provider side tells when a call has ended, or its coordinator those who have joined. */

#include <string.h>

#include "calls/call.h"

/* A coordinator says it of no attempt, and may have forgotten the call since: somebody may have
 * asked for that identity anew. */
static bool is_of_its_driver(const struct calls_call *call, const struct bus_message *message)
{
    return bus_address_equal(message->from, call->coordinator) &&
           message->deadline_ms == call->deadline_ms;
}

/* The payload is taken from the message only if nobody can have settled the call otherwise
 * meanwhile; else the register tells. */
static bool may_trust(const struct calls_call *call, const struct bus_message *message)
{
    if (!message->body)
        return false;
    /* Registers that stay in a node nobody else can write: who sends this has moved elsewhere with
     * its provider, and could not reach them. */
    if (calls_id_is_node_local(&call->entry.id))
        return message->attempt == call->attempt &&
               strcmp(message->incarnation, call->incarnation) == 0;
    if (bus_is_fenced(call->calls->bus))
        return false;
    if (call->step == CALLS_FOLLOWING)
        return message->attempt || is_of_its_driver(call, message);
    return message->attempt == call->attempt &&
           strcmp(message->incarnation, call->incarnation) == 0;
}

static void handle_done(struct calls_call *call, const struct bus_message *message)
{
    const bool is_ours = call->step != CALLS_FOLLOWING && message->attempt == call->attempt;

    if (call->step < CALLS_FOLLOWING)
        return;
    if (is_ours)
        calls_outstanding_answer(call, message);
    if (may_trust(call, message)) {
        calls_call_end(call, message->body);
    } else {
        call->has_heard_end = true;
        calls_recheck_now(call);
    }
}

/* Several calls of this loop may have the id, and ending one may end others. */
void calls_done_on_message(struct calls_loop *calls, const struct bus_message *message)
{
    const uint64_t number = ++calls->n_notified;
    struct calls_entry *entry = calls_table_find(&calls->by_id, &message->id, 0);

    while (entry) {
        struct calls_call *call = (struct calls_call *)entry;

        if (call->notified == number) {
            entry = calls_table_again(entry);
            continue;
        }
        call->notified = number;
        handle_done(call, message);
        entry = calls_table_find(&calls->by_id, &message->id, 0);
    }
}
