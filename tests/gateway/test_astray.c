/* SPDX-License-Identifier: Apache-2.0 */

/* What is left of calls without an identity that did not run: nothing, as soon as no letter with
 * them can arrive any more; until then the proof that there is nothing to start. */

#include "../t.h"

#include "desk_world.h"

enum { A_DAY_MS = PEG_LIMIT_GATEWAY_MAX_CALL_MS };

static const struct gw_desk_options DEFAULTS;

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
        gw_provider_nak(player.provider, &player.handed[i].id, i + 1, BUS_OVERLOADED);
        settle(&world);
    }

    CHECK(caller.n_ends == 1 && caller.error == WIRE_OVERLOADED && !caller.was_started);
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
    gw_caller_drop(&callers[1].caller);
    settle(&world);
    CHECK_INT(bus_local_n_registers(world.hub), 1);
    CHECK_INT(world.desk->astray.n, 0);
    answer(&world, &player, &player.handed[0], "1");

    CHECK(callers[0].outcome == GW_RESULT && player.n_handed == 1);
    CHECK_INT(bus_local_n_registers(world.hub), 0);
    world_close(&world);
}

/* Its holder, which did not hear that it was canceled, asks for the right to start it. */
TEST(one_that_is_not_told_and_loses_the_claim_leaves_nothing)
{
    struct world world;
    struct player player;
    struct caller callers[2];
    struct gw_held *held;

    open_with_queue(&world, &player, callers);
    held = gw_holder_held(world.desk, &callers[1].caller.id, 1);
    held->canceled = BUS_CANCELED;
    gw_caller_drop(&callers[1].caller);
    settle(&world);
    CHECK_INT(bus_local_n_registers(world.hub), 2);
    answer(&world, &player, &player.handed[0], "1");

    CHECK(player.n_handed == 1);
    CHECK_INT(bus_local_n_registers(world.hub), 0);
    CHECK_INT(world.desk->astray.n, 0);
    world_close(&world);
}

TEST(while_a_letter_may_arrive_the_proof_stays)
{
    struct world world;
    struct player player;
    struct caller callers[2];
    struct bus_letter nak = {.kind = BUS_NAK, .reason = BUS_CANCELED, .attempt = 1};

    open_with_queue(&world, &player, callers);
    nak.id = callers[1].caller.id;
    gw_send_again(gw_desk_driven(world.desk, &nak.id)); /* on its way */
    gw_caller_drop(&callers[1].caller);
    gw_desk_on_letter(world.desk, &nak); /* of the first letter */
    CHECK_INT(bus_local_n_registers(world.hub), 2);
    CHECK_INT(world.desk->astray.n, 1);
    nak.reason = BUS_UNKNOWN; /* which is about no letter */
    gw_desk_on_letter(world.desk, &nak);
    CHECK_INT(bus_local_n_registers(world.hub), 2);

    settle(&world);
    CHECK_INT(bus_local_n_registers(world.hub), 1);
    CHECK_INT(world.desk->astray.n, 0);
    CHECK_INT(player.n_handed, 1);
    world_close(&world);
}

/* It ends with a letter that nobody answers. */
TEST(what_is_remembered_goes_with_the_desk)
{
    struct world world;
    struct player player;
    struct caller callers[2];

    open_with_queue(&world, &player, callers);
    gw_caller_drop(&callers[1].caller);
    CHECK_INT(world.desk->astray.n, 1);
    world_close(&world);
}
