/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_TYPOS_H
#define PEG_SCHEMA_COMPILE_TYPOS_H

/* Members of a schema that are no keyword and one edit from one: "requird". JSON Schema has them
 * ignored, so that a schema with one compiles, and accepts what it should not. */

#include "pegboard/json.h"

/* `key` is in the schema; `keyword` is static. */
typedef void peg__found_typo(const peg_json *key, const char *keyword, void *user);

/* Looks where a schema stands, not at names of properties nor into enum, const or examples. */
void peg__schema_typos(const peg_json *schema, peg__found_typo *found, void *user);

#endif
