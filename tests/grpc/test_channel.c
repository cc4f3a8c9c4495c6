/* SPDX-License-Identifier: Apache-2.0 */

/* Channels: connections that fail, break, are made again and shared. */

#include "grpc/client/client.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "client_world.h"

METHOD(echo, "/f/echo", false, false);
METHOD(never, "/f/never", false, false);
METHOD(chat, "/f/echo", true, true);
METHOD(refuse, "/f/refuse", false, false);
METHOD(refuse_once, "/f/refuse-once", false, false);
METHOD(calm, "/f/calm", false, false);
METHOD(goaway, "/f/goaway", false, false);
METHOD(goaway_before, "/f/goaway-before", false, false);
METHOD(die, "/f/die", false, false);

static const struct grpc_channel_options hasty = {.backoff_ms = 10, .max_backoff_ms = 50};

/* A port at which nobody listens. */
static void find_free_port(char ret_target[NET_ADDRESS_TEXT])
{
    struct fake fake = {0};

    CHECK_INT(fake_start(&fake, NULL), PEG_OK);
    snprintf(ret_target, NET_ADDRESS_TEXT, "%s", fake.target);
    fake_stop(&fake);
}

/* ---- connecting --------------------------------------------------------------------------- */

TEST(a_channel_connects_when_the_first_call_needs_it)
{
    struct world w;

    world_init(&w);
    world_nap(&w, 20);
    CHECK_INT(w.fake.n_connections, 0);
    CHECK_INT(grpc_channel_state(w.channel), GRPC_CHANNEL_IDLE);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);

    CHECK_INT(grpc_channel_state(w.channel), GRPC_CHANNEL_READY);
    CHECK_INT(w.n_states, 2);
    CHECK_INT(w.states[0], GRPC_CHANNEL_CONNECTING);
    CHECK_INT(w.states[1], GRPC_CHANNEL_READY);
    CHECK(grpc_channel_loop(w.channel) == w.loop);
    world_done(&w);
}

TEST(a_channel_can_be_asked_to_connect)
{
    struct world w;

    world_init(&w);
    grpc_channel_connect(w.channel);
    world_run_until(&w, GRPC_CHANNEL_READY);
    grpc_channel_connect(w.channel);

    CHECK_INT(w.fake.n_connections, 1);
    world_done(&w);
}

TEST(a_call_fails_when_nobody_listens)
{
    struct world w = {0};
    char target[NET_ADDRESS_TEXT];
    struct outcome o;

    find_free_port(target);
    CHECK_INT(world_connect(&w, target, &hasty), PEG_OK);
    o = call(&w, &echo, "x");

    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(strstr(o.words, target));
    CHECK(strstr(o.words, "ECONNREFUSED"));
    CHECK(!o.was_sent);
    CHECK_INT(grpc_channel_state(w.channel), GRPC_CHANNEL_FAILING);
    /* and the next one at once, without another attempt */
    CHECK_INT(call(&w, &echo, "x").code, GRPC_UNAVAILABLE);
    world_done(&w);
}

TEST(a_call_that_waits_for_ready_is_answered_when_a_server_comes)
{
    const struct grpc_rpc_options options = {.waits_for_ready = true};
    struct world w = {0};
    char target[NET_ADDRESS_TEXT];
    struct outcome o = {0};

    find_free_port(target);
    CHECK_INT(world_connect(&w, target, &hasty), PEG_OK);
    CHECK_INT(begin(&w, &echo, "patience", &options, &o), PEG_OK);
    world_run_until(&w, GRPC_CHANNEL_FAILING);
    world_nap(&w, 50);
    CHECK_INT(o.n_ends, 0);

    CHECK_INT(fake_start(&w.fake, target), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "patience");
    world_done(&w);
}

