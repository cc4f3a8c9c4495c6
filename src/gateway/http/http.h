/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_HTTP_HTTP_H
#define PEG_GATEWAY_HTTP_HTTP_H

/*
 * The registry as JSON over HTTP/1.1 and HTTP/2. A request becomes a call of the method of gRPC
 * that does the same (grpc_bridge_open()): the same principal, limits and promises. docs/http.md
 * has the routes, which are in the table of gateway/rpc/http.c.
 */

#include "gateway/node.h"
#include "net/http/http.h"

/* For net_http_options: rejects requests of other pages to paths of the API, and answers what
 * browsers ask before they send one. Its user is the struct gw_node. */
bool gw_api_admits(struct net_http_request *request, void *user);

/* For routes whose user is the struct gw_node. */
extern const struct net_http_handler gw_api_list_toolsets;  /* GET /v1/toolsets */
extern const struct net_http_handler gw_api_get_toolset;    /* GET /v1/toolsets/{toolset} */
extern const struct net_http_handler gw_api_put_toolset;    /* PUT */
extern const struct net_http_handler gw_api_delete_toolset; /* DELETE */
extern const struct net_http_handler gw_api_get_tool;       /* GET .../tools/{tool} */
extern const struct net_http_handler gw_api_start_call;     /* POST .../tools/{tool}/calls */
extern const struct net_http_handler gw_api_list_calls;     /* GET /v1/calls */
extern const struct net_http_handler gw_api_get_call;       /* GET /v1/calls/{call} */
extern const struct net_http_handler gw_api_delete_call;    /* DELETE */
extern const struct net_http_handler gw_api_answer_call;    /* POST /v1/calls/{call}/answers */
extern const struct net_http_handler gw_api_search;         /* GET /v1/search */
extern const struct net_http_handler gw_api_watch;          /* GET /v1/watch */
extern const struct net_http_handler gw_api_openapi;        /* GET /openapi.json */
extern const struct net_http_handler gw_api_status;         /* GET /v1/status */
extern const struct net_http_handler gw_console_page;       /* GET / */
extern const struct net_http_handler gw_console_part;       /* GET /console/{file} */

#endif
