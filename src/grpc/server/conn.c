/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of the server. Its first bytes show the protocol; then bytes go to the session
 * and, once in a round of the loop, the session's output goes to the stream. While the socket takes
 * nothing, nothing is read either: a client that does not read its answers cannot ask more.
 *
 * Connections share the loop by its fair queue. A short request, as most are, is read and answered
 * at once; a connection that sends more, or much that is no call, or whose timer is due, is queued,
 * and its job takes about net_loop_fair_queue_ns().
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/server/internal.h"

static const uint8_t preface[4] = {'P', 'R', 'I', ' '};
static const char no_http1[] = "HTTP/1.1 505 HTTP Version Not Supported\r\n"
                               "Content-Type: text/plain\r\nContent-Length: 35\r\n"
                               "Connection: close\r\n\r\nThis port speaks gRPC over HTTP/2.\n";
enum {
    /* Bytes that are read, fed or sent between two readings of the clock. The peer chooses what a
     * byte costs, so there are few at first, and then as many as the last ones allow. */
    MIN_PIECE = 16,
    FIRST_PIECE = 256,
    MAX_PIECE = 1 << 10,
    SEND_PIECE = 4 << 10,
    FIRST_READ = 1 << 10,
    MAX_READ = 16 << 10,
    /* Of a single connection, some thirty calls: their answers go out while the client reads those
     * before. With a whole buffer both would wait for each other: half as many calls a second. */
    ALONE_READ = 16 << 10,
    CALLS_AT_ONCE = 8, /* that end between two readings of the clock */
};

/* ---- the end ------------------------------------------------------------------------------- */

/* The stream and HTTP/1.1 are gone already. Calls that still run end here. */
static void free_conn(struct grpc__conn *conn)
{
    struct grpc__server_loop *server_loop = conn->server_loop;

    net_loop_not_later(server_loop->loop, &conn->flush);
    net_loop_dequeue(server_loop->loop, &conn->job);
    net_loop_disarm(server_loop->loop, &conn->timer);
    grpc_session_free(conn->session);
    grpc__conn_end_count(conn);
    if (conn->is_ending)
        net_stream_forget(conn->stream);
    PEG_LIST_REMOVE(server_loop->conns, conn, next, prev);
    grpc__count(&server_loop->counts.n_connections, -1);
    if (conn->is_refused)
        grpc__count(&server_loop->counts.n_refused_connections, 1);
    peg__free(conn);
    grpc__server_loop_report_if_empty(server_loop);
}

static int64_t job_ns(const struct grpc__conn *conn)
{
    return net_loop_fair_queue_ns(conn->server_loop->loop);
}

/* Ends some calls, and with the last one the connection. */
static void end_calls(struct grpc__conn *conn)
{
    const int64_t until_ns = peg__mono_ns() + job_ns(conn) / 2;

    while (conn->calls && peg__mono_ns() < until_ns) {
        for (unsigned i = 0; i < CALLS_AT_ONCE && conn->calls; i++)
            grpc__call_lost(conn->calls);
    }
    if (conn->calls)
        net_loop_enqueue(conn->server_loop->loop, &conn->job);
    else
        free_conn(conn);
}

/* Its calls end in jobs of the fair queue, and may ask for their peer until then. The caller closes
 * or drops the stream. */
static void begin_end(struct grpc__conn *conn)
{
    conn->is_ending = true;
    net_stream_keep(conn->stream);
    net_loop_not_later(conn->server_loop->loop, &conn->flush);
    net_loop_disarm(conn->server_loop->loop, &conn->timer);
}

/* All of it now. */
void grpc__conn_drop(struct grpc__conn *conn)
{
    conn->was_dropped = true;
    if (conn->http1) {
        net_http_conn_drop(conn->http1);
    } else if (!conn->is_ending) {
        begin_end(conn);
        net_stream_drop(conn->stream);
    }
    free_conn(conn);
}

void grpc__conn_lose(struct grpc__conn *conn)
{
    conn->was_dropped = true;
    begin_end(conn);
    net_stream_drop(conn->stream);
    end_calls(conn);
}

/* What was written still goes out. */
void grpc__conn_close(struct grpc__conn *conn)
{
    begin_end(conn);
    net_stream_close(conn->stream);
    end_calls(conn);
}

/* ---- output -------------------------------------------------------------------------------- */

static bool is_done(const struct grpc__conn *conn)
{
    if (conn->is_refused || grpc_session_is_over(conn->session))
        return true;
    return conn->has_final_goaway && grpc_session_n_streams(conn->session) == 0;
}

