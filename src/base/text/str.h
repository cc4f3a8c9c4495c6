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

/* For printf("%.*s", PEG_ARG(s)). */
#define PEG_ARG(s) (int)(s).len, (s).ptr

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

/* Where a text has to be cut, at `len` or before, so that no UTF-8 character is split. Reads
 * text[len]. */
static inline size_t peg__utf8_cut(const char *text, size_t len)
{
    while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
        len--;
    return len;
}

#endif
