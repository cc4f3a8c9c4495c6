/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_MCP_MCP_H
#define PEG_GATEWAY_MCP_MCP_H

/*
 * The catalog for MCP clients, over Streamable HTTP, in both eras:
 *
 *   /mcp           all tools, as `toolset__tool`
 *   /mcp/TOOLSET   those of one toolset, under their own names
 *   ?tools=search  three tools that find, describe and call the others
 *
 * A call is the one that gRPC makes. Each loop has a struct gw_mcp; a request belongs to the loop
 * of its connection. Between two requests nothing is kept but for legacy clients that can be asked,
 * which have sessions.
 */

#include "gateway/node.h"
#include "net/http/http.h"

struct gw_mcp;

/* On its loop, behind the calls of that loop. */
peg_status gw_mcp_new(struct gw_node *node, unsigned number, struct gw_mcp **ret_mcp,
                      peg_error *reterr);
/* Likewise, before them; after the HTTP server. */
struct gw_mcp *gw_mcp_free(struct gw_mcp *mcp);
/* The loop has a new snapshot: clients that listen are notified. `mcp` may be NULL. */
void gw_mcp_on_snapshot(struct gw_mcp *mcp);
/* The registry has another secret: sessions begin anew. `mcp` may be NULL. */
void gw_mcp_on_secret(struct gw_mcp *mcp);
/* Ends the streams of principals that are not known any more. */
void gw_mcp_end_unknown(struct gw_mcp *mcp, const struct gw_auth *auth);
/* BUS_SESSION. `mcp` may be NULL. */
void gw_mcp_on_message(struct gw_mcp *mcp, const struct bus_message *message);
/* The node stops: streams that would not end by themselves do. */
void gw_mcp_close(struct gw_mcp *mcp);

/* For routes whose user is the struct gw_node; the toolset is their first parameter, or there is
 * none. */
extern const struct net_http_handler gw_mcp_post;
extern const struct net_http_handler gw_mcp_get;
extern const struct net_http_handler gw_mcp_delete;
/* At /.well-known/oauth-protected-resource, and in front of the paths of these. */
extern const struct net_http_handler gw_mcp_metadata;

/* Can it be an authorization server? */
bool gw_mcp_is_issuer(const char *url);

#endif