TEST(a_call_that_waits_for_ready_has_a_deadline_all_the_same)
{
    const struct grpc_rpc_options options = {.waits_for_ready = true, .timeout_ms = 40};
    struct world w = {0};
    char target[NET_ADDRESS_TEXT];
    struct outcome o = {0};

    find_free_port(target);
    CHECK_INT(world_connect(&w, target, &hasty), PEG_OK);
    CHECK_INT(begin(&w, &echo, "x", &options, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_DEADLINE_EXCEEDED);
    CHECK(strstr(o.words, "waited"));
    world_done(&w);
}

TEST(peers_that_speak_no_http2_are_told_apart_from_servers)
{
    static const enum fake_manner manners[] = {FAKE_SILENT, FAKE_RUDE, FAKE_STRANGE};
    const struct grpc_channel_options options = {.connect_ms = 100};

    for (size_t i = 0; i < sizeof(manners) / sizeof(manners[0]); i++) {
        struct world w = {.fake.manner = manners[i]};
        struct outcome o;

        world_init_with(&w, &options);
        o = call(&w, &echo, "x");
        CHECK_INT(o.code, GRPC_UNAVAILABLE);
        CHECK(!o.was_sent);
        if (manners[i] == FAKE_SILENT)
            CHECK(strstr(o.words, "HTTP/2"));
        world_done(&w);
    }
}

TEST(a_unix_socket_is_a_target)
{
    char folder[] = "/tmp/peg-channel-XXXXXX";
    char target[64];
    struct world w = {0};

    CHECK(mkdtemp(folder));
    snprintf(target, sizeof(target), "unix:%s/s", folder);
    CHECK_INT(fake_start(&w.fake, target), PEG_OK);
    CHECK_INT(world_connect(&w, target, &hasty), PEG_OK);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);

    world_done(&w);
    rmdir(folder);
}

/* A channel to localhost needs nobody for it: this one does not know what that is. */
static void world_init_by_name(struct world *w)
{
    char target[64];
    unsigned port;

    CHECK_INT(fake_start(&w->fake, NULL), PEG_OK);
    CHECK_INT(sscanf(w->fake.target, "127.0.0.1:%u", &port), 1);
    snprintf(target, sizeof(target), "localhost:%u", port);
    CHECK_INT(world_connect(w, target, &hasty), PEG_OK);
    w->channel->target.entries[0].is_name = true;
    w->channel->lookups.items[0].n = 0;
    w->channel->lookups.was_asked = w->channel->lookups.was_answered = false;
    CHECK(grpc__slots_set(w->channel, NULL, 0));
}

TEST(a_name_is_looked_up)
{
    struct world w = {0};

    world_init_by_name(&w);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);

    CHECK(w.channel->n_slots > 0);
    world_done(&w);
}

TEST(a_channel_to_a_name_can_be_asked_to_connect)
{
    struct world w = {0};

    world_init_by_name(&w);
    grpc_channel_connect(w.channel);
    grpc_channel_connect(w.channel);
    world_run_until(&w, GRPC_CHANNEL_READY);

    CHECK_INT(w.fake.n_connections, 1);
    world_done(&w);
}

TEST(a_name_that_does_not_exist_fails_calls_and_is_looked_up_again)
{
    struct world w = {0};
    struct outcome o;

    CHECK_INT(world_connect(&w, "does-not-exist.invalid:1", &hasty), PEG_OK);
    o = call(&w, &echo, "x");
    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(strstr(o.words, "does-not-exist.invalid"));
    CHECK_INT(grpc_channel_state(w.channel), GRPC_CHANNEL_FAILING);
    world_nap(&w, 60);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_UNAVAILABLE);
    world_done(&w);
}

TEST(a_channel_can_go_while_a_name_is_looked_up)
{
    struct world w = {0};
    struct outcome o = {0};

    CHECK_INT(world_connect(&w, "does-not-exist.invalid:1", &hasty), PEG_OK);
    CHECK_INT(begin(&w, &echo, "x", NULL, &o), PEG_OK);
    w.channel = grpc_channel_free(w.channel);

    CHECK_INT(o.n_ends, 1);
    CHECK_INT(o.code, GRPC_CANCELLED);
    world_done(&w);
}

/* ---- several connections ------------------------------------------------------------------ */

TEST(calls_take_turns_over_all_addresses)
{
    enum { N = 3, CALLS = 30 };
    struct fake more[N - 1] = {{0}};
    struct world w = {0};
    char target[512];

    CHECK_INT(fake_start(&w.fake, NULL), PEG_OK);
    CHECK_INT(fake_start(&more[0], NULL), PEG_OK);
    CHECK_INT(fake_start(&more[1], NULL), PEG_OK);
    snprintf(target, sizeof(target), "ipv4:%.100s,%.100s,%.100s", w.fake.target, more[0].target,
             more[1].target);
    CHECK_INT(world_connect(&w, target, &hasty), PEG_OK);
    grpc_channel_connect(w.channel);
    world_await_ready(&w, N);
    for (unsigned i = 0; i < CALLS; i++)
        CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);

    CHECK_INT(w.fake.n_calls + more[0].n_calls + more[1].n_calls, CALLS);
    CHECK_INT(w.fake.n_calls, CALLS / N);
    CHECK_INT(more[0].n_calls, CALLS / N);

    /* one that dies is missed by nobody */
    fake_stop(&more[0]);
    for (unsigned i = 0; i < CALLS; i++) {
        const enum grpc_code code = call(&w, &echo, "x").code;

        CHECK(code == GRPC_OK || code == GRPC_UNAVAILABLE);
    }
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(grpc_channel_state(w.channel), GRPC_CHANNEL_READY);
    world_done(&w);
    fake_stop(&more[1]);
}

