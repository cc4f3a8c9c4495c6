/* SPDX-License-Identifier: Apache-2.0 */

/* A direct provider on a real Redis: calls, results, pings, queues, and how it stops. */

#include "../t.h"
#include "remote/direct_world.h"

/* ---- joining ---- */

TEST(it_registers_a_direct_toolset_and_joins_the_group_as_goa_ai_does)
{
    struct direct_world d;
    const struct fake_frame *registered;
    char list[80];

    direct_start(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                 (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 60000});
    registered = fake_await(d.w.gateway, FAKE_OFFER, "tools", 0);

    CHECK_INT(registered->number, PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT);
    CHECK(strstr(registered->words, "echo("));
    await_number(CONSUMERS, 1);
    snprintf(list, sizeof(list), "[\"%s\"]", d.w.provider->incarnation);
    CHECK_STR(peg_cstr(redis_text("HGET map:stream:toolset:tools:requests:sinks:content provider")),
              list);
    CHECK_INT(strlen(redis_text("HGET map:sink:provider:keepalive:content %s",
                                d.w.provider->incarnation)),
              19);
    CHECK_STR(peg_cstr(redis_text("HGET map:sink:provider:keepalive:content =rev")), "1");
    CHECK_STR(peg_cstr(redis_text("HGET map:sink:provider:keepalive:content =kind")), "");
    CHECK(peg_provider_info(d.w.provider).is_attached);
    direct_stop(&d);
}

/* Captured: "set:" 1a000000 <key> 13000000 <value> 01000000 "1" */
TEST(its_sign_of_life_is_published_as_captured)
{
    struct direct_world d;
    struct rs_client *listener;
    const struct resp_value *push;
    const struct resp_value *text;

    direct_prepare(&d);
    listener = rs_client_new();
    rs_ask(listener, "SUBSCRIBE map:sink:provider:keepalive:updates");
    d.w.provider =
        start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                     (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 60000});
    push = rs_ask(listener, "PING");
    text = resp_item(push, 2);

    CHECK(text && text->text.len == 4 + 4 + 32 + 4 + 19 + 4 + 1);
    CHECK(memcmp(text->text.ptr, "set:\x20\0\0\0", 8) == 0);
    CHECK(memcmp(text->text.ptr + 8, d.w.provider->incarnation, 32) == 0);
    CHECK(memcmp(text->text.ptr + 40, "\x13\0\0\0", 4) == 0);
    CHECK(memcmp(text->text.ptr + 63, "\1\0\0\0001", 5) == 0);
    rs_client_free(listener);
    direct_stop(&d);
}

TEST(it_joins_a_group_that_the_gateway_made_and_reads_what_waits_there)
{
    struct direct_world d;

    direct_prepare(&d);
    rs_text("XGROUP CREATE " REQUESTS " provider $ MKSTREAM");
    add_ping("first");
    d.w.provider = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                                (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT});

    CHECK_STR(peg_cstr(fake_await(d.w.gateway, FAKE_PONG, "first", 0)->name), "tools");
    await_number(PENDING, 0);
    direct_stop(&d);
}

TEST(a_gateway_that_refuses_the_toolset_ends_it)
{
    struct direct_world d;
    const peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT, .redis_url = "unix:///none"};
    peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "tools"};
    peg_error error;

    direct_prepare(&d);
    options.address = d.w.gateway->address;
    snprintf(d.w.gateway->refusal, sizeof(d.w.gateway->refusal), "not yours");
    atomic_store(&d.w.gateway->refuses, GRPC_PERMISSION_DENIED);

    CHECK_INT(peg_provider_serve_streams(d.w.registry, &options, &streams, &error), PEG_EHOST);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_REFUSED");
    CHECK(strstr(error.message, "not yours"));
    direct_stop(&d);
}

TEST(tools_that_change_are_registered_again)
{
    struct direct_world d;

    DIRECT_START(&d);
    CHECK(strstr(fake_await(d.w.gateway, FAKE_OFFER, "tools", 0)->words, "echo("));
    CHECK_INT(peg_registry_unregister(d.w.registry, peg_cstr("echo"), NULL), PEG_OK);

    CHECK(!strstr(fake_await(d.w.gateway, FAKE_OFFER, "tools", 1)->words, "echo("));
    direct_stop(&d);
}

/* ---- calls ---- */

