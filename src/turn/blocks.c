/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array of references and, beside it, one hash table over all names of all blocks: open
 * addressing, linear probing, a slot holds a part of the hash and which name of which block
 * it is. Names are not copied; the block has them.
 *
 * A name that several blocks share has one slot, for the one that peg__blocks_find() returns;
 * when that goes, the next is looked for. So what shares a name costs nothing while it is added.
 * Removing a block moves those behind it, in the array and in the slots: linear, and rare.
 */

#include "turn/turn.h"

#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { N_NAMES = PEG__NAME_HANDLE + 1, MIN_BLOCKS = 8, MIN_SLOTS = 32 };

/* `what` of a slot: (index of the block) * 4 + (which name) + 1. */
enum { FREE = 0 };
#define REMOVED UINT32_MAX

struct slot {
    uint32_t hash;
    uint32_t what;
};

/* Shared, copy on write. */
struct peg__blocks {
    atomic_uint n_refs;
    size_t n;
    size_t capacity;
    peg_block **items;
    struct slot *slots;
    size_t n_slots; /* a power of two */
    size_t n_used;  /* slots that are not free; removed ones count */
    size_t n_names; /* slots that stand for a name */
    struct peg__hash_key key;
};

/* ---- names ---------------------------------------------------------------------- */

peg_str peg__block_name(const peg_block *block, enum peg__block_name which)
{
    peg_record *record = peg_block_record(block);

    if (which == PEG__NAME_ID)
        return peg_block_id(block);
    if (which == PEG__NAME_ANSWER)
        return record ? peg_record_key(record) : (peg_str){"", 0};
    if (record)
        return peg_record_handle(record);
    return peg_block_artifact(block) ? peg_block_id(block) : (peg_str){"", 0};
}

static uint32_t hash_of(const struct peg__blocks *list, enum peg__block_name which, peg_str name)
{
    return (uint32_t)peg__hash(list->key, name) + (uint32_t)which;
}

static size_t block_of(const struct slot *slot)
{
    return (slot->what - 1) / 4;
}

static enum peg__block_name name_of(const struct slot *slot)
{
    return (enum peg__block_name)((slot->what - 1) % 4);
}

static uint32_t what_of(size_t i, enum peg__block_name which)
{
    return (uint32_t)(i * 4 + (size_t)which + 1);
}

static struct slot *find_slot(const struct peg__blocks *list, enum peg__block_name which,
                              peg_str name, uint32_t hash)
{
    const size_t mask = list->n_slots - 1;

    for (size_t i = hash & mask; list->slots[i].what != FREE; i = (i + 1) & mask) {
        struct slot *slot = &list->slots[i];

        if (slot->hash != hash || slot->what == REMOVED || name_of(slot) != which)
            continue;
        if (peg__str_eq(peg__block_name(list->items[block_of(slot)], which), name))
            return slot;
    }
    return NULL;
}

size_t peg__blocks_find(const struct peg__blocks *list, enum peg__block_name which, peg_str name)
{
    const struct slot *slot;

    if (!list || !name.len)
        return PEG__NO_BLOCK;
    slot = find_slot(list, which, name, hash_of(list, which, name));
    return slot ? block_of(slot) : PEG__NO_BLOCK;
}

static struct slot *free_slot(struct slot *slots, size_t n_slots, uint32_t hash)
{
    const size_t mask = n_slots - 1;
    size_t i = hash & mask;

    while (slots[i].what != FREE)
        i = (i + 1) & mask;
    return &slots[i];
}

/* Is block i the one to return of two that share a name? */
static bool goes_before(const struct peg__blocks *list, enum peg__block_name which, size_t i,
                        size_t other)
{
    const bool has = which == PEG__NAME_HANDLE && peg_block_artifact(list->items[i]);
    const bool other_has = which == PEG__NAME_HANDLE && peg_block_artifact(list->items[other]);

    return has == other_has ? i < other : has;
}

