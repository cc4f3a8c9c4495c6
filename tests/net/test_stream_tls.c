/* SPDX-License-Identifier: Apache-2.0 */

/* Streams with TLS: both ends are ours on one loop, or the other end is a plain socket that says
 * whatever it likes. */

#include "net/stream/stream.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "net/loop/internal.h"
#include "side.h"
#include "tls_pair.h"

struct world {
    struct net_loop *loop;
    struct net_tls_config *server_config;
    struct net_tls_config *client_config;
    struct side server;
    struct side client;
    int raw; /* instead of the client; -1 if there is none */
};

static peg_status take(struct world *w, struct side *side, int fd,
                       const struct net_stream_options *options)
{
    return side_take(side, w->loop, fd, options, NULL);
}

static peg_status world_begin(struct world *w)
{
    const struct net_tls_options server = server_options();
    const struct net_tls_options client = client_options();
    peg_status status;

    *w = (struct world){.raw = -1};
    if ((status = net_loop_new(&w->loop, NULL)) ||
        (status = net_tls_config_new(&server, &w->server_config, NULL)) ||
        (status = net_tls_config_new(&client, &w->client_config, NULL)))
        return status;
    side_init(&w->server, w->loop);
    side_init(&w->client, w->loop);
    return PEG_OK;
}

static void world_done(struct world *w)
{
    net_loop_free(w->loop);
    net_tls_config_unref(w->server_config);
    net_tls_config_unref(w->client_config);
    peg__buf_free(&w->server.got);
    peg__buf_free(&w->client.got);
    if (w->raw >= 0)
        close(w->raw);
}

static peg_status connect_both(struct world *w, const char *host)
{
    const struct net_stream_options server = {.tls = w->server_config};
    const struct net_stream_options client = {.tls = w->client_config, .tls_host = host};
    peg_status status;
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    status = take(w, &w->server, fds[0], &server);
    if (status) {
        close(fds[1]);
        return status;
    }
    return take(w, &w->client, fds[1], &client);
}

static void world_both(struct world *w)
{
    CHECK_INT(world_begin(w), PEG_OK);
    CHECK_INT(connect_both(w, "localhost"), PEG_OK);
}

/* A server of ours, and a socket that is connected with it. */
static void world_raw(struct world *w, int64_t open_ms, size_t max_queue)
{
    struct net_stream_options options = {.open_ms = open_ms, .max_queue = max_queue};
    int fds[2];

    CHECK_INT(world_begin(w), PEG_OK);
    options.tls = w->server_config;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    w->raw = fds[1];
    CHECK_INT(take(w, &w->server, fds[0], &options), PEG_OK);
}

static void open_both(struct world *w)
{
    world_both(w);
    RUN_UNTIL(w->loop, w->server.n_opened && w->client.n_opened);
}

static peg_status write_text(struct side *side, const char *text)
{
    return net_stream_write(side->stream, (const uint8_t *)text, strlen(text), NULL);
}

/* ---- what works --------------------------------------------------------------------------- */

TEST(a_stream_opens_when_hands_were_shaken)
{
    struct world w;

    world_both(&w);
    CHECK_INT(write_text(&w.client, "too early"), PEG_ESTATE);
    RUN_UNTIL(w.loop, w.server.n_opened && w.client.n_opened);

    CHECK_STR(net_tls_alpn(net_stream_tls(w.client.stream)), "h2");
    CHECK_STR(net_tls_peer_name(net_stream_tls(w.client.stream)), "localhost");
    CHECK_INT(w.server.n_opened, 1);
    CHECK_INT(w.client.n_opened, 1);
    world_done(&w);
}

TEST(bytes_go_both_ways)
{
    struct world w;

    world_both(&w);
    w.client.at_open = SIDE_ECHO; /* "hello" */
    w.server.at_bytes = SIDE_ECHO;
    RUN_UNTIL(w.loop, w.client.got.len == 5);

    CHECK_STR(peg__buf_view(&w.server.got), "hello");
    CHECK_STR(peg__buf_view(&w.client.got), "hello");
    CHECK(!net_stream_is_blocked(w.client.stream));
    world_done(&w);
}

