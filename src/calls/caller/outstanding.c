/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that ended while messages with them were under way: those without an identity, and those
 * that no provider could run. Their registers stay, so that a provider side that gets such a
 * message sees that there is nothing to start. It answers that it does not start it: with the last
 * of these answers the registers are of no use, and need not stay until a deadline that may be a
 * day away. Those of an identity would be in the way of one that asks again.
 *
 * What is remembered here may be lost at any time: then the registers stay as long as they would.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"

struct outstanding {
    struct calls_entry entry; /* its id; the first member */
    struct calls_loop *calls;
    unsigned n_messages; /* that were not answered yet */
    uint32_t n_attempts;
    uint32_t answered; /* as in the machine */
    /* What the identity register held; NULL: no identity. It may be another call's meanwhile. */
    struct peg__blob *identity;
    struct bus_wait wait;
    struct net_timer late;
};

static void stop_counting(struct outstanding *outstanding)
{
    struct calls_loop *calls = outstanding->calls;

    bus_disarm(calls->bus, &outstanding->late);
    bus_forget_wait(calls->bus, &outstanding->wait);
    calls_table_remove(&calls->outstanding, &outstanding->entry);
    peg__blob_unref(outstanding->identity);
    peg__free(outstanding);
}

static void on_late(struct net_timer *timer)
{
    stop_counting(peg__container_of(timer, struct outstanding, late));
}

void calls_outstanding_count(const struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const bool is_keyed = calls_call_is_keyed(call);
    struct outstanding *outstanding;

    if ((is_keyed && !call->identity) || calls->outstanding.n >= PEG_LIMIT_GATEWAY_OUTSTANDING)
        return;
    outstanding = (struct outstanding *)peg__alloc_zero(1, sizeof(*outstanding));
    if (!outstanding)
        return;
    outstanding->entry.id = call->entry.id;
    if (calls_table_add(&calls->outstanding, &outstanding->entry)) {
        peg__free(outstanding);
        return;
    }
    outstanding->calls = calls;
    outstanding->n_messages = call->machine.n_outstanding;
    outstanding->answered = call->machine.answered;
    outstanding->n_attempts = calls_call_n_claims(call);
    outstanding->identity = is_keyed ? peg__blob_ref(call->identity) : NULL;
    outstanding->late.fn = on_late;
    bus_arm(calls->bus, &outstanding->late,
            bus_now_ns(calls->bus) + (int64_t)PEG_LIMIT_GATEWAY_OUTSTANDING_MS * 1000000);
}

/* ---- the last answer ---- */

static void forget_registers(struct outstanding *outstanding)
{
    const struct bus_key key = calls_key(&outstanding->entry.id, BUS_RESULT, 0);

    bus_forget(outstanding->calls->bus, &key, outstanding->n_attempts);
    stop_counting(outstanding);
}

/* Registers of an identity may have been lost, and be those of one that has asked since. */
static void on_identity(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct outstanding *outstanding = peg__container_of(wait, struct outstanding, wait);

    if (!answer->status && answer->current &&
        peg__str_eq(peg__blob_str(answer->current), peg__blob_str(outstanding->identity)))
        forget_registers(outstanding);
    else
        stop_counting(outstanding);
}

/* Another node cannot read whose a call of this node is; its provider may have gone there. */
static bool is_unverified(const struct calls_loop *calls, const struct bus_message *message)
{
    return calls_id_is_node_local(&message->id) && message->from.node &&
           message->from.node != calls->bus->self.node;
}

/* Only a NAK says that a message was dropped: BUS_DONE may be of one that was counted before. */
void calls_outstanding_on_answer(struct calls_loop *calls, const struct bus_message *message)
{
    const bool is_dropped = message->kind == BUS_NAK && message->reason != BUS_UNKNOWN;
    struct outstanding *outstanding =
        is_dropped ? (struct outstanding *)calls_table_find(&calls->outstanding, &message->id, 0)
                   : NULL;

    if (!outstanding || !outstanding->n_messages || is_unverified(calls, message) ||
        !calls_count_answer(message, &outstanding->answered) || --outstanding->n_messages > 0)
        return;
    if (outstanding->identity)
        calls_read_register(calls->bus, calls_key(&message->id, BUS_IDENTITY, 0),
                            &outstanding->wait, on_identity);
    else
        forget_registers(outstanding);
}

void calls_outstanding_free(struct calls_loop *calls)
{
    while (calls->outstanding.n > 0)
        stop_counting((struct outstanding *)calls_table_any(&calls->outstanding));
    calls_table_free(&calls->outstanding);
}
