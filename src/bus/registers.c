/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The hash of an id chooses a shard, which has its own lock; in a shard all registers of an id hang
 * in one chain, so that forgetting a call is one walk. A removed register leaves its memory to the
 * next one: in the steady state a call allocates nothing here. Values of removed registers are
 * gathered under the lock and freed behind it.
 *
 * bus.h describes the quotas. A write names the account of its register, or takes the account of
 * another register of the same id.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/quota.h"
#include "base/text/str.h"
#include "bus/internal.h"

enum {
    N_SHARDS = 32, /* a power of two */
    MIN_CHAINS = 16,
    MAX_SPARES = PEG_LIMIT_BUS_SPARE_REGISTERS / N_SHARDS,
    MIN_SPARES = 16,
    /* Removed in one go under the lock: some microseconds. */
    REMOVED_AT_ONCE = 32,
};

_Static_assert((int)BUS_MAX_WAITERS >= (int)PEG_LIMIT_NET_LOOPS, "each loop can wait");

/* Calls with an identity and calls without have quotas of their own. */
enum pool { POOL_RANDOM, POOL_NAMED, N_POOLS };

/* Of one register or several. */
struct cost {
    size_t n;
    size_t bytes; /* of registers and small values */
    size_t large_bytes;
};

struct quota {
    struct peg__quota n;
    struct peg__quota bytes;
    struct peg__quota large_bytes;
};

struct quotas {
    struct quota pools[N_POOLS];
};

/* A register to be written. */
struct want {
    enum pool pool;
    uint16_t account;
    bool admits;      /* it admits a call */
    bool is_measured; /* its bytes count against the account's share */
    struct cost cost;
};

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
    struct quotas quotas;
    atomic_size_t next_swept;
    struct shard shards[N_SHARDS];
};

/* ---- quotas: the bounds that bus.h names ---- */

static enum pool pool_of(const struct bus_id *id)
{
    return id->len == sizeof(id->bytes) ? POOL_NAMED : POOL_RANDOM;
}

/* Registers that admit calls leave the reserve to those of admitted ones. */
static peg_status init_small(struct peg__quota *quota, size_t max)
{
    const struct peg__quota_limits limits = {
        .max = max,
        .reserve = max - max / 100 * PEG_LIMIT_BUS_NAME_PERCENT,
        .has_shares = true,
    };

    return peg__quota_init(quota, &limits);
}

static peg_status init_quotas(struct quotas *quotas)
{
    const struct peg__quota_limits large = {.max = PEG_LIMIT_BUS_LARGE_BYTES, .has_shares = true};
    peg_status status = PEG_OK;

    *quotas = (struct quotas){0};
    for (unsigned i = 0; i < N_POOLS && !status; i++) {
        struct quota *quota = &quotas->pools[i];

        status = init_small(&quota->n, PEG_LIMIT_BUS_REGISTERS);
        if (!status)
            status = init_small(&quota->bytes, PEG_LIMIT_BUS_REGISTER_BYTES);
        if (!status)
            status = peg__quota_init(&quota->large_bytes, &large);
    }
    return status;
}

static void destroy_quotas(struct quotas *quotas)
{
    for (unsigned i = 0; i < N_POOLS; i++) {
        peg__quota_destroy(&quotas->pools[i].n);
        peg__quota_destroy(&quotas->pools[i].bytes);
        peg__quota_destroy(&quotas->pools[i].large_bytes);
    }
}

static void return_quotas(struct quotas *quotas, enum pool pool, uint16_t account, struct cost cost)
{
    struct quota *quota = &quotas->pools[pool];

    peg__quota_give_back(&quota->n, account, cost.n);
    peg__quota_give_back(&quota->bytes, account, cost.bytes);
    if (cost.large_bytes)
        peg__quota_give_back(&quota->large_bytes, account, cost.large_bytes);
}

static enum peg__quota_rule rule_of_bytes(const struct want *want)
{
    if (want->admits)
        return PEG__QUOTA_BEGIN;
    return want->is_measured ? PEG__QUOTA_SHARED : PEG__QUOTA_ADMITTED;
}

