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

struct remote__prov_stream *remote__prov_current(const peg_provider *prov)
{
    struct remote__prov_stream *newest = prov->streams;

    return newest && !newest->is_leaving ? newest : NULL;
}

/* ---- sending ---- */

static void break_stream(struct remote__prov_stream *stream)
{
    stream->is_broken = true;
    grpc_rpc_cancel(stream->rpc);
}

/* `frame` is the message that belongs to `kind`. */
static peg_status send_frame(struct remote__prov_stream *stream,
                             Pegboard__V1__AttachRequest__FrameCase kind, void *frame,
                             peg_error *reterr)
{
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    request.frame_case = kind;
    request.hello = frame; /* a union of pointers */
    return pegboard_v1_registry_attach_say(stream->rpc, &request, reterr);
}

void remote__prov_send(struct remote__prov_stream *stream,
                       Pegboard__V1__AttachRequest__FrameCase kind, void *frame)
{
    if (stream->is_broken || stream->is_closed || !stream->rpc)
        return;
    if (send_frame(stream, kind, frame, NULL))
        break_stream(stream);
}

/* ---- the registry as the gateway's catalog has it ---- */

static bool put_schema(struct peg__arena *arena, const peg_json *schema, ProtobufCBinaryData *ret)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);

    if (!schema)
        return true;
    peg__json_write(schema, PEG_JSON_COMPACT, &out);
    ret->len = out.len;
    ret->data = out.status ? NULL : (uint8_t *)peg__arena_copy(arena, peg__buf_view(&out));
    peg__buf_free(&out);
    return ret->data;
}

static bool put_tool(struct peg__arena *arena, const peg_tool *tool, Pegboard__V1__Tool *frame)
{
    const int64_t timeout_ms = peg_tool_timeout_ms(tool);

    pegboard__v1__tool__init(frame);
    frame->name = peg__arena_copy(arena, peg__str(peg_tool_name(tool)));
    frame->description = peg__arena_copy(arena, peg__str(peg_tool_description(tool)));
    frame->idempotent = peg_tool_is_idempotent(tool) || peg_tool_is_read_only(tool);
    frame->timeout_ms = timeout_ms > 0 ? timeout_ms : 0;
    frame->tags = peg__unconst(peg__arena_copy_list(arena, peg_tool_tags(tool), &frame->n_tags));
    return frame->name && frame->description && frame->tags &&
           put_schema(arena, peg_tool_input_schema(tool), &frame->input_schema) &&
           put_schema(arena, peg_tool_output_schema(tool), &frame->output_schema);
}

static bool put_tool_frames(struct peg__arena *arena, const peg_tool_list *list,
                            Pegboard__V1__RegisterRequest *request)
{
    Pegboard__V1__Tool *frames = peg__arena_alloc(arena, (list->len + 1) * sizeof(*frames));

    request->tools = peg__arena_alloc(arena, (list->len + 1) * sizeof(*request->tools));
    if (!frames || !request->tools)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if (!put_tool(arena, list->items[i], &frames[i]))
            return false;
        request->tools[i] = &frames[i];
    }
    request->n_tools = list->len;
    return true;
}

/* The host's last description of the toolset. */
static const struct remote__prov_about *take_about(peg_provider *prov)
{
    struct remote__prov_about *next;

    pthread_mutex_lock(&prov->lock);
    next = prov->next_about;
    prov->next_about = NULL;
    pthread_mutex_unlock(&prov->lock);
    if (next) {
        remote__prov_about_free(prov->about);
        prov->about = next;
    }
    return prov->about;
}

/* The registry's visible tools; all of it lies in the arena. */
static peg_status fill_registration(peg_provider *prov, struct peg__arena *arena,
                                    Pegboard__V1__RegisterRequest **ret_request, peg_error *reterr)
{
    const struct remote__prov_about *about = take_about(prov);
    Pegboard__V1__RegisterRequest *request = peg__arena_alloc(arena, sizeof(*request));
    peg_tool_list list;
    peg_status status;
    bool is_whole;

    if (!request)
        return peg__fail_nomem(reterr);
    status = peg_registry_visible(prov->registry, &list, reterr);
    if (status)
        return status;
    pegboard__v1__register_request__init(request);
    request->name = peg__unconst(prov->config.toolset);
    request->description = peg__unconst(about->description);
    request->version = peg__unconst(about->version);
    request->tags = peg__unconst(about->tags);
    request->n_tags = about->n_tags;
    request->kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_ATTACHED;
    is_whole = put_tool_frames(arena, &list, request);
    peg_tool_list_free(&list);
    if (!is_whole)
        return peg__fail_nomem(reterr);
    *ret_request = request;
    return PEG_OK;
}

