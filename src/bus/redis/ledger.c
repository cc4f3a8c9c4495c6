/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ends are counted in slots of SLOT_MS, one after the other in a ring: in each of them, what it
 * gives back to each account. So a register costs no memory of its own. What ends behind the ring
 * is given back with its last slot, and without memory for an entry at once: then too little is
 * counted, never too much for ever.
 */

#include "bus/redis/ledger.h"

#include <pthread.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/quota.h"

enum {
    SLOT_MS = 30000,
    N_SLOTS = 4096,       /* a day and a half: the longest call, and what is kept of it */
    REGISTER_BYTES = 150, /* what Redis takes for a key with an expiry */
};

struct entry {
    uint16_t account;
    size_t n;
    size_t bytes;
    size_t large_bytes;
};

struct slot {
    struct entry *entries;
    size_t n;
    size_t capacity;
};

struct redis_ledger {
    struct peg__quota n;
    struct peg__quota bytes;
    struct peg__quota large_bytes;
    pthread_mutex_t lock; /* of the rest */
    int64_t first;        /* the slot that ends next, counted from the beginning of time */
    struct slot slots[N_SLOTS];
};

static struct peg__quota_limits small_limits(size_t max)
{
    return (struct peg__quota_limits){
        .max = max,
        .reserve = max - max / 100 * PEG_LIMIT_BUS_NAME_PERCENT,
        .has_shares = true,
    };
}

peg_status redis_ledger_new(struct redis_ledger **ret_ledger)
{
    const struct peg__quota_limits n = small_limits(PEG_LIMIT_BUS_REGISTERS);
    const struct peg__quota_limits bytes = small_limits(PEG_LIMIT_BUS_REGISTER_BYTES);
    const struct peg__quota_limits large = {.max = PEG_LIMIT_BUS_LARGE_BYTES, .has_shares = true};
    struct redis_ledger *ledger = (struct redis_ledger *)peg__alloc_zero(1, sizeof(*ledger));

    if (!ledger)
        return PEG_ENOMEM;
    pthread_mutex_init(&ledger->lock, NULL);
    if (peg__quota_init(&ledger->n, &n) || peg__quota_init(&ledger->bytes, &bytes) ||
        peg__quota_init(&ledger->large_bytes, &large)) {
        redis_ledger_free(ledger);
        return PEG_ENOMEM;
    }
    *ret_ledger = ledger;
    return PEG_OK;
}

struct redis_ledger *redis_ledger_free(struct redis_ledger *ledger)
{
    if (!ledger)
        return NULL;
    for (size_t i = 0; i < N_SLOTS; i++)
        peg__free(ledger->slots[i].entries);
    peg__quota_destroy(&ledger->n);
    peg__quota_destroy(&ledger->bytes);
    peg__quota_destroy(&ledger->large_bytes);
    pthread_mutex_destroy(&ledger->lock);
    peg__free(ledger);
    return NULL;
}

size_t redis_ledger_len(const struct redis_ledger *ledger)
{
    return peg__quota_used(&ledger->n);
}

/* ---- taking and giving back ---------------------------------------------------------------- */

static void return_entry(struct redis_ledger *ledger, const struct entry *entry)
{
    peg__quota_give_back(&ledger->n, entry->account, entry->n);
    peg__quota_give_back(&ledger->bytes, entry->account, entry->bytes);
    peg__quota_give_back(&ledger->large_bytes, entry->account, entry->large_bytes);
}

static struct entry entry_of(const struct redis_cost *cost)
{
    return (struct entry){cost->account, 1, cost->bytes, cost->large_bytes};
}

/* An admitted call needs claims and short results to come to its end, so these always fit. */
static enum peg__quota_rule rule_of(const struct bus_key *key, size_t len)
{
    if (key->admits)
        return PEG__QUOTA_BEGIN;
    return len > PEG_LIMIT_BUS_REASON_BYTES ? PEG__QUOTA_SHARED : PEG__QUOTA_ADMITTED;
}

peg_status redis_ledger_take(struct redis_ledger *ledger, const struct bus_key *key, size_t len,
                             struct redis_cost *ret_cost)
{
    const bool is_large = len > PEG_LIMIT_BUS_SMALL_BYTES;
    const struct redis_cost cost = {
        .account = key->account,
        .bytes = REGISTER_BYTES + (is_large ? 0 : len),
        .large_bytes = is_large ? len : 0,
        .is_counted = true,
    };
    struct entry taken = {.account = key->account};

    *ret_cost = (struct redis_cost){0};
    if (key->id.len != sizeof(key->id.bytes))
        return PEG_OK;
    if (peg__quota_take(&ledger->n, key->account, 1,
                        key->admits ? PEG__QUOTA_BEGIN : PEG__QUOTA_ADMITTED))
        return PEG_ELIMIT;
    taken.n = 1;
    if (!peg__quota_take(&ledger->bytes, key->account, cost.bytes, rule_of(key, len))) {
        taken.bytes = cost.bytes;
        if (!is_large || !peg__quota_take(&ledger->large_bytes, key->account, cost.large_bytes,
                                          PEG__QUOTA_SHARED)) {
            *ret_cost = cost;
            return PEG_OK;
        }
    }
    return_entry(ledger, &taken);
    return PEG_ELIMIT;
}

void redis_ledger_give_back(struct redis_ledger *ledger, const struct redis_cost *cost)
{
    const struct entry entry = entry_of(cost);

    if (cost->is_counted)
        return_entry(ledger, &entry);
}

/* ---- ends ---------------------------------------------------------------------------------- */

/* Under the lock. */
static void add_to_slot(struct redis_ledger *ledger, struct slot *slot, const struct entry *entry)
{
    for (size_t i = 0; i < slot->n; i++) {
        struct entry *same = &slot->entries[i];

        if (same->account == entry->account) {
            same->n += entry->n;
            same->bytes += entry->bytes;
            same->large_bytes += entry->large_bytes;
            return;
        }
    }
    if (PEG__RESERVE(slot->entries, slot->n + 1, slot->capacity))
        slot->entries[slot->n++] = *entry;
    else
        return_entry(ledger, entry);
}

void redis_ledger_keep(struct redis_ledger *ledger, const struct redis_cost *cost,
                       int64_t keep_until_ms)
{
    const struct entry entry = entry_of(cost);
    int64_t end = keep_until_ms / SLOT_MS + 1;

    if (!cost->is_counted)
        return;
    pthread_mutex_lock(&ledger->lock);
    if (end < ledger->first)
        end = ledger->first;
    if (end >= ledger->first + N_SLOTS)
        end = ledger->first + N_SLOTS - 1;
    add_to_slot(ledger, &ledger->slots[end % N_SLOTS], &entry);
    pthread_mutex_unlock(&ledger->lock);
}

void redis_ledger_sweep(struct redis_ledger *ledger, int64_t now_ms)
{
    const int64_t now = now_ms / SLOT_MS;

    pthread_mutex_lock(&ledger->lock);
    if (now - ledger->first > N_SLOTS)
        ledger->first = now - N_SLOTS; /* at first; else every slot is behind us */
    for (; ledger->first <= now; ledger->first++) {
        struct slot *slot = &ledger->slots[ledger->first % N_SLOTS];

        for (size_t i = 0; i < slot->n; i++)
            return_entry(ledger, &slot->entries[i]);
        peg__free(slot->entries);
        *slot = (struct slot){0};
    }
    pthread_mutex_unlock(&ledger->lock);
}
