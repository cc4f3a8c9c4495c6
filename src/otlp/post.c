/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One POST on the exporter's own thread, which may wait: for the connection, for the collector to
 * read, and for the first line of its answer. A connection for each request, at most one a second,
 * needs no state between them, and follows a collector that moves to another address.
 */

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "otlp/internal.h"

enum {
    POLL_MS = 100,      /* how soon it notices that it is over */
    ANSWER_BYTES = 512, /* the first line is short */
    READ_BYTES = 4096,
};

struct talk {
    const struct otlp__post *post;
    int fd;
    struct net_tls *tls; /* NULL: plain */
    int64_t until_ns;
    int64_t connect_ns; /* the address that is tried has until then; 0: until_ns */
    char answer[ANSWER_BYTES];
    size_t n_answer;
};

/* ---- waiting ---- */

static int64_t end_of_talk(const struct talk *talk)
{
    const int64_t last_ns = atomic_load(talk->post->last_ns);

    return last_ns && last_ns < talk->until_ns ? last_ns : talk->until_ns;
}

static bool has_time(const struct talk *talk)
{
    const int64_t now_ns = peg__mono_ns();

    return now_ns < end_of_talk(talk) && (!talk->connect_ns || now_ns < talk->connect_ns);
}

static bool wait_for(const struct talk *talk, short events)
{
    struct pollfd poll_fd = {.fd = talk->fd, .events = events};

    while (has_time(talk)) {
        const int n = poll(&poll_fd, 1, POLL_MS);

        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false;
}

static bool is_busy(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* ---- bytes of the wire ---- */

static bool send_wire(struct talk *talk, peg_str bytes)
{
    while (bytes.len) {
        const ssize_t n = send(talk->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

        if (n > 0)
            bytes = peg__str_from(bytes, (size_t)n);
        else if (n == 0 || !is_busy() || !wait_for(talk, POLLOUT))
            return false;
    }
    return true;
}

/* At least one byte; 0: the end, or no more time. */
static size_t receive_wire(struct talk *talk, char *ret_bytes, size_t max)
{
    for (;;) {
        const ssize_t n = recv(talk->fd, ret_bytes, max, 0);

        if (n > 0)
            return (size_t)n;
        if (n == 0 || !is_busy() || !wait_for(talk, POLLIN))
            return 0;
    }
}

/* ---- TLS ---- */

static bool flush_tls(struct talk *talk)
{
    const peg_str bytes = net_tls_wire(talk->tls);
    const size_t n = bytes.len;

    if (!send_wire(talk, bytes))
        return false;
    net_tls_took(talk->tls, n);
    return true;
}

/* Takes what the peer sends, and keeps the plain bytes that fit. */
static bool feed_tls(struct talk *talk)
{
    char wire[READ_BYTES];
    uint8_t plain[READ_BYTES];
    const size_t n_wire = receive_wire(talk, wire, sizeof(wire));
    size_t n = 0;

    if (!n_wire || net_tls_feed(talk->tls, (const uint8_t *)wire, n_wire, NULL))
        return false;
    while (!net_tls_read(talk->tls, plain, sizeof(plain), &n, NULL) && n) {
        const size_t room = sizeof(talk->answer) - talk->n_answer;
        const size_t taken = n < room ? n : room;

        memcpy(talk->answer + talk->n_answer, plain, taken);
        talk->n_answer += taken;
    }
    return flush_tls(talk);
}

static bool shake_hands(struct talk *talk)
{
    if (net_tls_new(talk->post->tls, talk->post->url->endpoint.host, &talk->tls, NULL) ||
        net_tls_start(talk->tls, NULL) || !flush_tls(talk))
        return false;
    while (!net_tls_is_open(talk->tls))
        if (!feed_tls(talk))
            return false;
    return true;
}

static bool send_tls(struct talk *talk, peg_str bytes)
{
    while (bytes.len) {
        const size_t n =
            bytes.len < PEG_LIMIT_OTLP_BATCH_BYTES ? bytes.len : (size_t)PEG_LIMIT_OTLP_BATCH_BYTES;

        if (net_tls_write(talk->tls, (const uint8_t *)bytes.ptr, n, NULL) || !flush_tls(talk))
            return false;
        bytes = peg__str_from(bytes, n);
    }
    return true;
}

/* ---- plain bytes ---- */

static bool send_plain(struct talk *talk, peg_str bytes)
{
    return talk->tls ? send_tls(talk, bytes) : send_wire(talk, bytes);
}

static bool receive_plain(struct talk *talk)
{
    size_t n;

    if (talk->tls)
        return feed_tls(talk);
    n = receive_wire(talk, talk->answer + talk->n_answer, sizeof(talk->answer) - talk->n_answer);
    talk->n_answer += n;
    return n > 0;
}

/* ---- the connection ---- */

static bool connect_to(struct talk *talk, const struct sockaddr *address, socklen_t len)
{
    const int on = 1;
    socklen_t error_len = sizeof(int);
    int error = 0;

    talk->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (talk->fd < 0)
        return false;
    (void)setsockopt(talk->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(talk->fd, address, len) == 0)
        return true;
    if (errno == EINPROGRESS && wait_for(talk, POLLOUT) &&
        getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) == 0 && error == 0)
        return true;
    close(talk->fd);
    talk->fd = -1;
    return false;
}

static int count_addresses(const struct addrinfo *at)
{
    int n = 0;

    for (; at; at = at->ai_next)
        n++;
    return n;
}

/* Each address has its part of the time that is left: one that does not answer leaves some for the
 * next. */
static bool connect_to_any(struct talk *talk, const struct addrinfo *found)
{
    int n_left = count_addresses(found);
    bool is_connected = false;

    for (const struct addrinfo *at = found; at && !is_connected && has_time(talk);
         at = at->ai_next) {
        const int64_t now_ns = peg__mono_ns();

        talk->connect_ns = now_ns + (end_of_talk(talk) - now_ns) / n_left--;
        is_connected = connect_to(talk, at->ai_addr, at->ai_addrlen);
        talk->connect_ns = 0;
    }
    return is_connected;
}

static bool connect_by_name(struct talk *talk, const struct net_endpoint *endpoint)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];
    bool is_connected;

    snprintf(port, sizeof(port), "%u", (unsigned)endpoint->port);
    if (getaddrinfo(endpoint->host, port, &hints, &found))
        return false;
    is_connected = connect_to_any(talk, found);
    freeaddrinfo(found);
    return is_connected;
}

