/* SPDX-License-Identifier: Apache-2.0 */

/* date, time and date-time of RFC 3339 section 5.6, duration of its appendix A. */

#include "schema/format/format.h"

enum {
    DATE_LEN = 10,  /* 2024-02-29 */
    CLOCK_LEN = 8,  /* 23:59:59 */
    OFFSET_LEN = 6, /* +01:00 */
    MINUTES_A_DAY = 24 * 60,
    NOT_TWO_DIGITS = 100, /* larger than any field may be */
};

static inline unsigned two_digits(const char *p)
{
    const unsigned tens = (unsigned)(unsigned char)p[0] - '0';
    const unsigned ones = (unsigned)(unsigned char)p[1] - '0';

    return tens <= 9 && ones <= 9 ? tens * 10 + ones : NOT_TWO_DIGITS;
}

static unsigned days_in_month(unsigned century, unsigned year_of_century, unsigned month)
{
    static const unsigned char days[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const unsigned decisive = year_of_century ? year_of_century : century;

    return days[month] + (month == 2 && decisive % 4 == 0);
}

/* Reads DATE_LEN bytes. */
static bool starts_with_date(const char *p)
{
    const unsigned century = two_digits(p);
    const unsigned year_of_century = two_digits(p + 2);
    const unsigned month = two_digits(p + 5);
    const unsigned day = two_digits(p + 8);

    if (century > 99 || year_of_century > 99 || p[4] != '-' || p[7] != '-')
        return false;
    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days_in_month(century, year_of_century, month);
}

/* The minutes that local time is ahead of UTC. */
static bool parse_offset(const char *p, size_t len, int *ret_minutes)
{
    unsigned hours;
    unsigned minutes;

    if (len == 1 && (*p == 'Z' || *p == 'z')) {
        *ret_minutes = 0;
        return true;
    }
    if (len != OFFSET_LEN || (*p != '+' && *p != '-') || p[3] != ':')
        return false;

    hours = two_digits(p + 1);
    minutes = two_digits(p + 4);
    if (hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (int)(hours * 60 + minutes) * (*p == '-' ? -1 : 1);
    return true;
}

static bool is_time(const char *p, size_t len)
{
    const char *end;
    unsigned hour;
    unsigned minute;
    unsigned second;
    int offset;

    if (len <= CLOCK_LEN || p[2] != ':' || p[5] != ':')
        return false;
    hour = two_digits(p);
    minute = two_digits(p + 3);
    second = two_digits(p + 6);
    if (hour > 23 || minute > 59 || second > 60)
        return false;

    end = p + len;
    p += CLOCK_LEN;
    if (*p == '.') {
        const char *const fraction = ++p;

        p = peg__skip_class(p, end, PEG__DIGIT);
        if (p == fraction || p == end)
            return false;
    }
    if (!parse_offset(p, (size_t)(end - p), &offset))
        return false;

    /* A leap second is inserted at midnight UTC, everywhere at the same moment. */
    return second < 60 || ((int)(hour * 60 + minute) - offset + MINUTES_A_DAY) % MINUTES_A_DAY ==
                              MINUTES_A_DAY - 1;
}

bool peg__format_date(peg_str s)
{
    return s.len == DATE_LEN && starts_with_date(s.ptr);
}

bool peg__format_time(peg_str s)
{
    return is_time(s.ptr, s.len);
}

bool peg__format_date_time(peg_str s)
{
    if (s.len <= DATE_LEN || (s.ptr[DATE_LEN] != 'T' && s.ptr[DATE_LEN] != 't'))
        return false;
    return starts_with_date(s.ptr) && is_time(s.ptr + DATE_LEN + 1, s.len - DATE_LEN - 1);
}

/* Amounts with the given units, in their order and without a gap: 1H2M but not 1H2S. At
 * least one; *p is left behind the last. */
static bool skip_amounts(const char **p, const char *end, const char units[3])
{
    int previous = -1;

    while (*p < end && peg__byte_is(**p, PEG__DIGIT)) {
        int unit = previous < 0 ? 0 : previous + 1;

        *p = peg__skip_class(*p, end, PEG__DIGIT);
        if (*p == end)
            return false;
        if (previous < 0)
            while (unit < 3 && units[unit] != **p)
                unit++;
        if (unit >= 3 || units[unit] != **p)
            return false;
        previous = unit;
        ++*p;
    }
    return previous >= 0;
}

bool peg__format_duration(peg_str s)
{
    const char *p;
    const char *end;

    if (s.len < 3 || s.ptr[0] != 'P')
        return false;

    p = s.ptr + 1;
    end = s.ptr + s.len;
    if (end[-1] == 'W')
        return peg__skip_class(p, end, PEG__DIGIT) == end - 1;
    if (*p != 'T' && !skip_amounts(&p, end, "YMD"))
        return false;
    if (p == end)
        return true;
    if (*p++ != 'T')
        return false;
    return skip_amounts(&p, end, "HMS") && p == end;
}
