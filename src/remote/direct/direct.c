/* SPDX-License-Identifier: Apache-2.0 */

#include "remote/direct/direct.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/sized.h"

/* ---- the connection for commands ----------------------------------------------------------- */

static void on_commands_ready(void *user)
{
    struct remote__direct *direct = user;

    direct->is_joined = false;
    direct->is_joining = false;
    remote__direct_join(direct);
}

static void on_commands_drained(void *user)
{
    struct remote__direct *direct = user;

    remote__direct_send_commands(&direct->flush);
}

static void on_commands_lost(void *user, const peg_error *error, bool was_ready)
{
    struct remote__direct *direct = user;

    direct->is_joined = false;
    redis_queue_fail(&direct->queue);
    if (was_ready)
        remote__prov_set_attached(direct->prov, false);
    if (!direct->prov->is_ending)
        remote__direct_report_lost(direct, error);
    remote__prov_check_end(direct->prov);
}

static void ignore_push(void *user, const struct resp_value *push)
{
    (void)user;
    (void)push;
}

/* ---- the one that waits for entries -------------------------------------------------------- */

static void on_identified(struct redis_request *request, const struct resp_value *reply)
{
    struct remote__direct *direct = peg__container_of(request, struct remote__direct, identified);

    direct->reader_id = reply && reply->kind == RESP_INTEGER ? reply->integer : 0;
}

static void on_reader_ready(void *user)
{
    struct remote__direct *direct = user;
    const size_t mark = redis_queue_mark(&direct->reader_queue);

    resp_put_command(&direct->reader_queue.out, 2);
    resp_puts(&direct->reader_queue.out, "CLIENT");
    resp_puts(&direct->reader_queue.out, "ID");
    direct->identified.fn = on_identified;
    /* Without it a stop waits for the end of a read. */
    if (redis_queue_add(&direct->reader_queue, mark, &direct->identified) == PEG_OK)
        redis_session_send(direct->reader, &direct->reader_queue);
    remote__direct_read(direct);
}

static void on_reader_drained(void *user)
{
    struct remote__direct *direct = user;

    redis_session_send(direct->reader, &direct->reader_queue);
}

