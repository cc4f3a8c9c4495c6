/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_NODES_H
#define PEG_TESTS_GATEWAY_SIM_NODES_H

/* The nodes of a run, each loop with its real loop and presence, and one toolset with two tools
 * that all of them know: "do", and "again", which is idempotent. */

#include "../requests.h"
#include "base/clock.h"
#include "base/mem.h"
#include "calls/caller/homes.h"
#include "gateway/routing/routing.h"
#include "history.h"
#include "plants.h"

enum { W_NODES = 14, W_LOOPS = 3 };

struct w_node {
    uint64_t id;
    bool is_alive;
    int64_t since_ns;
    unsigned n_loops;
    struct calls_homes *homes[W_LOOPS]; /* but for a plant, only the first */
    struct bus *buses[W_LOOPS];
    struct gw_metrics *metrics;
    struct gw_presence *presences[W_LOOPS];
    struct gw_router routers[W_LOOPS];
    struct calls_loop *loops[W_LOOPS]; /* the routers' */
    int64_t paused_ns;                 /* in all */
};

static struct {
    struct bus_sim *sim;
    struct gw_toolset *toolset;
    struct gw_snapshot *snapshot;
    struct calls_options options;
    struct w_node nodes[W_NODES];
    unsigned n_nodes;
} w;

static int64_t w_now_ns(void)
{
    return bus_sim_now_ns(w.sim);
}

static unsigned w_pick(unsigned n)
{
    return (unsigned)bus_sim_pick(w.sim, n);
}

static bool w_happens(unsigned percent)
{
    return w_pick(100) < percent;
}

/* Many are short, some are not. */
static int64_t w_pick_ns(int64_t short_ms, int64_t long_ms, unsigned percent_long)
{
    const int64_t max_ms = w_happens(percent_long) ? long_ms : short_ms;

    return 1 + (int64_t)bus_sim_pick(w.sim, (uint64_t)(max_ms * PEG_NS_PER_MS));
}

static void w_arm(struct net_timer *timer, void (*fn)(struct net_timer *timer), int64_t after_ns)
{
    timer->fn = fn;
    bus_sim_arm(w.sim, timer, w_now_ns() + after_ns);
}

/* ---- the catalog --------------------------------------------------------------------------- */

static void w_make_catalog(void)
{
    static struct req req;
    struct gw_toolset **toolsets;

    req_empty(&req, "tools");
    req_tool(&req, "do", "{\"type\":\"object\"}");
    req_tool(&req, "again", "{\"type\":\"object\"}")->idempotent = true;
    w.toolset = req_toolset(&req);
    w.snapshot = peg__alloc_zero(1, sizeof(*w.snapshot) + sizeof(*toolsets));
    CHECK(w.snapshot);
    toolsets = (struct gw_toolset **)(void *)(w.snapshot + 1);
    toolsets[0] = gw_toolset_ref(w.toolset);
    atomic_init(&w.snapshot->n_refs, 1);
    w.snapshot->toolsets = toolsets;
    w.snapshot->n = 1;
    w.snapshot->n_tools = 2;
}

