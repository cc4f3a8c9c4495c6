/* SPDX-License-Identifier: Apache-2.0 */

/* Each new lease removes a few that have ended: a table without new ones does not grow either. */

#include "bus/internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { REMOVED_AT_ONCE = 4 };

struct lease {
    struct net_timer end; /* first: an end that is due is its lease */
    struct bus_address loop;
    peg_str name; /* borrowed from the map */
    bool is_own;  /* of its loop's own address */
};

void bus_lease_table_init(struct bus_lease_table *table)
{
    pthread_mutex_init(&table->lock, NULL);
    table->names = (struct peg__map)PEG__MAP(PEG_LIMIT_BUS_LEASES);
    table->ends = (struct net_timers){0};
    table->own_ends = (struct net_timers){0};
    table->on_own = NULL;
    table->on_lost = NULL;
}

static struct net_timers *ends_of(struct bus_lease_table *table, const struct lease *lease)
{
    return lease->is_own ? &table->own_ends : &table->ends;
}

static void remove_lease(struct bus_lease_table *table, struct lease *lease)
{
    net_timers_disarm(ends_of(table, lease), &lease->end);
    peg__map_remove(&table->names, lease->name, NULL);
    peg__free(lease);
}

static void remove_ended(struct bus_lease_table *table, int64_t now_ns)
{
    for (unsigned i = 0; i < REMOVED_AT_ONCE; i++) {
        struct lease *lease = (struct lease *)net_timers_take_due(&table->ends, now_ns);

        if (!lease)
            return;
        remove_lease(table, lease);
    }
}

static bool has_ended(const struct lease *lease, int64_t now_ns)
{
    return lease->end.is_armed && lease->end.due_ns <= now_ns; /* one without an end has no timer */
}

static void lose_lease(struct bus_lease_table *table, struct lease *lease)
{
    const struct bus_address loop = lease->loop;

    remove_lease(table, lease);
    if (table->on_lost)
        table->on_lost(table, loop);
}

int64_t bus_lease_check(struct bus_lease_table *table, int64_t now_ns)
{
    struct lease *lease;
    int64_t next_ns;

    pthread_mutex_lock(&table->lock);
    while ((lease = (struct lease *)net_timers_take_due(&table->own_ends, now_ns)))
        lose_lease(table, lease);
    next_ns = net_timers_next_ns(&table->own_ends);
    pthread_mutex_unlock(&table->lock);
    return next_ns;
}

static peg_status add_lease(struct bus_lease_table *table, peg_str name, struct lease **ret_lease)
{
    struct lease *lease = (struct lease *)peg__alloc_zero(1, sizeof(*lease));
    peg_status status;

    if (!lease)
        return PEG_ENOMEM;
    status = peg__map_add(&table->names, name, lease);
    if (status) {
        peg__free(lease);
        return status;
    }
    lease->name = peg__map_find(&table->names, name)->name;
    *ret_lease = lease;
    return PEG_OK;
}

static bool is_own_name(const struct bus_lease_request *request)
{
    char text[BUS_ADDRESS_TEXT];

    bus_address_print(request->loop, text);
    return peg__str_is(request->name, text);
}

static void give_lease(struct bus_lease_table *table, struct lease *lease,
                       const struct bus_lease_request *request)
{
    const bool was_own = lease->is_own;

    net_timers_disarm(ends_of(table, lease), &lease->end);
    lease->loop = request->loop;
    lease->is_own = is_own_name(request);
    net_timers_arm(ends_of(table, lease), &lease->end, request->until_ns);
    if (lease->is_own && !was_own && table->on_own)
        table->on_own(table);
}

static bool is_allowed(const struct lease *lease, const struct bus_lease_request *request)
{
    if (request->mode == BUS_LEASE_TAKE)
        return true;
    if (!lease)
        return request->mode == BUS_LEASE_IF_FREE;
    return bus_address_equal(lease->loop, request->loop);
}

/* NULL: the name is free. */
static struct lease *find_alive(struct bus_lease_table *table, peg_str name, int64_t now_ns)
{
    struct lease *lease = (struct lease *)peg__map_get(&table->names, name);

    if (!lease || !has_ended(lease, now_ns))
        return lease;
    if (lease->is_own)
        lose_lease(table, lease);
    else
        remove_lease(table, lease);
    return NULL;
}

peg_status bus_lease_ask(struct bus_lease_table *table, const struct bus_lease_request *request,
                         struct bus_address *ret_loop)
{
    peg_status status = PEG_OK;
    struct lease *lease;

    pthread_mutex_lock(&table->lock);
    remove_ended(table, request->now_ns);
    lease = find_alive(table, request->name, request->now_ns);
    if (is_allowed(lease, request)) {
        if (!lease)
            status = add_lease(table, request->name, &lease);
        if (!status)
            give_lease(table, lease, request);
    }
    *ret_loop = lease ? lease->loop : (struct bus_address){0};
    pthread_mutex_unlock(&table->lock);
    return status;
}

void bus_lease_release(struct bus_lease_table *table, peg_str name, struct bus_address loop)
{
    struct lease *lease;

    pthread_mutex_lock(&table->lock);
    lease = (struct lease *)peg__map_get(&table->names, name);
    if (lease && bus_address_equal(lease->loop, loop))
        remove_lease(table, lease);
    pthread_mutex_unlock(&table->lock);
}

void bus_lease_end_own(struct bus_lease_table *table, struct bus_address loop)
{
    char name[BUS_ADDRESS_TEXT];
    struct lease *lease;

    bus_address_print(loop, name);
    pthread_mutex_lock(&table->lock);
    lease = (struct lease *)peg__map_get(&table->names, peg__str(name));
    if (lease && lease->is_own)
        lose_lease(table, lease);
    pthread_mutex_unlock(&table->lock);
}

void bus_lease_find(struct bus_lease_table *table, const peg_str *names, size_t n, int64_t now_ns,
                    struct bus_address *ret_loops)
{
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < n; i++) {
        const struct lease *lease = (const struct lease *)peg__map_get(&table->names, names[i]);

        ret_loops[i] = lease && !has_ended(lease, now_ns) ? lease->loop : (struct bus_address){0};
    }
    pthread_mutex_unlock(&table->lock);
}

void bus_lease_table_free(struct bus_lease_table *table)
{
    PEG__MAP_EACH(&table->names, entry)
    peg__free(entry->value);
    peg__map_free(&table->names);
    pthread_mutex_destroy(&table->lock);
}
