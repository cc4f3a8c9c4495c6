/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Search mode: three tools instead of all. Definitions cost a model its context, so with thousands
 * of tools it looks for those it needs; what it finds has the definition, ready to be called.
 */

#include <string.h>

#include "base/arena.h"
#include "base/limits/mcp.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"
#include "gateway/search/search.h"

enum { DEFAULT_LIMIT = 8, MAX_LIMIT = 50 };

#define NAMED "\"name\":{\"type\":\"string\",\"description\":\"As search_tools returned it\"}"

static const struct {
    const char *name;
    const char *description;
    const char *schema;
    bool is_read_only;
} tools[] = {
    {"search_tools",
     "Finds tools by what they do, with their definitions. Search before you say that something "
     "cannot be done, then use call_tool.",
     "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"minLength\":1,"
     "\"maxLength\":1024,\"description\":\"What the tool should do, in a few words\"},"
     "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"default\":8}},"
     "\"required\":[\"query\"],\"additionalProperties\":false}",
     true},
    {"describe_tool", "Returns the definition of a tool: its description and its arguments.",
     "{\"type\":\"object\",\"properties\":{" NAMED "},\"required\":[\"name\"],"
     "\"additionalProperties\":false}",
     true},
    {"call_tool", "Calls a tool that search_tools found, with arguments that fit its inputSchema.",
     "{\"type\":\"object\",\"properties\":{" NAMED ",\"arguments\":{\"type\":\"object\","
     "\"description\":\"As the tool's inputSchema says\"}},\"required\":[\"name\"],"
     "\"additionalProperties\":false}",
     false},
};

peg_status gw_mcp_list_search(struct mcp_page *page)
{
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        peg_json_doc *schema = NULL;
        const peg_status status = peg_json_parse(peg__str(tools[i].schema), NULL, &schema, NULL);

        if (status)
            return status;
        (void)mcp_page_add_tool(page, &(struct mcp_tool){
                                          .name = peg__str(tools[i].name),
                                          .description = peg__str(tools[i].description),
                                          .input_schema = peg_json_root(schema),
                                          .is_read_only = tools[i].is_read_only,
                                      });
        peg_json_doc_free(schema);
    }
    return PEG_OK;
}

/* ---- answers ---- */

static void fail_call(struct mcp_call *call, const char *sentence)
{
    struct mcp_result result = {0};

    mcp_result_fail_tool(&result, "validation_error", peg__str(sentence));
    mcp_call_end(call, &result);
}

/* Ends the call with JSON, as text. NULL: no memory. */
static void end_with_json(struct mcp_call *call, const struct peg__buf *json)
{
    struct mcp_result result = {.members = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES)};
    struct peg__out out = {.buf = &result.members};

    peg__out_key(&out, "content");
    peg__out_array(&out);
    mcp_put_text(&out, peg__buf_view(json));
    peg__out_end_array(&out);
    if (json->status)
        result.members.status = json->status;
    mcp_call_end(call, &result);
}

static peg_status put_definition(struct peg__out *out, const struct mcp_request *request,
                                 const struct gw_toolset *toolset, const struct gw_tool *tool)
{
    const struct gw_mcp_scope *scope = request->scope;
    struct gw_mcp_definition definition;
    const peg_status status = gw_mcp_define(&definition, toolset, tool, !scope->toolset.len);

    if (!status)
        mcp_put_tool(out, &definition.tool, request->era);
    gw_mcp_undefine(&definition);
    return status;
}

/* ---- search_tools ---- */

struct found {
    const struct mcp_request *request;
    struct peg__out out;
    size_t limit;
    size_t n;
    peg_status status;
};

static void add_found(struct found *found, const struct gw_toolset *toolset,
                      const struct gw_tool *tool)
{
    if (found->status || found->n >= found->limit || found->out.buf->len > PEG_LIMIT_MCP_PAGE_BYTES)
        return;
    found->n++;
    found->status = put_definition(&found->out, found->request, toolset, tool);
}

/* A toolset whose own text was found has tools too. */
static void add_hit(struct found *found, const struct gw_search_hit *hit)
{
    const struct gw_mcp_scope *scope = found->request->scope;

    if (scope->toolset.len && !peg__str_eq(scope->toolset, hit->toolset->name))
        return;
    for (size_t i = 0; i < hit->n_tools; i++)
        add_found(found, hit->toolset, hit->tools[i]);
    for (size_t i = 0; !hit->n_tools && i < hit->toolset->n_tools; i++)
        add_found(found, hit->toolset, &hit->toolset->tools[i]);
}

