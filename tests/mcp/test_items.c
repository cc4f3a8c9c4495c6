/* SPDX-License-Identifier: Apache-2.0 */

/* Resources, prompts and completion of the host. */

#include "pegboard/gate.h"
#include "pipes.h"
#include "schemas.h"

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"
#define M(id, method, params)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params META "}}"
#define L(id, method, params)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"

static const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "test", .page_items = 2};

/* ---- the host's functions ---- */

static void read_note(peg_mcp_request *request, void *user)
{
    (void)user;
    CHECK_INT(peg_mcp_reply_message(request, "user", peg_cstr("x")), PEG_ESTATE);
    CHECK_INT(peg_mcp_reply_media(request, "user", "image/png", peg_cstr("x")), PEG_ESTATE);
    CHECK_INT(peg_mcp_reply_resource(request, "user", "a:b", NULL, peg_cstr("x")), PEG_ESTATE);
    CHECK_INT(peg_mcp_reply_text(request, peg_cstr("\xff")), PEG_EINVAL);
    CHECK_INT(peg_mcp_reply_text(request, peg_cstr("hello")), PEG_OK);
    CHECK_INT(peg_mcp_reply_bytes(request, peg_cstr("PNG")), PEG_OK);
}

static void read_by_id(peg_mcp_request *request, void *user)
{
    const char *id = peg_mcp_request_argument(request, "id");
    char text[64];

    (void)user;
    if (strcmp(id, "0") == 0) {
        peg_mcp_fail(request, true, "there is no note %s", id);
        return;
    }
    snprintf(text, sizeof(text), "note %s", id);
    CHECK_INT(peg_mcp_reply_text(request, peg_cstr(text)), PEG_OK);
}

static void fail_to_read(peg_mcp_request *request, void *user)
{
    (void)user;
    peg_mcp_fail(request, false, "the disk is gone");
}

static void say_nothing(peg_mcp_request *request, void *user)
{
    (void)request;
    (void)user;
}

static void greet(peg_mcp_request *request, void *user)
{
    char text[64];

    (void)user;
    snprintf(text, sizeof(text), "Greet %s", peg_mcp_request_argument(request, "who"));
    CHECK_INT(peg_mcp_reply_bytes(request, peg_cstr("x")), PEG_ESTATE);
    CHECK_INT(peg_mcp_reply_message(request, "somebody", peg_cstr("x")), PEG_EINVAL);
    CHECK_INT(peg_mcp_reply_text(request, peg_cstr(text)), PEG_OK);
    CHECK_INT(peg_mcp_reply_message(request, "assistant", peg_cstr("Of course")), PEG_OK);
    CHECK_INT(peg_mcp_reply_media(request, "user", "text/plain", peg_cstr("x")), PEG_EINVAL);
    CHECK_INT(peg_mcp_reply_media(request, "somebody", "image/png", peg_cstr("x")), PEG_EINVAL);
    CHECK_INT(peg_mcp_reply_media(request, "user", "audio/wav", peg_cstr("WAV")), PEG_OK);
    CHECK_INT(peg_mcp_reply_resource(request, "user", "a:b", NULL, peg_cstr("\xff")), PEG_EINVAL);
    CHECK_INT(peg_mcp_reply_resource(request, "user", "a:b", "text/plain", peg_cstr("R")), PEG_OK);
}

static void suggest(peg_mcp_request *request, void *user)
{
    (void)user;
    CHECK_STR(peg_cstr(peg_mcp_request_completes(request)), "who");
    CHECK_STR(peg_cstr(peg_mcp_request_value(request)), "A");
    CHECK_STR(peg_cstr(peg_mcp_request_argument(request, "style")), "kind");
    for (int i = 0; i < 101; i++)
        CHECK_INT(peg_mcp_reply_text(request, peg_cstr("Ada")), PEG_OK);
}

static void ask_first(peg_mcp_request *request, void *user)
{
    static const peg_json nothing;
    peg_error error;

    (void)user;
    if (peg_gate_wait(peg_mcp_request_ctx(request),
                      &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "may I?", .payload = &nothing},
                      NULL, &error))
        peg_mcp_fail(request, false, "%s", error.message);
    else
        peg_mcp_reply_text(request, peg_cstr("secret"));
}

static void count_free(void *user)
{
    ++*(int *)user;
}

static void add_resource(struct pipes *p, const char *uri, peg_mcp_fn read)
{
    CHECK_STATUS(peg_mcp_server_add_resource(
                     p->server,
                     &(peg_mcp_resource_def){PEG_MCP_RESOURCE_DEF_INIT, .uri = uri, .name = "n",
                                             .title = "T", .description = "d",
                                             .mime_type = "text/plain", .read = read},
                     &p->error),
                 PEG_OK, p->error);
}

