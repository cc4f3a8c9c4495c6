/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "bus/redis/redis.h"
#include "bus/redis/streams.h"
#include "gateway/direct/direct.h"
#include "gateway/mcp/mcp.h"
#include "gateway/members/leader.h"
#include "gateway/members/members.h"
#include "gateway/node.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/event_log.h"

enum { LEADER_MIN_MS = 100 }; /* of a lease: intervals below that are of tests */

/* ---- what one loop has ---- */

static void log_health(struct gw_node *node, struct gw_presence *presence, peg_str toolset)
{
    const struct gw_health health = gw_presence_health(presence, toolset);
    const bool is_healthy = health.state == GW_HEALTHY;

    gw_event_log_write(node->log, is_healthy ? PEG_LOG_INFO : PEG_LOG_WARN, GW_EVENT_HEALTH,
                       GW_FIELDS(gw_field_str("toolset", toolset),
                                 gw_field_text("state", is_healthy ? "healthy" : "unhealthy"),
                                 gw_field_number("providers", health.n_providers),
                                 gw_field_number("draining", health.n_draining)));
}

/* Every loop sees the same changes: the first one writes them down. */
static void on_presence(void *user, peg_str toolset)
{
    struct gw_loop_state *state = (struct gw_loop_state *)user;
    struct gw_node *node = state->node;

    if (!node->presences[state->number])
        return; /* it is just being made */
    gw_watches_on_health(node->watches[state->number], toolset);
    if (state->number == 0)
        log_health(node, node->presences[0], toolset);
}

static void on_snapshot(void *user, struct gw_snapshot *snapshot)
{
    struct gw_loop_state *state = (struct gw_loop_state *)user;
    struct gw_node *node = state->node;

    gw_router_on_snapshot(&state->router, snapshot);
    gw_watches_on_snapshot(node->watches[state->number], snapshot);
    gw_mcp_on_snapshot(node->mcp.loops[state->number]);
}

const struct gw_catalog_events gw_loop_state_events = {.on_snapshot = on_snapshot};

bool gw_has_redis(const peg_gateway_config *config)
{
    return config->redis && config->redis[0];
}

peg_status gw_node_open_bus(const struct gw_node *node, const peg_gateway_config *config,
                            struct bus_local_hub **ret_hub, struct bus_redis_hub **ret_redis,
                            peg_error *reterr)
{
    const struct bus_redis_options redis = {
        .url = config->redis,
        .password = config->redis_password,
        .ca_file = config->redis_ca,
        .cert_file = config->redis_cert,
        .key_file = config->redis_key,
        .name = node->name,
        .node = node->id,
    };
    peg_status status;

    if (!gw_has_redis(config))
        return bus_local_hub_new(node->id, ret_hub, reterr);
    status = bus_redis_hub_new(&redis, ret_redis, reterr);
    return status ? status : bus_redis_hub_check(*ret_redis, reterr);
}

static struct gw_loop_state *loop_state_of(const struct calls_loop *calls)
{
    return peg__container_of(gw_router_of(calls), struct gw_loop_state, router);
}

/* Providers first: calls that lose theirs look for another one. */
static void on_node_lost(void *user, struct bus_address address)
{
    struct gw_loop_state *state = loop_state_of((const struct calls_loop *)user);
    struct gw_node *node = state->node;

    gw_presence_on_node_lost(node->presences[state->number], address);
    calls_on_node_lost(user, address);
    if (node->members[state->number])
        gw_members_on_node_lost(node->members[state->number], address);
}

/* An operator asked another node. */
static void drain_for_other(struct gw_node *node, const struct bus_message *message)
{
    char from[BUS_ADDRESS_TEXT];

    bus_address_print(message->from, from);
    gw_event_log_write(node->log, PEG_LOG_INFO, GW_EVENT_DRAIN,
                       GW_FIELDS(gw_field_text("via", "node"), gw_field_text("from", from)));
    if (message->deadline_ms > 0 && message->deadline_ms <= PEG_LIMIT_GATEWAY_MAX_CALL_MS)
        node->drain_ms = message->deadline_ms;
    if (node->stop && !atomic_load(&node->is_draining))
        node->stop(node->stop_user);
}

