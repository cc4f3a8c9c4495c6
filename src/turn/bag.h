/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_BAG_H
#define PEG_TURN_BAG_H

/* Bags from files and to files, and documents that several things hold. */

#include "pegboard/bag.h"
#include "json/json.h"

/* Every member of an object as it is: keys are not checked, unless is_strict. NULL for an empty
 * one. PEG_EPARSE (E_TURN_FORMAT) with the member as `where` (a pointer below the object);
 * PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__bag_from_json(const peg_json *object, bool is_strict, peg_bag **ret_bag,
                              peg_error *reterr);
/* Adds an object with all of it, in the order of the ids. */
void peg__bag_build(const peg_bag *bag, peg_json_builder *b);

/* A bag with a document in place of what stands under the key, of which only the size is checked:
 * for values that the library made itself. Takes a reference. */
peg_status peg__bag_with_shared(peg_bag *bag, const peg_key *key, struct peg__shared *shared,
                                peg_bag **ret_bag, peg_error *reterr);
/* The document under the key's own id, or NULL; borrowed. */
struct peg__shared *peg__bag_shared(const peg_bag *bag, const peg_key *key);

/* "data", "metadata", "block metadata"; static. */
const char *peg__bag_kind_name(peg_bag_kind kind);

#endif
