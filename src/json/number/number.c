/* SPDX-License-Identifier: Apache-2.0 */

/* Exact numbers: their digits, reading, whole numbers, comparing, hashing. */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "json/internal.h"
#include "json/number/number.h"

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

/* ---- reading ---------------------------------------------------------------- */

enum {
    SCALED_DIGITS = 18, /* always fit int64_t */
    WORD_DIGITS = 19,   /* always fit uint64_t */
};

/* Above every `unsigned` limit. */
static const int64_t EXPONENT_CAP = 10000000000;

struct scan {
    const char *p;
    const char *end;
    uint64_t mantissa; /* of the digits so far; garbage once they are more than 19 */
    size_t n_digits;   /* from the first that is not 0 */
};

static bool at_digit(const struct scan *s)
{
    return s->p < s->end && (unsigned)(*s->p - '0') < 10;
}

static size_t scan_digits(struct scan *s)
{
    const char *start = s->p;

    if (s->n_digits == 0)
        while (s->p < s->end && *s->p == '0')
            s->p++;
    for (; at_digit(s); s->p++) {
        s->mantissa = s->mantissa * 10 + (unsigned)(*s->p - '0');
        s->n_digits++;
    }
    return (size_t)(s->p - start);
}

/* False if there is an e without digits. */
static bool scan_exponent(struct scan *s, int64_t *ret_exponent)
{
    int64_t exponent = 0;
    bool negative;

    s->p++; /* e */
    negative = s->p < s->end && *s->p == '-';
    if (s->p < s->end && (*s->p == '-' || *s->p == '+'))
        s->p++;
    if (!at_digit(s))
        return false;
    for (; at_digit(s); s->p++)
        if (exponent < EXPONENT_CAP)
            exponent = exponent * 10 + (*s->p - '0');
    *ret_exponent = negative ? -exponent : exponent;
    return true;
}

/* "0" or digits that do not start with one. */
static bool scan_whole_part(struct scan *s)
{
    const bool starts_with_zero = s->p < s->end && *s->p == '0';
    const size_t n = scan_digits(s);

    return n == 1 || (n > 1 && !starts_with_zero);
}

static bool is_within(int64_t exponent, unsigned max_exponent)
{
    return exponent <= (int64_t)max_exponent && exponent >= -(int64_t)max_exponent;
}

static int16_t clamp_exponent(int64_t exponent)
{
    if (exponent > INT16_MAX)
        return INT16_MAX;
    if (exponent < INT16_MIN)
        return INT16_MIN;
    return (int16_t)exponent;
}

static peg_json make_zero(bool negative, bool is_integer, int64_t exponent)
{
    if (is_integer && !negative)
        return (peg_json){.kind = PEG_JSON_INTEGER};
    return (peg_json){.kind = PEG_JSON_DECIMAL,
                      .form = negative ? PEG_JSON_FORM_MINUS0 : PEG_JSON_FORM_SCALED,
                      .exponent = clamp_exponent(exponent)};
}

static bool fits_int64(const struct scan *s, bool negative)
{
    return s->n_digits <= WORD_DIGITS && s->mantissa <= (uint64_t)INT64_MAX + negative;
}

static peg_json make_number(const struct scan *s, peg_str text, bool is_integer, int64_t exponent)
{
    const bool negative = text.ptr[0] == '-';
    const int64_t number = (int64_t)(negative ? 0 - s->mantissa : s->mantissa);

    if (s->n_digits == 0)
        return make_zero(negative, is_integer, exponent);
    if (is_integer && fits_int64(s, negative))
        return (peg_json){.kind = PEG_JSON_INTEGER, .u.number = number};
    if (s->n_digits <= SCALED_DIGITS && exponent >= INT16_MIN && exponent <= INT16_MAX)
        return (peg_json){.kind = PEG_JSON_DECIMAL,
                          .form = PEG_JSON_FORM_SCALED,
                          .exponent = (int16_t)exponent,
                          .u.number = number};
    return (peg_json){.kind = PEG_JSON_DECIMAL,
                      .form = PEG_JSON_FORM_TEXT,
                      .len = (uint32_t)text.len,
                      .u.ptr = text.ptr};
}

