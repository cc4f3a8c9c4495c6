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

static peg_status take(struct bus_lease_table *table, const char *name, int64_t now_ns,
                       int64_t until_ns)
{
    const struct bus_lease_request request = {
        .name = peg__str(name), .loop = holder, .now_ns = now_ns, .until_ns = until_ns};
    struct bus_address loop;

    return bus_lease_ask(table, &request, &loop);
}

TEST(a_lease_ends_at_its_moment)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    CHECK_INT(take(&table, "a", 0, 100), PEG_OK);

    CHECK(bus_address_equal(find(&table, "a", 99), holder));
    CHECK_INT(find(&table, "a", 100).node, 0);
    bus_lease_table_free(&table);
}

TEST(a_lease_that_is_renewed_goes_on)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    CHECK_INT(take(&table, "a", 0, 100), PEG_OK);
    CHECK_INT(take(&table, "a", 50, 150), PEG_OK);

    CHECK(bus_address_equal(find(&table, "a", 149), holder));
    bus_lease_table_free(&table);
}

TEST(a_lease_without_an_end_does_not_end)
{
    struct bus_lease_table table;

    bus_lease_table_init(&table);
    CHECK_INT(take(&table, "a", 0, INT64_MAX), PEG_OK);

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
        CHECK_INT(take(&table, name, i, i + 10), PEG_OK);
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
        CHECK_INT(take(&table, name, 0, 100), PEG_OK);
    }

    CHECK_INT(take(&table, "one more", 0, 100), PEG_ELIMIT);
    CHECK_INT(take(&table, "0", 0, 100), PEG_OK);
    CHECK_INT(take(&table, "one more", 100, 200), PEG_OK);
    bus_lease_table_free(&table);
}

/* ---- of a loop's own address --------------------------------------------------------------- */

static unsigned n_own;
static unsigned n_lost;

static void count_own(struct bus_lease_table *table)
{
    (void)table;
    n_own++;
}

static void count_lost(struct bus_lease_table *table, struct bus_address loop)
{
    (void)table;
    n_lost += bus_address_equal(loop, holder);
}

static const char OWN[] = "0000000000000001.2"; /* holder's */

static void open_counting(struct bus_lease_table *table)
{
    bus_lease_table_init(table);
    table->on_own = count_own;
    table->on_lost = count_lost;
    n_own = n_lost = 0;
}

TEST(the_end_of_an_own_lease_is_reported_once)
{
    struct bus_lease_table table;

    open_counting(&table);
    CHECK(bus_lease_check(&table, 0) == NET_NEVER);
    CHECK_INT(take(&table, "a", 0, 50), PEG_OK);
    CHECK_INT(take(&table, OWN, 0, 100), PEG_OK);
    CHECK_INT(bus_lease_check(&table, 99), 100);
    CHECK_INT(n_lost, 0);
    CHECK(bus_lease_check(&table, 100) == NET_NEVER);
    CHECK(bus_lease_check(&table, 101) == NET_NEVER);
    bus_lease_end_own(&table, holder);

    CHECK_INT(n_own, 1);
    CHECK_INT(n_lost, 1);
    bus_lease_table_free(&table);
}

TEST(an_own_lease_that_is_renewed_late_was_lost)
{
    struct bus_lease_table table;

    open_counting(&table);
    CHECK_INT(take(&table, OWN, 0, 100), PEG_OK);
    CHECK_INT(take(&table, OWN, 50, 150), PEG_OK);
    CHECK(n_own == 1 && n_lost == 0);
    CHECK_INT(take(&table, OWN, 150, 250), PEG_OK);

    CHECK(n_own == 2 && n_lost == 1);
    CHECK_INT(bus_lease_check(&table, 150), 250);
    bus_lease_table_free(&table);
}

TEST(an_own_lease_ends_with_its_loop_unless_it_is_released)
{
    struct bus_lease_table table;

    open_counting(&table);
    CHECK_INT(take(&table, OWN, 0, INT64_MAX), PEG_OK);
    bus_lease_release(&table, peg__str(OWN), holder);
    bus_lease_end_own(&table, holder);
    CHECK_INT(n_lost, 0);
    CHECK_INT(take(&table, OWN, 0, INT64_MAX), PEG_OK);
    bus_lease_end_own(&table, holder);

    CHECK_INT(n_lost, 1);
    CHECK_INT(find(&table, OWN, 0).node, 0);
    bus_lease_table_free(&table);
}

TORTURE(leases_survive_any_allocation_failure)
{
    struct bus_lease_table table;
    peg_status status = PEG_OK;

    bus_lease_table_init(&table);
    for (unsigned i = 0; !status && i < 20; i++) {
        const char name[2] = {(char)('a' + i), '\0'};

        status = take(&table, name, 0, 100);
        CHECK_INT(find(&table, name, 0).node, status ? 0 : 1);
    }
    bus_lease_table_free(&table);
    return status;
}
