/* SPDX-License-Identifier: Apache-2.0 */

/* Calls of a provider: what it answers, and what it does while handlers work. */

#include "t.h"

#include "base/limits.h"
#include "pegboard/media.h"
#include "remote/provider_world.h"

/* ---- results -----------------------------------------------------------------------------------
 */

TEST(provider_answers_calls_with_json)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
    fake_call(w.gateway, 0, "c1", "echo", "{\"a\":[1,2.50]}");
    fake_call(w.gateway, 0, "c2", "text", "");
    fake_call(w.gateway, 0, "c3", "bytes", "{}");

    CHECK_RESULT(&w, "c1", "{\"a\":[1,2.50]}");
    CHECK_RESULT(&w, "c2", "\"a \\\"text\\\"\\n\"");
    CHECK_RESULT(&w, "c3", "{\"base64\":\"/wB6\"}");
    world_stop(&w);
}

TEST(provider_answers_with_the_code_and_message_of_a_failure)
{
    struct world w;
    const struct fake_frame *f;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
    fake_call(w.gateway, 0, "c1", "fail", "{}");
    fake_call(w.gateway, 0, "c2", "fail", "{\"coded\":1}");

    f = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(f->name), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK(strstr(f->words, "it is broken"));
    CHECK_INT(f->len, 0);
    f = fake_await(w.gateway, FAKE_RESULT, "c2", 0);
    CHECK_STR(peg_cstr(f->name), "E_NO_RAIN");
    CHECK(strstr(f->words, "there is no rain"));
    world_stop(&w);
}

TEST(provider_answers_with_an_error_if_json_has_a_member_twice)
{
    struct world w;
    const struct fake_frame *f;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
    fake_call(w.gateway, 0, "c1", "twice", "{}");

    f = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(f->name), "E_JSON_DUPLICATE_KEY");
    CHECK(strstr(f->words, "/k comes twice"));
    CHECK_INT(f->len, 0);
    world_stop(&w);
}

/* The gateway has checked both: so it knows another version of the toolset. */
static void check_gives_back(peg_provider_options options)
{
    struct world w;

    world_start(&w, options);
    fake_call(w.gateway, 0, "c1", "typed", "{\"n\":\"x\"}");
    fake_call(w.gateway, 0, "c2", "nothing", "{}");

    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c1", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OUTDATED);
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c2", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OUTDATED);
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);
    fake_await_stream(w.gateway, 1);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_HELLO, NULL, 1)->text), "");
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, NULL), 0);
    CHECK_INT(peg_provider_info(w.provider).n_unacknowledged, 0);
    CHECK_INT(atomic_load(&n_starts), 0);
    world_stop(&w);
}

TEST(provider_gives_calls_back_that_its_own_version_of_the_toolset_does_not_take)
{
    check_gives_back((peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
    check_gives_back((peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .runs_inline = true});
}

/* As they were sent they fit, so the gateway has the same version, and others would say the same.
 */
TEST(provider_answers_with_an_error_if_defaults_make_arguments_wrong)
{
    struct world w;
    const struct fake_frame *f;

    world_prepare(&w);
    add(w.registry, "either", run_echo,
        "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{\"default\":1}},"
        "\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}");
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_await_stream(w.gateway, 0);
    fake_call(w.gateway, 0, "c1", "either", "{\"a\":1}");
    fake_call(w.gateway, 0, "c2", "either", "{\"c\":1}");

    f = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(f->name), "E_INVALID_TOOL_ARGS");
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c2", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OUTDATED);
    CHECK_INT(fake_count(w.gateway, FAKE_NAK, "c1"), 0);
    CHECK_INT(atomic_load(&n_starts), 0);
    world_stop(&w);
}

static void check_large(struct world *w, const char *id, size_t n)
{
    size_t n_bytes = 0;
    unsigned n_chunks = 0;
    const struct fake_frame *f;

    do {
        f = fake_await(w->gateway, FAKE_RESULT, id, n_chunks++);
        CHECK(f->len <= 64 << 10);
        n_bytes += f->len;
    } while (f->more);
    CHECK_INT(n_bytes, n + 2);
    CHECK_INT(n_chunks, (n + 2 + 65535) / 65536);
}

TEST(provider_sends_large_results_in_chunks)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
    fake_call(w.gateway, 0, "c1", "large", "{\"n\":1000000}");
    fake_call(w.gateway, 0, "c2", "large", "{\"n\":131070}");
    fake_call(w.gateway, 0, "c3", "large", "{\"n\":5000000}");

    check_large(&w, "c1", 1000000);
    check_large(&w, "c2", 131070);
    check_large(&w, "c3", 5000000);
    world_stop(&w);
}

