/* SPDX-License-Identifier: Apache-2.0 */

#include "net/http1/http1.h"

#include "http1_server.h"

/* ---- answers ------------------------------------------------------------------------------ */

TEST(http1_answers_and_keeps_the_connection)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /metrics?x=1 HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    CHECK(strncmp(answer.head, "HTTP/1.1 200 OK\r\n", 17) == 0);
    check_head(&answer, "\r\nDate: ");
    check_head(&answer, " GMT\r\n");
    check_head(&answer, "\r\nContent-Type: text/plain; charset=utf-8\r\n");
    check_head(&answer, "\r\nConnection: keep-alive\r\n");
    CHECK_STR(peg_cstr(answer.body), "GET at /metrics?x=1");

    say(fd, "GET /json HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "\r\nContent-Type: application/json\r\n");
    CHECK_STR(peg_cstr(answer.body), "{}");
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK_INT(server.n_requests, 2);
}

TEST(http1_sends_no_body_where_none_belongs)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd,
        "HEAD /a HTTP/1.1\r\n" HOST "GET /nothing HTTP/1.1\r\n" HOST "GET /b HTTP/1.1\r\n" HOST);
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "Content-Length: 10\r\n");
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "HTTP/1.1 204 No Content\r\n");
    CHECK(!strstr(answer.head, "Content-Length"));
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /b");
    close(fd);
    stop(&server);
}

TEST(http1_closes_after_the_answer_if_the_client_says_so)
{
    static const char *const requests[] = {
        "GET /a HTTP/1.1\r\nConnection: close\r\n" HOST "GET /not-answered HTTP/1.1\r\n" HOST,
        "GET /a HTTP/1.0\r\n\r\n",
    };
    struct server server = {0};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        hear(fd, &answer);
        check_head(&answer, "\r\nConnection: close\r\n");
        check_ended(fd);
        AWAIT(&server, server.n_ended == i + 1);
    }
    stop(&server);
    CHECK_INT(server.n_requests, 2);
}

TEST(http1_refuses_with_a_status_and_closes)
{
    static const struct {
        const char *status;
        const char *request;
    } bad[] = {
        {"400 Bad Request", "GET / HTTP/1.1\r\n\r\n"},
        {"405 Method Not Allowed", "POST / HTTP/1.1\r\nContent-Length: 5\r\n" HOST "hello"},
        {"413 Content Too Large", "GET / HTTP/1.1\r\nContent-Length: 5\r\n" HOST "hello"},
        {"417 Expectation Failed", "GET / HTTP/1.1\r\nExpect: x\r\n" HOST},
        {"501 Not Implemented", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST},
        {"505 HTTP Version Not Supported", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    };
    struct server server = {0};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const int fd = dial(&server);

        say(fd, bad[i].request);
        hear(fd, &answer);
        CHECK(strstr(answer.head, bad[i].status) == answer.head + 9);
        check_head(&answer, "\r\nConnection: close\r\n");
        CHECK_INT(strstr(answer.head, "\r\nAllow: GET, HEAD\r\n") != NULL, i == 1);
        check_ended(fd);
    }
    AWAIT(&server, server.n_ended == sizeof(bad) / sizeof(bad[0]));
    stop(&server);
    CHECK_INT(server.n_requests, 0);
}

TEST(http1_refuses_head_without_a_body)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "HEAD / HTTP/1.1\r\n\r\n");
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "HTTP/1.1 400 Bad Request\r\n");
    check_head(&answer, "Content-Length: 12\r\n");
    check_ended(fd);
    stop(&server);
}

/* The bytes that were not read do not take the answer back. */
TEST(http1_refusal_arrives_although_the_client_goes_on_sending)
{
    struct server server = {0};
    struct answer answer;
    char *head = malloc(60000);
    int fd;

    start(&server);
    fd = dial(&server);
    memset(head, 'x', 59999);
    head[59999] = '\0';
    memcpy(head, "GET /", 5);
    say(fd, head);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 431 Request Header Fields Too Large\r\n");
    say(fd, "more");
    check_ended(fd);
    free(head);
    stop(&server);
}

