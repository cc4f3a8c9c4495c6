/* SPDX-License-Identifier: Apache-2.0 */

/* A provider that loses its gateway, and comes back with what it has. */

#include "t.h"

#include <poll.h>

#include "base/limits.h"
#include "remote/provider_world.h"

TEST(provider_comes_back_and_lists_what_runs_and_what_was_not_acknowledged)
{
    struct world w;
    const struct fake_frame *first;
    const struct fake_frame *second;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
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

static void await_unacknowledged(const struct world *w, unsigned n)
{
    while (peg_provider_info(w->provider).n_unacknowledged != n)
        poll(NULL, 0, 1);
}

/* It does not list what it was handed: the count of its Hellos says that this proves nothing. */
TEST(provider_keeps_a_result_that_is_never_acknowledged_not_for_ever)
{
    struct world w;
    peg_error error;

    world_prepare(&w);
    w.keep_ms = 100;
    w.gateway->keeps_acks = true;
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2,
                                             .drain_ms = 3600000});
    fake_await_stream(w.gateway, 0);
    fake_call(w.gateway, 0, "c1", "echo", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c1", 0);
    await_unacknowledged(&w, 0);
    fake_call(w.gateway, 0, "c1", "echo", "{}"); /* whoever asks again has forgotten it */
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);

    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_HELLO, NULL, 1)->text), "");
    CHECK_INT(fake_await(w.gateway, FAKE_HELLO, NULL, 1)->attempt, 3);
    fake_await_stream(w.gateway, 1);
    fake_call(w.gateway, 1, "c2", "echo", "{}");
    fake_await(w.gateway, FAKE_RESULT, "c2", 0);
    peg_provider_stop(w.provider);
    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    CHECK_INT(atomic_load(&n_starts), 2);
    world_stop(&w);
}

TEST(provider_survives_a_gateway_that_is_killed_and_started_again)
{
    struct world w;
    char address[NET_ADDRESS_TEXT];

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 4});
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
 * received by is freed before the second delta. */
TEST(provider_drops_deltas_after_its_call_was_acknowledged)
{
    struct world w;
    peg_run_options run = {PEG_RUN_OPTIONS_INIT};

    CHECK_INT(peg_pool_new(NULL, &run.pool, NULL), PEG_OK);
    world_start(&w,
                (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .run = &run});
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
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1,
                                             .backoff_ms = 3600000, .max_backoff_ms = 3600000});
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

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
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

/* Of those whose results were not acknowledged there may be more than a gateway takes in a Hello.
 */
TEST(provider_lists_no_more_calls_than_a_gateway_takes)
{
    enum { N = PEG_LIMIT_REMOTE_CREDITS + 2 };
    struct world w;
    const struct fake_frame *hello;
    unsigned n_listed = 0;
    char id[16];

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .runs_inline = true,
                                           .concurrency = PEG_LIMIT_REMOTE_CREDITS});
    w.gateway->keeps_acks = true;
    for (unsigned i = 0; i < N; i++) {
        snprintf(id, sizeof(id), "c%u", i);
        fake_call(w.gateway, 0, id, "echo", "{}");
    }
    fake_await(w.gateway, FAKE_RESULT, id, 0);
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);

    hello = fake_await(w.gateway, FAKE_HELLO, NULL, 1);
    for (size_t i = 0; i < hello->len; i++)
        n_listed += hello->text[i] == ' ';
    CHECK_INT(n_listed, PEG_LIMIT_REMOTE_CREDITS);
    CHECK(strncmp(hello->text, "c2:1:r:echo ", 12) == 0);
    CHECK_INT(hello->attempt, 0);              /* what is not listed may have come all the same */
    fake_await(w.gateway, FAKE_RESULT, id, 1); /* and all of them are said again */
    CHECK_INT(fake_count(w.gateway, FAKE_RESULT, "c0"), 2);
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
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 2});
    while (!peg_provider_info(w.provider).is_attached)
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

/* While that tool runs: the provider first, then its gateway. */
static void drain_both_during(struct world *w, const char *tool)
{
    world_start(w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w->gateway, 0, "c1", tool, "{}");
    sem_wait(&entered);
    peg_provider_stop(w->provider);
    fake_await(w->gateway, FAKE_DRAIN, NULL, 0);
    fake_drain(w->gateway, 0);
}

/* As on a machine that goes down. The next gateway may be another one, or the same one again. */
TEST(provider_that_is_stopped_brings_its_calls_to_the_next_gateway_when_its_own_has_drained)
{
    struct world w;
    peg_error error;

    drain_both_during(&w, "hold");
    fake_end(w.gateway, 0, GRPC_UNAVAILABLE);
    fake_await_stream(w.gateway, 1);
    sem_post(&released);

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_HELLO, NULL, 1)->text), "c1:1:r:hold ");
    CHECK_RESULT(&w, "c1", "\"held\"");
    world_stop(&w);
}

/* To come back would be to register it again. */
TEST(provider_that_is_stopped_and_unregistered_while_its_gateway_drains_does_not_come_back)
{
    struct world w;
    peg_error error;

    drain_both_during(&w, "wait");
    fake_end(w.gateway, 0, GRPC_NOT_FOUND);

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    CHECK_INT(fake_count(w.gateway, FAKE_HELLO, NULL), 1);
    world_stop(&w);
}