static void add_prompt(struct pipes *p)
{
    static const peg_mcp_argument arguments[] = {{"who", "whom to greet", true},
                                                 {"style", NULL, false}};

    CHECK_STATUS(
        peg_mcp_server_add_prompt(p->server,
                                  &(peg_mcp_prompt_def){PEG_MCP_PROMPT_DEF_INIT, .name = "greet",
                                                        .title = "Greet", .description = "d",
                                                        .arguments = arguments, .n_arguments = 2,
                                                        .get = greet, .complete = suggest},
                                  &p->error),
        PEG_OK, p->error);
}

/* ---- what a client is sent is what the schemas say ---- */

static void check_result(struct pipes *p, bool is_modern, const char *definition)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct schemas schemas;
    char why[512];

    CHECK(pipes_read(p));
    CHECK_INT(peg_json_parse(peg_cstr(p->line), NULL, &doc, NULL), PEG_OK);
    schemas_load(&schemas);
    schemas_check(&schemas, is_modern, definition, peg_json_get(peg_json_root(doc), "result"), why);
    schemas_free(&schemas);
    if (why[0])
        T_FAIL("%s: %s", why, p->line);
}

#define CHECK_LINE(p, part)                                                                        \
    do {                                                                                           \
        if (!strstr((p)->line, part))                                                              \
            T_FAIL("\"%s\" is not in %s", part, (p)->line);                                        \
    } while (0)

static void open_world(struct pipes *p)
{
    pipes_init(p);
    pipes_start(p, &options, false);
    add_resource(p, "note:///a", read_note);
    add_resource(p, "note:///b", fail_to_read);
    add_resource(p, "note:///c", say_nothing);
    add_resource(p, "notes:///{id}/text", read_by_id);
    add_prompt(p);
    /* The loop has seen them when it has answered. */
    pipes_send(p, L("0", "ping", "{}"));
    CHECK_READ(p, "\"id\":0");
}

TEST(capabilities_tell_of_what_was_added)
{
    struct pipes p;

    pipes_init(&p);
    pipes_start(&p, &options, false);
    pipes_send(&p, M("1", "server/discover", ""));
    CHECK_READ(&p, "\"capabilities\":{\"tools\":{\"listChanged\":true},\"logging\":{}");
    pipes_send(&p, M("2", "resources/list", ""));
    CHECK_READ(&p, "\"code\":-32601");
    pipes_free(&p);

    open_world(&p);
    pipes_send(&p, M("3", "server/discover", ""));
    check_result(&p, true, "DiscoverResult");
    CHECK_LINE(&p, "\"resources\":{\"listChanged\":true,\"subscribe\":true},\"prompts\":{"
                   "\"listChanged\":true},\"completions\":{}");
    pipes_free(&p);
}

TEST(resources_are_listed_and_read)
{
    struct pipes p;

    open_world(&p);
    pipes_send(&p, M("1", "resources/list", ""));
    check_result(&p, true, "ListResourcesResult");
    CHECK_LINE(&p, "{\"uri\":\"note:///a\",\"name\":\"n\",\"title\":\"T\",\"description\":\"d\","
                   "\"mimeType\":\"text/plain\"}");
    CHECK_LINE(&p, "\"nextCursor\":\"cm5vdGU6Ly8vYg==\""); /* "rnote:///b" */
    pipes_send(&p, L("2", "resources/list", "{\"cursor\":\"cm5vdGU6Ly8vYg==\"}"));
    check_result(&p, false, "ListResourcesResult");
    CHECK_LINE(&p, "[{\"uri\":\"note:///c\"");
    pipes_send(&p, L("3", "resources/list", "{\"cursor\":\"cm5vbmU=\"}"));
    CHECK_READ(&p, "\"code\":-32602");
    pipes_send(&p, L("4", "resources/templates/list", "{}"));
    check_result(&p, false, "ListResourceTemplatesResult");
    CHECK_LINE(&p, "\"uriTemplate\":\"notes:///{id}/text\"");

    pipes_send(&p, M("5", "resources/read", "\"uri\":\"note:///a\","));
    check_result(&p, true, "ReadResourceResult");
    CHECK_LINE(&p, "\"contents\":[{\"uri\":\"note:///a\",\"mimeType\":\"text/plain\",\"text\":"
                   "\"hello\"},{\"uri\":\"note:///a\",\"mimeType\":\"text/plain\",\"blob\":"
                   "\"UE5H\"}],\"ttlMs\"");
    pipes_send(&p, L("6", "resources/read", "{\"uri\":\"notes:///7/text\"}"));
    check_result(&p, false, "ReadResourceResult");
    CHECK_LINE(&p, "\"text\":\"note 7\"");
    pipes_free(&p);
}

