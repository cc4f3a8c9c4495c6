/* SPDX-License-Identifier: Apache-2.0 */

/* What a node keeps of the changes of its catalog, for watchers that come back. */

#include "t.h"

#include "base/limits/recent.h"
#include "base/text/str.h"
#include "gateway/catalog/changes.h"

struct told {
    char text[512];
    size_t n;
    uint64_t first;
    uint64_t last;
};

static void note_told(void *user, uint64_t place, peg_str toolset, unsigned kind)
{
    struct told *told = (struct told *)user;
    const size_t len = strlen(told->text);

    if (!told->n++)
        told->first = place;
    told->last = place;
    if (len + toolset.len + 8 < sizeof(told->text))
        snprintf(told->text + len, sizeof(told->text) - len, PEG_FMT "%u ", PEG_ARG(toolset), kind);
}

static bool since(struct gw_changes *changes, uint64_t place, size_t max, struct told *told)
{
    char text[GW_CHANGES_PLACE];

    *told = (struct told){0};
    gw_changes_print(changes, place, text);
    return gw_changes_since(changes, peg__str(text), max, note_told, told);
}

static struct gw_changes *begin(unsigned n_loops)
{
    struct gw_changes *changes = gw_changes_new(7, n_loops);

    CHECK(changes && !gw_changes_has_begun(changes));
    gw_changes_begin(changes);
    CHECK(gw_changes_has_begun(changes));
    return changes;
}

TEST(what_came_behind_a_place_is_told_in_order)
{
    struct gw_changes *changes = begin(1);
    struct told told;

    CHECK_INT(gw_changes_now(changes), 0);
    CHECK(since(changes, 0, 10, &told) && told.n == 0);
    CHECK_INT(gw_changes_note(changes, peg_cstr("a"), 3), 1);
    CHECK_INT(gw_changes_note(changes, peg_cstr("b"), 3), 2);
    CHECK_INT(gw_changes_note(changes, peg_cstr("a"), 5), 3);
    CHECK(since(changes, 0, 10, &told));
    CHECK_STR(peg__str(told.text), "a3 b3 a5 ");
    CHECK(since(changes, 1, 10, &told));
    CHECK_STR(peg__str(told.text), "b3 a5 ");
    CHECK_INT(told.first, 2);
    CHECK(since(changes, 3, 10, &told) && told.n == 0);
    CHECK(!since(changes, 0, 2, &told)); /* more than wanted */
    gw_changes_free(changes);
}

TEST(places_of_others_and_of_the_future_are_not_known)
{
    static const char *const places[] = {"",
                                         "7",
                                         "0000000000000007",
                                         "0000000000000007-",
                                         "0000000000000007-x",
                                         "0000000000000007-1x",
                                         "0000000000000007--1",
                                         "0000000000000008-1",
                                         "0000000000000007-2",
                                         "0000000000000007-99999999999999999",
                                         "0000000000000007-99999999999999999999999999"};
    struct gw_changes *changes = begin(1);
    struct told told = {0};

    gw_changes_note(changes, peg_cstr("a"), 3);
    CHECK(since(changes, 1, 10, &told));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        CHECK(!gw_changes_since(changes, peg__str(places[i]), 10, note_told, &told));
    CHECK_INT(told.n, 0);
    gw_changes_free(changes);
}

TEST(what_was_overwritten_is_lost)
{
    struct gw_changes *changes = begin(1);
    struct told told;
    const uint64_t n = PEG_LIMIT_GATEWAY_WATCH_HISTORY + 100;
    char name[16];

    for (uint64_t i = 1; i <= n; i++) {
        snprintf(name, sizeof(name), "t%llu", (unsigned long long)i);
        CHECK_INT(gw_changes_note(changes, peg__str(name), 3), i);
    }
    CHECK(!since(changes, 0, n, &told));
    CHECK(!since(changes, 50, n, &told));
    CHECK(since(changes, n - 2, n, &told) && told.n == 2 && told.last == n);
    CHECK(since(changes, 110, n, &told) && told.n == n - 110 && told.first == 111);
    gw_changes_free(changes);
}

TEST(long_names_are_told_whole_or_not_at_all)
{
    struct gw_changes *changes = begin(1);
    struct told told;
    const uint64_t n = 2000;
    char name[256];

    memset(name, 'n', sizeof(name));
    for (uint64_t i = 1; i <= n; i++)
        gw_changes_note(changes, peg__strn(name, 256), (unsigned)(i % 200));
    CHECK(!since(changes, 0, n, &told));
    CHECK(since(changes, n - 500, n, &told) && told.n == 500);
    CHECK(!since(changes, n - 520, n, &told));
    gw_changes_free(changes);
}

/* With several loops each notes the same, and the watcher may have been at a slower one. */
TEST(loops_that_note_the_same_tell_it_once_and_the_last_moments_again)
{
    struct gw_changes *changes = begin(2);
    struct told told;

    gw_changes_note(changes, peg_cstr("a"), 3);
    gw_changes_note(changes, peg_cstr("a"), 3);
    gw_changes_note(changes, peg_cstr("b"), 3);
    gw_changes_note(changes, peg_cstr("b"), 3);
    CHECK(since(changes, 3, 10, &told));
    CHECK_STR(peg__str(told.text), "a3 b3 ");
    gw_changes_free(changes);
}

/* What counts is what the watcher would get, not what the loops noted. */
TEST(as_many_as_wanted_are_told_however_many_loops_noted_them)
{
    struct gw_changes *changes = begin(4);
    struct told told;
    char name[16];

    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "t%u", i / 4);
        gw_changes_note(changes, peg__str(name), 3);
    }
    CHECK(since(changes, 0, 10, &told));
    CHECK_INT(told.n, 10);
    CHECK_INT(told.last, 40);
    CHECK(!since(changes, 0, 9, &told));
    CHECK_INT(told.n, 9);
    gw_changes_free(changes);
}

TORTURE(a_ring_of_changes_survives_any_allocation_failure)
{
    struct gw_changes *changes = gw_changes_new(7, 1);

    if (!changes)
        return PEG_ENOMEM;
    gw_changes_free(changes);
    return PEG_OK;
}
