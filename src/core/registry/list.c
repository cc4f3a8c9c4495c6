/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of a registry's tools, and which of them a model is told about. */

#include "base/error.h"
#include "base/mem.h"
#include "core/registry/registry.h"

/* ---- lists ----------------------------------------------------------------------------------- */

enum wanted { ALL, VISIBLE, HIDDEN };

static bool is_wanted(enum wanted wanted, const struct peg__spot *spot)
{
    return wanted == ALL || spot->is_hidden == (wanted == HIDDEN);
}

static peg_status collect(const struct peg__layers *layers, enum wanted wanted,
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
    status = collect(&registry->layers, wanted, ret_list);
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
