/* SPDX-License-Identifier: Apache-2.0 */

/* Calls of a client at the edges: programs that do everything everywhere, servers that change
 * their mind or go on talking. */

#include "client_world.h"
#include "grpc/client/client.h"

METHOD(echo, "/f/echo", false, false);
METHOD(chat, "/f/echo", true, true);
METHOD(collect, "/f/collect", true, false);
METHOD(limit, "/f/limit", true, true);
METHOD(early_open, "/f/early-open", true, false);
METHOD(interim_3, "/f/interim-3", false, false);
METHOD(interim_1000, "/f/interim-1000", false, false);

/* Lets the loop go round until something is so. */
#define AWAIT(w, is_so)                                                                            \
    for (unsigned naps = 0; naps < 60000 && !(is_so); naps++)                                      \
    world_nap((w), 1)

/* ---- servers ------------------------------------------------------------------------------ */

TEST(headers_that_are_no_answer_yet_are_passed_over)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &interim_3, "x");

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.n_headers, 1);
    CHECK_STR(peg__str(o.header), "yes");
    world_done(&w);
}

TEST(headers_that_never_become_an_answer_end_the_call)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &interim_1000, "x");

    CHECK_INT(o.code, GRPC_INTERNAL);
    CHECK(strstr(o.words, "headers of status 1xx"));
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 1);
    world_done(&w);
}

TEST(calls_wait_while_a_server_takes_none)
{
    struct world w;
    struct outcome talk = {.stops_at_message = true};
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &limit, NULL, &talk), PEG_OK);
    CHECK_INT(grpc_rpc_send(talk.rpc, peg__str("0"), NULL), PEG_OK);
    world_run(&w); /* it has said so */
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    CHECK_INT(w.channel->waiting.n, 1);
    CHECK_INT(w.fake.n_calls, 1);

    CHECK_INT(grpc_rpc_send(talk.rpc, peg__str("2"), NULL), PEG_OK);
    AWAIT(&w, o.n_ends > 0);
    CHECK_INT(o.code, GRPC_OK);
    grpc_rpc_half_close(talk.rpc);
    world_run(&w);

    CHECK_INT(talk.code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 1);
    world_done(&w);
}

TEST(a_whole_answer_outlives_its_connection)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &early_open, NULL, &o), PEG_OK);
    grpc_rpc_pause(o.rpc);
    AWAIT(&w, o.rpc->stream.remote_ended);
    fake_stop(&w.fake);
    AWAIT(&w, w.channel->pick.n == 0);
    CHECK_INT(o.n_ends, 0);
    grpc_rpc_resume(o.rpc);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "early");
    world_done(&w);
}

/* ---- calls that have not left ------------------------------------------------------------- */

/* What the server says arrives before the client has written its call. */
static void hear(struct world *w, const uint8_t *frame, size_t len)
{
    CHECK_INT(grpc_session_feed(w->channel->slots[0]->conn->session, frame, len, &w->error),
              PEG_OK);
}

static const uint8_t goaway_frame[] = {0,    0,    8,    GRPC_H2_GOAWAY, 0, 0, 0, 0, 0,
                                       0x7f, 0xff, 0xff, 0xff,           0, 0, 0, 0};

TEST(a_call_that_meets_goaway_on_its_way_out_goes_elsewhere)
{
    struct world w;
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    hear(&w, goaway_frame, sizeof(goaway_frame));
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(w.fake.n_calls, 2);
    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}

/* As when the server takes no more streams just when the call is opened: HTTP/2 holds it back. */
TEST(a_call_that_is_held_back_goes_elsewhere_after_goaway)
{
    struct world w;
    struct outcome talk = {.stops_at_message = true};
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &limit, NULL, &talk), PEG_OK);
    CHECK_INT(grpc_rpc_send(talk.rpc, peg__str("0"), NULL), PEG_OK);
    world_run(&w);
    w.channel->slots[0]->conn->pick.max_streams = 100;
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    CHECK_INT(w.channel->waiting.n, 0);
    CHECK_INT(grpc_rpc_send(talk.rpc, peg__str("0"), NULL), PEG_OK);
    world_run(&w); /* something else has left meanwhile */
    hear(&w, goaway_frame, sizeof(goaway_frame));
    grpc_rpc_half_close(talk.rpc);
    world_run(&w);

    CHECK_INT(talk.code, GRPC_OK);
    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(w.fake.n_calls, 2);
    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}

/* ---- writing ------------------------------------------------------------------------------ */

static char zeros[100000];

/* What filled the queue takes no room once it is compressed. */
TEST(a_call_that_was_full_while_it_waited_becomes_writable)
{
    struct world w;
    const struct grpc_rpc_options options = {.uses_gzip = true};
    struct outcome o = {0};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &collect, &options, &o), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(zeros, sizeof(zeros)), NULL), PEG_OK);
    CHECK(!grpc_rpc_is_writable(o.rpc));
    AWAIT(&w, o.n_writable > 0);

    CHECK_INT(o.n_writable, 1);
    CHECK(grpc_rpc_is_writable(o.rpc));
    grpc_rpc_half_close(o.rpc);
    world_run(&w);
    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.last_len, sizeof(zeros));
    world_done(&w);
}

