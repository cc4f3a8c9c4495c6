/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One exchange between a thread that waits and the client's loop:
 *
 *   start   posted  ->  begin()       the call is made
 *   next    <- on_message(), on_end() queue what came, and wake
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

/* A message that came and was not read. */
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

#define ASK_OF(member, pointer)                                                                    \
    ((struct remote__ask *)(void *)((char *)(pointer)-offsetof(struct remote__ask, member)))

/* ---- on the loop ---------------------------------------------------------------------------- */

static void end(struct remote__ask *ask)
{
    pthread_mutex_lock(&ask->wait.lock);
    ask->is_over = true;
    peg__wait_wake(&ask->wait);
    pthread_mutex_unlock(&ask->wait.lock);
}

static void fail_nomem(struct remote__ask *ask)
{
    ask->failure = peg__fail_nomem(&ask->error);
    if (ask->rpc)
        grpc_rpc_cancel(ask->rpc);
}

/* Whoever asks again says of whom he asked first. */
static void on_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user)
{
    struct remote__ask *ask = user;
    const peg_str epoch = grpc_metadata_get(metadata, "pegboard-epoch");
    peg_client *client = ask->registry->client;

    (void)rpc;
    if (!epoch.len || epoch.len >= sizeof(ask->epoch))
        return;
    memcpy(ask->epoch, epoch.ptr, epoch.len);
    ask->epoch[epoch.len] = '\0';
    pthread_mutex_lock(&client->lock);
    memcpy(ask->registry->epoch, ask->epoch, sizeof(ask->epoch));
    pthread_mutex_unlock(&client->lock);
}

static void on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct remote__ask *ask = user;
    const peg_str bytes = *(const peg_str *)message;
    struct remote__message *m = peg__alloc(sizeof(*m) + bytes.len + 1);

    if (!m) {
        fail_nomem(ask);
        return;
    }
    m->next = NULL;
    m->len = bytes.len;
    memcpy(m->bytes, bytes.ptr, bytes.len);
    pthread_mutex_lock(&ask->wait.lock);
    if (ask->last)
        ask->last->next = m;
    else
        ask->first = m;
    ask->last = m;
    ask->queued_bytes += size_of(m);
    if (ask->queued_bytes > PEG_LIMIT_REMOTE_QUEUE_BYTES && !ask->is_paused) {
        ask->is_paused = true;
        grpc_rpc_pause(rpc);
    }
    peg__wait_wake(&ask->wait);
    pthread_mutex_unlock(&ask->wait.lock);
}

static bool copy(struct remote__ask *ask, peg_str *str)
{
    str->ptr = peg__arena_copy(&ask->arena, *str);
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
static bool copy_trailers(struct remote__ask *ask, const struct grpc_metadata *trailers)
{
    ask->retry_ms = retry_hint_ms(trailers);
    ask->says_started = peg__str_is(grpc_metadata_get(trailers, "pegboard-started"), "true");
    ask->call_id = grpc_metadata_get(trailers, "pegboard-call-id");
    return copy(ask, &ask->call_id);
}

static void on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                   const struct grpc_metadata *trailers, void *user)
{
    struct remote__ask *ask = user;

    ask->rpc = NULL;
    ask->status = *status;
    ask->was_sent = grpc_rpc_was_sent(rpc);
    if (!copy(ask, &ask->status.message) || !copy(ask, &ask->status.details) ||
        !copy_trailers(ask, trailers))
        fail_nomem(ask);
    end(ask);
}

static void begin(struct net_message *message)
{
    static const struct grpc_rpc_events events = {
        .on_headers = on_headers, .on_message = on_message, .on_end = on_end};
    struct remote__ask *ask = ASK_OF(start, message);
    const struct grpc_rpc_options options = {
        .timeout_ms = ask->timeout_ms,
        .waits_for_ready = ask->waits_for_ready,
        .metadata = &ask->metadata,
    };

    /* Somebody wants it now: that is a reason to look whether the gateway has come back. */
    if (grpc_channel_state(ask->registry->channel) == GRPC_CHANNEL_FAILING)
        grpc_channel_connect(ask->registry->channel);
    ask->failure = grpc_rpc_unary(ask->registry->channel, &ask->raw, ask->request, &options,
                                  &events, ask, &ask->rpc, &ask->error);
    if (ask->failure)
        end(ask);
}

/* What is wanted may change until the lock is taken for the last time, and so may the rpc. */
static void on_poke(struct net_message *message)
{
    struct remote__ask *ask = ASK_OF(poke, message);

    pthread_mutex_lock(&ask->wait.lock);
    while (ask->wants_cancel || ask->wants_cancel_unsent || ask->wants_resume) {
        const bool cancels = ask->wants_cancel;
        const bool cancels_unsent = ask->wants_cancel_unsent;

        ask->wants_cancel = ask->wants_cancel_unsent = ask->wants_resume = false;
        pthread_mutex_unlock(&ask->wait.lock);
        if (ask->rpc && (cancels || (cancels_unsent && !grpc_rpc_was_sent(ask->rpc))))
            grpc_rpc_cancel(ask->rpc);
        if (ask->rpc)
            grpc_rpc_resume(ask->rpc);
        pthread_mutex_lock(&ask->wait.lock);
    }
    ask->is_poked = false;
    peg__wait_wake(&ask->wait);
    pthread_mutex_unlock(&ask->wait.lock);
}

