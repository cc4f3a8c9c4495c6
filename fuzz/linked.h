/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_FUZZ_LINKED_H
#define PEG_FUZZ_LINKED_H

/*
 * Services of a real gRPC server, and one client, without a socket between them: what one session
 * has to say is fed to the other. Its calls are on no loop, as those of a simulated desk are.
 */

#include <sys/socket.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "grpc/message.h"
#include "grpc/server/internal.h"
#include "net/stream/stream.h"

enum { LINKED_ASKED = 30 };

/* What the client asked for. */
struct linked_asked {
    struct grpc_stream stream; /* first */
    struct peg__arena arena;
    const struct grpc_method *method;
    unsigned n_messages;
    bool said_garbage; /* which is an internal error, as gRPC has it */
    bool is_over;
};

static struct {
    struct grpc_server server;
    struct grpc__server_loop server_loop;
    struct grpc__conn conn;
    struct grpc_session *client;
    struct linked_asked asked[LINKED_ASKED];
    unsigned n_asked;
    bool is_closing;
    /* A message of the server, unpacked. */
    void (*on_message)(const struct linked_asked *asked, const ProtobufCMessage *message);
} linked;

/* ---- the client ------------------------------------------------------------------------------ */

static void linked_on_headers(struct grpc_stream *stream)
{
    REQUIRE(stream->head.http_status == 200, "HTTP status %d", stream->head.http_status);
}

static void linked_on_message(struct grpc_stream *stream, peg_str bytes)
{
    struct linked_asked *asked = (struct linked_asked *)stream;
    struct peg__arena arena = {0};
    const ProtobufCMessage *message;

    asked->n_messages++;
    REQUIRE(asked->method->server_streams || asked->n_messages == 1, "one message answers");
    REQUIRE(grpc_message_unpack(asked->method->output, &arena, bytes, &message, NULL) == PEG_OK,
            "an answer of %s can be read", asked->method->path);
    linked.on_message(asked, message);
    peg__arena_free(&arena);
}

static void linked_on_remote_end(struct grpc_stream *stream)
{
    const struct linked_asked *asked = (const struct linked_asked *)stream;
    const struct grpc_head *head = &stream->head;

    REQUIRE(head->has_status && head->code <= GRPC_UNAUTHENTICATED, "a call ends with a status");
    REQUIRE(peg__utf8_is_valid(head->message), "whose words can be shown");
    REQUIRE(head->code == GRPC_OK || head->message.len, "and say why");
    REQUIRE(asked->said_garbage || head->code != GRPC_INTERNAL, "%.*s", PEG_ARG(head->message));
    REQUIRE(asked->method->server_streams || asked->n_messages == (head->code == GRPC_OK),
            "an answer, or an error");
}

static void linked_on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    struct linked_asked *asked = (struct linked_asked *)stream;

    REQUIRE(h2_error == 0 || linked.is_closing, "%s is reset with %u", asked->method->path,
            h2_error);
    asked->is_over = true;
}

static void linked_on_writable(struct grpc_stream *stream)
{
    (void)stream;
}

static void linked_on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    (void)stream;
    REQUIRE(false, "%.*s", PEG_ARG(status->message));
}

static const struct grpc_stream_events linked_stream_events = {
    .on_headers = linked_on_headers,
    .on_message = linked_on_message,
    .on_remote_end = linked_on_remote_end,
    .on_writable = linked_on_writable,
    .on_broken = linked_on_broken,
    .on_closed = linked_on_closed,
};

/* ---- both sides ------------------------------------------------------------------------------ */

static struct grpc_stream *linked_on_stream(void *user)
{
    struct grpc_stream *stream;

    if (user == &linked.client)
        return NULL;
    stream = grpc__call_begin(&linked.conn);
    REQUIRE(stream, "memory");
    ((struct grpc_call *)stream)->loop = NULL;
    return stream;
}

static void linked_on_event(void *user)
{
    (void)user;
}

static void linked_on_goaway(void *user, int32_t last_id, uint32_t h2_error)
{
    (void)user;
    REQUIRE(false, "the server goes after stream %d because of %u", last_id, h2_error);
}

static struct grpc_session *linked_session(bool is_client)
{
    static const struct grpc_session_events events = {
        .on_stream = linked_on_stream,
        .on_output = linked_on_event,
        .on_ping = linked_on_event,
        .on_pong = linked_on_event,
        .on_goaway = linked_on_goaway,
        .on_settings = linked_on_event,
    };
    const struct grpc_session_options options = {
        .is_client = is_client,
        .max_streams = LINKED_ASKED,
        .max_header_bytes = PEG_LIMIT_GRPC_HEADER_BYTES,
        .stream_window = 1 << 20,
        .session_window = 16 << 20,
        .max_held = 64 << 20,
        .reset_burst = 100000,
        .reset_per_s = 100000,
    };
    struct grpc_session *session = NULL;

