/* SPDX-License-Identifier: Apache-2.0 */

/* Connections of HTTP/1.1: answers, bodies, streams, and how they end. */

#include "http_server.h"

/* ---- answers ------------------------------------------------------------------------------ */

TEST(http_answers_and_keeps_the_connection)
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
    check_head(&answer, "\r\nContent-Type: text/plain\r\n");
    check_head(&answer, "\r\nConnection: keep-alive\r\n");
    CHECK_STR(peg_cstr(answer.body), "GET at /metrics?x=1");

    say(fd, "GET /a HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /a");
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK_INT(server.n_requests, 2);
    CHECK_INT(server.n_answered, 2);
}

TEST(http_sends_no_body_where_none_belongs)
{
    struct server server = {.body_bytes = 1 << 20};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd,
        "HEAD /a HTTP/1.1\r\n" HOST "HEAD /large HTTP/1.1\r\n" HOST "HEAD /events HTTP/1.1\r\n" HOST
        "GET /nothing HTTP/1.1\r\n" HOST "GET /b HTTP/1.1\r\n" HOST);
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "Content-Length: 10\r\n");
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "Content-Length: 1048576\r\n");
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "Content-Type: text/event-stream\r\n");
    CHECK(!strstr(answer.head, "Content-Length") && !strstr(answer.head, "Transfer-Encoding"));
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "HTTP/1.1 204 No Content\r\n");
    CHECK(!strstr(answer.head, "Content-Length"));
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /b");
    close(fd);
    stop(&server);
}

TEST(http_closes_after_the_answer_if_the_client_says_so)
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

TEST(http_refuses_with_a_status_and_closes)
{
    static const struct {
        const char *status;
        const char *request;
    } bad[] = {
        {"400 Bad Request", "GET / HTTP/1.1\r\n\r\n"},
        {"400 Bad Request", "GET / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b\r\n" HOST},
        {"400 Bad Request", "GET / HTTP/1.1\r\nOrigin: http://a\r\nOrigin: http://b\r\n" HOST},
        {"400 Bad Request", "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "x\r\n"},
        {"413 Content Too Large", "POST /echo HTTP/1.1\r\nContent-Length: 9999999\r\n" HOST},
        {"417 Expectation Failed", "GET / HTTP/1.1\r\nExpect: x\r\n" HOST},
        {"501 Not Implemented", "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" HOST},
        {"505 HTTP Version Not Supported", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    };
    struct server server = {0};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const int fd = dial(&server);

        say(fd, bad[i].request);
        hear(fd, &answer);
        if (strstr(answer.head, bad[i].status) != answer.head + 9)
            T_FAIL("request %zu: %s", i, answer.head);
        check_head(&answer, "\r\nConnection: close\r\n");
        check_ended(fd);
    }
    AWAIT(&server, server.n_ended == sizeof(bad) / sizeof(bad[0]));
    stop(&server);
    CHECK_INT(server.n_requests, 0);
}

TEST(http_names_the_methods_of_a_path_and_keeps_the_connection)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "DELETE /echo HTTP/1.1\r\nContent-Length: 5\r\n" HOST "hello"
            "GET /a/b HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 405 Method Not Allowed\r\n");
    check_head(&answer, "\r\nallow: POST, PUT, GET, HEAD\r\n");
    check_head(&answer, "\r\nConnection: keep-alive\r\n");
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 404 Not Found\r\n");
    close(fd);
    stop(&server);
    CHECK_INT(server.n_requests, 0);
}

TEST(http_refuses_head_without_a_body)
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
TEST(http_refusal_arrives_although_the_client_goes_on_sending)
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

TEST(http_resets_an_answer_that_is_none)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /wrong HTTP/1.1\r\n" HOST);
    CHECK(!hear_head(fd, &answer));
    close(fd);
    AWAIT(&server, server.n_lost == 1);
    stop(&server);
}

/* ---- bodies ------------------------------------------------------------------------------- */

