/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tools/call as the call that gRPC makes: the same admission, identity, checks and deadline.
 *
 * What the tool asks ends the request of a modern client with input_required; the call goes on. The
 * retry, at any loop of any node, answers by the id in its requestState and awaits the call. A
 * legacy client is asked on the stream of its request, which stays.
 *
 * A call that takes long ends the request of a client that takes tasks with one, and goes on.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/direct.h"
#include "gateway/mcp/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "wire/wire.h"
#include "json/json.h"

struct tool_call {
    struct calls_caller caller; /* the first member */
    struct gw_mcp *mcp;
    struct mcp_call *call;
    bool has_schema;
    bool has_own_key;              /* which no other caller has */
    uint32_t question;             /* the last one; 0: none */
    struct calls_replying answers; /* to one */
    struct gw_mcp_task_watch watch;
};

/* ---- while it runs, and how it ends ---- */

static void free_own(struct tool_call *own)
{
    calls_replying_forget(&own->answers);
    gw_mcp_unwatch_task(&own->watch);
    peg__free(own);
}

static void on_output(struct calls_caller *caller, peg_str output)
{
    const struct tool_call *own = (const struct tool_call *)caller;
    const peg_str stream = wire_find_bytes(output, PEGBOARD_V1_OUTPUT_STREAM_FIELD);
    const peg_str delta = wire_find_bytes(output, PEGBOARD_V1_OUTPUT_DELTA_FIELD);

    if (delta.len)
        mcp_call_output(own->call, stream, delta);
}

/* Its tool had somebody to ask, and the client did not say that it can be. */
static bool lacks_capability(const struct tool_call *own, const struct calls_outcome *outcome)
{
    const peg_str error =
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);

    return mcp_call_request(own->call)->era == MCP_MODERN && !own->caller.can_be_asked &&
           outcome->kind == CALLS_KIND_ERROR && outcome->error == CALLS_OK &&
           peg__str_is(wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD),
                       "E_GATE_UNSUPPORTED");
}

static bool names(peg_str words, const char *part)
{
    return words.len && memmem(words.ptr, words.len, part, strlen(part));
}

static void put_capability(struct peg__out *out, const char *name, const char *value)
{
    if (!value)
        return;
    peg__out_key(out, name);
    peg__out_raw(out, peg__str(value));
}

/* What a tool asked for is in the words of its failure (core/run/ask.c); a gate names nothing, and
 * is a form. */
static void put_lack(struct mcp_result *result, const struct calls_outcome *outcome)
{
    const peg_str error =
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);
    const peg_str words = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD);
    const bool samples = names(words, "sampling/createMessage");
    const bool has_roots = names(words, "roots/list");
    const bool has_url = names(words, "elicitation/create (url)");
    const bool has_form = names(words, "elicitation/create,") ||
                          names(words, "elicitation/create:") ||
                          (!samples && !has_roots && !has_url);
    struct peg__out out = {.buf = &result->data};

    mcp_result_fail(result, MCP_MISSING_CAPABILITY,
                    "the tool asks for what the client did not declare that it can be asked for");
    result->data = (struct peg__buf)PEG__BUF(PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    peg__out_object(&out);
    peg__out_key(&out, "requiredCapabilities");
    peg__out_object(&out);
    put_capability(&out, "elicitation",
                   has_form && has_url ? "{\"form\":{},\"url\":{}}"
                   : has_form          ? "{\"form\":{}}"
                   : has_url           ? "{\"url\":{}}"
                                       : NULL);
    put_capability(&out, "sampling",
                   names(words, "sampling/createMessage (tools)") ? "{\"tools\":{}}"
                   : samples                                      ? "{}"
                                                                  : NULL);
    put_capability(&out, "roots", has_roots ? "{}" : NULL);
    peg__out_end_object(&out);
    peg__out_end_object(&out);
}

static void on_call_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct tool_call *own = (struct tool_call *)caller;
    struct mcp_call *call = own->call;
    struct mcp_result result = {0};

    if (lacks_capability(own, outcome))
        put_lack(&result, outcome);
    else
        gw_mcp_put_outcome(&result, outcome, own->has_schema);
    free_own(own);
    mcp_call_end(call, &result);
}

