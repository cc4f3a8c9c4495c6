/* SPDX-License-Identifier: Apache-2.0 */

#include "bus/redis/ledger.h"

#include "../t.h"
#include "base/limits.h"

enum { MINUTE_MS = 60000 };
#define START_MS (INT64_C(1700000000) * 1000)

static struct redis_ledger *new_ledger(void)
{
    struct redis_ledger *ledger = NULL;

    CHECK_INT(redis_ledger_new(&ledger), PEG_OK);
    redis_ledger_sweep(ledger, START_MS);
    return ledger;
}

static struct bus_key key_of(uint16_t account, bool admits)
{
    return (struct bus_key){
        .id = {.len = 32}, .what = BUS_RESULT, .account = account, .admits = admits};
}

static bool write_one(struct redis_ledger *ledger, uint16_t account, bool admits, size_t len,
                      int64_t keep_ms)
{
    const struct bus_key key = key_of(account, admits);
    struct redis_cost cost;

    if (redis_ledger_take(ledger, &key, len, &cost))
        return false;
    redis_ledger_keep(ledger, &cost, START_MS + keep_ms);
    return true;
}

TEST(what_is_written_counts_until_its_time_is_over)
{
    struct redis_ledger *ledger = new_ledger();

    CHECK(write_one(ledger, 1, true, 100, 5 * MINUTE_MS));
    CHECK(write_one(ledger, 1, false, 100, 5 * MINUTE_MS));
    CHECK(write_one(ledger, 2, false, 1 << 20, 9 * MINUTE_MS));
    CHECK_INT(redis_ledger_len(ledger), 3);
    redis_ledger_sweep(ledger, START_MS + 5 * MINUTE_MS - 1);
    CHECK_INT(redis_ledger_len(ledger), 3);
    redis_ledger_sweep(ledger, START_MS + 6 * MINUTE_MS);
    CHECK_INT(redis_ledger_len(ledger), 1);
    redis_ledger_sweep(ledger, START_MS + 10 * MINUTE_MS);

    CHECK_INT(redis_ledger_len(ledger), 0);
    redis_ledger_free(ledger);
}

TEST(what_was_not_written_is_given_back)
{
    struct redis_ledger *ledger = new_ledger();
    const struct bus_key key = key_of(1, true);
    struct redis_cost cost;

    CHECK_INT(redis_ledger_take(ledger, &key, 100, &cost), PEG_OK);
    CHECK_INT(redis_ledger_len(ledger), 1);
    redis_ledger_give_back(ledger, &cost);

    CHECK_INT(redis_ledger_len(ledger), 0);
    redis_ledger_free(ledger);
}

TEST(registers_of_calls_without_an_identity_do_not_count)
{
    struct redis_ledger *ledger = new_ledger();
    struct bus_key key = key_of(1, true);
    struct redis_cost cost;

    key.id.len = 16;
    CHECK_INT(redis_ledger_take(ledger, &key, 100, &cost), PEG_OK);
    redis_ledger_keep(ledger, &cost, START_MS);
    redis_ledger_give_back(ledger, &cost);

    CHECK_INT(redis_ledger_len(ledger), 0);
    redis_ledger_free(ledger);
}

TEST(one_account_leaves_something_to_the_next)
{
    struct redis_ledger *ledger = new_ledger();
    size_t n = 0;

    while (write_one(ledger, 1, false, 4 << 20, MINUTE_MS))
        n++;
    CHECK(n > 0 && n < PEG_LIMIT_BUS_LARGE_BYTES / (4 << 20));
    CHECK(write_one(ledger, 2, false, 4 << 20, MINUTE_MS));

    /* A short result of an admitted call always fits. */
    CHECK(write_one(ledger, 1, false, 100, MINUTE_MS));
    redis_ledger_sweep(ledger, START_MS + 2 * MINUTE_MS);
    CHECK(write_one(ledger, 1, false, 4 << 20, 3 * MINUTE_MS));
    redis_ledger_free(ledger);
}

TEST(an_end_that_is_far_away_or_over_is_given_back_all_the_same)
{
    struct redis_ledger *ledger = new_ledger();

    CHECK(write_one(ledger, 1, true, 10, INT64_C(1000) * 24 * 60 * MINUTE_MS));
    CHECK(write_one(ledger, 1, true, 10, -INT64_C(1000) * MINUTE_MS));
    redis_ledger_sweep(ledger, START_MS + MINUTE_MS);
    CHECK_INT(redis_ledger_len(ledger), 1);
    redis_ledger_sweep(ledger, START_MS + INT64_C(1000) * 24 * 60 * MINUTE_MS);

    CHECK_INT(redis_ledger_len(ledger), 0);
    redis_ledger_free(ledger);
}

TORTURE(a_ledger_survives_any_allocation_failure)
{
    struct redis_ledger *ledger = NULL;
    const peg_status status = redis_ledger_new(&ledger);

    if (status)
        return status;
    redis_ledger_sweep(ledger, START_MS);
    CHECK(write_one(ledger, 1, true, 10, MINUTE_MS));
    redis_ledger_sweep(ledger, START_MS + 2 * MINUTE_MS);
    CHECK_INT(redis_ledger_len(ledger), 0);
    redis_ledger_free(ledger);
    return PEG_OK;
}