TEST(a_real_connection_has_tls_too)
{
    struct world w;
    struct net_stream_options options = {.tls_host = "127.0.0.1"};
    struct net_address address = {.len = sizeof(struct sockaddr_in)};
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.at.ip4.sin_family = AF_INET;
    address.at.ip4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(listener, &address.at.any, address.len) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, &address.at.any, &address.len) == 0);
    CHECK_INT(world_begin(&w), PEG_OK);
    options.tls = w.client_config;
    CHECK_INT(net_stream_connect(w.loop, &address, &options, &side_events, &w.client,
                                 &w.client.stream, NULL),
              PEG_OK);
    options = (struct net_stream_options){.tls = w.server_config};
    CHECK_INT(take(&w, &w.server, accept4(listener, NULL, NULL, SOCK_CLOEXEC), &options), PEG_OK);
    RUN_UNTIL(w.loop, w.server.n_opened && w.client.n_opened);

    close(listener);
    world_done(&w);
}

/* More than sockets and buffers hold, so that both sides stop and go on. */
TEST(many_bytes_arrive_in_order)
{
    enum { N = 8 << 20, CHUNK = 48 << 10 };
    static uint8_t chunk[CHUNK];
    struct world w;
    size_t n_sent = 0;

    open_both(&w);
    while (w.server.got.len < N) {
        while (n_sent < N && !net_stream_is_blocked(w.client.stream)) {
            const size_t len = N - n_sent < CHUNK ? N - n_sent : CHUNK;

            for (size_t i = 0; i < len; i++)
                chunk[i] = (uint8_t)((n_sent + i) * 31 >> 3);
            CHECK_INT(net_stream_write(w.client.stream, chunk, len, NULL), PEG_OK);
            n_sent += len;
        }
        net_loop_run(w.loop);
    }
    for (size_t i = 0; i < N; i++)
        if ((uint8_t)w.server.got.ptr[i] != (uint8_t)(i * 31 >> 3))
            T_FAIL("byte %zu differs", i);
    CHECK(w.client.n_drained > 0);
    CHECK_INT(w.server.got.len, N);
    world_done(&w);
}

TEST(bytes_that_came_before_a_pause_wait_for_its_end)
{
    struct world w;

    open_both(&w);
    net_stream_pause(w.server.stream);
    CHECK_INT(write_text(&w.client, "one"), PEG_OK);
    run_rounds(w.loop, 5);
    CHECK_INT(w.server.n_bytes, 0);

    net_stream_resume(w.server.stream);
    RUN_UNTIL(w.loop, w.server.got.len == 3);
    world_done(&w);
}

/* What TLS has taken from the socket already needs no new bytes to be handed out. */
TEST(bytes_inside_tls_are_handed_out_after_a_pause)
{
    enum { N = 200 << 10 };
    static uint8_t bytes[N];
    struct world w;

    open_both(&w);
    w.server.at_bytes = SIDE_PAUSE;
    CHECK_INT(net_stream_write(w.client.stream, bytes, N, NULL), PEG_OK);
    while (w.server.got.len < N) {
        const unsigned n_bytes = w.server.n_bytes;

        RUN_UNTIL(w.loop, w.server.n_bytes > n_bytes);
        CHECK_INT(w.server.n_bytes, n_bytes + 1);
        net_stream_resume(w.server.stream);
    }
    world_done(&w);
}

TEST(a_full_queue_takes_nothing)
{
    static uint8_t bytes[256 << 10];
    struct world w;
    peg_status status = PEG_OK;
    size_t queued = 0;

    open_both(&w);
    while (!status) {
        queued = net_stream_queued(w.client.stream);
        status = net_stream_write(w.client.stream, bytes, sizeof(bytes), NULL);
    }
    CHECK_INT(status, PEG_ELIMIT);
    CHECK_INT(net_stream_queued(w.client.stream), queued);
    CHECK(queued <= PEG_LIMIT_NET_QUEUE_BYTES * 2);
    world_done(&w);
}

/* ---- the end ------------------------------------------------------------------------------ */

