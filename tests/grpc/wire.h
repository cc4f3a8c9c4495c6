/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_WIRE_H
#define PEG_TESTS_GRPC_WIRE_H

/*
 * Two sessions that are each other's peer, without a socket: pump() carries bytes both ways until
 * nobody has anything to say. Every event is written down in the stream that it is about.
 */

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/http2.h"

enum { WIRE_STREAMS = 64, WIRE_LOG = 4096 };

struct wire_stream {
    struct grpc_stream stream; /* first */
    struct peg__arena arena;
    struct wire *wire;
    char log[WIRE_LOG]; /* "headers message:hi end closed:0 " */
    size_t log_len;
    size_t n_messages;
    size_t n_bytes;
    uint64_t hash; /* of the last message */
    bool drops_at_message;
    bool pauses_at_message;
    struct grpc_status broken;
};

struct wire {
    struct grpc_session *client;
    struct grpc_session *server;
    struct wire_stream at_client[WIRE_STREAMS];
    struct wire_stream at_server[WIRE_STREAMS];
    unsigned n_client;
    unsigned n_server;
    bool server_refuses;
    unsigned n_pings;
    unsigned n_pongs;
    unsigned n_goaways;
    int32_t last_id;
    uint32_t goaway_error;
    peg_status fed; /* the first failure of a feed */
    peg_error error;
    size_t piece; /* bytes handed over at once; 0: as many as there are */
    size_t max_message;
};

static void wire_note(struct wire_stream *s, const char *what, peg_str text)
{
    s->log_len += (size_t)snprintf(s->log + s->log_len, sizeof(s->log) - s->log_len, "%s%.*s ",
                                   what, (int)(text.len < 100 ? text.len : 100), text.ptr);
    if (s->log_len > sizeof(s->log) - 200)
        s->log_len = sizeof(s->log) - 200;
}

static void wire_on_headers(struct grpc_stream *stream)
{
    wire_note((struct wire_stream *)stream, "headers", peg__str(""));
}

static void wire_on_message(struct grpc_stream *stream, peg_str message)
{
    struct wire_stream *s = (struct wire_stream *)stream;

    s->n_messages++;
    s->n_bytes += message.len;
    s->hash = peg__hash((struct peg__hash_key){1, 2}, message);
    wire_note(s, "message:", message.len < 100 ? message : peg__str("..."));
    if (s->pauses_at_message)
        grpc_stream_pause(stream);
    if (s->drops_at_message)
        grpc_stream_drop(stream, 8);
}

static void wire_on_remote_end(struct grpc_stream *stream)
{
    wire_note((struct wire_stream *)stream, "end", peg__str(""));
}

static void wire_on_writable(struct grpc_stream *stream)
{
    wire_note((struct wire_stream *)stream, "writable", peg__str(""));
}

static void wire_on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    ((struct wire_stream *)stream)->broken = *status;
    wire_note((struct wire_stream *)stream, "broken:", peg__str(grpc_code_name(status->code)));
}

static void wire_on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", (unsigned)h2_error);
    wire_note((struct wire_stream *)stream, "closed:", peg__str(text));
}

static const struct grpc_stream_events wire_events = {
    .on_headers = wire_on_headers,
    .on_message = wire_on_message,
    .on_remote_end = wire_on_remote_end,
    .on_writable = wire_on_writable,
    .on_broken = wire_on_broken,
    .on_closed = wire_on_closed,
};

static struct grpc_stream *wire_ready(struct wire *w, struct wire_stream *s)
{
    s->wire = w;
    grpc_stream_init(&s->stream, &wire_events, &s->arena, w->max_message ? w->max_message : 4 << 20,
                     16 << 10);
    return &s->stream;
}

static struct grpc_stream *wire_on_stream(void *user)
{
    struct wire *w = user;

    if (w->server_refuses || w->n_server == WIRE_STREAMS)
        return NULL;
    return wire_ready(w, &w->at_server[w->n_server++]);
}

static void wire_on_output(void *user)
{
    (void)user;
}

static void wire_on_ping(void *user)
{
    ((struct wire *)user)->n_pings++;
}

static void wire_on_pong(void *user)
{
    ((struct wire *)user)->n_pongs++;
}

