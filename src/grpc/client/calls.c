/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of a channel: their memory, which ones wait for a connection (first come, first
 * served), and their end. Whatever ends a call, its status is noted (settle), it joins the list of
 * those that have ended, and on_end is called when no session feeds: after the bytes that ended it,
 * or later in the round. So on_end never comes from within a function of the program's, and may
 * make calls.
 */

#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/client/internal.h"
#include "grpc/http2/session.h"

enum { MESSAGE_BYTES = 640, ARENA_AT_FIRST = 2048 };

/* ---- lists -------------------------------------------------------------------------------- */

static void append_rpc(struct grpc__list *list, struct grpc_rpc *rpc)
{
    PEG_QUEUE_APPEND(list, rpc, queue.next, queue.prev);
    list->n++;
}

static void put_first(struct grpc__list *list, struct grpc_rpc *rpc)
{
    rpc->queue = (struct grpc__link){.next = list->first};
    if (list->first)
        list->first->queue.prev = rpc;
    else
        list->last = rpc;
    list->first = rpc;
    list->n++;
}

static void remove_rpc(struct grpc__list *list, struct grpc_rpc *rpc)
{
    PEG_QUEUE_REMOVE(list, rpc, queue.next, queue.prev);
    rpc->queue = (struct grpc__link){0};
    list->n--;
}

/* ---- memory ------------------------------------------------------------------------------- */

static size_t rpc_memory(const struct grpc_rpc *rpc)
{
    return sizeof(*rpc) + rpc->arena.held + rpc->messages.held + rpc->kept.capacity +
           grpc_stream_buffers(&rpc->stream);
}

/* Many small ones, or few large ones. */
static bool may_pool_rpc(const struct grpc_channel *channel, const struct grpc_rpc *rpc)
{
    return !channel->is_ending && channel->n_spare < PEG_LIMIT_GRPC_SPARE_CALLS &&
           rpc_memory(rpc) <= PEG_LIMIT_GRPC_SPARE_BYTES &&
           channel->spare_bytes + rpc_memory(rpc) <= PEG_LIMIT_GRPC_SPARE_LIST_BYTES;
}

static void free_memory(struct grpc_rpc *rpc)
{
    peg__arena_free(&rpc->arena);
    peg__arena_free(&rpc->messages);
    peg__buf_free(&rpc->kept);
    grpc_stream_free(&rpc->stream);
    peg__free(rpc);
}

/* With the memory that an ordinary call needs. */
static struct grpc_rpc *allocate_rpc(void)
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
        PEG_LIST_REMOVE(channel->spare, rpc, all.next, all.prev);
        channel->n_spare--;
        channel->spare_bytes -= rpc_memory(rpc);
    } else {
        rpc = allocate_rpc();
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
    PEG_LIST_PUSH(channel->calls, rpc, all.next, all.prev);
    channel->n_calls++;
    return rpc;
}

static void pool_rpc(struct grpc_rpc *rpc)
{
    struct grpc_channel *channel = rpc->channel;

    if (!channel) {
        free_memory(rpc);
        return;
    }
    PEG_LIST_REMOVE(channel->calls, rpc, all.next, all.prev);
    peg__arena_reset(&rpc->arena);
    peg__arena_reset(&rpc->messages);
    if (!may_pool_rpc(channel, rpc)) {
        free_memory(rpc);
        return;
    }
    channel->spare_bytes += rpc_memory(rpc);
    PEG_LIST_PUSH(channel->spare, rpc, all.next, all.prev);
    channel->n_spare++;
}

void grpc__rpc_undo(struct grpc_rpc *rpc)
{
    rpc->channel->n_calls--;
    pool_rpc(rpc);
}

