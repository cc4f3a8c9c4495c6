/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_LOCATE_H
#define PEG_JSON_PARSE_LOCATE_H

/* Where in a text a value stands that turned out to be wrong: documents do not remember. */

#include "pegboard/json.h"

/* The byte at which the value starts that a pointer leads to. Where it leads nowhere, as one that
 * was cut does, it is the last value on its way. */

/* Text that peg_json_parse() accepts. */
size_t peg__json_locate(peg_str text, peg_str pointer);
/* Text that peg_yaml_parse() accepts with these options. 0 when out of memory. */
size_t peg__yaml_locate(peg_str text, const peg_json_options *options, peg_str pointer);
/* The same of the key, where the pointer leads to a member: it is its name that is wrong. */
size_t peg__yaml_locate_key(peg_str text, const peg_json_options *options, peg_str pointer);

/* The next token of a pointer, as it is written; false at its end. */
bool peg__pointer_next(peg_str *pointer, peg_str *ret_token);
/* Does a token, unescaped, stand for this name? */
bool peg__pointer_is_name(peg_str token, peg_str name);
/* The index that a token stands for, or SIZE_MAX. */
size_t peg__pointer_index(peg_str token);

#endif
