/* SPDX-License-Identifier: Apache-2.0 */

#include "base/quota.h"

#include <pthread.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

enum { ANNA = 1, BEN = 2, CLEO = 3 };

static struct peg__quota make(size_t max, size_t reserve, size_t floor, bool has_shares)
{
    const struct peg__quota_limits limits = {max, reserve, floor, has_shares};
    struct peg__quota quota;

    CHECK_INT(peg__quota_init(&quota, &limits), PEG_OK);
    return quota;
}

/* Takes one by one until it is refused. */
static size_t take_all(struct peg__quota *quota, uint16_t key, enum peg__quota_rule rule)
{
    size_t n = 0;

    while (peg__quota_take(quota, key, 1, rule) == PEG_OK)
        n++;
    return n;
}

TEST(a_quota_without_shares_gives_all_it_has_and_no_more)
{
    struct peg__quota quota = make(100, 0, 0, false);

    CHECK_INT(peg__quota_take(&quota, ANNA, 101, PEG__QUOTA_BEGIN), PEG_ELIMIT);
    CHECK_INT(peg__quota_used(&quota), 0);
    CHECK_INT(peg__quota_take(&quota, ANNA, 100, PEG__QUOTA_BEGIN), PEG_OK);
    CHECK_INT(peg__quota_take(&quota, BEN, 1, PEG__QUOTA_ADMITTED), PEG_ELIMIT);
    CHECK_INT(peg__quota_share(&quota, ANNA), 0);
    CHECK_INT(peg__quota_largest(&quota), 0);
    peg__quota_give_back(&quota, ANNA, 100);
    CHECK_INT(peg__quota_used(&quota), 0);
    peg__quota_destroy(&quota);
}

TEST(a_holder_alone_gets_three_quarters_and_two_get_three_sevenths_each)
{
    struct peg__quota quota = make(700, 0, 0, true);
    size_t anna = take_all(&quota, ANNA, PEG__QUOTA_BEGIN);
    size_t ben;

    CHECK_INT(anna, 525);
    ben = take_all(&quota, BEN, PEG__QUOTA_BEGIN);
    CHECK(ben > 100 && ben < 175);
    /* Anna has to give some back before both have the same. */
    peg__quota_give_back(&quota, ANNA, anna);
    peg__quota_give_back(&quota, BEN, ben);
    anna = ben = 0;
    while (peg__quota_take(&quota, ANNA, 1, PEG__QUOTA_BEGIN) == PEG_OK) {
        anna++;
        ben += peg__quota_take(&quota, BEN, 1, PEG__QUOTA_BEGIN) == PEG_OK;
    }
    CHECK_INT(anna, 300);
    CHECK(ben >= 299 && ben <= 300);
    CHECK_INT(peg__quota_share(&quota, ANNA), 300);
    peg__quota_destroy(&quota);
}

TEST(whoever_comes_last_still_finds_something)
{
    struct peg__quota quota = make(10000, 0, 0, true);

    for (uint16_t key = 1; key <= 5; key++)
        CHECK(take_all(&quota, key, PEG__QUOTA_BEGIN) > 0);
    CHECK(peg__quota_used(&quota) < 10000);
    peg__quota_destroy(&quota);
}

TEST(key_zero_has_no_share_to_keep_to)
{
    struct peg__quota quota = make(100, 0, 0, true);

    CHECK_INT(take_all(&quota, 0, PEG__QUOTA_BEGIN), 100);
    CHECK_INT(peg__quota_share(&quota, 0), 0);
    CHECK_INT(peg__quota_largest(&quota), 0);
    peg__quota_destroy(&quota);
}

TEST(the_reserve_is_for_what_has_begun)
{
    struct peg__quota quota = make(100, 10, 0, true);

    CHECK_INT(take_all(&quota, 0, PEG__QUOTA_BEGIN), 90);
    CHECK_INT(peg__quota_take(&quota, ANNA, 1, PEG__QUOTA_SHARED), PEG_ELIMIT);
    CHECK_INT(take_all(&quota, ANNA, PEG__QUOTA_ADMITTED), 10);
    peg__quota_destroy(&quota);
}

TEST(shares_are_of_what_may_begin)
{
    struct peg__quota quota = make(110, 10, 0, true);

    CHECK_INT(take_all(&quota, ANNA, PEG__QUOTA_BEGIN), 75);
    CHECK_INT(take_all(&quota, ANNA, PEG__QUOTA_SHARED), 0);
    CHECK_INT(take_all(&quota, ANNA, PEG__QUOTA_ADMITTED), 35);
    peg__quota_destroy(&quota);
}

