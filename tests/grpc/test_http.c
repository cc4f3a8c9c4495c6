/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of HTTP/2 that are no gRPC: they meet the same handlers as those of HTTP/1.1, on the
 * same port. The client is a session of ours whose streams carry plain bytes. */

#include "t.h"

#include <stdatomic.h>

#include "base/limits.h"
#include "base/mem.h"
#include "grpc/http2/session.h"
#include "grpc/peer.h"
#include "grpc/server/server.h"

enum { LARGE = 1 << 20, LITTLE = 100 };

static struct world {
    struct net_loops *loops;
    struct grpc_server *server;
    struct net_http_server *http;
    struct net_address address;
    struct peer peer;
    char folder[40];
    /* On the loop of the server, or between two messages to it. */
    struct net_http_request *held; /* a reference */
    size_t n_answered;
    size_t n_lost;
    size_t n_body;
    atomic_size_t n_sent; /* read while the loop sends more */
    struct grpc_server_counts within;
    sem_t asked;
    sem_t ended;
} w;

/* ---- handlers ------------------------------------------------------------------------------ */

static void reply_blob(struct net_http_request *request, const char *type, peg_str bytes)
{
    const struct net_http_answer answer = {.status = 200, .content_type = type};
    struct peg__blob *blob = peg__blob_copy(bytes);

    if (blob)
        net_http_reply_blob(request, &answer, blob);
    else
        net_http_reset(request);
    peg__blob_unref(blob);
}

static void echo(struct net_http_request *request, peg_str body, void *user)
{
    const struct net_http_field fields[] = {{PEG_LIT("x-host"), request->host},
                                            {PEG_LIT("x-origin"), request->origin}};
    const struct net_http_answer answer = {
        .status = 201,
        .content_type = "text/echo",
        .fields = fields,
        .n_fields = 2,
    };

    (void)user;
    CHECK(request->is_http2 && request->is_local);
    CHECK_STR(net_http_field(request, "User-Agent"), "test/1");
    grpc_server_counts(w.server, &w.within);
    net_http_reply(request, &answer, body);
}

static void large(struct net_http_request *request, peg_str body, void *user)
{
    static char bytes[LARGE];

    (void)body;
    (void)user;
    memset(bytes, 'x', sizeof(bytes));
    reply_blob(request, "text/plain", peg__strn(bytes, sizeof(bytes)));
}

static void hold(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    (void)user;
    w.held = net_http_ref(request);
    sem_post(&w.asked);
}

static void refuse(struct net_http_request *request, void *user)
{
    (void)user;
    net_http_reply_text(request, 401, "no");
}

static void pause_body(struct net_http_request *request, void *user)
{
    net_http_pause(request);
    hold(request, peg__str(""), user);
}

static void take_part(struct net_http_request *request, peg_str bytes, bool is_end, void *user)
{
    (void)user;
    w.n_body += bytes.len;
    if (is_end)
        net_http_reply_text(request, 200, "%zu", w.n_body);
}

static void send_events(struct net_http_request *request, void *user)
{
    static const char data[1000];

    (void)user;
    while (net_http_is_writable(request)) {
        CHECK_INT(net_http_send_event(request, NULL, NULL, peg__strn(data, sizeof(data)), NULL),
                  PEG_OK);
        w.n_sent += sizeof(data);
    }
}

static void begin_events(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    CHECK_INT(net_http_begin_events(request, NULL), PEG_OK);
    send_events(request, user);
}

static void note_end(struct net_http_request *request, void *user)
{
    (void)user;
    w.n_answered += !request->was_lost;
    w.n_lost += request->was_lost;
    sem_post(&w.ended);
}

static const struct net_http_handler echoing = {.on_request = echo, .on_end = note_end};
static const struct net_http_handler little = {
    .on_request = echo, .on_end = note_end, .max_body = LITTLE};
