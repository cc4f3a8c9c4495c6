/* SPDX-License-Identifier: Apache-2.0 */

#include "net/stream/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "side.h"
#include "t.h"

/* ---- a world: a stream of ours, and a plain socket at the other end ------------------------ */

struct world {
    struct net_loop *loop;
    struct side side;
    int peer; /* -1 once it is closed */
};

static int tcp_listener(struct net_address *ret_address)
{
    struct net_address address = {.len = sizeof(struct sockaddr_in)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.at.ip4.sin_family = AF_INET;
    address.at.ip4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd, &address.at.any, address.len) == 0);
    CHECK(listen(fd, 8) == 0);
    CHECK(getsockname(fd, &address.at.any, &address.len) == 0);
    *ret_address = address;
    return fd;
}

static void tcp_pair(int fds[2])
{
    struct net_address address;
    const int listener = tcp_listener(&address);

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fds[0], &address.at.any, address.len) == 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fds[1] >= 0);
    close(listener);
}

static peg_status world_make(struct world *w, const int fds[2],
                             const struct net_stream_options *options)
{
    peg_status status;
    peg_error error;

    *w = (struct world){.peer = fds[1]};
    status = net_loop_new(&w->loop, &error);
    if (status) {
        close(fds[0]);
        return status;
    }
    side_init(&w->side, w->loop);
    return side_take(&w->side, w->loop, fds[0], options, &error);
}

static void world_unix(struct world *w, const struct net_stream_options *options)
{
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    CHECK_INT(world_make(w, fds, options), PEG_OK);
}

static void world_tcp(struct world *w)
{
    int fds[2];

    tcp_pair(fds);
    CHECK_INT(world_make(w, fds, NULL), PEG_OK);
}

static void peer_close(struct world *w)
{
    close(w->peer);
    w->peer = -1;
}

/* The next bytes end with a reset. */
static void peer_reset(struct world *w)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};

    setsockopt(w->peer, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    peer_close(w);
}

static void world_done(struct world *w)
{
    net_loop_free(w->loop);
    peg__buf_free(&w->side.got);
    if (w->peer >= 0)
        close(w->peer);
}

static void peer_write(struct world *w, const char *text)
{
    CHECK_INT(write(w->peer, text, strlen(text)), strlen(text));
}

/* What the peer reads, while the loop runs; until `len` bytes or the end. */
static size_t peer_read(struct world *w, uint8_t *bytes, size_t len)
{
    size_t n = 0;

    while (n < len) {
        const ssize_t got = recv(w->peer, bytes + n, len - n, MSG_DONTWAIT);

        if (got == 0)
            break;
        if (got > 0)
            n += (size_t)got;
        else
            CHECK(errno == EAGAIN);
        run_rounds(w->loop, 1);
    }
    return n;
}

static peg_status write_text(struct world *w, const char *text)
{
    return net_stream_write(w->side.stream, (const uint8_t *)text, strlen(text), NULL);
}

/* Fills the socket and some of the queue, with bytes that tell their place. */
enum { CHUNK = 32 << 10 };
static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8));
}

static size_t write_until_blocked(struct world *w)
{
    static uint8_t chunk[CHUNK];
    size_t total = 0;

    while (!net_stream_is_blocked(w->side.stream)) {
        for (size_t i = 0; i < CHUNK; i++)
            chunk[i] = byte_at(total + i);
        CHECK_INT(net_stream_write(w->side.stream, chunk, CHUNK, NULL), PEG_OK);
        total += CHUNK;
    }
    return total;
}

static void check_read(struct world *w, size_t total)
{
    uint8_t *bytes = (uint8_t *)malloc(total);

    CHECK_INT(peer_read(w, bytes, total), total);
    for (size_t i = 0; i < total; i++)
        if (bytes[i] != byte_at(i))
            T_FAIL("byte %zu of %zu differs", i, total);
    free(bytes);
}

/* ---- opening ------------------------------------------------------------------------------ */

