/* SPDX-License-Identifier: Apache-2.0 */

/* Nobody holds more of what a node has room for than three times what is free: others can begin. */

#include "../t.h"

#include "desk_world.h"

/* ---- who calls ------------------------------------------------------------------------------- */

static const struct gw_desk_options ASKED = {.has_principals = true};

/* What is asked for, by whom and as what. */
static struct gw_ask ask_of(const char *principal, const char *key)
{
    return (struct gw_ask){
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
    const struct gw_ask ask = ask_of(principal, key);

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    gw_desk_call(world->desk, &ask, &caller->caller);
    settle(world);
}

static bool is_refused_its_share(const struct caller *caller, const char *limit)
{
    return caller->n_ends == 1 && caller->error == WIRE_OVERLOADED && !caller->was_started &&
           strstr(caller->message, "of this principal") &&
           strstr(caller->message, "PEG_LIMIT_BUS_SHARE") && strstr(caller->message, limit);
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
        struct bus_key key = {.id = {.len = id_len}, .what = 'c', .admits = true};

        key.account = gw_desk_account(world->desk, peg_cstr(principal));
        memcpy(key.id.bytes, &i, sizeof(i));
        bus_once(world->bus, &key, value, INT64_MAX, &written.wait);
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
    CHECK(ben.outcome == GW_RESULT);
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
    CHECK(ben.outcome == GW_RESULT);
    world_close(&world);
}

/* ---- what a loop has ------------------------------------------------------------------------- */

enum { CALLS = 40 };

/* How many calls of a principal are taken. */
static unsigned n_taken(struct world *world, struct caller *callers, unsigned n,
                        const char *principal)
{
    unsigned i = 0;

    do
        call_by(world, &callers[i], principal, "");
    while (!callers[i].n_ends && ++i < n);
    return i;
}

TEST(calls_of_one_principal_leave_some_to_others)
{
    const struct gw_desk_options options = {.max_calls = CALLS, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[CALLS + 1];
    struct caller ben[CALLS];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    CHECK_INT(n_taken(&world, anna, CALLS, "token:anna"), CALLS * 3 / 4);
    CHECK(is_refused_its_share(&anna[CALLS * 3 / 4], "PEG_LIMIT_GATEWAY_CALLS"));
    CHECK_INT(n_taken(&world, ben, CALLS, "token:ben"),
              8); /* of ten: then he has 8, and 2 are free */

    for (unsigned i = 0; i < player.n_handed; i++)
        answer(&world, &player, &player.handed[i], "1");
    CHECK_INT(world.desk->n_calls, 0);
    CHECK_INT(n_taken(&world, anna, CALLS, "token:anna"), CALLS * 3 / 4);
    world_close(&world);
}

TEST(where_nobody_is_asked_all_of_it_may_be_taken)
{
    const struct gw_desk_options options = {.max_calls = CALLS};
    struct world world;
    struct player player;
    struct caller callers[CALLS + 1];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", CALLS);
    CHECK_INT(n_taken(&world, callers, CALLS + 1, "local"), CALLS);
    CHECK(callers[CALLS].error == WIRE_OVERLOADED);
    CHECK(!strstr(callers[CALLS].message, "of this principal"));
    world_close(&world);
}

/* ---- large payloads -------------------------------------------------------------------------- */

enum { LARGE = 100 << 10, LARGE_CALLS = 16, LARGE_ROOM = LARGE * LARGE_CALLS };

static void call_large(struct world *world, struct caller *caller, const char *principal)
{
    static char payload[LARGE + 64];
    struct gw_ask ask = ask_of(principal, "");

    ask.payload.ptr = payload;
    ask.payload.len = (size_t)snprintf(payload, sizeof(payload), "{\"n\":1,\"more\":\"%0*d\"}",
                                       LARGE - (int)strlen("{\"n\":1,\"more\":\"\"}"), 7);
    CHECK_INT(ask.payload.len, LARGE);
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    gw_desk_call(world->desk, &ask, &caller->caller);
}

static unsigned n_large_taken(struct world *world, struct caller *callers, unsigned n,
                              const char *principal)
{
    unsigned i = 0;

    do
        call_large(world, &callers[i], principal);
    while (!callers[i].n_ends && ++i < n);
    return i;
}

TEST(large_payloads_of_one_principal_leave_room_to_others)
{
    const struct gw_desk_options options = {.max_large_bytes = LARGE_ROOM, .has_principals = true};
    struct world world;
    struct player player;
    struct caller anna[LARGE_CALLS];
    struct caller ben;
    struct caller small;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", LARGE_CALLS);
    CHECK_INT(n_large_taken(&world, anna, LARGE_CALLS, "token:anna"), LARGE_CALLS * 3 / 4);
    CHECK(
        is_refused_its_share(&anna[LARGE_CALLS * 3 / 4], "PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES"));
    call_large(&world, &ben, "token:ben");
    CHECK_INT(ben.n_ends, 0);
    call_by(&world, &small, "token:anna", "");
    CHECK_INT(small.n_ends, 0);
    CHECK_INT(world.desk->large_bytes, LARGE * (LARGE_CALLS * 3 / 4 + 1));
    world_close(&world);
}

TEST(where_nobody_is_asked_all_of_the_bytes_may_be_taken)
{
    const struct gw_desk_options options = {.max_large_bytes = LARGE_ROOM};
    struct world world;
    struct player player;
    struct caller callers[LARGE_CALLS + 1];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", LARGE_CALLS);
    CHECK_INT(n_large_taken(&world, callers, LARGE_CALLS + 1, "local"), LARGE_CALLS);
    CHECK(!strstr(callers[LARGE_CALLS].message, "of this principal"));
    world_close(&world);
}
