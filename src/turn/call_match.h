/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_CALL_MATCH_H
#define PEG_TURN_CALL_MATCH_H

/*
 * Which call a result answers when it only tells the provider's call id, which may repeat: the
 * first one before it with that id that has no answer yet, else the last one. Writers leave out
 * what readers find out this way, so both go through here, block by block in order.
 *
 * Owned; the blocks are borrowed.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "pegboard/turn.h"

struct peg__call_match {
    struct peg__map by_call_id;  /* -> chain */
    struct peg__map by_block_id; /* -> entry */
    struct peg__arena arena;
};

#define PEG__CALL_MATCH                                                                            \
    {                                                                                              \
        .by_call_id = PEG__MAP(PEG_LIMIT_TURN_BLOCKS),                                             \
        .by_block_id = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)                                             \
    }

/* A call block, which outlives the match. PEG_ENOMEM. */
peg_status peg__call_match_add(struct peg__call_match *match, const peg_block *call) PEG_MUST_USE;
/* The call that a result with this call id would answer, or NULL. */
const peg_block *peg__call_match_infer(struct peg__call_match *match, peg_str call_id);
/* The call block of an id, or NULL. */
const peg_block *peg__call_match_find(const struct peg__call_match *match, peg_str block_id);
/* There is a result for the call block of this id, if there is one. */
void peg__call_match_answer(struct peg__call_match *match, peg_str block_id);
void peg__call_match_free(struct peg__call_match *match);

#endif
