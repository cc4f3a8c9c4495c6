/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/result_quota.h"

#include <string.h>

#include "../t.h"
#include "base/limits.h"

enum { MIB = 1 << 20, ANNA = 1, BEN = 2, CLEO = 3, ALL = PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES };

TEST(a_principal_has_no_more_than_its_share)
{
    struct calls_result_quota *quota = calls_result_quota_new(true);
    peg_error error;

    peg__quota_add(&quota->bytes, ANNA, ALL / 4 * 3 - MIB);
    CHECK_INT(calls_result_quota_check(quota, ANNA, MIB, NULL), PEG_OK);
    peg__quota_add(&quota->bytes, ANNA, MIB);
    CHECK_INT(calls_result_quota_check(quota, ANNA, 1, &error), PEG_ELIMIT);
    CHECK(strcmp(error.code, "E_RESULT_TOO_LARGE") == 0);
    CHECK(strstr(error.message, "PEG_LIMIT_QUOTA_SHARE"));
    CHECK_INT(calls_result_quota_check(quota, BEN, ALL / 4, NULL), PEG_OK);
    CHECK_INT(calls_result_quota_check(quota, BEN, ALL / 4 + 1, NULL), PEG_ELIMIT);
    calls_result_quota_unref(quota);
}

TEST(all_together_have_no_more_than_theirs)
{
    struct calls_result_quota *quota = calls_result_quota_new(false);
    peg_error error;

    peg__quota_add(&quota->bytes, 0, ALL - MIB);
    CHECK_INT(calls_result_quota_check(quota, 0, MIB, NULL), PEG_OK);
    CHECK_INT(calls_result_quota_check(quota, 0, MIB + 1, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES = 256 MiB"));
    calls_result_quota_unref(quota);
}

TEST(a_quota_outlives_the_loop_until_a_worker_is_done)
{
    struct calls_result_quota *quota = calls_result_quota_new(true);
    struct calls_result_quota *workers = calls_result_quota_ref(quota);

    calls_result_quota_begin_read(quota, ANNA, 10);
    calls_result_quota_unref(quota);
    calls_result_quota_end_read(workers, ANNA, 10);
    CHECK_INT(peg__quota_used(&workers->bytes), 0);
    calls_result_quota_unref(workers);
    CHECK(!calls_result_quota_unref(NULL));
}

static unsigned n_gone_on;

static void go_on(struct calls_result_wait *wait)
{
    (void)wait;
    n_gone_on++;
}

/* Alone, beside another principal, and where principals are not told apart. */
static void check_waits(bool has_shares, uint16_t account)
{
    struct calls_result_quota *quota = calls_result_quota_new(has_shares);
    struct calls_result_wait waits[3] = {{.go_on = go_on}, {.go_on = go_on}, {.go_on = go_on}};

    n_gone_on = 0;
    calls_result_quota_begin_read(quota, account, PEG_LIMIT_GATEWAY_OWN_READING_BYTES);
    CHECK(!calls_result_quota_must_wait(quota, account, &waits[0]));
    calls_result_quota_begin_read(quota, account, MIB);
    for (size_t i = 0; i < 3; i++)
        CHECK(calls_result_quota_must_wait(quota, account, &waits[i]));
    CHECK(calls_result_quota_must_wait(quota, account, &waits[1]));
    if (has_shares)
        CHECK(
            !calls_result_quota_must_wait(quota, BEN, &(struct calls_result_wait){.go_on = go_on}));
    calls_result_quota_forget_wait(&waits[1]);
    calls_result_quota_forget_wait(&waits[1]);

    calls_result_quota_end_read(quota, account, MIB - 1);
    CHECK_INT(n_gone_on, 0);
    calls_result_quota_end_read(quota, account, 1);
    CHECK_INT(n_gone_on, 2);
    CHECK(!waits[0].quota && !waits[2].quota && !quota->waits);
    calls_result_quota_end_read(quota, account, PEG_LIMIT_GATEWAY_OWN_READING_BYTES);
    CHECK_INT(peg__quota_used(&quota->reading) + peg__quota_used(&quota->bytes), 0);
    calls_result_quota_unref(quota);
}

TEST(a_stream_that_brings_more_than_is_read_waits_until_it_is)
{
    check_waits(true, ANNA);
    check_waits(false, 0);
}

TEST(streams_of_one_principal_do_not_wait_for_those_of_another)
{
    struct calls_result_quota *quota = calls_result_quota_new(true);
    struct calls_result_wait anna = {.go_on = go_on};
    struct calls_result_wait ben = {.go_on = go_on};

    n_gone_on = 0;
    calls_result_quota_begin_read(quota, ANNA, PEG_LIMIT_GATEWAY_OWN_READING_BYTES + 1);
    calls_result_quota_begin_read(quota, BEN, PEG_LIMIT_GATEWAY_OWN_READING_BYTES + 1);
    CHECK(calls_result_quota_must_wait(quota, ANNA, &anna));
    CHECK(calls_result_quota_must_wait(quota, BEN, &ben));
    calls_result_quota_end_read(quota, ANNA, 1);
    CHECK(!anna.quota && ben.quota);
    CHECK_INT(n_gone_on, 1);
    calls_result_quota_end_read(quota, BEN, 1);
    CHECK_INT(n_gone_on, 2);
    calls_result_quota_unref(quota);
}

TEST(a_principal_with_little_has_room_when_others_have_taken_all)
{
    struct calls_result_quota *quota = calls_result_quota_new(true);
    const size_t floor = (size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES;

    peg__quota_add(&quota->bytes, ANNA, ALL);
    CHECK_INT(calls_result_quota_check(quota, BEN, floor, NULL), PEG_OK);
    CHECK_INT(calls_result_quota_check(quota, BEN, floor + 1, NULL), PEG_ELIMIT);
    calls_result_quota_unref(quota);
}

TORTURE(a_quota_of_results_without_memory_is_none)
{
    struct calls_result_quota *quota = calls_result_quota_new(true);
    const peg_status status = quota ? PEG_OK : PEG_ENOMEM;

    calls_result_quota_unref(quota);
    return status;
}
