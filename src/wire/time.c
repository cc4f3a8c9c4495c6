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

static unsigned day_of_date(struct date date)
{
    const unsigned year = date.month <= 2 ? date.year - 1 : date.year;
    const unsigned march = date.month > 2 ? date.month - 3 : date.month + 9;
    const unsigned in_era = year % 400;

    return year / 400 * DAYS_IN_ERA + in_era * 365 + in_era / 4 - in_era / 100 +
           (153 * march + 2) / 5 + date.day - 1 - DAYS_BEFORE_1970;
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

/* ---- reading -------------------------------------------------------------------------------- */

/* So many digits, then a sign of its place ('\0': none). */
static bool take_number(peg_str *rest, unsigned n_digits, const char *signs, unsigned *ret_number)
{
    unsigned number = 0;

    if (rest->len < n_digits + (signs[0] != '\0'))
        return false;
    for (unsigned i = 0; i < n_digits; i++) {
        if (rest->ptr[i] < '0' || rest->ptr[i] > '9')
            return false;
        number = number * 10 + (unsigned)(rest->ptr[i] - '0');
    }
    if (signs[0] && (rest->ptr[n_digits] == '\0' || !strchr(signs, rest->ptr[n_digits])))
        return false;
    *rest = peg__str_from(*rest, n_digits + (signs[0] != '\0'));
    *ret_number = number;
    return true;
}

static bool is_date(struct date date)
{
    const struct date again = date.year >= 1970 && date.month >= 1 && date.month <= 12
                                  ? date_of_day(day_of_date(date))
                                  : (struct date){0};

    return again.year == date.year && again.month == date.month && again.day == date.day;
}

/* ".125": thousandths; further digits are read and left out. */
static bool take_fraction(peg_str *rest, unsigned *ret_ms)
{
    unsigned scale = 100;
    size_t n = 1;

    *ret_ms = 0;
    if (!rest->len || rest->ptr[0] != '.')
        return true;
    for (; n < rest->len && rest->ptr[n] >= '0' && rest->ptr[n] <= '9'; n++) {
        *ret_ms += scale * (unsigned)(rest->ptr[n] - '0');
        scale /= 10;
    }
    *rest = peg__str_from(*rest, n);
    return n > 1;
}

static bool take_offset(peg_str *rest, int64_t *ret_offset_s)
{
    unsigned hours;
    unsigned minutes;
    bool is_west;

    if (!rest->len)
        return false;
    if (rest->len == 1 && (rest->ptr[0] == 'Z' || rest->ptr[0] == 'z')) {
        *ret_offset_s = 0;
        return true;
    }
    is_west = rest->ptr[0] == '-';
    if (!is_west && rest->ptr[0] != '+')
        return false;
    *rest = peg__str_from(*rest, 1);
    if (!take_number(rest, 2, ":", &hours) || !take_number(rest, 2, "", &minutes) || rest->len ||
        hours > 23 || minutes > 59)
        return false;
    *ret_offset_s = (is_west ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

bool wire_time_parse(peg_str text, int64_t *ret_unix_ms)
{
    peg_str rest = text;
    struct date date;
    unsigned hour;
    unsigned minute;
    unsigned second;
    unsigned ms;
    int64_t offset_s;
    int64_t s;

    if (!take_number(&rest, 4, "-", &date.year) || !take_number(&rest, 2, "-", &date.month) ||
        !take_number(&rest, 2, "Tt ", &date.day) || !is_date(date))
        return false;
    if (!take_number(&rest, 2, ":", &hour) || !take_number(&rest, 2, ":", &minute) ||
        !take_number(&rest, 2, "", &second) || !take_fraction(&rest, &ms) ||
        !take_offset(&rest, &offset_s))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    s = (int64_t)day_of_date(date) * S_PER_DAY - offset_s;
    s += (int64_t)hour * 3600 + (int64_t)minute * 60 + second;
    *ret_unix_ms = s * MS_PER_S + ms;
    return true;
}
