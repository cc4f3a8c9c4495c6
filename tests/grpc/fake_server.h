/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_FAKE_SERVER_H
#define PEG_TESTS_GRPC_FAKE_SERVER_H

/*
 * A server that misbehaves on demand: a session in the role of a server, on a listener with a
 * thread of its own. What it does with a call is said by the call's path, what it does with a
 * connection by `manner`.
 *
 *   /f/echo           the messages, one by one, as they come
 *   /f/collect        one message: all that came, after the end
 *   /f/head           one message: what the headers said
 *   /f/never          nothing, for ever
 *   /f/two            two messages            /f/none       OK without a message
 *   /f/http503        no gRPC                 /f/html       the wrong content type
 *   /f/no-status      trailers without it     /f/no-trailers
 *   /f/fail           trailers only: NOT_FOUND with words, details and metadata
 *   /f/late-fail      a message, then trailers with a status
 *   /f/garbage        a message that does not unpack
 *   /f/flag           a frame with a flag that is none
 *   /f/early          answers before the client has said everything
 *   /f/reset-N        RST_STREAM with error N
 *   /f/refuse-once    REFUSED_STREAM the first time, then echo
 *   /f/refuse         REFUSED_STREAM always
 *   /f/goaway         GOAWAY, then the answer
 *   /f/calm           GOAWAY for too many pings, then the answer
 *   /f/goaway-before  GOAWAY that leaves this call out, the first time; then echo
 *   /f/die            closes the connection without a word
 *   /f/die-once       the first time; then echo
 *   /f/many           100 messages of 1,000 bytes
 *   /f/half           a part of a message of 4 MiB, then RST_STREAM
 *   /f/interim-N      N blocks of headers that are no answer yet (103), then the answer
 *   /f/limit          each message is how many streams it takes from now on; then as echo
 *   /f/early-open     as early, but does not close the stream
 */

#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/http2.h"
#include "grpc/http2/session.h"
#include "net/listener.h"

enum fake_manner {
    FAKE_POLITE,
    FAKE_SILENT,  /* takes connections and says nothing */
    FAKE_RUDE,    /* closes them at once */
    FAKE_STRANGE, /* speaks something else */
    FAKE_LEAVING, /* GOAWAY before anything else, from the second connection on not any more */
    FAKE_DEAF,    /* reads nothing after the first call */
};

struct fake {
    enum fake_manner manner;
    uint32_t max_streams; /* 0: 100 */
    struct net_loops *loops;
    struct net_listener *listener;
    char target[NET_ADDRESS_TEXT];
    atomic_uint n_connections;
    atomic_uint n_calls;
    atomic_uint n_closed; /* streams that ended in any way */
    atomic_uint n_reset;  /* and those that the client reset */
    atomic_uint n_once;   /* calls of the -once kind */
    atomic_uint n_pings;
};

struct fake_conn {
    struct fake *fake;
    struct net_stream *stream;
    struct grpc_session *session;
    struct net_later flush;
    bool must_drop;
};

struct fake_call {
    struct grpc_stream stream; /* first */
    struct fake_conn *conn;
    struct peg__arena arena;
    struct peg__buf said;
    char path[64];
};

/* ---- answering ---------------------------------------------------------------------------- */

#define FAKE_FIELD(a_name, a_value)                                                                \
    {                                                                                              \
        PEG_LIT(a_name), PEG_LIT(a_value)                                                          \
    }
#define FAKE_BLOCK(a_fields)                                                                       \
    {                                                                                              \
        .fields = (a_fields), .n = sizeof(a_fields) / sizeof((a_fields)[0])                        \
    }

static const struct grpc_field fake_ok_fields[] = {
    FAKE_FIELD(":status", "200"),
    FAKE_FIELD("content-type", "application/grpc"),
    FAKE_FIELD("x-fake", "yes"),
};
static const struct grpc_field fake_trailer_fields[] = {FAKE_FIELD("grpc-status", "0"),
                                                        FAKE_FIELD("x-end", "bye")};
static const struct grpc_field fake_late_fields[] = {FAKE_FIELD("grpc-status", "10"),
                                                     FAKE_FIELD("grpc-message", "too%20late")};
