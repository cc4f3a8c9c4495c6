/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table is cut into shards, each with a lock, by the hash of the id; in a shard all that an id
 * has hangs in one chain, so that forgetting a call is one walk. A register that is removed leaves
 * its memory to the next one: a call in the steady state allocates nothing here.
 *
 * Whoever removes gathers values under the lock, and lets go of them behind it.
 *
 * What there is room for stands in bus.h. A register is its account's that is named when it is
 * written, or, by one who does not know that, of another register of the same id.
 */

#include "bus/registers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/register_quota.h"

enum {
    N_SHARDS = 32, /* a power of two */
    MIN_CHAINS = 16,
    MAX_SPARES = PEG_LIMIT_BUS_SPARE_REGISTERS / N_SHARDS,
    MIN_SPARES = 16,
    /* Removed in one go under the lock: some microseconds. */
    REMOVED_AT_ONCE = 32,
};

_Static_assert((int)BUS_MAX_WAITERS >= (int)PEG_LIMIT_NET_LOOPS, "each loop can wait");

struct node {
    struct net_timer expiry; /* first: a timer that is due is its node */
    struct node *next;       /* in its chain; of the spares; of those that are being removed */
    uint64_t hash;
    struct peg__blob *value;   /* NULL for a waiter, which has no value */
    struct bus_address waiter; /* of 'w' */
    uint32_t n;
    uint16_t account;
    char what;
    struct bus_id id;
};

struct shard {
    pthread_mutex_t lock;
    struct node **chains;
    size_t n_chains;        /* a power of two */
    struct node *one_chain; /* the first ones: so there is always one */
    size_t n;
    struct net_timers expiries;
    struct node *spares;
    size_t n_spares;
};

struct bus_registers {
    struct peg__hash_key key;
    struct bus_register_quotas quotas;
    atomic_size_t next_swept;
    struct shard shards[N_SHARDS];
};

/* ---- what they take ------------------------------------------------------------------------ */

static struct bus_cost cost_of(const struct peg__blob *value)
{
    const size_t bytes = value ? sizeof(*value) + value->len : 0;

    if (value && value->len > PEG_LIMIT_BUS_SMALL_BYTES)
        return (struct bus_cost){.n = 1, .bytes = sizeof(struct node), .large_bytes = bytes};
    return (struct bus_cost){.n = 1, .bytes = sizeof(struct node) + bytes};
}

size_t bus_registers_len(const struct bus_registers *registers)
{
    size_t n = 0;

    for (unsigned i = 0; i < BUS_N_POOLS; i++)
        n += peg__quota_used(&registers->quotas.pools[i].n);
    return n;
}

size_t bus_registers_bytes(const struct bus_registers *registers)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < BUS_N_POOLS; i++) {
        const struct bus_register_quota *quota = &registers->quotas.pools[i];

        bytes += peg__quota_used(&quota->bytes) + peg__quota_used(&quota->large_bytes);
    }
    return bytes;
}

/* ---- a shard, locked ----------------------------------------------------------------------- */

static uint64_t hash_id(const struct bus_registers *registers, const struct bus_id *id)
{
    return bus_id_hash(id, registers->key);
}

static struct shard *lock_shard(struct bus_registers *registers, uint64_t hash)
{
    struct shard *shard = &registers->shards[hash >> 32 & (N_SHARDS - 1)];

    pthread_mutex_lock(&shard->lock);
    return shard;
}

static void unlock_shard(struct shard *shard)
{
    pthread_mutex_unlock(&shard->lock);
}

/* The beginning of the chain. */
static struct node **chain_of(const struct shard *shard, uint64_t hash)
{
    return &shard->chains[hash & (shard->n_chains - 1)];
}

static bool is_of(const struct node *node, uint64_t hash, const struct bus_id *id)
{
    return node->hash == hash && bus_id_equal(&node->id, id);
}

static struct node *find(const struct shard *shard, uint64_t hash, const struct bus_key *key)
{
    struct node *node = *chain_of(shard, hash);

    while (node && !(node->what == key->what && node->n == key->n && is_of(node, hash, &key->id)))
        node = node->next;
    return node;
}

/* That of the id, if one of its registers has it; 0: none does. */
static uint16_t account_of(const struct shard *shard, uint64_t hash, const struct bus_id *id)
{
    const struct node *node = *chain_of(shard, hash);

    while (node && !(node->account && is_of(node, hash, id)))
        node = node->next;
    return node ? node->account : 0;
}

static void free_chains(struct shard *shard)
{
    if (shard->chains != &shard->one_chain)
        peg__free(shard->chains);
}

