/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of running calls that providers come (back) with, short ones and long ones. */

#include "../t.h"

#include "calls_world.h"

/* More than are looked at at once, twice over. */
enum { MANY = 1200 };

static const struct calls_options DEFAULTS;

static struct calls_running running_of(const struct handed *handed)
{
    return (struct calls_running){
        .id = handed->id,
        .attempt = handed->attempt,
        .route = handed->route,
        .tool = {"add", 3},
    };
}

/* A second hello, or a later one: its number is `player->n_breaks` + 1. Nothing is settled. */
static peg_status come_with(struct world *world, struct player *player, const char *incarnation,
                            const struct calls_running *running, size_t n)
{
    const struct calls_attach attach_as = {
        .toolset = &world->toolset->of_calls,
        .incarnation = peg_cstr(incarnation),
        .credits = MANY,
        .running = running,
        .n_running = n,
        .number = player->n_breaks + 1,
    };

    return calls_provider_attach(world->calls, &attach_as, &PLAYER_EVENTS, player,
                                 &player->provider, NULL);
}

/* ---- what is answered at another loop than the one that handed it over ------------------------
 */

/* That knows no deadline of it. Its name stands until then, and who asks again finds its end. */
TEST(the_end_of_a_call_that_was_listed_is_kept_as_long_as_its_name)
{
    const struct calls_options soon = {.keep_ms = 1};
    const struct timespec swept = {.tv_sec = 1, .tv_nsec = 200000000};
    struct world world;
    struct player player;
    struct player moved = {.n_breaks = 1};
    struct caller first;
    struct caller again;

    world_open(&world, &soon);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 60000);
    calls_assignment_drop(
        calls_assignment_find(world.calls, &player.handed[0].id, 1)); /* as another loop would */
    attach_listing(&world, &moved, "incarnation-1", 1, &player.handed[0]);
    answer(&world, &moved, &player.handed[0], "9");
    CHECK_STR(peg_cstr(first.result), "9");
    for (unsigned i = 0; i < 2; i++) {
        nanosleep(&swept, NULL);
        settle(&world);
    }
    call_as(&world, &again, "add", "key-1", 60000);
    CHECK_INT(again.n_ends, 1);
    CHECK_STR(peg_cstr(again.result), "9");
    CHECK_INT(player.n_handed + moved.n_handed, 1);
    world_close(&world);
}

/* ---- lists that are not taken ---------------------------------------------------------------- */

/* It has the second one, and there was no memory for the first. */
TEST(a_list_that_is_not_taken_costs_its_provider_no_call_that_stands_in_it)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct caller caller;
    struct calls_running listed[2];

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    listed[0] = listed[1] = running_of(&player.handed[0]);
    listed[0].attempt = 7;
    peg__mem_fail_at(1);
    CHECK_INT(come_with(&world, &again, "incarnation-1", listed, 2), PEG_ENOMEM);
    peg__mem_fail_at(0);
    settle(&world);
    CHECK(calls_assignment_find(world.calls, &player.handed[0].id, 1) != NULL);
    CHECK_INT(caller.n_ends, 0);
    CHECK_INT(come_with(&world, &again, "incarnation-1", &listed[1], 1), PEG_OK);
    settle(&world);
    answer(&world, &again, &player.handed[0], "1");
    CHECK_STR(peg_cstr(caller.result), "1");
    world_close(&world);
}

TEST(a_list_that_is_not_taken_leaves_nothing_behind)
{
    peg_status status = PEG_ENOMEM;
    unsigned n_refused = 0;

    for (unsigned nth = 1; status; nth++) {
        struct world world;
        struct player thief = {0};
        struct player other;
        struct caller caller;
        struct calls_running listed[3];
        bool is_there;

        world_open(&world, &DEFAULTS);
        attach(&world, &other, "incarnation-2", 1);
        call_as(&world, &caller, "add", "", 0);
        for (uint32_t i = 0; i < 3; i++) {
            listed[i] = running_of(&other.handed[0]);
            listed[i].attempt = i;
        }
        peg__mem_fail_at(nth);
        status = come_with(&world, &thief, "incarnation-1", listed, 3);
        peg__mem_fail_at(0);
        /* One whose list was taken, and who could not be told to others, is away for a while. */
        is_there = peg__quota_used(&world.calls->quotas.providers) == 2;
        n_refused += !is_there;
        CHECK_INT(world.calls->assignments.n, is_there ? 4 : 1);
        CHECK(is_there || status == PEG_ENOMEM);
        world_close(&world);
    }
    CHECK(n_refused >= 3);
}

/* ---- what is another's ----------------------------------------------------------------------- */

