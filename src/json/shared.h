/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_SHARED_H
#define PEG_JSON_SHARED_H

/* A document that several owners hold: shared, immutable, reference counted; any thread. */

#include <stdatomic.h>

#include "pegboard/json.h"

struct peg__shared {
    atomic_uint n_refs;
    atomic_uint depth; /* of nesting, found out once by whoever asks; 0: not yet */
    peg_json_doc *doc;
};

/* Takes the document over; frees it where there is no memory, and returns NULL. */
struct peg__shared *peg__shared_new(peg_json_doc *doc);
/* A copy of a value. PEG_ENOMEM, PEG_ELIMIT. */
peg_status peg__shared_copy(const peg_json *value, struct peg__shared **ret_shared,
                            peg_error *reterr);
struct peg__shared *peg__shared_ref(struct peg__shared *shared);
struct peg__shared *peg__shared_unref(struct peg__shared *shared);

static inline const peg_json *peg__shared_root(const struct peg__shared *shared)
{
    return shared ? peg_json_root(shared->doc) : NULL;
}

#endif
