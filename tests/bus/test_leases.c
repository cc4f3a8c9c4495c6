/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "bus/internal.h"

static const struct bus_address holder = {1, 2};

static struct bus_address find(struct bus_lease_table *table, const char *name, int64_t now_ns)
{
    const peg_str names[] = {peg__str(name)};
    struct bus_address found;

    bus_lease_find(table, names, 1, now_ns, &found);
    return found;
}

TEST(a_lease_ends_at_its_moment)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    CHECK_INT(bus_lease_take(&table, peg__str("a"), holder, 0, 100), PEG_OK);

    CHECK(bus_address_equal(find(&table, "a", 99), holder));
    CHECK_INT(find(&table, "a", 100).node, 0);
    bus_lease_table_free(&table);
}

TEST(a_lease_that_is_renewed_goes_on)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    CHECK_INT(bus_lease_take(&table, peg__str("a"), holder, 0, 100), PEG_OK);
    CHECK_INT(bus_lease_take(&table, peg__str("a"), holder, 50, 150), PEG_OK);

    CHECK(bus_address_equal(find(&table, "a", 149), holder));
    bus_lease_table_free(&table);
}

TEST(a_lease_without_an_end_does_not_end)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    CHECK_INT(bus_lease_take(&table, peg__str("a"), holder, 0, INT64_MAX), PEG_OK);

    CHECK(bus_address_equal(find(&table, "a", INT64_MAX - 1), holder));
    bus_lease_table_free(&table);
}

/* Providers come and go under new names for years. */
TEST(names_that_ended_take_no_room)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    for (unsigned i = 0; i < 10000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%u", i);
        CHECK_INT(bus_lease_take(&table, peg__str(name), holder, i, i + 10), PEG_OK);
    }

    CHECK(table.names.n < 100);
    bus_lease_table_free(&table);
}

TEST(no_more_names_than_the_limit_are_alive)
{
    struct bus_lease_table table;
    char name[16];

    bus_lease_table_init(&table);
    for (unsigned i = 0; i < PEG_LIMIT_BUS_LEASES; i++) {
        snprintf(name, sizeof(name), "%u", i);
        CHECK_INT(bus_lease_take(&table, peg__str(name), holder, 0, 100), PEG_OK);
    }

    CHECK_INT(bus_lease_take(&table, peg__str("one more"), holder, 0, 100), PEG_ELIMIT);
    CHECK_INT(bus_lease_take(&table, peg__str("0"), holder, 0, 100), PEG_OK);
    CHECK_INT(bus_lease_take(&table, peg__str("one more"), holder, 100, 200), PEG_OK);
    bus_lease_table_free(&table);
}

TORTURE(leases_survive_any_allocation_failure)
{
    struct bus_lease_table table;
    peg_status status = PEG_OK;

    bus_lease_table_init(&table);
    for (unsigned i = 0; !status && i < 20; i++) {
        const char name[2] = {(char)('a' + i), '\0'};

        status = bus_lease_take(&table, peg__str(name), holder, 0, 100);
        CHECK_INT(find(&table, name, 0).node, status ? 0 : 1);
    }
    bus_lease_table_free(&table);
    return status;
}
