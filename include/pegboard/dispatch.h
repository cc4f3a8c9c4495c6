/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_DISPATCH_H
#define PEGBOARD_DISPATCH_H

/*
 * A dispatch: model and tools alternate until somebody says that it is enough.
 *
 *   iteration = forge artifact queries -> input pipeline -> executor -> output pipeline -> flush
 *
 * The standard executor asks an engine (the model) to add blocks, then runs the calls among them;
 * a host's own executor replaces both. ack ends it well, nack badly, abort at the host's wish.
 * Everything an iteration stored is mirrored to the turn at its end, all or nothing.
 *
 * A peg_dispatch is used by the thread that runs it, except where told otherwise, and lives until
 * peg_dispatch_run() or peg_runner_run() returns. Handlers are not given one: what a handler and a
 * middleware of one run share is best a struct of the host's, as a value of the context that the
 * run is given (peg_ctx_with_value()).
 */

#include <pegboard/registry.h>
#include <pegboard/run.h>
#include <pegboard/step.h>
#include <pegboard/storage.h>
#include <pegboard/tool_config.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what runs in it ------------------------------------------------------------- */

/* The model: fn adds assistant, reasoning and call blocks to peg_dispatch_turn(). user outlives the
 * runs. peg_model_engine() and peg_script_engine() make one. */
typedef struct peg_engine {
    peg_status (*fn)(peg_dispatch *dispatch, void *user, peg_error *reterr);
    void *user;
} peg_engine;

/* The rest of a pipeline, good until the middleware that got it returns. It is run once, between
 * what the middleware does before and after; not running it is an error
 * (E_PIPELINE_SHORT_CIRCUITED), running it twice too (PEG_ESTATE, E_WRONG_STATE). Else it
 * returns what the rest returned. */
typedef struct peg_middleware_next peg_middleware_next;
PEG_API PEG_MUST_USE peg_status peg_middleware_run_next(peg_middleware_next *next,
                                                        peg_error *reterr);

typedef struct peg_dispatch_middleware {
    peg_status (*run)(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                      peg_error *reterr);
    void *user;
} peg_dispatch_middleware;

typedef enum peg_auto_ack {
    PEG_AUTO_ACK_DEFAULT = 0, /* on with an engine, off with a host's executor */
    PEG_AUTO_ACK_ON,          /* ack after an iteration in which the model asked for no tool */
    PEG_AUTO_ACK_OFF,
} peg_auto_ack;

/* Where an engine reads what tools to offer. The definitions on the turn are taken from the
 * registry before each engine call, so it makes a difference only where there is no registry: where
 * a dispatch is given none, and a runner neither tools nor a registry. */
typedef enum peg_advertise {
    PEG_ADVERTISE_TURN = 0, /* the turn: one read from a file still offers its tools without a
                             * registry; a call then fails (E_TOOL_NO_REGISTRY), the loop goes on */
    PEG_ADVERTISE_REGISTRY, /* the registry alone; without one nothing is offered */
    PEG_ADVERTISE_STRICT,   /* both: E_DEFINITIONS_DIFFER if the turn has others. Ephemeral tools
                             * do not count */
} peg_advertise;

/* Calls that an earlier run left without a result, found before the model is asked. Where a host's
 * executor runs the calls, only those are known as left that are marked as begun. A turn may come
 * from somebody who put calls into it that no model asked for: run it with PEG_PENDING_UNKNOWN. */
typedef enum peg_pending_policy {
    /* Run; but one that had begun (pegboard.calls_started@v1) only if its tool is read_only or
     * idempotent. Else it is answered with E_OUTCOME_UNKNOWN: it is not run twice. */
    PEG_PENDING_SAFE = 0,
    PEG_PENDING_RUN,     /* run, whatever had begun */
    PEG_PENDING_UNKNOWN, /* answered with E_OUTCOME_UNKNOWN, none is run */
} peg_pending_policy;

/* Moments of a dispatch at which its turn may be kept. */
typedef enum peg_phase {
    PEG_PHASE_PRE_INFERENCE = 0, /* "pre_inference": definitions are on the turn */
    PEG_PHASE_POST_INFERENCE,    /* "post_inference": with what the model said */
    PEG_PHASE_PRE_CALL,          /* "pre_call": a call is about to begin, and marked as begun */
    PEG_PHASE_POST_CALL,         /* "post_call": with its result */
    PEG_PHASE_POST_TOOLS,        /* "post_tools": all are answered */
    PEG_PHASE_FINAL,             /* "final": it ended well, with all that the turn has now */
    PEG_N_PHASES,
} peg_phase;
PEG_API const char *peg_phase_name(peg_phase phase); /* static */

/* Called on the thread of the run. The turn is live: to keep it, make a copy (peg_turn_copy()
 * is cheap). Failing fails the dispatch (E_SNAPSHOT): before a call, the call is not run. */
typedef peg_status (*peg_snapshot_fn)(peg_ctx *ctx, const peg_turn *turn, peg_phase phase,
                                      void *user, peg_error *reterr);