TEST(closing_sends_what_waits_and_says_so)
{
    enum { N = 600 << 10 };
    static uint8_t bytes[N];
    struct world w;

    open_both(&w);
    CHECK_INT(net_stream_write(w.client.stream, bytes, N, NULL), PEG_OK);
    CHECK(net_stream_is_blocked(w.client.stream));
    net_stream_close(w.client.stream);
    RUN_UNTIL(w.loop, w.server.n_closed == 1);

    CHECK_INT(w.server.got.len, N);
    CHECK_STR(peg__str(w.server.error.code), "E_STREAM_ENDED");
    CHECK_INT(w.client.n_closed + w.client.n_drained, 0);
    while (net_loop_load(w.loop) > 0)
        run_rounds(w.loop, 1);
    world_done(&w);
}

/* A client that is worked by hand at the other end of a socket, and what it has read. */
static struct net_tls *open_by_hand(struct world *w)
{
    struct net_tls *tls = NULL;

    world_raw(w, 0, 0);
    CHECK_INT(net_tls_new(w->client_config, "localhost", &tls, NULL), PEG_OK);
    CHECK_INT(net_tls_start(tls, NULL), PEG_OK);
    return tls;
}

static void send_by_hand(struct world *w, struct net_tls *tls)
{
    const peg_str wire = net_tls_wire(tls);

    if (wire.len == 0)
        return;
    CHECK_INT(write(w->raw, wire.ptr, wire.len), wire.len);
    net_tls_took(tls, wire.len);
}

/* False at the end of the wire. */
static bool hear_by_hand(struct world *w, struct net_tls *tls)
{
    uint8_t bytes[16 << 10];
    size_t len = 0;
    const ssize_t n = recv(w->raw, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n > 0)
        CHECK_INT(net_tls_feed(tls, bytes, (size_t)n, NULL), PEG_OK);
    if (n > 0 && net_tls_is_open(tls))
        CHECK_INT(net_tls_read(tls, bytes, sizeof(bytes), &len, NULL), PEG_OK);
    return n != 0;
}

static void shake_by_hand(struct world *w, struct net_tls *tls)
{
    while (!net_tls_is_open(tls) || !w->server.n_opened) {
        send_by_hand(w, tls);
        run_rounds(w->loop, 1);
        hear_by_hand(w, tls);
    }
}

/* The end came together with the bytes, but whoever pauses wants to hear of nothing. */
TEST(the_end_of_the_peer_waits_for_the_end_of_a_pause)
{
    struct world w;
    struct net_tls *client = open_by_hand(&w);

    shake_by_hand(&w, client);
    w.server.at_bytes = SIDE_PAUSE;
    CHECK_INT(net_tls_write(client, (const uint8_t *)"last", 4, NULL), PEG_OK);
    net_tls_shutdown(client);
    send_by_hand(&w, client);
    RUN_UNTIL(w.loop, w.server.got.len == 4);
    run_rounds(w.loop, 3);
    CHECK_INT(w.server.n_closed, 0);
    CHECK_INT(write_text(&w.server, "answer"), PEG_OK);

    net_stream_resume(w.server.stream);
    RUN_UNTIL(w.loop, w.server.n_closed == 1);
    CHECK_STR(peg__str(w.server.error.code), "E_STREAM_ENDED");
    net_tls_free(client);
    world_done(&w);
}

/* Both sides say it (RFC 5246, 7.2.1), or the peer takes our end for a truncation. */
TEST(a_peer_that_ends_hears_that_we_end_too)
{
    struct world w;
    struct net_tls *client = open_by_hand(&w);

    shake_by_hand(&w, client);
    net_tls_shutdown(client);
    send_by_hand(&w, client);
    RUN_UNTIL(w.loop, w.server.n_closed == 1);
    while (hear_by_hand(&w, client))
        run_rounds(w.loop, 1);

    CHECK(net_tls_peer_ended(client));
    CHECK_STR(peg__str(w.server.error.code), "E_STREAM_ENDED");
    net_tls_free(client);
    world_done(&w);
}

TEST(a_stream_may_end_itself_in_any_event)
{
    static const enum side_act acts[] = {SIDE_DROP, SIDE_CLOSE};

    for (size_t i = 0; i < 2; i++) {
        struct world w;

        world_both(&w);
        w.server.at_open = acts[i];
        RUN_UNTIL(w.loop, w.client.n_closed == 1);
        CHECK_INT(w.server.n_opened, 1);
        CHECK_INT(w.server.n_closed, 0);
        world_done(&w);

        open_both(&w);
        w.server.at_bytes = acts[i];
        CHECK_INT(write_text(&w.client, "x"), PEG_OK);
        RUN_UNTIL(w.loop, w.client.n_closed == 1);
        CHECK_INT(w.server.n_bytes, 1);
        CHECK_INT(w.server.n_closed, 0);
        world_done(&w);
    }
}

