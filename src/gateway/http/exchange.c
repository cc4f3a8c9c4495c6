/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request of HTTP becomes one call of gRPC, or several, one after the other:
 *
 *   gw_exchange_call   ->  the interceptors and the handler of the method
 *   bridge_send...     <-  its messages    -> take
 *   bridge_finish      <-  its status      -> done: answers, or goes on with gw_exchange_then()
 *
 * The call ends with the request: a client that goes has left the call as if it had used gRPC.
 */

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/http/internal.h"
#include "grpc/message.h"

/* ---- answers ---- */

void gw_exchange_reply_as(struct gw_exchange *exchange, struct gw_answer *answer)
{
    const peg_str epoch =
        exchange->call ? grpc_metadata_get(grpc_bridge_headers(exchange->call), "pegboard-epoch")
                       : peg__strn("", 0);
    const struct gw_problem unsent = {
        .type = wire_error_name(WIRE_OVERLOADED),
        .status = 503,
        .detail = PEG_LIT("the answer is too large, or the gateway is out of memory"),
        .epoch = epoch,
    };

    gw_answer_add(answer, "pegboard-epoch", epoch);
    if (exchange->body.status)
        gw_problem_reply(exchange->request, exchange->node, &unsent);
    else
        net_http_reply(exchange->request, &answer->answer, peg__buf_view(&exchange->body));
}

void gw_exchange_reply(struct gw_exchange *exchange, int status)
{
    const bool is_empty = !exchange->body.len && !exchange->body.status;
    struct gw_answer answer;

    gw_answer_init(&answer, exchange->request, exchange->node, is_empty ? 204 : status,
                   is_empty ? NULL : "application/json");
    gw_exchange_reply_as(exchange, &answer);
}

void gw_exchange_reply_problem(struct gw_exchange *exchange, const struct grpc_status *status)
{
    struct gw_problem problem;

    gw_problem_of(exchange->call, status, &problem);
    gw_problem_reply(exchange->request, exchange->node, &problem);
}

/* ---- streams of events ---- */

static void arm_keepalive(struct gw_exchange *exchange)
{
    struct net_loop *loop = exchange->request->loop;

    net_loop_arm(loop, &exchange->keepalive,
                 peg__clock_after_ms(net_loop_now_ns(loop), PEG_LIMIT_GATEWAY_MCP_KEEPALIVE_MS));
}

static void on_keepalive(struct net_timer *timer)
{
    struct gw_exchange *exchange = peg__container_of(timer, struct gw_exchange, keepalive);

    if (net_http_is_writable(exchange->request))
        (void)net_http_send_comment(exchange->request, NULL);
    arm_keepalive(exchange);
}

static peg_status begin_events(struct gw_exchange *exchange)
{
    struct gw_answer answer;
    peg_status status;

    if (exchange->is_streaming)
        return PEG_OK;
    gw_answer_init(&answer, exchange->request, exchange->node, 200, "text/event-stream");
    gw_answer_add(&answer, "x-accel-buffering", peg__str("no"));
    if (exchange->call)
        gw_answer_add(&answer, "pegboard-epoch",
                      grpc_metadata_get(grpc_bridge_headers(exchange->call), "pegboard-epoch"));
    status = net_http_begin(exchange->request, &answer.answer, NET_HTTP_STREAM, NULL);
    if (status)
        return status;
    exchange->is_streaming = true;
    exchange->keepalive.fn = on_keepalive;
    arm_keepalive(exchange);
    return PEG_OK;
}

peg_status gw_exchange_send_event(struct gw_exchange *exchange, const char *event, const char *id)
{
    peg_status status = exchange->body.status ? exchange->body.status : begin_events(exchange);

    if (!status)
        status =
            net_http_send_event(exchange->request, event, id, peg__buf_view(&exchange->body), NULL);
    peg__buf_clear(&exchange->body);
    exchange->out.needs_comma = false;
    return status;
}

void gw_exchange_end_events(struct gw_exchange *exchange, const struct grpc_status *status)
{
    struct gw_problem problem;
    peg_status sent = PEG_OK;

    if (!exchange->is_streaming && status->code != GRPC_OK) {
        gw_exchange_reply_problem(exchange, status);
        return;
    }
    if (status->code != GRPC_OK) {
        gw_problem_of(exchange->call, status, &problem);
        gw_problem_write(&exchange->out, &problem);
        sent = gw_exchange_send_event(exchange, "error", NULL);
    } else {
        sent = begin_events(exchange);
    }
    net_loop_disarm(exchange->request->loop, &exchange->keepalive);
    if (sent)
        net_http_reset(exchange->request);
    else
        net_http_finish(exchange->request);
}

