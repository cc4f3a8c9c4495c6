/* SPDX-License-Identifier: Apache-2.0 */

/* Calls through a client: every outcome, what is sent along, and what a lost connection means. */

#include "../t.h"
#include "base/limits.h"
#include "call_world.h"
#include "pegboard/trace.h"

/* ---- outcomes -----------------------------------------------------------------------------------
 */

TEST(a_call_gives_what_the_tool_answered)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(call_tool(&w, "echo"), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "{\"x\":1}");
    CHECK_STR(peg__str(w.result->call_id), "call-1");
    CHECK(w.result->was_started);
    CHECK(!w.result->was_attached);
    CHECK_INT(peg_remote_result_check(w.result, &w.error), PEG_OK);
    CHECK_STR(peg__str(w.fake.asked.toolset), "weather");
    CHECK_INT(w.fake.asked.timeout_ms, 0);
    world_close(&w);
}

TEST(a_tool_that_fails_is_a_result_with_its_own_message)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(call_tool(&w, "fail"), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_ERROR);
    CHECK_STR(peg__str(w.result->error_name), "no_city");
    CHECK_STR(peg__str(w.result->error_message), "there is no such city: name another");
    CHECK_INT(peg_remote_result_check(w.result, &w.error), PEG_EHOST);
    CHECK_STR(peg__str(w.error.code), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK(w.result->was_started);
    world_close(&w);
}

TEST(what_the_gateway_says_of_a_call_is_its_outcome)
{
    static const struct {
        const char *tool;
        peg_remote_outcome outcome;
        const char *code;
        bool was_started;
    } cases[] = {
        {"say:not_found", PEG_REMOTE_REFUSED, "E_NOT_FOUND", false},
        {"say:validation_error", PEG_REMOTE_REFUSED, "E_VALIDATION", false},
        {"say:service_unavailable", PEG_REMOTE_REFUSED, "E_SERVICE_UNAVAILABLE", false},
        {"say:overloaded", PEG_REMOTE_REFUSED, "E_OVERLOADED", false},
        {"say:permission_denied", PEG_REMOTE_REFUSED, "E_PERMISSION_DENIED", false},
        {"say:timeout", PEG_REMOTE_TIMEOUT, "E_TIMEOUT", false},
        {"say:canceled", PEG_REMOTE_CANCELED, "E_CANCELED", false},
        {"say:outcome_unknown", PEG_REMOTE_UNKNOWN, "E_OUTCOME_UNKNOWN", true},
    };
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(call_tool(&w, cases[i].tool), PEG_OK, w.error);

        CHECK_INT(w.result->outcome, cases[i].outcome);
        CHECK_STR(peg__str(w.result->error_name), cases[i].tool + 4);
        CHECK_STR(peg__str(w.result->error_message), "as it was asked to");
        CHECK_STR(peg__str(w.result->error.code), cases[i].code);
        CHECK(w.result->was_started == cases[i].was_started);
        CHECK(peg_remote_result_check(w.result, NULL) != PEG_OK);
    }
    world_close(&w);
}

TEST(a_call_that_ended_without_an_answer_has_the_id_of_the_gateway)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(call_tool(&w, "say:outcome_unknown"), PEG_OK, w.error);

    CHECK_STR(peg__str(w.result->call_id), "call-3");
    world_close(&w);
}

TEST(a_named_call_that_outlasts_a_wait_has_an_unknown_outcome)
{
    peg_remote_request request = request_of("outlast");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    request.idempotency_key = "k";

    CHECK_STATUS(call(&w, NULL, &request), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_ETIMEOUT);
    CHECK_STR(peg__str(w.result->error_name), "outcome_unknown");
    CHECK_STR(peg__str(w.result->call_id), "call-3");
    CHECK(w.result->was_started);
    world_close(&w);
}

/* The time was over before the gateway knew whether somebody had asked for it before. */
TEST(a_named_call_that_no_gateway_names_in_time_has_an_unknown_outcome)
{
    peg_remote_request request = request_of("say:timeout");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    request.idempotency_key = "k";

    CHECK_STATUS(call(&w, NULL, &request), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_ETIMEOUT);
    CHECK(w.result->was_started);
    world_close(&w);
}

