/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_NET_HTTP_SERVER_H
#define PEG_TESTS_NET_HTTP_SERVER_H

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
#include "base/mem.h"
#include "base/text/str.h"
#include "net/http/http.h"
#include "net/listener.h"

/* ---- the server --------------------------------------------------------------------------- */

struct server {
    struct net_loops *loops;
    struct net_listener *listener;
    struct net_listener_options listening;
    struct net_http_options options; /* times and limits */
    struct net_http_server *http;
    size_t body_bytes;     /* of "/large" */
    struct peg__buf first; /* handed to net_http_conn_new() as read already; under the lock */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_requests;             /* that a handler had whole, and those of /parts at their head */
    size_t n_lost;                 /* that ended without their answer */
    size_t n_answered;             /* that ended with it */
    size_t n_body;                 /* bytes that /parts had */
    size_t n_ended;                /* connections */
    size_t n_sent;                 /* bytes that /events has queued */
    size_t max_memory;             /* of a connection */
    size_t n_principals;           /* that on_authenticate had */
    struct net_http_request *held; /* of /hold: a reference */
    struct net_http_conn *last;    /* connection that began */
};

/* One connection; freed when it ends. */
struct guest {
    struct server *server;
    struct net_http_conn *conn;
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

/* Says what it was asked for, and what came. */
static void answer_any(struct net_http_request *request, peg_str body, void *user)
{
    struct server *server = user;
    const struct net_http_answer answer = {.status = 200, .content_type = "text/plain"};
    struct peg__buf text = PEG__BUF(64 << 20);

    peg__buf_printf(&text, "%.*s at %.*s", PEG_ARG(request->method), PEG_ARG(request->target));
    if (body.len > 0) {
        peg__buf_puts(&text, ": ");
        peg__buf_str(&text, body);
    }
    net_http_reply(request, &answer, peg__buf_view(&text));
    peg__buf_free(&text);
    TELL(server, server->n_requests++);
}

static void answer_large(struct net_http_request *request, peg_str body, void *user)
{
    struct server *server = user;
    const struct net_http_answer answer = {.status = 200, .content_type = "text/plain"};
    struct peg__blob *blob = peg__blob_new(server->body_bytes);

    (void)body;
    CHECK(blob);
    memset(blob->bytes, 'x', server->body_bytes);
    net_http_reply_blob(request, &answer, blob);
    peg__blob_unref(blob);
    TELL(server, server->n_requests++);
}

static void answer_nothing(struct net_http_request *request, peg_str body, void *user)
{
    const struct net_http_answer answer = {.status = 204};

    (void)body;
    (void)user;
    net_http_reply(request, &answer, peg__str("not sent"));
}

static void answer_wrong(struct net_http_request *request, peg_str body, void *user)
{
    const struct net_http_answer answer = {.status = 99};

    (void)body;
    (void)user;
    net_http_reply(request, &answer, peg__str("not sent"));
}

/* Pieces of the body as they come; the answer has their number of bytes. */
static void begin_parts(struct net_http_request *request, void *user)
{
    struct server *server = user;

    (void)request;
    TELL(server, server->n_requests++);
}

static void take_part(struct net_http_request *request, peg_str bytes, bool is_end, void *user)
{
    struct server *server = user;

    TELL(server, server->n_body += bytes.len);
    if (is_end)
        net_http_reply_text(request, 200, "%zu bytes", server->n_body);
}

/* Events without end, as many as the client takes. */
static void send_events(struct net_http_request *request, void *user)
{
    static char data[1000];
    struct server *server = user;

    memset(data, 'e', sizeof(data));
    while (net_http_is_writable(request)) {
        CHECK_INT(net_http_send_event(request, "tick", NULL, peg__strn(data, sizeof(data)), NULL),
                  PEG_OK);
        TELL(server, server->n_sent += sizeof(data));
    }
}

static void begin_events(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    CHECK_INT(net_http_begin_events(request, NULL), PEG_OK);
    send_events(request, user);
}

/* Answered by a test, on the loop. */
static void hold(struct net_http_request *request, peg_str body, void *user)
{
    struct server *server = user;

    (void)body;
    net_http_authenticate(request, peg__str("anna"));
    TELL(server, server->held = net_http_ref(request); server->n_requests++);
}

/* Refuses at the head, without a look at the body. */
static void refuse_head(struct net_http_request *request, void *user)
{
    (void)user;
    net_http_reply_text(request, 401, "no");
}

static void count_end(struct net_http_request *request, void *user)
{
    struct server *server = user;

    if (request->was_lost)
        TELL(server, server->n_lost++);
    else
        TELL(server, server->n_answered++);
}

static const struct net_http_handler any = {.on_request = answer_any, .on_end = count_end};
static const struct net_http_handler large = {.on_request = answer_large, .on_end = count_end};
static const struct net_http_handler nothing = {.on_request = answer_nothing};
static const struct net_http_handler wrong = {.on_request = answer_wrong, .on_end = count_end};
static const struct net_http_handler parts = {
    .on_head = begin_parts, .on_body = take_part, .on_end = count_end, .max_body = 1 << 30};
static const struct net_http_handler events = {
    .on_request = begin_events, .on_writable = send_events, .on_end = count_end};
static const struct net_http_handler held = {.on_request = hold, .on_end = count_end};
static const struct net_http_handler refused = {
    .on_head = refuse_head, .on_request = answer_any, .on_end = count_end};
static const struct net_http_handler little = {
    .on_request = answer_any, .on_end = count_end, .max_body = 5};

static const struct net_http_route routes[] = {
    {"GET", "/large", &large},  {"GET", "/nothing", &nothing},  {"GET", "/wrong", &wrong},
    {"POST", "/parts", &parts}, {"GET", "/events", &events},    {"GET", "/hold", &held},
    {"POST", "/hold", &held},   {"POST", "/refused", &refused}, {"POST", "/little", &little},
    {"POST", "/echo", &any},    {"PUT", "/echo", &any},         {"GET", "/{any}", &any},
};

static void note_memory(void *user)
{
    struct guest *guest = user;
    const size_t memory = net_http_conn_memory(guest->conn);

    if (memory > guest->server->max_memory)
        TELL(guest->server, guest->server->max_memory = memory);
}

static void note_principal(void *user, peg_str principal)
{
    struct guest *guest = user;

    CHECK_STR(principal, "anna");
    TELL(guest->server, guest->server->n_principals++);
}

static void on_end(void *user)
{
    struct guest *guest = user;

    TELL(guest->server, guest->server->n_ended++);
    free(guest);
}

static const struct net_http_conn_events conn_events = {
    .on_memory = note_memory, .on_authenticate = note_principal, .on_end = on_end};

static void on_stream(void *user, struct net_stream *stream)
{
    struct server *server = user;
    struct guest *guest = calloc(1, sizeof(*guest));

    guest->server = server;
    pthread_mutex_lock(&server->lock);
    if (net_http_conn_new(server->http, stream, &conn_events, guest, peg__buf_view(&server->first),
                          &guest->conn))
        free(guest);
    else
        server->last = guest->conn;
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
    if (!server->options.routes) {
        server->options.routes = routes;
        server->options.n_routes = sizeof(routes) / sizeof(routes[0]);
    }
    server->options.user = server;
    CHECK_STATUS(net_http_server_new(&server->options, &server->http, &error), PEG_OK, error);
    CHECK_STATUS(net_loops_new(1, &server->loops, &error), PEG_OK, error);
    CHECK_STATUS(net_listen(server->loops, &address, &server->listening, on_stream, server,
                            &server->listener, &error),
                 PEG_OK, error);
}

static void stop(struct server *server)
{
    net_listener_free(server->listener);
    net_loops_free(server->loops);
    CHECK_INT(net_http_server_n_requests(server->http), 0);
    net_http_server_free(server->http);
    peg__buf_free(&server->first);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->changed);
}

/* Runs something on the loop, and waits for it. */
struct errand {
    struct net_message message;
    struct server *server;
    void (*fn)(struct server *server);
    bool is_done;
};

static void run_errand(struct net_message *message)
{
    struct errand *errand = peg__container_of(message, struct errand, message);

    errand->fn(errand->server);
    TELL(errand->server, errand->is_done = true);
}

static inline void on_loop(struct server *server, void (*fn)(struct server *server))
{
    struct errand errand = {.message.fn = run_errand, .server = server, .fn = fn};

    net_loop_post(net_loops_at(server->loops, 0), &errand.message);
    AWAIT(server, errand.is_done);
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
