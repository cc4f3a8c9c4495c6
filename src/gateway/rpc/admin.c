/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/rpc.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/node.h"
#include "gateway/telemetry/metrics.h"
#include "grpc/message.h"
#include "pegboard/v1/admin.grpc.h"

/* Owned. */
struct gw_admin {
    struct gw_node *node;
    struct pegboard_v1_admin_handlers handlers;
    struct net_timer tick; /* on the first loop */
};

/* ---- what is reported ---- */

static Pegboard__V1__Outcomes *make_outcomes(const struct gw_totals *totals,
                                             struct peg__arena *arena)
{
    Pegboard__V1__Outcomes *outcomes = peg__arena_alloc(arena, sizeof(*outcomes));

    if (!outcomes)
        return NULL;
    pegboard__v1__outcomes__init(outcomes);
    outcomes->result = totals->outcomes[CALLS_KIND_RESULT];
    outcomes->error = totals->outcomes[CALLS_KIND_ERROR];
    outcomes->timeout = totals->outcomes[CALLS_KIND_TIMEOUT];
    outcomes->canceled = totals->outcomes[CALLS_KIND_CANCELED];
    outcomes->outcome_unknown = totals->outcomes[CALLS_KIND_UNKNOWN];
    outcomes->refused = totals->outcomes[CALLS_KIND_REFUSED];
    return outcomes;
}