TEST(a_call_is_answered_on_its_stream_and_acknowledged)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_call("c1", "echo", "{\"text\":\"xx\"}");

    CHECK_STR(peg_cstr(await_results("c1", 1)),
              "result {\"tool_use_id\":\"c1\",\"result_json\":{\"text\":\"xx\"}}\n");
    await_number(PENDING, 0);
    CHECK_INT(atomic_load(&n_starts), 1);
    CHECK(redis_number("TTL pulse:stream:result:c1") > 0);
    direct_stop(&d);
}

TEST(a_call_without_arguments_has_none)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_call("c1", "echo", "null");

    CHECK_STR(peg_cstr(await_results("c1", 1)),
              "result {\"tool_use_id\":\"c1\",\"result_json\":{}}\n");
    direct_stop(&d);
}

TEST(a_failure_has_its_code_and_message)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_call("c1", "fail", "{\"coded\":true}");

    CHECK_STR(peg_cstr(await_results("c1", 1)),
              "result {\"tool_use_id\":\"c1\",\"error\":{\"code\":\"E_NO_RAIN\","
              "\"message\":\"the tool 'fail' failed: there is no rain\"}}\n");
    direct_stop(&d);
}

TEST(output_comes_before_the_result_and_server_data_with_it)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_call("c1", "tell", "{\"x\":1}");

    CHECK_STR(peg_cstr(await_results("c1", 3)),
              "output_delta {\"tool_use_id\":\"c1\",\"stream\":\"stdout\",\"delta\":\"one\"}\n"
              "output_delta {\"tool_use_id\":\"c1\",\"stream\":\"stdout\",\"delta\":\"two\"}\n"
              "result {\"tool_use_id\":\"c1\",\"result_json\":\"three\",\"server_data\":"
              "[{\"kind\":\"note\",\"audience\":\"host\",\"data\":{\"x\":1}}]}\n");
    direct_stop(&d);
}

TEST(a_handler_sees_what_came_with_the_call)
{
    struct direct_world d;

    DIRECT_START(&d);
    make_result_stream("c1");
    add_request("call",
                "{\"type\":\"call\",\"tool_use_id\":\"c1\",\"tool\":\"look\",\"payload\":{},"
                "\"meta\":{\"run_id\":\"run-1\",\"session_id\":\"s\",\"tool_call_id\":\"t-1\"},"
                "\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}");
    await_results("c1", 1);

    CHECK_STR(peg_cstr(seen), "c1 1  run-1 t-1 "
                              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01   0  run-1");
    direct_stop(&d);
}

TEST(a_result_that_nobody_waits_for_leaves_no_stream)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_request("call", "{\"type\":\"call\",\"tool_use_id\":\"gone\",\"tool\":\"echo\","
                        "\"payload\":{}}");
    add_call("c2", "echo", "{}");
    await_results("c2", 1);

    await_number(PENDING, 0);
    CHECK_INT(rs_do("EXISTS pulse:stream:result:gone"), 0);
    CHECK_INT(atomic_load(&n_starts), 2);
    direct_stop(&d);
}

TEST(a_call_whose_deadline_has_passed_is_not_started)
{
    struct direct_world d;

    DIRECT_START(&d);
    make_result_stream("late");
    add_request("call", "{\"type\":\"call\",\"tool_use_id\":\"late\",\"tool\":\"echo\","
                        "\"payload\":{},\"execution_deadline_unix_ms\":1000}");
    add_call("c2", "echo", "{}");
    await_results("c2", 1);

    await_number(PENDING, 0);
    CHECK_STR(peg_cstr(results_of("late")), "");
    CHECK_INT(atomic_load(&n_starts), 1);
    CHECK_INT(peg_provider_info(d.w.provider).n_refused, 1);
    direct_stop(&d);
}

TEST(malformed_and_unknown_entries_are_acknowledged_and_skipped)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_request("call", "{");
    add_request("call", "{\"type\":\"call\",\"tool_use_id\":\"a b\",\"tool\":\"echo\"}");
    add_request("claim", "{}");
    rs_text("XADD " REQUESTS " * other fields");
    add_call("c1", "echo", "{}");
    await_results("c1", 1);

    await_number(PENDING, 0);
    CHECK_INT(atomic_load(&n_starts), 1);
    direct_stop(&d);
}

TEST(results_go_to_the_gateway_if_that_is_wanted)
{
    struct direct_world d;

    direct_start(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .token = "secret"},
                 (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .emits_results = true});
    add_call("c1", "echo", "{\"n\":1}");

    CHECK_RESULT(&d.w, "c1", "{\"n\":1}");
    await_number(PENDING, 0);
    CHECK_STR(peg_cstr(results_of("c1")), "");
    CHECK_STR(peg_cstr(d.w.gateway->authorization), "Bearer secret");
    direct_stop(&d);
}

