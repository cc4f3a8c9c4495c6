/* SPDX-License-Identifier: Apache-2.0 */

/* What is left of calls without an identity that did not run: nothing, as soon as no message with
 * them can arrive any more; until then the proof that there is nothing to start. */

#include "../t.h"

#include "calls_world.h"

enum { A_DAY_MS = PEG_LIMIT_GATEWAY_MAX_CALL_MS };

static const struct calls_options DEFAULTS;

TEST(a_call_that_its_providers_give_back_leaves_nothing)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", A_DAY_MS);
    CHECK_INT(bus_local_n_registers(world.hub), 1);
    for (unsigned i = 0; i < player.n_handed; i++) {
        calls_provider_nak(player.provider, &player.handed[i].id, i + 1, BUS_OVERLOADED);
        settle(&world);
    }

    CHECK(caller.n_ends == 1 && caller.error == CALLS_OVERLOADED && !caller.was_started);
    CHECK_INT(player.n_handed, PEG_LIMIT_GATEWAY_ATTEMPTS);
    CHECK_INT(bus_local_n_registers(world.hub), 0);
    world_close(&world);
}

/* One runs, and the other waits. */
static void open_with_queue(struct world *world, struct player *player, struct caller callers[2])
{
    world_open(world, &DEFAULTS);
    attach(world, player, "incarnation-1", 1);
    call_as(world, &callers[0], "add", "", A_DAY_MS);
    call_as(world, &callers[1], "add", "", A_DAY_MS);
    CHECK_INT(bus_local_n_registers(world->hub), 1);
}

TEST(a_call_that_is_canceled_in_the_queue_leaves_nothing)
{
    struct world world;
    struct player player;
    struct caller callers[2];

    open_with_queue(&world, &player, callers);
    calls_caller_leave(&callers[1].caller, CALLS_LEAVES);
    settle(&world);
    CHECK_INT(bus_local_n_registers(world.hub), 1);
    CHECK_INT(world.calls->outstanding.n, 0);
    answer(&world, &player, &player.handed[0], "1");

    CHECK(callers[0].outcome == CALLS_KIND_RESULT && player.n_handed == 1);
    CHECK_INT(bus_local_n_registers(world.hub), 0);
    world_close(&world);
}

/* Its provider side, which did not hear that it was canceled, asks for the right to start it. */
TEST(one_that_is_not_told_and_loses_the_claim_leaves_nothing)
{
    struct world world;
    struct player player;
    struct caller callers[2];

    open_with_queue(&world, &player, callers);
    lost_kind = BUS_CANCEL;
    calls_caller_leave(&callers[1].caller, CALLS_LEAVES);
    settle(&world);
    CHECK_INT(bus_local_n_registers(world.hub), 2);
    answer(&world, &player, &player.handed[0], "1");

    CHECK(player.n_handed == 1);
    CHECK_INT(bus_local_n_registers(world.hub), 0);
    CHECK_INT(world.calls->outstanding.n, 0);
    world_close(&world);
}

TEST(while_a_message_may_arrive_the_registers_stay)
{
    struct world world;
    struct player player;
    struct caller callers[2];
    struct bus_message nak = {.kind = BUS_NAK, .reason = BUS_CANCELED, .attempt = 1};

    open_with_queue(&world, &player, callers);
    nak.id = callers[1].caller.id;
    look_at_all(&world); /* it is not claimed: sent again */
    calls_caller_leave(&callers[1].caller, CALLS_LEAVES);
    calls_on_message(world.calls, &nak); /* of the first message */
    CHECK_INT(bus_local_n_registers(world.hub), 2);
    CHECK_INT(world.calls->outstanding.n, 1);
    nak.reason = BUS_UNKNOWN; /* which is about no message */
    calls_on_message(world.calls, &nak);
    CHECK_INT(bus_local_n_registers(world.hub), 2);

    settle(&world);
    CHECK_INT(bus_local_n_registers(world.hub), 1);
    CHECK_INT(world.calls->outstanding.n, 0);
    CHECK_INT(player.n_handed, 1);
    world_close(&world);
}

/* It ends with a message that nobody answers. */
TEST(what_is_remembered_goes_with_the_loop)
{
    struct world world;
    struct player player;
    struct caller callers[2];

    open_with_queue(&world, &player, callers);
    calls_caller_leave(&callers[1].caller, CALLS_LEAVES);
    CHECK_INT(world.calls->outstanding.n, 1);
    world_close(&world);
}

/* ---- what is about no message ------------------------------------------------------------------
 */

