/* SPDX-License-Identifier: Apache-2.0 */

/* A provider against a gateway that does what the test says. */

#include "t.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "pegboard/command.h"
#include "pegboard/media.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"
#include "pegboard/trace.h"
#include "remote/fake_gateway.h"

/* ---- fixture: tools that a test can hold, a gateway, a provider --------------------------------
 */

static sem_t entered;  /* a handler of `hold` has begun */
static sem_t released; /* it may go on */
static atomic_uint n_starts;
static char seen[512];
static int trace_seen; /* the context had one */

static void run_echo(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    atomic_fetch_add(&n_starts, 1);
    peg_call_reply_json(call, args);
}

static void run_text(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("a \"text\"\n"));
}

static void run_bytes(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply_bytes(call, (peg_str){"\xff\x00z", 3});
}

static void run_fail(peg_call *call, const peg_json *args, void *user)
{
    const peg_error error = {.code = "E_NO_RAIN", .cause = "", .message = "there is no rain"};

    (void)user;
    if (peg_json_get(args, "coded"))
        peg_call_fail_with(call, &error);
    else
        peg_call_fail(call, "it is broken");
}

static void run_hold(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    atomic_fetch_add(&n_starts, 1);
    sem_post(&entered);
    sem_wait(&released);
    peg_call_reply(call, peg_cstr("held"));
}

/* Until it is canceled, or its deadline comes. */
static void run_wait(peg_call *call, const peg_json *args, void *user)
{
    peg_error why;

    (void)args;
    (void)user;
    sem_post(&entered);
    peg_ctx_wait(peg_call_ctx(call), 60000, &why);
    peg_call_fail(call, "stopped: %s", why.message);
}

static void run_large(peg_call *call, const peg_json *args, void *user)
{
    int64_t n = 0;
    char *text;

    (void)user;
    peg_json_int64(peg_json_get(args, "n"), &n);
    text = malloc((size_t)n);
    memset(text, 'x', (size_t)n);
    peg_call_reply(call, (peg_str){text, (size_t)n});
    free(text);
}

static void run_tell(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_provider_delta(call, "stdout", peg_cstr("one"));
    peg_provider_delta(call, "stdout", peg_cstr("two"));
    peg_call_add_server_data(call, "note", "host", args);
    peg_call_reply(call, peg_cstr("three"));
}

/* Says something whenever it is released, also when nobody waits for it any more. */
static void run_late(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    sem_post(&entered);
    for (unsigned i = 0; i < 2; i++) {
        sem_wait(&released);
        peg_provider_delta(call, "stdout", peg_cstr("late"));
        sem_post(&entered);
    }
    peg_call_reply(call, peg_cstr("late"));
}

static void run_look(peg_call *call, const peg_json *args, void *user)
{
    const peg_provider_call *about = peg_provider_call_of(call);

    (void)args;
    (void)user;
    trace_seen = peg_ctx_trace(peg_call_ctx(call)) ? 1 : 0;
    snprintf(seen, sizeof(seen), "%s %u %s %s %s %s %s %s %zu %s %s", about->call_id,
             about->attempt, about->caller, about->run_id, about->tool_call_id, about->traceparent,
             about->tracestate, about->baggage, about->n_metadata,
             peg_provider_metadata(call, "tenant"), peg_ctx_ids(peg_call_ctx(call))->run_id);
    peg_call_reply(call, peg_cstr("looked"));
}

/* Another call of the same registry, made by the handler itself. */
static void run_nest(peg_call *call, const peg_json *args, void *user)
{
    const peg_request request = {
        .call_id = peg_cstr("inner"), .tool = peg_cstr("mutter"), .args = peg_cstr("{}")};
    peg_record *record = NULL;

    (void)args;
    (void)user;
    if (!peg_call_run(peg_call_ctx(call), &request, NULL, &record, NULL))
        peg_call_reply(call, peg_cstr("nested"));
    peg_record_unref(record);
}

/* A command that says something. */
static void add_mutter(peg_registry *registry)
{
    static const char *const argv[] = {"sh", "-c", "echo aloud >&2", NULL};
    const peg_command_def def = {.tool = {.name = "mutter", .description = "says"}, .argv = argv};
    peg_tool *tool = NULL;

    if (peg_command_tool_new(&def, &tool, NULL) ||
        peg_registry_register(registry, tool, false, NULL))
        T_FAIL("no command");
    peg_tool_unref(tool);
}

