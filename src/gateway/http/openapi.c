/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /openapi.json: the API as OpenAPI 3.1. Its schemas come from the descriptors of the messages,
 * so that they are what message.c writes. With ?toolset= it has one operation for each tool, with
 * the tool's own schemas.
 */

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "gateway/http/internal.h"
#include "pegboard/common.h"
#include "pegboard/v1/admin.grpc.h"
#include "pegboard/v1/registry.grpc.h"

/* ---- operations ---- */

struct operation {
    const char *path;
    const char *method;
    const char *id;
    const char *summary;
    const char *query;  /* names between blanks; '*': several, '#': a number */
    const char *body;   /* the schema of the request; NULL: none; "": any JSON */
    const char *answer; /* that of 200; NULL: 204; "": any JSON */
};

/* Those of a path stand together. */
static const struct operation operations[] = {
    {"/v1/toolsets", "get", "listToolsets", "Lists toolsets by name", "tag* limit# page", NULL,
     "ListToolsetsResponse"},
    {"/v1/toolsets/{toolset}", "get", "getToolset", "A toolset with its tools", "", NULL,
     "Toolset"},
    {"/v1/toolsets/{toolset}", "put", "registerToolset", "Registers a toolset", "",
     "RegisterRequest", "RegisterResponse"},
    {"/v1/toolsets/{toolset}", "delete", "unregisterToolset", "Unregisters a toolset", "", NULL,
     NULL},
    {"/v1/toolsets/{toolset}/tools/{tool}", "get", "getTool", "One tool with its schemas", "", NULL,
     "Tool"},
    {"/v1/toolsets/{toolset}/tools/{tool}/calls", "post", "callTool",
     "Calls a tool: the body is its arguments, the answer its result", "ask", "", ""},
    {"/v1/calls", "get", "listCalls", "Calls that run or ended lately, newest first",
     "state toolset tool limit# page", NULL, "ListCallsResponse"},
    {"/v1/calls/{call}", "get", "getCall", "What became of a call", "wait", NULL, "Call"},
    {"/v1/calls/{call}", "delete", "cancelCall", "Cancels a call", "", NULL, NULL},
    {"/v1/calls/{call}/answers", "post", "answerCall", "Answers what the tool of a call asks", "",
     "AnswerCallRequest", NULL},
    {"/v1/search", "get", "search", "The toolsets that fit best", "q tag* limit#", NULL,
     "SearchResponse"},
    {"/v1/status", "get", "getStatus", "The node and its toolsets, for operators", "", NULL,
     "StatusResponse"},
    {"/v1/watch", "get", "watch", "A stream of changes of the catalog", "tag*", NULL, "events"},
};

static const ProtobufCMessageDescriptor *const answers[] = {
    &pegboard__v1__toolset_info__descriptor,
    &pegboard__v1__health__descriptor,
    &pegboard__v1__list_toolsets_response__descriptor,
    &pegboard__v1__search_response__descriptor,
    &pegboard__v1__search_response__hit__descriptor,
    &pegboard__v1__register_response__descriptor,
    &pegboard__v1__describe_call_response__descriptor,
    &pegboard__v1__describe_call_response__attempt__descriptor,
    &pegboard__v1__list_calls_response__descriptor,
    &pegboard__v1__call_info__descriptor,
    &pegboard__v1__start_tool_response__descriptor,
    &pegboard__v1__question__descriptor,
    &pegboard__v1__server_data__descriptor,
    &pegboard__v1__status_response__descriptor,
    &pegboard__v1__node_info__descriptor,
    &pegboard__v1__outcomes__descriptor,
    &pegboard__v1__toolset_status__descriptor,
    &pegboard__v1__registry_totals__descriptor,
};
static const ProtobufCMessageDescriptor *const bodies[] = {
    &pegboard__v1__register_request__descriptor,
    &pegboard__v1__tool__descriptor,
    &pegboard__v1__answer_call_request__descriptor,
};