static const struct net_http_handler sharing = {.on_request = large, .on_end = note_end};
static const struct net_http_handler holding = {.on_request = hold, .on_end = note_end};
static const struct net_http_handler refusing = {
    .on_head = refuse, .on_request = echo, .on_end = note_end};
static const struct net_http_handler pausing = {
    .on_head = pause_body, .on_body = take_part, .on_end = note_end, .max_body = 64 << 20};
static const struct net_http_handler events = {
    .on_request = begin_events, .on_writable = send_events, .on_end = note_end};

static const struct net_http_route routes[] = {
    {"POST", "/echo", &echoing},   {"GET", "/echo", &echoing},  {"POST", "/little", &little},
    {"GET", "/large", &sharing},   {"GET", "/hold", &holding},  {"POST", "/refused", &refusing},
    {"POST", "/paused", &pausing}, {"GET", "/events", &events},
};

/* ---- the server and its client ------------------------------------------------------------- */

static const struct grpc_method methods[] = {{.path = "/test.Test/Say"}};
static const struct grpc_service service = {
    .name = "test.Test", .methods = methods, .n_methods = 1};

static void say(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    grpc_call_reply(call, *(const peg_str *)message);
}

static const struct grpc_handler handlers[] = {{.on_message = say}};

static void start(const struct net_http_options *limits)
{
    struct net_http_options http = limits ? *limits : (struct net_http_options){0};
    struct grpc_server_options options = {0};
    char address[100];
    peg_error error;

    w = (struct world){0};
    sem_init(&w.asked, 0, 0);
    sem_init(&w.ended, 0, 0);
    http.routes = routes;
    http.n_routes = sizeof(routes) / sizeof(routes[0]);
    CHECK_STATUS(net_http_server_new(&http, &w.http, &error), PEG_OK, error);
    options.http = w.http;
    CHECK_STATUS(net_loops_new(1, &w.loops, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_new(w.loops, &options, &w.server, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_add(w.server, &service, handlers, NULL, &error), PEG_OK, error);
    snprintf(w.folder, sizeof(w.folder), "/tmp/peg-http-XXXXXX");
    CHECK(mkdtemp(w.folder) != NULL);
    snprintf(address, sizeof(address), "unix:%s/s", w.folder);
    CHECK_STATUS(grpc_server_listen(w.server, peg__str(address), NULL, &w.address, &error), PEG_OK,
                 error);
    peer_open(&w.peer, &w.address);
}

static void stop(void)
{
    peer_close(&w.peer);
    grpc_server_free(w.server);
    net_loops_free(w.loops);
    CHECK_INT(net_http_server_n_requests(w.http), 0);
    net_http_server_free(w.http);
    sem_destroy(&w.asked);
    sem_destroy(&w.ended);
    rmdir(w.folder);
}

/* With one field more; NULL: without it. */
static void begin(struct peer_call *call, const char *method, const char *path, const char *name,
                  const char *value)
{
    const struct grpc_field fields[] = {
        {PEG_LIT(":method"), peg__str(method)},
        {PEG_LIT(":scheme"), PEG_LIT("http")},
        {PEG_LIT(":path"), peg__str(path)},
        {PEG_LIT(":authority"), PEG_LIT("test:80")},
        {PEG_LIT("user-agent"), PEG_LIT("test/1")},
        {PEG_LIT("origin"), PEG_LIT("http://here")},
        {peg__str(name ? name : ""), peg__str(value ? value : "")},
    };
    const struct grpc_block headers = {.fields = fields, .n = name ? 7 : 6};

    *call = (struct peer_call){.peer = &w.peer, .last = &call->first};
    grpc_stream_init(&call->stream, &peer_events, &call->arena, LARGE, 16 << 10);
    call->stream.reader.is_plain = true;
    call->stream.max_out = 64 << 20;
    CHECK_INT(grpc_stream_open(&call->stream, w.peer.session, &headers, NULL), PEG_OK);
}

static void send_body(struct peer_call *call, peg_str body)
{
    CHECK_INT(grpc_stream_send_plain(&call->stream, body, NULL), PEG_OK);
}

/* Reads to the end; returns the status, and adds up the body. */
static int end(struct peer_call *call, struct peg__buf *body)
{
    int status;

    while (!call->has_ended)
        CHECK(peer_pump(&w.peer));
    status = call->stream.head.http_status;
    for (struct peer_reply *reply = call->first; reply && body; reply = reply->next)
        peg__buf_add(body, reply->bytes, reply->len);
    peer_drop(call);
    return status;
}

static int ask(const char *method, const char *path, struct peg__buf *body)
{
    struct peer_call call;

    begin(&call, method, path, NULL, NULL);
    peer_half_close(&call);
    return end(&call, body);
}

/* The server has read what came before. */
static void sync_server(void)
{
    struct peer_call call;

    peer_call(&call, &w.peer, "/test.Test/Say");
    CHECK_INT(grpc_stream_send(&call.stream, peg__str("x"), NULL), PEG_OK);
    peer_half_close(&call);
    CHECK_STR(peer_next_bytes(&call), "x");
    CHECK_INT(peer_end(&call), GRPC_OK);
}

struct errand {
    struct net_message message;
    void (*fn)(void);
    sem_t done;
};

static void run_errand(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;

    errand->fn();
    sem_post(&errand->done);
}

static void on_loop(void (*fn)(void))
{
    struct errand errand = {.message = {.fn = run_errand}, .fn = fn};

    sem_init(&errand.done, 0, 0);
    net_loop_post(net_loops_at(w.loops, 0), &errand.message);
    sem_wait(&errand.done);
    sem_destroy(&errand.done);
}

/* ---- requests and answers ------------------------------------------------------------------ */

TEST(http2_request_has_its_parts_and_its_body)
{
    struct peg__buf body = PEG__BUF(1 << 20);
    struct peer_call call;

    start(NULL);
    begin(&call, "POST", "/echo?x=1", "content-type", "application/json");
    send_body(&call, peg__str("hello, "));
    sync_server();
    send_body(&call, peg__str("world"));
    peer_half_close(&call);
    while (!call.has_ended)
        CHECK(peer_pump(&w.peer));
    CHECK_STR(grpc_metadata_get(&call.stream.head.metadata, "x-host"), "test:80");
    CHECK_STR(grpc_metadata_get(&call.stream.head.metadata, "x-origin"), "http://here");
    CHECK_STR(call.stream.head.content_type, "text/echo");
    CHECK_INT(end(&call, &body), 201);
    CHECK_STR(peg__buf_view(&body), "hello, world");
    peg__buf_free(&body);
    stop();
    CHECK_INT(w.n_answered, 1);
    /* Who counts calls does not want to see other requests. */
    CHECK_INT(w.within.n_started, 1);
    CHECK_INT(w.within.n_calls, 0);
}

TEST(http2_answers_what_has_no_handler)
{
    struct peg__buf body = PEG__BUF(1 << 20);
    struct peer_call call;

    start(NULL);
    CHECK_INT(ask("GET", "/nope", NULL), 404);
    CHECK_INT(ask("PUT", "/echo", NULL), 405);
    CHECK_INT(ask("GET", "/test.Test/Say", NULL), 404);
    CHECK_INT(ask("HEAD", "/large", &body), 200);
    CHECK_INT(body.len, 0);
    CHECK_INT(ask("HEAD", "/events", &body), 200);
    CHECK_INT(body.len, 0);
    CHECK_INT(ask("POST", "/test.Test/Say", NULL), 415);
    begin(&call, "GET", "/echo", "authorization", "a");
    peer_half_close(&call);
    CHECK_INT(end(&call, NULL), 201);
    begin(&call, "GET", "/echo", "origin", "http://elsewhere");
    peer_half_close(&call);
    CHECK_INT(end(&call, NULL), 400); /* two origins */
    sync_server();
    peg__buf_free(&body);
    stop();
}

TEST(http2_shares_a_large_answer)
{
    struct peg__buf body = PEG__BUF(4 << 20);

    start(NULL);
    CHECK_INT(ask("GET", "/large", &body), 200);
    CHECK_INT(body.len, LARGE);
    peg__buf_free(&body);
    stop();
    CHECK_INT(w.n_answered, 1);
}

TEST(http2_refuses_headers_that_are_too_large)
{
    static char value[20000];
    struct peer_call call;

    start(NULL);
    memset(value, 'x', sizeof(value) - 1);
    begin(&call, "GET", "/echo", "x", value);
    peer_half_close(&call);
    CHECK_INT(end(&call, NULL), 431);
    sync_server();
    stop();
}

/* ---- bodies -------------------------------------------------------------------------------- */

TEST(http2_names_the_limit_of_a_body)
{
    static char bytes[LITTLE + 1];
    struct peer_call call;
    struct peg__buf body = PEG__BUF(1 << 20);

    start(NULL);
    begin(&call, "POST", "/little", NULL, NULL);
    send_body(&call, peg__strn(bytes, LITTLE));
    peer_half_close(&call);
    CHECK_INT(end(&call, NULL), 201);
    begin(&call, "POST", "/little", NULL, NULL);
    send_body(&call, peg__strn(bytes, LITTLE + 1));
    CHECK_INT(end(&call, &body), 413);
    CHECK_STR(peg__buf_view(&body), "the body is larger than this path takes: 100 bytes at most\n");
    /* By its length, before any of it has come. */
    begin(&call, "POST", "/little", "content-length", "101");
    sync_server();
    CHECK(call.stream.head.http_status == 413);
    peer_drop(&call);
    peg__buf_free(&body);
    stop();
}

TEST(http2_answers_408_to_a_body_that_does_not_come)
{
    const struct net_http_options limits = {.body_ms = 50};
    struct peg__buf body = PEG__BUF(1 << 20);
    struct peer_call call;

    start(&limits);
    begin(&call, "POST", "/echo", NULL, NULL);
    send_body(&call, peg__str("h"));
    CHECK_INT(end(&call, &body), 408);
    CHECK_STR(peg__buf_view(&body), "the body came too slowly\n");
    peg__buf_free(&body);
    stop();
}

TEST(http2_reads_the_rest_of_a_short_body_that_was_refused)
{
    struct peer_call call;

    start(NULL);
    begin(&call, "POST", "/refused", "content-length", "5");
    sync_server();
    CHECK_INT(call.stream.head.http_status, 401);
    CHECK(call.has_ended && call.stream.session); /* no RST_STREAM: it may go on */
    send_body(&call, peg__str("hello"));
    peer_half_close(&call);
    sem_trywait(&w.ended);
    sync_server();
    peer_drop(&call);
    stop();
    CHECK_INT(w.n_answered, 1);
}

static void resume_held(void)
{
    net_http_resume(w.held);
    w.held = net_http_unref(w.held);
}

static void check_paused(void)
{
    CHECK_INT(w.n_body, 0);
}

TEST(http2_body_that_is_not_taken_waits_at_the_client)
{
    enum { BYTES = 4 << 20 };
    struct peg__buf body = PEG__BUF(1 << 20);
    struct grpc_server_counts counts;
    struct peer_call call;
    char *bytes = peg__alloc_zero(1, BYTES);

    start(NULL);
    begin(&call, "POST", "/paused", NULL, NULL);
    send_body(&call, peg__strn(bytes, BYTES));
    peer_half_close(&call);
    for (int i = 0; i < 20; i++)
        sync_server();
    sem_wait(&w.asked);
    on_loop(check_paused);
    grpc_server_counts(w.server, &counts);
    CHECK(counts.n_held_bytes < 2 * PEG_LIMIT_GRPC_STREAM_WINDOW + (64 << 10));
    on_loop(resume_held);
    CHECK_INT(end(&call, &body), 200);
    CHECK_STR(peg__buf_view(&body), "4194304\n");
    peg__free(bytes);
    peg__buf_free(&body);
    stop();
}

/* ---- streams ------------------------------------------------------------------------------- */

TEST(http2_stream_that_is_not_read_takes_no_memory_and_no_neighbour)
{
    struct grpc_server_counts counts;
    struct peer_call call;
    size_t n_sent;

    start(NULL);
    begin(&call, "GET", "/events", NULL, NULL);
    peer_half_close(&call);
    grpc_stream_pause(&call.stream);
    for (int i = 0; i < 20; i++)
        sync_server(); /* a neighbour on the same connection */
    n_sent = w.n_sent;
    CHECK(n_sent < 400000);
    grpc_server_counts(w.server, &counts);
    CHECK(counts.n_held_bytes < 256 << 10);
    grpc_stream_resume(&call.stream);
    for (int i = 0; i < 20; i++)
        sync_server();
    CHECK(w.n_sent > n_sent);
    grpc_stream_reset(&call.stream, GRPC_H2_CANCEL);
    sync_server();
    sem_wait(&w.ended);
    peer_drop(&call);
    stop();
    CHECK_INT(w.n_lost, 1);
}

static void answer_held(void)
{
    net_http_reply_text(w.held, 200, "held");
    w.held = net_http_unref(w.held);
}

static void answer_lost(void)
{
    CHECK(w.held->was_lost);
    CHECK_STR(w.held->path, "/hold");
    answer_held();
}

TEST(http2_answers_later)
{
    struct peg__buf body = PEG__BUF(1 << 20);
    struct peer_call call;

    start(NULL);
    begin(&call, "GET", "/hold", NULL, NULL);
    peer_half_close(&call);
    sync_server();
    sem_wait(&w.asked);
    on_loop(answer_held);
    CHECK_INT(end(&call, &body), 200);
    CHECK_STR(peg__buf_view(&body), "held\n");
    peg__buf_free(&body);
    stop();
}

TEST(http2_reports_a_client_that_goes_while_its_handler_works)
{
    for (int drops = 0; drops < 2; drops++) {
        struct peer_call call;

        start(NULL);
        begin(&call, "GET", "/hold", NULL, NULL);
        peer_half_close(&call);
        sync_server();
        sem_wait(&w.asked);
        if (drops) {
            shutdown(w.peer.fd, SHUT_RDWR);
        } else {
            grpc_stream_reset(&call.stream, GRPC_H2_CANCEL);
            sync_server();
        }
        sem_wait(&w.ended);
        on_loop(answer_lost);
        peer_drop(&call);
        stop();
        CHECK_INT(w.n_lost, 1);
    }
}

/* A reference may outlive the server. */
TEST(http2_request_that_is_held_ends_with_its_server)
{
    struct peer_call call;

    start(NULL);
    begin(&call, "GET", "/hold", NULL, NULL);
    peer_half_close(&call);
    sync_server();
    sem_wait(&w.asked);
    w.server = grpc_server_free(w.server);
    CHECK_INT(w.n_lost, 1);
    on_loop(answer_lost);
    peer_drop(&call);
    stop();
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Each allocation of the server's fails once: it answers, or resets the stream or the connection,
 * and serves the next. */
TEST(http2_survives_any_allocation_failure)
{
    bool was_answered = false;

    start(NULL);
    for (unsigned nth = 1; nth < 100 && !was_answered; nth++) {
        struct peer_call call;

        sync_server();
        peer_fail_at(net_loops_at(w.loops, 0), nth);
        begin(&call, "POST", "/echo", NULL, NULL);
        send_body(&call, peg__str("hello"));
        peer_half_close(&call);
        while (!call.has_ended && peer_pump(&w.peer))
            ;
        was_answered = call.stream.head.http_status == 201 && nth > 20;
        peer_fail_at(net_loops_at(w.loops, 0), 0);
        peer_drop(&call);
        peer_close(&w.peer);
        peer_open(&w.peer, &w.address);
    }
    CHECK(was_answered);
    sync_server();
    stop();
}
