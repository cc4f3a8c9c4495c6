/* SPDX-License-Identifier: Apache-2.0 */

/* The nodes of a registry, for operators. */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

/* A list and the arena it lies in. */
struct nodes {
    peg_node_list list; /* first */
    struct peg__arena arena;
};

peg_remote_outcomes remote__outcomes(const Pegboard__V1__Outcomes *outcomes)
{
    static const Pegboard__V1__Outcomes none = PEGBOARD__V1__OUTCOMES__INIT;

    if (!outcomes)
        outcomes = &none;
    return (peg_remote_outcomes){
        .n_result = outcomes->result,
        .n_error = outcomes->error,
        .n_timeout = outcomes->timeout,
        .n_canceled = outcomes->canceled,
        .n_unknown = outcomes->outcome_unknown,
        .n_refused = outcomes->refused,
    };
}

peg_node remote__node(const Pegboard__V1__NodeInfo *info)
{
    return (peg_node){
        .id = info->id,
        .address = info->address,
        .version = info->version,
        .state = info->state,
        .store = info->store,
        .protocol = info->protocol,
        .n_threads = info->threads,
        .answers = info->answers,
        .pings = info->pings,
        .started_ms = info->started_unix_ms,
        .lease_ms = info->lease_ms,
        .lease_left_ms = info->lease_left_ms,
        .n_providers = info->providers,
        .n_in_flight = info->in_flight,
        .n_queued = info->queued,
        .n_settled = info->settled,
        .n_unknown = info->outcome_unknown,
        .round_trip_us = info->round_trip_us,
        .calls_per_s = info->calls_per_s,
        .outcomes = remote__outcomes(info->outcomes),
    };
}

static peg_status take_nodes(struct nodes *nodes, const Pegboard__V1__NodesResponse *response,
                             peg_error *reterr)
{
    peg_node *list = peg__arena_alloc(&nodes->arena, (response->n_nodes + 1) * sizeof(*list));

    if (!list)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < response->n_nodes; i++)
        list[i] = remote__node(response->nodes[i]);
    nodes->list.registry_name = response->n_nodes ? response->nodes[0]->registry : "";
    nodes->list.bus = response->n_nodes ? response->nodes[0]->bus : "";
    nodes->list.nodes = list;
    nodes->list.n_nodes = response->n_nodes;
    return PEG_OK;
}

static peg_status ask_nodes(struct nodes *nodes, struct remote__fan *fan, peg_ctx *ctx,
                            peg_error *reterr)
{
    peg_status status;

    nodes->list.registry = peg__arena_copy(&nodes->arena, peg__str(fan->registry->name));
    if (!nodes->list.registry)
        return peg__fail_nomem(reterr);
    status = remote__unary(fan, ctx, &nodes->arena, reterr);
    return status ? status : take_nodes(nodes, fan->message, reterr);
}

peg_node_list *peg_node_list_free(peg_node_list *list)
{
    struct nodes *nodes = (struct nodes *)(void *)list;

    if (nodes)
        peg__arena_free(&nodes->arena);
    peg__free(nodes);
    return NULL;
}

peg_status peg_client_nodes(peg_client *client, peg_ctx *ctx, const char *registry,
                            peg_node_list **ret_list, peg_error *reterr)
{
    Pegboard__V1__NodesRequest request = PEGBOARD__V1__NODES_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_NODES],
        .request = &request.base,
        .is_repeatable = true,
    };
    peg_status status = remote__registry_only(client, registry, &fan.registry, reterr);
    struct nodes *nodes;

    if (status)
        return status;
    nodes = peg__alloc_zero(1, sizeof(*nodes));
    if (!nodes)
        return peg__fail_nomem(reterr);
    status = ask_nodes(nodes, &fan, ctx, reterr);
    if (status)
        peg_node_list_free(&nodes->list);
    else
        *ret_list = &nodes->list;
    return status;
}

peg_status peg_client_drain_node(peg_client *client, peg_ctx *ctx, const char *registry,
                                 const char *node_id, int64_t drain_ms, peg_error *reterr)
{
    Pegboard__V1__DrainNodeRequest request = PEGBOARD__V1__DRAIN_NODE_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_DRAIN_NODE],
        .request = &request.base,
    };
    struct peg__arena arena = {0};
    peg_status status = remote__registry_only(client, registry, &fan.registry, reterr);

    if (!status && (!node_id || !node_id[0]))
        status = peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "the id of a node is required");
    request.node_id = remote__text(node_id);
    request.drain_ms = drain_ms;
    if (!status)
        status = remote__unary(&fan, ctx, &arena, reterr);
    peg__arena_free(&arena);
    return status;
}
