/* SPDX-License-Identifier: Apache-2.0 */

/* The nodes of the registry, and the end of one of them. */

#include "gateway/rpc/rpc.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/members/leader.h"
#include "gateway/members/members.h"
#include "gateway/node.h"
#include "gateway/telemetry/event_log.h"
#include "grpc/message.h"
#include "pegboard/v1/admin.grpc.h"

static struct gw_members *members_of(const struct gw_node *node, const struct calls_loop *calls)
{
    return node->members[calls->bus->self.loop];
}

/* ---- what is reported ---- */

static uint32_t as_count(int64_t n)
{
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static int64_t lease_left_ms(const struct gw_member *member, int64_t now_ms)
{
    const int64_t left_ms = member->written_ms + member->lease_ms - now_ms;

    return left_ms < 0 ? 0 : left_ms < member->lease_ms ? left_ms : member->lease_ms;
}

static void fill_report(const struct gw_node *node, struct calls_loop *calls,
                        const struct gw_member *member, Pegboard__V1__NodeInfo *info)
{
    const bool is_live = gw_members_is_live(members_of(node, calls), member);

    info->state = peg__unconst(is_live ? gw_member_state_name(member->state) : "lost");
    info->draining = member->state == GW_MEMBER_DRAINING;
    info->protocol = as_count(member->protocol);
    info->answers = member->node == node->id;
    info->pings = node->leader && gw_leader_node(node->leader) == member->node;
    info->lease_ms = member->lease_ms;
    info->lease_left_ms = lease_left_ms(member, bus_now_ms(calls->bus));
    info->providers = as_count(member->providers);
    info->in_flight = as_count(member->in_flight);
    info->queued = as_count(member->queued);
    info->settled = (uint64_t)member->settled;
    info->outcome_unknown = (uint64_t)member->unknown;
    info->round_trip_us = member->lag_us;
    info->calls_per_s = (double)member->rate / 1000;
}

static Pegboard__V1__Outcomes *make_member_outcomes(const struct gw_member *member,
                                                    struct peg__arena *arena)
{
    Pegboard__V1__Outcomes *outcomes =
        (Pegboard__V1__Outcomes *)peg__arena_alloc(arena, sizeof(*outcomes));

    if (!outcomes)
        return NULL;
    pegboard__v1__outcomes__init(outcomes);
    outcomes->result = (uint64_t)member->results;
    outcomes->error = (uint64_t)member->errors;
    outcomes->timeout = (uint64_t)member->timeouts;
    outcomes->canceled = (uint64_t)member->canceled;
    outcomes->outcome_unknown = (uint64_t)member->unknown;
    outcomes->refused = (uint64_t)member->refused;
    return outcomes;
}

/* Strings of the member are copied: the replica may change before the answer has left. */
static Pegboard__V1__NodeInfo *make_info(const struct gw_node *node, struct calls_loop *calls,
                                         const struct gw_member *member, struct peg__arena *arena)
{
    Pegboard__V1__NodeInfo *info = peg__arena_alloc(arena, sizeof(*info));
    char id[GW_MEMBER_KEY];

    if (!info)
        return NULL;
    pegboard__v1__node_info__init(info);
    gw_member_key(member->node, id);
    info->id = peg__arena_copy(arena, peg__str(id));
    info->registry = peg__unconst(node->name);
    info->version = peg__arena_copy(arena, peg__str(member->version));
    info->started_unix_ms = member->started_ms;
    info->bus = peg__unconst(node->bus_kind ? node->bus_kind : "");
    info->store = peg__arena_copy(arena, peg__str(member->store));
    info->threads = as_count(member->threads);
    info->address = peg__arena_copy(arena, peg__str(member->address));
    info->outcomes = make_member_outcomes(member, arena);
    fill_report(node, calls, member, info);
    return info->id && info->version && info->store && info->address && info->outcomes ? info
                                                                                       : NULL;
}

/* What the node is now goes before what it last reported. */
Pegboard__V1__NodeInfo *gw_info_node(struct gw_node *node, struct calls_loop *calls,
                                     struct peg__arena *arena)
{
    const struct gw_member *reported = gw_members_find(members_of(node, calls), node->id);
    struct gw_member member = {.node = node->id, .protocol = GW_PROTOCOL};
    const char *address = atomic_load(&node->address);
    Pegboard__V1__NodeInfo *info;
    struct gw_totals totals;

    if (reported)
        member = *reported;
    gw_metrics_total(node->metrics, &totals);
    gw_member_count(&member, &totals);
    info = make_info(node, calls, &member, arena);
    if (!info)
        return NULL;
    info->version = peg__unconst(peg_version());
    info->started_unix_ms = node->started_ms;
    info->store = peg__unconst(node->store_kind ? node->store_kind : "");
    info->threads = net_loops_len(node->loops);
    info->address = peg__unconst(address ? address : "");
    info->draining = atomic_load(&node->is_draining);
    info->state = peg__unconst(gw_member_state_name(info->draining ? GW_MEMBER_DRAINING
                                                    : address      ? GW_MEMBER_SERVING
                                                                   : GW_MEMBER_STARTING));
    return info;
}

bool gw_info_nodes(struct gw_node *node, struct calls_loop *calls, struct peg__arena *arena,
                   Pegboard__V1__NodeInfo ***ret_nodes, size_t *ret_n)
{
    Pegboard__V1__NodeInfo **nodes;
    size_t n_nodes = 0;
    size_t n;
    const struct gw_member *members = gw_members_list(members_of(node, calls), &n);
    bool is_listed = false;

    nodes = (Pegboard__V1__NodeInfo **)peg__arena_alloc(arena, (n + 1) * sizeof(*nodes));
    if (!nodes)
        return false;
    for (size_t i = 0; i < n; i++) {
        const bool is_own = members[i].node == node->id;
        Pegboard__V1__NodeInfo *info =
            is_own ? gw_info_node(node, calls, arena) : make_info(node, calls, &members[i], arena);

        if (!info)
            return false;
        is_listed |= is_own;
        nodes[n_nodes++] = info;
    }
    if (!is_listed) /* the registry is about to learn of it again */
        nodes[n_nodes++] = gw_info_node(node, calls, arena);
    *ret_nodes = nodes;
    *ret_n = n_nodes;
    return nodes[n_nodes - 1] != NULL;
}

void gw_serve_nodes(struct grpc_call *call, struct gw_node *node)
{
    Pegboard__V1__NodesResponse response = PEGBOARD__V1__NODES_RESPONSE__INIT;

    if (gw_info_nodes(node, gw_node_calls(node, grpc_call_loop(call)), grpc_call_arena(call),
                      &response.nodes, &response.n_nodes))
        pegboard_v1_admin_nodes_reply(call, &response);
    else
        gw_fail_memory(call);
}

/* ---- the end of a node ---- */

/* In the arena of the call. */
struct drain {
    struct bus_wait wait; /* the first member */
    struct grpc_call *call;
    struct bus *bus;
    char id[GW_MEMBER_KEY];
};

/* The client names the node that it asked: this is about the other one. */
static void fail_unreached(const struct drain *drain)
{
    char words[160];

    snprintf(words, sizeof(words),
             "node %s was lost, or has no connection to Redis, and did not get it: end it on its "
             "own machine, or wait until its lease is over",
             drain->id);
    gw_fail(drain->call, WIRE_SERVICE_UNAVAILABLE, peg__str(words));
}

static void on_sent(struct bus_wait *wait, const struct bus_answer *answer)
{
    const struct drain *drain = (const struct drain *)wait;
    const Pegboard__V1__DrainNodeResponse response = PEGBOARD__V1__DRAIN_NODE_RESPONSE__INIT;

    if (answer->status)
        gw_fail(drain->call, WIRE_SERVICE_UNAVAILABLE,
                peg__str("Redis did not answer, so the node may drain or not: look at `pegboard "
                         "cluster`, and try again"));
    else if (!answer->written)
        fail_unreached(drain);
    else
        pegboard_v1_admin_drain_node_reply(drain->call, &response);
}

static void log_drain(const struct gw_node *node, struct grpc_call *call, const char *id)
{
    gw_event_log_write(node->log, PEG_LOG_INFO, GW_EVENT_DRAIN,
                       GW_FIELDS(gw_field_text("via", "admin"),
                                 gw_field_str("principal", gw_call_principal(call)->name),
                                 gw_field_text("peer", grpc_call_peer(call)),
                                 gw_field_text("node", id)));
}

static void drain_other(struct grpc_call *call, struct gw_node *node, struct calls_loop *calls,
                        uint64_t target, int64_t drain_ms)
{
    const struct bus_message message = {
        .kind = BUS_DRAIN, .deadline_ms = drain_ms, .from = calls->bus->self};
    struct drain *drain =
        (struct drain *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*drain));

    if (!drain) {
        gw_fail_memory(call);
        return;
    }
    *drain = (struct drain){.wait.fn = on_sent, .call = call, .bus = calls->bus};
    gw_member_key(target, drain->id);
    log_drain(node, call, drain->id);
    grpc_call_set_state(call, drain);
    bus_send(calls->bus, (struct bus_address){.node = target}, &message, &drain->wait);
}

