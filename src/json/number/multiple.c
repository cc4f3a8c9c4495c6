/* SPDX-License-Identifier: Apache-2.0 */

/*
 * multipleOf: is m1 * 10^e1 a multiple of m2 * 10^e2?
 *
 * With k = e1 - e2 it is, for k >= 0, if m2 divides m1 * 10^k. Whatever is beyond the number
 * of bits of m2 in k does not matter: 10^bits already holds every factor 2 and 5 that m2 can
 * have. So the work depends on the digits only, never on the exponents.
 */

#include "base/limits.h"
#include "json/number/number.h"

typedef unsigned __int128 wide;

enum {
    WORD_BITS = 64,
    STEP_DIGITS = 18, /* digits taken at once: the quotient of a step fits a word */
    WORD_POWERS = 20,
    /* 10^1000 < 2^(1000 * 10/3) */
    MAX_WORDS = PEG_LIMIT_NUMBER_DIGITS * 10 / 3 / WORD_BITS + 2,
};

/* ---- within 64 bits --------------------------------------------------------------- */

static bool word_divides(uint64_t divisor, uint64_t value, int64_t k)
{
    wide rest = value % divisor;

    if (k > WORD_BITS)
        k = WORD_BITS;
    while (k > 0 && rest) {
        const int64_t step = k < WORD_POWERS ? k : WORD_POWERS - 1;

        rest = rest * peg__powers_of_ten[step] % divisor;
        k -= step;
    }
    return rest == 0;
}

static bool is_scaled_multiple(const peg_json *value, const peg_json *divisor)
{
    const uint64_t m1 = peg__magnitude(value->u.number);
    const uint64_t m2 = peg__magnitude(divisor->u.number);
    const int k = value->exponent - divisor->exponent;
    wide scaled;

    if (m1 == 0)
        return true;
    if (k >= 0)
        return word_divides(m2, m1, k);
    if (k <= -WORD_POWERS)
        return false; /* m2 * 10^20 is beyond every m1 */
    scaled = (wide)m2 * peg__powers_of_ten[-k];
    return scaled <= m1 && m1 % (uint64_t)scaled == 0;
}

/* ---- with any number of digits ------------------------------------------------------ */

/* A divisor shifted left until its highest bit is set, and a remainder shifted likewise. */
struct division {
    uint64_t divisor[MAX_WORDS]; /* the lowest word first */
    uint64_t rest[MAX_WORDS + 1];
    size_t n; /* words of the divisor */
    unsigned shift;
};

/* words = words * factor + addend. Returns what does not fit. */
static uint64_t multiply_add(uint64_t *words, size_t n, uint64_t factor, uint64_t addend)
{
    for (size_t i = 0; i < n; i++) {
        const wide product = (wide)words[i] * factor + addend;

        words[i] = (uint64_t)product;
        addend = (uint64_t)(product >> WORD_BITS);
    }
    return addend;
}

/* words -= divisor * factor over n + 1 words. True if that went below 0. */
static bool subtract_product(uint64_t *words, const uint64_t *divisor, size_t n, uint64_t factor)
{
    uint64_t carry = 0;
    bool borrowed = false;

    for (size_t i = 0; i <= n; i++) {
        const wide product = (i < n ? (wide)divisor[i] * factor : 0) + carry;
        const uint64_t low = (uint64_t)product;
        const uint64_t before = words[i];

        carry = (uint64_t)(product >> WORD_BITS);
        words[i] = before - low - borrowed;
        borrowed = before < low || (before == low && borrowed);
    }
    return borrowed;
}

/* True once the addition carries out of n + 1 words: it is no longer below 0. */
static bool add_back(uint64_t *words, const uint64_t *divisor, size_t n)
{
    uint64_t carry = 0;

    for (size_t i = 0; i <= n; i++) {
        const wide sum = (wide)words[i] + (i < n ? divisor[i] : 0) + carry;

        words[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> WORD_BITS);
    }
    return carry != 0;
}

