/* SPDX-License-Identifier: Apache-2.0 */

/* Where HTTP/2 has its edges: blocks larger than frames, more calls than a server takes, frames
 * that are not allowed, and peers that do not read. Without sockets. */

#include "base/limits.h"
#include "grpc/http2/session.h"
#include "grpc/raw.h"
#include "grpc/wire.h"
#include "t.h"

static struct wire w;

static void start(const struct grpc_session_options *at_server)
{
    w = (struct wire){0};
    CHECK_INT(wire_start(&w, at_server), PEG_OK);
}

static peg_str text(const struct wire_stream *s)
{
    return peg__strn(s->log, s->log_len);
}

/* ---- blocks that are large ---------------------------------------------------------------------
 */

enum { N_LARGE = 10, LARGE = 7000 };
static char large[LARGE];

/* 70,000 bytes of metadata: more than four frames. */
static const struct grpc_block *large_request(void)
{
    static struct grpc_field fields[8 + N_LARGE];
    static const struct grpc_block block = {.fields = fields, .n = 8 + N_LARGE, .is_kept = true};

    memset(large, 'x', sizeof(large));
    memcpy(fields, wire_request_fields, sizeof(wire_request_fields));
    for (unsigned i = 0; i < N_LARGE; i++)
        fields[8 + i] = (struct grpc_field){PEG_LIT("x-large"), {large, sizeof(large) - i}};
    return &block;
}

static struct grpc_session_options with_large_headers(void)
{
    struct grpc_session_options options = wire_options();

    options.max_header_bytes = 100 << 10;
    return options;
}

static struct wire_stream *open_large(void)
{
    struct wire_stream *call = &w.at_client[w.n_client++];

    wire_ready(&w, call);
    CHECK_INT(grpc_stream_open(&call->stream, w.client, large_request(), NULL), PEG_OK);
    return call;
}

/* From the client to the server, so many bytes at once; true while there are any. */
static bool carry(size_t max)
{
    uint8_t bytes[4096];
    const size_t n = grpc_session_pull(w.client, bytes, max);

    if (n > 0)
        wire_feed(&w, w.server, bytes, n);
    return n > 0;
}

TEST(a_block_larger_than_a_frame_goes_in_pieces)
{
    const struct grpc_session_options options = with_large_headers();
    struct wire_stream *call;

    start(&options);
    call = open_large();
    grpc_stream_send(&call->stream, peg__str("hello"), NULL);
    CHECK(carry(1024));
    CHECK(!call->stream.has_left); /* the peer does not know it before its end */
    while (carry(1024))
        ;

    CHECK_INT(w.fed, PEG_OK);
    CHECK(call->stream.has_left);
    /* The head of our test allows 16 KiB: that it is too large means that all of it came. */
    CHECK_STR(text(&w.at_server[0]), "broken:RESOURCE_EXHAUSTED ");
    wire_stop(&w);
}

TEST(a_stream_that_is_dropped_while_its_headers_leave_is_reset_behind_them)
{
    const struct grpc_session_options options = with_large_headers();
    struct wire_stream *call;

    start(&options);
    call = open_large();
    CHECK(carry(1024));
    grpc_stream_drop(&call->stream, 8);
    while (carry(1024))
        ;

    CHECK_INT(w.fed, PEG_OK);
    CHECK_STR(text(&w.at_server[0]), "broken:RESOURCE_EXHAUSTED closed:8 ");
    wire_stop(&w);
}

/* A call with so much metadata in one field, in pieces. */
static void open_with_field_of(size_t len)
{
    static char value[200 << 10];
    struct grpc_field fields[9];
    const struct grpc_block block = {.fields = fields, .n = 9};
    struct wire_stream *call = &w.at_client[w.n_client++];

    CHECK(len <= sizeof(value));
    memset(value, 'x', sizeof(value));
    memcpy(fields, wire_request_fields, sizeof(wire_request_fields));
    fields[8] = (struct grpc_field){PEG_LIT("x-large"), {value, len}};
    wire_ready(&w, call);
    CHECK_INT(grpc_stream_open(&call->stream, w.client, &block, NULL), PEG_OK);
}

TEST(headers_that_are_much_too_large_cost_only_their_call)
{
    start(NULL);
    open_with_field_of(100 << 10);
    wire_open(&w);
    wire_pump(&w);

    CHECK_INT(w.fed, PEG_OK);
    CHECK_STR(text(&w.at_server[0]), "broken:RESOURCE_EXHAUSTED ");
    CHECK_STR(text(&w.at_server[1]), "headers "); /* HPACK has not lost its way */
    CHECK_STR(w.at_server[1].stream.head.path, "/a.B/C");
    wire_stop(&w);
}

