/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_COMPAT_H
#define PEG_GATEWAY_RPC_COMPAT_H

/*
 * What the two registries of goa-ai have in common. Their messages differ, so each has functions
 * that fill its own; which toolsets they tell of, and when they refuse, is decided here.
 *
 * On a node without Redis there are no streams for their providers to read: Register, and the
 * CallTool that answers with the name of such a stream, say so.
 */

#include "gateway/rpc/info.h"
#include "gateway/rpc/services.h"

/* Toolsets, in the arena of the call. */
struct gw_reported {
    const struct gw_toolset **toolsets;
    size_t n;
};

/* By tags, and by a query. False: the call has been answered. */
bool gw_compat_list(struct grpc_call *call, void *node, char *const *tags, size_t n_tags,
                    struct gw_reported *ret_listed);
bool gw_compat_search(struct grpc_call *call, void *node, const char *query,
                      struct gw_reported *ret_listed);
/* NULL: the call has been answered. */
const struct gw_toolset *gw_compat_get(struct grpc_call *call, void *node, const char *name);
/* 1 to 256 bytes, as the reference checks it. False: the call has been answered. */
bool gw_compat_check(struct grpc_call *call, const char *text, const char *field);

/* The words for an optional field: NULL if there are none. */
char *gw_compat_text(peg_str text);
/* Sends the answer, unless it is larger than clients take. NULL: there is no memory for it. */
void gw_compat_reply(struct grpc_call *call, const ProtobufCMessage *response);
void gw_compat_refuse(struct grpc_call *call);

void gw_compat_unregister(struct grpc_call *call, const char *name, void *node);
void gw_compat_pong(struct grpc_call *call, const char *ping_id, const char *toolset, void *node);

#endif