/* ---- questions ---- */

enum { TOKEN_TEXT = BUS_ID_TEXT + 12 };
_Static_assert((int)TOKEN_TEXT <= (int)MCP_TOKEN_BYTES, "requestState has room for it");

static bool on_question(struct calls_caller *caller, uint32_t number, peg_str requests)
{
    struct tool_call *own = (struct tool_call *)caller;
    peg_json_doc *doc = NULL;
    char token[TOKEN_TEXT];
    char id[BUS_ID_TEXT];

    if (peg_json_parse(requests, NULL, &doc, NULL))
        return false;
    own->question = number;
    gw_mcp_set_time(own->mcp);
    if (mcp_call_request(own->call)->era == MCP_LEGACY) {
        mcp_call_ask(own->call, peg_json_root(doc));
        peg_json_doc_free(doc);
        return true;
    }
    bus_id_print(&caller->id, id);
    snprintf(token, sizeof(token), "%s:%u", id, (unsigned)number);
    if (mcp_call_ask_apart(own->call, peg_json_root(doc), peg__str(token))) {
        gw_caller_leave(caller, CALLS_DETACHES);
        free_own(own);
    }
    peg_json_doc_free(doc);
    return true;
}

/* ---- tasks ---- */

static void become_task(struct gw_mcp_task_watch *watch, const struct calls_description *d)
{
    struct tool_call *own = peg__container_of(watch, struct tool_call, watch);

    gw_mcp_tell_task(own->mcp, own->call, d, NULL);
    gw_caller_leave(&own->caller, CALLS_DETACHES);
    free_own(own);
}

/* From now on it may be left, and goes on. */
static void on_admitted(struct calls_caller *caller, const struct bus_id *id, int64_t deadline_ms,
                        bool is_follower)
{
    struct tool_call *own = (struct tool_call *)caller;

    (void)deadline_ms;
    (void)is_follower;
    own->watch = (struct gw_mcp_task_watch){
        .fn = become_task,
        .mcp = own->mcp,
        .id = *id,
        .principal = peg__str(mcp_call_request(own->call)->principal),
    };
    gw_mcp_watch_task(&own->watch);
}

/* By whether the client takes a task, and wants output. */
static const struct calls_caller_events call_events[2][2] = {
    {{.on_end = on_call_end, .on_question = on_question},
     {.on_end = on_call_end, .on_question = on_question, .on_output = on_output}},
    {{.on_end = on_call_end, .on_question = on_question, .on_admitted = on_admitted},
     {.on_end = on_call_end,
      .on_question = on_question,
      .on_admitted = on_admitted,
      .on_output = on_output}},
};

static void end_with(struct mcp_call *call, int code, const char *sentence)
{
    struct mcp_result result = {0};

    mcp_result_fail(&result, code, "%s", sentence);
    mcp_call_end(call, &result);
}

void gw_mcp_reject_name(struct mcp_call *call, peg_str name)
{
    struct mcp_result result = {0};

    mcp_result_fail(&result, MCP_INVALID_PARAMS, "Unknown tool: %.*s",
                    (int)(name.len < 256 ? name.len : peg__utf8_cut(name.ptr, 256)), name.ptr);
    mcp_call_end(call, &result);
}

/* ---- the beginning ---- */

/* Trace context as fields of pegboard.v1.Call. False: it is too long, or no memory. */
static bool pack_trace(const struct mcp_request *request, struct peg__buf *packed)
{
    const struct {
        unsigned field;
        peg_str value;
    } parts[] = {{PEGBOARD_V1_CALL_TRACEPARENT_FIELD, request->traceparent},
                 {PEGBOARD_V1_CALL_TRACESTATE_FIELD, request->tracestate},
                 {PEGBOARD_V1_CALL_BAGGAGE_FIELD, request->baggage}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const size_t size = wire_bytes_size(parts[i].value);
        char *at = size ? peg__buf_reserve(packed, size) : NULL;

        if (at) {
            wire_put_bytes(at, parts[i].field, parts[i].value);
            packed->len += size;
        }
    }
    return !packed->status;
}

