/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An index is a list of segments, each about half as large as the one before it, or less. A toolset
 * that is registered makes a segment of one; small segments at the end of the list are put together
 * at once, larger ones by a worker, now and then. So registering n toolsets one after the other
 * reads each of them some log n times, and a search looks at some log n segments.
 *
 * A toolset that is changed or removed stays in its segment, marked as dead, until that is put
 * together with others.
 */

#include <stdlib.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

enum {
    AT_ONCE = 32,  /* toolsets: half a millisecond with one tool each */
    MAX_DEAD = 64, /* more than so many, and most of a segment: it is made anew */
};

/* ---- parts ---- */

static uint32_t n_living(const struct gw_part *part)
{
    return part->segment->n_docs - part->n_dead;
}

static size_t dead_bytes(const struct gw_part *part)
{
    return (part->segment->n_docs + 63) / 64 * sizeof(uint64_t);
}

static bool copy_part(const struct gw_part *part, struct gw_part *ret_copy)
{
    *ret_copy = (struct gw_part){
        .segment = part->segment, .n_dead = part->n_dead, .n_dead_texts = part->n_dead_texts};
    if (part->dead) {
        ret_copy->dead = peg__alloc(dead_bytes(part));
        if (!ret_copy->dead)
            return false;
        memcpy(ret_copy->dead, part->dead, dead_bytes(part));
    }
    gw_segment_ref(part->segment);
    return true;
}

static void free_part(struct gw_part *part)
{
    gw_segment_unref(part->segment);
    peg__free(part->dead);
}

static bool mark_dead(struct gw_part *part, uint32_t doc)
{
    if (!part->dead)
        part->dead = peg__alloc_zero(1, dead_bytes(part));
    if (!part->dead)
        return false;
    part->dead[doc / 64] |= UINT64_C(1) << (doc % 64);
    part->n_dead++;
    part->n_dead_texts += (uint32_t)part->segment->docs[doc]->n_tools + 1;
    return true;
}

/* The place of a toolset in a list that is sorted by name, or -1. */
static int64_t find_toolset(struct gw_toolset *const *list, size_t n,
                            const struct gw_toolset *toolset)
{
    size_t low = 0;
    size_t high = n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(toolset->name.ptr, list[middle]->name.ptr);

        if (order == 0)
            return list[middle] == toolset ? (int64_t)middle : -1;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* ---- indexes ---- */

struct gw_search_index *gw_search_index_ref(struct gw_search_index *index)
{
    if (index)
        peg__refs_take(&index->n_refs);
    return index;
}

struct gw_search_index *gw_search_index_unref(struct gw_search_index *index)
{
    if (!index || !peg__refs_drop(&index->n_refs))
        return NULL;
    for (unsigned i = 0; i < index->n_parts; i++)
        free_part(&index->parts[i]);
    peg__free(index);
    return NULL;
}

size_t gw_search_index_bytes(const struct gw_search_index *index)
{
    size_t bytes = sizeof(*index);

    for (unsigned i = 0; i < index->n_parts; i++)
        bytes += gw_segment_bytes(index->parts[i].segment);
    return bytes;
}

/* Parts [first, end) of another one, behind those that are there. */
static bool copy_parts(struct gw_search_index *index, const struct gw_search_index *from,
                       unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        if (!copy_part(&from->parts[i], &index->parts[index->n_parts]))
            return false;
        index->n_parts++;
    }
    return true;
}

struct gw_search_index *gw_search_index_new(struct gw_language language)
{
    struct gw_search_index *index = peg__alloc_zero(1, sizeof(*index));

    if (index) {
        atomic_init(&index->n_refs, 1);
        index->language = language;
    }
    return index;
}

unsigned gw_search_index_n_parts(const struct gw_search_index *index)
{
    return index->n_parts;
}

/* ---- differences ---- */

/* Toolsets that came and went: both in one array of references that others hold. */
struct difference {
    struct gw_toolset **added;
    size_t n_added;
    struct gw_toolset **gone;
    size_t n_gone;
};

/* Which of two, either of which may be NULL, comes first; 0: they are of one name. */
static int compare_ends(const struct gw_toolset *old, const struct gw_toolset *new)
{
    if (old == new)
        return 0;
    if (!old || !new)
        return old ? -1 : 1;
    return strcmp(old->name.ptr, new->name.ptr);
}

static bool compare_catalogs(struct gw_toolsets before, struct gw_toolsets now,
                             struct difference *ret_difference)
{
    struct difference d = {.n_added = 0};
    size_t i = 0;
    size_t j = 0;

    d.added = peg__alloc((before.n + now.n + 1) * sizeof(*d.added));
    if (!d.added)
        return false;
    d.gone = d.added + now.n;
    while (i < before.n || j < now.n) {
        struct gw_toolset *old = i < before.n ? before.list[i] : NULL;
        struct gw_toolset *new = j < now.n ? now.list[j] : NULL;
        const int order = compare_ends(old, new);

        i += order <= 0;
        j += order >= 0;
        if (order <= 0 && old != new)
            d.gone[d.n_gone++] = old;
        if (order >= 0 && old != new)
            d.added[d.n_added++] = new;
    }
    *ret_difference = d;
    return true;
}

static bool bury(struct gw_search_index *index, const struct gw_toolset *toolset)
{
    for (unsigned i = 0; i < index->n_parts; i++) {
        struct gw_part *part = &index->parts[i];
        const int64_t doc = find_toolset(part->segment->docs, part->segment->n_docs, toolset);

        if (doc >= 0 && gw_part_lives(part, (uint32_t)doc))
            return mark_dead(part, (uint32_t)doc);
    }
    return true;
}

