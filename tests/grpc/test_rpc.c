/* SPDX-License-Identifier: Apache-2.0 */

/* Calls of a client, against a server that answers well and badly. */

#include "grpc/client/client.h"

#include <malloc.h>

#include "client_world.h"

METHOD(echo, "/f/echo", false, false);
METHOD(collect, "/f/collect", true, false);
METHOD(head, "/f/head", false, false);
METHOD(never, "/f/never", false, false);
METHOD(two, "/f/two", false, false);
METHOD(two_streamed, "/f/two", false, true);
METHOD(none, "/f/none", false, false);
METHOD(none_streamed, "/f/none", false, true);
METHOD(http503, "/f/http503", false, false);
METHOD(html, "/f/html", false, false);
METHOD(no_status, "/f/no-status", false, false);
METHOD(no_trailers, "/f/no-trailers", false, false);
METHOD(fail, "/f/fail", false, false);
METHOD(late_fail, "/f/late-fail", false, false);
METHOD(flag, "/f/flag", false, false);
METHOD(early, "/f/early", true, false);
METHOD(chat, "/f/echo", true, true);
METHOD(silent_chat, "/f/never", true, true);
METHOD(many, "/f/many", false, true);
METHOD(half, "/f/half", false, false);

/* ---- answers ------------------------------------------------------------------------------ */

TEST(a_call_is_answered)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &echo, "hello");

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "hello");
    CHECK_INT(o.n_messages, 1);
    CHECK_INT(o.n_headers, 1);
    CHECK_STR(peg__str(o.header), "yes");
    CHECK_STR(peg__str(o.trailer), "bye");
    CHECK_STR(peg__str(o.peer), w.fake.target);
    CHECK(o.was_sent);
    CHECK_INT(grpc_channel_n_calls(w.channel), 0);
    world_done(&w);
}

TEST(many_calls_one_after_the_other_use_one_connection)
{
    struct world w;

    world_init(&w);
    for (unsigned i = 0; i < 50; i++)
        CHECK_INT(call(&w, &echo, "again").code, GRPC_OK);

    CHECK_INT(w.fake.n_connections, 1);
    CHECK_INT(w.fake.n_reset, 0);
    world_done(&w);
}

TEST(many_calls_at_once_are_all_answered)
{
    enum { N = 300 }; /* three times what the server takes at once */
    static struct outcome outcomes[N];
    struct world w;

    world_init(&w);
    memset(outcomes, 0, sizeof(outcomes));
    for (unsigned i = 0; i < N; i++)
        CHECK_INT(begin(&w, &echo, "x", NULL, &outcomes[i]), PEG_OK);
    world_run(&w);

    for (unsigned i = 0; i < N; i++) {
        CHECK_INT(outcomes[i].n_ends, 1);
        CHECK_INT(outcomes[i].code, GRPC_OK);
        CHECK_INT(outcomes[i].n_messages, 1);
    }
    CHECK_INT(w.fake.n_calls, N);
    world_done(&w);
}

TEST(the_headers_are_those_of_the_protocol)
{
    struct world w;
    struct outcome o = {0};
    struct grpc_metadata metadata = {0};
    struct peg__arena arena = {0};
    const struct grpc_rpc_options options = {
        .timeout_ms = 60000, .uses_gzip = true, .metadata = &metadata};
    char expected[NET_ADDRESS_TEXT + 128];

    world_init(&w);
    grpc_metadata_add(&metadata, &arena, peg__str("x-key"), peg__str("value"), NULL);
    grpc_metadata_add(&metadata, &arena, peg__str("x-key-bin"), peg__strn("\0\1\2\3", 4), NULL);
    CHECK_INT(begin(&w, &head, "", &options, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    snprintf(expected, sizeof(expected),
             "POST %s te=1 timeout=1 gzip=1 encoding=gzip agent=grpc-c-pegboard/" PEG_VERSION
             " key=value bin=4",
             w.fake.target);
    CHECK_STR(peg__str(o.last), expected);
    peg__arena_free(&arena);
    world_done(&w);
}

TEST(an_agent_and_an_authority_can_be_set)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.user_agent = "mine/1", .authority = "me:1"};
    struct outcome o;

    world_init_with(&w, &options);
    o = call(&w, &head, "");

    CHECK_STR(peg__str(o.last), "POST me:1 te=1 timeout=0 gzip=1 encoding= agent=mine/1 "
                                "grpc-c-pegboard/" PEG_VERSION " key= bin=0");
    world_done(&w);
}

