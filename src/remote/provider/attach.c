/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stream to a gateway: Hello, Welcome, then frames both ways. When it breaks, another one is
 * made after a while, which lists what the provider still has. A gateway that drains is left for
 * another one, or for the one that follows it at its address, and what came through it is still
 * answered through it. All of it on the loop.
 */

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"
#include "wire/error.h"
#include "json/json.h"

struct remote__prov_stream *remote__prov_current(const peg_provider *prov)
{
    struct remote__prov_stream *newest = prov->streams;

    return newest && !newest->is_leaving ? newest : NULL;
}

static void note_attached(peg_provider *prov, bool is_attached)
{
    pthread_mutex_lock(&prov->lock);
    prov->state.is_attached = is_attached;
    prov->state.n_attached += is_attached;
    pthread_mutex_unlock(&prov->lock);
}

void remote__prov_send(struct remote__prov_stream *stream, const Pegboard__V1__AttachRequest *frame)
{
    if (stream->is_broken || stream->is_closed || !stream->rpc)
        return;
    if (pegboard_v1_registry_attach_say(stream->rpc, frame, NULL)) {
        stream->is_broken = true;
        grpc_rpc_cancel(stream->rpc);
    }
}

/* ---- waiting for another try -------------------------------------------------------------------
 */

static void on_retry(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, retry));

    /* The pause is over: that the channel would wait longer must not make it two of them. */
    grpc_channel_connect(prov->channel);
    remote__prov_attach(prov);
}

/* Who has calls has to be back before its lease is over. With the jitter it stays below a quarter.
 */
static int64_t longest_pause_ms(const peg_provider *prov)
{
    const int64_t usual_ms = prov->config.max_backoff_ms;
    const int64_t leased_ms = prov->lease_ms / 5;

    return prov->calls.n && leased_ms > 0 && leased_ms < usual_ms ? leased_ms : usual_ms;
}

static void try_again(peg_provider *prov, const char *why)
{
    const int64_t ms = grpc_backoff_take_below_ms(&prov->backoff, longest_pause_ms(prov));

    if (prov->phase == REMOTE__PROV_ENDED || prov->is_ending || net_loop_is_ending(prov->loop))
        return;
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_LOST,
                                                    .address = prov->peer,
                                                    .message = why,
                                                    .retry_ms = ms});
    prov->retry.fn = on_retry;
    net_loop_arm(prov->loop, &prov->retry, net_loop_now_ns(prov->loop) + ms * PEG_NS_PER_MS);
}

/* ---- frames that come --------------------------------------------------------------------------
 */

static void answer_ping(struct remote__prov_stream *stream, const Pegboard__V1__Ping *ping)
{
    Pegboard__V1__ProviderPong pong = PEGBOARD__V1__PROVIDER_PONG__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    pong.ping_id = ping->ping_id;
    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_PONG;
    request.pong = &pong;
    remote__prov_send(stream, &request);
}

static void say_drain_on(struct remote__prov_stream *stream)
{
    Pegboard__V1__ProviderDrain drain = PEGBOARD__V1__PROVIDER_DRAIN__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_DRAIN;
    request.drain = &drain;
    remote__prov_send(stream, &request);
}

void remote__prov_send_drain(peg_provider *prov)
{
    struct remote__prov_stream *stream = remote__prov_current(prov);

    if (stream && stream->is_welcome)
        say_drain_on(stream);
}

static void on_welcome(struct remote__prov_stream *stream, const Pegboard__V1__Welcome *welcome)
{
    peg_provider *prov = stream->prov;

    if (stream->is_welcome)
        return;
    net_loop_disarm(prov->loop, &stream->patience);
    stream->is_welcome = true;
    prov->was_welcome = true;
    prov->lease_ms = welcome->lease_ms;
    snprintf(prov->peer, sizeof(prov->peer), "%s", grpc_rpc_peer(stream->rpc));
    note_attached(prov, true);
    remote__prov_notify(
        prov, &(peg_provider_event){.kind = PEG_PROVIDER_ATTACHED, .address = prov->peer});
    if (prov->phase != REMOTE__PROV_SERVING)
        say_drain_on(stream);
    remote__prov_adopt_calls(stream);
    if (stream->has_old_tools)
        remote__prov_offer(prov);
    remote__prov_check_end(prov);
}

/* A stream that breaks as soon as it is welcome must not be made again at once for ever. */
static void note_life(peg_provider *prov)
{
    grpc_backoff_reset(&prov->backoff);
}

