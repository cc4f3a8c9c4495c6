/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls without an identity that have ended while messages with them were on their way, and those
 * with one that nobody could run. Their registers stay, so that whoever gets such a message sees
 * that there is nothing to start. But whoever gets one and does not start it says so: with the last
 * of these answers the registers are of no use, and need not stay until a deadline that may be a
 * day away. Those of an identity would be in the way of who asks again.
 *
 * What is remembered here may be lost at any time: then the registers stay as long as they would.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"

struct outstanding {
    struct calls_entry entry; /* its id; the first member */
    struct calls_loop *calls;
    unsigned n_messages; /* that were not answered yet */
    uint32_t n_attempts;
    uint32_t answered; /* as in the call */
    /* What the registers stand for; NULL: no identity. It may be another call's meanwhile. */
    struct peg__blob *identity;
    struct bus_wait wait;
    struct net_timer late;
};

static void stop_counting(struct outstanding *outstanding)
{
    bus_disarm(outstanding->calls->bus, &outstanding->late);
    bus_forget_wait(outstanding->calls->bus, &outstanding->wait);
    calls_table_remove(&outstanding->calls->outstanding, &outstanding->entry);
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
    struct outstanding *outstanding;

    if ((calls_call_is_keyed(call) && !call->identity) ||
        calls->outstanding.n >= PEG_LIMIT_GATEWAY_OUTSTANDING)
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
    outstanding->n_messages = call->n_outstanding;
    outstanding->answered = call->answered;
    outstanding->n_attempts = call->attempt + 1;
    outstanding->identity = calls_call_is_keyed(call) ? peg__blob_ref(call->identity) : NULL;
    outstanding->late.fn = on_late;
    bus_arm(calls->bus, &outstanding->late,
            bus_now_ns(calls->bus) + (int64_t)PEG_LIMIT_GATEWAY_OUTSTANDING_MS * 1000000);
}

/* Who had the right to an attempt got one message with it. He may list the call again when he comes
 * back, and answer it again; that is about no other message. */
static bool is_first_answer(const struct bus_message *message, uint32_t *answered)
{
    const uint32_t bit = message->attempt < 32 ? UINT32_C(1) << message->attempt : 0;
    const bool is_first = bit && !(*answered & bit);

    if (!message->was_claimed && message->kind != BUS_DONE)
        return true;
    *answered |= bit;
    return is_first;
}

/* Another node cannot look whose a call of this node is. No message with it went there, but its
 * provider may have gone. */
static bool is_unverifiable(const struct calls_loop *calls, const struct bus_id *id,
                            const struct bus_message *message)
{
    return calls_id_is_node_local(id) && message->from.node &&
           message->from.node != calls->bus->self.node;
}

void calls_outstanding_answer(struct calls_call *call, const struct bus_message *message)
{
    const bool is_current =
        message->attempt == call->attempt && strcmp(message->incarnation, call->incarnation) == 0;

    if (!is_current && is_unverifiable(call->calls, &call->entry.id, message))
        return;
    if (is_first_answer(message, &call->answered) && call->n_outstanding)
        call->n_outstanding--;
}

/* ---- the last answer --------------------------------------------------------------------------
 */

static struct bus_key outstanding_key(const struct outstanding *outstanding, char what)
{
    return (struct bus_key){
        .id = outstanding->entry.id,
        .what = what,
        .is_node_local = calls_id_is_node_local(&outstanding->entry.id),
    };
}

static void forget_outstanding(struct outstanding *outstanding)
{
    const struct bus_key key = outstanding_key(outstanding, BUS_RESULT);

    bus_forget(outstanding->calls->bus, &key, outstanding->n_attempts);
    stop_counting(outstanding);
}

static void on_outstanding_identity(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct outstanding *outstanding = peg__container_of(wait, struct outstanding, wait);

    if (!answer->status && answer->current &&
        peg__str_eq(peg__blob_str(answer->current), peg__blob_str(outstanding->identity)))
        forget_outstanding(outstanding);
    else
        stop_counting(outstanding);
}

/* Registers of an identity may have been lost, and be those of one who has asked since. */
static void read_outstanding_identity(struct outstanding *outstanding)
{
    const struct bus_key key = outstanding_key(outstanding, BUS_IDENTITY);

    outstanding->wait.fn = on_outstanding_identity;
    bus_read(outstanding->calls->bus, &key, &outstanding->wait);
}

/* Only what says that the message was dropped: BUS_DONE may be of one that was counted before. */
void calls_outstanding_on_answer(struct calls_loop *calls, const struct bus_message *message)
{
    const bool is_dropped = message->kind == BUS_NAK && message->reason != BUS_UNKNOWN;
    struct outstanding *outstanding =
        is_dropped ? (struct outstanding *)calls_table_find(&calls->outstanding, &message->id, 0)
                   : NULL;

    if (!outstanding || !outstanding->n_messages || is_unverifiable(calls, &message->id, message) ||
        !is_first_answer(message, &outstanding->answered) || --outstanding->n_messages > 0)
        return;
    if (outstanding->identity)
        read_outstanding_identity(outstanding);
    else
        forget_outstanding(outstanding);
}

void calls_outstanding_free(struct calls_loop *calls)
{
    while (calls->outstanding.n > 0)
        stop_counting((struct outstanding *)calls_table_any(&calls->outstanding));
    calls_table_free(&calls->outstanding);
}
