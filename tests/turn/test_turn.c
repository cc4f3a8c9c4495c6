/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/turn.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"

/* ---- fixture: turns of blocks whose id is their text ---------------------------- */

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *
#define BLOCK PEG_CLEANUP(peg_block_unrefp) peg_block *

static peg_status make_block(peg_block_kind kind, const char *id, const char *text,
                             peg_block **ret_block)
{
    return peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind,
                                                .id = peg_cstr(id), .text = peg_cstr(text)},
                         ret_block, NULL);
}

static peg_block *user(const char *id)
{
    peg_block *block = NULL;

    CHECK_INT(make_block(PEG_BLOCK_USER, id, id, &block), PEG_OK);
    return block;
}

static peg_turn *turn_new(void)
{
    peg_turn *turn = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    return turn;
}

static peg_turn *copy_of(const peg_turn *turn)
{
    peg_turn *copy = NULL;

    CHECK_INT(peg_turn_copy(turn, &copy, NULL), PEG_OK);
    return copy;
}

/* Adds and gives up the caller's reference. */
static peg_status add(peg_turn *turn, peg_block *block)
{
    const peg_status status = peg_turn_add(turn, block, NULL);

    peg_block_unref(block);
    return status;
}

static peg_status put(peg_turn *turn, peg_block *block)
{
    const peg_status status = peg_turn_put(turn, block, NULL);

    peg_block_unref(block);
    return status;
}

static peg_turn *turn_of(const char *ids)
{
    peg_turn *turn = turn_new();

    for (; *ids; ids++)
        CHECK_INT(add(turn, user((const char[]){*ids, '\0'})), PEG_OK);
    return turn;
}

/* The ids of all blocks, one after the other; borrowed until the next call. */
static peg_str ids(const peg_turn *turn)
{
    static char text[256];
    size_t len = 0;

    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_str id = peg_block_id(peg_turn_at(turn, i));

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s", PEG_ARG(id));
    }
    return peg__strn(text, len);
}

static peg_str numbered(char *text, size_t size, size_t i)
{
    return peg__strn(text, (size_t)snprintf(text, size, "block-%zu", i));
}

/* ---- adding, finding, looking --------------------------------------------------- */

TEST(turn_that_is_new_has_no_blocks)
{
    TURN turn = turn_new();

    CHECK_INT(peg_turn_len(turn), 0);
    CHECK(!peg_turn_at(turn, 0));
    CHECK(!peg_turn_find(turn, peg__str("a")));
    CHECK_INT(peg_turn_next(turn, PEG_BLOCKS_ALL, 0), 0);
    CHECK(!peg_turn_last(turn, PEG_BLOCKS_ALL));
    CHECK_INT(peg_turn_count(turn, PEG_BLOCKS_ALL), 0);
    CHECK_INT(peg_turn_next_pending(turn, 0), 0);
    CHECK(!peg_turn_free(NULL));
}

/* T95 */
TEST(turn_adds_at_the_end_and_finds_by_id)
{
    TURN turn = turn_of("abc");

    CHECK_STR(ids(turn), "abc");
    CHECK_STR(peg_block_text(peg_turn_find(turn, peg__str("b"))), "b");
    CHECK(!peg_turn_find(turn, peg__str("d")));
    CHECK(!peg_turn_find(turn, peg__str("")));
}

TEST(turn_keeps_a_reference_of_its_own)
{
    TURN turn = turn_new();
    peg_block *block = user("a");

    CHECK_INT(peg_turn_add(turn, block, NULL), PEG_OK);
    peg_block_unref(block);

    CHECK_STR(peg_block_text(peg_turn_at(turn, 0)), "a");
}

TEST(turn_refuses_an_id_that_is_taken)
{
    TURN turn = turn_of("ab");
    BLOCK again = user("a");
    peg_error error;

    CHECK_INT(peg_turn_add(turn, again, &error), PEG_EEXISTS);

    CHECK_STR(peg__str(error.code), "E_BLOCK_ID_TAKEN");
    CHECK(strstr(error.message, "'a'") != NULL);
    CHECK_STR(ids(turn), "ab");
}

TEST(turn_refuses_no_block_at_all)
{
    TURN turn = turn_new();

    CHECK_INT(peg_turn_add(turn, NULL, NULL), PEG_EINVAL);
    CHECK_INT(peg_turn_put(turn, NULL, NULL), PEG_EINVAL);
}

