/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that the source works on. A call is in the server's list from begin to end; its request
 * may be gone before that (canceled, or answered with a question) and may be replaced by a retry.
 */

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

const struct mcp_request *mcp_call_request(const struct mcp_call *call)
{
    return &call->face;
}

void mcp_call_set_user(struct mcp_call *call, void *user)
{
    call->user = user;
}

void *mcp_call_user(const struct mcp_call *call)
{
    return call->user;
}

struct mcp_call *mcp__find_call(struct mcp_server *server, peg_str id)
{
    struct mcp_call *call = server->calls;

    while (call && !peg__str_is(id, call->id))
        call = call->next;
    return call;
}

/* ---- beginning ---- */

static void free_call(struct mcp_call *call)
{
    mcp__drop_ask(call);
    mcp__request_free(&call->request);
    peg_json_doc_free(call->origin);
    peg__free(call->principal);
    peg__free(call);
}

static void set_face(struct mcp_call *call, enum mcp_call_kind kind, peg_str name)
{
    const struct mcp__request *rq = &call->request;
    const peg_json *args = peg_json_get(rq->params, "arguments");

    call->face = (struct mcp_request){
        .kind = kind,
        .era = rq->era,
        .name = name,
        .args = args,
        .params = rq->params,
        .principal = call->principal,
        .scope = rq->peer->scope,
        .idempotency_key = peg_json_str(peg_json_get(rq->meta, "pegboard/idempotency-key")),
        .traceparent = peg_json_str(peg_json_get(rq->meta, "traceparent")),
        .tracestate = peg_json_str(peg_json_get(rq->meta, "tracestate")),
        .baggage = peg_json_str(peg_json_get(rq->meta, "baggage")),
        .wants_output = rq->token || rq->wants_log,
        .can_be_asked = rq->can != 0,
        .takes_task = kind == MCP_CALL_TOOL && mcp__takes_tasks(rq),
        .resumed = peg__str(rq->resumed),
        .responses = rq->resumed[0] || kind == MCP_UPDATE_TASK
                         ? peg_json_get(rq->params, "inputResponses")
                         : NULL,
    };
}

/* The request is taken over on success only. */
static peg_status make_call(struct mcp__request *rq, struct mcp_call **ret_call)
{
    const peg_str principal = peg__str(rq->peer->principal);
    struct mcp_call *call = peg__alloc_zero(1, sizeof(*call));
    peg_status status;

    if (!call)
        return PEG_ENOMEM;
    call->server = rq->peer->server;
    call->principal = peg__alloc(principal.len + 1);
    call->request = *rq;
    call->request.doc = NULL;
    call->request.waiter = MCP__CALL;
    status =
        call->principal && peg__id_hex(call->id) ? mcp__add_request(&call->request) : PEG_ENOMEM;
    if (status) {
        free_call(call);
        return status;
    }
    memcpy(call->principal, principal.ptr, principal.len + 1);
    call->origin = rq->doc;
    rq->doc = NULL;
    *ret_call = call;
    return PEG_OK;
}

static void reject_call(struct mcp__request *rq, peg_status status)
{
    if (status == PEG_EEXISTS)
        mcp__send_errorf(rq, MCP_INVALID_REQUEST,
                         "the id is in use by a request that has no answer yet: take another one");
    else if (status == PEG_ELIMIT)
        mcp__send_errorf(rq, MCP_INTERNAL_ERROR,
                         "too many requests wait for an answer: try again later");
    else
        mcp__send_errorf(rq, MCP_INTERNAL_ERROR, "the server is out of memory: try again later");
}

void mcp__begin_call(struct mcp__request *rq, enum mcp_call_kind kind, peg_str name)
{
    struct mcp_server *server = rq->peer->server;
    struct mcp_call *call = NULL;
    const size_t max = PEG__OR_DEFAULT(server->config.max_calls, PEG_LIMIT_MCP_CALLS);
    peg_status status = server->n_calls < max ? make_call(rq, &call) : PEG_ELIMIT;

    if (status) {
        reject_call(rq, status);
        return;
    }
    set_face(call, kind, name);
    call->began_ms = server->now_ms;
    PEG_LIST_PUSH(server->calls, call, next, prev);
    server->n_calls++;
    server->config.source->ops->begin(server->config.source, call);
}

