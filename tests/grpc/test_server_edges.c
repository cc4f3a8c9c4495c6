/* SPDX-License-Identifier: Apache-2.0 */

/* What a server does at its edges: answers that are too large to be sent, references that outlive
 * it, memory that it gives back, and memory that it does not get. The client waits, in the thread
 * of the test; what only the server's thread may touch is looked at there. */

#include "t.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/session.h"
#include "grpc/peer.h"
#include "grpc/server/internal.h"
#include "pegboard/test/echo.pb-c.h"
#include "json/json.h"

static const struct grpc_method methods[] = {
    {.name = "Say", .path = "/edge.Edge/Say"},
    {.name = "Chat",
     .path = "/edge.Edge/Chat",
     .input = &pegboard__test__echo_request__descriptor,
     .client_streams = true,
     .server_streams = true},
};
enum { N_METHODS = sizeof(methods) / sizeof(methods[0]), LARGE = 1 << 20 };
static const struct grpc_service service = {"edge.Edge", methods, N_METHODS, NULL};

struct edge {
    struct net_loops *loops;
    struct grpc_server *server;
    struct net_address address;
    struct peer peer;
    struct grpc_call *kept;
    unsigned n_ended;
    enum grpc_code ended_as;
    bool is_as_expected;
    char folder[64];
    sem_t started;
    sem_t ended;
};

static struct edge edge;

/* ---- handlers: their text says what they shall do ---------------------------------------------
 */

static void fail_with_details(struct grpc_call *call, size_t len)
{
    char *bytes = peg__arena_alloc(grpc_call_arena(call), len);
    const struct grpc_status status = {GRPC_ABORTED, peg__str("see there"), {bytes, len}};

    if (bytes)
        memset(bytes, 'd', len);
    grpc_call_finish(call, &status);
}

/* In percent-encoding each of these bytes is three. */
static void fail_with_many_words(struct grpc_call *call)
{
    static char words[PEG_LIMIT_GRPC_STATUS_BYTES];
    const struct grpc_status status = {
        GRPC_ABORTED, {words, sizeof(words)}, PEG_LIT("a detail that is small")};

    for (size_t i = 0; i < sizeof(words); i += 2)
        memcpy(words + i, "\xC3\xA4", 2);
    grpc_call_finish(call, &status);
}

/* As much as a program may add, in headers and in trailers. */
static void fail_with_metadata(struct grpc_call *call)
{
    static char bytes[1000];

    while (!grpc_call_add_header(call, peg__str("x-h-bin"), peg__strn(bytes, sizeof(bytes)), NULL))
        ;
    while (!grpc_call_add_trailer(call, peg__str("x-t-bin"), peg__strn(bytes, sizeof(bytes)), NULL))
        ;
    fail_with_details(call, PEG_LIMIT_GRPC_METADATA_BYTES);
}

static void send_large(struct grpc_call *call)
{
    char *bytes = peg__alloc_zero(1, LARGE);

    grpc_call_reply(call, peg__strn(bytes, bytes ? LARGE : 0));
    peg__free(bytes);
}

static void say(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;

    (void)user;
    if (peg__str_is(text, "words"))
        fail_with_many_words(call);
    else if (peg__str_is(text, "details"))
        fail_with_details(call, 300000);
    else if (peg__str_is(text, "metadata"))
        fail_with_metadata(call);
    else if (peg__str_is(text, "fail"))
        grpc_call_fail(call, GRPC_NOT_FOUND, "there is no %s", "cat");
    else if (peg__str_is(text, "large"))
        send_large(call);
    else if (peg__str_is(text, "keep"))
        edge.kept = grpc_call_ref(call);
    else if (!peg__str_is(text, "wait"))
        grpc_call_reply(call, text);
    sem_post(&edge.started);
}

static void chat(struct grpc_call *call, const void *message, void *user)
{
    (void)message;
    (void)user;
    edge.kept = call;
    grpc_call_send(call, peg__str("ok"), NULL);
}