TEST(http_gathers_a_body_however_it_comes)
{
    static const char *const requests[] = {
        "POST /echo HTTP/1.1\r\nContent-Length: 5\r\n" HOST "hello",
        "PUT /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST
        "2\r\nhe\r\n3;x\r\nllo\r\n0\r\nA: b\r\n\r\n",
    };
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    for (size_t i = 0; i < 2; i++) {
        for (size_t piece = 1; piece <= strlen(requests[i]); piece *= 2) {
            for (size_t at = 0; at < strlen(requests[i]); at += piece) {
                const size_t left = strlen(requests[i]) - at;
                const size_t n = left < piece ? left : piece;

                CHECK_INT(send(fd, requests[i] + at, n, MSG_NOSIGNAL), n);
            }
            hear(fd, &answer);
            CHECK_STR(peg_cstr(answer.body), i ? "PUT at /echo: hello" : "POST at /echo: hello");
        }
    }
    close(fd);
    stop(&server);
}

TEST(http_hands_on_a_large_body_in_pieces)
{
    enum { N = 1000, PIECE = 10000 };
    struct server server = {0};
    struct answer answer;
    char *piece = malloc(PIECE);
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /parts HTTP/1.1\r\nContent-Length: 10000000\r\n" HOST);
    memset(piece, 'x', PIECE);
    for (int i = 0; i < N; i++)
        CHECK_INT(send(fd, piece, PIECE, MSG_NOSIGNAL), PIECE);
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "10000000 bytes\n");
    close(fd);
    free(piece);
    stop(&server);
    CHECK(server.max_memory < 100000);
}

TEST(http_asks_for_a_body_that_waits_to_be_asked_for)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /echo HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n" HOST);
    CHECK(hear_head(fd, &answer));
    CHECK_STR(peg_cstr(answer.head), "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "hello");
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "POST at /echo: hello");
    /* One that came along needs no question. */
    say(fd, "POST /echo HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n" HOST "x");
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 200 OK\r\n");
    /* One that is refused is not asked for; whether it comes is not known. */
    say(fd, "POST /refused HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 401 Unauthorized\r\n");
    check_head(&answer, "\r\nConnection: close\r\n");
    check_ended(fd);
    stop(&server);
}

TEST(http_reads_the_rest_of_a_short_body_that_was_refused)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /refused HTTP/1.1\r\nContent-Length: 25\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 401 Unauthorized\r\n");
    check_head(&answer, "\r\nConnection: keep-alive\r\n");
    say(fd, "GET /smuggled HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 400"); /* 26 bytes: the last one begins a line */
    close(fd);

    fd = dial(&server);
    say(fd, "POST /refused HTTP/1.1\r\nContent-Length: 26\r\n" HOST);
    hear(fd, &answer);
    say(fd, "GET /smuggled HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /next");
    close(fd);
    stop(&server);
}

TEST(http_ends_a_connection_whose_refused_body_is_long_or_of_unknown_length)
{
    static const char *const requests[] = {
        "POST /refused HTTP/1.1\r\nContent-Length: 65537\r\n" HOST,
        "POST /refused HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "5\r\nhello\r\n",
    };
    struct server server = {0};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        hear(fd, &answer);
        check_head(&answer, "HTTP/1.1 401 Unauthorized\r\n");
        check_head(&answer, "\r\nConnection: close\r\n");
        check_ended(fd);
    }
    stop(&server);
}

TEST(http_names_the_limit_of_a_body)
{
    static const char *const requests[] = {
        "POST /little HTTP/1.1\r\nContent-Length: 6\r\n" HOST "hello!",
        "POST /little HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST
        "3\r\nhel\r\n3\r\nlo!\r\n0\r\n\r\n",
    };
    struct server server = {0};
    struct answer answer;

    start(&server);
    for (size_t i = 0; i < 2; i++) {
        const int fd = dial(&server);

        say(fd, requests[i]);
        hear(fd, &answer);
        check_head(&answer, "HTTP/1.1 413 Content Too Large\r\n");
        CHECK_STR(peg_cstr(answer.body),
                  "the body is larger than this path takes: 5 bytes at most\n");
        close(fd);
    }
    stop(&server);
    CHECK_INT(server.n_requests, 0);
}

/* ---- answers that come later --------------------------------------------------------------- */

static void answer_held(struct server *server)
{
    net_http_reply_text(server->held, 200, "held");
    server->held = net_http_unref(server->held);
}

TEST(http_answers_later_and_in_order)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "POST /hold HTTP/1.1\r\nContent-Length: 1\r\n" HOST "x"
            "GET /b HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    CHECK_INT(server.n_principals, 1);
    on_loop(&server, answer_held);
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "held\n");
    hear(fd, &answer);
    CHECK_STR(peg_cstr(answer.body), "GET at /b");
    close(fd);
    stop(&server);
}

