/* SPDX-License-Identifier: Apache-2.0 */

/* Toolsets behind a gateway as tools of a local registry, called as any other tool. */

#include "../t.h"
#include "fake_registry.h"
#include "pegboard/artifact.h"
#include "pegboard/client.h"
#include "pegboard/pegboard.h"
#include "pegboard/trace.h"

struct world {
    struct fake fake;
    peg_client *client;
    peg_registry *registry;
    peg_record *record;
    peg_error error;
};

static peg_status world_begin(struct world *w)
{
    memset(w, 0, sizeof(*w));
    fake_prepare(&w->fake);
    fake_add(&w->fake, "weather", "geo");
    return PEG_OK;
}

static peg_status world_import(struct world *w, const char *toolset,
                               const peg_import_options *options)
{
    peg_status status = fake_serve(&w->fake);

    w->error = w->fake.error;
    if (!status)
        status = peg_client_new(
            &(peg_client_options){PEG_CLIENT_OPTIONS_INIT, .address = w->fake.address}, &w->client,
            &w->error);
    if (!status)
        status = peg_client_import(w->client, NULL, toolset, options, &w->registry, &w->error);
    return status;
}

static peg_status world_open(struct world *w)
{
    world_begin(w);
    return world_import(w, "weather", NULL);
}

static void world_close(struct world *w)
{
    peg_record_unref(w->record);
    peg_registry_unref(w->registry);
    peg_client_unref(w->client);
    fake_done(&w->fake);
}

static peg_status run(struct world *w, const char *tool, const char *args)
{
    w->record = peg_record_unref(w->record);
    return peg_registry_call(w->registry, tool, args, &w->record, &w->error);
}

static peg_str answer_of(const struct world *w)
{
    peg_str answer = peg__str("");

    if (peg_record_answer(w->record, &answer, NULL))
        T_FAIL("the record has no answer");
    return answer;
}

/* ---- tools --------------------------------------------------------------------------------------
 */

TEST(an_imported_tool_is_what_was_registered)
{
    struct world w;
    peg_tool *tool;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    tool = peg_registry_get(w.registry, peg__str("echo"));
    CHECK(tool);
    CHECK_INT(peg_registry_len(w.registry), FAKE_TOOLS);
    CHECK_STR(peg__str(peg_tool_description(tool)), "does what its name says");
    CHECK_STR(peg__str(peg_tool_version(tool)), "1.2.0");
    CHECK(peg_tool_is_idempotent(tool));
    CHECK(!peg_tool_is_destructive(tool));
    CHECK(!peg_tool_is_trusted(tool));
    CHECK(!peg_json_get(peg_tool_input_schema(tool), "additionalProperties")); /* as given */
    peg_tool_unref(tool);
    tool = peg_registry_get(w.registry, peg__str("wait"));
    CHECK_INT(peg_tool_timeout_ms(tool), 60000);
    CHECK(!peg_tool_is_idempotent(tool));
    CHECK(peg_tool_is_destructive(tool)); /* nobody says that it is not */
    CHECK(!peg_tool_examples(tool));
    CHECK(!peg_tool_artifact_kind(tool));
    peg_tool_unref(tool);
    tool = peg_registry_get(w.registry, peg__str("data"));
    CHECK(peg_tool_is_additive(tool) && !peg_tool_is_destructive(tool));
    peg_tool_unref(tool);
    world_close(&w);
}

TEST(hints_title_version_examples_and_kind_of_an_imported_tool_are_its_author_s)
{
    struct world w;
    peg_tool *tool;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    tool = peg_registry_get(w.registry, peg__str("text"));

    CHECK(peg_tool_is_read_only(tool) && !peg_tool_is_destructive(tool));
    CHECK_STR(peg_json_str(peg_json_get(peg_tool_meta(tool), "title")), "A \"text\"");
    CHECK_STR(peg__str(peg_tool_version(tool)), "7");
    CHECK(peg_tool_artifact_kind(tool) == &peg_artifact_markdown);
    CHECK_INT(peg_json_len(peg_tool_examples(tool)), 1);
    peg_tool_unref(tool);
    world_close(&w);
}

TEST(an_example_that_the_schema_refuses_is_left_out_and_its_tool_is_not)
{
    struct world w;
    peg_tool *tool;

    world_begin(&w);
    w.fake.schema = "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}}}";
    CHECK_STATUS(world_import(&w, "weather", NULL), PEG_OK, w.error);
    tool = peg_registry_get(w.registry, peg__str("text"));

    CHECK(tool && !peg_tool_examples(tool));
    peg_tool_unref(tool);
    world_close(&w);
}

