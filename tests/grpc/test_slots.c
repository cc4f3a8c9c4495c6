/* SPDX-License-Identifier: Apache-2.0 */

/* The addresses of a channel change while it is used, as they do when a name is looked up again. */

#include "base/limits.h"
#include "client_world.h"
#include "grpc/client/internal.h"

METHOD(echo, "/f/echo", false, false);
METHOD(chat, "/f/echo", true, true);

static const struct grpc_channel_options hasty = {.backoff_ms = 10, .max_backoff_ms = 50};

struct two {
    struct world w;
    struct fake other;
    struct net_address addresses[2];
};

static void two_init(struct two *t)
{
    *t = (struct two){0};
    world_init_with(&t->w, &hasty);
    CHECK_INT(fake_start(&t->other, NULL), PEG_OK);
    t->addresses[0] = *net_listener_address(t->w.fake.listener);
    t->addresses[1] = *net_listener_address(t->other.listener);
}

static void two_done(struct two *t)
{
    world_done(&t->w);
    fake_stop(&t->other);
}

TEST(a_new_address_gets_its_share_and_the_old_one_keeps_its_connection)
{
    struct two t;

    two_init(&t);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK(grpc__slots_set(t.w.channel, t.addresses, 2));
    grpc_channel_connect(t.w.channel);
    world_await_ready(&t.w, 2);
    for (unsigned i = 0; i < 10; i++)
        CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);

    CHECK_INT(t.w.fake.n_connections, 1);
    CHECK_INT(t.w.fake.n_calls, 6);
    CHECK_INT(t.other.n_calls, 5);
    two_done(&t);
}

TEST(an_address_that_goes_ends_with_its_last_call)
{
    struct two t;
    struct outcome o = {.stops_at_message = true};

    two_init(&t);
    CHECK_INT(begin_stream(&t.w, &chat, NULL, &o), PEG_OK);
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("a"), NULL), PEG_OK);
    world_run(&t.w);
    CHECK(grpc__slots_set(t.w.channel, &t.addresses[1], 1));
    /* the call goes on where it was */
    CHECK_INT(grpc_rpc_send(o.rpc, peg__str("b"), NULL), PEG_OK);
    world_run(&t.w);
    CHECK_STR(peg__str(o.last), "b");
    grpc_rpc_half_close(o.rpc);
    world_run(&t.w);
    CHECK_INT(o.code, GRPC_OK);
    /* a new one goes to the other server */
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.other.n_calls, 1);
    CHECK_INT(t.w.fake.n_calls, 1);
    CHECK(!t.w.channel->retired);
    two_done(&t);
}

TEST(an_address_without_calls_goes_at_once)
{
    struct two t;

    two_init(&t);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK(grpc__slots_set(t.w.channel, &t.addresses[1], 1));

    CHECK_INT(grpc_channel_state(t.w.channel), GRPC_CHANNEL_IDLE);
    CHECK_INT(call(&t.w, &echo, "x").code, GRPC_OK);
    CHECK_INT(t.other.n_calls, 1);
    two_done(&t);
}

TEST(an_address_can_go_while_it_connects)
{
    struct two t;
    struct outcome o = {0};

    two_init(&t);
    CHECK_INT(begin(&t.w, &echo, "x", NULL, &o), PEG_OK);
    CHECK(grpc__slots_set(t.w.channel, &t.addresses[1], 1));
    grpc__slots_wake(t.w.channel);
    world_run(&t.w);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(t.w.fake.n_calls, 0);
    two_done(&t);
}

TEST(connections_of_all_addresses_together_have_a_limit)
{
    struct world w = {0};
    const struct grpc_channel_options options = {.n_connections =
                                                     PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS};

    CHECK_INT(world_connect(&w, "ipv4:127.0.0.1:1,127.0.0.1:2", &options), PEG_OK);

    CHECK_INT(w.channel->n_slots, PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS);
    world_done(&w);
}

TORTURE(new_addresses_survive_any_allocation_failure)
{
    struct world w = {0};
    struct net_address addresses[2];
    peg_status status = PEG_ENOMEM;

    if (world_connect(&w, "ipv4:127.0.0.1:1,127.0.0.1:2", NULL) == PEG_OK) {
        const size_t before = w.channel->n_slots;

        addresses[0] = w.channel->slots[0]->address;
        addresses[1] = addresses[0];
        addresses[1].at.ip4.sin_port = 77;
        status = grpc__slots_set(w.channel, addresses, 2) ? PEG_OK : PEG_ENOMEM;
        CHECK(w.channel->n_slots >= before);
    }
    world_done(&w);
    return status;
}
