/* SPDX-License-Identifier: Apache-2.0 */

/* What a direct provider asks of a gateway: any node of the registry answers. */

#include "remote/direct/direct.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

/* ---- Register ------------------------------------------------------------------------------ */

static void on_register_due(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, retry));

    grpc_channel_connect(prov->channel);
    remote__direct_register(remote__direct_of(prov));
}

static void register_later(struct remote__direct *direct, const char *why)
{
    peg_provider *prov = direct->prov;
    const int64_t ms = grpc_backoff_take_ms(&prov->backoff);

    if (prov->phase != REMOTE__PROV_SERVING || prov->is_ending || net_loop_is_ending(prov->loop))
        return;
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_LOST,
                                                    .address = prov->peer,
                                                    .message = why,
                                                    .retry_ms = ms});
    prov->retry.fn = on_register_due;
    net_loop_arm(prov->loop, &prov->retry, net_loop_now_ns(prov->loop) + ms * PEG_NS_PER_MS);
}

static void accept_registration(struct remote__direct *direct)
{
    peg_provider *prov = direct->prov;
    const bool is_first = !direct->is_registered;

    direct->is_registered = true;
    prov->was_welcome = true;
    grpc_backoff_reset(&prov->backoff);
    if (is_first)
        direct->on_registered(direct);
    else
        remote__prov_notify(
            prov, &(peg_provider_event){.kind = PEG_PROVIDER_OFFERED, .address = prov->peer});
    if (direct->has_old_tools)
        remote__direct_register(direct);
}

static void reject_registration(struct remote__direct *direct, const struct grpc_status *status)
{
    peg_provider *prov = direct->prov;
    char message[REMOTE__PROV_MESSAGE_BYTES];
    const enum wire_error error = remote__prov_refusal(status, message);
    const bool is_permanent =
        remote__prov_is_permanent(error) || status->code == GRPC_UNIMPLEMENTED;

    if (!is_permanent)
        register_later(direct, message);
    else if (direct->is_registered)
        remote__prov_report_refused_offer(prov, wire_error_name(error), message);
    else
        remote__prov_end_refused(prov, error, message);
}

static void on_register_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                            const struct grpc_metadata *trailers, void *user)
{
    struct remote__direct *direct = user;
    peg_provider *prov = direct->prov;

    (void)trailers;
    direct->is_registering = false;
    if (prov->is_ending)
        return;
    snprintf(prov->peer, sizeof(prov->peer), "%s", grpc_rpc_peer(rpc));
    if (status->code == GRPC_OK)
        accept_registration(direct);
    else
        reject_registration(direct, status);
    remote__prov_check_end(prov);
}

static peg_status send_registration(struct remote__direct *direct, peg_error *reterr)
{
    static const struct grpc_rpc_events events = {.on_end = on_register_end};
    peg_provider *prov = direct->prov;
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata,
                                             .timeout_ms = PEG_LIMIT_DIRECT_RPC_MS};
    Pegboard__V1__RegisterRequest *request = NULL;
    struct grpc_rpc *rpc = NULL;
    peg_status status = remote__prov_fill_registration(prov, &arena, &request, reterr);

    if (!status) {
        request->kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;
        status = remote__prov_put_token(prov, &arena, &metadata, reterr);
    }
    if (!status)
        status = pegboard_v1_registry_register_call(prov->channel, request, &options, &events,
                                                    direct, &rpc, reterr);
    peg__arena_free(&arena);
    return status;
}

void remote__direct_register(struct remote__direct *direct)
{
    peg_error error;

    if (direct->prov->is_ending || direct->prov->phase != REMOTE__PROV_SERVING)
        return;
    direct->has_old_tools = direct->is_registering;
    if (direct->is_registering)
        return;
    net_loop_disarm(direct->prov->loop, &direct->prov->retry);
    direct->is_registering = true;
    if (send_registration(direct, &error)) {
        direct->is_registering = false;
        register_later(direct, error.message);
    }
}

/* ---- Pong ---------------------------------------------------------------------------------- */

