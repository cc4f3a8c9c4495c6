/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_REGISTRY_TABLE_H
#define PEG_CORE_REGISTRY_TABLE_H

/*
 * Tools by name in the order in which they came. Counted: several registries may share one, and
 * whoever is alone with it may change it. Each entry holds a reference to its tool.
 */

#include <stdatomic.h>

#include "core/tool/tool.h"
#include "json/json.h"

struct peg__entry {
    peg_tool *tool; /* NULL in a hole, which a removed one leaves */
    uint64_t hash;
    bool is_hidden;
};

struct peg__table {
    atomic_uint n_refs;
    size_t n; /* tools; of them: */
    size_t n_ephemeral;
    size_t n_owned; /* see core/tool/tool.h */
    size_t n_hidden;
    struct peg__entry *entries; /* in order */
    size_t n_entries;           /* holes included */
    size_t capacity;
    uint32_t *slots; /* index into entries + 1, or 0; twice the capacity */
    _Atomic(struct peg__shared *) definitions; /* see registry_definitions.c; NULL: not made yet */
};

enum { PEG__NO_INDEX = -1 };

/* The hash of a name, the same for all tables of the process. */
uint64_t peg__name_hash(peg_str name);

/* An empty one with room for n tools; NULL when out of memory. */
struct peg__table *peg__table_new(size_t n);
struct peg__table *peg__table_ref(struct peg__table *table);
struct peg__table *peg__table_unref(struct peg__table *table);
/* Nobody else has it, and what others did with it is done. */
bool peg__table_is_private(struct peg__table *table);

/* The index of a name, or PEG__NO_INDEX. */
ptrdiff_t peg__table_find(const struct peg__table *table, peg_str name, uint64_t hash);

/* ---- changing: needs a private one ----------------------------------------------------------- */

/* Room for n tools more. Indexes are only good until then. */
peg_status peg__table_reserve(struct peg__table *table, size_t n);
/* Requires room; takes over a reference. */
void peg__table_append(struct peg__table *table, peg_tool *tool, uint64_t hash, bool is_hidden);
/* Both hand back the reference that the table had. */
peg_tool *peg__table_replace(struct peg__table *table, size_t index, peg_tool *tool);
peg_tool *peg__table_remove(struct peg__table *table, size_t index);
void peg__table_mark(struct peg__table *table, size_t index, bool is_hidden);

#endif
