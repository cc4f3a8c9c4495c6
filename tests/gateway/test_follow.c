/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that share an identity, on one loop. */

#include <time.h>

#include "../t.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;

/* So long that a worker reads it. */
static void ask_at_length(struct world *world, struct caller *caller)
{
    static char payload[PEG_LIMIT_GATEWAY_INLINE_BYTES + 64];
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = {payload, strlen("{\"n\":1,\"more\":\"\"}") + PEG_LIMIT_GATEWAY_INLINE_BYTES},
        .principal = peg_cstr("local"),
        .key = peg_cstr("key-1"),
        .deadline_ns = NET_NEVER,
    };

    snprintf(payload, sizeof(payload), "{\"n\":1,\"more\":\"%0*d\"}",
             PEG_LIMIT_GATEWAY_INLINE_BYTES, 7);
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
}

/* A second request of the same identity, with another payload, is rejected and changes nothing. */
TEST(a_call_is_stopped_though_another_request_has_its_identity)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    ask_at_length(&world, &second);
    CHECK(second.error == CALLS_VALIDATION);
    stop(&world, &player.handed[0].id);
    settle(&world);
    CHECK(player.n_canceled == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(first.outcome == CALLS_KIND_RESULT);
    world_close(&world);
}

static void say(struct world *world, struct player *player)
{
    calls_provider_output(player->provider, &player->handed[0].id, player->handed[0].attempt,
                          peg_cstr("output"));
    settle(world);
}

TEST(who_joins_hears_what_the_tool_says_from_then_on)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;
    struct caller third;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    say(&world, &player);
    call_as(&world, &second, "add", "key-1", 0);
    call_as(&world, &third, "add", "key-1", 0);
    say(&world, &player);
    calls_caller_leave(&third.caller, CALLS_LEAVES);
    say(&world, &player);
    CHECK_INT(first.n_outputs, 3);
    CHECK_INT(second.n_outputs, 2);
    CHECK_INT(third.n_outputs, 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(second.n_ends == 1);
    world_close(&world);
}

/* Whoever goes last cancels the call, whoever that is. */
TEST(a_call_that_nobody_waits_for_any_more_is_canceled)
{
    for (unsigned last = 0; last < 3; last++) {
        struct world world;
        struct player player;
        struct caller callers[3];

        world_open(&world, &DEFAULTS);
        attach(&world, &player, "incarnation-1", 4);
        for (unsigned i = 0; i < 3; i++)
            call_as(&world, &callers[i], "add", "key-1", 0);
        calls_caller_leave(&callers[(last + 1) % 3].caller, CALLS_LEAVES);
        calls_caller_leave(&callers[(last + 2) % 3].caller, CALLS_LEAVES);
        settle(&world);
        CHECK_INT(player.n_canceled, 0);
        calls_caller_leave(&callers[last].caller, CALLS_LEAVES);
        settle(&world);
        CHECK_INT(player.n_canceled, 1);
        world_close(&world);
    }
}

TEST(a_call_that_somebody_started_goes_on_when_who_asked_before_is_gone)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller starter;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &starter, "add", "key-1", 0);
    calls_caller_leave(&starter.caller, CALLS_DETACHES);
    settle(&world);
    calls_caller_leave(&first.caller, CALLS_LEAVES);
    settle(&world);
    CHECK_INT(player.n_canceled, 0);
    answer(&world, &player, &player.handed[0], "1");
    call_as(&world, &first, "add", "key-1", 0);
    CHECK_STR(peg_cstr(first.result), "1");
    CHECK_INT(player.n_handed, 1);
    world_close(&world);
}

/* ---- ends that no provider side writes
 * ---------------------------------------------------------------
 */

/* One that runs, one that waits behind it, and a second caller of that. */
static void ask_behind(struct world *world, struct player *player, struct caller callers[3])
{
    attach(world, player, "incarnation-1", 1);
    call_as(world, &callers[0], "add", "", 0);
    call_as(world, &callers[1], "add", "key-1", 0);
    call_as(world, &callers[2], "add", "key-1", 0);
    CHECK(callers[2].is_follower);
    CHECK_INT(player->n_handed, 1);
}

TEST(a_second_caller_learns_at_once_that_it_was_canceled)
{
    struct world world;
    struct player player;
    struct caller callers[3];

    world_open(&world, &DEFAULTS);
    ask_behind(&world, &player, callers);
    stop(&world, &callers[1].caller.id);
    settle(&world);
    CHECK_INT(callers[1].outcome, CALLS_KIND_CANCELED);
    CHECK_INT(callers[2].n_ends, 1);
    CHECK_INT(callers[2].outcome, CALLS_KIND_CANCELED);
    CHECK(!callers[2].was_started);
    world_close(&world);
}

