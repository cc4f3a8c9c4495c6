/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/pattern/pattern.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "schema/pattern/internal.h"

/* ---- fixture ------------------------------------------------------------------ */

struct match_case {
    const char *pattern;
    const char *subject;
    bool matches;
};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
/* A literal with its length: subjects may hold NUL. */
#define BYTES(literal)                                                                             \
    (peg_str)                                                                                      \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static struct peg__pattern *pattern_of(peg_str ecma)
{
    struct peg__pattern *pattern = NULL;
    peg_error error;

    CHECK_STATUS(peg__pattern_new(ecma, PEG_LIMIT_PATTERN_BYTES, &pattern, &error), PEG_OK, error);
    return pattern;
}

static enum peg__match match(peg_str ecma, peg_str subject)
{
    struct peg__pattern *pattern = pattern_of(ecma);
    struct peg__matcher *matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    enum peg__match result;

    CHECK(matcher);
    CHECK(peg__pattern_bytes(pattern) > 0);
    result = peg__pattern_match(pattern, matcher, subject);
    peg__matcher_free(matcher);
    peg__pattern_free(pattern);
    return result;
}

static void check_cases(const struct match_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const enum peg__match result =
            match(peg__str(cases[i].pattern), peg__str(cases[i].subject));

        if (result != (cases[i].matches ? PEG__MATCH_YES : PEG__MATCH_NO))
            T_FAIL("/%s/ on \"%s\" gives %d", cases[i].pattern, cases[i].subject, (int)result);
    }
}

static bool is_simple(const char *ecma)
{
    struct peg__plan plan;
    bool simple = false;
    peg_error error;

    CHECK_STATUS(peg__pattern_plan(peg__str(ecma), &plan, &simple, &error), PEG_OK, error);
    return simple;
}

/* ---- what ECMA-262 says ----------------------------------------------------------- */

