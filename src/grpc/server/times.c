/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of a connection with time: pings, and when it has to go. */

#include "base/clock.h"
#include "base/mem.h"
#include "grpc/http2/frame.h"
#include "grpc/server/internal.h"

enum {
    /* How long a client may take to answer the ping after the first GOAWAY: calls that were on
     * their way are still taken until then. */
    FAREWELL_MS = 1000,
};

static const struct grpc_server_options *options_of(const struct grpc__conn *conn)
{
    return &conn->home->server->options;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_idle(const struct grpc__conn *conn)
{
    return conn->session && grpc_session_n_streams(conn->session) == 0;
}

/* Whatever comes after a ping shows that somebody is there; the answer may have to wait behind it.
 */
static int64_t answer_due(const struct grpc__conn *conn)
{
    const int64_t since_ns =
        conn->last_read_ns > conn->ping_sent_ns ? conn->last_read_ns : conn->ping_sent_ns;

    return peg__clock_after_ms(since_ns, options_of(conn)->keepalive_timeout_ms);
}

static int64_t next_due(const struct grpc__conn *conn)
{
    const struct grpc_server_options *options = options_of(conn);
    int64_t due = earliest(conn->close_ns, conn->leave_ns);

    due = earliest(due, earliest(conn->known_ns, conn->sweep_ns));
    if (!conn->has_settings)
        return earliest(due, peg__clock_after_ms(conn->opened_ns, options->preface_ms));
    if (conn->ping_sent_ns)
        due = earliest(due, answer_due(conn));
    else
        due = earliest(due, peg__clock_after_ms(conn->last_read_ns, options->keepalive_ms));
    if (options->max_idle_ms && is_idle(conn) && !conn->was_asked_to_go)
        due = earliest(due, peg__clock_after_ms(conn->idle_since_ns, options->max_idle_ms));
    return due;
}

void grpc__conn_arm(struct grpc__conn *conn)
{
    net_loop_arm(conn->home->loop, &conn->timer, next_due(conn));
}

void grpc__conn_ping(struct grpc__conn *conn)
{
    if (conn->ping_sent_ns)
        return;
    conn->ping_sent_ns = net_loop_now_ns(conn->home->loop);
    grpc_session_ping(conn->session);
}

void grpc__conn_report_end(struct grpc__conn *conn)
{
    conn->was_told_finally = true;
    grpc_session_goaway(conn->session, true, GRPC_H2_NO_ERROR, "the server goes");
    net_loop_later(conn->home->loop, &conn->flush);
}

void grpc__conn_leave(struct grpc__conn *conn, int64_t grace_ms)
{
    if (conn->was_asked_to_go || conn->is_ending)
        return;
    if (!conn->session) {
        grpc__conn_close(conn);
        return;
    }
    conn->was_asked_to_go = true;
    conn->leave_ns = peg__clock_after_ms(net_loop_now_ns(conn->home->loop), FAREWELL_MS);
    if (grace_ms > 0)
        conn->close_ns = peg__clock_after_ms(net_loop_now_ns(conn->home->loop), grace_ms);
    grpc_session_goaway(conn->session, false, GRPC_H2_NO_ERROR, "");
    conn->pings_again = conn->ping_sent_ns != 0; /* its answer says nothing about the GOAWAY */
    grpc__conn_ping(conn);
    grpc__conn_arm(conn);
}

void grpc__conn_lost_call(struct grpc__conn *conn)
{
    if (conn->is_ending)
        return;
    conn->idle_since_ns = net_loop_now_ns(conn->home->loop);
    if (options_of(conn)->max_idle_ms && is_idle(conn))
        grpc__conn_arm(conn);
}

/* It was given time to greet, to answer a ping or to go, and that is over. */
static bool is_late(const struct grpc__conn *conn, int64_t now)
{
    if (conn->close_ns <= now || (!conn->session && conn->leave_ns <= now))
        return true;
    if (!conn->has_settings &&
        peg__clock_after_ms(conn->opened_ns, options_of(conn)->preface_ms) <= now)
        return true;
    return conn->ping_sent_ns && answer_due(conn) <= now;
}

/* ---- strangers, and calls that do not get on ------------------------------------------------- */

static bool is_watching(const struct grpc__conn *conn)
{
    const struct grpc_call *call = conn->calls;

    while (call &&
           !(call->was_handed && !call->is_finished && call->route->bounds.keeps_connection))
        call = call->next;
    return call != NULL;
}

/* False: it has shown nobody who it is, and goes. */
static bool may_stay(struct grpc__conn *conn, int64_t now)
{
    if (conn->known_ns > now)
        return true;
    conn->known_ns = peg__clock_after_ms(now, options_of(conn)->unauthenticated_ms);
    return is_watching(conn);
}

/* A call that gets no further for two rounds in a row has had stall_ms / 2 at the least, and all
 * of it at the most. */
static void look_at_call(struct grpc_call *call)
{
    const struct grpc_stream *stream = &call->stream;
    const bool is_stalled =
        grpc_stream_is_waiting(stream) && stream->n_steps == call->n_steps && call->was_seen;

    call->was_seen = grpc_stream_is_waiting(stream);
    call->n_steps = stream->n_steps;
    if (is_stalled)
        grpc__call_stalled(call);
}

static void sweep_calls(struct grpc__conn *conn, int64_t now)
{
    if (conn->sweep_ns > now)
        return;
    conn->sweep_ns = peg__clock_after_ms(now, options_of(conn)->stall_ms / 2);
    for (struct grpc_call *call = conn->calls; call;) {
        struct grpc_call *next = call->next;

        look_at_call(call);
        call = next;
    }
}

/* Clients that came together are late together: what that leads to waits for its turn. */
void grpc__conn_time_passed(struct net_timer *timer)
{
    struct grpc__conn *conn = peg__container_of(timer, struct grpc__conn, timer);

    conn->is_due = true;
    net_loop_turn(conn->home->loop, &conn->turn);
}

/* One of the times has come, if it is not over again; which, is found out by looking at all.
 * False: it is gone. */
bool grpc__conn_check_times(struct grpc__conn *conn)
{
    const struct grpc_server_options *options = options_of(conn);
    const int64_t now = net_loop_now_ns(conn->home->loop);

    if (conn->http1)
        return true; /* its stream is not ours to end */
    if (is_late(conn, now) || !may_stay(conn, now)) {
        grpc__conn_lose(conn);
        return false;
    }
    sweep_calls(conn, now);
    if (conn->leave_ns <= now) {
        conn->leave_ns = NET_NEVER;
        if (conn->was_asked_to_go)
            grpc__conn_report_end(conn);
        else
            grpc__conn_leave(conn, options->max_age_grace_ms);
    } else if (options->max_idle_ms && is_idle(conn) && !conn->was_asked_to_go &&
               peg__clock_after_ms(conn->idle_since_ns, options->max_idle_ms) <= now) {
        grpc__conn_leave(conn, options->max_age_grace_ms);
    } else if (conn->session && !conn->ping_sent_ns &&
               peg__clock_after_ms(conn->last_read_ns, options->keepalive_ms) <= now) {
        grpc__conn_ping(conn);
    }
    grpc__conn_arm(conn);
    return true;
}
