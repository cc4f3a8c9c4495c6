/* SPDX-License-Identifier: Apache-2.0 */

/*
 * yyjson, twice: with memory of its own that is used again for every text, and with malloc().
 * bench/json/gather.py compiles this together with yyjson.c into a library that json-bench loads
 * (--peer): Debian 12 has no package of it.
 */

#include <stdlib.h>

#include <yyjson.h>

#include "bench.h"

static void walk_scalar(yyjson_val *value, struct bench_tally *tally)
{
    if (yyjson_is_str(value))
        tally->string_bytes += yyjson_get_len(value);
    else if (yyjson_is_num(value))
        tally->numbers += yyjson_get_num(value);
    else
        tally->truths += yyjson_is_true(value);
}

/* Recursion is bounded by the depth of the bench's texts. */
static void walk(yyjson_val *value, struct bench_tally *tally) /* NOLINT(misc-no-recursion) */
{
    size_t i;
    size_t n;
    yyjson_val *key;
    yyjson_val *child;

    tally->values++;
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_ARR:
        yyjson_arr_foreach(value, i, n, child) walk(child, tally);
        break;
    case YYJSON_TYPE_OBJ:
        yyjson_obj_foreach(value, i, n, key, child)
        {
            tally->string_bytes += yyjson_get_len(key);
            walk(child, tally);
        }
        break;
    default:
        walk_scalar(value, tally);
    }
}

static bool read_with(const yyjson_alc *memory, const char *text, size_t len,
                      struct bench_tally *tally)
{
    /* Without YYJSON_READ_INSITU the text is only read. */
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text, len, 0, memory, NULL);

    if (!doc)
        return false;
    walk(yyjson_doc_get_root(doc), tally);
    yyjson_doc_free(doc);
    return true;
}

static void *open_memory(void)
{
    return yyjson_alc_dyn_new();
}

static bool run_reused(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    return state && read_with(state, text, len, tally);
}

static void close_memory(void *state)
{
    yyjson_alc_dyn_free(state);
}

static bool run_fresh(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    (void)state;
    return read_with(NULL, text, len, tally);
}

static void *keep(const char *text, size_t len)
{
    return yyjson_read(text, len, 0);
}

static void drop(void *doc)
{
    yyjson_doc_free(doc);
}

static const struct bench_parser reused = {
    .name = "yyjson", .open = open_memory, .run = run_reused, .close = close_memory};
static const struct bench_parser fresh = {
    .name = "yyjson, new document", .run = run_fresh, .keep = keep, .drop = drop};

const struct bench_parser *const bench_peers[] = {&reused, &fresh, NULL};
