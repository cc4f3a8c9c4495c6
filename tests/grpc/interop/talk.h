/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_INTEROP_TALK_H
#define PEG_TESTS_GRPC_INTEROP_TALK_H

/* Calls of a client that waits: the loop runs in this thread until what is awaited has come. What
 * goes wrong ends the program, with the place and the reason. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/testing/test.grpc.h"

enum { TALK_MESSAGES = 64, TALK_TEXT = 256, PATIENCE_S = 60 };

static const char header_key[] = "x-grpc-test-echo-initial";
static const char trailer_key[] = "x-grpc-test-echo-trailing-bin";

struct world {
    struct net_loop *loop;
    struct grpc_channel *channel;
    const char *target;
    struct grpc_channel_options options;
    struct net_timer watchdog;
};

/* What came of a message. */
struct got {
    int32_t size; /* of its payload, or what it says */
    bool was_compressed;
};

/* One call. */
struct talk {
    struct world *world;
    struct grpc_rpc *rpc; /* NULL once it has ended */
    struct got got[TALK_MESSAGES];
    unsigned n_got;
    unsigned n_read; /* of these, that the case has looked at */
    bool has_ended;
    enum grpc_code code;
    char words[TALK_TEXT];
    char header[TALK_TEXT];
    char trailer[TALK_TEXT];
    size_t trailer_len;
};

__attribute__((noreturn)) PEG_PRINTF(2, 3) static void give_up(int line, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "interop_client: line %d: ", line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* That two numbers are the same, and that nothing failed. */
#define SAME(a, b)                                                                                 \
    do {                                                                                           \
        const long long value_a = (long long)(a);                                                  \
        const long long value_b = (long long)(b);                                                  \
        if (value_a != value_b)                                                                    \
            give_up(__LINE__, "%s is %lld and should be %lld (%s)", #a, value_a, value_b, #b);     \
    } while (0)
#define MUST(call, error)                                                                          \
    do {                                                                                           \
        if (call)                                                                                  \
            give_up(__LINE__, "%s: %s", #call, (error).message);                                   \
    } while (0)

/* ---- events ------------------------------------------------------------------------------- */

static void copy_text(char ret_text[TALK_TEXT], peg_str text)
{
    const size_t len = text.len < TALK_TEXT ? text.len : TALK_TEXT - 1;

    if (len > 0)
        memcpy(ret_text, text.ptr, len);
    ret_text[len] = '\0';
}

static void on_talk_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user)
{
    struct talk *talk = user;

    (void)rpc;
    copy_text(talk->header, grpc_metadata_get(metadata, header_key));
    net_loop_stop(talk->world->loop);
}

static int32_t payload_size(const Grpc__Testing__Payload *payload)
{
    return payload ? (int32_t)payload->body.len : 0;
}

static int32_t size_of(const struct grpc_method *method, const void *message)
{
    if (method->output == &grpc__testing__simple_response__descriptor)
        return payload_size(((const Grpc__Testing__SimpleResponse *)message)->payload);
    if (method->output == &grpc__testing__streaming_output_call_response__descriptor)
        return payload_size(((const Grpc__Testing__StreamingOutputCallResponse *)message)->payload);
    if (method->output == &grpc__testing__streaming_input_call_response__descriptor)
        return ((const Grpc__Testing__StreamingInputCallResponse *)message)
            ->aggregated_payload_size;
    return 0;
}

static void on_talk_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct talk *talk = user;

    if (talk->n_got == TALK_MESSAGES)
        give_up(__LINE__, "more than %d messages came", TALK_MESSAGES);
    talk->got[talk->n_got++] = (struct got){
        .size = size_of(grpc_rpc_method(rpc), message),
        .was_compressed = grpc_rpc_was_compressed(rpc),
    };
    net_loop_stop(talk->world->loop);
}

static void on_talk_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                        const struct grpc_metadata *trailers, void *user)
{
    struct talk *talk = user;
    const peg_str trailer = grpc_metadata_get(trailers, trailer_key);

    (void)rpc;
    talk->rpc = NULL;
    talk->has_ended = true;
    talk->code = status->code;
    copy_text(talk->words, status->message);
    copy_text(talk->trailer, trailer);
    talk->trailer_len = trailer.len;
    net_loop_stop(talk->world->loop);
}

static const struct grpc_rpc_events talk_events = {
    .on_headers = on_talk_headers,
    .on_message = on_talk_message,
    .on_end = on_talk_end,
};

/* ---- waiting ------------------------------------------------------------------------------ */

static void on_watchdog(struct net_timer *timer)
{
    (void)timer;
    give_up(__LINE__, "nothing came within %d s", PATIENCE_S);
}

/* Until something has happened. */
static void run_on(struct world *world)
{
    world->watchdog.fn = on_watchdog;
    net_loop_arm(world->loop, &world->watchdog,
                 net_loop_now_ns(world->loop) + PATIENCE_S * PEG_NS_PER_S);
    net_loop_run(world->loop);
    net_loop_disarm(world->loop, &world->watchdog);
}

static void await_end(struct talk *talk)
{
    while (!talk->has_ended)
        run_on(talk->world);
}

/* The call must end like that. */
static void await_code(struct talk *talk, enum grpc_code code)
{
    await_end(talk);
    if (talk->code != code)
        give_up(__LINE__, "the call ended with %s (%s) and should have with %s",
                grpc_code_name(talk->code), talk->words, grpc_code_name(code));
}

static struct got await_message(struct talk *talk)
{
    while (talk->n_read == talk->n_got && !talk->has_ended)
        run_on(talk->world);
    if (talk->n_read == talk->n_got)
        give_up(__LINE__, "the call ended with %s (%s) before message %u",
                grpc_code_name(talk->code), talk->words, talk->n_read + 1);
    return talk->got[talk->n_read++];
}

/* ---- calling ------------------------------------------------------------------------------ */

static const struct grpc_method *method_of(unsigned i)
{
    return &grpc_testing_test_service_methods[i];
}

static void start(struct world *world, const struct grpc_method *method,
                  const struct grpc_rpc_options *options, struct talk *talk)
{
    peg_error error;

    *talk = (struct talk){.world = world};
    MUST(grpc_rpc_start(world->channel, method, options, &talk_events, talk, &talk->rpc, &error),
         error);
}

static void start_unary(struct world *world, const struct grpc_method *method,
                        const ProtobufCMessage *request, const struct grpc_rpc_options *options,
                        struct talk *talk)
{
    peg_error error;

    *talk = (struct talk){.world = world};
    MUST(grpc_rpc_unary(world->channel, method, request, options, &talk_events, talk, &talk->rpc,
                        &error),
         error);
}

static void say(struct talk *talk, const ProtobufCMessage *message)
{
    peg_error error;

    if (talk->has_ended)
        give_up(__LINE__, "the call ended with %s (%s) before all was said",
                grpc_code_name(talk->code), talk->words);
    MUST(grpc_rpc_send_message(talk->rpc, message, &error), error);
}

#endif
