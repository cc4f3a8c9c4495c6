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

/* ---- observers --------------------------------------------------------------------------- */

/* Who hears of changes of a registry: providers, which offer what it holds to a gateway. */

void peg__registry_observe(peg_registry *registry, struct peg__registry_observer *observer)
{
    pthread_rwlock_wrlock(&registry->lock);
    observer->next = registry->observers;
    registry->observers = observer;
    pthread_rwlock_unlock(&registry->lock);
}

void peg__registry_unobserve(peg_registry *registry, struct peg__registry_observer *observer)
{
    struct peg__registry_observer **at = &registry->observers;

    pthread_rwlock_wrlock(&registry->lock);
    while (*at && *at != observer)
        at = &(*at)->next;
    if (*at)
        *at = observer->next;
    pthread_rwlock_unlock(&registry->lock);
}

void peg__registry_unlock(peg_registry *registry, bool has_changed)
{
    for (struct peg__registry_observer *o = registry->observers; o && has_changed; o = o->next)
        o->fn(o);
    pthread_rwlock_unlock(&registry->lock);
}

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
                     "a registry holds at most %d tools; unregister "
                     "some, or use several registries",
                     PEG_LIMIT_REGISTRY_TOOLS);
}

static peg_status fail_null(const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "%s is NULL; give one", what);
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

PEG__DEFINE_REF(peg_registry)

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

/* ---- selecting --------------------------------------------------------------------------- */

/* A registry of some of the tools of another: what one agent may use of all there is. */

static peg_status find_all(const struct peg__layers *layers, const char *const *names, size_t n,
                           peg_tool **tools, peg_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        const peg_str name = names[i] ? peg__str(names[i]) : (peg_str){"", 0};

        tools[i] = peg__layers_find(layers, name, peg__name_hash(name)).tool;
        if (!tools[i])
            return peg__fail(reterr, PEG_ENOTFOUND, "E_TOOL_NOT_FOUND",
                             "the tool '%.*s' was asked for but is not registered",
                             (int)(name.len < 80 ? name.len : 80), name.ptr);
    }
    return PEG_OK;
}

static peg_status hide_as(const struct peg__layers *layers, peg_registry *registry,
                          const char *const *names, size_t n, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n && !status; i++) {
        const peg_str name = peg__str(names[i]);

        if (peg__layers_find(layers, name, peg__name_hash(name)).is_hidden)
            status = peg_registry_hide(registry, &names[i], 1, reterr);
    }
    return status;
}

peg_status peg_registry_select(peg_registry *registry, const char *const *names, size_t n,
                               peg_registry **ret_registry, peg_error *reterr)
{
    struct peg__layers layers;
    peg_registry *selected = NULL;
    peg_tool **tools;
    peg_status status = peg__registry_snapshot(registry, &layers, reterr);

    if (status)
        return status;
    tools = peg__alloc_zero(n ? n : 1, sizeof(peg_tool *));
    if (!tools) {
        peg__layers_free(&layers);
        return peg__fail_nomem(reterr);
    }
    status = find_all(&layers, names, n, tools, reterr);
    if (!status)
        status = peg_registry_new(tools, n, &selected, reterr);
    if (selected)
        status = hide_as(&layers, selected, names, n, reterr);
    peg__free(tools);
    peg__layers_free(&layers);
    if (status)
        peg_registry_unref(selected);
    else
        *ret_registry = selected;
    return status;
}

/* ---- listing ----------------------------------------------------------------------------- */

/* Lists of a registry's tools, and which of them are advertised to a model. */

/* ---- lists ----------------------------------------------------------------------------------- */

enum wanted { ALL, VISIBLE, HIDDEN };

static bool is_wanted(enum wanted wanted, const struct peg__spot *spot)
{
    return wanted == ALL || spot->is_hidden == (wanted == HIDDEN);
}

static peg_status collect_tools(const struct peg__layers *layers, enum wanted wanted,
                                peg_tool_list *ret_list)
{
    struct peg__walk walk = {.layers = layers};
    peg_tool_list list = {.items = peg__alloc(layers->n * sizeof(peg_tool *))};

    if (!list.items)
        return PEG_ENOMEM;
    while (peg__layers_next(&walk))
        if (is_wanted(wanted, &walk.spot))
            list.items[list.len++] = peg_tool_ref(walk.spot.tool);
    *ret_list = list;
    return PEG_OK;
}

