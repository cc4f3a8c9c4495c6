/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_RUNNER_H
#define PEGBOARD_RUNNER_H

/*
 * The runner: input pipeline -> one dispatch -> output pipeline, on a registry that is made anew
 * from the configured tools for each run and thrown away after it.
 *
 * Shared, immutable, reference counted. Any number of runs may go on at once, from any threads.
 */

#include <pegboard/dispatch.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_turn_middleware {
    peg_status (*run)(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                      peg_error *reterr);
    void *user;
} peg_turn_middleware;

/* Copied; tools are referenced. Whatever a user pointer leads to outlives the runner. */
typedef struct peg_runner_config {
    size_t size; /* set by PEG_RUNNER_CONFIG_INIT */
    peg_dispatch_options loop;
    peg_tool *const *tools;
    size_t n_tools;
    peg_registry *registry; /* instead of tools: hidden marks and order come along */
    const peg_turn_middleware *input;
    size_t n_input;
    const peg_turn_middleware *output;
    size_t n_output;
    peg_event_fn on_event; /* hears every run, before the context's sinks; may be NULL */
    void *on_event_user;
    peg_gate_fn on_gate; /* answers gates; NULL: a context's own, or none */
    void *on_gate_user;
} peg_runner_config;
#define PEG_RUNNER_CONFIG_INIT                                                                     \
    .size = sizeof(peg_runner_config), .loop = {PEG_DISPATCH_OPTIONS_INIT}

/* PEG_EINVAL (E_INVALID_TURN_RUNNER_CONFIG) names every field that is wrong, as many as there is
 * room for, and counts the others; PEG_EEXISTS (E_TOOL_ALREADY_REGISTERED) for two tools of one
 * name; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_runner_new(const peg_runner_config *config,
                                               peg_runner **ret_runner, peg_error *reterr);
PEG_API peg_runner *peg_runner_ref(peg_runner *runner);
PEG_API peg_runner *peg_runner_unref(peg_runner *runner);

/*
 * Runs a turn: its blocks are the conversation so far and get what is added. ctx may be NULL.
 * Returns PEG_OK if it was acked; else the status of what ended it, with the error in *reterr.
 * *ret_outcome (may be NULL) is filled in either case: whether it was nacked or aborted, and when.
 *
 * Nothing runs, and the outcome has no iterations, on PEG_EINVAL (E_INVALID_TURN_CONTEXT): no turn,
 * or one without blocks; PEG_ESTATE (E_TURN_BUSY): a dispatch works on it; PEG_ENOMEM.
 *
 * A handler or middleware may run other turns, on this runner too, with a context made from its
 * own; each event is reported once.
 */
PEG_API PEG_MUST_USE peg_status peg_runner_run(peg_runner *runner, peg_ctx *ctx, peg_turn *turn,
                                               peg_outcome *ret_outcome, peg_error *reterr);

/* ---- a turn that runs, as its middleware sees it; borrowed from the scope ---------------- */

PEG_API peg_ctx *peg_turn_scope_ctx(const peg_turn_scope *scope);
PEG_API const char *peg_turn_scope_id(const peg_turn_scope *scope);
PEG_API peg_turn *peg_turn_scope_turn(const peg_turn_scope *scope);
/* This turn's own: what is done to it, no other turn sees. */
PEG_API peg_registry *peg_turn_scope_registry(const peg_turn_scope *scope);
/* Cancels the turn and everything in it. Any thread, while the turn runs: others keep a reference
 * to peg_ctx_cancel(peg_turn_scope_ctx()) and fire that. */
PEG_API void peg_turn_scope_abort(peg_turn_scope *scope, const char *reason);
PEG_API PEG_MUST_USE peg_status peg_turn_scope_fetch(peg_turn_scope *scope, unsigned kinds,
                                                     peg_turn **ret_turn, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_turn_scope_store_bytes(peg_turn_scope *scope, const char *what,
                                                           peg_str id, peg_str bytes,
                                                           peg_reader **ret_reader,
                                                           peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
