/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of the server. Its first bytes tell what it speaks; then bytes go to the session
 * and, once in a round of the loop, what the session has to say goes to the stream. While the
 * socket takes nothing, nothing is read either: a client that does not read its answers gets to
 * ask no more.
 *
 * Connections take turns (net/stream/queue.c). One that asks a short question, as most do, is heard
 * and answered at once; one that says more, or much that is no call, or has to be told something
 * because its time has come, waits for its turn, and in it does what takes some NET_TURN_NS.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/frame.h"
#include "grpc/server/internal.h"

static const uint8_t preface[4] = {'P', 'R', 'I', ' '};
static const char no_http1[] = "HTTP/1.1 505 HTTP Version Not Supported\r\n"
                               "Content-Type: text/plain\r\nContent-Length: 35\r\n"
                               "Connection: close\r\n\r\nThis port speaks gRPC over HTTP/2.\n";
enum {
    /* Bytes that are read, fed or sent between two looks at the clock. What a byte costs is the
     * peer's choice, so of those that come there are few at first, and as many as the last of them
     * cost. */
    MIN_PIECE = 16,
    FIRST_PIECE = 256,
    MAX_PIECE = 1 << 10,
    SEND_PIECE = 4 << 10,
    FIRST_READ = 1 << 10,
    MAX_READ = 16 << 10,
    /* Alone, some thirty calls: their answers go out while the client reads those before. With a
     * whole buffer both would wait for each other: half as many calls a second. */
    ALONE_READ = 16 << 10,
    CALLS_AT_ONCE = 8, /* that end between two looks at the clock */
};

static const struct grpc_server_options *options_of(const struct grpc__conn *conn)
{
    return &conn->home->server->options;
}

/* ---- the end
 * ------------------------------------------------------------------------------------------ */

static void unlink_conn(struct grpc__conn *conn)
{
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        conn->home->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
}

/* The stream and HTTP/1.1 have been taken care of. Calls that still run hear of their end here. */
static void free_conn(struct grpc__conn *conn)
{
    struct grpc__server_loop *home = conn->home;

    net_loop_not_later(home->loop, &conn->flush);
    net_loop_no_turn(home->loop, &conn->turn);
    net_loop_disarm(home->loop, &conn->timer);
    grpc_session_free(conn->session);
    grpc__conn_end_count(conn);
    if (conn->is_ending)
        net_stream_forget(conn->stream);
    unlink_conn(conn);
    grpc__count(&home->counts.n_connections, -1);
    if (conn->is_refused)
        grpc__count(&home->counts.n_refused_connections, 1);
    peg__free(conn);
    grpc__server_loop_report_if_empty(home);
}

/* A turn of its end: some calls hear of it, and with the last one it is gone. */
static void end_some(struct grpc__conn *conn)
{
    const int64_t from_ns = peg__mono_ns();

    while (conn->calls && peg__mono_ns() - from_ns < NET_TURN_NS / 2) {
        for (unsigned i = 0; i < CALLS_AT_ONCE && conn->calls; i++)
            grpc__call_lost(conn->calls);
    }
    if (conn->calls)
        net_loop_turn(conn->home->loop, &conn->turn);
    else
        free_conn(conn);
}

/* A client with a thousand calls that goes is a thousand ends: they take turns. Until then they
 * may ask who their peer is. The stream is closed or dropped by the caller, if it is not yet. */
static void begin_end(struct grpc__conn *conn)
{
    conn->is_ending = true;
    net_stream_keep(conn->stream);
    net_loop_not_later(conn->home->loop, &conn->flush);
    net_loop_disarm(conn->home->loop, &conn->timer);
}

