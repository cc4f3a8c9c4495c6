/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: calls whose caller and provider lie on different loops of one gateway, in both directions,
 * many at once, with cancellations and with a provider that moves from loop to loop. Which loop a
 * provider is on its struct calls_loop knows; which one a caller is on stands in the route of its
 * calls. */

#include "t.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "calls/provider/provider_side.h"
#include "gateway/node.h"

#include "gateway_world.h"

enum { N_LOOPS = 2, N_CHANNELS = 16, N_RUNNING = 1024, N_THREADS = 4, N_CALLS = 100 };

/* ---- providers: everything of theirs happens on the client's loop ------------------------------
 */

struct running {
    char id[BUS_ID_TEXT];
    char route[BUS_ADDRESS_TEXT];
    uint32_t attempt;
    bool is_held; /* it is answered when it is canceled, or when the test says so */
};

struct provider;

struct leg {
    struct stream stream; /* the first member */
    struct provider *provider;
    struct grpc_channel *channel;
};

struct provider {
    const char *toolset;
    const char *incarnation;
    unsigned caller_loop; /* whose calls are expected */
    uint32_t credits;     /* 0: as many as are needed */
    uint32_t number;
    struct leg legs[2];
    unsigned at; /* the leg it stands on */
    struct running running[N_RUNNING];
    size_t n_running;
    atomic_uint n_calls;
    atomic_uint n_uncrossed; /* calls that did not cross */
    atomic_uint n_held;
    atomic_uint n_canceled;
};

static unsigned loop_of(const char *route)
{
    struct bus_address address = {0};

    return bus_address_parse(peg__str(route), &address) ? address.loop : UINT_MAX;
}

static struct running *find(struct provider *provider, const char *id, uint32_t attempt)
{
    for (size_t i = 0; i < provider->n_running; i++) {
        struct running *running = &provider->running[i];

        if (running->attempt == attempt && strcmp(running->id, id) == 0)
            return running;
    }
    return NULL;
}

static void reply(struct leg *leg, const struct running *running, const char *error_code)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;
    Pegboard__V1__ToolError error = PEGBOARD__V1__TOOL_ERROR__INIT;

    if (!leg->stream.rpc)
        return;
    result.call_id = req_text(running->id);
    result.attempt = running->attempt;
    if (error_code) {
        error.code = req_text(error_code);
        error.message = req_text("as you wish");
        result.error = &error;
    } else {
        result.chunk = req_bytes("true");
    }
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT;
    frame.result = &result;
    (void)pegboard_v1_registry_attach_say(leg->stream.rpc, &frame, NULL);
}

static void on_call(struct leg *leg, const Pegboard__V1__Call *call)
{
    struct provider *provider = leg->provider;
    struct running *running = &provider->running[provider->n_running];

    if (provider->n_running++ == N_RUNNING)
        abort();
    *running = (struct running){.attempt = call->attempt};
    snprintf(running->id, sizeof(running->id), "%s", call->call_id);
    snprintf(running->route, sizeof(running->route), "%.*s", (int)call->route.len,
             (const char *)call->route.data);
    running->is_held = memmem(call->payload.data, call->payload.len, "hold", 4) != NULL;
    atomic_fetch_add(&provider->n_calls, 1);
    /* A call with an identity lives on the loop that was asked for it first. */
    if (strlen(running->id) == 32 && loop_of(running->route) != provider->caller_loop)
        atomic_fetch_add(&provider->n_uncrossed, 1);
    if (running->is_held)
        atomic_fetch_add(&provider->n_held, 1);
    else
        reply(leg, running, NULL);
}

static void on_cancel(struct leg *leg, const Pegboard__V1__Cancel *cancel)
{
    struct running *running = find(leg->provider, cancel->call_id, cancel->attempt);

    atomic_fetch_add(&leg->provider->n_canceled, 1);
    if (!running || !running->is_held)
        return;
    running->is_held = false;
    reply(leg, running, "canceled");
}

