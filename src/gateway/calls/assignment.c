/* SPDX-License-Identifier: Apache-2.0 */

/* One call at its provider's desk: the list it is in, what it says, and how it ends. */

#include <string.h>

#include "base/mem.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"

/* ---- lists of held calls --------------------------------------------------------------------- */

static void list_add(struct gw_assignment_list *list, struct gw_assignment *held)
{
    held->next = NULL;
    held->prev = list->last;
    if (held->prev)
        held->prev->next = held;
    else
        list->first = held;
    list->last = held;
    list->n++;
}

static void list_remove(struct gw_assignment_list *list, struct gw_assignment *held)
{
    if (held->prev)
        held->prev->next = held->next;
    else
        list->first = held->next;
    if (held->next)
        held->next->prev = held->prev;
    else
        list->last = held->prev;
    held->next = NULL;
    held->prev = NULL;
    list->n--;
}

/* The loop hears how many answers are on their way. */
static void await_retry(const struct gw_calls *desk, int n)
{
    if (desk->loop)
        net_loop_await(desk->loop, n);
}

void gw_assignment_run(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;

    list_remove(&provider->queue, held);
    list_add(&provider->running, held);
    gw_meter_queued(provider->meter, -1);
    await_retry(provider->desk, 1);
}

/* ---- a held call ----------------------------------------------------------------------------- */

static void retry_assignment(struct net_timer *timer)
{
    gw_complete_retry(peg__container_of(timer, struct gw_assignment, again));
}

/* It begins in the queue. */
struct gw_assignment *gw_assignment_new(struct gw_provider *provider, const struct bus_id *id,
                                        uint32_t attempt)
{
    struct gw_assignment *held = (struct gw_assignment *)peg__alloc_zero(1, sizeof(*held));

    if (!held)
        return NULL;
    held->entry.id = *id;
    held->entry.attempt = attempt;
    if (gw_table_add(&provider->desk->held, &held->entry)) {
        peg__free(held);
        return NULL;
    }
    held->provider = provider;
    peg__quota_add(&provider->desk->quotas.held, provider->account, 1);
    held->again.fn = retry_assignment;
    list_add(&provider->queue, held);
    gw_meter_queued(provider->meter, 1);
    return held;
}

static size_t request_len(const struct gw_assignment *held)
{
    return held->request ? held->request->len : 0;
}

static void tell_dropped(const struct gw_assignment *held)
{
    const struct gw_provider *provider = held->provider;

    if (!provider->is_away && provider->events->dropped)
        provider->events->dropped(provider->user, &held->entry.id, held->entry.attempt);
}

void gw_assignment_drop(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;
    struct bus *bus = provider->desk->bus;

    bus_forget_wait(bus, &held->wait);
    bus_forget_wait(bus, &held->waiters);
    bus_disarm(bus, &held->again);
    if (held->check)
        gw_check_forget(held->check);
    gw_reported_verify(held);
    if (held->step == GW_QUEUED) {
        provider->queued_bytes -= request_len(held);
        gw_meter_queued(provider->meter, -1);
        list_remove(&provider->queue, held);
    } else {
        if (provider->unlooked == held)
            provider->unlooked = held->next;
        list_remove(&provider->running, held);
        await_retry(provider->desk, -1);
        tell_dropped(held);
    }
    gw_table_remove(&provider->desk->held, &held->entry);
    peg__quota_give_back(&provider->desk->quotas.held, provider->account, 1);
    peg__blob_unref(held->request);
    peg__blob_unref(held->mark);
    peg__blob_unref(held->terminal);
    peg__blob_unref(held->stand_in);
    peg__free(held);
    gw_evict_if_done(provider);
}

void gw_assignment_send(struct gw_assignment *held, enum bus_message_kind kind,
                        struct peg__blob *body)
{
    struct gw_provider *provider = held->provider;
    struct bus_message letter = {
        .kind = kind,
        .id = held->entry.id,
        .attempt = held->entry.attempt,
        .epoch = held->epoch,
        .from = provider->desk->bus->self,
        .body = body,
    };

    memcpy(letter.incarnation, provider->incarnation, sizeof(letter.incarnation));
    bus_send(provider->desk->bus, held->driver, &letter, NULL);
}

void gw_assignment_nak(struct gw_assignment *held, enum bus_reason reason, bool was_claimed)
{
    struct gw_provider *provider = held->provider;
    struct bus_message letter = {
        .kind = BUS_NAK,
        .reason = reason,
        .id = held->entry.id,
        .attempt = held->entry.attempt,
        .was_claimed = was_claimed,
        .epoch = held->epoch,
        .from = provider->desk->bus->self,
    };

    memcpy(letter.incarnation, provider->incarnation, sizeof(letter.incarnation));
    bus_send(provider->desk->bus, held->driver, &letter, NULL);
    gw_assignment_drop(held);
}

struct bus_key gw_assignment_key(const struct gw_assignment *held, char what, uint32_t n)
{
    return (struct bus_key){
        .id = held->entry.id,
        .what = what,
        .n = n,
        .is_node_local = gw_id_is_node_local(&held->entry.id),
        .account = held->account,
    };
}

/* Of a call that was listed the deadline is not known, and its driver may look as late as that. Of
 * one with an identity it is looked for before its end is written: see complete.c. */
int64_t gw_assignment_keep_until(const struct gw_assignment *held)
{
    const struct gw_calls *desk = held->provider->desk;

    return held->deadline_ms ? gw_calls_keep_until(desk, &held->entry.id, held->deadline_ms)
                             : bus_now_ms(desk->bus) + desk->options.keep_ms;
}
