/* SPDX-License-Identifier: Apache-2.0 */

/* A call for the program that makes it. What the program does wrong fails before the call
 * starts. */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/client/internal.h"

/* ---- starting ----------------------------------------------------------------------------- */

static void on_deadline(struct net_timer *timer)
{
    struct grpc_rpc *rpc = peg__container_of(timer, struct grpc_rpc, timer);

    grpc__rpc_fail(rpc, GRPC_DEADLINE_EXCEEDED,
                   rpc->state == GRPC__RPC_WAITING
                       ? "the deadline has passed while the call waited for a connection to %s"
                       : "the deadline has passed before %s answered",
                   rpc->channel->label);
}

static void on_parent_end(struct grpc_end_hook *hook)
{
    struct grpc_rpc *rpc = peg__container_of(hook, struct grpc_rpc, hook);

    grpc__rpc_fail(rpc, GRPC_CANCELLED, "the call that made this one has ended");
}

static peg_status take_metadata(struct grpc_rpc *rpc, const struct grpc_metadata *metadata,
                                peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; metadata && !status && i < metadata->n; i++)
        status = grpc_metadata_add(&rpc->metadata, &rpc->arena, metadata->entries[i].key,
                                   metadata->entries[i].value, reterr);
    return status;
}

static void set_deadline(struct grpc_rpc *rpc, const struct grpc_rpc_options *options)
{
    struct net_loop *loop = rpc->channel->loop;

    if (options->timeout_ms > 0)
        rpc->deadline_ns = peg__clock_after_ms(net_loop_now_ns(loop), options->timeout_ms);
    if (options->parent && grpc_call_deadline_ns(options->parent) < rpc->deadline_ns)
        rpc->deadline_ns = grpc_call_deadline_ns(options->parent);
    rpc->timer.fn = on_deadline;
    if (rpc->deadline_ns != NET_NEVER)
        net_loop_arm(loop, &rpc->timer, rpc->deadline_ns);
}

static peg_status check_start(const struct grpc_channel *channel, const struct grpc_method *method,
                              const struct grpc_rpc_options *options, peg_error *reterr)
{
    if (channel->is_ending)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "the channel is being freed: make no more calls on it");
    if (!method || !method->path || method->path[0] != '/')
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                         "a method has a path such as /package.Service/Method");
    if (options->timeout_ms < 0)
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                         "timeout_ms is %lld: use 0 for none, or a time",
                         (long long)options->timeout_ms);
    return PEG_OK;
}

static peg_status make_rpc(struct grpc_channel *channel, const struct grpc_method *method,
                           const struct grpc_rpc_options *options, struct grpc_rpc **ret_rpc,
                           peg_error *reterr)
{
    struct grpc_rpc *rpc;
    peg_status status = check_start(channel, method, options, reterr);

    if (status)
        return status;
    rpc = grpc__rpc_new(channel);
    if (!rpc)
        return peg__fail_nomem(reterr);
    rpc->method = method;
    rpc->waits_for_ready = options->waits_for_ready;
    rpc->uses_gzip = options->uses_gzip;
    rpc->max_message = options->max_message_bytes ? options->max_message_bytes
                                                  : channel->options.max_message_bytes;
    grpc__rpc_ready_stream(rpc);
    status = take_metadata(rpc, options->metadata, reterr);
    if (status) {
        grpc__rpc_undo(rpc);
        return status;
    }
    *ret_rpc = rpc;
    return PEG_OK;
}

/* From here on it ends by on_end. */
static void launch(struct grpc_rpc *rpc, const struct grpc_rpc_options *options,
                   const struct grpc_rpc_events *events, void *user)
{
    struct grpc_channel *channel = rpc->channel;

    rpc->events = *events;
    rpc->user = user;
    set_deadline(rpc, options);
    if (options->parent) {
        rpc->hook.fn = on_parent_end;
        if (grpc_call_has_ended(options->parent))
            on_parent_end(&rpc->hook);
        else
            grpc_call_add_hook(options->parent, &rpc->hook);
    }
    while (rpc->state == GRPC__RPC_NEW && rpc->n_started < channel->n_interceptors) {
        const struct grpc_client_interceptor *interceptor =
            &channel->interceptors[rpc->n_started++];

        if (interceptor->on_start)
            interceptor->on_start(rpc, interceptor->user);
    }
    if (rpc->state == GRPC__RPC_NEW)
        grpc__channel_send(channel, rpc);
}

