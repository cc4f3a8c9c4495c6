/* SPDX-License-Identifier: Apache-2.0 */

#include "json/number/decimal.h"

#include <string.h>

#include "base/text/str.h"

/* Beyond every exponent that can be asked for; a text of a million digits stops here. */
static const int64_t EXPONENT_CAP = 10000000000;

const uint64_t peg__powers_of_ten[20] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    10000000000u,
    100000000000u,
    1000000000000u,
    10000000000000u,
    100000000000000u,
    1000000000000000u,
    10000000000000000u,
    100000000000000000u,
    1000000000000000000u,
    10000000000000000000u,
};

/* Takes off zeros at the end, which costs nothing for an odd number. */
static void of_scaled(int64_t number, int64_t exponent, struct peg__decimal *d)
{
    uint64_t m = peg__magnitude(number);
    char *p = d->own + sizeof(d->own);

    d->negative = number < 0;
    d->exponent = exponent;
    while (m && m % 10 == 0) {
        m /= 10;
        d->exponent++;
    }
    for (; m; m /= 10)
        *--p = (char)('0' + m % 10);
    d->first = p;
    d->n_digits = (size_t)(d->own + sizeof(d->own) - p);
}

static int64_t read_exponent(const char *p, const char *end)
{
    int64_t exponent = 0;
    bool negative;

    if (p == end)
        return 0;
    p++; /* e */
    negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    for (; p < end && exponent < EXPONENT_CAP; p++)
        exponent = exponent * 10 + (*p - '0');
    return negative ? -exponent : exponent;
}

static bool is_zero_or_point(char c)
{
    return c == '0' || c == '.';
}

static const char *find_exponent(const char *p, const char *end)
{
    while (p < end && (*p | 0x20) != 'e')
        p++;
    return p;
}

static void of_text(peg_str text, struct peg__decimal *d)
{
    const char *end = text.ptr + text.len;
    const char *first = text.ptr + (text.ptr[0] == '-');
    const char *digits_end = find_exponent(first, end);
    const char *point = memchr(first, '.', (size_t)(digits_end - first));
    const char *last = digits_end - 1;

    d->negative = text.ptr[0] == '-';
    while (first < digits_end && is_zero_or_point(*first))
        first++;
    while (last > first && is_zero_or_point(*last))
        last--;
    d->first = first;
    d->n_digits = 0;
    d->exponent = 0;
    if (first == digits_end)
        return;

    d->n_digits = (size_t)(last - first + 1) - (point && first < point && point < last);
    d->exponent = read_exponent(digits_end, end);
    if (point && last > point)
        d->exponent -= last - point;
    else
        d->exponent += (point ? point : digits_end) - 1 - last;
}

void peg__decimal_of(const peg_json *number, struct peg__decimal *ret_decimal)
{
    if (number->form == PEG_JSON_FORM_TEXT)
        of_text(peg__strn(number->u.ptr, number->len), ret_decimal);
    else
        of_scaled(number->u.number, number->exponent, ret_decimal);
}