static void claim_name(struct peg__blocks *list, size_t i, enum peg__block_name which)
{
    const peg_str name = peg__block_name(list->items[i], which);
    struct slot *slot;
    uint32_t hash;

    if (!name.len)
        return;
    hash = hash_of(list, which, name);
    slot = find_slot(list, which, name, hash);
    if (slot) {
        if (goes_before(list, which, i, block_of(slot)))
            slot->what = what_of(i, which);
        return;
    }
    *free_slot(list->slots, list->n_slots, hash) = (struct slot){hash, what_of(i, which)};
    list->n_used++;
    list->n_names++;
}

size_t peg__blocks_find_other(const struct peg__blocks *list, enum peg__block_name which,
                              peg_str name, size_t except)
{
    size_t found = peg__blocks_find(list, which, name);

    if (found != except || found == PEG__NO_BLOCK)
        return found;
    found = PEG__NO_BLOCK;
    for (size_t i = 0; which != PEG__NAME_ID && i < peg__blocks_len(list); i++) {
        if (i == except || !peg__str_eq(peg__block_name(list->items[i], which), name))
            continue;
        if (found == PEG__NO_BLOCK || goes_before(list, which, i, found))
            found = i;
    }
    return found;
}

static void release_name(struct peg__blocks *list, size_t i, enum peg__block_name which)
{
    const peg_str name = peg__block_name(list->items[i], which);
    struct slot *slot;
    size_t heir;

    if (!name.len)
        return;
    slot = find_slot(list, which, name, hash_of(list, which, name));
    if (!slot || block_of(slot) != i)
        return;
    heir = peg__blocks_find_other(list, which, name, i);
    slot->what = heir == PEG__NO_BLOCK ? REMOVED : what_of(heir, which);
    list->n_names -= heir == PEG__NO_BLOCK;
}

static void claim_names(struct peg__blocks *list, size_t i)
{
    for (int which = 0; which < N_NAMES; which++)
        claim_name(list, i, (enum peg__block_name)which);
}

static void release_names(struct peg__blocks *list, size_t i)
{
    for (int which = 0; which < N_NAMES; which++)
        release_name(list, i, (enum peg__block_name)which);
}

/* ---- capacity ------------------------------------------------------------------- */

static void list_free(struct peg__blocks *list)
{
    for (size_t i = 0; i < list->n; i++)
        peg_block_unref(list->items[i]);
    peg__free(list->items);
    peg__free(list->slots);
    peg__free(list);
}

struct peg__blocks *peg__blocks_ref(struct peg__blocks *list)
{
    if (list)
        atomic_fetch_add_explicit(&list->n_refs, 1, memory_order_relaxed);
    return list;
}

struct peg__blocks *peg__blocks_unref(struct peg__blocks *list)
{
    if (list && atomic_fetch_sub_explicit(&list->n_refs, 1, memory_order_acq_rel) == 1)
        list_free(list);
    return NULL;
}

/* At most two thirds of the slots are used, so that every probe ends soon. */
static bool has_slots_for(size_t n_names, size_t n_slots)
{
    return (n_names + N_NAMES) * 3 <= n_slots * 2;
}

/* A table without removed names with capacity for one block more; NULL when out of memory. */
static struct slot *copy_slots(const struct peg__blocks *list, size_t *ret_n_slots)
{
    size_t n_slots = MIN_SLOTS;
    struct slot *slots;

    /* Half as many again, so that the next table is not needed at once. */
    while (!has_slots_for(list->n_names + list->n_names / 2, n_slots))
        n_slots *= 2;
    slots = peg__alloc_zero(n_slots, sizeof(*slots));
    if (!slots)
        return NULL;
    for (size_t i = 0; i < list->n_slots; i++) {
        const struct slot *slot = &list->slots[i];

        if (slot->what != FREE && slot->what != REMOVED)
            *free_slot(slots, n_slots, slot->hash) = *slot;
    }
    *ret_n_slots = n_slots;
    return slots;
}

