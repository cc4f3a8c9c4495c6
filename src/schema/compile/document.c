/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/compile/compile.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

enum { MAX_DOCUMENTS = 10000 };

struct peg__document {
    atomic_uint refs;
    peg_json_doc *json; /* owned */
    size_t uri_len;
    char uri[];
};

struct peg__document *peg__document_new(peg_str uri, peg_json_doc *json)
{
    struct peg__document *document = peg__alloc(sizeof(*document) + uri.len);

    if (!document) {
        peg_json_doc_free(json);
        return NULL;
    }
    atomic_init(&document->refs, 1);
    document->json = json;
    document->uri_len = uri.len;
    if (uri.len)
        memcpy(document->uri, uri.ptr, uri.len);
    return document;
}

struct peg__document *peg__document_ref(struct peg__document *document)
{
    atomic_fetch_add_explicit(&document->refs, 1, memory_order_relaxed);
    return document;
}

struct peg__document *peg__document_unref(struct peg__document *document)
{
    if (document && atomic_fetch_sub_explicit(&document->refs, 1, memory_order_acq_rel) == 1) {
        peg_json_doc_free(document->json);
        peg__free(document);
    }
    return NULL;
}

peg_str peg__document_uri(const struct peg__document *document)
{
    return peg__strn(document->uri, document->uri_len);
}

const peg_json *peg__document_root(const struct peg__document *document)
{
    return peg_json_root(document->json);
}

size_t peg__document_bytes(const struct peg__document *document)
{
    return sizeof(*document) + document->uri_len + peg_json_doc_bytes(document->json);
}

bool peg__document_holds(const struct peg__document *document, const peg_json *value)
{
    const peg_json *root = peg__document_root(document);

    return value >= root && value < peg_json_next(root);
}

void peg__documents_locate(struct peg__document *const *documents, size_t n, const peg_json *value,
                           struct peg__buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const peg_str uri = peg__document_uri(documents[i]);

        if (!peg__document_holds(documents[i], value))
            continue;
        peg__buf_str(out, uri);
        if (uri.len)
            peg__buf_putc(out, '#');
        peg__json_pointer_to(peg__document_root(documents[i]), value, out);
        return;
    }
}

/* ---- the documents that a host registered ---------------------------------- */

struct peg_schema_docs {
    struct peg__map by_uri; /* values are struct peg__document *, one reference each */
};

peg_schema_docs *peg_schema_docs_new(void)
{
    peg_schema_docs *docs = peg__alloc_zero(1, sizeof(*docs));

    if (docs)
        docs->by_uri.max = MAX_DOCUMENTS;
    return docs;
}

peg_schema_docs *peg_schema_docs_free(peg_schema_docs *docs)
{
    if (docs) {
        PEG__MAP_EACH(&docs->by_uri, entry)
        peg__document_unref(entry->value);
        peg__map_free(&docs->by_uri);
    }
    peg__free(docs);
    return NULL;
}

static peg_status fail_add(peg_status status, peg_str uri, peg_error *reterr)
{
    if (status == PEG_EEXISTS)
        return peg__fail(reterr, status, "E_SCHEMA_URI_TAKEN",
                         "a document with the URI '%.*s' is registered already", PEG_ARG(uri));
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, status, "E_SCHEMA_TOO_LARGE",
                         "more than %d documents; register only those that are referred to",
                         MAX_DOCUMENTS);
    return peg__fail_nomem(reterr);
}

peg_status peg_schema_docs_add(peg_schema_docs *docs, peg_str uri, const peg_json *schema,
                               peg_error *reterr)
{
    peg_json_doc *json = NULL;
    struct peg__document *document;
    peg_status status;

    if (!peg__uri_is_absolute(uri))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "'%.*s' is no absolute URI without fragment, such as "
                         "https://example.com/address.json",
                         PEG_ARG(uri));
    uri = peg__uri_split(uri).uri; /* an empty fragment names the same */
    status = peg__json_copy(schema, &json, reterr);
    if (status)
        return status;
    document = peg__document_new(uri, json);
    if (!document)
        return peg__fail_nomem(reterr);
    status = peg__map_add(&docs->by_uri, uri, document);
    if (status) {
        peg__document_unref(document);
        return fail_add(status, uri, reterr);
    }
    return PEG_OK;
}

struct peg__document *peg__docs_find(const peg_schema_docs *docs, peg_str uri)
{
    return docs ? peg__map_get(&docs->by_uri, uri) : NULL;
}

struct peg__document *peg__docs_at(const peg_schema_docs *docs, size_t i)
{
    if (!docs)
        return NULL;
    PEG__MAP_EACH(&docs->by_uri, entry)
    if (i-- == 0)
        return entry->value;
    return NULL;
}