/* ---- changed tools ---- */

static void report_refused_offer(peg_provider *prov, const char *code, const char *message)
{
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFER_REFUSED,
                                                    .address = prov->peer,
                                                    .code = code,
                                                    .message = message});
}

static peg_status send_offer(struct remote__prov_stream *stream, peg_error *reterr)
{
    struct peg__arena arena = {0};
    Pegboard__V1__Offer offer = PEGBOARD__V1__OFFER__INIT;
    peg_status status = fill_registration(stream->prov, &arena, &offer.registration, reterr);

    if (!status)
        status = send_frame(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_OFFER, &offer, reterr);
    peg__arena_free(&arena);
    return status;
}

/* Changes before the Welcome, or before the answer to an Offer, are offered after it. */
void remote__prov_offer(peg_provider *prov)
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
        break_stream(stream);
    else if (status)
        report_refused_offer(prov, error.code, error.message);
}

static void on_offered(struct remote__prov_stream *stream, const Pegboard__V1__Offered *frame)
{
    peg_provider *prov = stream->prov;

    stream->is_offering = false;
    if (frame->error[0])
        report_refused_offer(prov, frame->error, frame->message);
    else
        remote__prov_notify(
            prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFERED, .address = prov->peer});
    if (stream->has_old_tools && stream == remote__prov_current(prov))
        remote__prov_offer(prov);
}

#define TOKEN_CODE "E_PROVIDER"

peg_status remote__prov_check_token(const peg_provider *prov, peg_error *reterr)
{
    struct peg__blob *authorization = NULL;
    const peg_status status =
        prov->config.token_file
            ? remote__token_read(prov->config.token_file, TOKEN_CODE, &authorization, reterr)
            : PEG_OK;

    peg__blob_unref(authorization);
    return status;
}

static peg_status put_token(const peg_provider *prov, struct peg__arena *arena,
                            struct grpc_metadata *metadata, peg_error *reterr)
{
    const struct remote__prov_config *config = &prov->config;
    struct peg__blob *authorization = NULL;
    peg_status status = PEG_OK;

    if (config->token_file)
        status = remote__token_read(config->token_file, TOKEN_CODE, &authorization, reterr);
    else if (config->token)
        status = remote__token_make(peg__str(config->token), "token", TOKEN_CODE, &authorization,
                                    reterr);
    if (!status && authorization)
        status = grpc_metadata_add(metadata, arena, peg__str("authorization"),
                                   peg__blob_str(authorization), reterr);
    peg__blob_unref(authorization);
    return status;
}

static void set_attached(peg_provider *prov, bool is_attached)
{
    pthread_mutex_lock(&prov->lock);
    prov->state.is_attached = is_attached;
    prov->state.n_attached += is_attached;
    pthread_mutex_unlock(&prov->lock);
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

void remote__prov_send_drain(peg_provider *prov)
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
    prov->was_welcome = true;
    prov->lease_ms = welcome->lease_ms;
    snprintf(prov->peer, sizeof(prov->peer), "%s", grpc_rpc_peer(stream->rpc));
    set_attached(prov, true);
    remote__prov_notify(
        prov, &(peg_provider_event){.kind = PEG_PROVIDER_ATTACHED, .address = prov->peer});
    if (prov->phase != REMOTE__PROV_SERVING)
        send_drain_on(stream);
    remote__prov_adopt_calls(stream);
    if (stream->has_old_tools)
        remote__prov_offer(prov);
    remote__prov_check_end(prov);
}

static void on_gateway_drain(struct remote__prov_stream *stream)
{
    peg_provider *prov = stream->prov;

    if (stream->is_leaving)
        return;
    stream->is_leaving = true;
    stream->is_last_call_seen = true;
    set_attached(prov, false);
    remote__prov_notify(
        prov, &(peg_provider_event){.kind = PEG_PROVIDER_GATEWAY_DRAINS, .address = prov->peer});
    if (prov->phase == REMOTE__PROV_SERVING)
        remote__prov_attach(prov);
    else
        remote__prov_check_end(prov);
}