TEST(provider_refuses_a_result_that_no_gateway_takes)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "large", "{\"n\":8388608}");

    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_RESULT, "c1", 0)->name), "E_RESULT_TOO_LARGE");
    world_stop(&w);
}

TEST(provider_sends_deltas_before_the_result_and_server_data_with_it)
{
    struct world w;
    const struct fake_frame *result;
    const bool ways[] = {false, true};

    for (size_t i = 0; i < 2; i++) {
        world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1,
                                               .runs_inline = ways[i]});
        fake_call(w.gateway, 0, "c1", "tell", "{\"x\":1}");
        result = fake_await(w.gateway, FAKE_RESULT, "c1", 0);

        CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 0)->text), "one");
        CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 1)->text), "two");
        CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 1)->name), "stdout");
        CHECK(result > fake_await(w.gateway, FAKE_DELTA, "c1", 1));
        CHECK_STR(peg_cstr(result->data), "note/host/{\"x\":1} ");
        CHECK_STR(peg_cstr(result->text), "\"three\"");
        world_stop(&w);
    }
}

TEST(output_of_a_command_reaches_its_own_caller_only)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "mutter", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 0)->text), "aloud\n");
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 0)->name), "stderr");

    fake_call(w.gateway, 0, "c2", "nest", "{}");
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_RESULT, "c2", 0)->text), "\"nested\"");
    CHECK_INT(fake_count(w.gateway, FAKE_DELTA, "c2"), 0);
    world_stop(&w);
}

TEST(handler_sees_its_caller_and_metadata)
{
    struct world w;
    Pegboard__V1__Call call = PEGBOARD__V1__CALL__INIT;
    Pegboard__V1__CallMeta meta = PEGBOARD__V1__CALL_META__INIT;
    Pegboard__V1__MetadataEntry entry = PEGBOARD__V1__METADATA_ENTRY__INIT;
    Pegboard__V1__MetadataEntry *entries[] = {&entry};
    char words[][64] = {"c1",     "look",
                        "alice",  "run-1",
                        "tool-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                        "a=b",    "k=v",
                        "tenant", "north"};

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    call.call_id = words[0];
    call.attempt = 3;
    call.tool = words[1];
    call.caller = words[2];
    call.meta = &meta;
    meta.run_id = words[3];
    meta.tool_call_id = words[4];
    call.traceparent = words[5];
    call.tracestate = words[6];
    call.baggage = words[7];
    entry.key = words[8];
    entry.value = words[9];
    call.metadata = entries;
    call.n_metadata = 1;
    fake_call_with(w.gateway, 0, &call, "{}");

    CHECK_RESULT(&w, "c1", "\"looked\"");
    CHECK_STR(peg_cstr(seen), "c1 3 alice run-1 tool-1 "
                              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=b k=v 1 "
                              "north run-1");
    CHECK_INT(trace_seen, 1);
    world_stop(&w);
}

/* ---- while handlers work -----------------------------------------------------------------------
 */

