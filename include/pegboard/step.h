/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_STEP_H
#define PEGBOARD_STEP_H

/*
 * A step controller: lets a person go through a run step by step. It belongs to the application and
 * serves any number of runs; a run pauses if its turn has a session id (pegboard.session_id@v1)
 * that is enabled here, after the model asked for tools and after the tools have run.
 *
 * Shared, reference counted; any thread.
 */

#include <pegboard/ctx.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_stepper peg_stepper;

typedef enum peg_step_decision {
    PEG_STEP_CONTINUE = 0,
    PEG_STEP_SKIP_TOOLS, /* after_inference: the calls are answered with "not run" */
    PEG_STEP_ABORT,      /* the dispatch is aborted */
} peg_step_decision;

/* max_wait_ms: after so long a pause goes on by itself; 0 means 30 s, negative never. */
PEG_API PEG_MUST_USE peg_status peg_stepper_new(int64_t max_wait_ms, peg_stepper **ret_steps,
                                                peg_error *reterr);
PEG_API peg_stepper *peg_stepper_ref(peg_stepper *steps);
PEG_API peg_stepper *peg_stepper_unref(peg_stepper *steps);

/* Silent if it is enabled already. PEG_EINVAL (E_INVALID_ARGUMENT) for an id that is not 1 to 256
 * bytes of UTF-8, PEG_ELIMIT (E_STEPS_FULL) beyond 10,000 sessions, PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_stepper_enable(peg_stepper *steps, peg_str session_id,
                                                   peg_error *reterr);
/* Also lets its pauses go on. After this returns, none is waiting and none will. */
PEG_API void peg_stepper_disable(peg_stepper *steps, peg_str session_id);
PEG_API bool peg_stepper_is_enabled(peg_stepper *steps, peg_str session_id);

/* What waits, as the event tells it. Text is copied in. */
typedef struct peg_pause_info {
    char pause_id[40];
    char session_id[128]; /* cut where it is longer */
    char phase[24];
    size_t n_pending;
    int64_t deadline_ms; /* wall time; INT64_MAX: never */
} peg_pause_info;

/* Lets a pause go on. PEG_ENOTFOUND (E_STEP_PAUSE) if there is none (any more), PEG_EINVAL
 * (E_INVALID_ARGUMENT); ret_info may be NULL. */
PEG_API peg_status peg_stepper_continue(peg_stepper *steps, const char *pause_id,
                                        peg_step_decision decision, peg_pause_info *ret_info,
                                        peg_error *reterr);
/* False if there is no such pause. */
PEG_API bool peg_stepper_lookup(peg_stepper *steps, const char *pause_id, peg_pause_info *ret_info);
PEG_API size_t peg_stepper_n_waiting(peg_stepper *steps);

/* Pauses here, on the context's clock: for hosts with an executor of their own. Emits
 * PEG_EVENT_PAUSE, then waits for peg_stepper_continue(), for the session to be disabled or for the
 * time to run out (both go on), or for the context to say stop (as peg_ctx_check() returns it). A
 * session that is not enabled goes on at once, without an event. While a person thinks, the time of
 * a call around this stands still, as at a gate. */
PEG_API PEG_MUST_USE peg_status peg_stepper_pause(peg_stepper *steps, peg_ctx *ctx,
                                                  peg_str session_id, const char *phase,
                                                  size_t n_pending, peg_step_decision *ret_decision,
                                                  peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
