/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_LOOP_DISPATCH_H
#define PEG_TURN_LOOP_DISPATCH_H

/*
 * A dispatch while it runs.
 *
 *   dispatch.c          the loop: iterations, flush, how it ends
 *   dispatch_infer.c    the standard executor: what is pending, the model, its calls
 *   dispatch_sync.c     definitions and settings on the turn, before the model is asked
 *   dispatch_forge.c    the queries of the artifacts that there are
 *   dispatch_calls.c    running the calls a model asked for
 *   dispatch_left.c     calls that an earlier run left: which may have run
 *   dispatch_kept.c     what the turn becomes if an iteration does not come to its end
 *   dispatch_signal.c   ack, nack, abort, and who hears of an ack
 *   dispatch_report.c   what executors tell, and what they ask of the storage
 */

#include "base/id.h"
#include "base/limits.h"
#include "pegboard/dispatch.h"
#include "turn/loop/pipeline.h"
#include "turn/loop/stream.h"
#include "json/json.h"

enum peg__signal { PEG__SIGNAL_NONE, PEG__SIGNAL_ACK, PEG__SIGNAL_NACK };

/* Of the present iteration. */
struct peg__kept {
    peg_turn *turn;  /* the target and the calls that began; NULL: none was about to */
    peg_bag *marked; /* its metadata once the call that is about to begin has begun */
    size_t n_seen;   /* blocks of the dispatch's turn that were looked through for thoughts */
    size_t n_open;   /* calls that began and have no result in it */
    bool has_begun;  /* a call has */
};

/* Arena-like: lives on the stack of peg__dispatch_run(), and so does all it lists. */
struct peg_dispatch {
    const peg_dispatch_options *loop;
    peg_ctx *base_ctx; /* token, ids, registry */
    peg_ctx *ctx;      /* base_ctx with the iteration */
    peg_cancel *cancel;
    peg_registry *registry; /* its own */
    peg_turn *turn;         /* its own; flushed to target at the end of each iteration */
    peg_turn *target;
    struct peg__kept kept;
    unsigned iteration;
    unsigned n_iterations; /* that began */
    enum peg__signal signal;
    peg_error nack_error;
    struct peg_subscription *subscriptions; /* in order */
    struct peg_subscription **last_subscription;
    struct peg__streams streams;
    peg_tool_config config;      /* that holds now */
    struct peg__shared *offered; /* definitions; NULL before the first sync */
    bool has_results;            /* a call of this dispatch was answered */
    bool stops_after_iteration;  /* a call failed, and errors end the loop: stop_error says which */
    peg_error stop_error;
    bool has_warned_of_absence;
    bool has_warned;       /* of queries that are not offered */
    bool has_run_calls;    /* in this iteration */
    bool is_running_calls; /* now */
    struct peg_middleware_next nexts[PEG_LIMIT_MIDDLEWARES];
    char id[PEG_UUID_TEXT];
};

/* Runs a dispatch of these blocks on a copy of the registry; *target gets what each iteration
 * stored. Emits its start, its end and its error. Fails only before the start event, with
 * PEG_ESTATE (E_TURN_BUSY) if another dispatch works on the target. */
peg_status peg__dispatch_run(peg_ctx *ctx, const peg_dispatch_options *loop, peg_turn *target,
                             peg_registry *registry, peg_outcome *ret_outcome, peg_error *reterr);

/* ---- parts ------------------------------------------------------------------------- */

peg_status peg__dispatch_forge(peg_dispatch *dispatch, peg_error *reterr);
/* The standard executor, and what comes before it. */
peg_status peg__dispatch_settle_pending(peg_dispatch *dispatch, peg_error *reterr);
peg_status peg__dispatch_infer(peg_dispatch *dispatch, peg_error *reterr);
/* The settings that hold now, from loop and turn. */
peg_status peg__dispatch_read_config(peg_dispatch *dispatch, peg_error *reterr);
bool peg__dispatch_uses_tools(const peg_dispatch *dispatch);
/* Answers calls without running them: all that are pending, or those for which `must` is true. */
typedef bool (*peg__must_fn)(peg_dispatch *dispatch, const peg_block *call, void *user);
peg_status peg__dispatch_refuse_pending(peg_dispatch *dispatch, const peg_error *why,
                                        peg_error *reterr);
peg_status peg__dispatch_refuse_those(peg_dispatch *dispatch, const peg_error *why,
                                      peg__must_fn must, void *user, peg_error *reterr);
/* Answers with E_OUTCOME_UNKNOWN what an earlier run left and the loop's policy does not let run:
 * all that is pending was left; or only what is marked as begun was. */
peg_status peg__dispatch_close_left(peg_dispatch *dispatch, peg_error *reterr);
peg_status peg__dispatch_close_begun(peg_dispatch *dispatch, peg_error *reterr);
/* Before a call may begin; when its handler is about to run, which cannot fail; with its result. */
peg_status peg__kept_prepare(peg_dispatch *dispatch, const peg_block *call, peg_error *reterr);
void peg__kept_begin(peg_dispatch *dispatch, peg_block *call);
void peg__kept_end(peg_dispatch *dispatch, peg_block *result);
/* Gives the target the calls that began. Cannot fail. */
void peg__kept_flush(peg_dispatch *dispatch);
void peg__kept_clear(peg_dispatch *dispatch);
/* Tells whoever keeps turns; PEG_OK if nobody does. */
peg_status peg__snapshot(peg_ctx *ctx, const peg_dispatch_options *loop, const peg_turn *turn,
                         peg_phase phase, peg_error *reterr);
bool peg__snapshot_is_wanted(const peg_ctx *ctx, const peg_dispatch_options *loop);
void peg__dispatch_end_subscriptions(peg_dispatch *dispatch);
void peg__dispatch_report_limit(peg_dispatch *dispatch, const peg_error *error);

/* Canceled, past its deadline, or signalled. */
bool peg__dispatch_is_over(const peg_dispatch *dispatch);
static inline bool peg__dispatch_is_stopped(const peg_dispatch *dispatch)
{
    return peg_ctx_check(dispatch->ctx, NULL) != PEG_OK;
}

#endif