TEST(a_socket_that_is_taken_is_open_at_once)
{
    struct world w;

    world_unix(&w, NULL);
    CHECK_INT(w.side.n_opened, 0);
    CHECK_INT(write_text(&w, "early"), PEG_OK);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);

    peer_write(&w, "x");
    RUN_UNTIL(w.loop, w.side.got.len == 1);
    CHECK_INT(w.side.n_opened, 1);
    world_done(&w);
}

TEST(a_stream_counts_as_load_of_its_loop)
{
    struct world w;

    world_unix(&w, NULL);
    CHECK_INT(net_loop_load(w.loop), 1);
    net_stream_drop(w.side.stream);
    CHECK_INT(net_loop_load(w.loop), 0);
    world_done(&w);
}

TEST(tcp_sockets_do_not_delay_small_messages)
{
    struct world w;
    int fds[2];
    int value = 0;
    socklen_t len = sizeof(value);

    tcp_pair(fds);
    CHECK_INT(world_make(&w, fds, NULL), PEG_OK);
    CHECK(getsockopt(fds[0], IPPROTO_TCP, 1 /* TCP_NODELAY */, &value, &len) == 0);
    CHECK(value);
    CHECK(getsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, &value, &len) == 0);
    CHECK(value);
    world_done(&w);
}

TEST(a_stream_knows_its_peer)
{
    struct world w;
    struct net_address address = {.len = sizeof(address.at)};
    char text[NET_ADDRESS_TEXT];

    world_tcp(&w);
    CHECK(getsockname(w.peer, &address.at.any, &address.len) == 0);
    net_address_format(&address, text);
    CHECK_STR(peg__str(net_stream_peer(w.side.stream)), text);
    CHECK(net_stream_is_local(w.side.stream));
    CHECK(net_stream_loop(w.side.stream) == w.loop);
    CHECK(net_stream_tls(w.side.stream) == NULL);
    world_done(&w);
}

