/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"

#include <locale.h>
#include <math.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "json/number/number.h"

/* ---- fixture ------------------------------------------------------------------ */

static enum peg__number_text try_read(const char *text, peg_json *ret)
{
    return peg__number_read(peg__str(text), PEG_LIMIT_NUMBER_DIGITS, PEG_LIMIT_NUMBER_EXPONENT,
                            ret);
}

static peg_json number(const char *text)
{
    peg_json value;

    if (try_read(text, &value) != PEG__NUMBER_OK)
        T_FAIL("%s is not read", text);
    return value;
}

static void check_syntax(const char *text)
{
    peg_json value;

    if (try_read(text, &value) != PEG__NUMBER_SYNTAX)
        T_FAIL("'%s' was taken for a number", text);
}

static void check_scaled(const char *text, int64_t mantissa, int exponent)
{
    const peg_json value = number(text);

    CHECK_INT(value.kind, PEG_JSON_DECIMAL);
    CHECK_INT(value.form, PEG_JSON_FORM_SCALED);
    CHECK_INT(value.u.number, mantissa);
    CHECK_INT(value.exponent, exponent);
}

static int compare(const char *a, const char *b)
{
    const peg_json x = number(a);
    const peg_json y = number(b);
    const int order = peg_json_compare_numbers(&x, &y);

    CHECK_INT(peg_json_compare_numbers(&y, &x), -order);
    return order;
}

static bool divides(const char *divisor, const char *value)
{
    const peg_json d = number(divisor);
    const peg_json v = number(value);

    return peg__number_is_multiple(&v, &d);
}

/* n times the same digit, then the rest; until the next call. */
static const char *long_text(char digit, size_t n, const char *rest)
{
    static char text[4096];

    memset(text, digit, n);
    snprintf(text + n, sizeof(text) - n, "%s", rest);
    return text;
}

/* ---- reading -------------------------------------------------------------------- */

TEST(read_keeps_what_fits_64_bits_as_an_integer)
{
    CHECK_INT(number("0").kind, PEG_JSON_INTEGER);
    CHECK_INT(number("-17").u.number, -17);
    CHECK_INT(number("9223372036854775807").u.number, INT64_MAX);
    CHECK_INT(number("-9223372036854775808").kind, PEG_JSON_INTEGER);
    CHECK_INT(number("-9223372036854775808").u.number, INT64_MIN);
    CHECK_INT(number("9223372036854775808").form, PEG_JSON_FORM_TEXT);
    CHECK_INT(number("-9223372036854775809").form, PEG_JSON_FORM_TEXT);
    CHECK_INT(number("18446744073709551617").form, PEG_JSON_FORM_TEXT);
}

TEST(read_keeps_every_digit_of_a_decimal)
{
    check_scaled("1.50", 150, -2);
    check_scaled("-0.001", -1, -3);
    check_scaled("1e3", 1, 3);
    check_scaled("15E+2", 15, 2);
    check_scaled("15.5e-2", 155, -3);
    check_scaled("0.0", 0, -1);
    check_scaled("0.123456789012345678", 123456789012345678, -18);
    check_scaled("1e0000000000000000000000005", 1, 5);
    CHECK_INT(number("0.1234567890123456789").form, PEG_JSON_FORM_TEXT);
    CHECK_STR(peg__strn(number("0.1234567890123456789").u.ptr, 21), "0.1234567890123456789");
    CHECK_INT(number("0.1234567890123456789").len, 21);
}

TEST(read_tells_minus_zero_apart)
{
    CHECK_INT(number("-0").form, PEG_JSON_FORM_MINUS0);
    CHECK_INT(number("-0.0").form, PEG_JSON_FORM_MINUS0);
    CHECK_INT(number("-0e5").form, PEG_JSON_FORM_MINUS0);
    CHECK_INT(number("-0").kind, PEG_JSON_DECIMAL);
    CHECK_INT(number("-0.0").u.number, 0);
}

