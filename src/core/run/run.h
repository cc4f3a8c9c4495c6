/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RUN_RUN_H
#define PEG_CORE_RUN_RUN_H

/*
 * Running a call in two halves, so that several can be under way on a pool: begin does everything
 * up to the handler and starts it, end waits for it and makes the record. peg_call_run() is both.
 *
 *   run.c           the halves, in order; how a call fails
 *   run_lookup.c    which tool
 *   run_args.c      parse, validate
 *   run_hooks.c     what the host has to say before the handler
 *   run_handler.c   attempts, deadline, cancellation, start and end
 *   run_result.c    check what it answered, wrap it
 *
 * Each stage returns a status only for what is wrong with pegboard itself. What is wrong with the
 * call it writes into the record with peg__run_refuse(), and the stages after it are left out.
 */

#include "core/run/call.h"
#include "pegboard/run.h"

/* Both are called inside of peg__run_begin(). */
struct peg__run_tap {
    /* Before the handler starts (or fails to): `args` is what may be shown of its arguments, NULL
     * if nothing may. */
    void (*announce)(const peg_record *record, const peg_json *args, void *user);
    /* The handler is about to run. */
    void (*start)(void *user);
    void *user;
};

/* Owned by whoever runs the call; nothing of it is anybody else's business. */
struct peg__run {
    peg_ctx *ctx;            /* borrowed */
    peg_run_options options; /* defaults in place, negative limits as the largest number */
    const struct peg__run_tap *tap;
    peg_record *record;
    peg_tool *tool;         /* NULL until it is found */
    struct peg__task *task; /* NULL until the arguments are good */
    peg_call *call;         /* the present attempt */
    peg_json_doc *masked;   /* what events show instead of the arguments; NULL: the arguments */
    int64_t started_ns;
    int64_t started_ms;
    bool has_started; /* the start event was emitted: the end event is owed */
    bool is_on_pool;  /* the present attempt was submitted */
};

/* On failure there is nothing left to free. The context outlives the run. */
peg_status peg__run_begin(struct peg__run *run, peg_ctx *ctx, const peg_call_request *request,
                          const peg_run_options *options, const struct peg__run_tap *tap,
                          peg_error *reterr);
/* Frees the run, in either case. */
peg_status peg__run_end(struct peg__run *run, peg_record **ret_record, peg_error *reterr);

/* ---- the stages ------------------------------------------------------------------- */

peg_status peg__run_find_tool(struct peg__run *run, peg_error *reterr);
peg_status peg__run_read_args(struct peg__run *run, peg_error *reterr);
peg_status peg__run_check_args(struct peg__run *run, peg_error *reterr);
peg_status peg__run_ask_hooks(struct peg__run *run, peg_error *reterr);
peg_status peg__run_start_handler(struct peg__run *run, peg_error *reterr);
peg_status peg__run_await_handler(struct peg__run *run, peg_error *reterr);
peg_status peg__run_check_result(struct peg__run *run, peg_error *reterr);
peg_status peg__run_wrap(struct peg__run *run, peg_error *reterr);
/* If an end is owed. has_failed: for a reason that the record does not tell. */
void peg__run_report_end(struct peg__run *run, bool has_failed);

/* ---- what they share ---------------------------------------------------------------- */

static inline bool peg__run_is_refused(const struct peg__run *run)
{
    return run->record->is_error;
}

/* Makes the call a failure with a sentence for the model. `cause` is a code or "". PEG_ENOMEM. */
peg_status peg__run_refuse(struct peg__run *run, const char *code, const char *cause,
                           peg_error *reterr, const char *fmt, ...) PEG_PRINTF(5, 6);
/* The same with the sentence taken over. */
peg_status peg__run_refuse_text(struct peg__run *run, const char *code, const char *cause,
                                struct peg__buf *sentence, peg_error *reterr);
/* Emits PEG_EVENT_LIMIT: "tool '...' reached ..." */
void peg__run_report_limit(struct peg__run *run, const char *code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* What events may show of the arguments. */
const peg_json *peg__run_shown_args(const struct peg__run *run);

#endif
