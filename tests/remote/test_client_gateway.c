/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: a client, a provider and a gateway of ours, each as its users have it, in one process:
 * tools are found, called, watched and imported; what goes wrong is told by its name. */

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/client.h"
#include "pegboard/gateway.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"

struct world {
    peg_gateway *gateway;
    peg_registry *tools;
    peg_provider *provider;
    peg_client *client;
    peg_remote_result *result;
    peg_error error;
    atomic_uint n_attached;
    atomic_uint n_running; /* handlers of hold */
    atomic_uint n_stopped; /* and those that were told to stop */
    atomic_uint n_starts;
};

static bool await(atomic_uint *counter, unsigned at_least)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 60000 && atomic_load(counter) < at_least; i++)
        nanosleep(&moment, NULL);
    return atomic_load(counter) >= at_least;
}

/* ---- tools --------------------------------------------------------------------------------------
 */

static void forecast(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;
    const peg_str city = peg_json_str(peg_json_get(args, "city"));

    atomic_fetch_add(&w->n_starts, 1);
    if (peg__str_is(city, "Atlantis"))
        peg_call_fail(call, "there is no city called Atlantis any more");
    else
        peg_call_reply_json(call, args);
}

static void run_output(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    (void)peg_provider_delta(call, "stdout", peg__str("one "));
    (void)peg_provider_delta(call, "stdout", peg__str("two "));
    peg_call_reply(call, peg__str("three"));
}

/* Until somebody wants it no more. */
static void hold(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    atomic_fetch_add(&w->n_running, 1);
    (void)peg_ctx_wait(peg_call_ctx(call), 60000, NULL);
    atomic_fetch_add(&w->n_stopped, 1);
    peg_call_fail(call, "stopped");
}

/* Asks the caller, and answers with that. */
static void ask(peg_call *call, const peg_json *args, void *user)
{
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *answer = NULL;
    struct world *w = user;
    peg_error error;
    peg_status status =
        peg_schema_compile(peg__str("{\"type\":\"boolean\"}"), NULL, &schema, &error);

    atomic_fetch_add(&w->n_starts, 1);
    if (!status)
        status = peg_gate_wait(peg_call_ctx(call),
                               &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "Sunny?",
                                               .payload = args, .schema = schema},
                               &answer, &error);
    if (status)
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_json(call, peg_json_root(answer));
}

static const char city_schema[] = "{\"type\":\"object\",\"required\":[\"city\"],"
                                  "\"properties\":{\"city\":{\"type\":\"string\"}}}";

static void add_tool(struct world *w, const char *name, peg_tool_fn fn, const char *schema)
{
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,      .name = name, .description = "tells the weather",
        .input_schema = schema, .run = fn,    .user = w};
    peg_tool *tool;

    CHECK_STATUS(peg_tool_new(&def, &tool, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_registry_register(w->tools, tool, false, &w->error), PEG_OK, w->error);
    peg_tool_unref(tool);
}

static void on_event(const peg_provider_event *event, void *user)
{
    struct world *w = user;

    atomic_fetch_add(&w->n_attached, event->kind == PEG_PROVIDER_ATTACHED);
}

/* ---- fixture ------------------------------------------------------------------------------------
 */

static void provide(struct world *w)
{
    const char *const tags[] = {"geo", NULL};
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT,
                                          .toolset = "weather",
                                          .description = "what the sky does",
                                          .version = "1.0.0",
                                          .tags = tags,
                                          .address = peg_gateway_address(w->gateway),
                                          .on_event = on_event,
                                          .user = w};

    CHECK_STATUS(peg_provider_new(w->tools, &options, &w->provider, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_provider_start(w->provider, &w->error), PEG_OK, w->error);
    CHECK(await(&w->n_attached, 1));
}

