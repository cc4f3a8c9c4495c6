/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/table.h"

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
    static struct calls_entry entries[N];
    struct calls_table table;

    calls_table_init(&table);
    for (unsigned i = 0; i < N; i++) {
        entries[i] = (struct calls_entry){.id = id_of(i / 2), .attempt = i % 2};
        CHECK(calls_table_add(&table, &entries[i]) == PEG_OK);
    }
    for (unsigned i = 0; i < N; i += 3)
        calls_table_remove(&table, &entries[i]);
    for (unsigned i = 0; i < N; i++) {
        const struct bus_id id = id_of(i / 2);

        CHECK(calls_table_find(&table, &id, i % 2) == (i % 3 ? &entries[i] : NULL));
    }
    calls_table_free(&table);
}

TEST(several_entries_may_have_one_key)
{
    struct calls_entry entries[3];
    struct calls_table table;
    unsigned n = 0;

    calls_table_init(&table);
    for (unsigned i = 0; i < 3; i++) {
        entries[i] = (struct calls_entry){.id = id_of(7)};
        CHECK(calls_table_add(&table, &entries[i]) == PEG_OK);
    }
    for (struct calls_entry *entry = calls_table_find(&table, &entries[0].id, 0); entry;
         entry = calls_table_again(entry))
        n++;
    CHECK_INT(n, 3);
    CHECK(calls_table_find(&table, &entries[0].id, 0) == &entries[0]);
    while (calls_table_any(&table))
        calls_table_remove(&table, calls_table_any(&table));
    CHECK_INT(table.n, 0);
    calls_table_free(&table);
}

/* If each were looked for among the others this would take an hour. */
TEST(each_of_very_many_with_one_key_is_taken_out_by_itself)
{
    enum { N = 1000000 };
    static struct calls_entry entries[N];
    struct calls_table table;

    calls_table_init(&table);
    for (unsigned i = 0; i < N; i++) {
        entries[i] = (struct calls_entry){.id = id_of(7)};
        CHECK(calls_table_add(&table, &entries[i]) == PEG_OK);
    }
    for (unsigned i = 1; i < N; i++)
        calls_table_remove(&table, &entries[i]);
    CHECK(calls_table_find(&table, &entries[0].id, 0) == &entries[0]);
    CHECK(calls_table_again(&entries[0]) == NULL);
    calls_table_remove(&table, &entries[0]);
    CHECK(calls_table_find(&table, &entries[0].id, 0) == NULL);
    CHECK_INT(table.n, 0);
    calls_table_free(&table);
}

TEST(an_empty_table_finds_nothing)
{
    struct calls_table table;
    const struct bus_id id = id_of(1);

    calls_table_init(&table);
    CHECK(calls_table_find(&table, &id, 0) == NULL);
    CHECK(calls_table_any(&table) == NULL);
    calls_table_free(&table);
}

TORTURE(adding_without_memory_changes_nothing)
{
    struct calls_entry entry = {.id = id_of(1)};
    struct calls_table table;
    peg_status status;

    calls_table_init(&table);
    status = calls_table_add(&table, &entry);
    CHECK(table.n == (status ? 0u : 1u));
    calls_table_free(&table);
    return status;
}

/* Taking out moves others: they are found where they are put. Keys are few, so they meet often. */
TEST(what_is_left_is_found_whatever_is_taken_out_and_put_back)
{
    enum { N = 60, ROUNDS = 20000 };
    static struct calls_entry entries[N];
    bool is_in[N] = {false};
    struct calls_table table;
    unsigned dice = 1;

    calls_table_init(&table);
    for (unsigned i = 0; i < N; i++)
        entries[i] = (struct calls_entry){.id = id_of(i / 2), .attempt = i % 4 / 2};
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned i = (dice = dice * 1103515245 + 12345) >> 16 & 63;

        if (i >= N)
            continue;
        if (is_in[i])
            calls_table_remove(&table, &entries[i]);
        else
            CHECK(calls_table_add(&table, &entries[i]) == PEG_OK);
        is_in[i] = !is_in[i];
        for (unsigned k = 0; k < N; k++) {
            const struct calls_entry *entry =
                calls_table_find(&table, &entries[k].id, entries[k].attempt);

            while (entry && entry != &entries[k])
                entry = calls_table_again(entry);
            CHECK((entry != NULL) == is_in[k]);
        }
    }
    calls_table_free(&table);
}

/* A table that cannot grow takes more until it is full. */
TEST(a_table_that_cannot_grow_fills_up)
{
    enum { N = 100 };
    static struct calls_entry entries[N];
    struct calls_table table;
    unsigned n = 0;

    calls_table_init(&table);
    for (; n < N; n++) {
        entries[n] = (struct calls_entry){.id = id_of(n)};
        peg__mem_fail_at(n ? 1 : 0);
        if (calls_table_add(&table, &entries[n]))
            break;
    }
    peg__mem_fail_at(0);
    CHECK_INT(n, 63);
    CHECK_INT(table.n, 63);
    for (unsigned i = 0; i <= n; i++)
        CHECK(calls_table_find(&table, &entries[i].id, 0) == (i < n ? &entries[i] : NULL));
    calls_table_free(&table);
}
