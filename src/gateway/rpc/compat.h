/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_COMPAT_H
#define PEG_GATEWAY_RPC_COMPAT_H

/* Handlers of the registries of goa-ai that need streams: compat_direct.c. `node` is the struct
 * gw_node. g0: registry.Registry; g1: goa_ai_registry.Registry. */

#include "grpc/server/server.h"

void gw_compat_register_g0(struct grpc_call *call, const void *message, void *node);
void gw_compat_register_g1(struct grpc_call *call, const void *message, void *node);
void gw_compat_call_tool_g1(struct grpc_call *call, const void *message, void *node);
void gw_compat_call_tool_g1_on_end(struct grpc_call *call, void *node);

/* compat.c: 1 to 256 bytes, as the reference checks it. False: the call has been answered. */
bool gw_compat_check_length(struct grpc_call *call, const char *text, const char *field);

#endif