TEST(what_is_not_connected_cannot_be_taken)
{
    struct net_loop *loop;
    struct net_stream *stream = NULL;
    peg_error error;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(net_loop_new(&loop, &error), PEG_OK);
    CHECK_INT(net_stream_take(loop, fd, NULL, &side_events, NULL, &stream, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_STREAM");
    CHECK(strstr(error.message, "ENOTCONN"));
    CHECK(!stream);
    CHECK(fcntl(fd, F_GETFD) < 0); /* it was closed */
    net_loop_free(loop);
}

/* ---- connecting --------------------------------------------------------------------------- */

static void connect_to(struct world *w, const struct net_address *address)
{
    peg_error error;

    *w = (struct world){.peer = -1};
    CHECK_STATUS(net_loop_new(&w->loop, &error), PEG_OK, error);
    side_init(&w->side, w->loop);
    CHECK_STATUS(
        net_stream_connect(w->loop, address, NULL, &side_events, &w->side, &w->side.stream, &error),
        PEG_OK, error);
}

TEST(connecting_opens_the_stream)
{
    struct world w;
    struct net_address address;
    const int listener = tcp_listener(&address);

    connect_to(&w, &address);
    w.side.at_open = SIDE_ECHO;
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    w.peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    peer_write(&w, "x");
    RUN_UNTIL(w.loop, w.side.got.len == 1);

    CHECK_INT(w.side.written, PEG_OK);
    close(listener);
    world_done(&w);
}

TEST(writing_before_the_connection_stands_is_refused)
{
    struct world w;
    struct net_address address;
    peg_error error;
    const int listener = tcp_listener(&address);

    connect_to(&w, &address);
    CHECK_INT(net_stream_write(w.side.stream, (const uint8_t *)"x", 1, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_STREAM");
    close(listener);
    world_done(&w);
}

TEST(a_refused_connection_is_told_as_an_end)
{
    struct world w;
    struct net_address address;

    close(tcp_listener(&address)); /* nobody listens there any more */
    connect_to(&w, &address);
    CHECK_INT(w.side.n_closed, 0);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK_INT(w.side.error.status, PEG_EIO);
    CHECK_STR(peg__str(w.side.error.code), "E_STREAM");
    CHECK(strstr(w.side.error.message, "ECONNREFUSED"));
    CHECK_INT(w.side.n_opened, 0);
    world_done(&w);
}

TEST(a_unix_socket_that_is_not_there_is_told_as_an_end)
{
    struct world w;
    struct net_endpoint endpoint;

    CHECK_INT(net_endpoint_parse(peg__str("unix:/nonexistent/socket"), &endpoint, NULL), PEG_OK);
    connect_to(&w, &endpoint.unix_address);
    CHECK_INT(w.side.n_closed, 0);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK(strstr(w.side.error.message, "unix:/nonexistent/socket"));
    CHECK(strstr(w.side.error.message, "ENOENT"));
    world_done(&w);
}

/* A listener whose queue is full answers nobody. */
TEST(connecting_has_a_time)
{
    struct world w = {.peer = -1};
    const struct net_stream_options options = {.open_ms = 20};
    struct net_address address;
    int fillers[2];
    peg_error error;
    const int listener = tcp_listener(&address);

    CHECK(listen(listener, 0) == 0);
    for (size_t i = 0; i < 2; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], &address.at.any, address.len);
    }
    CHECK_STATUS(net_loop_new(&w.loop, &error), PEG_OK, error);
    side_init(&w.side, w.loop);
    CHECK_STATUS(net_stream_connect(w.loop, &address, &options, &side_events, &w.side,
                                    &w.side.stream, &error),
                 PEG_OK, error);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK_INT(w.side.error.status, PEG_ETIMEOUT);
    CHECK_STR(peg__str(w.side.error.code), "E_STREAM");
    close(fillers[0]);
    close(fillers[1]);
    close(listener);
    world_done(&w);
}

TEST(a_stream_that_is_connecting_can_be_dropped_and_closed)
{
    struct world w;
    struct net_address address;
    const int listener = tcp_listener(&address);

    connect_to(&w, &address);
    net_stream_drop(w.side.stream);
    run_rounds(w.loop, 3);
    CHECK_INT(w.side.n_opened + w.side.n_closed, 0);
    world_done(&w);

    connect_to(&w, &address);
    net_stream_close(w.side.stream);
    run_rounds(w.loop, 3);
    CHECK_INT(w.side.n_opened + w.side.n_closed, 0);
    close(listener);
    world_done(&w);
}

/* ---- bytes -------------------------------------------------------------------------------- */

TEST(bytes_go_both_ways)
{
    struct world w;
    uint8_t back[5];

    world_tcp(&w);
    w.side.at_bytes = SIDE_ECHO;
    peer_write(&w, "hello");
    RUN_UNTIL(w.loop, w.side.got.len == 5);

    CHECK_STR(peg__buf_view(&w.side.got), "hello");
    CHECK_INT(peer_read(&w, back, 5), 5);
    CHECK(memcmp(back, "hello", 5) == 0);
    world_done(&w);
}

TEST(writing_what_fits_takes_no_memory)
{
    struct world w;
    size_t live;

    world_tcp(&w);
    run_rounds(w.loop, 2);
    live = peg__mem_live();
    CHECK_INT(write_text(&w, "hello"), PEG_OK);
    CHECK_INT(write_text(&w, ""), PEG_OK);
    CHECK_INT(peg__mem_live(), live);
    CHECK(!net_stream_is_blocked(w.side.stream));
    CHECK_INT(net_stream_queued(w.side.stream), 0);
    world_done(&w);
}

TEST(what_a_socket_does_not_take_waits_in_order)
{
    struct world w;
    size_t total;

    world_unix(&w, NULL);
    total = write_until_blocked(&w);
    CHECK(net_stream_queued(w.side.stream) > 0);
    check_read(&w, total);

    RUN_UNTIL(w.loop, w.side.n_drained == 1);
    CHECK(!net_stream_is_blocked(w.side.stream));
    CHECK_INT(net_stream_queued(w.side.stream), 0);
    world_done(&w);
}

TEST(writes_while_blocked_keep_their_order)
{
    struct world w;
    uint8_t more[1000];
    size_t total;

    world_unix(&w, NULL);
    total = write_until_blocked(&w);
    for (unsigned n = 0; n < 10; n++) {
        uint8_t some[5000];
        const ssize_t got = recv(w.peer, some, sizeof(some), MSG_DONTWAIT | MSG_PEEK);

        CHECK(got > 0);
        for (size_t i = 0; i < sizeof(more); i++)
            more[i] = byte_at(total + i);
        CHECK_INT(net_stream_write(w.side.stream, more, sizeof(more), NULL), PEG_OK);
        total += sizeof(more);
    }
    check_read(&w, total);
    world_done(&w);
}

TEST(a_queue_that_is_full_takes_nothing)
{
    struct world w;
    const struct net_stream_options options = {.max_queue = CHUNK};
    static uint8_t chunk[CHUNK + 1];
    size_t queued;
    peg_error error;

    world_unix(&w, &options);
    CHECK_INT(net_stream_write(w.side.stream, chunk, CHUNK + 1, &error), PEG_ELIMIT);
    (void)write_until_blocked(&w);
    queued = net_stream_queued(w.side.stream);
    CHECK_INT(net_stream_write(w.side.stream, chunk, CHUNK - queued + 1, &error), PEG_ELIMIT);

    CHECK_STR(peg__str(error.code), "E_SEND_QUEUE_FULL");
    CHECK(strstr(error.message, "max_queue"));
    CHECK_INT(net_stream_queued(w.side.stream), queued);
    CHECK_INT(net_stream_write(w.side.stream, chunk, CHUNK - queued, &error), PEG_OK);
    CHECK_INT(net_stream_queued(w.side.stream), CHUNK);
    world_done(&w);
}

TEST(a_paused_stream_reads_nothing)
{
    struct world w;

    world_unix(&w, NULL);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    net_stream_pause(w.side.stream);
    peer_write(&w, "hello");
    peer_close(&w);
    run_rounds(w.loop, 5);
    CHECK_INT(w.side.n_bytes, 0);
    CHECK_INT(w.side.n_closed, 0);

    net_stream_resume(w.side.stream);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);
    CHECK_STR(peg__buf_view(&w.side.got), "hello");
    world_done(&w);
}

TEST(a_stream_may_be_paused_while_it_reads)
{
    struct world w;

    world_unix(&w, NULL);
    w.side.at_bytes = SIDE_PAUSE;
    peer_write(&w, "one");
    RUN_UNTIL(w.loop, w.side.n_bytes == 1);
    peer_write(&w, "two");
    run_rounds(w.loop, 5);
    CHECK_INT(w.side.n_bytes, 1);

    net_stream_resume(w.side.stream);
    RUN_UNTIL(w.loop, w.side.n_bytes == 2);
    CHECK_STR(peg__buf_view(&w.side.got), "onetwo");
    world_done(&w);
}

TEST(another_owner_hears_what_comes_next)
{
    struct world w;
    struct side other;

    world_unix(&w, NULL);
    side_init(&other, w.loop);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    net_stream_set_events(w.side.stream, &side_events, &other);
    peer_write(&w, "x");
    RUN_UNTIL(w.loop, other.n_bytes == 1);

    CHECK_INT(w.side.n_bytes, 0);
    peg__buf_free(&other.got);
    world_done(&w);
}

/* ---- the end ------------------------------------------------------------------------------ */

TEST(the_end_of_the_peer_is_told_once_after_its_bytes)
{
    struct world w;

    world_tcp(&w);
    peer_write(&w, "bye");
    peer_close(&w);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);
    run_rounds(w.loop, 3);

    CHECK_STR(peg__buf_view(&w.side.got), "bye");
    CHECK_INT(w.side.n_closed, 1);
    CHECK_INT(w.side.error.status, PEG_ECANCELED);
    CHECK_STR(peg__str(w.side.error.code), "E_STREAM_ENDED");
    world_done(&w);
}

