/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_DUPLICATES_H
#define PEG_JSON_PARSE_DUPLICATES_H

/* Members of one object that have the same name. */

#include "json/doc.h"

/* Small objects are looked through member by member; above this a hash table is cheaper. */
enum { PEG_JSON_FEW_MEMBERS = 32 };

/* Is a key the same as an earlier one of the object? Only for few members. */
bool peg__json_has_key_before(const peg_json *object, const peg_json *key);

/* The second of the first two equal keys, or NULL, for any number of members. False when out
 * of memory. */
bool peg__json_find_duplicate(const peg_json *object, const peg_json **ret_key);

/* Takes every duplicate out of the document. False when out of memory, the document is as before.
 */
bool peg__json_drop_duplicates(peg_json_doc *doc, peg_json_duplicates policy);

#endif
