/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard.v1.Registry: GetToolset, Search and ListToolsets from the snapshot of the loop; and the
 * table of all of its methods. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/rpc/rpc.h"
#include "gateway/search/search.h"
#include "grpc/message.h"

/* ---- GetToolset ---- */

static void serve_get(struct grpc_call *call, const Pegboard__V1__GetToolsetRequest *request,
                      void *node)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    struct peg__arena *arena = grpc_call_arena(call);
    Pegboard__V1__GetToolsetResponse response = PEGBOARD__V1__GET_TOOLSET_RESPONSE__INIT;
    const struct gw_toolset *toolset =
        gw_find_toolset(call, request->name, gw_router_of(calls)->snapshot);

    if (!toolset)
        return;
    gw_report_epoch(call, calls);
    response.toolset = gw_info_toolset(toolset, gw_router_of(calls)->presence, arena);
    response.n_tools = toolset->n_tools;
    response.tools = gw_info_tools(toolset, arena);
    response.stream_id = gw_info_stream_id(toolset->name, arena);
    if (response.toolset && response.tools && response.stream_id)
        grpc_call_reply_message(call, &response.base);
    else
        gw_fail_memory(call);
}

/* ---- Search ---- */

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

static bool is_toolset_healthy(void *presence, peg_str toolset)
{
    return gw_presence_is_healthy(presence, toolset);
}

static void serve_search(struct grpc_call *call, const Pegboard__V1__SearchRequest *request,
                         void *node)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    struct peg__arena *arena = grpc_call_arena(call);
    const struct gw_search_query query = {.text = peg__str(request->query),
                                          .tags = request->tags,
                                          .n_tags = request->n_tags,
                                          .limit = gw_size_or_default(request->limit),
                                          .is_healthy = is_toolset_healthy,
                                          .user = gw_router_of(calls)->presence};
    Pegboard__V1__SearchResponse response = PEGBOARD__V1__SEARCH_RESPONSE__INIT;
    struct gw_search_result result;
    peg_error error;

    if (check_search(request, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    if (gw_search(gw_router_of(calls)->snapshot, &query, arena, &result, &error) ||
        !fill_hits(&result, gw_router_of(calls)->presence, arena, &response))
        gw_fail_memory(call);
    else
        grpc_call_reply_message(call, &response.base);
}

/*
 * ListToolsets. What a page costs doesn't depend on how many toolsets there are: its first one is
 * found by the name in the token, and without tags the total is known. With tags all toolsets are
 * looked at, some at a time, between which the loop does what else there is to do:
 *
 *   no tags    -> answer
 *   tags       -> look at WALK_STEP of them -> a turn -> look at the next ... -> answer
 */

enum {
    /* Toolsets whose tags are looked at in one turn: some ten microseconds. */
    WALK_STEP = 256,
    /* What an entry of a page takes beside the texts of its toolset. */
    ENTRY_BYTES = 400,
};

/* In the arena of its call. */
struct page {
    struct net_fair_job turn; /* first */
    struct grpc_call *call;
    struct calls_loop *calls;
    const Pegboard__V1__ListToolsetsRequest *request; /* lives as long as the call */
    struct gw_snapshot *snapshot;                     /* a reference while toolsets are walked */
    size_t first;                                     /* place of the first behind the token */
    size_t at;                                        /* the next that is looked at */
    /* Those on the page, and one more if the page isn't the last one. */
    struct gw_toolset *const *found;
    size_t n_found;
    struct gw_toolset **own; /* room for max + 1; found, where toolsets are walked */
    size_t max;
    uint32_t total;
};

static peg_status check_list(const Pegboard__V1__ListToolsetsRequest *request, peg_error *reterr)
{
    peg_status status = gw_check_tags(request->n_tags, reterr);

    if (!status)
        status = gw_check_size(request->page_size, "page_size", reterr);
    if (!status && request->page_token[0])
        status = gw_check_name(request->page_token, "page_token", reterr);
    return status;
}

/* ---- the answer ---- */

static size_t entry_bytes(const struct gw_toolset *toolset)
{
    size_t n = ENTRY_BYTES + 2 * toolset->name.len + toolset->description.len +
               toolset->version.len + toolset->owner.len;

    for (size_t i = 0; i < toolset->n_tags; i++)
        n += toolset->tags[i].len + 4;
    return n;
}

/* The token is the last name of a page: it means the same after any change of the catalog. False:
 * no memory. */
static bool fill_page(const struct page *page, Pegboard__V1__ListToolsetsResponse *response)
{
    struct peg__arena *arena = grpc_call_arena(page->call);
    size_t bytes = 0;
    size_t n = 0;

    response->total = page->total;
    response->toolsets = peg__arena_alloc(arena, (page->max + 1) * sizeof(*response->toolsets));
    if (!response->toolsets)
        return false;
    for (; n < page->n_found && n < page->max && bytes <= PEG_LIMIT_GATEWAY_PAGE_BYTES; n++) {
        response->toolsets[n] =
            gw_info_toolset(page->found[n], gw_router_of(page->calls)->presence, arena);
        if (!response->toolsets[n])
            return false;
        bytes += entry_bytes(page->found[n]);
    }
    response->n_toolsets = n;
    if (n > 0 && n < page->n_found)
        response->next_page_token = gw_text(page->found[n - 1]->name);
    return true;
}

static void answer_page(const struct page *page)
{
    Pegboard__V1__ListToolsetsResponse response = PEGBOARD__V1__LIST_TOOLSETS_RESPONSE__INIT;

    if (fill_page(page, &response))
        grpc_call_reply_message(page->call, &response.base);
    else
        gw_fail_memory(page->call);
}

/* ---- which toolsets ---- */

static void take_all(struct page *page)
{
    const struct gw_snapshot *snapshot = gw_router_of(page->calls)->snapshot;
    const size_t n = snapshot->n - page->first;

    page->found = snapshot->toolsets + page->first;
    page->n_found = n <= page->max ? n : page->max + 1;
    page->total = (uint32_t)snapshot->n;
}

static void take_if_tagged(struct page *page, struct gw_toolset *toolset, size_t place)
{
    if (!gw_toolset_has_tags(toolset, page->request->tags, page->request->n_tags))
        return;
    page->total++;
    if (place >= page->first && page->n_found <= page->max)
        page->own[page->n_found++] = toolset;
}

/* The snapshot goes with the call: on_end. */
static void walk_toolsets(struct net_fair_job *turn)
{
    struct page *page = (struct page *)turn;
    const struct gw_snapshot *snapshot = page->snapshot;

    for (size_t i = 0; i < WALK_STEP && page->at < snapshot->n; i++, page->at++)
        take_if_tagged(page, snapshot->toolsets[page->at], page->at);
    if (page->at < snapshot->n)
        net_loop_enqueue(page->calls->loop, turn);
    else
        answer_page(page);
}

static void start_walk(struct page *page)
{
    page->own = peg__arena_alloc(grpc_call_arena(page->call), (page->max + 1) * sizeof(*page->own));
    if (!page->own) {
        gw_fail_memory(page->call);
        return;
    }
    page->found = page->own;
    page->snapshot = gw_snapshot_ref(gw_router_of(page->calls)->snapshot);
    page->turn.fn = walk_toolsets;
    grpc_call_set_state(page->call, page);
    walk_toolsets(&page->turn);
}

static void serve_list(struct grpc_call *call, const Pegboard__V1__ListToolsetsRequest *request,
                       void *node)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    struct page *page;
    peg_error error;

    if (check_list(request, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    gw_report_epoch(call, calls);
    page = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*page));
    if (!page) {
        gw_fail_memory(call);
        return;
    }
    page->call = call;
    page->calls = calls;
    page->request = request;
    page->max = gw_size_or_default(request->page_size);
    if (page->max > gw_router_of(calls)->snapshot->n)
        page->max = gw_router_of(calls)->snapshot->n;
    page->first = gw_snapshot_behind(gw_router_of(calls)->snapshot, peg__str(request->page_token));
    if (request->n_tags) {
        start_walk(page);
        return;
    }
    take_all(page);
    answer_page(page);
}

