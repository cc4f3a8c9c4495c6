/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls. An attempt is one exchange; it ends with a result, or it is made again: if the connection
 * broke and the call has an identity, so that asking again is attaching, if there is a new token,
 * or if the gateway drains and there is another one.
 */

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "remote/client/remote.h"

enum {
    /* Of a call that names none: what gateways take by default. */
    CALL_MS = 30000,
    /* Beyond the time of a call, for the gateway to say what became of it. */
    GRACE_MS = 5000,
};

struct calling {
    peg_client *client;
    peg_ctx *ctx; /* or NULL */
    struct remote__registry *registry;
    const struct grpc_method *method;
    const peg_remote_output *output; /* of CallToolStream */
    const peg_remote_request *request;
    struct remote__sending sending;
    int64_t due_ns;           /* what is not sent by then is not sent any more */
    int64_t until_ns;         /* the end of the wait */
    unsigned n_lost;          /* attempts that broke */
    size_t n_moved;           /* attempts that a gateway refused because it drains */
    char epoch[REMOTE_EPOCH]; /* of the gateway that was asked first, as far as it is known */
    bool was_sent;            /* by any attempt */
    bool has_new_token;       /* once */
    char *call_id;            /* as a stream told it; owned */
    peg_remote_result *result;
};

static const peg_clock *clock_of(const struct calling *c)
{
    return c->ctx ? peg_ctx_clock(c->ctx) : peg_clock_system();
}

/* ---- what comes ------------------------------------------------------------------------------ */

static peg_status keep_call_id(struct calling *c, const char *call_id, peg_error *reterr)
{
    const size_t size = strlen(call_id) + 1;
    char *copy = peg__alloc(size);

    if (!copy)
        return peg__fail_nomem(reterr);
    memcpy(copy, call_id, size);
    peg__free(c->call_id);
    c->call_id = copy;
    return PEG_OK;
}

