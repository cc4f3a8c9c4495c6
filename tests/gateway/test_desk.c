/* SPDX-License-Identifier: Apache-2.0 */

/* The path of a call on one desk, stage by stage. Histories of many desks are in test_sim.c. */

#include <time.h>

#include "../t.h"

#include "desk_world.h"

static const struct gw_desk_options DEFAULTS;

TEST(a_call_goes_to_the_provider_and_its_result_to_the_caller)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", 0);
    CHECK(player.n_handed == 1);
    CHECK_STR(peg_cstr(player.handed[0].tool), "add");
    CHECK_STR(peg_cstr(player.handed[0].payload), "{\"n\":1}");
    CHECK(caller.n_ends == 0);
    answer(&world, &player, &player.handed[0], "42");
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == GW_RESULT);
    CHECK_STR(peg_cstr(caller.result), "42");
    CHECK(player.n_acks == 1);
    CHECK(gw_desk_n_calls(world.desk) == 0);
    world_close(&world);
}

TEST(a_call_that_is_invalid_and_unhealthy_is_invalid)
{
    struct world world;
    struct caller caller = {.caller.events = &CALLER_EVENTS};
    const struct gw_ask ask = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = peg_cstr("{\"n\":\"one\"}"),
        .deadline_ns = NET_NEVER,
    };

    world_open(&world, &DEFAULTS);
    gw_desk_call(world.desk, &ask, &caller.caller);
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == GW_REFUSED);
    CHECK(caller.error == WIRE_VALIDATION);
    CHECK(strncmp(caller.message, "payload validation failed: ", 27) == 0);
    world_close(&world);
}

TEST(an_unhealthy_toolset_fails_at_once)
{
    struct world world;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_as(&world, &caller, "add", "", 0);
    CHECK(caller.n_ends == 1);
    CHECK(caller.error == WIRE_SERVICE_UNAVAILABLE);
    CHECK(strstr(caller.message, "no healthy providers for toolset \"sums\"") != NULL);
    world_close(&world);
}

TEST(a_tool_that_nobody_registered_is_not_found)
{
    struct world world;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_as(&world, &caller, "subtract", "", 0);
    CHECK(caller.error == WIRE_NOT_FOUND);
    CHECK_STR(peg_cstr(caller.message), "tool \"subtract\" not found in toolset \"sums\"");
    world_close(&world);
}

TEST(a_provider_gets_no_more_calls_than_it_has_credits)
{
    struct world world;
    struct player player;
    struct caller callers[3];

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 2);
    for (size_t i = 0; i < 3; i++)
        call_as(&world, &callers[i], "add", "", 0);
    CHECK(player.n_handed == 2);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(player.n_handed == 3);
    answer(&world, &player, &player.handed[1], "2");
    answer(&world, &player, &player.handed[2], "3");
    CHECK(callers[0].n_ends == 1 && callers[1].n_ends == 1 && callers[2].n_ends == 1);
    world_close(&world);
}

TEST(a_full_queue_is_overloaded)
{
    const struct gw_desk_options options = {.max_queue = 1};
    struct world world;
    struct player player;
    struct caller callers[3];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    for (size_t i = 0; i < 3; i++)
        call_as(&world, &callers[i], "add", "", 0);
    CHECK(callers[2].n_ends == 1);
    CHECK(callers[2].error == WIRE_OVERLOADED);
    CHECK(callers[0].n_ends == 0 && callers[1].n_ends == 0);
    for (size_t i = 0; i < 2; i++)
        gw_caller_drop(&callers[i].caller);
    world_close(&world);
}

TEST(a_result_that_violates_its_schema_is_an_error_of_the_tool)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    answer(&world, &player, &player.handed[0], "\"many\"");
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == GW_ERROR);
    CHECK(caller.error == WIRE_OK);
    world_close(&world);
}

TEST(an_answer_to_a_call_that_has_ended_or_is_anothers_is_not_taken)
{
    struct world world;
    struct player player;
    struct player other;
    struct caller caller;
    const peg_str result = peg_cstr("\x12\x01"
                                    "1");

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    attach(&world, &other, "incarnation-2", 1);
    CHECK(!gw_provider_result(other.provider, &player.handed[0].id, 1, result, result, false));
    answer(&world, &player, &player.handed[0], "1");
    CHECK(!gw_provider_result(player.provider, &player.handed[0].id, 1, result, result, false));
    CHECK(caller.n_ends == 1);
    world_close(&world);
}

