/* SPDX-License-Identifier: Apache-2.0 */

/* Clients of HTTP/1.1 that are slow, greedy, or hide one request in another. */

#include "http_server.h"

/* ---- requests within requests ------------------------------------------------------------- */

#define HIDDEN "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"

/* Whatever another reader makes of these bytes: here they are refused, and nothing behind them is
 * read. */
TEST(http_refuses_what_could_hide_a_request_and_reads_no_further)
{
    static const char *const bad[] = {
        /* both lengths, in both orders */
        "POST /echo HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n" HOST
        "0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 40\r\n" HOST
        "0\r\n\r\n" HIDDEN,
        /* two lengths */
        "POST /echo HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 40\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length: 0, 40\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length: 0\r\n 40\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length: +40\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length : 40\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length\t: 40\r\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nContent-Length: 40\n" HOST HIDDEN,
        "POST /echo HTTP/1.1\r\nX: a\rContent-Length: 40\r\n" HOST HIDDEN,
        /* codings */
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n" HOST "0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding : chunked\r\n" HOST "0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n" HOST "0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n" HOST "0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN,
        /* chunks */
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "0\n\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "1\r\nxx\r\n0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "0x0\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "0;\n\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "0\r\nA : b\r\n\r\n" HIDDEN,
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST
        "10000000000000000\r\n\r\n" HIDDEN,
        /* lines */
        "GET /a HTTP/1.1\nHost: a\n\n" HIDDEN,
        "\r\nGET /a HTTP/1.1\r\n" HOST HIDDEN,
        "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" HIDDEN,
    };
    struct server server = {0};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const int fd = dial(&server);

        say(fd, bad[i]);
        hear(fd, &answer);
        if (answer.head[9] != '4' && answer.head[9] != '5')
            T_FAIL("request %zu is answered: %s", i, answer.head);
        check_head(&answer, "\r\nConnection: close\r\n");
        check_ended(fd);
    }
    stop(&server);
    CHECK_INT(server.n_requests, 0);
}

static bool admits_host(struct net_http_request *request, void *user)
{
    (void)user;
    if (!peg__str_is(request->host, "localhost:80"))
        return false;
    if (request->origin.len && !peg__str_is(request->origin, "http://localhost:80")) {
        net_http_reply_text(request, 403, "this origin is not allowed");
        return false;
    }
    return true;
}

TEST(http_asks_whether_a_host_and_an_origin_are_admitted_before_anything_else)
{
    static const struct {
        const char *status;
        const char *fields;
    } cases[] = {
        {"200", "Host: localhost:80\r\n"},
        {"200", "Host: localhost:80\r\nOrigin: http://localhost:80\r\n"},
        {"403", "Host: attacker.example\r\n"},
        {"403", "Host: localhost:80\r\nOrigin: http://attacker.example\r\n"},
        {"403", "Host: localhost:80\r\norigin: null\r\n"},
    };
    struct server server = {.options.admits = admits_host};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];

        snprintf(text, sizeof(text), "GET /a HTTP/1.1\r\n%s\r\n", cases[i].fields);
        say(fd, text);
        hear(fd, &answer);
        if (memcmp(answer.head + 9, cases[i].status, 3) != 0)
            T_FAIL("case %zu: %s", i, answer.head);
    }
    close(fd);
    stop(&server);
    CHECK_INT(server.n_requests, 2);
}

/* ---- slow ones ---------------------------------------------------------------------------- */

