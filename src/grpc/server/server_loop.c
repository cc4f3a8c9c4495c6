/* SPDX-License-Identifier: Apache-2.0 */

/* What the server keeps for one loop: the memory of ended calls, and whether connections are left.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/server/internal.h"

static size_t call_memory(const struct grpc_call *call)
{
    return sizeof(*call) + call->arena.held + call->message_arena.held +
           grpc_stream_buffers(&call->stream);
}

struct grpc_call *grpc__server_loop_take_call(struct grpc__server_loop *server_loop)
{
    struct grpc_call *call = server_loop->spare;

    if (call) {
        server_loop->spare = call->next;
        server_loop->n_spare--;
        server_loop->spare_bytes -= call_memory(call);
    } else {
        call = peg__alloc_zero(1, sizeof(*call));
    }
    if (!call)
        return NULL;
    call->next = NULL;
    call->server_loop = server_loop;
    call->loop = server_loop->loop;
    return call;
}

static void free_call(struct grpc_call *call)
{
    grpc_stream_free(&call->stream);
    peg__arena_free(&call->arena);
    peg__arena_free(&call->message_arena);
    peg__free(call->taken);
    peg__free(call);
}

void grpc__server_loop_hold_call(struct grpc__server_loop *server_loop, struct grpc_call *call)
{
    call->is_held = true;
    PEG_LIST_PUSH(server_loop->held, call, next, prev);
}

static void unlink_held(struct grpc_call *call)
{
    if (!call->is_held)
        return;
    call->is_held = false;
    PEG_LIST_REMOVE(call->server_loop->held, call, next, prev);
}

/* Many small ones, or few large ones. */
static bool may_pool_call(const struct grpc__server_loop *server_loop, const struct grpc_call *call)
{
    return server_loop->n_spare < PEG_LIMIT_GRPC_SPARE_CALLS &&
           call_memory(call) <= PEG_LIMIT_GRPC_SPARE_BYTES &&
           server_loop->spare_bytes + call_memory(call) <= PEG_LIMIT_GRPC_SPARE_LIST_BYTES;
}

/* Everything but the memory is forgotten. */
void grpc__server_loop_pool_call(struct grpc_call *call)
{
    struct grpc__server_loop *server_loop = call->server_loop;

    unlink_held(call);
    peg__arena_reset(&call->arena);
    peg__arena_reset(&call->message_arena);
    if (!server_loop || !may_pool_call(server_loop, call)) {
        free_call(call);
        return;
    }
    server_loop->spare_bytes += call_memory(call);
    peg__free(call->taken);
    call->taken = NULL;
    memset(&call->server_loop, 0, sizeof(*call) - offsetof(struct grpc_call, server_loop));
    call->next = server_loop->spare;
    server_loop->spare = call;
    server_loop->n_spare++;
}

void grpc__server_loop_orphan_calls(struct grpc__server_loop *server_loop)
{
    while (server_loop->held) {
        struct grpc_call *call = server_loop->held;

        unlink_held(call);
        call->server_loop = NULL;
        call->route = NULL;
    }
}

void grpc__server_loop_report_if_empty(struct grpc__server_loop *server_loop)
{
    struct grpc_server *server = server_loop->server;

    if (!server_loop->is_draining || server_loop->conns || server_loop->is_empty_reported)
        return;
    server_loop->is_empty_reported = true;
    pthread_mutex_lock(&server->lock);
    server->n_empty_loops++;
    pthread_cond_signal(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

void grpc__server_loop_free(struct grpc__server_loop *server_loop)
{
    while (server_loop->spare) {
        struct grpc_call *call = server_loop->spare;

        server_loop->spare = call->next;
        free_call(call);
    }
}
