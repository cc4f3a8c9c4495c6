/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The chain is walked by recursion through the middlewares: walk -> the middleware's function ->
 * peg_middleware_run_next -> walk. It is as deep as the pipeline is long, which is bounded.
 */

#include "turn/loop/loop.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "turn/turn.h"

/* One run of a pipeline; on the stack of peg__pipeline_run(). */
struct peg__pipeline_run {
    const struct peg__pipeline *pipeline;
    bool has_reached_end;
    peg_error error; /* of the middleware that failed last; its status is PEG_OK before */
};

static bool is_stopped(const struct peg__pipeline *pipeline)
{
    return pipeline->is_stopped && pipeline->is_stopped(pipeline->owner);
}

/* Makes sure that a failure has a message, and keeps it: a middleware further out may pass the
 * status on and forget the error. */
static peg_status take_failure(struct peg__pipeline_run *run, size_t i, peg_status status,
                               const peg_error *error)
{
    char subject[48];

    if (peg__host_is_silent(error) && run->error.status == status)
        return status;
    snprintf(subject, sizeof(subject), "middleware %zu of the pipeline", i + 1);
    return peg__host_failed(status, error, "E_MIDDLEWARE_FAILED", subject, &run->error);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the pipeline is long
static peg_status run_middleware(struct peg__pipeline_run *run, size_t i)
{
    struct peg_middleware_next *next = &run->pipeline->nexts[i];
    peg_error error = PEG__HOST_ERROR;
    peg_status status;

    *next = (struct peg_middleware_next){.run = run, .i = i + 1};
    status = run->pipeline->run_step(run->pipeline->owner, i, next, &error);
    next->run = NULL;
    return status ? take_failure(run, i, status, &error) : PEG_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the pipeline is long
static peg_status walk(struct peg__pipeline_run *run, size_t i)
{
    const struct peg__pipeline *pipeline = run->pipeline;

    while (i < pipeline->n_steps && is_stopped(pipeline))
        i++;
    if (i < pipeline->n_steps)
        return run_middleware(run, i);
    run->has_reached_end = true;
    return PEG_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the pipeline is long
peg_status peg_middleware_run_next(peg_middleware_next *next, peg_error *reterr)
{
    struct peg__pipeline_run *run = next->run;
    peg_status status;

    if (!run)
        return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                         "the middleware that was given this has returned: run the rest before");
    if (next->was_run)
        return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                         "the rest of the pipeline has been run: a middleware runs it once");
    next->was_run = true;
    status = walk(run, next->i);
    if (status && reterr)
        *reterr = run->error;
    return status;
}

static bool is_about_stopping(peg_status status)
{
    return status == PEG_ECANCELED || status == PEG_ETIMEOUT;
}

enum peg__pipeline_end peg__pipeline_run(const struct peg__pipeline *pipeline, peg_error *reterr)
{
    struct peg__pipeline_run run = {.pipeline = pipeline};
    peg_status status;

    if (pipeline->n_steps > PEG_LIMIT_MIDDLEWARES) {
        peg__fail(reterr, PEG_ELIMIT, "E_INVALID_TURN_RUNNER_CONFIG",
                  "a pipeline has at most %d middlewares, not %zu", PEG_LIMIT_MIDDLEWARES,
                  pipeline->n_steps);
        return PEG__PIPELINE_FAILED;
    }
    status = walk(&run, 0);
    if (is_about_stopping(status) && is_stopped(pipeline))
        return PEG__PIPELINE_STOPPED;
    if (status) {
        if (reterr)
            *reterr = run.error;
        return PEG__PIPELINE_FAILED;
    }
    if (run.has_reached_end)
        return PEG__PIPELINE_DONE;
    return is_stopped(pipeline) ? PEG__PIPELINE_STOPPED : PEG__PIPELINE_SHORT;
}

peg_status peg__pipeline_fail_short(peg_error *reterr, const char *name)
{
    return peg__fail(
        reterr, PEG_EHOST, "E_PIPELINE_SHORT_CIRCUITED",
        "the %s pipeline did not come to its end: a middleware returned without "
        "peg_middleware_run_next(), or passed over the failure of one behind it; run the rest, "
        "or fail, or abort",
        name);
}

peg_status peg__pipeline_status(enum peg__pipeline_end end, const char *name, const char *code,
                                const peg_error *why, peg_error *reterr)
{
    if (end == PEG__PIPELINE_FAILED)
        return peg__fail_because(reterr, PEG_EHOST, code, why,
                                 "a middleware of the %s pipeline failed", name);
    return end == PEG__PIPELINE_SHORT ? peg__pipeline_fail_short(reterr, name) : PEG_OK;
}
