/* SPDX-License-Identifier: Apache-2.0 */

#include "json/doc.h"

#include <string.h>

#include "base/mem.h"
#include "json/json.h"

const peg_json_options peg__json_refuse_duplicates = {.duplicates = PEG_JSON_REFUSE};

bool peg__json_is_duplicate(const peg_error *error)
{
    return strcmp(error->code, "E_JSON_DUPLICATE_KEY") == 0;
}

peg_json_doc *peg__json_doc_new(size_t n_room)
{
    peg_json_doc *doc = peg__alloc(sizeof(*doc) + n_room);

    if (!doc)
        return NULL;
    *doc = (peg_json_doc){.text = doc->room, .text_capacity = n_room, .n_room = n_room};
    return doc;
}

void peg__json_doc_trim(peg_json_doc *doc)
{
    const size_t used = doc->values ? peg_json_extent(doc->values) : 0;
    peg_json *trimmed =
        used < doc->capacity ? peg__realloc(doc->values, used * sizeof(*trimmed)) : NULL;

    if (!trimmed)
        return; /* larger than need be, and as good */
    doc->values = trimmed;
    doc->capacity = used;
}

peg_json_doc *peg_json_doc_free(peg_json_doc *doc)
{
    if (doc) {
        peg__free(doc->values);
        if (doc->text != doc->room)
            peg__free(doc->text);
        peg__arena_free(&doc->strings);
    }
    peg__free(doc);
    return NULL;
}

const peg_json *peg_json_root(const peg_json_doc *doc)
{
    /* A document holds no value before its first parse and after one that failed. */
    return doc ? peg__json_or_null(doc->values) : NULL;
}

size_t peg_json_doc_bytes(const peg_json_doc *doc)
{
    if (!doc)
        return 0;
    const size_t text = doc->text == doc->room ? 0 : doc->text_capacity;

    return sizeof(*doc) + doc->n_room + doc->capacity * sizeof(peg_json) + text + doc->strings.held;
}
