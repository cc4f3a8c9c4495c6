/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls: which there are; and by their ids what became of one, canceling it, answering what it
 * asks.
 *
 *   GET   AwaitTool, as long as the client waits   -> its result, or what it asks
 *         DescribeCall                             -> all else
 *         AwaitTool again, if it has just ended
 */

#include "base/clock.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/http/internal.h"
#include "pegboard/tool_config.h"
#include "pegboard/v1/registry.grpc.h"

struct looking {
    struct gw_exchange exchange; /* the first member */
    int64_t wait_ms;
    struct peg__buf response; /* members of the answer, from AwaitTool */
    bool has_result;          /* they tell how the call ended, and not what it asks */
    const char *error_code;   /* of a tool that failed; NULL: it did not */
    const char *error_message;
    unsigned n_awaits;
    bool has_ended;
};

enum { A_MOMENT_MS = 1, READING_MS = 30000 };

static void await_call(struct gw_exchange *exchange);
static void describe_call(struct gw_exchange *exchange);

/* ---- AwaitTool ---- */

static void write_response(struct peg__out *out, const Pegboard__V1__CallToolResponse *response)
{
    if (response->question) {
        peg__out_key(out, "question");
        gw_message_write(out, &response->question->base);
        return;
    }
    if (response->result.len) {
        peg__out_key(out, "result");
        peg__out_raw(out, peg__strn((const char *)response->result.data, response->result.len));
    }
    peg__out_key(out, "server_data");
    peg__out_array(out);
    for (size_t i = 0; i < response->n_server_data; i++)
        gw_message_write(out, &response->server_data[i]->base);
    peg__out_end_array(out);
}

static peg_status keep_response(struct looking *looking,
                                const Pegboard__V1__CallToolResponse *response)
{
    struct peg__out out = {.buf = &looking->response};
    struct peg__arena *arena = looking->exchange.request->arena;
    const Pegboard__V1__ToolError *error = response->error;

    looking->error_code = error ? peg__arena_copy(arena, peg__str(error->code)) : NULL;
    looking->error_message = error ? peg__arena_copy(arena, peg__str(error->message)) : NULL;
    if (error && (!looking->error_code || !looking->error_message))
        return PEG_ENOMEM;
    write_response(&out, response);
    return looking->response.status;
}

static peg_status take_response(struct gw_exchange *exchange, const ProtobufCMessage *message,
                                peg_str packed)
{
    struct looking *looking = (struct looking *)exchange;
    struct peg__arena arena = {0};
    peg_status status;
    const Pegboard__V1__CallToolResponse *response =
        (const Pegboard__V1__CallToolResponse *)gw_exchange_unpack(exchange, packed, &arena);

    (void)message;
    peg__buf_clear(&looking->response);
    status = response ? keep_response(looking, response) : PEG_ENOMEM;
    looking->has_result = !status && !response->question;
    if (status)
        peg__buf_clear(&looking->response); /* half a member is no JSON */
    peg__arena_free(&arena);
    return status;
}

/* It was not awaited, and a client that heard of its state instead would ask again at once. How a
 * call ended comes with its id. */
static bool was_refused(const struct gw_exchange *exchange, const struct grpc_status *status)
{
    return (status->code == GRPC_RESOURCE_EXHAUSTED || status->code == GRPC_INVALID_ARGUMENT) &&
           !grpc_metadata_get(grpc_bridge_trailers(exchange->call), "pegboard-call-id").len;
}

/* Whatever else it was, the description tells what became of the call. */
static void go_on(struct gw_exchange *exchange, const struct grpc_status *status)
{
    if (was_refused(exchange, status))
        gw_exchange_reply_problem(exchange, status);
    else
        gw_exchange_then(exchange, describe_call);
}

static const struct gw_operation await_operation = {
    .rpc = "/pegboard.v1.Registry/AwaitTool",
    .take = take_response,
    .done = go_on,
};