TEST(a_result_that_the_gateway_cannot_take_now_is_sent_again)
{
    struct direct_world d;

    direct_start(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                 (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .emits_results = true});
    atomic_store(&d.w.gateway->refuses, GRPC_UNAVAILABLE);
    add_call("c1", "echo", "{}");
    fake_await(d.w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_INT(rs_do(PENDING), 1);

    atomic_store(&d.w.gateway->refuses, GRPC_OK);
    await_number(PENDING, 0);
    CHECK_INT(atomic_load(&n_starts), 1);
    direct_stop(&d);
}

/* ---- busy ---- */

TEST(pings_are_answered_while_all_handlers_work_and_the_queue_is_full)
{
    struct direct_world d;

    direct_start(
        &d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .max_queued = 1},
        (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT});
    for (unsigned i = 0; i < 6; i++) {
        char id[8];

        snprintf(id, sizeof(id), "c%u", i);
        add_call(id, "hold", "{}");
    }
    sem_wait(&entered);
    add_ping("busy");

    fake_await(d.w.gateway, FAKE_PONG, "busy", 0);
    for (unsigned i = 0; i < 6; i++)
        sem_post(&released);
    await_number(PENDING, 0);
    for (unsigned i = 0; i < 6; i++) {
        char id[8];

        snprintf(id, sizeof(id), "c%u", i);
        CHECK_INT(t_count(await_results(id, 1), "\n"), 1);
    }
    CHECK_INT(atomic_load(&n_starts), 6);
    direct_stop(&d);
}

TEST(a_call_that_finds_no_room_goes_to_another_provider_at_once)
{
    struct direct_world d;

    direct_start(
        &d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .max_queued = 1},
        (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 60000});
    add_call("c1", "hold", "{}");
    add_call("c2", "hold", "{}");
    add_call("c3", "echo", "{}");
    sem_wait(&entered);
    await_number(PENDING, 3);
    d.other = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                           (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 60000});

    await_results("c3", 1);
    CHECK_INT(peg_provider_info(d.other).n_calls, 1);
    sem_post(&released);
    sem_post(&released);
    await_number(PENDING, 0);
    direct_stop(&d);
}

/* ---- dead providers ---- */

TEST(what_a_dead_consumer_left_is_taken_over_and_the_consumer_removed)
{
    struct direct_world d;

    direct_prepare(&d);
    rs_text("XGROUP CREATE " REQUESTS " provider $ MKSTREAM");
    add_call("c1", "look", "{}");
    rs_text("XREADGROUP GROUP provider dead STREAMS " REQUESTS " >");
    d.w.provider = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                                (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT});

    await_results("c1", 1);
    CHECK(strncmp(seen, "c1 2 ", 5) == 0);
    await_number(PENDING, 0);
    await_number(CONSUMERS, 1);
    direct_stop(&d);
}

/* The provider shows so often that it lives that an entry which nobody renews would have been idle
 * for several graces. */
TEST(a_call_that_takes_longer_than_the_grace_stays_with_its_provider)
{
    /* Longer than a busy machine may keep a provider from renewing. */
    const peg_provider_streams slow = {PEG_PROVIDER_STREAMS_INIT, .grace_ms = 2000};
    struct direct_world d;

    direct_start(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT}, slow);
    d.other = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT}, slow);
    add_call("c1", "hold", "{}");
    sem_wait(&entered);
    await_number("EVAL \"return tonumber(redis.call('HGET',KEYS[1],'=rev')) >= 12 and 1 or 0\" 1 "
                 "map:sink:provider:keepalive:content",
                 1);

    CHECK_INT(rs_do(PENDING), 1);
    sem_post(&released);
    await_number(PENDING, 0);
    CHECK_INT(t_count(results_of("c1"), "\n"), 1);
    CHECK_INT(atomic_load(&n_starts), 1);
    direct_stop(&d);
}

/* ---- the connection ---- */

TEST(it_joins_again_after_redis_has_lost_everything)
{
    struct direct_world d;
    unsigned n_before;

    DIRECT_START(&d);
    add_call("c1", "echo", "{}");
    await_results("c1", 1);
    n_before = atomic_load(&d.n_attached);
    rs_stop();
    rs_start(NULL);
    add_call("c2", "echo", "{}");

    await_results("c2", 1);
    CHECK(atomic_load(&d.n_attached) > n_before);
    CHECK(atomic_load(&d.w.n_lost) > 0);
    await_number(PENDING, 0);
    direct_stop(&d);
}