static void answer_ended(struct server *server)
{
    static const struct net_http_answer answer = {.status = 200};
    peg_error error;

    CHECK(server->held->was_lost);
    CHECK_STR(server->held->path, "/hold"); /* a reference keeps it */
    CHECK(!net_http_is_writable(server->held));
    CHECK_INT(net_http_begin(server->held, &answer, 0, &error), PEG_ECANCELED);
    CHECK_STR(peg__str(error.code), "E_CALL_ENDED");
    CHECK_INT(net_http_send(server->held, peg__str("x"), &error), PEG_ECANCELED);
    net_http_finish(server->held);
    net_http_reset(server->held);
    net_http_pause(server->held);
    net_http_resume(server->held);
    answer_held(server);
}

TEST(http_reports_a_client_that_goes_while_its_handler_works)
{
    struct server server = {0};
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    close(fd);
    AWAIT(&server, server.n_lost == 1);
    on_loop(&server, answer_ended);
    stop(&server);
}

static void answer_wrongly(struct server *server)
{
    static const struct net_http_field bad[] = {
        {PEG_LIT("Upper"), PEG_LIT("x")},
        {PEG_LIT("content-length"), PEG_LIT("1")},
        {PEG_LIT("transfer-encoding"), PEG_LIT("chunked")},
        {PEG_LIT("connection"), PEG_LIT("close")},
        {PEG_LIT("a"), PEG_LIT("x\r\nSet-Cookie: y")},
        {PEG_LIT("a b"), PEG_LIT("x")},
        {PEG_LIT(""), PEG_LIT("x")},
    };
    const struct net_http_answer good = {.status = 201, .fields = &bad[0]};
    peg_error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct net_http_answer answer = {.status = 200, .fields = &bad[i], .n_fields = 1};

        CHECK_INT(net_http_begin(server->held, &answer, 0, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_HTTP_ANSWER");
    }
    CHECK_INT(net_http_send(server->held, peg__str("x"), &error), PEG_ESTATE);
    CHECK_INT(net_http_begin(server->held, &good, 5, &error), PEG_OK);
    CHECK_INT(net_http_begin(server->held, &good, 5, &error), PEG_ESTATE);
    CHECK_INT(net_http_send(server->held, peg__str("hello!"), &error), PEG_ESTATE);
    CHECK_INT(net_http_send(server->held, peg__str("hello"), &error), PEG_OK);
    CHECK_INT(net_http_send(server->held, peg__str("!"), &error), PEG_ESTATE);
    net_http_finish(server->held);
    CHECK_INT(net_http_send(server->held, peg__str(""), &error), PEG_ESTATE);
    server->held = net_http_unref(server->held);
}

TEST(http_takes_nothing_from_a_handler_that_would_break_the_answer)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    on_loop(&server, answer_wrongly);
    hear(fd, &answer);
    check_head(&answer, "HTTP/1.1 201 Created\r\n");
    CHECK_STR(peg_cstr(answer.body), "hello");
    close(fd);
    stop(&server);
}

static void answer_short(struct server *server)
{
    static const struct net_http_answer answer = {.status = 200};

    CHECK_INT(net_http_begin(server->held, &answer, 5, NULL), PEG_OK);
    CHECK_INT(net_http_send(server->held, peg__str("hell"), NULL), PEG_OK);
    net_http_finish(server->held);
    server->held = net_http_unref(server->held);
}

TEST(http_cuts_an_answer_that_is_shorter_than_it_said)
{
    struct server server = {0};
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    on_loop(&server, answer_short);
    AWAIT(&server, server.n_lost == 1);
    check_ended(fd);
    stop(&server);
}

static void stream_held(struct server *server)
{
    static const struct net_http_field fields[] = {{PEG_LIT("mcp-session-id"), PEG_LIT("7")}};
    static const struct net_http_answer answer = {
        .status = 200, .content_type = "text/plain", .fields = fields, .n_fields = 1};

    CHECK_INT(net_http_begin(server->held, &answer, NET_HTTP_STREAM, NULL), PEG_OK);
    CHECK_INT(net_http_send(server->held, peg__str("hello, "), NULL), PEG_OK);
    CHECK_INT(net_http_send(server->held, peg__str(""), NULL), PEG_OK); /* ends nothing */
    CHECK_INT(net_http_send(server->held, peg__str("world"), NULL), PEG_OK);
    net_http_finish(server->held);
    server->held = net_http_unref(server->held);
}

