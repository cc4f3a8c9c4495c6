/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers that are longer than usual or have an exponent, up to what a mantissa of 18 digits can
 * hold. Others are left to json/number/number.h. */

#include <stdlib.h>

#include "json/parse/internal.h"
#include "json/parse/scan.h"

enum { MAX_DIGITS = 18, MAX_EXPONENT = 9999 };

struct mantissa {
    uint64_t value; /* wraps around if there are too many digits; then their count is used */
    unsigned n;
    int exponent;
};

static char *read_digits(char *at, struct mantissa *mantissa)
{
    struct peg__digits digits;

    do {
        digits = peg__digits_find(at);
        if (digits.n == 0)
            break;
        mantissa->value = mantissa->value * peg__digits_power(digits.n) + peg__digits_value(digits);
        mantissa->n += digits.n;
        at += digits.n;
    } while (digits.n == 8);
    return at;
}

/* At the `e`. NULL if there are no digits, or too many. */
static char *read_exponent(char *at, struct mantissa *mantissa)
{
    struct mantissa digits = {0};
    const bool negative = at[1] == '-';

    at = read_digits(at + 1 + (at[1] == '-' || at[1] == '+'), &digits);
    if (digits.n == 0 || digits.n > 4)
        return NULL;
    mantissa->exponent += negative ? -(int)digits.value : (int)digits.value;
    return at;
}

/* The part behind the whole digits. */
static char *read_decimal(char *at, struct mantissa *mantissa)
{
    if (*at == '.') {
        const unsigned n_whole = mantissa->n;

        at = read_digits(at + 1, mantissa);
        if (mantissa->n == n_whole)
            return NULL;
        mantissa->exponent = -(int)(mantissa->n - n_whole);
    }
    return (*at | 0x20) == 'e' ? read_exponent(at, mantissa) : at;
}

static bool is_within_limits(const struct peg__parser *p, const struct mantissa *mantissa)
{
    const unsigned exponent = (unsigned)abs(mantissa->exponent);

    return mantissa->n <= MAX_DIGITS && mantissa->n <= p->max_digits && exponent <= MAX_EXPONENT &&
           exponent + MAX_DIGITS <= p->max_exponent;
}

char *peg__parse_number(struct peg__parser *p, char *start, peg_json *value)
{
    const bool negative = *start == '-';
    char *const whole = start + negative;
    struct mantissa mantissa = {0};
    char *at = read_digits(whole, &mantissa);
    /* Minus zero is none. */
    const bool is_integer = *at != '.' && (*at | 0x20) != 'e' && !(negative && mantissa.value == 0);
    uint8_t form = 0;

    /* No digit, or a zero before another digit. */
    if (mantissa.n == 0 || (*whole == '0' && mantissa.n > 1))
        return peg__parse_hard_number(p, start, value);
    at = read_decimal(at, &mantissa);
    if (!at || !is_within_limits(p, &mantissa))
        return peg__parse_hard_number(p, start, value);
    if (!is_integer)
        form = negative && !mantissa.value ? PEG_JSON_FORM_MINUS0 : PEG_JSON_FORM_SCALED;
    *value = (peg_json){.kind = is_integer ? PEG_JSON_INTEGER : PEG_JSON_DECIMAL,
                        .form = form,
                        .exponent = (int16_t)mantissa.exponent,
                        .u.number = negative ? -(int64_t)mantissa.value : (int64_t)mantissa.value};
    return at;
}
