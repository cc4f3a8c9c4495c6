/* SPDX-License-Identifier: Apache-2.0 */

/* Which addresses a channel has: see struct grpc__lookups. */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "grpc/client/internal.h"

/* ---- a round ------------------------------------------------------------------------------ */

static bool keep_addresses(struct grpc__lookup *lookup, const struct net_address *addresses,
                           size_t n)
{
    struct net_address *copy = peg__alloc(n * sizeof(*copy));

    if (!copy)
        return false;
    memcpy(copy, addresses, n * sizeof(*copy));
    peg__free(lookup->addresses);
    lookup->addresses = copy;
    lookup->n = n;
    return true;
}

static void on_resolved(void *user, const struct net_address *addresses, size_t n,
                        const peg_error *error)
{
    struct grpc__lookup *lookup = user;
    struct grpc__lookups *all = lookup->all;

    lookup->resolve = NULL;
    all->n_pending--;
    all->was_answered |= all->n_pending == 0;
    if (n == 0)
        all->error = *error;
    else if (!keep_addresses(lookup, addresses, n))
        peg__fail_nomem(&all->error);
    all->on_change(all->user);
}

void grpc__lookups_start(struct grpc__lookups *lookups)
{
    bool has_begun = false;

    if (lookups->n_pending > 0)
        return;
    net_loop_disarm(lookups->loop, &lookups->timer);
    lookups->was_asked = true;
    lookups->asked_ns = net_loop_now_ns(lookups->loop);
    for (size_t i = 0; i < lookups->n; i++) {
        struct grpc__lookup *lookup = &lookups->items[i];

        if (!lookup->entry->is_name)
            continue;
        if (net_resolve(lookups->loop, &lookup->entry->endpoint, on_resolved, lookup,
                        &lookup->resolve, &lookups->error))
            continue; /* no memory: it fails as a name that is not found */
        lookups->n_pending++;
        has_begun = true;
    }
    if (has_begun)
        return;
    lookups->was_answered = true;
    lookups->on_change(lookups->user);
}

static void on_lookup_timer(struct net_timer *timer)
{
    grpc__lookups_start(peg__container_of(timer, struct grpc__lookups, timer));
}

static bool has_names(const struct grpc__lookups *lookups)
{
    for (size_t i = 0; i < lookups->n; i++) {
        if (lookups->items[i].entry->is_name)
            return true;
    }
    return false;
}

void grpc__lookups_start_later(struct grpc__lookups *lookups)
{
    if (lookups->n_pending > 0 || lookups->timer.is_armed || !has_names(lookups))
        return;
    net_loop_arm(lookups->loop, &lookups->timer,
                 peg__clock_after_ms(lookups->asked_ns, lookups->again_ms));
}

void grpc__lookups_back_off(struct grpc__lookups *lookups)
{
    net_loop_arm(lookups->loop, &lookups->timer,
                 peg__clock_after_ms(net_loop_now_ns(lookups->loop),
                                     grpc_backoff_take_ms(&lookups->backoff)));
}

/* ---- what is known ------------------------------------------------------------------------ */

static bool has_address(const struct net_address *addresses, size_t n,
                        const struct net_address *address)
{
    for (size_t i = 0; i < n; i++) {
        if (net_address_eq(&addresses[i], address))
            return true;
    }
    return false;
}

size_t grpc__lookups_collect(const struct grpc__lookups *lookups, struct net_address *ret_addresses,
                             size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < lookups->n; i++) {
        const struct grpc__lookup *lookup = &lookups->items[i];

        for (size_t j = 0; j < lookup->n && n < max; j++) {
            if (!has_address(ret_addresses, n, &lookup->addresses[j]))
                ret_addresses[n++] = lookup->addresses[j];
        }
    }
    return n;
}

static size_t entry_of(const struct grpc__lookups *lookups, const struct net_address *address)
{
    for (size_t i = 0; i < lookups->n; i++) {
        if (has_address(lookups->items[i].addresses, lookups->items[i].n, address))
            return i;
    }
    return 0;
}

const struct grpc_target_entry *grpc__lookups_entry(const struct grpc__lookups *lookups,
                                                    const struct net_address *address)
{
    return lookups->items[entry_of(lookups, address)].entry;
}

bool grpc__lookups_is_early(const struct grpc__lookups *lookups, const struct net_address *address)
{
    const size_t end = entry_of(lookups, address);

    for (size_t i = 0; i < end && !lookups->was_answered; i++) {
        if (lookups->items[i].resolve)
            return true;
    }
    return false;
}

/* ---- life --------------------------------------------------------------------------------- */

peg_status grpc__lookups_init(struct grpc__lookups *lookups, struct net_loop *loop,
                              const struct grpc_target *target, peg_error *reterr)
{
    lookups->loop = loop;
    lookups->timer.fn = on_lookup_timer;
    lookups->items = peg__alloc_zero(target->n, sizeof(*lookups->items));
    if (!lookups->items)
        return peg__fail_nomem(reterr);
    lookups->n = target->n;
    for (size_t i = 0; i < target->n; i++) {
        struct grpc__lookup *lookup = &lookups->items[i];
        struct net_address address;

        lookup->all = lookups;
        lookup->entry = &target->entries[i];
        if (net_endpoint_is_numeric(&lookup->entry->endpoint, &address) &&
            !keep_addresses(lookup, &address, 1))
            return peg__fail_nomem(reterr);
    }
    lookups->was_asked = lookups->was_answered = !has_names(lookups);
    return PEG_OK;
}

void grpc__lookups_free(struct grpc__lookups *lookups)
{
    if (lookups->loop)
        net_loop_disarm(lookups->loop, &lookups->timer);
    for (size_t i = 0; i < lookups->n; i++) {
        if (lookups->items[i].resolve)
            net_resolve_cancel(lookups->items[i].resolve);
        peg__free(lookups->items[i].addresses);
    }
    peg__free(lookups->items);
    *lookups = (struct grpc__lookups){0};
}
