/* SPDX-License-Identifier: Apache-2.0 */

/* Durations as Go writes them. */

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/tool_config.h"

static const struct {
    peg_str name;
    int64_t ns;
} units[] = {
    /* "ms" before "m": the first that fits counts. */
    {PEG_LIT("ns"), 1},           {PEG_LIT("us"), 1000},
    {PEG_LIT("\xC2\xB5s"), 1000}, /* micro sign */
    {PEG_LIT("\xCE\xBCs"), 1000}, /* Greek letter mu */
    {PEG_LIT("ms"), 1000000},     {PEG_LIT("s"), 1000000000},
    {PEG_LIT("m"), 60000000000},  {PEG_LIT("h"), 3600000000000},
};

enum { N_UNITS = sizeof(units) / sizeof(units[0]) };

static peg_status refuse(peg_str text, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EPARSE, "E_DURATION",
                     "'%.*s' is no duration: write numbers with units, such as 30s, 1m30s or 100ms",
                     (int)(text.len < 40 ? text.len : 40), text.ptr);
}

static peg_str skip(peg_str s, size_t n)
{
    return peg__str_from(s, n);
}

/* The digits at the start of *rest as a whole number. False beyond 18 of them. */
static bool take_digits(peg_str *rest, int64_t *ret_number, int64_t *ret_scale)
{
    size_t n = 0;

    *ret_number = 0;
    *ret_scale = 1;
    while (n < rest->len && rest->ptr[n] >= '0' && rest->ptr[n] <= '9') {
        if (n == 18)
            return false;
        *ret_number = *ret_number * 10 + (rest->ptr[n] - '0');
        *ret_scale *= 10;
        n++;
    }
    *rest = skip(*rest, n);
    return true;
}

static bool take_unit(peg_str *rest, int64_t *ret_ns)
{
    for (size_t i = 0; i < N_UNITS; i++) {
        if (!peg__str_starts(*rest, units[i].name))
            continue;
        *rest = skip(*rest, units[i].name.len);
        *ret_ns = units[i].ns;
        return true;
    }
    return false;
}

/* One number with its unit, added to *total. */
static bool take_term(peg_str *rest, int64_t *total)
{
    const size_t before = rest->len;
    int64_t whole;
    int64_t part = 0;
    int64_t scale;
    int64_t unit;
    int64_t ns;
    bool has_digits;

    if (!take_digits(rest, &whole, &scale))
        return false;
    has_digits = rest->len < before;
    scale = 1;
    if (rest->len && rest->ptr[0] == '.') {
        const size_t at = rest->len - 1;

        *rest = skip(*rest, 1);
        if (!take_digits(rest, &part, &scale))
            return false;
        has_digits = has_digits || rest->len < at;
    }
    if (!has_digits || !take_unit(rest, &unit) || __builtin_mul_overflow(whole, unit, &ns))
        return false;
    /* A fraction of an hour fits a double exactly enough: below a nanosecond. */
    return !__builtin_add_overflow(ns, (int64_t)((double)part / (double)scale * (double)unit + 0.5),
                                   &ns) &&
           !__builtin_add_overflow(*total, ns, total);
}

peg_status peg_duration_parse(peg_str text, int64_t *ret_ns, peg_error *reterr)
{
    peg_str rest = text;
    int64_t total = 0;
    bool is_negative = false;

    if (rest.len && (rest.ptr[0] == '-' || rest.ptr[0] == '+')) {
        is_negative = rest.ptr[0] == '-';
        rest = skip(rest, 1);
    }
    if (peg__str_is(rest, "0")) {
        *ret_ns = 0;
        return PEG_OK;
    }
    if (!rest.len)
        return refuse(text, reterr);
    while (rest.len) {
        if (!take_term(&rest, &total))
            return refuse(text, reterr);
    }
    *ret_ns = is_negative ? -total : total;
    return PEG_OK;
}

/* A number of nanoseconds as a decimal of a unit: no zeros at its end. */
static void put_decimal(uint64_t ns, uint64_t unit, const char *name, char *out, size_t size)
{
    char digits[24];
    uint64_t rest = ns % unit;
    int n = 0;

    if (!rest) {
        snprintf(out, size, "%" PRIu64 "%s", ns / unit, name);
        return;
    }
    for (uint64_t scale = unit / 10; rest; scale /= 10) {
        digits[n++] = (char)('0' + rest / scale);
        rest %= scale;
    }
    snprintf(out, size, "%" PRIu64 ".%.*s%s", ns / unit, n, digits, name);
}

void peg_duration_text(int64_t ns, char ret_text[PEG_DURATION_TEXT])
{
    const char *sign = ns < 0 ? "-" : "";
    const uint64_t all = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    const uint64_t hours = all / 3600000000000;
    const uint64_t minutes = all / 60000000000 % 60;
    char seconds[40];

    if (!all)
        snprintf(seconds, sizeof(seconds), "0s");
    else if (all < 1000)
        put_decimal(all, 1, "ns", seconds, sizeof(seconds));
    else if (all < 1000000)
        put_decimal(all, 1000, "us", seconds, sizeof(seconds));
    else if (all < 1000000000)
        put_decimal(all, 1000000, "ms", seconds, sizeof(seconds));
    else
        put_decimal(all % 60000000000, 1000000000, "s", seconds, sizeof(seconds));
    if (hours)
        snprintf(ret_text, PEG_DURATION_TEXT, "%s%" PRIu64 "h%" PRIu64 "m%s", sign, hours, minutes,
                 seconds);
    else if (minutes)
        snprintf(ret_text, PEG_DURATION_TEXT, "%s%" PRIu64 "m%s", sign, minutes, seconds);
    else
        snprintf(ret_text, PEG_DURATION_TEXT, "%s%s", sign, seconds);
}