TEST(pattern_is_searched_anywhere)
{
    static const struct match_case cases[] = {
        {"a+", "xxaayy", true},
        {"", "", true},
        {"", "x", true},
        {"es", "expression", true},
        {"^es", "expression", false},
        {"(?:a|b)x", "abx", true},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_anchors_are_the_ends_of_the_subject)
{
    static const struct match_case cases[] = {
        {"^abc$", "abc", true},     {"^abc$", "abc\n", false},     {"^abc$", "x\nabc", false},
        {"c(?:d)?$", "c\n", false}, {"^(?:a|b)+$", "ab\n", false}, {"a$|b", "a\nb", true},
        {"(?:^|x)a", "\na", false},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_dot_stops_at_line_ends)
{
    static const struct match_case cases[] = {
        {"^.$", "a", true},         {"^.$", "\n", false},     {"^.$", "\r", false},
        {"^.$", "\u2028", false},   {"^.$", "\u2029", false}, {"^.$", "\xC2\x85", true},
        {"^.$", "\v", true},        {"^.$", "🐉", true},       {"^a.b(?=$)", "a\u2028b", false},
        {"^a.b(?=$)", "a🐉b", true}, {"^[^]$", "\n", true},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_digits_and_word_characters_are_ascii)
{
    static const struct match_case cases[] = {
        {"^\\d$", "0", true},          {"^\\d$", "\u07c0", false},
        {"^\\D$", "\u07c0", true},     {"^\\w$", "a", true},
        {"^\\w$", "é", false},         {"^\\W$", "é", true},
        {"^\\W$", "_", false},         {"\\bx", "éx", true},
        {"\\Bx", "ax", true},          {"\\Bx", "éx", false},
        {"^[\\D]$", "é", true},        {"^[^\\D\\p{L}_]", "\u0408", false},
        {"^[^\\W\\p{L}]", "Ω", false},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_white_space_is_unicode_and_the_byte_order_mark)
{
    static const char *const spaces[] = {" ",      "\t",     "\n",     "\v",     "\f",     "\r",
                                         "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028", "\u2029",
                                         "\u202f", "\u205f", "\u3000", "\ufeff"};
    static const char *const others[] = {"\x01", "\xC2\x85", "\u200b", "\u2013", "\u180e", "x"};

    for (size_t i = 0; i < N_OF(spaces); i++) {
        CHECK_INT(match(peg__str("^\\s$"), peg__str(spaces[i])), PEG__MATCH_YES);
        CHECK_INT(match(peg__str("^\\S$"), peg__str(spaces[i])), PEG__MATCH_NO);
        CHECK_INT(match(peg__str("^[\\S](?!x)"), peg__str(spaces[i])), PEG__MATCH_NO);
        CHECK_INT(match(peg__str("^[é\\s]$"), peg__str(spaces[i])), PEG__MATCH_YES);
    }
    for (size_t i = 0; i < N_OF(others); i++) {
        CHECK_INT(match(peg__str("^\\s$"), peg__str(others[i])), PEG__MATCH_NO);
        CHECK_INT(match(peg__str("^[\\S](?!x)"), peg__str(others[i])), PEG__MATCH_YES);
        CHECK_INT(match(peg__str("^[^é\\S]$"), peg__str(others[i])), PEG__MATCH_NO);
    }
}

TEST(pattern_escapes_name_characters)
{
    static const struct match_case cases[] = {
        {"^\\cC$", "\x03", true},
        {"^\\cc$", "\x03", true},
        {"^\\cC$", "\\cC", false},
        {"^\\t\\n\\v\\f\\r$", "\t\n\v\f\r", true},
        {"^\\x41\\u0042\\u{43}$", "ABC", true},
        {"^\\ud83d\\udc32*$", "🐲🐲", true},
        {"^\\uD83D\\uDC32*$", "\xF0", false},
        {"^\\u{1F409}$", "🐉", true},
        {"^🐲*$", "🐉", false},
        {"^🐲*$", "", true},
        {"^[\\b]$", "\b", true},
        {"^\\-\\@\\\"\\/\\_$", "-@\"/_", true},
        {"^[\\x00-\\x1f]$", "\x1f", true},
    };

    check_cases(cases, N_OF(cases));
    CHECK_INT(match(peg__str("^a\\0b$"), BYTES("a\0b")), PEG__MATCH_YES);
    CHECK_INT(match(peg__str("^(?:a\\0|b)$"), BYTES("a\0")), PEG__MATCH_YES);
}

TEST(pattern_lone_surrogates_match_nothing)
{
    static const struct match_case cases[] = {
        {"\\ud83d", "🐲", false},
        {"^\\ud83d*$", "", true},
        {"^[\\ud800-\\udfff]*x$", "x", true},
        {"[\\ud800-\\udfff]", "🐲", false},
        {"^[^\\ud83d]$", "🐲", true},
        {"^[\\ud7ff-\\udc00]$", "\xED\x9F\xBF", true},
        {"^[\\udc00-\\uffff]$", "\ue000", true},
        {"^[\\u0000-\\u{10ffff}]$", "🐲", true},
        {"\\ud83d\\u0041", "A", false},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_classes_hold_what_they_say)
{
    static const struct match_case cases[] = {
        {"[]", "a", false},
        {"^[^]$", "a", true},
        {"[]|x", "x", true},
        {"^[a-]+$", "a-", true},
        {"^[-a]+$", "a-", true},
        {"^[\\w-.]+$", "a-.", true},
        {"^[a-\\d]+$", "a-1", true},
        {"^[[]$", "[", true},
        {"^[[:a]+$", "[:a", true},
        {"^[.*+?(){}|^$]+$", ".*+?(){}|^$", true},
        {"^[\\]\\\\]+$", "]\\", true},
        {"^[^a-z]$", "é", true},
        {"^[^a-z]$", "q", false},
        {"^[à-ÿ]+$", "éè", true},
        {"^[^à-ÿ]+$", "éè", false},
        {"^[\\s\\S]$", "\u2028", true},
        {"^[&&~~]+$", "&~", true},
        {"[a-z]cole", "l'école", false},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_properties_have_the_names_of_ecma_262)
{
    static const struct match_case cases[] = {
        {"^\\p{Letter}+$", "πλ", true},
        {"^\\p{Letter}+$", "123", false},
        {"^\\p{digit}+$", "৪২", true},
        {"^\\p{General_Category=Lu}$", "É", true},
        {"^\\p{gc=Uppercase_Letter}$", "é", false},
        {"^\\P{L}$", "1", true},
        {"^\\p{Script=Greek}$", "π", true},
        {"^\\p{sc=Grek}$", "p", false},
        {"^\\p{scx=Deva}$", "\u0964", true},
        {"^\\p{sc=Deva}$", "\u0964", false},
        {"^\\p{ASCII}+$", "az", true},
        {"^\\p{ASCII}+$", "é", false},
        {"^\\p{Any}$", "\n", true},
        {"^\\p{Assigned}$", "a", true},
        {"^\\P{Assigned}$", "\u0378", true},
        {"^[\\P{Assigned}]$", "a", false},
        {"^\\p{Alphabetic}\\p{Emoji}$", "a🐉", true},
        {"^\\p{LC}$", "a", true},
        {"\\P{Lu}{2,}\\P{Lm}", "bfoo", true},
        {"^\\p{punct}$", "!", true},
        {"^[\\p{L}\\d]+$", "é1", true},
    };
    static const char *const unknown[] = {
        "\\p{letter}", "\\p{Greek}", "\\p{^Lu}", "\\p{script=Greek}", "\\p{Script=greek}",
        "\\p{}",       "\\pL",       "\\p{L",    "\\p{L u}",          "\\p{Lu Ll}",
    };

    check_cases(cases, N_OF(cases));
    for (size_t i = 0; i < N_OF(unknown); i++)
        CHECK(!peg__pattern_is_valid(peg__str(unknown[i])));
}

TEST(pattern_backreferences_to_what_took_no_part_match_empty)
{
    static const struct match_case cases[] = {
        {"^(a)\\1$", "aa", true},
        {"^(a)\\1$", "a", false},
        {"^\\1(a)$", "a", true},
        {"^(?:(a)|b)\\1$", "b", true},
        {"^(a\\1)+$", "aa", true},
        {"^(?:\\1(a))+$", "aa", true},
        {"^(?<q>['\"]).*\\k<q>$", "'x'", true},
        {"^\\k<q>(?<q>x)$", "x", true},
        {"^(?<q>['\"]).*\\k<q>$", "'x\"", false},
        {"^(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)\\10$", "abcdefghijj", true},
        {"^(a)\\1{2}$", "aaa", true},
        {"^(?<\\u0061>x)\\k<a>$", "xx", true},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_looks_around)
{
    static const struct match_case cases[] = {
        {"^(?=.*\\d)(?=.*[a-z]).{4,}$", "abc1", true},
        {"^(?=.*\\d)(?=.*[a-z]).{4,}$", "abcd", false},
        {"^(?!foo)", "foobar", false},
        {"(?<=foo)bar", "foobar", true},
        {"(?<!foo)bar", "foobar", false},
        {"(?<=a|bc)d", "bcd", true},
    };

    check_cases(cases, N_OF(cases));
}

TEST(pattern_reads_braces_and_brackets_that_mean_nothing_as_text)
{
    static const struct match_case cases[] = {
        {"^{$", "{", true},          {"^a{b}$", "a{b}", true},   {"^x{$", "x{", true},
        {"^]}$", "]}", true},        {"^\\${a}$", "${a}", true}, {"^a{1$", "a{1", true},
        {"^{{.*}}$", "{{x}}", true}, {"^a b#c$", "a b#c", true},
    };

    check_cases(cases, N_OF(cases));
}

/* ---- what is refused -------------------------------------------------------------------- */

TEST(pattern_refuses_what_is_not_ecma_262_and_says_what_to_write)
{
    static const struct {
        const char *pattern;
        size_t offset;
        const char *words;
    } cases[] = {
        {"a(?i)b", 1, "[Aa]"},
        {"(?#note)a", 0, "leave out"},
        {"(?>a)", 0, "(?:...)"},
        {"(?|a)", 0, "(?:...)"},
        {"(?P<n>a)", 0, "(?<name>...)"},
        {"(?(1)a)", 0, "with |"},
        {"(?R)", 0, "(?:...)"},
        {"(?1)", 0, "(?:...)"},
        {"(?<1>a)", 0, "(?<name>"},
        {"(?<n>a)(?<n>b)", 7, "own"},
        {"(*ACCEPT)", 1, "\\("},
        {"a*+", 2, "\\+"},
        {"a++", 2, "\\+"},
        {"a**", 2, "\\*"},
        {"^*", 1, "nothing to repeat"},
        {"*a", 0, "\\*"},
        {"(?=a)*", 5, "(?:...)"},
        {"{1}", 0, "\\{"},
        {"a{,3}", 1, "{0,n}"},
        {"a{3,1}", 1, "{1,3}"},
        {"(a", 2, ")"},
        {"a)", 1, "\\)"},
        {"^(abc]", 6, ")"},
        {"[a", 2, "]"},
        {"[b-a]", 1, "swap"},
        {"[[:alpha:]]", 1, "[A-Za-z]"},
        {"\\a", 0, "\\x07"},
        {"x\\A", 1, "^"},
        {"^\\S(|(.|\\n)*\\S)\\Z", 15, "$"},
        {"\\z", 0, "$"},
        {"\\Qa\\E", 0, "backslash"},
        {"\\G", 0, "^"},
        {"\\K", 0, "lookbehind"},
        {"\\R", 0, "\\r\\n"},
        {"\\X", 0, "."},
        {"\\h", 0, "[ \\t]"},
        {"\\N", 0, "."},
        {"\\g{1}", 0, "\\1"},
        {"\\y", 0, "write y"},
        {"\\1", 0, "\\xHH"},
        {"(a)\\2", 3, "only 1"},
        {"\\k<x>", 0, "(?<name>...)"},
        {"\\k", 0, "\\k<name>"},
        {"\\x4", 0, "\\x0A"},
        {"\\u12", 0, "\\u00E9"},
        {"\\u{110000}", 0, "10FFFF"},
        {"\\c1", 0, "\\cJ"},
        {"\\01", 0, "\\xHH"},
        {"a\\", 1, "\\\\"},
        {"[\\B]", 1, "\\xHH"},
        {"[\\1]", 1, "\\xHH"},
        {"\xFF", 0, "UTF-8"},
        {"[\xC0\x80]", 1, "UTF-8"},
        {"\\\xED\xA0\x80", 1, "UTF-8"},
    };

    for (size_t i = 0; i < N_OF(cases); i++) {
        struct peg__pattern *pattern = NULL;
        peg_error error;

        if (peg__pattern_new(peg__str(cases[i].pattern), PEG_LIMIT_PATTERN_BYTES, &pattern,
                             &error) != PEG_EPARSE)
            T_FAIL("/%s/ is not refused", cases[i].pattern);
        CHECK(!pattern);
        CHECK_STR(peg__str(error.code), "E_PATTERN_SYNTAX");
        if (error.offset != cases[i].offset || !strstr(error.message, cases[i].words))
            T_FAIL("/%s/ at %zu: %s", cases[i].pattern, error.offset, error.message);
        CHECK_INT(error.column, cases[i].offset + 1);
        CHECK(!peg__pattern_is_valid(peg__str(cases[i].pattern)));
    }
}

TEST(pattern_refuses_valid_patterns_that_the_engine_can_not_do)
{
    static const struct {
        const char *pattern;
        peg_status status;
        size_t offset;
        const char *words;
    } cases[] = {
        {"a(?<=a+)b", PEG_EPARSE, 1, "lookbehind"},
        {"(a)(?<=\\1)b", PEG_EPARSE, 7, "lookbehind"},
        {"(?<=\\1(a))b", PEG_EPARSE, 4, "lookbehind"},
        {"x\\p{CWKCF}", PEG_EPARSE, 1, "CWKCF"},
        {"(?:ab){70000}", PEG_ELIMIT, 6, "65535"},
        {"(?:ab){70000,}", PEG_ELIMIT, 6, "65535"},
        {"(?:ab|c){2,99999999999}", PEG_ELIMIT, 8, "65535"},
        {"((a{100}){100}){100}", PEG_ELIMIT, 0, "repeat less"},
    };

    for (size_t i = 0; i < N_OF(cases); i++) {
        struct peg__pattern *pattern = NULL;
        peg_error error;

        CHECK(peg__pattern_is_valid(peg__str(cases[i].pattern)));
        CHECK_INT(
            peg__pattern_new(peg__str(cases[i].pattern), PEG_LIMIT_PATTERN_BYTES, &pattern, &error),
            cases[i].status);
        if (error.offset != cases[i].offset || !strstr(error.message, cases[i].words))
            T_FAIL("/%s/ at %zu: %s", cases[i].pattern, error.offset, error.message);
    }
}

TEST(pattern_is_valid_without_compiling_it)
{
    static const char *const valid[] = {"([abc])+\\s+$", "(?<=a+)b", "(?<n>a)\\k<n>", "[]",
                                        "[^]",           "\\cA",     "a{100000}",     ""};

    for (size_t i = 0; i < N_OF(valid); i++)
        CHECK(peg__pattern_is_valid(peg__str(valid[i])));
}

TEST(pattern_has_a_longest_and_a_deepest)
{
    struct peg__pattern *pattern = NULL;
    char nested[2 * (PEG_LIMIT_PATTERN_NESTING + 1) + 1];
    const size_t n = PEG_LIMIT_PATTERN_NESTING + 1;
    peg_error error;

    CHECK_INT(peg__pattern_new(peg__str("abcd"), 3, &pattern, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_PATTERN_TOO_LARGE");

    memset(nested, '(', n);
    memset(nested + n, ')', n);
    CHECK_INT(peg__pattern_new((peg_str){nested, 2 * n}, 4096, &pattern, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_PATTERN_TOO_LARGE");
    CHECK_INT(error.offset, PEG_LIMIT_PATTERN_NESTING);
    pattern = pattern_of((peg_str){nested + 1, 2 * (n - 1)});
    peg__pattern_free(pattern);
}

TEST(pattern_is_never_much_longer_once_translated)
{
    static const char *const units[] = {"\\S", "[\\S]",  "[]",      "[^]",   ".",
                                        "\\s", "\x01",   "\\p{L}",  "[\\W]", "\\ud800",
                                        "(|)", "a{1,2}", "[\\S\\s]"};

    for (size_t i = 0; i < N_OF(units); i++) {
        struct peg__buf ecma = PEG__BUF(8192);
        struct peg__buf out = PEG__BUF(1 << 20);
        peg_error error;

        for (int k = 0; k < 1000; k++)
            peg__buf_puts(&ecma, units[i]);
        CHECK_STATUS(peg__pattern_translate(peg__buf_view(&ecma), &out, &error), PEG_OK, error);
        CHECK(out.len <= 64 * ecma.len + 1024);
        peg__buf_free(&ecma);
        peg__buf_free(&out);
    }
}

TEST(pattern_that_backtracks_without_end_is_decided_unless_it_looks_around)
{
    CHECK_INT(match(peg__str("^(a+)+$"), peg__str("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")),
              PEG__MATCH_NO);
    CHECK_INT(match(peg__str("^(?=(a+)+$)"), peg__str("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")),
              PEG__MATCH_LIMIT);
}

/* ---- by hand ------------------------------------------------------------------------------ */

TEST(pattern_common_ones_are_matched_by_hand)
{
    static const char *const simple[] = {
        "",
        "^",
        "$",
        ".*",
        "^.*",
        "^.*$",
        "^$",
        ".",
        "abc",
        "^abc",
        "abc$",
        "^abc$",
        "^(a|b|c)$",
        "^(?:ab|)$",
        "a|b",
        "^x-",
        "\\.json$",
        "[0-9]{2,}",
        "^\\d{4}-\\d{2}-\\d{2}$",
        "^[a-z][a-z0-9_]*$",
        "^[^/]+/[^/]+$",
        "^[a-z0-9]+(?:-[a-z0-9]+)*$",
        "^\\d+\\.\\d+\\.\\d+(-[0-9A-Za-z.-]+)?$",
        "^[a-z]{1,100000}$",
    };
    static const char *const others[] = {"^.*bar$",   "f.*o",      "^(?!x)", "\\bx",  "(a)\\1",
                                         "^[a-z]*a$", "^(a|b)c$",  "^é+$",   "^[é]$", "^((a)b)+$",
                                         "^a|b$",     "^(?:a?)+$", "\\p{L}", "^a?ab$"};

    for (size_t i = 0; i < N_OF(simple); i++) {
        if (!is_simple(simple[i]))
            T_FAIL("/%s/ is not simple", simple[i]);
    }
    for (size_t i = 0; i < N_OF(others); i++) {
        if (is_simple(others[i]))
            T_FAIL("/%s/ is simple", others[i]);
    }
}

TEST(pattern_counts_characters_not_bytes)
{
    static const struct match_case cases[] = {
        {"^.{2}$", "é🐉", true},        {"^.{3}$", "é🐉", false},   {"^[^a]{1,2}$", "🐉🐉", true},
        {"^[^a]{1,2}$", "🐉🐉🐉", false}, {"[^a]{3}", "a🐉é🐉", true}, {"\\S{2}", "é é", false},
    };

    for (size_t i = 0; i < N_OF(cases); i++)
        CHECK(is_simple(cases[i].pattern));
    check_cases(cases, N_OF(cases));
}

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

static void put_random_pattern(struct peg__buf *buf)
{
    static const char *const atoms[] = {
        "[a-z]",  "\\d",    "[0-9a-c]", "-",           "\\.",   "_",        "ab",     "[^-]",
        "[^ab]",  "\\s",    "\\S",      ".",           "\\w",   "[a-c]",    "é",      "(?:-[a-z]+)",
        "(-\\d)", "(?:ab)", "([^-]*)",  "(\\.\\d{2})", "(a?b)", "[\\s\\S]", "[^\\s]", "[\\W]"};
    static const char *const quantifiers[] = {"",  "",    "",      "*",    "+",
                                              "?", "{2}", "{1,3}", "{2,}", "+?"};
    static const char *const words[] = {"a", "ab", "", "é", "a\\.b", "0"};
    static const char *const frames[][2] = {{"^(", ")$"}, {"^(?:", ")$"}, {"(", ")"},
                                            {"", ""},     {"^(", ")"},    {"(?:", ")$"}};
    const uint32_t frame = random_below(N_OF(frames));

    if (random_below(6) == 0) {
        peg__buf_puts(buf, frames[frame][0]);
        for (uint32_t n = random_below(4) + 1; n > 0; n--) {
            peg__buf_puts(buf, words[random_below(N_OF(words))]);
            peg__buf_puts(buf, n > 1 ? "|" : frames[frame][1]);
        }
        return;
    }
    peg__buf_puts(buf, random_below(4) ? "^" : "");
    for (uint32_t n = random_below(5) + 1; n > 0; n--) {
        peg__buf_puts(buf, atoms[random_below(N_OF(atoms))]);
        peg__buf_puts(buf, quantifiers[random_below(N_OF(quantifiers))]);
    }
    peg__buf_puts(buf, random_below(3) ? "$" : "");
}

static void put_random_subject(struct peg__buf *buf)
{
    static const char *const chars[] = {"a", "b",  "c",      "z",      "-",  "-",   "_",
                                        "0", "1",  ".",      " ",      "\n", "é",   "🐉",
                                        "A", "\r", "\u2028", "\ufeff", "ab", "a.b", "-x"};

    for (uint32_t n = random_below(9); n > 0; n--)
        peg__buf_puts(buf, chars[random_below(N_OF(chars))]);
}

/* Matches the pattern by hand and by PCRE2 on some subjects; false if it is not simple. */
static bool check_both_ways(peg_str ecma, struct peg__matcher *matcher, unsigned *n_matches)
{
    struct peg__plan plan;
    struct peg__simple *by_hand;
    struct peg__regex *by_pcre2;
    struct peg__buf text = PEG__BUF(4096);
    bool simple;

    CHECK_INT(peg__pattern_plan(ecma, &plan, &simple, NULL), PEG_OK);
    if (!simple)
        return false;
    by_hand = peg__simple_new(&plan);
    CHECK(by_hand);
    CHECK_INT(peg__pattern_translate(ecma, &text, NULL), PEG_OK);
    CHECK_INT(peg__regex_new(peg__buf_view(&text), false, &by_pcre2, NULL), PEG_OK);
    for (int i = 0; i < 12; i++) {
        enum peg__match result;

        peg__buf_clear(&text);
        put_random_subject(&text);
        result = peg__regex_match(by_pcre2, matcher, peg__buf_view(&text));
        if (result != PEG__MATCH_LIMIT &&
            peg__simple_match(by_hand, peg__buf_view(&text)) != (result == PEG__MATCH_YES))
            T_FAIL("/%.*s/ on \"%s\": PCRE2 says %d", PEG_ARG(ecma), text.len ? text.ptr : "",
                   (int)result);
        *n_matches += result == PEG__MATCH_YES;
    }
    peg__buf_free(&text);
    peg__regex_free(by_pcre2);
    peg__simple_free(by_hand);
    return true;
}

TEST(pattern_by_hand_agrees_with_pcre2_on_thousands_of_patterns)
{
    struct peg__matcher *matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    unsigned n_simple = 0;
    unsigned n_matches = 0;

    random_state = 20240229;
    for (int i = 0; i < 8000; i++) {
        struct peg__buf ecma = PEG__BUF(1024);

        put_random_pattern(&ecma);
        n_simple += check_both_ways(peg__buf_view(&ecma), matcher, &n_matches);
        peg__buf_free(&ecma);
    }
    peg__matcher_free(matcher);
    CHECK(n_simple > 2000);
    CHECK(n_matches > 5000);
}

/* ---- out of memory ----------------------------------------------------------------------------
 */

static peg_status make_and_match(const char *ecma, const char *subject)
{
    struct peg__pattern *pattern = NULL;
    struct peg__matcher *matcher = NULL;
    enum peg__match result = PEG__MATCH_NOMEM;
    peg_error error;
    peg_status status = peg__pattern_new(peg__str(ecma), PEG_LIMIT_PATTERN_BYTES, &pattern, &error);

    if (status == PEG_OK)
        matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    if (matcher)
        result = peg__pattern_match(pattern, matcher, peg__str(subject));
    if (status == PEG_OK && result != PEG__MATCH_YES)
        status = result == PEG__MATCH_NOMEM ? PEG_ENOMEM : PEG_EINVAL;
    peg__matcher_free(matcher);
    peg__pattern_free(pattern);
    return status;
}

TORTURE(pattern_by_hand_survives_any_allocation_failure)
{
    return make_and_match("^[a-z]+(-[a-z]+)*$", "a-slug");
}

TORTURE(pattern_by_pcre2_survives_any_allocation_failure)
{
    return make_and_match("^(?!x)(?:[^\\s-]|-é)*$", "a-éb");
}
