/* SPDX-License-Identifier: Apache-2.0 */

/* What the server of a simulation holds. It is small, and looked at from front to back. */

#include <string.h>

#include "base/mem.h"
#include "internal.h"

/* ---- registers ----------------------------------------------------------------------------- */

static struct sim_register **chain_of(struct bus_sim *sim, const struct bus_id *id)
{
    return &sim->server.chains[(id->bytes[0] ^ id->bytes[1]) & (SIM_CHAINS - 1)];
}

static void remove_at(struct bus_sim *sim, struct sim_register **at)
{
    struct sim_register *gone = *at;

    *at = gone->next;
    gone->value = peg__blob_unref(gone->value);
    gone->next = sim->server.spares;
    sim->server.spares = gone;
}

static bool is_over(const struct bus_sim *sim, const struct sim_register *found)
{
    return found->keep_until_ms <= sim_wall_ms(sim);
}

static bool is_of(const struct sim_register *found, const struct bus_id *id, uint64_t scope)
{
    return found->scope == scope && bus_id_equal(&found->id, id);
}

struct sim_register *sim_find(struct bus_sim *sim, const struct bus_key *key, uint64_t scope)
{
    struct sim_register **at = chain_of(sim, &key->id);

    while (*at) {
        struct sim_register *found = *at;

        if (is_over(sim, found)) {
            remove_at(sim, at);
            continue;
        }
        if (found->what == key->what && found->n == key->n && is_of(found, &key->id, scope))
            return found;
        at = &found->next;
    }
    return NULL;
}

struct sim_register *sim_add(struct bus_sim *sim, const struct bus_key *key, uint64_t scope,
                             int64_t keep_until_ms)
{
    struct sim_register **chain = chain_of(sim, &key->id);
    struct sim_register *added = sim->server.spares;

    if (added)
        sim->server.spares = added->next;
    else
        added = (struct sim_register *)peg__alloc(sizeof(*added));
    if (!added)
        return NULL;
    *added = (struct sim_register){
        .next = *chain,
        .keep_until_ms = keep_until_ms,
        .scope = scope,
        .n = key->n,
        .what = key->what,
        .id = key->id,
    };
    *chain = added;
    return added;
}

void sim_forget(struct bus_sim *sim, const struct bus_id *id, uint64_t scope)
{
    struct sim_register **at = chain_of(sim, id);

    while (*at) {
        if (is_of(*at, id, scope))
            remove_at(sim, at);
        else
            at = &(*at)->next;
    }
}

void sim_lose(struct bus_sim *sim, uint64_t scope)
{
    for (unsigned i = 0; i < SIM_CHAINS; i++) {
        struct sim_register **at = &sim->server.chains[i];

        while (*at) {
            if ((*at)->scope == scope)
                remove_at(sim, at);
            else
                at = &(*at)->next;
        }
    }
}

size_t sim_waiters(struct bus_sim *sim, const struct bus_key *key, uint64_t scope,
                   struct bus_address ret_waiters[SIM_ADDRESSES])
{
    size_t n = 0;

    for (const struct sim_register *found = *chain_of(sim, &key->id); found && n < SIM_ADDRESSES;
         found = found->next) {
        if (found->what == BUS_WAITERS && is_of(found, &key->id, scope) && !is_over(sim, found))
            ret_waiters[n++] = found->waiter;
    }
    return n;
}

struct peg__blob *bus_sim_recheck(struct bus_sim *sim, const struct bus_key *key)
{
    const struct sim_register *found = sim_find(sim, key, 0);

    for (size_t i = 0; !found && i < sim->n_nodes; i++)
        found = sim_find(sim, key, sim->nodes[i].id);
    return found ? found->value : NULL;
}

size_t bus_sim_n_registers(struct bus_sim *sim, uint8_t id_len)
{
    size_t n = 0;

    for (unsigned i = 0; i < SIM_CHAINS; i++) {
        for (const struct sim_register *found = sim->server.chains[i]; found; found = found->next)
            n += !is_over(sim, found) && (id_len == 0 || found->id.len == id_len);
    }
    return n;
}

/* ---- leases -------------------------------------------------------------------------------- */

static struct sim_lease *find_lease(struct bus_sim *sim, const char *name)
{
    struct sim_server *server = &sim->server;

    for (size_t i = 0; i < server->n_leases; i++) {
        if (strcmp(server->leases[i].name, name) == 0)
            return &server->leases[i];
    }
    return NULL;
}

bool sim_lease(struct bus_sim *sim, const char *name, struct bus_address holder, int64_t until_ns)
{
    struct sim_server *server = &sim->server;
    struct sim_lease *lease = find_lease(sim, name);

    if (!lease) {
        if (server->n_leases == server->max_leases) {
            struct sim_lease *grown = (struct sim_lease *)peg__grow(
                server->leases, sizeof(*grown), server->n_leases + 1, &server->max_leases);

            if (!grown)
                return false;
            server->leases = grown;
        }
        lease = &server->leases[server->n_leases++];
        memcpy(lease->name, name, strlen(name) + 1);
    }
    lease->holder = holder;
    lease->until_ns = until_ns;
    return true;
}

void sim_release(struct bus_sim *sim, const char *name, struct bus_address holder)
{
    struct sim_lease *lease = find_lease(sim, name);

    if (lease && bus_address_equal(lease->holder, holder))
        *lease = sim->server.leases[--sim->server.n_leases];
}

struct bus_address sim_holder(struct bus_sim *sim, const char *name)
{
    const struct sim_lease *lease = find_lease(sim, name);

    return lease && lease->until_ns > sim->now_ns ? lease->holder : (struct bus_address){0};
}

struct sim_lease *sim_own_lease(struct bus_sim *sim, const struct sim_loop *loop)
{
    struct sim_lease *lease = find_lease(sim, loop->name);

    return lease && bus_address_equal(lease->holder, loop->bus.self) ? lease : NULL;
}

/* False: it is not the lease of a loop's own address. */
static bool lose_own(struct bus_sim *sim, struct sim_lease *lease)
{
    for (size_t i = 0; i < sim->n_nodes; i++) {
        for (unsigned k = 0; k < sim->nodes[i].n_loops; k++) {
            struct sim_loop *loop = &sim->nodes[i].loops[k];

            if (sim_own_lease(sim, loop) == lease) {
                sim_lose_node(loop, lease);
                return true;
            }
        }
    }
    return false;
}

struct bus_address bus_sim_holder(struct bus_sim *sim, const char *name)
{
    return sim_holder(sim, name);
}

void bus_sim_lapse_own(struct bus_sim *sim, struct bus_address address)
{
    struct sim_loop *loop = sim_loop_at(sim, address);
    struct sim_lease *lease = loop ? sim_own_lease(sim, loop) : NULL;

    if (lease)
        sim_lose_node(loop, lease);
}

void bus_sim_lapse(struct bus_sim *sim)
{
    struct sim_server *server = &sim->server;
    size_t i;

    if (server->n_leases == 0)
        return;
    i = bus_sim_pick(sim, server->n_leases);
    if (!lose_own(sim, &server->leases[i]))
        server->leases[i] = server->leases[--server->n_leases];
}

/* ---- its end ------------------------------------------------------------------------------- */

void sim_server_free(struct sim_server *server)
{
    while (server->spares) {
        struct sim_register *spare = server->spares;

        server->spares = spare->next;
        peg__free(spare);
    }
    for (unsigned map = 0; map < BUS_N_MAPS; map++)
        bus_map_table_free(&server->maps[map]);
    peg__free(server->leases);
}
