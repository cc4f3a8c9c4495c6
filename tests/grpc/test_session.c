/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "grpc/wire.h"
#include "t.h"

/* ---- fixture: a large thing, so it is static and emptied for each test -------------------------
 */

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

static char large[300 << 10];

/* ---- one call
 * ------------------------------------------------------------------------------------ */

TEST(a_unary_call_goes_there_and_back)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    CHECK_INT(grpc_stream_send(&call->stream, peg__str("hello"), NULL), PEG_OK);
    CHECK_INT(grpc_stream_end(&call->stream, NULL, NULL), PEG_OK);
    wire_pump(&w);
    CHECK_STR(text(&w.at_server[0]), "headers message:hello end ");
    CHECK_STR(w.at_server[0].stream.head.path, "/a.B/C");
    CHECK_INT(w.at_server[0].stream.head.timeout_ns, 100000000);
    CHECK_STR(grpc_metadata_get(&w.at_server[0].stream.head.metadata, "x-key"), "value");

    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &wire_answer, false, NULL), PEG_OK);
    CHECK_INT(grpc_stream_send(&w.at_server[0].stream, peg__str("world"), NULL), PEG_OK);
    CHECK_INT(grpc_stream_end(&w.at_server[0].stream, &wire_trailers, NULL), PEG_OK);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers message:hello end closed:0 ");
    CHECK_STR(text(call), "headers message:world end closed:0 ");
    CHECK(call->stream.head.has_status);
    CHECK_INT(call->stream.head.code, GRPC_OK);
    CHECK_STR(grpc_metadata_get(&call->stream.head.metadata, "x-end"), "yes");
    CHECK_INT(grpc_session_n_streams(w.client), 0);
    CHECK_INT(grpc_session_n_streams(w.server), 0);
    wire_stop(&w);
}

TEST(bytes_may_come_one_by_one)
{
    struct wire_stream *call;

    start(NULL);
    w.piece = 1;
    call = wire_open(&w);
    grpc_stream_send(&call->stream, peg__str("hello"), NULL);
    grpc_stream_send(&call->stream, peg__str(""), NULL);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers message:hello message: end ");
    CHECK_INT(grpc_session_held(w.server), 0);
    wire_stop(&w);
}

TEST(a_block_alone_is_the_whole_answer)
{
    static const struct grpc_field fields[] = {
        WIRE_FIELD(":status", "200"), WIRE_FIELD("content-type", "application/grpc"),
        WIRE_FIELD("grpc-status", "5"), WIRE_FIELD("grpc-message", "no%20such")};
    const struct grpc_block block = {.fields = fields, .n = 4};
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);
    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &block, true, NULL), PEG_OK);
    wire_pump(&w);

    CHECK_STR(text(call), "headers end closed:0 ");
    CHECK_INT(call->stream.head.code, GRPC_NOT_FOUND);
    CHECK_STR(call->stream.head.message, "no such");
    wire_stop(&w);
}

TEST(an_answer_ends_a_stream_whose_client_goes_on_talking)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    wire_pump(&w);
    grpc_stream_respond(&w.at_server[0].stream, &wire_answer, false, NULL);
    grpc_stream_end(&w.at_server[0].stream, &wire_trailers, NULL);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers closed:0 ");
    CHECK_STR(text(call), "headers end closed:0 ");
    wire_stop(&w);
}

TEST(what_is_queued_before_the_stream_is_open_is_sent)
{
    struct wire_stream *call = &w.at_client[0];

    start(NULL);
    wire_ready(&w, call);
    grpc_stream_send(&call->stream, peg__str("early"), NULL);
    grpc_stream_end(&call->stream, NULL, NULL);
    CHECK_INT(grpc_stream_open(&call->stream, w.client, &wire_request, NULL), PEG_OK);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers message:early end ");
    wire_stop(&w);
}

TEST(a_refused_stream_tells_that_nothing_happened)
{
    struct wire_stream *call;

    start(NULL);
    w.server_refuses = true;
    call = wire_open(&w);
    grpc_stream_send(&call->stream, peg__str("x"), NULL);
    wire_pump(&w);

    CHECK_STR(text(call), "closed:7 ");
    wire_stop(&w);
}

/* ---- large messages, windows, bounds
 * ---------------------------------------------------------------- */