/* One that runs at `other`, and one that there never was, with or without an identity. */
static void list_anothers(const char *key, bool is_over)
{
    struct world world;
    struct player thieves[2] = {{.n_breaks = 0}};
    struct player other;
    struct caller caller;
    struct calls_running listed[2];

    world_open(&world, &DEFAULTS);
    attach(&world, &other, "incarnation-2", 1);
    call_as(&world, &caller, "add", key, 0);
    CHECK_INT(other.n_handed, 1);
    if (is_over)
        answer(&world, &other, &other.handed[0], "2");
    listed[0] = listed[1] = running_of(&other.handed[0]);
    if (key[0])
        listed[1].id.bytes[0] ^= 0x55;
    else
        CHECK(calls_random_id(world.calls, true, &listed[1].id));
    for (size_t i = 0; i < 2; i++) {
        const char *incarnation = i ? "thief-2" : "thief-1";

        CHECK_INT(come_with(&world, &thieves[i], incarnation, &listed[i], 1), PEG_OK);
        settle(&world);
        CHECK_INT(thieves[i].n_canceled, key[0] ? 0 : 1);
        CHECK(key[0] || thieves[i].cancel_reason == BUS_SETTLED);
    }
    CHECK_INT(other.n_canceled, 0);
    answer(&world, &thieves[0], &other.handed[0], "1"); /* it is not his to answer */
    if (!is_over) {
        CHECK_INT(caller.n_ends, 0);
        answer(&world, &other, &other.handed[0], "2");
    }
    CHECK_INT(caller.n_ends, 1);
    CHECK_STR(peg_cstr(caller.result), "2");
    world_close(&world);
}

TEST(a_call_that_is_anothers_is_answered_as_one_that_there_never_was)
{
    list_anothers("", false);
}

TEST(a_call_with_an_identity_that_is_anothers_is_answered_as_one_that_there_never_was)
{
    list_anothers("key-1", false);
}

TEST(a_call_of_anothers_that_has_ended_is_answered_as_one_that_there_never_was)
{
    list_anothers("", true);
    list_anothers("key-1", true);
}

/* Several say that they have the next attempt, before it is handed to anybody. */
TEST(who_lists_an_attempt_before_it_is_made_does_not_get_it)
{
    struct world world;
    struct player player;
    struct player thieves[3];
    struct caller caller;
    struct calls_running listed;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    listed = running_of(&player.handed[0]);
    listed.attempt = 2;
    for (unsigned i = 0; i < 3; i++) {
        char incarnation[16];

        thieves[i] = (struct player){0};
        snprintf(incarnation, sizeof(incarnation), "thief-%u", i);
        CHECK_INT(come_with(&world, &thieves[i], incarnation, &listed, 1), PEG_OK);
        settle(&world);
        calls_provider_drain(thieves[i].provider);
    }
    calls_provider_nak(player.provider, &player.handed[0].id, 1, BUS_GONE);
    settle(&world);
    CHECK_INT(player.n_handed, 2);
    CHECK_INT(player.handed[1].attempt, 2);
    answer(&world, &player, &player.handed[1], "2");
    CHECK_STR(peg_cstr(caller.result), "2");
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(thieves[i].n_handed, 0);
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
    struct calls_running listed[2];

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 2);
    call_as(&world, &first, "add", "", 0);
    call_as(&world, &second, "add", "", 0);
    calls_provider_leave(player.provider);
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

/* ---- long lists ------------------------------------------------------------------------------ */

static struct calls_running MANY_CALLS[MANY];

/* Calls of this node that have ended: each is told to its provider, once. Or of another one, of
 * which nothing is known here. */
static const struct calls_running *many_calls(const struct world *world, bool is_of_another_node)
{
    const struct bus_address elsewhere = {.node = 99};

    for (unsigned i = 0; i < MANY; i++) {
        struct bus_id id = {.len = 16, .bytes = {[15] = 1}};

        memcpy(id.bytes, &i, sizeof(i));
        MANY_CALLS[i] = (struct calls_running){
            .id = id,
            .attempt = 1,
            .route = is_of_another_node ? elsewhere : world->bus->self,
            .tool = {"add", 3},
        };
    }
    return MANY_CALLS;
}

/* Each round of the loop looks at some. */
static void settle_all(struct world *world)
{
    for (unsigned i = 0; i < 4; i++)
        settle(world);
}

static void open_with_many(struct world *world, struct player *player)
{
    world_open(world, &DEFAULTS);
    CHECK_INT(come_with(world, player, "incarnation-1", many_calls(world, false), MANY), PEG_OK);
}

TEST(a_long_list_is_looked_at_in_parts_and_all_of_it_is_told)
{
    struct world world;
    struct player player = {0};

    open_with_many(&world, &player);
    CHECK(player.n_canceled > 0);
    CHECK(player.n_canceled < MANY);
    calls_provider_ready(player.provider); /* others have their turn first */
    CHECK(player.n_canceled < MANY);
    settle_all(&world);
    CHECK_INT(player.n_canceled, MANY);
    CHECK(player.provider->review.is_armed);
    world_close(&world);
}

TEST(a_long_list_is_not_told_to_a_stream_that_is_not_ready)
{
    struct world world;
    struct player player = {0};
    unsigned n;

    open_with_many(&world, &player);
    n = player.n_canceled;
    player.is_deaf = true;
    settle_all(&world);
    CHECK_INT(player.n_canceled, n);
    player.is_deaf = false;
    calls_provider_ready(player.provider);
    settle_all(&world);
    CHECK_INT(player.n_canceled, MANY);
    world_close(&world);
}