static void on_ack(struct provider *provider, const Pegboard__V1__Ack *ack)
{
    struct running *running = find(provider, ack->call_id, ack->attempt);

    if (running)
        *running = provider->running[--provider->n_running];
}

/* What it listed and had answered goes again. */
static void on_welcome(struct leg *leg)
{
    for (size_t i = 0; i < leg->provider->n_running; i++) {
        if (!leg->provider->running[i].is_held)
            reply(leg, &leg->provider->running[i], NULL);
    }
    stream_say(&leg->stream, "welcome", "");
}

static void on_frame(struct stream *stream, const void *message)
{
    struct leg *leg = (struct leg *)stream;
    const Pegboard__V1__AttachResponse *frame = message;

    switch (frame->frame_case) {
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME:
        on_welcome(leg);
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL:
        on_call(leg, frame->call);
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CANCEL:
        on_cancel(leg, frame->cancel);
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ACK:
        on_ack(leg->provider, frame->ack);
        break;
    default:
        break;
    }
}

static void attach_now(void *arg)
{
    static Pegboard__V1__RunningCall listed[N_RUNNING];
    static Pegboard__V1__RunningCall *places[N_RUNNING];
    struct leg *leg = arg;
    struct provider *provider = leg->provider;
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;

    for (size_t i = 0; i < provider->n_running; i++) {
        pegboard__v1__running_call__init(&listed[i]);
        listed[i].call_id = provider->running[i].id;
        listed[i].attempt = provider->running[i].attempt;
        listed[i].route = req_bytes(provider->running[i].route);
        listed[i].tool = req_text("get");
        places[i] = &listed[i];
    }
    hello.toolset = req_text(provider->toolset);
    hello.incarnation = req_text(provider->incarnation);
    hello.credits = provider->credits ? provider->credits : 64;
    hello.number = ++provider->number;
    hello.running = places;
    hello.n_running = provider->n_running;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO;
    frame.hello = &hello;
    if (pegboard_v1_registry_attach_call(leg->channel, NULL, &stream_events, &leg->stream,
                                         &leg->stream.rpc, NULL) ||
        pegboard_v1_registry_attach_say(leg->stream.rpc, &frame, NULL))
        abort();
}

static struct leg *attach(struct provider *provider, unsigned at, struct grpc_channel *channel)
{
    struct leg *leg = &provider->legs[at];

    leg->provider = provider;
    leg->channel = channel;
    stream_init(&leg->stream, on_frame);
    provider->at = at;
    on_client(attach_now, leg);
    stream_await(&leg->stream, "welcome");
    return leg;
}

static void detach(struct leg *leg)
{
    stream_cancel(&leg->stream);
    stream_free(&leg->stream);
}

/* ---- which loop ---------------------------------------------------------------------------------
 */

struct whereabouts {
    struct calls_loop *calls;
    const char *incarnation;
    bool is_here;
};

static void look_here(void *user)
{
    struct whereabouts *where = user;
    const size_t len = strlen(where->incarnation);
    const struct calls_provider *provider = where->calls->providers;

    /* Its name in calls/ is the incarnation, '-', and what tells its toolset. */
    while (provider && (strncmp(provider->incarnation, where->incarnation, len) != 0 ||
                        provider->incarnation[len] != '-'))
        provider = provider->next;
    where->is_here = provider && !calls_provider_is_away(provider);
}

static bool is_on(unsigned loop, const char *incarnation)
{
    const struct gw_node *node = (const struct gw_node *)g.gateway; /* its first member */
    struct whereabouts where = {.calls = node->calls[loop], .incarnation = incarnation};

    gw_on_loop(net_loops_at(node->loops, loop), look_here, &where);
    return where.is_here;
}

/* A connection to each loop: those that come too many stay, so that the next one goes elsewhere. */
struct net {
    struct grpc_channel *all[N_CHANNELS];
    size_t n;
    struct grpc_channel *to[N_LOOPS];
};

