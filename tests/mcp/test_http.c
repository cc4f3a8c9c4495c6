/* SPDX-License-Identifier: Apache-2.0 */

/* A server over HTTP, as a host with an HTTP server of its own uses it. */

#include "base/limits/mcp.h"
#include "web.h"

#define META(capabilities)                                                                         \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":" capabilities "}"
#define CALL(id, tool, more)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool    \
    "\"" more "}}"
#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{\"roots\":{}},\"clientInfo\":{\"name\":\"c\","               \
    "\"version\":\"1\"}}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

/* ---- tools ---- */

static void say(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("said"));
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n;
} canceled = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static unsigned count_canceled(int change)
{
    unsigned n;

    pthread_mutex_lock(&canceled.lock);
    n = canceled.n = change < 0 ? 0 : canceled.n + (unsigned)change;
    pthread_cond_broadcast(&canceled.changed);
    pthread_mutex_unlock(&canceled.lock);
    return n;
}

static void wait_long(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_mcp_progress(call, 1, 0, "waiting");
    if (peg_ctx_wait(peg_call_ctx(call), 120000, NULL))
        (void)count_canceled(1);
    peg_call_fail(call, "canceled");
}

static void ask_roots(peg_call *call, const peg_json *args, void *user)
{
    const peg_ask ask = {.key = "r", .method = "roots/list"};
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answers = NULL;
    peg_error error;

    (void)args;
    (void)user;
    if (peg_call_ask(call, &ask, 1, &answers, &error))
        peg_call_fail_with(call, &error);
    else
        peg_call_reply(call, peg_cstr("answered"));
}

static const peg_tool_def tools[] = {
    {PEG_TOOL_DEF_INIT, .name = "say", .description = "Says", .run = say},
    {PEG_TOOL_DEF_INIT, .name = "wait", .description = "Waits", .run = wait_long, .timeout_ms = -1},
    {PEG_TOOL_DEF_INIT, .name = "ask", .description = "Asks", .run = ask_roots},
};

static void open_with_tools(struct web *w)
{
    web_open(w);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        web_add(w, &tools[i]);
}

static void await_canceled(void)
{
    struct timespec until;
    unsigned n;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WEB_PATIENCE_MS / 1000;
    pthread_mutex_lock(&canceled.lock);
    while (!canceled.n && pthread_cond_timedwait(&canceled.changed, &canceled.lock, &until) == 0)
        ;
    n = canceled.n;
    pthread_mutex_unlock(&canceled.lock);
    CHECK_INT(n, 1);
}

/* ---- requests ---- */

static void make_modern(struct exchange *x, const char *method, const char *name)
{
    web_set(x, "mcp-protocol-version", "2026-07-28");
    web_set(x, "mcp-method", method);
    if (name)
        web_set(x, "mcp-name", name);
}

static struct exchange *ask(struct web *w, const char *body, const char *session)
{
    struct exchange *x = web_exchange(w, "POST", body);

    if (session)
        web_set(x, "mcp-session-id", session);
    web_run(x);
    CHECK_INT(x->result, PEG_OK);
    CHECK_INT(x->n_begins, 1);
    return x;
}

static void initialize(struct web *w, char ret_session[64])
{
    struct exchange *x = ask(w, INITIALIZE, NULL);

    CHECK_INT(x->status, 200);
    CHECK_INT(strlen(x->session), 32);
    snprintf(ret_session, 64, "%s", x->session);
    web_free(x);
    x = ask(w, INITIALIZED, ret_session);
    CHECK_INT(x->status, 202);
    web_free(x);
}

static void check_status(struct web *w, struct exchange *x, int status)
{
    (void)w;
    web_run(x);
    CHECK_INT(x->result, PEG_OK);
    CHECK_INT(x->n_begins, 1);
    CHECK_INT(x->status, status);
    web_free(x);
}

/* ---- modern ---- */

TEST(modern_call_is_answered_with_json)
{
    struct web w;
    struct exchange *x;

    open_with_tools(&w);
    x = web_exchange(&w, "POST", CALL("1", "say", "," META("{}")));
    make_modern(x, "tools/call", "say");
    web_run(x);
    CHECK_INT(x->status, 200);
    CHECK_STR(peg_cstr(x->type), "application/json");
    CHECK(strstr(x->text, "\"text\":\"said\""));
    CHECK_STR(peg_cstr(x->session), "");
    web_free(x);
    web_close(&w);
}

