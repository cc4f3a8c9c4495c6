/* SPDX-License-Identifier: Apache-2.0 */

/* registry.Registry: goa-ai v0.22 to v0.31. */

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/principal.h"
#include "gateway/rpc/answer.h"
#include "gateway/rpc/compat.h"
#include "registry/registry.grpc.h"
#include "wire/any.h"
#include "wire/pack.h"

/* ---- discovery ---------------------------------------------------------------------------------
 */

static Registry__ToolsetInfo *make_info(const struct gw_toolset *toolset, struct peg__arena *arena)
{
    Registry__ToolsetInfo *info = peg__arena_alloc(arena, sizeof(*info));

    if (!info)
        return NULL;
    registry__toolset_info__init(info);
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

static Registry__ToolsetInfo **make_infos(const struct gw_reported *listed,
                                          struct peg__arena *arena)
{
    Registry__ToolsetInfo **infos = peg__arena_alloc(arena, (listed->n + 1) * sizeof(*infos));

    for (size_t i = 0; infos && i < listed->n; i++) {
        infos[i] = make_info(listed->toolsets[i], arena);
        if (!infos[i])
            return NULL;
    }
    return infos;
}

static void list_toolsets(struct grpc_call *call, const void *message, void *node)
{
    const Registry__ListToolsetsRequest *request = message;
    Registry__ListToolsetsResponse response = REGISTRY__LIST_TOOLSETS_RESPONSE__INIT;
    struct gw_reported listed;

    if (!gw_compat_list(call, node, request->tags, request->n_tags, &listed))
        return;
    response.n_toolsets = listed.n;
    response.toolsets = make_infos(&listed, grpc_call_arena(call));
    gw_compat_reply(call, response.toolsets ? &response.base : NULL);
}

static void search(struct grpc_call *call, const void *message, void *node)
{
    const Registry__SearchRequest *request = message;
    Registry__SearchResponse response = REGISTRY__SEARCH_RESPONSE__INIT;
    struct gw_reported listed;

    if (!gw_compat_search(call, node, request->query, &listed))
        return;
    response.n_toolsets = listed.n;
    response.toolsets = make_infos(&listed, grpc_call_arena(call));
    gw_compat_reply(call, response.toolsets ? &response.base : NULL);
}

static Registry__Tool **make_tools(const struct gw_toolset *toolset, struct peg__arena *arena)
{
    Registry__Tool **list = peg__arena_alloc(arena, toolset->n_tools * sizeof(*list));
    Registry__Tool *tools = peg__arena_alloc(arena, toolset->n_tools * sizeof(*tools));

    for (size_t i = 0; list && tools && i < toolset->n_tools; i++) {
        const struct gw_tool *tool = &toolset->tools[i];

        registry__tool__init(&tools[i]);
        tools[i].name = gw_text(tool->name);
        tools[i].description = gw_compat_text(tool->description);
        tools[i].has_input_schema = 1;
        tools[i].input_schema.data = (uint8_t *)gw_text(tool->input_schema);
        tools[i].input_schema.len = tool->input_schema.len;
        tools[i].has_output_schema = tool->output_schema.len > 0;
        tools[i].output_schema.data = (uint8_t *)gw_text(tool->output_schema);
        tools[i].output_schema.len = tool->output_schema.len;
        list[i] = &tools[i];
    }
    return tools ? list : NULL;
}

static void get_toolset(struct grpc_call *call, const void *message, void *node)
{
    const Registry__GetToolsetRequest *request = message;
    struct peg__arena *arena = grpc_call_arena(call);
    const struct gw_toolset *toolset = gw_compat_get(call, node, request->name);
    Registry__GetToolsetResponse response = REGISTRY__GET_TOOLSET_RESPONSE__INIT;

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

/* ---- providers ---------------------------------------------------------------------------------
 */

static void register_toolset(struct grpc_call *call, const void *message, void *node)
{
    (void)message;
    (void)node;
    gw_compat_refuse(call);
}

static void unregister(struct grpc_call *call, const void *message, void *node)
{
    gw_compat_unregister(call, ((const Registry__UnregisterRequest *)message)->name, node);
}

static void pong(struct grpc_call *call, const void *message, void *node)
{
    const Registry__PongRequest *request = message;

    gw_compat_pong(call, request->ping_id, request->toolset, node);
}

static Pegboard__V1__ToolError *make_error(const Registry__ToolError *error,
                                           struct peg__arena *arena)
{
    Pegboard__V1__ToolError *msg = peg__arena_alloc(arena, sizeof(*msg));

    if (!msg)
        return NULL;
    pegboard__v1__tool_error__init(msg);
    if (error->code)
        msg->code = error->code;
    if (error->message_)
        msg->message = error->message_;
    return msg;
}

/* The same as ours; its answer is empty in both. */
static void emit(struct grpc_call *call, const void *message, void *node)
{
    const Registry__EmitToolResultRequest *request = message;
    struct peg__arena *arena = grpc_call_arena(call);
    Pegboard__V1__EmitToolResultRequest *ours = peg__arena_alloc(arena, sizeof(*ours));
    peg_str json;
    peg_error error;

    if (!gw_compat_check(call, request->tool_use_id, "tool_use_id"))
        return;
    if (!ours) {
        gw_fail_memory(call);
        return;
    }
    if (wire_any_read(request->result, arena, &json, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    pegboard__v1__emit_tool_result_request__init(ours);
    ours->call_id = request->tool_use_id;
    if (request->error) {
        ours->error = make_error(request->error, arena);
    } else {
        ours->result.data = (uint8_t *)gw_text(json);
        ours->result.len = json.len;
    }
    if (request->error && !ours->error)
        gw_fail_memory(call);
    else
        gw_serve_emit(call, ours, node);
}

/* ---- calls -------------------------------------------------------------------------------------
 */

/* What hangs on an RPC; in its arena. */
struct asked {
    struct gw_caller caller; /* the first member */
    struct grpc_call *call;
    struct gw_calls *desk;
    int64_t deadline_ns; /* of bus_now_ns(); 0: not admitted */
};

static void on_admitted(struct gw_caller *caller, const struct bus_id *id, int64_t deadline_ms,
                        bool is_joined)
{
    struct asked *asked = (struct asked *)caller;
    struct bus *bus = asked->desk->bus;

    (void)id;
    (void)is_joined;
    asked->deadline_ns = bus_now_ns(bus) + (deadline_ms - bus_now_ms(bus)) * PEG_NS_PER_MS;
}

/* The reference waits for so long, and then says timeout, whether the tool runs or not. */
static bool is_late(const struct asked *asked, const struct gw_outcome *terminal)
{
    const int64_t rounding_ns = 2 * PEG_NS_PER_MS;

    return terminal->outcome == GW_OUTCOME_UNKNOWN && asked->deadline_ns &&
           bus_now_ns(asked->desk->bus) >= asked->deadline_ns - rounding_ns;
}

/* The head of a field, and of what it holds, which is as long as is said. */
static char *put_head(char *at, unsigned field, size_t len)
{
    *at++ = (char)(field << 3 | 2);
    return wire_put_varint(at, len);
}

static size_t field_size(size_t len)
{
    return 1 + wire_varint_size(len) + len;
}

/* result{type_url, value{string_value}} up to the JSON, which is all that follows. */
static char *put_result_head(char *at, size_t json_len)
{
    const peg_str type = peg__str(WIRE_ANY_VALUE_TYPE);
    const size_t value_len = field_size(json_len);

    at = put_head(at, 2, wire_bytes_size(type) + field_size(value_len));
    at = wire_put_bytes(at, 1, type);
    at = put_head(at, 2, value_len);
    return put_head(at, 3, json_len);
}

/* error up to its contents, which are packed alike in theirs and ours; but words that are empty are
 * there in theirs. */
static char *put_error_head(char *at, peg_str error)
{
    const bool has_words = wire_find_bytes(error, 2).len > 0;

    at = put_head(at, 3, error.len + (has_words ? 0 : 2));
    return has_words ? at : put_head(at, 2, 0);
}

enum { HEAD_BYTES = BUS_ID_TEXT + sizeof(WIRE_ANY_VALUE_TYPE) + (size_t)8 * (1 + WIRE_MAX_VARINT) };

/* Theirs is a head before the result, or the error, of ours. */
static peg_str write_head(const struct bus_id *id, const struct gw_outcome *terminal,
                          char ret_head[HEAD_BYTES], peg_str *ret_rest)
{
    const peg_str error = wire_find_bytes(terminal->response, 3);
    const peg_str json = wire_find_bytes(terminal->response, 2);
    char text[BUS_ID_TEXT];
    char *at;

    bus_id_print(id, text);
    at = wire_put_bytes(ret_head, 1, peg__str(text));
    *ret_rest = (peg_str){"", 0};
    if (error.ptr) {
        at = put_error_head(at, error);
        *ret_rest = error;
    } else if (json.len && !peg__str_is(json, "null")) {
        at = put_result_head(at, json.len);
        *ret_rest = json;
    }
    return peg__strn(ret_head, (size_t)(at - ret_head));
}

static peg_status send_joined(struct grpc_call *call, peg_str head, peg_str rest)
{
    const struct grpc_status ok = {.code = GRPC_OK};
    char *bytes = peg__arena_alloc(grpc_call_arena(call), head.len + rest.len);
    peg_status status;

    if (!bytes)
        return PEG_ENOMEM;
    memcpy(bytes, head.ptr, head.len);
    memcpy(bytes + head.len, rest.ptr, rest.len);
    status = grpc_call_send(call, peg__strn(bytes, head.len + rest.len), NULL);
    if (!status)
        grpc_call_finish(call, &ok);
    return status;
}

/* The tool has run: whatever keeps this from being sent, the call is not to be made again. */
static void reply_terminal(struct asked *asked, const struct gw_outcome *terminal)
{
    char bytes[HEAD_BYTES];
    peg_str rest;
    const peg_str head = write_head(&asked->caller.id, terminal, bytes, &rest);
    const bool is_large = terminal->blob && rest.len > PEG_LIMIT_GATEWAY_INLINE_BYTES;

    if (is_large ? grpc_call_reply_shared(asked->call, head, terminal->blob, rest, NULL)
                 : send_joined(asked->call, head, rest))
        gw_fail_report(asked->call, &asked->caller.id);
}

static void on_end(struct gw_caller *caller, const struct gw_outcome *terminal)
{
    struct asked *asked = (struct asked *)caller;
    struct gw_outcome told = *terminal;

    if (is_late(asked, terminal))
        told.error = WIRE_TIMEOUT;
    if (told.error != WIRE_OK)
        gw_fail_outcome(asked->call, &told, &caller->id);
    else
        reply_terminal(asked, terminal);
}

static const struct gw_caller_events EVENTS = {.on_admitted = on_admitted, .on_end = on_end};

/* A payload that is not there is {}, as in our own registry. */
static peg_status read_payload(const Registry__CallToolRequest *request, struct peg__arena *arena,
                               peg_str *ret_payload, peg_error *reterr)
{
    if (request->payload)
        return wire_any_read(request->payload, arena, ret_payload, reterr);
    *ret_payload = peg__str("");
    return PEG_OK;
}

static void call_tool(struct grpc_call *call, const void *message, void *node)
{
    const Pegboard__V1__CallToolRequest nothing = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;
    const Registry__CallToolRequest *request = message;
    struct asked *asked = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*asked));
    struct gw_ask ask;
    peg_str payload;
    peg_error error;

    if (!gw_compat_check(call, request->toolset, "toolset") ||
        !gw_compat_check(call, request->tool, "tool"))
        return;
    if (!asked) {
        gw_fail_memory(call);
        return;
    }
    if (read_payload(request, grpc_call_arena(call), &payload, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    *asked = (struct asked){
        .caller.events = &EVENTS, .call = call, .desk = gw_node_calls(node, grpc_call_loop(call))};
    grpc_call_set_state(call, asked);
    ask = (struct gw_ask){.toolset = peg__str(request->toolset),
                          .tool = peg__str(request->tool),
                          .payload = payload,
                          .principal = gw_call_principal(call)->name,
                          .deadline_ns = grpc_call_deadline_ns(call)};
    /* Theirs has no fields for trace context. Without memory, and one that is too long, it is left
     * out: their callers do not know that it is sent. */
    (void)gw_pack_rest(call, &nothing, asked->desk, &ask.packed);
    gw_calls_start(asked->desk, &ask, &asked->caller);
}

static void call_on_end(struct grpc_call *call, void *node)
{
    struct asked *asked = grpc_call_state(call);

    (void)node;
    if (asked)
        gw_caller_drop(&asked->caller);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

peg_status gw_service_g0_add(struct grpc_server *server, struct gw_node *node, peg_error *reterr)
{
    static const struct grpc_handler handlers[] = {
        [REGISTRY_REGISTRY_REGISTER] = {.on_message = register_toolset},
        [REGISTRY_REGISTRY_UNREGISTER] = {.on_message = unregister,
                                          .on_end = gw_serve_change_on_end},
        [REGISTRY_REGISTRY_EMIT_TOOL_RESULT] = {.on_message = emit, .on_end = gw_serve_emit_on_end},
        [REGISTRY_REGISTRY_PONG] = {.on_message = pong},
        [REGISTRY_REGISTRY_LIST_TOOLSETS] = {.on_message = list_toolsets},
        [REGISTRY_REGISTRY_GET_TOOLSET] = {.on_message = get_toolset},
        [REGISTRY_REGISTRY_SEARCH] = {.on_message = search},
        [REGISTRY_REGISTRY_CALL_TOOL] = {.on_message = call_tool, .on_end = call_on_end},
    };

    return grpc_server_add(server, &registry_registry_service, handlers, node, reterr);
}