static void on_message(void *user, const struct bus_message *message)
{
    const struct gw_loop_state *state = loop_state_of((const struct calls_loop *)user);

    if (message->kind == BUS_DRAIN)
        drain_for_other(state->node, message);
    else if (message->kind == BUS_SESSION)
        gw_mcp_on_message(state->node->mcp.loops[state->number], message);
    else if (!gw_direct_on_message(gw_router_of((const struct calls_loop *)user)->direct, message))
        calls_on_message(user, message);
}

/* A node that started on a Redis that was flushed has written a secret of its own. */
static void on_reset(void *user)
{
    struct calls_loop *calls = (struct calls_loop *)user;
    const struct gw_loop_state *state = loop_state_of(calls);
    uint8_t secret[BUS_REDIS_SECRET_BYTES];

    bus_redis_secret(state->bus, secret);
    if (calls_set_secret(calls, secret))
        gw_mcp_on_secret(state->node->mcp.loops[state->number]);
    calls_on_reset(user);
}

static const struct bus_events calls_bus_events = {
    .on_message = on_message,
    .on_reset = on_reset,
    .on_node_lost = on_node_lost,
};

/* ---- the node as others see it ---- */

static int64_t count_settled(const struct gw_totals *totals)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < CALLS_N_KINDS; i++)
        n += i == CALLS_KIND_REFUSED ? 0 : totals->outcomes[i];
    return (int64_t)n;
}

static enum gw_member_state member_state(const struct gw_node *node)
{
    if (atomic_load(&node->is_draining))
        return GW_MEMBER_DRAINING;
    return atomic_load(&node->address) ? GW_MEMBER_SERVING : GW_MEMBER_STARTING;
}

void gw_member_count(struct gw_member *member, const struct gw_totals *totals)
{
    member->in_flight = totals->in_flight > 0 ? totals->in_flight : 0;
    member->queued = totals->queued > 0 ? totals->queued : 0;
    member->settled = count_settled(totals);
    member->results = (int64_t)totals->outcomes[CALLS_KIND_RESULT];
    member->errors = (int64_t)totals->outcomes[CALLS_KIND_ERROR];
    member->timeouts = (int64_t)totals->outcomes[CALLS_KIND_TIMEOUT];
    member->canceled = (int64_t)totals->outcomes[CALLS_KIND_CANCELED];
    member->unknown = (int64_t)totals->outcomes[CALLS_KIND_UNKNOWN];
    member->refused = (int64_t)totals->outcomes[CALLS_KIND_REFUSED];
    member->rate = (int64_t)(totals->calls_per_s * 1000);
}

static void describe_node(void *user, struct gw_member *member)
{
    const struct gw_loop_state *state = (const struct gw_loop_state *)user;
    struct gw_node *node = state->node;
    const char *address = atomic_load(&node->address);
    struct bus_redis_stats redis = {.n_commands = 0};
    struct gw_totals totals;

    gw_metrics_total(node->metrics, &totals);
    if (node->redis)
        bus_redis_hub_stats(node->redis, &redis);
    snprintf(member->version, sizeof(member->version), "%s", peg_version());
    snprintf(member->address, sizeof(member->address), "%s", address ? address : "");
    snprintf(member->store, sizeof(member->store), "%s", node->store_kind ? node->store_kind : "");
    member->state = member_state(node);
    member->started_ms = node->started_ms;
    member->threads = net_loops_len(node->loops);
    member->providers = (int64_t)gw_presence_count_at(node->presences[state->number], node->id);
    gw_member_count(member, &totals);
    member->lag_us = redis.round_trip_ns / 1000;
}

struct joining {
    const struct gw_members *members;
    enum gw_admission admission;
    bool is_known; /* who the other one is */
    struct gw_member other;
};

static void look_at_admission(void *user)
{
    struct joining *joining = (struct joining *)user;
    const struct gw_member *other;

    joining->admission = gw_members_admission(joining->members, &other);
    joining->is_known = other != NULL;
    if (other)
        joining->other = *other;
}

static peg_status fail_protocol(const struct gw_node *node, const struct joining *joining,
                                peg_error *reterr)
{
    char id[GW_MEMBER_KEY] = "which has gone";

    if (joining->is_known)
        gw_member_key(joining->other.node, id);
    return peg__fail(reterr, PEG_ESTATE, "E_PROTOCOL_VERSION",
                     "node %s (%.100s, Pegboard %s) of registry '%.64s' speaks version %lld of the "
                     "protocol between nodes, this one (Pegboard %s) version %d: stop the nodes of "
                     "the other version first, or start this one under another --name",
                     id, joining->other.address, joining->other.version, node->name,
                     (long long)joining->other.protocol, peg_version(), GW_PROTOCOL);
}