TEST(headers_that_are_far_too_large_end_the_session)
{
    start(NULL);
    open_with_field_of((size_t)PEG_LIMIT_GRPC_HEADER_TIMES * PEG_LIMIT_GRPC_HEADER_BYTES);
    wire_pump(&w);

    CHECK_INT(w.fed, PEG_ELIMIT);
    CHECK_STR(peg__str(w.error.code), "E_HTTP2_LIMIT");
    CHECK(strstr(w.error.message, "headers that are far too large"));
    wire_stop(&w);
}

TEST(a_block_that_no_program_may_send_ends_its_stream)
{
    static char huge[400 << 10];
    const struct grpc_field fields[] = {WIRE_FIELD(":status", "200"),
                                        {PEG_LIT("x-huge"), {huge, sizeof(huge)}}};
    const struct grpc_block block = {.fields = fields, .n = 2};
    struct wire_stream *call;

    start(NULL);
    memset(huge, 'x', sizeof(huge));
    call = wire_open(&w);
    wire_pump(&w);
    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &block, false, NULL), PEG_OK);
    wire_pump(&w);

    CHECK_STR(text(call), "closed:2 ");
    CHECK_STR(text(&w.at_server[0]), "headers closed:2 ");
    wire_stop(&w);
}

TORTURE(a_large_block_survives_any_allocation_failure)
{
    const struct grpc_session_options options = with_large_headers();
    struct wire_stream *call;
    peg_status status;

    w = (struct wire){0};
    status = wire_start(&w, &options);
    if (!status) {
        call = &w.at_client[w.n_client++];
        wire_ready(&w, call);
        status = grpc_stream_open(&call->stream, w.client, large_request(), NULL);
        if (!status) {
            wire_pump(&w);
            /* What its own words take may fail as well; then it says so. */
            status = w.at_server[0].log_len > 0 && call->stream.has_left ? PEG_OK : PEG_ENOMEM;
        }
    }
    wire_stop(&w);
    return status;
}

/* ---- more calls than a server takes
 * --------------------------------------------------------------
 */

TEST(calls_beyond_what_the_server_takes_wait_for_their_turn)
{
    struct grpc_session_options options = wire_options();

    options.max_streams = 2;
    start(&options);
    wire_pump(&w); /* SETTINGS */
    for (int i = 0; i < 5; i++) {
        struct wire_stream *call = wire_open(&w);

        CHECK_INT(grpc_stream_end(&call->stream, NULL, NULL), PEG_OK);
    }
    wire_pump(&w);
    CHECK_INT(w.n_server, 2);
    CHECK(!grpc_session_has_output(w.client));

    for (unsigned i = 0; i < 5; i++) {
        CHECK_INT(grpc_stream_respond(&w.at_server[i].stream, &wire_answer, true, NULL), PEG_OK);
        wire_pump(&w);
        CHECK_STR(text(&w.at_client[i]), "headers end closed:0 ");
    }
    CHECK_INT(w.n_server, 5);
    CHECK_INT(w.fed, PEG_OK);
    wire_stop(&w);
}

TEST(a_call_that_waits_and_is_dropped_is_never_heard_of)
{
    struct grpc_session_options options = wire_options();

    options.max_streams = 1;
    start(&options);
    wire_pump(&w);
    for (int i = 0; i < 3; i++)
        wire_open(&w);
    wire_pump(&w);
    grpc_stream_drop(&w.at_client[1].stream, 8);
    grpc_stream_drop(&w.at_client[0].stream, 8);
    wire_pump(&w);

    CHECK_INT(w.n_server, 2);
    CHECK_INT(w.at_server[1].stream.id, 5);
    CHECK_INT(w.fed, PEG_OK);
    wire_stop(&w);
}

TEST(goaway_ends_the_calls_that_wait)
{
    struct grpc_session_options options = wire_options();

    options.max_streams = 1;
    start(&options);
    wire_pump(&w);
    wire_open(&w);
    wire_open(&w);
    wire_pump(&w);
    grpc_session_goaway(w.server, false, 0, "");
    wire_pump(&w);

    CHECK_STR(text(&w.at_client[0]), "");
    CHECK_STR(text(&w.at_client[1]), "closed:7 ");
    CHECK_INT(wire_open(&w)->stream.id, 0); /* no more of them here */
    CHECK_STR(peg__str(w.error.code), "E_HTTP2");
    wire_stop(&w);
}

