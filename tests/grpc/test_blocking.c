/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that wait, from threads that have no loop, to a server of ours with typed messages; and
 * calls that a server makes while it answers one. */

#include "grpc/client/client.h"

#include <pthread.h>
#include <stdatomic.h>

#include "pegboard/test/echo.grpc.h"
#include "t.h"

#include "base/text/str.h"

struct world {
    struct net_loops *loops;
    struct grpc_server *server;
    struct grpc_channel *channel;
    char target[NET_ADDRESS_TEXT];
    peg_error error;
    struct pegboard_test_echo_handlers handlers;
    /* of the calls that are handed on */
    struct grpc_channel *onward;
    atomic_uint n_onward;
    atomic_uint n_onward_ends;
    atomic_int onward_code;
    atomic_llong onward_deadline_ns;
    atomic_uint n_started;
};

static const struct grpc_method *const echo = &pegboard_test_echo_methods[0];
static const struct grpc_method *const repeat = &pegboard_test_echo_methods[1];

/* ---- the server --------------------------------------------------------------------------- */

static void on_echo(struct grpc_call *call, const Pegboard__Test__EchoRequest *request, void *user)
{
    Pegboard__Test__EchoReply reply = PEGBOARD__TEST__ECHO_REPLY__INIT;

    (void)user;
    reply.payload = request->payload;
    grpc_call_add_trailer(call, peg__str("x-end"), peg__str("bye"), NULL);
    grpc_call_add_header(call, peg__str("x-begin"), peg__str("hello"), NULL);
    if (request->payload.len > 0 && request->payload.data[0] == '!')
        grpc_call_fail(call, GRPC_ABORTED, "you said so");
    else
        pegboard_test_echo_echo_reply(call, &reply);
}

static void on_onward_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                          const struct grpc_metadata *trailers, void *user)
{
    struct world *w = user;

    (void)rpc;
    (void)trailers;
    atomic_store(&w->onward_code, status->code);
    atomic_fetch_add(&w->n_onward_ends, 1);
}

/* Repeat: hands the call on to a Chat that nobody answers, as a call of this one. */
static void on_repeat(struct grpc_call *call, const Pegboard__Test__RepeatRequest *request,
                      void *user)
{
    static const struct grpc_rpc_events events = {.on_end = on_onward_end};
    struct world *w = user;
    const struct grpc_rpc_options options = {.parent = call, .timeout_ms = 3600000};

    (void)request;
    if (!w->onward)
        grpc_channel_new(grpc_call_loop(call), peg__str(w->target), NULL, &w->onward, NULL);
    pegboard_test_echo_chat_call(w->onward, &options, &events, w, NULL, NULL);
    atomic_fetch_add(&w->n_onward, 1);
}

static void on_chat_start(struct grpc_call *call, void *user)
{
    struct world *w = user;

    atomic_store(&w->onward_deadline_ns, grpc_call_deadline_ns(call));
    atomic_fetch_add(&w->n_started, 1);
}

static void on_chat_message(struct grpc_call *call, const Pegboard__Test__EchoRequest *request,
                            void *user)
{
    (void)call;
    (void)request;
    (void)user;
}

static peg_status world_init(struct world *w)
{
    struct net_address address;
    peg_status status;

    *w = (struct world){0};
    w->handlers = (struct pegboard_test_echo_handlers){
        .user = w,
        .echo = on_echo,
        .repeat = on_repeat,
        .chat_on_start = on_chat_start,
        .chat_on_message = on_chat_message,
    };
    if ((status = net_loops_new(1, &w->loops, &w->error)) ||
        (status = grpc_server_new(w->loops, NULL, &w->server, &w->error)) ||
        (status = pegboard_test_echo_add(w->server, &w->handlers, &w->error)) ||
        (status =
             grpc_server_listen(w->server, peg__str("127.0.0.1:0"), NULL, &address, &w->error)))
        return status;
    net_address_format(&address, w->target);
    return grpc_channel_new_wait(net_loops_at(w->loops, 0), peg__str(w->target), NULL, &w->channel,
                                 &w->error);
}

