/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_RPC_H
#define PEG_GATEWAY_RPC_RPC_H

/*
 * The services of a gateway: pegboard.v1.Registry and .Admin, the registries of goa-ai, and
 * HTTP/1.1 beside them. The trailers of an error that ended a call have
 *
 *   pegboard-call-id         its id
 *   pegboard-started         "true" if it was handed to a provider, or may have been
 *   pegboard-retry-after-ms  when trying again makes sense
 *   pegboard-draining        "true" if it was refused because this node drains: ask another one
 *
 * and the headers of answers to callers, and to those who look for tools to call,
 *
 *   pegboard-epoch           to be sent as pegboard-asked-epoch when a call is asked for again
 */

#include "gateway/node.h"
#include "net/http/http.h"
#include "pegboard/v1/registry.grpc.h"

/* ---- answer.c: failures ---- */

void gw_fail(struct grpc_call *call, enum wire_error error, peg_str message);
/* Answers with the error of a check or of the catalog. */
void gw_fail_because(struct grpc_call *call, const peg_error *error);
void gw_fail_memory(struct grpc_call *call);
/* Answers with an outcome that is not the tool's own: its error is set. `id` may be NULL. */
void gw_fail_outcome(struct grpc_call *call, const struct calls_outcome *outcome,
                     const struct bus_id *id);
/* Answers a call that has ended: `rest`, which may be a part of `blob`, behind `head`. */
/* For a caller that takes no typed content: a response that has some is written anew into `buf`,
 * with JSON in its place. False: no memory. */
bool gw_flatten_outcome(struct calls_outcome *outcome, struct peg__buf *buf);
/* The call has ended, and its result cannot be sent. */
void gw_fail_unsent(struct grpc_call *call, const struct bus_id *id);
void gw_reply_outcome(struct grpc_call *call, const struct bus_id *id, peg_str head,
                      struct peg__blob *blob, peg_str rest);
/* For grpc_server_options: gives what was refused before a service saw it a name, and the code of
 * that name. */
void gw_describe(struct grpc_call *call, struct grpc_status *status);
/* Logs a caller who was denied something. `toolset` may be empty. */
void gw_report_refused(struct gw_event_log *log, const struct grpc_call *call,
                       enum wire_error error, peg_str toolset);
/* Before anything is answered. */
void gw_report_epoch(struct grpc_call *call, const struct calls_loop *calls);
/* Was this call asked for before, of registers that may have been others? */
bool gw_was_asked_elsewhere(struct grpc_call *call, const struct calls_loop *calls);

/* ---- answer.c: toolsets as messages, in the arena or borrowed from the toolset. NULL: no memory
 */

/* Texts in a message: those of protobuf-c are not const. */
static inline char *gw_text(peg_str text)
{
    return (char *)peg__unconst(text.ptr);
}

char **gw_info_tags(const peg_str *tags, size_t n, struct peg__arena *arena);
/* RFC 3339, seconds. */
char *gw_info_date(int64_t unix_ms, struct peg__arena *arena);
/* The stream of direct providers: "toolset:<name>:requests". */
char *gw_info_stream_id(peg_str toolset, struct peg__arena *arena);
/* With its health if there is a presence. */
Pegboard__V1__ToolsetInfo *gw_info_toolset(const struct gw_toolset *toolset,
                                           struct gw_presence *presence, struct peg__arena *arena);
/* All of its tools, with their schemas. */
Pegboard__V1__Tool **gw_info_tools(const struct gw_toolset *toolset, struct peg__arena *arena);

/* ---- answer.c: checks of requests, as the reference names them. PEG_EINVAL (E_MISSING_FIELD,
 * E_INVALID_LENGTH, E_INVALID_RANGE, E_NAME), PEG_ELIMIT ---- */

peg_status gw_check_name(const char *name, const char *field, peg_error *reterr);
peg_status gw_check_query(const char *query, peg_error *reterr);
peg_status gw_check_tags(size_t n, peg_error *reterr);
/* Of a page or a list of hits; 0 means the default. */
peg_status gw_check_size(uint32_t size, const char *field, peg_error *reterr);
size_t gw_size_or_default(uint32_t size);
/* NULL: the call has been answered. */
const struct gw_toolset *gw_find_toolset(struct grpc_call *call, const char *name,
                                         const struct gw_snapshot *snapshot);

/* ---- call.c ---- */

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
/* Packs meta, metadata and trace context, which may be in the metadata of the RPC, as fields of
 * pegboard.v1.Call, into calls->frame. PEG_ENOMEM; PEG_ELIMIT: PEG_LIMIT_GATEWAY_METADATA_BYTES. */
peg_status gw_pack_rest(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                        struct calls_loop *calls, peg_str *ret_packed);

/* ---- describe.c ---- */

void gw_serve_describe_call(struct grpc_call *call,
                            const Pegboard__V1__DescribeCallRequest *request, void *node);
void gw_serve_describe_call_on_end(struct grpc_call *call, void *node);

/* ---- list_calls.c ---- */

void gw_serve_list_calls(struct grpc_call *call, const Pegboard__V1__ListCallsRequest *request,
                         void *node);
void gw_serve_list_calls_on_end(struct grpc_call *call, void *node);

/* ---- questions.c ---- */

void gw_serve_answer_call(struct grpc_call *call, const Pegboard__V1__AnswerCallRequest *request,
                          void *node);
