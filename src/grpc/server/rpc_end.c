/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a call ends. Whatever ends it, it goes the same way: its status is noted (settle), it joins
 * the list of those that have ended, and on_end is called when no session feeds: after the bytes
 * that ended it, or later in the round. So nobody is told from within a function he has called,
 * and a call may be made, and its memory used again, in on_end.
 */

#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/client/channel_internal.h"
#include "grpc/http2/frame.h"

enum { WORDS = 640, ARENA_AT_FIRST = 2048 };

/* ---- memory ------------------------------------------------------------------------------- */

static size_t memory_of(const struct grpc_rpc *rpc)
{
    return sizeof(*rpc) + rpc->arena.held + rpc->messages.held + rpc->kept.capacity +
           grpc_stream_buffers(&rpc->stream);
}

/* A burst leaves little behind: many small ones, or few large ones. */
static bool has_room(const struct grpc_channel *channel, const struct grpc_rpc *rpc)
{
    return !channel->is_ending && channel->n_spare < PEG_LIMIT_GRPC_SPARE_CALLS &&
           memory_of(rpc) <= PEG_LIMIT_GRPC_SPARE_BYTES &&
           channel->spare_bytes + memory_of(rpc) <= PEG_LIMIT_GRPC_SPARE_LIST_BYTES;
}

static void free_memory(struct grpc_rpc *rpc)
{
    peg__arena_free(&rpc->arena);
    peg__arena_free(&rpc->messages);
    peg__buf_free(&rpc->kept);
    grpc_stream_free(&rpc->stream);
    peg__free(rpc);
}

static void link_all(struct grpc_rpc **list, struct grpc_rpc *rpc)
{
    rpc->all = (struct grpc__link){.next = *list};
    if (*list)
        (*list)->all.prev = rpc;
    *list = rpc;
}

static void unlink_all(struct grpc_rpc **list, struct grpc_rpc *rpc)
{
    if (rpc->all.prev)
        rpc->all.prev->all.next = rpc->all.next;
    else
        *list = rpc->all.next;
    if (rpc->all.next)
        rpc->all.next->all.prev = rpc->all.prev;
}

/* A new one has room for what an ordinary call needs, so that it needs no more later. */
static struct grpc_rpc *allocate(void)
{
    struct grpc_rpc *rpc = peg__alloc_zero(1, sizeof(*rpc));

    if (!rpc)
        return NULL;
    if (!peg__arena_alloc(&rpc->arena, ARENA_AT_FIRST)) {
        peg__free(rpc);
        return NULL;
    }
    peg__arena_reset(&rpc->arena);
    return rpc;
}

struct grpc_rpc *grpc__rpc_new(struct grpc_channel *channel)
{
    struct grpc_rpc *rpc = channel->spare;

    if (rpc) {
        unlink_all(&channel->spare, rpc);
        channel->n_spare--;
        channel->spare_bytes -= memory_of(rpc);
    } else {
        rpc = allocate();
    }
    if (!rpc)
        return NULL;
    memset(rpc, 0, offsetof(struct grpc_rpc, arena));
    peg__buf_clear(&rpc->kept);
    rpc->kept.max = SIZE_MAX / 2;
    rpc->channel = channel;
    rpc->n_refs = 1;
    rpc->peer = "";
    rpc->is_keeping = true;
    rpc->deadline_ns = NET_NEVER;
    link_all(&channel->calls, rpc);
    channel->n_calls++;
    return rpc;
}

static void recycle(struct grpc_rpc *rpc)
{
    struct grpc_channel *channel = rpc->channel;

    if (!channel) {
        free_memory(rpc);
        return;
    }
    unlink_all(&channel->calls, rpc);
    peg__arena_reset(&rpc->arena);
    peg__arena_reset(&rpc->messages);
    if (!has_room(channel, rpc)) {
        free_memory(rpc);
        return;
    }
    channel->spare_bytes += memory_of(rpc);
    link_all(&channel->spare, rpc);
    channel->n_spare++;
}