static void world_open(struct world *w)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .log_level = PEG_LOG_ERROR,
                                       .drain_ms = 60000};

    memset(w, 0, sizeof(*w));
    CHECK_STATUS(peg_gateway_new(&config, &w->gateway, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_gateway_listen(w->gateway, "127.0.0.1:0", &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_registry_new(NULL, 0, &w->tools, &w->error), PEG_OK, w->error);
    add_tool(w, "forecast", forecast, city_schema);
    add_tool(w, "say", run_output, NULL);
    add_tool(w, "hold", hold, NULL);
    add_tool(w, "ask", ask, NULL);
    provide(w);
    CHECK_STATUS(peg_client_new(&(peg_client_options){PEG_CLIENT_OPTIONS_INIT,
                                                      .address = peg_gateway_address(w->gateway)},
                                &w->client, &w->error),
                 PEG_OK, w->error);
}

static void world_close(struct world *w)
{
    peg_remote_result_free(w->result);
    peg_client_unref(w->client);
    peg_provider_free(w->provider);
    peg_registry_unref(w->tools);
    CHECK_STATUS(peg_gateway_drain(w->gateway, &w->error), PEG_OK, w->error);
    peg_gateway_free(w->gateway);
}

static peg_remote_request request_of(const char *tool, const char *args)
{
    return (peg_remote_request){PEG_REMOTE_REQUEST_INIT, .toolset = "weather", .tool = tool,
                                .args = peg_cstr(args)};
}

static void call(struct world *w, const peg_remote_request *request)
{
    w->result = peg_remote_result_free(w->result);
    CHECK_STATUS(peg_client_call(w->client, NULL, request, &w->result, &w->error), PEG_OK,
                 w->error);
}

/* ---- finding ------------------------------------------------------------------------------------
 */

TEST(a_provided_toolset_is_listed_searched_and_got)
{
    struct world w;
    peg_toolset_list *list;
    peg_search_result *found;
    peg_toolset *toolset;

    world_open(&w);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);
    CHECK_INT(list->len, 1);
    CHECK_STR(peg__str(list->items[0].name), "weather");
    CHECK_INT(list->items[0].health, PEG_HEALTH_HEALTHY);
    CHECK_INT(list->items[0].n_tools, 4);
    peg_toolset_list_free(list);

    CHECK_STATUS(peg_client_search(w.client, NULL,
                                   &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "sky"},
                                   &found, &w.error),
                 PEG_OK, w.error);
    CHECK_INT(found->len, 1);
    peg_search_result_free(found);

    CHECK_STATUS(peg_client_get(w.client, NULL, NULL, "weather", &toolset, &w.error), PEG_OK,
                 w.error);
    CHECK_INT(toolset->n_tools, 4);
    peg_toolset_unref(toolset);
    world_close(&w);
}

TEST(a_node_reports_its_status_to_a_client_on_its_machine)
{
    struct world w;
    peg_node_status *status;

    world_open(&w);
    CHECK_STATUS(peg_client_status(w.client, NULL, NULL, true, &status, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(status->bus), "local");
    CHECK_INT(status->n_toolsets, 1);
    CHECK_INT(status->n_toolset_statuses, 1);
    peg_node_status_free(status);
    world_close(&w);
}

/* ---- calling ------------------------------------------------------------------------------------
 */

TEST(a_call_goes_to_the_provider_and_back)
{
    const peg_remote_request request = request_of("forecast", "{\"city\":\"Bergen\"}");
    struct world w;

    world_open(&w);
    call(&w, &request);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "{\"city\":\"Bergen\"}");
    CHECK(*w.result->call_id);
    world_close(&w);
}

