/* SPDX-License-Identifier: Apache-2.0 */

/* Many turns on one runner at once. Run under ThreadSanitizer. */

#include <pthread.h>
#include <stdatomic.h>

#include "fixture.h"
#include "pegboard/pool.h"

enum { N_THREADS = 8, N_TURNS = 20 };

static atomic_uint n_calls;

static void count(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    atomic_fetch_add(&n_calls, 1);
    peg_call_reply_json(call, args);
}

/* Each turn: call count twice with its own number, query the first result, then finish. */
static peg_status infer(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    const peg_str question = peg_block_text(peg_turn_at(turn, 0));
    char args[64];
    peg_status status;

    (void)user;
    snprintf(args, sizeof(args), "{\"q\":\"%.*s\"}", PEG_ARG(question));
    switch (peg_dispatch_iteration(dispatch)) {
    case 0:
        status = peg_turn_add_call(turn, peg_cstr("c"), peg_cstr("count"), peg_cstr(args), reterr);
        return status ? status
                      : peg_turn_add_call(turn, peg_cstr("c"), peg_cstr("count"), peg_cstr(args),
                                          reterr);
    case 1:
        return peg_turn_add_call(turn, peg_cstr("q"), peg_cstr("artifact_cat"),
                                 peg_cstr("{\"callId\":\"c\"}"), reterr);
    default:
        return peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_cstr("done"), reterr);
    }
}

/* Registers a tool of its own under a name that every turn uses, and takes another away: if turns
 * shared a registry, this would clash. */
static peg_status edit_tools(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                             peg_error *reterr)
{
    const peg_tool_def def = tool_def("mine", echo, NULL);
    peg_registry *registry = peg_turn_scope_registry(scope);
    peg_tool *tool = NULL;
    peg_status status = peg_tool_new(&def, &tool, reterr);

    (void)user;
    if (!status && !peg_registry_has(registry, peg_cstr("doomed")))
        T_FAIL("another turn's edit is seen");
    if (!status)
        status = peg_registry_register(registry, tool, false, reterr);
    if (!status)
        status = peg_registry_unregister(registry, peg_cstr("doomed"), reterr);
    peg_tool_unref(tool);
    return status ? status : peg_middleware_run_next(next, reterr);
}

struct worker {
    pthread_t thread;
    peg_runner *runner;
    unsigned number;
    unsigned n_good;
};

static bool run_turn(struct worker *w, unsigned i)
{
    char question[32];
    peg_turn *turn = NULL;
    peg_outcome outcome;
    bool is_good;

    snprintf(question, sizeof(question), "%u-%u", w->number, i);
    if (peg_turn_new(&turn, NULL) ||
        peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr(question), NULL) ||
        peg_runner_run(w->runner, NULL, turn, &outcome, NULL))
        return false;
    is_good = outcome.end == PEG_END_ACK && outcome.iterations == 3 && peg_turn_len(turn) == 8 &&
              memmem(text_of(result_at(turn, 2)).ptr, text_of(result_at(turn, 2)).len, question,
                     strlen(question)) != NULL;
    peg_turn_free(turn);
    return is_good;
}

static void *work(void *user)
{
    struct worker *w = user;

    for (unsigned i = 0; i < N_TURNS; i++)
        w->n_good += run_turn(w, i);
    return NULL;
}

static void run_all(const peg_runner_config *config)
{
    struct worker workers[N_THREADS];
    peg_runner *runner = NULL;

    atomic_store(&n_calls, 0);
    CHECK_INT(peg_runner_new(config, &runner, NULL), PEG_OK);
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){.runner = runner, .number = i};
        CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].n_good, N_TURNS);
    }
    CHECK_INT(atomic_load(&n_calls), 2 * N_THREADS * N_TURNS);
    peg_runner_unref(runner);
}

static void make_tools(peg_tool *tools[2])
{
    const peg_tool_def counting = tool_def("count", count, NULL);
    const peg_tool_def doomed = tool_def("doomed", echo, NULL);

    CHECK_INT(peg_tool_new(&counting, &tools[0], NULL), PEG_OK);
    CHECK_INT(peg_tool_new(&doomed, &tools[1], NULL), PEG_OK);
}

/* T63 */
TEST(eight_threads_run_turns_on_one_runner_and_see_nothing_of_each_other)
{
    const peg_turn_middleware edit = {.run = edit_tools};
    peg_tool *tools[2];
    const peg_runner_config config = {
        PEG_RUNNER_CONFIG_INIT, .tools = tools,          .n_tools = 2,         .input = &edit,
        .n_input = 1,           .loop.engine.fn = infer, .loop.query_from = -1};

    make_tools(tools);
    run_all(&config);
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
}

TEST(eight_threads_run_turns_whose_calls_share_a_pool)
{
    const peg_turn_middleware edit = {.run = edit_tools};
    peg_tool *tools[2];
    peg_pool *pool = NULL;
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = tools, .n_tools = 2,
                                .input = &edit,         .n_input = 1,   .loop.engine.fn = infer,
                                .loop.query_from = -1};

    CHECK_INT(peg_pool_new(NULL, &pool, NULL), PEG_OK);
    config.loop.call.pool = pool;
    config.loop.call.settings.max_parallel = 2;
    make_tools(tools);
    run_all(&config);
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
    peg_pool_unref(pool);
}
