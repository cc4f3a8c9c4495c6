/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/regex.h"

#include <pthread.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

enum { ENOUGH_FOR_JIT = 40 };

/* ---- fixture: a regex, a matcher and a long subject -------------------------- */

struct world {
    struct peg__regex *regex;
    struct peg__matcher *matcher;
    char *text;
    size_t len;
};

static struct world world_new(const char *pattern)
{
    struct world w = {0};
    peg_error error;

    CHECK_STATUS(peg__regex_new(peg__str(pattern), false, &w.regex, &error), PEG_OK, error);
    w.matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    CHECK(w.matcher);
    return w;
}

/* A subject of len bytes: `unit` again and again. */
static void world_fill(struct world *w, const char *unit, size_t len)
{
    peg__free(w->text);
    w->text = peg__alloc(len);
    CHECK(w->text);
    w->len = len;
    for (size_t i = 0; i < len; i++)
        w->text[i] = unit[i % strlen(unit)];
}

static enum peg__match world_match(const struct world *w)
{
    return peg__regex_match(w->regex, w->matcher, (peg_str){w->text, w->len});
}

static enum peg__match match(const struct world *w, const char *subject)
{
    return peg__regex_match(w->regex, w->matcher, peg__str(subject));
}

static void warm_up(const struct world *w)
{
    for (int i = 0; i < ENOUGH_FOR_JIT; i++)
        match(w, "");
}

static void world_done(struct world *w)
{
    peg__regex_free(w->regex);
    peg__matcher_free(w->matcher);
    peg__free(w->text);
}

/* ---- compiling ------------------------------------------------------------------ */

TEST(regex_tells_where_a_pattern_is_wrong)
{
    struct peg__regex *regex = NULL;
    peg_error error;

    CHECK_INT(peg__regex_new(peg__str("ab(c"), false, &regex, &error), PEG_EPARSE);

    CHECK_STR(peg__str(error.code), "E_PATTERN_SYNTAX");
    CHECK_INT(error.offset, 4);
    CHECK(error.message[0]);
    CHECK(!regex);
    CHECK_INT(peg__regex_new(peg__str("("), false, &regex, NULL), PEG_EPARSE);
}

TEST(regex_refuses_what_grows_too_large)
{
    struct peg__regex *regex = NULL;
    peg_error error;

    CHECK_INT(peg__regex_new(peg__str("((a{100}){100}){100}"), false, &regex, &error), PEG_ELIMIT);

    CHECK_STR(peg__str(error.code), "E_PATTERN_TOO_LARGE");
}

TEST(regex_ignores_case_if_asked_to)
{
    struct world w = world_new("x");

    peg__regex_free(w.regex);
    CHECK_INT(peg__regex_new(peg__str("straße"), true, &w.regex, NULL), PEG_OK);

    CHECK_INT(match(&w, "STRAßE"), PEG__MATCH_YES);
    CHECK_INT(match(&w, "STRASSE"), PEG__MATCH_NO);
    world_done(&w);
}

TEST(regex_accepts_nothing_to_free)
{
    CHECK(!peg__regex_free(NULL));
    CHECK(!peg__matcher_free(NULL));
}

/* ---- matching -------------------------------------------------------------------- */

TEST(match_finds_a_match_anywhere)
{
    struct world w = world_new("b+c");

    CHECK_INT(match(&w, "aabbc"), PEG__MATCH_YES);
    CHECK_INT(match(&w, "aabb"), PEG__MATCH_NO);
    CHECK(peg__regex_bytes(w.regex) > 100);
    world_done(&w);
}

TEST(match_takes_an_empty_subject_without_a_pointer)
{
    struct world w = world_new("^$");

    for (int i = 0; i < ENOUGH_FOR_JIT; i++)
        CHECK_INT(peg__regex_match(w.regex, w.matcher, (peg_str){NULL, 0}), PEG__MATCH_YES);
    world_done(&w);
}

