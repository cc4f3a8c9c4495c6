/* SPDX-License-Identifier: Apache-2.0 */

/* The server on one loop: the connections that it was handed, and the memory of ended calls. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/server/internal.h"

static struct grpc__server_loop *home_of(struct grpc_server *server, const struct net_loop *loop)
{
    for (unsigned i = 0; i < server->n_homes; i++) {
        if (server->homes[i].loop == loop)
            return &server->homes[i];
    }
    return NULL;
}

void grpc__server_loop_accept(void *server, struct net_stream *stream)
{
    struct grpc__server_loop *home = home_of(server, net_stream_loop(stream));

    if (home && !home->is_draining && !grpc__conn_new(home, stream))
        return;
    net_stream_drop(stream);
}

/* ---- calls that are used again ------------------------------------------------------------------
 */

static size_t memory_of(const struct grpc_call *call)
{
    return sizeof(*call) + call->arena.held + call->message_arena.held +
           grpc_stream_buffers(&call->stream);
}

struct grpc_call *grpc__server_loop_take_call(struct grpc__server_loop *home)
{
    struct grpc_call *call = home->spare;

    if (call) {
        home->spare = call->next;
        home->n_spare--;
        home->spare_bytes -= memory_of(call);
    } else {
        call = peg__alloc_zero(1, sizeof(*call));
    }
    if (!call)
        return NULL;
    call->next = NULL;
    call->home = home;
    call->loop = home->loop;
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

void grpc__server_loop_hold_call(struct grpc__server_loop *home, struct grpc_call *call)
{
    call->is_held = true;
    call->prev = NULL;
    call->next = home->held;
    if (call->next)
        call->next->prev = call;
    home->held = call;
}

static void unhold(struct grpc_call *call)
{
    if (!call->is_held)
        return;
    call->is_held = false;
    if (call->prev)
        call->prev->next = call->next;
    else
        call->home->held = call->next;
    if (call->next)
        call->next->prev = call->prev;
}

/* A burst leaves little behind: many small ones, or few large ones. */
static bool has_room(const struct grpc__server_loop *home, const struct grpc_call *call)
{
    return home->n_spare < PEG_LIMIT_GRPC_SPARE_CALLS &&
           memory_of(call) <= PEG_LIMIT_GRPC_SPARE_BYTES &&
           home->spare_bytes + memory_of(call) <= PEG_LIMIT_GRPC_SPARE_LIST_BYTES;
}

/* Everything but the memory is forgotten. */
void grpc__server_loop_keep_call(struct grpc_call *call)
{
    struct grpc__server_loop *home = call->home;

    unhold(call);
    peg__arena_reset(&call->arena);
    peg__arena_reset(&call->message_arena);
    if (!home || !has_room(home, call)) {
        free_call(call);
        return;
    }
    home->spare_bytes += memory_of(call);
    peg__free(call->taken);
    call->taken = NULL;
    memset(&call->home, 0, sizeof(*call) - offsetof(struct grpc_call, home));
    call->next = home->spare;
    home->spare = call;
    home->n_spare++;
}

/* ---- the end
 * ---------------------------------------------------------------------------------------- */

void grpc__server_loop_report_if_empty(struct grpc__server_loop *home)
{
    struct grpc_server *server = home->server;

    if (!home->is_draining || home->conns || home->is_empty_told)
        return;
    home->is_empty_told = true;
    pthread_mutex_lock(&server->lock);
    server->n_empty_homes++;
    pthread_cond_signal(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

void grpc__server_loop_drain(struct net_message *message)
{
    struct grpc__server_loop *home = peg__container_of(message, struct grpc__server_loop, drain);

    home->is_draining = true;
    for (struct grpc__conn *conn = home->conns; conn;) {
        struct grpc__conn *next = conn->next; /* leaving may free it */

        grpc__conn_leave(conn, 0);
        conn = next;
    }
    grpc__server_loop_report_if_empty(home);
}

/* Whoever has a reference to it frees it. */
static void orphan(struct grpc_call *call)
{
    unhold(call);
    call->home = NULL;
    call->route = NULL;
}

void grpc__server_loop_drop(struct net_message *message)
{
    struct grpc__server_loop *home = peg__container_of(message, struct grpc__server_loop, drop);

    home->is_draining = true;
    while (home->conns)
        grpc__conn_drop(home->conns);
    while (home->held)
        orphan(home->held);
    grpc__server_loop_report_if_empty(home);
    pthread_mutex_lock(&home->server->lock);
    home->is_dropped = true;
    if (!home->is_evict_posted)
        home->server->n_dropped_homes++;
    pthread_cond_signal(&home->server->changed);
    pthread_mutex_unlock(&home->server->lock);
}

void grpc__server_loop_free(struct grpc__server_loop *home)
{
    while (home->spare) {
        struct grpc_call *call = home->spare;

        home->spare = call->next;
        free_call(call);
    }
}
