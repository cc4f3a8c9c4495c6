/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a new catalog, or a new token file, means to those who are attached here. One whose toolset
 * is gone, or is another's now, or whose token was taken out, is dismissed: nobody finds it any
 * more, what waits for it goes elsewhere, and its stream ends as soon as it has finished what it
 * runs. One whose toolset has other schemas is not well until it has answered a ping.
 */

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/calls/provider_side.h"

/* ---- farewell -------------------------------------------------------------------------------- */

/* Nobody waits for a result after its deadline. What a provider has listed has none that is known
 * here: it gets the time of any other call. 0: it has nothing. */
static int64_t last_deadline_ms(const struct gw_provider *provider)
{
    const int64_t of_listed_ms = provider->dismissed_ms + provider->desk->options.call_timeout_ms;
    int64_t last_ms = 0;

    for (const struct gw_assignment *held = provider->running.first; held; held = held->next) {
        const int64_t ms = held->deadline_ms ? held->deadline_ms : of_listed_ms;

        if (ms > last_ms)
            last_ms = ms;
    }
    return last_ms;
}

static void say_farewell(struct net_timer *timer)
{
    struct gw_provider *provider = peg__container_of(timer, struct gw_provider, farewell);
    struct bus *bus = provider->desk->bus;
    const int64_t left_ms = last_deadline_ms(provider) - bus_now_ms(bus);

    if (left_ms > 0)
        bus_arm(bus, timer, bus_now_ns(bus) + left_ms * INT64_C(1000000));
    else
        provider->events->dismissed(provider->user, provider->dismissal);
}

/* The stream ends from a timer: whoever drops a call, or reads the catalog, still stands on the
 * provider. And of many that end at once the others are looked through once. */
void gw_evict_if_done(struct gw_provider *provider)
{
    struct bus *bus = provider->desk->bus;

    if (provider->dismissal && !provider->is_away)
        bus_arm(bus, &provider->farewell, bus_now_ns(bus));
}

static void dismiss(struct gw_provider *provider, enum wire_error why)
{
    struct gw_calls *desk = provider->desk;
    const bool is_first = !provider->dismissal;
    struct gw_assignment *next;

    provider->dismissal = why;
    if (!is_first)
        return;
    provider->dismissed_ms = bus_now_ms(desk->bus);
    provider->farewell.fn = say_farewell;
    gw_presence_remove(desk->presence, provider->toolset->name, provider->incarnation);
    for (struct gw_assignment *held = provider->queue.first; held; held = next) {
        next = held->next;
        gw_assignment_nak(held, BUS_GONE, false);
    }
    gw_evict_if_done(provider);
}

/* ---- the catalog ----------------------------------------------------------------------------- */

/* What it said of itself it said of other schemas, unless it is its own Offer that came true. */
static void change(struct gw_provider *provider, struct gw_toolset *toolset)
{
    const bool has_same = gw_toolset_has_schemas_of(toolset, provider->toolset);
    const bool serves_it = has_same && provider->serves == provider->toolset;

    gw_provider_set_toolset(provider, toolset);
    if (serves_it)
        gw_provider_set_serves(provider, toolset);
    if (has_same || provider->is_away || provider->is_offering)
        return;
    gw_presence_await(provider->desk->presence, toolset->name, provider->incarnation);
    provider->events->ping(provider->user);
}

/* One that is away is asked who it is when it comes back. */
static void check_provider(struct gw_provider *provider, struct gw_toolset *toolset)
{
    const bool is_its = toolset && peg__str_eq(toolset->owner, provider->toolset->owner);

    if (is_its && !provider->dismissal && toolset != provider->toolset)
        change(provider, toolset);
    else if (!is_its && !provider->is_away)
        dismiss(provider, toolset ? WIRE_PERMISSION_DENIED : WIRE_NOT_FOUND);
}

void gw_providers_on_snapshot(struct gw_calls *desk)
{
    for (struct gw_provider *provider = desk->providers; provider; provider = provider->next)
        check_provider(provider, gw_snapshot_find(desk->snapshot, provider->toolset->name));
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Whoever attached is the owner. */
void gw_providers_evict_unknown(struct gw_calls *desk, const struct gw_auth *auth)
{
    for (struct gw_provider *provider = desk->providers; provider; provider = provider->next) {
        if (!provider->is_away && !gw_auth_knows(auth, provider->toolset->owner))
            dismiss(provider, WIRE_UNAUTHENTICATED);
    }
}