TEST(http1_answers_500_if_the_owner_cannot)
{
    struct server server = {.body_bytes = PEG_LIMIT_HTTP1_ANSWER_BYTES + 1};
    struct answer answer;
    static const char *const requests[] = {"GET /large HTTP/1.1\r\n" HOST,
                                           "GET /wrong HTTP/1.1\r\n" HOST};

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        hear(fd, &answer);
        check_head(&answer, "HTTP/1.1 500 Internal Server Error\r\n");
        check_ended(fd);
    }
    stop(&server);
}

/* ---- pieces, pipelines and slow readers --------------------------------------------------- */

TEST(http1_does_not_care_in_which_pieces_a_request_comes)
{
    static const char text[] = "GET /a HTTP/1.1\r\n" HOST;
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        CHECK_INT(send(fd, text + i, 1, MSG_NOSIGNAL), 1);
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /a");
    close(fd);
    stop(&server);
}

TEST(http1_answers_pipelined_requests_in_order)
{
    enum { N = 1000 };
    struct server server = {0};
    struct answer answer;
    char text[64];
    int fd;

    start(&server);
    fd = dial(&server);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "GET /%d HTTP/1.1\r\n" HOST, i);
        say(fd, text);
    }
    for (int i = 0; i < N; i++) {
        hear(fd, &answer);
        snprintf(text, sizeof(text), "GET at /%d", i);
        CHECK_STR(peg_cstr(answer.body), text);
    }
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK_INT(server.n_requests, N);
}

TEST(http1_produces_no_answer_while_the_last_one_waits)
{
    struct server server = {.body_bytes = PEG_LIMIT_HTTP1_ANSWER_BYTES};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    for (int i = 0; i < 100; i++)
        say(fd, "GET /large HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.n_requests == 1);
    for (size_t i = 1; i <= 3; i++) {
        CHECK(hear_head(fd, &answer));
        /* The second is not begun before most of the first was taken. */
        pthread_mutex_lock(&server.lock);
        CHECK(server.n_requests <= i);
        pthread_mutex_unlock(&server.lock);
        hear_body(fd, &answer);
        CHECK_INT(answer.body_len, PEG_LIMIT_HTTP1_ANSWER_BYTES);
    }
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK(server.n_requests < 100);
}

TEST(http1_sends_all_to_a_client_that_has_ended_its_side)
{
    struct server server = {.body_bytes = 4 << 20};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /large HTTP/1.1\r\n" HOST);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    hear(fd, &answer);
    CHECK_INT(answer.body_len, 4 << 20);
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http1_begins_with_bytes_that_were_read_already)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    TELL(&server, peg__buf_puts(&server.first, "GET /first HTTP/1.1\r\n" HOST "GET /sec"));
    fd = dial(&server);
    say(fd, "ond HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /first");
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /second");
    close(fd);
    stop(&server);
}

TEST(http1_takes_no_more_first_bytes_than_it_has_room_for)
{
    struct server server = {0};
    int fd;

    start(&server);
    TELL(&server,
         peg__buf_repeat(&server.first, 'x', PEG_LIMIT_HTTP1_HEAD_BYTES + NET_READ_BYTES + 1));
    fd = dial(&server);
    check_ended(fd);
    stop(&server);
    CHECK_INT(server.n_ended, 0);
}

/* ---- ends --------------------------------------------------------------------------------- */

TEST(http1_closes_a_connection_on_which_nothing_happens)
{
    struct server server = {.events.idle_ms = 20};
    int fd;

    start(&server);
    fd = dial(&server);
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http1_answers_408_to_a_request_that_does_not_come_whole)
{
    struct server server = {.events.idle_ms = 50};
    struct answer answer;
    int fd;

    start(&server);
    /* Read already: what is said may come when nothing has happened for too long. */
    TELL(&server, peg__buf_puts(&server.first, "GET / HTTP/1.1\r\nHos"));
    fd = dial(&server);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 408 Request Timeout\r\n");
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http1_drops_a_client_that_reads_nothing)
{
    struct server server = {.events.idle_ms = 50, .body_bytes = PEG_LIMIT_HTTP1_ANSWER_BYTES};
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /large HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.n_ended == 1);
    close(fd);
    stop(&server);
}

