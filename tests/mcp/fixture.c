/* SPDX-License-Identifier: Apache-2.0 */

/* An MCP server for clients that are not ours: a tool for each thing that a client can meet. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pegboard/cleanup.h"
#include "pegboard/mcp.h"

static void add(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_replyf(call, "{\"sum\": %g}",
                    peg_json_double(peg_json_get(args, "a")) +
                        peg_json_double(peg_json_get(args, "b")));
}

static void fail(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "no luck today");
}

static void picture(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    PEG_CLEANUP(peg_media_unrefp) peg_media *media = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png",
                         .filename = "a.png"};

    (void)args;
    (void)user;
    if (peg_reader_from_bytes(peg_cstr("PNG"), &reader, NULL))
        return;
    def.reader = reader;
    if (peg_media_tool_generated(&def, &media, NULL) == PEG_OK)
        peg_call_reply_media(call, &media, 1);
}

static void progress(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    for (int i = 1; i <= 3; i++)
        peg_mcp_progress(call, i, 3, "working");
    /* The TypeScript SDK forgets progress that it reads together with the answer. */
    (void)!peg_ctx_wait(peg_call_ctx(call), 200, NULL);
    peg_call_reply(call, peg_cstr("worked"));
}

/* Until it is canceled; a file tells that it was. */
static void sleep_long(peg_call *call, const peg_json *args, void *user)
{
    FILE *file;

    (void)user;
    (void)!peg_ctx_wait(peg_call_ctx(call), 60000, NULL);
    file = fopen(peg_json_str(peg_json_get(args, "file")).ptr, "we");
    if (file)
        fclose(file);
    peg_call_fail(call, "canceled");
}

static void ask(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answer = NULL;
    peg_error error;

    (void)user;
    if (peg_schema_compile(peg_cstr("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
                                    "\"string\"}},\"required\":[\"name\"]}"),
                           NULL, &schema, &error) ||
        peg_gate_wait(peg_call_ctx(call),
                      &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "Who are you?", .payload = args,
                                      .schema = schema},
                      &answer, &error))
        peg_call_fail_with(call, &error);
    else
        peg_call_replyf(call, "hello %s",
                        peg_json_str(peg_json_get(peg_json_root(answer), "name")).ptr);
}

static const peg_tool_def tools[] = {
    {PEG_TOOL_DEF_INIT, .name = "add", .description = "Adds two numbers", .run = add,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"},\"b\":{"
                     "\"type\":\"number\"}},\"required\":[\"a\",\"b\"]}",
     .output_schema = "{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"number\"}},"
                      "\"required\":[\"sum\"]}",
     .read_only = true, .idempotent = true},
    {PEG_TOOL_DEF_INIT, .name = "fail", .description = "Fails", .run = fail},
    {PEG_TOOL_DEF_INIT, .name = "picture", .description = "Draws", .run = picture},
    {PEG_TOOL_DEF_INIT, .name = "progress", .description = "Works", .run = progress},
    {PEG_TOOL_DEF_INIT, .name = "sleep", .description = "Sleeps", .run = sleep_long,
     .timeout_ms = -1,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"file\":{\"type\":\"string\"}},"
                     "\"required\":[\"file\"]}"},
    {PEG_TOOL_DEF_INIT, .name = "ask", .description = "Asks a person", .run = ask},
};

static void read_note(peg_mcp_request *request, void *user)
{
    char text[64];

    (void)user;
    snprintf(text, sizeof(text), "note %s", peg_mcp_request_argument(request, "id"));
    peg_mcp_reply_text(request, peg_cstr(text));
}

static void greet(peg_mcp_request *request, void *user)
{
    char text[64];

    (void)user;
    snprintf(text, sizeof(text), "Greet %.32s", peg_mcp_request_argument(request, "who"));
    peg_mcp_reply_text(request, peg_cstr(text));
}

static void suggest(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_text(request, peg_cstr("Ada"));
    peg_mcp_reply_text(request, peg_cstr("Alan"));
}

static peg_status add_items(peg_mcp_server *server, peg_error *reterr)
{
    static const peg_mcp_argument who = {"who", "whom to greet", true};
    static const peg_mcp_resource_def resources[] = {
        {PEG_MCP_RESOURCE_DEF_INIT, .uri = "note:///one", .name = "one", .read = read_note,
         .mime_type = "text/plain"},
        {PEG_MCP_RESOURCE_DEF_INIT, .uri = "note:///by-id/{id}", .name = "by id", .read = read_note,
         .mime_type = "text/plain"},
    };
    static const peg_mcp_prompt_def prompt = {
        PEG_MCP_PROMPT_DEF_INIT, .name = "greet", .arguments = &who,
        .n_arguments = 1,        .get = greet,    .complete = suggest};
    peg_status status = peg_mcp_server_add_resource(server, &resources[0], reterr);

    if (!status)
        status = peg_mcp_server_add_resource(server, &resources[1], reterr);
    return status ? status : peg_mcp_server_add_prompt(server, &prompt, reterr);
}

int main(void)
{
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "fixture", .version = "1.0",
                                     .instructions = "Use it in tests", .page_items = 4};
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    peg_mcp_server *server = NULL;
    peg_error error;
    peg_status status = peg_registry_new(NULL, 0, &registry, &error);

    for (size_t i = 0; !status && i < sizeof(tools) / sizeof(tools[0]); i++) {
        PEG_CLEANUP(peg_tool_unrefp) peg_tool *tool = NULL;

        status = peg_tool_new(&tools[i], &tool, &error);
        if (!status)
            status = peg_registry_register(registry, tool, false, &error);
    }
    if (!status)
        status = peg_mcp_server_new(registry, &options, &server, &error);
    if (!status)
        status = add_items(server, &error);
    if (!status)
        status = peg_mcp_server_serve(server, STDIN_FILENO, STDOUT_FILENO, &error);
    peg_mcp_server_free(server);
    if (status)
        fprintf(stderr, "%s: %s\n", error.code, error.message);
    return status ? 1 : 0;
}