TEST(streams_are_found_among_many)
{
    start(NULL);
    for (unsigned i = 0; i < WIRE_STREAMS; i++) {
        struct wire_stream *call = wire_open(&w);

        grpc_stream_send(&call->stream, peg__str("m"), NULL);
    }
    wire_pump(&w);
    for (unsigned i = 0; i < WIRE_STREAMS; i += 3)
        grpc_stream_drop(&w.at_client[i].stream, 8);
    wire_pump(&w);
    for (unsigned i = 0; i < WIRE_STREAMS; i++)
        grpc_stream_end(&w.at_client[i].stream, NULL, NULL);
    wire_pump(&w);

    for (unsigned i = 0; i < WIRE_STREAMS; i++)
        CHECK_STR(text(&w.at_server[i]),
                  i % 3 ? "headers message:m end " : "headers message:m closed:8 ");
    wire_stop(&w);
}

/* ---- frames that are not allowed
 * -----------------------------------------------------------------
 */

/* The server with a client that is put together by hand. */
static peg_status feed_raw(struct peg__buf *out)
{
    const peg_status status =
        grpc_session_feed(w.server, (const uint8_t *)out->ptr, out->len, &w.error);

    peg__buf_clear(out);
    return status;
}

static void start_raw(struct peg__buf *out)
{
    start(NULL);
    *out = (struct peg__buf)PEG__BUF(RAW_MAX_OUT);
    raw_hello(out);
}

static void stop_raw(struct peg__buf *out)
{
    peg__buf_free(out);
    wire_stop(&w);
}

/* The code of the GOAWAY that is the last thing the server says. */
static uint32_t goaway_code(void)
{
    static uint8_t bytes[64 << 10];
    const size_t n = grpc_session_pull(w.server, bytes, sizeof(bytes));
    size_t at = 0;

    while (at + GRPC_H2_HEAD_BYTES + grpc_h2_read_head(bytes + at).len < n)
        at += GRPC_H2_HEAD_BYTES + grpc_h2_read_head(bytes + at).len;
    CHECK_INT(grpc_h2_read_head(bytes + at).type, GRPC_H2_GOAWAY);
    return grpc_h2_u32(bytes + at + GRPC_H2_HEAD_BYTES + 4);
}

TEST(what_is_wrong_is_said_to_both_sides)
{
    struct peg__buf out;

    start_raw(&out);
    raw_frame(&out, RAW_DATA, 0, 7, "x", 1);

    CHECK_INT(feed_raw(&out), PEG_EPARSE);
    CHECK_STR(peg__str(w.error.code), "E_HTTP2");
    CHECK(strstr(w.error.message, "DATA for a stream that is idle") != NULL);
    CHECK_INT(goaway_code(), GRPC_H2_PROTOCOL_ERROR);
    CHECK(grpc_session_has_sent_error(w.server));
    CHECK(grpc_session_is_over(w.server));
    raw_frame(&out, RAW_PING, 0, 0, "12345678", 8);
    CHECK_INT(feed_raw(&out), PEG_EPARSE); /* it stays so */
    CHECK_INT(w.n_pings, 0);
    stop_raw(&out);
}

TEST(headers_in_too_many_pieces_end_the_session)
{
    struct peg__buf out;

    start_raw(&out);
    raw_frame(&out, RAW_HEADERS, 0, 1, "\x83", 1);
    for (unsigned i = 0; i < PEG_LIMIT_GRPC_CONTINUATIONS; i++)
        raw_head(&out, 0, RAW_CONTINUATION, 0, 1);
    CHECK_INT(feed_raw(&out), PEG_OK);
    raw_head(&out, 0, RAW_CONTINUATION, 0, 1);

    CHECK_INT(feed_raw(&out), PEG_ELIMIT);
    CHECK(strstr(w.error.message, "CONTINUATION") != NULL);
    CHECK_INT(goaway_code(), GRPC_H2_ENHANCE_YOUR_CALM);
    stop_raw(&out);
}