static void connect_all(struct net *net)
{
    static struct provider probe;

    *net = (struct net){.n = 0};
    probe = (struct provider){.toolset = "a", .incarnation = "probe-00"};
    while ((!net->to[0] || !net->to[1]) && net->n < N_CHANNELS) {
        struct grpc_channel **channel = &net->all[net->n++];
        struct leg *leg;

        CHECK(grpc_channel_new_wait(g.loop, peg__str(peg_gateway_address(g.gateway)), NULL, channel,
                                    &g.error) == PEG_OK);
        leg = attach(&probe, 0, *channel);
        net->to[is_on(1, probe.incarnation)] = *channel;
        detach(leg);
    }
    CHECK(net->to[0] && net->to[1]);
}

static void disconnect_all(struct net *net)
{
    for (size_t i = 0; i < net->n; i++)
        grpc_channel_free_wait(net->all[i]);
}

static void register_idempotent(const char *name)
{
    struct req req = {0};

    req_init(&req, name);
    req.tools[0].idempotent = true;
    CHECK_STR(register_req(&req), "ok");
}

static void open_both(struct net *net, int64_t lease_ms)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .threads = N_LOOPS,
                                       .lease_ms = lease_ms, .drain_ms = 1000,
                                       .log_file = "/dev/null"};

    world_open_with(&config);
    register_idempotent("a");
    CHECK_STR(register_named("b", NULL), "ok");
    connect_all(net);
}

static void shut_both(struct net *net)
{
    disconnect_all(net);
    world_shut();
}

/* ---- callers, each on a thread of its own ------------------------------------------------------
 */

struct caller {
    pthread_t thread;
    struct grpc_channel *channel;
    const char *toolset;
    bool cancels; /* every tenth of its calls */
    unsigned n_calls;
    unsigned n_right;
    unsigned n_canceled;
    char wrong[400];
};

static Pegboard__V1__CallToolRequest request_of(const char *toolset, const char *payload)
{
    Pegboard__V1__CallToolRequest request = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;

    request.toolset = req_text(toolset);
    request.tool = req_text("get");
    request.payload = req_bytes(payload);
    request.timeout_ms = 60000;
    return request;
}

/* NULL: it failed, and `wrong` says how. */
static const void *ask(struct caller *caller, unsigned method, const void *request,
                       struct grpc_answer *answer)
{
    peg_error error;

    if (grpc_call_wait(caller->channel, &pegboard_v1_registry_methods[method], request, NULL,
                       answer, &error)) {
        snprintf(caller->wrong, sizeof(caller->wrong), "not asked: %s", error.message);
        return NULL;
    }
    if (answer->status.code != GRPC_OK)
        snprintf(caller->wrong, sizeof(caller->wrong), "%s: %.*s",
                 grpc_code_name(answer->status.code), PEG_ARG(answer->status.message));
    return answer->status.code == GRPC_OK ? answer->message : NULL;
}

static void call_once(struct caller *caller)
{
    const Pegboard__V1__CallToolRequest request = request_of(caller->toolset, "{\"city\":\"Ulm\"}");
    struct grpc_answer answer = {.message = NULL};
    const Pegboard__V1__CallToolResponse *response =
        ask(caller, PEGBOARD_V1_REGISTRY_CALL_TOOL, &request, &answer);

    if (response && response->result.len == 4 && memcmp(response->result.data, "true", 4) == 0)
        caller->n_right++;
    grpc_answer_free(&answer);
}