TEST(a_named_call_that_was_not_started_in_time_is_a_timeout)
{
    peg_remote_request request = request_of("expire");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    request.idempotency_key = "k";

    CHECK_STATUS(call(&w, NULL, &request), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_TIMEOUT);
    CHECK_STR(peg__str(w.result->call_id), "call-3");
    CHECK(!w.result->was_started);
    world_close(&w);
}

TEST(an_overloaded_gateway_hints_when_to_try_again)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(call_tool(&w, "say:overloaded"), PEG_OK, w.error);

    CHECK_INT(w.result->retry_ms, 250);
    world_close(&w);
}

TEST(server_data_comes_beside_the_result)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(call_tool(&w, "data"), PEG_OK, w.error);

    CHECK_INT(w.result->n_server_data, 1);
    CHECK_STR(peg__str(w.result->server_data[0].kind), "map");
    CHECK_STR(peg__str(w.result->server_data[0].audience), "ui");
    CHECK_STR(w.result->server_data[0].data, "{\"zoom\": 9}");
    world_close(&w);
}

TEST(an_answer_that_cannot_be_read_is_an_unknown_outcome)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(call_tool(&w, "garbage"), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK(w.result->was_started);
    CHECK_STR(peg__str(w.result->error.code), "E_OUTCOME_UNKNOWN");
    CHECK(strstr(w.result->error_message, "cannot be read; check before you retry: "));
    world_close(&w);
}

/* ---- what is sent along
 * -------------------------------------------------------------------------- */

TEST(ids_metadata_and_trace_travel_with_the_call)
{
    static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const peg_remote_entry metadata[] = {{"user", "ann"}, {"plan", "a"}};
    const peg_trace trace = {.traceparent = parent};
    peg_remote_request request = request_of("echo");
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(peg_ctx_with_trace(NULL, &trace, &ctx, &w.error), PEG_OK, w.error);
    request.run_id = "run-1";
    request.turn_id = "turn-1";
    request.tool_call_id = "tc-1";
    request.idempotency_key = "mine";
    request.timeout_ms = 1234;
    request.metadata = metadata;
    request.n_metadata = 2;

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);

    CHECK_STR(peg__str(w.fake.asked.run_id), "run-1");
    CHECK_STR(peg__str(w.fake.asked.turn_id), "turn-1");
    CHECK_STR(peg__str(w.fake.asked.tool_call_id), "tc-1");
    CHECK_STR(peg__str(w.fake.asked.key), "mine");
    CHECK_STR(peg__str(w.fake.asked.metadata), "user=ann plan=a ");
    CHECK_STR(peg__str(w.fake.asked.traceparent), parent);
    CHECK_INT(w.fake.asked.timeout_ms, 1234);
    peg_ctx_unref(ctx);
    world_close(&w);
}

/* Who names a time hears that it is too long; a context that lasts longer has named none. */
TEST(a_context_that_outlasts_every_call_asks_for_the_longest)
{
    const int64_t day_ms = 24 * 60 * 60 * 1000;
    peg_remote_request request = request_of("echo");
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_deadline(NULL, 2 * day_ms, &ctx, NULL), PEG_OK);

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);
    CHECK_INT(w.fake.asked.timeout_ms, day_ms);
    request.timeout_ms = day_ms - 1;
    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);
    CHECK_INT(w.fake.asked.timeout_ms, day_ms - 1);
    request.timeout_ms = 3 * day_ms;
    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);
    CHECK_INT(w.fake.asked.timeout_ms, 3 * day_ms);
    peg_ctx_unref(ctx);
    world_close(&w);
}

TEST(the_gateway_receives_a_deadline_that_is_a_little_early)
{
    const peg_remote_request request = request_of("echo");
    struct world w;
    peg_clock *clock;
    peg_ctx *timed;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_clock_manual_new(1700000000000, &clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, clock, &timed, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_deadline(timed, 20000, &ctx, NULL), PEG_OK);

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);

    CHECK_INT(w.fake.asked.timeout_ms, 19900);
    peg_ctx_unref(ctx);
    peg_ctx_unref(timed);
    peg_clock_manual_free(clock);
    world_close(&w);
}

