/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_BLOCK_H
#define PEG_TURN_BLOCK_H

/* What a block has that only readers and writers of files know. */

#include "pegboard/turn.h"

struct peg__block_origin {
    /* The members of the block in its file that we do not read, as an object: unknown ones, and
     * "kind" and "role" where they are not what we would write. Copied; NULL: none. */
    const peg_json *members;
    bool has_no_time; /* created_ms 0 means that the file does not say */
};

/* As peg_block_new(); names that pegboard uses may stand in the payload of a block with a foreign
 * "kind". */
peg_status peg__block_read_new(const peg_block_def *def, const struct peg__block_origin *origin,
                               peg_block **ret_block, peg_error *reterr);
/* The object, or NULL. */
const peg_json *peg__block_members(const peg_block *block);

#endif