TEST(headers_that_disagree_with_the_message_are_refused)
{
    struct web w;
    struct exchange *x;

    open_with_tools(&w);
    x = web_exchange(&w, "POST", CALL("1", "say", "," META("{}")));
    make_modern(x, "tools/call", "other");
    web_run(x);
    CHECK_INT(x->status, 400);
    CHECK(strstr(x->text, "-32020"));
    web_free(x);
    web_close(&w);
}

TEST(headers_repeat_the_arguments_that_a_tool_wants_repeated)
{
    static const peg_tool_def routed = {
        PEG_TOOL_DEF_INIT, .name = "routed", .description = "Says", .run = say,
        .input_schema = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":"
                        "\"string\",\"x-mcp-header\":\"Region\"}}}"};
    static const struct {
        const char *region;
        int status;
    } rows[] = {{"north", 200}, {"south", 400}, {NULL, 400}};
    struct web w;

    open_with_tools(&w);
    web_add(&w, &routed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct exchange *x = web_exchange(
            &w, "POST", CALL("1", "routed", ",\"arguments\":{\"region\":\"north\"}," META("{}")));

        make_modern(x, "tools/call", "routed");
        if (rows[i].region)
            web_set(x, "Mcp-Param-Region", rows[i].region);
        check_status(&w, x, rows[i].status);
    }
    web_close(&w);
}

TEST(modern_question_is_answered_by_a_retry_on_another_connection)
{
    struct web w;
    struct exchange *x;
    char body[2048];
    const char *state;

    open_with_tools(&w);
    x = web_exchange(&w, "POST", CALL("1", "ask", "," META("{\"roots\":{}}")));
    make_modern(x, "tools/call", "ask");
    web_run(x);
    state = strstr(x->text, "\"requestState\":\"");
    CHECK(state);
    state += strlen("\"requestState\":\"");
    snprintf(body, sizeof(body),
             CALL("2", "ask",
                  ",\"inputResponses\":{\"r\":{\"roots\":[]}},\"requestState\":\"%.*s\"," META(
                      "{\"roots\":{}}")),
             (int)strcspn(state, "\""), state);
    web_free(x);

    x = web_exchange(&w, "POST", body);
    make_modern(x, "tools/call", "ask");
    web_run(x);
    CHECK(strstr(x->text, "\"text\":\"answered\""));
    web_free(x);
    web_close(&w);
}

TEST(modern_client_that_goes_cancels_its_call)
{
    struct web w;
    struct exchange *x;

    (void)count_canceled(-1);
    open_with_tools(&w);
    x = web_exchange(&w, "POST",
                     CALL("1", "wait",
                          ",\"_meta\":{\"progressToken\":1,\"io.modelcontextprotocol/"
                          "protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"
                          "clientCapabilities\":{}}"));
    make_modern(x, "tools/call", "wait");
    web_start(x);
    web_await(x, "notifications/progress");
    CHECK_STR(peg_cstr(x->type), "text/event-stream");
    web_leave(x);
    web_end(x);
    await_canceled();
    web_free(x);
    web_close(&w);
}

TEST(listening_client_hears_of_a_change_that_another_request_makes)
{
    struct web w;
    struct exchange *listener;

    open_with_tools(&w);
    listener =
        web_exchange(&w, "POST",
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\","
                     "\"params\":{\"notifications\":{\"toolsListChanged\":true}," META("{}") "}}");
    make_modern(listener, "subscriptions/listen", NULL);
    web_start(listener);
    web_await(listener, "notifications/subscriptions/acknowledged");
    web_add(&w, &(const peg_tool_def){PEG_TOOL_DEF_INIT, .name = "new", .description = "New",
                                      .run = say});
    web_await(listener, "notifications/tools/list_changed");
    web_leave(listener);
    web_end(listener);
    web_free(listener);
    web_close(&w);
}

/* ---- legacy ---- */

