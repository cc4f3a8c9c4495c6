/* SPDX-License-Identifier: Apache-2.0 */

#include "core/registry/internal.h"

#include <string.h>

#include "base/mem.h"

/* ---- the whole ------------------------------------------------------------------------------- */

bool peg__layers_init(struct peg__layers *layers, size_t n)
{
    *layers = (struct peg__layers){.base = peg__table_new(n)};
    return layers->base != NULL;
}

void peg__layers_free(struct peg__layers *layers)
{
    for (size_t i = 0; i < layers->n_patches; i++)
        peg_tool_unref(layers->patches[i].tool);
    peg__free(layers->patches);
    peg__table_unref(layers->added);
    peg__table_unref(layers->base);
    *layers = (struct peg__layers){0};
}

static bool copy_added(const struct peg__table *added, struct peg__layers *to)
{
    if (!added || added->n == 0)
        return true;
    to->added = peg__table_new(added->n);
    for (size_t i = 0; to->added && i < added->n_entries; i++) {
        const struct peg__entry *entry = &added->entries[i];

        if (entry->tool)
            peg__table_append(to->added, peg_tool_ref(entry->tool), entry->hash, entry->is_hidden);
    }
    return to->added != NULL;
}

static bool copy_patches(const struct peg__layers *from, struct peg__layers *to)
{
    if (from->n_patches == 0)
        return true;
    to->patches = peg__alloc(from->n_patches * sizeof(*to->patches));
    if (!to->patches)
        return false;
    memcpy(to->patches, from->patches, from->n_patches * sizeof(*to->patches));
    to->n_patches = to->patches_capacity = from->n_patches;
    for (size_t i = 0; i < to->n_patches; i++)
        peg_tool_ref(to->patches[i].tool);
    return true;
}