static void chat_ends(struct grpc_call *call, void *user)
{
    (void)user;
    grpc_call_finish(call, &GRPC_STATUS(GRPC_OK, ""));
}

static void on_end(struct grpc_call *call, void *user)
{
    (void)user;
    edge.n_ended++;
    edge.ended_as = grpc_call_ended_as(call)->code;
    sem_post(&edge.ended);
}

static const struct grpc_handler handlers[N_METHODS] = {
    {.on_message = say, .on_end = on_end},
    {.on_message = chat, .on_half_close = chat_ends, .on_end = on_end},
};

/* ---- the server and its client ----------------------------------------------------------------
 */

/* A unix socket takes less than a window of HTTP/2. */
static void start(const struct grpc_server_options *options)
{
    char address[100];
    peg_error error;

    edge = (struct edge){.n_ended = 0};
    sem_init(&edge.started, 0, 0);
    sem_init(&edge.ended, 0, 0);
    CHECK_STATUS(net_loops_new(1, &edge.loops, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_new(edge.loops, options, &edge.server, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_add(edge.server, &service, handlers, NULL, &error), PEG_OK, error);
    snprintf(edge.folder, sizeof(edge.folder), "/tmp/peg-edges-XXXXXX");
    CHECK(mkdtemp(edge.folder) != NULL);
    snprintf(address, sizeof(address), "unix:%s/s", edge.folder);
    CHECK_STATUS(grpc_server_listen(edge.server, peg__str(address), NULL, &edge.address, &error),
                 PEG_OK, error);
    peer_open(&edge.peer, &edge.address);
}

static void stop(void)
{
    peer_close(&edge.peer);
    grpc_server_free(edge.server);
    net_loops_free(edge.loops);
    rmdir(edge.folder);
}

/* With one field more, or in the place of another; no message yet. */
static void begin(struct peer_call *call, const char *path, struct grpc_field field)
{
    struct grpc_field fields[] = {
        {PEG_LIT(":method"), PEG_LIT("POST")},
        {PEG_LIT(":scheme"), PEG_LIT("http")},
        {PEG_LIT(":path"), {path, strlen(path)}},
        {PEG_LIT(":authority"), PEG_LIT("edge")},
        {PEG_LIT("te"), PEG_LIT("trailers")},
        {PEG_LIT("content-type"), PEG_LIT("application/grpc")},
        field,
    };
    size_t n = sizeof(fields) / sizeof(fields[0]);
    struct grpc_block headers = {.fields = fields, .n = n};

    for (size_t i = 0; i < n - 1; i++) {
        if (peg__str_eq(fields[i].name, field.name)) {
            fields[i] = field;
            headers.n = n - 1;
        }
    }
    *call = (struct peer_call){.peer = &edge.peer, .last = &call->first};
    grpc_stream_init(&call->stream, &peer_events, &call->arena, LARGE, 16 << 10);
    CHECK_INT(grpc_stream_open(&call->stream, edge.peer.session, &headers, NULL), PEG_OK);
}

static void say_and_close(struct peer_call *call, const char *text)
{
    CHECK_INT(grpc_stream_send(&call->stream, peg__str(text), NULL), PEG_OK);
    peer_half_close(call);
}

static void ask(struct peer_call *call, const char *text)
{
    peer_call(call, &edge.peer, "/edge.Edge/Say");
    say_and_close(call, text);
}

/* How a call with one answer, or none, ended. */
static enum grpc_code answer(struct peer_call *call)
{
    peer_next_bytes(call);
    return peer_end(call);
}

static enum grpc_code call_and_end(const char *text)
{
    struct peer_call call;

    ask(&call, text);
    return answer(&call);
}

struct look {
    struct net_message message;
    void (*fn)(void);
    sem_t done;
};

static void look_here(struct net_message *message)
{
    struct look *look = (struct look *)message;

    look->fn();
    sem_post(&look->done);
}

/* Calls `fn` on the server's thread. */
static void look(void (*fn)(void))
{
    struct look here = {.message = {.fn = look_here}, .fn = fn};

    sem_init(&here.done, 0, 0);
    net_loop_post(net_loops_at(edge.loops, 0), &here.message);
    sem_wait(&here.done);
    sem_destroy(&here.done);
}

static uint64_t n_connections(void)
{
    struct grpc_server_counts counts;

    grpc_server_counts(edge.server, &counts);
    return counts.n_connections;
}

/* ---- what is refused
 * -----------------------------------------------------------------------------
 */

static int http_status_of(struct grpc_field field)
{
    struct peer_call call;
    int status;

    begin(&call, "/edge.Edge/Say", field);
    peer_half_close(&call);
    while (!call.has_ended)
        CHECK(peer_pump(&edge.peer));
    status = call.stream.head.http_status;
    CHECK(!call.stream.head.has_status);
    peer_drop(&call);
    return status;
}

TEST(what_is_no_grpc_is_answered_by_http)
{
    start(NULL);
    CHECK_INT(http_status_of((struct grpc_field){PEG_LIT("content-type"), PEG_LIT("text/html")}),
              415);
    CHECK_INT(http_status_of((struct grpc_field){PEG_LIT(":method"), PEG_LIT("GET")}), 405);
    CHECK_INT(call_and_end("x"), GRPC_OK);
    stop();
}

static enum grpc_code code_with(const char *name, const char *value)
{
    struct peer_call call;

    begin(&call, "/edge.Edge/Say", (struct grpc_field){peg__str(name), peg__str(value)});
    say_and_close(&call, "x");
    return answer(&call);
}

TEST(a_timeout_that_is_none_is_refused)
{
    start(NULL);
    CHECK_INT(code_with("grpc-timeout", "5"), GRPC_INVALID_ARGUMENT);
    CHECK_INT(code_with("grpc-timeout", "-1S"), GRPC_INVALID_ARGUMENT);
    CHECK_INT(code_with("grpc-timeout", "123456789S"), GRPC_INVALID_ARGUMENT);
    CHECK_INT(edge.n_ended, 0); /* no handler has heard of them */
    stop();
}

TEST(the_longest_timeout_is_long)
{
    start(NULL);
    CHECK_INT(code_with("grpc-timeout", "99999999H"), GRPC_OK);
    stop();
}

TEST(a_timeout_of_nothing_has_passed)
{
    struct peer_call call;

    start(NULL);
    begin(&call, "/edge.Edge/Say", (struct grpc_field){PEG_LIT("grpc-timeout"), PEG_LIT("0n")});
    say_and_close(&call, "wait");
    CHECK_INT(answer(&call), GRPC_DEADLINE_EXCEEDED);
    sem_wait(&edge.ended);
    CHECK_INT(edge.ended_as, GRPC_DEADLINE_EXCEEDED);
    stop();
}

/* The client has a window of 64 KiB, and takes nothing of the rest. */
TEST(a_deadline_ends_a_call_whose_answer_waits)
{
    struct peer_call call;

    start(NULL);
    begin(&call, "/edge.Edge/Say", (struct grpc_field){PEG_LIT("grpc-timeout"), PEG_LIT("50m")});
    grpc_stream_pause(&call.stream);
    say_and_close(&call, "large");
    peer_flush(&edge.peer);
    sem_wait(&edge.ended);

    CHECK_INT(edge.ended_as, GRPC_DEADLINE_EXCEEDED);
    while (!call.has_ended)
        CHECK(peer_pump(&edge.peer));
    CHECK_INT(call.code, GRPC_CANCELLED); /* a client knows its own deadline */
    peer_drop(&call);
    stop();
}

TEST(an_encoding_that_is_not_known_is_refused_and_those_that_are_are_told)
{
    struct peer_call call;

    start(NULL);
    begin(&call, "/edge.Edge/Say",
          (struct grpc_field){PEG_LIT("grpc-encoding"), PEG_LIT("snappy")});
    say_and_close(&call, "x");
    while (!call.has_ended)
        CHECK(peer_pump(&edge.peer));
    CHECK_INT(call.code, GRPC_UNIMPLEMENTED);
    CHECK(call.stream.head.accepts_gzip);
    peer_drop(&call);
    stop();
}

TEST(a_second_message_of_a_unary_call_is_refused)
{
    struct peer_call call;

    start(NULL);
    peer_call(&call, &edge.peer, "/edge.Edge/Say");
    CHECK_INT(grpc_stream_send(&call.stream, peg__str("one"), NULL), PEG_OK);
    say_and_close(&call, "two");
    CHECK_INT(answer(&call), GRPC_INTERNAL);
    CHECK_INT(call_and_end("x"), GRPC_OK);
    stop();
}

TEST(a_message_that_is_none_is_refused)
{
    struct peer_call call;

    start(NULL);
    peer_call(&call, &edge.peer, "/edge.Edge/Chat");
    CHECK_INT(grpc_stream_send(&call.stream, peg__str("\x0a\x7f"), NULL), PEG_OK);
    CHECK_INT(answer(&call), GRPC_INTERNAL);
    stop();
}

TEST(connections_that_break_the_protocol_are_counted)
{
    static const char data_for_nobody[] = "\0\0\x01\0\0\0\0\0\0x";
    struct grpc_server_counts counts;

    start(NULL);
    CHECK_INT(call_and_end("x"), GRPC_OK);
    CHECK_INT(send(edge.peer.fd, data_for_nobody, sizeof(data_for_nobody) - 1, 0),
              sizeof(data_for_nobody) - 1);
    while (peer_pump(&edge.peer))
        ;
    while (n_connections() > 0)
        sched_yield();
    grpc_server_counts(edge.server, &counts);
    CHECK_INT(counts.n_refused_connections, 1);
    CHECK_INT(counts.n_calls, 0);
    stop();
}

/* ---- hooks
 * --------------------------------------------------------------------------------------
 */

static void on_hook(struct grpc_end_hook *hook)
{
    edge.is_as_expected = hook->call == NULL;
}

static void hang_on_kept(void)
{
    static struct grpc_end_hook hook = {.fn = on_hook};

    grpc_call_add_hook(edge.kept, &hook);
    grpc_call_remove_hook(&hook);
    edge.kept = grpc_call_unref(edge.kept);
}

TEST(a_hook_on_a_call_that_has_ended_is_told_at_once)
{
    struct peer_call call;

    start(NULL);
    ask(&call, "keep");
    peer_flush(&edge.peer);
    sem_wait(&edge.started);
    peer_drop(&call);
    peer_flush(&edge.peer);
    sem_wait(&edge.ended);
    look(hang_on_kept);
    CHECK(edge.is_as_expected);
    stop();
}

/* ---- answers that are too large
 * ---------------------------------------------------------------- */

/* The client does not take so much: how it ended is looked at where it was said. */
static enum grpc_code ended_at_server(const char *text)
{
    struct peer_call call;

    ask(&call, text);
    peer_flush(&edge.peer);
    sem_wait(&edge.ended);
    peer_drop(&call);
    return edge.ended_as;
}

TEST(details_that_are_too_large_are_left_out)
{
    start(NULL);
    CHECK_INT(call_and_end("details"), GRPC_ABORTED);
    stop();
}

/* Clients take so many bytes of headers, and refuse the answer if there are more. */
TEST(words_and_details_fit_into_the_headers_that_the_client_takes)
{
    static const uint32_t maxima[] = {1000, 3000, 16 << 10};

    for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
        const struct grpc_head *head;
        struct peer_call call;

        peer_max_header_bytes = maxima[i];
        start(NULL);
        ask(&call, "words");
        while (!call.has_ended)
            CHECK(peer_pump(&edge.peer));
        head = &call.stream.head;
        CHECK_INT(head->code, GRPC_ABORTED);
        CHECK(head->n_bytes <= maxima[i]);
        CHECK(head->n_bytes <= PEG_LIMIT_GRPC_STATUS_WIRE_BYTES + 400);
        CHECK(head->n_bytes > (maxima[i] < 6000 ? maxima[i] - 250 : 6000));
        CHECK_STR(head->details, "a detail that is small");
        CHECK(peg__utf8_is_valid(head->message));
        peer_drop(&call);
        stop();
    }
}

TEST(a_call_with_all_the_metadata_there_may_be_ends_as_it_was_told)
{
    start(NULL);
    CHECK_INT(ended_at_server("metadata"), GRPC_ABORTED);
    stop();
}

/* ---- clients that go ---------------------------------------------------------------------------
 */

TEST(a_call_that_is_reset_was_canceled)
{
    struct peer_call call;

    start(NULL);
    ask(&call, "wait");
    peer_flush(&edge.peer);
    sem_wait(&edge.started);
    peer_drop(&call);
    peer_flush(&edge.peer);
    sem_wait(&edge.ended);

    CHECK_INT(edge.ended_as, GRPC_CANCELLED);
    stop();
}

TEST(a_call_whose_connection_broke_was_not_canceled)
{
    struct peer_call call;

    start(NULL);
    ask(&call, "wait");
    peer_flush(&edge.peer);
    sem_wait(&edge.started);
    CHECK_INT(shutdown(edge.peer.fd, SHUT_RDWR), 0);
    sem_wait(&edge.ended);

    CHECK_INT(edge.n_ended, 1);
    CHECK_INT(edge.ended_as, GRPC_UNAVAILABLE);
    peer_drop(&call);
    stop();
}

/* ---- the end of the server ---------------------------------------------------------------------
 */

TEST(a_server_that_is_freed_ends_its_calls_as_unavailable)
{
    struct peer_call call;

    start(NULL);
    ask(&call, "wait");
    peer_flush(&edge.peer);
    sem_wait(&edge.started);
    edge.server = grpc_server_free(edge.server);

    CHECK_INT(edge.n_ended, 1);
    CHECK_INT(edge.ended_as, GRPC_UNAVAILABLE);
    CHECK_INT(answer(&call), GRPC_UNAVAILABLE);
    stop();
}

static void look_at_kept(void)
{
    edge.is_as_expected = grpc_call_has_ended(edge.kept) &&
                          strcmp(grpc_call_method(edge.kept)->name, "Say") == 0 &&
                          grpc_call_loop(edge.kept) == net_loops_at(edge.loops, 0) &&
                          grpc_call_send(edge.kept, peg__str("late"), NULL) == PEG_ECANCELED;
    edge.kept = grpc_call_unref(edge.kept);
}

TEST(a_reference_to_a_call_outlives_its_server)
{
    struct peer_call call;

    start(NULL);
    ask(&call, "keep");
    peer_flush(&edge.peer);
    sem_wait(&edge.started);
    edge.server = grpc_server_free(edge.server);
    look(look_at_kept);
    CHECK(edge.is_as_expected);

    CHECK_INT(answer(&call), GRPC_UNAVAILABLE);
    stop();
}

/* ---- times
 * ------------------------------------------------------------------------------------- */

TEST(a_connection_is_idle_as_soon_as_its_last_call_has_ended)
{
    const struct grpc_server_options options = {.max_idle_ms = 30};
    const struct timespec nap = {.tv_nsec = 100000000};
    struct peer_call call;

    start(&options);
    ask(&call, "wait");
    peer_flush(&edge.peer);
    sem_wait(&edge.started);
    nanosleep(&nap, NULL); /* longer than a connection may be idle */
    peer_drop(&call);
    while (peer_pump(&edge.peer)) /* or it fails, in the end */
        ;
    while (n_connections() > 0) /* the client hears of it first */
        sched_yield();
    stop();
}

/* ---- memory that is given back
 * ------------------------------------------------------------------- */

static void look_at_message(void)
{
    edge.is_as_expected = edge.kept->message_arena.held < LARGE / 8;
}

TEST(a_message_of_a_client_that_streams_is_given_back_when_it_was_heard)
{
    Pegboard__Test__EchoRequest request = PEGBOARD__TEST__ECHO_REQUEST__INIT;
    uint8_t *bytes = peg__alloc_zero(1, LARGE);
    struct peer_call call;

    start(NULL);
    request.payload = (ProtobufCBinaryData){.len = LARGE, .data = bytes};
    peer_call(&call, &edge.peer, "/edge.Edge/Chat");
    peer_send(&call, &request.base);
    CHECK_STR(peer_next_bytes(&call), "ok");
    look(look_at_message);
    CHECK(edge.is_as_expected);

    peer_half_close(&call);
    CHECK_INT(peer_end(&call), GRPC_OK);
    peg__free(bytes);
    stop();
}

static void look_at_spare(void)
{
    edge.is_as_expected = true;
    for (const struct grpc_call *call = edge.server->server_loops[0].spare; call; call = call->next)
        edge.is_as_expected &= call->stream.out.capacity < LARGE / 8;
}

TEST(the_memory_of_a_large_answer_is_not_kept_for_the_next_call)
{
    start(NULL);
    CHECK_INT(call_and_end("large"), GRPC_OK);
    look(look_at_spare);
    CHECK(edge.is_as_expected);
    stop();
}

/* ---- memory that is not there
 * -------------------------------------------------------------------- */

enum { MAX_ALLOCATIONS = 2000, MANY = 16 };

/* Many at once, whose answers nobody takes before all are asked. True if all were answered. */
static bool call_many(const char *text)
{
    struct peer_call calls[MANY];
    bool are_all_ok = true;

    for (int i = 0; i < MANY; i++)
        ask(&calls[i], text);
    peer_flush(&edge.peer);
    for (int i = 0; i < MANY; i++)
        are_all_ok &= answer(&calls[i]) == GRPC_OK;
    return are_all_ok;
}

/* The n-th allocation of the server fails, and all that follow, until the calls have ended. Then
 * it serves again. False if there were fewer. */
static bool run_short_of_memory(const char *text, unsigned nth)
{
    struct net_loop *loop = net_loops_at(edge.loops, 0);
    bool are_all_ok;

    peer_fail_at(loop, nth);
    peer_open(&edge.peer, &edge.address);
    are_all_ok = call_many(text);
    peer_close(&edge.peer);
    peer_fail_at(loop, 0);

    peer_open(&edge.peer, &edge.address);
    CHECK_INT(call_and_end("x"), GRPC_OK);
    peer_close(&edge.peer);
    return !are_all_ok;
}

static void run_short_again_and_again(const char *text)
{
    unsigned nth = 1;

    start(NULL);
    peer_close(&edge.peer);
    while (run_short_of_memory(text, nth)) {
        CHECK(nth < MAX_ALLOCATIONS);
        nth = t_next_allocation(nth);
    }
    printf("# %s: %u allocations\n", text, nth - 1);
    peer_open(&edge.peer, &edge.address);
    stop();
}

TEST(a_server_without_memory_for_small_answers_serves_again_when_there_is_some)
{
    run_short_again_and_again("x");
}

/* They do not fit into the socket: what waits for it needs memory too. */
TEST(a_server_without_memory_for_large_answers_serves_again_when_there_is_some)
{
    run_short_again_and_again("large");
}

TEST(a_server_without_memory_for_a_status_serves_again_when_there_is_some)
{
    start(NULL);
    peer_close(&edge.peer);
    for (unsigned nth = 1; nth < 60; nth++)
        run_short_of_memory("fail", nth);
    peer_open(&edge.peer, &edge.address);
    stop();
}