/* All of it now. */
void grpc__conn_drop(struct grpc__conn *conn)
{
    conn->was_dropped = true;
    if (conn->http1) {
        net_http1_drop(conn->http1);
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
    end_some(conn);
}

/* What was written still goes out. */
void grpc__conn_close(struct grpc__conn *conn)
{
    if (conn->http1) {
        net_http1_close(conn->http1);
        free_conn(conn);
        return;
    }
    begin_end(conn);
    net_stream_close(conn->stream);
    end_some(conn);
}

/* ---- output
 * ---------------------------------------------------------------------------------------------- */

static bool is_done(const struct grpc__conn *conn)
{
    if (conn->is_refused || grpc_session_is_over(conn->session))
        return true;
    return conn->was_told_finally && grpc_session_n_streams(conn->session) == 0;
}

static void finish_conn(struct grpc__conn *conn)
{
    conn->is_refused |= grpc_session_has_complained(conn->session);
    grpc__conn_close(conn);
}

static bool is_alone(const struct grpc__conn *conn)
{
    return !conn->next && !conn->prev;
}

/* Gathers what there is to send, as much as the scratch buffer holds; with others on the loop, as
 * much as takes its turn. */
static size_t gather(struct grpc__conn *conn, uint8_t *scratch)
{
    const size_t piece = is_alone(conn) ? NET_SCRATCH_BYTES : SEND_PIECE;
    int64_t from_ns = 0;
    size_t len = 0;
    size_t n;

    while (len + piece <= NET_SCRATCH_BYTES &&
           (n = grpc_session_pull(conn->session, scratch + len, piece)) > 0) {
        const int64_t at_ns = n > SEND_PIECE / 2 ? peg__mono_ns() : 0;

        len += n;
        if (from_ns && at_ns && at_ns - from_ns > NET_TURN_NS)
            break;
        from_ns = from_ns ? from_ns : at_ns;
    }
    return len;
}

/* False: it broke, and on_closed comes, or it is gone. */
static bool send_some(struct grpc__conn *conn, size_t *ret_len)
{
    uint8_t *scratch = net_loop_scratch(conn->home->loop);
    const size_t len = gather(conn, scratch);
    const peg_status status = len ? net_stream_write(conn->stream, scratch, len, NULL) : PEG_OK;

    if (status && status != PEG_EIO)
        grpc__conn_lose(conn); /* these bytes are lost: nothing may follow them */
    *ret_len = len;
    return status == PEG_OK;
}

static void say(struct grpc__conn *conn)
{
    size_t len = 0;

    if (!net_stream_is_blocked(conn->stream) && !send_some(conn, &len))
        return;
    grpc__conn_count(conn);
    if (net_stream_is_blocked(conn->stream))
        net_stream_pause(conn->stream);
    else if (len > 0 && grpc_session_has_output(conn->session))
        net_loop_turn(conn->home->loop, &conn->turn);
    else if (is_done(conn))
        finish_conn(conn);
}

static void flush(struct net_later *later)
{
    struct grpc__conn *conn = peg__container_of(later, struct grpc__conn, flush);

    if (!conn->is_ending && !net_turn_is_waiting(&conn->turn)) /* it said much already */
        say(conn);
}

static void take_turn(struct net_turn *turn)
{
    struct grpc__conn *conn = peg__container_of(turn, struct grpc__conn, turn);
    const bool is_due = conn->is_due;

    conn->is_due = false;
    if (conn->is_ending) {
        end_some(conn);
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
        say(conn);
}

static void on_drained(void *user)
{
    struct grpc__conn *conn = user;

    net_stream_resume(conn->stream);
    if (conn->session)
        net_loop_later(conn->home->loop, &conn->flush);
}

/* ---- events of the session
 * --------------------------------------------------------------------------------- */

static struct grpc_stream *on_stream(void *user)
{
    return grpc__call_begin(user);
}

static void on_output(void *user)
{
    struct grpc__conn *conn = user;

    net_loop_later(conn->home->loop, &conn->flush);
}

/* Pings that come faster than agreed, while nothing was answered, are strikes. */
static void on_ping(void *user)
{
    struct grpc__conn *conn = user;
    const int64_t now = net_loop_now_ns(conn->home->loop);
    const bool is_early = conn->pinged_ns &&
                          now < peg__clock_after_ms(conn->pinged_ns, options_of(conn)->min_ping_ms);

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
    } else if (conn->was_asked_to_go && !conn->was_told_finally) {
        grpc__conn_report_end(conn);
    }
    grpc__conn_arm(conn);
}

/* What it had to say first is whole; until then a byte now and then did not keep it. */
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
    .on_output = on_output,
    .on_ping = on_ping,
    .on_pong = on_pong,
};