void gw_serve_answer_call_on_end(struct grpc_call *call, void *node);

/* ---- attach.c ---- */

void gw_serve_attach_on_message(struct grpc_call *call, const Pegboard__V1__AttachRequest *frame,
                                void *node);
void gw_serve_attach_on_half_close(struct grpc_call *call, void *node);
void gw_serve_attach_on_writable(struct grpc_call *call, void *node);
void gw_serve_attach_on_end(struct grpc_call *call, void *node);
/* Asks every provider of a loop that no call waits for to attach elsewhere, once. If it is urgent,
 * also those that only calls of other nodes wait for, which are sent back: other nodes might go on
 * sending for ever. On that loop. */
void gw_serve_attach_drain(struct calls_loop *calls, bool is_urgent);
/* Ends their streams. */
void gw_serve_attach_close(struct calls_loop *calls);

/* ---- register.c ---- */

/* Answers that the toolset is registered. */
typedef void gw_register_reply_fn(struct grpc_call *call, const struct gw_toolset *toolset);
void gw_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                 struct gw_node *node, gw_register_reply_fn *reply);
void gw_serve_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                       void *node);

void gw_serve_unregister(struct grpc_call *call, const Pegboard__V1__UnregisterRequest *request,
                         void *node);
/* Unregister for an operator, regardless of the owner. `toolset` lives as long as the call. */
void gw_unregister_any(struct grpc_call *call, const char *toolset, struct gw_node *node);
/* Register and Unregister. */
void gw_serve_change_on_end(struct grpc_call *call, void *node);

/* ---- emit.c ---- */

void gw_serve_pong(struct grpc_call *call, const Pegboard__V1__PongRequest *request, void *node);
void gw_serve_emit(struct grpc_call *call, const Pegboard__V1__EmitToolResultRequest *request,
                   void *node);
void gw_serve_emit_on_end(struct grpc_call *call, void *node);

/* ---- watch.c: the Watch streams of one loop. Each reports what the catalog holds, then each
 * change of it. A reader that is too slow receives a notice of the loss, and starts over: its
 * queue is bounded. ---- */

struct gw_watches;
/* `changes` are the node's, and outlive it. */
peg_status gw_watches_new(struct calls_loop *calls, struct gw_changes *changes,
                          struct gw_watches **ret_watches, peg_error *reterr);
struct gw_watches *gw_watches_free(struct gw_watches *watches);
/* The loop has a new snapshot; its first one too. `watches` may be NULL. */
void gw_watches_on_snapshot(struct gw_watches *watches, struct gw_snapshot *snapshot);
/* The health or the providers of a toolset have changed. */
void gw_watches_on_health(struct gw_watches *watches, peg_str toolset);
/* Ends the streams of principals that are not known any more (unauthenticated). */
void gw_watches_end_unknown(struct gw_watches *watches, const struct gw_auth *auth);
/* The node stops: every stream ends (service_unavailable). */
void gw_watches_close(struct gw_watches *watches);
void gw_serve_watch(struct grpc_call *call, const Pegboard__V1__WatchRequest *request, void *node);
void gw_serve_watch_on_writable(struct grpc_call *call, void *node);
void gw_serve_watch_on_end(struct grpc_call *call, void *node);

/* ---- services, to be added before the server listens. As grpc_server_add() ---- */

peg_status gw_service_registry_add(struct grpc_server *server, struct gw_node *node,
                                   peg_error *reterr);
/* registry.Registry and goa_ai_registry.Registry. */
peg_status gw_service_compat_add(struct grpc_server *server, struct gw_node *node,
                                 peg_error *reterr);
/* pegboard.v1.Admin, for operators (gw_auth_is_operator()). Also updates the rates of node->metrics
 * from now on, on the first loop. */
struct gw_admin;
peg_status gw_admin_new(struct gw_node *node, struct gw_admin **ret_admin, peg_error *reterr);
/* After the server, before the loops end. */
struct gw_admin *gw_admin_free(struct gw_admin *admin);

/* ---- nodes.c: Nodes and DrainNode, for callers who are operators ---- */

struct Pegboard__V1__NodeInfo;
struct Pegboard__V1__DrainNodeRequest;
/* What this node is. NULL: no memory. */
struct Pegboard__V1__NodeInfo *gw_info_node(struct gw_node *node, struct calls_loop *calls,
                                            struct peg__arena *arena);
/* All nodes, by id. False: no memory. */
bool gw_info_nodes(struct gw_node *node, struct calls_loop *calls, struct peg__arena *arena,
                   struct Pegboard__V1__NodeInfo ***ret_nodes, size_t *ret_n);
void gw_serve_nodes(struct grpc_call *call, struct gw_node *node);
void gw_serve_drain(struct grpc_call *call, const struct Pegboard__V1__DrainNodeRequest *request,
                    struct gw_node *node);
void gw_serve_drain_on_end(struct grpc_call *call, void *user);

/* ---- http.c: what is served beside gRPC
 *
 *   /healthz   200 "ok", or 503 "draining": is this node alive and staying?
 *   /readyz    200 "ready", or 503: does it take calls?
 *   /metrics   text for Prometheus; on the port of the RPCs for those who may call ---- */

/* is_operator: for a listener of --admin-addr, whose address is protection enough. Freed after the
 * server that has it. */
peg_status gw_http_new(struct gw_node *node, bool is_operator, struct net_http_server **ret_http,
                       peg_error *reterr);

#endif
