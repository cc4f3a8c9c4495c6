/* SPDX-License-Identifier: Apache-2.0 */

/* A channel: its options, its beginning and its end. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/client/internal.h"

#define OUR_AGENT "grpc-c-pegboard/" PEG_VERSION

enum { PORT_WITH_TLS = 443, PORT_WITHOUT = 80 };

/* ---- options ------------------------------------------------------------------------------ */

/* What goes into a header as it is. */
static bool is_header_text(const char *text)
{
    for (; text && *text; text++) {
        if (*text < ' ' || *text > '~')
            return false;
    }
    return true;
}

static peg_status check_times(const struct grpc_channel_options *options, peg_error *reterr)
{
    const int64_t times[] = {
        options->connect_ms,   options->backoff_ms,           options->max_backoff_ms,
        options->keepalive_ms, options->keepalive_timeout_ms, options->resolve_again_ms,
        options->idle_ms,
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (times[i] < 0)
            return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                             "a time of a channel is %lld ms: use 0 for the default, or more",
                             (long long)times[i]);
    }
    return PEG_OK;
}

static peg_status check_channel_options(const struct grpc_channel_options *options,
                                        peg_error *reterr)
{
    const peg_status status = check_times(options, reterr);

    if (status)
        return status;
    if (!is_header_text(options->authority) || !is_header_text(options->user_agent))
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                         "authority and user_agent are printable ASCII: leave the rest out");
    if (options->stream_window > INT32_MAX || options->session_window > INT32_MAX)
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                         "a window of HTTP/2 has at most 2,147,483,647 bytes: use less");
    if (options->n_connections > PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS)
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                         "%u connections to each address are too many: use at most %d",
                         options->n_connections, PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS);
    return PEG_OK;
}

static void fill_channel_options(struct grpc_channel_options *o)
{
    o->max_message_bytes = PEG__OR_DEFAULT(o->max_message_bytes, PEG_LIMIT_GRPC_MESSAGE_BYTES);
    o->max_header_bytes = PEG__OR_DEFAULT(o->max_header_bytes, PEG_LIMIT_GRPC_HEADER_BYTES);
    o->stream_window = PEG__OR_DEFAULT(o->stream_window, PEG_LIMIT_GRPC_STREAM_WINDOW);
    o->session_window = PEG__OR_DEFAULT(o->session_window, PEG_LIMIT_GRPC_SESSION_WINDOW);
    o->max_held_bytes = PEG__OR_DEFAULT(o->max_held_bytes, PEG_LIMIT_GRPC_HELD_BYTES);
    o->max_send_bytes = PEG__OR_DEFAULT(o->max_send_bytes, PEG_LIMIT_GRPC_SEND_BYTES);
    o->max_waiting = PEG__OR_DEFAULT(o->max_waiting, PEG_LIMIT_GRPC_WAITING_CALLS);
    o->n_connections = o->prefers_one ? 1 : PEG__OR_DEFAULT(o->n_connections, 1);
    o->connect_ms = PEG__OR_DEFAULT(o->connect_ms, PEG_LIMIT_NET_OPEN_MS);
    o->backoff_ms = PEG__OR_DEFAULT(o->backoff_ms, PEG_LIMIT_GRPC_BACKOFF_MS);
    o->max_backoff_ms = PEG__OR_DEFAULT(o->max_backoff_ms, PEG_LIMIT_GRPC_BACKOFF_MAX_MS);
    o->keepalive_timeout_ms =
        PEG__OR_DEFAULT(o->keepalive_timeout_ms, PEG_LIMIT_GRPC_KEEPALIVE_TIMEOUT_MS);
    o->resolve_again_ms = PEG__OR_DEFAULT(o->resolve_again_ms, PEG_LIMIT_GRPC_RESOLVE_MS);
    o->idle_ms = PEG__OR_DEFAULT(o->idle_ms, PEG_LIMIT_GRPC_CHANNEL_IDLE_MS);
}

static void set_conn_options(struct grpc_channel *channel)
{
    const struct grpc_channel_options *options = &channel->options;

    channel->conn_options = (struct grpc_client_conn_options){
        .session = {.is_client = true,
                    .max_header_bytes = options->max_header_bytes,
                    .stream_window = options->stream_window,
                    .session_window = options->session_window,
                    .max_held = options->max_held_bytes,
                    .reset_burst = PEG_LIMIT_GRPC_RESET_BURST,
                    .reset_per_s = PEG_LIMIT_GRPC_RESETS},
        .stream = {.tls = options->tls, .open_ms = options->connect_ms},
        .keepalive_ms = options->keepalive_ms,
        .keepalive_timeout_ms = options->keepalive_timeout_ms,
    };
}

/* ---- making it ---------------------------------------------------------------------------- */

static char *copy_option(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *ours = peg__alloc(size);

    return ours ? memcpy(ours, text, size) : NULL;
}

static char *make_agent(const char *before)
{
    const size_t size = (before ? strlen(before) + 1 : 0) + sizeof(OUR_AGENT);
    char *agent = peg__alloc(size);

    if (agent)
        snprintf(agent, size, "%s%s" OUR_AGENT, before ? before : "", before ? " " : "");
    return agent;
}

