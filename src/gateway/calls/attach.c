/* SPDX-License-Identifier: Apache-2.0 */

/* A provider comes, comes back with the calls that it has, goes, or stays away. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"

/* Of a provider that stayed away so many calls are dropped before others have their turn: that
 * takes a tenth of a millisecond, and it may have left thousands. */
enum { DROPS_AT_ONCE = 512 };

/* Ids are random, so where a call is looked for is in no cache: it is on its way while so many
 * others are taken. */
enum { AHEAD = 8 };

/* ---- going ----------------------------------------------------------------------------------- */

void gw_provider_free(struct gw_provider *provider)
{
    struct gw_calls *desk = provider->desk;

    provider->is_away = true; /* nobody is told of what it has */
    while (provider->queue.first)
        gw_assignment_drop(provider->queue.first);
    while (provider->running.first)
        gw_assignment_drop(provider->running.first);
    if (provider->prev)
        provider->prev->next = provider->next;
    else
        desk->providers = provider->next;
    if (provider->next)
        provider->next->prev = provider->prev;
    peg__quota_give_back(&desk->quotas.providers, provider->account, 1);
    gw_table_remove(&desk->incarnations, &provider->entry);
    bus_forget_wait(desk->bus, &provider->lease);
    bus_disarm(desk->bus, &provider->away);
    bus_disarm(desk->bus, &provider->farewell);
    bus_disarm(desk->bus, &provider->review);
    gw_toolset_unref(provider->toolset);
    gw_toolset_unref(provider->serves);
    peg__free(provider);
}

/* Where it has gone it has listed what it has, and answers for it there. */
static void forget_handed(struct gw_provider *provider)
{
    struct gw_assignment *next;

    for (struct gw_assignment *held = provider->running.first; held; held = next) {
        next = held->next;
        if (held->step == GW_HANDED)
            gw_assignment_drop(held);
    }
}

void gw_provider_leave(struct gw_provider *provider)
{
    struct gw_calls *desk = provider->desk;
    struct gw_assignment *next;

    gw_presence_remove(desk->presence, provider->toolset->name, provider->incarnation);
    provider->is_away = true;
    bus_disarm(desk->bus, &provider->farewell);
    for (struct gw_assignment *held = provider->queue.first; held; held = next) {
        next = held->next;
        gw_assignment_nak(held, BUS_GONE, false);
    }
    if (provider->is_moved)
        forget_handed(provider);
    /* Whoever has no call has nothing to come back for, and need not be waited for. */
    if (!provider->running.first) {
        if (!provider->is_moved)
            bus_release(desk->bus, peg__str(provider->incarnation));
        gw_provider_free(provider);
        return;
    }
    bus_arm(desk->bus, &provider->away, bus_now_ns(desk->bus) + desk->options.lease_ms * 1000000);
    if (!provider->is_moved)
        gw_provider_renew_last(provider);
}

/* Drivers look less and less often for themselves whether the lease is over: they are told. */
static void lose_provider(struct gw_assignment *held)
{
    if (held->step == GW_HANDED)
        gw_assignment_send(held, BUS_LOST, NULL);
    gw_assignment_drop(held);
}

/* Its calls first, some at a time. If it comes back meanwhile those that are left are its still,
 * and what it lists of the others is taken as from another desk. */
static void forget_lost(struct gw_provider *provider)
{
    struct bus *bus = provider->desk->bus;

    for (unsigned n = 0; provider->running.first && n < DROPS_AT_ONCE; n++)
        lose_provider(provider->running.first);
    if (provider->running.first)
        bus_arm(bus, &provider->away, bus_now_ns(bus));
    else
        gw_provider_free(provider);
}

/* It did not come back: its lease is over, and the drivers of its calls see that. Or it has moved,
 * and the stream that it left here ends. */
static void on_away(struct net_timer *timer)
{
    struct gw_provider *provider = peg__container_of(timer, struct gw_provider, away);

    if (provider->is_away) {
        forget_lost(provider);
        return;
    }
    provider->events->replaced(provider->user);
    gw_provider_leave(provider);
}

/* It may be told in the middle of anything, so the stream ends a little later. */
void gw_providers_on_moved(void *user, const char *incarnation)
{
    struct gw_calls *desk = (struct gw_calls *)user;
    struct gw_provider *provider = gw_providers_find(desk, incarnation);

    if (!provider || provider->is_away || provider->is_moved)
        return;
    provider->is_moved = true;
    /* One that a node which shuts down has asked to go is to finish here. */
    if (!desk->is_draining || !provider->is_draining)
        bus_arm(desk->bus, &provider->away, bus_now_ns(desk->bus));
}

/* ---- coming, and coming back ------------------------------------------------------------------
 */

static void link_provider(struct gw_provider *provider)
{
    struct gw_calls *desk = provider->desk;

    provider->next = desk->providers;
    if (provider->next)
        provider->next->prev = provider;
    desk->providers = provider;
    peg__quota_add(&desk->quotas.providers, provider->account, 1);
}