void gw_serve_drain_on_end(struct grpc_call *call, void *user)
{
    struct drain *drain = (struct drain *)grpc_call_state(call);

    (void)user;
    if (drain)
        bus_forget_wait(drain->bus, &drain->wait);
}

static void drain_own(struct grpc_call *call, struct gw_node *node, int64_t drain_ms)
{
    const Pegboard__V1__DrainNodeResponse response = PEGBOARD__V1__DRAIN_NODE_RESPONSE__INIT;
    char id[GW_MEMBER_KEY];

    if (!node->stop) {
        gw_fail(call, WIRE_SERVICE_UNAVAILABLE, peg__str("the operator of this node ends it"));
        return;
    }
    gw_member_key(node->id, id);
    log_drain(node, call, id);
    pegboard_v1_admin_drain_node_reply(call, &response);
    if (drain_ms)
        node->drain_ms = drain_ms;
    node->stop(node->stop_user);
}

void gw_serve_drain(struct grpc_call *call, const Pegboard__V1__DrainNodeRequest *request,
                    struct gw_node *node)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    uint64_t target = node->id;

    if (request->node_id[0] &&
        (!gw_member_parse_key(peg__str(request->node_id), &target) ||
         (target != node->id && !gw_members_find(members_of(node, calls), target)))) {
        gw_fail(call, WIRE_NOT_FOUND,
                peg__str("there is no such node in this registry: `pegboard cluster` lists those "
                         "that there are"));
    } else if (request->drain_ms < 0 || request->drain_ms > PEG_LIMIT_GATEWAY_MAX_CALL_MS) {
        gw_fail(call, WIRE_INVALID_RANGE,
                peg__str("drain_ms is less than 0 or more than a day: say how long what runs may "
                         "take"));
    } else if (target == node->id) {
        drain_own(call, node, request->drain_ms);
    } else {
        drain_other(call, node, calls, target, request->drain_ms);
    }
}
