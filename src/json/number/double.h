/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_NUMBER_DOUBLE_H
#define PEG_JSON_NUMBER_DOUBLE_H

/* Doubles and their shortest digits. Nothing here depends on the locale. */

#include <stdint.h>

/* value = 0 or mantissa * 10^exponent, at most 17 digits, no zero at the end. */
struct peg__shortest {
    uint64_t mantissa;
    int exponent;
};

/* The shortest decimal that reads back as `value`; of several the nearest: what ECMAScript
 * prints. Requires a finite value that is not negative. */
struct peg__shortest peg__double_shortest(double value);

#endif
