/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Between decimals and doubles. Small numbers take exact arithmetic; the rest go through
 * strtod() and snprintf() with texts in which no decimal point is read or trusted, because
 * the point is the only thing a locale changes.
 */

#include "json/number/double.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/number/decimal.h"

enum {
    /* No double needs more: the exact value between two doubles has at most 767 digits. */
    DIGITS_THAT_COUNT = 780,
    SHORTEST_MAX = 17,
};

static const int64_t EXACT_INTEGERS = (int64_t)1 << 53;

/* All powers of ten that are doubles. */
static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double read_double(const char *text)
{
    const int saved = errno; /* out of range is told by the value */
    const double value = strtod(text, NULL);

    errno = saved;
    return value;
}

/* Digits and an exponent, without a point. */
static double through_text(const peg_json *number)
{
    char text[DIGITS_THAT_COUNT + 40];
    struct peg__decimal d;
    int64_t exponent;
    const char *cursor;
    size_t n;
    double value;

    peg__decimal_of(number, &d);
    cursor = d.first;
    exponent = d.exponent;
    for (n = 0; n < d.n_digits && n < DIGITS_THAT_COUNT; n++)
        text[n] = (char)('0' + peg__decimal_next(&cursor));
    if (n < d.n_digits) {
        exponent += (int64_t)(d.n_digits - n) - 1;
        text[n++] = '1'; /* what is cut off is not 0 */
    }
    if (n == 0)
        text[n++] = '0';
    snprintf(text + n, sizeof(text) - n, "e%lld", (long long)exponent);
    value = read_double(text);
    return d.negative ? -value : value;
}

double peg_json_double(const peg_json *number)
{
    int exponent;
    double m;

    if (!peg_json_is_number(number))
        return 0;
    exponent = number->exponent;
    if (number->kind == PEG_JSON_INTEGER)
        return (double)number->u.number;
    if (number->form == PEG_JSON_FORM_TEXT)
        return through_text(number);
    if (number->form == PEG_JSON_FORM_MINUS0)
        return -0.0;
    /* Both exact, so that one operation rounds once. */
    if (number->u.number > EXACT_INTEGERS || number->u.number < -EXACT_INTEGERS || exponent > 22 ||
        exponent < -22)
        return through_text(number);
    m = (double)number->u.number;
    return exponent < 0 ? m / exact_powers[-exponent] : m * exact_powers[exponent];
}

/* ---- shortest digits ------------------------------------------------------------ */

/* Prints `n` digits correctly rounded and reads them as a whole number with an exponent. */
static struct peg__shortest round_to(double value, int n)
{
    char text[48];
    struct peg__shortest s = {0};
    const char *p = text;

    snprintf(text, sizeof(text), "%.*e", n - 1, value);
    /* d<point>ddde±xx: the point may be any bytes that are no digits. */
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            s.mantissa = s.mantissa * 10 + (uint64_t)(*p - '0');
    s.exponent = (int)strtol(p + 1, NULL, 10) - (n - 1);
    return s;
}

static bool reads_back(struct peg__shortest s, double value)
{
    char text[48];

    snprintf(text, sizeof(text), "%llue%d", (unsigned long long)s.mantissa, s.exponent);
    return read_double(text) == value;
}

static struct peg__shortest without_zeros(struct peg__shortest s)
{
    while (s.mantissa && s.mantissa % 10 == 0) {
        s.mantissa /= 10;
        s.exponent++;
    }
    return s;
}

struct peg__shortest peg__double_shortest(double value)
{
    int binary_exponent;
    const bool is_power_of_two = frexp(value, &binary_exponent) == 0.5;
    struct peg__shortest s = {0};

    if (value < (double)EXACT_INTEGERS && value == (double)(int64_t)value)
        return without_zeros((struct peg__shortest){.mantissa = (uint64_t)value});
    /* 15 digits tell any decimal apart, except where doubles have lost precision. */
    for (int n = value < DBL_MIN ? 1 : DBL_DIG; n <= SHORTEST_MAX; n++) {
        s = round_to(value, n);
        if (reads_back(s, value))
            break;
        /* Below a power of two doubles are denser: the nearest decimal may be too far
         * while a more distant one above it is not. */
        s.mantissa++;
        if (is_power_of_two && reads_back(s, value))
            break;
    }
    return without_zeros(s);
}
