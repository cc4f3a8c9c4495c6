/* SPDX-License-Identifier: Apache-2.0 */

/* Messages that wait for a window: of their stream, which SETTINGS may open and shut for all at
 * once, or of the connection. A server whose client is put together by hand; without sockets. */

#include "base/limits.h"
#include "grpc/http2/session.h"
#include "grpc/raw.h"
#include "grpc/wire.h"
#include "t.h"

enum { WINDOW = 4, CONNECTION = 0, PREFIX = 5 }; /* a setting, a stream, of each message */

static struct wire w;
static struct peg__buf out; /* what the client says next */

static void feed(void)
{
    CHECK_INT(grpc_session_feed(w.server, (const uint8_t *)out.ptr, out.len, &w.error), PEG_OK);
    peg__buf_clear(&out);
}

/* How many bytes of DATA the server sends now, of one stream or of all (0). */
static size_t sends_of(int32_t id)
{
    static uint8_t bytes[64 << 10];
    const size_t n = grpc_session_pull(w.server, bytes, sizeof(bytes));
    size_t n_data = 0;

    for (size_t at = 0; at < n;) {
        const struct grpc_h2_head head = grpc_h2_read_head(bytes + at);

        if (head.type == GRPC_H2_DATA && (id == 0 || head.id == id))
            n_data += head.len;
        at += GRPC_H2_HEAD_BYTES + head.len;
    }
    return n_data;
}

static size_t sends(void)
{
    return sends_of(0);
}

/* So many calls, each of which has an answer of 10 bytes waiting, with this window each. */
static void start(unsigned n, uint32_t window)
{
    w = (struct wire){0};
    CHECK_INT(wire_start(&w, NULL), PEG_OK);
    out = (struct peg__buf)PEG__BUF(RAW_MAX_OUT);
    raw_hello(&out);
    raw_setting(&out, WINDOW, window);
    for (unsigned i = 0; i < n; i++)
        raw_headers(&out, 2 * i + 1, RAW_END_STREAM, "/a.B/C", peg__str(""));
    feed();
    for (unsigned i = 0; i < n; i++) {
        struct grpc_stream *stream = &w.at_server[i].stream;

        CHECK_INT(grpc_stream_respond(stream, &wire_answer, false, NULL), PEG_OK);
        CHECK_INT(grpc_stream_send(stream, peg__str("01234"), NULL), PEG_OK);
    }
}

static void stop(void)
{
    peg__buf_free(&out);
    wire_stop(&w);
}

static void set_window(uint32_t size)
{
    raw_setting(&out, WINDOW, size);
    feed();
}

static void open_window(uint32_t id, uint32_t more)
{
    raw_u32_frame(&out, RAW_WINDOW_UPDATE, id, more);
    feed();
}

TEST(settings_open_the_windows_of_answers_that_wait)
{
    start(3, 0);
    CHECK_INT(sends(), 0);
    set_window(4);
    CHECK_INT(sends(), 3 * 4);
    set_window(100);
    CHECK_INT(sends(), 3 * 6);
    CHECK(!grpc_session_has_output(w.server));
    stop();
}

TEST(a_window_below_nothing_opens_when_it_is_above)
{
    start(1, 8);
    CHECK_INT(sends(), 8);
    set_window(3); /* 5 below */
    CHECK_INT(sends(), 0);
    open_window(1, 5);
    CHECK_INT(sends(), 0);
    open_window(1, 1);
    CHECK_INT(sends(), 1);
    set_window(4);
    CHECK_INT(sends(), 1);
    stop();
}

TEST(what_is_opened_and_shut_again_before_anything_is_sent_stays_shut)
{
    start(2, 0);
    CHECK_INT(sends(), 0);
    raw_setting(&out, WINDOW, 100);
    raw_setting(&out, WINDOW, 0);
    feed();
    CHECK_INT(sends(), 0);
    open_window(3, 2);
    CHECK_INT(sends_of(3), 2);
    stop();
}

TEST(what_is_shut_before_it_was_sent_is_not_sent)
{
    start(2, 100);
    set_window(0);
    CHECK_INT(sends(), 0);
    set_window(10);
    CHECK_INT(sends(), 20);
    stop();
}

TEST(a_stream_that_waits_may_end_in_any_way)
{
    start(4, 0);
    CHECK_INT(sends(), 0);
    raw_u32_frame(&out, RAW_RST_STREAM, 1, GRPC_H2_CANCEL);
    feed();
    CHECK(strstr(w.at_server[0].log, "closed:8") != NULL);
    grpc_stream_drop(&w.at_server[1].stream, GRPC_H2_CANCEL);
    raw_u32_frame(&out, RAW_WINDOW_UPDATE, 5, 0); /* which costs it its stream */
    feed();
    CHECK_INT(sends(), 0);
    set_window(100);
    CHECK_INT(sends(), 10); /* of the fourth */
    stop();
}

TEST(a_session_may_end_with_streams_that_wait)
{
    start(5, 0);
    CHECK_INT(sends(), 0);
    stop();
}

/* RFC 9113, 6.9.2. */
TEST(settings_that_make_a_window_too_wide_end_the_session)
{
    start(2, 100);
    open_window(3, GRPC_H2_MAX_WINDOW - 200);
    set_window(200);
    raw_setting(&out, WINDOW, 201);

    CHECK_INT(grpc_session_feed(w.server, (const uint8_t *)out.ptr, out.len, &w.error), PEG_EPARSE);
    CHECK(strstr(w.error.message, "INITIAL_WINDOW_SIZE") != NULL);
    CHECK(grpc_session_has_sent_error(w.server));
    stop();
}