/* ---- input
 * -------------------------------------------------------------------------------------------------
 */

static void feed_session(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    peg_error error;

    if (!conn->is_refused && grpc_session_feed(conn->session, bytes, len, &error)) {
        conn->is_refused = true;
        peg__log(PEG_LOG_INFO, error.code, "%s: %s", net_stream_peer(conn->stream), error.message);
    }
}

/* So many bytes took so long: how many would take a time of which there is `wanted_ns`? */
static size_t fit(size_t len, int64_t took_ns, int64_t wanted_ns, size_t min, size_t max)
{
    const size_t fitting =
        took_ns > wanted_ns ? (size_t)((double)len * (double)wanted_ns / (double)took_ns) : 2 * len;

    if (fitting < min)
        return min;
    return fitting < max ? fitting : max;
}

/* Feeds as much as takes a turn, and leaves the rest for the next. Returns how long it took. */
static int64_t feed_some(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    const int64_t from_ns = peg__mono_ns();
    int64_t at_ns = from_ns;
    size_t done = 0;

    while (done < len) {
        const size_t n = len - done < conn->piece ? len - done : conn->piece;
        int64_t now;

        if (at_ns - from_ns > NET_TURN_NS / 2 &&
            !net_stream_unread(conn->stream, bytes + done, len - done))
            break;
        feed_session(conn, bytes + done, n);
        done += n;
        now = peg__mono_ns();
        if (n == conn->piece || now - at_ns > NET_TURN_NS / 2)
            conn->piece = fit(n, now - at_ns, NET_TURN_NS / 2, MIN_PIECE, MAX_PIECE);
        at_ns = now;
    }
    if (len >= conn->max_read || done < len)
        conn->max_read = fit(done, at_ns - from_ns, NET_TURN_NS, MIN_PIECE, MAX_READ);
    return at_ns - from_ns;
}

/* One that asks a little, and it is a call, may ask again as soon as it likes. */
static void feed(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    const uint64_t n_started = grpc__counted(&conn->home->counts.n_started);
    const bool was_alone = is_alone(conn);
    bool is_quick = len < conn->max_read;

    conn->last_read_ns = net_loop_now_ns(conn->home->loop);
    if (was_alone)
        feed_session(conn, bytes, len);
    else
        is_quick &= feed_some(conn, bytes, len) <= NET_TURN_NS;
    is_quick &= grpc__counted(&conn->home->counts.n_started) > n_started;
    grpc__conn_count(conn);
    net_stream_set_fair_queue(conn->stream, is_quick || was_alone ? NET_TURN_ENDS : NET_TURN_READS);
    net_stream_set_max_read(conn->stream, was_alone ? ALONE_READ : conn->max_read);
    net_loop_later(conn->home->loop, &conn->flush);
}

static peg_status start_session(struct grpc__conn *conn)
{
    const struct grpc_server_options *options = options_of(conn);
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
    conn->last_read_ns = conn->idle_since_ns = net_loop_now_ns(conn->home->loop);
    grpc__conn_arm(conn);
    feed(conn, conn->first, conn->n_first);
    return PEG_OK;
}

static void on_http1_request(void *user, const struct net_http1_request *request,
                             struct net_http1_answer *answer)
{
    struct grpc__conn *conn = user;
    const struct grpc_server_options *options = options_of(conn);

    options->on_http1(options->http1_user, request, answer);
    /* What is shared counts for each: an older one may be kept by it alone. */
    conn->page_bytes = answer->shared ? answer->shared->bytes.len : answer->body.capacity;
    grpc__conn_count(conn);
}

