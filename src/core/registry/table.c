/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Open addressing with linear probing over an array of entries, as base/map.c: the slots hold
 * indexes, so that entries stay in order. It is not that map because it is shared, counts what
 * it holds, and takes names from the tools instead of copying them.
 */

#include "core/registry/internal.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { MIN_CAPACITY = 8 };

/* ---- names ----------------------------------------------------------------------------------- */

static struct peg__hash_key name_key;
static pthread_once_t name_key_once = PTHREAD_ONCE_INIT;

static void make_name_key(void)
{
    name_key = peg__hash_key_new();
}

uint64_t peg__name_hash(peg_str name)
{
    pthread_once(&name_key_once, make_name_key);
    return peg__hash(name_key, name);
}

/* ---- references ------------------------------------------------------------------------------ */

struct peg__table *peg__table_new(size_t n)
{
    struct peg__table *table = peg__alloc_zero(1, sizeof(*table));

    if (!table)
        return NULL;
    atomic_init(&table->n_refs, 1);
    if (peg__table_reserve(table, n) != PEG_OK)
        return peg__table_unref(table);
    return table;
}

struct peg__table *peg__table_ref(struct peg__table *table)
{
    atomic_fetch_add_explicit(&table->n_refs, 1, memory_order_relaxed);
    return table;
}

struct peg__table *peg__table_unref(struct peg__table *table)
{
    if (!table || !peg__refs_drop(&table->n_refs))
        return NULL;
    for (size_t i = 0; i < table->n_entries; i++)
        peg_tool_unref(table->entries[i].tool);
    peg__free(table->entries);
    peg__free(table->slots);
    peg__shared_unref(atomic_load(&table->definitions));
    peg__free(table);
    return NULL;
}

bool peg__table_is_private(struct peg__table *table)
{
    return atomic_load_explicit(&table->n_refs, memory_order_acquire) == 1;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* What a call looks at next. In a large catalog none of it is in a cache: so it comes while the
 * name is compared. */
static void prefetch(const peg_tool *tool)
{
    __builtin_prefetch(&tool->def.run);
    __builtin_prefetch(&tool->def.timeout_ms);
}

ptrdiff_t peg__table_find(const struct peg__table *table, peg_str name, uint64_t hash)
{
    const size_t mask = table->capacity * 2 - 1;

    if (table->n == 0)
        return PEG__NO_INDEX;
    for (size_t i = hash & mask; table->slots[i]; i = (i + 1) & mask) {
        const struct peg__entry *entry = &table->entries[table->slots[i] - 1];

        if (entry->hash != hash || !entry->tool)
            continue;
        prefetch(entry->tool);
        if (peg__str_eq(entry->tool->name, name))
            return entry - table->entries;
    }
    return PEG__NO_INDEX;
}

/* ---- changing -------------------------------------------------------------------------------- */

static void point_slot_at(struct peg__table *table, size_t index)
{
    const size_t mask = table->capacity * 2 - 1;
    size_t i = table->entries[index].hash & mask;

    while (table->slots[i])
        i = (i + 1) & mask;
    table->slots[i] = (uint32_t)(index + 1);
}

/* Closes the holes and makes the slots anew. */
static void tidy(struct peg__table *table)
{
    size_t n = 0;

    for (size_t i = 0; i < table->n_entries; i++)
        if (table->entries[i].tool)
            table->entries[n++] = table->entries[i];
    table->n_entries = n;
    memset(table->slots, 0, table->capacity * 2 * sizeof(*table->slots));
    for (size_t i = 0; i < n; i++)
        point_slot_at(table, i);
}

static peg_status grow_table(struct peg__table *table, size_t want)
{
    size_t capacity = table->capacity ? table->capacity : MIN_CAPACITY;
    struct peg__entry *entries;
    uint32_t *slots;

    while (capacity < want)
        capacity *= 2;
    slots = peg__alloc(capacity * 2 * sizeof(*slots));
    entries = slots ? peg__realloc(table->entries, capacity * sizeof(*entries)) : NULL;
    if (!entries) {
        peg__free(slots);
        return PEG_ENOMEM;
    }
    peg__free(table->slots);
    table->slots = slots;
    table->entries = entries;
    table->capacity = capacity;
    tidy(table);
    return PEG_OK;
}

peg_status peg__table_reserve(struct peg__table *table, size_t n)
{
    if (table->n_entries + n <= table->capacity)
        return PEG_OK;
    /* Only where it frees a good part: else a nearly full table would be tidied for each tool. */
    if (table->capacity && table->n + n <= table->capacity / 4 * 3) {
        tidy(table);
        return PEG_OK;
    }
    return grow_table(table, table->n + n + table->n / 2);
}

/* Every change comes here: what was written down about the tools is no longer true. */
static void count(struct peg__table *table, const struct peg__entry *entry, int by)
{
    if (atomic_load_explicit(&table->definitions, memory_order_relaxed))
        peg__shared_unref(atomic_exchange(&table->definitions, NULL));
    table->n += (size_t)by;
    if (entry->tool->def.ephemeral)
        table->n_ephemeral += (size_t)by;
    if (entry->tool->owner)
        table->n_owned += (size_t)by;
    if (entry->is_hidden)
        table->n_hidden += (size_t)by;
}

void peg__table_append(struct peg__table *table, peg_tool *tool, uint64_t hash, bool is_hidden)
{
    struct peg__entry *entry = &table->entries[table->n_entries++];

    *entry = (struct peg__entry){tool, hash, is_hidden};
    count(table, entry, 1);
    point_slot_at(table, table->n_entries - 1);
}

peg_tool *peg__table_replace(struct peg__table *table, size_t index, peg_tool *tool)
{
    struct peg__entry *entry = &table->entries[index];
    peg_tool *old = entry->tool;

    count(table, entry, -1);
    entry->tool = tool;
    count(table, entry, 1);
    return old;
}

peg_tool *peg__table_remove(struct peg__table *table, size_t index)
{
    struct peg__entry *entry = &table->entries[index];
    peg_tool *old = entry->tool;

    count(table, entry, -1);
    entry->tool = NULL;
    return old;
}

void peg__table_mark(struct peg__table *table, size_t index, bool is_hidden)
{
    struct peg__entry *entry = &table->entries[index];

    count(table, entry, -1);
    entry->is_hidden = is_hidden;
    count(table, entry, 1);
}