TEST(read_refuses_what_is_no_json_number)
{
    static const char *const texts[] = {"",      "-",  "+1",  "01",  "-01",  "1.",   ".5",
                                        "1.e5",  "1e", "1e+", "1e-", "1ex",  "1x",   "0x10",
                                        "1 ",    " 1", "1,5", "NaN", "1..2", "1.2.", "1e5.",
                                        "1e5e5", "00", "-.5", "1-",  "--1",  "1e+-5"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        check_syntax(texts[i]);
}

TEST(read_limits_digits_that_count)
{
    peg_json value;

    CHECK_INT(try_read(long_text('9', 1000, ""), &value), PEG__NUMBER_OK);
    CHECK_INT(try_read(long_text('9', 1001, ""), &value), PEG__NUMBER_LIMIT);
    CHECK_INT(peg__number_read(peg__str("0.00000012345"), 5, 100, &value), PEG__NUMBER_OK);
    CHECK_INT(peg__number_read(peg__str("0.00000123456"), 5, 100, &value), PEG__NUMBER_LIMIT);
    /* The arithmetic has room for 1,000 digits: nobody can raise that. */
    CHECK_INT(peg__number_read(peg__str(long_text('9', 1001, "")), 5000, 10000, &value),
              PEG__NUMBER_LIMIT);
}

TEST(read_limits_the_exponent_of_the_first_digit_however_it_is_written)
{
    peg_json value;

    CHECK_INT(try_read("1e10000", &value), PEG__NUMBER_OK);
    CHECK_INT(try_read("1e-10000", &value), PEG__NUMBER_OK);
    CHECK_INT(try_read("1e10001", &value), PEG__NUMBER_LIMIT);
    CHECK_INT(try_read("1e-10001", &value), PEG__NUMBER_LIMIT);
    CHECK_INT(try_read("10e10000", &value), PEG__NUMBER_LIMIT);
    CHECK_INT(try_read("0.1e-10000", &value), PEG__NUMBER_LIMIT);
    CHECK_INT(try_read("0.1e10001", &value), PEG__NUMBER_OK);
    CHECK_INT(try_read("4.0e-10000", &value), PEG__NUMBER_OK);
    CHECK_INT(try_read("40e-10001", &value), PEG__NUMBER_OK); /* how 4.0e-10000 is written */
    CHECK_INT(try_read("0e10001", &value), PEG__NUMBER_LIMIT);
    CHECK_INT(try_read("1e99999999999999999999999999", &value), PEG__NUMBER_LIMIT);
    CHECK_INT(peg__number_read(peg__str("1e40000"), 1000, 50000, &value), PEG__NUMBER_OK);
    CHECK_INT(value.form, PEG_JSON_FORM_TEXT);
}

TEST(read_takes_linear_time_for_an_exponent_of_a_million_digits)
{
    enum { LEN = 1000000 };
    char *text = peg__alloc(LEN);
    peg_json value;

    CHECK(text);
    memset(text, '7', LEN);
    memcpy(text, "1e-", 3);
    CHECK_INT(peg__number_read(peg__strn(text, LEN), 1000, 10000, &value), PEG__NUMBER_LIMIT);
    memset(text + 1, '0', LEN - 1);
    memcpy(text, "0.", 2);
    CHECK_INT(peg__number_read(peg__strn(text, LEN), 1000, 10000, &value), PEG__NUMBER_OK);
    CHECK_INT(value.u.number, 0);
    peg__free(text);
}

/* ---- whole numbers ---------------------------------------------------------------- */

static void check_int64(const char *text, int64_t expected)
{
    const peg_json value = number(text);
    int64_t n = 4711;

    CHECK(peg_json_is_whole(&value));
    CHECK(peg_json_int64(&value, &n));
    CHECK_INT(n, expected);
}

static void check_no_int64(const char *text, bool is_whole)
{
    const peg_json value = number(text);
    int64_t n = 4711;

    CHECK_INT(peg_json_is_whole(&value), is_whole);
    CHECK(!peg_json_int64(&value, &n));
    CHECK_INT(n, 4711);
}

TEST(int64_takes_every_way_to_write_a_whole_number)
{
    check_int64("3", 3);
    check_int64("3.0", 3);
    check_int64("30e-1", 3);
    check_int64("0.3e1", 3);
    check_int64("-3.000000000000000000000000000", -3);
    check_int64("-0", 0);
    check_int64("0e-9999", 0);
    check_int64("1e18", 1000000000000000000);
    check_int64("9223372036854775807.0", INT64_MAX);
    check_int64("-9223372036854775808.0", INT64_MIN);
    check_int64("-922337203685477580.8e1", INT64_MIN);
}

TEST(int64_refuses_fractions_and_what_does_not_fit)
{
    check_no_int64("0.5", false);
    check_no_int64("1e-10000", false);
    check_no_int64("100000000000000000000.5", false);
    check_no_int64("1e19", true);
    check_no_int64("1e400", true);
    check_no_int64("9223372036854775808", true);
    check_no_int64("9223372036854775808.000", true);
    check_no_int64("-9223372036854775809", true);
}

TEST(whole_and_int64_are_false_for_what_is_no_number)
{
    const peg_json text = {.kind = PEG_JSON_STRING, .u.ptr = "3", .len = 1};
    int64_t n;

    CHECK(!peg_json_is_whole(&text));
    CHECK(!peg_json_int64(&text, &n));
}

/* ---- comparing ---------------------------------------------------------------------- */

TEST(compare_is_exact_where_a_double_is_not)
{
    CHECK_INT(compare("9007199254740993", "9007199254740992"), 1);
    CHECK_INT(compare("9007199254740993", "9007199254740992.9999"), 1);
    CHECK_INT(compare("0.1", "0.10000000000000000000000001"), -1);
    CHECK_INT(compare("1e400", "1e401"), -1);
    CHECK_INT(compare("-1e400", "-1e401"), 1);
    CHECK_INT(compare("1e-9999", "0"), 1);
    CHECK_INT(compare("-1e-9999", "0"), -1);
    CHECK_INT(compare("9223372036854775807", "9223372036854775808"), -1);
    CHECK_INT(compare("-9223372036854775808", "-9223372036854775809"), 1);
}

TEST(compare_sees_one_value_in_every_form)
{
    CHECK_INT(compare("1", "1.0"), 0);
    CHECK_INT(compare("1", "10e-1"), 0);
    CHECK_INT(compare("-0", "0"), 0);
    CHECK_INT(compare("-0.0", "0e10"), 0);
    CHECK_INT(compare("1e22", "10000000000000000000000"), 0);
    CHECK_INT(compare("1e22", "10000000000000000000000.000"), 0);
    CHECK_INT(compare("9223372036854775808", "9223372036854775808e0"), 0);
    CHECK_INT(compare("123.4567890123456789012345", "1234567890123456789012345e-22"), 0);
}

TEST(compare_orders_by_sign_then_size)
{
    CHECK_INT(compare("-1", "1e-5"), -1);
    CHECK_INT(compare("1e5", "99999"), 1);
    CHECK_INT(compare("1e19", "-9223372036854775808"), 1);
    CHECK_INT(compare("1e30", "-1"), 1);
    CHECK_INT(compare("1e30", "0"), 1);
    CHECK_INT(compare("0", "1e30"), -1);
    CHECK_INT(compare("123456789012345678901", "123456789012345678901.1"), -1);
    CHECK_INT(compare("-123456789012345678901", "123456789012345678901"), -1);
    CHECK_INT(compare("0", "123456789012345678901"), -1);
}

/* ---- multiples ------------------------------------------------------------------------ */

TEST(multiple_is_exact_for_decimals)
{
    CHECK(divides("0.01", "19.99"));
    CHECK(divides("0.0001", "0.0075"));
    CHECK(!divides("0.0001", "0.00751"));
    CHECK(divides("0.123456789", "1e308") == false);
    CHECK(divides("0.5", "1e308"));
    CHECK(divides("1e-8", "12391239123"));
    CHECK(divides("2.5", "1e10000"));
    CHECK(!divides("3", "1e10000"));
    CHECK(divides("1.5", "4.50"));
    CHECK(!divides("1e20", "10"));
    CHECK(divides("1e20", "1e21"));
}

TEST(multiple_takes_signs_zeros_and_the_least_integer)
{
    CHECK(divides("-1", "-9223372036854775808"));
    CHECK(divides("-9223372036854775808", "-9223372036854775808"));
    CHECK(divides("2", "-9223372036854775808"));
    CHECK(!divides("3", "-9223372036854775808"));
    CHECK(divides("7", "0"));
    CHECK(divides("7", "-0.0"));
    CHECK(divides("123456789012345678901234567890", "0"));
}

TEST(multiple_is_exact_beyond_64_bits)
{
    CHECK(divides("18446744073709551616", "340282366920938463463374607431768211456"));
    CHECK(!divides("18446744073709551616", "340282366920938463463374607431768211457"));
    CHECK(divides("7", "700000000000000000000000000000000007"));
    CHECK(!divides("7", "700000000000000000000000000000000008"));
    CHECK(divides("12345678901234567890.123", "12345678901234567890123e5"));
    CHECK(!divides("12345678901234567890.123", "12345678901234567890.1231"));
    CHECK(divides("340282366920938463463374607431768211456", "1e129"));
    CHECK(divides("340282366920938463463374607431768211456", "1e128"));
    CHECK(!divides("340282366920938463463374607431768211456", "1e127"));
}

TEST(multiple_holds_for_a_thousand_digits)
{
    char value[1024] = {0};

    /* 10^1000 - 1 = 9 * 111...1 */
    memset(value, '9', 1000);
    CHECK(divides(long_text('1', 1000, ""), value));
    CHECK(divides(long_text('1', 500, ""), value));
    CHECK(!divides(long_text('1', 999, ""), value));
    memcpy(value + 1000, "e9000", 5);
    CHECK(divides(long_text('1', 1000, "e-9000"), value));
    CHECK(!divides(long_text('1', 999, "e-9000"), value));
}

/* ---- hashing ---------------------------------------------------------------------------- */

static uint64_t hash(const char *text)
{
    const peg_json value = number(text);

    return peg__number_hash(&value, 7);
}

TEST(hash_is_the_same_for_one_value_in_every_form)
{
    CHECK(hash("1") == hash("1.0"));
    CHECK(hash("1") == hash("10e-1"));
    CHECK(hash("1") == hash("1.00000000000000000000000000000000"));
    CHECK(hash("-0") == hash("0"));
    CHECK(hash("0") == hash("0.000"));
    CHECK(hash("1e22") == hash("10000000000000000000000"));
    CHECK(hash("9223372036854775807") == hash("9223372036854775807.0"));
    CHECK(hash("-9223372036854775808") == hash("-922337203685477580.8e1"));
    CHECK(hash("123.4567890123456789012345") == hash("1234567890123456789012345e-22"));
}

TEST(hash_differs_for_different_values_and_seeds)
{
    const peg_json one = number("1");

    CHECK(hash("1") != hash("-1"));
    CHECK(hash("1") != hash("10"));
    CHECK(hash("100") != hash("700"));
    CHECK(hash("1e100") != hash("1e101"));
    CHECK(hash("1234567890123456789012345") != hash("-1234567890123456789012345"));
    CHECK(hash("1234567890123456789012345") != hash("1234567890123456789112345"));
    CHECK(peg__number_hash(&one, 1) != peg__number_hash(&one, 2));
}

/* ---- doubles ------------------------------------------------------------------------------ */

static double as_double(const char *text)
{
    const peg_json value = number(text);

    return peg_json_double(&value);
}

static void check_doubles(void)
{
    CHECK(as_double("0.1") == 0.1);
    CHECK(as_double("-123.456e-7") == -123.456e-7);
    CHECK(as_double("9007199254740993") == 9007199254740992.0);
    CHECK(as_double("9007199254740993.0") == 9007199254740992.0);
    CHECK(as_double("9007199254740993.00000000000000000000001") == 9007199254740994.0);
    CHECK(as_double("1.7976931348623157e308") == 1.7976931348623157e308);
    CHECK(as_double("5e-324") == 5e-324);
    CHECK(as_double("2.2250738585072011e-308") == 2.2250738585072011e-308);
    CHECK(as_double("123456789012345678901234567890.5") == 123456789012345678901234567890.5);
}

TEST(double_is_the_nearest_one)
{
    check_doubles();
}

TEST(double_is_infinite_beyond_its_range_and_zero_below)
{
    CHECK(as_double("1e309") == (double)INFINITY);
    CHECK(as_double("-1e9999") == -(double)INFINITY);
    CHECK(as_double("1e-9999") == 0);
    CHECK(signbit(as_double("-0")));
    CHECK(signbit(as_double("-1e-9999")));
    CHECK(!signbit(as_double("0.0")));
}

TEST(double_does_not_depend_on_the_locale)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        SKIP("no locale with a decimal comma is installed");
    check_doubles();
    CHECK_INT(peg__double_shortest(0.30000000000000004).mantissa, 30000000000000004);
    setlocale(LC_ALL, "C");
}

static void check_shortest(double value, uint64_t mantissa, int exponent)
{
    const struct peg__shortest s = peg__double_shortest(value);

    CHECK_INT(s.mantissa, mantissa);
    CHECK_INT(s.exponent, exponent);
}

TEST(shortest_digits_read_back_as_the_same_double)
{
    check_shortest(0, 0, 0);
    check_shortest(1, 1, 0);
    check_shortest(1500, 15, 2);
    check_shortest(0.1, 1, -1);
    check_shortest(0.1 + 0.2, 30000000000000004, -17);
    check_shortest(1e23, 1, 23);
    check_shortest(5e-324, 5, -324);
    check_shortest(1.7976931348623157e308, 17976931348623157, 292);
    check_shortest(9007199254740992.0, 9007199254740992, 0);
    /* A power of two whose nearest 16 digits lie too far below. */
    check_shortest(0x1p-44, 5684341886080802, -29);
    check_shortest(0x1p-1022, 22250738585072014, -324);
}