    REQUIRE(grpc_session_new(&options, &events, is_client ? (void *)&linked.client : &linked.conn,
                             &session, NULL) == PEG_OK,
            "memory");
    return session;
}

static bool linked_carry(struct grpc_session *from, struct grpc_session *to)
{
    static uint8_t bytes[64 << 10];
    size_t n;
    bool carried = false;

    while ((n = grpc_session_pull(from, bytes, sizeof(bytes))) > 0) {
        REQUIRE(grpc_session_feed(to, bytes, n, NULL) == PEG_OK, "what is said can be read");
        carried = true;
    }
    return carried;
}

/* Until nobody has anything to say. */
static void linked_talk(void)
{
    while (linked_carry(linked.client, linked.conn.session) ||
           linked_carry(linked.conn.session, linked.client))
        ;
}

/* Asks for a method, whose request may be said now; NULL: as much was asked as may be. */
static struct linked_asked *linked_ask(const struct grpc_method *method)
{
    const struct grpc_field fields[] = {
        {PEG_LIT(":method"), PEG_LIT("POST")},
        {PEG_LIT(":scheme"), PEG_LIT("http")},
        {PEG_LIT(":path"), peg__str(method->path)},
        {PEG_LIT(":authority"), PEG_LIT("gateway")},
        {PEG_LIT("te"), PEG_LIT("trailers")},
        {PEG_LIT("content-type"), PEG_LIT("application/grpc")},
    };
    const struct grpc_block block = {.fields = fields, .n = 6};
    struct linked_asked *asked = &linked.asked[linked.n_asked];

    if (linked.n_asked == LINKED_ASKED)
        return NULL;
    linked.n_asked++;
    *asked = (struct linked_asked){.method = method};
    grpc_stream_init(&asked->stream, &linked_stream_events, &asked->arena,
                     PEG_LIMIT_GRPC_MESSAGE_BYTES, PEG_LIMIT_GRPC_HEADER_BYTES);
    REQUIRE(grpc_stream_open(&asked->stream, linked.client, &block, NULL) == PEG_OK, "a stream");
    return asked;
}

/* The client wants it no more: it cancels, or its connection breaks. */
static void linked_drop(struct linked_asked *asked, bool breaks)
{
    if (asked->is_over)
        return;
    grpc_stream_drop(&asked->stream, breaks ? 2 : 8); /* INTERNAL_ERROR, CANCEL */
    asked->is_over = true;
}

/* ---- its life -------------------------------------------------------------------------------- */

/* Once; then services are added to linked.server. */
static void linked_init(void)
{
    static const struct net_stream_events silent = {.on_bytes = NULL};
    int fds[2];

    linked.server.options = (struct grpc_server_options){
        .max_message_bytes = PEG_LIMIT_GRPC_MESSAGE_BYTES,
        .max_header_bytes = PEG_LIMIT_GRPC_HEADER_BYTES,
        .max_send_bytes = PEG_LIMIT_GRPC_SEND_BYTES,
    };
    linked.server.routes = (struct peg__map)PEG__MAP(256);
    linked.server_loop.server = &linked.server;
    REQUIRE(net_loop_new(&linked.server_loop.loop, NULL) == PEG_OK, "a loop");
    linked.conn.server_loop = &linked.server_loop;
    linked.conn.is_ending = true; /* nothing of it is timed */
    /* Calls ask who their peer is. */
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "sockets");
    REQUIRE(net_stream_take(linked.server_loop.loop, fds[0], &(struct net_stream_options){0},
                            &silent, NULL, &linked.conn.stream, NULL) == PEG_OK,
            "a stream");
}

static void linked_open(void)
{
    linked.client = linked_session(true);
    linked.conn.session = linked_session(false);
    linked.n_asked = 0;
    linked.is_closing = false;
    linked_talk();
}

/* What still runs breaks off. */
static void linked_close(void)
{
    linked.is_closing = true;
    linked.conn.session = grpc_session_free(linked.conn.session);
    REQUIRE(!linked.conn.calls, "every call has ended");
    linked.client = grpc_session_free(linked.client);
    for (unsigned i = 0; i < linked.n_asked; i++) {
        REQUIRE(linked.asked[i].is_over, "every stream has ended");
        grpc_stream_free(&linked.asked[i].stream);
        peg__arena_free(&linked.asked[i].arena);
    }
    grpc__server_loop_free(&linked.server_loop);
    linked.server_loop.n_spare = 0;
}

#endif
