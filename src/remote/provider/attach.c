/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stream to a gateway, on the loop: Hello with the tools, Welcome, then frames both ways. After
 * a break the provider opens another one and lists its running calls. When a gateway drains, the
 * provider attaches to another one, or to its successor at the same address, and still answers the
 * old calls through the old stream. Hello has the registry's tools, and Offer their changes.
 */

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"
#include "remote/token.h"
#include "wire/wire.h"
#include "json/json.h"

/* ---- changed tools ---- */

static peg_status send_offer(struct remote__prov_stream *stream, peg_error *reterr)
{
    struct peg__arena arena = {0};
    Pegboard__V1__Offer offer = PEGBOARD__V1__OFFER__INIT;
    peg_status status =
        remote__prov_fill_registration(stream->prov, &arena, &offer.registration, reterr);

    if (!status)
        status = remote__prov_try_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_OFFER, &offer,
                                       reterr);
    peg__arena_free(&arena);
    return status;
}

/* Changes before the Welcome, or before the answer to an Offer, are offered after it. */
static void offer_tools(peg_provider *prov)
{
    struct remote__prov_stream *stream = remote__prov_current(prov);
    peg_error error;
    peg_status status;

    if (!stream || prov->phase != REMOTE__PROV_SERVING || stream->is_broken)
        return;
    stream->has_old_tools = !stream->is_welcome || stream->is_offering;
    if (stream->has_old_tools)
        return;
    status = send_offer(stream, &error);
    stream->is_offering = !status;
    if (status == PEG_ENOMEM) /* the next Hello has the tools */
        remote__prov_break(stream);
    else if (status)
        remote__prov_report_refused_offer(prov, error.code, error.message);
}

static void on_offered(struct remote__prov_stream *stream, const Pegboard__V1__Offered *frame)
{
    peg_provider *prov = stream->prov;

    stream->is_offering = false;
    if (frame->error[0])
        remote__prov_report_refused_offer(prov, frame->error, frame->message);
    else
        remote__prov_notify(
            prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFERED, .address = prov->peer});
    if (stream->has_old_tools && stream == remote__prov_current(prov))
        offer_tools(prov);
}

/* ---- waiting for another try ---- */

static void on_retry_due(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, retry));

    /* Our pause is over: the channel must not add its own. */
    grpc_channel_connect(prov->channel);
    remote__prov_attach(prov);
}

/* With running calls it must return before its lease ends. With the jitter it stays below a
 * quarter. */
static int64_t longest_pause_ms(const peg_provider *prov)
{
    const int64_t usual_ms = prov->config.max_backoff_ms;
    const int64_t leased_ms = prov->lease_ms / 5;

    return prov->calls.n && leased_ms > 0 && leased_ms < usual_ms ? leased_ms : usual_ms;
}

static void retry_later(peg_provider *prov, const char *why)
{
    const int64_t ms = grpc_backoff_take_below_ms(&prov->backoff, longest_pause_ms(prov));

    if (prov->phase == REMOTE__PROV_ENDED || prov->is_ending || net_loop_is_ending(prov->loop))
        return;
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_LOST,
                                                    .address = prov->peer,
                                                    .message = why,
                                                    .retry_ms = ms});
    prov->retry.fn = on_retry_due;
    net_loop_arm(prov->loop, &prov->retry, net_loop_now_ns(prov->loop) + ms * PEG_NS_PER_MS);
}

/* ---- incoming frames ---- */

static void answer_ping(struct remote__prov_stream *stream, const Pegboard__V1__Ping *ping)
{
    Pegboard__V1__ProviderPong pong = PEGBOARD__V1__PROVIDER_PONG__INIT;

    pong.ping_id = ping->ping_id;
    remote__prov_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_PONG, &pong);
}

static void send_drain_on(struct remote__prov_stream *stream)
{
    Pegboard__V1__ProviderDrain drain = PEGBOARD__V1__PROVIDER_DRAIN__INIT;

    remote__prov_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_DRAIN, &drain);
}

static void send_drain(peg_provider *prov)
{
    struct remote__prov_stream *stream = remote__prov_current(prov);

    if (stream && stream->is_welcome)
        send_drain_on(stream);
}

