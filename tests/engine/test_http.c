/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "server.h"

/* ---- fixture: a server, a transport, and what came back --------------------------------- */

struct world {
    struct server server;
    struct peg__transport transport;
    peg_clock *clock; /* NULL: the system's */
    peg_ctx *ctx;
    peg_cancel *cancel;
    struct peg__http_request request;
    struct peg__http_answer answer;
    char url[64];
    char got[65536];
    size_t n_got;
    size_t n_calls;     /* of on_bytes */
    peg_status verdict; /* what on_bytes says */
    bool is_over;
    atomic_bool is_done; /* the request, for threads that do something meanwhile */
    peg_error error;
};

static peg_status take_bytes(struct peg__http_answer *answer, peg_str bytes, void *user,
                             peg_error *reterr)
{
    struct world *w = user;
    const size_t room = sizeof(w->got) - 1 - w->n_got;
    const size_t n = bytes.len < room ? bytes.len : room;

    memcpy(w->got + w->n_got, bytes.ptr, n);
    w->n_got += n;
    w->got[w->n_got] = '\0';
    w->n_calls++;
    answer->is_over = w->is_over;
    if (w->verdict && reterr)
        *reterr = (peg_error){.status = w->verdict, .code = "E_TEST"};
    return w->verdict;
}

static peg_status open_ctx(struct world *w, bool is_manual)
{
    peg_ctx *base = NULL;
    peg_status status = PEG_OK;

    if (is_manual) {
        status = peg_clock_manual_new(1000, &w->clock, NULL);
        if (!status)
            status = peg_ctx_with_clock(NULL, w->clock, &base, NULL);
    }
    if (!status)
        status = peg_ctx_with_cancel(base, &w->ctx, &w->cancel, NULL);
    peg_ctx_unref(base);
    return status;
}

static void open_world(struct world *w, answer_fn answer, bool is_manual)
{
    memset(w, 0, sizeof(*w));
    server_start(&w->server, answer);
    CHECK_INT(open_ctx(w, is_manual), PEG_OK);
    CHECK_INT(peg__http_new(&w->transport, NULL), PEG_OK);
    snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/v1/chat", w->server.port);
    w->request = (struct peg__http_request){
        .url = w->url,
        .headers = "X-One: 1\nAuthorization: Bearer k\n",
        .body = peg_cstr("{\"q\":1}"),
        .connect_ms = 10000,
        .idle_ms = 60000,
        .total_ms = -1,
        .max_bytes = 1 << 20,
        .on_bytes = take_bytes,
        .user = w,
    };
}

static peg_status send_it(struct world *w)
{
    w->n_got = 0;
    w->got[0] = '\0';
    return w->transport.send(w->transport.self, w->ctx, &w->request, &w->answer, &w->error);
}

static void close_world(struct world *w)
{
    w->transport.free(w->transport.self);
    peg_ctx_unref(w->ctx);
    peg_cancel_unref(w->cancel);
    peg_clock_manual_free(w->clock);
    server_stop(&w->server);
}

#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            T_FAIL("\"%s\" does not contain \"%s\"", (text), (part));                              \
    } while (0)

/* ---- going well ------------------------------------------------------------------------------ */

static bool answer_hi(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    return put_answer(c, 200, "Content-Type: application/json\r\nx-request-id: r1\r\n",
                      "{\"a\":1}");
}

TEST(a_request_is_sent_as_it_should_be)
{
    struct world w;

    open_world(&w, answer_hi, false);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_HAS(w.server.last_request, "POST /v1/chat HTTP/1.1\r\n");
    CHECK_HAS(w.server.last_request, "User-Agent: pegboard/" PEG_VERSION "\r\n");
    CHECK_HAS(w.server.last_request, "Content-Type: application/json\r\n");
    CHECK_HAS(w.server.last_request, "X-One: 1\r\n");
    CHECK_HAS(w.server.last_request, "Authorization: Bearer k\r\n");
    CHECK_HAS(w.server.last_request, "\r\n\r\n{\"q\":1}");
    CHECK(!strstr(w.server.last_request, "Expect:"));
    close_world(&w);
}

TEST(an_answer_comes_with_what_its_headers_tell)
{
    struct world w;

    open_world(&w, answer_hi, false);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_INT(w.answer.status, 200);
    CHECK_STR(peg__str(w.got), "{\"a\":1}");
    CHECK_STR(peg__str(w.answer.content_type), "application/json");
    CHECK_STR(peg__str(w.answer.request_id), "r1");
    CHECK_INT(w.answer.retry_after_ms, -1);
    close_world(&w);
}

