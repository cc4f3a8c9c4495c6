/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_LOOP_LOOP_H
#define PEG_TURN_LOOP_LOOP_H

#include "base/id.h"
#include "base/limits.h"
#include "base/map.h"
#include "pegboard/ctx.h"
#include "pegboard/dispatch.h"
#include "pegboard/record.h"
#include "pegboard/runner.h"
#include "json/json.h"

/*
 * A pipeline of middlewares, each around the next: A before, B before, B after, A after. The same
 * for turns and dispatches, whose middlewares differ in type; the owner of the pipeline calls them:
 *
 *   static peg_status run_input(void *owner, size_t i, peg_middleware_next *next, peg_error
 * *reterr)
 *   {
 *       const peg_dispatch_middleware *m = &((peg_dispatch *)owner)->loop->input[i];
 *
 *       return m->run(owner, next, m->user, reterr);
 *   }
 *
 * Once is_stopped() is true, middlewares that have not begun are passed over and the chain is still
 * walked to its end; those that have begun still do what they do after peg_middleware_run_next().
 */

/* The handle of a middleware while it runs. It lives as long as the turn or dispatch, not only as
 * long as the middleware, so that one that is used too late can be refused. */
struct peg_middleware_next {
    struct peg__pipeline_run *run; /* NULL: the middleware has returned */
    size_t i;                      /* where the rest begins */
    bool was_run;
};

struct peg__pipeline {
    size_t n_steps;                    /* at most PEG_LIMIT_MIDDLEWARES */
    struct peg_middleware_next *nexts; /* n_steps of them, the owner's */
    peg_status (*run_step)(void *owner, size_t i, peg_middleware_next *next, peg_error *reterr);
    bool (*is_stopped)(void *owner); /* canceled, for our two owners; NULL: never */
    void *owner;
};

enum peg__pipeline_end {
    PEG__PIPELINE_DONE,    /* the end was reached, perhaps stopped on the way */
    PEG__PIPELINE_STOPPED, /* not reached, because it was stopped: no error */
    PEG__PIPELINE_SHORT,   /* not reached: a middleware did not run the rest */
    PEG__PIPELINE_FAILED,  /* *reterr is the middleware's error; if it is empty, ours */
};

/* Runs it once, from the start. A failure with PEG_ECANCELED or PEG_ETIMEOUT while it is stopped
 * counts as stopped. reterr may be NULL and is written only for PEG__PIPELINE_FAILED. */
enum peg__pipeline_end peg__pipeline_run(const struct peg__pipeline *pipeline, peg_error *reterr);

/* E_PIPELINE_SHORT_CIRCUITED for PEG__PIPELINE_SHORT; `name` is "turn-input" and so on. */
peg_status peg__pipeline_fail_short(peg_error *reterr, const char *name);
/* The end as a status: `code` and the cause of a failure, or the above. */
peg_status peg__pipeline_status(enum peg__pipeline_end end, const char *name, const char *code,
                                const peg_error *why, peg_error *reterr);

/*
 * What a dispatch streams: messages and thoughts that grow, tool calls that are
 * announced once and completed once. Lives for a whole dispatch, over all iterations; emits events
 * and stores nothing.
 *
 * A value: start with PEG__STREAMS. One thread at a time. A sink may add to other
 * streams than the one whose event it handles.
 */

struct peg__streams {
    struct peg__map messages;
    struct peg__map thoughts;
    struct peg__map calls;
    struct peg__map args; /* of calls that are being written, in this iteration */
    size_t n_bytes;       /* of all that is not complete */
};

#define PEG__STREAMS                                                                               \
    {                                                                                              \
        .messages = PEG__MAP(PEG_LIMIT_STREAMS), .thoughts = PEG__MAP(PEG_LIMIT_STREAMS),          \
        .calls = PEG__MAP(PEG_LIMIT_STREAMS), .args = PEG__MAP(PEG_LIMIT_STREAMS)                  \
    }

void peg__streams_free(struct peg__streams *streams);

struct peg__stream_part {
    peg_str id;
    peg_str delta; /* any bytes, perhaps none */
    bool is_complete;
};

