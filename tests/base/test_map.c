/* SPDX-License-Identifier: Apache-2.0 */

#include "base/map.h"

#include "../t.h"
#include "base/buf.h"
#include "base/text/str.h"

/* ---- fixture: values that are only addresses, and an order as text --------- */

static char things[8];

static peg_status add(struct peg__map *map, const char *name, void *value)
{
    return peg__map_add(map, peg__str(name), value);
}

static bool remove_name(struct peg__map *map, const char *name)
{
    return peg__map_remove(map, peg__str(name), NULL);
}

static void *get(const struct peg__map *map, const char *name)
{
    return peg__map_get(map, peg__str(name));
}

static peg_str order(const struct peg__map *map, char *text, size_t size)
{
    size_t len = 0;

    PEG__MAP_EACH(map, entry)
    {
        len += (size_t)snprintf(text + len, size - len, "%s ", entry->name.ptr);
    }
    return peg__strn(text, len);
}

static peg_str numbered(char *text, size_t size, int i)
{
    return peg__strn(text, (size_t)snprintf(text, size, "name-%d", i));
}

/* ---- tests ------------------------------------------------------------------ */

TEST(map_finds_what_was_added)
{
    struct peg__map map = PEG__MAP(100);

    CHECK_INT(add(&map, "one", &things[1]), PEG_OK);
    CHECK_INT(add(&map, "two", &things[2]), PEG_OK);

    CHECK(get(&map, "one") == &things[1]);
    CHECK(get(&map, "two") == &things[2]);
    CHECK(!get(&map, "three"));
    CHECK(!get(&map, "on"));
    CHECK_INT(map.n, 2);
    peg__map_free(&map);
}

TEST(map_that_is_empty_finds_nothing_and_ends_at_once)
{
    struct peg__map map = PEG__MAP(100);

    CHECK(!get(&map, "one"));
    CHECK(!peg__map_find(&map, peg__str("")));
    CHECK(!remove_name(&map, "one"));
    CHECK(!peg__map_next(&map, NULL));
    peg__map_free(&map);
}

TEST(map_copies_names)
{
    struct peg__map map = PEG__MAP(100);
    char name[] = "one";

    CHECK_INT(add(&map, name, &things[1]), PEG_OK);
    name[0] = 'X';

    CHECK(get(&map, "one") == &things[1]);
    CHECK(!get(&map, "Xne"));
    peg__map_free(&map);
}

TEST(map_takes_empty_names_and_names_with_a_nul)
{
    struct peg__map map = PEG__MAP(100);

    CHECK_INT(peg__map_add(&map, peg__strn(NULL, 0), &things[0]), PEG_OK);
    CHECK_INT(peg__map_add(&map, peg__strn("a\0b", 3), &things[1]), PEG_OK);
    CHECK_INT(peg__map_add(&map, peg__strn("a\0c", 3), &things[2]), PEG_OK);

    CHECK(get(&map, "") == &things[0]);
    CHECK(peg__map_get(&map, peg__strn("a\0b", 3)) == &things[1]);
    CHECK(peg__map_get(&map, peg__strn("a\0c", 3)) == &things[2]);
    CHECK(!get(&map, "a"));
    peg__map_free(&map);
}

TEST(map_refuses_to_add_a_name_twice)
{
    struct peg__map map = PEG__MAP(100);

    CHECK_INT(add(&map, "one", &things[1]), PEG_OK);
    CHECK_INT(add(&map, "one", &things[2]), PEG_EEXISTS);

    CHECK(get(&map, "one") == &things[1]);
    CHECK_INT(map.n, 1);
    peg__map_free(&map);
}

TEST(map_put_replaces_in_place_and_hands_back_the_old_value)
{
    struct peg__map map = PEG__MAP(100);
    char text[64];
    void *old = &things[7];

    CHECK_INT(peg__map_put(&map, peg__str("one"), &things[1], &old), PEG_OK);
    CHECK(!old);
    CHECK_INT(add(&map, "two", &things[2]), PEG_OK);

    CHECK_INT(peg__map_put(&map, peg__str("one"), &things[3], &old), PEG_OK);

    CHECK(old == &things[1]);
    CHECK(get(&map, "one") == &things[3]);
    CHECK_STR(order(&map, text, sizeof(text)), "one two ");
    peg__map_free(&map);
}

TEST(map_keeps_a_name_whose_value_is_null)
{
    struct peg__map map = PEG__MAP(100);

    CHECK_INT(add(&map, "one", NULL), PEG_OK);

    CHECK(peg__map_find(&map, peg__str("one")) != NULL);
    CHECK(!peg__map_find(&map, peg__str("two")));
    peg__map_free(&map);
}

