/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_PICK_H
#define PEG_GRPC_CLIENT_PICK_H

/* Which connection takes the next call: they take turns, and one that has no room is passed over.
 * Knows nothing of connections but how many streams they have. */

#include "pegboard/common.h"

/* Part of a connection; all zero is one that is not in. */
struct grpc_pick_entry {
    size_t n_streams;
    size_t max_streams;
    bool is_in; /* the rest is the pick's */
    size_t at;
};

/* Owned; all zero is empty. */
struct grpc_pick {
    struct grpc_pick_entry **entries;
    size_t n;
    size_t capacity;
    size_t next; /* whose turn it is */
};

/* Room for so many in all, so that adding cannot fail. */
peg_status grpc_pick_reserve(struct grpc_pick *pick, size_t n) PEG_MUST_USE;
void grpc_pick_free(struct grpc_pick *pick);
void grpc_pick_add(struct grpc_pick *pick, struct grpc_pick_entry *entry);
/* One that is not in is left alone. */
void grpc_pick_remove(struct grpc_pick *pick, struct grpc_pick_entry *entry);
/* NULL: none is in, or none has room. */
struct grpc_pick_entry *grpc_pick_next(struct grpc_pick *pick);

#endif
