/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client that docs/modules/grpc.md walks through.
 *
 *   example_client TARGET TOKEN TEXT [TIMES]    one Echo, or a Repeat of so many
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "pegboard/test/echo.grpc.h"

enum { TIMEOUT_MS = 5000 };

static void must(peg_status status, const peg_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "example_client: %s: %s\n", error->code, error->message);
    exit(2);
}

/* What every call carries. */
static void show_token(struct grpc_rpc *rpc, void *user)
{
    if (grpc_rpc_add_metadata(rpc, peg__str("authorization"), peg__str(user), NULL))
        grpc_rpc_cancel(rpc);
}

static int print_end(const struct grpc_status *status)
{
    if (status->code != GRPC_OK)
        printf("%s: %.*s\n", grpc_code_name(status->code), PEG_ARG(status->message));
    return status->code == GRPC_OK ? 0 : 1;
}

/* ---- one answer: this thread waits ----------------------------------------------------------- */

static int call_echo(struct grpc_channel *channel, char *text)
{
    Pegboard__Test__EchoRequest request = PEGBOARD__TEST__ECHO_REQUEST__INIT;
    const struct grpc_rpc_options options = {.timeout_ms = TIMEOUT_MS};
    const Pegboard__Test__EchoReply *reply;
    struct grpc_answer answer;
    peg_error error;
    int result;

    request.payload = (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
    must(grpc_call_wait(channel, &pegboard_test_echo_methods[PEGBOARD_TEST_ECHO_ECHO], &request,
                        &options, &answer, &error),
         &error);
    reply = pegboard_test_echo_echo_response(answer.message);
    if (reply)
        printf("%.*s\n", (int)reply->payload.len, (const char *)reply->payload.data);
    result = print_end(&answer.status);
    grpc_answer_free(&answer);
    return result;
}

/* ---- many answers: this thread is the loop --------------------------------------------------- */

struct listening {
    struct net_loop *loop;
    unsigned n_heard;
    int result;
};

static void hear(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct listening *listening = user;

    (void)rpc;
    (void)pegboard_test_echo_repeat_response(message);
    listening->n_heard++;
}

static void hear_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                     const struct grpc_metadata *trailers, void *user)
{
    struct listening *listening = user;

    (void)rpc;
    (void)trailers;
    listening->result = print_end(status);
    net_loop_stop(listening->loop);
}

static int call_repeat(const char *target, const struct grpc_channel_options *options, char *text,
                       uint32_t times)
{
    static const struct grpc_rpc_events events = {.on_message = hear, .on_end = hear_end};
    const struct grpc_rpc_options call = {.timeout_ms = TIMEOUT_MS, .waits_for_ready = true};
    Pegboard__Test__RepeatRequest request = PEGBOARD__TEST__REPEAT_REQUEST__INIT;
    struct listening listening = {0};
    struct grpc_channel *channel = NULL;
    peg_error error;

    request.payload = (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
    request.times = times;
    must(net_loop_new(&listening.loop, &error), &error);
    must(grpc_channel_new(listening.loop, peg_cstr(target), options, &channel, &error), &error);
    must(
        pegboard_test_echo_repeat_call(channel, &request, &call, &events, &listening, NULL, &error),
        &error);
    net_loop_run(listening.loop);
    printf("heard it %u times\n", listening.n_heard);
    grpc_channel_free(channel);
    net_loop_free(listening.loop);
    return listening.result;
}

/* ---- the program ---------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    struct net_loops *loops = NULL;
    struct grpc_channel *channel = NULL;
    peg_error error;
    int result;

    if (argc < 4) {
        fprintf(stderr, "usage: example_client TARGET TOKEN TEXT [TIMES]\n");
        return 2;
    }
    const struct grpc_client_interceptor shows_token = {.on_start = show_token, .user = argv[2]};
    const struct grpc_channel_options options = {.interceptors = &shows_token, .n_interceptors = 1};

    if (argc > 4)
        return call_repeat(argv[1], &options, argv[3], (uint32_t)strtoul(argv[4], NULL, 10));
    must(net_loops_new(1, &loops, &error), &error);
    must(grpc_channel_new_wait(net_loops_at(loops, 0), peg_cstr(argv[1]), &options, &channel,
                               &error),
         &error);
    result = call_echo(channel, argv[3]);
    grpc_channel_free_wait(channel);
    net_loops_free(loops);
    return result;
}
