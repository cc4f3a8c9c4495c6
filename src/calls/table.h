/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_TABLE_H
#define PEG_CALLS_TABLE_H

/* Calls by id and attempt. The entries are members of what they stand for, so taking one out cannot
 * fail, and several may have one key. */

#include "base/hash.h"
#include "bus/bus.h"

struct calls_entry {
    struct bus_id id;
    uint32_t attempt;         /* 0 where it does not matter */
    uint64_t hash;            /* the rest is the table's */
    struct calls_entry *next; /* with the same key */
    struct calls_entry *prev;
};

/* What is compared first lies here, side by side: an entry is only touched if it is the one. */
struct calls_slot {
    uint64_t hash;
    struct calls_entry *first; /* NULL: it is free */
};

struct calls_table {
    struct peg__hash_key key;
    struct calls_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n_keys;
    size_t n; /* entries */
};

void calls_table_init(struct calls_table *table);
/* The memory of the table; its entries are others'. */
void calls_table_free(struct calls_table *table);
/* entry->id and entry->attempt are set. PEG_ENOMEM only. */
peg_status calls_table_add(struct calls_table *table, struct calls_entry *entry) PEG_MUST_USE;
void calls_table_remove(struct calls_table *table, struct calls_entry *entry);
/* One of those with the key, the one that was added first as long as it is there, and the next of
 * them; NULL: none. */
struct calls_entry *calls_table_find(const struct calls_table *table, const struct bus_id *id,
                                     uint32_t attempt);
struct calls_entry *calls_table_again(const struct calls_entry *entry);
/* It is asked for soon: memory may be on its way meanwhile. */
void calls_table_expect(const struct calls_table *table, const struct bus_id *id, uint32_t attempt);
/* Any entry, or NULL if it is empty: for emptying it. */
struct calls_entry *calls_table_any(const struct calls_table *table);

#endif