TEST(a_holder_with_little_has_its_floor_when_others_have_taken_all)
{
    struct peg__quota quota = make(100, 0, 5, true);

    peg__quota_add(&quota, ANNA, 100);
    CHECK(peg__quota_has(&quota, BEN, 5, PEG__QUOTA_BEGIN));
    CHECK(!peg__quota_has(&quota, BEN, 6, PEG__QUOTA_BEGIN));
    CHECK_INT(take_all(&quota, BEN, PEG__QUOTA_BEGIN), 5);
    CHECK(!peg__quota_has(&quota, 0, 1, PEG__QUOTA_BEGIN));
    peg__quota_destroy(&quota);
}

TEST(what_is_there_is_counted_and_the_largest_holder_found)
{
    struct peg__quota quota = make(100, 0, 0, true);

    CHECK_INT(peg__quota_largest(&quota), 0);
    peg__quota_add(&quota, ANNA, 40);
    peg__quota_add(&quota, PEG_LIMIT_QUOTA_KEYS - 1, 60);
    CHECK(!peg__quota_is_exceeded(&quota));
    CHECK_INT(peg__quota_take(&quota, CLEO, 1, PEG__QUOTA_ADMITTED), PEG_ELIMIT);
    peg__quota_add(&quota, CLEO, 1);
    CHECK(peg__quota_is_exceeded(&quota));
    CHECK_INT(peg__quota_largest(&quota), PEG_LIMIT_QUOTA_KEYS - 1);
    peg__quota_give_back(&quota, PEG_LIMIT_QUOTA_KEYS - 1, 60);
    CHECK_INT(peg__quota_largest(&quota), ANNA);
    CHECK(!peg__quota_is_exceeded(&quota));
    peg__quota_destroy(&quota);
}

TEST(a_holder_whose_name_becomes_known_takes_along_what_it_has)
{
    struct peg__quota quota = make(100, 0, 0, true);

    peg__quota_add(&quota, ANNA, 40);
    peg__quota_move(&quota, ANNA, BEN, 30);
    CHECK_INT(peg__quota_share(&quota, ANNA), 10);
    CHECK_INT(peg__quota_share(&quota, BEN), 30);
    CHECK_INT(peg__quota_used(&quota), 40);
    peg__quota_move(&quota, BEN, 0, 30);
    CHECK_INT(peg__quota_share(&quota, BEN), 0);
    peg__quota_destroy(&quota);
}

TEST(amounts_that_wrap_around_are_refused)
{
    struct peg__quota quota = make(SIZE_MAX / 4, 0, 0, true);

    peg__quota_add(&quota, ANNA, 10);
    CHECK(!peg__quota_has(&quota, BEN, SIZE_MAX - 5, PEG__QUOTA_ADMITTED));
    CHECK(!peg__quota_has(&quota, 0, SIZE_MAX, PEG__QUOTA_BEGIN));
    peg__quota_destroy(&quota);
}

TEST(a_quota_that_is_all_zero_refuses_everything)
{
    struct peg__quota quota = {0};

    CHECK_INT(peg__quota_take(&quota, ANNA, 1, PEG__QUOTA_ADMITTED), PEG_ELIMIT);
    peg__quota_destroy(&quota);
}

TEST(keys_depend_on_the_secret_and_are_never_zero)
{
    const struct peg__hash_key one = {1, 2};
    const struct peg__hash_key other = {3, 4};
    unsigned n_same = 0;

    for (int i = 0; i < 5000; i++) {
        const peg_str name = {(const char *)&i, sizeof(i)};
        const uint16_t key = peg__quota_key(one, name);

        CHECK(key > 0 && key < PEG_LIMIT_QUOTA_KEYS);
        CHECK_INT(peg__quota_key(one, name), key);
        n_same += peg__quota_key(other, name) == key;
    }
    CHECK(n_same < 50);
}

enum { N_THREADS = 4, N_ROUNDS = 20000 };

struct race {
    struct peg__quota quota;
};

static void *take_and_give_back(void *user)
{
    struct race *race = (struct race *)user;

    for (int i = 0; i < N_ROUNDS; i++) {
        const uint16_t key = (uint16_t)(1 + i % 3);

        if (peg__quota_take(&race->quota, key, 7, PEG__QUOTA_BEGIN) == PEG_OK)
            peg__quota_give_back(&race->quota, key, 7);
    }
    return NULL;
}

TEST(threads_that_take_and_give_back_leave_nothing)
{
    struct race race = {.quota = make(20, 0, 0, true)};
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, take_and_give_back, &race), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(peg__quota_used(&race.quota), 0);
    CHECK_INT(peg__quota_largest(&race.quota), 0);
    peg__quota_destroy(&race.quota);
}

TORTURE(a_quota_without_memory_is_none)
{
    struct peg__quota quota;
    const peg_status status =
        peg__quota_init(&quota, &(struct peg__quota_limits){.max = 1, .has_shares = true});

    if (status)
        CHECK_INT(peg__quota_take(&quota, 1, 1, PEG__QUOTA_BEGIN), PEG_ELIMIT);
    peg__quota_destroy(&quota);
    return status;
}