TEST(one_address_of_several_that_fails_does_not_fail_calls)
{
    struct world w = {0};
    char dead[NET_ADDRESS_TEXT];
    char target[512];

    find_free_port(dead);
    CHECK_INT(fake_start(&w.fake, NULL), PEG_OK);
    snprintf(target, sizeof(target), "ipv4:%.100s,%.100s", dead, w.fake.target);
    CHECK_INT(world_connect(&w, target, &hasty), PEG_OK);

    for (unsigned i = 0; i < 10; i++)
        CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    world_done(&w);
}

TEST(an_address_can_have_several_connections)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.n_connections = 4};

    world_init_with(&w, &options);
    grpc_channel_connect(w.channel);
    world_await_ready(&w, 4);
    for (unsigned i = 0; i < 20; i++)
        CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);

    CHECK_INT(w.fake.n_connections, 4);
    world_done(&w);
}

TEST(calls_wait_for_a_stream_of_a_busy_connection)
{
    enum { N = 10 };
    struct world w = {.fake.max_streams = 2};
    struct outcome outcomes[N] = {{0}};

    world_init_with(&w, &hasty);
    for (unsigned i = 0; i < N; i++)
        CHECK_INT(begin_stream(&w, &chat, NULL, &outcomes[i]), PEG_OK);
    world_await(&w, &w.fake.n_calls, 2);
    world_nap(&w, 20);
    CHECK_INT(w.fake.n_calls, 2); /* no more than the server allows */
    CHECK_INT(grpc_channel_n_calls(w.channel), N);
    for (unsigned i = 0; i < N; i++) {
        CHECK_INT(grpc_rpc_send(outcomes[i].rpc, peg__str("x"), NULL), PEG_OK);
        grpc_rpc_half_close(outcomes[i].rpc);
    }
    world_run(&w);

    for (unsigned i = 0; i < N; i++)
        CHECK_INT(outcomes[i].code, GRPC_OK);
    CHECK_INT(w.fake.n_calls, N);
    world_done(&w);
}

TEST(too_many_waiting_calls_are_refused_by_name)
{
    struct world w = {.fake.max_streams = 1};
    const struct grpc_channel_options options = {.max_waiting = 2};
    struct outcome outcomes[5] = {{0}};

    world_init_with(&w, &options);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    for (unsigned i = 0; i < 5; i++)
        CHECK_INT(begin(&w, &never, "x", NULL, &outcomes[i]), PEG_OK);
    world_nap(&w, 20);

    CHECK_INT(outcomes[2].n_ends, 0);
    CHECK_INT(outcomes[3].n_ends, 1);
    CHECK_INT(outcomes[3].code, GRPC_RESOURCE_EXHAUSTED);
    CHECK(strstr(outcomes[3].words, "max_waiting"));
    CHECK_INT(outcomes[4].code, GRPC_RESOURCE_EXHAUSTED);
    /* a place that becomes free goes to the next */
    grpc_rpc_cancel(outcomes[0].rpc);
    world_await(&w, &w.fake.n_calls, 3);
    world_done(&w);
    CHECK_INT(outcomes[1].code, GRPC_CANCELLED);
}

/* ---- connections that end ----------------------------------------------------------------- */

TEST(a_lost_connection_ends_its_calls_and_is_made_again)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &die, "x");
    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(strstr(o.words, "lost"));
    CHECK(o.was_sent);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}

TEST(a_server_that_comes_back_is_found_again)
{
    struct world w;
    const struct grpc_rpc_options options = {.waits_for_ready = true};
    struct outcome o = {0};
    char target[NET_ADDRESS_TEXT];

    world_init(&w);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    snprintf(target, sizeof(target), "%s", w.fake.target);
    fake_stop(&w.fake);
    world_run_until(&w, GRPC_CHANNEL_IDLE); /* without calls nobody tries */
    CHECK_INT(call(&w, &echo, "x").code, GRPC_UNAVAILABLE);
    CHECK_INT(begin(&w, &echo, "x", &options, &o), PEG_OK);
    CHECK_INT(fake_start(&w.fake, target), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    world_done(&w);
}

TEST(a_refused_call_is_sent_again_once)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &refuse_once, "once more");
    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "once more");
    CHECK_INT(w.fake.n_calls, 2);

    o = call(&w, &refuse, "x");
    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK_INT(w.fake.n_calls, 4);
    world_done(&w);
}