struct world {
    struct fake *gateway;
    peg_registry *registry;
    peg_tool_provider *provider;
    atomic_uint n_lost;
    atomic_uint n_ended;
    char target[2 * NET_ADDRESS_TEXT + 8];
};

static void add(peg_registry *registry, const char *name, peg_tool_fn fn, const char *schema)
{
    const peg_tool_def def = {.name = name,
                              .description = "does it",
                              .input_schema = schema,
                              .open_arguments = !schema,
                              .run = fn,
                              .idempotent = fn == run_echo,
                              .timeout_ms = fn == run_look ? 7000 : 0};
    const peg_tool_def any = {.name = name,
                              .description = "does it",
                              .input_schema = "{\"type\":\"object\"}",
                              .open_arguments = true,
                              .run = fn,
                              .idempotent = fn == run_echo,
                              .timeout_ms = fn == run_look ? 7000 : 0};
    peg_tool *tool = NULL;
    peg_error error;

    if (peg_tool_new(schema ? &def : &any, &tool, &error) ||
        peg_registry_register(registry, tool, false, &error))
        T_FAIL("no tool: %s", error.message);
    peg_tool_unref(tool);
}

static peg_registry *make_registry(void)
{
    peg_registry *registry = NULL;

    if (peg_registry_new(NULL, 0, &registry, NULL))
        T_FAIL("no registry");
    add(registry, "echo", run_echo, NULL);
    add(registry, "text", run_text, NULL);
    add(registry, "bytes", run_bytes, NULL);
    add(registry, "fail", run_fail, NULL);
    add(registry, "hold", run_hold, NULL);
    add(registry, "wait", run_wait, NULL);
    add(registry, "large", run_large, NULL);
    add(registry, "tell", run_tell, NULL);
    add(registry, "late", run_late, NULL);
    add(registry, "look", run_look, NULL);
    add(registry, "nest", run_nest, NULL);
    add_mutter(registry);
    add(registry, "typed", run_echo,
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}");
    return registry;
}

static void count_event(const peg_provider_event *event, void *user)
{
    struct world *w = user;

    if (event->kind == PEG_PROVIDER_LOST)
        atomic_fetch_add(&w->n_lost, 1);
    if (event->kind == PEG_PROVIDER_CALL_END)
        atomic_fetch_add(&w->n_ended, 1);
}

static void world_prepare(struct world *w)
{
    memset(w, 0, sizeof(*w));
    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    atomic_store(&n_starts, 0);
    w->gateway = fake_new();
    w->registry = make_registry();
}

/* A provider at the gateway, or at w->target; with what options say beside. */
static void world_provide(struct world *w, peg_provider_options options)
{
    peg_error error;

    options.toolset = "tools";
    options.address = w->target[0] ? w->target : w->gateway->address;
    options.backoff_ms = options.backoff_ms ? options.backoff_ms : 1;
    options.max_backoff_ms = options.max_backoff_ms ? options.max_backoff_ms : 20;
    options.on_event = count_event;
    options.user = w;
    CHECK_STATUS(peg_provider_new(w->registry, &options, &w->provider, &error), PEG_OK, error);
    CHECK_STATUS(peg_provider_start(w->provider, &error), PEG_OK, error);
}

static void world_start(struct world *w, peg_provider_options options)
{
    world_prepare(w);
    world_provide(w, options);
    fake_await_stream(w->gateway, 0);
}

static void world_stop(struct world *w)
{
    w->provider = peg_provider_free(w->provider);
    peg_registry_unref(w->registry);
    fake_free(w->gateway);
}

#define CHECK_RESULT(w, id, json)                                                                  \
    do {                                                                                           \
        const struct fake_frame *t_f = fake_await((w)->gateway, FAKE_RESULT, id, 0);               \
        CHECK_STR(peg_cstr(t_f->name), "");                                                        \
        CHECK_STR(((peg_str){t_f->text, t_f->len}), json);                                         \
    } while (0)

/* ---- attaching ---------------------------------------------------------------------------------
 */

