/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_STREAMS_H
#define PEG_TESTS_GATEWAY_SIM_STREAMS_H

/* The streams of providers and what is on its way in them, up to the loop that they end at. Frames
 * take their time, arrive in order, and are lost when the stream breaks, which its two ends notice
 * at different times. */

#include "calls/provider/provider_side.h"
#include "nodes.h"
#include "wire/pack.h"

enum { P_PROVIDERS = 8, P_JOBS = 16, P_STREAMS = 32, P_FRAMES = 512 };

enum { P_SLOW_FRAME = 20 }; /* times as slow as most are */
enum { P_LARGE = 2 * PEG_LIMIT_BUS_REASON_BYTES };

struct p_job {
    struct net_timer finish; /* first */
    struct p_provider *provider;
    bool is_used;
    bool is_queued; /* not started */
    bool is_answered;
    bool is_error;
    bool is_large; /* its result */
    struct bus_id id;
    uint32_t attempt;
    struct bus_address route;
    char token[H_TOKEN];
};

enum p_kind {
    /* to the loop */
    P_HELLO,
    P_RESULT,
    P_OUTPUT,
    P_NAK,
    P_PONG,
    P_DRAIN,
    P_BYE, /* the provider's end is closed */
    /* to the provider */
    P_CALL,
    P_CANCEL,
    P_ACK,
    P_END, /* the loop's end is closed */
    /* within the loop's node */
    P_READY, /* the stream takes frames again */
};

struct p_frame {
    struct net_timer timer; /* first */
    struct p_frame *next;   /* of the spares */
    struct p_stream *stream;
    enum p_kind kind;
    bool was_deferred;
    bool is_error;
    bool is_large;
    bool is_done;
    struct bus_id id;
    uint32_t attempt;
    enum bus_reason reason; /* of a Nak */
    struct bus_address route;
    char token[H_TOKEN];
};

struct p_stream {
    struct p_provider *owner; /* NULL: it is not used */
    struct w_node *node;
    unsigned loop;
    bool is_open;                    /* at the provider's end */
    bool is_ended;                   /* at the loop's end: nothing comes from there any more */
    bool is_full;                    /* the provider does not read */
    bool has_drained;                /* the loop knows that its provider drains */
    struct calls_provider *provider; /* at the loop */
    int64_t last_ns[2];              /* when the last frame arrives, in each direction */
    unsigned n_frames;               /* on their way */
    struct calls_running running[P_JOBS];
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
    unsigned percent_full;      /* stops reading */
    unsigned percent_large;     /* answers with more than a full server takes */
    unsigned percent_output;    /* sends outputs */
    unsigned percent_late_nak;  /* gives a canceled call back some time later */
    unsigned gives_back_before; /* this attempt: each; its tool runs in the others */
    bool is_silent;             /* does not count its hellos */
    bool is_settled;            /* always goes to the first loop */
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
    bool has_lost_hello; /* its number is missing: as if it had been sent elsewhere */
} p;

/* ---- frames -------------------------------------------------------------------------------- */

static void p_run_frame(struct net_timer *timer);

static bool p_is_to_loop(enum p_kind kind)
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
    last_ns = &stream->last_ns[p_is_to_loop(frame->kind)];
    due_ns = w_now_ns() + w_pick_ns(p.delay_ms, P_SLOW_FRAME * p.delay_ms, 5);
    if (due_ns <= *last_ns)
        due_ns = *last_ns + 1;
    *last_ns = due_ns;
    frame->timer.fn = p_run_frame;
    bus_sim_arm(w.sim, &frame->timer, due_ns);
}

/* ---- the loop's end ------------------------------------------------------------------------ */

static void p_send_about(void *user, enum p_kind kind, const struct bus_id *id, uint32_t attempt)
{
    struct p_frame *frame = p_frame((struct p_stream *)user, kind);

    if (!frame)
        return;
    frame->id = *id;
    frame->attempt = attempt;
    p_send(frame);
}

static void p_hand(void *user, const struct calls_handed *handed)
{
    struct p_stream *stream = (struct p_stream *)user;
    struct p_frame *frame = p_frame(stream, P_CALL);

    if (!frame)
        return;
    h_log("%s: handed to %s, attempt %u", h_id(handed->id), stream->owner->name, handed->attempt);
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
        p_send_about(user, P_CANCEL, id, attempt);
}

