/* SPDX-License-Identifier: Apache-2.0 */

/* Resources and prompts. */

#include <pthread.h>
#include <stdio.h>

#include "fixture.h"
#include "pegboard/cleanup.h"

static peg_mcp_server *the_server; /* NULL: a provider has no prompts */

/* ---- resources ---- */

static void read_text(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_text(request, peg_cstr("This is the content of the static text resource."));
}

static void read_png(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_bytes(request, fixture_png);
}

static void read_template(peg_mcp_request *request, void *user)
{
    char text[256];
    const char *id = peg_mcp_request_argument(request, "id");

    (void)user;
    snprintf(text, sizeof(text),
             "{\"id\":\"%.64s\",\"templateTest\":true,\"data\":\"Data for ID: %.64s\"}", id, id);
    peg_mcp_reply_text(request, peg_cstr(text));
}

/* ---- prompts ---- */

static void get_simple(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_text(request, peg_cstr("This is a simple prompt for testing."));
}

static void get_with_arguments(peg_mcp_request *request, void *user)
{
    char text[256];

    (void)user;
    snprintf(text, sizeof(text), "Prompt with arguments: arg1='%.64s', arg2='%.64s'",
             peg_mcp_request_argument(request, "arg1"), peg_mcp_request_argument(request, "arg2"));
    peg_mcp_reply_text(request, peg_cstr(text));
}

static void get_with_resource(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_resource(request, "user", peg_mcp_request_argument(request, "resourceUri"),
                           "text/plain", peg_cstr("Embedded resource content for testing."));
    peg_mcp_reply_text(request, peg_cstr("Please process the embedded resource above."));
}

static void get_with_image(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_media(request, "user", "image/png", fixture_png);
    peg_mcp_reply_text(request, peg_cstr("Please analyze the image above."));
}

static void get_asking(peg_mcp_request *request, void *user)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    PEG_CLEANUP(peg_freep) char *text = NULL;
    const peg_json *answer;
    peg_error error;

    (void)user;
    if (fixture_ask(peg_mcp_request_ctx(request), "user_context", "elicitation/create",
                    "{\"message\":\"What context should the prompt use?\",\"requestedSchema\":{"
                    "\"type\":\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},"
                    "\"required\":[\"context\"]}}",
                    &doc, &answer, &error) ||
        peg_json_write(answer, PEG_JSON_COMPACT, &text, NULL, &error))
        peg_mcp_fail(request, false, "%s", error.message);
    else
        peg_mcp_reply_text(request, peg_cstr(text));
}

static void suggest(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_reply_text(request, peg_cstr("testing"));
}

/* ---- what there is ---- */

static const peg_mcp_resource_def resources[] = {
    {PEG_MCP_RESOURCE_DEF_INIT, .uri = "test://static-text", .name = "Static text",
     .description = "A text", .mime_type = "text/plain", .read = read_text},
    {PEG_MCP_RESOURCE_DEF_INIT, .uri = "test://static-binary", .name = "Static binary",
     .description = "A picture", .mime_type = "image/png", .read = read_png},
    {PEG_MCP_RESOURCE_DEF_INIT, .uri = "test://watched-resource", .name = "Watched",
     .description = "May change", .mime_type = "text/plain", .read = read_text},
    {PEG_MCP_RESOURCE_DEF_INIT, .uri = "test://template/{id}/data", .name = "Template",
     .description = "One for each id", .mime_type = "application/json", .read = read_template},
};

static const peg_mcp_argument two_arguments[] = {{"arg1", "First test argument", true},
                                                 {"arg2", "Second test argument", true}};
static const peg_mcp_argument resource_uri = {"resourceUri", "URI of the resource to embed", true};

static const peg_mcp_prompt_def prompts[] = {
    {PEG_MCP_PROMPT_DEF_INIT, .name = "test_simple_prompt", .description = "A text",
     .get = get_simple},
    {PEG_MCP_PROMPT_DEF_INIT, .name = "test_prompt_with_arguments", .description = "Has arguments",
     .arguments = two_arguments, .n_arguments = 2, .get = get_with_arguments, .complete = suggest},
    {PEG_MCP_PROMPT_DEF_INIT, .name = "test_prompt_with_embedded_resource",
     .description = "Has a resource", .arguments = &resource_uri, .n_arguments = 1,
     .get = get_with_resource},
    {PEG_MCP_PROMPT_DEF_INIT, .name = "test_prompt_with_image", .description = "Has a picture",
     .get = get_with_image},
    {PEG_MCP_PROMPT_DEF_INIT, .name = "test_input_required_result_prompt", .description = "Asks",
     .get = get_asking},
};

void fixture_change_prompts(void)
{
    static const peg_mcp_prompt_def changing = {PEG_MCP_PROMPT_DEF_INIT, .name = "test_changing",
                                                .description = "Comes and goes", .get = get_simple};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (the_server && peg_mcp_server_add_prompt(the_server, &changing, NULL) == PEG_EEXISTS)
        peg_mcp_server_remove_prompt(the_server, changing.name);
    pthread_mutex_unlock(&lock);
}

peg_status fixture_add_items(peg_mcp_server *server, peg_error *reterr)
{
    peg_status status = PEG_OK;

    the_server = server;
    for (size_t i = 0; !status && i < sizeof(resources) / sizeof(resources[0]); i++)
        status = peg_mcp_server_add_resource(server, &resources[i], reterr);
    for (size_t i = 0; !status && i < sizeof(prompts) / sizeof(prompts[0]); i++)
        status = peg_mcp_server_add_prompt(server, &prompts[i], reterr);
    return status;
}