TEST(provider_says_hello_with_the_visible_tools_of_its_registry)
{
    struct world w;
    const struct fake_frame *hello;
    static const char *const hidden[] = {"text",  "bytes", "fail", "hold", "wait",
                                         "large", "tell",  "late", "nest", "mutter"};
    static const char *const tags[] = {"sample", NULL};

    world_prepare(&w);
    CHECK_INT(peg_registry_hide(w.registry, hidden, 10, NULL), PEG_OK);
    world_provide(&w, (peg_provider_options){.concurrency = 3,
                                             .max_queued = 2,
                                             .description = "Tools of a test",
                                             .version = "1.2.0",
                                             .tags = tags,
                                             .token = "peg_secret"});
    hello = fake_await(w.gateway, FAKE_HELLO, NULL, 0);

    CHECK_STR(peg_cstr(hello->name), "tools");
    CHECK_INT(hello->number, 5);
    CHECK_INT(strlen(hello->id), 32);
    CHECK_INT(hello->len, 0);
    CHECK_STR(peg_cstr(hello->data), "Tools of a test|1.2.0|sample|tools");
    CHECK_STR(
        peg_cstr(hello->words),
        "echo({\"type\":\"object\"})i0 look({\"type\":\"object\"})7000 "
        "typed({\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"requ)i0 ");
    CHECK_STR(peg_cstr(w.gateway->authorization), "Bearer peg_secret");
    world_stop(&w);
}

TEST(provider_ends_if_the_gateway_refuses_its_toolset)
{
    struct world w;
    peg_error error;

    world_prepare(&w);
    w.gateway->refuses = GRPC_PERMISSION_DENIED;
    snprintf(w.gateway->refusal, sizeof(w.gateway->refusal), "it belongs to alice");
    world_provide(&w, (peg_provider_options){.concurrency = 1});

    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_EHOST);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_REFUSED");
    CHECK(strstr(error.message, "it belongs to alice"));
    world_stop(&w);
}

/* Registered again it would be there as if nobody had unregistered it. */
TEST(provider_ends_if_its_toolset_was_unregistered)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    fake_end(w.gateway, 0, GRPC_NOT_FOUND);

    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_EHOST);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_UNREGISTERED");
    CHECK(strstr(error.message, "toolset 'tools' was unregistered"));
    CHECK_INT(fake_count(w.gateway, FAKE_HELLO, NULL), 1);
    world_stop(&w);
}

TEST(provider_tries_again_while_the_gateway_is_not_available)
{
    struct world w;

    world_prepare(&w);
    w.gateway->refuses = GRPC_UNAVAILABLE;
    world_provide(&w, (peg_provider_options){.concurrency = 1});
    fake_await(w.gateway, FAKE_HELLO, NULL, 2);
    w.gateway->refuses = GRPC_OK;

    while (!peg_provider_look(w.provider).is_attached)
        fake_await(w.gateway, FAKE_HELLO, NULL, fake_count(w.gateway, FAKE_HELLO, NULL) - 1);
    CHECK(atomic_load(&w.n_lost) >= 3);
    world_stop(&w);
}

TEST(provider_waits_for_a_gateway_that_comes_later)
{
    struct world w;
    char address[NET_ADDRESS_TEXT];

    world_prepare(&w);
    snprintf(address, sizeof(address), "%s", w.gateway->address);
    snprintf(w.target, sizeof(w.target), "%s", address);
    fake_kill(w.gateway);
    world_provide(&w, (peg_provider_options){.concurrency = 1});
    while (!atomic_load(&w.n_lost))
        poll(NULL, 0, 1);
    fake_listen(w.gateway, address);

    fake_await_stream(w.gateway, 0);
    world_stop(&w);
}

/* ---- results -----------------------------------------------------------------------------------
 */

TEST(provider_answers_calls_with_json)
{
    struct world w;

    world_start(&w, (peg_provider_options){.concurrency = 2});
    fake_call(w.gateway, 0, "c1", "echo", "{\"a\":[1,2.50]}");
    fake_call(w.gateway, 0, "c2", "text", "");
    fake_call(w.gateway, 0, "c3", "bytes", "{}");

    CHECK_RESULT(&w, "c1", "{\"a\":[1,2.50]}");
    CHECK_RESULT(&w, "c2", "\"a \\\"text\\\"\\n\"");
    CHECK_RESULT(&w, "c3", "{\"base64\":\"/wB6\"}");
    world_stop(&w);
}