TEST(who_does_not_read_answers_gets_a_bounded_number_of_them)
{
    peg_status status = PEG_OK;
    struct peg__buf out;
    unsigned n = 0;

    start_raw(&out);
    while (!status && n++ < PEG_LIMIT_GRPC_IDLE_FRAMES) {
        raw_frame(&out, RAW_PING, 0, 0, "12345678", 8);
        status = feed_raw(&out);
    }

    CHECK_INT(status, PEG_ELIMIT);
    CHECK(strstr(w.error.message, "does not read the answers") != NULL);
    CHECK(n < PEG_LIMIT_GRPC_CONTROL_BYTES / 17 + 10);
    stop_raw(&out);
}

/* A connection that is kept alive by pings, and nothing else, for a week. */
TEST(frames_that_mean_nothing_are_forgiven_when_they_take_their_time)
{
    static const uint8_t pong[] = {0, 0, 8, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    peg_status status = PEG_OK;

    start(NULL);
    wire_pump(&w);
    for (int i = 0; i < 3 * PEG_LIMIT_GRPC_IDLE_FRAMES && !status; i++) {
        if (i % 1000 == 0)
            w.server->idle_ns -= (int64_t)PEG_LIMIT_GRPC_IDLE_MS * 1000000;
        status = grpc_session_feed(w.server, pong, sizeof(pong), &w.error);
    }

    CHECK_INT(status, PEG_OK);
    wire_stop(&w);
}

/* So many calls that are refused, since there may be none and the client has not heard of it. */
static peg_status feed_invalid(struct peg__buf *out, unsigned n)
{
    static uint32_t id = 1;
    peg_status status = PEG_OK;

    for (unsigned i = 0; i < n && !status; i++, id += 2) {
        raw_headers(out, id, RAW_END_STREAM, "/a.B/C", peg__str(""));
        status = feed_raw(out);
        (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);
    }
    return status;
}

TEST(frames_that_cost_a_stream_are_forgiven_when_they_take_their_time)
{
    struct grpc_session_options options = wire_options();
    struct peg__buf out = PEG__BUF(RAW_MAX_OUT);

    options.max_streams = 0;
    start(&options);
    raw_preface(&out);
    raw_head(&out, 0, RAW_SETTINGS, 0, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(feed_invalid(&out, PEG_LIMIT_GRPC_INVALID_FRAMES - 1), PEG_OK);
        w.server->invalid_ns -= (int64_t)PEG_LIMIT_GRPC_IDLE_MS * 1000000;
    }
    CHECK_INT(feed_invalid(&out, PEG_LIMIT_GRPC_INVALID_FRAMES), PEG_OK);
    CHECK_INT(feed_invalid(&out, 1), PEG_ELIMIT);
    CHECK(strstr(w.error.message, "reset or refuse a stream") != NULL);
    stop_raw(&out);
}

/* ---- spaces around values ----------------------------------------------------------------------
 */

TEST(spaces_around_values_of_a_response_are_left_out)
{
    static const struct grpc_field spaced[] = {
        WIRE_FIELD("grpc-status", "5 "),  WIRE_FIELD("grpc-message", " not found: "),
        WIRE_FIELD("x-end", "\t yes\t"),  WIRE_FIELD("x-nothing", "  "),
        WIRE_FIELD("x-end-bin", "AAE= "),
    };
    static const struct grpc_block trailers = {.fields = spaced, .n = 5};
    const struct grpc_head *head;
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);
    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &wire_answer, false, NULL), PEG_OK);
    CHECK_INT(grpc_stream_end(&w.at_server[0].stream, &trailers, NULL), PEG_OK);
    wire_pump(&w);
    CHECK_STR(text(call), "headers end closed:0 ");
    head = &call->stream.head;
    CHECK_INT(head->code, GRPC_NOT_FOUND);
    CHECK_STR(head->message, "not found:");
    CHECK_STR(grpc_metadata_get(&head->metadata, "x-end"), "yes");
    CHECK_STR(grpc_metadata_get(&head->metadata, "x-nothing"), "");
    CHECK_INT(grpc_metadata_get(&head->metadata, "x-end-bin").len, 2);
    wire_stop(&w);
}

TEST(spaces_around_values_of_a_request_cost_the_stream)
{
    struct peg__buf more = PEG__BUF(RAW_MAX_OUT);
    struct peg__buf out;

    start_raw(&out);
    raw_field(&more, 0x40, peg__str("x-key"), peg__str(" a b "));
    raw_headers(&out, 1, RAW_END_STREAM, "/a.B/C", peg__buf_view(&more));
    raw_headers(&out, 3, RAW_END_STREAM, "/a.B/C", peg__str("\xbe")); /* the same by number */
    CHECK_INT(feed_raw(&out), PEG_OK);
    (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);
    for (unsigned i = 0; i < 2; i++)
        CHECK_STR(text(&w.at_server[i]), "closed:1 ");
    peg__buf_free(&more);
    stop_raw(&out);
}

