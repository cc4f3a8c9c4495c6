/* SPDX-License-Identifier: Apache-2.0 */

/* Which call of a channel goes where, and which ones wait: for a connection, or for one of those
 * that there are to have room. First come, first served. */

#include "base/text/str.h"
#include "grpc/client/channel_internal.h"

/* ---- lists -------------------------------------------------------------------------------- */

void grpc__list_append(struct grpc__list *list, struct grpc_rpc *rpc)
{
    rpc->queue = (struct grpc__link){.prev = list->last};
    if (list->last)
        list->last->queue.next = rpc;
    else
        list->first = rpc;
    list->last = rpc;
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

void grpc__list_remove(struct grpc__list *list, struct grpc_rpc *rpc)
{
    if (rpc->queue.prev)
        rpc->queue.prev->queue.next = rpc->queue.next;
    else
        list->first = rpc->queue.next;
    if (rpc->queue.next)
        rpc->queue.next->queue.prev = rpc->queue.prev;
    else
        list->last = rpc->queue.prev;
    rpc->queue = (struct grpc__link){0};
    list->n--;
}

/* ---- sending and waiting ------------------------------------------------------------------ */

/* An entry is the first member of its connection. */
static struct grpc_client_conn *pick(struct grpc_channel *channel)
{
    return (struct grpc_client_conn *)(void *)grpc_pick_next(&channel->pick);
}

static void fail_unavailable(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    grpc__rpc_fail(rpc, GRPC_UNAVAILABLE, "no connection to %s: %s", channel->authority,
                   channel->last_error.message);
}

void grpc__channel_send(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    struct grpc_client_conn *conn = NULL;

    if (channel->n_idle > 0 || channel->n_slots == 0)
        grpc__slots_wake(channel);
    if (channel->waiting.n == 0)
        conn = pick(channel);
    if (conn) {
        grpc__rpc_open(rpc, conn);
    } else if (channel->is_failing && channel->pick.n == 0 && !rpc->waits_for_ready) {
        fail_unavailable(channel, rpc);
    } else if (channel->waiting.n >= channel->options.max_waiting) {
        grpc__rpc_fail(rpc, GRPC_RESOURCE_EXHAUSTED,
                       "%zu calls wait for %s already, which is what max_waiting "
                       "(PEG_LIMIT_GRPC_WAITING_CALLS) allows: make fewer at once",
                       channel->waiting.n, channel->authority);
    } else {
        rpc->state = GRPC__RPC_WAITING;
        grpc__list_append(&channel->waiting, rpc);
    }
}

/* It goes on in a later round: where this is called, a connection may be about to end. */
void grpc__channel_send_again(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    rpc->state = GRPC__RPC_WAITING;
    put_first(&channel->waiting, rpc);
    net_loop_later(channel->loop, &channel->later);
}

void grpc__channel_forget_waiting(struct grpc_channel *channel, struct grpc_rpc *rpc)
{
    grpc__list_remove(&channel->waiting, rpc);
}

void grpc__channel_go_on(struct grpc_channel *channel)
{
    struct grpc_client_conn *conn;

    while (channel->waiting.first && (conn = pick(channel))) {
        struct grpc_rpc *rpc = channel->waiting.first;

        grpc__list_remove(&channel->waiting, rpc);
        grpc__rpc_open(rpc, conn);
    }
}

void grpc__channel_give_up(struct grpc_channel *channel)
{
    struct grpc_rpc *next;

    for (struct grpc_rpc *rpc = channel->waiting.first; rpc; rpc = next) {
        next = rpc->queue.next;
        if (!rpc->waits_for_ready)
            fail_unavailable(channel, rpc);
    }
}
