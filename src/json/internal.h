/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_INTERNAL_H
#define PEG_JSON_INTERNAL_H

/* What the files of json/ share: documents, the order of names, hashes. */

#include <string.h>

#include "base/arena.h"
#include "json/json.h"

/* ---- documents ------------------------------------------------------------ */

/* Readable bytes behind every string of a document, its NUL included. */
enum { PEG_JSON_PADDING = 48 };

/* Owned. values[0] is the root. */
struct peg_json_doc {
    peg_json *values;
    size_t capacity; /* of values */
    char *text; /* parsed: the text, its strings unescaped in place; owned unless it is `inlined` */
    size_t text_capacity;
    struct peg__arena strings; /* built: every string, each with its padding */
    size_t inlined_capacity;
    char inlined[]; /* for the first text */
};

/* ---- the order of names --------------------------------------------------- */

/* Less than 0, 0 or greater than 0. */
typedef int peg__key_order(const peg_json *a, const peg_json *b);

/* By UTF-16 code units, as RFC 8785 and ECMAScript sort. */
int peg__key_order_utf16(const peg_json *a, const peg_json *b);

/* Any order that is the same for equal names. */
int peg__key_order_quick(const peg_json *a, const peg_json *b);

/* Do the keys of an object stand in this order? */
bool peg__keys_in_order(const peg_json *object, peg__key_order *order);

/* Sorts n keys, stably and without allocating; `spare` has capacity for n. */
void peg__keys_sort(const peg_json **keys, const peg_json **spare, size_t n, peg__key_order *order);

/* ---- hashes --------------------------------------------------------------- */

/*
 * Hashes that a stranger cannot choose: everything is folded with keys that come from the
 * seed, so that no input collides for every seed.
 */

/* Both halves of a 128-bit product: every bit of the result depends on every bit given. */
static inline uint64_t peg__hash_fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A bijection that spreads every bit. */
static inline uint64_t peg__hash_finish(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    h ^= h >> 29;
    h *= 0xA24BAED4963EE407u;
    return h ^ (h >> 32);
}

static inline uint64_t peg__hash_two(uint64_t a, uint64_t b, uint64_t seed)
{
    /* Both keys have bits everywhere, also for a small seed: a product with a factor near 0
     * or near 2^64 would hardly mix. */
    const uint64_t key = peg__hash_finish(seed + 0x9E3779B97F4A7C15u);
    const uint64_t other_key = key * 0x8EBC6AF09C88C6E3u;

    return peg__hash_finish(peg__hash_fold(a ^ key, b ^ other_key) ^ a);
}

/* The last bytes, fewer than eight, by loads that may overlap: a call to memcpy costs more. */
static inline uint64_t peg__hash_tail(peg_str bytes, size_t start)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr + start;
    const size_t n = bytes.len - start;
    uint64_t word;
    uint32_t first;
    uint32_t last;

    if (bytes.len >= 8) {
        memcpy(&word, bytes.ptr + bytes.len - 8, 8);
        return word;
    }
    if (n >= 4) {
        memcpy(&first, at, 4);
        memcpy(&last, at + n - 4, 4);
        return (uint64_t)last << 32 | first;
    }
    return at[0] | (uint64_t)at[n / 2] << 8 | (uint64_t)at[n - 1] << 16;
}

static inline uint64_t peg__hash_bytes(peg_str bytes, uint64_t seed)
{
    const uint64_t key = peg__hash_finish(seed + 0x9E3779B97F4A7C15u);
    uint64_t h = key ^ bytes.len;
    size_t i = 0;

    for (; bytes.len - i >= 8; i += 8) {
        uint64_t word;

        memcpy(&word, bytes.ptr + i, 8);
        h = peg__hash_fold(h ^ word, key) + word;
    }
    if (i < bytes.len) {
        const uint64_t word = peg__hash_tail(bytes, i);

        h = peg__hash_fold(h ^ word, key) + word;
    }
    return peg__hash_finish(h ^ key);
}

#endif