/* What routes answer that is no message. */
static const char own_schemas[] =
    "\"Toolset\":{\"allOf\":[{\"$ref\":\"#/components/schemas/ToolsetInfo\"},{\"type\":\"object\","
    "\"properties\":{\"stream_id\":{\"type\":\"string\"},\"tools\":{\"type\":\"array\",\"items\":"
    "{\"$ref\":\"#/components/schemas/Tool\"}}},\"required\":[\"stream_id\",\"tools\"]}]},"
    "\"Call\":{\"allOf\":[{\"$ref\":\"#/components/schemas/DescribeCallResponse\"},{\"type\":"
    "\"object\",\"properties\":{\"result\":{},\"server_data\":{\"type\":\"array\",\"items\":"
    "{\"$ref\":\"#/components/schemas/ServerData\"}},\"question\":"
    "{\"$ref\":\"#/components/schemas/Question\"}}}]}";
static const char problem_schema[] =
    "\"Problem\":{\"type\":\"object\",\"properties\":{\"type\":{\"type\":\"string\"},\"title\":"
    "{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},"
    "\"code\":{\"type\":\"string\"},\"call_id\":{\"type\":\"string\"},\"started\":{\"type\":"
    "\"boolean\"},\"retry_after_ms\":{\"type\":\"integer\"},\"draining\":{\"type\":\"boolean\"}},"
    "\"required\":[\"type\",\"title\",\"status\",\"detail\"]}";
static const char problem_answer[] =
    "{\"description\":\"A problem (RFC 9457)\",\"content\":{\"application/problem+json\":"
    "{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}";
static const char call_parameters[] =
    "{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":\"the identity of the call\","
    "\"schema\":{\"type\":\"string\"}},{\"name\":\"Prefer\",\"in\":\"header\",\"description\":"
    "\"wait=SECONDS: its deadline\",\"schema\":{\"type\":\"string\"}}";

/* ---- one operation ---- */

static void put_parameter(struct peg__out *out, peg_str name, const char *in, char kind)
{
    const char *type = kind == '#'   ? "{\"type\":\"integer\"}"
                       : kind == '*' ? "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
                                     : "{\"type\":\"string\"}";

    peg__out_object(out);
    peg__out_member(out, "name", name);
    peg__out_cmember(out, "in", in);
    if (in[0] == 'p') {
        peg__out_key(out, "required");
        peg__out_bool(out, true);
    }
    peg__out_key(out, "schema");
    peg__out_raw(out, peg__str(type));
    peg__out_end_object(out);
}

