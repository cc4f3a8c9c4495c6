/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: calls of one provider of which one talks without end, to a gateway that does not read for a
 * while. That costs the talker, and nobody else. */

#include "t.h"

#include <stdatomic.h>
#include <time.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"
#include "remote/fake_gateway.h"

enum {
    /* More than a stream takes that is not read: its window, what is sent ahead of that, and a
     * frame. Who was told that so many were taken has some of them waiting at the provider. */
    TAKEN_DELTAS = (PEG_LIMIT_GRPC_STREAM_WINDOW >> 16) + 1 + 1 + 4,
    LARGE_BYTES = 1 << 20,
};

struct world {
    struct fake *gateway;
    peg_registry *registry;
    peg_provider *provider;
    atomic_uint n_taken; /* deltas of `talk` */
    atomic_uint n_over;  /* handlers of it */
    atomic_bool is_silent;
    peg_status status_of_most; /* for `boast` */
    peg_status status_of_more;
};

static char text[LARGE_BYTES];

static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool await(atomic_uint *counter, unsigned at_least)
{
    for (unsigned i = 0; i < 60000 && atomic_load(counter) < at_least; i++)
        pause_a_moment();
    return atomic_load(counter) >= at_least;
}

/* Results that are there and were not heard. */
static bool await_done(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < 60000 && peg_provider_info(w->provider).n_unacknowledged != n; i++)
        pause_a_moment();
    return peg_provider_info(w->provider).n_unacknowledged == n;
}

/* ---- tools -------------------------------------------------------------------------------------
 */

/* The largest frames that there are, until the test has heard enough. */
static void run_endless(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;
    const peg_str words = {text, PEG_LIMIT_REMOTE_CHUNK_BYTES};

    (void)args;
    while (!atomic_load(&w->is_silent)) {
        if (peg_provider_delta(call, "stderr", words) == PEG_OK)
            atomic_fetch_add(&w->n_taken, 1);
        else
            pause_a_moment();
    }
    peg_call_reply(call, peg_cstr("talked"));
    atomic_fetch_add(&w->n_over, 1);
}

static void run_word(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_provider_delta(call, "stderr", peg_cstr("a word"));
    peg_call_reply(call, peg_cstr("said"));
}

static void run_quiet(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("quiet"));
}

static void run_large(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, (peg_str){text, sizeof(text)});
}

static void run_boast(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    w->status_of_more =
        peg_provider_delta(call, "stderr", (peg_str){text, PEG_LIMIT_REMOTE_CALL_DELTA_BYTES + 1});
    w->status_of_most =
        peg_provider_delta(call, "stderr", (peg_str){text, PEG_LIMIT_REMOTE_CALL_DELTA_BYTES});
    peg_call_reply(call, peg_cstr("boasted"));
}

/* ---- fixture -----------------------------------------------------------------------------------
 */

static void add(struct world *w, const char *name, peg_tool_fn fn)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = name, .description = "does it", .run = fn,
                              .user = w};
    peg_tool *tool = NULL;
    peg_error error;

    CHECK_STATUS(peg_tool_new(&def, &tool, &error), PEG_OK, error);
    CHECK_STATUS(peg_registry_register(w->registry, tool, false, &error), PEG_OK, error);
    peg_tool_unref(tool);
}

static void world_open(struct world *w, const peg_run_options *run)
{
    peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "tools",
                                    .concurrency = 2,          .backoff_ms = 1,
                                    .max_backoff_ms = 20,      .run = run};
    peg_error error;

    memset(w, 0, sizeof(*w));
    memset(text, 'x', sizeof(text));
    w->gateway = fake_new();
    CHECK_STATUS(peg_registry_new(NULL, 0, &w->registry, &error), PEG_OK, error);
    add(w, "talk", run_endless);
    add(w, "word", run_word);
    add(w, "quiet", run_quiet);
    add(w, "large", run_large);
    add(w, "boast", run_boast);
    options.address = w->gateway->address;
    CHECK_STATUS(peg_provider_new(w->registry, &options, &w->provider, &error), PEG_OK, error);
    CHECK_STATUS(peg_provider_start(w->provider, &error), PEG_OK, error);
    fake_await_stream(w->gateway, 0);
}

static void world_close(struct world *w)
{
    w->provider = peg_provider_free(w->provider);
    peg_registry_unref(w->registry);
    fake_free(w->gateway);
}

/* A call that talks, of which deltas wait: the gateway does not read. */
static void let_endless(struct world *w, const char *id)
{
    fake_pause(w->gateway, 0);
    fake_call(w->gateway, 0, id, "talk", "{}");
    CHECK(await(&w->n_taken, TAKEN_DELTAS));
}

