/* SPDX-License-Identifier: Apache-2.0 */

/* How a stream begins: a socket that is connected already, or one that has to be. */

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/stream/internal.h"

static const struct net_stream_options default_options;
enum { LOCAL_WINDOW = 256 << 10 };

/* Small messages are written whole, so Nagle's waiting only delays them; keepalive finds peers
 * whose machine is gone. A peer on this machine needs no congestion control: BBR's pacing would
 * delay answers by 100 us when the machine is busy. The kernel carries what such a peer sends in
 * the thread that freed the space, which is ours: so its window is below a megabyte, but above one
 * piece of loopback (64 KiB), or small messages overrun it and are sent again 200 ms later. */
static void set_tcp_options(int fd, const struct net_address *peer)
{
    static const char unpaced[] = "reno";
    const int on = 1;
    const int window = LOCAL_WINDOW;

    if (net_address_is_local(peer)) {
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced, sizeof(unpaced) - 1);
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    }

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static peg_status fail_system(const char *what, int error, peg_error *reterr)
{
    char message[128];

    return peg__fail(reterr, PEG_EIO, "E_STREAM", "%s: %s (%s)", what,
                     strerror_r(error, message, sizeof(message)), strerrorname_np(error));
}

static uid_t unix_uid_of(int fd, const struct net_address *peer)
{
    struct ucred user;
    socklen_t len = sizeof(user);

    if (peer->at.any.sa_family != AF_UNIX ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &len) != 0)
        return (uid_t)-1;
    return user.uid;
}

void net_stream_time_out(struct net_stream *stream)
{
    peg_error error;

    peg__fail(&error, PEG_ETIMEOUT, "E_STREAM",
              "%s with %s took too long: check that it can be reached, or raise open_ms",
              stream->state == NET_CONNECTING ? "connecting" : "the TLS handshake", stream->peer);
    net_stream_fail(stream, &error); /* one that was ending has no owner */
}

static void on_timer(struct net_timer *timer)
{
    struct net_stream *stream = peg__container_of(timer, struct net_stream, timer);

    stream->is_late = true;
    if (net_stream_must_wait(stream))
        net_stream_enqueue(stream);
    else
        net_stream_time_out(stream);
}

/* Owns fd only when it succeeds. */
static peg_status make_stream(struct net_loop *loop, int fd, const struct net_address *peer,
                              const struct net_stream_options *options,
                              struct net_stream **ret_stream, peg_error *reterr)
{
    char text[NET_ADDRESS_TEXT];
    struct net_stream *stream;
    peg_status status;
    int error;

    net_address_format(peer, text);
    stream = (struct net_stream *)peg__alloc_zero(1, sizeof(*stream) + strlen(text) + 1);
    if (!stream)
        return peg__fail_nomem(reterr);
    memcpy(stream->peer, text, strlen(text) + 1);
    stream->loop = loop;
    stream->fd = fd;
    stream->is_local = net_address_is_local(peer);
    stream->unix_uid = unix_uid_of(fd, peer);
    stream->max_queue = options->max_queue ? options->max_queue : PEG_LIMIT_NET_QUEUE_BYTES;
    stream->queue.max = stream->max_queue;
    stream->linger_ms = options->linger_ms ? options->linger_ms : PEG_LIMIT_NET_LINGER_MS;
    stream->timer.fn = on_timer;
    stream->later.fn = net_stream_on_later;
    stream->job.fn = net_stream_run_job;
    stream->rest.max = NET_READ_BYTES;
    stream->open.close = net_stream_on_close;
    if (options->tls) {
        status = net_tls_new(options->tls, options->tls_host, &stream->tls, reterr);
        if (status) {
            peg__free(stream);
            return status;
        }
    }
    error = uv_poll_init(net_loop_uv(loop), &stream->poll, fd);
    if (error) {
        net_tls_free(stream->tls);
        peg__free(stream);
        return fail_system("the socket cannot be watched", -error, reterr);
    }
    net_loop_opened(loop, &stream->open);
    net_loop_add_load(loop, 1);
    *ret_stream = stream;
    return PEG_OK;
}

static void arm_open_timer(struct net_stream *stream, const struct net_stream_options *options)
{
    const int64_t ms = options->open_ms ? options->open_ms : PEG_LIMIT_NET_OPEN_MS;

    net_loop_arm(stream->loop, &stream->timer,
                 peg__clock_after_ms(net_loop_now_ns(stream->loop), ms));
}

