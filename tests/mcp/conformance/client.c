/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client that the official suite judges: imports the server whose URL is the last argument, and
 * calls its tools, those that the suite names in MCP_CONFORMANCE_CONTEXT with their arguments, else
 * all of them. Arguments, and answers to questions, are the defaults of a schema, or a value of the
 * type that it asks for.
 */

#include <pegboard/gate.h>
#include <pegboard/mcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const peg_json *first_schema; /* of the first tool */

/* ---- values ---- */

static bool is_text(const peg_json *value, const char *text)
{
    const peg_str found = peg_json_str(value);

    return found.len == strlen(text) && !memcmp(found.ptr, text, found.len);
}

static bool is_required(const peg_json *schema, const peg_json *key)
{
    PEG_JSON_EACH_ITEM (peg_json_get(schema, "required"), name) {
        if (is_text(name, peg_json_str(key).ptr))
            return true;
    }
    return false;
}

/* An object is the schema of the first tool: one scenario wants to see what became of it. */
static void add_sample(peg_json_builder *b, const peg_json *schema)
{
    const peg_json *type = peg_json_get(schema, "type");

    if (is_text(type, "string"))
        peg_json_add_string(b, peg_cstr("text"));
    else if (is_text(type, "boolean"))
        peg_json_add_bool(b, true);
    else if (is_text(type, "object"))
        peg_json_add_copy(b, first_schema);
    else
        peg_json_add_integer(b, 5);
}

static void add_object(peg_json_builder *b, const peg_json *schema)
{
    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
        const peg_json *value = peg_json_get(key + 1, "default");

        if (!value && !is_required(schema, key))
            continue;
        peg_json_add_key(b, peg_json_str(key));
        if (value)
            peg_json_add_copy(b, value);
        else
            add_sample(b, key + 1);
    }
    peg_json_close(b);
}

/* One scenario has null for an optional boolean, which is refused here before it is sent. */
static void add_without_nulls(peg_json_builder *b, const peg_json *object)
{
    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (object, key) {
        if (peg_json_kind_of(key + 1) == PEG_JSON_NULL)
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
    peg_json_close(b);
}

static peg_json_doc *finish(peg_json_builder *b)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_json_builder_finish(b, &doc, &error)) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        exit(2);
    }
    return doc;
}

/* ---- questions ---- */

static void accept_questions(peg_gate *gate, void *user)
{
    const peg_json *asked = peg_json_get(peg_gate_payload(gate), "pegboard/requests");
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *answers;
    peg_error error;

    (void)user;
    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (asked, key) {
        const peg_json *params = peg_json_get(key + 1, "params");

        peg_json_add_key(b, peg_json_str(key));
        peg_json_open_object(b);
        peg_json_add_key(b, peg_cstr("action"));
        peg_json_add_string(b, peg_cstr("accept"));
        peg_json_add_key(b, peg_cstr("content"));
        add_object(b, peg_json_get(params, "requestedSchema"));
        peg_json_close(b);
    }
    peg_json_close(b);
    answers = finish(b);
    if (peg_gate_resolve(gate, peg_json_root(answers), &error))
        fprintf(stderr, "a question was not answered: %s\n", error.message);
    peg_json_doc_free(answers);
}

/* ---- calls ---- */

/* A call that fails is what some scenarios are about: the suite judges what it got. */
static void call_tool(peg_ctx *ctx, peg_str tool, peg_json_builder *args)
{
    peg_json_doc *doc = finish(args);
    peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = tool, .tool = tool};
    peg_record *record = NULL;
    char *text = NULL;
    peg_error error;

    if (peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, &error) ||
        (request.args = peg_cstr(text), peg_call_run(ctx, &request, NULL, &record, &error))) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        exit(2);
    }
    if (peg_record_is_error(record))
        fprintf(stderr, "%s failed: %s\n", tool.ptr, peg_record_text(record).ptr);
    peg_record_unref(record);
    peg_free(text);
    peg_json_doc_free(doc);
}

static void call_named(peg_ctx *ctx, const peg_json *calls)
{
    PEG_JSON_EACH_ITEM (calls, item) {
        peg_json_builder *args = peg_json_builder_new();

        add_without_nulls(args, peg_json_get(item, "arguments"));
        call_tool(ctx, peg_json_str(peg_json_get(item, "name")), args);
    }
}

static void call_all(peg_ctx *ctx, const peg_tool_list *tools)
{
    for (size_t i = 0; i < tools->len; i++) {
        peg_json_builder *args = peg_json_builder_new();

        add_object(args, peg_tool_input_schema(tools->items[i]));
        call_tool(ctx, peg_cstr(peg_tool_name(tools->items[i])), args);
    }
}

static void call_tools(peg_ctx *ctx, peg_registry *registry, const char *context)
{
    peg_json_doc *doc = NULL;
    peg_tool_list tools;
    const peg_json *calls;

    if ((context && peg_json_parse(peg_cstr(context), NULL, &doc, NULL)) ||
        peg_registry_visible(registry, &tools, NULL))
        exit(2);
    first_schema = tools.len ? peg_tool_input_schema(tools.items[0]) : NULL;
    calls = peg_json_get(peg_json_root(doc), "toolCalls");
    if (calls)
        call_named(ctx, calls);
    else
        call_all(ctx, &tools);
    peg_tool_list_free(&tools);
    peg_json_doc_free(doc);
}

int main(int argc, char **argv)
{
    peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .url = argv[argc - 1]};
    peg_registry *registry = NULL;
    peg_mcp_client *client = NULL;
    peg_ctx *silent = NULL;
    peg_ctx *ctx = NULL;
    peg_error error;

    if (peg_http_new(&options.http, &error) || peg_registry_new(NULL, 0, &registry, &error) ||
        peg_ctx_with_registry(NULL, registry, &silent, &error) ||
        peg_ctx_with_gates(silent, accept_questions, NULL, &ctx, &error) ||
        peg_mcp_import(registry, &options, &client, &error))
        return fprintf(stderr, "%s: %s\n", error.code, error.message), 1;
    call_tools(ctx, registry, getenv("MCP_CONFORMANCE_CONTEXT"));
    peg_mcp_client_free(client);
    peg_ctx_unref(ctx);
    peg_ctx_unref(silent);
    peg_registry_unref(registry);
    peg_http_free(options.http);
    return 0;
}
