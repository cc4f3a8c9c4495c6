/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_ADMIN_H
#define PEG_GATEWAY_RPC_ADMIN_H

/* pegboard.v1.Admin: for those who run the gateway (gw_auth_is_operator()); others are told
 * permission_denied. */

#include "gateway/node.h"

struct gw_admin;

/* Adds the service to node->server, before it listens, and counts the rates of node->metrics from
 * now on, on the first loop. As grpc_server_add(). */
peg_status gw_admin_new(struct gw_node *node, struct gw_admin **ret_admin, peg_error *reterr);
/* After the server, before the loops end. */
struct gw_admin *gw_admin_free(struct gw_admin *admin);

#endif
