/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A registry: a lock around layers (registry_layers.h). Every change is find, prepare, find again
 * (preparing may have moved it), change; then the lock is given up, and only then the bin is
 * emptied.
 */

#include "core/registry/registry.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

/* ---- making, sharing, copying ---------------------------------------------------------------- */

static void init_lock(pthread_rwlock_t *lock)
{
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
    /* Else readers that overlap would keep a writer waiting for ever. */
    *lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
#else
    pthread_rwlock_init(lock, NULL);
#endif
}

/* Takes over the layers on success. */
static peg_registry *wrap(const struct peg__layers *layers)
{
    peg_registry *registry = peg__alloc_zero(1, sizeof(*registry));

    if (!registry)
        return NULL;
    atomic_init(&registry->n_refs, 1);
    init_lock(&registry->lock);
    registry->layers = *layers;
    return registry;
}

static peg_status fail_taken(peg_str name, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EEXISTS, "E_TOOL_ALREADY_REGISTERED",
                     "a tool named '%.*s' is registered already: choose another name, unregister "
                     "it first, or say overwrite",
                     PEG_ARG(name));
}

static peg_status fail_full(peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_REGISTRY_FULL",
                     "a registry holds at most PEG_LIMIT_REGISTRY_TOOLS = %d tools; unregister "
                     "some, or use several registries",
                     PEG_LIMIT_REGISTRY_TOOLS);
}

static peg_status fail_null(const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_REGISTRY_ARGUMENT", "%s is NULL; give one", what);
}

static peg_status add_new(struct peg__layers *layers, peg_tool *tool, peg_error *reterr)
{
    struct peg__bin bin = {0};
    uint64_t hash;

    if (!tool)
        return fail_null("a tool", reterr);
    hash = peg__name_hash(tool->name);
    if (peg__layers_find(layers, tool->name, hash).tool)
        return fail_taken(tool->name, reterr);
    if (layers->n >= PEG_LIMIT_REGISTRY_TOOLS)
        return fail_full(reterr);
    if (peg__layers_prepare(layers, 0, 1, &bin))
        return peg__fail_nomem(reterr);
    peg__layers_append(layers, tool, hash, false);
    return PEG_OK;
}

peg_status peg_registry_new(peg_tool *const *tools, size_t n_tools, peg_registry **ret_registry,
                            peg_error *reterr)
{
    struct peg__layers layers;
    peg_registry *registry;
    peg_status status = PEG_OK;

    if (n_tools > PEG_LIMIT_REGISTRY_TOOLS)
        return fail_full(reterr);
    if (!peg__layers_init(&layers, n_tools))
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n_tools && status == PEG_OK; i++)
        status = add_new(&layers, tools[i], reterr);
    registry = status == PEG_OK ? wrap(&layers) : NULL;
    if (!registry) {
        peg__layers_free(&layers);
        return status ? status : peg__fail_nomem(reterr);
    }
    *ret_registry = registry;
    return PEG_OK;
}

peg_registry *peg_registry_ref(peg_registry *registry)
{
    if (registry)
        atomic_fetch_add_explicit(&registry->n_refs, 1, memory_order_relaxed);
    return registry;
}

peg_registry *peg_registry_unref(peg_registry *registry)
{
    if (registry && atomic_fetch_sub_explicit(&registry->n_refs, 1, memory_order_acq_rel) == 1) {
        peg__layers_free(&registry->layers);
        pthread_rwlock_destroy(&registry->lock);
        peg__free(registry);
    }
    return NULL;
}

