/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/routing/call_span.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/members/members.h"
#include "gateway/routing/routing.h"
#include "gateway/telemetry/event_log.h"
#include "otlp/otlp.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "wire/wire.h"

/* Owned by its caller. Strings lie behind it. */
struct call_span {
    struct otlp_span span;
    const struct gw_tracer *tracer;
    const struct calls_caller_events *own; /* the caller's */
    struct calls_caller_events events;     /* the same, but for on_end */
    bool is_mcp;
    peg_str toolset;
    peg_str tool;
    peg_str tool_call_id;
};

static const peg_str none = PEG_LIT("");

/* ---- the node's ---- */

peg_status gw_tracer_open(struct gw_tracer *tracer, const peg_gateway_config *config, uint64_t node,
                          struct gw_event_log *log, peg_error *reterr)
{
    char id[GW_MEMBER_KEY];
    const struct otlp_options options = {
        .endpoint = config->otlp_endpoint,
        .sample = config->otlp_sample,
        .service = "pegboard-gateway",
        .instance = id,
    };

    gw_member_key(node, id);
    tracer->log = log;
    if (!config->otlp_endpoint)
        return PEG_OK;
    return otlp_exporter_new(&options, &tracer->exporter, reterr);
}

void gw_tracer_close(struct gw_tracer *tracer)
{
    tracer->exporter = otlp_exporter_free(tracer->exporter);
}

/* ---- the end ---- */

static bool is_tools_own(const struct calls_outcome *outcome)
{
    return outcome->kind == CALLS_KIND_ERROR && outcome->error == CALLS_OK;
}

/* Few different ones: a code of the tool's, not a sentence. */
static bool is_code(peg_str code)
{
    return code.len > 0 && code.len <= 64 &&
           peg__str_span(code,
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
               code.len;
}

static peg_str error_type_of(const struct call_span *own, const struct calls_outcome *outcome)
{
    peg_str code;

    if (!is_tools_own(outcome))
        return outcome->error == CALLS_OK
                   ? none
                   : peg__str(wire_error_name(gw_error_of_call(outcome->error)));
    code = wire_find_bytes(
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD),
        PEGBOARD_V1_TOOL_ERROR_CODE_FIELD);
    return !own->is_mcp && is_code(code) ? code : (peg_str)PEG_LIT("tool_error");
}

static void log_failure(const struct call_span *own, peg_str call_id, peg_str error_type)
{
    char trace_id[OTLP_TRACE_ID_TEXT];

    otlp_trace_id_print(&own->span.context, trace_id);
    gw_event_log_write(
        own->tracer->log, PEG_LOG_INFO, GW_EVENT_CALL,
        GW_FIELDS(gw_field_str("toolset", own->toolset), gw_field_str("tool", own->tool),
                  gw_field_str("outcome", error_type),
                  gw_field_number("ms", (peg__mono_ns() - own->span.mono_ns) / PEG_NS_PER_MS),
                  gw_field_str("call_id", call_id), gw_field_text("trace_id", trace_id)));
}

/* Frees it. */
static void end_call_span(struct calls_caller *caller, peg_str error_type, const char *left)
{
    struct call_span *own = (struct call_span *)caller->span;
    char id[BUS_ID_TEXT] = "";
    struct otlp_attribute attributes[] = {
        {"gen_ai.operation.name", PEG_LIT("execute_tool")},
        {"gen_ai.tool.name", own->tool},
        {"gen_ai.tool.type", PEG_LIT("function")},
        {"gen_ai.tool.call.id", own->tool_call_id},
        {"mcp.method.name", own->is_mcp ? (peg_str)PEG_LIT("tools/call") : none},
        {"pegboard.toolset", own->toolset},
        {"pegboard.call.id", none},
        {"pegboard.caller.left", peg__str(left)},
    };
    enum { CALL_ID_AT = 6 };

    if (caller->id.len)
        bus_id_print(&caller->id, id);
    attributes[CALL_ID_AT].value = peg__str(id);
    otlp_span_end(&own->span,
                  &(struct otlp_end){.operation = own->is_mcp ? "tools/call" : "execute_tool",
                                     .target = own->tool,
                                     .kind = OTLP_SERVER,
                                     .attributes = attributes,
                                     .n_attributes = sizeof(attributes) / sizeof(attributes[0]),
                                     .error_type = error_type});
    if (error_type.len)
        log_failure(own, peg__str(id), error_type);
    caller->span = NULL;
    caller->events = own->own;
    peg__free(own);
}

