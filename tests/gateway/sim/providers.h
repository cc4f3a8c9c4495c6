/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_PROVIDERS_H
#define PEG_TESTS_GATEWAY_SIM_PROVIDERS_H

/*
 * Processes that provide the toolset. Each has one stream to a loop. A provider keeps what it was
 * handed until that is acknowledged, and lists it when it comes back elsewhere, as
 * peg_provider_serve() does.
 */

#include "streams.h"

static void p_attach_on_timer(struct net_timer *timer);

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
    frame->is_large = job->is_large;
    memcpy(frame->token, job->token, sizeof(frame->token));
    p_send(frame);
}

static void p_send_output(const struct p_job *job)
{
    struct p_provider *provider = job->provider;
    struct p_frame *frame = provider->stream ? p_frame(provider->stream, P_OUTPUT) : NULL;

    if (!frame)
        return;
    frame->id = job->id;
    frame->attempt = job->attempt;
    snprintf(frame->token, sizeof(frame->token), "%s:%u", provider->name, ++provider->n_tokens);
    h_produced_output(&job->id, frame->token);
    p_send(frame);
}

/* The JSON of a large one goes on behind its token. */
static void p_make_token(struct p_job *job)
{
    struct p_provider *provider = job->provider;
    const int n = snprintf(job->token, sizeof(job->token), "\"%s.%u%s", provider->name,
                           ++provider->n_tokens, job->is_large ? "" : "\"");

    if (!job->is_large)
        return;
    memset(job->token + n, '.', sizeof(job->token) - (size_t)n - 1);
    job->token[sizeof(job->token) - 1] = '\0';
}