TEST(a_prefix_and_the_toolset_make_names_of_their_own)
{
    struct world w;

    world_begin(&w);
    fake_add(&w.fake, "climate", NULL);

    CHECK_STATUS(world_import(&w, "**",
                              &(peg_import_options){PEG_IMPORT_OPTIONS_INIT, .prefix = "r_",
                                                    .qualifies = true}),
                 PEG_OK, w.error);

    CHECK_INT(peg_registry_len(w.registry), 2 * FAKE_TOOLS);
    CHECK(peg_registry_has(w.registry, peg__str("r_weather.echo")));
    CHECK(peg_registry_has(w.registry, peg__str("r_climate.fail")));
    world_close(&w);
}

TEST(two_tools_of_one_name_are_refused_with_what_to_do)
{
    struct world w;

    world_begin(&w);
    fake_add(&w.fake, "climate", NULL);

    CHECK_INT(world_import(&w, "**", NULL), PEG_EEXISTS);

    CHECK_STR(peg__str(w.error.code), "E_TOOL_ALREADY_REGISTERED");
    CHECK(strstr(w.error.message, "qualifies"));
    world_close(&w);
}

TEST(a_glob_that_fits_nothing_is_not_found)
{
    struct world w;

    world_begin(&w);
    CHECK_INT(world_import(&w, "mail*", NULL), PEG_ENOTFOUND);
    CHECK_STR(peg__str(w.error.code), "E_NOT_FOUND");
    CHECK_INT(peg_client_import(w.client, NULL, "mail", NULL, &w.registry, &w.error),
              PEG_ENOTFOUND);
    CHECK_INT(peg_client_import(w.client, NULL, NULL, NULL, &w.registry, &w.error), PEG_EINVAL);
    world_close(&w);
}

TEST(a_toolset_that_goes_while_a_glob_is_imported_is_left_out)
{
    struct world w;

    world_begin(&w);
    fake_add(&w.fake, "climate", NULL);
    fake_hide(&w.fake, true);

    CHECK_STATUS(
        world_import(&w, "**", &(peg_import_options){PEG_IMPORT_OPTIONS_INIT, .qualifies = true}),
        PEG_OK, w.error);

    CHECK_INT(peg_registry_len(w.registry), FAKE_TOOLS);
    CHECK(peg_registry_has(w.registry, peg__str("climate.echo")));
    world_close(&w);
}

TEST(a_glob_that_is_imported_again_gives_what_was_registered_again)
{
    struct world w;

    world_begin(&w);
    CHECK_STATUS(world_import(&w, "**", NULL), PEG_OK, w.error);
    CHECK_STATUS(run(&w, "echo", "{}"), PEG_OK, w.error);
    CHECK(!peg_record_is_error(w.record));
    w.registry = peg_registry_unref(w.registry);
    pthread_mutex_lock(&w.fake.lock);
    w.fake.toolsets[0].revision = 8;
    w.fake.schema = "{\"type\":\"object\",\"required\":[\"city\"]}";
    pthread_mutex_unlock(&w.fake.lock);

    CHECK_STATUS(peg_client_import(w.client, NULL, "**", NULL, &w.registry, &w.error), PEG_OK,
                 w.error);
    CHECK_STATUS(run(&w, "echo", "{}"), PEG_OK, w.error);
    CHECK(peg_record_is_error(w.record));
    world_close(&w);
}

TEST(a_schema_that_cannot_be_a_tools_names_the_tool)
{
    struct world w;

    world_begin(&w);
    w.fake.schema = "{\"type\":\"string\"}";

    CHECK_INT(world_import(&w, "weather", NULL), PEG_EINVAL);

    CHECK(strstr(w.error.message, "echo"));
    CHECK_STATUS(
        peg_client_import(w.client, NULL, "weather",
                          &(peg_import_options){PEG_IMPORT_OPTIONS_INIT, .skips_unusable = true},
                          &w.registry, &w.error),
        PEG_OK, w.error);
    CHECK_INT(peg_registry_len(w.registry), 0);
    world_close(&w);
}

/* ---- calls --------------------------------------------------------------------------------------
 */

