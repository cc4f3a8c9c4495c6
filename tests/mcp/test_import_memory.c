/* SPDX-License-Identifier: Apache-2.0 */

/* Importing through a link that answers by itself: what it sends is what the protocol describes,
 * and any allocation may fail. */

#include "import_world.h"
#include "mcp/client/internal.h"
#include "schemas.h"

#define INFO "{\"name\":\"fake\",\"version\":\"1\"}"
#define META "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" INFO "}"
#define TOOLS                                                                                      \
    "\"tools\":[{\"name\":\"t\",\"title\":\"T\",\"description\":\"d\",\"inputSchema\":{\"type\":"  \
    "\"object\"},\"outputSchema\":{\"type\":\"object\"},\"_meta\":{\"pegboard/version\":\"1\","    \
    "\"pegboard/tags\":[\"a\"],\"pegboard/examples\":[{}]}},"                                      \
    "{\"name\":\"m\",\"inputSchema\":{\"type\":\"object\"}},"                                      \
    "{\"name\":\"x\",\"inputSchema\":{\"$schema\":\"https://example.org/x\"}}]"

static struct schemas schemas;
static bool is_modern;

/* ---- what it is sent ---- */

static const char *definition_of(peg_str method)
{
    static const struct {
        const char *method;
        const char *definition;
    } all[] = {{"server/discover", "DiscoverRequest"},
               {"initialize", "InitializeRequest"},
               {"tools/list", "ListToolsRequest"},
               {"tools/call", "CallToolRequest"},
               {"subscriptions/listen", "SubscriptionsListenRequest"},
               {"notifications/initialized", "InitializedNotification"},
               {"notifications/cancelled", "CancelledNotification"}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (peg__str_is(method, all[i].method))
            return all[i].definition;
    }
    return NULL;
}

/* A legacy server is asked one modern thing. */
static void check_sent(peg_str text)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_str method;
    const char *definition;
    char why[512];

    if (!schemas.docs)
        return;
    CHECK_INT(peg_json_parse(text, NULL, &doc, NULL), PEG_OK);
    method = peg_json_str(peg_json_get(peg_json_root(doc), "method"));
    definition = definition_of(method);
    CHECK(definition);
    schemas_check(&schemas, is_modern || peg__str_is(method, "server/discover"), definition,
                  peg_json_root(doc), why);
    if (why[0])
        T_FAIL("%s: %.*s", why, PEG_ARG(text));
}

/* ---- what it answers ---- */

static const char *result_of(peg_str text)
{
    if (strstr(text.ptr, "server/discover"))
        return is_modern ? "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                           "\"capabilities\":{\"tools\":{\"listChanged\":true}}," META "}"
                         : NULL;
    if (strstr(text.ptr, "\"initialize\""))
        return "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":" INFO "}";
    if (strstr(text.ptr, "tools/list"))
        return strstr(text.ptr, "cursor") ? "{\"tools\":[]}" : "{" TOOLS ",\"nextCursor\":\"c\"}";
    if (strstr(text.ptr, "\"name\":\"m\""))
        return "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"mimeType\":"
               "\"image/png\",\"data\":\"UE5H\"}]}";
    return "{\"content\":[],\"structuredContent\":{\"x\":1}}";
}

static peg_status fake_open(peg_mcp_client *client, peg_error *reterr)
{
    (void)reterr;
    mcp__opened(client);
    return PEG_OK;
}

static peg_status fake_exchange(struct mcp__exchange *x, peg_ctx *ctx, peg_str message,
                                peg_error *reterr)
{
    const char *result = result_of(message);
    char text[2048];
    peg_status status;

    check_sent(message);
    if (result)
        snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}",
                 (long long)x->id, result);
    else
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32601,\"message\":\"?\"}}",
                 (long long)x->id);
    status = mcp__receive(x->client, NULL, peg_cstr(text), reterr);
    return status ? status : mcp__exchange_wait(x, ctx, reterr);
}

static void fake_send(peg_mcp_client *client, peg_str message, bool waits)
{
    (void)client;
    (void)waits;
    check_sent(message);
}

static void fake_close(peg_mcp_client *client)
{
    const peg_error why = {.status = PEG_EIO, .code = "E_MCP_START", .cause = ""};

    mcp__lose(client, &why, 0);
}

static void fake_listen(peg_mcp_client *client, peg_str message)
{
    (void)client;
    if (message.len)
        check_sent(message);
}