/* Starts one that does not end, cancels it and hears that it was. */
static void cancel_once(struct caller *caller)
{
    const Pegboard__V1__CallToolRequest request =
        request_of(caller->toolset, "{\"city\":\"hold\"}");
    Pegboard__V1__CancelToolRequest cancel = PEGBOARD__V1__CANCEL_TOOL_REQUEST__INIT;
    Pegboard__V1__AwaitToolRequest await = PEGBOARD__V1__AWAIT_TOOL_REQUEST__INIT;
    struct grpc_answer answers[3] = {{.message = NULL}};
    const Pegboard__V1__StartToolResponse *started =
        ask(caller, PEGBOARD_V1_REGISTRY_START_TOOL, &request, &answers[0]);
    const Pegboard__V1__CallToolResponse *ended = NULL;

    if (started) {
        cancel.call_id = await.call_id = started->call_id;
        if (ask(caller, PEGBOARD_V1_REGISTRY_CANCEL_TOOL, &cancel, &answers[1]))
            ended = ask(caller, PEGBOARD_V1_REGISTRY_AWAIT_TOOL, &await, &answers[2]);
    }
    /* One that was canceled before a provider had it is told so as a failure. */
    if (ended ? ended->error && strcmp(ended->error->code, "canceled") == 0
              : answers[2].status.code == GRPC_CANCELLED)
        caller->n_canceled++;
    for (unsigned i = 0; i < 3; i++)
        grpc_answer_free(&answers[i]);
}

static void *call_many(void *arg)
{
    struct caller *caller = arg;

    for (unsigned i = 0; i < caller->n_calls; i++) {
        if (caller->cancels && i % 10 == 9)
            cancel_once(caller);
        else
            call_once(caller);
    }
    return NULL;
}

static void start(struct caller *caller)
{
    CHECK(pthread_create(&caller->thread, NULL, call_many, caller) == 0);
}

static void check_done(struct caller *caller)
{
    pthread_join(caller->thread, NULL);
    if (caller->n_right + caller->n_canceled != caller->n_calls)
        T_FAIL("%u right and %u canceled of %u: %s", caller->n_right, caller->n_canceled,
               caller->n_calls, caller->wrong);
}

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* Renewed three times while it lasts: often here, though no loop is held up for as long. */
enum { LEASE_MS = 3000 };

/* ---- the tests ----------------------------------------------------------------------------------
 */

static struct provider first;
static struct provider second;

/* ---- who knows of a provider that is welcomed --------------------------------------------------
 */

/* A loop that is held up, and learns of nothing meanwhile. */
struct hold {
    struct net_message message; /* the first member */
    atomic_bool has_begun;
    atomic_bool is_over;
};

enum { HOLD_MS = 250 };

static void hold_up(struct net_message *message)
{
    struct hold *hold = (struct hold *)message;
    const struct timespec pause = {.tv_nsec = HOLD_MS * PEG_NS_PER_MS};

    atomic_store(&hold->has_begun, true);
    nanosleep(&pause, NULL);
    atomic_store(&hold->is_over, true);
}

/* Else a caller that heard of it could be told there that no provider is attached. */
TEST(a_provider_is_welcomed_when_every_loop_of_its_node_knows_of_it)
{
    static struct provider provider;
    const struct gw_node *node;
    struct hold hold = {.message.fn = hold_up};
    struct net net;
    struct leg *leg;
    int64_t began_ns;

    open_both(&net, 5000);
    node = (const struct gw_node *)g.gateway; /* its first member */
    provider = (struct provider){.toolset = "b", .incarnation = "provider-b"};
    net_loop_post(net_loops_at(node->loops, 1), &hold.message);
    while (!atomic_load(&hold.has_begun))
        sched_yield();
    began_ns = peg_clock_mono_ns(peg_clock_system());

    leg = attach(&provider, 0, net.to[0]);

    /* It waits for a second at most: a machine that had no time for the other loop proves nothing.
     */
    CHECK(atomic_load(&hold.is_over) ||
          peg_clock_mono_ns(peg_clock_system()) - began_ns > 900 * PEG_NS_PER_MS);
    while (!atomic_load(&hold.is_over))
        sched_yield();
    detach(leg);
    shut_both(&net);
}

