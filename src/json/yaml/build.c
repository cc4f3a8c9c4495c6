/* SPDX-License-Identifier: Apache-2.0 */

/* From the tree of a YAML text to a document. Aliases are followed, so a node may be added more
 * than once; the reader has bounded how much that is, and how deep. */

#include "base/error.h"
#include "base/mem.h"
#include "json/yaml/yaml.h"

/* A container that is being added. */
struct frame {
    bool is_mapping;
    const struct peg__yaml_node *next; /* its next item or key */
};

/* Adds a scalar, or opens a container: then *ret_frame is set and the answer is true. */
static bool add(peg_json_builder *b, const struct peg__yaml_node *node, struct frame *ret_frame)
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
static const struct peg__yaml_node *step(peg_json_builder *b, struct frame *frame)
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
    /* One more than needed, so that add() always has a frame to write to. */
    PEG_CLEANUP(peg__freep)
    struct frame *frames = peg__alloc((root->height + (size_t)1) * sizeof(*frames));
    peg_json_builder *b = frames ? peg_json_builder_new() : NULL;
    size_t depth;

    if (!b)
        return peg__fail_nomem(reterr);
    depth = add(b, root, &frames[0]) ? 1 : 0;
    while (depth) {
        const struct peg__yaml_node *value = step(b, &frames[depth - 1]);

        if (!value) {
            peg_json_close(b);
            depth--;
        } else if (add(b, value, &frames[depth])) {
            depth++;
        }
    }
    return peg_json_builder_finish(b, ret_doc, reterr);
}
