/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of providers at their loop when the catalog changes, when they are away, and when
 * the loop itself is about to go. */

#include "../t.h"

#include "base/limits.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;

/* ---- away ------------------------------------------------------------------------------------ */

static struct bus_ops counting;
static const struct bus_ops *counted;
static unsigned n_leases;

static void count_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                        struct bus_wait *wait)
{
    n_leases += lease_ms == PEG_LIMIT_GATEWAY_LEASE_MS && mode == BUS_LEASE_RENEW;
    counted->lease(bus, name, lease_ms, mode, wait);
}

/* How often does a provider that leaves with a call renew its lease? `other` has it by then, if
 * there is one. */
static unsigned leases_at_leave(struct world *world, struct player *player, struct bus *other)
{
    struct glance glance = {.wait.fn = glance_seen};

    if (other)
        bus_lease(other, peg_cstr("incarnation-1"), 60000, BUS_LEASE_TAKE, &glance.wait);
    counted = world->bus->ops;
    counting = *counted;
    counting.lease = count_lease;
    world->bus->ops = &counting;
    n_leases = 0;
    calls_provider_leave(player->provider);
    settle(world);
    return n_leases;
}

struct lease_read {
    struct bus_wait wait; /* first */
    struct bus_address loop;
};

static void on_lease_read(struct bus_wait *wait, const struct bus_answer *answer)
{
    ((struct lease_read *)wait)->loop = answer->addresses[0];
}

static struct bus_address leased_to(struct bus *bus, const char *incarnation)
{
    struct lease_read read = {.wait.fn = on_lease_read};
    const peg_str name = peg_cstr(incarnation);

    bus_leases(bus, &name, 1, &read.wait);
    return read.loop;
}

/* Leases are renewed each third of their time: what is left of one may be too little. */
TEST(a_provider_that_breaks_off_with_a_call_has_all_of_its_lease_to_come_back)
{
    struct world world;
    struct player player;
    struct caller caller;
    struct bus *other;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(leases_at_leave(&world, &player, NULL), 1);
    world_close(&world);

    world_open(&world, &DEFAULTS);
    CHECK(bus_local_new(world.hub, world.loop, 1, &other, NULL) == PEG_OK);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(leases_at_leave(&world, &player, other), 1);
    CHECK(bus_address_equal(leased_to(other, "incarnation-1"), other->self)); /* and stays there */
    bus_free(other);
    world_close(&world);
}

/* ---- claims that took long ------------------------------------------------------------------- */

static struct bus_ops aging;
static int64_t age_ms;
static struct bus_wait aged_wait;
static struct bus_wait *claim_wait;

static void on_aged(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct bus_answer aged = *answer;

    (void)wait;
    aged.asked_ns -= age_ms * PEG_NS_PER_MS;
    claim_wait->fn(claim_wait, &aged);
}

static void put_and_age(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                        int64_t keep_until_ms, struct bus_wait *wait)
{
    if (key->what != BUS_CLAIM || claim_wait) {
        counted->put_if_absent(bus, key, value, keep_until_ms, wait);
        return;
    }
    claim_wait = wait;
    aged_wait = (struct bus_wait){.fn = on_aged};
    counted->put_if_absent(bus, key, value, keep_until_ms, &aged_wait);
}

/* Is a call handed over whose claim was answered after so long? */
static bool is_trusted(int64_t lease_ms, int64_t took_ms)
{
    const struct calls_options options = {.lease_ms = lease_ms};
    struct world world;
    struct player player;
    struct caller caller;
    bool was_handed;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    counted = world.bus->ops;
    aging = *counted;
    aging.put_if_absent = put_and_age;
    world.bus->ops = &aging;
    age_ms = took_ms;
    claim_wait = NULL;
    call_with(&world, &caller, "add", "{\"n\":1}");
    CHECK(claim_wait != NULL);
    was_handed = player.n_handed == 1 && player.handed[0].attempt == 1;
    world.bus->ops = counted;
    world_close(&world);
    return was_handed;
}

