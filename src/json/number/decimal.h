/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_NUMBER_DECIMAL_H
#define PEG_JSON_NUMBER_DECIMAL_H

/*
 * The digits of a number, however it is held: the one form in which every number can be
 * compared, hashed, divided and printed. The files of json/ that do arithmetic use it where
 * 64 bits are not enough.
 */

#include "pegboard/json.h"

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

#endif
