/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of a call, from what the gateway says and from what it does not. */

#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "remote/client/remote.h"

static struct remote__result *make_result(peg_error *reterr)
{
    struct remote__result *r = peg__alloc_zero(1, sizeof(*r));

    if (!r) {
        peg__fail_nomem(reterr);
        return NULL;
    }
    r->result.call_id = "";
    r->result.registry = "";
    r->result.json = peg__str("");
    r->result.error_name = "";
    r->result.error_message = "";
    r->result.error.code = "";
    r->result.error.cause = "";
    return r;
}

peg_remote_result *peg_remote_result_free(peg_remote_result *result)
{
    struct remote__result *r = (struct remote__result *)(void *)result;

    if (r) {
        remote__content_drop(r);
        peg__arena_free(&r->arena);
    }
    peg__free(r);
    return NULL;
}

/* Hands it over, or frees it. */
static peg_status give_result(struct remote__result *r, peg_status status,
                              peg_remote_result **ret_result)
{
    if (status)
        peg_remote_result_free(&r->result);
    else
        *ret_result = &r->result;
    return status;
}

static peg_status set_text(struct remote__result *r, const char **field, peg_str text,
                           peg_error *reterr)
{
    *field = peg__arena_copy(&r->arena, text);
    return *field ? PEG_OK : peg__fail_nomem(reterr);
}

/* ---- answers --------------------------------------------------------------------------------- */

static peg_str view_bytes(ProtobufCBinaryData data)
{
    return peg__strn((const char *)data.data, data.len);
}

static peg_status copy_server_data(struct remote__result *r,
                                   const Pegboard__V1__CallToolResponse *response,
                                   peg_error *reterr)
{
    const size_t n = response->n_server_data;
    peg_remote_data *data = peg__arena_alloc(&r->arena, (n + 1) * sizeof(*data));

    if (!data)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        const Pegboard__V1__ServerData *d = response->server_data[i];

        data[i] = (peg_remote_data){
            .kind = d->kind, .audience = d->audience, .data = view_bytes(d->data)};
    }
    r->result.server_data = data;
    r->result.n_server_data = n;
    return PEG_OK;
}

static void take_tool_error(struct remote__result *r, const Pegboard__V1__ToolError *error)
{
    r->result.outcome = PEG_REMOTE_ERROR;
    r->result.error_name = error->code;
    r->result.error_message = error->message;
    peg__fail(&r->result.error, PEG_EHOST, "E_TOOL_DOWNSTREAM_ERROR", "%s%s%s", error->code,
              *error->code ? ": " : "", error->message);
}

/* The tool has run, and its result is lost. */
static peg_status set_unreadable(struct remote__result *r, const peg_error *why)
{
    r->result.outcome = PEG_REMOTE_UNKNOWN;
    r->result.was_started = true;
    r->result.error_name = "outcome_unknown";
    peg__fail_because(
        &r->result.error, PEG_EHOST, "E_OUTCOME_UNKNOWN", why,
        "the tool has answered, but its answer cannot be read; check before you retry");
    r->result.error_message = r->result.error.message;
    return PEG_OK;
}

static peg_status fill_content(struct remote__result *r,
                               const Pegboard__V1__CallToolResponse *response, peg_error *reterr)
{
    peg_error why;
    const peg_status status = remote__content_read(r, response, &why);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return status ? set_unreadable(r, &why) : copy_server_data(r, response, reterr);
}

static peg_status fill_result(struct remote__result *r,
                              const Pegboard__V1__CallToolResponse *response, peg_error *reterr)
{
    r->result.call_id = response->call_id;
    r->result.was_started = true;
    r->result.was_attached = response->attached;
    if (response->error)
        take_tool_error(r, response->error);
    else if (response->n_content)
        return fill_content(r, response, reterr);
    else
        r->result.json = response->result.len ? view_bytes(response->result) : peg__str("null");
    return copy_server_data(r, response, reterr);
}

peg_status remote__result_read(peg_str bytes, peg_remote_result **ret_result, peg_error *reterr)
{
    struct remote__result *r = make_result(reterr);
    const ProtobufCMessage *message;
    peg_error why;
    peg_status status;

    if (!r)
        return PEG_ENOMEM;
    status = grpc_message_unpack(&pegboard__v1__call_tool_response__descriptor, &r->arena, bytes,
                                 &message, &why);
    if (status == PEG_OK)
        status = fill_result(r, (const Pegboard__V1__CallToolResponse *)message, reterr);
    else if (status == PEG_ENOMEM)
        peg__fail_nomem(reterr);
    else
        status = set_unreadable(r, &why);
    return give_result(r, status, ret_result);
}

peg_status remote__result_unreadable(const peg_error *why, peg_remote_result **ret_result,
                                     peg_error *reterr)
{
    struct remote__result *r = make_result(reterr);

    return r ? give_result(r, set_unreadable(r, why), ret_result) : PEG_ENOMEM;
}

peg_status remote__result_running(const char *call_id, peg_remote_result **ret_result,
                                  peg_error *reterr)
{
    struct remote__result *r = make_result(reterr);

    if (!r)
        return PEG_ENOMEM;
    r->result.outcome = PEG_REMOTE_RUNNING;
    r->result.was_started = true;
    return give_result(r, set_text(r, &r->result.call_id, peg__str(call_id), reterr), ret_result);
}

