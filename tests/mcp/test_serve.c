/* SPDX-License-Identifier: Apache-2.0 */

/* A server on pipes, with handlers on threads. */

#include <semaphore.h>

#include "base/limits/mcp.h"
#include "pegboard/gate.h"
#include "pegboard/media.h"
#include "pipes.h"

#define META_WITH(capabilities, more)                                                              \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":" capabilities more "}"
#define CALL_WITH(id, name, args, params, capabilities, more)                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name    \
    "\",\"arguments\":" args "," params                                                            \
    META_WITH(capabilities, more) "}}"
#define CALL(id, name, args) CALL_WITH(id, name, args, "", "{}", "")
#define INITIALIZE(capabilities)                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":" capabilities "}}"

static const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "test", .concurrency = 2};

/* ---- tools ---- */

static void echo(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

static void add_echo(struct pipes *p, const char *name, const char *output_schema)
{
    pipes_add(p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = name, .description = "d",
                                 .input_schema = "{\"type\":\"object\",\"properties\":{\"x\":{"
                                                 "\"type\":\"integer\"}}}",
                                 .output_schema = output_schema, .run = echo});
}

static void fail(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "no luck today");
}

static void picture(peg_call *call, const peg_json *args, void *user)
{
    peg_reader *reader = NULL;
    peg_media *media = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .id = "m1", .mime_type = "image/png",
                         .filename = "a.png"};

    (void)user;
    CHECK_INT(peg_reader_from_bytes(peg_cstr("PNG"), &reader, NULL), PEG_OK);
    def.reader = reader;
    def.kind = peg_json_is_true(peg_json_get(args, "video")) ? PEG_MEDIA_VIDEO : PEG_MEDIA_IMAGE;
    CHECK_INT(peg_media_tool_generated(&def, &media, NULL), PEG_OK);
    peg_call_reply_media(call, &media, 1);
    peg_media_unref(media);
    peg_reader_unref(reader);
}

static void bytes(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply_bytes(call, peg__strn("\xff\xfe\x00", 3));
}

static void wait_for_stop(peg_call *call, const peg_json *args, void *user)
{
    sem_t *began = user;

    (void)args;
    sem_post(began);
    (void)!peg_ctx_wait(peg_call_ctx(call), 60000, NULL);
    sem_post(began);
    peg_call_fail(call, "stopped");
}

static void report(peg_call *call, const peg_json *args, void *user)
{
    static const peg_json one = {.kind = PEG_JSON_INTEGER, .u.number = 1};

    (void)args;
    (void)user;
    CHECK_INT(peg_mcp_progress(call, 1, 3, "one of three"), PEG_OK);
    CHECK_INT(peg_mcp_log(call, PEG_MCP_WARNING, "tool", &one), PEG_OK);
    CHECK_INT(peg_mcp_progress(call, 0.0 / 0.0, 3, NULL), PEG_EINVAL);
    CHECK_INT(peg_mcp_log(call, (peg_mcp_level)99, NULL, &one), PEG_EINVAL);
    peg_call_reply(call, peg_cstr("reported"));
}