static peg_status take_quotas(struct quotas *quotas, const struct want *want)
{
    struct quota *quota = &quotas->pools[want->pool];
    const enum peg__quota_rule rule = want->admits ? PEG__QUOTA_BEGIN : PEG__QUOTA_ADMITTED;
    const struct cost cost = want->cost;
    struct cost taken = {0};

    if (peg__quota_take(&quota->n, want->account, cost.n, rule))
        return PEG_ELIMIT;
    taken.n = cost.n;
    if (!peg__quota_take(&quota->bytes, want->account, cost.bytes, rule_of_bytes(want))) {
        taken.bytes = cost.bytes;
        if (!cost.large_bytes || !peg__quota_take(&quota->large_bytes, want->account,
                                                  cost.large_bytes, PEG__QUOTA_SHARED))
            return PEG_OK;
    }
    return_quotas(quotas, want->pool, want->account, taken);
    return PEG_ELIMIT;
}

static struct cost cost_of(const struct peg__blob *value)
{
    const size_t bytes = value ? sizeof(*value) + value->len : 0;

    if (value && value->len > PEG_LIMIT_BUS_SMALL_BYTES)
        return (struct cost){.n = 1, .bytes = sizeof(struct node), .large_bytes = bytes};
    return (struct cost){.n = 1, .bytes = sizeof(struct node) + bytes};
}

size_t bus_registers_len(const struct bus_registers *registers)
{
    size_t n = 0;

    for (unsigned i = 0; i < N_POOLS; i++)
        n += peg__quota_used(&registers->quotas.pools[i].n);
    return n;
}