/* ---- the bridge ---- */

static peg_status bridge_send(struct grpc_call *call, peg_str message, void *user)
{
    struct gw_exchange *exchange = (struct gw_exchange *)user;

    (void)call;
    return exchange->operation->take(exchange, NULL, message);
}

static peg_status bridge_send_message(struct grpc_call *call, const ProtobufCMessage *message,
                                      void *user)
{
    struct gw_exchange *exchange = (struct gw_exchange *)user;

    (void)call;
    return exchange->operation->take(exchange, message, peg__strn("", 0));
}

static bool bridge_is_writable(void *user)
{
    const struct gw_exchange *exchange = (const struct gw_exchange *)user;

    return !exchange->is_streaming || net_http_is_writable(exchange->request);
}

static void bridge_finish(struct grpc_call *call, const struct grpc_status *status, void *user)
{
    struct gw_exchange *exchange = (struct gw_exchange *)user;

    (void)call;
    if (exchange->operation->done)
        exchange->operation->done(exchange, status);
    else if (status->code == GRPC_OK)
        gw_exchange_reply(exchange, 200);
    else
        gw_exchange_reply_problem(exchange, status);
}

static void bridge_authenticate(peg_str principal, void *user)
{
    const struct gw_exchange *exchange = (const struct gw_exchange *)user;

    net_http_authenticate(exchange->request, principal);
}

static const struct grpc_bridge_ops bridge_ops = {
    .send = bridge_send,
    .send_message = bridge_send_message,
    .is_writable = bridge_is_writable,
    .finish = bridge_finish,
    .authenticate = bridge_authenticate,
};

/* ---- its life ---- */

static void reply_out_of_memory(struct gw_exchange *exchange)
{
    gw_problem_reply_error(exchange->request, exchange->node, WIRE_OVERLOADED,
                           "the gateway is out of memory: try again later");
}

void *gw_exchange_new(struct net_http_request *request, struct gw_node *node, size_t size)
{
    struct gw_exchange *exchange =
        (struct gw_exchange *)peg__arena_alloc_zero(request->arena, size);

    if (!exchange) {
        gw_problem_reply_error(request, node, WIRE_OVERLOADED,
                               "the gateway is out of memory: try again later");
        return NULL;
    }
    exchange->request = request;
    exchange->node = node;
    exchange->bridge = (struct grpc_bridge){
        .ops = &bridge_ops,
        .user = exchange,
        .peer = request->peer,
        .peer_name = request->peer_name,
        .is_local = request->is_local,
    };
    exchange->body.max = (size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES;
    exchange->out.buf = &exchange->body;
    request->state = exchange;
    return exchange;
}

/* A list such as baggage may come in several fields: the handler joins them. */
static bool add_each(struct gw_exchange *exchange, const char *name)
{
    const struct net_http_request *request = exchange->request;
    const peg_str key = peg__str(name);

    for (size_t i = 0; i < request->n_fields; i++) {
        const struct net_http_field *field = &request->fields[i];

        if (field->name.len == key.len && strncasecmp(field->name.ptr, name, key.len) == 0 &&
            field->value.len && grpc_bridge_add_metadata(exchange->call, key, field->value))
            return false;
    }
    return true;
}

/* What a client of gRPC would send as metadata. */
static bool add_fields(struct gw_exchange *exchange)
{
    static const char *const names[] = {"authorization", "traceparent", "tracestate", "baggage",
                                        "pegboard-asked-epoch"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!add_each(exchange, names[i]))
            return false;
    }
    return true;
}

void gw_exchange_call(struct gw_exchange *exchange, const struct gw_operation *operation,
                      const ProtobufCMessage *message)
{
    peg_error error;

    exchange->operation = operation;
    if (grpc_bridge_open(exchange->node->server, exchange->request->loop, operation->rpc,
                         &exchange->bridge, &exchange->call, &error))
        gw_problem_reply_failed(exchange->request, exchange->node, &error);
    else if (!add_fields(exchange))
        reply_out_of_memory(exchange);
    else
        grpc_bridge_start(exchange->call, message);
}

static void on_next(struct net_later *later)
{
    struct gw_exchange *exchange = peg__container_of(later, struct gw_exchange, later);

    exchange->call = grpc_bridge_end(exchange->call, false);
    exchange->next(exchange);
}