static void on_welcome(struct remote__prov_stream *stream, const Pegboard__V1__Welcome *welcome)
{
    peg_provider *prov = stream->prov;

    if (stream->is_welcome)
        return;
    net_loop_disarm(prov->loop, &stream->patience);
    stream->is_welcome = true;
    stream->takes_content = welcome->takes_content;
    prov->was_welcome = true;
    prov->lease_ms = welcome->lease_ms;
    stream->takes_input = welcome->takes_input;
    snprintf(prov->peer, sizeof(prov->peer), "%s", grpc_rpc_peer(stream->rpc));
    remote__prov_set_attached(prov, true);
    remote__prov_notify(
        prov, &(peg_provider_event){.kind = PEG_PROVIDER_ATTACHED, .address = prov->peer});
    if (prov->phase != REMOTE__PROV_SERVING || prov->is_paused)
        send_drain_on(stream);
    remote__prov_adopt_calls(stream);
    if (stream->has_old_tools)
        offer_tools(prov);
    remote__prov_check_end(prov);
}

static void on_gateway_drain(struct remote__prov_stream *stream)
{
    peg_provider *prov = stream->prov;

    if (stream->is_leaving)
        return;
    stream->is_leaving = true;
    stream->is_last_call_seen = true;
    remote__prov_set_attached(prov, false);
    remote__prov_notify(
        prov, &(peg_provider_event){.kind = PEG_PROVIDER_GATEWAY_DRAINS, .address = prov->peer});
    grpc_channel_leave(prov->channel, grpc_rpc_peer(stream->rpc));
    if (prov->phase == REMOTE__PROV_SERVING && !prov->is_paused)
        remote__prov_attach(prov);
    else
        remote__prov_check_end(prov);
}

static void on_drained_frame(struct remote__prov_stream *stream)
{
    stream->is_last_call_seen = true;
    remote__prov_check_end(stream->prov);
}

static void take_answer_frame(peg_provider *prov, const Pegboard__V1__Answer *frame)
{
    remote__prov_take_answer(remote__prov_find(prov, frame->call_id, frame->attempt), frame);
}

static void on_frame(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct remote__prov_stream *stream = user;
    const Pegboard__V1__AttachResponse *response = message;

    (void)rpc;
    /* Frames before Welcome do not count. */
    if (!stream->is_welcome && response->frame_case != PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME)
        return;
    switch (response->frame_case) {
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME:
        on_welcome(stream, response->welcome);
        return;
    /* Not at Welcome: a stream that always breaks right after it must not be retried at once. */
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL:
        grpc_backoff_reset(&stream->prov->backoff);
        remote__prov_take(stream, response->call);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CANCEL:
        remote__prov_cancel(stream, response->cancel);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_PING:
        grpc_backoff_reset(&stream->prov->backoff);
        answer_ping(stream, response->ping);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ACK:
        remote__prov_acknowledge(stream->prov, response->ack);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ANSWER:
        take_answer_frame(stream->prov, response->answer);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAIN:
        on_gateway_drain(stream);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAINED:
        on_drained_frame(stream);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_OFFERED:
        on_offered(stream, response->offered);
        return;
    default: /* of a later version */
        return;
    }
}

static void on_stream_writable(struct grpc_rpc *rpc, void *user)
{
    (void)rpc;
    remote__prov_pump(user);
}

/* ---- the end of a stream ---- */

static void unlink_stream(struct remote__prov_stream *stream)
{
    struct remote__prov_stream **at = &stream->prov->streams;

    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
}

/* After Welcome, not_found means that the toolset was unregistered, and permission_denied that it
 * has another owner by now. Registering it again at once would overrule that. */
static bool is_eviction(const struct remote__prov_stream *stream, enum wire_error error)
{
    return stream->is_welcome && (error == WIRE_NOT_FOUND || error == WIRE_PERMISSION_DENIED);
}