/* A gate whose answer is of the schema in `user`, or any. */
static void ask_person(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *value = NULL;
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    PEG_CLEANUP(peg_freep) char *text = NULL;
    peg_error error;

    if (user)
        CHECK_INT(peg_schema_compile(peg_cstr(user), NULL, &schema, NULL), PEG_OK);
    if (peg_gate_wait(peg_call_ctx(call),
                      &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "may I?", .payload = args,
                                      .schema = schema},
                      &value, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    CHECK_INT(peg_json_write(peg_json_root(value), PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    peg_call_replyf(call, "answer: %s", text);
}

static void ask_client(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answers = NULL;
    PEG_CLEANUP(peg_freep) char *text = NULL;
    const peg_ask asks[] = {{"roots", "roots/list", NULL, false},
                            {"form", "elicitation/create", peg_json_get(args, "form"), false}};
    peg_error error;

    (void)user;
    if (peg_call_ask(call, asks, 2, &answers, &error)) {
        peg_call_fail_with(call, &error);
        return;
    }
    CHECK_INT(peg_json_write(peg_json_root(answers), PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    peg_call_replyf(call, "answers: %s", text);
}

/* ---- results ---- */

TEST(results_arrive_as_what_they_are)
{
    struct pipes p;

    pipes_init(&p);
    add_echo(&p, "plain", NULL);
    add_echo(&p, "structured", "{\"type\":\"object\"}");
    pipes_add(&p,
              &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "fail", .description = "d", .run = fail});
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "picture", .description = "d",
                                  .input_schema = "{\"type\":\"object\",\"properties\":{\"video\":"
                                                  "{\"type\":\"boolean\"}}}",
                                  .run = picture});
    pipes_add(
        &p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "bytes", .description = "d", .run = bytes});
    pipes_start(&p, &options, false);

    pipes_send(&p, CALL("1", "plain", "{\"x\":1}"));
    CHECK_READ(&p, "\"content\":[{\"type\":\"text\",\"text\":\"{\\\"x\\\":1}\"}],\"_meta\"");
    pipes_send(&p, CALL("2", "structured", "{\"x\":1}"));
    CHECK_READ(&p, "\"structuredContent\":{\"x\":1}");
    pipes_send(&p, CALL("3", "fail", "{}"));
    CHECK_READ(&p, "no luck today");
    CHECK(strstr(p.line, "\"isError\":true"));
    pipes_send(&p, CALL("4", "picture", "{}"));
    CHECK_READ(&p, "{\"type\":\"image\",\"data\":\"UE5H\",\"mimeType\":\"image/png\"}");
    pipes_send(&p, CALL("5", "picture", "{\"video\":true}"));
    CHECK_READ(&p, "{\"type\":\"resource\",\"resource\":{\"uri\":\"pegboard:///media/m1\","
                   "\"mimeType\":\"image/png\",\"blob\":\"UE5H\"}}");
    pipes_send(&p, CALL("6", "bytes", "{}"));
    CHECK_READ(&p, "\"mimeType\":\"application/octet-stream\",\"blob\":\"//4A\"");
    pipes_send(&p, CALL("7", "plain", "{\"x\":\"no\"}"));
    CHECK_READ(&p, "\"pegboard/error\":{\"name\":\"validation_error\"}");
    pipes_send(&p, CALL("8", "nothing", "{}"));
    CHECK_READ(&p, "\"error\":{\"code\":-32602,\"message\":\"Unknown tool: nothing\"}");
    CHECK_STATUS(pipes_end(&p), PEG_OK, p.error);
    pipes_free(&p);
}

TEST(handler_reports_progress_and_log)
{
    struct pipes p;

    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "report", .description = "d",
                                  .run = report});
    pipes_start(&p, &options, true);
    pipes_send(&p, CALL_WITH("1", "report", "{}", "", "{}",
                             ",\"progressToken\":5,"
                             "\"io.modelcontextprotocol/logLevel\":\"debug\""));
    CHECK_READ(&p, "\"progressToken\":5,\"progress\":1,\"total\":3,\"message\":\"one of three\"");
    CHECK_READ(&p, "\"level\":\"warning\",\"logger\":\"tool\",\"data\":1");
    CHECK_READ(&p, "reported");
    pipes_free(&p);
}

/* ---- cancellation and the end ---- */

TEST(cancellation_reaches_the_handler_and_others_go_on)
{
    struct pipes p;
    sem_t began;

    sem_init(&began, 0, 0);
    pipes_init(&p);
    add_echo(&p, "echo", NULL);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "wait", .description = "d",
                                  .run = wait_for_stop, .user = &began});
    pipes_start(&p, &options, false);
    pipes_send(&p, CALL("1", "wait", "{}"));
    sem_wait(&began);
    pipes_send(&p, CALL("2", "echo", "{\"x\":2}"));
    CHECK_READ(&p, "\"id\":2");
    pipes_send(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                   "\"params\":{\"requestId\":1}}");
    sem_wait(&began);
    pipes_send(&p, CALL("3", "echo", "{\"x\":3}"));
    CHECK_READ(&p, "\"id\":3");
    CHECK_STATUS(pipes_end(&p), PEG_OK, p.error);
    CHECK(!pipes_read(&p));
    pipes_free(&p);
    sem_destroy(&began);
}

TEST(client_that_closes_its_end_gets_what_is_finished_in_time)
{
    struct pipes p;

    pipes_init(&p);
    add_echo(&p, "echo", NULL);
    pipes_start(&p, &options, false);
    pipes_send(&p, CALL("1", "echo", "{\"x\":1}"));
    pipes_write(&p, CALL("2", "echo", "{\"x\":2}"), strlen(CALL("2", "echo", "{\"x\":2}")));
    CHECK_STATUS(pipes_end(&p), PEG_OK, p.error);
    CHECK(pipes_read(&p) && pipes_read(&p) && !pipes_read(&p));
    pipes_free(&p);
}