static void put_path_parameters(struct peg__out *out, const char *path)
{
    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{'))
        put_parameter(out, peg__strn(at + 1, strcspn(at + 1, "}")), "path", ' ');
}

static void put_query_parameters(struct peg__out *out, const char *query)
{
    while (*query) {
        const size_t len = strcspn(query, " ");
        const char kind = query[len - 1];
        const bool is_marked = kind == '*' || kind == '#';

        put_parameter(out, peg__strn(query, is_marked ? len - 1 : len), "query", kind);
        query += query[len] ? len + 1 : len;
    }
}

/* {"content": ...} without its braces. */
static void put_media_type(struct peg__out *out, const char *schema)
{
    const bool is_events = strcmp(schema, "events") == 0;

    peg__out_key(out, "content");
    peg__out_object(out);
    peg__out_key(out, is_events ? "text/event-stream" : "application/json");
    peg__out_object(out);
    peg__out_key(out, "schema");
    if (is_events)
        peg__out_raw(out, peg__str("{\"type\":\"string\"}"));
    else if (schema[0])
        gw_schema_ref(out, schema);
    else
        peg__out_raw(out, peg__str("{}"));
    peg__out_end_object(out);
    peg__out_end_object(out);
}

static void put_request_body(struct peg__out *out, const char *schema)
{
    peg__out_key(out, "requestBody");
    peg__out_object(out);
    peg__out_key(out, "required");
    peg__out_bool(out, true);
    put_media_type(out, schema);
    peg__out_end_object(out);
}

/* Of callTool, with Prefer: respond-async. */
static void put_started(struct peg__out *out)
{
    peg__out_key(out, "202");
    peg__out_object(out);
    peg__out_cmember(out, "description", "Started: see Location");
    put_media_type(out, "StartToolResponse");
    peg__out_end_object(out);
}

static void put_responses(struct peg__out *out, const char *schema, bool may_be_started)
{
    peg__out_key(out, "responses");
    peg__out_object(out);
    peg__out_key(out, schema ? "200" : "204");
    peg__out_object(out);
    peg__out_cmember(out, "description", schema ? "OK" : "Done");
    if (schema)
        put_media_type(out, schema);
    peg__out_end_object(out);
    if (may_be_started)
        put_started(out);
    peg__out_key(out, "default");
    peg__out_raw(out, peg__str(problem_answer));
    peg__out_end_object(out);
}

static void put_operation(struct peg__out *out, const struct operation *operation)
{
    const bool is_call = strcmp(operation->id, "callTool") == 0;

    peg__out_key(out, operation->method);
    peg__out_object(out);
    peg__out_cmember(out, "operationId", operation->id);
    peg__out_cmember(out, "summary", operation->summary);
    peg__out_key(out, "parameters");
    peg__out_array(out);
    put_path_parameters(out, operation->path);
    put_query_parameters(out, operation->query);
    if (is_call)
        peg__out_raw(out, peg__str(call_parameters));
    peg__out_end_array(out);
    if (operation->body)
        put_request_body(out, operation->body);
    put_responses(out, operation->answer, is_call);
    peg__out_end_object(out);
}

/* ---- the document ---- */

static void begin_document(struct peg__out *out, peg_str title, peg_str description)
{
    peg__out_object(out);
    peg__out_cmember(out, "openapi", "3.1.0");
    peg__out_key(out, "info");
    peg__out_object(out);
    peg__out_member(out, "title", title);
    peg__out_member(out, "description", description);
    peg__out_cmember(out, "version", peg_version());
    peg__out_end_object(out);
    peg__out_raw(out, peg__str("\"security\":[{},{\"token\":[]}]"));
    peg__out_key(out, "paths");
    peg__out_object(out);
}

/* Schemas come between the two. */
static void begin_components(struct peg__out *out)
{
    peg__out_end_object(out);
    peg__out_key(out, "components");
    peg__out_object(out);
    peg__out_raw(out, peg__str("\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":"
                               "\"bearer\"}}"));
    peg__out_key(out, "schemas");
    peg__out_object(out);
    peg__out_raw(out, peg__str(problem_schema));
}

static void end_document(struct peg__out *out)
{
    peg__out_end_object(out);
    peg__out_end_object(out);
    peg__out_end_object(out);
}

static void put_paths(struct peg__out *out)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        const bool is_first = !i || strcmp(operations[i].path, operations[i - 1].path) != 0;

        if (is_first && i)
            peg__out_end_object(out);
        if (is_first) {
            peg__out_key(out, operations[i].path);
            peg__out_object(out);
        }
        put_operation(out, &operations[i]);
    }
    peg__out_end_object(out);
}

static void put_schemas(struct peg__out *out, const ProtobufCMessageDescriptor *const *types,
                        size_t n, bool is_sent)
{
    for (size_t i = 0; i < n; i++) {
        peg__out_key(out, types[i]->short_name);
        gw_schema_write(out, types[i], is_sent);
    }
}

static void reply_whole(struct gw_exchange *exchange)
{
    struct peg__out *out = &exchange->out;

    begin_document(out, peg__str("Pegboard"), peg__str("Tools: find, call and watch them"));
    put_paths(out);
    begin_components(out);
    peg__out_raw(out, peg__str(own_schemas));
    put_schemas(out, answers, sizeof(answers) / sizeof(answers[0]), true);
    put_schemas(out, bodies, sizeof(bodies) / sizeof(bodies[0]), false);
    end_document(out);
    gw_exchange_reply(exchange, 200);
}

/* ---- that of a toolset ---- */

enum { SCHEMA_NAME = WIRE_MCP_NAME + 8 };

struct tool_names {
    char id[WIRE_MCP_NAME];
    char input[SCHEMA_NAME];
    char output[SCHEMA_NAME];
};

/* What no other tool has, also where its own name has letters that names of schemas have not. */
static bool name_tool_schemas(const char *toolset, const Pegboard__V1__Tool *tool,
                              struct tool_names *names)
{
    if (!wire_mcp_name(peg__str(toolset), peg__str(tool->name), names->id))
        return false;
    snprintf(names->input, sizeof(names->input), "%s_input", names->id);
    snprintf(names->output, sizeof(names->output), "%s_output", names->id);
    return true;
}

