/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runner. Read it from the bottom up:
 *
 *   peg_runner_run -> run_turn -> input pipeline, dispatch_turn, output pipeline
 *
 * A run has its own context, registry and token; of the runner it shares only what never changes.
 */

#include <stdatomic.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "core/registry/registry.h"
#include "pegboard/runner.h"
#include "turn/loop/loop.h"
#include "turn/store/store.h"
#include "turn/turn.h"

/* All complaints, "; " between them. Those that do not fit into an error are counted. */
struct complaints {
    char text[290];
    size_t len;
    size_t n_more;
};

static void add_complaint(struct complaints *all, const char *what)
{
    const size_t capacity = sizeof(all->text) - all->len;
    const int len = snprintf(all->text + all->len, capacity, "%s%s", all->len ? "; " : "", what);

    if (len >= 0 && (size_t)len < capacity) {
        all->len += (size_t)len;
        return;
    }
    all->text[all->len] = '\0';
    all->n_more++;
}

static void check_steps(struct complaints *all, const char *name, bool has_array, size_t n)
{
    char message[96];

    if (n > PEG_LIMIT_MIDDLEWARES) {
        snprintf(message, sizeof(message), "%s has more than %d middlewares", name,
                 PEG_LIMIT_MIDDLEWARES);
        add_complaint(all, message);
    }
    if (n && !has_array) {
        snprintf(message, sizeof(message), "%s is NULL but n_%s is not 0", name, name);
        add_complaint(all, message);
    }
}

static void check_step(struct complaints *all, const char *name, size_t i, bool has_run)
{
    char message[64];

    if (has_run)
        return;
    snprintf(message, sizeof(message), "%s[%zu].run is missing", name, i);
    add_complaint(all, message);
}

static void check_loop(struct complaints *all, const peg_dispatch_options *loop)
{
    peg_error error;

    if (!loop->engine.fn && !loop->executor.fn)
        add_complaint(all, "loop.engine or loop.executor is missing");
    if (loop->engine.fn && loop->executor.fn)
        add_complaint(all, "loop.engine and loop.executor are both set");
    if (loop->call.settings.max_parallel > 1 && !loop->call.pool)
        add_complaint(all, "loop.call.settings.max_parallel needs loop.call.pool");
    if (loop->call.settings.max_parallel > PEG_LIMIT_POOL_THREADS_MAX)
        add_complaint(all, "loop.call.settings.max_parallel is above 256");
    if ((unsigned)loop->auto_ack > PEG_AUTO_ACK_OFF)
        add_complaint(all, "loop.auto_ack is no peg_auto_ack");
    if ((unsigned)loop->advertise > PEG_ADVERTISE_STRICT)
        add_complaint(all, "loop.advertise is no peg_advertise");
    if ((unsigned)loop->pending > PEG_PENDING_UNKNOWN)
        add_complaint(all, "loop.pending is no peg_pending_policy");
    if (loop->tools && peg__tool_config_check(loop->tools, &error))
        add_complaint(all, error.message);
    if (peg__storage_check(loop->storage, &error))
        add_complaint(all, error.message);
    check_steps(all, "loop.input", loop->input != NULL, loop->n_input);
    check_steps(all, "loop.output", loop->output != NULL, loop->n_output);
    for (size_t i = 0; loop->input && i < loop->n_input; i++)
        check_step(all, "loop.input", i, loop->input[i].run != NULL);
    for (size_t i = 0; loop->output && i < loop->n_output; i++)
        check_step(all, "loop.output", i, loop->output[i].run != NULL);
}

static peg_status report_complaints(const struct complaints *all, peg_error *reterr)
{
    char more[40] = "";

    if (!all->len)
        return PEG_OK;
    if (all->n_more)
        snprintf(more, sizeof(more), "; and %zu more", all->n_more);
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_TURN_RUNNER_CONFIG", "%s%s", all->text, more);
}

