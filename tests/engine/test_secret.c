/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include "../t.h"
#include "base/text/str.h"

static void check_hidden(const char *secret, const char *text, const char *expected)
{
    char copy[128];

    snprintf(copy, sizeof(copy), "%s", text);
    peg__secret_hide(peg__str(secret), copy);
    CHECK_STR(peg__str(copy), expected);
}

TEST(a_secret_is_the_value_of_a_header)
{
    CHECK_STR(peg__secret_in(peg__str("x-api-key: abcdefgh")), "abcdefgh");
    CHECK_STR(peg__secret_in(peg__str("x-api-key:abcdefgh ")), "abcdefgh");
    CHECK_STR(peg__secret_in(peg__str("Authorization: bearer  abcdefgh")), "abcdefgh");
    CHECK_STR(peg__secret_in(peg__str("Authorization: Basic abc:defgh")), "abc:defgh");
}

TEST(short_values_are_no_secrets)
{
    CHECK_STR(peg__secret_in(peg__str("x-version: 2023")), "");
    CHECK_STR(peg__secret_in(peg__str("x-version")), "");
    CHECK_STR(peg__secret_in(peg__str("")), "");
}

TEST(a_secret_is_hidden_wherever_it_stands)
{
    check_hidden("abcdefgh", "abcdefgh", "***");
    check_hidden("abcdefgh", "a abcdefghabcdefgh z", "a ****** z");
    check_hidden("aaaaaaaa", "aaaaaaaaaaaaaaaab", "******b");
    check_hidden("abcdefgh", "abcdefgi", "abcdefgi");
    check_hidden("", "abc", "abc");
}

TEST(the_beginning_of_a_secret_is_hidden_where_a_text_is_cut)
{
    check_hidden("abcdefghijkl", "x abcdefghij", "x ***");
    check_hidden("abcdefghijkl", "x abc", "x abc");
}