TEST(provider_answers_with_the_code_and_words_of_a_failure)
{
    struct world w;
    const struct fake_frame *f;

    world_start(&w, (peg_provider_options){.concurrency = 2});
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
    CHECK_INT(peg_provider_look(w.provider).n_unacknowledged, 0);
    CHECK_INT(atomic_load(&n_starts), 0);
    world_stop(&w);
}

TEST(provider_gives_calls_back_that_its_own_version_of_the_toolset_does_not_take)
{
    check_gives_back((peg_provider_options){.concurrency = 2});
    check_gives_back((peg_provider_options){.runs_inline = true});
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
    world_provide(&w, (peg_provider_options){.concurrency = 1});
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

    world_start(&w, (peg_provider_options){.concurrency = 2});
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

    world_start(&w, (peg_provider_options){.concurrency = 1});
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
        world_start(&w, (peg_provider_options){.concurrency = 1, .runs_inline = ways[i]});
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

TEST(command_is_heard_by_its_own_caller_and_nobody_above)
{
    struct world w;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    fake_call(w.gateway, 0, "c1", "mutter", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 0)->text), "aloud\n");
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_DELTA, "c1", 0)->name), "stderr");

    fake_call(w.gateway, 0, "c2", "nest", "{}");
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_RESULT, "c2", 0)->text), "\"nested\"");
    CHECK_INT(fake_count(w.gateway, FAKE_DELTA, "c2"), 0);
    world_stop(&w);
}

TEST(handler_sees_who_calls_and_what_came_along)
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

    world_start(&w, (peg_provider_options){.concurrency = 1});
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

    world_start(&w, (peg_provider_options){.concurrency = 1, .max_queued = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    fake_call(w.gateway, 0, "c2", "hold", "{}");
    fake_call(w.gateway, 0, "c3", "hold", "{}");
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c3", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED);
    fake_ping(w.gateway, 0, "p1");

    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, NULL), 0);
    CHECK_INT(peg_provider_look(w.provider).n_running, 1);
    CHECK_INT(peg_provider_look(w.provider).n_queued, 1);
    sem_post(&released);
    sem_post(&released);
    CHECK_RESULT(&w, "c2", "\"held\"");
    world_stop(&w);
}

TEST(provider_starts_a_call_once_however_often_it_comes)
{
    struct world w;

    world_start(&w, (peg_provider_options){.concurrency = 4});
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

    world_start(&w, (peg_provider_options){.concurrency = 1});
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

    world_start(&w, (peg_provider_options){.concurrency = 1});
    fake_call(w.gateway, 0, "c1", "wait", "{}");
    sem_wait(&entered);
    fake_cancel(w.gateway, 0, "c1");

    f = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK(f->name[0]);
    CHECK(strstr(f->words, "canceled"));
    world_stop(&w);
}

