/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_REGISTRY_INTERNAL_H
#define PEG_CORE_REGISTRY_INTERNAL_H

/*
 * Tools by name in the order in which they came. Counted: several registries may share one, and
 * a sole owner may change it. Each entry holds a reference to its tool.
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
    _Atomic(struct peg__shared *) definitions; /* see definitions.c; NULL: not made yet */
};

enum { PEG__NO_INDEX = -1 };

/* The hash of a name, the same for all tables of the process. */
uint64_t peg__name_hash(peg_str name);

/* An empty one with room for n tools; NULL when out of memory. */
struct peg__table *peg__table_new(size_t n);
struct peg__table *peg__table_ref(struct peg__table *table);
struct peg__table *peg__table_unref(struct peg__table *table);
/* No other thread has it, and what others did with it is done. */
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

/* ---- layers ---------------------------------------------------------------- */

/*
 * What a registry holds: a base table that copies share, and on top of it what this one changed:
 * patches of base entries by index, and tools that were added. Both together stay small
 * (PEG__MAX_CHANGES), so that a copy, which copies them, costs the same for any number of tools;
 * a change too many makes a base of our own. A registry that has its base to itself and no changes
 * on top changes the base.
 *
 * Changing goes in two steps: peg__layers_prepare() gets all memory, what follows cannot fail.
 * What is dropped on the way goes to a bin, to be emptied when the registry's lock is free: the
 * last reference to a tool calls the host.
 */

enum { PEG__MAX_CHANGES = 64 };

struct peg__patch {
    size_t index;   /* in the base */
    peg_tool *tool; /* one reference; NULL: removed */
    bool is_hidden;
};

struct peg__layers {
    struct peg__table *base;
    struct peg__table *added;   /* ours alone; NULL if none */
    struct peg__patch *patches; /* by index, ascending */
    size_t n_patches;
    size_t patches_capacity;
    size_t n;            /* tools to be seen */
    bool base_is_pruned; /* its ephemeral tools are gone, but for patched ones */
    bool changes_base;   /* as prepared: the base is ours alone, and all there is */
};

/* Where a tool stands. Good until the layers are changed or prepared. */
struct peg__spot {
    enum peg__layer {
        PEG__NOWHERE,
        PEG__IN_BASE,
        PEG__IN_PATCH, /* index into patches */
        PEG__IN_ADDED,
    } layer;
    size_t index;
    peg_tool *tool; /* borrowed; NULL if nowhere */
    uint64_t hash;
    bool is_hidden;
};

/* Things to let go of later. */
struct peg__bin {
    peg_tool **tools;
    size_t n_tools;
    size_t capacity;
    peg_tool *few[2];
    struct peg__layers layers;
};

/* n: room for tools. False when out of memory. */
bool peg__layers_init(struct peg__layers *layers, size_t n);
void peg__layers_free(struct peg__layers *layers);
peg_status peg__layers_copy(const struct peg__layers *layers, struct peg__layers *ret_copy);

struct peg__spot peg__layers_find(const struct peg__layers *layers, peg_str name, uint64_t hash);

/* A loop may replace, remove or mark what it stands on:
 * for (struct peg__walk walk = {.layers = l}; peg__layers_next(&walk);) use(walk.spot); */
struct peg__walk {
    const struct peg__layers *layers;
    struct peg__spot spot;
    size_t next_base;
    size_t next_patch;
    size_t next_added;
};
bool peg__layers_next(struct peg__walk *walk);

/* ---- changing -------------------------------------------------------------------------------- */

/* Gets the memory for so many replacements, removals and marks, and so many new tools, and room in
 * the bin for what goes. PEG_ENOMEM changes nothing. */
peg_status peg__layers_prepare(struct peg__layers *layers, size_t n_changes, size_t n_new,
                               struct peg__bin *bin);
/* These take their own references. */
void peg__layers_append(struct peg__layers *layers, peg_tool *tool, uint64_t hash, bool is_hidden);
void peg__layers_replace(struct peg__layers *layers, const struct peg__spot *spot, peg_tool *tool,
                         struct peg__bin *bin);
void peg__layers_remove(struct peg__layers *layers, const struct peg__spot *spot,
                        struct peg__bin *bin);
void peg__layers_mark(struct peg__layers *layers, const struct peg__spot *spot, bool is_hidden);

/* Drops all ephemeral tools from sight, without memory. Hands out references to let go of. */
size_t peg__layers_prune(struct peg__layers *layers, peg_tool *ret_dropped[PEG__MAX_CHANGES]);
/* After that: takes pruned tools out of a base that is ours alone. Call it with *from = 0 until it
 * hands out fewer than PEG__MAX_CHANGES. */
size_t peg__layers_sweep(struct peg__layers *layers, size_t *from,
                         peg_tool *ret_dropped[PEG__MAX_CHANGES]);

void peg__bin_empty(struct peg__bin *bin);

#endif
