/* SPDX-License-Identifier: Apache-2.0 */

/*
 *   queue --send--> out --write--> the socket;  requests wait in `pending`, in order
 *   the socket --on_bytes--> reader --> on_push, or the first pending request
 *
 * What is called here may drop the connection, so its memory stays while it is used (n_holds).
 */

#include "bus/redis/conn.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

struct redis_conn {
    struct net_loop *loop;
    struct net_stream *stream; /* NULL: it is gone */
    struct redis_conn_events events;
    void *user;
    struct resp_reader reader;
    struct peg__buf out; /* being written */
    size_t n_written;    /* of it */
    struct redis_requests pending;
    unsigned n_skipped; /* replies of the first pending request that came already */
    struct net_timer watchdog;
    int64_t timeout_ns;
    struct redis_traffic *traffic;
    int64_t progress_ns; /* when the last reply came, or when the first request was sent */
    bool is_awaited;     /* the loop expects replies */
    bool has_tls;
    bool is_doomed;
    bool is_dropped;
    peg_error doom;
    unsigned n_holds;
};

/* ---- queues -------------------------------------------------------------------------------- */

static void append_requests(struct redis_requests *to, struct redis_requests *from)
{
    if (!from->first)
        return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->n += from->n;
    *from = (struct redis_requests){0};
}

static struct redis_request *take_request(struct redis_requests *requests)
{
    struct redis_request *first = requests->first;

    if (!first)
        return NULL;
    requests->first = first->next;
    if (!requests->first)
        requests->last = NULL;
    requests->n--;
    first->next = NULL;
    return first;
}

static void fail_requests(struct redis_requests *requests)
{
    struct redis_requests failed = *requests;
    struct redis_request *request;

    *requests = (struct redis_requests){0};
    while ((request = take_request(&failed)))
        request->fn(request, NULL);
}

void redis_queue_init(struct redis_queue *queue)
{
    *queue = (struct redis_queue){.out = PEG__BUF(PEG_LIMIT_REDIS_OUT_BYTES)};
}

void redis_queue_free(struct redis_queue *queue)
{
    peg__buf_free(&queue->out);
    queue->requests = (struct redis_requests){0};
}

peg_status redis_queue_add(struct redis_queue *queue, size_t mark, struct redis_request *request)
{
    struct redis_requests one = {.first = request, .last = request, .n = 1};
    peg_status status = queue->out.status;

    if (!status && queue->requests.n >= PEG_LIMIT_REDIS_PENDING)
        status = PEG_ELIMIT;
    if (status) {
        queue->out.len = mark;
        queue->out.status = PEG_OK;
        return status;
    }
    request->next = NULL;
    append_requests(&queue->requests, &one);
    return PEG_OK;
}

peg_status redis_queue_move(struct redis_queue *queue, struct redis_queue *from)
{
    const size_t mark = redis_queue_mark(queue);
    peg_status status = PEG_OK;

    peg__buf_str(&queue->out, peg__buf_view(&from->out));
    if (queue->out.status) {
        status = queue->out.status;
        queue->out.len = mark;
        queue->out.status = PEG_OK;
        return status;
    }
    peg__buf_clear(&from->out);
    append_requests(&queue->requests, &from->requests);
    return status;
}

void redis_queue_fail(struct redis_queue *queue)
{
    peg__buf_clear(&queue->out);
    fail_requests(&queue->requests);
}

/* ---- its end ------------------------------------------------------------------------------- */

static void hold(struct redis_conn *conn)
{
    conn->n_holds++;
}

static void release(struct redis_conn *conn)
{
    if (--conn->n_holds > 0)
        return;
    resp_reader_free(&conn->reader);
    peg__buf_free(&conn->out);
    peg__free(conn);
}

static void set_awaited(struct redis_conn *conn, bool is_awaited)
{
    if (conn->is_awaited == is_awaited)
        return;
    conn->is_awaited = is_awaited;
    net_loop_await(conn->loop, is_awaited ? 1 : -1);
}

/* The owner's reference goes. */
static void end_conn(struct redis_conn *conn)
{
    conn->is_dropped = true;
    set_awaited(conn, false);
    net_loop_disarm(conn->loop, &conn->watchdog);
    hold(conn);
    fail_requests(&conn->pending);
    release(conn);
    release(conn);
}