/* NULL: no memory, and the call has ended. */
static struct tool_call *make_own(struct gw_mcp *mcp, struct mcp_call *call, bool has_schema)
{
    const struct mcp_request *request = mcp_call_request(call);
    struct tool_call *own = peg__alloc_zero(1, sizeof(*own));

    if (!own) {
        end_with(call, MCP_INTERNAL_ERROR, "the gateway is out of memory: try again later");
        return NULL;
    }
    own->caller.events = &call_events[request->takes_task][request->wants_output];
    own->caller.can_be_asked = request->can_be_asked;
    own->mcp = mcp;
    own->call = call;
    own->has_schema = has_schema;
    mcp_call_set_user(call, own);
    return own;
}

static void start_tool(struct gw_mcp *mcp, struct mcp_call *call, const struct calls_request *what,
                       bool has_schema)
{
    struct tool_call *own = make_own(mcp, call, has_schema);

    if (!own)
        return;
    own->has_own_key = what->key.len && !mcp_call_request(call)->idempotency_key.len;
    gw_call_start(mcp->calls, what, &own->caller);
}

/* ---- the retry of a request that was to be answered ---- */

static void await_resumed(struct tool_call *own)
{
    const struct mcp_request *request = mcp_call_request(own->call);
    struct bus_id id;

    if (bus_id_parse(peg__strn(request->resumed.ptr, BUS_ID_TEXT - 1), &id))
        gw_call_await(own->mcp->calls, &id, peg__str(request->principal), NET_NEVER, &own->caller);
}

/* Whatever became of the answer, the call tells what counts: it may have asked again, or ended. */
static void on_answered(struct calls_replying *replying, enum calls_error error, peg_str words)
{
    (void)error;
    (void)words;
    await_resumed(peg__container_of(replying, struct tool_call, answers));
}

/* PEG_ELIMIT: they are too large; PEG_ENOMEM. */
static peg_status send_responses(struct tool_call *own, const struct bus_id *id, uint32_t number,
                                 const peg_json *responses)
{
    const struct mcp_request *request = mcp_call_request(own->call);
    struct peg__buf text = PEG__BUF(PEG_LIMIT_GATEWAY_QUESTION_BYTES);
    peg_status status;

    peg__json_write(responses, PEG_JSON_COMPACT, &text);
    status = text.status;
    if (!status)
        calls_reply(own->mcp->calls,
                    &(struct calls_reply_request){.id = id,
                                                  .number = number,
                                                  .principal = peg__str(request->principal),
                                                  .responses = peg__buf_view(&text)},
                    &own->answers);
    peg__buf_free(&text);
    return status;
}

static void give_responses(struct tool_call *own, const struct bus_id *id, uint32_t number)
{
    own->answers.fn = on_answered;
    if (send_responses(own, id, number, mcp_call_request(own->call)->responses))
        await_resumed(own); /* it asks again */
}

static void resume_tool(struct gw_mcp *mcp, struct mcp_call *call, bool has_schema)
{
    const struct mcp_request *request = mcp_call_request(call);
    const peg_str token = request->resumed;
    struct bus_id id;
    struct tool_call *own;

    if (token.len <= BUS_ID_TEXT || !bus_id_parse(peg__strn(token.ptr, BUS_ID_TEXT - 1), &id)) {
        end_with(call, MCP_INVALID_PARAMS, "requestState names no call");
        return;
    }
    own = make_own(mcp, call, has_schema);
    if (own && peg_json_kind_of(request->responses) == PEG_JSON_OBJECT)
        give_responses(own, &id, (uint32_t)strtoul(token.ptr + BUS_ID_TEXT, NULL, 10));
    else if (own)
        await_resumed(own);
}

/* The client has no request that could be answered, so an answer that was not written is lost:
 * its tool waits until its time is over. One that was answered before, or has ended, needs none. */