TEST(a_reset_is_told_in_words)
{
    struct world w;

    world_tcp(&w);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    peer_reset(&w);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK_INT(w.side.error.status, PEG_EIO);
    CHECK_STR(peg__str(w.side.error.code), "E_STREAM");
    CHECK(strstr(w.side.error.message, "ECONNRESET"));
    world_done(&w);
}

TEST(writing_to_a_peer_that_is_gone_fails_without_a_signal)
{
    struct world w;
    peg_error error;

    world_unix(&w, NULL);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    peer_close(&w);
    CHECK_INT(net_stream_write(w.side.stream, (const uint8_t *)"x", 1, &error), PEG_EIO);
    CHECK(strstr(error.message, "EPIPE"));
    CHECK_INT(net_stream_write(w.side.stream, (const uint8_t *)"x", 1, &error), PEG_EIO);
    CHECK_INT(w.side.n_closed, 0);

    RUN_UNTIL(w.loop, w.side.n_closed == 1);
    run_rounds(w.loop, 3);
    CHECK_INT(w.side.n_closed, 1);
    world_done(&w);
}

TEST(the_last_words_of_a_peer_that_is_gone_are_heard)
{
    struct world w;

    world_unix(&w, NULL);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    peer_write(&w, "because");
    peer_close(&w);
    CHECK_INT(write_text(&w, "x"), PEG_EIO);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK_STR(peg__buf_view(&w.side.got), "because");
    world_done(&w);
}