static void p_ack(void *user, const struct bus_id *id, uint32_t attempt)
{
    if (h.plant != H_DROPS_ACK)
        p_send_about(user, P_ACK, id, attempt);
}

static bool p_is_ready(void *user)
{
    return !((struct p_stream *)user)->is_full;
}

static void p_end_at_loop(struct p_stream *stream)
{
    stream->provider = NULL;
    stream->is_ended = true;
    p_send(p_frame(stream, P_END));
}

static void p_replaced(void *user)
{
    p_end_at_loop((struct p_stream *)user);
}

static const struct calls_provider_events p_events = {
    .hand = p_hand,
    .cancel = p_cancel,
    .ack = p_ack,
    .is_ready = p_is_ready,
    .replaced = p_replaced,
};

static struct bus_address p_loop(const struct p_stream *stream)
{
    return (struct bus_address){stream->node->id, stream->loop};
}

static void p_hello(struct p_stream *stream)
{
    const struct calls_attach attach = {
        .toolset = &w.toolset->of_calls,
        .incarnation = peg__str(stream->owner->name),
        .credits = stream->owner->credits,
        .running = stream->running,
        .n_running = stream->n_running,
        .number = stream->number,
    };
    peg_error error;

    h_log("%s attaches to %llx.%u with %zu running", stream->owner->name,
          (unsigned long long)stream->node->id, stream->loop, stream->n_running);
    h_attached(stream->owner->name, p_loop(stream));
    if (calls_provider_attach(stream->node->loops[stream->loop], &attach, &p_events, stream,
                              &stream->provider, &error)) {
        h_log("%s is refused: %s", stream->owner->name, error.message);
        p_end_at_loop(stream);
    }
}

/* The observer knows a large result by its first characters. */
static peg_str p_make_large(char text[P_LARGE], const char *token)
{
    memset(text, '.', P_LARGE);
    memcpy(text, token, strlen(token));
    text[P_LARGE - 1] = '"';
    return peg__strn(text, P_LARGE);
}

/* As attach_result.c does. */
static void p_result_at_loop(const struct p_frame *frame)
{
    struct p_stream *stream = frame->stream;
    char text[P_LARGE];
    peg_str json = peg__str(h.plant == H_GARBLES_RESULT ? "\"garbled\"" : frame->token);

    if (h.plant == H_DROPS_RESULT)
        return;
    if (frame->is_large && h.plant != H_GARBLES_RESULT)
        json = p_make_large(text, frame->token);
    if (!calls_assignment_find_by(stream->provider, &frame->id, frame->attempt))
        p_ack(stream, &frame->id, frame->attempt);
    else
        calls_provider_result(stream->provider, &frame->id, frame->attempt, json, json,
                              frame->is_error);
}

static void p_bye_at_loop(struct p_stream *stream, bool is_done)
{
    struct calls_provider *provider = stream->provider;

    h_log("%s leaves %llx.%u%s", stream->owner->name, (unsigned long long)stream->node->id,
          stream->loop, is_done ? " for good" : "");
    stream->provider = NULL;
    stream->is_ended = true;
    h_left(stream->owner->name, p_loop(stream));
    calls_provider_leave(provider);
}

static void p_run_at_loop(struct p_frame *frame)
{
    struct p_stream *stream = frame->stream;

    if (frame->kind == P_HELLO) {
        p.has_lost_hello = p.has_lost_hello || stream->is_ended;
        if (!stream->is_ended)
            p_hello(stream);
        return;
    }
    if (frame->kind == P_BYE && !stream->provider)
        stream->is_ended = true;
    if (stream->is_ended || !stream->provider)
        return;
    switch (frame->kind) {
    case P_RESULT:
        p_result_at_loop(frame);
        break;
    case P_OUTPUT:
        calls_provider_output(stream->provider, &frame->id, frame->attempt, peg__str(frame->token));
        break;
    case P_NAK:
        calls_provider_nak(stream->provider, &frame->id, frame->attempt, frame->reason);
        break;
    case P_PONG:
        calls_provider_pong(stream->provider);
        break;
    case P_DRAIN:
        stream->has_drained = true;
        if (h.plant != H_IGNORES_DRAIN)
            calls_provider_drain(stream->provider);
        break;
    case P_READY:
        stream->is_full = false;
        calls_provider_ready(stream->provider);
        break;
    default:
        p_bye_at_loop(stream, frame->is_done);
        break;
    }
}

#endif