static void end_evicted(peg_provider *prov, enum wire_error error, const char *message)
{
    peg_error why;

    if (prov->phase != REMOTE__PROV_SERVING) { /* it is ending anyway, and must not come back */
        remote__prov_end(prov, PEG_OK, NULL);
        return;
    }
    peg__fail(&why, PEG_EHOST, "E_PROVIDER_UNREGISTERED",
              "toolset '%.64s' was unregistered at the gateway at %s: %s: %s", prov->config.toolset,
              prov->config.address, wire_error_name(error), message);
    remote__prov_end(prov, PEG_EHOST, &why);
}

/* No stream, and none to come. A draining provider seeks no other gateway while its own drains, as
 * its calls are answered there until that one ends. */
static bool lacks_stream(const peg_provider *prov)
{
    return !remote__prov_current(prov) && !prov->retry.is_armed;
}

static bool is_wanted_back(const peg_provider *prov)
{
    return prov->phase == REMOTE__PROV_SERVING && !prov->is_paused;
}

static void on_stream_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                          const struct grpc_metadata *trailers, void *user)
{
    struct remote__prov_stream *stream = user;
    peg_provider *prov = stream->prov;
    const bool was_current = remote__prov_current(prov) == stream;
    char message[REMOTE__PROV_MESSAGE_BYTES];
    enum wire_error error;
    bool was_evicted;

    (void)trailers;
    stream->rpc = NULL;
    net_loop_disarm(prov->loop, &stream->patience);
    error = remote__prov_refusal(status, message);
    was_evicted = is_eviction(stream, error);
    if (status->code == GRPC_UNAVAILABLE && !prov->is_ending)
        grpc_channel_leave(prov->channel, grpc_rpc_peer(rpc));
    unlink_stream(stream);
    remote__prov_orphan_calls(stream);
    peg__free(stream);
    if (was_current)
        remote__prov_set_attached(prov, false);
    if (prov->is_ending)
        return;
    if (was_current && !prov->was_welcome &&
        (remote__prov_is_permanent(error) || status->code == GRPC_UNIMPLEMENTED)) {
        remote__prov_end_refused(prov, error, message);
    } else if (lacks_stream(prov) && was_evicted) {
        end_evicted(prov, error, message);
    } else if (lacks_stream(prov) && (is_wanted_back(prov) || prov->calls.n)) {
        retry_later(prov, message);
    } else {
        remote__prov_check_end(prov);
    }
}

static const struct grpc_rpc_events stream_events = {
    .on_message = on_frame,
    .on_writable = on_stream_writable,
    .on_end = on_stream_end,
};

static void on_impatience(struct net_timer *timer)
{
    struct remote__prov_stream *stream =
        peg__container_of(timer, struct remote__prov_stream, patience);

    if (stream->rpc)
        grpc_rpc_cancel(stream->rpc);
}

static void arm_patience(struct remote__prov_stream *stream, int64_t ms)
{
    struct net_loop *loop = stream->prov->loop;

    stream->patience.fn = on_impatience;
    net_loop_arm(loop, &stream->patience, net_loop_now_ns(loop) + ms * PEG_NS_PER_MS);
}

static void close_streams(peg_provider *prov)
{
    for (struct remote__prov_stream *stream = prov->streams; stream; stream = stream->next) {
        if (stream->is_closed)
            continue;
        stream->is_closed = true;
        grpc_rpc_half_close(stream->rpc);
        arm_patience(stream, PEG_LIMIT_REMOTE_CLOSE_MS);
    }
}

static bool is_any_open(const peg_provider *prov)
{
    for (const struct remote__prov_stream *s = prov->streams; s; s = s->next) {
        if (!s->is_closed)
            return true;
    }
    return false;
}

static bool may_calls_come(const peg_provider *prov)
{
    for (const struct remote__prov_stream *s = prov->streams; s; s = s->next) {
        if (!s->is_closed && !s->is_last_call_seen)
            return true;
    }
    return false;
}

static void on_quiet(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, quiet));

    if (!prov->calls.n)
        close_streams(prov);
}