static void on_gateway_drain(struct remote__prov_stream *stream)
{
    peg_provider *prov = stream->prov;

    if (stream->is_leaving)
        return;
    stream->is_leaving = true;
    stream->is_last_call_seen = true;
    note_attached(prov, false);
    remote__prov_notify(
        prov, &(peg_provider_event){.kind = PEG_PROVIDER_GATEWAY_DRAINS, .address = prov->peer});
    if (prov->phase == REMOTE__PROV_SERVING)
        remote__prov_attach(prov);
    else
        remote__prov_check_end(prov);
}

static void on_drained(struct remote__prov_stream *stream)
{
    stream->is_last_call_seen = true;
    remote__prov_check_end(stream->prov);
}

static void on_frame(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct remote__prov_stream *stream = user;
    const Pegboard__V1__AttachResponse *response = message;

    (void)rpc;
    /* Only what a gateway says after its Welcome counts. */
    if (!stream->is_welcome && response->frame_case != PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME)
        return;
    switch (response->frame_case) {
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME:
        on_welcome(stream, response->welcome);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL:
        note_life(stream->prov);
        remote__prov_take(stream, response->call);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CANCEL:
        remote__prov_cancel(stream, response->cancel);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_PING:
        note_life(stream->prov);
        answer_ping(stream, response->ping);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ACK:
        remote__prov_acknowledge(stream->prov, response->ack);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAIN:
        on_gateway_drain(stream);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAINED:
        on_drained(stream);
        return;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_OFFERED:
        remote__prov_offered(stream, response->offered);
        return;
    default: /* of a later version */
        return;
    }
}

static void on_writable(struct grpc_rpc *rpc, void *user)
{
    (void)rpc;
    remote__prov_pump(user);
}

/* ---- its end -----------------------------------------------------------------------------------
 */

static void unlink_stream(struct remote__prov_stream *stream)
{
    struct remote__prov_stream **at = &stream->prov->streams;

    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
}

enum { WORDS_BYTES = 256 };

/* What a status says, cut at a character. */
static void copy_words(const struct grpc_status *status, char ret_words[WORDS_BYTES])
{
    const peg_str all = status->message;
    size_t n = all.len;

    if (n >= WORDS_BYTES)
        n = peg__utf8_cut(all.ptr, WORDS_BYTES - 1);
    if (n)
        memcpy(ret_words, all.ptr, n);
    ret_words[n] = '\0';
    if (!n)
        snprintf(ret_words, WORDS_BYTES, "%s", grpc_code_name(status->code));
}

/* Will the same question get the same answer? */
static bool is_refusal(enum wire_error error)
{
    switch (error) {
    case WIRE_VALIDATION:
    case WIRE_MISSING_FIELD:
    case WIRE_INVALID_LENGTH:
    case WIRE_INVALID_PATTERN:
    case WIRE_INVALID_FORMAT:
    case WIRE_INVALID_RANGE:
    case WIRE_PERMISSION_DENIED:
    case WIRE_UNAUTHENTICATED:
    case WIRE_CONFLICT:
    case WIRE_LIMIT:
        return true;
    default:
        return false;
    }
}

/* Once it was welcome, not_found means that somebody has unregistered the toolset, and
 * permission_denied that somebody else has it by now. To register it again at once would be to
 * overrule whoever did that. */
static bool is_dismissal(const struct remote__prov_stream *stream, enum wire_error error)
{
    return stream->is_welcome && (error == WIRE_NOT_FOUND || error == WIRE_PERMISSION_DENIED);
}

static void end_refused(peg_provider *prov, enum wire_error error, const char *words)
{
    peg_error why;

    peg__fail(&why, PEG_EHOST, "E_PROVIDER_REFUSED",
              "the gateway at %s refused the toolset: %s: %s", prov->config.address,
              wire_error_name(error), words);
    remote__prov_end(prov, PEG_EHOST, &why);
}

static void end_dismissed(peg_provider *prov, enum wire_error error, const char *words)
{
    peg_error why;

    if (prov->phase != REMOTE__PROV_SERVING) { /* it is going anyway, and must not come back */
        remote__prov_end(prov, PEG_OK, NULL);
        return;
    }
    peg__fail(&why, PEG_EHOST, "E_PROVIDER_UNREGISTERED",
              "toolset '%.64s' was unregistered at the gateway at %s: %s: %s", prov->config.toolset,
              prov->config.address, wire_error_name(error), words);
    remote__prov_end(prov, PEG_EHOST, &why);
}

/* Is there none, and none to come? One that drains looks for no other when its gateway drains too,
 * as what it has is answered there: until that one goes. */
