/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/bus.h"
#include "gateway/access/access.h"
#include "gateway/catalog/catalog.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/event_log.h"
#include "wire/content.h"
#include "wire/wire.h"
#include "json/json.h"

void gw_fail(struct grpc_call *call, enum wire_error error, peg_str message)
{
    struct grpc_status status;

    wire_error_status(error, message, grpc_call_max_status_bytes(call), grpc_call_arena(call),
                      &status);
    grpc_call_finish(call, &status);
}

void gw_report_refused(struct gw_event_log *log, const struct grpc_call *call,
                       enum wire_error error, peg_str toolset)
{
    struct gw_field fields[5];
    size_t n = 0;

    fields[n++] = gw_field_text("error", wire_error_name(error));
    fields[n++] = gw_field_text("rpc", grpc_call_method(call)->path);
    if (toolset.len)
        fields[n++] = gw_field_str("toolset", toolset);
    fields[n++] = gw_field_str("principal", gw_call_principal(call)->name);
    fields[n++] = gw_field_text("peer", grpc_call_peer(call));
    gw_event_log_write(log, PEG_LOG_WARN, GW_EVENT_REFUSED, fields, n);
}

/* The code is the same, but memory comes back, and a request over a limit stays over it. */
static bool is_about_memory(const struct grpc_status *status)
{
    static const char words[] = "out of memory";

    return status->message.len &&
           memmem(status->message.ptr, status->message.len, words, sizeof(words) - 1);
}

/* A client that goes by names gets one for requests that cannot be read or are too large. gRPC
 * calls a malformed message an internal error, which here would be the gateway's own mistake.
 * Unknown methods and the health service answer as every gRPC server does. */
void gw_describe(struct grpc_call *call, struct grpc_status *status)
{
    const struct grpc_method *method = grpc_call_method(call);
    enum wire_error error = WIRE_VALIDATION;

    if (method && peg__str_starts(peg__str(method->path), peg__str("/grpc.")))
        return;
    if (status->code == GRPC_RESOURCE_EXHAUSTED)
        error = is_about_memory(status) ? WIRE_OVERLOADED : WIRE_LIMIT;
    else if (status->code != GRPC_INTERNAL && status->code != GRPC_INVALID_ARGUMENT)
        return;
    wire_error_status(error, status->message, grpc_call_max_status_bytes(call),
                      grpc_call_arena(call), status);
}

void gw_fail_because(struct grpc_call *call, const peg_error *error)
{
    gw_fail(call, gw_wire_error(error), peg__str(error->message));
}

/* A trailer that there is no memory for is left out. */
static void add_trailer(struct grpc_call *call, const char *key, const char *value)
{
    (void)grpc_call_add_trailer(call, peg__str(key), peg__str(value), NULL);
}

void gw_fail_outcome(struct grpc_call *call, const struct calls_outcome *outcome,
                     const struct bus_id *id)
{
    char text[BUS_ID_TEXT];

    /* A wait that is over ends no call: it can be awaited again. What is not found cannot. */
    if (id && (outcome->kind != CALLS_KIND_REFUSED || outcome->was_started) &&
        outcome->error != CALLS_NOT_FOUND) {
        bus_id_print(id, text);
        add_trailer(call, "pegboard-call-id", text);
    }
    add_trailer(call, "pegboard-started", outcome->was_started ? "true" : "false");
    if (outcome->retry_after_ms) {
        snprintf(text, sizeof(text), "%lld", (long long)outcome->retry_after_ms);
        add_trailer(call, "pegboard-retry-after-ms", text);
    }
    if (outcome->retry_after_ms && peg__str_is(outcome->message, CALLS_SHUTTING_DOWN))
        add_trailer(call, "pegboard-draining", "true");
    gw_fail(call, gw_error_of_call(outcome->error), outcome->message);
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

/* The tool has run: whatever keeps the answer from being sent, the caller must not take the call
 * for one that was not started. */
void gw_fail_unsent(struct grpc_call *call, const struct bus_id *id)
{
    static const struct calls_outcome unsent = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the call has ended, and the gateway cannot send its result: more than "
                           "64 MiB wait on this connection, or the gateway is out of memory; ask "
                           "again with the call's identity, or check its effect before you retry"),
        .was_started = true,
    };

    gw_fail_outcome(call, &unsent, id);
}

/* A large response goes out from the register that holds it. */
void gw_reply_outcome(struct grpc_call *call, const struct bus_id *id, peg_str head,
                      struct peg__blob *blob, peg_str rest)
{
    const bool is_large = blob && rest.len > PEG_LIMIT_GATEWAY_INLINE_BYTES;