TEST(a_second_request_takes_the_connection_of_the_first)
{
    struct world w;

    open_world(&w, answer_hi, false);
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_INT(server_requests(&w.server), 5);
    CHECK_INT(server_connections(&w.server), 1);
    close_world(&w);
}

static bool answer_in_pieces(struct connection *c, const char *request, unsigned n)
{
    static const char text[] = "data: one\n\ndata: two\n\n";

    (void)request;
    (void)n;
    put_start(c, "text/event-stream; charset=utf-8");
    for (size_t i = 0; i < sizeof(text) - 1; i += 3)
        put_chunk(c, text + i, sizeof(text) - 1 - i < 3 ? sizeof(text) - 1 - i : 3);
    return put_end(c);
}

TEST(a_body_in_odd_pieces_arrives_whole)
{
    struct world w;

    open_world(&w, answer_in_pieces, false);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_STR(peg__str(w.got), "data: one\n\ndata: two\n\n");
    close_world(&w);
}

static bool answer_interim(struct connection *c, const char *request, unsigned n)
{
    put_text(c, "HTTP/1.1 103 Early Hints\r\nx-request-id: early\r\nRetry-After: 3\r\n\r\n");
    (void)request;
    (void)n;
    return put_answer(c, 200, "", "ok");
}

TEST(only_the_last_answer_counts_where_there_are_interim_ones)
{
    struct world w;

    open_world(&w, answer_interim, false);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_INT(w.answer.status, 200);
    CHECK_STR(peg__str(w.answer.request_id), "");
    CHECK_INT(w.answer.retry_after_ms, -1);
    close_world(&w);
}

static bool answer_and_stay(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    put_start(c, "text/event-stream");
    put_chunk(c, "data: [DONE]\n\n", 14);
    return stall(c);
}

TEST(a_stream_that_told_its_end_need_not_be_closed)
{
    struct world w;

    open_world(&w, answer_and_stay, false);
    w.is_over = true;
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_STR(peg__str(w.got), "data: [DONE]\n\n");
    close_world(&w);
}

static bool answer_and_break(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    put_start(c, "text/event-stream");
    put_chunk(c, "data: [DONE]\n\n", 14);
    return false;
}

TEST(a_stream_that_told_its_end_may_break)
{
    struct world w;

    open_world(&w, answer_and_break, false);
    w.is_over = true;
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);
    close_world(&w);
}

/* ---- other statuses ----------------------------------------------------------------------------
 */

static bool answer_429(struct connection *c, const char *request, unsigned n)
{
    static const char *const waits[] = {
        "Retry-After: 7\r\n",
        "retry-after-ms: 250\r\nRetry-After: 1\r\n",
        "Retry-After: 1\r\nretry-after-ms: 250\r\n",
        "Retry-After: Thu, 01 Jan 1970 00:00:31 GMT\r\n",
        "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
        "Retry-After: soon\r\n",
        "Retry-After: -5\r\n",
        "Retry-After: 99999999999999999999\r\n",
        "Retry-After:\r\n",
    };

    (void)request;
    return put_answer(c, 429, waits[n % 9], "{\"error\":{}}");
}

TEST(a_server_may_ask_to_be_asked_later)
{
    static const int64_t expected[] = {7000, 250, 250, 30000, 0, -1, -1, PEG_LIMIT_RETRY_AFTER_MS,
                                       -1};
    struct world w;

    open_world(&w, answer_429, true); /* the clock says 1 s after 1970 */
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        CHECK_STATUS(send_it(&w), PEG_OK, w.error);
        CHECK_INT(w.answer.status, 429);
        CHECK_INT(w.answer.retry_after_ms, expected[i]);
        CHECK_STR(peg__str(w.got), "{\"error\":{}}");
    }
    close_world(&w);
}

static bool answer_redirect(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    return put_answer(c, 307, "Location: /elsewhere\r\n", "");
}

TEST(a_redirect_is_not_followed)
{
    struct world w;

    open_world(&w, answer_redirect, false);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_INT(w.answer.status, 307);
    CHECK_INT(server_requests(&w.server), 1);
    close_world(&w);
}

/* ---- what breaks
 * ---------------------------------------------------------------------------------- */