TEST(a_request_that_cannot_be_sent_is_refused_here)
{
    static char large[PEG_LIMIT_REMOTE_REQUEST_BYTES + 1];
    const peg_remote_request nothing = {PEG_REMOTE_REQUEST_INIT, .toolset = "weather"};
    const peg_remote_request crooked = {PEG_REMOTE_REQUEST_INIT, .toolset = "weather",
                                        .tool = "a\nb"};
    peg_remote_request heavy = request_of("echo");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(call(&w, NULL, &nothing), PEG_EINVAL);
    CHECK_INT(call(&w, NULL, &crooked), PEG_EINVAL);
    heavy.args = peg__strn(large, sizeof(large));
    CHECK_INT(call(&w, NULL, &heavy), PEG_ELIMIT);
    CHECK(strstr(w.error.message, "of a request: send less"));
    CHECK_INT(w.fake.n_calls, 0);
    world_close(&w);
}

/* ---- stopping -----------------------------------------------------------------------------------
 */

static void *stop_when_it_waits(void *user)
{
    struct stopper *s = user;

    fake_await(&s->w->fake.n_waiting, 1);
    peg_cancel_fire(s->cancel, "changed my mind");
    return NULL;
}

TEST(a_cancellation_reaches_the_gateway_and_the_outcome_is_not_known)
{
    const peg_remote_request request = request_of("wait");
    struct world w;
    struct stopper s = {.w = &w};
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &s.cancel, NULL), PEG_OK);
    CHECK_INT(pthread_create(&s.thread, NULL, stop_when_it_waits, &s), 0);

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);

    pthread_join(s.thread, NULL);
    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_ECANCELED);
    CHECK(strstr(w.result->error_message, "have been started: check before you retry"));
    CHECK(strstr(w.result->error_message, "changed my mind"));
    CHECK(fake_await(&w.fake.n_left, 1));
    peg_cancel_unref(s.cancel);
    peg_ctx_unref(ctx);
    world_close(&w);
}

struct mover {
    struct world *w;
    peg_clock *clock;
    pthread_t thread;
};

static void *move_when_it_waits(void *user)
{
    struct mover *m = user;

    fake_await(&m->w->fake.n_waiting, 1);
    peg_clock_manual_advance(m->clock, 5001);
    return NULL;
}

TEST(a_deadline_that_passes_ends_the_wait_and_is_reported_as_such)
{
    const peg_remote_request request = request_of("wait");
    struct world w;
    struct mover m = {.w = &w};
    peg_ctx *timed;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_clock_manual_new(1700000000000, &m.clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, m.clock, &timed, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_deadline(timed, 5000, &ctx, NULL), PEG_OK);
    CHECK_INT(pthread_create(&m.thread, NULL, move_when_it_waits, &m), 0);

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);

    pthread_join(m.thread, NULL);
    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_ETIMEOUT);
    CHECK(fake_await(&w.fake.n_left, 1));
    peg_ctx_unref(ctx);
    peg_ctx_unref(timed);
    peg_clock_manual_free(m.clock);
    world_close(&w);
}

TEST(a_context_that_has_stopped_sends_nothing_and_says_so)
{
    const peg_remote_request request = request_of("echo");
    struct world w;
    peg_ctx *ctx;
    peg_cancel *cancel;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &cancel, NULL), PEG_OK);
    peg_cancel_fire(cancel, "enough");

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_CANCELED);
    CHECK_STR(peg__str(w.result->error.code), "E_CANCELED");
    CHECK(!w.result->was_started);
    CHECK_INT(w.fake.n_calls, 0);
    peg_cancel_unref(cancel);
    peg_ctx_unref(ctx);
    world_close(&w);
}

/* ---- lost connections
 * ----------------------------------------------------------------------------- */

TEST(a_call_without_a_gateway_is_refused_as_nothing_was_sent)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    fake_stop(&w.fake);

    CHECK_STATUS(call_tool(&w, "echo"), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_REFUSED);
    CHECK_STR(peg__str(w.result->error.code), "E_SERVICE_UNAVAILABLE");
    CHECK(!w.result->was_started);
    world_close(&w);
}

TEST(a_call_whose_connection_is_lost_has_an_unknown_outcome)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_drops, 1);

    CHECK_STATUS(call_tool(&w, "drop"), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_EIO);
    CHECK(strstr(w.result->error_message, "outcome is unknown: check before you retry (UNAVAIL"));
    CHECK(w.result->was_started);
    CHECK_INT(w.fake.n_calls, 1);
    world_close(&w);
}