/* ---- in the thread that waits ---------------------------------------------------------------- */

/* With the lock. */
static void poke(struct remote__ask *ask)
{
    if (ask->is_poked)
        return;
    ask->is_poked = true;
    net_loop_post(ask->registry->client->loop, &ask->poke);
}

static peg_status add_metadata(struct remote__ask *ask, peg_error *reterr)
{
    static const peg_str key = PEG_LIT("authorization");
    peg_client *client = ask->registry->client;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&client->lock);
    ask->authorization = peg__blob_ref(ask->registry->authorization);
    pthread_mutex_unlock(&client->lock);
    if (ask->asked_epoch)
        status = grpc_metadata_add(&ask->metadata, &ask->arena, peg__str("pegboard-asked-epoch"),
                                   peg__str(ask->asked_epoch), reterr);
    if (status || !ask->authorization)
        return status;
    return grpc_metadata_add(&ask->metadata, &ask->arena, key, peg__blob_str(ask->authorization),
                             reterr);
}

peg_status remote__ask_start(struct remote__ask *ask, peg_error *reterr)
{
    const peg_status status = add_metadata(ask, reterr);

    if (status)
        return status;
    peg__wait_init(&ask->wait);
    ask->raw = *ask->method;
    ask->raw.output = NULL;
    ask->start.fn = begin;
    ask->poke.fn = on_poke;
    ask->is_started = true;
    net_loop_post(ask->registry->client->loop, &ask->start);
    return PEG_OK;
}

static bool has_come(void *user)
{
    const struct remote__ask *ask = user;

    return ask->first || ask->is_over;
}

/* With the lock. */
static void take_first(struct remote__ask *ask)
{
    struct remote__message *m = ask->first;

    ask->first = m->next;
    if (!ask->first)
        ask->last = NULL;
    ask->queued_bytes -= size_of(m);
    ask->current = m;
    if (ask->is_paused && ask->queued_bytes <= PEG_LIMIT_REMOTE_QUEUE_BYTES / 2) {
        ask->is_paused = false;
        ask->wants_resume = true;
        poke(ask);
    }
}

enum remote__came remote__ask_next(struct remote__ask *ask, peg_ctx *ctx, int64_t until_ns,
                                   peg_str *ret_bytes)
{
    enum remote__came came = REMOTE_OVER;
    enum peg__woke woke;

    peg__free(ask->current);
    ask->current = NULL;
    pthread_mutex_lock(&ask->wait.lock);
    woke = peg__wait_for(&ask->wait, ctx, until_ns, has_come, ask);
    if (woke == PEG__WOKE_STOP)
        came = REMOTE_STOP;
    else if (woke == PEG__WOKE_TIME)
        came = REMOTE_TIME;
    else if (ask->first)
        came = REMOTE_MESSAGE;
    if (came == REMOTE_MESSAGE)
        take_first(ask);
    pthread_mutex_unlock(&ask->wait.lock);
    if (came == REMOTE_MESSAGE)
        *ret_bytes = peg__strn(ask->current->bytes, ask->current->len);
    return came;
}

void remote__ask_stop_unsent(struct remote__ask *ask)
{
    pthread_mutex_lock(&ask->wait.lock);
    if (!ask->is_over) {
        ask->wants_cancel_unsent = true;
        poke(ask);
    }
    pthread_mutex_unlock(&ask->wait.lock);
}

static bool is_left_alone(void *user)
{
    const struct remote__ask *ask = user;

    return ask->is_over && !ask->is_poked;
}

void remote__ask_stop(struct remote__ask *ask)
{
    if (!ask->is_started)
        return;
    pthread_mutex_lock(&ask->wait.lock);
    if (!ask->is_over) {
        ask->wants_cancel = true;
        poke(ask);
    }
    peg__wait_for(&ask->wait, NULL, INT64_MAX, is_left_alone, ask);
    pthread_mutex_unlock(&ask->wait.lock);
}

void remote__ask_free(struct remote__ask *ask)
{
    remote__ask_stop(ask);
    while (ask->first) {
        struct remote__message *m = ask->first;

        ask->first = m->next;
        peg__free(m);
    }
    peg__free(ask->current);
    if (ask->is_started)
        peg__wait_destroy(&ask->wait);
    peg__blob_unref(ask->authorization);
    peg__arena_free(&ask->arena);
    *ask = (struct remote__ask){.registry = ask->registry};
}
