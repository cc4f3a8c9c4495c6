/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_TEXT_STR_H
#define PEG_BASE_TEXT_STR_H

#include <string.h>

#include "pegboard/common.h"

/* A string literal as a peg_str, usable in static initialisers. */
#define PEG_LIT(literal)                                                                           \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static inline peg_str peg__str(const char *s)
{
    return (peg_str){s, strlen(s)};
}

static inline peg_str peg__strn(const char *ptr, size_t len)
{
    return (peg_str){ptr, len};
}

static inline bool peg__str_eq(peg_str a, peg_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool peg__str_is(peg_str a, const char *b)
{
    return peg__str_eq(a, peg__str(b));
}

static inline bool peg__str_starts(peg_str s, peg_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* What a hexadecimal digit stands for, or -1. */
static inline int peg__hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decimal digits of a number, 20 at most, without a NUL. Returns the place behind them. snprintf()
 * takes twenty times as long, and each call has some. */
static inline char *peg__put_decimal(char *at, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *at++ = digits[--n];
    return at;
}

/* From `start` to the end. Requires start <= s.len. */
static inline peg_str peg__str_from(peg_str s, size_t start)
{
    return (peg_str){s.ptr + start, s.len - start};
}

/* As memcmp(): a shorter string comes before a longer one that starts with it. */
static inline int peg__str_compare(peg_str a, peg_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* How many of the first characters are in a set of ASCII. */
static inline size_t peg__str_span(peg_str s, const char *set)
{
    size_t n = 0;

    while (n < s.len && s.ptr[n] && strchr(set, s.ptr[n]))
        n++;
    return n;
}

/* Without characters of the set at either end. */
static inline peg_str peg__str_trim(peg_str s, const char *set)
{
    s = peg__str_from(s, peg__str_span(s, set));
    while (s.len && s.ptr[s.len - 1] && strchr(set, s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* For a setting that 0 leaves to us. */
#define PEG__OR_DEFAULT(value, otherwise) ((value) ? (value) : (otherwise))

static inline const char *peg__or_empty(const char *text)
{
    return text ? text : "";
}

/* ---- ASCII, whatever the locale; bytes of other characters are in no class ------------- */

static inline bool peg__is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool peg__is_upper(int c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool peg__is_letter(int c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static inline bool peg__is_alnum(int c)
{
    return peg__is_letter(c) || peg__is_digit(c);
}

static inline bool peg__is_blank(int c)
{
    return c == ' ' || c == '\t';
}

static inline bool peg__is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Nothing but white space? */
static inline bool peg__str_is_blank(peg_str s)
{
    size_t n = 0;

    while (n < s.len && peg__is_space(s.ptr[n]))
        n++;
    return n == s.len;
}

static inline char peg__to_lower(char c)
{
    return (char)(peg__is_upper(c) ? c | 0x20 : c);
}

static inline bool peg__str_is_ascii(peg_str s)
{
    unsigned char all = 0;

    for (size_t i = 0; i < s.len; i++)
        all |= (unsigned char)s.ptr[i];
    return all < 0x80;
}

/* ---- UTF-8 ----------------------------------------------------------------------------- */

/* Valid UTF-8 without surrogates and overlong forms? */
bool peg__utf8_is_valid(peg_str s);
/* Bytes of the character at the start of s, 0 if it is none. Requires s.len > 0; stops at a NUL, so
 * that a len of 4 is right for any text that ends with one. */
size_t peg__utf8_char_len(peg_str s);
/* The same, and the character. */
size_t peg__utf8_decode(peg_str s, uint32_t *ret_char);
/* Characters (code points) of valid UTF-8. */
size_t peg__utf8_length(peg_str s);

/* A byte that continues a character. */
static inline bool peg__utf8_is_tail(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Where a text has to be cut, at `len` or before, so that no UTF-8 character is split. Reads
 * text[len]. */
static inline size_t peg__utf8_cut(const char *text, size_t len)
{
    while (len > 0 && peg__utf8_is_tail(text[len]))
        len--;
    return len;
}

/* The character at *at in valid UTF-8; *at moves behind it. */
static inline uint32_t peg__utf8_next(const unsigned char **at)
{
    const unsigned char *p = *at;

    *at += p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] < 0x80)
        return p[0];
    if (p[0] < 0xE0)
        return (p[0] & 0x1FU) << 6 | (p[1] & 0x3FU);
    if (p[0] < 0xF0)
        return (p[0] & 0x0FU) << 12 | (p[1] & 0x3FU) << 6 | (p[2] & 0x3FU);
    return (p[0] & 0x07U) << 18 | (p[1] & 0x3FU) << 12 | (p[2] & 0x3FU) << 6 | (p[3] & 0x3FU);
}

/* Writes a character, four bytes at most, and returns the place behind it. */
static inline char *peg__utf8_put(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

/* ---- suggestions ----------------------------------------------------------- */

/* "did you mean ...?": which of some names is closest to one that is not known. Case is no edit. */

/* Plain data; one search. */
struct peg__typo {
    peg_str unknown; /* borrowed */
    unsigned best;   /* edits that the next one must stay below */
    unsigned n_seen;
};

void peg__typo_start(struct peg__typo *typo, peg_str unknown);
/* True: this is closer than all that were offered before, and close enough. Looks at the first 256
 * names only, and at none that is longer than 48 bytes. */
bool peg__typo_offer(struct peg__typo *typo, peg_str name);

#endif