static void world_done(struct world *w)
{
    w->channel = grpc_channel_free_wait(w->channel);
    w->onward = grpc_channel_free_wait(w->onward);
    w->server = grpc_server_free(w->server);
    w->loops = net_loops_free(w->loops);
}

/* ---- calls -------------------------------------------------------------------------------- */

static peg_status call(struct world *w, const char *text, struct grpc_answer *ret_answer)
{
    Pegboard__Test__EchoRequest request = PEGBOARD__TEST__ECHO_REQUEST__INIT;

    request.payload = (ProtobufCBinaryData){strlen(text), peg__unconst(text)};
    return grpc_call_wait(w->channel, echo, &request, NULL, ret_answer, &w->error);
}

TEST(a_thread_waits_for_the_answer)
{
    struct world w;
    struct grpc_answer answer;
    const Pegboard__Test__EchoReply *reply;

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    CHECK_STATUS(call(&w, "hello", &answer), PEG_OK, w.error);

    CHECK_INT(answer.status.code, GRPC_OK);
    reply = pegboard_test_echo_echo_response(answer.message);
    CHECK_STR(peg__strn((const char *)reply->payload.data, reply->payload.len), "hello");
    CHECK_STR(grpc_metadata_get(&answer.headers, "x-begin"), "hello");
    CHECK_STR(grpc_metadata_get(&answer.trailers, "x-end"), "bye");
    grpc_answer_free(&answer);
    world_done(&w);
}

TEST(a_call_that_fails_is_an_answer)
{
    struct world w;
    struct grpc_answer answer;

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    CHECK_STATUS(call(&w, "!", &answer), PEG_OK, w.error);

    CHECK_INT(answer.status.code, GRPC_ABORTED);
    CHECK_STR(answer.status.message, "you said so");
    CHECK(!answer.message);
    grpc_answer_free(&answer);
    world_done(&w);
}

TEST(bytes_go_where_messages_go)
{
    static const struct grpc_method raw = {.path = "/pegboard.test.Echo/Echo"};
    const peg_str request = PEG_LIT("\x0a\x02hi");
    struct world w;
    struct grpc_answer answer;

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    CHECK_STATUS(grpc_call_wait(w.channel, &raw, &request, NULL, &answer, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(answer.status.code, GRPC_OK);
    CHECK_STR(*(const peg_str *)answer.message, "\x0a\x02hi");
    grpc_answer_free(&answer);
    world_done(&w);
}

static void *call_often(void *user)
{
    struct world *w = user;
    intptr_t n_good = 0;

    for (unsigned i = 0; i < 100; i++) {
        struct grpc_answer answer;
        Pegboard__Test__EchoRequest request = PEGBOARD__TEST__ECHO_REQUEST__INIT;

        if (grpc_call_wait(w->channel, echo, &request, NULL, &answer, NULL))
            continue;
        n_good += answer.status.code == GRPC_OK && answer.message;
        grpc_answer_free(&answer);
    }
    return n_good == 100 ? NULL : w;
}

TEST(several_threads_share_a_channel)
{
    enum { N = 4 };
    struct world w;
    pthread_t threads[N];

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    for (unsigned i = 0; i < N; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, call_often, &w), 0);

    for (unsigned i = 0; i < N; i++) {
        void *failed = &w;

        CHECK_INT(pthread_join(threads[i], &failed), 0);
        CHECK(!failed);
    }
    world_done(&w);
}

TEST(mistakes_of_the_caller_come_back)
{
    struct world w;
    struct grpc_channel *channel = NULL;
    const struct grpc_rpc_options options = {.timeout_ms = -1};
    Pegboard__Test__EchoRequest request = PEGBOARD__TEST__ECHO_REQUEST__INIT;
    struct grpc_answer answer;

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    CHECK_INT(grpc_channel_new_wait(net_loops_at(w.loops, 0), peg__str("nonsense:port"), NULL,
                                    &channel, &w.error),
              PEG_EPARSE);
    CHECK_STR(peg__str(w.error.code), "E_ADDRESS");
    CHECK_INT(grpc_call_wait(w.channel, echo, &request, &options, &answer, &w.error), PEG_EINVAL);
    CHECK(!channel);
    world_done(&w);
}

TORTURE(waiting_survives_any_allocation_failure)
{
    struct world w;
    struct grpc_answer answer;
    peg_status status = world_init(&w);

    if (!status)
        status = call(&w, "hello", &answer);
    if (!status)
        grpc_answer_free(&answer);
    world_done(&w);
    return status;
}

/* ---- calls inside calls ------------------------------------------------------------------- */

static void wait_until(atomic_uint *counter, unsigned at_least)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 60000 && atomic_load(counter) < at_least; i++)
        nanosleep(&moment, NULL);
    CHECK(atomic_load(counter) >= at_least);
}