/* ---- streams that are over ---------------------------------------------------------------------
 */

/* The server ends stream 1 before its client does, as with every call that it refuses. */
static void start_late(struct peg__buf *out)
{
    start_raw(out);
    raw_headers(out, 1, 0, "/a.B/C", peg__str(""));
    CHECK_INT(feed_raw(out), PEG_OK);
    grpc_stream_drop(&w.at_server[0].stream, GRPC_H2_NO_ERROR);
    (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);
}

TEST(what_was_on_its_way_to_a_stream_that_the_server_ended_is_taken)
{
    struct peg__buf out;

    start_late(&out);
    raw_frame(&out, RAW_DATA, 0, 1, "12345", 5);
    raw_frame(&out, RAW_DATA, RAW_PADDED, 1, "\x04xxxx", 5);
    raw_frame(&out, RAW_HEADERS, RAW_END_HEADERS | RAW_END_STREAM, 1, "\x00\x01x\x01y", 5);
    raw_headers(&out, 3, RAW_END_STREAM, "/a.B/C", peg__str(""));
    CHECK_INT(feed_raw(&out), PEG_OK);
    CHECK_INT(grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096), 0);
    CHECK_STR(text(&w.at_server[1]), "headers end ");
    stop_raw(&out);
}

TEST(bad_padding_of_late_data_ends_the_session)
{
    struct peg__buf out;

    start_late(&out);
    raw_frame(&out, RAW_DATA, RAW_PADDED, 1, "\x05xxxx", 5);
    CHECK_INT(feed_raw(&out), PEG_EPARSE);
    CHECK_INT(goaway_code(), GRPC_H2_PROTOCOL_ERROR);
    stop_raw(&out);
}

TEST(malformed_trailers_that_are_late_are_answered)
{
    uint8_t bytes[4096];
    struct peg__buf out;

    start_late(&out);
    raw_frame(&out, RAW_HEADERS, RAW_END_HEADERS | RAW_END_STREAM, 1, "\x83", 1); /* :method */
    CHECK_INT(feed_raw(&out), PEG_OK);
    CHECK_INT(grpc_session_pull(w.server, bytes, sizeof(bytes)), GRPC_H2_U32_FRAME_BYTES);
    CHECK_INT(grpc_h2_read_head(bytes).type, GRPC_H2_RST_STREAM);
    CHECK_INT(grpc_h2_u32(bytes + GRPC_H2_HEAD_BYTES), GRPC_H2_PROTOCOL_ERROR);
    stop_raw(&out);
}

TEST(a_number_that_was_skipped_long_ago_is_taken_for_late)
{
    struct peg__buf out;

    start_raw(&out);
    for (uint32_t i = 0; i <= GRPC__SKIPPED_IDS; i++)
        raw_headers(&out, 3 + 4 * i, RAW_END_STREAM, "/a.B/C", peg__str(""));
    raw_frame(&out, RAW_HEADERS, RAW_END_HEADERS | RAW_END_STREAM, 1, "\x00\x01x\x01y", 5);
    CHECK_INT(feed_raw(&out), PEG_OK);
    raw_frame(&out, RAW_HEADERS, RAW_END_HEADERS | RAW_END_STREAM, 5, "\x00\x01x\x01y", 5);
    CHECK_INT(feed_raw(&out), PEG_EPARSE);
    CHECK_INT(goaway_code(), GRPC_H2_PROTOCOL_ERROR);
    stop_raw(&out);
}

TEST(what_follows_the_final_goaway_is_bounded_in_bytes)
{
    static const char zeros[GRPC_H2_FRAME_BYTES];
    const size_t most = PEG_LIMIT_GRPC_UNWANTED_BYTES / sizeof(zeros);
    peg_status status = PEG_OK;
    struct peg__buf out;
    size_t n = 0;

    start_raw(&out);
    raw_headers(&out, 1, 0, "/a.B/C", peg__str(""));
    CHECK_INT(feed_raw(&out), PEG_OK);
    grpc_session_goaway(w.server, true, GRPC_H2_NO_ERROR, "bye");
    raw_headers(&out, 3, 0, "/a.B/C", peg__str(""));
    while (!status && n++ < 2 * most) {
        raw_frame(&out, RAW_DATA, 0, 3, zeros, sizeof(zeros));
        /* What the open stream receives forgives frames without progress, but not these. */
        raw_frame(&out, RAW_DATA, 0, 1, "\0\0\0\0\0", 5);
        status = feed_raw(&out);
        while (!status && grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096) > 0)
            ;
    }
    CHECK_INT(status, PEG_ELIMIT);
    CHECK(n >= most - 1 && n <= most);
    CHECK(strstr(w.error.message, "streams after GOAWAY") != NULL);
    CHECK_INT(goaway_code(), GRPC_H2_ENHANCE_YOUR_CALM);
    stop_raw(&out);
}

