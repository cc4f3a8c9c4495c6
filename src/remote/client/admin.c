/* SPDX-License-Identifier: Apache-2.0 */

/* What changes a registry, and what its keeper asks. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "remote/client/remote.h"
#include "wire/wire.h"

/* ---- register ---- */

static ProtobufCBinaryData wire_bytes(peg_str s)
{
    return (ProtobufCBinaryData){.len = s.len, .data = peg__unconst(s.ptr)};
}

static peg_status fill_tool_message(Pegboard__V1__Tool *ret_tool, const peg_toolset_tool *def,
                                    peg_error *reterr)
{
    const peg_status status = wire_check_name(peg_cstr(def->name), "tool", reterr);

    if (status)
        return status;
    if (!def->description || def->input_schema.len == 0)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                         "the tool %s needs a description and an input_schema", def->name);
    pegboard__v1__tool__init(ret_tool);
    ret_tool->name = remote__text(def->name);
    ret_tool->description = remote__text(def->description);
    ret_tool->tags = peg__unconst(def->tags);
    ret_tool->n_tags = def->n_tags;
    ret_tool->input_schema = wire_bytes(def->input_schema);
    ret_tool->output_schema = wire_bytes(def->output_schema);
    ret_tool->idempotent = def->is_idempotent;
    ret_tool->read_only = def->is_read_only;
    ret_tool->destructive = def->is_destructive;
    ret_tool->additive = def->is_additive;
    ret_tool->title = remote__text(def->title);
    ret_tool->version = remote__text(def->version);
    ret_tool->artifact_kind = remote__text(def->artifact_kind);
    ret_tool->examples = wire_bytes(def->examples);
    ret_tool->timeout_ms = def->timeout_ms;
    return PEG_OK;
}

static peg_status fill_tools(Pegboard__V1__RegisterRequest *request, const peg_toolset_def *def,
                             struct peg__arena *arena, peg_error *reterr)
{
    const size_t n = def->n_tools;
    Pegboard__V1__Tool *tools;
    peg_status status = PEG_OK;

    if (n > PEG_LIMIT_REMOTE_TOOLS)
        return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT",
                         "n_tools is more than %d: register several toolsets",
                         PEG_LIMIT_REMOTE_TOOLS);
    tools = peg__arena_alloc(arena, (n + 1) * sizeof(*tools));
    request->tools = peg__arena_alloc(arena, (n + 1) * sizeof(Pegboard__V1__Tool *));
    if (!tools || !request->tools)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n && !status; i++) {
        request->tools[i] = &tools[i];
        status = fill_tool_message(&tools[i], &def->tools[i], reterr);
    }
    request->n_tools = n;
    return status;
}

static peg_status fill_request(Pegboard__V1__RegisterRequest *request, const peg_toolset_def *def,
                               struct peg__arena *arena, peg_error *reterr)
{
    peg_status status = wire_check_name(peg_cstr(def->name), "toolset", reterr);

    if (status)
        return status;
    request->name = remote__text(def->name);
    request->description = remote__text(def->description);
    request->version = remote__text(def->version);
    request->tags = peg__unconst(def->tags);
    request->kind = def->is_direct ? PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT
                                   : PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_ATTACHED;
    status = remote__tags(def->tags, &request->n_tags, reterr);
    return status ? status : fill_tools(request, def, arena, reterr);
}

static peg_status give_stream_id(const Pegboard__V1__RegisterResponse *response,
                                 char **ret_stream_id, peg_error *reterr)
{
    const size_t size = strlen(response->stream_id) + 1;
    char *copy;

    if (!ret_stream_id)
        return PEG_OK;
    copy = peg__alloc(size);
    if (!copy)
        return peg__fail_nomem(reterr);
    memcpy(copy, response->stream_id, size);
    *ret_stream_id = copy;
    return PEG_OK;
}

peg_status peg_client_register(peg_client *client, peg_ctx *ctx, const char *registry,
                               const peg_toolset_def *def, char **ret_stream_id, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_TOOLSET_DEF_INIT, reterr);
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_REGISTER],
        .request = &request.base,
        .is_repeatable = true, /* an equal registration changes nothing */
    };
    struct peg__arena arena = {0};
    peg_status status;

    if (!def || (def->n_tools && !def->tools))
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "def and its tools are required");
    status = remote__registry_only(client, registry, &fan.registry, reterr);
    if (!status)
        status = fill_request(&request, def, &arena, reterr);
    if (!status)
        status = remote__unary(&fan, ctx, &arena, reterr);
    if (!status)
        remote__cache_drop(fan.registry, peg__str(def->name));
    if (!status)
        status = give_stream_id(fan.message, ret_stream_id, reterr);
    peg__arena_free(&arena);
    return status;
}

/* ---- unregister ---- */

static peg_status unregister_toolset(struct remote__fan *fan, peg_client *client, peg_ctx *ctx,
                                     const char *registry, const char *toolset, peg_error *reterr)
{
    struct peg__arena arena = {0};
    peg_status status = remote__registry_only(client, registry, &fan->registry, reterr);

    if (!status)
        status = wire_check_name(peg_cstr(toolset), "toolset", reterr);
    if (!status)
        status = remote__unary(fan, ctx, &arena, reterr);
    if (!status)
        remote__cache_drop(fan->registry, peg__str(toolset));
    peg__arena_free(&arena);
    return status;
}

