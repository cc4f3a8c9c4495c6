/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_REMOTE_PROVIDER_WORLD_H
#define PEG_TESTS_REMOTE_PROVIDER_WORLD_H

/*
 * Tools that a test can hold, a gateway that does what the test says, and a provider of the tools.
 * Include it behind t.h.
 */

#include <semaphore.h>
#include <stdatomic.h>

#include "pegboard/command.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"
#include "pegboard/trace.h"
#include "remote/fake_gateway.h"
#include "remote/provider/provider.h"

static sem_t entered;  /* a handler of `hold` has begun */
static sem_t released; /* it may go on */
static atomic_uint n_starts;
static char seen[512]; /* by the last handler of `look` or `wait` */
static int trace_seen; /* the context had one */

static inline void run_echo(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    atomic_fetch_add(&n_starts, 1);
    peg_call_reply_json(call, args);
}

static inline void run_text(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("a \"text\"\n"));
}

static inline void run_bytes(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply_bytes(call, (peg_str){"\xff\x00z", 3});
}

static inline void run_fail(peg_call *call, const peg_json *args, void *user)
{
    const peg_error error = {.code = "E_NO_RAIN", .cause = "", .message = "there is no rain"};

    (void)user;
    if (peg_json_get(args, "coded"))
        peg_call_fail_with(call, &error);
    else
        peg_call_fail(call, "it is broken");
}

static inline void run_hold(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    atomic_fetch_add(&n_starts, 1);
    sem_post(&entered);
    sem_wait(&released);
    peg_call_reply(call, peg_cstr("held"));
}

/* Until it is canceled, or its deadline comes. */
static inline void run_wait(peg_call *call, const peg_json *args, void *user)
{
    peg_error why;

    (void)args;
    (void)user;
    sem_post(&entered);
    peg_ctx_wait(peg_call_ctx(call), 60000, &why);
    snprintf(seen, sizeof(seen), "%s", why.message);
    peg_call_fail(call, "stopped: %s", why.message);
}

static inline void run_large(peg_call *call, const peg_json *args, void *user)
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

static inline void run_deltas(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_provider_delta(call, "stdout", peg_cstr("one"));
    peg_provider_delta(call, "stdout", peg_cstr("two"));
    peg_call_add_server_data(call, "note", "host", args);
    peg_call_reply(call, peg_cstr("three"));
}

/* Says something whenever it is released, also when nobody waits for it any more. */
static inline void run_late(peg_call *call, const peg_json *args, void *user)
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

static inline void run_inspect(peg_call *call, const peg_json *args, void *user)
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
static inline void run_nest(peg_call *call, const peg_json *args, void *user)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("inner"),
                                      .tool = peg_cstr("mutter"), .args = peg_cstr("{}")};
    peg_record *record = NULL;

    (void)args;
    (void)user;
    if (!peg_call_run(peg_call_ctx(call), &request, NULL, &record, NULL))
        peg_call_reply(call, peg_cstr("nested"));
    peg_record_unref(record);
}

/* A command that says something. */
static inline void add_mutter(peg_registry *registry)
{
    static const char *const argv[] = {"sh", "-c", "echo aloud >&2", NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, .tool.name = "mutter",
                                 .tool.description = "says", .argv = argv};
    peg_tool *tool = NULL;

    if (peg_command_tool_new(&def, &tool, NULL) ||
        peg_registry_register(registry, tool, false, NULL))
        T_FAIL("no command");
    peg_tool_unref(tool);
}

static inline void run_twice(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("{\"k\":\"evil\",\"\\u006b\":\"safe\"}"));
}

/* Answers with JSON that has a member twice. */
static inline void add_twice(peg_registry *registry)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "twice", .description = "says it twice",
                              .artifact_kind = &peg_artifact_json, .run = run_twice};
    peg_tool *tool = NULL;

    if (peg_tool_new(&def, &tool, NULL) || peg_registry_register(registry, tool, false, NULL))
        T_FAIL("no tool");
    peg_tool_unref(tool);
}

