/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_PROVIDERS_H
#define PEG_TESTS_GATEWAY_SIM_PROVIDERS_H

/*
 * Processes that provide the toolset. Each has one stream to a desk; frames on it take their time,
 * arrive in order, and are lost when it breaks, which its two ends notice at different times. A
 * provider keeps what it was handed until that is acknowledged, and lists it when it comes back
 * elsewhere, as peg_provider_serve() does.
 */

#include "gateway/holder.h"
#include "nodes.h"
#include "wire/pack.h"

enum { P_PROVIDERS = 6, P_JOBS = 16, P_STREAMS = 16, P_FRAMES = 256 };

struct p_job {
    struct net_timer finish; /* first */
    struct p_provider *provider;
    bool is_used;
    bool is_queued; /* not started */
    bool is_answered;
    bool is_error;
    struct bus_id id;
    uint32_t attempt;
    struct bus_address route;
    char token[H_TOKEN];
};

enum p_kind {
    /* to the desk */
    P_HELLO,
    P_RESULT,
    P_NAK,
    P_PONG,
    P_DRAIN,
    P_BYE, /* the provider's end is closed */
    /* to the provider */
    P_CALL,
    P_CANCEL,
    P_ACK,
    P_END, /* the desk's end is closed */
    /* within the desk's node */
    P_READY, /* the stream takes frames again */
};

struct p_frame {
    struct net_timer timer; /* first */
    struct p_frame *next;   /* of the spares */
    struct p_stream *stream;
    enum p_kind kind;
    bool was_deferred;
    bool is_error;
    bool is_done;
    struct bus_id id;
    uint32_t attempt;
    struct bus_address route;
    char token[H_TOKEN];
};

struct p_stream {
    struct p_provider *owner; /* NULL: it is not used */
    struct w_node *node;
    unsigned loop;
    bool is_open;                 /* at the provider's end */
    bool is_ended;                /* at the desk's end: nothing comes from there any more */
    bool is_full;                 /* the provider does not read */
    bool has_drained;             /* the desk has heard that its provider drains */
    struct gw_provider *provider; /* at the desk */
    int64_t last_ns[2];           /* when the last frame arrives, in each direction */
    unsigned n_frames;            /* on their way */
    struct gw_running running[P_JOBS];
    size_t n_running;
    unsigned number; /* of its hello */
};

struct p_provider {
    struct net_timer attach;
    struct net_timer pong;
    struct net_timer end; /* draining */
    bool is_alive;
    bool is_draining;
    char name[16]; /* its incarnation */
    unsigned credits;
    unsigned percent_nak;
    unsigned percent_queued;   /* starts some time later */
    unsigned percent_for_ever; /* never answers */
    unsigned percent_twice;    /* answers twice */
    unsigned percent_slow;
    unsigned percent_full; /* stops reading */
    bool is_silent;        /* does not count its hellos */
    unsigned n_hellos;
    unsigned n_tokens;
    struct p_stream *stream;
    struct p_job jobs[P_JOBS];
};

static struct {
    struct p_provider providers[P_PROVIDERS];
    unsigned n_providers;
    struct p_stream streams[P_STREAMS];
    struct p_frame frames[P_FRAMES];
    struct p_frame *spares;
    int64_t delay_ms;
} p;

static void p_attach_on_timer(struct net_timer *timer);

/* ---- frames -------------------------------------------------------------------------------- */

static void p_run_frame(struct net_timer *timer);

static bool p_is_to_desk(enum p_kind kind)
{
    return kind < P_CALL || kind == P_READY;
}

/* NULL: too many are on their way, and this one is lost. */
static struct p_frame *p_frame(struct p_stream *stream, enum p_kind kind)
{
    struct p_frame *frame = p.spares;

    if (!frame) {
        h_break("harness", "more than %d frames in one run", P_FRAMES);
        return NULL;
    }
    p.spares = frame->next;
    *frame = (struct p_frame){.stream = stream, .kind = kind};
    stream->n_frames++;
    return frame;
}

static void p_free_frame(struct p_frame *frame)
{
    struct p_stream *stream = frame->stream;

    frame->next = p.spares;
    p.spares = frame;
    if (--stream->n_frames == 0 && !stream->is_open && stream->is_ended)
        stream->owner = NULL;
}

