/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a plain scalar means: by the core schema of YAML 1.2, or by the types of
 * YAML 1.1. Numbers become the text of a JSON number and never pass a double.
 *
 * Of 1.1 two things are left out: `y` and `n` alone stay strings, as in the 1.1
 * readers in wide use, and sexagesimal numbers are errors: 1:30 seldom means
 * ninety.
 */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "json/yaml/yaml.h"

/* ---- words --------------------------------------------------------------------- */

struct word {
    const char *text;
    enum peg__yaml_type type;
};

static const struct word core_words[] = {
    {"", PEG__YAML_NULL},           {"~", PEG__YAML_NULL},          {"null", PEG__YAML_NULL},
    {"Null", PEG__YAML_NULL},       {"NULL", PEG__YAML_NULL},       {"true", PEG__YAML_TRUE},
    {"True", PEG__YAML_TRUE},       {"TRUE", PEG__YAML_TRUE},       {"false", PEG__YAML_FALSE},
    {"False", PEG__YAML_FALSE},     {"FALSE", PEG__YAML_FALSE},     {".nan", PEG__YAML_NOT_FINITE},
    {".NaN", PEG__YAML_NOT_FINITE}, {".NAN", PEG__YAML_NOT_FINITE},
};

static const struct word infinities[] = {
    {".inf", PEG__YAML_NOT_FINITE},
    {".Inf", PEG__YAML_NOT_FINITE},
    {".INF", PEG__YAML_NOT_FINITE},
};

static const struct word words_of_1_1[] = {
    {"yes", PEG__YAML_TRUE},  {"Yes", PEG__YAML_TRUE},  {"YES", PEG__YAML_TRUE},
    {"on", PEG__YAML_TRUE},   {"On", PEG__YAML_TRUE},   {"ON", PEG__YAML_TRUE},
    {"no", PEG__YAML_FALSE},  {"No", PEG__YAML_FALSE},  {"NO", PEG__YAML_FALSE},
    {"off", PEG__YAML_FALSE}, {"Off", PEG__YAML_FALSE}, {"OFF", PEG__YAML_FALSE},
};

static enum peg__yaml_type find_word(peg_str text, const struct word *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (peg__str_is(text, words[i].text))
            return words[i].type;
    return PEG__YAML_STRING;
}

#define FIND_WORD(text, words) find_word(text, words, sizeof(words) / sizeof((words)[0]))

/* ---- shapes of numbers ----------------------------------------------------------- */

struct scan {
    const char *p;
    const char *end;
};

static bool at_end(const struct scan *s)
{
    return s->p == s->end;
}

static bool accept_any(struct scan *s, const char *characters)
{
    if (at_end(s) || *s->p == '\0' || !strchr(characters, *s->p))
        return false;
    s->p++;
    return true;
}

static size_t accept_all(struct scan *s, const char *characters)
{
    const char *start = s->p;

    while (accept_any(s, characters))
        ;
    return (size_t)(s->p - start);
}

static bool accept(struct scan *s, peg_str prefix)
{
    if (!peg__str_starts(peg__strn(s->p, (size_t)(s->end - s->p)), prefix))
        return false;
    s->p += prefix.len;
    return true;
}

#define DIGITS "0123456789"
#define HEX_DIGITS "0123456789abcdefABCDEF"

/* [eE][-+]?[0-9]+, all of what is left; in 1.1 the sign is required. */
static bool is_exponent(struct scan s, bool is_1_1)
{
    if (!accept_any(&s, "eE"))
        return false;
    if (!accept_any(&s, "+-") && is_1_1)
        return false;
    return accept_all(&s, DIGITS) > 0 && at_end(&s);
}

static enum peg__yaml_type core_number(struct scan s, unsigned *ret_base)
{
    const peg_str octal = PEG_LIT("0o");
    const peg_str hex = PEG_LIT("0x");
    size_t n_whole;
    size_t n_fraction = 0;

    *ret_base = 10;
    if (accept(&s, octal)) {
        *ret_base = 8;
        return accept_all(&s, "01234567") > 0 && at_end(&s) ? PEG__YAML_INT : PEG__YAML_STRING;
    }
    if (accept(&s, hex)) {
        *ret_base = 16;
        return accept_all(&s, HEX_DIGITS) > 0 && at_end(&s) ? PEG__YAML_INT : PEG__YAML_STRING;
    }
    accept_any(&s, "+-");
    n_whole = accept_all(&s, DIGITS);
    if (n_whole && at_end(&s))
        return PEG__YAML_INT;
    if (accept_any(&s, "."))
        n_fraction = accept_all(&s, DIGITS);
    if (n_whole + n_fraction == 0)
        return PEG__YAML_STRING;
    return at_end(&s) || is_exponent(s, false) ? PEG__YAML_FLOAT : PEG__YAML_STRING;
}

/* 0b1010_1010, 0x_FF, 0777: behind the sign. */
static enum peg__yaml_type based_of_1_1(struct scan s, unsigned *ret_base)
{
    const peg_str binary = PEG_LIT("0b");
    const peg_str hex = PEG_LIT("0x");
    const char *digits = "01234567_";

    *ret_base = 8;
    if (accept(&s, binary)) {
        *ret_base = 2;
        digits = "01_";
    } else if (accept(&s, hex)) {
        *ret_base = 16;
        digits = HEX_DIGITS "_";
    } else if (!accept_any(&s, "0")) {
        return PEG__YAML_STRING;
    }
    if (*ret_base != 8)
        accept_all(&s, "_");
    return accept_all(&s, digits) > 0 && at_end(&s) ? PEG__YAML_INT : PEG__YAML_STRING;
}

