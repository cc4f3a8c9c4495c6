/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_HISTORY_H
#define PEG_ENGINE_HISTORY_H

/*
 * A turn as providers want to see it: calls that were made together stand together, each with its
 * answer, and whatever stood between a call and its answer comes after the round. Nothing else
 * changes its order.
 */

#include "base/arena.h"
#include "pegboard/engine.h"

struct peg__exchange {
    const peg_block *call;
    const peg_record *record; /* NULL: nobody answered, and the policy is to say so */
    peg_str wire_id; /* [A-Za-z0-9_-]{1,64}, unique in the request: the provider's own id if it is
                      * that, else made from it, always the same way */
};

/* Either a block, or a round of calls. A result whose call is not in the turn is a block. */
struct peg__passage {
    const peg_block *block; /* NULL: a round */
    struct peg__exchange *calls;
    size_t n_calls;
};

/* Owned; borrows from the turn. */
struct peg__history {
    struct peg__passage *passages;
    size_t n;
    struct peg__arena arena;
};

/* PEG_ESTATE (E_ENGINE_UNANSWERED) names the call; PEG_ENOMEM. */
peg_status peg__history_make(const peg_turn *turn, peg_unanswered unanswered,
                             struct peg__history *ret_history, peg_error *reterr);
void peg__history_free(struct peg__history *history);

#endif