peg_status peg__registry_snapshot(peg_registry *registry, struct peg__layers *ret_layers,
                                  peg_error *reterr)
{
    peg_status status;

    pthread_rwlock_rdlock(&registry->lock);
    status = peg__layers_copy(&registry->layers, ret_layers);
    pthread_rwlock_unlock(&registry->lock);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

peg_status peg_registry_copy(peg_registry *registry, peg_registry **ret_registry, peg_error *reterr)
{
    struct peg__layers layers;
    peg_status status = peg__registry_snapshot(registry, &layers, reterr);
    peg_registry *copy;

    if (status)
        return status;
    copy = wrap(&layers);
    if (!copy) {
        peg__layers_free(&layers);
        return peg__fail_nomem(reterr);
    }
    copy->is_stand_in = registry->is_stand_in;
    *ret_registry = copy;
    return PEG_OK;
}

/* ---- one tool -------------------------------------------------------------------------------- */

/* Puts a tool in the place of the one that has its name. */
static peg_status overwrite_one(struct peg__layers *layers, peg_tool *tool, struct peg__bin *bin)
{
    const uint64_t hash = peg__name_hash(tool->name);
    struct peg__spot spot;

    if (peg__layers_prepare(layers, 1, 0, bin))
        return PEG_ENOMEM;
    spot = peg__layers_find(layers, tool->name, hash);
    peg__layers_replace(layers, &spot, tool, bin);
    return PEG_OK;
}

static peg_status append_one(struct peg__layers *layers, peg_tool *tool, struct peg__bin *bin)
{
    if (layers->n >= PEG_LIMIT_REGISTRY_TOOLS)
        return PEG_ELIMIT;
    if (peg__layers_prepare(layers, 0, 1, bin))
        return PEG_ENOMEM;
    peg__layers_append(layers, tool, peg__name_hash(tool->name), false);
    return PEG_OK;
}

static peg_status register_one(struct peg__layers *layers, peg_tool *tool, bool overwrite,
                               struct peg__bin *bin)
{
    if (!peg__layers_find(layers, tool->name, peg__name_hash(tool->name)).tool)
        return append_one(layers, tool, bin);
    return overwrite ? overwrite_one(layers, tool, bin) : PEG_EEXISTS;
}

peg_status peg_registry_register(peg_registry *registry, peg_tool *tool, bool overwrite,
                                 peg_error *reterr)
{
    struct peg__bin bin = {0};
    peg_status status;

    if (!tool)
        return fail_null("the tool", reterr);
    pthread_rwlock_wrlock(&registry->lock);
    status = register_one(&registry->layers, tool, overwrite, &bin);
    peg__registry_unlock(registry, status == PEG_OK);
    peg__bin_empty(&bin);
    switch (status) {
    case PEG_OK:
        return PEG_OK;
    case PEG_EEXISTS:
        return fail_taken(tool->name, reterr);
    case PEG_ELIMIT:
        return fail_full(reterr);
    default:
        return peg__fail_nomem(reterr);
    }
}

static peg_status unregister_one(struct peg__layers *layers, peg_str name, struct peg__bin *bin)
{
    const uint64_t hash = peg__name_hash(name);
    struct peg__spot spot;

    if (!peg__layers_find(layers, name, hash).tool)
        return PEG_OK;
    if (peg__layers_prepare(layers, 1, 0, bin))
        return PEG_ENOMEM;
    spot = peg__layers_find(layers, name, hash);
    peg__layers_remove(layers, &spot, bin);
    return PEG_OK;
}

peg_status peg_registry_unregister(peg_registry *registry, peg_str name, peg_error *reterr)
{
    struct peg__bin bin = {0};
    peg_status status;
    size_t n_before;

    pthread_rwlock_wrlock(&registry->lock);
    n_before = registry->layers.n;
    status = unregister_one(&registry->layers, name, &bin);
    peg__registry_unlock(registry, registry->layers.n != n_before);
    peg__bin_empty(&bin);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

peg_tool *peg_registry_get(peg_registry *registry, peg_str name)
{
    const uint64_t hash = peg__name_hash(name);
    peg_tool *tool;

    pthread_rwlock_rdlock(&registry->lock);
    tool = peg_tool_ref(peg__layers_find(&registry->layers, name, hash).tool);
    pthread_rwlock_unlock(&registry->lock);
    return tool;
}

bool peg_registry_has(peg_registry *registry, peg_str name)
{
    const uint64_t hash = peg__name_hash(name);
    bool is_there;

    pthread_rwlock_rdlock(&registry->lock);
    is_there = peg__layers_find(&registry->layers, name, hash).tool != NULL;
    pthread_rwlock_unlock(&registry->lock);
    return is_there;
}

size_t peg_registry_len(peg_registry *registry)
{
    size_t n;

    pthread_rwlock_rdlock(&registry->lock);
    n = registry->layers.n;
    pthread_rwlock_unlock(&registry->lock);
    return n;
}

void peg_registry_prune_ephemeral(peg_registry *registry)
{
    peg_tool *dropped[PEG__MAX_CHANGES];
    size_t from = 0;
    size_t n_before;
    size_t n;

    /* All at once out of sight; what is left in a base of our own is let go of bit by bit. */
    pthread_rwlock_wrlock(&registry->lock);
    n_before = registry->layers.n;
    n = peg__layers_prune(&registry->layers, dropped);
    peg__registry_unlock(registry, registry->layers.n != n_before);
    do {
        for (size_t i = 0; i < n; i++)
            peg_tool_unref(dropped[i]);
        pthread_rwlock_wrlock(&registry->lock);
        n = peg__layers_sweep(&registry->layers, &from, dropped);
        pthread_rwlock_unlock(&registry->lock);
    } while (n > 0);
}
