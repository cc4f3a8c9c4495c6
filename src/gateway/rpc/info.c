/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/info.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/rpc/answer.h"
#include "wire/name.h"
#include "wire/time.h"
#include "json/json.h"

enum { REASON_BYTES = 1024 };

/* ---- messages ----------------------------------------------------------------------------------
 */

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

static char *explain(peg_str toolset, struct gw_presence *presence, struct peg__arena *arena)
{
    struct peg__buf text = PEG__BUF(REASON_BYTES);
    char *copy;

    (void)peg__buf_reserve(&text, REASON_BYTES / 2); /* it grows once: a page has a thousand */
    gw_presence_explain(presence, toolset, &text);
    copy = text.status ? NULL : peg__arena_copy(arena, peg__buf_view(&text));
    peg__buf_free(&text);
    return copy;
}

Pegboard__V1__Health *gw_info_health(peg_str toolset, struct gw_presence *presence,
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
        msg->reason = explain(toolset, presence, arena);
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
        msg->health = gw_info_health(toolset->name, presence, arena);
    return msg->tags && msg->registered_at && (msg->health || !presence) ? msg : NULL;
}

static ProtobufCBinaryData as_bytes(peg_str text)
{
    return (ProtobufCBinaryData){.len = text.len, .data = (uint8_t *)gw_text(text)};
}

static bool fill_tool(const struct gw_tool *tool, struct peg__arena *arena, Pegboard__V1__Tool *msg)
{
    pegboard__v1__tool__init(msg);
    msg->name = gw_text(tool->name);
    msg->description = gw_text(tool->description);
    msg->n_tags = tool->n_tags;
    msg->tags = gw_info_tags(tool->tags, tool->n_tags, arena);
    msg->input_schema = as_bytes(tool->input_schema);
    msg->output_schema = as_bytes(tool->output_schema);
    msg->idempotent = tool->is_idempotent;
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
        if (!fill_tool(&toolset->tools[i], arena, &tools[i]))
            return NULL;
    }
    return list;
}

static bool has_tag(const struct gw_toolset *toolset, const char *tag)
{
    for (size_t i = 0; i < toolset->n_tags; i++) {
        if (strcmp(toolset->tags[i].ptr, tag) == 0)
            return true;
    }
    return false;
}

bool gw_info_has_tags(const struct gw_toolset *toolset, char *const *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!has_tag(toolset, tags[i]))
            return false;
    }
    return true;
}

/* ---- requests ----------------------------------------------------------------------------------
 */

peg_status gw_check_name(const char *name, const char *field, peg_error *reterr)
{
    const size_t len = strlen(name);

    if (len == 0)
        return peg__fail(reterr, PEG_EINVAL, "E_MISSING_FIELD",
                         "\"%s\" is missing from message: give the name of a toolset", field);
    if (len > PEG_LIMIT_NAME_BYTES)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_LENGTH",
                         "\"%s\" has %zu bytes: PEG_LIMIT_NAME_BYTES allows %d", field, len,
                         PEG_LIMIT_NAME_BYTES);
    return wire_check_name(peg__strn(name, len), field, reterr);
}

peg_status gw_check_query(const char *query, peg_error *reterr)
{
    const size_t n = peg__utf8_length(peg__str(query));

    if (n > 0 && n <= PEG_LIMIT_GATEWAY_QUERY)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_LENGTH",
                     "\"query\" has %zu characters: use 1 to %d (PEG_LIMIT_GATEWAY_QUERY)", n,
                     PEG_LIMIT_GATEWAY_QUERY);
}

peg_status gw_check_tags(size_t n, peg_error *reterr)
{
    return n > PEG_LIMIT_GATEWAY_TAGS ? wire_check_tags(NULL, n, reterr) : PEG_OK;
}

peg_status gw_check_size(uint32_t size, const char *field, peg_error *reterr)
{
    if (size <= PEG_LIMIT_GATEWAY_PAGE)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_RANGE",
                     "\"%s\" is %u: PEG_LIMIT_GATEWAY_PAGE allows %d", field, size,
                     PEG_LIMIT_GATEWAY_PAGE);
}

size_t gw_size_or_default(uint32_t size)
{
    return size ? size : PEG_LIMIT_GATEWAY_PAGE_DEFAULT;
}

void gw_fail_memory(struct grpc_call *call)
{
    gw_fail(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory: try again later"));
}

void gw_fail_toolset(struct grpc_call *call, peg_str name)
{
    peg_error error;

    (void)peg__fail(&error, PEG_ENOTFOUND, "E_TOOLSET", "toolset \"%.*s\" not found",
                    PEG_ARG(name));
    gw_fail_because(call, &error);
}