/* What follows the first digits of 190:20:30 or 1:30.5. */
static bool is_sexagesimal(struct scan s, bool starts_with_zero)
{
    size_t n = 0;

    while (accept_any(&s, ":")) {
        const char *part = s.p;
        const size_t n_digits = accept_all(&s, DIGITS);

        if (n_digits < 1 || n_digits > 2 || (n_digits == 2 && *part > '5'))
            return false;
        n++;
    }
    if (n == 0)
        return false;
    if (at_end(&s))
        return !starts_with_zero;
    return accept_any(&s, ".") && (accept_all(&s, DIGITS "_"), at_end(&s));
}

static enum peg__yaml_type number_of_1_1(struct scan s, unsigned *ret_base)
{
    bool starts_with_zero;
    size_t n_whole;
    size_t n_fraction;

    accept_any(&s, "+-");
    if (based_of_1_1(s, ret_base) == PEG__YAML_INT)
        return PEG__YAML_INT;
    *ret_base = 10;
    starts_with_zero = !at_end(&s) && *s.p == '0';
    n_whole = accept_any(&s, DIGITS) ? 1 + accept_all(&s, DIGITS "_") : 0;
    if (n_whole && at_end(&s))
        return !starts_with_zero || n_whole == 1 ? PEG__YAML_INT : PEG__YAML_STRING;
    if (n_whole && is_sexagesimal(s, starts_with_zero))
        return PEG__YAML_SEXAGESIMAL;
    if (!accept_any(&s, "."))
        return PEG__YAML_STRING;
    n_fraction = accept_any(&s, DIGITS) ? 1 + accept_all(&s, DIGITS "_") : 0;
    if (n_whole + n_fraction == 0)
        return PEG__YAML_STRING;
    return at_end(&s) || is_exponent(s, true) ? PEG__YAML_FLOAT : PEG__YAML_STRING;
}

enum peg__yaml_type peg__yaml_type_of(peg_str text, bool is_1_1, unsigned *ret_base)
{
    struct scan s = {text.ptr, text.ptr + text.len};
    enum peg__yaml_type type = FIND_WORD(text, core_words);

    if (type == PEG__YAML_STRING && is_1_1)
        type = FIND_WORD(text, words_of_1_1);
    if (type != PEG__YAML_STRING)
        return type;
    accept_any(&s, "+-");
    type = FIND_WORD(peg__strn(s.p, (size_t)(s.end - s.p)), infinities);
    if (type != PEG__YAML_STRING)
        return type;
    s.p = text.ptr;
    return is_1_1 ? number_of_1_1(s, ret_base) : core_number(s, ret_base);
}

/* ---- from YAML's digits to JSON's -------------------------------------------------- */

/* Copies the digits that come next, without underscores. */
static size_t copy_digits(struct scan *s, struct peg__buf *out)
{
    size_t n = 0;

    for (; !at_end(s) && (peg__is_digit(*s->p) || *s->p == '_'); s->p++) {
        if (*s->p == '_')
            continue;
        peg__buf_putc(out, *s->p);
        n++;
    }
    return n;
}

/* +012 -> 12, .5 -> 0.5, 1. -> 1.0: behind the sign. */
static void convert_decimal(struct scan s, struct peg__buf *out)
{
    accept_all(&s, "0_");
    if (copy_digits(&s, out) == 0)
        peg__buf_putc(out, '0');
    if (accept_any(&s, ".")) {
        peg__buf_putc(out, '.');
        if (copy_digits(&s, out) == 0)
            peg__buf_putc(out, '0');
    }
    peg__buf_add(out, s.p, (size_t)(s.end - s.p)); /* the exponent */
}

enum { LIMB = 1000000000, LIMB_DIGITS = 9, MAX_LIMBS = PEG_LIMIT_NUMBER_DIGITS / LIMB_DIGITS + 2 };

/* A whole number; limbs[0] is the lowest. */
struct big {
    uint32_t limbs[MAX_LIMBS];
    size_t n;
};

/* big = big * base + digit; false if it does not fit. */
static bool push_digit(struct big *big, unsigned base, unsigned digit)
{
    uint64_t carry = digit;

    for (size_t i = 0; i < big->n; i++) {
        carry += (uint64_t)big->limbs[i] * base;
        big->limbs[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    if (carry == 0)
        return true;
    if (big->n == MAX_LIMBS)
        return false;
    big->limbs[big->n++] = (uint32_t)carry;
    return true;
}

static unsigned digit_value(char c)
{
    return peg__is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
}

/* 0x1F -> 31: behind the sign. */
static bool convert_based(struct scan s, unsigned base, struct peg__buf *out)
{
    struct big big = {.n = 0};

    if (base != 8 || (s.end - s.p > 1 && s.p[1] == 'o'))
        s.p += 2;
    for (; !at_end(&s); s.p++)
        if (*s.p != '_' && !push_digit(&big, base, digit_value(*s.p)))
            return false;
    peg__buf_printf(out, "%u", big.n ? (unsigned)big.limbs[big.n - 1] : 0U);
    for (size_t i = big.n; i-- > 1;)
        peg__buf_printf(out, "%09u", (unsigned)big.limbs[i - 1]);
    return true;
}

bool peg__yaml_number(peg_str text, unsigned base, struct peg__buf *out)
{
    struct scan s = {text.ptr, text.ptr + text.len};

    if (accept_any(&s, "-"))
        peg__buf_putc(out, '-');
    else
        accept_any(&s, "+");
    if (base != 10)
        return convert_based(s, base, out);
    convert_decimal(s, out);
    return true;
}
