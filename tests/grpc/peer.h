/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_PEER_H
#define PEG_TESTS_GRPC_PEER_H

/*
 * A client that waits: one connection and its session over a socket, all in the thread of the
 * test. For tests of services; include it behind t.h.
 *
 *   peer_open(&peer, &address);
 *   peer_call(&call, &peer, "/grpc.health.v1.Health/Check");
 *   peer_send(&call, &request.base);
 *   peer_half_close(&call);
 *   reply = peer_next(&call, &grpc__health__v1__health_check_response__descriptor);
 *   CHECK_INT(peer_end(&call), GRPC_OK);
 */

#include <poll.h>
#include <protobuf-c/protobuf-c.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/text/str.h"
#include "grpc/http2/http2.h"
#include "grpc/message.h"
#include "net/address.h"

enum { PEER_WAIT_MS = 20000, PEER_BYTES = 64 << 10 };

struct peer {
    int fd;
    struct grpc_session *session;
};

struct peer_reply {
    struct peer_reply *next;
    size_t len;
    char bytes[];
};

struct peer_call {
    struct grpc_stream stream; /* first */
    struct peg__arena arena;   /* of heads, and of replies that were handed out */
    struct peer *peer;
    struct peer_reply *first;
    struct peer_reply **last;
    bool has_ended;
    enum grpc_code code;
    char words[256];
};

/* ---- events ---------------------------------------------------------------------------------- */

static void peer_on_message(struct grpc_stream *stream, peg_str message)
{
    struct peer_call *call = (struct peer_call *)stream;
    struct peer_reply *reply = peg__alloc(sizeof(*reply) + message.len);

    if (!reply)
        T_FAIL("no memory for a reply");
    *reply = (struct peer_reply){.len = message.len};
    memcpy(reply->bytes, message.ptr, message.len);
    *call->last = reply;
    call->last = &reply->next;
}

static void peer_ended(struct peer_call *call, enum grpc_code code, peg_str words)
{
    if (call->has_ended)
        return;
    call->has_ended = true;
    call->code = code;
    snprintf(call->words, sizeof(call->words), "%.*s", PEG_ARG(words));
}

static void peer_on_remote_end(struct grpc_stream *stream)
{
    const struct grpc_head *head = &stream->head;

    peer_ended((struct peer_call *)stream, head->has_status ? head->code : GRPC_UNKNOWN,
               head->message);
}

static void peer_on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    peer_ended((struct peer_call *)stream, status->code, status->message);
}

static void peer_on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    peer_ended((struct peer_call *)stream, grpc_code_from_h2(h2_error, false), peg__str("reset"));
}

static void peer_ignore_stream(struct grpc_stream *stream)
{
    (void)stream;
}

static const struct grpc_stream_events peer_events = {
    .on_headers = peer_ignore_stream,
    .on_message = peer_on_message,
    .on_remote_end = peer_on_remote_end,
    .on_writable = peer_ignore_stream,
    .on_broken = peer_on_broken,
    .on_closed = peer_on_closed,
};

static struct grpc_stream *peer_refuse_stream(void *user)
{
    (void)user;
    return NULL;
}

static void peer_ignore(void *user)
{
    (void)user;
}

static void peer_ignore_goaway(void *user, int32_t last_id, uint32_t h2_error)
{
    (void)user;
    (void)last_id;
    (void)h2_error;
}

/* What it says that it takes, when it is opened. */
static uint32_t peer_max_header_bytes = 16 << 10;

static const struct grpc_session_events peer_session_events = {
    .on_stream = peer_refuse_stream,
    .on_output = peer_ignore,
    .on_ping = peer_ignore,
    .on_pong = peer_ignore,
    .on_goaway = peer_ignore_goaway,
    .on_settings = peer_ignore,
};

/* ---- the connection -------------------------------------------------------------------------- */

static void peer_open(struct peer *peer, const struct net_address *address)
{
    const struct grpc_session_options options = {
        .is_client = true,
        .max_header_bytes = peer_max_header_bytes,
        .stream_window = 65535,
        .session_window = 1 << 20,
        .max_held = 64 << 20,
        .reset_burst = 100,
        .reset_per_s = 100,
    };
    peg_error error;

    peer->fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(peer->fd >= 0);
    CHECK_INT(connect(peer->fd, &address->at.any, address->len), 0);
    CHECK_STATUS(grpc_session_new(&options, &peer_session_events, peer, &peer->session, &error),
                 PEG_OK, error);
}

/* Its calls are freed after it. */
static void peer_close(struct peer *peer)
{
    peer->session = grpc_session_free(peer->session);
    close(peer->fd);
}

static void peer_flush(struct peer *peer)
{
    static uint8_t bytes[PEER_BYTES];
    size_t len;

    while ((len = grpc_session_pull(peer->session, bytes, sizeof(bytes))) > 0) {
        for (size_t sent = 0; sent < len;) {
            const ssize_t n = send(peer->fd, bytes + sent, len - sent, MSG_NOSIGNAL);

            if (n <= 0)
                return; /* the server has closed it; reading will tell */
            sent += (size_t)n;
        }
    }
}

