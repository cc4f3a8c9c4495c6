/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/share.h"

#include <string.h>

#include "../t.h"
#include "base/limits.h"
#include "base/str.h"

enum { MIB = 1 << 20 };

TEST(streams_of_one_principal_have_one_share)
{
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *one = gw_share_join(shares, peg__str("anna"));
    struct gw_share *two = gw_share_join(shares, peg__str("anna"));
    struct gw_share *other = gw_share_join(shares, peg__str("ann"));

    CHECK(one && one == two && other != one);
    gw_share_leave(two);
    CHECK(gw_share_join(shares, peg__str("anna")) == one);
    gw_share_leave(one);
    gw_share_leave(one);
    gw_share_leave(other);
    CHECK(!shares->first);
    gw_shares_unref(shares);
}

TEST(a_principal_has_no_more_than_its_share)
{
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *anna = gw_share_join(shares, peg__str("anna"));
    struct gw_share *ben = gw_share_join(shares, peg__str("ben"));
    peg_error error;

    gw_share_take(anna, PEG_LIMIT_GATEWAY_OWN_ASSEMBLED_BYTES - MIB);
    CHECK_INT(gw_share_check(anna, MIB, NULL), PEG_OK);
    CHECK_INT(gw_share_check(anna, MIB + 1, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "PEG_LIMIT_GATEWAY_OWN_ASSEMBLED_BYTES"));
    CHECK_INT(gw_share_check(ben, MIB + 1, NULL), PEG_OK);

    gw_share_give_back(anna, MIB);
    CHECK_INT(gw_share_check(anna, 2 * MIB, NULL), PEG_OK);
    gw_share_give_back(anna, PEG_LIMIT_GATEWAY_OWN_ASSEMBLED_BYTES - 2 * MIB);
    CHECK_INT(shares->bytes, 0);
    gw_share_leave(anna);
    gw_share_leave(ben);
    gw_shares_unref(shares);
}

TEST(all_together_have_no_more_than_theirs)
{
    static const char *const names[] = {"anna", "ben", "cleo"};
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *of[3];
    peg_error error;

    for (size_t i = 0; i < 3; i++) {
        of[i] = gw_share_join(shares, peg__str(names[i]));
        gw_share_take(of[i], PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES / 3);
    }
    CHECK_INT(gw_share_check(of[0], MIB, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES"));
    for (size_t i = 0; i < 3; i++) {
        gw_share_give_back(of[i], PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES / 3);
        gw_share_leave(of[i]);
    }
    gw_shares_unref(shares);
}

TEST(a_share_outlives_the_desk_until_a_worker_is_done)
{
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *share = gw_share_join(shares, peg__str("anna"));

    CHECK(gw_share_join_again(share) == share);
    gw_share_take(share, 10);
    gw_share_leave(share);
    gw_shares_unref(shares);
    CHECK_INT(share->all->bytes, 10);
    gw_share_give_back(share, 10);
    gw_share_leave(share);
    gw_share_leave(NULL);
}

static unsigned n_gone_on;

static void go_on(struct gw_share_wait *wait)
{
    (void)wait;
    n_gone_on++;
}

TEST(who_brings_more_than_is_read_waits_until_it_is)
{
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *anna = gw_share_join(shares, peg__str("anna"));
    struct gw_share *ben = gw_share_join(shares, peg__str("ben"));
    struct gw_share_wait waits[3] = {{.go_on = go_on}, {.go_on = go_on}, {.go_on = go_on}};

    gw_share_take_to_read(anna, PEG_LIMIT_GATEWAY_OWN_READING_BYTES);
    CHECK(!gw_share_must_wait(anna, &waits[0]));
    gw_share_take_to_read(anna, MIB);
    for (size_t i = 0; i < 3; i++)
        CHECK(gw_share_must_wait(anna, &waits[i]));
    CHECK(gw_share_must_wait(anna, &waits[1]));
    gw_share_forget_wait(&waits[1]);
    gw_share_forget_wait(&waits[1]);

    gw_share_was_read(anna, MIB - 1);
    CHECK_INT(n_gone_on, 0);
    gw_share_was_read(anna, 1);
    CHECK_INT(n_gone_on, 2);
    CHECK(!waits[0].share && !waits[2].share && !anna->waits);
    gw_share_was_read(anna, PEG_LIMIT_GATEWAY_OWN_READING_BYTES);
    CHECK_INT(anna->reading + shares->bytes, 0);
    gw_share_leave(anna);
    gw_share_leave(ben);
    gw_shares_unref(shares);
}

TEST(who_has_little_has_room_when_others_have_taken_all)
{
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *anna = gw_share_join(shares, peg__str("anna"));
    struct gw_share *ben = gw_share_join(shares, peg__str("ben"));

    gw_share_take(anna, PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES);
    CHECK_INT(gw_share_check(ben, (size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES, NULL), PEG_OK);
    CHECK_INT(gw_share_check(ben, (size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES + 1, NULL),
              PEG_ELIMIT);
    gw_share_give_back(anna, PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES);
    gw_share_leave(anna);
    gw_share_leave(ben);
    gw_shares_unref(shares);
}

TORTURE(shares_without_memory_are_none)
{
    struct gw_shares *shares = gw_shares_new();
    struct gw_share *share = shares ? gw_share_join(shares, peg__str("anna")) : NULL;
    const peg_status status = share ? PEG_OK : PEG_ENOMEM;

    gw_share_leave(share);
    gw_shares_unref(shares);
    return status;
}
