/* SPDX-License-Identifier: Apache-2.0 */

/* Nobody has more of what a node has room for than three times what is free: others can begin. */

#include "../t.h"

#include "calls/quota.h"
#include "calls_world.h"

/* ---- who calls ------------------------------------------------------------------------------- */

static const struct calls_options ASKED = {.has_principals = true};

/* What is asked for, by whom and as what. */
static struct calls_request ask_of(const char *principal, const char *key)
{
    return (struct calls_request){
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = peg_cstr("{\"n\":1}"),
        .principal = peg_cstr(principal),
        .key = peg_cstr(key),
        .deadline_ns = NET_NEVER,
    };
}

static void call_by(struct world *world, struct caller *caller, const char *principal,
                    const char *key)
{
    const struct calls_request request = ask_of(principal, key);

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
    settle(world);
}

static bool is_refused_its_share(const struct caller *caller, const char *reason)
{
    return caller->n_ends == 1 && caller->error == CALLS_OVERLOADED && !caller->was_started &&
           strstr(caller->message, "of this principal") && strstr(caller->message, reason);
}

/* ---- who provides ---------------------------------------------------------------------------- */

/* One more, with calls that it says it has. */
static peg_status come_as(struct world *world, struct gw_toolset *toolset, struct player *player,
                          const struct calls_running *running, size_t n_running, peg_error *error)
{
    static unsigned number;
    char incarnation[32];
    const struct calls_attach attach_as = {
        .toolset = &toolset->of_calls,
        .incarnation = {incarnation, (size_t)snprintf(incarnation, sizeof(incarnation),
                                                      "incarnation-%u", ++number)},
        .credits = 1,
        .running = running,
        .n_running = n_running,
        .number = 1,
    };

    return calls_provider_attach(world->calls, &attach_as, &PLAYER_EVENTS, player,
                                 &player->provider, error);
}

static void invent(struct world *world, struct calls_running *running, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        running[i] = (struct calls_running){.attempt = 1, .tool = {"add", 3}};
        CHECK(calls_random_id(world->calls, false, &running[i].id));
    }
}

TEST(who_lists_all_the_calls_it_may_leaves_room_for_those_of_others)
{
    enum { EACH = PEG_LIMIT_GATEWAY_CREDITS };
    static struct calls_running running[EACH];
    struct world world;
    struct player player = {0};
    struct gw_toolset *toolset;
    peg_error error;

    world_open(&world, &ASKED);
    toolset = make_toolset_of("ann", "");
    do
        invent(&world, running, EACH);
    while (!come_as(&world, toolset, &player, running, EACH, &error));
    CHECK_INT(gw_wire_error(&error), WIRE_OVERLOADED); /* it is to try again */
    CHECK(strstr(error.message, "run or report too many calls"));
    invent(&world, running, EACH);
    CHECK_INT(come_as(&world, world.toolset, &player, running, EACH, &error), PEG_OK);
    gw_toolset_unref(toolset);
    world_close(&world);
}

VOLUME_TEST(who_has_all_the_providers_it_may_leaves_room_for_those_of_others)
{
    struct world world;
    struct player player = {0};
    struct gw_toolset *toolset;
    peg_error error;

    world_open(&world, &ASKED);
    toolset = make_toolset_of("ann", "");
    while (!come_as(&world, toolset, &player, NULL, 0, &error))
        ;
    CHECK_INT(gw_wire_error(&error), WIRE_OVERLOADED); /* it is to try again */
    CHECK(strstr(error.message, "too many providers"));
    CHECK_INT(come_as(&world, world.toolset, &player, NULL, 0, &error), PEG_OK);
    gw_toolset_unref(toolset);
    world_close(&world);
}

static void fail_to_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                        uint64_t expected, struct bus_wait *wait)
{
    const struct bus_answer answer = {.status = PEG_EIO};

    (void)bus;
    (void)map;
    (void)key;
    (void)value;
    (void)expected;
    wait->fn(wait, &answer);
}

