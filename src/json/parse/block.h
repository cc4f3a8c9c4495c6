/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_BLOCK_H
#define PEG_JSON_PARSE_BLOCK_H

/*
 * What one block of 64 bytes of JSON text consists of, as bit masks: bit i is about byte i. One
 * way for each kind of machine, chosen by the flags of the file that includes this; all give the
 * same bits but for bytes that are no JSON (see `separators`).
 */

#include <stdint.h>

#if defined(PEG__PORTABLE) /* for tests: as where there is no better way */
#elif defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { PEG__BLOCK = 64 };

struct peg__block {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t openers; /* { and [ */
    /* Space and , : } ]. Where it is cheaper, also bytes that stand nowhere outside of strings:
     * not to be relied on. */
    uint64_t separators;
    uint64_t odd; /* control characters, and bytes of characters beyond ASCII */
};

/*
 * Where it is cheap, PEG__HAS_SPACES and
 *
 *   uint64_t peg__block_no_spaces(const char *at)   bit i: byte i is no space, tab, CR or LF
 *
 * for as many bytes as one look takes, 64, 32 or 16; bits above them are 0.
 */

#if defined(__AVX512BW__) && !defined(PEG__PORTABLE)

static inline struct peg__block peg__block_look(const char *at)
{
    const __m512i bytes = _mm512_loadu_si512(at);
    const __m512i folded = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20)); /* [ is {, ] is } */
    /* Indexed by the low half of a byte: the one separator that ends so. */
    const __m512i marks = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', '{', ',', '}', 0, 0));
    const __m512i space = _mm512_set1_epi8(0x20);
    uint64_t quotes = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"'));

    /* Hidden from gcc, which would else make the escaped ones a mask of the comparison: that
     * costs a way to the mask registers and back. */
    __asm__("" : "+r"(quotes));
    return (struct peg__block){
        .quotes = quotes,
        .backslashes = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\')),
        .openers = _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8('{')),
        .separators = _mm512_cmple_epi8_mask(bytes, space) |
                      _mm512_cmpeq_epi8_mask(folded, _mm512_shuffle_epi8(marks, folded)),
        .odd = _mm512_cmplt_epi8_mask(bytes, space),
    };
}

#define PEG__HAS_SPACES

static inline uint64_t peg__block_no_spaces(const char *at)
{
    const __m512i bytes = _mm512_loadu_si512(at);
    /* Indexed by the low half of a byte: the one space that ends so. */
    const __m512i spaces = _mm512_broadcast_i32x4(
        _mm_setr_epi8(' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0));

    return _mm512_cmpneq_epi8_mask(bytes, _mm512_shuffle_epi8(spaces, bytes));
}

#elif defined(__AVX2__) && !defined(PEG__PORTABLE)

static inline uint64_t peg__block_bits(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

static inline uint64_t peg__block_equal(__m256i low, __m256i high, char c)
{
    const __m256i all = _mm256_set1_epi8(c);

    return peg__block_bits(_mm256_cmpeq_epi8(low, all), _mm256_cmpeq_epi8(high, all));
}

/* [ becomes {, ] becomes }. */
static inline __m256i peg__block_fold(__m256i bytes)
{
    return _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
}

static inline __m256i peg__block_spaces(__m256i bytes)
{
    /* Indexed by the low half of a byte: the one space that ends so. */
    const __m256i spaces = _mm256_setr_epi8(
        ' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0, /* and the same again */
        ' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0);

    return _mm256_cmpeq_epi8(bytes, _mm256_shuffle_epi8(spaces, bytes));
}

#define PEG__HAS_SPACES

static inline uint64_t peg__block_no_spaces(const char *at)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)at);

    return ~(uint32_t)_mm256_movemask_epi8(peg__block_spaces(bytes));
}

static inline __m256i peg__block_separators(__m256i bytes, __m256i folded)
{
    const __m256i marks = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', 0, ',', '}', 0,
                                           0, /* and the same again */
                                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', 0, ',', '}', 0, 0);

    return _mm256_or_si256(peg__block_spaces(bytes),
                           _mm256_cmpeq_epi8(folded, _mm256_shuffle_epi8(marks, folded)));
}

static inline struct peg__block peg__block_look(const char *at)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
    const __m256i low_folded = peg__block_fold(low);
    const __m256i high_folded = peg__block_fold(high);
    const __m256i space = _mm256_set1_epi8(0x20);

    return (struct peg__block){
        .quotes = peg__block_equal(low, high, '"'),
        .backslashes = peg__block_equal(low, high, '\\'),
        .openers = peg__block_equal(low_folded, high_folded, '{'),
        .separators = peg__block_bits(peg__block_separators(low, low_folded),
                                      peg__block_separators(high, high_folded)),
        /* Signed: bytes from 0x80 on are negative. */
        .odd = peg__block_bits(_mm256_cmpgt_epi8(space, low), _mm256_cmpgt_epi8(space, high)),
    };
}

#elif defined(__SSE2__) && !defined(PEG__PORTABLE)

static inline __m128i peg__block_is(__m128i bytes, char c)
{
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c));
}

