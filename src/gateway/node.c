/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/node.h"

#include "base/error.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "gateway/node_internal.h"
#include "gateway/rpc/on_loop.h"
#include "gateway/rpc/watch.h"
#include "gateway/telemetry/event_log.h"

struct gw_calls *gw_node_calls(const struct gw_node *node, const struct net_loop *loop)
{
    for (unsigned i = 0; i < node->n_desks; i++)
        if (node->desks[i]->loop == loop)
            return node->desks[i];
    return NULL;
}

/* ---- what one loop has ----------------------------------------------------------------------- */

static void tell_health(struct gw_node *node, struct gw_presence *presence, peg_str toolset)
{
    const struct gw_health health = gw_presence_health(presence, toolset);
    const bool is_healthy = health.state == GW_HEALTHY;

    gw_event_log_write(node->journal, is_healthy ? PEG_LOG_INFO : PEG_LOG_WARN, GW_EVENT_HEALTH,
                       GW_FIELDS(gw_field_str("toolset", toolset),
                                 gw_field_text("state", is_healthy ? "healthy" : "unhealthy"),
                                 gw_field_number("providers", health.n_providers),
                                 gw_field_number("draining", health.n_draining)));
}

/* Every loop sees the same changes: the first one writes them down. */
static void on_presence(void *user, peg_str toolset)
{
    struct gw_loop_state *seat = (struct gw_loop_state *)user;
    struct gw_node *node = seat->node;

    if (!node->presences[seat->number])
        return; /* it is just being made */
    gw_watches_on_health(node->watches[seat->number], toolset);
    if (seat->number == 0)
        tell_health(node, node->presences[0], toolset);
}

static void on_snapshot(void *user, struct gw_snapshot *snapshot)
{
    struct gw_loop_state *seat = (struct gw_loop_state *)user;
    struct gw_node *node = seat->node;

    gw_calls_on_snapshot(node->desks[seat->number], snapshot);
    gw_watches_on_snapshot(node->watches[seat->number], snapshot);
}

const struct gw_catalog_events gw_loop_state_events = {.on_snapshot = on_snapshot};

static const struct bus_events DESK_EVENTS = {
    .on_message = gw_calls_on_message,
    .on_reset = gw_calls_on_reset,
};

static peg_status furnish(struct gw_loop_state *seat, peg_error *reterr)
{
    struct gw_node *node = seat->node;
    const unsigned i = seat->number;
    struct net_loop *loop = net_loops_at(node->loops, i);
    peg_status status = bus_local_new(seat->hub, loop, i, &seat->bus, reterr);

    if (!status)
        status = gw_presence_new(seat->bus, &seat->health, on_presence, seat, &node->presences[i],
                                 reterr);
    if (!status)
        status = gw_calls_new(seat->bus, loop, i, &seat->options, node->presences[i], node->metrics,
                              &node->desks[i], reterr);
    if (!status)
        status = gw_watches_new(node->desks[i], &node->watches[i], reterr);
    if (!status)
        bus_listen(seat->bus, &DESK_EVENTS, node->desks[i]);
    return status;
}

static void furnish_on_loop(void *user)
{
    struct gw_loop_state *seat = (struct gw_loop_state *)user;

    seat->status = furnish(seat, &seat->error);
}

peg_status gw_loop_state_init(struct gw_loop_state *seat, peg_error *reterr)
{
    gw_on_loop(net_loops_at(seat->node->loops, seat->number), furnish_on_loop, seat);
    if (seat->status && reterr)
        *reterr = seat->error;
    return seat->status;
}

static void clear_on_loop(void *user)
{
    struct gw_loop_state *seat = (struct gw_loop_state *)user;
    struct gw_node *node = seat->node;
    const unsigned i = seat->number;

    node->watches[i] = gw_watches_free(node->watches[i]);
    node->desks[i] = gw_calls_free(node->desks[i]);
    node->presences[i] = gw_presence_free(node->presences[i]);
    seat->bus = bus_free(seat->bus);
}

void gw_loop_state_clear(struct gw_loop_state *seat)
{
    gw_on_loop(net_loops_at(seat->node->loops, seat->number), clear_on_loop, seat);
}
