/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/rpc.h"

#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/telemetry/metrics.h"

static void answer_with(struct net_http1_answer *answer, int status, const char *words)
{
    answer->status = status;
    peg__buf_puts(&answer->body, words);
}

/* The number of the loop that this runs on. */
static unsigned number_here(const struct gw_node *node)
{
    unsigned i = 0;

    while (i + 1 < net_loops_len(node->loops) && !net_loop_is_here(net_loops_at(node->loops, i)))
        i++;
    return i;
}

/* ---- all paths ---- */

static void answer_health(const struct gw_node *node, struct net_http1_answer *answer)
{
    if (atomic_load(&node->is_draining))
        answer_with(answer, 503, "draining\n");
    else
        answer_with(answer, 200, "ok\n");
}

static void answer_ready(const struct gw_node *node, struct net_http1_answer *answer)
{
    const unsigned here = number_here(node);
    const struct calls_loop *calls = here < node->n_loops ? node->calls[here] : NULL;

    if (atomic_load(&node->is_draining))
        answer_with(answer, 503, "draining\n");
    else if (!calls || !gw_router_of(calls)->snapshot)
        answer_with(answer, 503, "starting\n");
    else
        answer_with(answer, 200, "ready\n");
}

static void reject_unauthenticated(const struct gw_node *node,
                                   const struct net_http1_request *request,
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
        gw_metrics_page_answer(node->metrics_page, number_here(node), request, answer);
    else
        reject_unauthenticated(node, request, answer);
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