/* A call that is handed on before its time is over. On a machine that is slow it may be over before
 * the call has reached its handler; a call after it on the same connection is answered after it. */
static bool was_handed_on(struct world *w, int64_t timeout_ms)
{
    const struct grpc_rpc_options options = {.timeout_ms = timeout_ms};
    Pegboard__Test__RepeatRequest request = PEGBOARD__TEST__REPEAT_REQUEST__INIT;
    struct grpc_answer answer;

    CHECK_STATUS(grpc_call_wait(w->channel, repeat, &request, &options, &answer, &w->error), PEG_OK,
                 w->error);
    CHECK_INT(answer.status.code, GRPC_DEADLINE_EXCEEDED);
    grpc_answer_free(&answer);
    CHECK_INT(call(w, "hello", &answer), PEG_OK);
    grpc_answer_free(&answer);
    return w->n_onward > 0;
}

TEST(a_deadline_and_its_end_travel_on)
{
    struct world w;
    int64_t timeout_ms = 50;

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    while (!was_handed_on(&w, timeout_ms) && timeout_ms < 10000)
        timeout_ms *= 4;

    wait_until(&w.n_onward_ends, 1);
    CHECK(w.onward_code == GRPC_DEADLINE_EXCEEDED || w.onward_code == GRPC_CANCELLED);
    CHECK(w.n_started == 0 || w.onward_deadline_ns != NET_NEVER); /* not an hour later */
    world_done(&w);
}

struct canceling {
    struct net_message message; /* first */
    struct world *w;
    struct grpc_rpc *rpc;
};

static void start_repeat(struct net_message *message)
{
    static const struct grpc_rpc_events events = {0};
    struct canceling *c = (struct canceling *)(void *)message;
    Pegboard__Test__RepeatRequest request = PEGBOARD__TEST__REPEAT_REQUEST__INIT;

    pegboard_test_echo_repeat_call(c->w->channel, &request, NULL, &events, NULL, &c->rpc, NULL);
}

static void cancel_repeat(struct net_message *message)
{
    grpc_rpc_cancel(((struct canceling *)(void *)message)->rpc);
}

TEST(a_cancellation_travels_on)
{
    struct world w;
    struct canceling c = {.message.fn = start_repeat, .w = &w};

    CHECK_STATUS(world_init(&w), PEG_OK, w.error);
    net_loop_post(net_loops_at(w.loops, 0), &c.message);
    wait_until(&w.n_started, 1); /* the call of the call has reached the server */
    c.message.fn = cancel_repeat;
    net_loop_post(net_loops_at(w.loops, 0), &c.message);

    wait_until(&w.n_onward_ends, 1);
    CHECK_INT(w.onward_code, GRPC_CANCELLED);
    world_done(&w);
}