static void p_send(struct p_frame *frame)
{
    struct p_stream *stream;
    int64_t *last_ns;
    int64_t due_ns;

    if (!frame)
        return;
    stream = frame->stream;
    last_ns = &stream->last_ns[p_is_to_desk(frame->kind)];
    due_ns = w_now_ns() + w_pick_ns(p.delay_ms, 20 * p.delay_ms, 5);
    if (due_ns <= *last_ns)
        due_ns = *last_ns + 1;
    *last_ns = due_ns;
    frame->timer.fn = p_run_frame;
    bus_sim_arm(w.sim, &frame->timer, due_ns);
}

/* ---- the desk's end ------------------------------------------------------------------------ */

static void p_say(void *user, enum p_kind kind, const struct bus_id *id, uint32_t attempt)
{
    struct p_frame *frame = p_frame((struct p_stream *)user, kind);

    if (!frame)
        return;
    frame->id = *id;
    frame->attempt = attempt;
    p_send(frame);
}

static void p_hand(void *user, const struct gw_handed *handed)
{
    struct p_stream *stream = (struct p_stream *)user;
    struct p_frame *frame = p_frame(stream, P_CALL);

    if (!frame)
        return;
    h_say("%s: handed to %s, attempt %u", h_id(handed->id), stream->owner->name, handed->attempt);
    if (stream->has_drained)
        h_break("drain", "%s was handed to %s, which drains", h_id(handed->id),
                stream->owner->name);
    h_call(handed->id)->is_idempotent = peg__str_is(wire_find_bytes(handed->call, 3), "again");
    frame->id = *handed->id;
    frame->attempt = handed->attempt;
    frame->route = handed->route;
    p_send(frame);
    if (w_happens(stream->owner->percent_full)) {
        stream->is_full = true;
        p_send(p_frame(stream, P_READY));
    }
}

static void p_cancel(void *user, const struct bus_id *id, uint32_t attempt, enum bus_reason reason)
{
    (void)reason;
    if (h.plant != H_DROPS_CANCEL)
        p_say(user, P_CANCEL, id, attempt);
}

static void p_ack(void *user, const struct bus_id *id, uint32_t attempt)
{
    p_say(user, P_ACK, id, attempt);
}

static bool p_is_ready(void *user)
{
    return !((struct p_stream *)user)->is_full;
}

static void p_end_at_desk(struct p_stream *stream)
{
    stream->provider = NULL;
    stream->is_ended = true;
    p_send(p_frame(stream, P_END));
}

static void p_replaced(void *user)
{
    p_end_at_desk((struct p_stream *)user);
}

static const struct gw_provider_events p_events = {
    .hand = p_hand,
    .cancel = p_cancel,
    .ack = p_ack,
    .is_ready = p_is_ready,
    .replaced = p_replaced,
};

static void p_hello(struct p_stream *stream)
{
    const struct gw_attach attach = {
        .toolset = w.toolset,
        .incarnation = peg__str(stream->owner->name),
        .credits = stream->owner->credits,
        .running = stream->running,
        .n_running = stream->n_running,
        .number = stream->number,
    };
    peg_error error;

    h_say("%s attaches to %llx.%u with %zu running", stream->owner->name,
          (unsigned long long)stream->node->id, stream->loop, stream->n_running);
    if (gw_provider_attach(stream->node->desks[stream->loop], &attach, &p_events, stream,
                           &stream->provider, &error)) {
        h_say("%s is refused: %s", stream->owner->name, error.message);
        p_end_at_desk(stream);
    }
}

/* As service_attach.c does. */
static void p_result_at_desk(const struct p_frame *frame)
{
    struct p_stream *stream = frame->stream;
    const struct gw_held *held = gw_holder_held(stream->provider->desk, &frame->id, frame->attempt);
    const peg_str json = peg__str(frame->token);

    if (!held || held->provider != stream->provider)
        p_ack(stream, &frame->id, frame->attempt);
    else
        gw_provider_result(stream->provider, &frame->id, frame->attempt, json, json,
                           frame->is_error);
}