TEST(a_stream_may_be_dropped_or_closed_while_hands_are_shaken)
{
    for (unsigned n_rounds = 0; n_rounds < 4; n_rounds++) {
        struct world w;

        world_both(&w);
        run_rounds(w.loop, n_rounds);
        net_stream_drop(w.server.stream);
        w.server.stream = NULL;
        if (w.client.stream)
            net_stream_close(w.client.stream);
        run_rounds(w.loop, 3);
        CHECK_INT(w.server.n_closed, 0);
        world_done(&w);
    }
}

/* ---- what does not work ------------------------------------------------------------------- */

TEST(a_certificate_for_another_name_ends_it_on_both_sides)
{
    struct world w;

    CHECK_INT(world_begin(&w), PEG_OK);
    CHECK_INT(connect_both(&w, "example.org"), PEG_OK);
    RUN_UNTIL(w.loop, w.server.n_closed && w.client.n_closed);

    CHECK_INT(w.client.n_opened, 0);
    CHECK_INT(w.client.error.status, PEG_EIO);
    CHECK_STR(peg__str(w.client.error.code), "E_TLS");
    CHECK_STR(peg__str(w.server.error.code), "E_TLS"); /* the alert came */
    world_done(&w);
}

static void check_no_tls(peg_str first, const char *why)
{
    struct world w;

    world_raw(&w, 0, 0);
    CHECK_INT(write(w.raw, first.ptr, first.len), first.len);
    RUN_UNTIL(w.loop, w.server.n_closed == 1);

    CHECK_INT(w.server.n_opened, 0);
    CHECK_STR(peg__str(w.server.error.code), "E_TLS");
    if (!strstr(w.server.error.message, why))
        T_FAIL("%s does not say: %s", w.server.error.message, why);
    world_done(&w);
}

/* By its first bytes, or, where these could be a handshake, by what follows. */
TEST(what_is_no_tls_ends_it)
{
    check_no_tls(peg__str("GET / HTTP/1.1\r\n\r\n"), "does not use TLS");
    check_no_tls(peg__str("\x15"), "does not use TLS");
    check_no_tls(peg__str("\x16\x02"), "does not use TLS");
    check_no_tls(peg__strn("\x16\x03\x01\x40\x01", 5), "does not use TLS");
    check_no_tls(peg__strn("\x16\x03\x01\0\4\x7f\0\0\0", 9), "TLS failed");
}

/* Nothing is lost of a handshake whose first byte comes alone. */
TEST(a_handshake_may_come_byte_by_byte)
{
    struct world w;

    world_both(&w);
    net_stream_set_max_read(w.server.stream, 1);
    RUN_UNTIL(w.loop, w.server.n_opened && w.client.n_opened);
    world_done(&w);
}

TEST(a_peer_that_says_nothing_is_ended)
{
    struct world w;

    world_raw(&w, 20, 0);
    RUN_UNTIL(w.loop, w.server.n_closed == 1);

    CHECK_INT(w.server.n_opened, 0);
    CHECK_INT(w.server.error.status, PEG_ETIMEOUT);
    CHECK_STR(peg__str(w.server.error.code), "E_STREAM");
    CHECK(strstr(w.server.error.message, "the TLS handshake"));
    world_done(&w);
}

TEST(a_peer_that_ends_while_hands_are_shaken_is_told)
{
    struct world w;

    world_raw(&w, 0, 0);
    CHECK_INT(write(w.raw, "\x16\x03\x01", 3), 3);
    close(w.raw);
    w.raw = -1;
    RUN_UNTIL(w.loop, w.server.n_closed == 1);

    CHECK_STR(peg__str(w.server.error.code), "E_STREAM_ENDED");
    CHECK_INT(w.server.n_opened, 0);
    world_done(&w);
}