/* R3 of the protocol: min(1 s, lease / 10). */
TEST(a_claim_is_trusted_for_a_tenth_of_the_lease_and_a_second_at_most)
{
    CHECK(is_trusted(3000, 299));
    CHECK(!is_trusted(3000, 301));
    CHECK(is_trusted(10000, 999));
    CHECK(!is_trusted(10000, 1001));
    CHECK(is_trusted(60000, 999));
    CHECK(!is_trusted(60000, 1001));
}

/* ---- the toolset is not theirs any more ------------------------------------------------------ */

TEST(a_provider_of_a_toolset_that_was_unregistered_is_dismissed)
{
    struct world world;
    struct player player;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    CHECK_INT(gw_presence_health(world.presence, peg_cstr("sums")).n_providers, 1);
    publish(&world, NULL);
    CHECK_INT(player.n_dismissed, 1);
    CHECK_INT(player.eviction, CALLS_NOT_FOUND);
    CHECK_INT(gw_presence_health(world.presence, peg_cstr("sums")).n_providers, 0);
    CHECK(!world.calls->providers);
    world_close(&world);
}

TEST(a_provider_does_not_serve_the_next_owner_of_the_name)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    publish(&world, make_toolset_of("ben", ""));
    CHECK_INT(player.n_dismissed, 1);
    CHECK_INT(player.eviction, CALLS_PERMISSION_DENIED);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(caller.n_ends, 1);
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK_INT(player.n_handed, 0);
    world_close(&world);
}

TEST(what_runs_is_finished_before_its_provider_is_dismissed)
{
    struct world world;
    struct player player;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 0);
    publish(&world, NULL);
    CHECK_INT(player.n_dismissed, 0);
    CHECK_INT(waiting.n_ends, 1);
    CHECK_INT(waiting.error, CALLS_SERVICE_UNAVAILABLE);
    /* Draining now must not make it known again. */
    calls_provider_drain(player.provider);
    settle(&world);
    CHECK_INT(gw_presence_health(world.presence, peg_cstr("sums")).n_providers, 0);
    publish(&world, make_toolset_of("ben", ""));
    CHECK_INT(player.n_dismissed, 0);
    answer(&world, &player, &player.handed[0], "5");
    CHECK_STR(peg_cstr(running.result), "5");
    CHECK_INT(player.n_acks, 1);
    CHECK_INT(player.n_handed, 1);
    CHECK_INT(player.n_dismissed, 1);
    CHECK_INT(player.eviction, CALLS_PERMISSION_DENIED);
    world_close(&world);
}

static void await_dismissal(struct world *world, const struct player *player)
{
    for (unsigned i = 0; i < 20000 && !player->n_dismissed; i++) {
        settle(world);
        sleep_ms(1);
    }
    CHECK_INT(player->n_dismissed, 1);
}

static bool stayed_until_nobody_waited(int64_t timeout_ms)
{
    struct world world;
    struct player player;
    struct caller caller;
    bool was_in_time;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", timeout_ms);
    publish(&world, NULL);
    was_in_time = player.n_handed == 1 && player.n_dismissed == 0;
    await_end(&world, &caller);
    await_dismissal(&world, &player);
    world_close(&world);
    return was_in_time;
}

TEST(a_provider_that_is_dismissed_does_not_stay_longer_than_anybody_waits)
{
    t_try_with_more_time(stayed_until_nobody_waited, 50);
}

/* Of two calls the one that is waited for longer is finished first: the other one hangs. */
static bool stayed_only_for_what_was_left(int64_t timeout_ms)
{
    struct world world;
    struct player player;
    struct caller hung;
    struct caller finished;
    bool was_in_time;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 2);
    call_as(&world, &hung, "add", "", timeout_ms);
    call_as(&world, &finished, "add", "", 24 * 3600 * 1000);
    publish(&world, NULL);
    was_in_time = player.n_handed == 2 && hung.n_ends == 0;
    if (was_in_time) {
        answer(&world, &player, &player.handed[1], "5");
        was_in_time = finished.n_ends == 1 && hung.n_ends == 0 && player.n_dismissed == 0;
    }
    if (was_in_time) {
        await_end(&world, &hung);
        await_dismissal(&world, &player);
    }
    calls_caller_leave(&hung.caller, CALLS_LEAVES);
    calls_caller_leave(&finished.caller, CALLS_LEAVES);
    world_close(&world);
    return was_in_time;
}

