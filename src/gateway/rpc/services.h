/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_SERVICES_H
#define PEG_GATEWAY_RPC_SERVICES_H

/*
 * The methods of pegboard.v1.Registry, each in the file of what it is about; service_registry.c
 * puts them into one table.
 */

#include "gateway/node.h"
#include "pegboard/v1/registry.grpc.h"

/* ---- service_call.c ---- */
void gw_serve_call_tool(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                        void *node);
void gw_serve_call_tool_stream(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                               void *node);
void gw_serve_start_tool(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                         void *node);
void gw_serve_await_tool(struct grpc_call *call, const Pegboard__V1__AwaitToolRequest *request,
                         void *node);
void gw_serve_cancel_tool(struct grpc_call *call, const Pegboard__V1__CancelToolRequest *request,
                          void *node);
/* All five. */
void gw_serve_call_on_end(struct grpc_call *call, void *node);
/* Meta, metadata and trace context, which may be in the metadata of the RPC, as fields 7 to 11 of
 * pegboard.v1.Call; in a buffer of the desk. PEG_ELIMIT: PEG_LIMIT_GATEWAY_METADATA_BYTES. */
peg_status gw_pack_rest(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                        struct gw_calls *desk, peg_str *ret_packed);

/* ---- service_emit.c ---- */
void gw_serve_emit(struct grpc_call *call, const Pegboard__V1__EmitToolResultRequest *request,
                   void *node);
void gw_serve_emit_on_end(struct grpc_call *call, void *node);

/* ---- service_attach.c ---- */
void gw_serve_attach_on_message(struct grpc_call *call, const Pegboard__V1__AttachRequest *frame,
                                void *node);
void gw_serve_attach_on_half_close(struct grpc_call *call, void *node);
void gw_serve_attach_on_writable(struct grpc_call *call, void *node);
void gw_serve_attach_on_end(struct grpc_call *call, void *node);
/* Asks every provider of a loop for which no call waits to attach elsewhere, once; if it is urgent
 * also those for which only calls of other nodes wait, which are sent back: with other nodes that
 * go on sending this might never end. On that loop. */
void gw_serve_attach_drain(struct gw_calls *desk, bool is_urgent);
/* Ends their streams. */
void gw_serve_attach_close(struct gw_calls *desk);

/* ---- service_register.c ---- */
void gw_serve_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                       void *node);
void gw_serve_unregister(struct grpc_call *call, const Pegboard__V1__UnregisterRequest *request,
                         void *node);
void gw_serve_pong(struct grpc_call *call, const Pegboard__V1__PongRequest *request, void *node);
/* Unregister for an operator, whoever registered it. `toolset` lives as long as the call. */
void gw_unregister_any(struct grpc_call *call, const char *toolset, struct gw_node *node);
/* Register and Unregister. */
void gw_serve_change_on_end(struct grpc_call *call, void *node);

/* ---- service_list.c ---- */
void gw_serve_list(struct grpc_call *call, const Pegboard__V1__ListToolsetsRequest *request,
                   void *node);
void gw_serve_list_on_end(struct grpc_call *call, void *node);

/* ---- service_discovery.c ---- */
void gw_serve_get(struct grpc_call *call, const Pegboard__V1__GetToolsetRequest *request,
                  void *node);
void gw_serve_search(struct grpc_call *call, const Pegboard__V1__SearchRequest *request,
                     void *node);
void gw_serve_watch(struct grpc_call *call, const Pegboard__V1__WatchRequest *request, void *node);
void gw_serve_watch_on_writable(struct grpc_call *call, void *node);
void gw_serve_watch_on_end(struct grpc_call *call, void *node);

/* ---- service_registry.c, service_g0.c, service_g1.c, service_admin.c ---- */
peg_status gw_service_registry_add(struct grpc_server *server, struct gw_node *node,
                                   peg_error *reterr);
peg_status gw_service_g0_add(struct grpc_server *server, struct gw_node *node, peg_error *reterr);
peg_status gw_service_g1_add(struct grpc_server *server, struct gw_node *node, peg_error *reterr);

#endif