/* A function for all dispatches below a context whose loop has none of its own. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_snapshots(peg_ctx *parent, peg_snapshot_fn fn,
                                                       void *user, peg_ctx **ret_ctx,
                                                       peg_error *reterr);

/* How a dispatch goes. Exactly one of engine and executor. Zero means the default, in brackets; a
 * negative number means no limit. peg_runner_new() copies the arrays. */
typedef struct peg_dispatch_options {
    size_t size; /* set by PEG_DISPATCH_OPTIONS_INIT */
    /* How each call runs [spool: memory, held by the artifact]; call.settings, of the dispatch too,
     * wins over the settings of `tools` and of the turn. */
    peg_run_options call;
    peg_engine engine;
    peg_engine executor; /* the host's own: runs model and calls of an iteration itself */
    const peg_dispatch_middleware *input;
    size_t n_input;
    const peg_dispatch_middleware *output;
    size_t n_output;
    int max_calls; /* of one response [64] E_LIMIT_CALLS for those beyond */
    peg_auto_ack auto_ack;
    const peg_storage *storage; /* [none]; outlives the run */

    /* [the turn's, else the default]; what is used is put on the turn. Copied by the runner. */
    const peg_tool_config *tools;
    /* Artifacts of so many bytes get queries [4,096: smaller ones are shown whole]; negative: all.
     * Those that a host put into the turn always do. */
    int64_t query_from;
    peg_advertise advertise;
    bool forget_definitions; /* without a registry: take them off the turn, do not keep them */
    peg_pending_policy pending;
    peg_snapshot_fn snapshot; /* [the context's, else none] */
    void *snapshot_user;
    peg_stepper *steps; /* [none]; a reference is held by the runner */
} peg_dispatch_options;
#define PEG_DISPATCH_OPTIONS_INIT                                                                  \
    .size = sizeof(peg_dispatch_options), .call = {PEG_RUN_OPTIONS_INIT}

/*
 * What became of a turn or dispatch. error says why it did not end well:
 *   PEG_END_ACK      its status is PEG_OK
 *   PEG_END_NACK     what failed, or the reason given to peg_dispatch_nack()
 *   PEG_END_ABORTED  E_CANCELED with the reason in its message, or E_DEADLINE_EXCEEDED
 * A turn is aborted too if it was stopped before its output pipeline was through; its blocks then
 * are those of a dispatch that ended well.
 *
 * Of an iteration that did not come to its end the turn has nothing after peg_dispatch_nack(), and
 * after a cancellation, an abort or a failure the calls that began, with their results and the
 * thoughts before them. Running the turn again does not run them again: one whose result was lost
 * is marked as begun (peg_pending_policy). This holds for calls that the standard executor or
 * peg_dispatch_run_calls() runs.
 */
typedef struct peg_outcome {
    peg_turn_end end;
    unsigned iterations; /* that began */
    peg_error error;
} peg_outcome;

/* ---- standalone: for sub-agents ----------------------------------------------------- */

/* Exactly one of source and turn: PEG_EINVAL (E_INVALID_LLM_DISPATCH_INPUT) otherwise. */
typedef struct peg_dispatch_input {
    size_t size;            /* set by PEG_DISPATCH_INPUT_INIT */
    peg_turn_scope *source; /* a turn that is running: its blocks, registry and cancellation */
    peg_turn *turn;         /* blocks of one's own; gets what the dispatch adds */
    peg_registry *registry; /* what may be called, copied [the source's, or the context's] */
} peg_dispatch_input;
#define PEG_DISPATCH_INPUT_INIT .size = sizeof(peg_dispatch_input)

/* Runs a dispatch below a context. ctx may be NULL for a fresh one, with a source for the source's
 * own; another one is best made from that, such as one with a deadline. Returns and fills
 * *ret_outcome as peg_runner_run() does. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_run(peg_ctx *ctx, const peg_dispatch_options *loop,
                                                 const peg_dispatch_input *input,
                                                 peg_outcome *ret_outcome, peg_error *reterr);

/* ---- from inside: what it is; borrowed from the dispatch ------------------------------ */

/* Of this iteration; to keep it longer, take a reference. */
PEG_API peg_ctx *peg_dispatch_ctx(const peg_dispatch *dispatch);
PEG_API peg_registry *peg_dispatch_registry(const peg_dispatch *dispatch); /* its own */
PEG_API peg_turn *peg_dispatch_turn(const peg_dispatch *dispatch);         /* its own until flush */
PEG_API const char *peg_dispatch_id(const peg_dispatch *dispatch);
PEG_API unsigned peg_dispatch_iteration(const peg_dispatch *dispatch); /* from 0 */

/* ---- from inside: signals --------------------------------------------------------------- */

/* Done. What runs now still finishes, and the iteration with it. Every ephemeral tool is gone when
 * this returns. PEG_ESTATE (E_WRONG_STATE) after a first signal. */
PEG_API peg_status peg_dispatch_ack(peg_dispatch *dispatch, peg_error *reterr);
/* Failed. error is copied and may be NULL. What this iteration stored does not reach the turn. */
PEG_API peg_status peg_dispatch_nack(peg_dispatch *dispatch, const peg_error *error,
                                     peg_error *reterr);
