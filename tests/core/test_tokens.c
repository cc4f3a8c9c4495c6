/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>

#include "../t.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"

/* ---- fixture ----------------------------------------------------------------------------------
 */

static size_t estimate(const char *encoding, size_t len)
{
    static const char text[64];
    size_t n = SIZE_MAX;
    peg_error error;

    CHECK_STATUS(peg_token_count_estimate(encoding, peg__strn(text, len), &n, &error), PEG_OK,
                 error);
    return n;
}

static size_t count_words(peg_str text, void *user)
{
    (void)text;
    return *(const size_t *)user;
}

static size_t fail_always(peg_str text, void *user)
{
    (void)text;
    (void)user;
    return SIZE_MAX;
}

static void forget(const char *encoding)
{
    CHECK_INT(peg_token_counter_register(encoding, NULL, NULL, NULL), PEG_OK);
}

/* ---- tests --------------------------------------------------------------------------------------
 */

TEST(tokens_are_four_bytes_each_rounded_up)
{
    static const char *const encodings[] = {"gpt2",        "r50k_base",  "p50k_base", "p50k_edit",
                                            "cl100k_base", "o200k_base", "gemini",    "llama2"};

    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(estimate(encodings[i], 0), 0);
        CHECK_INT(estimate(encodings[i], 1), 1);
        CHECK_INT(estimate(encodings[i], 4), 1);
        CHECK_INT(estimate(encodings[i], 5), 2);
        CHECK_INT(estimate(encodings[i], 8), 2);
    }
}

TEST(tokens_of_claude_are_three_and_a_half_bytes_each_rounded_up)
{
    static const size_t expected[] = {0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5};

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        CHECK_INT(estimate("claude", i), expected[i]);
}

TEST(tokens_of_a_huge_text_do_not_overflow)
{
    size_t n = 0;

    CHECK_INT(peg_token_count_estimate("claude", peg__strn("", SIZE_MAX), &n, NULL), PEG_OK);
    CHECK(n == SIZE_MAX / 7 * 2 + (SIZE_MAX % 7 * 2 + 6) / 7);
    CHECK_INT(peg_token_count_estimate("gpt2", peg__strn("", SIZE_MAX), &n, NULL), PEG_OK);
    CHECK(n == SIZE_MAX / 4 + 1);
}

TEST(tokens_of_an_unknown_encoding_are_refused_with_a_list_of_those_there_are)
{
    peg_error error;
    size_t n = 7;

    CHECK_INT(peg_token_count_estimate("word", peg__str("x"), &n, &error), PEG_ENOTFOUND);
    CHECK_STR(peg__str(error.code), "E_TOKENS_UNKNOWN");
    CHECK_STR(peg__str(error.message),
              "there is no encoding 'word'; there are gpt2, r50k_base, p50k_base, p50k_edit, "
              "cl100k_base, o200k_base, gemini, llama2, claude");
    CHECK_INT(n, 7);
    CHECK_INT(peg_token_count_estimate(NULL, peg__str("x"), &n, &error), PEG_ENOTFOUND);
}

TEST(tokens_can_be_counted_by_the_host)
{
    size_t answer = 42;

    CHECK_INT(peg_token_counter_register("mine", count_words, &answer, NULL), PEG_OK);

    CHECK_INT(estimate("mine", 10), 42);
    forget("mine");
    CHECK_INT(peg_token_count_estimate("mine", peg__str("x"), &answer, NULL), PEG_ENOTFOUND);
}

TEST(tokens_counted_by_the_host_replace_the_built_in_estimate_until_they_are_removed)
{
    size_t answer = 42;
    size_t other = 43;

    CHECK_INT(peg_token_counter_register("claude", count_words, &answer, NULL), PEG_OK);
    CHECK_INT(estimate("claude", 7), 42);
    CHECK_INT(peg_token_counter_register("claude", count_words, &other, NULL), PEG_OK);
    CHECK_INT(estimate("claude", 7), 43);
    CHECK_INT(estimate("gpt2", 7), 2);

    forget("claude");

    CHECK_INT(estimate("claude", 7), 2);
    forget("claude");
    CHECK_INT(estimate("claude", 7), 2);
}

TEST(tokens_fall_back_to_four_bytes_each_when_the_host_fails)
{
    CHECK_INT(peg_token_counter_register("mine", fail_always, NULL, NULL), PEG_OK);

    CHECK_INT(estimate("mine", 9), 3);
    forget("mine");
}

