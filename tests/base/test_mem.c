/* SPDX-License-Identifier: Apache-2.0 */

#include "base/mem.h"

#include <stdint.h>

#include "../t.h"

TEST(mem_counts_what_is_held)
{
    const size_t before = peg__mem_live();
    void *a = peg__alloc(10);
    void *b = peg__alloc_zero(2, 8);

    CHECK(a && b);
    CHECK_INT(peg__mem_live(), before + 2);
    peg__free(a);
    CHECK_INT(peg__mem_live(), before + 1);
    CHECK(!peg_free(b));
    peg__free(NULL);
    CHECK_INT(peg__mem_live(), before);
}

TEST(mem_gives_a_block_for_zero_bytes)
{
    void *a = peg__alloc(0);
    void *b = peg__alloc_zero(0, 8);
    void *c = peg__realloc(NULL, 0);

    CHECK(a && b && c && a != b);
    peg__free(a);
    peg__free(b);
    peg__free(c);
}

TEST(mem_zero_is_zero)
{
    unsigned char *bytes = peg__alloc_zero(100, 10);

    CHECK(bytes);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(bytes[i], 0);
    peg__free(bytes);
}

TEST(mem_fails_the_nth_allocation_and_all_after_it)
{
    void *first;
    void *second;
    void *third;
    void *fourth;

    peg__mem_fail_at(2);
    first = peg__alloc(1);
    second = peg__alloc(1);
    third = peg__alloc_zero(1, 1);
    fourth = peg__realloc(first, 100);
    peg__mem_fail_at(0);

    CHECK(first && !second && !third && !fourth);
    peg__free(first);
}

TEST(mem_fails_once_if_it_is_told_so)
{
    void *blocks[4];

    peg__mem_fail_once(2);
    for (size_t i = 0; i < 4; i++)
        blocks[i] = peg__alloc(1);
    peg__mem_fail_at(0);

    CHECK(blocks[0] && !blocks[1] && blocks[2] && blocks[3]);
    for (size_t i = 0; i < 4; i++)
        peg__free(blocks[i]);
}

TEST(mem_realloc_keeps_the_bytes_and_counts_one_block)
{
    const size_t before = peg__mem_live();
    char *text = peg__realloc(NULL, 4);

    CHECK(text);
    memcpy(text, "abc", 4);
    text = peg__realloc(text, 100000);

    CHECK(text && memcmp(text, "abc", 4) == 0);
    CHECK_INT(peg__mem_live(), before + 1);
    peg__free(text);
}

TEST(mem_grow_doubles_until_there_is_room)
{
    size_t n = 0;
    int *items = peg__grow(NULL, sizeof(*items), 1, &n);

    CHECK(items);
    CHECK_INT(n, 8);
    items = peg__grow(items, sizeof(*items), 33, &n);
    CHECK(items);
    CHECK_INT(n, 64);
    peg__free(items);
}

TEST(mem_grow_refuses_what_no_memory_can_hold)
{
    size_t n = 8;

    CHECK(!peg__grow(NULL, 16, SIZE_MAX / 8, &n));
    CHECK(!peg__grow(NULL, 1, SIZE_MAX, &n));
    CHECK_INT(n, 8);
}

TEST(mem_grow_that_fails_leaves_the_array_as_it_was)
{
    size_t n = 0;
    int *items = peg__grow(NULL, sizeof(*items), 1, &n);
    int *grown;

    CHECK(items);
    items[0] = 42;
    peg__mem_fail_at(1);
    grown = peg__grow(items, sizeof(*items), 9, &n);
    peg__mem_fail_at(0);

    CHECK(!grown);
    CHECK_INT(n, 8);
    CHECK_INT(items[0], 42);
    peg__free(items);
}

TEST(mem_cleanup_frees_at_the_end_of_the_scope)
{
    const size_t before = peg__mem_live();

    {
        PEG_CLEANUP(peg__freep) char *text = peg__alloc(10);
        PEG_CLEANUP(peg__freep) char *none = NULL;

        CHECK(text && !none);
        CHECK_INT(peg__mem_live(), before + 1);
    }
    CHECK_INT(peg__mem_live(), before);
}

TEST(mem_spares_are_used_again_and_zeroed)
{
    const size_t before = peg__mem_live();
    struct peg__spares spares = {NULL, 0};
    char *a = peg__spares_take(&spares, 64);
    char *b = peg__spares_take(&spares, 64);

    CHECK(a && b);
    memset(a, 'x', 64);
    peg__spares_give(&spares, a, 1);
    peg__spares_give(&spares, b, 1);
    CHECK(spares.n <= 1);
    a = peg__spares_take(&spares, 64);
    CHECK(a);
    for (int i = 0; i < 64; i++)
        CHECK_INT(a[i], 0);
    CHECK_INT(spares.n, 0);

    peg__spares_give(&spares, a, 1);
    peg__spares_free(&spares);
    CHECK_INT(peg__mem_live(), before);
}

TEST(mem_spares_fail_like_other_memory)
{
    struct peg__spares spares = {NULL, 0};
    char *block = peg__spares_take(&spares, 64);

    peg__spares_give(&spares, block, 1);
    peg__mem_fail_at(1);
    block = peg__spares_take(&spares, 64);
    peg__mem_fail_at(0);

    CHECK(!block);
    peg__spares_free(&spares);
}