static void w_free_catalog(void)
{
    w.snapshot = gw_snapshot_unref(w.snapshot);
    w.toolset = gw_toolset_unref(w.toolset);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Ids of calls come from the seed, too. */
static void w_fill_random(struct calls_loop *calls)
{
    for (size_t i = 0; i < sizeof(calls->random); i += sizeof(uint64_t)) {
        const uint64_t word = bus_sim_random(w.sim);

        memcpy(calls->random + i, &word, sizeof(word));
    }
    calls->n_random = sizeof(calls->random);
}

static void w_start_loop(struct w_node *node, unsigned i)
{
    static const struct bus_events events = {.on_message = calls_on_message,
                                             .on_reset = calls_on_reset,
                                             .on_node_lost = calls_on_node_lost};
    static const struct gw_presence_options options = {.ping_interval_ms = 10000,
                                                       .missed_pings = 3};
    struct bus *bus = node->buses[i];

    if (i == 0 || h.plant == H_SPLITS_HOMES)
        CHECK((node->homes[i] = calls_homes_new()) != NULL);
    w.options.homes = node->homes[i] ? node->homes[i] : node->homes[0];
    x_plant(bus);
    CHECK_INT(gw_presence_new(bus, &options, NULL, NULL, &node->presences[i], NULL), PEG_OK);
    CHECK_INT(gw_router_init(&node->routers[i],
                             &(struct gw_router_options){
                                 .bus = bus,
                                 .number = i,
                                 .calls = &w.options,
                                 .presence = node->presences[i],
                                 .metrics = node->metrics,
                             },
                             NULL),
              PEG_OK);
    node->loops[i] = node->routers[i].calls;
    w_fill_random(node->loops[i]);
    bus_listen(bus, h.plant < H_WRITES_ITS_OWN ? &events : &x_events, node->loops[i]);
    gw_router_on_snapshot(&node->routers[i], w.snapshot);
}

static struct w_node *w_start_node(unsigned n_loops)
{
    struct w_node *node;

    if (w.n_nodes == W_NODES)
        return NULL;
    node = &w.nodes[w.n_nodes++];
    *node = (struct w_node){.is_alive = true, .since_ns = w_now_ns(), .n_loops = n_loops};
    CHECK_INT(bus_sim_add_node(w.sim, n_loops, node->buses, &node->id), PEG_OK);
    CHECK_INT(gw_metrics_new(n_loops, &node->metrics, NULL), PEG_OK);
    for (unsigned i = 0; i < n_loops; i++)
        w_start_loop(node, i);
    h_log("node %llx with %u loops", (unsigned long long)node->id, n_loops);
    return node;
}

/* All that it knew is gone; its callers and streams are marked elsewhere. */
static void w_crash_node(struct w_node *node)
{
    h_log("node %llx CRASHES", (unsigned long long)node->id);
    bus_sim_crash(w.sim, node->id);
    for (unsigned i = 0; i < node->n_loops; i++) {
        gw_router_clear(&node->routers[i]);
        node->loops[i] = NULL;
        node->presences[i] = gw_presence_free(node->presences[i]);
        node->buses[i] = bus_free(node->buses[i]);
    }
    node->metrics = gw_metrics_free(node->metrics);
    for (unsigned i = 0; i < node->n_loops; i++)
        node->homes[i] = calls_homes_free(node->homes[i]);
    node->is_alive = false;
}

/* How many loops of the node have call objects of an id. */
static unsigned w_n_homes(const struct w_node *node, const struct bus_id *id)
{
    unsigned n = 0;

    for (unsigned i = 0; node->is_alive && i < node->n_loops; i++)
        n += calls_table_find(&node->loops[i]->by_id, id, 0) != NULL;
    return n;
}

static void w_pause_node(struct w_node *node, int64_t ns)
{
    h_log("node %llx pauses for %.1f ms", (unsigned long long)node->id, (double)ns / 1e6);
    bus_sim_pause(w.sim, node->id, ns);
    node->paused_ns += ns;
}

static void w_partition_node(struct w_node *node, int64_t ns)
{
    h_log("node %llx is cut off for %.1f ms", (unsigned long long)node->id, (double)ns / 1e6);
    bus_sim_partition(w.sim, node->id, ns);
    node->paused_ns += ns;
}

static unsigned w_n_alive(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w.n_nodes; i++)
        n += w.nodes[i].is_alive;
    return n;
}

/* NULL: none is alive. */
static struct w_node *w_any_node(void)
{
    const unsigned n = w_n_alive();
    unsigned left = n ? w_pick(n) : 0;

    for (unsigned i = 0; i < w.n_nodes; i++)
        if (w.nodes[i].is_alive && left-- == 0)
            return &w.nodes[i];
    return NULL;
}

static void w_crash_all(void)
{
    for (unsigned i = 0; i < w.n_nodes; i++)
        if (w.nodes[i].is_alive)
            w_crash_node(&w.nodes[i]);
    w.n_nodes = 0;
}

#endif
