/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_LOOP_PIPELINE_H
#define PEG_TURN_LOOP_PIPELINE_H

/*
 * A pipeline of middlewares, each around the next: A before, B before, B after, A after. The same
 * for turns and dispatches, whose middlewares differ in type; who owns the pipeline calls them:
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

#include "pegboard/dispatch.h"

/* What a middleware holds while it runs. It lives as long as the turn or dispatch, not only as long
 * as the middleware, so that one that is used too late can be refused. */
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
    PEG__PIPELINE_FAILED,  /* *reterr is the middleware's error; if it said nothing, ours */
};

/* Runs it once, from the start. A failure with PEG_ECANCELED or PEG_ETIMEOUT while it is stopped
 * counts as stopped. reterr may be NULL and is written only for PEG__PIPELINE_FAILED. */
enum peg__pipeline_end peg__pipeline_run(const struct peg__pipeline *pipeline, peg_error *reterr);

/* E_PIPELINE_SHORT_CIRCUITED for PEG__PIPELINE_SHORT; `name` is "turn-input" and so on. */
peg_status peg__pipeline_fail_short(peg_error *reterr, const char *name);

#endif
