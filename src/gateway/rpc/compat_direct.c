/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Register of both registries of goa-ai, whose toolsets are direct ones; and CallTool of the newer
 * one, which answers with the stream on which its caller reads the result.
 *
 * Of goa_ai_registry.Registry v0.47.3 (--goa-generation 2) dropped stream ids and moved dates to
 * their fields: requests are the same, so that an option has to say which clients there are.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/direct/direct.h"
#include "gateway/rpc/compat.h"
#include "gateway/rpc/rpc.h"
#include "goa_ai_registry/registry.grpc.h"
#include "registry/registry.grpc.h"
#include "wire/wire.h"

/* ---- Register ---- */

static char *text_or_empty(char *text)
{
    return text ? text : (char *)peg__unconst("");
}

static Pegboard__V1__Tool **make_tools(struct peg__arena *arena, size_t n)
{
    Pegboard__V1__Tool **list = peg__arena_alloc(arena, (n + 1) * sizeof(*list));
    Pegboard__V1__Tool *tools = peg__arena_alloc(arena, (n + 1) * sizeof(*tools));

    for (size_t i = 0; list && tools && i < n; i++) {
        pegboard__v1__tool__init(&tools[i]);
        list[i] = &tools[i];
    }
    return tools ? list : NULL;
}

/* What both have in common; tools have another type in each. */
static void register_direct(struct grpc_call *call, const Registry__RegisterRequest *theirs,
                            Pegboard__V1__Tool **tools, struct gw_node *node,
                            gw_register_reply_fn *reply)
{
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;

    if (!tools) {
        gw_fail_memory(call);
        return;
    }
    request.name = text_or_empty(theirs->name);
    request.description = text_or_empty(theirs->description);
    request.version = text_or_empty(theirs->version);
    request.n_tags = theirs->n_tags;
    request.tags = theirs->tags;
    request.n_tools = theirs->n_tools;
    request.tools = tools;
    request.kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;
    if (gw_compat_check_length(call, request.name, "name"))
        gw_register(call, &request, node, reply);
}

static void reply_with_stream(struct grpc_call *call, const struct gw_toolset *toolset)
{
    struct peg__arena *arena = grpc_call_arena(call);
    Registry__RegisterResponse response = REGISTRY__REGISTER_RESPONSE__INIT;

    response.stream_id = gw_info_stream_id(toolset->name, arena);
    response.registered_at = gw_info_date(toolset->registered_at_ms, arena);
    if (response.stream_id && response.registered_at)
        grpc_call_reply_message(call, &response.base);
    else
        gw_fail_memory(call);
}

/* The first field is the date. */
static void reply_with_date(struct grpc_call *call, const struct gw_toolset *toolset)
{
    Registry__RegisterResponse response = REGISTRY__REGISTER_RESPONSE__INIT;

    response.stream_id = gw_info_date(toolset->registered_at_ms, grpc_call_arena(call));
    if (response.stream_id)
        grpc_call_reply_message(call, &response.base);
    else
        gw_fail_memory(call);
}

void gw_compat_register_g0(struct grpc_call *call, const void *message, void *node)
{
    const Registry__RegisterRequest *request = message;
    Pegboard__V1__Tool **tools = make_tools(grpc_call_arena(call), request->n_tools);

    for (size_t i = 0; tools && i < request->n_tools; i++) {
        tools[i]->name = text_or_empty(request->tools[i]->name);
        tools[i]->description = text_or_empty(request->tools[i]->description);
        tools[i]->input_schema = request->tools[i]->input_schema;
        tools[i]->output_schema = request->tools[i]->output_schema;
    }
    register_direct(call, request, tools, node, reply_with_stream);
}

/* The sidecar's schema describes what only their providers and agents see: server-data. */
void gw_compat_register_g1(struct grpc_call *call, const void *message, void *node)
{
    const unsigned generation = ((const struct gw_node *)node)->goa_generation;
    const GoaAiRegistry__RegisterRequest *request = message;
    Pegboard__V1__Tool **tools = make_tools(grpc_call_arena(call), request->n_tools);
    Registry__RegisterRequest common = REGISTRY__REGISTER_REQUEST__INIT;

    for (size_t i = 0; tools && i < request->n_tools; i++) {
        const GoaAiRegistry__ToolSchema *tool = request->tools[i];

        tools[i]->name = text_or_empty(tool->name);
        tools[i]->description = text_or_empty(tool->description);
        tools[i]->n_tags = tool->n_tags;
        tools[i]->tags = tool->tags;
        tools[i]->input_schema = tool->payload_schema;
        tools[i]->output_schema = tool->result_schema;
    }
    common.name = request->name;
    common.description = request->description;
    common.version = request->version;
    common.n_tags = request->n_tags;
    common.tags = request->tags;
    common.n_tools = request->n_tools;
    register_direct(call, &common, tools, node,
                    generation == 2 ? reply_with_date : reply_with_stream);
}

