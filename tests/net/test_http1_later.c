/* SPDX-License-Identifier: Apache-2.0 */

/* Answers that come later, and bodies that are shared. */

#include "http1_server.h"

static struct {
    struct net_http1_waiter waiters; /* the loop's */
    struct net_http1_body *body;     /* NULL: not there yet */
    struct net_message make;
} later;

static void answer_later(void *user, const struct net_http1_request *request,
                         struct net_http1_answer *answer)
{
    struct guest *guest = user;

    answer->shared = net_http1_body_ref(later.body);
    answer->comes_later = !later.body;
    if (answer->comes_later)
        net_http1_wait(&later.waiters, request->waiter);
    TELL(guest->server, guest->server->n_requests++);
}

static void make_body(struct net_message *message)
{
    (void)message;
    later.body = net_http1_body_new();
    CHECK(later.body);
    peg__buf_repeat(&later.body->bytes, 'x', 1 << 20);
    net_http1_wake(&later.waiters);
}

static void start_later(struct server *server)
{
    net_http1_waiters_init(&later.waiters);
    later.body = NULL;
    later.make.fn = make_body;
    start(server);
    server->events.on_request = answer_later;
}

static void stop_later(struct server *server)
{
    stop(server);
    CHECK(later.waiters.next == &later.waiters);
    if (later.body)
        CHECK_INT(atomic_load(&later.body->n_refs), 1);
    later.body = net_http1_body_unref(later.body);
}

TEST(http1_sends_what_comes_later_to_all_who_wait_and_keeps_their_connections)
{
    struct server server = {0};
    struct answer answer;
    int fds[3];

    start_later(&server);
    for (size_t i = 0; i < 3; i++) {
        fds[i] = dial(&server);
        say(fds[i], "GET /a HTTP/1.1\r\n" HOST "HEAD /b HTTP/1.1\r\n" HOST);
    }
    AWAIT(&server, server.n_requests == 3);
    net_loop_post(net_loops_at(server.loops, 0), &later.make);
    for (size_t i = 0; i < 3; i++) {
        hear(fds[i], &answer);
        CHECK(strncmp(answer.head, "HTTP/1.1 200 OK\r\n", 17) == 0);
        check_head(&answer, "\r\nConnection: keep-alive\r\n");
        CHECK_INT(answer.body_len, 1 << 20);
        CHECK(hear_head(fds[i], &answer));
        check_head(&answer, "\r\nContent-Length: 1048576\r\n");
        close(fds[i]);
    }
    AWAIT(&server, server.n_ended == 3);
    stop_later(&server);
    CHECK_INT(server.n_requests, 9); /* each asked twice for the first, once for the second */
}

TEST(http1_closes_after_what_came_later_if_the_client_says_so)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start_later(&server);
    fd = dial(&server);
    say(fd, "GET /a HTTP/1.1\r\nConnection: close\r\n" HOST);
    AWAIT(&server, server.n_requests == 1);
    net_loop_post(net_loops_at(server.loops, 0), &later.make);
    hear(fd, &answer);
    check_head(&answer, "\r\nConnection: close\r\n");
    check_ended(fd);
    stop_later(&server);
}

TEST(http1_refuses_what_does_not_come)
{
    struct server server = {.events.idle_ms = 20};
    struct answer answer;
    int fd;

    start_later(&server);
    fd = dial(&server);
    say(fd, "GET /a HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    CHECK(strncmp(answer.head, "HTTP/1.1 503 ", 13) == 0);
    check_ended(fd);
    stop_later(&server);
}

static struct guest *waiting;

static void remember(void *user, const struct net_http1_request *request,
                     struct net_http1_answer *answer)
{
    waiting = user;
    answer_later(user, request, answer);
}

static void close_waiting(struct net_message *message)
{
    (void)message;
    net_http1_close(waiting->http1);
    free(waiting);
}

static void drop_waiting(struct net_message *message)
{
    (void)message;
    net_http1_drop(waiting->http1);
    free(waiting);
}

TEST(http1_connections_that_are_ended_while_they_wait_are_not_woken)
{
    for (int drops = 0; drops < 2; drops++) {
        struct server server = {0};
        struct net_message end = {.fn = drops ? drop_waiting : close_waiting};
        struct answer answer;
        int fd;

        start_later(&server);
        server.events.on_request = remember;
        fd = dial(&server);
        say(fd, "GET /a HTTP/1.1\r\n" HOST);
        AWAIT(&server, server.n_requests == 1);
        net_loop_post(net_loops_at(server.loops, 0), &end);
        if (!drops) {
            hear(fd, &answer);
            CHECK(strncmp(answer.head, "HTTP/1.1 503 ", 13) == 0);
        }
        check_ended(fd);
        net_loop_post(net_loops_at(server.loops, 0), &later.make);
        stop_later(&server);
        CHECK_INT(server.n_requests, 1);
    }
}
