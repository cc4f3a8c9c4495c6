/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: a provider whose gateway cannot be reached for a while. It has a call, and is back in time
 * to say what became of it: however long its pauses otherwise are. */

#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/text/str.h"
#include "pegboard/client.h"
#include "pegboard/gateway.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"
#include "remote/relay.h"

struct world {
    peg_gateway *gateway;
    struct relay relay; /* between the provider and its gateway */
    peg_registry *tools;
    peg_provider *provider;
    atomic_uint n_attached;
    atomic_uint n_lost;
    atomic_uint n_starts;
    atomic_bool is_released;
    peg_client *client;
    peg_remote_result *result;
    peg_error error;
    pthread_t thread;
};

static void work(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    atomic_fetch_add(&w->n_starts, 1);
    while (!atomic_load(&w->is_released)) {
        if (peg_ctx_wait(peg_call_ctx(call), 5, NULL)) {
            peg_call_fail(call, "stopped");
            return;
        }
    }
    peg_call_reply(call, peg__str("done"));
}

static void on_event(const peg_provider_event *event, void *user)
{
    struct world *w = user;

    atomic_fetch_add(&w->n_attached, event->kind == PEG_PROVIDER_ATTACHED);
    atomic_fetch_add(&w->n_lost, event->kind == PEG_PROVIDER_LOST);
}

/* Its own pauses are of an hour: only that it has a call makes them shorter. */
static void provide(struct world *w)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "work", .description = "works",
                              .run = work, .user = w};
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT,
                                          .toolset = "jobs",
                                          .address = w->relay.address,
                                          .backoff_ms = 3600000,
                                          .max_backoff_ms = 3600000,
                                          .on_event = on_event,
                                          .user = w};
    peg_tool *tool;

    CHECK_STATUS(peg_registry_new(NULL, 0, &w->tools, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_tool_new(&def, &tool, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_registry_register(w->tools, tool, false, &w->error), PEG_OK, w->error);
    peg_tool_unref(tool);
    CHECK_STATUS(peg_provider_new(w->tools, &options, &w->provider, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_provider_start(w->provider, &w->error), PEG_OK, w->error);
    CHECK(await_count(&w->n_attached, 1));
}

static void world_open(struct world *w)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .log_level = PEG_LOG_ERROR,
                                       .lease_ms = 10000, .drain_ms = 60000};
    peg_client_options options = {PEG_CLIENT_OPTIONS_INIT};

    memset(w, 0, sizeof(*w));
    CHECK_STATUS(peg_gateway_new(&config, &w->gateway, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_gateway_listen(w->gateway, "127.0.0.1:0", &w->error), PEG_OK, w->error);
    relay_open(&w->relay, peg_gateway_address(w->gateway));
    provide(w);
    options.address = peg_gateway_address(w->gateway);
    CHECK_STATUS(peg_client_new(&options, &w->client, &w->error), PEG_OK, w->error);
}

static void world_close(struct world *w)
{
    peg_remote_result_free(w->result);
    peg_client_unref(w->client);
    peg_provider_free(w->provider);
    peg_registry_unref(w->tools);
    relay_close(&w->relay);
    CHECK_STATUS(peg_gateway_drain(w->gateway, &w->error), PEG_OK, w->error);
    peg_gateway_free(w->gateway);
}

static void *call(void *user)
{
    struct world *w = user;
    const peg_remote_request request = {PEG_REMOTE_REQUEST_INIT, .toolset = "jobs", .tool = "work",
                                        .args = PEG_LIT("{}")};

    CHECK_STATUS(peg_client_call(w->client, NULL, &request, &w->result, &w->error), PEG_OK,
                 w->error);
    return NULL;
}

TEST(a_call_outlives_a_break_between_its_provider_and_the_gateway)
{
    struct world w;

    world_open(&w);
    CHECK_INT(pthread_create(&w.thread, NULL, call, &w), 0);
    CHECK(await_count(&w.n_starts, 1));
    relay_go_away(&w.relay, true);
    CHECK(await_count(&w.n_lost, 2));
    relay_go_away(&w.relay, false);
    CHECK(await_count(&w.n_attached, 2));
    atomic_store(&w.is_released, true);
    pthread_join(w.thread, NULL);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "\"done\"");
    CHECK_INT(w.n_starts, 1);
    world_close(&w);
}