static void end_list(struct grpc_call *call, void *node)
{
    struct page *page = grpc_call_state(call);

    (void)node;
    if (!page)
        return;
    net_loop_dequeue(page->calls->loop, &page->turn);
    page->snapshot = gw_snapshot_unref(page->snapshot);
}

/* ---- the table ---- */

peg_status gw_service_registry_add(struct grpc_server *server, struct gw_node *node,
                                   peg_error *reterr)
{
    struct pegboard_v1_registry_handlers *handlers =
        (struct pegboard_v1_registry_handlers *)peg__alloc_zero(1, sizeof(*handlers));

    if (!handlers)
        return peg__fail_nomem(reterr);
    *handlers = (struct pegboard_v1_registry_handlers){
        .user = node,
        .register_ = gw_serve_register,
        .register_on_end = gw_serve_change_on_end,
        .unregister = gw_serve_unregister,
        .unregister_on_end = gw_serve_change_on_end,
        .attach_on_message = gw_serve_attach_on_message,
        .attach_on_half_close = gw_serve_attach_on_half_close,
        .attach_on_writable = gw_serve_attach_on_writable,
        .attach_on_end = gw_serve_attach_on_end,
        .emit_tool_result = gw_serve_emit,
        .emit_tool_result_on_end = gw_serve_emit_on_end,
        .pong = gw_serve_pong,
        .list_toolsets = serve_list,
        .list_toolsets_on_end = end_list,
        .get_toolset = serve_get,
        .search = serve_search,
        .watch = gw_serve_watch,
        .watch_on_writable = gw_serve_watch_on_writable,
        .watch_on_end = gw_serve_watch_on_end,
        .call_tool = gw_serve_call_tool,
        .call_tool_on_end = gw_serve_call_on_end,
        .call_tool_stream = gw_serve_call_tool_stream,
        .call_tool_stream_on_end = gw_serve_call_on_end,
        .start_tool = gw_serve_start_tool,
        .start_tool_on_end = gw_serve_call_on_end,
        .await_tool = gw_serve_await_tool,
        .await_tool_on_end = gw_serve_call_on_end,
        .cancel_tool = gw_serve_cancel_tool,
        .cancel_tool_on_end = gw_serve_call_on_end,
        .describe_call = gw_serve_describe_call,
        .describe_call_on_end = gw_serve_describe_call_on_end,
        .list_calls = gw_serve_list_calls,
        .list_calls_on_end = gw_serve_list_calls_on_end,
        .answer_call = gw_serve_answer_call,
        .answer_call_on_end = gw_serve_answer_call_on_end,
    };

    node->handlers = handlers;
    return pegboard_v1_registry_add(server, handlers, reterr);
}