enum peg__number_text peg__number_read(peg_str text, unsigned max_digits, unsigned max_exponent,
                                       peg_json *ret_value)
{
    struct scan s = {.p = text.ptr, .end = text.ptr + text.len};
    int64_t written_exponent = 0;
    size_t fraction_len = 0;
    const char *whole_end;
    int64_t exponent;

    if (text.len && *s.p == '-')
        s.p++;
    if (!scan_whole_part(&s))
        return PEG__NUMBER_SYNTAX;
    whole_end = s.p;
    if (s.p < s.end && *s.p == '.') {
        s.p++;
        fraction_len = scan_digits(&s);
        if (fraction_len == 0)
            return PEG__NUMBER_SYNTAX;
    }
    if (s.p < s.end && (*s.p == 'e' || *s.p == 'E') && !scan_exponent(&s, &written_exponent))
        return PEG__NUMBER_SYNTAX;
    if (s.p != s.end)
        return PEG__NUMBER_SYNTAX;

    exponent = written_exponent - (int64_t)fraction_len;
    if (max_digits > PEG_LIMIT_NUMBER_DIGITS)
        max_digits = PEG_LIMIT_NUMBER_DIGITS; /* the arithmetic has fixed arrays */
    if (s.n_digits > max_digits || text.len > UINT32_MAX)
        return PEG__NUMBER_LIMIT;
    /* Of the first digit, so that the same number is within the limit however it is written. */
    if (!is_within(s.n_digits ? (int64_t)s.n_digits - 1 + exponent : written_exponent,
                   max_exponent))
        return PEG__NUMBER_LIMIT;
    *ret_value = make_number(&s, text, whole_end == s.end, exponent);
    return PEG__NUMBER_OK;
}

/* ---- digits -------------------------------------------------------------------- */

/* Takes off zeros at the end, which costs nothing for an odd number. */
static void write_scaled_digits(int64_t number, int64_t exponent, struct peg__decimal *d)
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

static void read_text_digits(peg_str text, struct peg__decimal *d)
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
    if (digits_end < end)
        scan_exponent(&(struct scan){.p = digits_end, .end = end}, &d->exponent);
    if (point && last > point)
        d->exponent -= last - point;
    else
        d->exponent += (point ? point : digits_end) - 1 - last;
}

void peg__decimal_of(const peg_json *number, struct peg__decimal *ret_decimal)
{
    if (number->form == PEG_JSON_FORM_TEXT)
        read_text_digits(peg__strn(number->u.ptr, number->len), ret_decimal);
    else
        write_scaled_digits(number->u.number, number->exponent, ret_decimal);
}

/* ---- whole numbers ------------------------------------------------------------ */

/* number * 10^exponent as a whole number. */
static bool scaled_int64(int64_t number, int exponent, int64_t *ret_number)
{
    if (number == 0)
        exponent = 0;
    if (exponent > SCALED_DIGITS || exponent < -SCALED_DIGITS)
        return false;
    if (exponent >= 0)
        return !__builtin_mul_overflow(number, (int64_t)peg__powers_of_ten[exponent], ret_number);
    if (number % (int64_t)peg__powers_of_ten[-exponent])
        return false;
    *ret_number = number / (int64_t)peg__powers_of_ten[-exponent];
    return true;
}

static bool text_int64(const peg_json *number, int64_t *ret_number)
{
    struct peg__decimal d;
    const char *cursor;
    uint64_t m = 0;

    peg__decimal_of(number, &d);
    if (d.exponent < 0 || peg__decimal_point(&d) > WORD_DIGITS)
        return false;
    cursor = d.first;
    for (size_t i = 0; i < d.n_digits; i++)
        m = m * 10 + peg__decimal_next(&cursor);
    m *= peg__powers_of_ten[d.exponent];
    if (m > (uint64_t)INT64_MAX + d.negative)
        return false;
    *ret_number = (int64_t)(d.negative ? 0 - m : m);
    return true;
}

bool peg_json_int64(const peg_json *value, int64_t *ret_number)
{
    int64_t number;

    if (!peg_json_is_number(value))
        return false;
    if (value->kind == PEG_JSON_INTEGER) {
        *ret_number = value->u.number;
        return true;
    }
    /* Through a local: a product that overflows is written all the same. */
    if (value->form == PEG_JSON_FORM_TEXT
            ? !text_int64(value, &number)
            : !scaled_int64(value->u.number, value->exponent, &number))
        return false;
    *ret_number = number;
    return true;
}

bool peg_json_is_whole(const peg_json *value)
{
    struct peg__decimal d;

    if (peg_json_kind_of(value) != PEG_JSON_DECIMAL)
        return peg_json_kind_of(value) == PEG_JSON_INTEGER;
    if (value->form == PEG_JSON_FORM_TEXT) {
        peg__decimal_of(value, &d);
        return d.exponent >= 0;
    }
    if (value->exponent >= 0 || value->u.number == 0)
        return true;
    return value->exponent >= -SCALED_DIGITS &&
           value->u.number % (int64_t)peg__powers_of_ten[-value->exponent] == 0;
}

/* ---- comparing ---------------------------------------------------------------- */

