/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree of a YAML text. When all members of a mapping are read, every `<<` of YAML 1.1 is
 * replaced by the members it brings; then duplicate names are settled: a member written in the
 * mapping beats a merged one, an earlier merged one beats a later, and between two written ones the
 * option decides. A complete tree becomes a document: aliases are followed, so a node may be added
 * more than once; the reader has bounded how much that is, and how deep.
 */

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/yaml/yaml.h"

/* Up to here names are compared with each other; beyond, a map is cheaper. */
enum { FEW_MEMBERS = 16, SHOWN_BYTES = 60 };

/* ---- errors and limits ------------------------------------------------------------ */

size_t peg__yaml_mark_len(peg_str text)
{
    static const peg_str mark = PEG_LIT("\xEF\xBB\xBF");

    return peg__str_starts(text, mark) ? mark.len : 0;
}

size_t peg__yaml_offset(peg_str text, size_t index)
{
    size_t offset = peg__yaml_mark_len(text);

    while (offset < text.len && index > 0) {
        offset++;
        while (offset < text.len && ((unsigned char)text.ptr[offset] & 0xC0) == 0x80)
            offset++;
        index--;
    }
    return offset;
}

peg_status peg__yaml_fail_at(const struct peg__yaml_reader *r, size_t index, peg_status status)
{
    if (r->reterr)
        peg__error_at(r->reterr, r->text, peg__yaml_offset(r->text, index));
    return status;
}

peg_status peg__yaml_charge(struct peg__yaml_reader *r, const struct peg__yaml_node *at,
                            uint64_t weight)
{
    if (weight <= r->limits.max_bytes - r->expanded) {
        r->expanded += weight;
        return PEG_OK;
    }
    peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
              "the aliases expand to more than %zu bytes (max_bytes); write less of it by alias",
              r->limits.max_bytes);
    return peg__yaml_fail_at(r, at->index, PEG_ELIMIT);
}

/* ---- members ----------------------------------------------------------------------- */

static peg_str key_name(const struct peg__yaml_node *key)
{
    return peg__yaml_resolve(key)->u.scalar.text;
}

/* ---- `<<` -------------------------------------------------------------------------- */

/* Where the members of a mapping are collected anew. */
struct list {
    struct peg__yaml_node **last;
    size_t n;
};

static void append_node(struct list *list, struct peg__yaml_node *node)
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
    /* Children are shared; they are complete and no longer change. */
    *copy = *node;
    copy->index = at->index;
    copy->next = NULL;
    copy->is_merged = true;
    append_node(list, copy);
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
static peg_status merge_value(struct peg__yaml_reader *r, const struct peg__yaml_node *value,
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
            const peg_status status = merge_value(r, value, &list);

            if (status)
                return status;
        } else {
            append_node(&list, key);
            append_node(&list, value);
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
        if (!other->is_dropped && peg__str_eq(key_name(other), key_name(key)))
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
static peg_status settle_pair(const struct peg__yaml_reader *r, struct peg__yaml_node *earlier,
                              struct peg__yaml_node *later, struct peg__yaml_node **ret_stays)
{
    const peg_str name = key_name(later);
    const bool later_stays = replaces(r, earlier, later);

    if (!earlier->is_merged && !later->is_merged && r->limits.duplicates == PEG_JSON_REFUSE) {
        peg__fail(r->reterr, PEG_EPARSE, "E_JSON_DUPLICATE_KEY",
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
        const peg_status status = earlier ? settle_pair(r, earlier, key, &stays) : PEG_OK;

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
        struct peg__map_entry *entry = peg__map_find(names, key_name(key));
        struct peg__yaml_node *stays = key;
        peg_status status = entry ? settle_pair(r, entry->value, key, &stays) : PEG_OK;

        if (status)
            return status;
        if (entry)
            entry->value = stays;
        else if (peg__map_add(names, key_name(key), key))
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

/* ---- from the tree to a document ----------------------------------------------------- */

/* A container that is being added. */
struct frame {
    bool is_mapping;
    const struct peg__yaml_node *next; /* its next item or key */
};

/* Adds a scalar, or opens a container: then *ret_frame is set and the answer is true. */
static bool add_tree_node(peg_json_builder *b, const struct peg__yaml_node *node,
                          struct frame *ret_frame)
{
    node = peg__yaml_resolve(node);
    if (node->kind == PEG__YAML_SCALAR) {
        peg_json_add_copy(b, &node->u.scalar.value);
        return false;
    }
    *ret_frame = (struct frame){.is_mapping = node->kind == PEG__YAML_MAPPING,
                                .next = node->u.children.first};
    if (ret_frame->is_mapping)
        peg_json_open_object(b);
    else
        peg_json_open_array(b);
    return true;
}

/* The value that comes next in a container, its key added; NULL at the end. */
static const struct peg__yaml_node *next_value(peg_json_builder *b, struct frame *frame)
{
    const struct peg__yaml_node *value;

    while (frame->is_mapping && frame->next && frame->next->is_dropped)
        frame->next = frame->next->next->next;
    value = frame->next;
    if (value && frame->is_mapping) {
        peg_json_add_key(b, peg__yaml_resolve(value)->u.scalar.text);
        value = value->next;
    }
    if (value)
        frame->next = value->next;
    return value;
}

peg_status peg__yaml_build(const struct peg__yaml_node *root, peg_json_doc **ret_doc,
                           peg_error *reterr)
{
    /* One more than needed, so that add_tree_node() always has a frame to write to. */
    PEG_CLEANUP(peg__freep)
    struct frame *frames = peg__alloc((root->height + (size_t)1) * sizeof(*frames));
    peg_json_builder *b = frames ? peg_json_builder_new() : NULL;
    size_t depth;

    if (!b)
        return peg__fail_nomem(reterr);
    depth = add_tree_node(b, root, &frames[0]) ? 1 : 0;
    while (depth) {
        const struct peg__yaml_node *value = next_value(b, &frames[depth - 1]);

        if (!value) {
            peg_json_close(b);
            depth--;
        } else if (add_tree_node(b, value, &frames[depth])) {
            depth++;
        }
    }
    return peg_json_builder_finish(b, ret_doc, reterr);
}