TEST(provider_answers_pings_while_all_workers_and_the_queue_are_full)
{
    struct world w;

    world_start(
        &w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .max_queued = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    fake_call(w.gateway, 0, "c2", "hold", "{}");
    fake_call(w.gateway, 0, "c3", "hold", "{}");
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c3", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED);
    fake_ping(w.gateway, 0, "p1");

    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, NULL), 0);
    CHECK_INT(peg_provider_info(w.provider).n_running, 1);
    CHECK_INT(peg_provider_info(w.provider).n_queued, 1);
    sem_post(&released);
    sem_post(&released);
    CHECK_RESULT(&w, "c2", "\"held\"");
    world_stop(&w);
}

/* A worker that is woken wakes the next: none of them may be forgotten, however quick calls come.
 */
TEST(provider_runs_as_many_handlers_at_once_as_it_has_workers)
{
    enum { WORKERS = 4, ROUNDS = 50 };
    struct world w;
    char id[16];

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = WORKERS});
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < WORKERS; i++) {
            snprintf(id, sizeof(id), "c%u.%u", round, i);
            fake_call(w.gateway, 0, id, "hold", "{}");
        }
        for (unsigned i = 0; i < WORKERS; i++)
            sem_wait(&entered); /* all of them, before the first one ends */
        CHECK_INT(peg_provider_info(w.provider).n_running, WORKERS);
        for (unsigned i = 0; i < WORKERS; i++)
            sem_post(&released);
        for (unsigned i = 0; i < WORKERS; i++) {
            snprintf(id, sizeof(id), "c%u.%u", round, i);
            CHECK_RESULT(&w, id, "\"held\"");
        }
    }
    world_stop(&w);
}

/* Results give credits back: only their memory tells the provider that it is too much. */
TEST(provider_takes_no_more_while_the_gateway_lets_results_gather)
{
    enum { RESULT_BYTES = 7 << 20, N = PEG_LIMIT_REMOTE_KEPT_BYTES / RESULT_BYTES + 1 };
    struct world w;
    char id[16];
    char args[32];

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    w.gateway->keeps_acks = true;
    snprintf(args, sizeof(args), "{\"n\":%d}", RESULT_BYTES);
    for (unsigned i = 0; i < N; i++) {
        snprintf(id, sizeof(id), "c%u", i);
        fake_call(w.gateway, 0, id, "large", args);
        fake_await(w.gateway, FAKE_RESULT, id, RESULT_BYTES / PEG_LIMIT_REMOTE_CHUNK_BYTES);
    }
    fake_call(w.gateway, 0, "more", "echo", "{}");

    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "more", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED);
    fake_ack(w.gateway, 0, "c0");
    fake_call(w.gateway, 0, "again", "echo", "{}");
    CHECK_RESULT(&w, "again", "{}");
    world_stop(&w);
}

/* Large results that wait here, as the gateway reads nothing of the stream. */
static void let_results_wait(struct world *w, unsigned n, int n_bytes)
{
    char id[16];
    char args[32];

    fake_pause(w->gateway, 0);
    snprintf(args, sizeof(args), "{\"n\":%d}", n_bytes);
    for (unsigned i = 0; i < n; i++) {
        snprintf(id, sizeof(id), "c%u", i);
        fake_call(w->gateway, 0, id, "large", args);
    }
    while (peg_provider_info(w->provider).n_unacknowledged < n)
        poll(NULL, 0, 1);
}

/* It holds their credits until it has them, and has others left. */
TEST(provider_takes_calls_while_the_gateway_does_not_let_large_results_through)
{
    enum { RESULT_BYTES = 7 << 20, N = PEG_LIMIT_REMOTE_KEPT_BYTES / RESULT_BYTES + 1 };
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = N + 1});
    let_results_wait(&w, N, RESULT_BYTES);
    fake_call(w.gateway, 0, "more", "echo", "{}");
    while (peg_provider_info(w.provider).n_unacknowledged < N + 1 &&
           !peg_provider_info(w.provider).n_refused)
        poll(NULL, 0, 1);

    CHECK_INT(peg_provider_info(w.provider).n_refused, 0);
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, "c1"), 0);
    fake_resume(w.gateway, 0);
    CHECK_RESULT(&w, "more", "{}");
    world_stop(&w);
}