static void finish_conn(struct grpc__conn *conn)
{
    conn->is_refused |= grpc_session_has_sent_error(conn->session);
    grpc__conn_close(conn);
}

static bool is_alone(const struct grpc__conn *conn)
{
    return !conn->next && !conn->prev;
}

/* As much as the scratch buffer holds; with others on the loop, as much as fits a job. */
static size_t pull_output(struct grpc__conn *conn, uint8_t *scratch)
{
    const size_t piece = is_alone(conn) ? NET_SCRATCH_BYTES : SEND_PIECE;
    int64_t from_ns = 0;
    size_t len = 0;
    size_t n;

    while (len + piece <= NET_SCRATCH_BYTES &&
           (n = grpc_session_pull(conn->session, scratch + len, piece)) > 0) {
        const int64_t at_ns = n > SEND_PIECE / 2 ? peg__mono_ns() : 0;

        len += n;
        if (from_ns && at_ns && at_ns - from_ns > job_ns(conn))
            break;
        from_ns = from_ns ? from_ns : at_ns;
    }
    return len;
}

/* False: it broke, and on_conn_closed comes, or it is gone. */
static bool send_output(struct grpc__conn *conn, size_t *ret_len)
{
    uint8_t *scratch = net_loop_scratch(conn->server_loop->loop);
    const size_t len = pull_output(conn, scratch);
    const peg_status status = len ? net_stream_write(conn->stream, scratch, len, NULL) : PEG_OK;

    if (status && status != PEG_EIO)
        grpc__conn_lose(conn); /* these bytes are lost: nothing may follow them */
    *ret_len = len;
    return status == PEG_OK;
}

static void flush_session(struct grpc__conn *conn)
{
    size_t len = 0;

    if (!net_stream_is_blocked(conn->stream) && !send_output(conn, &len))
        return;
    grpc__conn_count(conn);
    if (net_stream_is_blocked(conn->stream))
        net_stream_pause(conn->stream);
    else if (len > 0 && grpc_session_has_output(conn->session))
        net_loop_enqueue(conn->server_loop->loop, &conn->job);
    else if (is_done(conn))
        finish_conn(conn);
}

static void on_flush(struct net_later *later)
{
    struct grpc__conn *conn = peg__container_of(later, struct grpc__conn, flush);

    if (!conn->is_ending && !net_fair_job_is_queued(&conn->job)) /* it has sent much already */
        flush_session(conn);
}

static void run_conn_job(struct net_fair_job *job)
{
    struct grpc__conn *conn = peg__container_of(job, struct grpc__conn, job);
    const bool is_due = conn->is_due;

    conn->is_due = false;
    if (conn->is_ending) {
        end_calls(conn);
        return;
    }
    if (conn->is_evicted) {
        if (conn->http1)
            grpc__conn_drop(conn);
        else
            grpc__conn_lose(conn);
        return;
    }
    if (is_due && !grpc__conn_check_times(conn))
        return;
    if (conn->session)
        flush_session(conn);
}

static void on_conn_drained(void *user)
{
    struct grpc__conn *conn = user;

    net_stream_resume(conn->stream);
    if (conn->session)
        net_loop_later(conn->server_loop->loop, &conn->flush);
}

/* ---- events of the session ----------------------------------------------------------------- */

static struct grpc_stream *on_stream(void *user)
{
    return grpc__call_begin(user);
}

static void on_conn_output(void *user)
{
    struct grpc__conn *conn = user;

    net_loop_later(conn->server_loop->loop, &conn->flush);
}

/* Pings that come faster than agreed, while nothing was answered, are strikes. */
static void on_ping(void *user)
{
    struct grpc__conn *conn = user;
    const int64_t now = grpc__conn_now_ns(conn);
    const bool is_early =
        conn->pinged_ns &&
        now < peg__clock_after_ms(conn->pinged_ns, grpc__conn_options(conn)->min_ping_ms);

    conn->pinged_ns = now;
    /* Clients that measure the line send a ping for what they receive. */
    if (grpc_session_has_new_output(conn->session) || !is_early) {
        conn->n_strikes = 0;
        return;
    }
    if (++conn->n_strikes <= PEG_LIMIT_GRPC_PING_STRIKES)
        return;
    conn->is_refused = true;
    grpc_session_goaway(conn->session, true, GRPC_H2_ENHANCE_YOUR_CALM, "too_many_pings");
}

static void on_pong(void *user)
{
    struct grpc__conn *conn = user;

    conn->ping_sent_ns = 0;
    if (conn->pings_again) {
        conn->pings_again = false;
        grpc__conn_ping(conn);
    } else if (conn->has_goaway && !conn->has_final_goaway) {
        grpc__conn_report_end(conn);
    }
    grpc__conn_arm(conn);
}

