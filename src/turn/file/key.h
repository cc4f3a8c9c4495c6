/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_KEY_H
#define PEG_TURN_FILE_KEY_H

#include "pegboard/bag.h"

/* namespace.slug@vN as peg_key has it. */
bool peg__key_id_is_canonical(peg_str id);
/* PEG_EINVAL: E_KEY, or E_KEY_BAG for a key of another bag. */
peg_status peg__key_check_bag(const peg_key *key, peg_bag_kind kind, peg_error *reterr);
/* PEG_ESCHEMA (E_KEY_VALUE), PEG_ENOMEM. Requires a key that was checked. */
peg_status peg__key_check_value(const peg_key *key, const peg_json *value, peg_error *reterr);

/* All keys of the library, NULL at the end. */
extern const peg_key *const peg__own_keys[];

#endif
