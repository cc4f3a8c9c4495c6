/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tasks/get, tasks/update and tasks/cancel: DescribeCall, AnswerCall and CancelTool of gRPC, at any
 * node. A task of another principal is as unknown as one that there never was.
 *
 *   get     its registers -> has it ended, does it ask?
 *           No node ends a call whose coordinator is lost: the call is awaited for a moment, so
 *           that this node takes it over, or learns that its outcome is unknown.
 *   update  its open question -> the answers that belong to it
 *   cancel  notifies its coordinator
 */

#include "base/clock.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/direct.h"
#include "gateway/mcp/internal.h"
#include "json/json.h"

enum { TAKEOVER_MS = 1000 };

/* One request about a task, while it is worked on. */
struct task_request {
    struct calls_caller caller; /* of the call that is canceled or awaited; the first member */
    struct gw_mcp *mcp;
    struct mcp_call *call;
    bool is_admitted; /* the caller */
    /* what may be pending, with the caller */
    bool is_waiting; /* it is one */
    struct calls_description description;
    struct calls_replying replying;
    struct net_timer timer;
};

/* ---- ending ---- */

static void free_task_request(struct task_request *own)
{
    bus_disarm(own->mcp->calls->bus, &own->timer);
    if (own->is_waiting)
        gw_caller_leave(&own->caller, own->is_admitted ? CALLS_DETACHES : CALLS_LEAVES);
    calls_replying_forget(&own->replying);
    calls_description_clear(&own->description);
    peg__free(own);
}

static void fail_task_request(struct mcp_call *call, int code, const char *sentence)
{
    struct mcp_result result = {0};

    mcp_result_fail(&result, code, "%s", sentence);
    mcp_call_end(call, &result);
}

static void reject_unknown_task(struct mcp_call *call)
{
    fail_task_request(call, MCP_INVALID_PARAMS, "there is no such task, or it has expired");
}

static void end_task_request(struct task_request *own, enum calls_error error)
{
    struct mcp_call *call = own->call;
    struct mcp_result empty = {0};

    free_task_request(own);
    if (error == CALLS_OK)
        mcp_call_end(call, &empty);
    else if (error == CALLS_NOT_FOUND)
        reject_unknown_task(call);
    else if (error == CALLS_VALIDATION)
        fail_task_request(call, MCP_INVALID_PARAMS,
                          "inputResponses must answer all of inputRequests at once, in 64 KiB at "
                          "most");
    else if (error == CALLS_OVERLOADED)
        fail_task_request(call, MCP_INTERNAL_ERROR,
                          "the gateway is out of memory: try again later");
    else
        fail_task_request(call, MCP_INTERNAL_ERROR,
                          "what is known of the task cannot be read now: try again");
}

static void tell_state(struct task_request *own, const peg_json *asked)
{
    gw_mcp_tell_task(own->mcp, own->call, &own->description, asked);
    free_task_request(own);
}

void gw_mcp_drop_task_request(struct mcp_call *call)
{
    struct mcp_result empty = {0};

    free_task_request(mcp_call_user(call));
    mcp_call_end(call, &empty);
}

/* ---- a call whose coordinator is lost ---- */

static void on_takeover_over(struct net_timer *timer)
{
    tell_state(peg__container_of(timer, struct task_request, timer), NULL);
}

static void on_awaited_admitted(struct calls_caller *caller, const struct bus_id *id,
                                int64_t deadline_ms, bool is_follower)
{
    (void)id;
    (void)deadline_ms;
    (void)is_follower;
    ((struct task_request *)caller)->is_admitted = true;
}

static void on_awaited_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct task_request *own = (struct task_request *)caller;

    own->is_waiting = false;
    if (outcome->kind == CALLS_KIND_REFUSED && outcome->error == CALLS_NOT_FOUND) {
        end_task_request(own, CALLS_NOT_FOUND);
        return;
    }
    if (outcome->kind != CALLS_KIND_REFUSED) {
        own->description.has_ended = true;
        own->description.outcome = *outcome;
    }
    tell_state(own, NULL);
}

static const struct calls_caller_events awaiting_events = {.on_admitted = on_awaited_admitted,
                                                           .on_end = on_awaited_end};

static void take_over(struct task_request *own)
{
    struct calls_loop *calls = own->mcp->calls;
    const struct bus_id id = own->description.id;

    own->caller.events = &awaiting_events;
    own->is_waiting = true;
    own->timer.fn = on_takeover_over;
    bus_arm(calls->bus, &own->timer, bus_now_ns(calls->bus) + (int64_t)TAKEOVER_MS * PEG_NS_PER_MS);
    gw_call_await(calls, &id, peg__str(mcp_call_request(own->call)->principal), NET_NEVER,
                  &own->caller);
}

/* ---- tasks/get ---- */

static void on_reply_told(struct calls_replying *replying, enum calls_error error, peg_str words)
{
    (void)error;
    (void)words;
    tell_state(peg__container_of(replying, struct task_request, replying), NULL);
}

/* What this client cannot be asked is answered for it: by nothing, or that it cannot be. */
static void answer_for_client(struct task_request *own, peg_str responses, peg_str refusal)
{
    own->replying.fn = on_reply_told;
    calls_reply(own->mcp->calls,
                &(struct calls_reply_request){
                    .id = &own->description.id,
                    .number = own->description.question,
                    .principal = peg__str(mcp_call_request(own->call)->principal),
                    .responses = responses,
                    .refusal = refusal,
                },
                &own->replying);
}