TEST(provider_gives_a_canceled_call_back_that_no_handler_has)
{
    struct world w;

    world_start(&w, (peg_provider_options){.concurrency = 1});
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

    world_start(&w, (peg_provider_options){.concurrency = 1});
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

    world_start(&w, (peg_provider_options){.runs_inline = true});
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

TEST(provider_tells_the_gateway_of_other_tools)
{
    struct world w;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    while (!peg_provider_look(w.provider).is_attached)
        poll(NULL, 0, 1);
    add(w.registry, "more", run_echo, NULL);
    peg_provider_refresh(w.provider);

    fake_await_registered(w.gateway);
    world_stop(&w);
}

/* Its Hello has the tools of before, and there is no stream yet to tell of others. */
TEST(provider_tells_of_tools_that_come_while_it_attaches)
{
    Pegboard__V1__Welcome welcome = PEGBOARD__V1__WELCOME__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    struct world w;

    world_prepare(&w);
    w.gateway->is_mute = true;
    world_provide(&w, (peg_provider_options){.concurrency = 1});
    fake_await(w.gateway, FAKE_HELLO, NULL, 0);
    add(w.registry, "more", run_echo, NULL);
    peg_provider_refresh(w.provider);
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME;
    response.welcome = &welcome;
    fake_send(w.gateway, 0, &response);

    fake_await_registered(w.gateway);
    world_stop(&w);
}

/* ---- breaks ------------------------------------------------------------------------------------
 */

TEST(provider_comes_back_and_lists_what_runs_and_what_was_not_acknowledged)
{
    struct world w;
    const struct fake_frame *first;
    const struct fake_frame *second;

    world_start(&w, (peg_provider_options){.concurrency = 2});
    w.gateway->keeps_acks = true;
    fake_call(w.gateway, 0, "c1", "echo", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    fake_call(w.gateway, 0, "c2", "hold", "{}");
    sem_wait(&entered);
    w.gateway->keeps_acks = false;
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);
    fake_await_stream(w.gateway, 1);

    first = fake_await(w.gateway, FAKE_HELLO, NULL, 0);
    second = fake_await(w.gateway, FAKE_HELLO, NULL, 1);
    CHECK_STR(peg_cstr(second->id), first->id);
    CHECK_STR(peg_cstr(second->text), "c1:1:r:echo c2:1:r:hold ");
    CHECK_INT(fake_await(w.gateway, FAKE_RESULT, "c1", 1)->stream, 1);
    sem_post(&released);
    CHECK_INT(fake_await(w.gateway, FAKE_RESULT, "c2", 0)->stream, 1);
    fake_end(w.gateway, 1, GRPC_UNAVAILABLE);
    fake_await_stream(w.gateway, 2);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_HELLO, NULL, 2)->text), "");
    CHECK_INT(atomic_load(&n_starts), 2);
    world_stop(&w);
}

TEST(provider_survives_a_gateway_that_is_killed_and_started_again)
{
    struct world w;
    char address[NET_ADDRESS_TEXT];

    world_start(&w, (peg_provider_options){.concurrency = 4});
    snprintf(address, sizeof(address), "%s", w.gateway->address);
    for (unsigned i = 0; i < 5; i++) {
        char id[16];

        snprintf(id, sizeof(id), "c%u", i);
        fake_call(w.gateway, i, id, "hold", "{}");
        sem_wait(&entered);
        fake_kill(w.gateway);
        if (i % 2)
            sem_post(&released); /* it ends while nobody listens */
        fake_listen(w.gateway, address);
        fake_await_stream(w.gateway, i + 1);
        if (i % 2 == 0)
            sem_post(&released);
        CHECK_RESULT(&w, id, "\"held\"");
    }
    CHECK_INT(atomic_load(&n_starts), 5);
    world_stop(&w);
}

/* When both Pongs are back, the loop has also seen what was posted to it before. */
static void await_loop(struct world *w, unsigned stream, const char *id)
{
    for (unsigned i = 0; i < 2; i++) {
        fake_ping(w->gateway, stream, id);
        fake_await(w->gateway, FAKE_PONG, id, i);
    }
}

/* A handler that does not look whether it should stop is left to its pool. The stream that its call
 * came by is freed before the second delta. */
TEST(provider_drops_what_a_handler_says_after_its_call_was_acknowledged)
{
    struct world w;
    peg_run_options run = {0};

    CHECK_INT(peg_pool_new(NULL, &run.pool, NULL), PEG_OK);
    world_start(&w, (peg_provider_options){.concurrency = 1, .run = &run});
    fake_call(w.gateway, 0, "c1", "late", "{}");
    sem_wait(&entered);
    fake_cancel(w.gateway, 0, "c1");
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_RESULT, "c1", 0)->name), "E_TOOL_CANCELED");
    await_loop(&w, 0, "p0");

    sem_post(&released);
    sem_wait(&entered);
    await_loop(&w, 0, "p1");
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);
    fake_await_stream(w.gateway, 1);
    sem_post(&released);
    sem_wait(&entered);
    await_loop(&w, 1, "p2");

    CHECK_INT(fake_count(w.gateway, FAKE_DELTA, NULL), 0);
    world_stop(&w);
    peg_pool_unref(run.pool);
}

/* Nothing is tried again for an hour, neither by the provider nor by its channel, unless it has
 * calls: then it has to be back while its lease lasts. */
