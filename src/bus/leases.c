/* SPDX-License-Identifier: Apache-2.0 */

/* Each new lease removes a few that have ended: a table without new ones does not grow either. */

#include "bus/internal.h"

#include "base/limits.h"
#include "base/mem.h"

enum { REMOVED_AT_ONCE = 4 };

struct lease {
    struct net_timer end; /* first: an end that is due is its lease */
    struct bus_address loop;
    peg_str name; /* borrowed from the map */
};

void bus_lease_table_init(struct bus_lease_table *table)
{
    pthread_mutex_init(&table->lock, NULL);
    table->names = (struct peg__map)PEG__MAP(PEG_LIMIT_BUS_LEASES);
    table->ends = (struct net_timers){0};
}

static void remove_lease(struct bus_lease_table *table, struct lease *lease)
{
    net_timers_disarm(&table->ends, &lease->end);
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

peg_status bus_lease_take(struct bus_lease_table *table, peg_str name, struct bus_address loop,
                          int64_t now_ns, int64_t until_ns)
{
    peg_status status = PEG_OK;
    struct lease *lease;

    pthread_mutex_lock(&table->lock);
    remove_ended(table, now_ns);
    lease = (struct lease *)peg__map_get(&table->names, name);
    if (!lease)
        status = add_lease(table, name, &lease);
    if (!status) {
        lease->loop = loop;
        net_timers_arm(&table->ends, &lease->end, until_ns);
    }
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

static bool has_ended(const struct lease *lease, int64_t now_ns)
{
    return lease->end.is_armed && lease->end.due_ns <= now_ns; /* one without an end has no timer */
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