TEST(a_connection_that_is_refused_is_told_in_words)
{
    struct world w;

    open_world(&w, answer_hi, false);
    w.request.url = "http://127.0.0.1:1/";
    CHECK_INT(send_it(&w), PEG_EIO);

    CHECK_STR(peg__str(w.error.code), "E_ENGINE_TRANSPORT");
    CHECK_HAS(w.error.message, "127.0.0.1");
    CHECK_INT(w.answer.status, 0);
    close_world(&w);
}

TEST(only_http_is_spoken)
{
    static const char *const urls[] = {"file:///proc/self/status", "ftp://127.0.0.1/",
                                       "gopher://x/", "nonsense://", ""};
    struct world w;

    open_world(&w, answer_hi, false);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        w.request.url = urls[i];
        CHECK_INT(send_it(&w), PEG_EIO);
        CHECK_INT(w.n_calls, 0);
    }
    close_world(&w);
}

static bool answer_badly(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    switch (n) {
    case 0: /* nothing */
        return false;
    case 1:
        put_text(c, "this is no HTTP\r\n\r\n");
        return false;
    case 2: /* less than it promised */
        put_text(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
        return false;
    case 3: /* no last chunk */
        put_start(c, "text/event-stream");
        put_chunk(c, "short", 5);
        return false;
    case 4: /* a chunk that is none */
        put_start(c, "text/event-stream");
        put_text(c, "zz\r\nshort\r\n");
        return false;
    default:
        put_start(c, "text/event-stream");
        put_chunk(c, "short", 5);
        return reset_connection(c);
    }
}

TEST(an_answer_that_breaks_off_is_told_and_so_is_what_came_of_it)
{
    struct world w;

    open_world(&w, answer_badly, false);
    for (unsigned n = 0; n < 6; n++) {
        const peg_status status = send_it(&w);

        CHECK_STATUS(status, PEG_EIO, w.error);
        CHECK_STR(peg__str(w.error.code), "E_ENGINE_TRANSPORT");
        if (n == 2 || n == 3)
            CHECK_STR(peg__str(w.got), "short");
    }
    close_world(&w);
}

static bool answer_much(struct connection *c, const char *request, unsigned n)
{
    char block[1024];

    (void)request;
    (void)n;
    memset(block, 'x', sizeof(block));
    put_start(c, "text/event-stream");
    while (put_chunk(c, block, sizeof(block)))
        ;
    return false;
}

TEST(an_answer_without_an_end_is_refused)
{
    struct world w;

    open_world(&w, answer_much, false);
    w.request.max_bytes = 10000;
    CHECK_INT(send_it(&w), PEG_ELIMIT);

    CHECK_STR(peg__str(w.error.code), "E_ENGINE_TOO_LARGE");
    CHECK(w.n_got <= 10000);
    close_world(&w);
}

static bool answer_headers(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    put_text(c, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; putf(c, "X-%d: %0500d\r\n", i, i);)
        i++;
    return false;
}

TEST(headers_without_an_end_are_refused)
{
    struct world w;

    open_world(&w, answer_headers, false);
    CHECK(send_it(&w) != PEG_OK);

    CHECK(w.error.status == PEG_ELIMIT || w.error.status == PEG_EIO); /* curl has a limit too */
    close_world(&w);
}

TEST(what_the_listener_says_ends_the_request)
{
    struct world w;

    open_world(&w, answer_much, false);
    w.verdict = PEG_EPARSE;
    CHECK_INT(send_it(&w), PEG_EPARSE);

    CHECK_STR(peg__str(w.error.code), "E_TEST");
    CHECK_INT(w.n_calls, 1);
    close_world(&w);
}

/* ---- time, and those who stop it
 * ---------------------------------------------------------------------- */

static bool answer_never(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    return stall(c);
}

static bool answer_half(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    put_start(c, "text/event-stream");
    put_chunk(c, "half", 4);
    return stall(c);
}

static void *fire_later(void *user)
{
    struct world *w = user;

    server_await(&w->server, 1);
    peg_cancel_fire(w->cancel, "enough");
    return NULL;
}

/* Again and again: curl may notice bytes that it has sent only after the server has read them. */
static void *pass_time(void *user)
{
    struct world *w = user;

    server_await(&w->server, 1);
    while (!atomic_load(&w->is_done)) {
        peg_clock_manual_advance(w->clock, 100000);
        usleep(1000);
    }
    return NULL;
}

/* Sends while another thread does something. */
static peg_status send_while(struct world *w, void *(*meanwhile)(void *))
{
    pthread_t thread;
    peg_status status;

    pthread_create(&thread, NULL, meanwhile, w);
    status = send_it(w);
    atomic_store(&w->is_done, true);
    pthread_join(thread, NULL);
    return status;
}

TEST(a_request_is_canceled_from_another_thread)
{
    const answer_fn answers[] = {answer_never, answer_half};

    for (size_t i = 0; i < 2; i++) {
        struct world w;

        open_world(&w, answers[i], false);
        w.request.idle_ms = -1;
        CHECK_INT(send_while(&w, fire_later), PEG_ECANCELED);

        CHECK_STR(peg__str(w.error.code), "E_CANCELED");
        CHECK_HAS(w.error.message, "enough");
        close_world(&w);
    }
}

/* Stands in for the C library's, so that a name server can be silent. */
static sem_t is_asked;
static sem_t may_answer;

PEG_API int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                        struct addrinfo **ret_list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    if (name && strcmp(name, "silent.test") == 0) {
        sem_post(&is_asked);
        sem_wait(&may_answer);
        return EAI_AGAIN;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, hints, ret_list);
}