static void await_call(struct gw_exchange *exchange)
{
    struct looking *looking = (struct looking *)exchange;
    Pegboard__V1__AwaitToolRequest *await =
        gw_exchange_message(exchange, &pegboard__v1__await_tool_request__descriptor);

    if (!await)
        return;
    peg__buf_clear(&looking->response); /* what a call asked that has ended since */
    await->call_id = gw_api_text(exchange->request->params[0]);
    await->timeout_ms = looking->n_awaits++ ? READING_MS : looking->wait_ms;
    await->can_be_asked = true;
    gw_exchange_call(exchange, &await_operation, &await->base);
}

/* ---- DescribeCall ---- */

static peg_status take_description(struct gw_exchange *exchange, const ProtobufCMessage *message,
                                   peg_str packed)
{
    const Pegboard__V1__DescribeCallResponse *response =
        (const Pegboard__V1__DescribeCallResponse *)message;
    struct looking *looking = (struct looking *)exchange;

    (void)packed;
    looking->has_ended =
        response->state == PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_ENDED;
    peg__buf_clear(&exchange->body);
    exchange->out.needs_comma = false;
    peg__out_object(&exchange->out);
    gw_message_write_members(&exchange->out, message);
    return exchange->body.status;
}

/* A call without an identity is forgotten when its result is read. */
static void write_unknown(struct gw_exchange *exchange)
{
    const struct looking *looking = (const struct looking *)exchange;

    peg__buf_clear(&exchange->body);
    exchange->out.needs_comma = false;
    peg__out_object(&exchange->out);
    peg__out_member(&exchange->out, "call_id", exchange->request->params[0]);
    peg__out_cmember(&exchange->out, "state", "ended");
    peg__out_cmember(&exchange->out, "outcome", looking->error_code ? "error" : "result");
    if (!looking->error_code)
        return;
    peg__out_cmember(&exchange->out, "error", looking->error_code);
    peg__out_cmember(&exchange->out, "message", looking->error_message);
}

static bool may_have_result(const struct looking *looking)
{
    return looking->has_ended && !looking->has_result && looking->n_awaits < 2;
}

static void reply_described(struct gw_exchange *exchange, const struct grpc_status *status)
{
    struct looking *looking = (struct looking *)exchange;

    if (status->code != GRPC_OK && !looking->has_result) {
        gw_exchange_reply_problem(exchange, status);
        return;
    }
    if (status->code != GRPC_OK) {
        write_unknown(exchange);
    } else if (may_have_result(looking)) {
        gw_exchange_then(exchange, await_call);
        return;
    }
    if (looking->response.len)
        peg__out_raw(&exchange->out, peg__buf_view(&looking->response));
    peg__out_end_object(&exchange->out);
    gw_exchange_reply(exchange, 200);
}

static const struct gw_operation describe_operation = {
    .rpc = "/pegboard.v1.Registry/DescribeCall",
    .take = take_description,
    .done = reply_described,
};

static void describe_call(struct gw_exchange *exchange)
{
    Pegboard__V1__DescribeCallRequest *describe =
        gw_exchange_message(exchange, &pegboard__v1__describe_call_request__descriptor);

    if (!describe)
        return;
    describe->call_id = gw_api_text(exchange->request->params[0]);
    gw_exchange_call(exchange, &describe_operation, &describe->base);
}

/* "30s", "1m30s", or seconds. False: it is none. */
static bool read_wait(struct net_http_request *request, int64_t *ret_ms)
{
    peg_str text;
    int64_t number = 0;
    size_t n = 0;

    *ret_ms = A_MOMENT_MS;
    if (!net_http_query(request, "wait", &text))
        return true;
    for (; n < text.len && n < 6 && peg__is_digit(text.ptr[n]); n++)
        number = number * 10 + (text.ptr[n] - '0');
    if (n && n == text.len)
        *ret_ms = number * 1000;
    else if (peg_duration_parse(text, &number, NULL) == PEG_OK)
        *ret_ms = number / PEG_NS_PER_MS;
    else
        return false;
    if (*ret_ms < A_MOMENT_MS)
        *ret_ms = A_MOMENT_MS;
    return true;
}

