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

/* ---- digits ------------------------------------------------------------------ */

/*
 * The digits of a number, however it is held: the one form in which every number can be
 * compared, hashed, divided and printed. The files of json/ that do arithmetic use it where
 * 64 bits are not enough.
 */

/* A value; borrows the number's text, or points into itself: never copy one. */
struct peg__decimal {
    bool negative;
    size_t n_digits;   /* from the first that is not 0 to the last that is not 0; none: it is 0 */
    int64_t exponent;  /* value = digits * 10^exponent */
    const char *first; /* the first digit; one '.' may stand between the digits */
    char own[20];
};

void peg__decimal_of(const peg_json *number, struct peg__decimal *ret_decimal);

/* Where the point stands: value = 0.digits * 10^point. */
static inline int64_t peg__decimal_point(const struct peg__decimal *d)
{
    return (int64_t)d->n_digits + d->exponent;
}

/* The digit at *cursor, which starts at `first` and may be called n_digits times. */
static inline unsigned peg__decimal_next(const char **cursor)
{
    if (**cursor == '.')
        ++*cursor;
    return (unsigned)(*(*cursor)++ - '0');
}

/* 10^n for n from 0 to 19: all that fit 64 bits. */
extern const uint64_t peg__powers_of_ten[20];

/* The magnitude of a number in 64 bits; of INT64_MIN too. */
static inline uint64_t peg__magnitude(int64_t n)
{
    return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

/* ---- doubles ----------------------------------------------------------------- */

/* Doubles and their shortest digits. Nothing here depends on the locale. */

/* value = 0 or mantissa * 10^exponent, at most 17 digits, no zero at the end. */
struct peg__shortest {
    uint64_t mantissa;
    int exponent;
};

/* The shortest decimal that reads back as `value`; of several the nearest: what ECMAScript
 * prints. Requires a finite value that is not negative. */
struct peg__shortest peg__double_shortest(double value);

#endif
