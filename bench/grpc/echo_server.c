/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The echo service on our server, for the bench. Messages stay bytes: nothing is parsed.
 *
 *   grpc-echo-server --addr 127.0.0.1:0 [--threads N] [--tls-cert PEM --tls-key PEM]
 *
 * Prints "ready PORT"; ends in good order at SIGTERM.
 */

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../help.h"
#include "base/arena.h"
#include "grpc/server/server.h"

enum {
    N_ANSWERS = 1000, /* messages of a server stream */
    DRAIN_MS = 1000,
};

struct options {
    const char *address;
    unsigned n_threads;
    const char *cert;
    const char *key;
};

static void must(peg_status status, const peg_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "grpc-echo-server: %s\n", error->message);
    exit(1);
}

/* ---- the service ------------------------------------------------------------------ */

static void echo(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    grpc_call_reply(call, *(const peg_str *)message);
}

static void chat(struct grpc_call *call, const void *message, void *user)
{
    peg_error error;

    (void)user;
    if (grpc_call_send(call, *(const peg_str *)message, &error))
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
}

static void end_chat(struct grpc_call *call, void *user)
{
    (void)user;
    grpc_call_finish(call, &(struct grpc_status){.code = GRPC_OK});
}

/* A server stream: what is sent, and how much of it is left. In the arena of its call. */
struct answers {
    peg_str message;
    unsigned n_left;
};

static void answer_on(struct grpc_call *call, void *user)
{
    struct answers *answers = grpc_call_state(call);
    peg_error error;

    (void)user;
    if (!answers)
        return;
    while (answers->n_left > 0 && grpc_call_is_writable(call)) {
        if (grpc_call_send(call, answers->message, &error)) {
            grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
            return;
        }
        answers->n_left--;
    }
    if (answers->n_left == 0)
        grpc_call_finish(call, &(struct grpc_status){.code = GRPC_OK});
}

static void answer(struct grpc_call *call, const void *message, void *user)
{
    struct answers *answers = peg__arena_alloc(grpc_call_arena(call), sizeof *answers);

    if (!answers) {
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *answers = (struct answers){.message = *(const peg_str *)message, .n_left = N_ANSWERS};
    grpc_call_set_state(call, answers);
    answer_on(call, user);
}

static const struct grpc_method methods[] = {
    {.name = "Echo", .path = "/pegboard.test.Echo/Echo"},
    {.name = "Chat",
     .path = "/pegboard.test.Echo/Chat",
     .client_streams = true,
     .server_streams = true},
    {.name = "Stream", .path = "/pegboard.test.Echo/Stream", .server_streams = true},
};

static const struct grpc_service service = {
    .name = "pegboard.test.Echo",
    .methods = methods,
    .n_methods = sizeof methods / sizeof *methods,
};

static const struct grpc_handler handlers[] = {
    {.on_message = echo},
    {.on_message = chat, .on_half_close = end_chat},
    {.on_message = answer, .on_writable = answer_on},
};

/* ---- the program ------------------------------------------------------------------ */

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"addr", required_argument, NULL, 'a'},
        {"threads", required_argument, NULL, 't'},
        {"tls-cert", required_argument, NULL, 'c'},
        {"tls-key", required_argument, NULL, 'k'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.address = "127.0.0.1:0", .n_threads = 1};

    bench_help(argc, argv,
               "usage: grpc-echo-server [--addr 127.0.0.1:0] [--threads N]\n"
               "                        [--tls-cert PEM --tls-key PEM]\n\n"
               "Answers each message with the same. Prints \"ready PORT\"; ends at SIGTERM.\n");
    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'a')
            options.address = optarg;
        else if (c == 't')
            options.n_threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'c')
            options.cert = optarg;
        else if (c == 'k')
            options.key = optarg;
        else
            exit(2);
    }
    return options;
}

static struct net_tls_config *make_tls(const struct options *options)
{
    struct net_tls_options tls = {.cert_file = options->cert, .key_file = options->key};
    struct net_tls_config *config = NULL;
    peg_error error;

    if (options->cert)
        must(net_tls_config_new(&tls, &config, &error), &error);
    return config;
}

static void print_ready(const struct net_address *address)
{
    char text[NET_ADDRESS_TEXT];

    net_address_format(address, text);
    printf("ready %s\n", strrchr(text, ':') + 1);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct net_loops *loops = NULL;
    struct grpc_server *server = NULL;
    struct net_listener_options listening = {.stream.tls = make_tls(&options)};
    struct net_address address;
    peg_error error;
    sigset_t ends;
    int got = 0;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);

    must(net_loops_new(options.n_threads, &loops, &error), &error);
    must(grpc_server_new(loops, &(struct grpc_server_options){0}, &server, &error), &error);
    must(grpc_server_add(server, &service, handlers, NULL, &error), &error);
    must(grpc_server_listen(server, peg_cstr(options.address), &listening, &address, &error),
         &error);
    net_tls_config_unref(listening.stream.tls);
    print_ready(&address);
    sigwait(&ends, &got);
    grpc_server_drain(server, DRAIN_MS);
    grpc_server_free(server);
    net_loops_free(loops);
    return 0;
}
