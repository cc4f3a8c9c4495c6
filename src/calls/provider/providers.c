/* SPDX-License-Identifier: Apache-2.0 */

/* A provider comes, comes back with the calls that it has, moves to another loop, drains, goes, or
 * stays away. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/provider/provider_side.h"
#include "calls/quota.h"

/* Of a provider that stayed away so many calls are dropped before others have their turn: that
 * takes a tenth of a millisecond, and it may have left thousands. */
enum { DROPS_AT_ONCE = 512 };

/* ---- which are here -------------------------------------------------------------------------- */

static struct bus_id hash_incarnation(const struct calls_loop *calls, peg_str incarnation)
{
    const uint64_t hash = peg__hash(calls->incarnations.key, incarnation);
    struct bus_id id = {.len = sizeof(hash)};

    memcpy(id.bytes, &hash, sizeof(hash));
    return id;
}

struct calls_provider *calls_providers_find(const struct calls_loop *calls, peg_str incarnation)
{
    const struct bus_id id = hash_incarnation(calls, incarnation);
    struct calls_entry *entry = calls_table_find(&calls->incarnations, &id, 0);

    while (entry && !peg__str_is(incarnation, ((struct calls_provider *)entry)->incarnation))
        entry = calls_table_again(entry);
    return (struct calls_provider *)entry;
}

/* Whatever the answer is, it is asked for again in a third of its time. */
static void ask_lease(const struct calls_provider *provider, enum bus_lease_mode mode)
{
    bus_lease(provider->calls->bus, peg__str(provider->incarnation),
              provider->calls->options.lease_ms, mode, NULL);
}

/* One that is away has its lease to come back. One that moved has its lease elsewhere, and a loop
 * that renews takes it. */
void calls_provider_renew(const struct calls_provider *provider)
{
    if (provider->place == CALLS_HERE)
        ask_lease(provider, BUS_LEASE_TAKE);
}

/* Every loop and node learns that it is here, and whether it drains. */
static peg_status put_presence(struct calls_provider *provider, peg_error *reterr)
{
    struct calls_loop *calls = provider->calls;
    const struct calls_presence presence = {
        .toolset = provider->toolset,
        .incarnation = provider->incarnation,
        .credits = provider->credits,
        .serves = provider->serves->revision,
        .is_draining = provider->is_draining,
    };

    return calls->env->put_presence(calls->user, &presence, reterr);
}

/* ---- going ----------------------------------------------------------------------------------- */

void calls_provider_free(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;

    provider->place = CALLS_AWAY; /* its stream is sent nothing any more */
    while (provider->queue.first)
        calls_assignment_drop(provider->queue.first);
    while (provider->running.first)
        calls_assignment_drop(provider->running.first);
    PEG_LIST_REMOVE(calls->providers, provider, next, prev);
    peg__quota_give_back(&calls->quotas.providers, provider->account, 1);
    calls_table_remove(&calls->incarnations, &provider->entry);
    bus_disarm(calls->bus, &provider->away);
    bus_disarm(calls->bus, &provider->eviction_timer);
    bus_disarm(calls->bus, &provider->review);
    calls->env->unref_toolset(calls->user, provider->toolset);
    calls->env->unref_toolset(calls->user, provider->serves);
    peg__free(provider);
}

/* What it has it has listed where it went, and answers it there. */
static void forget_running(struct calls_provider *provider)
{
    struct calls_assignment *next;

    for (struct calls_assignment *each = provider->running.first; each; each = next) {
        next = each->next;
        calls_assignment_feed(each, ASSIGNMENT_ON_UNLISTED);
    }
}

void calls_provider_leave(struct calls_provider *provider)
{
    struct calls_loop *calls = provider->calls;
    const bool is_moved = provider->place & CALLS_MOVED;

    calls->env->remove_presence(calls->user, provider->toolset->name, provider->incarnation);
    provider->place = is_moved ? CALLS_MOVED_AWAY : CALLS_AWAY;
    bus_disarm(calls->bus, &provider->eviction_timer);
    calls_provider_refuse_queue(provider, BUS_GONE);
    if (is_moved)
        forget_running(provider);
    /* A provider without calls has nothing to come back for, and need not be waited for. */
    if (!provider->running.first) {
        if (!is_moved)
            bus_release(calls->bus, peg__str(provider->incarnation));
        calls_provider_free(provider);
        return;
    }
    calls_arm(calls, &provider->away, calls->options.lease_ms);
    /* A third of the lease may be over, and it has all of it to come back; unless it is elsewhere
     * already, where the lease is then. */
    if (!is_moved)
        ask_lease(provider, BUS_LEASE_RENEW);
}

/* It did not come back: its lease is over. Its calls go first, some at a time; if it comes back
 * meanwhile those that are left are still its own, and what it lists of the others is taken as from
 * another loop. Or it moved, and the stream that it left here ends. */
static void on_away(struct net_timer *timer)
{
    struct calls_provider *provider = peg__container_of(timer, struct calls_provider, away);

    if (!calls_provider_is_away(provider)) {
        provider->events->replaced(provider->user);
        calls_provider_leave(provider);
        return;
    }
    for (unsigned n = 0; provider->running.first && n < DROPS_AT_ONCE; n++)
        calls_assignment_feed(provider->running.first, ASSIGNMENT_ON_LOST);
    if (provider->running.first)
        calls_arm(provider->calls, &provider->away, 0);
    else
        calls_provider_free(provider);
}

