/* SPDX-License-Identifier: Apache-2.0 */

/* Snapshots of the catalog, how they get to the loops, and the index that goes with them. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "gateway/search/search.h"

struct gw_snapshot *gw_snapshot_ref(struct gw_snapshot *snapshot)
{
    if (snapshot)
        peg__refs_take(&snapshot->n_refs);
    return snapshot;
}

struct gw_snapshot *gw_snapshot_unref(struct gw_snapshot *snapshot)
{
    if (!snapshot || !peg__refs_drop(&snapshot->n_refs))
        return NULL;
    for (size_t i = 0; i < snapshot->n; i++)
        gw_toolset_unref(snapshot->toolsets[i]);
    gw_search_index_unref(snapshot->index);
    peg__free(snapshot);
    return NULL;
}

size_t gw_snapshot_behind(const struct gw_snapshot *snapshot, peg_str name)
{
    size_t low = 0;
    size_t high = snapshot->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (peg__str_compare(snapshot->toolsets[middle]->name, name) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct gw_toolset *gw_snapshot_find(const struct gw_snapshot *snapshot, peg_str name)
{
    const size_t behind = gw_snapshot_behind(snapshot, name);
    struct gw_toolset *toolset = behind > 0 ? snapshot->toolsets[behind - 1] : NULL;

    return toolset && peg__str_eq(toolset->name, name) ? toolset : NULL;
}

/* ---- making them -------------------------------------------------------------------------------
 */

/* Parts of an index that a worker puts together. */
struct gw_merge {
    struct net_work work; /* first */
    struct gw_catalog *catalog;
    struct gw_search_index *index; /* a reference */
    unsigned first;
    unsigned end;
    struct gw_segment *merged; /* NULL: no memory */
};

static struct gw_toolsets toolsets_of(const struct gw_catalog *catalog)
{
    return (struct gw_toolsets){.list = catalog->toolsets, .n = catalog->n};
}

static struct gw_search_index *next_index(const struct gw_catalog *catalog)
{
    const struct gw_toolsets before = {
        .list = catalog->last ? catalog->last->toolsets : NULL,
        .n = catalog->last ? catalog->last->n : 0,
    };

    return gw_search_index_next(catalog->index, catalog->merge ? catalog->merge->end : 0, before,
                                toolsets_of(catalog));
}

static struct gw_snapshot *make(struct gw_catalog *catalog)
{
    struct gw_snapshot *snapshot =
        peg__alloc_zero(1, sizeof(*snapshot) + catalog->n * sizeof(struct gw_toolset *));
    struct gw_search_index *index = next_index(catalog);
    struct gw_toolset **toolsets;

    if (!snapshot || !index) {
        peg__free(snapshot);
        gw_search_index_unref(index);
        return NULL;
    }
    toolsets = (struct gw_toolset **)(void *)(snapshot + 1);
    atomic_init(&snapshot->n_refs, 1);
    snapshot->number = catalog->last ? catalog->last->number + 1 : 1;
    snapshot->toolsets = toolsets;
    snapshot->n = catalog->n;
    snapshot->index = index;
    for (size_t i = 0; i < catalog->n; i++) {
        toolsets[i] = gw_toolset_ref(catalog->toolsets[i]);
        snapshot->n_tools += toolsets[i]->n_tools;
    }
    return snapshot;
}

/* On a worker. */
static void merge_parts(struct net_work *work)
{
    struct gw_merge *merge = (struct gw_merge *)work;

    merge->merged = gw_search_index_merge(merge->index, merge->first, merge->end);
}

/* The index becomes that of the next snapshot; without memory it stays as it was. */
static void on_merged(struct net_work *work, bool was_canceled)
{
    struct gw_merge *merge = (struct gw_merge *)work;
    struct gw_catalog *catalog = merge->catalog;
    struct gw_search_index *index = NULL;

    catalog->merge = NULL;
    if (!was_canceled && merge->merged &&
        gw_search_index_shares(catalog->index, merge->index, merge->first, merge->end))
        index = gw_search_index_replace(
            catalog->index, merge->first, merge->end, merge->merged,
            (struct gw_toolsets){.list = catalog->last->toolsets, .n = catalog->last->n});
    if (index) {
        gw_search_index_unref(catalog->index);
        catalog->index = index;
        catalog->is_dirty = true;
        catalog_publish_later(catalog);
    }
    gw_segment_unref(merge->merged);
    gw_search_index_unref(merge->index);
    peg__free(merge);
    catalog_check_stopped(catalog);
}