static void p_answer(struct p_job *job, bool is_error)
{
    struct p_provider *provider = job->provider;

    bus_sim_disarm(w.sim, &job->finish);
    if (w_happens(provider->percent_output))
        p_send_output(job);
    job->is_answered = true;
    job->is_error = is_error;
    job->is_large = w_happens(provider->percent_large);
    p_make_token(job);
    h_produced(&job->id, job->token);
    h_log("%s: answered by %s: %s%s", h_id(&job->id), provider->name, is_error ? "error " : "",
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
    frame->reason =
        w_happens(20) && !stream->owner->gives_back_before ? BUS_OUTDATED : BUS_OVERLOADED;
    p_send(frame);
}

/* It was not started, and the gateway learns that if the stream is there. */
static void p_give_back(struct p_job *job)
{
    bus_sim_disarm(w.sim, &job->finish);
    job->is_used = false;
    if (job->provider->stream)
        p_nak(job->provider->stream, &job->id, job->attempt);
}

static void p_give_back_on_timer(struct net_timer *timer)
{
    p_give_back((struct p_job *)timer);
}

/* Often when the coordinator gives it up. */
static int64_t p_late_nak_ns(void)
{
    const int64_t grace_ns = PEG_LIMIT_GATEWAY_GRACE_MS * PEG_NS_PER_MS;

    return w_happens(60) ? grace_ns + w_pick_ns(100, 1000, 50) : w_pick_ns(200, 6000, 80);
}

static void p_begin_job(struct net_timer *timer)
{
    struct p_job *job = (struct p_job *)timer;
    const struct p_provider *provider = job->provider;

    job->is_queued = false;
    h_started(&job->id, job->attempt, provider->name);
    if (w_happens(provider->percent_output))
        p_send_output(job);
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

/* It has it: as peg_provider_serve() does, it sends its result again. Others would start it again,
 * so that counts as a start. */
static void p_take_duplicate(const struct p_job *job)
{
    if (!job->is_queued)
        h_started(&job->id, job->attempt, job->provider->name);
    if (job->is_answered)
        p_send_result(job);
}

static void p_start(struct p_stream *stream, const struct p_frame *call)
{
    struct p_provider *provider = stream->owner;
    const struct p_job *duplicate = p_find_job(provider, &call->id, call->attempt);
    struct p_job *job = p_free_job(provider);

    if (duplicate) {
        p_take_duplicate(duplicate);
        return;
    }
    if (!job || provider->is_draining || call->attempt < provider->gives_back_before ||
        w_happens(provider->percent_nak)) {
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
        w_arm(&job->finish, p_begin_job,
              provider->percent_late_nak > 80 ? w_pick_ns(2000, 20000, 70)
                                              : w_pick_ns(50, 3000, 30));
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
        h_cancel_sent(&frame->id);
        if (job && job->is_queued && w_happens(stream->owner->percent_late_nak))
            w_arm(&job->finish, p_give_back_on_timer, p_late_nak_ns());
        else if (job && job->is_queued)
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
    const bool is_to_loop = p_is_to_loop(frame->kind);
    int64_t later_ns = 0;

    if (is_to_loop && frame->stream->node->is_alive)
        later_ns = bus_sim_defer(w.sim, frame->stream->node->id, &frame->was_deferred);
    if (later_ns) {
        bus_sim_arm(w.sim, timer, later_ns);
        return;
    }
    if (!is_to_loop)
        p_run_at_provider(frame);
    else if (frame->stream->node->is_alive)
        p_run_at_loop(frame);
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

/* What it lists, it has kept; what it has answered, it sends again. */
static void p_list_running(struct p_stream *stream)
{
    for (unsigned i = 0; i < P_JOBS && h.plant != H_RETURNS_EMPTY; i++) {
        const struct p_job *job = &stream->owner->jobs[i];

        if (job->is_used)
            stream->running[stream->n_running++] = (struct calls_running){
                .id = job->id,
                .attempt = job->attempt,
                .route = job->route,
                .tool = PEG_LIT("do"),
            };
    }
}

static void p_attach(struct p_provider *provider)
{
    struct w_node *node = provider->is_settled ? &w.nodes[0] : w_any_node();
    struct p_stream *stream = p_free_stream();

    if (!node || !stream) {
        w_arm(&provider->attach, p_attach_on_timer, PEG_NS_PER_S);
        return;
    }
    *stream = (struct p_stream){
        .owner = provider,
        .node = node,
        .loop = provider->is_settled ? 0 : w_pick(node->n_loops),
        .is_open = true,
        .number = provider->is_silent ? 0 : ++provider->n_hellos,
    };
    provider->stream = stream;
    p_list_running(stream);
    p_send(p_frame(stream, P_HELLO));
    if (provider->is_draining)
        p_send(p_frame(stream, P_DRAIN));
    for (unsigned i = 0; i < P_JOBS && h.plant != H_RETURNS_EMPTY; i++)
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

/* NULL: there are enough. */
static struct p_provider *p_new_provider(void)
{
    struct p_provider *provider;

    if (p.n_providers == P_PROVIDERS)
        return NULL;
    provider = &p.providers[p.n_providers++];
    *provider =
        (struct p_provider){.is_alive = true, .credits = 1 + w_pick(3), .is_silent = w_happens(20)};
    snprintf(provider->name, sizeof(provider->name), "provider-%u", p.n_providers);
    return provider;
}

static void p_start_provider(struct p_provider *provider)
{
    if (!provider)
        return;
    p_attach(provider);
    w_arm(&provider->pong, p_pong_on_timer, 10 * PEG_NS_PER_S);
}

/* Its end of the stream closes; the loop learns that, perhaps without what was sent before. */
static void p_hang_up(struct p_provider *provider, bool is_done)
{
    struct p_stream *stream = provider->stream;
    struct p_frame *frame;

    if (!stream)
        return;
    h_log("the stream of %s breaks", provider->name);
    frame = p_frame(stream, P_BYE);
    if (frame)
        frame->is_done = is_done;
    if (!is_done && w_happens(50))
        stream->last_ns[1] = 0; /* overtakes: what was sent before comes too late */
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
    h_log("%s is KILLED", provider->name);
    p_end(provider, false);
}

static unsigned p_n_used_jobs(const struct p_provider *provider)
{
    unsigned n = 0;

    for (unsigned i = 0; i < P_JOBS; i++)
        n += provider->jobs[i].is_used;
    return n;
}

static void p_end_when_idle(struct net_timer *timer)
{
    struct p_provider *provider =
        (struct p_provider *)((char *)timer - offsetof(struct p_provider, end));

    if (!p_n_used_jobs(provider) && provider->stream)
        p_end(provider, true);
    else
        w_arm(&provider->end, p_end_when_idle, 100 * PEG_NS_PER_MS);
}

/* A call may be on its way that was handed over before its loop knew of the drain: a provider that
 * has nothing to finish stays for a frame there and one back. One that did not would lose it, as
 * would a real one whose frames take longer than PEG_LIMIT_REMOTE_QUIET_MS. */
static int64_t p_quiet_ns(void)
{
    return 2 * P_SLOW_FRAME * p.delay_ms * PEG_NS_PER_MS + PEG_NS_PER_MS;
}

/* It wants no more calls; those that it has it finishes, and then it goes. */
static void p_drain(struct p_provider *provider)
{
    if (!provider->is_alive || provider->is_draining)
        return;
    if (h.plant == H_QUITS_AT_DRAIN) {
        p_kill(provider);
        return;
    }
    h_log("%s drains", provider->name);
    provider->is_draining = true;
    if (provider->stream)
        p_send(p_frame(provider->stream, P_DRAIN));
    for (unsigned i = 0; i < P_JOBS; i++)
        if (provider->jobs[i].is_used && provider->jobs[i].is_queued)
            p_give_back(&provider->jobs[i]);
    w_arm(&provider->end, p_end_when_idle, p_quiet_ns());
}

static void p_answer_its(struct p_provider *provider)
{
    for (unsigned i = 0; i < P_JOBS; i++) {
        struct p_job *job = &provider->jobs[i];

        if (job->is_used && !job->is_queued && !job->is_answered)
            p_answer(job, false);
    }
}

/* What would run for ever ends after all. */
static void p_answer_all(void)
{
    for (unsigned i = 0; i < p.n_providers; i++)
        p_answer_its(&p.providers[i]);
}

/* What providers that are attached have had no Ack for. */
static unsigned p_n_kept(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p.n_providers; i++) {
        const struct p_provider *provider = &p.providers[i];

        if (provider->is_alive && provider->stream && !provider->stream->is_ended)
            n += p_n_used_jobs(provider);
    }
    return n;
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
    p.has_lost_hello = false;
    p.spares = NULL;
    for (unsigned i = 0; i < P_STREAMS; i++)
        p.streams[i].owner = NULL;
    for (unsigned i = 0; i < P_FRAMES; i++) {
        p.frames[i].next = p.spares;
        p.spares = &p.frames[i];
    }
}

#endif
