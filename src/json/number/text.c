/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers as text: as they were given, and as ECMAScript prints them. */

#include <string.h>

#include "base/text/str.h"
#include "json/number/decimal.h"
#include "json/number/double.h"
#include "json/number/number.h"

enum {
    INT64_TEXT = 20, /* "-9223372036854775808" */
    /* Zeros are written out up to this many digits, as ECMAScript does; then comes an exponent. */
    PLAIN_DIGITS = 21,
    /* Sign, "0.", zeros, point, "e+" and an exponent. */
    LAYOUT_ROOM = 64,
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

static char *put(char *p, const char *bytes, size_t n)
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
    char laid[LAYOUT_ROOM + INT64_TEXT];
    char *p = laid;

    if (number->u.number < 0 || number->form == PEG_JSON_FORM_MINUS0)
        *p++ = '-';
    if (number->u.number == 0 && (exponent > 0 || exponent < -PLAIN_DIGITS)) {
        *p++ = '0';
    } else if (exponent >= 0 && point <= PLAIN_DIGITS) {
        p = put(p, digits, (size_t)n);
        p = put_zeros(p, exponent);
    } else if (exponent < 0 && point > 0) {
        p = put(p, digits, (size_t)point);
        *p++ = '.';
        p = put(p, digits + point, (size_t)(n - point));
    } else if (exponent < 0 && exponent >= -PLAIN_DIGITS) {
        p = put(p, "0.", 2);
        p = put_zeros(p, -point);
        p = put(p, digits, (size_t)n);
    } else {
        p = put(p, digits, (size_t)n);
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
        p = put(p, "0.", 2);
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

static void write_laid_out(const struct peg__decimal *d, struct peg__buf *out)
{
    char *start = peg__buf_reserve(out, d->n_digits + LAYOUT_ROOM);
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
    write_laid_out(&d, out);
}