static void p_bye_at_desk(struct p_stream *stream, bool is_done)
{
    struct gw_provider *provider = stream->provider;

    h_say("%s leaves %llx.%u%s", stream->owner->name, (unsigned long long)stream->node->id,
          stream->loop, is_done ? " for good" : "");
    stream->provider = NULL;
    stream->is_ended = true;
    gw_provider_leave(provider);
}

static void p_run_at_desk(struct p_frame *frame)
{
    struct p_stream *stream = frame->stream;

    if (frame->kind == P_HELLO && !stream->is_ended) {
        p_hello(stream);
        return;
    }
    if (frame->kind == P_BYE && !stream->provider)
        stream->is_ended = true;
    if (stream->is_ended || !stream->provider)
        return;
    switch (frame->kind) {
    case P_RESULT:
        p_result_at_desk(frame);
        break;
    case P_NAK:
        gw_provider_nak(stream->provider, &frame->id, frame->attempt, BUS_OVERLOADED);
        break;
    case P_PONG:
        gw_provider_pong(stream->provider);
        break;
    case P_DRAIN:
        stream->has_drained = true;
        if (h.plant != H_IGNORES_DRAIN)
            gw_provider_drain(stream->provider);
        break;
    case P_READY:
        stream->is_full = false;
        gw_provider_ready(stream->provider);
        break;
    default:
        p_bye_at_desk(stream, frame->is_done);
        break;
    }
}

/* ---- the provider's end -------------------------------------------------------------------- */

static struct p_job *p_find_job(struct p_provider *provider, const struct bus_id *id,
                                uint32_t attempt)
{
    for (unsigned i = 0; i < P_JOBS; i++) {
        struct p_job *job = &provider->jobs[i];

        if (job->is_used && job->attempt == attempt && bus_id_equal(&job->id, id))
            return job;
    }
    return NULL;
}

static void p_send_result(const struct p_job *job)
{
    struct p_frame *frame = p_frame(job->provider->stream, P_RESULT);

    if (!frame)
        return;
    frame->id = job->id;
    frame->attempt = job->attempt;
    frame->is_error = job->is_error;
    memcpy(frame->token, job->token, sizeof(frame->token));
    p_send(frame);
}

static void p_answer(struct p_job *job, bool is_error)
{
    struct p_provider *provider = job->provider;

    bus_sim_disarm(w.sim, &job->finish);
    job->is_answered = true;
    job->is_error = is_error;
    snprintf(job->token, sizeof(job->token), "\"%s.%u\"", provider->name, ++provider->n_tokens);
    h_produced(&job->id, job->token);
    h_say("%s: answered by %s: %s%s", h_id(&job->id), provider->name, is_error ? "error " : "",
          job->token);
    if (!provider->stream)
        return;
    p_send_result(job);
    if (w_happens(provider->percent_twice))
        p_send_result(job);
}

static void p_finish(struct net_timer *timer)
{
    p_answer((struct p_job *)timer, w_happens(10));
}

static void p_nak(struct p_stream *stream, const struct bus_id *id, uint32_t attempt)
{
    struct p_frame *frame = p_frame(stream, P_NAK);

    if (!frame)
        return;
    frame->id = *id;
    frame->attempt = attempt;
    p_send(frame);
}

/* It was not started, and the gateway may know that: if the stream is there to say so. */
static void p_give_back(struct p_job *job)
{
    bus_sim_disarm(w.sim, &job->finish);
    job->is_used = false;
    if (job->provider->stream)
        p_nak(job->provider->stream, &job->id, job->attempt);
}

static void p_begin_job(struct net_timer *timer)
{
    struct p_job *job = (struct p_job *)timer;
    const struct p_provider *provider = job->provider;

    job->is_queued = false;
    h_started(&job->id, job->attempt, provider->name);
    if (!w_happens(provider->percent_for_ever))
        w_arm(&job->finish, p_finish, w_pick_ns(30, 8000, provider->percent_slow));
}

static struct p_job *p_free_job(struct p_provider *provider)
{
    for (unsigned i = 0; i < P_JOBS; i++)
        if (!provider->jobs[i].is_used)
            return &provider->jobs[i];
    return NULL;
}

