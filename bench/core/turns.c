/* SPDX-License-Identifier: Apache-2.0 */

/* Turns: how soon one starts, what one costs, the queries of many artifacts, and memory. */

#include <malloc.h>
#include <stdlib.h>

#include "bench.h"

/* ---- a turn whose model says nothing, and one that calls tools ------------------ */

struct turns {
    peg_runner *runner;
    unsigned n_calls; /* that the model asks for, all in the first iteration */
    size_t heap_at_rest;
    size_t heap_most;
};

static void note_heap(struct turns *t)
{
    const size_t now = mallinfo2().uordblks;

    t->heap_most = now > t->heap_most ? now : t->heap_most;
}

static peg_status infer(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct turns *t = user;
    peg_turn *turn = peg_dispatch_turn(dispatch);
    char id[16];
    peg_status status = PEG_OK;

    if (t->heap_at_rest)
        note_heap(t);
    if (peg_dispatch_iteration(dispatch) > 0)
        return peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_cstr("done"), reterr);
    for (unsigned i = 0; i < t->n_calls && !status; i++) {
        snprintf(id, sizeof(id), "call_%u", i);
        status =
            peg_turn_add_call(turn, peg_cstr(id), peg_cstr("tool_1"), peg_cstr(call_args), reterr);
    }
    return status;
}

static peg_turn *question(void)
{
    peg_turn *turn;

    must(peg_turn_new(&turn, NULL), "turn");
    must(peg_turn_add_text(turn, PEG_BLOCK_SYSTEM, peg_cstr("You find things."), NULL), "turn");
    must(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("What is the weather?"), NULL), "turn");
    return turn;
}

static void run_once(void *user)
{
    struct turns *t = user;
    peg_turn *turn = question();
    peg_outcome outcome;

    must(peg_runner_run(t->runner, NULL, turn, &outcome, NULL), "run");
    if (outcome.end != PEG_END_ACK)
        must(PEG_EHOST, outcome.error.message);
    if (t->heap_at_rest)
        note_heap(t);
    peg_turn_free(turn);
}

/* From the runner's first instruction to the model's: an abort there ends the turn. */
static peg_status first_word(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    double *at = user;

    (void)reterr;
    *at = now_ns();
    peg_dispatch_abort(dispatch, "measured");
    return PEG_OK;
}

static double time_to_model(const struct bench *bench, peg_tool **tools, size_t n)
{
    const double end = now_ns() + bench->seconds * 1e9;
    double at = 0;
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = tools, .n_tools = n,
                                      .loop.engine = {first_word, &at}};
    peg_runner *runner;
    double best = 1e300;

    must(peg_runner_new(&config, &runner, NULL), "runner");
    do {
        peg_turn *turn = question();
        const double start = now_ns();

        must(peg_runner_run(runner, NULL, turn, NULL, NULL), "run");
        best = at - start < best ? at - start : best;
        peg_turn_free(turn);
    } while (now_ns() < end);
    peg_runner_unref(runner);
    return best;
}

static void measure_turns(const struct bench *bench)
{
    enum { N_TOOLS = 1000 };
    peg_tool **tools = make_tools(N_TOOLS);
    struct turns t = {.n_calls = 0};
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = tools, .n_tools = N_TOOLS,
                                      .loop.engine = {infer, &t}};

    printf("turns on 1,000 baseline tools\n");
    must(peg_runner_new(&config, &t.runner, NULL), "runner");
    report(bench, "turn", "from run to the model", time_to_model(bench, tools, N_TOOLS) / 1e3,
           "us");
    report(bench, "turn", "whole turn without a call", fastest(bench, 100, run_once, &t) / 1e3,
           "us");
    t.n_calls = 3;
    report(bench, "turn", "whole turn with 3 calls (queries forged)",
           fastest(bench, 20, run_once, &t) / 1e3, "us");
    malloc_trim(0);
    t.heap_at_rest = mallinfo2().uordblks;
    t.heap_most = 0;
    run_once(&t);
    report(bench, "turn", "peak heap of a turn with 3 calls",
           (double)(t.heap_most - t.heap_at_rest) / 1024, "KiB");
    peg_runner_unref(t.runner);
    free_tools(tools, N_TOOLS);
}