struct redis_conn *redis_conn_drop(struct redis_conn *conn)
{
    if (!conn || conn->is_dropped)
        return NULL;
    if (conn->stream)
        net_stream_close(conn->stream);
    conn->stream = NULL;
    end_conn(conn);
    return NULL;
}

/* Reports its end to the owner, who must not drop it any more. */
static void lose_conn(struct redis_conn *conn, const peg_error *error)
{
    const struct redis_conn_events events = conn->events;
    void *user = conn->user;
    const peg_error copy = *error;

    if (conn->is_dropped)
        return;
    if (conn->stream)
        net_stream_drop(conn->stream);
    conn->stream = NULL;
    end_conn(conn);
    events.on_lost(user, &copy);
}

void redis_conn_doom(struct redis_conn *conn, const peg_error *error)
{
    if (conn->is_dropped || conn->is_doomed)
        return;
    conn->is_doomed = true;
    conn->doom = *error;
    /* Where no event of its own runs, the next round ends it. */
    net_loop_arm(conn->loop, &conn->watchdog, net_loop_now_ns(conn->loop));
}

static void watch_progress(struct net_timer *timer)
{
    struct redis_conn *conn = peg__container_of(timer, struct redis_conn, watchdog);
    const int64_t due_ns = conn->progress_ns + conn->timeout_ns;
    const int64_t now_ns = net_loop_now_ns(conn->loop);
    peg_error error;

    if (conn->is_doomed) {
        lose_conn(conn, &conn->doom);
    } else if (conn->pending.n == 0) {
        return;
    } else if (now_ns < due_ns) {
        net_loop_arm(conn->loop, timer, due_ns);
    } else {
        peg__fail(&error, PEG_ETIMEOUT, "E_REDIS_TIMEOUT",
                  "Redis has not answered for %lld ms: check that it runs, and its slow log",
                  (long long)((now_ns - conn->progress_ns) / PEG_NS_PER_MS));
        lose_conn(conn, &error);
    }
}

/* ---- sending ------------------------------------------------------------------------------- */

/* In pieces, because TLS takes no more at once. What does not go now goes when it has drained. */
static void write_out(struct redis_conn *conn)
{
    while (conn->n_written < conn->out.len && !net_stream_is_blocked(conn->stream)) {
        const size_t rest = conn->out.len - conn->n_written;
        const size_t n = rest < PEG_LIMIT_REDIS_WRITE_BYTES ? rest : PEG_LIMIT_REDIS_WRITE_BYTES;
        peg_error error;

        if (net_stream_write(conn->stream, (const uint8_t *)conn->out.ptr + conn->n_written, n,
                             &error)) {
            redis_conn_doom(conn, &error);
            return;
        }
        conn->n_written += n;
    }
    if (conn->n_written == conn->out.len) {
        conn->n_written = 0;
        peg__buf_clear(&conn->out);
    }
}

bool redis_conn_is_blocked(const struct redis_conn *conn)
{
    return conn->is_doomed || conn->is_dropped || !conn->stream || conn->out.len > 0 ||
           net_stream_is_blocked(conn->stream);
}

size_t redis_conn_n_pending(const struct redis_conn *conn)
{
    return conn->pending.n;
}

void redis_conn_send(struct redis_conn *conn, struct redis_queue *queue)
{
    struct peg__buf empty = conn->out;

    if (redis_conn_is_blocked(conn) || !queue->requests.first)
        return;
    if (conn->pending.n == 0) {
        conn->progress_ns = net_loop_now_ns(conn->loop);
        net_loop_arm(conn->loop, &conn->watchdog, conn->progress_ns + conn->timeout_ns);
    }
    if (conn->traffic)
        atomic_fetch_add_explicit(&conn->traffic->n_sent, queue->out.len, memory_order_relaxed);
    conn->out = queue->out;
    queue->out = empty;
    append_requests(&conn->pending, &queue->requests);
    set_awaited(conn, true);
    write_out(conn);
    /* A large burst does not keep its memory. */
    if (conn->out.len == 0 && conn->out.capacity > PEG_LIMIT_REDIS_SPARE_BYTES)
        peg__buf_free(&conn->out);
}

