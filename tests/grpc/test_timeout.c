/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"
#include "base/text/str.h"
#include "grpc/status.h"

#define S 1000000000LL
#define MIN (60 * S)

static int64_t parsed(const char *text)
{
    int64_t ns = -2;

    CHECK(grpc_timeout_parse(peg__str(text), &ns));
    return ns;
}

static bool is_refused(const char *text)
{
    int64_t ns = -2;
    const bool is_one = grpc_timeout_parse(peg__str(text), &ns);

    CHECK(is_one || ns == -2);
    return !is_one;
}

#define CHECK_FORMATTED(ns, expected)                                                              \
    do {                                                                                           \
        char text[GRPC_TIMEOUT_TEXT];                                                              \
        const size_t len = grpc_timeout_format((ns), text);                                        \
        CHECK_STR(peg__strn(text, len), expected);                                                 \
    } while (0)

TEST(every_unit_is_read)
{
    CHECK_INT(parsed("1n"), 1);
    CHECK_INT(parsed("2u"), 2000);
    CHECK_INT(parsed("3m"), 3000000);
    CHECK_INT(parsed("4S"), 4 * S);
    CHECK_INT(parsed("5M"), 300 * S);
    CHECK_INT(parsed("6H"), 21600 * S);
}

TEST(eight_digits_and_leading_zeros_are_read)
{
    CHECK_INT(parsed("99999999n"), 99999999);
    CHECK_INT(parsed("00000001S"), S);
    CHECK_INT(parsed("0n"), 0);
}

TEST(a_time_that_is_too_long_is_the_longest)
{
    CHECK_INT(parsed("99999999H"), INT64_MAX);
    CHECK_INT(parsed("2562048H"), INT64_MAX);
    CHECK(parsed("2562047H") < INT64_MAX);
    CHECK_INT(parsed("99999999M"), 99999999 * MIN);
}

TEST(what_is_no_timeout_is_refused)
{
    static const char *const others[] = {"",     "1",   "n",    "S",   "100000000n", "1s",
                                         "1h",   "-1S", "+1S",  " 1S", "1S ",        "1 S",
                                         "1.5S", "1SS", "0x1S", "1ms", "\xC2\xB2S"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!is_refused(others[i]))
            T_FAIL("'%s' is taken", others[i]);
    CHECK(!grpc_timeout_parse((peg_str){NULL, 0}, &(int64_t){0}));
}

TEST(a_timeout_is_written_in_the_finest_unit_with_eight_digits)
{
    CHECK_FORMATTED(1, "1n");
    CHECK_FORMATTED(99999999, "99999999n");
    CHECK_FORMATTED(100000000, "100000u");
    CHECK_FORMATTED(S, "1000000u");
    CHECK_FORMATTED(100 * S, "100000m");
    CHECK_FORMATTED(1000000 * S, "1000000S");
    CHECK_FORMATTED(99999999 * MIN, "99999999M");
    CHECK_FORMATTED(100000000 * MIN, "1666667H");
}

TEST(a_timeout_is_rounded_up)
{
    CHECK_FORMATTED(100000001, "100001u");
    CHECK_FORMATTED(99999999 * 1000LL, "99999999u");
    CHECK_FORMATTED(99999999 * 1000LL + 1, "100000m");
    CHECK_FORMATTED(INT64_MAX, "2562048H");
}

TEST(a_time_that_is_over_is_one_nanosecond)
{
    CHECK_FORMATTED(0, "1n");
    CHECK_FORMATTED(-1, "1n");
    CHECK_FORMATTED(INT64_MIN, "1n");
}

TEST(what_is_written_is_read_as_no_less_and_at_most_a_little_more)
{
    for (int64_t ns = 1; ns < INT64_MAX / 3; ns = ns * 3 - ns / 7) {
        char text[GRPC_TIMEOUT_TEXT];
        const size_t len = grpc_timeout_format(ns, text);
        int64_t again;

        CHECK(len <= 9);
        CHECK(grpc_timeout_parse(peg__strn(text, len), &again));
        CHECK(again >= ns);
        CHECK(again - ns <= ns / 100000 + 3600 * S * (ns > 99999999 * MIN));
    }
}
