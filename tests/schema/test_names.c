/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "schema/compile/program.h"

/* ---- fixture ---------------------------------------------------------------------- */

enum { MAX_TEXT = 64, PADDING = 16, MANY = 5000 };

struct set {
    char (*texts)[MAX_TEXT + PADDING]; /* padded with what must not count */
    struct peg__name *list;
    uint32_t n;
    struct peg__arena arena;
    struct peg__names names;
};

static void set_new(struct set *set, uint32_t n)
{
    *set = (struct set){.n = n};
    set->texts = malloc((n + 1) * sizeof(*set->texts));
    set->list = calloc(n + 1, sizeof(*set->list));
    CHECK(set->texts && set->list);
    memset(set->texts, 'Z', (n + 1) * sizeof(*set->texts));
}

static void set_name(struct set *set, uint32_t i, peg_str text)
{
    memcpy(set->texts[i], text.ptr, text.len);
    set->list[i] =
        (struct peg__name){.text = {set->texts[i], text.len}, .node = i + 1, .flags = i % 4};
}

static void set_free(struct set *set)
{
    peg__arena_free(&set->arena);
    free(set->texts);
    free(set->list);
}

/* Looks a text up as the string of a document: with other bytes behind it. */
static const struct peg__slot *find(const struct set *set, peg_str text)
{
    char padded[MAX_TEXT + PADDING];
    peg_json string = {.kind = PEG_JSON_STRING, .len = (uint32_t)text.len, .u.ptr = padded};

    memset(padded, '!', sizeof(padded));
    memcpy(padded, text.ptr, text.len);
    return peg__names_find(&set->names, &string);
}

/* Makes the set and finds every name in it, with what belongs to it. */
static void check_all_found(struct set *set)
{
    CHECK(peg__names_init(&set->names, set->list, set->n, &set->arena));
    CHECK_INT(set->names.n, set->n);
    for (uint32_t i = 0; i < set->n; i++) {
        const struct peg__slot *slot = find(set, set->list[i].text);

        CHECK(slot);
        CHECK_INT(slot->node, set->list[i].node);
        CHECK_INT(slot->flags, set->list[i].flags);
    }
}

static void numbered(struct set *set, uint32_t n, const char *format)
{
    set_new(set, n);
    for (uint32_t i = 0; i < n; i++) {
        char text[MAX_TEXT];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), format, i);
#pragma GCC diagnostic pop
        set_name(set, i, peg__str(text));
    }
}

/* ---- tests ------------------------------------------------------------------------------ */

TEST(an_empty_set_holds_nothing)
{
    struct set set;

    set_new(&set, 0);
    check_all_found(&set);
    CHECK(!find(&set, peg__str("")));
    CHECK(!find(&set, peg__str("a")));
    set_free(&set);
}

TEST(the_empty_name_is_a_name)
{
    struct set set;

    set_new(&set, 2);
    set_name(&set, 0, peg__str(""));
    set_name(&set, 1, peg__str("a"));
    check_all_found(&set);
    CHECK(!find(&set, peg__strn("\0", 1)));
    set_free(&set);
}

TEST(names_of_every_length_are_found_and_their_neighbours_are_not)
{
    for (size_t len = 0; len <= 40; len++) {
        const char text[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP";
        char other[sizeof(text)];
        struct set set;

        set_new(&set, 1);
        set_name(&set, 0, peg__strn(text, len));
        check_all_found(&set);
        CHECK(!find(&set, peg__strn(text, len + 1)));
        CHECK(len == 0 || !find(&set, peg__strn(text, len - 1)));
        for (size_t i = 0; i < len; i++) {
            memcpy(other, text, sizeof(other));
            other[i] ^= 1;
            CHECK(!find(&set, peg__strn(other, len)));
        }
        set_free(&set);
    }
}

TEST(names_that_differ_only_behind_a_nul_differ)
{
    struct set set;

    set_new(&set, 3);
    set_name(&set, 0, peg__strn("a", 1));
    set_name(&set, 1, peg__strn("a\0", 2));
    set_name(&set, 2, peg__strn("a\0b", 3));
    check_all_found(&set);
    CHECK(!find(&set, peg__strn("a\0\0", 3)));
    set_free(&set);
}

TEST(sets_of_every_size_find_all_their_names_and_no_others)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 8, 15, 31, 32, 33, 63, 64, 65, 999, 1000, MANY};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct set set;

        numbered(&set, sizes[i], "property_%u");
        check_all_found(&set);
        for (uint32_t j = 0; j < 100; j++) {
            char text[MAX_TEXT];

            snprintf(text, sizeof(text), "property_%u", sizes[i] + j);
            CHECK(!find(&set, peg__str(text)));
        }
        CHECK(!set.names.hashed);
        set_free(&set);
    }
}

TEST(names_with_equal_heads_and_tails_are_told_apart)
{
    static const uint32_t sizes[] = {2, 5, 16, 64, 300, MANY};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct set set;

        numbered(&set, sizes[i], "same_head_%06u_same_tail");
        check_all_found(&set);
        CHECK(!find(&set, peg__str("same_head_900000_same_tail")));
        CHECK(!find(&set, peg__str("same_head_same_tail")));
        CHECK(!find(&set, peg__str("")));
        set_free(&set);
    }
}

TEST(many_names_that_collide_whatever_the_seed_are_hashed_whole)
{
    struct set set;

    numbered(&set, MANY, "same_head_%06u_same_tail");
    check_all_found(&set);
    CHECK(set.names.hashed && !set.names.slots);
    set_free(&set);
}

TEST(the_same_names_give_the_same_table)
{
    struct set a;
    struct set b;

    numbered(&a, 50, "n%u");
    numbered(&b, 50, "n%u");
    check_all_found(&a);
    check_all_found(&b);
    CHECK(a.names.seed == b.names.seed);
    CHECK_INT(a.names.mask, b.names.mask);
    set_free(&a);
    set_free(&b);
}

TORTURE(making_a_set_survives_any_allocation_failure)
{
    struct set set;
    bool made;

    numbered(&set, 300, "same_head_%06u_same_tail");
    made = peg__names_init(&set.names, set.list, set.n, &set.arena);
    set_free(&set);
    return made ? PEG_OK : PEG_ENOMEM;
}
