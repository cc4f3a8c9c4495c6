/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection of a client.
 *
 *   in:  bytes -> feed -> events of streams, then on_fed
 *   out: output of a session -> later, once per round -> flush -> the socket; then
 * on_client_drained
 *
 * Everything that ends it leads to lose_conn(), which waits until the session does not feed.
 */

#include "grpc/client/internal.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"

static struct grpc_client_conn *conn_of_later(struct net_later *later)
{
    return peg__container_of(later, struct grpc_client_conn, flush);
}

static struct grpc_client_conn *conn_of_timer(struct net_timer *timer)
{
    return peg__container_of(timer, struct grpc_client_conn, timer);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void release_conn(struct grpc_client_conn *conn)
{
    struct net_stream *stream = conn->stream;

    conn->stream = NULL;
    if (stream && conn->is_open)
        net_stream_close(stream);
    else if (stream)
        net_stream_drop(stream);
    conn->session = grpc_session_free(conn->session);
    /* The streams that ended just now may have asked for one or the other. */
    net_loop_disarm(conn->loop, &conn->timer);
    net_loop_not_later(conn->loop, &conn->flush);
    peg__free(conn);
}

/* `error` NULL: in good order. While the session feeds, its feeder comes here again. */
static void lose_conn(struct grpc_client_conn *conn, const peg_error *error)
{
    if (error && conn->lost.status == PEG_OK)
        conn->lost = *error;
    if (grpc_session_is_feeding(conn->session))
        return;
    net_loop_disarm(conn->loop, &conn->timer);
    conn->options.events->on_lost(conn->options.user, conn);
    release_conn(conn);
}

static bool is_done(const struct grpc_client_conn *conn)
{
    return conn->lost.status != PEG_OK || (conn->is_retired && conn->pick.n_streams == 0);
}

/* ---- out ---------------------------------------------------------------------------------- */

static peg_status send_output_now(struct grpc_client_conn *conn, uint8_t *room, size_t max,
                                  peg_error *reterr)
{
    peg_status status = PEG_OK;

    while (!status && conn->is_open && !net_stream_is_blocked(conn->stream)) {
        const size_t n = grpc_session_pull(conn->session, room, max);

        if (n == 0)
            break;
        status = net_stream_write(conn->stream, room, n, reterr);
    }
    return status;
}

/* False: it is lost or gone; nothing of it may be touched. */
static bool flush(struct grpc_client_conn *conn)
{
    peg_error error;
    const peg_status status =
        send_output_now(conn, net_loop_scratch(conn->loop), NET_SCRATCH_BYTES, &error);

    /* A socket that broke tells by on_closed; here are the other reasons. */
    if (status && status != PEG_EIO)
        lose_conn(conn, &error);
    return status == PEG_OK;
}

static void on_flush(struct net_later *later)
{
    struct grpc_client_conn *conn = conn_of_later(later);
    peg_error error;

    if (!flush(conn))
        return;
    if (is_done(conn)) {
        lose_conn(conn, NULL);
    } else if (grpc_session_is_over(conn->session)) {
        peg__fail_nomem(&error); /* other ends of a session are reported as they happen */
        lose_conn(conn, &error);
    }
}

static void on_client_drained(void *user)
{
    struct grpc_client_conn *conn = user;

    net_loop_later(conn->loop, &conn->flush);
}

static void on_output(void *user)
{
    struct grpc_client_conn *conn = user;

    net_loop_later(conn->loop, &conn->flush);
}

/* ---- in ----------------------------------------------------------------------------------- */

/* Somebody who chose something else by ALPN would not understand a word. */
static bool speaks_http2(const struct grpc_client_conn *conn)
{
    const struct net_tls *tls = net_stream_tls(conn->stream);
    const peg_str alpn = tls ? net_tls_alpn(tls) : (peg_str){"", 0};

    return alpn.len == 0 || peg__str_is(alpn, "h2");
}

static void on_open(void *user)
{
    struct grpc_client_conn *conn = user;
    peg_error error;

    if (!speaks_http2(conn)) {
        peg__fail(&error, PEG_EUNSUPPORTED, "E_GRPC_CONNECT",
                  "%s does not offer HTTP/2 (ALPN h2) over TLS: see what listens there",
                  conn->peer);
        lose_conn(conn, &error);
        return;
    }
    conn->is_open = true;
    net_loop_later(conn->loop, &conn->flush);
}

static int64_t ping_due(const struct grpc_client_conn *conn)
{
    return peg__clock_after_ms(conn->last_read_ns, conn->options.keepalive_ms);
}

/* Whatever comes shows that somebody is there. */
static void note_life(struct grpc_client_conn *conn)
{
    if (conn->options.keepalive_ms == 0)
        return;
    conn->last_read_ns = net_loop_now_ns(conn->loop);
    /* The timer stands at the end of the time for an answer, which may be long after. */
    if (conn->is_pinging)
        net_loop_arm(conn->loop, &conn->timer, ping_due(conn));
    conn->is_pinging = false;
}

static void on_client_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct grpc_client_conn *conn = user;
    peg_error error;
    peg_error why;

    note_life(conn);
    if (grpc_session_feed(conn->session, bytes, len, &error)) {
        peg__fail_because(&why, error.status, "E_GRPC_CONNECT", &error,
                          "the connection with %s was given up", conn->peer);
        if (flush(conn))
            lose_conn(conn, &why);
        return;
    }
    conn->options.events->on_fed(conn->options.user);
    net_loop_later(conn->loop, &conn->flush);
}

static void on_client_closed(void *user, const peg_error *error)
{
    struct grpc_client_conn *conn = user;

    conn->stream = NULL;
    conn->is_open = false;
    lose_conn(conn, error);
}