/* The caller may be in the middle of anything, so the stream ends a little later. */
void calls_on_moved(void *user, const char *incarnation)
{
    struct calls_loop *calls = (struct calls_loop *)user;
    struct calls_provider *provider = calls_providers_find(calls, peg__str(incarnation));

    if (!provider || provider->place != CALLS_HERE)
        return;
    provider->place = CALLS_MOVED;
    /* One that a node which shuts down has asked to go finishes here. */
    if (!calls->is_draining || !provider->is_draining)
        calls_arm(calls, &provider->away, 0);
}

/* ---- coming, and coming back ----------------------------------------------------------------- */

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
    *provider = (struct calls_provider){
        .entry.id = hash_incarnation(calls, attach->incarnation),
        .calls = calls,
        .account = account,
        .owner_hash = calls_owner_hash(calls, attach->toolset),
        .away.fn = on_away,
    };
    memcpy(provider->incarnation, attach->incarnation.ptr, attach->incarnation.len);
    if (calls_table_add(&calls->incarnations, &provider->entry)) {
        peg__free(provider);
        return peg__fail_nomem(reterr);
    }
    provider->meter = calls->env->get_meter(calls->user, attach->toolset->name);
    PEG_LIST_PUSH(calls->providers, provider, next, prev);
    peg__quota_add(&calls->quotas.providers, account, 1);
    *ret_provider = provider;
    return PEG_OK;
}

/* What runs is finished before a node goes, also by a provider whose stream has broken meanwhile.
 * One that still has a stream finishes on that one, and goes elsewhere for new calls. What is
 * listed after all streams were ended was answered or given up: its Ack may have been lost. */
static bool may_finish_here(struct calls_loop *calls, const struct calls_attach *attach)
{
    const struct calls_provider *provider = calls_providers_find(calls, attach->incarnation);

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
    if (attach->incarnation.len >= CALLS_INCARNATION)
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
    if (!calls_provider_is_away(provider))
        provider->events->replaced(provider->user);
    provider->place = CALLS_HERE;
    provider->eviction = CALLS_OK;
    bus_disarm(provider->calls->bus, &provider->away);
    bus_disarm(provider->calls->bus, &provider->eviction_timer);
    return PEG_OK;
}

/* Another one may have registered while it did: then it comes with an earlier revision. */
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
    struct calls_provider *provider = calls_providers_find(calls, attach->incarnation);
    peg_status status = check_attach(calls, attach, reterr);

    if (!status)
        status = provider ? come_back(provider, attach, reterr)
                          : new_provider(calls, attach, &provider, reterr);
    if (status || !provider)
        return status;
    provider->events = events;
    provider->user = user;
    provider->credits = attach->credits;
    provider->is_draining = calls->is_draining && !provider->queue.first;
    provider->is_offering = false;
    calls_provider_set_serves(provider, attach->toolset);
    calls_provider_set_toolset(provider, find_registered(calls, attach->toolset));
    status = calls_reattach_take(provider, attach, reterr);
    if (!status)
        status = put_presence(provider, reterr);
    /* Coordinators on other loops that learn that a call was not started look for another provider:
     * they are to find this one. */
    calls_reattach_drop_unlisted(provider, attach);
    provider->number = attach->number;
    if (status) {
        calls_provider_leave(provider);
        return status;
    }
    calls_provider_renew(provider);
    *ret_provider = provider;
    if (attach->n_running)
        calls_reattach_begin(provider);
    calls_provider_pump(provider);
    return PEG_OK;
}

/* ---- while it is here ------------------------------------------------------------------------ */

void calls_provider_ready(struct calls_provider *provider)
{
    calls_reattach_continue(provider);
    calls_provider_pump(provider);
}

void calls_provider_pong(struct calls_provider *provider)
{
    if (!calls_provider_is_away(provider))
        provider->calls->env->note_pong(provider->calls->user, provider->toolset->name,
                                        provider->incarnation);
}

struct pong {
    struct bus_post post; /* the first member */
    char incarnation[CALLS_INCARNATION];
};

static void on_pong(struct bus_post *post, void *user)
{
    struct pong *pong = (struct pong *)post;
    struct calls_provider *provider =
        user ? calls_providers_find((struct calls_loop *)user, peg__str(pong->incarnation)) : NULL;

    if (provider)
        calls_provider_pong(provider);
    peg__free(pong);
}

/* A provider pongs on its stream, too: what is lost here, or of another node, costs nothing. */
void calls_pong(struct calls_loop *calls, const char *incarnation, struct bus_address at)
{
    struct pong *pong;

    if (at.node != calls->bus->self.node)
        return;
    pong = (struct pong *)peg__alloc_zero(1, sizeof(*pong));
    if (!pong)
        return;
    pong->post.fn = on_pong;
    snprintf(pong->incarnation, sizeof(pong->incarnation), "%s", incarnation);
    bus_post(calls->bus, at.loop, &pong->post);
}

/* What waits for it goes elsewhere; what it has it finishes. */
void calls_provider_drain(struct calls_provider *provider)
{
    if (provider->eviction)
        return;
    provider->is_draining = true;
    if (!(provider->place & CALLS_MOVED))
        (void)put_presence(provider, NULL); /* without memory calls come, and are sent back */
    calls_provider_refuse_queue(provider, BUS_DRAINING);
}

/* Everything may have been lost: leases are taken again, and what awaits no answer is written
 * again. The waiters of a result may be read while it is. */
void calls_providers_on_reset(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next) {
        if (calls_provider_is_away(provider))
            continue;
        calls_provider_renew(provider);
        for (struct calls_assignment *each = provider->running.first; each; each = each->next)
            if (!each->wait.pending || each->machine.state == ASSIGNMENT_NOTIFYING)
                calls_assignment_feed(each, ASSIGNMENT_ON_RESET);
    }
}