static void hear_text(int fd, const char *text)
{
    for (size_t i = 0; i < strlen(text); i++) {
        char c;

        CHECK_INT(recv(fd, &c, 1, 0), 1);
        CHECK_INT(c, text[i]);
    }
}

TEST(http_streams_in_chunks_or_until_the_connection_ends)
{
    for (int version = 0; version < 2; version++) {
        struct server server = {0};
        struct answer answer;
        int fd;

        start(&server);
        fd = dial(&server);
        say(fd, version ? "GET /hold HTTP/1.1\r\n" HOST
                        : "GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        AWAIT(&server, server.held);
        on_loop(&server, stream_held);
        CHECK(hear_head(fd, &answer));
        check_head(&answer, "\r\nmcp-session-id: 7\r\n");
        CHECK(!strstr(answer.head, "Content-Length"));
        if (version) {
            check_head(&answer, "\r\nTransfer-Encoding: chunked\r\n");
            hear_text(fd, "7\r\nhello, \r\n5\r\nworld\r\n0\r\n\r\n");
            say(fd, "GET /b HTTP/1.1\r\n" HOST);
            hear(fd, &answer);
            CHECK_STR(peg_cstr(answer.body), "GET at /b");
            close(fd);
        } else {
            CHECK(!strstr(answer.head, "Transfer-Encoding"));
            hear_text(fd, "hello, world");
            check_ended(fd);
        }
        stop(&server);
    }
}

static void send_held_events(struct server *server)
{
    peg_error error;

    CHECK_INT(net_http_begin_events(server->held, NULL), PEG_OK);
    CHECK_INT(net_http_send_event(server->held, "a\nb", NULL, peg__str(""), &error), PEG_EINVAL);
    CHECK_INT(net_http_send_event(server->held, "x", "7", peg__str("1\n2\r\n3\r4\n"), NULL),
              PEG_OK);
    CHECK_INT(net_http_send_event(server->held, NULL, NULL, peg__str(""), NULL), PEG_OK);
    CHECK_INT(net_http_send_comment(server->held, NULL), PEG_OK);
    net_http_finish(server->held);
    server->held = net_http_unref(server->held);
}

TEST(http_events_keep_their_lines)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.0\r\n\r\n");
    AWAIT(&server, server.held);
    on_loop(&server, send_held_events);
    CHECK(hear_head(fd, &answer));
    check_head(&answer, "\r\nContent-Type: text/event-stream\r\n");
    hear_text(fd, "event: x\nid: 7\ndata: 1\ndata: 2\ndata: 3\ndata: 4\ndata: \n\ndata: \n\n:\n\n");
    check_ended(fd);
    stop(&server);
}

/* ---- pieces, pipelines and slow readers --------------------------------------------------- */

TEST(http_does_not_care_in_which_pieces_a_request_comes)
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

TEST(http_answers_pipelined_requests_in_order)
{
    enum { N = 1000 };
    struct server server = {0};
    struct answer answer;
    char text[128];
    int fd;

    start(&server);
    fd = dial(&server);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text),
                 i % 2 ? "GET /%d HTTP/1.1\r\n" HOST
                       : "POST /echo HTTP/1.1\r\nContent-Length: 6\r\n" HOST "%06d",
                 i);
        say(fd, text);
    }
    for (int i = 0; i < N; i++) {
        hear(fd, &answer);
        snprintf(text, sizeof(text), i % 2 ? "GET at /%d" : "POST at /echo: %06d", i);
        CHECK_STR(peg_cstr(answer.body), text);
    }
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK_INT(server.n_requests, N);
}

TEST(http_produces_no_answer_while_the_last_one_waits)
{
    enum { BYTES = 16 << 20 };
    struct server server = {.body_bytes = BYTES};
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
        CHECK_INT(answer.body_len, BYTES);
    }
    close(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK(server.n_requests < 100);
}

TEST(http_sends_all_to_a_client_that_has_ended_its_side)
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
    CHECK_INT(server.n_answered, 1);
}

TEST(http_begins_with_bytes_that_were_read_already)
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

TEST(http_takes_no_more_first_bytes_than_it_has_room_for)
{
    struct server server = {0};
    int fd;

    start(&server);
    TELL(&server,
         peg__buf_repeat(&server.first, 'x', PEG_LIMIT_NET_HTTP_HEAD_BYTES + NET_READ_BYTES + 1));
    fd = dial(&server);
    check_ended(fd);
    stop(&server);
    CHECK_INT(server.n_ended, 0);
}

