/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ListToolsets. What a page costs doesn't depend on how many toolsets there are: its first one is
 * found by the name in the token, and without tags the total is known. With tags all toolsets are
 * looked at, some at a time, between which the loop does what else there is to do:
 *
 *   no tags    -> answer
 *   tags       -> look at WALK_STEP of them -> a turn -> look at the next ... -> answer
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/rpc/answer.h"
#include "gateway/rpc/info.h"
#include "gateway/rpc/services.h"

enum {
    /* Toolsets whose tags are looked at in one turn: some ten microseconds. */
    WALK_STEP = 256,
    /* What an entry of a page takes beside the texts of its toolset. */
    ENTRY_BYTES = 400,
};

/* In the arena of its call. */
struct page {
    struct net_turn turn; /* first */
    struct grpc_call *call;
    struct gw_calls *desk;
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

/* ---- the answer ------------------------------------------------------------------------------ */

static size_t bytes_of(const struct gw_toolset *toolset)
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
        response->toolsets[n] = gw_info_toolset(page->found[n], page->desk->presence, arena);
        if (!response->toolsets[n])
            return false;
        bytes += bytes_of(page->found[n]);
    }
    response->n_toolsets = n;
    if (n > 0 && n < page->n_found)
        response->next_page_token = gw_text(page->found[n - 1]->name);
    return true;
}

static void answer(const struct page *page)
{
    Pegboard__V1__ListToolsetsResponse response = PEGBOARD__V1__LIST_TOOLSETS_RESPONSE__INIT;

    if (fill_page(page, &response))
        grpc_call_reply_message(page->call, &response.base);
    else
        gw_fail_memory(page->call);
}

/* ---- which toolsets -------------------------------------------------------------------------- */

static void take_all(struct page *page)
{
    const struct gw_snapshot *snapshot = page->desk->snapshot;
    const size_t n = snapshot->n - page->first;

    page->found = snapshot->toolsets + page->first;
    page->n_found = n <= page->max ? n : page->max + 1;
    page->total = (uint32_t)snapshot->n;
}

static void look_at(struct page *page, struct gw_toolset *toolset, size_t place)
{
    if (!gw_info_has_tags(toolset, page->request->tags, page->request->n_tags))
        return;
    page->total++;
    if (place >= page->first && page->n_found <= page->max)
        page->own[page->n_found++] = toolset;
}

/* The snapshot goes with the call: on_end. */
static void walk(struct net_turn *turn)
{
    struct page *page = (struct page *)turn;
    const struct gw_snapshot *snapshot = page->snapshot;

    for (size_t i = 0; i < WALK_STEP && page->at < snapshot->n; i++, page->at++)
        look_at(page, snapshot->toolsets[page->at], page->at);
    if (page->at < snapshot->n)
        net_loop_turn(page->desk->loop, turn);
    else
        answer(page);
}

static void start_walk(struct page *page)
{
    page->own = peg__arena_alloc(grpc_call_arena(page->call), (page->max + 1) * sizeof(*page->own));
    if (!page->own) {
        gw_fail_memory(page->call);
        return;
    }
    page->found = page->own;
    page->snapshot = gw_snapshot_ref(page->desk->snapshot);
    page->turn.fn = walk;
    grpc_call_set_state(page->call, page);
    walk(&page->turn);
}

void gw_serve_list(struct grpc_call *call, const Pegboard__V1__ListToolsetsRequest *request,
                   void *node)
{
    struct gw_calls *desk = gw_node_calls(node, grpc_call_loop(call));
    struct page *page;
    peg_error error;

    if (check_list(request, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    gw_report_epoch(call, desk);
    page = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*page));
    if (!page) {
        gw_fail_memory(call);
        return;
    }
    page->call = call;
    page->desk = desk;
    page->request = request;
    page->max = gw_size_or_default(request->page_size);
    if (page->max > desk->snapshot->n)
        page->max = desk->snapshot->n;
    page->first = gw_snapshot_behind(desk->snapshot, peg__str(request->page_token));
    if (request->n_tags) {
        start_walk(page);
        return;
    }
    take_all(page);
    answer(page);
}

void gw_serve_list_on_end(struct grpc_call *call, void *node)
{
    struct page *page = grpc_call_state(call);

    (void)node;
    if (!page)
        return;
    net_loop_no_turn(page->desk->loop, &page->turn);
    page->snapshot = gw_snapshot_unref(page->snapshot);
}