static inline uint64_t peg__block_bits(__m128i mask, int shift)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(mask) << shift;
}

static inline __m128i peg__block_spaces(__m128i bytes)
{
    return _mm_or_si128(_mm_or_si128(peg__block_is(bytes, ' '), peg__block_is(bytes, '\n')),
                        _mm_or_si128(peg__block_is(bytes, '\t'), peg__block_is(bytes, '\r')));
}

#define PEG__HAS_SPACES

static inline uint64_t peg__block_no_spaces(const char *at)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);

    return (uint32_t)_mm_movemask_epi8(peg__block_spaces(bytes)) ^ 0xFFFFU;
}

static inline void peg__block_look16(const char *at, int shift, struct peg__block *block)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20)); /* [ is {, ] is } */
    const __m128i marks =
        _mm_or_si128(_mm_or_si128(peg__block_is(bytes, ','), peg__block_is(bytes, ':')),
                     peg__block_is(folded, '}'));

    block->quotes |= peg__block_bits(peg__block_is(bytes, '"'), shift);
    block->backslashes |= peg__block_bits(peg__block_is(bytes, '\\'), shift);
    block->openers |= peg__block_bits(peg__block_is(folded, '{'), shift);
    block->separators |= peg__block_bits(_mm_or_si128(peg__block_spaces(bytes), marks), shift);
    /* Signed: bytes from 0x80 on are negative. */
    block->odd |= peg__block_bits(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)), shift);
}

static inline struct peg__block peg__block_look(const char *at)
{
    struct peg__block block = {0};

    peg__block_look16(at, 0, &block);
    peg__block_look16(at + 16, 16, &block);
    peg__block_look16(at + 32, 32, &block);
    peg__block_look16(at + 48, 48, &block);
    return block;
}

#elif defined(__ARM_NEON) && defined(__aarch64__) && !defined(PEG__PORTABLE)

/* NEON has no movemask: keep one bit a byte, then add neighbours until 64 bytes are 8. */
static inline uint64_t peg__block_bits(uint8x16x4_t masks)
{
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t low = vpaddq_u8(vandq_u8(masks.val[0], bit), vandq_u8(masks.val[1], bit));
    const uint8x16_t high = vpaddq_u8(vandq_u8(masks.val[2], bit), vandq_u8(masks.val[3], bit));
    const uint8x16_t quarter = vpaddq_u8(low, high);

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarter, quarter)), 0);
}

static inline uint8x16_t peg__block_is(uint8x16_t bytes, char c)
{
    return vceqq_u8(bytes, vdupq_n_u8((uint8_t)c));
}

static inline uint8x16_t peg__block_separators(uint8x16_t bytes, uint8x16_t folded)
{
    const uint8x16_t spaces =
        vorrq_u8(vorrq_u8(peg__block_is(bytes, ' '), peg__block_is(bytes, '\n')),
                 vorrq_u8(peg__block_is(bytes, '\t'), peg__block_is(bytes, '\r')));

    return vorrq_u8(vorrq_u8(spaces, peg__block_is(folded, '}')),
                    vorrq_u8(peg__block_is(bytes, ','), peg__block_is(bytes, ':')));
}

static inline struct peg__block peg__block_look(const char *at)
{
    uint8x16x4_t quotes;
    uint8x16x4_t backslashes;
    uint8x16x4_t openers;
    uint8x16x4_t separators;
    uint8x16x4_t odd;

    for (int i = 0; i < 4; i++) {
        const uint8x16_t bytes = vld1q_u8((const uint8_t *)at + 16 * i);
        const uint8x16_t folded = vorrq_u8(bytes, vdupq_n_u8(0x20)); /* [ is {, ] is } */

        quotes.val[i] = peg__block_is(bytes, '"');
        backslashes.val[i] = peg__block_is(bytes, '\\');
        openers.val[i] = peg__block_is(folded, '{');
        separators.val[i] = peg__block_separators(bytes, folded);
        /* Signed: bytes from 0x80 on are negative. */
        odd.val[i] = vcltq_s8(vreinterpretq_s8_u8(bytes), vdupq_n_s8(0x20));
    }
    return (struct peg__block){.quotes = peg__block_bits(quotes),
                               .backslashes = peg__block_bits(backslashes),
                               .openers = peg__block_bits(openers),
                               .separators = peg__block_bits(separators),
                               .odd = peg__block_bits(odd)};
}

#else

static inline struct peg__block peg__block_look(const char *at)
{
    struct peg__block block = {0};

    for (int i = 0; i < PEG__BLOCK; i++) {
        const uint64_t bit = 1ULL << i;
        const char c = at[i];

        if (c == '"')
            block.quotes |= bit;
        else if (c == '\\')
            block.backslashes |= bit;
        else if (c == '{' || c == '[')
            block.openers |= bit;
        else if (c == ' ' || c == ',' || c == ':' || c == '}' || c == ']' || c == '\n' ||
                 c == '\t' || c == '\r')
            block.separators |= bit;
        if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x80)
            block.odd |= bit;
    }
    return block;
}

#endif
#endif