TEST(a_provider_that_is_dismissed_stays_only_for_what_is_left)
{
    t_try_with_more_time(stayed_only_for_what_was_left, 50);
}

/* What hangs longer than anybody waits is no work. */
static bool went_with_the_last_that_was_waited_for(int64_t timeout_ms)
{
    struct world world;
    struct player player;
    struct caller hung;
    struct caller finished;
    bool was_in_time;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 2);
    call_as(&world, &hung, "add", "", timeout_ms);
    call_as(&world, &finished, "add", "", 24 * 3600 * 1000);
    publish(&world, NULL);
    was_in_time = player.n_handed == 2;
    await_end(&world, &hung);
    CHECK_INT(player.n_dismissed, 0);
    if (was_in_time) {
        answer(&world, &player, &player.handed[1], "5");
        CHECK_INT(finished.n_ends, 1);
        await_dismissal(&world, &player);
    }
    calls_caller_leave(&finished.caller, CALLS_LEAVES);
    world_close(&world);
    return was_in_time;
}

TEST(a_provider_that_is_dismissed_goes_with_the_last_call_that_is_waited_for)
{
    t_try_with_more_time(went_with_the_last_that_was_waited_for, 50);
}

TEST(an_incarnation_is_not_taken_over_by_another_principal)
{
    struct world world;
    struct player player;
    struct player other = {0};
    struct caller caller;
    struct calls_attach attach_as = {
        .incarnation = {"incarnation-1", 13}, .credits = 1, .number = 1};
    peg_error error;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    publish(&world, make_toolset_of("ben", ""));
    attach_as.toolset = &world.toolset->of_calls;
    CHECK_INT(calls_provider_attach(world.calls, &attach_as, &PLAYER_EVENTS, &other,
                                    &other.provider, &error),
              PEG_EEXISTS);
    CHECK_STR(peg_cstr(error.code), "E_INCARNATION");
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    world_close(&world);
}

TEST(a_provider_that_is_away_comes_back_to_a_loop_that_is_full)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct player other = {0};
    struct caller caller;
    struct calls_attach attach_other = {
        .incarnation = {"incarnation-2", 13}, .credits = 1, .number = 1};
    peg_error error;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    peg__quota_add(&world.calls->quotas.providers, 0,
                   PEG_LIMIT_GATEWAY_PROVIDERS - 1); /* as if the others were here */
    attach_other.toolset = &world.toolset->of_calls;
    CHECK_INT(calls_provider_attach(world.calls, &attach_other, &PLAYER_EVENTS, &other,
                                    &other.provider, &error),
              PEG_ELIMIT);
    CHECK(strstr(error.message, "too many providers"));
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    answer(&world, &again, &player.handed[0], "6");
    CHECK_STR(peg_cstr(caller.result), "6");
    peg__quota_give_back(&world.calls->quotas.providers, 0, PEG_LIMIT_GATEWAY_PROVIDERS - 1);
    world_close(&world);
}

/* ---- what happened while they were away ------------------------------------------------------ */

TEST(a_provider_that_comes_back_hears_what_was_canceled_meanwhile)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle(&world);
    CHECK_INT(player.n_canceled, 0);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    CHECK_INT(again.n_canceled, 1);
    CHECK_INT(again.cancel_reason, BUS_CANCELED);
    answer(&world, &again, &player.handed[0], "1");
    CHECK_INT(again.n_acks, 1);
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
}

TEST(a_provider_that_comes_back_elsewhere_hears_what_was_canceled_meanwhile)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    lost_kind = BUS_CANCEL; /* it is another loop that hears of it */
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle(&world);
    lost_kind = (enum bus_message_kind)0;
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    CHECK_INT(again.n_canceled, 1);
    CHECK_INT(again.cancel_reason, BUS_CANCELED);
    world_close(&world);
}

/* Runs, and its coordinator thinks that its provider is on another node. */
static void call_misled(struct world *world, struct player *player, struct caller *caller,
                        int64_t timeout_ms)
{
    struct bus_message have = {
        .kind = BUS_HAVE, .attempt = 1, .from.node = 99, .incarnation = "incarnation-1"};

    attach(world, player, "incarnation-1", 1);
    call_as(world, caller, "add", "", timeout_ms);
    have.id = caller->caller.id;
    calls_on_message(world->calls, &have);
}