peg_status gw_node_join(struct gw_node *node, peg_error *reterr)
{
    const int64_t until_ns = peg__mono_ns() + PEG_LIMIT_GATEWAY_JOIN_MS * PEG_NS_PER_MS;
    const struct timespec pause = {.tv_nsec = 1000000L};
    struct joining joining = {.members = node->members[0]};

    for (;;) {
        gw_on_loop(net_loops_at(node->loops, 0), look_at_admission, &joining);
        if (joining.admission == GW_ADMITTED)
            return PEG_OK;
        if (joining.admission == GW_NOT_ADMITTED)
            return fail_protocol(node, &joining, reterr);
        if (peg__mono_ns() >= until_ns)
            return peg__fail(reterr, PEG_EIO, "E_JOIN",
                             "the node could not announce itself on Redis within %d s: see the log "
                             "for what Redis answers",
                             PEG_LIMIT_GATEWAY_JOIN_MS / 1000);
        nanosleep(&pause, NULL);
    }
}

static void refresh_members(void *user)
{
    gw_members_refresh((struct gw_members *)user);
}

void gw_node_announce(struct gw_node *node)
{
    if (node->n_loops)
        gw_on_loop(net_loops_at(node->loops, 0), refresh_members, node->members[0]);
}

/* ---- making and freeing ---- */

static void on_leader(void *user, bool is_leader)
{
    const struct gw_node *node = (const struct gw_node *)user;

    if (node->keeper)
        gw_keeper_lead(node->keeper, is_leader);
}

/* Where the bus has streams. */
static peg_status make_direct(struct gw_loop_state *state, peg_error *reterr)
{
    struct gw_router *router = &state->router;
    peg_status status;

    if (!bus_has_streams(state->bus))
        return PEG_OK;
    status = gw_direct_new(router, &router->direct, reterr);
    if (!status && state->number == 0)
        status = gw_keeper_new(router->direct, state->node->ping_interval_ms,
                               &state->node->keeper_counts, &state->node->keeper, reterr);
    return status;
}

/* Half of an interval, so that another node pings within one. */
static peg_status make_leader(struct gw_node *node, struct bus *bus, peg_error *reterr)
{
    const int64_t half_ms =
        node->ping_interval_ms / 2 < LEADER_MIN_MS ? LEADER_MIN_MS : node->ping_interval_ms / 2;
    const struct gw_leader_options options = {
        .bus = bus,
        .role = GW_ROLE_PING,
        .lease_ms = half_ms < node->lease_ms ? half_ms : node->lease_ms,
        .on_change = on_leader,
        .user = node,
    };

    return gw_leader_new(&options, &node->leader, reterr);
}

static peg_status build_loop_state(struct gw_loop_state *state, peg_error *reterr)
{
    struct gw_node *node = state->node;
    const unsigned i = state->number;
    struct net_loop *loop = net_loops_at(node->loops, i);
    peg_status status = state->redis ? bus_redis_new(state->redis, loop, i, &state->bus, reterr)
                                     : bus_local_new(state->hub, loop, i, &state->bus, reterr);

    _Static_assert(sizeof(state->options.secret) == BUS_REDIS_SECRET_BYTES, "all of it");
    if (!status && state->redis)
        bus_redis_secret(state->bus, state->options.secret);
    if (!status)
        status = gw_presence_new(state->bus, &state->health, on_presence, state,
                                 &node->presences[i], reterr);
    if (!status)
        status = gw_router_init(&state->router,
                                &(struct gw_router_options){
                                    .bus = state->bus,
                                    .loop = loop,
                                    .number = i,
                                    .calls = &state->options,
                                    .presence = node->presences[i],
                                    .metrics = node->metrics,
                                    .auth = node->auth,
                                    .tracer = &node->tracer,
                                },
                                reterr);
    node->calls[i] = state->router.calls;
    if (!status)
        status = make_direct(state, reterr);
    if (!status)
        status = gw_watches_new(node->calls[i], node->changes, &node->watches[i], reterr);
    if (!status)
        status = gw_mcp_new(node, i, &node->mcp.loops[i], reterr);
    if (!status)
        status = gw_members_new(&(struct gw_members_options){.bus = state->bus,
                                                             .is_home = i == 0,
                                                             .lease_ms = node->lease_ms,
                                                             .describe = describe_node,
                                                             .user = state},
                                &node->members[i], reterr);
    if (!status && i == 0)
        status = make_leader(node, state->bus, reterr);
    if (!status)
        bus_listen(state->bus, &calls_bus_events, node->calls[i]);
    return status;
}

