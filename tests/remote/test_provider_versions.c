/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: an upgrade of a toolset while it is used. Two providers have different versions of it, and
 * what only the new one takes is run by that one, whoever is asked first. */

#include "t.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/text/str.h"
#include "pegboard/client.h"
#include "pegboard/gateway.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"

enum { N_CALLS = 40, N_OLD = 10 };

#define NAME "\"name\":{\"type\":\"string\"}"
#define LANG "\"lang\":{\"type\":\"string\"}"
#define OBJECT(members) "{\"type\":\"object\",\"properties\":{" members "}}"

struct side {
    peg_registry *tools;
    peg_provider *provider;
    atomic_uint n_attached;
};

struct world {
    char log[64];
    peg_gateway *gateway;
    struct side old[N_OLD];
    unsigned n_old;
    struct side new;
    peg_client *client;
    peg_error error;
};

static void greet(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    peg_call_reply(call, peg__str(user));
}

static void add(struct side *side, const char *name, const char *schema, const char *answer)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,      .name = name, .description = "greets",
                              .input_schema = schema, .run = greet, .user = peg__unconst(answer)};
    peg_error error;
    peg_tool *tool;

    CHECK_STATUS(peg_tool_new(&def, &tool, &error), PEG_OK, error);
    CHECK_STATUS(peg_registry_register(side->tools, tool, false, &error), PEG_OK, error);
    peg_tool_unref(tool);
}

static void on_event(const peg_provider_event *event, void *user)
{
    struct side *side = user;

    atomic_fetch_add(&side->n_attached, event->kind == PEG_PROVIDER_ATTACHED);
}

static void provide(struct world *w, struct side *side, bool is_new)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "greetings",
                                          .address = peg_gateway_address(w->gateway),
                                          .on_event = on_event, .user = side};

    CHECK_STATUS(peg_registry_new(NULL, 0, &side->tools, &w->error), PEG_OK, w->error);
    add(side, "hello", is_new ? OBJECT(NAME "," LANG) : OBJECT(NAME), is_new ? "new" : "old");
    if (is_new)
        add(side, "bye", OBJECT(NAME), "new");
    CHECK_STATUS(peg_provider_new(side->tools, &options, &side->provider, &w->error), PEG_OK,
                 w->error);
    CHECK_STATUS(peg_provider_start(side->provider, &w->error), PEG_OK, w->error);
    while (!atomic_load(&side->n_attached))
        nanosleep(&moment, NULL);
}

static void leave(struct side *side)
{
    peg_error error;

    peg_provider_stop(side->provider);
    CHECK_STATUS(peg_provider_wait(side->provider, &error), PEG_OK, error);
    peg_provider_free(side->provider);
    peg_registry_unref(side->tools);
}

static void world_open(struct world *w, unsigned n_old)
{
    peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .log_level = PEG_LOG_INFO,
                                 .drain_ms = 60000};
    peg_client_options options = {PEG_CLIENT_OPTIONS_INIT};

    memset(w, 0, sizeof(*w));
    snprintf(w->log, sizeof(w->log), P_tmpdir "/versions-XXXXXX");
    close(mkstemp(w->log));
    config.log_file = w->log;
    CHECK_STATUS(peg_gateway_new(&config, &w->gateway, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_gateway_listen(w->gateway, "127.0.0.1:0", &w->error), PEG_OK, w->error);
    options.address = peg_gateway_address(w->gateway);
    CHECK_STATUS(peg_client_new(&options, &w->client, &w->error), PEG_OK, w->error);
    for (w->n_old = 0; w->n_old < n_old; w->n_old++)
        provide(w, &w->old[w->n_old], false);
    provide(w, &w->new, true);
}

static void world_close(struct world *w)
{
    for (unsigned i = 0; i < w->n_old; i++)
        leave(&w->old[i]);
    peg_client_unref(w->client);
    CHECK_STATUS(peg_gateway_drain(w->gateway, &w->error), PEG_OK, w->error);
    peg_gateway_free(w->gateway);
    unlink(w->log);
}

static peg_remote_result *call(struct world *w, const char *tool, const char *args)
{
    const peg_remote_request request = {PEG_REMOTE_REQUEST_INIT, .toolset = "greetings",
                                        .tool = tool, .args = peg__str(args)};
    peg_remote_result *result = NULL;

    CHECK_STATUS(peg_client_call(w->client, NULL, &request, &result, &w->error), PEG_OK, w->error);
    return result;
}