static void tell_question(struct task_request *own)
{
    peg_json_doc *doc = NULL;
    peg_json_doc *asked = NULL;
    peg_status status = peg_json_parse(own->description.requests, NULL, &doc, NULL);

    if (!status)
        status = mcp_call_select(own->call, peg_json_root(doc), &asked);
    if (status == PEG_EINVAL)
        answer_for_client(own, peg__str(""), peg__str("the client cannot be asked for this"));
    else if (status)
        end_task_request(own, CALLS_OVERLOADED);
    else if (peg_json_len(peg_json_root(asked)))
        tell_state(own, peg_json_root(asked));
    else
        answer_for_client(own, peg__str("{}"), peg__str(""));
    peg_json_doc_free(asked);
    peg_json_doc_free(doc);
}

static void on_described(struct calls_description *description, enum calls_error error)
{
    struct task_request *own = peg__container_of(description, struct task_request, description);

    if (error)
        end_task_request(own, error);
    else if (description->question)
        tell_question(own);
    else if (!description->has_ended && !description->is_coordinator_alive)
        take_over(own);
    else
        tell_state(own, NULL);
}

/* ---- tasks/update ---- */

/* A question that was answered before, or is over by now, needs none. */
static void on_replied(struct calls_replying *replying, enum calls_error error, peg_str words)
{
    (void)words;
    end_task_request(peg__container_of(replying, struct task_request, replying),
                     error == CALLS_CONFLICT || error == CALLS_NOT_FOUND ? CALLS_OK : error);
}

/* Those that are asked for; others are ignored. Returns how many there are. */
static size_t put_task_answers(struct peg__buf *text, const peg_json *asked,
                               const peg_json *responses)
{
    struct peg__out out = {.buf = text};
    size_t n = 0;

    peg__out_object(&out);
    PEG_JSON_EACH_MEMBER (asked, key) {
        const peg_json *response = peg_json_get_str(responses, peg_json_str(key));

        if (peg_json_kind_of(response) != PEG_JSON_OBJECT)
            continue;
        peg__out_key_str(&out, peg_json_str(key));
        peg__out_value(&out, response);
        n++;
    }
    peg__out_end_object(&out);
    return n;
}

static void send_task_answers(struct task_request *own, peg_str responses)
{
    own->replying.fn = on_replied;
    calls_reply(own->mcp->calls,
                &(struct calls_reply_request){
                    .id = &own->description.id,
                    .number = own->description.question,
                    .principal = peg__str(mcp_call_request(own->call)->principal),
                    .responses = responses,
                },
                &own->replying);
}

/* A question has one answer, which is written once: a part of it would have to be kept somewhere,
 * so none is taken. */
static void give_task_answers(struct task_request *own)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_GATEWAY_QUESTION_BYTES);
    peg_json_doc *doc = NULL;
    peg_json_doc *asked = NULL;
    peg_status status = peg_json_parse(own->description.requests, NULL, &doc, NULL);
    size_t n = 0;

    if (!status)
        status = mcp_call_select(own->call, peg_json_root(doc), &asked);
    if (!status)
        n = put_task_answers(&text, peg_json_root(asked), mcp_call_request(own->call)->responses);
    if (status == PEG_EINVAL || (!status && !n))
        end_task_request(own, CALLS_OK); /* it was not asked that */
    else if (status || text.status == PEG_ENOMEM)
        end_task_request(own, CALLS_OVERLOADED);
    else if (text.status || n < peg_json_len(peg_json_root(asked)))
        end_task_request(own, CALLS_VALIDATION);
    else
        send_task_answers(own, peg__buf_view(&text));
    peg__buf_free(&text);
    peg_json_doc_free(asked);
    peg_json_doc_free(doc);
}

static void on_described_for_update(struct calls_description *description, enum calls_error error)
{
    struct task_request *own = peg__container_of(description, struct task_request, description);

    if (!error && description->question)
        give_task_answers(own);
    else
        end_task_request(own, error);
}

/* ---- tasks/cancel ---- */

/* One that has ended before is not canceled, and needs not to be. */
static void on_stopped(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct task_request *own = (struct task_request *)caller;

    own->is_waiting = false;
    end_task_request(own, outcome->kind == CALLS_KIND_REFUSED ? outcome->error : CALLS_OK);
}

static const struct calls_caller_events stopping_events = {.on_end = on_stopped};

static void stop_task(struct task_request *own, const struct bus_id *id)
{
    own->caller.events = &stopping_events;
    own->is_waiting = true;
    gw_call_cancel(own->mcp->calls, id, peg__str(mcp_call_request(own->call)->principal),
                   &own->caller);
}

/* ---- the beginning ---- */

void gw_mcp_begin_task_request(struct gw_mcp *mcp, struct mcp_call *call)
{
    const struct mcp_request *request = mcp_call_request(call);
    const peg_str principal = peg__str(request->principal);
    struct task_request *own;
    struct bus_id id;

    if (!bus_id_parse(request->name, &id) || !calls_id_is_keyed(&id)) {
        reject_unknown_task(call);
        return;
    }
    own = peg__alloc_zero(1, sizeof(*own));
    if (!own) {
        fail_task_request(call, MCP_INTERNAL_ERROR,
                          "the gateway is out of memory: try again later");
        return;
    }
    own->mcp = mcp;
    own->call = call;
    mcp_call_set_user(call, own);
    if (request->kind == MCP_CANCEL_TASK) {
        stop_task(own, &id);
        return;
    }
    own->description.fn = request->kind == MCP_GET_TASK ? on_described : on_described_for_update;
    own->description.wants_question = true;
    calls_describe(mcp->calls, &id, &principal, &own->description);
}