static void p_start(struct p_stream *stream, const struct p_frame *call)
{
    struct p_provider *provider = stream->owner;
    struct p_job *job = p_free_job(provider);

    if (!job || provider->is_draining || w_happens(provider->percent_nak)) {
        p_nak(stream, &call->id, call->attempt);
        return;
    }
    *job = (struct p_job){
        .provider = provider,
        .is_used = true,
        .is_queued = true,
        .id = call->id,
        .attempt = call->attempt,
        .route = call->route,
    };
    if (w_happens(provider->percent_queued))
        w_arm(&job->finish, p_begin_job, w_pick_ns(50, 3000, 30));
    else
        p_begin_job(&job->finish);
}

static void p_lose_stream(struct p_provider *provider)
{
    provider->stream->is_open = false;
    provider->stream = NULL;
    if (provider->is_alive)
        w_arm(&provider->attach, p_attach_on_timer, w_pick_ns(200, 3000, 20));
}

static void p_run_at_provider(struct p_frame *frame)
{
    struct p_stream *stream = frame->stream;
    struct p_job *job = p_find_job(stream->owner, &frame->id, frame->attempt);

    if (!stream->is_open)
        return;
    switch (frame->kind) {
    case P_CALL:
        p_start(stream, frame);
        break;
    case P_CANCEL:
        h_cancel_told(&frame->id);
        if (job && job->is_queued)
            p_give_back(job);
        else if (job && !job->is_answered && w_happens(60))
            p_answer(job, true);
        break;
    case P_ACK:
        if (job && job->is_answered)
            job->is_used = false;
        break;
    default:
        p_lose_stream(stream->owner);
        break;
    }
}

static void p_run_frame(struct net_timer *timer)
{
    struct p_frame *frame = (struct p_frame *)timer;
    const bool is_to_desk = p_is_to_desk(frame->kind);
    int64_t later_ns = 0;

    if (is_to_desk && frame->stream->node->is_alive)
        later_ns = bus_sim_defer(w.sim, frame->stream->node->id, &frame->was_deferred);
    if (later_ns) {
        bus_sim_arm(w.sim, timer, later_ns);
        return;
    }
    if (!is_to_desk)
        p_run_at_provider(frame);
    else if (frame->stream->node->is_alive)
        p_run_at_desk(frame);
    p_free_frame(frame);
}

/* ---- coming and going ---------------------------------------------------------------------- */

static struct p_stream *p_free_stream(void)
{
    for (unsigned i = 0; i < P_STREAMS; i++)
        if (!p.streams[i].owner)
            return &p.streams[i];
    return NULL;
}

/* What it lists, it has kept; what it has answered, it says again. */
static void p_list_running(struct p_stream *stream)
{
    for (unsigned i = 0; i < P_JOBS; i++) {
        const struct p_job *job = &stream->owner->jobs[i];

        if (job->is_used)
            stream->running[stream->n_running++] = (struct gw_running){
                .id = job->id,
                .attempt = job->attempt,
                .route = job->route,
                .tool = PEG_LIT("do"),
            };
    }
}

static void p_attach(struct p_provider *provider)
{
    struct w_node *node = w_any_node();
    struct p_stream *stream = p_free_stream();

    if (!node || !stream) {
        w_arm(&provider->attach, p_attach_on_timer, PEG_NS_PER_S);
        return;
    }
    *stream = (struct p_stream){
        .owner = provider,
        .node = node,
        .loop = w_pick(node->n_loops),
        .is_open = true,
        .number = provider->is_silent ? 0 : ++provider->n_hellos,
    };
    provider->stream = stream;
    p_list_running(stream);
    p_send(p_frame(stream, P_HELLO));
    if (provider->is_draining)
        p_send(p_frame(stream, P_DRAIN));
    for (unsigned i = 0; i < P_JOBS; i++)
        if (provider->jobs[i].is_used && provider->jobs[i].is_answered)
            p_send_result(&provider->jobs[i]);
}

static void p_attach_on_timer(struct net_timer *timer)
{
    p_attach((struct p_provider *)((char *)timer - offsetof(struct p_provider, attach)));
}

static void p_pong_on_timer(struct net_timer *timer)
{
    struct p_provider *provider =
        (struct p_provider *)((char *)timer - offsetof(struct p_provider, pong));

    if (provider->stream)
        p_send(p_frame(provider->stream, P_PONG));
    w_arm(&provider->pong, p_pong_on_timer, 10 * PEG_NS_PER_S);
}

