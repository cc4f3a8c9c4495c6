/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_SORTED_H
#define PEG_JSON_SORTED_H

/* Values with all members in the order of their names, byte by byte. */

#include "pegboard/json.h"

/* As peg_json_add_copy(), sorted at every level. PEG_ELIMIT (E_JSON_TOO_DEEP) for values that nest
 * deeper than PEG_LIMIT_JSON_DEPTH, PEG_ENOMEM; the builder tells the rest. */
peg_status peg__json_add_sorted(peg_json_builder *b, const peg_json *value, peg_error *reterr);

/* -1, 0 or 1 by bytes. */
int peg__json_compare_names(peg_str a, peg_str b);

/* Containers on the longest way down, itself included; anything beyond `most` counts as most + 1.
 * Requires most <= PEG_LIMIT_JSON_DEPTH. */
unsigned peg__json_depth(const peg_json *value, unsigned most);

#endif
