/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: a client whose connection to a real gateway breaks while its call runs. With an identity it
 * gets the result of what it has started, and nothing is started or canceled for it meanwhile. */

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/client.h"
#include "pegboard/gateway.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"
#include "relay.h"

/* A gateway and its provider. */
struct node {
    peg_gateway *gateway;
    peg_registry *tools;
    peg_provider *provider;
    atomic_uint n_attached;
    atomic_uint n_starts;
    atomic_uint n_stopped;
    atomic_bool is_released;
};

struct world {
    struct node node;
    struct relay relay;
    peg_client *client;
    peg_remote_request request;
    peg_remote_result *result;
    peg_error error;
    pthread_t thread;
};

/* ---- nodes -------------------------------------------------------------------------------------
 */

/* Until the test lets it go, or nobody wants it any more. */
static void work(peg_call *call, const peg_json *args, void *user)
{
    struct node *node = user;

    (void)args;
    atomic_fetch_add(&node->n_starts, 1);
    while (!atomic_load(&node->is_released)) {
        if (peg_ctx_wait(peg_call_ctx(call), 5, NULL)) {
            atomic_fetch_add(&node->n_stopped, 1);
            peg_call_fail(call, "stopped");
            return;
        }
    }
    peg_call_reply(call, peg__str("done"));
}

static void add_tool(struct node *node, const char *name, bool is_idempotent)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,           .name = name, .description = "works",
                              .idempotent = is_idempotent, .run = work,  .user = node};
    peg_error error;
    peg_tool *tool;

    CHECK_STATUS(peg_tool_new(&def, &tool, &error), PEG_OK, error);
    CHECK_STATUS(peg_registry_register(node->tools, tool, false, &error), PEG_OK, error);
    peg_tool_unref(tool);
}

static void on_event(const peg_provider_event *event, void *user)
{
    struct node *node = user;

    atomic_fetch_add(&node->n_attached, event->kind == PEG_PROVIDER_ATTACHED);
}

static void node_open(struct node *node)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .log_level = PEG_LOG_ERROR,
                                       .drain_ms = 60000};
    peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "jobs",
                                    .version = "1.0.0", .on_event = on_event, .user = node};
    peg_error error;

    memset(node, 0, sizeof(*node));
    CHECK_STATUS(peg_gateway_new(&config, &node->gateway, &error), PEG_OK, error);
    CHECK_STATUS(peg_gateway_listen(node->gateway, "127.0.0.1:0", &error), PEG_OK, error);
    CHECK_STATUS(peg_registry_new(NULL, 0, &node->tools, &error), PEG_OK, error);
    add_tool(node, "work", false);
    add_tool(node, "look", true);
    options.address = peg_gateway_address(node->gateway);
    CHECK_STATUS(peg_provider_new(node->tools, &options, &node->provider, &error), PEG_OK, error);
    CHECK_STATUS(peg_provider_start(node->provider, &error), PEG_OK, error);
    CHECK(await_count(&node->n_attached, 1));
}

static void node_close(struct node *node)
{
    peg_error error;

    atomic_store(&node->is_released, true);
    peg_provider_free(node->provider);
    peg_registry_unref(node->tools);
    CHECK_STATUS(peg_gateway_drain(node->gateway, &error), PEG_OK, error);
    peg_gateway_free(node->gateway);
}

/* Where a gateway was that has been killed: its successor keeps nothing, and has a provider of its
 * own. */
static void restart(struct world *w, struct node *successor)
{
    node_open(successor);
    relay_cut(&w->relay, peg_gateway_address(successor->gateway));
}

/* ---- the client --------------------------------------------------------------------------------
 */

static void world_open_with(struct world *w, const char *tool, const char *key, int max_reasks)
{
    peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .max_reasks = max_reasks};

    memset(w, 0, sizeof(*w));
    node_open(&w->node);
    relay_open(&w->relay, peg_gateway_address(w->node.gateway));
    options.address = w->relay.address;
    CHECK_STATUS(peg_client_new(&options, &w->client, &w->error), PEG_OK, w->error);
    w->request = (peg_remote_request){PEG_REMOTE_REQUEST_INIT, .toolset = "jobs", .tool = tool,
                                      .args = PEG_LIT("{}"), .idempotency_key = key};
}

static void world_open(struct world *w, const char *tool, const char *key)
{
    world_open_with(w, tool, key, 0);
}

static void world_close(struct world *w)
{
    peg_remote_result_free(w->result);
    peg_client_unref(w->client);
    relay_close(&w->relay);
    node_close(&w->node);
}

static void *call(void *user)
{
    struct world *w = user;

    CHECK_STATUS(peg_client_call(w->client, NULL, &w->request, &w->result, &w->error), PEG_OK,
                 w->error);
    return NULL;
}

static void begin(struct world *w)
{
    CHECK_INT(pthread_create(&w->thread, NULL, call, w), 0);
    CHECK(await_count(&w->node.n_starts, 1));
}

static void pause_a_little(void)
{
    const struct timespec moment = {.tv_nsec = 100000000};

    nanosleep(&moment, NULL);
}

/* ---- the same gateway --------------------------------------------------------------------------
 */

