/* SPDX-License-Identifier: Apache-2.0 */

/* What running calls ask: the frames Input and Answer of Attach, and AnswerCall. */

#include "base/limits.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "gateway/access/access.h"
#include "gateway/rpc/attached.h"
#include "gateway/rpc/rpc.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "wire/wire.h"

/* ---- Attach ---- */

bool gw_attached_answer(void *user, const struct calls_answered *answered)
{
    struct gw_attached *attached = (struct gw_attached *)user;
    struct peg__buf *frame = &attached->calls->frame;
    char id[BUS_ID_TEXT];
    size_t size;
    char *start;
    char *at;

    if (!attached->was_welcomed)
        return false; /* Welcome goes before any other frame */
    bus_id_print(answered->id, id);
    size = wire_bytes_size(peg__str(id)) + wire_number_size(answered->attempt) +
           wire_number_size(answered->number) + wire_bytes_size(answered->responses) +
           wire_bytes_size(answered->refusal);
    peg__buf_clear(frame);
    start = peg__buf_reserve(frame, size + 1 + WIRE_MAX_VARINT);
    if (!start)
        return false;
    at = wire_put_head(start, PEGBOARD_V1_ATTACH_RESPONSE_ANSWER_FIELD, size);
    at = wire_put_bytes(at, PEGBOARD_V1_ANSWER_CALL_ID_FIELD, peg__str(id));
    at = wire_put_number(at, PEGBOARD_V1_ANSWER_ATTEMPT_FIELD, answered->attempt);
    at = wire_put_number(at, PEGBOARD_V1_ANSWER_NUMBER_FIELD, answered->number);
    at = wire_put_bytes(at, PEGBOARD_V1_ANSWER_RESPONSES_FIELD, answered->responses);
    at = wire_put_bytes(at, PEGBOARD_V1_ANSWER_REFUSAL_FIELD, answered->refusal);
    return grpc_call_send(attached->call, peg__strn(start, (size_t)(at - start)), NULL) == PEG_OK;
}

/* The stream may have no room: then the provider waits until its call ends. */
static void refuse_input(struct gw_attached *attached, const struct bus_id *id,
                         const Pegboard__V1__Input *input, const char *why)
{
    (void)gw_attached_answer(attached, &(struct calls_answered){.id = id,
                                                                .attempt = input->attempt,
                                                                .number = input->number,
                                                                .refusal = peg__str(why)});
}

static bool is_requests(struct calls_loop *calls, peg_str json)
{
    return calls_check_now(calls, NULL, json, "requests") == PEG_OK &&
           peg_json_kind_of(peg_json_root(calls->doc)) == PEG_JSON_OBJECT;
}

void gw_attached_input(struct gw_attached *attached, const Pegboard__V1__Input *input)
{
    const peg_str requests = {(const char *)input->requests.data, input->requests.len};
    struct bus_id id;

    if (!bus_id_parse(peg__str(input->call_id), &id))
        return;
    if (input->withdrawn)
        calls_provider_withdraw(attached->provider, &id, input->attempt, input->number);
    else if (requests.len > PEG_LIMIT_GATEWAY_QUESTION_BYTES)
        refuse_input(attached, &id, input, "the question has more than 64 KiB: ask with less");
    else if (!is_requests(attached->calls, requests))
        refuse_input(attached, &id, input, "the question is no JSON object of requests by key");
    else if (!calls_provider_input(attached->provider, &id, input->attempt, input->number,
                                   requests))
        refuse_input(attached, &id, input,
                     "the call cannot be asked, or the gateway is out of memory");
}

/* ---- AnswerCall ---- */

struct answering {
    struct calls_replying replying; /* the first member */
    struct grpc_call *call;
};

static void on_replied(struct calls_replying *replying, enum calls_error error, peg_str words)
{
    struct answering *answering = (struct answering *)replying;

    if (error)
        gw_fail(answering->call, gw_error_of_call(error), words);
    else
        grpc_call_reply(answering->call, peg__str(""));
}

/* NULL: it may be taken. */
static const char *find_answer_fault(const Pegboard__V1__AnswerCallRequest *request)
{
    if (!request->number || request->number > PEG_LIMIT_GATEWAY_QUESTIONS)
        return "number is that of a question: 1 to 32";
    if (!request->responses.len == !request->refusal[0])
        return "an answer has responses, or else a refusal";
    if (request->responses.len > PEG_LIMIT_GATEWAY_QUESTION_BYTES ||
        peg__str(request->refusal).len > PEG_LIMIT_GATEWAY_MESSAGE_BYTES)
        return "an answer has at most 64 KiB of responses, or 8 KiB of refusal";
    return NULL;
}

void gw_serve_answer_call(struct grpc_call *call, const Pegboard__V1__AnswerCallRequest *request,
                          void *node)
{
    struct calls_loop *calls = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    const char *fault = find_answer_fault(request);
    struct answering *answering =
        (struct answering *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*answering));
    struct bus_id id;
    const struct calls_reply_request reply = {
        .id = &id,
        .number = request->number,
        .principal = gw_call_principal(call)->name,
        .responses = {(const char *)request->responses.data, request->responses.len},
        .refusal = peg__str(request->refusal),
    };

    if (!bus_id_parse(peg__str(request->call_id), &id)) {
        gw_fail(call, WIRE_VALIDATION,
                peg__str("call_id is not one that this gateway gave out: 64 hexadecimal digits"));
    } else if (fault) {
        gw_fail(call, WIRE_VALIDATION, peg__str(fault));
    } else if (!answering) {
        gw_fail_memory(call);
    } else {
        answering->call = call;
        answering->replying.fn = on_replied;
        grpc_call_set_state(call, answering);
        calls_reply(calls, &reply, &answering->replying);
    }
}

void gw_serve_answer_call_on_end(struct grpc_call *call, void *node)
{
    struct answering *answering = (struct answering *)grpc_call_state(call);

    (void)node;
    if (answering)
        calls_replying_forget(&answering->replying);
}
