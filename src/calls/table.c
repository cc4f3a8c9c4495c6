/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/table.h"

#include <string.h>

#include "base/mem.h"

enum { FIRST_SLOTS = 64 };

void calls_table_init(struct calls_table *table)
{
    *table = (struct calls_table){.key = peg__hash_key_new()};
}

void calls_table_free(struct calls_table *table)
{
    peg__free(table->slots);
    *table = (struct calls_table){.key = table->key};
}

/* Attempts of one id, which anybody may list by the thousand, are spread: side by side they would
 * be in the way of others. */
static uint64_t hash_entry(const struct calls_table *table, const struct bus_id *id,
                           uint32_t attempt)
{
    const uint64_t hash = (bus_id_hash(id, table->key) ^ attempt) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ hash >> 32;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static size_t slot_after(const struct calls_table *table, size_t at)
{
    return (at + 1) & (table->n_slots - 1);
}

static bool is_same_key(const struct calls_slot *slot, uint64_t hash, const struct bus_id *id,
                        uint32_t attempt)
{
    return slot->hash == hash && slot->first->attempt == attempt &&
           bus_id_equal(&slot->first->id, id);
}

/* That of the key, or the free one where it belongs. One is always free. */
static size_t slot_of_key(const struct calls_table *table, uint64_t hash, const struct bus_id *id,
                          uint32_t attempt)
{
    size_t at = hash & (table->n_slots - 1);

    while (table->slots[at].first && !is_same_key(&table->slots[at], hash, id, attempt))
        at = slot_after(table, at);
    return at;
}

static peg_status grow_table(struct calls_table *table)
{
    const size_t n = table->n_slots ? table->n_slots * 2 : FIRST_SLOTS;
    struct calls_slot *slots = (struct calls_slot *)peg__alloc_zero(n, sizeof(*slots));

    if (!slots)
        return PEG_ENOMEM;
    for (size_t i = 0; i < table->n_slots; i++) {
        size_t at = table->slots[i].hash & (n - 1);

        if (!table->slots[i].first)
            continue;
        while (slots[at].first)
            at = (at + 1) & (n - 1);
        slots[at] = table->slots[i];
    }
    peg__free(table->slots);
    table->slots = slots;
    table->n_slots = n;
    return PEG_OK;
}

/* Those behind a slot that becomes free move up, so that they are found from where they belong. */
static void clear_slot(struct calls_table *table, size_t at)
{
    const size_t mask = table->n_slots - 1;

    for (size_t i = slot_after(table, at); table->slots[i].first; i = slot_after(table, i)) {
        const size_t distance = (i - table->slots[i].hash) & mask;

        if (distance >= ((i - at) & mask)) {
            table->slots[at] = table->slots[i];
            at = i;
        }
    }
    table->slots[at].first = NULL;
    table->n_keys--;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Anybody may ask for one call many thousand times, and go: none of them is looked for among the
 * others. The first one, which mostly coordinates the call, stays first: it is the one that
 * messages are for. */
static void link_entry(struct calls_slot *slot, struct calls_entry *entry)
{
    struct calls_entry *first = slot->first;

    entry->prev = first;
    entry->next = first ? first->next : NULL;
    if (entry->next)
        entry->next->prev = entry;
    if (first)
        first->next = entry;
    else
        slot->first = entry;
}

/* Half of the slots are free, unless there is no memory for that. */
peg_status calls_table_add(struct calls_table *table, struct calls_entry *entry)
{
    struct calls_slot *slot;

    if (table->n_keys >= table->n_slots / 2 && grow_table(table) &&
        table->n_keys + 1 >= table->n_slots)
        return PEG_ENOMEM;
    entry->hash = hash_entry(table, &entry->id, entry->attempt);
    slot = &table->slots[slot_of_key(table, entry->hash, &entry->id, entry->attempt)];
    table->n_keys += !slot->first;
    table->n++;
    link_entry(slot, entry);
    slot->hash = entry->hash;
    return PEG_OK;
}

static void remove_first(struct calls_table *table, const struct calls_entry *entry)
{
    const size_t place = slot_of_key(table, entry->hash, &entry->id, entry->attempt);

    table->slots[place].first = entry->next;
    if (!entry->next)
        clear_slot(table, place);
}

void calls_table_remove(struct calls_table *table, struct calls_entry *entry)
{
    if (entry->prev)
        entry->prev->next = entry->next;
    else
        remove_first(table, entry);
    if (entry->next)
        entry->next->prev = entry->prev;
    entry->next = NULL;
    entry->prev = NULL;
    table->n--;
}

struct calls_entry *calls_table_find(const struct calls_table *table, const struct bus_id *id,
                                     uint32_t attempt)
{
    if (!table->n_slots)
        return NULL;
    return table->slots[slot_of_key(table, hash_entry(table, id, attempt), id, attempt)].first;
}

void calls_table_expect(const struct calls_table *table, const struct bus_id *id, uint32_t attempt)
{
    if (table->n_slots)
        __builtin_prefetch(&table->slots[hash_entry(table, id, attempt) & (table->n_slots - 1)]);
}

struct calls_entry *calls_table_again(const struct calls_entry *entry)
{
    return entry->next;
}

struct calls_entry *calls_table_any(const struct calls_table *table)
{
    for (size_t i = 0; table->n && i < table->n_slots; i++)
        if (table->slots[i].first)
            return table->slots[i].first;
    return NULL;
}
