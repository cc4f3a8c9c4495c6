/* SPDX-License-Identifier: Apache-2.0 */

#include "json/doc.h"

#include "base/mem.h"

/* The root of a document that holds nothing yet, or whose parse failed. */
static const peg_json null_value;

peg_json_doc *peg__json_doc_new(void)
{
    return peg__alloc_zero(1, sizeof(peg_json_doc));
}

peg_json_doc *peg_json_doc_free(peg_json_doc *doc)
{
    if (doc) {
        peg__free(doc->values);
        peg__free(doc->text);
        peg__arena_free(&doc->strings);
    }
    peg__free(doc);
    return NULL;
}

const peg_json *peg_json_root(const peg_json_doc *doc)
{
    return doc->values ? doc->values : &null_value;
}

size_t peg_json_doc_bytes(const peg_json_doc *doc)
{
    return sizeof(*doc) + doc->capacity * sizeof(peg_json) + doc->text_capacity + doc->strings.held;
}
