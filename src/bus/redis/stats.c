/* SPDX-License-Identifier: Apache-2.0 */

/* Counters of the loops; any thread reads them. */

#include "base/clock.h"
#include "bus/redis/internal.h"

enum { FENCE_PART = 10 };

void redis_count_round_trip(struct bus_redis_hub *hub, int64_t ns)
{
    unsigned bucket = 0;

    while (bucket + 1 < BUS_REDIS_BUCKETS && ns > (int64_t)BUS_REDIS_BUCKET_NS << bucket)
        bucket++;
    atomic_store_explicit(&hub->round_trip_ns, ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&hub->round_trips_ns, (uint64_t)ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&hub->round_trips[bucket], 1, memory_order_relaxed);
}

int64_t redis_fence_ns(const struct redis_bus *bus)
{
    return bus->renewed_ns + bus->lease_ns - bus->lease_ns / FENCE_PART;
}

/* Without a lease it has not begun. */
void redis_count_fenced(struct redis_bus *bus)
{
    const int64_t now_ns = net_loop_now_ns(bus->loop);
    int64_t from_ns = redis_fence_ns(bus);

    if (bus->lease_ns == 0)
        return;
    if (from_ns < bus->fence_counted_ns)
        from_ns = bus->fence_counted_ns;
    if (now_ns <= from_ns)
        return;
    atomic_fetch_add_explicit(&bus->hub->fenced_ns, (uint64_t)(now_ns - from_ns),
                              memory_order_relaxed);
    bus->fence_counted_ns = now_ns;
}

void bus_redis_hub_stats(struct bus_redis_hub *hub, struct bus_redis_stats *ret_stats)
{
    *ret_stats = (struct bus_redis_stats){
        .n_pipelines = atomic_load(&hub->n_pipelines),
        .n_commands = atomic_load(&hub->n_commands),
        .n_connects = atomic_load(&hub->n_connects),
        .n_epochs = atomic_load(&hub->n_epochs),
        .n_sent_bytes = atomic_load(&hub->traffic.n_sent),
        .n_received_bytes = atomic_load(&hub->traffic.n_received),
        .fenced_ns = atomic_load(&hub->fenced_ns),
        .round_trip_ns = atomic_load(&hub->round_trip_ns),
        .round_trips_ns = atomic_load(&hub->round_trips_ns),
    };
    for (unsigned i = 0; i < BUS_REDIS_BUCKETS; i++)
        ret_stats->round_trips[i] = atomic_load(&hub->round_trips[i]);
}