    if (is_large ? grpc_call_reply_shared(call, head, blob, rest, NULL)
                 : send_joined(call, head, rest))
        gw_fail_unsent(call, id);
}

bool gw_flatten_outcome(struct calls_outcome *outcome, struct peg__buf *buf)
{
    if (!wire_content_is_there(outcome->response))
        return true;
    if (wire_content_flatten(outcome->response, buf))
        return false;
    outcome->response = peg__buf_view(buf);
    outcome->blob = NULL;
    return true;
}

/* Without memory it is left out: a client that does not know it sends none. */
void gw_report_epoch(struct grpc_call *call, const struct calls_loop *calls)
{
    char text[CALLS_EPOCH_TEXT];

    calls_epoch(calls, text);
    (void)grpc_call_add_header(call, peg__str("pegboard-epoch"), peg__str(text), NULL);
}

bool gw_was_asked_elsewhere(struct grpc_call *call, const struct calls_loop *calls)
{
    const peg_str told = grpc_metadata_get(grpc_call_metadata(call), "pegboard-asked-epoch");
    char text[CALLS_EPOCH_TEXT];

    if (!told.len)
        return false;
    calls_epoch(calls, text);
    return !peg__str_is(told, text);
}

enum { REASON_BYTES = 1024 };

/* ---- messages ---- */

char **gw_info_tags(const peg_str *tags, size_t n, struct peg__arena *arena)
{
    char **texts = peg__arena_alloc(arena, (n + 1) * sizeof(*texts));

    for (size_t i = 0; texts && i < n; i++)
        texts[i] = gw_text(tags[i]);
    return texts;
}

char *gw_info_date(int64_t unix_ms, struct peg__arena *arena)
{
    char *text = peg__arena_alloc(arena, WIRE_TIME_TEXT);

    if (text)
        wire_time_print(unix_ms, text);
    return text;
}

char *gw_info_stream_id(peg_str toolset, struct peg__arena *arena)
{
    const size_t size = toolset.len + sizeof("toolset::requests");
    char *text = peg__arena_alloc(arena, size);

    if (text)
        snprintf(text, size, "toolset:%.*s:requests", PEG_ARG(toolset));
    return text;
}

static char *explain_health(peg_str toolset, struct gw_presence *presence, struct peg__arena *arena)
{
    struct peg__buf text = PEG__BUF(REASON_BYTES);
    char *copy;

    (void)peg__buf_reserve(&text, REASON_BYTES / 2); /* it grows once: a page has a thousand */
    gw_presence_explain(presence, toolset, &text);
    copy = text.status ? NULL : peg__arena_copy(arena, peg__buf_view(&text));
    peg__buf_free(&text);
    return copy;
}

static Pegboard__V1__Health *make_health(peg_str toolset, struct gw_presence *presence,
                                         struct peg__arena *arena)
{
    const struct gw_health health = gw_presence_health(presence, toolset);
    Pegboard__V1__Health *msg = peg__arena_alloc(arena, sizeof(*msg));

    if (!msg)
        return NULL;
    pegboard__v1__health__init(msg);
    msg->state = health.state == GW_HEALTHY ? PEGBOARD__V1__HEALTH__STATE__STATE_HEALTHY
                                            : PEGBOARD__V1__HEALTH__STATE__STATE_UNHEALTHY;
    msg->last_pong_unix_ms = health.last_pong_ms;
    msg->providers = health.n_providers;
    msg->draining = health.n_draining;
    if (health.state != GW_HEALTHY) {
        msg->reason = explain_health(toolset, presence, arena);
        if (!msg->reason)
            return NULL;
    }
    return msg;
}

Pegboard__V1__ToolsetInfo *gw_info_toolset(const struct gw_toolset *toolset,
                                           struct gw_presence *presence, struct peg__arena *arena)
{
    Pegboard__V1__ToolsetInfo *msg = peg__arena_alloc(arena, sizeof(*msg));

    if (!msg)
        return NULL;
    pegboard__v1__toolset_info__init(msg);
    msg->name = gw_text(toolset->name);
    msg->description = gw_text(toolset->description);
    msg->version = gw_text(toolset->version);
    msg->n_tags = toolset->n_tags;
    msg->tags = gw_info_tags(toolset->tags, toolset->n_tags, arena);
    msg->tool_count = (uint32_t)toolset->n_tools;
    msg->registered_at = gw_info_date(toolset->registered_at_ms, arena);
    msg->revision = toolset->revision;
    msg->kind = toolset->kind == GW_DIRECT ? PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT
                                           : PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_ATTACHED;
    msg->owner = gw_text(toolset->owner);
    if (presence)
        msg->health = make_health(toolset->name, presence, arena);
    return msg->tags && msg->registered_at && (msg->health || !presence) ? msg : NULL;
}