TEST(a_message_larger_than_the_window_arrives)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    CHECK_INT(grpc_stream_send(&call->stream, peg__strn(large, sizeof(large)), NULL), PEG_OK);
    CHECK(!grpc_stream_is_writable(&call->stream));
    wire_pump(&w);

    CHECK_INT(w.at_server[0].n_bytes, sizeof(large));
    CHECK_STR(text(call), "writable ");
    CHECK(grpc_stream_is_writable(&call->stream));
    wire_stop(&w);
}

/* A blob whose last reference is the test's, if the stream has given its own back. */
static struct peg__blob *shared_blob(void)
{
    struct peg__blob *blob = peg__blob_new(sizeof(large));

    for (size_t i = 0; i < sizeof(large); i++)
        blob->bytes[i] = (char)('a' + i % 17);
    return blob;
}

static struct wire_stream *answer_shared(struct peg__blob *blob)
{
    struct wire_stream *call = wire_open(&w);

    CHECK_INT(grpc_stream_end(&call->stream, NULL, NULL), PEG_OK);
    wire_pump(&w);
    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &wire_answer, false, NULL), PEG_OK);
    CHECK_INT(grpc_stream_send_shared(&w.at_server[0].stream, peg__str("head "), blob,
                                      peg__str_from(peg__blob_str(blob), 3), NULL),
              PEG_OK);
    return call;
}

static uint64_t hash_of_shared(const char *head, const struct peg__blob *blob, size_t from)
{
    struct peg__buf whole = PEG__BUF(sizeof(large) + 100);
    uint64_t hash;

    peg__buf_puts(&whole, head);
    peg__buf_str(&whole, peg__str_from(peg__blob_str(blob), from));
    hash = peg__hash((struct peg__hash_key){1, 2}, peg__buf_view(&whole));
    peg__buf_free(&whole);
    return hash;
}

TEST(a_message_whose_end_is_shared_arrives_whole_and_gives_it_back)
{
    struct peg__blob *blob = shared_blob();
    struct wire_stream *call;

    start(NULL);
    call = answer_shared(blob);
    CHECK_INT(blob->n_refs, 2);
    CHECK(!grpc_stream_is_writable(&w.at_server[0].stream));
    CHECK_INT(grpc_stream_end(&w.at_server[0].stream, &wire_trailers, NULL), PEG_OK);
    wire_pump(&w);

    CHECK_INT(call->n_messages, 1);
    CHECK_INT(call->n_bytes, 5 + sizeof(large) - 3);
    CHECK(call->hash == hash_of_shared("head ", blob, 3));
    CHECK_INT(call->stream.head.code, GRPC_OK);
    CHECK_INT(blob->n_refs, 1);
    peg__blob_unref(blob);
    wire_stop(&w);
}

TEST(nothing_follows_a_message_whose_end_is_shared)
{
    struct peg__blob *blob = shared_blob();
    peg_error error;

    start(NULL);
    (void)answer_shared(blob);
    CHECK_INT(grpc_stream_send(&w.at_server[0].stream, peg__str("x"), &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_GRPC_STATE");
    wire_stop(&w);
    CHECK_INT(blob->n_refs, 1);
    peg__blob_unref(blob);
}

TEST(a_reset_stream_gives_back_what_it_shares)
{
    struct peg__blob *blob = shared_blob();

    start(NULL);
    (void)answer_shared(blob);
    grpc_stream_reset(&w.at_server[0].stream, 2);
    wire_pump(&w);

    CHECK_INT(blob->n_refs, 1);
    peg__blob_unref(blob);
    wire_stop(&w);
}

TEST(a_paused_stream_holds_no_more_than_its_window)
{
    struct wire_stream *call;
    struct wire_stream *at_server = &w.at_server[0];

    start(NULL);
    call = wire_open(&w);
    wire_pump(&w);
    grpc_stream_pause(&at_server->stream);
    for (int i = 0; i < 100; i++)
        CHECK_INT(grpc_stream_send(&call->stream, peg__strn(large, 10 << 10), NULL), PEG_OK);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);

    CHECK_INT(at_server->n_messages, 0);
    CHECK(grpc_session_held(w.server) <= 64 << 10);
    CHECK(grpc_session_held(w.server) > 32 << 10);

    grpc_stream_resume(&at_server->stream);
    wire_pump(&w);
    CHECK_INT(at_server->n_messages, 100);
    CHECK_INT(grpc_session_held(w.server), 0);
    CHECK(at_server->stream.reported_remote_end);
    wire_stop(&w);
}

TEST(a_paused_stream_does_not_stop_the_others)
{
    struct wire_stream *slow;
    struct wire_stream *fast;

    start(NULL);
    slow = wire_open(&w);
    wire_pump(&w);
    grpc_stream_pause(&w.at_server[0].stream);
    grpc_stream_send(&slow->stream, peg__strn(large, sizeof(large)), NULL);
    wire_pump(&w);
    fast = wire_open(&w);
    for (int i = 0; i < 20; i++)
        grpc_stream_send(&fast->stream, peg__strn(large, sizeof(large)), NULL);
    wire_pump(&w);

    CHECK_INT(w.at_server[0].n_messages, 0);
    CHECK_INT(w.at_server[1].n_messages, 20);
    wire_stop(&w);
}

TEST(a_handler_that_pauses_at_each_message_gets_one_at_a_time)
{
    struct wire_stream *call;
    struct wire_stream *at_server = &w.at_server[0];

    start(NULL);
    at_server->pauses_at_message = true;
    call = wire_open(&w);
    for (int i = 0; i < 3; i++)
        grpc_stream_send(&call->stream, peg__str("m"), NULL);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);
    CHECK_STR(text(at_server), "headers message:m ");

    grpc_stream_resume(&at_server->stream);
    CHECK_STR(text(at_server), "headers message:m message:m ");
    grpc_stream_resume(&at_server->stream);
    CHECK_STR(text(at_server), "headers message:m message:m message:m ");
    grpc_stream_resume(&at_server->stream);
    CHECK_STR(text(at_server), "headers message:m message:m message:m end ");
    wire_stop(&w);
}

