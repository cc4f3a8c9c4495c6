/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_FORMAT_FORMAT_H
#define PEG_SCHEMA_FORMAT_FORMAT_H

/* The formats of JSON Schema: is this string one? */

#include "pegboard/schema.h"

/* The string is valid UTF-8, of any length. */
typedef bool peg__format_fn(peg_str s);

/* NULL if the dialect has no format of that name: it is then accepted. */
peg__format_fn *peg__format_find(peg_str name, peg_dialect dialect);

#endif