TEST(provider_with_calls_comes_back_within_its_lease_however_long_its_pauses)
{
    struct world w;
    char address[NET_ADDRESS_TEXT];

    world_prepare(&w);
    atomic_store(&w.gateway->lease_ms, 100);
    world_provide(&w, (peg_provider_options){
                          .concurrency = 1, .backoff_ms = 3600000, .max_backoff_ms = 3600000});
    fake_await_stream(w.gateway, 0);
    snprintf(address, sizeof(address), "%s", w.gateway->address);
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    fake_kill(w.gateway);
    while (atomic_load(&w.n_lost) < 4)
        poll(NULL, 0, 1);
    fake_listen(w.gateway, address);
    fake_await_stream(w.gateway, 1);
    sem_post(&released);

    CHECK_RESULT(&w, "c1", "\"held\"");
    CHECK_INT(atomic_load(&n_starts), 1);
    world_stop(&w);
}

TEST(provider_sends_a_large_result_again_from_its_beginning)
{
    struct world w;
    unsigned n_second = 0;
    size_t n_bytes = 0;
    const struct fake_frame *f;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    w.gateway->keeps_acks = true;
    fake_call(w.gateway, 0, "c1", "large", "{\"n\":3000000}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 3);
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);
    fake_await_stream(w.gateway, 1);

    for (unsigned i = 0;; i++) {
        f = fake_await(w.gateway, FAKE_RESULT, "c1", i);
        if (f->stream != 1)
            continue;
        n_second++;
        n_bytes += f->len;
        if (!f->more)
            break;
    }
    CHECK_INT(n_bytes, 3000002);
    CHECK_INT(n_second, 46);
    world_stop(&w);
}

TEST(provider_leaves_a_gateway_that_drains_and_finishes_there_what_it_has)
{
    struct world w;
    struct fake *other = fake_new();
    struct fake *first;
    struct fake *second;

    world_prepare(&w);
    snprintf(w.target, sizeof(w.target), "ipv4:%s,%s", w.gateway->address, other->address);
    world_provide(&w, (peg_provider_options){.concurrency = 2});
    while (!peg_provider_look(w.provider).is_attached)
        poll(NULL, 0, 1);
    pthread_mutex_lock(&other->lock);
    first = other->n_streams ? other : w.gateway;
    pthread_mutex_unlock(&other->lock);
    second = first == other ? w.gateway : other;
    fake_call(first, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    /* It may come here once more before it is the other one's turn. */
    first->refuses = GRPC_UNAVAILABLE;
    fake_drain(first, 0);
    fake_await_stream(second, 0);
    fake_call(first, 0, "c2", "echo", "{}");
    fake_call(second, 0, "c3", "echo", "{}");
    sem_post(&released);

    CHECK_STR(peg_cstr(fake_await(second, FAKE_HELLO, NULL, 0)->text), "c1:1:r:hold ");
    CHECK_INT(fake_await(first, FAKE_RESULT, "c1", 0)->stream, 0);
    CHECK_INT(fake_await(first, FAKE_NAK, "c2", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
    fake_await(second, FAKE_RESULT, "c3", 0);
    CHECK_INT(fake_count(second, FAKE_RESULT, "c1"), 0);
    w.provider = peg_provider_free(w.provider);
    fake_free(other);
    world_stop(&w);
}

/* ---- stopping ----------------------------------------------------------------------------------
 */

TEST(provider_that_is_stopped_finishes_what_it_has_and_takes_nothing_new)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    fake_call(w.gateway, 0, "c2", "hold", "{}");
    fake_ping(w.gateway, 0, "p1");
    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    peg_provider_stop(w.provider);
    fake_await(w.gateway, FAKE_DRAIN, NULL, 0);
    fake_call(w.gateway, 0, "c3", "hold", "{}");
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c3", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
    sem_post(&released);
    sem_post(&released);

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    CHECK_RESULT(&w, "c1", "\"held\"");
    CHECK_RESULT(&w, "c2", "\"held\"");
    fake_await_half_close(w.gateway, 0);
    world_stop(&w);
}

/* On a slow way a call crosses the word that none should come. */
TEST(provider_that_is_stopped_gives_back_what_was_on_its_way)
{
    struct world w;
    peg_error error;
    bool is_half_closed;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    w.gateway->keeps_drained = true;
    /* Who is stopped before its Welcome has come just ends. */
    fake_ping(w.gateway, 0, "p1");
    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    peg_provider_stop(w.provider);
    fake_await(w.gateway, FAKE_DRAIN, NULL, 0);
    usleep(200000);
    pthread_mutex_lock(&w.gateway->lock);
    is_half_closed = w.gateway->streams[0].is_half_closed;
    pthread_mutex_unlock(&w.gateway->lock);
    CHECK(!is_half_closed);
    fake_call(w.gateway, 0, "c1", "echo", "{}");
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c1", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
    fake_drained(w.gateway, 0);

    fake_await_half_close(w.gateway, 0);
    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    world_stop(&w);
}

TEST(provider_that_is_stopped_waits_for_acknowledgements)
{
    struct world w;
    peg_error error;
    bool is_half_closed;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    w.gateway->keeps_acks = true;
    fake_call(w.gateway, 0, "c1", "echo", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    peg_provider_stop(w.provider);
    fake_await(w.gateway, FAKE_DRAIN, NULL, 0);
    fake_ping(w.gateway, 0, "p1");
    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    pthread_mutex_lock(&w.gateway->lock);
    is_half_closed = w.gateway->streams[0].is_half_closed;
    pthread_mutex_unlock(&w.gateway->lock);
    CHECK(!is_half_closed);
    fake_ack(w.gateway, 0, "c1");

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    world_stop(&w);
}

TEST(provider_that_is_stopped_twice_cancels_what_runs)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){.concurrency = 1});
    fake_call(w.gateway, 0, "c1", "wait", "{}");
    sem_wait(&entered);
    fake_call(w.gateway, 0, "c2", "wait", "{}");
    fake_ping(w.gateway, 0, "p1");
    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    peg_provider_stop(w.provider);
    peg_provider_stop(w.provider);

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    CHECK(strstr(fake_await(w.gateway, FAKE_RESULT, "c1", 0)->words, "the provider stops"));
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c2", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
    world_stop(&w);
}