/* Without memory for more the chains become longer: slower, not wrong. */
static void grow(struct shard *shard)
{
    const size_t n_chains = shard->n_chains > 1 ? 2 * shard->n_chains : MIN_CHAINS;
    struct node **chains = (struct node **)peg__alloc_zero(n_chains, sizeof(struct node *));

    if (!chains)
        return;
    for (size_t i = 0; i < shard->n_chains; i++) {
        struct node *node = shard->chains[i];

        while (node) {
            struct node *next = node->next;
            struct node **chain = &chains[node->hash & (n_chains - 1)];

            node->next = *chain;
            *chain = node;
            node = next;
        }
    }
    free_chains(shard);
    shard->chains = chains;
    shard->n_chains = n_chains;
}

static struct node *take_memory(struct shard *shard)
{
    struct node *node = shard->spares;

    if (!node)
        return (struct node *)peg__alloc(sizeof(*node));
    shard->spares = node->next;
    shard->n_spares--;
    return node;
}

static int64_t ns_of_ms(int64_t ms)
{
    if (ms > INT64_MAX / PEG_NS_PER_MS)
        return NET_NEVER;
    return ms < 0 ? 0 : ms * PEG_NS_PER_MS;
}

/* NULL: no memory. */
static struct node *add(struct shard *shard, uint64_t hash, const struct bus_id *id,
                        int64_t keep_until_ms)
{
    struct node **chain;
    struct node *node;

    if (shard->n >= shard->n_chains)
        grow(shard);
    node = take_memory(shard);
    if (!node)
        return NULL;
    *node = (struct node){.hash = hash, .id = *id};
    chain = chain_of(shard, hash);
    node->next = *chain;
    *chain = node;
    shard->n++;
    net_timers_arm(&shard->expiries, &node->expiry, ns_of_ms(keep_until_ms));
    return node;
}

/* ---- removing ------------------------------------------------------------------------------ */

/* What was removed under the lock, to be let go behind it. */
struct removed {
    struct peg__blob *values[REMOVED_AT_ONCE];
    size_t n;
    /* What the last of them took, as far as they are alike. */
    enum bus_pool pool;
    uint16_t account;
    struct bus_cost cost;
};

static void give_back(struct bus_registers *registers, struct removed *removed)
{
    if (removed->cost.n > 0)
        bus_register_quotas_give_back(&registers->quotas, removed->pool, removed->account,
                                      removed->cost);
    removed->cost = (struct bus_cost){0};
}

/* Those of one call are given back together: what all loops count in is dear to touch. */
static void add_cost(struct bus_registers *registers, struct removed *removed,
                     const struct node *node)
{
    const enum bus_pool pool = bus_pool_of(&node->id);
    const struct bus_cost cost = cost_of(node->value);

    if (removed->pool != pool || removed->account != node->account)
        give_back(registers, removed);
    removed->pool = pool;
    removed->account = node->account;
    removed->cost.n += cost.n;
    removed->cost.bytes += cost.bytes;
    removed->cost.large_bytes += cost.large_bytes;
}

static void forget_removed(struct removed *removed)
{
    removed->n = 0;
    removed->pool = BUS_UNNAMED;
    removed->account = 0;
    removed->cost = (struct bus_cost){0};
}

/* As many stay as there are registers, and a few: else each shard would keep what its busiest
 * moment took. Two go for one that comes, so that they are soon as few as they should be. */
static void free_spares(struct shard *shard)
{
    const size_t n_wanted = shard->n + MIN_SPARES;
    const size_t max = n_wanted < MAX_SPARES ? n_wanted : MAX_SPARES;

    for (unsigned i = 0; i < 2 && shard->n_spares > max; i++) {
        struct node *node = shard->spares;

        shard->spares = node->next;
        shard->n_spares--;
        peg__free(node);
    }
}

/* It is in no chain any more. */
static void retire(struct bus_registers *registers, struct shard *shard, struct node *node,
                   struct removed *removed)
{
    add_cost(registers, removed, node);
    removed->values[removed->n++] = node->value;
    net_timers_disarm(&shard->expiries, &node->expiry);
    shard->n--;
    node->value = NULL;
    node->next = shard->spares;
    shard->spares = node;
    shard->n_spares++;
    free_spares(shard);
}

static void let_go(struct bus_registers *registers, struct removed *removed)
{
    give_back(registers, removed);
    for (size_t i = 0; i < removed->n; i++)
        peg__blob_unref(removed->values[i]);
}

