/* SPDX-License-Identifier: Apache-2.0 */

/* Documents: owned by one, or shared; and reading their values. Numbers are in number/. */

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/json.h"
#include "json/internal.h"
#include "json/json.h"

const peg_json_options peg__json_refuse_duplicates = {PEG_JSON_OPTIONS_INIT,
                                                      .duplicates = PEG_JSON_REFUSE};

bool peg__json_is_duplicate(const peg_error *error)
{
    return strcmp(error->code, "E_JSON_DUPLICATE_KEY") == 0;
}

peg_json_doc *peg__json_doc_new(size_t text_capacity)
{
    peg_json_doc *doc = peg__alloc(sizeof(*doc) + text_capacity);

    if (!doc)
        return NULL;
    *doc = (peg_json_doc){
        .text = doc->inlined, .text_capacity = text_capacity, .inlined_capacity = text_capacity};
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
        if (doc->text != doc->inlined)
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
    const size_t text = doc->text == doc->inlined ? 0 : doc->text_capacity;

    return sizeof(*doc) + doc->inlined_capacity + doc->capacity * sizeof(peg_json) + text +
           doc->strings.held;
}

struct peg__shared *peg__shared_new(peg_json_doc *doc)
{
    struct peg__shared *shared = peg__alloc(sizeof(*shared));

    if (!shared) {
        peg_json_doc_free(doc);
        return NULL;
    }
    atomic_init(&shared->n_refs, 1);
    atomic_init(&shared->depth, 0);
    atomic_init(&shared->is_lasting, false);
    shared->doc = doc;
    return shared;
}

struct peg__shared *peg__shared_ref(struct peg__shared *shared)
{
    if (shared)
        atomic_fetch_add_explicit(&shared->n_refs, 1, memory_order_relaxed);
    return shared;
}

struct peg__shared *peg__shared_unref(struct peg__shared *shared)
{
    if (!shared || !peg__refs_drop(&shared->n_refs))
        return NULL;
    peg_json_doc_free(shared->doc);
    peg__free(shared);
    return NULL;
}

const char *peg_json_kind_name(peg_json_kind kind)
{
    static const char *const names[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};

    return (unsigned)kind <= PEG_JSON_OBJECT ? names[kind] : "unknown";
}

const peg_json *peg_json_get_str(const peg_json *object, peg_str name)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (peg__str_eq(peg_json_str(key), name))
            return key + 1;
    }
    return NULL;
}

const peg_json *peg_json_get(const peg_json *object, const char *name)
{
    return peg_json_get_str(object, peg__str(name));
}

const peg_json *peg_json_at(const peg_json *array, size_t index)
{
    if (peg_json_kind_of(array) != PEG_JSON_ARRAY || index >= array->len)
        return NULL;
    /* As many values as items: none of them contains another. */
    if (array->u.extent == (uint64_t)array->len + 1)
        return array + 1 + index;
    PEG_JSON_EACH_ITEM (array, item) {
        if (index-- == 0)
            return item;
    }
    return NULL;
}

/* ---- with a fallback ------------------------------------------------------------ */

peg_str peg_json_str_or(const peg_json *value, const char *fallback)
{
    return peg_json_kind_of(value) == PEG_JSON_STRING ? peg_json_str(value) : peg__str(fallback);
}

bool peg_json_bool_or(const peg_json *value, bool fallback)
{
    return peg_json_kind_of(value) == PEG_JSON_BOOL ? peg_json_is_true(value) : fallback;
}

int64_t peg_json_int64_or(const peg_json *value, int64_t fallback)
{
    int64_t number;

    return peg_json_int64(value, &number) ? number : fallback;
}

double peg_json_double_or(const peg_json *value, double fallback)
{
    return peg_json_is_number(value) ? peg_json_double(value) : fallback;
}
