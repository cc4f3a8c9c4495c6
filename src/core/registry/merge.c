/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many tools at once: merging registries, absorbing one into another, replacing what an owner
 * forged. Each looks at everything first, gets all memory, and then changes without a way to
 * fail. Sources are read from a snapshot, so no two locks are ever held.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/registry/registry.h"

static peg_status fail_full(peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_REGISTRY_FULL",
                     "together that is more than %d tools; use several "
                     "registries",
                     PEG_LIMIT_REGISTRY_TOOLS);
}

/* ---- absorbing ------------------------------------------------------------------------------- */

/* The incoming tool decides, then the merge; the registered tool has no say. */
static peg_collision decide(const peg_tool *incoming, peg_collision policy)
{
    const peg_collision own = incoming->def.on_collision;

    return own == PEG_COLLISION_FAIL ? policy : own;
}

static peg_status fail_clash(const peg_tool *tool, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EEXISTS, "E_TOOL_ALREADY_REGISTERED",
                     "two registries have a tool named '%.*s', and neither it nor the merge says "
                     "which to take: set its on_collision, or merge with replace or keep",
                     PEG_ARG(tool->name));
}

static peg_status absorb_prepare(struct peg__layers *layers, const struct peg__layers *source,
                                 peg_collision policy, struct peg__bin *bin, peg_error *reterr)
{
    struct peg__walk walk = {.layers = source};
    size_t n_clashes = 0;

    while (peg__layers_next(&walk)) {
        const peg_tool *incoming = walk.spot.tool;

        if (!peg__layers_find(layers, incoming->name, walk.spot.hash).tool)
            continue;
        if (decide(incoming, policy) == PEG_COLLISION_FAIL)
            return fail_clash(incoming, reterr);
        n_clashes++;
    }
    if (layers->n + source->n - n_clashes > PEG_LIMIT_REGISTRY_TOOLS)
        return fail_full(reterr);
    /* A clash may both replace the tool and hide the name: the second one finds the first's
     * patch, so one change each is enough. */
    if (peg__layers_prepare(layers, n_clashes, source->n - n_clashes, bin))
        return peg__fail_nomem(reterr);
    return PEG_OK;
}

static void absorb_one(struct peg__layers *layers, const struct peg__spot *incoming,
                       peg_collision policy, struct peg__bin *bin)
{
    const peg_str name = incoming->tool->name;
    struct peg__spot spot = peg__layers_find(layers, name, incoming->hash);

    if (!spot.tool) {
        peg__layers_append(layers, incoming->tool, incoming->hash, incoming->is_hidden);
        return;
    }
    if (decide(incoming->tool, policy) == PEG_COLLISION_REPLACE) {
        peg__layers_replace(layers, &spot, incoming->tool, bin);
        spot = peg__layers_find(layers, name, incoming->hash);
    }
    if (incoming->is_hidden && !spot.is_hidden)
        peg__layers_mark(layers, &spot, true);
}

static peg_status absorb(struct peg__layers *layers, const struct peg__layers *source,
                         peg_collision policy, struct peg__bin *bin, peg_error *reterr)
{
    struct peg__walk walk = {.layers = source};
    peg_status status = absorb_prepare(layers, source, policy, bin, reterr);

    if (status)
        return status;
    while (peg__layers_next(&walk))
        absorb_one(layers, &walk.spot, policy, bin);
    return PEG_OK;
}

static peg_status check_policy(peg_collision policy, peg_error *reterr)
{
    if ((unsigned)policy <= PEG_COLLISION_KEEP)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                     "the policy must be one of PEG_COLLISION_FAIL, _REPLACE and _KEEP");
}

peg_status peg_registry_absorb(peg_registry *registry, peg_registry *source, peg_collision policy,
                               peg_error *reterr)
{
    struct peg__bin bin = {0};
    struct peg__layers snapshot;
    peg_status status;

    if (!source)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "the registry to absorb is NULL; give one");
    if ((status = check_policy(policy, reterr)) ||
        (status = peg__registry_snapshot(source, &snapshot, reterr)))
        return status;
    pthread_rwlock_wrlock(&registry->lock);
    status = absorb(&registry->layers, &snapshot, policy, &bin, reterr);
    peg__registry_unlock(registry, status == PEG_OK);
    peg__bin_empty(&bin);
    peg__layers_free(&snapshot);
    return status;
}

/* ---- all at once ----------------------------------------------------------------------------- */

peg_status peg_registry_replace(peg_registry *registry, peg_registry *source, peg_error *reterr)
{
    struct peg__layers layers;
    struct peg__layers old;
    peg_status status;

    if (!source)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "the registry to take the tools of is NULL; give one");
    status = peg__registry_snapshot(source, &layers, reterr);
    if (status)
        return status;
    pthread_rwlock_wrlock(&registry->lock);
    old = registry->layers;
    registry->layers = layers;
    peg__registry_unlock(registry, true);
    peg__layers_free(&old);
    return PEG_OK;
}

/* ---- merging --------------------------------------------------------------------------------- */

static peg_status check_sources(peg_registry *const *sources, size_t n, peg_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        if (!sources[i])
            return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                             "source %zu of the merge is NULL; leave it out", i);
    return PEG_OK;
}