TEST(a_wide_window_of_a_stream_that_is_gone_is_forgotten)
{
    start(2, 100);
    open_window(3, GRPC_H2_MAX_WINDOW - 200);
    raw_u32_frame(&out, RAW_RST_STREAM, 3, GRPC_H2_CANCEL);
    feed();
    set_window(GRPC_H2_MAX_WINDOW);
    CHECK_INT(sends_of(1), 10);
    stop();
}

static void use_up_connection(unsigned n)
{
    const int64_t left = w.server->window;

    w.server->window = 0; /* as if the peer had been sent so much */
    CHECK_INT(sends(), 0);
    CHECK_INT(w.server->sending.first != NULL, n > 0);
    CHECK(left > 0);
}

/* Each byte goes to the next of them, and the others are not touched. */
TEST(the_window_of_the_connection_goes_round)
{
    enum { N = 10 };

    start(N, 1000);
    use_up_connection(N);
    for (unsigned i = 0; i < N; i++) {
        open_window(CONNECTION, 1);
        CHECK_INT(sends_of((int32_t)(2 * i + 1)), 1);
    }
    CHECK(!grpc_session_has_output(w.server));
    open_window(CONNECTION, 1000);
    CHECK_INT(sends(), N * 9);
    stop();
}

TEST(ends_and_headers_do_not_wait_for_the_window_of_the_connection)
{
    start(3, 1000);
    use_up_connection(3);
    raw_headers(&out, 7, RAW_END_STREAM, "/a.B/C", peg__str(""));
    feed();
    CHECK_INT(grpc_stream_respond(&w.at_server[3].stream, &wire_answer, false, NULL), PEG_OK);
    CHECK_INT(grpc_stream_end(&w.at_server[3].stream, &wire_trailers, NULL), PEG_OK);
    CHECK_INT(sends(), 0);
    CHECK(strstr(w.at_server[3].log, "closed:0") != NULL);
    stop();
}

/* The answer takes all of the window, and its end has no room behind it: however large the pieces
 * are in which it goes out, the end waits for room and not for a window. */
TEST(an_end_that_has_no_room_does_not_wait_for_the_window_of_the_connection)
{
    static char message[GRPC_H2_FIRST_WINDOW - PREFIX];
    static uint8_t bytes[1500];

    for (size_t max = 1024; max <= sizeof(bytes); max++) {
        struct grpc_stream *stream = &w.at_server[0].stream;

        w = (struct wire){0};
        CHECK_INT(wire_start(&w, NULL), PEG_OK);
        out = (struct peg__buf)PEG__BUF(RAW_MAX_OUT);
        raw_hello(&out);
        raw_headers(&out, 1, RAW_END_STREAM, "/a.B/C", peg__str(""));
        feed();
        CHECK_INT(grpc_stream_respond(stream, &wire_answer, false, NULL), PEG_OK);
        CHECK_INT(grpc_stream_send(stream, peg__strn(message, sizeof(message)), NULL), PEG_OK);
        CHECK_INT(grpc_stream_end(stream, &wire_trailers, NULL), PEG_OK);
        while (grpc_session_pull(w.server, bytes, max) > 0)
            ;
        CHECK_INT(w.server->window, 0);
        if (!strstr(w.at_server[0].log, "closed:0"))
            T_FAIL("the end waits with pieces of %zu bytes", max);
        stop();
    }
}

/* The same for a client, whose calls the server may not even know yet. */
TEST(a_client_waits_for_the_window_of_the_server)
{
    static uint8_t bytes[4096];
    struct grpc_session_options options = wire_options();
    struct wire_stream *first;
    struct wire_stream *second;

    options.max_streams = 1;
    options.stream_window = 16;
    w = (struct wire){0};
    CHECK_INT(wire_start(&w, &options), PEG_OK);
    wire_pump(&w);
    first = wire_open(&w);
    second = wire_open(&w);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(grpc_stream_send(&first->stream, peg__str("01234"), NULL), PEG_OK);
        CHECK_INT(grpc_stream_send(&second->stream, peg__str("56789"), NULL), PEG_OK);
    }
    w.at_server[0].pauses_at_message = true;
    CHECK(wire_carry(&w, w.client, w.server));
    CHECK_INT(grpc_session_pull(w.client, bytes, sizeof(bytes)), 0); /* 16 bytes are out */
    CHECK_STR(peg__strn(w.at_server[0].log, w.at_server[0].log_len), "headers message:01234 ");

    out = (struct peg__buf)PEG__BUF(RAW_MAX_OUT);
    raw_setting(&out, WINDOW, 0);
    raw_setting(&out, 3, 2); /* two calls at once */
    CHECK_INT(grpc_session_feed(w.client, (const uint8_t *)out.ptr, out.len, &w.error), PEG_OK);
    CHECK(grpc_session_pull(w.client, bytes, sizeof(bytes)) > 0); /* the second's headers */
    CHECK(second->stream.has_left);
    CHECK_INT(grpc__stream_pending(&second->stream), 4 * (PREFIX + 5));
    peg__buf_clear(&out);
    raw_setting(&out, WINDOW, 10);
    CHECK_INT(grpc_session_feed(w.client, (const uint8_t *)out.ptr, out.len, &w.error), PEG_OK);
    CHECK(grpc_session_pull(w.client, bytes, sizeof(bytes)) > 0);
    CHECK_INT(grpc__stream_pending(&second->stream), 4 * (PREFIX + 5) - 10);
    CHECK_INT(grpc__stream_pending(&first->stream), 4 * (PREFIX + 5) - 16); /* 6 below nothing */
    stop();
}
