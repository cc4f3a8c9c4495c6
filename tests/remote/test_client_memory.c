/* SPDX-License-Identifier: Apache-2.0 */

/* A client without memory, on the thread that asks and on its loop, says so and goes on later. */

#include "../t.h"

#include "base/mem.h"
#include "call_world.h"
#include "pegboard/pegboard.h"
#include "remote/client/remote.h"

/* As many as any of these takes, and some more. */
enum { N_ALLOCATIONS = 120 };

/* ---- on the loop -------------------------------------------------------------------------------
 */

struct hunger {
    struct net_message message;
    unsigned nth;
    atomic_uint n_done;
};

static void starve(struct net_message *message)
{
    struct hunger *hunger = (struct hunger *)(void *)message;

    peg__mem_fail_once(hunger->nth);
    atomic_fetch_add(&hunger->n_done, 1);
}

static void starve_loop(struct world *w, unsigned nth)
{
    struct hunger hunger = {.message = {.fn = starve}, .nth = nth};

    net_loop_post(w->client->loop, &hunger.message);
    CHECK(fake_await(&hunger.n_done, 1));
}

/* ---- what is asked -----------------------------------------------------------------------------
 */

static peg_status get(struct world *w)
{
    peg_toolset *toolset = NULL;
    const peg_status status = peg_client_get(w->client, NULL, NULL, "weather", &toolset, &w->error);

    if (!status)
        peg_toolset_unref(toolset);
    return status;
}

static peg_status list(struct world *w)
{
    peg_toolset_list *all = NULL;
    const peg_status status = peg_client_list(w->client, NULL, NULL, NULL, &all, &w->error);

    if (!status)
        peg_toolset_list_free(all);
    return status;
}

static peg_status search(struct world *w)
{
    const peg_search_query query = {PEG_SEARCH_QUERY_INIT, .words = "weather"};
    peg_search_result *found = NULL;
    const peg_status status = peg_client_search(w->client, NULL, &query, &found, &w->error);

    if (!status)
        peg_search_result_free(found);
    return status;
}

static peg_status call_data(struct world *w)
{
    const peg_status status = call_tool(w, "data");

    return status ? status : peg_remote_result_check(w->result, &w->error);
}

static peg_status call_output(struct world *w)
{
    const peg_remote_request request = request_of("talk");
    peg_status status;

    w->result = peg_remote_result_free(w->result);
    status = peg_client_call_stream(w->client, NULL, &request, NULL, &w->result, &w->error);
    return status ? status : peg_remote_result_check(w->result, &w->error);
}

static peg_status start_and_await(struct world *w)
{
    const peg_remote_request request = request_of("echo");
    const peg_remote_call started = {.call_id = "call-7"};
    peg_status status;

    w->result = peg_remote_result_free(w->result);
    status = peg_client_start(w->client, NULL, &request, &w->result, &w->error);
    if (!status)
        status = peg_remote_result_check(w->result, &w->error);
    if (status)
        return status;
    w->result = peg_remote_result_free(w->result);
    return peg_client_await(w->client, NULL, &started, -1, &w->result, &w->error);
}

static peg_status import_and_call(struct world *w)
{
    peg_registry *registry = NULL;
    peg_record *record = NULL;
    peg_status status = peg_client_import(w->client, NULL, "**", NULL, &registry, &w->error);

    if (!status)
        status = peg_registry_call(registry, "data", "{}", &record, &w->error);
    if (!status && peg_record_is_error(record))
        status = PEG_ENOMEM;
    peg_record_unref(record);
    peg_registry_unref(registry);
    return status;
}

static void record_output(const peg_watch_event *event, void *user)
{
    if (event->kind == PEG_WATCH_READY)
        atomic_fetch_add((atomic_uint *)user, 1);
}

static peg_status watch(struct world *w)
{
    static atomic_uint n_ready;
    const unsigned n = atomic_load(&n_ready);
    peg_watch *made = NULL;
    const peg_status status =
        peg_client_watch(w->client, NULL, record_output, &n_ready, &made, &w->error);

    if (status)
        return status;
    CHECK(fake_await(&n_ready, n + 1));
    peg_watch_free(made);
    return PEG_OK;
}

static peg_status (*const questions[])(struct world *w) = {
    get, list, search, call_data, call_output, start_and_await, import_and_call, watch};
enum { N_QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

TEST(a_request_without_memory_fails)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    for (unsigned q = 0; q < N_QUESTIONS; q++) {
        for (unsigned nth = 1; nth < N_ALLOCATIONS; nth++) {
            peg_status status;

            peg_client_forget(w.client);
            peg__mem_fail_once(nth);
            status = questions[q](&w);
            peg__mem_fail_once(0);
            if (status && status != PEG_ENOMEM)
                T_FAIL("question %u, allocation %u: %s", q, nth, w.error.message);
        }
        CHECK_STATUS(questions[q](&w), PEG_OK, w.error);
    }
    world_close(&w);
}

TEST(a_loop_without_memory_answers_and_goes_on)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.is_finished, true);
    for (unsigned q = 0; q < N_QUESTIONS; q++) {
        for (unsigned nth = 1; nth < N_ALLOCATIONS; nth++) {
            peg_client_forget(w.client);
            starve_loop(&w, nth);
            (void)questions[q](&w); /* that it ends is enough */
            starve_loop(&w, 0);
            CHECK_STATUS(questions[q](&w), PEG_OK, w.error);
        }
    }
    world_close(&w);
}