/* ---- putting together ---- */

static int compare_docs(const void *a, const void *b)
{
    return strcmp((*(struct gw_toolset *const *)a)->name.ptr,
                  (*(struct gw_toolset *const *)b)->name.ptr);
}

static size_t collect_living(const struct gw_search_index *index, unsigned first, unsigned end,
                             struct gw_toolset **ret_docs)
{
    size_t n = 0;

    for (unsigned i = first; i < end; i++) {
        const struct gw_part *part = &index->parts[i];

        for (uint32_t doc = 0; doc < part->segment->n_docs; doc++) {
            if (gw_part_lives(part, doc))
                ret_docs[n++] = part->segment->docs[doc];
        }
    }
    return n;
}

/* What lives of the parts from `first` to `end`, and some more toolsets. */
static struct gw_segment *put_together(const struct gw_search_index *index, unsigned first,
                                       unsigned end, const struct difference *more)
{
    size_t n = more ? more->n_added : 0;
    struct gw_toolset **docs;
    struct gw_segment *segment;

    for (unsigned i = first; i < end; i++)
        n += n_living(&index->parts[i]);
    docs = peg__alloc((n + 1) * sizeof(*docs));
    if (!docs)
        return NULL;
    n = collect_living(index, first, end, docs);
    if (more && more->n_added)
        memcpy(docs + n, more->added, more->n_added * sizeof(*docs));
    n += more ? more->n_added : 0;
    qsort(docs, n, sizeof(*docs), compare_docs);
    segment = gw_segment_new(docs, (uint32_t)n, index->language);
    peg__free(docs);
    return segment;
}

/* From which part on those at the end are small enough to be put together with the new ones now. */
static unsigned first_small(const struct gw_search_index *index, unsigned kept, size_t n_added)
{
    unsigned first = index->n_parts;
    size_t total = n_added;

    while (first > kept) {
        const size_t n = n_living(&index->parts[first - 1]);

        if (n >= 2 * total || (n > 0 && n + total > AT_ONCE))
            break;
        total += n;
        first--;
    }
    return first == GW_SEGMENTS ? (kept < GW_SEGMENTS ? kept : 0) : first;
}

static bool append_segment(struct gw_search_index *index, unsigned kept, const struct difference *d)
{
    const unsigned first = first_small(index, kept, d->n_added);
    struct gw_segment *segment;

    if (d->n_added == 0)
        return true;
    segment = put_together(index, first, index->n_parts, d);
    if (!segment)
        return false;
    while (index->n_parts > first)
        free_part(&index->parts[--index->n_parts]);
    index->parts[index->n_parts++] = (struct gw_part){.segment = segment};
    return true;
}

struct gw_search_index *gw_search_index_next(const struct gw_search_index *index, unsigned kept,
                                             struct gw_toolsets before, struct gw_toolsets now)
{
    struct gw_search_index *next = gw_search_index_new(index->language);
    struct difference d;
    bool is_made;

    if (!next || !compare_catalogs(before, now, &d)) {
        gw_search_index_unref(next);
        return NULL;
    }
    is_made = copy_parts(next, index, 0, index->n_parts);
    for (size_t i = 0; is_made && i < d.n_gone; i++)
        is_made = bury(next, d.gone[i]);
    is_made = is_made && append_segment(next, kept, &d);
    peg__free(d.added);
    return is_made ? next : gw_search_index_unref(next);
}

/* ---- by workers ---- */

bool gw_search_index_wants_merge(const struct gw_search_index *index, unsigned *ret_first)
{
    const unsigned n = index->n_parts;
    unsigned first = n;
    size_t total = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct gw_part *part = &index->parts[i];

        if (part->n_dead > MAX_DEAD && part->n_dead > n_living(part)) {
            *ret_first = i;
            return true;
        }
    }
    while (first > 0 && (first == n || n_living(&index->parts[first - 1]) < 2 * total))
        total += n_living(&index->parts[--first]);
    *ret_first = first;
    return n >= 2 && first + 1 < n;
}

struct gw_segment *gw_search_index_merge(const struct gw_search_index *index, unsigned first,
                                         unsigned end)
{
    return put_together(index, first, end, NULL);
}

/* Those that died while the worker was at it. */
static bool bury_missing(struct gw_part *part, struct gw_toolsets now)
{
    for (uint32_t doc = 0; doc < part->segment->n_docs; doc++) {
        if (find_toolset(now.list, now.n, part->segment->docs[doc]) < 0 && !mark_dead(part, doc))
            return false;
    }
    return true;
}

bool gw_search_index_shares(const struct gw_search_index *index,
                            const struct gw_search_index *other, unsigned first, unsigned end)
{
    if (index->n_parts < end || other->n_parts < end)
        return false;
    for (unsigned i = first; i < end; i++) {
        if (index->parts[i].segment != other->parts[i].segment)
            return false;
    }
    return true;
}

struct gw_search_index *gw_search_index_replace(const struct gw_search_index *index, unsigned first,
                                                unsigned end, struct gw_segment *merged,
                                                struct gw_toolsets now)
{
    struct gw_search_index *next = gw_search_index_new(index->language);
    bool is_made = next && copy_parts(next, index, 0, first);

    if (is_made) {
        next->parts[next->n_parts++] = (struct gw_part){.segment = gw_segment_ref(merged)};
        is_made =
            bury_missing(&next->parts[first], now) && copy_parts(next, index, end, index->n_parts);
    }
    return is_made ? next : gw_search_index_unref(next);
}
