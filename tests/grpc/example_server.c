/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The service that docs/modules/grpc.md walks through: tests/proto/pegboard/test/echo.proto, on a
 * server with health, reflection, a token that clients must show, and a probe over HTTP/1.1.
 *
 *   example_server ADDRESS       prints "listening on ADDRESS"; ends in good order at SIGTERM
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/text/str.h"
#include "grpc/server/server.h"
#include "pegboard/test/echo.grpc.h"

enum { DRAIN_MS = 10000 };

static void must(peg_status status, const peg_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "example_server: %s: %s\n", error->code, error->message);
    exit(1);
}

/* ---- one answer ---------------------------------------------------------------------------- */

static void echo(struct grpc_call *call, const Pegboard__Test__EchoRequest *request, void *user)
{
    Pegboard__Test__EchoReply reply = PEGBOARD__TEST__ECHO_REPLY__INIT;

    (void)user;
    if (request->payload.len == 0) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, "payload is empty: say something");
        return;
    }
    reply.payload = request->payload;
    pegboard_test_echo_echo_reply(call, &reply);
}

/* ---- many answers, no faster than they are read --------------------------------------------- */

struct repeating {
    const Pegboard__Test__RepeatRequest *request; /* lives as long as the call */
    uint32_t n_sent;
};

static void repeat_on(struct grpc_call *call, void *user)
{
    struct repeating *repeating = grpc_call_state(call);
    Pegboard__Test__EchoReply reply = PEGBOARD__TEST__ECHO_REPLY__INIT;
    peg_error error;

    (void)user;
    reply.payload = repeating->request->payload;
    while (repeating->n_sent < repeating->request->times && grpc_call_is_writable(call)) {
        if (pegboard_test_echo_repeat_send(call, &reply, &error)) {
            grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
            return;
        }
        repeating->n_sent++;
    }
    if (repeating->n_sent == repeating->request->times)
        grpc_call_finish(call, &(struct grpc_status){.code = GRPC_OK});
}

static void repeat(struct grpc_call *call, const Pegboard__Test__RepeatRequest *request, void *user)
{
    struct repeating *repeating = peg__arena_alloc(grpc_call_arena(call), sizeof(*repeating));

    if (!repeating) {
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
        return;
    }
    *repeating = (struct repeating){.request = request};
    grpc_call_set_state(call, repeating);
    repeat_on(call, user);
}

/* Collect and Chat are left out: whoever calls them is told UNIMPLEMENTED. */
static const struct pegboard_test_echo_handlers handlers = {
    .echo = echo,
    .repeat = repeat,
    .repeat_on_writable = repeat_on,
};

/* ---- around every call ---------------------------------------------------------------------- */

static bool is_open_to_all(const struct grpc_call *call)
{
    return peg__str_starts(peg__str(grpc_call_method(call)->path), peg__str("/grpc."));
}

static void check_token(struct grpc_call *call, void *user)
{
    const peg_str token = grpc_metadata_get(grpc_call_metadata(call), "authorization");

    if (!is_open_to_all(call) && !peg__str_is(token, user))
        grpc_call_fail(call, GRPC_UNAUTHENTICATED, "the metadata 'authorization' is not the token");
}

static char token[] = "Bearer open-sesame";
static const struct grpc_interceptor interceptors[] = {{.on_start = check_token, .user = token}};

static void answer_probe(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    (void)user;
    net_http_reply_text(request, 200, "ok");
}

static const struct net_http_handler probe = {.on_request = answer_probe};
static const struct net_http_route routes[] = {{"GET", "/livez", &probe}};

/* ---- the program ---------------------------------------------------------------------------- */

static void print_address(const struct net_address *address)
{
    char text[NET_ADDRESS_TEXT];

    net_address_format(address, text);
    printf("listening on %s\n", text);
    fflush(stdout);
}

static void wait_for_the_end(void)
{
    sigset_t ends;
    int got;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigwait(&ends, &got);
}

static void block_sigterm(void)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
}

int main(int argc, char **argv)
{
    const struct net_http_options http_options = {.routes = routes, .n_routes = 1};
    struct grpc_server_options options = {.interceptors = interceptors, .n_interceptors = 1};
    struct net_loops *loops = NULL;
    struct grpc_server *server = NULL;
    struct grpc_health *health = NULL;
    struct grpc_reflection *reflection = NULL;
    struct net_address address;
    peg_error error;
    bool is_quiet;

    block_sigterm();
    must(net_loops_new(1, &loops, &error), &error);
    must(net_http_server_new(&http_options, &options.http, &error), &error);
    must(grpc_server_new(loops, &options, &server, &error), &error);
    must(pegboard_test_echo_add(server, &handlers, &error), &error);
    must(grpc_health_new(server, &health, &error), &error);
    must(grpc_reflection_new(server, &reflection, &error), &error);
    must(grpc_server_listen(server, peg_cstr(argc > 1 ? argv[1] : "127.0.0.1:0"), NULL, &address,
                            &error),
         &error);
    print_address(&address);
    wait_for_the_end();

    grpc_health_shut_down(health);
    is_quiet = grpc_server_drain(server, DRAIN_MS);
    grpc_server_free(server);
    grpc_health_free(health);
    grpc_reflection_free(reflection);
    net_loops_free(loops);
    net_http_server_free(options.http);
    return is_quiet ? 0 : 1;
}
