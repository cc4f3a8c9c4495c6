/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One exchange between a thread that waits and the client's loop:
 *
 *   start   posted  ->  begin()       the call is made
 *   next    <- on_message(), on_end() queue what arrives, and wake
 *   poke    posted  ->  on_poke()     it is to be canceled, or read on
 *
 * The ask lies on the waiting thread's stack. So that it outlives what the loop knows of it, that
 * thread leaves only when the call is over and no message of it is on its way.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

/* A message that has arrived and was not read. */
struct remote__message {
    struct remote__message *next;
    size_t len;
    char bytes[];
};

/* All that it takes: many empty ones are not little. */
static size_t size_of(const struct remote__message *m)
{
    return sizeof(*m) + m->len;
}

#define REQUEST_OF(member, pointer)                                                                \
    ((struct remote__request *)(void *)((char *)(pointer)-offsetof(struct remote__request, member)))

/* ---- on the loop ---------------------------------------------------------------------------- */

static void end_request(struct remote__request *req)
{
    pthread_mutex_lock(&req->wait.lock);
    req->is_over = true;
    peg__wait_wake(&req->wait);
    pthread_mutex_unlock(&req->wait.lock);
}

static void fail_out_of_memory(struct remote__request *req)
{
    req->failure = peg__fail_nomem(&req->error);
    if (req->rpc)
        grpc_rpc_cancel(req->rpc);
}

/* A repeated request names the epoch of the gateway that received the first. */
static void on_request_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata,
                               void *user)
{
    struct remote__request *req = user;
    const peg_str epoch = grpc_metadata_get(metadata, "pegboard-epoch");
    peg_client *client = req->registry->client;

    (void)rpc;
    if (!epoch.len || epoch.len >= sizeof(req->epoch))
        return;
    memcpy(req->epoch, epoch.ptr, epoch.len);
    req->epoch[epoch.len] = '\0';
    pthread_mutex_lock(&client->lock);
    memcpy(req->registry->epoch, req->epoch, sizeof(req->epoch));
    pthread_mutex_unlock(&client->lock);
}

static void on_request_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct remote__request *req = user;
    const peg_str bytes = *(const peg_str *)message;
    struct remote__message *m = peg__alloc(sizeof(*m) + bytes.len + 1);

    if (!m) {
        fail_out_of_memory(req);
        return;
    }
    m->next = NULL;
    m->len = bytes.len;
    memcpy(m->bytes, bytes.ptr, bytes.len);
    pthread_mutex_lock(&req->wait.lock);
    if (req->last)
        req->last->next = m;
    else
        req->first = m;
    req->last = m;
    req->queued_bytes += size_of(m);
    if (req->queued_bytes > PEG_LIMIT_REMOTE_QUEUE_BYTES && !req->is_paused) {
        req->is_paused = true;
        grpc_rpc_pause(rpc);
    }
    peg__wait_wake(&req->wait);
    pthread_mutex_unlock(&req->wait.lock);
}

static bool copy_to_arena(struct remote__request *req, peg_str *str)
{
    str->ptr = peg__arena_copy(&req->arena, *str);
    return str->ptr != NULL;
}

/* A hint when to try again: our gateway's, or as other servers of gRPC say it. */
static int64_t retry_hint_ms(const struct grpc_metadata *trailers)
{
    peg_str text = grpc_metadata_get(trailers, "pegboard-retry-after-ms");
    long long ms;

    if (!text.len)
        text = grpc_metadata_get(trailers, "grpc-retry-pushback-ms");
    ms = text.len && text.len < 16 ? strtoll(text.ptr, NULL, 10) : 0;
    return ms > 0 ? ms : 0;
}

/* What our gateway says of a call that has no answer. */
static bool copy_trailers(struct remote__request *req, const struct grpc_metadata *trailers)
{
    req->retry_ms = retry_hint_ms(trailers);
    req->says_started = peg__str_is(grpc_metadata_get(trailers, "pegboard-started"), "true");
    req->call_id = grpc_metadata_get(trailers, "pegboard-call-id");
    return copy_to_arena(req, &req->call_id);
}

/* A gateway that drains, or one that a proxy cannot reach, is not asked again if there is another
 * address. */
static void leave_gateway(struct remote__request *req, const struct grpc_rpc *rpc,
                          const struct grpc_metadata *trailers)
{
    const bool is_draining = peg__str_is(grpc_metadata_get(trailers, "pegboard-draining"), "true");

    if (is_draining)
        req->n_elsewhere = grpc_channel_leave(req->registry->channel, grpc_rpc_peer(rpc));
    else if (remote__request_is_lost(req))
        (void)grpc_channel_leave(req->registry->channel, grpc_rpc_peer(rpc));
}

static void on_request_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                           const struct grpc_metadata *trailers, void *user)
{
    struct remote__request *req = user;

    req->rpc = NULL;
    req->status = *status;
    req->was_sent = grpc_rpc_was_sent(rpc);
    leave_gateway(req, rpc, trailers);
    if (!copy_to_arena(req, &req->status.message) || !copy_to_arena(req, &req->status.details) ||
        !copy_trailers(req, trailers))
        fail_out_of_memory(req);
    end_request(req);
}

static void begin_request(struct net_message *message)
{
    static const struct grpc_rpc_events events = {.on_headers = on_request_headers,
                                                  .on_message = on_request_message,
                                                  .on_end = on_request_end};
    struct remote__request *req = REQUEST_OF(start, message);
    const struct grpc_rpc_options options = {
        .timeout_ms = req->timeout_ms,
        .waits_for_ready = req->waits_for_ready,
        .metadata = &req->metadata,
    };

    /* A caller wants it now: reason enough to check whether the gateway has come back. */
    if (grpc_channel_state(req->registry->channel) == GRPC_CHANNEL_FAILING)
        grpc_channel_connect(req->registry->channel);
    req->failure = grpc_rpc_unary(req->registry->channel, &req->raw, req->request, &options,
                                  &events, req, &req->rpc, &req->error);
    if (req->failure)
        end_request(req);
}