/* One that comes back is counted already. */
static peg_status new_provider(struct gw_calls *desk, const struct gw_attach *attach,
                               struct gw_provider **ret_provider, peg_error *reterr)
{
    const uint16_t account = gw_calls_quota_key(desk, attach->toolset->owner);
    const char *why_not = gw_quota_reject_provider(desk, account);
    struct gw_provider *provider;

    if (why_not)
        return peg__fail(reterr, PEG_ELIMIT, "E_NODE_FULL", "%s", why_not);
    provider = (struct gw_provider *)peg__alloc_zero(1, sizeof(*provider));
    if (!provider)
        return peg__fail_nomem(reterr);
    memcpy(provider->incarnation, attach->incarnation.ptr, attach->incarnation.len);
    provider->entry.id = gw_providers_hash(desk, provider->incarnation);
    if (gw_table_add(&desk->incarnations, &provider->entry)) {
        peg__free(provider);
        return peg__fail_nomem(reterr);
    }
    provider->desk = desk;
    provider->account = account;
    provider->owner_hash = gw_calls_owner_hash(desk, attach->toolset);
    provider->away.fn = on_away;
    provider->review.fn = gw_reported_review;
    provider->toolset = gw_toolset_ref(attach->toolset);
    provider->meter = gw_metrics_meter(desk->metrics, desk->number, attach->toolset->name);
    link_provider(provider);
    *ret_provider = provider;
    return PEG_OK;
}

/* A call that the provider was handed by another desk, or by one that is no more. */
static peg_status adopt(struct gw_provider *provider, const struct gw_running *running,
                        peg_error *reterr)
{
    const char *why_not = gw_quota_reject_report(provider->desk, provider->account);
    struct gw_assignment *held;

    if (why_not)
        return peg__fail(reterr, PEG_ELIMIT, "E_NODE_FULL", "%s", why_not);
    held = gw_assignment_new(provider, &running->id, running->attempt);
    if (!held)
        return peg__fail_nomem(reterr);
    gw_assignment_run(held);
    held->step = GW_HANDED;
    held->is_listed = true;
    held->is_unproven = true;
    held->was_listed = true;
    held->driver = running->route;
    held->epoch = bus_epoch(provider->desk->bus);
    held->tool = gw_toolset_tool(provider->toolset, running->tool);
    return PEG_OK;
}

/* A list that cannot be taken leaves nothing behind. */
static void forget_unproven(struct gw_provider *provider)
{
    struct gw_assignment *next;

    for (struct gw_assignment *held = provider->running.first; held; held = next) {
        next = held->next;
        if (held->is_unproven && held->step == GW_HANDED)
            gw_assignment_drop(held);
    }
}

/* Each is looked up once: there may be thousands. What it has, and lists behind one that cannot be
 * taken, is listed all the same. One that another provider has is taken as one that nobody has:
 * that it runs is none of this one's business, and what it answers does not count. */
static peg_status take_list(struct gw_provider *provider, const struct gw_attach *attach,
                            peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (struct gw_assignment *held = provider->running.first; held; held = held->next)
        held->is_listed = false;
    for (size_t i = 0; i < attach->n_running; i++) {
        const struct gw_running *running = &attach->running[i];
        struct gw_assignment *held =
            gw_assignment_find_by(provider, &running->id, running->attempt);

        if (i + AHEAD < attach->n_running)
            gw_table_expect(&provider->desk->held, &running[AHEAD].id, running[AHEAD].attempt);
        if (held)
            held->is_listed = true;
        else if (!status)
            status = adopt(provider, running, reterr);
    }
    if (status)
        forget_unproven(provider);
    return status;
}

/* What it was handed and does not list never reached it; or it has been elsewhere meanwhile, and
 * has finished it there: then nothing is known, and nothing is said. */
static void drop_unlisted(struct gw_provider *provider, const struct gw_attach *attach)
{
    const bool was_elsewhere = !attach->number || attach->number != provider->number + 1;
    struct gw_assignment *next;

    for (struct gw_assignment *held = provider->running.first; held; held = next) {
        next = held->next;
        if (held->step != GW_HANDED || held->is_listed)
            continue;
        if (was_elsewhere)
            gw_assignment_drop(held);
        else
            gw_complete_give_back(held, BUS_GONE);
    }
}

static bool is_attached_somewhere(const struct gw_calls *desk, const struct gw_attach *attach)
{
    size_t n;
    const struct gw_provider_entry *all =
        gw_presence_providers(desk->presence, attach->toolset->name, &n);

    for (size_t i = 0; i < n; i++)
        if (peg__str_eq(peg__str(all[i].incarnation), attach->incarnation))
            return true;
    return false;
}