static void *fire_when_asked(void *user)
{
    struct world *w = user;

    sem_wait(&is_asked);
    peg_cancel_fire(w->cancel, "enough");
    return NULL;
}

TEST(a_silent_name_server_does_not_hold_what_is_canceled)
{
    struct world w;

    sem_init(&is_asked, 0, 0);
    sem_init(&may_answer, 0, 0);
    open_world(&w, answer_hi, false);
    w.request.url = "http://silent.test/";
    CHECK_INT(send_while(&w, fire_when_asked), PEG_ECANCELED);

    sem_post(&may_answer); /* only now */
    close_world(&w);
}

TEST(a_request_of_what_was_canceled_is_not_sent)
{
    struct world w;

    open_world(&w, answer_hi, false);
    peg_cancel_fire(w.cancel, "before");
    CHECK_INT(send_it(&w), PEG_ECANCELED);

    CHECK_INT(server_requests(&w.server), 0);
    close_world(&w);
}

TEST(a_request_ends_at_the_deadline_of_its_context)
{
    struct world w;
    peg_ctx *ctx = NULL;

    open_world(&w, answer_never, true);
    CHECK_INT(peg_ctx_with_deadline(w.ctx, 50000, &ctx, NULL), PEG_OK);
    peg_ctx_unref(w.ctx);
    w.ctx = ctx;
    CHECK_INT(send_while(&w, pass_time), PEG_ETIMEOUT);

    CHECK_STR(peg__str(w.error.code), "E_DEADLINE_EXCEEDED");
    close_world(&w);
}

TEST(a_request_ends_when_nothing_comes_for_too_long)
{
    struct world w;

    open_world(&w, answer_never, true);
    CHECK_INT(send_while(&w, pass_time), PEG_ETIMEOUT);

    CHECK_STR(peg__str(w.error.code), "E_ENGINE_TIMEOUT");
    CHECK_HAS(w.error.message, "idle_ms");
    CHECK_INT(w.answer.status, 0);
    close_world(&w);
}

TEST(a_request_ends_when_it_takes_too_long)
{
    struct world w;

    open_world(&w, answer_never, true);
    w.request.idle_ms = -1;
    w.request.total_ms = 90000;
    CHECK_INT(send_while(&w, pass_time), PEG_ETIMEOUT);

    CHECK_STR(peg__str(w.error.code), "E_ENGINE_TIMEOUT");
    CHECK_HAS(w.error.message, "total_ms");
    close_world(&w);
}

static bool answer_hi_after_stall(struct connection *c, const char *request, unsigned n)
{
    return n == 0 ? stall(c) : answer_hi(c, request, n);
}

TEST(after_a_request_that_was_ended_the_next_one_works)
{
    struct world w;

    open_world(&w, answer_hi_after_stall, true);
    CHECK_INT(send_while(&w, pass_time), PEG_ETIMEOUT);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    CHECK_INT(server_connections(&w.server), 2);
    CHECK_STR(peg__str(w.got), "{\"a\":1}");
    close_world(&w);
}

/* ---- many at once
 * ---------------------------------------------------------------------------------------- */

struct client {
    struct world *world;
    pthread_t thread;
    unsigned n_good;
    char got[64];
};