/* Deltas of a call that received before, or behind, another frame. */
static unsigned count_deltas(struct fake *g, const char *id, const struct fake_frame *frame,
                             bool is_before)
{
    unsigned n = 0;

    pthread_mutex_lock(&g->lock);
    for (unsigned i = 0; i < g->n_frames; i++) {
        const struct fake_frame *f = &g->frames[i];

        n += f->kind == FAKE_DELTA && strcmp(f->id, id) == 0 && (f < frame) == is_before;
    }
    pthread_mutex_unlock(&g->lock);
    return n;
}

/* ---- tests -------------------------------------------------------------------------------------
 */

TEST(result_of_a_call_overtakes_endless_deltas_of_another)
{
    struct world w;
    const struct fake_frame *result;

    world_open(&w, NULL);
    let_endless(&w, "c1");
    fake_call(w.gateway, 0, "c2", "quiet", "{}");
    CHECK(await_done(&w, 1));
    fake_resume(w.gateway, 0);

    /* The first one goes on until this is here. */
    result = fake_await(w.gateway, FAKE_RESULT, "c2", 0);
    CHECK_STR(peg_cstr(result->text), "\"quiet\"");
    CHECK(count_deltas(w.gateway, "c1", result, true) < TAKEN_DELTAS);
    atomic_store(&w.is_silent, true);

    /* All that was taken of a call comes before its own result. */
    result = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(result->text), "\"talked\"");
    CHECK_INT(count_deltas(w.gateway, "c1", result, true), w.n_taken);
    world_close(&w);
}

TEST(delta_of_a_call_overtakes_the_long_result_of_another)
{
    struct world w;
    const struct fake_frame *delta;

    world_open(&w, NULL);
    fake_pause(w.gateway, 0);
    fake_call(w.gateway, 0, "c1", "large", "{}");
    CHECK(await_done(&w, 1));
    fake_call(w.gateway, 0, "c2", "word", "{}");
    CHECK(await_done(&w, 2));
    fake_resume(w.gateway, 0);

    CHECK(fake_await(w.gateway, FAKE_RESULT, "c2", 0) > fake_await(w.gateway, FAKE_DELTA, "c2", 0));
    delta = fake_await(w.gateway, FAKE_DELTA, "c2", 0);
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, "c1"),
              (LARGE_BYTES + 2) / PEG_LIMIT_REMOTE_CHUNK_BYTES + 1);
    CHECK(delta <
          fake_await(w.gateway, FAKE_RESULT, "c1", LARGE_BYTES / PEG_LIMIT_REMOTE_CHUNK_BYTES));
    world_close(&w);
}

TEST(result_does_not_wait_for_deltas_that_went_with_their_stream)
{
    struct world w;
    const struct fake_frame *result;

    world_open(&w, NULL);
    let_endless(&w, "c1");
    atomic_store(&w.is_silent, true);
    CHECK(await_done(&w, 1));
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);

    result = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_INT(result->stream, 1);
    CHECK_STR(peg_cstr(result->text), "\"talked\"");
    CHECK(await_done(&w, 0));
    world_close(&w);
}

TEST(provider_can_end_while_deltas_wait)
{
    struct world w;

    world_open(&w, NULL);
    let_endless(&w, "c1");
    atomic_store(&w.is_silent, true);
    CHECK(await_done(&w, 1));
    world_close(&w);
}

/* A handler that does not look whether it should stop is left to its pool, and talks on. */
TEST(deltas_of_an_abandoned_handler_do_not_follow_its_result)
{
    struct world w;
    const struct fake_frame *result;
    peg_run_options run = {PEG_RUN_OPTIONS_INIT};
    unsigned n_taken;

    CHECK_INT(peg_pool_new(NULL, &run.pool, NULL), PEG_OK);
    world_open(&w, &run);
    w.gateway->keeps_acks = true;
    let_endless(&w, "c1");
    fake_cancel(w.gateway, 0, "c1");
    CHECK(await_done(&w, 1));
    fake_resume(w.gateway, 0);
    result = fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_STR(peg_cstr(result->name), "E_TOOL_CANCELED");

    n_taken = atomic_load(&w.n_taken);
    CHECK(await(&w.n_taken, n_taken + 2));
    atomic_store(&w.is_silent, true);
    CHECK(await(&w.n_over, 1));
    fake_call(w.gateway, 0, "c2", "quiet", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c2", 0);
    CHECK_INT(count_deltas(w.gateway, "c1", result, false), 0);
    world_close(&w);
    peg_pool_unref(run.pool);
}

TEST(call_has_half_of_the_room_for_deltas)
{
    struct world w;

    world_open(&w, NULL);
    fake_call(w.gateway, 0, "c1", "boast", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    CHECK_INT(w.status_of_more, PEG_ELIMIT);
    CHECK_INT(w.status_of_most, PEG_OK);
    CHECK_INT(fake_count(w.gateway, FAKE_DELTA, "c1"),
              PEG_LIMIT_REMOTE_CALL_DELTA_BYTES / PEG_LIMIT_REMOTE_CHUNK_BYTES);
    world_close(&w);
}
