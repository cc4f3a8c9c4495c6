/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The members of a mapping once all of them are read. First every `<<` of YAML
 * 1.1 is replaced by the members it brings; then names that come twice are
 * settled: a member written in the mapping beats a merged one, an earlier merged
 * one beats a later, and between two written ones the caller's policy decides.
 */

#include "base/error.h"
#include "base/map.h"
#include "base/text/str.h"
#include "json/yaml/yaml.h"

/* Up to here names are compared with each other; beyond, a map is cheaper. */
enum { FEW_MEMBERS = 16, SHOWN_BYTES = 60 };

static peg_str name_of(const struct peg__yaml_node *key)
{
    return peg__yaml_resolve(key)->u.scalar.text;
}

/* ---- `<<` -------------------------------------------------------------------------- */

/* Where the members of a mapping are collected anew. */
struct list {
    struct peg__yaml_node **last;
    size_t n;
};

static void append(struct list *list, struct peg__yaml_node *node)
{
    *list->last = node;
    list->last = &node->next;
    list->n++;
}

static peg_status append_copy(struct peg__yaml_reader *r, const struct peg__yaml_node *at,
                              const struct peg__yaml_node *node, struct list *list)
{
    struct peg__yaml_node *copy;
    peg_status status = peg__yaml_charge(r, at, node->weight);

    if (status)
        return status;
    copy = peg__arena_alloc(&r->arena, sizeof(*copy));
    if (!copy)
        return peg__fail_nomem(r->reterr);
    /* Children are shared; they are complete, so nobody changes them any more. */
    *copy = *node;
    copy->index = at->index;
    copy->next = NULL;
    copy->is_merged = true;
    append(list, copy);
    return PEG_OK;
}

static peg_status merge_mapping(struct peg__yaml_reader *r, const struct peg__yaml_node *at,
                                const struct peg__yaml_node *source, struct list *list)
{
    const struct peg__yaml_node *key = source->u.children.first;

    for (; key; key = key->next->next) {
        peg_status status;

        if (key->is_dropped)
            continue;
        if ((status = append_copy(r, at, key, list)) ||
            (status = append_copy(r, at, key->next, list)))
            return status;
    }
    return PEG_OK;
}

static peg_status fail_merge(struct peg__yaml_reader *r, const struct peg__yaml_node *at)
{
    peg__fail(r->reterr, PEG_EPARSE, "E_YAML_SYNTAX",
              "'<<' merges a mapping or a sequence of mappings; quote it if it is a name");
    return peg__yaml_fail_at(r, at->index, PEG_EPARSE);
}

/* `value` is what stands behind `<<`. */
static peg_status merge(struct peg__yaml_reader *r, const struct peg__yaml_node *value,
                        struct list *list)
{
    const struct peg__yaml_node *source = peg__yaml_resolve(value);
    const struct peg__yaml_node *item;

    if (source->kind == PEG__YAML_MAPPING)
        return merge_mapping(r, value, source, list);
    if (source->kind != PEG__YAML_SEQUENCE)
        return fail_merge(r, value);
    for (item = source->u.children.first; item; item = item->next) {
        const struct peg__yaml_node *mapping = peg__yaml_resolve(item);
        peg_status status;

        if (mapping->kind != PEG__YAML_MAPPING)
            return fail_merge(r, item);
        status = merge_mapping(r, value, mapping, list);
        if (status)
            return status;
    }
    return PEG_OK;
}

static peg_status expand_merges(struct peg__yaml_reader *r, struct peg__yaml_node *mapping)
{
    struct peg__yaml_node *key = mapping->u.children.first;
    struct list list = {.last = &mapping->u.children.first};
    const size_t before = r->expanded;

    while (key) {
        struct peg__yaml_node *value = key->next;
        struct peg__yaml_node *next = value->next;

        if (key->is_merge) {
            const peg_status status = merge(r, value, &list);

            if (status)
                return status;
        } else {
            append(&list, key);
            append(&list, value);
        }
        key = next;
    }
    *list.last = NULL;
    mapping->u.children.n = list.n;
    mapping->weight += r->expanded - before;
    return PEG_OK;
}

static bool has_merge(const struct peg__yaml_node *mapping)
{
    const struct peg__yaml_node *key = mapping->u.children.first;

    while (key && !key->is_merge)
        key = key->next->next;
    return key;
}

/* ---- names that come twice ------------------------------------------------------------ */

static struct peg__yaml_node *find_before(const struct peg__yaml_node *mapping,
                                          const struct peg__yaml_node *key)
{
    struct peg__yaml_node *other = mapping->u.children.first;

    for (; other != key; other = other->next->next)
        if (!other->is_dropped && peg__str_eq(name_of(other), name_of(key)))
            return other;
    return NULL;
}

static bool replaces(const struct peg__yaml_reader *r, const struct peg__yaml_node *earlier,
                     const struct peg__yaml_node *later)
{
    if (earlier->is_merged != later->is_merged)
        return earlier->is_merged;
    return !later->is_merged && r->limits.duplicates == PEG_JSON_LAST_WINS;
}

/* Drops one of two keys of the same name; *ret_stays is the other. */
static peg_status settle(const struct peg__yaml_reader *r, struct peg__yaml_node *earlier,
                         struct peg__yaml_node *later, struct peg__yaml_node **ret_stays)
{
    const peg_str name = name_of(later);
    const bool later_stays = replaces(r, earlier, later);

    if (!earlier->is_merged && !later->is_merged && r->limits.duplicates == PEG_JSON_REFUSE) {
        peg__fail(r->reterr, PEG_EPARSE, "E_YAML_DUPLICATE_KEY",
                  "the mapping has '%.*s' twice; give each member a name of its own",
                  name.len > SHOWN_BYTES ? SHOWN_BYTES : (int)name.len, name.ptr);
        return peg__yaml_fail_at(r, later->index, PEG_EPARSE);
    }
    (later_stays ? earlier : later)->is_dropped = true;
    *ret_stays = later_stays ? later : earlier;
    return PEG_OK;
}

static peg_status settle_few(const struct peg__yaml_reader *r, struct peg__yaml_node *mapping)
{
    struct peg__yaml_node *key = mapping->u.children.first;
    struct peg__yaml_node *stays;

    for (; key; key = key->next->next) {
        struct peg__yaml_node *earlier = find_before(mapping, key);
        const peg_status status = earlier ? settle(r, earlier, key, &stays) : PEG_OK;

        if (status)
            return status;
    }
    return PEG_OK;
}

static peg_status settle_many(const struct peg__yaml_reader *r, struct peg__map *names,
                              struct peg__yaml_node *mapping)
{
    struct peg__yaml_node *key = mapping->u.children.first;

    for (; key; key = key->next->next) {
        struct peg__map_entry *entry = peg__map_find(names, name_of(key));
        struct peg__yaml_node *stays = key;
        peg_status status = entry ? settle(r, entry->value, key, &stays) : PEG_OK;

        if (status)
            return status;
        if (entry)
            entry->value = stays;
        else if (peg__map_add(names, name_of(key), key))
            return peg__fail_nomem(r->reterr);
    }
    return PEG_OK;
}

peg_status peg__yaml_settle_members(struct peg__yaml_reader *r, struct peg__yaml_node *mapping)
{
    struct peg__map names = PEG__MAP(UINT32_MAX / 4);
    peg_status status = has_merge(mapping) ? expand_merges(r, mapping) : PEG_OK;

    if (status)
        return status;
    if (mapping->u.children.n / 2 <= FEW_MEMBERS)
        return settle_few(r, mapping);
    status = settle_many(r, &names, mapping);
    peg__map_free(&names);
    return status;
}
