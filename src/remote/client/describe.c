/* SPDX-License-Identifier: Apache-2.0 */

/* What became of a call, as the registry knows it. */

#include "base/error.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

/* A description and the arena it lies in. */
struct description {
    peg_remote_call_info info; /* first */
    struct peg__arena arena;
};

static const char *state_name(int state)
{
    switch (state) {
    case PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_WAITING:
        return "waiting";
    case PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_RUNNING:
        return "running";
    case PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_ENDED:
        return "ended";
    default:
        return "unknown";
    }
}

static const char *attempt_state_name(int state)
{
    switch (state) {
    case PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLAIMED:
        return "claimed";
    case PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_REVOKED:
        return "revoked";
    case PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLOSED:
        return "closed";
    default:
        return "unknown";
    }
}

static peg_status take_attempts(struct description *d,
                                const Pegboard__V1__DescribeCallResponse *response,
                                peg_error *reterr)
{
    const size_t n = response->n_attempts;
    peg_remote_attempt *attempts =
        (peg_remote_attempt *)peg__arena_alloc(&d->arena, (n + 1) * sizeof(*attempts));

    if (!attempts)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        const Pegboard__V1__DescribeCallResponse__Attempt *attempt = response->attempts[i];

        attempts[i] = (peg_remote_attempt){
            .number = attempt->number,
            .state = attempt_state_name((int)attempt->state),
            .provider = attempt->provider,
            .node_id = attempt->node_id,
            .address = attempt->address,
            .is_attached = attempt->attached,
        };
    }
    d->info.attempts = attempts;
    d->info.n_attempts = n;
    return PEG_OK;
}

static void take_info(struct description *d, const Pegboard__V1__DescribeCallResponse *response)
{
    d->info = (peg_remote_call_info){
        .registry = d->info.registry,
        .call_id = response->call_id,
        .state = state_name((int)response->state),
        .toolset = response->toolset,
        .tool = response->tool,
        .principal = response->principal,
        .admitted_ms = response->admitted_unix_ms,
        .deadline_ms = response->deadline_unix_ms,
        .kept_until_ms = response->kept_until_unix_ms,
        .coordinator_id = response->coordinator_id,
        .coordinator_address = response->coordinator_address,
        .is_coordinator_lost = response->coordinator_lost,
        .is_other_epoch = response->other_epoch,
        .n_waiters = response->waiters,
        .outcome = response->outcome,
        .was_started = response->started,
        .error_name = response->error,
        .error_message = response->message,
        .result_bytes = response->result_bytes,
    };
}

static peg_status ask_description(struct description *d, struct remote__fan *fan, peg_ctx *ctx,
                                  peg_error *reterr)
{
    peg_status status;

    d->info.registry = peg__arena_copy(&d->arena, peg__str(fan->registry->name));
    if (!d->info.registry)
        return peg__fail_nomem(reterr);
    status = remote__unary(fan, ctx, &d->arena, reterr);
    if (status)
        return status;
    take_info(d, (const Pegboard__V1__DescribeCallResponse *)fan->message);
    return take_attempts(d, (const Pegboard__V1__DescribeCallResponse *)fan->message, reterr);
}

peg_remote_call_info *peg_remote_call_info_free(peg_remote_call_info *info)
{
    struct description *d = (struct description *)(void *)info;

    if (d)
        peg__arena_free(&d->arena);
    peg__free(d);
    return NULL;
}

static peg_status check_query(const peg_remote_call_query *query, peg_error *reterr)
{
    const bool has_id = query && query->call_id && *query->call_id;
    const bool has_key = query && query->idempotency_key && *query->idempotency_key;
    const bool has_run =
        query && query->run_id && *query->run_id && query->tool_call_id && *query->tool_call_id;
    const bool has_toolset = query && query->toolset && *query->toolset;

    if (has_id || (has_toolset && (has_key || has_run)))
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                     "which call? Give call_id, or toolset with idempotency_key, or with run_id "
                     "and tool_call_id");
}

peg_status peg_client_describe_call(peg_client *client, peg_ctx *ctx,
                                    const peg_remote_call_query *query,
                                    peg_remote_call_info **ret_info, peg_error *reterr)
{
    PEG__READ_OR_RETURN(query, PEG_REMOTE_CALL_QUERY_INIT, reterr);
    Pegboard__V1__DescribeCallRequest request = PEGBOARD__V1__DESCRIBE_CALL_REQUEST__INIT;
    struct remote__fan fan = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_DESCRIBE_CALL],
        .request = &request.base,
        .is_repeatable = true,
    };
    peg_status status = check_query(query, reterr);
    struct description *d;

    if (!status)
        status = remote__registry_only(client, query->registry, &fan.registry, reterr);
    if (status)
        return status;
    request.call_id = remote__text(query->call_id);
    request.toolset = remote__text(query->toolset);
    request.run_id = remote__text(query->run_id);
    request.tool_call_id = remote__text(query->tool_call_id);
    request.idempotency_key = remote__text(query->idempotency_key);
    request.principal = remote__text(query->principal);
    d = (struct description *)peg__alloc_zero(1, sizeof(*d));
    if (!d)
        return peg__fail_nomem(reterr);
    status = ask_description(d, &fan, ctx, reterr);
    if (status)
        peg_remote_call_info_free(&d->info);
    else
        *ret_info = &d->info;
    return status;
}