/* A string that the request must have. False: it was answered. */
static bool read_name(struct mcp__request *rq, const char *member, peg_str *ret_name)
{
    const peg_json *name = peg_json_get(rq->params, member);
    const peg_json *args = peg_json_get(rq->params, "arguments");

    if (peg_json_kind_of(name) != PEG_JSON_STRING) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS, "%s must be a string", member);
        return false;
    }
    if (args && args->kind != PEG_JSON_OBJECT) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS, "arguments must be an object");
        return false;
    }
    *ret_name = peg_json_str(name);
    return true;
}

static void begin_named(struct mcp__request *rq, enum mcp_call_kind kind, const char *member)
{
    peg_str name;

    if (read_name(rq, member, &name) && !mcp__take_retry(rq))
        mcp__begin_call(rq, kind, name);
}

void mcp__call_tool(struct mcp__request *rq)
{
    begin_named(rq, MCP_CALL_TOOL, "name");
}

/* Where lists are empty there is nothing to name. False: it was answered. */
static bool is_there(struct mcp__request *rq, unsigned offer)
{
    if (rq->peer->server->config.source->offers & offer)
        return true;
    mcp__send_errorf(rq, MCP_INVALID_PARAMS, "there are no resources and no prompts here");
    return false;
}

void mcp__read_resource(struct mcp__request *rq)
{
    if (is_there(rq, MCP_OFFERS_RESOURCES))
        begin_named(rq, MCP_READ_RESOURCE, "uri");
}

void mcp__get_prompt(struct mcp__request *rq)
{
    if (is_there(rq, MCP_OFFERS_PROMPTS))
        begin_named(rq, MCP_GET_PROMPT, "name");
}

void mcp__complete(struct mcp__request *rq)
{
    const peg_json *ref = peg_json_get(rq->params, "ref");
    const peg_json *argument = peg_json_get(rq->params, "argument");
    const bool is_prompt = peg__str_is(peg_json_str(peg_json_get(ref, "type")), "ref/prompt");
    const bool is_resource = peg__str_is(peg_json_str(peg_json_get(ref, "type")), "ref/resource");
    const peg_json *name = peg_json_get(ref, is_prompt ? "name" : "uri");

    if ((!is_prompt && !is_resource) || peg_json_kind_of(name) != PEG_JSON_STRING ||
        peg_json_kind_of(peg_json_get(argument, "name")) != PEG_JSON_STRING ||
        peg_json_kind_of(peg_json_get(argument, "value")) != PEG_JSON_STRING) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "completion needs ref, a prompt or a resource, and argument with name and "
                         "value");
        return;
    }
    mcp__begin_call(rq, MCP_COMPLETE, peg_json_str(name));
}

/* ---- while it runs ---- */

void mcp_call_progress(struct mcp_call *call, double progress, double total, peg_str message)
{
    struct mcp__request *rq = &call->request;
    struct peg__out *out;

    if (!rq->peer || !rq->token || (rq->has_progress && !(progress > rq->progress)))
        return;
    out = mcp__open_notification(rq->peer, "notifications/progress");
    peg__out_key(out, "progressToken");
    peg__out_value(out, rq->token);
    peg__out_key(out, "progress");
    peg__out_double(out, progress);
    if (total > 0) {
        peg__out_key(out, "total");
        peg__out_double(out, total);
    }
    if (message.len)
        peg__out_member(out, "message", message);
    rq->progress = progress;
    rq->has_progress = true;
    mcp__send_notification(rq->peer, rq, true);
}