static void on_settings(void *user)
{
    struct grpc__conn *conn = user;

    if (conn->has_settings)
        return;
    conn->has_settings = true;
    grpc__conn_arm(conn);
}

static const struct grpc_session_events session_events = {
    .on_stream = on_stream,
    .on_settings = on_settings,
    .on_output = on_conn_output,
    .on_ping = on_ping,
    .on_pong = on_pong,
};

/* ---- input --------------------------------------------------------------------------------- */

static void feed_session(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    peg_error error;

    if (!conn->is_refused && grpc_session_feed(conn->session, bytes, len, &error)) {
        conn->is_refused = true;
        peg__log(PEG_LOG_INFO, error.code, "%s: %s", net_stream_peer(conn->stream), error.message);
    }
}

/* `len` bytes took took_ns: how many take wanted_ns? */
static size_t scale_bytes(size_t len, int64_t took_ns, int64_t wanted_ns, size_t min, size_t max)
{
    const size_t fitting =
        took_ns > wanted_ns ? (size_t)((double)len * (double)wanted_ns / (double)took_ns) : 2 * len;

    if (fitting < min)
        return min;
    return fitting < max ? fitting : max;
}

/* Feeds as much as fits a job, and leaves the rest for the next. Returns how long it took. */
static int64_t feed_some(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    const int64_t from_ns = peg__mono_ns();
    const int64_t wanted_ns = job_ns(conn);
    int64_t at_ns = from_ns;
    size_t done = 0;

    while (done < len) {
        const size_t n = len - done < conn->piece ? len - done : conn->piece;
        int64_t now;

        if (at_ns - from_ns > wanted_ns / 2 &&
            !net_stream_unread(conn->stream, bytes + done, len - done))
            break;
        feed_session(conn, bytes + done, n);
        done += n;
        now = peg__mono_ns();
        if (n == conn->piece || now - at_ns > wanted_ns / 2)
            conn->piece = scale_bytes(n, now - at_ns, wanted_ns / 2, MIN_PIECE, MAX_PIECE);
        at_ns = now;
    }
    if (len >= conn->max_read || done < len)
        conn->max_read = scale_bytes(done, at_ns - from_ns, wanted_ns, MIN_PIECE, MAX_READ);
    return at_ns - from_ns;
}

/* After a short request that was a call, the next one is read at once again. */
static void feed_bytes(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    const uint64_t n_started = grpc__counted(&conn->server_loop->counts.n_started);
    const bool was_alone = is_alone(conn);
    bool is_quick = len < conn->max_read;

    conn->last_read_ns = grpc__conn_now_ns(conn);
    if (was_alone)
        feed_session(conn, bytes, len);
    else
        is_quick &= feed_some(conn, bytes, len) <= job_ns(conn);
    is_quick &= grpc__counted(&conn->server_loop->counts.n_started) > n_started;
    grpc__conn_count(conn);
    net_stream_set_fair_queue(conn->stream,
                              is_quick || was_alone ? NET_FAIR_QUEUE_ENDS : NET_FAIR_QUEUE_READS);
    net_stream_set_max_read(conn->stream, was_alone ? ALONE_READ : conn->max_read);
    net_loop_later(conn->server_loop->loop, &conn->flush);
}

static peg_status start_session(struct grpc__conn *conn)
{
    const struct grpc_server_options *options = grpc__conn_options(conn);
    const struct grpc_session_options session = {
        .max_streams = options->max_streams,
        .max_header_bytes = options->max_header_bytes,
        .stream_window = options->stream_window,
        .session_window = options->session_window,
        .max_held = options->max_held_bytes,
        .reset_burst = options->reset_burst,
        .reset_per_s = options->reset_per_s,
    };
    peg_status status = grpc_session_new(&session, &session_events, conn, &conn->session, NULL);

    if (status)
        return status;
    conn->last_read_ns = conn->idle_since_ns = grpc__conn_now_ns(conn);
    grpc__conn_arm(conn);
    feed_bytes(conn, conn->first, conn->n_first);
    return PEG_OK;
}

static void on_http1_memory(void *user)
{
    grpc__conn_count(user);
}

static void on_http1_authenticate(void *user, peg_str principal)
{
    grpc__conn_authenticate(user, principal);
}

static void on_http1_end(void *user)
{
    struct grpc__conn *conn = user;

    conn->http1 = NULL;
    free_conn(conn);
}

static const struct net_http_conn_events http1_events = {
    .on_memory = on_http1_memory,
    .on_authenticate = on_http1_authenticate,
    .on_end = on_http1_end,
};

