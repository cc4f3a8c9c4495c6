/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls without an identity that have ended while letters with them were on their way, and those
 * with one that nobody could run. Their registers stay, so that whoever gets such a letter sees
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
#include "gateway/calls/call.h"

struct astray {
    struct gw_entry entry; /* its id; the first member */
    struct gw_calls *desk;
    unsigned n_letters; /* that were not answered yet */
    uint32_t n_attempts;
    uint32_t answered; /* as in the call */
    /* What the registers stand for; NULL: no identity. It may be another call's meanwhile. */
    struct peg__blob *named;
    struct bus_wait wait;
    struct net_timer late;
};

static void stop_counting(struct astray *astray)
{
    bus_disarm(astray->desk->bus, &astray->late);
    bus_forget_wait(astray->desk->bus, &astray->wait);
    gw_table_remove(&astray->desk->astray, &astray->entry);
    peg__blob_unref(astray->named);
    peg__free(astray);
}

static void on_late(struct net_timer *timer)
{
    stop_counting(peg__container_of(timer, struct astray, late));
}

void gw_outstanding_count(const struct gw_call *call)
{
    struct gw_calls *desk = call->desk;
    struct astray *astray;

    if ((gw_call_is_keyed(call) && !call->named) || desk->astray.n >= PEG_LIMIT_GATEWAY_OUTSTANDING)
        return;
    astray = (struct astray *)peg__alloc_zero(1, sizeof(*astray));
    if (!astray)
        return;
    astray->entry.id = call->entry.id;
    if (gw_table_add(&desk->astray, &astray->entry)) {
        peg__free(astray);
        return;
    }
    astray->desk = desk;
    astray->n_letters = call->n_astray;
    astray->answered = call->answered;
    astray->n_attempts = call->attempt + 1;
    astray->named = gw_call_is_keyed(call) ? peg__blob_ref(call->named) : NULL;
    astray->late.fn = on_late;
    bus_arm(desk->bus, &astray->late,
            bus_now_ns(desk->bus) + (int64_t)PEG_LIMIT_GATEWAY_OUTSTANDING_MS * 1000000);
}

/* Who had the right to an attempt got one letter with it. He may list the call again when he comes
 * back, and answer it again; that is about no other letter. */
static bool is_first_answer(const struct bus_message *letter, uint32_t *answered)
{
    const uint32_t bit = letter->attempt < 32 ? UINT32_C(1) << letter->attempt : 0;
    const bool is_first = bit && !(*answered & bit);

    if (!letter->was_claimed && letter->kind != BUS_DONE)
        return true;
    *answered |= bit;
    return is_first;
}

/* Another node cannot look whose a call of this node is. No letter with it went there, but its
 * provider may have gone. */
static bool is_hearsay(const struct gw_calls *desk, const struct bus_id *id,
                       const struct bus_message *letter)
{
    return gw_id_is_node_local(id) && letter->from.node &&
           letter->from.node != desk->bus->self.node;
}

void gw_outstanding_answer(struct gw_call *call, const struct bus_message *letter)
{
    const bool is_current =
        letter->attempt == call->attempt && strcmp(letter->incarnation, call->incarnation) == 0;

    if (!is_current && is_hearsay(call->desk, &call->entry.id, letter))
        return;
    if (is_first_answer(letter, &call->answered) && call->n_astray)
        call->n_astray--;
}

/* ---- the last answer --------------------------------------------------------------------------
 */

static struct bus_key outstanding_key(const struct astray *astray, char what)
{
    return (struct bus_key){
        .id = astray->entry.id,
        .what = what,
        .is_node_local = gw_id_is_node_local(&astray->entry.id),
    };
}

static void forget_outstanding(struct astray *astray)
{
    const struct bus_key key = outstanding_key(astray, BUS_RESULT);

    bus_forget(astray->desk->bus, &key, astray->n_attempts);
    stop_counting(astray);
}

static void on_outstanding_name(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct astray *astray = peg__container_of(wait, struct astray, wait);

    if (!answer->status && answer->current &&
        peg__str_eq(peg__blob_str(answer->current), peg__blob_str(astray->named)))
        forget_outstanding(astray);
    else
        stop_counting(astray);
}

/* Registers of an identity may have been lost, and be those of one who has asked since. */
static void read_outstanding_name(struct astray *astray)
{
    const struct bus_key key = outstanding_key(astray, BUS_IDENTITY);

    astray->wait.fn = on_outstanding_name;
    bus_read(astray->desk->bus, &key, &astray->wait);
}

/* Only what says that the letter was dropped: BUS_DONE may be of one that was counted before. */
void gw_outstanding_on_answer(struct gw_calls *desk, const struct bus_message *letter)
{
    const bool is_dropped =
        letter->kind == BUS_DUPLICATE || (letter->kind == BUS_NAK && letter->reason != BUS_UNKNOWN);
    struct astray *astray =
        is_dropped ? (struct astray *)gw_table_find(&desk->astray, &letter->id, 0) : NULL;

    if (!astray || !astray->n_letters || is_hearsay(desk, &letter->id, letter) ||
        !is_first_answer(letter, &astray->answered) || --astray->n_letters > 0)
        return;
    if (astray->named)
        read_outstanding_name(astray);
    else
        forget_outstanding(astray);
}

void gw_outstanding_free(struct gw_calls *desk)
{
    while (desk->astray.n > 0)
        stop_counting((struct astray *)gw_table_any(&desk->astray));
    gw_table_free(&desk->astray);
}
