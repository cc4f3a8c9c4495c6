/* SPDX-License-Identifier: Apache-2.0 */

/* Patterns by automaton: the same verdicts as PCRE2, and a time that grows with the subject. */

#include "fixture.h"
#include "schema/pattern/internal.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static struct peg__nfa *make(const char *ecma)
{
    struct peg__nfa *nfa = NULL;

    CHECK_INT(peg__nfa_new(peg__str(ecma), &nfa), PEG_OK);
    return nfa;
}

static enum peg__match match(const char *ecma, const char *subject)
{
    struct peg__nfa *nfa = make(ecma);
    uint64_t steps = 100000;
    const enum peg__match result = peg__nfa_match(nfa, peg__str(subject), &steps);

    peg__nfa_free(nfa);
    return result;
}

TEST(automaton_matches_what_the_pattern_says)
{
    static const struct {
        const char *ecma, *yes, *no;
    } cases[] = {
        {"\\s+$", "a  \t", " a"},
        {"^(a|b|)c{2,3}$", "acc", "bacc"},
        {"(?:ab?)*c", "ababac", "abab"},
        {"^(?:a{0,2}b){2}$", "aabb", "aaabb"},
        {"\\bcat\\b", "the cat sat", "concatenate"},
        {"\\Bcat", "concat", "cat"},
        {"[^\\W_]{3}", "a_b12", "a_b_1"},
        {"^[\\u4e00-\\u9fff]+$", "\u4e2d\u6587", "\u4e2d."},
        {"^[^\\u4e00-\\u9fff]$", "\u00e9", "\u4e2d"},
        {"^.$", "\U0001f409", "\u2028"},
        {"^\\S$", "\U0001f409", "\ufeff"},
        {"x{0}y?$", "x", ""},
        {"^(?:(?:a*)*b|c)+$", "aabcb", "aabca"},
    };

    for (size_t i = 0; i < N_OF(cases); i++) {
        if (match(cases[i].ecma, cases[i].yes) != PEG__MATCH_YES)
            T_FAIL("/%s/ does not match \"%s\"", cases[i].ecma, cases[i].yes);
        if (i != 11 && match(cases[i].ecma, cases[i].no) != PEG__MATCH_NO)
            T_FAIL("/%s/ matches \"%s\"", cases[i].ecma, cases[i].no);
    }
}

TEST(automaton_is_for_patterns_that_look_neither_around_nor_back)
{
    static const char *const others[] = {"(?=a)b", "(?!a)b",    "(?<=a)b",      "(?<!a)b",
                                         "(a)\\1", "\\p{Lu}+x", "[\\p{Lu}a]+x", "(a{40}){40}"};

    for (size_t i = 0; i < N_OF(others); i++) {
        struct peg__nfa *nfa = NULL;

        CHECK_INT(peg__nfa_new(peg__str(others[i]), &nfa), PEG_EUNSUPPORTED);
        CHECK(!nfa);
    }
}

/* ---- against PCRE2 ------------------------------------------------------------------------ */

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

// NOLINTNEXTLINE(misc-no-recursion): three levels
static void put_pattern(struct peg__buf *out, unsigned depth)
{
    static const char *const atoms[] = {
        "a",    "b",   "[ab]", "\\d",      "-",     "\u00e9",  ".",          "\\s",
        "[^a]", "\\w", "\\S",  "[\\s\\d]", "[^-b]", "[\\W-b]", "[a-\u00ff]", "[^\\s\u00e9]"};
    static const char *const quantifiers[] = {"",    "",      "",      "*",    "+",  "?",
                                              "{2}", "{0,2}", "{1,3}", "{2,}", "*?", "{0}"};
    static const char *const marks[] = {"^", "$", "\\b", "\\B"};

    for (uint32_t n = random_below(4); n > 0; n--) {
        const uint32_t kind = random_below(10);

        if (kind == 0) {
            peg__buf_puts(out, marks[random_below(N_OF(marks))]);
            continue;
        }
        if (kind == 1)
            peg__buf_putc(out, '|');
        if (kind < 4 && depth > 0) {
            peg__buf_puts(out, kind == 2 ? "(" : "(?:");
            put_pattern(out, depth - 1);
            peg__buf_putc(out, ')');
        } else {
            peg__buf_puts(out, atoms[random_below(N_OF(atoms))]);
        }
        peg__buf_puts(out, quantifiers[random_below(N_OF(quantifiers))]);
    }
}

