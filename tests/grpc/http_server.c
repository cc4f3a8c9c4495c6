/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A server of HTTP/1.1 and HTTP/2, for curl and for the bench.
 *
 *   http_server ADDRESS [CERTIFICATE KEY]
 *
 * Prints where it listens, and ends when its input does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/str.h"
#include "grpc/server/server.h"

static void must(peg_status status, const peg_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "http_server: %s\n", error->message);
    exit(1);
}

/* ---- handlers ------------------------------------------------------------------------------ */

static void echo(struct net_http_request *request, peg_str body, void *user)
{
    const struct net_http_answer answer = {.status = 200, .content_type = "application/json"};

    (void)user;
    net_http_reply(request, &answer, body);
}

static void show_toolset(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    (void)user;
    net_http_reply_text(request, 200, "the toolset %.*s", PEG_ARG(request->params[0]));
}

/* The bytes of a body that nobody keeps. */
static void count_body(struct net_http_request *request, peg_str bytes, bool is_end, void *user)
{
    (void)user;
    (void)bytes;
    if (is_end)
        net_http_reply_text(request, 200, "%llu bytes", (unsigned long long)request->n_body);
}

static void check_token(struct net_http_request *request, void *user)
{
    (void)user;
    if (!peg__str_is(net_http_field(request, "authorization"), "Bearer open-sesame"))
        net_http_reply_text(request, 401, "send the token");
}

enum { N_EVENTS = 10000 };

/* As many events as the client takes; the next when it has taken them. */
static void send_events(struct net_http_request *request, void *user)
{
    size_t *n_sent = request->state;
    char text[32];

    (void)user;
    while (*n_sent < N_EVENTS && net_http_is_writable(request)) {
        snprintf(text, sizeof(text), "{\"n\":%zu}", *n_sent);
        if (net_http_send_event(request, "tick", NULL, peg__str(text), NULL)) {
            net_http_reset(request);
            return;
        }
        (*n_sent)++;
    }
    if (*n_sent == N_EVENTS)
        net_http_finish(request);
}

static void begin_events(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    request->state = peg__arena_alloc_zero(request->arena, sizeof(size_t));
    if (!request->state || net_http_begin_events(request, NULL))
        net_http_reset(request);
    else
        send_events(request, user);
}

static const struct net_http_handler echoing = {.on_request = echo, .max_body = 1 << 20};
static const struct net_http_handler showing = {.on_request = show_toolset};
static const struct net_http_handler counting = {.on_body = count_body, .max_body = 1 << 30};
static const struct net_http_handler guarded = {.on_head = check_token, .on_request = echo};
static const struct net_http_handler ticking = {
    .on_request = begin_events,
    .on_writable = send_events,
};

static const struct net_http_route routes[] = {
    {"POST", "/echo", &echoing},
    {"GET", "/v1/toolsets/{toolset}", &showing}, /* request->params[0], decoded */
    {"POST", "/count", &counting},
    {"POST", "/guarded", &guarded},
    {"GET", "/events", &ticking},
};

/* ---- the program --------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const struct net_http_options http = {.routes = routes,
                                          .n_routes = sizeof(routes) / sizeof(routes[0])};
    const struct net_tls_options tls = {
        .cert_file = argc > 3 ? argv[2] : NULL,
        .key_file = argc > 3 ? argv[3] : NULL,
        .allows_http1 = true,
    };
    struct net_listener_options listening = {0};
    struct grpc_server_options options = {0};
    struct grpc_server *server = NULL;
    struct net_loops *loops = NULL;
    struct net_address address;
    char text[NET_ADDRESS_TEXT];
    peg_error error;
    char nothing;

    if (argc > 3)
        must(net_tls_config_new(&tls, &listening.stream.tls, &error), &error);
    must(net_http_server_new(&http, &options.http, &error), &error);
    must(net_loops_new(1, &loops, &error), &error);
    must(grpc_server_new(loops, &options, &server, &error), &error);
    must(grpc_server_listen(server, peg_cstr(argc > 1 ? argv[1] : "127.0.0.1:0"), &listening,
                            &address, &error),
         &error);
    net_address_format(&address, text);
    printf("listening on %s\n", text);
    fflush(stdout);
    while (read(STDIN_FILENO, &nothing, 1) > 0)
        ;
    grpc_server_free(server);
    net_loops_free(loops);
    net_http_server_free(options.http);
    net_tls_config_unref(listening.stream.tls);
    return 0;
}