/* "10.0.0.1:9090", or with several "10.0.0.1:9090 or 2 others". */
static char *make_label(const struct grpc_channel *channel)
{
    const char *given = channel->options.authority;
    const char *first = given ? given : channel->target.entries[0].authority;
    const size_t n_others = given ? 0 : channel->target.n - 1;
    const size_t size = strlen(first) + sizeof(" or 1234567890 others");
    char *label = peg__alloc(size);

    if (label && n_others > 0)
        snprintf(label, size, "%s or %u other%s", first, (unsigned)n_others,
                 n_others == 1 ? "" : "s");
    else if (label)
        snprintf(label, size, "%s", first);
    return label;
}

static bool make_strings(struct grpc_channel *channel)
{
    const struct grpc_channel_options *options = &channel->options;

    if (options->authority)
        channel->authority = copy_option(options->authority);
    if (options->tls_host)
        channel->tls_host = copy_option(options->tls_host);
    channel->label = make_label(channel);
    channel->user_agent = make_agent(options->user_agent);
    return !options->authority == !channel->authority && !options->tls_host == !channel->tls_host &&
           channel->label && channel->user_agent;
}

static bool take_interceptors(struct grpc_channel *channel)
{
    const size_t n = channel->options.n_interceptors;

    if (n == 0)
        return true;
    channel->interceptors = peg__alloc_zero(n, sizeof(*channel->interceptors));
    if (!channel->interceptors)
        return false;
    memcpy(channel->interceptors, channel->options.interceptors,
           n * sizeof(*channel->interceptors));
    channel->n_interceptors = n;
    return true;
}

static void report_state(struct grpc_channel *channel)
{
    const enum grpc_channel_state state = grpc_channel_state(channel);

    if (state == channel->reported_state)
        return;
    channel->reported_state = state;
    if (channel->on_state)
        channel->on_state(channel->on_state_user, state); /* which may free it */
}

static void on_channel_later(struct net_later *later)
{
    struct grpc_channel *channel = peg__container_of(later, struct grpc_channel, later);

    grpc__channel_report_ended(channel);
    if (channel->ended.n > 0)
        net_loop_later(channel->loop, &channel->later);
    if (channel->waiting.n > 0 || channel->is_moving) {
        grpc__slots_wake(channel);
        if (channel->is_failing && channel->pick.n == 0)
            grpc__channel_fail_waiting(channel);
        grpc__channel_open_waiting(channel);
    }
    report_state(channel);
}

static peg_status set_up_channel(struct grpc_channel *channel, peg_str target, peg_error *reterr)
{
    struct grpc_channel_options *options = &channel->options;
    peg_status status = grpc_target_parse(target, options->tls ? PORT_WITH_TLS : PORT_WITHOUT,
                                          &channel->target, reterr);

    if (status)
        return status;
    fill_channel_options(options);
    if (!make_strings(channel) || !take_interceptors(channel))
        return peg__fail_nomem(reterr);
    set_conn_options(channel);
    return grpc__slots_init(channel, reterr);
}

peg_status grpc_channel_new(struct net_loop *loop, peg_str target,
                            const struct grpc_channel_options *options,
                            struct grpc_channel **ret_channel, peg_error *reterr)
{
    static const struct grpc_channel_options defaults;
    struct grpc_channel *channel;
    peg_status status;

    if (!options)
        options = &defaults;
    status = check_channel_options(options, reterr);
    if (status)
        return status;
    channel = peg__alloc_zero(1, sizeof(*channel));
    if (!channel)
        return peg__fail_nomem(reterr);
    channel->loop = loop;
    channel->options = *options;
    channel->later.fn = on_channel_later;
    channel->last_call_ns = net_loop_now_ns(loop);
    if (options->tls)
        channel->options.tls = net_tls_config_ref(options->tls);
    status = set_up_channel(channel, target, reterr);
    if (status) {
        grpc_channel_free(channel);
        return status;
    }
    *ret_channel = channel;
    return PEG_OK;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void end_calls(struct grpc_channel *channel)
{
    for (struct grpc_rpc *rpc = channel->calls; rpc; rpc = rpc->all.next)
        grpc__rpc_fail(rpc, GRPC_CANCELLED, "the channel was closed by the client");
    while (channel->ended.n > 0)
        grpc__channel_report_ended(channel);
    /* Those that are still referenced. */
    for (struct grpc_rpc *rpc = channel->calls; rpc; rpc = rpc->all.next)
        rpc->channel = NULL;
}

struct grpc_channel *grpc_channel_free(struct grpc_channel *channel)
{
    if (!channel)
        return NULL;
    channel->is_ending = true;
    end_calls(channel);
    grpc__slots_free(channel);
    net_loop_not_later(channel->loop, &channel->later);
    grpc__channel_free_spare(channel);
    grpc_target_free(&channel->target);
    if (channel->options.tls)
        net_tls_config_unref(channel->options.tls);
    peg__free(channel->interceptors);
    peg__free(channel->authority);
    peg__free(channel->label);
    peg__free(channel->tls_host);
    peg__free(channel->user_agent);
    peg__free(channel);
    return NULL;
}

/* ---- state -------------------------------------------------------------------------------- */

void grpc_channel_on_state(struct grpc_channel *channel,
                           void (*fn)(void *user, enum grpc_channel_state state), void *user)
{
    channel->on_state = fn;
    channel->on_state_user = user;
}

struct net_loop *grpc_channel_loop(const struct grpc_channel *channel)
{
    return channel->loop;
}

size_t grpc_channel_n_calls(const struct grpc_channel *channel)
{
    return channel->n_calls;
}