TEST(errors_are_reported_by_name)
{
    const peg_remote_request failing = request_of("forecast", "{\"city\":\"Atlantis\"}");
    const peg_remote_request invalid = request_of("forecast", "{\"city\":7}");
    const peg_remote_request unknown = request_of("nothing", "{}");
    const peg_remote_request nowhere = {PEG_REMOTE_REQUEST_INIT, .toolset = "nowhere", .tool = "x"};
    struct world w;

    world_open(&w);
    call(&w, &failing);
    CHECK_INT(w.result->outcome, PEG_REMOTE_ERROR);
    CHECK(strstr(w.result->error_message, "Atlantis"));
    call(&w, &invalid);
    CHECK_INT(w.result->outcome, PEG_REMOTE_REFUSED);
    CHECK_STR(peg__str(w.result->error_name), "validation_error");
    call(&w, &unknown);
    CHECK_STR(peg__str(w.result->error.code), "E_NOT_FOUND");
    call(&w, &nowhere);
    CHECK_STR(peg__str(w.result->error.code), "E_NOT_FOUND");
    world_close(&w);
}

TEST(a_toolset_without_a_provider_is_unavailable_at_once)
{
    const peg_remote_request request = request_of("forecast", "{\"city\":\"Bergen\"}");
    struct world w;

    world_open(&w);
    peg_provider_stop(w.provider);
    CHECK_STATUS(peg_provider_wait(w.provider, &w.error), PEG_OK, w.error);

    call(&w, &request);

    CHECK_INT(w.result->outcome, PEG_REMOTE_REFUSED);
    CHECK_STR(peg__str(w.result->error.code), "E_SERVICE_UNAVAILABLE");
    world_close(&w);
}

TEST(the_same_identity_attaches_to_the_first_call)
{
    peg_remote_request request = request_of("forecast", "{\"city\":\"Bergen\"}");
    peg_remote_request other = request_of("forecast", "{\"city\":\"Oslo\"}");
    struct world w;

    world_open(&w);
    request.run_id = other.run_id = "run-1";
    request.tool_call_id = other.tool_call_id = "c-1";
    call(&w, &request);
    CHECK(!w.result->was_attached);
    call(&w, &request);

    CHECK(w.result->was_attached);
    CHECK_STR(w.result->json, "{\"city\":\"Bergen\"}");
    CHECK_INT(w.n_starts, 1);
    call(&w, &other);
    CHECK_STR(peg__str(w.result->error_name), "validation_error");
    world_close(&w);
}

/* With little time; with more if that was over before its handler ran, or before it had attached.
 */
static void call_briefly(struct world *w, peg_remote_request *request)
{
    const bool is_to_attach = atomic_load(&w->n_running) > 0;

    for (request->timeout_ms = 100; request->timeout_ms < 10000; request->timeout_ms *= 4) {
        call(w, request);
        if (is_to_attach ? w->result->was_attached : atomic_load(&w->n_running) > 0)
            return;
    }
}

/* The provider has the same deadline: its handler may say that it gave up before the gateway does.
 */
TEST(a_call_that_takes_too_long_was_started_and_ends_for_everybody)
{
    peg_remote_request request = request_of("hold", "{}");
    struct world w;

    world_open(&w);
    call_briefly(&w, &request);

    CHECK(w.result->outcome == PEG_REMOTE_UNKNOWN || w.result->outcome == PEG_REMOTE_ERROR);
    CHECK(w.result->was_started);
    CHECK(await(&w.n_stopped, 1));
    world_close(&w);
}

static void record_output(peg_str stream, peg_str delta, void *user)
{
    char *text = user;
    const size_t len = strlen(text);

    (void)stream;
    snprintf(text + len, 64 - len, "%.*s", PEG_ARG(delta));
}

/* ---- being asked ---- */

/* The first time with what does not fit, then with what does. */
static peg_status answer_question(const peg_remote_question *question, void *user,
                                  peg_json_doc **ret_answers, peg_error *reterr)
{
    unsigned *n_asked = user;
    char text[128];

    CHECK_INT(question->number, ++*n_asked);
    CHECK_INT(strlen(question->call_id), 64);
    snprintf(text, sizeof(text),
             "{\"gate-%u\":{\"action\":\"accept\",\"content\":{\"answer\":%s}}}", question->number,
             *n_asked == 1 ? "\"maybe\"" : "true");
    return peg_json_parse(peg__str(text), NULL, ret_answers, reterr);
}

