/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order of members: keys sorted for the canonical form and for equality, and copies of values
 * with all members sorted. Most values are sorted already, because they come from files that we
 * wrote: they are copied in one piece.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/internal.h"

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

int peg__json_compare_names(peg_str a, peg_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;

    if (order)
        return order < 0 ? -1 : 1;
    return (a.len > b.len) - (a.len < b.len);
}

/* A peg__key_order. */
static int order_bytes(const peg_json *a, const peg_json *b)
{
    return peg__json_compare_names(peg_json_str(a), peg_json_str(b));
}

bool peg__keys_in_order(const peg_json *object, peg__key_order *order)
{
    const peg_json *before = NULL;

    PEG_JSON_EACH_MEMBER (object, key) {
        if (before && order(before, key) > 0)
            return false;
        before = key;
    }
    return true;
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

unsigned peg__json_depth(const peg_json *value, unsigned most)
{
    const peg_json *ends[PEG_LIMIT_JSON_DEPTH];
    const peg_json *const end = peg_json_next(value);
    unsigned depth = 0;
    unsigned deepest = 0;

    for (const peg_json *at = value; at < end; at++) {
        while (depth && at >= ends[depth - 1])
            depth--;
        if (at->kind < PEG_JSON_ARRAY)
            continue;
        if (depth >= most)
            return most + 1;
        ends[depth++] = peg_json_next(at);
        if (depth > deepest)
            deepest = depth;
    }
    return deepest;
}

static bool is_sorted(const peg_json *value)
{
    const peg_json *const end = peg_json_next(value);

    for (const peg_json *at = value; at < end; at++)
        if (at->kind == PEG_JSON_OBJECT && !peg__keys_in_order(at, order_bytes))
            return false;
    return true;
}

static bool add_sorted(peg_json_builder *b, const peg_json *value);

// NOLINTNEXTLINE(misc-no-recursion): as deep as the value, which was measured
static bool add_sorted_object(peg_json_builder *b, const peg_json *object)
{
    const size_t n = peg_json_len(object);
    PEG_CLEANUP(peg__freep)
    const peg_json **keys = peg__alloc_zero(2 * n, sizeof(const peg_json *));
    size_t i = 0;

    if (!keys)
        return false;
    PEG_JSON_EACH_MEMBER (object, key)
        keys[i++] = key;
    peg__keys_sort(keys, keys + n, n, order_bytes);
    peg_json_open_object(b);
    for (i = 0; i < n; i++) {
        peg_json_add_key(b, peg_json_str(keys[i]));
        if (!add_sorted(b, keys[i] + 1))
            return false;
    }
    peg_json_close(b);
    return true;
}

/* False when out of memory. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the value, which was measured
static bool add_sorted(peg_json_builder *b, const peg_json *value)
{
    if (is_sorted(value)) {
        peg_json_add_copy(b, value);
        return true;
    }
    if (value->kind == PEG_JSON_OBJECT)
        return add_sorted_object(b, value);
    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (value, item) {
        if (!add_sorted(b, item))
            return false;
    }
    peg_json_close(b);
    return true;
}

peg_status peg__json_add_sorted(peg_json_builder *b, const peg_json *value, peg_error *reterr)
{
    if (is_sorted(value)) {
        peg_json_add_copy(b, value);
        return PEG_OK;
    }
    if (peg__json_depth(value, PEG_LIMIT_JSON_DEPTH) > PEG_LIMIT_JSON_DEPTH)
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_TOO_DEEP",
                         "the value nests deeper than %d; make it flatter", PEG_LIMIT_JSON_DEPTH);
    return add_sorted(b, value) ? PEG_OK : peg__fail_nomem(reterr);
}