/* Messages are lost now and then; the lease tells where it is. */
TEST(a_cancellation_finds_a_provider_that_has_come_back_elsewhere)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_misled(&world, &player, &caller, 0);
    stop(&world, &caller.caller.id);
    settle(&world);
    CHECK_INT(player.n_canceled, 1);
    CHECK_INT(player.cancel_reason, BUS_CANCELED);
    world_close(&world);
}

/* False if the time was over before it ran. */
static bool was_found_at_its_deadline(int64_t timeout_ms)
{
    struct world world;
    struct player player;
    struct caller caller;
    bool was_in_time;

    world_open(&world, &DEFAULTS);
    call_misled(&world, &player, &caller, timeout_ms);
    was_in_time = player.n_handed == 1;
    await_end(&world, &caller);
    if (was_in_time) {
        CHECK_INT(player.n_canceled, 1);
        CHECK_INT(player.cancel_reason, BUS_DEADLINE);
    }
    world_close(&world);
    return was_in_time;
}

TEST(a_deadline_finds_a_provider_that_has_come_back_elsewhere)
{
    t_try_with_more_time(was_found_at_its_deadline, 20);
}

/* The stream that it left ends a little later; what comes meanwhile is not for it. */
TEST(a_provider_that_has_moved_is_handed_nothing_where_it_was)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    calls_on_moved(world.calls, "incarnation-1");
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(player.n_handed, 0);
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK(!caller.was_started);
    world_close(&world);
}

/* False if the time was over before the message was lost. */
static bool was_told_once_more(int64_t grace_ms)
{
    const struct calls_options hasty = {.grace_ms = grace_ms};
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &hasty);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    lost_kind = BUS_CANCEL;
    stop(&world, &caller.caller.id);
    settle(&world);
    lost_kind = (enum bus_message_kind)0;
    await_end(&world, &caller);
    CHECK_INT(caller.outcome, CALLS_KIND_UNKNOWN);
    world_close(&world);
    return player.n_canceled == 1;
}

TEST(a_provider_is_told_once_more_when_a_canceled_call_does_not_end)
{
    t_try_with_more_time(was_told_once_more, 20);
}

/* Nothing is said before Welcome: until then the stream is not ready. */
TEST(what_was_canceled_is_told_when_the_stream_is_ready)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1, .is_deaf = true};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle(&world);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    CHECK_INT(again.n_canceled, 0);
    again.is_deaf = false;
    calls_provider_ready(again.provider);
    CHECK_INT(again.n_canceled, 1);
    calls_provider_ready(again.provider);
    CHECK_INT(again.n_canceled, 1);
    world_close(&world);
}

/* A named call leaves its outcome behind, another one nothing. */
static void come_back_with_an_ended_call(const char *key)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", key, 0);
    answer(&world, &player, &player.handed[0], "9");
    CHECK_INT(caller.n_ends, 1);
    calls_provider_leave(player.provider);
    settle(&world);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    CHECK_INT(again.n_canceled, 1);
    CHECK_INT(again.cancel_reason, BUS_SETTLED);
    answer(&world, &again, &player.handed[0], "9");
    CHECK_INT(again.n_acks, 1);
    CHECK(is_provider_idle(&again));
    world_close(&world);
}

TEST(a_provider_that_comes_back_with_a_call_that_has_ended_may_stop_it)
{
    come_back_with_an_ended_call("");
    come_back_with_an_ended_call("a key");
}

/* ---- what they list -------------------------------------------------------------------------- */

/* Of another node, which may have heard its answer meanwhile. */
static const struct handed UNHEARD_OF = {
    .id = {.len = 16, .bytes = {[0] = 7, [15] = 1}},
    .attempt = 1,
    .route = {.node = 99},
};

static void review(struct world *world, struct player *player)
{
    player->provider->review.fn(&player->provider->review);
    settle(world);
}