TEST(turn_views_blocks_by_kind)
{
    TURN turn = turn_new();

    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_SYSTEM, peg__str("s"), NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_USER, peg__str("u"), NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_REASONING, peg__str("r"), NULL), PEG_OK);
    CHECK_INT(peg_turn_add_call(turn, peg__str("c"), peg__str("t"), peg__str("{}"), NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg__str("a"), NULL), PEG_OK);

    CHECK_INT(peg_turn_count(turn, PEG_BLOCKS_ALL), 5);
    CHECK_INT(peg_turn_count(turn, PEG_BLOCKS_MESSAGES), 2);
    CHECK_INT(peg_turn_count(turn, PEG_BLOCKS_CALLS), 1);
    CHECK_INT(peg_turn_count(turn, 0), 0);
    CHECK_INT(peg_turn_next(turn, PEG_BLOCKS_MESSAGES, 0), 1);
    CHECK_INT(peg_turn_next(turn, PEG_BLOCKS_MESSAGES, 2), 4);
    CHECK_INT(peg_turn_next(turn, PEG_BLOCKS_MESSAGES, 5), 5);
    CHECK_INT(peg_turn_next(turn, PEG_BLOCKS_MESSAGES, 99), 5);
    CHECK_INT(peg_turn_next(turn, PEG_BLOCKS_THOUGHTS, 0), 2);
    CHECK_STR(peg_block_text(peg_turn_last(turn, PEG_BLOCKS_MESSAGES)), "a");
    CHECK(peg_turn_last(turn, PEG_BLOCKS_CALLS) == peg_turn_at(turn, 3));
    CHECK(!peg_turn_last(turn, PEG_BLOCKS(PEG_BLOCK_RESULT)));
}

TEST(turn_short_forms_refuse_what_a_block_refuses)
{
    TURN turn = turn_new();
    peg_error error;

    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_USER, peg__str(""), &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.where), "/text");
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_RESULT, peg__str(""), &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.where), "/record");

    CHECK_INT(peg_turn_len(turn), 0);
}

/* ---- changing ------------------------------------------------------------------- */

/* T97 */
TEST(turn_put_replaces_a_block_where_it_stands)
{
    TURN turn = turn_of("abc");
    BLOCK changed = NULL;

    CHECK_INT(make_block(PEG_BLOCK_ASSISTANT, "b", "changed", &changed), PEG_OK);
    CHECK_INT(peg_turn_put(turn, changed, NULL), PEG_OK);

    CHECK_STR(ids(turn), "abc");
    CHECK_STR(peg_block_text(peg_turn_at(turn, 1)), "changed");
    CHECK(peg_turn_find(turn, peg__str("b")) == changed);
    CHECK_INT(peg_turn_count(turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT)), 1);
}

TEST(turn_put_adds_a_block_that_is_not_there)
{
    TURN turn = turn_of("ab");

    CHECK_INT(put(turn, user("c")), PEG_OK);

    CHECK_STR(ids(turn), "abc");
}

TEST(turn_put_takes_the_block_that_is_there_already)
{
    TURN turn = turn_of("ab");

    CHECK_INT(peg_turn_put(turn, peg_turn_at(turn, 0), NULL), PEG_OK);

    CHECK_STR(ids(turn), "ab");
}

TEST(turn_removes_a_block_and_closes_the_gap)
{
    TURN turn = turn_of("abcd");

    CHECK_INT(peg_turn_remove(turn, peg_block_id(peg_turn_at(turn, 1)), NULL), PEG_OK);

    CHECK_STR(ids(turn), "acd");
    CHECK(!peg_turn_find(turn, peg__str("b")));
    CHECK(peg_turn_find(turn, peg__str("d")) == peg_turn_at(turn, 2));
    CHECK_INT(add(turn, user("b")), PEG_OK);
    CHECK_STR(ids(turn), "acdb");
}

TEST(turn_is_silent_about_removing_what_is_not_there)
{
    TURN turn = turn_of("a");

    CHECK_INT(peg_turn_remove(turn, peg__str("z"), NULL), PEG_OK);
    CHECK_INT(peg_turn_remove(turn, peg__str(""), NULL), PEG_OK);

    CHECK_STR(ids(turn), "a");
}

TEST(turn_copy_has_the_same_blocks_and_a_life_of_its_own)
{
    TURN turn = turn_of("abc");
    TURN copy = copy_of(turn);

    CHECK_INT(add(copy, user("d")), PEG_OK);
    CHECK_INT(peg_turn_remove(copy, peg__str("a"), NULL), PEG_OK);
    CHECK_INT(put(turn, user("b")), PEG_OK);

    CHECK_STR(ids(turn), "abc");
    CHECK_STR(ids(copy), "bcd");
    CHECK(peg_turn_at(turn, 2) == peg_turn_at(copy, 1));
    CHECK(peg_turn_find(turn, peg__str("b")) != peg_turn_find(copy, peg__str("b")));
}

TEST(turn_copy_outlives_the_turn)
{
    peg_turn *turn = turn_of("abc");
    TURN copy = copy_of(turn);

    peg_turn_free(turn);

    CHECK_STR(ids(copy), "abc");
    CHECK_INT(add(copy, user("d")), PEG_OK);
}

TEST(turn_copy_of_nothing_is_nothing)
{
    TURN turn = turn_new();
    TURN copy = copy_of(turn);

    CHECK_INT(add(copy, user("a")), PEG_OK);

    CHECK_INT(peg_turn_len(turn), 0);
}