static void on_pong_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                        const struct grpc_metadata *trailers, void *user)
{
    struct remote__direct *direct = user;

    (void)rpc;
    (void)trailers;
    direct->n_pongs--;
    if (status->code != GRPC_OK && !direct->prov->is_ending)
        peg__log(PEG_LOG_WARN, "E_PROVIDER", "no gateway took a pong of toolset '%.64s' (%s)",
                 direct->prov->config.toolset, grpc_code_name(status->code));
}

/* One that cannot be sent is missed: the next ping comes soon. */
void remote__direct_pong(struct remote__direct *direct, const char *ping_id)
{
    static const struct grpc_rpc_events events = {.on_end = on_pong_end};
    peg_provider *prov = direct->prov;
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata,
                                             .timeout_ms = PEG_LIMIT_DIRECT_PONG_MS};
    Pegboard__V1__PongRequest request = PEGBOARD__V1__PONG_REQUEST__INIT;
    struct grpc_rpc *rpc = NULL;

    if (direct->n_pongs >= PEG_LIMIT_DIRECT_PONGS || prov->is_ending)
        return;
    request.ping_id = peg__unconst(ping_id);
    request.toolset = peg__unconst(prov->config.toolset);
    if (!remote__prov_put_token(prov, &arena, &metadata, NULL) &&
        !pegboard_v1_registry_pong_call(prov->channel, &request, &options, &events, direct, &rpc,
                                        NULL))
        direct->n_pongs++;
    peg__arena_free(&arena);
}

/* ---- EmitToolResult ------------------------------------------------------------------------ */

/* Owned by its RPC. */
struct emission {
    struct remote__prov_call *call; /* owned */
    void (*done)(struct remote__prov_call *call, bool is_published);
};

/* A result that the gateway refuses for good, because its call is not known any more or it does not
 * fit, would be refused again. */
static bool is_settled(const struct grpc_status *status)
{
    char message[REMOTE__PROV_MESSAGE_BYTES];
    enum wire_error error;

    if (status->code == GRPC_OK)
        return true;
    error = remote__prov_refusal(status, message);
    return remote__prov_is_permanent(error) || error == WIRE_NOT_FOUND;
}

static void on_emit_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                        const struct grpc_metadata *trailers, void *user)
{
    struct emission *emission = user;

    (void)rpc;
    (void)trailers;
    emission->done(emission->call, is_settled(status));
    remote__prov_call_unref(emission->call);
    peg__free(emission);
}

static peg_status send_emission(struct emission *emission, peg_error *reterr)
{
    static const struct grpc_rpc_events events = {.on_end = on_emit_end};
    const struct remote__prov_outcome *outcome = &emission->call->outcome;
    peg_provider *prov = emission->call->prov;
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata,
                                             .timeout_ms = PEG_LIMIT_DIRECT_RPC_MS};
    Pegboard__V1__EmitToolResultRequest request = PEGBOARD__V1__EMIT_TOOL_RESULT_REQUEST__INIT;
    Pegboard__V1__ToolError error = PEGBOARD__V1__TOOL_ERROR__INIT;
    struct grpc_rpc *rpc = NULL;
    peg_status status = remote__prov_put_token(prov, &arena, &metadata, reterr);

    if (outcome->is_content)
        remote__prov_outcome_flatten(emission->call);
    request.call_id = peg__unconst(emission->call->face.call_id);
    request.result.data = (uint8_t *)outcome->json;
    request.result.len = outcome->json_len;
    request.server_data = outcome->server_data;
    request.n_server_data = outcome->n_server_data;
    error.code = peg__unconst(outcome->code);
    error.message = peg__unconst(outcome->message);
    request.error = outcome->code[0] ? &error : NULL;
    if (!status)
        status = pegboard_v1_registry_emit_tool_result_call(prov->channel, &request, &options,
                                                            &events, emission, &rpc, reterr);
    peg__arena_free(&arena);
    return status;
}

void remote__direct_emit(struct remote__prov_call *call,
                         void (*done)(struct remote__prov_call *call, bool is_published))
{
    struct emission *emission = peg__alloc_zero(1, sizeof(*emission));
    peg_error error;

    if (emission) {
        emission->call = remote__prov_call_ref(call);
        emission->done = done;
        if (!send_emission(emission, &error))
            return;
        remote__prov_call_unref(emission->call);
        peg__free(emission);
    }
    done(call, false);
}