TEST(calls_of_a_long_list_may_end_before_they_are_looked_at)
{
    struct world world;
    struct player player = {0};
    unsigned n;

    open_with_many(&world, &player);
    n = player.n_canceled;
    for (unsigned i = n; i < n + 10; i++) /* the next ones */
        calls_provider_nak(player.provider, &MANY_CALLS[i].id, 1, BUS_OVERLOADED);
    settle_all(&world);
    CHECK_INT(player.n_canceled, MANY - 10);
    CHECK_INT(world.calls->assignments.n, MANY - 10);
    world_close(&world);
}

TEST(all_that_is_left_of_a_long_list_may_end_before_it_is_looked_at)
{
    struct world world;
    struct player player = {0};
    unsigned n;

    open_with_many(&world, &player);
    n = player.n_canceled;
    for (unsigned i = n; i < MANY; i++)
        calls_provider_nak(player.provider, &MANY_CALLS[i].id, 1, BUS_OVERLOADED);
    settle_all(&world);
    CHECK_INT(player.n_canceled, n);
    CHECK(player.provider->review.is_armed);
    world_close(&world);
}

TEST(a_provider_that_breaks_off_while_its_list_is_looked_at_is_told_all_when_it_is_back)
{
    struct world world;
    struct player player = {0};
    struct player again = {.n_breaks = 1};

    open_with_many(&world, &player);
    calls_provider_leave(player.provider);
    settle_all(&world);
    CHECK(player.n_canceled < MANY);
    CHECK_INT(come_with(&world, &again, "incarnation-1", MANY_CALLS, MANY), PEG_OK);
    settle_all(&world);
    CHECK_INT(again.n_canceled, MANY);
    world_close(&world);
}

TEST(a_provider_that_is_gone_while_its_list_is_looked_at_leaves_nothing_behind)
{
    struct world world;
    struct player player = {0};

    open_with_many(&world, &player);
    calls_provider_free(player.provider);
    settle_all(&world);
    CHECK_INT(world.calls->assignments.n, 0);
    CHECK_INT(world.calls->n_unknown, 0);
    CHECK_INT(come_with(&world, &player, "incarnation-1", MANY_CALLS, MANY), PEG_OK);
    world_close(&world); /* and the loop is freed in the middle of it */
}

TEST(new_calls_are_handed_over_while_a_long_list_is_looked_at)
{
    struct world world;
    struct player player = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    CHECK_INT(come_with(&world, &player, "incarnation-1", many_calls(&world, true), MANY), PEG_OK);
    player.is_deaf = true;
    settle_all(&world);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(player.n_handed, 0);
    player.is_deaf = false;
    calls_provider_ready(player.provider);
    CHECK_INT(player.n_handed, 1);
    CHECK(world.calls->n_unknown < MANY);
    settle_all(&world);
    CHECK_INT(world.calls->n_unknown, MANY);
    answer(&world, &player, &player.handed[0], "1");
    CHECK_STR(peg_cstr(caller.result), "1");
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
}

/* ---- a provider that stayed away ------------------------------------------------------------- */

static void stay_away(struct world *world, struct player *player)
{
    CHECK_INT(come_with(world, player, "incarnation-1", many_calls(world, false), MANY), PEG_OK);
    settle_all(world);
    calls_provider_leave(player->provider);
    /* its lease is over */
    bus_disarm(world->bus, &player->provider->away);
    player->provider->away.fn(&player->provider->away);
    CHECK(world->calls->assignments.n > 0);
    CHECK(world->calls->assignments.n < MANY);
}

TEST(what_a_provider_that_stayed_away_had_is_dropped_in_parts)
{
    struct world world;
    struct player player = {0};

    world_open(&world, &DEFAULTS);
    stay_away(&world, &player);
    CHECK_INT(peg__quota_used(&world.calls->quotas.providers), 1);
    settle_all(&world);
    CHECK_INT(world.calls->assignments.n, 0);
    CHECK_INT(peg__quota_used(&world.calls->quotas.providers), 0);
    world_close(&world);
}

TEST(a_provider_that_comes_back_while_its_calls_are_dropped_keeps_what_it_lists)
{
    struct world world;
    struct player player = {0};
    struct player again = {.n_breaks = 1};

    world_open(&world, &DEFAULTS);
    stay_away(&world, &player);
    CHECK_INT(come_with(&world, &again, "incarnation-1", MANY_CALLS, MANY - 1), PEG_OK);
    settle_all(&world);
    CHECK_INT(world.calls->assignments.n, MANY - 1);
    CHECK_INT(again.n_canceled, MANY - 1);
    for (unsigned i = 0; i < MANY; i++)
        CHECK(calls_provider_has(again.provider, &MANY_CALLS[i].id, 1) == (i < MANY - 1));
    world_close(&world);
}

TEST(a_loop_may_go_while_it_drops_the_calls_of_a_provider_that_stayed_away)
{
    struct world world;
    struct player player = {0};

    world_open(&world, &DEFAULTS);
    stay_away(&world, &player);
    gw_router_clear(&world.router);
    bus_listen(world.bus, &(struct bus_events){0}, NULL);
    settle_all(&world);
    world_close(&world);
}
