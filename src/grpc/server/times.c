/* SPDX-License-Identifier: Apache-2.0 */

/* The timers of a connection: pings, idle time, age, stalled calls. */

#include "base/clock.h"
#include "grpc/http2/session.h"
#include "grpc/server/internal.h"

enum {
    /* For the answer to the ping after the first GOAWAY: calls that were on their way are still
     * taken until then. */
    GOAWAY_MS = 1000,
};

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_idle(const struct grpc__conn *conn)
{
    return conn->session && grpc_session_n_streams(conn->session) == 0;
}

/* Any bytes after a ping show that the peer is alive; the answer may have to wait behind them. */
static int64_t answer_due(const struct grpc__conn *conn)
{
    const int64_t since_ns =
        conn->last_read_ns > conn->ping_sent_ns ? conn->last_read_ns : conn->ping_sent_ns;

    return peg__clock_after_ms(since_ns, grpc__conn_options(conn)->keepalive_timeout_ms);
}

static int64_t next_due(const struct grpc__conn *conn)
{
    const struct grpc_server_options *options = grpc__conn_options(conn);
    int64_t due = earliest(conn->close_ns, conn->leave_ns);

    due = earliest(due, earliest(conn->known_ns, conn->sweep_ns));
    if (!conn->has_settings)
        return earliest(due, peg__clock_after_ms(conn->opened_ns, options->preface_ms));
    if (conn->ping_sent_ns)
        due = earliest(due, answer_due(conn));
    else
        due = earliest(due, peg__clock_after_ms(conn->last_read_ns, options->keepalive_ms));
    if (options->max_idle_ms && is_idle(conn) && !conn->has_goaway)
        due = earliest(due, peg__clock_after_ms(conn->idle_since_ns, options->max_idle_ms));
    return due;
}

void grpc__conn_arm(struct grpc__conn *conn)
{
    net_loop_arm(conn->server_loop->loop, &conn->timer, next_due(conn));
}

void grpc__conn_ping(struct grpc__conn *conn)
{
    if (conn->ping_sent_ns)
        return;
    conn->ping_sent_ns = grpc__conn_now_ns(conn);
    grpc_session_ping(conn->session);
}

void grpc__conn_report_end(struct grpc__conn *conn)
{
    conn->has_final_goaway = true;
    grpc_session_goaway(conn->session, true, GRPC_H2_NO_ERROR, "the server goes");
    net_loop_later(conn->server_loop->loop, &conn->flush);
}

void grpc__conn_leave(struct grpc__conn *conn, int64_t grace_ms)
{
    if (conn->has_goaway || conn->is_ending)
        return;
    if (conn->http1) {
        net_http_conn_leave(conn->http1);
        return;
    }
    if (!conn->session) {
        grpc__conn_close(conn);
        return;
    }
    conn->has_goaway = true;
    conn->leave_ns = peg__clock_after_ms(grpc__conn_now_ns(conn), GOAWAY_MS);
    if (grace_ms > 0)
        conn->close_ns = peg__clock_after_ms(grpc__conn_now_ns(conn), grace_ms);
    grpc_session_goaway(conn->session, false, GRPC_H2_NO_ERROR, "");
    conn->pings_again = conn->ping_sent_ns != 0; /* that one was sent before the GOAWAY */
    grpc__conn_ping(conn);
    grpc__conn_arm(conn);
}

void grpc__conn_note_call_end(struct grpc__conn *conn)
{
    if (conn->is_ending)
        return;
    conn->idle_since_ns = grpc__conn_now_ns(conn);
    if (grpc__conn_options(conn)->max_idle_ms && is_idle(conn))
        grpc__conn_arm(conn);
}

static bool has_timed_out(const struct grpc__conn *conn, int64_t now)
{
    if (conn->close_ns <= now || (!conn->session && conn->leave_ns <= now))
        return true;
    if (!conn->has_settings &&
        peg__clock_after_ms(conn->opened_ns, grpc__conn_options(conn)->preface_ms) <= now)
        return true;
    return conn->ping_sent_ns && answer_due(conn) <= now;
}

/* ---- unauthenticated clients, stalled calls ------------------------------------------------- */

static bool is_watching(const struct grpc__conn *conn)
{
    const struct grpc_call *call = conn->calls;

    while (call &&
           !(call->has_request && !call->is_finished && call->route->bounds.keeps_connection))
        call = call->next;
    return call != NULL;
}

/* False: it did not authenticate in time. */
static bool may_stay(struct grpc__conn *conn, int64_t now)
{
    if (conn->known_ns > now)
        return true;
    conn->known_ns = peg__clock_after_ms(now, grpc__conn_options(conn)->unauthenticated_ms);
    return is_watching(conn);
}

/* A call without progress for two sweeps has had stall_ms / 2 at least, and stall_ms at most. */
static void check_progress(struct grpc_call *call)
{
    const struct grpc_stream *stream = &call->stream;
    const bool is_stalled =
        grpc_stream_is_waiting(stream) && stream->n_steps == call->n_steps && call->was_waiting;

    call->was_waiting = grpc_stream_is_waiting(stream);
    call->n_steps = stream->n_steps;
    if (is_stalled)
        grpc__call_stalled(call);
}

static void sweep_calls(struct grpc__conn *conn, int64_t now)
{
    if (conn->sweep_ns > now)
        return;
    conn->sweep_ns = peg__clock_after_ms(now, grpc__conn_options(conn)->stall_ms / 2);
    for (struct grpc_call *call = conn->calls; call;) {
        struct grpc_call *next = call->next;

        check_progress(call);
        call = next;
    }
}

/* Clients that came together time out together, so the fair queue handles them. */
void grpc__conn_on_timer(struct net_timer *timer)
{
    struct grpc__conn *conn = peg__container_of(timer, struct grpc__conn, timer);

    conn->is_due = true;
    net_loop_enqueue(conn->server_loop->loop, &conn->job);
}

/* One of the times may have come: checks all. False: the connection is gone. */
bool grpc__conn_check_times(struct grpc__conn *conn)
{
    const struct grpc_server_options *options = grpc__conn_options(conn);
    const int64_t now = grpc__conn_now_ns(conn);

    if (conn->http1)
        return true; /* its stream is not ours to end */
    if (has_timed_out(conn, now) || !may_stay(conn, now)) {
        grpc__conn_lose(conn);
        return false;
    }
    sweep_calls(conn, now);
    if (conn->leave_ns <= now) {
        conn->leave_ns = NET_NEVER;
        if (conn->has_goaway)
            grpc__conn_report_end(conn);
        else
            grpc__conn_leave(conn, options->max_age_grace_ms);
    } else if (options->max_idle_ms && is_idle(conn) && !conn->has_goaway &&
               peg__clock_after_ms(conn->idle_since_ns, options->max_idle_ms) <= now) {
        grpc__conn_leave(conn, options->max_age_grace_ms);
    } else if (conn->session && !conn->ping_sent_ns &&
               peg__clock_after_ms(conn->last_read_ns, options->keepalive_ms) <= now) {
        grpc__conn_ping(conn);
    }
    grpc__conn_arm(conn);
    return true;
}