static peg_status refuse_question(const peg_remote_question *question, void *user,
                                  peg_json_doc **ret_answers, peg_error *reterr)
{
    (void)question;
    (void)user;
    (void)ret_answers;
    *reterr = (peg_error){.status = PEG_ECANCELED, .code = "E_BUSY", .message = "I am busy"};
    return PEG_ECANCELED;
}

TEST(a_gate_of_a_handler_is_answered_by_the_caller)
{
    peg_remote_request request = request_of("ask", "{}");
    unsigned n_asked = 0;
    struct world w;

    world_open(&w);
    request.on_question = answer_question;
    request.question_user = &n_asked;
    call(&w, &request);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "true");
    CHECK_INT(n_asked, 2);
    CHECK_INT(atomic_load(&w.n_starts), 1);
    world_close(&w);
}

TEST(a_caller_that_refuses_or_cannot_be_asked_fails_the_gate)
{
    peg_remote_request request = request_of("ask", "{}");
    struct world w;

    world_open(&w);
    request.on_question = refuse_question;
    call(&w, &request);
    CHECK_INT(w.result->outcome, PEG_REMOTE_ERROR);
    CHECK_STR(peg__str(w.result->error_name), "E_TURN_GATE_REJECTED");
    CHECK(strstr(w.result->error_message, "I am busy"));
    request.on_question = NULL;
    call(&w, &request);
    CHECK_STR(peg__str(w.result->error_name), "E_GATE_UNSUPPORTED");
    world_close(&w);
}

/* The gate of the host's own call has what the remote handler asks. */
static void accept_all(peg_gate *gate, void *user)
{
    const peg_json *asked = peg_json_get(peg_gate_payload(gate), "pegboard/requests");
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    char text[256] = "{}";

    PEG_JSON_EACH_MEMBER (asked, key)
        snprintf(text, sizeof(text),
                 "{\"%s\":{\"action\":\"accept\",\"content\":{\"answer\":true}}}", key->u.ptr);
    *(unsigned *)user += 1;
    CHECK_INT(peg_json_parse(peg__str(text), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_gate_resolve(gate, peg_json_root(doc), NULL), PEG_OK);
}

static void call_imported(struct world *w, peg_ctx *ctx, peg_record **ret_record)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c1"),
                                      .tool = peg_cstr("ask"), .args = peg_cstr("{}")};

    CHECK_STATUS(peg_call_run(ctx, &request, NULL, ret_record, &w->error), PEG_OK, w->error);
}

