/* SPDX-License-Identifier: Apache-2.0 */

/* A channel that prefers one of its addresses, and moves on when that one goes. */

#include <netdb.h>

#include "base/limits.h"
#include "client_world.h"
#include "grpc/client/internal.h"

METHOD(echo, "/f/echo", false, false);
METHOD(chat, "/f/echo", true, true);
METHOD(die, "/f/die", false, false);
METHOD(goaway, "/f/goaway", false, false);

static const struct grpc_channel_options one = {
    .prefers_one = true, .backoff_ms = 10, .max_backoff_ms = 50};

/* ---- fixture: two servers, and a resolver that knows some names ----------------------------- */

struct two {
    struct world w; /* the first server is w.fake */
    struct fake other;
};

static void two_start(struct two *t, enum fake_manner first)
{
    *t = (struct two){.w.fake.manner = first};
    CHECK_INT(fake_start(&t->w.fake, NULL), PEG_OK);
    CHECK_INT(fake_start(&t->other, NULL), PEG_OK);
}

static void two_connect(struct two *t, const struct grpc_channel_options *options)
{
    char target[256];

    snprintf(target, sizeof(target), "%.100s,%.100s", t->w.fake.target, t->other.target);
    CHECK_STATUS(world_connect(&t->w, target, options), PEG_OK, t->w.error);
}

static void two_init(struct two *t)
{
    two_start(t, FAKE_POLITE);
    two_connect(t, &one);
}

static void two_done(struct two *t)
{
    world_done(&t->w);
    fake_stop(&t->other);
}

static unsigned port_of(const struct fake *fake)
{
    unsigned port = 0;

    CHECK_INT(sscanf(strrchr(fake->target, ':'), ":%u", &port), 1);
    return port;
}

static struct addrinfo *answer(const char *host, const char *service, struct addrinfo *next)
{
    struct addrinfo *info = calloc(1, sizeof(*info));
    struct net_address *address = calloc(1, sizeof(*address));
    struct net_endpoint endpoint;
    char text[64];

    snprintf(text, sizeof(text), "%s:%s", host, service);
    (void)net_endpoint_parse(peg__str(text), &endpoint, NULL);
    (void)net_endpoint_is_numeric(&endpoint, address);
    *info =
        (struct addrinfo){.ai_addr = &address->at.any, .ai_addrlen = address->len, .ai_next = next};
    return info;
}

/* Instead of the system's: several.example has three records. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *req,
                struct addrinfo **pai)
{
    (void)req;
    if (strcmp(name, "several.example") == 0)
        *pai = answer("127.0.0.3", service,
                      answer("127.0.0.4", service, answer("127.0.0.2", service, NULL)));
    else if (strcmp(name, "here.example") == 0)
        *pai = answer("127.0.0.1", service, NULL);
    else
        return EAI_NONAME;
    return 0;
}

void freeaddrinfo(struct addrinfo *ai)
{
    while (ai) {
        struct addrinfo *next = ai->ai_next;

        free(peg__container_of(ai->ai_addr, struct net_address, at.any));
        free(ai);
        ai = next;
    }
}

/* ---- one at a time --------------------------------------------------------------------------- */

TEST(all_calls_go_to_the_first_address_and_no_other_is_connected)
{
    struct two t;

    two_init(&t);
    for (unsigned i = 0; i < 10; i++)
        CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);

    CHECK_INT(t.w.fake.n_calls, 10);
    CHECK_INT(t.other.n_connections, 0);
    two_done(&t);
}

TEST(an_address_at_which_no_server_listens_is_passed_over)
{
    struct two t;

    two_init(&t);
    fake_stop(&t.w.fake);

    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.other.n_calls, 1);
    two_done(&t);
}

TEST(a_silent_server_does_not_hold_up_the_next_address)
{
    struct two t;
    int64_t began_ns;

    two_start(&t, FAKE_SILENT);
    two_connect(&t, &one);
    began_ns = peg__mono_ns();
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);

    CHECK(peg__mono_ns() - began_ns < PEG_LIMIT_NET_OPEN_MS / 2 * PEG_NS_PER_MS);
    CHECK_INT(t.w.channel->pick.n, 1);
    CHECK(!t.w.channel->slots[0]->conn); /* given up: one connection is enough */
    two_done(&t);
}

/* ---- moving on ------------------------------------------------------------------------------- */

TEST(calls_move_on_when_their_server_dies_and_back_when_the_next_one_does)
{
    struct two t;
    char first[NET_ADDRESS_TEXT];

    two_init(&t);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    snprintf(first, sizeof(first), "%s", t.w.fake.target);
    fake_stop(&t.w.fake);
    world_nap(&t.w, 20);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.other.n_connections, 1);
    CHECK_INT(t.other.n_calls, 2);

    CHECK_INT(fake_start(&t.w.fake, first), PEG_OK);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.w.fake.n_calls, 1); /* none since the first one: it stays where it works */
    fake_stop(&t.other);
    world_nap(&t.w, 20);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.w.fake.n_calls, 2);
    two_done(&t);
}

TEST(a_call_in_flight_fails_with_its_server_and_the_next_one_is_elsewhere)
{
    struct two t;
    struct outcome o;

    two_init(&t);
    o = call(&t.w, &die, "x");
    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(o.was_sent);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);

    CHECK_INT(t.other.n_calls, 1);
    two_done(&t);
}