void grpc__rpc_undo(struct grpc_rpc *rpc)
{
    rpc->channel->n_calls--;
    recycle(rpc);
}

void grpc__channel_free_spare(struct grpc_channel *channel)
{
    while (channel->spare) {
        struct grpc_rpc *rpc = channel->spare;

        unlink_all(&channel->spare, rpc);
        free_memory(rpc);
    }
    channel->n_spare = 0;
    channel->spare_bytes = 0;
}

struct grpc_rpc *grpc_rpc_ref(struct grpc_rpc *rpc)
{
    rpc->n_refs++;
    return rpc;
}

struct grpc_rpc *grpc_rpc_unref(struct grpc_rpc *rpc)
{
    if (rpc && --rpc->n_refs == 0)
        recycle(rpc);
    return NULL;
}

/* ---- the end ------------------------------------------------------------------------------ */

void grpc__rpc_leave_wire(struct grpc_rpc *rpc)
{
    struct grpc_client_conn *conn = rpc->conn;

    if (!conn)
        return;
    rpc->was_sent |= rpc->stream.has_left;
    rpc->conn = NULL;
    grpc_stream_drop(&rpc->stream, GRPC_H2_CANCEL);
    grpc_client_conn_gave(conn);
    if (rpc->channel->waiting.n > 0)
        net_loop_later(rpc->channel->loop, &rpc->channel->later);
}

void grpc__rpc_settle(struct grpc_rpc *rpc, const struct grpc_status *status)
{
    struct grpc_channel *channel = rpc->channel;

    if (rpc->state >= GRPC__RPC_ENDED)
        return;
    if (rpc->state == GRPC__RPC_WAITING)
        grpc__channel_forget_waiting(channel, rpc);
    rpc->state = GRPC__RPC_ENDED;
    rpc->status = *status;
    net_loop_disarm(channel->loop, &rpc->timer);
    if (rpc->hook.call)
        grpc_call_remove_hook(&rpc->hook);
    grpc__list_append(&channel->ended, rpc);
    net_loop_later(channel->loop, &channel->later);
}

void grpc__rpc_fail(struct grpc_rpc *rpc, enum grpc_code code, const char *fmt, ...)
{
    struct grpc_status status = {.code = code};
    char words[WORDS];
    va_list args;

    if (rpc->state >= GRPC__RPC_ENDED)
        return;
    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    status.message.len = peg__utf8_cut(words, strlen(words));
    status.message.ptr = peg__arena_copy(&rpc->arena, peg__strn(words, status.message.len));
    if (!status.message.ptr)
        status.message = (peg_str)PEG_LIT("out of memory for saying why");
    grpc__rpc_leave_wire(rpc);
    grpc__rpc_settle(rpc, &status);
}

static void tell(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    static const struct grpc_metadata no_trailers;
    const struct grpc_metadata *trailers =
        rpc->has_trailers ? &rpc->stream.head.metadata : &no_trailers;

    grpc__list_remove(&channel->ended, rpc);
    grpc__rpc_leave_wire(rpc); /* of a server that has answered before it heard everything */
    rpc->state = GRPC__RPC_TOLD;
    channel->n_calls--;
    if (channel->n_calls == 0)
        channel->last_call_ns = net_loop_now_ns(channel->loop);
    while (rpc->n_started > 0) {
        const struct grpc_client_interceptor *interceptor =
            &channel->interceptors[--rpc->n_started];

        if (interceptor->on_end)
            interceptor->on_end(rpc, &rpc->status, interceptor->user);
    }
    if (rpc->events.on_end)
        rpc->events.on_end(rpc, &rpc->status, trailers, rpc->user);
    grpc_rpc_unref(rpc);
}

void grpc__channel_report_ended(struct grpc_channel *channel)
{
    /* Those that end meanwhile have to wait: a program that calls again in on_end, and is refused
     * at once, must not hold up the loop. */
    for (size_t n = channel->ended.n; n > 0; n--)
        tell(channel, channel->ended.first);
}
