/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"

/* The bytes alone, and behind runs of ASCII of every length that the word loops tell apart. */
static bool is_valid(const char *bytes)
{
    const size_t len = strlen(bytes);
    const bool alone = peg__utf8_is_valid(peg__str(bytes));
    char text[64];

    for (size_t n = 1; n < 40; n++) {
        memset(text, 'x', sizeof(text));
        memcpy(text + n, bytes, len);
        if (peg__utf8_is_valid(peg__strn(text, n + len)) != alone)
            T_FAIL("%zu bytes before changed the verdict", n);
        if (peg__utf8_is_valid(peg__strn(text, n + len + 10)) != alone)
            T_FAIL("%zu bytes before and 10 behind changed the verdict", n);
    }
    return alone;
}

TEST(utf8_accepts_the_first_and_last_character_of_every_length)
{
    CHECK(peg__utf8_is_valid(peg__strn(NULL, 0)));
    CHECK(peg__utf8_is_valid(peg__strn("\0", 1)));
    CHECK(is_valid("\x7F"));
    CHECK(is_valid("\xC2\x80"));
    CHECK(is_valid("\xDF\xBF"));
    CHECK(is_valid("\xE0\xA0\x80"));
    CHECK(is_valid("\xED\x9F\xBF"));
    CHECK(is_valid("\xEE\x80\x80"));
    CHECK(is_valid("\xEF\xBF\xBF"));
    CHECK(is_valid("\xF0\x90\x80\x80"));
    CHECK(is_valid("\xF4\x8F\xBF\xBF"));
    CHECK(is_valid("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"));
}

TEST(utf8_refuses_overlong_forms)
{
    CHECK(!is_valid("\xC0\x80"));
    CHECK(!is_valid("\xC1\xBF"));
    CHECK(!is_valid("\xE0\x9F\xBF"));
    CHECK(!is_valid("\xF0\x8F\xBF\xBF"));
}

TEST(utf8_refuses_surrogates_and_what_is_above_the_last_character)
{
    CHECK(!is_valid("\xED\xA0\x80"));
    CHECK(!is_valid("\xED\xBF\xBF"));
    CHECK(!is_valid("\xF4\x90\x80\x80"));
    CHECK(!is_valid("\xF5\x80\x80\x80"));
    CHECK(!is_valid("\xFF"));
}

TEST(utf8_refuses_stray_and_missing_tails)
{
    CHECK(!is_valid("\x80"));
    CHECK(!is_valid("\xBF"));
    CHECK(!is_valid("\xC2"));
    CHECK(!is_valid("\xC2x"));
    CHECK(!is_valid("\xE2\x82"));
    CHECK(!is_valid("\xE2\x82x"));
    CHECK(!is_valid("\xF0\x9F\x98"));
    CHECK(!is_valid("\xF0\x9F\x98x"));
    CHECK(!is_valid("\xC3\xBC\xC3\xBC\x80"));
}

TEST(utf8_length_counts_characters)
{
    CHECK_INT(peg__utf8_length(peg__strn(NULL, 0)), 0);
    CHECK_INT(peg__utf8_length(peg__str("abc")), 3);
    CHECK_INT(peg__utf8_length(peg__str("\xF0\x9F\x98\x80")), 1);
    CHECK_INT(peg__utf8_length(peg__str("12345678\xC3\xBC")), 9);
    CHECK_INT(peg__utf8_length(peg__str("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC")), 5);
    CHECK_INT(peg__utf8_length(peg__str("a\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC")), 5);
}

TEST(utf8_char_len_looks_at_the_first_character_alone)
{
    CHECK_INT(peg__utf8_char_len(peg_cstr("a\xFF")), 1);
    CHECK_INT(peg__utf8_char_len((peg_str){"\0", 1}), 1);
    CHECK_INT(peg__utf8_char_len(peg_cstr("\u00E9\xFF")), 2);
    CHECK_INT(peg__utf8_char_len(peg_cstr("\u20AC")), 3);
    CHECK_INT(peg__utf8_char_len(peg_cstr("\U0001F600")), 4);
    CHECK_INT(peg__utf8_char_len((peg_str){"\u20AC", 2}), 0);
    CHECK_INT(peg__utf8_char_len(peg_cstr("\x80")), 0);
    CHECK_INT(peg__utf8_char_len(peg_cstr("\xC3")), 0);
    CHECK_INT(peg__utf8_char_len(peg_cstr("\xED\xA0\x80")), 0);
}