peg_status peg_registry_merge(peg_registry *const *sources, size_t n_sources, peg_collision policy,
                              peg_registry **ret_registry, peg_error *reterr)
{
    peg_registry *merged;
    peg_status status;

    if ((status = check_policy(policy, reterr)) ||
        (status = check_sources(sources, n_sources, reterr)))
        return status;
    if (n_sources == 0)
        return peg_registry_new(NULL, 0, ret_registry, reterr);
    status = peg_registry_copy(sources[0], &merged, reterr);
    if (status)
        return status;
    for (size_t i = 1; i < n_sources && status == PEG_OK; i++)
        status = peg_registry_absorb(merged, sources[i], policy, reterr);
    if (status) {
        peg_registry_unref(merged);
        return status;
    }
    *ret_registry = merged;
    return PEG_OK;
}

/* ---- what an owner forged -------------------------------------------------------------------- */

struct replacing {
    const char *owner;
    struct peg__table *fresh; /* the new tools by name */
    size_t n_changes;
    size_t n_new;
    size_t n_shadowed;
};

static bool is_owned(const peg_tool *tool, const char *owner)
{
    return tool->owner && !strcmp(tool->owner, owner);
}

/* Most registries have none, and need no walk. */
static bool has_owned(const struct peg__layers *layers)
{
    if (layers->base->n_owned > 0 || (layers->added && layers->added->n_owned > 0))
        return true;
    for (size_t i = 0; i < layers->n_patches; i++)
        if (layers->patches[i].tool && layers->patches[i].tool->owner)
            return true;
    return false;
}

static struct peg__table *collect_fresh(peg_tool *const *tools, size_t n)
{
    struct peg__table *fresh = peg__table_new(n);

    for (size_t i = 0; fresh && i < n; i++) {
        const uint64_t hash = peg__name_hash(tools[i]->name);
        const ptrdiff_t known = peg__table_find(fresh, tools[i]->name, hash);

        if (known == PEG__NO_INDEX)
            peg__table_append(fresh, peg_tool_ref(tools[i]), hash, false);
        else
            peg_tool_unref(peg__table_replace(fresh, (size_t)known, peg_tool_ref(tools[i])));
    }
    return fresh;
}

static void count_replacing(const struct peg__layers *layers, struct replacing *r)
{
    struct peg__walk walk = {.layers = layers};

    /* Those that go and those that are replaced are both among the owned. */
    if (has_owned(layers))
        while (peg__layers_next(&walk))
            r->n_changes += is_owned(walk.spot.tool, r->owner);
    for (size_t i = 0; i < r->fresh->n_entries; i++) {
        const struct peg__entry *entry = &r->fresh->entries[i];
        const struct peg__spot spot = peg__layers_find(layers, entry->tool->name, entry->hash);

        if (!spot.tool)
            r->n_new++;
        else if (!is_owned(spot.tool, r->owner))
            r->n_shadowed++;
    }
}

static void drop_stale(struct peg__layers *layers, const struct replacing *r, struct peg__bin *bin)
{
    struct peg__walk walk = {.layers = layers};

    while (peg__layers_next(&walk)) {
        const peg_tool *tool = walk.spot.tool;

        if (is_owned(tool, r->owner) &&
            peg__table_find(r->fresh, tool->name, walk.spot.hash) == PEG__NO_INDEX)
            peg__layers_remove(layers, &walk.spot, bin);
    }
}

static void put_fresh(struct peg__layers *layers, const struct replacing *r, struct peg__bin *bin)
{
    for (size_t i = 0; i < r->fresh->n_entries; i++) {
        const struct peg__entry *entry = &r->fresh->entries[i];
        const struct peg__spot spot = peg__layers_find(layers, entry->tool->name, entry->hash);

        if (!spot.tool)
            peg__layers_append(layers, entry->tool, entry->hash, false);
        else if (is_owned(spot.tool, r->owner))
            peg__layers_replace(layers, &spot, entry->tool, bin);
    }
}

static peg_status replace_owned(struct peg__layers *layers, struct replacing *r,
                                struct peg__bin *bin, peg_error *reterr)
{
    count_replacing(layers, r);
    if (r->n_changes == 0 && r->n_new == 0)
        return PEG_OK;
    if (layers->n + r->n_new > PEG_LIMIT_REGISTRY_TOOLS)
        return fail_full(reterr);
    if (peg__layers_prepare(layers, r->n_changes, r->n_new, bin))
        return peg__fail_nomem(reterr);
    if (r->n_changes > 0)
        drop_stale(layers, r, bin);
    put_fresh(layers, r, bin);
    return PEG_OK;
}

peg_status peg__registry_replace_owned(peg_registry *registry, const char *owner,
                                       peg_tool *const *tools, size_t n_tools,
                                       size_t *ret_n_shadowed, peg_error *reterr)
{
    struct replacing r = {.owner = owner, .fresh = collect_fresh(tools, n_tools)};
    struct peg__bin bin = {0};
    peg_status status;

    if (!r.fresh)
        return peg__fail_nomem(reterr);
    pthread_rwlock_wrlock(&registry->lock);
    status = replace_owned(&registry->layers, &r, &bin, reterr);
    peg__registry_unlock(registry, status == PEG_OK && (r.n_changes || r.n_new));
    peg__bin_empty(&bin);
    peg__table_unref(r.fresh);
    if (status == PEG_OK && ret_n_shadowed)
        *ret_n_shadowed = r.n_shadowed;
    return status;
}