static void on_http1_end(void *user)
{
    struct grpc__conn *conn = user;

    conn->http1 = NULL;
    free_conn(conn);
}

static const struct net_http1_events http1_events = {
    .on_request = on_http1_request,
    .on_end = on_http1_end,
};

/* HTTP/1.1 has times of its own. One of ours may have come in this round already, and waits for
 * its turn. */
static void forget_times(struct grpc__conn *conn)
{
    net_loop_disarm(conn->home->loop, &conn->timer);
    net_loop_no_turn(conn->home->loop, &conn->turn);
    conn->is_due = false;
    /* Whoever answers has seen who asks. */
    grpc__conn_end_count(conn);
    conn->quota = &conn->home->server->held;
}

/* Everything that came so far goes to HTTP/1.1, or a sentence for whoever looks at it. */
static void start_http1(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
{
    uint8_t *first = net_loop_scratch(conn->home->loop);

    if (!options_of(conn)->on_http1) {
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
    if (net_http1_serve(conn->stream, &http1_events, conn, first, conn->n_first + len,
                        &conn->http1))
        free_conn(conn);
}

/* The client has chosen HTTP/2 by ALPN: it may not speak anything else. */
static bool chose_http2(const struct grpc__conn *conn)
{
    const struct net_tls *tls = net_stream_tls(conn->stream);

    return tls && peg__str_is(net_tls_alpn(tls), "h2");
}

/* The first bytes that differ from the preface of HTTP/2 tell that it is something else. */
static void look(struct grpc__conn *conn, const uint8_t *bytes, size_t len)
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
        feed(conn, bytes + n, len - n);
}

static void on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct grpc__conn *conn = user;

    if (conn->session)
        feed(conn, bytes, len);
    else
        look(conn, bytes, len);
}

static void on_closed(void *user, const peg_error *error)
{
    struct grpc__conn *conn = user;

    (void)error; /* clients come and go */
    begin_end(conn);
    end_some(conn);
}

static const struct net_stream_events stream_events = {
    .on_bytes = on_bytes,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

/* ---- the beginning
 * ----------------------------------------------------------------------------------------- */

/* Clients that came together do not all leave together. */
static int64_t spread(const struct grpc__conn *conn, int64_t ms)
{
    const uintptr_t place = (uintptr_t)conn / 64;

    return ms - ms / 10 + (int64_t)(place % 21) * ms / 100;
}

peg_status grpc__conn_new(struct grpc__server_loop *home, struct net_stream *stream)
{
    struct grpc__conn *conn = peg__alloc_zero(1, sizeof(*conn));
    const struct grpc_server_options *options = &home->server->options;

    if (!conn)
        return PEG_ENOMEM;
    conn->home = home;
    conn->stream = stream;
    conn->flush.fn = flush;
    conn->turn.fn = take_turn;
    conn->timer.fn = grpc__conn_time_passed;
    conn->opened_ns = net_loop_now_ns(home->loop);
    conn->close_ns = NET_NEVER;
    conn->leave_ns = options->max_age_ms
                         ? peg__clock_after_ms(conn->opened_ns, spread(conn, options->max_age_ms))
                         : NET_NEVER;
    conn->sweep_ns = peg__clock_after_ms(conn->opened_ns, options->stall_ms / 2);
    grpc__conn_begin_count(conn);
    conn->next = home->conns;
    if (conn->next)
        conn->next->prev = conn;
    home->conns = conn;
    grpc__count(&home->counts.n_connections, 1);
    conn->max_read = FIRST_READ;
    conn->piece = FIRST_PIECE;
    net_stream_set_max_read(stream, FIRST_READ);
    net_stream_set_fair_queue(stream, NET_TURN_READS);
    net_stream_set_events(stream, &stream_events, conn);
    grpc__conn_arm(conn);
    return PEG_OK;
}