static int sign_of(int64_t n)
{
    return (n > 0) - (n < 0);
}

/* a * 10^shift against b. Requires shift >= 0. */
static int compare_shifted(int64_t a, int64_t shift, int64_t b)
{
    __int128 scaled;

    if (a == 0 || shift >= (int64_t)(sizeof(peg__powers_of_ten) / sizeof(*peg__powers_of_ten)))
        return a ? sign_of(a) : -sign_of(b); /* |a * 10^20| is beyond every int64_t */
    scaled = (__int128)a * (__int128)peg__powers_of_ten[shift];
    return (scaled > b) - (scaled < b);
}

static int compare_digits(const struct peg__decimal *a, const struct peg__decimal *b)
{
    const size_t n = a->n_digits < b->n_digits ? a->n_digits : b->n_digits;
    const char *in_a = a->first;
    const char *in_b = b->first;

    for (size_t i = 0; i < n; i++) {
        const unsigned x = peg__decimal_next(&in_a);
        const unsigned y = peg__decimal_next(&in_b);

        if (x != y)
            return x < y ? -1 : 1;
    }
    /* The longer one goes on with a digit that is not 0 somewhere. */
    return (a->n_digits > b->n_digits) - (a->n_digits < b->n_digits);
}

static int compare_decimals(const peg_json *x, const peg_json *y)
{
    struct peg__decimal a;
    struct peg__decimal b;
    int64_t top_a;
    int64_t top_b;
    int order;

    peg__decimal_of(x, &a);
    peg__decimal_of(y, &b);
    if (a.n_digits == 0 || b.n_digits == 0) {
        const int sign_a = a.n_digits ? (a.negative ? -1 : 1) : 0;
        const int sign_b = b.n_digits ? (b.negative ? -1 : 1) : 0;

        return (sign_a > sign_b) - (sign_a < sign_b);
    }
    if (a.negative != b.negative)
        return a.negative ? -1 : 1;
    top_a = peg__decimal_point(&a);
    top_b = peg__decimal_point(&b);
    order = top_a != top_b ? (top_a > top_b) - (top_a < top_b) : compare_digits(&a, &b);
    return a.negative ? -order : order;
}

static const peg_json *number_or_zero(const peg_json *value)
{
    static const peg_json zero = {.kind = PEG_JSON_INTEGER};

    return peg_json_is_number(value) ? value : &zero;
}

int peg_json_compare_numbers(const peg_json *a, const peg_json *b)
{
    a = number_or_zero(a);
    b = number_or_zero(b);
    if (a->form == PEG_JSON_FORM_TEXT || b->form == PEG_JSON_FORM_TEXT)
        return compare_decimals(a, b);
    if (a->exponent == b->exponent)
        return (a->u.number > b->u.number) - (a->u.number < b->u.number);
    if (a->exponent > b->exponent)
        return compare_shifted(a->u.number, a->exponent - b->exponent, b->u.number);
    return -compare_shifted(b->u.number, b->exponent - a->exponent, a->u.number);
}

/* ---- hashing ------------------------------------------------------------------ */

static uint64_t hash_word(bool negative, uint64_t mantissa, int64_t exponent, uint64_t seed)
{
    if (mantissa == 0)
        return peg__hash_two(0, 0, seed);
    while (mantissa % 10 == 0) {
        mantissa /= 10;
        exponent++;
    }
    return peg__hash_two(mantissa, (uint64_t)exponent * 2 + negative, seed);
}

/* Digits that fit a word are hashed as one: the same value may be held scaled. */
static uint64_t hash_text(const peg_json *number, uint64_t seed)
{
    struct peg__decimal d;
    const char *cursor;
    uint64_t h = seed;
    uint64_t word = 0;

    peg__decimal_of(number, &d);
    cursor = d.first;
    for (size_t i = 0; i < d.n_digits; i++) {
        word = word * 10 + peg__decimal_next(&cursor);
        if (i % WORD_DIGITS == WORD_DIGITS - 1 && i + 1 < d.n_digits) {
            h = peg__hash_two(h, word, seed);
            word = 0;
        }
    }
    if (d.n_digits <= WORD_DIGITS)
        return hash_word(d.negative, word, d.exponent, seed);
    h = peg__hash_two(h, word, seed);
    return peg__hash_two(h, (uint64_t)d.exponent * 2 + d.negative, seed);
}

uint64_t peg__number_hash(const peg_json *number, uint64_t seed)
{
    if (number->form == PEG_JSON_FORM_TEXT)
        return hash_text(number, seed);
    return hash_word(number->u.number < 0, peg__magnitude(number->u.number), number->exponent,
                     seed);
}
