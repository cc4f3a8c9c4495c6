/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_STORAGE_H
#define PEG_TURN_STORE_STORAGE_H

/* What a run asks of the host's storage beyond the changes of its turn: of the one that the turn is
 * attached to. Without any, nothing was kept, and bytes stay in memory. */

#include "pegboard/storage.h"

peg_status peg__storage_fetch(const peg_turn *turn, unsigned kinds, peg_turn **ret_turn,
                              peg_error *reterr);
peg_status peg__storage_store_bytes(const peg_turn *turn, const char *what, peg_str id,
                                    peg_str bytes, peg_reader **ret_reader, peg_error *reterr);

#endif