TEST(a_second_caller_learns_at_once_that_the_outcome_is_unknown)
{
    const struct calls_options options = {.grace_ms = 1};
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    stop(&world, &first.caller.id);
    await_end(&world, &first);
    CHECK_INT(first.outcome, CALLS_KIND_UNKNOWN);
    CHECK_INT(second.n_ends, 1);
    CHECK_INT(second.outcome, CALLS_KIND_UNKNOWN);
    CHECK(second.was_started);
    world_close(&world);
}

TEST(what_nobody_could_run_is_asked_for_again_though_it_had_a_second_caller)
{
    struct world world;
    struct player player;
    struct player other;
    struct caller callers[3];
    struct caller again;

    world_open(&world, &DEFAULTS);
    ask_behind(&world, &player, callers);
    calls_provider_leave(player.provider);
    settle(&world);
    CHECK_INT(callers[1].error, CALLS_SERVICE_UNAVAILABLE);
    CHECK_INT(callers[2].n_ends, 1);
    CHECK_INT(callers[2].error, CALLS_SERVICE_UNAVAILABLE);

    attach(&world, &other, "incarnation-2", 1);
    call_as(&world, &again, "add", "key-1", 0);
    CHECK_INT(again.n_ends, 0);
    CHECK_INT(other.n_handed, 1);
    answer(&world, &other, &other.handed[0], "7");
    CHECK_STR(peg_cstr(again.result), "7");
    world_close(&world);
}

/* It is still in a queue when its caller hears that nobody can run it. */
TEST(what_a_provider_that_fell_silent_did_not_start_is_asked_for_again)
{
    struct world world;
    struct player silent;
    struct player well;
    struct caller running;
    struct caller waiting;
    struct caller again;

    world_open(&world, &DEFAULTS);
    attach(&world, &silent, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "key-1", 60000);
    fall_silent(&world, "incarnation-1");
    await_end(&world, &waiting);
    CHECK_INT(waiting.error, CALLS_SERVICE_UNAVAILABLE);

    attach(&world, &well, "incarnation-2", 1);
    call_as(&world, &again, "add", "key-1", 60000);
    CHECK_INT(again.n_ends, 0);
    CHECK_INT(well.n_handed, 1);
    answer(&world, &well, &well.handed[0], "7");
    CHECK_STR(peg_cstr(again.result), "7");
    answer(&world, &silent, &silent.handed[0], "1");
    CHECK_INT(silent.n_handed, 1);
    world_close(&world);
}

/* ---- who knows the id of another's call -------------------------------------------------------
 */

/* Registers that are far away: what is read is answered when the test says so. */
struct far_read {
    struct bus_key key;
    struct bus_wait *wait;
};
static struct far_read far_reads[8];
static unsigned n_far_reads;
static const struct bus_ops *near_ops;
static struct bus_ops far_ops;

static void read_far(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    CHECK(n_far_reads < sizeof(far_reads) / sizeof(far_reads[0]));
    wait->pending = bus;
    far_reads[n_far_reads++] = (struct far_read){*key, wait};
}

static void forget_far(struct bus *bus, struct bus_wait *wait)
{
    for (unsigned i = 0; i < n_far_reads; i++)
        if (far_reads[i].wait == wait)
            far_reads[i].wait = NULL;
    near_ops->forget_wait(bus, wait);
}

static void go_far(struct world *world)
{
    near_ops = world->bus->ops;
    far_ops = *near_ops;
    far_ops.read = read_far;
    far_ops.forget_wait = forget_far;
    n_far_reads = 0;
    world->bus->ops = &far_ops;
}

static void come_near(struct world *world)
{
    world->bus->ops = near_ops;
    for (unsigned i = 0; i < n_far_reads; i++) {
        if (!far_reads[i].wait)
            continue;
        far_reads[i].wait->pending = NULL;
        bus_read(world->bus, &far_reads[i].key, far_reads[i].wait);
    }
    settle(world);
}

enum way { AWAITS, STOPS, N_WAYS };

static void ask_by_id(struct world *world, struct caller *caller, enum way way,
                      const struct bus_id *id, const char *principal)
{
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    if (way == AWAITS)
        calls_await(world->calls, id, peg_cstr(principal), NET_NEVER, &caller->caller);
    else
        calls_cancel(world->calls, id, peg_cstr(principal), &caller->caller);
}

static void check_hears_nothing(struct world *world, struct player *player, enum way way,
                                const char *key)
{
    struct caller owner;
    struct caller stranger;
    struct caller nobody;
    const struct handed *handed = &player->handed[player->n_handed];
    struct bus_id never;

    call_as(world, &owner, "add", key, 0);
    never = owner.caller.id;
    never.bytes[0] ^= 0xff;
    go_far(world);
    ask_by_id(world, &stranger, way, &owner.caller.id, "other");
    ask_by_id(world, &nobody, way, &never, "other");
    calls_provider_output(player->provider, &handed->id, handed->attempt, peg_cstr("output"));
    settle(world);
    answer(world, player, handed, "41");
    CHECK_STR(peg_cstr(owner.result), "41");
    CHECK_INT(stranger.n_ends, 0);
    come_near(world);
    CHECK_INT(stranger.n_ends, 1);
    CHECK_INT(stranger.n_outputs, 0);
    CHECK_INT(stranger.error, CALLS_NOT_FOUND);
    CHECK_INT(stranger.error, nobody.error);
    CHECK_INT(stranger.was_started, nobody.was_started);
    CHECK_STR(peg_cstr(stranger.message), nobody.message);
    CHECK_STR(peg_cstr(stranger.result), "");
    CHECK(!stranger.is_admitted);
}