TEST(session_is_made_by_initialize_and_ended_by_delete)
{
    struct web w;
    struct exchange *x;
    char session[64];

    open_with_tools(&w);
    initialize(&w, session);
    x = ask(&w, LIST, session);
    CHECK(strstr(x->text, "\"tools\":["));
    web_free(x);

    x = web_exchange(&w, "DELETE", "");
    web_set(x, "mcp-session-id", session);
    check_status(&w, x, 200);
    x = ask(&w, LIST, session);
    CHECK_INT(x->status, 404);
    web_free(x);
    web_close(&w);
}

TEST(session_of_another_principal_is_not_found)
{
    struct web w;
    struct exchange *x;
    char session[64];

    open_with_tools(&w);
    initialize(&w, session);
    x = web_exchange(&w, "POST", LIST);
    x->principal = "somebody else";
    web_set(x, "mcp-session-id", session);
    check_status(&w, x, 404);
    web_close(&w);
}

TEST(sessions_of_a_principal_make_room_for_each_other_alone)
{
    struct web w;
    struct exchange *x;
    char session[64];

    open_with_tools(&w);
    initialize(&w, session);
    for (int i = 0; i < PEG_LIMIT_MCP_SESSIONS; i++) {
        x = web_exchange(&w, "POST", INITIALIZE);
        x->principal = "somebody else";
        web_run(x);
        CHECK_INT(x->status, 200);
        CHECK_INT(strlen(x->session), 32);
        web_free(x);
    }
    x = ask(&w, LIST, session);
    CHECK_INT(x->status, 200);
    web_free(x);
    web_close(&w);
}

TEST(legacy_question_comes_on_the_stream_of_its_call)
{
    struct web w;
    struct exchange *call;
    struct exchange *x;
    char session[64];
    char body[512];
    const char *id;

    open_with_tools(&w);
    initialize(&w, session);
    call = web_exchange(&w, "POST", CALL("7", "ask", ""));
    web_set(call, "mcp-session-id", session);
    web_start(call);
    web_await(call, "\"method\":\"roots/list\"");
    id = strstr(call->text, "\"id\":\"");
    CHECK(id);
    snprintf(body, sizeof(body), "{\"jsonrpc\":\"2.0\",%.*s\",\"result\":{\"roots\":[]}}",
             (int)strcspn(id + 6, "\"") + 6, id);
    x = ask(&w, body, session);
    CHECK_INT(x->status, 202);
    web_free(x);
    web_end(call);
    CHECK(strstr(call->text, "\"text\":\"answered\""));
    web_free(call);
    web_close(&w);
}

TEST(legacy_client_that_goes_cancels_nothing_until_it_says_so)
{
    struct web w;
    struct exchange *call;
    struct exchange *x;
    char session[64];

    (void)count_canceled(-1);
    open_with_tools(&w);
    initialize(&w, session);
    call = web_exchange(&w, "POST", CALL("7", "wait", ",\"_meta\":{\"progressToken\":1}"));
    web_set(call, "mcp-session-id", session);
    web_start(call);
    web_await(call, "notifications/progress");
    web_leave(call);
    web_end(call);
    web_free(call);
    x = ask(&w, LIST, session);
    web_free(x);
    CHECK_INT(count_canceled(0), 0);

    x = ask(&w,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
            "\"requestId\":7}}",
            session);
    CHECK_INT(x->status, 202);
    web_free(x);
    await_canceled();
    web_close(&w);
}

TEST(stream_of_a_session_carries_changes_and_ends_with_it)
{
    struct web w;
    struct exchange *stream;
    struct exchange *x;
    char session[64];

    open_with_tools(&w);
    initialize(&w, session);
    stream = web_exchange(&w, "GET", "");
    web_set(stream, "accept", "text/event-stream");
    web_set(stream, "mcp-session-id", session);
    web_start(stream);
    web_await(stream, ":");
    web_add(&w, &(const peg_tool_def){PEG_TOOL_DEF_INIT, .name = "new", .description = "New",
                                      .run = say});
    web_await(stream, "notifications/tools/list_changed");
    x = web_exchange(&w, "DELETE", "");
    web_set(x, "mcp-session-id", session);
    check_status(&w, x, 200);
    web_end(stream);
    web_free(stream);
    web_close(&w);
}