TEST(a_peer_that_breaks_while_bytes_wait_is_noticed)
{
    struct world w;

    world_unix(&w, NULL);
    (void)write_until_blocked(&w);
    net_stream_pause(w.side.stream);
    peer_close(&w);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK_INT(w.side.error.status, PEG_EIO);
    CHECK_INT(w.side.n_drained, 0);
    world_done(&w);
}

/* A probe that sends its request and shuts its side down still gets a long answer. */
TEST(what_waits_is_sent_to_a_peer_that_ended_its_side)
{
    struct world w;
    size_t total;

    world_unix(&w, NULL);
    total = write_until_blocked(&w);
    shutdown(w.peer, SHUT_WR);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);
    CHECK_STR(peg__str(w.side.error.code), "E_STREAM_ENDED");

    check_read(&w, total);
    CHECK_INT(peer_read(&w, (uint8_t[1]){0}, 1), 0);
    CHECK_INT(net_loop_load(w.loop), 0);
    world_done(&w);
}

TEST(closing_sends_what_waits_and_tells_nothing)
{
    struct world w;
    size_t total;

    world_unix(&w, NULL);
    total = write_until_blocked(&w);
    net_stream_close(w.side.stream);
    check_read(&w, total);
    CHECK_INT(peer_read(&w, (uint8_t[1]){0}, 1), 0); /* the end */

    CHECK_INT(net_loop_load(w.loop), 1); /* until the peer ends, too */
    peer_close(&w);
    while (net_loop_load(w.loop) > 0)
        run_rounds(w.loop, 1);
    CHECK_INT(w.side.n_closed + w.side.n_drained, 0);
    world_done(&w);
}

TEST(closing_waits_for_a_limited_time)
{
    struct world w;
    const struct net_stream_options options = {.linger_ms = 10};

    world_unix(&w, &options);
    (void)write_until_blocked(&w);
    net_stream_close(w.side.stream);
    while (net_loop_load(w.loop) > 0)
        run_rounds(w.loop, 1);

    CHECK_INT(w.side.n_closed, 0);
    world_done(&w);
}