static peg_status check_options(const peg_dispatch_options *loop, peg_error *reterr)
{
    struct complaints all = {.len = 0};

    if (!loop)
        add_complaint(&all, "loop is NULL");
    else
        check_loop(&all, loop);
    return report_complaints(&all, reterr);
}

static void check_tools(struct complaints *all, const peg_runner_config *config)
{
    char message[64];

    if (config->n_tools && !config->tools)
        add_complaint(all, "tools is NULL but n_tools is not 0");
    if (config->n_tools && config->registry)
        add_complaint(all, "tools and registry are both set");
    for (size_t i = 0; config->tools && i < config->n_tools; i++) {
        if (config->tools[i])
            continue;
        snprintf(message, sizeof(message), "tools[%zu] is NULL", i);
        add_complaint(all, message);
    }
}

static peg_status check_runner_config(const peg_runner_config *config, peg_error *reterr)
{
    struct complaints all = {.len = 0};

    if (!config)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_TURN_RUNNER_CONFIG", "config is NULL");
    check_tools(&all, config);
    check_loop(&all, &config->loop);
    check_steps(&all, "input", config->input != NULL, config->n_input);
    check_steps(&all, "output", config->output != NULL, config->n_output);
    for (size_t i = 0; config->input && i < config->n_input; i++)
        check_step(&all, "input", i, config->input[i].run != NULL);
    for (size_t i = 0; config->output && i < config->n_output; i++)
        check_step(&all, "output", i, config->output[i].run != NULL);
    return report_complaints(&all, reterr);
}

/* Shared immutable. */
struct peg_runner {
    atomic_uint n_refs;
    struct peg__arena arena; /* the arrays of the configuration */
    peg_runner_config config;
    peg_storage storage;    /* what config.loop.storage points to, if anything */
    peg_run_hooks hooks;    /* what config.loop.call.hooks points to, if anything */
    peg_tool_config tools;  /* what config.loop.tools points to, if anything */
    peg_registry *baseline; /* never changed; each run starts with a copy */
};

/* Lives on the stack of peg_runner_run(). */
struct peg_turn_scope {
    peg_runner *runner;
    peg_ctx *ctx;
    peg_cancel *cancel;
    peg_registry *registry;
    peg_turn *turn; /* the caller's */
    /* The attachment of the turn before: it may be the turn of a dispatch that goes on. */
    const peg_storage *outer_storage;
    peg_ctx *outer_ctx;
    char id[PEG_UUID_TEXT];
    struct peg_middleware_next nexts[PEG_LIMIT_MIDDLEWARES];
};

/* ---- making a runner ------------------------------------------------------------ */

static peg_status copy_array(peg_runner *runner, const void *items, size_t size, const void **ret)
{
    void *copy;

    *ret = NULL;
    if (!size)
        return PEG_OK;
    copy = peg__arena_alloc(&runner->arena, size);
    if (!copy)
        return PEG_ENOMEM;
    memcpy(copy, items, size);
    *ret = copy;
    return PEG_OK;
}

static peg_status copy_config(peg_runner *runner, const peg_runner_config *config)
{
    peg_runner_config *own = &runner->config;
    const void *arrays[4];

    *own = *config;
    own->tools = NULL; /* the baseline has them */
    own->n_tools = 0;
    own->registry = NULL;
    if (copy_array(runner, config->input, config->n_input * sizeof(*config->input), &arrays[0]) ||
        copy_array(runner, config->output, config->n_output * sizeof(*config->output),
                   &arrays[1]) ||
        copy_array(runner, config->loop.input, config->loop.n_input * sizeof(*config->loop.input),
                   &arrays[2]) ||
        copy_array(runner, config->loop.output,
                   config->loop.n_output * sizeof(*config->loop.output), &arrays[3]))
        return PEG_ENOMEM;
    own->input = arrays[0];
    own->output = arrays[1];
    own->loop.input = arrays[2];
    own->loop.output = arrays[3];
    if (config->loop.storage) {
        runner->storage = *config->loop.storage;
        own->loop.storage = &runner->storage;
    }
    if (config->loop.call.hooks) {
        runner->hooks = *config->loop.call.hooks;
        own->loop.call.hooks = &runner->hooks;
    }
    if (config->loop.tools) {
        runner->tools = *config->loop.tools;
        own->loop.tools = &runner->tools;
    }
    return PEG_OK;
}

