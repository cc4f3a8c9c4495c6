/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /v1/toolsets/{toolset}/tools/{tool}/calls: the arguments are the body.
 *
 *   (nothing)                    CallTool: the result is the answer
 *   Accept: text/event-stream    CallToolStream: started, output, input, result or error
 *   Prefer: respond-async        StartTool: 202, and Location
 *   Prefer: wait=SECONDS         the deadline
 *   Idempotency-Key              the identity of the call
 *   ?ask=true                    the tool may ask, where there is a way to answer
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/str.h"
#include "gateway/http/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "pegboard/v1/registry.grpc.h"
#include "wire/pack.h"

struct starting {
    struct gw_exchange exchange; /* the first member */
    char location[128];
};

/* ---- a result ---- */

static void reply_tool_error(struct gw_exchange *exchange, peg_str packed, peg_str error)
{
    const peg_str message = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD);
    const struct gw_problem problem = {
        .type = "tool_error",
        .status = 422,
        .detail = message,
        .code = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD),
        .call_id = wire_find_bytes(packed, PEGBOARD_V1_CALL_TOOL_RESPONSE_CALL_ID_FIELD),
        .started = PEG_LIT("true"),
        .epoch = grpc_metadata_get(grpc_bridge_headers(exchange->call), "pegboard-epoch"),
    };

    gw_problem_reply(exchange->request, exchange->node, &problem);
}

/* The result is sent from where it lies. */
static peg_status reply_call_result(struct gw_exchange *exchange, const ProtobufCMessage *message,
                                    peg_str packed)
{
    const peg_str error = wire_find_bytes(packed, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);
    const peg_str result = wire_find_bytes(packed, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD);
    struct gw_answer answer;

    (void)message;
    if (error.ptr) {
        reply_tool_error(exchange, packed, error);
        return PEG_OK;
    }
    gw_answer_init(&answer, exchange->request, exchange->node, 200, "application/json");
    gw_answer_add(&answer, "pegboard-call-id",
                  wire_find_bytes(packed, PEGBOARD_V1_CALL_TOOL_RESPONSE_CALL_ID_FIELD));
    gw_answer_add(&answer, "pegboard-epoch",
                  grpc_metadata_get(grpc_bridge_headers(exchange->call), "pegboard-epoch"));
    net_http_reply(exchange->request, &answer.answer, result.len ? result : peg__str("null"));
    return PEG_OK;
}

static void reply_failed(struct gw_exchange *exchange, const struct grpc_status *status)
{
    if (status->code != GRPC_OK)
        gw_exchange_reply_problem(exchange, status);
}

static const struct gw_operation call_operation = {
    .rpc = "/pegboard.v1.Registry/CallTool",
    .take = reply_call_result,
    .done = reply_failed,
};

/* ---- a stream ---- */

static peg_status take_event(struct gw_exchange *exchange, const ProtobufCMessage *message,
                             peg_str packed)
{
    struct peg__arena arena = {0};
    const Pegboard__V1__CallToolStreamResponse *response =
        (const Pegboard__V1__CallToolStreamResponse *)gw_exchange_unpack(exchange, packed, &arena);
    const char *event = NULL;
    const ProtobufCMessage *data = NULL;
    peg_status status = PEG_ENOMEM;

    (void)message;
    switch (response ? response->event_case
                     : PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT__NOT_SET) {
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_STARTED:
        event = "started";
        data = &response->started->base;
        break;
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_OUTPUT:
        event = "output";
        data = &response->output->base;
        break;
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_QUESTION:
        event = "input";
        data = &response->question->base;
        break;
    case PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_RESULT:
        event = "result";
        data = &response->result->base;
        break;
    default:
        break;
    }
    if (data) {
        gw_message_write(&exchange->out, data);
        status = gw_exchange_send_event(exchange, event, NULL);
    }
    peg__arena_free(&arena);
    return status;
}

static const struct gw_operation stream_operation = {
    .rpc = "/pegboard.v1.Registry/CallToolStream",
    .take = take_event,
    .done = gw_exchange_end_events,
};

/* ---- one that is not waited for ---- */

static peg_status take_started(struct gw_exchange *exchange, const ProtobufCMessage *message,
                               peg_str packed)
{
    const Pegboard__V1__StartToolResponse *response =
        (const Pegboard__V1__StartToolResponse *)message;
    struct starting *starting = (struct starting *)exchange;

    snprintf(starting->location, sizeof(starting->location), "/v1/calls/%s", response->call_id);
    return gw_exchange_take_whole(exchange, message, packed);
}