TEST(a_call_with_an_identity_is_asked_again_and_attaches)
{
    peg_remote_request request = request_of("drop");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_drops, 2);
    request.run_id = "run-1";
    request.tool_call_id = "tc-1";

    CHECK_STATUS(call(&w, NULL, &request), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK(w.result->was_attached);
    CHECK_INT(w.fake.n_calls, 3);
    CHECK_STR(peg__str(w.fake.asked.tool_call_id), "tc-1");
    world_close(&w);
}

TEST(a_call_is_not_asked_again_without_end)
{
    peg_remote_request request = request_of("drop");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_drops, 100);
    request.idempotency_key = "k";

    CHECK_STATUS(call(&w, NULL, &request), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.fake.n_calls, 5);
    world_close(&w);
}

static void *restart_when_it_waits(void *user)
{
    struct world *w = user;

    fake_await(&w->fake.n_waiting, 1);
    fake_stop(&w->fake);
    pthread_mutex_lock(&w->fake.lock);
    w->fake.token = NULL;
    pthread_mutex_unlock(&w->fake.lock);
    if (fake_serve(&w->fake))
        abort();
    fake_await(&w->fake.n_waiting, 2);
    fake_stop(&w->fake);
    return NULL;
}

/* The gateway goes while the call runs, comes back, is asked again, and goes for good. */
TEST(a_call_in_flight_survives_its_gateway_and_gives_up_in_time)
{
    peg_remote_request request = request_of("wait");
    struct world w;
    pthread_t thread;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_deadline(NULL, 4000, &ctx, NULL), PEG_OK);
    request.idempotency_key = "k";
    CHECK_INT(pthread_create(&thread, NULL, restart_when_it_waits, &w), 0);

    CHECK_STATUS(call(&w, ctx, &request), PEG_OK, w.error);

    pthread_join(thread, NULL);
    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.fake.n_calls, 2);
    peg_ctx_unref(ctx);
    world_close(&w);
}

struct leaver {
    struct world *w;
    peg_clock *clock;
    pthread_t thread;
    atomic_uint is_answered;
    bool was_in_time;
};

static void *leave_when_it_waits(void *user)
{
    struct leaver *l = user;

    fake_await(&l->w->fake.n_waiting, 1);
    fake_stop(&l->w->fake);
    peg_clock_manual_advance(l->clock, 8001);
    l->was_in_time = fake_await(&l->is_answered, 1);
    peg_clock_manual_advance(l->clock, 60000);
    return NULL;
}

/* Beyond its time a call waits only for a gateway that has it. */
TEST(a_call_whose_gateway_is_gone_ends_with_its_time_and_says_why)
{
    peg_remote_request request = request_of("wait");
    struct world w;
    struct leaver l = {.w = &w};
    peg_ctx *timed;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_clock_manual_new(1700000000000, &l.clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, l.clock, &timed, NULL), PEG_OK);
    request.idempotency_key = "k";
    request.timeout_ms = 8000;
    CHECK_INT(pthread_create(&l.thread, NULL, leave_when_it_waits, &l), 0);

    CHECK_STATUS(call(&w, timed, &request), PEG_OK, w.error);

    atomic_store(&l.is_answered, 1);
    pthread_join(l.thread, NULL);
    CHECK(l.was_in_time);
    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(w.result->error.status, PEG_ETIMEOUT);
    CHECK(strstr(w.result->error.message, "cannot be reached any more"));
    peg_ctx_unref(timed);
    peg_clock_manual_free(l.clock);
    world_close(&w);
}

/* ---- streams ------------------------------------------------------------------------------------
 */

struct heard {
    char text[256];
    struct world *w;
    bool calls_back;
};

static void record_output(peg_str stream, peg_str delta, void *user)
{
    struct heard *heard = user;
    const size_t len = strlen(heard->text);

    snprintf(heard->text + len, sizeof(heard->text) - len, "%.*s:%.*s", PEG_ARG(stream),
             PEG_ARG(delta));
    if (heard->calls_back) {
        const peg_remote_request request = request_of("echo");
        peg_remote_result *result;

        if (!peg_client_call(heard->w->client, NULL, &request, &result, NULL))
            peg_remote_result_free(result);
    }
}