static void hold_shared(const peg_dispatch_options *loop)
{
    if (loop->call.pool)
        peg_pool_ref(loop->call.pool);
    if (loop->call.spool)
        peg_spool_store_ref(loop->call.spool);
    if (loop->steps)
        peg_stepper_ref(loop->steps);
}

static peg_status fill_runner(peg_runner *runner, const peg_runner_config *config,
                              peg_error *reterr)
{
    if (copy_config(runner, config))
        return peg__fail_nomem(reterr);
    if (config->registry)
        return peg_registry_copy(config->registry, &runner->baseline, reterr);
    if (!config->n_tools)
        return peg__registry_placeholder(&runner->baseline, reterr);
    return peg_registry_new(config->tools, config->n_tools, &runner->baseline, reterr);
}

static const struct peg__layout call_layout = PEG__LAYOUT(peg_run_options, PEG_RUN_OPTIONS_INIT);
static const struct peg__layout dispatch_layout =
    PEG__LAYOUT_AROUND(peg_dispatch_options, call, &call_layout, PEG_DISPATCH_OPTIONS_INIT);
static const struct peg__layout runner_layout =
    PEG__LAYOUT_AROUND(peg_runner_config, loop, &dispatch_layout, PEG_RUNNER_CONFIG_INIT);

peg_status peg_runner_new(const peg_runner_config *config, peg_runner **ret_runner,
                          peg_error *reterr)
{
    PEG__READ_AS_OR_RETURN(config, &runner_layout, reterr);
    peg_runner *runner;
    peg_status status = check_runner_config(config, reterr);

    if (status)
        return status;
    runner = peg__alloc_zero(1, sizeof(*runner));
    if (!runner)
        return peg__fail_nomem(reterr);
    atomic_init(&runner->n_refs, 1);
    status = fill_runner(runner, config, reterr);
    if (status) {
        peg__arena_free(&runner->arena);
        peg__free(runner);
        return status;
    }
    hold_shared(&runner->config.loop);
    *ret_runner = runner;
    return PEG_OK;
}

peg_runner *peg_runner_ref(peg_runner *runner)
{
    atomic_fetch_add_explicit(&runner->n_refs, 1, memory_order_relaxed);
    return runner;
}

