/* SPDX-License-Identifier: Apache-2.0 */

/* ECMA-262 patterns with flags; what they mean without is in test_pattern.c. */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "schema/pattern/pattern.h"

enum { I = PEG__PATTERN_CASELESS, M = PEG__PATTERN_MULTILINE, S = PEG__PATTERN_DOTALL };

struct flag_case {
    unsigned flags;
    const char *pattern;
    const char *subject;
    bool matches;
};

static enum peg__match match(const struct flag_case *c)
{
    struct peg__matcher *matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    struct peg__pattern *pattern = NULL;
    enum peg__match result;
    peg_error error;

    CHECK(matcher);
    CHECK_STATUS(peg__pattern_new_with_flags(peg__str(c->pattern), c->flags,
                                             PEG_LIMIT_PATTERN_BYTES, &pattern, &error),
                 PEG_OK, error);
    result = peg__pattern_match(pattern, matcher, peg__str(c->subject));
    peg__pattern_free(pattern);
    peg__matcher_free(matcher);
    return result;
}

static void check_cases(const struct flag_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const enum peg__match result = match(&cases[i]);

        if (result != (cases[i].matches ? PEG__MATCH_YES : PEG__MATCH_NO))
            T_FAIL("/%s/ with flags %u on \"%s\" gives %d", cases[i].pattern, cases[i].flags,
                   cases[i].subject, (int)result);
    }
}

#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof(*(cases)))

TEST(pattern_with_i_takes_both_cases)
{
    static const struct flag_case cases[] = {
        {I, "error", "an ERROR here", true},
        {0, "error", "an ERROR here", false},
        {I, "^[a-c]+$", "aBC", true},
        {I, "^[^a-c]+$", "xBz", false},
        {I, "GRÜN", "grün", true},
        {I, "ΣΑΣ", "σας", true},
        {I, "\\u{10400}", "\xF0\x90\x90\xA8", true}, /* Deseret long I */
        {I, "(a)\\1", "xaA", true},
    };

    CHECK_CASES(cases);
}

/* ſ is a form of s, and the sign of Kelvin one of k: \w has both, and \W neither of the four. */
TEST(pattern_with_i_knows_the_letters_that_fold_into_ascii)
{
    static const struct flag_case cases[] = {
        {I, "s", "ſ", true},        {I, "^\\w$", "ſ", true},       {I, "^\\w$", "\u212A", true},
        {I, "^[\\w-]$", "ſ", true}, {I, "\\W", "ſ", false},        {I, "\\W", "s", false},
        {I, "[\\W]", "s", false},   {I, "[\\W_]", "K", false},     {I, "[\\W]", "ſ", false},
        {I, "[\\W]", "é", true},    {I, "^[^\\W]$", "s", true},    {0, "^\\w$", "ſ", false},
        {0, "\\W", "ſ", true},      {I, "[\\W]", "\u212A", false}, {I, "\\W", "-", true},
    };

    CHECK_CASES(cases);
}

TEST(pattern_with_m_finds_the_starts_and_ends_of_lines)
{
    static const struct flag_case cases[] = {
        {M, "foo$", "foo\r", true},
        {0, "foo$", "foo\r", false},
        {M, "^b$", "a\nb\nc", true},
        {0, "^b$", "a\nb\nc", false},
        {M, "^b", "a\u2028b", true},
        {M, "a$", "a\u2029b", true},
        {M, "^b", "ab", false},
        {M, "a$", "ab", false},
        {M, "^$", "", true},
        {M, "^$", "a\n\nb", true},
        {M, "^$", "a\nb", false},
        {M, "^a|^b", "xa\nb", true},
        {M, "(?<=^x)y", "\nxy", true},
        {M, "a.b", "a\nb", false},
        {M, "^(?:ab$\\s)+", "ab\nab\n", true},
        {M, "[$^]", "a", false},
    };

    CHECK_CASES(cases);
}

TEST(pattern_with_s_lets_the_dot_take_line_ends)
{
    static const struct flag_case cases[] = {
        {S, "a.b", "a\nb", true},   {0, "a.b", "a\nb", false}, {S, "a.b", "a\rb", true},
        {S, "^.$", "\u2028", true}, {S, "^.$", "é", true},     {S, "^.$", "\xF0\x9F\x90\x89", true},
        {S, "^.$", "ab", false},    {S, "a$", "a\n", false},   {S, "[.]", "x", false},
    };

    CHECK_CASES(cases);
}

TEST(pattern_takes_several_flags_at_once)
{
    static const struct flag_case cases[] = {
        {I | M, "^B$", "a\nb", true},
        {I | S, "A.B", "a\nb", true},
        {I | M | S, "^B.C$", "a\nb\nc", true},
    };

    CHECK_CASES(cases);
}

TEST(pattern_with_flags_is_refused_like_one_without)
{
    struct peg__pattern *pattern = NULL;
    peg_error error;

    CHECK_INT(peg__pattern_new_with_flags(peg__str("ab(c"), I | M | S, 100, &pattern, &error),
              PEG_EPARSE);

    CHECK_STR(peg__str(error.code), "E_PATTERN_SYNTAX");
    CHECK_INT(error.offset, 4);
    CHECK_INT(peg__pattern_new_with_flags(peg__str("abcd"), I, 3, &pattern, &error), PEG_ELIMIT);
    CHECK(!pattern);
}

TORTURE(pattern_with_flags_survives_any_allocation_failure)
{
    struct peg__pattern *pattern = NULL;
    const peg_status status = peg__pattern_new_with_flags(peg__str("^a.[\\W]$"), I | M | S,
                                                          PEG_LIMIT_PATTERN_BYTES, &pattern, NULL);

    peg__pattern_free(pattern);
    return status;
}
