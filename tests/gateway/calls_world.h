/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_DESK_WORLD_H
#define PEG_TESTS_GATEWAY_DESK_WORLD_H

/*
 * One loop on the bus of one process, on a loop that the test runs itself; a scripted provider and
 * callers that remember what they were told. Include it behind t.h.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "calls/caller/call.h"
#include "calls/calls.h"
#include "calls/provider/provider_side.h"
#include "gateway/routing/routing.h"
#include "pegboard/v1/registry.pb-c.h"
#include "wire/pack.h"

enum { WORLD_HANDED = 64 };

struct caller {
    struct calls_caller caller; /* the first member */
    bool is_admitted;
    bool is_follower;
    int64_t deadline_ms; /* of the call */
    unsigned n_ends;
    unsigned n_outputs;
    enum calls_outcome_kind outcome;
    enum calls_error error;
    bool was_started;
    char message[512];
    char result[64];
    char failure[512]; /* the tool's own: its code and words */
};

struct handed {
    struct bus_id id;
    uint32_t attempt;
    struct bus_address route;
    char tool[64];
    char payload[128];
};

struct player {
    struct calls_provider *provider;
    struct handed handed[WORLD_HANDED];
    unsigned n_handed;
    unsigned n_canceled;
    enum bus_reason cancel_reason; /* the last one */
    unsigned n_acks;
    unsigned n_replaced;
    unsigned n_dismissed;
    unsigned n_pings;
    enum calls_error eviction;
    bool is_deaf;
    uint32_t n_breaks; /* before this stream */
};

struct world {
    struct net_loop *loop;
    struct bus_local_hub *hub;
    struct bus *bus;
    struct gw_presence *presence;
    struct gw_router router;
    struct calls_loop *calls; /* the router's */
    struct gw_toolset *toolset;
    struct gw_toolset *toolsets[1];
    struct gw_snapshot snapshot;
    struct net_later stop;
    unsigned rounds;
};

/* ---- callers ---- */

static inline void caller_admitted(struct calls_caller *caller, const struct bus_id *id,
                                   int64_t deadline_ms, bool is_follower)
{
    struct caller *mine = (struct caller *)caller;

    (void)id;
    mine->is_admitted = true;
    mine->deadline_ms = deadline_ms;
    mine->is_follower = is_follower;
}

static inline void caller_output(struct calls_caller *caller, peg_str output)
{
    (void)output;
    ((struct caller *)caller)->n_outputs++;
}

static inline void caller_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct caller *mine = (struct caller *)caller;
    const peg_str result = wire_find_bytes(outcome->response, 2);
    const peg_str error = wire_find_bytes(outcome->response, 3);
    const peg_str code = wire_find_bytes(error, 1);
    const peg_str words = wire_find_bytes(error, 2);

    mine->n_ends++;
    mine->outcome = outcome->kind;
    mine->error = outcome->error;
    mine->was_started = outcome->was_started;
    snprintf(mine->message, sizeof(mine->message), "%.*s", (int)outcome->message.len,
             outcome->message.ptr);
    snprintf(mine->result, sizeof(mine->result), "%.*s", (int)result.len,
             result.ptr ? result.ptr : "");
    if (error.len)
        snprintf(mine->failure, sizeof(mine->failure), "%.*s: %.*s", (int)code.len, code.ptr,
                 (int)words.len, words.len ? words.ptr : "");
}

static const struct calls_caller_events CALLER_EVENTS = {
    .on_admitted = caller_admitted,
    .on_output = caller_output,
    .on_end = caller_end,
};

/* ---- providers ---- */

static inline void player_hand(void *user, const struct calls_handed *handed)
{
    struct player *player = (struct player *)user;
    struct handed *mine = &player->handed[player->n_handed++ % WORLD_HANDED];
    const peg_str tool = wire_find_bytes(handed->call, 3);
    const peg_str payload = wire_find_bytes(handed->call, 4);

    mine->id = *handed->id;
    mine->attempt = handed->attempt;
    mine->route = handed->route;
    snprintf(mine->tool, sizeof(mine->tool), "%.*s", (int)tool.len, tool.ptr);
    snprintf(mine->payload, sizeof(mine->payload), "%.*s", (int)payload.len, payload.ptr);
}

static inline void player_cancel(void *user, const struct bus_id *id, uint32_t attempt,
                                 enum bus_reason reason)
{
    struct player *player = (struct player *)user;

    (void)id;
    (void)attempt;
    player->n_canceled++;
    player->cancel_reason = reason;
}

static inline void player_ack(void *user, const struct bus_id *id, uint32_t attempt)
{
    (void)id;
    (void)attempt;
    ((struct player *)user)->n_acks++;
}

static inline bool player_is_ready(void *user)
{
    return !((struct player *)user)->is_deaf;
}

static inline void player_replaced(void *user)
{
    ((struct player *)user)->n_replaced++;
    ((struct player *)user)->provider = NULL;
}

static inline void player_dismissed(void *user, enum calls_error why)
{
    struct player *player = (struct player *)user;

    player->n_dismissed++;
    player->eviction = why;
    calls_provider_leave(player->provider);
    player->provider = NULL;
}

