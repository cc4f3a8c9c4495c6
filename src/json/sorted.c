/* SPDX-License-Identifier: Apache-2.0 */

/* Most values are sorted already, because they come from files that we wrote: they are copied in
 * one piece. */

#include "json/sorted.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

int peg__json_compare_names(peg_str a, peg_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;

    if (order)
        return order < 0 ? -1 : 1;
    return (a.len > b.len) - (a.len < b.len);
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

static bool is_object_sorted(const peg_json *object)
{
    const peg_json *before = NULL;

    PEG_JSON_EACH_MEMBER (object, key) {
        if (before && peg__json_compare_names(peg_json_str(before), peg_json_str(key)) > 0)
            return false;
        before = key;
    }
    return true;
}

static bool is_sorted(const peg_json *value)
{
    const peg_json *const end = peg_json_next(value);

    for (const peg_json *at = value; at < end; at++)
        if (at->kind == PEG_JSON_OBJECT && !is_object_sorted(at))
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const peg_json *const *left = a;
    const peg_json *const *right = b;

    return peg__json_compare_names(peg_json_str(*left), peg_json_str(*right));
}

static bool add(peg_json_builder *b, const peg_json *value);

// NOLINTNEXTLINE(misc-no-recursion): as deep as the value, which was measured
static bool add_object(peg_json_builder *b, const peg_json *object)
{
    const size_t n = peg_json_len(object);
    PEG_CLEANUP(peg__freep) const peg_json **keys = peg__alloc_zero(n, sizeof(const peg_json *));
    size_t i = 0;

    if (!keys)
        return false;
    PEG_JSON_EACH_MEMBER (object, key)
        keys[i++] = key;
    qsort(keys, n, sizeof(const peg_json *), by_name);
    peg_json_open_object(b);
    for (i = 0; i < n; i++) {
        peg_json_add_key(b, peg_json_str(keys[i]));
        if (!add(b, keys[i] + 1))
            return false;
    }
    peg_json_close(b);
    return true;
}

/* False when out of memory. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the value, which was measured
static bool add(peg_json_builder *b, const peg_json *value)
{
    if (is_sorted(value)) {
        peg_json_add_copy(b, value);
        return true;
    }
    if (value->kind == PEG_JSON_OBJECT)
        return add_object(b, value);
    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (value, item) {
        if (!add(b, item))
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
                         "the value nests deeper than %d (PEG_LIMIT_JSON_DEPTH); make it flatter",
                         PEG_LIMIT_JSON_DEPTH);
    return add(b, value) ? PEG_OK : peg__fail_nomem(reterr);
}