static void api_get_call(struct net_http_request *request, peg_str body, void *node)
{
    struct looking *looking = gw_exchange_new(request, node, sizeof(*looking));

    (void)body;
    if (!looking)
        return;
    looking->response.max = (size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES;
    if (read_wait(request, &looking->wait_ms))
        await_call(&looking->exchange);
    else
        gw_problem_reply_error(request, node, WIRE_INVALID_RANGE,
                               "'wait' has to be a duration such as 30s");
}

static void end_look(struct net_http_request *request, void *node)
{
    struct looking *looking = request->state;

    if (looking)
        peg__buf_free(&looking->response);
    gw_exchange_on_end(request, node);
}

/* ---- canceling and answering: 204 ---- */

static peg_status take_nothing(struct gw_exchange *exchange, const ProtobufCMessage *message,
                               peg_str packed)
{
    (void)message;
    (void)packed;
    return exchange->body.status;
}

static const struct gw_operation cancel_operation = {
    .rpc = "/pegboard.v1.Registry/CancelTool",
    .take = take_nothing,
};

static void api_delete_call(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__CancelToolRequest *cancel =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__cancel_tool_request__descriptor)
                 : NULL;

    (void)body;
    if (!cancel)
        return;
    cancel->call_id = gw_api_text(request->params[0]);
    gw_exchange_call(exchange, &cancel_operation, &cancel->base);
}

static const struct gw_operation answer_operation = {
    .rpc = "/pegboard.v1.Registry/AnswerCall",
    .take = take_nothing,
};

static void api_answer_call(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__AnswerCallRequest *answer =
        exchange ? gw_exchange_read(exchange, &pegboard__v1__answer_call_request__descriptor, body)
                 : NULL;

    if (!answer)
        return;
    answer->call_id = gw_api_text(request->params[0]);
    gw_exchange_call(exchange, &answer_operation, &answer->base);
}

/* ---- which there are ---- */

static const struct gw_operation list_operation = {
    .rpc = "/pegboard.v1.Registry/ListCalls",
    .take = gw_exchange_take_whole,
};

/* "waiting", "running", "ended", or nothing. False: it is another word. */
static bool read_state(struct net_http_request *request,
                       Pegboard__V1__DescribeCallResponse__State *ret_state)
{
    const ProtobufCEnumDescriptor *type = &pegboard__v1__describe_call_response__state__descriptor;
    char text[GW_ENUM_TEXT];
    peg_str state;

    if (!net_http_query(request, "state", &state))
        return true;
    for (unsigned i = 1; i < type->n_values; i++) {
        gw_message_enum_text(type, type->values[i].name, text);
        if (peg__str_is(state, text)) {
            *ret_state = (Pegboard__V1__DescribeCallResponse__State)type->values[i].value;
            return true;
        }
    }
    return false;
}

static char *query_text(struct net_http_request *request, const char *name)
{
    peg_str text;

    return gw_api_text(net_http_query(request, name, &text) ? text : (peg_str){"", 0});
}

static void api_list_calls(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__ListCallsRequest *list =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__list_calls_request__descriptor)
                 : NULL;

    (void)body;
    if (!list || !gw_exchange_query_number(exchange, "limit", &list->page_size))
        return;
    if (!read_state(request, &list->state)) {
        gw_problem_reply_error(request, node, WIRE_INVALID_FORMAT,
                               "'state' has to be waiting, running or ended");
        return;
    }
    list->toolset = query_text(request, "toolset");
    list->tool = query_text(request, "tool");
    list->page_token = query_text(request, "page");
    gw_exchange_call(exchange, &list_operation, &list->base);
}

const struct net_http_handler gw_api_list_calls = GW_API_READS(api_list_calls);
const struct net_http_handler gw_api_get_call = {
    .on_head = gw_api_check_reader,
    .on_request = api_get_call,
    .on_writable = gw_exchange_on_writable,
    .on_end = end_look,
    .max_body = GW_API_NO_BODY,
};
const struct net_http_handler gw_api_delete_call = GW_API_READS(api_delete_call);
const struct net_http_handler gw_api_answer_call = {
    .on_head = gw_api_check_writer,
    .on_request = api_answer_call,
    .on_writable = gw_exchange_on_writable,
    .on_end = gw_exchange_on_end,
    /* Answers are as long as questions may be; as JSON they may be escaped. */
    .max_body = (size_t)8 * PEG_LIMIT_GATEWAY_QUESTION_BYTES,
};