static const struct net_stream_events stream_events = {
    .on_open = on_open,
    .on_bytes = on_client_bytes,
    .on_drained = on_client_drained,
    .on_closed = on_client_closed,
};

/* ---- what the session hears --------------------------------------------------------------- */

static void on_settings(void *user)
{
    struct grpc_client_conn *conn = user;

    conn->pick.max_streams = grpc_session_peer_max_streams(conn->session);
    if (!conn->is_ready) {
        conn->is_ready = true;
        net_loop_disarm(conn->loop, &conn->timer);
    }
    if (!conn->is_retired)
        conn->options.events->on_ready(conn->options.user, conn);
}

static void retire(struct grpc_client_conn *conn, bool is_too_eager)
{
    if (!conn->is_retired) {
        conn->is_retired = true;
        conn->options.events->on_retired(conn->options.user, conn, is_too_eager);
    }
    net_loop_later(conn->loop, &conn->flush); /* there it ends, if it has no streams */
}

/* The session ends the streams above `last_id` itself, after this. */
static void on_goaway(void *user, int32_t last_id, uint32_t h2_error)
{
    (void)last_id;
    retire(user, h2_error == GRPC_H2_ENHANCE_YOUR_CALM);
}

static void on_ping(void *user)
{
    (void)user; /* the session has answered */
}

static const struct grpc_session_events session_events = {
    .on_output = on_output,
    .on_ping = on_ping,
    .on_pong = on_ping, /* any bytes are an answer: see on_client_bytes() */
    .on_goaway = on_goaway,
    .on_settings = on_settings,
};

/* ---- time --------------------------------------------------------------------------------- */

/* Without calls it is not needed; the next one starts it again. */
static void keep_alive(struct grpc_client_conn *conn)
{
    const int64_t now_ns = net_loop_now_ns(conn->loop);
    const int64_t due_ns = ping_due(conn);

    if (conn->pick.n_streams == 0)
        return;
    if (now_ns < due_ns) {
        net_loop_arm(conn->loop, &conn->timer, due_ns);
        return;
    }
    conn->is_pinging = true;
    grpc_session_ping(conn->session);
    net_loop_arm(conn->loop, &conn->timer,
                 peg__clock_after_ms(now_ns, conn->options.keepalive_timeout_ms));
}

static void on_timer(struct net_timer *timer)
{
    struct grpc_client_conn *conn = conn_of_timer(timer);
    peg_error error;

    if (conn->is_ready && !conn->is_pinging) {
        keep_alive(conn);
        return;
    }
    if (conn->is_ready)
        peg__fail(&error, PEG_ETIMEOUT, "E_GRPC_CONNECT", "%s has not answered a ping for %lld ms",
                  conn->peer, (long long)conn->options.keepalive_timeout_ms);
    else
        peg__fail(&error, PEG_ETIMEOUT, "E_GRPC_CONNECT",
                  "%s has not begun to speak HTTP/2 within %lld ms: see what listens there",
                  conn->peer, (long long)conn->options.stream.open_ms);
    conn->is_open = false; /* its input is not read any more: the rest can be dropped */
    lose_conn(conn, &error);
}

/* ---- the face ----------------------------------------------------------------------------- */

peg_status grpc_client_conn_new(struct net_loop *loop, const struct net_address *address,
                                const struct grpc_client_conn_options *options,
                                struct grpc_client_conn **ret_conn, peg_error *reterr)
{
    struct grpc_client_conn *conn = peg__alloc_zero(1, sizeof(*conn));
    peg_status status;

    if (!conn)
        return peg__fail_nomem(reterr);
    conn->loop = loop;
    conn->options = *options;
    conn->flush.fn = on_flush;
    conn->timer.fn = on_timer;
    net_address_format(address, conn->peer);

    status = grpc_session_new(&options->session, &session_events, conn, &conn->session, reterr);
    if (!status)
        status = net_stream_connect(loop, address, &options->stream, &stream_events, conn,
                                    &conn->stream, reterr);
    if (status) {
        grpc_session_free(conn->session);
        peg__free(conn);
        return status;
    }
    /* The socket has its own timer for the same time, which says better what is wrong. */
    net_loop_arm(loop, &conn->timer,
                 peg__clock_after_ms(net_loop_now_ns(loop), options->stream.open_ms + 1));
    *ret_conn = conn;
    return PEG_OK;
}

/* In an event of another connection the loop's scratch buffer may be in use. */
static void say_goodbye(struct grpc_client_conn *conn)
{
    uint8_t room[4 << 10];

    grpc_session_goaway(conn->session, true, GRPC_H2_NO_ERROR, "");
    (void)send_output_now(conn, room, sizeof(room), NULL);
}

struct grpc_client_conn *grpc_client_conn_free(struct grpc_client_conn *conn)
{
    if (!conn)
        return NULL;
    conn->lost.status = PEG_ECANCELED;
    conn->is_retired = true;
    if (conn->is_open)
        say_goodbye(conn);
    release_conn(conn);
    return NULL;
}

void grpc_client_conn_took(struct grpc_client_conn *conn)
{
    conn->pick.n_streams++;
    if (conn->options.keepalive_ms > 0 && !conn->timer.is_armed)
        net_loop_arm(conn->loop, &conn->timer,
                     peg__clock_after_ms(net_loop_now_ns(conn->loop), conn->options.keepalive_ms));
}

void grpc_client_conn_gave(struct grpc_client_conn *conn)
{
    conn->pick.n_streams--;
    if (conn->is_retired && conn->pick.n_streams == 0)
        net_loop_later(conn->loop, &conn->flush);
}

void grpc_client_conn_retire(struct grpc_client_conn *conn)
{
    retire(conn, false);
}