TEST(a_question_of_an_imported_tool_is_a_gate_of_the_call)
{
    peg_registry *registry = NULL;
    peg_record *record = NULL;
    peg_ctx *deaf = NULL;
    peg_ctx *ctx = NULL;
    peg_str answer = {"", 0};
    unsigned n_asked = 0;
    struct world w;

    world_open(&w);
    CHECK_STATUS(peg_client_import(w.client, NULL, "weather", NULL, &registry, &w.error), PEG_OK,
                 w.error);
    CHECK_INT(peg_ctx_with_registry(NULL, registry, &deaf, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_gates(deaf, accept_all, &n_asked, &ctx, NULL), PEG_OK);

    call_imported(&w, ctx, &record);

    CHECK(!peg_record_is_error(record));
    CHECK_STATUS(peg_record_answer(record, &answer, &w.error), PEG_OK, w.error);
    CHECK_STR(answer, "true");
    CHECK_INT(n_asked, 1);
    peg_record_unref(record);
    call_imported(&w, deaf, &record);
    CHECK_STR(peg__str(peg_record_cause(record)), "E_GATE_UNSUPPORTED");
    peg_record_unref(record);
    peg_ctx_unref(ctx);
    peg_ctx_unref(deaf);
    peg_registry_unref(registry);
    world_close(&w);
}

TEST(output_comes_before_the_result)
{
    const peg_remote_request request = request_of("say", "{}");
    char heard[64] = "";
    const peg_remote_output output = {.fn = record_output, .user = heard};
    struct world w;

    world_open(&w);
    CHECK_STATUS(peg_client_call_stream(w.client, NULL, &request, &output, &w.result, &w.error),
                 PEG_OK, w.error);

    CHECK_STR(peg__str(heard), "one two ");
    CHECK_STR(w.result->json, "\"three\"");
    world_close(&w);
}

static void *cancel_when_it_runs(void *user)
{
    struct world *w = ((void **)user)[0];

    await(&w->n_running, 1);
    peg_cancel_fire(((void **)user)[1], "enough");
    return NULL;
}

TEST(a_cancellation_reaches_the_handler)
{
    const peg_remote_request request = request_of("hold", "{}");
    struct world w;
    peg_ctx *ctx;
    peg_cancel *cancel;
    pthread_t thread;
    void *args[2];

    world_open(&w);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &cancel, NULL), PEG_OK);
    args[0] = &w;
    args[1] = cancel;
    CHECK_INT(pthread_create(&thread, NULL, cancel_when_it_runs, args), 0);

    CHECK_STATUS(peg_client_call(w.client, ctx, &request, &w.result, &w.error), PEG_OK, w.error);

    pthread_join(thread, NULL);
    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK(await(&w.n_stopped, 1));
    peg_cancel_unref(cancel);
    peg_ctx_unref(ctx);
    world_close(&w);
}

TEST(a_long_call_is_started_awaited_and_canceled)
{
    peg_remote_request request = request_of("hold", "{}");
    char id[80];
    peg_remote_call started = {.call_id = id};
    struct world w;

    world_open(&w);
    request.timeout_ms = 60000;
    CHECK_STATUS(peg_client_start(w.client, NULL, &request, &w.result, &w.error), PEG_OK, w.error);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RUNNING);
    snprintf(id, sizeof(id), "%s", w.result->call_id);
    CHECK(await(&w.n_running, 1));

    w.result = peg_remote_result_free(w.result);
    CHECK_STATUS(peg_client_await(w.client, NULL, &started, 50, &w.result, &w.error), PEG_OK,
                 w.error);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RUNNING);
    CHECK_STATUS(peg_client_cancel(w.client, NULL, &started, &w.error), PEG_OK, w.error);
    CHECK(await(&w.n_stopped, 1));

    w.result = peg_remote_result_free(w.result);
    CHECK_STATUS(peg_client_await(w.client, NULL, &started, -1, &w.result, &w.error), PEG_OK,
                 w.error);
    CHECK(w.result->outcome == PEG_REMOTE_ERROR || w.result->outcome == PEG_REMOTE_UNKNOWN);
    CHECK(w.result->was_started);

    /* Without a wait as well. A gateway that had no time to look says that it runs. */
    for (unsigned i = 0; i < 10000; i++) {
        w.result = peg_remote_result_free(w.result);
        CHECK_STATUS(peg_client_await(w.client, NULL, &started, 0, &w.result, &w.error), PEG_OK,
                     w.error);
        if (w.result->outcome != PEG_REMOTE_RUNNING)
            break;
    }
    CHECK(w.result->outcome == PEG_REMOTE_ERROR || w.result->outcome == PEG_REMOTE_UNKNOWN);
    world_close(&w);
}

