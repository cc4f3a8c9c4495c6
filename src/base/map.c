/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Open addressing with linear probing over an array of entries. The slots hold
 * indexes only, so the entries stay in order and a table of slots is cheap to
 * make anew.
 *
 * Removing leaves a hole in the entries, and the slot keeps pointing at it: that
 * keeps later names of the same probe reachable. Holes go when the entries are
 * full: they are closed up, and only if there were few of them does the array grow.
 */

#include "base/map.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* Slots are 32 bits wide and hold index + 1; half of them stay free. */
enum { MAX_ENTRIES = 1 << 30, MIN_CAPACITY = 8 };

static bool is_hole(const struct peg__map_entry *entry)
{
    return !entry->name.ptr;
}

static struct peg__map_entry *find_entry(const struct peg__map *map, peg_str name, uint64_t hash)
{
    const size_t mask = map->n_slots - 1;

    if (!map->slots)
        return NULL;
    for (size_t i = hash & mask; map->slots[i]; i = (i + 1) & mask) {
        struct peg__map_entry *entry = &map->entries[map->slots[i] - 1];

        if (entry->hash == hash && !is_hole(entry) && peg__str_eq(entry->name, name))
            return entry;
    }
    return NULL;
}

struct peg__map_entry *peg__map_find(const struct peg__map *map, peg_str name)
{
    return map->n ? find_entry(map, name, peg__hash(map->key, name)) : NULL;
}

void *peg__map_get(const struct peg__map *map, peg_str name)
{
    const struct peg__map_entry *entry = peg__map_find(map, name);

    return entry ? entry->value : NULL;
}

static void point_slot_at(struct peg__map *map, size_t index)
{
    const size_t mask = map->n_slots - 1;
    size_t i = map->entries[index].hash & mask;

    while (map->slots[i])
        i = (i + 1) & mask;
    map->slots[i] = (uint32_t)(index + 1);
}

static void close_holes(struct peg__map *map)
{
    size_t n = 0;

    for (size_t i = 0; i < map->n_entries; i++) {
        if (!is_hole(&map->entries[i]))
            map->entries[n++] = map->entries[i];
    }
    map->n_entries = n;
    memset(map->slots, 0, map->n_slots * sizeof(*map->slots));
    for (size_t i = 0; i < n; i++)
        point_slot_at(map, i);
}

static peg_status grow_map(struct peg__map *map)
{
    const size_t capacity = map->capacity ? map->capacity * 2 : MIN_CAPACITY;
    struct peg__map_entry *entries;
    uint32_t *slots;

    if (capacity > MAX_ENTRIES)
        return PEG_ELIMIT;
    slots = peg__alloc_zero(capacity * 2, sizeof(*slots));
    if (!slots)
        return PEG_ENOMEM;
    entries = peg__realloc(map->entries, capacity * sizeof(*entries));
    if (!entries) {
        peg__free(slots);
        return PEG_ENOMEM;
    }
    peg__free(map->slots);
    map->slots = slots;
    map->n_slots = capacity * 2;
    map->entries = entries;
    map->capacity = capacity;
    close_holes(map);
    return PEG_OK;
}

/* Room for one entry more. Closing holes pays only when it frees a good part of the array:
 * otherwise a map that is nearly full would close one hole for each name. */
static peg_status make_room(struct peg__map *map)
{
    if (map->n_entries < map->capacity)
        return PEG_OK;
    if (map->capacity && map->n <= map->capacity / 4 * 3) {
        close_holes(map);
        return PEG_OK;
    }
    return grow_map(map);
}

static peg_status append(struct peg__map *map, peg_str name, uint64_t hash, void *value)
{
    peg_status status;
    char *copy;

    if (map->n >= map->max)
        return PEG_ELIMIT;
    status = make_room(map);
    if (status)
        return status;
    copy = peg__alloc(name.len + 1);
    if (!copy)
        return PEG_ENOMEM;
    if (name.len)
        memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    map->entries[map->n_entries] = (struct peg__map_entry){{copy, name.len}, hash, value};
    point_slot_at(map, map->n_entries);
    map->n_entries++;
    map->n++;
    return PEG_OK;
}

/* An empty map has no key yet, so that PEG__MAP can initialise a static. */
static uint64_t hash_name(struct peg__map *map, peg_str name)
{
    if (!map->capacity)
        map->key = peg__hash_key_new();
    return peg__hash(map->key, name);
}

peg_status peg__map_add(struct peg__map *map, peg_str name, void *value)
{
    const uint64_t hash = hash_name(map, name);

    return find_entry(map, name, hash) ? PEG_EEXISTS : append(map, name, hash, value);
}

peg_status peg__map_put(struct peg__map *map, peg_str name, void *value, void **ret_old)
{
    const uint64_t hash = hash_name(map, name);
    struct peg__map_entry *entry = find_entry(map, name, hash);
    void *old = entry ? entry->value : NULL;
    peg_status status = PEG_OK;

    if (entry)
        entry->value = value;
    else
        status = append(map, name, hash, value);
    if (status == PEG_OK && ret_old)
        *ret_old = old;
    return status;
}

static void free_name(struct peg__map_entry *entry)
{
    peg__free(peg__unconst(entry->name.ptr));
    entry->name = (peg_str){NULL, 0};
}

bool peg__map_remove(struct peg__map *map, peg_str name, void **ret_value)
{
    struct peg__map_entry *entry = peg__map_find(map, name);

    if (!entry)
        return false;
    if (ret_value)
        *ret_value = entry->value;
    free_name(entry);
    map->n--;
    return true;
}

struct peg__map_entry *peg__map_next(const struct peg__map *map, const struct peg__map_entry *entry)
{
    size_t i = entry ? (size_t)(entry - map->entries) + 1 : 0;

    while (i < map->n_entries && is_hole(&map->entries[i]))
        i++;
    return i < map->n_entries ? &map->entries[i] : NULL;
}

void peg__map_free(struct peg__map *map)
{
    for (size_t i = 0; i < map->n_entries; i++)
        free_name(&map->entries[i]);
    peg__free(map->entries);
    peg__free(map->slots);
    *map = (struct peg__map)PEG__MAP(map->max);
}