TEST(stop_ends_a_server_whose_handler_waits)
{
    struct pipes p;
    sem_t began;

    sem_init(&began, 0, 0);
    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "wait", .description = "d",
                                  .run = wait_for_stop, .user = &began});
    pipes_start(&p, &options, false);
    pipes_send(&p, CALL("1", "wait", "{}"));
    sem_wait(&began);
    peg_mcp_server_stop(p.server);
    peg_mcp_server_stop(p.server);
    pthread_join(p.thread, NULL);
    p.is_running = false;
    close(p.server_in);
    close(p.server_out);
    CHECK_STATUS(p.status, PEG_OK, p.error);
    sem_wait(&began);
    pipes_free(&p);
    sem_destroy(&began);
}

TEST(client_that_is_gone_ends_the_server)
{
    struct pipes p;
    sem_t began;

    sem_init(&began, 0, 0);
    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "wait", .description = "d",
                                  .run = wait_for_stop, .user = &began});
    pipes_start(&p, &options, false);
    pipes_send(&p, CALL("1", "wait", "{}"));
    sem_wait(&began);
    close(p.from_server);
    p.from_server = -1;
    sem_wait(&began);
    CHECK_STATUS(pipes_end(&p), PEG_OK, p.error);
    pipes_free(&p);
    sem_destroy(&began);
}

/* ---- gates ---- */

TEST(gate_is_a_form_for_a_modern_client_and_its_retry_the_answer)
{
    struct pipes p;
    char schema[] = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
                    "\"minimum\":1,\"multipleOf\":1}},\"required\":[\"n\"]}";
    char state[256];
    char text[1024];
    const char *at;

    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "ask", .description = "d",
                                  .run = ask_person, .user = schema});
    pipes_start(&p, &options, false);
    pipes_send(&p, CALL_WITH("1", "ask", "{}", "", "{\"elicitation\":{}}", ""));
    CHECK_READ(&p, "\"inputRequests\":{\"gate-1\":{\"method\":\"elicitation/create\",\"params\":{"
                   "\"mode\":\"form\",\"message\":\"may I?\",\"requestedSchema\":{\"type\":"
                   "\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1}},"
                   "\"required\":[\"n\"]}}}}");
    /* An answer that does not fit is asked for again. */
    at = strstr(p.line, "\"requestState\":\"") + strlen("\"requestState\":\"");
    snprintf(state, sizeof(state), "%.*s", (int)strcspn(at, "\""), at);
    snprintf(text, sizeof(text),
             CALL_WITH("2", "ask", "{}",
                       "\"inputResponses\":{\"gate-1\":{\"action\":\"accept\",\"content\":{\"n\":0}"
                       "}},\"requestState\":\"%s\",",
                       "{\"elicitation\":{}}", ""),
             state);
    pipes_send(&p, text);
    CHECK_READ(&p, "\"id\":2,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{"
                   "\"gate-2\":");
    at = strstr(p.line, "\"requestState\":\"") + strlen("\"requestState\":\"");
    snprintf(state, sizeof(state), "%.*s", (int)strcspn(at, "\""), at);
    snprintf(text, sizeof(text),
             CALL_WITH("3", "ask", "{}",
                       "\"inputResponses\":{\"gate-2\":{\"action\":\"accept\",\"content\":{\"n\":7}"
                       "}},\"requestState\":\"%s\",",
                       "{\"elicitation\":{}}", ""),
             state);
    pipes_send(&p, text);
    CHECK_READ(&p, "answer: {\\\"n\\\":7}");
    CHECK(strstr(p.line, "\"id\":3"));
    pipes_free(&p);
}

/* Answers the form that comes next with `result`. */
static void answer_legacy(struct pipes *p, const char *expected, const char *result)
{
    char text[1024];
    const char *at;

    CHECK_READ(p, expected);
    at = strstr(p->line, "\"id\":\"") + strlen("\"id\":\"");
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",\"result\":%s}",
             (int)strcspn(at, "\""), at, result);
    pipes_send(p, text);
}

#define LEGACY_CALL(id, name)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name    \
    "\"}}"