static peg_status keep_few(struct peg__http_answer *answer, peg_str bytes, void *user,
                           peg_error *reterr)
{
    struct client *client = user;

    (void)answer;
    (void)reterr;
    snprintf(client->got, sizeof(client->got), "%.*s", PEG_ARG(bytes));
    return PEG_OK;
}

static void *send_many(void *user)
{
    struct client *client = user;
    const struct world *w = client->world;
    struct peg__http_request request = w->request;

    request.on_bytes = keep_few;
    request.user = client;
    for (int i = 0; i < 20; i++) {
        struct peg__http_answer answer;

        client->got[0] = '\0';
        if (!w->transport.send(w->transport.self, w->ctx, &request, &answer, NULL) &&
            answer.status == 200 && strcmp(client->got, "{\"a\":1}") == 0)
            client->n_good++;
    }
    return NULL;
}

TEST(threads_send_at_once)
{
    struct client clients[4];
    struct world w;

    open_world(&w, answer_hi, false);
    for (size_t i = 0; i < 4; i++) {
        clients[i] = (struct client){.world = &w};
        pthread_create(&clients[i].thread, NULL, send_many, &clients[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(clients[i].thread, NULL);
        CHECK_INT(clients[i].n_good, 20);
    }
    CHECK_INT(server_requests(&w.server), 80);
    CHECK(server_connections(&w.server) <= 4);
    close_world(&w);
}

/* ---- what is not inherited, and memory
 * --------------------------------------------------------------------- */

static int port_of_peer(int fd)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);

    if (getpeername(fd, (struct sockaddr *)&address, &len) || address.sin_family != AF_INET)
        return -1;
    return ntohs(address.sin_port);
}

TEST(a_command_does_not_inherit_the_connection)
{
    struct world w;
    int n_found = 0;

    open_world(&w, answer_hi, false);
    CHECK_STATUS(send_it(&w), PEG_OK, w.error);

    for (int fd = 3; fd < 200; fd++) {
        if (port_of_peer(fd) != w.server.port)
            continue;
        n_found++;
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    CHECK_INT(n_found, 1);
    close_world(&w);
}

TORTURE(sending_survives_any_allocation_failure)
{
    static struct world w; /* the server stays for all rounds; what it has is not counted */
    static bool is_open;
    struct peg__transport transport;
    peg_status status;

    if (!is_open) {
        peg__mem_fail_at(0);
        server_start(&w.server, answer_hi);
        snprintf(w.url, sizeof(w.url), "http://127.0.0.1:%d/", w.server.port);
        is_open = true;
        peg__mem_fail_at(1);
    }
    w.request = (struct peg__http_request){.url = w.url,
                                           .headers = "A: b\n",
                                           .body = peg_cstr("{}"),
                                           .connect_ms = 10000,
                                           .idle_ms = -1,
                                           .total_ms = -1,
                                           .max_bytes = 1000,
                                           .on_bytes = take_bytes,
                                           .user = &w};
    w.ctx = NULL;
    w.cancel = NULL;
    status = open_ctx(&w, false);
    if (!status)
        status = peg__http_new(&transport, NULL);
    if (!status) {
        w.n_got = 0;
        status = transport.send(transport.self, w.ctx, &w.request, &w.answer, NULL);
        transport.free(transport.self);
    }
    peg_ctx_unref(w.ctx);
    peg_cancel_unref(w.cancel);
    if (!status)
        server_stop(&w.server);
    return status;
}

/* ---- addresses ---- */

static bool is_private(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return peg__address_is_private((const struct sockaddr *)&v4);
    CHECK_INT(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return peg__address_is_private((const struct sockaddr *)&v6);
}

TEST(addresses_of_this_machine_and_of_private_networks_are_private)
{
    static const char *const some[] = {
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::127.0.0.1",
        "2002:7f00:1::1",
    };
    static const char *const others[] = {"1.1.1.1",         "100.128.0.1",  "172.32.0.1",
                                         "192.169.0.1",     "2606:4700::1", "::ffff:8.8.8.8",
                                         "64:ff9b::8.8.8.8"};
    const struct sockaddr local = {.sa_family = AF_UNIX};

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        if (!is_private(some[i]))
            T_FAIL("%s is private", some[i]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (is_private(others[i]))
            T_FAIL("%s is public", others[i]);
    }
    CHECK(peg__address_is_private(&local));
}