static void put_subject(struct peg__buf *out)
{
    static const char *const chars[] = {"a", "b",  "a",      "b",          "-",      "0",
                                        " ", "\n", "\u00e9", "\U0001f409", "\u2028", "_"};

    for (uint32_t n = random_below(10); n > 0; n--)
        peg__buf_puts(out, chars[random_below(N_OF(chars))]);
}

static void check_against_pcre2(peg_str ecma, struct peg__matcher *matcher, unsigned n_found[4])
{
    struct peg__buf text = PEG__BUF(65536);
    struct peg__regex *regex = NULL;
    struct peg__nfa *nfa = NULL;

    CHECK_INT(peg__pattern_translate(ecma, &text, NULL), PEG_OK);
    CHECK_INT(peg__regex_new(peg__buf_view(&text), false, &regex, NULL), PEG_OK);
    CHECK_INT(peg__nfa_new(ecma, &nfa), PEG_OK);
    for (int i = 0; i < 10; i++) {
        uint64_t steps = 1000000;
        enum peg__match by_pcre2;
        enum peg__match by_nfa;

        peg__buf_clear(&text);
        put_subject(&text);
        by_pcre2 = peg__regex_match(regex, matcher, peg__buf_view(&text));
        by_nfa = peg__nfa_match(nfa, peg__buf_view(&text), &steps);
        if (by_pcre2 != PEG__MATCH_LIMIT && by_nfa != by_pcre2)
            T_FAIL("/%.*s/ on \"%s\": PCRE2 says %d, the automaton %d", PEG_ARG(ecma),
                   text.len ? text.ptr : "", (int)by_pcre2, (int)by_nfa);
        n_found[by_nfa]++;
    }
    peg__buf_free(&text);
    peg__regex_free(regex);
    peg__nfa_free(nfa);
}