TEST(gates_of_all_kinds_are_answered_by_a_legacy_client)
{
    struct pipes p;
    char text_schema[] = "{\"type\":\"string\",\"pattern\":\"^a\"}";
    char list_schema[] = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}";

    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "any", .description = "d",
                                  .run = ask_person});
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "text", .description = "d",
                                  .run = ask_person, .user = text_schema});
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "list", .description = "d",
                                  .run = ask_person, .user = list_schema});
    pipes_start(&p, &options, false);
    pipes_send(&p, INITIALIZE("{\"elicitation\":{}}"));
    CHECK_READ(&p, "\"id\":0");

    pipes_send(&p, LEGACY_CALL("1", "any"));
    answer_legacy(&p, "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}",
                  "{\"action\":\"accept\"}");
    CHECK_READ(&p, "answer: true");
    pipes_send(&p, LEGACY_CALL("2", "text"));
    answer_legacy(&p, "\"properties\":{\"answer\":{\"type\":\"string\"}}",
                  "{\"action\":\"accept\",\"content\":{\"answer\":\"b\"}}");
    answer_legacy(&p, "elicitation/create",
                  "{\"action\":\"accept\",\"content\":{\"answer\":\"ab\"}}");
    CHECK_READ(&p, "answer: \\\"ab\\\"");
    pipes_send(&p, LEGACY_CALL("3", "list"));
    answer_legacy(&p, "the answer, as JSON",
                  "{\"action\":\"accept\",\"content\":{\"answer\":\"[1,2]\"}}");
    CHECK_READ(&p, "answer: [1,2]");
    pipes_send(&p, LEGACY_CALL("4", "list"));
    answer_legacy(&p, "elicitation/create", "{\"action\":\"decline\"}");
    CHECK_READ(&p, "the user declined");
    CHECK(strstr(p.line, "\"isError\":true"));
    pipes_free(&p);
}

TEST(gate_fails_at_once_for_a_client_that_cannot_be_asked)
{
    struct pipes p;

    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "any", .description = "d",
                                  .run = ask_person});
    pipes_start(&p, &options, false);
    pipes_send(&p, CALL("1", "any", "{}"));
    CHECK_READ(&p, "\"code\":-32021");
    pipes_send(&p, INITIALIZE("{}"));
    CHECK_READ(&p, "\"id\":0");
    pipes_send(&p, LEGACY_CALL("2", "any"));
    CHECK_READ(&p, "the client cannot be asked for this");
    pipes_free(&p);
}

TEST(handlers_that_wait_for_people_take_nobodys_place)
{
    peg_mcp_options hurried = options; /* at the end the questions have no answer */
    struct pipes p;
    char text[256];

    pipes_init(&p);
    add_echo(&p, "echo", NULL);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "any", .description = "d",
                                  .run = ask_person});
    hurried.drain_ms = 100;
    pipes_start(&p, &hurried, false);
    pipes_send(&p, INITIALIZE("{\"elicitation\":{}}"));
    CHECK_READ(&p, "\"id\":0");
    for (int i = 1; i <= 20; i++) {
        snprintf(text, sizeof(text), LEGACY_CALL("%d", "any"), i);
        pipes_send(&p, text);
        CHECK_READ(&p, "elicitation/create");
    }
    pipes_send(&p, CALL("99", "echo", "{\"x\":1}"));
    CHECK_READ(&p, "\"id\":99");
    pipes_free(&p);
}

TEST(several_questions_at_once_are_answered_together)
{
    struct pipes p;

    pipes_init(&p);
    pipes_add(&p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "ask", .description = "d",
                                  .input_schema = "{\"type\":\"object\",\"additionalProperties\":"
                                                  "true}",
                                  .run = ask_client});
    pipes_start(&p, &options, false);
    pipes_send(&p, INITIALIZE("{\"elicitation\":{},\"roots\":{}}"));
    CHECK_READ(&p, "\"id\":0");
    pipes_send(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"ask\",\"arguments\":{\"form\":{\"message\":\"m\",\"requestedSchema\":{"
                   "\"type\":\"object\",\"properties\":{}}}}}}");
    answer_legacy(&p, "roots/list", "{\"roots\":[]}");
    answer_legacy(&p, "elicitation/create", "{\"action\":\"cancel\"}");
    CHECK_READ(&p, "answers: {\\\"roots\\\":{\\\"roots\\\":[]},\\\"form\\\":{\\\"action\\\":"
                   "\\\"cancel\\\"}}");
    pipes_free(&p);
}

/* ---- lists ---- */