TEST(calls_and_cancellations_cross_loops_both_ways)
{
    struct caller callers[2 * N_THREADS];
    struct net net;

    open_both(&net, 10000);
    first = (struct provider){.toolset = "a", .incarnation = "first-00", .caller_loop = 1};
    second = (struct provider){.toolset = "b", .incarnation = "second-00", .caller_loop = 0};
    attach(&first, 0, net.to[0]);
    attach(&second, 0, net.to[1]);
    CHECK(is_on(0, first.incarnation) && is_on(1, second.incarnation));

    for (unsigned i = 0; i < 2 * N_THREADS; i++) {
        callers[i] = (struct caller){.channel = net.to[1 - i % 2],
                                     .toolset = i % 2 ? "b" : "a",
                                     .cancels = true,
                                     .n_calls = N_CALLS};
        start(&callers[i]);
    }
    for (unsigned i = 0; i < 2 * N_THREADS; i++)
        check_done(&callers[i]);

    CHECK_INT(first.n_uncrossed + second.n_uncrossed, 0);
    CHECK(first.n_calls >= N_THREADS * N_CALLS / 10 * 9);
    CHECK(second.n_calls >= N_THREADS * N_CALLS / 10 * 9);
    detach(&first.legs[0]);
    detach(&second.legs[0]);
    shut_both(&net);
}

