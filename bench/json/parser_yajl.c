/* SPDX-License-Identifier: Apache-2.0 */

/* yajl by its events, which is how it is meant to be used and faster than its tree: the values
 * are visited as they are read, and nothing is kept. */

#include <yajl/yajl_parse.h>

#include "bench.h"

static int on_null(void *user)
{
    struct bench_tally *tally = user;

    tally->values++;
    return 1;
}

static int on_boolean(void *user, int truth)
{
    struct bench_tally *tally = user;

    tally->values++;
    tally->truths += truth != 0;
    return 1;
}

static int on_integer(void *user, long long number)
{
    struct bench_tally *tally = user;

    tally->values++;
    tally->numbers += (double)number;
    return 1;
}

static int on_double(void *user, double number)
{
    struct bench_tally *tally = user;

    tally->values++;
    tally->numbers += number;
    return 1;
}

static int on_string(void *user, const unsigned char *text, size_t len)
{
    struct bench_tally *tally = user;

    (void)text;
    tally->values++;
    tally->string_bytes += len;
    return 1;
}

static int on_key(void *user, const unsigned char *text, size_t len)
{
    struct bench_tally *tally = user;

    (void)text;
    tally->string_bytes += len;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_integer = on_integer,
    .yajl_double = on_double,
    .yajl_string = on_string,
    .yajl_map_key = on_key,
    .yajl_start_map = on_null,
    .yajl_start_array = on_null,
};

static bool run(void *state, const char *text, size_t len, struct bench_tally *tally)
{
    yajl_handle handle = yajl_alloc(&callbacks, NULL, tally);
    bool fine;

    (void)state;
    if (!handle)
        return false;
    fine = yajl_parse(handle, (const unsigned char *)text, len) == yajl_status_ok &&
           yajl_complete_parse(handle) == yajl_status_ok;
    yajl_free(handle);
    return fine;
}

const struct bench_parser bench_yajl = {.name = "yajl (events)", .run = run};