static struct p_provider *p_start_provider(void)
{
    struct p_provider *provider;

    if (p.n_providers == P_PROVIDERS)
        return NULL;
    provider = &p.providers[p.n_providers++];
    *provider =
        (struct p_provider){.is_alive = true, .credits = 1 + w_pick(3), .is_silent = w_happens(20)};
    snprintf(provider->name, sizeof(provider->name), "provider-%u", p.n_providers);
    p_attach(provider);
    w_arm(&provider->pong, p_pong_on_timer, 10 * PEG_NS_PER_S);
    return provider;
}

/* Its end of the stream closes; the desk hears of it, perhaps without what was said before. */
static void p_hang_up(struct p_provider *provider, bool is_done)
{
    struct p_stream *stream = provider->stream;
    struct p_frame *frame;

    if (!stream)
        return;
    h_say("the stream of %s breaks", provider->name);
    frame = p_frame(stream, P_BYE);
    if (frame)
        frame->is_done = is_done;
    if (!is_done && w_happens(50))
        stream->last_ns[1] = 0; /* overtakes: what was said before comes too late */
    p_send(frame);
    p_lose_stream(provider);
}

static void p_end(struct p_provider *provider, bool is_done)
{
    provider->is_alive = false;
    p_hang_up(provider, is_done);
    for (unsigned i = 0; i < P_JOBS; i++) {
        bus_sim_disarm(w.sim, &provider->jobs[i].finish);
        provider->jobs[i].is_used = false;
    }
    bus_sim_disarm(w.sim, &provider->attach);
    bus_sim_disarm(w.sim, &provider->pong);
    bus_sim_disarm(w.sim, &provider->end);
}

static void p_kill(struct p_provider *provider)
{
    if (!provider->is_alive)
        return;
    h_say("%s is KILLED", provider->name);
    p_end(provider, false);
}

static bool p_is_idle(const struct p_provider *provider)
{
    for (unsigned i = 0; i < P_JOBS; i++)
        if (provider->jobs[i].is_used)
            return false;
    return true;
}

static void p_end_when_idle(struct net_timer *timer)
{
    struct p_provider *provider =
        (struct p_provider *)((char *)timer - offsetof(struct p_provider, end));

    if (p_is_idle(provider) && provider->stream)
        p_end(provider, true);
    else
        w_arm(&provider->end, p_end_when_idle, 100 * PEG_NS_PER_MS);
}

/* It wants no more calls; those that it has it finishes, and then it goes. */
static void p_drain(struct p_provider *provider)
{
    if (!provider->is_alive || provider->is_draining)
        return;
    h_say("%s drains", provider->name);
    provider->is_draining = true;
    if (provider->stream)
        p_send(p_frame(provider->stream, P_DRAIN));
    for (unsigned i = 0; i < P_JOBS; i++)
        if (provider->jobs[i].is_used && provider->jobs[i].is_queued)
            p_give_back(&provider->jobs[i]);
    w_arm(&provider->end, p_end_when_idle, 100 * PEG_NS_PER_MS);
}

/* What would run for ever ends after all. */
static void p_answer_all(void)
{
    for (unsigned i = 0; i < p.n_providers; i++)
        for (unsigned k = 0; k < P_JOBS; k++) {
            struct p_job *job = &p.providers[i].jobs[k];

            if (job->is_used && !job->is_queued && !job->is_answered)
                p_answer(job, false);
        }
}

/* Streams to a node that crashed end when their providers notice. */
static void p_on_crash(const struct w_node *node)
{
    for (unsigned i = 0; i < P_STREAMS; i++) {
        struct p_stream *stream = &p.streams[i];

        if (!stream->owner || stream->node != node)
            continue;
        stream->provider = NULL;
        if (stream->is_ended)
            continue;
        stream->is_ended = true;
        p_send(p_frame(stream, P_END));
    }
}

static void p_begin(int64_t delay_ms)
{
    p.n_providers = 0;
    p.delay_ms = delay_ms;
    p.spares = NULL;
    for (unsigned i = 0; i < P_STREAMS; i++)
        p.streams[i].owner = NULL;
    for (unsigned i = 0; i < P_FRAMES; i++) {
        p.frames[i].next = p.spares;
        p.spares = &p.frames[i];
    }
}

#endif