TEST(it_joins_again_after_the_stream_was_deleted)
{
    struct direct_world d;

    DIRECT_START(&d);
    rs_text("FLUSHALL");
    add_call("c1", "echo", "{}");
    add_call("c2", "echo", "{}");

    await_results("c2", 1);
    await_number(CONSUMERS, 1);
    direct_stop(&d);
}

TEST(a_result_waits_for_redis_and_is_not_run_for_again)
{
    struct direct_world d;

    DIRECT_START(&d);
    add_call("c1", "hold", "{}");
    sem_wait(&entered);
    rs_text("CLIENT KILL TYPE normal");
    sem_post(&released);

    await_results("c1", 1);
    await_number(PENDING, 0);
    CHECK_INT(atomic_load(&n_starts), 1);
    direct_stop(&d);
}

/* ---- stopping ---- */

TEST(a_stop_finishes_what_runs_and_leaves_nothing_behind)
{
    struct direct_world d;
    peg_error error;

    DIRECT_START(&d);
    add_call("c1", "hold", "{}");
    sem_wait(&entered);
    peg_provider_stop(d.w.provider);
    sem_post(&released);

    CHECK_STATUS(peg_provider_wait(d.w.provider, &error), PEG_OK, error);
    CHECK_INT(t_count(results_of("c1"), "\n"), 1);
    CHECK_INT(rs_do(PENDING), 0);
    CHECK_INT(rs_do(CONSUMERS), 0);
    CHECK_INT(rs_do("HEXISTS map:stream:toolset:tools:requests:sinks:content provider"), 0);
    CHECK_INT(
        redis_number("HEXISTS map:sink:provider:keepalive:content %s", d.w.provider->incarnation),
        0);
    direct_stop(&d);
}

TEST(a_stop_does_not_wait_for_a_read_that_waits)
{
    struct direct_world d;
    peg_error error;
    const int64_t before_ms = peg_clock_now_ms(peg_clock_system());

    DIRECT_START(&d);
    add_ping("a");
    fake_await(d.w.gateway, FAKE_PONG, "a", 0);
    peg_provider_stop(d.w.provider);

    CHECK_STATUS(peg_provider_wait(d.w.provider, &error), PEG_OK, error);
    CHECK(peg_clock_now_ms(peg_clock_system()) - before_ms < 4900);
    direct_stop(&d);
}

/* Two stops: those that wait are not started. Another provider has them at once, long before the
 * grace is over. */
TEST(calls_that_were_not_started_go_to_another_provider_at_once)
{
    struct direct_world d;
    peg_error error;

    direct_start(
        &d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .max_queued = 4},
        (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 600000});
    add_call("c1", "wait", "{}");
    sem_wait(&entered);
    add_call("c2", "echo", "{}");
    await_number(PENDING, 2);
    peg_provider_stop(d.w.provider);
    peg_provider_stop(d.w.provider);
    CHECK_STATUS(peg_provider_wait(d.w.provider, &error), PEG_OK, error);
    CHECK_INT(t_count(results_of("c1"), "\n"), 1);
    CHECK_INT(rs_do(PENDING), 1);
    d.other = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                           (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 600000});

    await_results("c2", 1);
    await_number(PENDING, 0);
    CHECK_INT(atomic_load(&n_starts), 1);
    direct_stop(&d);
}

/* ---- options ---- */

TEST(options_are_checked)
{
    struct direct_world d;
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "tools"};
    peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT, .redis_url = "redis://:x"};
    peg_provider *provider = NULL;
    peg_error error;

    direct_prepare(&d);
    CHECK_INT(peg_provider_new_streams(d.w.registry, &options, &streams, &provider, &error),
              PEG_EPARSE);
    CHECK_STR(peg_cstr(error.code), "E_REDIS_URL");
    streams = (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT, .grace_ms = 499};
    CHECK_INT(peg_provider_new_streams(d.w.registry, &options, &streams, &provider, &error),
              PEG_EINVAL);
    CHECK_STR(peg_cstr(error.where), "/grace_ms");
    CHECK_INT(peg_provider_new_streams(d.w.registry, NULL, NULL, &provider, &error), PEG_EINVAL);
    CHECK(!provider);
    direct_stop(&d);
}

TORTURE(making_one_survives_any_allocation_failure)
{
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "tools"};
    peg_registry *registry = NULL;
    peg_provider *provider = NULL;
    peg_error error;
    peg_status status = peg_registry_new(NULL, 0, &registry, &error);

    if (!status)
        status = peg_provider_new_streams(registry, &options, NULL, &provider, &error);
    peg_provider_free(provider);
    peg_registry_unref(registry);
    return status;
}