TEST(the_same_identity_joins_the_first_call_and_hears_the_same)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;
    struct caller late;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    CHECK(player.n_handed == 1);
    CHECK(!first.is_joined && second.is_joined);
    answer(&world, &player, &player.handed[0], "7");
    CHECK(first.n_ends == 1 && second.n_ends == 1);
    CHECK_STR(peg_cstr(first.result), "7");
    CHECK_STR(peg_cstr(second.result), "7");
    call_as(&world, &late, "add", "key-1", 0);
    CHECK(player.n_handed == 1);
    CHECK_STR(peg_cstr(late.result), "7");
    world_close(&world);
}

TEST(an_identity_with_another_payload_is_refused)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "peek", "key-1", 0);
    CHECK(second.n_ends == 1);
    CHECK(second.error == WIRE_VALIDATION);
    gw_caller_drop(&first.caller);
    world_close(&world);
}

TEST(a_caller_that_goes_before_the_start_cancels_the_call)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "", 0);
    call_as(&world, &waiting, "add", "", 0);
    gw_caller_drop(&waiting.caller);
    settle(&world);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(player.n_handed == 1);
    CHECK(waiting.n_ends == 0);
    CHECK(gw_desk_n_calls(world.desk) == 0);
    world_close(&world);
}

TEST(a_caller_that_goes_while_it_runs_has_the_provider_told)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    gw_caller_drop(&caller.caller);
    settle(&world);
    CHECK(player.n_canceled == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(gw_desk_n_calls(world.desk) == 0);
    world_close(&world);
}

TEST(a_deadline_while_it_waits_is_a_timeout_that_never_started)
{
    struct world world;
    struct player player;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 20);
    await_end(&world, &waiting);
    CHECK(waiting.outcome == GW_TIMEOUT);
    CHECK(!waiting.was_started);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(player.n_handed == 1);
    world_close(&world);
}

TEST(a_deadline_while_it_runs_leaves_the_outcome_unknown)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 20);
    await_end(&world, &caller);
    CHECK(caller.outcome == GW_OUTCOME_UNKNOWN);
    CHECK(caller.was_started);
    CHECK(player.n_canceled == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(world.desk->n_late == 1);
    world_close(&world);
}

TEST(a_provider_that_says_it_did_not_start_has_the_call_run_elsewhere)
{
    struct world world;
    struct player players[2];
    struct caller caller;
    unsigned first;

    world_open(&world, &DEFAULTS);
    attach(&world, &players[0], "incarnation-1", 1);
    attach(&world, &players[1], "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    first = players[0].n_handed ? 0 : 1;
    gw_provider_nak(players[first].provider, &players[first].handed[0].id, 1, BUS_DRAINING);
    settle(&world);
    CHECK(players[1 - first].n_handed == 1);
    CHECK(players[1 - first].handed[0].attempt == 2);
    answer(&world, &players[1 - first], &players[1 - first].handed[0], "5");
    CHECK_STR(peg_cstr(caller.result), "5");
    world_close(&world);
}

TEST(a_provider_that_comes_back_with_the_call_finishes_it)
{
    struct world world;
    struct player player;
    struct player again = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    gw_provider_leave(player.provider);
    settle(&world);
    CHECK(caller.n_ends == 0);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    answer(&world, &again, &player.handed[0], "9");
    CHECK_STR(peg_cstr(caller.result), "9");
    world_close(&world);
}

/* The Ack was on its way, or waited for others, when the stream broke. */
TEST(a_provider_that_comes_back_with_a_call_that_has_ended_may_forget_it)
{
    struct world world;
    struct player player;
    struct player again = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    answer(&world, &player, &player.handed[0], "9");
    CHECK(caller.n_ends == 1);
    gw_provider_leave(player.provider);
    settle(&world);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    answer(&world, &again, &player.handed[0], "9");
    settle(&world);
    CHECK_INT(again.n_acks, 1);
    CHECK(caller.n_ends == 1);
    CHECK(gw_provider_is_idle(again.provider));
    world_close(&world);
}

TEST(a_provider_that_comes_back_without_the_call_never_had_it)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct player other;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    gw_provider_leave(player.provider);
    attach(&world, &other, "incarnation-2", 1);
    attach_listing(&world, &again, "incarnation-1", 1, NULL);
    CHECK(other.n_handed + again.n_handed == 1);
    CHECK((other.n_handed ? other : again).handed[0].attempt == 2);
    gw_caller_drop(&caller.caller);
    world_close(&world);
}