TEST(a_message_above_the_limit_breaks_its_stream_at_its_first_bytes)
{
    struct wire_stream *call;

    start(NULL);
    w.max_message = 1000;
    call = wire_open(&w);
    grpc_stream_send(&call->stream, peg__strn(large, 1001), NULL);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers broken:RESOURCE_EXHAUSTED ");
    CHECK_INT(grpc_session_held(w.server), 0);
    wire_stop(&w);
}

TEST(unfinished_messages_of_all_streams_are_bounded_together)
{
    struct grpc_session_options options = wire_options();
    const struct wire_stream *broken = NULL;
    unsigned n_broken = 0;

    options.max_held = 1 << 20;
    start(&options);
    for (int i = 0; i < 10; i++) {
        struct wire_stream *call = wire_open(&w);
        uint8_t prefix[GRPC_PREFIX_BYTES];

        /* Says that 3 MB come, sends 200 KB of them. */
        grpc_prefix_write(prefix, false, 3 << 20);
        peg__buf_add(&call->stream.out, prefix, sizeof(prefix));
        peg__buf_add(&call->stream.out, large, 200 << 10);
        call->stream.session = w.client;
        grpc_stream_send(&call->stream, peg__str(""), NULL);
    }
    wire_pump(&w);

    for (int i = 0; i < 10; i++) {
        n_broken += w.at_server[i].stream.is_broken;
        broken = w.at_server[i].stream.is_broken ? &w.at_server[i] : broken;
    }
    CHECK(n_broken >= 4);
    CHECK(grpc_session_held(w.server) <= (1 << 20) + (64 << 10));
    CHECK(strstr(broken->broken.message.ptr, "unfinished messages") != NULL);
    wire_stop(&w);
}

TEST(what_waits_to_be_sent_is_bounded)
{
    struct wire_stream *call;
    peg_error error;

    start(NULL);
    call = wire_open(&w);
    call->stream.max_out = 1000;
    CHECK_INT(grpc_stream_send(&call->stream, peg__strn(large, 5000), &error), PEG_OK);
    CHECK_INT(grpc_stream_send(&call->stream, peg__strn(large, 1), &error), PEG_ELIMIT);

    CHECK_STR(peg__str(error.code), "E_SEND_QUEUE_FULL");
    wire_stop(&w);
}

TEST(what_waits_to_be_sent_on_a_connection_is_bounded)
{
    struct grpc_session_options options = wire_options();
    peg_error error;
    unsigned n_refused = 0;

    options.max_held = 1 << 20;
    start(&options);
    for (int i = 0; i < 10; i++)
        wire_open(&w);
    wire_pump(&w);
    for (int i = 0; i < 10; i++) {
        grpc_stream_respond(&w.at_server[i].stream, &wire_answer, false, NULL);
        if (grpc_stream_send(&w.at_server[i].stream, peg__strn(large, 200 << 10), &error))
            n_refused++;
    }

    CHECK_INT(n_refused, 5);
    CHECK(strstr(error.message, "wait to be sent") != NULL);
    wire_pump(&w);
    CHECK_INT(grpc_stream_send(&w.at_server[9].stream, peg__strn(large, 200 << 10), NULL), PEG_OK);
    wire_stop(&w);
}

