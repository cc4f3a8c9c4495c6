/* SPDX-License-Identifier: Apache-2.0 */

/* Long calls: started, awaited by their id, with an end and without one, and canceled. */

#include "../t.h"
#include "call_world.h"

static const peg_remote_call started_call = {.call_id = "call-7"};

TEST(a_call_is_started_and_its_end_is_awaited)
{
    const peg_remote_request request = request_of("wait");
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    CHECK_STATUS(peg_client_start(w.client, NULL, &request, &w.result, &w.error), PEG_OK, w.error);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RUNNING);
    CHECK_STR(peg__str(w.result->call_id), "call-7");
    CHECK_INT(w.result->deadline_ms, 1700000030000);
    w.result = peg_remote_result_free(w.result);

    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, -1, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "true");
    world_close(&w);
}

TEST(a_wait_that_is_over_leaves_the_call_running)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, 20, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RUNNING);
    CHECK_STR(peg__str(w.result->call_id), "call-7");
    CHECK_INT(peg_remote_result_check(w.result, NULL), PEG_OK);
    world_close(&w);
}

TEST(a_check_without_a_wait_sees_the_end_of_a_call)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, 0, &w.result, &w.error), PEG_OK,
                 w.error);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RUNNING);
    CHECK_INT(w.fake.n_awaits, 1);
    w.result = peg_remote_result_free(w.result);

    atomic_store(&w.fake.is_finished, true);
    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, 0, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, 2);
    world_close(&w);
}

/* It cannot ask its registry, and does not know more than we do. On a clock that stands still: it
 * answers at once. */
TEST(a_check_at_a_gateway_that_does_not_wait_does_not_report_running)
{
    struct world w;
    peg_clock *clock;
    peg_ctx *timed;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_clock_manual_new(1700000000000, &clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, clock, &timed, NULL), PEG_OK);
    atomic_store(&w.fake.n_late, 1);

    CHECK_INT(peg_client_await(w.client, timed, &started_call, 0, &w.result, &w.error), PEG_EIO);

    peg_ctx_unref(timed);
    peg_clock_manual_free(clock);
    CHECK_STR(peg__str(w.error.code), "E_SERVICE_UNAVAILABLE");
    CHECK(strstr(w.error.message, "await it again later"));
    CHECK_INT(w.fake.n_awaits, 1);
    world_close(&w);
}

struct mover {
    struct world *w;
    peg_clock *clock;
    pthread_t thread;
};

static void *move_when_it_was_asked(void *user)
{
    struct mover *m = user;

    fake_await(&m->w->fake.n_awaits, 1);
    peg_clock_manual_advance(m->clock, 2 * WORLD_TIMEOUT_MS);
    return NULL;
}

TEST(a_gateway_that_says_nothing_has_not_said_that_the_call_runs)
{
    struct world w;
    struct mover m = {.w = &w};
    peg_ctx *timed;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_clock_manual_new(1700000000000, &m.clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, m.clock, &timed, NULL), PEG_OK);
    CHECK_INT(pthread_create(&m.thread, NULL, move_when_it_was_asked, &m), 0);

    CHECK_INT(peg_client_await(w.client, timed, &started_call, 2000, &w.result, &w.error),
              PEG_ETIMEOUT);

    pthread_join(m.thread, NULL);
    CHECK_STR(peg__str(w.error.code), "E_TIMEOUT");
    peg_ctx_unref(timed);
    peg_clock_manual_free(m.clock);
    world_close(&w);
}

TEST(a_wait_is_made_again_when_its_connection_is_lost)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_drops, 2);

    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, -1, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, 3);
    world_close(&w);
}

/* On a clock that the gateway's waits move. */
static peg_status await_for(struct world *w, int64_t wait_ms)
{
    peg_clock *clock;
    peg_ctx *timed;
    peg_status status;

    CHECK_INT(peg_clock_manual_new(1700000000000, &clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, clock, &timed, NULL), PEG_OK);
    w->fake.clock = clock;
    status = peg_client_await(w->client, timed, &started_call, wait_ms, &w->result, &w->error);
    w->fake.clock = NULL;
    peg_ctx_unref(timed);
    peg_clock_manual_free(clock);
    return status;
}