/* A client of a unix socket has no name; the socket that it came to says more than nothing. */
static bool find_peer(int fd, struct net_address *ret_peer)
{
    struct net_address peer = {.len = sizeof(peer.at)};

    if (getpeername(fd, &peer.at.any, &peer.len) != 0)
        return false;
    if (peer.at.any.sa_family == AF_UNIX && peer.len <= offsetof(struct sockaddr_un, sun_path)) {
        peer.len = sizeof(peer.at);
        if (getsockname(fd, &peer.at.any, &peer.len) != 0)
            return false;
    }
    *ret_peer = peer;
    return true;
}

static peg_status take_socket(struct net_loop *loop, int fd,
                              const struct net_stream_options *options,
                              struct net_stream **ret_stream, peg_error *reterr)
{
    const bool is_server = options->tls && !net_tls_config_is_client(options->tls);
    struct net_stream_options now = *options;
    struct net_stream *stream = NULL;
    struct net_address peer;
    peg_status status;

    if (is_server)
        now.tls = NULL; /* it begins with the first bytes of the client */
    if (!find_peer(fd, &peer))
        return fail_system("the socket is not connected", errno, reterr);
    if (peer.at.any.sa_family != AF_UNIX)
        set_tcp_options(fd, &peer);
    status = make_stream(loop, fd, &peer, &now, &stream, reterr);
    if (stream && is_server)
        stream->tls_config = net_tls_config_ref(options->tls);
    *ret_stream = stream;
    return status;
}

/* NOLINTNEXTLINE(readability-function-size): the contract has seven parameters */
peg_status net_stream_take(struct net_loop *loop, int fd, const struct net_stream_options *options,
                           const struct net_stream_events *events, void *user,
                           struct net_stream **ret_stream, peg_error *reterr)
{
    const struct net_stream_options *opts = options ? options : &default_options;
    struct net_stream *stream = NULL;
    const peg_status status = take_socket(loop, fd, opts, &stream, reterr);

    if (!stream) {
        close(fd);
        return status;
    }
    net_stream_set_events(stream, events, user);
    stream->state = opts->tls ? NET_HANDSHAKING : NET_OPEN;
    if (opts->tls)
        arm_open_timer(stream, opts);
    net_loop_later(loop, &stream->later);
    net_stream_watch(stream);
    *ret_stream = stream;
    return PEG_OK;
}

void net_stream_handshake(struct net_stream *stream)
{
    peg_error error;

    if (net_tls_start(stream->tls, &error))
        net_stream_fail(stream, &error);
    else
        net_stream_flush(stream);
}

void net_stream_connected(struct net_stream *stream)
{
    if (!stream->tls) {
        net_stream_opened(stream);
        return;
    }
    stream->state = NET_HANDSHAKING;
    net_stream_handshake(stream);
}

static int start_connecting(int fd, const struct net_address *address)
{
    int result;

    do
        result = connect(fd, &address->at.any, address->len);
    while (result != 0 && errno == EINTR);
    if (result == 0 || errno == EINPROGRESS || errno == EALREADY)
        return 0;
    return errno;
}

/* NOLINTNEXTLINE(readability-function-size): the contract has seven parameters */
peg_status net_stream_connect(struct net_loop *loop, const struct net_address *address,
                              const struct net_stream_options *options,
                              const struct net_stream_events *events, void *user,
                              struct net_stream **ret_stream, peg_error *reterr)
{
    const struct net_stream_options *opts = options ? options : &default_options;
    const int family = address->at.any.sa_family;
    struct net_stream *stream = NULL;
    peg_status status;
    int error;
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return fail_system("there is no socket to connect with", errno, reterr);
    if (family != AF_UNIX)
        set_tcp_options(fd, address);
    status = make_stream(loop, fd, address, opts, &stream, reterr);
    if (!stream) {
        close(fd);
        return status;
    }
    net_stream_set_events(stream, events, user);
    arm_open_timer(stream, opts);
    error = start_connecting(fd, address);
    if (error)
        net_stream_break(stream, error);
    else
        net_stream_watch(stream);
    *ret_stream = stream;
    return PEG_OK;
}