/*
 * Adds to a message (PEG_EVENT_MESSAGE) or thought (PEG_EVENT_THOUGHT) and emits the event. On
 * failure nothing was added or emitted. PEG_ESTATE (E_WRONG_STATE: it is complete,
 * or a sink that receives this very stream calls), PEG_EINVAL (E_INVALID_ARGUMENT), PEG_ELIMIT
 * (E_STREAM_TOO_LARGE), PEG_ENOMEM.
 */
peg_status peg__streams_notify(struct peg__streams *streams, peg_ctx *ctx, peg_event_kind kind,
                               const struct peg__stream_part *part, peg_error *reterr);

/* Adds to the arguments of a call that a model is writing, and emits PEG_EVENT_TOOL_ARGS. Errors as
 * above. */
peg_status peg__streams_notify_args(struct peg__streams *streams, peg_ctx *ctx, peg_str call_id,
                                    peg_str tool, peg_str delta, peg_error *reterr);
/* Arguments from now on belong to other calls, also under the same ids. */
void peg__streams_forget_args(struct peg__streams *streams);

struct peg__call_part {
    peg_str key; /* identifies a call, such as the id of the call block; "": call_id */
    peg_str call_id;
    peg_str tool;         /* "": as announced, the record's, or the name for those without one */
    peg_str args;         /* to be shown; "": as announced, the record's, or {} */
    const char *checksum; /* NULL: the record's, or that of tool and args as they stand here */
    const peg_record *record; /* NULL: it is announced; else it is completed */
};

/* Announces a call or completes it; what was not announced is announced first, so that there are
 * always two events. Errors as above, and PEG_ESTATE (E_WRONG_STATE). */
peg_status peg__streams_notify_call(struct peg__streams *streams, peg_ctx *ctx,
                                    const struct peg__call_part *part, peg_error *reterr);

/*
 * The same for calls that we run, identified by the record's key. `args` is what may be shown of
 * the arguments, NULL if nothing may; what the record has of them is never shown. An announcement
 * that cannot be made for lack of memory is made before the completion.
 */
void peg__streams_announce_call(struct peg__streams *streams, peg_ctx *ctx,
                                const peg_record *record, const peg_json *args);
peg_status peg__streams_complete_call(struct peg__streams *streams, peg_ctx *ctx,
                                      const peg_record *record, peg_error *reterr);

/*
 * A dispatch while it runs.
 *
 *   dispatch.c          the loop: iterations, flush, how it ends
 *   dispatch_sync.c     queries of artifacts, definitions and settings, before the model is asked
 *   dispatch_calls.c    the standard executor: what is pending, the model, its calls
 *   dispatch_kept.c     what the turn becomes if an iteration does not come to its end
 *   dispatch_signal.c   ack, nack, abort, their subscribers; reports; the storage
 */

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
    bool stops_after_iteration;  /* a call failed, and errors end the loop: see stop_error */
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
/* Before a call may begin; when its handler is about to run, which cannot fail; with its result. */
peg_status peg__kept_prepare(peg_dispatch *dispatch, const peg_block *call, peg_error *reterr);
void peg__kept_begin(peg_dispatch *dispatch, peg_block *call);
void peg__kept_end(peg_dispatch *dispatch, peg_block *result);
/* Gives the target the calls that began. Cannot fail. */
void peg__kept_flush(peg_dispatch *dispatch);
void peg__kept_clear(peg_dispatch *dispatch);
/* Calls the snapshot function; PEG_OK if there is none. */
peg_status peg__snapshot(peg_ctx *ctx, const peg_dispatch_options *loop, const peg_turn *turn,
                         peg_phase phase, peg_error *reterr);
bool peg__snapshot_is_wanted(const peg_ctx *ctx, const peg_dispatch_options *loop);
void peg__dispatch_end_subscriptions(peg_dispatch *dispatch);

static inline void peg__emit_error(peg_ctx *ctx, peg_event_kind kind, const peg_error *error)
{
    peg_event event = {.kind = kind, .error = error};

    peg_ctx_emit(ctx, &event);
}

/* Canceled, past its deadline, or signalled. */
bool peg__dispatch_is_over(const peg_dispatch *dispatch);
static inline bool peg__dispatch_is_stopped(const peg_dispatch *dispatch)
{
    return peg_ctx_check(dispatch->ctx, NULL) != PEG_OK;
}

#endif