/* Cancels the dispatch, not its turn, unless it was acked. Any thread, while the dispatch lives:
 * others keep a reference to peg_ctx_cancel(peg_dispatch_ctx()) and fire that. */
PEG_API void peg_dispatch_abort(peg_dispatch *dispatch, const char *reason);
PEG_API bool peg_dispatch_is_signalled(const peg_dispatch *dispatch);
PEG_API bool peg_dispatch_is_acked(const peg_dispatch *dispatch);
PEG_API const peg_error *peg_dispatch_nack_error(const peg_dispatch *dispatch); /* or NULL */

/* Calls fn inside ack, in the order of subscription; one that fails is logged, the others still
 * run. The subscription dies with the dispatch; ret_subscription may be NULL. */
typedef struct peg_subscription peg_subscription;
PEG_API PEG_MUST_USE peg_status peg_dispatch_on_ack(peg_dispatch *dispatch,
                                                    peg_status (*fn)(void *user), void *user,
                                                    peg_subscription **ret_subscription,
                                                    peg_error *reterr);
/* Ends it early. Harmless after the ack and when called twice, while the dispatch lives. */
PEG_API void peg_subscription_end(peg_subscription *subscription);

/* Prunes a registry's ephemeral tools when the dispatch is acked, before ack returns; not on nack
 * or abort. The dispatch does this for its own registry. Takes a reference; ret_subscription may be
 * NULL. */
PEG_API PEG_MUST_USE peg_status peg_registry_bind(peg_registry *registry, peg_dispatch *dispatch,
                                                  peg_subscription **ret_subscription,
                                                  peg_error *reterr);

/* ---- from inside: doing -------------------------------------------------------------------- */

/* Runs the calls of the turn that have no result yet and adds their results, in call order: what
 * the standard executor does after the engine. ret_n (may be NULL): how many ran. PEG_ESTATE
 * (E_WRONG_STATE) from within one of them. Those that an earlier run had begun are treated as
 * peg_pending_policy says. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_run_calls(peg_dispatch *dispatch, size_t *ret_n,
                                                       peg_error *reterr);
/* What the model is to be offered now, as the loop's policy has it: the neutral form
 * (definitions.h), NULL if nothing or if tools are off. For engines; borrowed until the engine
 * returns. */
PEG_API const peg_json *peg_dispatch_definitions(const peg_dispatch *dispatch);
/* The settings that hold for this iteration: required has become auto once there is a result. */
PEG_API const peg_tool_config *peg_dispatch_tool_config(const peg_dispatch *dispatch);
/* Makes the turn's definitions and config what they are to be before an engine is asked: what the
 * standard executor does first. For executors of the host's that ask a model. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_sync(peg_dispatch *dispatch, peg_error *reterr);
/* What the storage kept, as a turn of the caller's; the dispatch's own is not changed. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_fetch(peg_dispatch *dispatch, unsigned kinds,
                                                   peg_turn **ret_turn, peg_error *reterr);
/* what is "media" or "retrieved". */
PEG_API PEG_MUST_USE peg_status peg_dispatch_store_bytes(peg_dispatch *dispatch, const char *what,
                                                         peg_str id, peg_str bytes,
                                                         peg_reader **ret_reader,
                                                         peg_error *reterr);

/* ---- from inside: telling. These emit events and store nothing --------------------------------
 */

/* Adds to the message or thought of that id, over all iterations. PEG_ESTATE (E_WRONG_STATE)
 * after it was completed. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_report_message(peg_dispatch *dispatch, peg_str id,
                                                            peg_str delta, bool is_complete,
                                                            peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_dispatch_report_thought(peg_dispatch *dispatch, peg_str id,
                                                            peg_str delta, bool is_complete,
                                                            peg_error *reterr);
/* For executors that run tools in their own way: announce with record NULL, complete with it. Each
 * call has an id of its own here, also where a vendor repeats them. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_report_tool_call(peg_dispatch *dispatch,
                                                              peg_str call_id, peg_str tool,
                                                              peg_str args,
                                                              const peg_record *record,
                                                              peg_error *reterr);
/* Adds to the arguments of a call that is being written, for PEG_EVENT_TOOL_ARGS. */
PEG_API PEG_MUST_USE peg_status peg_dispatch_report_args(peg_dispatch *dispatch, peg_str call_id,
                                                         peg_str tool, peg_str delta,
                                                         peg_error *reterr);
/* level is "trace", "debug", "info", "warn" or "error"; payload may be NULL. As with all that is
 * told, everything is borrowed for the time of the call. */
PEG_API void peg_dispatch_log(peg_dispatch *dispatch, const char *level, const char *kind,
                              const char *message, const peg_json *payload);
/* What the model used, for PEG_EVENT_STATS: whatever the host wants to count. */
PEG_API void peg_dispatch_report_stats(peg_dispatch *dispatch, const peg_json *stats);

#ifdef __cplusplus
}
#endif
#endif
