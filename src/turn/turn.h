/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_TURN_H
#define PEG_TURN_TURN_H

/*
 * What a turn has beyond its public face: the storage of a run, the flush of a dispatch, handles.
 */

#include "base/map.h"
#include "pegboard/storage.h"
#include "pegboard/turn.h"
#include "turn/bag.h"
#include "turn/blocks.h"

/* Owned; one thread at a time. */
struct peg_turn {
    struct peg__blocks *blocks;
    peg_str id; /* first_id or other_id; NUL-terminated */
    peg_bag *data;
    peg_bag *metadata;
    struct peg__shared *members; /* of its file, that nobody here knows: an object; NULL: none */
    const peg_storage *storage;  /* borrowed; NULL: nobody is told */
    peg_ctx *ctx;                /* borrowed; what the storage is called with */
    bool is_storing;             /* the storage is being asked: the turn may not be changed */
    bool is_lent;                /* a dispatch works on a copy and will replace the blocks */
    char *other_id;              /* owned; NULL: it has the one that it was made with */
    char first_id[];
};

/* An empty turn as a file has it: these may all be NULL, and references are taken over. id may be
 * empty. On failure they stay the caller's. */
struct peg__turn_parts {
    peg_str id;
    peg_bag *data;
    peg_bag *metadata;
    struct peg__shared *members;
};
peg_status peg__turn_from_parts(const struct peg__turn_parts *parts, peg_turn **ret_turn,
                                peg_error *reterr);

/* The document is what stands under the key, unchecked: for what the library made itself. Takes a
 * reference. PEG_ESTATE (E_TURN_BUSY), PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__turn_set_shared(peg_turn *turn, const peg_key *key, struct peg__shared *shared,
                                peg_error *reterr);

/* From now on each change goes to the storage first, which outlives the attachment, as ctx does.
 * NULL ends it. A copy of a turn is not attached. */
void peg__turn_attach(peg_turn *turn, const peg_storage *storage, peg_ctx *ctx);

/* PEG_ESTATE (E_TURN_BUSY) while a dispatch works on a copy: what is done here would be lost. */
peg_status peg__turn_check_lent(const peg_turn *turn, peg_error *reterr);
/* The same, and while the storage is being asked. */
peg_status peg__turn_check_busy(const peg_turn *turn, peg_error *reterr);

/* Gives turn the blocks and bags of `from`, which keeps them too; the storage is not asked. Cannot
 * fail: the flush of a dispatch, whose turn was a copy of this one. */
void peg__turn_swap_in(peg_turn *turn, const peg_turn *from);

/*
 * A handle for the result of a call: its id if nothing in the turn has that handle, else "id~2",
 * "id~3", ... also_taken (may be NULL) has handles that were given out and are not in the turn
 * yet. Freed with peg__free(), NUL-terminated; ret_len may be NULL. PEG_ENOMEM only.
 */
peg_status peg__turn_handle(const peg_turn *turn, peg_str call_id,
                            const struct peg__map *also_taken, char **ret_handle, size_t *ret_len);

/* PEG_EINVAL (E_INVALID_TURN_RUNNER_CONFIG, `where` "/storage") names every function that is
 * missing. NULL is no storage, which is fine. */
peg_status peg__storage_check(const peg_storage *storage, peg_error *reterr);

#endif
