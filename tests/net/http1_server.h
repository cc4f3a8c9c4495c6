/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_NET_HTTP1_SERVER_H
#define PEG_TESTS_NET_HTTP1_SERVER_H

/*
 * A server of HTTP/1.1 behind a listener, on a loop with a thread of its own, and clients that
 * write bytes to a socket. What the server sees is told to the test under a lock.
 */

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/http1/http1.h"
#include "net/listener.h"

/* ---- the server --------------------------------------------------------------------------- */

enum act { ANSWER, CLOSE, DROP };

struct server {
    struct net_loops *loops;
    struct net_listener *listener;
    struct net_http1_events events;
    enum act at_request;
    size_t body_bytes;     /* of "/large" */
    struct peg__buf first; /* handed to net_http1_serve() as read already; under the lock */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_requests;
    size_t n_ended;
};

/* One connection; freed when it ends. */
struct guest {
    struct server *server;
    struct net_http1 *http1;
};

#define TELL(server, what)                                                                         \
    do {                                                                                           \
        pthread_mutex_lock(&(server)->lock);                                                       \
        what;                                                                                      \
        pthread_cond_broadcast(&(server)->changed);                                                \
        pthread_mutex_unlock(&(server)->lock);                                                     \
    } while (0)

#define AWAIT(server, condition)                                                                   \
    do {                                                                                           \
        pthread_mutex_lock(&(server)->lock);                                                       \
        while (!(condition))                                                                       \
            pthread_cond_wait(&(server)->changed, &(server)->lock);                                \
        pthread_mutex_unlock(&(server)->lock);                                                     \
    } while (0)

static void fill(const struct server *server, const struct net_http1_request *request,
                 struct net_http1_answer *answer)
{
    if (peg__str_is(request->path, "/large")) {
        peg__buf_repeat(&answer->body, 'x', server->body_bytes);
    } else if (peg__str_is(request->path, "/json")) {
        answer->content_type = "application/json";
        peg__buf_puts(&answer->body, "{}");
    } else if (peg__str_is(request->path, "/nothing")) {
        answer->status = 204;
        peg__buf_puts(&answer->body, "not sent");
    } else if (peg__str_is(request->path, "/missing")) {
        answer->status = 404;
    } else if (peg__str_is(request->path, "/wrong")) {
        answer->status = 99;
    } else {
        peg__buf_printf(&answer->body, "%.*s at %.*s", PEG_ARG(request->method),
                        PEG_ARG(request->target));
    }
}

static void on_request(void *user, const struct net_http1_request *request,
                       struct net_http1_answer *answer)
{
    struct guest *guest = user;
    struct server *server = guest->server;
    const enum act act = server->at_request;

    fill(server, request, answer);
    if (act == CLOSE)
        net_http1_close(guest->http1);
    if (act == DROP)
        net_http1_drop(guest->http1);
    if (act != ANSWER)
        free(guest);
    TELL(server, server->n_requests++);
}

static void on_end(void *user)
{
    struct guest *guest = user;

    net_http1_close(guest->http1); /* nothing more to do, and harmless */
    net_http1_drop(guest->http1);
    TELL(guest->server, guest->server->n_ended++);
    free(guest);
}

static void on_stream(void *user, struct net_stream *stream)
{
    struct server *server = user;
    struct guest *guest = calloc(1, sizeof(*guest));

    guest->server = server;
    pthread_mutex_lock(&server->lock);
    if (net_http1_serve(stream, &server->events, guest, (const uint8_t *)server->first.ptr,
                        server->first.len, &guest->http1))
        free(guest);
    pthread_mutex_unlock(&server->lock);
}

static void start(struct server *server)
{
    struct net_address address = {.len = sizeof(struct sockaddr_in)};
    peg_error error;

    address.at.ip4.sin_family = AF_INET;
    address.at.ip4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    server->first.max = 1 << 20;
    server->events.on_request = on_request;
    server->events.on_end = on_end;
    CHECK_STATUS(net_loops_new(1, &server->loops, &error), PEG_OK, error);
    CHECK_STATUS(
        net_listen(server->loops, &address, NULL, on_stream, server, &server->listener, &error),
        PEG_OK, error);
}

static void stop(struct server *server)
{
    net_listener_free(server->listener);
    net_loops_free(server->loops);
    peg__buf_free(&server->first);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->changed);
}

/* ---- the client --------------------------------------------------------------------------- */

static int dial(const struct server *server)
{
    const struct net_address *address = net_listener_address(server->listener);
    const struct timeval limit = {.tv_sec = 60}; /* a test that hangs fails instead */
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    CHECK(connect(fd, &address->at.any, address->len) == 0);
    return fd;
}

static void say(int fd, const char *text)
{
    CHECK_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

struct answer {
    char head[1024];
    char body[4096]; /* the start of it */
    size_t body_len;
};

static size_t length_of(const char *head)
{
    const char *found = strstr(head, "Content-Length: ");

    return found ? strtoul(found + 16, NULL, 10) : 0;
}

/* False: the server ended it before the first byte. */
static bool hear_head(int fd, struct answer *ret_answer)
{
    size_t n = 0;

    do {
        CHECK(n + 1 < sizeof(ret_answer->head));
        if (recv(fd, ret_answer->head + n, 1, 0) != 1) {
            CHECK_INT(n, 0);
            return false;
        }
        ret_answer->head[++n] = '\0';
    } while (n < 4 || memcmp(ret_answer->head + n - 4, "\r\n\r\n", 4) != 0);
    return true;
}

static void hear_body(int fd, struct answer *ret_answer)
{
    const size_t len = length_of(ret_answer->head);
    char bytes[16384];

    ret_answer->body_len = 0;
    while (ret_answer->body_len < len) {
        const size_t left = len - ret_answer->body_len;
        const ssize_t n = recv(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), 0);

        CHECK(n > 0);
        for (ssize_t i = 0; i < n; i++) {
            if (ret_answer->body_len < sizeof(ret_answer->body) - 1)
                ret_answer->body[ret_answer->body_len] = bytes[i];
            ret_answer->body_len++;
        }
    }
    ret_answer->body[len < sizeof(ret_answer->body) ? len : sizeof(ret_answer->body) - 1] = '\0';
}

static void hear(int fd, struct answer *ret_answer)
{
    CHECK(hear_head(fd, ret_answer));
    hear_body(fd, ret_answer);
}

static void check_head(const struct answer *answer, const char *part)
{
    if (!strstr(answer->head, part))
        T_FAIL("\"%s\" is not in \"%s\"", part, answer->head);
}

static void check_ended(int fd)
{
    char byte;

    CHECK_INT(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

#define HOST "Host: a\r\n\r\n"

#endif
