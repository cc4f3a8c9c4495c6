/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_HTTP_H
#define PEG_GATEWAY_RPC_HTTP_H

/*
 * HTTP/1.1 beside the RPCs:
 *
 *   /healthz   200 "ok", or 503 "draining": is this node alive and staying?
 *   /readyz    200 "ready", or 503: does it take calls?
 *   /metrics   text for Prometheus; on the port of the RPCs for those who may call
 */

#include "gateway/node.h"
#include "net/http1/http1.h"

/* For grpc_server_options.on_http1, `node` being the user. */
void gw_http_answer(void *node, const struct net_http1_request *request,
                    struct net_http1_answer *answer);

/* The same for a listener of --admin-addr, whose address is protection enough. */
void gw_http_answer_operator(void *node, const struct net_http1_request *request,
                             struct net_http1_answer *answer);

#endif