TEST(headers_above_the_limit_break_the_stream_when_they_are_whole)
{
    struct grpc_field fields[100];
    struct grpc_block block = {.fields = fields, .n = 100};
    struct wire_stream *call = &w.at_client[0];

    start(NULL);
    for (int i = 0; i < 8; i++)
        fields[i] = wire_request_fields[i];
    for (int i = 8; i < 100; i++)
        fields[i] = (struct grpc_field){PEG_LIT("x-large"), {large, 300}};
    memset(large, 'a', 300);
    wire_ready(&w, call);
    grpc_stream_open(&call->stream, w.client, &block, NULL);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "broken:RESOURCE_EXHAUSTED ");
    wire_stop(&w);
}

TEST(a_stream_that_ends_within_a_message_is_broken)
{
    struct wire_stream *call;
    static const uint8_t part[] = {0, 0, 0, 0, 9, 'x'};

    start(NULL);
    call = wire_open(&w);
    peg__buf_add(&call->stream.out, part, sizeof(part));
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers broken:INTERNAL ");
    wire_stop(&w);
}

/* ---- ends
 * -------------------------------------------------------------------------------------------- */

TEST(a_stream_dropped_by_the_client_is_closed_at_the_server)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    wire_pump(&w);
    grpc_stream_drop(&call->stream, 8);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers closed:8 ");
    CHECK_STR(text(call), "");
    wire_stop(&w);
}

TEST(a_stream_dropped_before_it_was_sent_is_never_heard_of)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    grpc_stream_drop(&call->stream, 8);
    wire_pump(&w);

    CHECK_INT(w.n_server, 0);
    CHECK_INT(w.fed, PEG_OK);
    CHECK_INT(grpc_session_n_streams(w.client), 0);
    wire_stop(&w);
}

TEST(a_stream_may_be_dropped_within_its_own_event)
{
    struct wire_stream *call;

    start(NULL);
    w.at_server[0].drops_at_message = true;
    call = wire_open(&w);
    for (int i = 0; i < 3; i++)
        grpc_stream_send(&call->stream, peg__str("m"), NULL);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers message:m ");
    CHECK_STR(text(call), "closed:8 ");
    wire_stop(&w);
}

TEST(a_reset_stream_tells_both_ends)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    wire_pump(&w);
    grpc_stream_reset(&w.at_server[0].stream, 2);
    wire_pump(&w);

    CHECK_STR(text(&w.at_server[0]), "headers closed:2 ");
    CHECK_STR(text(call), "closed:2 ");
    wire_stop(&w);
}

TEST(every_stream_hears_of_the_end_of_its_session)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    wire_open(&w);
    wire_pump(&w);
    w.client = grpc_session_free(w.client);
    w.server = grpc_session_free(w.server);

    CHECK_STR(text(call), "closed:8 ");
    CHECK_STR(text(&w.at_server[1]), "headers closed:10 ");
    CHECK_INT(grpc_stream_send(&call->stream, peg__str("x"), NULL), PEG_OK);
    grpc_stream_drop(&call->stream, 8);
    wire_stop(&w);
}

TEST(goaway_lets_what_runs_go_on)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    grpc_stream_end(&call->stream, NULL, NULL);
    wire_pump(&w);
    grpc_session_goaway(w.server, false, 0, "");
    grpc_session_goaway(w.server, true, 0, "bye");
    wire_pump(&w);
    CHECK_INT(w.n_goaways, 2);
    CHECK_INT(w.last_id, 1);

    grpc_stream_respond(&w.at_server[0].stream, &wire_answer, false, NULL);
    grpc_stream_end(&w.at_server[0].stream, &wire_trailers, NULL);
    wire_pump(&w);
    CHECK_STR(text(call), "headers end closed:0 ");
    CHECK(grpc_session_is_over(w.server));
    wire_stop(&w);
}

TEST(a_ping_is_answered)
{
    start(NULL);
    grpc_session_ping(w.client);
    wire_pump(&w);

    CHECK_INT(w.n_pings, 1);
    CHECK_INT(w.n_pongs, 1);
    wire_stop(&w);
}

/* ---- hostile peers
 * -------------------------------------------------------------------------------------- */

