/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_INDEX_H
#define PEG_JSON_PARSE_INDEX_H

/*
 * The first stage of the parser: where in the next part of the text, the window, tokens are. It
 * works on 64 bytes at a time without a branch that depends on them.
 *
 * The index is a list of places in the order of the text. Outside of strings it holds each { and
 * [ and the first byte of each word or number. Of each string it holds both quotes, and between
 * them the first byte of each run of backslashes, control characters or bytes beyond ASCII; so a
 * string is plain if the entry behind its opening quote is a quote. What else stands between
 * tokens (space , : } ]) the second stage (values.h) reads itself.
 *
 *   text    {"id": 12, "tags": ["a\n", true]}
 *   index   ^^  ^  ^   ^    ^  ^^ ^ ^  ^
 *
 * A window starts behind a token and ends anywhere, also inside a string.
 */

#include <stddef.h>

#include "json/parse/block.h"

enum {
    PEG__WINDOW = 8192, /* bytes of text in an index: whole blocks, and offsets fit 16 bits */
    PEG__INDEX_SIZE = PEG__WINDOW + 2 * PEG__BLOCK,
};

/* What a block hands on to the next one. */
struct peg__index_state {
    uint64_t in_string;  /* all bits or none: the block starts inside a string */
    uint64_t is_escaped; /* its first byte stands behind a backslash that counts */
    uint64_t in_run;     /* its first byte would not start a word, number or run */
    size_t n_quotes;     /* so far, as the next; where counting is cheap, else 0 */
    size_t n_others;     /* entries between quotes */
};

/* Bit i: an odd number of the bits up to i are set. So from opening quotes up to closing ones. */
static inline uint64_t peg__index_prefix_xor(uint64_t bits)
{
#ifdef __PCLMUL__
    const __m128i ones = _mm_set1_epi8((char)0xFF);

    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)bits), ones, 0));
#else
    for (int shift = 1; shift < 64; shift *= 2)
        bits ^= bits << shift;
    return bits;
#endif
}

/*
 * The bytes behind a backslash that is not itself behind such a one. In a run of backslashes
 * every second byte is that, and the byte behind the run if it is odd. To have a bit for every
 * second byte whatever the run starts with, the run is subtracted from itself shifted by one with
 * all odd bits set: the borrow goes from its start to its end.
 */
static inline uint64_t peg__index_escaped(uint64_t backslashes, struct peg__index_state *s)
{
    const uint64_t odd_places = 0xAAAAAAAAAAAAAAAAULL;
    const uint64_t first_escaped = s->is_escaped;
    const uint64_t runs = backslashes & ~first_escaped;
    const uint64_t alternating = (((runs << 1) | odd_places) - runs) ^ odd_places;

    s->is_escaped = (alternating & backslashes) >> 63;
    return alternating ^ (backslashes | first_escaped);
}

/* The index of one block. */
static inline uint64_t peg__index_block(const char *at, struct peg__index_state *s)
{
    const struct peg__block block = peg__block_look(at);
    const uint64_t quotes = block.quotes & ~peg__index_escaped(block.backslashes, s);
    /* With the opening quote, without the closing one. */
    const uint64_t strings = peg__index_prefix_xor(quotes) ^ s->in_string;
    const uint64_t outside = ~(strings | quotes);
    const uint64_t words = outside & ~(block.openers | block.separators);
    const uint64_t special = strings & (block.backslashes | block.odd);
    const uint64_t runs = words | special;
    const uint64_t starts = runs & ~(runs << 1 | s->in_run);

#ifdef __POPCNT__
    s->n_quotes += (size_t)__builtin_popcountll(quotes);
    s->n_others += (size_t)__builtin_popcountll(starts & special);
#endif
    s->in_string = (uint64_t)((int64_t)strings >> 63);
    s->in_run = runs >> 63;
    return quotes | starts | (outside & block.openers);
}

#if defined(__AVX512VBMI2__)

static inline uint16_t *peg__index_append(uint16_t *to, size_t offset, uint64_t bits)
{
    const __m512i places = _mm512_set_epi64(
        0x3F3E3D3C3B3A3938, 0x3736353433323130, 0x2F2E2D2C2B2A2928, 0x2726252423222120,
        0x1F1E1D1C1B1A1918, 0x1716151413121110, 0x0F0E0D0C0B0A0908, 0x0706050403020100);
    const __m512i found = _mm512_maskz_compress_epi8(bits, places);
    const __m512i base = _mm512_set1_epi16((short)offset);
    const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(found));
    const int n = __builtin_popcountll(bits);

    _mm512_storeu_si512(to, _mm512_add_epi16(base, low));
    if (n > 32) {
        const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(found, 1));

        _mm512_storeu_si512(to + 32, _mm512_add_epi16(base, high));
    }
    return to + n;
}

#elif defined(__BMI__) && defined(__POPCNT__)

/* Four entries, or what is left and then anything; the bits without them. */
static inline uint64_t peg__index_four(uint16_t *to, size_t offset, uint64_t bits)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (uint16_t)(offset + _tzcnt_u64(bits));
        bits &= bits - 1;
    }
    return bits;
}

/* Twelve in any case: that costs less than a branch on how many there are. */
static inline uint16_t *peg__index_append(uint16_t *to, size_t offset, uint64_t bits)
{
    uint16_t *const end = to + __builtin_popcountll(bits);

    bits = peg__index_four(to, offset, bits);
    bits = peg__index_four(to + 4, offset, bits);
    bits = peg__index_four(to + 8, offset, bits);
    for (to += 12; bits; to += 4)
        bits = peg__index_four(to, offset, bits);
    return end;
}

#else

static inline uint16_t *peg__index_append(uint16_t *to, size_t offset, uint64_t bits)
{
    for (; bits; bits &= bits - 1)
        *to++ = (uint16_t)(offset + (size_t)__builtin_ctzll(bits));
    return to;
}

#endif

/*
 * Makes the index of what starts at `at`, a place outside of strings and words; returns how many
 * values begin there, or a larger number. Its entries count from the byte before `at`. Behind the
 * last there is a 0, which is where no token is. The zeros behind the text may add an entry for its
 * end.
 */
static inline size_t peg__index_make(uint16_t *index, const char *at, const char *end)
{
    struct peg__index_state state = {0};
    const size_t n_bytes = end - at > PEG__WINDOW ? PEG__WINDOW : (size_t)(end - at);
    uint16_t *to = index;

    for (size_t i = 0; i < n_bytes; i += PEG__BLOCK)
        to = peg__index_append(to, i + 1, peg__index_block(at + i, &state));
    to[0] = 0;
    to[1] = 0;
    /* Every other quote ends a string. */
    return (size_t)(to - index) - state.n_quotes / 2 - state.n_others;
}

#endif