/* The bus has not heard yet that one went when the next one comes. */
VOLUME_TEST(who_comes_as_another_goes_from_a_full_loop_is_to_try_again)
{
    static const struct calls_options defaults;
    const struct bus_ops *ops;
    struct bus_ops broken;
    struct world world;
    struct player player = {0};
    peg_error error;

    world_open(&world, &defaults);
    while (!come_as(&world, world.toolset, &player, NULL, 0, &error))
        ;
    CHECK_INT(gw_wire_error(&error), WIRE_OVERLOADED);
    ops = world.bus->ops;
    broken = *ops;
    broken.map_set = fail_to_set;
    world.bus->ops = &broken;
    calls_provider_leave(player.provider);
    world.bus->ops = ops;
    CHECK(come_as(&world, world.toolset, &player, NULL, 0, &error));
    CHECK_INT(gw_wire_error(&error), WIRE_OVERLOADED); /* it is to try again */
    CHECK(strstr(error.message, "too many providers"));
    world_close(&world);
}

/* ---- registers ------------------------------------------------------------------------------- */

struct written {
    struct bus_wait wait; /* the first member */
    peg_status status;
};

static void on_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    ((struct written *)wait)->status = answer->status;
}

/* All that calls of a principal can have as they begin: with an identity (32) or without (16). */
static void take_registers(struct world *world, const char *principal, uint8_t id_len)
{
    struct peg__blob *value = peg__blob_new(PEG_LIMIT_BUS_SMALL_BYTES);
    struct written written = {.wait.fn = on_written};

    memset(value->bytes, 'x', value->len);
    for (unsigned i = 0; !written.status; i++) {
        struct bus_key key = {.id = {.len = id_len}, .what = BUS_IDENTITY, .admits = true};

        key.account = calls_quota_key(world->calls, peg_cstr(principal));
        memcpy(key.id.bytes, &i, sizeof(i));
        bus_put_if_absent(world->bus, &key, value, INT64_MAX, &written.wait);
    }
    CHECK(written.status == PEG_ELIMIT);
    peg__blob_unref(value);
}

