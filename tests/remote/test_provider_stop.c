/* SPDX-License-Identifier: Apache-2.0 */

/* A provider that is stopped finishes what it has, for a while. */

#include "t.h"

#include "remote/provider_world.h"

TEST(provider_that_is_stopped_finishes_what_it_has_and_takes_nothing_new)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
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

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
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

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
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

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
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

TEST(provider_ends_while_its_host_is_busy_with_an_event)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    atomic_store(&w.holds_ends, true);
    fake_call(w.gateway, 0, "c1", "echo", "{}");
    sem_wait(&entered);
    peg_provider_stop(w.provider);

    fake_await(w.gateway, FAKE_DRAIN, NULL, 0);
    fake_ping(w.gateway, 0, "p1");
    fake_await(w.gateway, FAKE_PONG, "p1", 0);
    CHECK_INT(w.n_drains, 0); /* one at a time */
    sem_post(&released);
    CHECK_RESULT(&w, "c1", "{}");
    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    CHECK_INT(w.n_drains, 1);
    world_stop(&w);
}

TEST(provider_gives_up_calls_that_outlast_its_patience)
{
    struct world w;
    peg_error error;

    world_start(&w,
                (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1, .drain_ms = 1});
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
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
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
    CHECK_STATUS(peg_provider_new(
                     w.registry, &(peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .toolset = "t"},
                     &w.provider, &error),
                 PEG_OK, error);
    peg_provider_stop(w.provider);
    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_ESTATE);
    world_stop(&w);
}

/* ---- pauses ---- */

TEST(provider_that_is_paused_finishes_what_it_has_and_leaves)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    peg_provider_pause(w.provider);
    fake_await(w.gateway, FAKE_DRAIN, NULL, 0);
    fake_call(w.gateway, 0, "c2", "echo", "{}");
    CHECK_INT(fake_await(w.gateway, FAKE_NAK, "c2", 0)->number,
              PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
    sem_post(&released);
    CHECK_RESULT(&w, "c1", "\"held\"");
    fake_await_half_close(w.gateway, 0);

    peg_provider_resume(w.provider);

    fake_await(w.gateway, FAKE_HELLO, NULL, 1);
    fake_call(w.gateway, 1, "c3", "echo", "{}");
    CHECK_RESULT(&w, "c3", "{}");
    peg_provider_stop(w.provider);
    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    world_stop(&w);
}

TEST(provider_that_goes_on_before_it_left_attaches_with_what_it_runs)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "hold", "{}");
    sem_wait(&entered);
    peg_provider_pause(w.provider);
    fake_await(w.gateway, FAKE_DRAIN, NULL, 0);

    peg_provider_resume(w.provider);

    fake_await(w.gateway, FAKE_HELLO, NULL, 1);
    sem_post(&released);
    CHECK_RESULT(&w, "c1", "\"held\"");
    peg_provider_stop(w.provider);
    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    world_stop(&w);
}

TEST(provider_that_is_paused_can_be_stopped)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    peg_provider_pause(w.provider);
    fake_await_half_close(w.gateway, 0);

    peg_provider_stop(w.provider);

    CHECK_STATUS(peg_provider_wait(w.provider, &error), PEG_OK, error);
    world_stop(&w);
}