/* Its new stream is there before the old one ends, as after a break that only it has noticed. */
TEST(a_provider_that_moves_from_loop_to_loop_loses_no_call)
{
    struct caller callers[N_THREADS];
    struct net net;
    unsigned at = 0;

    open_both(&net, LEASE_MS);
    first = (struct provider){.toolset = "a", .incarnation = "first-00", .caller_loop = 1};
    attach(&first, at, net.to[at]);
    for (unsigned i = 0; i < N_THREADS; i++) {
        callers[i] = (struct caller){.channel = net.to[1], .toolset = "a", .n_calls = 3 * N_CALLS};
        start(&callers[i]);
    }

    for (unsigned i = 0; i < 8; i++) {
        pause_ms(20);
        at = 1 - at;
        attach(&first, at, net.to[at]);
        detach(&first.legs[1 - at]);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        check_done(&callers[i]);

    detach(&first.legs[at]);
    shut_both(&net);
}

/* The old half does not know that it is one. If it kept the lease, it would be asked for the call,
 * and what it does not have would be started a second time. */
TEST(the_old_half_of_a_provider_that_moved_gives_way)
{
    struct caller caller = {.toolset = "a", .n_calls = 1};
    struct net net;

    open_both(&net, LEASE_MS);
    first = (struct provider){.toolset = "a", .incarnation = "first-00", .caller_loop = 1};
    attach(&first, 0, net.to[0]);
    attach(&first, 1, net.to[1]);

    stream_await(&first.legs[0].stream, "end ");
    CHECK(!is_on(0, first.incarnation));
    CHECK(is_on(1, first.incarnation));
    caller.channel = net.to[1];
    start(&caller);
    check_done(&caller);
    stream_free(&first.legs[0].stream);
    detach(&first.legs[1]);
    shut_both(&net);
}

static void let_go(void *arg)
{
    struct provider *provider = arg;

    for (size_t i = 0; i < provider->n_running; i++) {
        provider->running[i].is_held = false;
        reply(&provider->legs[provider->at], &provider->running[i], NULL);
    }
}

static void start_held(struct provider *provider, char ret_id[BUS_ID_TEXT])
{
    const Pegboard__V1__CallToolRequest request =
        request_of(provider->toolset, "{\"city\":\"hold\"}");
    const Pegboard__V1__StartToolResponse *started = ASK(START_TOOL, &request);

    CHECK(started != NULL);
    snprintf(ret_id, BUS_ID_TEXT, "%s", started->call_id);
    for (unsigned i = 0; i < 30000 && !provider->n_held; i++)
        pause_ms(1);
    CHECK_INT(provider->n_held, 1);
}

static void check_result(char *id)
{
    Pegboard__V1__AwaitToolRequest await = PEGBOARD__V1__AWAIT_TOOL_REQUEST__INIT;
    const Pegboard__V1__CallToolResponse *ended;

    await.call_id = id;
    ended = ASK(AWAIT_TOOL, &await);
    CHECK(ended != NULL);
    CHECK_INT(ended->result.len, 4);
}

static void check_ended(struct provider *provider, char *id)
{
    on_client(let_go, provider);
    check_result(id);
    CHECK_INT(provider->n_held, 1);
}

/* The loop that it leaves gives back what waits there, with a Nak. */
TEST(a_call_that_waits_goes_where_its_provider_went)
{
    const Pegboard__V1__CallToolRequest request = request_of("a", "{\"city\":\"x\"}");
    const Pegboard__V1__StartToolResponse *started;
    char held[BUS_ID_TEXT];
    char waits[BUS_ID_TEXT];
    struct net net;

    open_both(&net, 10000);
    first = (struct provider){.toolset = "a", .incarnation = "first-00", .credits = 1};
    attach(&first, 0, net.to[0]);
    start_held(&first, held);
    started = ASK(START_TOOL, &request);
    CHECK(started != NULL);
    snprintf(waits, sizeof(waits), "%s", started->call_id);

    attach(&first, 1, net.to[1]);
    stream_await(&first.legs[0].stream, "end ");
    check_ended(&first, held);
    check_result(waits);
    CHECK_INT(first.n_calls, 2);

    stream_free(&first.legs[0].stream);
    detach(&first.legs[1]);
    shut_both(&net);
}

/* One moves this way, one that way: whichever loop renews its leases last is once the old one. */
TEST(a_call_to_a_provider_that_moved_is_started_once)
{
    char ids[2][BUS_ID_TEXT];
    struct net net;

    open_both(&net, LEASE_MS);
    register_idempotent("b");
    first = (struct provider){.toolset = "a", .incarnation = "first-00"};
    second = (struct provider){.toolset = "b", .incarnation = "second-00"};
    attach(&first, 0, net.to[0]);
    attach(&second, 1, net.to[1]);
    attach(&first, 1, net.to[1]);
    attach(&second, 0, net.to[0]);

    start_held(&first, ids[0]);
    start_held(&second, ids[1]);
    pause_ms(3500); /* their coordinators ask after one second, after two, after four */
    CHECK_INT(first.n_held, 1);
    CHECK_INT(second.n_held, 1);
    check_ended(&first, ids[0]);
    check_ended(&second, ids[1]);

    for (unsigned i = 0; i < 2; i++) {
        detach(&first.legs[i]);
        detach(&second.legs[i]);
    }
    shut_both(&net);
}

static void cancel(const char *id)
{
    Pegboard__V1__CancelToolRequest request = PEGBOARD__V1__CANCEL_TOOL_REQUEST__INIT;

    request.call_id = req_text(id);
    CHECK(ASK(CANCEL_TOOL, &request) != NULL);
}

/* Its coordinator learns of the other loop with its next recheck, a second later, or not at all. */
TEST(a_cancellation_reaches_a_provider_that_comes_back_on_another_loop)
{
    char id[BUS_ID_TEXT];
    struct net net;

    open_both(&net, 10000);
    for (unsigned is_away = 0; is_away < 2; is_away++) {
        first = (struct provider){.toolset = "b", .incarnation = is_away ? "first-00" : "first-01"};
        attach(&first, 0, net.to[0]);
        start_held(&first, id);
        detach(&first.legs[0]);
        if (is_away)
            cancel(id);
        attach(&first, 1, net.to[1]);
        if (!is_away)
            cancel(id);
        for (unsigned i = 0; i < 20000 && !first.n_canceled; i++)
            pause_ms(1);
        CHECK_INT(first.n_canceled, 1);
        detach(&first.legs[1]);
    }
    shut_both(&net);
}