TEST(what_is_kept_for_one_principal_leaves_identities_to_others)
{
    struct world world;
    struct player player;
    struct caller anna;
    struct caller ben;

    world_open(&world, &ASKED);
    attach(&world, &player, "incarnation-1", 4);
    take_registers(&world, "token:anna", 32);
    call_by(&world, &anna, "token:anna", "key-1");
    CHECK(is_refused_its_share(&anna, "PEG_LIMIT_BUS_REGISTER_BYTES"));
    CHECK(strstr(anna.message, "--result-mapping-ttl"));
    CHECK(player.n_handed == 0);

    call_by(&world, &ben, "token:ben", "key-1");
    CHECK(player.n_handed == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(ben.outcome == CALLS_KIND_RESULT);
    call_by(&world, &anna, "token:anna", "");
    CHECK(player.n_handed == 2);
    world_close(&world);
}

TEST(what_calls_without_identity_leave_behind_refuses_their_principal_only)
{
    struct world world;
    struct player player;
    struct caller anna;
    struct caller ben;

    world_open(&world, &ASKED);
    attach(&world, &player, "incarnation-1", 4);
    take_registers(&world, "token:anna", 16);
    call_by(&world, &anna, "token:anna", "");
    CHECK(is_refused_its_share(&anna, "PEG_LIMIT_BUS_REGISTER_BYTES"));

    call_by(&world, &ben, "token:ben", "");
    CHECK(player.n_handed == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(ben.outcome == CALLS_KIND_RESULT);
    world_close(&world);
}

/* ---- what a loop has ------------------------------------------------------------------------- */

enum { CALLS = 40 };

typedef void call_fn(struct world *world, struct caller *caller, const char *principal,
                     const char *key);

/* How many calls of a principal are taken. */
static unsigned n_taken(struct world *world, call_fn *call, struct caller *callers, unsigned n,
                        const char *principal)
{
    unsigned i = 0;

    do
        call(world, &callers[i], principal, "");
    while (!callers[i].n_ends && ++i < n);
    return i;
}

TEST(calls_of_one_principal_leave_some_to_others)
{
    const struct calls_options options = {.max_calls = CALLS, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[CALLS + 1];
    struct caller ben[CALLS];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    CHECK_INT(n_taken(&world, call_by, anna, CALLS, "token:anna"), CALLS * 3 / 4);
    CHECK(is_refused_its_share(&anna[CALLS * 3 / 4], "too many calls"));
    CHECK_INT(n_taken(&world, call_by, ben, CALLS, "token:ben"),
              8); /* of ten: then he has 8, and 2 are free */

    for (unsigned i = 0; i < player.n_handed; i++)
        answer(&world, &player, &player.handed[i], "1");
    CHECK_INT(peg__quota_used(&world.calls->quotas.calls), 0);
    CHECK_INT(n_taken(&world, call_by, anna, CALLS, "token:anna"), CALLS * 3 / 4);
    world_close(&world);
}

TEST(where_nobody_is_asked_all_of_it_may_be_taken)
{
    const struct calls_options options = {.max_calls = CALLS};
    struct world world;
    struct player player;
    struct caller callers[CALLS + 1];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    CHECK_INT(n_taken(&world, call_by, callers, CALLS + 1, "local"), CALLS);
    CHECK(callers[CALLS].error == CALLS_OVERLOADED);
    CHECK(!strstr(callers[CALLS].message, "of this principal"));
    world_close(&world);
}

/* What a principal can still do with a call that it has begun, when it may begin no more. */
static void check_standing(struct world *world, const struct caller *begun, struct player *player,
                           void (*retry_claim)(struct world *world, struct caller *caller))
{
    const peg_str anna = peg_cstr("token:anna");
    struct caller again;
    struct caller waits = {.caller.events = &CALLER_EVENTS};
    struct caller stops = {.caller.events = &CALLER_EVENTS};
    const size_t n_bytes = peg__quota_used(&world->calls->quotas.large_bytes);
    const unsigned n_handed = player->n_handed;

    retry_claim(world, &again);
    CHECK(again.is_admitted && again.is_follower && !again.n_ends);
    CHECK_INT(peg__quota_used(&world->calls->quotas.large_bytes), n_bytes);
    calls_await(world->calls, &begun->caller.id, anna, NET_NEVER, &waits.caller);
    settle(world);
    CHECK(waits.is_follower && !waits.n_ends);
    calls_cancel(world->calls, &begun->caller.id, anna, &stops.caller);
    settle(world);
    CHECK_INT(stops.n_ends, 1);
    CHECK(stops.outcome == CALLS_KIND_CANCELED);
    CHECK_INT(player->n_canceled, 1);
    answer(world, player, &player->handed[0], "1");
    CHECK(again.outcome == CALLS_KIND_RESULT && waits.outcome == CALLS_KIND_RESULT);
    CHECK_INT(player->n_handed, n_handed);
}

static void ask_first_again(struct world *world, struct caller *caller)
{
    call_by(world, caller, "token:anna", "key-0");
}

TEST(who_has_its_share_of_calls_joins_awaits_and_ends_those_it_has)
{
    const struct calls_options options = {.max_calls = CALLS, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[CALLS * 3 / 4];
    struct caller ben[CALLS];
    struct caller more;
    char key[16];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    for (unsigned i = 0; i < CALLS * 3 / 4; i++) {
        snprintf(key, sizeof(key), "key-%u", i);
        call_by(&world, &anna[i], "token:anna", key);
        CHECK(anna[i].is_admitted && !anna[i].is_follower);
    }
    (void)n_taken(&world, call_by, ben, 2, "token:ben"); /* by which her share has shrunk */
    call_by(&world, &more, "token:anna", "key-more");
    CHECK(is_refused_its_share(&more, "too many calls"));
    CHECK(!stands(&world, &more.caller.id, BUS_IDENTITY, 0));
    check_standing(&world, &anna[0], &player, ask_first_again);
    world_close(&world);
}

TEST(who_waits_for_one_call_many_times_leaves_some_to_others)
{
    const struct calls_options options = {.max_calls = CALLS, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[CALLS];
    struct caller ben;
    struct caller stops = {.caller.events = &CALLER_EVENTS};
    unsigned n = 0;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    do
        call_by(&world, &anna[n], "token:anna", "key-0");
    while (!anna[n].n_ends && ++n < CALLS);
    CHECK(n > CALLS * 3 / 4 && n < CALLS);
    CHECK(is_refused_its_share(&anna[n], "too many calls"));
    call_by(&world, &ben, "token:ben", "");
    CHECK_INT(ben.n_ends, 0);
    calls_cancel(world.calls, &anna[0].caller.id, peg_cstr("token:anna"), &stops.caller);
    settle(&world);
    CHECK(stops.n_ends == 1 && stops.outcome == CALLS_KIND_CANCELED);
    world_close(&world);
}

TEST(an_identity_is_not_followed_for_another_payload_beyond_the_quota_either)
{
    const struct calls_options options = {.max_calls = CALLS, .has_principals = true};
    struct calls_request request = ask_of("token:anna", "key-0");
    struct world world;
    struct player player;
    struct caller anna[CALLS];
    struct caller other = {.caller.events = &CALLER_EVENTS};

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    call_by(&world, &anna[0], "token:anna", "key-0");
    (void)n_taken(&world, call_by, &anna[1], CALLS - 1, "token:anna");
    request.payload = peg_cstr("{\"n\":2}");
    calls_start(world.calls, &request, &other.caller);
    settle(&world);
    CHECK_INT(other.n_ends, 1);
    CHECK(other.error == CALLS_VALIDATION);
    world_close(&world);
}

/* ---- large payloads -------------------------------------------------------------------------- */

enum { LARGE = 100 << 10, LARGE_CALLS = 16, LARGE_ROOM = LARGE * LARGE_CALLS };

static void call_large(struct world *world, struct caller *caller, const char *principal,
                       const char *key)
{
    static char payload[LARGE + 64];
    struct calls_request request = ask_of(principal, key);

    request.payload.ptr = payload;
    request.payload.len = (size_t)snprintf(payload, sizeof(payload), "{\"n\":1,\"more\":\"%0*d\"}",
                                           LARGE - (int)strlen("{\"n\":1,\"more\":\"\"}"), 7);
    CHECK_INT(request.payload.len, LARGE);
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
}

TEST(large_payloads_of_one_principal_leave_room_to_others)
{
    const struct calls_options options = {.max_large_bytes = LARGE_ROOM, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[LARGE_CALLS];
    struct caller ben;
    struct caller small;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", LARGE_CALLS);
    CHECK_INT(n_taken(&world, call_large, anna, LARGE_CALLS, "token:anna"), LARGE_CALLS * 3 / 4);
    CHECK(is_refused_its_share(&anna[LARGE_CALLS * 3 / 4], "large payloads"));
    call_large(&world, &ben, "token:ben", "");
    CHECK_INT(ben.n_ends, 0);
    call_by(&world, &small, "token:anna", "");
    CHECK_INT(small.n_ends, 0);
    CHECK_INT(peg__quota_used(&world.calls->quotas.large_bytes), LARGE * (LARGE_CALLS * 3 / 4 + 1));
    world_close(&world);
}

TEST(where_nobody_is_asked_all_of_the_bytes_may_be_taken)
{
    const struct calls_options options = {.max_large_bytes = LARGE_ROOM};
    struct world world;
    struct player player;
    struct caller callers[LARGE_CALLS + 1];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", LARGE_CALLS);
    CHECK_INT(n_taken(&world, call_large, callers, LARGE_CALLS + 1, "local"), LARGE_CALLS);
    CHECK(!strstr(callers[LARGE_CALLS].message, "of this principal"));
    world_close(&world);
}

static void ask_first_large_again(struct world *world, struct caller *caller)
{
    call_large(world, caller, "token:anna", "key-0");
    settle(world);
}

/* A worker reads a large payload first. */
static void await_handed(struct world *world, const struct player *player, unsigned n)
{
    for (unsigned i = 0; i < 20000 && player->n_handed < n; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(world);
        nanosleep(&pause, NULL);
    }
    CHECK_INT(player->n_handed, n);
}

TEST(who_has_its_share_of_bytes_joins_awaits_and_ends_calls_it_has)
{
    const struct calls_options options = {.max_large_bytes = LARGE_ROOM, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[LARGE_CALLS];
    struct caller more;
    char key[16];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", LARGE_CALLS);
    for (unsigned i = 0; i < LARGE_CALLS * 3 / 4; i++) {
        snprintf(key, sizeof(key), "key-%u", i);
        call_large(&world, &anna[i], "token:anna", key);
        await_handed(&world, &player, i + 1);
    }
    call_large(&world, &more, "token:anna", "key-more");
    settle(&world);
    CHECK(is_refused_its_share(&more, "large payloads"));
    CHECK(!stands(&world, &more.caller.id, BUS_IDENTITY, 0));
    check_standing(&world, &anna[0], &player, ask_first_large_again);
    world_close(&world);
}
