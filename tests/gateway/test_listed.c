/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of running calls that providers come (back) with, short ones and long ones. */

#include "../t.h"

#include "desk_world.h"

static const struct gw_desk_options DEFAULTS;

static struct gw_running running_of(const struct handed *handed)
{
    return (struct gw_running){
        .id = handed->id,
        .attempt = handed->attempt,
        .route = handed->route,
        .tool = {"add", 3},
    };
}

/* A second hello, or a later one: its number is `player->n_breaks` + 1. Nothing is settled. */
static peg_status come_with(struct world *world, struct player *player, const char *incarnation,
                            const struct gw_running *running, size_t n)
{
    const struct gw_attach attach_as = {
        .toolset = world->toolset,
        .incarnation = peg_cstr(incarnation),
        .credits = 4,
        .running = running,
        .n_running = n,
        .number = player->n_breaks + 1,
    };

    return gw_provider_attach(world->desk, &attach_as, &PLAYER_EVENTS, player, &player->provider,
                              NULL);
}

/* ---- lists that are not taken ---------------------------------------------------------------- */

/* It has the second one, whatever is wrong with the first. */
TEST(a_list_that_is_not_taken_costs_its_provider_no_call_that_stands_in_it)
{
    struct world world;
    struct player thief;
    struct player other;
    struct player again = {.n_breaks = 1};
    struct caller first;
    struct caller second;
    struct gw_running listed[2];

    world_open(&world, &DEFAULTS);
    attach(&world, &thief, "incarnation-1", 1);
    call_as(&world, &first, "add", "", 0);
    gw_provider_drain(thief.provider);
    attach(&world, &other, "incarnation-2", 1);
    call_as(&world, &second, "add", "", 0);
    CHECK_INT(thief.n_handed, 1);
    CHECK_INT(other.n_handed, 1);
    gw_provider_leave(thief.provider);
    listed[0] = running_of(&other.handed[0]);
    listed[1] = running_of(&thief.handed[0]);
    CHECK_INT(come_with(&world, &again, "incarnation-1", listed, 2), PEG_EINVAL);
    settle(&world);
    CHECK(gw_holder_held(world.desk, &thief.handed[0].id, 1) != NULL);
    CHECK_INT(first.n_ends, 0);
    CHECK_INT(come_with(&world, &again, "incarnation-1", &listed[1], 1), PEG_OK);
    settle(&world);
    answer(&world, &again, &thief.handed[0], "1");
    CHECK_STR(peg_cstr(first.result), "1");
    answer(&world, &other, &other.handed[0], "2");
    CHECK_STR(peg_cstr(second.result), "2");
    world_close(&world);
}

TEST(a_list_that_is_not_taken_leaves_nothing_behind)
{
    struct world world;
    struct player thief = {0};
    struct player other;
    struct caller caller;
    struct gw_running listed[3];

    world_open(&world, &DEFAULTS);
    attach(&world, &other, "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    listed[0] = running_of(&other.handed[0]);
    listed[1] = listed[0];
    listed[2] = listed[0];
    listed[0].attempt = 7;
    listed[2].attempt = 8;
    CHECK_INT(come_with(&world, &thief, "incarnation-1", listed, 3), PEG_EINVAL);
    CHECK_INT(world.desk->held.n, 1);
    CHECK_INT(world.desk->n_providers, 1);
    world_close(&world);
}

/* It was told to run it, and never saw that. */
TEST(a_call_that_is_not_listed_goes_elsewhere_and_one_that_is_listed_twice_is_one)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct caller first;
    struct caller second;
    struct gw_running listed[2];

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 2);
    call_as(&world, &first, "add", "", 0);
    call_as(&world, &second, "add", "", 0);
    gw_provider_leave(player.provider);
    listed[0] = running_of(&player.handed[1]);
    listed[1] = listed[0];
    CHECK_INT(come_with(&world, &again, "incarnation-1", listed, 2), PEG_OK);
    settle(&world);
    CHECK_INT(again.n_handed, 1); /* the first one, anew */
    CHECK(again.handed[0].attempt == 2);
    answer(&world, &again, &player.handed[1], "2");
    CHECK_STR(peg_cstr(second.result), "2");
    answer(&world, &again, &again.handed[0], "1");
    CHECK_STR(peg_cstr(first.result), "1");
    world_close(&world);
}
