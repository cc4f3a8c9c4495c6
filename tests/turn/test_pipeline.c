/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/loop/loop.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

/* ---- fixture: middlewares with a plan, and a trace of what they did ---- */

enum act {
    WRAP,           /* before, the rest, after */
    SKIP_REST,      /* no peg_middleware_run_next() */
    TWICE,          /* the rest, and again; returns what the second run says */
    FAIL_BEFORE,    /* fails with an error of its own, without the rest */
    FAIL_AFTER,     /* runs the rest, then fails */
    FAIL_SILENT,    /* fails without a message */
    FAIL_HALF,      /* fails with a message only */
    SWALLOW,        /* runs the rest and says that all is well */
    PASS_STATUS,    /* passes the status of the rest on, but not its error */
    STOP,           /* stops the owner, then runs the rest */
    STOP_SKIP,      /* stops the owner and does not run the rest */
    STOP_CANCELED,  /* stops the owner and fails with PEG_ECANCELED */
    CLAIM_CANCELED, /* fails with PEG_ECANCELED though it was not stopped */
    KEEP,           /* returns without the rest, which it keeps */
    RUN_KEPT,       /* runs the rest, then that of KEEP */
};

struct onion {
    const enum act *acts;
    bool is_stopped;
    char trace[512];
    size_t len;
    struct peg_middleware_next nexts[PEG_LIMIT_MIDDLEWARES];
    peg_middleware_next *kept; /* by KEEP */
};

static void note(struct onion *onion, const char *what, size_t i)
{
    onion->len += (size_t)snprintf(onion->trace + onion->len, sizeof(onion->trace) - onion->len,
                                   "%s%c ", what, (char)('A' + i));
}

static peg_status fail_with(peg_error *reterr, peg_status status, const char *code,
                            const char *message)
{
    reterr->status = status;
    reterr->code = code;
    snprintf(reterr->message, sizeof(reterr->message), "%s", message);
    return status;
}

static peg_status after(struct onion *onion, size_t i, peg_status status)
{
    note(onion, "-", i);
    return status;
}

static peg_status twice(struct onion *onion, size_t i, peg_middleware_next *next, peg_error *reterr)
{
    if (peg_middleware_run_next(next, reterr) != PEG_OK)
        return PEG_EHOST;
    return after(onion, i, peg_middleware_run_next(next, reterr));
}

static peg_status act_and_fail(enum act act, struct onion *onion, peg_middleware_next *next,
                               peg_error *reterr)
{
    switch (act) {
    case FAIL_BEFORE:
        return fail_with(reterr, PEG_EIO, "E_MINE", "the disk is gone");
    case FAIL_AFTER:
        return peg_middleware_run_next(next, NULL)
                   ? PEG_EHOST
                   : fail_with(reterr, PEG_EIO, "E_LATE", "too late");
    case FAIL_HALF:
        return fail_with(reterr, PEG_EIO, NULL, "only a message");
    case STOP_CANCELED:
        onion->is_stopped = true;
        return fail_with(reterr, PEG_ECANCELED, "E_CANCELED", "stopped");
    case CLAIM_CANCELED:
        return fail_with(reterr, PEG_ECANCELED, "E_CANCELED", "so I say");
    default:
        return PEG_EIO;
    }
}

static peg_status run_act(void *owner, size_t i, peg_middleware_next *next, peg_error *reterr)
{
    struct onion *onion = owner;

    note(onion, "+", i);
    switch (onion->acts[i]) {
    case WRAP:
        return after(onion, i, peg_middleware_run_next(next, reterr));
    case SKIP_REST:
        return PEG_OK;
    case TWICE:
        return twice(onion, i, next, reterr);
    case SWALLOW:
        return peg_middleware_run_next(next, NULL) ? PEG_OK : PEG_EHOST;
    case PASS_STATUS:
        return peg_middleware_run_next(next, NULL);
    case STOP:
        onion->is_stopped = true;
        return after(onion, i, peg_middleware_run_next(next, reterr));
    case STOP_SKIP:
        onion->is_stopped = true;
        return PEG_OK;
    case KEEP:
        onion->kept = next;
        return PEG_OK;
    case RUN_KEPT:
        return peg_middleware_run_next(next, reterr) ? PEG_EHOST
                                                     : peg_middleware_run_next(onion->kept, reterr);
    default:
        return act_and_fail(onion->acts[i], onion, next, reterr);
    }
}

