/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>

#include "base/error.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "bus/redis/redis.h"
#include "gateway/node.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/event_log.h"

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
        .name = node->name,
        .node = node->id,
    };
    peg_status status;

    if (!gw_has_redis(config))
        return bus_local_hub_new(node->id, ret_hub, reterr);
    status = bus_redis_hub_new(&redis, ret_redis, reterr);
    return status ? status : bus_redis_hub_check(*ret_redis, reterr);
}

/* Providers first: calls that lose theirs look for another one. */
static void on_node_lost(void *user, struct bus_address address)
{
    gw_presence_on_node_lost(gw_router_of((struct calls_loop *)user)->presence, address);
    calls_on_node_lost(user, address);
}

static const struct bus_events calls_bus_events = {
    .on_message = calls_on_message,
    .on_reset = calls_on_reset,
    .on_node_lost = on_node_lost,
};

static peg_status build_loop_state(struct gw_loop_state *state, peg_error *reterr)
{
    struct gw_node *node = state->node;
    const unsigned i = state->number;
    struct net_loop *loop = net_loops_at(node->loops, i);
    peg_status status = state->redis ? bus_redis_new(state->redis, loop, i, &state->bus, reterr)
                                     : bus_local_new(state->hub, loop, i, &state->bus, reterr);

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
                                },
                                reterr);
    node->calls[i] = state->router.calls;
    if (!status)
        status = gw_watches_new(node->calls[i], &node->watches[i], reterr);
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
