/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The least that a provider can do, so that the gateway is what is measured: attaches the toolset
 * `bench` with the tool `echo`, and answers every call on its loop with its own arguments.
 *
 *   gateway-provider 127.0.0.1:PORT [CREDITS]
 *
 * Says "ready" when it is attached, and ends when its stream does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../help.h"
#include "pegboard/v1/registry.grpc.h"

static struct grpc_rpc *stream;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "gateway-provider: %s: %s\n", what, why);
    exit(1);
}

static void say(const Pegboard__V1__AttachRequest *frame)
{
    peg_error error;

    if (grpc_rpc_send_message(stream, &frame->base, &error))
        fail("a frame", error.message);
}

static void answer(const Pegboard__V1__Call *call)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;

    result.call_id = call->call_id;
    result.attempt = call->attempt;
    result.chunk = call->payload;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT;
    frame.result = &result;
    say(&frame);
}

static void pong(const Pegboard__V1__Ping *ping)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__ProviderPong answered = PEGBOARD__V1__PROVIDER_PONG__INIT;

    answered.ping_id = ping->ping_id;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_PONG;
    frame.pong = &answered;
    say(&frame);
}

static void on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    const Pegboard__V1__AttachResponse *frame = message;

    (void)rpc;
    (void)user;
    switch (frame->frame_case) {
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL:
        answer(frame->call);
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_PING:
        pong(frame->ping);
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME:
        printf("ready\n");
        fflush(stdout);
        break;
    default:
        break;
    }
}

static void on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                   const struct grpc_metadata *trailers, void *user)
{
    (void)rpc;
    (void)trailers;
    if (status->code)
        fprintf(stderr, "gateway-provider: %s %.*s\n", grpc_code_name(status->code),
                (int)status->message.len, status->message.ptr);
    net_loop_stop((struct net_loop *)user);
}

static void say_hello(uint32_t credits)
{
    static char schema[] = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
                           "\"required\":[\"text\"],\"additionalProperties\":false}";
    Pegboard__V1__Tool tool = PEGBOARD__V1__TOOL__INIT;
    Pegboard__V1__Tool *tools[] = {&tool};
    Pegboard__V1__RegisterRequest registration = PEGBOARD__V1__REGISTER_REQUEST__INIT;
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    char incarnation[32];
    char toolset[] = "bench";
    char echo[] = "echo";
    char words[] = "answers with its own arguments";

    snprintf(incarnation, sizeof(incarnation), "bench-%d", (int)getpid());
    tool.name = echo;
    tool.description = words;
    tool.input_schema = (ProtobufCBinaryData){sizeof(schema) - 1, (uint8_t *)schema};
    registration.name = toolset;
    registration.tools = tools;
    registration.n_tools = 1;
    hello.toolset = toolset;
    hello.incarnation = incarnation;
    hello.credits = credits;
    hello.registration = &registration;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO;
    frame.hello = &hello;
    say(&frame);
}

int main(int argc, char **argv)
{
    const struct grpc_rpc_events events = {.on_message = on_message, .on_end = on_end};
    struct net_loop *loop;
    struct grpc_channel *channel;
    peg_error error;

    bench_help(argc, argv,
               "usage: gateway-provider ADDRESS [CREDITS]\n\n"
               "Provides the tool `echo` of the toolset `bench`, on one thread; 2000 credits by\n"
               "default.\n");
    if (argc < 2)
        fail("usage", "gateway-provider ADDRESS [CREDITS]");
    if (net_loop_new(&loop, &error) ||
        grpc_channel_new(loop, peg_cstr(argv[1]), NULL, &channel, &error) ||
        grpc_rpc_start(channel, &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_ATTACH], NULL,
                       &events, loop, &stream, &error))
        fail("attaching", error.message);
    say_hello(argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2000);
    net_loop_run(loop);
    grpc_channel_free(channel);
    net_loop_free(loop);
    return 0;
}