TEST(output_arrives_before_the_result)
{
    const peg_remote_request request = request_of("talk");
    struct world w;
    struct heard heard = {.w = &w, .calls_back = true};
    const peg_remote_output output = {.fn = record_output, .user = &heard};

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_call_stream(w.client, NULL, &request, &output, &w.result, &w.error),
                 PEG_OK, w.error);

    CHECK_STR(peg__str(heard.text), "stdout:one stderr:two ");
    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "{\"x\":1}");
    CHECK_INT(w.fake.n_calls, 3);
    world_close(&w);
}

TEST(a_stream_that_ends_badly_still_reports_the_id_of_its_call)
{
    const peg_remote_request request = request_of("say:overloaded");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_call_stream(w.client, NULL, &request, NULL, &w.result, &w.error),
                 PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_REFUSED);
    CHECK_STR(peg__str(w.result->call_id), "call-1");
    world_close(&w);
}

/* ---- several ------------------------------------------------------------------------------------
 */

TEST(a_call_goes_to_the_first_registry_that_has_the_toolset)
{
    struct fake fakes[2];
    peg_client_registry registries[2] = {{PEG_CLIENT_REGISTRY_INIT, .name = "a"},
                                         {PEG_CLIENT_REGISTRY_INIT, .name = "b"}};
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = registries,
                                        .n_registries = 2};
    const peg_remote_request request = request_of("echo");
    const peg_remote_request nowhere = {PEG_REMOTE_REQUEST_INIT, .toolset = "nowhere",
                                        .tool = "echo"};
    peg_client *client;
    peg_remote_result *result;
    peg_error error;

    fake_prepare(&fakes[0]);
    CHECK_STATUS(fake_serve(&fakes[0]), PEG_OK, fakes[0].error);
    CHECK_STATUS(fake_open(&fakes[1]), PEG_OK, fakes[1].error);
    registries[0].address = fakes[0].address;
    registries[1].address = fakes[1].address;
    CHECK_STATUS(peg_client_new(&options, &client, &error), PEG_OK, error);

    CHECK_STATUS(peg_client_call(client, NULL, &request, &result, &error), PEG_OK, error);
    CHECK_INT(result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(fakes[0].n_calls, 0);
    CHECK_INT(fakes[1].n_calls, 1);
    peg_remote_result_free(result);

    CHECK_STATUS(peg_client_call(client, NULL, &nowhere, &result, &error), PEG_OK, error);
    CHECK_INT(result->outcome, PEG_REMOTE_REFUSED);
    CHECK_STR(peg__str(result->error_name), "not_found");
    peg_remote_result_free(result);
    peg_client_unref(client);
    fake_done(&fakes[0]);
    fake_done(&fakes[1]);
}

/* Where the toolset was found is where the call is. */
TEST(a_call_that_was_started_at_one_of_several_registries_is_awaited_there)
{
    struct fake fakes[2];
    peg_client_registry registries[2] = {{PEG_CLIENT_REGISTRY_INIT, .name = "a"},
                                         {PEG_CLIENT_REGISTRY_INIT, .name = "b"}};
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = registries,
                                        .n_registries = 2};
    const peg_remote_request request = request_of("wait");
    peg_remote_call started = {0};
    peg_client *client;
    peg_remote_result *result;
    peg_remote_result *ended;
    peg_error error;

    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(fake_open(&fakes[i]), PEG_OK, fakes[i].error);
        registries[i].address = fakes[i].address;
    }
    fake_hide(&fakes[0], true);
    atomic_store(&fakes[1].is_finished, true);
    CHECK_STATUS(peg_client_new(&options, &client, &error), PEG_OK, error);

    CHECK_STATUS(peg_client_start(client, NULL, &request, &result, &error), PEG_OK, error);
    CHECK_STR(peg__str(result->registry), "b");
    started.registry = result->registry;
    started.call_id = result->call_id;
    CHECK_STATUS(peg_client_await(client, NULL, &started, -1, &ended, &error), PEG_OK, error);
    CHECK_INT(ended->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(peg__str(ended->registry), "b");
    CHECK_INT(fakes[1].n_awaits, 1);
    peg_remote_result_free(ended);
    peg_remote_result_free(result);
    peg_client_unref(client);
    fake_done(&fakes[0]);
    fake_done(&fakes[1]);
}