TEST(http1_that_is_closed_at_a_request_answers_it_and_tells_no_end)
{
    struct server server = {.at_request = CLOSE, .body_bytes = 2 << 20};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /large HTTP/1.1\r\n" HOST "GET /not-answered HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "\r\nConnection: close\r\n");
    CHECK_INT(answer.body_len, 2 << 20);
    check_ended(fd);
    AWAIT(&server, server.n_requests == 1);
    stop(&server);
    CHECK_INT(server.n_requests, 1);
    CHECK_INT(server.n_ended, 0);
}

TEST(http1_that_is_dropped_at_a_request_answers_nothing)
{
    struct server server = {.at_request = DROP};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /a HTTP/1.1\r\n" HOST);
    CHECK(!hear_head(fd, &answer));
    close(fd);
    AWAIT(&server, server.n_requests == 1);
    stop(&server);
    CHECK_INT(server.n_ended, 0);
}

TEST(http1_ends_with_its_loop)
{
    struct server server = {.body_bytes = PEG_LIMIT_HTTP1_ANSWER_BYTES};
    int idle;
    int busy;

    start(&server);
    idle = dial(&server);
    busy = dial(&server);
    say(idle, "GET /a HTTP/1.1\r\n" HOST);
    say(busy, "GET /large HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.n_requests == 2);
    net_listener_free(server.listener);
    server.listener = NULL;
    server.loops = net_loops_free(server.loops);
    CHECK_INT(server.n_ended, 2);
    close(idle);
    close(busy);
    stop(&server);
}

/* ---- memory: on a loop in this thread ----------------------------------------------------- */

static void torture_request(void *user, const struct net_http1_request *request,
                            struct net_http1_answer *answer)
{
    (void)user;
    (void)request;
    peg__buf_puts(&answer->body, "hello");
}

static void torture_end(void *user)
{
    *(bool *)user = true;
}

static peg_status serve_one(struct net_loop *loop, int fd, int peer)
{
    static const struct net_http1_events events = {.on_request = torture_request,
                                                   .on_end = torture_end};
    static const char first[] = "GET /a HTTP/1.1\r\nHost:";
    static const struct net_stream_events none = {0};
    struct net_stream *stream = NULL;
    struct net_http1 *http1 = NULL;
    bool has_ended = false;
    char got[4096];
    ssize_t n = 0;
    peg_status status = net_stream_take(loop, fd, NULL, &none, NULL, &stream, NULL);

    if (!status)
        status = net_http1_serve(stream, &events, &has_ended, (const uint8_t *)first,
                                 sizeof(first) - 1, &http1);
    if (status)
        return status;
    CHECK_INT(write(peer, " a\r\n\r\n", 6), 6);
    while (!has_ended && (n = recv(peer, got, sizeof(got), MSG_DONTWAIT)) < 0) {
        net_loop_stop(loop);
        net_loop_run(loop);
    }
    if (has_ended)
        return PEG_ENOMEM;
    net_http1_drop(http1);
    /* An answer without memory for its body is an answer all the same. */
    return n > 12 && memcmp(got, "HTTP/1.1 200", 12) == 0 ? PEG_OK : PEG_ENOMEM;
}

TORTURE(http1_survives_any_allocation_failure)
{
    struct net_loop *loop = NULL;
    int fds[2];
    peg_status status;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    status = net_loop_new(&loop, NULL);
    if (status)
        close(fds[0]);
    else
        status = serve_one(loop, fds[0], fds[1]);
    net_loop_free(loop);
    close(fds[1]);
    return status;
}