/* Closing a socket with unread bytes would take back what was sent last. */
TEST(closing_does_not_take_back_what_was_sent)
{
    struct world w;
    uint8_t bytes[3];

    world_tcp(&w);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    peer_write(&w, "something that nobody reads");
    CHECK_INT(write_text(&w, "bye"), PEG_OK);
    net_stream_close(w.side.stream);
    run_rounds(w.loop, 3);
    peer_write(&w, "more of it");
    run_rounds(w.loop, 3);

    CHECK_INT(peer_read(&w, bytes, 3), 3);
    CHECK(memcmp(bytes, "bye", 3) == 0);
    CHECK_INT(w.side.n_bytes, 0);
    world_done(&w);
}

TEST(closing_reads_a_limited_number_of_bytes)
{
    static const char zeros[64 << 10];
    struct world w;
    size_t n = 0;

    world_unix(&w, NULL);
    net_stream_close(w.side.stream);
    while (net_loop_load(w.loop) > 0) {
        const ssize_t sent = send(w.peer, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL);

        n += sent > 0 ? (size_t)sent : 0;
        CHECK(n < 2 * (size_t)PEG_LIMIT_NET_LINGER_BYTES);
        run_rounds(w.loop, 1);
    }
    CHECK(n > PEG_LIMIT_NET_LINGER_BYTES);
    CHECK_INT(w.side.n_closed + w.side.n_bytes, 0);
    world_done(&w);
}