static inline void player_ping(void *user)
{
    ((struct player *)user)->n_pings++;
}

static const struct calls_provider_events PLAYER_EVENTS = {
    .hand = player_hand,
    .cancel = player_cancel,
    .ack = player_ack,
    .is_ready = player_is_ready,
    .replaced = player_replaced,
    .evicted = player_dismissed,
    .ping = player_ping,
};

/* ---- the world ---- */

static inline void on_health(void *user, peg_str toolset)
{
    (void)user;
    (void)toolset;
}

static inline void count_round(struct net_later *later)
{
    struct world *world = (struct world *)((char *)later - offsetof(struct world, stop));

    if (world->rounds-- > 1)
        net_loop_later(world->loop, later);
    else
        net_loop_stop(world->loop);
}

/* Lets everything that is on its way arrive. */
static inline void settle(struct world *world)
{
    world->rounds = 8;
    world->stop.fn = count_round;
    net_loop_later(world->loop, &world->stop);
    net_loop_run(world->loop);
}

#define WORLD_INPUT                                                                                \
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"                           \
    "\"trimmed\":{\"pattern\":\"\\\\s+$\"},\"hard\":{\"pattern\":\"^(?=(\\\\s+)+$)\"}},"           \
    "\"required\":[\"n\"]}"

/* Each has a revision of its own. Its first tool takes and gives this. */
static inline struct gw_toolset *make_toolset_from(const char *owner, const char *description,
                                                   const char *input, const char *output)
{
    static uint64_t n_made;
    Pegboard__V1__Tool plain = PEGBOARD__V1__TOOL__INIT;
    Pegboard__V1__Tool safe = PEGBOARD__V1__TOOL__INIT;
    Pegboard__V1__Tool *tools[] = {&plain, &safe};
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;
    const struct gw_toolset_dates dates = {.owner = peg_cstr(owner), .revision = ++n_made};
    struct gw_toolset *toolset = NULL;

    plain.name = (char *)peg__unconst("add");
    plain.input_schema = (ProtobufCBinaryData){strlen(input), (uint8_t *)peg__unconst(input)};
    plain.output_schema = (ProtobufCBinaryData){strlen(output), (uint8_t *)peg__unconst(output)};
    safe = plain;
    safe.name = (char *)peg__unconst("peek");
    safe.input_schema =
        (ProtobufCBinaryData){strlen(WORLD_INPUT), (uint8_t *)peg__unconst(WORLD_INPUT)};
    safe.idempotent = true;
    request.name = (char *)peg__unconst("sums");
    request.description = (char *)peg__unconst(description);
    request.tools = tools;
    request.n_tools = 2;
    CHECK(gw_toolset_make(&request, &dates, &toolset, NULL) == PEG_OK);
    return toolset;
}

static inline struct gw_toolset *make_toolset_with(const char *owner, const char *description,
                                                   const char *output)
{
    return make_toolset_from(owner, description, WORLD_INPUT, output);
}

static inline struct gw_toolset *make_toolset_of(const char *owner, const char *description)
{
    return make_toolset_with(owner, description, "{\"type\":\"integer\"}");
}

static inline struct gw_toolset *make_toolset(void)
{
    return make_toolset_of("local", "");
}

/* Messages of this kind are lost; 0: none is. */
static enum bus_message_kind lost_kind;

static inline void on_world_message(void *user, const struct bus_message *message)
{
    if (message->kind != lost_kind)
        calls_on_message(user, message);
}

/* One of the loops of a node; takes the toolset over. */
static inline void world_open_loop(struct world *world, struct bus_local_hub *hub, uint32_t number,
                                   struct gw_toolset *toolset, const struct calls_options *options)
{
    static const struct gw_presence_options health = {.ping_interval_ms = 10000, .missed_pings = 3};
    static const struct bus_events events = {
        .on_message = on_world_message,
        .on_reset = calls_on_reset,
    };

    *world = (struct world){.toolset = toolset, .toolsets = {toolset}};
    lost_kind = (enum bus_message_kind)0;
    CHECK(net_loop_new(&world->loop, NULL) == PEG_OK);
    CHECK(bus_local_new(hub, world->loop, number, &world->bus, NULL) == PEG_OK);
    CHECK(gw_presence_new(world->bus, &health, on_health, NULL, &world->presence, NULL) == PEG_OK);
    CHECK(gw_router_init(&world->router,
                         &(struct gw_router_options){
                             .bus = world->bus,
                             .loop = world->loop,
                             .number = number,
                             .calls = options,
                             .presence = world->presence,
                         },
                         NULL) == PEG_OK);
    world->calls = world->router.calls;
    bus_listen(world->bus, &events, world->calls);
    world->snapshot.toolsets = world->toolsets;
    world->snapshot.n = 1;
    atomic_init(&world->snapshot.n_refs, 1000);
    gw_router_on_snapshot(&world->router, &world->snapshot);
    settle(world);
}

static inline void world_close_loop(struct world *world)
{
    gw_router_clear(&world->router);
    gw_presence_free(world->presence);
    bus_free(world->bus);
    net_loop_free(world->loop);
    gw_toolset_unref(world->toolset);
}

