/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/store/internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

struct peg__cached {
    const void *thing; /* NULL: free */
    uint64_t round;    /* when it was last asked for */
    uint32_t size;
    enum peg__cache_kind kind;
    unsigned char digest[PEG_SHA256_BYTES];
};

enum { FIRST_CAPACITY = 64 };

void peg__cache_start(struct peg__cache *cache)
{
    cache->round++; /* from 1 on */
}

/* Addresses differ above their lowest four bits. No input chooses them. */
static size_t place_of(const struct peg__cache *cache, const void *thing)
{
    return (size_t)(((uintptr_t)thing >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20) &
           (cache->capacity - 1);
}

/* Where it stands, or where it would. Requires capacity. */
static struct peg__cached *find_cached(const struct peg__cache *cache, const void *thing)
{
    size_t i = place_of(cache, thing);

    while (cache->entries[i].thing && cache->entries[i].thing != thing)
        i = (i + 1) & (cache->capacity - 1);
    return &cache->entries[i];
}

const unsigned char *peg__cache_find(struct peg__cache *cache, const void *thing)
{
    struct peg__cached *entry;

    if (!cache->capacity)
        return NULL;
    entry = find_cached(cache, thing);
    if (!entry->thing)
        return NULL;
    entry->round = cache->round;
    return entry->digest;
}

static void release_entry(const struct peg__cached *entry)
{
    if (entry->kind == PEG__CACHE_BLOCK)
        peg_block_unref(peg__unconst(entry->thing));
    else
        peg_bag_unref(peg__unconst(entry->thing));
}

/* Moves what is to stay to a table of another size. False if there is no memory for it. */
static bool move(struct peg__cache *cache, size_t capacity, uint64_t since)
{
    struct peg__cache to = {.capacity = capacity, .round = cache->round, .full_in = cache->full_in};

    to.entries = peg__alloc_zero(capacity, sizeof(*to.entries));
    if (!to.entries)
        return false;
    for (size_t i = 0; i < cache->capacity; i++) {
        const struct peg__cached *entry = &cache->entries[i];

        if (entry->thing && entry->round >= since) {
            *find_cached(&to, entry->thing) = *entry;
            to.n++;
            to.n_bytes += entry->size;
        } else if (entry->thing) {
            release_entry(entry);
        }
    }
    peg__free(cache->entries);
    *cache = to;
    return true;
}

static bool is_full(const struct peg__cache *cache, size_t size)
{
    return cache->n >= PEG_LIMIT_STORE_CACHE || cache->n_bytes + size > PEG_LIMIT_STORE_CACHE_BYTES;
}

/* Capacity for one more, by more memory or by dropping entries of other turns. */
static bool make_capacity(struct peg__cache *cache, size_t size)
{
    if (size > PEG_LIMIT_STORE_CACHE_BYTES || cache->full_in == cache->round)
        return false;
    if (!cache->capacity && !move(cache, FIRST_CAPACITY, 0))
        return false;
    if (is_full(cache, size) &&
        (!move(cache, cache->capacity, cache->round) || is_full(cache, size))) {
        cache->full_in = cache->round;
        return false;
    }
    /* No more than half of the places are taken. */
    return (cache->n + 1) * 2 <= cache->capacity || move(cache, cache->capacity * 2, 0);
}

void peg__cache_add(struct peg__cache *cache, enum peg__cache_kind kind, const void *thing,
                    const unsigned char digest[PEG_SHA256_BYTES], size_t size)
{
    struct peg__cached *entry;

    if (!make_capacity(cache, size))
        return;
    entry = find_cached(cache, thing);
    if (entry->thing)
        return;
    *entry = (struct peg__cached){
        .thing = thing, .round = cache->round, .size = (uint32_t)size, .kind = kind};
    memcpy(entry->digest, digest, sizeof(entry->digest));
    if (kind == PEG__CACHE_BLOCK)
        peg_block_ref(peg__unconst(thing));
    else
        peg_bag_ref(peg__unconst(thing));
    cache->n++;
    cache->n_bytes += size;
}

void peg__cache_free(struct peg__cache *cache)
{
    for (size_t i = 0; i < cache->capacity; i++)
        if (cache->entries[i].thing)
            release_entry(&cache->entries[i]);
    peg__free(cache->entries);
    *cache = (struct peg__cache){0};
}
