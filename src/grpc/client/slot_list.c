/* SPDX-License-Identifier: Apache-2.0 */

/* The slots of a channel, as its addresses come and go. */

#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "grpc/client/internal.h"

static struct grpc__slot *new_slot(struct grpc_channel *channel, const struct net_address *address)
{
    struct grpc__slot *slot = peg__alloc_zero(1, sizeof(*slot));
    uint64_t seed = 0;

    if (!slot)
        return NULL;
    if (!peg__random(&seed, sizeof(seed)))
        seed = (uint64_t)net_loop_now_ns(channel->loop); /* it hides nothing */
    slot->channel = channel;
    slot->address = *address;
    grpc_backoff_init(&slot->backoff, channel->options.backoff_ms, channel->options.max_backoff_ms,
                      seed);
    return slot;
}

/* Its connection ends with its last call. */
static void remove_slot(struct grpc__slot *slot)
{
    struct grpc_channel *channel = slot->channel;
    struct grpc_client_conn *conn = slot->conn;

    net_loop_disarm(channel->loop, &slot->timer);
    if (conn) {
        conn->slot = NULL;
        slot->conn = NULL;
        if (conn->pick.n_streams > 0) {
            grpc_client_conn_retire(conn);
        } else {
            grpc_pick_remove(&channel->pick, &conn->pick);
            grpc_client_conn_free(conn);
        }
    }
    peg__free(slot);
}

static size_t n_listed(const struct grpc_channel *channel, const struct net_address *address)
{
    size_t n = 0;

    for (size_t i = 0; i < channel->n_slots; i++) {
        if (net_address_eq(&channel->slots[i]->address, address)) {
            channel->slots[i]->is_listed = true;
            n++;
        }
    }
    return n;
}

/* In the order of the addresses. The slot to begin with stays, unless it is just the first. */
static void sort_slots(struct grpc_channel *channel, const struct net_address *addresses, size_t n)
{
    const struct grpc__slot *first =
        channel->first < channel->n_slots ? channel->slots[channel->first] : NULL;
    const bool is_chosen = first && (channel->first > 0 || first->conn);
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = at; j < channel->n_slots; j++) {
            struct grpc__slot *slot = channel->slots[j];

            if (!net_address_eq(&slot->address, &addresses[i]))
                continue;
            channel->slots[j] = channel->slots[at];
            channel->slots[at++] = slot;
        }
    }
    channel->first = 0;
    for (size_t i = 0; i < channel->n_slots; i++) {
        if (is_chosen && channel->slots[i] == first)
            channel->first = i;
    }
}

static bool add_slots(struct grpc_channel *channel, const struct net_address *address)
{
    for (size_t n = n_listed(channel, address); n < channel->options.n_connections; n++) {
        struct grpc__slot *slot;

        if (channel->n_slots == PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS)
            return true; /* enough addresses */
        slot = new_slot(channel, address);
        if (!slot)
            return false;
        slot->is_listed = true;
        channel->slots[channel->n_slots++] = slot;
        channel->n_idle++;
    }
    return true;
}

static void remove_unlisted(struct grpc_channel *channel)
{
    size_t n = 0;

    for (size_t i = 0; i < channel->n_slots; i++) {
        struct grpc__slot *slot = channel->slots[i];

        if (slot->is_listed) {
            slot->is_listed = false;
            channel->slots[n++] = slot;
        } else {
            channel->n_idle -= grpc__slot_is_idle(slot);
            remove_slot(slot);
        }
    }
    channel->n_slots = n;
}

static bool reserve_slots(struct grpc_channel *channel, size_t n_addresses)
{
    size_t capacity = channel->n_slots;
    size_t n = channel->n_slots + n_addresses * channel->options.n_connections;
    struct grpc__slot **slots;

    if (n > PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS)
        n = PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS;
    if (grpc_pick_reserve(&channel->pick, n))
        return false;
    if (n <= capacity)
        return true;
    slots = peg__realloc(channel->slots, n * sizeof(*slots));
    if (!slots)
        return false;
    channel->slots = slots;
    return true;
}

static size_t choose_first(const struct grpc_channel *channel)
{
    uint64_t random = 0;

    if (!channel->options.begins_anywhere || channel->n_slots == 0 ||
        !peg__random(&random, sizeof(random)))
        return 0;
    return random % channel->n_slots;
}

bool grpc__slots_set(struct grpc_channel *channel, const struct net_address *addresses, size_t n)
{
    const bool is_first = channel->n_slots == 0;
    bool is_whole = reserve_slots(channel, n);

    for (size_t i = 0; is_whole && i < n; i++)
        is_whole = add_slots(channel, &addresses[i]);
    if (!is_whole) {
        for (size_t i = 0; i < channel->n_slots; i++)
            channel->slots[i]->is_listed = false;
        return false;
    }
    remove_unlisted(channel);
    sort_slots(channel, addresses, n);
    if (is_first)
        channel->first = choose_first(channel);
    return true;
}

void grpc__slots_clear(struct grpc_channel *channel)
{
    for (size_t i = 0; i < channel->n_slots; i++)
        remove_slot(channel->slots[i]);
    channel->n_slots = 0;
}