static bool is_stopped(void *owner)
{
    return ((struct onion *)owner)->is_stopped;
}

static enum peg__pipeline_end run(struct onion *onion, size_t n, peg_error *error)
{
    const struct peg__pipeline pipeline = {n, onion->nexts, run_act, is_stopped, onion};

    return peg__pipeline_run(&pipeline, error);
}

#define RUN(onion, error, ...)                                                                     \
    ((onion)->acts = (const enum act[]){__VA_ARGS__},                                              \
     run((onion), sizeof((const enum act[]){__VA_ARGS__}) / sizeof(enum act), (error)))

static peg_str trace(const struct onion *onion)
{
    return peg__strn(onion->trace, onion->len);
}

/* ---- order ---------------------------------------------------------------------- */

/* T83 */
TEST(pipeline_wraps_each_middleware_around_the_next)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, WRAP, WRAP), PEG__PIPELINE_DONE);

    CHECK_STR(trace(&onion), "+A +B +C -C -B -A ");
}

TEST(pipeline_without_middlewares_is_done_at_once)
{
    struct onion onion = {0};

    CHECK_INT(run(&onion, 0, NULL), PEG__PIPELINE_DONE);
}

/* T82 */
TEST(pipeline_runs_again_from_the_start)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, WRAP), PEG__PIPELINE_DONE);
    CHECK_INT(RUN(&onion, NULL, WRAP, WRAP), PEG__PIPELINE_DONE);

    CHECK_STR(trace(&onion), "+A +B -B -A +A +B -B -A ");
}

TEST(pipeline_needs_nobody_who_stops_it)
{
    struct onion onion = {.acts = (const enum act[]){WRAP}};
    const struct peg__pipeline pipeline = {
        .n_steps = 1, .nexts = onion.nexts, .run_step = run_act, .owner = &onion};

    CHECK_INT(peg__pipeline_run(&pipeline, NULL), PEG__PIPELINE_DONE);

    CHECK_STR(trace(&onion), "+A -A ");
}

/* ---- short circuits ------------------------------------------------------------- */

/* T75, T76 */
TEST(pipeline_is_short_when_a_middleware_does_not_run_the_rest)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, SKIP_REST, WRAP), PEG__PIPELINE_SHORT);

    CHECK_STR(trace(&onion), "+A +B -A ");
}

TEST(pipeline_is_short_when_the_last_middleware_does_not_run_the_rest)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, SKIP_REST), PEG__PIPELINE_SHORT);
}

TEST(pipeline_tells_which_one_was_short)
{
    peg_error error;

    CHECK_INT(peg__pipeline_fail_short(&error, "turn-input"), PEG_EHOST);

    CHECK_STR(peg__str(error.code), "E_PIPELINE_SHORT_CIRCUITED");
    CHECK(strstr(error.message, "turn-input") != NULL);
}

TEST(pipeline_runs_the_rest_of_a_middleware_once)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, TWICE, WRAP), PEG__PIPELINE_FAILED);

    CHECK_INT(error.status, PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    CHECK_STR(trace(&onion), "+A +B -B -A ");
}

TEST(pipeline_refuses_to_run_the_rest_of_a_middleware_that_has_returned)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, RUN_KEPT, KEEP, WRAP), PEG__PIPELINE_FAILED);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    CHECK_STR(trace(&onion), "+A +B ");

    CHECK_INT(peg_middleware_run_next(onion.kept, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    CHECK_STR(trace(&onion), "+A +B ");
}

/* ---- failures ------------------------------------------------------------------- */

/* T77 */
TEST(pipeline_hands_on_the_error_of_a_middleware)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, WRAP, FAIL_BEFORE, WRAP), PEG__PIPELINE_FAILED);

    CHECK_INT(error.status, PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_MINE");
    CHECK_STR(peg__str(error.message), "the disk is gone");
    CHECK_STR(trace(&onion), "+A +B -A ");
}

