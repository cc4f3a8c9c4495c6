/* SPDX-License-Identifier: Apache-2.0 */

/* A provider comes, comes back with the calls that it has, goes, or stays away. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"
#include "calls/provider_side.h"

/* Of a provider that stayed away so many calls are dropped before others have their turn: that
 * takes a tenth of a millisecond, and it may have left thousands. */
enum { DROPS_AT_ONCE = 512 };

/* Ids are random, so where a call is looked for is in no cache: it is on its way while so many
 * others are taken. */
enum { AHEAD = 8 };

/* ---- going ----------------------------------------------------------------------------------- */

void calls_provider_free(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;

    provider->is_away = true; /* nobody is told of what it has */
    while (provider->queue.first)
        calls_assignment_drop(provider->queue.first);
    while (provider->running.first)
        calls_assignment_drop(provider->running.first);
    if (provider->prev)
        provider->prev->next = provider->next;
    else
        calls->providers = provider->next;
    if (provider->next)
        provider->next->prev = provider->prev;
    peg__quota_give_back(&calls->quotas.providers, provider->account, 1);
    calls_table_remove(&calls->incarnations, &provider->entry);
    bus_forget_wait(calls->bus, &provider->lease);
    bus_disarm(calls->bus, &provider->away);
    bus_disarm(calls->bus, &provider->eviction_timer);
    bus_disarm(calls->bus, &provider->review);
    provider->calls->env->unref_toolset(provider->calls->user, provider->toolset);
    provider->calls->env->unref_toolset(provider->calls->user, provider->serves);
    peg__free(provider);
}

/* Where it has gone it has reported what it has, and answers for it there. */
static void forget_handed(struct calls_provider *provider)
{
    struct calls_assignment *next;

    for (struct calls_assignment *assignment = provider->running.first; assignment;
         assignment = next) {
        next = assignment->next;
        if (assignment->step == CALLS_HANDED)
            calls_assignment_drop(assignment);
    }
}

void calls_provider_leave(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;
    struct calls_assignment *next;

    calls->env->remove_presence(calls->user, provider->toolset->name, provider->incarnation);
    provider->is_away = true;
    bus_disarm(calls->bus, &provider->eviction_timer);
    for (struct calls_assignment *assignment = provider->queue.first; assignment;
         assignment = next) {
        next = assignment->next;
        calls_assignment_nak(assignment, BUS_GONE, false);
    }
    if (provider->is_moved)
        forget_handed(provider);
    /* Whoever has no call has nothing to come back for, and need not be waited for. */
    if (!provider->running.first) {
        if (!provider->is_moved)
            bus_release(calls->bus, peg__str(provider->incarnation));
        calls_provider_free(provider);
        return;
    }
    bus_arm(calls->bus, &provider->away,
            bus_now_ns(calls->bus) + calls->options.lease_ms * 1000000);
    if (!provider->is_moved)
        calls_provider_renew_last(provider);
}

/* Coordinators look less and less often for themselves whether the lease is over: they are told. */
static void lose_provider(struct calls_assignment *assignment)
{
    if (assignment->step == CALLS_HANDED)
        calls_assignment_send(assignment, BUS_LOST, NULL);
    calls_assignment_drop(assignment);
}

/* Its calls first, some at a time. If it comes back meanwhile those that are left are its still,
 * and what it lists of the others is taken as from another loop. */
static void forget_lost(struct calls_provider *provider)
{
    struct bus *bus = provider->calls->bus;

    for (unsigned n = 0; provider->running.first && n < DROPS_AT_ONCE; n++)
        lose_provider(provider->running.first);
    if (provider->running.first)
        bus_arm(bus, &provider->away, bus_now_ns(bus));
    else
        calls_provider_free(provider);
}

/* It did not come back: its lease is over, and the coordinators of its calls see that. Or it has
 * moved, and the stream that it left here ends. */
static void on_away(struct net_timer *timer)
{
    struct calls_provider *provider = peg__container_of(timer, struct calls_provider, away);

    if (provider->is_away) {
        forget_lost(provider);
        return;
    }
    provider->events->replaced(provider->user);
    calls_provider_leave(provider);
}

/* It may be told in the middle of anything, so the stream ends a little later. */
void calls_on_moved(void *user, const char *incarnation)
{
    struct calls_loop *calls = (struct calls_loop *)user;
    struct calls_provider *provider = calls_providers_find(calls, incarnation);

    if (!provider || provider->is_away || provider->is_moved)
        return;
    provider->is_moved = true;
    /* One that a node which shuts down has asked to go is to finish here. */
    if (!calls->is_draining || !provider->is_draining)
        bus_arm(calls->bus, &provider->away, bus_now_ns(calls->bus));
}