/* It was given back once, and waits for a place at the same provider, as its second attempt. */
static void open_with_second(struct world *world, struct player *player, struct caller *caller)
{
    world_open(world, &DEFAULTS);
    attach(world, player, "incarnation-1", 4);
    call_as(world, caller, "add", "", A_DAY_MS);
    player->is_deaf = true;
    calls_provider_nak(player->provider, &player->handed[0].id, 1, BUS_OVERLOADED);
    settle(world);
    CHECK_INT(player->n_handed, 1);
    CHECK(calls_assignment_find(world->calls, &caller->caller.id, 2) != NULL);
}

/* Its caller goes, and its provider side does not hear of it: until that asks for the right to
 * start it, somebody has to stand in the way. */
static void check_that_proof_stays(struct world *world, struct player *player,
                                   struct caller *caller)
{
    const struct bus_id id = caller->caller.id;

    lost_kind = BUS_CANCEL;
    calls_caller_leave(&caller->caller, CALLS_LEAVES);
    settle(world);
    CHECK(stands(world, &id, BUS_CLAIM, 2));
    CHECK_INT(world->calls->outstanding.n, 1);

    player->is_deaf = false;
    calls_provider_ready(player->provider);
    settle(world);
    CHECK_INT(player->n_handed, 1);
    CHECK_INT(bus_local_n_registers(world->hub), 0);
    CHECK_INT(world->calls->outstanding.n, 0);
}

static void lie_about(uint32_t attempt)
{
    struct world world;
    struct player player;
    struct player liar = {.is_deaf = true};
    struct caller caller;
    struct handed listed;

    open_with_second(&world, &player, &caller);
    listed = player.handed[0];
    listed.attempt = attempt;
    attach_listing(&world, &liar, "incarnation-2", 4, &listed);
    calls_provider_nak(liar.provider, &listed.id, attempt, BUS_OVERLOADED);
    settle(&world);
    CHECK(!calls_assignment_find(world.calls, &listed.id, attempt));
    CHECK_INT(liar.n_acks, 0);
    check_that_proof_stays(&world, &player, &caller);
    world_close(&world);
}

TEST(a_provider_that_only_reports_a_call_answers_no_message)
{
    lie_about(1); /* which another one has answered */
    lie_about(3); /* which there was none of */
}

/* Nor does one who came back with it, and then without it. */
TEST(a_provider_that_stops_reporting_a_call_answers_no_message)
{
    struct world world;
    struct player player;
    struct player liar = {.is_deaf = true};
    struct caller caller;
    struct handed listed;

    open_with_second(&world, &player, &caller);
    listed = player.handed[0];
    listed.attempt = 3;
    attach_listing(&world, &liar, "incarnation-2", 4, &listed);
    liar.n_breaks++;
    attach_listing(&world, &liar, "incarnation-2", 4, NULL);
    CHECK(!calls_assignment_find(world.calls, &listed.id, 3));
    check_that_proof_stays(&world, &player, &caller);
    world_close(&world);
}

TEST(a_provider_that_gives_a_call_back_twice_answers_one_message)
{
    struct world world;
    struct player player;
    struct caller caller;

    open_with_second(&world, &player, &caller);
    player.n_breaks++;
    attach_listing(&world, &player, "incarnation-1", 4, &player.handed[0]);
    calls_provider_nak(player.provider, &player.handed[0].id, 1, BUS_OVERLOADED);
    settle(&world);
    check_that_proof_stays(&world, &player, &caller);
    world_close(&world);
}

TEST(another_node_answers_no_message_of_a_call_of_this_one)
{
    struct world world;
    struct player player;
    struct caller caller;
    struct bus_message nak = {
        .kind = BUS_NAK, .reason = BUS_GONE, .attempt = 2, .from.node = 99, .was_claimed = true};

    open_with_second(&world, &player, &caller);
    nak.id = caller.caller.id;
    snprintf(nak.incarnation, sizeof(nak.incarnation), "incarnation-2");
    calls_on_message(world.calls, &nak);
    check_that_proof_stays(&world, &player, &caller);
    world_close(&world);
}

/* It was its own: he who was handed it and comes back may give it back at once. */
TEST(what_a_provider_comes_back_with_it_may_give_back)
{
    struct world world;
    struct player player;
    struct player moved = {.is_deaf = true};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", A_DAY_MS);
    calls_assignment_drop(
        calls_assignment_find(world.calls, &caller.caller.id, 1)); /* as another loop would */
    moved.n_breaks = 1;
    attach_listing(&world, &moved, "incarnation-1", 4, &player.handed[0]);
    calls_provider_nak(moved.provider, &player.handed[0].id, 1, BUS_OVERLOADED);
    settle(&world);
    CHECK(calls_assignment_find(world.calls, &caller.caller.id, 2) != NULL);
    calls_caller_leave(&caller.caller, CALLS_LEAVES); /* the second is answered, as the first was */
    settle(&world);
    CHECK_INT(world.calls->outstanding.n, 0);
    CHECK_INT(bus_local_n_registers(world.hub), 0);
    world_close(&world);
}