/* T95, T97 */
TEST(turn_swap_in_makes_the_changes_of_a_copy_its_own)
{
    TURN turn = turn_of("ab");
    TURN copy = copy_of(turn);

    CHECK_INT(add(copy, user("c")), PEG_OK);
    CHECK_INT(put(copy, user("a")), PEG_OK);
    peg__turn_swap_in(turn, copy);

    CHECK_STR(ids(turn), "abc");
    CHECK(peg_turn_at(turn, 0) == peg_turn_at(copy, 0));
    CHECK_INT(add(copy, user("d")), PEG_OK);
    CHECK_STR(ids(turn), "abc");
}

TEST(turn_swap_in_of_itself_changes_nothing)
{
    TURN turn = turn_of("ab");

    peg__turn_swap_in(turn, turn);

    CHECK_STR(ids(turn), "ab");
}

TEST(turn_of_many_blocks_finds_each_through_changes)
{
    enum { N = 10000 };
    TURN turn = turn_new();
    char id[32];

    for (size_t i = 0; i < N; i++) {
        numbered(id, sizeof(id), i);
        CHECK_INT(add(turn, user(id)), PEG_OK);
    }
    for (size_t i = 0; i < N; i += 100)
        CHECK_INT(peg_turn_remove(turn, numbered(id, sizeof(id), i), NULL), PEG_OK);
    for (size_t i = 50; i < N; i += 100) {
        numbered(id, sizeof(id), i);
        CHECK_INT(put(turn, user(id)), PEG_OK);
    }

    CHECK_INT(peg_turn_len(turn), N - N / 100);
    for (size_t i = 0; i < N; i++) {
        const peg_block *found = peg_turn_find(turn, numbered(id, sizeof(id), i));

        CHECK((found == NULL) == (i % 100 == 0));
        CHECK(!found || found == peg_turn_at(turn, i - i / 100 - 1));
    }
}

TEST(turn_does_not_grow_while_blocks_come_and_go)
{
    TURN turn = turn_of("a");
    char id[32];

    for (size_t i = 0; i < 20000; i++) {
        numbered(id, sizeof(id), i);
        CHECK_INT(add(turn, user(id)), PEG_OK);
        CHECK_INT(peg_turn_remove(turn, peg__str(id), NULL), PEG_OK);
    }

    CHECK_STR(ids(turn), "a");
}

TEST(turn_refuses_more_blocks_than_the_limit)
{
    TURN turn = turn_new();
    BLOCK late = user("late");
    peg_error error;

    for (size_t i = 0; i < PEG_LIMIT_TURN_BLOCKS; i++)
        CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_USER, peg__str("x"), NULL), PEG_OK);

    CHECK_INT(peg_turn_add(turn, late, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_TURN_TOO_LARGE");
    CHECK(strstr(error.message, "blocks already") != NULL);
    CHECK_INT(peg_turn_put(turn, late, NULL), PEG_ELIMIT);
    CHECK_INT(peg_turn_len(turn), PEG_LIMIT_TURN_BLOCKS);
}

/* ---- out of memory -------------------------------------------------------------- */

static peg_status change_all(peg_turn *turn, peg_block *const *blocks, size_t n)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n && !status; i++)
        status = peg_turn_add(turn, blocks[i], NULL);
    if (!status)
        status = peg_turn_put(turn, blocks[0], NULL);
    if (!status)
        status = peg_turn_remove(turn, peg_block_id(blocks[n - 1]), NULL);
    return status;
}

TORTURE(turn_survives_any_allocation_failure)
{
    enum { N = 40 };
    peg_block *blocks[N] = {0};
    peg_turn *turn = NULL;
    peg_turn *copy = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    for (size_t i = 0; i < N && !status; i++)
        status = make_block(PEG_BLOCK_USER, NULL, "x", &blocks[i]);
    if (!status)
        status = change_all(turn, blocks, N - 1);
    if (!status)
        status = peg_turn_copy(turn, &copy, NULL);
    if (!status) {
        const size_t len = peg_turn_len(turn);

        status = peg_turn_add(copy, blocks[N - 1], NULL);
        CHECK_INT(peg_turn_len(turn), len);
        CHECK_INT(peg_turn_len(copy), status ? len : len + 1);
        CHECK(!status == (peg_turn_find(copy, peg_block_id(blocks[N - 1])) != NULL));
    }
    peg_turn_free(turn);
    peg_turn_free(copy);
    for (size_t i = 0; i < N; i++)
        peg_block_unref(blocks[i]);
    return status;
}

TORTURE(turn_short_forms_survive_any_allocation_failure)
{
    peg_turn *turn = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg_turn_add_text(turn, PEG_BLOCK_USER, peg__str("x"), NULL);
    if (!status)
        status = peg_turn_add_call(turn, peg__str("c"), peg__str("t"), peg__str("{}"), NULL);
    peg_turn_free(turn);
    return status;
}