static void on_traced_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    end_call_span(caller, error_type_of((const struct call_span *)caller->span, outcome), "");
    caller->events->on_end(caller, outcome);
}

void gw_call_span_leave(struct calls_caller *caller, enum calls_leaving leaving)
{
    static const char *const names[] = {[CALLS_LEAVES] = "canceled",
                                        [CALLS_LOSES_CONNECTION] = "lost",
                                        [CALLS_DETACHES] = "detached",
                                        [CALLS_ABANDONS] = "canceled"};

    if (!caller->span)
        return;
    end_call_span(caller,
                  leaving == CALLS_DETACHES ? none : peg__str(wire_error_name(WIRE_CANCELED)),
                  names[leaving]);
}

/* ---- the beginning ---- */

static peg_str keep_span_text(char **at, peg_str text)
{
    const peg_str kept = {*at, text.len};

    if (text.len)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return kept;
}

/* NULL: no memory. */
static struct call_span *make_call_span(const struct gw_tracer *tracer,
                                        const struct calls_request *request,
                                        const struct otlp_span *span)
{
    const peg_str meta = wire_find_bytes(request->packed, PEGBOARD_V1_CALL_META_FIELD);
    const peg_str tool_call_id = wire_find_bytes(meta, PEGBOARD_V1_CALL_META_TOOL_CALL_ID_FIELD);
    struct call_span *own = peg__alloc_zero(1, sizeof(*own) + request->toolset.len +
                                                   request->tool.len + tool_call_id.len);
    char *at;

    if (!own)
        return NULL;
    at = (char *)(own + 1);
    own->span = *span;
    own->tracer = tracer;
    own->is_mcp = request->is_mcp;
    own->toolset = keep_span_text(&at, request->toolset);
    own->tool = keep_span_text(&at, request->tool);
    own->tool_call_id = keep_span_text(&at, tool_call_id);
    return own;
}

/* Behind the context that came: the last one counts. */
static bool add_context(const struct otlp_context *context, struct gw_traced *traced)
{
    char text[OTLP_TRACEPARENT_TEXT];
    struct peg__buf *packed = &traced->packed;
    char *at;

    otlp_context_print(context, text);
    at = peg__buf_reserve(packed, traced->request.packed.len + wire_bytes_size(peg__str(text)));
    if (!at)
        return false;
    peg__buf_str(packed, traced->request.packed);
    wire_put_bytes(at + traced->request.packed.len, PEGBOARD_V1_CALL_TRACEPARENT_FIELD,
                   peg__str(text));
    packed->len += wire_bytes_size(peg__str(text));
    traced->request.packed = peg__buf_view(packed);
    return true;
}

static void give_span(struct call_span *own, struct calls_caller *caller)
{
    own->own = caller->events;
    own->events = *caller->events;
    own->events.on_end = on_traced_end;
    caller->events = &own->events;
    caller->span = own;
}

const struct calls_request *gw_call_span_begin(const struct gw_tracer *tracer,
                                               const struct calls_request *request,
                                               struct calls_caller *caller,
                                               struct gw_traced *ret_traced)
{
    struct otlp_span span;
    struct call_span *own;

    ret_traced->packed = (struct peg__buf)PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_METADATA_BYTES);
    caller->span = NULL;
    if (!tracer || !tracer->exporter ||
        !otlp_span_begin(tracer->exporter,
                         wire_find_bytes(request->packed, PEGBOARD_V1_CALL_TRACEPARENT_FIELD),
                         &span))
        return request;
    /* What its caller does not sample goes on as it came. */
    if (!span.exporter && span.has_parent)
        return request;
    ret_traced->request = *request;
    own = span.exporter ? make_call_span(tracer, request, &span) : NULL;
    if (!add_context(&span.context, ret_traced) || !own) {
        peg__free(own);
        return &ret_traced->request;
    }
    caller->id = (struct bus_id){.len = 0};
    give_span(own, caller);
    return &ret_traced->request;
}

void gw_traced_clear(struct gw_traced *traced)
{
    peg__buf_free(&traced->packed);
}