TEST(match_says_the_same_before_and_after_machine_code)
{
    struct world w = world_new("^(?:[a-z]+-)*[a-z]+$");

    for (int i = 0; i < ENOUGH_FOR_JIT; i++) {
        CHECK_INT(match(&w, "a-slug-of-words"), PEG__MATCH_YES);
        CHECK_INT(match(&w, "not-a slug"), PEG__MATCH_NO);
    }
    world_done(&w);
}

TEST(match_finds_the_only_match_wherever_it_is_in_a_long_subject)
{
    struct world w = world_new("x(?=y)");

    world_fill(&w, "é", 4000);
    for (size_t at = 0; at + 2 <= w.len; at += 2) {
        memcpy(w.text + at, "xy", 2);
        CHECK_INT(world_match(&w), PEG__MATCH_YES);
        memcpy(w.text + at, "é", 2);
    }
    CHECK_INT(world_match(&w), PEG__MATCH_NO);
    world_done(&w);
}

TEST(match_finds_an_empty_match_at_the_end_of_a_long_subject)
{
    struct world w = world_new("(?<=!)$");

    world_fill(&w, "a", 5000);
    CHECK_INT(world_match(&w), PEG__MATCH_NO);
    w.text[w.len - 1] = '!';
    CHECK_INT(world_match(&w), PEG__MATCH_YES);
    world_done(&w);
}

TEST(match_ends_a_catastrophic_search)
{
    struct world w = world_new("^(?:a+)+$");
    const char *subject = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";

    CHECK_INT(match(&w, subject), PEG__MATCH_LIMIT);
    warm_up(&w);
    CHECK_INT(match(&w, subject), PEG__MATCH_LIMIT);
    world_done(&w);

    w = world_new("(?:a+)+$");
    CHECK_INT(match(&w, subject), PEG__MATCH_LIMIT);
    world_done(&w);
}

/* Each letter more doubles the steps: twelve take some thousands. */
TEST(match_counts_steps_and_not_time)
{
    struct world w = world_new("^(?:a+)+$");
    struct peg__matcher *strict = peg__matcher_new(100);
    const peg_str subject = peg__str("aaaaaaaaaaaa!");

    CHECK(strict);
    for (int i = 0; i < ENOUGH_FOR_JIT; i++) {
        CHECK_INT(peg__regex_match(w.regex, w.matcher, subject), PEG__MATCH_NO);
        CHECK_INT(peg__regex_match(w.regex, strict, subject), PEG__MATCH_LIMIT);
    }
    peg__matcher_free(strict);
    world_done(&w);
}

TEST(match_ends_a_search_that_starts_anew_at_each_of_many_letters)
{
    struct world w = world_new("\\p{L}+\\d");

    world_fill(&w, "é", 256 << 10);
    CHECK_INT(world_match(&w), PEG__MATCH_LIMIT);
    world_done(&w);
}

/* Each step of one repetition makes the other run to the end of the subject. */
TEST(match_ends_a_search_whose_only_start_takes_a_square)
{
    struct world w = world_new("^a*a*[bc]");

    world_fill(&w, "a", 1 << 20);
    CHECK_INT(world_match(&w), PEG__MATCH_LIMIT);
    world_done(&w);
}

TEST(match_ends_a_search_that_grows_expensive_when_half_is_done)
{
    struct world w = world_new("(?=a.*b)");

    world_fill(&w, "x", 4 << 20);
    memset(w.text + w.len / 2, 'a', w.len / 2);
    CHECK_INT(world_match(&w), PEG__MATCH_LIMIT);
    world_done(&w);
}

/* There the same work takes fifty times the CPU time, which is what bounds a long search. */
static bool is_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