TEST(a_call_of_an_imported_tool_is_a_call_of_the_remote_one)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "echo", "{\"city\":  \"Bergen\"}"), PEG_OK, w.error);

    CHECK(!peg_record_is_error(w.record));
    CHECK_STR(answer_of(&w), "{\"city\":\"Bergen\"}");
    CHECK_STR(peg__str(w.fake.asked.payload), "{\"city\":  \"Bergen\"}"); /* as sent */
    CHECK_STR(peg__str(w.fake.asked.toolset), "weather");
    CHECK(w.fake.asked.timeout_ms > 0 && w.fake.asked.timeout_ms <= 30000);
    world_close(&w);
}

/* A tool of this schema in the registry takes {} as well: the gateway, which fills in nothing, must
 * not decide otherwise. */
TEST(defaults_are_filled_in_before_a_call_is_sent)
{
    struct world w;

    world_begin(&w);
    w.fake.schema = "{\"type\":\"object\",\"properties\":{\"days\":{\"type\":\"integer\","
                    "\"default\":3}},\"required\":[\"days\"]}";
    CHECK_STATUS(world_import(&w, "weather", NULL), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "echo", "{}"), PEG_OK, w.error);
    CHECK_STR(peg__str(w.fake.asked.payload), "{\"days\":3}");
    CHECK_STATUS(run(&w, "echo", "{\"days\":  4}"), PEG_OK, w.error);

    CHECK_STR(peg__str(w.fake.asked.payload), "{\"days\":  4}"); /* nothing was missing */
    world_close(&w);
}

TEST(what_was_text_there_is_text_here)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "text", "{}"), PEG_OK, w.error);

    CHECK_STR(answer_of(&w), "hello");
    world_close(&w);
}

TEST(an_output_schema_holds_here_too)
{
    struct world w;

    world_begin(&w);
    w.fake.output_schema = "{\"type\":\"object\",\"required\":[\"days\"]}";
    CHECK_STATUS(world_import(&w, "weather", NULL), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "echo", "{\"days\":2}"), PEG_OK, w.error);
    CHECK(!peg_record_is_error(w.record));
    CHECK_STATUS(run(&w, "echo", "{}"), PEG_OK, w.error);

    CHECK_STR(peg__str(peg_record_code(w.record)), "E_TOOL_OUTPUT_INVALID");
    world_close(&w);
}

TEST(arguments_are_checked_before_anybody_is_asked)
{
    struct world w;

    world_begin(&w);
    w.fake.schema = "{\"type\":\"object\",\"properties\":{\"days\":{\"type\":\"integer\"}}}";
    CHECK_STATUS(world_import(&w, "weather", NULL), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "echo", "{\"days\":\"two\"}"), PEG_OK, w.error);

    CHECK_STR(peg__str(peg_record_code(w.record)), "E_INVALID_TOOL_ARGS");
    CHECK_INT(w.fake.n_calls, 0);
    CHECK_STATUS(run(&w, "echo", "{\"other\":1}"), PEG_OK, w.error); /* open, as given */
    CHECK(!peg_record_is_error(w.record));
    world_close(&w);
}

TEST(a_remote_failure_is_a_failure_for_the_model_with_the_tools_own_code)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "fail", "{}"), PEG_OK, w.error);

    CHECK_STR(peg__str(peg_record_code(w.record)), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_STR(peg__str(peg_record_cause(w.record)), "no_city");
    CHECK(strstr(answer_of(&w).ptr, "name another"));
    world_close(&w);
}

TEST(a_refusal_of_the_gateway_is_a_failure_with_its_code)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "say:overloaded", "{}"), PEG_OK, w.error);

    CHECK_STR(peg__str(peg_record_cause(w.record)), "E_OVERLOADED");
    CHECK(strstr(answer_of(&w).ptr, "as it was asked to"));
    world_close(&w);
}

TEST(server_data_is_recorded_and_not_shown)
{
    struct world w;
    const peg_json *data;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "data", "{}"), PEG_OK, w.error);

    data = peg_record_server_data(w.record);
    CHECK(data && peg_json_len(data) == 1);
    CHECK_STR(peg_json_str(peg_json_get(peg_json_at(data, 0), "kind")), "map");
    CHECK(!strstr(answer_of(&w).ptr, "zoom"));
    world_close(&w);
}

/* ---- context ------------------------------------------------------------------------------------
 */

static peg_ctx *context_of(struct world *w, peg_ctx *parent)
{
    peg_ctx *ctx;

    CHECK_INT(peg_ctx_with_registry(parent, w->registry, &ctx, NULL), PEG_OK);
    peg_ctx_unref(parent);
    return ctx;
}

