/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/storage.h"

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/ctx.h"
#include "storage_world.h"
#include "turn/turn.h"

/* ---- fixture: a storage that writes down each change, and may refuse ------------ */

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *

struct diary {
    char text[256];
    size_t len;
    peg_status answer;
    bool is_silent;      /* fails without a message */
    peg_turn *to_change; /* a turn that it tries to change, or NULL */
    peg_status change;   /* what came of that */
    peg_ctx *ctx;        /* what it was called with last */
};

static peg_status write_down(struct diary *diary, peg_ctx *ctx, const char *what, peg_str id,
                             peg_error *reterr)
{
    diary->len += (size_t)snprintf(diary->text + diary->len, sizeof(diary->text) - diary->len,
                                   "%s:%.*s ", what, PEG_ARG(id));
    diary->ctx = ctx;
    if (diary->to_change)
        diary->change = peg_turn_add_text(diary->to_change, PEG_BLOCK_USER, peg__str("x"), NULL);
    if (diary->answer && !diary->is_silent) {
        reterr->code = "E_DISK";
        snprintf(reterr->message, sizeof(reterr->message), "the disk is full");
    }
    return diary->answer;
}

static peg_status diary_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    return write_down(user, ctx, "store", peg_block_id(block), reterr);
}

static peg_status diary_mutate(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    return write_down(user, ctx, "mutate", peg_block_id(block), reterr);
}

static peg_status diary_remove(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr)
{
    return write_down(user, ctx, "remove", id, reterr);
}

static peg_status diary_fetch(void *user, peg_ctx *ctx, unsigned kinds, peg_turn *into,
                              peg_error *reterr)
{
    (void)kinds;
    (void)into;
    return write_down(user, ctx, "fetch", peg__str(""), reterr);
}

static peg_status diary_bytes(void *user, peg_ctx *ctx, const char *what, peg_str id, peg_str bytes,
                              peg_reader **ret_reader, peg_error *reterr)
{
    (void)what;
    (void)bytes;
    (void)ret_reader;
    return write_down(user, ctx, "bytes", id, reterr);
}

static peg_storage ops_of(struct diary *diary)
{
    return (peg_storage){diary_store, diary_mutate, diary_remove, diary_fetch, diary_bytes, diary};
}

static peg_str changes_of(const struct diary *diary)
{
    return peg__strn(diary->text, diary->len);
}

/* ---- a turn hands its changes to the storage ------------------------------------ */

TEST(storage_hears_of_each_change_in_order)
{
    struct diary diary = {0};
    const peg_storage ops = ops_of(&diary);
    peg_ctx *ctx = ctx_of_run("r");
    TURN turn = turn_new();

    peg__turn_attach(turn, &ops, ctx);
    CHECK_INT(add(turn, "a", NULL), PEG_OK);
    CHECK_INT(put(turn, "a", "changed", NULL), PEG_OK);
    CHECK_INT(put(turn, "b", "new", NULL), PEG_OK);
    CHECK_INT(peg_turn_remove(turn, peg__str("a"), NULL), PEG_OK);
    CHECK_INT(peg_turn_remove(turn, peg__str("nobody"), NULL), PEG_OK);

    CHECK_STR(changes_of(&diary), "store:a mutate:a store:b remove:a ");
    CHECK(diary.ctx == ctx);
    peg_ctx_unref(ctx);
}

TEST(storage_is_not_asked_about_what_the_turn_refuses)
{
    struct diary diary = {0};
    const peg_storage ops = ops_of(&diary);
    TURN turn = turn_new();

    CHECK_INT(add(turn, "a", NULL), PEG_OK);
    peg__turn_attach(turn, &ops, NULL);
    CHECK_INT(add(turn, "a", NULL), PEG_EEXISTS);

    CHECK_STR(changes_of(&diary), "");
}