/* ---- coming, and coming back ------------------------------------------------------------------
 */

static void link_provider(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;

    provider->next = calls->providers;
    if (provider->next)
        provider->next->prev = provider;
    calls->providers = provider;
    peg__quota_add(&calls->quotas.providers, provider->account, 1);
}

/* One that comes back is counted already. */
static peg_status new_provider(struct calls_loop *calls, const struct calls_attach *attach,
                               struct calls_provider **ret_provider, peg_error *reterr)
{
    const uint16_t account = calls_quota_key(calls, attach->toolset->owner);
    const char *why_not = calls_quota_reject_provider(calls, account);
    struct calls_provider *provider;

    if (why_not)
        return peg__fail(reterr, PEG_ELIMIT, "E_NODE_FULL", "%s", why_not);
    provider = (struct calls_provider *)peg__alloc_zero(1, sizeof(*provider));
    if (!provider)
        return peg__fail_nomem(reterr);
    memcpy(provider->incarnation, attach->incarnation.ptr, attach->incarnation.len);
    provider->entry.id = calls_providers_hash(calls, provider->incarnation);
    if (calls_table_add(&calls->incarnations, &provider->entry)) {
        peg__free(provider);
        return peg__fail_nomem(reterr);
    }
    provider->calls = calls;
    provider->account = account;
    provider->owner_hash = calls_owner_hash(calls, attach->toolset);
    provider->away.fn = on_away;
    provider->review.fn = calls_reported_review;
    provider->toolset = calls->env->ref_toolset(calls->user, attach->toolset);
    provider->meter = calls->env->get_meter(calls->user, attach->toolset->name);
    link_provider(provider);
    *ret_provider = provider;
    return PEG_OK;
}

/* A call that the provider was handed by another loop, or by one that is no more. */
static peg_status adopt(struct calls_provider *provider, const struct calls_running *running,
                        peg_error *reterr)
{
    struct calls_loop *calls = provider->calls;
    const char *why_not = calls_quota_reject_report(calls, provider->account);
    struct calls_assignment *assignment;

    if (why_not)
        return peg__fail(reterr, PEG_ELIMIT, "E_NODE_FULL", "%s", why_not);
    assignment = calls_assignment_new(provider, &running->id, running->attempt);
    if (!assignment)
        return peg__fail_nomem(reterr);
    calls_assignment_run(assignment);
    assignment->step = CALLS_HANDED;
    assignment->is_reported = true;
    assignment->is_unverified = true;
    assignment->was_reported = true;
    assignment->coordinator = running->route;
    assignment->epoch = bus_epoch(calls->bus);
    assignment->tool = calls->env->find_tool(calls->user, provider->toolset, running->tool);
    return PEG_OK;
}

/* A list that cannot be taken leaves nothing behind. */
static void forget_unverified(struct calls_provider *provider)
{
    struct calls_assignment *next;

    for (struct calls_assignment *assignment = provider->running.first; assignment;
         assignment = next) {
        next = assignment->next;
        if (assignment->is_unverified && assignment->step == CALLS_HANDED)
            calls_assignment_drop(assignment);
    }
}

/* Each is looked up once: there may be thousands. What it has, and lists behind one that cannot be
 * taken, is reported all the same. One that another provider has is taken as one that nobody has:
 * that it runs is none of this one's business, and what it answers does not count. */
static peg_status take_list(struct calls_provider *provider, const struct calls_attach *attach,
                            peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (struct calls_assignment *assignment = provider->running.first; assignment;
         assignment = assignment->next)
        assignment->is_reported = false;
    for (size_t i = 0; i < attach->n_running; i++) {
        const struct calls_running *running = &attach->running[i];
        struct calls_assignment *assignment =
            calls_assignment_find_by(provider, &running->id, running->attempt);

        if (i + AHEAD < attach->n_running)
            calls_table_expect(&provider->calls->assignments, &running[AHEAD].id,
                               running[AHEAD].attempt);
        if (assignment)
            assignment->is_reported = true;
        else if (!status)
            status = adopt(provider, running, reterr);
    }
    if (status)
        forget_unverified(provider);
    return status;
}

/* What it was handed and does not list never reached it; or it has been elsewhere meanwhile, and
 * has finished it there: then nothing is known, and nothing is said. */
