/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <cjson/cJSON.h>

#include "bench.h"

/* Recursion is bounded by cJSON's own nesting limit. Strings are NUL-terminated and nothing
 * else: their length can only be counted. */
static void walk(const cJSON *value, struct bench_tally *tally) /* NOLINT(misc-no-recursion) */
{
    tally->values++;
    switch (value->type & 0xff) {
    case cJSON_String:
        tally->string_bytes += strlen(value->valuestring);
        break;
    case cJSON_Number:
        tally->numbers += value->valuedouble;
        break;
    case cJSON_True:
        tally->truths++;
        break;
    case cJSON_Array:
        for (const cJSON *item = value->child; item; item = item->next)
            walk(item, tally);
        break;
    case cJSON_Object:
        for (const cJSON *item = value->child; item; item = item->next) {
            tally->string_bytes += strlen(item->string);
            walk(item, tally);
        }
        break;
    default:
        break;
    }
}

static bool run(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    cJSON *root = cJSON_ParseWithLength(text, len);

    (void)state;
    if (!root)
        return false;
    walk(root, tally);
    cJSON_Delete(root);
    return true;
}

static void *keep(const char *text, size_t len)
{
    return cJSON_ParseWithLength(text, len);
}

static void drop(void *root)
{
    cJSON_Delete(root);
}

const struct bench_parser bench_cjson = {.name = "cJSON", .run = run, .keep = keep, .drop = drop};
