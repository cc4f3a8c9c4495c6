/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_ENGINE_SERVER_H
#define PEG_TESTS_ENGINE_SERVER_H

/*
 * A small HTTP server on 127.0.0.1 whose answers a test writes as functions: one is called for each
 * request, with the connection to write to, and says whether that stays open. Each connection has a
 * thread of its own; requests are counted over all of them.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../t.h"

enum { SERVER_CONNECTIONS = 64, SERVER_REQUEST_BYTES = 1 << 20 };

struct server;

struct connection {
    struct server *server;
    int fd;
    pthread_t thread;
};

/* n: which request it is, from 0. False: the connection is closed. */
typedef bool (*answer_fn)(struct connection *c, const char *request, unsigned n);

struct server {
    answer_fn answer;
    int fd;
    int port;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct connection connections[SERVER_CONNECTIONS];
    unsigned n_connections;
    unsigned n_requests;
    char *last_request; /* malloc()ed */
    bool is_stopping;
};

/* ---- answering ------------------------------------------------------------------------- */

static inline bool put_bytes(struct connection *c, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static inline bool put_text(struct connection *c, const char *text)
{
    return put_bytes(c, text, strlen(text));
}

static inline bool putf(struct connection *c, const char *fmt, ...) PEG_PRINTF(2, 3);
static inline bool putf(struct connection *c, const char *fmt, ...)
{
    char text[8192];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return put_text(c, text);
}

/* A whole answer; headers are lines ended by CRLF. */
static inline bool put_answer(struct connection *c, int status, const char *headers,
                              const char *body)
{
    putf(c, "HTTP/1.1 %d Words\r\n%sContent-Length: %zu\r\n\r\n", status, headers, strlen(body));
    return put_text(c, body);
}

/* The start of one that comes in chunks, a chunk, and its end. */
static inline bool put_start(struct connection *c, const char *content_type)
{
    return putf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
                content_type);
}

static inline bool put_chunk(struct connection *c, const char *bytes, size_t len)
{
    return putf(c, "%zx\r\n", len) && put_bytes(c, bytes, len) && put_text(c, "\r\n");
}

static inline bool put_end(struct connection *c)
{
    return put_text(c, "0\r\n\r\n");
}

/* Nothing more, until the other side closes. */
static inline bool stall(struct connection *c)
{
    char byte;

    while (recv(c->fd, &byte, 1, 0) > 0)
        ;
    return false;
}

/* Closes in a way that the other side notices as an error. */
static inline bool reset_connection(struct connection *c)
{
    const struct linger now = {.l_onoff = 1};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return false;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* One request, headers and body; the caller's to free(). NULL: the connection has ended. */
static inline char *read_request(int fd)
{
    char *text = calloc(1, SERVER_REQUEST_BYTES + 1);
    size_t len = 0;
    size_t want = SERVER_REQUEST_BYTES;

    while (text && len < want) {
        const ssize_t n = recv(fd, text + len, want - len, 0);
        const char *end;
        const char *length;

        if (n <= 0) {
            free(text);
            return NULL;
        }
        len += (size_t)n;
        text[len] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (!end || want != SERVER_REQUEST_BYTES)
            continue;
        length = strstr(text, "Content-Length: ");
        want = (size_t)(end - text) + 4 + (length ? strtoul(length + 16, NULL, 10) : 0);
    }
    return text;
}

static inline void *serve_connection(void *user)
{
    struct connection *c = user;
    struct server *s = c->server;
    char *request;
    bool is_open = true;

    while (is_open && (request = read_request(c->fd))) {
        unsigned n;

        pthread_mutex_lock(&s->lock);
        n = s->n_requests++;
        free(s->last_request);
        s->last_request = strdup(request);
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        is_open = s->answer(c, request, n);
        free(request);
    }
    pthread_mutex_lock(&s->lock);
    close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static inline void *serve(void *user)
{
    struct server *s = user;
    int fd;

    while ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        const int one = 1;
        struct connection *c;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        pthread_mutex_lock(&s->lock);
        if (s->is_stopping || s->n_connections == SERVER_CONNECTIONS) {
            pthread_mutex_unlock(&s->lock);
            close(fd);
            continue;
        }
        c = &s->connections[s->n_connections++];
        c->server = s;
        c->fd = fd;
        pthread_create(&c->thread, NULL, serve_connection, c);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------------------
 */

static inline void server_start(struct server *s, answer_fn answer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    memset(s, 0, sizeof(*s));
    s->answer = answer;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&address, len) || listen(s->fd, 32) ||
        getsockname(s->fd, (struct sockaddr *)&address, &len))
        T_FAIL("no socket: %s", strerror(errno));
    s->port = ntohs(address.sin_port);
    pthread_create(&s->thread, NULL, serve, s);
}

/* No more connections are taken; those that are open are ended. */
static inline void server_stop(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    for (unsigned i = 0; i < s->n_connections; i++)
        if (s->connections[i].fd >= 0)
            shutdown(s->connections[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < s->n_connections; i++)
        pthread_join(s->connections[i].thread, NULL);
    close(s->fd);
    free(s->last_request);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

/* Until so many requests have come. */
static inline void server_await(struct server *s, unsigned n)
{
    pthread_mutex_lock(&s->lock);
    while (s->n_requests < n)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static inline unsigned server_connections(struct server *s)
{
    unsigned n;

    pthread_mutex_lock(&s->lock);
    n = s->n_connections;
    pthread_mutex_unlock(&s->lock);
    return n;
}

static inline unsigned server_requests(struct server *s)
{
    unsigned n;

    pthread_mutex_lock(&s->lock);
    n = s->n_requests;
    pthread_mutex_unlock(&s->lock);
    return n;
}

#endif