static void drop_unreported(struct calls_provider *provider, const struct calls_attach *attach)
{
    const bool was_elsewhere = !attach->number || attach->number != provider->number + 1;
    struct calls_assignment *next;

    for (struct calls_assignment *assignment = provider->running.first; assignment;
         assignment = next) {
        next = assignment->next;
        if (assignment->step != CALLS_HANDED || assignment->is_reported)
            continue;
        if (was_elsewhere)
            calls_assignment_drop(assignment);
        else
            calls_complete_give_back(assignment, BUS_GONE);
    }
}

/* What runs is finished before a node goes, also by a provider whose stream has broken meanwhile.
 * One that still has a stream finishes on that one, and goes elsewhere for new calls. What is
 * reported when all streams were ended was answered or given up: its Ack may not have come before.
 */
static bool may_finish_here(struct calls_loop *calls, const struct calls_attach *attach)
{
    char incarnation[sizeof(((struct calls_provider *)NULL)->incarnation)];
    const struct calls_provider *provider;

    snprintf(incarnation, sizeof(incarnation), "%.*s", PEG_ARG(attach->incarnation));
    provider = calls_providers_find(calls, incarnation);
    if (calls->is_closed ||
        calls->env->is_attached(calls->user, attach->toolset->name, attach->incarnation))
        return false;
    for (size_t i = 0; i < attach->n_running; i++) {
        const struct calls_running *running = &attach->running[i];

        if (running->route.node == calls->bus->self.node ||
            calls_assignment_find_by(provider, &running->id, running->attempt))
            return true;
    }
    return false;
}

static peg_status check_attach(struct calls_loop *calls, const struct calls_attach *attach,
                               peg_error *reterr)
{
    if (calls->is_draining && !may_finish_here(calls, attach))
        return peg__fail(reterr, PEG_ESTATE, "E_DRAINING",
                         "this node is shutting down: attach to another one, or try again");
    if (attach->incarnation.len >= sizeof(((struct calls_provider *)NULL)->incarnation))
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
static peg_status come_back(struct calls_provider *provider, const struct calls_attach *attach,
                            peg_error *reterr)
{
    if (!peg__str_eq(provider->toolset->name, attach->toolset->name) ||
        !peg__str_eq(provider->toolset->owner, attach->toolset->owner))
        return peg__fail(reterr, PEG_EEXISTS, "E_INCARNATION",
                         "this incarnation is another provider's: each chooses its own at random");
    if (!provider->is_away)
        provider->events->replaced(provider->user);
    provider->is_away = false;
    provider->eviction = CALLS_OK;
    provider->is_moved = false;
    bus_disarm(provider->calls->bus, &provider->away);
    bus_disarm(provider->calls->bus, &provider->eviction_timer);
    return PEG_OK;
}

/* Others may have registered while it did: then it comes with an earlier revision. */
static struct calls_toolset *find_registered(const struct calls_loop *calls,
                                             struct calls_toolset *toolset)
{
    struct calls_toolset *now = calls->env->find_toolset(calls->user, toolset->name);
    const bool is_later =
        now && now->revision > toolset->revision && peg__str_eq(now->owner, toolset->owner);

    return is_later ? now : toolset;
}

peg_status calls_provider_attach(struct calls_loop *calls, const struct calls_attach *attach,
                                 const struct calls_provider_events *events, void *user,
                                 struct calls_provider **ret_provider, peg_error *reterr)
{
    char incarnation[65] = {0};
    struct calls_provider *provider = NULL;
    peg_status status = check_attach(calls, attach, reterr);

    if (status)
        return status;
    memcpy(incarnation, attach->incarnation.ptr, attach->incarnation.len);
    provider = calls_providers_find(calls, incarnation);
    if (provider)
        status = come_back(provider, attach, reterr);
    else
        status = new_provider(calls, attach, &provider, reterr);
    if (status || !provider)
        return status;
    provider->events = events;
    provider->user = user;
    provider->credits = attach->credits;
    provider->is_draining = calls->is_draining && !provider->queue.first;
    provider->is_offering = false;
    calls_provider_set_serves(provider, attach->toolset);
    calls_provider_set_toolset(provider, find_registered(calls, attach->toolset));
    provider->owes_cancels = false;
    status = take_list(provider, attach, reterr);
    if (!status)
        status = calls_provider_report_presence(provider, reterr);
    /* Coordinators on other loops who hear that it was not started look for somebody else to run
     * it: they are to find this one. */
    drop_unreported(provider, attach);
    provider->number = attach->number;
    if (status) {
        calls_provider_leave(provider);
        return status;
    }
    if (attach->n_running)
        calls_reported_queue(provider);
    calls_provider_renew(provider);
    *ret_provider = provider;
    calls_claim_pump(provider);
    return PEG_OK;
}