static peg_ctx *named_context(struct world *w)
{
    const peg_ids ids = {.run_id = "run-9", .turn_id = "turn-9", .iteration = -1};
    peg_ctx *ctx;

    CHECK_INT(peg_ctx_with_ids(NULL, &ids, &ctx, NULL), PEG_OK);
    return context_of(w, ctx);
}

TEST(the_identity_of_a_call_is_its_run_and_the_key_of_its_record)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg__str("c1"),
                                      .tool = peg__str("echo"), .key = peg__str("key-1")};
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    ctx = named_context(&w);

    CHECK_STATUS(peg_call_run(ctx, &request, NULL, &w.record, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(w.fake.asked.run_id), "run-9");
    CHECK_STR(peg__str(w.fake.asked.turn_id), "turn-9");
    CHECK_STR(peg__str(w.fake.asked.tool_call_id), "key-1");
    CHECK_STR(peg__str(w.fake.asked.key), "");
    peg_ctx_unref(ctx);
    world_close(&w);
}

TEST(a_call_outside_of_any_run_is_known_by_the_key_alone)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(run(&w, "echo", "{}"), PEG_OK, w.error);

    CHECK_STR(peg_record_key(w.record), w.fake.asked.key);
    world_close(&w);
}

TEST(a_call_whose_connection_broke_attaches_to_what_was_started)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_drops, 1);

    CHECK_STATUS(run(&w, "drop", "{}"), PEG_OK, w.error);

    CHECK(!peg_record_is_error(w.record));
    CHECK_INT(w.fake.n_calls, 2);
    world_close(&w);
}

TEST(a_second_attempt_looks_at_the_first_and_is_then_a_call_of_its_own)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg__str("fail_once"),
                                      .key = peg__str("key-1")};
    const peg_run_options options = {PEG_RUN_OPTIONS_INIT, .settings.max_retries = 2,
                                     .settings.retry_delay_ms = 1};
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    ctx = named_context(&w);

    CHECK_STATUS(peg_call_run(ctx, &request, &options, &w.record, &w.error), PEG_OK, w.error);

    CHECK(!peg_record_is_error(w.record));
    CHECK_INT(peg_record_attempts(w.record), 2);
    CHECK_INT(w.fake.n_calls, 3); /* key-1; key-1 again, attached; key-1#2 */
    CHECK_STR(peg__str(w.fake.keys[0]), "key-1");
    CHECK_STR(peg__str(w.fake.keys[1]), "key-1#2");
    peg_ctx_unref(ctx);
    world_close(&w);
}

/* Else it would run twice at a time. */
TEST(a_further_attempt_stays_with_a_first_one_that_goes_on)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg__str("outlast"),
                                      .key = peg__str("key-1")};
    const peg_run_options options = {PEG_RUN_OPTIONS_INIT, .settings.max_retries = 2,
                                     .settings.retry_delay_ms = 1};
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    ctx = named_context(&w);

    CHECK_STATUS(peg_call_run(ctx, &request, &options, &w.record, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(peg_record_cause(w.record)), "E_OUTCOME_UNKNOWN");
    CHECK_INT(peg_record_attempts(w.record), 3);
    CHECK_INT(w.fake.n_calls, 3);
    CHECK_STR(peg__str(w.fake.asked.tool_call_id), "key-1");
    peg_ctx_unref(ctx);
    world_close(&w);
}

TEST(the_trace_of_the_context_travels_with_the_call)
{
    static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const peg_trace trace = {.traceparent = parent};
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg__str("echo")};
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_trace(NULL, &trace, &ctx, NULL), PEG_OK);
    ctx = context_of(&w, ctx);

    CHECK_STATUS(peg_call_run(ctx, &request, NULL, &w.record, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(w.fake.asked.traceparent), parent);
    peg_ctx_unref(ctx);
    world_close(&w);
}

struct stopper {
    struct world *w;
    peg_cancel *cancel;
};

static void *stop_when_it_waits(void *user)
{
    struct stopper *s = user;

    fake_await(&s->w->fake.n_waiting, 1);
    peg_cancel_fire(s->cancel, "changed my mind");
    return NULL;
}