TEST(automaton_agrees_with_pcre2_on_thousands_of_patterns)
{
    struct peg__matcher *matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    unsigned n_found[4] = {0};

    random_state = 20261117;
    for (int i = 0; i < 8000; i++) {
        struct peg__buf ecma = PEG__BUF(4096);

        put_pattern(&ecma, 3);
        check_against_pcre2(peg__buf_view(&ecma), matcher, n_found);
        peg__buf_free(&ecma);
    }
    peg__matcher_free(matcher);
    CHECK(n_found[PEG__MATCH_YES] > 20000);
    CHECK(n_found[PEG__MATCH_NO] > 10000);
    CHECK_INT(n_found[PEG__MATCH_LIMIT], 0);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static uint64_t steps_for(const char *ecma, const char *unit, size_t n, enum peg__match expected)
{
    struct peg__buf subject = PEG__BUF(4 << 20);
    struct peg__nfa *nfa = make(ecma);
    uint64_t steps = UINT64_MAX;

    for (size_t i = 0; i < n; i++)
        peg__buf_puts(&subject, unit);
    peg__buf_putc(&subject, 'x');
    CHECK_INT(peg__nfa_match(nfa, peg__buf_view(&subject), &steps), expected);
    peg__buf_free(&subject);
    peg__nfa_free(nfa);
    return UINT64_MAX - steps;
}

TEST(automaton_takes_steps_by_the_length_alone)
{
    static const char *const patterns[] = {"\\s+$", "^(\\s+)+$", "(\\s|\\s)+$", "(.*\\s){5}y"};

    for (size_t i = 0; i < N_OF(patterns); i++) {
        const uint64_t few = steps_for(patterns[i], " ", 1000, PEG__MATCH_NO);
        const uint64_t many = steps_for(patterns[i], " ", 16000, PEG__MATCH_NO);

        CHECK(many < 17 * few);
    }
}

TEST(automaton_ends_when_its_steps_do)
{
    struct peg__nfa *nfa = make("\\s+$");
    uint64_t steps = 10;

    CHECK_INT(peg__nfa_match(nfa, peg__str("                    x"), &steps), PEG__MATCH_LIMIT);
    CHECK_INT(steps, 0);
    peg__nfa_free(nfa);
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static peg_verdict check_pattern(const char *pattern, const char *unit, size_t n,
                                 uint64_t max_steps, const char **ret_reason)
{
    const peg_checker_options options = {PEG_CHECKER_OPTIONS_INIT, .max_pattern_steps = max_steps};
    struct peg__buf text = PEG__BUF(4 << 20);
    peg_schema *schema = NULL;
    peg_checker *checker = NULL;
    peg_json_doc *doc = NULL;
    peg_verdict verdict;
    peg_error error;

    peg__buf_printf(&text, "{\"pattern\":\"%s\"}", pattern);
    CHECK_STATUS(peg_schema_compile(peg__buf_view(&text), NULL, &schema, &error), PEG_OK, error);
    peg__buf_clear(&text);
    peg__buf_putc(&text, '"');
    for (size_t i = 0; i < n; i++)
        peg__buf_puts(&text, unit);
    peg__buf_puts(&text, "x\"");
    CHECK_STATUS(peg_json_parse(peg__buf_view(&text), NULL, &doc, &error), PEG_OK, error);
    CHECK_STATUS(peg_checker_new(&options, &checker, &error), PEG_OK, error);
    verdict = peg_schema_check(schema, checker, peg_json_root(doc));
    *ret_reason = peg_checker_reason(checker);
    peg_checker_free(checker);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    peg__buf_free(&text);
    return verdict;
}

TEST(a_megabyte_of_blanks_gets_the_right_verdict)
{
    const char *reason;

    CHECK_INT(check_pattern("\\\\s+$", " ", 1 << 20, 0, &reason), PEG_INVALID);
    CHECK_INT(check_pattern("\\\\s+x$", " ", 1 << 20, 0, &reason), PEG_VALID);
    CHECK_STR(peg__str(reason), "");
}

TEST(a_check_ends_when_the_steps_for_patterns_do)
{
    const char *reason;

    CHECK_INT(check_pattern("\\\\s+$", " ", 100, 10000, &reason), PEG_INVALID);
    CHECK_INT(check_pattern("\\\\s+$", " ", 10000, 10000, &reason), PEG_UNDECIDED);
    CHECK_STR(peg__str(reason), "max_pattern_steps");
    /* by PCRE2, which has to look ahead */
    CHECK_INT(check_pattern("^(?=\\\\s)\\\\s*x$", " ", 100, 10000, &reason), PEG_VALID);
    CHECK_INT(check_pattern("(?=\\\\s)\\\\s+$", " ", 8100, 200000, &reason), PEG_UNDECIDED);
    CHECK_STR(peg__str(reason), "max_pattern_steps");
    CHECK_INT(check_pattern("^(?=(\\\\s+)+$)", " ", 100, 200000, &reason), PEG_UNDECIDED);
    CHECK_STR(peg__str(reason), "max_pattern_steps");
}

TORTURE(automaton_survives_any_allocation_failure)
{
    struct peg__nfa *nfa = NULL;
    const peg_status status = peg__nfa_new(peg__str("(a|b)*\\s+$"), &nfa);

    CHECK(status ? !nfa : nfa != NULL);
    peg__nfa_free(nfa);
    return status;
}
