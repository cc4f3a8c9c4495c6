/* SPDX-License-Identifier: Apache-2.0 */

/* goa_ai_registry.Registry: goa-ai v0.32 to v0.47.2. */

#include "base/text/str.h"
#include "gateway/rpc/compat.h"
#include "goa_ai_registry/registry.grpc.h"

/* ---- discovery ---------------------------------------------------------------------------------
 */

static GoaAiRegistry__ToolsetInfo *make_info(const struct gw_toolset *toolset,
                                             struct peg__arena *arena)
{
    GoaAiRegistry__ToolsetInfo *info = peg__arena_alloc(arena, sizeof(*info));

    if (!info)
        return NULL;
    goa_ai_registry__toolset_info__init(info);
    info->name = gw_text(toolset->name);
    info->description = gw_compat_text(toolset->description);
    info->version = gw_compat_text(toolset->version);
    info->n_tags = toolset->n_tags;
    info->tags = gw_info_tags(toolset->tags, toolset->n_tags, arena);
    info->has_tool_count = 1;
    info->tool_count = (int32_t)toolset->n_tools;
    info->registered_at = gw_info_date(toolset->registered_at_ms, arena);
    return info->tags && info->registered_at ? info : NULL;
}

static GoaAiRegistry__ToolsetInfo **make_infos(const struct gw_reported *listed,
                                               struct peg__arena *arena)
{
    GoaAiRegistry__ToolsetInfo **infos = peg__arena_alloc(arena, (listed->n + 1) * sizeof(*infos));

    for (size_t i = 0; infos && i < listed->n; i++) {
        infos[i] = make_info(listed->toolsets[i], arena);
        if (!infos[i])
            return NULL;
    }
    return infos;
}

static void list_toolsets(struct grpc_call *call, const void *message, void *node)
{
    const GoaAiRegistry__ListToolsetsRequest *request = message;
    GoaAiRegistry__ListToolsetsResponse response = GOA_AI_REGISTRY__LIST_TOOLSETS_RESPONSE__INIT;
    struct gw_reported listed;

    if (!gw_compat_list(call, node, request->tags, request->n_tags, &listed))
        return;
    response.n_toolsets = listed.n;
    response.toolsets = make_infos(&listed, grpc_call_arena(call));
    gw_compat_reply(call, response.toolsets ? &response.base : NULL);
}

static void search(struct grpc_call *call, const void *message, void *node)
{
    const GoaAiRegistry__SearchRequest *request = message;
    GoaAiRegistry__SearchResponse response = GOA_AI_REGISTRY__SEARCH_RESPONSE__INIT;
    struct gw_reported listed;

    if (!gw_compat_search(call, node, request->query, &listed))
        return;
    response.n_toolsets = listed.n;
    response.toolsets = make_infos(&listed, grpc_call_arena(call));
    gw_compat_reply(call, response.toolsets ? &response.base : NULL);
}

/* Clients insist on both schemas: a result that nobody checks may be anything. */
static ProtobufCBinaryData schema_or_any(peg_str schema)
{
    const peg_str text = schema.len ? schema : peg__str("{}");

    return (ProtobufCBinaryData){.len = text.len, .data = (uint8_t *)gw_text(text)};
}

static GoaAiRegistry__ToolSchema **make_tools(const struct gw_toolset *toolset,
                                              struct peg__arena *arena)
{
    GoaAiRegistry__ToolSchema **list = peg__arena_alloc(arena, toolset->n_tools * sizeof(*list));
    GoaAiRegistry__ToolSchema *tools = peg__arena_alloc(arena, toolset->n_tools * sizeof(*tools));

    for (size_t i = 0; list && tools && i < toolset->n_tools; i++) {
        const struct gw_tool *tool = &toolset->tools[i];

        goa_ai_registry__tool_schema__init(&tools[i]);
        tools[i].name = gw_text(tool->name);
        tools[i].description = gw_compat_text(tool->description);
        tools[i].n_tags = tool->n_tags;
        tools[i].tags = gw_info_tags(tool->tags, tool->n_tags, arena);
        tools[i].has_payload_schema = tools[i].has_result_schema = 1;
        tools[i].payload_schema = schema_or_any(tool->input_schema);
        tools[i].result_schema = schema_or_any(tool->output_schema);
        list[i] = &tools[i];
        if (!tools[i].tags)
            return NULL;
    }
    return tools ? list : NULL;
}

static void get_toolset(struct grpc_call *call, const void *message, void *node)
{
    const GoaAiRegistry__GetToolsetRequest *request = message;
    struct peg__arena *arena = grpc_call_arena(call);
    const struct gw_toolset *toolset = gw_compat_get(call, node, request->name);
    GoaAiRegistry__GetToolsetResponse response = GOA_AI_REGISTRY__GET_TOOLSET_RESPONSE__INIT;

    if (!toolset)
        return;
    response.name = gw_text(toolset->name);
    response.description = gw_compat_text(toolset->description);
    response.version = gw_compat_text(toolset->version);
    response.n_tags = toolset->n_tags;
    response.tags = gw_info_tags(toolset->tags, toolset->n_tags, arena);
    response.n_tools = toolset->n_tools;
    response.tools = make_tools(toolset, arena);
    response.stream_id = gw_info_stream_id(toolset->name, arena);
    response.registered_at = gw_info_date(toolset->registered_at_ms, arena);
    gw_compat_reply(call,
                    response.tags && response.tools && response.stream_id && response.registered_at
                        ? &response.base
                        : NULL);
}

/* ---- providers and callers ---------------------------------------------------------------------
 */

/* Register, CallTool: both are about streams on Redis. */
static void refuse(struct grpc_call *call, const void *message, void *node)
{
    (void)message;
    (void)node;
    gw_compat_refuse(call);
}

static void unregister(struct grpc_call *call, const void *message, void *node)
{
    gw_compat_unregister(call, ((const GoaAiRegistry__UnregisterRequest *)message)->name, node);
}

static void pong(struct grpc_call *call, const void *message, void *node)
{
    const GoaAiRegistry__PongRequest *request = message;

    gw_compat_pong(call, request->ping_id, request->toolset, node);
}

peg_status gw_service_g1_add(struct grpc_server *server, struct gw_node *node, peg_error *reterr)
{
    static const struct grpc_handler handlers[] = {
        [GOA_AI_REGISTRY_REGISTRY_REGISTER] = {.on_message = refuse},
        [GOA_AI_REGISTRY_REGISTRY_UNREGISTER] = {.on_message = unregister,
                                                 .on_end = gw_serve_change_on_end},
        [GOA_AI_REGISTRY_REGISTRY_PONG] = {.on_message = pong},
        [GOA_AI_REGISTRY_REGISTRY_LIST_TOOLSETS] = {.on_message = list_toolsets},
        [GOA_AI_REGISTRY_REGISTRY_GET_TOOLSET] = {.on_message = get_toolset},
        [GOA_AI_REGISTRY_REGISTRY_SEARCH] = {.on_message = search},
        [GOA_AI_REGISTRY_REGISTRY_CALL_TOOL] = {.on_message = refuse},
    };

    return grpc_server_add(server, &goa_ai_registry_registry_service, handlers, node, reterr);
}
