/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/calls/table.h"

#include <string.h>

#include "../t.h"

static struct bus_id id_of(unsigned n)
{
    struct bus_id id = {.len = 16};

    memcpy(id.bytes, &n, sizeof(n));
    return id;
}

TEST(entries_are_found_by_id_and_attempt_until_they_are_taken_out)
{
    enum { N = 1000 };
    static struct gw_entry entries[N];
    struct gw_table table;

    gw_table_init(&table);
    for (unsigned i = 0; i < N; i++) {
        entries[i] = (struct gw_entry){.id = id_of(i / 2), .attempt = i % 2};
        CHECK(gw_table_add(&table, &entries[i]) == PEG_OK);
    }
    for (unsigned i = 0; i < N; i += 3)
        gw_table_remove(&table, &entries[i]);
    for (unsigned i = 0; i < N; i++) {
        const struct bus_id id = id_of(i / 2);

        CHECK(gw_table_find(&table, &id, i % 2) == (i % 3 ? &entries[i] : NULL));
    }
    gw_table_free(&table);
}

TEST(several_entries_may_have_one_key)
{
    struct gw_entry entries[3];
    struct gw_table table;
    unsigned n = 0;

    gw_table_init(&table);
    for (unsigned i = 0; i < 3; i++) {
        entries[i] = (struct gw_entry){.id = id_of(7)};
        CHECK(gw_table_add(&table, &entries[i]) == PEG_OK);
    }
    for (struct gw_entry *entry = gw_table_find(&table, &entries[0].id, 0); entry;
         entry = gw_table_again(entry))
        n++;
    CHECK_INT(n, 3);
    CHECK(gw_table_find(&table, &entries[0].id, 0) == &entries[0]);
    while (gw_table_any(&table))
        gw_table_remove(&table, gw_table_any(&table));
    CHECK_INT(table.n, 0);
    gw_table_free(&table);
}

/* If each were looked for among the others this would take an hour. */
TEST(each_of_very_many_with_one_key_is_taken_out_by_itself)
{
    enum { N = 1000000 };
    static struct gw_entry entries[N];
    struct gw_table table;

    gw_table_init(&table);
    for (unsigned i = 0; i < N; i++) {
        entries[i] = (struct gw_entry){.id = id_of(7)};
        CHECK(gw_table_add(&table, &entries[i]) == PEG_OK);
    }
    for (unsigned i = 1; i < N; i++)
        gw_table_remove(&table, &entries[i]);
    CHECK(gw_table_find(&table, &entries[0].id, 0) == &entries[0]);
    CHECK(gw_table_again(&entries[0]) == NULL);
    gw_table_remove(&table, &entries[0]);
    CHECK(gw_table_find(&table, &entries[0].id, 0) == NULL);
    CHECK_INT(table.n, 0);
    gw_table_free(&table);
}

TEST(an_empty_table_finds_nothing)
{
    struct gw_table table;
    const struct bus_id id = id_of(1);

    gw_table_init(&table);
    CHECK(gw_table_find(&table, &id, 0) == NULL);
    CHECK(gw_table_any(&table) == NULL);
    gw_table_free(&table);
}

TORTURE(adding_without_memory_changes_nothing)
{
    struct gw_entry entry = {.id = id_of(1)};
    struct gw_table table;
    peg_status status;

    gw_table_init(&table);
    status = gw_table_add(&table, &entry);
    CHECK(table.n == (status ? 0u : 1u));
    gw_table_free(&table);
    return status;
}

/* Taking out moves others: they are found where they are put. Keys are few, so they meet often. */
TEST(what_is_left_is_found_whatever_is_taken_out_and_put_back)
{
    enum { N = 60, ROUNDS = 20000 };
    static struct gw_entry entries[N];
    bool is_in[N] = {false};
    struct gw_table table;
    unsigned dice = 1;

    gw_table_init(&table);
    for (unsigned i = 0; i < N; i++)
        entries[i] = (struct gw_entry){.id = id_of(i / 2), .attempt = i % 4 / 2};
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned i = (dice = dice * 1103515245 + 12345) >> 16 & 63;

        if (i >= N)
            continue;
        if (is_in[i])
            gw_table_remove(&table, &entries[i]);
        else
            CHECK(gw_table_add(&table, &entries[i]) == PEG_OK);
        is_in[i] = !is_in[i];
        for (unsigned k = 0; k < N; k++) {
            const struct gw_entry *entry =
                gw_table_find(&table, &entries[k].id, entries[k].attempt);

            while (entry && entry != &entries[k])
                entry = gw_table_again(entry);
            CHECK((entry != NULL) == is_in[k]);
        }
    }
    gw_table_free(&table);
}

/* A table that cannot grow takes more until it is full. */
TEST(a_table_that_cannot_grow_fills_up)
{
    enum { N = 100 };
    static struct gw_entry entries[N];
    struct gw_table table;
    unsigned n = 0;

    gw_table_init(&table);
    for (; n < N; n++) {
        entries[n] = (struct gw_entry){.id = id_of(n)};
        peg__mem_fail_at(n ? 1 : 0);
        if (gw_table_add(&table, &entries[n]))
            break;
    }
    peg__mem_fail_at(0);
    CHECK_INT(n, 63);
    CHECK_INT(table.n, 63);
    for (unsigned i = 0; i <= n; i++)
        CHECK(gw_table_find(&table, &entries[i].id, 0) == (i < n ? &entries[i] : NULL));
    gw_table_free(&table);
}
