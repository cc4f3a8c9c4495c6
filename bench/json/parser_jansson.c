/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <jansson.h>

#include "bench.h"

/* Recursion is bounded by jansson's own depth limit. */
static void walk(json_t *value, struct bench_tally *tally) /* NOLINT(misc-no-recursion) */
{
    size_t index;
    const char *key;
    json_t *child;

    tally->values++;
    switch (json_typeof(value)) {
    case JSON_STRING:
        tally->string_bytes += json_string_length(value);
        break;
    case JSON_INTEGER:
        tally->numbers += (double)json_integer_value(value);
        break;
    case JSON_REAL:
        tally->numbers += json_real_value(value);
        break;
    case JSON_TRUE:
        tally->truths++;
        break;
    case JSON_ARRAY:
        json_array_foreach(value, index, child) walk(child, tally);
        break;
    case JSON_OBJECT:
        json_object_foreach(value, key, child)
        {
            tally->string_bytes += strlen(key); /* 2.14 doesn't tell the length */
            walk(child, tally);
        }
        break;
    case JSON_FALSE:
    case JSON_NULL:
        break;
    }
}

static bool run(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    json_t *root = json_loadb(text, len, 0, NULL);

    (void)state;
    if (!root)
        return false;
    walk(root, tally);
    json_decref(root);
    return true;
}

static void *keep(const char *text, size_t len)
{
    return json_loadb(text, len, 0, NULL);
}

static void drop(void *root)
{
    json_decref(root);
}

const struct bench_parser bench_jansson = {
    .name = "jansson", .run = run, .keep = keep, .drop = drop};
