/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/internal.h"

#include "../t.h"

enum { N = 4 };

struct world {
    struct grpc_pick pick;
    struct grpc_pick_entry entries[N];
};

static void world_init(struct world *w)
{
    *w = (struct world){0};
    CHECK_INT(grpc_pick_reserve(&w->pick, N), PEG_OK);
    for (size_t i = 0; i < N; i++) {
        w->entries[i].max_streams = 100;
        grpc_pick_add(&w->pick, &w->entries[i]);
    }
}

/* Takes `n` turns, counting in n_streams. */
static void take(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct grpc_pick_entry *entry = grpc_pick_next(&w->pick);

        CHECK(entry);
        entry->n_streams++;
    }
}

TEST(an_empty_pick_has_nobody)
{
    struct grpc_pick pick = {0};

    CHECK(!grpc_pick_next(&pick));
    grpc_pick_free(&pick);
}

TEST(all_take_turns)
{
    struct world w;

    world_init(&w);
    take(&w, 3 * N);

    for (size_t i = 0; i < N; i++)
        CHECK_INT(w.entries[i].n_streams, 3);
    grpc_pick_free(&w.pick);
}

TEST(one_without_room_is_passed_over)
{
    struct world w;

    world_init(&w);
    w.entries[1].max_streams = 1;
    take(&w, 13);

    CHECK_INT(w.entries[0].n_streams, 4);
    CHECK_INT(w.entries[1].n_streams, 1);
    CHECK_INT(w.entries[2].n_streams, 4);
    CHECK_INT(w.entries[3].n_streams, 4);
    grpc_pick_free(&w.pick);
}

TEST(nobody_is_picked_when_all_are_full)
{
    struct world w;

    world_init(&w);
    for (size_t i = 0; i < N; i++)
        w.entries[i].max_streams = 2;
    take(&w, 2 * N);

    CHECK(!grpc_pick_next(&w.pick));
    w.entries[2].n_streams--;
    CHECK(grpc_pick_next(&w.pick) == &w.entries[2]);
    grpc_pick_free(&w.pick);
}

TEST(one_that_leaves_is_picked_no_more_and_the_others_go_on)
{
    struct world w;

    world_init(&w);
    take(&w, 3);
    grpc_pick_remove(&w.pick, &w.entries[0]);
    grpc_pick_remove(&w.pick, &w.entries[3]);
    grpc_pick_remove(&w.pick, &w.entries[3]);
    take(&w, 10);

    CHECK_INT(w.pick.n, 2);
    CHECK_INT(w.entries[0].n_streams, 1);
    CHECK_INT(w.entries[1].n_streams + w.entries[2].n_streams, 12);
    CHECK(w.entries[1].n_streams >= 5 && w.entries[2].n_streams >= 5);
    grpc_pick_free(&w.pick);
}

TEST(adding_twice_is_adding_once)
{
    struct world w;

    world_init(&w);
    grpc_pick_remove(&w.pick, &w.entries[0]);
    grpc_pick_add(&w.pick, &w.entries[0]);
    grpc_pick_add(&w.pick, &w.entries[0]);

    CHECK_INT(w.pick.n, N);
    grpc_pick_free(&w.pick);
}

TORTURE(reserving_survives_any_allocation_failure)
{
    struct grpc_pick pick = {0};
    const peg_status status = grpc_pick_reserve(&pick, 1000);

    grpc_pick_free(&pick);
    return status;
}