TEST(pipeline_fails_with_a_middleware_that_fails_after_the_rest)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, FAIL_AFTER, WRAP), PEG__PIPELINE_FAILED);

    CHECK_STR(peg__str(error.code), "E_LATE");
    CHECK_STR(trace(&onion), "+A +B -B ");
}

TEST(pipeline_finds_words_for_a_middleware_that_has_none)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, WRAP, FAIL_SILENT), PEG__PIPELINE_FAILED);

    CHECK_INT(error.status, PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_MIDDLEWARE_FAILED");
    CHECK_STR(peg__str(error.cause), "");
    CHECK(strstr(error.message, "middleware 2 of the pipeline") != NULL);
}

TEST(pipeline_gives_a_code_to_an_error_that_has_only_words)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, FAIL_HALF), PEG__PIPELINE_FAILED);

    CHECK_STR(peg__str(error.code), "E_MIDDLEWARE_FAILED");
    CHECK_STR(peg__str(error.message), "only a message");
}

TEST(pipeline_keeps_the_words_that_an_outer_middleware_forgets)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, PASS_STATUS, FAIL_BEFORE), PEG__PIPELINE_FAILED);

    CHECK_STR(peg__str(error.code), "E_MINE");
    CHECK_STR(peg__str(error.message), "the disk is gone");
}

TEST(pipeline_takes_no_error_where_none_is_wanted)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, PASS_STATUS, FAIL_BEFORE), PEG__PIPELINE_FAILED);
}

TEST(pipeline_is_short_when_a_failure_before_the_end_is_swallowed)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, SWALLOW, FAIL_BEFORE), PEG__PIPELINE_SHORT);
}

TEST(pipeline_is_done_when_a_failure_after_the_end_is_swallowed)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, SWALLOW, FAIL_AFTER), PEG__PIPELINE_DONE);
}

/* ---- stopping ------------------------------------------------------------------- */

/* T78 */
TEST(pipeline_passes_over_what_has_not_begun_when_it_is_stopped)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, STOP, WRAP, WRAP), PEG__PIPELINE_DONE);

    CHECK_STR(trace(&onion), "+A +B -B -A ");
}

/* T79 */
TEST(pipeline_that_was_stopped_before_runs_no_middleware)
{
    struct onion onion = {.is_stopped = true};

    CHECK_INT(RUN(&onion, NULL, WRAP, SKIP_REST, FAIL_BEFORE), PEG__PIPELINE_DONE);

    CHECK_STR(trace(&onion), "");
}

TEST(pipeline_that_is_stopped_is_not_short)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, STOP_SKIP, WRAP), PEG__PIPELINE_STOPPED);

    CHECK_STR(trace(&onion), "+A +B -A ");
}

TEST(pipeline_takes_a_canceled_middleware_for_stopped)
{
    struct onion onion = {0};

    CHECK_INT(RUN(&onion, NULL, WRAP, STOP_CANCELED, WRAP), PEG__PIPELINE_STOPPED);
}

TEST(pipeline_fails_when_a_middleware_claims_to_be_canceled)
{
    struct onion onion = {0};
    peg_error error;

    CHECK_INT(RUN(&onion, &error, WRAP, CLAIM_CANCELED), PEG__PIPELINE_FAILED);

    CHECK_INT(error.status, PEG_ECANCELED);
}

/* ---- limits --------------------------------------------------------------------- */

TEST(pipeline_takes_as_many_middlewares_as_the_limit_says)
{
    enum act acts[PEG_LIMIT_MIDDLEWARES + 1];
    struct onion onion = {.acts = acts};
    peg_error error;

    for (size_t i = 0; i < PEG_LIMIT_MIDDLEWARES + 1; i++)
        acts[i] = PASS_STATUS;

    CHECK_INT(run(&onion, PEG_LIMIT_MIDDLEWARES, NULL), PEG__PIPELINE_DONE);
    CHECK_INT(run(&onion, PEG_LIMIT_MIDDLEWARES + 1, &error), PEG__PIPELINE_FAILED);

    CHECK_INT(error.status, PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_INVALID_TURN_RUNNER_CONFIG");
    CHECK(strstr(error.message, "at most 64 middlewares") != NULL);
}