static const struct grpc_field fake_no_status_fields[] = {FAKE_FIELD("x-end", "bye")};
static const struct grpc_field fake_503_fields[] = {FAKE_FIELD(":status", "503"),
                                                    FAKE_FIELD("content-type", "text/html")};
static const struct grpc_field fake_html_fields[] = {FAKE_FIELD(":status", "200"),
                                                     FAKE_FIELD("content-type", "text/html")};
static const struct grpc_field fake_fail_fields[] = {
    FAKE_FIELD(":status", "200"),        FAKE_FIELD("content-type", "application/grpc"),
    FAKE_FIELD("grpc-status", "5"),      FAKE_FIELD("grpc-message", "no%20%C3%A4"),
    FAKE_FIELD("x-trailer-bin", "AAEC"), FAKE_FIELD("grpc-status-details-bin", "CAU"),
};
static const struct grpc_block fake_ok = FAKE_BLOCK(fake_ok_fields);
static const struct grpc_block fake_trailers = FAKE_BLOCK(fake_trailer_fields);
static const struct grpc_block fake_late = FAKE_BLOCK(fake_late_fields);
static const struct grpc_block fake_no_status = FAKE_BLOCK(fake_no_status_fields);
static const struct grpc_block fake_503 = FAKE_BLOCK(fake_503_fields);
static const struct grpc_block fake_html = FAKE_BLOCK(fake_html_fields);
static const struct grpc_block fake_fail = FAKE_BLOCK(fake_fail_fields);

static bool fake_is(const struct fake_call *call, const char *path)
{
    return strcmp(call->path, path) == 0;
}

static void fake_answer(struct fake_call *call, peg_str message, const struct grpc_block *trailers)
{
    if (!call->stream.has_sent_headers)
        grpc_stream_respond(&call->stream, &fake_ok, false, NULL);
    grpc_stream_send(&call->stream, message, NULL);
    if (trailers)
        grpc_stream_end(&call->stream, trailers, NULL);
}

static void fake_tell_head(struct fake_call *call)
{
    const struct grpc_head *head = &call->stream.head;
    const peg_str key = grpc_metadata_get(&head->metadata, "x-key");
    const peg_str bin = grpc_metadata_get(&head->metadata, "x-key-bin");
    char text[512];
    const int len = snprintf(text, sizeof(text),
                             "%.*s %.*s te=%d timeout=%d gzip=%d encoding=%.*s agent=%.*s key=%.*s "
                             "bin=%zu",
                             PEG_ARG(head->method), PEG_ARG(head->authority), head->has_te_trailers,
                             head->timeout_ns > 0, head->accepts_gzip, PEG_ARG(head->encoding_name),
                             PEG_ARG(head->user_agent), PEG_ARG(key), bin.len);

    fake_answer(call, peg__strn(text, (size_t)len), &fake_trailers);
}

