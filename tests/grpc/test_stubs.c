/* SPDX-License-Identifier: Apache-2.0 */

/* What tools/grpc-gen writes, used as a program uses it: a service of each kind of method, and a
 * client of it. */

#include "../t.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "pegboard/test/echo.grpc.h"
#include "pegboard/test/odd.grpc.h"

/* ---- the service ----------------------------------------------------------------------------- */

struct service {
    struct pegboard_test_echo_handlers handlers;
    struct peg__buf collected;
    int n_ended;
};

static Pegboard__Test__EchoReply reply_with(ProtobufCBinaryData payload)
{
    Pegboard__Test__EchoReply reply = PEGBOARD__TEST__ECHO_REPLY__INIT;

    reply.payload = payload;
    return reply;
}

static void echo(struct grpc_call *call, const Pegboard__Test__EchoRequest *request, void *user)
{
    const Pegboard__Test__EchoReply reply = reply_with(request->payload);

    (void)user;
    pegboard_test_echo_echo_reply(call, &reply);
}

static void repeat(struct grpc_call *call, const Pegboard__Test__RepeatRequest *request, void *user)
{
    const Pegboard__Test__EchoReply reply = reply_with(request->payload);
    const struct grpc_status ok = {.code = GRPC_OK};

    (void)user;
    for (uint32_t i = 0; i < request->times; i++)
        (void)pegboard_test_echo_repeat_send(call, &reply, NULL);
    grpc_call_finish(call, &ok);
}

static void collect(struct grpc_call *call, const Pegboard__Test__EchoRequest *request, void *user)
{
    struct service *service = user;

    (void)call;
    peg__buf_add(&service->collected, request->payload.data, request->payload.len);
}

static void reply_collected(struct grpc_call *call, void *user)
{
    struct service *service = user;
    const Pegboard__Test__EchoReply reply = reply_with((ProtobufCBinaryData){
        .len = service->collected.len, .data = (uint8_t *)service->collected.ptr});

    pegboard_test_echo_collect_reply(call, &reply);
}

static void chat(struct grpc_call *call, const Pegboard__Test__EchoRequest *request, void *user)
{
    const Pegboard__Test__EchoReply reply = reply_with(request->payload);

    (void)user;
    (void)pegboard_test_echo_chat_send(call, &reply, NULL);
}

static void end_chat(struct grpc_call *call, void *user)
{
    const struct grpc_status ok = {.code = GRPC_OK};

    (void)user;
    grpc_call_finish(call, &ok);
}

static void count_end(struct grpc_call *call, void *user)
{
    struct service *service = user;

    (void)call;
    service->n_ended++;
}

/* ---- fixture: the service, and a client whose loop the test runs ----------------------------- */

struct world {
    struct net_loops *loops;
    struct grpc_server *server;
    struct service service;
    struct net_loop *loop;
    struct grpc_channel *channel;
    struct peg__buf heard; /* payloads, each with a '.' behind it */
    enum grpc_code code;
};

static void world_init(struct world *w)
{
    struct net_address address;
    char text[NET_ADDRESS_TEXT];
    peg_error error;

    *w = (struct world){.heard = PEG__BUF(1000), .service.collected = PEG__BUF(1000)};
    w->service.handlers = (struct pegboard_test_echo_handlers){
        .user = &w->service,
        .echo = echo,
        .echo_on_end = count_end,
        .repeat = repeat,
        .repeat_on_end = count_end,
        .collect_on_message = collect,
        .collect_on_half_close = reply_collected,
        .collect_on_end = count_end,
        .chat_on_message = chat,
        .chat_on_half_close = end_chat,
        .chat_on_end = count_end,
    };
    CHECK_STATUS(net_loops_new(1, &w->loops, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_new(w->loops, NULL, &w->server, &error), PEG_OK, error);
    CHECK_STATUS(pegboard_test_echo_add(w->server, &w->service.handlers, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_listen(w->server, peg__str("127.0.0.1:0"), NULL, &address, &error),
                 PEG_OK, error);
    net_address_format(&address, text);
    CHECK_STATUS(net_loop_new(&w->loop, &error), PEG_OK, error);
    CHECK_STATUS(grpc_channel_new(w->loop, peg__str(text), NULL, &w->channel, &error), PEG_OK,
                 error);
}

/* Every call has ended by then, at the server too. */
static void world_done(struct world *w, int n_calls)
{
    grpc_channel_free(w->channel);
    net_loop_free(w->loop);
    grpc_server_free(w->server);
    net_loops_free(w->loops);
    peg__buf_free(&w->heard);
    peg__buf_free(&w->service.collected);
    CHECK_INT(w->service.n_ended, n_calls);
}

static void on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    const Pegboard__Test__EchoReply *reply = pegboard_test_echo_echo_response(message);
    struct world *w = user;

    (void)rpc;
    peg__buf_add(&w->heard, reply->payload.data, reply->payload.len);
    peg__buf_putc(&w->heard, '.');
}

static void on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                   const struct grpc_metadata *trailers, void *user)
{
    struct world *w = user;

    (void)rpc;
    (void)trailers;
    w->code = status->code;
    net_loop_stop(w->loop);
}