TEST(who_was_told_to_wait_for_room_is_told_of_it)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.max_send_bytes = 1000};
    struct outcome o = {0};

    world_init_with(&w, &options);
    CHECK_INT(begin_stream(&w, &collect, NULL, &o), PEG_OK);
    for (unsigned round = 1; round <= 2; round++) { /* before it is open, and then */
        CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(zeros, 600), NULL), PEG_OK);
        CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(zeros, 600), NULL), PEG_ELIMIT);
        AWAIT(&w, o.n_writable >= round);
        CHECK_INT(o.n_writable, round);
    }
    grpc_rpc_half_close(o.rpc);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.last_len, 1200);
    world_done(&w);
}

TEST(a_call_canceled_while_it_is_written_counts_as_sent)
{
    struct world w;
    const struct grpc_rpc_options options = {.uses_gzip = true};
    struct outcome o = {.cancels_at_writable = true};

    world_init(&w);
    CHECK_INT(begin_stream(&w, &collect, &options, &o), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__strn(zeros, sizeof(zeros)), NULL), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_CANCELLED);
    CHECK_INT(o.n_writable, 1);
    CHECK(o.was_sent);
    world_done(&w);
}

/* ---- everything everywhere ---------------------------------------------------------------- */

struct busy {
    struct world *w;
    unsigned n_left; /* calls that it may still make */
    unsigned n_begun;
    unsigned n_ended;
    unsigned cancels_in; /* the event, by number */
};

enum { IN_START = 1, IN_HEADERS, IN_MESSAGE, IN_WRITABLE, IN_END, IN_OTHER_END };

static void be_busy(struct busy *busy, struct grpc_rpc *rpc, unsigned event);

static void busy_on_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user)
{
    (void)metadata;
    be_busy((struct busy *)user, rpc, IN_HEADERS);
}

static void busy_on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    (void)message;
    be_busy((struct busy *)user, rpc, IN_MESSAGE);
    grpc_rpc_half_close(rpc);
}

static void busy_on_writable(struct grpc_rpc *rpc, void *user)
{
    be_busy((struct busy *)user, rpc, IN_WRITABLE);
}

static void busy_on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                        const struct grpc_metadata *trailers, void *user)
{
    struct busy *busy = (struct busy *)user;

    (void)status;
    (void)trailers;
    busy->n_ended++;
    be_busy(busy, rpc, IN_END);
    if (busy->n_ended == busy->n_begun)
        net_loop_stop(busy->w->loop);
}

static void busy_on_start(struct grpc_rpc *rpc, void *user)
{
    be_busy((struct busy *)user, rpc, IN_START);
}

static void busy_on_other_end(struct grpc_rpc *rpc, const struct grpc_status *status, void *user)
{
    (void)status;
    be_busy((struct busy *)user, rpc, IN_OTHER_END);
}

static void begin_busy(struct busy *busy)
{
    static const struct grpc_rpc_events events = {busy_on_headers, busy_on_message,
                                                  busy_on_writable, busy_on_end};
    struct grpc_rpc *rpc;

    busy->n_left--;
    busy->n_begun++;
    CHECK_INT(grpc_rpc_start(busy->w->channel, &chat, NULL, &events, busy, &rpc, NULL), PEG_OK);
    (void)grpc_rpc_send(rpc, peg__strn(zeros, sizeof(zeros)), NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): n_left is its bound */
static void be_busy(struct busy *busy, struct grpc_rpc *rpc, unsigned event)
{
    grpc_rpc_ref(rpc);
    grpc_rpc_pause(rpc);
    if (busy->n_left > 0)
        begin_busy(busy);
    (void)grpc_rpc_send(rpc, peg__str("x"), NULL);
    grpc_channel_connect(busy->w->channel);
    grpc_rpc_resume(rpc);
    if (event == busy->cancels_in)
        grpc_rpc_cancel(rpc);
    (void)grpc_rpc_is_writable(rpc);
    (void)grpc_rpc_was_sent(rpc);
    grpc_rpc_resume(rpc);
    grpc_rpc_unref(rpc);
}

TEST(a_program_may_do_everything_in_every_event)
{
    for (unsigned event = 0; event <= IN_OTHER_END; event++) {
        struct world w = {0};
        struct busy busy = {.w = &w, .n_left = 60, .cancels_in = event};
        const struct grpc_client_interceptor interceptor = {busy_on_start, busy_on_other_end,
                                                            &busy};
        const struct grpc_channel_options options = {
            .backoff_ms = 10, .interceptors = &interceptor, .n_interceptors = 1};

        w.fake.max_streams = 7;
        world_init_with(&w, &options);
        begin_busy(&busy);
        world_run(&w);

        CHECK_INT(busy.n_begun, 60);
        CHECK_INT(busy.n_ended, 60);
        CHECK_INT(grpc_channel_n_calls(w.channel), 0);
        world_done(&w);
    }
}
