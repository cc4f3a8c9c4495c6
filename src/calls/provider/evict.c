/* SPDX-License-Identifier: Apache-2.0 */

/* A new catalog, or a new token file. A provider whose toolset is gone, or is another's now, or
 * whose token was taken out, is evicted: it is chosen no more, what waits for it goes elsewhere,
 * and its stream ends as soon as it has finished what it runs. One whose toolset has other schemas
 * is not healthy until it has answered a ping. */

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/provider/provider_side.h"

/* ---- eviction -------------------------------------------------------------------------------- */

/* No caller waits for a result after its deadline. What a provider has reported has none that is
 * known here: it gets the time of any other call. 0: it has nothing. */
static int64_t last_deadline_ms(const struct calls_provider *provider)
{
    const int64_t of_reported_ms = provider->evicted_ms + provider->calls->options.call_timeout_ms;
    int64_t last_ms = 0;

    for (const struct calls_assignment *each = provider->running.first; each; each = each->next) {
        const int64_t ms = each->machine.deadline_ms ? each->machine.deadline_ms : of_reported_ms;

        if (ms > last_ms)
            last_ms = ms;
    }
    return last_ms;
}

static void end_evicted_stream(struct net_timer *timer)
{
    struct calls_provider *provider =
        peg__container_of(timer, struct calls_provider, eviction_timer);
    struct bus *bus = provider->calls->bus;
    const int64_t left_ms = last_deadline_ms(provider) - bus_now_ms(bus);

    if (left_ms > 0)
        bus_arm(bus, timer, bus_now_ns(bus) + left_ms * INT64_C(1000000));
    else
        provider->events->evicted(provider->user, provider->eviction);
}

static void evict(struct calls_provider *provider, enum calls_error why)
{
    struct calls_loop *calls = provider->calls;
    const bool is_first = !provider->eviction;

    provider->eviction = why;
    if (!is_first)
        return;
    provider->evicted_ms = bus_now_ms(calls->bus);
    provider->eviction_timer.fn = end_evicted_stream;
    calls->env->remove_presence(calls->user, provider->toolset->name, provider->incarnation);
    calls_provider_refuse_queue(provider, BUS_GONE);
    calls_provider_evict_if_done(provider);
}

/* ---- the catalog ----------------------------------------------------------------------------- */

/* What it said of itself it said of other schemas, unless it is its own Offer that came true. */
static void change(struct calls_provider *provider, struct calls_toolset *toolset)
{
    const bool has_same =
        provider->calls->env->has_same_schemas(provider->calls->user, toolset, provider->toolset);
    const bool serves_it = has_same && provider->serves == provider->toolset;

    calls_provider_set_toolset(provider, toolset);
    if (serves_it)
        calls_provider_set_serves(provider, toolset);
    if (has_same || calls_provider_is_away(provider) || provider->is_offering)
        return;
    provider->calls->env->await_pong(provider->calls->user, toolset->name, provider->incarnation);
    provider->events->ping(provider->user);
}

/* One that is away is asked who it is when it comes back. */
static void check_provider(struct calls_provider *provider, struct calls_toolset *toolset)
{
    const bool is_its = toolset && peg__str_eq(toolset->owner, provider->toolset->owner);

    if (is_its && !provider->eviction && toolset != provider->toolset)
        change(provider, toolset);
    else if (!is_its && !calls_provider_is_away(provider))
        evict(provider, toolset ? CALLS_PERMISSION_DENIED : CALLS_NOT_FOUND);
}

void calls_on_catalog(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next)
        check_provider(provider, calls->env->find_toolset(calls->user, provider->toolset->name));
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* The principal that attached is the owner. */
void calls_evict_unknown(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next) {
        if (!calls_provider_is_away(provider) &&
            !calls->env->knows_principal(calls->user, provider->toolset->owner))
            evict(provider, CALLS_UNAUTHENTICATED);
    }
}