TEST(storage_that_refuses_leaves_the_turn_as_it_was)
{
    struct diary diary = {.answer = PEG_EIO};
    const peg_storage ops = ops_of(&diary);
    TURN turn = turn_new();
    peg_error error;

    CHECK_INT(add(turn, "a", NULL), PEG_OK);
    peg__turn_attach(turn, &ops, NULL);

    CHECK_INT(add(turn, "b", &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_DISK");
    CHECK_STR(peg__str(error.message), "the disk is full");
    CHECK_INT(error.status, PEG_EIO);
    CHECK_INT(put(turn, "a", "changed", NULL), PEG_EIO);
    CHECK_INT(peg_turn_remove(turn, peg__str("a"), NULL), PEG_EIO);
    CHECK_STR(texts(turn), "a ");
    CHECK(!peg_turn_find(turn, peg__str("b")));
    CHECK_STR(changes_of(&diary), "store:b mutate:a remove:a ");
}

TEST(storage_that_refuses_without_a_word_gets_some)
{
    struct diary diary = {.answer = PEG_EHOST, .is_silent = true};
    const peg_storage ops = ops_of(&diary);
    TURN turn = turn_new();
    peg_error error;

    peg__turn_attach(turn, &ops, NULL);

    CHECK_INT(add(turn, "b", &error), PEG_EHOST);
    CHECK_STR(peg__str(error.code), "E_STORAGE_FAILED");
    CHECK(strstr(error.message, "the storage failed") != NULL);
}

TEST(storage_may_not_change_the_turn_that_asks_it)
{
    struct diary diary = {0};
    const peg_storage ops = ops_of(&diary);
    TURN turn = turn_new();

    peg__turn_attach(turn, &ops, NULL);
    diary.to_change = turn;
    CHECK_INT(add(turn, "a", NULL), PEG_OK);

    CHECK_INT(diary.change, PEG_ESTATE);
    CHECK_STR(texts(turn), "a ");
}

TEST(storage_hears_nothing_of_copies_and_flushes)
{
    struct diary diary = {0};
    const peg_storage ops = ops_of(&diary);
    TURN turn = turn_new();
    TURN copy = NULL;

    peg__turn_attach(turn, &ops, NULL);
    CHECK_INT(peg_turn_copy(turn, &copy, NULL), PEG_OK);
    CHECK_INT(add(copy, "a", NULL), PEG_OK);
    peg__turn_swap_in(turn, copy);
    CHECK_STR(changes_of(&diary), "");

    peg__turn_attach(turn, NULL, NULL);
    CHECK_INT(add(turn, "b", NULL), PEG_OK);
    CHECK_STR(changes_of(&diary), "");
}

/* ---- a storage that is not whole ------------------------------------------------ */

TEST(storage_may_be_absent)
{
    CHECK_INT(peg__storage_check(NULL, NULL), PEG_OK);
}

TEST(storage_that_is_whole_is_taken)
{
    struct diary diary = {0};
    const peg_storage ops = ops_of(&diary);

    CHECK_INT(peg__storage_check(&ops, NULL), PEG_OK);
}

/* One vtable in place of 27 callbacks (DESIGN 4.9). */
/* T70 */
TEST(storage_that_is_partly_filled_is_refused_by_every_name)
{
    struct diary diary = {0};
    peg_storage ops = ops_of(&diary);
    peg_error error;

    ops.mutate = NULL;
    CHECK_INT(peg__storage_check(&ops, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_TURN_RUNNER_CONFIG");
    CHECK_STR(peg__str(error.where), "/storage");
    CHECK(strstr(error.message, "lacks mutate:") != NULL);

    ops = (peg_storage){0};
    CHECK_INT(peg__storage_check(&ops, &error), PEG_EINVAL);
    CHECK(strstr(error.message, "store, mutate, remove, fetch, store_bytes:") != NULL);
}

TORTURE(storage_is_not_told_what_the_turn_has_no_room_for)
{
    struct diary diary = {0};
    const peg_storage ops = ops_of(&diary);
    peg_turn *turn = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status) {
        peg__turn_attach(turn, &ops, NULL);
        status = peg_turn_add_text(turn, PEG_BLOCK_USER, peg__str("x"), NULL);
        CHECK((diary.len > 0) == (status == PEG_OK));
    }
    peg_turn_free(turn);
    return status;
}