static void on_drained_frame(struct remote__prov_stream *stream)
{
    stream->is_last_call_seen = true;
    remote__prov_check_end(stream->prov);
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

enum { MESSAGE_BYTES = 256 };

/* The status message, cut at a character. */
static void copy_status_message(const struct grpc_status *status, char ret_message[MESSAGE_BYTES])
{
    const peg_str all = status->message;
    size_t n = all.len;

    if (n >= MESSAGE_BYTES)
        n = peg__utf8_cut(all.ptr, MESSAGE_BYTES - 1);
    if (n)
        memcpy(ret_message, all.ptr, n);
    ret_message[n] = '\0';
    if (!n)
        snprintf(ret_message, MESSAGE_BYTES, "%s", grpc_code_name(status->code));
}

/* Would a retry get the same answer? */
static bool is_permanent(enum wire_error error)
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

/* After Welcome, not_found means that the toolset was unregistered, and permission_denied that it
 * has another owner by now. Registering it again at once would overrule that. */
static bool is_eviction(const struct remote__prov_stream *stream, enum wire_error error)
{
    return stream->is_welcome && (error == WIRE_NOT_FOUND || error == WIRE_PERMISSION_DENIED);
}

static void end_refused(peg_provider *prov, enum wire_error error, const char *message)
{
    peg_error why;

    peg__fail(&why, PEG_EHOST, "E_PROVIDER_REFUSED",
              "the gateway at %s refused the toolset: %s: %s", prov->config.address,
              wire_error_name(error), message);
    remote__prov_end(prov, PEG_EHOST, &why);
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

static void on_stream_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                          const struct grpc_metadata *trailers, void *user)
{
    struct remote__prov_stream *stream = user;
    peg_provider *prov = stream->prov;
    const bool was_current = remote__prov_current(prov) == stream;
    struct peg__arena arena = {0};
    peg_str name = {NULL, 0};
    char message[MESSAGE_BYTES];
    enum wire_error error;
    bool was_evicted;

    (void)trailers;
    (void)rpc;
    stream->rpc = NULL;
    net_loop_disarm(prov->loop, &stream->patience);
    error = wire_error_from_status(status, &arena, &name);
    peg__arena_free(&arena);
    copy_status_message(status, message);
    was_evicted = is_eviction(stream, error);
    unlink_stream(stream);
    remote__prov_orphan_calls(stream);
    peg__free(stream);
    if (was_current)
        set_attached(prov, false);
    if (prov->is_ending)
        return;
    if (was_current && !prov->was_welcome &&
        (is_permanent(error) || status->code == GRPC_UNIMPLEMENTED)) {
        end_refused(prov, error, message);
    } else if (lacks_stream(prov) && was_evicted) {
        end_evicted(prov, error, message);
    } else if (lacks_stream(prov) && (prov->phase == REMOTE__PROV_SERVING || prov->calls.n)) {
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

void remote__prov_close_streams(peg_provider *prov)
{
    for (struct remote__prov_stream *stream = prov->streams; stream; stream = stream->next) {
        if (stream->is_closed)
            continue;
        stream->is_closed = true;
        grpc_rpc_half_close(stream->rpc);
        arm_patience(stream, PEG_LIMIT_REMOTE_CLOSE_MS);
    }
}

void remote__prov_drop_streams(peg_provider *prov)
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
    peg_status status = fill_registration(prov, &arena, &hello.registration, reterr);

    hello.toolset = peg__unconst(prov->config.toolset);
    hello.incarnation = prov->incarnation;
    hello.credits = prov->config.concurrency + prov->config.max_queued;
    hello.number = ++prov->n_hellos;
    if (!status && remote__prov_list_running(prov, &arena, &hello))
        status = peg__fail_nomem(reterr);
    if (!status)
        status = send_frame(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO, &hello, reterr);
    peg__arena_free(&arena);
    return status;
}

static peg_status start_stream(struct remote__prov_stream *stream, peg_error *reterr)
{
    peg_provider *prov = stream->prov;
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    struct grpc_rpc_options options = {.metadata = &metadata};
    peg_status status = put_token(prov, &arena, &metadata, reterr);

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
        break_stream(stream);
}