/* As many as can be removed at once. */
static void remove_some(struct bus_registers *registers, struct shard *shard, uint64_t hash,
                        const struct bus_id *id, struct removed *ret_removed)
{
    struct node **at = chain_of(shard, hash);

    while (*at && ret_removed->n < REMOVED_AT_ONCE) {
        struct node *node = *at;

        if (!is_of(node, hash, id)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        retire(registers, shard, node, ret_removed);
    }
}

void bus_registers_forget(struct bus_registers *registers, const struct bus_id *id)
{
    const uint64_t hash = hash_id(registers, id);
    struct removed removed;

    do {
        struct shard *shard = lock_shard(registers, hash);

        forget_removed(&removed);
        remove_some(registers, shard, hash, id, &removed);
        unlock_shard(shard);
        let_go(registers, &removed);
    } while (removed.n == REMOVED_AT_ONCE);
}

static void unchain(struct shard *shard, struct node *node)
{
    struct node **at = chain_of(shard, node->hash);

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
}

static size_t sweep_shard(struct bus_registers *registers, struct shard *shard, int64_t now_ns,
                          size_t max)
{
    struct removed removed;

    forget_removed(&removed);
    pthread_mutex_lock(&shard->lock);
    while (removed.n < max) {
        struct node *node = (struct node *)net_timers_take_due(&shard->expiries, now_ns);

        if (!node)
            break;
        unchain(shard, node);
        retire(registers, shard, node, &removed);
    }
    unlock_shard(shard);
    let_go(registers, &removed);
    return removed.n;
}

bool bus_registers_sweep(struct bus_registers *registers, int64_t now_ms, size_t max)
{
    const int64_t now_ns = ns_of_ms(now_ms);
    size_t n_quiet = 0;

    while (max > 0 && n_quiet < N_SHARDS) {
        const size_t i = atomic_load_explicit(&registers->next_swept, memory_order_relaxed);
        const size_t at_once = max < REMOVED_AT_ONCE ? max : REMOVED_AT_ONCE;
        const size_t n = sweep_shard(registers, &registers->shards[i % N_SHARDS], now_ns, at_once);

        max -= n;
        n_quiet = n == at_once ? 0 : n_quiet + 1;
        if (n < at_once)
            atomic_store_explicit(&registers->next_swept, i + 1, memory_order_relaxed);
    }
    return n_quiet < N_SHARDS;
}

/* ---- registers ----------------------------------------------------------------------------- */

static bool is_same(const struct peg__blob *a, const struct peg__blob *b)
{
    return a == b || peg__str_eq(peg__blob_str(a), peg__blob_str(b));
}

/* Marks, and ends in a few words, are what a call that was admitted needs to come to its end. */
static bool is_measured(const struct peg__blob *value)
{
    return value->len > PEG_LIMIT_BUS_REASON_BYTES;
}

/* Under the lock. */
static peg_status write_new(struct bus_registers *registers, struct shard *shard, uint64_t hash,
                            const struct bus_key *key, struct peg__blob *value,
                            int64_t keep_until_ms)
{
    const struct bus_want want = {
        .pool = bus_pool_of(&key->id),
        .account = key->account ? key->account : account_of(shard, hash, &key->id),
        .admits = key->admits,
        .is_measured = is_measured(value),
        .cost = cost_of(value),
    };
    struct node *node;

    if (bus_register_quotas_take(&registers->quotas, &want))
        return PEG_ELIMIT;
    node = add(shard, hash, &key->id, keep_until_ms);
    if (!node) {
        bus_register_quotas_give_back(&registers->quotas, want.pool, want.account, want.cost);
        return PEG_ENOMEM;
    }
    node->what = key->what;
    node->n = key->n;
    node->account = want.account;
    node->value = peg__blob_ref(value);
    return PEG_OK;
}

peg_status bus_registers_put_if_absent(struct bus_registers *registers, const struct bus_key *key,
                                       struct peg__blob *value, int64_t keep_until_ms,
                                       struct peg__blob **ret_other)
{
    const uint64_t hash = hash_id(registers, &key->id);
    struct shard *shard = lock_shard(registers, hash);
    const struct node *standing = find(shard, hash, key);
    struct peg__blob *other = NULL;
    peg_status status = PEG_OK;

    if (standing)
        other = is_same(standing->value, value) ? NULL : peg__blob_ref(standing->value);
    else
        status = write_new(registers, shard, hash, key, value, keep_until_ms);
    unlock_shard(shard);
    if (!status)
        *ret_other = other;
    return status;
}

struct peg__blob *bus_registers_read(struct bus_registers *registers, const struct bus_key *key)
{
    const uint64_t hash = hash_id(registers, &key->id);
    struct shard *shard = lock_shard(registers, hash);
    const struct node *standing = find(shard, hash, key);
    struct peg__blob *value = standing ? peg__blob_ref(standing->value) : NULL;

    unlock_shard(shard);
    return value;
}

/* ---- waiters ------------------------------------------------------------------------------- */

static size_t list_waiters(const struct shard *shard, uint64_t hash, const struct bus_id *id,
                           struct bus_address ret_waiters[BUS_MAX_WAITERS])
{
    size_t n = 0;

    for (const struct node *node = *chain_of(shard, hash); node && n < BUS_MAX_WAITERS;
         node = node->next) {
        if (node->what == 'w' && is_of(node, hash, id))
            ret_waiters[n++] = node->waiter;
    }
    return n;
}

static peg_status add_waiter(struct bus_registers *registers, struct shard *shard, uint64_t hash,
                             const struct bus_id *id, struct bus_address waiter,
                             int64_t keep_until_ms)
{
    const struct bus_want want = {
        .pool = bus_pool_of(id),
        .account = account_of(shard, hash, id),
        .cost = cost_of(NULL),
    };
    struct node *node;

    if (bus_register_quotas_take(&registers->quotas, &want))
        return PEG_ELIMIT;
    node = add(shard, hash, id, keep_until_ms);
    if (!node) {
        bus_register_quotas_give_back(&registers->quotas, want.pool, want.account, want.cost);
        return PEG_ENOMEM;
    }
    node->account = want.account;
    node->what = 'w';
    node->waiter = waiter;
    return PEG_OK;
}

peg_status bus_registers_wait_add(struct bus_registers *registers, const struct bus_id *id,
                                  struct bus_address waiter, int64_t keep_until_ms)
{
    const uint64_t hash = hash_id(registers, id);
    struct shard *shard = lock_shard(registers, hash);
    struct bus_address waiters[BUS_MAX_WAITERS];
    const size_t n = list_waiters(shard, hash, id, waiters);
    peg_status status = PEG_OK;
    size_t i = 0;

    while (i < n && !bus_address_equal(waiters[i], waiter))
        i++;
    if (i == BUS_MAX_WAITERS)
        status = PEG_ELIMIT;
    else if (i == n)
        status = add_waiter(registers, shard, hash, id, waiter, keep_until_ms);
    unlock_shard(shard);
    return status;
}

size_t bus_registers_waiters(struct bus_registers *registers, const struct bus_id *id,
                             struct bus_address ret_waiters[BUS_MAX_WAITERS])
{
    const uint64_t hash = hash_id(registers, id);
    struct shard *shard = lock_shard(registers, hash);
    const size_t n = list_waiters(shard, hash, id, ret_waiters);

    unlock_shard(shard);
    return n;
}

/* ---- beginning and end --------------------------------------------------------------------- */

peg_status bus_registers_new(struct bus_registers **ret_registers, peg_error *reterr)
{
    struct bus_registers *registers =
        (struct bus_registers *)peg__alloc_zero(1, sizeof(struct bus_registers));

    if (!registers)
        return peg__fail_nomem(reterr);
    if (bus_register_quotas_init(&registers->quotas)) {
        bus_register_quotas_destroy(&registers->quotas);
        peg__free(registers);
        return peg__fail_nomem(reterr);
    }
    registers->key = peg__hash_key_new();
    for (size_t i = 0; i < N_SHARDS; i++) {
        struct shard *shard = &registers->shards[i];

        pthread_mutex_init(&shard->lock, NULL);
        shard->chains = &shard->one_chain;
        shard->n_chains = 1;
    }
    *ret_registers = registers;
    return PEG_OK;
}

static void free_list(struct node *node)
{
    while (node) {
        struct node *next = node->next;

        peg__blob_unref(node->value);
        peg__free(node);
        node = next;
    }
}

struct bus_registers *bus_registers_free(struct bus_registers *registers)
{
    if (!registers)
        return NULL;
    for (size_t i = 0; i < N_SHARDS; i++) {
        struct shard *shard = &registers->shards[i];

        for (size_t k = 0; k < shard->n_chains; k++)
            free_list(shard->chains[k]);
        free_list(shard->spares);
        free_chains(shard);
        pthread_mutex_destroy(&shard->lock);
    }
    bus_register_quotas_destroy(&registers->quotas);
    peg__free(registers);
    return NULL;
}
