/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/http.h"

#include "base/mem.h"
#include "base/str.h"
#include "gateway/auth.h"
#include "gateway/journal.h"
#include "gateway/metrics_text.h"
#include "pegboard/clock.h"

static void answer_with(struct net_http1_answer *answer, int status, const char *words)
{
    answer->status = status;
    peg__buf_puts(&answer->body, words);
}

/* ---- metrics -------------------------------------------------------------------------------- */

/* The desk of the loop that this runs on: what it knows of toolsets may be read here only. */
static struct gw_desk *desk_here(const struct gw_node *node)
{
    for (unsigned i = 0; i < node->n_desks; i++) {
        if (net_loop_is_here(net_loops_at(node->loops, i)))
            return node->desks[i];
    }
    return NULL;
}

static void look_at_node(const struct gw_node *node, struct gw_metrics_node *ret_node)
{
    struct grpc_server_counts counts = {0};

    if (node->server)
        grpc_server_counts(node->server, &counts);
    *ret_node = (struct gw_metrics_node){
        .version = peg_version(),
        .bus = node->bus_kind,
        .store = node->store_kind,
        .registry = peg__str(node->name),
        .now_ms = peg_clock_now_ms(peg_clock_system()),
        .started_ms = node->started_ms,
        .n_connections = counts.n_connections,
        .n_refused_connections = counts.n_refused_connections,
        .n_evicted_connections = counts.n_evicted_connections,
        .n_held_bytes = counts.n_held_bytes,
        .n_unauthenticated = node->auth ? gw_auth_n_refused(node->auth) : 0,
        .n_rpcs = counts.n_started,
        .n_running_rpcs = counts.n_calls,
        .rss_bytes = gw_rss_bytes(),
        .heap_bytes = gw_heap_bytes(),
        .n_loops = net_loops_len(node->loops),
        .n_log_lines_dropped = gw_journal_n_dropped(node->journal),
        .is_draining = atomic_load(&node->is_draining),
    };
    for (unsigned i = 0; i < ret_node->n_loops; i++)
        ret_node->n_wakes += net_loop_n_wakes(net_loops_at(node->loops, i));
}

/* NULL, with n > 0: no memory. */
static struct gw_metrics_toolset *look_at_toolsets(struct gw_desk *desk, size_t n)
{
    struct gw_metrics_toolset *toolsets = peg__alloc_zero(n ? n : 1, sizeof(*toolsets));

    for (size_t i = 0; toolsets && i < n; i++) {
        const struct gw_toolset *toolset = desk->snapshot->toolsets[i];
        const struct gw_health health = gw_presence_health(desk->presence, toolset->name);

        toolsets[i] = (struct gw_metrics_toolset){
            .name = toolset->name,
            .is_healthy = health.state == GW_HEALTHY,
            .last_pong_ms = health.last_pong_ms,
            .n_providers = health.n_providers,
            .n_draining = health.n_draining,
        };
    }
    return toolsets;
}

static void answer_metrics(const struct gw_node *node, struct net_http1_answer *answer)
{
    struct gw_desk *desk = desk_here(node);
    const bool has_catalog = desk && desk->snapshot;
    struct gw_metrics_toolset *toolsets;
    struct gw_metrics_node now;

    look_at_node(node, &now);
    now.n_toolsets = has_catalog ? desk->snapshot->n : 0;
    now.n_tools = has_catalog ? desk->snapshot->n_tools : 0;
    toolsets = look_at_toolsets(desk, now.n_toolsets);
    if (!toolsets) {
        answer->body.status = PEG_ENOMEM;
        return;
    }
    now.toolsets = toolsets;
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    gw_metrics_write(node->metrics, &now, &answer->body);
    peg__free(toolsets);
}

/* ---- all paths ------------------------------------------------------------------------------ */

static void answer_health(const struct gw_node *node, struct net_http1_answer *answer)
{
    if (atomic_load(&node->is_draining))
        answer_with(answer, 503, "draining\n");
    else
        answer_with(answer, 200, "ok\n");
}

static void answer_ready(const struct gw_node *node, struct net_http1_answer *answer)
{
    const struct gw_desk *desk = desk_here(node);

    if (atomic_load(&node->is_draining))
        answer_with(answer, 503, "draining\n");
    else if (!desk || !desk->snapshot)
        answer_with(answer, 503, "starting\n");
    else
        answer_with(answer, 200, "ready\n");
}

static void refuse(const struct gw_node *node, const struct net_http1_request *request,
                   struct net_http1_answer *answer)
{
    gw_auth_note_http1(node->auth, request);
    answer_with(answer, 401,
                "send 'Authorization: Bearer <token>' with a token of this gateway, connect with a "
                "client certificate if it has --tls-client-ca, or ask on its --admin-addr\n");
}

static void answer_path(const struct gw_node *node, const struct net_http1_request *request,
                        bool may_see, struct net_http1_answer *answer)
{
    if (peg__str_is(request->path, "/healthz"))
        answer_health(node, answer);
    else if (peg__str_is(request->path, "/readyz"))
        answer_ready(node, answer);
    else if (!peg__str_is(request->path, "/metrics"))
        answer_with(answer, 404, "there are /healthz, /readyz and /metrics here, and gRPC\n");
    else if (may_see)
        answer_metrics(node, answer);
    else
        refuse(node, request, answer);
}

void gw_http_answer(void *node, const struct net_http1_request *request,
                    struct net_http1_answer *answer)
{
    const struct gw_node *here = node;

    answer_path(here, request, !here->auth || gw_auth_takes_http1(here->auth, request), answer);
}

void gw_http_answer_operator(void *node, const struct net_http1_request *request,
                             struct net_http1_answer *answer)
{
    answer_path(node, request, true, answer);
}
