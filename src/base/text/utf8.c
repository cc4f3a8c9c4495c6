/* SPDX-License-Identifier: Apache-2.0 */

/* UTF-8: runs of ASCII are skipped in words, everything else is decided by its first byte. */

#include "base/text/str.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static const uint64_t ONES = 0x0101010101010101u;
static const uint64_t HIGH_BITS = 0x8080808080808080u;

/* Skips whole words of ASCII; what remains of a run is skipped byte by byte. */
static const unsigned char *skip_ascii(const unsigned char *p, const unsigned char *end)
{
#if defined(__SSE2__)
    while (end - p >= 16) {
        if (_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)p)))
            break;
        p += 16;
    }
#endif
    while (end - p >= 8) {
        uint64_t word;

        memcpy(&word, p, 8);
        if (word & HIGH_BITS)
            break;
        p += 8;
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}

/* Bytes of the character at p that is not ASCII, or 0 if it is none. The second byte's range
 * keeps out overlong forms (E0, F0), surrogates (ED) and what is above U+10FFFF (F4). */
static size_t sequence_len(const unsigned char *p, size_t left)
{
    const unsigned char first = p[0];

    if (first < 0xC2 || first > 0xF4 || left < 2)
        return 0;
    if (first < 0xE0)
        return peg__utf8_is_tail((char)p[1]) ? 2 : 0;
    if (first < 0xF0) {
        const unsigned char low = first == 0xE0 ? 0xA0 : 0x80;
        const unsigned char high = first == 0xED ? 0x9F : 0xBF;

        return left >= 3 && p[1] >= low && p[1] <= high && peg__utf8_is_tail((char)p[2]) ? 3 : 0;
    }
    {
        const unsigned char low = first == 0xF0 ? 0x90 : 0x80;
        const unsigned char high = first == 0xF4 ? 0x8F : 0xBF;

        return left >= 4 && p[1] >= low && p[1] <= high && peg__utf8_is_tail((char)p[2]) &&
                       peg__utf8_is_tail((char)p[3])
                   ? 4
                   : 0;
    }
}

bool peg__utf8_is_valid(peg_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    const unsigned char *end;

    if (s.len == 0)
        return true;
    end = p + s.len;
    while ((p = skip_ascii(p, end)) < end) {
        /* Text that is not ASCII mostly goes on so. */
        while (p < end && *p >= 0x80) {
            const size_t n = sequence_len(p, (size_t)(end - p));

            if (n == 0)
                return false;
            p += n;
        }
    }
    return true;
}

size_t peg__utf8_char_len(peg_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    return *p < 0x80 ? 1 : sequence_len(p, s.len);
}

size_t peg__utf8_decode(peg_str s, uint32_t *ret_char)
{
    const size_t n = peg__utf8_char_len(s);
    const unsigned char first = (unsigned char)s.ptr[0];
    uint32_t c = n < 2 ? first : first & (0x7FU >> n);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s.ptr[i] & 0x3F);
    if (n)
        *ret_char = c;
    return n;
}

size_t peg__utf8_length(peg_str s)
{
    size_t n_tails = 0;
    size_t i = 0;

    for (; s.len - i >= 8; i += 8) {
        uint64_t word;

        memcpy(&word, s.ptr + i, 8);
        if (!(word & HIGH_BITS))
            continue;
        /* One bit a byte that is 10xxxxxx, summed into the highest byte. */
        word = (word >> 7) & (~word >> 6) & ONES;
        n_tails += (size_t)((word * ONES) >> 56);
    }
    for (; i < s.len; i++)
        n_tails += peg__utf8_is_tail(s.ptr[i]);
    return s.len - n_tails;
}