TEST(a_call_with_an_identity_outlives_its_connection)
{
    struct world w;

    world_open(&w, "work", "key-1");
    begin(&w);
    relay_cut(&w.relay, peg_gateway_address(w.node.gateway));
    CHECK(await_count(&w.relay.n_accepted, 2));
    pause_a_little();
    CHECK_INT(w.node.n_stopped, 0);
    atomic_store(&w.node.is_released, true);
    pthread_join(w.thread, NULL);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w.result->json, "\"done\"");
    CHECK(w.result->was_attached);
    CHECK_INT(w.node.n_starts, 1);
    CHECK_INT(w.node.n_stopped, 0);
    world_close(&w);
}

TEST(a_call_without_an_identity_ends_with_its_connection)
{
    struct world w;

    world_open(&w, "work", NULL);
    begin(&w);
    relay_cut(&w.relay, peg_gateway_address(w.node.gateway));
    pthread_join(w.thread, NULL);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK(await_count(&w.node.n_stopped, 1));
    world_close(&w);
}

/* The call goes on until it is released: who asked again would wait for that. (That there is
 * another connection says nothing, as the channel may have made it.) */
TEST(a_host_can_do_without_asking_again)
{
    struct world w;

    world_open_with(&w, "work", "key-1", -1);
    begin(&w);
    relay_cut(&w.relay, peg_gateway_address(w.node.gateway));
    pthread_join(w.thread, NULL);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK(!w.result->was_attached);
    CHECK_INT(w.node.n_starts, 1);
    world_close(&w);
}

/* ---- a gateway that was restarted --------------------------------------------------------------
 */

static void know_epoch(struct world *w)
{
    peg_toolset *toolset;

    CHECK_STATUS(peg_client_get(w->client, NULL, NULL, "jobs", &toolset, &w->error), PEG_OK,
                 w->error);
    peg_toolset_unref(toolset);
}

static void check_not_started_again(struct world *w)
{
    struct node successor;

    begin(w);
    restart(w, &successor);
    pthread_join(w->thread, NULL);

    CHECK_INT(w->result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_STR(peg__str(w->result->error_name), "outcome_unknown");
    CHECK(strstr(w->result->error_message, "restarted"));
    CHECK(w->result->was_started);
    CHECK_INT(w->node.n_starts, 1);
    CHECK_INT(successor.n_starts, 0);
    node_close(&successor);
}

TEST(a_restarted_gateway_does_not_start_a_call_again)
{
    struct world w;

    world_open(&w, "work", "key-1");
    know_epoch(&w);
    check_not_started_again(&w);
    world_close(&w);
}

TEST(nor_does_it_for_a_client_that_never_received_the_first_one)
{
    struct world w;

    world_open(&w, "work", "key-1");
    check_not_started_again(&w);
    world_close(&w);
}

TEST(a_restarted_gateway_starts_an_idempotent_tool_again)
{
    struct world w;
    struct node successor;

    world_open(&w, "look", "key-1");
    begin(&w);
    restart(&w, &successor);
    CHECK(await_count(&successor.n_starts, 1));
    atomic_store(&successor.is_released, true);
    pthread_join(w.thread, NULL);

    CHECK_INT(w.result->outcome, PEG_REMOTE_RESULT);
    node_close(&successor);
    world_close(&w);
}

/* Nobody provides the tool yet: which says nothing about the first ask. */
TEST(a_refusal_of_the_second_ask_is_no_answer_to_the_first)
{
    struct world w;
    struct node successor;

    world_open(&w, "look", "key-1");
    begin(&w);
    node_open(&successor);
    peg_provider_stop(successor.provider);
    CHECK_STATUS(peg_provider_wait(successor.provider, &w.error), PEG_OK, w.error);
    relay_cut(&w.relay, peg_gateway_address(successor.gateway));
    pthread_join(w.thread, NULL);

    CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_STR(peg__str(w.result->error.code), "E_OUTCOME_UNKNOWN");
    CHECK(strstr(w.result->error_message, "check before you retry: "));
    CHECK(strstr(w.result->error_message, "no healthy providers"));
    node_close(&successor);
    world_close(&w);
}

/* ---- of a call that was started ---------------------------------------------------------------
 */

static void *await_end(void *user)
{
    struct world *w = user;
    peg_remote_result *started = w->result;
    const peg_remote_call call = {.call_id = started->call_id};

    w->result = NULL;
    CHECK_STATUS(peg_client_await(w->client, NULL, &call, -1, &w->result, &w->error), PEG_OK,
                 w->error);
    peg_remote_result_free(started);
    return NULL;
}

static void start_one(struct world *w, const char *key)
{
    world_open(w, "work", key);
    CHECK_STATUS(peg_client_start(w->client, NULL, &w->request, &w->result, &w->error), PEG_OK,
                 w->error);
    CHECK(await_count(&w->node.n_starts, 1));
}

/* The wait begins before the restart, and behind it. */
TEST(an_await_at_a_restarted_gateway_reports_an_unknown_outcome)
{
    for (unsigned n = 0; n < 4; n++) {
        const bool waits_before = n % 2;
        struct node successor;
        struct world w;

        start_one(&w, n < 2 ? "key-1" : NULL);
        if (waits_before)
            CHECK_INT(pthread_create(&w.thread, NULL, await_end, &w), 0);
        restart(&w, &successor);
        if (waits_before)
            pthread_join(w.thread, NULL);
        else
            await_end(&w);

        CHECK_INT(w.result->outcome, PEG_REMOTE_UNKNOWN);
        CHECK(strstr(w.result->error_message, "restarted"));
        CHECK(w.result->was_started);
        node_close(&successor);
        world_close(&w);
    }
}