/* The other one has reported it, or will. */
static void on_reader_lost(void *user, const peg_error *error, bool was_ready)
{
    struct remote__direct *direct = user;

    (void)error;
    (void)was_ready;
    direct->reader_id = 0;
    redis_queue_fail(&direct->reader_queue);
    remote__prov_check_end(direct->prov);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static peg_status open_sessions(struct remote__direct *direct, peg_error *reterr)
{
    static const struct redis_session_events commands_events = {.on_ready = on_commands_ready,
                                                                .on_push = ignore_push,
                                                                .on_drained = on_commands_drained,
                                                                .on_lost = on_commands_lost};
    static const struct redis_session_events reader_events = {.on_ready = on_reader_ready,
                                                              .on_push = ignore_push,
                                                              .on_drained = on_reader_drained,
                                                              .on_lost = on_reader_lost};
    struct redis_session_options options = {
        .url = &direct->url, .tls = direct->tls, .client_name = "pegboard-provider"};
    struct net_loop *loop = direct->prov->loop;
    peg_status status =
        redis_session_new(loop, &options, &commands_events, direct, &direct->commands, reterr);

    options.timeout_ms = PEG_LIMIT_DIRECT_BLOCK_MS + PEG_LIMIT_REDIS_TIMEOUT_MS;
    if (!status)
        status = redis_session_new(loop, &options, &reader_events, direct, &direct->reader, reterr);
    return status;
}

static void connect_to_redis(struct remote__direct *direct)
{
    peg_error error;

    if (direct->prov->phase != REMOTE__PROV_SERVING)
        return;
    direct->phase = DIRECT_SERVING;
    if (open_sessions(direct, &error))
        remote__prov_end(direct->prov, error.status, &error);
    else
        remote__direct_start_ticking(direct);
}

/* ---- the transport ------------------------------------------------------------------------- */

static void begin_direct(peg_provider *prov)
{
    remote__direct_register(remote__direct_of(prov));
}

static void offer_direct(peg_provider *prov)
{
    remote__direct_register(remote__direct_of(prov));
}

/* Ends the read that waits, so that what it brings is known. */
static void unblock_reader(struct remote__direct *direct)
{
    char id[24];

    snprintf(id, sizeof(id), "%" PRId64, direct->reader_id);
    if (direct->is_reading && direct->reader_id)
        DIRECT_ASK(direct, &(struct remote__direct_command){0}, peg__str("CLIENT"),
                   peg__str("UNBLOCK"), peg__str(id), peg__str("TIMEOUT"));
}

static void drain_direct(peg_provider *prov)
{
    struct remote__direct *direct = remote__direct_of(prov);

    if (direct->phase == DIRECT_SERVING)
        unblock_reader(direct);
    direct->phase = DIRECT_DRAINING;
}

static void close_direct(peg_provider *prov)
{
    struct remote__direct *direct = remote__direct_of(prov);

    if (direct->phase == DIRECT_LEAVING || direct->is_reading)
        return;
    direct->phase = DIRECT_LEAVING;
    if (direct->is_joined)
        remote__direct_leave(direct);
    else
        remote__prov_end(prov, PEG_OK, NULL);
}

static void drop_direct(peg_provider *prov)
{
    struct remote__direct *direct = remote__direct_of(prov);

    net_loop_disarm(prov->loop, &prov->retry);
    net_loop_disarm(prov->loop, &direct->tick);
    net_loop_not_later(prov->loop, &direct->flush);
    prov->phase = REMOTE__PROV_ENDED;
    direct->is_joined = false;
    direct->commands = redis_session_free(direct->commands);
    direct->reader = redis_session_free(direct->reader);
    redis_queue_fail(&direct->queue);
    redis_queue_fail(&direct->reader_queue);
    prov->channel = grpc_channel_free(prov->channel);
}

static const struct remote__prov_transport direct_transport = {
    .begin = begin_direct,
    .offer = offer_direct,
    .drain = drain_direct,
    .close = close_direct,
    .drop = drop_direct,
    .finish = remote__direct_publish,
    .take_delta = remote__direct_take_delta,
};

/* ---- making it ----------------------------------------------------------------------------- */

static void free_direct(void *state)
{
    struct remote__direct *direct = state;

    redis_queue_free(&direct->queue);
    redis_queue_free(&direct->reader_queue);
    net_tls_config_unref(direct->tls);
    peg__free(direct);
}

static void name_keys(struct remote__direct *direct, peg_str toolset)
{
    const peg_str stream = pulse_request_stream(toolset, direct->stream);
    const peg_str group = peg__str(PULSE_PROVIDERS);

    pulse_stream_key(stream, direct->key);
    pulse_sinks_key(stream, direct->sinks_key);
    pulse_sinks_channel(stream, direct->sinks_channel);
    pulse_keepalive_key(group, direct->keepalive_key);
    pulse_keepalive_channel(group, direct->keepalive_channel);
}

static peg_status check_grace(int64_t grace_ms, peg_error *reterr)
{
    if (!grace_ms ||
        (grace_ms >= PEG_LIMIT_DIRECT_GRACE_MIN_MS && grace_ms <= PEG_LIMIT_DIRECT_GRACE_MAX_MS))
        return PEG_OK;
    peg__fail(reterr, PEG_EINVAL, "E_PROVIDER",
              "grace_ms of a provider: it is 0, or between %d and %d",
              PEG_LIMIT_DIRECT_GRACE_MIN_MS, PEG_LIMIT_DIRECT_GRACE_MAX_MS);
    peg__error_where(reterr, peg__str("/grace_ms"));
    return PEG_EINVAL;
}

static peg_status set_up_direct(struct remote__direct *direct, const peg_provider_streams *streams,
                                peg_error *reterr)
{
    const struct net_tls_options tls = {.ca_file = streams->redis_ca_file, .is_client = true};
    const char *url = streams->redis_url ? streams->redis_url : "localhost:6379";
    peg_status status = check_grace(streams->grace_ms, reterr);

    if (!status)
        status = redis_url_parse(url, streams->redis_password, &direct->url, reterr);
    if (!status && direct->url.is_tls)
        status = net_tls_config_new(&tls, &direct->tls, reterr);
    direct->grace_ms = PEG__OR_DEFAULT(streams->grace_ms, PEG_LIMIT_DIRECT_GRACE_MS);
    direct->emits_results = streams->emits_results;
    return status;
}

static struct remote__direct *new_direct(void)
{
    struct remote__direct *direct = peg__alloc_zero(1, sizeof(*direct));

    if (!direct)
        return NULL;
    redis_queue_init(&direct->queue);
    redis_queue_init(&direct->reader_queue);
    direct->flush.fn = remote__direct_send_commands;
    direct->on_registered = connect_to_redis;
    snprintf(direct->cursor, sizeof(direct->cursor), "0-0");
    return direct;
}

static void adopt_direct(peg_provider *prov, struct remote__direct *direct)
{
    direct->prov = prov;
    prov->transport_state = direct;
    prov->free_state = free_direct;
    /* No gateway's deadline need come with a call: the tool's own time counts, or the default. */
    prov->config.run.settings.timeout_ms = 0;
    name_keys(direct, peg__str(prov->config.toolset));
}

peg_status peg_provider_new_streams(peg_registry *registry, const peg_provider_options *options,
                                    const peg_provider_streams *streams,
                                    peg_provider **ret_provider, peg_error *reterr)
{
    static const peg_provider_streams defaults = {PEG_PROVIDER_STREAMS_INIT};
    PEG__READ_OR_RETURN(streams, PEG_PROVIDER_STREAMS_INIT, reterr);
    struct remote__direct *direct = new_direct();
    peg_provider *prov = NULL;
    peg_status status;

    if (!direct)
        return peg__fail_nomem(reterr);
    status = set_up_direct(direct, streams ? streams : &defaults, reterr);
    if (!status)
        status = remote__prov_new(registry, options, &direct_transport, &prov, reterr);
    if (status) {
        free_direct(direct);
        return status;
    }
    adopt_direct(prov, direct);
    *ret_provider = prov;
    return PEG_OK;
}

peg_status peg_provider_serve_streams(peg_registry *registry, const peg_provider_options *options,
                                      const peg_provider_streams *streams, peg_error *reterr)
{
    peg_provider *prov = NULL;
    const peg_status status = peg_provider_new_streams(registry, options, streams, &prov, reterr);

    return prov ? remote__prov_serve(prov, reterr) : status;
}
