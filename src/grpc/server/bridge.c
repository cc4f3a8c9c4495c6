/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that came as something else than gRPC: they have no stream and no connection. */

#include "base/error.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/server/internal.h"

static struct grpc__server_loop *find_loop(struct grpc_server *server, const struct net_loop *loop)
{
    for (unsigned i = 0; i < server->n_server_loops; i++) {
        if (server->server_loops[i].loop == loop)
            return &server->server_loops[i];
    }
    return NULL;
}

peg_status grpc_bridge_open(struct grpc_server *server, const struct net_loop *loop,
                            const char *path, const struct grpc_bridge *bridge,
                            struct grpc_call **ret_call, peg_error *reterr)
{
    const struct grpc_route *route = peg__map_get(&server->routes, peg__str(path));
    struct grpc__server_loop *server_loop = find_loop(server, loop);
    struct grpc_call *call;

    if (!route || !server_loop || !route->handler.on_message || route->method->client_streams)
        return peg__fail(reterr, PEG_ENOTFOUND, "E_GRPC_SERVICE",
                         "there is no method '%s' that takes one message", path);
    call = grpc__server_loop_take_call(server_loop);
    if (!call)
        return peg__fail_nomem(reterr);
    grpc_stream_init(&call->stream, &grpc__call_events, &call->arena,
                     server->options.max_message_bytes, server->options.max_header_bytes);
    call->bridge = bridge;
    call->route = route;
    call->method = route->method;
    call->deadline_ns = NET_NEVER;
    call->n_refs = 1;
    net_loop_add_load(server_loop->loop, 1);
    grpc__count(&server_loop->counts.n_started, 1);
    *ret_call = call;
    return PEG_OK;
}

peg_status grpc_bridge_add_metadata(struct grpc_call *call, peg_str key, peg_str value)
{
    return grpc_metadata_add_wire(&call->stream.head.metadata, &call->arena, key, value, NULL);
}

void grpc_bridge_start(struct grpc_call *call, const struct ProtobufCMessage *message)
{
    const struct grpc_handler *handler = &call->route->handler;

    grpc_call_ref(call);
    grpc__call_run_interceptors(call);
    call->handler_knows = !call->is_finished;
    if (call->handler_knows && handler->on_start)
        handler->on_start(call, call->route->user);
    if (!call->is_finished) {
        call->has_request = true;
        call->message = message;
        handler->on_message(call, message, call->route->user);
    }
    grpc_call_unref(call);
}

void grpc_bridge_writable(struct grpc_call *call)
{
    if (!call->is_finished && call->handler_knows && call->route->handler.on_writable)
        call->route->handler.on_writable(call, call->route->user);
}

struct grpc_call *grpc_bridge_end(struct grpc_call *call, bool was_lost)
{
    grpc__call_ended(call, was_lost ? GRPC_H2_CONNECT_ERROR : GRPC_H2_NO_ERROR);
    return NULL;
}

const struct grpc_metadata *grpc_bridge_headers(const struct grpc_call *call)
{
    return &call->headers;
}

const struct grpc_metadata *grpc_bridge_trailers(const struct grpc_call *call)
{
    return &call->trailers;
}