/* A GOAWAY that says no stream was taken: the session would not let us lie. */
static void fake_goaway_before(struct fake_conn *conn)
{
    static const uint8_t frame[] = {0, 0, 8, GRPC_H2_GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

    net_stream_write(conn->stream, frame, sizeof(frame), NULL);
}

static void fake_hang_up(struct fake_conn *conn)
{
    conn->must_drop = true;
    net_loop_later(net_stream_loop(conn->stream), &conn->flush);
}

/* True the first time a -once call comes. */
static bool fake_is_first(struct fake_call *call)
{
    return atomic_fetch_add(&call->conn->fake->n_once, 1) == 0;
}

/* A message whose first byte is no flag. */
static void fake_wrong_flag(struct fake_call *call)
{
    fake_answer(call, peg__str("x"), NULL);
    call->stream.out.ptr[call->stream.out.len - 1 - GRPC_PREFIX_BYTES] = 7;
    grpc_stream_end(&call->stream, &fake_trailers, NULL);
}

/* Behind the back of the session, which would send but one block. */
static void fake_interim(struct fake_call *call, unsigned n)
{
    static const char status[] = {0x08, 3, '1', '0', '3'};
    const struct grpc_h2_head head = {.len = sizeof(status),
                                      .type = GRPC_H2_HEADERS,
                                      .flags = GRPC_H2_END_HEADERS,
                                      .id = call->stream.id};
    uint8_t frame[GRPC_H2_HEAD_BYTES + sizeof(status)];

    memcpy(grpc_h2_write_head(frame, &head), status, sizeof(status));
    for (unsigned i = 0; i < n; i++)
        net_stream_write(call->conn->stream, frame, sizeof(frame), NULL);
}

static void fake_limit(struct fake_call *call, peg_str message)
{
    const struct grpc_h2_head head = {.len = GRPC_H2_SETTING_BYTES, .type = GRPC_H2_SETTINGS};
    uint8_t frame[GRPC_H2_HEAD_BYTES + GRPC_H2_SETTING_BYTES];
    uint32_t limit = 0;

    for (size_t i = 0; i < message.len; i++)
        limit = limit * 10 + (uint32_t)(message.ptr[i] - '0');
    grpc_h2_write_setting(grpc_h2_write_head(frame, &head), GRPC_H2_MAX_CONCURRENT_STREAMS, limit);
    net_stream_write(call->conn->stream, frame, sizeof(frame), NULL);
    fake_answer(call, message, NULL);
}

/* What is done as soon as the headers are there. True: no more is to be done. */
static bool fake_at_start(struct fake_call *call)
{
    unsigned error;

    if (sscanf(call->path, "/f/interim-%u", &error) == 1) {
        fake_interim(call, error);
        return false;
    }
    if (fake_is(call, "/f/early-open"))
        call->stream.remote_ended = true; /* or the session would close it */
    if (fake_is(call, "/f/early") || fake_is(call, "/f/early-open")) {
        fake_answer(call, peg__str("early"), &fake_trailers);
    } else if (sscanf(call->path, "/f/reset-%u", &error) == 1) {
        grpc_stream_reset(&call->stream, error);
    } else if (fake_is(call, "/f/refuse") ||
               (fake_is(call, "/f/refuse-once") && fake_is_first(call))) {
        grpc_stream_reset(&call->stream, GRPC_H2_REFUSED_STREAM);
    } else if (fake_is(call, "/f/die") || (fake_is(call, "/f/die-once") && fake_is_first(call))) {
        fake_hang_up(call->conn);
    } else if (fake_is(call, "/f/goaway-before") && fake_is_first(call)) {
        fake_goaway_before(call->conn);
    } else if (fake_is(call, "/f/never")) {
        return true;
    } else {
        return false;
    }
    snprintf(call->path, sizeof(call->path), "/f/never");
    return true;
}

static void fake_half(struct fake_call *call)
{
    enum { PART = 1200000 }; /* more than a quarter: the client makes room for all of it */
    static const char part[PART];

    (void)grpc_stream_respond(&call->stream, &fake_ok, false, NULL);
    (void)grpc_stream_send_plain(&call->stream, peg__strn("\0\0\x40\0\0", 5), NULL);
    (void)grpc_stream_send_plain(&call->stream, peg__strn(part, PART), NULL);
}

static void fake_at_end(struct fake_call *call)
{
    const peg_str said = peg__buf_view(&call->said);
    static const char kilobyte[1000];

    if (fake_is(call, "/f/never"))
        return;
    if (fake_is(call, "/f/head")) {
        fake_tell_head(call);
    } else if (fake_is(call, "/f/two")) {
        fake_answer(call, peg__str("one"), NULL);
        fake_answer(call, peg__str("two"), &fake_trailers);
    } else if (fake_is(call, "/f/none")) {
        grpc_stream_respond(&call->stream, &fake_ok, false, NULL);
        grpc_stream_end(&call->stream, &fake_trailers, NULL);
    } else if (fake_is(call, "/f/http503")) {
        grpc_stream_respond(&call->stream, &fake_503, true, NULL);
    } else if (fake_is(call, "/f/html")) {
        grpc_stream_respond(&call->stream, &fake_html, true, NULL);
    } else if (fake_is(call, "/f/no-status")) {
        fake_answer(call, said, &fake_no_status);
    } else if (fake_is(call, "/f/no-trailers")) {
        fake_answer(call, said, NULL);
        grpc_stream_end(&call->stream, NULL, NULL);
    } else if (fake_is(call, "/f/fail")) {
        grpc_stream_respond(&call->stream, &fake_fail, true, NULL);
    } else if (fake_is(call, "/f/late-fail")) {
        fake_answer(call, said, &fake_late);
    } else if (fake_is(call, "/f/garbage")) {
        fake_answer(call, peg__str("\xff\xff\xff"), &fake_trailers);
    } else if (fake_is(call, "/f/flag")) {
        fake_wrong_flag(call);
    } else if (fake_is(call, "/f/half")) {
        fake_half(call);
    } else if (fake_is(call, "/f/many")) {
        for (unsigned i = 0; i < 100; i++)
            fake_answer(call, peg__strn(kilobyte, sizeof(kilobyte)),
                        i == 99 ? &fake_trailers : NULL);
    } else {
        if (fake_is(call, "/f/goaway"))
            grpc_session_goaway(call->conn->session, true, GRPC_H2_NO_ERROR, "bye");
        if (fake_is(call, "/f/calm"))
            grpc_session_goaway(call->conn->session, true, GRPC_H2_ENHANCE_YOUR_CALM,
                                "too_many_pings");
        fake_answer(call, said, &fake_trailers);
    }
}

/* ---- what it hears ------------------------------------------------------------------------ */

static void fake_on_headers(struct grpc_stream *stream)
{
    struct fake_call *call = (struct fake_call *)(void *)stream;

    snprintf(call->path, sizeof(call->path), "%.*s", PEG_ARG(stream->head.path));
    atomic_fetch_add(&call->conn->fake->n_calls, 1);
    if (call->conn->fake->manner == FAKE_DEAF)
        net_stream_pause(call->conn->stream);
    else
        fake_at_start(call);
}

static void fake_on_message(struct grpc_stream *stream, peg_str message)
{
    struct fake_call *call = (struct fake_call *)(void *)stream;

    if (fake_is(call, "/f/echo"))
        fake_answer(call, message, NULL);
    else if (fake_is(call, "/f/limit"))
        fake_limit(call, message);
    else
        peg__buf_str(&call->said, message);
}

static void fake_on_remote_end(struct grpc_stream *stream)
{
    struct fake_call *call = (struct fake_call *)(void *)stream;

    if (stream->has_sent_headers)
        grpc_stream_end(stream, &fake_trailers, NULL);
    else
        fake_at_end(call);
}

static void fake_on_writable(struct grpc_stream *stream)
{
    if (fake_is((struct fake_call *)(void *)stream, "/f/half"))
        grpc_stream_reset(stream, GRPC_H2_INTERNAL_ERROR);
}

static void fake_on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    (void)status;
    grpc_stream_reset(stream, GRPC_H2_PROTOCOL_ERROR);
}

