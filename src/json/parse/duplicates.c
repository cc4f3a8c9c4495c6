/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Duplicate members are rare, so dropping them may be slow, but never quadratic: mark them
 * by a hash table for each object, then copy the document without what is marked.
 */

#include "json/parse/internal.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

enum { DROPPED = 0xFF }; /* in `form` of a key, which is else 0 */

static bool same_key(const peg_json *a, const peg_json *b)
{
    return a->len == b->len && memcmp(a->u.ptr, b->u.ptr, a->len) == 0;
}

bool peg__json_has_key_before(const peg_json *object, const peg_json *key)
{
    for (const peg_json *other = object + 1; other < key; other = peg_json_next(other + 1))
        if (same_key(other, key))
            return true;
    return false;
}

/* ---- a set of keys -------------------------------------------------------- */

struct key_set {
    const peg_json **slots;
    size_t mask;
};

static bool key_set_init(struct key_set *set, size_t n)
{
    size_t n_slots = 8;

    while (n_slots < n * 2)
        n_slots *= 2;
    set->mask = n_slots - 1;
    set->slots = peg__alloc_zero(n_slots, sizeof(*set->slots));
    return set->slots != NULL;
}

/* The slot of an equal key, or an empty one. */
static const peg_json **key_set_find(const struct key_set *set, const peg_json *key)
{
    /* The address of the set is a seed that the text's author does not know. */
    size_t at = peg_json_hash(key, (uintptr_t)set->slots) & set->mask;

    while (set->slots[at] && !same_key(set->slots[at], key))
        at = (at + 1) & set->mask;
    return &set->slots[at];
}

bool peg__json_find_duplicate(const peg_json *object, const peg_json **ret_key)
{
    struct key_set set;
    const peg_json *found = NULL;

    if (!key_set_init(&set, object->len))
        return false;
    PEG_JSON_EACH_MEMBER (object, key) {
        const peg_json **slot = key_set_find(&set, key);

        if (*slot) {
            found = key;
            break;
        }
        *slot = key;
    }
    peg__free(set.slots);
    *ret_key = found;
    return true;
}

/* ---- dropping ------------------------------------------------------------- */

static peg_json *writable(const peg_json_doc *doc, const peg_json *value)
{
    return doc->values + (value - doc->values);
}

static bool mark_object(const peg_json_doc *doc, const peg_json *object, peg_json_duplicates policy)
{
    struct key_set set;

    if (!key_set_init(&set, object->len))
        return false;
    PEG_JSON_EACH_MEMBER (object, key) {
        const peg_json **slot = key_set_find(&set, key);
        const peg_json *loser = policy == PEG_JSON_FIRST_WINS ? key : *slot;

        if (*slot)
            writable(doc, loser)->form = DROPPED;
        if (!*slot || policy != PEG_JSON_FIRST_WINS)
            *slot = key;
    }
    peg__free(set.slots);
    return true;
}

static void unmark(peg_json_doc *doc)
{
    for (size_t i = 0, n = peg_json_extent(doc->values); i < n; i++)
        if (doc->values[i].kind == PEG_JSON_STRING)
            doc->values[i].form = 0;
}

static bool mark(peg_json_doc *doc, peg_json_duplicates policy)
{
    for (size_t i = 0, n = peg_json_extent(doc->values); i < n; i++)
        if (doc->values[i].kind == PEG_JSON_OBJECT && doc->values[i].len > 1 &&
            !mark_object(doc, &doc->values[i], policy)) {
            unmark(doc);
            return false;
        }
    return true;
}

struct open_container {
    size_t end; /* old index behind its last value */
    size_t new_index;
};

/* Moves the values together in place: what is written never overtakes what is read. */
static void compact(peg_json_doc *doc, struct open_container *open)
{
    peg_json *values = doc->values;
    const size_t n = peg_json_extent(values);
    size_t depth = 0;
    size_t to = 0;

    for (size_t from = 0; from < n;) {
        while (depth > 0 && open[depth - 1].end == from) {
            values[open[depth - 1].new_index].u.extent = to - open[depth - 1].new_index;
            depth--;
        }
        if (values[from].kind == PEG_JSON_STRING && values[from].form == DROPPED) {
            values[open[depth - 1].new_index].len--;
            from += 1 + peg_json_extent(&values[from + 1]);
            continue;
        }
        if (values[from].kind >= PEG_JSON_ARRAY)
            open[depth++] = (struct open_container){from + values[from].u.extent, to};
        values[to++] = values[from++];
    }
    while (depth > 0) {
        depth--;
        values[open[depth].new_index].u.extent = to - open[depth].new_index;
    }
}

/* One entry for each is more than the deepest nesting needs, and documents that need it are rare.
 */
static size_t count_containers(const peg_json_doc *doc)
{
    size_t n = 0;

    for (size_t i = 0, end = peg_json_extent(doc->values); i < end; i++)
        n += doc->values[i].kind >= PEG_JSON_ARRAY;
    return n;
}

bool peg__json_drop_duplicates(peg_json_doc *doc, peg_json_duplicates policy)
{
    struct open_container *open = peg__alloc_zero(count_containers(doc) + 1, sizeof(*open));

    if (!open)
        return false;
    if (!mark(doc, policy)) {
        peg__free(open);
        return false;
    }
    compact(doc, open);
    peg__free(open);
    return true;
}