static inline void world_open(struct world *world, const struct calls_options *options)
{
    struct bus_local_hub *hub;

    CHECK(bus_local_hub_new(7, &hub, NULL) == PEG_OK);
    world_open_loop(world, hub, 0, make_toolset(), options);
    world->hub = hub;
}

static inline void world_close(struct world *world)
{
    world_close_loop(world);
    bus_local_hub_free(world->hub);
}

/* Another catalog: with that toolset, which it takes over, or empty. */
static inline void publish(struct world *world, struct gw_toolset *toolset)
{
    struct gw_toolset *old = world->toolset;

    world->toolset = toolset;
    world->toolsets[0] = toolset;
    world->snapshot.n = toolset ? 1 : 0;
    gw_router_on_snapshot(&world->router, &world->snapshot);
    gw_toolset_unref(old);
    settle(world);
}

static inline void attach_listing(struct world *world, struct player *player,
                                  const char *incarnation, uint32_t credits,
                                  const struct handed *running)
{
    const struct calls_running listed = {
        .id = running ? running->id : (struct bus_id){0},
        .attempt = running ? running->attempt : 0,
        .route = running ? running->route : (struct bus_address){0},
        .tool = {"add", 3},
    };
    const struct calls_attach attach = {
        .toolset = &world->toolset->of_calls,
        .incarnation = peg_cstr(incarnation),
        .credits = credits,
        .running = &listed,
        .n_running = running != NULL,
        .number = player->n_breaks + 1,
    };

    CHECK(calls_provider_attach(world->calls, &attach, &PLAYER_EVENTS, player, &player->provider,
                                NULL) == PEG_OK);
    settle(world);
}

static inline void attach(struct world *world, struct player *player, const char *incarnation,
                          uint32_t credits)
{
    *player = (struct player){0};
    attach_listing(world, player, incarnation, credits, NULL);
}

/* Has it nothing handed over or waiting? */
static inline bool is_provider_idle(const struct player *player)
{
    return !player->provider->queue.first && !player->provider->running.first;
}

/* It has not answered pings for long. */
static inline void fall_silent(struct world *world, const char *incarnation)
{
    size_t n;
    struct gw_provider_entry *all = gw_presence_providers(world->presence, peg_cstr("sums"), &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].incarnation, incarnation) == 0)
            all[i].last_pong_ms = 1;
}

static inline void call_with(struct world *world, struct caller *caller, const char *tool,
                             const char *payload)
{
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr(tool),
        .payload = peg_cstr(payload),
        .principal = peg_cstr("local"),
        .deadline_ns = NET_NEVER,
    };

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
    settle(world);
}

static inline void call_as(struct world *world, struct caller *caller, const char *tool,
                           const char *key, int64_t timeout_ms)
{
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr(tool),
        .payload = peg_cstr("{\"n\":1}"),
        .principal = peg_cstr("local"),
        .key = peg_cstr(key),
        .timeout_ms = timeout_ms,
        .deadline_ns = NET_NEVER,
    };

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
    settle(world);
}

static inline void answer(struct world *world, struct player *player, const struct handed *handed,
                          const char *json)
{
    char packed[128];
    const peg_str text = peg_cstr(json);
    const size_t len = (size_t)(wire_put_bytes(packed, 2, text) - packed);

    CHECK(calls_provider_result(player->provider, &handed->id, handed->attempt,
                                (peg_str){packed, len},
                                (peg_str){packed + len - text.len, text.len}, false));
    settle(world);
}

/* Every call whose provider is here, as if it were not known whether this loop is alive. */
static inline void look_at_all(struct world *world)
{
    calls_on_node_lost(world->calls, world->bus->self);
}

/* A follower asks its coordinator to cancel the call. */
static inline void stop(struct world *world, const struct bus_id *id)
{
    const struct bus_message message = {
        .kind = BUS_FOLLOWER, .reason = BUS_STOP, .id = *id, .from = world->bus->self};

    calls_on_message(world->calls, &message);
}

/* ---- registers ---- */

struct glance {
    struct bus_wait wait; /* the first member */
    bool stands;
};

static inline void glance_seen(struct bus_wait *wait, const struct bus_answer *answer)
{
    ((struct glance *)wait)->stands = answer->current != NULL;
}

/* Is anything written there? */
static inline bool stands(struct world *world, const struct bus_id *id, char what, uint32_t n)
{
    const struct bus_key key = {
        .id = *id, .what = what, .n = n, .is_node_local = calls_id_is_node_local(id)};
    struct glance glance = {.wait.fn = glance_seen};

    bus_read(world->bus, &key, &glance.wait);
    settle(world);
    return glance.stands;
}

static inline void sleep_ms(int64_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * PEG_NS_PER_MS};

    nanosleep(&pause, NULL);
}

/* Runs the loop until the caller has heard the end. */
static inline void await_end(struct world *world, const struct caller *caller)
{
    for (unsigned i = 0; i < 20000 && !caller->n_ends; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(world);
        nanosleep(&pause, NULL);
    }
    CHECK(caller->n_ends == 1);
}

#endif