/* What is wanted may change until the lock is taken for the last time, and so may the rpc. */
static void on_poke(struct net_message *message)
{
    struct remote__request *req = REQUEST_OF(poke, message);

    pthread_mutex_lock(&req->wait.lock);
    while (req->wants_cancel || req->wants_cancel_unsent || req->wants_resume) {
        const bool cancels = req->wants_cancel;
        const bool cancels_unsent = req->wants_cancel_unsent;

        req->wants_cancel = req->wants_cancel_unsent = req->wants_resume = false;
        pthread_mutex_unlock(&req->wait.lock);
        if (req->rpc && (cancels || (cancels_unsent && !grpc_rpc_was_sent(req->rpc))))
            grpc_rpc_cancel(req->rpc);
        if (req->rpc)
            grpc_rpc_resume(req->rpc);
        pthread_mutex_lock(&req->wait.lock);
    }
    req->is_poked = false;
    peg__wait_wake(&req->wait);
    pthread_mutex_unlock(&req->wait.lock);
}

/* ---- in the thread that waits ---------------------------------------------------------------- */

/* With the lock. */
static void poke_loop(struct remote__request *req)
{
    if (req->is_poked)
        return;
    req->is_poked = true;
    net_loop_post(req->registry->client->loop, &req->poke);
}

static peg_status add_request_metadata(struct remote__request *req, peg_error *reterr)
{
    static const peg_str key = PEG_LIT("authorization");
    peg_client *client = req->registry->client;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&client->lock);
    req->authorization = peg__blob_ref(req->registry->authorization);
    pthread_mutex_unlock(&client->lock);
    if (req->asked_epoch)
        status = grpc_metadata_add(&req->metadata, &req->arena, peg__str("pegboard-asked-epoch"),
                                   peg__str(req->asked_epoch), reterr);
    if (status || !req->authorization)
        return status;
    return grpc_metadata_add(&req->metadata, &req->arena, key, peg__blob_str(req->authorization),
                             reterr);
}

peg_status remote__request_start(struct remote__request *req, peg_error *reterr)
{
    const peg_status status = add_request_metadata(req, reterr);

    if (status)
        return status;
    peg__wait_init(&req->wait);
    req->raw = *req->method;
    req->raw.output = NULL;
    req->start.fn = begin_request;
    req->poke.fn = on_poke;
    req->is_started = true;
    net_loop_post(req->registry->client->loop, &req->start);
    return PEG_OK;
}

static bool has_come(void *user)
{
    const struct remote__request *req = user;

    return req->first || req->is_over;
}

/* With the lock. */
static void take_first_message(struct remote__request *req)
{
    struct remote__message *m = req->first;

    req->first = m->next;
    if (!req->first)
        req->last = NULL;
    req->queued_bytes -= size_of(m);
    req->current = m;
    if (req->is_paused && req->queued_bytes <= PEG_LIMIT_REMOTE_QUEUE_BYTES / 2) {
        req->is_paused = false;
        req->wants_resume = true;
        poke_loop(req);
    }
}

enum remote__received remote__request_next(struct remote__request *req, peg_ctx *ctx,
                                           int64_t until_ns, peg_str *ret_bytes)
{
    enum remote__received received = REMOTE_OVER;
    enum peg__woke woke;

    peg__free(req->current);
    req->current = NULL;
    pthread_mutex_lock(&req->wait.lock);
    woke = peg__wait_for(&req->wait, ctx, until_ns, has_come, req);
    if (woke == PEG__WOKE_STOP)
        received = REMOTE_STOP;
    else if (woke == PEG__WOKE_TIME)
        received = REMOTE_TIME;
    else if (req->first)
        received = REMOTE_MESSAGE;
    if (received == REMOTE_MESSAGE)
        take_first_message(req);
    pthread_mutex_unlock(&req->wait.lock);
    if (received == REMOTE_MESSAGE)
        *ret_bytes = peg__strn(req->current->bytes, req->current->len);
    return received;
}

void remote__request_stop_unsent(struct remote__request *req)
{
    pthread_mutex_lock(&req->wait.lock);
    if (!req->is_over) {
        req->wants_cancel_unsent = true;
        poke_loop(req);
    }
    pthread_mutex_unlock(&req->wait.lock);
}

static bool is_left_alone(void *user)
{
    const struct remote__request *req = user;

    return req->is_over && !req->is_poked;
}

void remote__request_stop(struct remote__request *req)
{
    if (!req->is_started)
        return;
    pthread_mutex_lock(&req->wait.lock);
    if (!req->is_over) {
        req->wants_cancel = true;
        poke_loop(req);
    }
    peg__wait_for(&req->wait, NULL, INT64_MAX, is_left_alone, req);
    pthread_mutex_unlock(&req->wait.lock);
}

void remote__request_free(struct remote__request *req)
{
    remote__request_stop(req);
    while (req->first) {
        struct remote__message *m = req->first;

        req->first = m->next;
        peg__free(m);
    }
    peg__free(req->current);
    if (req->is_started)
        peg__wait_destroy(&req->wait);
    peg__blob_unref(req->authorization);
    peg__arena_free(&req->arena);
    *req = (struct remote__request){.registry = req->registry};
}