TEST(a_compressed_request_arrives)
{
    struct world w;
    struct outcome o = {0};
    const struct grpc_rpc_options options = {.uses_gzip = true};
    char text[401];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    world_init(&w);
    CHECK_INT(begin(&w, &echo, text, &options, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), text);
    world_done(&w);
}

TEST(a_status_comes_with_words_details_and_trailers)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &fail, "");

    CHECK_INT(o.code, GRPC_NOT_FOUND);
    CHECK_STR(peg__str(o.words), "no \xc3\xa4");
    CHECK_INT(o.details_len, 2);
    CHECK_INT(o.trailer_bin_len, 3);
    CHECK_INT(o.n_headers, 0); /* trailers only */
    world_done(&w);
}

TEST(a_status_after_a_message_is_the_end)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &late_fail, "x");

    CHECK_INT(o.n_messages, 1);
    CHECK_INT(o.code, GRPC_ABORTED);
    CHECK_STR(peg__str(o.words), "too late");
    world_done(&w);
}

TEST(answers_that_are_no_grpc_are_told_apart)
{
    static const struct {
        const struct grpc_method *method;
        enum grpc_code code;
    } cases[] = {
        {&two, GRPC_INTERNAL},         {&none, GRPC_INTERNAL},     {&http503, GRPC_UNAVAILABLE},
        {&html, GRPC_UNKNOWN},         {&no_status, GRPC_UNKNOWN}, {&flag, GRPC_INTERNAL},
        {&no_trailers, GRPC_INTERNAL},
    };
    struct world w;
    struct outcome o;

    world_init(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        o = call(&w, cases[i].method, "x");
        if (o.code != cases[i].code)
            printf("# %s: %s\n", cases[i].method->path, o.words);
        CHECK_INT(o.code, cases[i].code);
        CHECK(o.words[0]);
    }
    /* the connection is none the worse for it */
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 1);
    world_done(&w);
}

TEST(a_streaming_answer_may_have_any_number_of_messages)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &two_streamed, "");
    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.n_messages, 2);
    o = call(&w, &none_streamed, "");
    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.n_messages, 0);
    world_done(&w);
}

TEST(resets_have_the_codes_of_the_protocol)
{
    static const struct {
        struct grpc_method method;
        enum grpc_code code;
    } cases[] = {
        {{.path = "/f/reset-0"}, GRPC_INTERNAL},
        {{.path = "/f/reset-2"}, GRPC_INTERNAL},
        {{.path = "/f/reset-7"}, GRPC_UNAVAILABLE},
        {{.path = "/f/reset-8"}, GRPC_CANCELLED},
        {{.path = "/f/reset-11"}, GRPC_RESOURCE_EXHAUSTED},
        {{.path = "/f/reset-12"}, GRPC_PERMISSION_DENIED},
    };
    struct world w;

    world_init(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct outcome o = call(&w, &cases[i].method, "x");

        CHECK_INT(o.code, cases[i].code);
        CHECK(strstr(o.words, "HTTP/2 error"));
    }
    world_done(&w);
}

static size_t heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

TEST(calls_that_ended_within_a_large_message_leave_little_to_the_next)
{
    enum { N = 40, REST = 10 << 20 };
    static struct outcome outcomes[N];
    struct world w;
    size_t before;

    world_init(&w);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    before = heap_bytes();
    memset(outcomes, 0, sizeof(outcomes));
    for (unsigned i = 0; i < N; i++)
        CHECK_INT(begin(&w, &half, "x", NULL, &outcomes[i]), PEG_OK);
    world_run(&w);

    for (unsigned i = 0; i < N; i++)
        CHECK_INT(outcomes[i].code, GRPC_INTERNAL);
    CHECK(heap_bytes() < before + REST);
    world_done(&w);
}