/* ---- events of the stream ------------------------------------------------------------------ */

static void on_open(void *user)
{
    struct redis_conn *conn = (struct redis_conn *)user;

    conn->events.on_open(conn->user);
}

static void on_drained(void *user)
{
    struct redis_conn *conn = (struct redis_conn *)user;

    if (conn->is_doomed)
        return;
    write_out(conn);
    if (!redis_conn_is_blocked(conn))
        conn->events.on_drained(conn->user);
}

static peg_status take_reply(struct redis_conn *conn, const struct resp_value *reply,
                             peg_error *reterr)
{
    struct redis_request *request;

    if (reply->kind == RESP_PUSH) {
        conn->events.on_push(conn->user, reply);
        return PEG_OK;
    }
    if (!conn->pending.first)
        return peg__fail(reterr, PEG_EPARSE, "E_REDIS_PROTOCOL",
                         "the server replied to no command: check the address");
    conn->progress_ns = net_loop_now_ns(conn->loop);
    if (conn->n_skipped < conn->pending.first->n_skipped) {
        conn->n_skipped++;
        return PEG_OK;
    }
    conn->n_skipped = 0;
    request = take_request(&conn->pending);
    if (conn->pending.n == 0)
        set_awaited(conn, false);
    request->fn(request, reply);
    return PEG_OK;
}

static void on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct redis_conn *conn = (struct redis_conn *)user;
    peg_str rest = {(const char *)bytes, len};
    peg_status status = PEG_OK;
    peg_error error;

    if (conn->traffic)
        atomic_fetch_add_explicit(&conn->traffic->n_received, len, memory_order_relaxed);
    hold(conn);
    while (rest.len && !status && !conn->is_dropped && !conn->is_doomed) {
        const struct resp_value *value = NULL;

        status = resp_reader_next(&conn->reader, &rest, &value, &error);
        if (!status && value)
            status = take_reply(conn, value, &error);
    }
    if (conn->is_doomed)
        lose_conn(conn, &conn->doom);
    else if (status)
        lose_conn(conn, &error);
    release(conn);
}

static void on_closed(void *user, const peg_error *cause)
{
    struct redis_conn *conn = (struct redis_conn *)user;
    peg_error error;

    conn->stream = NULL;
    peg__fail_because(&error, PEG_EIO, "E_REDIS_CONNECT", cause,
                      "there is no connection to Redis: check its address%s and that it runs",
                      conn->has_tls ? ", the certificates (--redis-ca, --redis-cert, --redis-key)"
                                    : "");
    lose_conn(conn, conn->is_doomed ? &conn->doom : &error);
}

/* NOLINTNEXTLINE(readability-function-size): as net_stream_connect() has them */
peg_status redis_conn_new(struct net_loop *loop, const struct net_address *address,
                          const struct redis_conn_options *options,
                          const struct redis_conn_events *events, void *user,
                          struct redis_conn **ret_conn, peg_error *reterr)
{
    static const struct net_stream_events stream_events = {
        .on_open = on_open, .on_bytes = on_bytes, .on_drained = on_drained, .on_closed = on_closed};
    const struct net_stream_options stream_options = {
        .tls = options->tls,
        .tls_host = options->tls ? options->host : NULL,
        .open_ms = options->timeout_ms,
    };
    struct redis_conn *conn = (struct redis_conn *)peg__alloc_zero(1, sizeof(*conn));
    peg_status status;

    if (!conn)
        return peg__fail_nomem(reterr);
    *conn = (struct redis_conn){
        .loop = loop,
        .has_tls = options->tls,
        .events = *events,
        .user = user,
        .out = PEG__BUF(PEG_LIMIT_REDIS_OUT_BYTES),
        .watchdog = {.fn = watch_progress},
        .timeout_ns = options->timeout_ms * PEG_NS_PER_MS,
        .traffic = options->traffic,
        .n_holds = 1,
    };
    status = net_stream_connect(loop, address, &stream_options, &stream_events, conn, &conn->stream,
                                reterr);
    if (status) {
        peg__free(conn);
        return status;
    }
    *ret_conn = conn;
    return PEG_OK;
}