/* ---- ends --------------------------------------------------------------------------------- */

static void leave(struct server *server)
{
    net_http_conn_leave(server->last);
}

TEST(http_connection_that_is_to_leave_answers_first)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /hold HTTP/1.1\r\n" HOST "GET /not-answered HTTP/1.1\r\n" HOST);
    AWAIT(&server, server.held);
    on_loop(&server, leave);
    on_loop(&server, answer_held);
    hear(fd, &answer);
    check_head(&answer, "\r\nConnection: close\r\n");
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
    CHECK_INT(server.n_requests, 1);
}

TEST(http_connection_without_a_request_leaves_at_once)
{
    struct server server = {0};
    struct answer answer;
    int fd;

    start(&server);
    fd = dial(&server);
    say(fd, "GET /a HTTP/1.1\r\n" HOST);
    hear(fd, &answer);
    on_loop(&server, leave);
    check_ended(fd);
    AWAIT(&server, server.n_ended == 1);
    stop(&server);
}

TEST(http_ends_with_its_loop)
{
    struct server server = {.body_bytes = 16 << 20};
    int idle;
    int busy;
    int waiting;

    start(&server);
    idle = dial(&server);
    busy = dial(&server);
    waiting = dial(&server);
    say(idle, "GET /a HTTP/1.1\r\n" HOST);
    say(busy, "GET /large HTTP/1.1\r\n" HOST);
    say(waiting, "POST /parts HTTP/1.1\r\nContent-Length: 5\r\n" HOST "he");
    AWAIT(&server, server.n_requests == 3);
    net_listener_free(server.listener);
    server.listener = NULL;
    server.loops = net_loops_free(server.loops);
    CHECK_INT(server.n_ended, 3);
    CHECK_INT(server.n_lost, 2);
    close(idle);
    close(busy);
    close(waiting);
    stop(&server);
}

/* ---- memory: on a loop in this thread ----------------------------------------------------- */

static void torture_end(void *user)
{
    *(bool *)user = true;
}

static peg_status serve_one(struct net_loop *loop, struct net_http_server *http, int fd, int peer)
{
    static const struct net_http_conn_events none_of_mine = {.on_end = torture_end};
    static const char first[] = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost:";
    static const char rest[] = " a\r\n\r\n5\r\nhello\r\n";
    static const struct net_stream_events none = {0};
    struct net_stream *stream = NULL;
    struct net_http_conn *conn = NULL;
    bool has_ended = false;
    char got[4096];
    ssize_t n = 0;
    peg_status status = net_stream_take(loop, fd, NULL, &none, NULL, &stream, NULL);

    if (!status)
        status = net_http_conn_new(http, stream, &none_of_mine, &has_ended, peg__str(first), &conn);
    if (status)
        return status;
    CHECK_INT(write(peer, rest, sizeof(rest) - 1), sizeof(rest) - 1);
    net_loop_stop(loop);
    net_loop_run(loop);
    CHECK(has_ended || write(peer, "0\r\n\r\n", 5) == 5);
    while (!has_ended && (n = recv(peer, got, sizeof(got), MSG_DONTWAIT)) < 0) {
        net_loop_stop(loop);
        net_loop_run(loop);
    }
    if (has_ended)
        return PEG_ENOMEM;
    net_http_conn_drop(conn);
    /* An answer without memory for its body is an answer all the same. */
    return n > 12 && memcmp(got, "HTTP/1.1 200", 12) == 0 ? PEG_OK : PEG_ENOMEM;
}

TORTURE(http_survives_any_allocation_failure)
{
    struct server server = {0};
    struct net_http_options options = {
        .routes = routes, .n_routes = sizeof(routes) / sizeof(routes[0]), .user = &server};
    struct net_http_server *http = NULL;
    struct net_loop *loop = NULL;
    int fds[2];
    peg_status status;

    pthread_mutex_init(&server.lock, NULL);
    pthread_cond_init(&server.changed, NULL);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    status = net_http_server_new(&options, &http, NULL);
    if (!status)
        status = net_loop_new(&loop, NULL);
    if (status)
        close(fds[0]);
    else
        status = serve_one(loop, http, fds[0], fds[1]);
    net_loop_free(loop);
    net_http_server_free(http);
    close(fds[1]);
    return status;
}
