/* SPDX-License-Identifier: Apache-2.0 */

/* MCP servers that die, hang, flood or offer too much: bounded, named, and started again. */

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits/mcp.h"
#include "import_world.h"

static const peg_mcp_import_options quick = {PEG_MCP_IMPORT_OPTIONS_INIT, .backoff_ms = 1,
                                             .max_backoff_ms = 20};

static void open_quick(struct import *w, const char *era, const char *word)
{
    CHECK_STATUS(import_try(w, era, word, &quick), PEG_OK, w->error);
}

/* A call that ends the server; then it is there again. */
static void check_lost(const char *era, const char *tool, const char *code)
{
    struct import w;

    open_quick(&w, era, NULL);
    w.timeout_ms = 60000;
    CHECK_FAILURE(&w, tool, "{}", "E_MCP_LOST",
                  "It may have taken effect: check before you retry.");
    import_await(&w, PEG_MCP_CONNECTED, "");
    import_await(&w, PEG_MCP_LOST, code);
    import_await(&w, PEG_MCP_CONNECTED, "");

    CHECK_INT(peg_mcp_client_info(w.client).n_connects, 2);
    CHECK_ANSWER(&w, "echo", "{\"x\":1}", "{\"x\": 1}");
    import_close(&w);
}

TEST(import_starts_a_server_again_that_died_during_a_call)
{
    check_lost("legacy", "die", "E_MCP_START");
    check_lost("modern", "die", "E_MCP_START");
}

TEST(import_starts_a_server_again_that_floods)
{
    check_lost("legacy", "flood", "E_MCP_LIMIT");
}

TEST(import_starts_a_server_again_whose_line_is_too_long)
{
    check_lost("modern", "long", "E_MCP_LIMIT");
}

TEST(import_starts_a_server_again_that_closed_its_output)
{
    check_lost("legacy", "close", "E_MCP_START");
}

/* ---- calls at once ---- */

struct caller {
    struct import *w;
    const char *tool;
    pthread_t thread;
    peg_record *record;
};

static void *make_call(void *user)
{
    struct caller *c = user;

    (void)!peg_call_run(c->w->ctx,
                        &(peg_call_request){PEG_CALL_REQUEST_INIT, .tool = peg_cstr(c->tool)}, NULL,
                        &c->record, NULL);
    return NULL;
}

TEST(import_fails_every_call_that_a_dead_server_had)
{
    enum { N = 8 };
    struct caller callers[N];
    struct import w;

    open_quick(&w, "legacy", NULL);
    for (size_t i = 0; i < N; i++) {
        callers[i] = (struct caller){.w = &w, .tool = "hang"};
        CHECK(pthread_create(&callers[i].thread, NULL, make_call, &callers[i]) == 0);
    }
    while (peg_mcp_client_info(w.client).n_running < N)
        sched_yield();
    import_call(&w, "die", "{}");

    for (size_t i = 0; i < N; i++) {
        CHECK(pthread_join(callers[i].thread, NULL) == 0);
        CHECK(!strncmp(peg_record_cause(callers[i].record), "E_MCP_", 6));
        peg_record_unref(callers[i].record);
    }
    import_close(&w);
}

TEST(import_serves_calls_beside_one_that_hangs)
{
    struct caller caller = {.tool = "hang"};
    struct import w;

    open_quick(&w, "modern", NULL);
    caller.w = &w;
    CHECK(pthread_create(&caller.thread, NULL, make_call, &caller) == 0);
    while (peg_mcp_client_info(w.client).n_running < 1)
        sched_yield();

    for (int i = 0; i < 100; i++)
        CHECK_ANSWER(&w, "echo", "{\"x\":1}", "{\"x\": 1}");
    w.client = peg_mcp_client_free(w.client);
    CHECK(pthread_join(caller.thread, NULL) == 0);
    CHECK_STR(peg_cstr(peg_record_cause(caller.record)), "E_MCP_LOST");
    peg_record_unref(caller.record);
    import_close(&w);
}

/* ---- while it is away ---- */

TEST(import_fails_calls_at_once_while_the_server_is_away)
{
    char folder[] = "/tmp/pegboard-import-XXXXXX";
    char mark[64];
    char block[64];
    char word[96];
    struct import w;

    CHECK(mkdtemp(folder));
    snprintf(mark, sizeof(mark), "%s/mark", folder);
    snprintf(block, sizeof(block), "%s/mark.block", folder);
    snprintf(word, sizeof(word), "die-once=%s", mark);
    open_quick(&w, "legacy", word);
    fclose(fopen(block, "w"));
    import_call(&w, "die", "{}");
    import_await(&w, PEG_MCP_LOST, "E_MCP_START");
    import_await(&w, PEG_MCP_LOST, "E_MCP_START"); /* and again: it cannot start */

    CHECK(!peg_mcp_client_info(w.client).is_connected);
    CHECK(peg_registry_has(w.registry, peg_cstr("echo")));
    CHECK_FAILURE(&w, "echo", "{}", "E_MCP_UNAVAILABLE", "the call was not started");
    unlink(block);
    import_await(&w, PEG_MCP_CONNECTED, "");
    CHECK_ANSWER(&w, "echo", "{}", "{}");
    import_close(&w);
    unlink(mark);
    rmdir(folder);
}

/* ---- lists ---- */

TEST(import_refuses_a_server_with_too_many_tools)
{
    struct import w;

    CHECK_INT(import_try(&w, "legacy", "tools=10000", &quick), PEG_ELIMIT);

    CHECK_STR(peg_cstr(w.error.code), "E_MCP_LIMIT");
    CHECK_STR(peg_cstr(w.error.message),
              "the MCP server offers more than 10000 tools: have it offer fewer");
    CHECK_INT(peg_registry_len(w.registry), 0);
    import_close(&w);
}

VOLUME_TEST(import_takes_as_many_tools_as_it_may)
{
    struct import w;

    open_quick(&w, "legacy", "tools=9977");

    CHECK_INT(peg_registry_len(w.registry), 9977 + IMPORT_TOOLS);
    CHECK_ANSWER(&w, "echo", "{}", "{}");
    import_close(&w);
}

VOLUME_TEST(import_refuses_a_list_without_end)
{
    struct import w;

    CHECK_INT(import_try(&w, "legacy", "endless", &quick), PEG_ELIMIT);

    CHECK_STR(peg_cstr(w.error.message),
              "the MCP server's list of tools has more than 10000 pages");
    import_close(&w);
}

TEST(import_bounds_what_it_reports_of_standard_error)
{
    size_t n = 0;
    struct import w;

    open_quick(&w, "legacy", NULL);
    CHECK_ANSWER(&w, "stderr", "{}", "written");
    w.client = peg_mcp_client_free(w.client);

    for (size_t i = 0; i < w.n_events; i++)
        n += w.events[i].kind == PEG_MCP_STDERR;
    CHECK_INT(n, PEG_LIMIT_MCP_IMPORT_STDERR);
    CHECK(import_saw(&w, PEG_MCP_STDERR, "line 0 ?[1m"));
    import_close(&w);
}

/* A server that never ends on its own. */
TEST(import_ends_a_server_that_does_not_listen)
{
    const char *const command[] = {"sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", NULL};
    peg_mcp_import_options options = quick;
    struct import w;

    import_init(&w);
    options.command = command;
    options.start_ms = 20;
    CHECK_INT(peg_mcp_import(w.registry, &options, &w.client, &w.error), PEG_ETIMEOUT);
    import_close(&w);
}