TEST(a_call_that_says_too_much_to_be_kept_is_not_sent_again)
{
    struct world w;
    struct outcome o;
    static char large[PEG_LIMIT_GRPC_KEPT_BYTES + 1];

    memset(large, 'x', sizeof(large) - 1);
    world_init(&w);
    o = call(&w, &refuse_once, large);

    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK_INT(w.fake.n_calls, 1);
    world_done(&w);
}

TEST(after_goaway_calls_end_in_peace_and_new_ones_go_elsewhere)
{
    struct world w;

    world_init(&w);
    CHECK_INT(call(&w, &goaway, "bye").code, GRPC_OK);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);

    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}

TEST(a_call_that_goaway_leaves_out_is_sent_again)
{
    struct world w;
    struct outcome o;

    world_init(&w);
    o = call(&w, &goaway_before, "again");

    CHECK_INT(o.code, GRPC_OK);
    CHECK_STR(peg__str(o.last), "again");
    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}

TEST(a_server_that_leaves_at_once_is_tried_again)
{
    struct world w = {.fake.manner = FAKE_LEAVING};
    const struct grpc_rpc_options options = {.waits_for_ready = true};
    struct outcome o = {0};

    world_init_with(&w, &hasty);
    CHECK_INT(begin(&w, &echo, "x", &options, &o), PEG_OK);
    world_run(&w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}

TEST(a_connection_that_does_not_answer_a_ping_is_given_up)
{
    struct world w = {.fake.manner = FAKE_DEAF};
    const struct grpc_channel_options options = {.keepalive_ms = 20, .keepalive_timeout_ms = 20};
    struct outcome o;

    world_init_with(&w, &options);
    o = call(&w, &never, "x");

    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(strstr(o.words, "ping"));
    world_done(&w);
}

/* Whether a call outlives several times in which its server might have been given up. */
static bool is_kept_when_asked_within(int64_t timeout_ms)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.keepalive_ms = 5,
                                                 .keepalive_timeout_ms = timeout_ms};
    struct outcome o = {0};
    bool is_kept;

    world_init_with(&w, &options);
    CHECK_INT(begin(&w, &never, "x", NULL, &o), PEG_OK);
    while (!o.n_ends && w.fake.n_pings < 3)
        world_nap(&w, 1);

    is_kept = o.n_ends == 0 && w.fake.n_connections == 1;
    world_done(&w);
    return is_kept;
}

/* A machine that is slow needs more time to answer. */
TEST(a_connection_that_answers_pings_is_kept)
{
    t_try_with_more_time(is_kept_when_asked_within, 100);
}

/* Whether several pings come before one of them might have been given up. */
static bool is_asked_often_within(int64_t timeout_ms)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.keepalive_ms = 5,
                                                 .keepalive_timeout_ms = timeout_ms};
    struct outcome o = {0};
    int64_t end_ns;
    bool is_often;

    world_init_with(&w, &options);
    end_ns = peg__clock_after_ms(net_loop_now_ns(w.loop), timeout_ms);
    CHECK_INT(begin(&w, &never, "x", NULL, &o), PEG_OK);
    while (w.fake.n_pings < 3 && net_loop_now_ns(w.loop) < end_ns)
        world_nap(&w, 1);

    is_often = w.fake.n_pings >= 3;
    world_done(&w);
    return is_often;
}

TEST(a_client_pings_at_its_interval_however_long_an_answer_may_take)
{
    t_try_with_more_time(is_asked_often_within, 100);
}

TEST(a_server_that_is_pinged_too_often_is_pinged_less)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.keepalive_ms = 1000};

    world_init_with(&w, &options);
    CHECK_INT(call(&w, &calm, "x").code, GRPC_OK);

    CHECK_INT(w.channel->conn_options.keepalive_ms, 2000);
    world_done(&w);
}

TEST(a_channel_without_calls_goes_to_sleep_and_wakes_up)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.idle_ms = 30};

    world_init_with(&w, &options);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    world_run_until(&w, GRPC_CHANNEL_IDLE);

    grpc_channel_connect(w.channel);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.fake.n_connections, 2);
    world_done(&w);
}
