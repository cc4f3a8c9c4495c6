/* SPDX-License-Identifier: Apache-2.0 */

#include "json/members.h"

#include <string.h>

enum { INSERTION_RUN = 8 };

/* UTF-8 sorts by code point. UTF-16 differs in one place: characters above U+FFFF start with a
 * surrogate and so come before U+E000 to U+FFFF, whose UTF-8 starts with EE or EF. */
static unsigned utf16_rank(unsigned char first_byte)
{
    return first_byte == 0xEE || first_byte == 0xEF ? first_byte + 0x10u : first_byte;
}

int peg__key_order_utf16(const peg_json *a, const peg_json *b)
{
    const unsigned char *x = (const unsigned char *)a->u.ptr;
    const unsigned char *y = (const unsigned char *)b->u.ptr;
    const size_t n = a->len < b->len ? a->len : b->len;
    size_t i = 0;

    while (i < n && x[i] == y[i])
        i++;
    if (i == n)
        return (a->len > b->len) - (a->len < b->len);
    /* Bytes inside a character never are EE or EF, so that ranking them changes nothing. */
    return utf16_rank(x[i]) < utf16_rank(y[i]) ? -1 : 1;
}

int peg__key_order_quick(const peg_json *a, const peg_json *b)
{
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return memcmp(a->u.ptr, b->u.ptr, a->len);
}

static void sort_run(const peg_json **keys, size_t n, peg__key_order *order)
{
    for (size_t i = 1; i < n; i++) {
        const peg_json *key = keys[i];
        size_t at = i;

        for (; at > 0 && order(keys[at - 1], key) > 0; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Merges from[0..middle) and from[middle..n) into `to`. */
static void merge(const peg_json **from, size_t middle, size_t n, const peg_json **to,
                  peg__key_order *order)
{
    size_t left = 0;
    size_t right = middle;

    for (size_t i = 0; i < n; i++) {
        const bool take_left = right == n || (left < middle && order(from[left], from[right]) <= 0);

        to[i] = take_left ? from[left++] : from[right++];
    }
}

void peg__keys_sort(const peg_json **keys, const peg_json **spare, size_t n, peg__key_order *order)
{
    const peg_json **from = keys;
    const peg_json **to = spare;

    for (size_t i = 0; i < n; i += INSERTION_RUN)
        sort_run(keys + i, n - i < INSERTION_RUN ? n - i : INSERTION_RUN, order);
    for (size_t run = INSERTION_RUN; run < n; run *= 2) {
        const peg_json **swap = from;

        for (size_t i = 0; i < n; i += 2 * run) {
            const size_t left = n - i;

            merge(from + i, left < run ? left : run, left < 2 * run ? left : 2 * run, to + i,
                  order);
        }
        from = to;
        to = swap;
    }
    if (from != keys && n)
        memcpy(keys, from, n * sizeof(*keys));
}