/* ---- what is refused ---- */

TEST(pages_of_elsewhere_are_refused)
{
    static const struct {
        const char *host;
        const char *origin;
        const char *hosts;
        int status;
    } rows[] = {
        {"127.0.0.1:80", NULL, NULL, 200},
        {"localhost", "http://localhost:3000", NULL, 200},
        {"[::1]:80", NULL, NULL, 200},
        {"evil.example.com", NULL, NULL, 403},
        {"", NULL, NULL, 403},
        {"127.0.0.1", "http://evil.example.com", NULL, 403},
        {"127.0.0.1", "null", NULL, 403},
        {"tools.example.com", "https://tools.example.com", NULL, 403},
        {"tools.example.com", "https://tools.example.com", "a.example.com,tools.example.com", 200},
    };
    struct web w;

    open_with_tools(&w);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct exchange *x = web_exchange(&w, "POST", LIST);

        x->hosts = rows[i].hosts;
        web_set(x, "host", rows[i].host);
        if (rows[i].origin)
            web_set(x, "origin", rows[i].origin);
        check_status(&w, x, rows[i].status);
    }
    web_close(&w);
}

TEST(requests_that_are_none_of_ours_are_refused_by_their_status)
{
    struct web w;
    struct exchange *x;

    open_with_tools(&w);
    check_status(&w, web_exchange(&w, "GET", ""), 405);
    check_status(&w, web_exchange(&w, "PUT", LIST), 405);
    x = web_exchange(&w, "POST", LIST);
    web_set(x, "content-type", "text/plain");
    check_status(&w, x, 415);
    x = web_exchange(&w, "GET", "");
    web_set(x, "mcp-session-id", "0123456789abcdef0123456789abcdef");
    check_status(&w, x, 404);
    x = web_exchange(&w, "POST", "{");
    check_status(&w, x, 400);
    CHECK_INT(peg_mcp_server_http(w.server, &(peg_mcp_http){PEG_MCP_HTTP_INIT}, &w.error),
              PEG_EINVAL);
    web_close(&w);
}

TEST(stopped_server_cancels_calls_and_refuses_what_comes)
{
    struct web w;
    struct exchange *call;

    (void)count_canceled(-1);
    open_with_tools(&w);
    call = web_exchange(&w, "POST", CALL("7", "wait", ",\"_meta\":{\"progressToken\":1}"));
    web_start(call);
    web_await(call, "notifications/progress");
    peg_mcp_server_stop(w.server);
    web_end(call);
    await_canceled();
    web_free(call);
    check_status(&w, web_exchange(&w, "POST", LIST), 503);
    web_close(&w);
}

TEST(many_clients_at_once_get_each_its_own_answer)
{
    enum { N = 24 };
    struct web w;
    struct exchange *calls[N];
    char bodies[N][128];
    char id[16];

    open_with_tools(&w);
    for (int i = 0; i < N; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), CALL("%d", "say", ""), 100 + i);
        calls[i] = web_exchange(&w, "POST", bodies[i]);
        web_start(calls[i]);
    }
    for (int i = 0; i < N; i++) {
        web_end(calls[i]);
        snprintf(id, sizeof(id), "\"id\":%d,", 100 + i);
        CHECK(strstr(calls[i]->text, id) && strstr(calls[i]->text, "said"));
        web_free(calls[i]);
    }
    web_close(&w);
}

TORTURE(request_survives_any_allocation_failure)
{
    const peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "test"};
    struct web w = {0};
    struct exchange *x = NULL;
    peg_status status = peg_registry_new(NULL, 0, &w.registry, NULL);

    if (!status)
        status = peg_mcp_server_new(w.registry, &options, &w.server, NULL);
    if (!status) {
        x = web_exchange(&w, "POST", INITIALIZE);
        web_run(x);
        status = x->result;
        CHECK(status || x->n_begins == 1);
        if (!status && !(x->status == 200 && x->session[0] && strstr(x->text, "serverInfo")))
            status = PEG_ENOMEM;
        web_free(x);
    }
    web_close(&w);
    return status;
}