/* The path names a method, and a space is part of no name. */
TEST(spaces_around_a_pseudo_field_cost_the_stream)
{
    struct peg__buf out;

    start_raw(&out);
    raw_headers(&out, 1, RAW_END_STREAM, "/a.B/C ", peg__str(""));
    CHECK_INT(feed_raw(&out), PEG_OK);
    (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);
    CHECK_STR(text(&w.at_server[0]), "closed:1 ");
    stop_raw(&out);
}

/* RFC 9113, 8.3.1: it is required of no request but CONNECT. */
TEST(a_request_need_not_name_its_authority)
{
    static const char fields[] = "\x83\x86\x04\x06/a.B/C"; /* :method POST, :scheme, :path */
    struct peg__buf out;

    start_raw(&out);
    raw_frame(&out, RAW_HEADERS, RAW_END_HEADERS | RAW_END_STREAM, 1, fields, sizeof(fields) - 1);
    CHECK_INT(feed_raw(&out), PEG_OK);
    CHECK_STR(text(&w.at_server[0]), "headers end ");
    CHECK_INT(w.at_server[0].stream.head.authority.len, 0);
    stop_raw(&out);
}

/* ---- the rest ----------------------------------------------------------------------------------
 */

TEST(a_window_that_opens_by_nothing_costs_the_stream)
{
    struct peg__buf out;

    start_raw(&out);
    raw_headers(&out, 1, 0, "/a.B/C", peg__str(""));
    raw_u32_frame(&out, RAW_WINDOW_UPDATE, 1, 0);
    CHECK_INT(feed_raw(&out), PEG_OK);
    CHECK_STR(text(&w.at_server[0]), "headers ");
    (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);

    CHECK_STR(text(&w.at_server[0]), "headers closed:1 ");
    stop_raw(&out);
}

TEST(padding_counts_for_the_window_and_is_given_back)
{
    static const char zeros[16384];
    char padded[1 + 5 + 200] = {(char)200};
    struct peg__buf out;

    start_raw(&out);
    raw_headers(&out, 1, 0, "/a.B/C", peg__str(""));
    for (int i = 0; i < 1000; i++) { /* 206,000 bytes on a window of 64 KiB */
        raw_frame(&out, RAW_DATA, RAW_PADDED, 1, padded, sizeof(padded));
        CHECK_INT(feed_raw(&out), PEG_OK);
        (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);
    }
    CHECK_INT(w.at_server[0].n_messages, 1000);
    grpc_stream_pause(&w.at_server[0].stream);
    for (int i = 0; i < 5; i++)
        raw_frame(&out, RAW_DATA, 0, 1, zeros, sizeof(zeros));
    CHECK_INT(feed_raw(&out), PEG_OK);
    (void)grpc_session_pull(w.server, (uint8_t[4096]){0}, 4096);

    CHECK(strstr(w.at_server[0].log, "closed:3") != NULL); /* FLOW_CONTROL_ERROR */
    stop_raw(&out);
}

TEST(a_client_that_goes_away_may_still_hear_its_answers)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);
    grpc_session_goaway(w.client, true, 0, "");
    wire_pump(&w);
    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &wire_answer, true, NULL), PEG_OK);
    wire_pump(&w);

    CHECK_STR(text(call), "headers end closed:0 ");
    CHECK(grpc_session_is_over(w.client));
    CHECK(grpc_session_is_over(w.server));
    wire_stop(&w);
}

TEST(names_of_errors_are_those_of_http2)
{
    CHECK_STR(peg__str(grpc_h2_error_name(GRPC_H2_CANCEL)), "CANCEL");
    CHECK_STR(peg__str(grpc_h2_error_name(GRPC_H2_HTTP_1_1_REQUIRED)), "HTTP_1_1_REQUIRED");
    CHECK_STR(peg__str(grpc_h2_error_name(99)), "an unknown error");
}