/* The call ends before it is known whose it is. */
TEST(a_stranger_hears_of_a_call_what_he_hears_of_none)
{
    struct world world;
    struct player player;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    check_hears_nothing(&world, &player, AWAITS, "key-1");
    check_hears_nothing(&world, &player, STOPS, "key-2");
    check_hears_nothing(&world, &player, AWAITS, "");
    check_hears_nothing(&world, &player, STOPS, "");
    CHECK_INT(player.n_canceled, 0);
    world_close(&world);
}

TEST(a_stranger_does_not_keep_a_call_that_nobody_waits_for)
{
    for (unsigned way = 0; way < N_WAYS; way++) {
        struct world world;
        struct player player;
        struct caller owner;
        struct caller stranger;

        world_open(&world, &DEFAULTS);
        attach(&world, &player, "incarnation-1", 1);
        call_as(&world, &owner, "add", "key-1", 0);
        go_far(&world);
        ask_by_id(&world, &stranger, (enum way)way, &owner.caller.id, "other");
        calls_caller_leave(&owner.caller, CALLS_LEAVES);
        come_near(&world);
        CHECK_INT(player.n_canceled, 1);
        CHECK_INT(stranger.error, CALLS_NOT_FOUND);
        world_close(&world);
    }
}

/* Neither that he is there nor that he goes is told to its coordinator. */
TEST(a_stranger_who_goes_before_it_is_known_whose_it_is_leaves_nothing)
{
    struct world world;
    struct player player;
    struct caller owner;
    struct caller strangers[2];

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &owner, "add", "key-1", 0);
    go_far(&world);
    ask_by_id(&world, &strangers[0], AWAITS, &owner.caller.id, "other");
    ask_by_id(&world, &strangers[1], STOPS, &owner.caller.id, "other");
    calls_caller_leave(&strangers[0].caller, CALLS_LOSES_CONNECTION);
    calls_caller_leave(&strangers[1].caller, CALLS_LEAVES);
    CHECK_INT(calls_count(world.calls), 2); /* the owner's, and its assignment */
    come_near(&world);
    CHECK_INT(player.n_canceled, 0);
    answer(&world, &player, &player.handed[0], "1");
    CHECK_STR(peg_cstr(owner.result), "1");
    world_close(&world);
}

TEST(the_owner_hears_of_a_call_that_ended_before_it_was_known_whose_it_is)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller awaits;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    go_far(&world);
    ask_by_id(&world, &awaits, AWAITS, &first.caller.id, "local");
    answer(&world, &player, &player.handed[0], "1");
    CHECK_INT(awaits.n_ends, 0);
    come_near(&world);
    CHECK_STR(peg_cstr(awaits.result), "1");
    world_close(&world);
}

static void ask_as_anna(struct world *world, struct caller *caller, const char *key)
{
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = peg_cstr("{\"n\":1}"),
        .principal = peg_cstr("token:anna"),
        .key = peg_cstr(key),
        .deadline_ns = NET_NEVER,
    };

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
    settle(world);
}

/* Its identity is being read when the second caller comes, and there is quota again. */
TEST(a_call_without_quota_that_gets_a_request_is_still_the_same_call)
{
    enum { CALLS = 16, SHARE = 12 };
    const struct calls_options options = {.max_calls = CALLS, .has_principals = true};
    struct world world;
    struct player player;
    struct caller before;
    struct caller running[SHARE];
    struct caller waiting[2];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    ask_as_anna(&world, &before, "key-1");
    answer(&world, &player, &player.handed[0], "41");
    for (unsigned i = 0; i < SHARE; i++)
        ask_as_anna(&world, &running[i], "");

    go_far(&world);
    ask_as_anna(&world, &waiting[0], "key-1");
    for (unsigned i = 0; i < SHARE; i++)
        answer(&world, &player, &player.handed[1 + i], "1");
    ask_as_anna(&world, &waiting[1], "key-1");
    CHECK_INT(n_far_reads, 2);
    come_near(&world);

    for (unsigned i = 0; i < 2; i++) {
        CHECK_STR(peg_cstr(waiting[i].result), "41");
        CHECK_INT(waiting[i].error, CALLS_OK);
    }
    CHECK_INT(player.n_handed, 1 + SHARE);
    world_close(&world);
}