static void reply_started(struct gw_exchange *exchange, const struct grpc_status *status)
{
    const struct starting *starting = (const struct starting *)exchange;
    struct gw_answer answer;

    if (status->code != GRPC_OK) {
        gw_exchange_reply_problem(exchange, status);
        return;
    }
    gw_answer_init(&answer, exchange->request, exchange->node, 202, "application/json");
    gw_answer_add(&answer, "location", peg__str(starting->location));
    gw_answer_add(&answer, "preference-applied", peg__str("respond-async"));
    gw_exchange_reply_as(exchange, &answer);
}

static const struct gw_operation start_operation = {
    .rpc = "/pegboard.v1.Registry/StartTool",
    .take = take_started,
    .done = reply_started,
};

/* ---- what the client prefers (RFC 7240) ---- */

struct preferences {
    bool is_async;
    int64_t wait_ms; /* 0: it does not say */
};

static peg_str trimmed(peg_str text)
{
    while (text.len && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text = peg__str_from(text, 1);
    while (text.len && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static bool starts_as(peg_str text, const char *word)
{
    return text.len >= strlen(word) && strncasecmp(text.ptr, word, strlen(word)) == 0;
}

static void read_preference(peg_str word, struct preferences *preferences)
{
    int64_t seconds = 0;

    if (word.len == strlen("respond-async") && starts_as(word, "respond-async"))
        preferences->is_async = true;
    if (!starts_as(word, "wait="))
        return;
    for (size_t i = strlen("wait="); i < word.len && peg__is_digit(word.ptr[i]); i++)
        seconds = seconds < 1000000 ? seconds * 10 + (word.ptr[i] - '0') : seconds;
    preferences->wait_ms = seconds * 1000;
}

/* What it does not know is ignored, as the RFC wants. */
static struct preferences read_preferences(const struct net_http_request *request)
{
    struct preferences preferences = {0};

    for (size_t i = 0; i < request->n_fields; i++) {
        const struct net_http_field *field = &request->fields[i];
        peg_str rest = field->value;

        while (field->name.len == strlen("prefer") && starts_as(field->name, "prefer") &&
               rest.len) {
            const char *comma = memchr(rest.ptr, ',', rest.len);
            const size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;

            read_preference(trimmed(peg__strn(rest.ptr, len)), &preferences);
            rest = peg__str_from(rest, comma ? len + 1 : len);
        }
    }
    return preferences;
}

/* It may be a string of structured fields, in quotes. NULL: no memory. */
static char *copy_key(struct net_http_request *request)
{
    peg_str key = net_http_field(request, "idempotency-key");

    if (key.len >= 2 && key.ptr[0] == '"' && key.ptr[key.len - 1] == '"')
        key = peg__strn(key.ptr + 1, key.len - 2);
    return peg__arena_copy(request->arena, key);
}

static bool wants_events(const struct net_http_request *request)
{
    const peg_str accept = net_http_field(request, "accept");

    return accept.len && memmem(accept.ptr, accept.len, "text/event-stream", 17);
}

static bool may_ask(struct net_http_request *request)
{
    peg_str ask;

    return net_http_query(request, "ask", &ask) && peg__str_is(ask, "true");
}

static void api_start_call(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(struct starting));
    Pegboard__V1__CallToolRequest *call =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__call_tool_request__descriptor)
                 : NULL;
    const struct preferences preferences = read_preferences(request);
    char *key = call ? copy_key(request) : NULL;

    if (!call)
        return;
    call->toolset = gw_api_text(request->params[0]);
    call->tool = gw_api_text(request->params[1]);
    call->payload = (ProtobufCBinaryData){.len = body.len, .data = (uint8_t *)gw_api_text(body)};
    call->timeout_ms = preferences.wait_ms;
    call->can_be_asked = may_ask(request);
    if (key)
        call->idempotency_key = key;
    if (!key)
        net_http_reset(request);
    else if (preferences.is_async)
        gw_exchange_call(exchange, &start_operation, &call->base);
    else if (wants_events(request))
        gw_exchange_call(exchange, &stream_operation, &call->base);
    else
        gw_exchange_call(exchange, &call_operation, &call->base);
}

const struct net_http_handler gw_api_start_call = GW_API_WRITES(api_start_call);