/* Another list of the same blocks with capacity for one more; NULL when out of memory. */
static struct peg__blocks *copy_list(const struct peg__blocks *list)
{
    const size_t capacity = list->n + list->n / 2 + MIN_BLOCKS;
    struct peg__blocks *copy = peg__alloc_zero(1, sizeof(*copy));

    if (!copy)
        return NULL;
    atomic_init(&copy->n_refs, 1);
    copy->key = list->key;
    copy->items = peg__alloc(capacity * sizeof(peg_block *));
    copy->slots = copy->items ? copy_slots(list, &copy->n_slots) : NULL;
    if (!copy->slots) {
        peg__free(copy->items);
        peg__free(copy);
        return NULL;
    }
    copy->capacity = capacity;
    copy->n_names = list->n_names;
    copy->n_used = list->n_names;
    for (; copy->n < list->n; copy->n++)
        copy->items[copy->n] = peg_block_ref(list->items[copy->n]);
    return copy;
}

static peg_status grow(struct peg__blocks *list)
{
    if (!PEG__RESERVE(list->items, list->n + 1, list->capacity))
        return PEG_ENOMEM;
    if (!has_slots_for(list->n_used, list->n_slots)) {
        size_t n_slots;
        struct slot *slots = copy_slots(list, &n_slots);

        if (!slots)
            return PEG_ENOMEM;
        peg__free(list->slots);
        list->slots = slots;
        list->n_slots = n_slots;
        list->n_used = list->n_names;
    }
    return PEG_OK;
}

peg_status peg__blocks_reserve(struct peg__blocks **list)
{
    struct peg__blocks *copy;

    /* One reference is the caller's: no other thread can make it two. */
    if (*list && atomic_load_explicit(&(*list)->n_refs, memory_order_acquire) == 1)
        return grow(*list);
    if (*list)
        copy = copy_list(*list);
    else
        copy = copy_list(&(const struct peg__blocks){.key = peg__hash_key_new()});
    if (!copy)
        return PEG_ENOMEM;
    peg__blocks_unref(*list);
    *list = copy;
    return PEG_OK;
}

/* ---- the list ------------------------------------------------------------------- */

size_t peg__blocks_len(const struct peg__blocks *list)
{
    return list ? list->n : 0;
}

peg_block *peg__blocks_at(const struct peg__blocks *list, size_t i)
{
    return list->items[i];
}

void peg__blocks_append(struct peg__blocks *list, peg_block *block)
{
    list->items[list->n] = peg_block_ref(block);
    list->n++;
    claim_names(list, list->n - 1);
}

/* Those at or after `from` stand `by` places further (by is 1 or -1). */
static void move_names(struct peg__blocks *list, size_t from, int by)
{
    for (size_t s = 0; s < list->n_slots; s++) {
        struct slot *slot = &list->slots[s];

        if (slot->what != FREE && slot->what != REMOVED && block_of(slot) >= from)
            slot->what += (uint32_t)(by * 4);
    }
}

void peg__blocks_insert(struct peg__blocks *list, size_t i, peg_block *block)
{
    move_names(list, i, 1);
    memmove(&list->items[i + 1], &list->items[i], (list->n - i) * sizeof(peg_block *));
    list->items[i] = peg_block_ref(block);
    list->n++;
    claim_names(list, i);
}

void peg__blocks_replace(struct peg__blocks *list, size_t i, peg_block *block)
{
    peg_block *old = list->items[i];

    release_names(list, i);
    list->items[i] = peg_block_ref(block);
    claim_names(list, i);
    peg_block_unref(old);
}

void peg__blocks_remove(struct peg__blocks *list, size_t i)
{
    peg_block *old = list->items[i];

    release_names(list, i);
    list->n--;
    memmove(&list->items[i], &list->items[i + 1], (list->n - i) * sizeof(peg_block *));
    move_names(list, i + 1, -1);
    peg_block_unref(old);
}