TEST(provider_takes_no_more_than_its_credits_while_results_do_not_get_through)
{
    struct world w;

    world_start(
        &w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .max_queued = 1});
    let_results_wait(&w, 2, 4 << 20);
    fake_call(w.gateway, 0, "more", "echo", "{}");
    fake_resume(w.gateway, 0);

    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "more", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED);
    world_stop(&w);
}

TEST(provider_starts_a_call_once_however_often_it_comes)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 4});
    w.gateway->keeps_acks = true;
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    fake_ping(w.gateway, 0, "p1");
    fake_await(w.gateway, FAKE_PONG, "p1", 0); /* it was heard */
    sem_post(&released);
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    fake_call(w.gateway, 0, "c1", "hold", "{}"); /* its result is said again */
    fake_await(w.gateway, FAKE_RESULT, "c1", 1);
    fake_ack(w.gateway, 0, "c1");
    fake_call(w.gateway, 0, "c1", "hold", "{}"); /* it is over */
    fake_call(w.gateway, 0, "c2", "echo", "{}");

    CHECK_RESULT(&w, "c2", "{}");
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, "c1"), 2);
    CHECK_INT(atomic_load(&n_starts), 2);
    world_stop(&w);
}

TEST(provider_starts_another_attempt_of_the_same_call)
{
    struct world w;
    Pegboard__V1__Call call = PEGBOARD__V1__CALL__INIT;
    char id[] = "c1";
    char tool[] = "echo";

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    call.call_id = id;
    call.tool = tool;
    call.attempt = 1;
    fake_call_with(w.gateway, 0, &call, "{}");
    call.attempt = 2;
    fake_call_with(w.gateway, 0, &call, "{}");

    CHECK_INT(fake_await(w.gateway, FAKE_RESULT, "c1", 1)->attempt, 2);
    CHECK_INT(atomic_load(&n_starts), 2);
    world_stop(&w);
}

TEST(provider_cancels_a_handler)
{
    struct world w;
    const struct fake_frame *f;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "wait", "{}");
    sem_wait(&entered);
    fake_cancel(w.gateway, 0, "c1");

    f = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK(f->name[0]);
    CHECK(strstr(f->words, "'wait' was canceled: the host asked to stop: stopped: "));
    world_stop(&w);
}

TEST(provider_gives_a_canceled_call_back_that_no_handler_has)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    fake_call(w.gateway, 0, "c2", "hold", "{}");
    fake_cancel(w.gateway, 0, "c2");

    fake_await(w.gateway, FAKE_NAK, "c2", 0);
    sem_post(&released);
    CHECK_RESULT(&w, "c1", "\"held\"");
    CHECK_INT(atomic_load(&n_starts), 1);
    world_stop(&w);
}

TEST(provider_hands_the_deadline_to_the_handler)
{
    struct world w;
    Pegboard__V1__Call call = PEGBOARD__V1__CALL__INIT;
    char id[] = "c1";
    char tool[] = "wait";

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    call.call_id = id;
    call.tool = tool;
    call.timeout_ms = 20;
    fake_call_with(w.gateway, 0, &call, "{}");

    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_RESULT, "c1", 0)->name), "E_TOOL_TIMEOUT");
    world_stop(&w);
}

TEST(provider_runs_inline_handlers_on_its_loop)
{
    struct world w;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .runs_inline = true});
    CHECK_INT(fake_await(w.gateway, FAKE_HELLO, NULL, 0)->number, 1000);
    for (unsigned i = 0; i < 100; i++) {
        char id[16];

        snprintf(id, sizeof(id), "c%u", i);
        fake_call(w.gateway, 0, id, "echo", "{\"a\":1}");
    }

    CHECK_RESULT(&w, "c99", "{\"a\":1}");
    CHECK_INT(atomic_load(&n_starts), 100);
    world_stop(&w);
}