static void wire_on_goaway(void *user, int32_t last_id, uint32_t h2_error)
{
    struct wire *w = user;

    w->n_goaways++;
    w->last_id = last_id;
    w->goaway_error = h2_error;
}

static const struct grpc_session_events wire_session_events = {
    .on_stream = wire_on_stream,
    .on_output = wire_on_output,
    .on_ping = wire_on_ping,
    .on_pong = wire_on_pong,
    .on_goaway = wire_on_goaway,
};

static struct grpc_session_options wire_options(void)
{
    return (struct grpc_session_options){
        .max_streams = 100,
        .max_header_bytes = 16 << 10,
        .stream_window = 64 << 10,
        .session_window = 1 << 20,
        .max_held = 16 << 20,
        .reset_burst = 1000,
        .reset_per_s = 1000,
    };
}

static peg_status wire_start(struct wire *w, const struct grpc_session_options *at_server)
{
    struct grpc_session_options options = wire_options();
    peg_status status;

    options.is_client = true;
    status = grpc_session_new(&options, &wire_session_events, w, &w->client, &w->error);
    if (status)
        return status;
    options = at_server ? *at_server : wire_options();
    return grpc_session_new(&options, &wire_session_events, w, &w->server, &w->error);
}

static void wire_feed(struct wire *w, struct grpc_session *session, const uint8_t *bytes,
                      size_t len)
{
    while (len > 0) {
        const size_t n = w->piece && w->piece < len ? w->piece : len;
        const peg_status status = grpc_session_feed(session, bytes, n, &w->error);

        if (status) {
            w->fed = w->fed ? w->fed : status;
            return;
        }
        bytes += n;
        len -= n;
    }
}

static bool wire_carry(struct wire *w, struct grpc_session *from, struct grpc_session *to)
{
    static uint8_t bytes[64 << 10];
    const size_t n = grpc_session_pull(from, bytes, sizeof(bytes));

    if (n > 0)
        wire_feed(w, to, bytes, n);
    return n > 0;
}

static void wire_pump(struct wire *w)
{
    bool moved = true;

    while (moved) {
        moved = wire_carry(w, w->client, w->server);
        moved |= wire_carry(w, w->server, w->client);
    }
}

static void wire_stop(struct wire *w)
{
    w->client = grpc_session_free(w->client);
    w->server = grpc_session_free(w->server);
    for (unsigned i = 0; i < WIRE_STREAMS; i++) {
        grpc_stream_free(&w->at_client[i].stream);
        grpc_stream_free(&w->at_server[i].stream);
        peg__arena_free(&w->at_client[i].arena);
        peg__arena_free(&w->at_server[i].arena);
    }
}

#define WIRE_FIELD(name, value)                                                                    \
    {                                                                                              \
        PEG_LIT(name), PEG_LIT(value)                                                              \
    }

static const struct grpc_field wire_request_fields[] = {
    WIRE_FIELD(":method", "POST"),      WIRE_FIELD(":scheme", "http"),
    WIRE_FIELD(":path", "/a.B/C"),      WIRE_FIELD(":authority", "test"),
    WIRE_FIELD("te", "trailers"),       WIRE_FIELD("content-type", "application/grpc"),
    WIRE_FIELD("grpc-timeout", "100m"), WIRE_FIELD("x-key", "value"),
};
static const struct grpc_block wire_request = {.fields = wire_request_fields, .n = 8};
static const struct grpc_field wire_answer_fields[] = {
    WIRE_FIELD(":status", "200"),
    WIRE_FIELD("content-type", "application/grpc"),
};
static const struct grpc_block wire_answer = {.fields = wire_answer_fields, .n = 2};
static const struct grpc_field wire_trailer_fields[] = {
    WIRE_FIELD("grpc-status", "0"),
    WIRE_FIELD("x-end", "yes"),
};
static const struct grpc_block wire_trailers = {.fields = wire_trailer_fields, .n = 2};

/* A call of the client that is open, not yet on the wire. If it cannot be opened its session is
 * NULL. */
static struct wire_stream *wire_open(struct wire *w)
{
    struct wire_stream *s = &w->at_client[w->n_client++];

    wire_ready(w, s);
    grpc_stream_open(&s->stream, w->client, &wire_request, &w->error);
    return s;
}

#endif