static void merge_if_worth_while(struct gw_catalog *catalog)
{
    struct gw_merge *merge;
    unsigned first;

    if (catalog->merge || !gw_search_index_wants_merge(catalog->index, &first))
        return;
    merge = peg__alloc_zero(1, sizeof(*merge));
    if (!merge)
        return;
    *merge = (struct gw_merge){.work = {.work = merge_parts, .done = on_merged},
                               .catalog = catalog,
                               .index = gw_search_index_ref(catalog->index),
                               .first = first,
                               .end = gw_search_index_n_parts(catalog->index)};
    if (net_loop_work(catalog->home, &merge->work) == PEG_OK) {
        catalog->merge = merge;
        return;
    }
    gw_search_index_unref(merge->index);
    peg__free(merge);
}

void catalog_snapshot_free(struct gw_catalog *catalog)
{
    catalog->last = gw_snapshot_unref(catalog->last);
    catalog->index = gw_search_index_unref(catalog->index);
}

/* ---- sending -----------------------------------------------------------------------------------
 */

struct letter {
    struct net_message message; /* first */
    void (*on_snapshot)(void *desk, struct gw_snapshot *snapshot);
    void *desk;
    struct gw_snapshot *snapshot; /* a reference */
};

static void deliver(struct net_message *message)
{
    struct letter *letter = (struct letter *)message;

    letter->on_snapshot(letter->desk, letter->snapshot);
    gw_snapshot_unref(letter->snapshot);
    peg__free(letter);
}

/* All of them, or none. */
static bool make_letters(const struct gw_catalog *catalog, struct letter **letters, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        letters[i] = peg__alloc_zero(1, sizeof(*letters[i]));
        if (!letters[i]) {
            while (i > 0)
                peg__free(letters[--i]);
            return false;
        }
        letters[i]->message.fn = deliver;
        letters[i]->on_snapshot = catalog->events.on_snapshot;
        letters[i]->desk = catalog->desks[i];
    }
    return true;
}

static bool send_all(struct gw_catalog *catalog)
{
    const unsigned n = net_loops_len(catalog->loops);
    struct letter *letters[PEG_LIMIT_NET_LOOPS];
    struct gw_snapshot *snapshot = make(catalog);

    if (!snapshot || !make_letters(catalog, letters, n)) {
        gw_snapshot_unref(snapshot);
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        letters[i]->snapshot = gw_snapshot_ref(snapshot);
        net_loop_post(net_loops_at(catalog->loops, i), &letters[i]->message);
    }
    catalog_snapshot_free(catalog);
    catalog->last = snapshot;
    catalog->index = gw_search_index_ref(snapshot->index);
    catalog->is_dirty = false;
    merge_if_worth_while(catalog);
    return true;
}

static void answer_written(struct gw_catalog *catalog)
{
    while (catalog->written) {
        struct gw_change *change = catalog->written;

        catalog->written = change->next;
        change_answer(change);
    }
    catalog->written_end = &catalog->written;
}

void catalog_publish(struct gw_catalog *catalog)
{
    if (catalog->is_told && (catalog->is_dirty || !catalog->last) && !catalog->is_stopping &&
        !send_all(catalog)) {
        catalog_try_again(catalog, false);
        return;
    }
    if (catalog->last && !catalog->is_started)
        catalog_signal(catalog, &catalog->is_started);
    answer_written(catalog);
}

void catalog_publish_later(struct gw_catalog *catalog)
{
    if (catalog->is_dirty && !catalog->is_stopping)
        net_loop_later(catalog->home, &catalog->later);
}
