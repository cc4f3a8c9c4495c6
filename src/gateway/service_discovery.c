/* SPDX-License-Identifier: Apache-2.0 */

/* ListToolsets, GetToolset, Search. What they tell is what the loop's snapshot has. */

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "gateway/answer.h"
#include "gateway/info.h"
#include "gateway/search/search.h"
#include "gateway/services.h"
#include "grpc/message.h"

static struct gw_desk *desk_of(const struct grpc_call *call, void *node)
{
    return gw_node_desk(node, grpc_call_loop(call));
}

static peg_status check_size(uint32_t size, const char *field, peg_error *reterr)
{
    if (size <= PEG_LIMIT_GATEWAY_PAGE)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_RANGE",
                     "\"%s\" is %u: PEG_LIMIT_GATEWAY_PAGE allows %d", field, size,
                     PEG_LIMIT_GATEWAY_PAGE);
}

static size_t size_or_default(uint32_t size)
{
    return size ? size : PEG_LIMIT_GATEWAY_PAGE_DEFAULT;
}

/* ---- ListToolsets ------------------------------------------------------------------------------
 */

static peg_status check_list(const Pegboard__V1__ListToolsetsRequest *request, peg_error *reterr)
{
    peg_status status = gw_check_tags(request->n_tags, reterr);

    if (!status)
        status = check_size(request->page_size, "page_size", reterr);
    if (!status && request->page_token[0])
        status = gw_check_name(request->page_token, "page_token", reterr);
    return status;
}

struct page {
    struct gw_desk *desk;
    struct peg__arena *arena;
    Pegboard__V1__ListToolsetsResponse *response;
    size_t max;
    size_t bytes;
};

/* False: it does not fit any more, or there is no memory (then the list is NULL). */
static bool add_to_page(struct page *page, const struct gw_toolset *toolset)
{
    Pegboard__V1__ListToolsetsResponse *response = page->response;
    Pegboard__V1__ToolsetInfo *info;

    if (response->n_toolsets == page->max || page->bytes > PEG_LIMIT_GATEWAY_PAGE_BYTES)
        return false;
    info = gw_info_toolset(toolset, page->desk->presence, page->arena);
    if (!info) {
        response->toolsets = NULL;
        return false;
    }
    page->bytes += grpc_message_packed_size(&info->base);
    response->toolsets[response->n_toolsets++] = info;
    return true;
}

/* The token is the last name of a page: it means the same after any change of the catalog. */
static void fill_page(struct page *page, const Pegboard__V1__ListToolsetsRequest *request)
{
    const struct gw_snapshot *snapshot = page->desk->snapshot;
    Pegboard__V1__ListToolsetsResponse *response = page->response;
    const struct gw_toolset *last = NULL;
    bool is_full = false;

    for (size_t i = 0; i < snapshot->n; i++) {
        const struct gw_toolset *toolset = snapshot->toolsets[i];

        if (!gw_info_has_tags(toolset, request->tags, request->n_tags))
            continue;
        response->total++;
        if (is_full || strcmp(toolset->name.ptr, request->page_token) <= 0)
            continue;
        is_full = !add_to_page(page, toolset);
        if (!response->toolsets)
            return;
        if (!is_full)
            last = toolset;
    }
    if (is_full && last)
        response->next_page_token = gw_text(last->name);
}

void gw_serve_list(struct grpc_call *call, const Pegboard__V1__ListToolsetsRequest *request,
                   void *node)
{
    struct gw_desk *desk = desk_of(call, node);
    Pegboard__V1__ListToolsetsResponse response = PEGBOARD__V1__LIST_TOOLSETS_RESPONSE__INIT;
    struct page page = {.desk = desk,
                        .arena = grpc_call_arena(call),
                        .response = &response,
                        .max = size_or_default(request->page_size)};
    peg_error error;

    if (check_list(request, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    gw_tell_epoch(call, desk);
    if (page.max > desk->snapshot->n)
        page.max = desk->snapshot->n;
    response.toolsets = peg__arena_alloc(page.arena, (page.max + 1) * sizeof(*response.toolsets));
    if (response.toolsets)
        fill_page(&page, request);
    if (response.toolsets)
        grpc_call_reply_message(call, &response.base);
    else
        gw_fail_memory(call);
}

/* ---- GetToolset --------------------------------------------------------------------------------
 */

void gw_serve_get(struct grpc_call *call, const Pegboard__V1__GetToolsetRequest *request,
                  void *node)
{
    struct gw_desk *desk = desk_of(call, node);
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
    gw_tell_epoch(call, desk);
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
        status = check_size(request->limit, "limit", reterr);
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
    struct gw_desk *desk = desk_of(call, node);
    struct peg__arena *arena = grpc_call_arena(call);
    const struct gw_search_query query = {.text = peg__str(request->query),
                                          .tags = request->tags,
                                          .n_tags = request->n_tags,
                                          .limit = size_or_default(request->limit),
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
