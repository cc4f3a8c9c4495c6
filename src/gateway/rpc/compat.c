/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The registries of goa-ai: registry.Registry (v0.22 to v0.31) and goa_ai_registry.Registry (v0.32
 * to v0.47.2). Where both have the same message, one handler serves both and answers with the type
 * of the older one; they differ in the tools of GetToolset, and in CallTool, which waits for the
 * result in the older one. compat_direct.c has Register and the newer CallTool.
 */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/direct/direct.h"
#include "gateway/rpc/compat.h"
#include "gateway/rpc/rpc.h"
#include "gateway/search/search.h"
#include "goa_ai_registry/registry.grpc.h"
#include "google/protobuf/any.fields.h"
#include "google/protobuf/struct.fields.h"
#include "grpc/message.h"
#include "pegboard/v1/registry.fields.h"
#include "registry/registry.fields.h"
#include "registry/registry.grpc.h"
#include "wire/pack.h"
#include "wire/wire.h"

/* Requests of the newer registry are read as those of the older one. */
#define ASSERT_SAME(message, member)                                                               \
    _Static_assert(sizeof(Registry__##message) == sizeof(GoaAiRegistry__##message) &&              \
                       offsetof(Registry__##message, member) ==                                    \
                           offsetof(GoaAiRegistry__##message, member),                             \
                   "both registries have the same " #message)
ASSERT_SAME(ListToolsetsRequest, tags);
ASSERT_SAME(SearchRequest, query);
ASSERT_SAME(GetToolsetRequest, name);
ASSERT_SAME(UnregisterRequest, name);
ASSERT_SAME(PongRequest, toolset);

static const struct gw_snapshot *snapshot_of(const struct grpc_call *call, void *node)
{
    return gw_router_of(gw_node_calls(node, grpc_call_loop(call)))->snapshot;
}

/* An optional field of an answer: NULL if it is empty. */
static char *optional_text(peg_str text)
{
    return text.len ? gw_text(text) : NULL;
}

bool gw_compat_check_length(struct grpc_call *call, const char *text, const char *field)
{
    const size_t len = strlen(peg__or_empty(text));
    peg_error error;

    if (len >= 1 && len <= PEG_LIMIT_NAME_BYTES)
        return true;
    (void)peg__fail(&error, PEG_EINVAL, "E_INVALID_LENGTH",
                    "length of %s is %zu: use 1 to %d bytes", field, len, PEG_LIMIT_NAME_BYTES);
    gw_fail_because(call, &error);
    return false;
}

/* Sends the answer, unless it is larger than clients take. NULL: there is no memory for it. */
static void reply_message(struct grpc_call *call, const ProtobufCMessage *response)
{
    if (!response)
        gw_fail_memory(call);
    else if (grpc_message_packed_size(response) > PEG_LIMIT_GRPC_MESSAGE_BYTES)
        gw_fail(call, WIRE_LIMIT,
                peg__str("the answer is larger than 4 MiB: ask for fewer, by tags or by other "
                         "words, or page through pegboard.v1.Registry/ListToolsets"));
    else
        grpc_call_reply_message(call, response);
}

/* ---- discovery ---- */

static Registry__ToolsetInfo *make_info(const struct gw_toolset *toolset, struct peg__arena *arena)
{
    Registry__ToolsetInfo *info = peg__arena_alloc(arena, sizeof(*info));

    if (!info)
        return NULL;
    registry__toolset_info__init(info);
    info->name = gw_text(toolset->name);
    info->description = optional_text(toolset->description);
    info->version = optional_text(toolset->version);
    info->n_tags = toolset->n_tags;
    info->tags = gw_info_tags(toolset->tags, toolset->n_tags, arena);
    info->has_tool_count = 1;
    info->tool_count = (int32_t)toolset->n_tools;
    info->registered_at = gw_info_date(toolset->registered_at_ms, arena);
    return info->tags && info->registered_at ? info : NULL;
}

static void list_toolsets(struct grpc_call *call, const void *message, void *node)
{
    const Registry__ListToolsetsRequest *request = message;
    const struct gw_snapshot *snapshot = snapshot_of(call, node);
    struct peg__arena *arena = grpc_call_arena(call);
    Registry__ListToolsetsResponse response = REGISTRY__LIST_TOOLSETS_RESPONSE__INIT;
    bool is_whole;
    peg_error error;

    if (gw_check_tags(request->n_tags, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    response.toolsets = peg__arena_alloc(arena, (snapshot->n + 1) * sizeof(*response.toolsets));
    is_whole = response.toolsets != NULL;
    for (size_t i = 0; is_whole && i < snapshot->n; i++) {
        if (!gw_toolset_has_tags(snapshot->toolsets[i], request->tags, request->n_tags))
            continue;
        response.toolsets[response.n_toolsets] = make_info(snapshot->toolsets[i], arena);
        is_whole = response.toolsets[response.n_toolsets++] != NULL;
    }
    reply_message(call, is_whole ? &response.base : NULL);
}

/* The answer has no pages: it is whole, or too large. */
static void search_toolsets(struct grpc_call *call, const void *message, void *node)
{
    const char *text = peg__or_empty(((const Registry__SearchRequest *)message)->query);
    const struct gw_snapshot *snapshot = snapshot_of(call, node);
    const struct gw_search_query query = {.text = peg__str(text), .limit = snapshot->n};
    struct peg__arena *arena = grpc_call_arena(call);
    Registry__SearchResponse response = REGISTRY__SEARCH_RESPONSE__INIT;
    struct gw_search_result result;
    bool is_whole;
    peg_error error;

    if (gw_check_query(text, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    is_whole =
        !gw_search(snapshot, &query, arena, &result, &error) &&
        (response.toolsets = peg__arena_alloc(arena, (result.n + 1) * sizeof(*response.toolsets)));
    for (size_t i = 0; is_whole && i < result.n; i++) {
        response.toolsets[i] = make_info(result.hits[i].toolset, arena);
        response.n_toolsets = i + 1;
        is_whole = response.toolsets[i] != NULL;
    }
    reply_message(call, is_whole ? &response.base : NULL);
}

static ProtobufCBinaryData bytes_of_text(peg_str text)
{
    return (ProtobufCBinaryData){.len = text.len, .data = (uint8_t *)gw_text(text)};
}

/* Of either registry: a message is packed by its own descriptor. NULL: no memory. */
typedef Registry__Tool **make_tools_fn(const struct gw_toolset *toolset, struct peg__arena *arena);

static Registry__Tool **make_tools_g0(const struct gw_toolset *toolset, struct peg__arena *arena)
{
    Registry__Tool **list = peg__arena_alloc(arena, toolset->n_tools * sizeof(*list));
    Registry__Tool *tools = peg__arena_alloc(arena, toolset->n_tools * sizeof(*tools));

    for (size_t i = 0; list && tools && i < toolset->n_tools; i++) {
        const struct gw_tool *tool = &toolset->tools[i];

        registry__tool__init(&tools[i]);
        tools[i].name = gw_text(tool->name);
        tools[i].description = optional_text(tool->description);
        tools[i].has_input_schema = 1;
        tools[i].input_schema = bytes_of_text(tool->input_schema);
        tools[i].has_output_schema = tool->output_schema.len > 0;
        tools[i].output_schema = bytes_of_text(tool->output_schema);
        list[i] = &tools[i];
    }
    return tools ? list : NULL;
}

/* Clients insist on both schemas: a result that is not checked may be anything. */
static Registry__Tool **make_tools_g1(const struct gw_toolset *toolset, struct peg__arena *arena)
{
    void **list = peg__arena_alloc(arena, toolset->n_tools * sizeof(*list));
    GoaAiRegistry__ToolSchema *tools = peg__arena_alloc(arena, toolset->n_tools * sizeof(*tools));

    for (size_t i = 0; list && tools && i < toolset->n_tools; i++) {
        const struct gw_tool *tool = &toolset->tools[i];

        goa_ai_registry__tool_schema__init(&tools[i]);
        tools[i].name = gw_text(tool->name);
        tools[i].description = optional_text(tool->description);
        tools[i].n_tags = tool->n_tags;
        tools[i].tags = gw_info_tags(tool->tags, tool->n_tags, arena);
        tools[i].has_payload_schema = tools[i].has_result_schema = 1;
        tools[i].payload_schema = bytes_of_text(tool->input_schema);
        tools[i].result_schema =
            bytes_of_text(tool->output_schema.len ? tool->output_schema : peg__str("{}"));
        list[i] = &tools[i];
        if (!tools[i].tags)
            return NULL;
    }
    return tools ? (Registry__Tool **)list : NULL;
}

/* v0.47.3 has the date where there was the stream. */
static void get_toolset(struct grpc_call *call, const char *name, void *node, make_tools_fn *make,
                        bool has_date_in_place_of_stream)
{
    bool is_whole;
    struct peg__arena *arena = grpc_call_arena(call);
    Registry__GetToolsetResponse response = REGISTRY__GET_TOOLSET_RESPONSE__INIT;
    const struct gw_toolset *toolset = gw_compat_check_length(call, name, "name")
                                           ? gw_find_toolset(call, name, snapshot_of(call, node))
                                           : NULL;

    if (!toolset)
        return;
    response.name = gw_text(toolset->name);
    response.description = optional_text(toolset->description);
    response.version = optional_text(toolset->version);
    response.n_tags = toolset->n_tags;
    response.tags = gw_info_tags(toolset->tags, toolset->n_tags, arena);
    response.n_tools = toolset->n_tools;
    response.tools = make(toolset, arena);
    response.stream_id = gw_info_stream_id(toolset->name, arena);
    response.registered_at = gw_info_date(toolset->registered_at_ms, arena);
    is_whole = response.tags && response.tools && response.stream_id && response.registered_at;
    if (has_date_in_place_of_stream) {
        response.stream_id = response.registered_at;
        response.registered_at = NULL;
    }
    reply_message(call, is_whole ? &response.base : NULL);
}

static void get_toolset_g0(struct grpc_call *call, const void *message, void *node)
{
    get_toolset(call, ((const Registry__GetToolsetRequest *)message)->name, node, make_tools_g0,
                false);
}

static void get_toolset_g1(struct grpc_call *call, const void *message, void *node)
{
    get_toolset(call, ((const Registry__GetToolsetRequest *)message)->name, node, make_tools_g1,
                ((const struct gw_node *)node)->goa_generation == 2);
}

/* ---- providers ---- */

static void unregister_by_name(struct grpc_call *call, const void *message, void *node)
{
    Pegboard__V1__UnregisterRequest request = PEGBOARD__V1__UNREGISTER_REQUEST__INIT;

    request.name = ((const Registry__UnregisterRequest *)message)->name;
    if (gw_compat_check_length(call, request.name, "name"))
        gw_serve_unregister(call, &request, node);
}

static void answer_pong(struct grpc_call *call, const void *message, void *node)
{
    const Registry__PongRequest *theirs = message;
    Pegboard__V1__PongRequest request = PEGBOARD__V1__PONG_REQUEST__INIT;

    if (theirs->ping_id)
        request.ping_id = theirs->ping_id;
    if (theirs->toolset)
        request.toolset = theirs->toolset;
    gw_serve_pong(call, &request, node);
}

/* The same as ours; its answer is empty in both. */
static void emit_result(struct grpc_call *call, const void *message, void *node)
{
    const Registry__EmitToolResultRequest *theirs = message;
    Pegboard__V1__EmitToolResultRequest request = PEGBOARD__V1__EMIT_TOOL_RESULT_REQUEST__INIT;
    Pegboard__V1__ToolError failure = PEGBOARD__V1__TOOL_ERROR__INIT;
    peg_str json;
    peg_error error;

    if (!gw_compat_check_length(call, theirs->tool_use_id, "tool_use_id"))
        return;
    if (wire_any_read(theirs->result, grpc_call_arena(call), &json, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    request.call_id = theirs->tool_use_id;
    if (theirs->error) {
        if (theirs->error->code)
            failure.code = theirs->error->code;
        if (theirs->error->message_)
            failure.message = theirs->error->message_;
        request.error = &failure;
    } else {
        request.result = bytes_of_text(json);
    }
    gw_serve_emit(call, &request, node);
}

/* ---- calls ---- */

/* The state of an RPC, in its arena. */
struct compat_call {
    struct calls_caller caller; /* the first member */
    struct grpc_call *call;
    struct calls_loop *calls;
    int64_t deadline_ns; /* of bus_now_ns(); 0: not admitted */
};

static void on_call_admitted(struct calls_caller *caller, const struct bus_id *id,
                             int64_t deadline_ms, bool is_follower)
{
    struct compat_call *asked = (struct compat_call *)caller;
    struct bus *bus = asked->calls->bus;

    (void)id;
    (void)is_follower;
    asked->deadline_ns = bus_now_ns(bus) + (deadline_ms - bus_now_ms(bus)) * PEG_NS_PER_MS;
}

/* At its deadline the reference answers timeout, whether the tool runs or not. */
static bool is_past_deadline(const struct compat_call *asked, const struct calls_outcome *outcome)
{
    const int64_t rounding_ns = 2 * PEG_NS_PER_MS;

    return outcome->kind == CALLS_KIND_UNKNOWN && asked->deadline_ns &&
           bus_now_ns(asked->calls->bus) >= asked->deadline_ns - rounding_ns;
}

static size_t field_size(size_t len)
{
    return 1 + wire_varint_size(len) + len;
}

/* result{type_url, value{string_value}} up to the JSON, which is all that follows. */
static char *put_result_start(char *at, size_t json_len)
{
    const peg_str type = peg__str(WIRE_ANY_VALUE_TYPE);
    const size_t value_len = field_size(json_len);

    at = wire_put_head(at, REGISTRY_CALL_TOOL_RESPONSE_RESULT_FIELD,
                       wire_bytes_size(type) + field_size(value_len));
    at = wire_put_bytes(at, GOOGLE_PROTOBUF_ANY_TYPE_URL_FIELD, type);
    at = wire_put_head(at, GOOGLE_PROTOBUF_ANY_VALUE_FIELD, value_len);
    return wire_put_head(at, GOOGLE_PROTOBUF_VALUE_STRING_VALUE_FIELD, json_len);
}

/* error up to its contents, which are packed alike in theirs and ours; but theirs has a message
 * even if it is empty. */
static char *put_error_start(char *at, peg_str error)
{
    const bool has_message = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD).len > 0;

    at = wire_put_head(at, REGISTRY_CALL_TOOL_RESPONSE_ERROR_FIELD,
                       error.len + (has_message ? 0 : 2));
    return has_message ? at : wire_put_head(at, REGISTRY_TOOL_ERROR_MESSAGE__FIELD, 0);
}

enum { HEAD_BYTES = BUS_ID_TEXT + sizeof(WIRE_ANY_VALUE_TYPE) + (size_t)8 * (1 + WIRE_MAX_VARINT) };

/* Their answer is a head before the result, or the error, of ours. */
static void reply_plain(struct compat_call *asked, const struct calls_outcome *outcome)
{
    const peg_str error =
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);
    const peg_str json =
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD);
    peg_str rest = {"", 0};
    char id[BUS_ID_TEXT];
    char head[HEAD_BYTES];
    char *at;

    bus_id_print(&asked->caller.id, id);
    at = wire_put_bytes(head, REGISTRY_CALL_TOOL_RESPONSE_TOOL_USE_ID_FIELD, peg__str(id));
    if (error.ptr) {
        at = put_error_start(at, error);
        rest = error;
    } else if (json.len && !peg__str_is(json, "null")) {
        at = put_result_start(at, json.len);
        rest = json;
    }
    gw_reply_outcome(asked->call, &asked->caller.id, peg__strn(head, (size_t)(at - head)),
                     outcome->blob, rest);
}

static void reply_outcome(struct compat_call *asked, const struct calls_outcome *outcome)
{
    struct peg__buf plain = PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES);
    struct calls_outcome shown = *outcome;

    if (gw_flatten_outcome(&shown, &plain))
        reply_plain(asked, &shown);
    else
        gw_fail_unsent(asked->call, &asked->caller.id);
    peg__buf_free(&plain);
}

static void on_call_ended(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct compat_call *asked = (struct compat_call *)caller;
    struct calls_outcome reported = *outcome;

    if (is_past_deadline(asked, outcome))
        reported.error = CALLS_TIMEOUT;
    if (reported.error != CALLS_OK)
        gw_fail_outcome(asked->call, &reported, &caller->id);
    else
        reply_outcome(asked, outcome);
}

static const struct calls_caller_events call_events = {.on_admitted = on_call_admitted,
                                                       .on_end = on_call_ended};

static void call_tool(struct grpc_call *call, const void *message, void *node)
{
    const Pegboard__V1__CallToolRequest nothing = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;
    const Registry__CallToolRequest *request = message;
    struct peg__arena *arena = grpc_call_arena(call);
    struct compat_call *asked = peg__arena_alloc_zero(arena, sizeof(*asked));
    peg_str payload = {"", 0}; /* one that is missing is {}, as in our own registry */
    struct calls_request ask;
    peg_error error;

    if (!gw_compat_check_length(call, request->toolset, "toolset") ||
        !gw_compat_check_length(call, request->tool, "tool"))
        return;
    if (!asked) {
        gw_fail_memory(call);
        return;
    }
    if (request->payload && wire_any_read(request->payload, arena, &payload, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    asked->caller.events = &call_events;
    asked->call = call;
    asked->calls = gw_node_calls(node, grpc_call_loop(call));
    grpc_call_set_state(call, asked);
    ask = (struct calls_request){.toolset = peg__str(request->toolset),
                                 .tool = peg__str(request->tool),
                                 .payload = payload,
                                 .principal = gw_call_principal(call)->name,
                                 .deadline_ns = grpc_call_deadline_ns(call)};
    /* Theirs has no fields for trace context. Without memory, and one that is too long, it is left
     * out: their callers do not know that it is sent. */
    (void)gw_pack_rest(call, &nothing, asked->calls, &ask.packed);
    gw_call_start(asked->calls, &ask, &asked->caller);
}

static void on_call_end(struct grpc_call *call, void *node)
{
    struct compat_call *asked = grpc_call_state(call);

    (void)node;
    if (asked)
        gw_caller_leave(&asked->caller, CALLS_LEAVES);
}

/* ---- the tables ---- */

peg_status gw_service_compat_add(struct grpc_server *server, struct gw_node *node,
                                 peg_error *reterr)
{
    static const struct grpc_handler g0[] = {
        [REGISTRY_REGISTRY_REGISTER] = {.on_message = gw_compat_register_g0,
                                        .on_end = gw_serve_change_on_end},
        [REGISTRY_REGISTRY_UNREGISTER] = {.on_message = unregister_by_name,
                                          .on_end = gw_serve_change_on_end},
        [REGISTRY_REGISTRY_EMIT_TOOL_RESULT] = {.on_message = emit_result,
                                                .on_end = gw_serve_emit_on_end},
        [REGISTRY_REGISTRY_PONG] = {.on_message = answer_pong},
        [REGISTRY_REGISTRY_LIST_TOOLSETS] = {.on_message = list_toolsets},
        [REGISTRY_REGISTRY_GET_TOOLSET] = {.on_message = get_toolset_g0},
        [REGISTRY_REGISTRY_SEARCH] = {.on_message = search_toolsets},
        [REGISTRY_REGISTRY_CALL_TOOL] = {.on_message = call_tool, .on_end = on_call_end},
    };
    static const struct grpc_handler g1[] = {
        [GOA_AI_REGISTRY_REGISTRY_REGISTER] = {.on_message = gw_compat_register_g1,
                                               .on_end = gw_serve_change_on_end},
        [GOA_AI_REGISTRY_REGISTRY_UNREGISTER] = {.on_message = unregister_by_name,
                                                 .on_end = gw_serve_change_on_end},
        [GOA_AI_REGISTRY_REGISTRY_PONG] = {.on_message = answer_pong},
        [GOA_AI_REGISTRY_REGISTRY_LIST_TOOLSETS] = {.on_message = list_toolsets},
        [GOA_AI_REGISTRY_REGISTRY_GET_TOOLSET] = {.on_message = get_toolset_g1},
        [GOA_AI_REGISTRY_REGISTRY_SEARCH] = {.on_message = search_toolsets},
        [GOA_AI_REGISTRY_REGISTRY_CALL_TOOL] = {.on_message = gw_compat_call_tool_g1,
                                                .on_end = gw_compat_call_tool_g1_on_end},
    };
    peg_status status = grpc_server_add(server, &registry_registry_service, g0, node, reterr);

    return status ? status
                  : grpc_server_add(server, &goa_ai_registry_registry_service, g1, node, reterr);
}
