/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: what a tool says while it runs is heard before its result, whichever way that is learned:
 * messages are on their way for a while, and who looks for himself must not overtake them. */

#include "../t.h"
#include "calls_world.h"

static const struct calls_options DEFAULTS;

/* Without letting any message arrive. */
static void say(const struct player *player, const char *text)
{
    const struct handed *handed = &player->handed[0];

    calls_provider_output(player->provider, &handed->id, handed->attempt, peg_cstr(text));
}

static void end(const struct player *player)
{
    const struct handed *handed = &player->handed[0];
    char packed[16];
    const size_t len = (size_t)(wire_put_bytes(packed, 2, peg_cstr("1")) - packed);

    CHECK(calls_provider_result(player->provider, &handed->id, handed->attempt,
                                (peg_str){packed, len}, (peg_str){packed + len - 1, 1}, false));
}

static bool has_heard_all(const struct caller *caller)
{
    return caller->n_ends == 1 && caller->outcome == CALLS_KIND_RESULT && caller->n_outputs == 2;
}

TEST(a_recheck_while_messages_are_under_way_reports_the_output_before_the_result)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    say(&player, "one");
    say(&player, "two");
    end(&player);
    look_at_all(&world);
    CHECK_INT(caller.n_ends, 0);

    settle(&world);
    CHECK(has_heard_all(&caller));
    world_close(&world);
}

TEST(so_does_a_recheck_of_a_second_caller)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    say(&player, "one");
    say(&player, "two");
    end(&player);
    look_at_all(&world);
    CHECK(first.n_ends == 0 && second.n_ends == 0);

    settle(&world);
    CHECK(has_heard_all(&first));
    CHECK(has_heard_all(&second) && second.is_follower);
    world_close(&world);
}

/* ---- messages that are lost -------------------------------------------------------------------
 */

static void on_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    (void)wait;
    CHECK(answer->written);
}

/* As the provider side does before it sends the message. */
static void write_outcome(struct world *world, const struct bus_id *id)
{
    const struct calls_outcome outcome = {.kind = CALLS_KIND_RESULT, .was_started = true};
    const struct bus_key key = {
        .id = *id, .what = BUS_RESULT, .is_node_local = calls_id_is_node_local(id)};
    struct peg__blob *blob = calls_outcome_write(&outcome);
    struct bus_wait written = {.fn = on_written};

    bus_put_if_absent(world->bus, &key, blob, INT64_MAX, &written);
    peg__blob_unref(blob);
}

TEST(a_listener_gets_the_result_although_its_message_is_lost)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    write_outcome(&world, &player.handed[0].id);
    look_at_all(&world);
    CHECK_INT(caller.n_ends, 0);

    await_end(&world, &caller);
    CHECK_INT(caller.outcome, CALLS_KIND_RESULT);
    world_close(&world);
}

TEST(who_does_not_listen_takes_the_result_when_he_sees_it)
{
    struct calls_caller_events deaf = CALLER_EVENTS;
    struct world world;
    struct player player;
    struct caller caller;

    deaf.on_output = NULL;
    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    caller.caller.events = &deaf;
    write_outcome(&world, &player.handed[0].id);
    look_at_all(&world);
    CHECK(caller.n_ends == 1 && caller.outcome == CALLS_KIND_RESULT);
    world_close(&world);
}

/* A result that does not fit a message, or that must not be taken from it: what came before the
 * message has been heard. */
TEST(a_message_without_the_outcome_ends_the_wait_for_one)
{
    struct world world;
    struct player player;
    struct caller caller;
    struct bus_message message = {.kind = BUS_DONE, .attempt = 1};

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    write_outcome(&world, &player.handed[0].id);
    message.id = player.handed[0].id;
    message.from = world.bus->self;
    calls_on_message(world.calls, &message);
    CHECK(caller.n_ends == 1 && caller.outcome == CALLS_KIND_RESULT);
    world_close(&world);
}
