/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "bus/internal.h"

static unsigned n_woken;
static char told[1024];
static struct bus_map_table table;

static void wake(void *owner)
{
    (void)owner;
    n_woken++;
}

static void note(struct bus_watch *watch, const struct bus_change *change)
{
    const size_t len = strlen(told);

    (void)watch;
    snprintf(told + len, sizeof(told) - len, "%.*s=%s ", PEG_ARG(change->key),
             change->value ? change->value->bytes : "-");
}

static void open_table(void)
{
    bus_map_table_init(&table, wake);
    n_woken = 0;
    told[0] = '\0';
}

static peg_status set(const char *key, const char *text)
{
    struct bus_map_write write = {.key = peg__str(key), .expected = BUS_ANY_REVISION};
    uint64_t revision;
    peg_status status;
    bool written;

    write.value = text ? peg__blob_copy(peg__str(text)) : NULL;
    if (text && !write.value)
        return PEG_ENOMEM;
    status = bus_map_table_set(&table, &write, &written, &revision);
    peg__blob_unref(write.value);
    return status;
}

static void tell_all(void *owner)
{
    while (bus_map_table_notify(&table, owner))
        ;
}

TEST(changes_of_one_key_that_nobody_heard_are_told_as_one)
{
    struct bus_watch watch = {.on_change = note};
    int owner;

    open_table();
    bus_map_table_watch(&table, &watch, &owner);
    for (unsigned i = 0; i < 1000; i++)
        set("a", i < 999 ? "old" : "new");
    tell_all(&owner);

    CHECK_STR(peg__str(told), "a=new ");
    CHECK_INT(table.n_items, 1);
    bus_map_table_free(&table);
}

TEST(a_removed_key_takes_room_until_all_have_heard_of_it)
{
    struct bus_watch first = {.on_change = note};
    struct bus_watch second = {.on_change = note};
    int one;
    int two;

    open_table();
    bus_map_table_watch(&table, &first, &one);
    bus_map_table_watch(&table, &second, &two);
    set("a", "1");
    set("a", NULL);
    CHECK_INT(table.n_items, 1);
    tell_all(&one);
    CHECK_INT(table.n_items, 1);
    tell_all(&two);

    CHECK_INT(table.n_items, 0);
    CHECK_INT(table.bytes, 0);
    bus_map_table_free(&table);
}

TEST(a_watch_that_ends_does_not_keep_what_was_removed)
{
    struct bus_watch watch = {.on_change = note};
    int owner;

    open_table();
    bus_map_table_watch(&table, &watch, &owner);
    set("a", "1");
    set("a", NULL);
    bus_map_table_leave(&table, &owner);

    CHECK_INT(table.n_items, 0);
    CHECK(!watch.owner);
    bus_map_table_free(&table);
}

TEST(a_watch_that_begins_does_not_hear_what_was_removed_before)
{
    struct bus_watch slow = {.on_change = note};
    struct bus_watch late = {.on_change = note};
    int one;
    int two;

    open_table();
    bus_map_table_watch(&table, &slow, &one);
    set("a", "1");
    set("b", "2");
    set("a", NULL);
    bus_map_table_watch(&table, &late, &two);
    tell_all(&two);
    CHECK_STR(peg__str(told), "b=2 ");
    CHECK_INT(table.n_items, 2);
    tell_all(&one);

    CHECK_STR(peg__str(told), "b=2 b=2 a=- ");
    CHECK_INT(table.n_items, 1);
    bus_map_table_free(&table);
}

static struct bus_watch *ends;

static void end_the_other(struct bus_watch *watch, const struct bus_change *change)
{
    note(watch, change);
    bus_map_table_unwatch(&table, ends);
    bus_map_table_unwatch(&table, watch);
}

TEST(whoever_hears_may_end_any_watch)
{
    struct bus_watch first = {.on_change = end_the_other};
    struct bus_watch second = {.on_change = end_the_other};
    int owner;

    open_table();
    set("a", "1");
    bus_map_table_watch(&table, &first, &owner);
    bus_map_table_watch(&table, &second, &owner);
    ends = &first;
    tell_all(&owner);

    CHECK_STR(peg__str(told), "a=1 ");
    CHECK_INT(table.n_watches, 0);
    bus_map_table_free(&table);
}

static void set_another(struct bus_watch *watch, const struct bus_change *change)
{
    note(watch, change);
    if (peg__str_is(change->key, "a")) {
        set("c", "3");
        tell_all(watch->owner);
    }
}

TEST(whoever_hears_may_write_and_the_order_is_kept)
{
    struct bus_watch watch = {.on_change = set_another};
    int owner;

    open_table();
    set("a", "1");
    set("b", "2");
    bus_map_table_watch(&table, &watch, &owner);
    tell_all(&owner);

    CHECK_STR(peg__str(told), "a=1 b=2 c=3 ");
    bus_map_table_free(&table);
}

VOLUME_TEST(no_more_keys_than_the_limit_are_written)
{
    struct bus_watch deaf = {.on_change = note};
    unsigned n = 0;
    int owner;

    open_table();
    bus_map_table_watch(&table, &deaf, &owner);
    for (;; n++) {
        char key[16];

        snprintf(key, sizeof(key), "%u", n);
        if (set(key, "x") != PEG_OK)
            break;
    }
    CHECK_INT(n, PEG_LIMIT_BUS_MAP_KEYS);
    CHECK_INT(set("0", "y"), PEG_OK);
    CHECK_INT(set("0", NULL), PEG_OK);
    CHECK_INT(set("new", "x"), PEG_ELIMIT); /* the removal is not told yet */
    tell_all(&owner);

    CHECK_INT(set("new", "x"), PEG_OK);
    bus_map_table_free(&table);
}

TEST(no_more_bytes_than_the_limit_are_held)
{
    struct bus_map_write write = {.key = peg__str("a"), .expected = BUS_ANY_REVISION};
    struct peg__blob *half = peg__blob_new(PEG_LIMIT_BUS_MAP_BYTES / 2);
    uint64_t revision = 7;
    bool written = false;

    open_table();
    write.value = half;
    CHECK_INT(bus_map_table_set(&table, &write, &written, &revision), PEG_OK);
    CHECK_INT(bus_map_table_set(&table, &write, &written, &revision), PEG_OK);
    write.key = peg__str("b");

    CHECK_INT(bus_map_table_set(&table, &write, &written, &revision), PEG_ELIMIT);
    bus_map_table_free(&table);
    peg__blob_unref(half);
}

TORTURE(maps_survive_any_allocation_failure)
{
    struct bus_watch watch = {.on_change = note};
    peg_status status = PEG_OK;
    int owner;

    open_table();
    bus_map_table_watch(&table, &watch, &owner);
    for (unsigned i = 0; !status && i < 20; i++) {
        const char key[2] = {(char)('a' + i), '\0'};

        status = set(key, "1");
        if (!status)
            status = set(key, i % 2 ? "2" : NULL);
    }
    tell_all(&owner);
    if (!status)
        CHECK_INT(table.n_items, 10);
    bus_map_table_free(&table);
    return status;
}