TEST(match_finishes_honest_searches_of_a_megabyte)
{
    static const struct {
        const char *pattern;
        enum peg__match expected;
    } cases[] = {
        {"[a-z]+\\s$", PEG__MATCH_NO},         {"[a-z]+\\s", PEG__MATCH_YES},
        {"^(?:[a-z]+\\s?)*$", PEG__MATCH_YES}, {"^(?:[a-z]|\\s)*$", PEG__MATCH_YES},
        {"foo.*bar", PEG__MATCH_NO},           {"\\w+@\\w+\\.com", PEG__MATCH_NO},
    };

    if (is_under_valgrind())
        SKIP("valgrind is too slow for the bound on CPU time");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w = world_new(cases[i].pattern);

        world_fill(&w, "hello world ", 1 << 20);
        w.text[w.len - 1] = 'x';
        CHECK_INT(world_match(&w), cases[i].expected);
        CHECK_INT(world_match(&w), cases[i].expected);
        world_done(&w);
    }
}

TEST(match_allocates_nothing_once_warm)
{
    struct world w;

    if (is_under_valgrind())
        SKIP("valgrind is too slow for the bound on CPU time");
    w = world_new("^(?:[a-z]|\\s)*$");
    world_fill(&w, "hello world ", 32 << 10);
    CHECK_INT(world_match(&w), PEG__MATCH_YES); /* takes a larger stack */
    peg__mem_fail_at(1);
    CHECK_INT(world_match(&w), PEG__MATCH_YES);
    CHECK_INT(match(&w, "short"), PEG__MATCH_YES);
    peg__mem_fail_at(0);
    world_done(&w);
}

/* ---- threads --------------------------------------------------------------------- */

static void *match_often(void *user)
{
    const struct peg__regex *regex = user;
    struct peg__matcher *matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    size_t n_right = 0;

    for (int i = 0; matcher && i < 1000; i++)
        n_right += peg__regex_match(regex, matcher, peg__str("some-slug")) == PEG__MATCH_YES;
    peg__matcher_free(matcher);
    return n_right == 1000 ? user : NULL;
}

TEST(regex_is_matched_by_many_threads_while_machine_code_appears)
{
    for (int round = 0; round < 20; round++) {
        struct world w = world_new("^(?:[a-z]+-?)+$");
        pthread_t threads[4];
        void *result;

        for (int i = 0; i < 4; i++)
            CHECK_INT(pthread_create(&threads[i], NULL, match_often, w.regex), 0);
        for (int i = 0; i < 4; i++) {
            CHECK_INT(pthread_join(threads[i], &result), 0);
            CHECK(result == w.regex);
        }
        world_done(&w);
    }
}

/* ---- out of memory ------------------------------------------------------------------ */

TORTURE(a_long_subject_survives_any_allocation_failure)
{
    static char text[100000];
    struct peg__regex *regex = NULL;
    struct peg__matcher *matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    peg_status status = peg__regex_new(peg__str("b$"), false, &regex, NULL);
    enum peg__match result = PEG__MATCH_NO;

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 'b';
    if (!status && !matcher)
        status = PEG_ENOMEM;
    if (!status)
        result = peg__regex_match(regex, matcher, (peg_str){text, sizeof(text)});
    if (result == PEG__MATCH_NOMEM)
        status = PEG_ENOMEM;
    else if (!status && result != PEG__MATCH_YES)
        status = PEG_EINVAL;
    peg__regex_free(regex);
    peg__matcher_free(matcher);
    return status;
}

TORTURE(regex_survives_any_allocation_failure)
{
    struct peg__regex *regex = NULL;
    struct peg__matcher *matcher = NULL;
    peg_status status = peg__regex_new(peg__str("^(?:[a-z]|-)*$"), false, &regex, NULL);
    enum peg__match result = PEG__MATCH_YES;

    if (status == PEG_OK)
        matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    if (status == PEG_OK && !matcher)
        status = PEG_ENOMEM;
    for (int i = 0; status == PEG_OK && i < ENOUGH_FOR_JIT && result == PEG__MATCH_YES; i++)
        result = peg__regex_match(regex, matcher, peg__str("a-b-c"));
    if (result == PEG__MATCH_NOMEM)
        status = PEG_ENOMEM;
    else if (result != PEG__MATCH_YES)
        status = PEG_EINVAL;
    peg__regex_free(regex);
    peg__matcher_free(matcher);
    return status;
}