void mcp_call_log(struct mcp_call *call, enum mcp_level level, peg_str logger, peg_str data)
{
    struct mcp__request *rq = &call->request;
    struct peg__out *out;

    if (!rq->peer || (int)level < rq->log_level)
        return;
    out = mcp__open_notification(rq->peer, "notifications/message");
    peg__out_cmember(out, "level", mcp__level_name(level));
    if (logger.len)
        peg__out_member(out, "logger", logger);
    peg__out_key(out, "data");
    peg__out_raw(out, data);
    mcp__send_notification(rq->peer, rq, true);
}

void mcp_call_output(struct mcp_call *call, peg_str stream, peg_str text)
{
    struct mcp__request *rq = &call->request;
    struct peg__buf data = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);

    mcp_call_progress(call, rq->has_progress ? rq->progress + 1 : 1, 0, text);
    if (!rq->wants_log)
        return;
    peg__json_write_string(text, &data);
    if (!data.status)
        mcp_call_log(call, MCP_LEVEL_INFO, stream, peg__buf_view(&data));
    peg__buf_free(&data);
}

/* ---- ending ---- */

void mcp__detach_call(struct mcp_call *call)
{
    if (call->request.peer)
        mcp__remove_request(&call->request);
    call->request.peer = NULL;
    call->request.id = NULL;
    call->request.token = NULL;
}

void mcp__cancel_call(struct mcp_call *call, const char *reason)
{
    struct mcp_source *source = call->server->config.source;

    mcp__detach_call(call);
    mcp__drop_ask(call);
    if (call->is_canceled)
        return;
    call->is_canceled = true;
    source->ops->cancel(source, call, reason);
}

static peg_status worst_of(const struct mcp_result *result)
{
    const struct peg__buf *bufs[] = {&result->members, &result->structured, &result->meta,
                                     &result->message, &result->data};

    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++) {
        if (bufs[i]->status)
            return bufs[i]->status;
    }
    return PEG_OK;
}

void mcp__replace_broken(enum mcp_call_kind kind, struct mcp_result *result)
{
    const peg_status status = worst_of(result);

    if (status == PEG_ELIMIT && kind == MCP_CALL_TOOL)
        mcp_result_fail_tool(result, "result_too_large",
                             peg__str("the result is larger than 16 MiB: ask for less"));
    else if (status)
        mcp_result_fail(result, MCP_INTERNAL_ERROR,
                        status == PEG_ELIMIT ? "the result is too large: ask for less"
                                             : "the server is out of memory");
}

void mcp__put_end(struct peg__out *out, const struct mcp_result *result, enum mcp_era era)
{
    if (result->members.len)
        peg__out_raw(out, peg__buf_view(&result->members));
    if (result->structured.len && (era == MCP_MODERN || result->is_structured_object)) {
        peg__out_key(out, "structuredContent");
        peg__out_raw(out, peg__buf_view(&result->structured));
    }
    if (result->is_error) {
        peg__out_key(out, "isError");
        peg__out_bool(out, true);
    }
}

static void answer_request(struct mcp_call *call, const struct mcp_result *result)
{
    struct mcp__request *rq = &call->request;
    const bool is_missing = result->code == MCP_RESOURCE_NOT_FOUND && rq->era == MCP_MODERN;

    if (result->code) {
        mcp__send_error(rq, is_missing ? MCP_INVALID_PARAMS : result->code,
                        peg__buf_view(&result->message), peg__buf_view(&result->data));
        return;
    }
    mcp__put_end(mcp__open_result(rq, "complete"), result, rq->era);
    if (call->face.kind == MCP_READ_RESOURCE)
        mcp__put_cache_hints(rq, &rq->peer->out);
    mcp__send_result(rq, peg__buf_view(&result->meta));
}

void mcp__drop_call(struct mcp_call *call)
{
    struct mcp_server *server = call->server;

    mcp__detach_call(call);
    PEG_LIST_REMOVE(server->calls, call, next, prev);
    server->n_calls--;
    free_call(call);
}

void mcp_call_end(struct mcp_call *call, struct mcp_result *result)
{
    mcp__replace_broken(call->face.kind, result);
    if (call->task)
        mcp__end_task(call, result);
    else if (call->request.peer)
        answer_request(call, result);
    mcp_result_free(result);
    mcp__drop_call(call);
}