static void note_answered(struct calls_replying *replying, enum calls_error error, peg_str words)
{
    const struct tool_call *own = peg__container_of(replying, struct tool_call, answers);
    char id[BUS_ID_TEXT];

    if (error == CALLS_OK || error == CALLS_CONFLICT || error == CALLS_NOT_FOUND)
        return;
    bus_id_print(&own->caller.id, id);
    peg__log(PEG_LOG_WARN, "answer_lost", "the answer to question %u of call %s is lost: " PEG_FMT,
             (unsigned)own->question, id, PEG_ARG(words));
}

void gw_mcp_refuse(struct mcp_call *call, const char *reason)
{
    struct tool_call *own = mcp_call_user(call);

    calls_replying_forget(&own->answers);
    own->answers.fn = note_answered;
    calls_reply(
        own->mcp->calls,
        &(struct calls_reply_request){.id = &own->caller.id,
                                      .number = own->question,
                                      .principal = peg__str(mcp_call_request(call)->principal),
                                      .refusal = peg__str(reason)},
        &own->answers);
}

void gw_mcp_answer(struct mcp_call *call, const peg_json *answers)
{
    struct tool_call *own = mcp_call_user(call);
    peg_status status;

    calls_replying_forget(&own->answers);
    own->answers.fn = note_answered;
    status = send_responses(own, &own->caller.id, own->question, answers);
    if (status)
        gw_mcp_refuse(call,
                      status == PEG_ELIMIT
                          ? "the answer is larger than 64 KiB (PEG_LIMIT_GATEWAY_QUESTION_BYTES)"
                          : "the gateway is out of memory");
}

void gw_mcp_call(struct gw_mcp *mcp, struct mcp_call *call, const struct gw_toolset *toolset,
                 const struct gw_tool *tool, const peg_json *args)
{
    const struct mcp_request *request = mcp_call_request(call);
    struct peg__buf payload = PEG__BUF(PEG_LIMIT_MCP_MESSAGE_BYTES);
    struct peg__buf packed = PEG__BUF(PEG_LIMIT_GATEWAY_METADATA_BYTES);
    struct calls_request what = {
        .toolset = toolset->name,
        .tool = tool->name,
        .principal = peg__str(request->principal),
        .key = request->idempotency_key,
        .deadline_ns = NET_NEVER,
        .is_mcp = true,
    };
    char key[PEG_ID_HEX_TEXT];
    peg_error error;

    if (request->resumed.len) {
        resume_tool(mcp, call, tool->output_schema.len > 0);
        return;
    }
    what.can_be_asked = request->can_be_asked;
    /* One that is answered, or asked for later, has an identity. */
    if ((what.can_be_asked || request->takes_task) && !what.key.len && peg__id_hex(key))
        what.key = peg__str(key);
    if (args)
        peg__json_write(args, PEG_JSON_COMPACT, &payload);
    if (what.key.len && wire_check_id(what.key, "pegboard/idempotency-key", &error)) {
        end_with(call, MCP_INVALID_PARAMS, error.message);
    } else if (payload.status == PEG_ENOMEM || packed.status == PEG_ENOMEM) {
        end_with(call, MCP_INTERNAL_ERROR, "the gateway is out of memory: try again later");
    } else if (payload.status || !pack_trace(request, &packed)) {
        end_with(call, MCP_INVALID_PARAMS, "the arguments or the trace context are too large");
    } else {
        what.payload = peg__buf_view(&payload);
        what.packed = peg__buf_view(&packed);
        start_tool(mcp, call, &what, tool->output_schema.len > 0);
    }
    peg__buf_free(&payload);
    peg__buf_free(&packed);
}

void gw_mcp_cancel(struct mcp_call *call)
{
    struct tool_call *own = mcp_call_user(call);
    const bool is_alone = own->has_own_key || mcp_call_request(call)->resumed.len > 0;
    struct mcp_result result = {0};

    /* The client cancels by closing its stream, and a connection that breaks looks the same: the
     * pages say that both are a cancellation. */
    gw_caller_leave(&own->caller, is_alone ? CALLS_ABANDONS : CALLS_LEAVES);
    free_own(own);
    mcp_call_end(call, &result);
}