static const struct grpc_rpc_events events = {.on_message = on_message, .on_end = on_end};

static ProtobufCBinaryData bytes_of(char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
}

static Pegboard__Test__EchoRequest request_with(char *payload)
{
    Pegboard__Test__EchoRequest request = PEGBOARD__TEST__ECHO_REQUEST__INIT;

    request.payload = bytes_of(payload);
    return request;
}

/* ---- one of each kind ------------------------------------------------------------------------ */

TEST(stubs_carry_one_message_each_way)
{
    struct world w;
    char payload[] = "one";
    const Pegboard__Test__EchoRequest request = request_with(payload);

    world_init(&w);
    CHECK_INT(pegboard_test_echo_echo_call(w.channel, &request, NULL, &events, &w, NULL, NULL),
              PEG_OK);
    net_loop_run(w.loop);

    CHECK_INT(w.code, GRPC_OK);
    CHECK_STR(peg__buf_view(&w.heard), "one.");
    world_done(&w, 1);
}

TEST(stubs_carry_many_answers)
{
    struct world w;
    char payload[] = "many";
    Pegboard__Test__RepeatRequest request = PEGBOARD__TEST__REPEAT_REQUEST__INIT;

    request.payload = bytes_of(payload);
    request.times = 3;
    world_init(&w);
    CHECK_INT(pegboard_test_echo_repeat_call(w.channel, &request, NULL, &events, &w, NULL, NULL),
              PEG_OK);
    net_loop_run(w.loop);

    CHECK_INT(w.code, GRPC_OK);
    CHECK_STR(peg__buf_view(&w.heard), "many.many.many.");
    world_done(&w, 1);
}

TEST(stubs_carry_many_questions)
{
    struct world w;
    struct grpc_rpc *rpc = NULL;
    char a[] = "a";
    char b[] = "b";
    const Pegboard__Test__EchoRequest first = request_with(a);
    const Pegboard__Test__EchoRequest second = request_with(b);

    world_init(&w);
    CHECK_INT(pegboard_test_echo_collect_call(w.channel, NULL, &events, &w, &rpc, NULL), PEG_OK);
    CHECK_INT(pegboard_test_echo_collect_say(rpc, &first, NULL), PEG_OK);
    CHECK_INT(pegboard_test_echo_collect_say(rpc, &second, NULL), PEG_OK);
    grpc_rpc_half_close(rpc);
    net_loop_run(w.loop);

    CHECK_INT(w.code, GRPC_OK);
    CHECK_STR(peg__buf_view(&w.heard), "ab.");
    world_done(&w, 1);
}

TEST(stubs_carry_many_messages_both_ways)
{
    struct world w;
    struct grpc_rpc *rpc = NULL;
    char a[] = "a";
    char b[] = "b";
    const Pegboard__Test__EchoRequest first = request_with(a);
    const Pegboard__Test__EchoRequest second = request_with(b);

    world_init(&w);
    CHECK_INT(pegboard_test_echo_chat_call(w.channel, NULL, &events, &w, &rpc, NULL), PEG_OK);
    CHECK_INT(pegboard_test_echo_chat_say(rpc, &first, NULL), PEG_OK);
    CHECK_INT(pegboard_test_echo_chat_say(rpc, &second, NULL), PEG_OK);
    grpc_rpc_half_close(rpc);
    net_loop_run(w.loop);

    CHECK_INT(w.code, GRPC_OK);
    CHECK_STR(peg__buf_view(&w.heard), "a.b.");
    world_done(&w, 1);
}

/* ---- what nobody handles --------------------------------------------------------------------- */

TEST(stubs_leave_methods_without_a_handler_unimplemented)
{
    struct world w;
    static const struct pegboard_test_odd_ones_handlers none;
    struct grpc_handler table[2];
    char payload[] = "";
    const Pegboard__Test__EchoRequest request = request_with(payload);

    pegboard_test_odd_ones_fill(&none, table);
    CHECK(!table[PEGBOARD_TEST_ODD_ONES_REGISTER].on_message);
    CHECK(!table[PEGBOARD_TEST_ODD_ONES_HTTPCALL].on_end);

    world_init(&w);
    CHECK_INT(
        pegboard_test_odd_ones_httpcall_call(w.channel, &request, NULL, &events, &w, NULL, NULL),
        PEG_OK);
    net_loop_run(w.loop);
    CHECK_INT(w.code, GRPC_UNIMPLEMENTED);
    CHECK_STR(peg__buf_view(&w.heard), "");
    world_done(&w, 0);
}