static void put_escaped(struct peg__buf *path, const char *name)
{
    for (; *name; name++) {
        if (*name == '/')
            peg__buf_puts(path, "%2F");
        else
            peg__buf_putc(path, *name);
    }
}

static void put_tool_path(struct peg__out *out, const char *toolset, const char *tool)
{
    struct peg__buf path = PEG__BUF(4096);

    peg__buf_puts(&path, "/v1/toolsets/");
    put_escaped(&path, toolset);
    peg__buf_puts(&path, "/tools/");
    put_escaped(&path, tool);
    peg__buf_puts(&path, "/calls");
    peg__out_key_str(out, peg__buf_view(&path));
    if (path.status)
        out->buf->status = path.status;
    peg__buf_free(&path);
}

static void put_tool_operation(struct peg__out *out, const char *toolset,
                               const Pegboard__V1__Tool *tool, const struct tool_names *names)
{
    put_tool_path(out, toolset, tool->name);
    peg__out_object(out);
    peg__out_key(out, "post");
    peg__out_object(out);
    peg__out_cmember(out, "operationId", names->id);
    peg__out_cmember(out, "summary", tool->title[0] ? tool->title : tool->name);
    peg__out_cmember(out, "description", tool->description);
    peg__out_key(out, "parameters");
    peg__out_array(out);
    peg__out_raw(out, peg__str(call_parameters));
    peg__out_end_array(out);
    put_request_body(out, names->input);
    put_responses(out, tool->output_schema.len ? names->output : "", false);
    peg__out_end_object(out);
    peg__out_end_object(out);
}

static peg_status put_tool_schemas(struct peg__out *out, const Pegboard__V1__Tool *tool,
                                   const struct tool_names *names)
{
    const peg_str input = {(const char *)tool->input_schema.data, tool->input_schema.len};
    const peg_str output = {(const char *)tool->output_schema.data, tool->output_schema.len};
    peg_status status;

    peg__out_key(out, names->input);
    status = gw_schema_move(out, input.len ? input : peg__str("{}"), names->input);
    if (status || !output.len)
        return status;
    peg__out_key(out, names->output);
    return gw_schema_move(out, output, names->output);
}

static peg_status take_toolset_document(struct gw_exchange *exchange,
                                        const ProtobufCMessage *message, peg_str packed)
{
    const Pegboard__V1__GetToolsetResponse *response =
        (const Pegboard__V1__GetToolsetResponse *)message;
    const char *toolset = response->toolset->name;
    struct peg__out *out = &exchange->out;
    peg_status status = PEG_OK;
    struct tool_names names;

    (void)packed;
    begin_document(out, peg__str(toolset), peg__str(response->toolset->description));
    for (size_t i = 0;
         i < response->n_tools && name_tool_schemas(toolset, response->tools[i], &names); i++)
        put_tool_operation(out, toolset, response->tools[i], &names);
    begin_components(out);
    for (size_t i = 0; !status && i < response->n_tools; i++)
        status = name_tool_schemas(toolset, response->tools[i], &names)
                     ? put_tool_schemas(out, response->tools[i], &names)
                     : PEG_ENOMEM;
    end_document(out);
    return status ? status : exchange->body.status;
}

static const struct gw_operation toolset_operation = {
    .rpc = "/pegboard.v1.Registry/GetToolset",
    .take = take_toolset_document,
};

static void api_get_openapi(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__GetToolsetRequest *get;
    peg_str toolset;

    (void)body;
    if (!exchange)
        return;
    if (!net_http_query(request, "toolset", &toolset)) {
        reply_whole(exchange);
        return;
    }
    get = gw_exchange_message(exchange, &pegboard__v1__get_toolset_request__descriptor);
    if (!get)
        return;
    get->name = gw_api_text(toolset);
    gw_exchange_call(exchange, &toolset_operation, &get->base);
}

const struct net_http_handler gw_api_openapi = GW_API_READS(api_get_openapi);