/* Sends what there is, then waits for something. False: the connection is closed. */
static bool peer_pump(struct peer *peer)
{
    static uint8_t bytes[PEER_BYTES];
    struct pollfd wait = {.fd = peer->fd, .events = POLLIN};
    peg_error error;
    ssize_t n;

    peer_flush(peer);
    if (poll(&wait, 1, PEER_WAIT_MS) != 1)
        T_FAIL("the server says nothing for %d ms", PEER_WAIT_MS);
    n = read(peer->fd, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    CHECK_STATUS(grpc_session_feed(peer->session, bytes, (size_t)n, &error), PEG_OK, error);
    peer_flush(peer);
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void peer_call(struct peer_call *call, struct peer *peer, const char *path)
{
    const struct grpc_field fields[] = {
        {PEG_LIT(":method"), PEG_LIT("POST")},
        {PEG_LIT(":scheme"), PEG_LIT("http")},
        {PEG_LIT(":path"), {path, strlen(path)}},
        {PEG_LIT(":authority"), PEG_LIT("test")},
        {PEG_LIT("te"), PEG_LIT("trailers")},
        {PEG_LIT("content-type"), PEG_LIT("application/grpc")},
    };
    const struct grpc_block headers = {.fields = fields, .n = sizeof(fields) / sizeof(fields[0])};
    peg_error error;

    *call = (struct peer_call){.peer = peer, .last = &call->first};
    grpc_stream_init(&call->stream, &peer_events, &call->arena, 64 << 20, 16 << 10);
    call->stream.max_out = 64 << 20;
    CHECK_STATUS(grpc_stream_open(&call->stream, peer->session, &headers, &error), PEG_OK, error);
}

__attribute__((unused)) static void peer_send(struct peer_call *call,
                                              const ProtobufCMessage *message)
{
    const size_t len = grpc_message_packed_size(message);
    uint8_t *bytes = peg__alloc(len + 1);
    peg_error error;
    peg_status status;

    CHECK(bytes != NULL);
    grpc_message_pack(message, bytes);
    status = grpc_stream_send(&call->stream, peg__strn((const char *)bytes, len), &error);
    peg__free(bytes);
    CHECK_STATUS(status, PEG_OK, error);
}

static void peer_half_close(struct peer_call *call)
{
    CHECK_INT(grpc_stream_end(&call->stream, NULL, NULL), PEG_OK);
}

/* The next reply, which lives as long as the call; ptr is NULL: it has ended. */
static peg_str peer_next_bytes(struct peer_call *call)
{
    struct peer_reply *reply;
    char *bytes;
    size_t len;

    while (!call->first && !call->has_ended) {
        if (!peer_pump(call->peer))
            peer_ended(call, GRPC_UNAVAILABLE, peg__str("the connection was closed"));
    }
    reply = call->first;
    if (!reply)
        return (peg_str){NULL, 0};
    call->first = reply->next;
    if (!call->first)
        call->last = &call->first;
    len = reply->len;
    bytes = peg__arena_copy(&call->arena, peg__strn(reply->bytes, len));
    peg__free(reply);
    CHECK(bytes != NULL);
    return peg__strn(bytes, len);
}

/* The same, unpacked. */
__attribute__((unused)) static const void *peer_next(struct peer_call *call,
                                                     const ProtobufCMessageDescriptor *type)
{
    const struct ProtobufCMessage *message = NULL;
    const peg_str bytes = peer_next_bytes(call);
    peg_error error;

    if (!bytes.ptr)
        return NULL;
    CHECK_STATUS(grpc_message_unpack(type, &call->arena, bytes, &message, &error), PEG_OK, error);
    return message;
}

/* Frees the call, also one that runs: it is reset. */
static void peer_drop(struct peer_call *call)
{
    while (call->first) {
        struct peer_reply *reply = call->first;

        call->first = reply->next;
        peg__free(reply);
    }
    if (call->stream.session)
        grpc_stream_drop(&call->stream, 8);
    grpc_stream_free(&call->stream);
    peg__arena_free(&call->arena);
}

/* How it ended; waits for it, and frees it. Replies that nobody asked for are an error. */
static enum grpc_code peer_end(struct peer_call *call)
{
    while (!call->has_ended) {
        if (!peer_pump(call->peer))
            peer_ended(call, GRPC_UNAVAILABLE, peg__str("the connection was closed"));
    }
    CHECK(!call->first);
    peer_drop(call);
    return call->code;
}

/* ---- the server's memory --------------------------------------------------------------------- */

struct peer_fail_at {
    struct net_message message;
    unsigned nth;
    sem_t done;
};

static void peer_fail_here(struct net_message *message)
{
    struct peer_fail_at *fail = (struct peer_fail_at *)message;

    peg__mem_fail_at(fail->nth);
    sem_post(&fail->done);
}

/* peg__mem_fail_at() on the thread of a loop. */
__attribute__((unused)) static void peer_fail_at(struct net_loop *loop, unsigned nth)
{
    struct peer_fail_at fail = {.message = {.fn = peer_fail_here}, .nth = nth};

    sem_init(&fail.done, 0, 0);
    net_loop_post(loop, &fail.message);
    sem_wait(&fail.done);
    sem_destroy(&fail.done);
}

#endif
