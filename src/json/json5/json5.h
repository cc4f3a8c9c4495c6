/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_JSON5_JSON5_H
#define PEG_JSON_JSON5_JSON5_H

/* JSON5 1.0.0 as another way to write JSON. */

#include "pegboard/json.h"

/*
 * As peg_json_parse(), for texts with comments, trailing commas, names without quotes, single
 * quotes, strings over several lines, hexadecimal numbers, numbers that begin or end with a point,
 * and signs. Infinity and NaN are refused: no JSON value stands for them. Numbers stay exact.
 *
 * Errors: PEG_EPARSE (E_JSON_SYNTAX, E_JSON_UTF8, E_JSON_SYNTAX, E_JSON_DUPLICATE_KEY) with
 * offset, line and column; PEG_ELIMIT (E_JSON_TOO_LARGE, E_JSON_TOO_DEEP, E_JSON_TOO_LARGE,
 * E_JSON_TOO_LARGE); PEG_ENOMEM.
 */
PEG_MUST_USE peg_status peg__json5_parse(peg_str text, const peg_json_options *options,
                                         peg_json_doc **ret_doc, peg_error *reterr);

#endif