/* What runs is finished before a node goes, also by a provider whose stream has broken meanwhile.
 * One that still has a stream finishes on that one, and goes elsewhere for new calls. What is
 * listed when all streams were ended was answered or given up: its Ack may not have come before. */
static bool may_finish_here(struct gw_calls *desk, const struct gw_attach *attach)
{
    char incarnation[sizeof(((struct gw_provider *)NULL)->incarnation)];
    const struct gw_provider *provider;

    snprintf(incarnation, sizeof(incarnation), "%.*s", PEG_ARG(attach->incarnation));
    provider = gw_providers_find(desk, incarnation);
    if (desk->is_closed || is_attached_somewhere(desk, attach))
        return false;
    for (size_t i = 0; i < attach->n_running; i++) {
        const struct gw_running *running = &attach->running[i];

        if (running->route.node == desk->bus->self.node ||
            gw_assignment_find_by(provider, &running->id, running->attempt))
            return true;
    }
    return false;
}

static peg_status check_attach(struct gw_calls *desk, const struct gw_attach *attach,
                               peg_error *reterr)
{
    if (desk->is_draining && !may_finish_here(desk, attach))
        return peg__fail(reterr, PEG_ESTATE, "E_DRAINING",
                         "this node is shutting down: attach to another one, or try again");
    if (attach->incarnation.len >= sizeof(((struct gw_provider *)NULL)->incarnation))
        return peg__fail(reterr, PEG_EINVAL, "E_NAME", "an incarnation has at most 64 characters");
    if (attach->n_running > PEG_LIMIT_GATEWAY_CREDITS)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "%zu running calls are more than PEG_LIMIT_GATEWAY_CREDITS = %d",
                         attach->n_running, PEG_LIMIT_GATEWAY_CREDITS);
    if (attach->credits < 1 || attach->credits > PEG_LIMIT_GATEWAY_CREDITS)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "credits is %u: it must be 1 to PEG_LIMIT_GATEWAY_CREDITS = %d",
                         attach->credits, PEG_LIMIT_GATEWAY_CREDITS);
    return PEG_OK;
}

/* The one that is here already under that name: it is away, or its stream is replaced now. */
static peg_status come_back(struct gw_provider *provider, const struct gw_attach *attach,
                            peg_error *reterr)
{
    if (!peg__str_eq(provider->toolset->name, attach->toolset->name) ||
        !peg__str_eq(provider->toolset->owner, attach->toolset->owner))
        return peg__fail(reterr, PEG_EEXISTS, "E_INCARNATION",
                         "this incarnation is another provider's: each chooses its own at random");
    if (!provider->is_away)
        provider->events->replaced(provider->user);
    provider->is_away = false;
    provider->dismissal = WIRE_OK;
    provider->is_moved = false;
    bus_disarm(provider->desk->bus, &provider->away);
    bus_disarm(provider->desk->bus, &provider->farewell);
    return PEG_OK;
}

/* Others may have registered while it did: then it comes with an earlier revision. */
static struct gw_toolset *find_registered(const struct gw_calls *desk, struct gw_toolset *toolset)
{
    struct gw_toolset *now = gw_snapshot_find(desk->snapshot, toolset->name);
    const bool is_later =
        now && now->revision > toolset->revision && peg__str_eq(now->owner, toolset->owner);

    return is_later ? now : toolset;
}

peg_status gw_provider_attach(struct gw_calls *desk, const struct gw_attach *attach,
                              const struct gw_provider_events *events, void *user,
                              struct gw_provider **ret_provider, peg_error *reterr)
{
    char incarnation[65] = {0};
    struct gw_provider *provider = NULL;
    peg_status status = check_attach(desk, attach, reterr);

    if (status)
        return status;
    memcpy(incarnation, attach->incarnation.ptr, attach->incarnation.len);
    provider = gw_providers_find(desk, incarnation);
    if (provider)
        status = come_back(provider, attach, reterr);
    else
        status = new_provider(desk, attach, &provider, reterr);
    if (status || !provider)
        return status;
    provider->events = events;
    provider->user = user;
    provider->credits = attach->credits;
    provider->is_draining = desk->is_draining && !provider->queue.first;
    provider->is_offering = false;
    gw_provider_set_serves(provider, attach->toolset);
    gw_provider_set_toolset(provider, find_registered(desk, attach->toolset));
    provider->owes_cancels = false;
    status = take_list(provider, attach, reterr);
    if (!status)
        status = gw_provider_report_presence(provider, reterr);
    /* Drivers on other loops who hear that it was not started look for somebody else to run it:
     * they are to find this one. */
    drop_unlisted(provider, attach);
    provider->number = attach->number;
    if (status) {
        gw_provider_leave(provider);
        return status;
    }
    if (attach->n_running)
        gw_reported_queue(provider);
    gw_provider_renew(provider);
    *ret_provider = provider;
    gw_claim_pump(provider);
    return PEG_OK;
}