/* ---- CallTool of the newer one ---- */

/* The state of an RPC, in its arena. */
struct agent_call {
    struct gw_agent_asker asker; /* the first member */
    struct grpc_call *call;
    struct gw_node *node;
};

static void on_call_started(struct gw_agent_asker *asker, const struct bus_id *id,
                            const struct calls_outcome *refusal)
{
    const struct agent_call *asked = (const struct agent_call *)asker;
    GoaAiRegistry__CallToolResponse response = GOA_AI_REGISTRY__CALL_TOOL_RESPONSE__INIT;
    char text[BUS_ID_TEXT];
    char stream[BUS_ID_TEXT + 8];

    if (refusal) {
        gw_fail_outcome(asked->call, refusal, id);
        return;
    }
    bus_id_print(id, text);
    snprintf(stream, sizeof(stream), "result:%s", text);
    response.tool_use_id = text;
    response.result_stream_id = asked->node->goa_generation == 2 ? NULL : stream;
    grpc_call_reply_message(asked->call, &response.base);
}

static bool check_presence(struct grpc_call *call, bool is_there, const char *field)
{
    peg_error error;

    if (is_there)
        return true;
    (void)peg__fail(&error, PEG_EINVAL, "E_MISSING_FIELD", "\"%s\" is missing from message", field);
    gw_fail_because(call, &error);
    return false;
}

static bool check_request(struct grpc_call *call, const GoaAiRegistry__CallToolRequest *request)
{
    const GoaAiRegistry__ToolCallMeta *meta = request->meta;
    peg_error error;

    if (!gw_compat_check_length(call, request->toolset, "toolset") ||
        !gw_compat_check_length(call, request->tool, "tool"))
        return false;
    if (!request->payload_json.len) {
        (void)peg__fail(&error, PEG_EINVAL, "E_INVALID_LENGTH",
                        "length of payload_json is 0: send JSON");
        gw_fail_because(call, &error);
        return false;
    }
    return check_presence(call, meta != NULL, "meta") &&
           gw_compat_check_length(call, meta->run_id, "meta.run_id") &&
           gw_compat_check_length(call, meta->session_id, "meta.session_id");
}

static void copy_meta(const GoaAiRegistry__ToolCallMeta *theirs, Pegboard__V1__CallMeta *meta)
{
    meta->run_id = text_or_empty(theirs->run_id);
    meta->session_id = text_or_empty(theirs->session_id);
    meta->turn_id = text_or_empty(theirs->turn_id);
    meta->tool_call_id = text_or_empty(theirs->tool_call_id);
    meta->parent_tool_call_id = text_or_empty(theirs->parent_tool_call_id);
}

/* Without streams: known, then that. */
static void reject_without_streams(struct grpc_call *call, const char *toolset, void *node)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));

    if (gw_find_toolset(call, toolset, gw_router_of(calls)->snapshot))
        gw_fail(call, WIRE_SERVICE_UNAVAILABLE,
                peg__str("its result would come on a stream on Redis, which this gateway does not "
                         "have: start it with REDIS_URL, or call pegboard.v1.Registry"));
}

void gw_compat_call_tool_g1(struct grpc_call *call, const void *message, void *node)
{
    const GoaAiRegistry__CallToolRequest *theirs = message;
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    struct gw_direct *direct = gw_router_of(calls)->direct;
    struct agent_call *asked = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*asked));
    Pegboard__V1__CallToolRequest request = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;
    Pegboard__V1__CallMeta meta = PEGBOARD__V1__CALL_META__INIT;
    struct calls_request ask;

    if (!check_request(call, theirs))
        return;
    if (!direct) {
        reject_without_streams(call, theirs->toolset, node);
        return;
    }
    if (!asked) {
        gw_fail_memory(call);
        return;
    }
    copy_meta(theirs->meta, &meta);
    request.meta = &meta;
    asked->asker.fn = on_call_started;
    asked->call = call;
    asked->node = node;
    grpc_call_set_state(call, asked);
    ask = (struct calls_request){
        .toolset = peg__str(theirs->toolset),
        .tool = peg__str(theirs->tool),
        .payload = {(const char *)theirs->payload_json.data, theirs->payload_json.len},
        .principal = gw_call_principal(call)->name,
        .run_id = peg__str(meta.run_id),
        .tool_call_id = peg__str(meta.tool_call_id),
    };
    if (gw_pack_rest(call, &request, calls, &ask.packed))
        gw_fail(call, WIRE_LIMIT,
                peg__str("meta and trace context together are larger than 16 KiB"));
    else
        gw_direct_ask_for_agent(direct, &ask, &asked->asker);
}

void gw_compat_call_tool_g1_on_end(struct grpc_call *call, void *node)
{
    struct agent_call *asked = grpc_call_state(call);

    (void)node;
    if (asked)
        gw_direct_forget_agent(&asked->asker);
}