/* The request may be NULL: it is then sent, and half closed, by the caller. */
static peg_status send_request(struct grpc_rpc *rpc, const void *request, peg_error *reterr)
{
    if (!request)
        return PEG_OK;
    if (rpc->method->input)
        return grpc_rpc_send_message(rpc, request, reterr);
    return grpc_rpc_send(rpc, *(const peg_str *)request, reterr);
}

// NOLINTNEXTLINE(readability-function-size): where, what and how, events, and what comes back
peg_status grpc_rpc_unary(struct grpc_channel *channel, const struct grpc_method *method,
                          const void *request, const struct grpc_rpc_options *options,
                          const struct grpc_rpc_events *events, void *user,
                          struct grpc_rpc **ret_rpc, peg_error *reterr)
{
    static const struct grpc_rpc_options no_options;
    const struct grpc_rpc_options *how = options ? options : &no_options;
    struct grpc_rpc *rpc = NULL;
    peg_status status = make_rpc(channel, method, how, &rpc, reterr);

    if (!rpc)
        return status;
    status = send_request(rpc, request, reterr);
    if (status) {
        grpc__rpc_undo(rpc);
        return status;
    }
    rpc->is_half_closed = request != NULL;
    launch(rpc, how, events, user);
    if (ret_rpc)
        *ret_rpc = rpc;
    return PEG_OK;
}

// NOLINTNEXTLINE(readability-function-size): the same parameters without a request
peg_status grpc_rpc_start(struct grpc_channel *channel, const struct grpc_method *method,
                          const struct grpc_rpc_options *options,
                          const struct grpc_rpc_events *events, void *user,
                          struct grpc_rpc **ret_rpc, peg_error *reterr)
{
    return grpc_rpc_unary(channel, method, NULL, options, events, user, ret_rpc, reterr);
}

/* ---- sending ------------------------------------------------------------------------------ */

static bool is_open(const struct grpc_rpc *rpc)
{
    return rpc->state == GRPC__RPC_OPEN && rpc->conn;
}

static peg_status check_sending(struct grpc_rpc *rpc, size_t len, peg_error *reterr)
{
    const size_t waiting = rpc->kept.len;

    if (rpc->state >= GRPC__RPC_ENDED)
        return peg__fail(reterr, PEG_ECANCELED, "E_CALL_ENDED",
                         "the call has ended: on_end tells how");
    if (rpc->is_half_closed)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "nothing can be sent after grpc_rpc_half_close()");
    if (len > UINT32_MAX - GRPC_PREFIX_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_MESSAGE_TOO_LARGE",
                         "a message of gRPC has at most 4 GiB");
    if (is_open(rpc) || waiting == 0 || waiting + len <= rpc->channel->options.max_send_bytes)
        return PEG_OK;
    rpc->stream.was_full = true; /* so that on_writable comes */
    return peg__fail(reterr, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
                     "more than %zu bytes wait to be sent: wait for on_writable",
                     rpc->channel->options.max_send_bytes);
}

/* Is it to be kept as well, or is that at an end? */
static bool goes_on_keeping(struct grpc_rpc *rpc, size_t len)
{
    if (!is_open(rpc))
        return true;
    if (rpc->is_keeping &&
        rpc->kept.len + sizeof(struct grpc__kept) + len <= PEG_LIMIT_GRPC_KEPT_BYTES)
        return true;
    rpc->is_keeping = false;
    peg__buf_clear(&rpc->kept);
    return false;
}

/* Room for a message at the end of what is kept; NULL when out of memory. */
static char *reserve_kept(struct grpc_rpc *rpc, size_t len)
{
    const struct grpc__kept prefix = {.len = (uint32_t)len, .skips_gzip = rpc->skips_gzip};
    char *to = peg__buf_reserve(&rpc->kept, sizeof(prefix) + len);

    if (!to) {
        rpc->kept.status = PEG_OK;
        return NULL;
    }
    memcpy(to, &prefix, sizeof(prefix));
    return to + sizeof(prefix);
}

/* What was just put there: on the wire, if it is open. */
static peg_status send_bytes_or_keep(struct grpc_rpc *rpc, const char *bytes, size_t len,
                                     peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (is_open(rpc))
        status = grpc_stream_send(&rpc->stream, peg__strn(bytes, len), reterr);
    if (!status && (rpc->is_keeping || !is_open(rpc)))
        rpc->kept.len += sizeof(struct grpc__kept) + len;
    return status;
}