TEST(a_call_that_was_listed_and_nobody_knows_takes_no_place)
{
    struct world world;
    struct player player = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach_listing(&world, &player, "incarnation-1", 1, &UNHEARD_OF);
    CHECK_INT(calls_count(world.calls), 0);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(player.n_handed, 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK_INT(caller.n_ends, 1);
    world_close(&world);
}

/* When it is dropped for that: tests/calls/test_assignment.c. */
TEST(a_call_that_was_listed_and_nobody_knows_is_counted_nowhere_when_it_goes)
{
    struct world world;
    struct player player = {0};

    world_open(&world, &DEFAULTS);
    attach_listing(&world, &player, "incarnation-1", 1, &UNHEARD_OF);
    review(&world, &player);
    CHECK(calls_provider_has(player.provider, &UNHEARD_OF.id, 1));
    CHECK_INT(world.calls->n_unknown, 1);
    calls_provider_nak(player.provider, &UNHEARD_OF.id, 1, BUS_OVERLOADED);
    CHECK(is_provider_idle(&player));
    CHECK_INT(world.calls->n_unknown, 0);
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
}

TEST(a_call_that_was_listed_and_that_its_coordinator_asks_for_takes_its_place)
{
    struct world world;
    struct player player = {0};
    struct caller caller;
    const struct bus_message message = {
        .kind = BUS_ASK, .id = UNHEARD_OF.id, .attempt = 1, .incarnation = "incarnation-1"};

    world_open(&world, &DEFAULTS);
    attach_listing(&world, &player, "incarnation-1", 1, &UNHEARD_OF);
    calls_on_message(world.calls, &message);
    CHECK_INT(calls_count(world.calls), 1);
    review(&world, &player);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(player.n_handed, 0);
    review(&world, &player); /* it has not been asked for since the last one */
    CHECK_INT(player.n_handed, 1);
    world_close(&world);
}

/* Its own loop knows nothing of it, the registers do. */
static void list_at_new_loop(struct world *world, struct player *player, struct player *again,
                             struct caller *caller)
{
    attach(world, player, "incarnation-1", 1);
    call_as(world, caller, "add", "key-1", 0);
    calls_provider_free(player->provider);
    *again = (struct player){.n_breaks = 1};
    attach_listing(world, again, "incarnation-1", 1, &player->handed[0]);
}

TEST(a_call_that_was_listed_and_is_its_providers_takes_its_place)
{
    struct world world;
    struct player player;
    struct player again;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    list_at_new_loop(&world, &player, &again, &first);
    call_as(&world, &second, "add", "", 0);
    CHECK_INT(again.n_handed, 0);
    review(&world, &again);
    CHECK_INT(again.n_handed, 0);
    answer(&world, &again, &player.handed[0], "1");
    CHECK_STR(peg_cstr(first.result), "1");
    CHECK_INT(again.n_handed, 1);
    world_close(&world);
}

TEST(a_call_that_was_listed_and_ended_elsewhere_gives_its_place_back)
{
    const struct calls_options options = {.grace_ms = 1};
    struct world world;
    struct player player;
    struct player again;
    struct caller first;
    struct caller second;

    world_open(&world, &options);
    list_at_new_loop(&world, &player, &again, &first);
    stop(&world, &first.caller.id);
    await_end(&world, &first);
    CHECK_INT(first.outcome, CALLS_KIND_UNKNOWN);
    call_as(&world, &second, "add", "", 0);
    CHECK_INT(again.n_handed, 0);
    review(&world, &again); /* only the next one looks if its coordinator has asked for it */
    review(&world, &again);
    CHECK_INT(again.n_handed, 1);
    CHECK_INT(calls_count(world.calls), 2); /* coordinated, and assigned */
    world_close(&world);
}

/* ---- the loop is about to go ----------------------------------------------------------------- */

static peg_status try_to_attach(struct world *world, struct player *player,
                                const struct handed *handed, peg_error *reterr)
{
    const struct calls_running running = {
        .id = handed ? handed->id : (struct bus_id){0},
        .attempt = 1,
        .route = handed ? handed->route : (struct bus_address){0},
        .tool = {"add", 3},
    };
    const struct calls_attach attach_as = {
        .toolset = &world->toolset->of_calls,
        .incarnation = {"incarnation-1", 13},
        .credits = 2,
        .running = &running,
        .n_running = handed != NULL,
        .number = 2,
    };

    return calls_provider_attach(world->calls, &attach_as, &PLAYER_EVENTS, player,
                                 &player->provider, reterr);
}

TEST(a_provider_whose_stream_breaks_while_the_loop_drains_comes_back_and_finishes)
{
    struct world world;
    struct player player;
    struct player again = {0};
    struct caller caller;
    size_t n;
    peg_error error;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    world.calls->is_draining = true;
    /* While it has its stream it has nothing to do on another one. */
    CHECK_INT(try_to_attach(&world, &again, &player.handed[0], &error), PEG_ESTATE);
    CHECK_STR(peg_cstr(error.code), "E_DRAINING");
    CHECK_INT(gw_wire_error(&error), WIRE_SERVICE_UNAVAILABLE);
    CHECK_INT(player.n_replaced, 0);
    calls_provider_leave(player.provider);
    settle(&world);
    CHECK_INT(try_to_attach(&world, &again, NULL, &error), PEG_ESTATE);
    CHECK_INT(try_to_attach(&world, &again, &player.handed[0], &error), PEG_OK);
    settle(&world);
    CHECK(gw_presence_providers(world.presence, peg_cstr("sums"), &n)->is_draining);
    answer(&world, &again, &player.handed[0], "9");
    CHECK_STR(peg_cstr(caller.result), "9");
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
}

/* Its result was told, and its stream ended before it was acknowledged: it lists the call, and
 * would keep the node from going. */
TEST(a_provider_that_comes_back_when_the_loop_has_drained_is_sent_away)
{
    struct world world;
    struct player player;
    struct player again = {0};
    struct caller caller;
    peg_error error;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    world.calls->is_draining = true;
    answer(&world, &player, &player.handed[0], "9");
    CHECK_STR(peg_cstr(caller.result), "9");
    calls_provider_leave(player.provider);
    settle(&world);
    world.calls->is_closed = true;
    CHECK_INT(try_to_attach(&world, &again, &player.handed[0], &error), PEG_ESTATE);
    CHECK_STR(peg_cstr(error.code), "E_DRAINING");
    world_close(&world);
}

/* ---- the toolset changes --------------------------------------------------------------------- */

static enum gw_health_state health_of(const struct world *world)
{
    return gw_presence_health(world->presence, peg_cstr("sums")).state;
}

TEST(a_toolset_with_the_same_schemas_keeps_its_health)
{
    struct world world;
    struct player player;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    publish(&world, make_toolset_of("local", "in other words"));
    CHECK_INT(health_of(&world), GW_HEALTHY);
    CHECK_INT(player.n_pings, 0);
    CHECK_STR(((const struct gw_toolset *)player.provider->toolset)->description, "in other words");
    world_close(&world);
}

TEST(a_toolset_with_other_schemas_starts_its_health_anew)
{
    struct world world;
    struct player player;
    struct player newer;
    struct caller caller;
    struct caller later;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    publish(&world, make_toolset_with("local", "", ""));
    CHECK_INT(health_of(&world), GW_UNHEALTHY);
    CHECK_INT(player.n_pings, 1);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(caller.n_ends, 1);
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK(strstr(caller.message, "since its schemas changed; try again"));
    calls_provider_pong(player.provider);
    settle(&world);
    CHECK_INT(health_of(&world), GW_HEALTHY);
    call_as(&world, &later, "add", "", 0);
    CHECK_INT(player.n_handed, 1);
    answer(&world, &player, &player.handed[0], "\"one\"");
    CHECK_STR(peg_cstr(later.result), "\"one\"");
    /* One that says hello knows the schemas that it comes with. */
    publish(&world, make_toolset_with("local", "", "{\"type\":\"integer\"}"));
    attach(&world, &newer, "incarnation-2", 1);
    CHECK_INT(health_of(&world), GW_HEALTHY);
    call_as(&world, &later, "add", "", 0);
    CHECK_INT(newer.n_handed, 1);
    calls_caller_leave(&later.caller, CALLS_LEAVES);
    world_close(&world);
}