TEST(a_closed_stream_takes_no_writes)
{
    struct world w;
    struct net_stream *stream;
    peg_error error;

    world_unix(&w, NULL);
    stream = w.side.stream;
    net_stream_close(stream);
    CHECK_INT(net_stream_write(stream, (const uint8_t *)"x", 1, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_STREAM");
    net_stream_close(stream);
    net_stream_drop(stream);
    world_done(&w);
}

TEST(a_stream_may_end_itself_in_any_event)
{
    static const enum side_act acts[] = {SIDE_DROP, SIDE_CLOSE};

    for (size_t i = 0; i < 2; i++) {
        struct world w;

        world_unix(&w, NULL);
        w.side.at_open = acts[i];
        peer_write(&w, "x");
        RUN_UNTIL(w.loop, w.side.n_opened == 1);
        run_rounds(w.loop, 3);
        CHECK_INT(w.side.n_bytes + w.side.n_closed, 0);
        world_done(&w);

        world_unix(&w, NULL);
        w.side.at_bytes = acts[i];
        peer_write(&w, "x");
        RUN_UNTIL(w.loop, w.side.n_bytes == 1);
        (void)send(w.peer, "y", 1, MSG_NOSIGNAL);
        run_rounds(w.loop, 3);
        CHECK_INT(w.side.n_bytes, 1);
        CHECK_INT(w.side.n_closed, 0);
        world_done(&w);

        world_unix(&w, NULL);
        w.side.at_drained = acts[i];
        check_read(&w, write_until_blocked(&w));
        RUN_UNTIL(w.loop, w.side.n_drained == 1);
        run_rounds(w.loop, 3);
        CHECK_INT(w.side.n_closed, 0);
        world_done(&w);
    }
}

/* A round has no time left to tell on_open before it polls, and the socket takes bytes again. */
struct last_moment {
    struct net_later later; /* first */
    struct world *w;
    unsigned n_passes;
};

static void take_at_last_moment(struct net_later *later)
{
    static uint8_t bytes[512 << 10];
    struct last_moment *moment = (struct last_moment *)(void *)later;
    struct world *w = moment->w;
    int fds[2];

    net_loop_later(w->loop, later);
    if (++moment->n_passes % 16 != 0 || w->side.n_opened || w->side.stream)
        return;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    CHECK_INT(side_take(&w->side, w->loop, fds[0], NULL, NULL), PEG_OK);
    CHECK_INT(net_stream_write(w->side.stream, bytes, sizeof(bytes), NULL), PEG_OK);
    CHECK(net_stream_is_blocked(w->side.stream));
    while (recv(fds[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
    w->peer = fds[1];
}

TEST(a_stream_that_is_dropped_when_it_opens_writes_nothing_more)
{
    struct world w = {.peer = -1};
    struct last_moment moment = {.later.fn = take_at_last_moment, .w = &w};
    uint8_t byte;

    CHECK_INT(net_loop_new(&w.loop, NULL), PEG_OK);
    side_init(&w.side, w.loop);
    w.side.at_open = SIDE_DROP;
    net_loop_later(w.loop, &moment.later);
    RUN_UNTIL(w.loop, w.side.n_opened);
    net_loop_not_later(w.loop, &moment.later);
    run_rounds(w.loop, 3);

    CHECK_INT(w.side.n_late, 0);
    CHECK_INT(w.side.n_closed, 0);
    CHECK_INT(recv(w.peer, &byte, 1, MSG_DONTWAIT), 0);
    world_done(&w);
}

TEST(a_stream_may_write_when_it_is_drained)
{
    struct world w;
    uint8_t more[4];

    world_unix(&w, NULL);
    w.side.at_drained = SIDE_ECHO;
    check_read(&w, write_until_blocked(&w));
    CHECK_INT(peer_read(&w, more, 4), 4);

    CHECK(memcmp(more, "more", 4) == 0);
    world_done(&w);
}

TEST(a_stream_that_broke_can_still_be_dropped)
{
    struct world w;

    world_unix(&w, NULL);
    peer_close(&w);
    CHECK_INT(write_text(&w, "x"), PEG_EIO);
    net_stream_drop(w.side.stream);
    run_rounds(w.loop, 3);
    CHECK_INT(w.side.n_closed, 0);
    world_done(&w);
}

TEST(the_end_of_the_loop_is_told)
{
    struct world w;

    world_unix(&w, NULL);
    RUN_UNTIL(w.loop, w.side.n_opened == 1);
    w.loop = net_loop_free(w.loop);

    CHECK_INT(w.side.n_closed, 1);
    CHECK_INT(w.side.error.status, PEG_ECANCELED);
    CHECK_STR(peg__str(w.side.error.code), "E_LOOP_ENDED");
    world_done(&w);
}

/* ---- out of memory ------------------------------------------------------------------------ */

TORTURE(taking_a_socket_survives_any_allocation_failure)
{
    struct world w;
    int fds[2];
    peg_status status;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    status = world_make(&w, fds, NULL);
    world_done(&w);
    return status;
}

TORTURE(connecting_survives_any_allocation_failure)
{
    struct net_loop *loop = NULL;
    struct net_stream *stream;
    struct net_address address;
    const int listener = tcp_listener(&address);
    struct side side;
    peg_status status = net_loop_new(&loop, NULL);

    side_init(&side, loop);
    if (!status)
        status = net_stream_connect(loop, &address, NULL, &side_events, &side, &stream, NULL);
    net_loop_free(loop);
    close(listener);
    return status;
}

TEST(a_write_that_has_no_memory_to_wait_in_is_refused_whole)
{
    static uint8_t chunk[CHUNK];
    struct world w;
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    CHECK_INT(world_make(&w, fds, NULL), PEG_OK);
    while (send(fds[0], chunk, sizeof(chunk), MSG_DONTWAIT) > 0)
        continue;
    peg__mem_fail_at(1);
    CHECK_INT(write_text(&w, "x"), PEG_ENOMEM);
    peg__mem_fail_at(0);

    CHECK(!net_stream_is_blocked(w.side.stream));
    CHECK_INT(write_text(&w, "x"), PEG_OK);
    CHECK_INT(net_stream_queued(w.side.stream), 1);
    world_done(&w);
}

TEST(a_write_that_has_no_memory_for_its_rest_ends_the_stream)
{
    static uint8_t much[PEG_LIMIT_NET_QUEUE_BYTES];
    struct world w;

    world_unix(&w, NULL);
    peg__mem_fail_at(1);
    CHECK_INT(net_stream_write(w.side.stream, much, sizeof(much), NULL), PEG_ENOMEM);
    peg__mem_fail_at(0);
    RUN_UNTIL(w.loop, w.side.n_closed == 1);

    CHECK_INT(w.side.error.status, PEG_ENOMEM);
    world_done(&w);
}