TEST(resource_that_is_not_there_is_an_error_by_era)
{
    struct pipes p;

    open_world(&p);
    pipes_send(&p, M("1", "resources/read", "\"uri\":\"note:///z\","));
    CHECK_READ(&p, "\"error\":{\"code\":-32602,\"message\":\"Resource not found\",\"data\":{"
                   "\"uri\":\"note:///z\"}}");
    pipes_send(&p, L("2", "resources/read", "{\"uri\":\"notes:///a/b/text\"}"));
    CHECK_READ(&p, "\"code\":-32002");
    pipes_send(&p, L("3", "resources/read", "{\"uri\":\"notes:///0/text\"}"));
    CHECK_READ(&p, "\"code\":-32002,\"message\":\"there is no note 0\"");
    pipes_send(&p, M("4", "resources/read", "\"uri\":\"note:///b\","));
    CHECK_READ(&p, "\"code\":-32603,\"message\":\"the disk is gone\"");
    pipes_send(&p, M("5", "resources/read", "\"uri\":\"note:///c\","));
    CHECK_READ(&p, "\"code\":-32603");
    pipes_free(&p);
}

TEST(prompts_are_listed_made_and_completed)
{
    struct pipes p;

    open_world(&p);
    pipes_send(&p, M("1", "prompts/list", ""));
    check_result(&p, true, "ListPromptsResult");
    CHECK_LINE(&p, "\"arguments\":[{\"name\":\"who\",\"description\":\"whom to greet\","
                   "\"required\":true},{\"name\":\"style\",\"required\":false}]");
    pipes_send(&p, L("2", "prompts/get", "{\"name\":\"greet\",\"arguments\":{\"who\":\"Ada\"}}"));
    check_result(&p, false, "GetPromptResult");
    CHECK_LINE(&p,
               "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
               "\"Greet Ada\"}},{\"role\":\"assistant\",\"content\":{\"type\":\"text\","
               "\"text\":\"Of course\"}},{\"role\":\"user\",\"content\":{\"type\":\"audio\","
               "\"data\":\"V0FW\",\"mimeType\":\"audio/wav\"}},{\"role\":\"user\",\"content\":{"
               "\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"mimeType\":\"text/plain\","
               "\"text\":\"R\"}}}]");
    pipes_send(&p, M("3", "prompts/get", "\"name\":\"greet\","));
    CHECK_READ(&p, "\"code\":-32602");
    pipes_send(&p, M("4", "prompts/get", "\"name\":\"greet\",\"arguments\":{\"who\":7},"));
    CHECK_READ(&p, "\"code\":-32602");
    pipes_send(&p, M("5", "prompts/get", "\"name\":\"nope\","));
    CHECK_READ(&p, "\"code\":-32602");
    pipes_send(&p, M("6", "completion/complete",
                     "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},\"argument\":{\"name\":"
                     "\"who\",\"value\":\"A\"},\"context\":{\"arguments\":{\"style\":\"kind\"}},"));
    check_result(&p, true, "CompleteResult");
    CHECK_LINE(&p, "\"total\":101,\"hasMore\":true");
    CHECK_INT(t_count(p.line, "\"Ada\""), 100);
    pipes_send(&p, M("7", "completion/complete",
                     "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"notes:///{id}/text\"},"
                     "\"argument\":{\"name\":\"id\",\"value\":\"\"},"));
    check_result(&p, true, "CompleteResult");
    CHECK_LINE(&p, "\"values\":[]");
    pipes_send(&p, M("8", "completion/complete",
                     "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"nope\"},\"argument\":{\"name\":"
                     "\"who\",\"value\":\"A\"},"));
    CHECK_READ(&p, "\"code\":-32602");
    pipes_free(&p);
}

TEST(reading_may_ask_the_person_first)
{
    struct pipes p;
    char text[1024];
    const char *at;

    pipes_init(&p);
    pipes_start(&p, &options, false);
    add_resource(&p, "safe:///a", ask_first);
    pipes_send(&p, L("0", "ping", "{}"));
    CHECK_READ(&p, "\"id\":0");
    pipes_send(&p, M("1", "resources/read", "\"uri\":\"safe:///a\","));
    check_result(&p, true, "InputRequiredResult");
    at = strstr(p.line, "\"requestState\":\"") + strlen("\"requestState\":\"");
    snprintf(text, sizeof(text),
             M("2", "resources/read",
               "\"uri\":\"safe:///a\",\"inputResponses\":{\"gate-1\":{\"action\":\"accept\"}},"
               "\"requestState\":\"%.*s\","),
             (int)strcspn(at, "\""), at);
    pipes_send(&p, text);
    CHECK_READ(&p, "\"text\":\"secret\"");
    pipes_free(&p);
}