peg_status peg_client_unregister(peg_client *client, peg_ctx *ctx, const char *registry,
                                 const char *toolset, peg_error *reterr)
{
    Pegboard__V1__UnregisterRequest request = PEGBOARD__V1__UNREGISTER_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_UNREGISTER],
        .request = &request.base,
    };

    request.name = remote__text(toolset);
    return unregister_toolset(&fan, client, ctx, registry, toolset, reterr);
}

peg_status peg_client_admin_unregister(peg_client *client, peg_ctx *ctx, const char *registry,
                                       const char *toolset, peg_error *reterr)
{
    Pegboard__V1__AdminUnregisterRequest request = PEGBOARD__V1__ADMIN_UNREGISTER_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_UNREGISTER],
        .request = &request.base,
    };

    request.toolset = remote__text(toolset);
    return unregister_toolset(&fan, client, ctx, registry, toolset, reterr);
}

/* ---- status ---- */

/* A status and the arena it lies in. */
struct node {
    peg_node_status status; /* first */
    struct peg__arena arena;
};

static peg_status take_toolsets(struct node *node, const struct remote__registry *registry,
                                const Pegboard__V1__StatusResponse *response, peg_error *reterr)
{
    static const Pegboard__V1__ToolsetInfo nameless = PEGBOARD__V1__TOOLSET_INFO__INIT;
    const size_t n = response->n_per_toolset;
    peg_toolset_status *toolsets = peg__arena_alloc(&node->arena, (n + 1) * sizeof(*toolsets));

    if (!toolsets)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        const Pegboard__V1__ToolsetStatus *t = response->per_toolset[i];

        toolsets[i] = (peg_toolset_status){
            .n_in_flight = t->in_flight,
            .n_queued = t->queued,
            .outcomes = remote__outcomes(t->outcomes),
            .calls_per_s = t->calls_per_s,
            .p50_ms = t->p50_ms,
            .p99_ms = t->p99_ms,
        };
        remote__info(registry, t->toolset ? t->toolset : &nameless, &toolsets[i].toolset);
        toolsets[i].toolset.registry = node->status.registry;
    }
    node->status.toolsets = toolsets;
    node->status.n_toolset_statuses = n;
    return PEG_OK;
}

static peg_status take_registry(struct node *node, const Pegboard__V1__StatusResponse *response,
                                peg_error *reterr)
{
    const Pegboard__V1__RegistryTotals *totals = response->registry;
    peg_node *nodes = peg__arena_alloc(&node->arena, (response->n_nodes + 1) * sizeof(*nodes));

    if (!nodes)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < response->n_nodes; i++)
        nodes[i] = remote__node(response->nodes[i]);
    node->status.nodes = nodes;
    node->status.n_nodes = response->n_nodes;
    if (totals)
        node->status.totals = (peg_registry_totals){
            .n_nodes = totals->nodes,
            .n_in_flight = totals->in_flight,
            .n_queued = totals->queued,
            .calls_per_s = totals->calls_per_s,
            .outcomes = remote__outcomes(totals->outcomes),
        };
    return PEG_OK;
}

static void take_status(struct node *node, const Pegboard__V1__StatusResponse *response)
{
    static const Pegboard__V1__NodeInfo none = PEGBOARD__V1__NODE_INFO__INIT;
    const Pegboard__V1__NodeInfo *info = response->node ? response->node : &none;

    node->status = (peg_node_status){
        .registry = node->status.registry,
        .node_id = info->id,
        .registry_name = info->registry,
        .version = info->version,
        .address = info->address,
        .bus = info->bus,
        .store = info->store,
        .started_ms = info->started_unix_ms,
        .is_draining = info->draining,
        .n_threads = info->threads,
        .n_toolsets = response->toolsets,
        .n_healthy = response->healthy,
        .n_providers = response->providers,
        .n_in_flight = response->in_flight,
        .n_queued = response->queued,
        .n_connections = response->connections,
        .n_late_results = response->late_results,
        .memory_bytes = response->memory_bytes,
        .calls_per_s = response->calls_per_s,
        .outcomes = remote__outcomes(response->outcomes),
    };
}

static peg_status ask_status(struct node *node, struct remote__fan *fan, peg_ctx *ctx,
                             peg_error *reterr)
{
    peg_status status;

    node->status.registry = peg__arena_copy(&node->arena, peg__str(fan->registry->name));
    if (!node->status.registry)
        return peg__fail_nomem(reterr);
    status = remote__unary(fan, ctx, &node->arena, reterr);
    if (status)
        return status;
    take_status(node, fan->message);
    status = take_registry(node, fan->message, reterr);
    return status ? status : take_toolsets(node, fan->registry, fan->message, reterr);
}

peg_node_status *peg_node_status_free(peg_node_status *status)
{
    struct node *node = (struct node *)(void *)status;

    if (node)
        peg__arena_free(&node->arena);
    peg__free(node);
    return NULL;
}

peg_status peg_client_status(peg_client *client, peg_ctx *ctx, const char *registry,
                             bool with_toolsets, peg_node_status **ret_status, peg_error *reterr)
{
    Pegboard__V1__StatusRequest request = PEGBOARD__V1__STATUS_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_STATUS],
        .request = &request.base,
        .is_repeatable = true,
    };
    peg_status status = remote__registry_only(client, registry, &fan.registry, reterr);
    struct node *node;

    if (status)
        return status;
    node = peg__alloc_zero(1, sizeof(*node));
    if (!node)
        return peg__fail_nomem(reterr);
    request.with_toolsets = with_toolsets;
    status = ask_status(node, &fan, ctx, reterr);
    if (status)
        peg_node_status_free(&node->status);
    else
        *ret_status = &node->status;
    return status;
}