static peg_status take_unreadable(struct calling *c, const peg_error *why, peg_error *reterr)
{
    if (why->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    c->result = peg_remote_result_free(c->result);
    return remote__result_unreadable(why, &c->result, reterr);
}

static peg_status take_call_result(struct calling *c, peg_str bytes, peg_error *reterr)
{
    peg_remote_result *result;
    const peg_status status = remote__result_read(bytes, &result, reterr);

    if (status)
        return status;
    peg_remote_result_free(c->result);
    c->result = result;
    return PEG_OK;
}

/* The result inside an event goes the same way as one that comes alone. */
static peg_status take_inner_result(struct calling *c, const Pegboard__V1__CallToolResponse *inner,
                                    struct peg__arena *arena, peg_error *reterr)
{
    const size_t len = grpc_message_packed_size(&inner->base);
    uint8_t *bytes = peg__arena_alloc(arena, len + 1);

    if (!bytes)
        return peg__fail_nomem(reterr);
    grpc_message_pack(&inner->base, bytes);
    return take_call_result(c, peg__strn((const char *)bytes, len), reterr);
}

static peg_status take_unpacked(struct calling *c,
                                const Pegboard__V1__CallToolStreamResponse *event,
                                struct peg__arena *arena, peg_error *reterr)
{
    switch (event->event_case) {
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_STARTED:
        return keep_call_id(c, event->started->call_id, reterr);
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_OUTPUT:
        if (c->output && c->output->fn)
            c->output->fn(peg__str(event->output->stream), peg__str(event->output->delta),
                          c->output->user);
        return PEG_OK;
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_QUESTION:
        if (!c->call_id || !c->request->on_question)
            return PEG_OK;
        return remote__answer(c->registry, c->request, c->call_id, event->question, reterr);
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_RESULT:
        return take_inner_result(c, event->result, arena, reterr);
    default:
        return PEG_OK; /* what a later gateway may say besides */
    }
}

static peg_status take_call_event(struct calling *c, peg_str bytes, peg_error *reterr)
{
    struct peg__arena arena = {0};
    const ProtobufCMessage *message;
    peg_status status = grpc_message_unpack(&pegboard__v1__call_tool_stream_response__descriptor,
                                            &arena, bytes, &message, NULL);

    if (status == PEG_OK)
        status =
            take_unpacked(c, (const Pegboard__V1__CallToolStreamResponse *)message, &arena, reterr);
    else if (status == PEG_ENOMEM)
        peg__fail_nomem(reterr);
    else
        status = take_call_result(c, bytes, reterr); /* UNKNOWN, and says why */
    peg__arena_free(&arena);
    return status;
}

static peg_status take_started(struct calling *c, peg_str bytes, peg_error *reterr)
{
    struct peg__arena arena = {0};
    const ProtobufCMessage *message;
    const Pegboard__V1__StartToolResponse *started;
    peg_error why;
    peg_status status = grpc_message_unpack(&pegboard__v1__start_tool_response__descriptor, &arena,
                                            bytes, &message, &why);

    if (status == PEG_OK) {
        started = (const Pegboard__V1__StartToolResponse *)message;
        status = remote__result_running(started->call_id, &c->result, reterr);
        if (!status) {
            c->result->was_attached = started->attached;
            c->result->deadline_ms = started->deadline_unix_ms;
        }
    } else {
        status = take_unreadable(c, &why, reterr);
    }
    peg__arena_free(&arena);
    return status;
}

static peg_status take_message(struct calling *c, peg_str bytes, peg_error *reterr)
{
    switch (c->method - pegboard_v1_registry_methods) {
    case PEGBOARD_V1_REGISTRY_CALL_TOOL_STREAM:
        return take_call_event(c, bytes, reterr);
    case PEGBOARD_V1_REGISTRY_START_TOOL:
        return c->result ? PEG_OK : take_started(c, bytes, reterr);
    default:
        return take_call_result(c, bytes, reterr);
    }
}

/* Until there is nothing more to read, or the context stops. */
static peg_status read_messages(struct calling *c, struct remote__request *req, peg_ctx *ctx,
                                int64_t until_ns, enum remote__received *ret_received,
                                peg_error *reterr)
{
    peg_status status = PEG_OK;
    peg_str bytes;

    while (!status &&
           (*ret_received = remote__request_next(req, ctx, until_ns, &bytes)) == REMOTE_MESSAGE)
        status = take_message(c, bytes, reterr);
    return status;
}

/* ---- ends ------------------------------------------------------------------------------------ */

peg_status remote__result_stopped(const struct remote__request *req, const peg_error *why,
                                  bool was_sent, peg_remote_result **ret_result, peg_error *reterr)
{
    const bool is_late = why->status == PEG_ETIMEOUT;
    struct remote__end end = {.outcome = is_late ? PEG_REMOTE_TIMEOUT : PEG_REMOTE_CANCELED,
                              .name = peg__str(is_late ? "timeout" : "canceled")};

    peg__fail_because(&end.error, why->status, is_late ? "E_TIMEOUT" : "E_CANCELED", why,
                      "the call was not started");
    if (was_sent) {
        end.outcome = PEG_REMOTE_UNKNOWN;
        end.name = peg__str("outcome_unknown");
        end.was_started = true;
        /* What was sent may have been an earlier attempt. */
        peg__fail_because(
            &end.error, why->status, "E_OUTCOME_UNKNOWN", why,
            "the gateway at %s %s; the call may have been started: check before you retry",
            req->registry->address,
            req->was_sent ? "was asked to cancel it" : "cannot be reached any more");
    }
    return remote__result_of(&end, ret_result, reterr);
}

static peg_status end_stopped(struct calling *c, const struct remote__request *req,
                              enum remote__received received, peg_error *reterr)
{
    peg_error why = {.status = PEG_ETIMEOUT};

    if (received == REMOTE_STOP)
        remote__ctx_error(c->ctx, &why);
    else
        peg__fail(&why, PEG_ETIMEOUT, "E_TIMEOUT",
                  "the gateway at %s does not say what became of it", req->registry->address);
    return remote__result_stopped(req, &why, c->was_sent, &c->result, reterr);
}

/* Is another attempt harmless and of use? */
static bool may_repeat_call(struct calling *c, const struct remote__request *req)
{
    if (req->failure)
        return false;
    if (remote__request_is_lost(req))
        return c->was_sent && c->sending.has_identity && ++c->n_lost <= c->client->max_reasks;
    if (c->n_moved < req->n_elsewhere) {
        c->n_moved++;
        return true;
    }
    if (req->status.code != GRPC_UNAUTHENTICATED || c->has_new_token)
        return false;
    c->has_new_token = true;
    return remote__registry_renew(c->registry, req->authorization);
}

static peg_status end_unknown(struct calling *c, const peg_error *error, peg_str call_id,
                              peg_error *reterr)
{
    const struct remote__end end = {.outcome = PEG_REMOTE_UNKNOWN,
                                    .error = *error,
                                    .name = peg__str("outcome_unknown"),
                                    .was_started = true,
                                    .call_id = call_id};

    c->result = peg_remote_result_free(c->result);
    return remote__result_of(&end, &c->result, reterr);
}

/* A call that is attached to may go on when our time is over. */
static peg_status end_late_call(struct calling *c, const struct remote__request *req,
                                peg_error *reterr)
{
    peg_error error;
    peg_status status;

    peg__fail_because(&error, PEG_ETIMEOUT, "E_OUTCOME_UNKNOWN", &c->result->error,
                      "the call was asked for before and may go on at %s: ask again with the same "
                      "identity, or await it by its id",
                      req->registry->address);
    status = end_unknown(c, &error, req->call_id, reterr);
    if (!status)
        c->result->was_attached = req->says_started;
    return status;
}

/* A gateway that refuses to be asked again says nothing about what it was asked first: it may have
 * been restarted, and have no provider for the tool yet. What does not fit now did not fit then. */
static peg_status end_refused_again(struct calling *c, const struct remote__request *req,
                                    peg_error *reterr)
{
    peg_error error;

    peg__fail_because(&error, PEG_EIO, "E_OUTCOME_UNKNOWN", &c->result->error,
                      "the connection to %s broke when the call may have been started, and asked "
                      "again it is refused; check before you retry",
                      req->registry->address);
    return end_unknown(c, &error, peg__str(""), reterr);
}

/* But for the end of that very call, told by the gateway that took it. */
static bool is_refused_again(const struct calling *c, const struct remote__request *req)
{
    const bool is_its_end = req->call_id.len && *c->epoch && strcmp(req->epoch, c->epoch) == 0;

    return c->n_lost > 0 && !is_its_end && c->result->outcome == PEG_REMOTE_REFUSED &&
           c->result->error.status != PEG_ESCHEMA;
}

/* Everything was read and nothing is on its way. Without a result the attempt is made again, or
 * what is known of it becomes one. */
static peg_status end_attempt(struct calling *c, const struct remote__request *req,
                              enum remote__received received, bool *ret_again, peg_error *reterr)
{
    peg_status status;

    c->was_sent |= req->was_sent && !req->n_elsewhere; /* else it was refused */
    if (c->n_lost == 0 && *req->epoch)
        memcpy(c->epoch, req->epoch, sizeof(c->epoch));
    *ret_again = false;
    if (c->result)
        return PEG_OK;
    if (received != REMOTE_OVER)
        return end_stopped(c, req, received, reterr);
    if (may_repeat_call(c, req)) {
        *ret_again = true;
        return PEG_OK;
    }
    status = remote__result_of_end(req, c->was_sent, &c->result, reterr);
    if (!status && c->sending.has_identity && remote__result_is_late_wait(c->result, req))
        status = end_late_call(c, req, reterr);
    if (!status && is_refused_again(c, req))
        status = end_refused_again(c, req, reterr);
    return status;
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* The grace is for a gateway that has the call: there is none while it cannot be sent. */
static peg_status read_in_time(struct calling *c, struct remote__request *req,
                               enum remote__received *ret_received, peg_error *reterr)
{
    peg_status status = read_messages(c, req, c->ctx, c->due_ns, ret_received, reterr);

    if (status || *ret_received != REMOTE_TIME || c->due_ns == c->until_ns)
        return status;
    remote__request_stop_unsent(req);
    status = read_messages(c, req, c->ctx, c->until_ns, ret_received, reterr);
    if (*ret_received == REMOTE_OVER && !req->was_sent && !req->failure)
        *ret_received = REMOTE_TIME;
    return status;
}

static peg_status attempt(struct calling *c, bool *ret_again, peg_error *reterr)
{
    struct remote__request req = {.registry = c->registry,
                                  .method = c->method,
                                  .request = &c->sending.message.base,
                                  .waits_for_ready = c->n_lost > 0};
    const char *asked = *c->epoch ? c->epoch : "unknown";
    enum remote__received received = REMOTE_OVER;
    enum remote__received rest;
    peg_status status;

    req.asked_epoch = c->n_lost > 0 ? asked : NULL;
    status = remote__request_start(&req, reterr);
    if (!status)
        status = read_in_time(c, &req, &received, reterr);
    remote__request_stop(&req);
    /* An answer may have come while it was stopped. */
    if (!status && received != REMOTE_OVER)
        status = read_messages(c, &req, NULL, INT64_MAX, &rest, reterr);
    if (!status)
        status = end_attempt(c, &req, received, ret_again, reterr);
    remote__request_free(&req);
    return status;
}

static bool only_starts(const struct calling *c)
{
    return c->method - pegboard_v1_registry_methods == PEGBOARD_V1_REGISTRY_START_TOOL;
}

/* The first attempt may take as long as the gateway lets it, unless a time was named: a gateway
 * that lives ends it, and one that does not is noticed by keep-alive. Starting takes no time. */
static void set_until(struct calling *c, bool is_first)
{
    const int64_t told_ms = c->sending.message.timeout_ms;
    const int64_t usual_ms = c->request->on_question ? CALL_MS + PEG_LIMIT_GATEWAY_ASK_MS : CALL_MS;

    if (only_starts(c)) {
        c->due_ns = c->client->timeout_ms ? peg__clock_in_ms(clock_of(c), c->client->timeout_ms)
                                          : INT64_MAX;
        c->until_ns = c->due_ns;
    } else if (is_first && !told_ms) {
        c->due_ns = INT64_MAX;
        c->until_ns = INT64_MAX;
    } else if (is_first || c->until_ns == INT64_MAX) {
        c->due_ns = peg__clock_in_ms(clock_of(c), told_ms ? told_ms : usual_ms);
        c->until_ns = peg__clock_after_ms(c->due_ns, GRACE_MS);
    }
}

static peg_status make_attempts(struct calling *c, peg_error *reterr)
{
    bool again = true;
    peg_status status = PEG_OK;

    remote__registry_epoch(c->registry, c->epoch);
    for (unsigned n = 0; again && !status; n++) {
        set_until(c, n == 0);
        status = attempt(c, &again, reterr);
    }
    if (!status && c->call_id && !*c->result->call_id)
        status = remote__result_set_call_id(c->result, c->call_id, reterr);
    return status;
}

/* ---- where to -------------------------------------------------------------------------------- */

static size_t count_admitting(const peg_client *client, size_t first, size_t end, peg_str toolset,
                              size_t *ret_last)
{
    size_t n = 0;

    for (size_t i = first; i < end; i++) {
        if (!remote__registry_admits(&client->registries[i], toolset))
            continue;
        *ret_last = i;
        n++;
    }
    return n;
}

static peg_status find_toolset(peg_client *client, peg_ctx *ctx, const char *toolset,
                               struct remote__registry **ret_registry, peg_error *reterr)
{
    PEG_CLEANUP(peg_toolset_unrefp) peg_toolset *found = NULL;
    peg_status status = peg_client_get(client, ctx, NULL, toolset, &found, reterr);

    if (status)
        return status;
    return remote__registry_only(client, found->info.registry, ret_registry, reterr);
}

peg_status remote__registry_for(peg_client *client, peg_ctx *ctx, const char *name,
                                const char *toolset, struct remote__registry **ret_registry,
                                peg_error *reterr)
{
    size_t first;
    size_t end;
    size_t last = 0;
    size_t n;
    const peg_status status = remote__registries(client, name, &first, &end, reterr);

    if (status)
        return status;
    n = count_admitting(client, first, end, peg__str(toolset), &last);
    if (n > 1)
        return find_toolset(client, ctx, toolset, ret_registry, reterr);
    if (n == 0)
        return peg__fail(reterr, PEG_ENOTFOUND, "E_NOT_FOUND",
                         "the toolset '%s' is not among those that this client takes: look at "
                         "include and exclude",
                         toolset);
    *ret_registry = &client->registries[last];
    return PEG_OK;
}

/* No registry, or a context that has stopped: nothing was sent, and that is a result as well. */
static peg_status end_unsent(struct calling *c, const peg_error *why, peg_error *reterr)
{
    const struct remote__request nowhere = {.registry = c->client->registries};
    const struct remote__end refused = {
        .outcome = PEG_REMOTE_REFUSED,
        .error = *why,
        .name = peg__str(why->status == PEG_ENOTFOUND ? "not_found" : "service_unavailable"),
    };

    if (why->status == PEG_ENOMEM || why->status == PEG_EINVAL)
        return remote__pass_error(why, reterr);
    if (c->ctx && peg_ctx_check(c->ctx, NULL))
        return remote__result_stopped(&nowhere, why, false, &c->result, reterr);
    return remote__result_of(&refused, &c->result, reterr);
}

/* A gateway that does not know what was called, or takes no such arguments, has another toolset
 * than the one that is remembered. */
static bool is_outdated(const peg_remote_result *result)
{
    return result->outcome == PEG_REMOTE_REFUSED &&
           (result->error.status == PEG_ENOTFOUND || result->error.status == PEG_ESCHEMA);
}

/* Is the toolset at another registry by now, and may the call be made there? What was refused was
 * not started. But one with an identity may have been asked for before, and go on where its toolset
 * was: no other registry knows of that. */
static bool has_moved(struct calling *c, const peg_remote_request *request)
{
    const struct remote__registry *before = c->registry;

    if (c->result->error.status != PEG_ENOTFOUND || c->result->was_started ||
        c->sending.has_identity)
        return false;
    if (remote__registry_for(c->client, c->ctx, request->registry, request->toolset, &c->registry,
                             NULL))
        return false;
    return c->registry != before;
}

static peg_status call_here(struct calling *c, const peg_remote_request *request, peg_error *reterr)
{
    const peg_status status = make_attempts(c, reterr);

    if (!status && is_outdated(c->result))
        remote__cache_drop(c->registry, peg__str(request->toolset));
    return status;
}

/* Once: what is refused there as well is refused. */
static peg_status call_or_follow(struct calling *c, const peg_remote_request *request,
                                 peg_error *reterr)
{
    const peg_status status = call_here(c, request, reterr);

    if (status || !is_outdated(c->result) || !has_moved(c, request))
        return status;
    c->result = peg_remote_result_free(c->result);
    peg__free(c->call_id);
    c->call_id = NULL;
    c->n_lost = 0;
    c->was_sent = false;
    c->has_new_token = false;
    return call_here(c, request, reterr);
}

static peg_status run_call(struct calling *c, const peg_remote_request *request, peg_error *reterr)
{
    peg_error why;
    peg_status status = remote__sending_fill(&c->sending, request, c->ctx, only_starts(c), reterr);

    if (status)
        return status;
    status = c->ctx ? peg_ctx_check(c->ctx, &why) : PEG_OK;
    if (!status)
        status = remote__registry_for(c->client, c->ctx, request->registry, request->toolset,
                                      &c->registry, &why);
    return status ? end_unsent(c, &why, reterr) : call_or_follow(c, request, reterr);
}

static peg_status call_and_give(struct calling *c, const peg_remote_request *request,
                                peg_remote_result **ret_result, peg_error *reterr)
{
    PEG__READ_OR_RETURN(request, PEG_REMOTE_REQUEST_INIT, reterr);
    peg_status status;

    c->request = request;
    if (request->on_question && !only_starts(c))
        c->method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_CALL_TOOL_STREAM];
    status = run_call(c, request, reterr);

    if (!status && c->registry)
        status = remote__result_set_registry(c->result, c->registry, reterr);
    peg__free(c->call_id);
    peg__arena_free(&c->sending.arena);
    if (status)
        peg_remote_result_free(c->result);
    else
        *ret_result = c->result;
    return status;
}

#define METHOD(name) &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_##name]

peg_status peg_client_call(peg_client *client, peg_ctx *ctx, const peg_remote_request *request,
                           peg_remote_result **ret_result, peg_error *reterr)
{
    struct calling c = {.client = client, .ctx = ctx, .method = METHOD(CALL_TOOL)};

    return call_and_give(&c, request, ret_result, reterr);
}

peg_status peg_client_call_stream(peg_client *client, peg_ctx *ctx,
                                  const peg_remote_request *request,
                                  const peg_remote_output *output, peg_remote_result **ret_result,
                                  peg_error *reterr)
{
    struct calling c = {
        .client = client, .ctx = ctx, .method = METHOD(CALL_TOOL_STREAM), .output = output};

    return call_and_give(&c, request, ret_result, reterr);
}

peg_status peg_client_start(peg_client *client, peg_ctx *ctx, const peg_remote_request *request,
                            peg_remote_result **ret_result, peg_error *reterr)
{
    struct calling c = {.client = client, .ctx = ctx, .method = METHOD(START_TOOL)};

    return call_and_give(&c, request, ret_result, reterr);
}
