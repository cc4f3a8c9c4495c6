/* SPDX-License-Identifier: Apache-2.0 */

#include "json/shared.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/refs.h"

struct peg__shared *peg__shared_new(peg_json_doc *doc)
{
    struct peg__shared *shared = peg__alloc(sizeof(*shared));

    if (!shared) {
        peg_json_doc_free(doc);
        return NULL;
    }
    atomic_init(&shared->n_refs, 1);
    atomic_init(&shared->depth, 0);
    shared->doc = doc;
    return shared;
}

peg_status peg__shared_copy(const peg_json *value, struct peg__shared **ret_shared,
                            peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc;
    peg_status status;
    struct peg__shared *shared;

    peg_json_add_copy(b, value);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    shared = peg__shared_new(doc);
    if (!shared)
        return peg__fail_nomem(reterr);
    *ret_shared = shared;
    return PEG_OK;
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