TEST(an_answer_that_is_too_large_ends_the_call)
{
    struct world w;
    struct outcome o = {0};
    const struct grpc_rpc_options options = {.max_message_bytes = 10};

    world_init(&w);
    CHECK_INT(begin(&w, &echo, "more than ten bytes", &options, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_RESOURCE_EXHAUSTED);
    CHECK_INT(o.n_messages, 0);
    world_done(&w);
}

/* ---- streaming ---------------------------------------------------------------------------- */

TEST(a_chat_goes_both_ways)
{
    struct world w;
    struct outcome o = {.stops_at_message = true};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &chat, NULL, &o), PEG_OK);
    for (unsigned i = 0; i < 10; i++) {
        char text[16];

        snprintf(text, sizeof(text), "m%u", i);
        CHECK_INT(grpc_rpc_send(o.rpc, peg__str(text), NULL), PEG_OK);
        world_run(&w);
        CHECK_INT(o.n_messages, i + 1);
        CHECK_STR(peg__str(o.last), text);
    }
    grpc_rpc_half_close(o.rpc);
    grpc_rpc_half_close(o.rpc);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("x"), NULL), PEG_ESTATE);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    world_done(&w);
}

TEST(what_is_said_before_there_is_a_connection_is_not_lost)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &collect, NULL, &o), PEG_OK);
    CHECK_STR(peg__str(grpc_rpc_peer(o.rpc)), "");
    CHECK(!grpc_rpc_was_sent(o.rpc));
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("a"), NULL), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str(""), NULL), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("bc"), NULL), PEG_OK);
    grpc_rpc_half_close(o.rpc);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "abc");
    world_done(&w);
}

TEST(a_server_may_answer_before_it_has_heard_everything)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &early, NULL, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "early");
    world_await(&w, &w.fake.n_closed, 1);
    world_done(&w);
}

TEST(the_queue_of_a_call_is_bounded)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.max_send_bytes = 1000};
    struct outcome o = {0};
    char text[600];

    memset(text, 'x', sizeof(text));
    world_init_with(&w, &options);
    CHECK_INT(begin_stream(&w, &collect, NULL, &o), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(text, sizeof(text)), NULL), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(text, sizeof(text)), &w.error), PEG_ELIMIT);
    CHECK_STR(peg__str(w.error.code), "E_SEND_QUEUE_FULL");
    grpc_rpc_half_close(o.rpc);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.last_len, 600);
    world_done(&w);
}

TEST(a_full_call_becomes_writable_again)
{
    struct world w;
    struct outcome o = {0};
    static char text[30000];

    memset(text, 'x', sizeof(text));
    world_init(&w);
    CHECK_INT(begin_stream(&w, &collect, NULL, &o), PEG_OK);
    CHECK(grpc_rpc_is_writable(o.rpc));
    while (grpc_rpc_is_writable(o.rpc))
        CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(text, sizeof(text)), NULL), PEG_OK);
    for (unsigned i = 0; i < 20000 && o.n_writable == 0; i++)
        world_nap(&w, 1);
    CHECK(o.n_writable > 0);
    CHECK(grpc_rpc_is_writable(o.rpc));
    grpc_rpc_half_close(o.rpc);
    CHECK(!grpc_rpc_is_writable(o.rpc));
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.last_len, 3 * 30000);
    world_done(&w);
}