static uint32_t at_least_0(int64_t n)
{
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static Pegboard__V1__ToolsetStatus *make_toolset(struct gw_node *node, struct calls_loop *calls,
                                                 const struct gw_toolset *toolset,
                                                 struct peg__arena *arena)
{
    Pegboard__V1__ToolsetStatus *status = peg__arena_alloc(arena, sizeof(*status));
    struct gw_totals totals;
    struct gw_latencies latencies;

    if (!status)
        return NULL;
    gw_metrics_of(node->metrics, toolset->name, &totals);
    gw_metrics_latencies(node->metrics, toolset->name, &latencies);
    pegboard__v1__toolset_status__init(status);
    status->toolset = gw_info_toolset(toolset, gw_router_of(calls)->presence, arena);
    status->outcomes = make_outcomes(&totals, arena);
    status->in_flight = at_least_0(totals.in_flight);
    status->queued = at_least_0(totals.queued);
    status->calls_per_s = totals.calls_per_s;
    status->p50_ms = gw_latency_quantile_ms(&latencies, 0.5);
    status->p99_ms = gw_latency_quantile_ms(&latencies, 0.99);
    return status->toolset && status->outcomes ? status : NULL;
}

/* As many as one answer has room for; `toolsets` says how many there are. */
static bool add_toolsets(struct gw_node *node, struct calls_loop *calls,
                         Pegboard__V1__StatusResponse *response, struct peg__arena *arena)
{
    const struct gw_snapshot *snapshot = gw_router_of(calls)->snapshot;
    size_t bytes = 0;

    response->per_toolset = peg__arena_alloc(arena, (snapshot->n + 1) * sizeof(void *));
    if (!response->per_toolset)
        return false;
    for (size_t i = 0; i < snapshot->n; i++) {
        Pegboard__V1__ToolsetStatus *status =
            make_toolset(node, calls, snapshot->toolsets[i], arena);

        if (!status)
            return false;
        bytes += grpc_message_packed_size(&status->base) + 8;
        if (bytes > PEG_LIMIT_GATEWAY_PAGE_BYTES)
            return true;
        response->per_toolset[response->n_per_toolset++] = status;
    }
    return true;
}

static void count_health(struct calls_loop *calls, Pegboard__V1__StatusResponse *response)
{
    for (size_t i = 0; i < gw_router_of(calls)->snapshot->n; i++) {
        const struct gw_health health = gw_presence_health(
            gw_router_of(calls)->presence, gw_router_of(calls)->snapshot->toolsets[i]->name);

        response->healthy += health.state == GW_HEALTHY;
        response->providers += health.n_providers;
    }
    response->toolsets = at_least_0((int64_t)gw_router_of(calls)->snapshot->n);
}

static void add_outcomes(Pegboard__V1__Outcomes *sum, const Pegboard__V1__Outcomes *outcomes)
{
    sum->result += outcomes->result;
    sum->error += outcomes->error;
    sum->timeout += outcomes->timeout;
    sum->canceled += outcomes->canceled;
    sum->outcome_unknown += outcomes->outcome_unknown;
    sum->refused += outcomes->refused;
}

/* False: no memory. */
static bool add_registry(struct gw_node *node, struct calls_loop *calls,
                         Pegboard__V1__StatusResponse *response, struct peg__arena *arena)
{
    Pegboard__V1__RegistryTotals *sum = peg__arena_alloc(arena, sizeof(*sum));
    Pegboard__V1__Outcomes *outcomes = peg__arena_alloc(arena, sizeof(*outcomes));

    if (!sum || !outcomes ||
        !gw_info_nodes(node, calls, arena, &response->nodes, &response->n_nodes))
        return false;
    pegboard__v1__registry_totals__init(sum);
    pegboard__v1__outcomes__init(outcomes);
    for (size_t i = 0; i < response->n_nodes; i++) {
        const Pegboard__V1__NodeInfo *info = response->nodes[i];

        if (strcmp(info->state, "lost") == 0)
            continue;
        sum->nodes++;
        sum->in_flight += info->in_flight;
        sum->queued += info->queued;
        sum->calls_per_s += info->calls_per_s;
        add_outcomes(outcomes, info->outcomes);
    }
    sum->outcomes = outcomes;
    response->registry = sum;
    return true;
}

static bool fill_status(struct gw_node *node, struct calls_loop *calls,
                        Pegboard__V1__StatusResponse *response, struct peg__arena *arena)
{
    struct grpc_server_counts counts;
    struct gw_totals totals;

    grpc_server_counts(node->server, &counts);
    gw_metrics_total(node->metrics, &totals);
    response->node = gw_info_node(node, calls, arena);
    response->outcomes = make_outcomes(&totals, arena);
    response->in_flight = at_least_0(totals.in_flight);
    response->queued = at_least_0(totals.queued);
    response->calls_per_s = totals.calls_per_s;
    response->late_results = totals.late_results;
    response->connections = counts.n_connections;
    response->memory_bytes = gw_rss_bytes();
    if (gw_router_of(calls)->snapshot)
        count_health(calls, response);
    return response->node && response->outcomes && add_registry(node, calls, response, arena);
}

/* ---- methods ---- */

static bool reject_others(struct gw_node *node, struct grpc_call *call)
{
    if (gw_auth_is_operator(call))
        return false;
    gw_report_refused(node->log, call, WIRE_PERMISSION_DENIED, peg__str(""));
    gw_fail(call, WIRE_PERMISSION_DENIED,
            peg__str("only operators may administer the gateway: use a token of `pegboard token "
                     "new --admin`, a certificate of --admin-names, or its unix socket"));
    return true;
}

static void serve_status(struct grpc_call *call, const Pegboard__V1__StatusRequest *request,
                         void *user)
{
    struct gw_admin *admin = user;
    struct gw_node *node = admin->node;
    struct peg__arena *arena = grpc_call_arena(call);
    Pegboard__V1__StatusResponse response = PEGBOARD__V1__STATUS_RESPONSE__INIT;
    struct calls_loop *calls;

    if (reject_others(node, call))
        return;
    calls = gw_node_calls(node, grpc_call_loop(call));
    if (!fill_status(node, calls, &response, arena) ||
        (request->with_toolsets && gw_router_of(calls)->snapshot &&
         !add_toolsets(node, calls, &response, arena)))
        gw_fail_memory(call);
    else
        pegboard_v1_admin_status_reply(call, &response);
}

static void serve_nodes(struct grpc_call *call, const Pegboard__V1__NodesRequest *request,
                        void *user)
{
    struct gw_admin *admin = user;

    (void)request;
    if (!reject_others(admin->node, call))
        gw_serve_nodes(call, admin->node);
}

static void serve_drain(struct grpc_call *call, const Pegboard__V1__DrainNodeRequest *request,
                        void *user)
{
    struct gw_admin *admin = user;

    if (!reject_others(admin->node, call))
        gw_serve_drain(call, request, admin->node);
}

static void serve_unregister(struct grpc_call *call,
                             const Pegboard__V1__AdminUnregisterRequest *request, void *user)
{
    struct gw_admin *admin = user;

    if (!reject_others(admin->node, call))
        gw_unregister_any(call, request->toolset, admin->node);
}

/* ---- its life ---- */

static void on_tick(struct net_timer *timer)
{
    struct gw_admin *admin = peg__container_of(timer, struct gw_admin, tick);
    struct net_loop *loop = net_loops_at(admin->node->loops, 0);

    gw_metrics_tick(admin->node->metrics, net_loop_now_ns(loop));
    net_loop_arm(loop, &admin->tick, net_loop_now_ns(loop) + PEG_NS_PER_S);
}

static void start_ticking(void *user)
{
    struct gw_admin *admin = user;

    on_tick(&admin->tick);
}

static void stop_ticking(void *user)
{
    struct gw_admin *admin = user;

    net_loop_disarm(net_loops_at(admin->node->loops, 0), &admin->tick);
}

peg_status gw_admin_new(struct gw_node *node, struct gw_admin **ret_admin, peg_error *reterr)
{
    struct gw_admin *admin = peg__alloc_zero(1, sizeof(*admin));
    peg_status status;

    if (!admin)
        return peg__fail_nomem(reterr);
    admin->node = node;
    admin->handlers = (struct pegboard_v1_admin_handlers){
        .user = admin,
        .status = serve_status,
        .nodes = serve_nodes,
        .drain_node = serve_drain,
        .drain_node_on_end = gw_serve_drain_on_end,
        .unregister = serve_unregister,
        .unregister_on_end = gw_serve_change_on_end,
    };
    status = pegboard_v1_admin_add(node->server, &admin->handlers, reterr);
    if (status) {
        peg__free(admin);
        return status;
    }
    admin->tick.fn = on_tick;
    gw_on_loop(net_loops_at(node->loops, 0), start_ticking, admin);
    *ret_admin = admin;
    return PEG_OK;
}

struct gw_admin *gw_admin_free(struct gw_admin *admin)
{
    if (!admin)
        return NULL;
    gw_on_loop(net_loops_at(admin->node->loops, 0), stop_ticking, admin);
    peg__free(admin);
    return NULL;
}
