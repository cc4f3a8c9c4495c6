/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_MAP_H
#define PEG_BASE_MAP_H

/*
 * Names and what they stand for, in the order in which the names were added.
 * Names are copied; values are the caller's and never touched. A lookup is one
 * hash and, on average, less than two comparisons.
 *
 *   struct peg__map map = PEG__MAP(PEG_LIMIT_...);
 *   status = peg__map_add(&map, name, tool);
 *   PEG__MAP_EACH(&map, entry) use(entry->name, entry->value);
 *   peg__map_free(&map);
 *
 * Owned: peg__map_free() gives everything back and leaves an empty map. Threads:
 * any number may read a map while it does not change.
 */

#include "base/hash.h"
#include "pegboard/common.h"

struct peg__map_entry {
    peg_str name; /* borrowed from the map, NUL-terminated; ptr is NULL where one was removed */
    uint64_t hash;
    void *value; /* may be changed in place, also to NULL */
};

struct peg__map {
    size_t n;   /* names in the map */
    size_t max; /* adding beyond it is PEG_ELIMIT */
    /* The rest is the map's own. */
    struct peg__map_entry *entries; /* in order, with holes where names were removed */
    size_t n_entries;               /* holes included */
    size_t capacity;
    uint32_t *slots; /* index into entries + 1, or 0; a power of two of them */
    size_t n_slots;
    struct peg__hash_key key;
};

#define PEG__MAP(maximum)                                                                          \
    {                                                                                              \
        .max = (maximum)                                                                           \
    }

/* The entry of a name, or NULL; valid until the map is changed. */
struct peg__map_entry *peg__map_find(const struct peg__map *map, peg_str name);
/* The value of a name, or NULL. */
void *peg__map_get(const struct peg__map *map, peg_str name);

/* Adds at the end. PEG_EEXISTS leaves the old value; PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__map_add(struct peg__map *map, peg_str name, void *value) PEG_MUST_USE;
/* Adds, or replaces the value where the name stands. *ret_old (may be NULL) is the value that
 * was replaced, or NULL. PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__map_put(struct peg__map *map, peg_str name, void *value,
                        void **ret_old) PEG_MUST_USE;
/* Removes a name; the others keep their order. False if there was none. ret_value may be NULL. */
bool peg__map_remove(struct peg__map *map, peg_str name, void **ret_value);

/* The entry after `entry` in order, the first one after NULL; NULL at the end. The entry that
 * a loop stands on may be removed; adding ends the validity of the loop. */
struct peg__map_entry *peg__map_next(const struct peg__map *map,
                                     const struct peg__map_entry *entry);

#define PEG__MAP_EACH(map, entry)                                                                  \
    for (struct peg__map_entry *entry = peg__map_next((map), NULL); entry;                         \
         entry = peg__map_next((map), entry))

void peg__map_free(struct peg__map *map);

#endif
