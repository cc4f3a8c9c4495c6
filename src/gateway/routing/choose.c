/* SPDX-License-Identifier: Apache-2.0 */

/* Which provider runs a call: of two that are met at random the one with less to do. */

#include <string.h>

#include "gateway/routing/routing.h"

/* Who may be asked. */
enum tolerance {
    UP_TO_DATE, /* no provider that may have another version of the toolset */
    NOT_REFUSED,
    FORGIVEN, /* also who took this call and gave it back */
};

/* Not for secrets: xorshift. */
static uint64_t roll_dice(struct gw_router *router)
{
    router->dice ^= router->dice << 13;
    router->dice ^= router->dice >> 7;
    router->dice ^= router->dice << 17;
    return router->dice;
}

static struct gw_provider_entry *find_entry(const struct gw_router *router, peg_str toolset,
                                            const char *incarnation)
{
    size_t n;
    struct gw_provider_entry *all = gw_presence_providers(router->presence, toolset, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].incarnation, incarnation) == 0)
            return &all[i];
    return NULL;
}

/* Registers of a call that is this node's alone are not seen by others. */
static bool may_run(const struct gw_router *router, const struct calls_choice *choice,
                    const struct gw_provider_entry *entry, int64_t now_ms)
{
    return !entry->is_draining && !entry->is_direct &&
           gw_provider_is_well(router->presence, entry, now_ms) &&
           (entry->address.node == router->bus->self.node || !choice->is_node_local);
}

/* A revision that is not the toolset's may have other tools, or take other arguments. */
static bool is_up_to_date(const struct calls_choice *choice, const struct gw_provider_entry *entry)
{
    return entry->serves == choice->toolset->revision && !entry->said_outdated;
}

/* The share of its places that calls of this loop take. */
static bool is_less_loaded(const struct gw_provider_entry *a, const struct gw_provider_entry *b)
{
    return (uint64_t)a->sent * b->credits < (uint64_t)b->sent * a->credits;
}

/* Of two candidates the one with less to do, one of this node before one of another. */
static struct gw_provider_entry *better(const struct gw_router *router, struct gw_provider_entry *a,
                                        struct gw_provider_entry *b)
{
    const uint64_t here = router->bus->self.node;

    if (!a || !b)
        return a ? a : b;
    if ((a->address.node == here) != (b->address.node == here))
        return a->address.node == here ? a : b;
    return is_less_loaded(b, a) ? b : a;
}

/* The better of two that are met first from a random place on; all are read only while none can run
 * it. */
static struct gw_provider_entry *
pick_of(struct gw_router *router, const struct calls_choice *choice, enum tolerance tolerance)
{
    const int64_t now_ms = bus_now_ms(router->bus);
    struct gw_provider_entry *best = NULL;
    unsigned n_met = 0;
    size_t n;
    struct gw_provider_entry *all =
        gw_presence_providers(router->presence, choice->toolset->name, &n);
    const size_t first = n > 1 ? roll_dice(router) % n : 0;

    for (size_t i = 0; i < n; i++) {
        struct gw_provider_entry *entry = &all[(first + i) % n];

        if (!may_run(router, choice, entry, now_ms) ||
            calls_choice_has_refused(choice, entry->incarnation, entry->address,
                                     tolerance == FORGIVEN) ||
            (tolerance == UP_TO_DATE && !is_up_to_date(choice, entry)))
            continue;
        best = better(router, best, entry);
        if (++n_met >= 2 && best->address.node == router->bus->self.node)
            break;
    }
    return best;
}

/* One that gives calls back has little to do, and would be asked again before those that work.
 * Most calls fit any version of their toolset, so that only those which one did not fit are kept
 * from the others that may have it. */
static struct gw_provider_entry *pick(struct gw_router *router, const struct calls_choice *choice)
{
    struct gw_provider_entry *entry =
        choice->refusals->met_outdated ? pick_of(router, choice, UP_TO_DATE) : NULL;

    if (!entry)
        entry = pick_of(router, choice, NOT_REFUSED);
    return entry || !choice->refusals->n ? entry : pick_of(router, choice, FORGIVEN);
}

bool gw_choose_provider(void *user, const struct calls_choice *choice,
                        struct calls_chosen *ret_chosen)
{
    struct gw_router *router = (struct gw_router *)user;
    struct gw_provider_entry *entry = pick(router, choice);

    if (!entry)
        return false;
    if (choice->released)
        gw_release_provider(router, choice->toolset->name, choice->released);
    entry->sent++;
    ret_chosen->address = entry->address;
    memcpy(ret_chosen->incarnation, entry->incarnation, sizeof(ret_chosen->incarnation));
    return true;
}

bool gw_locate_provider(void *user, const struct calls_choice *choice, const char *incarnation,
                        struct bus_address *ret_address)
{
    const struct gw_router *router = (const struct gw_router *)user;
    const struct gw_provider_entry *entry = find_entry(router, choice->toolset->name, incarnation);

    if (!entry || !may_run(router, choice, entry, bus_now_ms(router->bus)))
        return false;
    *ret_address = entry->address;
    return true;
}

void gw_release_provider(void *user, peg_str toolset, const char *incarnation)
{
    struct gw_provider_entry *entry =
        find_entry((const struct gw_router *)user, toolset, incarnation);

    if (entry && entry->sent)
        entry->sent--;
}

void gw_note_outdated(void *user, peg_str toolset, const char *incarnation)
{
    struct gw_provider_entry *entry =
        find_entry((const struct gw_router *)user, toolset, incarnation);

    if (entry)
        entry->said_outdated = true;
}
