/* SPDX-License-Identifier: Apache-2.0 */

/* Each function posts a message to the loop and waits. What both threads use lies on the stack of
 * the waiting one, under its lock. */

#include "grpc/client/client.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "grpc/message.h"

/* ---- waiting ------------------------------------------------------------------------------ */

struct wait {
    struct net_message message; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_over;
    peg_status status;
    peg_error error; /* if the status is one */
};

static void wait_done(struct wait *wait)
{
    pthread_mutex_lock(&wait->lock);
    wait->is_over = true;
    pthread_cond_signal(&wait->changed);
    pthread_mutex_unlock(&wait->lock);
}

static peg_status wait_for(struct wait *wait, struct net_loop *loop,
                           void (*fn)(struct net_message *message), peg_error *reterr)
{
    if (net_loop_is_here(loop))
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "the loop's own thread cannot wait for it: use grpc/server/rpc.h there");
    wait->message.fn = fn;
    pthread_mutex_init(&wait->lock, NULL);
    pthread_cond_init(&wait->changed, NULL);
    net_loop_post(loop, &wait->message);
    pthread_mutex_lock(&wait->lock);
    while (!wait->is_over)
        pthread_cond_wait(&wait->changed, &wait->lock);
    pthread_mutex_unlock(&wait->lock);
    pthread_cond_destroy(&wait->changed);
    pthread_mutex_destroy(&wait->lock);
    if (wait->status && reterr)
        *reterr = wait->error;
    return wait->status;
}

/* ---- channels ----------------------------------------------------------------------------- */

struct channel_wait {
    struct wait wait; /* first */
    struct net_loop *loop;
    peg_str target;
    const struct grpc_channel_options *options;
    struct grpc_channel *channel;
};

static void make_channel_here(struct net_message *message)
{
    struct channel_wait *w = (struct channel_wait *)(void *)message;

    w->wait.status = grpc_channel_new(w->loop, w->target, w->options, &w->channel, &w->wait.error);
    wait_done(&w->wait);
}

peg_status grpc_channel_new_wait(struct net_loop *loop, peg_str target,
                                 const struct grpc_channel_options *options,
                                 struct grpc_channel **ret_channel, peg_error *reterr)
{
    struct channel_wait w = {.loop = loop, .target = target, .options = options};
    const peg_status status = wait_for(&w.wait, loop, make_channel_here, reterr);

    if (!status)
        *ret_channel = w.channel;
    return status;
}

static void free_channel(struct net_message *message)
{
    struct channel_wait *w = (struct channel_wait *)(void *)message;

    grpc_channel_free(w->channel);
    wait_done(&w->wait);
}

struct grpc_channel *grpc_channel_free_wait(struct grpc_channel *channel)
{
    struct channel_wait w = {.channel = channel};

    if (channel)
        (void)wait_for(&w.wait, grpc_channel_loop(channel), free_channel, NULL);
    return NULL;
}

/* ---- calls -------------------------------------------------------------------------------- */

struct call_wait {
    struct wait wait; /* first */
    struct grpc_channel *channel;
    struct grpc_method method; /* without `output`: the message is unpacked by who waits */
    const void *request;
    const struct grpc_rpc_options *options;
    struct grpc_answer answer;
    bool has_bytes;
    peg_str bytes;
    bool is_out; /* of memory */
};

static bool copy_str(struct call_wait *w, peg_str *str)
{
    str->ptr = peg__arena_copy(&w->answer.arena, *str);
    w->is_out |= !str->ptr;
    return str->ptr != NULL;
}

/* They were checked when they came, so they are only copied. */
static void copy_metadata(struct call_wait *w, const struct grpc_metadata *metadata,
                          struct grpc_metadata *ret_copy)
{
    struct grpc_metadata copy = *metadata;

    if (metadata->n == 0)
        return;
    copy.entries = peg__arena_alloc(&w->answer.arena, metadata->n * sizeof(*copy.entries));
    copy.capacity = metadata->n;
    if (!copy.entries) {
        w->is_out = true;
        return;
    }
    memcpy(copy.entries, metadata->entries, metadata->n * sizeof(*copy.entries));
    for (size_t i = 0; i < copy.n; i++) {
        if (!copy_str(w, &copy.entries[i].key) || !copy_str(w, &copy.entries[i].value))
            return;
    }
    *ret_copy = copy;
}

static void on_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user)
{
    struct call_wait *w = user;

    (void)rpc;
    copy_metadata(w, metadata, &w->answer.headers);
}

static void on_wait_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct call_wait *w = user;

    (void)rpc;
    w->bytes = *(const peg_str *)message;
    w->has_bytes = copy_str(w, &w->bytes);
}

static void on_wait_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                        const struct grpc_metadata *trailers, void *user)
{
    struct call_wait *w = user;

    (void)rpc;
    w->answer.status = *status;
    copy_str(w, &w->answer.status.message);
    copy_str(w, &w->answer.status.details);
    copy_metadata(w, trailers, &w->answer.trailers);
    if (w->is_out)
        w->wait.status = peg__fail_nomem(&w->wait.error);
    wait_done(&w->wait);
}

static void start_wait(struct net_message *message)
{
    static const struct grpc_rpc_events events = {
        .on_headers = on_headers, .on_message = on_wait_message, .on_end = on_wait_end};
    struct call_wait *w = (struct call_wait *)(void *)message;

    w->wait.status = grpc_rpc_unary(w->channel, &w->method, w->request, w->options, &events, w,
                                    NULL, &w->wait.error);
    if (w->wait.status)
        wait_done(&w->wait);
}

/* What does not unpack is an answer that no program can use. */
static peg_status unpack_answer(struct call_wait *w, const struct grpc_method *method,
                                peg_error *reterr)
{
    peg_str *bytes;
    const struct ProtobufCMessage *message;
    peg_error error;
    peg_status status;

    if (!w->has_bytes)
        return PEG_OK;
    if (!method->output) {
        bytes = peg__arena_alloc(&w->answer.arena, sizeof(*bytes));
        if (!bytes)
            return peg__fail_nomem(reterr);
        *bytes = w->bytes;
        w->answer.message = bytes;
        return PEG_OK;
    }
    status = grpc_message_unpack(method->output, &w->answer.arena, w->bytes, &message, &error);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        w->answer.status = GRPC_STATUS(GRPC_INTERNAL, "the answer cannot be read");
    else
        w->answer.message = message;
    return PEG_OK;
}

peg_status grpc_call_wait(struct grpc_channel *channel, const struct grpc_method *method,
                          const void *request, const struct grpc_rpc_options *options,
                          struct grpc_answer *ret_answer, peg_error *reterr)
{
    struct call_wait w = {
        .channel = channel, .method = *method, .request = request, .options = options};
    peg_status status;

    w.method.output = NULL;
    if (options && options->parent)
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_STATE",
                         "a call that waits has no parent: that lives on the loop");
    status = wait_for(&w.wait, grpc_channel_loop(channel), start_wait, reterr);
    if (!status)
        status = unpack_answer(&w, method, reterr);
    if (status) {
        peg__arena_free(&w.answer.arena);
        return status;
    }
    *ret_answer = w.answer;
    return PEG_OK;
}

void grpc_answer_free(struct grpc_answer *answer)
{
    peg__arena_free(&answer->arena);
    *answer = (struct grpc_answer){0};
}
