/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_CLIENT_WORLD_H
#define PEG_TESTS_GRPC_CLIENT_WORLD_H

/* A client on a loop that runs in the test's own thread, a misbehaving server on another, and
 * what became of each call. */

#include "base/clock.h"
#include "fake_server.h"
#include "grpc/client/internal.h"
#include "t.h"

struct world {
    struct fake fake;
    struct net_loop *loop;
    struct grpc_channel *channel;
    struct net_timer watchdog;
    unsigned n_pending; /* calls that have not ended */
    bool is_late;
    peg_error error;
    /* states of the channel, in order */
    enum grpc_channel_state states[32];
    unsigned n_states;
    enum grpc_channel_state stop_at; /* runs until then, if stops_at_state */
    bool stops_at_state;
};

/* What a call has heard. */
struct outcome {
    struct world *w;
    struct grpc_rpc *rpc; /* NULL once it has ended */
    unsigned n_headers;
    unsigned n_messages;
    unsigned n_writable;
    unsigned n_ends;
    enum grpc_code code;
    char words[512];
    size_t details_len;
    char header[32];
    char trailer[32];
    size_t trailer_bin_len;
    char last[512]; /* message */
    size_t last_len;
    char peer[64];
    bool was_sent;
    /* what is done at an event */
    bool cancels_at_headers;
    bool cancels_at_message;
    bool cancels_at_writable;
    bool pauses_at_message;
    bool stops_at_message; /* the loop */
};

/* ---- running ------------------------------------------------------------------------------ */

static inline void world_on_watchdog(struct net_timer *timer)
{
    struct world *w = (struct world *)(void *)((char *)timer - offsetof(struct world, watchdog));

    w->is_late = true;
    net_loop_stop(w->loop);
}

/* Until somebody stops the loop: the last call ends, or what the test asked for. */
static inline void world_run(struct world *w)
{
    enum { PATIENCE_S = 60 };

    w->watchdog.fn = world_on_watchdog;
    net_loop_arm(w->loop, &w->watchdog, net_loop_now_ns(w->loop) + PATIENCE_S * PEG_NS_PER_S);
    net_loop_run(w->loop);
    net_loop_disarm(w->loop, &w->watchdog);
    CHECK(!w->is_late);
}

struct world_nap {
    struct net_timer timer;
    struct net_loop *loop;
};

static inline void world_wake(struct net_timer *timer)
{
    net_loop_stop(((struct world_nap *)(void *)timer)->loop);
}

/* Lets the loop go round for a moment, where the other thread must not be waited for. */
static inline void world_nap(struct world *w, int64_t ms)
{
    struct world_nap nap = {.timer = {.fn = world_wake}, .loop = w->loop};

    net_loop_arm(w->loop, &nap.timer, net_loop_now_ns(w->loop) + ms * PEG_NS_PER_MS);
    net_loop_run(w->loop);
    net_loop_disarm(w->loop, &nap.timer);
}

/* Until a counter of the server, which counts in its thread, has come so far. */
static inline void world_await(struct world *w, atomic_uint *counter, unsigned at_least)
{
    for (unsigned i = 0; i < 20000 && atomic_load(counter) < at_least; i++)
        world_nap(w, 1);
    CHECK(atomic_load(counter) >= at_least);
}

/* Until so many connections can take calls. */
static inline void world_await_ready(struct world *w, size_t n)
{
    for (unsigned i = 0; i < 20000 && w->channel->pick.n < n; i++)
        world_nap(w, 1);
    CHECK_INT(w->channel->pick.n, n);
}

static inline void world_on_state(void *user, enum grpc_channel_state state)
{
    struct world *w = (struct world *)user;

    if (w->n_states < sizeof(w->states) / sizeof(w->states[0]))
        w->states[w->n_states++] = state;
    if (w->stops_at_state && state == w->stop_at)
        net_loop_stop(w->loop);
}

static inline void world_run_until(struct world *w, enum grpc_channel_state state)
{
    w->stops_at_state = true;
    w->stop_at = state;
    if (grpc_channel_state(w->channel) != state)
        world_run(w);
    w->stops_at_state = false;
}

/* ---- beginning and end -------------------------------------------------------------------- */

static inline peg_status world_connect(struct world *w, const char *target,
                                       const struct grpc_channel_options *options)
{
    peg_status status = PEG_OK;

    if (!w->loop)
        status = net_loop_new(&w->loop, &w->error);
    if (!status)
        status = grpc_channel_new(w->loop, peg__str(target), options, &w->channel, &w->error);
    if (!status)
        grpc_channel_on_state(w->channel, world_on_state, w);
    return status;
}

