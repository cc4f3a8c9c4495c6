/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/rpc.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/http/http.h"
#include "gateway/mcp/mcp.h"
#include "gateway/telemetry/metrics.h"

/* The number of the loop that this runs on. */
static unsigned number_here(const struct gw_node *node)
{
    unsigned i = 0;

    while (i + 1 < net_loops_len(node->loops) && !net_loop_is_here(net_loops_at(node->loops, i)))
        i++;
    return i;
}

/* ---- probes ---- */

static void answer_health(struct net_http_request *request, peg_str body, void *user)
{
    const struct gw_node *node = user;

    (void)body;
    if (atomic_load(&node->is_draining))
        net_http_reply_text(request, 503, "draining");
    else
        net_http_reply_text(request, 200, "ok");
}

static void answer_ready(struct net_http_request *request, peg_str body, void *user)
{
    const struct gw_node *node = user;
    const unsigned here = number_here(node);
    const struct calls_loop *calls = here < node->n_loops ? node->calls[here] : NULL;

    (void)body;
    if (atomic_load(&node->is_draining))
        net_http_reply_text(request, 503, "draining");
    else if (!calls || !gw_router_of(calls)->snapshot)
        net_http_reply_text(request, 503, "starting");
    else
        net_http_reply_text(request, 200, "ready");
}

/* ---- metrics ---- */

struct metrics_request {
    struct gw_page_waiter waiter;
    struct net_http_request *request;
};

static void send_metrics(struct gw_page_waiter *waiter, struct peg__blob *text)
{
    static const struct net_http_answer answer = {
        .status = 200,
        .content_type = "text/plain; version=0.0.4; charset=utf-8",
    };
    const struct metrics_request *own = peg__container_of(waiter, struct metrics_request, waiter);

    if (text)
        net_http_reply_blob(own->request, &answer, text);
    else
        net_http_reply_text(own->request, 503, "out of memory: try again later");
}

static void answer_metrics(struct net_http_request *request, peg_str body, void *user)
{
    const struct gw_node *node = user;
    struct metrics_request *own = peg__arena_alloc_zero(request->arena, sizeof(*own));

    (void)body;
    if (!own) {
        net_http_reset(request);
        return;
    }
    own->waiter.fn = send_metrics;
    own->request = request;
    request->state = own;
    gw_metrics_page_ask(node->metrics_page, number_here(node), &own->waiter);
}

static void end_metrics(struct net_http_request *request, void *user)
{
    const struct gw_node *node = user;
    struct metrics_request *own = request->state;

    if (own)
        gw_metrics_page_leave(node->metrics_page, number_here(node), &own->waiter);
}

static void check_reader(struct net_http_request *request, void *user)
{
    const struct gw_node *node = user;
    struct peg__buf principal = PEG__BUF(PEG_LIMIT_TLS_NAME_BYTES + 8);

    if (!node->auth || gw_auth_takes_http(node->auth, request, &principal)) {
        if (principal.len)
            net_http_authenticate(request, peg__buf_view(&principal));
    } else {
        gw_auth_note_http(node->auth, request);
        net_http_reply_text(
            request, 401,
            "send 'Authorization: Bearer <token>' with a token of this gateway, connect "
            "with a client certificate if it has --tls-client-ca, or ask on its "
            "--admin-addr");
    }
    peg__buf_free(&principal);
}

/* ---- all paths ---- */

enum { NO_BODY = 1 << 10 }; /* probes have none; one that does is read and ignored */

static const struct net_http_handler health = {.on_request = answer_health, .max_body = NO_BODY};
static const struct net_http_handler readiness = {.on_request = answer_ready, .max_body = NO_BODY};
static const struct net_http_handler metrics = {
    .on_head = check_reader,
    .on_request = answer_metrics,
    .on_end = end_metrics,
    .max_body = NO_BODY,
};
static const struct net_http_handler operator_metrics = {
    .on_request = answer_metrics,
    .on_end = end_metrics,
    .max_body = NO_BODY,
};

static const struct net_http_route routes[] = {
    {"GET", "/healthz", &health},
    {"GET", "/readyz", &readiness},
    {"GET", "/metrics", &metrics},
    {"POST", "/mcp", &gw_mcp_post},
    {"GET", "/mcp", &gw_mcp_get},
    {"POST", "/mcp/{toolset}", &gw_mcp_post},
    {"GET", "/mcp/{toolset}", &gw_mcp_get},
    {"DELETE", "/mcp", &gw_mcp_delete},
    {"GET", "/.well-known/oauth-protected-resource", &gw_mcp_metadata},
    {"GET", "/.well-known/oauth-protected-resource/mcp", &gw_mcp_metadata},
    {"GET", "/.well-known/oauth-protected-resource/mcp/{toolset}", &gw_mcp_metadata},
    {"DELETE", "/mcp/{toolset}", &gw_mcp_delete},
    {"GET", "/v1/toolsets", &gw_api_list_toolsets},
    {"GET", "/v1/toolsets/{toolset}", &gw_api_get_toolset},
    {"PUT", "/v1/toolsets/{toolset}", &gw_api_put_toolset},
    {"DELETE", "/v1/toolsets/{toolset}", &gw_api_delete_toolset},
    {"GET", "/v1/toolsets/{toolset}/tools/{tool}", &gw_api_get_tool},
    {"POST", "/v1/toolsets/{toolset}/tools/{tool}/calls", &gw_api_start_call},
    {"GET", "/v1/calls", &gw_api_list_calls},
    {"GET", "/v1/calls/{call}", &gw_api_get_call},
    {"DELETE", "/v1/calls/{call}", &gw_api_delete_call},
    {"POST", "/v1/calls/{call}/answers", &gw_api_answer_call},
    {"GET", "/v1/search", &gw_api_search},
    {"GET", "/v1/watch", &gw_api_watch},
    {"GET", "/v1/status", &gw_api_status},
    {"GET", "/openapi.json", &gw_api_openapi},
    {"GET", "/", &gw_console_page},
    {"GET", "/console/{file}", &gw_console_part},
};
static const struct net_http_route operator_routes[] = {
    {"GET", "/healthz", &health},
    {"GET", "/readyz", &readiness},
    {"GET", "/metrics", &operator_metrics},
};

peg_status gw_http_new(struct gw_node *node, bool is_operator, struct net_http_server **ret_http,
                       peg_error *reterr)
{
    const struct net_http_options options = {
        .routes = is_operator ? operator_routes : routes,
        .n_routes = is_operator ? sizeof(operator_routes) / sizeof(operator_routes[0])
                                : sizeof(routes) / sizeof(routes[0]),
        .user = node,
        .admits = is_operator ? NULL : gw_api_admits,
        .not_found = is_operator
                         ? "there are /healthz, /readyz and /metrics here\n"
                         : "there are /v1, /mcp, /healthz, /readyz and /metrics here, and gRPC\n",
    };

    return net_http_server_new(&options, ret_http, reterr);
}