void grpc__channel_free_spare(struct grpc_channel *channel)
{
    while (channel->spare) {
        struct grpc_rpc *rpc = channel->spare;

        PEG_LIST_REMOVE(channel->spare, rpc, all.next, all.prev);
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
        pool_rpc(rpc);
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
        remove_rpc(&channel->waiting, rpc);
    rpc->state = GRPC__RPC_ENDED;
    rpc->status = *status;
    net_loop_disarm(channel->loop, &rpc->timer);
    if (rpc->hook.call)
        grpc_call_remove_hook(&rpc->hook);
    append_rpc(&channel->ended, rpc);
    net_loop_later(channel->loop, &channel->later);
}

void grpc__rpc_fail(struct grpc_rpc *rpc, enum grpc_code code, const char *fmt, ...)
{
    struct grpc_status status = {.code = code};
    char text[MESSAGE_BYTES];
    va_list args;

    if (rpc->state >= GRPC__RPC_ENDED)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    status.message.len = peg__utf8_cut(text, strlen(text));
    status.message.ptr = peg__arena_copy(&rpc->arena, peg__strn(text, status.message.len));
    if (!status.message.ptr)
        status.message = (peg_str)PEG_LIT("out of memory");
    grpc__rpc_leave_wire(rpc);
    grpc__rpc_settle(rpc, &status);
}

static void report_end(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    static const struct grpc_metadata no_trailers;
    const struct grpc_metadata *trailers =
        rpc->has_trailers ? &rpc->stream.head.metadata : &no_trailers;

    remove_rpc(&channel->ended, rpc);
    grpc__rpc_leave_wire(rpc); /* of a server that has answered before the end of the request */
    rpc->state = GRPC__RPC_REPORTED;
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
    /* Those that end meanwhile wait: a program that calls again in on_end, and fails at once, must
     * not hold up the loop. */
    for (size_t n = channel->ended.n; n > 0; n--)
        report_end(channel, channel->ended.first);
}

/* ---- sending and waiting ------------------------------------------------------------------ */

/* An entry is the first member of its connection. */
static struct grpc_client_conn *pick_conn(struct grpc_channel *channel)
{
    return (struct grpc_client_conn *)(void *)grpc_pick_next(&channel->pick);
}

static void fail_unavailable(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    grpc__rpc_fail(rpc, GRPC_UNAVAILABLE, "no connection to %s: %s", channel->label,
                   channel->last_error.message);
}

void grpc__channel_send(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    struct grpc_client_conn *conn = NULL;

    if (channel->n_idle > 0 || channel->n_slots == 0)
        grpc__slots_wake(channel);
    if (channel->waiting.n == 0)
        conn = pick_conn(channel);
    if (conn) {
        grpc__rpc_open(rpc, conn);
    } else if (channel->is_failing && channel->pick.n == 0 && !rpc->waits_for_ready) {
        fail_unavailable(channel, rpc);
    } else if (channel->waiting.n >= channel->options.max_waiting) {
        grpc__rpc_fail(
            rpc, GRPC_RESOURCE_EXHAUSTED,
            "%zu calls wait for %s already, the most that max_waiting allows: make fewer at "
            "once",
            channel->waiting.n, channel->label);
    } else {
        rpc->state = GRPC__RPC_WAITING;
        append_rpc(&channel->waiting, rpc);
    }
}

/* It goes on in a later round: where this is called, a connection may be about to end. */
void grpc__channel_send_again(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    rpc->state = GRPC__RPC_WAITING;
    put_first(&channel->waiting, rpc);
    net_loop_later(channel->loop, &channel->later);
}

void grpc__channel_open_waiting(struct grpc_channel *channel)
{
    struct grpc_client_conn *conn;

    while (channel->waiting.first && (conn = pick_conn(channel))) {
        struct grpc_rpc *rpc = channel->waiting.first;

        remove_rpc(&channel->waiting, rpc);
        grpc__rpc_open(rpc, conn);
    }
}

void grpc__channel_fail_waiting(struct grpc_channel *channel)
{
    struct grpc_rpc *next;

    for (struct grpc_rpc *rpc = channel->waiting.first; rpc; rpc = next) {
        next = rpc->queue.next;
        if (!rpc->waits_for_ready)
            fail_unavailable(channel, rpc);
    }
}