size_t bus_registers_bytes(const struct bus_registers *registers)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < N_POOLS; i++) {
        const struct quota *quota = &registers->quotas.pools[i];

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

static bool belongs_to(const struct node *node, uint64_t hash, const struct bus_id *id)
{
    return node->hash == hash && bus_id_equal(&node->id, id);
}

static struct node *find_node(const struct shard *shard, uint64_t hash, const struct bus_key *key)
{
    struct node *node = *chain_of(shard, hash);

    while (node &&
           !(node->what == key->what && node->n == key->n && belongs_to(node, hash, &key->id)))
        node = node->next;
    return node;
}

/* The account of a register of the id; 0: none has one. */
static uint16_t account_of(const struct shard *shard, uint64_t hash, const struct bus_id *id)
{
    const struct node *node = *chain_of(shard, hash);

    while (node && !(node->account && belongs_to(node, hash, id)))
        node = node->next;
    return node ? node->account : 0;
}

static void free_chains(struct shard *shard)
{
    if (shard->chains != &shard->one_chain)
        peg__free(shard->chains);
}

/* Without memory for more the chains become longer: slower, not wrong. */
static void grow_chains(struct shard *shard)
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
static struct node *add_node(struct shard *shard, uint64_t hash, const struct bus_id *id,
                             int64_t keep_until_ms)
{
    struct node **chain;
    struct node *node;

    if (shard->n >= shard->n_chains)
        grow_chains(shard);
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

/* Removed under the lock, to be freed behind it. */
struct removed {
    struct peg__blob *values[REMOVED_AT_ONCE];
    size_t n;
    /* The cost of the last ones that have pool and account in common. */
    enum pool pool;
    uint16_t account;
    struct cost cost;
};

static void return_cost(struct bus_registers *registers, struct removed *removed)
{
    if (removed->cost.n > 0)
        return_quotas(&registers->quotas, removed->pool, removed->account, removed->cost);
    removed->cost = (struct cost){0};
}

/* Registers of one call are returned together: all loops share these counters. */
static void add_cost(struct bus_registers *registers, struct removed *removed,
                     const struct node *node)
{
    const enum pool pool = pool_of(&node->id);
    const struct cost cost = cost_of(node->value);

    if (removed->pool != pool || removed->account != node->account)
        return_cost(registers, removed);
    removed->pool = pool;
    removed->account = node->account;
    removed->cost.n += cost.n;
    removed->cost.bytes += cost.bytes;
    removed->cost.large_bytes += cost.large_bytes;
}

static void forget_removed(struct removed *removed)
{
    removed->n = 0;
    removed->pool = POOL_RANDOM;
    removed->account = 0;
    removed->cost = (struct cost){0};
}

/* Keeps as many spares as there are registers, and a few: else each shard would keep the memory of
 * its busiest moment. Frees two for each new one, so that their number falls soon. */
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

/* After it has left its chain. */
static void retire_node(struct bus_registers *registers, struct shard *shard, struct node *node,
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

static void free_removed(struct bus_registers *registers, struct removed *removed)
{
    return_cost(registers, removed);
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

        if (!belongs_to(node, hash, id)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        retire_node(registers, shard, node, ret_removed);
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
        free_removed(registers, &removed);
    } while (removed.n == REMOVED_AT_ONCE);
}

static void unchain_node(struct shard *shard, struct node *node)
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
        unchain_node(shard, node);
        retire_node(registers, shard, node, &removed);
    }
    unlock_shard(shard);
    free_removed(registers, &removed);
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

static bool is_same_value(const struct peg__blob *a, const struct peg__blob *b)
{
    return a == b || peg__str_eq(peg__blob_str(a), peg__blob_str(b));
}

/* An admitted call needs claims and short results to come to its end, so these always fit. */
static bool is_measured(const struct peg__blob *value)
{
    return value->len > PEG_LIMIT_BUS_REASON_BYTES;
}

/* Under the lock. */
static peg_status write_register(struct bus_registers *registers, struct shard *shard,
                                 uint64_t hash, const struct bus_key *key, struct peg__blob *value,
                                 int64_t keep_until_ms)
{
    const struct want want = {
        .pool = pool_of(&key->id),
        .account = key->account ? key->account : account_of(shard, hash, &key->id),
        .admits = key->admits,
        .is_measured = is_measured(value),
        .cost = cost_of(value),
    };
    struct node *node;

    if (take_quotas(&registers->quotas, &want))
        return PEG_ELIMIT;
    node = add_node(shard, hash, &key->id, keep_until_ms);
    if (!node) {
        return_quotas(&registers->quotas, want.pool, want.account, want.cost);
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
    const struct node *current = find_node(shard, hash, key);
    struct peg__blob *other = NULL;
    peg_status status = PEG_OK;

    if (current)
        other = is_same_value(current->value, value) ? NULL : peg__blob_ref(current->value);
    else
        status = write_register(registers, shard, hash, key, value, keep_until_ms);
    unlock_shard(shard);
    if (!status)
        *ret_other = other;
    return status;
}

struct peg__blob *bus_registers_read(struct bus_registers *registers, const struct bus_key *key)
{
    const uint64_t hash = hash_id(registers, &key->id);
    struct shard *shard = lock_shard(registers, hash);
    const struct node *current = find_node(shard, hash, key);
    struct peg__blob *value = current ? peg__blob_ref(current->value) : NULL;

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
        if (node->what == BUS_WAITERS && belongs_to(node, hash, id))
            ret_waiters[n++] = node->waiter;
    }
    return n;
}

static peg_status add_waiter(struct bus_registers *registers, struct shard *shard, uint64_t hash,
                             const struct bus_id *id, struct bus_address waiter,
                             int64_t keep_until_ms)
{
    const struct want want = {
        .pool = pool_of(id),
        .account = account_of(shard, hash, id),
        .cost = cost_of(NULL),
    };
    struct node *node;

    if (take_quotas(&registers->quotas, &want))
        return PEG_ELIMIT;
    node = add_node(shard, hash, id, keep_until_ms);
    if (!node) {
        return_quotas(&registers->quotas, want.pool, want.account, want.cost);
        return PEG_ENOMEM;
    }
    node->account = want.account;
    node->what = BUS_WAITERS;
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
    if (init_quotas(&registers->quotas)) {
        destroy_quotas(&registers->quotas);
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
    destroy_quotas(&registers->quotas);
    peg__free(registers);
    return NULL;
}
