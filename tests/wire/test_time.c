/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <time.h>

#include "wire/wire.h"

#include "base/text/str.h"

static const char *printed(int64_t ms)
{
    static char text[WIRE_TIME_TEXT];

    wire_time_print(ms, text);
    return text;
}

TEST(moments_are_printed_in_utc_by_the_second)
{
    CHECK_STR(peg__str(printed(0)), "1970-01-01T00:00:00Z");
    CHECK_STR(peg__str(printed(951782399999)), "2000-02-28T23:59:59Z");
    CHECK_STR(peg__str(printed(951782400000)), "2000-02-29T00:00:00Z");
    CHECK_STR(peg__str(printed(1771752600125)), "2026-02-22T09:30:00Z");
    CHECK_STR(peg__str(printed(253402300799999)), "9999-12-31T23:59:59Z");
}

TEST(moments_are_printed_by_the_millisecond_for_logs)
{
    char text[WIRE_TIME_TEXT];

    wire_time_print_ms(1771752600125, text);
    CHECK_STR(peg__str(text), "2026-02-22T09:30:00.125Z");
    wire_time_print_ms(1771752600000, text);
    CHECK_STR(peg__str(text), "2026-02-22T09:30:00.000Z");
}

TEST(moments_out_of_range_become_the_nearest)
{
    CHECK_STR(peg__str(printed(-1)), "1970-01-01T00:00:00Z");
    CHECK_STR(peg__str(printed(INT64_MIN)), "1970-01-01T00:00:00Z");
    CHECK_STR(peg__str(printed(INT64_MAX)), "9999-12-31T23:59:59Z");
}

/* Every few days of four hundred years, against the C library. */
TEST(moments_agree_with_the_c_library)
{
    for (int64_t s = 0; s < INT64_C(13000000000); s += 86400 * 3 + 12345) {
        const time_t then = (time_t)s;
        struct tm tm;
        char expected[WIRE_TIME_TEXT];

        gmtime_r(&then, &tm);
        strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%SZ", &tm);
        CHECK_STR(peg__str(printed(s * 1000)), expected);
    }
}