static const struct mcp__link_ops fake_link = {.open = fake_open,
                                               .exchange = fake_exchange,
                                               .send = fake_send,
                                               .listen = fake_listen,
                                               .close = fake_close};

/* ---- importing and calling ---- */

static peg_status call_tool(peg_registry *registry, const char *tool)
{
    peg_record *record = NULL;
    peg_status status = peg_registry_call(registry, tool, "{}", &record, NULL);

    if (!status && peg_record_is_error(record))
        status = PEG_EHOST;
    peg_record_unref(record);
    return status;
}

static peg_status import_and_call(void)
{
    const char *const command[] = {"fake", NULL};
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .command = command,
                                            .prefix = "p_", .include = NULL};
    peg_registry *registry = NULL;
    peg_mcp_client *client = NULL;
    peg_error error;
    peg_status status = peg_registry_new(NULL, 0, &registry, NULL);

    if (!status)
        status = mcp__client_new(registry, &fake_link, &options, &client, &error);
    if (!status) {
        client->options.start_ms = 60000;
        status = mcp__connect_and_list(client, &error);
    }
    if (!status)
        status = peg_registry_len(registry) == 2 ? PEG_OK : PEG_EHOST;
    if (!status)
        status = call_tool(registry, "p_t");
    if (!status)
        status = call_tool(registry, "p_m");
    peg_mcp_client_free(client);
    peg_registry_unref(registry);
    return status;
}

TEST(import_sends_what_the_protocol_describes)
{
    schemas_load(&schemas);
    is_modern = true;
    CHECK_INT(import_and_call(), PEG_OK);
    is_modern = false;
    CHECK_INT(import_and_call(), PEG_OK);
    schemas_free(&schemas);
}

TORTURE(import_of_a_modern_server_survives_any_allocation_failure)
{
    is_modern = true;
    return import_and_call();
}

TORTURE(import_of_a_legacy_server_survives_any_allocation_failure)
{
    is_modern = false;
    return import_and_call();
}

/* ---- over HTTP ---- */

/* Answers by itself: discovery as JSON, all else as a stream. */
static peg_status answer_request(void *self, peg_ctx *ctx, const struct peg__http_request *request,
                                 struct peg__http_answer *answer, peg_error *reterr)
{
    const bool is_stream = !strstr(request->body.ptr, "server/discover");
    const char *id = strstr(request->body.ptr, "\"id\":");
    char text[2048];
    peg_status status;

    (void)self;
    (void)ctx;
    check_sent(request->body);
    CHECK(strstr(request->headers, "Mcp-Method: "));
    snprintf(text, sizeof(text), "%s{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":%s}%s",
             is_stream ? "id: 7\nretry: 1\ndata: " : "", (int)strtol(id + 5, NULL, 10),
             is_stream ? result_of(request->body)
                       : "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                         "\"capabilities\":{\"tools\":{}}," META "}",
             is_stream ? "\n\n" : "");
    *answer = (struct peg__http_answer){.status = 200, .was_sent = true};
    snprintf(answer->content_type, sizeof(answer->content_type), "%s",
             is_stream ? "text/event-stream" : "application/json");
    request->on_header(peg_cstr("Content-Type"), peg_cstr(answer->content_type), request->user);
    status = request->on_bytes(answer, peg_cstr(text), request->user, reterr);
    request->on_step(request->user);
    return status;
}

static peg_status import_and_call_over_http(void)
{
    static peg_http http = {.n_refs = 1, .transport = {.send = answer_request}};
    static const char *const headers[] = {"X-Team: tools", NULL};
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .prefix = "p_",
                                            .url = "http://127.0.0.1/mcp", .http = &http,
                                            .headers = headers};
    peg_registry *registry = NULL;
    peg_mcp_client *client = NULL;
    peg_error error;
    peg_status status = peg_registry_new(NULL, 0, &registry, NULL);

    is_modern = true;
    if (!status)
        status = mcp__client_new(registry, &mcp__http_link, &options, &client, &error);
    if (!status)
        status = mcp__connect_and_list(client, &error);
    if (!status)
        status = peg_registry_len(registry) == 2 ? PEG_OK : PEG_EHOST;
    if (!status)
        status = call_tool(registry, "p_t");
    if (!status)
        status = call_tool(registry, "p_m");
    peg_mcp_client_free(client);
    peg_registry_unref(registry);
    return status;
}

TORTURE(import_of_a_server_over_http_survives_any_allocation_failure)
{
    return import_and_call_over_http();
}