static void check_new(struct world *w, const char *tool, const char *args)
{
    peg_remote_result *result = call(w, tool, args);

    if (result->outcome != PEG_REMOTE_RESULT)
        T_FAIL("%s: %s: %s", tool, result->error_name, result->error_message);
    CHECK_STR(result->json, "\"new\"");
    peg_remote_result_free(result);
}

TEST(what_only_the_new_version_takes_goes_to_the_new_provider)
{
    struct world w;

    world_open(&w, N_OLD);
    for (unsigned i = 0; i < N_CALLS; i++) {
        check_new(&w, "bye", "{\"name\":\"x\"}");
        check_new(&w, "hello", "{\"name\":\"x\",\"lang\":\"de\"}");
    }
    leave(&w.new);
    world_close(&w);
}

TEST(a_call_that_only_old_versions_are_left_for_says_so)
{
    struct world w;
    peg_remote_result *result;

    world_open(&w, 2);
    leave(&w.new);
    result = call(&w, "bye", "{\"name\":\"x\"}");
    CHECK_INT(result->outcome, PEG_REMOTE_REFUSED);
    CHECK_STR(peg__str(result->error_name), "service_unavailable");
    CHECK(strstr(result->error_message, "other versions of it than the one that is registered"));
    CHECK(!result->was_started);
    peg_remote_result_free(result);

    result = call(&w, "hello", "{\"name\":\"x\"}");
    CHECK_INT(result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(result->json, "\"old\"");
    peg_remote_result_free(result);
    world_close(&w);
}

static unsigned count_lines(const char *path, const char *words)
{
    char line[4096];
    FILE *file = fopen(path, "re");
    unsigned n = 0;

    CHECK(file);
    while (fgets(line, sizeof(line), file))
        n += strstr(line, words) != NULL;
    fclose(file);
    return n;
}

TEST(a_registration_that_comes_with_hello_is_in_the_log)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct world w;

    world_open(&w, 2);
    while (!count_lines(w.log, "via=attach replaced=yes"))
        nanosleep(&moment, NULL);

    CHECK_INT(count_lines(w.log, "event=register toolset=greetings"), 2);
    CHECK_INT(count_lines(w.log, "via=attach replaced=no"), 1);
    CHECK_INT(count_lines(w.log, "via=attach replaced=yes"), 1);
    leave(&w.new);
    world_close(&w);
}

/* Asks until the gateway has heard of the change; "" is success. Meanwhile the provider gives
 * calls of a tool back that it has no more. */
static void await_answer(struct world *w, const char *tool, const char *error_name)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    bool is_there = false;

    while (!is_there) {
        peg_remote_result *result = call(w, tool, "{}");

        is_there = strcmp(result->error_name, error_name) == 0;
        peg_remote_result_free(result);
        nanosleep(&moment, NULL);
    }
}

/* A tool of the registry that a program changes while it provides it. */
TEST(a_tool_that_comes_or_goes_later_is_called_or_not_found)
{
    struct world w;

    world_open(&w, 0);
    add(&w.new, "wave", OBJECT(NAME), "waved");
    await_answer(&w, "wave", "");
    CHECK_STATUS(peg_registry_unregister(w.new.tools, peg_cstr("wave"), &w.error), PEG_OK, w.error);
    await_answer(&w, "wave", "not_found");
    CHECK_INT(atomic_load(&w.new.n_attached), 1); /* on the stream that it had */
    leave(&w.new);
    world_close(&w);
}

/* What the gateway says it offers it runs: no call of a tool that is listed is turned away. */
TEST(a_provider_whose_tools_change_all_the_time_runs_every_call_of_the_others)
{
    struct world w;

    world_open(&w, 0);
    for (unsigned i = 0; i < N_CALLS; i++) {
        if (i % 2 == 0)
            add(&w.new, "wave", OBJECT(NAME), "waved");
        else
            CHECK_STATUS(peg_registry_unregister(w.new.tools, peg_cstr("wave"), &w.error), PEG_OK,
                         w.error);
        check_new(&w, "bye", "{\"name\":\"x\"}");
    }
    leave(&w.new);
    world_close(&w);
}