peg_status grpc_rpc_send(struct grpc_rpc *rpc, peg_str message, peg_error *reterr)
{
    peg_status status = check_sending(rpc, message.len, reterr);
    char *to;

    if (status)
        return status;
    if (!goes_on_keeping(rpc, message.len))
        return grpc_stream_send(&rpc->stream, message, reterr);
    to = reserve_kept(rpc, message.len);
    if (!to)
        return peg__fail_nomem(reterr);
    if (message.len > 0)
        memcpy(to, message.ptr, message.len);
    return send_bytes_or_keep(rpc, to, message.len, reterr);
}

peg_status grpc_rpc_send_message(struct grpc_rpc *rpc, const struct ProtobufCMessage *message,
                                 peg_error *reterr)
{
    const size_t len = grpc_message_packed_size(message);
    peg_status status = check_sending(rpc, len, reterr);
    peg_error error;
    uint8_t *to;

    if (status)
        return status;
    /* gzip needs the message in one piece first: `kept` has the to. */
    if (goes_on_keeping(rpc, len) || rpc->uses_gzip) {
        to = (uint8_t *)reserve_kept(rpc, len);
        if (!to)
            return peg__fail_nomem(reterr);
        grpc_message_pack(message, to);
        return send_bytes_or_keep(rpc, (const char *)to, len, reterr);
    }
    to = grpc_stream_reserve(&rpc->stream, len, &error);
    if (!to) {
        if (reterr)
            *reterr = error;
        return error.status;
    }
    grpc_message_pack(message, to);
    grpc_stream_commit(&rpc->stream, len);
    return PEG_OK;
}

bool grpc_rpc_is_writable(const struct grpc_rpc *rpc)
{
    if (rpc->state >= GRPC__RPC_ENDED || rpc->is_half_closed)
        return false;
    return is_open(rpc) ? grpc_stream_is_writable(&rpc->stream) : rpc->kept.len <= GRPC_HIGH_MARK;
}

void grpc_rpc_skip_gzip(struct grpc_rpc *rpc, bool skips)
{
    rpc->skips_gzip = skips;
    rpc->stream.skips_gzip = skips;
}

bool grpc_rpc_was_compressed(const struct grpc_rpc *rpc)
{
    return grpc_reader_was_compressed(&rpc->stream.reader);
}

void grpc_rpc_half_close(struct grpc_rpc *rpc)
{
    peg_error error;

    if (rpc->is_half_closed || rpc->state >= GRPC__RPC_ENDED)
        return;
    rpc->is_half_closed = true;
    if (is_open(rpc) && grpc_stream_end(&rpc->stream, NULL, &error))
        grpc__rpc_fail(rpc, GRPC_INTERNAL, "%s", error.message);
}

/* ---- the rest ----------------------------------------------------------------------------- */

void grpc_rpc_cancel(struct grpc_rpc *rpc)
{
    grpc__rpc_fail(rpc, GRPC_CANCELLED, "the call was canceled by the client");
}

void grpc_rpc_pause(struct grpc_rpc *rpc)
{
    rpc->is_paused = true;
    grpc_stream_pause(&rpc->stream);
}

void grpc_rpc_resume(struct grpc_rpc *rpc)
{
    rpc->is_paused = false;
    grpc__rpc_resume(rpc);
}

const struct grpc_method *grpc_rpc_method(const struct grpc_rpc *rpc)
{
    return rpc->method;
}

struct peg__arena *grpc_rpc_arena(struct grpc_rpc *rpc)
{
    return &rpc->arena;
}

const char *grpc_rpc_peer(const struct grpc_rpc *rpc)
{
    return rpc->peer;
}

bool grpc_rpc_was_sent(const struct grpc_rpc *rpc)
{
    return rpc->was_sent || (rpc->conn && rpc->stream.has_left);
}

peg_status grpc_rpc_add_metadata(struct grpc_rpc *rpc, peg_str key, peg_str value,
                                 peg_error *reterr)
{
    if (rpc->state != GRPC__RPC_NEW)
        return peg__fail(reterr, PEG_ESTATE, "E_GRPC_STATE",
                         "metadata can be added in on_start of an interceptor only");
    return grpc_metadata_add(&rpc->metadata, &rpc->arena, key, value, reterr);
}