TEST(a_server_that_takes_no_more_calls_ends_those_it_has)
{
    struct two t;
    struct outcome o = {.stops_at_message = true};

    two_init(&t);
    CHECK_INT(begin_stream(&t.w, &chat, NULL, &o), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("a"), NULL), PEG_OK);
    world_run(&t.w);
    CHECK_INT(grpc_channel_leave(t.w.channel, t.w.fake.target), 1);
    CHECK_INT(grpc_channel_leave(t.w.channel, t.w.fake.target), 1); /* as it is */
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("b"), NULL), PEG_OK);
    world_run(&t.w);
    CHECK_STR(peg__str(o.last), "b");
    grpc_rpc_half_close(o.rpc);
    world_run(&t.w);
    CHECK_INT(o.code, GRPC_OK);

    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.other.n_calls, 1);
    two_done(&t);
}

TEST(a_server_that_says_goaway_is_left)
{
    struct two t;

    two_init(&t);
    CHECK_INT(call(&t.w, &goaway, "x").code, GRPC_OK);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);

    CHECK_INT(t.other.n_calls, 1);
    two_done(&t);
}

TEST(the_only_address_is_not_left)
{
    struct world w = {0};

    world_init_with(&w, &one);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(grpc_channel_leave(w.channel, w.fake.target), 0);
    CHECK_INT(call(&w, &die, "x").code, GRPC_UNAVAILABLE);
    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    world_done(&w);
}

TEST(calls_fail_when_all_addresses_have_and_work_when_one_is_back)
{
    const struct grpc_rpc_options patient = {.waits_for_ready = true};
    struct two t;
    struct outcome o;
    char last[NET_ADDRESS_TEXT];

    two_init(&t);
    snprintf(last, sizeof(last), "%s", t.other.target);
    fake_stop(&t.w.fake);
    fake_stop(&t.other);
    o = call(&t.w, &echo, "x");
    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(strstr(o.words, "or 1 other: "));
    CHECK(!o.was_sent);
    CHECK_INT(grpc_channel_state(t.w.channel), GRPC_CHANNEL_FAILING);

    CHECK_INT(fake_start(&t.other, last), PEG_OK);
    o = (struct outcome){0};
    CHECK_INT(begin(&t.w, &echo, "x", &patient, &o), PEG_OK);
    world_run(&t.w);
    CHECK_INT(o.code, GRPC_OK);
    two_done(&t);
}

TEST(channels_that_begin_anywhere_spread)
{
    struct grpc_channel_options anywhere = one;
    struct two t;

    anywhere.begins_anywhere = true;
    two_start(&t, FAKE_POLITE);
    for (unsigned i = 0; i < 64; i++) {
        two_connect(&t, &anywhere);
        CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
        t.w.channel = grpc_channel_free(t.w.channel);
    }

    CHECK(t.w.fake.n_calls > 0);
    CHECK(t.other.n_calls > 0);
    two_done(&t);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(every_record_of_a_name_is_tried)
{
    struct world w = {0};
    char target[64];

    CHECK_INT(fake_start(&w.fake, "127.0.0.2:0"), PEG_OK);
    snprintf(target, sizeof(target), "several.example:%u", port_of(&w.fake));
    CHECK_STATUS(world_connect(&w, target, &one), PEG_OK, w.error);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    CHECK_INT(w.channel->n_slots, 3);
    world_done(&w);
}

TEST(a_name_of_a_list_comes_before_an_address_behind_it)
{
    struct two t;
    char target[256];

    two_start(&t, FAKE_POLITE);
    snprintf(target, sizeof(target), "here.example:%u,%.100s", port_of(&t.w.fake), t.other.target);
    CHECK_STATUS(world_connect(&t.w, target, &one), PEG_OK, t.w.error);

    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.w.fake.n_calls, 1);
    CHECK_INT(t.other.n_connections, 0);
    two_done(&t);
}

TEST(a_name_of_a_list_that_does_not_exist_is_passed_over)
{
    struct world w = {0};
    char target[256];

    CHECK_INT(fake_start(&w.fake, NULL), PEG_OK);
    snprintf(target, sizeof(target), "nowhere.example:1,%.100s", w.fake.target);
    CHECK_STATUS(world_connect(&w, target, &one), PEG_OK, w.error);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_OK);
    world_done(&w);
}

TEST(names_that_do_not_exist_fail_calls)
{
    struct world w = {0};
    struct outcome o;

    CHECK_INT(world_connect(&w, "nowhere.example:1,neither.example:1", &one), PEG_OK);
    o = call(&w, &echo, "x");

    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(strstr(o.words, "nowhere.example:1 or 1 other"));
    world_done(&w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(moving_on_survives_any_allocation_failure)
{
    struct world w = {0};
    struct outcome o = {0};
    const struct grpc_rpc_options options = {.timeout_ms = 60000};
    char target[256];
    peg_status status = fake_start(&w.fake, NULL);

    snprintf(target, sizeof(target), "127.0.0.1:1,here.example:%u", status ? 2 : port_of(&w.fake));
    if (!status)
        status = world_connect(&w, target, &one);
    if (!status)
        status = begin(&w, &echo, "x", &options, &o);
    if (!status) {
        world_run(&w);
        CHECK_INT(o.n_ends, 1);
        status = o.code == GRPC_OK ? PEG_OK : PEG_ENOMEM;
    }
    world_done(&w);
    return status;
}