peg_runner *peg_runner_unref(peg_runner *runner)
{
    if (!runner || atomic_fetch_sub_explicit(&runner->n_refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    peg_registry_unref(runner->baseline);
    peg_pool_unref(runner->config.loop.call.pool);
    peg_spool_store_unref(runner->config.loop.call.spool);
    peg_stepper_unref(runner->config.loop.steps);
    peg__arena_free(&runner->arena);
    peg__free(runner);
    return NULL;
}

/* ---- the pipelines -------------------------------------------------------------- */

struct turn_pipeline {
    peg_turn_scope *scope;
    const peg_turn_middleware *steps;
};

static peg_status run_step(void *owner, size_t i, peg_middleware_next *next, peg_error *reterr)
{
    struct turn_pipeline *pipeline = owner;
    const peg_turn_middleware *step = &pipeline->steps[i];

    return step->run(pipeline->scope, next, step->user, reterr);
}

static bool is_aborted(const peg_turn_scope *scope)
{
    return peg_ctx_check(scope->ctx, NULL) != PEG_OK;
}

static bool is_pipeline_stopped(void *owner)
{
    return is_aborted(((struct turn_pipeline *)owner)->scope);
}

static peg_status run_pipeline(peg_turn_scope *scope, bool is_input, peg_error *reterr)
{
    const peg_runner_config *config = &scope->runner->config;
    struct turn_pipeline owner = {scope, is_input ? config->input : config->output};
    const struct peg__pipeline pipeline = {.n_steps = is_input ? config->n_input : config->n_output,
                                           .nexts = scope->nexts,
                                           .run_step = run_step,
                                           .is_stopped = is_pipeline_stopped,
                                           .owner = &owner};
    peg_error why;
    const enum peg__pipeline_end end = peg__pipeline_run(&pipeline, &why);

    return peg__pipeline_status(end, is_input ? "turn-input" : "turn-output",
                                is_input ? "E_INPUT_PIPELINE_ERROR" : "E_OUTPUT_PIPELINE_ERROR",
                                &why, reterr);
}

/* ---- a run ---------------------------------------------------------------------- */

static void fail_outcome(peg_turn_scope *scope, peg_outcome *outcome, const peg_error *error)
{
    outcome->end = PEG_END_NACK;
    outcome->error = *error;
    peg__emit_error(scope->ctx, PEG_EVENT_ERROR, &outcome->error);
}

/* The dispatch emits its own error, unless it could not even start. */
static bool dispatch_turn(peg_turn_scope *scope, peg_outcome *outcome)
{
    peg_error error;
    const peg_status status = peg__dispatch_run(scope->ctx, &scope->runner->config.loop,
                                                scope->turn, scope->registry, outcome, &error);

    if (status)
        fail_outcome(scope, outcome, &error);
    return outcome->end != PEG_END_NACK;
}

/* True if it was aborted; then the outcome has the reason. */
static bool stops_here(const peg_turn_scope *scope, peg_outcome *outcome)
{
    if (!is_aborted(scope))
        return false;
    outcome->end = PEG_END_ABORTED;
    peg__ctx_why_stopped(scope->ctx, &outcome->error);
    return true;
}

static void run_parts(peg_turn_scope *scope, peg_outcome *outcome)
{
    peg_error error;

    if (run_pipeline(scope, true, &error)) {
        fail_outcome(scope, outcome, &error);
        return;
    }
    if (stops_here(scope, outcome) || !dispatch_turn(scope, outcome))
        return;
    /* A dispatch that was aborted by itself does not abort its turn. In a turn that is aborted the
     * output pipeline is passed over; without one nothing is left out, and what was acked stays so.
     */
    if (run_pipeline(scope, false, &error))
        fail_outcome(scope, outcome, &error);
    else if (scope->runner->config.n_output)
        stops_here(scope, outcome);
}

/* It ended well: the snapshot function gets all of it. */
static void keep_final(peg_turn_scope *scope, peg_outcome *outcome)
{
    peg_error error;

    if (outcome->end == PEG_END_ACK && peg__snapshot(scope->ctx, &scope->runner->config.loop,
                                                     scope->turn, PEG_PHASE_FINAL, &error))
        fail_outcome(scope, outcome, &error);
}

static peg_outcome run_turn(peg_turn_scope *scope)
{
    const peg_clock *clock = peg_ctx_clock(scope->ctx);
    const int64_t started_ns = peg_clock_mono_ns(clock);
    peg_outcome outcome = {.error = {.code = "", .cause = ""}};
    peg_event event = {.kind = PEG_EVENT_TURN_START};

    event.u.span.started_ms = peg_clock_now_ms(clock);
    peg_ctx_emit(scope->ctx, &event);

    run_parts(scope, &outcome);
    keep_final(scope, &outcome);

    event.kind = PEG_EVENT_TURN_END;
    event.error = outcome.end == PEG_END_ACK ? NULL : &outcome.error;
    event.u.span.end = outcome.end;
    event.u.span.iterations = outcome.iterations;
    event.u.span.ended_ms = peg_clock_now_ms(clock);
    event.u.span.duration_ns = peg_clock_mono_ns(clock) - started_ns;
    peg_ctx_emit(scope->ctx, &event);
    return outcome;
}

/* ---- setting up ----------------------------------------------------------------- */

/* *ctx is ours: it gives way to what was made from it. */
static peg_status step_to(peg_ctx **ctx, peg_status status, peg_ctx *next)
{
    if (!status) {
        peg_ctx_unref(*ctx);
        *ctx = next;
    }
    return status;
}

static peg_status add_listeners(const peg_runner_config *config, peg_ctx **ctx, peg_error *reterr)
{
    peg_ctx *next = NULL;
    peg_status status = PEG_OK;

    /* A run in a run of the same runner: it hears already. */
    if (config->on_event && !peg__ctx_notifies(*ctx, config->on_event, config->on_event_user)) {
        status = peg_ctx_with_events(*ctx, config->on_event, config->on_event_user, &next, reterr);
        status = step_to(ctx, status, next);
    }
    if (!status && config->on_gate) {
        status = peg_ctx_with_gates(*ctx, config->on_gate, config->on_gate_user, &next, reterr);
        status = step_to(ctx, status, next);
    }
    return status;
}

static peg_status make_context(peg_turn_scope *scope, peg_ctx *parent, peg_error *reterr)
{
    const peg_ids ids = {.turn_id = scope->id, .iteration = -1};
    peg_ctx *next = NULL;
    peg_status status;

    if (parent)
        scope->ctx = peg_ctx_ref(parent);
    else if ((status = peg_ctx_new(&scope->ctx, reterr)))
        return status;
    if ((status = add_listeners(&scope->runner->config, &scope->ctx, reterr)))
        return status;
    status = peg_ctx_with_cancel(scope->ctx, &next, &scope->cancel, reterr);
    if (step_to(&scope->ctx, status, next))
        return status;
    status = peg_ctx_with_ids(scope->ctx, &ids, &next, reterr);
    if (step_to(&scope->ctx, status, next))
        return status;
    status = peg_ctx_with_registry(scope->ctx, scope->registry, &next, reterr);
    return step_to(&scope->ctx, status, next);
}

static peg_status set_up(peg_turn_scope *scope, peg_ctx *parent, peg_error *reterr)
{
    peg_status status;

    if (!peg__uuid7(peg_clock_system(), scope->id))
        return peg__fail_no_randomness(reterr);
    status = peg_registry_copy(scope->runner->baseline, &scope->registry, reterr);
    if (!status)
        status = make_context(scope, parent, reterr);
    if (!status)
        peg__turn_attach(scope->turn, scope->runner->config.loop.storage, scope->ctx);
    return status;
}

static void tear_down(peg_turn_scope *scope)
{
    peg__turn_attach(scope->turn, scope->outer_storage, scope->outer_ctx);
    peg_ctx_unref(scope->ctx);
    peg_cancel_unref(scope->cancel);
    peg_registry_unref(scope->registry);
}

/* The one error of a run: the outcome's. */
static peg_status report_outcome(const peg_outcome *outcome, peg_outcome *ret_outcome,
                                 peg_error *reterr)
{
    if (ret_outcome)
        *ret_outcome = *outcome;
    if (outcome->end == PEG_END_ACK)
        return PEG_OK;
    if (reterr)
        *reterr = outcome->error;
    return outcome->error.status;
}

static peg_status run_in_scope(peg_turn_scope *scope, peg_ctx *ctx, peg_outcome *ret_outcome,
                               peg_error *reterr)
{
    peg_status status;

    if (!scope->turn || !peg_turn_len(scope->turn))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_TURN_CONTEXT",
                         "a turn needs at least one block; add a system or user block first");
    status = peg__turn_check_lent(scope->turn, reterr);
    if (status)
        return status;
    scope->outer_storage = scope->turn->storage;
    scope->outer_ctx = scope->turn->ctx;
    status = set_up(scope, ctx, reterr);
    if (!status)
        *ret_outcome = run_turn(scope);
    tear_down(scope);
    return status;
}

peg_status peg_runner_run(peg_runner *runner, peg_ctx *ctx, peg_turn *turn,
                          peg_outcome *ret_outcome, peg_error *reterr)
{
    peg_turn_scope scope = {.runner = runner, .turn = turn};
    peg_outcome outcome = {.end = PEG_END_NACK};

    if (run_in_scope(&scope, ctx, &outcome, &outcome.error))
        outcome.end = PEG_END_NACK;
    return report_outcome(&outcome, ret_outcome, reterr);
}

/* ---- standalone dispatch -------------------------------------------------------- */

/* A dispatch on its own also has a last state to keep. */
static peg_status run_standalone(peg_ctx *ctx, const peg_dispatch_options *loop,
                                 const peg_dispatch_input *input, peg_outcome *outcome)
{
    peg_registry *registry = input->registry ? input->registry : peg_ctx_registry(ctx);
    const peg_status status =
        peg__dispatch_run(ctx, loop, input->turn, registry, outcome, &outcome->error);

    if (!status && outcome->end == PEG_END_ACK &&
        peg__snapshot(ctx, loop, input->turn, PEG_PHASE_FINAL, &outcome->error))
        outcome->end = PEG_END_NACK;
    return status;
}

static peg_status run_dispatch(peg_ctx *ctx, const peg_dispatch_options *loop,
                               const peg_dispatch_input *input, peg_outcome *outcome)
{
    PEG__READ_OR_RETURN(input, PEG_DISPATCH_INPUT_INIT, &outcome->error);
    PEG__READ_AS_OR_RETURN(loop, &dispatch_layout, &outcome->error);
    peg_turn_scope *source = input ? input->source : NULL;
    peg_ctx *fresh = NULL;
    peg_status status;

    if (!input || (source != NULL) == (input->turn != NULL))
        return peg__fail(&outcome->error, PEG_EINVAL, "E_INVALID_LLM_DISPATCH_INPUT",
                         "give exactly one of source (a running turn) and turn (blocks)");
    status = check_options(loop, &outcome->error);
    if (status)
        return status;
    if (source)
        return peg__dispatch_run(ctx ? ctx : source->ctx, loop, source->turn,
                                 input->registry ? input->registry : source->registry, outcome,
                                 &outcome->error);
    if (!ctx && (status = peg_ctx_new(&fresh, &outcome->error)))
        return status;
    status = run_standalone(ctx ? ctx : fresh, loop, input, outcome);
    peg_ctx_unref(fresh);
    return status;
}

peg_status peg_dispatch_run(peg_ctx *ctx, const peg_dispatch_options *loop,
                            const peg_dispatch_input *input, peg_outcome *ret_outcome,
                            peg_error *reterr)
{
    peg_outcome outcome = {.end = PEG_END_NACK};

    if (run_dispatch(ctx, loop, input, &outcome))
        outcome.end = PEG_END_NACK;
    return report_outcome(&outcome, ret_outcome, reterr);
}

/* ---- what a middleware sees ----------------------------------------------------- */

peg_ctx *peg_turn_scope_ctx(const peg_turn_scope *scope)
{
    return scope->ctx;
}

const char *peg_turn_scope_id(const peg_turn_scope *scope)
{
    return scope->id;
}

peg_turn *peg_turn_scope_turn(const peg_turn_scope *scope)
{
    return scope->turn;
}

peg_registry *peg_turn_scope_registry(const peg_turn_scope *scope)
{
    return scope->registry;
}

void peg_turn_scope_abort(peg_turn_scope *scope, const char *reason)
{
    peg_cancel_fire(scope->cancel, reason);
}

peg_status peg_turn_scope_fetch(peg_turn_scope *scope, unsigned kinds, peg_turn **ret_turn,
                                peg_error *reterr)
{
    return peg__storage_fetch(scope->turn, kinds, ret_turn, reterr);
}

peg_status peg_turn_scope_store_bytes(peg_turn_scope *scope, const char *what, peg_str id,
                                      peg_str bytes, peg_reader **ret_reader, peg_error *reterr)
{
    return peg__storage_store_bytes(scope->turn, what, id, bytes, ret_reader, reterr);
}