/* HTTP/1.1 has timers of its own; one of ours may be queued already. */
static void forget_times(struct grpc__conn *conn)
{
    net_loop_disarm(conn->server_loop->loop, &conn->timer);
    net_loop_dequeue(conn->server_loop->loop, &conn->job);
    conn->is_due = false;
}

/* Everything that came so far goes to HTTP/1.1, if it is served here. */
static void start_http1(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    uint8_t *first = net_loop_scratch(conn->server_loop->loop);

    if (!grpc__conn_options(conn)->http) {
        net_stream_write(conn->stream, (const uint8_t *)no_http1, sizeof(no_http1) - 1, NULL);
        conn->is_refused = true;
        grpc__conn_close(conn);
        return;
    }
    if (len > NET_SCRATCH_BYTES - conn->n_first) { /* far more than a request has */
        conn->is_refused = true;
        grpc__conn_drop(conn);
        return;
    }
    memcpy(first, conn->first, conn->n_first);
    memcpy(first + conn->n_first, bytes, len);
    forget_times(conn);
    if (net_http_conn_new(grpc__conn_options(conn)->http, conn->stream, &http1_events, conn,
                          peg__strn((const char *)first, conn->n_first + len), &conn->http1))
        free_conn(conn);
}

/* By ALPN: the client may not use anything else. */
static bool chose_http2(const struct grpc__conn *conn)
{
    const struct net_tls *tls = net_stream_tls(conn->stream);

    return tls && peg__str_is(net_tls_alpn(tls), "h2");
}

/* Bytes that differ from the preface of HTTP/2 are HTTP/1.1, or an error. */
static void detect_protocol(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    const size_t want = sizeof(preface) - conn->n_first;
    const size_t n = len < want ? len : want;

    if (memcmp(bytes, preface + conn->n_first, n) != 0 && !chose_http2(conn)) {
        start_http1(conn, bytes, len);
        return;
    }
    memcpy(conn->first + conn->n_first, bytes, n);
    conn->n_first += n;
    if (conn->n_first < sizeof(preface))
        return;
    if (start_session(conn))
        grpc__conn_drop(conn);
    else if (len > n)
        feed_bytes(conn, bytes + n, len - n);
}

static void on_conn_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct grpc__conn *conn = user;

    if (conn->session)
        feed_bytes(conn, bytes, len);
    else
        detect_protocol(conn, bytes, len);
}

static void on_conn_closed(void *user, const peg_error *error)
{
    struct grpc__conn *conn = user;

    (void)error; /* clients come and go */
    begin_end(conn);
    end_calls(conn);
}

static const struct net_stream_events stream_events = {
    .on_bytes = on_conn_bytes,
    .on_drained = on_conn_drained,
    .on_closed = on_conn_closed,
};

/* ---- the beginning ------------------------------------------------------------------------- */

/* Clients that came together do not all leave together. */
static int64_t add_jitter(const struct grpc__conn *conn, int64_t ms)
{
    const uintptr_t place = (uintptr_t)conn / 64;

    return ms - ms / 10 + (int64_t)(place % 21) * ms / 100;
}

peg_status grpc__conn_new(struct grpc__server_loop *server_loop, struct net_stream *stream)
{
    struct grpc__conn *conn = peg__alloc_zero(1, sizeof(*conn));
    const struct grpc_server_options *options = &server_loop->server->options;

    if (!conn)
        return PEG_ENOMEM;
    conn->server_loop = server_loop;
    conn->stream = stream;
    conn->flush.fn = on_flush;
    conn->job.fn = run_conn_job;
    conn->timer.fn = grpc__conn_on_timer;
    conn->opened_ns = net_loop_now_ns(server_loop->loop);
    conn->close_ns = NET_NEVER;
    conn->leave_ns =
        options->max_age_ms
            ? peg__clock_after_ms(conn->opened_ns, add_jitter(conn, options->max_age_ms))
            : NET_NEVER;
    conn->sweep_ns = peg__clock_after_ms(conn->opened_ns, options->stall_ms / 2);
    grpc__conn_begin_count(conn);
    PEG_LIST_PUSH(server_loop->conns, conn, next, prev);
    grpc__count(&server_loop->counts.n_connections, 1);
    conn->max_read = FIRST_READ;
    conn->piece = FIRST_PIECE;
    net_stream_set_max_read(stream, FIRST_READ);
    net_stream_set_fair_queue(stream, NET_FAIR_QUEUE_READS);
    net_stream_set_events(stream, &stream_events, conn);
    grpc__conn_arm(conn);
    return PEG_OK;
}
