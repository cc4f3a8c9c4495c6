/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbers as text: as they were given, and as ECMAScript prints them. Doubles and their shortest
 * digits. Nothing here depends on the locale.
 */

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "json/number/number.h"

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
    const int saved = errno; /* the value shows if it is out of range */
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

enum {
    INT64_TEXT = 20, /* "-9223372036854775808" */
    /* Zeros are written out up to this many digits, as ECMAScript does; then comes an exponent. */
    PLAIN_DIGITS = 21,
    /* Sign, "0.", zeros, point, "e+" and an exponent. */
    LAYOUT_BYTES = 64,
};

/* ---- whole numbers ------------------------------------------------------------------ */

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
                                  "31323334353637383940414243444546474849505152535455565758596061"
                                  "62636465666768697071727374757677787980818283848586878889909192"
                                  "93949596979899";

/* Writes the digits of m so that they end before `end`; returns the first. */
static char *digits_before(char *end, uint64_t m)
{
    while (m >= 100) {
        end -= 2;
        memcpy(end, digit_pairs + m % 100 * 2, 2);
        m /= 100;
    }
    if (m >= 10) {
        end -= 2;
        memcpy(end, digit_pairs + m * 2, 2);
    } else {
        *--end = (char)('0' + m);
    }
    return end;
}

static void write_int64(int64_t number, struct peg__buf *out)
{
    char text[INT64_TEXT];
    char *end = text + sizeof(text);
    char *p = digits_before(end, peg__magnitude(number));

    if (number < 0)
        *--p = '-';
    peg__buf_add(out, p, (size_t)(end - p));
}

static char *put_exponent(char *p, int64_t exponent)
{
    char text[INT64_TEXT];
    char *end = text + sizeof(text);
    const char *first = digits_before(end, peg__magnitude(exponent));

    memcpy(p, first, (size_t)(end - first));
    return p + (end - first);
}

/* ---- as given ------------------------------------------------------------------------ */

static char *put_chars(char *p, const char *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static char *put_zeros(char *p, int64_t n)
{
    memset(p, '0', (size_t)n);
    return p + n;
}

/* 150 * 10^-2 is 1.50: every digit stays, so that text survives a round trip. */
static void write_scaled(const peg_json *number, struct peg__buf *out)
{
    char text[INT64_TEXT];
    char *end = text + sizeof(text);
    const char *digits = digits_before(end, peg__magnitude(number->u.number));
    const int64_t n = end - digits;
    const int64_t exponent = number->exponent;
    const int64_t point = n + exponent;
    char laid[LAYOUT_BYTES + INT64_TEXT];
    char *p = laid;

    if (number->u.number < 0 || number->form == PEG_JSON_FORM_MINUS0)
        *p++ = '-';
    if (number->u.number == 0 && (exponent > 0 || exponent < -PLAIN_DIGITS)) {
        *p++ = '0';
    } else if (exponent >= 0 && point <= PLAIN_DIGITS) {
        p = put_chars(p, digits, (size_t)n);
        p = put_zeros(p, exponent);
    } else if (exponent < 0 && point > 0) {
        p = put_chars(p, digits, (size_t)point);
        *p++ = '.';
        p = put_chars(p, digits + point, (size_t)(n - point));
    } else if (exponent < 0 && exponent >= -PLAIN_DIGITS) {
        p = put_chars(p, "0.", 2);
        p = put_zeros(p, -point);
        p = put_chars(p, digits, (size_t)n);
    } else {
        p = put_chars(p, digits, (size_t)n);
        *p++ = 'e';
        if (exponent < 0)
            *p++ = '-';
        p = put_exponent(p, exponent);
    }
    peg__buf_add(out, laid, (size_t)(p - laid));
}

void peg__number_write(const peg_json *number, struct peg__buf *out)
{
    if (number->kind == PEG_JSON_INTEGER)
        write_int64(number->u.number, out);
    else if (number->form == PEG_JSON_FORM_TEXT)
        peg__buf_add(out, number->u.ptr, number->len);
    else
        write_scaled(number, out);
}

/* ---- canonical ------------------------------------------------------------------------ */

static char *put_digits(char *p, const char **cursor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        *p++ = (char)('0' + peg__decimal_next(cursor));
    return p;
}

/* The layout of ECMA-262 Number::toString; point is its n, n_digits its k. */
static char *lay_out(char *p, const struct peg__decimal *d)
{
    const int64_t n = (int64_t)d->n_digits;
    const int64_t point = peg__decimal_point(d);
    const char *cursor = d->first;

    if (d->negative)
        *p++ = '-';
    if (n <= point && point <= PLAIN_DIGITS) {
        p = put_digits(p, &cursor, n);
        return put_zeros(p, point - n);
    }
    if (0 < point && point <= PLAIN_DIGITS) {
        p = put_digits(p, &cursor, point);
        *p++ = '.';
        return put_digits(p, &cursor, n - point);
    }
    if (-6 < point && point <= 0) {
        p = put_chars(p, "0.", 2);
        p = put_zeros(p, -point);
        return put_digits(p, &cursor, n);
    }
    p = put_digits(p, &cursor, 1);
    if (n > 1) {
        *p++ = '.';
        p = put_digits(p, &cursor, n - 1);
    }
    *p++ = 'e';
    *p++ = point > 0 ? '+' : '-';
    return put_exponent(p, point - 1);
}

static void write_layout(const struct peg__decimal *d, struct peg__buf *out)
{
    char *start = peg__buf_reserve(out, d->n_digits + LAYOUT_BYTES);
    char *end;

    if (!start)
        return;
    end = lay_out(start, d);
    *end = '\0';
    out->len += (size_t)(end - start);
}

/* Is the number to be printed by way of its nearest double? Up to 15 digits print as themselves
 * where doubles have their full precision; whole numbers and long ones keep their digits. */
static bool goes_through_double(const struct peg__decimal *d)
{
    const int64_t point = peg__decimal_point(d);

    if (d->exponent >= 0 || d->n_digits > 17)
        return false;
    return d->n_digits > 15 || point < -300;
}

void peg__number_canonical(const peg_json *number, struct peg__buf *out)
{
    struct peg__decimal d;

    if (number->kind == PEG_JSON_INTEGER) {
        write_int64(number->u.number, out);
        return;
    }
    peg__decimal_of(number, &d);
    if (d.n_digits == 0) {
        peg__buf_putc(out, '0'); /* -0 too */
        return;
    }
    if (goes_through_double(&d)) {
        const double value = peg_json_double(number);
        const struct peg__shortest s = peg__double_shortest(value < 0 ? -value : value);
        const peg_json shortest = {.kind = PEG_JSON_DECIMAL,
                                   .form = PEG_JSON_FORM_SCALED,
                                   .exponent = (int16_t)s.exponent,
                                   .u.number = (int64_t)s.mantissa};
        const bool negative = d.negative;

        /* What is too small for a double keeps its digits. */
        if (s.mantissa)
            peg__decimal_of(&shortest, &d);
        d.negative = negative;
    }
    write_layout(&d, out);
}
