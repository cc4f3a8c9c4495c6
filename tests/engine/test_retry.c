/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include "../t.h"

/* ---- fixture -------------------------------------------------------------------------- */

static const struct peg__retry usual = {
    .max_tries = 4, .backoff_ms = 500, .backoff_max_ms = 30000, .seed = 1};

static int64_t wait_after(const struct peg__retry *retry, int n, long status, const char *code)
{
    const struct peg__http_answer answer = {.status = status, .retry_after_ms = -1};

    return peg__retry_wait_ms(retry, &(struct peg__try){.n = n, .answer = &answer, .code = code});
}

static int64_t wait_asked(const struct peg__retry *retry, int64_t asked_ms)
{
    const struct peg__http_answer answer = {.status = 429, .retry_after_ms = asked_ms};

    return peg__retry_wait_ms(
        retry, &(struct peg__try){.n = 1, .answer = &answer, .code = "E_ENGINE_RATE_LIMITED"});
}

/* ---- when -------------------------------------------------------------------------------- */

TEST(statuses_that_may_pass_are_tried_again)
{
    static const long passing[] = {408, 409, 429, 500, 502, 503, 504, 529};

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        CHECK(wait_after(&usual, 1, passing[i], "E_ENGINE_FAILED") >= 0);
}

TEST(statuses_that_stay_are_not)
{
    static const long staying[] = {400, 401, 403, 404, 405, 413, 422, 501};

    for (size_t i = 0; i < sizeof(staying) / sizeof(staying[0]); i++)
        CHECK_INT(wait_after(&usual, 1, staying[i], "E_ENGINE_OVERLOADED"), -1);
}

TEST(connections_that_failed_are_tried_again)
{
    CHECK(wait_after(&usual, 1, 0, "E_ENGINE_TRANSPORT") >= 0);
    CHECK(wait_after(&usual, 1, 200, "E_ENGINE_TRANSPORT") >= 0);
}

TEST(time_that_ran_out_is_tried_again_before_the_server_began_to_answer)
{
    CHECK(wait_after(&usual, 1, 0, "E_ENGINE_TIMEOUT") >= 0);
    CHECK_INT(wait_after(&usual, 1, 200, "E_ENGINE_TIMEOUT"), -1);
}

TEST(errors_that_a_stream_tells_are_tried_again_if_they_may_pass)
{
    CHECK(wait_after(&usual, 1, 200, "E_ENGINE_OVERLOADED") >= 0);
    CHECK(wait_after(&usual, 1, 200, "E_ENGINE_RATE_LIMITED") >= 0);
    CHECK_INT(wait_after(&usual, 1, 200, "E_ENGINE_REPLY"), -1);
    CHECK_INT(wait_after(&usual, 1, 200, "E_ENGINE_REQUEST"), -1);
    CHECK_INT(wait_after(&usual, 1, 0, "E_CANCELED"), -1);
    CHECK_INT(wait_after(&usual, 1, 0, "E_DEADLINE_EXCEEDED"), -1);
    CHECK_INT(wait_after(&usual, 1, 0, "E_OUT_OF_MEMORY"), -1);
}

TEST(what_has_content_is_not_asked_again)
{
    const struct peg__http_answer answer = {.status = 200, .retry_after_ms = -1};
    const struct peg__try failed = {
        .n = 1, .answer = &answer, .code = "E_ENGINE_TRANSPORT", .has_content = true};

    CHECK_INT(peg__retry_wait_ms(&usual, &failed), -1);
}

TEST(there_are_so_many_tries_and_no_more)
{
    CHECK(wait_after(&usual, 3, 503, "E_ENGINE_OVERLOADED") >= 0);
    CHECK_INT(wait_after(&usual, 4, 503, "E_ENGINE_OVERLOADED"), -1);
}

/* ---- how long ------------------------------------------------------------------------------ */

TEST(each_wait_is_twice_as_long_give_or_take_a_tenth)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        const struct peg__retry retry = {
            .max_tries = 10, .backoff_ms = 500, .backoff_max_ms = 30000, .seed = seed};

        for (int n = 1; n <= 5; n++) {
            const int64_t middle = 500 << (n - 1);
            const int64_t ms = wait_after(&retry, n, 503, "E_ENGINE_OVERLOADED");

            CHECK(ms >= middle - middle / 10 && ms <= middle + middle / 10);
        }
    }
}

TEST(the_wait_does_not_grow_beyond_its_maximum)
{
    struct peg__retry retry = {.max_tries = 1000, .backoff_ms = 500, .backoff_max_ms = 4000};

    for (retry.seed = 0; retry.seed < 100; retry.seed++) {
        const int64_t ms = wait_after(&retry, 900, 503, "E_ENGINE_OVERLOADED");

        CHECK(ms >= 3600 && ms <= 4000);
    }
}

TEST(waits_differ_by_seed_and_are_the_same_for_one)
{
    struct peg__retry retry = usual;
    const int64_t first = wait_after(&retry, 1, 503, "E_ENGINE_OVERLOADED");
    bool has_other = false;

    CHECK_INT(wait_after(&retry, 1, 503, "E_ENGINE_OVERLOADED"), first);
    for (retry.seed = 2; retry.seed < 20; retry.seed++)
        has_other |= wait_after(&retry, 1, 503, "E_ENGINE_OVERLOADED") != first;
    CHECK(has_other);
}

TEST(enormous_waits_do_not_overflow)
{
    const struct peg__retry retry = {
        .max_tries = 100, .backoff_ms = INT64_MAX / 3, .backoff_max_ms = INT64_MAX};

    CHECK(wait_after(&retry, 90, 503, "E_ENGINE_OVERLOADED") > 0);
}

TEST(what_the_server_asks_for_is_waited)
{
    CHECK_INT(wait_asked(&usual, 0), 0);
    CHECK_INT(wait_asked(&usual, 7000), 7000);
    CHECK_INT(wait_asked(&usual, 30000), 30000);
}

TEST(a_server_that_asks_for_too_much_is_given_up)
{
    CHECK_INT(wait_asked(&usual, 30001), -1);
}