static bool lacks_stream(const peg_provider *prov)
{
    return !remote__prov_current(prov) && !prov->retry.is_armed;
}

static void on_stream_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                          const struct grpc_metadata *trailers, void *user)
{
    struct remote__prov_stream *stream = user;
    peg_provider *prov = stream->prov;
    const bool was_current = remote__prov_current(prov) == stream;
    struct peg__arena arena = {0};
    peg_str name = {NULL, 0};
    char words[WORDS_BYTES];
    enum wire_error error;
    bool was_dismissed;

    (void)trailers;
    (void)rpc;
    stream->rpc = NULL;
    net_loop_disarm(prov->loop, &stream->patience);
    error = wire_error_from_status(status, &arena, &name);
    peg__arena_free(&arena);
    copy_words(status, words);
    was_dismissed = is_dismissal(stream, error);
    unlink_stream(stream);
    remote__prov_orphan_calls(stream);
    peg__free(stream);
    if (was_current)
        note_attached(prov, false);
    if (prov->is_ending)
        return;
    if (was_current && !prov->was_welcome &&
        (is_refusal(error) || status->code == GRPC_UNIMPLEMENTED)) {
        end_refused(prov, error, words);
    } else if (lacks_stream(prov) && was_dismissed) {
        end_dismissed(prov, error, words);
    } else if (lacks_stream(prov) && (prov->phase == REMOTE__PROV_SERVING || prov->calls.n)) {
        try_again(prov, words);
    } else {
        remote__prov_check_end(prov);
    }
}

static const struct grpc_rpc_events stream_events = {
    .on_message = on_frame,
    .on_writable = on_writable,
    .on_end = on_stream_end,
};

static void on_impatience(struct net_timer *timer)
{
    struct remote__prov_stream *stream =
        (struct remote__prov_stream *)((char *)timer -
                                       offsetof(struct remote__prov_stream, patience));

    if (stream->rpc)
        grpc_rpc_cancel(stream->rpc);
}

static void be_patient(struct remote__prov_stream *stream, int64_t ms)
{
    struct net_loop *loop = stream->prov->loop;

    stream->patience.fn = on_impatience;
    net_loop_arm(loop, &stream->patience, net_loop_now_ns(loop) + ms * PEG_NS_PER_MS);
}

void remote__prov_close_streams(peg_provider *prov)
{
    for (struct remote__prov_stream *stream = prov->streams; stream; stream = stream->next) {
        if (stream->is_closed)
            continue;
        stream->is_closed = true;
        grpc_rpc_half_close(stream->rpc);
        be_patient(stream, PEG_LIMIT_REMOTE_CLOSE_MS);
    }
}

void remote__prov_drop_streams(peg_provider *prov)
{
    net_loop_disarm(prov->loop, &prov->retry);
    /* Ends every call of it, and so every stream. */
    prov->channel = grpc_channel_free(prov->channel);
}

/* ---- its beginning -----------------------------------------------------------------------------
 */

static peg_status say_hello(struct remote__prov_stream *stream, peg_error *reterr)
{
    peg_provider *prov = stream->prov;
    struct peg__arena arena = {0};
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    peg_status status = remote__prov_registration(prov, &arena, &hello.registration, reterr);

    hello.toolset = peg__unconst(prov->config.toolset);
    hello.incarnation = prov->incarnation;
    hello.credits = prov->config.concurrency + prov->config.max_queued;
    hello.number = ++prov->n_hellos;
    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO;
    request.hello = &hello;
    if (!status && remote__prov_list_running(prov, &arena, &hello))
        status = peg__fail_nomem(reterr);
    if (!status)
        status = pegboard_v1_registry_attach_say(stream->rpc, &request, reterr);
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

    if (prov->is_ending || remote__prov_current(prov))
        return;
    net_loop_disarm(prov->loop, &prov->retry);
    stream = peg__alloc_zero(1, sizeof(*stream));
    if (!stream) {
        try_again(prov, "out of memory");
        return;
    }
    stream->prov = prov;
    if (start_stream(stream, &error)) {
        peg__free(stream);
        try_again(prov, error.message);
        return;
    }
    stream->next = prov->streams;
    prov->streams = stream;
    be_patient(stream, PEG_LIMIT_REMOTE_WELCOME_MS);
    /* What cannot be said ends the stream, and that leads to the next try. */
    if (say_hello(stream, &error)) {
        stream->is_broken = true;
        grpc_rpc_cancel(stream->rpc);
    }
}
