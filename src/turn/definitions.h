/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_DEFINITIONS_H
#define PEG_TURN_DEFINITIONS_H

#include "pegboard/definitions.h"
#include "json/json.h"

/* Takes a reference; nothing happens if it is there already. */
peg_status peg__turn_put_definitions(peg_turn *turn, struct peg__shared *shared, peg_error *reterr);

/* Those that a turn stored, without what was forged then, and on top of them what is live now. */
peg_status peg__definitions_overlay(const peg_json *stored, const peg_json *live,
                                    struct peg__shared **ret_shared, peg_error *reterr);

/* Takes the definitions of ephemeral tools off a turn. */
peg_status peg__turn_drop_ephemeral(peg_turn *turn, peg_error *reterr);

/* PEG_ESTATE (E_DEFINITIONS_DIFFER) names the first tool of which name, description, parameters or
 * version differ. The order and ephemeral tools do not count. Quadratic in the number of tools that
 * differ in their place: lists in the same order take one comparison a tool. */
peg_status peg__definitions_compare(const peg_json *stored, const peg_json *live,
                                    peg_error *reterr);

#endif