static ProtobufCBinaryData as_bytes(peg_str text)
{
    return (ProtobufCBinaryData){.len = text.len, .data = (uint8_t *)gw_text(text)};
}

static bool fill_tool_message(const struct gw_tool *tool, struct peg__arena *arena,
                              Pegboard__V1__Tool *msg)
{
    pegboard__v1__tool__init(msg);
    msg->name = gw_text(tool->name);
    msg->description = gw_text(tool->description);
    msg->n_tags = tool->n_tags;
    msg->tags = gw_info_tags(tool->tags, tool->n_tags, arena);
    msg->input_schema = as_bytes(tool->input_schema);
    msg->output_schema = as_bytes(tool->output_schema);
    msg->idempotent = tool->is_idempotent;
    msg->read_only = tool->is_read_only;
    msg->destructive = tool->is_destructive;
    msg->additive = tool->is_additive;
    msg->title = gw_text(tool->title);
    msg->version = gw_text(tool->version);
    msg->examples = as_bytes(tool->examples);
    msg->artifact_kind = gw_text(tool->artifact_kind);
    msg->timeout_ms = tool->timeout_ms;
    return msg->tags != NULL;
}

Pegboard__V1__Tool **gw_info_tools(const struct gw_toolset *toolset, struct peg__arena *arena)
{
    Pegboard__V1__Tool **list = peg__arena_alloc(arena, toolset->n_tools * sizeof(*list));
    Pegboard__V1__Tool *tools = peg__arena_alloc(arena, toolset->n_tools * sizeof(*tools));

    if (!list || !tools)
        return NULL;
    for (size_t i = 0; i < toolset->n_tools; i++) {
        list[i] = &tools[i];
        if (!fill_tool_message(&toolset->tools[i], arena, &tools[i]))
            return NULL;
    }
    return list;
}

/* ---- requests ---- */

peg_status gw_check_name(const char *name, const char *field, peg_error *reterr)
{
    const size_t len = strlen(name);

    if (len == 0)
        return peg__fail(reterr, PEG_EINVAL, "E_MISSING_FIELD",
                         "\"%s\" is missing from message: give the name of a toolset", field);
    if (len > PEG_LIMIT_NAME_BYTES)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_LENGTH",
                         "\"%s\" has %zu bytes: use at most %d", field, len, PEG_LIMIT_NAME_BYTES);
    return wire_check_name(peg__strn(name, len), field, reterr);
}

peg_status gw_check_query(const char *query, peg_error *reterr)
{
    const size_t n = peg__utf8_length(peg__str(query));

    if (n > 0 && n <= PEG_LIMIT_GATEWAY_QUERY)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_LENGTH",
                     "\"query\" has %zu characters: use 1 to %d", n, PEG_LIMIT_GATEWAY_QUERY);
}

peg_status gw_check_tags(size_t n, peg_error *reterr)
{
    return n > PEG_LIMIT_GATEWAY_TAGS ? wire_check_tags(NULL, n, reterr) : PEG_OK;
}

peg_status gw_check_size(uint32_t size, const char *field, peg_error *reterr)
{
    if (size <= PEG_LIMIT_GATEWAY_PAGE)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_RANGE", "\"%s\" is %u: use at most %d", field,
                     size, PEG_LIMIT_GATEWAY_PAGE);
}

size_t gw_size_or_default(uint32_t size)
{
    return size ? size : PEG_LIMIT_GATEWAY_PAGE_DEFAULT;
}

void gw_fail_memory(struct grpc_call *call)
{
    gw_fail(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory: try again later"));
}

const struct gw_toolset *gw_find_toolset(struct grpc_call *call, const char *name,
                                         const struct gw_snapshot *snapshot)
{
    const struct gw_toolset *toolset = NULL;
    peg_error error;

    if (!gw_check_name(name, "name", &error)) {
        toolset = gw_snapshot_find(snapshot, peg__str(name));
        if (!toolset)
            (void)peg__fail(&error, PEG_ENOTFOUND, "E_TOOLSET", "toolset \"%s\" not found", name);
    }
    if (!toolset)
        gw_fail_because(call, &error);
    return toolset;
}