TEST(http_closes_a_connection_on_which_nothing_happens)
{
    struct server server = {.options.idle_ms = 20};
    int fd;

    start(&server);
    fd = dial(&server);
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http_gives_a_head_some_time_in_all_and_not_for_each_byte)
{
    struct server server = {.options.head_ms = 50};
    struct answer answer;
    int fd;

    start(&server);
    /* Read already: what is said may come when nothing has happened for too long. */
    TELL(&server, peg__buf_puts(&server.first, "GET / HTTP/1.1\r\nHos"));
    fd = dial(&server);
    while (recv(fd, answer.head, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        CHECK(send(fd, "t", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE || errno == ECONNRESET);
    hear(fd, &answer);
    if (!strstr(answer.head, " 408 ") && !strstr(answer.head, " 431 "))
        T_FAIL("%s", answer.head);
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http_answers_408_to_a_head_that_does_not_come_whole)
{
    struct server server = {.options.head_ms = 50};
    struct answer answer;
    int fd;

    start(&server);
    TELL(&server, peg__buf_puts(&server.first, "GET / HTTP/1.1\r\nHos"));
    fd = dial(&server);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 408 Request Timeout\r\n");
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http_answers_408_to_a_body_that_does_not_come)
{
    static const char *const requests[] = {
        "POST /echo HTTP/1.1\r\nContent-Length: 500000\r\n" HOST "hel",
        "POST /parts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "5\r\nhel",
    };
    struct server server = {.options.body_ms = 50};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        hear(fd, &answer);
        check_head(&answer, "HTTP/1.1 408 Request Timeout\r\n");
        CHECK_STR(peg_cstr(answer.body), "the body came too slowly\n");
        check_ended(fd);
    }
    stop(&server);
    CHECK_INT(server.n_answered, 2);
}

TEST(http_waits_no_longer_for_the_rest_of_a_body_that_was_refused)
{
    struct server server = {.options.body_ms = 50};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /refused HTTP/1.1\r\nContent-Length: 5\r\n" HOST "he");
    hear(fd, &answer);
    check_head(&answer, "\r\nConnection: keep-alive\r\n");
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http_drops_a_client_that_reads_nothing)
{
    static const char *const requests[] = {"GET /large HTTP/1.1\r\n" HOST,
                                           "GET /events HTTP/1.1\r\n" HOST};
    struct server server = {.options.send_ms = 50, .body_bytes = 16 << 20};

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        AWAIT(&server, server.n_ended == i + 1);
        close(fd);
    }
    stop(&server);
    CHECK_INT(server.n_lost, 2);
}

TEST(http_handler_may_take_its_time)
{
    struct server server = {
        .options = {.idle_ms = 10, .head_ms = 10, .body_ms = 10, .send_ms = 10}};
    struct answer answer;
    int quick;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    quick = dial(&server); /* ended for idleness: longer than all of the times */
    check_ended(quick);
    TELL(&server, server.held = net_http_unref(server.held));
    CHECK_INT(recv(fd, answer.head, 1, MSG_DONTWAIT), -1);
    close(fd);
    AWAIT(&server, server.n_lost == 1);
    stop(&server);
}

/* ---- greedy ones -------------------------------------------------------------------------- */

static void nothing_more(struct server *server)
{
    (void)server;
}

/* Until the loop has found nothing to do for some rounds. */
static size_t settle(struct server *server, const size_t *counter)
{
    size_t last = 0;

    for (int n_same = 0; n_same < 100;) {
        size_t now;

        on_loop(server, nothing_more);
        pthread_mutex_lock(&server->lock);
        now = *counter;
        pthread_mutex_unlock(&server->lock);
        n_same = now == last ? n_same + 1 : 0;
        last = now;
    }
    return last;
}

TEST(http_stream_that_is_not_read_takes_no_memory_and_no_neighbour)
{
    struct server server = {0};
    struct answer answer;
    char *bytes = malloc(1 << 20);
    size_t n_sent;
    size_t n_read = 0;
    int neighbour;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /events HTTP/1.1\r\n" HOST);
    n_sent = settle(&server, &server.n_sent);
    CHECK(n_sent < 32 << 20); /* what the kernel holds of it is not ours */
    CHECK(server.max_memory < 256 << 10);
    neighbour = dial(&server);
    say(neighbour, "GET /a HTTP/1.1\r\n" HOST);
    hear(neighbour, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /a");
    /* It goes on where it was as soon as it is read. */
    while (n_read < n_sent + (1 << 20)) {
        const ssize_t n = recv(fd, bytes, 1 << 20, 0);

        CHECK(n > 0);
        n_read += (size_t)n;
    }
    CHECK(server.max_memory < 256 << 10);
    close(fd);
    close(neighbour);
    AWAIT(&server, server.n_lost == 1);
    free(bytes);
    stop(&server);
}

static void fill_held(struct server *server)
{
    static const struct net_http_answer answer = {.status = 200};
    char piece[10000] = {0};
    peg_error error;
    peg_status status;

    CHECK_INT(net_http_begin(server->held, &answer, NET_HTTP_STREAM, NULL), PEG_OK);
    do
        status = net_http_send(server->held, peg__strn(piece, sizeof(piece)), &error);
    while (!status);
    CHECK_INT(status, PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_SEND_QUEUE_FULL");
    CHECK(!net_http_is_writable(server->held));
    net_http_reset(server->held);
    server->held = net_http_unref(server->held);
}

TEST(http_handler_that_does_not_wait_is_refused_at_a_limit)
{
    struct server server = {.options.max_send_bytes = 200000};
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    on_loop(&server, fill_held);
    AWAIT(&server, server.n_ended == 1);
    close(fd);
    stop(&server);
    CHECK_INT(server.n_lost, 1);
}

/* Its handler reads nothing until it is told to. */
static void pause_body(struct net_http_request *request, void *user)
{
    struct server *server = user;

    net_http_pause(request);
    TELL(server, server->held = net_http_ref(request));
}

static const struct net_http_handler paused = {
    .on_head = pause_body, .on_body = take_part, .on_end = count_end, .max_body = 1 << 30};
static const struct net_http_route paused_routes[] = {{"POST", "/paused", &paused}};

static void resume_held(struct server *server)
{
    net_http_resume(server->held);
    server->held = net_http_unref(server->held);
}

TEST(http_body_that_is_not_taken_waits_at_the_client)
{
    enum { BYTES = 64 << 20 };
    struct server server = {.options = {.routes = paused_routes, .n_routes = 1, .body_ms = 50}};
    struct answer answer;
    char *bytes = calloc(1, 1 << 20);
    size_t n_sent = 0;
    ssize_t n;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /paused HTTP/1.1\r\nContent-Length: 67108864\r\n" HOST);
    AWAIT(&server, server.held);
    while ((n = send(fd, bytes, 1 << 20, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0)
        n_sent += (size_t)n;
    settle(&server, &server.n_body);
    CHECK_INT(server.n_body, 0);
    CHECK(n_sent < BYTES && server.max_memory < 256 << 10);
    on_loop(&server, resume_held);
    while (n_sent < BYTES) {
        const size_t left = BYTES - n_sent;

        n = send(fd, bytes, left < 1 << 20 ? left : 1 << 20, MSG_NOSIGNAL);
        CHECK(n > 0);
        n_sent += (size_t)n;
    }
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "67108864 bytes\n");
    CHECK(server.max_memory < 256 << 10);
    close(fd);
    free(bytes);
    stop(&server);
}

TEST(http_pipeline_is_not_read_far_ahead)
{
    struct server server = {0};
    char *bytes = malloc(1 << 20);
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    for (size_t i = 0; i < 1 << 20; i++)
        bytes[i] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"[i % 27];
    while (send(fd, bytes, 1 << 20, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        ;
    settle(&server, &server.max_memory);
    CHECK(server.max_memory < 128 << 10);
    TELL(&server, server.held = net_http_unref(server.held));
    close(fd);
    free(bytes);
    stop(&server);
    CHECK_INT(server.n_requests, 1);
}

TEST(http_huge_chunk_is_refused_at_the_limit_of_its_path)
{
    struct server server = {0};
    char *bytes = calloc(1, 1 << 20);
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "40000000\r\n");
    for (int i = 0; i < 4; i++)
        CHECK_INT(send(fd, bytes, 1 << 20, MSG_NOSIGNAL), 1 << 20);
    CHECK_INT(send(fd, bytes, 1, MSG_NOSIGNAL), 1);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 413 Content Too Large\r\n");
    CHECK_STR(peg_cstr(answer.body),
              "the body is larger than this path takes: 4194304 bytes at most\n");
    check_ended(fd);
    free(bytes);
    stop(&server);
    CHECK(server.max_memory < 9 << 20);
}

TEST(http_names_the_limit_of_open_requests)
{
    struct server server = {.options.max_requests = 2};
    struct answer answer;
    int fds[2];
    int fd;

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        fds[i] = dial(&server);
        say(fds[i], "POST /parts HTTP/1.1\r\nContent-Length: 1\r\n" HOST);
        AWAIT(&server, server.n_requests == i + 1);
    }
    fd = dial(&server);
    say(fd, "GET /a HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 503 Service Unavailable\r\n");
    check_head(&answer, "\r\nretry-after: 1\r\n");
    CHECK_STR(peg_cstr(answer.body), "too many requests are open here (2): try again later\n");
    say(fds[0], "x");
    hear(fds[0], &answer);
    say(fd, "GET /a HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 200 OK\r\n");
    close(fd);
    close(fds[0]);
    close(fds[1]);
    stop(&server);
}

/* ---- ends in the middle ------------------------------------------------------------------- */

TEST(http_client_that_ends_its_side_in_the_middle_is_lost)
{
    static const char *const requests[] = {
        "GET /a HTT",
        "POST /parts HTTP/1.1\r\nContent-Length: 5\r\n" HOST "he",
        "POST /parts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "5\r\nhello\r\n",
        ("GET /hold HTTP/1.1\r\n" HOST),
    };
    struct server server = {0};

    start(&server);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        if (i == 3)
            AWAIT(&server, server.held);
        CHECK(shutdown(fd, SHUT_WR) == 0);
        check_ended(fd);
        AWAIT(&server, server.n_ended == i + 1);
    }
    TELL(&server, server.held = net_http_unref(server.held));
    stop(&server);
    CHECK_INT(server.n_lost, 3);
    CHECK_INT(server.n_answered, 0);
}