TEST(a_session_tells_once_that_it_has_said_more)
{
    struct wire_stream *call;

    start(NULL);
    call = wire_open(&w);
    CHECK_INT(grpc_stream_end(&call->stream, NULL, NULL), PEG_OK);
    wire_pump(&w);
    CHECK(!grpc_session_has_new_output(w.server));
    grpc_session_ping(w.client);
    wire_pump(&w);
    CHECK(!grpc_session_has_new_output(w.server)); /* the answer to a ping does not count */

    CHECK_INT(grpc_stream_respond(&w.at_server[0].stream, &wire_answer, false, NULL), PEG_OK);
    CHECK(grpc_session_has_new_output(w.server));
    wire_pump(&w);
    CHECK_INT(grpc_stream_send(&w.at_server[0].stream, peg__str("world"), NULL), PEG_OK);
    CHECK(!grpc_session_has_new_output(w.server)); /* it has not gone out */
    wire_pump(&w);
    CHECK(grpc_session_has_new_output(w.server));
    CHECK(!grpc_session_has_new_output(w.server));
    wire_stop(&w);
}

TEST(what_is_no_http2_ends_the_session)
{
    start(NULL);
    CHECK_INT(
        grpc_session_feed(w.server, (const uint8_t *)"GET / HTTP/1.1\r\n\r\n....", 22, &w.error),
        PEG_EPARSE);
    CHECK_STR(peg__str(w.error.code), "E_HTTP2");
    wire_stop(&w);
}

TEST(a_flood_of_frames_that_mean_nothing_ends_the_session)
{
    static const uint8_t window_update[] = {0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    peg_status status = PEG_OK;

    start(NULL);
    wire_pump(&w);
    for (int i = 0; i < PEG_LIMIT_GRPC_IDLE_FRAMES + 1 && !status; i++)
        status = grpc_session_feed(w.server, window_update, sizeof(window_update), &w.error);

    CHECK_INT(status, PEG_ELIMIT);
    CHECK_STR(peg__str(w.error.code), "E_HTTP2_LIMIT");
    CHECK(strstr(w.error.message, "frames without progress") != NULL);
    wire_stop(&w);
}

TEST(more_streams_than_agreed_are_refused)
{
    struct grpc_session_options options = wire_options();
    unsigned n_refused = 0;

    options.max_streams = 3;
    start(&options);
    /* The client has not heard of the limit yet. */
    for (int i = 0; i < 5; i++)
        wire_open(&w);
    wire_pump(&w);

    for (int i = 0; i < 5; i++)
        n_refused += strstr(w.at_client[i].log, "closed:7") != NULL;
    CHECK_INT(n_refused, 2);
    CHECK_INT(w.n_server, 3);
    CHECK_INT(grpc_session_peer_max_streams(w.client), 3);
    wire_stop(&w);
}

TEST(a_client_that_resets_too_many_streams_is_sent_away)
{
    struct grpc_session_options options = wire_options();

    options.reset_burst = 5;
    options.reset_per_s = 1;
    start(&options);
    for (int i = 0; i < 20; i++) {
        struct wire_stream *call = wire_open(&w);

        wire_pump(&w);
        if (w.n_goaways)
            break;
        grpc_stream_drop(&call->stream, 8);
        wire_pump(&w);
    }

    CHECK(w.n_goaways > 0);
    CHECK(w.n_server < 10);
    wire_stop(&w);
}

/* ---- out of memory
 * ----------------------------------------------------------------------------------------- */

static peg_status status_of(const struct wire_stream *call)
{
    return strstr(call->log, "headers message:world end closed:0") ? PEG_OK : PEG_ENOMEM;
}

TORTURE(a_call_survives_any_allocation_failure)
{
    struct wire_stream *call;
    peg_status status;

    w = (struct wire){0};
    status = wire_start(&w, NULL);
    if (!status) {
        call = wire_open(&w);
        grpc_stream_send(&call->stream, peg__str("hello"), NULL);
        grpc_stream_end(&call->stream, NULL, NULL);
        wire_pump(&w);
        if (w.n_server > 0 && w.at_server[0].stream.reported_remote_end) {
            struct grpc_stream *stream = &w.at_server[0].stream;

            if (grpc_stream_respond(stream, &wire_answer, false, NULL) ||
                grpc_stream_send(stream, peg__str("world"), NULL) ||
                grpc_stream_end(stream, &wire_trailers, NULL))
                grpc_stream_reset(stream, 2);
        }
        wire_pump(&w);
        status = status_of(call);
    }
    wire_stop(&w);
    return status;
}
