/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/wire.h"

#include "base/text/str.h"

/* Days are counted in years that begin with March, so that the day which comes and goes is the
 * last one: 146,097 days in 400 years, whose first day is 719,468 days before 1970. */
enum {
    DAYS_BEFORE_1970 = 719468,
    DAYS_IN_ERA = 146097,
    MS_PER_S = 1000,
    S_PER_DAY = 86400,
};
/* 9999-12-31T23:59:59.999Z */
static const int64_t last_ms = INT64_C(253402300799999);

struct date {
    unsigned year;
    unsigned month;
    unsigned day;
};

static struct date date_of_day(unsigned days_since_1970)
{
    const unsigned all = days_since_1970 + DAYS_BEFORE_1970;
    const unsigned era = all / DAYS_IN_ERA;
    const unsigned in_era = all % DAYS_IN_ERA;
    const unsigned year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const unsigned in_year = in_era - (365 * year + year / 4 - year / 100);
    const unsigned march = (5 * in_year + 2) / 153; /* 0: March */

    return (struct date){
        .year = era * 400 + year + (march >= 10),
        .month = march < 10 ? march + 3 : march - 9,
        .day = in_year - (153 * march + 2) / 5 + 1,
    };
}

/* By hand: a page of a catalog has a thousand dates, and snprintf() takes most of a microsecond. */
static char *put_digits(char *at, unsigned number, unsigned n_digits, char sign)
{
    for (unsigned i = n_digits; i > 0; number /= 10)
        at[--i] = (char)('0' + number % 10);
    at[n_digits] = sign;
    return at + n_digits + 1;
}

static void print(int64_t unix_ms, bool with_ms, char ret_text[WIRE_TIME_TEXT])
{
    const int64_t ms = unix_ms < 0 ? 0 : unix_ms > last_ms ? last_ms : unix_ms;
    const int64_t s = ms / MS_PER_S;
    const unsigned in_day = (unsigned)(s % S_PER_DAY);
    const struct date date = date_of_day((unsigned)(s / S_PER_DAY));
    char *at = put_digits(ret_text, date.year, 4, '-');

    at = put_digits(at, date.month, 2, '-');
    at = put_digits(at, date.day, 2, 'T');
    at = put_digits(at, in_day / 3600, 2, ':');
    at = put_digits(at, in_day / 60 % 60, 2, ':');
    at = put_digits(at, in_day % 60, 2, with_ms ? '.' : 'Z');
    if (with_ms)
        at = put_digits(at, (unsigned)(ms % MS_PER_S), 3, 'Z');
    *at = '\0';
}

void wire_time_print(int64_t unix_ms, char ret_text[WIRE_TIME_TEXT])
{
    print(unix_ms, false, ret_text);
}

void wire_time_print_ms(int64_t unix_ms, char ret_text[WIRE_TIME_TEXT])
{
    print(unix_ms, true, ret_text);
}
