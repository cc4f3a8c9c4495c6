/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard.v1.Registry: which function serves which method. */

#include "base/error.h"
#include "base/mem.h"
#include "gateway/rpc/services.h"

peg_status gw_service_registry_add(struct grpc_server *server, struct gw_node *node,
                                   peg_error *reterr)
{
    struct pegboard_v1_registry_handlers *handlers =
        (struct pegboard_v1_registry_handlers *)peg__alloc_zero(1, sizeof(*handlers));

    if (!handlers)
        return peg__fail_nomem(reterr);
    *handlers = (struct pegboard_v1_registry_handlers){
        .user = node,
        .register_ = gw_serve_register,
        .register_on_end = gw_serve_change_on_end,
        .unregister = gw_serve_unregister,
        .unregister_on_end = gw_serve_change_on_end,
        .attach_on_message = gw_serve_attach_on_message,
        .attach_on_half_close = gw_serve_attach_on_half_close,
        .attach_on_writable = gw_serve_attach_on_writable,
        .attach_on_end = gw_serve_attach_on_end,
        .emit_tool_result = gw_serve_emit,
        .emit_tool_result_on_end = gw_serve_emit_on_end,
        .pong = gw_serve_pong,
        .list_toolsets = gw_serve_list,
        .list_toolsets_on_end = gw_serve_list_on_end,
        .get_toolset = gw_serve_get,
        .search = gw_serve_search,
        .watch = gw_serve_watch,
        .watch_on_writable = gw_serve_watch_on_writable,
        .watch_on_end = gw_serve_watch_on_end,
        .call_tool = gw_serve_call_tool,
        .call_tool_on_end = gw_serve_call_on_end,
        .call_tool_stream = gw_serve_call_tool_stream,
        .call_tool_stream_on_end = gw_serve_call_on_end,
        .start_tool = gw_serve_start_tool,
        .start_tool_on_end = gw_serve_call_on_end,
        .await_tool = gw_serve_await_tool,
        .await_tool_on_end = gw_serve_call_on_end,
        .cancel_tool = gw_serve_cancel_tool,
        .cancel_tool_on_end = gw_serve_call_on_end,
    };

    node->handlers = handlers;
    return pegboard_v1_registry_add(server, handlers, reterr);
}