/* An end without the word for it: what came is whole all the same, as far as we can tell. */
TEST(a_peer_that_is_gone_is_told)
{
    struct world w;

    open_both(&w);
    run_rounds(w.loop, 3); /* the client reads its tickets: unread bytes would be a reset */
    CHECK_INT(write_text(&w.client, "x"), PEG_OK);
    net_stream_drop(w.client.stream);
    w.client.stream = NULL;
    RUN_UNTIL(w.loop, w.server.n_closed == 1);

    CHECK_STR(peg__buf_view(&w.server.got), "x");
    CHECK_STR(peg__str(w.server.error.code), "E_STREAM_ENDED");
    world_done(&w);
}

TEST(writing_to_a_peer_that_is_gone_fails)
{
    struct world w;

    open_both(&w);
    net_stream_drop(w.client.stream);
    w.client.stream = NULL;
    CHECK_INT(write_text(&w.server, "x"), PEG_EIO);
    RUN_UNTIL(w.loop, w.server.n_closed == 1);
    world_done(&w);
}

/* ---- anything at any time ------------------------------------------------------------------ */

static uint32_t random_state = 1;

static uint32_t draw(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

static void write_some(struct side *side, size_t *n_sent)
{
    static uint8_t bytes[100000];
    const size_t len = draw(sizeof(bytes));

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((*n_sent + i) * 31 >> 3);
    if (net_stream_write(side->stream, bytes, len, NULL) == PEG_OK)
        *n_sent += len;
}

static void do_something(struct side *side, size_t *n_sent)
{
    static const enum side_act acts[] = {SIDE_PAUSE, SIDE_CLOSE, SIDE_DROP};
    const uint32_t what = draw(60);

    if (what < 30)
        write_some(side, n_sent);
    else if (what < 40)
        net_stream_pause(side->stream);
    else if (what < 57)
        net_stream_resume(side->stream);
    else if (what < 59)
        side->at_bytes = acts[draw(3)];
    else
        side_act(side, acts[1 + draw(2)], NULL, 0);
}

static void check_prefix(const struct side *side, size_t n_sent)
{
    CHECK(side->got.len <= n_sent);
    for (size_t i = 0; i < side->got.len; i++)
        if ((uint8_t)side->got.ptr[i] != (uint8_t)(i * 31 >> 3))
            T_FAIL("byte %zu differs", i);
    CHECK_INT(side->n_late, 0);
    CHECK(side->n_closed <= 1);
    CHECK(side->n_opened <= 1);
}

static void live_through_anything(bool has_tls)
{
    struct world w;
    size_t n_sent[2] = {0};
    int fds[2];

    CHECK_INT(world_begin(&w), PEG_OK);
    if (has_tls) {
        CHECK_INT(connect_both(&w, "localhost"), PEG_OK);
    } else {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        CHECK_INT(take(&w, &w.server, fds[0], NULL), PEG_OK);
        CHECK_INT(take(&w, &w.client, fds[1], NULL), PEG_OK);
    }
    for (unsigned i = 0; i < 200 && (w.server.stream || w.client.stream); i++) {
        if (w.server.stream)
            do_something(&w.server, &n_sent[0]);
        if (w.client.stream)
            do_something(&w.client, &n_sent[1]);
        run_rounds(w.loop, draw(3));
    }
    w.loop = net_loop_free(w.loop);
    check_prefix(&w.server, n_sent[1]);
    check_prefix(&w.client, n_sent[0]);
    world_done(&w);
}

TEST(streams_live_through_anything_in_any_order)
{
    for (unsigned i = 0; i < t_rounds(100); i++) {
        random_state = i + 1;
        live_through_anything(i % 2);
    }
}

/* ---- out of memory ------------------------------------------------------------------------ */

/* From the first byte to an echo. Memory that is missing ends a stream, or a call says so. */
TORTURE(a_connection_survives_any_allocation_failure)
{
    struct world w;
    peg_status status = world_begin(&w);

    if (!status) {
        net_loop_keep_here(w.loop);
        status = connect_both(&w, "localhost");
    }
    w.client.at_open = SIDE_ECHO;
    w.server.at_bytes = SIDE_ECHO;
    while (!status && w.client.got.len < 5) {
        net_loop_run(w.loop);
        if (w.server.n_closed || w.client.n_closed || w.server.written || w.client.written ||
            w.server.got.status || w.client.got.status)
            status = PEG_ENOMEM;
    }
    world_done(&w);
    return status;
}
