/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/compat.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/rpc/answer.h"
#include "gateway/search/search.h"
#include "grpc/message.h"

static const struct gw_snapshot *snapshot_of(const struct grpc_call *call, void *node)
{
    return gw_node_calls(node, grpc_call_loop(call))->snapshot;
}

bool gw_compat_list(struct grpc_call *call, void *node, char *const *tags, size_t n_tags,
                    struct gw_reported *ret_listed)
{
    const struct gw_snapshot *snapshot = snapshot_of(call, node);
    peg_error error;

    if (gw_check_tags(n_tags, &error)) {
        gw_fail_because(call, &error);
        return false;
    }
    ret_listed->n = 0;
    ret_listed->toolsets =
        peg__arena_alloc(grpc_call_arena(call), (snapshot->n + 1) * sizeof(*ret_listed->toolsets));
    if (!ret_listed->toolsets) {
        gw_fail_memory(call);
        return false;
    }
    for (size_t i = 0; i < snapshot->n; i++) {
        if (gw_info_has_tags(snapshot->toolsets[i], tags, n_tags))
            ret_listed->toolsets[ret_listed->n++] = snapshot->toolsets[i];
    }
    return true;
}

bool gw_compat_search(struct grpc_call *call, void *node, const char *query,
                      struct gw_reported *ret_listed)
{
    /* Their answer has no pages: it is whole, or too large. */
    const struct gw_search_query asked = {.text = peg__str(peg__or_empty(query)),
                                          .limit = snapshot_of(call, node)->n};
    struct peg__arena *arena = grpc_call_arena(call);
    struct gw_search_result result;
    peg_error error;

    if (gw_check_query(peg__or_empty(query), &error)) {
        gw_fail_because(call, &error);
        return false;
    }
    if (gw_search(snapshot_of(call, node), &asked, arena, &result, &error)) {
        gw_fail_memory(call);
        return false;
    }
    ret_listed->n = result.n;
    ret_listed->toolsets = peg__arena_alloc(arena, (result.n + 1) * sizeof(*ret_listed->toolsets));
    if (!ret_listed->toolsets) {
        gw_fail_memory(call);
        return false;
    }
    for (size_t i = 0; i < result.n; i++)
        ret_listed->toolsets[i] = result.hits[i].toolset;
    return true;
}

bool gw_compat_check(struct grpc_call *call, const char *text, const char *field)
{
    const size_t len = strlen(peg__or_empty(text));
    peg_error error;

    if (len >= 1 && len <= PEG_LIMIT_NAME_BYTES)
        return true;
    (void)peg__fail(&error, PEG_EINVAL, "E_INVALID_LENGTH",
                    "length of %s is %zu: use 1 to %d bytes (PEG_LIMIT_NAME_BYTES)", field, len,
                    PEG_LIMIT_NAME_BYTES);
    gw_fail_because(call, &error);
    return false;
}

const struct gw_toolset *gw_compat_get(struct grpc_call *call, void *node, const char *name)
{
    const struct gw_toolset *toolset;
    peg_error error;

    if (!gw_compat_check(call, name, "name"))
        return NULL;
    if (gw_check_name(name, "name", &error)) {
        gw_fail_because(call, &error);
        return NULL;
    }
    toolset = gw_snapshot_find(snapshot_of(call, node), peg__str(name));
    if (!toolset)
        gw_fail_toolset(call, peg__str(name));
    return toolset;
}

char *gw_compat_text(peg_str text)
{
    return text.len ? gw_text(text) : NULL;
}

void gw_compat_reply(struct grpc_call *call, const ProtobufCMessage *response)
{
    if (!response)
        gw_fail_memory(call);
    else if (grpc_message_packed_size(response) > PEG_LIMIT_GRPC_MESSAGE_BYTES)
        gw_fail(call, WIRE_LIMIT,
                peg__str("the answer is larger than PEG_LIMIT_GRPC_MESSAGE_BYTES (4 MiB): ask for "
                         "fewer, by tags or by other words, or page through "
                         "pegboard.v1.Registry/ListToolsets"));
    else
        grpc_call_reply_message(call, response);
}

void gw_compat_refuse(struct grpc_call *call)
{
    gw_fail(
        call, WIRE_SERVICE_UNAVAILABLE,
        peg__str("this needs streams on Redis, which this version of the gateway does not have: "
                 "use pegboard.v1.Registry, whose providers attach to it"));
}

void gw_compat_unregister(struct grpc_call *call, const char *name, void *node)
{
    Pegboard__V1__UnregisterRequest *request;

    if (!gw_compat_check(call, name, "name"))
        return;
    request = peg__arena_alloc(grpc_call_arena(call), sizeof(*request));
    if (!request) {
        gw_fail_memory(call);
        return;
    }
    pegboard__v1__unregister_request__init(request);
    request->name = gw_text(peg__str(name));
    gw_serve_unregister(call, request, node);
}

void gw_compat_pong(struct grpc_call *call, const char *ping_id, const char *toolset, void *node)
{
    Pegboard__V1__PongRequest request = PEGBOARD__V1__PONG_REQUEST__INIT;

    request.ping_id = gw_text(peg__str(peg__or_empty(ping_id)));
    request.toolset = gw_text(peg__str(peg__or_empty(toolset)));
    gw_serve_pong(call, &request, node);
}
