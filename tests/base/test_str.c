/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/str.h"

#include "base/text/token.h"
#include "t.h"

/* ---- strings ------------------------------------------------------------------------------- */

TEST(strings_are_compared_by_bytes_and_then_by_length)
{
    CHECK(peg__str_eq(peg__strn("abc", 2), peg__str("ab")));
    CHECK(peg__str_is(peg__strn(NULL, 0), ""));
    CHECK(!peg__str_is(peg__str("ab"), "abc"));
    CHECK(peg__str_starts(peg__str("abc"), peg__str("ab")));
    CHECK(!peg__str_starts(peg__str("ab"), peg__str("abc")));
    CHECK(peg__str_compare(peg__str("ab"), peg__str("abc")) < 0);
    CHECK(peg__str_compare(peg__str("b"), peg__str("abc")) > 0);
    CHECK_INT(peg__str_compare(peg__strn(NULL, 0), peg__str("")), 0);
}

TEST(spans_and_trimming_stop_at_the_ends_and_at_a_nul)
{
    CHECK_INT(peg__str_span(peg__str("  x"), " "), 2);
    CHECK_INT(peg__str_span(peg__strn("\0 x", 3), " "), 0);
    CHECK_STR(peg__str_trim(peg__str(" \tx y\n"), " \t\n"), "x y");
    CHECK_STR(peg__str_trim(peg__str("   "), " "), "");
    CHECK(peg__str_is_blank(peg__str(" \t\r\n")));
    CHECK(peg__str_is_blank(peg__str("")));
    CHECK(!peg__str_is_blank(peg__str(" x")));
}

TEST(hexadecimal_digits_have_values_and_others_none)
{
    CHECK_INT(peg__hex_value('0'), 0);
    CHECK_INT(peg__hex_value('a'), 10);
    CHECK_INT(peg__hex_value('F'), 15);
    CHECK_INT(peg__hex_value('g'), -1);
    CHECK_INT(peg__hex_value('/'), -1);
}

TEST(decimal_digits_are_written_for_any_number)
{
    char text[20];

    CHECK_STR(peg__strn(text, (size_t)(peg__put_decimal(text, 0) - text)), "0");
    CHECK_STR(peg__strn(text, (size_t)(peg__put_decimal(text, UINT64_MAX) - text)),
              "18446744073709551615");
}

TEST(classes_of_characters_are_ascii_only)
{
    CHECK(peg__is_letter('a') && peg__is_letter('Z') && !peg__is_letter('@') &&
          !peg__is_letter(0xE9));
    CHECK(peg__is_alnum('7') && !peg__is_alnum('_'));
    CHECK(peg__is_space('\v') && !peg__is_space(0xA0));
    CHECK_INT(peg__to_lower('Q'), 'q');
    CHECK_INT(peg__to_lower('['), '[');
    CHECK(peg__str_is_ascii(peg__str("abc")) && !peg__str_is_ascii(peg__str("\xC3\xA9")));
}

/* ---- names that were misspelled -------------------------------------------------------------- */

static bool suggests(const char *unknown, const char *name)
{
    struct peg__typo typo;

    peg__typo_start(&typo, peg__str(unknown));
    return peg__typo_offer(&typo, peg__str(name));
}

TEST(a_near_name_is_suggested_and_a_far_one_is_not)
{
    CHECK(suggests("nam", "name"));
    CHECK(suggests("Name", "name"));
    CHECK(suggests("ab", "AB"));
    CHECK(!suggests("ab", "ac"));
    CHECK(!suggests("name", "description"));
}

TEST(only_a_nearer_name_replaces_a_suggestion)
{
    struct peg__typo typo;

    peg__typo_start(&typo, peg__str("colour"));
    CHECK(peg__typo_offer(&typo, peg__str("colr")));
    CHECK(peg__typo_offer(&typo, peg__str("color")));
    CHECK(!peg__typo_offer(&typo, peg__str("colors")));
}

TEST(names_that_are_too_long_are_not_compared)
{
    char name[50];

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK(!suggests(name, name));
}

/* ---- tokens in place of files ---------------------------------------------------------------- */

TEST(a_token_is_recognised_where_a_file_is_expected)
{
    CHECK(peg__is_token_for_path("peg_0123456789"));
    CHECK(!peg__is_token_for_path("tokens.txt"));
}