void gw_exchange_then(struct gw_exchange *exchange, void (*next)(struct gw_exchange *exchange))
{
    exchange->next = next;
    exchange->later.fn = on_next;
    net_loop_later(exchange->request->loop, &exchange->later);
}

void gw_exchange_on_writable(struct net_http_request *request, void *node)
{
    const struct gw_exchange *exchange = request->state;

    (void)node;
    if (exchange && exchange->call)
        grpc_bridge_writable(exchange->call);
}

void gw_exchange_on_end(struct net_http_request *request, void *node)
{
    struct gw_exchange *exchange = request->state;

    (void)node;
    if (!exchange)
        return;
    net_loop_not_later(request->loop, &exchange->later);
    net_loop_disarm(request->loop, &exchange->keepalive);
    if (exchange->call)
        exchange->call = grpc_bridge_end(exchange->call, request->was_lost);
    peg__buf_free(&exchange->body);
}

/* ---- messages ---- */

const ProtobufCMessage *gw_exchange_unpack(struct gw_exchange *exchange, peg_str packed,
                                           struct peg__arena *arena)
{
    const ProtobufCMessage *message = NULL;

    if (grpc_message_unpack(grpc_call_method(exchange->call)->output, arena, packed, &message,
                            NULL))
        return NULL;
    return message;
}

peg_status gw_exchange_take_whole(struct gw_exchange *exchange, const ProtobufCMessage *message,
                                  peg_str packed)
{
    struct peg__arena arena = {0};

    if (!message)
        message = gw_exchange_unpack(exchange, packed, &arena);
    if (message)
        gw_message_write(&exchange->out, message);
    peg__arena_free(&arena);
    return message ? exchange->body.status : PEG_ENOMEM;
}

void *gw_exchange_message(struct gw_exchange *exchange, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message =
        (ProtobufCMessage *)peg__arena_alloc_zero(exchange->request->arena, type->sizeof_message);

    if (message)
        type->message_init(message);
    else
        reply_out_of_memory(exchange);
    return message;
}

void *gw_exchange_read(struct gw_exchange *exchange, const ProtobufCMessageDescriptor *type,
                       peg_str body)
{
    ProtobufCMessage *message = NULL;
    peg_json_doc *doc = NULL;
    peg_error error;
    peg_status status = peg_json_parse(body, &peg__json_refuse_duplicates, &doc, &error);

    if (!status)
        status =
            gw_message_read(exchange->request->arena, type, peg_json_root(doc), &message, &error);
    peg_json_doc_free(doc);
    if (!status)
        return message;
    gw_problem_reply_failed(exchange->request, exchange->node, &error);
    return NULL;
}

/* ---- queries ---- */

bool gw_exchange_query_number(struct gw_exchange *exchange, const char *name, uint32_t *ret_number)
{
    peg_str text;
    uint32_t number = 0;
    size_t n = 0;

    *ret_number = 0;
    if (!net_http_query(exchange->request, name, &text))
        return true;
    for (; n < text.len && n < 9 && peg__is_digit(text.ptr[n]); n++)
        number = number * 10 + (uint32_t)(text.ptr[n] - '0');
    *ret_number = number;
    if (n && n == text.len)
        return true;
    gw_problem_reply_error(exchange->request, exchange->node, WIRE_INVALID_RANGE,
                           "a parameter that has to be a number is none");
    return false;
}

bool gw_exchange_query_tags(struct gw_exchange *exchange, char ***ret_tags, size_t *ret_n)
{
    struct net_http_request *request = exchange->request;
    peg_str rest = request->query;
    peg_str tag = {"", 0};
    char **tags;

    *ret_n = 0;
    *ret_tags = NULL;
    tags = (char **)peg__arena_alloc_zero(request->arena,
                                          (PEG_LIMIT_GATEWAY_TAGS + 2) * sizeof(*tags));
    if (!tags) {
        reply_out_of_memory(exchange);
        return false;
    }
    while (*ret_n <= PEG_LIMIT_GATEWAY_TAGS && net_http_query_next(request, "tag", &rest, &tag))
        tags[(*ret_n)++] = gw_api_text(tag);
    /* With one tag less the answer would be wider than what was asked for. */
    if (!tag.ptr) {
        gw_problem_reply_error(request, exchange->node, WIRE_INVALID_FORMAT,
                               "a 'tag' is no percent-encoded UTF-8");
        return false;
    }
    *ret_tags = tags;
    return true;
}