static inline void world_done(struct world *w)
{
    w->channel = grpc_channel_free(w->channel);
    w->loop = net_loop_free(w->loop);
    fake_stop(&w->fake);
}

static inline void world_init_with(struct world *w, const struct grpc_channel_options *options)
{
    CHECK_INT(fake_start(&w->fake, NULL), PEG_OK);
    CHECK_STATUS(world_connect(w, w->fake.target, options), PEG_OK, w->error);
}

static inline void world_init(struct world *w)
{
    static const struct grpc_channel_options options = {.backoff_ms = 10, .max_backoff_ms = 50};

    *w = (struct world){0};
    world_init_with(w, &options);
}

/* ---- calls -------------------------------------------------------------------------------- */

static inline void outcome_on_headers(struct grpc_rpc *rpc, const struct grpc_metadata *metadata,
                                      void *user)
{
    struct outcome *o = (struct outcome *)user;

    o->n_headers++;
    snprintf(o->header, sizeof(o->header), "%.*s", PEG_ARG(grpc_metadata_get(metadata, "x-fake")));
    if (o->cancels_at_headers)
        grpc_rpc_cancel(rpc);
}

static inline void outcome_on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct outcome *o = (struct outcome *)user;
    const peg_str *bytes = (const peg_str *)message;

    o->n_messages++;
    if (!grpc_rpc_method(rpc)->output) {
        o->last_len = bytes->len;
        snprintf(o->last, sizeof(o->last), "%.*s", PEG_ARG(*bytes));
    }
    if (o->cancels_at_message)
        grpc_rpc_cancel(rpc);
    if (o->pauses_at_message)
        grpc_rpc_pause(rpc);
    if (o->stops_at_message)
        net_loop_stop(o->w->loop);
}

static inline void outcome_on_writable(struct grpc_rpc *rpc, void *user)
{
    struct outcome *o = (struct outcome *)user;

    o->n_writable++;
    if (o->cancels_at_writable)
        grpc_rpc_cancel(rpc);
}

static inline void outcome_on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                                  const struct grpc_metadata *trailers, void *user)
{
    struct outcome *o = (struct outcome *)user;

    o->n_ends++;
    o->code = status->code;
    o->details_len = status->details.len;
    o->was_sent = grpc_rpc_was_sent(rpc);
    snprintf(o->words, sizeof(o->words), "%.*s", PEG_ARG(status->message));
    snprintf(o->trailer, sizeof(o->trailer), "%.*s", PEG_ARG(grpc_metadata_get(trailers, "x-end")));
    o->trailer_bin_len = grpc_metadata_get(trailers, "x-trailer-bin").len;
    snprintf(o->peer, sizeof(o->peer), "%s", grpc_rpc_peer(rpc));
    o->rpc = NULL;
    if (--o->w->n_pending == 0)
        net_loop_stop(o->w->loop);
}

static const struct grpc_rpc_events outcome_events = {
    .on_headers = outcome_on_headers,
    .on_message = outcome_on_message,
    .on_writable = outcome_on_writable,
    .on_end = outcome_on_end,
};

#define METHOD(a_name, a_path, a_client, a_server)                                                 \
    static const struct grpc_method a_name = {                                                     \
        .name = #a_name, .path = a_path, .client_streams = a_client, .server_streams = a_server}

/* Begins a call with bytes; it is counted in n_pending. */
static inline peg_status begin(struct world *w, const struct grpc_method *method,
                               const char *request, const struct grpc_rpc_options *options,
                               struct outcome *o)
{
    const peg_str bytes = peg__str(request);
    peg_status status;

    o->w = w;
    status =
        grpc_rpc_unary(w->channel, method, &bytes, options, &outcome_events, o, &o->rpc, &w->error);
    w->n_pending += status == PEG_OK;
    return status;
}

static inline peg_status begin_stream(struct world *w, const struct grpc_method *method,
                                      const struct grpc_rpc_options *options, struct outcome *o)
{
    peg_status status;

    o->w = w;
    status = grpc_rpc_start(w->channel, method, options, &outcome_events, o, &o->rpc, &w->error);
    w->n_pending += status == PEG_OK;
    return status;
}

/* The whole call. */
static inline struct outcome call(struct world *w, const struct grpc_method *method,
                                  const char *request)
{
    struct outcome o = {0};

    CHECK_STATUS(begin(w, method, request, NULL, &o), PEG_OK, w->error);
    CHECK_INT(o.n_ends, 0);
    world_run(w);
    CHECK_INT(o.n_ends, 1);
    return o;
}

#endif
