/* SPDX-License-Identifier: Apache-2.0 */

#include "base/arena.h"

#include <stdint.h>

#include "../t.h"
#include "base/text/str.h"

TEST(arena_hands_out_aligned_memory)
{
    struct peg__arena arena = {0};

    for (size_t size = 0; size < 100; size++)
        CHECK_INT((uintptr_t)peg__arena_alloc(&arena, size) % 16, 0);
    peg__arena_free(&arena);
}

TEST(arena_copies_strings_with_a_nul)
{
    struct peg__arena arena = {0};
    const char *copy = peg__arena_copy(&arena, peg__strn("hello world", 5));

    CHECK_STR(peg__str(copy), "hello");
    peg__arena_free(&arena);
}

TEST(arena_keeps_its_largest_chunk_on_reset)
{
    struct peg__arena arena = {0};

    CHECK(peg__arena_alloc(&arena, 10));
    CHECK(peg__arena_alloc(&arena, 100000));
    peg__arena_reset(&arena);

    CHECK(arena.held >= 100000);
    CHECK(arena.held < 110000);
    peg__arena_free(&arena);
    CHECK_INT(arena.held, 0);
}

TEST(arena_that_needed_two_small_chunks_needs_one_after_a_reset)
{
    struct peg__arena arena = {0};
    size_t held;

    for (unsigned i = 0; i < 2; i++)
        CHECK(peg__arena_alloc(&arena, 700));
    held = arena.held;
    peg__arena_reset(&arena);
    CHECK_INT(arena.held, held);
    for (unsigned i = 0; i < 2; i++)
        CHECK(peg__arena_alloc(&arena, 700));
    CHECK_INT(arena.held, held);
    peg__arena_free(&arena);
}

TEST(arena_refuses_absurd_sizes)
{
    struct peg__arena arena = {0};

    CHECK(!peg__arena_alloc(&arena, SIZE_MAX));
    CHECK(!peg__arena_alloc(&arena, SIZE_MAX / 2));
    peg__arena_free(&arena);
}

TEST(arena_copies_a_list_with_room_for_one_more)
{
    const char *const strings[] = {"a", "", "bc", NULL};
    struct peg__arena arena = {0};
    size_t n = 9;
    const char **copies = peg__arena_copy_list(&arena, strings, &n);

    CHECK_INT(n, 3);
    CHECK_STR(peg_cstr(copies[2]), "bc");
    CHECK(copies[2] != strings[2] && !copies[3] && !copies[4]);
    copies = peg__arena_copy_list(&arena, NULL, NULL);
    CHECK(copies && !copies[0]);
    peg__arena_free(&arena);
}

TORTURE(arena_list_survives_any_allocation_failure)
{
    const char *const strings[] = {"a", "b", NULL};
    struct peg__arena arena = {0};
    const char **copies = peg__arena_copy_list(&arena, strings, NULL);

    peg__arena_free(&arena);
    return copies ? PEG_OK : PEG_ENOMEM;
}

TORTURE(arena_survives_any_allocation_failure)
{
    struct peg__arena arena = {0};
    peg_status status = PEG_OK;

    for (size_t i = 0; i < 40 && status == PEG_OK; i++)
        if (!peg__arena_alloc(&arena, 500))
            status = PEG_ENOMEM;
    peg__arena_free(&arena);
    return status;
}
