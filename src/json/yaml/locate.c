/* SPDX-License-Identifier: Apache-2.0 */

/* The nodes of a YAML text know where they start, so the text is read once more for them. */

#include "json/parse/locate.h"
#include "base/text/str.h"
#include "json/yaml/yaml.h"

/* The key of a member; its value is the next node. */
static const struct peg__yaml_node *key_of(const struct peg__yaml_node *mapping, peg_str token)
{
    for (const struct peg__yaml_node *key = mapping->u.children.first; key; key = key->next->next) {
        if (!key->is_dropped && peg__pointer_is_name(token, peg__yaml_resolve(key)->u.scalar.text))
            return key;
    }
    return NULL;
}

static const struct peg__yaml_node *item_of(const struct peg__yaml_node *sequence, peg_str token)
{
    const struct peg__yaml_node *item = sequence->u.children.first;

    for (size_t i = peg__pointer_index(token); item && i > 0; i--)
        item = item->next;
    return item;
}

/* Where the value stands, or the key of a member; NULL: there is none. */
static const struct peg__yaml_node *child_of(const struct peg__yaml_node *node, peg_str token,
                                             const struct peg__yaml_node **ret_key)
{
    node = peg__yaml_resolve(node);
    *ret_key = node->kind == PEG__YAML_MAPPING ? key_of(node, token) : NULL;
    if (*ret_key)
        return (*ret_key)->next;
    return node->kind == PEG__YAML_SEQUENCE ? item_of(node, token) : NULL;
}

static size_t locate(peg_str text, const peg_json_options *options, peg_str pointer, bool wants_key)
{
    struct peg__yaml_reader r = {.text = text};
    const struct peg__yaml_node *node = NULL;
    const struct peg__yaml_node *key = NULL;
    size_t index = 0;
    peg_str token;

    if (!peg__yaml_read(&r, options, &node) && node)
        index = node->index;
    while (node && peg__pointer_next(&pointer, &token) && (node = child_of(node, token, &key)))
        index = wants_key && key ? key->index : node->index;
    peg__arena_free(&r.arena);
    return peg__yaml_offset(text, index);
}

size_t peg__yaml_locate(peg_str text, const peg_json_options *options, peg_str pointer)
{
    return locate(text, options, pointer, false);
}

size_t peg__yaml_locate_key(peg_str text, const peg_json_options *options, peg_str pointer)
{
    return locate(text, options, pointer, true);
}