static bool is_healthy(void *user, peg_str toolset)
{
    return gw_presence_health(user, toolset).state == GW_HEALTHY;
}

static void run_search(struct gw_mcp *mcp, struct mcp_call *call,
                       const struct gw_search_query *query, size_t limit)
{
    struct peg__arena arena = {0};
    struct peg__buf json = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);
    struct found found = {.request = mcp_call_request(call), .out = {.buf = &json}, .limit = limit};
    struct gw_search_result hits;

    peg__out_object(&found.out);
    peg__out_key(&found.out, "tools");
    peg__out_array(&found.out);
    found.status = gw_search(gw_mcp_snapshot(mcp), query, &arena, &hits, NULL);
    for (size_t i = 0; !found.status && i < hits.n; i++)
        add_hit(&found, &hits.hits[i]);
    peg__out_end_array(&found.out);
    peg__out_end_object(&found.out);
    if (found.status)
        json.status = PEG_ENOMEM;
    end_with_json(call, &json);
    peg__buf_free(&json);
    peg__arena_free(&arena);
}

static void search_tools(struct gw_mcp *mcp, struct mcp_call *call)
{
    const struct mcp_request *request = mcp_call_request(call);
    const struct gw_mcp_scope *scope = request->scope;
    const peg_json *query = peg_json_get(request->args, "query");
    const peg_json *limit = peg_json_get(request->args, "limit");
    const peg_str text = peg_json_str(query);
    const int64_t n = peg_json_int64_or(limit, limit ? 0 : DEFAULT_LIMIT);

    if (peg_json_kind_of(query) != PEG_JSON_STRING || !text.len ||
        peg__utf8_length(text) > PEG_LIMIT_GATEWAY_QUERY) {
        fail_call(call, "query must be a string of 1 to 1024 characters");
        return;
    }
    if (n < 1 || n > MAX_LIMIT) {
        fail_call(call, "limit must be an integer from 1 to 50");
        return;
    }
    run_search(mcp, call,
               &(struct gw_search_query){
                   .text = text,
                   .limit = scope->toolset.len ? PEG_LIMIT_GATEWAY_PAGE : (size_t)n,
                   .is_healthy = is_healthy,
                   .user = gw_router_of(mcp->calls)->presence,
               },
               (size_t)n);
}

/* ---- the others ---- */

/* NULL: the call has ended. */
static const struct gw_tool *find_named(struct gw_mcp *mcp, struct mcp_call *call,
                                        const struct gw_toolset **ret_toolset)
{
    const struct mcp_request *request = mcp_call_request(call);
    const peg_json *name = peg_json_get(request->args, "name");
    const struct gw_tool *tool =
        peg_json_kind_of(name) == PEG_JSON_STRING
            ? gw_mcp_find_in(gw_mcp_snapshot(mcp), request->scope, peg_json_str(name), ret_toolset)
            : NULL;

    if (!tool)
        fail_call(call, peg_json_kind_of(name) == PEG_JSON_STRING
                            ? "there is no tool of this name: take one that search_tools returned"
                            : "name must be a string");
    return tool;
}

static void describe_tool(struct gw_mcp *mcp, struct mcp_call *call)
{
    const struct gw_toolset *toolset;
    const struct gw_tool *tool = find_named(mcp, call, &toolset);
    struct peg__buf json = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES);
    struct peg__out out = {.buf = &json};

    if (!tool)
        return;
    if (put_definition(&out, mcp_call_request(call), toolset, tool))
        json.status = PEG_ENOMEM;
    end_with_json(call, &json);
    peg__buf_free(&json);
}

static void call_found_tool(struct gw_mcp *mcp, struct mcp_call *call)
{
    const peg_json *args = peg_json_get(mcp_call_request(call)->args, "arguments");
    const struct gw_toolset *toolset;
    const struct gw_tool *tool;

    if (args && args->kind != PEG_JSON_OBJECT) {
        fail_call(call, "arguments must be an object");
        return;
    }
    tool = find_named(mcp, call, &toolset);
    if (tool)
        gw_mcp_call(mcp, call, toolset, tool, args);
}

void gw_mcp_begin_search(struct gw_mcp *mcp, struct mcp_call *call)
{
    const peg_str name = mcp_call_request(call)->name;

    if (!gw_mcp_snapshot(mcp))
        fail_call(call, "the gateway is starting: try again");
    else if (peg__str_is(name, "search_tools"))
        search_tools(mcp, call);
    else if (peg__str_is(name, "describe_tool"))
        describe_tool(mcp, call);
    else if (peg__str_is(name, "call_tool"))
        call_found_tool(mcp, call);
    else
        gw_mcp_reject_name(call, name);
}
