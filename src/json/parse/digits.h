/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_DIGITS_H
#define PEG_JSON_PARSE_DIGITS_H

/* Digits eight at a time: how many there are is then a shift and not a branch that nobody can
 * foresee. */

#include <stdint.h>
#include <string.h>

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
