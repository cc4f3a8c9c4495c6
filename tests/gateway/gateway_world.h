/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_GATEWAY_WORLD_H
#define PEG_TESTS_GATEWAY_GATEWAY_WORLD_H

/*
 * A whole gateway on two loops, and a client that waits for its answers. Streams are read on the
 * client's loop; what they say becomes text, which the test waits for. Include it behind t.h.
 */

#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "grpc/client/client.h"
#include "pegboard/gateway.h"
#include "pegboard/v1/registry.grpc.h"
#include "wire/wire.h"

#include "requests.h"

struct gateway_world {
    peg_gateway *gateway;
    struct net_loop *loop; /* the client's */
    struct grpc_channel *channel;
    struct grpc_answer answer; /* the last one */
    peg_error error;
};

static struct gateway_world g;

static inline void world_open_with(const peg_gateway_config *config)
{
    g = (struct gateway_world){.gateway = NULL};
    if (peg_gateway_new(config, &g.gateway, &g.error) ||
        peg_gateway_listen(g.gateway, "127.0.0.1:0", &g.error) || net_loop_new(&g.loop, &g.error) ||
        net_loop_start(g.loop, &g.error) ||
        grpc_channel_new_wait(g.loop, peg__str(peg_gateway_address(g.gateway)), NULL, &g.channel,
                              &g.error))
        T_FAIL("no gateway: %s", g.error.message);
}

static inline void world_open(void)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .threads = 2, .drain_ms = 1000,
                                       .log_file = "/dev/null"};

    world_open_with(&config);
}

static inline void world_shut(void)
{
    grpc_answer_free(&g.answer);
    g.answer = (struct grpc_answer){.message = NULL};
    g.channel = grpc_channel_free_wait(g.channel);
    g.loop = net_loop_free(g.loop);
    if (peg_gateway_drain(g.gateway, &g.error))
        printf("# drain: %s\n", g.error.message);
    g.gateway = peg_gateway_free(g.gateway);
}

/* One request, one answer; NULL: it failed. */
static inline const void *ask_method(const struct grpc_method *method, const void *request)
{
    grpc_answer_free(&g.answer);
    g.answer = (struct grpc_answer){.message = NULL};
    if (grpc_call_wait(g.channel, method, request, NULL, &g.answer, &g.error))
        T_FAIL("not asked: %s", g.error.message);
    return g.answer.status.code == GRPC_OK ? g.answer.message : NULL;
}

#define ASK(METHOD, request)                                                                       \
    ask_method(&pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_##METHOD], request)

/* The name of the error that the last answer was; "ok" if it was none. */
static inline peg_str answer_name(void)
{
    peg_str name;

    if (g.answer.status.code == GRPC_OK)
        return peg__str("ok");
    (void)wire_error_from_status(&g.answer.status, &g.answer.arena, &name);
    return name;
}

static inline bool answer_says(const char *words)
{
    return memmem(g.answer.status.message.ptr, g.answer.status.message.len, words, strlen(words)) !=
           NULL;
}

static inline peg_str register_req(const struct req *req)
{
    ASK(REGISTER, &req->msg);
    return answer_name();
}

static inline peg_str register_named(const char *name, const char *tag)
{
    struct req req = {0};

    req_init(&req, name);
    req.msg.description = req_text("About \"x\"");
    if (tag)
        req_tag(&req, tag);
    return register_req(&req);
}

static inline peg_str unregister_named(const char *name)
{
    Pegboard__V1__UnregisterRequest request = PEGBOARD__V1__UNREGISTER_REQUEST__INIT;

    request.name = req_text(name);
    ASK(UNREGISTER, &request);
    return answer_name();
}

/* ---- streams -----------------------------------------------------------------------------------
 */

enum { STREAM_TEXT = 1 << 20 };

struct stream {
    struct grpc_rpc *rpc;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *text; /* "REGISTERED a " ... "end:OK" */
    size_t len;
    /* What turns a message into text. */
    void (*print)(struct stream *stream, const void *message);
};

static inline void stream_say(struct stream *stream, const char *what, const char *name)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->len + strlen(what) + strlen(name) + 3 < STREAM_TEXT)
        stream->len += (size_t)sprintf(stream->text + stream->len, "%s %s ", what, name);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static inline void stream_on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct stream *stream = user;

    (void)rpc;
    stream->print(stream, message);
}

static inline void stream_on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                                 const struct grpc_metadata *trailers, void *user)
{
    struct stream *stream = user;

    (void)rpc;
    (void)trailers;
    stream->rpc = NULL;
    stream_say(stream, "end", grpc_code_name(status->code));
}

static const struct grpc_rpc_events stream_events = {.on_message = stream_on_message,
                                                     .on_end = stream_on_end};

/* Waits until the text contains the words; a minute at most. */
static inline void stream_await(struct stream *stream, const char *words)
{
    struct timespec until;
    int waited = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&stream->lock);
    while (!strstr(stream->text, words) && waited == 0)
        waited = pthread_cond_timedwait(&stream->changed, &stream->lock, &until);
    pthread_mutex_unlock(&stream->lock);
    if (waited)
        T_FAIL("\"%s\" does not say \"%s\"",
               stream->text + (stream->len > 500 ? stream->len - 500 : 0), words);
}

static inline void stream_init(struct stream *stream,
                               void (*print)(struct stream *stream, const void *message))
{
    *stream = (struct stream){.print = print, .text = calloc(1, STREAM_TEXT)};
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
}

/* ---- something on the client's loop, waited for ---- */

struct client_errand {
    struct net_message message;
    void (*fn)(void *arg);
    void *arg;
    sem_t done;
};

static inline void run_client_errand(struct net_message *message)
{
    struct client_errand *errand = (struct client_errand *)message;

    errand->fn(errand->arg);
    sem_post(&errand->done);
}

static inline void on_client(void (*fn)(void *arg), void *arg)
{
    struct client_errand errand = {.message.fn = run_client_errand, .fn = fn, .arg = arg};

    sem_init(&errand.done, 0, 0);
    net_loop_post(g.loop, &errand.message);
    while (sem_wait(&errand.done) != 0)
        ;
    sem_destroy(&errand.done);
}

static inline void cancel_now(void *arg)
{
    struct stream *stream = arg;

    if (stream->rpc)
        grpc_rpc_cancel(stream->rpc);
}

static inline void stream_cancel(struct stream *stream)
{
    on_client(cancel_now, stream);
    stream_await(stream, "end ");
}

static inline void do_nothing(void *arg)
{
    (void)arg;
}

static inline void stream_free(struct stream *stream)
{
    on_client(do_nothing, NULL); /* behind whatever the stream still says */
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream->text);
}

#endif