static void call_at(peg_client *client, const peg_remote_request *request,
                    peg_remote_outcome outcome)
{
    peg_remote_result *result;
    peg_error error;

    CHECK_STATUS(peg_client_call(client, NULL, request, &result, &error), PEG_OK, error);
    CHECK_INT(result->outcome, outcome);
    peg_remote_result_free(result);
}

/* Where it is was remembered, for an hour. */
TEST(a_call_follows_its_toolset_to_another_registry)
{
    struct fake fakes[2];
    peg_client_registry registries[2] = {{PEG_CLIENT_REGISTRY_INIT, .name = "a"},
                                         {PEG_CLIENT_REGISTRY_INIT, .name = "b"}};
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = registries,
                                        .n_registries = 2};
    const peg_remote_request request = request_of("echo");
    peg_remote_request named = request;
    peg_client *client;
    peg_error error;

    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(fake_open(&fakes[i]), PEG_OK, fakes[i].error);
        registries[i].address = fakes[i].address;
    }
    fake_hide(&fakes[1], true);
    CHECK_STATUS(peg_client_new(&options, &client, &error), PEG_OK, error);
    call_at(client, &request, PEG_REMOTE_RESULT);
    CHECK_INT(fakes[0].n_calls, 1);
    fake_hide(&fakes[0], true);
    fake_hide(&fakes[1], false);

    call_at(client, &request, PEG_REMOTE_RESULT);
    call_at(client, &request, PEG_REMOTE_RESULT);
    CHECK_INT(fakes[0].n_calls, 2); /* once in vain */
    CHECK_INT(fakes[1].n_calls, 2);
    named.registry = "a";
    call_at(client, &named, PEG_REMOTE_REFUSED);
    CHECK_INT(fakes[1].n_calls, 2);
    fake_hide(&fakes[1], true);
    call_at(client, &request, PEG_REMOTE_REFUSED);
    peg_client_unref(client);
    fake_done(&fakes[0]);
    fake_done(&fakes[1]);
}

enum { N_THREADS = 8, N_CALLS = 50 };

static void *call_many(void *user)
{
    struct world *w = user;

    for (unsigned i = 0; i < N_CALLS; i++) {
        const peg_remote_request request = request_of(i % 3 ? "echo" : "talk");
        peg_remote_result *result = NULL;

        if (peg_client_call(w->client, NULL, &request, &result, NULL) ||
            result->outcome != PEG_REMOTE_RESULT)
            abort();
        peg_remote_result_free(result);
    }
    return NULL;
}

TEST(many_threads_call_through_one_client)
{
    struct world w;
    pthread_t threads[N_THREADS];

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    for (unsigned i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, call_many, &w), 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);

    CHECK_INT(w.fake.n_calls, N_THREADS * N_CALLS);
    world_close(&w);
}

TEST(outcomes_have_names)
{
    CHECK_STR(peg__str(peg_remote_outcome_name(PEG_REMOTE_UNKNOWN)), "outcome_unknown");
    CHECK_STR(peg__str(peg_remote_outcome_name(PEG_REMOTE_RUNNING)), "running");
    CHECK_STR(peg__str(peg_remote_outcome_name((peg_remote_outcome)99)), "?");
}

/* ---- memory -------------------------------------------------------------------------------------
 */

static peg_status torture_call(const char *tool)
{
    struct world w;
    const peg_remote_entry metadata[] = {{"a", "b"}};
    peg_remote_request request = request_of(tool);
    peg_status status = world_open(&w);

    request.run_id = "r";
    request.tool_call_id = "c";
    request.metadata = metadata;
    request.n_metadata = 1;
    if (!status)
        status = call(&w, NULL, &request);
    world_close(&w);
    return status;
}

TORTURE(calls_survive_any_allocation_failure)
{
    return torture_call("data");
}

TORTURE(refused_calls_survive_any_allocation_failure)
{
    return torture_call("say:overloaded");
}

TORTURE(streams_survive_any_allocation_failure)
{
    const peg_remote_request request = request_of("talk");
    struct world w;
    struct heard heard = {.w = &w};
    const peg_remote_output output = {.fn = record_output, .user = &heard};
    peg_status status = world_open(&w);

    if (!status)
        status = peg_client_call_stream(w.client, NULL, &request, &output, &w.result, &w.error);
    world_close(&w);
    return status;
}