TEST(a_paused_call_hears_nothing_until_it_is_resumed)
{
    struct world w;
    struct outcome o = {.pauses_at_message = true, .stops_at_message = true};

    world_init(&w);
    CHECK_INT(begin(&w, &many, "", NULL, &o), PEG_OK);
    world_run(&w);
    CHECK_INT(o.n_messages, 1);
    world_await(&w, &w.fake.n_closed, 1); /* the server has said everything */
    world_nap(&w, 10);
    CHECK_INT(o.n_messages, 1);
    CHECK_INT(o.n_ends, 0);

    grpc_rpc_resume(o.rpc); /* one more, which pauses it again */
    for (unsigned i = 0; i < 20000 && o.n_messages < 2; i++)
        world_nap(&w, 1);
    CHECK_INT(o.n_messages, 2);
    o.pauses_at_message = false;
    o.stops_at_message = false;
    grpc_rpc_resume(o.rpc);
    world_run(&w);

    CHECK_INT(o.n_messages, 100);
    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.trailer), "bye");
    world_done(&w);
}

TEST(a_call_that_is_paused_from_the_beginning_waits)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin(&w, &many, "", NULL, &o), PEG_OK);
    grpc_rpc_pause(o.rpc);
    world_await(&w, &w.fake.n_closed, 1);
    world_nap(&w, 10);
    CHECK_INT(o.n_messages, 0);
    grpc_rpc_resume(o.rpc);
    world_run(&w);

    CHECK_INT(o.n_messages, 100);
    CHECK_INT(o.code, GRPC_OK);
    world_done(&w);
}

/* ---- ends from our side ------------------------------------------------------------------- */

/* Whether the call was sent before its time was over: the server has heard of it before the next.
 */
static bool was_sent_in_time(struct world *w, int64_t timeout_ms)
{
    const struct grpc_rpc_options options = {.timeout_ms = timeout_ms};
    const unsigned n_before = w->fake.n_calls;
    struct outcome o = {0};

    CHECK_INT(begin(w, &never, "x", &options, &o), PEG_OK);
    world_run(w);
    CHECK_INT(o.code, GRPC_DEADLINE_EXCEEDED);
    CHECK(strstr(o.words, "deadline"));
    CHECK_INT(call(w, &echo, "x").code, GRPC_OK);
    return w->fake.n_calls == n_before + 2;
}

/* There is a connection, but a machine that is slow may need more time even so. */
TEST(a_deadline_ends_a_call_that_is_not_answered)
{
    struct world w;
    int64_t timeout_ms = 30;

    world_init(&w);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    while (!was_sent_in_time(&w, timeout_ms) && timeout_ms < 10000)
        timeout_ms *= 4;

    world_await(&w, &w.fake.n_reset, 1); /* and the server knows */
    world_done(&w);
}

TEST(a_deadline_that_is_not_reached_does_no_harm)
{
    struct world w;
    struct outcome o = {0};
    const struct grpc_rpc_options options = {.timeout_ms = 60000};

    world_init(&w);
    CHECK_INT(begin(&w, &echo, "x", &options, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    world_done(&w);
}

TEST(a_call_can_be_canceled_before_there_is_a_connection)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    grpc_rpc_cancel(o.rpc);
    grpc_rpc_cancel(o.rpc);
    CHECK_INT(o.n_ends, 0);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("x"), NULL), PEG_ECANCELED);
    CHECK(!grpc_rpc_is_writable(o.rpc));
    world_run(&w);

    CHECK_INT(o.code, GRPC_CANCELLED);
    CHECK(!o.was_sent);
    CHECK_INT(w.fake.n_calls, 0);
    world_done(&w);
}

TEST(a_call_that_has_not_left_can_be_canceled)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    grpc_rpc_cancel(o.rpc);
    world_run(&w);
    CHECK_INT(o.code, GRPC_CANCELLED);
    CHECK(!o.was_sent);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.fake.n_calls, 2); /* this one never reached the server */
    world_done(&w);
}

TEST(a_call_that_runs_can_be_canceled)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &silent_chat, NULL, &o), PEG_OK);
    world_await(&w, &w.fake.n_calls, 1);
    grpc_rpc_cancel(o.rpc);
    world_run(&w);

    CHECK_INT(o.code, GRPC_CANCELLED);
    CHECK(o.was_sent);
    world_await(&w, &w.fake.n_reset, 1);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 1);
    world_done(&w);
}