/* rest = (rest * 10^n_digits + chunk) mod divisor; chunk < 10^n_digits, n_digits <= 18. The
 * quotient is guessed from the highest words and is at most two too large (Knuth 4.3.1). */
static void load_digits(struct division *d, uint64_t chunk, unsigned n_digits)
{
    const wide shifted = (wide)chunk << d->shift;
    wide sum;
    uint64_t guess;

    d->rest[d->n] = multiply_add(d->rest, d->n, peg__powers_of_ten[n_digits], (uint64_t)shifted);
    sum = (wide)d->rest[1] + (uint64_t)(shifted >> WORD_BITS);
    d->rest[1] = (uint64_t)sum;
    for (size_t i = 2; (sum >> WORD_BITS) && i <= d->n; i++) {
        sum = (wide)d->rest[i] + 1;
        d->rest[i] = (uint64_t)sum;
    }

    guess =
        (uint64_t)((((wide)d->rest[d->n] << WORD_BITS) | d->rest[d->n - 1]) / d->divisor[d->n - 1]);
    if (subtract_product(d->rest, d->divisor, d->n, guess))
        while (!add_back(d->rest, d->divisor, d->n)) {
        }
}

/* The next `n` digits as one number. */
static uint64_t read_chunk(const char **cursor, size_t n)
{
    uint64_t chunk = 0;

    for (size_t i = 0; i < n; i++)
        chunk = chunk * 10 + peg__decimal_next(cursor);
    return chunk;
}

static void set_divisor(struct division *d, const struct peg__decimal *decimal)
{
    const char *cursor = decimal->first;
    size_t left = decimal->n_digits;

    *d = (struct division){0};
    while (left) {
        const size_t n = left < STEP_DIGITS ? left : STEP_DIGITS;

        multiply_add(d->divisor, MAX_WORDS, peg__powers_of_ten[n], read_chunk(&cursor, n));
        left -= n;
    }
    d->n = MAX_WORDS;
    while (d->n > 1 && d->divisor[d->n - 1] == 0)
        d->n--;
    d->shift = (unsigned)__builtin_clzll(d->divisor[d->n - 1]);
    multiply_add(d->divisor, d->n, (uint64_t)1 << d->shift, 0);
}

static bool rest_is_zero(const struct division *d)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < d->n; i++)
        bits |= d->rest[i];
    return bits == 0;
}

static bool is_decimal_multiple(const peg_json *value, const peg_json *divisor)
{
    struct peg__decimal a;
    struct peg__decimal b;
    struct division d;
    const char *cursor;
    int64_t k;

    peg__decimal_of(value, &a);
    peg__decimal_of(divisor, &b);
    k = a.exponent - b.exponent;
    if (a.n_digits == 0)
        return true;
    if (k < 0)
        return false; /* the last digit of `value` is not 0, so no power of ten divides it */

    set_divisor(&d, &b);
    cursor = a.first;
    for (size_t left = a.n_digits; left;) {
        const size_t n = left < STEP_DIGITS ? left : STEP_DIGITS;

        load_digits(&d, read_chunk(&cursor, n), (unsigned)n);
        left -= n;
    }
    if (k > (int64_t)d.n * WORD_BITS)
        k = (int64_t)d.n * WORD_BITS;
    for (; k > 0 && !rest_is_zero(&d); k -= STEP_DIGITS)
        load_digits(&d, 0, k < STEP_DIGITS ? (unsigned)k : STEP_DIGITS);
    return rest_is_zero(&d);
}

bool peg__number_is_multiple(const peg_json *value, const peg_json *divisor)
{
    if (value->form == PEG_JSON_FORM_TEXT || divisor->form == PEG_JSON_FORM_TEXT)
        return is_decimal_multiple(value, divisor);
    if (value->exponent == divisor->exponent)
        return peg__magnitude(value->u.number) % peg__magnitude(divisor->u.number) == 0;
    return is_scaled_multiple(value, divisor);
}
