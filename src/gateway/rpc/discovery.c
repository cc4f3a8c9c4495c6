/* SPDX-License-Identifier: Apache-2.0 */

/* GetToolset, Search. What they tell is what the loop's snapshot has. */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/rpc/answer.h"
#include "gateway/rpc/info.h"
#include "gateway/rpc/services.h"
#include "gateway/search/search.h"
#include "grpc/message.h"

static struct gw_calls *desk_of(const struct grpc_call *call, void *node)
{
    return gw_node_calls(node, grpc_call_loop(call));
}

/* ---- GetToolset --------------------------------------------------------------------------------
 */

void gw_serve_get(struct grpc_call *call, const Pegboard__V1__GetToolsetRequest *request,
                  void *node)
{
    struct gw_calls *desk = desk_of(call, node);
    struct peg__arena *arena = grpc_call_arena(call);
    Pegboard__V1__GetToolsetResponse response = PEGBOARD__V1__GET_TOOLSET_RESPONSE__INIT;
    const struct gw_toolset *toolset;
    peg_error error;

    if (gw_check_name(request->name, "name", &error)) {
        gw_fail_because(call, &error);
        return;
    }
    toolset = gw_snapshot_find(desk->snapshot, peg__str(request->name));
    if (!toolset) {
        gw_fail_toolset(call, peg__str(request->name));
        return;
    }
    gw_report_epoch(call, desk);
    response.toolset = gw_info_toolset(toolset, desk->presence, arena);
    response.n_tools = toolset->n_tools;
    response.tools = gw_info_tools(toolset, arena);
    response.stream_id = gw_info_stream_id(toolset->name, arena);
    if (response.toolset && response.tools && response.stream_id)
        grpc_call_reply_message(call, &response.base);
    else
        gw_fail_memory(call);
}

/* ---- Search ------------------------------------------------------------------------------------
 */

static peg_status check_search(const Pegboard__V1__SearchRequest *request, peg_error *reterr)
{
    peg_status status = gw_check_query(request->query, reterr);

    if (!status)
        status = gw_check_tags(request->n_tags, reterr);
    if (!status)
        status = gw_check_size(request->limit, "limit", reterr);
    return status;
}

static Pegboard__V1__SearchResponse__Hit *
make_hit(const struct gw_search_hit *hit, struct gw_presence *presence, struct peg__arena *arena)
{
    Pegboard__V1__SearchResponse__Hit *msg = peg__arena_alloc(arena, sizeof(*msg));

    if (!msg)
        return NULL;
    pegboard__v1__search_response__hit__init(msg);
    msg->toolset = gw_info_toolset(hit->toolset, presence, arena);
    msg->score = hit->score;
    msg->n_tools = hit->n_tools;
    msg->tools = peg__arena_alloc(arena, (hit->n_tools + 1) * sizeof(*msg->tools));
    if (!msg->toolset || !msg->tools)
        return NULL;
    for (unsigned i = 0; i < hit->n_tools; i++)
        msg->tools[i] = gw_text(hit->tools[i]->name);
    return msg;
}

/* As many of the best as fit into a message. */
static bool fill_hits(const struct gw_search_result *result, struct gw_presence *presence,
                      struct peg__arena *arena, Pegboard__V1__SearchResponse *response)
{
    size_t bytes = 0;

    response->total = (uint32_t)result->total;
    response->hits = peg__arena_alloc(arena, (result->n + 1) * sizeof(*response->hits));
    if (!response->hits)
        return false;
    for (size_t i = 0; i < result->n && bytes <= PEG_LIMIT_GATEWAY_PAGE_BYTES; i++) {
        Pegboard__V1__SearchResponse__Hit *hit = make_hit(&result->hits[i], presence, arena);

        if (!hit)
            return false;
        response->hits[response->n_hits++] = hit;
        bytes += grpc_message_packed_size(&hit->base);
    }
    return true;
}

static bool is_healthy(void *presence, peg_str toolset)
{
    return gw_presence_health(presence, toolset).state == GW_HEALTHY;
}

void gw_serve_search(struct grpc_call *call, const Pegboard__V1__SearchRequest *request, void *node)
{
    struct gw_calls *desk = desk_of(call, node);
    struct peg__arena *arena = grpc_call_arena(call);
    const struct gw_search_query query = {.text = peg__str(request->query),
                                          .tags = request->tags,
                                          .n_tags = request->n_tags,
                                          .limit = gw_size_or_default(request->limit),
                                          .is_healthy = is_healthy,
                                          .user = desk->presence};
    Pegboard__V1__SearchResponse response = PEGBOARD__V1__SEARCH_RESPONSE__INIT;
    struct gw_search_result result;
    peg_error error;

    if (check_search(request, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    if (gw_search(desk->snapshot, &query, arena, &result, &error) ||
        !fill_hits(&result, desk->presence, arena, &response))
        gw_fail_memory(call);
    else
        grpc_call_reply_message(call, &response.base);
}