TEST(a_call_can_be_canceled_in_its_events)
{
    struct world w;
    struct outcome at_headers = {.cancels_at_headers = true};
    struct outcome at_message = {.cancels_at_message = true};

    world_init(&w);
    CHECK_INT(begin(&w, &many, "x", NULL, &at_headers), PEG_OK);
    CHECK_INT(begin(&w, &many, "x", NULL, &at_message), PEG_OK);
    world_run(&w);

    CHECK_INT(at_headers.code, GRPC_CANCELLED);
    CHECK_INT(at_headers.n_messages, 0);
    CHECK_INT(at_headers.n_ends, 1);
    CHECK_INT(at_message.code, GRPC_CANCELLED);
    CHECK_INT(at_message.n_messages, 1);
    CHECK_INT(at_message.n_ends, 1);
    world_done(&w);
}

TEST(a_reference_keeps_a_call_that_has_ended)
{
    struct world w;
    struct outcome o = {0};
    struct grpc_rpc *rpc;

    world_init(&w);
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    rpc = grpc_rpc_ref(o.rpc);
    world_run(&w);
    CHECK_INT(o.code, GRPC_OK);
    w.channel = grpc_channel_free(w.channel);

    grpc_rpc_cancel(rpc);
    grpc_rpc_pause(rpc);
    grpc_rpc_resume(rpc);
    grpc_rpc_half_close(rpc);
    CHECK_INT(grpc_rpc_send(rpc, peg__str("x"), NULL), PEG_ECANCELED);
    CHECK(grpc_rpc_method(rpc) == &echo);
    CHECK(grpc_rpc_arena(rpc));
    CHECK(grpc_rpc_was_sent(rpc));
    CHECK_INT(o.n_ends, 1);
    grpc_rpc_unref(rpc);
    world_done(&w);
}

/* ---- what a caller does wrong ------------------------------------------------------------- */

TEST(a_caller_who_asks_for_nonsense_is_told)
{
    static const struct grpc_method no_slash = {.path = "f/echo"};
    struct world w;
    struct outcome o = {0};
    struct grpc_metadata metadata = {0};
    struct grpc_metadata_entry entry = {PEG_LIT("grpc-mine"), PEG_LIT("x")};
    struct grpc_rpc_options options = {.timeout_ms = -1};

    world_init(&w);
    CHECK_INT(begin(&w, &no_slash, "x", NULL, &o), PEG_EINVAL);
    CHECK_INT(begin(&w, &echo, "x", &options, &o), PEG_EINVAL);
    metadata.entries = &entry;
    metadata.n = 1;
    options = (struct grpc_rpc_options){.metadata = &metadata};
    CHECK_INT(begin(&w, &echo, "x", &options, &o), PEG_EINVAL);

    CHECK_INT(o.n_ends, 0);
    CHECK_INT(grpc_channel_n_calls(w.channel), 0);
    world_done(&w);
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Everything that the client allocates from its beginning to the end of a call. A call that ends
 * for lack of memory says so; one that is lost because its connection had none is UNAVAILABLE. */
TORTURE(a_call_survives_any_allocation_failure)
{
    static const struct grpc_channel_options options = {.backoff_ms = 1, .max_backoff_ms = 1};
    struct world w = {0};
    struct outcome o = {0};
    peg_status status = fake_start(&w.fake, NULL);

    if (!status)
        status = world_connect(&w, w.fake.target, &options);
    if (!status)
        status = begin(&w, &echo, "hello", NULL, &o);
    if (!status) {
        world_run(&w);
        CHECK_INT(o.n_ends, 1);
        CHECK(o.code == GRPC_OK || o.code == GRPC_RESOURCE_EXHAUSTED ||
              o.code == GRPC_UNAVAILABLE || o.code == GRPC_INTERNAL);
        status = o.code == GRPC_OK ? PEG_OK : PEG_ENOMEM;
    }
    world_done(&w);
    return status;
}