static peg_status list_tools(peg_registry *registry, enum wanted wanted, peg_tool_list *ret_list,
                             peg_error *reterr)
{
    peg_status status;

    pthread_rwlock_rdlock(&registry->lock);
    status = collect_tools(&registry->layers, wanted, ret_list);
    pthread_rwlock_unlock(&registry->lock);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

peg_status peg_registry_all(peg_registry *registry, peg_tool_list *ret_list, peg_error *reterr)
{
    return list_tools(registry, ALL, ret_list, reterr);
}

peg_status peg_registry_visible(peg_registry *registry, peg_tool_list *ret_list, peg_error *reterr)
{
    return list_tools(registry, VISIBLE, ret_list, reterr);
}

peg_status peg_registry_hidden(peg_registry *registry, peg_tool_list *ret_list, peg_error *reterr)
{
    return list_tools(registry, HIDDEN, ret_list, reterr);
}

void peg_tool_list_free(peg_tool_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->len; i++)
        peg_tool_unref(list->items[i]);
    peg__free(list->items);
    *list = (peg_tool_list){0};
}

/* ---- hidden tools ---------------------------------------------------------------------------- */

/* What is to become of the marks: first none if asked for, then these names. */
struct marks {
    const char *const *names;
    size_t n;
    bool clears_others;
    bool is_hidden;
};

static struct peg__spot find_name(const struct peg__layers *layers, const char *name)
{
    const peg_str text = peg_cstr(name);

    return peg__layers_find(layers, text, peg__name_hash(text));
}

static void clear_marks(struct peg__layers *layers)
{
    struct peg__walk walk = {.layers = layers};

    while (peg__layers_next(&walk))
        if (walk.spot.is_hidden)
            peg__layers_mark(layers, &walk.spot, false);
}

static size_t count_hidden(const struct peg__layers *layers)
{
    struct peg__walk walk = {.layers = layers};
    size_t n = 0;

    while (peg__layers_next(&walk))
        n += walk.spot.is_hidden;
    return n;
}

static size_t count_changes(const struct peg__layers *layers, const struct marks *marks)
{
    size_t n = marks->clears_others ? count_hidden(layers) : 0;

    for (size_t i = 0; i < marks->n; i++) {
        const struct peg__spot spot = find_name(layers, marks->names[i]);

        n += spot.tool && (marks->clears_others || spot.is_hidden != marks->is_hidden);
    }
    return n;
}

static peg_status set_marks(struct peg__layers *layers, const struct marks *marks,
                            struct peg__bin *bin)
{
    const size_t n_changes = count_changes(layers, marks);

    if (n_changes == 0)
        return PEG_OK;
    if (peg__layers_prepare(layers, n_changes, 0, bin))
        return PEG_ENOMEM;
    if (marks->clears_others)
        clear_marks(layers);
    for (size_t i = 0; i < marks->n; i++) {
        const struct peg__spot spot = find_name(layers, marks->names[i]);

        if (spot.tool && spot.is_hidden != marks->is_hidden)
            peg__layers_mark(layers, &spot, marks->is_hidden);
    }
    return PEG_OK;
}

static peg_status change_marks(peg_registry *registry, const struct marks *marks, peg_error *reterr)
{
    struct peg__bin bin = {0};
    peg_status status;

    pthread_rwlock_wrlock(&registry->lock);
    status = set_marks(&registry->layers, marks, &bin);
    peg__registry_unlock(registry, status == PEG_OK);
    peg__bin_empty(&bin);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

peg_status peg_registry_hide(peg_registry *registry, const char *const *names, size_t n,
                             peg_error *reterr)
{
    return change_marks(registry, &(struct marks){names, n, false, true}, reterr);
}

peg_status peg_registry_unhide(peg_registry *registry, const char *const *names, size_t n,
                               peg_error *reterr)
{
    return change_marks(registry, &(struct marks){names, n, false, false}, reterr);
}

peg_status peg_registry_set_hidden(peg_registry *registry, const char *const *names, size_t n,
                                   peg_error *reterr)
{
    return change_marks(registry, &(struct marks){names, n, true, true}, reterr);
}

peg_status peg_registry_clear_hidden(peg_registry *registry, peg_error *reterr)
{
    return change_marks(registry, &(struct marks){NULL, 0, true, true}, reterr);
}