/* No call is left. */
static void close_attached(peg_provider *prov)
{
    const struct remote__prov_stream *current = remote__prov_current(prov);

    if (!prov->streams || (current && !current->is_welcome)) {
        if (prov->phase != REMOTE__PROV_SERVING) /* else it is paused, and there is no more to do */
            remote__prov_end(prov, PEG_OK, NULL);
        return;
    }
    if (!is_any_open(prov))
        return;
    if (!may_calls_come(prov)) {
        net_loop_disarm(prov->loop, &prov->quiet);
        close_streams(prov);
        return;
    }
    if (prov->quiet.is_armed)
        return;
    /* Calls that the gateway sent before it received the drain are returned until it sends Drained,
     * which earlier versions do not. */
    prov->quiet.fn = on_quiet;
    net_loop_arm(prov->loop, &prov->quiet,
                 net_loop_now_ns(prov->loop) + PEG_LIMIT_REMOTE_QUIET_MS * PEG_NS_PER_MS);
}

/* A stream that reported the drain gets no more calls, even if the pause is over: another one
 * takes its place, with the calls that run. */
static void pause_attached(peg_provider *prov)
{
    struct remote__prov_stream *stream = remote__prov_current(prov);

    net_loop_disarm(prov->loop, &prov->quiet);
    if (prov->is_paused) {
        send_drain(prov);
        if (!stream && !prov->calls.n)
            net_loop_disarm(prov->loop, &prov->retry);
    } else if (!stream) {
        remote__prov_attach(prov);
    } else if (stream->is_welcome && !stream->is_closed) {
        remote__prov_break(stream);
    }
}

static void drop_streams(peg_provider *prov)
{
    net_loop_disarm(prov->loop, &prov->retry);
    /* Ends its RPCs, and so every stream. */
    prov->channel = grpc_channel_free(prov->channel);
}

/* ---- the beginning of a stream ---- */

static peg_status send_hello(struct remote__prov_stream *stream, peg_error *reterr)
{
    peg_provider *prov = stream->prov;
    struct peg__arena arena = {0};
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;
    peg_status status = remote__prov_fill_registration(prov, &arena, &hello.registration, reterr);

    hello.toolset = peg__unconst(prov->config.toolset);
    hello.incarnation = prov->incarnation;
    hello.credits = prov->config.concurrency + prov->config.max_queued;
    hello.number = ++prov->n_hellos;
    if (!status && remote__prov_list_running(prov, &arena, &hello))
        status = peg__fail_nomem(reterr);
    if (!status)
        status = remote__prov_try_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO, &hello,
                                       reterr);
    peg__arena_free(&arena);
    return status;
}

static peg_status start_stream(struct remote__prov_stream *stream, peg_error *reterr)
{
    peg_provider *prov = stream->prov;
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    struct grpc_rpc_options options = {.metadata = &metadata};
    peg_status status = remote__prov_put_token(prov, &arena, &metadata, reterr);

    if (!status)
        status = pegboard_v1_registry_attach_call(prov->channel, &options, &stream_events, stream,
                                                  &stream->rpc, reterr);
    peg__arena_free(&arena);
    return status;
}

void remote__prov_attach(peg_provider *prov)
{
    struct remote__prov_stream *stream;
    peg_error error;

    if (prov->is_ending || remote__prov_current(prov) || (prov->is_paused && !prov->calls.n))
        return;
    net_loop_disarm(prov->loop, &prov->retry);
    stream = peg__alloc_zero(1, sizeof(*stream));
    if (!stream) {
        retry_later(prov, "out of memory");
        return;
    }
    stream->prov = prov;
    if (start_stream(stream, &error)) {
        peg__free(stream);
        retry_later(prov, error.message);
        return;
    }
    stream->next = prov->streams;
    prov->streams = stream;
    arm_patience(stream, PEG_LIMIT_REMOTE_WELCOME_MS);
    /* A failure ends the stream, and that leads to the next try. */
    if (send_hello(stream, &error))
        remote__prov_break(stream);
}

const struct remote__prov_transport remote__prov_attached = {
    .begin = remote__prov_attach,
    .offer = offer_tools,
    .drain = send_drain,
    .close = close_attached,
    .pause = pause_attached,
    .drop = drop_streams,
    .finish = remote__prov_finish_attached,
    .take_delta = remote__prov_queue_delta,
};