struct world {
    struct fake *gateway;
    peg_registry *registry;
    peg_provider *provider;
    atomic_uint n_lost;
    atomic_uint n_ended;
    atomic_uint n_drains;
    atomic_uint n_refused_offers;
    atomic_bool holds_ends; /* whoever is told of the end of a call waits to be released */
    char target[2 * NET_ADDRESS_TEXT + 8];
    int64_t keep_ms; /* results without an Ack; 0: as always */
};

static inline void add(peg_registry *registry, const char *name, peg_tool_fn fn, const char *schema)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,
                              .name = name,
                              .description = "does it",
                              .input_schema = schema,
                              .open_arguments = !schema,
                              .run = fn,
                              .idempotent = fn == run_echo,
                              .timeout_ms = fn == run_inspect ? 7000 : 0};
    const peg_tool_def any = {PEG_TOOL_DEF_INIT,
                              .name = name,
                              .description = "does it",
                              .input_schema = "{\"type\":\"object\"}",
                              .open_arguments = true,
                              .run = fn,
                              .idempotent = fn == run_echo,
                              .timeout_ms = fn == run_inspect ? 7000 : 0};
    peg_tool *tool = NULL;
    peg_error error;

    if (peg_tool_new(schema ? &def : &any, &tool, &error) ||
        peg_registry_register(registry, tool, false, &error))
        T_FAIL("no tool: %s", error.message);
    peg_tool_unref(tool);
}

static inline peg_registry *make_registry(void)
{
    peg_registry *registry = NULL;

    if (peg_registry_new(NULL, 0, &registry, NULL))
        T_FAIL("no registry");
    add(registry, "echo", run_echo, NULL);
    add(registry, "text", run_text, NULL);
    add(registry, "bytes", run_bytes, NULL);
    add_twice(registry);
    add(registry, "fail", run_fail, NULL);
    add(registry, "hold", run_hold, NULL);
    add(registry, "wait", run_wait, NULL);
    add(registry, "large", run_large, NULL);
    add(registry, "tell", run_deltas, NULL);
    add(registry, "late", run_late, NULL);
    add(registry, "look", run_inspect, NULL);
    add(registry, "nest", run_nest, NULL);
    add_mutter(registry);
    add(registry, "typed", run_echo,
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}");
    return registry;
}

static inline void count_event(const peg_provider_event *event, void *user)
{
    struct world *w = user;

    if (event->kind == PEG_PROVIDER_LOST)
        atomic_fetch_add(&w->n_lost, 1);
    if (event->kind == PEG_PROVIDER_CALL_END)
        atomic_fetch_add(&w->n_ended, 1);
    if (event->kind == PEG_PROVIDER_DRAINS)
        atomic_fetch_add(&w->n_drains, 1);
    if (event->kind == PEG_PROVIDER_OFFER_REFUSED)
        atomic_fetch_add(&w->n_refused_offers, 1);
    if (event->kind == PEG_PROVIDER_CALL_END && atomic_load(&w->holds_ends)) {
        sem_post(&entered);
        sem_wait(&released);
    }
}

static inline void world_prepare(struct world *w)
{
    memset(w, 0, sizeof(*w));
    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    atomic_store(&n_starts, 0);
    w->gateway = fake_new();
    w->registry = make_registry();
}

/* A provider at the gateway, or at w->target; with what options say beside. */
static inline void world_provide(struct world *w, peg_provider_options options)
{
    peg_error error;

    options.toolset = "tools";
    options.address = w->target[0] ? w->target : w->gateway->address;
    options.backoff_ms = options.backoff_ms ? options.backoff_ms : 1;
    options.max_backoff_ms = options.max_backoff_ms ? options.max_backoff_ms : 20;
    options.on_event = count_event;
    options.user = w;
    CHECK_STATUS(peg_provider_new(w->registry, &options, &w->provider, &error), PEG_OK, error);
    if (w->keep_ms)
        w->provider->keep_ms = w->keep_ms;
    CHECK_STATUS(peg_provider_start(w->provider, &error), PEG_OK, error);
}

static inline void world_start(struct world *w, peg_provider_options options)
{
    world_prepare(w);
    world_provide(w, options);
    fake_await_stream(w->gateway, 0);
}

static inline void world_stop(struct world *w)
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

#endif