peg_status peg__layers_copy(const struct peg__layers *layers, struct peg__layers *ret_copy)
{
    struct peg__layers copy = {
        .n = layers->n,
        .base_is_pruned = layers->base_is_pruned,
    };

    if (!copy_patches(layers, &copy) || !copy_added(layers->added, &copy)) {
        peg__layers_free(&copy);
        return PEG_ENOMEM;
    }
    copy.base = peg__table_ref(layers->base);
    *ret_copy = copy;
    return PEG_OK;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The first patch whose index is not below this one. */
static size_t patch_at_or_after(const struct peg__layers *layers, size_t index)
{
    size_t low = 0;
    size_t high = layers->n_patches;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (layers->patches[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_patched(const struct peg__layers *layers, size_t index)
{
    const size_t at = patch_at_or_after(layers, index);

    return at < layers->n_patches && layers->patches[at].index == index;
}

static struct peg__spot spot_of_entry(enum peg__layer layer, const struct peg__table *table,
                                      size_t index)
{
    const struct peg__entry *entry = &table->entries[index];

    return (struct peg__spot){layer, index, entry->tool, entry->hash, entry->is_hidden};
}

static struct peg__spot spot_of_patch(const struct peg__layers *layers, size_t at)
{
    const struct peg__patch *patch = &layers->patches[at];
    const uint64_t hash = layers->base->entries[patch->index].hash;

    if (!patch->tool)
        return (struct peg__spot){.layer = PEG__NOWHERE, .hash = hash};
    return (struct peg__spot){PEG__IN_PATCH, at, patch->tool, hash, patch->is_hidden};
}

/* A base entry as it is seen through the patches. */
static struct peg__spot spot_of_base(const struct peg__layers *layers, size_t index)
{
    const struct peg__entry *entry = &layers->base->entries[index];

    if (layers->n_patches > 0) {
        const size_t at = patch_at_or_after(layers, index);

        if (at < layers->n_patches && layers->patches[at].index == index)
            return spot_of_patch(layers, at);
    }
    if (!entry->tool || (layers->base_is_pruned && entry->tool->def.ephemeral))
        return (struct peg__spot){.layer = PEG__NOWHERE, .hash = entry->hash};
    return spot_of_entry(PEG__IN_BASE, layers->base, index);
}

struct peg__spot peg__layers_find(const struct peg__layers *layers, peg_str name, uint64_t hash)
{
    ptrdiff_t index;

    if (layers->added) {
        index = peg__table_find(layers->added, name, hash);
        if (index != PEG__NO_INDEX)
            return spot_of_entry(PEG__IN_ADDED, layers->added, (size_t)index);
    }
    index = peg__table_find(layers->base, name, hash);
    if (index != PEG__NO_INDEX)
        return spot_of_base(layers, (size_t)index);
    return (struct peg__spot){.layer = PEG__NOWHERE, .hash = hash};
}

static bool next_in_base(struct peg__walk *walk)
{
    const struct peg__layers *layers = walk->layers;

    while (walk->next_base < layers->base->n_entries) {
        const size_t index = walk->next_base++;

        /* More than one where the loop patched what it stood on. */
        while (walk->next_patch < layers->n_patches &&
               layers->patches[walk->next_patch].index < index)
            walk->next_patch++;
        if (walk->next_patch < layers->n_patches &&
            layers->patches[walk->next_patch].index == index) {
            walk->spot = spot_of_patch(layers, walk->next_patch++);
        } else {
            const struct peg__entry *entry = &layers->base->entries[index];

            if (!entry->tool || (layers->base_is_pruned && entry->tool->def.ephemeral))
                continue;
            walk->spot = spot_of_entry(PEG__IN_BASE, layers->base, index);
        }
        if (walk->spot.tool)
            return true;
    }
    return false;
}

bool peg__layers_next(struct peg__walk *walk)
{
    const struct peg__table *added = walk->layers->added;

    if (next_in_base(walk))
        return true;
    while (added && walk->next_added < added->n_entries) {
        walk->spot = spot_of_entry(PEG__IN_ADDED, added, walk->next_added++);
        if (walk->spot.tool)
            return true;
    }
    return false;
}

/* ---- the bin --------------------------------------------------------------------------------- */

static peg_status reserve_bin(struct peg__bin *bin, size_t n)
{
    if (!bin->tools) {
        bin->tools = bin->few;
        bin->capacity = sizeof(bin->few) / sizeof(*bin->few);
    }
    if (n <= bin->capacity)
        return PEG_OK;
    bin->tools = peg__alloc(n * sizeof(peg_tool *));
    if (!bin->tools)
        return PEG_ENOMEM;
    bin->capacity = n;
    return PEG_OK;
}

static void put_into(struct peg__bin *bin, peg_tool *tool)
{
    if (tool)
        bin->tools[bin->n_tools++] = tool;
}

void peg__bin_empty(struct peg__bin *bin)
{
    for (size_t i = 0; i < bin->n_tools; i++)
        peg_tool_unref(bin->tools[i]);
    if (bin->tools != bin->few)
        peg__free(bin->tools);
    if (bin->layers.base)
        peg__layers_free(&bin->layers);
    *bin = (struct peg__bin){0};
}

/* ---- preparing ------------------------------------------------------------------------------- */

static size_t n_added(const struct peg__layers *layers)
{
    return layers->added ? layers->added->n : 0;
}

static bool is_base_all(struct peg__layers *layers)
{
    return layers->n_patches == 0 && n_added(layers) == 0 && !layers->base_is_pruned &&
           peg__table_is_private(layers->base);
}

/* A base of our own with everything in it; the old layers go to the bin. */
static peg_status flatten(struct peg__layers *layers, size_t n_new, struct peg__bin *bin)
{
    struct peg__table *base = peg__table_new(layers->n + n_new);
    struct peg__walk walk = {.layers = layers};

    if (!base)
        return PEG_ENOMEM;
    while (peg__layers_next(&walk))
        peg__table_append(base, peg_tool_ref(walk.spot.tool), walk.spot.hash, walk.spot.is_hidden);
    bin->layers = *layers;
    *layers = (struct peg__layers){.base = base, .n = layers->n, .changes_base = true};
    return PEG_OK;
}

static peg_status reserve_changes(struct peg__layers *layers, size_t n_changes, size_t n_new)
{
    if (!PEG__RESERVE(layers->patches, layers->n_patches + n_changes, layers->patches_capacity))
        return PEG_ENOMEM;
    if (n_new == 0)
        return PEG_OK;
    if (layers->added)
        return peg__table_reserve(layers->added, n_new);
    layers->added = peg__table_new(n_new);
    return layers->added ? PEG_OK : PEG_ENOMEM;
}

peg_status peg__layers_prepare(struct peg__layers *layers, size_t n_changes, size_t n_new,
                               struct peg__bin *bin)
{
    const size_t n_after = layers->n_patches + n_added(layers) + n_changes + n_new;

    if (reserve_bin(bin, n_changes))
        return PEG_ENOMEM;
    /* Decided once: others may let go of the base at any moment. */
    layers->changes_base = is_base_all(layers);
    if (layers->changes_base)
        return peg__table_reserve(layers->base, n_new);
    if (n_after > PEG__MAX_CHANGES)
        return flatten(layers, n_new, bin);
    return reserve_changes(layers, n_changes, n_new);
}

/* ---- changing, as prepared ------------------------------------------------------------------- */

static void add_patch(struct peg__layers *layers, size_t index, peg_tool *tool, bool is_hidden)
{
    const size_t at = patch_at_or_after(layers, index);

    memmove(layers->patches + at + 1, layers->patches + at,
            (layers->n_patches - at) * sizeof(*layers->patches));
    layers->patches[at] = (struct peg__patch){index, tool, is_hidden};
    layers->n_patches++;
}

void peg__layers_append(struct peg__layers *layers, peg_tool *tool, uint64_t hash, bool is_hidden)
{
    peg__table_append(layers->changes_base ? layers->base : layers->added, peg_tool_ref(tool), hash,
                      is_hidden);
    layers->n++;
}

void peg__layers_replace(struct peg__layers *layers, const struct peg__spot *spot, peg_tool *tool,
                         struct peg__bin *bin)
{
    peg_tool_ref(tool);
    if (spot->layer == PEG__IN_PATCH) {
        put_into(bin, layers->patches[spot->index].tool);
        layers->patches[spot->index].tool = tool;
    } else if (spot->layer == PEG__IN_ADDED) {
        put_into(bin, peg__table_replace(layers->added, spot->index, tool));
    } else if (layers->changes_base) {
        put_into(bin, peg__table_replace(layers->base, spot->index, tool));
    } else {
        add_patch(layers, spot->index, tool, spot->is_hidden);
    }
}

void peg__layers_remove(struct peg__layers *layers, const struct peg__spot *spot,
                        struct peg__bin *bin)
{
    if (spot->layer == PEG__IN_PATCH) {
        put_into(bin, layers->patches[spot->index].tool);
        layers->patches[spot->index].tool = NULL;
    } else if (spot->layer == PEG__IN_ADDED) {
        put_into(bin, peg__table_remove(layers->added, spot->index));
    } else if (layers->changes_base) {
        put_into(bin, peg__table_remove(layers->base, spot->index));
    } else {
        add_patch(layers, spot->index, NULL, false);
    }
    layers->n--;
}

void peg__layers_mark(struct peg__layers *layers, const struct peg__spot *spot, bool is_hidden)
{
    if (spot->layer == PEG__IN_PATCH)
        layers->patches[spot->index].is_hidden = is_hidden;
    else if (spot->layer == PEG__IN_ADDED)
        peg__table_mark(layers->added, spot->index, is_hidden);
    else if (layers->changes_base)
        peg__table_mark(layers->base, spot->index, is_hidden);
    else
        add_patch(layers, spot->index, peg_tool_ref(spot->tool), is_hidden);
}

/* ---- pruning --------------------------------------------------------------------------------- */

static size_t prune_patches(struct peg__layers *layers, peg_tool **ret_dropped)
{
    size_t n = 0;

    for (size_t i = 0; i < layers->n_patches; i++) {
        struct peg__patch *patch = &layers->patches[i];

        if (patch->tool && patch->tool->def.ephemeral) {
            ret_dropped[n++] = patch->tool;
            patch->tool = NULL;
        }
    }
    return n;
}

static size_t prune_added(struct peg__table *added, peg_tool **ret_dropped)
{
    size_t n = 0;

    for (size_t i = 0; added && added->n_ephemeral > 0 && i < added->n_entries; i++) {
        const peg_tool *tool = added->entries[i].tool;

        if (tool && tool->def.ephemeral)
            ret_dropped[n++] = peg__table_remove(added, i);
    }
    return n;
}

/* Ephemeral tools of the base that are to be seen. */
static size_t n_ephemeral_in_base(const struct peg__layers *layers)
{
    size_t n = layers->base_is_pruned ? 0 : layers->base->n_ephemeral;

    for (size_t i = 0; n > 0 && i < layers->n_patches; i++) {
        const peg_tool *tool = layers->base->entries[layers->patches[i].index].tool;

        if (tool && tool->def.ephemeral)
            n--;
    }
    return n;
}

size_t peg__layers_prune(struct peg__layers *layers, peg_tool *ret_dropped[PEG__MAX_CHANGES])
{
    const size_t n_in_base = n_ephemeral_in_base(layers);
    size_t n = prune_patches(layers, ret_dropped);

    n += prune_added(layers->added, ret_dropped + n);
    layers->n -= n + n_in_base;
    if (n_in_base > 0)
        layers->base_is_pruned = true;
    return n;
}

size_t peg__layers_sweep(struct peg__layers *layers, size_t *from,
                         peg_tool *ret_dropped[PEG__MAX_CHANGES])
{
    struct peg__table *base = layers->base;
    size_t n = 0;

    if (!layers->base_is_pruned || !peg__table_is_private(base))
        return 0;
    for (; *from < base->n_entries && n < PEG__MAX_CHANGES; (*from)++) {
        const peg_tool *tool = base->entries[*from].tool;

        if (tool && tool->def.ephemeral && !is_patched(layers, *from))
            ret_dropped[n++] = peg__table_remove(base, *from);
    }
    if (base->n_ephemeral == 0)
        layers->base_is_pruned = false;
    return n;
}