/* ---- forging -------------------------------------------------------------------- */

/* Iterations of a turn that holds many artifacts. The model asks for an unknown tool each time, so
 * that nothing changes, or adds one artifact more. */
struct forging {
    double first_ns; /* iteration 0: all queries are made */
    double same_ns;  /* fastest iteration in which nothing changed */
    double more_ns;  /* fastest in which one artifact came */
    double last;
    bool adds;
};

static peg_status add_artifact(peg_turn *turn, unsigned i)
{
    char id[32];
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_block *block = NULL;
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER, .tier = PEG_TIER_FIRST_PARTY};
    peg_status status = peg_reader_from_bytes(peg_cstr("alpha\nbeta\n"), &reader, NULL);

    if (!status)
        status = peg_artifact_new(NULL, reader, &artifact, NULL);
    snprintf(id, sizeof(id), "doc_%u", i);
    def.id = peg_cstr(id);
    def.type = peg_cstr("retrieved");
    def.artifact = artifact;
    if (!status)
        status = peg_block_new(&def, &block, NULL);
    if (!status)
        status = peg_turn_add(turn, block, NULL);
    peg_block_unref(block);
    peg_artifact_unref(artifact);
    peg_reader_unref(reader);
    return status;
}

/* Forging is what happens between the start of an iteration and its first middleware. */
static void hear(const peg_event *event, void *user)
{
    struct forging *f = user;

    if (event->kind == PEG_EVENT_ITERATION_START)
        f->last = now_ns();
}

static peg_status forged(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                         peg_error *reterr)
{
    struct forging *f = user;
    const double took = now_ns() - f->last;
    const unsigned i = peg_dispatch_iteration(dispatch);
    double *to = i == 0 ? &f->first_ns : f->adds ? &f->more_ns : &f->same_ns;

    *to = took < *to ? took : *to;
    return peg_middleware_run_next(next, reterr);
}

static peg_status go_on(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct forging *f = user;
    const unsigned i = peg_dispatch_iteration(dispatch);

    if (i == 10)
        return peg_dispatch_ack(dispatch, reterr);
    return f->adds ? add_artifact(peg_dispatch_turn(dispatch), 100000 + i) : PEG_OK;
}

static void forge_once(struct forging *f, unsigned n_artifacts)
{
    const peg_dispatch_middleware step = {.run = forged, .user = f};
    const peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .on_event = hear,
                                      .on_event_user = f,     .loop.executor = {go_on, f},
                                      .loop.input = &step,    .loop.n_input = 1};
    peg_runner *runner;
    peg_turn *turn = question();

    for (unsigned i = 0; i < n_artifacts; i++)
        must(add_artifact(turn, i), "artifact");
    must(peg_runner_new(&config, &runner, NULL), "runner");
    must(peg_runner_run(runner, NULL, turn, NULL, NULL), "run");
    peg_runner_unref(runner);
    peg_turn_free(turn);
}

static void measure_forging(const struct bench *bench, unsigned n)
{
    const double end = now_ns() + bench->seconds * 1e9;
    struct forging f = {1e300, 1e300, 1e300, 0, false};
    char name[64];

    do {
        f.adds = !f.adds;
        forge_once(&f, n);
    } while (now_ns() < end || f.adds);
    snprintf(name, sizeof(name), "queries for %u artifacts, from nothing", n);
    report(bench, "forge", name, f.first_ns / 1e3, "us");
    snprintf(name, sizeof(name), "one artifact more, %u there", n);
    report(bench, "forge", name, f.more_ns / 1e3, "us");
    snprintf(name, sizeof(name), "nothing changed, %u there", n);
    report(bench, "forge", name, f.same_ns / 1e3, "us");
}

void bench_turns(const struct bench *bench)
{
    measure_turns(bench);
    printf("forging\n");
    measure_forging(bench, 10);
    measure_forging(bench, 1000);
}