TEST(tokens_refuse_names_that_are_none)
{
    static const char *const names[] = {"", "Claude", "a b", "caf\xC3\xA9", "a/b", "a\n", NULL};
    char longest[66];
    peg_error error;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK_INT(peg_token_counter_register(names[i], fail_always, NULL, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    }
    memset(longest, 'a', 65);
    longest[65] = '\0';
    CHECK_INT(peg_token_counter_register(longest, fail_always, NULL, &error), PEG_EINVAL);
    longest[64] = '\0';
    CHECK_INT(peg_token_counter_register(longest, fail_always, NULL, &error), PEG_OK);
    CHECK_INT(estimate(longest, 4), 1);
    forget(longest);
}

TEST(tokens_have_room_for_64_encodings)
{
    char name[16];
    peg_error error;
    size_t n;

    for (int i = 0; i < PEG_LIMIT_TOKEN_ENCODINGS - 9; i++) {
        snprintf(name, sizeof(name), "mine%d", i);
        CHECK_INT(peg_token_counter_register(name, fail_always, NULL, NULL), PEG_OK);
    }

    CHECK_INT(peg_token_counter_register("more", fail_always, NULL, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_REGISTRY_FULL");
    CHECK(strstr(error.message, "(token_encodings)"));
    CHECK_INT(peg_token_counter_register("mine0", fail_always, NULL, &error), PEG_OK);
    CHECK_INT(peg_token_counter_register("gpt2", fail_always, NULL, &error), PEG_OK);
    CHECK_INT(peg_token_count_estimate("more", peg__str("x"), &n, &error), PEG_ENOTFOUND);
    forget("mine20");
    CHECK_INT(peg_token_counter_register("more", fail_always, NULL, &error), PEG_OK);

    forget("gpt2");
    forget("more");
    for (int i = 0; i < PEG_LIMIT_TOKEN_ENCODINGS - 9; i++) {
        snprintf(name, sizeof(name), "mine%d", i);
        forget(name);
    }
}

TEST(tokens_list_their_encodings_in_order_of_registration)
{
    char names[PEG_LIMIT_TOKEN_ENCODINGS][PEG__TOKEN_COUNTER_NAME];

    CHECK_INT(peg__token_counter_names(names), 9);
    CHECK_INT(peg_token_counter_register("b", fail_always, NULL, NULL), PEG_OK);
    CHECK_INT(peg_token_counter_register("a", fail_always, NULL, NULL), PEG_OK);
    CHECK_INT(peg_token_counter_register("gpt2", fail_always, NULL, NULL), PEG_OK);

    CHECK_INT(peg__token_counter_names(names), 11);
    CHECK_STR(peg__str(names[0]), "gpt2");
    CHECK_STR(peg__str(names[8]), "claude");
    CHECK_STR(peg__str(names[9]), "b");
    CHECK_STR(peg__str(names[10]), "a");
    forget("b");
    CHECK_INT(peg__token_counter_names(names), 10);
    CHECK_STR(peg__str(names[9]), "a");
    forget("a");
    forget("gpt2");
}

/* ---- threads ----------------------------------------------------------------------------- */

static void *register_and_forget(void *user)
{
    static size_t answer = 5;

    for (int i = 0; i < 2000; i++) {
        if (peg_token_counter_register(user, count_words, &answer, NULL))
            return user;
        if (peg_token_counter_register(user, NULL, NULL, NULL))
            return user;
    }
    return NULL;
}

/* NULL if all estimates were right. */
static void *count_all_the_time(void *user)
{
    for (int i = 0; i < 4000; i++) {
        size_t n = 0;

        if (peg_token_count_estimate("claude", peg__strn("1234567", 7), &n, NULL) ||
            (n != 2 && n != 5))
            return user;
    }
    return NULL;
}

TEST(tokens_are_counted_while_other_threads_register)
{
    static char claude[] = "claude";
    static char mine[] = "mine";
    pthread_t threads[4];
    void *failed = NULL;

    CHECK_INT(pthread_create(&threads[0], NULL, register_and_forget, claude), 0);
    CHECK_INT(pthread_create(&threads[1], NULL, register_and_forget, mine), 0);
    CHECK_INT(pthread_create(&threads[2], NULL, count_all_the_time, claude), 0);
    CHECK_INT(pthread_create(&threads[3], NULL, count_all_the_time, claude), 0);

    for (int i = 0; i < 4; i++) {
        CHECK_INT(pthread_join(threads[i], &failed), 0);
        CHECK(!failed);
    }
}