static void build_on_loop(void *user)
{
    struct gw_loop_state *state = (struct gw_loop_state *)user;

    state->status = build_loop_state(state, &state->error);
}

peg_status gw_loop_state_init(struct gw_loop_state *state, peg_error *reterr)
{
    gw_on_loop(net_loops_at(state->node->loops, state->number), build_on_loop, state);
    if (state->status && reterr)
        *reterr = state->error;
    return state->status;
}

static void clear_on_loop(void *user)
{
    struct gw_loop_state *state = (struct gw_loop_state *)user;
    struct gw_node *node = state->node;
    const unsigned i = state->number;

    node->mcp.loops[i] = gw_mcp_free(node->mcp.loops[i]);
    if (i == 0)
        node->leader = gw_leader_free(node->leader);
    if (i == 0)
        node->keeper = gw_keeper_free(node->keeper);
    state->router.direct = gw_direct_free(state->router.direct);
    node->members[i] = gw_members_free(node->members[i]);
    node->watches[i] = gw_watches_free(node->watches[i]);
    gw_router_clear(&state->router);
    node->calls[i] = NULL;
    node->presences[i] = gw_presence_free(node->presences[i]);
    state->bus = bus_free(state->bus);
}

void gw_loop_state_clear(struct gw_loop_state *state)
{
    gw_on_loop(net_loops_at(state->node->loops, state->number), clear_on_loop, state);
}

/* ---- principals that are not known any more ---- */

static void end_unknown(void *user)
{
    const struct gw_loop_state *state = (const struct gw_loop_state *)user;
    struct gw_node *node = state->node;

    if (!node->calls[state->number])
        return; /* the gateway goes */
    calls_evict_unknown(node->calls[state->number]);
    gw_watches_end_unknown(node->watches[state->number], node->auth);
    gw_mcp_end_unknown(node->mcp.loops[state->number], node->auth);
}

/* The tokens may be read once more meanwhile: then it is asked again. */
static void end_unknown_soon(struct net_message *message)
{
    struct gw_loop_state *state = peg__container_of(message, struct gw_loop_state, eviction);

    atomic_store(&state->is_eviction_sent, false);
    end_unknown(state);
}

void gw_loop_state_evict_unknown(struct gw_loop_state *state, bool waits)
{
    struct net_loop *loop = net_loops_at(state->node->loops, state->number);

    if (waits) {
        gw_on_loop(loop, end_unknown, state);
    } else if (!atomic_exchange(&state->is_eviction_sent, true)) {
        state->eviction.fn = end_unknown_soon;
        net_loop_post(loop, &state->eviction);
    }
}

struct errand {
    struct net_message message; /* the first member */
    void (*fn)(void *user);
    void *user;
    bool is_done;
    pthread_mutex_t lock;
    pthread_cond_t done;
};

/* The errand is the waiter's, and may be gone as soon as the lock is. */
static void run_errand(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;

    errand->fn(errand->user);
    pthread_mutex_lock(&errand->lock);
    errand->is_done = true;
    pthread_cond_signal(&errand->done);
    pthread_mutex_unlock(&errand->lock);
}

void gw_on_loop(struct net_loop *loop, void (*fn)(void *user), void *user)
{
    struct errand errand = {
        .message.fn = run_errand,
        .fn = fn,
        .user = user,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .done = PTHREAD_COND_INITIALIZER,
    };

    net_loop_post(loop, &errand.message);
    pthread_mutex_lock(&errand.lock);
    while (!errand.is_done)
        pthread_cond_wait(&errand.done, &errand.lock);
    pthread_mutex_unlock(&errand.lock);
    pthread_cond_destroy(&errand.done);
    pthread_mutex_destroy(&errand.lock);
}