TEST(map_keeps_the_order_when_a_name_is_removed_and_added_again)
{
    struct peg__map map = PEG__MAP(100);
    char text[64];
    void *value = NULL;

    CHECK_INT(add(&map, "a", &things[1]), PEG_OK);
    CHECK_INT(add(&map, "b", &things[2]), PEG_OK);
    CHECK_INT(add(&map, "c", &things[3]), PEG_OK);

    CHECK(peg__map_remove(&map, peg__str("b"), &value));
    CHECK(value == &things[2]);
    CHECK(!get(&map, "b"));
    CHECK(!remove_name(&map, "b"));
    CHECK_STR(order(&map, text, sizeof(text)), "a c ");

    CHECK_INT(add(&map, "b", &things[4]), PEG_OK);
    CHECK_STR(order(&map, text, sizeof(text)), "a c b ");
    CHECK_INT(map.n, 3);
    peg__map_free(&map);
}

TEST(map_loop_may_remove_the_entry_it_stands_on)
{
    struct peg__map map = PEG__MAP(100);
    char text[64];

    CHECK_INT(add(&map, "a", NULL), PEG_OK);
    CHECK_INT(add(&map, "b", NULL), PEG_OK);
    CHECK_INT(add(&map, "c", NULL), PEG_OK);

    PEG__MAP_EACH(&map, entry)
    {
        if (!peg__str_is(entry->name, "b"))
            peg__map_remove(&map, entry->name, NULL);
    }

    CHECK_STR(order(&map, text, sizeof(text)), "b ");
    peg__map_free(&map);
}

TEST(map_refuses_a_name_beyond_its_maximum)
{
    struct peg__map map = PEG__MAP(2);

    CHECK_INT(add(&map, "a", NULL), PEG_OK);
    CHECK_INT(add(&map, "b", NULL), PEG_OK);
    CHECK_INT(add(&map, "c", NULL), PEG_ELIMIT);
    CHECK_INT(peg__map_put(&map, peg__str("c"), NULL, NULL), PEG_ELIMIT);
    CHECK_INT(peg__map_put(&map, peg__str("b"), &things[1], NULL), PEG_OK);

    CHECK(remove_name(&map, "a"));
    CHECK_INT(add(&map, "c", NULL), PEG_OK);
    peg__map_free(&map);
}

TEST(map_of_many_names_finds_each_and_keeps_the_order)
{
    enum { N = 10000 };
    struct peg__map map = PEG__MAP(N);
    char name[32];
    int next = 1;

    for (int i = 0; i < N; i++)
        CHECK_INT(peg__map_add(&map, numbered(name, sizeof(name), i), (void *)(intptr_t)i), PEG_OK);
    for (int i = 0; i < N; i += 2)
        CHECK(peg__map_remove(&map, numbered(name, sizeof(name), i), NULL));

    for (int i = 0; i < N; i++)
        CHECK_INT((intptr_t)peg__map_get(&map, numbered(name, sizeof(name), i)), i % 2 ? i : 0);
    PEG__MAP_EACH(&map, entry)
    {
        CHECK_INT((intptr_t)entry->value, next);
        next += 2;
    }
    CHECK_INT(next, N + 1);
    CHECK_INT(map.n, N / 2);
    peg__map_free(&map);
}

TEST(map_does_not_grow_while_names_come_and_go)
{
    struct peg__map map = PEG__MAP(100);
    char name[32];

    for (int i = 0; i < 100000; i++) {
        CHECK_INT(peg__map_add(&map, numbered(name, sizeof(name), i), NULL), PEG_OK);
        if (i >= 10)
            CHECK(peg__map_remove(&map, numbered(name, sizeof(name), i - 10), NULL));
    }

    CHECK_INT(map.n, 10);
    CHECK(map.capacity <= 32);
    peg__map_free(&map);
}

TORTURE(map_survives_any_allocation_failure)
{
    struct peg__map map = PEG__MAP(100);
    peg_status status = PEG_OK;
    char name[32];
    size_t n = 0;

    for (int i = 0; i < 40 && status == PEG_OK; i++) {
        n = map.n;
        status = peg__map_add(&map, numbered(name, sizeof(name), i), &things[1]);
    }
    /* What was there before the failure is still found, in order; the new name is not. */
    if (status != PEG_OK) {
        CHECK_INT(map.n, n);
        for (size_t i = 0; i < n; i++)
            CHECK(peg__map_get(&map, numbered(name, sizeof(name), (int)i)) == &things[1]);
        CHECK(!peg__map_find(&map, numbered(name, sizeof(name), (int)n)));
    }
    peg__map_free(&map);
    return status;
}