static void fake_on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    struct fake_call *call = (struct fake_call *)(void *)stream;

    atomic_fetch_add(&call->conn->fake->n_reset, h2_error == GRPC_H2_CANCEL);
    atomic_fetch_add(&call->conn->fake->n_closed, 1);
    peg__buf_free(&call->said);
    grpc_stream_free(stream);
    peg__arena_free(&call->arena);
    peg__free(call);
}

static struct grpc_stream *fake_on_stream(void *user)
{
    static const struct grpc_stream_events events = {
        fake_on_headers,  fake_on_message, fake_on_remote_end,
        fake_on_writable, fake_on_broken,  fake_on_closed,
    };
    struct fake_call *call = (struct fake_call *)peg__alloc_zero(1, sizeof(*call));

    if (!call)
        return NULL;
    call->conn = (struct fake_conn *)user;
    call->said.max = 16 << 20;
    grpc_stream_init(&call->stream, &events, &call->arena, 8 << 20, 64 << 10);
    return &call->stream;
}

/* ---- connections -------------------------------------------------------------------------- */

static void fake_gone(struct fake_conn *conn)
{
    grpc_session_free(conn->session);
    peg__free(conn);
}

static void fake_flush(struct net_later *later)
{
    struct fake_conn *conn =
        (struct fake_conn *)(void *)((char *)later - offsetof(struct fake_conn, flush));
    struct net_loop *loop = net_stream_loop(conn->stream);
    uint8_t *scratch = net_loop_scratch(loop);
    size_t n;

    if (conn->must_drop) {
        net_stream_drop(conn->stream);
        fake_gone(conn);
        return;
    }
    while (!net_stream_is_blocked(conn->stream) &&
           (n = grpc_session_pull(conn->session, scratch, NET_SCRATCH_BYTES)) > 0)
        net_stream_write(conn->stream, scratch, n, NULL);
}