TEST(a_provider_that_may_have_been_elsewhere_proves_nothing_by_not_listing_a_call)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 2};
    struct player other;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    gw_provider_leave(player.provider);
    attach(&world, &other, "incarnation-2", 1);
    attach_listing(&world, &again, "incarnation-1", 1, NULL);
    CHECK(other.n_handed == 0);
    CHECK(caller.n_ends == 0);
    gw_caller_drop(&caller.caller);
    world_close(&world);
}

TEST(a_provider_that_does_not_come_back_leaves_the_outcome_unknown)
{
    const struct gw_desk_options options = {.lease_ms = 300};
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    gw_provider_leave(player.provider);
    await_end(&world, &caller);
    CHECK(caller.outcome == GW_OUTCOME_UNKNOWN);
    CHECK(caller.was_started);
    world_close(&world);
}

TEST(an_idempotent_tool_is_run_again_when_its_provider_is_lost)
{
    const struct gw_desk_options options = {.lease_ms = 300};
    struct world world;
    struct player player;
    struct player other;
    struct caller caller;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "peek", "", 0);
    gw_provider_leave(player.provider);
    attach(&world, &other, "incarnation-2", 1);
    for (unsigned i = 0; i < 20000 && !other.n_handed; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(&world);
        nanosleep(&pause, NULL);
    }
    CHECK(other.n_handed == 1);
    answer(&world, &other, &other.handed[0], "3");
    CHECK_STR(peg_cstr(caller.result), "3");
    world_close(&world);
}

TEST(another_stream_of_an_incarnation_takes_the_place_of_the_first)
{
    struct world world;
    struct player player;
    struct player again = {0};

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    attach_listing(&world, &again, "incarnation-1", 1, NULL);
    CHECK(player.n_replaced == 1);
    CHECK(world.desk->n_providers == 1);
    world_close(&world);
}

TEST(a_call_is_awaited_and_stopped_by_its_id_only_by_who_asked_for_it)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller awaits = {.caller.events = &CALLER_EVENTS};
    struct caller stranger = {.caller.events = &CALLER_EVENTS};
    struct caller stops = {.caller.events = &CALLER_EVENTS};

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    gw_desk_await(world.desk, &first.caller.id, peg_cstr("local"), NET_NEVER, &awaits.caller);
    gw_desk_await(world.desk, &first.caller.id, peg_cstr("other"), NET_NEVER, &stranger.caller);
    settle(&world);
    CHECK(stranger.n_ends == 1 && stranger.error == WIRE_NOT_FOUND);
    gw_desk_stop(world.desk, &first.caller.id, peg_cstr("local"), &stops.caller);
    settle(&world);
    CHECK(stops.n_ends == 1 && stops.outcome == GW_CANCELED);
    CHECK(player.n_canceled == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(first.n_ends == 1 && awaits.n_ends == 1);
    CHECK_STR(peg_cstr(awaits.result), "1");
    world_close(&world);
}

TEST(a_draining_provider_loses_no_call_and_gets_no_new_one)
{
    struct world world;
    struct player player;
    struct player other;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 0);
    attach(&world, &other, "incarnation-2", 1);
    gw_provider_drain(player.provider);
    settle(&world);
    CHECK(other.n_handed == 1);
    answer(&world, &player, &player.handed[0], "1");
    answer(&world, &other, &other.handed[0], "2");
    CHECK_STR(peg_cstr(running.result), "1");
    CHECK_STR(peg_cstr(waiting.result), "2");
    CHECK(gw_provider_is_idle(player.provider));
    gw_provider_leave(player.provider);
    CHECK(world.desk->n_providers == 1);
    world_close(&world);
}
