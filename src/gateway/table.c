/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/table.h"

#include <string.h>

#include "base/mem.h"

enum { FIRST_BUCKETS = 64 };

void gw_table_init(struct gw_table *table)
{
    *table = (struct gw_table){.key = peg__hash_key_new()};
}

void gw_table_free(struct gw_table *table)
{
    peg__free(table->buckets);
    *table = (struct gw_table){.key = table->key};
}

static uint64_t hash_of(const struct gw_table *table, const struct bus_id *id, uint32_t attempt)
{
    return bus_id_hash(id, table->key) + attempt;
}

static void link_entry(struct gw_table *table, struct gw_entry *entry)
{
    struct gw_entry **bucket = &table->buckets[entry->hash & (table->n_buckets - 1)];

    entry->next = *bucket;
    *bucket = entry;
}

static peg_status grow(struct gw_table *table)
{
    const size_t n = table->n_buckets ? table->n_buckets * 2 : FIRST_BUCKETS;
    struct gw_entry **old = table->buckets;
    const size_t n_old = table->n_buckets;
    struct gw_entry **buckets = (struct gw_entry **)peg__alloc_zero(n, sizeof(struct gw_entry *));

    if (!buckets)
        return PEG_ENOMEM;
    table->buckets = buckets;
    table->n_buckets = n;
    for (size_t i = 0; i < n_old; i++)
        for (struct gw_entry *entry = old[i], *next; entry; entry = next) {
            next = entry->next;
            link_entry(table, entry);
        }
    peg__free(old);
    return PEG_OK;
}

peg_status gw_table_add(struct gw_table *table, struct gw_entry *entry)
{
    if (table->n >= table->n_buckets && grow(table) && !table->n_buckets)
        return PEG_ENOMEM;
    entry->hash = hash_of(table, &entry->id, entry->attempt);
    link_entry(table, entry);
    table->n++;
    return PEG_OK;
}

void gw_table_remove(struct gw_table *table, struct gw_entry *entry)
{
    struct gw_entry **at = &table->buckets[entry->hash & (table->n_buckets - 1)];

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    entry->next = NULL;
    table->n--;
}

static bool is_same(const struct gw_entry *entry, uint64_t hash, const struct bus_id *id,
                    uint32_t attempt)
{
    return entry->hash == hash && entry->attempt == attempt && bus_id_equal(&entry->id, id);
}

struct gw_entry *gw_table_find(const struct gw_table *table, const struct bus_id *id,
                               uint32_t attempt)
{
    const uint64_t hash = hash_of(table, id, attempt);
    struct gw_entry *entry =
        table->n_buckets ? table->buckets[hash & (table->n_buckets - 1)] : NULL;

    while (entry && !is_same(entry, hash, id, attempt))
        entry = entry->next;
    return entry;
}

struct gw_entry *gw_table_again(const struct gw_entry *entry)
{
    struct gw_entry *next = entry->next;

    while (next && !is_same(next, entry->hash, &entry->id, entry->attempt))
        next = next->next;
    return next;
}

struct gw_entry *gw_table_any(const struct gw_table *table)
{
    for (size_t i = 0; table->n && i < table->n_buckets; i++)
        if (table->buckets[i])
            return table->buckets[i];
    return NULL;
}
