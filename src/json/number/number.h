/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_NUMBER_NUMBER_H
#define PEG_JSON_NUMBER_NUMBER_H

/* Exact arithmetic on JSON numbers, as far as JSON Schema needs it. */

#include "base/buf.h"
#include "pegboard/json.h"

enum peg__number_text {
    PEG__NUMBER_OK,
    PEG__NUMBER_SYNTAX, /* not a JSON number, or something behind it */
    PEG__NUMBER_LIMIT,  /* more digits or a larger exponent than allowed */
};

/*
 * Reads the whole of `text` as one JSON number into *ret_value: an INTEGER if it is written
 * as one and fits, else a DECIMAL: SCALED with at most 18 digits and an exponent within
 * int16_t, MINUS0, else TEXT, which borrows `text`.
 */
enum peg__number_text peg__number_read(peg_str text, unsigned max_digits, unsigned max_exponent,
                                       peg_json *ret_value);

/* Is value / divisor whole? Exact. Requires numbers within the limits; divisor is not 0. */
bool peg__number_is_multiple(const peg_json *value, const peg_json *divisor);

/* Equal numbers have equal hashes, however they are held. */
uint64_t peg__number_hash(const peg_json *number, uint64_t seed);

/* JSON text that reads back as an equal number; 1.50 stays 1.50. */
void peg__number_write(const peg_json *number, struct peg__buf *out);

/* As ECMAScript prints it; see peg_json_canonical(). */
void peg__number_canonical(const peg_json *number, struct peg__buf *out);

#endif