TEST(provider_gives_up_calls_that_outlast_its_patience)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){.concurrency = 1, .drain_ms = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    peg_provider_stop(w.provider);

    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_ETIMEOUT);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_DRAIN");
    sem_post(&released);
    world_stop(&w);
}

TEST(provider_that_is_stopped_without_a_gateway_ends)
{
    struct world w;
    peg_error error;

    world_prepare(&w);
    snprintf(w.target, sizeof(w.target), "%s", w.gateway->address);
    fake_kill(w.gateway);
    world_provide(&w, (peg_provider_options){.concurrency = 1});
    peg_provider_stop(w.provider);

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    w.provider = peg_provider_free(w.provider);
    fake_listen(w.gateway, "127.0.0.1:0");
    world_stop(&w);
}

TEST(provider_that_was_never_started_can_be_freed)
{
    struct world w;
    peg_error error;

    world_prepare(&w);
    CHECK_STATUS(
        peg_provider_new(w.registry, &(peg_provider_options){.toolset = "t"}, &w.provider, &error),
        PEG_OK, error);
    peg_provider_stop(w.provider);
    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_ESTATE);
    world_stop(&w);
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

TEST(provider_does_not_start_with_a_token_file_that_cannot_be_read)
{
    const peg_provider_options options = {.toolset = "t", .token_file = "/nowhere/token"};
    struct world w;
    peg_error error;

    world_prepare(&w);
    CHECK_STATUS(peg_provider_new(w.registry, &options, &w.provider, &error), PEG_OK, error);

    CHECK_INT(peg_provider_start(w.provider, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_TOKEN");
    CHECK(strstr(error.message, "No such file or directory"));
    world_stop(&w);
}

/* What is in it is shown whole, or not at all. */
TEST(provider_does_not_start_with_a_token_file_that_does_not_hold_one_token)
{
    static char too_long[PEG_LIMIT_REMOTE_TOKEN_BYTES + 3];
    static const struct {
        const char *text;
        peg_status status;
        const char *words;
    } cases[] = {
        {"", PEG_EINVAL, "holds no token"},
        {" \n\n", PEG_EINVAL, "holds no token"},
        {"two\ntokens\n", PEG_EINVAL, "more than one token"},
        {"peg_\x01", PEG_EINVAL, "printable"},
        {too_long, PEG_ELIMIT, "PEG_LIMIT_REMOTE_TOKEN_BYTES (8192)"},
    };
    char path[] = "/tmp/peg-token-XXXXXX";
    const int fd = mkstemp(path);
    const peg_provider_options options = {.toolset = "t", .token_file = path};
    struct world w;
    peg_error error;

    CHECK(fd >= 0);
    memset(too_long, 'a', sizeof(too_long) - 1);
    world_prepare(&w);
    CHECK_STATUS(peg_provider_new(w.registry, &options, &w.provider, &error), PEG_OK, error);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t len = strlen(cases[i].text);

        CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, cases[i].text, len, 0) == (ssize_t)len);
        CHECK_INT(peg_provider_start(w.provider, &error), cases[i].status);
        CHECK_STR(peg_cstr(error.code), "E_PROVIDER_TOKEN");
        CHECK(strstr(error.message, cases[i].words));
        CHECK(strstr(error.message, path));
    }
    close(fd);
    unlink(path);
    world_stop(&w);
}

