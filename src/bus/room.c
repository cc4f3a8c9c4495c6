/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is taken is counted before it is looked at, so that at the brim two threads may both be
 * refused where one would have fitted.
 *
 * Shares are of what names may take: were they of all there is, three who have each got theirs
 * would leave just what is no name's, and a fourth could begin nothing.
 */

#include "bus/room.h"

enum bus_pool bus_pool_of(const struct bus_id *id)
{
    return id->len == sizeof(id->bytes) ? BUS_NAMED : BUS_UNNAMED;
}

static void subtract(struct bus_taken *taken, struct bus_cost cost)
{
    atomic_fetch_sub_explicit(&taken->n, cost.n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&taken->bytes, cost.bytes, memory_order_relaxed);
    if (cost.large_bytes)
        atomic_fetch_sub_explicit(&taken->large_bytes, cost.large_bytes, memory_order_relaxed);
}

void bus_room_give_back(struct bus_room *room, enum bus_pool pool, uint16_t account,
                        struct bus_cost cost)
{
    subtract(&room->pools[pool], cost);
    if (account)
        subtract(&room->accounts[pool][account], cost);
}

static size_t add(atomic_size_t *taken, size_t more)
{
    return atomic_fetch_add_explicit(taken, more, memory_order_relaxed);
}

/* Adds, and says whether it is more than there may be now. */
static bool exceeds(atomic_size_t *taken, size_t more, size_t max)
{
    return add(taken, more) + more > max;
}

/* The same of what is somebody's, too. `share_max`: what shares are of; 0: they do not matter. */
static bool exceeds_own(atomic_size_t *taken, atomic_size_t *own, size_t more, size_t max,
                        size_t share_max)
{
    const size_t before = add(taken, more);
    const size_t own_before = add(own, more);

    return before + more > max ||
           (share_max && bus_is_beyond_share(own_before, more, before, share_max));
}

peg_status bus_room_take(struct bus_room *room, const struct bus_want *want)
{
    const size_t names = (size_t)PEG_LIMIT_BUS_REGISTERS / 100 * PEG_LIMIT_BUS_NAME_PERCENT;
    const size_t name_bytes =
        (size_t)PEG_LIMIT_BUS_REGISTER_BYTES / 100 * PEG_LIMIT_BUS_NAME_PERCENT;
    const size_t max = want->admits ? names : PEG_LIMIT_BUS_REGISTERS;
    const size_t max_bytes = want->admits ? name_bytes : PEG_LIMIT_BUS_REGISTER_BYTES;
    const size_t max_large = PEG_LIMIT_BUS_LARGE_BYTES;
    const struct bus_cost cost = want->cost;
    struct bus_taken *pool = &room->pools[want->pool];
    struct bus_taken *own = &room->accounts[want->pool][want->account];
    bool is_full;

    if (!want->account) {
        is_full = exceeds(&pool->n, cost.n, max);
        is_full |= exceeds(&pool->bytes, cost.bytes, max_bytes);
        if (cost.large_bytes)
            is_full |= exceeds(&pool->large_bytes, cost.large_bytes, max_large);
    } else {
        is_full = exceeds_own(&pool->n, &own->n, cost.n, max, want->admits ? names : 0);
        is_full |= exceeds_own(&pool->bytes, &own->bytes, cost.bytes, max_bytes,
                               want->admits || want->is_measured ? name_bytes : 0);
        if (cost.large_bytes)
            is_full |= exceeds_own(&pool->large_bytes, &own->large_bytes, cost.large_bytes,
                                   max_large, max_large);
    }
    if (!is_full)
        return PEG_OK;
    bus_room_give_back(room, want->pool, want->account, cost);
    return PEG_ELIMIT;
}
