/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_SCAN_H
#define PEG_JSON_PARSE_SCAN_H

/*
 * Finding the end of a run of bytes, 16 or 32 at a time where the machine can. The functions
 * may read up to 32 bytes past what they return: texts are padded for that.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__SSE2__)

/* One bit a byte, 32 of them: those that are no plain part of a JSON string. Signed comparison
 * catches control characters and everything from 0x80 on in one. */
#if defined(__AVX2__)
static inline unsigned peg__scan_special(const char *at)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"'));
    const __m256i slash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\'));
    const __m256i other = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes);

    return (unsigned)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), other));
}
#else
static inline unsigned peg__scan_special16(const char *at)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    const __m128i other = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), other));
}

static inline unsigned peg__scan_special(const char *at)
{
    return peg__scan_special16(at) | peg__scan_special16(at + 16) << 16;
}
#endif

/* The first byte that is a quote, a backslash, a control character or not ASCII. 32 a round:
 * most strings end in the first one, and the branch is foreseen. */
static inline const char *peg__scan_plain(const char *at)
{
    unsigned special;

    while (!(special = peg__scan_special(at)))
        at += 32;
    return at + __builtin_ctz(special);
}

/* Copies the first n of 32 bytes; the others stay as they are. */
static inline void peg__scan_blend(char *to, const char *from, unsigned n)
{
    static const int8_t masks[64] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    __m128i mixed[2];

    for (size_t i = 0; i < 2; i++) {
        const __m128i mask =
            _mm_loadu_si128((const __m128i *)(const void *)(masks + 32 - n + 16 * i));
        const __m128i new = _mm_loadu_si128((const __m128i *)(const void *)(from + 16 * i));
        const __m128i old = _mm_loadu_si128((const __m128i *)(const void *)(to + 16 * i));

        mixed[i] = _mm_or_si128(_mm_and_si128(mask, new), _mm_andnot_si128(mask, old));
    }
    memcpy(to, mixed, 32);
}

/*
 * Moves plain bytes towards the start of the text. Returns where in `from` they end. Behind the
 * last one bytes are written again as they are: that costs less than a branch on how many there
 * are.
 */
static inline const char *peg__scan_move_plain(char *to, const char *from)
{
    unsigned special;

    while (!(special = peg__scan_special(from))) {
        memmove(to, from, 32);
        to += 32;
        from += 32;
    }
    peg__scan_blend(to, from, (unsigned)__builtin_ctz(special));
    return from + __builtin_ctz(special);
}

/* The first byte that is not a space. */
static inline const char *peg__scan_spaces(const char *at)
{
    unsigned other;

    for (;;) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);

        other = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '))) ^ 0xFFFFU;
        if (other)
            return at + __builtin_ctz(other);
        at += 16;
    }
}

#elif defined(__ARM_NEON)

/* NEON has no movemask: narrowing by 4 bits gives 4 bits a byte. */
static inline uint64_t peg__scan_bits(uint8x16_t mask)
{
    const uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(mask), 4);

    return vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
}

static inline const char *peg__scan_plain(const char *at)
{
    for (;; at += 16) {
        const uint8x16_t bytes = vld1q_u8((const uint8_t *)at);
        const uint8x16_t quote = vceqq_u8(bytes, vdupq_n_u8('"'));
        const uint8x16_t slash = vceqq_u8(bytes, vdupq_n_u8('\\'));
        const uint8x16_t other = vcltq_s8(vreinterpretq_s8_u8(bytes), vdupq_n_s8(0x20));
        const uint64_t special = peg__scan_bits(vorrq_u8(vorrq_u8(quote, slash), other));

        if (special)
            return at + __builtin_ctzll(special) / 4;
    }
}

static inline const char *peg__scan_spaces(const char *at)
{
    for (;; at += 16) {
        const uint8x16_t bytes = vld1q_u8((const uint8_t *)at);
        const uint64_t other = ~peg__scan_bits(vceqq_u8(bytes, vdupq_n_u8(' ')));

        if (other)
            return at + __builtin_ctzll(other) / 4;
    }
}

#else

static inline const char *peg__scan_plain(const char *at)
{
    while ((signed char)*at >= 0x20 && *at != '"' && *at != '\\')
        at++;
    return at;
}

static inline const char *peg__scan_spaces(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

#endif

#if !defined(__SSE2__)

static inline const char *peg__scan_move_plain(char *to, const char *from)
{
    const char *stop = peg__scan_plain(from);

    memmove(to, from, (size_t)(stop - from));
    return stop;
}

#endif

/* ---- digits --------------------------------------------------------------------- */

/* Digits eight at a time: how many there are is then a shift and not an unpredictable
 * branch. */

struct peg__digits {
    uint64_t word; /* their values, one a byte, the first lowest; above them anything */
    unsigned n;    /* 0 to 8 */
};

static inline uint64_t peg__little_endian(uint64_t word)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

static inline struct peg__digits peg__digits_find(const char *at)
{
    uint64_t word;
    uint64_t others;

    memcpy(&word, at, 8);
    word = peg__little_endian(word) ^ 0x3030303030303030ULL;
    /* A byte is a digit if it is below 10: no high nibble, also after adding 6. */
    others = (word | (word + 0x0606060606060606ULL)) & 0xF0F0F0F0F0F0F0F0ULL;
    return (struct peg__digits){word, others ? (unsigned)__builtin_ctzll(others) / 8 : 8};
}

/* The number that they make; there is at least one. */
static inline uint64_t peg__digits_value(struct peg__digits digits)
{
    uint64_t word = digits.word << (64 - 8 * digits.n); /* leading zeros */

    word = word * 10 + (word >> 8);
    return (uint32_t)(((word & 0x000000FF000000FFULL) * 0x000F424000000064ULL +
                       ((word >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL) >>
                      32);
}

/* 10^n for as many digits as there can be. */
static inline uint64_t peg__digits_power(unsigned n)
{
    static const uint64_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

    return powers[n];
}

#endif