static bool open_connection(struct talk *talk)
{
    const struct net_endpoint *endpoint = &talk->post->url->endpoint;
    struct net_address address;
    const bool is_connected = net_endpoint_is_numeric(endpoint, &address)
                                  ? connect_to(talk, &address.at.any, address.len)
                                  : connect_by_name(talk, endpoint);

    return is_connected && (!talk->post->tls || shake_hands(talk));
}

/* ---- the request ---- */

static bool send_post(struct talk *talk)
{
    const struct otlp__post *post = talk->post;
    char head[sizeof(post->url->path) + sizeof(post->url->authority) + 256];
    const int n = snprintf(head, sizeof(head),
                           "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: pegboard/%s\r\n"
                           "Content-Type: application/x-protobuf\r\nContent-Length: %zu\r\n"
                           "Connection: close\r\n\r\n",
                           post->url->path, post->url->authority, peg_version(),
                           post->head.len + post->rest.len);

    return n > 0 && (size_t)n < sizeof(head) && send_plain(talk, peg__strn(head, (size_t)n)) &&
           send_plain(talk, post->head) && send_plain(talk, post->rest);
}

/* "HTTP/1.1 200 OK" */
static int read_status(struct talk *talk)
{
    static const peg_str prefix = PEG_LIT("HTTP/1.");
    enum { STATUS_AT = 9, LINE_BYTES = 12 };

    while (talk->n_answer < LINE_BYTES)
        if (!receive_plain(talk))
            return 0;
    talk->answer[LINE_BYTES] = '\0';
    if (!peg__str_starts(peg__strn(talk->answer, talk->n_answer), prefix))
        return 0;
    return (int)strtol(talk->answer + STATUS_AT, NULL, 10);
}

int otlp__post(const struct otlp__post *post)
{
    struct talk talk = {.post = post, .fd = -1};
    int status = 0;

    talk.until_ns = peg__clock_after_ms(peg__mono_ns(), PEG_LIMIT_OTLP_REQUEST_MS);
    if (has_time(&talk) && open_connection(&talk)) {
        (void)send_post(&talk); /* a collector may answer before it has read all of it */
        status = read_status(&talk);
    }
    net_tls_free(talk.tls);
    if (talk.fd >= 0)
        close(talk.fd);
    return status;
}