/* Longer than what was once cut off without a word. */
TEST(provider_shows_the_whole_token_of_a_file)
{
    enum { LONG = 5000 };
    char path[] = "/tmp/peg-token-XXXXXX";
    const int fd = mkstemp(path);
    char text[LONG + 2];
    char shown[LONG + 16];
    struct world w;

    CHECK(fd >= 0);
    memset(text, 'a', LONG);
    memcpy(text + LONG - 1, "z\n", 3);
    CHECK(write(fd, text, LONG + 1) == LONG + 1);
    close(fd);
    snprintf(shown, sizeof(shown), "Bearer %.*s", LONG, text);
    world_prepare(&w);
    world_provide(&w, (peg_provider_options){.token_file = path});
    fake_await(w.gateway, FAKE_HELLO, NULL, 0);
    CHECK(strcmp(w.gateway->authorization, shown) == 0); /* CHECK_STR would print all of it */
    unlink(path);
    world_stop(&w);
}

TEST(provider_refuses_options_that_cannot_work)
{
    static const struct {
        peg_provider_options options;
        const char *where;
    } cases[] = {
        {{.toolset = NULL}, "/toolset"},
        {{.toolset = "a b"}, "/toolset"},
        {{.toolset = "a", .version = "one"}, "/version"},
        {{.toolset = "a", .concurrency = 257}, "/concurrency"},
        {{.toolset = "a", .max_queued = 10000}, "/max_queued"},
        {{.toolset = "a", .drain_ms = -1}, "/drain_ms"},
        {{.toolset = "a", .token = "x", .token_file = "y"}, "/token_file"},
        {{.toolset = "a", .token = ""}, "/token"},
        {{.toolset = "a", .token = "two words"}, "/token"},
        {{.toolset = "a", .cert_file = "x"}, "/key_file"},
    };
    peg_registry *registry = make_registry();
    peg_tool_provider *provider = NULL;
    peg_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(peg_provider_new(registry, &cases[i].options, &provider, &error), PEG_EINVAL);
        CHECK_STR(peg_cstr(error.where), cases[i].where);
    }
    CHECK_INT(peg_provider_new(registry,
                               &(peg_provider_options){.toolset = "a", .address = "no:port:here"},
                               &provider, &error),
              PEG_EPARSE);
    CHECK_INT(peg_provider_new(registry,
                               &(peg_provider_options){.toolset = "a", .ca_file = "/nowhere"},
                               &provider, &error),
              PEG_EIO);
    peg_registry_unref(registry);
}

TEST(delta_of_a_call_that_came_by_no_provider_is_dropped)
{
    peg_registry *registry = make_registry();
    peg_record *record = NULL;
    peg_error error;

    CHECK_STATUS(peg_registry_call(registry, "tell", "{}", &record, &error), PEG_OK, error);
    CHECK(!peg_record_is_error(record));
    peg_record_unref(record);
    peg_registry_unref(registry);
}

TORTURE(making_a_provider_survives_any_allocation_failure)
{
    static const char *const tags[] = {"a", "b", NULL};
    const peg_provider_options options = {
        .toolset = "tools", .tags = tags, .token = "t", .description = "d"};
    peg_registry *registry = NULL;
    peg_tool_provider *provider = NULL;
    peg_status status = peg_registry_new(NULL, 0, &registry, NULL);

    if (!status)
        status = peg_provider_new(registry, &options, &provider, NULL);
    peg_provider_free(provider);
    peg_registry_unref(registry);
    return status;
}