TEST(registry_is_followed_and_paged)
{
    struct pipes p;
    peg_mcp_options small = options;

    small.page_items = 1;
    pipes_init(&p);
    add_echo(&p, "a", NULL);
    add_echo(&p, "b", NULL);
    pipes_start(&p, &small, false);
    pipes_send(&p, INITIALIZE("{}"));
    CHECK_READ(&p, "\"id\":0");
    pipes_send(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    pipes_send(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    CHECK_READ(&p, "\"nextCursor\":\"dDEgYQ==\""); /* "t1 a" */
    CHECK(t_count(p.line, "\"name\"") == 1);

    CHECK_INT(peg_registry_unregister(p.registry, peg__str("a"), NULL), PEG_OK);
    CHECK_READ(&p, "notifications/tools/list_changed");
    /* The tool that the page ended with is gone: the next one in order follows. */
    add_echo(&p, "c", NULL);
    pipes_send(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{"
                   "\"cursor\":\"dDEgYQ==\"}}");
    CHECK_READ(&p, "\"name\":\"c\"");
    pipes_free(&p);
}

/* ---- hostile ---- */

TEST(lines_that_are_no_messages_are_answered_and_the_next_is_served)
{
    struct pipes p;
    char *flood = malloc(3 * PEG_LIMIT_MCP_MESSAGE_BYTES);

    pipes_init(&p);
    add_echo(&p, "echo", NULL);
    pipes_start(&p, &options, false);
    pipes_send(&p, "");
    pipes_send(&p, "  \t\r");
    pipes_send(&p, "nonsense");
    CHECK_READ(&p, "\"code\":-32700");
    memset(flood, 'x', 3 * PEG_LIMIT_MCP_MESSAGE_BYTES);
    pipes_write(&p, flood, 3 * PEG_LIMIT_MCP_MESSAGE_BYTES);
    pipes_send(&p, "");
    CHECK_READ(&p, "\"code\":-32700");
    pipes_send(&p, CALL("1", "echo", "{\"x\":1}") "\r");
    CHECK_READ(&p, "\"id\":1");
    pipes_free(&p);
    free(flood);
}

static void flood(peg_call *call, const peg_json *args, void *user)
{
    char *text = malloc(1 << 20);

    (void)args;
    (void)user;
    memset(text, 'y', 1 << 20);
    peg_call_reply(call, peg__strn(text, 1 << 20));
    free(text);
}

/* Answers of 32 MiB to requests that come all at once: reading stops until they are taken. */
VOLUME_TEST(client_that_does_not_read_is_not_read_from)
{
    struct pipes p;
    char text[512];

    pipes_init(&p);
    pipes_add(
        &p, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "flood", .description = "d", .run = flood});
    pipes_start(&p, &options, true);
    for (int i = 0; i < 32; i++) {
        snprintf(text, sizeof(text), CALL("%d", "flood", "{}"), i);
        pipes_send(&p, text);
    }
    for (int i = 0; i < 32; i++)
        CHECK(strlen(pipes_read(&p)) > 1 << 20);
    pipes_free(&p);
}

/* ---- options ---- */

TEST(options_that_cannot_work_are_refused)
{
    static const struct {
        peg_mcp_options options;
        const char *where;
    } rows[] = {
        {{PEG_MCP_OPTIONS_INIT}, "/name"},
        {{PEG_MCP_OPTIONS_INIT, .name = ""}, "/name"},
        {{PEG_MCP_OPTIONS_INIT, .name = "\xff"}, "/name"},
        {{PEG_MCP_OPTIONS_INIT, .name = "n", .title = "\xff"}, "/title"},
        {{PEG_MCP_OPTIONS_INIT, .name = "n", .concurrency = 257}, "/concurrency"},
        {{PEG_MCP_OPTIONS_INIT, .name = "n", .page_items = 1001}, "/page_items"},
        {{PEG_MCP_OPTIONS_INIT, .name = "n", .ttl_ms = -1}, "/ttl_ms"},
        {{PEG_MCP_OPTIONS_INIT, .name = "n", .wait_ms = -1}, "/wait_ms"},
        {{PEG_MCP_OPTIONS_INIT, .name = "n", .drain_ms = -1}, "/drain_ms"},
    };
    struct pipes p;
    peg_mcp_server *server = NULL;

    pipes_init(&p);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(peg_mcp_server_new(p.registry, &rows[i].options, &server, &p.error), PEG_EINVAL);
        CHECK_STR(peg_cstr(p.error.where), rows[i].where);
    }
    CHECK_INT(peg_mcp_server_new(NULL, &options, &server, &p.error), PEG_EINVAL);
    CHECK_INT(peg_mcp_server_new(p.registry, &(peg_mcp_options){.name = "n"}, &server, &p.error),
              PEG_EINVAL);
    pipes_free(&p);
}

TORTURE(server_survives_any_allocation_failure)
{
    peg_registry *registry = NULL;
    peg_mcp_server *server = NULL;
    peg_status status = peg_registry_new(NULL, 0, &registry, NULL);

    if (!status)
        status = peg_mcp_server_new(registry, &options, &server, NULL);
    peg_mcp_server_free(server);
    peg_registry_unref(registry);
    return status;
}
