/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Equality and hashes by value.
 *
 * Two documents that tell the same in the same order are compared as two flat arrays, side by
 * side. Only an object whose members stand in another order leaves that path.
 */

#include <string.h>

#include "base/mem.h"
#include "json/internal.h"
#include "json/json.h"
#include "json/number/number.h"

/* Up to here members are found by looking through them. */
enum { FEW_MEMBERS = 16 };

static bool same_key(const peg_json *a, const peg_json *b)
{
    return a->len == b->len && memcmp(a->u.ptr, b->u.ptr, a->len) == 0;
}

/* ---- objects in another order --------------------------------------------------------- */

/* NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
static bool find_and_compare(const peg_json *a, const peg_json *b)
{
    PEG_JSON_EACH_MEMBER (a, key) {
        const peg_json *found = peg_json_get_str(b, peg_json_str(key));

        if (!found || !peg_json_equal(key + 1, found))
            return false;
    }
    return true;
}

static const peg_json **collect_keys(const peg_json *object, const peg_json **to)
{
    PEG_JSON_EACH_MEMBER (object, key)
        *to++ = key;
    return to;
}

/* NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
static bool compare_sorted(const peg_json **a, const peg_json **b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same_key(a[i], b[i]))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!peg_json_equal(a[i] + 1, b[i] + 1))
            return false;
    return true;
}

/* Requires as many members in both. Without memory to sort in, the slow way is right too.
 * NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
static bool equal_unordered(const peg_json *a, const peg_json *b)
{
    const size_t n = a->len;
    const peg_json **keys;
    bool equal;

    if (n <= FEW_MEMBERS)
        return find_and_compare(a, b);
    keys = peg__alloc(3 * n * sizeof(*keys));
    if (!keys)
        return find_and_compare(a, b);
    collect_keys(b, collect_keys(a, keys));
    peg__keys_sort(keys, keys + 2 * n, n, peg__key_order_quick);
    peg__keys_sort(keys + n, keys + 2 * n, n, peg__key_order_quick);
    equal = compare_sorted(keys, keys + n, n);
    peg__free(keys);
    return equal;
}

/* ---- side by side ----------------------------------------------------------------------- */

static bool keys_stand_alike(const peg_json *a, const peg_json *b)
{
    const peg_json *other = b + 1;

    PEG_JSON_EACH_MEMBER (a, key) {
        if (!same_key(key, other))
            return false;
        other = peg_json_next(other + 1);
    }
    return true;
}

/* Two values, of containers only the head. */
static bool heads_equal(const peg_json *a, const peg_json *b)
{
    if (peg_json_is_number(a))
        return peg_json_is_number(b) && peg_json_compare_numbers(a, b) == 0;
    if (a->kind != b->kind)
        return false;
    switch (peg_json_kind_of(a)) {
    case PEG_JSON_BOOL:
        return a->u.truth == b->u.truth;
    case PEG_JSON_STRING:
        return same_key(a, b);
    case PEG_JSON_ARRAY:
    case PEG_JSON_OBJECT:
        /* Equal containers take equally many values, in whatever order. */
        return a->len == b->len && a->u.extent == b->u.extent;
    default:
        return true;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
bool peg_json_equal(const peg_json *a, const peg_json *b)
{
    const peg_json *end;

    a = peg__json_or_null(a);
    b = peg__json_or_null(b);
    end = peg_json_next(a);
    while (a < end) {
        if (!heads_equal(a, b))
            return false;
        if (a->kind == PEG_JSON_OBJECT && !keys_stand_alike(a, b)) {
            if (!equal_unordered(a, b))
                return false;
            a = peg_json_next(a);
            b = peg_json_next(b);
        } else {
            a++;
            b++;
        }
    }
    return true;
}

/* ---- hashes ------------------------------------------------------------------------------- */

/* Keeps the hash of "" apart from that of [], and so on. */
static uint64_t kind_seed(peg_json_kind kind, uint64_t seed)
{
    return seed + (uint64_t)kind * 0x9E3779B97F4A7C15u;
}

/* NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
static uint64_t hash_array(const peg_json *array, uint64_t seed)
{
    uint64_t h = array->len;

    PEG_JSON_EACH_ITEM (array, item)
        h = peg__hash_two(h, peg_json_hash(item, seed), seed);
    return peg__hash_two(h, array->len, kind_seed(PEG_JSON_ARRAY, seed));
}

/* A sum, so that the order of members does not matter.
 * NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
static uint64_t hash_object(const peg_json *object, uint64_t seed)
{
    uint64_t sum = 0;

    PEG_JSON_EACH_MEMBER (object, key)
        sum += peg__hash_two(peg__hash_bytes(peg_json_str(key), seed), peg_json_hash(key + 1, seed),
                             seed);
    return peg__hash_two(sum, object->len, kind_seed(PEG_JSON_OBJECT, seed));
}

/* NOLINTNEXTLINE(misc-no-recursion): once a level of nesting, of which there are at most 4096. */
uint64_t peg_json_hash(const peg_json *value, uint64_t seed)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        return peg__number_hash(value, seed);
    case PEG_JSON_STRING:
        return peg__hash_bytes(peg_json_str(value), kind_seed(PEG_JSON_STRING, seed));
    case PEG_JSON_ARRAY:
        return hash_array(value, seed);
    case PEG_JSON_OBJECT:
        return hash_object(value, seed);
    case PEG_JSON_BOOL:
        return peg__hash_two(value->u.truth, 0, kind_seed(PEG_JSON_BOOL, seed));
    case PEG_JSON_NULL:
        break;
    }
    return peg__hash_two(1, 1, ~seed);
}