static void fake_on_output(void *user)
{
    struct fake_conn *conn = (struct fake_conn *)user;

    net_loop_later(net_stream_loop(conn->stream), &conn->flush);
}

static void fake_on_ping(void *user)
{
    atomic_fetch_add(&((struct fake_conn *)user)->fake->n_pings, 1);
}

static void fake_on_pong(void *user)
{
    (void)user;
}

static void fake_on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct fake_conn *conn = (struct fake_conn *)user;

    if (conn->fake->manner == FAKE_SILENT || conn->fake->manner == FAKE_STRANGE)
        return;
    if (grpc_session_feed(conn->session, bytes, len, NULL))
        conn->must_drop = true;
    net_loop_later(net_stream_loop(conn->stream), &conn->flush);
}

static void fake_on_stream_closed(void *user, const peg_error *error)
{
    struct fake_conn *conn = (struct fake_conn *)user;

    (void)error;
    net_loop_not_later(net_stream_loop(conn->stream), &conn->flush);
    fake_gone(conn);
}

static void fake_on_open(void *user)
{
    struct fake_conn *conn = (struct fake_conn *)user;
    static const char other[] = "220 this is another protocol\r\n";

    if (conn->fake->manner == FAKE_STRANGE)
        net_stream_write(conn->stream, (const uint8_t *)other, sizeof(other) - 1, NULL);
    else if (conn->fake->manner == FAKE_RUDE)
        fake_hang_up(conn);
    else if (conn->fake->manner == FAKE_LEAVING && conn->fake->n_connections == 1)
        grpc_session_goaway(conn->session, true, GRPC_H2_NO_ERROR, "bye");
    if (conn->fake->manner != FAKE_SILENT && conn->fake->manner != FAKE_STRANGE)
        net_loop_later(net_stream_loop(conn->stream), &conn->flush);
}

static void fake_on_accept(void *user, struct net_stream *stream)
{
    static const struct net_stream_events stream_events = {fake_on_open, fake_on_bytes,
                                                           fake_on_output, fake_on_stream_closed};
    static const struct grpc_session_events session_events = {
        .on_stream = fake_on_stream,
        .on_output = fake_on_output,
        .on_ping = fake_on_ping,
        .on_pong = fake_on_pong,
    };
    struct fake *fake = (struct fake *)user;
    const struct grpc_session_options options = {
        .max_streams = fake->max_streams ? fake->max_streams : 100,
        .max_header_bytes = 64 << 10,
        .stream_window = 256 << 10,
        .session_window = 1 << 20,
        .max_held = 64 << 20,
        .reset_burst = 10000,
        .reset_per_s = 10000,
    };
    struct fake_conn *conn = (struct fake_conn *)peg__alloc_zero(1, sizeof(*conn));

    atomic_fetch_add(&fake->n_connections, 1);
    conn->fake = fake;
    conn->stream = stream;
    conn->flush.fn = fake_flush;
    grpc_session_new(&options, &session_events, conn, &conn->session, NULL);
    net_stream_set_events(stream, &stream_events, conn);
}

/* ---- the face ----------------------------------------------------------------------------- */

/* `address` NULL: a free port of the loopback. Fields for its manner are set before. */
static peg_status fake_listen(struct fake *fake, const char *address)
{
    struct net_endpoint endpoint;
    struct net_address at;
    peg_status status;

    status = net_endpoint_parse(peg__str(address ? address : "127.0.0.1:0"), &endpoint, NULL);
    if (!status && net_endpoint_is_numeric(&endpoint, &at))
        status = net_listen(fake->loops, &at, NULL, fake_on_accept, fake, &fake->listener, NULL);
    if (!status)
        net_address_format(net_listener_address(fake->listener), fake->target);
    return status;
}

static peg_status fake_start(struct fake *fake, const char *address)
{
    const peg_status status = net_loops_new(1, &fake->loops, NULL);

    return status ? status : fake_listen(fake, address);
}

/* Its connections end with it. */
static void fake_stop(struct fake *fake)
{
    fake->listener = net_listener_free(fake->listener);
    fake->loops = net_loops_free(fake->loops);
}

#endif