static peg_status await_on_its_clock(struct world *w)
{
    return await_for(w, -1);
}

TEST(a_connection_that_held_for_long_is_not_one_of_many_that_broke)
{
    enum { HOUR_MS = 3600000, N_DROPS = 20 };
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_drops, N_DROPS);
    w.fake.drops_after_ms = 60000;

    CHECK_STATUS(await_for(&w, HOUR_MS), PEG_OK, w.error);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, N_DROPS + 1);
    w.result = peg_remote_result_free(w.result);

    atomic_store(&w.fake.n_drops, N_DROPS);
    w.fake.drops_after_ms = 1000;
    CHECK_INT(await_for(&w, HOUR_MS), PEG_EIO);
    world_close(&w);
}

/* The gateway ends each a little before the time that it was told. */
TEST(a_wait_without_end_goes_on_when_the_gateways_ends)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_late, 20);

    CHECK_STATUS(await_on_its_clock(&w), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, 21);
    world_close(&w);
}

/* It cannot ask its registry, and says at once that the call goes on. */
TEST(a_gateway_that_does_not_wait_is_asked_again_after_a_pause_and_not_for_ever)
{
    enum { LONG_MS = 3600000 };
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    peg_client_unref(w.client);
    CHECK_STATUS(peg_client_new(&(peg_client_options){PEG_CLIENT_OPTIONS_INIT,
                                                      .address = w.fake.address, .max_reasks = 1},
                                &w.client, &w.error),
                 PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_late, 1);
    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, LONG_MS, &w.result, &w.error),
                 PEG_OK, w.error);
    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, 2);
    w.result = peg_remote_result_free(w.result);

    atomic_store(&w.fake.n_late, 100);
    CHECK_INT(peg_client_await(w.client, NULL, &started_call, LONG_MS, &w.result, &w.error),
              PEG_EIO);
    CHECK_STR(peg__str(w.error.code), "E_SERVICE_UNAVAILABLE");
    CHECK(strstr(w.error.message, "await it again later"));
    CHECK_INT(w.fake.n_awaits, 4);
    world_close(&w);
}

/* Lets the time of pauses pass at once, until it is told to stop. */
struct ticker {
    peg_clock *clock;
    atomic_bool is_over;
    pthread_t thread;
};

static void *tick(void *user)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct ticker *ticker = user;

    while (!atomic_load(&ticker->is_over)) {
        peg_clock_manual_advance(ticker->clock, 500);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Without end, with a client that asks again `max_reasks` times, on a clock that runs fast. */
static peg_status await_for_ever(struct world *w, int max_reasks, peg_ctx *parent)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .address = w->fake.address,
                                        .max_reasks = max_reasks};
    struct ticker ticker = {0};
    peg_ctx *timed;
    peg_status status;

    peg_client_unref(w->client);
    CHECK_STATUS(peg_client_new(&options, &w->client, &w->error), PEG_OK, w->error);
    CHECK_INT(peg_clock_manual_new(1700000000000, &ticker.clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(parent, ticker.clock, &timed, NULL), PEG_OK);
    CHECK_INT(pthread_create(&ticker.thread, NULL, tick, &ticker), 0);
    status = peg_client_await(w->client, timed, &started_call, -1, &w->result, &w->error);
    atomic_store(&ticker.is_over, true);
    pthread_join(ticker.thread, NULL);
    peg_ctx_unref(timed);
    peg_clock_manual_free(ticker.clock);
    return status;
}

TEST(a_wait_without_end_goes_on_however_often_the_gateway_does_not_wait)
{
    enum { N_LATE = 12 };
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_late, N_LATE);

    CHECK_STATUS(await_for_ever(&w, 1, NULL), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, N_LATE + 1);
    world_close(&w);
}

TEST(a_wait_without_end_goes_on_however_often_its_connection_is_lost)
{
    enum { N_DROPS = 8 };
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_drops, N_DROPS);

    CHECK_STATUS(await_for_ever(&w, 1, NULL), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, N_DROPS + 1);
    world_close(&w);
}

TEST(a_wait_without_end_ends_with_the_first_loss_if_nothing_is_asked_again)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_drops, 100);

    CHECK_INT(await_for_ever(&w, -1, NULL), PEG_EIO);

    CHECK_INT(w.fake.n_awaits, 1);
    world_close(&w);
}