/* Somebody asked for it before, with more time. */
TEST(a_call_that_outlasts_an_attached_caller_has_an_unknown_outcome)
{
    peg_remote_request request = request_of("hold", "{}");
    char id[80];
    peg_remote_call started = {.call_id = id};
    struct world w;

    world_open(&w);
    request.idempotency_key = "k1";
    request.timeout_ms = 60000;
    CHECK_STATUS(peg_client_start(w.client, NULL, &request, &w.result, &w.error), PEG_OK, w.error);
    snprintf(id, sizeof(id), "%s", w.result->call_id);
    CHECK(await(&w.n_running, 1));

    call_briefly(&w, &request);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_ETIMEOUT);
    CHECK_STR(peg__str(w.result->call_id), id);
    CHECK(w.result->was_started);
    CHECK(w.result->was_attached);
    CHECK_INT(w.n_stopped, 0);
    CHECK_STATUS(peg_client_cancel(w.client, NULL, &started, &w.error), PEG_OK, w.error);
    CHECK(await(&w.n_stopped, 1));
    CHECK_INT(w.n_running, 1);
    world_close(&w);
}

/* ---- watching -----------------------------------------------------------------------------------
 */

struct seen {
    atomic_uint n_ready;
    atomic_uint n_unhealthy;
    atomic_uint n_unregistered;
};

static void see(const peg_watch_event *event, void *user)
{
    struct seen *seen = user;

    atomic_fetch_add(&seen->n_ready, event->kind == PEG_WATCH_READY);
    atomic_fetch_add(&seen->n_unregistered, event->kind == PEG_WATCH_UNREGISTERED);
    if (event->kind == PEG_WATCH_HEALTH && event->toolset->health == PEG_HEALTH_UNHEALTHY)
        atomic_fetch_add(&seen->n_unhealthy, 1);
}

TEST(a_watch_sees_health_and_catalog_change)
{
    struct world w;
    struct seen seen = {0};
    peg_watch *watch;

    world_open(&w);
    CHECK_STATUS(peg_client_watch(w.client, NULL, see, &seen, &watch, &w.error), PEG_OK, w.error);
    CHECK(await(&seen.n_ready, 1));

    peg_provider_stop(w.provider);
    CHECK_STATUS(peg_provider_wait(w.provider, &w.error), PEG_OK, w.error);
    CHECK(await(&seen.n_unhealthy, 1));
    CHECK_STATUS(peg_client_unregister(w.client, NULL, NULL, "weather", &w.error), PEG_OK, w.error);
    CHECK(await(&seen.n_unregistered, 1));

    peg_watch_free(watch);
    world_close(&w);
}

/* ---- an agent -----------------------------------------------------------------------------------
 */

TEST(an_agent_uses_a_toolset_behind_a_gateway)
{
    static const char text[] =
        "- {calls: [{name: forecast, args: {city: Bergen}}, {name: say, args: {}}]}\n"
        "- {text: 'It rains.'}\n";
    struct world w;
    peg_registry *registry;
    peg_script *script;
    peg_runner *runner;
    peg_turn *turn;
    peg_outcome outcome;
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT};
    char *yaml = NULL;

    world_open(&w);
    CHECK_STATUS(peg_client_import(w.client, NULL, "weather", NULL, &registry, &w.error), PEG_OK,
                 w.error);
    CHECK_STATUS(peg_script_new(peg_cstr(text), &script, &w.error), PEG_OK, w.error);
    config.registry = registry;
    config.loop.engine = peg_script_engine(script);
    CHECK_STATUS(peg_runner_new(&config, &runner, &w.error), PEG_OK, w.error);
    CHECK_STATUS(peg_turn_new(&turn, &w.error), PEG_OK, w.error);
    CHECK_STATUS(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Umbrella?"), &w.error), PEG_OK,
                 w.error);

    CHECK_STATUS(peg_runner_run(runner, NULL, turn, &outcome, &w.error), PEG_OK, w.error);

    CHECK_INT(outcome.end, PEG_END_ACK);
    CHECK_STATUS(peg_turn_write(turn, NULL, &yaml, NULL, &w.error), PEG_OK, w.error);
    CHECK(strstr(yaml, "three"));
    CHECK_INT(w.n_starts, 1);
    peg_free(yaml);
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_script_unref(script);
    peg_registry_unref(registry);
    world_close(&w);
}