peg_status remote__result_set_call_id(peg_remote_result *result, const char *call_id,
                                      peg_error *reterr)
{
    return set_text((struct remote__result *)(void *)result, &result->call_id, peg__str(call_id),
                    reterr);
}

peg_status remote__result_set_registry(peg_remote_result *result,
                                       const struct remote__registry *registry, peg_error *reterr)
{
    return set_text((struct remote__result *)(void *)result, &result->registry,
                    peg__str(registry->name), reterr);
}

/* ---- ends without an answer ---- */

peg_status remote__result_of(const struct remote__end *end, peg_remote_result **ret_result,
                             peg_error *reterr)
{
    struct remote__result *r = make_result(reterr);
    peg_status status;

    if (!r)
        return PEG_ENOMEM;
    r->result.outcome = end->outcome;
    r->result.was_started = end->was_started;
    r->result.retry_ms = end->retry_ms;
    r->result.error = end->error;
    status = set_text(r, &r->result.error_name, end->name, reterr);
    if (!status)
        status = set_text(r, &r->result.call_id, end->call_id, reterr);
    if (!status)
        status = set_text(r, &r->result.error_message,
                          end->message.len ? end->message : peg__str(end->error.message), reterr);
    return give_result(r, status, ret_result);
}

static void set_unknown(const struct remote__request *req, struct remote__end *end)
{
    end->outcome = PEG_REMOTE_UNKNOWN;
    end->was_started = true;
    end->name = peg__str("outcome_unknown");
    peg__fail(
        &end->error, req->status.code == GRPC_DEADLINE_EXCEEDED ? PEG_ETIMEOUT : PEG_EIO,
        "E_OUTCOME_UNKNOWN",
        "the exchange with %s ended before the call did, whose outcome is unknown: check before "
        "you retry (%s: %.*s)",
        req->registry->address, grpc_code_name(req->status.code), PEG_ARG(req->status.message));
    end->message = peg__str("");
}

/* A gateway that says no says why, in a detail. What comes without one may come from anywhere on
 * the way, also when the call had been started: only some codes are clear about that. */
static bool is_clear(enum grpc_code code)
{
    return code == GRPC_INVALID_ARGUMENT || code == GRPC_NOT_FOUND ||
           code == GRPC_PERMISSION_DENIED || code == GRPC_UNAUTHENTICATED ||
           code == GRPC_FAILED_PRECONDITION || code == GRPC_UNIMPLEMENTED;
}

static peg_remote_outcome outcome_of(enum wire_error error)
{
    switch (error) {
    case WIRE_TIMEOUT:
        return PEG_REMOTE_TIMEOUT;
    case WIRE_CANCELED:
        return PEG_REMOTE_CANCELED;
    case WIRE_OUTCOME_UNKNOWN:
        return PEG_REMOTE_UNKNOWN;
    default:
        return PEG_REMOTE_REFUSED;
    }
}

peg_status remote__result_of_end(const struct remote__request *req, bool was_started,
                                 peg_remote_result **ret_result, peg_error *reterr)
{
    const bool may_run = was_started || req->was_sent;
    struct remote__end end = {
        .message = req->status.message, .retry_ms = req->retry_ms, .call_id = req->call_id};
    struct peg__arena arena = {0};
    enum wire_error error;
    peg_status status;

    if (req->failure)
        return remote__request_error(req, reterr);
    error = wire_error_from_status(&req->status, &arena, &end.name);
    end.outcome = outcome_of(error);
    end.was_started = end.outcome == PEG_REMOTE_UNKNOWN || req->says_started;
    if (remote__request_error(req, &end.error) == PEG_OK)
        peg__fail(&end.error, PEG_EHOST, "E_GATEWAY", "the gateway at %s answers nothing",
                  req->registry->address);
    if (may_run && req->status.details.len == 0 && !is_clear(req->status.code))
        set_unknown(req, &end);
    status = remote__result_of(&end, ret_result, reterr);
    peg__arena_free(&arena);
    return status;
}

/* A call that ended as never started is named, and said to be that. */
bool remote__result_is_late_wait(const peg_remote_result *result, const struct remote__request *req)
{
    return result->outcome == PEG_REMOTE_TIMEOUT && (req->says_started || req->call_id.len == 0);
}

/* ---- names ---- */

peg_status peg_remote_result_check(const peg_remote_result *result, peg_error *reterr)
{
    if (result->error.status && reterr)
        *reterr = result->error;
    return result->error.status;
}

const char *peg_remote_outcome_name(peg_remote_outcome outcome)
{
    static const char *const names[] = {
        [PEG_REMOTE_RESULT] = "result",           [PEG_REMOTE_ERROR] = "error",
        [PEG_REMOTE_TIMEOUT] = "timeout",         [PEG_REMOTE_CANCELED] = "canceled",
        [PEG_REMOTE_UNKNOWN] = "outcome_unknown", [PEG_REMOTE_REFUSED] = "refused",
        [PEG_REMOTE_RUNNING] = "running",
    };

    return (size_t)outcome < sizeof(names) / sizeof(names[0]) ? names[outcome] : "?";
}
