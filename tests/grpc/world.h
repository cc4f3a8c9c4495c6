/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_WORLD_H
#define PEG_TESTS_GRPC_WORLD_H

/*
 * A real server on loops of its own, and a real client whose loop runs in the thread of the test:
 * world_run() returns when every call that was started has ended. Messages are bytes. Include it
 * behind t.h.
 */

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "grpc/server/server.h"

enum { WORLD_CALLS = 64, WORLD_TEXT = 2048 };

/* What became of a call at the client. */
struct answer {
    struct world *world;
    struct grpc_rpc *rpc;
    char log[WORLD_TEXT]; /* "headers message:x end:OK " */
    size_t log_len;
    unsigned n_messages;
    size_t n_bytes;
    unsigned n_ends;
    enum grpc_code code;
    char words[512];
    char details[64];
    size_t details_len;
    char header[64];       /* of x-header */
    char trailer[64];      /* of x-trailer-bin */
    bool cancels_at_first; /* message */
    bool pauses;
};

struct world {
    struct net_loops *loops;
    struct grpc_server *server;
    char address[NET_ADDRESS_TEXT];
    struct net_loop *loop; /* the client's */
    struct grpc_channel *channel;
    struct answer answers[WORLD_CALLS];
    unsigned n_answers;
    unsigned n_running;
    struct net_timer guard;
};

static void world_note(struct answer *a, const char *what, peg_str text)
{
    if (a->log_len > sizeof(a->log) - 200)
        return;
    a->log_len += (size_t)snprintf(a->log + a->log_len, sizeof(a->log) - a->log_len, "%s%.*s ",
                                   what, (int)(text.len < 100 ? text.len : 100), text.ptr);
}

static void world_copy(char *to, size_t max, peg_str text)
{
    const size_t n = text.len < max - 1 ? text.len : max - 1;

    if (n > 0)
        memcpy(to, text.ptr, n);
    to[n] = '\0';
}

static void world_on_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user)
{
    struct answer *a = user;

    (void)rpc;
    world_note(a, "headers", peg__str(""));
    world_copy(a->header, sizeof(a->header), grpc_metadata_get(metadata, "x-header"));
}

static void world_on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct answer *a = user;
    const peg_str bytes = *(const peg_str *)message;

    a->n_messages++;
    a->n_bytes += bytes.len;
    world_note(a, "message:", bytes.len < 50 ? bytes : peg__str("..."));
    if (a->pauses)
        grpc_rpc_pause(rpc);
    if (a->cancels_at_first)
        grpc_rpc_cancel(rpc);
}

static void world_on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                         const struct grpc_metadata *trailers, void *user)
{
    struct answer *a = user;

    (void)rpc;
    a->rpc = NULL;
    a->n_ends++;
    a->code = status->code;
    world_copy(a->words, sizeof(a->words), status->message);
    world_copy(a->details, sizeof(a->details), status->details);
    a->details_len = status->details.len;
    world_copy(a->trailer, sizeof(a->trailer), grpc_metadata_get(trailers, "x-trailer-bin"));
    world_note(a, "end:", peg__str(grpc_code_name(status->code)));
    if (--a->world->n_running == 0)
        net_loop_stop(a->world->loop);
}

static const struct grpc_rpc_events world_events = {
    .on_headers = world_on_headers,
    .on_message = world_on_message,
    .on_end = world_on_end,
};

/* The echo methods that the tests call, all of bytes. */
static const struct grpc_method world_methods[] = {
    {.name = "Unary", .path = "/test.World/Unary"},
    {.name = "Repeat", .path = "/test.World/Repeat", .server_streams = true},
    {.name = "Collect", .path = "/test.World/Collect", .client_streams = true},
    {.name = "Chat", .path = "/test.World/Chat", .client_streams = true, .server_streams = true},
    {.name = "None", .path = "/test.World/None"},
};
enum { UNARY, REPEAT, COLLECT, CHAT, NONE, N_METHODS };
static const struct grpc_service world_service = {"test.World", world_methods, N_METHODS, NULL};

static void world_stuck(struct net_timer *timer)
{
    (void)timer;
    printf("# a call does not end\n");
    fflush(stdout);
    abort();
}

/* Runs the client until all its calls have ended. */
static void world_run(struct world *w)
{
    if (w->n_running > 0)
        net_loop_run(w->loop);
}

/* options: of the server; listen: of its socket; channel: of the client. All may be NULL. */
struct world_setup {
    const struct grpc_server_options *server;
    const struct net_listener_options *listen;
    const struct grpc_channel_options *channel;
    const struct grpc_handler *handlers; /* N_METHODS of them */
    void *user;
    const char *address; /* NULL: 127.0.0.1:0 */
    unsigned n_loops;
};

static void world_start(struct world *w, const struct world_setup *setup)
{
    struct net_address at;
    peg_error error = {.message = ""};
    peg_status status;

    *w = (struct world){0};
    status = net_loops_new(setup->n_loops, &w->loops, &error);
    if (!status)
        status = grpc_server_new(w->loops, setup->server, &w->server, &error);
    if (!status)
        status = grpc_server_add(w->server, &world_service, setup->handlers, setup->user, &error);
    if (!status)
        status =
            grpc_server_listen(w->server, peg__str(setup->address ? setup->address : "127.0.0.1:0"),
                               setup->listen, &at, &error);
    if (!status) {
        net_address_format(&at, w->address);
        status = net_loop_new(&w->loop, &error);
    }
    if (!status)
        status =
            grpc_channel_new(w->loop, peg__str(w->address), setup->channel, &w->channel, &error);
    if (status)
        T_FAIL("no world: %s", error.message);
    w->guard.fn = world_stuck;
    net_loop_arm(w->loop, &w->guard, net_loop_now_ns(w->loop) + INT64_C(60000000000));
}

static void world_stop(struct world *w)
{
    net_loop_disarm(w->loop, &w->guard);
    w->channel = grpc_channel_free(w->channel);
    w->loop = net_loop_free(w->loop);
    w->server = grpc_server_free(w->server);
    w->loops = net_loops_free(w->loops);
}

static struct answer *world_begin(struct world *w, unsigned method,
                                  const struct grpc_rpc_options *options)
{
    struct answer *a = &w->answers[w->n_answers++];
    peg_error error;

    a->world = w;
    w->n_running++;
    if (grpc_rpc_start(w->channel, &world_methods[method], options, &world_events, a, &a->rpc,
                       &error))
        T_FAIL("no call: %s", error.message);
    return a;
}

/* One message, and nothing more. */
static struct answer *world_ask(struct world *w, unsigned method, const char *text,
                                const struct grpc_rpc_options *options)
{
    struct answer *a = world_begin(w, method, options);

    if (grpc_rpc_send(a->rpc, peg__str(text), NULL))
        T_FAIL("cannot send");
    grpc_rpc_half_close(a->rpc);
    return a;
}

static struct answer *world_call(struct world *w, unsigned method, const char *text,
                                 const struct grpc_rpc_options *options)
{
    struct answer *a = world_ask(w, method, text, options);

    world_run(w);
    return a;
}

#endif
