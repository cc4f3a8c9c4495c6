/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_CONN_H
#define PEG_BUS_REDIS_CONN_H

/*
 * One connection to a Redis: commands out, in the order in which they were asked, and replies in
 * the same order; published messages between them. Commands are gathered in a queue, which outlives
 * connections, and go out together.
 *
 *   mark = redis_queue_mark(queue);
 *   resp_put_command(&queue->out, 2); resp_puts(&queue->out, "GET"); resp_put(&queue->out, key);
 *   status = redis_queue_add(queue, mark, &request);
 *   redis_conn_send(conn, queue);
 *
 * On the loop's thread.
 */

#include <stdatomic.h>

#include "bus/redis/resp.h"
#include "net/stream/stream.h"

/* ---- commands that wait ---- */

/* Lies in the asker's memory until fn is called. */
struct redis_request {
    /* `reply` is borrowed. NULL: the connection was lost, and what was asked may have happened. */
    void (*fn)(struct redis_request *request, const struct resp_value *reply);
    /* Replies before the one that fn gets: those of commands that were added with it. */
    unsigned n_skipped;
    struct redis_request *next; /* the queue's */
};

struct redis_requests {
    struct redis_request *first;
    struct redis_request *last;
    size_t n;
};

/* Owned; all zero but for out.max. */
struct redis_queue {
    struct peg__buf out;
    struct redis_requests requests;
};

void redis_queue_init(struct redis_queue *queue);
/* The requests are the asker's. */
void redis_queue_free(struct redis_queue *queue);
static inline size_t redis_queue_mark(const struct redis_queue *queue)
{
    return queue->out.len;
}
/* What was put since the mark is the request's. PEG_ELIMIT, PEG_ENOMEM: the queue is as it was at
 * the mark, and fn is not called. */
peg_status redis_queue_add(struct redis_queue *queue, size_t mark,
                           struct redis_request *request) PEG_MUST_USE;
/* Everything that is in `from` goes behind what is in `queue`. PEG_ELIMIT, PEG_ENOMEM: nothing has
 * changed. */
peg_status redis_queue_move(struct redis_queue *queue, struct redis_queue *from) PEG_MUST_USE;
/* All of them get NULL. A request that is added meanwhile stays. */
void redis_queue_fail(struct redis_queue *queue);

/* ---- the connection ---- */

struct redis_conn;

/* Bytes on connections, counted as they go; any thread reads them. */
struct redis_traffic {
    atomic_ullong n_sent;
    atomic_ullong n_received;
};

/* Any of them may drop the connection. */
struct redis_conn_events {
    void (*on_open)(void *user);
    void (*on_push)(void *user, const struct resp_value *push);
    /* What was sent has left: more can be sent. */
    void (*on_drained)(void *user);
    /* It is gone, and every request has got NULL. E_REDIS_CONNECT, E_REDIS_PROTOCOL,
     * E_REDIS_TIMEOUT, or the error of redis_conn_doom(). */
    void (*on_lost)(void *user, const peg_error *error);
};

struct redis_conn_options {
    struct net_tls_config *tls;    /* NULL: plain */
    const char *host;              /* that its certificate must have */
    int64_t timeout_ms;            /* for the next reply */
    struct redis_traffic *traffic; /* outlives the connection; NULL: it is not counted */
};

peg_status redis_conn_new(struct net_loop *loop, const struct net_address *address,
                          const struct redis_conn_options *options,
                          const struct redis_conn_events *events, void *user,
                          struct redis_conn **ret_conn, peg_error *reterr);
/* Sends what is in the queue, unless the last is still on its way: then nothing is taken, and
 * on_drained() is the time to try again. */
void redis_conn_send(struct redis_conn *conn, struct redis_queue *queue);
bool redis_conn_is_blocked(const struct redis_conn *conn);
/* Requests without a reply. */
size_t redis_conn_n_pending(const struct redis_conn *conn);
/* It ends with this error as soon as no event of its own runs. */
void redis_conn_doom(struct redis_conn *conn, const peg_error *error);
/* Closes it: every request gets NULL, before this returns; no event comes. What was sent may still
 * arrive. NULL is allowed. */
struct redis_conn *redis_conn_drop(struct redis_conn *conn);

#endif