TEST(canceling_a_call_reaches_the_gateway)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg__str("wait")};
    struct world w;
    struct stopper s = {.w = &w};
    pthread_t thread;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &s.cancel, NULL), PEG_OK);
    ctx = context_of(&w, ctx);
    CHECK_INT(pthread_create(&thread, NULL, stop_when_it_waits, &s), 0);

    CHECK_STATUS(peg_call_run(ctx, &request, NULL, &w.record, &w.error), PEG_OK, w.error);

    pthread_join(thread, NULL);
    CHECK(peg_record_is_error(w.record));
    CHECK(fake_await(&w.fake.n_left, 1));
    peg_cancel_unref(s.cancel);
    peg_ctx_unref(ctx);
    world_close(&w);
}

static void record_output(const peg_event *event, void *user)
{
    char *log = user;
    const size_t len = strlen(log);

    if (event->kind == PEG_EVENT_LOG && peg__str_is(event->u.log.kind, "tool_output"))
        snprintf(log + len, 256 - len, "%.*s=%.*s",
                 PEG_ARG(peg_json_str(peg_json_get(event->u.log.payload, "stream"))),
                 PEG_ARG(event->u.log.message));
}

TEST(output_of_a_running_tool_becomes_events)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg__str("talk")};
    struct world w;
    char log[256] = "";
    peg_ctx *ctx;

    world_begin(&w);
    CHECK_STATUS(world_import(&w, "weather",
                              &(peg_import_options){PEG_IMPORT_OPTIONS_INIT, .with_output = true}),
                 PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_events(NULL, record_output, log, &ctx, NULL), PEG_OK);
    ctx = context_of(&w, ctx);

    CHECK_STATUS(peg_call_run(ctx, &request, NULL, &w.record, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(log), "stdout=one stderr=two ");
    CHECK(!peg_record_is_error(w.record));
    peg_ctx_unref(ctx);
    world_close(&w);
}

TEST(tools_keep_their_client)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    w.client = peg_client_unref(w.client);

    CHECK_STATUS(run(&w, "echo", "{}"), PEG_OK, w.error);

    CHECK(!peg_record_is_error(w.record));
    world_close(&w);
}

/* ---- an agent -----------------------------------------------------------------------------------
 */

/* The goal: an agent as the earlier parts of the library make it, with a scripted model and a
 * runner, calls tools behind a gateway with no other change than where its registry comes from. */
TEST(an_agent_calls_remote_tools_with_no_other_change)
{
    static const char text[] = "- {calls: [{name: text, args: {}}, {name: fail, args: {}}]}\n"
                               "- {text: 'It said hello.'}\n";
    struct world w;
    peg_script *script;
    peg_runner *runner;
    peg_turn *turn;
    peg_outcome outcome;
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT};
    char *yaml = NULL;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(peg_script_new(peg_cstr(text), &script, &w.error), PEG_OK, w.error);
    config.registry = w.registry;
    config.loop.engine = peg_script_engine(script);
    CHECK_STATUS(peg_runner_new(&config, &runner, &w.error), PEG_OK, w.error);
    CHECK_STATUS(peg_turn_new(&turn, &w.error), PEG_OK, w.error);
    CHECK_STATUS(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Say hello."), &w.error), PEG_OK,
                 w.error);

    CHECK_STATUS(peg_runner_run(runner, NULL, turn, &outcome, &w.error), PEG_OK, w.error);

    CHECK_INT(outcome.end, PEG_END_ACK);
    CHECK_INT(w.fake.n_calls, 2);
    CHECK(*w.fake.asked.run_id); /* the turn's, as the host named no run */
    CHECK_STATUS(peg_turn_write(turn, NULL, &yaml, NULL, &w.error), PEG_OK, w.error);
    CHECK(strstr(yaml, "hello"));
    CHECK(strstr(yaml, "no_city"));
    CHECK(strstr(yaml, "It said hello."));
    peg_free(yaml);
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_script_unref(script);
    world_close(&w);
}

/* ---- memory -------------------------------------------------------------------------------------
 */

TORTURE(imports_survive_any_allocation_failure)
{
    struct world w;
    peg_status status;

    world_begin(&w);
    status =
        world_import(&w, "weath*", &(peg_import_options){PEG_IMPORT_OPTIONS_INIT, .prefix = "x_"});
    world_close(&w);
    return status;
}

TORTURE(calls_of_imported_tools_survive_any_allocation_failure)
{
    struct world w;
    peg_status status = world_open(&w);

    if (!status)
        status = run(&w, "data", "{\"a\": 1}");
    if (!status)
        status = run(&w, "fail", "{}");
    world_close(&w);
    return status;
}