TEST(changes_are_notified_and_what_was_removed_is_freed)
{
    struct pipes p;
    int n_freed = 0;

    pipes_init(&p);
    pipes_start(&p, &options, false);
    CHECK_INT(
        peg_mcp_server_add_resource(
            p.server,
            &(peg_mcp_resource_def){PEG_MCP_RESOURCE_DEF_INIT, .uri = "note:///a", .name = "n",
                                    .read = read_note, .user = &n_freed, .user_free = count_free},
            &p.error),
        PEG_OK);
    pipes_send(&p, L("0", "ping", "{}"));
    CHECK_READ(&p, "\"id\":0");
    pipes_send(&p, M("1", "subscriptions/listen",
                     "\"notifications\":{\"resourcesListChanged\":true,\"resourceSubscriptions\":["
                     "\"note:///a\"]},"));
    CHECK_READ(&p, "acknowledged");
    CHECK_INT(peg_mcp_server_resource_updated(p.server, "note:///a"), PEG_OK);
    CHECK_READ(&p, "notifications/resources/updated");
    peg_mcp_server_remove_resource(p.server, "note:///a");
    CHECK_INT(n_freed, 1);
    CHECK_READ(&p, "notifications/resources/list_changed");
    peg_mcp_server_remove_resource(p.server, "note:///a");
    peg_mcp_server_remove_prompt(p.server, "none");
    pipes_free(&p);
}

TEST(definitions_that_cannot_work_are_refused)
{
    struct pipes p;
    const peg_mcp_argument unnamed = {"", NULL, false};

    open_world(&p);
    CHECK_INT(peg_mcp_server_add_resource(p.server,
                                          &(peg_mcp_resource_def){PEG_MCP_RESOURCE_DEF_INIT,
                                                                  .uri = "note:///a", .name = "n",
                                                                  .read = read_note},
                                          &p.error),
              PEG_EEXISTS);
    CHECK_INT(peg_mcp_server_add_resource(p.server,
                                          &(peg_mcp_resource_def){PEG_MCP_RESOURCE_DEF_INIT,
                                                                  .uri = "nothing", .name = "n",
                                                                  .read = read_note},
                                          &p.error),
              PEG_EINVAL);
    CHECK_STR(peg_cstr(p.error.where), "/uri");
    CHECK_INT(peg_mcp_server_add_resource(
                  p.server,
                  &(peg_mcp_resource_def){PEG_MCP_RESOURCE_DEF_INIT, .uri = "a:b", .name = "n"},
                  &p.error),
              PEG_EINVAL);
    CHECK_STR(peg_cstr(p.error.where), "/read");
    CHECK_INT(peg_mcp_server_add_prompt(p.server,
                                        &(peg_mcp_prompt_def){PEG_MCP_PROMPT_DEF_INIT, .name = "x",
                                                              .arguments = &unnamed,
                                                              .n_arguments = 1, .get = greet},
                                        &p.error),
              PEG_EINVAL);
    CHECK_STR(peg_cstr(p.error.where), "/arguments");
    CHECK_INT(peg_mcp_server_add_prompt(p.server, &(peg_mcp_prompt_def){.name = "x", .get = greet},
                                        &p.error),
              PEG_EINVAL);
    pipes_free(&p);
}

TORTURE(adding_survives_any_allocation_failure)
{
    const peg_mcp_argument who = {"who", "d", true};
    peg_registry *registry = NULL;
    peg_mcp_server *server = NULL;
    peg_status status = peg_registry_new(NULL, 0, &registry, NULL);

    if (!status)
        status = peg_mcp_server_new(registry, &options, &server, NULL);
    if (!status)
        status = peg_mcp_server_add_resource(server,
                                             &(peg_mcp_resource_def){PEG_MCP_RESOURCE_DEF_INIT,
                                                                     .uri = "a:{b}", .name = "n",
                                                                     .read = read_note},
                                             NULL);
    if (!status)
        status = peg_mcp_server_add_prompt(server,
                                           &(peg_mcp_prompt_def){PEG_MCP_PROMPT_DEF_INIT,
                                                                 .name = "p", .arguments = &who,
                                                                 .n_arguments = 1, .get = greet},
                                           NULL);
    if (!status)
        status = peg_mcp_server_resource_updated(server, "a:b");
    peg_mcp_server_free(server);
    peg_registry_unref(registry);
    return status;
}
