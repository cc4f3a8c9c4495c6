/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CALLS_TABLE_H
#define PEG_GATEWAY_CALLS_TABLE_H

/* Calls by id and attempt. The entries are members of what they stand for, so taking one out cannot
 * fail, and several may have one key. */

#include "base/hash.h"
#include "bus/bus.h"

struct gw_entry {
    struct bus_id id;
    uint32_t attempt;      /* 0 where it does not matter */
    uint64_t hash;         /* the rest is the table's */
    struct gw_entry *next; /* with the same key */
    struct gw_entry *prev;
};

/* What is compared first lies here, side by side: an entry is only touched if it is the one. */
struct gw_slot {
    uint64_t hash;
    struct gw_entry *first; /* NULL: it is free */
};

struct gw_table {
    struct peg__hash_key key;
    struct gw_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n_keys;
    size_t n; /* entries */
};

void gw_table_init(struct gw_table *table);
/* The memory of the table; its entries are others'. */
void gw_table_free(struct gw_table *table);
/* entry->id and entry->attempt are set. PEG_ENOMEM only. */
peg_status gw_table_add(struct gw_table *table, struct gw_entry *entry) PEG_MUST_USE;
void gw_table_remove(struct gw_table *table, struct gw_entry *entry);
/* One of those with the key, the one that was added first as long as it is there, and the next of
 * them; NULL: none. */
struct gw_entry *gw_table_find(const struct gw_table *table, const struct bus_id *id,
                               uint32_t attempt);
struct gw_entry *gw_table_again(const struct gw_entry *entry);
/* It is asked for soon: memory may be on its way meanwhile. */
void gw_table_expect(const struct gw_table *table, const struct bus_id *id, uint32_t attempt);
/* Any entry, or NULL if it is empty: for emptying it. */
struct gw_entry *gw_table_any(const struct gw_table *table);

#endif
