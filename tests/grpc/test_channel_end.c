/* SPDX-License-Identifier: Apache-2.0 */

/* Channels: how they end, who listens in, and what becomes of them without memory. */

#include "grpc/client/client.h"

#include "base/limits.h"
#include "client_world.h"

METHOD(echo, "/f/echo", false, false);
METHOD(head, "/f/head", false, false);
METHOD(never, "/f/never", false, false);
METHOD(refuse_once, "/f/refuse-once", false, false);
METHOD(die_once, "/f/die-once", false, false);

static const struct grpc_channel_options hasty = {.backoff_ms = 10, .max_backoff_ms = 50};

/* ---- the end ------------------------------------------------------------------------------ */

TEST(freeing_a_channel_ends_its_calls_in_every_state)
{
    struct world w = {.fake.max_streams = 1};
    struct outcome running = {0};
    struct outcome waiting = {0};
    struct outcome canceled = {0};

    world_init_with(&w, &hasty);
    CHECK_INT(begin(&w, &never, "x", NULL, &running), PEG_OK);
    world_await(&w, &w.fake.n_calls, 1);
    CHECK_INT(begin(&w, &echo, "x", NULL, &waiting), PEG_OK);
    CHECK_INT(begin(&w, &echo, "x", NULL, &canceled), PEG_OK);
    grpc_rpc_cancel(canceled.rpc);
    w.channel = grpc_channel_free(w.channel);

    CHECK_INT(running.n_ends, 1);
    CHECK_INT(waiting.n_ends, 1);
    CHECK_INT(canceled.n_ends, 1);
    CHECK_INT(running.code, GRPC_CANCELLED);
    CHECK_INT(waiting.code, GRPC_CANCELLED);
    world_await(&w, &w.fake.n_closed, 1);
    world_done(&w);
}

static void call_again(struct grpc_rpc *rpc, const struct grpc_status *status,
                       const struct grpc_metadata *trailers, void *user)
{
    struct outcome *o = user;
    const peg_str bytes = {"x", 1};

    outcome_on_end(rpc, status, trailers, user);
    if (o->n_ends == 1)
        CHECK_INT(grpc_rpc_unary(o->w->channel, &echo, &bytes, NULL, &outcome_events, o, &o->rpc,
                                 &o->w->error),
                  PEG_ESTATE);
}

TEST(no_call_can_be_made_on_a_channel_that_goes)
{
    static const struct grpc_rpc_events events = {.on_end = call_again};
    struct world w;
    struct outcome o = {.w = &w};
    const peg_str bytes = {"x", 1};

    world_init(&w);
    CHECK_INT(grpc_rpc_unary(w.channel, &never, &bytes, NULL, &events, &o, NULL, NULL), PEG_OK);
    w.n_pending = 1;
    w.channel = grpc_channel_free(w.channel);

    CHECK_INT(o.n_ends, 1);
    world_done(&w);
}

TEST(options_that_mean_nothing_are_refused)
{
    struct world w = {0};
    struct grpc_channel_options options = {.backoff_ms = -1};

    CHECK_INT(world_connect(&w, "127.0.0.1:1", &options), PEG_EINVAL);
    options =
        (struct grpc_channel_options){.n_connections = PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS + 1};
    CHECK_INT(world_connect(&w, "127.0.0.1:1", &options), PEG_EINVAL);
    options = (struct grpc_channel_options){.authority = "a\nb"};
    CHECK_INT(world_connect(&w, "127.0.0.1:1", &options), PEG_EINVAL);
    options = (struct grpc_channel_options){.stream_window = UINT32_MAX};
    CHECK_INT(world_connect(&w, "127.0.0.1:1", &options), PEG_EINVAL);
    CHECK_INT(world_connect(&w, "nonsense:port", NULL), PEG_EPARSE);
    world_done(&w);
}

/* ---- interceptors ------------------------------------------------------------------------- */

struct spy {
    char log[64];
    bool cancels;
};

struct spy_link {
    struct spy *spy;
    char name;
};

static void note(struct spy *spy, char what, char name)
{
    const size_t len = strlen(spy->log);

    snprintf(spy->log + len, sizeof(spy->log) - len, "%c%c ", what, name);
}

static void spy_on_start(struct grpc_rpc *rpc, void *user)
{
    struct spy_link *link = user;

    note(link->spy, '+', link->name);
    CHECK_INT(grpc_rpc_add_metadata(rpc, peg__str("x-key"), peg__str("spied"), NULL), PEG_OK);
    if (link->spy->cancels)
        grpc_rpc_cancel(rpc);
}

static void spy_on_end(struct grpc_rpc *rpc, const struct grpc_status *status, void *user)
{
    struct spy_link *link = user;

    (void)status;
    note(link->spy, '-', link->name);
    CHECK_INT(grpc_rpc_add_metadata(rpc, peg__str("x"), peg__str("y"), NULL), PEG_ESTATE);
}

static void world_init_spied(struct world *w, struct spy_link links[2])
{
    const struct grpc_client_interceptor interceptors[] = {
        {spy_on_start, spy_on_end, &links[0]},
        {spy_on_start, spy_on_end, &links[1]},
    };
    const struct grpc_channel_options options = {.interceptors = interceptors, .n_interceptors = 2};

    *w = (struct world){0};
    world_init_with(w, &options);
}

TEST(interceptors_add_metadata_and_hear_the_end_in_reverse)
{
    struct spy spy = {0};
    struct spy_link links[] = {{&spy, 'a'}, {&spy, 'b'}};
    struct world w;
    struct outcome o;

    world_init_spied(&w, links);
    o = call(&w, &head, "x");

    CHECK_STR(peg__str(spy.log), "+a +b -b -a ");
    CHECK(strstr(o.last, "key=spied"));
    world_done(&w);
}

TEST(an_interceptor_can_cancel)
{
    struct spy spy = {.cancels = true};
    struct spy_link links[] = {{&spy, 'a'}, {&spy, 'b'}};
    struct world w;

    world_init_spied(&w, links);

    CHECK_INT(call(&w, &echo, "x").code, GRPC_CANCELLED);
    CHECK_STR(peg__str(spy.log), "+a -a ");
    CHECK_INT(w.fake.n_calls, 0);
    world_done(&w);
}

/* ---- memory ------------------------------------------------------------------------------- */

TORTURE(reconnecting_survives_any_allocation_failure)
{
    struct world w = {0};
    struct outcome o = {0};
    const struct grpc_rpc_options options = {.timeout_ms = 60000};
    peg_status status = fake_start(&w.fake, NULL);

    if (!status)
        status = world_connect(&w, w.fake.target, &hasty);
    if (!status)
        status = begin(&w, &die_once, "x", &options, &o);
    if (!status)
        world_run(&w);
    if (!status) {
        struct outcome again = {0};

        CHECK_INT(o.n_ends, 1);
        status = begin(&w, &refuse_once, "x", &options, &again);
        if (!status) {
            world_run(&w);
            CHECK_INT(again.n_ends, 1);
            status = again.code == GRPC_OK ? PEG_OK : PEG_ENOMEM;
        }
    }
    world_done(&w);
    return status;
}
