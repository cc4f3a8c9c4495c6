/* SPDX-License-Identifier: Apache-2.0 */

/* Toolsets: list, get, search, register, unregister; and the status of the node. */

#include "base/text/str.h"
#include "gateway/http/internal.h"
#include "pegboard/v1/admin.grpc.h"
#include "pegboard/v1/registry.grpc.h"

/* ---- what is there ---- */

static const struct gw_operation list_operation = {
    .rpc = "/pegboard.v1.Registry/ListToolsets",
    .take = gw_exchange_take_whole,
};

static void api_list_toolsets(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__ListToolsetsRequest *list =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__list_toolsets_request__descriptor)
                 : NULL;
    peg_str page;

    (void)body;
    if (!list || !gw_exchange_query_tags(exchange, &list->tags, &list->n_tags) ||
        !gw_exchange_query_number(exchange, "limit", &list->page_size))
        return;
    if (net_http_query(request, "page", &page))
        list->page_token = gw_api_text(page);
    gw_exchange_call(exchange, &list_operation, &list->base);
}

static const struct gw_operation search_operation = {
    .rpc = "/pegboard.v1.Registry/Search",
    .take = gw_exchange_take_whole,
};

static void api_search_toolsets(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__SearchRequest *search =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__search_request__descriptor) : NULL;
    peg_str query;

    (void)body;
    if (!search || !gw_exchange_query_tags(exchange, &search->tags, &search->n_tags) ||
        !gw_exchange_query_number(exchange, "limit", &search->limit))
        return;
    if (net_http_query(request, "q", &query))
        search->query = gw_api_text(query);
    gw_exchange_call(exchange, &search_operation, &search->base);
}

/* The toolset with its tools, as one object. */
static peg_status take_toolset(struct gw_exchange *exchange, const ProtobufCMessage *message,
                               peg_str packed)
{
    const Pegboard__V1__GetToolsetResponse *response =
        (const Pegboard__V1__GetToolsetResponse *)message;
    struct peg__out *out = &exchange->out;

    (void)packed;
    peg__out_object(out);
    gw_message_write_members(out, &response->toolset->base);
    peg__out_member(out, "stream_id", peg__str(response->stream_id));
    peg__out_key(out, "tools");
    peg__out_array(out);
    for (size_t i = 0; i < response->n_tools; i++)
        gw_message_write(out, &response->tools[i]->base);
    peg__out_end_array(out);
    peg__out_end_object(out);
    return exchange->body.status;
}

static const struct gw_operation get_operation = {
    .rpc = "/pegboard.v1.Registry/GetToolset",
    .take = take_toolset,
};

static void call_get(struct net_http_request *request, void *node,
                     const struct gw_operation *operation)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__GetToolsetRequest *get =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__get_toolset_request__descriptor)
                 : NULL;

    if (!get)
        return;
    get->name = gw_api_text(request->params[0]);
    gw_exchange_call(exchange, operation, &get->base);
}

static void api_get_toolset(struct net_http_request *request, peg_str body, void *node)
{
    (void)body;
    call_get(request, node, &get_operation);
}

static peg_status take_tool(struct gw_exchange *exchange, const ProtobufCMessage *message,
                            peg_str packed)
{
    const Pegboard__V1__GetToolsetResponse *response =
        (const Pegboard__V1__GetToolsetResponse *)message;
    const peg_str name = exchange->request->params[1];

    (void)packed;
    for (size_t i = 0; i < response->n_tools; i++) {
        if (peg__str_is(name, response->tools[i]->name)) {
            gw_message_write(&exchange->out, &response->tools[i]->base);
            break;
        }
    }
    return exchange->body.status;
}

static void reply_tool(struct gw_exchange *exchange, const struct grpc_status *status)
{
    if (status->code != GRPC_OK)
        gw_exchange_reply_problem(exchange, status);
    else if (!exchange->body.len && !exchange->body.status)
        gw_problem_reply_error(exchange->request, exchange->node, WIRE_NOT_FOUND,
                               "the toolset has no such tool: get the toolset to see its tools");
    else
        gw_exchange_reply(exchange, 200);
}

static const struct gw_operation tool_operation = {
    .rpc = "/pegboard.v1.Registry/GetToolset",
    .take = take_tool,
    .done = reply_tool,
};

static void api_get_tool(struct net_http_request *request, peg_str body, void *node)
{
    (void)body;
    call_get(request, node, &tool_operation);
}

/* ---- registering ---- */

static const struct gw_operation register_operation = {
    .rpc = "/pegboard.v1.Registry/Register",
    .take = gw_exchange_take_whole,
};

static void api_put_toolset(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__RegisterRequest *registration =
        exchange ? gw_exchange_read(exchange, &pegboard__v1__register_request__descriptor, body)
                 : NULL;

    if (!registration)
        return;
    if (registration->name[0] && !peg__str_is(request->params[0], registration->name)) {
        gw_problem_reply_error(request, node, WIRE_VALIDATION,
                               "'name' is another toolset than that of the path: leave it out");
        return;
    }
    registration->name = gw_api_text(request->params[0]);
    gw_exchange_call(exchange, &register_operation, &registration->base);
}

/* Nothing is written: 204. */
static peg_status take_nothing(struct gw_exchange *exchange, const ProtobufCMessage *message,
                               peg_str packed)
{
    (void)message;
    (void)packed;
    return exchange->body.status;
}

static const struct gw_operation unregister_operation = {
    .rpc = "/pegboard.v1.Registry/Unregister",
    .take = take_nothing,
};

static void api_delete_toolset(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__UnregisterRequest *unregister =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__unregister_request__descriptor)
                 : NULL;

    (void)body;
    if (!unregister)
        return;
    unregister->name = gw_api_text(request->params[0]);
    gw_exchange_call(exchange, &unregister_operation, &unregister->base);
}

/* ---- status ---- */

static const struct gw_operation status_operation = {
    .rpc = "/pegboard.v1.Admin/Status",
    .take = gw_exchange_take_whole,
};

static void api_get_status(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__StatusRequest *status =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__status_request__descriptor) : NULL;

    (void)body;
    if (!status)
        return;
    status->with_toolsets = true;
    gw_exchange_call(exchange, &status_operation, &status->base);
}

const struct net_http_handler gw_api_list_toolsets = GW_API_READS(api_list_toolsets);
const struct net_http_handler gw_api_get_toolset = GW_API_READS(api_get_toolset);
const struct net_http_handler gw_api_get_tool = GW_API_READS(api_get_tool);
const struct net_http_handler gw_api_put_toolset = GW_API_WRITES(api_put_toolset);
const struct net_http_handler gw_api_delete_toolset = GW_API_READS(api_delete_toolset);
const struct net_http_handler gw_api_search = GW_API_READS(api_search_toolsets);
const struct net_http_handler gw_api_status = GW_API_READS(api_get_status);