static void *stop_when_it_was_asked_often(void *user)
{
    struct stopper *s = user;

    fake_await(&s->w->fake.n_awaits, 10);
    peg_cancel_fire(s->cancel, "changed my mind");
    return NULL;
}

TEST(a_wait_without_end_for_a_gateway_that_does_not_wait_is_canceled)
{
    struct world w;
    struct stopper s = {.w = &w};
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &s.cancel, NULL), PEG_OK);
    atomic_store(&w.fake.n_late, UINT_MAX);
    CHECK_INT(pthread_create(&s.thread, NULL, stop_when_it_was_asked_often, &s), 0);

    CHECK_INT(await_for_ever(&w, 1, ctx), PEG_ECANCELED);

    pthread_join(s.thread, NULL);
    CHECK(strstr(w.error.message, "changed my mind"));
    peg_cancel_unref(s.cancel);
    peg_ctx_unref(ctx);
    world_close(&w);
}

/* The pause is a part of the wait. */
TEST(a_wait_that_is_over_in_a_pause_leaves_the_call_running)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_late, 1);

    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, 100, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RUNNING);
    world_close(&w);
}

TEST(a_wait_without_end_survives_any_number_of_lost_connections)
{
    enum { N_DROPS = 3, N_LATE = 4 };
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    atomic_store(&w.fake.n_late, N_LATE);
    atomic_store(&w.fake.n_drops_each, N_DROPS);

    CHECK_STATUS(await_on_its_clock(&w), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w.fake.n_awaits, N_LATE * (N_DROPS + 1) + 1);
    world_close(&w);
}

TEST(an_await_reports_a_call_that_was_not_started_in_time)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.has_expired, true);

    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, -1, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_TIMEOUT);
    CHECK(!w.result->was_started);
    CHECK_INT(w.fake.n_awaits, 1);
    world_close(&w);
}

TEST(an_await_reports_a_canceled_call)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(peg_client_cancel(w.client, NULL, &started_call, &w.error), PEG_OK, w.error);

    CHECK_STATUS(peg_client_await(w.client, NULL, &started_call, -1, &w.result, &w.error), PEG_OK,
                 w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_CANCELED);
    CHECK_STR(peg__str(w.result->call_id), "call-7");
    world_close(&w);
}

TEST(waiting_for_a_call_that_is_not_there_fails)
{
    const peg_remote_call strange = {.call_id = "call-9"};
    const peg_remote_call nameless = {.call_id = ""};
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_client_await(w.client, NULL, &strange, -1, &w.result, &w.error), PEG_ENOTFOUND);
    CHECK_STR(peg__str(w.error.code), "E_NOT_FOUND");
    CHECK_INT(peg_client_await(w.client, NULL, &nameless, -1, &w.result, &w.error), PEG_EINVAL);
    CHECK_INT(peg_client_cancel(w.client, NULL, &nameless, &w.error), PEG_EINVAL);
    world_close(&w);
}

TEST(a_context_that_stops_ends_the_wait_not_the_call)
{
    struct world w;
    peg_ctx *ctx;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_deadline(NULL, 20, &ctx, NULL), PEG_OK);

    CHECK_INT(peg_client_await(w.client, ctx, &started_call, -1, &w.result, &w.error),
              PEG_ETIMEOUT);

    CHECK_STR(peg__str(w.error.code), "E_DEADLINE_EXCEEDED");
    CHECK_INT(w.fake.n_cancels, 0);
    peg_ctx_unref(ctx);
    world_close(&w);
}

TORTURE(long_calls_survive_any_allocation_failure)
{
    const peg_remote_request request = request_of("wait");
    struct world w;
    peg_status status = world_open(&w);

    atomic_store(&w.fake.is_finished, true);
    if (!status)
        status = peg_client_start(w.client, NULL, &request, &w.result, &w.error);
    w.result = peg_remote_result_free(w.result);
    if (!status)
        status = peg_client_await(w.client, NULL, &started_call, -1, &w.result, &w.error);
    if (!status)
        status = peg_client_cancel(w.client, NULL, &started_call, &w.error);
    world_close(&w);
    return status;
}
